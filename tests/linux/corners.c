/* Corners of calls, without a C library: `corners DIRECTORY` prints what they do on Linux, and on Tern they do the same. Handlers of several signals that wait, and stops between them, files that
 * one thread closes while another one waits for them by `poll` or `select`, what is open as a place alone, empty paths, what children have of memory, objects of System V's ipc, filters, a directory of many files, and numbers of calls. */

#include "calls.h"

enum {
	READ = 0, WRITE = 1, OPEN = 2, CLOSE = 3, FSTAT = 5, POLL = 7, LSEEK = 8, MMAP = 9, MUNMAP = 11, RT_SIGACTION = 13, RT_SIGPROCMASK = 14, IOCTL = 16,
	PREAD64 = 17, PWRITE64 = 18, MADVISE = 28, PIPE = 22, SELECT = 23, SCHED_YIELD = 24, DUP = 32, DUP2 = 33, SENDFILE = 40, GETPID = 39, CLONE = 56, FORK = 57, EXIT = 60,
	WAIT4 = 61, KILL = 62, FCNTL = 72, FLOCK = 73, FSYNC = 74, FTRUNCATE = 77, GETDENTS64 = 217, CHDIR = 80, RENAME = 82, MKDIR = 83, RMDIR = 84, UNLINK = 87,
	SYMLINK = 88, READLINK = 89, FCHMOD = 91, FCHOWN = 93, SETPGID = 109, RT_SIGSUSPEND = 130, SIGALTSTACK = 131, FSTATFS = 138, GETTID = 186, TKILL = 200,
	FADVISE64 = 221, EXIT_GROUP = 231, EPOLL_WAIT = 232, EPOLL_CTL = 233, FCHOWNAT = 260, LINKAT = 265, READLINKAT = 267, PSELECT6 = 270, PPOLL = 271, SPLICE = 275,
	UTIMENSAT = 280, FALLOCATE = 285, EPOLL_CREATE1 = 291, PRCTL = 157, SYNCFS = 306, SECCOMP = 317, MEMFD_CREATE = 319, EXECVEAT = 322, FCHMODAT2 = 452,
	SIGUSR1 = 10, SIGUSR2 = 12, SIGPIPE = 13, SIGCONT = 18, SIGSTOP = 19, SIGTSTP = 20, QUEUED = 40, BLOCK = 0, UNBLOCK = 1, SET = 2,
	SA_ONSTACK = 0x08000000, SA_RESTART = 0x10000000, SA_RESTORER = 0x04000000, EMPTY_PATH = 0x1000,
	SIGSYS = 31, ALLOWED = 0x7fff0000, GET_FILTERS = 21, SET_FILTERS = 22, NO_NEW_RIGHTS = 38,
	HOLE = 9, LEAVE_AT_FORK = 10, WIPE_ON_FORK = 18, KEEP = 1, PUNCH = 2,
	HERE = -100, O_PLACE = 010000000, O_NOFOLLOW = 0400000, O_DIRECTORY = 0200000, THREAD_FLAGS = 0x50f00, STACK = 16384,
};

#define OF(signal) (1ul << ((signal) - 1))

static void say_number(number value)
{
	char digits[24];
	char *at = digits + 23;
	word left = value < 0 ? -(word)value : (word)value;
	*at = 0;
	do
		*--at = '0' + left % 10;
	while (left /= 10);
	if (value < 0)
		*--at = '-';
	say(" ");
	say(at);
}

/* One line: a name, and numbers. */
static void tell(const char *name, const number *values, word count)
{
	say(name);
	say(":");
	for (word i = 0; i < count; i++)
		say_number(values[i]);
	say("\n");
}

#define TELL(name, ...) tell(name, (number[]){ __VA_ARGS__ }, COUNT(((number[]){ __VA_ARGS__ })))

static void __attribute__((noreturn)) end(number status)
{
	for (;;)
		CALL(EXIT_GROUP, status, 0, 0, 0);
}

/* Signals in the order in which their handlers ran, and one that a handler sends. */
static volatile number order[16];
static volatile int count, sent_inside;

static void send(number signal)
{
	CALL(KILL, CALL(GETPID, 0, 0, 0, 0), signal, 0, 0);
}

static void handler(int signal)
{
	if (sent_inside) {
		sent_inside = 0;
		send(SIGUSR2);
		send(QUEUED);
		send(QUEUED);
	}
	order[count++ % 16] = signal;
}

