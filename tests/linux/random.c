/* A program of Linux that makes random calls from a seed, without a C library: `random SEED COUNT`. It is the first process of a sandbox, and makes none of them itself:
 * it begins others that do, ends them again, and looks at what is left. They have any number as a call's, and arguments that mean harm: ends of mappings, the kernel's
 * half, lengths without end, descriptors that are none. Threads, signals and children come between. Left out is one thing: a process with the rights of root spares
 * the first process, which it may end. Not for a machine with Linux: it would do there what it may. */

#include "calls.h"

enum {
	READ = 0, WRITE = 1, OPEN = 2, CLOSE = 3, MMAP = 9, MUNMAP = 11, BRK = 12, MREMAP = 25, MADVISE = 28, SHMAT = 30, SHMCTL = 31, SEMCTL = 66, MSGCTL = 71, MPROTECT = 10, RT_SIGACTION = 13, RT_SIGPROCMASK = 14, RT_SIGRETURN = 15, PIPE = 22,
	DUP2 = 33, SHMDT = 67, REMAP_FILE_PAGES = 216, PKEY_MPROTECT = 329, NANOSLEEP = 35, SETITIMER = 38, GETPID = 39, SOCKET = 41, SOCKETPAIR = 53, CLONE = 56, FORK = 57, VFORK = 58, EXIT = 60,
	WAIT4 = 61, KILL = 62, FCNTL = 72, CHDIR = 80, MKDIR = 83, CHMOD = 90, SETUID = 105, SETGID = 106, SETSID = 112, RT_SIGQUEUEINFO = 129,
	SETRLIMIT = 160, TKILL = 200, GETDENTS64 = 217, EXIT_GROUP = 231, TGKILL = 234, INOTIFY_INIT1 = 294, MQ_OPEN = 240, MQ_UNLINK = 241, UNLINKAT = 263, TIMERFD_CREATE = 283,
	EVENTFD2 = 290, IPC_INFO = 3, SHM_STAT = 13, SEM_STAT = 18, MSG_STAT = 11, EPOLL_CREATE1 = 291, RT_TGSIGQUEUEINFO = 297, PRLIMIT64 = 302, MEMFD_CREATE = 319, PIDFD_OPEN = 434, CLONE3 = 435, CLOSE_RANGE = 436,
	PAGE = 4096, ARENA = 0x20000000, ARENA_PAGES = 16, STACKS = 0x30000000, STACK = 16 * PAGE, STACKS_MAX = 8,
	WORKERS = 3, AT_ONCE = 5000, PATHS_AT = 12 * PAGE, PATH = 64, HERE = -100, AT_REMOVEDIR = 0x200,
	SA_RESTORER = 0x04000000, CLONE_VM = 0x100, THREAD_FLAGS = 0x50f00,
};

/* Seen by all processes: how many calls each worker has made, and those of its children with it. */
static volatile word *made;

struct random {
	word seed;
	int worker, depth;
	int is_root;
};

static word next(struct random *random)
{
	random->seed ^= random->seed << 13;
	random->seed ^= random->seed >> 7;
	return random->seed ^= random->seed << 17;
}

static word below(struct random *random, word bound)
{
	return (next(random) >> 11) % bound;
}

static void say_number(word value)
{
	char digits[24];
	char *at = digits + 23;
	*at = 0;
	do
		*--at = '0' + value % 10;
	while (value /= 10);
	say(at);
}

static void __attribute__((noreturn)) end(int status)
{
	for (;;)
		CALL(EXIT_GROUP, status, 0, 0, 0);
}

static void __attribute__((noreturn)) fail(const char *text, word value)
{
	say("random: ");
	say(text);
	say(", ");
	say_number(value);
	say(": failed\n");
	end(1);
}

static void handler(int signal)
{
	/* A handler makes calls, too. */
	if (signal % 2)
		CALL(GETPID, 0, 0, 0, 0);
}

static const char *const paths[] = {
	"/tmp/r/file", "/tmp/r/other", "/tmp/r/folder", "/tmp/r/folder/deep", "/tmp/r/pipe", "/tmp/r/link", "/tmp/r/socket", "/tmp/r/program",
	"relative", "", ".", "..", "/tmp/r/../r/./folder/..", "/proc/self/maps", "/proc/self/fd/3", "/proc/self/status", "/proc/thread-self/comm",
	"/dev/zero", "/dev/full", "/dev/ptmx", "/dev/pts/1", "/dev/shm/shared", "/dev/fd/5", "/proc/meminfo", "no/such/thing",
};

