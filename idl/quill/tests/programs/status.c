/* A client that is told in DCE's way how a call failed: by a result, by a parameter of the interface, and by one that only it has. */

#include "status.h"
#include "check.h"
#include <sys/wait.h>

static quill_status add(void *self, quill_memory *memory, int32_t a, int32_t b, uint32_t *result)
{
    (void)self, (void)memory;
    *result = (uint32_t)(a + b);
    return a < 0 ? 77 : QUILL_OK;
}

static quill_status look(void *self, quill_memory *memory, int32_t a, int32_t *found, uint32_t *ended)
{
    (void)self, (void)memory;
    *found = a + 1;
    *ended = 5;
    return a < 0 ? 78 : QUILL_OK;
}

static quill_status plain(void *self, quill_memory *memory, int32_t a, int32_t *result)
{
    (void)self, (void)memory;
    *result = a;
    return a < 0 ? 79 : QUILL_OK;
}

static const I_server methods = { add, look, plain };

int main(void)
{
    int ends[2];
    uint32_t result = 0, ended = 0, how = 9, why = 9;
    int32_t found = 0;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        exit(quill_serve(ends[1], I_dispatch, &methods, NULL) == QUILL_OK ? 0 : 1);
    }
    close(ends[1]);
    quill_client client = { ends[0], { NULL } };

    CHECK(I_add(&client, 3, 4, &result) == QUILL_OK && result == 7);
    CHECK(I_add(&client, -1, 4, &result) == QUILL_OK && result == 77);
    CHECK(I_look(&client, 3, &found, &ended) == QUILL_OK && found == 4 && ended == 5);
    CHECK(I_look(&client, -1, &found, &ended) == 78);
    CHECK(I_plain(&client, 6, &found, &how, &why) == QUILL_OK && found == 6 && how == 0 && why == 0);
    CHECK(I_plain(&client, -6, &found, &how, &why) == QUILL_OK && how == 0 && why == 79);
    /* Nobody is there any more. */
    shutdown(ends[0], SHUT_RDWR);
    CHECK(I_add(&client, 3, 4, &result) == QUILL_OK && result == QUILL_IO);
    CHECK(I_look(&client, 3, &found, &ended) == QUILL_OK && ended == QUILL_IO);
    CHECK(I_plain(&client, 6, &found, &how, &why) == QUILL_OK && how == QUILL_IO && why == 0);
    quill_release(&client.memory);
    int code = 1;
    CHECK(waitpid(child, &code, 0) == child && code == 0);
    return 0;
}
