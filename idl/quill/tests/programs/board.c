/* A client and a server of `board.idl` over L4's V4 API: values that are read piece by piece, what goes both ways, lists in exceptions,
 * references, and many thousand damaged requests. */

#define QUILL_UNBOUNDED_BYTES 600
#include "board.h"
#include "l4_kernel.h"
#include "on_l4.h"

static char *text(const char *literal)
{
    return (char *)(uintptr_t)literal;
}

static uint32_t notes;

/* --- the server --- */

static quill_status draw(void *self, quill_thread from, const Shape *what, int32_t at, Shape *back, int32_t *there)
{
    static char *names[5];

    (void)self, (void)from;
    *there = at + 1;
    if (what->_d == red) {
        back->_d = green;
        back->_u.text = text("a circle");
    } else if (what->_d == green) {
        back->_d = blue;
        back->_u.names._length = 2;
        back->_u.names._buffer = names;
        names[0] = what->_u.text;
        names[1] = text("twice");
        /* Texts of a list have a bound. */
        if (names[0][0] == 'x')
            names[1] = text("more than twenty characters");
    } else {
        back->_d = red;
        back->_u.radius = (int32_t)what->_u.names._length;
        for (uint32_t i = 0; i < what->_u.names._length; i++)
            back->_u.radius += what->_u.names._buffer[i][0];
    }
    return QUILL_OK;
}

static quill_status switches(void *self, quill_thread from, sequence_bool *some, const Colour all[3], sequence_bool *result)
{
    static bool kept[600];

    (void)self, (void)from;
    result->_length = some->_length;
    result->_buffer = kept;
    for (uint32_t i = 0; i < some->_length && i < 600; i++)
        kept[i] = !some->_buffer[i];
    if (some->_length > 0)
        some->_buffer[0] = all[1] == blue;
    return QUILL_OK;
}

static quill_status rename_(void *self, quill_thread from, const Names *names, const char *what, char **other, Names *result,
                           Board_rename_raised *raised)
{
    static uint8_t four[4] = { 4, 3, 2, 1 };
    static int32_t numbers[3] = { 7, 8, 9 };

    (void)self, (void)from;
    *other = text(what);
    *result = *names;
    switch (what[0]) {
    case '1': raised->Plain.why = 11; return 1;
    case '2': raised->Spoken.why = text("spoken"); return 2;
    case '3':
        raised->Brief.what = text("nine chrs");
        raised->Brief.at = 33;
        raised->Brief.bytes._length = 3;
        raised->Brief.bytes._buffer = four;
        return 3;
    case '4':
        raised->Whole.why = text("because");
        raised->Whole.other = text("");
        raised->Whole.list._length = 3;
        raised->Whole.list._buffer = numbers;
        raised->Whole.form._d = green;
        raised->Whole.form._u.text = text("a form");
        return 4;
    }
    return QUILL_OK;
}

static quill_status read_(void *self, quill_thread from, int32_t number, char **result, Board_read_raised *raised)
{
    static char letters[501];

    (void)self, (void)from;
    if (number < 0) {
        raised->Spoken.why = NULL; /* no text: the server is at fault */
        return 2;
    }
    for (int32_t i = 0; i < number && i < 500; i++)
        letters[i] = 'r';
    letters[number < 500 ? number : 500] = 0;
    *result = letters;
    return QUILL_OK;
}

static quill_status count(void *self, quill_thread from, int32_t how, int32_t *result, Board_count_raised *raised)
{
    static char letters[400];

    (void)self, (void)from;
    *result = how;
    if (how < 0)
        return QUILL_OK;
    for (int32_t i = 0; i < how && i < 399; i++)
        letters[i] = 'c';
    letters[how < 399 ? how : 399] = 0;
    raised->Spoken.why = letters;
    return 1;
}

static quill_status note(void *self, quill_thread from, const Shape *what)
{
    (void)self, (void)from;
    notes += what->_d == red ? (uint32_t)what->_u.radius : 1000;
    return QUILL_OK;
}

static quill_status find(void *self, quill_thread from, const char *who, uint64_t where, uint64_t *result)
{
    (void)self;
    *result = same(who, "me") ? from : where;
    return QUILL_OK;
}

static quill_status shout(void *self, quill_thread from, char **what)
{
    (void)self, (void)from;
    for (char *letter = *what; *letter != 0; letter++)
        if (*letter >= 'a' && *letter <= 'z')
            *letter = (char)(*letter - 32);
    return QUILL_OK;
}

