/* References to objects in C (row D14): an office and its tellers, and a client of the same office in Rust. The Rust half is
 * tests/guest/stub-test/src/in_c.rs, which starts this program; the two hand each other their office and their register, use them at the same time, and then
 * nothing may be left of either. */

#include <tern.h>

#include <door/office.h>

enum { SERVERS = 3, NUMBERS = 128, CHIEFS = 1000, PATIENCE = 1000 };

/* Where what others have arrives, and where this program's own objects are. */
static uint64_t arrived[NUMBERS / 64], made[NUMBERS / 64];
static struct tern_numbers doors = { 1, NUMBERS, made };

static const char long_name[] =
    "nobody whom anybody would know by a name that is shorter than what a message has besides its memory";

static int failures;

static void check(int is_so, const char *what)
{
    if (!is_so) {
        printf("OFFICE-C FAILED: %s\n", what);
        failures++;
    }
}

/* --- tellers, and chiefs --- */

struct person {
    uint32_t number, name;
    int32_t count;
};

static struct person persons[NUMBERS + 1];
static int32_t alive;

static quill_status get_name(void *self, uint32_t *result)
{
    *result = ((struct person *)self)->name;
    return QUILL_OK;
}

static quill_status set_name(void *self, uint32_t to)
{
    ((struct person *)self)->name = to;
    return QUILL_OK;
}

static quill_status get_count(void *self, int32_t *result)
{
    *result = ((struct person *)self)->count;
    return QUILL_OK;
}

static quill_status add(void *self, int32_t more, uint8_t times, int32_t *result)
{
    *result = ((struct person *)self)->count += more * times;
    return QUILL_OK;
}

static quill_status reset(void *self)
{
    ((struct person *)self)->count = 0;
    return QUILL_OK;
}

static quill_status close_teller(void *self, Mint_Teller_close_raised *raised)
{
    raised->Closed.since = ((struct person *)self)->count;
    return 1;
}

static quill_status close_chief(void *self, Mint_Chief_close_raised *raised)
{
    (void)self;
    raised->Closed.since = -1;
    return 1;
}

/* A chief rules whoever is called less than it. */
static quill_status rules(void *self, quill_object whom, bool *result)
{
    Mint_Named named;
    uint32_t name = 0;
    quill_status status = QUILL_OK;

    *result = false;
    if (Mint_Named_narrow(whom.number, &named) == QUILL_OK) {
        status = Mint_Named_name(named, &name);
        *result = name < ((struct person *)self)->name;
    }
    tern_release(whom.number);
    return status;
}

/* Nobody has an identifier any more, and this program gives none away of the maker's: so the door can go. */
static void leave(void *self)
{
    uint32_t number = ((struct person *)self)->number;

    tern_door_release(number);
    tern_number_free(&doors, number);
    __atomic_fetch_sub(&alive, 1, __ATOMIC_RELAXED);
}

static const Mint_Teller_server teller_methods = { get_name, set_name, get_count, add, reset, close_teller };
static const Mint_Chief_server chief_methods = { get_count, add, reset, get_name, set_name, close_chief, rules };

Mint_Teller_ENTRY(teller_entry, teller_methods, leave)
Mint_Chief_ENTRY(chief_entry, chief_methods, leave)

/* Makes a teller. It is given away as a duplicate, so that it hears of its end even if nobody ever gets it. */
static quill_status hire(uint32_t name, int32_t count, Mint_Teller *result)
{
    uint32_t number = tern_number_take(&doors), copy;
    int error;

    if (number == 0)
        return QUILL_KERNEL + TERN_LIMIT;
    persons[number] = (struct person){ number, name, count };
    __atomic_fetch_add(&alive, 1, __ATOMIC_RELAXED);
    error = tern_door_create(number, name < CHIEFS ? teller_entry : chief_entry, (uint64_t)&persons[number]);
    if (error == TERN_OK)
        error = tern_door_duplicate(number, &copy);
    if (error != TERN_OK) {
        leave(&persons[number]);
        return QUILL_KERNEL + (uint32_t)error;
    }
    *result = (Mint_Teller){ copy, 0 };
    /* A chief is a teller elsewhere in its table. */
    return name < CHIEFS ? QUILL_OK : Mint_Teller_narrow(copy, result);
}

/* --- the office --- */

static Mint_Named places[3], bound;
static char bound_as[4097];
static volatile int has_ended[2];

