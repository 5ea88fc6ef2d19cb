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
#define QUILL_OTHER_INBOX 0xffff0102u /* the reply arrived elsewhere: another inbox was opened after this one */
#define QUILL_PAGES_SHORT 0xffff0103u /* only a part of the pages arrived: somebody's quota is exhausted */
#define QUILL_SILENT 0xffff0200u    /* in a server: nothing is answered */
#define QUILL_AGAIN 0xffff0201u     /* in a server: the request has to be looked at again, by who knows UTF-8 */
#define QUILL_KERNEL 0xfffd0000u    /* and up: the message did not get through; the kernel's error is added */

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

/* A call with a part in memory, of which the first two words say what it is and where. The last word is lost, whatever it
 * is. */
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

QUILL_INLINE bool quill_is_any_counted_text(const char *text, uint64_t bytes, uint64_t last, uint64_t characters_max)
{
    return quill_is_counted_text(text, bytes, last, characters_max, false) ||
           quill_is_other_counted_text(text, bytes, characters_max);
}

/* The whole words of so many bytes, computed again: to keep them would need a register. */
QUILL_INLINE uint64_t quill_words_again(uint64_t bytes)
{
    __asm__ volatile("" : "+r"(bytes));
    return bytes / 8;
}

/* What is done about a request that is wrong, or not known to be right: the second look decides. */
QUILL_INLINE quill_status quill_refused(bool again)
{
    return again ? QUILL_MALFORMED : QUILL_AGAIN;
}

/* How long a string is that has arrived; the number of the word that says so is known. */
static inline uint64_t quill_string_bytes(const void *room, uint64_t descriptor)
{
    return (uint32_t)((const uint64_t *)room)[descriptor];
}

/* --- values that are read piece by piece, from the words in memory behind those that have places --- */

/* Words that are being written. A failure stays, and everything after it is skipped. */
typedef struct {
    char *bytes;
    uint64_t room, length;
    quill_status status;
    uint32_t depth;
} quill_out;

static inline quill_out quill_begin_out(char *bytes, uint64_t room)
{
    return (quill_out){ bytes, room, 0, QUILL_OK, 0 };
}

static inline void quill_fail(quill_out *out, quill_status status)
{
    if (out->status == QUILL_OK)
        out->status = status;
}

/* Values within values that may be absent, and lists within lists, at most. */
#define QUILL_DEPTH_MAX 64

/* One pointer further. What is deeper than readers go, or has no end, is refused. */
static inline bool quill_put_enter(quill_out *out)
{
    if (out->depth == QUILL_DEPTH_MAX)
        quill_fail(out, QUILL_TOO_LONG);
    else
        out->depth++;
    return out->status == QUILL_OK;
}

static inline void quill_put_leave(quill_out *out)
{
    out->depth--;
}

static inline void quill_put(quill_out *out, const void *from, uint64_t count)
{
    if (count > out->room - out->length)
        quill_fail(out, QUILL_TOO_LONG);
    if (out->status != QUILL_OK || count == 0)
        return;
    __builtin_memcpy(out->bytes + out->length, from, count);
    out->length += count;
}

static inline void quill_put_align(quill_out *out, uint64_t align)
{
    static const char zeros[8];

    quill_put(out, zeros, -out->length % align);
}

/* Words that are being read. Every step checks that the bytes are there; after a failure all values are 0. */
typedef struct {
    char *bytes;
    uint64_t length, at;
    bool failed;
    uint32_t depth;
    char *memory; /* for lists, and for what may be absent */
    uint64_t memory_bytes;
} quill_in;

/* What comes behind so many words. Not even these are there, or other strings than so many, if it has failed. */
static inline quill_in quill_begin_in(uint64_t *room, const uint64_t *words, uint64_t fixed, uint32_t strings)
{
    uint32_t dope = (uint32_t)words[0];
    uint64_t count = dope & 0xfff;

    if (dope >> 12 != strings || count < fixed)
        return (quill_in){ NULL, 0, 0, true, 0, NULL, 0 };
    return (quill_in){ (char *)(room + fixed), 8 * (count - fixed), 0, false, 0, NULL, 0 };
}

static inline void quill_give_memory(quill_in *in, char *memory, uint64_t bytes)
{
    in->memory = memory;
    in->memory_bytes = bytes;
}

