/* Lines from the console; see terminal.c. */
#ifndef TERN_TERMINAL_H
#define TERN_TERMINAL_H

#include <stddef.h>

/* Waits for a line, or takes what is left of one: at most `size` bytes. 0 is the end, -1 that there is no console. */
long tern_terminal_read(char *bytes, size_t size);

#endif
