/* Both sides of archive.idl, without a kernel between them: a call ends in the dispatcher, with the parts in memory of request
 * and reply copied to where they are received. */

#define STUBS "archive.h"
#include "on_tern.h"

/* --- the server, whose strings and lists are its own --- */

static char text[8000];
static uint8_t body[70000];
static int64_t numbers[501];
static Archive_Stamp stamps[101];

static quill_status title(SELF, int32_t number, char **result, Archive_Shelf_title_raised *raised)
{
    (void)self, (void)from;
    if (number == -1) {
        raised->Closed.until = 99;
        return 1;
    }
    if (number == -2) {
        memset(text, 'm', 4000);
        text[4000] = 0;
        raised->Moved.where = text;
        return 2;
    }
    if (number == -3)
        return 0xfffe0001u;
    for (int i = 0; i < number; i++)
        text[i] = (char)('a' + i % 26);
    text[number] = 0;
    *result = text;
    return QUILL_OK;
}

static quill_status fetch(SELF, const char *name, char **found, sequence_70000_uint8_t *content,
                          Archive_Kind *how, Archive_Shelf_fetch_raised *raised)
{
    size_t length = strlen(name);

    (void)self, (void)from;
    if (length == 0) {
        strcpy(raised->Missing.why, "kein Name f\303\274r nichts");
        raised->Missing.proof._length = 99;
        raised->Missing.proof._buffer = body;
        memset(body, 7, 99);
        raised->Missing.ever = true;
        return 1;
    }
    snprintf(text, sizeof text, "<%s>", name);
    *found = text;
    for (size_t i = 0; i < 1000 * length; i++)
        body[i] = (uint8_t)name[i % length];
    content->_length = (uint32_t)(1000 * length);
    content->_buffer = body;
    *how = Archive_Package;
    return QUILL_OK;
}

static quill_status squares(SELF, const sequence_500_int64_t *roots, int16_t *factor,
                            sequence_500_int64_t *result)
{
    (void)self, (void)from;
    for (uint32_t i = 0; i < roots->_length; i++)
        numbers[i] = (int64_t)((uint64_t)roots->_buffer[i] * (uint64_t)roots->_buffer[i]);
    result->_length = roots->_length;
    result->_buffer = numbers;
    *factor = (int16_t)-*factor;
    return QUILL_OK;
}

static quill_status sheet(SELF, uint16_t count, sequence_100_Archive_Stamp *result)
{
    (void)self, (void)from;
    for (uint16_t i = 0; i < count && i < 101; i++)
        stamps[i] = (Archive_Stamp){ i, 1998, 49 };
    result->_length = count;
    result->_buffer = stamps;
    return QUILL_OK;
}

static quill_status grid(SELF, int32_t factor, int32_t result[4][10])
{
    (void)self, (void)from;
    for (int i = 0; i < 40; i++)
        result[i / 10][i % 10] = (int32_t)((uint32_t)factor * (uint32_t)i);
    return QUILL_OK;
}

static quill_status find(SELF, char **name, Archive_Owner *result)
{
    (void)self, (void)from;
    snprintf(result->name, sizeof result->name, "%.39s", "na\303\257ve");
    result->code = (sequence_10_uint8_t){ 3, { 1, 2, 3 } };
    result->known = true;
    snprintf(text, sizeof text, "%.3000s!", *name);
    *name = text;
    return QUILL_OK;
}

static quill_status nickname(SELF, bool polite, char *result)
{
    (void)self, (void)from;
    strcpy(result, polite ? "Sehr geehrte Frau M\303\274ller" : "a nickname that has far more than thirty letters");
    return QUILL_OK;
}

static quill_status spread(SELF, int64_t first, int64_t *b1, int64_t *b2, int64_t *b3, int64_t *b4,
                           int64_t *b5, int64_t *b6, int64_t *b7, int64_t *b8, int64_t *b9, int64_t *b10, int64_t *b11,
                           int64_t *b12, int64_t *b13, bool *last)
{
    int64_t *all[] = { b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13 };

    (void)self, (void)from;
    for (uint64_t i = 0; i < 13; i++)
        *all[i] = (int64_t)((uint64_t)first + i + 1);
    *last = true;
    return QUILL_OK;
}

