/* Both sides of depot.idl, without a kernel between them: pages arrive in the window of who receives them, all of them or
 * not. Then requests that no client sends. */

#include <tern.h>

#define QUILL_OWN_IPC
static uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back);
static uint64_t quill_ipc_call_pages(tern_uid server, uint32_t label, uint64_t *words, tern_fpage item, tern_fpage window);
static uint32_t quill_ipc_send_pages(tern_uid server, uint32_t label, uint64_t *words, tern_fpage item);
#include "depot.h"
#include "check.h"

#define BLOCK TERN_FPAGE_MEMORY(0x40000, 13, TERN_R | TERN_W)
#define WINDOW TERN_FPAGE_MEMORY(0x7000000, 16, TERN_R | TERN_W)
#define SERVER_WINDOW 0x9000000

/* --- the server --- */

static tern_fpage seen, given;
static int32_t calls, left = 3;

static quill_status count(void *self, tern_uid from, Depot_Sort which, bool empty, uint32_t *result)
{
    (void)self;
    CHECK(from == 7 && which <= Depot_WOOD);
    calls++;
    *result = which * 10 + empty;
    return QUILL_OK;
}

static quill_status give(void *self, tern_uid from, tern_fpage block, int32_t which, Depot_Store_give_raised *raised)
{
    (void)self;
    CHECK(from == 7 && block != 0);
    calls++;
    seen = block;
    if (which > left) {
        raised->Full.left = left;
        return 1;
    }
    return which == -1 ? 78 : QUILL_OK;
}

static quill_status show(void *self, tern_uid from, uint64_t number, uint8_t *size, tern_fpage *result)
{
    (void)self, (void)from;
    calls++;
    *size = (uint8_t)(12 + number % 8);
    *result = number == 0 ? 0 : TERN_FPAGE_MEMORY(number << 24, *size, TERN_R);
    return QUILL_OK;
}

static quill_status swap(void *self, tern_uid from, tern_fpage block, int32_t *key, tern_fpage *result)
{
    (void)self, (void)from;
    CHECK(block != 0);
    calls++;
    *result = block | TERN_GRANT;
    *key = -*key;
    return QUILL_OK;
}

static quill_status drop(void *self, tern_uid from, tern_fpage block, int16_t why)
{
    (void)self, (void)from;
    CHECK(block != 0);
    calls++;
    seen = block + (uint64_t)why;
    return QUILL_OK;
}

static const Depot_Store_server methods = { count, give, show, swap, drop };

/* --- instead of a kernel --- */

/* Only a part of the pages arrives: there, and back. */
static bool short_there, short_back;

static tern_fpage arrived(tern_fpage item, uint64_t where)
{
    given = item;
    return (item & 0x3f7) | where;
}

static uint64_t exchange(uint32_t sent, uint32_t label, uint64_t *words, tern_fpage item, tern_fpage window)
{
    struct tern_message message = { sent, label, 7, { 0 } };
    uint32_t kind = TERN_KIND_REPLY;
    tern_fpage pages;

    memcpy(message.words, words, sizeof message.words);
    if (item != 0) {
        message.kind &= ~(TERN_NO_ITEM | (short_there ? TERN_ITEM_WHOLE : 0));
        message.words[6] = arrived(item, SERVER_WINDOW);
        message.words[7] = 0;
    }
    pages = quill_answer_pages(Depot_Store_dispatch, &methods, NULL, &message);
    if (message.partner == TERN_NIL)
        return 0;
    CHECK(message.partner == 7);
    memcpy(words, message.words, sizeof message.words);
    if (pages != 0) {
        CHECK(message.label == UINT32_MAX && window != 0);
        kind &= ~(TERN_NO_ITEM | (short_back ? TERN_ITEM_WHOLE : 0));
        words[6] = arrived(pages, window & ~0xfffull);
        words[7] = 0;
    }
    return (uint64_t)message.label << 32 | kind;
}

static uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    CHECK(server == 3 && there <= 8 && back <= 8);
    return exchange(TERN_KIND_REQUEST, label, words, 0, 0);
}

static uint64_t quill_ipc_call_pages(tern_uid server, uint32_t label, uint64_t *words, tern_fpage item, tern_fpage window)
{
    CHECK(server == 3);
    return exchange(TERN_KIND_REQUEST, label, words, item, window);
}

static uint32_t quill_ipc_send_pages(tern_uid server, uint32_t label, uint64_t *words, tern_fpage item)
{
    /* As the kernel marks a message for whose answer nobody waits. */
    CHECK(server == 3 && exchange(TERN_KIND_REPLY, label, words, item, 0) == 0);
    return QUILL_OK;
}

/* --- the client --- */

