/* Stubs in C between two programs in C, each built like any other: start-up code, thread-local storage, and vector registers wherever the
 * compiler wants them. `bench-c serve` is the server, `bench-c call` its client, which ends with 0 when all went well; `bench-c serve-by-hand`
 * and `bench-c call-by-hand` are the pair without stubs, `bench-c serve-floor` and `bench-c call-floor` that with stubs by hand. The program `bench` starts them; its markers and methods are those of the file measured.h there.
 *
 * Each side also counts what it has done, in a thread-local number of type double: a program that touches neither thread-local storage nor
 * the FPU between two messages is rare. */

#define QUILL_OMIT_FRAME_POINTER
#include "by_hand.h"

#include <bench.h>
#include <system.h>
#include <tern.h>
#include <unistd.h>

static _Thread_local double done;

#define SELF void *self, tern_uid from
#define BEGIN (void)self, (void)from, done += 1.0
#include "../bench/src/idl/measured.h"

#define NAME "bench-c"

enum { ITERATIONS = 160, LOOKS = 1000, PAUSE_US = 1000 };

/* Calls a method over and over. The last arguments are what comes back. False if a call failed. */
#define CLIENT(function, region, call, ...)                          \
    static int function(tern_uid server)                             \
    {                                                                \
        int32_t n[16], b[16] = { 0 };                                \
        const struct lists *l = &lists;                              \
                                                                     \
        for (int i = 0; i < 16; i++)                                 \
            n[i] = 1;                                                \
        __asm__ volatile("" : "+r"(l) : "r"(n), "r"(b) : "memory");  \
        for (int left = ITERATIONS; left > 0; left--) {              \
            MARK(1, region);                                         \
            if (call != QUILL_OK)                                    \
                return 0;                                            \
            __asm__ volatile("" : : __VA_ARGS__);                    \
            done += 1.0;                                             \
            MARK(2, region);                                         \
        }                                                            \
        return 1;                                                    \
    }

CLIENT(call_tiny, 140, TINY, "r"(0))
CLIENT(call_small, 141, SMALL, "r"(b[0]))
CLIENT(call_large, 142, LARGE, "m"(b))
CLIENT(call_str, 143, STR, "r"(b[0]), "r"(b[1]))

Bench_Calls_SERVE(serve_calls, methods)

static int serve(void)
{
    static Bench_Calls_room room;

    if (System_Names_register(tern_home(), (uint8_t[16]){ NAME }) != QUILL_OK)
        return 1;
    serve_calls(NULL, &room);
    return 1;
}

tern_uid find_server(const char *name)
{
    tern_uid server = tern_resolve(name);

    for (int looks = 0; server == TERN_NIL && looks < LOOKS; looks++) {
        usleep(PAUSE_US);
        server = tern_resolve(name);
    }
    return server;
}

static int call(void)
{
    tern_uid server = find_server(NAME);

    if (!call_tiny(server) || !call_small(server) || !call_large(server) || !call_str(server))
        return 1;
    return done == 4 * ITERATIONS ? 0 : 2;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return serve();
    if (argc == 2 && strcmp(argv[1], "call") == 0)
        return call();
    if (argc == 2 && strcmp(argv[1], "serve-by-hand") == 0)
        return serve_by_hand();
    if (argc == 2 && strcmp(argv[1], "call-by-hand") == 0)
        return call_by_hand();
    if (argc == 2 && strcmp(argv[1], "serve-floor") == 0)
        return serve_floor();
    if (argc == 2 && strcmp(argv[1], "call-floor") == 0)
        return call_floor();
    puts("usage: bench-c serve | call | serve-by-hand | call-by-hand | serve-floor | call-floor");
    return 2;
}
