/* References within values, and several in a message, over doors with functions in the kernel's place: both sides in one program, on one thread of each. Whatever
 * becomes of a call, whoever has a reference has a number for it, each window has one, and no other number is in use or holds anything. */

#define STUBS "fleet.h"
#define REPLIES Harbour_Port_replies
#define REPLY_STRINGS 1
#define WINDOWS Harbour_Port_WINDOWS
#include "identifiers.h"

/* Objects from here on are known by nothing but their number. */
enum { SHIPS = 1000 };

/* A reference to an object. */
static Harbour_Ship ship(uint32_t object)
{
    Harbour_Ship it = { tern_number_take(&tern_arrivals), object % 8 };

    CHECK(it.number != 0);
    holds[it.number] = object;
    return it;
}

static Harbour_Ship another(Harbour_Ship it)
{
    Harbour_Ship copy = { 0, 0 };

    if (it.number != 0) {
        copy = ship(holds[it.number]);
        copy.view = it.view;
    }
    return copy;
}

/* Whether that is a reference to an object, under a number of its own. */
static bool is_ship(Harbour_Ship it, uint32_t object)
{
    return tern_number_is_in(&tern_arrivals, it.number) && holds[it.number] == object && it.view == object % 8;
}

/* --- the object: keeps what was loaded, and what is moored --- */

static Harbour_Ship fleet[16], moored;
static uint32_t in_fleet;
/* Manner in which the next method goes wrong. */
static enum { AS_IT_SHOULD, FAILS, GIVES_TWICE, GIVES_TOO_MANY, LIES_ABOUT_LENGTH, GIVES_NONE, GIVES_ITS_OWN } manner;

static void forget_fleet(void)
{
    for (uint32_t i = 0; i < in_fleet; i++)
        tern_release(fleet[i].number);
    in_fleet = 0;
}

static quill_status load(void *self, const Harbour_Fleet *all, int32_t more, uint32_t *result)
{
    (void)self;
    if (manner == FAILS) {
        quill_release_Harbour_Fleet(all);
        return 99;
    }
    forget_fleet();
    CHECK(all->_length <= 16);
    for (uint32_t i = 0; i < all->_length; i++) {
        fleet[in_fleet++] = all->_buffer[i];
        *result += all->_buffer[i].number == 0 ? 0 : holds[all->_buffer[i].number] + (uint32_t)more;
    }
    return QUILL_OK;
}

static quill_status moor(void *self, const Harbour_Berth *wanted, Harbour_Berth *result, Harbour_Port_moor_raised *raised)
{
    (void)self;
    if (manner == FAILS) {
        quill_release_Harbour_Berth(wanted);
        return QUILL_KERNEL + TERN_LIMIT;
    }
    if (wanted->number == 0) {
        quill_release_Harbour_Berth(wanted);
        raised->Closed.since = 1990;
        return 2;
    }
    if (wanted->number >= 100) {
        raised->Taken.by = manner == GIVES_NONE ? (Harbour_Ship){ 0, 0 } : wanted->moored;
        raised->Taken.place = (Harbour_Berth){ .number = 7, .keeper = "nobody" };
        if (manner == GIVES_NONE)
            raised->Taken.place.moored = wanted->moored;
        return 1;
    }
    *result = *wanted;
    result->number++;
    result->moored = moored;
    moored = wanted->moored;
    if (manner == LIES_ABOUT_LENGTH)
        memset(result->keeper, 'x', 30);
    return QUILL_OK;
}

static quill_status build(void *self, uint32_t cargo, Harbour_Ship *tug, char name[161], Harbour_Ship *result)
{
    (void)self;
    if (manner == GIVES_ITS_OWN) {
        *result = (Harbour_Ship){ OWN, 1 };
        *tug = *result;
    } else {
        *result = ship(cargo);
        *tug = manner == GIVES_TWICE ? *result : manner == GIVES_NONE ? (Harbour_Ship){ 0, 0 } : ship(SHIPS + 1);
    }
    snprintf(name, 161, "with %u", cargo);
    if (manner == LIES_ABOUT_LENGTH)
        memset(name, 'x', 50);
    return QUILL_OK;
}

