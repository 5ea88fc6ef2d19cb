/* Two programs of Linux for two sandboxes on one disk, without a C library: `victim` has what nobody else may reach, and `hostile` tries to. Neither can tell the
 * other when it is ready: both wait for a file that the test makes in their roots. */

#include "calls.h"

enum {
	READ = 0, WRITE = 1, OPEN = 2, CLOSE = 3, MMAP = 9, SCHED_YIELD = 24, SHMGET = 29, NANOSLEEP = 35, GETPID = 39, SOCKET = 41, CONNECT = 42, SENDTO = 44,
	BIND = 49, LISTEN = 50, FORK = 57, EXIT = 60, WAIT4 = 61, KILL = 62, SEMGET = 64, MSGGET = 68, CHDIR = 80, FCHDIR = 81, RENAME = 82, LINK = 86, UNLINK = 87,
	SYMLINK = 88, PTRACE = 101, MKNOD = 133, PIVOT_ROOT = 155, CHROOT = 161, MOUNT = 165, MQ_OPEN = 240, OPENAT = 257, UNSHARE = 272, ACCEPT4 = 288,
	SETNS = 308, PROCESS_VM_READV = 310, PIDFD_OPEN = 434,
};

static void pause_a_while(void)
{
	word time[2] = { 0, 50 * 1000 * 1000 };
	CALL(NANOSLEEP, time, 0, 0, 0);
}

static void wait_for(const char *path)
{
	while (CALL(OPEN, path, 0, 0, 0) < 0)
		pause_a_while();
}

/* An abstract name that both know. */
static const struct {
	unsigned short family;
	char name[7];
} __attribute__((packed)) hidden = { 1, "\0hidden" };
#define HIDDEN_LEN 9

/* Key of the victim's objects of System V's ipc. Its queue of POSIX is `hidden`. */
#define KEY 77

static int breaches;

static void breach(const char *what)
{
	breaches++;
	say("one: breach: ");
	say(what);
	say("\n");
}

static void must_fail(number result, const char *what)
{
	if (result >= 0)
		breach(what);
}

static void paths(void)
{
	static const char *const others[] = {
		"/../two/secret", "/two/secret", "../two/secret", "../../../../two/secret", "/disk/two/secret", "/proc/self/root/../two/secret",
		"/proc/1/root/../../two/secret", "/proc/self/cwd/../two/secret", "/dev/../../two/secret", "/dev/fd/../../../../two/secret",
	};
	for (word i = 0; i < sizeof others / sizeof *others; i++) {
		for (int flags = 0; flags < 3; flags++)
			must_fail(CALL(OPEN, others[i], flags, 0, 0), others[i]);
		must_fail(CALL(LINK, others[i], "/stolen", 0, 0), "link");
		must_fail(CALL(RENAME, others[i], "/stolen", 0, 0), "rename");
		must_fail(CALL(UNLINK, others[i], 0, 0, 0), "unlink");
		CALL(UNLINK, "/way", 0, 0, 0);
		CALL(SYMLINK, others[i], "/way", 0, 0);
		must_fail(CALL(OPEN, "/way", 0, 0, 0), "a symbolic link");
	}
	number root = CALL(OPEN, "/", 0200000, 0, 0);
	must_fail(CALL(OPENAT, root, "../two/secret", 0, 0), "openat");
	CALL(CHDIR, "/../..", 0, 0, 0);
	must_fail(CALL(OPEN, "two/secret", 0, 0, 0), "chdir");
	CALL(FCHDIR, root, 0, 0, 0);
	must_fail(CALL(OPEN, "../two/secret", 0, 0, 0), "fchdir");
	must_fail(CALL(CHROOT, "/..", 0, 0, 0) < 0 ? -1 : CALL(OPEN, "two/secret", 0, 0, 0), "chroot");
	must_fail(CALL(PIVOT_ROOT, "/..", "/", 0, 0), "pivot_root");
	must_fail(CALL(MOUNT, "/..", "/", "ext4", 0), "mount");
	must_fail(CALL(UNSHARE, 0x20020000, 0, 0, 0), "unshare");
	must_fail(CALL(SETNS, root, 0, 0, 0), "setns");
}

