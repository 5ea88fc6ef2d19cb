/* The rest of the program: a kernel's side of ipc, arguments and results of all calls, and their counting (step.h).
 *
 * `ipc` compares what is sent with what should be, and makes up the other side of the call. It leaves nothing in registers that a
 * kernel would not. */

#include "calls.h"
#include "step.h"

#define REPEAT 3

extern Calls_buffers buffers;
extern Calls_server methods;

void call_tiny(void);
void call_small(void);
void call_large(void);
void call_str(void);
void call_larger(void);
void call_record(void);
void call_length(void);
void floor_tiny(void);
void floor_small(void);
void floor_large(void);
void serve_parts(void);
void serve_methods(void);

/* --- what the seven methods carry --- */

enum { CLIENT = 0x40001, SERVER = 0x80001 };

static const char text[] __attribute__((aligned(4))) = "sixteen letters!";
static char first[1000], second[1000];

static struct call {
    const char *name;
    void (*wrapper)(void);
    uint32_t words, arguments[33];         /* of the wrapper */
    uint32_t request_tag, request[16];     /* as they travel */
    uint32_t reply_tag, reply[16];
    uint32_t outs, result;                 /* how many numbers come back by pointer; what the wrapper returns, or 0 */
} calls[7];

static int32_t out[16];
static Record record = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
static Bytes x = { 1000, first }, y = { 1000, second };

static void describe(void)
{
    static const char *const names[] = { "tiny", "small", "large", "str", "larger", "record", "length" };
    static void (*const wrappers[])(void) = { call_tiny, call_small, call_large, call_str,
                                              call_larger, call_record, call_length };
    /* Labels are the methods' numbers with the bits from the top down. */
    static const uint32_t tags[] = { 0x00000001, 0x80000002, 0x40000009, 0xc0000005, 0x20000010, 0xa0000006, 0x60000100 };
    static const uint32_t replies[] = { 0, 1, 9, 2, 16, 0, 0 }, numbers[] = { 1, 1, 9, 0, 16, 0, 0 };
    static const uint32_t outs[] = { 0, 0, 9, 2, 16, 0, 0 };

    for (uint32_t i = 0; i < 1000; i++)
        first[i] = (char)i, second[i] = (char)(i + 1);
    for (uint32_t i = 0; i < 7; i++) {
        struct call *c = &calls[i];
        c->name = names[i];
        c->wrapper = wrappers[i];
        c->request_tag = tags[i];
        c->reply_tag = replies[i];
        c->outs = outs[i];
        for (uint32_t k = 0; k < replies[i]; k++)
            c->reply[k] = 201 + k;
        c->arguments[c->words++] = SERVER;
        for (uint32_t k = 0; k < numbers[i]; k++)
            c->arguments[c->words++] = c->request[k] = 101 + k;
    }
    /* 32-bit slots, of which a short is the lower half. */
    calls[1].arguments[calls[1].words++] = 0xffff0066;
    calls[1].arguments[calls[1].words++] = 0x0067;
    calls[1].request[1] = 0x00670066;
    calls[1].result = 201;
    calls[3].arguments[calls[3].words++] = (uint32_t)text;
    __builtin_memcpy(calls[3].request, text, sizeof text);
    calls[5].arguments[calls[5].words++] = (uint32_t)&record;
    __builtin_memcpy(calls[5].request, &record, sizeof record);
    calls[6].arguments[calls[6].words++] = (uint32_t)&x;
    calls[6].arguments[calls[6].words++] = (uint32_t)&y;
    calls[6].request[0] = calls[6].request[2] = 1000u << 10;
    calls[6].request[1] = (uint32_t)first;
    calls[6].request[3] = (uint32_t)second;
    for (uint32_t i = 0; i < 7; i++)
        for (uint32_t k = 0; k < calls[i].outs; k++)
            calls[i].arguments[calls[i].words++] = (uint32_t)&out[k];
}

/* --- the kernel's side --- */

