/* Calls over L4's V4 API whose stubs are counted: each has a client's function with its arguments, a server, and what travels. */
#ifndef L4_V4_CALLS_H
#define L4_V4_CALLS_H

#include <stdint.h>

enum { CLIENT = 0x40001, SERVER = 0x80001 };

/* How many bytes each item has; 0 is behind the last. */
struct message {
    uint32_t tag, items[8];
};

struct call {
    void (*client)(void), (*server)(void);
    uint32_t words, arguments[48]; /* of the client's function */
    struct message request, reply;
};

extern const struct call calls[];
extern const uint32_t calls_count;

#endif