/* Calls that change more than others, and come more often, with the kinds of their arguments: see `fitting`. */
static const struct { unsigned short number; char kinds[7]; } often[] = {
	{ 0, "fdl" }, { 1, "fdl" }, { 2, "pom" }, { 3, "f" }, { 5, "fd" }, { 7, "dll" }, { 8, "fln" }, { 9, "alnnfl" }, { 9, "znn2zz" }, { 10, "aln" },
	{ 11, "al" }, { 12, "a" }, { 13, "sdz8" }, { 14, "ndd8" }, { 16, "fld" }, { 17, "fdll" }, { 18, "fdll" }, { 19, "fdn" }, { 20, "fdn" }, { 22, "d" },
	{ 23, "lddd" }, { 25, "alln" }, { 26, "aln" }, { 27, "ald" }, { 28, "aln" }, { 32, "f" }, { 33, "ff" }, { 35, "dd" }, { 37, "n" }, { 38, "ndd" },
	{ 40, "ffzl" }, { 41, "nnn" }, { 42, "fdl" }, { 43, "fdd" }, { 44, "fdlndl" }, { 45, "fdlndd" }, { 46, "fdn" }, { 47, "fdn" }, { 48, "fn" },
	{ 49, "fdl" }, { 50, "fn" }, { 53, "nnnd" }, { 54, "fnndl" }, { 55, "fnndd" }, { 56, "nzdd" }, { 57, "" }, { 58, "" }, { 59, "pdd" },
	{ 61, "iddn" }, { 62, "is" }, { 72, "fnl" }, { 73, "fn" }, { 74, "f" }, { 76, "pl" }, { 77, "fl" }, { 79, "dl" }, { 80, "p" }, { 81, "f" },
	{ 82, "pp" }, { 83, "pm" }, { 84, "p" }, { 86, "pp" }, { 87, "p" }, { 88, "pp" }, { 89, "pdl" }, { 90, "pm" }, { 91, "fm" }, { 92, "pnn" },
	{ 95, "m" }, { 97, "nd" }, { 98, "nd" }, { 99, "d" }, { 109, "ii" }, { 112, "" }, { 127, "d8" }, { 128, "ddd8" }, { 129, "isd" }, { 130, "d8" },
	{ 131, "dd" }, { 132, "pd" }, { 133, "pmn" }, { 137, "pd" }, { 157, "nln" }, { 160, "nd" }, { 186, "" }, { 200, "is" }, { 202, "dnndan" },
	{ 213, "n" }, { 217, "fdl" }, { 218, "d" }, { 221, "flln" }, { 222, "ndd" }, { 223, "nndd" }, { 226, "n" }, { 228, "nd" }, { 230, "nndd" },
	{ 232, "fdnn" }, { 233, "fnfd" }, { 234, "iis" }, { 235, "pd" }, { 247, "niddn" }, { 253, "" }, { 254, "fpl" }, { 255, "fn" }, { 257, "hpom" },
	{ 258, "hpm" }, { 259, "hpmn" }, { 260, "hpnnn" }, { 262, "hpdn" }, { 263, "hpn" }, { 264, "hphp" }, { 265, "hphpn" }, { 266, "php" },
	{ 267, "hpdl" }, { 268, "hpm" }, { 269, "hpm" }, { 270, "ldddd" }, { 271, "dldd8" }, { 273, "dl" }, { 275, "fdfdln" }, { 276, "ffln" },
	{ 277, "flln" }, { 278, "fdnn" }, { 280, "hpdn" }, { 281, "fdnnd8" }, { 282, "fd8n" }, { 283, "nn" }, { 285, "fnll" }, { 286, "fndd" },
	{ 287, "fd" }, { 288, "fddn" }, { 289, "fd8n" }, { 290, "nn" }, { 291, "n" }, { 292, "ffn" }, { 293, "dn" }, { 294, "n" }, { 295, "fdnll" },
	{ 296, "fdnll" }, { 297, "iisd" }, { 298, "d" }, { 299, "fdlnd" }, { 302, "indd" }, { 306, "f" }, { 307, "fdln" }, { 309, "ddz" }, { 316, "hphpn" },
	{ 318, "dln" }, { 319, "pn" }, { 322, "hpddn" }, { 324, "nn" }, { 326, "fdfdln" }, { 327, "fdnlln" }, { 328, "fdnlln" }, { 332, "hpnnd" },
	{ 424, "fsdn" }, { 434, "in" }, { 435, "dl" }, { 436, "ffn" }, { 437, "hpdl" }, { 438, "ffn" }, { 439, "hpmn" }, { 441, "fdndd8" }, { 449, "dnnd" },
	{ 452, "hpmn" }, { 29, "nlm" }, { 30, "nzn" }, { 31, "nnd" }, { 64, "nnm" }, { 65, "ndn" }, { 66, "nnnd" }, { 67, "a" }, { 68, "nm" }, { 69, "ndln" },
	{ 70, "ndlnn" }, { 71, "nnd" }, { 220, "ndnd" }, { 240, "pomd" }, { 241, "p" }, { 242, "fdlnd" }, { 243, "fdldd" }, { 244, "fd" }, { 245, "fdd" },
};

