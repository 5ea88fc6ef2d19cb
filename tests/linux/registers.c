/* A program of Linux that looks at its registers, without a C library: general, vector and control registers are what they were behind each call, behind handlers
 * that change all of them, behind interruptions by a timer at any instruction, and in the processes beside it that do likewise. A handler finds them in its frame,
 * and what it writes there is what the program goes on with. Each process has numbers of its own, so registers of another one are found out. */

#include "calls.h"

enum {
	READ = 0, WRITE = 1, MMAP = 9, MUNMAP = 11, RT_SIGACTION = 13, RT_SIGRETURN = 15, PIPE = 22, SCHED_YIELD = 24, SETITIMER = 38,
	GETPID = 39, FORK = 57, EXIT = 60, WAIT4 = 61, KILL = 62,
	ALARM_SIGNAL = 14, SIGUSR1 = 10, SIGSEGV = 11,
	PROCESSES = 3, ROUNDS = 400, VECTORS = 16,
	SA_SIGINFO = 4, SA_RESTART = 0x10000000, SA_RESTORER = 0x04000000,
	/* Offsets in `ucontext`. */
	CONTEXT_RIP = 168, CONTEXT_VECTORS = 224,
	/* Offsets in what FXSAVE writes. */
	FCW = 0, MXCSR = 24, XMM = 160,
};

static void __attribute__((noreturn)) fail(const char *text)
{
	say(text);
	for (;;)
		CALL(EXIT, 1, 0, 0, 0);
}

/* All that is looked at: filled in before a piece of code, and again behind it. */
struct registers {
	word general[12];
	word vectors[2 * VECTORS];
	unsigned mxcsr, control;
};

/* Registers to be loaded, those found, and the arguments of the call between. */
extern void around(const struct registers *load, struct registers *found, word call[4]);
__asm__(
	".globl around\n"
	"around:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	push %rdx; push %rsi\n"
	"	mov %rdi, %rax\n"
	"	.irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movdqu 96+16*\\i(%rax), %xmm\\i\n"
	"	.endr\n"
	"	ldmxcsr 352(%rax)\n"
	"	fldcw 356(%rax)\n"
	"	mov 8(%rax), %rbx; mov 16(%rax), %rbp; mov 24(%rax), %r8; mov 32(%rax), %r9; mov 40(%rax), %r10\n"
	"	mov 48(%rax), %r12; mov 56(%rax), %r13; mov 64(%rax), %r14; mov 72(%rax), %r15\n"
	"	mov (%rdx), %rax; mov 8(%rdx), %rdi; mov 16(%rdx), %rsi; mov 24(%rdx), %rdx\n"
	"	syscall\n"
	"	mov (%rsp), %rcx\n"
	"	mov %rax, (%rcx); mov %rbx, 8(%rcx); mov %rbp, 16(%rcx); mov %r8, 24(%rcx); mov %r9, 32(%rcx); mov %r10, 40(%rcx)\n"
	"	mov %r12, 48(%rcx); mov %r13, 56(%rcx); mov %r14, 64(%rcx); mov %r15, 72(%rcx)\n"
	"	mov %rdi, 80(%rcx); mov %rsi, 88(%rcx)\n"
	"	.irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movdqu %xmm\\i, 96+16*\\i(%rcx)\n"
	"	.endr\n"
	"	stmxcsr 352(%rcx)\n"
	"	fnstcw 356(%rcx)\n"
	"	pop %rsi; pop %rdx\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n");

/* A loop of so many instructions with registers loaded, which a timer interrupts anywhere: all of them have to be what they were, also those that calls overwrite. */
extern word spin(word rounds, word value);
__asm__(
	".globl spin\n"
	"spin:\n"
	"	mov %rsi, %rcx; mov %rsi, %r11; mov %rsi, %rdx; mov %rsi, %r8; movq %rsi, %xmm7; movq %rsi, %xmm15\n"
	"1:	cmp %rsi, %rcx; jne 2f; cmp %rsi, %r11; jne 2f; cmp %rsi, %rdx; jne 2f; cmp %rsi, %r8; jne 2f\n"
	"	movq %xmm7, %rax; cmp %rsi, %rax; jne 2f; movq %xmm15, %rax; cmp %rsi, %rax; jne 2f\n"
	"	dec %rdi; jnz 1b\n"
	"	xor %eax, %eax; ret\n"
	"2:	mov $1, %eax; ret\n");

