/* Requests to servers, by hand: the C half of what the crate `api` does for Rust. */

#include <tern.h>

/* Labels: interface << 16 | operation. An answer's label is 0 for success. */
enum {
    NAMES_RESOLVE = 2 << 16 | 1,
    CONSOLE_WRITE = 3 << 16 | 0,
    PROCESS_ARGUMENTS = 5 << 16 | 0,
    PROCESS_EXIT = 5 << 16 | 1,
};

#define TEXT_LEN_MAX 56 /* bytes in w1 ... w7 */
#define MORE (1ul << 32) /* in w0: more of the same line follows */

static int call(struct tern_message *message, tern_uid server, uint32_t label)
{
    message->partner = server;
    message->label = label;
    int error = tern_ipc_call(message);
    if (error != TERN_OK)
        return error;
    int is_answer = (message->kind & TERN_KIND_MASK) == (TERN_KIND_REPLY & TERN_KIND_MASK);
    return is_answer && message->label == 0 ? TERN_OK : TERN_BAD_ARGUMENT;
}

tern_uid tern_resolve(const char *name)
{
    struct tern_message message = { 0 };
    size_t len = strlen(name);

    if (len > 16)
        return TERN_NIL;
    memcpy(message.words, name, len);
    return call(&message, tern_home(), NAMES_RESOLVE) == TERN_OK ? message.words[0] : TERN_NIL;
}

size_t tern_arguments(char *buffer, size_t size)
{
    size_t at = 0;

    for (;;) {
        struct tern_message message = { .words = { at } };
        if (call(&message, tern_home(), PROCESS_ARGUMENTS) != TERN_OK)
            return at;
        size_t len = (uint32_t)message.words[0];
        if (len > TEXT_LEN_MAX)
            len = TEXT_LEN_MAX;
        if (len > size - at)
            len = size - at;
        memcpy(buffer + at, message.words + 1, len);
        at += len;
        if (len == 0 || at == size)
            return at;
    }
}

void tern_write(const char *bytes, size_t len)
{
    static tern_uid console;
    int tries = 3;

    while (len > 0 && tries > 0) {
        struct tern_message message = { 0 };
        size_t now = len < TEXT_LEN_MAX ? len : TEXT_LEN_MAX;
        if (console == TERN_NIL)
            console = tern_resolve("console");
        message.words[0] = now | (now < len ? MORE : 0);
        memcpy(message.words + 1, bytes, now);
        int error = call(&message, console, CONSOLE_WRITE);
        if (error == TERN_NO_SUCH || error == TERN_PARTNER_DIED) {
            /* The server was restarted: look it up again. */
            console = TERN_NIL;
            tries--;
            continue;
        }
        if (error != TERN_OK)
            return;
        bytes += now;
        len -= now;
    }
}

void exit(int status)
{
    struct tern_message message = { .words = { (uint64_t)(int64_t)status } };

    call(&message, tern_home(), PROCESS_EXIT);
    for (;;) {
        /* Nobody is left to tell. */
        uint64_t words[6] = { TERN_NIL };
        tern_control(TERN_THREAD_CONTROL, TERN_THREAD_DESTROY, words);
    }
}
