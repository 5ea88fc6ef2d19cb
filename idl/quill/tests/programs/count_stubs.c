/* Counts the instructions of stubs, one by one, as `./tern bench idl` counts them: of clients between two marks, of servers between two system
 * calls; with BY_DOOR, of objects from their entry to the return. Where a stub calls the kernel, the kernel's part is done by a
 * debugger: a message comes that the program says. Prints two numbers for each interface. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arrival.h"

int interfaces(void);
void run_client(int interface);
void run_server(int interface);
/* Puts elements where they arrive. */
void prepare(int interface);

static pid_t child;

void stop(int why)
{
    _exit(why);
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    kill(child, SIGKILL);
    exit(1);
}

static void wait_for_trap(void)
{
    int status;

    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
        fail("the program with the stubs has ended");
}

/* Begins a program in which `run` is under way, and stops in front of it. */
static void begin(void (*run)(int), int interface)
{
    child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
            _exit(0);
        prepare(interface);
        raise(SIGTRAP);
        run(interface);
        _exit(0);
    }
    wait_for_trap();
}

static void end(void)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void step(void)
{
    ptrace(PTRACE_SINGLESTEP, child, 0, 0);
    wait_for_trap();
}

/* The first bytes of the next instruction. */
static long next(struct user_regs_struct *registers)
{
    ptrace(PTRACE_GETREGS, child, 0, registers);
    return ptrace(PTRACE_PEEKTEXT, child, (void *)registers->rip, 0);
}

static int is_mark(long code)
{
    return (code & 0xff) == 0xcc;
}

static int is_syscall(long code)
{
    return (code & 0xffff) == 0x050f;
}

/* Whether a system call says where messages arrive in memory (TERN_THREAD_CONTROL): before the first of them. */
static int is_control(const struct user_regs_struct *registers)
{
    return (registers->rax & 0xff) == 3;
}

static void succeeds(const struct user_regs_struct *registers)
{
    struct user_regs_struct all = *registers;

    all.rip += 2;
    all.rax = 0;
    ptrace(PTRACE_SETREGS, child, 0, &all);
}

/* A message from the kernel: a program goes on at `rip`. The program's data are where they are here. */
static void arrives(struct user_regs_struct *registers, unsigned long long rip, const struct arrival *message)
{
    struct user_regs_struct all = *registers;
    const uint64_t *words = message->words;

    all.rip = rip;
    all.rax = message->rax;
    all.rdx = message->rdx;
    all.rdi = words[0], all.rsi = words[1], all.r8 = words[2], all.r9 = words[3], all.r10 = words[4];
    all.r12 = words[5], all.r13 = words[6], all.r14 = words[7], all.rbx = words[8], all.rbp = words[9];
    all.r15 = words[10];
    all.rcx = all.r11 = 0x1111;
    ptrace(PTRACE_SETREGS, child, 0, &all);
    for (int i = 0; message->lengths[i].at != NULL; i++)
        ptrace(PTRACE_POKEDATA, child, message->lengths[i].at, message->lengths[i].value);
}

/* Of the second call, when all is as it stays. */
static int client(int interface)
{
    struct user_regs_struct registers;
    int count = 0, marks = 0;

    begin(run_client, interface);
    for (;;) {
        long code = next(&registers);
        if (is_mark(code)) {
            if (++marks == 4)
                break;
            registers.rip++;
            ptrace(PTRACE_SETREGS, child, 0, &registers);
            count = 0;
            continue;
        }
        count++;
        if (is_syscall(code) && is_control(&registers))
            succeeds(&registers);
        else if (is_syscall(code))
            arrives(&registers, registers.rip + 2, &replies[interface]);
        else
            step();
    }
    end();
    return count;
}

#ifdef BY_DOOR

/* A call begins with nothing from the one before. Where, the mark has in rcx. */
static int server(int interface)
{
    struct user_regs_struct registers;
    int count = 0;

    begin(run_server, interface);
    while (!is_mark(next(&registers)))
        step();
    registers.rsp = (registers.rsp - 512) & ~15ull;
    arrives(&registers, registers.rcx, &requests[interface]);
    do {
        count++;
        step();
    } while (!is_syscall(next(&registers)));
    end();
    return count + 1;
}

#else

/* Of the second request. */
static int server(int interface)
{
    struct user_regs_struct registers;
    int count = 0, calls = 0;

    begin(run_server, interface);
    for (int steps = 0; steps < 100000; steps++) {
        long code = next(&registers);
        count++;
        if (!is_syscall(code)) {
            step();
            continue;
        }
        if (is_control(&registers)) {
            succeeds(&registers);
            continue;
        }
        if (calls++ == 2) {
            end();
            return count;
        }
        count = 0;
        arrives(&registers, registers.rip + 2, &requests[interface]);
    }
    fail("a server makes no system call");
    return 0;
}

#endif

int main(void)
{
    for (int interface = 0; interface < interfaces(); interface++)
        printf("%d %d\n", client(interface), server(interface));
    return 0;
}
