#ifndef QUILL_LINUX_WAY_H
#define QUILL_LINUX_WAY_H

/* Texts in messages, and the way of messages over a Unix-domain socket. */

/* Characters of a text, or SIZE_MAX if it is none. Most are ASCII, and looked at in words of eight bytes, the last of which may overlap the one before. */
static inline size_t quill_characters_in(const char *text, size_t bytes)
{
    const uint64_t beyond_ascii = 0x8080808080808080u;
    size_t at = 0, more;
    uint64_t word;

    for (; bytes - at >= sizeof word; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        if ((word & beyond_ascii) != 0)
            break;
    }
    if (at > 0 && bytes - at < sizeof word) {
        memcpy(&word, text + bytes - sizeof word, sizeof word);
        if ((word & beyond_ascii) == 0)
            return bytes;
    }
    more = quill_characters_and(true, text + at, bytes - at);
    return more == SIZE_MAX ? SIZE_MAX : at + more;
}

/* Refuses text that is no UTF-8, or has more characters than its type allows. */
static inline void quill_check_text(quill_out *out, const char *text, uint64_t bound)
{
    size_t bytes = quill_bytes_of(text);
    size_t count = bytes == 0 ? 0 : quill_characters_in(text, bytes);
    if (count > bound)
        quill_fail(out, QUILL_TOO_LONG);
}

/* Refuses counted text of that kind. What is longer than it may be is not looked at. */
static inline void quill_check_counted(quill_out *out, const char *text, size_t bytes, uint64_t bound)
{
    if (bytes > QUILL_BODY_BYTES_MAX || bytes / 4 > bound)
        quill_fail(out, QUILL_TOO_LONG);
    else if (bytes > 0 && quill_characters_in(text, bytes) > bound)
        quill_fail(out, QUILL_TOO_LONG);
}

static inline void quill_put_text(quill_out *out, const char *text)
{
    quill_put(out, text, quill_bytes_of(text));
}

static inline void quill_put_string(quill_out *out, const char *text)
{
    quill_put_u32(out, (uint32_t)quill_bytes_of(text));
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
    count = quill_characters_in((const char *)from, bytes);
    if (count == SIZE_MAX || count > bound || memchr(from, 0, bytes) != NULL)
        in->failed = true;
    return text;
}

