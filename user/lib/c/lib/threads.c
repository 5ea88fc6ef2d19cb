/* <threads.h>: threads, mutexes, condition variables, thread-specific storage. */

#include "thread.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* Where stacks are: user/lib/rt/src/layout.rs. The first thread has slot 0. */
#define STACKS_END 0x40000000ul
#define STACK_SLOT (1ul << 20)
#define SLOTS 64

enum { RUNNING, DETACHED, ENDED, ENDED_ALONE };

/* The threads that thrd_create made and nobody has buried yet; who waits for one to end stands in line here. */
static struct __tern_queue table;
static struct __tern_thread *threads;
static uint64_t slots = 1;

static tss_dtor_t destructors[TSS_MAX];
static uint32_t keys;

extern const char tern_tls_image[], tern_tls_image_end[], tern_tls_size[], tern_tls_align[];

size_t tern_tls_room(void)
{
    size_t align = (size_t)tern_tls_align;

    return ((size_t)tern_tls_size + align - 1) & ~(align - 1);
}

void tern_tls_fill(void *thread_pointer)
{
    memcpy((char *)thread_pointer - tern_tls_room(), tern_tls_image, tern_tls_image_end - tern_tls_image);
}

struct _reent *__getreent(void)
{
    return tern_thread_own()->reent;
}

/* ---- threads ---- */

/* Ends a thread that has ended its work, and frees what it had. It is in the table no more. */
static void bury(struct __tern_thread *thread)
{
    uint64_t words[6] = { thread->uid };

    tern_control(TERN_THREAD_CONTROL, TERN_THREAD_DESTROY, words);
    __atomic_fetch_and(&slots, ~(1ul << thread->slot), __ATOMIC_RELEASE);
    free(thread->block);
}

/* Takes a thread out of the table, which is guarded. */
static void take_out(struct __tern_thread *thread)
{
    struct __tern_thread **place = &threads;

    while (*place != thread)
        place = &(*place)->next;
    *place = thread->next;
}

/* Buries detached threads that have ended: none of them can do that itself, on its own stack. */
static void bury_the_ended(void)
{
    for (;;) {
        tern_queue_guard(&table);
        struct __tern_thread *thread = threads;
        while (thread != NULL && thread->state != ENDED_ALONE)
            thread = thread->next;
        if (thread != NULL)
            take_out(thread);
        tern_queue_release(&table);
        if (thread == NULL)
            return;
        bury(thread);
    }
}