static void handle(number signal, word flags, word mask)
{
	word action[4] = { (word)handler, SA_RESTORER | flags, (word)restorer, mask };
	CALL(RT_SIGACTION, signal, action, 0, 8);
}

static word change_mask(int how, word set)
{
	word before = 0;
	CALL(RT_SIGPROCMASK, how, &set, &before, 8);
	return before;
}

static void tell_order(const char *name)
{
	tell(name, (const number *)order, (word)count);
	TELL("blocked", (number)change_mask(BLOCK, 0));
	count = 0;
}

static const word all = OF(SIGUSR1) | OF(SIGUSR2) | OF(QUEUED);

static void stacked(void)
{
	handle(SIGUSR1, 0, 0), handle(SIGUSR2, 0, 0), handle(QUEUED, 0, 0);
	change_mask(BLOCK, all);
	send(SIGUSR2), send(QUEUED), send(SIGUSR1), send(QUEUED);
	change_mask(UNBLOCK, all);
	tell_order("all of the process");

	change_mask(BLOCK, all);
	send(SIGUSR1), CALL(TKILL, CALL(GETTID, 0, 0, 0, 0), SIGUSR2, 0, 0), send(QUEUED);
	change_mask(UNBLOCK, all);
	tell_order("one of the thread");

	handle(SIGUSR1, 0, OF(SIGUSR2));
	change_mask(BLOCK, all);
	send(SIGUSR1), send(SIGUSR2), send(QUEUED);
	change_mask(UNBLOCK, all);
	tell_order("one blocks another");

	handle(SIGUSR1, 0, 0);
	change_mask(BLOCK, all);
	send(SIGUSR1), send(SIGUSR2);
	word none = 0;
	number waited = CALL(RT_SIGSUSPEND, &none, 8, 0, 0);
	TELL("a wait for signals", waited);
	tell_order("behind the wait");
	change_mask(UNBLOCK, all);

	handle(SIGUSR1, 0, all);
	sent_inside = 1;
	send(SIGUSR1);
	tell_order("sent by a handler");

	static word other[2 * STACK / sizeof (word)];
	word stack[3] = { (word)other, 0, sizeof other };
	CALL(SIGALTSTACK, stack, 0, 0, 0);
	handle(SIGUSR1, SA_ONSTACK, 0), handle(SIGUSR2, SA_ONSTACK, 0);
	change_mask(BLOCK, all);
	send(SIGUSR1), send(SIGUSR2), send(QUEUED);
	change_mask(UNBLOCK, all);
	tell_order("on another stack");
	stack[1] = 2;
	CALL(SIGALTSTACK, stack, 0, 0, 0);
}

/* State of a thread, as /proc has it: a letter. */
static char state_of(number pid, number tid)
{
	char path[64], text[256];
	char *at = path;
	const char *parts[] = { "/proc/", "/task/", "/stat" };
	number numbers[] = { pid, tid };
	for (int i = 0; i < 3; i++) {
		for (const char *from = parts[i]; *from; from++)
			*at++ = *from;
		char digits[24];
		int len = 0;
		for (number left = i < 2 ? numbers[i] : 0; left; left /= 10)
			digits[len++] = '0' + left % 10;
		while (len)
			*at++ = digits[--len];
	}
	*at = 0;
	number file = CALL(OPEN, path, 0, 0, 0), len = CALL(READ, file, text, sizeof text, 0);
	CALL(CLOSE, file, 0, 0, 0);
	for (number i = len - 1; i > 0; i--)
		if (text[i] == ')')
			return text[i + 2];
	return 0;
}

static void wait_for_state(number pid, number tid, char state)
{
	while (state_of(pid, tid) != state)
		CALL(SCHED_YIELD, 0, 0, 0, 0);
}

