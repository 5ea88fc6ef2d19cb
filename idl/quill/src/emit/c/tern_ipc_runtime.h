#ifndef QUILL_TERN_IPC_H
#define QUILL_TERN_IPC_H

/* What all stubs over Tern's ipc share: a call, the loop of a server, texts in words. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tern.h>

/* How a call ended: 0, the number of an exception from 1, or one of these. */
typedef uint32_t quill_status;
#define QUILL_OK 0u
#define QUILL_MALFORMED 0xffff0000u /* what came is no valid message */
#define QUILL_NO_METHOD 0xffff0001u /* the server knows no such method */
#define QUILL_TOO_LONG 0xffff0101u  /* an argument is too long for its type */
#define QUILL_SILENT 0xffff0200u    /* in a server: nothing is answered */
#define QUILL_KERNEL 0xfffd0000u    /* and up: the message did not get through; the kernel's error is added */

/* The words of a message stay in registers only if everything that touches them is one function. */
#define QUILL_INLINE static inline __attribute__((always_inline))

#define QUILL_WORDS 11
#define QUILL_DONE UINT64_MAX /* rax after a call that succeeded: label and kind, all ones */

/* A test on another system can put its own three functions in the place of these. */
#ifndef QUILL_OWN_IPC

/* Any short form. The kernel changes all registers but rsp, and the compiler keeps rbp for itself; below the stack
 * pointer its leaves may have put something. */
QUILL_INLINE uint64_t quill_ipc(uint64_t rax, tern_uid *partner, uint64_t *words)
{
    uint64_t rdx = *partner, rdi = words[0], rsi = words[1], rbx = words[8], rcx = words[9];
    register uint64_t r8 __asm__("r8") = words[2];
    register uint64_t r9 __asm__("r9") = words[3];
    register uint64_t r10 __asm__("r10") = words[4];
    register uint64_t r12 __asm__("r12") = words[5];
    register uint64_t r13 __asm__("r13") = words[6];
    register uint64_t r14 __asm__("r14") = words[7];
    register uint64_t r15 __asm__("r15") = words[10];

    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                     "push %%rbp\n\t"
                     "mov %%rcx, %%rbp\n\t"
                     "syscall\n\t"
                     "mov %%rbp, %%rcx\n\t"
                     "pop %%rbp\n\t"
                     "lea 128(%%rsp), %%rsp"
                     : "+a"(rax), "+d"(rdx), "+D"(rdi), "+S"(rsi), "+b"(rbx), "+c"(rcx), "+r"(r8), "+r"(r9),
                       "+r"(r10), "+r"(r12), "+r"(r13), "+r"(r14), "+r"(r15)
                     :
                     : "r11", "memory", "cc");
    words[0] = rdi, words[1] = rsi, words[2] = r8, words[3] = r9, words[4] = r10, words[5] = r12;
    words[6] = r13, words[7] = r14, words[8] = rbx, words[9] = rcx, words[10] = r15;
    *partner = rdx;
    return rax;
}

QUILL_INLINE uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words)
{
    return quill_ipc((uint64_t)label << 32 | TERN_IPC_CALL, &server, words);
}

QUILL_INLINE uint64_t quill_ipc_reply_wait(uint32_t label, tern_uid *partner, uint64_t *words)
{
    return quill_ipc((uint64_t)label << 32 | TERN_IPC_REPLY_WAIT, partner, words);
}

/* Sends, waits until the server takes it, and receives nothing. */
static inline quill_status quill_ipc_send(tern_uid server, uint32_t label, const uint64_t *words)
{
    struct tern_message message = { 0, label, server, { 0 } };
    int error;

    for (int i = 0; i < 8; i++)
        message.words[i] = words[i];
    error = tern_ipc(&message, 0, TERN_NIL, 0, TERN_TIMEOUTS(TERN_NEVER, 0));
    return error == TERN_OK ? QUILL_OK : QUILL_KERNEL + (uint32_t)error;
}

#endif

/* The label of a reply that is not QUILL_DONE, as a status. Whoever asks or faults in the middle of a call did not
 * answer, and no label means success. */
