/* Lists that are offered as pages, in C (row D13): a projector that takes what its clients offer, and a client of one in Rust and of its own. The Rust half is
 * tests/guest/stub-test/src/film_in_c.rs, which starts this program; the two hand each other their projectors and use them at the same time. */

#include <malloc.h>
#include <stdlib.h>

#include <tern.h>

#include <door/film.h>

enum { PROJECTOR = 1, NUMBERS = 64, PLACES = 15, PAGES = 16, PAGE = 4096, LEN = PAGES * PAGE };

/* Where the library shows what is offered: user/lib/rt/src/layout.rs. */
static const uint64_t shown = 0x3b000000, shown_end = 0x3c000000;

static uint64_t arrived[NUMBERS / 64];
static int failures;

static void check_at(int line, int is_so, const char *what)
{
    if (!is_so) {
        printf("FILM-C FAILED: line %d: %s\n", line, what);
        failures++;
    }
}

#define CHECK(condition) check_at(__LINE__, condition, #condition)

static uint64_t sum_of(const uint8_t *bytes, uint64_t len)
{
    uint64_t sum = 0;

    while (len > 0)
        sum += bytes[--len];
    return sum;
}

static int is_shown(uint64_t at)
{
    return at >= shown && at < shown_end;
}

/* Pages of this program's own, of which each has other bytes; NULL if there is no memory. */
static uint8_t *film_of(uint64_t pages, uint8_t seed)
{
    uint8_t *bytes = memalign(PAGE, pages * PAGE);

    for (uint64_t i = 0; bytes != NULL && i < pages * PAGE; i++)
        bytes[i] = (uint8_t)(i / PAGE + i % 7) ^ seed;
    return bytes;
}

/* --- the projector --- */

static Cinema_Seen look(const Cinema_Bytes *film)
{
    return (Cinema_Seen){ (uintptr_t)film->_buffer, sum_of(film->_buffer, film->_length) };
}

static quill_status show(void *self, const char *title, const Cinema_Bytes *film, Cinema_Seen *result, Cinema_Projector_show_raised *raised)
{
    (void)self;
    *result = look(film);
    if (strcmp(title, "torn") == 0) {
        raised->Torn.frame = 24;
        return 1;
    }
    /* Nobody else sees what a method writes. */
    if (strcmp(title, "painted") == 0)
        for (uint32_t i = 0; i < film->_length; i += PAGE)
            film->_buffer[i] = 99;
    return QUILL_OK;
}

static quill_status both(void *self, const Cinema_Bytes *first, const Cinema_Bytes *second, Cinema_Seen *result)
{
    Cinema_Seen one = look(first), two = look(second);

    (void)self;
    *result = (Cinema_Seen){ is_shown(one.at) && is_shown(two.at), one.sum + 1000 * two.sum };
    return QUILL_OK;
}

static quill_status cut(void *self, const Cinema_Bytes *film, uint32_t from, uint32_t count, Cinema_Piece *result)
{
    static uint8_t piece[32768];

    (void)self;
    if (count > sizeof piece || from > film->_length || count > film->_length - from)
        return 5;
    /* A result must not lie in what may be gone by then. */
    *result = (Cinema_Piece){ count, from == 0 ? film->_buffer : piece };
    memcpy(piece, film->_buffer + from, count);
    return QUILL_OK;
}

static quill_status next(void *self, const Cinema_Bytes *film, Cinema_Projector *result)
{
    (void)self, (void)film;
    *result = (Cinema_Projector){ PROJECTOR, 0 };
    return QUILL_OK;
}

/* Places that are kept, by offers of this program's own. */
static struct tern_taken kept[PLACES];

static quill_status occupy(void *self, uint32_t places, uint32_t *result)
{
    static uint8_t film[PAGE] __attribute__((aligned(PAGE)));

    (void)self;
    film[0] = 1;
    for (int i = 0; i < PLACES; i++)
        if (kept[i].number != 0)
            tern_offer_done(&kept[i]);
    for (*result = 0; *result < places && *result < PLACES; ++*result) {
        uint64_t number = tern_offer(film, PAGE);
        if (number == 0 || !tern_offer_take(number, PAGE, &kept[*result])) {
            tern_offer_withdraw(number);
            break;
        }
    }
    return QUILL_OK;
}

static const Cinema_Projector_server methods = { show, both, cut, next, occupy };
Cinema_Projector_ENTRY(projector_entry, methods, NULL)

/* --- a client --- */

static Cinema_Projector_replies replies;

