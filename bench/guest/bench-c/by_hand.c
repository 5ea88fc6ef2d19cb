/* Calls by tern.h alone, without stubs, between two programs in C: a message and its answer, and a call through a door. Each side counts in
 * a thread-local number of type double (see bench.c), and the answer brings the server's count, which the client holds against its own. */

#include "by_hand.h"

#include <system.h>
#include <threads.h>

#define NAME "by-hand"

enum { ITERATIONS = 160 };

/* The door's number with the server, and its client's. */
enum { OBJECT = 3, PLACE = 4 };

#define MARK(kind, region) \
    __asm__ volatile(".byte 0x0f, 0x1f, 0x80, %c0, %c1, 0x4e, 0x7e" : : "i"(kind), "i"(region) : "memory")

static _Thread_local double done;

void count_by_hand(struct tern_message *message)
{
    done += 1.0;
    message->label = TERN_OK;
    message->words[0] = (uint64_t)(int64_t)done;
}

TERN_DOOR_ENTRY(count_entry, count_by_hand);

static int serve_door(void *nothing)
{
    (void)nothing;
    return tern_door_serve();
}

/* Answers the client's first message with an identifier of the door. */
static int hand_over(void)
{
    struct tern_message message = { 0 };
    uint64_t forever = TERN_TIMEOUTS(TERN_NEVER, TERN_NEVER);

    if (tern_ipc(&message, 0, TERN_ANY, 0, forever) != TERN_OK)
        return 0;
    message.words[6] = TERN_FPAGE_DOORS(OBJECT, 0, TERN_R | TERN_W);
    message.words[7] = 0;
    return tern_ipc(&message, TERN_ITEM, TERN_NIL, 0, forever) == TERN_OK;
}

int serve_by_hand(void)
{
    struct tern_message message = { .partner = TERN_NIL };
    thrd_t server;

    if (tern_door_create(OBJECT, count_entry, 0) != TERN_OK || thrd_create(&server, serve_door, NULL) != thrd_success ||
        System_Names_register(tern_home(), (uint8_t[16]){ NAME }) != QUILL_OK || !hand_over())
        return 1;
    for (;;) {
        if (tern_ipc_reply_wait(&message) == TERN_OK)
            count_by_hand(&message);
        else
            message.partner = TERN_NIL;
    }
}

static int get_door(tern_uid server)
{
    struct tern_message message = { .partner = server };
    tern_fpage window = TERN_FPAGE_DOORS(PLACE, 0, TERN_R | TERN_W);

    return tern_ipc(&message, 0, server, window, TERN_TIMEOUTS(TERN_NEVER, TERN_NEVER)) == TERN_OK;
}

static int call_server(tern_uid server)
{
    for (int left = ITERATIONS; left > 0; left--) {
        struct tern_message message = { .partner = server };

        MARK(1, 144);
        if (tern_ipc_call(&message) != TERN_OK)
            return 0;
        done += 1.0;
        MARK(2, 144);
        if ((double)(int64_t)message.words[0] != done)
            return 0;
    }
    return 1;
}

static int call_door(void)
{
    done = 0.0;
    for (int left = ITERATIONS; left > 0; left--) {
        struct tern_message message = { .partner = PLACE };

        MARK(1, 145);
        if (tern_ipc_raw(TERN_DOOR_CALL, &message, 0, 0, 0) != TERN_OK)
            return 0;
        done += 1.0;
        MARK(2, 145);
        if ((double)(int64_t)message.words[0] != done)
            return 0;
    }
    return 1;
}

int call_by_hand(void)
{
    tern_uid server = find_server(NAME);

    return get_door(server) && call_server(server) && call_door() ? 0 : 1;
}
