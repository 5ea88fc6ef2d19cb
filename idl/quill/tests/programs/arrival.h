/* Messages that a debugger lets arrive where stubs have called the kernel: what rax and rdx are, the words, and how long strings are that came in
 * memory, each with the word of the room that says so. */
#ifndef ARRIVAL_H
#define ARRIVAL_H

#include <stdint.h>

struct arrival {
    uint64_t rax, rdx, words[11];
    struct {
        uint64_t *at, value;
    } lengths[8];
};

extern const struct arrival requests[], replies[];

#endif