/* One instruction, which writes to an address where there is nothing yet, with registers loaded. All of them have to be what they were. */
extern word touch(volatile word *at, word value);
__asm__(
	".globl touch\n"
	"touch:\n"
	"	push %rbx; push %rbp\n"
	"	mov %rsi, %rcx; mov %rsi, %r11; mov %rsi, %rdx; mov %rsi, %r8; mov %rsi, %r9; mov %rsi, %r10; mov %rsi, %rbx; mov %rsi, %rbp\n"
	"	movq %rsi, %xmm7; movq %rsi, %xmm15; mov %rsi, %rax; stc\n"
	"	mov %rsi, (%rdi)\n"
	"	jnc 2f\n"
	"	cmp %rsi, %rcx; jne 2f; cmp %rsi, %r11; jne 2f; cmp %rsi, %rdx; jne 2f; cmp %rsi, %r8; jne 2f; cmp %rsi, %r9; jne 2f; cmp %rsi, %r10; jne 2f\n"
	"	cmp %rsi, %rbx; jne 2f; cmp %rsi, %rbp; jne 2f; cmp %rsi, %rax; jne 2f; cmp %rsi, (%rdi); jne 2f\n"
	"	movq %xmm7, %rax; cmp %rsi, %rax; jne 2f; movq %xmm15, %rax; cmp %rsi, %rax; jne 2f\n"
	"	xor %eax, %eax; pop %rbp; pop %rbx; ret\n"
	"2:	mov $1, %eax; pop %rbp; pop %rbx; ret\n");

static word seed;
static volatile unsigned alarms, signals, faults;
/* Registers that a handler is to find in its frame, and to leave there. */
static struct registers wanted, left;
static volatile int is_watched;
static volatile word *faulting;

static word next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static void fill(struct registers *registers)
{
	for (int i = 0; i < 12; i++)
		registers->general[i] = next();
	for (int i = 0; i < 2 * VECTORS; i++)
		registers->vectors[i] = next();
	/* Exceptions masked; the direction of rounding, and the precision of the x87 registers, differ. */
	registers->mxcsr = 0x1f80 | (unsigned)(next() & 3) << 13;
	registers->control = 0x37f | (unsigned)(next() & 3) << 10;
}

/* Changes every register that a handler may change. */
static void spoil(void)
{
	word value = next();
	unsigned mxcsr = 0x1f80 | (unsigned)(value & 3) << 13;
	unsigned short control = (unsigned short)(0x37f | (value & 3) << 10);
	__asm__ volatile("ldmxcsr %0; fldcw %1" : : "m"(mxcsr), "m"(control));
	__asm__ volatile(
		".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movq %0, %%xmm\\i\n .endr" : : "r"(value) : "memory");
}

static word word_at(const char *at)
{
	return *(const word *)at;
}

static void handle(int signal, void *info, char *context)
{
	(void)info;
	if (signal == ALARM_SIGNAL) {
		alarms++;
		spoil();
		return;
	}
	if (signal == SIGSEGV) {
		faults++;
		/* The page appears, and the instruction is made again. */
		CALL(MUNMAP, (word)faulting & -4096ul, 4096, 0, 0);
		if (call6(MMAP, (word)faulting & -4096ul, 4096, 3, 0x32, -1ul, 0) < 0) fail("no page\n");
		spoil();
		return;
	}
	signals++;
	char *vectors = (char *)word_at(context + CONTEXT_VECTORS);
	if (is_watched) {
		for (int i = 0; i < 2 * VECTORS; i++)
			if (word_at(vectors + XMM + 8 * i) != wanted.vectors[i]) fail("a frame has other vector registers\n");
		if (*(unsigned *)(vectors + MXCSR) != wanted.mxcsr) fail("a frame has another MXCSR\n");
		if (*(unsigned short *)(vectors + FCW) != (unsigned short)wanted.control) fail("a frame has another control word\n");
		fill(&left);
		for (int i = 0; i < 2 * VECTORS; i++)
			*(word *)(vectors + XMM + 8 * i) = left.vectors[i];
		*(unsigned *)(vectors + MXCSR) = left.mxcsr;
		*(unsigned short *)(vectors + FCW) = (unsigned short)left.control;
	}
	spoil();
}

