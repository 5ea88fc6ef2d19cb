/* Files of the random calls: at the beginning of each round they are made anew, and whatever the last one has left anywhere goes. */
#pragma once

enum { DEPTH_MAX = 16 };

/* Names that stay: those of the root directory, of the directory with programs, and none. */
static const char *const of_root[] = { "bin", "start", "tmp", "dev", "proc", "sys", "lost+found", 0 }, *const of_programs[] = { "busybox", "sh", "cat", "random", 0 },
	*const nothing[] = { 0 };

static int is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++) {
		const char *a = name, *b = *list;
		while (*a && *a == *b)
			a++, b++;
		if (*a == *b)
			return 1;
	}
	return 0;
}

/* Removes what is in a directory that is open, but some names. */
static void clear(number directory, const char *const *kept, int depth)
{
	char entries[2048];
	for (int pass = 0; pass < 64; pass++) {
		number len = CALL(GETDENTS64, directory, entries, sizeof entries, 0);
		if (len <= 0)
			return;
		for (char *entry = entries; entry < entries + len; entry += *(unsigned short *)(entry + 16)) {
			char *name = entry + 19;
			if ((name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))) || is_one_of(name, kept))
				continue;
			if (CALL(UNLINKAT, directory, name, 0, 0) == 0)
				continue;
			number below = call6(257 /* openat */, directory, (word)name, 0200000 | 0400000, 0, 0, 0);
			if (below >= 0 && depth < DEPTH_MAX)
				clear(below, nothing, depth + 1);
			CALL(CLOSE, below, 0, 0, 0);
			CALL(UNLINKAT, directory, name, AT_REMOVEDIR, 0);
		}
	}
}

/* Uses the pages of the stack that the deepest directory needs, which are kept from then on. */
static void __attribute__((noinline)) deepen_stack(void)
{
	volatile char pages[(DEPTH_MAX + 4) * PAGE];
	for (word at = 0; at < sizeof pages; at += PAGE)
		pages[at] = 1;
}

static void clear_path(const char *path, const char *const *kept)
{
	number directory = CALL(OPEN, path, 0200000, 0, 0);
	clear(directory, kept, 0);
	CALL(CLOSE, directory, 0, 0, 0);
}

/* Files as they are at the beginning of a round. A process with all rights may have made some beside its own directory, and anybody in that for all. */
static void make_files(void)
{
	static char bytes[PAGE];
	CALL(CHMOD, "/", 0755, 0, 0);
	CALL(CHMOD, "/tmp", 01777, 0, 0);
	clear_path("/", of_root);
	clear_path("/bin", of_programs);
	clear_path("/tmp", nothing);
	CALL(MKDIR, "/tmp/r", 0777, 0, 0);
	CALL(CHMOD, "/tmp/r", 0777, 0, 0);
	CALL(MKDIR, "/tmp/r/folder", 0777, 0, 0);
	number from = CALL(OPEN, "/bin/random", 0, 0, 0), to = CALL(OPEN, "/tmp/r/program", 0101, 0777, 0), len;
	while ((len = CALL(READ, from, bytes, sizeof bytes, 0)) > 0)
		if (CALL(WRITE, to, bytes, len, 0) != len)
			fail("the disk is full", len);
	if (from < 0 || to < 0 || len)
		fail("no program", -len);
	CALL(CLOSE, from, 0, 0, 0);
	CALL(CLOSE, to, 0, 0, 0);
}
