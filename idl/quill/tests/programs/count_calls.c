/* Counts the instructions of stubs over sockets, one by one: of a client's call from its beginning to its end, and of a server between the
 * receive that brings a request and the next one. What sends and what receives is stepped over, and not counted. Prints a line for each method:
 * its name, client, server. A second program is linked to it, in C or in Rust. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* Names of the methods that are called; NULL behind the last. */
const char *method_name(int method);
/* Calls a method some times, between `begins` and `ends`. */
void run_client(int method, int socket);
/* Serves until the client closes. */
void run_server(int socket);
/* Functions that send and receive. */
const void *sender(void);
const void *receiver(void);

/* Number of the call or request that is counted: not one of the first, when libraries still find themselves. */
#define COUNTED 3

static pid_t child;
static int watched;

/* Marks, which the debugger steps over. */
void begins(void)
{
    if (watched)
        __asm__ volatile("int3" ::: "memory");
}

void ends(void)
{
    if (watched)
        __asm__ volatile("int3" ::: "memory");
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    if (child > 0)
        kill(child, SIGKILL);
    exit(1);
}

static void wait_for_trap(void)
{
    int status;

    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
        fail("the program with the stubs has ended");
}

static struct user_regs_struct registers(void)
{
    struct user_regs_struct all;

    if (ptrace(PTRACE_GETREGS, child, 0, &all) != 0)
        fail("registers cannot be read");
    return all;
}

static void step(void)
{
    ptrace(PTRACE_SINGLESTEP, child, 0, 0);
    wait_for_trap();
}

/* From the first instruction of a function to the one behind its call. */
static void step_over(void)
{
    struct user_regs_struct now = registers();
    unsigned long long frame = now.rsp;
    unsigned long back = (unsigned long)ptrace(PTRACE_PEEKDATA, child, (void *)frame, 0);

    do {
        step();
        now = registers();
    } while (now.rip != back || now.rsp <= frame);
}

static void run(int method, int socket)
{
    if (method < 0)
        run_server(socket);
    else
        run_client(method, socket);
    _exit(0);
}

/* Client and server of a method on two ends: the one that is watched stops in front of its first instruction. A server has the method -1. */
static pid_t begin(int method, int client_is_watched)
{
    int ends[2];
    pid_t other;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        fail("there are no sockets");
    other = fork();
    if (other == 0) {
        close(ends[0]);
        run(client_is_watched ? -1 : method, ends[1]);
    }
    child = fork();
    if (child == 0) {
        close(ends[1]);
        watched = 1;
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
            _exit(1);
        raise(SIGTRAP);
        run(client_is_watched ? method : -1, ends[0]);
    }
    close(ends[0]);
    close(ends[1]);
    wait_for_trap();
    return other;
}

static void end(pid_t other)
{
    kill(child, SIGKILL);
    kill(other, SIGKILL);
    waitpid(child, NULL, 0);
    waitpid(other, NULL, 0);
}

/* Of one call, without those instructions that are in `begins` and `ends`: the first returns behind its mark, the second comes to its own. */
static int client(int method)
{
    const unsigned long long out = (unsigned long long)sender(), in = (unsigned long long)receiver();
    const unsigned long long last = (unsigned long long)&ends;
    pid_t other = begin(method, 1);
    int count = 0, marks = 0;

    for (;;) {
        struct user_regs_struct now = registers();
        if (marks == 2 * COUNTED - 1 && now.rip == last)
            break;
        if ((ptrace(PTRACE_PEEKTEXT, child, (void *)now.rip, 0) & 0xff) == 0xcc) {
            now.rip++;
            ptrace(PTRACE_SETREGS, child, 0, &now);
            /* The return of the first belongs to the mark. */
            if (++marks == 2 * COUNTED - 1)
                step();
            count = 0;
            continue;
        }
        if (now.rip == out || now.rip == in) {
            step_over();
            continue;
        }
        count++;
        step();
    }
    end(other);
    return count;
}

static int server(int method)
{
    const unsigned long long out = (unsigned long long)sender(), in = (unsigned long long)receiver();
    pid_t other = begin(method, 0);
    int count = 0, receives = 0;

    for (;;) {
        unsigned long long rip = registers().rip;
        if (rip == in && receives == COUNTED)
            break;
        if (rip == in || rip == out) {
            step_over();
            if (rip == in) {
                receives++;
                count = 0;
            }
            continue;
        }
        count++;
        step();
    }
    end(other);
    return count;
}

int main(void)
{
    for (int method = 0; method_name(method) != NULL; method++)
        printf("%s %d %d\n", method_name(method), client(method), server(method));
    return 0;
}
