/* Whatever the compiler relies on across a message, beside what it keeps on the stack. A partner that has changed all of it (tests/guest/hostile)
 * changes none of these. */

#include "registers.h"

#include <errno.h>
#include <fenv.h>
#include <string.h>

int failures;

static _Thread_local struct {
    int number;
    uint64_t calls;
    double sum;
    uint32_t mxcsr;
    uint16_t control;
} own;

static volatile double three = 3.0;
static volatile long double three_long = 3.0L;

void check(int is_so, const char *what, const char *when)
{
    if (is_so)
        return;
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
    printf("REGISTERS-C FAILED: %s %s\n", what, when);
}

/* MXCSR without the flags of what was computed, and the control word. */
static uint32_t mxcsr(void)
{
    uint32_t mxcsr;

    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    return mxcsr & ~0x3fu;
}

static uint16_t control(void)
{
    uint16_t control;

    __asm__ volatile("fnstcw %0" : "=m"(control));
    return control;
}

/* Status and tags of x87: no exception is pending, and all registers are free. */
static int is_x87_free(void)
{
    struct { uint32_t words[7]; } environment;

    __asm__ volatile("fnstenv %0\n\tfldenv %0" : "=m"(environment));
    return (uint16_t)environment.words[2] == 0xffff && (environment.words[1] & 0x80) == 0;
}

static uint64_t flags(void)
{
    uint64_t flags;

    __asm__ volatile("pushfq\n\tpop %0" : "=r"(flags));
    return flags;
}

void own_begins(int number)
{
    /* One thread rounds up, another one down. */
    fesetround(number % 2 ? FE_UPWARD : FE_DOWNWARD);
    memset(&own, 0, sizeof own);
    own.number = number;
    own.mxcsr = mxcsr();
    own.control = control();
    errno = 1000 + number;
}

/* A third, as the thread rounds. */
static int is_a_third(void)
{
    double third = 1.0 / three;
    long double third_long = 1.0L / three_long;
    double wanted = own.number % 2 ? 0x1.5555555555556p-2 : 0x1.5555555555555p-2;
    long double wanted_long = own.number % 2 ? 0xa.aaaaaaaaaaaaaabp-5L : 0xa.aaaaaaaaaaaaaaap-5L;

    return third == wanted && third_long == wanted_long;
}

void own_is_as_it_was(const char *when)
{
    enum { DIRECTION = 1 << 10, ALIGNMENT = 1 << 18 };

    check((flags() & (DIRECTION | ALIGNMENT)) == 0, "flags", when);
    check(own.number != 0, "thread-local numbers", when);
    check(mxcsr() == own.mxcsr, "MXCSR", when);
    check(control() == own.control, "the control word", when);
    check(is_x87_free(), "x87", when);
    check(errno == 1000 + own.number, "errno", when);
    check(own.sum == 0.5 * own.calls, "a sum of doubles", when);
    check(is_a_third(), "a third", when);
    own.sum += 0.5;
    own.calls++;
}
