#ifndef QUILL_LINUX_H
#define QUILL_LINUX_H

/* What all stubs share: messages, their values, and the way over a Unix-domain socket. */

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
#define QUILL_IO 0xffff0100u        /* the connection failed */
#define QUILL_TOO_LONG 0xffff0101u  /* an argument is too long for its type or for a message */
#define QUILL_MEMORY 0xffff0102u    /* there is no memory */

#define QUILL_BODY_BYTES_MAX (16u << 20)
#define QUILL_DEPTH_MAX 64

/* Memory that is given back all at once. */
struct quill_piece {
    struct quill_piece *next;
};
typedef struct quill_memory {
    struct quill_piece *first;
} quill_memory;

static inline void *quill_allocate(quill_memory *memory, size_t bytes)
{
    size_t head = (sizeof(struct quill_piece) + 15) & ~(size_t)15;
    struct quill_piece *piece = bytes > SIZE_MAX - head ? NULL : malloc(head + bytes);

    if (piece == NULL)
        return NULL;
    piece->next = memory->first;
    memory->first = piece;
    memset((char *)piece + head, 0, bytes);
    return (char *)piece + head;
}

static inline void quill_release(quill_memory *memory)
{
    while (memory->first != NULL) {
        struct quill_piece *piece = memory->first;
        memory->first = piece->next;
        free(piece);
    }
}

/* A message that is being written. A failure stays, and everything after it is skipped. */
typedef struct quill_out {
    uint8_t *bytes; /* with eight bytes in front for the header */
    size_t length;
    size_t room;
    quill_status status;
    int depth;
} quill_out;

#define QUILL_HEADER 8