static quill_status wide(SELF, int64_t first, int64_t *b1, int64_t *b2, int64_t *b3, int64_t *b4,
                         int64_t *b5, int64_t *b6, int64_t *b7, int64_t *b8, int64_t *b9, int64_t *b10, int64_t *b11)
{
    int64_t *all[] = { b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11 };

    (void)self, (void)from;
    for (uint64_t i = 0; i < 11; i++)
        *all[i] = (int64_t)((uint64_t)first + i + 1);
    return QUILL_OK;
}

static quill_status knock(SELF, Archive_Shelf_knock_raised *raised)
{
    (void)self, (void)from;
    raised->Moved.where = text;
    strcpy(text, "there");
    return 1;
}

static const Archive_Shelf_server methods = {
    title, fetch, squares, sheet, grid, find, nickname, spread, wide, knock,
};

SERVES(Archive_Shelf, methods)

/* --- instead of a kernel --- */

/* With nothing behind them that somebody could take for his own. */
static ROOM(Archive_Shelf) *room;
static Archive_Shelf_replies *replies;

/* The part in memory arrives; false if there is no room for it. */
static bool arrive(uint64_t *words, void *to, uint64_t *to_words, uint64_t most, uint64_t *strings, char *buffers,
                   uint64_t strings_max, const uint32_t *capacities, const uint32_t *begins)
{
    uint64_t count = words[0] & 0xfff, parts = words[0] >> 12 & 0xff;
    const char *block = (const char *)(uintptr_t)words[1];

    if (count > most || parts > strings_max)
        return false;
    if (count > 0)
        memcpy(to_words, block, 8 * count);
    for (uint64_t i = 0; i < parts; i++) {
        uint64_t lies[2];
        memcpy(lies, block + 8 * (count + 2 * i), 16);
        if (lies[1] > capacities[i])
            return false;
        if (lies[1] > 0)
            memcpy(buffers + begins[i], (const void *)(uintptr_t)lies[0], lies[1]);
        strings[2 * i] = (uintptr_t)(buffers + begins[i]);
        strings[2 * i + 1] = (uint64_t)capacities[i] << 32 | lies[1];
    }
    words[0] |= (most | strings_max << 12) << 32;
    words[1] = (uintptr_t)to;
    words[10] = 0;
    return true;
}

#define NO_ROOM 77u

static uint64_t reply(uint32_t label, uint64_t *words, bool in_memory)
{
    static const uint32_t capacities[] = { 4096, 70000 }, begins[] = { 0, 4104 };

    if (!in_memory)
        return (uint64_t)label << 32 | TERN_KIND_REPLY;
    if (!arrive(words, replies, replies->words, sizeof replies->words / 8, replies->strings, replies->buffers, 2,
                capacities, begins))
        return NO_ROOM;
    return (uint64_t)label << 32 | QUILL_IPC_LONG_REPLY_WAIT;
}

static bool insane;

/* Answers with anything. */
static uint64_t nonsense(uint64_t *words)
{
    static uint64_t block[80];
    static char string[60];
    uint64_t counts[] = { chance() % 40, 0, 6, 20 };
    uint64_t count = counts[chance() % 4], strings = chance() % 2 == 0 ? 0 : chance() % 3;
    uint32_t labels[] = { UINT32_MAX, UINT32_MAX, UINT32_MAX, 1, 2, (uint32_t)chance() };
    bool in_memory = chance() % 4 > 0;

    memset(string, 'x', sizeof string);
    for (uint64_t i = 0; i < count; i++)
        block[i] = chance() & 0x7f7f7f7f7f7f7f01;
    for (uint64_t i = 0; i < strings; i++) {
        block[count + 2 * i] = (uintptr_t)string;
        block[count + 2 * i + 1] = chance() % 60;
    }
    for (int i = 0; i < QUILL_WORDS; i++) {
        uint64_t likely[] = { chance(), chance() % 4, chance() % 64, 2 * count, 8 * count + chance() % 9, count, 0 };
        words[i] = likely[chance() % 7];
    }
    if (in_memory) {
        words[0] = count | strings << 12;
        words[1] = (uintptr_t)block;
    }
    return reply(labels[chance() % 6], words, in_memory);
}

