/* Both sides of catalog.idl, without a kernel between them: a call ends in the dispatcher, with the parts in memory of request
 * and reply copied to where they are received. Then requests and replies are damaged. */

#define STUBS "catalog.h"
#include "on_tern.h"

/* --- the server --- */

static int calls;
static size_t forgotten;

static quill_status turn(SELF, const sequence_30_string_20 *start, int32_t times,
                         sequence_30_string_20 *result)
{
    (void)self, (void)from;
    calls++;
    result->_length = start->_length;
    for (uint32_t i = 0; i < start->_length; i++)
        strcpy(result->_buffer[i], start->_buffer[(i + (uint32_t)times) % start->_length]);
    return QUILL_OK;
}

static quill_status arrange(SELF, const sequence_6_Catalog_Folder *all,
                            const sequence_9000_uint8_t *stamp, Catalog_Entry *first, char **label,
                            sequence_6_Catalog_Folder *result, Catalog_Index_arrange_raised *raised)
{
    static char text[40];

    (void)self, (void)from;
    calls++;
    if (all->_length == 0) {
        raised->Lost.what._d = 3;
        strcpy(raised->Lost.what._u.text, "keine Mappe f\303\274r nichts");
        strcpy(raised->Lost.where[0], "here");
        raised->Lost.where[1][0] = 0;
        raised->Lost.how = -1;
        return 1;
    }
    snprintf(text, sizeof text, "%u bytes", stamp->_length);
    *label = text;
    first->_d = -4;
    first->_u.whole = all->_buffer[0];
    result->_length = all->_length;
    for (uint32_t i = 0; i < all->_length; i++)
        result->_buffer[i] = all->_buffer[all->_length - 1 - i];
    return QUILL_OK;
}

static quill_status swap(SELF, Catalog_Mark *one, const Catalog_Entry *other, int64_t number,
                         Catalog_Entry *result)
{
    (void)self, (void)from, (void)one;
    calls++;
    *result = *other;
    if (number != 0) {
        result->_d = 1;
        result->_u.number = number;
    }
    return number == -1 ? 78 : QUILL_OK;
}

static quill_status forget(SELF, const sequence_30_string_20 *all)
{
    (void)self, (void)from;
    calls++;
    forgotten = all->_length;
    return QUILL_OK;
}

static quill_status count(SELF, const Catalog_Entry *what, char both[2][81], int32_t *result)
{
    (void)self, (void)from;
    calls++;
    *result = (int32_t)(strlen(both[0]) + strlen(both[1])) + (what->_d == 77 && what->_u.rest[2] == 3);
    return QUILL_OK;
}

static const Catalog_Index_server methods = { turn, arrange, swap, forget, count };

SERVES(Catalog_Index, methods)

/* --- instead of a kernel --- */

static ROOM(Catalog_Index) *room;
static Catalog_Index_replies *replies;
static bool damage;
static int refused, taken;

/* The part in memory arrives, of which a word may be damaged on the way. */
static void arrive(uint64_t *words, uint64_t *to, uint64_t most, uint64_t *string, char *buffer, uint64_t capacity)
{
    uint64_t length = words[0] & 0xfff, strings = words[0] >> 12 & 0xff;
    const char *block = (const char *)(uintptr_t)words[1];

    CHECK(length <= most && strings <= 1);
    memcpy(to, block, 8 * length);
    if (strings == 1) {
        uint64_t lies[2];
        memcpy(lies, block + 8 * length, 16);
        CHECK(lies[1] <= capacity);
        if (lies[1] > 0)
            memcpy(buffer, (const void *)(uintptr_t)lies[0], lies[1]);
        string[0] = (uintptr_t)buffer;
        string[1] = capacity << 32 | lies[1];
    }
    if (damage && length > 0) {
        uint64_t at = chance() % length;
        switch (chance() % 8) {
        case 0:
            words[2] = chance();
            break;
        case 1:
            words[0] -= 1 + chance() % length;
            break;
        case 2:
            words[0] += length < most;
            break;
        case 3:
            words[0] ^= 1 << 12;
            break;
        default:
            to[at] ^= UINT64_C(1) << chance() % 64;
        }
    }
    words[10] = 0;
}

