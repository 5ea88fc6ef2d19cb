/* Extended attributes of files and directories, by the C library: `attributes set` gives them some and reads them back, `attributes get` prints what somebody else has given. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static void print(const char *path, const char *name)
{
	char value[5000];
	ssize_t len = getxattr(path, name, value, sizeof value);
	if (len < 0)
		printf("%s %s: %s\n", path, name, strerror(errno));
	else if (len < 100)
		printf("%s %s = %.*s\n", path, name, (int)len, value);
	else
		printf("%s %s: %zd bytes, the last of them %c\n", path, name, len, value[len - 1]);
}

static void list(const char *path)
{
	char names[1000];
	ssize_t len = listxattr(path, names, sizeof names);
	for (char *name = names; name < names + len; name += strlen(name) + 1)
		print(path, name);
}

int main(int argc, char **argv)
{
	static char large[1000];
	if (argc > 1 && strcmp(argv[1], "set") == 0) {
		memset(large, 'x', sizeof large);
		close(open("/tmp/f", O_CREAT | O_WRONLY, 0644));
		mkdir("/tmp/d", 0755);
		if (setxattr("/tmp/f", "user.comment", "by a program", 12, XATTR_CREATE) || setxattr("/tmp/f", "user.large", large, sizeof large, 0))
			perror("a file");
		if (setxattr("/tmp/d", "user.comment", "of a directory", 14, 0) || setxattr("/tmp/d", "user.gone", "", 0, 0) || removexattr("/tmp/d", "user.gone"))
			perror("a directory");
		print("/tmp/f", "user.nothing");
	}
	list("/tmp/f");
	list("/tmp/d");
	return 0;
}
