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
#define QUILL_DECLINED 0xffff0002u  /* the server takes no offer of pages; its method has not begun */
#define QUILL_TOO_LONG 0xffff0101u  /* an argument is too long for its type */
#define QUILL_OTHER_INBOX 0xffff0102u /* the reply arrived elsewhere: another inbox was opened after this one */
#define QUILL_PAGES_SHORT 0xffff0103u /* only a part of the pages arrived: somebody's quota is exhausted */
#define QUILL_SILENT 0xffff0200u    /* in a server: nothing is answered */
#define QUILL_AGAIN 0xffff0201u     /* in a server: the request has to be looked at again, by who knows UTF-8 */
#define QUILL_KERNEL 0xfffd0000u    /* and up: the message did not get through; the kernel's error is added */

/* Whether the way to the server failed, and whether the server did, of a method with so many exceptions. */
#define QUILL_IS_COMM(status) ((status) >= QUILL_KERNEL && ((status) < QUILL_MALFORMED || (status) > QUILL_DECLINED))
#define QUILL_IS_FAULT(status, exceptions) ((status) > (exceptions) && !QUILL_IS_COMM(status))

/* The words of a message stay in registers only if everything that touches them is one function. */
#define QUILL_INLINE static inline __attribute__((always_inline))

/* Texts are looked at in words, which may reach beyond the zero. A sanitizer does not know that this is harmless. */
#ifdef __SANITIZE_ADDRESS__
#define QUILL_BYTEWISE
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define QUILL_BYTEWISE
#endif
#endif

#define QUILL_WORDS 11
#define QUILL_DONE UINT64_MAX /* rax after a call that succeeded: label and kind, all ones */

#define QUILL_NO_BLOCK 0x400u                /* clear in the kind of a message with a part in memory */
#define QUILL_LONG_DONE 0xfffffffffffffbffu  /* QUILL_DONE of a reply with one */
#define QUILL_PAGES_DONE (QUILL_DONE & ~(uint64_t)TERN_NO_ITEM) /* QUILL_DONE of a reply with pages, all of them */
#define QUILL_IPC_LONG_CALL 0xfffffbfeu      /* a call with one */
#define QUILL_IPC_LONG_REPLY_WAIT 0xfffffbffu

/* A test on another system can put its own functions in the place of these. */
#ifndef QUILL_OWN_IPC

/* Any short form, with so many words there and back. The kernel changes all registers but rsp. The compiler keeps rbp for
 * itself, and below the stack pointer its leaves may have put something. A program that is optimised and compiled with
 * -fomit-frame-pointer can say so by defining QUILL_OMIT_FRAME_POINTER: then the compiler looks after rbp, too. */
#if defined QUILL_OMIT_FRAME_POINTER && defined __SSE__ /* TERN_IPC_SYSCALL uses the stack */
#define QUILL_KEEP_RBP "lea -128(%%rsp), %%rsp\n\t"
#define QUILL_RESTORE_RBP "\n\tlea 128(%%rsp), %%rsp"
#define QUILL_RBP , "rbp"
#elif defined QUILL_OMIT_FRAME_POINTER
#define QUILL_KEEP_RBP
#define QUILL_RESTORE_RBP
#define QUILL_RBP , "rbp"
#else
#define QUILL_KEEP_RBP "lea -128(%%rsp), %%rsp\n\tpush %%rbp\n\t"
#define QUILL_RESTORE_RBP "\n\tpop %%rbp\n\tlea 128(%%rsp), %%rsp"
#define QUILL_RBP
#endif

