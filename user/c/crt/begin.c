/* From the first instruction to main, and from there to the end. */

#include <tern.h>

#define ARGUMENTS_LEN_MAX 1024
#define ARGUMENTS_MAX 64

int main(int argc, char **argv);

/* From the linker script. */
extern const char tern_tls_image[], tern_tls_image_end[];
extern char tern_tls_block[], tern_thread_pointer[];
extern const char tern_tls_size[], tern_tls_align[];

/* Thread-local data lies directly below the thread pointer, and the word there points to itself. */
static void set_up_tls(void)
{
    unsigned long align = (unsigned long)tern_tls_align;
    unsigned long size = ((unsigned long)tern_tls_size + align - 1) & ~(align - 1);
    char *data = tern_thread_pointer - size;

    memcpy(data, tern_tls_image, tern_tls_image_end - tern_tls_image);
    *(void **)tern_thread_pointer = tern_thread_pointer;
    tern_thread_set_fs(TERN_NIL, (uint64_t)tern_thread_pointer);
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

void tern_begin(uint64_t arguments_len)
{
    static char text[ARGUMENTS_LEN_MAX + 1];
    static char *words[ARGUMENTS_MAX + 1] = { "program" };

    set_up_tls();
    if (arguments_len > 0)
        tern_arguments(text, ARGUMENTS_LEN_MAX);
    exit(main(split(text, words), words));
}
