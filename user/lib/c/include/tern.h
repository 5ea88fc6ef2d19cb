/* Tern for C programs: the kernel interface as constants and inline functions, and a small library.
 *
 * The constants repeat the crate `abi`, which is the definition; the requests to servers at the end repeat the
 * crate `api`. A message has a label of 32 bits and eight words, all in registers.
 */
#ifndef TERN_H
#define TERN_H

/* ---- how a C program sends messages (lib/ipc.S) ---- */

#define TERN_HAS_BASES 1 /* instructions for the FS base */
#define TERN_HAS_AVX 2

#ifndef __ASSEMBLER__

#include <stddef.h>
#include <stdint.h>

/* ---- constants of the kernel ---- */

#define TERN_ABI_VERSION 2
#define TERN_PAGE_SIZE 4096ul
#define TERN_USER_END 0x00007ffffffff000ul
#define TERN_INFO_PAGE 0xffffff0000000000ul

typedef uint64_t tern_uid;   /* a thread */
typedef uint64_t tern_task;  /* a task */
typedef uint64_t tern_fpage; /* a flexpage */

#define TERN_NIL 0ul  /* no thread; "myself"; "do not" */
#define TERN_ANY (~0ul) /* any sender */

/* eax of the short forms of ipc, and of the null call */
#define TERN_IPC_CALL 0xfffffffeu
#define TERN_IPC_REPLY_WAIT 0xffffffffu
#define TERN_NULL 0xfffffffdu
/* eax of a call through a door, and of the return */
#define TERN_DOOR_CALL 0xfffffff8u
#define TERN_DOOR_RETURN 0xfffffff9u

/* system calls */
#define TERN_IPC 0x80000001u
#define TERN_FLUSH 0x80000002u
#define TERN_THREAD_CONTROL 0x80000003u
#define TERN_TASK_CONTROL 0x80000004u
#define TERN_THREAD_SWITCH 0x80000005u
#define TERN_CLOCK 0x80000006u
#define TERN_DOOR_CONTROL 0x80000007u

/* flags of ipc: set in TERN_IPC, clear in the short forms and in calls through doors */
#define TERN_ITEM (1u << 8)         /* w6 and w7 are a map item */
#define TERN_TAKES_BLOCK (1u << 9)  /* what is received may bring a block */
#define TERN_BLOCK (1u << 10)       /* w0 and w1 are dope and address of a block */
#define TERN_TAKES_ITEM (1u << 11)  /* what is received may bring an item into the standing window */
#define TERN_ALERTABLE (1u << 12)   /* an alert ends it */
#define TERN_SHOWN (1u << 13)       /* w5 is the thread that the message is shown to come from */
#define TERN_TAKES_FOREIGN (1u << 14) /* a wait for anybody takes foreign calls in all registers */
#define TERN_ABSOLUTE (1u << 15)    /* r15 is a point in time, in ns */

#define TERN_FLUSH_SELF 1ul

/* sub-operations of TERN_THREAD_CONTROL */
enum {
    TERN_THREAD_CREATE,
    TERN_THREAD_START,
    TERN_THREAD_DESTROY,
    TERN_THREAD_SET_PAGER,
    TERN_THREAD_SET_PRIORITY,
    TERN_THREAD_STOP,
    TERN_THREAD_RESUME,
    TERN_THREAD_ABORT,
    TERN_THREAD_SET_FS,
    TERN_THREAD_DENY_NATIVE,
    TERN_THREAD_INFO,
    TERN_THREAD_NEXT,
    TERN_THREAD_SET_WINDOW,
    TERN_THREAD_SET_BLOCK,
    TERN_THREAD_GET_REGISTERS,
    TERN_THREAD_SET_REGISTERS,
    TERN_THREAD_STEP,
    TERN_THREAD_BREAKPOINT,
    TERN_THREAD_TRACE,
    TERN_THREAD_READ_TRACE,
    TERN_THREAD_ALERT,
    TERN_THREAD_GET_STATE,
    TERN_THREAD_SET_STATE,
    TERN_THREAD_INTERRUPT_MESSAGE,
    TERN_THREAD_FOREIGN_RETURN,
};