static quill_status open(void *self, uint32_t name, int32_t first, Mint_Teller *result, Mint_Office_open_raised *raised)
{
    (void)self;
    raised->Closed.since = first;
    return first < 0 ? 1 : hire(name, first, result);
}

static quill_status twice(void *self, Mint_Counted it, int32_t more, uint8_t times, int32_t *result)
{
    quill_status status = Mint_Counted_add(it, more, times, result);

    (void)self;
    if (status == QUILL_OK)
        status = Mint_Counted_add(it, more, times, result);
    tern_release(it.number);
    return status;
}

static quill_status keep(void *self, uint32_t where, Mint_Named it)
{
    (void)self;
    if (where >= 3) {
        tern_release(it.number);
        return 77;
    }
    tern_release(places[where].number);
    places[where] = it;
    return QUILL_OK;
}

static quill_status swap(void *self, uint32_t where, Mint_Counted it, Mint_Named *result)
{
    Mint_Named named;

    (void)self;
    if (where >= 3 || Mint_Named_narrow(it.number, &named) != QUILL_OK) {
        tern_release(it.number);
        return where >= 3 ? 77 : 78;
    }
    *result = places[where];
    places[where] = named;
    return result->number != 0 ? QUILL_OK : 79;
}

static quill_status exchange(void *self, Mint_Teller *it)
{
    uint32_t name, old = it->number;
    int32_t count;
    quill_status status = Mint_Teller_name(*it, &name);

    (void)self;
    if (status == QUILL_OK)
        status = Mint_Teller_count(*it, &count);
    if (status == QUILL_OK)
        status = hire(name + 1, count + 1, it);
    tern_release(old);
    return status;
}

static quill_status bind(void *self, const char *who, Mint_Named it)
{
    (void)self;
    memcpy(bound_as, who, strlen(who) + 1);
    tern_release(bound.number);
    bound = it;
    return QUILL_OK;
}

static quill_status resolve(void *self, const char *who, Mint_Named *result, Mint_Office_resolve_raised *raised)
{
    int error;

    (void)self;
    if (bound.number == 0 || strcmp(who, bound_as) != 0) {
        raised->Closed.since = (int32_t)strlen(who);
        return 1;
    }
    error = tern_door_duplicate(bound.number, &result->number);
    result->view = bound.view;
    return error == TERN_OK ? QUILL_OK : QUILL_KERNEL + (uint32_t)error;
}

static void office_ends(void *self)
{
    (void)self;
    for (int i = 0; i < 3; i++)
        tern_release(places[i].number);
    tern_release(bound.number);
    has_ended[0]++;
}

static const Mint_Office_server office_methods = { open, twice, keep, swap, exchange, bind, resolve };
Mint_Office_ENTRY(office_entry, office_methods, office_ends)

/* --- the register: what comes back is in memory, and what comes is read piece by piece --- */

static quill_status called(void *self, Mint_Named it, char **result)
{
    uint32_t name;
    quill_status status = Mint_Named_name(it, &name);

    (void)self;
    tern_release(it.number);
    *result = (char *)(name < 100 ? "somebody" : long_name);
    return status;
}

static quill_status sum(void *self, Mint_Counted it, const Mint_Tags *all, int32_t more, int32_t *result)
{
    int32_t letters = 0;
    quill_status status;

    (void)self;
    for (uint32_t i = 0; i < all->_length; i++)
        letters += (int32_t)strlen(all->_buffer[i]);
    status = Mint_Counted_add(it, letters, (uint8_t)all->_length, result);
    *result += more;
    tern_release(it.number);
    return status;
}

static void register_ends(void *self)
{
    (void)self;
    has_ended[1]++;
}

static const Mint_Register_server register_methods = { called, sum };
Mint_Register_ENTRY(register_entry, register_methods, register_ends)

/* --- a client of the office and the register in Rust --- */

