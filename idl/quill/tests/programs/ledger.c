/* Both sides of ledger.idl: flat unions in every place where one can be. Whatever their bytes are, they arrive. */

#define STUBS "ledger.h"
#define INTERFACE Ledger_Book
#define REQUEST_STRINGS { 0 }
#define REPLY_STRINGS { 0 }
#define IS_ONEWAY(label) ((label) >> 13 == 5)
#include "sides_begin.h"

_Static_assert(sizeof(Ledger_Amount) == 16 && sizeof(Ledger_Small) == 2 && sizeof(Ledger_Page) == 120, "as in the layout");

/* --- the server --- */

static int16_t noted;

static quill_status add(SELF, Ledger_Sort which, const Ledger_Amount *given, Ledger_Small *tag,
                        Ledger_Amount *result, Ledger_Book_add_raised *raised)
{
    (void)self, (void)from;
    CHECK(which <= Ledger_BYTES);
    if (given->whole == -1) {
        raised->Bad.found = *given;
        raised->Bad.line = tag->number;
        return 1;
    }
    *result = *given;
    tag->number = (int16_t)(tag->number ^ 0x55);
    return QUILL_OK;
}

static quill_status mirror(SELF, const Ledger_Amounts *some, Ledger_Amounts *result)
{
#if !INSIDE
    static Ledger_Amount back[20];
    result->_buffer = back;
#endif
    (void)self, (void)from;
    CHECK(some->_length <= 20);
    result->_length = some->_length;
    for (uint32_t i = 0; i < some->_length; i++)
        result->_buffer[i] = some->_buffer[some->_length - 1 - i];
    return QUILL_OK;
}

static quill_status weigh(SELF, const Ledger_Tags *some, const Ledger_Small *one, uint32_t *result)
{
    (void)self, (void)from;
    CHECK(some->_length <= 300);
    *result = (uint32_t)one->bytes[1] << 24 | (uint8_t)noted;
    for (uint32_t i = 0; i < some->_length; i++)
        *result += some->_buffer[i].bytes[0];
    return QUILL_OK;
}

static quill_status put(SELF, const Ledger_Entry *what, Ledger_Entry *result)
{
    (void)self, (void)from;
    *result = *what;
    result->line++;
    return QUILL_OK;
}

static quill_status turn(SELF, const Ledger_Page *leaf, Ledger_Page *result)
{
    (void)self, (void)from;
    for (int i = 0; i < 60; i++)
        result->cells[i] = leaf->cells[59 - i];
    return QUILL_OK;
}

static quill_status hint(SELF, const Ledger_Small *tag)
{
    (void)self, (void)from;
    noted = tag->number;
    return QUILL_OK;
}

static const Ledger_Book_server methods = { add, mirror, weigh, put, turn, hint };

/* --- the client --- */

static void fill(void *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)to)[i] = (uint8_t)pick();
}

static void values(void)
{
    Ledger_Amount given = { 0 }, found = { 0 };
    Ledger_Book_add_raised raised = { 0 };
    Ledger_Small tag = { 0 };

    for (uint32_t i = 0; i < 30; i++) {
        fill(&given, sizeof given);
        tag.number = (int16_t)(i * 1000);
        EXPECT(Ledger_Book_add(PEER, i % 3, &given, &tag, &found, &raised) == QUILL_OK);
        EXPECT(equal(&given, &found, sizeof given) && tag.number == (int16_t)(i * 1000 ^ 0x55));
    }
    /* Another shape of these bytes. */
    given._bits[1] = 0;
    given.real = 1.5;
    EXPECT(Ledger_Book_add(PEER, Ledger_REAL, &given, &tag, &found, &raised) == QUILL_OK);
    EXPECT(found.quad[1] == 0x3ff80000 && found.at.x == 0 && found.bytes[7] == 0x3f && found.bytes[10] == 0);
    given.whole = -1;
    given.quad[2] = 77;
    tag.number = 9;
    EXPECT(Ledger_Book_add(PEER, Ledger_WHOLE, &given, &tag, &found, &raised) == 1);
    EXPECT(equal(&raised.Bad.found, &given, sizeof given) && raised.Bad.line == 9);
    /* The name beside it is checked as ever. */
    EXPECT(Ledger_Book_add(PEER, 3, &given, &tag, &found, &raised) == QUILL_MALFORMED);
}

static void lists(void)
{
    static Ledger_Small many[301];
    Ledger_Amount all[21];
    Ledger_Tags tags = { 0 };
    Ledger_Small one = { 0 };
    Ledger_Amounts some, back = { 0 };
    uint32_t sum = 0, expected;

    fill(all, sizeof all);
    fill(many, sizeof many);
#if INSIDE
    memcpy(some._buffer, all, 20 * sizeof *all);
#else
    Ledger_Amount came[20];
    some._buffer = all;
    back._buffer = came;
#endif
    for (some._length = 0; some._length <= 21; some._length++) {
        quill_status status = Ledger_Book_mirror(PEER_REPLIES, &some, &back);
        EXPECT(status == (some._length <= 20 ? QUILL_OK : QUILL_TOO_LONG));
        EXPECT(status != QUILL_OK || back._length == some._length);
        if (status == QUILL_OK && sane)
            for (uint32_t i = 0; i < some._length; i++)
                CHECK(equal(&back._buffer[i], &all[some._length - 1 - i], sizeof *all));
    }
    one.number = 0x1203;
    EXPECT(Ledger_Book_hint(PEER, &one) == QUILL_OK);
    tags._buffer = many;
    for (tags._length = 0; tags._length <= 300; tags._length += 1 + tags._length / 8) {
        expected = 0x12000003;
        for (uint32_t i = 0; i < tags._length; i++)
            expected += many[i].bytes[0];
        EXPECT(Ledger_Book_weigh(PEER, &tags, &one, &sum) == QUILL_OK && sum == expected);
    }
    tags._length = 301;
    EXPECT(Ledger_Book_weigh(PEER, &tags, &one, &sum) == QUILL_TOO_LONG);
}

static void parts(void)
{
    Ledger_Entry given, found = { 0 };
    Ledger_Page leaf = { 0 }, back = { 0 };

    for (int i = 0; i < 10; i++) {
        fill(&given, sizeof given);
        given.line = 6;
        EXPECT(Ledger_Book_put(PEER, &given, &found) == QUILL_OK && found.line == 7);
        EXPECT(equal(&given.amount, &found.amount, sizeof found.amount) && given.tag.number == found.tag.number);
        fill(&leaf, sizeof leaf);
        EXPECT(Ledger_Book_turn(PEER_REPLIES, &leaf, &back) == QUILL_OK);
        EXPECT(back.cells[0] == leaf.cells[59] && back.first.bytes[0] == (uint8_t)leaf.cells[59]);
        EXPECT(back.cells[59] == leaf.cells[0] && back.cells[17] == leaf.cells[42]);
    }
}

static void calls(void)
{
    values();
    lists();
    parts();
}

#include "sides_end.h"
