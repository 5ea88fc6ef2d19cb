/* References within values, and several in a message, in C (rows D14, S4): a port with ships in structs, lists, unions and exceptions, and a client of one
 * in Rust, and of an object whose answers claim other references than they bring. The Rust half is tests/guest/stub-test/src/fleet_in_c.rs, which starts
 * this program; the two hand each other their ports and use them at the same time, and then no ship of either may be left. */

#include <tern.h>

#include <door/fleet.h>

enum { SERVERS = 2, NUMBERS = 256, PATIENCE = 2000, NONSENSE = 144 };

/* Where what others have arrives, and where this program's own objects are. */
static uint64_t arrived[NUMBERS / 64], made[NUMBERS / 64];
static struct tern_numbers doors = { 1, NUMBERS, made };

static int failures;

static void check_at(int line, int is_so, const char *what)
{
    if (!is_so) {
        printf("FLEET-C FAILED: line %d: %s\n", line, what);
        failures++;
    }
}

#define CHECK(condition) check_at(__LINE__, condition, #condition)

/* --- ships --- */

struct hull {
    uint32_t number;
    int32_t cargo;
};

static struct hull hulls[NUMBERS + 1];
static int32_t alive;

static quill_status cargo(void *self, uint32_t *result)
{
    *result = (uint32_t)((struct hull *)self)->cargo;
    return QUILL_OK;
}

static quill_status load_ship(void *self, int32_t more)
{
    ((struct hull *)self)->cargo += more;
    return QUILL_OK;
}

/* Nobody has an identifier any more, and this program gives none away of the maker's: so the door can go. */
static void sink(void *self)
{
    uint32_t number = ((struct hull *)self)->number;

    tern_door_release(number);
    tern_number_free(&doors, number);
    __atomic_fetch_sub(&alive, 1, __ATOMIC_RELAXED);
}

static const Harbour_Ship_server ship_methods = { cargo, load_ship };
Harbour_Ship_ENTRY(ship_entry, ship_methods, sink)

/* Makes a ship: a duplicate, so that it hears of its end even if nobody ever gets it. Number 0 if it fails. */
static Harbour_Ship ship(int32_t with)
{
    uint32_t number = tern_number_take(&doors), copy = 0;
    int error;

    if (number == 0)
        return (Harbour_Ship){ 0, 0 };
    hulls[number] = (struct hull){ number, with };
    __atomic_fetch_add(&alive, 1, __ATOMIC_RELAXED);
    error = tern_door_create(number, ship_entry, (uint64_t)&hulls[number]);
    if (error == TERN_OK)
        error = tern_door_duplicate(number, &copy);
    if (error != TERN_OK)
        sink(&hulls[number]);
    return (Harbour_Ship){ error == TERN_OK ? copy : 0, 0 };
}

static Harbour_Ship another(Harbour_Ship it)
{
    Harbour_Ship copy = { 0, it.view };

    if (it.number != 0 && tern_door_duplicate(it.number, &copy.number) != TERN_OK)
        copy.number = 0;
    return copy;
}

static uint32_t cargo_of(Harbour_Ship it)
{
    uint32_t found = 0;

    return Harbour_Ship_cargo(it, &found) == QUILL_OK ? found : UINT32_MAX;
}

/* --- the port: it has the ships of the last list, and the one that is moored --- */

static Harbour_Ship fleet[16], moored;
static uint32_t in_fleet;
static volatile int has_ended;

static void forget_fleet(void)
{
    for (uint32_t i = 0; i < in_fleet; i++)
        tern_release(fleet[i].number);
    in_fleet = 0;
}

static quill_status load(void *self, const Harbour_Fleet *all, int32_t more, uint32_t *result)
{
    quill_status status = QUILL_OK;

    (void)self;
    forget_fleet();
    for (uint32_t i = 0; i < all->_length && i < 16; i++) {
        fleet[in_fleet++] = all->_buffer[i];
        if (all->_buffer[i].number == 0)
            continue;
        status = status == QUILL_OK ? Harbour_Ship_load(all->_buffer[i], more) : status;
        *result += cargo_of(all->_buffer[i]);
    }
    return status;
}