/* all registers of a thread, for TERN_THREAD_GET_STATE and TERN_THREAD_SET_STATE */
struct tern_state {
    uint64_t len_bytes;
    uint64_t parts; /* TERN_STATE_X87 and its like: what the image can hold, and whether there is a GS base */
    uint64_t rip, rsp, rflags, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15;
    uint64_t fs_base, gs_base;
    uint64_t reserved[2];
    uint64_t image[104]; /* as XSAVE writes it */
} __attribute__((aligned(64)));

#define TERN_STATE_BYTES 1024ul
_Static_assert(sizeof(struct tern_state) == TERN_STATE_BYTES, "a state has another size");
#define TERN_STATE_X87 1ul
#define TERN_STATE_SSE 2ul
#define TERN_STATE_AVX 4ul
#define TERN_STATE_GS 256ul

/* what TERN_THREAD_ALERT does */
enum { TERN_ALERT_CLEAR, TERN_ALERT_SET, TERN_ALERT_POLL };

/* sub-operations of TERN_TASK_CONTROL */
enum {
    TERN_TASK_CREATE,
    TERN_TASK_DESTROY,
    TERN_TASK_INFO,
    TERN_TASK_SET_QUOTA,
    TERN_TASK_NEXT,
    TERN_TASK_SELF,
    TERN_TASK_EXHAUST,
    TERN_TASK_SET_DOMAIN,
};

/* sub-operations of TERN_DOOR_CONTROL */
enum {
    TERN_DOOR_CREATE,
    TERN_DOOR_SERVE,
    TERN_DOOR_SHORTAGE,
};

/* errors: what a call returns when it fails */
enum {
    TERN_OK,
    TERN_NO_SUCH,
    TERN_SEND_TIMEOUT,
    TERN_RECEIVE_TIMEOUT,
    TERN_SEND_ABORTED,
    TERN_RECEIVE_ABORTED,
    TERN_PARTNER_DIED,
    TERN_BAD_ARGUMENT,
    TERN_NO_WINDOW,
    TERN_NO_MEMORY,
    TERN_DENIED,
    TERN_BAD_STATE,
    TERN_LIMIT,
    TERN_OVERFLOW,
    TERN_NO_ACCESS,
};

/* kinds of received messages */
#define TERN_KIND_REPLY 0xffffffffu
#define TERN_KIND_REQUEST 0xfffffffeu
#define TERN_KIND_FAULT 0xfffffffcu
#define TERN_KIND_EXCEPTION 0xfffffffbu
#define TERN_KIND_INTERRUPT 0xfffffffau
#define TERN_KIND_DOOR_CALL 0xfffffff8u
#define TERN_KIND_DOOR_RETURN 0xfffffff9u
#define TERN_KIND_UNREFERENCED 0xfffffff7u
#define TERN_KIND_MASK 0x800000ffu
#define TERN_NO_ITEM (1u << 8)    /* clear when a map item arrived */
#define TERN_ITEM_WHOLE (1u << 9) /* clear when it arrived only in part */

#define TERN_RESUME 1u                /* label: the thread continues after an exception */
#define TERN_UNRESOLVABLE 0xffffffffu /* label: a fault that nobody will resolve */
#define TERN_VECTOR_SYSCALL 256
#define TERN_VECTOR_UNRESOLVED_FAULT 257

/* timeouts: microseconds, or milliseconds with bit 31 */
#define TERN_NEVER 0xffffffffu
#define TERN_TIMEOUTS(send, receive) ((uint64_t)(receive) << 32 | (uint32_t)(send))

/* flexpages */
#define TERN_R 1ul
#define TERN_W 2ul
#define TERN_X 4ul
#define TERN_GRANT 8ul
#define TERN_FPAGE_MEMORY(base, log2, rights) \
    (((uint64_t)(base) & ~((1ul << (log2)) - 1)) | (uint64_t)(log2) << 4 | (rights))
#define TERN_FPAGE_PORTS(first, log2) \
    (((uint64_t)(first) & ~((1ul << (log2)) - 1)) << 12 | 1ul << 10 | (uint64_t)(log2) << 4 | TERN_R | TERN_W)
