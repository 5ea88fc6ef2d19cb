/* A kernel for tests of stubs for L4's V4 API: two threads, ipc between them with the registers of the real one, items,
 * errors. It stands in front of a test that has `client` and `server`, and needs no library, so that it works with 32
 * bits where only a compiler is installed. The test includes the stubs first. */

/* --- the host --- */

static long host(long number, long a, long b, long c, long d)
{
#ifdef __i386__
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d) : "memory");
    return result;
#else
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
#endif
}

static void say(const char *text)
{
    long n = 0;

    while (text[n] != 0)
        n++;
#ifdef __i386__
    host(4, 2, (long)text, n, 0);
#else
    host(1, 2, (long)text, n, 0);
#endif
}

static __attribute__((noreturn)) void leave(int code)
{
    for (;;) {
#ifdef __i386__
        host(252, code, 0, 0, 0);
#else
        host(231, code, 0, 0, 0);
#endif
    }
}

#define TEXT(what) #what
#define LINE(number) TEXT(number)
#define CHECK(condition)                                     \
    do {                                                     \
        if (!(condition)) {                                  \
            say("line " LINE(__LINE__) ": " #condition "\n"); \
            leave(1);                                        \
        }                                                    \
    } while (0)

/* Compilers call these. */
__attribute__((used)) void *memcpy(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        ((char *)to)[i] = ((const char *)from)[i];
        __asm__ volatile("" ::: "memory");
    }
    return to;
}

__attribute__((used)) void *memset(void *to, int value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        ((char *)to)[i] = (char)value;
        __asm__ volatile("" ::: "memory");
    }
    return to;
}

__attribute__((used)) size_t strlen(const char *text)
{
    size_t n = 0;

    while (text[n] != 0) {
        n++;
        __asm__ volatile("" ::: "memory");
    }
    return n;
}

/* --- threads --- */

#define CLIENT 0x40001
#define SERVER 0x80001
#define POISON ((quill_word)0xdeadbeefdeadbeefu)

static void client(void);
static void server(void);

/* What `__L4_Ipc` saves of a thread, lowest address first. */
struct frame {
#ifdef __i386__
    quill_word edi, esi, ebp, esp, ebx, edx, ecx, eax;
#else
    quill_word r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax;
#endif
    void (*next)(void);
};

static struct thread {
    char fpu[512]; /* the kernel keeps these registers, too */
    quill_word id;
    quill_word area[256];
    struct frame *frame;
    bool waiting; /* for a message */
    quill_word from;
    quill_word stack[16384];
} threads[2] __attribute__((aligned(1024)));

static struct thread *running;
static quill_word *utcb_pointer;
static __attribute__((used)) char *fpu;

static quill_word *utcb(struct thread *t);

static void run(struct thread *t)
{
    running = t;
    utcb_pointer = utcb(t);
    fpu = t->fpu;
}

/* What was sent last, both ways. */
static quill_word request[64], reply[64];

static quill_word *utcb(struct thread *t)
{
    return t->area + 127;
}

#ifdef __i386__
#define TO(f) (f)->eax
#define FROM(f) (f)->edx
#define TIMEOUTS(f) (f)->ecx
#define TAG(f) (f)->esi
#define UTCB(f) (f)->edi
#else
#define TO(f) (f)->rsi
#define FROM(f) (f)->rdx
#define TIMEOUTS(f) (f)->r8
#define TAG(f) (f)->r9
#define UTCB(f) (f)->rdi
#endif

/* A message register of a thread that sends. */
static quill_word sent_register(struct thread *t, unsigned number)
{
#ifdef __x86_64__
    struct frame *f = t->frame;
    const quill_word first[] = { f->rax, f->rbx, f->r10, f->r12, f->r13, f->r14, f->r15 };
    if (number >= 1 && number <= 7)
        return first[number - 1];
#endif
    return utcb(t)[number];
}