static quill_status moor(void *self, const Harbour_Berth *wanted, Harbour_Berth *result, Harbour_Port_moor_raised *raised)
{
    (void)self;
    if (wanted->number == 0) {
        quill_release_Harbour_Berth(wanted);
        raised->Closed.since = 1990;
        return 2;
    }
    if (wanted->number >= 100) {
        raised->Taken.by = wanted->moored;
        raised->Taken.place = (Harbour_Berth){ .number = 7, .keeper = "nobody" };
        return 1;
    }
    *result = *wanted;
    result->number++;
    result->moored = moored;
    moored = wanted->moored;
    return QUILL_OK;
}

static quill_status build(void *self, uint32_t with, Harbour_Ship *tug, char name[161], Harbour_Ship *result)
{
    char digits[12];
    int at = 0, to = 5;

    (void)self;
    *result = ship((int32_t)with);
    *tug = ship(1);
    memcpy(name, "with ", 5);
    do
        digits[at++] = (char)('0' + with % 10);
    while ((with /= 10) != 0);
    while (at > 0)
        name[to++] = digits[--at];
    name[to] = 0;
    return QUILL_OK;
}

static quill_status swap(void *self, const Harbour_Berths *all, Harbour_Ship one, Harbour_Convoy *line, Harbour_Berths *result)
{
    Harbour_Convoy before = *line;

    (void)self;
    if (before._length == 4) {
        quill_release_Harbour_Berths(all);
        quill_release_Harbour_Convoy(&before);
        tern_release(one.number);
        return QUILL_TOO_LONG;
    }
    line->_length = before._length + 1;
    for (uint32_t i = 0; i < before._length; i++)
        line->_buffer[i] = before._buffer[before._length - 1 - i];
    line->_buffer[before._length] = one;
    *result = *all;
    for (uint32_t i = 0; i < result->_length; i++)
        result->_buffer[i].number++;
    return QUILL_OK;
}

static quill_status show_signal(void *self, const Harbour_Sign *shown, const char *who, Harbour_Sign *result)
{
    (void)self;
    *result = *shown;
    if (shown->_d == 1) {
        result->_d = 3;
        result->_u.several = (Harbour_Convoy){ 2, { another(shown->_u.one), shown->_u.one } };
    } else if (shown->_d == 2 || shown->_d == 3) {
        if (shown->_u.several._length == 0)
            return 5;
        result->_d = 1;
        result->_u.one = shown->_u.several._buffer[0];
        for (uint32_t i = 1; i < shown->_u.several._length; i++)
            tern_release(shown->_u.several._buffer[i].number);
    } else {
        memcpy(result->_u.words, who, strlen(who) + 1);
    }
    return QUILL_OK;
}

static quill_status list(void *self, Harbour_Fleet *result)
{
    static Harbour_Ship all[16];

    (void)self;
    for (uint32_t i = 0; i < in_fleet; i++)
        all[i] = another(fleet[i]);
    *result = (Harbour_Fleet){ in_fleet, all };
    return QUILL_OK;
}

static quill_status first(void *self, uint32_t number, Harbour_Ship *result)
{
    (void)self;
    if (number >= in_fleet)
        return 4;
    *result = another(fleet[number]);
    return QUILL_OK;
}

static quill_status pass(void *self, const Harbour_Convoy *line)
{
    (void)self;
    forget_fleet();
    for (uint32_t i = 0; i < line->_length; i++)
        Harbour_Ship_load(line->_buffer[i], 1000);
    quill_release_Harbour_Convoy(line);
    return QUILL_OK;
}

static void port_ends(void *self)
{
    (void)self;
    forget_fleet();
    tern_release(moored.number);
    has_ended++;
}

static const Harbour_Port_server port_methods = { load, moor, build, swap, show_signal, list, first, pass };
Harbour_Port_ENTRY(port_entry, port_methods, port_ends)

/* --- a client of a port in Rust --- */

static Harbour_Port_replies room;

