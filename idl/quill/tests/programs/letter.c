/* Both sides of letter.idl, without a kernel between them: a call ends in the dispatcher, with its part in memory copied
 * to where a server receives. */

#include <sys/mman.h>
#define STUBS "letter.h"
#include "on_tern.h"

/* --- the server --- */

static int dropped, calls;

static quill_status post(SELF, const char *text, uint32_t *result)
{
    (void)self, (void)from;
    calls++;
    *result = 0;
    while (*text != 0)
        *result += (uint8_t)*text++;
    return QUILL_OK;
}

static quill_status note(SELF, const char *text, int32_t times, uint32_t *result)
{
    (void)self, (void)from;
    calls++;
    *result = (uint32_t)strlen(text) * (uint32_t)times;
    return QUILL_OK;
}

static quill_status weigh(SELF, const sequence_int32_t *all, int32_t *result)
{
    (void)self, (void)from;
    calls++;
    for (uint32_t i = 0; i < all->_length; i++)
        *result = (int32_t)((uint32_t)*result + (uint32_t)all->_buffer[i]);
    return QUILL_OK;
}

static quill_status sum(SELF, const sequence_500_int64_t *all, int16_t *factor, int64_t *result)
{
    (void)self, (void)from;
    calls++;
    for (uint32_t i = 0; i < all->_length; i++)
        *result = (int64_t)((uint64_t)*result + (uint64_t)all->_buffer[i]);
    *factor = (int16_t)-*factor;
    return QUILL_OK;
}

static quill_status stick(SELF, const sequence_100_Mail_Stamp *all, int32_t *result)
{
    (void)self, (void)from;
    calls++;
    for (uint32_t i = 0; i < all->_length; i++)
        *result = (int32_t)((uint32_t)*result + (uint32_t)all->_buffer[i].value);
    return QUILL_OK;
}

static quill_status total(SELF, const int32_t all[4][10], int32_t *result)
{
    (void)self, (void)from;
    calls++;
    for (int i = 0; i < 40; i++)
        *result = (int32_t)((uint32_t)*result + (uint32_t)all[i / 10][i % 10]);
    return QUILL_OK;
}

static quill_status pack(SELF, const char *title, const sequence_70000_uint8_t *content,
                         Mail_Kind how, bool urgent, uint32_t *result, Mail_Box_pack_raised *raised)
{
    (void)self, (void)from;
    calls++;
    if (how == Mail_Note) {
        raised->Refused.why = (int32_t)strlen(title);
        return 1;
    }
    *result = urgent;
    for (uint32_t i = 0; i < content->_length; i++)
        *result += content->_buffer[i];
    return QUILL_OK;
}

static quill_status deliver(SELF, const Mail_Address *to, const char *code, uint32_t *result)
{
    (void)self, (void)from;
    calls++;
    *result = (uint32_t)strlen(to->street) * 100 + to->code._length * 10 + (uint32_t)strlen(code) + to->home;
    return QUILL_OK;
}

static quill_status many(SELF, int64_t a1, int64_t a2, int64_t a3, int64_t a4, int64_t a5,
                         int64_t a6, int64_t a7, int64_t a8, int64_t a9, int64_t a10, int64_t a11, int64_t a12, bool last,
                         int64_t *result)
{
    int64_t all[] = { a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, last };

    (void)self, (void)from;
    calls++;
    for (uint64_t i = 0; i < 13; i++)
        *result = (int64_t)((uint64_t)*result + (uint64_t)all[i] * (i + 1));
    return QUILL_OK;
}

static quill_status mixed(SELF, int64_t b1, int64_t b2, int64_t b3, int64_t b4, int64_t b5,
                          int64_t b6, int64_t b7, int64_t b8, int64_t b9, const char *text,
                          const sequence_100_Mail_Stamp *all, int64_t *result)
{
    uint64_t numbers = (uint64_t)b1 + (uint64_t)b2 + (uint64_t)b3 + (uint64_t)b4 + (uint64_t)b5 + (uint64_t)b6 +
                       (uint64_t)b7 + (uint64_t)b8 + 2 * (uint64_t)b9;

    (void)self, (void)from;
    calls++;
    *result = (int64_t)(numbers + strlen(text) + all->_length);
    return QUILL_OK;
}