static quill_status turn(void *self, quill_thread from, Many *list, int32_t numbers[100], Numbers *more)
{
    static int32_t sum[1];

    (void)self, (void)from;
    for (uint32_t i = 0; i < list->_length / 2; i++) {
        uint8_t kept = list->_buffer[i];
        list->_buffer[i] = list->_buffer[list->_length - 1 - i];
        list->_buffer[list->_length - 1 - i] = kept;
    }
    sum[0] = 0;
    for (int i = 0; i < 100; i++)
        sum[0] = (int32_t)((uint32_t)sum[0] + (uint32_t)numbers[i]), numbers[i] = i;
    more->_length = 1;
    more->_buffer = sum;
    return QUILL_OK;
}

static const Board_server methods = { draw, switches, rename_, read_, count, note, find, shout, turn };

static void server(void)
{
    static Board_buffers buffers;

    Board_serve(&methods, NULL, &buffers);
}

/* --- the client --- */

static Board_replies room;

static void shapes(void)
{
    static char *five[6] = { (char *)"a", (char *)"bc", (char *)"", (char *)"d", (char *)"e", (char *)"f" };
    Shape what = { 0 }, back = { 0 };
    int32_t there = 0;

    what._d = red;
    what._u.radius = -5;
    CHECK(Board_draw(SERVER, &room, &what, 7, &back, &there) == QUILL_OK && there == 8);
    CHECK(back._d == green && same(back._u.text, "a circle"));
    what._d = green;
    what._u.text = text("word");
    CHECK(Board_draw(SERVER, &room, &what, 8, &back, &there) == QUILL_OK && there == 9);
    CHECK(back._d == blue && back._u.names._length == 2 && same(back._u.names._buffer[0], "word"));
    CHECK(same(back._u.names._buffer[1], "twice"));
    what._u.text = text("x");
    CHECK(Board_draw(SERVER, &room, &what, 8, &back, &there) == QUILL_MALFORMED);
    what._d = blue;
    what._u.names._length = 5;
    what._u.names._buffer = five;
    CHECK(Board_draw(SERVER, &room, &what, 0, &back, &there) == QUILL_OK && back._d == red);
    CHECK(back._u.radius == 5 + 'a' + 'b' + 'd' + 'e');
    what._u.names._length = 6;
    CHECK(Board_draw(SERVER, &room, &what, 0, &back, &there) == QUILL_TOO_LONG);
    what._d = 9;
    CHECK(Board_draw(SERVER, &room, &what, 0, &back, &there) == QUILL_MALFORMED);
    what._d = red;
    what._u.radius = 40;
    CHECK(Board_note(SERVER, &what) == QUILL_OK && Board_note(SERVER, &what) == QUILL_OK);
}

static void both_ways(void)
{
    static bool some[3] = { true, false, true };
    static char letters[600];
    static uint8_t bytes[999];
    static int32_t numbers[100], sum[150];
    sequence_bool flags = { 3, some }, result = { 0 };
    Colour all[3] = { red, blue, green };
    char *what = letters;
    Many list = { 600, bytes };
    Numbers more = { 0, sum };
    uint64_t found = 0;

    CHECK(Board_switches(SERVER, &room, &flags, all, &result) == QUILL_OK);
    CHECK(flags._length == 3 && flags._buffer[0] && !flags._buffer[1] && flags._buffer[2]);
    CHECK(result._length == 3 && !result._buffer[0] && result._buffer[1] && !result._buffer[2]);
    all[1] = 3;
    CHECK(Board_switches(SERVER, &room, &flags, all, &result) == QUILL_MALFORMED);
    for (int length = 0; length < 590; length++) {
        for (int i = 0; i < length; i++)
            letters[i] = 'q';
        letters[length] = 0;
        CHECK(Board_shout(SERVER, &what) == QUILL_OK && what == letters && quill_length(letters) == (size_t)length);
        CHECK(length == 0 || (letters[0] == 'Q' && letters[length - 1] == 'Q'));
    }
    for (int i = 0; i < 600; i++)
        bytes[i] = (uint8_t)i;
    for (int i = 0; i < 100; i++)
        numbers[i] = 3;
    CHECK(Board_turn(SERVER, &list, numbers, &more) == QUILL_OK && list._length == 600 && bytes[0] == (uint8_t)599);
    CHECK(numbers[99] == 99 && more._length == 1 && sum[0] == 300);
    list._length = 1000;
    CHECK(Board_turn(SERVER, &list, numbers, &more) == QUILL_TOO_LONG);
    CHECK(Board_find(SERVER, "me", 5, &found) == QUILL_OK && found == CLIENT);
    CHECK(Board_find(SERVER, "you", 0x123456789abcdefu, &found) == QUILL_OK && found == 0x123456789abcdefu);
}