/* Lists of references, with one among them that is none, and as many as a message holds. */
static void call_with_lists(Harbour_Port port, const Harbour_Ship own[3])
{
    static const uint32_t counts[] = { 0, 16, 17 };
    Harbour_Ship ships[17] = { own[0], own[1], { 0, 0 }, own[2] }, one;
    Harbour_Fleet all = { 4, ships }, back;
    uint32_t sum = 0;

    CHECK(Harbour_Port_load(port, &all, 10, &sum) == QUILL_OK && sum == 36);
    CHECK(Harbour_Port_list(port, &room, &back) == QUILL_OK && back._length == 4);
    CHECK(back._length == 4 && back._buffer[2].number == 0 && cargo_of(back._buffer[3]) == 13);
    quill_release_Harbour_Fleet(&back);
    CHECK(Harbour_Port_first(port, 0, &one) == QUILL_OK && cargo_of(one) == 11);
    tern_release(one.number);
    CHECK(Harbour_Port_first(port, 4, &one) == 4 && one.number == 0);
    for (int i = 0; i < 17; i++)
        ships[i] = own[0];
    for (int i = 0; i < 3; i++) {
        uint32_t count = counts[i], good = count <= 16;
        all._length = count;
        CHECK(Harbour_Port_load(port, &all, 0, &sum) == (good ? QUILL_OK : QUILL_TOO_LONG) && (!good || sum == 11 * count));
        CHECK(Harbour_Port_list(port, &room, &back) == QUILL_OK && back._length == (good ? count : 16));
        quill_release_Harbour_Fleet(&back);
    }
}

static Harbour_Berth berth(uint32_t number, Harbour_Ship it)
{
    return (Harbour_Berth){ .number = number, .moored = it, .keeper = "\303\205got" };
}

/* Structs with references, one by one and in lists, and exceptions with both. */
static void call_with_structs(Harbour_Port port, const Harbour_Ship own[3])
{
    Harbour_Berth wanted = berth(1, own[0]), was;
    Harbour_Berths all = { 2, { berth(1, own[0]), berth(5, own[1]) } }, berths;
    Harbour_Convoy line = { 2, { another(own[0]), another(own[1]) } };
    Harbour_Port_moor_raised raised;

    /* Somebody may have moored here before. */
    CHECK(Harbour_Port_moor(port, &room, &wanted, &was, &raised) == QUILL_OK);
    quill_release_Harbour_Berth(&was);
    wanted = berth(5, own[1]);
    CHECK(Harbour_Port_moor(port, &room, &wanted, &was, &raised) == QUILL_OK && was.number == 6);
    CHECK(cargo_of(was.moored) == cargo_of(own[0]) && strcmp(was.keeper, "\303\205got") == 0);
    quill_release_Harbour_Berth(&was);
    wanted = berth(0, (Harbour_Ship){ 0, 0 });
    CHECK(Harbour_Port_moor(port, &room, &wanted, &was, &raised) == 2 && raised.Closed.since == 1990);
    CHECK(was.moored.number == 0);
    wanted = berth(100, own[1]);
    CHECK(Harbour_Port_moor(port, &room, &wanted, &was, &raised) == 1);
    CHECK(cargo_of(raised.Taken.by) == cargo_of(own[1]) && raised.Taken.place.moored.number == 0);
    quill_release_Harbour_Taken(&raised.Taken);
    CHECK(Harbour_Port_swap(port, &room, &all, ship(500), &line, &berths) == QUILL_OK && line._length == 3);
    CHECK(cargo_of(line._buffer[0]) == cargo_of(own[1]) && cargo_of(line._buffer[1]) == cargo_of(own[0]));
    CHECK(cargo_of(line._buffer[2]) == 500 && berths._length == 2 && berths._buffer[1].number == 6);
    CHECK(cargo_of(berths._buffer[1].moored) == cargo_of(own[1]));
    quill_release_Harbour_Berths(&berths);
    quill_release_Harbour_Convoy(&line);
}