#define TERN_FPAGE_INTERRUPT(line) ((uint64_t)(line) << 12 | 2ul << 10 | TERN_R | TERN_W)
#define TERN_FPAGE_DOORS(first, log2, rights) \
    (((uint64_t)(first) & ~((1ul << (log2)) - 1)) << 12 | 3ul << 10 | (uint64_t)(log2) << 4 | (rights))
#define TERN_UID_INTERRUPT(line) ((uint64_t)(line) << 12 | 1ul)

/* ---- system calls ---- */

/* An ipc hands all registers to the partner: what is not part of the message, too. A program that the compiler may give vector registers
 * hides them, and has its thread pointer and its control words put back. One that has neither vector registers (-mno-sse) nor thread-local
 * storage needs nothing of that. */
#ifdef __SSE__
#define TERN_IPC_SYSCALL "call *tern_ipc_system_call(%%rip)" /* below the red zone */
#define TERN_DOOR_RETURN_SYSCALL "call tern_hide_vectors\n\tsyscall"
#define TERN_DOOR_RESTORE "call tern_door_restore"
#define TERN_IPC_CLOBBERS                                                                                         \
    , "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
        "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)"
#else
#define TERN_IPC_SYSCALL "syscall"
#define TERN_DOOR_RETURN_SYSCALL "syscall"
#define TERN_DOOR_RESTORE ""
#define TERN_IPC_CLOBBERS
#endif

/* Overwrites the x87 and MMX registers, which an ipc hides from nobody: what was computed there as long double may lie there for long. */
#ifdef __SSE__
static inline void tern_hide_x87(void)
{
    __asm__ volatile("fldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\t"
                     "fstp %%st\n\tfstp %%st\n\tfstp %%st\n\tfstp %%st\n\t"
                     "fstp %%st\n\tfstp %%st\n\tfstp %%st\n\tfstp %%st"
                     :
                     :
                     : "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)");
}
#endif

/* A message, to be sent and as received. */
struct tern_message {
    uint32_t kind; /* received: TERN_KIND_... with flags, or 0 */
    uint32_t label;
    tern_uid partner; /* destination; received: sender */
    uint64_t words[8];
};

/* Any form of ipc. The kernel changes all registers but rsp; the space below the stack pointer may be in use. */
static inline int tern_ipc_raw(uint32_t operation, struct tern_message *message, uint64_t rbx_in, uint64_t rbp_in,
                               uint64_t r15_in)
{
    uint64_t rax = (uint64_t)message->label << 32 | operation;
    uint64_t rdx = message->partner, rdi = message->words[0], rsi = message->words[1];
    uint64_t rbx = rbx_in, rcx = rbp_in;
    register uint64_t r8 __asm__("r8") = message->words[2];
    register uint64_t r9 __asm__("r9") = message->words[3];
    register uint64_t r10 __asm__("r10") = message->words[4];
    register uint64_t r12 __asm__("r12") = message->words[5];
    register uint64_t r13 __asm__("r13") = message->words[6];
    register uint64_t r14 __asm__("r14") = message->words[7];
    register uint64_t r15 __asm__("r15") = r15_in;

    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                     "push %%rbp\n\t"
                     "mov %%rcx, %%rbp\n\t"
                     TERN_IPC_SYSCALL "\n\t"
                     "pop %%rbp\n\t"
                     "lea 128(%%rsp), %%rsp"
                     : "+a"(rax), "+d"(rdx), "+D"(rdi), "+S"(rsi), "+b"(rbx), "+c"(rcx), "+r"(r8), "+r"(r9),
                       "+r"(r10), "+r"(r12), "+r"(r13), "+r"(r14), "+r"(r15)
                     :
                     : "r11", "memory", "cc" TERN_IPC_CLOBBERS);
    if ((uint32_t)rax >> 31 == 0 && (uint32_t)rax != 0)
        return (int)(uint32_t)rax;
    *message = (struct tern_message){ (uint32_t)rax, (uint32_t)(rax >> 32), rdx,
                                      { rdi, rsi, r8, r9, r10, r12, r13, r14 } };
    return TERN_OK;
}

