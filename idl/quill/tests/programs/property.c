/* Both sides of property.idl: values that bring their types along, of all kinds, and some whose parts do not go together. */

#define STUBS "property.h"
#ifdef ON_L4
#define INTERFACE Property_Thing
#else
#define INTERFACE Property_Chest
#endif
#define REQUEST_STRINGS { 4096, 4096, 4096, 0 }
#define REPLY_STRINGS { 80, 4096, 4096, 0 }
#define IS_ONEWAY(label) ((label) >> 14 == 3)
#include "sides_begin.h"

/* A content that comes back has to have room for as much as there may be. */
#define ROOM_BYTES 4096

/* --- the server --- */

static uint8_t contents[4][ROOM_BYTES];
static quill_any stored[4];
static uint32_t noted;

static uint32_t length_of(const char *text)
{
    uint32_t length = 0;

    while (text[length] != 0)
        length++;
    return length;
}

/* What is given is what it says it is. */
static uint32_t weight(const quill_any *any)
{
    uint32_t letter = 0;
    const char *text;
    bool truth;

    CHECK(quill_any_is_sound(any) && any->kind <= quill_tk_described && any->content._length <= ROOM_BYTES);
    if (quill_any_get_wchar(any, &letter))
        CHECK(quill_is_scalar(letter));
    if (quill_any_get_boolean(any, &truth))
        CHECK(any->bits <= 1);
    if (quill_any_get_string(any, &text))
        CHECK(length_of(text) + 1 == any->content._length);
    else
        CHECK(any->kind == quill_tk_described || any->content._length == 0);
    return 10000 * any->kind + 3 * any->content._length + (uint8_t)any->bits;
}

static quill_status put(SELF, int32_t where, const quill_any *value, uint32_t *result)
{
    uint8_t *room_for = contents[where & 3];

    (void)self, (void)from;
    *result = weight(value) + noted;
    stored[where & 3] = *value;
    stored[where & 3].content._buffer = room_for;
    for (uint32_t i = 0; i < value->content._length; i++)
        room_for[i] = value->content._buffer[i];
    return QUILL_OK;
}

static quill_status get(SELF, int32_t where, quill_any *result)
{
    (void)self, (void)from;
    if (where == 77) {
        /* Nobody is given this. */
        *result = quill_any_of(quill_tk_boolean, 2, NULL);
        return QUILL_OK;
    }
    *result = stored[where & 3];
    return QUILL_OK;
}

static quill_status pair(SELF, const Property_Pair *given, bool twice, uint32_t *result)
{
    (void)self, (void)from;
    *result = (weight(&given->value) + length_of(given->name)) * (twice ? 2 : 1);
    return QUILL_OK;
}

static quill_status hint(SELF, const quill_any *value)
{
    (void)self, (void)from;
    noted = weight(value);
    return QUILL_OK;
}

#ifdef ON_L4
static const Property_Thing_server methods = { put, get, pair, hint };
#else

static quill_status drop(SELF, const quill_any *value, Property_Chest_drop_raised *raised)
{
    (void)self, (void)from;
    weight(value);
    if (value->kind == quill_tk_null)
        return QUILL_OK;
    put(SAME_SELF, 3, value, &(uint32_t){ 0 });
    raised->Unknown.what = stored[3];
    return 1;
}

static void name(Property_Pair *of, const char *text)
{
#if INSIDE
    memcpy(of->name, text, length_of(text) + 1);
#else
    of->name = (char *)(uintptr_t)text;
#endif
}

/* Texts of a request lie where it has arrived, which a reply does not replace before it is sent. */
static quill_status swap(SELF, quill_any *value, const Property_Pair *other, Property_Pair *result)
{
    (void)self, (void)from;
    weight(value);
    weight(&other->value);
    name(result, other->name);
    result->value = *value;
    *value = other->value;
    return QUILL_OK;
}

