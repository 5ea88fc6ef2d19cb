/* Numbers to text and back: <stdlib.h>, <inttypes.h>, <math.h>, printf and its like, sscanf. */

/* That texts are cut is what is tested. */
#pragma GCC diagnostic ignored "-Wformat-truncation"

#include "check.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* strtol of a text: its value, what is left of the text, and what errno says. */
static int reads(const char *text, int base, long value, const char *rest, int error)
{
    char *end;

    errno = 0;
    return strtol(text, &end, base) == value && strcmp(end, rest) == 0 && errno == error;
}

void numbers(void)
{
    char *end;

    CHECK(reads("  42 birds", 10, 42, " birds", 0));
    CHECK(reads("-0x1fz", 0, -31, "z", 0) && reads("0755", 0, 493, "", 0) && reads("zz", 36, 1295, "", 0));
    CHECK(reads("none", 10, 0, "none", 0) && reads("", 10, 0, "", 0));
    CHECK(reads("9223372036854775807", 10, LONG_MAX, "", 0) && reads("9223372036854775808", 10, LONG_MAX, "", ERANGE));
    CHECK(reads("-9223372036854775809", 10, LONG_MIN, "", ERANGE));
    CHECK(strtoul("18446744073709551615", NULL, 10) == ULONG_MAX && strtoull("ff", NULL, 16) == 255);
    CHECK(strtoll("-12", &end, 10) == -12 && *end == 0 && strtoimax("7", NULL, 10) == 7 && strtoumax("8", NULL, 10) == 8);
    CHECK(atoi("-17x") == -17 && atol("99") == 99 && atoll("123456789012") == 123456789012);
    CHECK(strtod("2.5e3xyz", &end) == 2500 && strcmp(end, "xyz") == 0);
    CHECK(strtod("0.1", NULL) == 0.1 && strtof("1.5", NULL) == 1.5f && atof("-3.25") == -3.25 && strtod("0x1p-3", NULL) == 0.125);
    CHECK(isinf(strtod("inf", NULL)) && isnan(strtod("nan", NULL)) && strtod("1e400", NULL) == HUGE_VAL);
    CHECK(abs(-3) == 3 && labs(-4) == 4 && llabs(-5) == 5);
    CHECK(div(-7, 2).quot == -3 && div(-7, 2).rem == -1 && ldiv(9, 4).rem == 1 && lldiv(9, 4).quot == 2);
    CHECK(sqrt(2) * sqrt(2) - 2 < DBL_EPSILON * 4 && pow(2, 10) == 1024 && fabs(-1.5) == 1.5 && floor(-1.5) == -2);
    CHECK(fabs(sin(1) - 0.8414709848078965) < 1e-15 && fabs(exp(1) - 2.718281828459045) < 1e-15 && lround(2.5) == 3);
}

static int says(const char *expected, const char *format, ...)
{
    char text[128];
    va_list arguments;

    va_start(arguments, format);
    int len = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return len == (int)strlen(expected) && strcmp(text, expected) == 0;
}

void formats(void)
{
    char text[8], more[64];
    int a, len;
    unsigned b;
    double d;

    CHECK(snprintf(text, sizeof text, "%d birds", 1234567) == 13 && strcmp(text, "1234567") == 0);
    CHECK(snprintf(NULL, 0, "%s", "length") == 6 && sprintf(more, "%c%c", 'o', 'k') == 2 && strcmp(more, "ok") == 0);
    CHECK(says("-42 42 2a 2A 52", "%d %u %x %X %o", -42, 42u, 42u, 42u, 42u));
    CHECK(says("   42|42   |00042|+42| 42|0x2a", "%5d|%-5d|%05d|%+d|% d|%#x", 42, 42, 42, 42, 42, 42));
    CHECK(says("  abc|abc  |ab", "%5s|%-5s|%.2s", "abc", "abc", "abc") && says("  7|7.500", "%*d|%.*f", 3, 7, 3, 7.5));
    CHECK(says("-9223372036854775808 18446744073709551615", "%ld %lu", LONG_MIN, ULONG_MAX));
    CHECK(says("255 -1 12 13", "%hhu %hd %zu %jd", (unsigned char)255, (short)-1, (size_t)12, (intmax_t)13));
    CHECK(says("3.141593 3.14 3.141590e+00 3.14159 1e+100 inf nan", "%f %.2f %e %g %g %f %f", 3.14159265, 3.14159265, 3.14159,
               3.14159, 1e100, INFINITY, (double)NAN));
    CHECK(says("0.1 0.10000000000000001 0x1p-3", "%g %.17g %a", 0.1, 0.1, 0.125) && says("100%", "%d%%", 100));
    CHECK(says("0x1000", "%p", (void *)0x1000));
    CHECK(sscanf("12 0x1f 2.5 word rest", "%d %x %lf %63s%n", &a, &b, &d, more, &len) == 4);
    CHECK(a == 12 && b == 31 && d == 2.5 && strcmp(more, "word") == 0 && len == 16);
    CHECK(sscanf("x", "%d", &a) == 0 && sscanf("", "%d", &a) == EOF);
    CHECK(sscanf("key=value", "%[a-z]=%s", more, more + 32) == 2 && strcmp(more + 32, "value") == 0);
    CHECK(fprintf(stdout, "%s", "") == 0 && fputs("", stderr) >= 0 && fflush(stdout) == 0);
    CHECK(fopen("/nowhere", "r") == NULL && errno == ENOENT);
}
