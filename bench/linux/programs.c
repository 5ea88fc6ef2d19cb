/* Programs of Debian between marker instructions, by a static program that needs no library: the whole process of one, or a request to a server. It runs unmodified on
 * Linux and on Tern, as they do.
 *
 * programs PACKAGE: the package of the program that is measured. programs PACKAGE machine: as the first process of a machine, which it switches off. */

#include "calls.h"

/* Rounds of a whole process, which is a thousand times as long as a call. */
enum { STARTS = 24 };

enum { PORT = 6379, TRIES = 1000, LONGEST = 256 };

static char *none[] = { 0 };

/* A process that runs a program. */
static long begin_program(char *path, char **words)
{
	long child = CALL1(FORK, 0);
	if (child == 0) {
		CALL3(EXECVE, path, words, none);
		CALL1(EXIT, 127);
	}
	return child;
}

/* A process from its beginning until it has ended well and has been waited for. */
static long run(char **words)
{
	int status = -1;
	long child = begin_program(words[0], words);
	return CALL4(WAIT4, child, &status, 0, 0) == child && status == 0;
}

static void interpreters(const char *package)
{
	static char *lua[] = { "/usr/bin/lua5.4", "-e", "", 0 }, *python[] = { "/usr/bin/python3.11", "-c", "", 0 };
	if (is_equal(package, "lua5.4")) ROW_OF(STARTS, 26, result == 1, run(lua));
	if (is_equal(package, "python3.11-minimal")) ROW_OF(STARTS, 27, result == 1, run(python));
}

/* A connection to a server that has just begun. */
static long connection(void)
{
	struct address to = local(PORT);
	for (int left = TRIES; left > 0; left--) {
		long fd = CALL3(SOCKET, INTERNET, STREAMS, 0);
		if (fd < 0) end(95);
		if (CALL3(CONNECT, fd, &to, sizeof to) == 0) return fd;
		CALL1(CLOSE, fd);
		CALL3(POLL, 0, 0, 10);
	}
	end(94);
}

/* A request and its answer, whose length is known. */
static long ask(long fd, const char *request, long length, char *answer, long expected)
{
	if (CALL3(WRITE, fd, request, length) != length) return -1;
	long have = 0;
	while (have < expected) {
		long count = CALL3(READ, fd, answer + have, LONGEST - have);
		if (count <= 0) return -1;
		have += count;
	}
	return have;
}

#define SIXTEEN "a value of redis"
#define TEXT SIXTEEN SIXTEEN SIXTEEN SIXTEEN

static const char set[] = "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$64\r\n" TEXT "\r\n", get[] = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n";
static const char is_set[] = "+OK\r\n", value[] = "$64\r\n" TEXT "\r\n";

/* Redis, whose programs Debian has as one that looks at its name. It keeps nothing on the disk. */
static void redis(void)
{
	static char *words[] = { "redis-server", "--bind", "127.0.0.1", "--save", "", "--logfile", "/dev/null", 0 };
	char answer[LONGEST];
	long child = begin_program("/usr/bin/redis-check-rdb", words), fd = connection();
	if (ask(fd, set, sizeof set - 1, answer, sizeof is_set - 1) != sizeof is_set - 1) end(97);
	ROW(28, result == sizeof value - 1 && (answer[result] = 0, is_equal(answer, value)), ask(fd, get, sizeof get - 1, answer, sizeof value - 1));
	CALL1(CLOSE, fd);
	CALL2(KILL, child, SIGKILL);
	CALL4(WAIT4, child, 0, 0, 0);
}

void begin(long *stack)
{
	char **words = (char **)(stack + 1);
	if (stack[0] < 2) end(90);
	is_machine = stack[0] > 2;
	if (is_machine) {
		bring_up_loopback();
		mount_devices();
	}
	interpreters(words[1]);
	if (is_equal(words[1], "redis-tools")) redis();
	end(0);
}
