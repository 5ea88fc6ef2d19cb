/* Functions that newlib asks of a system: bytes out and in, memory, time, the end, locks. There are no files. The rest of POSIX is in files of
 * its own, so that a program may use those names for itself. */

#include "terminal.h"
#include "thread.h"

#include <errno.h>
#include <reent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/times.h>
#include <unistd.h>

#include <clock.h>
#include <system.h>

/* ---- the end ---- */

void _exit(int status)
{
    System_Process_exit(tern_home(), status);
    for (;;) {
        /* Nobody is left to tell. */
        uint64_t words[6] = { TERN_NIL };
        tern_control(TERN_THREAD_CONTROL, TERN_THREAD_DESTROY, words);
    }
}

int _getpid_r(struct _reent *reent)
{
    (void)reent;
    return 1;
}

/* A signal that nobody catches ends the program, as shells know it. There is no other program that could be meant. */
int _kill_r(struct _reent *reent, int pid, int signal)
{
    if (pid == 1)
        _exit(128 + signal);
    reent->_errno = ESRCH;
    return -1;
}

/* ---- bytes ---- */

_ssize_t _write_r(struct _reent *reent, int file, const void *bytes, size_t len)
{
    if (file != STDOUT_FILENO && file != STDERR_FILENO) {
        reent->_errno = EBADF;
        return -1;
    }
    if (file == STDERR_FILENO)
        tern_complain(bytes, len);
    else
        tern_write(bytes, len);
    return (_ssize_t)len;
}

_ssize_t _read_r(struct _reent *reent, int file, void *bytes, size_t len)
{
    long got;

    if (file != STDIN_FILENO) {
        reent->_errno = EBADF;
        return -1;
    }
    got = tern_terminal_read(bytes, len);
    if (got < 0)
        reent->_errno = EIO;
    return got;
}

/* Whether it is one of the three that there are. */
static int is_open(struct _reent *reent, int file)
{
    if (file >= STDIN_FILENO && file <= STDERR_FILENO)
        return 1;
    reent->_errno = EBADF;
    return 0;
}

int _isatty_r(struct _reent *reent, int file)
{
    if (!is_open(reent, file))
        return 0;
    if (tern_is_piped(file)) {
        reent->_errno = ENOTTY;
        return 0;
    }
    return 1;
}

int _fstat_r(struct _reent *reent, int file, struct stat *status)
{
    if (!is_open(reent, file))
        return -1;
    memset(status, 0, sizeof *status);
    status->st_mode = tern_is_piped(file) ? S_IFIFO : S_IFCHR;
    return 0;
}

_off_t _lseek_r(struct _reent *reent, int file, _off_t offset, int whence)
{
    (void)offset, (void)whence;
    if (is_open(reent, file))
        reent->_errno = ESPIPE;
    return -1;
}

int _close_r(struct _reent *reent, int file)
{
    return is_open(reent, file) ? 0 : -1;
}

int _open_r(struct _reent *reent, const char *name, int flags, int mode)
{
    (void)name, (void)flags, (void)mode;
    reent->_errno = ENOENT;
    return -1;
}

int _stat_r(struct _reent *reent, const char *name, struct stat *status)
{
    (void)name, (void)status;
    reent->_errno = ENOENT;
    return -1;
}

int _unlink_r(struct _reent *reent, const char *name)
{
    (void)name;
    reent->_errno = ENOENT;
    return -1;
}

int _link_r(struct _reent *reent, const char *from, const char *to)
{
    (void)from, (void)to;
    reent->_errno = ENOENT;
    return -1;
}

/* ---- memory ---- */

/* The heap's region, zero-filled on demand: user/lib/rt/src/layout.rs. */
#define HEAP 0x10000000ul
#define HEAP_END 0x3b000000ul

void *_sbrk_r(struct _reent *reent, ptrdiff_t more)
{
    /* newlib's allocator has its lock. */
    static uintptr_t end = HEAP;
    uintptr_t before = end;

    if (more > 0 ? (uintptr_t)more > HEAP_END - before : (uintptr_t)-more > before - HEAP) {
        reent->_errno = ENOMEM;
        return (void *)-1;
    }
    end += (uintptr_t)more;
    return (void *)before;
}

/* ---- time ---- */

