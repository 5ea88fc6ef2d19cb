#ifndef QUILL_STREAM_TEXTS_H
#define QUILL_STREAM_TEXTS_H

/* Texts that are written and read piece by piece: behind their lengths, and before a zero. */

/* Refuses text that is not there, is no UTF-8, or has more characters than its type allows. */
static inline void quill_check_text(quill_out *out, const char *text, uint64_t bound)
{
    uint64_t bytes = 0;

    if (text == NULL) {
        quill_fail(out, QUILL_MALFORMED);
        return;
    }
    while (text[bytes] != 0 && bytes <= out->room)
        bytes++;
    if (bytes > out->room || quill_characters(text, bytes) > bound)
        quill_fail(out, QUILL_TOO_LONG);
}

/* Text that has been looked at, with the zero behind it. */
static inline void quill_put_string(quill_out *out, const char *text)
{
    uint64_t bytes = out->status == QUILL_OK ? __builtin_strlen(text) : 0;

    quill_put_u32(out, (uint32_t)bytes);
    quill_put(out, text, bytes + 1);
}

/* Text where it has arrived, with the zero behind it. A zero within it would hide the rest from C, and is refused. */
static inline char *quill_get_string(quill_in *in, uint64_t bound)
{
    uint64_t bytes = quill_get_u32(in), characters;
    char *text = quill_take(in, bytes + 1);

    if (text == NULL)
        return NULL;
    characters = quill_characters(text, bytes);
    if (text[bytes] != 0 || characters > bound || characters == SIZE_MAX)
        in->failed = true;
    return text;
}

/* A counted text travels with a zero behind it, too; one within it is a character like any other. */
static inline void quill_check_counted(quill_out *out, const char *text, uint64_t bytes, uint64_t bound)
{
    if (text == NULL && bytes > 0)
        quill_fail(out, QUILL_MALFORMED);
    else if (bytes > out->room || quill_characters_and(true, text, bytes) > bound)
        quill_fail(out, QUILL_TOO_LONG);
}

static inline void quill_put_counted(quill_out *out, const char *text, uint32_t bytes)
{
    quill_put_u32(out, bytes);
    quill_put(out, text, bytes);
    quill_put(out, "", 1);
}

static inline char *quill_get_counted(quill_in *in, uint32_t *bytes, uint64_t bound)
{
    char *text;
    uint64_t characters;

    *bytes = quill_get_u32(in);
    text = quill_take(in, (uint64_t)*bytes + 1);
    if (text == NULL)
        return NULL;
    characters = quill_characters_and(true, text, *bytes);
    if (text[*bytes] != 0 || characters > bound || characters == SIZE_MAX)
        in->failed = true;
    return text;
}

static inline void quill_get_counted_inside(quill_in *in, char *to, uint32_t *bytes, uint64_t bound)
{
    const char *text = quill_get_counted(in, bytes, bound);

    if (in->failed)
        *bytes = 0;
    else
        __builtin_memcpy(to, text, *bytes);
}

/* Copies a text to where there is room for as much as the bound says. */
static inline void quill_get_inside(quill_in *in, char *to, uint64_t bound)
{
    const char *text = quill_get_string(in, bound);

    *to = 0;
    if (!in->failed)
        __builtin_memcpy(to, text, __builtin_strlen(text) + 1);
}

#endif