static void hand_around(Mint_Office office)
{
    Mint_Office_open_raised raised;
    Mint_Teller held, nobody;
    Mint_Counted counted = { 0, 0 };
    Mint_Named named = { 0, 0 }, back, again;
    uint32_t name = 0;
    int32_t count = 0;

    check(Mint_Office_open(office, 10, 100, &held, &raised) == QUILL_OK, "a teller is opened");
    check(Mint_Teller_name(held, &name) == QUILL_OK && name == 10, "it has its name");
    check(tern_door_duplicate(held.number, &counted.number) == TERN_OK, "it is duplicated");
    check(Mint_Counted_narrow(counted.number, &counted) == QUILL_OK && counted.view != 0, "a base is found");
    for (int32_t round = 0; round < 20; round++)
        check(Mint_Office_twice(office, counted, 3, 2, &count) == QUILL_OK && count == 112 + 12 * round, "it is lent");
    check(Mint_Counted_count(counted, &count) == QUILL_OK && count == 340, "and is still there");
    check(Mint_Office_open(office, 1, -5, &nobody, &raised) == 1 && raised.Closed.since == -5, "an exception comes");
    check(nobody.number == 0, "and brings nothing");
    for (uint32_t round = 1; round < 20; round++) {
        check(Mint_Office_exchange(office, &held) == QUILL_OK, "one is exchanged");
        check(Mint_Teller_name(held, &name) == QUILL_OK && name == 10 + round, "for another one");
    }
    check(Mint_Named_narrow(held.number, &named) == QUILL_OK, "another base is found");
    check(Mint_Office_keep(office, 1, named) == QUILL_OK, "one is given away");
    check(Mint_Teller_name(held, &name) == QUILL_KERNEL + TERN_NO_SUCH, "and gone");
    check(Mint_Office_swap(office, 1, counted, &back) == QUILL_OK, "it is swapped");
    check(Mint_Named_name(back, &name) == QUILL_OK && name == 29, "and comes back");
    check(Mint_Office_swap(office, 1, counted, &again) == QUILL_OK, "so does the other one");
    check(Mint_Named_name(again, &name) == QUILL_OK && name == 10, "as what it was");
    check(Mint_Office_swap(office, 7, counted, &named) == 77, "there is no such place");
    check(Mint_Office_swap(office, 2, counted, &named) == 79, "a place is empty");
    tern_release(back.number);
    tern_release(again.number);
    tern_release(counted.number);
}

/* What leads nowhere, or to something else; and calls that do not take place. */
static void go_wrong(Mint_Office office)
{
    Mint_Office nowhere = { NUMBERS - 1, 0 };
    Mint_Office_resolve_raised raised;
    Mint_Named named = { 0, 0 };
    Mint_Teller teller = { 0, 0 };
    Mint_Counted counted = { 0, 0 };
    static char too_long[5000];
    int32_t count;

    memset(too_long, 'x', sizeof too_long - 1);
    check(Mint_Chief_narrow(office.number, &(Mint_Chief){ 0, 0 }) == QUILL_NO_METHOD, "an office is no chief");
    check(Mint_Office_resolve(nowhere, "x", &named, &raised) == QUILL_KERNEL + TERN_NO_SUCH, "nobody answers");
    check(Mint_Office_resolve(office, too_long, &named, &raised) == QUILL_TOO_LONG, "nobody is asked");
    check(hire(4, 4, &teller) == QUILL_OK && Mint_Counted_narrow(teller.number, &counted) == QUILL_OK, "a teller is there");
    check(tern_door_duplicate(teller.number, &named.number) == TERN_OK, "it is duplicated");
    named.view = 0;
    check(Mint_Office_keep(nowhere, 0, named) == QUILL_KERNEL + TERN_NO_SUCH, "nobody takes it");
    check(Mint_Named_name(named, &(uint32_t){ 0 }) == QUILL_KERNEL + TERN_NO_SUCH, "it is gone nevertheless");
    check(tern_door_duplicate(teller.number, &named.number) == TERN_OK, "and again");
    check(Mint_Office_bind(office, too_long, named) == QUILL_TOO_LONG, "nobody gets it");
    check(Mint_Named_name(named, &(uint32_t){ 0 }) == QUILL_KERNEL + TERN_NO_SUCH, "and it is gone");
    check(Mint_Office_twice(nowhere, counted, 1, 1, &count) == QUILL_KERNEL + TERN_NO_SUCH, "one that is lent");
    check(Mint_Counted_count(counted, &count) == QUILL_OK, "is still there");
    tern_release(teller.number);
}

