/* Clocks and sleep as POSIX has them. */

#include "thread.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) {
        errno = EINVAL;
        return -1;
    }
    *time = tern_timespec(clock == CLOCK_REALTIME ? tern_wall_clock() : tern_clock());
    return 0;
}

int nanosleep(const struct timespec *duration, struct timespec *left)
{
    if (thrd_sleep(duration, left) == 0)
        return 0;
    errno = EINVAL;
    return -1;
}

unsigned sleep(unsigned seconds)
{
    tern_sleep_until(tern_clock() + seconds * SECOND_NS);
    return 0;
}

int usleep(useconds_t us)
{
    tern_sleep_until(tern_clock() + us * 1000ul);
    return 0;
}