/* Where message registers are that the processor's registers do not hold; the others' places in memory are lost. */
static void deliver(struct thread *t, quill_word from, quill_word tag, const quill_word *words)
{
    struct frame *f = t->frame;

    for (unsigned i = 1; i < 64; i++)
        utcb(t)[i] = i <= (tag & 63) + (tag >> 6 & 63) ? words[i] : utcb(t)[i];
    FROM(f) = POISON;
    TAG(f) = tag;
    TO(f) = from;
#ifdef __i386__
    TIMEOUTS(f) = POISON;
    f->ebx = words[1];
    f->ebp = words[2];
    for (unsigned i = 0; i < 3; i++)
        utcb(t)[i] = POISON;
#else
    f->rax = words[1], f->rbx = words[2], f->r10 = words[3], f->r12 = words[4], f->r13 = words[5];
    f->r14 = words[6], f->r15 = words[7];
    f->rcx = f->r8 = f->r11 = f->rbp = POISON;
    for (unsigned i = 0; i < 8; i++)
        utcb(t)[i] = POISON;
#endif
}

static struct frame *fail(struct thread *t, quill_word code)
{
    quill_word none[64] = { 0 };

    utcb(t)[-9] = code;
    deliver(t, 0, 0x8000, none);
    return t->frame;
}

/* Memory that a thread may send from. */
extern char __executable_start[], _end[];

/* Where the stack of the host ends, on which the client runs. */
static quill_word stack_end;

static bool readable(quill_word from, quill_word bytes)
{
    if (from < stack_end && from >= stack_end - 65536)
        return bytes <= stack_end - from;
    return from >= (quill_word)__executable_start && bytes <= (quill_word)_end && from <= (quill_word)_end - bytes;
}

/* Copies items; false if one does not arrive. */
static bool transfer(struct thread *to, quill_word tag, quill_word *words)
{
    unsigned at = 1 + (tag & 63), end = at + (tag >> 6 & 63), buffer = 1;

    if (end > 64)
        return false;
    for (; at < end; at += 2) {
        quill_word item = words[at], room = utcb(to)[-16 - (int)buffer];
        if ((item >> 1 & 7) == 6 || at + 1 >= end)
            return false;
        if ((item >> 1 & 4) != 0)
            continue; /* a map item, which the receiver does not want; nothing is mapped */
        if ((item & 0x3f0) != 0)
            return false; /* several pieces */
        if (utcb(to)[-16] != 1 || buffer > 31 || item >> 10 > room >> 10 || !readable(words[at + 1], item >> 10))
            return false;
        memcpy((void *)utcb(to)[-17 - (int)buffer], (void *)words[at + 1], item >> 10);
        words[at + 1] = utcb(to)[-17 - (int)buffer];
        buffer = (room & 1) != 0 ? buffer + 2 : 99;
    }
    return true;
}

/* A sends, and waits; B, which waited, goes on. */
__attribute__((used)) struct frame *ipc(struct frame *f)
{
    struct thread *self = running, *other = self == threads ? threads + 1 : threads;
    quill_word words[64], tag = TAG(f), to = TO(f), from = FROM(f);
    unsigned total = (tag & 63) + (tag >> 6 & 63);

    self->frame = f;
    CHECK(UTCB(f) == (quill_word)utcb(self));
    if (to != 0) {
        CHECK(to == other->id && other->waiting && (other->from == ~(quill_word)0 || other->from == self->id));
        CHECK(TIMEOUTS(f) == (self == threads ? 0 : 0x04000000));
        if (total > 63)
            return fail(self, 8);
        for (unsigned i = 0; i < 64; i++)
            words[i] = i > 0 && i <= total ? sent_register(self, i) : 0;
        words[0] = tag;
        memcpy(self == threads ? request : reply, words, sizeof words);
        if (!transfer(other, tag, words)) {
            /* Both sides of a transfer that fails learn of it. A server is not made to wait for nobody. */
            if (self == threads)
                return fail(self, 8);
            words[0] = tag = 0xff030000;
        }
        for (unsigned i = total + 1; i < 64; i++)
            words[i] = POISON;
    }
    self->waiting = from != 0;
    self->from = from;
    if (to != 0) {
        other->waiting = false;
        deliver(other, self->id, tag, words);
    }
    if (from == 0) {
        /* A send alone: nothing comes back, whatever the registers say. */
        quill_word none[64] = { 0 };
        deliver(self, POISON, 0, none);
    }
    run(other);
    return other->frame;
}