static int take_slot(void)
{
    uint64_t taken = __atomic_load_n(&slots, __ATOMIC_RELAXED);

    while (~taken != 0) {
        int slot = __builtin_ctzll(~taken);
        if (__atomic_compare_exchange_n(&slots, &taken, taken | 1ul << slot, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return slot;
    }
    return -1;
}

static void run_destructors(struct __tern_thread *own)
{
    for (int round = 0; round < TSS_DTOR_ITERATIONS; round++)
        for (tss_t key = 0; key < TSS_MAX; key++) {
            void *value = own->tss[key];
            tss_dtor_t destructor = __atomic_load_n(&destructors[key], __ATOMIC_ACQUIRE);
            own->tss[key] = NULL;
            if (value != NULL && destructor != NULL)
                destructor(value);
        }
}

void thrd_exit(int result)
{
    struct __tern_thread *own = tern_thread_own();
    uint64_t words[6] = { TERN_NIL };

    run_destructors(own);
    if (own->block == NULL)
        exit(result); /* the first thread */
    _reclaim_reent(own->reent);
    tern_queue_guard(&table);
    own->result = result;
    own->state = own->state == DETACHED ? ENDED_ALONE : ENDED;
    while (tern_queue_wake(&table))
        ;
    tern_queue_release(&table);
    /* The thread that takes it out of the table ends it. Its stack is its own until then, and nothing else is. */
    for (;;)
        tern_control(TERN_THREAD_CONTROL, TERN_THREAD_STOP, words);
}

static void begin(struct __tern_thread *own)
{
    thrd_exit(own->function(own->argument));
}

/* First instructions of a thread: `begin`, with the stack as a function expects it. In: rdi. */
void tern_thread_entry(void);
__asm__(".pushsection .text\ntern_thread_entry:\n\t"
        "xor %ebp, %ebp\n\t"
        "call tern_thread_begin\n\t"
        "ud2\n\t"
        ".popsection");
__attribute__((used)) void tern_thread_begin(struct __tern_thread *own)
{
    begin(own);
}

/* A control block with thread-local data below it and newlib's own data behind it, in one piece. */
static struct __tern_thread *make(thrd_start_t function, void *argument)
{
    size_t align = (size_t)tern_tls_align < 64 ? 64 : (size_t)tern_tls_align;
    size_t room = (tern_tls_room() + align - 1) & ~(align - 1);
    char *block = memalign(align, room + sizeof(struct __tern_thread) + sizeof(struct _reent));

    if (block == NULL)
        return NULL;
    memset(block, 0, room + sizeof(struct __tern_thread) + sizeof(struct _reent));
    struct __tern_thread *thread = (struct __tern_thread *)(block + room);
    thread->self = thread;
    thread->block = block;
    thread->reent = (struct _reent *)(thread + 1);
    _REENT_INIT_PTR_ZEROED(thread->reent);
    thread->function = function;
    thread->argument = argument;
    tern_tls_fill(thread);
    return thread;
}

/* Makes and starts the kernel's thread, with the caller's priority, pager and handler. */
static int start(struct __tern_thread *thread)
{
    uint64_t self[6] = { 0 }, info[6] = { 0 };

    tern_control(TERN_TASK_CONTROL, TERN_TASK_SELF, self);
    tern_control(TERN_THREAD_CONTROL, TERN_THREAD_INFO, info);
    uint64_t create[6] = { TERN_NIL, info[0] >> 8 & 0xff, self[2], self[3] };
    int error = tern_control(TERN_THREAD_CONTROL, TERN_THREAD_CREATE, create);
    if (error != TERN_OK)
        return error;
    thread->uid = create[0];
    uint64_t run[6] = { thread->uid, (uint64_t)tern_thread_entry, STACKS_END - thread->slot * STACK_SLOT, (uint64_t)thread };
    error = tern_thread_set_fs(thread->uid, (uint64_t)thread);
    if (error == TERN_OK)
        error = tern_control(TERN_THREAD_CONTROL, TERN_THREAD_START, run);
    if (error != TERN_OK)
        tern_control(TERN_THREAD_CONTROL, TERN_THREAD_DESTROY, create);
    return error;
}

int thrd_create(thrd_t *made, thrd_start_t function, void *argument)
{
    bury_the_ended();
    struct __tern_thread *thread = make(function, argument);
    if (thread == NULL)
        return thrd_nomem;
    thread->slot = take_slot();
    if (thread->slot < 0) {
        free(thread->block);
        return thrd_error;
    }
    *made = thread;
    /* Before it runs: it may end at once. */
    tern_queue_guard(&table);
    thread->next = threads;
    threads = thread;
    tern_queue_release(&table);
    int error = start(thread);
    if (error == TERN_OK)
        return thrd_success;
    tern_queue_guard(&table);
    take_out(thread);
    tern_queue_release(&table);
    __atomic_fetch_and(&slots, ~(1ul << thread->slot), __ATOMIC_RELEASE);
    free(thread->block);
    return error == TERN_NO_MEMORY ? thrd_nomem : thrd_error;
}

int thrd_join(thrd_t thread, int *result)
{
    struct tern_waiter waiter;

    if (thread == tern_thread_own() || thread->block == NULL)
        return thrd_error;
    tern_queue_guard(&table);
    if (thread->state == DETACHED || thread->state == ENDED_ALONE) {
        tern_queue_release(&table);
        return thrd_error;
    }
    while (thread->state != ENDED) {
        tern_queue_join(&table, &waiter);
        tern_queue_release(&table);
        tern_queue_wait(&table, &waiter, TERN_FOREVER);
        tern_queue_guard(&table);
    }
    take_out(thread);
    tern_queue_release(&table);
    if (result != NULL)
        *result = thread->result;
    bury(thread);
    return thrd_success;
}

int thrd_detach(thrd_t thread)
{
    int is_possible;

    if (thread->block == NULL)
        return thrd_error;
    tern_queue_guard(&table);
    is_possible = thread->state == RUNNING || thread->state == ENDED;
    if (is_possible)
        thread->state = thread->state == ENDED ? ENDED_ALONE : DETACHED;
    tern_queue_release(&table);
    return is_possible ? thrd_success : thrd_error;
}

thrd_t thrd_current(void)
{
    return tern_thread_own();
}

int thrd_equal(thrd_t one, thrd_t other)
{
    return one == other;
}

uint64_t tern_thread_uid(thrd_t thread)
{
    return thread->uid;
}

void thrd_yield(void)
{
    uint64_t words[6] = { TERN_NIL };

    tern_control(TERN_THREAD_SWITCH, 0, words);
}

int thrd_sleep(const struct timespec *duration, struct timespec *left)
{
    if (duration->tv_sec < 0 || duration->tv_nsec < 0 || duration->tv_nsec >= 1000000000)
        return -2;
    tern_sleep_until(tern_clock() + (uint64_t)duration->tv_sec * 1000000000 + (uint64_t)duration->tv_nsec);
    if (left != NULL)
        *left = (struct timespec){ 0, 0 };
    return 0;
}

/* ---- mutexes ---- */

int mtx_init(mtx_t *mutex, int type)
{
    memset(mutex, 0, sizeof *mutex);
    mutex->type = type;
    return thrd_success;
}

void mtx_destroy(mtx_t *mutex)
{
    (void)mutex;
}

static int lock(mtx_t *mutex, uint64_t until_ns)
{
    struct __tern_thread *own = tern_thread_own();

    if ((mutex->type & mtx_recursive) != 0 && __atomic_load_n(&mutex->owner, __ATOMIC_RELAXED) == own) {
        mutex->depth++;
        return thrd_success;
    }
    if (until_ns == 0 ? !tern_lock_try(&mutex->lock) : !tern_lock_acquire(&mutex->lock, until_ns))
        return until_ns == 0 ? thrd_busy : thrd_timedout;
    __atomic_store_n(&mutex->owner, own, __ATOMIC_RELAXED);
    return thrd_success;
}

int mtx_lock(mtx_t *mutex)
{
    return lock(mutex, TERN_FOREVER);
}

int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict until)
{
    uint64_t when = tern_when(until);

    return lock(mutex, when == 0 ? 1 : when);
}

int mtx_trylock(mtx_t *mutex)
{
    return lock(mutex, 0);
}

int mtx_unlock(mtx_t *mutex)
{
    if (__atomic_load_n(&mutex->owner, __ATOMIC_RELAXED) != tern_thread_own())
        return thrd_error;
    if (mutex->depth > 0) {
        mutex->depth--;
        return thrd_success;
    }
    __atomic_store_n(&mutex->owner, NULL, __ATOMIC_RELAXED);
    tern_lock_release(&mutex->lock);
    return thrd_success;
}

/* ---- condition variables ---- */

int cnd_init(cnd_t *condition)
{
    memset(condition, 0, sizeof *condition);
    return thrd_success;
}

void cnd_destroy(cnd_t *condition)
{
    (void)condition;
}

static int wait(cnd_t *condition, mtx_t *mutex, uint64_t until_ns)
{
    struct tern_waiter waiter;

    /* It stands in line before others can change what it waits for. */
    tern_queue_guard(condition);
    tern_queue_join(condition, &waiter);
    tern_queue_release(condition);
    int is_owner = mtx_unlock(mutex) == thrd_success;
    int is_woken = tern_queue_wait(condition, &waiter, is_owner ? until_ns : 0);
    if (!is_owner)
        return thrd_error;
    mtx_lock(mutex);
    return is_woken ? thrd_success : thrd_timedout;
}

int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    return wait(condition, mutex, TERN_FOREVER);
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until)
{
    return wait(condition, mutex, tern_when(until));
}