/* A child that reads is stopped, and gets two signals before it goes on: the first one says whether it reads again. */
static void restarted(const char *name, word first, word second)
{
	int from[2], back[2];
	number found[4] = { 0 };
	CALL(PIPE, from, 0, 0, 0);
	CALL(PIPE, back, 0, 0, 0);
	number child = CALL(FORK, 0, 0, 0, 0);
	if (child == 0) {
		char byte;
		count = 0;
		handle(SIGUSR1, first, 0), handle(SIGUSR2, second, 0);
		found[0] = CALL(READ, from[0], &byte, 1, 0);
		found[1] = count, found[2] = order[0], found[3] = order[1];
		CALL(WRITE, back[1], found, sizeof found, 0);
		end(0);
	}
	wait_for_state(child, child, 'S');
	CALL(KILL, child, SIGSTOP, 0, 0);
	int status;
	CALL(WAIT4, child, &status, 2, 0);
	CALL(KILL, child, SIGUSR2, 0, 0);
	CALL(KILL, child, SIGUSR1, 0, 0);
	CALL(KILL, child, SIGCONT, 0, 0);
	CALL(WRITE, from[1], "x", 1, 0);
	CALL(READ, back[0], found, sizeof found, 0);
	CALL(WAIT4, child, 0, 0, 0);
	tell(name, found, 4);
	for (int i = 0; i < 2; i++)
		CALL(CLOSE, from[i], 0, 0, 0), CALL(CLOSE, back[i], 0, 0, 0);
}

/* A child with a handler for a signal blocks it, and one that stops it; both wait, and are unblocked together. It stops, and the handler runs when it goes on: once. */
static void crossed(const char *name, number signal, int hears_of_it)
{
	int back[2], status = 0;
	number found[3] = { 0 };
	CALL(PIPE, back, 0, 0, 0);
	number child = CALL(FORK, 0, 0, 0, 0);
	if (child == 0) {
		/* A group of its own, whose parent is in another one of the session: others do not stop. */
		CALL(SETPGID, 0, 0, 0, 0);
		count = 0;
		handle(signal, 0, 0);
		if (hears_of_it)
			handle(SIGCONT, 0, 0);
		change_mask(BLOCK, OF(signal) | OF(SIGTSTP));
		send(SIGTSTP), send(signal);
		change_mask(UNBLOCK, OF(signal) | OF(SIGTSTP));
		found[0] = count, found[1] = order[0], found[2] = count > 1 ? order[1] : 0;
		CALL(WRITE, back[1], found, sizeof found, 0);
		end(0);
	}
	number stopped = CALL(WAIT4, child, &status, 2, 0) == child ? status : 0;
	CALL(KILL, child, SIGCONT, 0, 0);
	CALL(READ, back[0], found, sizeof found, 0);
	number ended = CALL(WAIT4, child, &status, 0, 0) == child ? status : -1;
	TELL(name, stopped, found[0], found[1], found[2], ended);
	for (int i = 0; i < 2; i++)
		CALL(CLOSE, back[i], 0, 0, 0);
}

/* A wait of another thread. */
static struct {
	number call, fd, result, found;
	volatile number tid;
	volatile int is_over;
} wait;

static void waits(word argument)
{
	struct { int fd; short events, found; } list = { (int)wait.fd, 1, 0 };
	word sets[3][16] = { { 1ul << wait.fd }, { 0 }, { 1ul << wait.fd } };
	(void)argument;
	wait.tid = CALL(GETTID, 0, 0, 0, 0);
	if (wait.call == POLL)
		wait.result = CALL(POLL, &list, 1, -1, 0);
	else if (wait.call == PPOLL)
		wait.result = CALL(PPOLL, &list, 1, 0, 0);
	else
		wait.result = call6(wait.call, (word)wait.fd + 1, (word)sets[0], 0, (word)sets[2], 0, 0);
	if (wait.call == POLL || wait.call == PPOLL)
		wait.found = list.found;
	else
		wait.found = (sets[0][0] != 0) | (sets[2][0] != 0) << 1;
	wait.is_over = 1;
	for (;;)
		CALL(EXIT, 0, 0, 0, 0);
}