/* Names of queues: nobody could remove one whose name he does not know. */
static const char *const queues[] = { "one", "other" };

static word place(struct random *random)
{
	return ARENA + 8 * below(random, PATHS_AT / 8);
}

static word path(struct random *random)
{
	return ARENA + PATHS_AT + PATH * below(random, COUNT(paths));
}

/* An argument, or a word of a structure. */
static word value(struct random *random)
{
	static const word odd[] = {
		-1ul, -2ul, 1ul << 63, (1ul << 63) - 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, -4096ul, 0x7ffffffff000, 0x7fffffffffff,
		0x800000000000, 0xffff800000000000, 0xffffffff80000000, 0xffffffffffffff00, (word)-100, 0x10000, PAGE, PAGE - 1, PAGE + 1,
		ARENA + ARENA_PAGES * PAGE, ARENA + ARENA_PAGES * PAGE - 1, ARENA + ARENA_PAGES * PAGE - 4, ARENA + ARENA_PAGES * PAGE - 8,
		ARENA + (ARENA_PAGES + 1) * PAGE, ARENA + (ARENA_PAGES + 2) * PAGE, STACKS, 0,
	};
	switch (below(random, 14)) {
	case 0: return below(random, 4);
	case 1: return below(random, 16);
	case 2: return below(random, 40);
	case 3: return odd[below(random, COUNT(odd))];
	case 4: return odd[below(random, COUNT(odd))] - below(random, 16);
	case 5: return (1ul << below(random, 64)) - below(random, 2);
	case 6: return below(random, 1 << 24);
	case 7: return path(random);
	case 8: return place(random) + below(random, 8);
	case 9: return ARENA + PAGE * below(random, ARENA_PAGES + 4);
	case 10: return below(random, 2) ? (word)handler : (word)restorer;
	case 11: return next(random);
	case 12: return PAGE * below(random, 64);
	default: return place(random);
	}
}

/* An argument of a kind, with which a call may succeed. */
static word fitting(struct random *random, char kind)
{
	static const word flags[] = { 0, 1, 2, 0101, 0102, 0302, 02001, 04000, 0200000, 010000000, 010400000, 01000 };
	switch (kind) {
	case 'f': return below(random, 32);
	case 'p': return path(random);
	case 'd': return place(random);
	case 'l': return below(random, 2) ? below(random, 300) : PAGE * below(random, 8);
	case 'n': return below(random, 9);
	case 's': return below(random, 65);
	case 'o': return flags[below(random, COUNT(flags))];
	case 'm': return below(random, 2) ? 0777 : below(random, 010000);
	case 'h': return below(random, 2) ? (word)HERE : below(random, 32);
	case 'a': return ARENA + PAGE * below(random, ARENA_PAGES);
	case 'i': return below(random, 2) ? below(random, 64) : (word)CALL(GETPID, 0, 0, 0, 0);
	case '2': return 0x22;
	case '8': return 8;
	default: return 0;
	}
}

/* Whether a call has changed since what signals do, and whether one has changed what memory there is. */
static volatile int is_other_action, is_other_memory;

