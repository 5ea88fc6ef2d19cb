/* The halves of by_hand.c and of floor.c: servers, which do not come back if all goes well, and their clients, which return 0 then. */

#include <tern.h>

int serve_by_hand(void);
int call_by_hand(void);
int serve_floor(void);
int call_floor(void);

/* Finds a server that may not have its name yet. */
tern_uid find_server(const char *name);

/* Work of the server in each call. */
void count_by_hand(struct tern_message *message);