/* Unions with one, several and none; and what needs no memory. */
static void call_with_signs(Harbour_Port port, const Harbour_Ship own[3])
{
    Harbour_Sign shown = { 1, { .one = own[0] } }, back;
    Harbour_Convoy line = { 2, { own[0], own[2] } };
    Harbour_Ship built, tug;
    uint32_t before = cargo_of(own[0]);
    char name[161];

    CHECK(Harbour_Port_signal(port, &room, &shown, "\303\251", &back) == QUILL_OK && back._d == 3);
    CHECK(back._u.several._length == 2 && cargo_of(back._u.several._buffer[1]) == before);
    quill_release_Harbour_Sign(&back);
    shown = (Harbour_Sign){ 2, { .several = { 2, { own[1], own[0] } } } };
    CHECK(Harbour_Port_signal(port, &room, &shown, "a", &back) == QUILL_OK && back._d == 1);
    CHECK(cargo_of(back._u.one) == cargo_of(own[1]));
    quill_release_Harbour_Sign(&back);
    shown = (Harbour_Sign){ 9, { .words = "" } };
    CHECK(Harbour_Port_signal(port, &room, &shown, "w\303\266rds", &back) == QUILL_OK && back._d == 9);
    CHECK(strcmp(back._u.words, "w\303\266rds") == 0);
    CHECK(Harbour_Port_build(port, &room, 77, &tug, name, &built) == QUILL_OK && strcmp(name, "with 77") == 0);
    CHECK(cargo_of(built) == 77 && cargo_of(tug) == 1);
    tern_release(built.number);
    tern_release(tug.number);
    CHECK(Harbour_Port_pass(port, &line) == QUILL_OK && cargo_of(own[0]) == before + 1000);
}

/* Has the other side give back all that it keeps. */
static void leave_port(Harbour_Port port)
{
    Harbour_Berth wanted = berth(1, (Harbour_Ship){ 0, 0 }), was;
    Harbour_Convoy none = { 0, { { 0, 0 } } };
    Harbour_Port_moor_raised raised;

    CHECK(Harbour_Port_pass(port, &none) == QUILL_OK);
    CHECK(Harbour_Port_moor(port, &room, &wanted, &was, &raised) == QUILL_OK);
    quill_release_Harbour_Berth(&was);
}

/* An object whose answers claim other references than they bring: what it is told to have, the program can call, or it is none. */
static void call_liar(Harbour_Port liar)
{
    Harbour_Berth wanted = berth(1, (Harbour_Ship){ 0, 0 }), was;
    Harbour_Sign shown = { 9, { .words = "" } }, sign;
    Harbour_Fleet back, none = { 0, NULL };
    Harbour_Port_moor_raised raised;
    Harbour_Ship one, other;
    quill_status status;
    char name[161];
    uint32_t sum;

    for (int i = 0; i < NONSENSE; i++) {
        if (Harbour_Port_list(liar, &room, &back) == QUILL_OK)
            for (uint32_t j = 0; j < back._length; j++)
                CHECK(back._buffer[j].number == 0 || cargo_of(back._buffer[j]) == 1);
        quill_release_Harbour_Fleet(&back);
        status = Harbour_Port_moor(liar, &room, &wanted, &was, &raised);
        if (status == 1)
            quill_release_Harbour_Taken(&raised.Taken);
        quill_release_Harbour_Berth(&was);
        CHECK(Harbour_Port_build(liar, &room, 1, &one, name, &other) != QUILL_OK && one.number == 0);
        Harbour_Port_signal(liar, &room, &shown, "who", &sign);
        quill_release_Harbour_Sign(&sign);
        CHECK(Harbour_Port_load(liar, &none, 1, &sum) != QUILL_OK);
    }
}

/* --- the program --- */

static void serve(void)
{
    static quill_door_room rooms[SERVERS];
    static _Alignas(8) char buffers[SERVERS][QUILL_BUFFERS(Harbour_Port_STRINGS, Harbour_Port_STRING_BYTES)];
    static int next;
    int own = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    uint64_t words[6] = { TERN_NIL };

    if (quill_receive_several(&rooms[own], Harbour_Port_STRINGS, Harbour_Port_STRING_BYTES, buffers[own],
                              Harbour_Port_WINDOWS) == QUILL_OK)
        tern_door_serve();
    quill_receive_nothing(&rooms[own], Harbour_Port_STRINGS);
    tern_control(TERN_THREAD_CONTROL, TERN_THREAD_DESTROY, words);
}