static void handle_signals(void)
{
	struct { void *handler; word flags; void *restorer; word mask; } action = { handle, SA_SIGINFO | SA_RESTART | SA_RESTORER, restorer, 0 };
	static const int all[] = { ALARM_SIGNAL, SIGUSR1, SIGSEGV };
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		/* Handlers do not meet each other: what they look for is one place. */
		action.mask = ~0ul;
		if (CALL(RT_SIGACTION, all[i], &action, 0, 8)) fail("no handler\n");
	}
}

/* One call with all registers loaded; afterwards they are these, or those that a handler left. */
static word call_with_registers(int changes, word n, word a, word b, word c)
{
	struct registers found;
	word call[4] = { n, a, b, c };
	fill(&wanted);
	is_watched = changes;
	around(&wanted, &found, call);
	is_watched = 0;
	for (int i = 1; i < 10; i++)
		if (found.general[i] != wanted.general[i]) fail("a general register has changed\n");
	if (found.general[10] != a || found.general[11] != b) fail("an argument has changed\n");
	const struct registers *now = changes ? &left : &wanted;
	for (int i = 0; i < 2 * VECTORS; i++)
		if (found.vectors[i] != now->vectors[i]) fail("a vector register has changed\n");
	if ((found.mxcsr & 0xffc0) != (now->mxcsr & 0xffc0)) fail("MXCSR has changed\n");
	if ((found.control & 0xffff) != now->control) fail("the control word has changed\n");
	return found.general[0];
}

/* Rounds of everything; bytes go round all processes meanwhile. */
static void run(word index, int from, int to)
{
	char byte = (char)index;
	word own = (word)CALL(GETPID, 0, 0, 0, 0);
	seed = 0x9e3779b97f4a7c15ul * (index + 1);
	handle_signals();
	char *page = (char *)call6(MMAP, 0, 4096, 3, 0x22, -1ul, 0);
	for (int round = 0; round < ROUNDS; round++) {
		if (call_with_registers(1, KILL, own, SIGUSR1, 0)) fail("no signal\n");
		if (call_with_registers(0, GETPID, 1, 2, 3) != own) fail("another process\n");
		if (index == 0 && call_with_registers(0, WRITE, to, (word)&byte, 1) != 1) fail("not written\n");
		if (call_with_registers(0, READ, from, (word)&byte, 1) != 1) fail("not read\n");
		if (index != 0 && call_with_registers(0, WRITE, to, (word)&byte, 1) != 1) fail("not written\n");
		call_with_registers(0, SCHED_YIELD, 0, 0, 0);
		faulting = (word *)page;
		CALL(MUNMAP, page, 4096, 0, 0);
		if (touch(faulting, next())) fail("a register has changed at a fault\n");
		if (signals != (unsigned)round + 1 || faults != (unsigned)round + 1) fail("a handler did not begin\n");
	}
	/* Interruptions anywhere. */
	word timer[4] = { 0, 1000, 0, 1000 };
	if (CALL(SETITIMER, 0, timer, 0, 0)) fail("no timer\n");
	for (int round = 0; alarms < 20 || round < 50; round++)
		if (spin(20000, next())) fail("a register has changed in a loop\n");
	timer[1] = timer[3] = 0;
	CALL(SETITIMER, 0, timer, 0, 0);
}

void __attribute__((noreturn, used)) begin(void)
{
	int pipes[PROCESSES][2];
	number children[PROCESSES] = { 0 };
	for (int i = 0; i < PROCESSES; i++)
		if (CALL(PIPE, pipes[i], 0, 0, 0)) fail("no pipe\n");
	for (int i = 1; i < PROCESSES; i++) {
		children[i] = CALL(FORK, 0, 0, 0, 0);
		if (children[i] < 0) fail("no process\n");
		if (children[i] == 0) {
			run((word)i, pipes[i][0], pipes[(i + 1) % PROCESSES][1]);
			for (;;)
				CALL(EXIT, 0, 0, 0, 0);
		}
	}
	run(0, pipes[0][0], pipes[1][1]);
	for (int i = 1; i < PROCESSES; i++) {
		int status = 1;
		if (CALL(WAIT4, children[i], &status, 0, 0) != children[i] || status) fail("a process has failed\n");
	}
	say("all registers are what they were\n");
	for (;;)
		CALL(EXIT, 0, 0, 0, 0);
}

__asm__(".globl _start\n_start: xor %ebp, %ebp; and $-16, %rsp; call begin");