/* Memory for elements, if the message can hold so many, and there is so much left. */
static inline void *quill_get_room(quill_in *in, uint32_t count, uint64_t wire_bytes, uint64_t bytes)
{
    uint64_t all = ((uint64_t)count * bytes + 15) & ~(uint64_t)15;
    char *room = in->memory;

    if (in->failed || count > (in->length - in->at) / wire_bytes || all > in->memory_bytes) {
        in->failed = true;
        return NULL;
    }
    in->memory += all;
    in->memory_bytes -= all;
    __builtin_memset(room, 0, all);
    return room;
}

static inline bool quill_enter(quill_in *in)
{
    if (in->depth == QUILL_DEPTH_MAX)
        in->failed = true;
    else
        in->depth++;
    return !in->failed;
}

static inline void quill_leave(quill_in *in)
{
    in->depth--;
}

static inline char *quill_take(quill_in *in, uint64_t count)
{
    if (in->failed || count > in->length - in->at) {
        in->failed = true;
        return NULL;
    }
    in->at += count;
    return in->bytes + in->at - count;
}

static inline void quill_get_align(quill_in *in, uint64_t align)
{
    quill_take(in, -in->at % align);
}

static inline bool quill_is_end(const quill_in *in)
{
    return !in->failed && in->at == in->length;
}

/* So many bytes as they are. */
static inline void quill_get_bytes(quill_in *in, void *to, uint64_t count)
{
    const char *from = quill_take(in, count);
    if (from != NULL)
        __builtin_memcpy(to, from, count);
}

#define QUILL_NUMBER(name, type)                                                        \
    static inline __attribute__((unused)) void quill_put_##name(quill_out *out, type value) \
    {                                                                                   \
        quill_put_align(out, sizeof value);                                             \
        quill_put(out, &value, sizeof value);                                           \
    }                                                                                   \
    static inline __attribute__((unused)) type quill_get_##name(quill_in *in)           \
    {                                                                                   \
        type value = 0;                                                                 \
        const char *from;                                                               \
        quill_get_align(in, sizeof value);                                              \
        from = quill_take(in, sizeof value);                                            \
        if (from != NULL)                                                               \
            __builtin_memcpy(&value, from, sizeof value);                               \
        return value;                                                                   \
    }

QUILL_NUMBER(u8, uint8_t)
QUILL_NUMBER(u16, uint16_t)
QUILL_NUMBER(u32, uint32_t)
QUILL_NUMBER(u64, uint64_t)
QUILL_NUMBER(i8, int8_t)
QUILL_NUMBER(i16, int16_t)
QUILL_NUMBER(i32, int32_t)
QUILL_NUMBER(i64, int64_t)
QUILL_NUMBER(f32, float)
QUILL_NUMBER(f64, double)

static inline void quill_put_bool(quill_out *out, bool value)
{
    quill_put_u8(out, value);
}

static inline bool quill_get_bool(quill_in *in)
{
    uint8_t byte = quill_get_u8(in);
    if (byte > 1)
        in->failed = true;
    return byte == 1;
}

static inline void quill_put_wchar(quill_out *out, uint32_t value)
{
    if (!quill_is_scalar(value))
        quill_fail(out, QUILL_MALFORMED);
    quill_put_u32(out, value);
}

static inline uint32_t quill_get_wchar(quill_in *in)
{
    uint32_t character = quill_get_u32(in);
    if (!quill_is_scalar(character))
        in->failed = true;
    return character;
}

/* How many characters a text has, or how many bytes, if it is none. */
static inline int64_t quill_characters_of(const char *text, uint64_t bytes)
{
    uint64_t count = bytes == 0 ? 0 : quill_characters_and(true, text, bytes);
    return count == UINT64_MAX ? (int64_t)bytes : (int64_t)count;
}

static inline int64_t quill_text_characters(const char *text)
{
    uint64_t bytes = 0;
    while (text != NULL && text[bytes] != 0)
        bytes++;
    return quill_characters_of(text, bytes);
}

/* Refuses text that is no UTF-8, or has more characters than its type allows. */
static inline void quill_check_text(quill_out *out, const char *text, uint64_t bound)
{
    uint64_t bytes = 0;

    while (text[bytes] != 0 && bytes <= out->room)
        bytes++;
    if (bytes > out->room || quill_characters(text, bytes) > bound)
        quill_fail(out, QUILL_TOO_LONG);
}