#ifdef __i386__
__asm__(".globl __L4_Ipc\n__L4_Ipc:\n\tpushal\n\tmov fpu, %eax\n\tfxsave (%eax)\n"
        "\tpush %esp\n\tcall ipc\n\tmov fpu, %edx\n\tfxrstor (%edx)\n\tmov %eax, %esp\n\tpopal\n\tret\n");
#else
__asm__("enter_ipc:\n\tpush %rax\n\tpush %rcx\n\tpush %rdx\n\tpush %rbx\n\tpush %rbp\n\tpush %rsi\n\tpush %rdi\n"
        "\tpush %r8\n\tpush %r9\n\tpush %r10\n\tpush %r11\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n"
        "\tmov %rsp, %rdi\n\tmov fpu(%rip), %rax\n\tfxsave (%rax)\n\tand $-16, %rsp\n\tcall ipc\n"
        "\tmov fpu(%rip), %rdx\n\tfxrstor (%rdx)\n\tmov %rax, %rsp\n"
        "\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %r11\n\tpop %r10\n\tpop %r9\n\tpop %r8\n"
        "\tpop %rdi\n\tpop %rsi\n\tpop %rbp\n\tpop %rbx\n\tpop %rdx\n\tpop %rcx\n\tpop %rax\n\tret\n"
        ".data\n.globl __L4_Ipc\n__L4_Ipc:\n\t.quad enter_ipc\n.text\n");
#endif

static void server_ended(void)
{
    CHECK(!"the server ended");
}

/* The server's thread begins when the client first gives way. */
__attribute__((used, noreturn)) void start(void)
{
    struct thread *s = threads + 1;

    stack_end = (quill_word)__builtin_frame_address(0);
    threads[0].id = CLIENT;
    s->id = SERVER;
    for (int i = 0; i < 2; i++)
        __asm__ volatile("fxsave %0" : "=m"(threads[i].fpu));
#ifdef __i386__
    struct {
        quill_word number, base, limit, flags;
    } segment = { ~(quill_word)0, (quill_word)&utcb_pointer, 0xfffff, 0x51 };
    CHECK(host(243, (long)&segment, 0, 0, 0) == 0);
    __asm__ volatile("mov %0, %%gs" : : "r"(segment.number * 8 + 3));
#else
    CHECK(host(158, 0x1001, (long)&utcb_pointer, 0, 0) == 0);
#endif
    /* As a function sees its stack: the return address on an odd half. */
    quill_word *top = s->stack + sizeof s->stack / sizeof *s->stack - 4;
    while (((quill_word)top & 15) != 0)
        top--;
    *--top = (quill_word)server_ended;
    s->frame = (struct frame *)(void *)((char *)top - sizeof(struct frame));
    memset(s->frame, 0, sizeof *s->frame);
    s->frame->next = server;
    run(s);
    /* The client's thread is this one: it goes on when the server waits. */
    void begin(struct frame * *kept, struct frame * fresh);
    begin(&threads[0].frame, s->frame);
    client();
    leave(0);
}

#ifdef __i386__
__asm__("begin:\n\tmov 4(%esp), %ecx\n\tmov 8(%esp), %edx\n\tpushal\n\tmov %esp, (%ecx)\n\tmov %edx, %esp\n\tpopal\n\tret\n"
        ".globl _start\n_start:\n\tand $-16, %esp\n\tcall start\n");
#else
__asm__("begin:\n\tpush %rax\n\tpush %rcx\n\tpush %rdx\n\tpush %rbx\n\tpush %rbp\n\tpush %rsi\n\tpush %rdi\n"
        "\tpush %r8\n\tpush %r9\n\tpush %r10\n\tpush %r11\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n"
        "\tmov %rsp, (%rdi)\n\tmov %rsi, %rsp\n"
        "\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %r11\n\tpop %r10\n\tpop %r9\n\tpop %r8\n"
        "\tpop %rdi\n\tpop %rsi\n\tpop %rbp\n\tpop %rbx\n\tpop %rdx\n\tpop %rcx\n\tpop %rax\n\tret\n"
        ".globl _start\n_start:\n\tand $-16, %rsp\n\tcall start\n");
#endif
