/* A client and a server in C that count how often they ask the system and the heap, and what memory is for that the program brings.
 *
 * `receives` alone is the whole test. The interface stands in `sockets.rs`. */

#include "check.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int32_t all_sends, all_receives, all_pieces;
/* The most bytes that were asked for at once. */
static size_t most_bytes;

static ssize_t counted_send(int end, const void *bytes, size_t count, int flags)
{
    all_sends++;
    return send(end, bytes, count, flags);
}

static ssize_t counted_recv(int end, void *bytes, size_t count, int flags)
{
    all_receives++;
    return recv(end, bytes, count, flags);
}

static void *counted_malloc(size_t bytes)
{
    all_pieces++;
    most_bytes = bytes > most_bytes ? bytes : most_bytes;
    return malloc(bytes);
}

static void *counted_realloc(void *before, size_t bytes)
{
    all_pieces++;
    most_bytes = bytes > most_bytes ? bytes : most_bytes;
    return realloc(before, bytes);
}

#define send counted_send
#define recv counted_recv
#define malloc counted_malloc
#define realloc counted_realloc
#include "desk.h"
#undef send
#undef recv
#undef malloc
#undef realloc

/* --- the server answers with what it was given --- */

static int32_t noted;

static quill_status add(void *self, quill_memory *memory, int32_t a, int32_t b, int32_t *result)
{
    (void)self, (void)memory;
    *result = a + b + noted;
    return QUILL_OK;
}

static quill_status echo(void *self, quill_memory *memory, const char *s, char **result)
{
    (void)self, (void)memory;
    *result = (char *)(uintptr_t)s;
    return QUILL_OK;
}

static quill_status turn(void *self, quill_memory *memory, const sequence_uint8_t *b, sequence_uint8_t *result)
{
    (void)self, (void)memory;
    *result = *b;
    return QUILL_OK;
}

static quill_status both(void *self, quill_memory *memory, const sequence_string *n, sequence_string *result)
{
    (void)self, (void)memory;
    *result = *n;
    return QUILL_OK;
}

static quill_status note(void *self, quill_memory *memory, int32_t a)
{
    (void)self, (void)memory;
    noted += a;
    return QUILL_OK;
}

/* The next request finds no piece that it could use again. */
static quill_status spent(void *self, quill_memory *memory, int32_t *s, int32_t *r, int32_t *p)
{
    (void)self;
    quill_release(memory);
    *s = all_sends;
    *r = all_receives;
    *p = all_pieces;
    return QUILL_OK;
}

static const Desk_server methods = { add, echo, turn, both, note, spent };

/* A server in a process of its own, with a room for what requests bring, if it has any bytes; the other end of the connection. */
static int served(size_t room_bytes)
{
    static uint8_t room[65536];
    int ends[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && room_bytes <= sizeof room);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        quill_memory memory = { NULL };
        close(ends[0]);
        CHECK(room_bytes == 0 || quill_bring(&memory, room, room_bytes));
        exit(quill_serve_with(ends[1], Desk_dispatch, &methods, NULL, &memory) == QUILL_OK ? 0 : 1);
    }
    close(ends[1]);
    return ends[0];
}

/* Closes the connection; the server has ended well. */
static void end(int connection)
{
    int code = 1;

    close(connection);
    CHECK(wait(&code) > 0 && code == 0);
}

struct spent {
    int32_t sends, receives, pieces;
};

static struct spent spent_by_server(quill_client *client)
{
    struct spent by = { 0, 0, 0 };

    CHECK(Desk_spent(client, &by.sends, &by.receives, &by.pieces) == QUILL_OK);
    return by;
}

/* --- tests --- */

static uint8_t bytes[20000];

