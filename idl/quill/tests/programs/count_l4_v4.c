/* Counts the instructions of stubs over L4's V4 API, as bench/l4v4 does: of a client's function, and of a server from one ipc to the next.
 * Prints two numbers for each call. */

#include "step.h"
#include "l4_v4_calls.h"

#define REPEAT 3

static uint32_t number; /* which of the calls */
static bool serving, waited;
static uint32_t turn, counted[REPEAT];

/* Compilers call these; nothing of them is counted. */
__attribute__((used)) void *memcpy(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        ((char *)to)[i] = ((const char *)from)[i];
        __asm__ volatile("" ::: "memory");
    }
    return to;
}

__attribute__((used)) void *memset(void *to, int value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        ((char *)to)[i] = (char)value;
        __asm__ volatile("" ::: "memory");
    }
    return to;
}

/* Lets a message arrive whose values are zeros. Items are where the buffer registers say, whatever is there; both words that travel in
 * registers are not in the UTCB. */
static void deliver(struct frame *frame, uint32_t from, const struct message *message)
{
    uint32_t words[64] = { 0 }, at = message->tag & 63, all = total(message->tag);

    for (uint32_t i = 0; message->items[i] != 0; i++) {
        CHECK(utcb[128 - 17 - 2 * i] >> 10 >= message->items[i]);
        words[at++] = message->items[i] << 10;
        words[at++] = utcb[128 - 18 - 2 * i];
    }
    for (uint32_t i = 1; i < 64; i++)
        MR(i) = i > 2 && i <= all ? words[i - 1] : 0xdeadbeef;
    frame->eax = from;
    frame->esi = message->tag;
    frame->ebx = all > 0 ? words[0] : 0xdeadbeef;
    frame->ebp = all > 1 ? words[1] : 0xdeadbeef;
    frame->ecx = frame->edx = 0xdeadbeef;
}

__attribute__((used)) void ipc(struct frame *frame)
{
    const struct call *c = &calls[number];

    if (!serving) {
        CHECK(frame->esi == c->request.tag);
        deliver(frame, SERVER, &c->reply);
        return;
    }
    if (waited) {
        counted[turn++] = count;
        CHECK(frame->esi == c->reply.tag);
    }
    if (turn == REPEAT)
        leave_server();
    waited = true;
    deliver(frame, CLIENT, &c->request);
    count = 0;
}

static void report(const char *behind)
{
    for (uint32_t i = 1; i < REPEAT; i++)
        CHECK(counted[i] == counted[0]);
    say_number(counted[0]);
    say(behind);
}

__attribute__((used, noreturn)) void start(void)
{
    prepare();
    for (number = 0; number < calls_count; number++) {
        const struct call *c = &calls[number];
        serving = false;
        for (turn = 0; turn < REPEAT; turn++) {
            count = 0;
            step(c->client, c->arguments, c->words);
            counted[turn] = count;
        }
        report(" ");
        serving = true, waited = false, turn = 0;
        step(c->server, NULL, 0);
        report("\n");
    }
    leave(0);
}
