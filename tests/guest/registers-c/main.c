/* A program in C whose partner, in every message that it sends, leaves nothing as the compiler wants it: see tests/guest/hostile, which starts this
 * program, and looks what it can see. Both are client and server of each other, by ipc, through doors, and through generated stubs of both. */

#include "registers.h"

#include <registers.h>
#include <fenv.h>
#include <threads.h>

enum { ROUNDS = 20 };

/* Labels of messages to the partner, which echoes those without. */
enum { ECHO, BEGIN, YOUR_TURN, SECOND };

/* --- servers --- */

static int serve(void *nothing)
{
    struct tern_message message = { .partner = TERN_NIL };

    (void)nothing;
    own_begins(2);
    while (tern_ipc_reply_wait(&message) == TERN_OK)
        answer(&message, "with the server");
    return 1;
}

static quill_status turn(void *self, tern_uid from, double number, double *result)
{
    (void)self, (void)from;
    own_is_as_it_was("with the server of a stub");
    *result = number * 1.0;
    show_secret();
    return QUILL_OK;
}

static const Registers_Echo_server methods = { turn };

Registers_Echo_SERVE(serve_stub, methods)

static int serve_by_stub(void *nothing)
{
    own_begins(3);
    serve_stub(nothing);
    return 1;
}

/* --- client --- */

static void call(tern_uid partner)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct tern_message message = { .label = ECHO, .partner = partner, .words = { 7, 8, 9, 10, 11, 12, 13, 14 } };
        double one = 1.5 * i, two = 2.5 * i, three = 3.5 * i, sum;

        show_secret();
        check(tern_ipc_call(&message) == TERN_OK && message.words[7] == 14, "words", "after a call");
        own_is_as_it_was("after a call");
        show_secret();
        check(tern_door_call(PARTNER, &message) == TERN_OK && message.words[7] == 14, "words", "after a call through a door");
        own_is_as_it_was("after a call through a door");
        show_secret();
        check(Registers_Echo_turn(partner, one, &sum) == QUILL_OK && sum == one, "a double", "after a stub");
        own_is_as_it_was("after a stub");
        show_secret();
        check(call_by_door(one, &sum) == 0 && sum == one, "a double", "after a stub for doors");
        own_is_as_it_was("after a stub for doors");
        check(two + three == 6.0 * i, "local doubles", "after all of them");
    }
}

static thrd_t start(thrd_start_t function)
{
    thrd_t thread;

    if (thrd_create(&thread, function, NULL) != thrd_success)
        exit(3);
    return thread;
}

int main(void)
{
    tern_uid partner = tern_resolve("hostile");
    uint64_t forever = TERN_TIMEOUTS(TERN_NEVER, TERN_NEVER);
    thrd_t servers[] = { start(serve), start(serve_by_stub), start(serve_doors), start(serve_faults) };
    struct tern_message message = { .label = BEGIN, .partner = partner };

    make_doors();
    for (int i = 0; i < 4; i++)
        message.words[i] = tern_thread_uid(servers[i]);
    own_begins(1);
    message.words[6] = TERN_FPAGE_DOORS(OBJECT, 0, TERN_R | TERN_W);
    show_secret();
    check(tern_ipc(&message, TERN_ITEM, partner, TERN_FPAGE_DOORS(PARTNER, 0, TERN_R | TERN_W), forever) == TERN_OK, "the partner", "begins");
    own_is_as_it_was("after the first message");
    message = (struct tern_message){ .label = SECOND, .partner = partner, .words = { [6] = TERN_FPAGE_DOORS(STUB, 0, TERN_R | TERN_W) } };
    show_secret();
    check(tern_ipc(&message, TERN_ITEM, partner, 0, forever) == TERN_OK, "the partner", "goes on");
    own_is_as_it_was("after the second message");
    call(partner);
    /* This message is no call, so it lends the partner no shuttle: with one that is lent, the kernel would keep the partner's registers in a fault. */
    message = (struct tern_message){ .label = YOUR_TURN, .partner = partner };
    show_secret();
    check(tern_ipc(&message, 0, TERN_NIL, 0, forever) == TERN_OK, "the partner", "has its turn");
    own_is_as_it_was("after a message without an answer");
    message = (struct tern_message){ .partner = TERN_NIL };
    show_secret();
    check(tern_ipc(&message, 0, partner, 0, forever) == TERN_OK, "the partner", "is done");
    own_is_as_it_was("at the end");
    fesetround(FE_TONEAREST);
    puts(failures == 0 ? "REGISTERS-C ok" : "REGISTERS-C FAILED");
    return failures != 0;
}
