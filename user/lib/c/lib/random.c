/* Random numbers, for `arc4random` and its like. */

#include "thread.h"

#include <cpuid.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static int has_rdseed(void)
{
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_RDSEED) != 0;
}

static int has_rdrand(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_RDRND) != 0;
}

/* A number of the processor's, if it has them and one is there; else 0. */
static uint64_t from_processor(void)
{
    uint64_t number = 0;
    unsigned char came = 0;

    for (int tries = 0; tries < 10 && !came; tries++) {
        if (has_rdseed())
            __asm__ volatile("rdseed %0; setc %1" : "=r"(number), "=qm"(came) : : "cc");
        if (!came && has_rdrand())
            __asm__ volatile("rdrand %0; setc %1" : "=r"(number), "=qm"(came) : : "cc");
        if (!came && !has_rdseed() && !has_rdrand())
            break;
    }
    return came ? number : 0;
}

/* Where the processor has no random numbers these can be guessed with some effort: they are made of time and the thread's number. */
int getentropy(void *bytes, size_t len)
{
    static uint64_t count;

    if (len > 256) {
        errno = EIO;
        return -1;
    }
    for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
        uint64_t word = __builtin_ia32_rdtsc() ^ tern_thread_own()->uid * 0x9e3779b97f4a7c15;
        word += __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) * 0xd6e8feb86659fd93;
        word = (word ^ word >> 33) * 0xff51afd7ed558ccd;
        word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53;
        word ^= word >> 33 ^ from_processor();
        memcpy((char *)bytes + at, &word, len - at < sizeof word ? len - at : sizeof word);
    }
    return 0;
}