/* Text that has been looked at, with the zero behind it. */
static inline void quill_put_string(quill_out *out, const char *text)
{
    uint64_t bytes = out->status == QUILL_OK ? __builtin_strlen(text) : 0;

    quill_put_u32(out, (uint32_t)bytes);
    quill_put(out, text, bytes + 1);
}

/* Text where it has arrived, with the zero behind it. A zero within it would hide the rest from C, and is refused. */
static inline char *quill_get_string(quill_in *in, uint64_t bound)
{
    uint64_t bytes = quill_get_u32(in), characters;
    char *text = quill_take(in, bytes + 1);

    if (text == NULL)
        return NULL;
    characters = quill_characters(text, bytes);
    if (text[bytes] != 0 || characters > bound || characters == SIZE_MAX)
        in->failed = true;
    return text;
}

/* A counted text travels with a zero behind it, too; one within it is a character like any other. */
static inline void quill_check_counted(quill_out *out, const char *text, uint64_t bytes, uint64_t bound)
{
    if (bytes > out->room || quill_characters_and(true, text, bytes) > bound)
        quill_fail(out, QUILL_TOO_LONG);
}

static inline void quill_put_counted(quill_out *out, const char *text, uint32_t bytes)
{
    quill_put_u32(out, bytes);
    quill_put(out, text, bytes);
    quill_put(out, "", 1);
}

static inline char *quill_get_counted(quill_in *in, uint32_t *bytes, uint64_t bound)
{
    char *text;
    uint64_t characters;

    *bytes = quill_get_u32(in);
    text = quill_take(in, (uint64_t)*bytes + 1);
    if (text == NULL)
        return NULL;
    characters = quill_characters_and(true, text, *bytes);
    if (text[*bytes] != 0 || characters > bound || characters == SIZE_MAX)
        in->failed = true;
    return text;
}

static inline void quill_get_counted_inside(quill_in *in, char *to, uint32_t *bytes, uint64_t bound)
{
    const char *text = quill_get_counted(in, bytes, bound);

    if (in->failed)
        *bytes = 0;
    else
        __builtin_memcpy(to, text, *bytes);
}

/* Copies a text to where there is room for as much as the bound says. */
static inline void quill_get_inside(quill_in *in, char *to, uint64_t bound)
{
    const char *text = quill_get_string(in, bound);

    *to = 0;
    if (!in->failed)
        __builtin_memcpy(to, text, __builtin_strlen(text) + 1);
}

/* --- servers --- */

typedef quill_status (*quill_dispatch)(const void *methods, void *self, tern_uid from, uint32_t label,
                                       uint64_t *words, void *room, uint64_t *kept, bool *in_memory);

/* Answers one request: its words are replaced by those of the reply. Returns the label of the reply. `room` is where its
 * part in memory is, or NULL; `kept` is where the server keeps what the reply has in memory, if it has: then `in_memory`
 * becomes true. */
QUILL_INLINE uint32_t quill_answer(quill_dispatch dispatch, const void *methods, void *self, tern_uid *partner,
                                    uint32_t label, uint64_t *words, void *room, uint64_t *kept, bool *in_memory)
{
    quill_status status = dispatch(methods, self, *partner, label, words, room, kept, in_memory);

    /* Nothing of the request, and nothing half done, goes back. */
    if (status >= QUILL_KERNEL)
        quill_clear(words);
    if (status == QUILL_SILENT)
        *partner = TERN_NIL;
    return status == QUILL_OK ? UINT32_MAX : status;
}

/* --- servers that are handed pages, or hand some --- */

/* Answers one request; `pages` is where those of the request have arrived, or 0, and then those of the reply. `waits` says
 * whether somebody waits for it. */
typedef quill_status (*quill_pages_dispatch)(const void *methods, void *self, tern_uid from, uint32_t label,
                                             uint64_t *words, tern_fpage *pages, bool waits);

/* Makes a message that has come the one to be sent, and returns the pages that go with it. Whatever is no request gets no
 * answer. One with pages of which not all have arrived is malformed; those that have stay where they are. */
