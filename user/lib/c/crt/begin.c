/* From the first instruction to main, and from there to the end. */

#include "../lib/thread.h"

#include <cpuid.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_LEN_MAX 1024
#define ARGUMENTS_MAX 64
#define VARIABLES_MAX 64

int main(int argc, char **argv);
void __libc_init_array(void);

/* From the linker script, with room for a control block. */
extern char tern_thread_pointer[];
_Static_assert(sizeof(struct __tern_thread) <= 512, "the linker script has room for it");

/* Functions that newlib calls before all constructors and after all destructors. */
void _init(void)
{
}

void _fini(void)
{
}

/* Abilities that lib/ipc.S makes use of. */
static unsigned char processor(void)
{
    enum { LEAF = 7, BASES = 1, OSXSAVE = 1 << 27, AVX = 1 << 28, VECTORS = 6 };
    unsigned int a, b, c, d, found = 0;

    if (__get_cpuid_count(LEAF, 0, &a, &b, &c, &d) && (b & BASES) != 0)
        found |= TERN_HAS_BASES;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & OSXSAVE) != 0 && (c & AVX) != 0) {
        __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
        if ((a & VECTORS) == VECTORS)
            found |= TERN_HAS_AVX;
    }
    return (unsigned char)found;
}

/* The first thread's control block, and its thread-local data. */
static void set_up_thread(tern_uid uid)
{
    struct __tern_thread *own = (struct __tern_thread *)tern_thread_pointer;

    tern_processor = processor();
    if (tern_processor == (TERN_HAS_BASES | TERN_HAS_AVX))
        tern_ipc_system_call = tern_ipc_by_newest;
    own->self = own;
    own->uid = uid;
    own->reent = _GLOBAL_REENT;
    tern_tls_fill(own);
    tern_thread_set_fs(TERN_NIL, (uint64_t)own);
}

/* Cuts the argument text at white space. */
static int split(char *text, char **words)
{
    int count = 1;

    while (*text && count < ARGUMENTS_MAX) {
        while (*text == ' ')
            text++;
        if (!*text)
            break;
        words[count++] = text;
        while (*text && *text != ' ')
            text++;
        if (*text)
            *text++ = 0;
    }
    words[count] = 0;
    return count;
}

/* Behind the text lie the variables of the environment, each ended by a zero byte; the last may lack it. */
static char **variables(char *text, size_t len)
{
    static char *pairs[VARIABLES_MAX + 1];
    int count = 0;

    for (size_t at = 0; at < len && count < VARIABLES_MAX; at += strlen(text + at) + 1)
        if (strchr(text + at, '=') != NULL)
            pairs[count++] = text + at;
    return pairs;
}

void tern_begin(uint64_t arguments_len, tern_uid uid)
{
    static char text[ARGUMENTS_LEN_MAX + 1];
    static char *words[ARGUMENTS_MAX + 1] = { "program" };

    set_up_thread(uid);
    if (arguments_len > 0) {
        size_t len = tern_arguments(text, ARGUMENTS_LEN_MAX), own = strlen(text);
        if (own < len)
            environ = variables(text + own + 1, len - own - 1);
    }
    __libc_init_array();
    exit(main(split(text, words), words));
}
