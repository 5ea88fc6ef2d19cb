/* The halves of by_hand.c: a server, which does not come back if all goes well, and its client, which returns 0 then. */

#include <tern.h>

int serve_by_hand(void);
int call_by_hand(void);

/* Work of the server in each call. */
void count_by_hand(struct tern_message *message);