static uint64_t answer(uint32_t label, uint64_t *words, tern_uid *partner)
{
    uint64_t kept[2048];
    bool in_memory = false;
    int before = calls;

    arrive(words, room->words, sizeof room->words / 8 - 1, room->strings, room->buffers, 9000);
    words[1] = (uintptr_t)room;
    memset(kept, 0x55, sizeof kept);
    label = ANSWER(Catalog_Index, &methods, NULL, partner, label, words, room, kept, &in_memory);
    refused += label == QUILL_MALFORMED;
    taken += calls > before;
    CHECK(label != QUILL_MALFORMED || calls == before);
    if (!in_memory)
        return (uint64_t)label << 32 | TERN_KIND_REPLY;
    arrive(words, replies->words, sizeof replies->words / 8 - 1, replies->strings, replies->buffers, 4096);
    words[1] = (uintptr_t)replies;
    return (uint64_t)label << 32 | QUILL_IPC_LONG_REPLY_WAIT;
}

uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    tern_uid partner = 7;

    CHECK(server == 3 && there <= 10 && back <= QUILL_WORDS);
    return answer(label, words, &partner);
}

uint32_t quill_ipc_send_long(tern_uid server, uint32_t label, const uint64_t *words)
{
    tern_uid partner = 7;
    uint64_t copy[QUILL_WORDS];

    CHECK(server == 3);
    memcpy(copy, words, sizeof copy);
    answer(label, copy, &partner);
    CHECK(damage || partner == TERN_NIL);
    return QUILL_OK;
}

/* --- the client --- */

static Catalog_Folder folder(uint32_t pages)
{
    Catalog_Folder made = { "M\303\244ppchen", { pages, { { 0, { 0 } } } }, Catalog_Letter };

    for (uint32_t i = 0; i < pages; i++) {
        made.pages._buffer[i]._length = i;
        for (uint32_t j = 0; j < i; j++)
            made.pages._buffer[i]._buffer[j] = (int32_t)(10 * i + j);
    }
    return made;
}

static bool same_folder(const Catalog_Folder *one, const Catalog_Folder *other)
{
    bool same = strcmp(one->title, other->title) == 0 && one->pages._length == other->pages._length;

    for (uint32_t i = 0; same && i < one->pages._length; i++)
        same = one->pages._buffer[i]._length == other->pages._buffer[i]._length &&
               memcmp(one->pages._buffer[i]._buffer, other->pages._buffer[i]._buffer,
                      4 * one->pages._buffer[i]._length) == 0;
    return same && one->how == other->how;
}

static sequence_30_string_20 names, turned;
static sequence_6_Catalog_Folder folders, back;
static uint8_t bytes[9000];
static sequence_9000_uint8_t seal = { 5000, bytes };
static Catalog_Entry entry, other;
static Catalog_Mark mark;
static Catalog_Index_arrange_raised raised;
static char *label, rows[2][81] = { "n\303\251e", "!" };
static int32_t number;

