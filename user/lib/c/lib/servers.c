/* Requests of programs to servers, by stubs: the twin in C of the crate `api`. */

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

void tern_write(const char *bytes, size_t len)
{
    static tern_uid console;
    int tries = 3;

    while (len > 0 && tries > 0) {
        System_Bytes text = { ._length = len < System_BYTES_MAX ? len : System_BYTES_MAX };
        memcpy(text._buffer, bytes, text._length);
        if (console == TERN_NIL)
            console = tern_resolve("console");
        quill_status status = System_Console_write(console, &text, text._length < len);
        if (status == (QUILL_KERNEL | TERN_NO_SUCH) || status == (QUILL_KERNEL | TERN_PARTNER_DIED)) {
            /* The server was restarted: look it up again. */
            console = TERN_NIL;
            tries--;
            continue;
        }
        if (status != QUILL_OK)
            return;
        bytes += text._length;
        len -= text._length;
    }
}

long tern_read(char *bytes, size_t size)
{
    static tern_uid console;

    for (int tries = 3; tries > 0; tries--) {
        System_Bytes text;
        if (console == TERN_NIL)
            console = tern_resolve("console");
        quill_status status = System_Console_read(console, size < System_BYTES_MAX ? (uint32_t)size : System_BYTES_MAX, &text);
        if (status == QUILL_OK && text._length <= size) {
            memcpy(bytes, text._buffer, text._length);
            return text._length;
        }
        if (status != (QUILL_KERNEL | TERN_NO_SUCH) && status != (QUILL_KERNEL | TERN_PARTNER_DIED))
            break;
        console = TERN_NIL;
    }
    return -1;
}