/* Words of structures, and mostly paths as they were, where arguments lead to. The memory is there again if calls have taken it away. */
static void write_down(struct random *random, word count)
{
	int is_path_due = is_other_memory || below(random, 8) == 0;
	if (is_other_memory && CALL(MPROTECT, ARENA, ARENA_PAGES * PAGE, 3, 0))
		call6(MMAP, ARENA, ARENA_PAGES * PAGE, 3, 0x32, -1ul, 0);
	is_other_memory = 0;
	for (word i = 0; i < count; i++) {
		volatile word *to = (volatile word *)place(random);
		to[0] = value(random);
		to[1] = below(random, 2) ? below(random, 200) : value(random);
	}
	for (word i = 0; is_path_due && i < COUNT(paths); i++) {
		volatile char *to = (volatile char *)(ARENA + PATHS_AT + PATH * i);
		for (const char *from = paths[i]; (*to++ = *from++);)
			;
	}
}

static void handle(int signal, void (*function)(int), word flags)
{
	word action[4] = { (word)function, SA_RESTORER | flags, (word)restorer, 0 };
	CALL(RT_SIGACTION, signal, action, 0, 8);
}

static volatile unsigned faults;

/* Something has taken the memory away in which there are words for calls: there it is again. A thread that faults elsewhere does so for ever, and ends. */
static void faulted(int signal)
{
	(void)signal;
	if (faults++ > 64)
		end(2);
	call6(MMAP, ARENA, ARENA_PAGES * PAGE, 3, 0x32, -1ul, 0);
	is_other_memory = 1;
}

/* Signals are taken, and one comes every few milliseconds: it ends a wait that nothing else would end. */
static void take_signals(void)
{
	word none = 0, timer[4] = { 0, 4000, 0, 4000 };
	if (is_other_action)
		for (int signal = 1; signal <= 64; signal++)
			if (signal != 4 && signal != 8 && signal != 15)
				handle(signal, signal == 7 || signal == 11 ? faulted : handler, 0);
	is_other_action = 0;
	CALL(RT_SIGPROCMASK, 2, &none, 0, 8);
	CALL(SETITIMER, 0, timer, 0, 0);
}

/* Notes what a call may have changed. */
static void note(word n)
{
	switch (n) {
	case RT_SIGACTION: case CLONE3: is_other_action = 1; break;
	case MMAP: case MPROTECT: case MUNMAP: case BRK: case MREMAP: case MADVISE: case SHMAT: case SHMDT: case REMAP_FILE_PAGES: case PKEY_MPROTECT:
		is_other_memory = 1;
		break;
	default: break;
	}
}

/* Opens files of all kinds. Standard input and output are nothing, so that nothing random is printed. */
static void open_things(void)
{
	int two[2];
	for (int fd = 0; fd < 3; fd++)
		CALL(DUP2, CALL(OPEN, "/dev/null", 2, 0, 0), fd, 0, 0);
	CALL(OPEN, "/tmp/r/file", 0102, 0666, 0);
	CALL(OPEN, "/tmp/r/folder", 0200000, 0, 0);
	CALL(PIPE, two, 0, 0, 0);
	CALL(SOCKETPAIR, 1, 1, 0, two);
	CALL(SOCKETPAIR, 1, 5, 0, two);
	CALL(SOCKET, 1, 2, 0, 0);
	CALL(SOCKET, 2, 1, 0, 0);
	CALL(SOCKET, 10, 2, 0, 0);
	CALL(EVENTFD2, 1, 0, 0, 0);
	CALL(EPOLL_CREATE1, 0, 0, 0, 0);
	CALL(INOTIFY_INIT1, 0, 0, 0, 0);
	CALL(TIMERFD_CREATE, 1, 0, 0, 0);
	CALL(MEMFD_CREATE, "memory", 2, 0, 0);
	CALL(PIDFD_OPEN, CALL(GETPID, 0, 0, 0, 0), 0, 0, 0);
	CALL(OPEN, "/dev/ptmx", 2, 0, 0);
	CALL(OPEN, "/proc/self/maps", 0, 0, 0);
	CALL(OPEN, "/dev/zero", 2, 0, 0);
}