static quill_status drop(SELF, const char *text)
{
    (void)self, (void)from;
    calls++;
    dropped += text[0] == 'x';
    return QUILL_OK;
}

static quill_status knock(SELF)
{
    (void)self, (void)from;
    calls++;
    return QUILL_OK;
}

static const Mail_Box_server methods = {
    post, note, weigh, sum, stick, total, pack, deliver, many, mixed, drop, knock,
};

SERVES(Mail_Box, methods)

/* --- instead of a kernel --- */

/* With nothing behind it that a server could take for its own. */
static ROOM(Mail_Box) *room;

/* As large as the interface says: words, and the strings behind them. */
static const uint32_t capacities[] = { 4096, 70000 };
static const uint32_t begins[] = { 0, 4104 };
#define ROOM_WORDS (sizeof room->words / 8)

/* The part in memory arrives; false if there is no room for it. */
static bool arrive(uint64_t *words)
{
    uint64_t count = words[0] & 0xfff, strings = words[0] >> 12 & 0xff;
    const uint64_t *strings_at = (const uint64_t *)(uintptr_t)words[1] + count;

    if (count > ROOM_WORDS || strings > 2)
        return false;
    if (count > 0)
        memcpy(room->words, (const void *)(uintptr_t)words[1], 8 * count);
    for (uint64_t i = 0; i < strings; i++) {
        uint64_t lies, bytes;
        memcpy(&lies, strings_at + 2 * i, 8);
        memcpy(&bytes, strings_at + 2 * i + 1, 8);
        if (bytes > capacities[i])
            return false;
        if (bytes > 0)
            memcpy(room->buffers + begins[i], (const void *)(uintptr_t)lies, bytes);
        room->strings[2 * i] = (uintptr_t)(room->buffers + begins[i]);
        room->strings[2 * i + 1] = (uint64_t)capacities[i] << 32 | bytes;
    }
    words[0] |= (ROOM_WORDS | 2 << 12) << 32;
    words[1] = (uintptr_t)room;
    words[10] = 0;
    return true;
}

uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there,
                               unsigned back)
{
    tern_uid partner = 7;

    CHECK(server == 3 && back <= QUILL_WORDS);
    for (unsigned i = there; i < QUILL_WORDS; i++)
        CHECK(words[i] == 0);
    label = ANSWER(Mail_Box, &methods, NULL, &partner, label, words, NULL, NULL, NULL);
    return (uint64_t)label << 32 | TERN_KIND_REPLY;
}

uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there,
                                    unsigned back)
{
    tern_uid partner = 7;

    CHECK(server == 3 && back <= QUILL_WORDS);
    for (unsigned i = there > 2 ? there : 2; i < QUILL_WORDS; i++)
        CHECK(words[i] == 0);
    CHECK(arrive(words));
    label = ANSWER(Mail_Box, &methods, NULL, &partner, label, words, room, NULL, NULL);
    CHECK(partner == 7);
    return (uint64_t)label << 32 | TERN_KIND_REPLY;
}

uint32_t quill_ipc_send_long(tern_uid server, uint32_t label, const uint64_t *words)
{
    tern_uid partner = 7;
    uint64_t copy[QUILL_WORDS];

    CHECK(server == 3);
    memcpy(copy, words, sizeof copy);
    CHECK(arrive(copy));
    ANSWER(Mail_Box, &methods, NULL, &partner, label, copy, room, NULL, NULL);
    CHECK(partner == TERN_NIL);
    return QUILL_OK;
}

/* --- the client --- */

static char letters[4200];