static uint32_t number;            /* which of the calls */
static bool serving, waited;       /* whose side is counted; the server has waited for the first time */
static uint32_t turn, counted[REPEAT];

/* Both words that travel in registers are not in the UTCB. */
static void deliver(struct frame *frame, uint32_t from, uint32_t tag, const uint32_t *words)
{
    for (uint32_t i = 1; i < 64; i++)
        MR(i) = 0xdeadbeef;
    for (uint32_t i = 3; i <= total(tag); i++)
        MR(i) = words[i - 1];
    frame->eax = from;
    frame->esi = tag;
    frame->ebx = total(tag) > 0 ? words[0] : 0xdeadbeef;
    frame->ebp = total(tag) > 1 ? words[1] : 0xdeadbeef;
    frame->ecx = frame->edx = 0xdeadbeef;
}

static void client_side(struct frame *frame)
{
    struct call *c = &calls[number];

    CHECK(frame->eax == SERVER && frame->edx == SERVER && frame->ecx == 0);
    CHECK(frame->esi == c->request_tag && frame->edi == (uint32_t)&MR(0));
    for (uint32_t i = 0; i < total(c->request_tag); i++)
        CHECK(MR(i + 1) == c->request[i]);
    deliver(frame, SERVER, c->reply_tag, c->reply);
}

static void server_side(struct frame *frame)
{
    struct call *c = &calls[number];

    CHECK(frame->ecx == 0x04000000 && frame->edx == 0xffffffff && frame->edi == (uint32_t)&MR(0));
    if (waited) {
        counted[turn++] = count;
        CHECK(frame->eax == CLIENT && frame->esi == c->reply_tag);
        for (uint32_t i = 0; i < total(c->reply_tag); i++)
            CHECK(MR(i + 1) == c->reply[i]);
    } else {
        CHECK(frame->eax == 0);
        CHECK(utcb[128 - 16] == 1);
    }
    if (turn == REPEAT)
        leave_server();
    waited = true;
    if (number == 6) { /* the kernel copies items to where they are wanted */
        uint32_t items[4] = { 1000u << 10, utcb[128 - 18], 1000u << 10, utcb[128 - 20] };
        CHECK(utcb[128 - 17] == (65536u << 10 | 1) && utcb[128 - 19] == 65536u << 10);
        __builtin_memcpy((void *)utcb[128 - 18], first, 1000);
        __builtin_memcpy((void *)utcb[128 - 20], second, 1000);
        deliver(frame, CLIENT, c->request_tag, items);
    } else {
        deliver(frame, CLIENT, c->request_tag, c->request);
    }
    count = 0;
}

__attribute__((used)) void ipc(struct frame *frame)
{
    if (serving)
        server_side(frame);
    else
        client_side(frame);
}

/* --- methods of the second server --- */

static uint32_t got[16];

static void same(const uint32_t *values, uint32_t count_of)
{
    for (uint32_t i = 0; i < count_of; i++)
        CHECK(values[i] == calls[number].request[i]);
}

static quill_status tiny(void *self, quill_thread from, int32_t a)
{
    CHECK(self == NULL && from == CLIENT);
    got[0] = (uint32_t)a;
    same(got, 1);
    return QUILL_OK;
}

static quill_status small(void *self, quill_thread from, int32_t a, int16_t b, int16_t c, int32_t *result)
{
    CHECK(self == NULL && from == CLIENT && a == 101 && b == 102 && c == 103);
    *result = 201;
    return QUILL_OK;
}

static quill_status large(void *self, quill_thread from, int32_t a1, int32_t a2, int32_t a3, int32_t a4, int32_t a5,
                          int32_t a6, int32_t a7, int32_t a8, int32_t a9, int32_t *b1, int32_t *b2, int32_t *b3,
                          int32_t *b4, int32_t *b5, int32_t *b6, int32_t *b7, int32_t *b8, int32_t *b9)
{
    const int32_t all[] = { a1, a2, a3, a4, a5, a6, a7, a8, a9 };

    CHECK(self == NULL && from == CLIENT);
    same((const uint32_t *)all, 9);
    *b1 = 201, *b2 = 202, *b3 = 203, *b4 = 204, *b5 = 205, *b6 = 206, *b7 = 207, *b8 = 208, *b9 = 209;
    return QUILL_OK;
}

