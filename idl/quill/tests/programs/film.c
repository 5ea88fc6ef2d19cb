/* Lists that may be offered (film.idl): both sides of one program, over ipc, where nobody offers anything, and through a door, with functions of the test in
 * the place of the library's. Whatever becomes of an offer, the method sees the bytes, begins once, and nothing is left taken. */

#define STUBS "film.h"
#include "on_tern.h"

enum { PAGES = 6, LEN = PAGES * 4096, STRING_BYTES = 40000 };

static _Alignas(4096) uint8_t film[LEN], other[LEN];
static uint64_t sum_of_film, sum_of_other;

/* --- in the place of the library: offers are those bytes, and nobody copies anything --- */

/* Whether the client's library offers, and how many offers of the next call the server's takes. */
static bool can_offer;
static int can_take = 99;
/* How many are there, and what became of them. */
static int made, withdrawn, taken, done;
static const uint8_t *offered[200];

enum { FIRST_NUMBER = 1000 };

__attribute__((unused)) uint64_t tern_offer(const void *bytes, uint64_t len)
{
    CHECK((uintptr_t)bytes % 4096 == 0 && len % 4096 == 0 && len >= LEN);
    if (!can_offer)
        return 0;
    CHECK(made < 200 && len == LEN);
    offered[made] = bytes;
    return FIRST_NUMBER + (uint64_t)made++;
}

__attribute__((unused)) void tern_offer_withdraw(uint64_t number)
{
    CHECK(number - FIRST_NUMBER < (uint64_t)made);
    withdrawn++;
}

__attribute__((unused)) int tern_offer_take(uint64_t number, uint64_t bytes_max, struct tern_taken *to)
{
    CHECK(bytes_max == 1048576 && to->number == 0);
    if (number - FIRST_NUMBER >= (uint64_t)made || can_take == 0)
        return 0;
    can_take--;
    taken++;
    *to = (struct tern_taken){ number, (uint8_t *)(uintptr_t)offered[number - FIRST_NUMBER], LEN };
    return 1;
}

__attribute__((unused)) void tern_offer_done(struct tern_taken *it)
{
    CHECK(it->number - FIRST_NUMBER < (uint64_t)made);
    done++;
    it->number = 0;
}

/* --- the server --- */

static int begun;
/* Whether `cut` gives back a part of what it was given. */
static bool gives_what_it_was_given;

static uint64_t sum_of(const uint8_t *bytes, uint64_t len)
{
    uint64_t sum = 0;

    while (len > 0)
        sum += bytes[--len];
    return sum;
}

static Cinema_Seen look(const Cinema_Bytes *bytes)
{
    return (Cinema_Seen){ (uintptr_t)bytes->_buffer, sum_of(bytes->_buffer, bytes->_length) };
}

static quill_status show(SELF, const char *title, const Cinema_Bytes *bytes, Cinema_Seen *result, Cinema_Projector_show_raised *raised)
{
    (void)self, (void)from;
    begun++;
    *result = look(bytes);
    raised->Torn.frame = 24;
    return strcmp(title, "torn") == 0 ? 1 : strcmp(title, "nothing") == 0 ? 7 : QUILL_OK;
}

static quill_status both(SELF, const Cinema_Bytes *first, const Cinema_Bytes *second, Cinema_Seen *result)
{
    Cinema_Seen one = look(first), two = look(second);

    (void)self, (void)from;
    begun++;
    *result = (Cinema_Seen){ one.at == (uintptr_t)film && two.at == (uintptr_t)other, one.sum + 1000 * two.sum };
    return QUILL_OK;
}

static quill_status cut(SELF, const Cinema_Bytes *bytes, uint32_t begin, uint32_t count, Cinema_Piece *result)
{
    static uint8_t own[32768];

    (void)self, (void)from;
    begun++;
    CHECK(begin + count <= bytes->_length && count <= sizeof own);
    memcpy(own, bytes->_buffer + begin, count);
    *result = (Cinema_Piece){ count, gives_what_it_was_given ? bytes->_buffer + begin : own };
    return QUILL_OK;
}

