#ifndef QUILL_L4_V4_H
#define QUILL_L4_V4_H

/* What all stubs over L4's V4 API (X.2) share, for x86 with 32 and with 64 bits: message tags, message and buffer
 * registers, ipc. It needs no other header and no library; `__L4_Ipc` is the system call's entry, as the kernel's own
 * headers have it. A message lies in the UTCB behind the tag, as bytes, and is the same with 32 and with 64 bits. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a call ended: 0, the number of an exception from 1, whatever else the server's method returned, or one of these. */
typedef uint32_t quill_status;
#define QUILL_OK 0u
#define QUILL_MALFORMED 0xff00u /* what came is no valid message */
#define QUILL_NO_METHOD 0xff01u /* the server knows no such method */
#define QUILL_TOO_LONG 0xff02u  /* an argument is too long for its type or for a message */
#define QUILL_KERNEL 0x10000u   /* and up: the message did not get through; the kernel's error code is added */

/* Whether the way to the server failed, and whether the server did, of a method with so many exceptions. */
#define QUILL_IS_COMM(status) ((status) >= QUILL_KERNEL || (status) == QUILL_TOO_LONG)
#define QUILL_IS_FAULT(status, exceptions) ((status) > (exceptions) && !QUILL_IS_COMM(status))

/* Bytes that a server receives of a text or list without a bound, and for which a client brings room where one comes back. */
#ifndef QUILL_UNBOUNDED_BYTES
#define QUILL_UNBOUNDED_BYTES 4096
#elif QUILL_UNBOUNDED_BYTES < 256
#error "a message has more registers than QUILL_UNBOUNDED_BYTES"
#endif

typedef struct quill_unbounded {
    char bytes[QUILL_UNBOUNDED_BYTES];
} quill_unbounded;

typedef uintptr_t quill_word;
typedef quill_word quill_thread; /* a thread's id, local or global; 0 is nobody */

#define QUILL_INLINE static inline __attribute__((always_inline))
#define QUILL_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define QUILL_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* --- tags: label from bit 16, error in bit 15, hints (other processor, redirected, propagated) in bits 12 to 14, typed
 * words from bit 6, untyped words from bit 0 --- */

#define QUILL_WORDS(bytes) (((bytes) + sizeof(quill_word) - 1) / sizeof(quill_word))
#define QUILL_TAG(label, bytes, items) \
    ((quill_word)(label) << 16 | (quill_word)(items) << 7 | (quill_word)QUILL_WORDS((size_t)(bytes)))
#define QUILL_TAG_ERROR ((quill_word)0x8000)
#define QUILL_TAG_HINTS ((quill_word)0x7000)
#define QUILL_TAG_SHAPE ((quill_word)0xfff)
#define QUILL_LABEL(tag) ((uint32_t)((tag) >> 16))

/* The place of a method in its interface: the first bits of the label's lower sixteen. */
#define QUILL_PLACE(tag, bits) ((uint32_t)(tag) >> (32 - (bits)))

/* A value in the message, from a byte on. */
#define QUILL_AT(type, utcb, at) (((struct { type value; } __attribute__((packed, may_alias)) *)quill_at(utcb, at))->value)

#define QUILL_REGISTERS 63 /* message registers behind the tag */

QUILL_INLINE char *quill_at(char *utcb, size_t at)
{
    return utcb + sizeof(quill_word) + at;
}

/* A register of the UTCB: message registers from 0 up, control and buffer registers from -1 down. */
QUILL_INLINE quill_word *quill_register(char *utcb, int number)
{
    return (quill_word *)(void *)utcb + number;
}

#define QUILL_ERROR_CODE (-9)
#define QUILL_BUFFER(number) (-16 - (number)) /* buffer registers; the first one says what is accepted */

/* Both words of the message's beginning arrive in registers of the processor; where the rest is read as bytes, they are
 * put in front of it. */
QUILL_INLINE void quill_spill(char *utcb, uint32_t w0, uint32_t w1)
{
    QUILL_AT(uint32_t, utcb, 0) = w0;
    QUILL_AT(uint32_t, utcb, 4) = w1;
}

