/* Both sides of till.idl in C, whose amounts are fixed-point numbers: `serve PATH` or `call PATH`. */

#include "till.h"
#include "check.h"
#include "sockets.h"

/* --- the server --- */

static quill_status sum(void *self, quill_memory *memory, const Till_Lines *all, quill_fixed_18_0 *count,
                        quill_fixed_9_2 *result)
{
    (void)self, (void)memory;
    *result = 0;
    for (uint32_t i = 0; i < all->_length; i++)
        *result += all->_buffer[i].price;
    *count = all->_length;
    return *result > 999999999 ? 7 : QUILL_OK;
}

static quill_status pay(void *self, quill_memory *memory, const Till_Paid *given, quill_fixed_9_2 *due,
                        Till_Desk_pay_raised *raised)
{
    (void)self, (void)memory;
    if (given->_d && given->_u.cash < *due) {
        raised->Owing.by = *due - given->_u.cash;
        return 1;
    }
    *due = given->_d ? *due - given->_u.cash : 0;
    return QUILL_OK;
}

static quill_status dearest(void *self, quill_memory *memory, const Till_Prices *all, quill_fixed_9_2 *result)
{
    (void)self, (void)memory;
    if (all->_length == 0)
        return 8;
    *result = all->_buffer[0];
    for (uint32_t i = 1; i < all->_length; i++)
        *result = all->_buffer[i] > *result ? all->_buffer[i] : *result;
    return QUILL_OK;
}

static const Till_Desk_server methods = { .sum = sum, .pay = pay, .dearest = dearest };

/* --- its client --- */

static void call(quill_client *client)
{
    Till_Line lines[2] = { { "tea", 1, -99999 }, { "milk", -300, 5 } };
    Till_Lines all = { 2, lines };
    Till_Paid given = { ._d = true, ._u = { .cash = 50 } };
    quill_fixed_9_2 prices[3] = { 7, 999999999, -999999999 }, due = 20, found;
    Till_Desk_pay_raised raised;
    quill_fixed_18_0 count;

    CHECK(Till_Desk_sum(client, &all, &count, &found) == QUILL_OK && count == 2 && found == -299);
    CHECK(Till_Desk_pay(client, &given, &due, &raised) == QUILL_OK && due == -30);
    due = 70;
    CHECK(Till_Desk_pay(client, &given, &due, &raised) == 1 && raised.Owing.by == 20);
    given = (Till_Paid){ ._d = false, ._u = { .card = { 1, 2, 3, 4 } } };
    CHECK(Till_Desk_pay(client, &given, &due, &raised) == QUILL_OK && due == 0);
    CHECK(Till_Desk_dearest(client, &(Till_Prices){ 3, prices }, &found) == QUILL_OK && found == 999999999);
    /* Digits that the type does not have are found out before anything is sent. */
    lines[0].weight = 100000;
    CHECK(Till_Desk_sum(client, &all, &count, &found) == QUILL_MALFORMED);
    due = -1000000000;
    CHECK(Till_Desk_pay(client, &given, &due, &raised) == QUILL_MALFORMED);
    prices[2]--;
    CHECK(Till_Desk_dearest(client, &(Till_Prices){ 3, prices }, &found) == QUILL_MALFORMED);
    CHECK(Till_Desk_dearest(client, &(Till_Prices){ 2, prices }, &found) == QUILL_OK);
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    bool serves = strcmp(arguments[1], "serve") == 0;
    int end = connection(arguments[2], serves);
    if (serves) {
        CHECK(quill_serve(end, Till_Desk_dispatch, &methods, NULL) == QUILL_OK);
    } else {
        quill_client client = { end, { NULL } };
        call(&client);
        quill_release(&client.memory);
    }
    return 0;
}
