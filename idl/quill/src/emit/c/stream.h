#ifndef QUILL_STREAM_H
#define QUILL_STREAM_H

/* Values that are written and read piece by piece, whatever carries them: each from a multiple of its size. What goes before knows where the
 * bytes are: `quill_out` and `quill_in`, `quill_put` and `quill_take`, and both with `_align`. */

/* Values within values that may be absent, and lists within lists, at most: a hostile message cannot nest deeper. */
#define QUILL_DEPTH_MAX 64

static inline void quill_fail(quill_out *out, quill_status status)
{
    if (out->status == QUILL_OK)
        out->status = status;
}

/* One pointer further. What is deeper than readers go, or has no end, is refused. */
static inline bool quill_put_enter(quill_out *out)
{
    if (out->depth == QUILL_DEPTH_MAX)
        quill_fail(out, QUILL_TOO_LONG);
    else
        out->depth++;
    return out->status == QUILL_OK;
}

static inline void quill_put_leave(quill_out *out)
{
    out->depth--;
}

static inline bool quill_enter(quill_in *in)
{
    if (in->depth == QUILL_DEPTH_MAX)
        in->failed = true;
    else
        in->depth++;
    return !in->failed;
}

static inline void quill_leave(quill_in *in)
{
    in->depth--;
}

/* So many bytes as they are. */
static inline void quill_get_bytes(quill_in *in, void *to, size_t count)
{
    const void *from = quill_take(in, count);
    if (from != NULL)
        __builtin_memcpy(to, from, count);
}

#define QUILL_NUMBER(name, type)                                                            \
    static inline __attribute__((unused)) void quill_put_##name(quill_out *out, type value) \
    {                                                                                       \
        quill_put_align(out, sizeof value);                                                 \
        quill_put(out, &value, sizeof value);                                               \
    }                                                                                       \
    static inline __attribute__((unused)) type quill_get_##name(quill_in *in)               \
    {                                                                                       \
        type value = 0;                                                                     \
        const void *from;                                                                   \
        quill_get_align(in, sizeof value);                                                  \
        from = quill_take(in, sizeof value);                                                \
        if (from != NULL)                                                                   \
            __builtin_memcpy(&value, from, sizeof value);                                   \
        return value;                                                                       \
    }

QUILL_NUMBER(u8, uint8_t)
QUILL_NUMBER(u16, uint16_t)
QUILL_NUMBER(u32, uint32_t)
QUILL_NUMBER(u64, uint64_t)
QUILL_NUMBER(i8, int8_t)
QUILL_NUMBER(i16, int16_t)
QUILL_NUMBER(i32, int32_t)
QUILL_NUMBER(i64, int64_t)
QUILL_NUMBER(f32, float)
QUILL_NUMBER(f64, double)

static inline void quill_put_bool(quill_out *out, bool value)
{
    quill_put_u8(out, value);
}

static inline bool quill_get_bool(quill_in *in)
{
    uint8_t byte = quill_get_u8(in);
    if (byte > 1)
        in->failed = true;
    return byte == 1;
}

static inline void quill_put_wchar(quill_out *out, uint32_t value)
{
    if (!quill_is_scalar(value))
        quill_fail(out, QUILL_MALFORMED);
    quill_put_u32(out, value);
}

static inline uint32_t quill_get_wchar(quill_in *in)
{
    uint32_t character = quill_get_u32(in);
    if (!quill_is_scalar(character))
        in->failed = true;
    return character;
}

static inline size_t quill_bytes_of(const char *text)
{
    return text == NULL ? 0 : __builtin_strlen(text);
}

/* How many characters a text has, or how many bytes, if it is none. */
static inline int64_t quill_characters_of(const char *text, size_t bytes)
{
    size_t count = bytes == 0 ? 0 : quill_characters_and(true, text, bytes);
    return count == SIZE_MAX ? (int64_t)bytes : (int64_t)count;
}

static inline int64_t quill_text_characters(const char *text)
{
    return quill_characters_of(text, quill_bytes_of(text));
}

#endif