/* Copies bytes out of the message, of which the first two words may be in registers. */
QUILL_INLINE void quill_take_out(void *to, char *utcb, size_t at, size_t bytes, uint32_t w0, uint32_t w1)
{
    char *bytes_to = to;

    if (at == 0 && bytes >= 8) {
        __builtin_memcpy(bytes_to, &w0, 4);
        __builtin_memcpy(bytes_to + 4, &w1, 4);
        __builtin_memcpy(bytes_to + 8, quill_at(utcb, 8), bytes >= 8 ? bytes - 8 : 0);
    } else if (at == 4 && bytes >= 4) {
        __builtin_memcpy(bytes_to, &w1, 4);
        __builtin_memcpy(bytes_to + 4, quill_at(utcb, 8), bytes >= 4 ? bytes - 4 : 0);
    } else {
        __builtin_memcpy(to, quill_at(utcb, at), bytes);
    }
}

/* --- the system call --- */

QUILL_INLINE char *quill_utcb(void)
{
    char *utcb;

    __asm__("mov %%gs:0, %0" : "=r"(utcb));
    return utcb;
}

#define QUILL_ANYONE (~(quill_word)0)
#define QUILL_NEVER ((quill_word)0)
#define QUILL_AT_ONCE ((quill_word)0x0400) /* as the timeout of a receive; 16 bits higher, of a send */

#ifdef __i386__

/* The kernel keeps edi and esp only, and the compiler may want ebp for itself. A program that is compiled with
 * -fomit-frame-pointer and optimised can say so by defining QUILL_OMIT_FRAME_POINTER: an instruction less. Operands that
 * go in and out are written twice: clang 14 takes registers for one another where they are tied. */
QUILL_INLINE quill_word quill_ipc(char *utcb, quill_thread *partner, quill_thread from, quill_word timeouts,
                                  quill_word tag, uint32_t *w0, uint32_t *w1)
{
    quill_word edx;
#ifdef QUILL_OMIT_FRAME_POINTER
    quill_word ecx;

    /* Of all registers, ebp is left for the last result. */
    __asm__ volatile("call __L4_Ipc"
                     : "=a"(*partner), "=d"(edx), "=c"(ecx), "=S"(tag), "=b"(*w0), "=&r"(*w1)
                     : "a"(*partner), "d"(from), "c"(timeouts), "S"(tag), "D"(utcb)
                     : "memory", "cc");
#else
    __asm__ volatile("push %%ebp\n\t"
                     "call __L4_Ipc\n\t"
                     "mov %%ebp, %%ecx\n\t"
                     "pop %%ebp"
                     : "=a"(*partner), "=d"(edx), "=c"(*w1), "=S"(tag), "=b"(*w0)
                     : "a"(*partner), "d"(from), "c"(timeouts), "S"(tag), "D"(utcb)
                     : "memory", "cc");
#endif
    return tag;
}

/* As quill_ipc, where at most one word comes back. */
QUILL_INLINE quill_word quill_ipc_short(char *utcb, quill_thread *partner, quill_thread from, quill_word timeouts,
                                        quill_word tag, uint32_t *w0)
{
    quill_word edx, ecx;

    __asm__ volatile("push %%ebp\n\t"
                     "call __L4_Ipc\n\t"
                     "pop %%ebp"
                     : "=a"(*partner), "=d"(edx), "=c"(ecx), "=S"(tag), "=b"(*w0)
                     : "a"(*partner), "d"(from), "c"(timeouts), "S"(tag), "D"(utcb)
                     : "memory", "cc");
    return tag;
}

/* A call: `sent` and `received` are bytes at most. */
QUILL_INLINE quill_word quill_call(char *utcb, quill_thread server, quill_word tag, size_t sent, size_t received,
                                   uint32_t *w0, uint32_t *w1)
{
    quill_thread partner = server;

    (void)sent;
    *w1 = 0;
    return received > 4 ? quill_ipc(utcb, &partner, server, QUILL_NEVER, tag, w0, w1)
                        : quill_ipc_short(utcb, &partner, server, QUILL_NEVER, tag, w0);
}

QUILL_INLINE quill_word quill_reply_wait(char *utcb, quill_thread *partner, quill_word tag, uint32_t *w0, uint32_t *w1)
{
    return quill_ipc(utcb, partner, QUILL_ANYONE, QUILL_AT_ONCE << 16, tag, w0, w1);
}

QUILL_INLINE quill_word quill_send(char *utcb, quill_thread server, quill_word tag, size_t sent)
{
    uint32_t w0;

    (void)sent;
    return quill_ipc_short(utcb, &server, 0, QUILL_NEVER, tag, &w0);
}

