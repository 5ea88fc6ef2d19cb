#ifndef QUILL_TERN_STREAM_H
#define QUILL_TERN_STREAM_H

/* Values that are read piece by piece, from the words in memory behind those that have places. */

/* What is done about a request that is wrong, or not known to be right: the second look decides. */
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

/* Words that are being written. A failure stays, and everything after it is skipped. */
typedef struct {
    char *bytes;
    uint64_t room, length;
    quill_status status;
    uint32_t depth;
} quill_out;

static inline quill_out quill_begin_out(char *bytes, uint64_t room)
{
    return (quill_out){ bytes, room, 0, QUILL_OK, 0 };
}

static inline void quill_put(quill_out *out, const void *from, uint64_t count)
{
    if (out->status == QUILL_OK && count > out->room - out->length)
        out->status = QUILL_TOO_LONG;
    if (out->status != QUILL_OK || count == 0)
        return;
    __builtin_memcpy(out->bytes + out->length, from, count);
    out->length += count;
}

static inline void quill_put_align(quill_out *out, uint64_t align)
{
    static const char zeros[8];

    quill_put(out, zeros, -out->length % align);
}

/* Words that are being read. Every step checks that the bytes are there; after a failure all values are 0. */
typedef struct {
    char *bytes;
    uint64_t length, at;
    bool failed;
    uint32_t depth;
    char *memory; /* for lists, and for what may be absent */
    uint64_t memory_bytes;
} quill_in;

/* What comes behind so many words. Not even these are there, or other strings than so many, if it has failed. */
static inline quill_in quill_begin_in(uint64_t *room, const uint64_t *words, uint64_t fixed, uint32_t strings)
{
    uint32_t dope = (uint32_t)words[0];
    uint64_t count = dope & 0xfff;

    if (dope >> 12 != strings || count < fixed)
        return (quill_in){ NULL, 0, 0, true, 0, NULL, 0 };
    return (quill_in){ (char *)(room + fixed), 8 * (count - fixed), 0, false, 0, NULL, 0 };
}

static inline void quill_give_memory(quill_in *in, char *memory, uint64_t bytes)
{
    in->memory = memory;
    in->memory_bytes = bytes;
}

/* Memory for elements, if the message can hold so many, and there is so much left. */
static inline void *quill_get_room(quill_in *in, uint32_t count, uint64_t wire_bytes, uint64_t bytes)
{
    uint64_t all = ((uint64_t)count * bytes + 15) & ~(uint64_t)15;
    char *room = in->memory;

    if (in->failed || count > (in->length - in->at) / wire_bytes || all > in->memory_bytes) {
        in->failed = true;
        return NULL;
    }
    in->memory += all;
    in->memory_bytes -= all;
    __builtin_memset(room, 0, all);
    return room;
}

static inline char *quill_take(quill_in *in, uint64_t count)
{
    if (in->failed || count > in->length - in->at) {
        in->failed = true;
        return NULL;
    }
    in->at += count;
    return in->bytes + in->at - count;
}

static inline void quill_get_align(quill_in *in, uint64_t align)
{
    quill_take(in, -in->at % align);
}

static inline bool quill_is_end(const quill_in *in)
{
    return !in->failed && in->at == in->length;
}

#endif
