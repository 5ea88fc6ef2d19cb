#ifndef QUILL_STREAM_PLACES_H
#define QUILL_STREAM_PLACES_H

/* Bytes of values that are written and read piece by piece, in memory that somebody else brings. */

struct quill_shared;

/* Words that are being written. A failure stays, and everything after it is skipped. */
typedef struct {
    char *bytes;
    uint64_t room, length;
    quill_status status;
    uint32_t depth;
    struct quill_shared *shared; /* values that may be shared, if there are such */
} quill_out;

static inline quill_out quill_begin_out(char *bytes, uint64_t room)
{
    return (quill_out){ bytes, room, 0, QUILL_OK, 0, NULL };
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

    quill_put(out, zeros, -out->length & (align - 1));
}

/* Words that are being read. Every step checks that the bytes are there; after a failure all values are 0. */
typedef struct {
    char *bytes;
    uint64_t length, at;
    bool failed;
    uint32_t depth;
    char *memory; /* for lists, and for what may be absent */
    uint64_t memory_bytes;
    struct quill_shared *shared; /* values that may be shared, if there are such */
} quill_in;

static inline void quill_give_memory(quill_in *in, char *memory, uint64_t bytes)
{
    in->memory = memory;
    in->memory_bytes = bytes;
}

/* Memory for elements, if the message can hold so many, and there is so much left. */
static inline void *quill_get_room(quill_in *in, uint32_t count, uint64_t wire_bytes, uint64_t bytes)
{
    uint64_t all = ((uint64_t)count * bytes + 15) & ~(uint64_t)15, left = in->length - in->at;
    char *room = in->memory;

    /* Without a division, for which processors of 32 bits would need a library. */
    if (in->failed || (count > 0 && wire_bytes > left) || count * wire_bytes > left || all > in->memory_bytes) {
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
    quill_take(in, -in->at & (align - 1));
}

static inline bool quill_is_end(const quill_in *in)
{
    return !in->failed && in->at == in->length;
}

#endif