static quill_status swap(void *self, const Harbour_Berths *all, Harbour_Ship one, Harbour_Convoy *line, Harbour_Berths *result)
{
    Harbour_Convoy before = *line;

    (void)self;
    if (manner == FAILS) {
        quill_release_Harbour_Berths(all);
        tern_release(one.number);
        quill_release_Harbour_Convoy(line);
        return 98;
    }
    line->_length = before._length + 1;
    for (uint32_t i = 0; i < before._length; i++)
        line->_buffer[i] = before._buffer[before._length - 1 - i];
    if (line->_length <= 4)
        line->_buffer[before._length] = one;
    else
        tern_release(one.number);
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
        snprintf(result->_u.words, sizeof result->_u.words, "%s", who);
    }
    return QUILL_OK;
}

static quill_status list(void *self, Harbour_Fleet *result)
{
    static Harbour_Ship all[17];
    uint32_t count = manner == GIVES_TOO_MANY ? 17 : in_fleet;

    (void)self;
    for (uint32_t i = 0; i < count; i++)
        all[i] = manner == GIVES_TOO_MANY ? ship(SHIPS + 9) : another(fleet[i]);
    *result = (Harbour_Fleet){ count, all };
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
    quill_release_Harbour_Convoy(line);
    return QUILL_OK;
}

static const Harbour_Port_server methods = { load, moor, build, swap, show_signal, list, first, pass };
Harbour_Port_ENTRY(entry, methods, NULL)

/* --- the client --- */

static const Harbour_Port port = { PEER_NUMBER, 0 }, nowhere = { 77, 0 };

/* That the client has so many references, and the server those that it keeps. */
static void check_client(unsigned owned, int line)
{
    owned += moored.number != 0;
    for (uint32_t i = 0; i < in_fleet; i++)
        owned += fleet[i].number != 0;
    check_owners(owned, line);
}

#define OWNERS(clients) check_client(clients, __LINE__)

static void check_lists(void)
{
    Harbour_Ship ships[17] = { ship(1), ship(2), { 0, 0 }, ship(3) };
    Harbour_Fleet all = { 4, ships }, back = { 0, NULL };
    Harbour_Ship one = { 0, 0 };
    uint32_t sum = 0;

    CHECK(Harbour_Port_load(port, &all, 10, &sum) == QUILL_OK && sum == 36);
    OWNERS(3);
    CHECK(Harbour_Port_list(port, &replies, &back) == QUILL_OK && back._length == 4 && back._buffer[2].number == 0);
    CHECK(is_ship(back._buffer[0], 1) && is_ship(back._buffer[1], 2) && is_ship(back._buffer[3], 3));
    OWNERS(6);
    quill_release_Harbour_Fleet(&back);
    CHECK(Harbour_Port_first(port, 3, &one) == QUILL_OK && is_ship(one, 3));
    tern_release(one.number);
    CHECK(Harbour_Port_first(port, 4, &one) == 4 && one.number == 0);
    tern_release(ships[1].number);
    tern_release(ships[3].number);
    /* Up to as many as there may be, and one more. */
    for (uint32_t count = 0; count <= 17; count++) {
        for (uint32_t i = 0; i < 17; i++)
            ships[i] = ships[0];
        all._length = count;
        CHECK(Harbour_Port_load(port, &all, 0, &sum) == (count <= 16 ? QUILL_OK : QUILL_TOO_LONG));
        CHECK(Harbour_Port_list(port, &replies, &back) == QUILL_OK && back._length == (count <= 16 ? count : 16));
        quill_release_Harbour_Fleet(&back);
    }
    tern_release(ships[0].number);
    OWNERS(0);
    manner = GIVES_TOO_MANY;
    CHECK(Harbour_Port_list(port, &replies, &back) == QUILL_TOO_LONG && back._length == 0 && back._buffer == NULL);
    manner = AS_IT_SHOULD;
    OWNERS(0);
}

