/* Ways in which a stub could copy a list and place a message, timed beside each other: `copies [ROUNDS]` prints a line for each, with ticks for
 * lists of 64 to 4,096 bytes. A time is the shortest of so many rounds, so that whatever else the machine does is not in it. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <x86intrin.h>

#define MOST 4096
#define HEADER 16
#define AGAIN 256
#define APART __attribute__((noinline, noclone))

static uint8_t from[MOST + 64] __attribute__((aligned(64))), to[MOST + 64] __attribute__((aligned(64)));

/* --- copying --- */

APART static void by_loop(uint8_t *out, const uint8_t *in, size_t count)
{
    for (size_t i = 0; i < count; i += 8) {
        *(uint64_t *)(void *)(out + i) = *(const uint64_t *)(const void *)(in + i);
        __asm__ volatile("" ::: "memory"); /* no vectors, no call */
    }
}

APART static void by_movsb(uint8_t *out, const uint8_t *in, size_t count)
{
    __asm__ volatile("rep movsb" : "+D"(out), "+S"(in), "+c"(count) : : "memory");
}

APART static void by_movsq(uint8_t *out, const uint8_t *in, size_t count)
{
    count /= 8;
    __asm__ volatile("rep movsq" : "+D"(out), "+S"(in), "+c"(count) : : "memory");
}

APART static void by_memcpy(uint8_t *out, const uint8_t *in, size_t count)
{
    memcpy(out, in, count);
}

typedef void copy(uint8_t *out, const uint8_t *in, size_t count);

/* --- receiving --- */

static int ends[2];

static void sent(size_t count)
{
    if (write(ends[0], from, count) != (ssize_t)count)
        abort();
}

static void received(uint8_t *place, size_t count)
{
    if (read(ends[1], place, count) != (ssize_t)count)
        abort();
}

APART static void straight(size_t count)
{
    received(to, count);
}

APART static void by_room(size_t count)
{
    static uint8_t room[MOST];

    received(room, count);
    memcpy(to, room, count);
}

/* --- placing a message: a header and a list, which somebody looks at --- */

APART static void looked_at(uint8_t *message)
{
    __asm__ volatile("" : : "r"(message) : "memory");
}

APART static void on_the_stack(size_t count)
{
    uint8_t message[HEADER + MOST];

    memset(message, 0, HEADER);
    memcpy(message + HEADER, from, count);
    looked_at(message);
}

APART static void kept(size_t count)
{
    static uint8_t message[HEADER + MOST];

    memset(message, 0, HEADER);
    memcpy(message + HEADER, from, count);
    looked_at(message);
}

APART static void allocated(size_t count)
{
    uint8_t *message = malloc(HEADER + count);

    memset(message, 0, HEADER);
    memcpy(message + HEADER, from, count);
    looked_at(message);
    free(message);
}

/* Shortest time of one way, in ticks. What has to be done `before` is not in it. */
static uint64_t least(int rounds, size_t count, copy *copies, void (*places)(size_t), void (*before)(size_t))
{
    uint64_t least = UINT64_MAX;

    for (int round = 0; round < rounds; round++) {
        if (before != NULL)
            before(count);
        _mm_lfence();
        uint64_t begun = __rdtsc();
        _mm_lfence();
        for (int again = 0; again < (before != NULL ? 1 : AGAIN); again++)
            if (copies != NULL)
                copies(to, from, count);
            else
                places(count);
        _mm_lfence();
        uint64_t took = __rdtsc() - begun;
        least = took < least ? took : least;
    }
    return least / (before != NULL ? 1 : AGAIN);
}

int main(int count, char **arguments)
{
    static const size_t sizes[] = { 64, 128, 256, 512, 1024, 2048, 4096 };
    static const struct {
        const char *name;
        copy *copies;
        void (*places)(size_t), (*before)(size_t);
    } ways[] = {
        { "copy.loop", by_loop, NULL, NULL },        { "copy.movsb", by_movsb, NULL, NULL },
        { "copy.movsq", by_movsq, NULL, NULL },      { "copy.memcpy", by_memcpy, NULL, NULL },
        { "receive.straight", NULL, straight, sent }, { "receive.room", NULL, by_room, sent },
        { "place.stack", NULL, on_the_stack, NULL }, { "place.kept", NULL, kept, NULL },
        { "place.allocated", NULL, allocated, NULL },
    };
    int rounds = count > 1 ? atoi(arguments[1]) : 2000;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return 1;
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 7 + 1);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        printf("%-18s", ways[way].name);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            memset(to, 0, sizeof to);
            printf(" %7llu", (unsigned long long)least(rounds, sizes[i], ways[way].copies, ways[way].places, ways[way].before));
            if ((ways[way].copies != NULL || ways[way].before != NULL) && (memcmp(from, to, sizes[i]) != 0 || to[sizes[i]] != 0))
                return 1;
        }
        printf("\n");
    }
    return 0;
}