static inline uint8_t *quill_extend(quill_out *out, size_t count)
{
    if (out->status != QUILL_OK)
        return NULL;
    if (count > QUILL_BODY_BYTES_MAX - out->length) {
        out->status = QUILL_TOO_LONG;
        return NULL;
    }
    if (out->length + count > out->room || out->bytes == NULL) {
        size_t room = (out->length + count) * 2 + 64;
        uint8_t *bytes = realloc(out->bytes, QUILL_HEADER + room);
        if (bytes == NULL) {
            out->status = QUILL_MEMORY;
            return NULL;
        }
        out->bytes = bytes;
        out->room = room;
    }
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

/* A message that is being read. Every step checks that the bytes are there; after a failure all values are 0. */
typedef struct quill_in {
    const uint8_t *bytes;
    size_t length;
    size_t at;
    int depth;
    bool failed;
    quill_memory *memory; /* for what has no fixed size */
} quill_in;

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

/* So many bytes as they are. */
static inline void quill_get_bytes(quill_in *in, void *to, size_t count)
{
    const uint8_t *from = quill_take(in, count);
    if (from != NULL)
        memcpy(to, from, count);
}

static inline void quill_get_end(quill_in *in)
{
    if (in->at != in->length)
        in->failed = true;
}

/* Memory for elements, if the message can hold so many. */
static inline void *quill_get_room(quill_in *in, uint32_t count, size_t wire_bytes, size_t bytes)
{
    void *room;
    if (in->failed || count > (in->length - in->at) / wire_bytes) {
        in->failed = true;
        return NULL;
    }
    room = quill_allocate(in->memory, (size_t)count * bytes + 1);
    if (room == NULL)
        in->failed = true;
    return room;
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

#define QUILL_NUMBER(name, type)                                       \
    static inline void quill_put_##name(quill_out *out, type value)    \
    {                                                                  \
        quill_put_align(out, sizeof value);                            \
        quill_put(out, &value, sizeof value);                          \
    }                                                                  \
    static inline type quill_get_##name(quill_in *in)                  \
    {                                                                  \
        type value = 0;                                                \
        const uint8_t *from;                                           \
        quill_get_align(in, sizeof value);                             \
        from = quill_take(in, sizeof value);                           \
        if (from != NULL)                                              \
            memcpy(&value, from, sizeof value);                        \
        return value;                                                  \
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

static inline size_t quill_text_bytes(const char *text)
{
    return text == NULL ? 0 : strlen(text);
}

/* How many characters a text has, or how many bytes, if it is none. */
static inline int64_t quill_characters_of(const char *text, size_t bytes)
{
    size_t count = bytes == 0 ? 0 : quill_characters_and(true, text, bytes);
    return count == SIZE_MAX ? (int64_t)bytes : (int64_t)count;
}

static inline int64_t quill_text_characters(const char *text)
{
    return quill_characters_of(text, quill_text_bytes(text));
}

/* Refuses text that is no UTF-8, or has more characters than its type allows. */
static inline void quill_check_text(quill_out *out, const char *text, uint64_t bound)
{
    size_t bytes = quill_text_bytes(text);
    size_t count = bytes == 0 ? 0 : quill_characters_and(true, text, bytes);
    if (count > bound)
        quill_fail(out, QUILL_TOO_LONG);
}

/* Refuses counted text of that kind. What is longer than it may be is not looked at. */
static inline void quill_check_counted(quill_out *out, const char *text, size_t bytes, uint64_t bound)
{
    if (bytes > QUILL_BODY_BYTES_MAX || bytes / 4 > bound)
        quill_fail(out, QUILL_TOO_LONG);
    else if (bytes > 0 && quill_characters_and(true, text, bytes) > bound)
        quill_fail(out, QUILL_TOO_LONG);
}

static inline void quill_put_text(quill_out *out, const char *text)
{
    quill_put(out, text, quill_text_bytes(text));
}

static inline void quill_put_string(quill_out *out, const char *text)
{
    quill_put_u32(out, (uint32_t)quill_text_bytes(text));
    quill_put_text(out, text);
}

/* Text of so many bytes, with a zero behind it. A zero within it would hide the rest from C, and is refused. */
static inline char *quill_get_text(quill_in *in, uint32_t bytes, uint64_t bound)
{
    char *text = quill_get_room(in, bytes, 1, 1);
    const uint8_t *from = quill_take(in, bytes);
    size_t count;

    if (text == NULL || from == NULL)
        return NULL;
    memcpy(text, from, bytes);
    count = quill_characters_and(true, (const char *)from, bytes);
    if (count == SIZE_MAX || count > bound || memchr(from, 0, bytes) != NULL)
        in->failed = true;
    return text;
}

/* Counted text where it has arrived, without a zero behind it. A zero within it is a character like any other. */
static inline char *quill_get_counted_text(quill_in *in, uint32_t bytes, uint64_t bound)
{
    const uint8_t *from = quill_take(in, bytes);
    size_t count = from == NULL ? 0 : quill_characters_and(true, (const char *)from, bytes);

    if (count == SIZE_MAX || count > bound)
        in->failed = true;
    return (char *)(uintptr_t)from;
}

static inline void quill_put_counted(quill_out *out, const char *text, uint32_t bytes)
{
    quill_put_u32(out, bytes);
    quill_put(out, text, bytes);
}

static inline char *quill_get_counted(quill_in *in, uint32_t *bytes, uint64_t bound)
{
    *bytes = quill_get_u32(in);
    return quill_get_counted_text(in, *bytes, bound);
}

static inline char *quill_get_string(quill_in *in, uint64_t bound)
{
    uint32_t bytes = quill_get_u32(in);
    return quill_get_text(in, bytes, bound);
}

/* --- the way --- */

/* A way to a server. What a call returns stays valid until the next one, or until it is released. */
typedef struct quill_client {
    int socket;
    quill_memory memory;
} quill_client;

static inline quill_status quill_write_all(int socket, const uint8_t *bytes, size_t count)
{
    while (count > 0) {
        ssize_t done = send(socket, bytes, count, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return QUILL_IO;
        bytes += done;
        count -= (size_t)done;
    }
    return QUILL_OK;
}

/* Reads so many bytes; 1 when the other side has closed before the first. */
static inline quill_status quill_read_all(int socket, uint8_t *bytes, size_t count)
{
    size_t at = 0;
    while (at < count) {
        ssize_t done = recv(socket, bytes + at, count - at, 0);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done == 0 && at == 0 ? 1 : QUILL_IO;
        at += (size_t)done;
    }
    return QUILL_OK;
}

/* Sends a message and forgets it. */
static inline quill_status quill_send(int socket, uint32_t label, quill_out *out)
{
    quill_status status = out->status;
    if (status == QUILL_OK)
        quill_extend(out, 0);
    status = out->status;
    if (status == QUILL_OK) {
        uint32_t length = (uint32_t)out->length;
        memcpy(out->bytes, &label, 4);
        memcpy(out->bytes + 4, &length, 4);
        status = quill_write_all(socket, out->bytes, QUILL_HEADER + out->length);
    }
    free(out->bytes);
    out->bytes = NULL;
    return status;
}

/* Receives a message into memory; 1 when there is none any more. */
static inline quill_status quill_receive(int socket, quill_memory *memory, uint32_t *label, quill_in *in)
{
    uint8_t header[QUILL_HEADER];
    uint32_t length;
    uint8_t *bytes;
    quill_status status = quill_read_all(socket, header, sizeof header);

    if (status != QUILL_OK)
        return status;
    memcpy(label, header, 4);
    memcpy(&length, header + 4, 4);
    if (length > QUILL_BODY_BYTES_MAX)
        return QUILL_MALFORMED;
    bytes = quill_allocate(memory, (size_t)length + 1);
    if (bytes == NULL)
        return QUILL_MEMORY;
    if (length > 0 && quill_read_all(socket, bytes, length) != QUILL_OK)
        return QUILL_IO;
    *in = (quill_in){ bytes, length, 0, 0, false, memory };
    return QUILL_OK;
}

/* Sends a request and waits for the reply. */
static inline quill_status quill_call(quill_client *client, uint32_t request, quill_out *out, uint32_t *label,
                                      quill_in *in)
{
    quill_status status = quill_send(client->socket, request, out);
    quill_release(&client->memory);
    if (status == QUILL_OK)
        status = quill_receive(client->socket, &client->memory, label, in);
    return status == 1 ? QUILL_IO : status;
}

/* Answers a request: leaves the reply in `out` and returns its label; `*silent` if there is none. */
typedef uint32_t (*quill_dispatch)(const void *methods, void *self, uint32_t label, quill_in *in, quill_out *out,
                                   bool *silent);

/* Serves one connection until the client closes it. */
static inline quill_status quill_serve(int socket, quill_dispatch dispatch, const void *methods, void *self)
{
    for (;;) {
        quill_memory memory = { NULL };
        quill_out out = { NULL, 0, 0, QUILL_OK, 0 };
        quill_in in;
        uint32_t label;
        bool silent = false;
        quill_status status = quill_receive(socket, &memory, &label, &in);

        if (status == QUILL_OK) {
            label = dispatch(methods, self, label, &in, &out, &silent);
            if (silent)
                free(out.bytes);
            else
                status = quill_send(socket, label, &out);
        }
        quill_release(&memory);
        if (status != QUILL_OK)
            return status == 1 ? QUILL_OK : status;
    }
}

/* --- references to objects: numbers in the table of the server that is called; none is 0 --- */

/* A request that says for which object those are that come after it. */
#define QUILL_SELECT 0xffff8000u

typedef struct quill_exported {
    quill_dispatch dispatch; /* none, once the object is withdrawn */
    const void *methods;
    void *self;
} quill_exported;

/* The objects that clients may call, whichever connection they have. One thread at a time uses it. */
typedef struct quill_objects {
    quill_exported *all;
    uint64_t count;
} quill_objects;

/* Takes an object into the table, and returns its number, which none had before; 0 if there is no memory. */
static inline uint64_t quill_export(quill_objects *objects, quill_dispatch dispatch, const void *methods, void *self)
{
    quill_exported *all = objects->all;
    uint64_t count = objects->count;

    /* Room for a power of two. */
    if ((count & (count - 1)) == 0) {
        all = realloc(all, (size_t)(count == 0 ? 1 : 2 * count) * sizeof *all);
        if (all == NULL)
            return 0;
        objects->all = all;
    }
    all[count] = (quill_exported){ dispatch, methods, self };
    return ++objects->count;
}

/* Takes an object out of the table. A request for it that nobody waits for may be under way no more. */
static inline void quill_withdraw(quill_objects *objects, uint64_t object)
{
    if (object != 0 && object <= objects->count)
        objects->all[object - 1].dispatch = NULL;
}

/* A connection: who serves it, and which object it is for now and was in the beginning. */
typedef struct quill_connection {
    const quill_objects *objects;
    uint64_t root;
    uint64_t selected;
} quill_connection;

static inline uint32_t quill_dispatch_selected(const void *unused, void *connection, uint32_t label, quill_in *in,
                                               quill_out *out, bool *silent)
{
    quill_connection *to = connection;
    uint64_t object = to->selected;
    quill_exported found = { NULL, NULL, NULL };

    (void)unused;
    if (label == QUILL_SELECT) {
        object = quill_get_u64(in);
        quill_get_end(in);
        if (in->failed)
            return QUILL_MALFORMED;
        if (object == 0)
            object = to->root;
    }
    if (object != 0 && object <= to->objects->count)
        found = to->objects->all[object - 1];
    if (found.dispatch == NULL)
        return QUILL_NO_OBJECT;
    if (label == QUILL_SELECT) {
        to->selected = object;
        return QUILL_OK;
    }
    return found.dispatch(found.methods, found.self, label, in, out, silent);
}

/* Serves one connection until the client closes it: first for `root`, later for whichever object the client selects. */
static inline quill_status quill_serve_objects(int socket, const quill_objects *objects, uint64_t root)
{
    quill_connection to = { objects, root, root };
    return quill_serve(socket, quill_dispatch_selected, NULL, &to);
}

/* Says for which object of a server the requests are that follow; 0 is for the one that the connection began with. */
static inline quill_status quill_select(quill_client *client, uint64_t object)
{
    quill_out out = { NULL, 0, 0, QUILL_OK, 0 };
    quill_in in;
    uint32_t label;
    quill_status status;

    quill_put_u64(&out, object);
    status = quill_call(client, QUILL_SELECT, &out, &label, &in);
    return status == QUILL_OK ? label : status;
}

#endif
