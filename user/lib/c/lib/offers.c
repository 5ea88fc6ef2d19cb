/* Pages that a call through a door shows instead of copying them (row D13): both ends of a parameter that a description marks `copy_on_write`, for
 * stubs. The twin in C of user/lib/rt/src/offer.rs, which says how client, server and memory manager keep to each other.
 *
 * Kernel memory for what is looked at is the taker's, who is ended if there is none: so a program with little of it takes no offer. */

#include <system.h>
#include <tern.h>

/* The page with the task's key, and windows behind it: user/lib/rt/src/layout.rs. */
#define KEY 0x3b000000ul
#define WINDOW (1ul << 20)
#define WINDOWS 15
#define PAGES_MAX 256

/* Where programs have memory of their own ends. */
#define MEMORY_END 0x40000000ul

/* Kernel memory that the pages of a window need at most, in frames: for a page table, and for 63 pages each. */
#define FRAMES_OF_WINDOW 6

/* Kernel memory that a program keeps for what it does besides, in frames. */
#define FRAMES_LEFT 16

/* A bit for each page that others may have. */
static uint64_t lent[MEMORY_END / TERN_PAGE_SIZE / 64];

/* Windows in use, a bit for each. Number 0 is none: there is the key. */
static uint64_t windows_used = 1;

/* The manager that pages this program. */
static tern_uid own_manager(void)
{
    static tern_uid manager;
    tern_uid known = __atomic_load_n(&manager, __ATOMIC_RELAXED);
    uint64_t self[6] = { 0 };

    if (known != TERN_NIL)
        return known;
    tern_control(TERN_TASK_CONTROL, TERN_TASK_SELF, self);
    __atomic_store_n(&manager, self[2], __ATOMIC_RELAXED);
    return self[2];
}

/* Whether there is kernel memory for so many windows, as far as their pages are not mapped yet. */
static int has_room(uint64_t windows)
{
    uint64_t info[6] = { TERN_NIL };

    if (tern_control(TERN_TASK_CONTROL, TERN_TASK_INFO, info) != TERN_OK || info[0] < info[1])
        return 0;
    return info[0] - info[1] >= FRAMES_LEFT + windows * FRAMES_OF_WINDOW;
}

/* The number by which the manager knows this task; 0 if it has none for it. */
static uint64_t own_key(void)
{
    enum { NOT_ASKED, NONE };
    static uint64_t key = NOT_ASKED;
    uint64_t known = __atomic_load_n(&key, __ATOMIC_RELAXED), place;

    if (known == NOT_ASKED) {
        if (!has_room(1))
            return 0;
        known = NONE;
        /* A manager that says so shows a page there when it is read. It does not change. */
        if (System_Offers_key(own_manager(), &place) == QUILL_OK && place == KEY)
            known = *(volatile const uint64_t *)KEY;
        if (known == 0)
            known = NONE;
        __atomic_store_n(&key, known, __ATOMIC_RELAXED);
    }
    return known == NONE ? 0 : known;
}

void tern_memory_lent(const void *bytes, uint64_t len)
{
    uint64_t page = (uint64_t)bytes / TERN_PAGE_SIZE, end;

    if ((uint64_t)bytes >= MEMORY_END || len == 0)
        return;
    if (len > MEMORY_END - (uint64_t)bytes)
        len = MEMORY_END - (uint64_t)bytes;
    for (end = ((uint64_t)bytes + len - 1) / TERN_PAGE_SIZE + 1; page < end; page++)
        __atomic_fetch_or(&lent[page / 64], 1ul << page % 64, __ATOMIC_RELAXED);
}

static int is_lent(uint64_t page)
{
    return (__atomic_load_n(&lent[page / 64], __ATOMIC_RELAXED) >> page % 64 & 1) != 0;
}

uint64_t tern_offer(const void *bytes, uint64_t len)
{
    uint64_t first = (uint64_t)bytes, pages = len / TERN_PAGE_SIZE, key, number;

    if (((first | len) & (TERN_PAGE_SIZE - 1)) != 0 || pages == 0 || pages > PAGES_MAX)
        return 0;
    if (first >= MEMORY_END || len > MEMORY_END - first)
        return 0;
    for (uint64_t page = 0; page < pages; page++)
        if (is_lent(first / TERN_PAGE_SIZE + page))
            return 0;
    key = own_key();
    if (key == 0 || System_Offers_offer(own_manager(), key, first, pages, &number) != QUILL_OK)
        return 0;
    return number;
}

void tern_offer_withdraw(uint64_t number)
{
    /* It can be over: then there is nothing to do. */
    System_Offers_withdraw(own_manager(), own_key(), number);
}

/* The window with the lowest number that nobody uses; 0 if there is none. */
static uint64_t use_window(void)
{
    uint64_t used = __atomic_load_n(&windows_used, __ATOMIC_RELAXED), window;

    do {
        window = (uint64_t)__builtin_ctzll(~used);
        if (window > WINDOWS)
            return 0;
    } while (!__atomic_compare_exchange_n(&windows_used, &used, used | 1ul << window, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
    return window;
}

static void leave_window(uint64_t window)
{
    __atomic_fetch_and(&windows_used, ~(1ul << window), __ATOMIC_RELEASE);
}

static uint64_t count_windows(void)
{
    uint64_t count = 0;

    for (uint64_t used = __atomic_load_n(&windows_used, __ATOMIC_RELAXED) & ~1ul; used != 0; used &= used - 1)
        count++;
    return count;
}

/* Takes back what may be mapped in a window from before, so many pages from its begin. Nobody looks there now. */
static void clear(uint64_t at, uint64_t pages)
{
    uint64_t log2 = 12;

    while (1ul << log2 < pages * TERN_PAGE_SIZE)
        log2++;
    /* It cannot fail: these are no parts of large pages. */
    uint64_t flush[6] = { TERN_FPAGE_MEMORY(at, log2, TERN_R | TERN_W | TERN_X), TERN_FLUSH_SELF };
    tern_control(TERN_FLUSH, 0, flush);
}

int tern_offer_take(uint64_t number, uint64_t bytes_max, struct tern_taken *taken)
{
    uint64_t key = own_key(), window = key == 0 ? 0 : use_window(), at = KEY + window * WINDOW, stale, pages;

    if (window == 0)
        return 0;
    if (!has_room(count_windows()) || System_Offers_take(own_manager(), key, number, window, &stale, &pages) != QUILL_OK) {
        leave_window(window);
        return 0;
    }
    if (stale > 0)
        clear(at, stale);
    struct tern_taken it = { number, (uint8_t *)at, (pages < PAGES_MAX ? pages : PAGES_MAX) * TERN_PAGE_SIZE };
    if (it.len > bytes_max) {
        tern_offer_done(&it);
        return 0;
    }
    *taken = it;
    return 1;
}

void tern_offer_done(struct tern_taken *taken)
{
    /* The offer is there, since this task has taken it. */
    System_Offers_done(own_manager(), own_key(), taken->number);
    leave_window(((uint64_t)taken->bytes - KEY) / WINDOW);
    *taken = (struct tern_taken){ 0, NULL, 0 };
}
