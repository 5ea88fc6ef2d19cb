/* <time.h>, and sleep. Judged by the kernel's clock alone, and only from below. */

#include "check.h"

#include <errno.h>
#include <string.h>
#include <tern.h>
#include <time.h>
#include <unistd.h>

void clocks(void)
{
    struct timespec before, after, short_time = { 0, 3000000 }, wrong = { 0, 1000000000 };
    time_t moment = 1000000000;
    struct tm date;
    char text[32];

    uint64_t begin = tern_clock();
    CHECK(usleep(2000) == 0 && tern_clock() - begin >= 2000000);
    begin = tern_clock();
    CHECK(nanosleep(&short_time, NULL) == 0 && tern_clock() - begin >= 3000000);
    CHECK(nanosleep(&wrong, NULL) == -1 && errno == EINVAL);
    CHECK(sleep(0) == 0);
    CHECK(clock_gettime(CLOCK_MONOTONIC, &before) == 0 && clock_gettime(CLOCK_MONOTONIC, &after) == 0);
    CHECK(after.tv_sec > before.tv_sec || (after.tv_sec == before.tv_sec && after.tv_nsec >= before.tv_nsec));
    /* Tern was not there before, and this is of no use after. */
    CHECK(time(NULL) > 1700000000 && time(NULL) < 7000000000);
    CHECK(clock() != (clock_t)-1);
    CHECK(gmtime_r(&moment, &date) != NULL && date.tm_year == 101 && date.tm_mon == 8 && date.tm_mday == 9 && date.tm_hour == 1);
    CHECK(strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &date) == 19 && strcmp(text, "2001-09-09 01:46:40") == 0);
    CHECK(mktime(&date) == moment && difftime(5, 3) == 2);
}
