#ifndef QUILL_UTF8_H
#define QUILL_UTF8_H

/* What text is, wherever it is carried. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A counted text: bytes of UTF-8 without a zero at their end, for those programs that want it so. */
typedef struct quill_text {
    uint32_t _length;
    char *_buffer;
} quill_text;

/* What is lent is not changed. */
static inline __attribute__((always_inline)) quill_text quill_text_of(const char *bytes, uint32_t length)
{
    quill_text text = { length, (char *)(uintptr_t)bytes };
    return text;
}

/* A literal. */
#define QUILL_TEXT(literal) quill_text_of("" literal, sizeof(literal) - 1)

/* A Unicode scalar value. */
static inline bool quill_is_scalar(uint32_t character)
{
    return character < 0xd800 || (character > 0xdfff && character < 0x110000);
}

/* Characters of UTF-8 text, or SIZE_MAX if it is none. A zero may be one of them or not. */
static inline size_t quill_characters_and(bool zeros, const char *text, size_t bytes)
{
    size_t at = 0, count = 0;

    while (at < bytes) {
        uint8_t lead = (uint8_t)text[at++];
        int more = lead == 0 && !zeros ? -1 : lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2
                   : lead < 0xf5 ? 3 : -1;
        uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
        uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
        if (more < 0 || (size_t)more > bytes - at)
            return SIZE_MAX;
        for (; more > 0; more--, low = 0x80, high = 0xbf) {
            uint8_t next = (uint8_t)text[at++];
            if (next < low || next > high)
                return SIZE_MAX;
        }
        count++;
    }
    return count;
}

/* Characters of a text that ends with a zero, and so has none. */
static inline size_t quill_characters(const char *text, size_t bytes)
{
    return quill_characters_and(false, text, bytes);
}

#endif