static Harbour_Berth berth(uint32_t number, Harbour_Ship it)
{
    return (Harbour_Berth){ .number = number, .moored = it, .keeper = "\303\205got" };
}

static void check_structs(void)
{
    Harbour_Ship one = ship(SHIPS + 3), other = ship(SHIPS + 5);
    Harbour_Berth wanted = berth(1, one), was;
    Harbour_Port_moor_raised raised;

    CHECK(Harbour_Port_moor(port, &replies, &wanted, &was, &raised) == QUILL_OK && was.moored.number == 0);
    wanted = berth(5, other);
    CHECK(Harbour_Port_moor(port, &replies, &wanted, &was, &raised) == QUILL_OK && was.number == 6);
    CHECK(is_ship(was.moored, SHIPS + 3) && strcmp(was.keeper, "\303\205got") == 0);
    OWNERS(3);
    quill_release_Harbour_Berth(&was);
    wanted = berth(0, one);
    CHECK(Harbour_Port_moor(port, &replies, &wanted, &was, &raised) == 2 && raised.Closed.since == 1990);
    CHECK(was.number == 0 && was.moored.number == 0);
    wanted = berth(100, one);
    CHECK(Harbour_Port_moor(port, &replies, &wanted, &was, &raised) == 1 && is_ship(raised.Taken.by, SHIPS + 3));
    CHECK(raised.Taken.place.number == 7 && raised.Taken.place.moored.number == 0);
    OWNERS(3);
    quill_release_Harbour_Taken(&raised.Taken);
    /* A reference that cannot be given back in its place, or at all, goes nevertheless. */
    manner = GIVES_NONE;
    CHECK(Harbour_Port_moor(port, &replies, &wanted, &was, &raised) == QUILL_MALFORMED);
    OWNERS(2);
    manner = FAILS;
    CHECK(Harbour_Port_moor(port, &replies, &wanted, &was, &raised) == QUILL_KERNEL + TERN_LIMIT);
    OWNERS(2);
    manner = LIES_ABOUT_LENGTH;
    wanted = berth(1, one);
    CHECK(Harbour_Port_moor(port, &replies, &wanted, &was, &raised) == QUILL_TOO_LONG && was.moored.number == 0);
    manner = AS_IT_SHOULD;
    OWNERS(2);
    CHECK(Harbour_Port_moor(nowhere, &replies, &wanted, &was, &raised) == QUILL_KERNEL + TERN_NO_SUCH);
    OWNERS(2);
    wanted = berth(1, (Harbour_Ship){ 0, 0 });
    CHECK(Harbour_Port_moor(port, &replies, &wanted, &was, &raised) == QUILL_OK && is_ship(was.moored, SHIPS + 3));
    quill_release_Harbour_Berth(&was);
    tern_release(one.number);
    tern_release(other.number);
    OWNERS(0);
}

static void check_several(void)
{
    Harbour_Ship built, tug, before;
    char name[161];

    CHECK(Harbour_Port_build(port, &replies, 77, &tug, name, &built) == QUILL_OK && strcmp(name, "with 77") == 0);
    CHECK(is_ship(built, 77) && is_ship(tug, SHIPS + 1));
    OWNERS(2);
    tern_release(built.number);
    tern_release(tug.number);
    /* A door of the program's own stays, and each of them is another reference. */
    manner = GIVES_ITS_OWN;
    CHECK(Harbour_Port_build(port, &replies, 77, &tug, name, &built) == QUILL_OK && holds[OWN] == 9);
    CHECK(is_ship(built, 9) && is_ship(tug, 9) && built.number != tug.number);
    tern_release(built.number);
    tern_release(tug.number);
    for (manner = GIVES_TWICE; manner != AS_IT_SHOULD; manner = manner == GIVES_TWICE ? GIVES_NONE : AS_IT_SHOULD) {
        tug = built = ship(5);
        before = built;
        CHECK(Harbour_Port_build(port, &replies, 77, &tug, name, &built) == QUILL_MALFORMED);
        CHECK(tug.number == 0 && built.number == 0 && built.view == 0);
        OWNERS(1);
        tern_release(before.number);
    }
    manner = LIES_ABOUT_LENGTH;
    CHECK(Harbour_Port_build(port, &replies, 77, &tug, name, &built) == QUILL_TOO_LONG);
    manner = AS_IT_SHOULD;
    OWNERS(0);
    /* A return that does not arrive. */
    undelivered = 1;
    CHECK(Harbour_Port_build(port, &replies, 77, &tug, name, &built) != QUILL_OK && undelivered == 0);
    OWNERS(0);
}