static void processes(void)
{
	static char memory[64];
	word place[2] = { (word)memory, sizeof memory }, there[2] = { 0x400000, sizeof memory };
	number own = CALL(GETPID, 0, 0, 0, 0);
	for (number pid = own + 1; pid < own + 64; pid++) {
		char path[] = "/proc/00000/status";
		char *digit = path + 11;
		int first = 11;
		for (number left = pid; left; left /= 10)
			*--digit = '0' + left % 10, first--;
		/* Digits to the front, without zeros. */
		char *to = path + 6;
		for (char *from = path + first; *from; from++)
			*to++ = *from;
		*to = 0;
		must_fail(CALL(OPEN, path, 0, 0, 0), "/proc");
		must_fail(CALL(KILL, pid, 9, 0, 0), "kill");
		must_fail(CALL(KILL, -pid, 9, 0, 0), "kill of a group");
		must_fail(CALL(PTRACE, 16, pid, 0, 0), "ptrace");
		must_fail(call6(PROCESS_VM_READV, pid, (word)place, 1, (word)there, 1, 0), "process_vm_readv");
		must_fail(CALL(PIDFD_OPEN, pid, 0, 0, 0), "pidfd_open");
	}
}

static void sockets_and_devices(void)
{
	number fd = CALL(SOCKET, 1, 1, 0, 0);
	must_fail(CALL(CONNECT, fd, &hidden, HIDDEN_LEN, 0), "an abstract name");
	if (CALL(BIND, fd, &hidden, HIDDEN_LEN, 0) < 0)
		breach("the other's abstract name is taken here");
	static const char *const devices[] = { "/dev/mem", "/dev/kmem", "/dev/port", "/dev/sda", "/dev/vda", "/dev/kmsg", "/dev/pts/1" };
	for (word i = 0; i < sizeof devices / sizeof *devices; i++)
		must_fail(CALL(OPEN, devices[i], 2, 0, 0), devices[i]);
	if (CALL(MKNOD, "/disk-itself", 0060666, 0xfe00, 0) >= 0)
		must_fail(CALL(OPEN, "/disk-itself", 2, 0, 0), "mknod");
	must_fail(CALL(SHMGET, KEY, 0, 0, 0), "shmget");
	must_fail(CALL(SEMGET, KEY, 0, 0, 0), "semget");
	must_fail(CALL(MSGGET, KEY, 0, 0, 0), "msgget");
	must_fail(CALL(MQ_OPEN, "hidden", 0, 0, 0), "mq_open");
}

/* The machine has a network card, and this sandbox has no network: neither the emulator's hosts, nor the machine itself, nor what runs beside it. */
static void network(void)
{
	static const unsigned char hosts[][4] = { { 10, 0, 2, 2 }, { 10, 0, 2, 3 }, { 10, 0, 2, 15 }, { 127, 0, 0, 1 } };
	for (word i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		/* AF_INET, and port 53 */
		unsigned char to[16] = { 2, 0, 0, 53, hosts[i][0], hosts[i][1], hosts[i][2], hosts[i][3] };
		number stream = CALL(SOCKET, 2, 1, 0, 0), datagrams = CALL(SOCKET, 2, 2, 0, 0), echo = CALL(SOCKET, 2, 2, 1, 0);
		if (stream < 0 || datagrams < 0)
			breach("there are no sockets, so it is not known what they reach");
		if (CALL(CONNECT, stream, to, sizeof to, 0) != -101)
			breach("connect to another host");
		if (call6(SENDTO, datagrams, (word)to, 1, 0, (word)to, sizeof to) != -101)
			breach("sendto another host");
		if (echo >= 0)
			must_fail(call6(SENDTO, echo, (word)"\10\0\0\0\0\0\0", 8, 0, (word)to, sizeof to), "an echo request");
		CALL(CLOSE, stream, 0, 0, 0);
		CALL(CLOSE, datagrams, 0, 0, 0);
		CALL(CLOSE, echo, 0, 0, 0);
	}
	must_fail(CALL(SOCKET, 2, 3, 255, 0), "a raw socket");
	must_fail(CALL(SOCKET, 17, 3, 0x300, 0), "packets of the card");
}

