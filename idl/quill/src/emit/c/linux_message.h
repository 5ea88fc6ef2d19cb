#ifndef QUILL_LINUX_H
#define QUILL_LINUX_H

/* Messages over a Unix-domain socket, as all stubs of a file have them. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How a call ended: 0, the number of an exception from 1, or one of these. */
typedef uint32_t quill_status;
#define QUILL_OK 0u
#define QUILL_MALFORMED 0xffff0000u /* what came is no valid message */
#define QUILL_NO_METHOD 0xffff0001u /* the server knows no such method */
#define QUILL_NO_OBJECT 0xffff0002u /* the server knows no such object */
#define QUILL_NO_CONTEXT 0xffff0003u /* the client has no such context handle open */
#define QUILL_IO 0xffff0100u        /* the connection failed */
#define QUILL_TOO_LONG 0xffff0101u  /* an argument is too long for its type or for a message */
#define QUILL_MEMORY 0xffff0102u    /* there is no memory */

/* Whether the way to the server failed, and whether the server did, of a method with so many exceptions. */
#define QUILL_IS_COMM(status) ((status) >= QUILL_IO)
#define QUILL_IS_FAULT(status, exceptions) ((status) > (exceptions) && !QUILL_IS_COMM(status))

#define QUILL_BODY_BYTES_MAX (16u << 20)
/* Elements and what may be absent, in one message that has come: a few bytes of it could be a great value. */
#define QUILL_HEAP_BYTES_MAX ((size_t)64 << 20)

/* Memory that is given back all at once: pieces of the heap, or one room that the program has brought. */
struct quill_piece {
    struct quill_piece *next;
    size_t room_bytes; /* of a room, with what stands in front; of a piece of the heap one of the three below */
};
typedef struct quill_memory {
    struct quill_piece *first;
} quill_memory;

/* Whether a sanitizer watches memory: then each piece is as large as what it is for, and each body a piece, so that a step beyond is seen. */
#ifdef __SANITIZE_ADDRESS__
#define QUILL_WATCHED 1
#endif
#ifdef __has_feature
#if __has_feature(address_sanitizer) && !defined(QUILL_WATCHED)
#define QUILL_WATCHED 1
#endif
#endif
#ifndef QUILL_WATCHED
#define QUILL_WATCHED 0
#endif

/* Pieces for so few bytes are all as large, so that one can be used again: until then it is spare, and the only one. */
#define QUILL_SHORT_BYTES ((size_t)(QUILL_WATCHED ? 0 : 240))
#define QUILL_LONG_PIECE ((size_t)0)
#define QUILL_SHORT_PIECE ((size_t)1)
#define QUILL_SPARE_PIECE ((size_t)2)

/* Stands in front of a room. */
struct quill_room {
    struct quill_piece piece;
    size_t taken; /* bytes of the room, this among them */
};

#define QUILL_ALIGN_UP(bytes) (((bytes) + 15) & ~(size_t)15)
#define QUILL_PIECE_BYTES QUILL_ALIGN_UP(sizeof(struct quill_piece))
#define QUILL_ROOM_BYTES QUILL_ALIGN_UP(sizeof(struct quill_room))

/* The room of a memory, if the program has brought one. */
static inline struct quill_room *quill_room_of(const quill_memory *memory)
{
    struct quill_piece *first = memory->first;
    return first != NULL && first->room_bytes > QUILL_SPARE_PIECE ? (struct quill_room *)(void *)first : NULL;
}

/* Bytes from a multiple of 16 on, as they are; NULL if there are not so many. */
static inline void *quill_allocate_raw(quill_memory *memory, size_t bytes)
{
    struct quill_room *room = quill_room_of(memory);
    struct quill_piece *piece;

    if (room != NULL) {
        char *found = (char *)room + room->taken;
        size_t left = room->piece.room_bytes - room->taken;
        if (bytes > left)
            return NULL;
        room->taken += QUILL_ALIGN_UP(bytes) > left ? left : QUILL_ALIGN_UP(bytes);
        return found;
    }
    piece = memory->first;
    if (bytes > QUILL_SHORT_BYTES || piece == NULL || piece->room_bytes != QUILL_SPARE_PIECE) {
        size_t whole = bytes > QUILL_SHORT_BYTES ? bytes : QUILL_SHORT_BYTES;
        piece = whole > SIZE_MAX - QUILL_PIECE_BYTES ? NULL : malloc(QUILL_PIECE_BYTES + whole);
        if (piece == NULL)
            return NULL;
        piece->next = memory->first;
        memory->first = piece;
    }
    piece->room_bytes = bytes > QUILL_SHORT_BYTES ? QUILL_LONG_PIECE : QUILL_SHORT_PIECE;
    return (char *)piece + QUILL_PIECE_BYTES;
}

/* Bytes from a multiple of 16 on, all of them zero; NULL if there are not so many. */
static inline void *quill_allocate(quill_memory *memory, size_t bytes)
{
    void *found = quill_allocate_raw(memory, bytes);

    return found == NULL ? NULL : memset(found, 0, bytes);
}