static quill_status str(void *self, quill_thread from, const char *s, int32_t *a, int32_t *b)
{
    CHECK(self == NULL && from == CLIENT);
    for (uint32_t i = 0; i < sizeof text; i++)
        CHECK(s[i] == text[i]);
    *a = 201, *b = 202;
    return QUILL_OK;
}

static quill_status larger(void *self, quill_thread from, int32_t a1, int32_t a2, int32_t a3, int32_t a4, int32_t a5,
                           int32_t a6, int32_t a7, int32_t a8, int32_t a9, int32_t a10, int32_t a11, int32_t a12,
                           int32_t a13, int32_t a14, int32_t a15, int32_t a16, int32_t *b1, int32_t *b2, int32_t *b3,
                           int32_t *b4, int32_t *b5, int32_t *b6, int32_t *b7, int32_t *b8, int32_t *b9, int32_t *b10,
                           int32_t *b11, int32_t *b12, int32_t *b13, int32_t *b14, int32_t *b15, int32_t *b16)
{
    const int32_t all[] = { a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16 };

    CHECK(self == NULL && from == CLIENT);
    same((const uint32_t *)all, 16);
    *b1 = 201, *b2 = 202, *b3 = 203, *b4 = 204, *b5 = 205, *b6 = 206, *b7 = 207, *b8 = 208;
    *b9 = 209, *b10 = 210, *b11 = 211, *b12 = 212, *b13 = 213, *b14 = 214, *b15 = 215, *b16 = 216;
    return QUILL_OK;
}

static quill_status take_record(void *self, quill_thread from, const Record *r)
{
    CHECK(self == NULL && from == CLIENT);
    same((const uint32_t *)(const void *)r, 6);
    return QUILL_OK;
}

static quill_status length(void *self, quill_thread from, const Bytes *one, const Bytes *other)
{
    CHECK(self == NULL && from == CLIENT && one->_length == 1000 && other->_length == 1000);
    for (uint32_t i = 0; i < 1000; i++)
        CHECK(one->_buffer[i] == first[i] && other->_buffer[i] == second[i]);
    return QUILL_OK;
}

Calls_server methods = { tiny, small, large, str, larger, take_record, length };

/* --- all of it --- */

static void report(const char *before, const char *behind)
{
    for (uint32_t i = 1; i < REPEAT; i++)
        CHECK(counted[i] == counted[0]);
    say(before);
    say(calls[number].name);
    say(behind);
    say(" ");
    say_number(counted[0]);
    say("\n");
}

static void count_client(void (*wrapper)(void), const char *before)
{
    struct call *c = &calls[number];

    serving = false;
    for (turn = 0; turn < REPEAT; turn++) {
        for (uint32_t i = 0; i < 16; i++)
            out[i] = -1;
        count = 0;
        int32_t result = step(wrapper, c->arguments, c->words);
        counted[turn] = count;
        CHECK(c->result == 0 || result == (int32_t)c->result);
        for (uint32_t i = 0; i < c->outs; i++)
            CHECK(out[i] == (int32_t)c->reply[i]);
    }
    report(before, ".client");
}

static void count_server(void (*server)(void), const char *behind)
{
    serving = true, waited = false, turn = 0;
    step(server, NULL, 0);
    report("", behind);
}

__attribute__((used, noreturn)) void start(void)
{
    static void (*const floors[])(void) = { floor_tiny, floor_small, floor_large };

    prepare();
    describe();
    for (number = 0; number < 7; number++) {
        count_client(calls[number].wrapper, "");
        count_server(serve_parts, ".server");
        count_server(serve_methods, ".server.called");
        if (number < 3)
            count_client(floors[number], "floor.");
    }
    leave(0);
}
