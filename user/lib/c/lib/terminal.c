/* Input from a person: what is typed is shown, and can be taken back until the line is ended. Where the environment has no TERM, as
 * in scripts, it comes as it is. */

#include "terminal.h"

#include <stdlib.h>
#include <tern.h>

enum { OVER = -2, END = 4, BACKSPACE = 8, DELETE = 127 };

/* Input that is not part of a line yet. */
static char typed[64];
static long typed_len, typed_at;

/* The line that is read now, or put together. */
static char line[256];
static size_t line_len, line_at;
static int is_over;

/* The next byte, OVER at the end of a pipe, or -1 if there is nothing to read from. */
static int next_byte(void)
{
    if (typed_at == typed_len) {
        typed_at = 0;
        typed_len = tern_read(typed, sizeof typed);
    }
    if (typed_len <= 0) {
        int is_end = typed_len == 0;
        typed_len = 0;
        return is_end ? OVER : -1;
    }
    return (unsigned char)typed[typed_at++];
}

static void show(int is_shown, const char *bytes, size_t len)
{
    if (is_shown)
        tern_write(bytes, len);
}

/* Puts the next line together, with its end. A line that is too long ends before it does. */
static int next_line(void)
{
    int is_shown = getenv("TERM") != NULL && !tern_is_piped(0);

    for (line_len = line_at = 0; line_len < sizeof line;) {
        int byte = next_byte();
        char character = (char)(byte == '\r' ? '\n' : byte);
        if (byte == OVER || (byte == END && !tern_is_piped(0))) {
            is_over = 1;
            return 0;
        }
        if (byte < 0)
            return -1;
        if (is_shown && (byte == BACKSPACE || byte == DELETE)) {
            /* A character of UTF-8 goes as a whole. */
            int had_one = line_len > 0;
            while (line_len > 0 && (line[--line_len] & 0xc0) == 0x80)
                ;
            if (had_one)
                show(is_shown, "\b \b", 3);
            continue;
        }
        line[line_len++] = character;
        show(is_shown, &character, 1);
        if (character == '\n')
            break;
    }
    return 0;
}

long tern_terminal_read(char *bytes, size_t size)
{
    size_t len = 0;

    if (line_at == line_len && !is_over && next_line() < 0)
        return -1;
    while (len < size && line_at < line_len)
        bytes[len++] = line[line_at++];
    return (long)len;
}
