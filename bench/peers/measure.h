/* Measure of all peers: batches of calls, the median of their times. */

#ifndef MEASURE_H
#define MEASURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 15
#define WARM 200

static inline uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Forks; parent and child have the two ends of a Unix-domain socket. Gives back what fork does. */
static inline pid_t fork_connected(int *end)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        exit(1);
    pid_t child = fork();
    *end = ends[child == 0];
    close(ends[child != 0]);
    return child;
}

static inline int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Prints the name and the nanoseconds of a call. */
#define MEASURE(name, calls, call)                                      \
    do {                                                                \
        uint64_t times[BATCHES];                                        \
        for (int warm = 0; warm < WARM; warm++)                         \
            call;                                                       \
        for (int batch = 0; batch < BATCHES; batch++) {                 \
            uint64_t begin = now_ns();                                  \
            for (int done = 0; done < (calls); done++)                  \
                call;                                                   \
            times[batch] = (now_ns() - begin) / (calls);                \
        }                                                               \
        qsort(times, BATCHES, sizeof times[0], ascending);              \
        printf("%s %llu\n", name, (unsigned long long)times[BATCHES / 2]); \
    } while (0)

/* An answer that is wrong ends the program. */
#define EXPECT(condition)                                               \
    do {                                                                \
        if (!(condition)) {                                             \
            fprintf(stderr, "wrong answer: %s\n", #condition);          \
            exit(1);                                                    \
        }                                                               \
    } while (0)

#define CALLS 400
#define TEXT "one hundred bytes of text: 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 012345"
#define TEXT_LEN ((int)sizeof TEXT - 1)
#define BYTES_LEN 4096

#endif
