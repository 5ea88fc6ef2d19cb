/* References over doors, and pages that come back, with functions in the kernel's place: both sides in one program, on one thread of each. What a message hands over
 * arrives in the receiver's window; no number is left over, whatever becomes of it. */

#define STUBS "references.h"
#include "on_tern.h"

/* The library's numbers, as they are; what it releases, the test hears of. */
#define tern_door_release(number) released(number)
#include "numbers.c"

#define FIRST 100
#define NONE (TERN_NO_SUCH)

static uint64_t used[1];
static unsigned releases;
static uint32_t last_released;

int released(uint32_t number)
{
    releases++;
    last_released = number;
    return TERN_OK;
}

/* Where what is handed over arrives, on each side; and which side runs. */
static tern_fpage windows[2];
static bool on_server;

tern_fpage quill_set_window(tern_fpage window)
{
    tern_fpage before = windows[on_server];

    windows[on_server] = window;
    return before;
}

/* --- the object --- */

static R kept;
static quill_status outcome;
static char heard[100];

static quill_status lend(void *self, R it, int32_t x, int32_t *result)
{
    (void)self;
    *result = x + (int32_t)it.view;
    tern_release(it.number);
    return outcome;
}

static quill_status keep(void *self, R it)
{
    (void)self;
    kept = it;
    return outcome;
}

static quill_status bind(void *self, const char *who, R it)
{
    strcpy(heard, who);
    return keep(self, it);
}

static quill_status give(void *self, E how, E *same, R *result)
{
    (void)self;
    *result = kept;
    *same = how == E_b ? (E)77 : how;
    return outcome;
}

static quill_status turn(void *self, R *it)
{
    (void)self;
    R old = *it;
    *it = kept;
    kept = old;
    return outcome;
}

static tern_fpage shown;

static quill_status show(void *self, uint64_t at, uint8_t *kind, tern_fpage *result)
{
    (void)self;
    *kind = (uint8_t)at;
    *result = shown;
    return outcome;
}

static quill_status find(void *self, const char *who, R it, tern_fpage *page, int32_t *scale)
{
    strcpy(heard, who);
    *page = shown;
    return lend(self, it, *scale, scale);
}

static const O_server methods = { lend, keep, bind, give, turn, show, find };
O_ENTRY(entry, methods, NULL)

/* --- the kernel --- */

static struct room room;
/* Whether a client leaves the right to call out, so that nothing arrives. */
static bool brings_nothing;

static uint64_t deliver(uint64_t rax, uint64_t *words)
{
    tern_fpage item = 0;

    on_server = true;
    if ((rax & TERN_NO_ITEM) == 0 && (rax & QUILL_NO_BLOCK) != 0)
        item = words[6], words[6] = (windows[1] & ~(tern_fpage)0xf) | (brings_nothing ? 0 : item & 0xf);
    rax = through_door(entry, NULL, rax, words);
    on_server = false;
    if ((rax & TERN_NO_ITEM) == 0)
        words[6] = (windows[0] & ~(tern_fpage)0xf) | (words[6] & 0xf);
    return rax;
}

uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    uint64_t rax;

    (void)there, (void)back;
    if (server != PEER_NUMBER)
        return NONE;
    rax = deliver((uint64_t)label << 32 | TERN_DOOR_CALL, words);
    return (uint32_t)rax >> 31 == 0 ? rax : rax ^ QUILL_DOOR_KIND;
}

uint64_t quill_door_call_item(uint32_t door, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    (void)there, (void)back;
    if (door != PEER_NUMBER)
        return NONE;
    return deliver((uint64_t)label << 32 | (TERN_DOOR_CALL & ~TERN_NO_ITEM), words);
}

/* One string and one item; the room is for that. */
uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    const uint64_t *block = (const uint64_t *)(uintptr_t)words[1];
    uint64_t rax;

    (void)there, (void)back;
    CHECK(server == PEER_NUMBER && words[0] == (1 << 12 | 1 << 20));
    memcpy(room.buffers, (const char *)(uintptr_t)block[0], block[1]);
    room.strings[0] = (uintptr_t)room.buffers;
    room.strings[1] = UINT64_C(100) << 32 | block[1];
    room.strings[2] |= block[2] & 0xf;
    room.strings[3] = block[3];
    words[0] |= UINT64_C(1) << 44 | UINT64_C(1) << 52;
    words[1] = (uintptr_t)&room;
    rax = deliver((uint64_t)label << 32 | (QUILL_DOOR_LONG_CALL & ~TERN_NO_ITEM), words);
    return rax ^ QUILL_DOOR_KIND;
}

/* --- the client --- */

static const O o = { PEER_NUMBER, 0 }, nowhere = { 77, 0 };