static void check_swapped(void)
{
    Harbour_Ship kept = ship(SHIPS + 1), own = { OWN, 1 };
    Harbour_Berths all = { 2, { berth(1, kept), berth(5, kept) } }, back, none = { 0, { { 0 } } };
    Harbour_Convoy line = { 2, { ship(21), ship(22) } }, same;

    CHECK(Harbour_Port_swap(port, &replies, &all, ship(500), &line, &back) == QUILL_OK);
    CHECK(line._length == 3 && is_ship(line._buffer[0], 22) && is_ship(line._buffer[1], 21) && is_ship(line._buffer[2], 500));
    CHECK(back._length == 2 && back._buffer[1].number == 6 && is_ship(back._buffer[1].moored, SHIPS + 1));
    OWNERS(6);
    quill_release_Harbour_Berths(&back);
    /* The program's own door comes back as another reference, and is what it was. */
    tern_release(line._buffer[2].number);
    line._buffer[2] = own;
    CHECK(Harbour_Port_swap(port, &replies, &none, ship(500), &line, &back) == QUILL_OK && holds[OWN] == 9);
    CHECK(line._length == 4 && is_ship(line._buffer[0], 9) && is_ship(line._buffer[2], 22) && back._length == 0);
    OWNERS(5);
    /* Too many come back; then a method that fails, and nobody. What goes both ways is as it was, and what was to go has gone. */
    for (int round = 0; round < 4; round++) {
        memcpy(&same, &line, sizeof same);
        manner = round == 1 ? FAILS : AS_IT_SHOULD;
        undelivered = round == 3;
        if (round == 3)
            line._length = same._length = 3, tern_release(line._buffer[3].number);
        quill_status status = Harbour_Port_swap(round == 2 ? nowhere : port, &replies, &all, ship(500), &line, &back);
        CHECK(status == (round == 0 ? QUILL_TOO_LONG : round == 1 ? 98 : round == 2 ? QUILL_KERNEL + TERN_NO_SUCH : status));
        CHECK(status != QUILL_OK && memcmp(&same, &line, sizeof same) == 0 && memcmp(&back, &none, sizeof back) == 0);
        OWNERS(round == 3 ? 4 : 5);
    }
    manner = AS_IT_SHOULD;
    quill_release_Harbour_Convoy(&line);
    /* More than the type has. */
    line._length = 5;
    CHECK(Harbour_Port_swap(port, &replies, &none, ship(500), &line, &back) == QUILL_TOO_LONG);
    tern_release(kept.number);
    OWNERS(0);
}

static void check_signs(void)
{
    Harbour_Sign shown = { 1, { .one = ship(31) } }, back;
    Harbour_Convoy line = { 2, { ship(32), ship(33) } };

    CHECK(Harbour_Port_signal(port, &replies, &shown, "caf\303\251", &back) == QUILL_OK && back._d == 3);
    CHECK(back._u.several._length == 2 && is_ship(back._u.several._buffer[0], 31) && is_ship(back._u.several._buffer[1], 31));
    OWNERS(5);
    quill_release_Harbour_Sign(&back);
    /* A text that is none, of which a server hears only at the second look. */
    CHECK(Harbour_Port_signal(port, &replies, &shown, "caf\351", &back) == QUILL_MALFORMED && back._d == 0);
    OWNERS(3);
    tern_release(shown._u.one.number);
    shown = (Harbour_Sign){ 2, { .several = line } };
    CHECK(Harbour_Port_signal(port, &replies, &shown, "a", &back) == QUILL_OK && back._d == 1 && is_ship(back._u.one, 32));
    OWNERS(3);
    quill_release_Harbour_Sign(&back);
    shown = (Harbour_Sign){ 9, { .words = "" } };
    CHECK(Harbour_Port_signal(port, &replies, &shown, "w\303\266rds", &back) == QUILL_OK && back._d == 9);
    CHECK(strcmp(back._u.words, "w\303\266rds") == 0);
    CHECK(Harbour_Port_pass(port, &line) == QUILL_OK);
    OWNERS(2);
    quill_release_Harbour_Convoy(&line);
}