static quill_status occupy(SELF, uint32_t places, uint32_t *result)
{
    (void)self, (void)from;
    *result = places;
    return QUILL_OK;
}

/* Nobody asks for another one here. */
static const Cinema_Projector_server methods = { .show = show, .both = both, .cut = cut, .occupy = occupy };

SERVES(Cinema_Projector, methods)

/* --- in the place of the kernel --- */

static ROOM(Cinema_Projector) room;
static Cinema_Projector_replies replies;

/* The last request's words, how many there were, and what is answered if it is not the server's. */
static uint64_t request[QUILL_WORDS];
static int requests;
static uint32_t lie;

/* A block arrives, its strings in buffers of that distance. */
static void arrive(uint64_t *words, uint64_t *to, uint64_t *strings, char *buffers, size_t distance)
{
    const uint64_t *block = (const uint64_t *)(uintptr_t)words[1];
    uint64_t count = words[0] & 0xfff, texts = words[0] >> 12 & 0xff;

    CHECK(words[0] >> 20 == 0 && texts <= 2 && count <= QUILL_ROOM_WORDS);
    memcpy(to, block, 8 * count);
    for (uint64_t i = 0; i < texts; i++) {
        uint64_t bytes = block[count + 2 * i + 1];
        CHECK(bytes <= STRING_BYTES);
        if (bytes > 0)
            memcpy(buffers + i * distance, (const void *)(uintptr_t)block[count + 2 * i], bytes);
        strings[2 * i] = (uintptr_t)(buffers + i * distance);
        strings[2 * i + 1] = (uint64_t)STRING_BYTES << 32 | bytes;
    }
}

#ifdef ON_DOOR
enum { DISTANCE = STRING_BYTES };
#else
enum { DISTANCE = 1048576 + 8 };
#endif

uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    static uint64_t kept[4096];
    tern_uid partner = 7;
    bool in_memory = false;

    (void)there, (void)back;
    CHECK(server == PEER_NUMBER);
    memcpy(request, words, sizeof request);
    requests++;
    if (lie != 0)
        return (uint64_t)lie << 32 | TERN_KIND_REPLY;
    arrive(words, room.words, room.strings, (char *)room.buffers, DISTANCE);
    words[1] = (uintptr_t)&room;
    label = ANSWER(Cinema_Projector, &methods, NULL, &partner, label, words, &room, kept, &in_memory);
    if (!in_memory)
        return (uint64_t)label << 32 | TERN_KIND_REPLY;
    arrive(words, replies.words, replies.strings, (char *)replies.buffers, 0);
    words[1] = (uintptr_t)&replies;
    return (uint64_t)label << 32 | QUILL_IPC_LONG_REPLY_WAIT;
}

uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    tern_uid partner = 7;

    (void)there, (void)back;
    CHECK(server == PEER_NUMBER);
    label = ANSWER(Cinema_Projector, &methods, NULL, &partner, label, words, NULL, NULL, NULL);
    return (uint64_t)label << 32 | TERN_KIND_REPLY;
}

/* --- the client --- */

#define CALL(method, ...) Cinema_Projector_##method(TO(Cinema_Projector), __VA_ARGS__)

/* That so many requests were made and methods begun since the last check, and so many offers made, withdrawn and taken; all that was taken is given back. */
static void check_counts(int line, int asked, int methods_begun, int offers, int back, int looked_at)
{
    bool is_so = requests == asked && begun == methods_begun && made == offers && withdrawn == back && taken == looked_at && done == taken;

    if (!is_so)
        fprintf(stderr, "line %d: %d requests, %d begun, %d made, %d withdrawn, %d taken, %d done\n", line, requests, begun, made, withdrawn,
                taken, done);
    CHECK(is_so);
    requests = begun = made = withdrawn = taken = done = 0;
    can_take = 99;
}