static inline tern_fpage quill_answer_pages(quill_pages_dispatch dispatch, const void *methods, void *self,
                                            struct tern_message *message)
{
    uint64_t words[QUILL_WORDS] = { 0 };
    tern_fpage pages = (message->kind & TERN_NO_ITEM) != 0 ? 0 : message->words[6];
    bool whole = pages == 0 || (message->kind & TERN_ITEM_WHOLE) != 0;
    bool waits = (message->kind & TERN_KIND_MASK) == (TERN_KIND_REQUEST & TERN_KIND_MASK);
    quill_status status = QUILL_MALFORMED;

    if (!waits && (message->kind & TERN_KIND_MASK) != (TERN_KIND_REPLY & TERN_KIND_MASK)) {
        message->partner = TERN_NIL;
        return 0;
    }
    __builtin_memcpy(words, message->words, sizeof message->words);
    if (whole && (message->kind & QUILL_NO_BLOCK) != 0)
        status = dispatch(methods, self, message->partner, message->label, words, &pages, waits);
    /* Nothing of the request, and nothing half done, goes back. */
    if (status >= QUILL_KERNEL)
        quill_clear(words);
    if (status != QUILL_OK)
        pages = 0;
    if (status == QUILL_SILENT || !waits)
        message->partner = TERN_NIL;
    message->label = status == QUILL_OK ? UINT32_MAX : status;
    __builtin_memcpy(message->words, words, sizeof message->words);
    return pages;
}

#ifndef QUILL_OWN_IPC

static inline quill_status quill_serve_pages(quill_pages_dispatch dispatch, const void *methods, void *self,
                                             tern_fpage window)
{
    struct tern_message message = { 0 };
    tern_fpage pages = 0;

    for (;;) {
        bool answers = message.partner != TERN_NIL;
        uint32_t flags = pages != 0 ? TERN_ITEM : 0;
        int error;

        if (pages != 0) {
            message.words[6] = pages;
            message.words[7] = 0;
        }
        pages = 0;
        error = tern_ipc(&message, flags, TERN_ANY, window, TERN_TIMEOUTS(0, TERN_NEVER));
        if (error == TERN_OK)
            pages = quill_answer_pages(dispatch, methods, self, &message);
        else if (error == TERN_BAD_ARGUMENT && !answers)
            return QUILL_KERNEL + (uint32_t)error;
        else /* A client that went away, or cannot take the pages, must not keep the server from the next one. */
            message.partner = TERN_NIL;
    }
}

#endif

/* A test on another system can put a call of its own in the place of a server's instruction. */
#ifdef QUILL_SYSCALL
#define QUILL_RETURN_SYSCALL QUILL_SYSCALL
#define QUILL_DOOR_RESTORE ""
#else
#define QUILL_SYSCALL TERN_IPC_SYSCALL
#define QUILL_RETURN_SYSCALL TERN_DOOR_RETURN_SYSCALL
#define QUILL_DOOR_RESTORE TERN_DOOR_RESTORE
#endif

#ifndef QUILL_OWN_IPC

/* A message that has come or that goes: rax, the partner, the words. */
typedef struct {
    uint64_t rax;
    tern_uid partner;
    uint64_t words[QUILL_WORDS];
} quill_message;

QUILL_INLINE void quill_copy(uint64_t *to, const uint64_t *from)
{
    to[0] = from[0], to[1] = from[1], to[2] = from[2], to[3] = from[3], to[4] = from[4], to[5] = from[5];
    to[6] = from[6], to[7] = from[7], to[8] = from[8], to[9] = from[9], to[10] = from[10];
}

/* The reply to a method's success, which has so many words. The last six registers keep what the client itself sent where
 * no word goes back; all others have a word, or zero. */
QUILL_INLINE void quill_done(quill_message *message, const uint64_t *words, unsigned given, bool in_memory)
{
    uint64_t *to = message->words;

    message->rax = in_memory ? QUILL_LONG_DONE : QUILL_DONE;
    to[0] = words[0], to[1] = words[1], to[2] = words[2], to[3] = words[3], to[4] = words[4];
    to[5] = given > 5 ? words[5] : to[5];
    to[6] = given > 6 ? words[6] : to[6];
    to[7] = given > 7 ? words[7] : to[7];
    to[8] = given > 8 ? words[8] : to[8];
    to[9] = given > 9 ? words[9] : to[9];
    to[10] = given > 10 ? words[10] : to[10];
}

