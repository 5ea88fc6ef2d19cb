/* The types behind <threads.h>, which newlib leaves to the system. All zeroes are a mutex that is plain and free, a condition
 * variable that nobody waits for, and ONCE_FLAG_INIT. */
#ifndef TERN_MACHINE_THREADS_H
#define TERN_MACHINE_THREADS_H

#include <stdint.h>
#include <sys/cdefs.h>
#include <time.h>

struct __tern_thread;

/* Threads that wait; user/lib/c/lib/wait.c. */
struct __tern_queue {
    uint32_t guard;
    struct tern_waiter *first;
};

struct __tern_lock {
    uint32_t state;
    struct __tern_queue waiting;
};

typedef struct {
    struct __tern_lock lock;
    int type;
    uint32_t depth;
    struct __tern_thread *owner;
} mtx_t;

typedef struct __tern_queue cnd_t;
typedef struct __tern_thread *thrd_t;
typedef unsigned int tss_t;

typedef struct {
    uint32_t state;
    struct __tern_lock lock;
} once_flag;

#define ONCE_FLAG_INIT { 0 }
#define TSS_DTOR_ITERATIONS 4

/* C11's, which this newlib does not have yet. */
#define TIME_UTC 1

__BEGIN_DECLS
int timespec_get(struct timespec *, int);
/* The kernel's name of a thread. */
uint64_t tern_thread_uid(thrd_t);
__END_DECLS

#endif