QUILL_INLINE uint64_t quill_ipc(uint64_t rax, tern_uid *partner, uint64_t *words, unsigned there, unsigned back)
{
    uint64_t rdx = *partner, rdi = words[0], rsi = words[1], rbx = words[8], rcx = words[9];
    register uint64_t r8 __asm__("r8") = words[2];
    register uint64_t r9 __asm__("r9") = words[3];
    register uint64_t r10 __asm__("r10") = words[4];
    register uint64_t r12 __asm__("r12") = words[5];
    register uint64_t r13 __asm__("r13") = words[6];
    register uint64_t r14 __asm__("r14") = words[7];
    register uint64_t r15 __asm__("r15") = words[10];

    if (there <= 9 && back <= 9)
        __asm__ volatile(QUILL_KEEP_RBP "xor %%ebp, %%ebp\n\t" TERN_IPC_SYSCALL QUILL_RESTORE_RBP
                         : "+a"(rax), "+d"(rdx), "+D"(rdi), "+S"(rsi), "+b"(rbx), "+r"(r8), "+r"(r9), "+r"(r10),
                           "+r"(r12), "+r"(r13), "+r"(r14), "+r"(r15)
                         :
                         : "rcx", "r11", "memory", "cc" TERN_IPC_CLOBBERS QUILL_RBP);
    else
        __asm__ volatile(QUILL_KEEP_RBP "mov %%rcx, %%rbp\n\t" TERN_IPC_SYSCALL "\n\tmov %%rbp, %%rcx" QUILL_RESTORE_RBP
                         : "+a"(rax), "+d"(rdx), "+D"(rdi), "+S"(rsi), "+b"(rbx), "+c"(rcx), "+r"(r8), "+r"(r9),
                           "+r"(r10), "+r"(r12), "+r"(r13), "+r"(r14), "+r"(r15)
                         :
                         : "r11", "memory", "cc" TERN_IPC_CLOBBERS QUILL_RBP);
    words[0] = rdi, words[1] = rsi, words[2] = r8, words[3] = r9, words[4] = r10, words[5] = r12;
    words[6] = r13, words[7] = r14, words[8] = rbx, words[9] = rcx, words[10] = r15;
    *partner = rdx;
    return rax;
}

QUILL_INLINE uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    return quill_ipc((uint64_t)label << 32 | TERN_IPC_CALL, &server, words, there, back);
}

/* A call with a part in memory: the first two words say what it is and where. The last word is lost, whatever it is. */
QUILL_INLINE uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there,
                                          unsigned back)
{
    __asm__ volatile("" : "=r"(words[10]));
    return quill_ipc((uint64_t)label << 32 | QUILL_IPC_LONG_CALL, &server, words, there, back);
}

/* Both calls where the reply may have a part in memory. To others no block is open, whatever the server sends: so what has
 * arrived in an inbox before stays as it is while somebody looks at it. */
QUILL_INLINE uint64_t quill_ipc_call_taking(tern_uid server, uint32_t label, uint64_t *words, unsigned there,
                                            unsigned back)
{
    return quill_ipc((uint64_t)label << 32 | (TERN_IPC_CALL & ~TERN_TAKES_BLOCK), &server, words, there, back);
}

QUILL_INLINE uint64_t quill_ipc_call_long_taking(tern_uid server, uint32_t label, uint64_t *words, unsigned there,
                                                 unsigned back)
{
    __asm__ volatile("" : "=r"(words[10]));
    return quill_ipc((uint64_t)label << 32 | (QUILL_IPC_LONG_CALL & ~TERN_TAKES_BLOCK), &server, words, there, back);
}

/* Sends, waits until the server takes it, and receives nothing. */
static inline quill_status quill_send(tern_uid server, uint32_t label, const uint64_t *words, uint32_t flags)
{
    struct tern_message message = { 0, label, server, { 0 } };
    int error;

    for (int i = 0; i < 8; i++)
        message.words[i] = words[i];
    error = tern_ipc(&message, flags, TERN_NIL, 0, TERN_TIMEOUTS(TERN_NEVER, 0));
    return error == TERN_OK ? QUILL_OK : QUILL_KERNEL + (uint32_t)error;
}

static inline quill_status quill_ipc_send(tern_uid server, uint32_t label, const uint64_t *words)
{
    return quill_send(server, label, words, 0);
}

static inline quill_status quill_ipc_send_long(tern_uid server, uint32_t label, const uint64_t *words)
{
    return quill_send(server, label, words, TERN_BLOCK);
}

/* The general form, for calls that hand pages over: those of the request, or 0, and where those of the reply may go. */
static inline uint64_t quill_ipc_pages(uint32_t flags, tern_uid server, uint32_t label, uint64_t *words,
                                       tern_fpage item, tern_fpage window)
{
    struct tern_message message = { .label = label, .partner = server };
    int error;

    __builtin_memcpy(message.words, words, sizeof message.words);
    if (item) {
        message.words[6] = item;
        message.words[7] = 0;
    }
    flags |= item ? TERN_ITEM : 0;
    error = tern_ipc(&message, flags, server, window, TERN_TIMEOUTS(TERN_NEVER, TERN_NEVER));
    if (error != TERN_OK)
        return (uint64_t)error;
    __builtin_memcpy(words, message.words, sizeof message.words);
    return (uint64_t)message.label << 32 | message.kind;
}

