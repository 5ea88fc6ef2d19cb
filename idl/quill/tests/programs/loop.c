/* A server's loop as it is, with a call in the place of the system call: each request finds its method, each reply has its
 * words, and no word shows anything else. The other side of that call is here, with a stack of its own. */

#include "check.h"
#include <tern.h>
#define tern_control(group, operation, control) ((void)(control), 0)
#include "loop.h"

#include "registers.h"
#include "strange.h"

void serve_on(void);

/* `exchange` hands a reply over and returns with the next request; `serve_on` hands a request over and returns with the reply.
 * Each leaves its stack for the other's. What the kernel would lose is lost. */
__asm__(".text\n.globl exchange\n"
        "exchange:\n\t"
        KEEP_REGISTERS
        "mov %rsp, server_stack(%rip)\n\tmov client_stack(%rip), %rsp\n\t"
        BACK_TO_THE_CLIENT
        ".globl serve_on\n"
        "serve_on:\n\t"
        ON_TO_THE_SERVER
        "mov $0x1111, %ecx\n\tmov $0x2222, %r11d\n\tret\n");

enum { CLIENT = 77 };

static I_room room;
static char own_name[] = "the server's own, and long enough to lie in memory";
static int hints, self;
static char seen[500];

static quill_status tiny(void *me, tern_uid from, int32_t a, int32_t *result)
{
    *result = a + (me == &self && from == CLIENT);
    return QUILL_OK;
}

static quill_status wide(void *me, tern_uid from, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                         uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8, uint64_t a9, uint64_t a10, uint64_t *b0,
                         uint64_t *b1, uint64_t *b2, uint64_t *b3, uint64_t *b4, uint64_t *b5, uint64_t *b6, uint64_t *b7,
                         uint64_t *b8, uint64_t *b9, uint64_t *b10)
{
    /* Instructions that have registers for themselves. */
    uint64_t shift = from % 7;

    (void)me;
    *b0 = a1 / a0, *b1 = a1 % a0, *b2 = a2 << shift, *b3 = a3 * a4, *b4 = (uint64_t)((unsigned __int128)a4 * a5 >> 64);
    *b5 = a5 >> shift, *b6 = a6 / a1, *b7 = a7 + 1, *b8 = a8 + 1, *b9 = a9 + 1, *b10 = a10 % a9;
    return QUILL_OK;
}

static quill_status fail(void *me, tern_uid from, int32_t how, I_fail_raised *raised)
{
    (void)me, (void)from;
    if (how == 1)
        raised->Bad.how = 7;
    return how == 2 ? QUILL_KERNEL + ERROR : (quill_status)how;
}

static quill_status hint(void *me, tern_uid from, int32_t a)
{
    (void)me, (void)from;
    hints += a;
    return QUILL_OK;
}

static quill_status text(void *me, tern_uid from, const char *s, int32_t *bytes)
{
    (void)me, (void)from;
    strcpy(seen, s);
    *bytes = (int32_t)strlen(s);
    return QUILL_OK;
}

static quill_status name(void *me, tern_uid from, char **s)
{
    (void)me, (void)from;
    *s = own_name;
    return QUILL_OK;
}

static const I_server methods = { tiny, wide, fail, hint, text, name };

I_SERVE(serve, methods)

static void begin(void)
{
    serve(&self, &room);
    abort();
}

/* Sends a request, of which all words but the first ones are known to be strange. */
static void ask(uint32_t label, uint32_t kind, const uint64_t *words, unsigned count)
{
    registers[0] = (uint64_t)label << 32 | kind;
    registers[1] = CLIENT;
    fill(registers + 2, words, count);
    serve_on();
}

/* Whether the reply is that, to so and so, and all its other words are zero or, in the last six, what was sent. */
static void check_reply(uint64_t rax, tern_uid to, const uint64_t *words, unsigned count)
{
    CHECK(registers[0] == rax && registers[1] == to);
    check_words(registers + 2, words, count);
}

static uint64_t failed(uint32_t label)
{
    return (uint64_t)label << 32 | TERN_IPC_REPLY_WAIT;
}

/* Sends a text as a client does. */
static void send_text(const char *letters, uint64_t bytes, uint64_t dope)
{
    uint64_t words[4];

    put_text(words, &room, room.words, sizeof room.words, letters, bytes, dope);
    ask(0x20000000, QUILL_IPC_LONG_CALL, words, 4);
}

