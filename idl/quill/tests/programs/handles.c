/* Handles of types of the file's own: the program finds a server for each, and hears when the call is over. */

#include "status.h"
#include "check.h"
#include <sys/wait.h>

static quill_client all[2];
static unsigned begun, ended;
static quill_client *out;

static quill_client *found(int number)
{
    CHECK(begun++ == ended);
    out = number < 0 ? NULL : &all[number];
    if (!out)
        begun--;
    return out;
}

static void over(quill_client *server)
{
    CHECK(++ended == begun && server == out);
}

quill_client *store_t_bind(const store_t *store)
{
    return found(store ? (int)store->number : 1);
}

void store_t_unbind(const store_t *store, quill_client *server)
{
    CHECK((store ? store->number : 1) == server - all);
    over(server);
}

quill_client *name_t_bind(const char *name)
{
    return found(!name || *name == 'a' ? 0 : 1);
}

void name_t_unbind(const char *name, quill_client *server)
{
    CHECK(!name || *name);
    over(server);
}

quill_client *box_t_bind(int32_t box)
{
    return found(box);
}

/* The handle may have come back as another one. */
void box_t_unbind(int32_t box, quill_client *server)
{
    CHECK(box >= 0);
    over(server);
}

quill_client *I_binding(void)
{
    return &all[1];
}

/* The server: whatever it is called by arrives as well. */

static quill_status who(void *self, quill_memory *memory, const store_t *store, int32_t *result)
{
    (void)memory;
    *result = *(int32_t *)self + store->shelf;
    return QUILL_OK;
}

static quill_status add(void *self, quill_memory *memory, int32_t b, int32_t a, uint32_t *result)
{
    (void)memory;
    *result = (uint32_t)(*(int32_t *)self + a + b);
    return a < 0 ? 77 : QUILL_OK;
}

static quill_status swap(void *self, quill_memory *memory, int32_t *b, int32_t a)
{
    (void)memory;
    (void)self;
    *b = a;
    return QUILL_OK;
}

static quill_status spell(void *self, quill_memory *memory, const char *name, int16_t more, int32_t *result)
{
    (void)memory;
    *result = *(int32_t *)self + (int32_t)strlen(name) + more;
    return QUILL_OK;
}

static quill_status last(void *self, quill_memory *memory, int32_t a, int32_t b, int32_t *result)
{
    (void)memory;
    *result = *(int32_t *)self + a + b;
    return QUILL_OK;
}

static quill_status none(void *self, quill_memory *memory, char *name, int16_t more, int32_t *result)
{
    (void)memory;
    *result = *(int32_t *)self + (name ? 1000 : more);
    return QUILL_OK;
}

static quill_status nothing(void *self, quill_memory *memory, store_t *store, int32_t *result)
{
    (void)memory;
    *result = *(int32_t *)self + (store ? store->shelf : 1);
    return QUILL_OK;
}

static const I_server methods = { who, add, swap, spell, who, who, last, none, nothing };

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
    int32_t result = 0;
    uint32_t sum = 0;

    for (int number = 0; number < 2; number++) {
        int32_t own = 100 * (number + 1), other = 300 - own, box = number;
        store_t store = { number, 5 };
        CHECK(I_who(&store, &result) == QUILL_OK && result == own + 5);
        CHECK(I_add(box, 7, &sum) == QUILL_OK && sum == (uint32_t)(own + number + 7));
        CHECK(I_add(box, -1, &sum) == QUILL_OK && sum == 77);
        CHECK(I_swap(&box, 3) == QUILL_OK && box == 3);
        CHECK(I_spell(number == 0 ? "a" : "bb", 3, &result) == QUILL_OK && result == own + number + 4);
        CHECK(begun == 5 * ((unsigned)number + 1) && ended == begun);
        CHECK(I_at(&all[1 - number], &store, &result) == QUILL_OK && result == other + 5);
        CHECK(I_beside(&all[1 - number], &store, &result) == QUILL_OK && result == other + 5);
        CHECK(I_free(1, 2, &result) == QUILL_OK && result == 203);
        CHECK(ended == 5 * ((unsigned)number + 1));
    }
    store_t nowhere = { -1, 0 };
    CHECK(I_who(&nowhere, &result) == QUILL_IO && begun == 10 && ended == 10);
    CHECK(I_add(-1, 0, &sum) == QUILL_OK && sum == QUILL_IO && ended == 10);
    store_t second = { 1, 6 };
    char name[] = "b";
    CHECK(I_none(NULL, 4, &result) == QUILL_OK && result == 104);
    CHECK(I_none(name, 4, &result) == QUILL_OK && result == 1200);
    CHECK(I_nothing(NULL, &result) == QUILL_OK && result == 201);
    CHECK(I_nothing(&second, &result) == QUILL_OK && result == 206);
    CHECK(begun == 14 && ended == 14);
    for (int number = 0; number < 2; number++) {
        int code = 1;
        shutdown(all[number].socket, SHUT_RDWR);
        CHECK(waitpid(children[number], &code, 0) == children[number] && code == 0);
        quill_release(&all[number].memory);
    }
    return 0;
}
