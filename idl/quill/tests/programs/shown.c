/* The C library's part of offers (user/lib/c/lib/offers.c), with a memory manager and a kernel of the test's own: what is offered and taken, in which window, and
 * what is declined. */

#define QUILL_OWN_IPC
#include <stdbool.h>
#include <sys/mman.h>

#include "check.h"
#include <tern.h>

/* Other calls than this one nobody makes. */
#define MAY_BE __attribute__((weak))
uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back);
MAY_BE uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back);
MAY_BE uint64_t quill_ipc_call_pages(tern_uid server, uint32_t label, uint64_t *words, tern_fpage item, tern_fpage window);
MAY_BE uint32_t quill_ipc_send(tern_uid server, uint32_t label, const uint64_t *words);
MAY_BE uint32_t quill_ipc_send_long(tern_uid server, uint32_t label, const uint64_t *words);

static int own_control(uint32_t call, uint32_t operation, uint64_t words[6]);
#define tern_control own_control
#include "offers.c"

enum { MANAGER = 77, THE_KEY = 4711, OFFERS_MAX = 64 };

/* --- the kernel --- */

static uint64_t quota = 1000, used = 100;
/* The flexpage that was flushed last. */
static tern_fpage flushed;

static int own_control(uint32_t call, uint32_t operation, uint64_t words[6])
{
    if (call == TERN_TASK_CONTROL && operation == TERN_TASK_SELF) {
        words[2] = MANAGER;
    } else if (call == TERN_TASK_CONTROL && operation == TERN_TASK_INFO) {
        words[0] = quota, words[1] = used;
    } else {
        CHECK(call == TERN_FLUSH && words[1] == TERN_FLUSH_SELF);
        flushed = words[0];
    }
    return TERN_OK;
}

/* --- the manager: offers by their numbers, and what becomes of them --- */

static bool has_key = true;
static uint64_t pages_of[OFFERS_MAX], window_of[OFFERS_MAX];
static uint64_t offers, stale_pages;
static int over;

static quill_status key(void *self, tern_uid from, uint64_t *result)
{
    (void)self, (void)from;
    *result = KEY;
    return has_key ? QUILL_OK : 4;
}

static quill_status offer(void *self, tern_uid from, uint64_t its, uint64_t address, uint64_t pages, uint64_t *result)
{
    (void)self, (void)from;
    CHECK(its == THE_KEY && address % 4096 == 0 && pages > 0 && pages <= 256 && offers + 1 < OFFERS_MAX);
    pages_of[++offers] = pages;
    window_of[offers] = 0;
    *result = offers;
    return QUILL_OK;
}

static quill_status take(void *self, tern_uid from, uint64_t its, uint64_t number, uint64_t at, uint64_t *stale, uint64_t *result)
{
    (void)self, (void)from;
    CHECK(its == THE_KEY && at >= 1 && at <= 15);
    if (number == 0 || number > offers || pages_of[number] == 0 || window_of[number] != 0)
        return 4;
    for (uint64_t other = 1; other <= offers; other++)
        CHECK(pages_of[other] == 0 || window_of[other] != at);
    window_of[number] = at;
    *stale = stale_pages;
    *result = pages_of[number];
    return QUILL_OK;
}

static quill_status done(void *self, tern_uid from, uint64_t its, uint64_t number)
{
    (void)self, (void)from;
    CHECK(its == THE_KEY && number <= offers && window_of[number] != 0);
    pages_of[number] = 0;
    over++;
    return QUILL_OK;
}

static quill_status withdraw(void *self, tern_uid from, uint64_t its, uint64_t number)
{
    (void)self, (void)from;
    CHECK(its == THE_KEY && number <= offers);
    if (window_of[number] == 0)
        pages_of[number] = 0;
    return QUILL_OK;
}

static const System_Offers_server methods = { key, offer, take, done, withdraw };

uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    tern_uid partner = 7;

    (void)there, (void)back;
    CHECK(server == MANAGER);
    label = quill_answer(System_Offers_dispatch, &methods, NULL, &partner, label, words, NULL, NULL, NULL);
    return label == 0 ? QUILL_DONE : (uint64_t)label << 32 | TERN_KIND_REPLY;
}

/* --- the tests --- */

