#ifndef QUILL_ANY_PACKED_H
#define QUILL_ANY_PACKED_H

/* Values of a file's types in an any: behind their type codes, in memory that the program brings. */

/* Begins in front of these bytes. Lists of what is read lie in the room. */
static inline quill_packed_in quill_packed_begin_in(const void *from, size_t length, void *room, size_t bytes)
{
    quill_packed_in in = { (char *)(uintptr_t)from, length, 0, false, 0, NULL, 0, NULL };
    size_t skipped = -(uintptr_t)room & 15;

    if (room == NULL || bytes < skipped)
        quill_packed_give_memory(&in, (char *)&in, 0);
    else
        quill_packed_give_memory(&in, (char *)room + skipped, bytes - skipped);
    return in;
}

/* Begins in front of the value in an any, if its type has that code. */
static inline quill_packed_in quill_packed_begin_any(const quill_any *any, const char *code, size_t length, void *room, size_t bytes)
{
    size_t own = quill_any_code_bytes(any);
    quill_packed_in in = quill_packed_begin_in(any->content._buffer, own == 0 ? 0 : any->content._length, room, bytes);

    in.failed = own != length;
    for (size_t i = 0; i < length && !in.failed; i++)
        in.failed = (char)any->content._buffer[i] != code[i];
    quill_packed_take(&in, length);
    return in;
}

/* Whether all has been read, but for what fills the last word. */
static inline bool quill_packed_ends(quill_packed_in *in)
{
    quill_packed_get_align(in, 8);
    return quill_packed_is_end(in);
}

/* Makes an any of a value behind its type code, if it has been written. */
static inline bool quill_packed_describe(quill_packed_out *out, size_t code, quill_any *any)
{
    quill_packed_put_align(out, 8);
    if (out->status != QUILL_OK || out->length > UINT32_MAX)
        return false;
    *any = quill_any_of(quill_tk_described, code, NULL);
    any->content._buffer = (uint8_t *)out->bytes;
    any->content._length = (uint32_t)out->length;
    return true;
}

#endif
