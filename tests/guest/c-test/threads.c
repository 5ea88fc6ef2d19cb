/* <threads.h>, and that what the library shares is locked and what it does not is a thread's own. */

#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern.h>
#include <threads.h>

enum { MANY = 6, TURNS = 300 };

/* No wider than its size: where it lies then is another place than for wide ones, which door-c has. */
static _Thread_local int own = 5;
static _Thread_local char small;

static int add_one(void *argument)
{
    int *number = argument;

    own += *number;
    small++;
    errno = *number;
    thrd_yield();
    CHECK(errno == *number && own == 5 + *number && small == 1);
    ++*number;
    return *number * 10;
}

static int leave(void *argument)
{
    (void)argument;
    thrd_exit(33);
}

static int check_in(void *argument)
{
    __atomic_fetch_add((int *)argument, 1, __ATOMIC_RELEASE);
    return 0;
}

void threads(void)
{
    thrd_t many[MANY], one;
    int numbers[MANY], result, arrived = 0;

    errno = 77;
    for (int i = 0; i < MANY; i++) {
        numbers[i] = i;
        CHECK(thrd_create(&many[i], add_one, &numbers[i]) == thrd_success);
    }
    for (int i = 0; i < MANY; i++)
        CHECK(thrd_join(many[i], &result) == thrd_success && result == (i + 1) * 10 && numbers[i] == i + 1);
    CHECK(errno == 77 && own == 5 && small == 0);
    CHECK(thrd_create(&one, leave, NULL) == thrd_success && thrd_join(one, &result) == thrd_success && result == 33);
    CHECK(thrd_equal(thrd_current(), thrd_current()) && thrd_join(thrd_current(), NULL) == thrd_error);
    /* More than there are stacks: those who are on their own are buried, too. */
    for (int i = 0; i < 200; i++) {
        CHECK(thrd_create(&one, check_in, &arrived) == thrd_success);
        if (i % 2 == 0)
            CHECK(thrd_detach(one) == thrd_success);
        else
            CHECK(thrd_join(one, NULL) == thrd_success);
        while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) <= i)
            thrd_yield();
        /* A thread that ended alone is there until the next one is made; it has a moment to say so. */
        thrd_sleep(&(struct timespec){ 0, 100000 }, NULL);
    }
}

static mtx_t mutex;
static cnd_t is_full, is_empty;
static long counter;
static once_flag once = ONCE_FLAG_INIT;
static int times_once;

static void only_once(void)
{
    times_once++;
}

static int count(void *argument)
{
    (void)argument;
    for (int i = 0; i < TURNS; i++) {
        CHECK(mtx_lock(&mutex) == thrd_success);
        long before = counter;
        if (i % 16 == 0)
            thrd_yield();
        counter = before + 1;
        CHECK(mtx_unlock(&mutex) == thrd_success);
        call_once(&once, only_once);
    }
    return 0;
}

static int hold(void *argument)
{
    CHECK(mtx_lock(argument) == thrd_success);
    CHECK(cnd_signal(&is_full) == thrd_success);
    thrd_sleep(&(struct timespec){ 0, 20000000 }, NULL);
    CHECK(mtx_unlock(argument) == thrd_success);
    return 0;
}

static struct timespec soon(long ns)
{
    struct timespec time;

