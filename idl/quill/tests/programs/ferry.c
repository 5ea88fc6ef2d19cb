/* Both sides of ferry.idl in C, whose parameters are pipes: `serve PATH` or `call PATH`. */

#include "ferry.h"
#include "check.h"
#include "sockets.h"

/* --- the server --- */

static quill_status load(void *self, quill_memory *memory, const numbers *weights, const items *all, int64_t *total)
{
    (void)self, (void)memory;
    *total = 0;
    for (uint32_t i = 0; i < weights->_length; i++)
        *total += weights->_buffer[i];
    for (uint32_t i = 0; i < all->_length; i++)
        *total += all->_buffer[i].weight;
    return QUILL_OK;
}

static quill_status unload(void *self, quill_memory *memory, int32_t count, numbers *weights, labels *names)
{
    (void)self;
    weights->_buffer = quill_allocate(memory, ((size_t)count + 1) * sizeof *weights->_buffer);
    names->_buffer = quill_allocate(memory, ((size_t)count + 1) * sizeof *names->_buffer);
    weights->_length = names->_length = (uint32_t)count;
    for (int32_t i = 0; i < count; i++) {
        char *name = quill_allocate(memory, 20);
        snprintf(name, 20, "item %d", i);
        weights->_buffer[i] = i;
        names->_buffer[i] = name;
    }
    return QUILL_OK;
}

static quill_status turn(void *self, quill_memory *memory, items *all)
{
    (void)self, (void)memory;
    for (uint32_t i = 0, j = all->_length; i < j; i++) {
        item one = all->_buffer[i], other = all->_buffer[--j];
        one.fragile = !one.fragile;
        other.fragile = i == j ? one.fragile : !other.fragile;
        all->_buffer[i] = other;
        all->_buffer[j] = one;
    }
    return QUILL_OK;
}

static quill_status seal(void *self, quill_memory *memory, const sequence_100_uint8_t *m, int32_t *sum)
{
    (void)self, (void)memory;
    *sum = 0;
    for (uint32_t i = 0; i < m->_length; i++)
        *sum += m->_buffer[i];
    return QUILL_OK;
}

static const ferry_server methods = { .load = load, .unload = unload, .turn = turn, .seal = seal };

/* --- its client --- */

static void call(quill_client *client)
{
    static int32_t many[1000000];
    static uint8_t marks_[101];
    numbers none = { 0 }, some = { 1000000, many }, weights;
    items all = { 0 };
    item five[5];
    labels names;
    int64_t total = 7;
    int32_t sum;

    CHECK(ferry_load(client, &none, &all, &total) == QUILL_OK && total == 0);
    for (int i = 0; i < 1000000; i++)
        many[i] = 3;
    CHECK(ferry_load(client, &some, &all, &total) == QUILL_OK && total == 3000000);
    CHECK(ferry_unload(client, 3, &weights, &names) == QUILL_OK && weights._length == 3 && weights._buffer[2] == 2);
    CHECK(names._length == 3 && strcmp(names._buffer[1], "item 1") == 0);
    CHECK(ferry_unload(client, 0, &weights, &names) == QUILL_OK && weights._length == 0 && names._length == 0);
    for (int i = 0; i < 5; i++)
        five[i] = (item){ i, i % 3 == 0 };
    all = (items){ 5, five };
    CHECK(ferry_turn(client, &all) == QUILL_OK && all._length == 5);
    CHECK(all._buffer[0].weight == 4 && all._buffer[0].fragile && all._buffer[4].weight == 0 && !all._buffer[4].fragile);
    CHECK(all._buffer[2].weight == 2 && all._buffer[2].fragile);
    memset(marks_, 1, sizeof marks_);
    CHECK(ferry_seal(client, &(sequence_100_uint8_t){ 100, marks_ }, &sum) == QUILL_OK && sum == 100);
    CHECK(ferry_seal(client, &(sequence_100_uint8_t){ 101, marks_ }, &sum) == QUILL_TOO_LONG);
    CHECK(ferry_seal(client, &(sequence_100_uint8_t){ 1, marks_ }, &sum) == QUILL_OK && sum == 1);
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    if (strcmp(arguments[1], "serve") == 0) {
        int end = connection(arguments[2], true);
        CHECK(quill_serve(end, ferry_dispatch, &methods, NULL) == QUILL_OK);
        close(end);
    } else {
        quill_client client = { connection(arguments[2], false), { NULL } };
        call(&client);
        quill_release(&client.memory);
    }
    return 0;
}
