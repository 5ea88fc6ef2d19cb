/* The generated C stubs in the same loops as the Rust ones; with COUNTED, those with a counted text (counted.acf); with BY_DOOR,
 * those that call and serve through a door. */

#include "bench.h"

#define MARK(kind, region) \
    __asm__ volatile(".byte 0x0f, 0x1f, 0x80, %c0, %c1, 0x4e, 0x7e" : : "i"(kind), "i"(region) : "memory")

struct arguments {
    tern_uid server;
    uint64_t iterations;
};

extern uint64_t bench_chief;

/* Tells the chief how it went. */
static void report(uint64_t status)
{
    for (;;) {
        struct tern_message message = { .partner = bench_chief, .words = { status } };
        tern_ipc_call(&message);
    }
}

/* Whom a client calls, and what is first in a server's methods. */
#ifdef BY_DOOR
typedef Bench_Calls callee;
#define CALLEE { bench_find_door(), 0 }
#define SELF void *self
#define UNUSED_SELF (void)self
uint32_t bench_find_door(void);
#else
typedef tern_uid callee;
#define CALLEE arguments->server
#define SELF void *self, tern_uid from
#define UNUSED_SELF (void)self, (void)from
#endif

/* What is sent beside numbers: sixteen bytes of text, and lists of a thousand. */
static char some[2][1000] = { { 1 }, { 2 } };
static _Alignas(8) char text[] = "sixteen letters.";
#ifdef COUNTED
typedef quill_text any_text;
#define THE_TEXT { sizeof text - 1, text }
#else
typedef const char *any_text;
#define THE_TEXT text
#endif
static const struct lists {
    any_text text;
    sequence_65536_char bytes[2];
} lists = { THE_TEXT, { { 1000, some[0] }, { 1000, some[1] } } };

/* What the call needs lies in memory, as everything must that is to outlive a call. The rest is what comes back. */
#define CLIENT(function, region, call, ...)                                        \
    void function(const struct arguments *arguments)                               \
    {                                                                              \
        uint64_t left = arguments->iterations;                                     \
        callee server = CALLEE;                                                    \
        int32_t n[16], b[16] = { 0 };                                              \
        const struct lists *l = &lists;                                            \
        Bench_Record record = { 0 };                                               \
        for (int i = 0; i < 16; i++)                                               \
            n[i] = 1;                                                              \
        __asm__ volatile("" : "+r"(l) : "r"(n), "r"(b), "r"(&record) : "memory");  \
        do {                                                                       \
            MARK(1, region);                                                       \
            if (call != QUILL_OK)                                                  \
                report(1);                                                         \
            __asm__ volatile("" : : __VA_ARGS__);                                  \
            MARK(2, region);                                                       \
        } while (--left > 0);                                                      \
        report(0);                                                                 \
    }

#define TINY Bench_Calls_tiny(server, n[0])
#define SMALL Bench_Calls_small(server, n[0], (int16_t)n[1], (int16_t)n[2], &b[0])
#define LARGE                                                                                                       \
    Bench_Calls_large(server, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], &b[0], &b[1], &b[2], &b[3],      \
                      &b[4], &b[5], &b[6], &b[7], &b[8])
#define LARGER                                                                                                      \
    Bench_Calls_larger(server, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12],      \
                       n[13], n[14], n[15], &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[6], &b[7], &b[8], &b[9],    \
                       &b[10], &b[11], &b[12], &b[13], &b[14], &b[15])
#define RECORD Bench_Calls_record(server, &record)
#define STR Bench_Calls_str(server, l->text, &b[0], &b[1])
#define LENGTH Bench_Calls_length(server, &l->bytes[0], &l->bytes[1])

#if defined(BY_DOOR)
CLIENT(c_door_client_tiny, 130, TINY, "r"(0))
CLIENT(c_door_client_small, 131, SMALL, "r"(b[0]))
CLIENT(c_door_client_large, 132, LARGE, "m"(b))
CLIENT(c_door_client_larger, 133, LARGER, "m"(b))
CLIENT(c_door_client_record, 134, RECORD, "r"(0))
CLIENT(c_door_client_str, 135, STR, "r"(b[0]), "r"(b[1]))
CLIENT(c_door_client_length, 136, LENGTH, "r"(0))
#elif defined(COUNTED)
CLIENT(c_counted_client_str_rt, 95, STR, "r"(b[0]), "r"(b[1]))
CLIENT(c_counted_client_str, 96, STR, "r"(b[0]), "r"(b[1]))
#else
CLIENT(c_client_tiny_rt, 80, TINY, "r"(0))
CLIENT(c_client_small_rt, 81, SMALL, "r"(b[0]))
CLIENT(c_client_large_rt, 82, LARGE, "m"(b))
CLIENT(c_client_larger_rt, 83, LARGER, "m"(b))
CLIENT(c_client_record_rt, 84, RECORD, "r"(0))
CLIENT(c_client_tiny, 85, TINY, "r"(0))
CLIENT(c_client_small, 86, SMALL, "r"(b[0]))
CLIENT(c_client_large, 87, LARGE, "m"(b))
CLIENT(c_client_larger, 88, LARGER, "m"(b))
CLIENT(c_client_record, 89, RECORD, "r"(0))
CLIENT(c_client_str_rt, 100, STR, "r"(b[0]), "r"(b[1]))
CLIENT(c_client_length_rt, 101, LENGTH, "r"(0))
CLIENT(c_client_str, 105, STR, "r"(b[0]), "r"(b[1]))
CLIENT(c_client_length, 106, LENGTH, "r"(0))
#endif