/* A file stays open until the wait for it is over, whoever closes it. */
static void closed_meanwhile(const char *name, number call, int is_replaced, int is_interrupted)
{
	static word stack[STACK / sizeof (word)];
	int ends[2];
	CALL(PIPE, ends, 0, 0, 0);
	wait.call = call, wait.fd = ends[0], wait.tid = 0, wait.is_over = 0;
	begin_thread(THREAD_FLAGS, stack + COUNT(stack) - 4, waits, 0);
	while (!wait.tid)
		CALL(SCHED_YIELD, 0, 0, 0, 0);
	wait_for_state(CALL(GETPID, 0, 0, 0, 0), wait.tid, 'S');
	if (is_replaced) {
		number file = CALL(OPEN, "/dev/null", 2, 0, 0);
		CALL(DUP2, file, ends[0], 0, 0);
		CALL(CLOSE, file, 0, 0, 0);
	} else {
		CALL(CLOSE, ends[0], 0, 0, 0);
	}
	if (is_interrupted)
		CALL(TKILL, wait.tid, SIGUSR1, 0, 0);
	number first = is_interrupted ? 0 : CALL(WRITE, ends[1], "x", 1, 0);
	while (!wait.is_over)
		CALL(SCHED_YIELD, 0, 0, 0, 0);
	TELL(name, first, wait.result, wait.found, CALL(WRITE, ends[1], "x", 1, 0));
	CALL(CLOSE, ends[0], 0, 0, 0);
	CALL(CLOSE, ends[1], 0, 0, 0);
	count = 0;
}

/* Kind, names and length. */
static void tell_stat(const char *name, number fd)
{
	word found[18] = { 0 };
	number done = CALL(FSTAT, fd, found, 0, 0);
	number mode = (number)(found[3] & 0170000), is_link = mode == 0120000;
	TELL(name, done, mode, is_link ? (number)found[2] : 0, is_link ? (number)found[6] : 0);
}

/* Every call that takes a descriptor to do something with what is open. */
static void tell_place(const char *path)
{
	static char room[256];
	int pipes[2];
	CALL(PIPE, pipes, 0, 0, 0);
	number list = CALL(EPOLL_CREATE1, 0, 0, 0, 0), fd = CALL(OPEN, path, O_PLACE | O_NOFOLLOW, 0, 0);
	say(path);
	say(fd >= 0 ? " is open\n" : " is not open\n");
	TELL("bytes", CALL(READ, fd, room, 1, 0), CALL(WRITE, fd, room, 1, 0), CALL(PREAD64, fd, room, 1, 0), CALL(LSEEK, fd, 0, 0, 0));
	TELL("length", CALL(FTRUNCATE, fd, 0, 0, 0), CALL(FALLOCATE, fd, 0, 0, 1), CALL(FSYNC, fd, 0, 0, 0), CALL(SYNCFS, fd, 0, 0, 0));
	TELL("attributes", CALL(FCHMOD, fd, 0777, 0, 0), CALL(FCHOWN, fd, 1, 1, 0), CALL(UTIMENSAT, fd, 0, 0, 0));
	TELL("others", CALL(FLOCK, fd, 1, 0, 0), CALL(IOCTL, fd, 0x5421, room, 0), CALL(GETDENTS64, fd, room, 256, 0), CALL(FADVISE64, fd, 0, 0, 0));
	TELL("fcntl", CALL(FCNTL, fd, 4, 0, 0), CALL(FCNTL, fd, 5, room, 0), CALL(FCNTL, fd, 1, 0, 0), CALL(FCNTL, fd, 3, 0, 0) & O_PLACE);
	TELL("copies", CALL(SENDFILE, pipes[1], fd, 0, 1), call6(SPLICE, fd, 0, pipes[1], 0, 1, 0), call6(MMAP, 0, 4096, 1, 2, fd, 0));
	struct { int fd; short events, found; } entry = { (int)fd, 1, 0 };
	word set[16] = { 1ul << fd }, sets[3][16] = { { 1ul << fd }, { 1ul << fd }, { 1ul << fd } }, none[2] = { 0 };
	TELL("waits", CALL(EPOLL_CTL, list, 1, fd, room), CALL(EPOLL_CTL, fd, 1, pipes[0], room), call6(EPOLL_WAIT, fd, (word)room, 1, 0, 0, 0),
	     CALL(POLL, &entry, 1, 0, 0), entry.found);
	TELL("selects", call6(SELECT, fd + 1, (word)sets[0], (word)sets[1], (word)sets[2], (word)none, 0), sets[0][0] == set[0], sets[1][0] == set[0],
	     sets[2][0] == set[0], call6(PSELECT6, fd + 1, 0, (word)set, 0, (word)none, 0), set[0] == sets[0][0]);
	number copy = CALL(DUP, fd, 0, 0, 0);
	TELL("its copy", copy >= 0, CALL(FSTATFS, copy, room, 0, 0), CALL(CLOSE, copy, 0, 0, 0));
	CALL(CLOSE, fd, 0, 0, 0);
	CALL(CLOSE, list, 0, 0, 0);
	CALL(CLOSE, pipes[0], 0, 0, 0);
	CALL(CLOSE, pipes[1], 0, 0, 0);
}