/* Starts a thread, with this one's pager and handler and its priority. */
static tern_uid start(void (*what)(void))
{
    static char stacks[SERVERS + 1][65536] __attribute__((aligned(16)));
    static int next;
    uint64_t self[6] = { 0 }, info[6] = { 0 };

    tern_control(TERN_TASK_CONTROL, TERN_TASK_SELF, self);
    tern_control(TERN_THREAD_CONTROL, TERN_THREAD_INFO, info);
    uint64_t create[6] = { TERN_NIL, info[0] >> 8 & 0xff, self[2], self[3] };
    CHECK(tern_control(TERN_THREAD_CONTROL, TERN_THREAD_CREATE, create) == TERN_OK);
    uint64_t begin[6] = { create[0], (uint64_t)what, (uint64_t)(stacks[next++] + sizeof stacks[0] - 8) };
    CHECK(tern_control(TERN_THREAD_CONTROL, TERN_THREAD_START, begin) == TERN_OK);
    return create[0];
}

/* Waits a millisecond. */
static void pause(void)
{
    struct tern_message message = { 0 };

    tern_ipc(&message, 0, tern_home(), 0, TERN_TIMEOUTS(0, 1000));
}

/* Hands an object of this program to the Rust half, and gets one of its. */
static Harbour_Port hand_over(tern_uid peer, uint32_t number)
{
    struct tern_message message = { .partner = peer, .words[6] = TERN_FPAGE_DOORS(number, 0, TERN_R | TERN_W) };
    uint32_t place = tern_number_take(&tern_arrivals);
    int error = tern_ipc(&message, TERN_ITEM, peer, quill_window_at(place), TERN_TIMEOUTS(TERN_NEVER, TERN_NEVER));

    CHECK(error == TERN_OK && (message.kind & TERN_NO_ITEM) == 0);
    return (Harbour_Port){ place, 0 };
}

/* Everything that a client does, with an inbox. */
static void be_a_client(Harbour_Port port, Harbour_Port liar)
{
    quill_inbox before = { 0, 0, 0 };

    CHECK(Harbour_Port_open(&room, &before) == QUILL_OK);
    for (int round = 0; round < 10; round++) {
        Harbour_Ship ships[3] = { ship(1), ship(2), ship(3) };
        call_with_lists(port, ships);
        call_with_structs(port, ships);
        call_with_signs(port, ships);
        for (int i = 0; i < 3; i++)
            tern_release(ships[i].number);
    }
    leave_port(port);
    call_liar(liar);
    quill_close(&before);
}

int main(void)
{
    uint32_t port = tern_number_take(&doors), idle = 1 + SERVERS * (1 + Harbour_Port_WINDOWS);
    tern_uid servers[SERVERS], peer;

    tern_arrivals = (struct tern_numbers){ 2 * NUMBERS, NUMBERS, arrived };
    CHECK(tern_door_create(port, port_entry, 0) == TERN_OK);
    start(tern_porter);
    for (int i = 0; i < SERVERS; i++)
        servers[i] = start(serve);
    for (int i = 0; i < PATIENCE && tern_numbers_in_use(&tern_arrivals) < idle; i++)
        pause();
    peer = tern_resolve("fleet");
    if (peer == TERN_NIL)
        return 1;
    Harbour_Port its_port = hand_over(peer, port), liar = hand_over(peer, port);
    be_a_client(its_port, liar);
    tern_release(its_port.number);
    tern_release(liar.number);
    /* When it says that it is done with this port, nothing may be left of it. */
    struct tern_message done = { .label = (uint32_t)failures, .partner = peer };
    CHECK(tern_ipc_call(&done) == TERN_OK);
    for (int i = 0; i < PATIENCE && (alive != 0 || !has_ended); i++)
        pause();
    CHECK(alive == 0 && has_ended == 1);
    for (int i = 0; i < PATIENCE && tern_numbers_in_use(&tern_arrivals) > idle; i++)
        pause();
    CHECK(tern_numbers_in_use(&tern_arrivals) == idle);
    CHECK(tern_numbers_in_use(&doors) == 1);
    for (int i = 0; i < SERVERS; i++) {
        uint64_t abort[6] = { servers[i] };
        tern_control(TERN_THREAD_CONTROL, TERN_THREAD_ABORT, abort);
    }
    for (int i = 0; i < PATIENCE && tern_numbers_in_use(&tern_arrivals) > 1; i++)
        pause();
    CHECK(tern_numbers_in_use(&tern_arrivals) == 1);
    puts(failures == 0 ? "FLEET-C ok" : "FLEET-C FAILED");
    return failures != 0;
}