static inline uint64_t quill_ipc_call_pages(tern_uid server, uint32_t label, uint64_t *words, tern_fpage item,
                                            tern_fpage window)
{
    return quill_ipc_pages(0, server, label, words, item, window);
}

static inline uint64_t quill_ipc_call_pages_taking(tern_uid server, uint32_t label, uint64_t *words, tern_fpage item,
                                                   tern_fpage window)
{
    return quill_ipc_pages(TERN_TAKES_BLOCK, server, label, words, item, window);
}

static inline quill_status quill_ipc_send_pages(tern_uid server, uint32_t label, uint64_t *words, tern_fpage item)
{
    words[6] = item;
    words[7] = 0;
    return quill_send(server, label, words, TERN_ITEM);
}

#endif

/* --- calls through doors: the same messages, to an identifier instead of a thread --- */

#define QUILL_DOOR_KIND 6                               /* what tells a return's kind from that of a plain reply */
#define QUILL_DOOR_DONE (QUILL_DONE ^ QUILL_DOOR_KIND)  /* rax after a call that succeeded */
#define QUILL_DOOR_LONG_DONE (QUILL_LONG_DONE ^ QUILL_DOOR_KIND)
#define QUILL_DOOR_PAGES_DONE (QUILL_PAGES_DONE ^ QUILL_DOOR_KIND) /* QUILL_DOOR_DONE of one that hands a reference over */

#ifndef QUILL_OWN_IPC

QUILL_INLINE uint64_t quill_door_call(uint32_t door, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    tern_uid partner = door;

    return quill_ipc((uint64_t)label << 32 | TERN_DOOR_CALL, &partner, words, there, back);
}

QUILL_INLINE uint64_t quill_door_call_long(uint32_t door, uint32_t label, uint64_t *words, unsigned there,
                                           unsigned back)
{
    tern_uid partner = door;

    __asm__ volatile("" : "=r"(words[10]));
    return quill_ipc((uint64_t)label << 32 | (TERN_DOOR_CALL & ~QUILL_NO_BLOCK), &partner, words, there, back);
}

/* Both calls where the reply may have a part in memory, or hand something over: `takes` says which, of TERN_TAKES_BLOCK and
 * TERN_TAKES_ITEM. */
QUILL_INLINE uint64_t quill_door_call_taking(uint32_t door, uint32_t label, uint64_t *words, unsigned there,
                                             unsigned back, uint32_t takes)
{
    tern_uid partner = door;

    return quill_ipc((uint64_t)label << 32 | (TERN_DOOR_CALL & ~takes), &partner, words, there, back);
}

QUILL_INLINE uint64_t quill_door_call_long_taking(uint32_t door, uint32_t label, uint64_t *words, unsigned there,
                                                  unsigned back, uint32_t takes)
{
    tern_uid partner = door;

    __asm__ volatile("" : "=r"(words[10]));
    return quill_ipc((uint64_t)label << 32 | (TERN_DOOR_CALL & ~(QUILL_NO_BLOCK | takes)), &partner, words, there, back);
}

#else

/* Nobody sends what is not to be taken. */
#define quill_ipc_call_taking quill_ipc_call
#define quill_ipc_call_long_taking quill_ipc_call_long
#define quill_ipc_call_pages_taking quill_ipc_call_pages
#define quill_door_call_taking(door, label, words, there, back, takes) quill_door_call(door, label, words, there, back)
#define quill_door_call_long_taking(door, label, words, there, back, takes) \
    quill_door_call_long(door, label, words, there, back)

#endif

/* rax after a call as if it had been made by ipc: an error as it is, a return as a reply. */
QUILL_INLINE uint64_t quill_door_reply(uint64_t rax)
{
    return (uint32_t)rax >> 31 == 0 ? rax : rax ^ QUILL_DOOR_KIND;
}