static void places(void)
{
	char target[64], path[] = "/proc/self/fd/0";
	CALL(UNLINK, "link", 0, 0, 0);
	CALL(SYMLINK, "no/where", "link", 0, 0);
	TELL("as a file", CALL(OPEN, "link", O_NOFOLLOW, 0, 0), CALL(OPEN, "link", O_PLACE, 0, 0));
	TELL("as a directory", CALL(OPEN, "link", O_PLACE | O_NOFOLLOW | O_DIRECTORY, 0, 0), CALL(OPEN, "link/x", O_PLACE | O_NOFOLLOW, 0, 0));
	number fd = CALL(OPEN, "link", O_PLACE | O_NOFOLLOW, 0, 0);
	path[14] = (char)('0' + fd);
	tell_stat("the link", fd);
	TELL("its target", CALL(READLINKAT, fd, "", target, 64), target[0], CALL(READLINKAT, fd, "", target, 0), CALL(READLINKAT, fd, "x", target, 64));
	TELL("by way of it", CALL(OPEN, path, 0, 0, 0), CALL(OPEN, path, O_NOFOLLOW, 0, 0));
	number again = CALL(OPEN, path, O_PLACE, 0, 0), itself = CALL(OPEN, path, O_PLACE | O_NOFOLLOW, 0, 0);
	tell_stat("the same", again);
	TELL("targets", CALL(READLINKAT, again, "", target, 64), target[0], CALL(READLINKAT, itself, "", target, 64) > 0, target[0]);
	TELL("permissions", call6(FCHMODAT2, fd, (word)"", 0700, EMPTY_PATH, 0, 0));
	CALL(UNLINK, "link", 0, 0, 0);
	tell_stat("without a name", fd);
	TELL("its target", CALL(READLINKAT, fd, "", target, 64), CALL(CLOSE, fd, 0, 0, 0), CALL(CLOSE, again, 0, 0, 0), CALL(CLOSE, itself, 0, 0, 0));

	CALL(CLOSE, CALL(OPEN, "file", 0102, 0600, 0), 0, 0, 0);
	CALL(SYMLINK, "file", "link", 0, 0);
	static const char *const all_kinds[] = { "file", ".", "link", "/dev/zero", "/proc/self/stat" };
	for (word i = 0; i < COUNT(all_kinds); i++)
		tell_place(all_kinds[i]);
	fd = CALL(OPEN, "file", O_PLACE, 0, 0);
	word found[18] = { 0 };
	TELL("by an empty path", call6(FCHOWNAT, fd, (word)"", 3, 4, EMPTY_PATH, 0), call6(FCHMODAT2, fd, (word)"", 0701, EMPTY_PATH, 0, 0),
	     CALL(UTIMENSAT, fd, "", 0, EMPTY_PATH), CALL(READLINKAT, fd, "", target, 64));
	CALL(FSTAT, fd, found, 0, 0);
	TELL("it has", (number)(found[3] & 07777), (number)(found[3] >> 32), (number)(found[4] & 0xffffffff));
}

static number link_open(number fd, const char *to)
{
	return call6(LINKAT, fd, (word)"", HERE, (word)to, EMPTY_PATH, 0);
}