/* The newest piece of the heap with more bytes than before, or a new one with so many, or so many bytes of a room; nothing is cleared. NULL if there are not so
 * many, and then all is as it was. */
static inline uint8_t *quill_enlarge(quill_memory *memory, uint8_t *before, size_t bytes)
{
    struct quill_piece *piece = before == NULL ? NULL : (struct quill_piece *)(void *)(before - QUILL_PIECE_BYTES);
    struct quill_piece *next = before == NULL ? memory->first : piece->next;

    if (quill_room_of(memory) != NULL)
        return quill_allocate_raw(memory, bytes);
    piece = realloc(piece, QUILL_PIECE_BYTES + bytes);
    if (piece == NULL)
        return NULL;
    piece->next = next;
    piece->room_bytes = QUILL_LONG_PIECE;
    memory->first = piece;
    return (uint8_t *)piece + QUILL_PIECE_BYTES;
}

/* Gives pieces back to the heap. Not a part of its callers: compilers would take a room of theirs for a piece. */
static __attribute__((noinline, unused)) void quill_free_pieces(struct quill_piece *piece)
{
    while (piece != NULL) {
        struct quill_piece *next = piece->next;
        free(piece);
        piece = next;
    }
}

/* Gives all of it back. A room is empty then, and stays. */
static inline void quill_release(quill_memory *memory)
{
    struct quill_room *room = quill_room_of(memory);

    if (room != NULL) {
        room->taken = QUILL_ROOM_BYTES;
        return;
    }
    quill_free_pieces(memory->first);
    memory->first = NULL;
}

/* Makes it empty for the next call: does as `quill_release`, but a single short piece stays for that one. */
static inline void quill_reuse(quill_memory *memory)
{
    struct quill_piece *piece = memory->first;

    if (piece == NULL)
        return;
    if (piece->next == NULL && (piece->room_bytes == QUILL_SHORT_PIECE || piece->room_bytes == QUILL_SPARE_PIECE))
        piece->room_bytes = QUILL_SPARE_PIECE;
    else
        quill_release(memory);
}

/* Brings a room for all that a memory is to hold from now on, which the program keeps as long as the memory is used: nothing is on the heap any more, and
 * what has no place in the room is refused (QUILL_MEMORY). What the memory held on the heap is given back; another room keeps what it holds. Whether
 * the room is large enough for what stands in front. */
static inline bool quill_bring(quill_memory *memory, void *room, size_t bytes)
{
    size_t skipped = (size_t)(QUILL_ALIGN_UP((uintptr_t)room) - (uintptr_t)room);
    struct quill_room *brought;

    if (room == NULL || bytes < QUILL_ROOM_BYTES || skipped > bytes - QUILL_ROOM_BYTES)
        return false;
    quill_release(memory);
    brought = (struct quill_room *)(void *)((char *)room + skipped);
    brought->piece.next = NULL;
    brought->piece.room_bytes = bytes - skipped;
    brought->taken = QUILL_ROOM_BYTES;
    memory->first = &brought->piece;
    return true;
}

/* Values of a message that others of it may share; their places are their numbers. */
typedef struct {
    const void *at;
    uint64_t kind;
    uint32_t outer; /* the one in which it is, counted from 1, while it is open */
    bool open;
} quill_shared_value;

typedef struct quill_shared {
    uint32_t count, room, open; /* `open` is the last that has not ended, counted from 1 */
    bool fresh;
    quill_shared_value *all;
    uint32_t *places; /* of a message that is being written: twice `room`, for numbers from 1 on, by where values lie */
} quill_shared;

#define QUILL_SHARED(message) (&(message)->shared)

#define QUILL_HEADER 8
#define QUILL_FIRST_BYTES 248 /* a body of up to so many bytes is made without the heap */

/* A message that is being written. A failure stays, and everything after it is skipped. It stays where it is: `bytes` may point into it. */
typedef struct quill_out {
    uint8_t *bytes; /* with eight bytes in front for the header */
    uint8_t *heap;  /* where a longer body is */
    size_t length;
    size_t room;
    quill_status status;
    int depth;
    quill_shared shared;
    uint8_t first[QUILL_HEADER + QUILL_FIRST_BYTES];
} quill_out;

/* An empty message. Its first bytes are made where it is, and are not cleared: each is written before it is sent. */
static inline quill_out *quill_begin_out(quill_out *out)
{
    out->bytes = out->first;
    out->heap = NULL;
    out->length = 0;
    out->room = QUILL_FIRST_BYTES;
    out->status = QUILL_OK;
    out->depth = 0;
    out->shared = (quill_shared){ 0 };
    return out;
}

/* Gives back what was written, if something is on the heap. */
static inline void quill_discard(quill_out *out)
{
    if (((uintptr_t)out->heap | (uintptr_t)out->shared.all) == 0)
        return;
    free(out->heap);
    free(out->shared.all);
    free(out->shared.places);
    out->bytes = out->heap = NULL;
    out->shared = (quill_shared){ 0 };
}