/* Counted text where it has arrived, without a zero behind it. A zero within it is a character like any other. */
static inline char *quill_get_counted_text(quill_in *in, uint32_t bytes, uint64_t bound)
{
    const uint8_t *from = quill_take(in, bytes);
    size_t count = from == NULL ? 0 : quill_characters_in((const char *)from, bytes);

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

/* Reads until `*have` bytes are `count` or more, as many as have come and the room holds; 1 when the other side has closed before the first. */
static inline quill_status quill_read(int socket, uint8_t *bytes, size_t room, size_t count, size_t *have)
{
    while (*have < count) {
        ssize_t done = recv(socket, bytes + *have, room - *have, 0);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done == 0 && *have == 0 ? 1 : QUILL_IO;
        *have += (size_t)done;
    }
    return QUILL_OK;
}

/* Reads so many bytes; 1 when the other side has closed before the first. */
static inline quill_status quill_read_all(int socket, uint8_t *bytes, size_t count)
{
    size_t have = 0;
    return quill_read(socket, bytes, count, count, &have);
}

/* Reads so many bytes, for which there is no memory. */
static inline quill_status quill_pass_over(int socket, uint8_t *scratch, size_t room, size_t count)
{
    while (count > 0) {
        size_t part = count < room ? count : room;
        if (quill_read_all(socket, scratch, part) != QUILL_OK)
            return QUILL_IO;
        count -= part;
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
    quill_discard(out);
    return status;
}

/* A message of up to so many bytes, its header included, is taken in by one receive. */
#define QUILL_ARRIVALS_BYTES 4224

/* Bytes that have come on a connection, and belong to requests that nobody has looked at yet. */
typedef struct quill_arrivals {
    int socket;
    size_t begin, end;
    uint8_t bytes[QUILL_ARRIVALS_BYTES];
} quill_arrivals;

/* Waits until so many bytes are there, in one piece; 1 when the other side has closed before the first. */
static inline quill_status quill_await(quill_arrivals *from, size_t count)
{
    size_t have = from->end - from->begin;
    quill_status status;

    if (have == 0)
        from->begin = 0;
    if (count > sizeof from->bytes - from->begin) {
        memmove(from->bytes, from->bytes + from->begin, have);
        from->begin = 0;
    }
    status = quill_read(from->socket, from->bytes + from->begin, sizeof from->bytes - from->begin, count, &have);
    from->end = from->begin + have;
    return status;
}

/* The body of a message that is longer than what is taken in at once. */
static inline quill_status quill_next_long(quill_arrivals *from, quill_memory *memory, uint32_t length, quill_in *in)
{
    uint8_t *bytes = quill_allocate(memory, (size_t)length + 1), *here = from->bytes + from->begin + QUILL_HEADER;
    size_t have = from->end - from->begin - QUILL_HEADER;

    from->begin = from->end = 0;
    if (bytes == NULL) {
        *in = quill_begin_starved(memory);
        return quill_pass_over(from->socket, from->bytes, sizeof from->bytes, length - have);
    }
    memcpy(bytes, here, have);
    *in = quill_begin_in(bytes, length, memory);
    return quill_read_all(from->socket, bytes + have, length - have) == QUILL_OK ? QUILL_OK : QUILL_IO;
}

/* Receives the next request, which stays until the one after it; 1 when there is none any more. One for which there is no memory is read as one that is
 * wrong. */
static inline quill_status quill_next(quill_arrivals *from, quill_memory *memory, uint32_t *label, quill_in *in)
{
    uint32_t length;
    quill_status status = quill_await(from, QUILL_HEADER);

    if (status != QUILL_OK)
        return status;
    memcpy(label, from->bytes + from->begin, 4);
    memcpy(&length, from->bytes + from->begin + 4, 4);
    if (length > QUILL_BODY_BYTES_MAX)
        return QUILL_MALFORMED;
    if (length > sizeof from->bytes - QUILL_HEADER)
        return quill_next_long(from, memory, length, in);
    status = quill_await(from, QUILL_HEADER + (size_t)length);
    *in = quill_begin_in(from->bytes + from->begin + QUILL_HEADER, length, memory);
    from->begin += status == QUILL_OK ? QUILL_HEADER + (size_t)length : 0;
    return status;
}

/* Receives a reply into memory. Nothing follows it before the next request, so a receive may bring all of it; 1 when the other side has closed. */
static inline quill_status quill_receive_reply(int socket, quill_memory *memory, uint32_t *label, quill_in *in)
{
    uint8_t come[QUILL_ARRIVALS_BYTES], *bytes;
    size_t have = 0;
    uint32_t length;
    quill_status status = quill_read(socket, come, sizeof come, QUILL_HEADER, &have);

    if (status != QUILL_OK)
        return status;
    memcpy(label, come, 4);
    memcpy(&length, come + 4, 4);
    have -= QUILL_HEADER;
    if (length > QUILL_BODY_BYTES_MAX || have > length)
        return QUILL_MALFORMED;
    *in = quill_begin_in((const uint8_t *)"", 0, memory);
    if (length == 0)
        return QUILL_OK;
    bytes = quill_allocate(memory, (size_t)length + 1);
    if (bytes == NULL) {
        *in = quill_begin_starved(memory);
        return quill_pass_over(socket, come, sizeof come, length - have);
    }
    memcpy(bytes, come + QUILL_HEADER, have);
    *in = quill_begin_in(bytes, length, memory);
    return quill_read_all(socket, bytes + have, length - have) == QUILL_OK ? QUILL_OK : QUILL_IO;
}

/* Receives a message into memory, and nothing of what comes behind it; 1 when there is none any more. */
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
    *in = quill_begin_in(bytes, length, memory);
    return QUILL_OK;
}

/* Sends a request and waits for the reply. */
static inline quill_status quill_call(quill_client *client, uint32_t request, quill_out *out, uint32_t *label,
                                      quill_in *in)
{
    quill_status status = quill_send(client->socket, request, out);
    quill_release(&client->memory);
    if (status == QUILL_OK)
        status = quill_receive_reply(client->socket, &client->memory, label, in);
    return status == 1 ? QUILL_IO : status;
}

/* All that the last call has brought, which the next one leaves alone then: the program gives it back by `quill_release`. Nothing, if it lies in a room that the
 * program has brought: there it stays until the room is used again. */
static inline quill_memory quill_keep(quill_client *client)
{
    quill_memory kept = { NULL };

    if (quill_room_of(&client->memory) == NULL) {
        kept.first = client->memory.first;
        client->memory.first = NULL;
    }
    return kept;
}

/* Tells a server of a context handle that nobody will close, since its client is gone. */
typedef void (*quill_rundown)(void *self, uint64_t handle);

typedef struct quill_context {
    uint64_t handle, kind; /* `kind` says of which type it is */
    void *self;
    quill_rundown rundown; /* none, if the server does not want to know */
} quill_context;

/* Context handles that a client has open. */
typedef struct quill_contexts {
    quill_context *all;
    size_t count, room;
} quill_contexts;

static inline quill_context *quill_find_context(const quill_contexts *contexts, const void *self, uint64_t kind,
                                                uint64_t handle)
{
    for (size_t i = 0; i < contexts->count; i++) {
        quill_context *one = &contexts->all[i];
        if (one->handle == handle && one->kind == kind && one->self == self)
            return one;
    }
    return NULL;
}

/* Whether a request may have that handle: it is open, or none, or nobody keeps a table. */
static inline bool quill_has_context(const quill_in *in, const void *self, uint64_t kind, uint64_t handle)
{
    return handle == 0 || in->contexts == NULL || quill_find_context(in->contexts, self, kind, handle) != NULL;
}

/* A method was given one handle, and gave back another one: the first is closed, the second open. What finds no room in the table is
 * closed at once. */
static inline bool quill_change_context(const quill_in *in, quill_context now, uint64_t before)
{
    quill_contexts *contexts = in->contexts;
    quill_context *one;

    if (contexts == NULL || now.handle == before)
        return true;
    one = quill_find_context(contexts, now.self, now.kind, before);
    if (one != NULL)
        *one = contexts->all[--contexts->count];
    if (now.handle == 0 || quill_find_context(contexts, now.self, now.kind, now.handle) != NULL)
        return true;
    if (contexts->count == contexts->room) {
        size_t room = contexts->room == 0 ? 8 : 2 * contexts->room;
        quill_context *all = room > SIZE_MAX / sizeof *all ? NULL : realloc(contexts->all, room * sizeof *all);
        if (all == NULL) {
            if (now.rundown != NULL)
                now.rundown(now.self, now.handle);
            return false;
        }
        contexts->all = all;
        contexts->room = room;
    }
    contexts->all[contexts->count++] = now;
    return true;
}

/* The end of a client. */
static inline void quill_run_down(quill_contexts *contexts)
{
    while (contexts->count > 0) {
        quill_context one = contexts->all[--contexts->count];
        if (one.rundown != NULL)
            one.rundown(one.self, one.handle);
    }
    free(contexts->all);
    *contexts = (quill_contexts){ 0 };
}

/* Answers a request: leaves the reply in `out` and returns its label; `*silent` if there is none. */
typedef uint32_t (*quill_dispatch)(const void *methods, void *self, uint32_t label, quill_in *in, quill_out *out,
                                   bool *silent);

/* Serves one connection until the client closes it, or it fails; then context handles that are still open are run down. All that a request brings, and what methods
 * allocate for its reply, lies in that memory, which is given back behind each reply. */
static inline quill_status quill_serve_with(int socket, quill_dispatch dispatch, const void *methods, void *self,
                                            quill_memory *memory)
{
    quill_contexts contexts = { 0 };
    quill_arrivals from;

    from.socket = socket;
    from.begin = from.end = 0;
    for (;;) {
        quill_out out = { 0 };
        quill_in in;
        uint32_t label;
        bool silent = false;
        quill_status status = quill_next(&from, memory, &label, &in);

        if (status == QUILL_OK) {
            in.contexts = &contexts;
            label = dispatch(methods, self, label, &in, &out, &silent);
            if (silent)
                quill_discard(&out);
            else
                status = quill_send(socket, label, &out);
        }
        quill_release(memory);
        if (status != QUILL_OK) {
            quill_run_down(&contexts);
            return status == 1 ? QUILL_OK : status;
        }
    }
}

/* Serves one connection so, with memory of the heap. */
static inline quill_status quill_serve(int socket, quill_dispatch dispatch, const void *methods, void *self)
{
    quill_memory memory = { NULL };

    return quill_serve_with(socket, dispatch, methods, self, &memory);
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
    quill_out out = { 0 };
    quill_in in;
    uint32_t label;
    quill_status status;

    quill_put_u64(&out, object);
    status = quill_call(client, QUILL_SELECT, &out, &label, &in);
    return status == QUILL_OK ? label : status;
}

#endif
