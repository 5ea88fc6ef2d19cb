/* Operations of Linux between marker instructions: one static program that needs no library, and runs unmodified on Linux and on Tern.
 *
 * rows [FILE]: with a file it ends when it is done; without one it is the first process of a machine with a disk behind which there is nothing, and
 * switches that off. */

#include "calls.h"

enum {
	PAGE = 4096, DESCRIPTORS = 100, FAULTING_BYTES = 3, DATAGRAM = 64, TRANSFER = 64 << 10, STREAM = 256 << 10, MODULES = 6,
};

struct action { void *handler; unsigned long flags; void *restorer; unsigned long mask; };

void restorer(void);
__asm__("restorer: mov $15, %eax; syscall");

static volatile int signals;

/* A handler that goes on behind the instruction which has faulted. */
static void skip(int signal, void *info, char *context)
{
	(void)signal, (void)info;
	*(unsigned long *)(context + 168) += FAULTING_BYTES;
}

static void count(int signal)
{
	(void)signal;
	signals++;
}

static void handle(int signal, void *handler)
{
	struct action action = { handler, 0x04000004, restorer, 0 };
	if (call(SIGACTION, signal, (long)&action, 0, 8, 0, 0)) end(99);
}

static long fork_wait(char *program)
{
	long child = CALL1(FORK, 0);
	if (child == 0) {
		char *arguments[] = { program, (char *)"-", 0 }, *none[] = { 0 };
		if (program) CALL3(EXECVE, program, arguments, none);
		CALL1(EXIT, program ? 1 : 0);
	}
	int status = -1;
	return CALL4(WAIT4, child, &status, 0, 0) == child && status == 0;
}

static char buffer[PAGE] __attribute__((aligned(PAGE)));

static long open_read_close(const char *path)
{
	long fd = CALL2(OPEN, path, 0);
	return CALL4(PREAD, fd, buffer, 8, 0) == 8 ? CALL1(CLOSE, fd) : -1;
}

/* A page of a file, mapped, looked at and given back. */
static long map_unmap(long fd)
{
	volatile char *page = (char *)call(MMAP, 0, PAGE, READ_ONLY, SHARED, fd, 0);
	(void)page[PAGE - 1];
	return CALL2(MUNMAP, page, PAGE);
}

static void files(const char *path)
{
	long fd = CALL3(OPEN, path, CREATE, 0600);
	ROW(2, result == PAGE, CALL4(PWRITE, fd, buffer, PAGE, 0));
	/* The file has all that was written to it before it is read, or else a server that has just written would read what is its own. */
	if (CALL1(FSYNC, fd)) end(97);
	buffer[0] = 1;
	ROW(1, result == PAGE && buffer[0] == 0 && buffer[PAGE - 1] == 0, CALL4(PREAD, fd, buffer, PAGE, 0));
	CALL1(CLOSE, fd);
	ROW(3, result == 0, CALL1(CLOSE, CALL2(OPEN, path, 0)));
	long attributes[18];
	ROW(4, result == 0 && attributes[6] == PAGE, CALL2(STAT, path, attributes));
	fd = CALL2(OPEN, path, CREATE);
	ROW(15, result == 0 && attributes[6] == PAGE, CALL2(FSTAT, fd, attributes));
	ROW(16, result == 8, CALL4(PWRITE, fd, buffer, 8, 0));
	if (CALL1(FSYNC, fd)) end(97);
	ROW(17, result == 8, CALL4(PREAD, fd, buffer, 8, 0));
	ROW(18, result == 0, open_read_close(path));
	ROW(19, result == 0, map_unmap(fd));
	CALL1(CLOSE, fd);
}

/* A disk behind which there is nothing, past what the system keeps of it. There is one in a machine. */
static void disk(void)
{
	long fd = CALL2(OPEN, "/dev/vda", DIRECT);
	if (fd < 0) end(96);
	ROW(22, result == PAGE, CALL4(PREAD, fd, buffer, PAGE, 0));
	CALL1(CLOSE, fd);
}

static void pipes(void)
{
	int there[2], back[2];
	char byte = 1;
	if (CALL1(PIPE, there) || CALL1(PIPE, back)) end(98);
	long child = CALL1(FORK, 0);
	if (child == 0) {
		CALL1(CLOSE, there[1]);
		while (CALL3(READ, there[0], &byte, 1) == 1)
			CALL3(WRITE, back[1], &byte, 1);
		CALL1(EXIT, 0);
	}
	ROW(5, result == 1, (CALL3(WRITE, there[1], &byte, 1), CALL3(READ, back[0], &byte, 1)));
	struct { int fd; short events, found; } polled[DESCRIPTORS];
	for (int i = 0; i < DESCRIPTORS; i++) {
		polled[i].fd = (int)CALL1(DUP, back[0]);
		polled[i].events = 1;
	}
	ROW(6, result == 0, CALL3(POLL, polled, DESCRIPTORS, 0));
	CALL1(CLOSE, there[1]);
	CALL4(WAIT4, child, 0, 0, 0);
}