/* A number of a call, mostly one that there is, and its arguments. */
static word some_call(struct random *random, word arguments[6])
{
	word n = below(random, 471);
	for (int i = 0; i < 6; i++)
		arguments[i] = value(random);
	switch (below(random, 16)) {
	case 0: return below(random, 8) ? 471 + below(random, 200) : value(random);
	case 1 ... 4: return n;
	default: break;
	}
	n = below(random, COUNT(often));
	for (int i = 0; often[n].kinds[i] && below(random, 24); i++)
		arguments[i] = fitting(random, often[n].kinds[i]);
	return often[n].number;
}

/* Whether a call is left out: it ends its thread, or could end the first process. */
static int is_spared(const struct random *random, word n, const word arguments[6])
{
	int first = (int)arguments[0], second = (int)arguments[1];
	if (n == EXIT || n == EXIT_GROUP)
		return 1;
	if (!random->is_root)
		return 0;
	switch (n) {
	case KILL: case TKILL: case RT_SIGQUEUEINFO: case PIDFD_OPEN: case PRLIMIT64: return first == 1;
	case TGKILL: case RT_TGSIGQUEUEINFO: return first == 1 || second == 1;
	case FCNTL: return second == 8 || second == 15;
	default: return 0;
	}
}

static void work(word at);

/* A thread of the same memory, or a child with it, on a stack of its own. */
static void share(struct random *random, word flags)
{
	word *stack = (word *)(STACKS + STACK * (1 + below(random, STACKS_MAX)));
	struct random *own = (struct random *)(stack - STACK / 16);
	*own = *random;
	own->seed ^= 0x9e3779b97f4a7c15;
	own->depth++;
	begin_thread(flags | CLONE_VM, stack - 8, work, (word)own);
}