/* From every place of a word and up to the end of a page, behind which there is nothing: ASCII; with a letter of two bytes
 * somewhere; and with a byte that no text has. */
static void texts_of_all_kinds(void)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
    for (size_t length = 0; length < 40; length++) {
        for (size_t back = 1; back <= 16; back++) {
            char *text = pages + 4096 - back - length;
            uint32_t found = 0, expected = (uint32_t)(length * 'z');
            memset(text, 'z', length);
            text[length] = 0;
            CHECK(Mail_Box_post(TO(Mail_Box), text, &found) == QUILL_OK && found == expected);
            for (size_t at = 0; at + 2 <= length; at += 3) {
                memcpy(text + at, "\303\200", 2);
                expected = (uint32_t)((length - 2) * 'z' + 0303 + 0200);
                CHECK(Mail_Box_post(TO(Mail_Box), text, &found) == QUILL_OK && found == expected);
                text[at] = 'z';
                CHECK(Mail_Box_post(TO(Mail_Box), text, &found) == QUILL_MALFORMED);
                text[at + 1] = 'z';
            }
        }
    }
    munmap(pages, 4096);
}

static void calls_arrive(void)
{
    static const size_t lengths[] = { 0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 24, 40, 4087, 4088, 4089, 4095, 4096 };
    static int32_t numbers[1025];
    static int64_t wide[500];
    static uint8_t bytes[70001];
    static Mail_Stamp stamps[100];
    sequence_int32_t weights = { 0, numbers };
    sequence_500_int64_t sums = { 500, wide };
    sequence_100_Mail_Stamp sheet = { 100, stamps };
    sequence_70000_uint8_t content = { 70000, bytes };
    Mail_Address to = { "Stra\303\237e", { 3, { 1, 2, 3 } }, true };
    Mail_Box_pack_raised raised;
    int32_t table[4][10], sum32 = 0;
    int64_t sum64 = 0;
    int16_t factor = 3;
    uint32_t found = 0;

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint32_t expected = 0;
        /* From every place of a word. */
        char *text = letters + i % 9;
        for (size_t at = 0; at < lengths[i]; at++)
            expected += (uint8_t)(text[at] = (char)('a' + at % 26));
        text[lengths[i]] = 0;
        CHECK(Mail_Box_post(TO(Mail_Box), text, &found) == QUILL_OK && found == expected);
    }
    texts_of_all_kinds();
    memset(letters, 'a', 4097);
    letters[4097] = 0;
    CHECK(Mail_Box_post(TO(Mail_Box), letters, &found) == QUILL_TOO_LONG);
    CHECK(Mail_Box_post(TO(Mail_Box), "caf\351", &found) == QUILL_MALFORMED);
    CHECK(Mail_Box_post(TO(Mail_Box), "caf\303\251", &found) == QUILL_OK && found == 'c' + 'a' + 'f' + 0303 + 0251);
    CHECK(Mail_Box_note(TO(Mail_Box), "zw\303\266lf Zeichen", 2, &found) == QUILL_OK && found == 28);
    CHECK(Mail_Box_note(TO(Mail_Box), "thirty-one characters, too many", 2, &found) == QUILL_TOO_LONG);
    for (uint32_t count = 0; count <= 1024; count += count < 9 ? 1 : 203) {
        weights._length = count;
        numbers[count] = 77;
        CHECK(Mail_Box_weigh(TO(Mail_Box), &weights, &sum32) == QUILL_OK && sum32 == (int32_t)count * 5);
        for (uint32_t i = 0; i < 1024; i++)
            numbers[i] = 5;
        sum32 = 0;
    }
    weights._length = 1025;
    CHECK(Mail_Box_weigh(TO(Mail_Box), &weights, &sum32) == QUILL_TOO_LONG);
    for (int i = 0; i < 500; i++)
        wide[i] = i;
    CHECK(Mail_Box_sum(TO(Mail_Box), &sums, &factor, &sum64) == QUILL_OK && sum64 == 500 * 499 / 2 && factor == -3);
    for (int i = 0; i < 100; i++)
        stamps[i].value = i;
    CHECK(Mail_Box_stick(TO(Mail_Box), &sheet, &sum32) == QUILL_OK && sum32 == 4950);
    for (int i = 0; i < 40; i++)
        table[i / 10][i % 10] = i;
    CHECK(Mail_Box_total(TO(Mail_Box), (const int32_t(*)[10])table, &sum32) == QUILL_OK && sum32 == 780);
    memset(bytes, 3, sizeof bytes);
    CHECK(Mail_Box_pack(TO(Mail_Box), "title", &content, Mail_Letter, true, &found, &raised) == QUILL_OK && found == 210001);
    CHECK(Mail_Box_pack(TO(Mail_Box), "four", &content, Mail_Note, true, &found, &raised) == 1 && raised.Refused.why == 4);
    content._length = 70001;
    CHECK(Mail_Box_pack(TO(Mail_Box), "", &content, Mail_Letter, true, &found, &raised) == QUILL_TOO_LONG);
    content._length = 0;
    CHECK(Mail_Box_pack(TO(Mail_Box), "", &content, 3, true, &found, &raised) == QUILL_MALFORMED);
    CHECK(Mail_Box_deliver(TO(Mail_Box), &to, "\342\202\254", &found) == QUILL_OK && found == 734);
    CHECK(Mail_Box_many(TO(Mail_Box), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, true, &sum64) == QUILL_OK && sum64 == 663);
    CHECK(Mail_Box_mixed(TO(Mail_Box), 1, 2, 3, 4, 5, 6, 7, 8, 9, "1234567890", &sheet, &sum64) == QUILL_OK && sum64 == 164);
    CHECK(Mail_Box_drop(TO(Mail_Box), "x") == QUILL_OK && dropped == 1);
    CHECK(Mail_Box_knock(TO(Mail_Box)) == QUILL_OK);
}

