/* Shared parts of both programs of the suite `linux`: calls of Linux without a C library, measured operations, how a machine of Linux begins and ends. */
#pragma once
#include "../../tools/ipcscope/markers/ipcscope.h"

enum { ROUNDS = 110 };

enum {
	READ = 0, WRITE = 1, OPEN = 2, CLOSE = 3, STAT = 4, FSTAT = 5, POLL = 7, MMAP = 9, MUNMAP = 11, SIGACTION = 13, SIGRETURN = 15,
	IOCTL = 16, PREAD = 17, PWRITE = 18, PIPE = 22, DUP = 32, GETPID = 39, SOCKET = 41, CONNECT = 42, ACCEPT = 43, SENDTO = 44,
	RECVFROM = 45, BIND = 49, LISTEN = 50, SOCKETPAIR = 53, FORK = 57, EXECVE = 59, EXIT = 60, WAIT4 = 61, KILL = 62, FSYNC = 74, MKDIR = 83,
	GETPPID = 110, MOUNT = 165, REBOOT = 169, FUTEX = 202, CLOCK_GETTIME = 228, FINIT_MODULE = 313, SYSINFO_EHDR = 33,
};

enum {
	READ_ONLY = 1, READ_WRITE = 3, SHARED = 1, PRIVATE = 2, ANONYMOUS = 32, CREATE = 0102, DIRECT = 040000, SIGKILL = 9, SIGUSR1 = 10,
	SIGSEGV = 11, WAIT = 0, WAKE = 1, LOCAL = 1, INTERNET = 2, STREAMS = 1, DATAGRAMS = 2, GET_FLAGS = 0x8913, SET_FLAGS = 0x8914, UP = 1,
};

static inline long call(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	__asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return number;
}

#define CALL1(number, a) call(number, (long)(a), 0, 0, 0, 0, 0)
#define CALL2(number, a, b) call(number, (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL3(number, a, b, c) call(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL4(number, a, b, c, d) call(number, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

/* An operation, measured. Its result is used: what fails ends the program with the number of the row. */
#define ROW(region, right, operation) ROW_OF(ROUNDS, region, right, operation)

#define ROW_OF(rounds, region, right, operation)                             \
	for (int round = 0; round < rounds; round++) {                       \
		IPCSCOPE_START(region);                                      \
		long result = (operation);                                   \
		IPCSCOPE_END(region);                                        \
		if (!(right)) end(100 + region);                             \
	}

/* Whether the program is the first process of Linux, and ends the machine. */
static int is_machine;

static void __attribute__((noreturn)) end(int status)
{
	char said[] = "rows: ended with 000\n";
	for (long place = sizeof said - 3, left = status; left > 0; left /= 10)
		said[place--] = (char)('0' + left % 10);
	if (status) CALL3(WRITE, 1, said, sizeof said - 1);
	if (is_machine && CALL1(GETPID, 0) == 1)
		CALL4(REBOOT, 0xfee1dead, 672274793, 0x4321fedc, 0);
	for (;;)
		CALL1(EXIT, status);
}

static int is_equal(const char *one, const char *other)
{
	while (*one && *one == *other) one++, other++;
	return *one == *other;
}

struct address { unsigned short family; unsigned char port[2], host[4]; char none[8]; };

static struct address local(int port)
{
	return (struct address){ INTERNET, { (unsigned char)(port >> 8), (unsigned char)port }, { 127, 0, 0, 1 }, { 0 } };
}

/* A machine's loopback interface works. */
static void bring_up_loopback(void)
{
	struct { char name[16]; short flags; char none[22]; } request = { "lo", 0, { 0 } };
	long fd = CALL3(SOCKET, INTERNET, DATAGRAMS, 0);
	CALL3(IOCTL, fd, GET_FLAGS, &request);
	request.flags |= UP;
	if (CALL3(IOCTL, fd, SET_FLAGS, &request)) end(93);
	CALL1(CLOSE, fd);
}

/* A machine's devices have names. */
static void mount_devices(void)
{
	CALL2(MKDIR, "/dev", 0755);
	if (call(MOUNT, (long)"none", (long)"/dev", (long)"devtmpfs", 0, 0, 0)) end(91);
}

/* The program begins with the words on its stack, behind their number. */
void __attribute__((noreturn, used)) begin(long *stack);
__asm__(".globl _start\n_start: xor %ebp, %ebp; mov %rsp, %rdi; and $-16, %rsp; call begin");
