/* The C library as C programs find it on Tern: functions of each header, against the values that the C standard wants. Without
 * arguments it runs all tests, with a name that one; `input` reads what somebody types, `variables` prints the
 * environment, `sum` tells how much it was given, `assert`, `abort` and `exit` end in their ways. */

#include "check.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures;

void check_at(int is_so, const char *file, int line, const char *what)
{
    if (is_so)
        return;
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
    printf("C FAILED: %s:%d: %s\n", file, line, what);
}

#define CASE(name) { #name, name }

static const struct {
    const char *name;
    void (*function)(void);
} cases[] = {
    CASE(strings), CASE(numbers), CASE(formats), CASE(memory), CASE(utilities), CASE(clocks),
    CASE(threads), CASE(locks), CASE(conditions), CASE(storage), CASE(crowded),
};

static int began;

__attribute__((constructor)) static void constructor(void)
{
    began = 1;
}

static void goodbye(void)
{
    printf("goodbye"); /* without the end of a line: the library writes it out at the end */
}

/* Number, length and a sum of texts: bytes that are lost, or in other places, make another sum. */
static void sum(const char *kind, char **texts)
{
    unsigned int count = 0, bytes = 0, all = 0;

    for (; texts[count] != NULL; count++)
        for (const char *at = texts[count]; *at; at++, bytes++)
            all = all * 31 + (unsigned char)*at;
    printf("C-TEST %u %s of %u bytes, sum %u\n", count, kind, bytes, all);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int before;

    if (strcmp(what, "input") == 0) {
        input();
    } else if (strcmp(what, "assert") == 0) {
        assert(argc == 1);
    } else if (strcmp(what, "abort") == 0) {
        abort();
    } else if (strcmp(what, "exit") == 0) {
        atexit(goodbye);
        exit(7);
    } else if (strcmp(what, "variables") == 0) {
        for (char **variable = environ; *variable != NULL; variable++)
            printf("C-TEST has %s\n", *variable);
        printf("C-TEST has %d words\n", argc);
    } else if (strcmp(what, "sum") == 0) {
        sum("words", argv + 2);
        sum("variables", environ);
    } else {
        CHECK(began);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            if (*what != 0 && strcmp(what, cases[i].name) != 0)
                continue;
            before = failures;
            cases[i].function();
            printf("C %s ... %s\n", cases[i].name, failures == before ? "ok" : "FAILED");
        }
    }
    puts(failures == 0 ? "C-TEST ok" : "C-TEST FAILED");
    return failures != 0;
}
