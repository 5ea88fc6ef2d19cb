/* Requests of programs to servers, by stubs: the twin in C of the crate `api`. */

#include <stdlib.h>
#include <unistd.h>

#include <system.h>
#include <tern.h>

tern_uid tern_resolve(const char *name)
{
    uint8_t bytes[16] = { 0 };
    uint64_t server;
    size_t len = strlen(name);

    if (len > sizeof bytes)
        return TERN_NIL;
    memcpy(bytes, name, len);
    return System_Names_resolve(tern_home(), bytes, &server) == QUILL_OK ? server : TERN_NIL;
}

size_t tern_arguments(char *buffer, size_t size)
{
    size_t at = 0;

    for (;;) {
        System_Bytes text;
        uint32_t total;
        if (System_Process_arguments(tern_home(), (uint32_t)at, &total, &text) != QUILL_OK)
            return at;
        size_t len = text._length < size - at ? text._length : size - at;
        memcpy(buffer + at, text._buffer, len);
        at += len;
        if (len == 0 || at == size)
            return at;
    }
}

/* Status of a program that prints where nobody reads any more, and the pipe's refusal that says so. */
enum { STATUS_CLOSED = 141, CLOSED = 23 };

/* A server that bytes go to or come from: the console, looked up when it is first needed and again when it was restarted, or a pipe in its place, whose thread
 * a variable of the environment names. */
struct end {
    const char *variable;
    tern_uid server;
    int is_known, is_pipe;
};

static struct end output = { .variable = "TERN_OUTPUT" }, input = { .variable = "TERN_INPUT" }, complaints;

int tern_is_piped(int file)
{
    const char *variable = file == 0 ? input.variable : file == 1 ? output.variable : NULL;

    return variable != NULL && getenv(variable) != NULL;
}

static tern_uid server_of(struct end *end)
{
    if (!end->is_known) {
        const char *text = end->variable != NULL ? getenv(end->variable) : NULL;
        end->is_known = 1;
        end->server = text != NULL ? strtoull(text, NULL, 16) : TERN_NIL;
        end->is_pipe = end->server != TERN_NIL;
    }
    if (end->server == TERN_NIL)
        end->server = tern_resolve("console");
    return end->server;
}

static int has_ended(quill_status status)
{
    return status == (QUILL_KERNEL | TERN_NO_SUCH) || status == (QUILL_KERNEL | TERN_PARTNER_DIED);
}

/* Whether a server is to be looked up once more: a console that was restarted, or the console in the place of a pipe that is for somebody else. */
static int is_gone(struct end *end, quill_status status)
{
    enum { DENIED = 3 };

    if (end->is_pipe ? status != DENIED : !has_ended(status))
        return 0;
    end->server = TERN_NIL;
    end->is_pipe = 0;
    return 1;
}

static void write_to(struct end *end, const char *bytes, size_t len)
{
    int tries = 3;

    while (len > 0 && tries > 0) {
        System_Bytes text = { ._length = len < System_BYTES_MAX ? len : System_BYTES_MAX };
        memcpy(text._buffer, bytes, text._length);
        quill_status status = System_Console_write(server_of(end), &text, text._length < len);
        if (end->is_pipe && (status == CLOSED || has_ended(status)))
            _exit(STATUS_CLOSED);
        if (is_gone(end, status)) {
            tries--;
            continue;
        }
        if (status != QUILL_OK)
            return;
        bytes += text._length;
        len -= text._length;
    }
}

void tern_write(const char *bytes, size_t len)
{
    write_to(&output, bytes, len);
}

void tern_complain(const char *bytes, size_t len)
{
    write_to(&complaints, bytes, len);
}

long tern_read(char *bytes, size_t size)
{
    for (int tries = 3; tries > 0; tries--) {
        System_Bytes text;
        quill_status status = System_Console_read(server_of(&input), size < System_BYTES_MAX ? (uint32_t)size : System_BYTES_MAX, &text);
        if (status == QUILL_OK && text._length <= size) {
            memcpy(bytes, text._buffer, text._length);
            return text._length;
        }
        if (input.is_pipe && has_ended(status))
            return 0;
        if (!is_gone(&input, status))
            break;
    }
    return -1;
}
