/* Parts of a program that counts the instructions of its stubs over L4's V4 API, with 32 bits: system calls of the host, the
 * counting, and registers and message registers of ipc.
 *
 * The program steps itself: with the trap flag set, the processor reports each instruction, and the handler counts those between
 * `counted_begin` and `counted_end` (and the one that calls a wrapper). `__L4_Ipc` calls the program's function `ipc`, which stands in
 * for the kernel; the program begins with its function `start`.
 *
 * It needs no library: a 32-bit one is rarely installed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern char counted_begin[], counted_end[], counted_call[];

/* --- system calls of the host --- */

static int host(int number, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
    int result;

    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d) : "memory");
    return result;
}

static void say(const char *text)
{
    size_t n = 0;

    while (text[n] != 0)
        n++;
    host(4, 1, (uintptr_t)text, n, 0);
}

static void say_number(uint32_t value)
{
    char text[12];
    int at = 11;

    text[at] = 0;
    do
        text[--at] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    say(text + at);
}

static __attribute__((noreturn)) void leave(int code)
{
    for (;;)
        host(252, (uintptr_t)code, 0, 0, 0);
}

#define CHECK(condition)                      \
    do {                                      \
        if (!(condition)) {                   \
            say("not so: " #condition "\n");  \
            leave(1);                         \
        }                                     \
    } while (0)

/* --- ipc --- */

static uint32_t utcb[256] __attribute__((aligned(512)));
#define MR(number) utcb[128 + (number)]

struct frame {
    uint32_t edi, esi, ebp, esp, ebx, edx, ecx, eax;
};

static uint32_t total(uint32_t tag)
{
    return (tag & 63) + (tag >> 6 & 63);
}

void ipc(struct frame *frame);
__asm__(".globl __L4_Ipc\n__L4_Ipc:\n\tpushal\n\tpush %esp\n\tcall ipc\n\tadd $4, %esp\n\tpopal\n\tret\n");

/* --- counting --- */

static volatile uint32_t count;
static __attribute__((used)) uintptr_t next; /* the instruction that is reported next */

static void stepped(int number, void *info, uint32_t *context)
{
    uintptr_t done = next;

    (void)number, (void)info;
    /* flags, link, stack (3 words), then gs fs es ds edi esi ebp esp ebx edx ecx eax trap error eip */
    next = context[5 + 14];
    count += (done >= (uintptr_t)counted_begin && done < (uintptr_t)counted_end) || done == (uintptr_t)counted_call;
}

void restorer(void);
__asm__("restorer:\n\tmov $173, %eax\n\tint $0x80\n");

/* Before the first call: whose UTCB it is, and who hears of each instruction. */
static void prepare(void)
{
    static uint32_t *pointer;
    struct {
        uint32_t number, base, limit, flags;
    } segment = { ~0u, (uint32_t)&pointer, 0xfffff, 0x51 };
    struct {
        void (*handler)(int, void *, uint32_t *);
        uint32_t flags;
        void (*restorer)(void);
        uint32_t mask[2];
    } action = { stepped, 0x04000004, restorer, { 0, 0 } };

    pointer = &MR(0);
    CHECK(host(243, (uintptr_t)&segment, 0, 0, 0) == 0);
    __asm__ volatile("mov %0, %%gs" : : "r"(segment.number * 8 + 3));
    CHECK(host(174, 5, (uintptr_t)&action, 0, 8) == 0);
}

/* Calls a function with arguments, stepping; returns its result. `leave_server` returns from here, too. */
int32_t step(void (*function)(void), const void *arguments, uint32_t words);
void leave_server(void) __attribute__((noreturn));
static __attribute__((used)) uint32_t kept_esp;
__asm__("step:\n"
        "\tpushal\n"
        "\tmov %esp, kept_esp\n"
        "\tmov 36(%esp), %eax\n" /* function */
        "\tmov 40(%esp), %esi\n"
        "\tmov 44(%esp), %ecx\n"
        "\tsub $256, %esp\n"
        "\tand $-16, %esp\n"
        "\tmov %esp, %edi\n"
        "\tcld\n"
        "\trep movsl\n"
        "\tmovl $counted_call, next\n"
        "\tmov $0x10101010, %ebx\n"
        "\tmov $0x20202020, %ebp\n"
        "\tmov $0x30303030, %esi\n"
        "\tmov $0x40404040, %edi\n"
        "\tpushf\n"
        "\torl $0x100, (%esp)\n"
        "\tpopf\n"
        "counted_call:\n"
        "\tcall *%eax\n"
        "\tpushf\n"
        "\tandl $~0x100, (%esp)\n"
        "\tpopf\n"
        "\tcmp $0x10101010, %ebx\n"
        "\tjne 1f\n"
        "\tcmp $0x20202020, %ebp\n"
        "\tjne 1f\n"
        "\tcmp $0x30303030, %esi\n"
        "\tjne 1f\n"
        "\tcmp $0x40404040, %edi\n"
        "\tjne 1f\n"
        "\tmov kept_esp, %esp\n"
        "\tmov %eax, 28(%esp)\n"
        "\tpopal\n"
        "\tret\n"
        "1:\tud2\n"
        "leave_server:\n"
        "\tpushf\n"
        "\tandl $~0x100, (%esp)\n"
        "\tpopf\n"
        "\tmov kept_esp, %esp\n"
        "\tpopal\n"
        "\tret\n");

void start(void) __attribute__((noreturn));
__asm__(".globl _start\n_start:\n\tand $-16, %esp\n\tcall start\n");
