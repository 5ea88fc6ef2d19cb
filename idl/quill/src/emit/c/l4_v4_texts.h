#ifndef QUILL_L4_V4_TEXTS_H
#define QUILL_L4_V4_TEXTS_H

/* --- counted texts: they travel with a zero at their end like all others, and have none within --- */

/* The length of one of at most so many characters; UINT32_MAX if it is none. It goes into registers with it. */
static inline uint32_t quill_counted_bytes(quill_text text, uint64_t bound)
{
    return text._length <= 4 * bound && quill_characters_and(true, text._buffer, text._length) <= bound
               ? text._length : UINT32_MAX;
}

static inline bool quill_get_counted_text(char *to, const char *from, uint32_t bytes, uint64_t bound)
{
    if (bytes > 4 * bound || quill_characters_and(true, from, bytes) > bound)
        return false;
    __builtin_memcpy(to, from, bytes);
    return true;
}

/* Copies one with a zero at its end. Returns how many bytes that is, or 0 if it is too long or has a zero in it. */
static inline size_t quill_copy_counted(char *to, size_t room, quill_text text, uint64_t bound)
{
    if (text._length >= room)
        return 0;
    for (uint32_t i = 0; i < text._length; i++)
        if ((to[i] = text._buffer[i]) == 0)
            return 0;
    to[text._length] = 0;
    return bound == UINT64_MAX || quill_characters(to, text._length) <= bound ? text._length + 1u : 0;
}

/* Puts one behind so many bytes: in registers if it fits, and as an item if it does not, of which `copy` keeps the bytes
 * until it is sent. Returns the tag, or 0 if it is too long or has a zero in it. */
QUILL_INLINE quill_word quill_put_counted_tail(char *utcb, uint32_t label, size_t at, quill_text text, uint64_t bound,
                                               char *copy, size_t room)
{
    size_t bytes;

    if (text._length < QUILL_REGISTERS * 4 - at) {
        bytes = quill_copy_counted(quill_at(utcb, at), QUILL_REGISTERS * 4 - at, text, bound);
        if (bytes == 0)
            return 0;
        for (; (at + bytes) % sizeof(quill_word) != 0; bytes++)
            quill_at(utcb, at)[bytes] = 0;
        return (quill_word)label << 16 | QUILL_WORDS(at + bytes);
    }
    bytes = quill_copy_counted(copy, room, text, bound);
    if (bytes == 0)
        return 0;
    quill_put_item(utcb, at, copy, bytes);
    return QUILL_TAG(label, at, 1);
}

/* The text that came behind so many bytes, where it lies. In registers it ends with the last word; the zeros there are not
 * part of it. False if there is none. */
QUILL_INLINE bool quill_get_counted_tail(char *utcb, quill_word tag, uint32_t label, size_t at, char *buffer,
                                         size_t room, uint64_t bound, quill_text *text)
{
    size_t bytes;

    if (QUILL_LIKELY((tag & ~(QUILL_TAG_HINTS | 63)) == (quill_word)label << 16)) {
        bytes = (tag & 63) * sizeof(quill_word);
        if (bytes <= at || quill_at(utcb, bytes)[-1] != 0)
            return false;
        for (bytes -= at; bytes > 0 && quill_at(utcb, at)[bytes - 1] == 0;)
            bytes--;
        text->_buffer = quill_at(utcb, at);
    } else if ((tag & ~QUILL_TAG_HINTS) == QUILL_TAG(label, at, 1)) {
        bytes = quill_item_bytes(utcb, at);
        if (bytes > room || bytes == 0 || buffer[--bytes] != 0)
            return false;
        text->_buffer = buffer;
    } else {
        return false;
    }
    text->_length = (uint32_t)bytes;
    return bound == UINT64_MAX || quill_characters(text->_buffer, bytes) <= bound;
}

/* Where a client wants a text to be. */
static inline void quill_bring_text(char *to, const char *from)
{
    size_t at = 0;

    if (to == from)
        return;
    do
        to[at] = from[at];
    while (from[at++] != 0);
}

/* --- values that are read piece by piece: each such value is an item --- */

/* Memory for lists, and for what may be absent, in all values of a message. */
#define QUILL_MEMORY_BYTES 8192

/* The next value, with what is left of the memory. */
static inline void quill_next_in(quill_in *in, char *bytes, quill_word length)
{
    *in = (quill_in){ bytes, length, 0, in->failed, 0, in->memory, in->memory_bytes, NULL };
}

#endif