static R fresh(void)
{
    return (R){ tern_number_take(&tern_arrivals), 9 };
}

/* That so many numbers are in use: two are the server's. */
#define IN_USE(count) CHECK(tern_numbers_in_use(&tern_arrivals) == 2 + (count))

static void check_lent(void)
{
    R it = fresh(), own = { 5, 1 };
    int32_t found;

    IN_USE(1);
    releases = 0;
    CHECK(O_lend(o, it, 33, &found) == QUILL_OK && found == 42 && releases == 1);
    outcome = 99;
    CHECK(O_lend(o, own, 33, &found) == 99 && releases == 2);
    outcome = QUILL_OK;
    brings_nothing = true;
    CHECK(O_lend(o, it, 33, &found) == QUILL_MALFORMED && releases == 3);
    brings_nothing = false;
    CHECK(O_lend(nowhere, it, 33, &found) == QUILL_KERNEL + NONE && releases == 3);
    IN_USE(1);
    tern_release(it.number);
    IN_USE(0);
}

static void check_given(void)
{
    static char long_text[200];
    R it = fresh();

    memset(long_text, 'x', sizeof long_text - 1);
    CHECK(O_keep(o, it) == QUILL_OK && kept.view == 9 && kept.number != it.number);
    IN_USE(1);
    tern_release(kept.number);
    CHECK(O_keep(nowhere, fresh()) == QUILL_KERNEL + NONE);
    IN_USE(0);
    /* Beside a text, which may be wrong, or need a second look. */
    CHECK(O_bind(o, "caf\303\251", fresh()) == QUILL_OK && strcmp(heard, "caf\303\251") == 0 && kept.view == 9);
    IN_USE(1);
    tern_release(kept.number);
    CHECK(O_bind(o, "caf\351", fresh()) == QUILL_MALFORMED);
    CHECK(O_bind(o, long_text, fresh()) == QUILL_TOO_LONG);
    IN_USE(0);
    /* What is the program's own stays. */
    releases = 0;
    CHECK(O_keep(o, (R){ 5, 2 }) == QUILL_OK && kept.view == 2 && releases == 0);
    tern_release(kept.number);
}

static void check_result(void)
{
    R got;
    E same;
    uint32_t given;

    kept = fresh();
    given = kept.number;
    CHECK(O_give(o, E_a, &same, &got) == QUILL_OK && got.view == 9 && got.number != given && same == E_a);
    CHECK(quill_number_at(windows[1]) == given && windows[0] == 0);
    IN_USE(1);
    tern_release(got.number);
    /* An object of its own leaves as it is: nothing becomes a window. */
    kept = (R){ 5, 4 };
    CHECK(O_give(o, E_a, &same, &got) == QUILL_OK && got.view == 4 && quill_number_at(windows[1]) == given);
    tern_release(got.number);
    IN_USE(0);
    /* A method that says nothing, or what is no value, or fails; a return that does not arrive. */
    kept = (R){ 0, 0 };
    CHECK(O_give(o, E_a, &same, &got) == QUILL_MALFORMED && got.number == 0);
    kept = fresh();
    CHECK(O_give(o, E_b, &same, &got) == QUILL_MALFORMED && last_released != kept.number);
    outcome = 98;
    CHECK(O_give(o, E_a, &same, &got) == 98 && O_give(nowhere, E_a, &same, &got) == QUILL_KERNEL + NONE);
    outcome = QUILL_OK;
    IN_USE(0);
    kept = fresh();
    undelivered = 1;
    releases = 0;
    CHECK(O_give(o, E_a, &same, &got) != QUILL_OK && undelivered == 0);
    /* The server's window was released, then what was given, then the client's place. */
    CHECK(releases == 3 && quill_number_at(windows[1]) == kept.number);
    IN_USE(0);
    /* No number is left for what would come. */
    used[0] |= ~UINT64_C(0) << 3;
    for (uint32_t number; (number = tern_number_take(&tern_arrivals)) != 0;)
        ;
    CHECK(O_give(o, E_a, &same, &got) == QUILL_KERNEL + TERN_LIMIT);
    used[0] = UINT64_C(1) << (quill_number_at(windows[1]) - FIRST) | UINT64_C(1) << (quill_number_at(room.strings[2]) - FIRST);
}

static void check_turned(void)
{
    R it = fresh();

    kept = (R){ tern_number_take(&tern_arrivals), 3 };
    IN_USE(2);
    CHECK(O_turn(o, &it) == QUILL_OK && it.view == 3 && kept.view == 9);
    IN_USE(2);
    R before = it;
    CHECK(O_turn(nowhere, &it) == QUILL_KERNEL + NONE && it.number == before.number);
    tern_release(it.number);
    tern_release(kept.number);
    IN_USE(0);
}