/* References beside what is in memory, and the other way: what this program has is called from there. */
static void keep_books(Mint_Office office, Mint_Register book)
{
    static const char *const names[] = { "short", long_name, "B\303\244renh\303\266hle", "" };
    static Mint_Register_replies room;
    Mint_Office_resolve_raised raised;
    Mint_Teller first = { 0, 0 };
    Mint_Named named = { 0, 0 }, found;
    Mint_Counted counted = { 0, 0 };
    quill_inbox before = { 0, 0, 0 };
    char *text = NULL;
    uint32_t name;
    int32_t count, expected = 3 + 8 * 3 + 1000;
    Mint_Tags tags = { 3, { "abc", "", "\303\266\303\244x" } };

    check(hire(30, 3, &first) == QUILL_OK, "there is a teller");
    for (uint32_t round = 0; round < 12; round++) {
        check(tern_door_duplicate(first.number, &named.number) == TERN_OK, "it is duplicated");
        named.view = 0;
        check(Mint_Office_bind(office, names[round % 4], named) == QUILL_OK, "it is bound");
        check(Mint_Office_resolve(office, "nobody", &found, &raised) == 1 && raised.Closed.since == 6, "nobody is found");
        check(Mint_Office_resolve(office, names[round % 4], &found, &raised) == QUILL_OK, "it is found");
        check(Mint_Named_rename(found, 31 + round) == QUILL_OK, "it is renamed");
        check(Mint_Teller_name(first, &name) == QUILL_OK && name == 31 + round, "and is the same");
        tern_release(first.number);
        check(Mint_Teller_narrow(found.number, &first) == QUILL_OK, "it is a teller again");
    }
    check(Mint_Named_narrow(first.number, &named) == QUILL_OK, "it has a name");
    check(Mint_Register_open(&room, &before) == QUILL_OK, "replies have room");
    for (uint32_t round = 0; round < 2; round++) {
        check(Mint_Named_rename(named, 99 + round) == QUILL_OK, "it has another one");
        check(Mint_Register_called(book, &room, named, &text) == QUILL_OK, "the register knows it");
        check(strcmp(text, round == 0 ? "somebody" : long_name) == 0, "by its name");
    }
    quill_close(&before);
    check(Mint_Counted_narrow(first.number, &counted) == QUILL_OK, "it counts");
    check(Mint_Register_sum(book, counted, &tags, 1000, &count) == QUILL_OK && count == expected, "what is in a list");
    tags._length = 0;
    check(Mint_Register_sum(book, counted, &tags, 1000, &count) == QUILL_OK && count == expected, "and in none");
    tern_release(first.number);
}

/* A chief is seen as what it inherits from; and `Object` is anything. */
static void look_otherwise(Mint_Office office)
{
    Mint_Teller teller = { 0, 0 }, low = { 0, 0 }, high = { 0, 0 };
    Mint_Chief chief = { 0, 0 };
    Mint_Counted counted = { 0, 0 };
    Mint_Named named = { 0, 0 };
    Mint_Teller_close_raised raised;
    bool yes = false, no = true;
    int32_t count;

    check(hire(CHIEFS, 5, &teller) == QUILL_OK && teller.view != 0, "there is a chief");
    check(Mint_Teller_close(teller, &raised) == 1 && raised.Closed.since == -1, "it is called as a teller");
    check(Mint_Chief_narrow(teller.number, &chief) == QUILL_OK && chief.view == 0, "it is a chief");
    check(Mint_Counted_narrow(chief.number, &counted) == QUILL_OK, "it counts");
    check(Mint_Named_narrow(counted.number, &named) == QUILL_OK && named.view != 0, "it has a name");
    check(Mint_Named_rename(named, 60) == QUILL_OK, "which is another one now");
    check(Mint_Counted_add(counted, 2, 3, &count) == QUILL_OK && count == 11, "and more");
    check(hire(59, 0, &low) == QUILL_OK && hire(61, 0, &high) == QUILL_OK, "there are tellers");
    check(Mint_Chief_rules(chief, (quill_object){ low.number, 0 }, &yes) == QUILL_OK && yes, "it rules one");
    check(Mint_Chief_rules(chief, (quill_object){ high.number, 0 }, &no) == QUILL_OK && !no, "and not the other one");
    check(Mint_Chief_rules(chief, (quill_object){ office.number, 0 }, &no) == QUILL_OK && !no, "and no office");
    tern_release(chief.number);
    tern_release(low.number);
    tern_release(high.number);
}

/* --- the program --- */

static void serve(void)
{
    static quill_door_room rooms[SERVERS];
    static _Alignas(8) char buffers[SERVERS][QUILL_BUFFERS(Mint_Office_STRINGS, Mint_Office_STRING_BYTES)];
    static int next;
    int own = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    uint64_t words[6] = { TERN_NIL };

    if (quill_receive_references(&rooms[own], Mint_Office_STRINGS, Mint_Office_STRING_BYTES, buffers[own]) == QUILL_OK)
        tern_door_serve();
    quill_receive_nothing(&rooms[own], Mint_Office_STRINGS);
    tern_control(TERN_THREAD_CONTROL, TERN_THREAD_DESTROY, words);
}