/* Takes all memory, and all processes: the other one has its own. */
static void limits(void)
{
	number child = CALL(FORK, 0, 0, 0, 0);
	if (child == 0) {
		word len = 1ul << 30;
		char *all = (char *)call6(MMAP, 0, len, 3, 0x4022, -1ul, 0);
		if ((number)all > 0 || (number)all < -4095)
			for (word at = 0; at < len; at += 4096)
				all[at] = 1;
		CALL(EXIT, (number)all < 0 && (number)all > -4096, 0, 0, 0);
	}
	int status = 0;
	CALL(WAIT4, child, &status, 0, 0);
	if (status == 0)
		breach("a gibibyte of memory");
	int count = 0;
	number pids[512];
	for (; count < 512; count++) {
		pids[count] = CALL(FORK, 0, 0, 0, 0);
		if (pids[count] == 0)
			for (;;)
				pause_a_while();
		if (pids[count] < 0)
			break;
	}
	if (count > 32)
		breach("more processes than it may have");
	for (int i = 0; i < count; i++) {
		CALL(KILL, pids[i], 9, 0, 0);
		CALL(WAIT4, pids[i], 0, 0, 0);
	}
}

/* Part of the disk that this one may have, and files on it: see systems/sandboxes.toml. */
#define DISK (16l << 20)
#define FILES 500

static const char *numbered(int file)
{
	static char name[] = "/file-000";
	for (int digit = 8; digit > 5; digit--, file /= 10)
		name[digit] = '0' + file % 10;
	return name;
}

/* Takes all of the disk that it gets: the rest is the other one's. */
static void disk(void)
{
	static char piece[65536];
	number fd = CALL(OPEN, "/filler", 0101, 0600, 0), bytes = 0, result = 0;
	while (bytes <= DISK) {
		result = CALL(WRITE, fd, piece, sizeof piece, 0);
		if (result <= 0)
			break;
		bytes += result;
	}
	if (result != -28)
		breach("more of the disk than it may have");
	CALL(CLOSE, fd, 0, 0, 0);
	must_fail(CALL(OPEN, "/another", 0101, 0600, 0), "a file in a full part");
	if (CALL(UNLINK, "/filler", 0, 0, 0) < 0)
		breach("a full part keeps what was removed");
	int count = 0;
	for (; count <= FILES; count++) {
		result = CALL(OPEN, numbered(count), 0101, 0600, 0);
		if (result < 0)
			break;
		CALL(CLOSE, result, 0, 0, 0);
	}
	if (result != -28)
		breach("more files than it may have");
	while (count-- > 0)
		CALL(UNLINK, numbered(count), 0, 0, 0);
}

static void hostile(void)
{
	wait_for("/go");
	paths();
	processes();
	sockets_and_devices();
	network();
	limits();
	disk();
	say(breaches ? "one: done, and there are breaches\n" : "one: nothing was reached\n");
	for (;;)
		pause_a_while();
}

static void victim(void)
{
	number fd = CALL(SOCKET, 1, 1 | 04000, 0, 0), pids[4];
	int is_fine = CALL(BIND, fd, &hidden, HIDDEN_LEN, 0) == 0 && CALL(LISTEN, fd, 5, 0, 0) == 0;
	for (int i = 0; i < 4; i++) {
		pids[i] = CALL(FORK, 0, 0, 0, 0);
		if (pids[i] == 0)
			for (;;)
				pause_a_while();
	}
	is_fine &= CALL(SHMGET, KEY, 4096, 01666, 0) >= 0 && CALL(SEMGET, KEY, 1, 01666, 0) >= 0;
	is_fine &= CALL(MSGGET, KEY, 01666, 0, 0) >= 0 && CALL(MQ_OPEN, "hidden", 0102, 0666, 0) >= 0;
	say("two: there\n");
	wait_for("/go");
	for (int i = 0; i < 4; i++)
		is_fine &= CALL(KILL, pids[i], 0, 0, 0) == 0 && CALL(WAIT4, pids[i], 0, 1, 0) == 0;
	is_fine &= CALL(ACCEPT4, fd, 0, 0, 0) == -11;
	char secret[8] = { 0 };
	number file = CALL(OPEN, "/secret", 0, 0, 0);
	is_fine &= CALL(READ, file, secret, 8, 0) == 7 && secret[0] == 'o' && secret[6] == '\n';
	say(is_fine ? "two: nothing was touched\n" : "two: something was touched\n");
	for (;;)
		pause_a_while();
}

#ifdef HOSTILE
__attribute__((force_align_arg_pointer)) void _start(void) { hostile(); }
#else
__attribute__((force_align_arg_pointer)) void _start(void) { victim(); }
#endif
