/* Both sides of counter.idl in C: `serve PATH`, for two clients one after the other, and `call PATH`, which is both of them. */

#include "counter.h"
#include "check.h"
#include "sockets.h"

struct state {
    int32_t values[16]; /* of counters, by their handles; 0 is none */
    int counters, marks;
};

/* --- the server --- */

static quill_status open_counter(void *self, quill_memory *memory, int32_t first, uint64_t *result)
{
    struct state *state = self;
    uint64_t handle = 1;

    (void)memory;
    while (handle < 15 && state->values[handle] != 0)
        handle++;
    if (first < 0)
        return 77;
    state->values[handle] = first;
    state->counters++;
    *result = handle;
    return QUILL_OK;
}

static quill_status next_value(void *self, quill_memory *memory, uint64_t c, int32_t *result)
{
    (void)memory;
    *result = c == 0 ? -1 : ((struct state *)self)->values[c]++;
    return QUILL_OK;
}

static void counter_gone(void *self, uint64_t handle)
{
    struct state *state = self;

    CHECK(handle != 0 && handle < 16 && state->values[handle] != 0);
    state->values[handle] = 0;
    state->counters--;
}

static void mark_gone(void *self, uint64_t handle)
{
    CHECK(handle == 5);
    ((struct state *)self)->marks--;
}

static quill_status close_counter(void *self, quill_memory *memory, uint64_t *c)
{
    (void)memory;
    counter_gone(self, *c);
    *c = 0;
    return QUILL_OK;
}

/* Another counter in the place of one, and a mark. */
static quill_status exchange(void *self, quill_memory *memory, uint64_t *c, uint64_t *m)
{
    uint64_t old = *c;
    quill_status status = open_counter(self, memory, 100, c);

    if (old != 0)
        counter_gone(self, old);
    ((struct state *)self)->marks++;
    *m = 5;
    return status;
}

static quill_status erase(void *self, quill_memory *memory, uint64_t m, int32_t *result)
{
    (void)self, (void)memory;
    *result = (int32_t)m;
    return QUILL_OK;
}

static quill_status live(void *self, quill_memory *memory, int32_t *marks, int32_t *result)
{
    (void)memory;
    *marks = ((struct state *)self)->marks;
    *result = ((struct state *)self)->counters;
    return QUILL_OK;
}

static const Counter_server methods = {
    .open = open_counter, .next = next_value, .close = close_counter, .exchange = exchange, .erase = erase, .live = live,
    .counter_t_rundown = counter_gone, .mark_t_rundown = mark_gone,
};

static void serve(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct state state = { { 1 }, 0, 0 };
    int end = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    CHECK(bind(end, (struct sockaddr *)&address, sizeof address) == 0 && listen(end, 1) == 0);
    for (int client = 0; client < 2; client++) {
        int connection = accept(end, NULL, NULL);
        CHECK(quill_serve(connection, Counter_dispatch, &methods, &state) == QUILL_OK);
        close(connection);
        CHECK(state.counters == 0 && state.marks == 0);
    }
}

/* --- its clients --- */

static uint64_t first_client(quill_client *client)
{
    uint64_t one = 0, two = 0, old, mark = 0, none = 0;
    int32_t value, marks;

    CHECK(Counter_open(client, 10, &one) == QUILL_OK && one != 0);
    CHECK(Counter_open(client, 20, &two) == QUILL_OK && two != 0 && two != one);
    CHECK(Counter_open(client, -1, &none) == 77);
    CHECK(Counter_next(client, one, &value) == QUILL_OK && value == 10);
    CHECK(Counter_next(client, two, &value) == QUILL_OK && value == 20);
    CHECK(Counter_next(client, 0, &value) == QUILL_OK && value == -1);
    CHECK(Counter_next(client, 9, &value) == QUILL_NO_CONTEXT && Counter_erase(client, one, &value) == QUILL_NO_CONTEXT);
    old = one;
    CHECK(Counter_close(client, &one) == QUILL_OK && one == 0);
    CHECK(Counter_next(client, old, &value) == QUILL_NO_CONTEXT && Counter_close(client, &old) == QUILL_NO_CONTEXT);
    old = two;
    CHECK(Counter_exchange(client, &two, &mark) == QUILL_OK && two != old && mark == 5);
    CHECK(Counter_next(client, old, &value) == QUILL_NO_CONTEXT);
    CHECK(Counter_next(client, two, &value) == QUILL_OK && value == 100);
    CHECK(Counter_erase(client, mark, &value) == QUILL_OK && value == 5);
    for (int more = 0; more < 9; more++)
        CHECK(Counter_open(client, 1, &one) == QUILL_OK);
    CHECK(Counter_live(client, &marks, &value) == QUILL_OK && value == 10 && marks == 1);
    return two;
}

/* Nothing is left of the first, whose handles are nobody's. */
static void second_client(quill_client *client, uint64_t handle)
{
    int32_t value, marks;

    CHECK(Counter_live(client, &marks, &value) == QUILL_OK && value == 0 && marks == 0);
    CHECK(Counter_next(client, handle, &value) == QUILL_NO_CONTEXT);
    CHECK(Counter_open(client, 3, &handle) == QUILL_OK && Counter_next(client, handle, &value) == QUILL_OK && value == 3);
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    if (strcmp(arguments[1], "serve") == 0) {
        serve(arguments[2]);
        return 0;
    }
    quill_client client = { connection(arguments[2], false), { NULL } };
    uint64_t handle = first_client(&client);
    quill_release(&client.memory);
    close(client.socket);
    client.socket = connection(arguments[2], false);
    second_client(&client, handle);
    quill_release(&client.memory);
    return 0;
}