static quill_status all(SELF, const Property_Values *some, Property_Pairs *result)
{
    static const char *const names[] = { "one", "two", "three" };
#if !INSIDE
    static Property_Pair pairs[3];
    result->_buffer = pairs;
#endif
    (void)self, (void)from;
    CHECK(some->_length <= 4);
    result->_length = some->_length < 3 ? some->_length : 3;
    for (uint32_t i = 0; i < some->_length; i++) {
        weight(&some->_buffer[i]);
        if (i < 3) {
            name(&result->_buffer[i], names[i]);
            result->_buffer[i].value = some->_buffer[i];
        }
    }
    return QUILL_OK;
}

static const Property_Chest_server methods = { put, get, pair, hint, drop, swap, all };
#endif

/* --- the client --- */

#define KINDS 24

static char longest[QUILL_ANY_CHARACTERS_MAX + 2];

static quill_any some_value(uint32_t which)
{
    switch (which) {
    case 0: return quill_any_null();
    case 1: return quill_any_boolean(true);
    case 2: return quill_any_boolean(false);
    case 3: return quill_any_char((char)-1);
    case 4: return quill_any_octet(200);
    case 5: return quill_any_short(-5);
    case 6: return quill_any_ushort(UINT16_MAX);
    case 7: return quill_any_long(INT32_MIN);
    case 8: return quill_any_ulong(UINT32_MAX);
    case 9: return quill_any_longlong(-1);
    case 10: return quill_any_ulonglong(UINT64_MAX);
    case 11: return quill_any_float(1.5f);
    case 12: return quill_any_double(-2.25);
    case 13: return quill_any_wchar(0x10ffff);
    case 14: return quill_any_string("");
    case 15: return quill_any_string("a");
    case 16: return quill_any_string("eleven char");
    case 17: return quill_any_string("caf\303\251");
    case 18: return quill_any_string(longest);
    default: return quill_any_string(longest + 235 - which);
    }
}

static bool same(const quill_any *a, const quill_any *b)
{
    uint32_t length = a->content._length;

    return a->kind == b->kind && a->bits == b->bits && b->content._length == length && equal(a->content._buffer, b->content._buffer, length);
}

static void values(void)
{
    static uint8_t came[ROOM_BYTES];
    uint32_t found = 0;

    for (uint32_t which = 0; which < KINDS; which++) {
        quill_any value = some_value(which), back = { 0 };
        uint32_t expected = 10000 * value.kind + 3 * value.content._length + (uint8_t)value.bits;
        back.content._buffer = came;
        EXPECT(OF(hint)(PEER, &value) == QUILL_OK);
        EXPECT(OF(put)(PEER, (int32_t)which, &value, &found) == QUILL_OK && found == 2 * expected);
        quill_status status = OF(get)(PEER_REPLIES, (int32_t)which, &back);
        EXPECT(status == QUILL_OK && same(&value, &back));
        /* Whatever has come, it is what it says it is. */
        CHECK(status != QUILL_OK || quill_any_is_sound(&back));
    }
}

static void questions(void)
{
    quill_any value = quill_any_long(-7), text = quill_any_string("text");
    const char *letters;
    int16_t low;
    int32_t number;
    double real;

    EXPECT(quill_any_get_long(&value, &number) && number == -7 && value.bits == 0xfffffff9);
    EXPECT(!quill_any_get_short(&value, &low) && !quill_any_get_double(&value, &real));
    EXPECT(!quill_any_get_string(&value, &letters) && letters[0] == 0);
    EXPECT(quill_any_get_string(&text, &letters) && equal(letters, "text", 5));
    value = quill_any_double(0.1);
    EXPECT(quill_any_get_double(&value, &real) && real == 0.1 && !quill_any_get_long(&value, &number));
}