/* A stream of so many bytes to another process, piece by piece, and a byte from it when all are there. */
static long stream(int there, int back, long bytes, long piece)
{
	for (long left = bytes; left > 0; left -= piece)
		if (CALL3(WRITE, there, buffer, piece) != piece) return -1;
	char byte;
	return CALL3(READ, back, &byte, 1);
}

static void streams(void)
{
	static const long lengths[] = { STREAM, STREAM / 16 };
	int there[2], back[2];
	char byte = 1;
	if (CALL1(PIPE, there) || CALL1(PIPE, back)) end(98);
	long child = CALL1(FORK, 0);
	if (child == 0) {
		CALL1(CLOSE, there[1]);
		for (int kind = 0; kind < 2; kind++)
			for (int round = 0; round < ROUNDS; round++) {
				for (long left = lengths[kind]; left > 0;) {
					long count = CALL3(READ, there[0], buffer, left < PAGE ? left : PAGE);
					if (count <= 0) CALL1(EXIT, 1);
					left -= count;
				}
				CALL3(WRITE, back[1], &byte, 1);
			}
		CALL1(EXIT, 0);
	}
	ROW(23, result == 1, stream(there[1], back[0], lengths[0], PAGE));
	ROW(24, result == 1, stream(there[1], back[0], lengths[1], 64));
	CALL1(CLOSE, there[1]);
	CALL4(WAIT4, child, 0, 0, 0);
}

static long socket(int kind, int port)
{
	long fd = CALL3(SOCKET, INTERNET, kind, 0);
	struct address own = local(port);
	if (fd < 0 || (port && CALL3(BIND, fd, &own, sizeof own))) end(95);
	return fd;
}

/* A datagram there, and one back. */
static long echo(long one, long other, int port)
{
	struct address to = local(port), from;
	int length = sizeof from;
	call(SENDTO, one, (long)buffer, DATAGRAM, 0, (long)&to, sizeof to);
	if (call(RECVFROM, other, (long)buffer, PAGE, 0, (long)&from, (long)&length) != DATAGRAM) return -1;
	call(SENDTO, other, (long)buffer, DATAGRAM, 0, (long)&from, length);
	return call(RECVFROM, one, (long)buffer, PAGE, 0, 0, 0);
}

/* Bytes over a connection whose ends are both this program's, a page written and read at a time. */
static long transfer(long there, long back)
{
	for (long left = TRANSFER; left > 0; left -= PAGE) {
		if (CALL3(WRITE, there, buffer, PAGE) != PAGE) return -1;
		for (long missing = PAGE; missing > 0;) {
			long count = CALL3(READ, back, buffer, missing);
			if (count <= 0) return -1;
			missing -= count;
		}
	}
	return TRANSFER;
}

static void sockets(void)
{
	long one = socket(DATAGRAMS, 7001), other = socket(DATAGRAMS, 7002);
	ROW(20, result == DATAGRAM, echo(one, other, 7002));
	CALL1(CLOSE, one);
	CALL1(CLOSE, other);
	long listener = socket(STREAMS, 7003), there = socket(STREAMS, 0);
	struct address to = local(7003);
	if (CALL2(LISTEN, listener, 1) || CALL3(CONNECT, there, &to, sizeof to)) end(94);
	long back = CALL3(ACCEPT, listener, 0, 0);
	ROW(21, result == TRANSFER, transfer(there, back));
	CALL1(CLOSE, there);
	CALL1(CLOSE, back);
	CALL1(CLOSE, listener);
	int pair[2];
	if (CALL4(SOCKETPAIR, LOCAL, STREAMS, 0, pair)) end(96);
	ROW(25, result == TRANSFER, transfer(pair[0], pair[1]));
	CALL1(CLOSE, pair[0]);
	CALL1(CLOSE, pair[1]);
}

/* Brings up a machine: its loopback interface, and its disk. */
static void prepare(void)
{
	bring_up_loopback();
	char name[] = "/module.0";
	for (int module = 0; module < MODULES; module++, name[sizeof name - 2]++) {
		long fd = CALL2(OPEN, name, 0);
		if (fd < 0 || CALL3(FINIT_MODULE, fd, "", 0)) end(92);
		CALL1(CLOSE, fd);
	}
	mount_devices();
}