/* Calls a projector with what is offered and what is not; says whether offers are to be taken. */
static void call_with_films(Cinema_Projector projector, int are_taken)
{
    uint8_t *bytes = film_of(PAGES, 9), *more = film_of(PAGES, 200);
    Cinema_Bytes film = { LEN, bytes }, part = { LEN - 1, bytes + 1 }, few = { 5 * PAGE, bytes }, other = { LEN, more };
    uint64_t sum = sum_of(bytes, LEN), others = sum_of(more, LEN);
    Cinema_Projector_show_raised raised;
    Cinema_Seen seen = { 0, 0 };

    for (int round = 0; round < 3; round++) {
        CHECK(Cinema_Projector_show(projector, "whole", &film, &seen, &raised) == QUILL_OK && seen.sum == sum);
        CHECK(is_shown(seen.at) == are_taken && film._length == LEN && film._buffer == bytes);
        CHECK(Cinema_Projector_show(projector, "part", &part, &seen, &raised) == QUILL_OK && seen.sum == sum - bytes[0]);
        CHECK(!is_shown(seen.at));
        CHECK(Cinema_Projector_show(projector, "few", &few, &seen, &raised) == QUILL_OK && seen.sum == sum_of(bytes, 5 * PAGE));
        CHECK(!is_shown(seen.at));
        CHECK(Cinema_Projector_show(projector, "torn", &film, &seen, &raised) == 1 && raised.Torn.frame == 24);
        CHECK(Cinema_Projector_both(projector, &film, &other, &seen) == QUILL_OK && seen.sum == sum + 1000 * others);
        CHECK((seen.at != 0) == are_taken);
        CHECK(Cinema_Projector_both(projector, &part, &film, &seen) == QUILL_OK && seen.sum == sum - bytes[0] + 1000 * sum);
        /* Pages that were offered are the program's own to write. */
        bytes[3 * PAGE]++, sum = sum_of(bytes, LEN);
    }
    free(bytes);
    free(more);
}

/* Results beside what is offered: a list, and an object. */
static void call_with_results(Cinema_Projector projector)
{
    uint8_t *bytes = film_of(PAGES, 5);
    Cinema_Bytes film = { LEN, bytes };
    Cinema_Projector another;
    Cinema_Piece piece;
    quill_inbox before = { 0, 0, 0 };

    CHECK(Cinema_Projector_open(&replies, &before) == QUILL_OK);
    CHECK(Cinema_Projector_cut(projector, &replies, &film, 4000, 9000, &piece) == QUILL_OK && piece._length == 9000);
    CHECK(memcmp(piece._buffer, bytes + 4000, 9000) == 0);
    CHECK(Cinema_Projector_cut(projector, &replies, &film, 0, 9000, &piece) != QUILL_OK);
    quill_close(&before);
    for (int round = 0; round < 3; round++) {
        uint32_t places;
        CHECK(Cinema_Projector_next(projector, &film, &another) == QUILL_OK && tern_number_is_in(&tern_arrivals, another.number));
        CHECK(Cinema_Projector_occupy(another, 0, &places) == QUILL_OK);
        tern_release(another.number);
    }
    free(bytes);
}

/* Memory that is not offered: constants, what others have, too much, none. */
static void offer_by_hand(void)
{
    static uint8_t own[8 * PAGE] __attribute__((aligned(PAGE)));
    uint8_t *heap = film_of(257, 1);
    uint64_t number;

    memset(own, 1, sizeof own);
    number = tern_offer(own, sizeof own);
    CHECK(number != 0);
    tern_offer_withdraw(number);
    CHECK(tern_offer(heap, 257 * PAGE) == 0 && tern_offer(heap, 0) == 0 && tern_offer(heap + 1, PAGE) == 0);
    CHECK(tern_offer((void *)0x400000, PAGE) == 0 && tern_offer((void *)shown, PAGE) == 0);
    CHECK(tern_offer((void *)(TERN_USER_END - PAGE), 2 * PAGE) == 0);
    tern_memory_lent(own + PAGE + 7, 2 * PAGE);
    for (uint64_t page = 0; page < 8; page++) {
        number = tern_offer(own + page * PAGE, PAGE);
        CHECK((number == 0) == (page >= 1 && page <= 3));
        tern_offer_withdraw(number);
    }
    CHECK(tern_offer(own, sizeof own) == 0);
    free(heap);
}