int cnd_signal(cnd_t *condition)
{
    tern_queue_guard(condition);
    tern_queue_wake(condition);
    tern_queue_release(condition);
    return thrd_success;
}

int cnd_broadcast(cnd_t *condition)
{
    tern_queue_guard(condition);
    while (tern_queue_wake(condition))
        ;
    tern_queue_release(condition);
    return thrd_success;
}

/* ---- once, and thread-specific storage ---- */

void call_once(once_flag *flag, void (*function)(void))
{
    if (__atomic_load_n(&flag->state, __ATOMIC_ACQUIRE) != 0)
        return;
    tern_lock_acquire(&flag->lock, TERN_FOREVER);
    if (flag->state == 0) {
        function();
        __atomic_store_n(&flag->state, 1, __ATOMIC_RELEASE);
    }
    tern_lock_release(&flag->lock);
}

int tss_create(tss_t *key, tss_dtor_t destructor)
{
    uint32_t taken = __atomic_load_n(&keys, __ATOMIC_RELAXED);

    while (~taken != 0) {
        *key = (tss_t)__builtin_ctz(~taken);
        if (__atomic_compare_exchange_n(&keys, &taken, taken | 1u << *key, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            __atomic_store_n(&destructors[*key], destructor, __ATOMIC_RELEASE);
            return thrd_success;
        }
    }
    return thrd_error;
}

void tss_delete(tss_t key)
{
    if (key >= TSS_MAX)
        return;
    __atomic_store_n(&destructors[key], NULL, __ATOMIC_RELEASE);
    __atomic_fetch_and(&keys, ~(1u << key), __ATOMIC_ACQ_REL);
}

void *tss_get(tss_t key)
{
    return key < TSS_MAX ? tern_thread_own()->tss[key] : NULL;
}

int tss_set(tss_t key, void *value)
{
    if (key >= TSS_MAX)
        return thrd_error;
    tern_thread_own()->tss[key] = value;
    return thrd_success;
}
