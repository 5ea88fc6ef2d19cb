/* A list of values that are two bytes in a message and 8,000 in memory: as many as memory is given for, and no more. */

#include "budget_stubs.h"
#include "check.h"

static quill_status keep(void *self, quill_memory *memory, const sequence_Great *values)
{
    (void)memory;
    *(uint32_t *)self = values->_length;
    return QUILL_OK;
}

static const Store_server methods = { keep };

static quill_status ask(uint32_t count, uint32_t *kept)
{
    size_t length = 4 + 2 * (size_t)count;
    uint8_t *body = calloc(length, 1);
    quill_memory memory = { NULL };
    quill_in in = quill_begin_in(body, length, &memory);
    quill_out out = { 0 };
    bool silent = false;
    uint32_t status;

    memcpy(body, &count, sizeof count);
    status = Store_dispatch(&methods, kept, 0, &in, &out, &silent);
    quill_discard(&out);
    quill_release(&memory);
    free(body);
    return status;
}

int main(void)
{
    uint32_t kept = 0;

    CHECK(ask(8000, &kept) == QUILL_OK && kept == 8000);
    CHECK(ask(8000000, &kept) == QUILL_MALFORMED && kept == 8000);
    return 0;
}
