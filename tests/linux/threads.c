/* A program with threads of POSIX and code that it makes itself, linked with one of two C libraries, statically or not. It prints one line for each thing, the same on Linux and on Tern. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREADS = 8, STEPS = 300, PAGE = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t start;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static sem_t slots;
static long counted, turns;
static __thread long own = 3;

static void run(long count, void *(*body)(void *))
{
    pthread_t threads[THREADS];

    for (long number = 0; number < count; number++)
        if (pthread_create(&threads[number], NULL, body, (void *)number) != 0)
            exit(2);
    for (long number = 0; number < count; number++)
        pthread_join(threads[number], NULL);
}

static void *count(void *number)
{
    pthread_barrier_wait(&start);
    for (int step = 0; step < STEPS; step++) {
        sem_wait(&slots);
        pthread_rwlock_wrlock(&table);
        counted += (long)number;
        pthread_rwlock_unlock(&table);
        sem_post(&slots);
        own++;
    }
    __atomic_fetch_add(&turns, own, __ATOMIC_RELAXED);
    return NULL;
}

/* Threads take turns in the order of their numbers. */
static void *take_turns(void *number)
{
    for (int step = 0; step < 20; step++) {
        pthread_mutex_lock(&lock);
        while (turns % THREADS != (long)number)
            pthread_cond_wait(&changed, &lock);
        turns++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static pthread_mutex_t kind_of(int type, int robust, int protocol)
{
    pthread_mutex_t mutex;
    pthread_mutexattr_t how;

    pthread_mutexattr_init(&how);
    pthread_mutexattr_settype(&how, type);
    pthread_mutexattr_setrobust(&how, robust);
    pthread_mutexattr_setprotocol(&how, protocol);
    pthread_mutex_init(&mutex, &how);
    return mutex;
}

static pthread_mutex_t left;

static void *leave(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&left);
    return NULL;
}

static void told(const char *what, int error)
{
    printf("%s: %s\n", what, strerror(error));
}

static void locks(void)
{
    pthread_mutex_t again = kind_of(PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
    pthread_mutex_t strict = kind_of(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
    struct timespec soon;

    told("again", pthread_mutex_lock(&again));
    told("once more", pthread_mutex_lock(&again));
    told("unlocked", pthread_mutex_unlock(&again) + pthread_mutex_unlock(&again));
    told("strict", pthread_mutex_lock(&strict));
    told("once more", pthread_mutex_lock(&strict));
    told("unlocked", pthread_mutex_unlock(&strict));
    told("once more", pthread_mutex_unlock(&strict));
    left = kind_of(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
    run(1, leave);
    told("left by who had it", pthread_mutex_lock(&left));
    told("consistent", pthread_mutex_consistent(&left));
    told("unlocked", pthread_mutex_unlock(&left));
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec = (soon.tv_nsec + 2000000) % 1000000000;
    soon.tv_sec += soon.tv_nsec < 2000000;
    pthread_mutex_lock(&lock);
    told("late", pthread_cond_timedwait(&changed, &lock, &soon));
    pthread_mutex_unlock(&lock);
}

static pthread_key_t key;
static int destroyed, cleaned;

static void destroy(void *value)
{
    destroyed += (int)(intptr_t)value;
}

static void clean(void *unused)
{
    (void)unused;
    cleaned++;
    pthread_mutex_unlock(&lock);
}

static void *wait_for_ever(void *posted)
{
    pthread_setspecific(key, (void *)5);
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(clean, NULL);
    sem_post(posted);
    for (;;)
        pthread_cond_wait(&changed, &lock);
    pthread_cleanup_pop(1);
    return NULL;
}

static void cancels(void)
{
    pthread_t thread;
    void *value;
    sem_t posted;

    sem_init(&posted, 0, 0);
    pthread_key_create(&key, destroy);
    pthread_create(&thread, NULL, wait_for_ever, &posted);
    sem_wait(&posted);
    pthread_cancel(thread);
    pthread_join(thread, &value);
    printf("cancelled: %d, cleaned: %d, destroyed: %d\n", value == PTHREAD_CANCELED, cleaned, destroyed);
}

static volatile sig_atomic_t handled;
static __thread volatile sig_atomic_t own_handled;

static void handle(int number, siginfo_t *info, void *context)
{
    (void)context;
    handled += number == SIGUSR1 && info->si_code == SI_TKILL;
    own_handled++;
}

static void *is_hit(void *posted)
{
    struct timespec moment = { 0, 1000000 };
    sigset_t usual;
    int number = 0;

    sem_post(posted);
    while (own_handled == 0)
        nanosleep(&moment, NULL);
    sigemptyset(&usual);
    sigaddset(&usual, SIGUSR2);
    sigwait(&usual, &number);
    return (void *)(intptr_t)number;
}

static void signals(void)
{
    struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };
    pthread_t thread;
    sigset_t usual;
    void *number;
    sem_t posted;

    sem_init(&posted, 0, 0);
    sigemptyset(&usual);
    sigaddset(&usual, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &usual, NULL);
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, is_hit, &posted);
    sem_wait(&posted);
    pthread_kill(thread, SIGUSR1);
    pthread_kill(thread, SIGUSR2);
    pthread_join(thread, &number);
    printf("signals: %d %d %d\n", handled > 0, own_handled == 0, (int)(intptr_t)number == SIGUSR2);
}

static int prepared;

static void prepare(void)
{
    prepared++;
    pthread_mutex_lock(&lock);
}

static void go_on(void)
{
    pthread_mutex_unlock(&lock);
}

static void forks(void)
{
    int status;
    pid_t child;

    pthread_atfork(prepare, go_on, go_on);
    child = fork();
    if (child == 0) {
        turns = 0;
        run(THREADS, take_turns);
        _exit(turns == 20 * THREADS ? 42 : 1);
    }
    waitpid(child, &status, 0);
    printf("a child with threads: %d %d\n", prepared, WEXITSTATUS(status));
}

/* mov eax, number; ret */
static void make(unsigned char *code, int number)
{
    code[0] = 0xb8;
    memcpy(code + 1, &number, sizeof number);
    code[5] = 0xc3;
}

static sigjmp_buf back;

static void fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    siglongjmp(back, number == SIGSEGV && info->si_code == SEGV_ACCERR ? 1 : 2);
}

/* Code is made, run and changed, where it lies and through a second view of its page. Whoever may write may not run. */
static void makes_code(void)
{
    struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO };
    static int sum;
    int memory = memfd_create("code", 0), kind;
    unsigned char *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *written, *run_there;

    for (int number = 1; number <= 50; number++) {
        mprotect(code, PAGE, PROT_READ | PROT_WRITE);
        make(code, number);
        mprotect(code, PAGE, PROT_READ | PROT_EXEC);
        sum += ((int (*)(void))code)();
    }
    if (ftruncate(memory, PAGE) != 0)
        exit(2);
    written = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    run_there = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, memory, 0);
    for (int number = 1; number <= 50; number++) {
        make(written, number);
        sum += ((int (*)(void))run_there)();
    }
    sigaction(SIGSEGV, &action, NULL);
    kind = sigsetjmp(back, 1);
    if (kind == 0)
        *code = 0;
    printf("code: %d, written: %d", sum, kind);
    kind = sigsetjmp(back, 1);
    if (kind == 0)
        ((int (*)(void))written)();
    printf(", run: %d\n", kind);
}

/* musl has no functions for contexts. */
#ifdef __GLIBC__
static ucontext_t main_place, other_place;
static int switches;

static void other(void)
{
    for (int step = 0; step < 5; step++) {
        switches++;
        swapcontext(&other_place, &main_place);
    }
}

static void places(void)
{
    static char stack[1 << 16];

    getcontext(&other_place);
    other_place.uc_stack.ss_sp = stack;
    other_place.uc_stack.ss_size = sizeof stack;
    other_place.uc_link = &main_place;
    makecontext(&other_place, other, 0);
    for (int step = 0; step < 5; step++)
        swapcontext(&main_place, &other_place);
    printf("places: %d\n", switches);
}
#else
static void places(void)
{
}
#endif

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    pthread_barrier_init(&start, NULL, THREADS);
    sem_init(&slots, 0, 2);
    run(THREADS, count);
    printf("counted: %ld, own: %ld %ld\n", counted, turns, own);
    turns = 0;
    run(THREADS, take_turns);
    printf("turns: %ld\n", turns);
    locks();
    cancels();
    signals();
    forks();
    makes_code();
    places();
    puts("all is well");
    return 0;
}