#else

/* The entry is reached through a variable. */
extern void *__L4_Ipc_entry(void) __asm__("__L4_Ipc");

/* Message registers 1 to 7 are registers of the processor. Below the stack pointer the compiler's leaves may have put
 * something. */
QUILL_INLINE quill_word quill_ipc(char *utcb, quill_thread *partner, quill_thread from, quill_word timeouts,
                                  quill_word tag, size_t sent, size_t received)
{
    quill_word *mr = quill_register(utcb, 0);
    size_t n = QUILL_WORDS(sent), m = QUILL_WORDS(received);
    quill_word m1 = n > 0 ? mr[1] : 0, m2 = n > 1 ? mr[2] : 0, rdx;
    register quill_word r8 __asm__("r8") = timeouts;
    register quill_word r9 __asm__("r9") = tag;
    register quill_word r10 __asm__("r10") = n > 2 ? mr[3] : 0;
    register quill_word r12 __asm__("r12") = n > 3 ? mr[4] : 0;
    register quill_word r13 __asm__("r13") = n > 4 ? mr[5] : 0;
    register quill_word r14 __asm__("r14") = n > 5 ? mr[6] : 0;
    register quill_word r15 __asm__("r15") = n > 6 ? mr[7] : 0;

    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                     "push %%rbp\n\t"
                     "call *__L4_Ipc(%%rip)\n\t"
                     "pop %%rbp\n\t"
                     "lea 128(%%rsp), %%rsp"
                     : "=a"(m1), "=b"(m2), "=S"(*partner), "=d"(rdx), "=r"(r8), "=r"(r9), "=r"(r10), "=r"(r12),
                       "=r"(r13), "=r"(r14), "=r"(r15)
                     : "a"(m1), "b"(m2), "S"(*partner), "d"(from), "r"(r8), "r"(r9), "r"(r10), "r"(r12), "r"(r13),
                       "r"(r14), "r"(r15), "D"(utcb)
                     : "rcx", "r11", "memory", "cc");
    if (m > 0)
        mr[1] = m1;
    if (m > 1)
        mr[2] = m2;
    if (m > 2)
        mr[3] = r10;
    if (m > 3)
        mr[4] = r12;
    if (m > 4)
        mr[5] = r13;
    if (m > 5)
        mr[6] = r14;
    if (m > 6)
        mr[7] = r15;
    return r9;
}

QUILL_INLINE void quill_first(char *utcb, uint32_t *w0, uint32_t *w1)
{
    *w0 = QUILL_AT(uint32_t, utcb, 0);
    *w1 = QUILL_AT(uint32_t, utcb, 4);
}

QUILL_INLINE quill_word quill_call(char *utcb, quill_thread server, quill_word tag, size_t sent, size_t received,
                                   uint32_t *w0, uint32_t *w1)
{
    quill_thread partner = server;

    tag = quill_ipc(utcb, &partner, server, QUILL_NEVER, tag, sent, received);
    quill_first(utcb, w0, w1);
    return tag;
}

QUILL_INLINE quill_word quill_reply_wait(char *utcb, quill_thread *partner, quill_word tag, uint32_t *w0, uint32_t *w1)
{
    tag = quill_ipc(utcb, partner, QUILL_ANYONE, QUILL_AT_ONCE << 16, tag, 56, 56);
    quill_first(utcb, w0, w1);
    return tag;
}

QUILL_INLINE quill_word quill_send(char *utcb, quill_thread server, quill_word tag, size_t sent)
{
    return quill_ipc(utcb, &server, 0, QUILL_NEVER, tag, sent, 0);
}

#endif

/* --- what came --- */

/* Whether a tag is that of a message, hints aside; they are rare and looked at last. */
QUILL_INLINE bool quill_is_shape(quill_word tag, quill_word expected)
{
    return QUILL_LIKELY(tag == expected) || (tag & ~QUILL_TAG_HINTS) == expected;
}

/* Whether a tag has another label, or is none at all. */
QUILL_INLINE bool quill_is_other(quill_word tag, uint32_t label)
{
    return (tag & ~(QUILL_TAG_HINTS | QUILL_TAG_SHAPE)) != (quill_word)label << 16;
}

