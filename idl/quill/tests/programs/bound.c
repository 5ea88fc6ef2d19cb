/* A client that finds its server itself: by a variable, or with ASKED by a function that is called each time. One operation is told whom to
 * call by a parameter of its own, and one by an attribute file. */

#include "status.h"
#include "check.h"
#include <sys/wait.h>

static quill_client all[2];

#ifdef ASKED
static unsigned asked;
static quill_client *where;

quill_client *I_binding(void)
{
    asked++;
    return where;
}
#else
quill_client *where;
#endif

static quill_status who(void *self, quill_memory *memory, int32_t *result)
{
    (void)memory;
    *result = *(int32_t *)self;
    return QUILL_OK;
}

/* The first parameter is called like the variable. */
static quill_status add(void *self, quill_memory *memory, int32_t a, int32_t b, uint32_t *result)
{
    (void)memory;
    *result = (uint32_t)(a + b + *(int32_t *)self);
    return a < 0 ? 77 : QUILL_OK;
}

static quill_status at(void *self, quill_memory *memory, int32_t a, int32_t *result)
{
    (void)memory;
    *result = a + *(int32_t *)self;
    return QUILL_OK;
}

static const I_server methods = { who, add, at, at };

static pid_t serve(int number)
{
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        int32_t own = 100 * (number + 1);
        close(ends[0]);
        exit(quill_serve(ends[1], I_dispatch, &methods, &own) == QUILL_OK ? 0 : 1);
    }
    close(ends[1]);
    all[number].socket = ends[0];
    return child;
}

int main(void)
{
    pid_t children[2] = { serve(0), serve(1) };
    int32_t found = 0;
    uint32_t sum = 0;

    for (int number = 0; number < 2; number++) {
        int32_t own = 100 * (number + 1), other = 300 - own;
        where = &all[number];
        CHECK(I_who(&found) == QUILL_OK && found == own);
        CHECK(I_add(3, 4, &sum) == QUILL_OK && sum == (uint32_t)own + 7);
        CHECK(I_add(-1, 4, &sum) == QUILL_OK && sum == 77);
        CHECK(I_at(&all[1 - number], 5, &found) == QUILL_OK && found == other + 5);
        CHECK(I_beside(&all[1 - number], 6, &found) == QUILL_OK && found == other + 6);
    }
#ifdef ASKED
    CHECK(asked == 6);
#endif
    for (int number = 0; number < 2; number++) {
        int code = 1;
        shutdown(all[number].socket, SHUT_RDWR);
        CHECK(waitpid(children[number], &code, 0) == children[number] && code == 0);
        quill_release(&all[number].memory);
    }
    return 0;
}