/* Calls a oneway method: an object has no queue, so this waits until it is through. What comes of it nobody hears. */
QUILL_INLINE quill_status quill_door_sent(uint64_t rax)
{
    return (uint32_t)rax >> 31 == 0 ? QUILL_KERNEL | ((uint32_t)rax & 0xffff) : QUILL_OK;
}

/* The flexpage of a map item that maps or grants. */
QUILL_INLINE tern_fpage quill_handed(tern_fpage pages, bool grant)
{
    return grant ? pages | TERN_GRANT : pages & ~(tern_fpage)TERN_GRANT;
}

/* Whether a reply would be a success if all its pages had arrived. */
QUILL_INLINE bool quill_came_short(uint64_t rax)
{
    return (rax | TERN_ITEM_WHOLE) == QUILL_PAGES_DONE;
}

/* The label of a reply that is not QUILL_DONE, as a status. Whoever asks or faults in the middle of a call did not
 * answer, and no label means success. */
static __attribute__((noinline, cold, unused)) quill_status quill_label(uint64_t rax)
{
    uint32_t eax = (uint32_t)rax, label = (uint32_t)(rax >> 32);

    if (eax >> 31 == 0)
        return QUILL_KERNEL | (eax & 0xffff);
    return eax == TERN_KIND_REPLY && label != 0 && label != UINT32_MAX ? label : QUILL_MALFORMED;
}

/* As quill_label; and the compiler knows that it is no success, so that whoever is told of one has all results. */
QUILL_INLINE quill_status quill_failure(uint64_t rax)
{
    quill_status status = quill_label(rax);

    if (status == QUILL_OK)
        __builtin_unreachable();
    return status;
}