/* Nobody is answered, so the words go nowhere. */
QUILL_INLINE void quill_silent(quill_message *message)
{
    message->rax = QUILL_DONE;
    message->partner = TERN_NIL;
}

/* Any reply. Nothing of the request, and nothing half done, goes back with an error. */
QUILL_INLINE void quill_otherwise(quill_message *message, const uint64_t *words, quill_status status, bool in_memory)
{
    uint64_t operation = in_memory ? QUILL_IPC_LONG_REPLY_WAIT : TERN_IPC_REPLY_WAIT;

    message->rax = (uint64_t)(status == QUILL_OK ? UINT32_MAX : status) << 32 | operation;
    if (status == QUILL_SILENT)
        message->partner = TERN_NIL;
    if (status >= QUILL_KERNEL)
        quill_clear(message->words);
    else
        quill_copy(message->words, words);
}

/* Whether whoever sent a message of this kind waits for an answer. */
QUILL_INLINE bool quill_is_request(uint64_t rax)
{
    uint32_t kind = (uint32_t)rax;

    return kind >> 31 != 0 && (kind & TERN_KIND_MASK) == (TERN_KIND_REQUEST & TERN_KIND_MASK);
}

/* A server is one function, with the methods in it; each of them has a stretch from its request to the next one. From one
 * method to another the words stay where they arrive, in the registers that the kernel has for them. Everything else is
 * in the function's stack frame: only rsp survives. A compiler that is not told where these variables are moves them
 * about. Between them and what a method does there is a copy each way, of which nothing remains. */
#ifdef QUILL_OMIT_FRAME_POINTER
#define QUILL_W9 "rbp"
#define QUILL_EXCHANGE QUILL_KEEP_RBP QUILL_SYSCALL QUILL_RESTORE_RBP
#define QUILL_LOST "rcx", "r11"
#else
#define QUILL_W9 "rcx"
#define QUILL_EXCHANGE \
    QUILL_KEEP_RBP "mov %%rcx, %%rbp\n\t" QUILL_SYSCALL "\n\tmov %%rbp, %%rcx" QUILL_RESTORE_RBP
#define QUILL_LOST "r11"
#endif

/* Whether what has come is no plain request. GCC would first copy what it compares; Clang has no register left for a flag. */
#if defined(QUILL_OMIT_FRAME_POINTER) && !defined(__clang__)
#define QUILL_FLAG "\n\tcmp $-2, %%eax"
#define QUILL_FLAGGED "=@ccne"(quill_is_odd),
#define QUILL_COMPARE
#else
#define QUILL_FLAG
#define QUILL_FLAGGED
#define QUILL_COMPARE quill_is_odd = (uint32_t)quill_rax != TERN_IPC_CALL
#endif

#define QUILL_REGISTERS                                                                             \
    register uint64_t quill_rax __asm__("rax"), quill_rdx __asm__("rdx"), quill_w0 __asm__("rdi");  \
    register uint64_t quill_w1 __asm__("rsi"), quill_w2 __asm__("r8"), quill_w3 __asm__("r9");      \
    register uint64_t quill_w4 __asm__("r10"), quill_w5 __asm__("r12"), quill_w6 __asm__("r13");    \
    register uint64_t quill_w7 __asm__("r14"), quill_w8 __asm__("rbx"), quill_w9 __asm__(QUILL_W9); \
    register uint64_t quill_w10 __asm__("r15");                                                     \
    bool quill_is_odd

/* What has come. */
#define QUILL_ARRIVED                                                                               \
    { quill_rax, quill_rdx,                                                                         \
      { quill_w0, quill_w1, quill_w2, quill_w3, quill_w4, quill_w5, quill_w6, quill_w7, quill_w8, quill_w9, quill_w10 } }

/* What goes. Those registers come last that some instructions have for themselves: what is moved to the others may have to
 * be computed first. */
#define QUILL_LEAVES(message)                                                                       \
    quill_w10 = (message).words[10], quill_w8 = (message).words[8], quill_w7 = (message).words[7];  \
    quill_w6 = (message).words[6], quill_w5 = (message).words[5], quill_w4 = (message).words[4];    \
    quill_w3 = (message).words[3], quill_w2 = (message).words[2], quill_w1 = (message).words[1];    \
    quill_w0 = (message).words[0], quill_w9 = (message).words[9], quill_rdx = (message).partner;    \
    quill_rax = (message).rax

