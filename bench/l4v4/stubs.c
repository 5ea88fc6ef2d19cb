/* Measured code: a wrapper around each of the client's functions, and two servers. The wrappers get their arguments as
 * any function does, and pass on how the call ended only when it failed. */

#include "calls.h"

#define COUNTED __attribute__((noinline, noclone, used))

COUNTED void call_tiny(quill_thread server, int32_t a)
{
    if (Calls_tiny(server, a) != QUILL_OK)
        __builtin_trap();
}

COUNTED int32_t call_small(quill_thread server, int32_t a, int16_t b, int16_t c)
{
    int32_t result;

    if (Calls_small(server, a, b, c, &result) != QUILL_OK)
        __builtin_trap();
    return result;
}

COUNTED void call_large(quill_thread server, int32_t a1, int32_t a2, int32_t a3, int32_t a4, int32_t a5, int32_t a6,
                        int32_t a7, int32_t a8, int32_t a9, int32_t *b1, int32_t *b2, int32_t *b3, int32_t *b4,
                        int32_t *b5, int32_t *b6, int32_t *b7, int32_t *b8, int32_t *b9)
{
    if (Calls_large(server, a1, a2, a3, a4, a5, a6, a7, a8, a9, b1, b2, b3, b4, b5, b6, b7, b8, b9) != QUILL_OK)
        __builtin_trap();
}

COUNTED void call_str(quill_thread server, const char *s, int32_t *a, int32_t *b)
{
    if (Calls_str(server, s, a, b) != QUILL_OK)
        __builtin_trap();
}

COUNTED void call_larger(quill_thread server, int32_t a1, int32_t a2, int32_t a3, int32_t a4, int32_t a5, int32_t a6,
                         int32_t a7, int32_t a8, int32_t a9, int32_t a10, int32_t a11, int32_t a12, int32_t a13,
                         int32_t a14, int32_t a15, int32_t a16, int32_t *b1, int32_t *b2, int32_t *b3, int32_t *b4,
                         int32_t *b5, int32_t *b6, int32_t *b7, int32_t *b8, int32_t *b9, int32_t *b10, int32_t *b11,
                         int32_t *b12, int32_t *b13, int32_t *b14, int32_t *b15, int32_t *b16)
{
    if (Calls_larger(server, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, b1, b2, b3, b4, b5,
                     b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16) != QUILL_OK)
        __builtin_trap();
}

COUNTED void call_record(quill_thread server, const Record *r)
{
    if (Calls_record(server, r) != QUILL_OK)
        __builtin_trap();
}

COUNTED void call_length(quill_thread server, const Bytes *x, const Bytes *y)
{
    if (Calls_length(server, x, y) != QUILL_OK)
        __builtin_trap();
}

/* --- a server whose methods are part of it; they do nothing, but want each argument in a register --- */

#define TAKE(value) __asm__ volatile("" : : "r"(value))

static quill_status tiny(void *self, quill_thread from, int32_t a)
{
    (void)self, (void)from;
    TAKE(a);
    return QUILL_OK;
}

static quill_status small(void *self, quill_thread from, int32_t a, int16_t b, int16_t c, int32_t *result)
{
    (void)self, (void)from;
    TAKE(a); TAKE(b); TAKE(c);
    *result = 201;
    return QUILL_OK;
}

static quill_status large(void *self, quill_thread from, int32_t a1, int32_t a2, int32_t a3, int32_t a4, int32_t a5,
                          int32_t a6, int32_t a7, int32_t a8, int32_t a9, int32_t *b1, int32_t *b2, int32_t *b3,
                          int32_t *b4, int32_t *b5, int32_t *b6, int32_t *b7, int32_t *b8, int32_t *b9)
{
    (void)self, (void)from;
    TAKE(a1); TAKE(a2); TAKE(a3); TAKE(a4); TAKE(a5); TAKE(a6); TAKE(a7); TAKE(a8); TAKE(a9);
    *b1 = 201, *b2 = 202, *b3 = 203, *b4 = 204, *b5 = 205, *b6 = 206, *b7 = 207, *b8 = 208, *b9 = 209;
    return QUILL_OK;
}

static quill_status str(void *self, quill_thread from, const char *s, int32_t *a, int32_t *b)
{
    (void)self, (void)from;
    __asm__ volatile("" : : "r"(s) : "memory");
    *a = 201, *b = 202;
    return QUILL_OK;
}

static quill_status larger(void *self, quill_thread from, int32_t a1, int32_t a2, int32_t a3, int32_t a4, int32_t a5,
                           int32_t a6, int32_t a7, int32_t a8, int32_t a9, int32_t a10, int32_t a11, int32_t a12,
                           int32_t a13, int32_t a14, int32_t a15, int32_t a16, int32_t *b1, int32_t *b2, int32_t *b3,
                           int32_t *b4, int32_t *b5, int32_t *b6, int32_t *b7, int32_t *b8, int32_t *b9, int32_t *b10,
                           int32_t *b11, int32_t *b12, int32_t *b13, int32_t *b14, int32_t *b15, int32_t *b16)
{
    (void)self, (void)from;
    TAKE(a1); TAKE(a2); TAKE(a3); TAKE(a4); TAKE(a5); TAKE(a6); TAKE(a7); TAKE(a8);
    TAKE(a9); TAKE(a10); TAKE(a11); TAKE(a12); TAKE(a13); TAKE(a14); TAKE(a15); TAKE(a16);
    *b1 = 201, *b2 = 202, *b3 = 203, *b4 = 204, *b5 = 205, *b6 = 206, *b7 = 207, *b8 = 208;
    *b9 = 209, *b10 = 210, *b11 = 211, *b12 = 212, *b13 = 213, *b14 = 214, *b15 = 215, *b16 = 216;
    return QUILL_OK;
}

static quill_status record(void *self, quill_thread from, const Record *r)
{
    (void)self, (void)from;
    __asm__ volatile("" : : "r"(r) : "memory");
    return QUILL_OK;
}

static quill_status length(void *self, quill_thread from, const Bytes *x, const Bytes *y)
{
    (void)self, (void)from;
    TAKE(x->_length); TAKE(x->_buffer); TAKE(y->_length); TAKE(y->_buffer);
    return QUILL_OK;
}

static const Calls_server parts = { tiny, small, large, str, larger, record, length };
Calls_buffers buffers;

COUNTED void serve_parts(void)
{
    Calls_serve(&parts, NULL, &buffers);
}

/* --- the same, with methods in a table that could change; they are functions of their own, and check what they get --- */

extern Calls_server methods;

COUNTED void serve_methods(void)
{
    Calls_serve(&methods, NULL, &buffers);
}