    timespec_get(&time, TIME_UTC);
    time.tv_nsec += ns;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

void locks(void)
{
    thrd_t many[MANY], holder;
    mtx_t recursive, timed;
    struct timespec until;

    CHECK(mtx_init(&mutex, mtx_plain) == thrd_success);
    for (int i = 0; i < MANY; i++)
        CHECK(thrd_create(&many[i], count, NULL) == thrd_success);
    for (int i = 0; i < MANY; i++)
        CHECK(thrd_join(many[i], NULL) == thrd_success);
    CHECK(counter == MANY * TURNS && times_once == 1);
    CHECK(mtx_init(&recursive, mtx_plain | mtx_recursive) == thrd_success);
    CHECK(mtx_lock(&recursive) == thrd_success && mtx_lock(&recursive) == thrd_success);
    CHECK(mtx_unlock(&recursive) == thrd_success && mtx_unlock(&recursive) == thrd_success);
    CHECK(mtx_unlock(&recursive) == thrd_error);
    CHECK(mtx_init(&timed, mtx_timed) == thrd_success);
    CHECK(mtx_lock(&mutex) == thrd_success);
    CHECK(thrd_create(&holder, hold, &timed) == thrd_success);
    CHECK(cnd_wait(&is_full, &mutex) == thrd_success && mtx_unlock(&mutex) == thrd_success);
    CHECK(mtx_trylock(&timed) == thrd_busy);
    until = soon(1000000);
    CHECK(mtx_timedlock(&timed, &until) == thrd_timedout);
    until = soon(2000000000);
    CHECK(mtx_timedlock(&timed, &until) == thrd_success && mtx_unlock(&timed) == thrd_success);
    CHECK(thrd_join(holder, NULL) == thrd_success && mtx_trylock(&timed) == thrd_success && mtx_unlock(&timed) == thrd_success);
    mtx_destroy(&mutex);
}

static int box, box_is_full, taken;

static int take(void *argument)
{
    for (int i = 0; i < TURNS; i++) {
        mtx_lock(&mutex);
        while (!box_is_full)
            cnd_wait(&is_full, &mutex);
        taken += box;
        box_is_full = 0;
        cnd_signal(&is_empty);
        mtx_unlock(&mutex);
    }
    return argument == NULL;
}

static int released;

static int wait_for_all(void *argument)
{
    (void)argument;
    mtx_lock(&mutex);
    box++;
    while (!released)
        cnd_wait(&is_full, &mutex);
    mtx_unlock(&mutex);
    return 0;
}

void conditions(void)
{
    thrd_t many[MANY];
    struct timespec until;
    int sum = 0, is_alerted;

    mtx_init(&mutex, mtx_plain);
    cnd_init(&is_full);
    cnd_init(&is_empty);
    CHECK(thrd_create(&many[0], take, NULL) == thrd_success && thrd_create(&many[1], take, NULL) == thrd_success);
    for (int i = 0; i < 2 * TURNS; i++) {
        mtx_lock(&mutex);
        while (box_is_full)
            cnd_wait(&is_empty, &mutex);
        box = i, sum += i, box_is_full = 1;
        cnd_signal(&is_full);
        mtx_unlock(&mutex);
    }
    CHECK(thrd_join(many[0], NULL) == thrd_success && thrd_join(many[1], NULL) == thrd_success && taken == sum);
    /* A broadcast reaches all. */
    box = 0;
    for (int i = 0; i < MANY; i++)
        CHECK(thrd_create(&many[i], wait_for_all, NULL) == thrd_success);
    for (int all = 0; !all; thrd_yield()) {
        mtx_lock(&mutex);
        all = box == MANY;
        mtx_unlock(&mutex);
    }
    mtx_lock(&mutex);
    released = 1;
    cnd_broadcast(&is_full);
    mtx_unlock(&mutex);
    for (int i = 0; i < MANY; i++)
        CHECK(thrd_join(many[i], NULL) == thrd_success);
    /* Nobody comes; and an alert that somebody gave meanwhile is there afterwards. */
    mtx_lock(&mutex);
    CHECK(tern_alert(TERN_NIL, TERN_ALERT_SET, &is_alerted) == TERN_OK && !is_alerted);
    until = soon(2000000);
    CHECK(cnd_timedwait(&is_full, &mutex, &until) == thrd_timedout);
    CHECK(tern_alert(TERN_NIL, TERN_ALERT_CLEAR, &is_alerted) == TERN_OK && is_alerted);
    until = soon(2000000);
    CHECK(cnd_timedwait(&is_full, &mutex, &until) == thrd_timedout);
    CHECK(tern_alert(TERN_NIL, TERN_ALERT_POLL, &is_alerted) == TERN_OK && !is_alerted);
    mtx_unlock(&mutex);
    CHECK(cnd_wait(&is_full, &mutex) == thrd_error);
}

static tss_t key;
static int destroyed;

static void destroy(void *value)
{
    destroyed += *(int *)value;
}

static int store(void *argument)
{
    CHECK(tss_get(key) == NULL && tss_set(key, argument) == thrd_success && tss_get(key) == argument);
    return 0;
}

void storage(void)
{
    thrd_t one;
    int value = 9;
    tss_t keys[40];
    int made = 0;

    CHECK(tss_create(&key, destroy) == thrd_success);
    CHECK(thrd_create(&one, store, &value) == thrd_success && thrd_join(one, NULL) == thrd_success);
    CHECK(destroyed == 9 && tss_get(key) == NULL);
    while (made < 40 && tss_create(&keys[made], NULL) == thrd_success)
        made++;
    CHECK(made == 31);
    while (made > 0)
        tss_delete(keys[--made]);
    tss_delete(key);
}

/* What the library shares between threads, used by all of them at once. */
static int use_all(void *argument)
{
    unsigned seed = (unsigned)(size_t)argument;
    char text[64], expected[64], *blocks[8] = { 0 };

    for (int i = 0; i < TURNS; i++) {
        int at = rand_r(&seed) % 8;
        free(blocks[at]);
        blocks[at] = malloc(50 + (size_t)rand_r(&seed) % 3000);
        CHECK(blocks[at] != NULL);
        snprintf(blocks[at], 50, "%g %d", seed / 7.0, i);
        snprintf(text, sizeof text, "%g %d", seed / 7.0, i);
        CHECK(strcmp(text, blocks[at]) == 0);
        strcpy(expected, text);
        char *word = strtok(text, " ");
        if (i % 32 == 0)
            thrd_yield();
        CHECK(word == text && strtok(NULL, " ") != NULL && strtod(expected, NULL) >= 0);
        if (i % 100 == 0)
            printf("C-LINE %u of thread %zu is whole\n", i, (size_t)argument);
    }
    for (int at = 0; at < 8; at++)
        free(blocks[at]);
    return 0;
}

void crowded(void)
{
    thrd_t many[MANY];

    for (size_t i = 0; i < MANY; i++)
        CHECK(thrd_create(&many[i], use_all, (void *)(i + 1)) == thrd_success);
    for (int i = 0; i < MANY; i++)
        CHECK(thrd_join(many[i], NULL) == thrd_success);
}
