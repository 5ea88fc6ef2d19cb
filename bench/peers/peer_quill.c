/* Stubs of quill in C, client and server on the two ends of a Unix-domain socket. */

#include "calls.h"
#include "measure.h"

#include <string.h>
#include <sys/wait.h>

static uint8_t page[BYTES_LEN];

static quill_status tiny(void *self, quill_memory *memory, int32_t a)
{
    (void)self, (void)memory, (void)a;
    return QUILL_OK;
}

static quill_status small(void *self, quill_memory *memory, int32_t a, int16_t b, int16_t c, int32_t *result)
{
    (void)self, (void)memory;
    *result = a + b + c;
    return QUILL_OK;
}

static quill_status str(void *self, quill_memory *memory, const char *text, int32_t *result)
{
    (void)self, (void)memory;
    *result = (int32_t)strlen(text);
    return QUILL_OK;
}

static quill_status length(void *self, quill_memory *memory, const sequence_4096_uint8_t *bytes, int32_t *result)
{
    (void)self, (void)memory;
    *result = (int32_t)bytes->_length;
    return QUILL_OK;
}

static quill_status fetch(void *self, quill_memory *memory, int32_t count, sequence_4096_uint8_t *result)
{
    (void)self, (void)memory;
    result->_length = (uint32_t)count;
    result->_buffer = page;
    return QUILL_OK;
}

static const Calls_server methods = { tiny, small, str, length, fetch };

int main(void)
{
    int end;
    pid_t child = fork_connected(&end);

    if (child == 0) {
        quill_serve(end, Calls_dispatch, &methods, NULL);
        _exit(0);
    }

    quill_client client = { end, { NULL } };
    sequence_4096_uint8_t bytes = { BYTES_LEN, page }, got;
    int32_t result;
    MEASURE("tiny", CALLS, EXPECT(Calls_tiny(&client, 1) == QUILL_OK));
    MEASURE("small", CALLS, EXPECT(Calls_small(&client, 1, 2, 3, &result) == QUILL_OK && result == 6));
    MEASURE("str.100", CALLS, EXPECT(Calls_str(&client, TEXT, &result) == QUILL_OK && result == TEXT_LEN));
    MEASURE("length.4096", CALLS, EXPECT(Calls_length(&client, &bytes, &result) == QUILL_OK && result == BYTES_LEN));
    MEASURE("fetch.4096", CALLS, EXPECT(Calls_fetch(&client, BYTES_LEN, &got) == QUILL_OK && got._length == BYTES_LEN));
    quill_release(&client.memory);
    close(end);
    waitpid(child, NULL, 0);
    return 0;
}