/* Sends to message->partner and waits for the answer of that thread alone, which brings nothing but words. */
static inline int tern_ipc_call(struct tern_message *message)
{
    return tern_ipc_raw(TERN_IPC_CALL, message, 0, 0, 0);
}

/* Answers message->partner if it waits for that, then waits for anybody. */
static inline int tern_ipc_reply_wait(struct tern_message *message)
{
    return tern_ipc_raw(TERN_IPC_REPLY_WAIT, message, 0, 0, 0);
}

/* The general form: whom to receive from (TERN_NIL: do not), the window for a map item, both timeouts. */
static inline int tern_ipc(struct tern_message *message, uint32_t flags, tern_uid from, tern_fpage window,
                           uint64_t timeouts)
{
    return tern_ipc_raw(TERN_IPC | flags, message, from, window, timeouts);
}

/* ---- pagers and handlers (lib/keep.S) ---- */

/* Beginning of a struct tern_state for tern_ipc_keeping. */
#define TERN_STATE_INITIAL { .image = { [0] = 0x37f, [3] = 0x1f80 } }

/* Does what tern_ipc_raw does, for registers beside the message that belong to others: those of *kept go out with it, and *kept gets those that come. */
int tern_ipc_raw_keeping(uint32_t operation, struct tern_message *message, uint64_t rbx, uint64_t rbp, uint64_t r15,
                         struct tern_state *kept);

/* Does what tern_ipc does, for a thread that gets the faults of others, and has vector registers or thread-local storage of its own: a thread whose fault is answered
 * so finds x87 and vector registers, control words, FS and GS base as they were. *kept has them meanwhile (image, fs_base, gs_base), to be seen
 * and changed. It goes with the thread that is answered: who answers another one than came last gives the state that it kept of that one. */
static inline int tern_ipc_keeping(struct tern_message *message, uint32_t flags, tern_uid from, tern_fpage window,
                                   uint64_t timeouts, struct tern_state *kept)
{
    return tern_ipc_raw_keeping(TERN_IPC | flags, message, from, window, timeouts, kept);
}

/* All other calls: six registers in and out, in the order rdi rsi rdx r10 r8 r9. */
static inline int tern_control(uint32_t call, uint32_t operation, uint64_t words[6])
{
    uint64_t rax = call | operation << 8;
    uint64_t rdi = words[0], rsi = words[1], rdx = words[2];
    register uint64_t r10 __asm__("r10") = words[3];
    register uint64_t r8 __asm__("r8") = words[4];
    register uint64_t r9 __asm__("r9") = words[5];

    __asm__ volatile("syscall"
                     : "+a"(rax), "+D"(rdi), "+S"(rsi), "+d"(rdx), "+r"(r10), "+r"(r8), "+r"(r9)
                     :
                     : "rcx", "r11", "memory", "cc");
    words[0] = rdi, words[1] = rsi, words[2] = rdx, words[3] = r10, words[4] = r8, words[5] = r9;
    return (int)rax;
}

/* ---- doors ---- */

/* Makes a door (row D1): this task has it as `number`, its calls arrive at `entry`, with `datum`. */
static inline int tern_door_create(uint32_t number, void (*entry)(void), uint64_t datum)
{
    uint64_t words[6] = { number, (uint64_t)entry, datum };
    return tern_control(TERN_DOOR_CONTROL, TERN_DOOR_CREATE, words);
}

/* Calls through a door: label and words there, label and words back. */
static inline int tern_door_call(uint32_t identifier, struct tern_message *message)
{
    message->partner = identifier;
    return tern_ipc_raw(TERN_DOOR_CALL, message, 0, 0, 0);
}

/* A call through a door, ended by an alert with TERN_SEND_ABORTED or, when a server has it, TERN_RECEIVE_ABORTED. */
static inline int tern_door_call_alertable(uint32_t identifier, struct tern_message *message)
{
    message->partner = identifier;
    return tern_ipc_raw(TERN_DOOR_CALL & ~TERN_ALERTABLE, message, 0, 0, 0);
}

