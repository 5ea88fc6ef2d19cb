/* Both sides of bank.idl in C: `serve PATH`, `call PATH`, or `damage`, the server alone against damaged requests. */

#include "bank.h"
#include "check.h"
#include "sockets.h"

/* --- the server answers with what it was given --- */

struct echo {
    char owner[64];
    int pings;
};

static quill_status get_balance(void *self, quill_memory *memory, double *result)
{
    (void)self, (void)memory;
    *result = 12.5;
    return QUILL_OK;
}

static quill_status get_owner(void *self, quill_memory *memory, char **result)
{
    (void)memory;
    *result = ((struct echo *)self)->owner;
    return QUILL_OK;
}

static quill_status set_owner_attribute(void *self, quill_memory *memory, const char *value)
{
    (void)memory;
    if (strlen(value) >= sizeof ((struct echo *)self)->owner)
        return 77;
    strcpy(((struct echo *)self)->owner, value);
    return QUILL_OK;
}

static quill_status deposit(void *self, quill_memory *memory, double amount, Bank_Checking_deposit_raised *raised)
{
    (void)self, (void)memory;
    if (amount < 0) {
        raised->Overdrawn.by = -amount;
        raised->Overdrawn.why = (char *)"nothing left";
        return 1;
    }
    return amount == 0 ? 2 : QUILL_OK;
}

static quill_status ping(void *self, quill_memory *memory, int32_t label, const char *body)
{
    (void)memory;
    if (label == 5 && strcmp(body, "knock") == 0)
        ((struct echo *)self)->pings++;
    return QUILL_OK;
}

static quill_status find(void *self, quill_memory *memory, const char *name, Bank_Kind server, Bank_Customer *from,
                         sequence_Bank_Customer *all, sequence_uint8_t *bytes, Bank_Customer *result)
{
    (void)self;
    *result = *from;
    result->name = (char *)name;
    result->kind = server;
    all->_length = 2;
    all->_buffer = quill_allocate(memory, 2 * sizeof *all->_buffer);
    all->_buffer[0] = *result;
    all->_buffer[1] = *from;
    bytes->_length = (uint32_t)strlen(name);
    bytes->_buffer = (uint8_t *)name;
    return QUILL_OK;
}

static quill_status turn(void *self, quill_memory *memory, const Bank_Entry *e, const Bank_Choice *c, Bank_Choice *d,
                         const sequence_Bank_Tree *wood, sequence_Bank_Tree *back, const sequence_Bank_Point *p,
                         sequence_Bank_Point *q, Bank_Entry *result)
{
    (void)self, (void)memory;
    *result = *e;
    *d = *c;
    *back = *wood;
    *q = *p;
    return QUILL_OK;
}

static quill_status many(void *self, quill_memory *memory, bool a, char b, uint32_t c, uint8_t d, int16_t e, uint16_t f,
                         int32_t g, uint32_t h, int64_t i, uint64_t j, float k, double l, int32_t *type,
                         Bank_Flags match, uint32_t *result)
{
    (void)self, (void)memory;
    uint64_t sum = (uint64_t)a + (uint8_t)b + d + (uint64_t)e + f + (uint64_t)g + h + (uint64_t)i + j + match;
    /* Numbers that do not fit are nobody's business here. */
    if (k > -1e9f && k < 1e9f && l > -1e9 && l < 1e9)
        sum += (uint64_t)(int64_t)k + (uint64_t)(int64_t)l;
    *type = (int32_t)sum;
    *result = c;
    return QUILL_OK;
}

static quill_status set_owner(void *self, quill_memory *memory, int32_t value, int32_t *result)
{
    (void)self, (void)memory;
    *result = (int32_t)(0u - (uint32_t)value);
    return QUILL_OK;
}

static const Bank_Checking_server methods = {
    get_balance, get_owner, set_owner_attribute, deposit, ping, find, turn, many, set_owner,
};

/* --- the client --- */

static Bank_Customer customer(const char *name, int32_t *numbers, uint32_t count)
{
    Bank_Customer customer = { 0 };
    customer.name = (char *)name;
    customer.kind = Bank_Loan;
    customer.numbers._length = count;
    customer.numbers._buffer = numbers;
    customer.where.a = 7;
    customer.where.b = 0.5;
    customer.where.c[2] = -3;
    customer.active = true;
    customer.flags = Bank_frozen | Bank_joint;
    return customer;
}

static bool same(const Bank_Customer *a, const Bank_Customer *b)
{
    return strcmp(a->name, b->name) == 0 && a->kind == b->kind && a->numbers._length == b->numbers._length
           && memcmp(a->numbers._buffer, b->numbers._buffer, 4 * a->numbers._length) == 0 && a->where.a == b->where.a
           && a->where.b == b->where.b && memcmp(a->where.c, b->where.c, sizeof a->where.c) == 0
           && a->active == b->active && a->flags == b->flags;
}