/* Calls that take an empty path for what is open, or for the working directory. */
static void empty_paths(void)
{
	int pipes[2];
	word found[18] = { 0 };
	CALL(PIPE, pipes, 0, 0, 0);
	CALL(CLOSE, CALL(OPEN, "first", 0102, 0600, 0), 0, 0, 0);
	CALL(SYMLINK, "first", "leads", 0, 0);
	number file = CALL(OPEN, "first", 0, 0, 0), place = CALL(OPEN, "first", O_PLACE, 0, 0);
	number link = CALL(OPEN, "leads", O_PLACE | O_NOFOLLOW, 0, 0), directory = CALL(OPEN, ".", 0, 0, 0);
	TELL("another name", call6(LINKAT, file, (word)"", HERE, (word)"second", 0, 0), link_open(file, "second"), link_open(place, "second"),
	     link_open(place, "third"), link_open(file, "no/where"), link_open(link, "also"));
	TELL("moved", CALL(RENAME, "first", "moved", 0, 0), link_open(file, "first"), CALL(FSTAT, file, found, 0, 0), (number)found[2]);
	tell_stat("the link", link);
	TELL("none for", link_open(directory, "none"), link_open(HERE, "none"), link_open(pipes[0], "none"), link_open(99, "none"));
	static const char *const names[] = { "first", "second", "third", "moved", "leads", "also" };
	for (word i = 0; i < COUNT(names); i++)
		CALL(UNLINK, names[i], 0, 0, 0);
	TELL("without a name", link_open(file, "first"), link_open(link, "leads"));
	TELL("here", call6(FCHOWNAT, HERE, (word)"", -1, -1, EMPTY_PATH, 0), CALL(FCHMODAT2, HERE, "", 0755, EMPTY_PATH),
	     CALL(UTIMENSAT, HERE, "", 0, EMPTY_PATH), CALL(UTIMENSAT, HERE, "", 0, 0), CALL(UTIMENSAT, HERE, 0, 0, 0));
	word omitted[4] = { 0, 0x3ffffffe, 0, 0x3ffffffe };
	TELL("times", CALL(UTIMENSAT, file, 0, 0, EMPTY_PATH), CALL(UTIMENSAT, file, 0, 0, 0), CALL(UTIMENSAT, 99, "", omitted, 0));
	number programs[] = { directory, HERE, link, pipes[0], 99 }, begun[COUNT(programs)];
	for (word i = 0; i < COUNT(programs); i++)
		begun[i] = call6(EXECVEAT, programs[i], (word)"", 0, 0, EMPTY_PATH, 0);
	tell("begun", begun, COUNT(begun));
}

/* Memory that a child does not have, or finds empty, because somebody has said so; and holes in memory that both have. */
static void copies(void)
{
	volatile char *own = (volatile char *)call6(MMAP, 0, 4 * 4096, 3, 0x22, -1ul, 0), *shared = (volatile char *)call6(MMAP, 0, 4 * 4096, 3, 0x21, -1ul, 0);
	for (int page = 0; page < 4; page++)
		own[page * 4096] = shared[page * 4096] = 'x';
	TELL("advice", CALL(MADVISE, own + 4096, 4096, WIPE_ON_FORK, 0), CALL(MADVISE, own + 8192, 4096, LEAVE_AT_FORK, 0), CALL(MADVISE, shared, 4096, WIPE_ON_FORK, 0),
	     CALL(MADVISE, own, 4096, HOLE, 0), CALL(MADVISE, own + 1, 4096, LEAVE_AT_FORK, 0), CALL(MADVISE, own, 4096, 7777, 0));
	number child = CALL(FORK, 0, 0, 0, 0);
	if (child == 0) {
		int ends[2];
		CALL(PIPE, ends, 0, 0, 0);
		TELL("in a child", own[0], own[4096], CALL(WRITE, ends[1], own + 8192, 1, 0), own[12288]);
		TELL("a hole", CALL(MADVISE, shared + 4096, 8192, HOLE, 0));
		end(0);
	}
	CALL(WAIT4, child, 0, 0, 0);
	TELL("in its parent", own[4096], own[8192], shared[0], shared[4096], shared[8192], shared[12288]);
	number file = CALL(MEMFD_CREATE, "holes", 0, 0, 0), done = CALL(FTRUNCATE, file, 8192, 0, 0);
	char byte = 'x';
	CALL(PWRITE64, file, &byte, 1, 4095), CALL(PWRITE64, file, &byte, 1, 4096);
	TELL("behind a descriptor", done, CALL(FALLOCATE, file, PUNCH, 0, 4096), CALL(FALLOCATE, file, PUNCH | KEEP, 0, 4096), CALL(FALLOCATE, file, KEEP, 0, 65536),
	     CALL(LSEEK, file, 0, 2, 0), CALL(PREAD64, file, &byte, 1, 4095), byte, CALL(PREAD64, file, &byte, 1, 4096), byte);
	CALL(CLOSE, file, 0, 0, 0);
	CALL(MUNMAP, own, 4 * 4096, 0, 0), CALL(MUNMAP, shared, 4 * 4096, 0, 0);
}

/* Calls that a child has given up, and its end when it makes one all the same. */
struct instruction {
	unsigned short code;
	unsigned char yes, no;
	unsigned constant;
};