/* Elements and zeros: the rest of their room is sent as well. */
QUILL_INLINE void quill_put_elements(char *to, const void *from, size_t bytes, size_t all)
{
    if (bytes > 0)
        __builtin_memcpy(to, from, bytes);
    __builtin_memset(to + bytes, 0, (all + 3) / 4 * 4 - bytes);
}

/* --- how a call ended --- */

/* What a reply that is not the expected one means. A label without a message of its own is a status. */
static inline quill_status quill_why(char *utcb, quill_word tag)
{
    uint32_t label = QUILL_LABEL(tag);

    if (tag & QUILL_TAG_ERROR)
        return QUILL_KERNEL | (uint16_t)*quill_register(utcb, QUILL_ERROR_CODE);
    if (label == 0 || label > 0xffff)
        return QUILL_MALFORMED;
    return label;
}

/* As quill_why; the compiler may know that it is never QUILL_OK, and that what comes back has a value otherwise. */
QUILL_INLINE quill_status quill_failed(char *utcb, quill_word tag)
{
    quill_status why = quill_why(utcb, tag);

    if (why == QUILL_OK)
        __builtin_unreachable();
    return why;
}

/* A status that is no exception, of which there are so many. */
static inline quill_status quill_no_exception(quill_status status, quill_status exceptions)
{
    return status <= exceptions ? QUILL_MALFORMED : status;
}

/* The tag that refuses a request. Nobody waits for an answer to a message that did not come, or that the kernel sent in
 * the name of a thread: a page fault, an interrupt. */
static inline quill_word quill_refuse(quill_thread *partner, quill_word tag, quill_status why)
{
    if ((tag & QUILL_TAG_ERROR) || (uint16_t)QUILL_LABEL(tag) >= 0xff80)
        *partner = 0;
    return QUILL_TAG(why, 0, 0);
}

/* The tag of a reply without a message: what a method returned that is no exception. */
QUILL_INLINE quill_word quill_refuse_as(quill_status status)
{
    return QUILL_TAG(status != 0 && status <= 0xffff ? status : QUILL_MALFORMED, 0, 0);
}

/* --- items: what is too long for registers is copied by the kernel, from where it is to where it is wanted --- */

#define QUILL_ITEM_BYTES_MAX ((1u << 22) - 1)

QUILL_INLINE void quill_put_item_word(char *utcb, size_t at, const void *from, quill_word word)
{
    quill_word *item = (quill_word *)(void *)quill_at(utcb, QUILL_WORDS(at) * sizeof(quill_word));

    item[0] = word;
    item[1] = (quill_word)from;
}

QUILL_INLINE void quill_put_item(char *utcb, size_t at, const void *from, size_t bytes)
{
    quill_put_item_word(utcb, at, from, (quill_word)bytes << 10);
}

/* The length of a list as an item has it, in 22 bits from bit 10 on; too_long says that it has far more. Of the lengths of
 * a list whose bound is less than two million bytes, a product that fits is too long or the right one. It is taken from
 * where it is: compilers load it first. A macro, since the size of an element has to be a constant without optimisation,
 * too. */
#define QUILL_LIST_WORD(word, too_long, length, element) \
    __asm__("imull %3, %2, %0" : "=r"(word), "=@cco"(too_long) : "m"(length), "i"((element) * 1024))

/* How long an item is that came; one of another kind seems to be very long. */
QUILL_INLINE quill_word quill_item_bytes(char *utcb, size_t at)
{
    quill_word item = *(quill_word *)(void *)quill_at(utcb, QUILL_WORDS(at) * sizeof(quill_word));

    return item >> 10 | item << (8 * sizeof item - 10);
}

/* Which caches an item may take new lines of, of so many levels. It is a hint, and each processor has its own: with 32 bits
 * all, none, or the nearest; with 64 bits those that are left when what does not stay is kept out of. */
#ifdef __i386__
#define QUILL_CACHES(levels) ((quill_word)((levels) == 0 ? 2 : (levels) == 1 ? 3 : 1) << 1)
#else
#define QUILL_CACHES(levels) ((quill_word)((levels) == 0 ? 3 : (levels) == 1 ? 2 : 0) << 1)
#endif

QUILL_INLINE bool quill_has_items(quill_word tag)
{
    return (tag & 0xfc0) != 0;
}

QUILL_INLINE void quill_hint_caches(char *utcb, size_t at, unsigned levels)
{
    *(quill_word *)(void *)quill_at(utcb, QUILL_WORDS(at) * sizeof(quill_word)) |= QUILL_CACHES(levels);
}

