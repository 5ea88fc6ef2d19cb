/* Declarations that the parts of the C library's system side share: the control block of a thread, and how threads wait for each other.
 *
 * A thread that waits sleeps in an ipc that an alert ends, and whoever wakes it alerts it while it is still in the queue. So no alert
 * is lost, and none arrives after the wait. The twin in Rust is user/lib/rt/src/sync/queue.rs. */
#ifndef TERN_THREAD_H
#define TERN_THREAD_H

#include <sys/reent.h>
#include <tern.h>
#include <threads.h>

#define TSS_MAX 32

/* Lies at the thread pointer; thread-local data lies directly below it. */
struct __tern_thread {
    void *self; /* the processor's convention: the word at the thread pointer points to itself */
    tern_uid uid;
    struct _reent *reent;
    void *tss[TSS_MAX];
    /* Of threads that thrd_create made, guarded by the table of threads. */
    struct __tern_thread *next;
    int state, slot, result;
    thrd_start_t function;
    void *argument, *block;
};

/* Abilities of the processor that lib/ipc.S makes use of; written before the first message. */
extern unsigned char tern_processor;

/* How an ipc is made, and the fast way for a processor that has all of that (lib/ipc.S). */
extern void (*tern_ipc_system_call)(void);
void tern_ipc_by_newest(void);

/* The beginning of a call through a door, likewise (lib/door.S). */
extern void (*tern_door_begin)(void);
void tern_door_begin_by_newest(void);

/* The calling thread's. */
static inline struct __tern_thread *tern_thread_own(void)
{
    struct __tern_thread *own;

    __asm__("mov %%fs:0, %0" : "=r"(own));
    return own;
}

/* A place in a queue; on the stack of whoever waits. */
struct tern_waiter {
    struct tern_waiter *next;
    tern_uid thread;
    int is_woken, was_alerted;
};

/* No point in time. */
#define TERN_FOREVER UINT64_MAX

/* Takes a queue's guard, and gives it back. */
void tern_queue_guard(struct __tern_queue *queue);
void tern_queue_release(struct __tern_queue *queue);

/* Under the guard: the calling thread stands in line from now on. */
void tern_queue_join(struct __tern_queue *queue, struct tern_waiter *waiter);

/* Without the guard: waits until somebody wakes the waiter (1) or until a time in ns (0). It is in line no more. */
int tern_queue_wait(struct __tern_queue *queue, struct tern_waiter *waiter, uint64_t until_ns);

/* Under the guard: wakes the first waiter in line that is not woken yet, if there is one. */
int tern_queue_wake(struct __tern_queue *queue);

/* A lock that is free when it is zero. Gives 0 if a time in ns comes first. */
int tern_lock_acquire(struct __tern_lock *lock, uint64_t until_ns);
int tern_lock_try(struct __tern_lock *lock);
void tern_lock_release(struct __tern_lock *lock);

/* Sleeps until a time in ns. */
void tern_sleep_until(uint64_t until_ns);

/* The time in ns since 1970, if there is a clock; otherwise since the start. */
uint64_t tern_wall_clock(void);

#define SECOND_NS 1000000000ul
struct timespec tern_timespec(uint64_t ns);

/* When it will be that time, on the kernel's clock. */
uint64_t tern_when(const struct timespec *wall);

/* A new size of thread-local data, rounded so that the thread pointer behind it is aligned as it has to be. */
size_t tern_tls_room(void);

/* Fills a block of thread-local data that ends at the thread pointer. */
void tern_tls_fill(void *thread_pointer);

#endif