/* --- a server whose methods want each argument and have each result in a register, and cost nothing else --- */

#define USE(argument) __asm__ volatile("" : : "r"(argument))
#define MAKE(result) __asm__ volatile("" : "=r"(*(result)))
/* What is passed by reference has its address in a register and lies in memory. */
#define USE_AT(address) __asm__ volatile("" : : "r"(address) : "memory")
#ifdef COUNTED
#define USE_TEXT(text)        \
    do {                      \
        USE((text)._length);  \
        USE_AT((text)._buffer); \
    } while (0)
#else
#define USE_TEXT(text) USE_AT(text)
#endif

static quill_status tiny(SELF, int32_t a)
{
    UNUSED_SELF;
    USE(a);
    return QUILL_OK;
}

static quill_status small(SELF, int32_t a, int16_t b, int16_t c, int32_t *result)
{
    UNUSED_SELF;
    USE(a); USE(b); USE(c);
    MAKE(result);
    return QUILL_OK;
}

static quill_status large(SELF, int32_t a1, int32_t a2, int32_t a3, int32_t a4, int32_t a5, int32_t a6, int32_t a7,
                          int32_t a8, int32_t a9, int32_t *b1, int32_t *b2, int32_t *b3, int32_t *b4, int32_t *b5,
                          int32_t *b6, int32_t *b7, int32_t *b8, int32_t *b9)
{
    UNUSED_SELF;
    USE(a1); USE(a2); USE(a3); USE(a4); USE(a5); USE(a6); USE(a7); USE(a8); USE(a9);
    MAKE(b1); MAKE(b2); MAKE(b3); MAKE(b4); MAKE(b5); MAKE(b6); MAKE(b7); MAKE(b8); MAKE(b9);
    return QUILL_OK;
}

static quill_status larger(SELF, int32_t a1, int32_t a2, int32_t a3, int32_t a4, int32_t a5, int32_t a6, int32_t a7,
                           int32_t a8, int32_t a9, int32_t a10, int32_t a11, int32_t a12, int32_t a13, int32_t a14,
                           int32_t a15, int32_t a16, int32_t *b1, int32_t *b2, int32_t *b3, int32_t *b4, int32_t *b5,
                           int32_t *b6, int32_t *b7, int32_t *b8, int32_t *b9, int32_t *b10, int32_t *b11, int32_t
                           *b12, int32_t *b13, int32_t *b14, int32_t *b15, int32_t *b16)
{
    UNUSED_SELF;
    USE(a1); USE(a2); USE(a3); USE(a4); USE(a5); USE(a6); USE(a7); USE(a8); USE(a9); USE(a10); USE(a11); USE(a12);
    USE(a13); USE(a14); USE(a15); USE(a16);
    MAKE(b1); MAKE(b2); MAKE(b3); MAKE(b4); MAKE(b5); MAKE(b6); MAKE(b7); MAKE(b8); MAKE(b9); MAKE(b10); MAKE(b11);
    MAKE(b12); MAKE(b13); MAKE(b14); MAKE(b15); MAKE(b16);
    return QUILL_OK;
}

static quill_status record(SELF, const Bench_Record *r)
{
    UNUSED_SELF;
    USE_AT(r);
    return QUILL_OK;
}

static quill_status str(SELF, any_text s, int32_t *a, int32_t *b)
{
    UNUSED_SELF;
    USE_TEXT(s);
    MAKE(a); MAKE(b);
    return QUILL_OK;
}

static quill_status length(SELF, const sequence_65536_char *x, const sequence_65536_char *y)
{
    UNUSED_SELF;
    USE(x->_length); USE_AT(x->_buffer);
    USE(y->_length); USE_AT(y->_buffer);
    return QUILL_OK;
}

static const Bench_Calls_server methods = { tiny, small, large, larger, record, str, length };

#ifdef BY_DOOR

Bench_Calls_ENTRY(entry_of_nothing, methods, NULL)

/* Where the calling thread receives, and what begins when the door is called. */
quill_status c_door_object(uint64_t *entry, uint64_t *datum)
{
    static quill_door_room room;
    static _Alignas(8) char buffers[QUILL_BUFFERS(Bench_Calls_STRINGS, Bench_Calls_STRING_BYTES)];

    *entry = (uint64_t)entry_of_nothing;
    *datum = 0;
    return quill_receive(&room, Bench_Calls_STRINGS, Bench_Calls_STRING_BYTES, buffers);
}

#else

Bench_Calls_SERVE(serve, methods)

#ifdef COUNTED
#define c_server c_counted_server
#endif

void c_server(void)
{
    static Bench_Calls_room room;

    serve(NULL, &room);
}

#endif