/* What the sender said of caches is the kernel's, and no part of what came. */
QUILL_INLINE void quill_forget_hints(char *utcb, size_t at)
{
    *(quill_word *)(void *)quill_at(utcb, QUILL_WORDS(at) * sizeof(quill_word)) &= ~(quill_word)6;
}

/* Where items go that come: the buffer registers hold one place for each. */
QUILL_INLINE void quill_accept(char *utcb, unsigned number, unsigned count, void *to, size_t bytes)
{
    *quill_register(utcb, QUILL_BUFFER(0)) = 1;
    *quill_register(utcb, QUILL_BUFFER(2 * (int)number + 1)) = (quill_word)bytes << 10 | (number + 1 < count);
    *quill_register(utcb, QUILL_BUFFER(2 * (int)number + 2)) = (quill_word)to;
}

QUILL_INLINE void quill_accept_nothing(char *utcb)
{
    *quill_register(utcb, QUILL_BUFFER(0)) = 0;
}

/* A server's own buffers, while it is a client. */
QUILL_INLINE void quill_keep_buffers(char *utcb, quill_word *kept, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        kept[i] = *quill_register(utcb, QUILL_BUFFER((int)i));
}

QUILL_INLINE void quill_restore_buffers(char *utcb, const quill_word *kept, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        *quill_register(utcb, QUILL_BUFFER((int)i)) = kept[i];
}

/* --- numbers and texts --- */

/* Bytes of a text, without the zero at its end. */
static inline size_t quill_length(const char *text)
{
    size_t bytes = 0;

    while (text[bytes] != 0)
        bytes++;
    return bytes;
}

/* Bytes of a text of at most so many characters; UINT32_MAX if it is none. */
static inline uint32_t quill_text_bytes(const char *text, size_t bound)
{
    size_t bytes = 0;

    while (text[bytes] != 0 && bytes <= 4 * bound)
        bytes++;
    return bytes <= 4 * bound && quill_characters(text, bytes) <= bound ? (uint32_t)bytes : UINT32_MAX;
}

/* Whether something lies in the message that a reply is about to replace. */
QUILL_INLINE bool quill_in_message(char *utcb, const void *what)
{
    return (uintptr_t)what - (uintptr_t)utcb < 64 * sizeof(quill_word);
}

/* The length of a text that a method hands back; UINT32_MAX if there is none, or if the reply would be written over it. */
QUILL_INLINE uint32_t quill_reply_text_bytes(char *utcb, const char *text, size_t bound)
{
    return text == NULL || quill_in_message(utcb, text) ? UINT32_MAX : quill_text_bytes(text, bound);
}

/* Copies a text out of a message, and puts a zero behind it; false if it is none of at most so many characters. */
static inline bool quill_get_text(char *to, const char *from, uint32_t bytes, size_t bound)
{
    if (bytes > 4 * bound || quill_characters(from, bytes) > bound)
        return false;
    __builtin_memcpy(to, from, bytes);
    to[bytes] = 0;
    return true;
}

/* Whether a text without a bound, or with one, is in these bytes with the zero at its end. */
static inline bool quill_is_text(const char *text, size_t bytes, uint64_t bound)
{
    if (bytes == 0 || text[bytes - 1] != 0)
        return false;
    return bound == UINT64_MAX || quill_characters(text, bytes - 1) <= bound;
}

/* Words of text, wherever they lie. */
typedef uint32_t __attribute__((may_alias)) quill_text_word;

/* Copies a text with the zero at its end, and zeros up to the end of the word. Returns how many bytes that is, or 0 if
 * there is no room; what is behind the text stays where it is. A whole aligned word can be read wherever its first byte
 * can be. */
__attribute__((no_sanitize_address)) static inline size_t quill_copy_text(char *to, const char *from, size_t room)
{
    size_t at = 0;

    if (((uintptr_t)from & 3) == 0) {
        for (; at + 4 <= room; at += 4) {
            uint32_t word = *(const quill_text_word *)(const void *)(from + at);
            /* No zero is among four bytes if none of them changes sign when 1 is taken off; if one does, it may be no
             * ASCII. */
            if (QUILL_UNLIKELY(((word - 0x01010101u) & 0x80808080u) != 0)) {
                uint32_t zero = (word - 0x01010101u) & ~word & 0x80808080u;
                if (zero != 0) {
                    word &= zero ^ (zero - 1);
                    __builtin_memcpy(to + at, &word, 4);
                    return at + 4;
                }
            }
            __builtin_memcpy(to + at, &word, 4);
        }
        return 0;
    }
    while (at < room) {
        to[at] = from[at];
        if (from[at++] != 0)
            continue;
        for (; at % 4 != 0; at++)
            to[at] = 0;
        return at;
    }
    return 0;
}