static uint64_t answer(uint32_t label, uint64_t *words, void *where)
{
    uint64_t kept[2048];
    tern_uid partner = 7;
    bool in_memory = false;

    if (insane)
        return nonsense(words);
    memset(kept, 0x55, sizeof kept);
    label = ANSWER(Archive_Shelf, &methods, NULL, &partner, label, words, where, kept, &in_memory);
    return reply(label, words, in_memory);
}

uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    CHECK(server == 3 && there <= QUILL_WORDS && back <= QUILL_WORDS);
    return answer(label, words, NULL);
}

uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    static const uint32_t capacities[] = { 0 }, begins[] = { 0 };

    CHECK(server == 3 && words[10] == 0 && there <= 10 && back <= QUILL_WORDS);
    CHECK(arrive(words, room, room->words, sizeof room->words / 8, room->strings, room->buffers, 0, capacities, begins));
    return answer(label, words, room);
}

/* --- the client, and where it gets what comes back --- */

static sequence_100_Archive_Stamp page;
static sequence_70000_uint8_t content;
static Archive_Owner owner;
static Archive_Kind how;
static Archive_Shelf_title_raised lost;
static Archive_Shelf_fetch_raised raised;
static int32_t table[4][10];
static int64_t b[14];
static char name[121];
static bool last;

static void replies_arrive(void)
{
    static int64_t roots[500];
    sequence_500_int64_t all = { 500, roots }, got;
    Archive_Shelf_knock_raised moved;
    Archive_Shelf_replies *elsewhere = calloc(1, sizeof *elsewhere);
    int16_t factor = 3;
    char *found, *inout = (char *)"called";

    for (int32_t length = 0; length <= 4096; length += length < 40 ? 1 : 507) {
        CHECK(Archive_Shelf_title(TO(Archive_Shelf), replies, length, &found, &lost) == QUILL_OK);
        CHECK(strlen(found) == (size_t)length && (length == 0 || found[length - 1] == 'a' + (length - 1) % 26));
    }
    CHECK(Archive_Shelf_title(TO(Archive_Shelf), replies, 4097, &found, &lost) == QUILL_TOO_LONG);
    CHECK(Archive_Shelf_title(TO(Archive_Shelf), replies, -1, &found, &lost) == 1 && lost.Closed.until == 99);
    CHECK(Archive_Shelf_title(TO(Archive_Shelf), replies, -2, &found, &lost) == 2 && strlen(lost.Moved.where) == 4000);
    CHECK(Archive_Shelf_title(TO(Archive_Shelf), replies, -3, &found, &lost) == 0xfffe0001u);
    CHECK(Archive_Shelf_fetch(TO(Archive_Shelf), replies, "Gr\303\274\303\237e", &found, &content, &how, &raised) == QUILL_OK);
    CHECK(strcmp(found, "<Gr\303\274\303\237e>") == 0 && content._length == 7000 && how == Archive_Package);
    CHECK(content._buffer[0] == 'G' && content._buffer[6999] == 'e');
    CHECK(Archive_Shelf_fetch(TO(Archive_Shelf), replies, "", &found, &content, &how, &raised) == 1);
    CHECK(strcmp(raised.Missing.why, "kein Name f\303\274r nichts") == 0 && raised.Missing.ever);
    CHECK(raised.Missing.proof._length == 99 && raised.Missing.proof._buffer[98] == 7);
    for (int i = 0; i < 500; i++)
        roots[i] = i;
    CHECK(Archive_Shelf_squares(TO(Archive_Shelf), replies, &all, &factor, &got) == QUILL_OK && factor == -3);
    CHECK(got._length == 500 && got._buffer[499] == 499 * 499);
    CHECK(Archive_Shelf_sheet(TO(Archive_Shelf), replies, 100, &page) == QUILL_OK && page._length == 100 && page._buffer[99].value == 99);
    CHECK(Archive_Shelf_sheet(TO(Archive_Shelf), replies, 101, &page) == QUILL_TOO_LONG);
    CHECK(Archive_Shelf_grid(TO(Archive_Shelf), replies, 3, table) == QUILL_OK && table[3][9] == 117);
    CHECK(Archive_Shelf_grid(TO(Archive_Shelf), elsewhere, 3, table) == QUILL_OTHER_INBOX);
    CHECK(Archive_Shelf_find(TO(Archive_Shelf), replies, &inout, &owner) == QUILL_OK && strcmp(inout, "called!") == 0);
    CHECK(strcmp(owner.name, "na\303\257ve") == 0 && owner.code._length == 3 && owner.code._buffer[2] == 3 && owner.known);
    CHECK(Archive_Shelf_nickname(TO(Archive_Shelf), replies, true, name) == QUILL_OK && strcmp(name, "Sehr geehrte Frau M\303\274ller") == 0);
    CHECK(Archive_Shelf_nickname(TO(Archive_Shelf), replies, false, name) == QUILL_TOO_LONG);
    CHECK(Archive_Shelf_spread(TO(Archive_Shelf), replies, 5, b, b + 1, b + 2, b + 3, b + 4, b + 5, b + 6, b + 7, b + 8, b + 9, b + 10,
                               b + 11, b + 12, &last) == QUILL_OK);
    CHECK(b[0] == 6 && b[7] == 13 && b[8] == 14 && b[12] == 18 && last);
    CHECK(Archive_Shelf_wide(TO(Archive_Shelf), 5, b, b + 1, b + 2, b + 3, b + 4, b + 5, b + 6, b + 7, b + 8, b + 9, b + 10) == QUILL_OK);
    CHECK(b[0] == 6 && b[8] == 14 && b[10] == 16);
    CHECK(Archive_Shelf_knock(TO(Archive_Shelf), replies, &moved) == 1 && strcmp(moved.Moved.where, "there") == 0);
    free(elsewhere);
}

