/* Both sides in C of an interface with attributes that raise exceptions: `serve PATH` or `call PATH`. The interface stands in `attributes.rs`. */

#include "shop.h"
#include "check.h"
#include "sockets.h"

static bool is_shut;
static int32_t total = 7, drawers = 2;
static char owner[64] = "Ada";

/* --- the server --- */

static quill_status total_of(void *self, quill_memory *memory, int32_t *result, Shop_Till_get_total_raised *raised)
{
    (void)self, (void)memory;
    raised->Closed.why = (char *)(uintptr_t)"shut";
    *result = total;
    return is_shut ? 1 : QUILL_OK;
}

static quill_status owner_of(void *self, quill_memory *memory, char **result, Shop_Till_get_owner_raised *raised)
{
    (void)self, (void)memory;
    raised->Closed.why = (char *)(uintptr_t)"nobody's";
    *result = owner;
    return is_shut ? 1 : QUILL_OK;
}

static quill_status new_owner(void *self, quill_memory *memory, const char *value, Shop_Till_set_owner_raised *raised)
{
    (void)self, (void)memory;
    if (is_shut) {
        raised->Closed.why = (char *)(uintptr_t)"sealed";
        return 2;
    }
    if (strlen(value) >= sizeof owner) {
        raised->Poor.by = (int32_t)(strlen(value) - sizeof owner + 1);
        return 1;
    }
    strcpy(owner, value);
    return QUILL_OK;
}

static quill_status drawers_of(void *self, quill_memory *memory, int32_t *result)
{
    (void)self, (void)memory;
    *result = drawers;
    return QUILL_OK;
}

static quill_status new_drawers(void *self, quill_memory *memory, int32_t value)
{
    (void)self, (void)memory;
    drawers = value;
    return QUILL_OK;
}

static quill_status get_total(void *self, quill_memory *memory, int32_t of, int32_t *result)
{
    (void)self, (void)memory;
    *result = total * of;
    return QUILL_OK;
}

static quill_status shut(void *self, quill_memory *memory, bool how)
{
    (void)self, (void)memory;
    is_shut = how;
    return QUILL_OK;
}

static const Shop_Till_server methods = {
    .get_total_ = total_of, .get_owner = owner_of, .set_owner = new_owner, .get_drawers = drawers_of,
    .set_drawers = new_drawers, .get_total = get_total, .shut = shut,
};

/* --- the client: an operation has the name that it wants before an attribute --- */

static void call(int socket)
{
    quill_client till = { socket, { NULL } };
    Shop_Till_get_total_raised of_total;
    Shop_Till_get_owner_raised of_owner;
    Shop_Till_set_owner_raised of_new_owner;
    char long_name[100] = { 0 }, *name;
    int32_t number;

    CHECK(Shop_Till_get_total_(&till, &number, &of_total) == QUILL_OK && number == 7);
    CHECK(Shop_Till_get_total(&till, 3, &number) == QUILL_OK && number == 21);
    CHECK(Shop_Till_set_owner(&till, "Grace", &of_new_owner) == QUILL_OK);
    CHECK(Shop_Till_get_owner(&till, &name, &of_owner) == QUILL_OK && strcmp(name, "Grace") == 0);
    CHECK(Shop_Till_set_drawers(&till, 5) == QUILL_OK);
    CHECK(Shop_Till_get_drawers(&till, &number) == QUILL_OK && number == 5);
    memset(long_name, 'x', 70);
    CHECK(Shop_Till_set_owner(&till, long_name, &of_new_owner) == 1 && of_new_owner.Poor.by == 7);
    CHECK(Shop_Till_shut(&till, true) == QUILL_OK);
    CHECK(Shop_Till_get_total_(&till, &number, &of_total) == 1 && strcmp(of_total.Closed.why, "shut") == 0);
    CHECK(Shop_Till_get_owner(&till, &name, &of_owner) == 1 && strcmp(of_owner.Closed.why, "nobody's") == 0);
    CHECK(Shop_Till_set_owner(&till, "Ada", &of_new_owner) == 2 && strcmp(of_new_owner.Closed.why, "sealed") == 0);
    quill_release(&till.memory);
}

int main(int count, char **words)
{
    CHECK(count == 3);
    int end = connection(words[2], strcmp(words[1], "serve") == 0);
    if (strcmp(words[1], "serve") == 0)
        CHECK(quill_serve(end, Shop_Till_dispatch, &methods, NULL) == QUILL_OK);
    else
        call(end);
    close(end);
    return 0;
}
