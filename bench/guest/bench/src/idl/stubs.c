/* The generated C stubs in the same loops as the Rust ones; with COUNTED, those with a counted text (counted.acf); with BY_DOOR,
 * those that call and serve through a door. */

#include "bench.h"

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

/* Destination of a client's calls, and first field of a server's methods. */
#ifdef BY_DOOR
typedef Bench_Calls callee;
#define CALLEE { bench_find_door(), 0 }
#define SELF void *self
#define BEGIN (void)self
uint32_t bench_find_door(void);
#else
typedef tern_uid callee;
#define CALLEE arguments->server
#define SELF void *self, tern_uid from
#define BEGIN (void)self, (void)from
#endif

#include "measured.h"

/* The call's data lie in memory, as everything must that is to outlive a call. The rest is what comes back. */
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