static number give_up(number call, unsigned action, word flags)
{
	struct instruction program[] = { { 0x20, 0, 0, 0 }, { 0x15, 0, 1, (unsigned)call }, { 0x06, 0, 0, action }, { 0x06, 0, 0, ALLOWED } };
	struct { unsigned short count; struct instruction *program; } of = { 4, program };
	return CALL(SECCOMP, 1, flags, &of, 0);
}

static void gives_up(const char *name, number call, unsigned action, int is_handled)
{
	int ends[2], status = 0;
	number found[3] = { 0 };
	CALL(PIPE, ends, 0, 0, 0);
	number child = CALL(FORK, 0, 0, 0, 0);
	if (child == 0) {
		CALL(PRCTL, NO_NEW_RIGHTS, 1, 0, 0);
		if (is_handled)
			handle(SIGSYS, 0, 0);
		count = 0;
		found[0] = give_up(call, action, 0);
		found[1] = CALL(call, -1, 0, 0, 0), found[2] = count;
		CALL(WRITE, ends[1], found, sizeof found, 0);
		end(0);
	}
	CALL(WAIT4, child, &status, 0, 0);
	CALL(CLOSE, ends[1], 0, 0, 0);
	CALL(READ, ends[0], found, sizeof found, 0);
	CALL(CLOSE, ends[0], 0, 0, 0);
	TELL(name, status & 0x7f, status >> 8, found[0], found[1], found[2]);
}

static void filters(void)
{
	gives_up("allowed", CLOSE, ALLOWED, 0);
	gives_up("an error", CLOSE, 0x50000 | 13, 0);
	gives_up("no error", CLOSE, 0x50000, 0);
	gives_up("the highest error", CLOSE, 0x5ffff, 0);
	gives_up("a signal", CLOSE, 0x30000, 1);
	gives_up("a signal without a handler", CLOSE, 0x30000, 0);
	gives_up("the end of a thread", CLOSE, 0, 1);
	gives_up("the end of a process", CLOSE, 0x80000000, 1);
	gives_up("nobody looks on", CLOSE, 0x7ff00000, 1);
	gives_up("no action", CLOSE, 0x12340000, 1);
	struct { unsigned short count; struct instruction *program; } none = { 0, 0 };
	struct instruction backwards[] = { { 0x05, 0, 0, -1u }, { 0x06, 0, 0, ALLOWED } };
	struct { unsigned short count; struct instruction *program; } wrong = { 2, backwards };
	unsigned known = 0x50000, unknown = 0x12340000;
	TELL("no filters", CALL(SECCOMP, 1, 0, &none, 0), CALL(SECCOMP, 1, 0, &wrong, 0), CALL(SECCOMP, 1, 0, 8, 0), CALL(SECCOMP, 1, 1 << 20, &wrong, 0), CALL(SECCOMP, 99, 0, 0, 0),
	     CALL(SECCOMP, 0, 1, 0, 0), CALL(SECCOMP, 2, 0, &known, 0), CALL(SECCOMP, 2, 0, &unknown, 0), CALL(PRCTL, GET_FILTERS, 0, 0, 0));
	for (int ends_well = 0; ends_well < 2; ends_well++) {
		int status = 0;
		number child = CALL(FORK, 0, 0, 0, 0);
		if (child == 0) {
			CALL(PRCTL, SET_FILTERS, 1, 0, 0);
			if (!ends_well)
				CALL(GETPID, 0, 0, 0, 0);
			CALL(EXIT, 5, 0, 0, 0);
		}
		CALL(WAIT4, child, &status, 0, 0);
		TELL("strictly", status);
	}
}

#include "ipc.h"

enum { MANY = 700, ENTRIES_BYTES = 4096 };

/* An entry of a directory, as `getdents64` has it. */
struct entry {
	word inode, next;
	unsigned short len;
	unsigned char kind;
	char name[];
};

/* The name of one of many files. */
static const char *name_of(int file)
{
	static char name[] = "many/a-file-with-a-name-of-some-length-0000";
	for (int i = 0; i < 4; i++, file /= 10)
		name[sizeof name - 2 - i] = '0' + file % 10;
	return name;
}

