#ifndef QUILL_TERN_STREAM_H
#define QUILL_TERN_STREAM_H

/* Values that are read piece by piece, from the words in memory behind those that have places. */

/* Refusal of a request that is wrong, or not known to be right: the second look decides. */
QUILL_INLINE quill_status quill_refused(bool again)
{
    return again ? QUILL_MALFORMED : QUILL_AGAIN;
}

/* How long a string is that has arrived; the number of the word that says so is known. */
static inline uint64_t quill_string_bytes(const void *room, uint64_t descriptor)
{
    return (uint32_t)((const uint64_t *)room)[descriptor];
}

QUILL_INLINE bool quill_is_any_counted_text(const char *text, uint64_t bytes, uint64_t last, uint64_t characters_max)
{
    return quill_is_counted_text(text, bytes, last, characters_max, false) ||
           quill_is_other_counted_text(text, bytes, characters_max);
}

/* The whole words of so many bytes, computed again: to keep them would need a register. */
QUILL_INLINE uint64_t quill_words_again(uint64_t bytes)
{
    __asm__ volatile("" : "+r"(bytes));
    return bytes / 8;
}

/* Begins behind so many words. Not even these are there, or other strings than so many, if it has failed. */
static inline quill_in quill_begin_in(uint64_t *room, const uint64_t *words, uint64_t fixed, uint32_t strings)
{
    uint32_t dope = (uint32_t)words[0];
    uint64_t count = dope & 0xfff;

    if (dope >> 12 != strings || count < fixed)
        return (quill_in){ NULL, 0, 0, true, 0, NULL, 0, NULL };
    return (quill_in){ (char *)(room + fixed), 8 * (count - fixed), 0, false, 0, NULL, 0, NULL };
}

#endif
