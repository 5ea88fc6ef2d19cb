/* A pager and handler in C for a thread of another program, which finds all of its registers as they were behind its faults. In each of its works the
 * pager computes with numbers of its own, and asks another server. */

#include "registers.h"

static char page[TERN_PAGE_SIZE] __attribute__((aligned(TERN_PAGE_SIZE)));

/* Work for which the compiler takes vector registers, and a message in the middle of it. */
static void work(void)
{
    own_is_as_it_was("with the pager");
    show_secret();
    tern_resolve("nobody");
    own_is_as_it_was("with the pager, behind a message of its own");
    show_secret();
}

int serve_faults(void *nothing)
{
    static struct tern_state kept = TERN_STATE_INITIAL;
    struct tern_message message = { .partner = TERN_NIL };
    uint32_t flags = 0;

    (void)nothing;
    page[0] = 1; /* so that it is there */
    own_begins(5);
    while (tern_ipc_keeping(&message, flags, TERN_ANY, 0, TERN_TIMEOUTS(0, TERN_NEVER), &kept) == TERN_OK) {
        work();
        flags = 0;
        uint32_t kind = message.kind | ~TERN_KIND_MASK;
        message.label = 0;
        if (kind == TERN_KIND_FAULT) {
            /* The page appears there. */
            message.words[7] = message.words[0] & ~(TERN_PAGE_SIZE - 1);
            message.words[6] = TERN_FPAGE_MEMORY(page, 12, TERN_R | TERN_W);
            flags = TERN_ITEM;
        } else if (kind == TERN_KIND_EXCEPTION) {
            /* It goes on behind the instruction ud2. */
            message.label = TERN_RESUME;
            message.words[2] += 2;
        }
    }
    return 1;
}