#define COUNTS(...) check_counts(__LINE__, __VA_ARGS__)

/* Offers that are taken, by doors; by ipc there are none, and the bytes are there all the same. */
static void check_taken(void)
{
    bool are_taken = can_offer;
    int one = are_taken;
    Cinema_Bytes whole = { LEN, film }, second = { LEN, other }, part = { LEN - 1, film + 1 }, none = { 0, NULL };
    Cinema_Projector_show_raised raised;
    Cinema_Seen seen;

    CHECK(CALL(show, "whole", &whole, &seen, &raised) == QUILL_OK && seen.sum == sum_of_film);
    CHECK((seen.at == (uintptr_t)film) == are_taken && (request[2] != 0) == are_taken && whole._length == LEN);
    COUNTS(1, 1, one, 0, one);
    CHECK(CALL(both, &whole, &second, &seen) == QUILL_OK && seen.sum == sum_of_film + 1000 * sum_of_other);
    CHECK(seen.at == are_taken);
    COUNTS(1, 1, 2 * one, 0, 2 * one);
    /* Parts of pages, and few of them, are sent. */
    CHECK(CALL(both, &part, &whole, &seen) == QUILL_OK && seen.sum == sum_of_film - film[0] + 1000 * sum_of_film);
    COUNTS(1, 1, one, 0, one);
    part = (Cinema_Bytes){ LEN - 4096, film };
    CHECK(CALL(both, &none, &part, &seen) == QUILL_OK && seen.sum == 1000 * sum_of(film, LEN - 4096));
    CHECK(request[2] == 0 && request[3] == 0);
    COUNTS(1, 1, 0, 0, 0);
    /* A call that fails leaves open whether somebody has taken it. */
    CHECK(CALL(show, "torn", &whole, &seen, &raised) == 1 && raised.Torn.frame == 24);
    COUNTS(1, 1, one, one, one);
    CHECK(CALL(show, "nothing", &whole, &seen, &raised) == 7);
    COUNTS(1, 1, one, one, one);
    CHECK(CALL(show, "caf\303\251", &whole, &seen, &raised) == QUILL_OK && seen.sum == sum_of_film);
    COUNTS(1, 1, one, 0, one);
    CHECK(CALL(show, "caf\351", &whole, &seen, &raised) == QUILL_MALFORMED);
    COUNTS(1, 0, one, one, 0);
    /* Nothing is offered that would be too long to send. */
    whole._length = 1048577;
    CHECK(CALL(show, "long", &whole, &seen, &raised) == QUILL_TOO_LONG);
    COUNTS(0, 0, 0, 0, 0);
}

/* Results do not lie in what may be gone by then; and not in what was sent, either. */
static void check_cut(void)
{
    Cinema_Bytes whole = { LEN, film };
    Cinema_Piece piece;
    int one = can_offer;

    CHECK(CALL(cut, &replies, &whole, 5000, 7000, &piece) == QUILL_OK && piece._length == 7000);
    CHECK(memcmp(piece._buffer, film + 5000, 7000) == 0);
    COUNTS(1, 1, one, 0, one);
    gives_what_it_was_given = true;
#ifdef ON_DOOR
    CHECK(CALL(cut, &replies, &whole, 5000, 7000, &piece) == QUILL_MALFORMED);
    COUNTS(1, 1, one, one, one);
#else
    CHECK(CALL(cut, &replies, &whole, 5000, 7000, &piece) == QUILL_OK && memcmp(piece._buffer, film + 5000, 7000) == 0);
    COUNTS(1, 1, 0, 0, 0);
#endif
    gives_what_it_was_given = false;
}

#ifdef ON_DOOR