static void good(void)
{
    Depot_Store_give_raised raised;
    tern_fpage page = 0;
    uint32_t found = 0;
    uint8_t size = 0;
    int32_t key = 5;

    CHECK(Depot_Store_count(3, Depot_WOOD, true, &found) == QUILL_OK && found == 11);
    CHECK(Depot_Base_count(3, Depot_STONE, true, &found) == QUILL_OK && found == 1);
    CHECK(Depot_Store_give(3, BLOCK, 2, &raised) == QUILL_OK);
    CHECK(given == (BLOCK | TERN_GRANT) && seen == ((BLOCK & 0x3f7) | SERVER_WINDOW));
    CHECK(Depot_Store_give(3, BLOCK, 4, &raised) == 1 && raised.Full.left == 3);
    CHECK(Depot_Store_give(3, BLOCK, -1, &raised) == 78);
    CHECK(Depot_Store_show(3, WINDOW, 3, &size, &page) == QUILL_OK && size == 15);
    CHECK(page == TERN_FPAGE_MEMORY(0x7000000, 15, TERN_R) && given == TERN_FPAGE_MEMORY(3 << 24, 15, TERN_R));
    CHECK(Depot_Store_swap(3, WINDOW, BLOCK, &key, &page) == QUILL_OK && key == -5);
    CHECK((given & TERN_GRANT) != 0 && page == TERN_FPAGE_MEMORY(0x7000000, 13, TERN_R | TERN_W));
    CHECK(Depot_Store_drop(3, BLOCK | TERN_GRANT, 9) == QUILL_OK);
    CHECK(given == BLOCK && seen == ((BLOCK & 0x3f7) | SERVER_WINDOW) + 9);
}

static void bad(void)
{
    Depot_Store_give_raised raised;
    tern_fpage page;
    uint8_t size;
    int32_t key = 5, before = calls;

    /* Nothing where something has to be. */
    CHECK(Depot_Store_swap(3, WINDOW, 0, &key, &page) == QUILL_MALFORMED && calls == before);
    short_there = true;
    CHECK(Depot_Store_give(3, BLOCK, 2, &raised) == QUILL_MALFORMED && calls == before);
    short_there = false;
    CHECK(Depot_Store_show(3, WINDOW, 0, &size, &page) == QUILL_MALFORMED && calls == before + 1);
    short_back = true;
    CHECK(Depot_Store_show(3, WINDOW, 1, &size, &page) == QUILL_PAGES_SHORT);
    short_back = false;
}

/* Whatever comes is answered, if it is a request; and only a reply that succeeds has pages. */
static void damage(void)
{
    static const uint32_t labels[] = { 0, 0x80000000, 0x40000000, 0xc0000000, 0x20000000 };
    static const uint32_t kinds[] = { TERN_KIND_FAULT, TERN_KIND_EXCEPTION, TERN_KIND_INTERRUPT, TERN_KIND_REPLY };
    int refused = 0, silent = 0;

    for (int round = 0; round < 200000; round++) {
        uint32_t clear = (chance() % 2 ? TERN_NO_ITEM : 0) | (chance() % 4 ? 0 : TERN_ITEM_WHOLE) | (chance() % 8 ? 0 : QUILL_NO_BLOCK);
        uint32_t kind = chance() % 16 ? TERN_KIND_REQUEST : kinds[chance() % 4];
        uint32_t label = labels[chance() % 5] ^ (chance() % 16 ? 0 : (uint32_t)chance());
        struct tern_message message = { kind & ~clear, label, 7, { 0 } };
        int32_t before = calls;

        for (int i = 0; i < 8; i++)
            message.words[i] = chance() % 2 ? chance() % 4 : chance();
        tern_fpage pages = quill_answer_pages(Depot_Store_dispatch, &methods, NULL, &message);
        CHECK(pages == 0 || message.label == UINT32_MAX);
        if (message.partner == TERN_NIL) {
            silent++;
            CHECK(pages == 0 && kind != TERN_KIND_REQUEST);
            CHECK(calls == before || (kind == TERN_KIND_REPLY && label == 0x20000000));
            continue;
        }
        CHECK(kind == TERN_KIND_REQUEST && (calls > before || message.label >= QUILL_MALFORMED));
        if (message.label == QUILL_MALFORMED || message.label == QUILL_NO_METHOD) {
            refused++;
            for (int i = 0; i < 8; i++)
                CHECK(message.words[i] == 0 && calls == before);
        }
        CHECK((clear & QUILL_NO_BLOCK) == 0 || message.label == QUILL_MALFORMED);
    }
    CHECK(refused > 50000 && silent > 5000);
}

int main(void)
{
    good();
    bad();
    damage();
    good();
    return 0;
}