/* A call asks for one send, one receive, and so many pieces, on both sides. */
#define ASKS(client_pieces, server_pieces, call)                                                 \
    do {                                                                                         \
        struct spent before = spent_by_server(&client), after;                                   \
        int32_t sent = all_sends, received = all_receives, taken = all_pieces;                    \
        quill_release(&client.memory);                                                           \
        CHECK(call);                                                                             \
        CHECK(all_sends - sent == 1 && all_receives - received == 1);                            \
        taken = all_pieces - taken;                                                              \
        after = spent_by_server(&client);                                                        \
        /* The first of the two that ask is answered between them. */                            \
        CHECK(after.sends - before.sends == 2 && after.receives - before.receives == 2);         \
        after.pieces -= before.pieces;                                                           \
        /* Where a sanitizer watches, the reply is a piece, too. */                              \
        taken -= QUILL_WATCHED;                                                                  \
        if (taken != (client_pieces) || after.pieces != (server_pieces))                         \
            fprintf(stderr, "%s: %d and %d pieces\n", #call, (int)taken, (int)after.pieces);     \
        CHECK(taken == (client_pieces) && after.pieces == (server_pieces));                      \
    } while (0)

static void calls_are_counted(void)
{
    quill_client client = { served(0), { NULL } };
    char *names[3] = { (char *)(uintptr_t) "a", (char *)(uintptr_t) "bc", (char *)(uintptr_t) "def" }, *text = NULL;
    sequence_uint8_t few = { 100, bytes }, page = { 4096, bytes }, got = { 0, NULL };
    sequence_string all = { 3, names }, same = { 0, NULL };
    int32_t sum = 0;

    ASKS(PIECES_ADD_CLIENT, PIECES_ADD_SERVER, Desk_add(&client, 3, 4, &sum) == QUILL_OK && sum == 7);
    ASKS(PIECES_ECHO_CLIENT, PIECES_ECHO_SERVER,
         Desk_echo(&client, "a text of some length", &text) == QUILL_OK && strcmp(text, "a text of some length") == 0);
    ASKS(PIECES_TURN_CLIENT, PIECES_TURN_SERVER, Desk_turn(&client, &few, &got) == QUILL_OK && got._length == 100);
    ASKS(PIECES_BOTH_CLIENT, PIECES_BOTH_SERVER,
         Desk_both(&client, &all, &same) == QUILL_OK && same._length == 3 && strcmp(same._buffer[2], "def") == 0);
    /* Longer messages are made on the heap, on both sides. */
    ASKS(PIECES_TURN_CLIENT + 1, PIECES_TURN_SERVER + 1,
         Desk_turn(&client, &page, &got) == QUILL_OK && got._length == 4096 && memcmp(got._buffer, bytes, 4096) == 0);
    quill_release(&client.memory);
    end(client.socket);
}

/* A single short piece is used again by the next call, on both sides, unless the program keeps it or wants all given back. */
static void short_pieces_are_used_again(void)
{
    quill_client client = { served(0), { NULL } };
    char *text = NULL, *next = NULL;
    static char longer[400];
    sequence_uint8_t few = { 100, bytes }, got = { 0, NULL };
    int32_t sum = 0, taken, there;

    memset(longer, 'x', sizeof longer - 1);
    CHECK(Desk_echo(&client, "one", &text) == QUILL_OK);
    if (QUILL_WATCHED) {
        quill_release(&client.memory);
        end(client.socket);
        return;
    }
    taken = all_pieces;
    for (int i = 0; i < 10; i++)
        CHECK(Desk_echo(&client, "another", &text) == QUILL_OK && strcmp(text, "another") == 0);
    CHECK(Desk_add(&client, 1, 2, &sum) == QUILL_OK && Desk_turn(&client, &few, &got) == QUILL_OK);
    CHECK(memcmp(got._buffer, bytes, 100) == 0 && all_pieces == taken);
    quill_memory kept = quill_keep(&client);
    CHECK(kept.first != NULL && Desk_echo(&client, "next", &next) == QUILL_OK);
    CHECK(all_pieces == taken + 1 && memcmp(got._buffer, bytes, 100) == 0 && strcmp(next, "next") == 0);
    CHECK(Desk_add(&client, 1, 2, &sum) == QUILL_OK && quill_keep(&client).first == NULL);
    CHECK(Desk_echo(&client, longer, &text) == QUILL_OK && strcmp(text, longer) == 0 && all_pieces == taken + 3);
    quill_release(&kept);
    quill_release(&client.memory);
    CHECK(client.memory.first == NULL);
    there = spent_by_server(&client).pieces;
    for (int i = 0; i < 10; i++)
        CHECK(Desk_echo(&client, "and back", &text) == QUILL_OK);
    CHECK(spent_by_server(&client).pieces == there + 1);
    quill_release(&client.memory);
    end(client.socket);
}

static void long_messages_arrive(void)
{
    quill_client client = { served(0), { NULL } };
    sequence_uint8_t got = { 0, NULL };

    for (uint32_t length = 4190; length < 4230; length++) {
        sequence_uint8_t list = { length, bytes };
        CHECK(Desk_turn(&client, &list, &got) == QUILL_OK && got._length == length);
        CHECK(memcmp(got._buffer, bytes, length) == 0);
    }
    sequence_uint8_t list = { sizeof bytes, bytes };
    CHECK(Desk_turn(&client, &list, &got) == QUILL_OK && got._length == sizeof bytes);
    CHECK(memcmp(got._buffer, bytes, sizeof bytes) == 0);
    quill_release(&client.memory);
    end(client.socket);
}

/* A request as a server sees it: label, length, body. */
static size_t request(uint8_t *to, uint32_t label, const int32_t *numbers, uint32_t count)
{
    uint32_t length = count * 4;

    memcpy(to, &label, 4);
    memcpy(to + 4, &length, 4);
    memcpy(to + 8, numbers, length);
    return 8 + length;
}

/* Requests are told apart wherever the connection cuts them: many at once, and byte by byte. */
static void requests_are_told_apart(void)
{
    static uint8_t sent[800 * 16 + 64];
    /* A body is padded to words of eight bytes. */
    const int32_t one[2] = { 1, 0 }, numbers[2] = { 10, 20 };
    int socket = served(0);
    size_t length = 0;

    for (int turn = 0; turn < 800; turn++)
        length += request(sent + length, 4, one, 2);
    length += request(sent + length, 0, numbers, 2);
    for (int turn = 0; turn < 2; turn++) {
        quill_memory memory = { NULL };
        quill_in in;
        uint32_t label = 9;
        int32_t sum = 0;

        if (turn == 0)
            CHECK(send(socket, sent, length, 0) == (ssize_t)length);
        else
            for (size_t at = 0; at < length; at++)
                CHECK(send(socket, sent + at, 1, 0) == 1);
        CHECK(quill_receive(socket, &memory, &label, &in) == QUILL_OK && label == 0 && in.length == 8);
        memcpy(&sum, in.bytes, 4);
        CHECK(sum == 30 + 800 * (turn + 1));
        quill_release(&memory);
    }
    end(socket);
}

/* A server that answers more than was asked, or not enough, is not believed. */
static void replies_are_one_message(void)
{
    const int32_t sum[2] = { 7, 0 };
    uint8_t reply[32];
    size_t whole = request(reply, 0, sum, 2);

    for (size_t length = 0; length <= whole + 3; length++) {
        int ends[2];
        int32_t got = 0;

        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        quill_client client = { ends[0], { NULL } };
        CHECK(send(ends[1], reply, length, 0) == (ssize_t)length);
        shutdown(ends[1], SHUT_WR);
        quill_status status = Desk_add(&client, 3, 4, &got);
        CHECK(status == (length < whole ? QUILL_IO : length == whole ? QUILL_OK : QUILL_MALFORMED));
        quill_release(&client.memory);
        close(ends[0]);
        close(ends[1]);
    }
}

/* A header that claims the longest body there is takes no more memory than has come, and as much again, whoever reads it. */
static void claims_are_not_believed(void)
{
    static uint8_t sent[8 + 150000];
    const uint32_t claimed = QUILL_BODY_BYTES_MAX;
    const size_t lengths[] = { 8, 9, 5000, 100000, sizeof sent };

    memcpy(sent + 4, &claimed, 4);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        for (int reader = 0; reader < 3; reader++) {
            const size_t length = lengths[i];
            int ends[2], size = 1 << 20, sum;
            quill_memory memory = { NULL };
            quill_in in;
            uint32_t label;

            CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
            CHECK(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
            CHECK(send(ends[1], sent, length, 0) == (ssize_t)length);
            shutdown(ends[1], SHUT_WR);
            quill_client client = { ends[0], { NULL } };
            most_bytes = 0;
            if (reader == 0)
                CHECK(quill_serve(ends[0], Desk_dispatch, &methods, NULL) == QUILL_IO);
            else if (reader == 1)
                CHECK(Desk_add(&client, 3, 4, &sum) == QUILL_IO);
            else
                CHECK(quill_receive(ends[0], &memory, &label, &in) == QUILL_IO);
            CHECK(most_bytes > 0 && most_bytes <= 2 * length + (64 << 10) + 256);
            quill_release(&memory);
            quill_release(&client.memory);
            close(ends[0]);
            close(ends[1]);
        }
    }
}

/* All that a client gets lies in the room that it brings, and what has no place there is refused; the next call is none the worse. */
static void rooms_are_all_there_is(void)
{
    static uint8_t room[4096], other[4096];
    quill_client client = { served(0), { NULL } };
    sequence_uint8_t few = { 100, bytes }, many = { 4090, bytes }, most = { sizeof bytes, bytes }, got = { 0, NULL };
    char *text = NULL, *next = NULL;
    int32_t sum = 0, taken;

    CHECK(Desk_echo(&client, "on the heap", &text) == QUILL_OK);
    CHECK(!quill_bring(&client.memory, room, 8) && strcmp(text, "on the heap") == 0);
    CHECK(quill_bring(&client.memory, room + 3, sizeof room - 3));
    taken = all_pieces;
    CHECK(Desk_echo(&client, "in the room", &text) == QUILL_OK && strcmp(text, "in the room") == 0);
    CHECK((uint8_t *)text > room && (uint8_t *)text < room + sizeof room);
    CHECK(Desk_turn(&client, &few, &got) == QUILL_OK && got._buffer > room && got._buffer < room + sizeof room);
    CHECK((uintptr_t)got._buffer % 16 == 0);
    CHECK(taken == all_pieces);
    CHECK(Desk_turn(&client, &many, &got) == QUILL_MEMORY);
    CHECK(Desk_add(&client, 1, 2, &sum) == QUILL_OK && sum == 3);
    CHECK(Desk_turn(&client, &most, &got) == QUILL_MEMORY);
    CHECK(Desk_add(&client, 3, 2, &sum) == QUILL_OK && sum == 5);
    /* Another room for the next call, and this one keeps what it holds. */
    CHECK(Desk_echo(&client, "here", &text) == QUILL_OK && quill_keep(&client).first == NULL);
    CHECK(quill_bring(&client.memory, other, sizeof other));
    CHECK(Desk_echo(&client, "there", &next) == QUILL_OK && strcmp(text, "here") == 0 && strcmp(next, "there") == 0);
    end(client.socket);
}

/* A call has memory of its own, if the program says so. */
static void calls_have_memory_of_their_own(void)
{
    quill_client client = { served(0), { NULL } };
    char *text = NULL, *next = NULL;

    CHECK(Desk_echo(&client, "first", &text) == QUILL_OK);
    quill_memory kept = quill_keep(&client);
    CHECK(kept.first != NULL && client.memory.first == NULL);
    CHECK(Desk_echo(&client, "second", &next) == QUILL_OK);
    CHECK(strcmp(text, "first") == 0 && strcmp(next, "second") == 0);
    quill_release(&kept);
    quill_release(&client.memory);
    end(client.socket);
}

/* A server with a room for what requests bring takes nothing from the heap, and refuses what has no place there. */
static void servers_have_rooms(void)
{
    quill_client client = { served(1024), { NULL } };
    static char longer[2001];
    sequence_uint8_t many = { 3000, bytes }, most = { sizeof bytes, bytes }, got = { 0, NULL };
    char *text = NULL;
    int32_t sum = 0;
    struct spent before = spent_by_server(&client);

    memset(longer, 'x', sizeof longer - 1);
    CHECK(Desk_echo(&client, "short", &text) == QUILL_OK && strcmp(text, "short") == 0);
    CHECK(Desk_echo(&client, longer, &text) == QUILL_MEMORY);
    CHECK(Desk_turn(&client, &many, &got) == QUILL_MEMORY && Desk_turn(&client, &most, &got) == QUILL_MEMORY);
    CHECK(Desk_note(&client, 5) == QUILL_OK);
    CHECK(Desk_add(&client, 1, 2, &sum) == QUILL_OK && sum == 8);
    CHECK(spent_by_server(&client).pieces == before.pieces);
    quill_release(&client.memory);
    end(client.socket);
}

/* Texts are looked at in words, of which the last may overlap the one before. */
static void texts_are_looked_at(void)
{
    quill_client client = { served(0), { NULL } };
    char text[64], *got = NULL;

    for (size_t length = 0; length < 40; length++) {
        memset(text, 'x', sizeof text);
        text[length] = 0;
        CHECK(quill_characters_in(text, length) == length);
        CHECK(Desk_echo(&client, text, &got) == QUILL_OK && strcmp(got, text) == 0);
        for (size_t at = 0; at < length; at++) {
            text[at] = (char)0xff;
            CHECK(quill_characters_in(text, length) == SIZE_MAX && Desk_echo(&client, text, &got) == QUILL_MALFORMED);
            text[at] = 'x';
            if (at + 1 < length) {
                memcpy(text + at, "\xc3\x9f", 2);
                CHECK(quill_characters_in(text, length) == length - 1);
                CHECK(Desk_echo(&client, text, &got) == QUILL_OK && strcmp(got, text) == 0);
                memcpy(text + at, "xx", 2);
            }
        }
    }
    quill_release(&client.memory);
    end(client.socket);
}

int main(void)
{
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)chance();
    calls_are_counted();
    short_pieces_are_used_again();
    long_messages_arrive();
    requests_are_told_apart();
    replies_are_one_message();
    claims_are_not_believed();
    rooms_are_all_there_is();
    calls_have_memory_of_their_own();
    servers_have_rooms();
    texts_are_looked_at();
    return 0;
}