/* Does `what` (TERN_ALERT_SET and its like) about a thread's alert (row D9); 0 is the calling thread. *was_alerted is what was before. */
static inline int tern_alert(uint64_t thread, uint64_t what, int *was_alerted)
{
    uint64_t words[6] = { thread, what };
    int error = tern_control(TERN_THREAD_CONTROL, TERN_THREAD_ALERT, words);
    *was_alerted = error == 0 && words[0] != 0;
    return error;
}

/* Waits until a caller has to wait for a server; *servers is how many there are. */
static inline int tern_door_shortage(uint32_t *servers)
{
    uint64_t words[6] = { 0 };
    int error = tern_control(TERN_DOOR_CONTROL, TERN_DOOR_SHORTAGE, words);
    *servers = (uint32_t)words[0];
    return error;
}

/* This task has the identifier no more; for the door's maker, the door is gone. */
static inline int tern_door_release(uint32_t identifier)
{
    uint64_t words[6] = { TERN_FPAGE_DOORS(identifier, 0, TERN_R | TERN_W), TERN_FLUSH_SELF };
    return tern_control(TERN_FLUSH, 0, words);
}

/* Takes all identifiers of a door that this task made, but the maker's own. */
static inline int tern_door_revoke(uint32_t number)
{
    uint64_t words[6] = { TERN_FPAGE_DOORS(number, 0, TERN_R | TERN_W), 0 };
    return tern_control(TERN_FLUSH, 0, words);
}

/* The calling thread serves its task's doors until somebody aborts its wait; returns why (lib/door.S). Each call begins with
 * the stack as it is now, at a multiple of 16. */
int tern_door_serve(void);

/* Makes `entry`, for tern_door_create, a door's entry whose calls are `handler`'s, a `void (struct tern_message *)` that is
 * not static. It finds the kind (TERN_KIND_DOOR_CALL or TERN_KIND_UNREFERENCED), the datum in `partner`, label and words;
 * what it leaves in label and words is returned. */
#define TERN_DOOR_ENTRY(entry, handler) \
    void entry(void); \
    void handler(struct tern_message *); \
    __asm__(".pushsection .text\n" #entry ":\n\t" \
            "lea " #handler "(%rip), %rcx\n\t" \
            "jmp *tern_door_begin(%rip)\n\t" \
            ".popsection")

/* ---- numbers for door identifiers (lib/numbers.c) ---- */

/* Numbers from `first` on, which is 1 or more; `used` has a bit for each that is in use, and begins as zeros. */
struct tern_numbers {
    uint32_t first, count;
    uint64_t *used;
};

/* Those at which identifiers arrive in the program, by stubs and by tern_door_duplicate. The program says which at its beginning, and makes
 * its doors elsewhere. */
extern struct tern_numbers tern_arrivals;

/* One that nobody else uses; 0 if there is none. */
uint32_t tern_number_take(struct tern_numbers *numbers);

/* Nobody uses this one any more, and nothing is there. */
void tern_number_free(struct tern_numbers *numbers, uint32_t number);

/* Whether a number is one of those. */
int tern_number_is_in(const struct tern_numbers *numbers, uint32_t number);

/* How many are in use. */
uint32_t tern_numbers_in_use(const struct tern_numbers *numbers);

/* Gives back an identifier that has arrived, and its number. Any other number stays as it is. */
void tern_release(uint32_t number);

/* Makes *copy an identifier of the same door, which has arrived like any other; also if the door is the program's own. One thread of
 * the program has to be its porter, or this is TERN_NO_SUCH: the kernel maps from one thread to another. */
int tern_door_duplicate(uint32_t identifier, uint32_t *copy);

/* The porter's work, forever. */
void tern_porter(void) __attribute__((noreturn));

/* ---- pages that a call shows instead of copying them, by stubs (row D13; lib/offers.c) ---- */

/* Pages from which on stubs offer them: to copy fewer is cheaper. */
#define TERN_OFFER_PAGES_MIN 6ul

/* Offers such bytes, whole pages of this program's own memory: to whoever gets the number, which goes with a call. 0 if they are to be sent: they are
 * more than 256 pages or not all there yet, somebody else may have some of them, or the memory manager makes no such offer. */
uint64_t tern_offer(const void *bytes, uint64_t len);