static inline quill_status quill_label(uint64_t rax)
{
    uint32_t eax = (uint32_t)rax, label = (uint32_t)(rax >> 32);

    if (eax >> 31 == 0)
        return QUILL_KERNEL | (eax & 0xffff);
    return eax == TERN_KIND_REPLY && label != 0 ? label : QUILL_MALFORMED;
}

QUILL_INLINE void quill_clear(uint64_t *words)
{
    words[0] = words[1] = words[2] = words[3] = words[4] = words[5] = 0;
    words[6] = words[7] = words[8] = words[9] = words[10] = 0;
}

static inline uint64_t quill_bits_f32(float value)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint64_t quill_bits_f64(double value)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float quill_f32(uint64_t word)
{
    uint32_t bits = (uint32_t)word;
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double quill_f64(uint64_t bits)
{
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* A Unicode scalar value. */
static inline bool quill_is_scalar(uint32_t character)
{
    return character < 0xd800 || (character > 0xdfff && character < 0x110000);
}

/* Characters of UTF-8 text without a zero, or SIZE_MAX if it is none. */
static inline size_t quill_characters(const char *text, size_t bytes)
{
    size_t at = 0, count = 0;

    while (at < bytes) {
        uint8_t lead = (uint8_t)text[at++];
        int more = lead == 0 ? -1 : lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2
                   : lead < 0xf5 ? 3 : -1;
        uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
        uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
        if (more < 0 || (size_t)more > bytes - at)
            return SIZE_MAX;
        for (; more > 0; more--, low = 0x80, high = 0xbf) {
            uint8_t next = (uint8_t)text[at++];
            if (next < low || next > high)
                return SIZE_MAX;
        }
        count++;
    }
    return count;
}

/* Bytes of a text of at most so many characters, or UINT32_MAX if it is none. */
static inline uint32_t quill_text_bytes(const char *text, size_t bound)
{
    size_t bytes = 0;

    while (text[bytes] != 0 && bytes <= 4 * bound)
        bytes++;
    return bytes <= 4 * bound && quill_characters(text, bytes) <= bound ? (uint32_t)bytes : UINT32_MAX;
}

/* Copies a text out of words, and puts a zero behind it; false if it is none of at most so many characters. */
static inline bool quill_get_text(char *to, const char *from, uint32_t bytes, size_t bound)
{
    if (bytes > 4 * bound || quill_characters(from, bytes) > bound)
        return false;
    __builtin_memcpy(to, from, bytes);
    to[bytes] = 0;
    return true;
}

typedef quill_status (*quill_dispatch)(const void *methods, void *self, tern_uid from, uint32_t label,
                                       uint64_t *words);

/* Answers one request: its words are replaced by those of the reply. Returns the label of the reply. */
QUILL_INLINE uint32_t quill_answer(quill_dispatch dispatch, const void *methods, void *self, tern_uid *partner,
                                    uint32_t label, uint64_t *words)
{
    quill_status status = dispatch(methods, self, *partner, label, words);

    /* Nothing of the request, and nothing half done, goes back. */
    if (status >= QUILL_KERNEL)
        quill_clear(words);
    if (status == QUILL_SILENT)
        *partner = TERN_NIL;
    return status == QUILL_OK ? UINT32_MAX : status;
}

/* Answers requests, forever. Faults, interrupts and requests with a map item are dropped or refused. */
QUILL_INLINE void quill_serve(quill_dispatch dispatch, const void *methods, void *self)
{
    uint64_t words[QUILL_WORDS] = { 0 };
    tern_uid partner = TERN_NIL;
    uint32_t label = 0;

    for (;;) {
        uint64_t rax = quill_ipc_reply_wait(label, &partner, words);
        uint32_t kind = (uint32_t)rax;

        if (__builtin_expect(kind == TERN_KIND_REQUEST, 1) || kind == TERN_KIND_REPLY) {
            label = quill_answer(dispatch, methods, self, &partner, (uint32_t)(rax >> 32), words);
            continue;
        }
        quill_clear(words);
        label = QUILL_MALFORMED;
        if (kind >> 31 == 0 || (kind & TERN_KIND_MASK) != (TERN_KIND_REQUEST & TERN_KIND_MASK))
            partner = TERN_NIL;
    }
}

#endif