static void calls_arrive(void)
{
    for (uint32_t length = 0; length <= 30; length++) {
        names._length = length;
        for (uint32_t i = 0; i < length; i++)
            snprintf(names._buffer[i], sizeof names._buffer[i], "name %u \303\237", i * i);
        CHECK(Catalog_Index_turn(TO(Catalog_Index), replies, &names, 3, &turned) == QUILL_OK && turned._length == length);
        for (uint32_t i = 0; i < length; i++)
            CHECK(strcmp(turned._buffer[i], names._buffer[(i + 3) % length]) == 0);
        CHECK(Catalog_Index_forget(TO(Catalog_Index), &names) == QUILL_OK && forgotten == length);
    }
    names._length = 31;
    CHECK(Catalog_Index_turn(TO(Catalog_Index), replies, &names, 3, &turned) == QUILL_TOO_LONG);
    names._length = 1;
    strcpy(names._buffer[0], "twenty-one characters");
    CHECK(Catalog_Index_turn(TO(Catalog_Index), replies, &names, 3, &turned) == QUILL_TOO_LONG);
    strcpy(names._buffer[0], "caf\351");
    CHECK(Catalog_Index_turn(TO(Catalog_Index), replies, &names, 3, &turned) == QUILL_TOO_LONG);
    strcpy(names._buffer[0], "Stra\303\237e");
    folders._length = 3;
    folders._buffer[0] = folder(0);
    folders._buffer[1] = folder(4);
    folders._buffer[2] = folder(1);
    CHECK(Catalog_Index_arrange(TO(Catalog_Index), replies, &folders, &seal, &entry, &label, &back, &raised) == QUILL_OK);
    CHECK(back._length == 3 && strcmp(label, "5000 bytes") == 0 && entry._d == -4);
    for (int i = 0; i < 3; i++)
        CHECK(same_folder(&folders._buffer[i], &back._buffer[2 - i]));
    CHECK(same_folder(&folders._buffer[0], &entry._u.whole));
    folders._length = 0;
    CHECK(Catalog_Index_arrange(TO(Catalog_Index), replies, &folders, &seal, &entry, &label, &back, &raised) == 1);
    CHECK(raised.Lost.what._d == 3 && strcmp(raised.Lost.what._u.text, "keine Mappe f\303\274r nichts") == 0);
    CHECK(strcmp(raised.Lost.where[0], "here") == 0 && raised.Lost.where[1][0] == 0 && raised.Lost.how == -1);
    folders._length = 2;
    mark._d = Catalog_Note;
    mark._u.all = names;
    other._d = 2;
    strcpy(other._u.text, "two");
    CHECK(Catalog_Index_swap(TO(Catalog_Index), replies, &mark, &other, 0, &entry) == QUILL_OK);
    CHECK(mark._d == Catalog_Note && strcmp(mark._u.all._buffer[0], "Stra\303\237e") == 0);
    CHECK(entry._d == 2 && strcmp(entry._u.text, "two") == 0);
    CHECK(Catalog_Index_swap(TO(Catalog_Index), replies, &mark, &other, -1, &entry) == 78);
    mark._d = Catalog_Package; /* without a branch */
    other._d = 1;
    other._u.number = INT64_MIN;
    CHECK(Catalog_Index_swap(TO(Catalog_Index), replies, &mark, &other, 0, &entry) == QUILL_OK && mark._d == Catalog_Package);
    CHECK(entry._d == 1 && entry._u.number == INT64_MIN);
    mark._d = 3;
    CHECK(Catalog_Index_swap(TO(Catalog_Index), replies, &mark, &other, 0, &entry) == QUILL_MALFORMED);
    mark._d = Catalog_Letter;
    other._d = 77;
    memcpy(other._u.rest, "\1\2\3", 3);
    CHECK(Catalog_Index_count(TO(Catalog_Index), &other, rows, &number) == QUILL_OK && number == 6);
}

static void damaged_messages(void)
{
    int good = 0;

    damage = true;
    refused = taken = 0;
    for (int run = 0; run < 30000; run++) {
        mark._d = Catalog_Letter;
        other._d = 2;
        strcpy(other._u.text, "two");
        folders._length = (uint32_t)run % 3;
        good += Catalog_Index_turn(TO(Catalog_Index), replies, &names, 3, &turned) == QUILL_OK && turned._length <= 30;
        good += Catalog_Index_arrange(TO(Catalog_Index), replies, &folders, &seal, &entry, &label, &back, &raised) <= 1;
        good += Catalog_Index_swap(TO(Catalog_Index), replies, &mark, &other, 0, &entry) == QUILL_OK && mark._d < 3;
        good += Catalog_Index_count(TO(Catalog_Index), &other, rows, &number) == QUILL_OK;
        Catalog_Index_forget(TO(Catalog_Index), &names);
    }
    CHECK(refused > 10000 && taken > 10000 && good > 5000);
}

int main(void)
{
    room = calloc(1, sizeof *room);
    replies = calloc(1, sizeof *replies);
    CHECK(room != NULL && replies != NULL);
    calls_arrive();
    damaged_messages();
    free(room);
    free(replies);
    return 0;
}