static void damage(void)
{
    int refused = 0, taken = 0, unknown = 0;

    for (int run = 0; run < 200000; run++) {
        uint64_t words[QUILL_WORDS], block[80];
        uint64_t count = chance() % 60, strings = chance() % 2 == 0 ? 0 : chance() % 3;
        uint32_t label = (uint32_t)chance() & 0xf0000000u;
        tern_uid partner = 7;
        bool is_long = chance() % 4 > 0;
        int before = calls;
        for (uint64_t i = 0; i < count; i++)
            block[i] = chance() & 0x7f7f7f7f7f7f7f7f;
        for (uint64_t i = 0; i < strings; i++) {
            block[count + 2 * i] = (uintptr_t)letters;
            block[count + 2 * i + 1] = chance() % 60;
        }
        for (int i = 0; i < QUILL_WORDS; i++) {
            uint64_t likely[] = { chance(), chance() % 4, chance() % 64, 2 * count, 8 * count + chance() % 9, 0 };
            words[i] = likely[chance() % 6];
        }
        if (is_long) {
            words[0] = count | strings << 12;
            words[1] = (uintptr_t)block;
            CHECK(arrive(words));
        }
        label = ANSWER(Mail_Box, &methods, NULL, &partner, label, words, is_long ? room : NULL, NULL, NULL);
        refused += label == QUILL_MALFORMED;
        unknown += label == QUILL_NO_METHOD;
        taken += label != QUILL_MALFORMED && label != QUILL_NO_METHOD;
        CHECK(calls == before + (label != QUILL_MALFORMED && label != QUILL_NO_METHOD));
    }
    printf("%d refused, %d taken, %d of no method\n", refused, taken, unknown);
    CHECK(refused > 10000 && taken > 2000 && unknown > 10000);
}

int main(void)
{
    room = calloc(1, sizeof *room);
    CHECK(room != NULL);
    calls_arrive();
    damage();
    free(room);
    return 0;
}
