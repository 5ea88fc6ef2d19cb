/* Client and server in C whose instructions `count_calls.c` counts. The interface stands in `sockets.rs`. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Not a part of its callers, so that a debugger finds its beginning. */
static __attribute__((noinline, noclone)) ssize_t known_send(int end, const void *bytes, size_t count, int flags)
{
    return send(end, bytes, count, flags);
}

static __attribute__((noinline, noclone)) ssize_t known_recv(int end, void *bytes, size_t count, int flags)
{
    return recv(end, bytes, count, flags);
}

#define send known_send
#define recv known_recv
#include "desk.h"
#undef send
#undef recv

void begins(void);
void ends(void);
const char *method_name(int method);
void run_client(int method, int socket);
void run_server(int socket);
const void *sender(void);
const void *receiver(void);

const void *sender(void)
{
    return (const void *)(uintptr_t)&known_send;
}

const void *receiver(void)
{
    return (const void *)(uintptr_t)&known_recv;
}

static quill_status add(void *self, quill_memory *memory, int32_t a, int32_t b, int32_t *result)
{
    (void)self, (void)memory;
    *result = a + b;
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
    (void)self, (void)memory, (void)a;
    return QUILL_OK;
}

static quill_status spent(void *self, quill_memory *memory, int32_t *s, int32_t *r, int32_t *p)
{
    (void)self, (void)memory;
    *s = *r = *p = 0;
    return QUILL_OK;
}

static const Desk_server methods = { add, echo, turn, both, note, spent };

void run_server(int socket)
{
    quill_serve(socket, Desk_dispatch, &methods, NULL);
}

const char *method_name(int method)
{
    static const char *const names[] = { "add", "echo", "turn", "both", NULL };
    return names[method];
}

static char text[101];
static uint8_t bytes[1000];

/* Of each method, so that nothing else is counted. */
#define CALLS(CALL)                                 \
    for (int i = 0; i < 5; i++) {                   \
        quill_status status;                        \
        begins();                                   \
        status = CALL;                              \
        ends();                                     \
        if (status != QUILL_OK)                     \
            _exit(1);                               \
    }                                               \
    break

void run_client(int method, int socket)
{
    static char *list[3] = { "one", "two", "three" };
    quill_client client = { socket, { NULL } };
    sequence_uint8_t given = { sizeof bytes, bytes }, turned;
    sequence_string names = { 3, list }, other;
    char *echoed;
    int32_t sum;

    memset(text, 'x', sizeof text - 1);
    switch (method) {
    case 0:
        CALLS(Desk_add(&client, 3, 4, &sum));
    case 1:
        CALLS(Desk_echo(&client, text, &echoed));
    case 2:
        CALLS(Desk_turn(&client, &given, &turned));
    case 3:
        CALLS(Desk_both(&client, &names, &other));
    default:
        CALLS(Desk_note(&client, 5));
    }
}
