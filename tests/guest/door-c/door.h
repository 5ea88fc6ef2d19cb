/* The parts of this program: tests of doors from C (door.c), and calls that somebody counts (counted.c). */
#ifndef DOOR_H
#define DOOR_H

#include <tern.h>

/* Starts a thread, with the caller's pager, handler and priority. TERN_NIL if that fails. */
tern_uid start_server(void (*serve)(void));

/* Makes calls of known kinds and sizes, says so under the name "counted", and stays. The status, if that fails. */
int make_counted_calls(void);

/* Waits for the name "counted". */
int await_counted_calls(void);

#endif
