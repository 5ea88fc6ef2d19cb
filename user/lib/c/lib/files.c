/* POSIX names of the functions of newlib.c. */

#include "thread.h"

#include <reent.h>
#include <unistd.h>

int write(int file, const void *bytes, size_t len)
{
    return _write_r(_REENT, file, bytes, len);
}

int read(int file, void *bytes, size_t len)
{
    return _read_r(_REENT, file, bytes, len);
}

int isatty(int file)
{
    return _isatty_r(_REENT, file);
}

pid_t getpid(void)
{
    return _getpid_r(_REENT);
}