/* One of several leads nowhere: the method does not begin, and a client has none. */
static void check_nowhere(void)
{
    Harbour_Ship ships[3] = { ship(1), ship(2), ship(3) };
    Harbour_Fleet all = { 3, ships }, back;
    uint32_t sum;

    CHECK(Harbour_Port_load(port, &all, 0, &sum) == QUILL_OK);
    for (that_lead_nowhere = 1; that_lead_nowhere <= 3; that_lead_nowhere++) {
        CHECK(Harbour_Port_load(port, &all, 0, &sum) == QUILL_MALFORMED);
        CHECK(Harbour_Port_list(port, &replies, &back) == QUILL_MALFORMED && back._length == 0);
        OWNERS(3);
    }
    that_lead_nowhere = 0;
    manner = FAILS;
    CHECK(Harbour_Port_load(port, &all, 0, &sum) == 99);
    manner = AS_IT_SHOULD;
    forget_fleet();
    quill_release_Harbour_Fleet(&all);
    OWNERS(0);
}

/* Without numbers for what comes, in a client or in a server. */
static void check_shortage(void)
{
    Harbour_Ship ships[3] = { ship(1), ship(2), ship(3) }, rest[NUMBERS];
    Harbour_Fleet all = { 3, ships }, back;
    uint32_t count = 0, sum;

    while ((rest[count].number = tern_number_take(&tern_arrivals)) != 0)
        count++;
    for (uint32_t left = 0; left < 16; left++) {
        CHECK(Harbour_Port_load(port, &all, 0, &sum) == (left < 3 ? QUILL_MALFORMED : QUILL_OK));
        forget_fleet();
        CHECK(Harbour_Port_list(port, &replies, &back) == QUILL_KERNEL + TERN_LIMIT && back._length == 0);
        CHECK(tern_numbers_in_use(&tern_arrivals) == NUMBERS - left);
        tern_release(rest[--count].number);
    }
    CHECK(Harbour_Port_list(port, &replies, &back) == QUILL_OK && back._length == 0);
    while (count > 0)
        tern_release(rest[--count].number);
    quill_release_Harbour_Fleet(&all);
    OWNERS(0);
}

/* Words of messages that no stub makes: lists and unions that claim other references than they bring. */
static const struct {
    unsigned count;
    uint64_t words[2];
} claims[] = {
    { 0, { 0 } },
    { 1, { 0 } },
    { 2, { 1, 0x01 } },
    /* Two elements, of which the first is none; a byte that is neither; elements without end. */
    { 2, { 2, 0x0100 } },
    { 2, { 1, 0x02 } },
    { 2, { UINT32_MAX, UINT64_MAX } },
    { 2, { 3, 0x00010101 } },
    { 2, { UINT64_C(0x0101010101010101), UINT64_C(0x0101010101010101) } },
};
enum { CLAIMS = sizeof claims / sizeof *claims, ITEMS = 5 };

/* Makes such a message in a block, with so many references to the program's own object; says its dope. */
static uint64_t claim(uint64_t *block, int number, uint64_t items)
{
    unsigned count = claims[number].count;

    memcpy(block, claims[number].words, 8 * count);
    for (uint64_t i = 0; i < items; i++)
        block[count + 2 * i] = quill_handed_over(OWN, false), block[count + 2 * i + 1] = 1;
    return count | items << 20;
}