/* As quill_failure, for a reply that may have a part in memory. */
QUILL_INLINE quill_status quill_failure_in(uint64_t rax, bool *in_memory)
{
    bool is_message = (uint32_t)rax >> 31 != 0;

    *in_memory = is_message && (rax & QUILL_NO_BLOCK) == 0;
    return quill_failure(is_message ? rax | QUILL_NO_BLOCK : rax);
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

/* Bytes of a counted text: its own length, if it is one of at most so many characters. A zero within it is one. */
static inline uint32_t quill_counted_bytes(const char *text, uint32_t bytes, size_t bound)
{
    return bytes <= 4 * bound && quill_characters_and(true, text, bytes) <= bound ? bytes : UINT32_MAX;
}

static inline bool quill_get_counted_text(char *to, const char *from, uint32_t bytes, size_t bound)
{
    if (bytes > 4 * bound || quill_characters_and(true, from, bytes) > bound)
        return false;
    __builtin_memcpy(to, from, bytes);
    return true;
}

/* --- lists that are sent from where they lie, and used where they arrive --- */

static inline uint64_t quill_address(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

#define QUILL_ONES UINT64_C(0x0101010101010101)
#define QUILL_HIGHS UINT64_C(0x8080808080808080)

/* An address of which the compiler does not know what is there: it would warn of what is never reached. And it has it
 * in a register from here on, instead of loading or computing it for each use. */
QUILL_INLINE const char *quill_unknown(const void *pointer)
{
    const char *same = pointer;
    __asm__ volatile("" : "+r"(same));
    return same;
}

static inline uint64_t quill_load(const char *from)
{
    uint64_t word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}

/* How many whole words so many bytes are, and whether that is none. One instruction says both, but a compiler would compare the
 * bytes. */
QUILL_INLINE uint64_t quill_whole(uint64_t bytes, bool *none)
{
    uint64_t whole = bytes;

    if (__builtin_constant_p(bytes))
        whole = bytes / 8, *none = whole == 0;
    else
        __asm__("shr $3, %[whole]" : [whole] "+r"(whole), "=@ccz"(*none));
    return whole;
}

/* The last eight bytes, or all if there are no eight. */
QUILL_INLINE uint64_t quill_tail(const char *from, uint64_t bytes, bool few)
{
    uint64_t tail = 0;

    if (__builtin_expect(!few, 1))
        return quill_load(from + bytes - 8);
    while (bytes > 0)
        tail = tail << 8 | (uint8_t)from[--bytes];
    return tail;
}

/* Puts the tail behind the words that have arrived; there is room for eight bytes at least. */
QUILL_INLINE void quill_complete(char *list, uint64_t bytes, uint64_t tail)
{
    __builtin_memcpy(__builtin_expect(bytes >= 8, 1) ? list + bytes - 8 : list, &tail, sizeof tail);
}

/* Constants of loops over words lie in memory: an instruction each less, and a register. */
static const uint64_t quill_minus_ones __attribute__((unused)) = -QUILL_ONES;
static const uint64_t quill_highs __attribute__((unused)) = QUILL_HIGHS;

/* The place of the first byte that is 0 or above 0x80 in a text that begins at a multiple of eight. A word is there if its
 * first byte is. Two words in a round. */
QUILL_INLINE uint64_t quill_odd_byte(const char *text)
{
    uint64_t at = 0, odd;

    __asm__ volatile("1:\n\t"
            "mov (%[text],%[at]), %[odd]\n\t"
            "add %[minus], %[odd]\n\t"
            "test %[odd], %[highs]\n\t"
            "jnz 2f\n\t"
            "mov 8(%[text],%[at]), %[odd]\n\t"
            "add $16, %[at]\n\t"
            "add %[minus], %[odd]\n\t"
            "test %[odd], %[highs]\n\t"
            "jz 1b\n\t"
            "sub $8, %[at]\n"
            "2:\n\t"
            "and %[highs], %[odd]"
            : [at] "+r"(at), [odd] "=&r"(odd)
            : [text] "r"(text), [minus] "m"(quill_minus_ones), [highs] "m"(quill_highs)
            : "memory", "cc");
    return at + (unsigned)__builtin_ctzll(odd) / 8;
}

/* Bytes of a text of at most so many bytes and characters, or UINT64_MAX if it is none. Whether it is UTF-8 does not matter as
 * long as nobody has to count characters. */
static __attribute__((noinline, unused)) uint64_t quill_other_text_size(const char *text, uint64_t bytes_max,
                                                                        uint64_t characters_max, bool checked)
{
    uint64_t bytes = 0;

#ifndef QUILL_BYTEWISE
    while (bytes <= bytes_max && text[bytes] != 0 && ((uintptr_t)(text + bytes) & 7) != 0)
        bytes++;
    while (bytes <= bytes_max && ((uintptr_t)(text + bytes) & 7) == 0) {
        uint64_t word = quill_load(quill_unknown(text + bytes));
        uint64_t zeros = (word - QUILL_ONES) & ~word & QUILL_HIGHS;
        if (zeros != 0) {
            bytes += (unsigned)__builtin_ctzll(zeros) / 8;
            break;
        }
        bytes += 8;
    }
#endif
    while (bytes <= bytes_max && text[bytes] != 0)
        bytes++;
    if (bytes > bytes_max)
        return UINT64_MAX;
    return (checked || bytes > characters_max) && quill_characters(text, bytes) > characters_max ? UINT64_MAX : bytes;
}

/* As quill_other_text_size; `same` is the address of `text`. A server sees whether a text is UTF-8; so a client looks only if no answer will
 * say so. */
QUILL_INLINE uint64_t quill_text_size(const char *text, const char *same, uint64_t bytes_max, uint64_t characters_max,
                                      bool checked)
{
    (void)same;
#ifndef QUILL_BYTEWISE
    if (!checked && __builtin_expect(((uintptr_t)text & 7) == 0, 1)) {
        uint64_t bytes = quill_odd_byte(same);
        if (__builtin_expect(same[bytes] == 0 && bytes <= characters_max, 1))
            return bytes;
    }
#endif
    return quill_other_text_size(text, bytes_max, characters_max, checked);
}

static __attribute__((noinline, unused)) uint64_t quill_other_counted_size(const char *text, uint64_t bytes,
                                                                           uint64_t bytes_max, uint64_t characters_max)
{
    return bytes <= bytes_max && quill_characters_and(true, text, bytes) <= characters_max ? bytes : UINT64_MAX;
}

/* Bytes of a counted text, of which nobody has to look at a byte as long as there are not too many. */
QUILL_INLINE uint64_t quill_counted_size(const char *text, uint64_t bytes, uint64_t bytes_max, uint64_t characters_max,
                                         bool checked)
{
    if (!checked && __builtin_expect(bytes <= characters_max, 1))
        return bytes;
    return quill_other_counted_size(text, bytes, bytes_max, characters_max);
}

static __attribute__((noinline, cold, unused)) bool quill_is_other_text(const char *text, uint64_t bytes,
                                                                        uint64_t characters_max)
{
    return quill_characters(text, bytes) <= characters_max;
}

/* Ones for the bytes of a word that are behind so many. */
static const uint64_t quill_ones_behind[8] __attribute__((unused)) = {
    QUILL_ONES,       QUILL_ONES << 8,  QUILL_ONES << 16, QUILL_ONES << 24,
    QUILL_ONES << 32, QUILL_ONES << 40, QUILL_ONES << 48, QUILL_ONES << 56,
};

QUILL_INLINE bool quill_has_highs(uint64_t word)
{
    bool has;

    __asm__("test %[word], %[highs]" : "=@ccnz"(has) : [word] "r"(word), [highs] "m"(quill_highs));
    return has;
}

/* The last eight bytes of a list, or all if there are fewer. */
QUILL_INLINE uint64_t quill_last(const char *list, uint64_t bytes)
{
    return bytes >= 8 ? quill_load(list + bytes - 8) : quill_load(list) & ~(quill_ones_behind[bytes] * 0xff);
}

/* Whether that is a text of at most so many characters, of which the last are known; puts a zero behind it. A first look
 * knows only ASCII: so whoever looks calls no function, and has no registers to save. Only if that fails it looks again. */
QUILL_INLINE bool quill_end_text(char *text, uint64_t bytes, uint64_t last, uint64_t characters_max, bool again)
{
    uint64_t odd = last, word, left = bytes / 8;

    if (again)
        return quill_is_other_text(text, bytes, characters_max);
    if (__builtin_expect(bytes >= 8, 1)) {
        /* A compiler would compute the place of the zero once for both cases. */
        __asm__ volatile("movb $0, (%[text],%[bytes])\n\t"
                "mov %[odd], %[word]\n\t"
                "add %[minus], %[word]\n\t"
                "or %[word], %[odd]\n"
                "1:\n\t"
                "mov -8(%[text],%[left],8), %[word]\n\t"
                "or %[word], %[odd]\n\t"
                "add %[minus], %[word]\n\t"
                "or %[word], %[odd]\n\t"
                "dec %[left]\n\t"
                "jnz 1b"
                : [left] "+r"(left), [word] "=&r"(word), [odd] "+r"(odd)
                : [minus] "m"(quill_minus_ones), [text] "r"(text), [bytes] "r"(bytes)
                : "memory", "cc");
    } else {
        text[bytes] = 0;
        word = last | quill_ones_behind[bytes];
        odd = word | (word - QUILL_ONES);
    }
    return __builtin_expect(!quill_has_highs(odd) && bytes <= characters_max, 1);
}

/* As quill_end_text, at one look: a client's. */
QUILL_INLINE bool quill_end_any_text(char *text, uint64_t bytes, uint64_t last, uint64_t characters_max)
{
    return quill_end_text(text, bytes, last, characters_max, false) || quill_is_other_text(text, bytes, characters_max);
}

static __attribute__((noinline, cold, unused)) bool quill_is_other_counted_text(const char *text, uint64_t bytes,
                                                                                uint64_t characters_max)
{
    return quill_characters_and(true, text, bytes) <= characters_max;
}

/* Whether that is a counted text: nothing is put behind it, and a zero within it is a character like any other. */
QUILL_INLINE bool quill_is_counted_text(const char *text, uint64_t bytes, uint64_t last, uint64_t characters_max, bool again)
{
    uint64_t odd = last, left = bytes / 8;

    if (again)
        return quill_is_other_counted_text(text, bytes, characters_max);
    if (__builtin_expect(left != 0, 1))
        __asm__ volatile("1:\n\t"
                "or -8(%[text],%[left],8), %[odd]\n\t"
                "dec %[left]\n\t"
                "jnz 1b"
                : [left] "+r"(left), [odd] "+r"(odd)
                : [text] "r"(text)
                : "memory", "cc");
    return __builtin_expect(!quill_has_highs(odd) && bytes <= characters_max, 1);
}

#endif
