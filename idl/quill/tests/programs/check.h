/* What the programs in C share: a check that ends them, and numbers as if by chance, the same in each run. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);         \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

static inline uint64_t chance(void)
{
    static uint64_t state = 0x2545f4914f6cdd1du;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
