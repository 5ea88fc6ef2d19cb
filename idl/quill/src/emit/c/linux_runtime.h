#ifndef QUILL_LINUX_WAY_H
#define QUILL_LINUX_WAY_H

/* Texts in messages, and the way of messages over a Unix-domain socket. */

/* Sixteen bytes that are looked at together. */
typedef uint8_t quill_block __attribute__((vector_size(16)));

/* GCC 12 takes the last block, which lies at a place that it does not know, for one beyond the message. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/* Notes the bytes of a block, and those that are zero if none may be. */
static inline __attribute__((always_inline)) void quill_look(quill_block *seen, const char *at, bool zeros)
{
    quill_block block;

    memcpy(&block, at, sizeof block);
    *seen |= zeros ? block : block | (quill_block)(block == (quill_block){ 0 });
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/* Whether a text of 16 bytes or more is ASCII, and has no zero where none may be. The last blocks may overlap those before. */
static inline __attribute__((always_inline)) bool quill_is_ascii(const char *text, size_t bytes, bool zeros)
{
    const char *at = text, *end = text + bytes;
    quill_block seen = { 0 };
    uint64_t halves[2];

    for (; end - at >= 64; at += 64) {
        quill_look(&seen, at, zeros);
        quill_look(&seen, at + 16, zeros);
        quill_look(&seen, at + 32, zeros);
        quill_look(&seen, at + 48, zeros);
    }
    if (end - at >= 32) {
        quill_look(&seen, at, zeros);
        quill_look(&seen, at + 16, zeros);
    }
    quill_look(&seen, bytes < 32 ? text : end - 32, zeros);
    quill_look(&seen, end - 16, zeros);
    memcpy(halves, &seen, sizeof halves);
    return ((halves[0] | halves[1]) & 0x8080808080808080u) == 0;
}

/* Characters of a text, or SIZE_MAX if it is none, or has a zero where none may be. */
static inline __attribute__((always_inline)) size_t quill_characters_with(const char *text, size_t bytes, bool zeros)
{
    return bytes >= 16 && quill_is_ascii(text, bytes, zeros) ? bytes : quill_characters_and(zeros, text, bytes);
}

static inline size_t quill_characters_in(const char *text, size_t bytes)
{
    return quill_characters_with(text, bytes, true);
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
    char *text = quill_get_raw(in, bytes, 1, 1);
    const uint8_t *from = quill_take(in, bytes);
    size_t count;

    if (text == NULL || from == NULL)
        return NULL;
    memcpy(text, from, bytes);
    text[bytes] = 0;
    count = quill_characters_with(text, bytes, false);
    if (count == SIZE_MAX || count > bound)
        in->failed = true;
    return text;
}

/* Counted text where it has arrived, if it stays there, without a zero behind it. A zero within it is a character like any other. */
static inline char *quill_get_counted_text(quill_in *in, uint32_t bytes, uint64_t bound)
{
    char *copy = in->passing ? quill_get_raw(in, bytes, 1, 1) : NULL;
    const uint8_t *from = quill_take(in, bytes);
    size_t count = from == NULL ? 0 : quill_characters_in((const char *)from, bytes);

    if (count == SIZE_MAX || count > bound)
        in->failed = true;
    if (!in->passing)
        return (char *)(uintptr_t)from;
    return copy == NULL || from == NULL ? NULL : memcpy(copy, from, bytes);
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

/* Writes so many bytes, of which there are some. */
static inline quill_status quill_write_all(int socket, const uint8_t *bytes, size_t count)
{
    for (;;) {
        ssize_t done = send(socket, bytes, count, MSG_NOSIGNAL);
        if (done == (ssize_t)count)
            return QUILL_OK;
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return QUILL_IO;
        bytes += done;
        count -= (size_t)done;
    }
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
static inline quill_status quill_pass_over(int socket, size_t count)
{
    uint8_t scratch[512];

    while (count > 0) {
        size_t part = count < sizeof scratch ? count : sizeof scratch;
        if (quill_read_all(socket, scratch, part) != QUILL_OK)
            return QUILL_IO;
        count -= part;
    }
    return QUILL_OK;
}

/* Memory for a body before its bytes have come, at most. */
#define QUILL_CLAIMED_BYTES_MAX (64u << 10)

/* A body of that length, of which the first bytes are there already, in memory. It is taken from the heap for what comes, not for what is claimed: in steps, each as
 * large as all before it. A room is there in any case. */
static __attribute__((noinline, unused)) quill_status quill_read_body(int socket, quill_memory *memory, const uint8_t *here,
                                                                    size_t have, uint32_t length, quill_in *in)
{
    size_t room = length > QUILL_CLAIMED_BYTES_MAX && quill_room_of(memory) == NULL ? QUILL_CLAIMED_BYTES_MAX : length;
    uint8_t *bytes = quill_enlarge(memory, NULL, room + 1);

    if (bytes != NULL && have > 0)
        memcpy(bytes, here, have);
    while (bytes != NULL) {
        if (quill_read_all(socket, bytes + have, room - have) != QUILL_OK)
            return QUILL_IO;
        have = room;
        if (room == length) {
            quill_begin(in, bytes, length, memory);
            return QUILL_OK;
        }
        room = length - room < room ? length : 2 * room;
        bytes = quill_enlarge(memory, bytes, room + 1);
    }
    *in = quill_begin_starved(memory);
    return quill_pass_over(socket, length - have);
}

/* Sends a message and forgets it. */
static inline quill_status quill_send(int socket, uint32_t label, quill_out *out)
{
    quill_status status;

    if (out->bytes == NULL)
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
    const uint8_t *here = from->bytes + from->begin + QUILL_HEADER;
    size_t have = from->end - from->begin - QUILL_HEADER;

    from->begin = from->end = 0;
    return quill_read_body(from->socket, memory, here, have, length, in);
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
    quill_begin(in, from->bytes + from->begin + QUILL_HEADER, length, memory);
    from->begin += status == QUILL_OK ? QUILL_HEADER + (size_t)length : 0;
    return status;
}

/* A reply while a call reads it: in `bytes`, or if it is longer, in memory. */
typedef struct quill_come {
    quill_in in;
    const uint8_t *body;
    size_t length;
    uint8_t bytes[QUILL_ARRIVALS_BYTES];
} quill_come;

/* Begins to read a reply. Apart from its receipt, so that a compiler sees in each stub where it begins. */
static inline __attribute__((always_inline)) void quill_open(quill_come *come, quill_memory *memory)
{
    quill_begin(&come->in, come->body, come->length, memory);
    come->in.passing = come->body == come->bytes + QUILL_HEADER;
}

/* Receives a reply where it is read, or into memory if it is longer, and returns its label, or how that failed. Nothing follows it before the next request, so a receive
 * may bring all of it. */
static inline quill_status quill_receive_reply(int socket, quill_memory *memory, quill_come *come)
{
    size_t have = 0;
    uint32_t label, length;
    quill_status status = quill_read(socket, come->bytes, sizeof come->bytes, QUILL_HEADER, &have);

    if (status != QUILL_OK)
        return QUILL_IO;
    memcpy(&label, come->bytes, 4);
    memcpy(&length, come->bytes + 4, 4);
    have -= QUILL_HEADER;
    if (have > length)
        return QUILL_MALFORMED;
    if (QUILL_WATCHED || length > sizeof come->bytes - QUILL_HEADER) {
        if (length > QUILL_BODY_BYTES_MAX)
            return QUILL_MALFORMED;
        status = quill_read_body(socket, memory, come->bytes + QUILL_HEADER, have, length, &come->in);
        come->body = come->in.bytes;
        come->length = length;
        return status != QUILL_OK ? status : come->in.starved ? QUILL_MEMORY : label;
    }
    come->body = come->bytes + QUILL_HEADER;
    come->length = length;
    if (have < length && quill_read_all(socket, come->bytes + QUILL_HEADER + have, length - have) != QUILL_OK)
        return QUILL_IO;
    return label;
}

/* Receives a message into memory, and nothing of what comes behind it; 1 when there is none any more. */
static inline quill_status quill_receive(int socket, quill_memory *memory, uint32_t *label, quill_in *in)
{
    uint8_t header[QUILL_HEADER];
    uint32_t length;
    quill_status status = quill_read_all(socket, header, sizeof header);

    if (status != QUILL_OK)
        return status;
    memcpy(label, header, 4);
    memcpy(&length, header + 4, 4);
    if (length > QUILL_BODY_BYTES_MAX)
        return QUILL_MALFORMED;
    status = quill_read_body(socket, memory, NULL, 0, length, in);
    return status == QUILL_OK && in->starved ? QUILL_MEMORY : status;
}

/* Sends a request and waits for the reply; returns its label, or how that failed. */
static inline quill_status quill_call(quill_client *client, uint32_t request, quill_out *out, quill_come *come)
{
    quill_status status;

    quill_reuse(&client->memory);
    status = quill_send(client->socket, request, out);
    return status == QUILL_OK ? quill_receive_reply(client->socket, &client->memory, come) : status;
}

/* All that the last call has brought, which the next one leaves alone then: the program gives it back by `quill_release`. Nothing, if it lies in a room that the
 * program has brought: there it stays until the room is used again. */
static inline quill_memory quill_keep(quill_client *client)
{
    struct quill_piece *first = client->memory.first;
    quill_memory kept = { NULL };

    if (first != NULL && first->room_bytes < QUILL_SPARE_PIECE) {
        kept.first = first;
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
        quill_out out;
        quill_in in;
        uint32_t label;
        bool silent = false;
        quill_status status = quill_next(&from, memory, &label, &in);

        if (status == QUILL_OK) {
            in.contexts = &contexts;
            label = dispatch(methods, self, label, &in, quill_begin_out(&out), &silent);
            if (silent)
                quill_discard(&out);
            else
                status = quill_send(socket, label, &out);
        }
        quill_reuse(memory);
        if (status != QUILL_OK) {
            quill_release(memory);
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
    quill_out out;
    quill_come come;

    quill_put_u64(quill_begin_out(&out), object);
    return quill_call(client, QUILL_SELECT, &out, &come);
}

#endif