/* A refusal: no words. */
#define QUILL_REFUSE(status)                                                                        \
    quill_w0 = quill_w1 = quill_w2 = quill_w3 = quill_w4 = quill_w5 = 0;                            \
    quill_w6 = quill_w7 = quill_w8 = quill_w9 = quill_w10 = 0;                                      \
    quill_rax = (uint64_t)(status) << 32 | TERN_IPC_REPLY_WAIT

/* Answers, and waits; then says whether what has come is no plain request. The number makes each of them another one: a
 * compiler would put those that are the same in one place, and jump there. Operands that go in and out are written twice:
 * clang 14 takes registers for one another where they are tied. */
#define QUILL_REPLY_WAIT(number)                                                                       \
    __asm__ volatile(QUILL_EXCHANGE QUILL_FLAG                                                         \
                     : QUILL_FLAGGED "=r"(quill_rax), "=r"(quill_rdx), "=r"(quill_w0), "=r"(quill_w1), \
                       "=r"(quill_w2), "=r"(quill_w3), "=r"(quill_w4), "=r"(quill_w5),                 \
                       "=r"(quill_w6), "=r"(quill_w7), "=r"(quill_w8), "=r"(quill_w9),                 \
                       "=r"(quill_w10)                                                                 \
                     : "i"(number), "r"(quill_rax), "r"(quill_rdx), "r"(quill_w0), "r"(quill_w1),      \
                       "r"(quill_w2), "r"(quill_w3), "r"(quill_w4), "r"(quill_w5),                     \
                       "r"(quill_w6), "r"(quill_w7), "r"(quill_w8), "r"(quill_w9),                     \
                       "r"(quill_w10)                                                                  \
                     : QUILL_LOST, "memory" TERN_IPC_CLOBBERS);                                                          \
    QUILL_COMPARE

/* To the next method. */
#define QUILL_NEXT(message, number, shift)                                                          \
    QUILL_LEAVES(message);                                                                          \
    QUILL_REPLY_WAIT(number);                                                                       \
    if (__builtin_expect(quill_is_odd, 0))                                                          \
        goto quill_odd;                                                                             \
    goto *quill_places[quill_rax >> (shift)]

/* How long a server waits for a client's pager in the middle of a request, in microseconds. */
#define QUILL_PATIENCE 1000000

/* Where messages with a part in memory arrive. */
typedef struct {
    uint64_t address, room, patience;
} quill_inbox;

/* Says to the kernel where they do from now on; `before` is where they did. */
static inline quill_status quill_register(void *room, uint64_t words, uint64_t count, uint64_t *strings, char *buffers,
                                          const uint32_t *capacities, const uint32_t *begins, quill_inbox *before)
{
    uint64_t control[6] = { TERN_NIL, quill_address(room), (words | count << 12) << 32,
                            QUILL_PATIENCE, 0, 0 };
    int error;

    for (uint64_t i = 0; i < count; i++) {
        strings[2 * i] = quill_address(buffers + begins[i]);
        strings[2 * i + 1] = (uint64_t)capacities[i] << 32;
    }
    error = tern_control(TERN_THREAD_CONTROL, TERN_THREAD_SET_BLOCK, control);
    /* Even if it failed: a compiler does not see that nobody looks at it then. */
    if (before != NULL)
        *before = (quill_inbox){ control[1], control[2], control[3] };
    return error == TERN_OK ? QUILL_OK : QUILL_KERNEL + (uint32_t)error;
}

/* They arrive there again. */
static inline quill_status quill_close(const quill_inbox *before)
{
    uint64_t control[6] = { TERN_NIL, before->address, before->room, before->patience, 0, 0 };
    int error = tern_control(TERN_THREAD_CONTROL, TERN_THREAD_SET_BLOCK, control);

    return error == TERN_OK ? QUILL_OK : QUILL_KERNEL + (uint32_t)error;
}

#endif

/* --- objects behind doors --- */

#define QUILL_DOOR_LONG_CALL (TERN_DOOR_CALL & ~QUILL_NO_BLOCK) /* the kind of a call with a part in memory */

/* Where requests with a part in memory arrive, of whatever interface: words, one more for the zero behind a text, and behind them
 * where the buffers for strings are. Each thread that serves has one. It begins as zeros. */