/* The call is over, and perhaps nobody has taken the offer. */
void tern_offer_withdraw(uint64_t number);

/* An offer that was taken: its pages as they were when it was made. What is written there nobody else sees; each page of it counts as one of this
 * program's until the offer is over. */
struct tern_taken {
    uint64_t number; /* 0: none */
    uint8_t *bytes;
    uint64_t len;
};

/* Takes the offer with this number, if there is one of at most so many bytes, and a place to show it. Returns whether; if not, *taken is as it was. */
int tern_offer_take(uint64_t number, uint64_t bytes_max, struct tern_taken *taken);

/* It is looked at no more. */
void tern_offer_done(struct tern_taken *taken);

/* Notes for ever that others may have this memory, or that others' memory is mapped over it: it is sent and not offered, since an offer takes the
 * right to write from everybody. Who hands out flexpages of its own memory, or opens windows there, says so first. */
void tern_memory_lent(const void *bytes, uint64_t len);

/* Sets a thread's FS base, for thread-local storage. */
static inline int tern_thread_set_fs(tern_uid thread, uint64_t base)
{
    uint64_t words[6] = { thread, base };
    return tern_control(TERN_THREAD_CONTROL, TERN_THREAD_SET_FS, words);
}

/* Reads all registers of a thread that stands still. */
static inline int tern_thread_get_state(tern_uid thread, struct tern_state *state)
{
    uint64_t words[6] = { thread, (uint64_t)state, sizeof *state };
    return tern_control(TERN_THREAD_CONTROL, TERN_THREAD_GET_STATE, words);
}

/* Writes all registers of a thread that stands still, or has never run: then it is stopped. */
static inline int tern_thread_set_state(tern_uid thread, const struct tern_state *state)
{
    uint64_t words[6] = { thread, (uint64_t)state, sizeof *state };
    return tern_control(TERN_THREAD_CONTROL, TERN_THREAD_SET_STATE, words);
}

/* Nanoseconds since the kernel started. */
static inline uint64_t tern_clock(void)
{
    uint64_t words[6] = { 0 };
    tern_control(TERN_CLOCK, 0, words);
    return words[0];
}

/* The thread that started this program: its registry of names and where it ends. */
static inline tern_uid tern_home(void)
{
    uint64_t words[6] = { 0 };
    tern_control(TERN_TASK_CONTROL, TERN_TASK_SELF, words);
    return words[3];
}

/* ---- errors in words (lib/errors.c) ---- */

/* Text for the result of a system call of this header, or of a stub that got no answer. */
const char *tern_error_text(uint32_t error);

/* Text for the result of a stub of one of the system's own interfaces (system.h): why the server refuses, or why there is no answer. */
const char *tern_refusal_text(uint32_t refusal);

/* ---- servers (lib/servers.c) ---- */

/* Finds the server behind a name of at most 16 characters; TERN_NIL: there is none. */
tern_uid tern_resolve(const char *name);

/* Copies the argument text, cut to `size` bytes; returns its length. */
size_t tern_arguments(char *buffer, size_t size);

/* Prints bytes on the console, or into the pipe in its place. If nobody reads that any more the program ends, with status 141. */
void tern_write(const char *bytes, size_t len);

/* Prints bytes on the console in any case. */
void tern_complain(const char *bytes, size_t len);

/* Waits for input, at most `size` bytes; returns how many came: 0 at the end of a pipe, -1 if there is nothing to read from. */
long tern_read(char *bytes, size_t size);

/* Whether a pipe is in the console's place for standard input (0) or standard output (1). */
int tern_is_piped(int file);

/* ---- what nearly every program wants of the C library (docs/guide/c-programs.md); the rest is in its own headers ---- */

void(exit)(int status) __attribute__((noreturn));
int(putchar)(int character);
int(puts)(const char *text);
int(printf)(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *(memcpy)(void *to, const void *from, size_t len);
void *(memmove)(void *to, const void *from, size_t len);
void *(memset)(void *at, int value, size_t len);
int(memcmp)(const void *one, const void *other, size_t len);
size_t(strlen)(const char *text);
int(strcmp)(const char *one, const char *other);

#endif /* __ASSEMBLER__ */

#endif
