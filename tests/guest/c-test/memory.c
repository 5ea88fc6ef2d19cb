/* The heap, and what else <stdlib.h> has. */

#include "check.h"

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Blocks of many sizes live and die in a random order; each keeps what was written into it. */
static void churn(void)
{
    enum { BLOCKS = 64 };
    static struct {
        unsigned char *bytes;
        size_t len;
    } blocks[BLOCKS];
    unsigned seed = 1;

    for (int step = 0; step < 4000; step++) {
        int i = rand_r(&seed) % BLOCKS;
        unsigned char mark = (unsigned char)(i * 3 + 1);
        for (size_t at = 0; at < blocks[i].len; at += 17)
            CHECK(blocks[i].bytes[at] == mark);
        size_t len = (size_t)(rand_r(&seed) % 5000) + 1;
        if (rand_r(&seed) % 3 == 0) {
            free(blocks[i].bytes);
            blocks[i].bytes = malloc(len);
        } else {
            blocks[i].bytes = realloc(blocks[i].bytes, len);
        }
        blocks[i].len = len;
        CHECK(blocks[i].bytes != NULL && (uintptr_t)blocks[i].bytes % 16 == 0);
        memset(blocks[i].bytes, mark, len);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i].bytes);
}

void memory(void)
{
    int *zeroes = calloc(1000, sizeof *zeroes);
    char *text = malloc(4);

    for (int i = 0; i < 1000; i++)
        CHECK(zeroes[i] == 0);
    strcpy(text, "abc");
    text = realloc(text, 100000);
    CHECK(text != NULL && strcmp(text, "abc") == 0);
    CHECK(malloc_usable_size(text) >= 100000);
    free(text);
    free(zeroes);
    free(NULL);
    void *aligned = aligned_alloc(4096, 8192);
    CHECK(aligned != NULL && (uintptr_t)aligned % 4096 == 0);
    free(aligned);
    errno = 0;
    volatile size_t too_much = (size_t)1 << 40;
    CHECK(malloc(too_much) == NULL && errno == ENOMEM && calloc(too_much, too_much) == NULL);
    churn();
    /* What was freed is used again: this is more than a program may have in all. */
    for (int i = 0; i < 200; i++) {
        char *block = malloc(1 << 20);
        CHECK(block != NULL);
        block[0] = block[(1 << 20) - 1] = 1;
        free(block);
    }
}

static int ascending(const void *one, const void *other)
{
    return *(const int *)one - *(const int *)other;
}

static jmp_buf back;

void utilities(void)
{
    int list[100], key = 42, *found;
    unsigned seed = 7;

    for (int i = 0; i < 100; i++)
        list[i] = rand_r(&seed) % 1000;
    list[50] = key;
    qsort(list, 100, sizeof list[0], ascending);
    for (int i = 1; i < 100; i++)
        CHECK(list[i - 1] <= list[i]);
    found = bsearch(&key, list, 100, sizeof list[0], ascending);
    CHECK(found != NULL && *found == 42);
    srand(5);
    int first = rand();
    srand(5);
    CHECK(rand() == first && first >= 0);
    CHECK(getenv("SURELY_NOT_THERE") == NULL && setenv("BIRD", "tern", 1) == 0 && strcmp(getenv("BIRD"), "tern") == 0);
    CHECK(setenv("BIRD", "gull", 0) == 0 && strcmp(getenv("BIRD"), "tern") == 0 && unsetenv("BIRD") == 0 && getenv("BIRD") == NULL);
    int value = setjmp(back);
    if (value == 0)
        longjmp(back, 3);
    CHECK(value == 3);
    uint32_t one = arc4random(), other = arc4random(), third = arc4random();
    CHECK(one != other || other != third);
    CHECK(arc4random_uniform(10) < 10);
    char bytes[64] = { 0 }, zeroes[64] = { 0 };
    CHECK(getentropy(bytes, sizeof bytes) == 0 && memcmp(bytes, zeroes, sizeof bytes) != 0);
    CHECK(isatty(STDOUT_FILENO) == 1 && write(9, "x", 1) == -1 && errno == EBADF);
}
