/* From the first instruction to main, and from there to the end. */

#include "../lib/thread.h"

#include <cpuid.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The limit that user/lib/api/src/process.rs has, too. */
#define ARGUMENTS_LEN_MAX (1u << 17)

/* Most programs have fewer of each, and need no memory of the heap for them. */
#define ARGUMENTS_LEN_FEW 1024
#define WORDS_FEW 64
#define VARIABLES_FEW 64

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
    if (tern_processor == (TERN_HAS_BASES | TERN_HAS_AVX)) {
        tern_ipc_system_call = tern_ipc_by_newest;
        tern_door_begin = tern_door_begin_by_newest;
    }
    own->self = own;
    own->uid = uid;
    own->reent = _GLOBAL_REENT;
    tern_tls_fill(own);
    tern_thread_set_fs(TERN_NIL, (uint64_t)own);
}

/* Memory for as long as the program lives: what there is already, if it is large enough. */
static void *room(void *few, size_t few_size, size_t size)
{
    static const char complaint[] = "no memory for the program's arguments\n";
    void *memory = size <= few_size ? few : malloc(size);

    if (memory == NULL) {
        tern_complain(complaint, sizeof complaint - 1);
        exit(1);
    }
    return memory;
}

/* Cuts the argument text at blanks. */
static char **split(char *text, int *count)
{
    static char *few[WORDS_FEW + 1];
    size_t most = 1;
    char **words;

    for (const char *at = text; *at; at++)
        most += *at != ' ' && (at == text || at[-1] == ' ');
    words = room(few, sizeof few, (most + 1) * sizeof *words);
    words[0] = "program";
    *count = 1;
    while ((size_t)*count < most) {
        while (*text == ' ')
            text++;
        words[(*count)++] = text;
        while (*text && *text != ' ')
            text++;
        if (*text)
            *text++ = 0;
    }
    words[*count] = NULL;
    return words;
}

/* Behind the text lie the variables of the environment, each ended by a zero byte; the last may lack it. */
static char **variables(char *text, size_t len)
{
    static char *few[VARIABLES_FEW + 1];
    size_t most = 1, count = 0;
    char **pairs;

    for (size_t at = 0; at < len; at++)
        most += text[at] == 0;
    pairs = room(few, sizeof few, (most + 1) * sizeof *pairs);
    for (size_t at = 0; at < len; at += strlen(text + at) + 1)
        if (strchr(text + at, '=') != NULL)
            pairs[count++] = text + at;
    pairs[count] = NULL;
    return pairs;
}

void tern_begin(uint64_t arguments_len, tern_uid uid)
{
    static char few[ARGUMENTS_LEN_FEW + 1];
    char *text = few, **words;
    int count;

    set_up_thread(uid);
    if (arguments_len > 0) {
        size_t size = arguments_len < ARGUMENTS_LEN_MAX ? arguments_len : ARGUMENTS_LEN_MAX, len, own;

        text = room(few, sizeof few, size + 1);
        len = tern_arguments(text, size);
        text[len] = 0;
        own = strlen(text);
        if (own < len)
            environ = variables(text + own + 1, len - own - 1);
    }
    __libc_init_array();
    words = split(text, &count);
    exit(main(count, words));
}