uint64_t tern_wall_clock(void)
{
    /* When the system started, since 1970 in ns; 1: not asked yet. */
    static uint64_t start = 1;
    uint64_t begin = __atomic_load_n(&start, __ATOMIC_RELAXED), now = tern_clock(), wall;

    if (begin == 1) {
        tern_uid clock = tern_resolve("clock");
        int is_known = clock != TERN_NIL && Clock_Wall_now(clock, &wall) == QUILL_OK;
        begin = is_known && wall > now ? wall - now : 0;
        __atomic_store_n(&start, begin, __ATOMIC_RELAXED);
    }
    return begin + now;
}

uint64_t tern_when(const struct timespec *wall)
{
    uint64_t shift = tern_wall_clock() - tern_clock(), when;

    if (wall->tv_sec < 0)
        return 0;
    when = (uint64_t)wall->tv_sec * SECOND_NS + (uint64_t)wall->tv_nsec;
    return when > shift ? when - shift : 0;
}

struct timespec tern_timespec(uint64_t ns)
{
    return (struct timespec){ .tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS) };
}

int timespec_get(struct timespec *time, int base)
{
    if (base != TIME_UTC)
        return 0;
    *time = tern_timespec(tern_wall_clock());
    return base;
}

int _gettimeofday_r(struct _reent *reent, struct timeval *time, void *zone)
{
    uint64_t now = tern_wall_clock();

    (void)reent, (void)zone;
    *time = (struct timeval){ .tv_sec = (time_t)(now / SECOND_NS), .tv_usec = (suseconds_t)(now % SECOND_NS / 1000) };
    return 0;
}

/* The CPU time of the calling thread; the others' is not counted. */
clock_t _times_r(struct _reent *reent, struct tms *times)
{
    uint64_t info[6] = { TERN_NIL };

    (void)reent;
    tern_control(TERN_THREAD_CONTROL, TERN_THREAD_INFO, info);
    *times = (struct tms){ .tms_utime = (clock_t)(info[1] / (SECOND_NS / CLOCKS_PER_SEC)) };
    return (clock_t)(tern_clock() / (SECOND_NS / CLOCKS_PER_SEC));
}

/* ---- locks ---- */

/* All that newlib wants are here; a recursive one knows its owner. */
struct __lock {
    struct __tern_lock lock;
    struct __tern_thread *owner;
    uint32_t depth;
};

struct __lock __lock___sinit_recursive_mutex, __lock___sfp_recursive_mutex, __lock___atexit_recursive_mutex,
    __lock___at_quick_exit_mutex, __lock___malloc_recursive_mutex, __lock___env_recursive_mutex, __lock___tz_mutex,
    __lock___dd_hash_mutex, __lock___arc4random_mutex;

void __retarget_lock_init(struct __lock **lock)
{
    *lock = calloc(1, sizeof **lock);
    if (*lock == NULL)
        abort();
}

void __retarget_lock_init_recursive(struct __lock **lock)
{
    __retarget_lock_init(lock);
}

void __retarget_lock_close(struct __lock *lock)
{
    free(lock);
}

void __retarget_lock_close_recursive(struct __lock *lock)
{
    free(lock);
}

void __retarget_lock_acquire(struct __lock *lock)
{
    tern_lock_acquire(&lock->lock, TERN_FOREVER);
}

int __retarget_lock_try_acquire(struct __lock *lock)
{
    return tern_lock_try(&lock->lock);
}

void __retarget_lock_release(struct __lock *lock)
{
    tern_lock_release(&lock->lock);
}

/* Whether the calling thread has it already; then it has it once more. */
static int again(struct __lock *lock)
{
    if (__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) != tern_thread_own())
        return 0;
    lock->depth++;
    return 1;
}

void __retarget_lock_acquire_recursive(struct __lock *lock)
{
    if (again(lock))
        return;
    tern_lock_acquire(&lock->lock, TERN_FOREVER);
    __atomic_store_n(&lock->owner, tern_thread_own(), __ATOMIC_RELAXED);
}

int __retarget_lock_try_acquire_recursive(struct __lock *lock)
{
    if (again(lock))
        return 1;
    if (!tern_lock_try(&lock->lock))
        return 0;
    __atomic_store_n(&lock->owner, tern_thread_own(), __ATOMIC_RELAXED);
    return 1;
}

void __retarget_lock_release_recursive(struct __lock *lock)
{
    if (lock->depth > 0) {
        lock->depth--;
        return;
    }
    __atomic_store_n(&lock->owner, NULL, __ATOMIC_RELAXED);
    tern_lock_release(&lock->lock);
}
