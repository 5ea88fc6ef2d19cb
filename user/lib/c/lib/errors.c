/* Errors in words. The tests of the crate `api` hold them against those of Rust. */

#include <system.h>
#include <tern.h>

const char *tern_error_text(uint32_t error)
{
    static const char *const kernel[] = {
        "no error",
        "no such thread or task",
        "send timed out",
        "receive timed out",
        "send aborted",
        "receive aborted",
        "partner ended",
        "bad argument",
        "partner accepts no mapping",
        "out of kernel memory",
        "denied",
        "wrong state",
        "a limit is reached",
        "message too long",
        "message not accessible",
    };

    switch (error) {
    case QUILL_MALFORMED:
        return "the answer is no valid message";
    case QUILL_NO_METHOD:
        return "the server knows no such method";
    case QUILL_DECLINED:
        return "the server takes no pages that are offered";
    case QUILL_TOO_LONG:
        return "an argument is too long";
    case QUILL_OTHER_INBOX:
        return "the answer arrived in another inbox";
    case QUILL_PAGES_SHORT:
        return "only a part of the pages arrived";
    }
    if ((error & 0xffff0000u) == QUILL_KERNEL)
        error &= 0xffff;
    return error < sizeof kernel / sizeof *kernel ? kernel[error] : "unknown error";
}

const char *tern_refusal_text(uint32_t refusal)
{
    switch (refusal) {
    case 0:
        return "no error";
    case 2:
        return "the server does not understand the request";
    case 3:
        return "not allowed";
    case 4:
        return "not found";
    case 5:
        return "out of memory";
    case 6:
        return "busy";
    case 7:
        return "not a program for this machine";
    case 8:
        return "the name is taken";
    case 9:
        return "not a directory";
    case 10:
        return "is a directory";
    case 11:
        return "the directory is not empty";
    case 12:
        return "read-only";
    case 13:
        return "no space left";
    case 14:
        return "the name is too long";
    case 15:
        return "the file is too large";
    case 16:
        return "too many links";
    case 17:
        return "too many symbolic links";
    case 18:
        return "input/output error";
    case 19:
        return "what is stored there makes no sense";
    case 20:
        return "not supported";
    case 21:
        return "in another file system";
    case 22:
        return "too many open files";
    case 23:
        return "nobody reads it any more";
    }
    return tern_error_text(refusal > 0xffff ? refusal : 0xffff);
}
