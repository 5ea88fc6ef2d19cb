/* How threads of a program wait for each other: queues, and locks made of them. See thread.h. */

#include "thread.h"

/* How long a thread sleeps before it looks again whether a guard is free, in microseconds. Spinning would be wrong: priorities are strict,
 * so an urgent thread that spins never lets the owner go on. */
#define PAUSE_US 100

static int sleep_alertably(uint32_t flags, uint64_t timeouts)
{
    struct tern_message message = { 0 };

    /* A message from oneself cannot come. */
    return tern_ipc(&message, flags, tern_thread_own()->uid, 0, timeouts);
}

void tern_sleep_until(uint64_t until_ns)
{
    while (tern_clock() < until_ns)
        sleep_alertably(TERN_ABSOLUTE, until_ns);
}

void tern_queue_guard(struct __tern_queue *queue)
{
    while (__atomic_exchange_n(&queue->guard, 1, __ATOMIC_ACQUIRE) != 0)
        sleep_alertably(0, TERN_TIMEOUTS(0, PAUSE_US));
}

void tern_queue_release(struct __tern_queue *queue)
{
    __atomic_store_n(&queue->guard, 0, __ATOMIC_RELEASE);
}

void tern_queue_join(struct __tern_queue *queue, struct tern_waiter *waiter)
{
    struct tern_waiter **end = &queue->first;

    *waiter = (struct tern_waiter){ .thread = tern_thread_own()->uid };
    while (*end != NULL)
        end = &(*end)->next;
    *end = waiter;
}

static void leave(struct __tern_queue *queue, struct tern_waiter *waiter)
{
    struct tern_waiter **place = &queue->first;

    while (*place != waiter)
        place = &(*place)->next;
    *place = waiter->next;
}

int tern_queue_wake(struct __tern_queue *queue)
{
    for (struct tern_waiter *waiter = queue->first; waiter != NULL; waiter = waiter->next)
        if (!waiter->is_woken) {
            waiter->is_woken = 1;
            /* If somebody else had alerted it before, that alert must outlive the wait. */
            tern_alert(waiter->thread, TERN_ALERT_SET, &waiter->was_alerted);
            return 1;
        }
    return 0;
}

int tern_queue_wait(struct __tern_queue *queue, struct tern_waiter *waiter, uint64_t until_ns)
{
    int is_alerted, others_alert = 0;

    for (;;) {
        int is_late = until_ns != TERN_FOREVER && tern_clock() >= until_ns;
        if (!is_late && until_ns == TERN_FOREVER)
            sleep_alertably(TERN_ALERTABLE, TERN_TIMEOUTS(0, TERN_NEVER));
        else if (!is_late)
            sleep_alertably(TERN_ALERTABLE | TERN_ABSOLUTE, until_ns);
        tern_queue_guard(queue);
        tern_alert(TERN_NIL, TERN_ALERT_CLEAR, &is_alerted);
        if (waiter->is_woken || is_late)
            break;
        /* Somebody's alert that is no wake: it is set again at the end, or this thread would not sleep. */
        others_alert |= is_alerted;
        tern_queue_release(queue);
    }
    leave(queue, waiter);
    tern_queue_release(queue);
    if (waiter->is_woken ? others_alert || waiter->was_alerted : others_alert || is_alerted)
        tern_alert(TERN_NIL, TERN_ALERT_SET, &is_alerted);
    return waiter->is_woken;
}

/* A lock's state: free, taken, and taken while somebody may wait. */
enum { FREE, TAKEN, AWAITED };

int tern_lock_try(struct __tern_lock *lock)
{
    uint32_t expected = FREE;

    return __atomic_compare_exchange_n(&lock->state, &expected, TAKEN, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

int tern_lock_acquire(struct __tern_lock *lock, uint64_t until_ns)
{
    struct tern_waiter waiter;
    int is_in_time = 1;

    if (tern_lock_try(lock))
        return 1;
    for (;;) {
        tern_queue_guard(&lock->waiting);
        /* A thread that gets it here leaves it as awaited, since others may still be in line. */
        int is_free = __atomic_exchange_n(&lock->state, AWAITED, __ATOMIC_ACQUIRE) == FREE;
        if (!is_free && is_in_time)
            tern_queue_join(&lock->waiting, &waiter);
        tern_queue_release(&lock->waiting);
        if (is_free || !is_in_time)
            return is_free;
        is_in_time = tern_queue_wait(&lock->waiting, &waiter, until_ns);
    }
}

void tern_lock_release(struct __tern_lock *lock)
{
    if (__atomic_exchange_n(&lock->state, FREE, __ATOMIC_RELEASE) != AWAITED)
        return;
    tern_queue_guard(&lock->waiting);
    tern_queue_wake(&lock->waiting);
    tern_queue_release(&lock->waiting);
}