#define QUILL_ROOM_WORDS 513
#define QUILL_ROOM_STRINGS 255
typedef struct {
    uint64_t words[QUILL_ROOM_WORDS];
    uint64_t strings[2 * QUILL_ROOM_STRINGS];
} quill_door_room;

/* Bytes of a buffer for a string, with a place for a zero; and of so many. */
#define QUILL_BUFFER(bytes) (((uint64_t)(bytes) + 8) / 8 * 8)
#define QUILL_BUFFERS(strings, bytes) ((strings) * QUILL_BUFFER(bytes))

/* A string that has arrived: how long it is, and where. */
QUILL_INLINE uint64_t quill_shared_bytes(const quill_door_room *room, unsigned number)
{
    return (uint32_t)room->strings[2 * number + 1];
}

QUILL_INLINE char *quill_shared_string(const quill_door_room *room, unsigned number)
{
    return (char *)(uintptr_t)room->strings[2 * number];
}

/* A reference that has come with a request, or leaves with a reply: where it is, and w7 beside it. One that came in memory says there where
 * the next one may go. */
typedef struct {
    tern_fpage place;
    uint64_t view, *window;
} quill_item;

/* What came with a request that has this dope: behind the strings for which there is room. */
QUILL_INLINE quill_item quill_item_in(uint64_t dope, quill_door_room *room)
{
    uint64_t *item = room->strings + 2 * (dope >> 44 & 0xff);

    return (quill_item){ item[0], item[1], item };
}

/* A test on another system can put something else in the place of the system call. */
#ifndef QUILL_RELEASE
#define QUILL_RELEASE(number) tern_door_release(number)
#endif

/* What came and nobody wants: the place where it is will have the next one. */
static __attribute__((noinline, cold, unused)) void quill_unwanted(tern_fpage place)
{
    QUILL_RELEASE((uint32_t)(place >> 12));
}

static __attribute__((noinline, cold, unused)) void quill_unwanted_in(uint64_t dope, quill_door_room *room)
{
    quill_unwanted(quill_item_in(dope, room).place);
}

/* How a method ended: rax, and the reply's first word. The others are in the frame. */
typedef struct {
    uint64_t rax, w0;
} quill_ended;

/* The return with so many words at most. Nothing of the request, and nothing half done, goes back with an error. */
QUILL_INLINE quill_ended quill_end(uint64_t *frame, uint64_t *words, unsigned given, quill_status status, bool in_memory)
{
    uint64_t rax = QUILL_DOOR_DONE;

    if (__builtin_expect(status != QUILL_OK && status != QUILL_SILENT, 0)) {
        rax = (uint64_t)status << 32 | TERN_DOOR_RETURN;
        if (status >= QUILL_KERNEL)
            quill_clear(words), in_memory = false;
    }
    if (in_memory)
        rax &= ~(uint64_t)QUILL_NO_BLOCK;
    if (given > 1)
        frame[1] = words[1];
    if (given > 2)
        frame[2] = words[2];
    if (given > 3)
        frame[3] = words[3];
    if (given > 4)
        frame[4] = words[4];
    if (given > 5)
        frame[5] = words[5];
    if (given > 6)
        frame[6] = words[6];
    if (given > 7)
        frame[7] = words[7];
    if (given > 8)
        frame[8] = words[8];
    if (given > 9)
        frame[9] = words[9];
    if (given > 10)
        frame[10] = words[10];
    return (quill_ended){ rax, words[0] };
}

/* What comes that is no call of a method: that nobody has an identifier any more, or a request that no stub makes, with what it hands over. */
QUILL_INLINE uint64_t quill_door_otherwise(uint64_t rax, void *object, uint64_t dope, quill_door_room *room, tern_fpage place,
                                           void (*unreferenced)(void *))
{
    if ((uint32_t)rax != TERN_KIND_UNREFERENCED) {
        if ((rax & TERN_NO_ITEM) == 0)
            quill_unwanted((rax & QUILL_NO_BLOCK) != 0 ? place : quill_item_in(dope, room).place);
        return (uint64_t)QUILL_MALFORMED << 32 | TERN_DOOR_RETURN;
    }
    if (unreferenced != NULL)
        unreferenced(object);
    return TERN_DOOR_RETURN;
}