/* Starts a thread, with this one's pager and handler and its priority. */
static tern_uid start(void (*what)(void))
{
    static char stacks[SERVERS + 1][32768] __attribute__((aligned(16)));
    static int next;
    uint64_t self[6] = { 0 }, info[6] = { 0 };

    tern_control(TERN_TASK_CONTROL, TERN_TASK_SELF, self);
    tern_control(TERN_THREAD_CONTROL, TERN_THREAD_INFO, info);
    uint64_t create[6] = { TERN_NIL, info[0] >> 8 & 0xff, self[2], self[3] };
    check(tern_control(TERN_THREAD_CONTROL, TERN_THREAD_CREATE, create) == TERN_OK, "a thread is made");
    uint64_t begin[6] = { create[0], (uint64_t)what, (uint64_t)(stacks[next++] + sizeof stacks[0] - 8) };
    check(tern_control(TERN_THREAD_CONTROL, TERN_THREAD_START, begin) == TERN_OK, "and begins");
    return create[0];
}

/* Waits a millisecond. */
static void pause(void)
{
    struct tern_message message = { 0 };

    tern_ipc(&message, 0, tern_home(), 0, TERN_TIMEOUTS(0, 1000));
}

/* Hands an object of this program to the Rust half, and gets one of its. */
static uint32_t hand_over(tern_uid peer, uint32_t number)
{
    struct tern_message message = { .partner = peer, .words[6] = TERN_FPAGE_DOORS(number, 0, TERN_R | TERN_W) };
    uint32_t place = tern_number_take(&tern_arrivals);
    int error = tern_ipc(&message, TERN_ITEM, peer, quill_window_at(place), TERN_TIMEOUTS(TERN_NEVER, TERN_NEVER));

    check(error == TERN_OK && (message.kind & TERN_NO_ITEM) == 0, "something is handed over both ways");
    return place;
}

int main(void)
{
    uint32_t office = tern_number_take(&doors), book = tern_number_take(&doors), idle = 2 * SERVERS + 1;
    tern_uid servers[SERVERS], peer;

    tern_arrivals = (struct tern_numbers){ 2 * NUMBERS, NUMBERS, arrived };
    check(tern_door_create(office, office_entry, 0) == TERN_OK, "an office is made");
    check(tern_door_create(book, register_entry, 0) == TERN_OK, "and a register");
    check(tern_door_duplicate(office, &(uint32_t){ 0 }) == TERN_NO_SUCH, "nothing is duplicated without a porter");
    start(tern_porter);
    for (int i = 0; i < SERVERS; i++)
        servers[i] = start(serve);
    for (int i = 0; i < PATIENCE && tern_numbers_in_use(&tern_arrivals) < idle; i++)
        pause();
    peer = tern_resolve("office");
    if (peer == TERN_NIL)
        return 1;
    Mint_Office its_office = { hand_over(peer, office), 0 };
    Mint_Register its_book = { hand_over(peer, book), 0 };
    hand_around(its_office);
    go_wrong(its_office);
    keep_books(its_office, its_book);
    look_otherwise(its_office);
    tern_release(its_office.number);
    tern_release(its_book.number);
    /* When it says that it is done with this office, nothing may be left of it. */
    struct tern_message done = { .label = (uint32_t)failures, .partner = peer };
    check(tern_ipc_call(&done) == TERN_OK, "the other one is through");
    for (int i = 0; i < PATIENCE && (alive != 0 || !has_ended[0] || !has_ended[1]); i++)
        pause();
    check(alive == 0 && has_ended[0] == 1 && has_ended[1] == 1, "all objects have ended");
    check(tern_numbers_in_use(&tern_arrivals) == idle, "no reference is left");
    check(tern_numbers_in_use(&doors) == 2, "and no object");
    for (int i = 0; i < SERVERS; i++) {
        uint64_t abort[6] = { servers[i] };
        tern_control(TERN_THREAD_CONTROL, TERN_THREAD_ABORT, abort);
    }
    for (int i = 0; i < PATIENCE && tern_numbers_in_use(&tern_arrivals) > 1; i++)
        pause();
    check(tern_numbers_in_use(&tern_arrivals) == 1, "servers that end give their numbers back");
    puts(failures == 0 ? "OFFICE-C ok" : "OFFICE-C FAILED");
    return failures != 0;
}
