/* Both sides of branch.idl in C, whose objects refer to one another: `serve PATH` or `call PATH`. */

#include "branch.h"
#include "check.h"
#include "sockets.h"

#define ACCOUNTS 4

struct office {
    quill_objects objects;
    uint64_t open[ACCOUNTS];
    char names[ACCOUNTS][16];
    int32_t balances[ACCOUNTS];
    uint32_t count;
};

static quill_status add(void *self, quill_memory *memory, int32_t amount, int32_t *result)
{
    (void)memory;
    *result = *(int32_t *)self += amount;
    return QUILL_OK;
}

static const Branch_Account_server account_methods = { .add = add };

static quill_status open_account(void *self, quill_memory *memory, const char *name, uint64_t *result,
                                 Branch_Office_enter_raised *raised)
{
    struct office *office = self;

    (void)memory;
    for (uint32_t i = 0; i < office->count; i++) {
        if (strcmp(office->names[i], name) == 0) {
            raised->Taken.by = office->open[i];
            return 1;
        }
    }
    CHECK(office->count < ACCOUNTS);
    *result = quill_export(&office->objects, Branch_Account_dispatch, &account_methods, &office->balances[office->count]);
    snprintf(office->names[office->count], sizeof office->names[0], "%s", name);
    office->open[office->count++] = *result;
    return QUILL_OK;
}

static quill_status all(void *self, quill_memory *memory, sequence_uint64_t *result)
{
    struct office *office = self;

    result->_buffer = quill_allocate(memory, sizeof office->open);
    for (uint32_t i = 0; i < office->count; i++) {
        if (office->open[i] != 0)
            result->_buffer[result->_length++] = office->open[i];
    }
    return QUILL_OK;
}

static quill_status first(void *self, quill_memory *memory, uint64_t than, Branch_Entry *result)
{
    struct office *office = self;

    (void)memory;
    for (uint32_t i = office->count; i-- > 0;) {
        if (office->open[i] != than)
            *result = (Branch_Entry){ office->names[i], office->open[i] };
    }
    return QUILL_OK;
}

static quill_status close_account(void *self, quill_memory *memory, uint64_t which)
{
    struct office *office = self;

    (void)memory;
    quill_withdraw(&office->objects, which);
    for (uint32_t i = 0; i < office->count; i++) {
        if (office->open[i] == which)
            office->open[i] = 0;
    }
    return QUILL_OK;
}

static quill_status ask(void *self, quill_memory *memory, uint64_t other, int32_t amount, int32_t *result)
{
    (void)self, (void)memory, (void)other;
    *result = amount;
    return QUILL_OK;
}

static const Branch_Office_server office_methods = {
    .enter = open_account, .all = all, .first = first, .close = close_account, .ask = ask,
};

static void call(quill_client *client)
{
    uint64_t one, two, dangling[] = { 0, 99, UINT64_MAX };
    Branch_Office_enter_raised raised;
    sequence_uint64_t found = { 0 };
    Branch_Entry entry;
    int32_t total;

    CHECK(Branch_Office_enter(client, "one", &one, &raised) == QUILL_OK);
    CHECK(Branch_Office_enter(client, "two", &two, &raised) == QUILL_OK && one != two);
    CHECK(Branch_Office_enter(client, "one", &two, &raised) == 1 && raised.Taken.by == one);
    CHECK(Branch_Office_all(client, &found) == QUILL_OK && found._length == 2 && found._buffer[0] == one);
    two = found._buffer[1];
    CHECK(Branch_Office_first(client, one, &entry) == QUILL_OK && entry.held == two && strcmp(entry.name, "two") == 0);
    CHECK(quill_select(client, one) == QUILL_OK);
    CHECK(Branch_Account_add(client, 5, &total) == QUILL_OK && total == 5);
    CHECK(quill_select(client, two) == QUILL_OK);
    CHECK(Branch_Account_add(client, 7, &total) == QUILL_OK && total == 7);
    CHECK(quill_select(client, 0) == QUILL_OK);
    CHECK(Branch_Office_close(client, two) == QUILL_OK);
    dangling[0] = two;
    for (int i = 0; i < 3; i++)
        CHECK(quill_select(client, dangling[i]) == QUILL_NO_OBJECT);
    CHECK(Branch_Office_all(client, &found) == QUILL_OK && found._length == 1);
    CHECK(quill_select(client, one) == QUILL_OK);
    CHECK(Branch_Account_add(client, 5, &total) == QUILL_OK && total == 10);
    quill_release(&client->memory);
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    bool serves = strcmp(arguments[1], "serve") == 0;
    int end = connection(arguments[2], serves);
    if (serves) {
        struct office office = { 0 };
        uint64_t root = quill_export(&office.objects, Branch_Office_dispatch, &office_methods, &office);
        CHECK(quill_serve_objects(end, &office.objects, root) == QUILL_OK);
        free(office.objects.all);
    } else {
        quill_client client = { end, { NULL } };
        call(&client);
    }
    return 0;
}