/* Puts a text behind so many bytes: in registers if it fits, and as an item if it does not. Returns the tag, or 0 if it
 * is too long. */
QUILL_INLINE quill_word quill_put_tail(char *utcb, uint32_t label, size_t at, const char *text, uint64_t bound)
{
    size_t bytes = 0;

    if (bound != UINT64_MAX && quill_text_bytes(text, (size_t)bound) == UINT32_MAX)
        return 0;
    bytes = quill_copy_text(quill_at(utcb, at), text, QUILL_REGISTERS * 4 - at);
    if (QUILL_LIKELY(bytes != 0)) {
        if ((at + bytes) % sizeof(quill_word) != 0)
            QUILL_AT(uint32_t, utcb, at + bytes) = 0;
        return (quill_word)label << 16 | QUILL_WORDS(at + bytes);
    }
    bytes = quill_length(text) + 1;
    if (bytes > QUILL_ITEM_BYTES_MAX)
        return 0;
    quill_put_item(utcb, at, text, bytes);
    return QUILL_TAG(label, at, 1);
}

/* As quill_put_tail for a reply, whose text may lie in the request that it replaces. */
QUILL_INLINE quill_word quill_put_reply_tail(char *utcb, uint32_t label, size_t at, const char *text, uint64_t bound)
{
    char *to = quill_at(utcb, at), *from = (char *)(uintptr_t)text;
    size_t bytes = 0;

    if (text == NULL)
        return 0;
    if ((uintptr_t)text - (uintptr_t)utcb >= 64 * sizeof(quill_word))
        return quill_put_tail(utcb, label, at, text, bound);
    if (bound != UINT64_MAX && quill_text_bytes(text, (size_t)bound) == UINT32_MAX)
        return 0;
    bytes = quill_length(text) + 1;
    if (bytes > QUILL_REGISTERS * 4 - at - 4)
        return 0;
    if (to > from)
        for (size_t i = bytes; i-- > 0;)
            to[i] = from[i];
    else
        for (size_t i = 0; i < bytes; i++)
            to[i] = from[i];
    for (; (at + bytes) % sizeof(quill_word) != 0; bytes++)
        to[bytes] = 0;
    return (quill_word)label << 16 | QUILL_WORDS(at + bytes);
}

/* The text that came behind so many bytes, in registers or in the buffer for items; NULL if there is none. In registers
 * it ends with the last word, whose last byte is zero. */
QUILL_INLINE const char *quill_get_tail(char *utcb, quill_word tag, uint32_t label, size_t at, const char *buffer,
                                        size_t room, uint64_t bound)
{
    if (QUILL_LIKELY((tag & ~(QUILL_TAG_HINTS | 63)) == (quill_word)label << 16)) {
        size_t words = tag & 63;
        const char *text = quill_at(utcb, at);
        if (words * sizeof(quill_word) <= at || utcb[words * sizeof(quill_word) + sizeof(quill_word) - 1] != 0)
            return NULL;
        return bound == UINT64_MAX || quill_characters(text, quill_length(text)) <= bound ? text : NULL;
    }
    if ((tag & ~QUILL_TAG_HINTS) == QUILL_TAG(label, at, 1)) {
        quill_word bytes = quill_item_bytes(utcb, at);
        if (bytes <= room && quill_is_text(buffer, bytes, bound))
            return buffer;
    }
    return NULL;
}

/* Bytes of a text that becomes an item, with its zero; 0 if it is none, or too long. */
static inline size_t quill_item_text(const char *text, uint64_t bound)
{
    size_t bytes = text == NULL ? 0 : quill_length(text) + 1;

    if (bytes > QUILL_ITEM_BYTES_MAX || (bytes > 0 && bound != UINT64_MAX && quill_characters(text, bytes - 1) > bound))
        return 0;
    return bytes;
}

#endif