/* Ends a call with what is in rax, and no words. A return without a part in memory does not come back. */
#define QUILL_RETURN_NOTHING                                                                           \
    "xor %%edi, %%edi\n\txor %%esi, %%esi\n\txor %%r8d, %%r8d\n\txor %%r9d, %%r9d\n\txor %%r10d, %%r10d\n\t" \
    "xor %%r12d, %%r12d\n\txor %%r13d, %%r13d\n\txor %%r14d, %%r14d\n\txor %%ebx, %%ebx\n\t"               \
    "xor %%ebp, %%ebp\n\txor %%r15d, %%r15d\n\t" QUILL_RETURN_SYSCALL "\n\tud2"

/* What stands where the table has no method, or one whose requests are of the other kind: all in registers, or not. */
static __attribute__((naked, unused)) void quill_door_no_method(void)
{
    __asm__ volatile("movabs %0, %%rax\n\t" QUILL_RETURN_NOTHING
                     : : "i"((uint64_t)QUILL_NO_METHOD << 32 | TERN_DOOR_RETURN));
}

static __attribute__((naked, unused)) void quill_door_mismatch(void)
{
    __asm__ volatile("movabs %0, %%rax\n\t" QUILL_RETURN_NOTHING
                     : : "i"((uint64_t)QUILL_MALFORMED << 32 | TERN_DOOR_RETURN));
}

/* Refusals of requests that hand something over, in registers and in memory: nobody has that any more. */
#define QUILL_REFUSE_ITEM(function, prepare, let_go, status)                                    \
    static __attribute__((naked, unused)) void function(void)                                    \
    {                                                                                            \
        __asm__ volatile(prepare "call %P1\n\tmovabs %0, %%rax\n\t" QUILL_RETURN_NOTHING        \
                         : : "i"((uint64_t)(status) << 32 | TERN_DOOR_RETURN), "i"(let_go));     \
    }

QUILL_REFUSE_ITEM(quill_door_no_method_for_item, "mov %%r13, %%rdi\n\t", quill_unwanted, QUILL_NO_METHOD)
QUILL_REFUSE_ITEM(quill_door_item_mismatch, "mov %%r13, %%rdi\n\t", quill_unwanted, QUILL_MALFORMED)
QUILL_REFUSE_ITEM(quill_door_no_method_for_long_item, "", quill_unwanted_in, QUILL_NO_METHOD)
QUILL_REFUSE_ITEM(quill_door_long_item_mismatch, "", quill_unwanted_in, QUILL_MALFORMED)

#ifndef QUILL_OWN_IPC

/* Says where requests with a part in memory arrive, and, if `window` is one, references beside that. */
static inline quill_status quill_receive_with(quill_door_room *room, unsigned strings, uint32_t bytes, char *buffers,
                                              tern_fpage window)
{
    uint64_t items = window != 0;
    uint64_t parts = QUILL_ROOM_WORDS | (uint64_t)strings << 12 | items << 20;
    uint64_t control[6] = { TERN_NIL, quill_address(room), parts << 32, QUILL_PATIENCE, 0, 0 };
    int error;

    if (strings + items > QUILL_ROOM_STRINGS)
        return QUILL_KERNEL + TERN_BAD_ARGUMENT;
    for (unsigned i = 0; i < strings; i++) {
        room->strings[2 * i] = quill_address(buffers + i * QUILL_BUFFER(bytes));
        room->strings[2 * i + 1] = (uint64_t)bytes << 32;
    }
    if (window != 0)
        room->strings[2 * strings] = window, room->strings[2 * strings + 1] = 0;
    error = tern_control(TERN_THREAD_CONTROL, TERN_THREAD_SET_BLOCK, control);
    return error == TERN_OK ? QUILL_OK : QUILL_KERNEL + (uint32_t)error;
}

/* Lets requests with a part in memory arrive in `room`, when the calling thread serves: with at most so many strings of at most
 * so many bytes each, in `buffers`, which is QUILL_BUFFERS(strings, bytes) large and begins at a multiple of 8. A program that
 * serves several interfaces takes the largest of each. */
static inline __attribute__((unused)) quill_status quill_receive(quill_door_room *room, unsigned strings, uint32_t bytes,
                                                                 char *buffers)
{
    return quill_receive_with(room, strings, bytes, buffers, 0);
}

#endif

#endif