static void call_turn(quill_client *client)
{
    Bank_Tree leaves[2] = { { 2, { 0, NULL } }, { 3, { 0, NULL } } };
    Bank_Tree tree = { 1, { 2, leaves } };
    sequence_Bank_Tree wood = { 1, &tree }, back;
    Bank_Point point[2] = { { 1, 2.0, { 3, 4, 5 } }, { 6, -7.0, { 8, 9, 10 } } };
    sequence_Bank_Point p = { 2, point }, q;
    Bank_Entry entry = { 0 }, turned;
    Bank_Choice choice = { 0 }, turned_choice;

    entry._d = Bank_Loan;
    entry._u.text = (char *)"s";
    choice._d = 1;
    choice._u.points = p;
    CHECK(Bank_Checking_turn(client, &entry, &choice, &turned_choice, &wood, &back, &p, &q, &turned) == QUILL_OK);
    CHECK(turned._d == Bank_Loan && strcmp(turned._u.text, "s") == 0);
    CHECK(turned_choice._d == 1 && turned_choice._u.points._buffer[1].c[2] == 10);
    CHECK(back._length == 1 && back._buffer[0].children._buffer[1].value == 3);
    CHECK(q._length == 2 && q._buffer[0].b == 2.0 && q._buffer[1].a == 6);
    choice._d = 77;
    choice._u.other = true;
    CHECK(Bank_Checking_turn(client, &entry, &choice, &turned_choice, &wood, &back, &p, &q, &turned) == QUILL_OK);
    CHECK(turned_choice._d == 77 && turned_choice._u.other);
    choice._d = -2;
    choice._u.w = 0xdf;
    CHECK(Bank_Checking_turn(client, &entry, &choice, &turned_choice, &wood, &back, &p, &q, &turned) == QUILL_OK);
    CHECK(turned_choice._d == -2 && turned_choice._u.w == 0xdf);
    /* What is no value does not leave the client. */
    choice._u.w = 0xd800;
    CHECK(Bank_Checking_turn(client, &entry, &choice, &turned_choice, &wood, &back, &p, &q, &turned)
          == QUILL_MALFORMED);
}

static void call(quill_client *client)
{
    double balance = 0;
    char *owner;
    int32_t numbers[5] = { 1, -2, 3, 0, 0 }, sum, minus;
    uint32_t c;
    Bank_Checking_deposit_raised raised;
    Bank_Customer from = customer("x", numbers, 3), before = from, found;
    sequence_Bank_Customer all;
    sequence_uint8_t bytes;

    CHECK(Bank_Checking_get_balance(client, &balance) == QUILL_OK && balance == 12.5);
    CHECK(Bank_Checking_set_owner_(client, "Ada Lovelace, n\303\251e Byron") == QUILL_OK);
    CHECK(Bank_Checking_get_owner(client, &owner) == QUILL_OK);
    CHECK(strcmp(owner, "Ada Lovelace, n\303\251e Byron") == 0);
    CHECK(Bank_Checking_deposit(client, 1, &raised) == QUILL_OK);
    CHECK(Bank_Checking_deposit(client, -3, &raised) == 1);
    CHECK(raised.Overdrawn.by == 3 && strcmp(raised.Overdrawn.why, "nothing left") == 0);
    CHECK(Bank_Checking_deposit(client, 0, &raised) == 2);
    CHECK(Bank_Checking_ping(client, 5, "knock") == QUILL_OK);
    CHECK(Bank_Checking_find(client, "y", Bank_Savings, &from, &all, &bytes, &found) == QUILL_OK);
    CHECK(strcmp(found.name, "y") == 0 && found.kind == Bank_Savings && same(&from, &before));
    CHECK(all._length == 2 && same(&all._buffer[0], &found) && same(&all._buffer[1], &before));
    CHECK(bytes._length == 1 && bytes._buffer[0] == 'y');
    call_turn(client);
    CHECK(Bank_Checking_many(client, true, 2, 'z', 4, -5, 6, -7, 8, -9, 10, 11.0f, -12.0, &sum, Bank_joint, &c)
          == QUILL_OK);
    CHECK(c == 'z' && sum == 1 + 2 + 4 - 5 + 6 - 7 + 8 - 9 + 10 + 11 - 12 + 2);
    CHECK(Bank_Checking_set_owner(client, 3, &minus) == QUILL_OK && minus == -3);
    CHECK(Bank_Checking_find(client, "longer than eight", Bank_Loan, &from, &all, &bytes, &found) == QUILL_TOO_LONG);
    before = customer("x", numbers, 5);
    CHECK(Bank_Checking_find(client, "y", Bank_Loan, &before, &all, &bytes, &found) == QUILL_TOO_LONG);
    quill_release(&client->memory);
}

/* --- damaged requests --- */

static size_t pick(size_t n)
{
    return n == 0 ? 0 : chance() % n;
}

static void damage(void)
{
    int taken = 0, refused = 0;
    struct echo echo = { 0 };

    for (int run = 0; run < 200000; run++) {
        uint8_t body[160] = { 0 };
        size_t length = pick(sizeof body + 1);
        quill_memory memory = { NULL };
        quill_in in = quill_begin_in(body, length, &memory);
        quill_out out = { 0 };
        bool silent = false;
        for (size_t i = 0; i < length; i++)
            body[i] = (uint8_t)(pick(3) == 0 ? pick(256) : pick(8) == 0 ? pick(9) : 0);
        uint32_t status = Bank_Checking_dispatch(&methods, &echo, (uint32_t)pick(10), &in, &out, &silent);
        refused += status >= QUILL_MALFORMED;
        taken += status == QUILL_OK;
        quill_discard(&out);
        quill_release(&memory);
    }
    printf("%d refused, %d taken\n", refused, taken);
    CHECK(refused > 10000 && taken > 100);
}

int main(int count, char **arguments)
{
    if (count != 3) {
        damage();
        return 0;
    }
    bool serves = strcmp(arguments[1], "serve") == 0;
    int end = connection(arguments[2], serves);
    if (serves) {
        struct echo echo = { 0 };
        CHECK(quill_serve(end, Bank_Checking_dispatch, &methods, &echo) == QUILL_OK);
        CHECK(echo.pings == 1);
    } else {
        quill_client client = { end, { NULL } };
        call(&client);
    }
    return 0;
}