/* Makes room for a body of so many bytes. */
static inline bool quill_make_room(quill_out *out, size_t length)
{
    size_t room = length * 2 + 64;
    uint8_t *bytes;

    if (out->bytes == NULL && length <= QUILL_FIRST_BYTES) {
        out->bytes = out->first;
        out->room = QUILL_FIRST_BYTES;
        return true;
    }
    bytes = realloc(out->heap, QUILL_HEADER + room);
    if (bytes == NULL) {
        out->status = QUILL_MEMORY;
        return false;
    }
    if (out->heap == NULL)
        memcpy(bytes, out->first, QUILL_HEADER + out->length);
    out->bytes = out->heap = bytes;
    out->room = room;
    return true;
}

static inline uint8_t *quill_extend(quill_out *out, size_t count)
{
    if (out->status != QUILL_OK)
        return NULL;
    if (count > QUILL_BODY_BYTES_MAX - out->length) {
        out->status = QUILL_TOO_LONG;
        return NULL;
    }
    if ((out->length + count > out->room || out->bytes == NULL) && !quill_make_room(out, out->length + count))
        return NULL;
    out->length += count;
    return out->bytes + QUILL_HEADER + out->length - count;
}

static inline void quill_put(quill_out *out, const void *from, size_t count)
{
    uint8_t *to = quill_extend(out, count);
    if (to != NULL && count > 0)
        memcpy(to, from, count);
}

/* Pads to where the layout puts the next value. */
static inline void quill_put_at(quill_out *out, size_t offset)
{
    uint8_t *to = offset > out->length ? quill_extend(out, offset - out->length) : NULL;
    if (to != NULL)
        memset(to, 0, (size_t)(out->bytes + QUILL_HEADER + out->length - to));
}

static inline void quill_put_align(quill_out *out, size_t align)
{
    quill_put_at(out, (out->length + align - 1) & ~(align - 1));
}

/* A message that is being read. Every step checks that the bytes are there; after a failure all values are 0. */
typedef struct quill_in {
    const uint8_t *bytes;
    size_t length;
    size_t at;
    int depth;
    bool failed;
    bool starved;         /* it has failed because there was no memory */
    bool passing;         /* the bytes are gone when the call ends, so values are copied out of them */
    quill_memory *memory; /* for what has no fixed size */
    size_t heap_bytes;    /* taken of it */
    quill_shared shared;
    struct quill_contexts *contexts; /* of the client, where somebody keeps them */
} quill_in;

/* Begins in front of these bytes. */
static inline void quill_begin(quill_in *in, const uint8_t *bytes, size_t length, quill_memory *memory)
{
    in->bytes = bytes;
    in->length = length;
    in->at = 0;
    in->depth = 0;
    in->memory = memory;
    in->heap_bytes = 0;
    in->shared = (quill_shared){ 0 };
    in->contexts = NULL;
    in->failed = in->starved = in->passing = false;
}

static inline quill_in quill_begin_in(const uint8_t *bytes, size_t length, quill_memory *memory)
{
    quill_in in;

    quill_begin(&in, bytes, length, memory);
    return in;
}

/* In the place of a message for which there is no memory. */
static inline quill_in quill_begin_starved(quill_memory *memory)
{
    quill_in in = quill_begin_in((const uint8_t *)"", 0, memory);
    in.failed = in.starved = true;
    return in;
}

/* How the reading of a message has ended that has failed. */
static inline quill_status quill_failed_as(const quill_in *in)
{
    return in->starved ? QUILL_MEMORY : QUILL_MALFORMED;
}

static inline const uint8_t *quill_take(quill_in *in, size_t count)
{
    if (in->failed || count > in->length - in->at) {
        in->failed = true;
        return NULL;
    }
    in->at += count;
    return in->bytes + in->at - count;
}

static inline void quill_get_at(quill_in *in, size_t offset)
{
    if (offset < in->at)
        in->failed = true;
    else
        quill_take(in, offset - in->at);
}

static inline void quill_get_align(quill_in *in, size_t align)
{
    quill_get_at(in, (in->at + align - 1) & ~(align - 1));
}

static inline void quill_get_end(quill_in *in)
{
    if (in->at != in->length)
        in->failed = true;
}

/* Memory for elements, as it is, if the message can hold so many. */
static inline void *quill_get_raw(quill_in *in, uint32_t count, size_t wire_bytes, size_t bytes)
{
    void *room;
    if (in->failed || count > (in->length - in->at) / wire_bytes
        || count > (QUILL_HEAP_BYTES_MAX - in->heap_bytes) / (bytes == 0 ? 1 : bytes)) {
        in->failed = true;
        return NULL;
    }
    in->heap_bytes += (size_t)count * bytes;
    room = quill_allocate_raw(in->memory, (size_t)count * bytes + 1);
    if (room == NULL)
        in->failed = in->starved = true;
    return room;
}

/* Memory for elements, all of it zero. */
static inline void *quill_get_room(quill_in *in, uint32_t count, size_t wire_bytes, size_t bytes)
{
    void *room = quill_get_raw(in, count, wire_bytes, bytes);

    return room == NULL ? NULL : memset(room, 0, (size_t)count * bytes + 1);
}

#endif