/* A directory of many files, for which a file system has an index: each of them is there once, also for who begins anew behind one of them. */
static void large_directory(void)
{
	static unsigned char room[ENTRIES_BYTES];
	static int seen[MANY];
	static word next[MANY + 2];
	int others = 0, twice = 0, missing = 0, found = 0, moved = 0, too_long = 0;
	number made = CALL(MKDIR, (word)"many", 0755, 0, 0);
	for (int file = 0; file < MANY; file++)
		made |= CALL(CLOSE, CALL(OPEN, (word)name_of(file), 0102, 0644, 0), 0, 0, 0);
	number fd = CALL(OPEN, (word)"many", O_DIRECTORY, 0, 0), len;
	while ((len = CALL(GETDENTS64, fd, (word)room, sizeof room, 0)) > 0 && !too_long)
		for (struct entry *at = (void *)room; (unsigned char *)at < room + len; at = (void *)((unsigned char *)at + at->len)) {
			if (found < MANY + 2)
				next[found] = at->next;
			too_long = ++found > 2 * MANY;
			if (at->name[0] != 'a') {
				others++;
				continue;
			}
			int file = 0, end = 0;
			while (at->name[end])
				end++;
			for (int i = end - 4; i < end; i++)
				file = file * 10 + at->name[i] - '0';
			twice += seen[file]++ > 0;
		}
	for (int file = 0; file < MANY; file++)
		missing += !seen[file];
	/* Behind each entry comes the next one, whose own place is known. */
	for (int i = 0; i + 1 < found && i + 1 < MANY + 2; i++) {
		CALL(LSEEK, fd, next[i], 0, 0);
		len = CALL(GETDENTS64, fd, (word)room, 64, 0);
		moved += len <= 0 || ((struct entry *)room)->next != next[i + 1];
	}
	CALL(LSEEK, fd, next[found - 1], 0, 0);
	TELL("a large directory", made, others, twice, missing, too_long, moved, CALL(GETDENTS64, fd, (word)room, sizeof room, 0), CALL(LSEEK, fd, -1, 0, 0));
	CALL(CLOSE, fd, 0, 0, 0);
	for (int file = 0; file < MANY; file++)
		made |= CALL(UNLINK, (word)name_of(file), 0, 0, 0);
	TELL("and it is gone", made, CALL(RMDIR, (word)"many", 0, 0, 0));
}

/* Numbers of calls: negative ones, those of another interface, and some with more bits than count. */
static void numbers(void)
{
	TELL("no calls", CALL(-1, 0, 0, 0, 0), CALL(-2, 0, 0, 0, 0), CALL(-1000, 0, 0, 0, 0), CALL(0x80000000 | GETPID, 0, 0, 0, 0),
	     CALL(0x40000000 | GETPID, 0, 0, 0, 0), CALL(600, 0, 0, 0, 0));
	number own = CALL(GETPID, 0, 0, 0, 0);
	TELL("high bits", CALL(1l << 32 | GETPID, 0, 0, 0, 0) == own, CALL(0xffffffff00000000 | GETPID, 0, 0, 0, 0) == own, CALL(0x8000000000000000 | CLOSE, 99, 0, 0, 0));
}

void __attribute__((noreturn, used)) begin(word *stack)
{
	if (stack[0] < 2 || CALL(CHDIR, stack[2], 0, 0, 0))
		end(2);
	change_mask(SET, 0);
	stacked();
	restarted("the first one lets it read again", SA_RESTART, 0);
	restarted("the second one would", 0, SA_RESTART);
	for (int hears_of_it = 0; hears_of_it < 2; hears_of_it++) {
		crossed("a handler's signal in front of the stop", SIGUSR1, hears_of_it);
		crossed("and behind it", QUEUED, hears_of_it);
	}
	handle(SIGUSR1, 0, 0);
	word ignored[4] = { 1, SA_RESTORER, (word)restorer, 0 };
	CALL(RT_SIGACTION, SIGPIPE, ignored, 0, 8);
	static const struct { number call; const char *name; } calls[] = {
		{ POLL, "poll" }, { PPOLL, "ppoll" }, { SELECT, "select" }, { PSELECT6, "pselect6" },
	};
	for (word i = 0; i < COUNT(calls); i++)
		for (int way = 0; way < 3; way++)
			closed_meanwhile(calls[i].name, calls[i].call, way == 1, way == 2);
	large_directory();
	places();
	empty_paths();
	copies();
	objects();
	filters();
	numbers();
	say("all corners\n");
	end(0);
}

__asm__(".globl _start\n_start: xor %ebp, %ebp; mov %rsp, %rdi; and $-16, %rsp; call begin");