/* Parts that do not go together are refused, and so are kinds that nobody knows. */
static void unsound(void)
{
    static const struct {
        quill_any_kind kind;
        uint64_t bits;
        const char *text;
    } all[] = {
        { quill_tk_null, 1, NULL },          { quill_tk_boolean, 2, NULL },      { quill_tk_char, 256, NULL },
        { quill_tk_octet, 256, NULL },       { quill_tk_short, 65536, NULL },    { quill_tk_ushort, 1u << 31, NULL },
        { quill_tk_long, 1ull << 32, NULL }, { quill_tk_ulong, UINT64_MAX, NULL }, { quill_tk_float, 1ull << 63, NULL },
        { quill_tk_wchar, 0xd800, NULL },    { quill_tk_wchar, 0x110000, NULL }, { quill_tk_string, 1, "text" },
        { quill_tk_long, 0, "text" },      { quill_tk_null, 0, "x" },        { 15, 0, NULL },
        { UINT32_MAX, 0, NULL },         { quill_tk_string, 0, NULL },    { quill_tk_described, 0, NULL },
        { quill_tk_described, 8, NULL }, { quill_tk_described, 8, "1234567" "89" }, { quill_tk_described, 4, "1234567" },
    };
    static uint8_t came[ROOM_BYTES];
    quill_any back = { 0 };
    uint32_t found = 0;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        quill_any value = quill_any_of(all[i].kind, all[i].bits, all[i].text);
        EXPECT(OF(put)(PEER, 1, &value, &found) == QUILL_MALFORMED);
    }
    back.content._buffer = came;
    EXPECT(OF(get)(PEER_REPLIES, 77, &back) == QUILL_MALFORMED);
    back = quill_any_string("caf\351");
    EXPECT(OF(put)(PEER, 1, &back, &found) != QUILL_OK);
    longest[QUILL_ANY_CHARACTERS_MAX] = 'x';
    back = quill_any_string(longest);
    EXPECT(OF(put)(PEER, 1, &back, &found) != QUILL_OK);
    longest[QUILL_ANY_CHARACTERS_MAX] = 0;
}

static void pairs(void)
{
    Property_Pair given;
    uint32_t found = 0;

#if INSIDE
    memcpy(given.name, "depth", 6);
#else
    given.name = (char *)(uintptr_t)"depth";
#endif
    for (uint32_t which = 0; which < KINDS; which++) {
        given.value = some_value(which);
        uint32_t expected = 10000 * given.value.kind + 3 * given.value.content._length + (uint8_t)given.value.bits + 5;
        EXPECT(OF(pair)(PEER, &given, which % 2 == 1, &found) == QUILL_OK);
        EXPECT(found == expected * (which % 2 == 1 ? 2 : 1));
    }
}

#ifndef ON_L4

static void exchanges(void)
{
    Property_Chest_drop_raised raised = { 0 };
    Property_Pair other, back;
    quill_any value;

    for (uint32_t which = 0; which < KINDS; which++) {
        value = some_value(which);
        quill_status status = OF(drop)(PEER_REPLIES, &value, &raised);
        EXPECT(status == (which == 0 ? QUILL_OK : 1));
        EXPECT(status != 1 || same(&raised.Unknown.what, &value));
        other.value = some_value(KINDS - 1 - which);
        name(&other, "twenty characters...");
        status = OF(swap)(PEER_REPLIES, &value, &other, &back);
        quill_any here = some_value(which);
        EXPECT(status == QUILL_OK && same(&value, &other.value) && same(&back.value, &here));
        EXPECT(status == QUILL_OK && equal(back.name, "twenty characters...", 21));
    }
}

static void lists(void)
{
    Property_Values some;
    Property_Pairs back;
#if !INSIDE
    quill_any room_for[5];
    some._buffer = room_for;
#endif
    for (uint32_t first = 0; first < KINDS; first++) {
        some._length = first % 5;
        for (uint32_t i = 0; i < some._length; i++)
            some._buffer[i] = some_value((first * 7 + i) % 18);
        EXPECT(OF(all)(PEER_REPLIES, &some, &back) == QUILL_OK && back._length == (some._length < 3 ? some._length : 3));
        for (uint32_t i = 0; i < some._length && i < 3 && sane; i++)
            CHECK(same(&some._buffer[i], &back._buffer[i].value) && equal(back._buffer[i].name, i == 0 ? "one" : i == 1 ? "two" : "three", 3));
    }
    some._length = 1;
    some._buffer[0] = quill_any_of(quill_tk_boolean, 7, NULL);
    EXPECT(OF(all)(PEER_REPLIES, &some, &back) == QUILL_MALFORMED);
}

#endif

static void calls(void)
{
    memset(longest, 'l', QUILL_ANY_CHARACTERS_MAX);
    values();
    questions();
    unsound();
    pairs();
#ifndef ON_L4
    exchanges();
    lists();
#endif
}

#include "sides_end.h"