static void check_text(const char *letters)
{
    uint64_t bytes = strlen(letters);

    send_text(letters, bytes, bytes / 8);
    check_reply(QUILL_DONE, CLIENT, &bytes, 1);
    CHECK(strcmp(seen, letters) == 0);
}

int main(void)
{
    static _Alignas(16) uint64_t stack[8192];
    uint64_t wide_words[11] = { 3, 1000, 5, 1u << 31, UINT64_MAX, 1u << 20, 5000, 7, 8, 9, 100 };
    uint64_t wide_reply[11] = { 333, 1, 5, 0, (1 << 20) - 1, 1u << 20, 5, 8, 9, 10, 1 };
    uint64_t number = 5, word;

    stack[8190] = (uintptr_t)begin;
    server_stack = (uintptr_t)&stack[8190];
    serve_on();
    CHECK(registers[1] == TERN_NIL);
    for (int round = 0; round < 2; round++) {
        ask(0, TERN_IPC_CALL, &number, 1);
        word = 6;
        check_reply(QUILL_DONE, CLIENT, &word, 1);
        ask(0x80000000, TERN_IPC_CALL, wide_words, 11);
        wide_reply[3] = (uint64_t)(wide_words[3] * wide_words[4]);
        check_reply(QUILL_DONE, CLIENT, wide_reply, 11);

        /* Success, an exception, an error. */
        word = 0;
        ask(0x40000000, TERN_IPC_CALL, &word, 1);
        check_reply(QUILL_DONE, CLIENT, NULL, 0);
        word = 1;
        ask(0x40000000, TERN_IPC_CALL, &word, 1);
        word = 7;
        check_reply(failed(1), CLIENT, &word, 1);
        word = 2;
        ask(0x40000000, TERN_IPC_CALL, &word, 1);
        check_reply(failed(QUILL_KERNEL + ERROR), CLIENT, NULL, 0);

        /* Oneway. */
        ask(0xc0000000, TERN_IPC_REPLY_WAIT, &number, 1);
        CHECK(registers[1] == TERN_NIL && hints == 5 * (round + 1));

        /* Texts: ASCII, short and long, and those for which there is a second look. */
        check_text("sixteen letters.");
        check_text("");
        check_text("short");
        check_text("a text that is longer, and has something left behind its words");
        check_text("n\u00e9e, and so on and so on");
        send_text("sixteen\0letters.", 16, 2);
        check_reply(failed(QUILL_MALFORMED), CLIENT, NULL, 0);
        send_text("sixteen\xff letters", 16, 2);
        check_reply(failed(QUILL_MALFORMED), CLIENT, NULL, 0);
        send_text("sixteen\x80 letters", 16, 2);
        check_reply(failed(QUILL_MALFORMED), CLIENT, NULL, 0);
        send_text("sixteen letters.", 16, 3);
        check_reply(failed(QUILL_MALFORMED), CLIENT, NULL, 0);
        send_text("n\u00e9e, and so on", 16, 3);
        check_reply(failed(QUILL_MALFORMED), CLIENT, NULL, 0);

        /* A reply with a part in memory. */
        ask(0xa0000000, TERN_IPC_CALL, NULL, 0);
        CHECK(registers[0] == QUILL_LONG_DONE && registers[1] == CLIENT && registers[2] == strlen(own_name) / 8);
        CHECK(registers[3] == (uintptr_t)own_name && registers[5] == strlen(own_name) && registers[6] == 0);

        /* No such method; one whose requests are of the other kind. */
        ask(0x60000000, TERN_IPC_CALL, NULL, 0);
        check_reply(failed(QUILL_NO_METHOD), CLIENT, NULL, 0);
        ask(0, QUILL_IPC_LONG_CALL, NULL, 0);
        check_reply(failed(QUILL_MALFORMED), CLIENT, NULL, 0);
        ask(0x20000000, TERN_IPC_CALL, NULL, 0);
        check_reply(failed(QUILL_MALFORMED), CLIENT, NULL, 0);

        /* A request with a map item; a fault; a message that did not arrive. */
        ask(0, TERN_KIND_REQUEST & ~0x100u, NULL, 0);
        check_reply(failed(QUILL_MALFORMED), CLIENT, NULL, 0);
        ask(0, TERN_KIND_FAULT, NULL, 0);
        check_reply(failed(QUILL_MALFORMED), TERN_NIL, NULL, 0);
        ask(0, 3, NULL, 0);
        check_reply(failed(QUILL_MALFORMED), TERN_NIL, NULL, 0);
    }
    return 0;
}
