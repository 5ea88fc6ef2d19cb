#ifndef QUILL_TERN_SERVE_H
#define QUILL_TERN_SERVE_H

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
static inline quill_status quill_register(void *room, uint64_t words, uint64_t count, uint64_t windows, uint64_t *strings,
                                          char *buffers, const uint32_t *capacities, const uint32_t *begins,
                                          quill_inbox *before)
{
    uint64_t control[6] = { TERN_NIL, quill_address(room), (words | count << 12 | windows << 20) << 32,
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
    const uint64_t *items = quill_item_in(dope, room).window;

    for (uint64_t i = 0; i < (dope >> 20 & 0xff); i++)
        quill_unwanted(items[2 * i]);
}

/* References that came beside the one that a method wants in memory, and were refused with it. */
static __attribute__((noinline, cold, unused)) void quill_further_unwanted(uint64_t dope, quill_door_room *room)
{
    const uint64_t *items = quill_item_in(dope, room).window;

    for (uint64_t i = 1; i < (dope >> 20 & 0xff); i++)
        quill_unwanted(items[2 * i]);
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
        if ((rax & TERN_NO_ITEM) == 0 && (rax & QUILL_NO_BLOCK) != 0)
            quill_unwanted(place);
        else if ((rax & TERN_NO_ITEM) == 0)
            quill_unwanted_in(dope, room);
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

/* Says where requests with a part in memory arrive, and references beside that: in so many of these windows. */
static inline quill_status quill_receive_with(quill_door_room *room, unsigned strings, uint32_t bytes, char *buffers,
                                              const tern_fpage *windows, unsigned items)
{
    uint64_t parts = QUILL_ROOM_WORDS | (uint64_t)strings << 12 | (uint64_t)items << 20;
    uint64_t control[6] = { TERN_NIL, quill_address(room), parts << 32, QUILL_PATIENCE, 0, 0 };
    int error;

    if (strings + items > QUILL_ROOM_STRINGS)
        return QUILL_KERNEL + TERN_BAD_ARGUMENT;
    for (unsigned i = 0; i < strings; i++) {
        room->strings[2 * i] = quill_address(buffers + i * QUILL_BUFFER(bytes));
        room->strings[2 * i + 1] = (uint64_t)bytes << 32;
    }
    for (unsigned i = 0; i < items; i++)
        room->strings[2 * (strings + i)] = windows[i], room->strings[2 * (strings + i) + 1] = 0;
    error = tern_control(TERN_THREAD_CONTROL, TERN_THREAD_SET_BLOCK, control);
    return error == TERN_OK ? QUILL_OK : QUILL_KERNEL + (uint32_t)error;
}

/* Lets requests with a part in memory arrive in `room`, when the calling thread serves: with at most so many strings of at most
 * so many bytes each, in `buffers`, which is QUILL_BUFFERS(strings, bytes) large and begins at a multiple of 8. A program that
 * serves several interfaces takes the largest of each. */
static inline __attribute__((unused)) quill_status quill_receive(quill_door_room *room, unsigned strings, uint32_t bytes,
                                                                 char *buffers)
{
    return quill_receive_with(room, strings, bytes, buffers, NULL, 0);
}

#endif

#endif