/* Requests of that kind, for each method. What a method has begun with, it has. */
static void check_requests(void)
{
    uint64_t block[2 + 2 * ITEMS];
    quill_carried windows;

    for (uint64_t label = 0; label < 16; label++)
        for (int number = 0; number < CLAIMS; number++)
            for (uint64_t items = 0; items < ITEMS; items++) {
                uint64_t words[QUILL_WORDS] = { claim(block, number, items), (uintptr_t)block, 1, 1, 1, 1, 1, 1 }, rax;
                CHECK(quill_open_windows(&windows, replies.strings + 2 * REPLY_STRINGS, WINDOWS) == QUILL_OK);
                standing[0] = quill_window_at(tern_number_take(&tern_arrivals));
                rax = deliver(label << 60 | QUILL_DOOR_LONG_CALL, words);
                CHECK((rax & 0xff) == (TERN_DOOR_RETURN & 0xff));
                quill_close_windows(&windows, 0);
                tern_release(quill_number_at(quill_set_window(0)));
                forget_fleet();
                tern_release(moored.number);
                moored.number = 0;
                OWNERS(0);
            }
}

/* Replies of that kind. What a client is told it has. */
static void check_replies(void)
{
    static const uint64_t labels[] = { UINT32_MAX, 1, 2, 3 };
    uint64_t block[2 + 2 * ITEMS];
    Harbour_Fleet fleet_back, none = { 0, NULL };
    Harbour_Berth berth_back, wanted = berth(1, (Harbour_Ship){ 0, 0 });
    Harbour_Berths berths_back, no_berths = { 0, { { 0 } } };
    Harbour_Sign sign_back, shown = { 9, { .words = "" } };
    Harbour_Convoy line = { 1, { ship(41) } };
    Harbour_Port_moor_raised raised;
    Harbour_Ship one, other;
    char name[161];
    uint32_t sum;

    for (int number = 0; number < 4 * CLAIMS * ITEMS; number++) {
        lie = labels[number % 4] << 32 | (TERN_DOOR_RETURN & ~QUILL_NO_BLOCK);
        lying_words[0] = claim(block, number / 4 % CLAIMS, (uint64_t)number / 4 / CLAIMS);
        lying_words[1] = (uintptr_t)block;
        if (Harbour_Port_list(port, &replies, &fleet_back) == QUILL_OK)
            quill_release_Harbour_Fleet(&fleet_back);
        quill_status status = Harbour_Port_moor(port, &replies, &wanted, &berth_back, &raised);
        if (status == QUILL_OK)
            quill_release_Harbour_Berth(&berth_back);
        else if (status == 1)
            quill_release_Harbour_Taken(&raised.Taken);
        if (Harbour_Port_signal(port, &replies, &shown, "a", &sign_back) == QUILL_OK)
            quill_release_Harbour_Sign(&sign_back);
        CHECK(Harbour_Port_build(port, &replies, 1, &one, name, &other) != QUILL_OK && one.number == 0);
        CHECK(Harbour_Port_load(port, &none, 1, &sum) != QUILL_OK);
        CHECK(Harbour_Port_first(port, 1, &one) != QUILL_OK && one.number == 0);
        OWNERS(1);
        if (Harbour_Port_swap(port, &replies, &no_berths, ship(42), &line, &berths_back) == QUILL_OK) {
            quill_release_Harbour_Berths(&berths_back);
            quill_release_Harbour_Convoy(&line);
            line = (Harbour_Convoy){ 1, { ship(41) } };
        }
        OWNERS(1);
    }
    lie = 0;
    quill_release_Harbour_Convoy(&line);
    OWNERS(0);
}

int main(void)
{
    begin_identifiers(120, 160);
    for (int round = 0; round < 3; round++) {
        check_lists();
        check_structs();
        check_several();
        check_swapped();
        check_signs();
        check_nowhere();
        check_shortage();
        check_requests();
        check_replies();
    }
    return 0;
}