static void exceptions(void)
{
    static char *two[2] = { (char *)"one", (char *)"two" };
    static char other[600], line[600];
    Names names = { 2, two }, result = { 0 };
    char *back = other, *answer = line;
    Board_rename_raised raised;
    Board_read_raised unread;
    Board_count_raised uncounted;
    int32_t number = 0;

    CHECK(Board_rename(SERVER, &room, &names, "0 and more", &back, &result, &raised) == QUILL_OK);
    CHECK(back == other && same(other, "0 and more") && result._length == 2 && same(result._buffer[1], "two"));
    CHECK(Board_rename(SERVER, &room, &names, "1", &back, &result, &raised) == 1 && raised.Plain.why == 11);
    CHECK(Board_rename(SERVER, &room, &names, "2", &back, &result, &raised) == 2 && same(raised.Spoken.why, "spoken"));
    CHECK(Board_rename(SERVER, &room, &names, "3", &back, &result, &raised) == 3 && same(raised.Brief.what, "nine chrs"));
    CHECK(raised.Brief.at == 33 && raised.Brief.bytes._length == 3 && raised.Brief.bytes._buffer[2] == 2);
    CHECK(Board_rename(SERVER, &room, &names, "4", &back, &result, &raised) == 4 && same(raised.Whole.why, "because"));
    CHECK(same(raised.Whole.other, "") && raised.Whole.list._length == 3 && raised.Whole.list._buffer[2] == 9);
    CHECK(raised.Whole.form._d == green && same(raised.Whole.form._u.text, "a form"));
    CHECK(Board_read(SERVER, &room, -1, &answer, &unread) == QUILL_MALFORMED);
    for (int length = 0; length < 400; length++) {
        CHECK(Board_read(SERVER, &room, length, &answer, &unread) == QUILL_OK && answer == line);
        CHECK(quill_length(line) == (size_t)length);
    }
    CHECK(Board_count(SERVER, &room, -3, &number, &uncounted) == QUILL_OK && number == -3);
    for (int length = 0; length < 399; length++) {
        CHECK(Board_count(SERVER, &room, length, &number, &uncounted) == 1);
        CHECK(quill_length(uncounted.Spoken.why) == (size_t)length);
    }
}

/* --- damaged requests --- */

static quill_word raw(const quill_word *words)
{
    char *mine = quill_utcb();
    uint32_t w0, w1;

    for (int i = 1; i < 64; i++)
        *quill_register(mine, i) = words[i];
    return quill_call(mine, SERVER, words[0], 252, 252, &w0, &w1);
}

/* Bytes of items, in memory that the kernel can read. */
static uint64_t pieces[2][64];

static void damage(void)
{
    static char *five[5] = { (char *)"a", (char *)"bc", (char *)"", (char *)"d", (char *)"e" };
    Shape what = { 0 };
    uint32_t refused = 0, taken = 0;

    what._d = blue;
    what._u.names._length = 5;
    what._u.names._buffer = five;
    for (uint32_t run = 0; run < 40000; run++) {
        quill_word words[64] = { 0 };
        uint32_t method = pick() % 4, bytes = pick() % 5 == 0 ? pick() % 512 : pick() % 64;
        quill_out stream = quill_begin_out((char *)pieces[0], sizeof pieces[0]);
        quill_word tag;
        quill_put_Shape(&stream, &what);
        if (pick() % 3 == 0)
            bytes = (uint32_t)stream.length;
        for (uint32_t changes = pick() % 4; changes-- > 0;)
            ((uint8_t *)pieces[0])[pick() % (bytes + 1)] = (uint8_t)(pick() % 3 == 0 ? pick() : pick() % 4);
        /* draw has a word before its item, note none. */
        memset(words, 0, sizeof words);
        if (method < 3) {
            size_t at = QUILL_WORDS(4) + 1;
            words[0] = QUILL_TAG(0, 4, 1);
            words[at] = (quill_word)bytes << 10;
            words[at + 1] = (quill_word)pieces[0];
        } else {
            words[0] = QUILL_TAG(pick() & 0x7000 & ~0x8000u, pick() % 16, pick() % 3);
            for (int i = 1; i < 20; i++)
                words[i] = pick() % 4 == 0 ? pick() : 0;
        }
        if ((uint16_t)(words[0] >> 16) >= 0xff80)
            continue;
        tag = raw(words);
        refused += (tag & 0x8000) != 0 || tag >> 16 == QUILL_MALFORMED || tag >> 16 == QUILL_NO_METHOD;
        taken += (tag & 0x8000) == 0 && tag >> 16 == 0;
    }
    CHECK(refused > 5000 && taken > 100);
}

static __attribute__((noinline)) void client(void)
{
    shapes();
    CHECK(notes == 80);
    both_ways();
    exceptions();
    damage();
    shapes();
    exceptions();
}