/* Pages go from a method to where the client wants them, and no number is for them. */
static void check_shown(void)
{
    static const tern_fpage malformed[] = {
        0, TERN_FPAGE_MEMORY(0, 11, TERN_R), TERN_FPAGE_MEMORY(0, 48, TERN_R), UINT64_C(0x1000) | 13 << 4 | TERN_R,
        UINT64_C(1) << 47 | 12 << 4 | TERN_R, UINT64_C(1) << 63 | 47 << 4 | TERN_R, TERN_FPAGE_PORTS(0, 17), UINT64_C(0x10000000) | 1 << 10,
        TERN_FPAGE_DOORS(FIRST, 0, TERN_R),
    };
    const tern_fpage window = TERN_FPAGE_MEMORY(0x400000, 13, TERN_R | TERN_W);
    tern_fpage got = 0, before = windows[0];
    R it = fresh();
    uint8_t kind;
    int32_t scale = 4;

    releases = 0;
    shown = TERN_FPAGE_MEMORY(0x10000, 13, TERN_R) | TERN_GRANT;
    CHECK(O_show(o, window, 7, &kind, &got) == QUILL_OK && kind == 7 && windows[0] == before);
    CHECK(got == (TERN_FPAGE_MEMORY(0x400000, 13, TERN_R) | TERN_GRANT));
    shown = TERN_FPAGE_PORTS(0x3f8, 3);
    CHECK(O_show(o, window, 7, &kind, &got) == QUILL_OK && (got & 0xf) == (TERN_R | TERN_W) && releases == 0);
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        shown = malformed[i];
        CHECK(O_show(o, window, 7, &kind, &got) == QUILL_MALFORMED);
    }
    /* The interface says that they are not given away. */
    shown = TERN_FPAGE_MEMORY(0, 47, TERN_R | TERN_W) | TERN_GRANT;
    CHECK(O_find(o, window, "caf\303\251", it, &got, &scale) == QUILL_OK && strcmp(heard, "caf\303\251") == 0);
    CHECK(scale == 13 && got == window && releases == 1);
    outcome = 98;
    CHECK(O_show(o, window, 7, &kind, &got) == 98 && O_find(o, window, "a", it, &got, &scale) == 98);
    outcome = QUILL_OK;
    CHECK(O_show(nowhere, window, 7, &kind, &got) == QUILL_KERNEL + NONE && windows[0] == before);
    undelivered = 1;
    CHECK(O_show(o, window, 7, &kind, &got) != QUILL_OK && undelivered == 0 && releases == 2);
    IN_USE(1);
    tern_release(it.number);
}

/* What is handed over where nobody wants it, and the other way round. */
static void check_refused(void)
{
    static const uint32_t labels[] = { 0, 0x80000000, 0x40000000, 0xc0000000, 0x20000000, 0xa0000000, UINT32_MAX };

    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        uint64_t words[QUILL_WORDS] = { 0 }, kind = TERN_DOOR_CALL, rax = (uint64_t)labels[i] << 32;
        bool wants = i == 0 || i == 1 || i == 4, wants_in_memory = i == 2;
        releases = 0;
        words[6] = windows[1] | TERN_R;
        if (!wants) {
            rax = deliver(rax | (kind & ~TERN_NO_ITEM), words);
            CHECK((uint32_t)rax == TERN_DOOR_RETURN && rax >> 32 >= QUILL_MALFORMED && releases == 1);
        }
        if (!wants_in_memory) {
            uint64_t others[QUILL_WORDS] = { UINT64_C(1) << 44 | 1 << 20, (uintptr_t)&room };
            releases = 0;
            rax = deliver((uint64_t)labels[i] << 32 | (QUILL_DOOR_LONG_CALL & ~TERN_NO_ITEM), others);
            CHECK((uint32_t)rax == TERN_DOOR_RETURN && rax >> 32 >= QUILL_MALFORMED && releases == 1);
            CHECK(last_released == quill_number_at(room.strings[2]));
        }
        if (wants || wants_in_memory) {
            uint64_t others[QUILL_WORDS] = { 0 };
            CHECK(deliver((uint64_t)labels[i] << 32 | TERN_DOOR_CALL, others) >> 32 == QUILL_MALFORMED);
        }
    }
    IN_USE(0);
}

int main(void)
{
    tern_arrivals = (struct tern_numbers){ FIRST, 64, used };
    windows[1] = quill_window_at(tern_number_take(&tern_arrivals));
    room.strings[2] = quill_window_at(tern_number_take(&tern_arrivals));
    for (int round = 0; round < 3; round++) {
        check_lent();
        check_given();
        check_result();
        check_turned();
        check_shown();
        check_refused();
    }
    return 0;
}