static void one(struct random *random)
{
	word arguments[6], n = some_call(random, arguments);
	if (n == RT_SIGRETURN && below(random, 8))
		n = GETPID;
	if (n == CLONE && (arguments[0] & CLONE_VM || below(random, 3) == 0))
		return share(random, below(random, 2) ? THREAD_FLAGS : arguments[0]);
	if (n == CLONE && below(random, 4))
		arguments[1] = 0;
	if (n == MQ_OPEN || n == MQ_UNLINK)
		arguments[0] = (word)queues[below(random, COUNT(queues))];
	if (is_spared(random, n, arguments))
		return;
	number result = call6(n, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
	note(n);
	if (result || (n != FORK && n != VFORK && n != CLONE && n != CLONE3))
		return;
	/* A child goes on by itself, and one that has its parent's stack does so without it. */
	if (n == VFORK || random->depth > 2)
		end(0);
	random->depth++;
	random->seed ^= 0xd1342543de82ef95;
	take_signals();
}

/* Random calls without end. */
static void __attribute__((noreturn)) work(word at)
{
	struct random *random = (struct random *)at;
	for (word i = 0;; i++) {
		/* Processes may share memory, and signals not: what one has set back is set back by all at some time. */
		if (i % 512 == 0)
			is_other_action = 1;
		if (i % 64 == 0)
			take_signals();
		if (i % 512 == 511)
			open_things();
		faults = 0;
		write_down(random, i % 64 ? 4 : 400);
		one(random);
		__atomic_fetch_add(&made[random->worker], 1, __ATOMIC_RELAXED);
	}
}

/* Begins a process that makes random calls: with all rights, or as somebody else. */
static number begin_worker(word seed, int worker, int is_root)
{
	number pid = CALL(FORK, 0, 0, 0, 0);
	if (pid)
		return pid;
	static struct random random;
	is_other_action = is_other_memory = 1;
	random.seed = (seed + 1) * 0x9e3779b97f4a7c15;
	random.worker = worker;
	random.is_root = is_root;
	for (int i = 0; i < 8; i++)
		next(&random);
	CALL(SETSID, 0, 0, 0, 0);
	CALL(CLOSE_RANGE, 3, 0xffffffff, 0, 0);
	CALL(CHDIR, "/tmp/r", 0, 0, 0);
	if (!is_root && (CALL(SETGID, 1000, 0, 0, 0) || CALL(SETUID, 1000, 0, 0, 0)))
		end(3);
	call6(MMAP, ARENA, ARENA_PAGES * PAGE, 3, 0x32, -1ul, 0);
	/* Behind it a page that can only be read, and one that cannot be accessed, apart from it and from each other. */
	call6(MMAP, ARENA + (ARENA_PAGES + 1) * PAGE, PAGE, 1, 0x32, -1ul, 0);
	call6(MMAP, ARENA + (ARENA_PAGES + 3) * PAGE, PAGE, 0, 0x32, -1ul, 0);
	call6(MMAP, STACKS, STACK * (STACKS_MAX + 1), 3, 0x32, -1ul, 0);
	open_things();
	work((word)&random);
}

#include "random_files.h"

/* A process that sends back what it gets, which all others may not keep from doing so. */
static void begin_neighbour(int pipes[4])
{
	if (CALL(PIPE, pipes, 0, 0, 0) || CALL(PIPE, pipes + 2, 0, 0, 0))
		fail("no pipe", 0);
	int is_here = CALL(FORK, 0, 0, 0, 0) != 0;
	CALL(CLOSE, pipes[is_here ? 0 : 1], 0, 0, 0);
	CALL(CLOSE, pipes[is_here ? 3 : 2], 0, 0, 0);
	if (is_here)
		return;
	char byte;
	while (CALL(READ, pipes[0], &byte, 1, 0) == 1)
		CALL(WRITE, pipes[3], &byte, 1, 0);
	end(0);
}

static int answers(const int pipes[4])
{
	char byte = 'a';
	return CALL(WRITE, pipes[1], &byte, 1, 0) == 1 && (byte = 0, CALL(READ, pipes[2], &byte, 1, 0) == 1) && byte == 'a';
}

/* Objects of System V's ipc and queues outlast their processes: whoever outlasts them, too, removes them. */
static void remove_objects(void)
{
	for (word i = 0; i < COUNT(queues); i++)
		CALL(MQ_UNLINK, queues[i], 0, 0, 0);
	char told[128];
	/* The last places that are taken. */
	number segments = CALL(SHMCTL, 0, IPC_INFO, told, 0), sets = CALL(SEMCTL, 0, 0, IPC_INFO, told), all = CALL(MSGCTL, 0, IPC_INFO, told, 0);
	for (number place = 0; place <= segments; place++)
		CALL(SHMCTL, CALL(SHMCTL, place, SHM_STAT, told, 0), 0, 0, 0);
	for (number place = 0; place <= sets; place++)
		CALL(SEMCTL, CALL(SEMCTL, place, 0, SEM_STAT, told), 0, 0, 0);
	for (number place = 0; place <= all; place++)
		CALL(MSGCTL, CALL(MSGCTL, place, MSG_STAT, told, 0), 0, 0, 0);
}

/* Ends all other processes, and waits until they have ended. */
static void end_others(void)
{
	static const word a_moment[2] = { 0, 1000 * 1000 };
	CALL(KILL, -1, 9, 0, 0);
	for (number pid; (pid = CALL(WAIT4, -1, 0, 1, 0)) >= 0;)
		if (pid == 0) {
			CALL(NANOSLEEP, a_moment, 0, 0, 0);
			CALL(KILL, -1, 9, 0, 0);
		}
}

/* Lets workers make so many random calls: those that end are followed by others, and those that stand still are ended. Gives back how many it were. */
static word round(word seed, word wanted)
{
	static const word while_others_work[2] = { 0, 10 * 1000 * 1000 };
	word known = 0, still = 0, all = 0;
	int pipes[4], is_root = seed % 3 == 0;
	number workers[WORKERS];
	make_files();
	begin_neighbour(pipes);
	if (!answers(pipes))
		fail("the neighbour does not answer, before the round", seed);
	for (int i = 0; i < WORKERS; i++)
		made[i] = 0, workers[i] = begin_worker(seed * 1000003 + i, i, is_root);
	while (all < wanted && still < 50) {
		CALL(NANOSLEEP, while_others_work, 0, 0, 0);
		number pid;
		while ((pid = CALL(WAIT4, -1, 0, 1, 0)) > 0)
			for (int i = 0; i < WORKERS; i++)
				if (pid == workers[i])
					workers[i] = begin_worker(seed * 1000003 + ++known * 16 + i, i, is_root);
		word now = 0;
		for (int i = 0; i < WORKERS; i++)
			now += made[i];
		still = now == all ? still + 1 : 0;
		all = now;
	}
	/* The first process may end the neighbour by its own call, too, so that goes first. */
	if (!is_root && !answers(pipes))
		fail("the neighbour does not answer, after the round", seed);
	CALL(CLOSE, pipes[1], 0, 0, 0);
	CALL(CLOSE, pipes[2], 0, 0, 0);
	end_others();
	remove_objects();
	/* Memory that was written over says anything. */
	return all == 0 ? 1 : all > 2 * wanted ? wanted : all;
}

/* A number in a file, behind a word. */
static word read_number(const char *path, const char *behind)
{
	char text[2048];
	number file = CALL(OPEN, path, 0, 0, 0), len = CALL(READ, file, text, sizeof text - 1, 0);
	CALL(CLOSE, file, 0, 0, 0);
	text[len < 0 ? 0 : len] = 0;
	for (const char *at = text; *at; at++) {
		const char *a = at, *b = behind;
		while (*b && *a == *b)
			a++, b++;
		if (*b)
			continue;
		word found = 0;
		while (*a == ' ')
			a++;
		while (*a >= '0' && *a <= '9')
			found = found * 10 + (word)(*a++ - '0');
		return found;
	}
	fail("nothing in /proc", (word)-len);
}

/* How many bytes a process can have in pipes: what is kept for nobody any more would be missing. */
static word room(void)
{
	int pipes[4];
	CALL(PIPE, pipes, 0, 0, 0);
	number pid = CALL(FORK, 0, 0, 0, 0);
	if (pid == 0) {
		word all = 0, limit[2] = { 4096, 4096 };
		CALL(SETRLIMIT, 7, limit, 0, 0);
		for (word size = 1 << 20; size >= PAGE; size /= 2)
			while (CALL(PIPE, pipes + 2, 0, 0, 0) == 0 && CALL(FCNTL, pipes[2], 1031, size, 0) == (number)size)
				all += size;
		CALL(WRITE, pipes[1], &all, sizeof all, 0);
		end(0);
	}
	word all = 0;
	CALL(READ, pipes[0], &all, sizeof all, 0);
	CALL(WAIT4, pid, 0, 0, 0);
	CALL(CLOSE, pipes[0], 0, 0, 0);
	CALL(CLOSE, pipes[1], 0, 0, 0);
	return all;
}

/* Free memory, when a process has tried to have all of it: pages of files that are kept because there was room are gone. */
static word free_memory(void)
{
	number pid = CALL(FORK, 0, 0, 0, 0);
	if (pid == 0) {
		word len = 1ul << 30;
		volatile char *all = (volatile char *)call6(MMAP, 0, len, 3, 0x4022, -1ul, 0);
		for (word at = 0; at < len; at += PAGE)
			all[at] = 1;
		end(0);
	}
	CALL(WAIT4, pid, 0, 0, 0);
	return read_number("/proc/meminfo", "MemFree:");
}

static word number_of(const char *text)
{
	word found = 0;
	while (*text >= '0' && *text <= '9')
		found = found * 10 + (word)(*text++ - '0');
	return found;
}

static void check_no_less(const char *what, word before, word after)
{
	if (before <= after)
		return;
	say("random: before: ");
	say_number(before);
	say("\n");
	fail(what, after);
}

void __attribute__((noreturn, used)) begin(word *stack)
{
	/* Others may be this program by a random call, and end. */
	if (stack[0] != 3 || CALL(GETPID, 0, 0, 0, 0) != 1)
		end(9);
	word seed = number_of((const char *)stack[2]), count = number_of((const char *)stack[3]), all = 0, told = 0;
	/* Signals from a terminal that others have, among them. */
	for (int signal = 1; signal <= 64; signal++)
		if (signal != 17)
			handle(signal, (void (*)(int))1, 0);
	made = (volatile word *)call6(MMAP, 0, PAGE, 3, 0x21, -1ul, 0);
	/* Things that are there once for all are there. */
	deepen_stack();
	round(seed, 100);
	make_files();
	word room_before = room(), free_before = free_memory();
	while (all < count) {
		all += round(++seed, count - all < AT_ONCE ? count - all : AT_ONCE);
		if (all - told >= 100000)
			say("random: "), say_number(told = all), say(" calls\n");
	}
	make_files();
	check_no_less("bytes in pipes", room_before, room());
	check_no_less("free memory", free_before, free_memory());
	say("random: ");
	say_number(all);
	say(" calls, and it is over\n");
	end(0);
}

__asm__(".globl _start\n_start: xor %ebp, %ebp; mov %rsp, %rdi; and $-16, %rsp; call begin");