/* A client of this program's own object, to which a thread of it answers. */
static void call_itself(Cinema_Projector own)
{
    uint8_t *bytes = film_of(PAGES, 7);
    Cinema_Bytes film = { LEN, bytes };
    Cinema_Projector_show_raised raised;
    Cinema_Seen seen = { 1, 0 };
    uint32_t places = 0;

    call_with_films(own, 1);
    call_with_results(own);
    /* With one place left, one offer is taken, and of two neither. */
    CHECK(Cinema_Projector_occupy(own, PLACES - 1, &places) == QUILL_OK && places == PLACES - 1);
    CHECK(Cinema_Projector_both(own, &film, &film, &seen) == QUILL_OK && seen.at == 0 && seen.sum == 1001 * sum_of(bytes, LEN));
    CHECK(Cinema_Projector_show(own, "one", &film, &seen, &raised) == QUILL_OK && is_shown(seen.at));
    CHECK(Cinema_Projector_occupy(own, PLACES, &places) == QUILL_OK && places == PLACES);
    call_with_films(own, 0);
    CHECK(Cinema_Projector_occupy(own, 0, &places) == QUILL_OK && places == 0);
    call_with_films(own, 1);
    /* A method writes to a copy, and gives nothing back that lies there. */
    CHECK(Cinema_Projector_show(own, "painted", &film, &seen, &raised) == QUILL_OK && is_shown(seen.at));
    CHECK(bytes[0] == 7 && bytes[PAGE] == ((1 + PAGE % 7) ^ 7) && seen.sum == sum_of(bytes, LEN));
    call_with_films(own, 1);
    free(bytes);
}

/* --- the program --- */

static void serve(void)
{
    static quill_door_room room;
    static _Alignas(8) char buffers[QUILL_BUFFERS(Cinema_Projector_STRINGS, Cinema_Projector_STRING_BYTES)];
    uint64_t words[6] = { TERN_NIL };

    if (quill_receive(&room, Cinema_Projector_STRINGS, Cinema_Projector_STRING_BYTES, buffers) == QUILL_OK)
        tern_door_serve();
    tern_control(TERN_THREAD_CONTROL, TERN_THREAD_DESTROY, words);
}

/* Starts the thread that serves, with this one's pager and handler and its priority. */
static void start_server(void)
{
    static char stack[65536] __attribute__((aligned(16)));
    uint64_t self[6] = { 0 }, info[6] = { 0 };

    tern_control(TERN_TASK_CONTROL, TERN_TASK_SELF, self);
    tern_control(TERN_THREAD_CONTROL, TERN_THREAD_INFO, info);
    uint64_t create[6] = { TERN_NIL, info[0] >> 8 & 0xff, self[2], self[3] };
    CHECK(tern_control(TERN_THREAD_CONTROL, TERN_THREAD_CREATE, create) == TERN_OK);
    uint64_t begin[6] = { create[0], (uint64_t)serve, (uint64_t)(stack + sizeof stack - 8) };
    CHECK(tern_control(TERN_THREAD_CONTROL, TERN_THREAD_START, begin) == TERN_OK);
}

/* Hands this program's projector to the Rust half, and gets one of its. */
static Cinema_Projector hand_over(tern_uid peer)
{
    struct tern_message message = { .partner = peer, .words[6] = TERN_FPAGE_DOORS(PROJECTOR, 0, TERN_R | TERN_W) };
    uint32_t place = tern_number_take(&tern_arrivals);
    int error = tern_ipc(&message, TERN_ITEM, peer, quill_window_at(place), TERN_TIMEOUTS(TERN_NEVER, TERN_NEVER));

    CHECK(error == TERN_OK && (message.kind & TERN_NO_ITEM) == 0);
    return (Cinema_Projector){ place, 0 };
}

int main(void)
{
    tern_uid peer = tern_resolve("film");

    if (peer == TERN_NIL)
        return 1;
    tern_arrivals = (struct tern_numbers){ NUMBERS, NUMBERS, arrived };
    CHECK(tern_door_create(PROJECTOR, projector_entry, 0) == TERN_OK);
    start_server();
    offer_by_hand();
    call_itself((Cinema_Projector){ PROJECTOR, 0 });
    /* From here on the other half calls this one, too. */
    Cinema_Projector its = hand_over(peer);
    call_with_films(its, 1);
    call_with_results(its);
    tern_release(its.number);
    CHECK(tern_numbers_in_use(&tern_arrivals) == 0);
    struct tern_message done = { .label = (uint32_t)failures, .partner = peer };
    CHECK(tern_ipc_call(&done) == TERN_OK);
    puts(failures == 0 ? "FILM-C ok" : "FILM-C FAILED");
    return failures != 0;
}