/* Offers that are declined, all or one of them: the bytes are sent, and the method begins once. */
static void check_declined(void)
{
    Cinema_Bytes whole = { LEN, film }, second = { LEN, other };
    Cinema_Projector_show_raised raised;
    Cinema_Seen seen;

    can_take = 0;
    CHECK(CALL(show, "declined", &whole, &seen, &raised) == QUILL_OK && seen.sum == sum_of_film && seen.at != (uintptr_t)film);
    COUNTS(2, 1, 1, 1, 0);
    can_take = 0;
    CHECK(CALL(show, "torn", &whole, &seen, &raised) == 1 && raised.Torn.frame == 24);
    COUNTS(2, 1, 1, 1, 0);
    for (can_take = 0; can_take < 2;) {
        int looked_at = can_take;
        CHECK(CALL(both, &whole, &second, &seen) == QUILL_OK && seen.sum == sum_of_film + 1000 * sum_of_other && seen.at == 0);
        COUNTS(2, 1, 2, 2, looked_at);
        can_take = looked_at + 1;
    }
    can_take = 99;
}

#endif

/* A server that says it, whatever it is sent. */
static void check_liar(void)
{
    Cinema_Bytes whole = { LEN, film };
    Cinema_Projector_show_raised raised;
    Cinema_Seen seen;

    lie = QUILL_DECLINED;
    CHECK(CALL(show, "liar", &whole, &seen, &raised) == QUILL_DECLINED);
    COUNTS(1 + can_offer, 0, can_offer, can_offer, 0);
    lie = 0;
    CHECK(QUILL_IS_FAULT(QUILL_DECLINED, 1) && !QUILL_IS_COMM(QUILL_DECLINED));
}

/* Requests that no stub makes: numbers of offers that are not there, or beside bytes, or in messages that are none. */
static void check_hostile(void)
{
    static const uint64_t numbers[] = { 1, FIRST_NUMBER, UINT64_C(1) << 63, UINT64_MAX };
    static const uint32_t labels[] = { 0, UINT32_C(1) << 31 }; /* show, and both */

    for (int i = 0; i < 16; i++) {
        uint64_t block[4] = { (uintptr_t)"title", 5, (uintptr_t)film, i % 2 == 0 ? 0 : 100 };
        uint64_t words[QUILL_WORDS] = { 2 << 12, (uintptr_t)block, numbers[i / 2 % 4], i >= 8 ? numbers[i / 2 % 4] : 0 };
        uint64_t rax = quill_ipc_call_long(PEER_NUMBER, labels[i / 8], words, QUILL_WORDS, QUILL_WORDS);
        CHECK(rax == ((uint64_t)QUILL_DECLINED << 32 | TERN_KIND_REPLY));
        for (int word = 0; word < QUILL_WORDS; word++)
            CHECK(words[word] == 0);
        COUNTS(1, 0, 0, 0, 0);
    }
    /* Damaged requests are refused and not declined. */
    uint64_t block[4] = { (uintptr_t)"caf\351", 4, (uintptr_t)film, 0 };
    uint64_t words[QUILL_WORDS] = { 2 << 12, (uintptr_t)block, 1 };
    CHECK(quill_ipc_call_long(PEER_NUMBER, 0, words, QUILL_WORDS, QUILL_WORDS) == ((uint64_t)QUILL_MALFORMED << 32 | TERN_KIND_REPLY));
    COUNTS(1, 0, 0, 0, 0);
}

int main(void)
{
    uint32_t places;

    for (int i = 0; i < LEN; i++) {
        film[i] = (uint8_t)chance();
        other[i] = (uint8_t)chance();
    }
    sum_of_film = sum_of(film, LEN);
    sum_of_other = sum_of(other, LEN);
    CHECK(CALL(occupy, 3, &places) == QUILL_OK && places == 3);
    for (int round = 0; round < 2; round++) {
        check_taken();
        check_cut();
        check_liar();
        check_hostile();
#ifdef ON_DOOR
        can_offer = true;
        check_declined();
#endif
    }
    return 0;
}