static uint8_t *memory_at(uint64_t address, uint64_t len)
{
    void *got = mmap((void *)address, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

    CHECK(got == (void *)address);
    return got;
}

/* Without kernel memory nobody asks, and the answer is not remembered; a manager without offers is not asked again. */
static void check_key(const uint8_t *heap)
{
    used = quota;
    CHECK(tern_offer(heap, 4096) == 0);
    used = 100;
    CHECK(own_key() == THE_KEY && offers == 0);
    has_key = false;
    CHECK(tern_offer(heap, 4096) == 1);
    tern_offer_withdraw(1);
    CHECK(pages_of[1] == 0);
}

static void check_offers(const uint8_t *heap)
{
    uint64_t before = offers;

    CHECK(tern_offer(heap + 1, 4096) == 0 && tern_offer(heap, 4095) == 0 && tern_offer(heap, 0) == 0);
    CHECK(tern_offer(heap, 257 * 4096) == 0 && tern_offer(heap, UINT64_MAX & ~4095ul) == 0);
    CHECK(tern_offer((void *)MEMORY_END, 4096) == 0 && tern_offer((void *)(MEMORY_END - 4096), 8192) == 0);
    CHECK(tern_offer((void *)-4096l, 8192) == 0);
    CHECK(offers == before);
    CHECK(tern_offer(heap, 256 * 4096) == before + 1 && pages_of[before + 1] == 256);
    tern_offer_withdraw(before + 1);
    /* Pages that are lent, whole and in part, across the borders of words. */
    tern_memory_lent(heap + 63 * 4096 + 4095, 2);
    tern_memory_lent(heap + 200 * 4096, 4096);
    tern_memory_lent(heap + 210 * 4096, 0);
    tern_memory_lent((void *)(MEMORY_END - 1), UINT64_MAX);
    tern_memory_lent((void *)MEMORY_END, 1);
    for (uint64_t page = 0; page < 256; page++) {
        uint64_t number = page % 20 == 0 || page > 195 || (page > 60 && page < 68) ? tern_offer(heap + page * 4096, 4096) : 1;
        CHECK((number == 0) == (page == 63 || page == 64 || page == 200));
        offers = before;
    }
    CHECK(tern_offer(heap + 61 * 4096, 8 * 4096) == 0 && tern_offer(heap + 65 * 4096, 8 * 4096) != 0);
    offers = before;
}

/* Each in a window of its own, as many as there are. */
static void check_taking(const uint8_t *heap)
{
    struct tern_taken taken[16] = { { 0, NULL, 0 } };
    uint64_t first = offers + 1;

    for (uint64_t i = 0; i < 15; i++) {
        CHECK(tern_offer(heap, 4096 * (1 + i)) == first + i && tern_offer_take(first + i, 1 << 20, &taken[i]));
        CHECK(taken[i].number == first + i && taken[i].bytes == (uint8_t *)KEY + (1 + i) * WINDOW && taken[i].len == 4096 * (1 + i));
        CHECK(!tern_offer_take(first + i, 1 << 20, &taken[15]) && taken[15].number == 0);
    }
    CHECK(flushed == 0 && tern_offer(heap, 4096) == first + 15 && !tern_offer_take(first + 15, 1 << 20, &taken[15]));
    /* The lowest that is free; what may be mapped there from before is given back. */
    tern_offer_done(&taken[11]);
    tern_offer_done(&taken[4]);
    CHECK(over == 2 && taken[4].number == 0);
    stale_pages = 5;
    CHECK(tern_offer_take(first + 15, 4096, &taken[15]) && taken[15].bytes == (uint8_t *)KEY + 5 * WINDOW);
    CHECK(flushed == TERN_FPAGE_MEMORY(KEY + 5 * WINDOW, 15, 7));
    stale_pages = 0;
    /* One that is longer than it may be is over. */
    CHECK(tern_offer(heap, 8192) == first + 16 && !tern_offer_take(first + 16, 4096, &taken[4]) && over == 3);
    /* Kernel memory for all windows in use, and the next one. */
    used = quota - 16 - 14 * FRAMES_OF_WINDOW;
    CHECK(!tern_offer_take(0, 4096, &taken[4]) && tern_offer(heap, 4096) == first + 17);
    used = quota - 15 - 15 * FRAMES_OF_WINDOW;
    CHECK(!tern_offer_take(first + 17, 4096, &taken[4]));
    used--;
    CHECK(tern_offer_take(first + 17, 4096, &taken[4]) && taken[4].bytes == (uint8_t *)KEY + 12 * WINDOW);
    for (int i = 0; i < 16; i++)
        if (taken[i].number != 0)
            tern_offer_done(&taken[i]);
    CHECK(windows_used == 1);
}

int main(void)
{
    uint8_t *heap = memory_at(0x10000000, 256 * 4096);

    *(uint64_t *)memory_at(KEY, 4096) = THE_KEY;
    check_key(heap);
    check_offers(heap);
    check_taking(heap);
    return 0;
}