/* Two processes hand a word over to each other and back. */
static long hand_over(volatile int *words)
{
	words[0] = 1;
	call(FUTEX, (long)&words[0], WAKE, 1, 0, 0, 0);
	while (words[1] == 0)
		call(FUTEX, (long)&words[1], WAIT, 0, 0, 0, 0);
	words[1] = 0;
	return 1;
}

static void futexes(void)
{
	volatile int *words = (int *)call(MMAP, 0, PAGE, READ_WRITE, SHARED | ANONYMOUS, -1, 0);
	words[0] = words[1] = 0;
	long child = CALL1(FORK, 0);
	if (child == 0)
		for (;;) {
			while (words[0] == 0)
				call(FUTEX, (long)&words[0], WAIT, 0, 0, 0, 0);
			if (words[0] == 2) CALL1(EXIT, 0);
			words[0] = 0;
			words[1] = 1;
			call(FUTEX, (long)&words[1], WAKE, 1, 0, 0, 0);
		}
	ROW(7, result == 1, hand_over(words));
	words[0] = 2;
	call(FUTEX, (long)&words[0], WAKE, 1, 0, 0, 0);
	CALL4(WAIT4, child, 0, 0, 0);
}

static long fault(void)
{
	__asm__ volatile("xor %%eax, %%eax; movb $0, (%%rax)" : : : "rax", "memory");
	return 1;
}

typedef int clock_function(long, long *);

static int ask_clock(long clock, long *time)
{
	return (int)CALL2(CLOCK_GETTIME, clock, time);
}

/* The function by which C libraries learn the time, in the shared object that the system maps into each program; else the call. */
static clock_function *find_clock(char *page)
{
	char *base = page, *header = page + *(long *)(page + 32), *texts = 0, *symbols = 0;
	long *dynamic = 0;
	int *hashes = 0;
	for (int left = *(short *)(page + 56); left > 0; left--, header += 56) {
		long offset = *(long *)(header + 8);
		if (*(int *)header == 1) base = page + offset - *(long *)(header + 16);
		if (*(int *)header == 2) dynamic = (long *)(page + offset);
	}
	for (; dynamic && dynamic[0]; dynamic += 2) {
		if (dynamic[0] == 4) hashes = (int *)(base + dynamic[1]);
		if (dynamic[0] == 5) texts = base + dynamic[1];
		if (dynamic[0] == 6) symbols = base + dynamic[1];
	}
	for (int left = hashes ? hashes[1] : 0; left > 0; left--, symbols += 24)
		if (is_equal(texts + *(int *)symbols, "__vdso_clock_gettime"))
			return (clock_function *)(base + *(long *)(symbols + 8));
	return ask_clock;
}

/* A value that the system tells behind the environment. */
static long told(long *stack, long kind)
{
	long *word = stack + stack[0] + 2;
	while (*word++) {}
	for (; word[0]; word += 2)
		if (word[0] == kind) return word[1];
	return 0;
}

static void times(long *stack)
{
	char *page = (char *)told(stack, SYSINFO_EHDR);
	clock_function *clock = page ? find_clock(page) : ask_clock;
	long time[2];
	ROW(14, result == 0, clock(1, time));
}

static void memory(void)
{
	char *pages = (char *)call(MMAP, 0, ROUNDS * PAGE, READ_WRITE, PRIVATE | ANONYMOUS, -1, 0);
	ROW(8, result == 1, pages[round * PAGE] = 1);
	handle(SIGSEGV, skip);
	ROW(9, result == 1, fault());
	handle(SIGUSR1, count);
	long own = CALL1(GETPID, 0);
	ROW(10, result == 0 && signals == round + 1, CALL2(KILL, own, SIGUSR1));
	long time[2];
	ROW(11, result == 0, CALL2(CLOCK_GETTIME, 1, time));
}

void begin(long *stack)
{
	char **words = (char **)(stack + 1);
	/* A program that row 13 begins ends at once. */
	if (stack[0] > 1 && words[1][0] == '-') CALL1(EXIT, 0);
	is_machine = stack[0] == 1;
	if (is_machine) prepare();
	ROW(0, result >= 0, CALL1(GETPPID, 0));
	files(is_machine ? "/file" : words[1]);
	pipes();
	futexes();
	memory();
	times(stack);
	ROW(12, result == 1, fork_wait(0));
	ROW(13, result == 1, fork_wait(words[0]));
	streams();
	sockets();
	if (is_machine) disk();
	end(0);
}