static void nonsense_is_refused(void)
{
    sequence_500_int64_t none = { 0, NULL }, got;
    int16_t factor = 3;
    char *found, *inout;
    int taken[9] = { 0 };

    insane = true;
    for (int run = 0; run < 50000; run++) {
        inout = (char *)"called";
        taken[0] += Archive_Shelf_title(TO(Archive_Shelf), replies, 1, &found, &lost) == QUILL_OK && strlen(found) <= 4096;
        taken[1] += Archive_Shelf_fetch(TO(Archive_Shelf), replies, "x", &found, &content, &how, &raised) == QUILL_OK && how < 3;
        taken[2] += Archive_Shelf_squares(TO(Archive_Shelf), replies, &none, &factor, &got) == QUILL_OK && got._length <= 500;
        taken[3] += Archive_Shelf_sheet(TO(Archive_Shelf), replies, 1, &page) == QUILL_OK && page._length <= 100;
        taken[4] += Archive_Shelf_grid(TO(Archive_Shelf), replies, 1, table) == QUILL_OK;
        taken[5] += Archive_Shelf_find(TO(Archive_Shelf), replies, &inout, &owner) == QUILL_OK && strlen(owner.name) <= 160;
        taken[6] += Archive_Shelf_nickname(TO(Archive_Shelf), replies, true, name) == QUILL_OK && strlen(name) <= 120;
        taken[7] += Archive_Shelf_spread(TO(Archive_Shelf), replies, 5, b, b + 1, b + 2, b + 3, b + 4, b + 5, b + 6, b + 7, b + 8, b + 9,
                                         b + 10, b + 11, b + 12, &last) == QUILL_OK;
        taken[8] += Archive_Shelf_wide(TO(Archive_Shelf), 5, b, b + 1, b + 2, b + 3, b + 4, b + 5, b + 6, b + 7, b + 8, b + 9, b + 10) ==
                    QUILL_OK;
    }
    for (int i = 0; i < 9; i++)
        CHECK(taken[i] > 5);
}

int main(void)
{
    room = calloc(1, sizeof *room);
    replies = calloc(1, sizeof *replies);
    CHECK(room != NULL && replies != NULL);
    replies_arrive();
    nonsense_is_refused();
    free(room);
    free(replies);
    return 0;
}
