/* Both sides of mail.idl over a kernel for tests: every value in every direction, what is refused, that nothing shows,
 * and many thousand damaged requests. */

#define QUILL_UNBOUNDED_BYTES 600
#include "mail.h"
#include "l4_kernel.h"
#include "on_l4.h"

static bool equal(const void *a, const void *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const char *)a)[i] != ((const char *)b)[i])
            return false;
    return true;
}

/* --- the server --- */

struct desk {
    int64_t tariff;
    uint32_t shouts, calls;
    bool damaged; /* values are not what the client's functions would send */
    bool leave_out;
};

static quill_status knock(void *self, quill_thread from)
{
    ((struct desk *)self)->calls++;
    return from == CLIENT ? QUILL_OK : 78;
}

static quill_status shout(void *self, quill_thread from, int32_t code, Mail_Marks how)
{
    (void)from;
    CHECK((how & ~(uint32_t)(Mail_fragile | Mail_urgent | Mail_insured)) == 0);
    ((struct desk *)self)->shouts += code == -1 && how == Mail_urgent;
    return 5;
}

static quill_status get_tariff(void *self, quill_thread from, int64_t *result)
{
    (void)from;
    *result = ((struct desk *)self)->tariff;
    return QUILL_OK;
}

static quill_status set_tariff(void *self, quill_thread from, int64_t value)
{
    (void)from;
    if (value < 0)
        return 77;
    ((struct desk *)self)->tariff = value;
    return QUILL_OK;
}

static quill_status weigh(void *self, quill_thread from, const Mail_Size *s, Mail_Slip *l, bool gently,
                          Mail_Size *result, Mail_Desk_weigh_raised *raised)
{
    bool paid = l->paid;

    (void)self, (void)from;
    __asm__ volatile("" : "+r"(paid));
    CHECK(*(uint8_t *)&paid <= 1 && *(uint8_t *)&gently <= 1);
    if (s->grams == 0)
        return 2;
    if (s->grams < 0) {
        raised->Lost.where = s->grams;
        raised->Lost.last = Mail_Express;
        return s->grams == -9 ? (raised->Lost.last = 3, 1) : 1;
    }
    result->width = s->height;
    result->height = s->width;
    result->grams = s->grams + 1;
    l->code = -l->code;
    l->paid = gently;
    return QUILL_OK;
}

static char room[20004];

static quill_status address(void *self, quill_thread from, const char *who, int32_t *bytes, char **result)
{
    (void)from;
    *bytes = (int32_t)strlen(who);
    CHECK(*bytes < QUILL_UNBOUNDED_BYTES);
    if (((struct desk *)self)->leave_out)
        return QUILL_OK;
    if (*bytes > 0 && who[0] == '=') {
        *result = (char *)(uintptr_t)who; /* in the message itself, or in the buffer for items */
        return QUILL_OK;
    }
    for (int32_t i = 0; i < *bytes; i++)
        room[i] = (char)(who[i] ^ 0x20);
    room[*bytes] = 0;
    *result = room;
    return QUILL_OK;
}

static quill_status rename_(void *self, quill_thread from, const char *old, const char *fresh)
{
    size_t n = strlen(old), m = strlen(fresh);

    (void)from;
    CHECK(quill_characters(old, n) <= 70 && quill_characters(fresh, m) <= 500);
    if (!((struct desk *)self)->damaged)
        CHECK(n > 0 && m > 0 && old[0] == 'o' && fresh[m - 1] == 'f');
    return QUILL_OK;
}

static quill_status initials(void *self, quill_thread from, const char *given, uint32_t first, char **result)
{
    size_t n = strlen(given);

    (void)self, (void)from;
    CHECK(quill_characters(given, n) <= 9 && quill_is_scalar(first));
    memcpy(room, given, n + 1);
    if (first < 0x80)
        room[0] = (char)first;
    *result = room;
    return QUILL_OK;
}

static int32_t numbers[3000];

static quill_status copy(void *self, quill_thread from, const Mail_Pages *p, uint8_t fill, Mail_Numbers *n,
                         Mail_Pages *result)
{
    (void)self, (void)from;
    CHECK(p->_length <= 20000);
    for (uint32_t i = 0; i < p->_length; i++)
        room[i] = (char)(p->_buffer[i] + fill);
    result->_length = p->_length;
    result->_buffer = (uint8_t *)room;
    n->_length = fill == 255 ? 3001 : p->_length / 8;
    n->_buffer = numbers;
    for (uint32_t i = 0; i < n->_length && i < 3000; i++)
        numbers[i] = (int32_t)(i * i);
    return QUILL_OK;
}

static quill_status few(void *self, quill_thread from, const Mail_Few *f, Mail_Speed *s, uint8_t *seal,
                        Mail_Few *result)
{
    static int16_t more[5];

    (void)self, (void)from;
    CHECK(f->_length <= 5 && *s <= Mail_Express);
    for (uint32_t i = 0; i < f->_length; i++)
        more[i] = (int16_t)-f->_buffer[i];
    result->_length = f->_length;
    result->_buffer = more;
    *s = f->_length == 5 ? 3 : Mail_First;
    for (int i = 0; i < 6; i++)
        seal[i] = (uint8_t)(i + 1);
    return QUILL_OK;
}

static quill_status table(void *self, quill_thread from, const int32_t t[100], int16_t factor, int32_t *result)
{
    (void)self, (void)from;
    *result = 0;
    for (int i = 0; i < 100; i++)
        *result = (int32_t)((uint32_t)*result + (uint32_t)t[i] * (uint32_t)factor);
    return QUILL_OK;
}

static quill_status add(void *self, quill_thread from, float a, double b, uint64_t c, char d, uint16_t e, int16_t f,
                        double *result)
{
    (void)self, (void)from;
    *result = (double)a + b + (double)(int64_t)c + d + e + f;
    return QUILL_OK;
}

/* What it gets is in the message, where the reply will be. */
static quill_status nick(void *self, quill_thread from, const char *who, char **result)
{
    (void)self, (void)from;
    if (who[0] == '-')
        return QUILL_OK;
    memcpy(room, who, 4);
    room[4] = 0;
    *result = who[0] == '=' ? (char *)(uintptr_t)who : room;
    return QUILL_OK;
}

static quill_status last(void *self, quill_thread from, uint8_t a, int64_t b, uint8_t c, uint8_t *result)
{
    (void)self, (void)from;
    *result = (uint8_t)(a + (uint8_t)b + c);
    return QUILL_OK;
}

#ifdef METHODS_CAN_CHANGE
static Mail_Desk_server methods = {
#else
static const Mail_Desk_server methods = {
#endif
    knock, shout, get_tariff, set_tariff, weigh, address, rename_, initials, copy, few, table, add, nick, last,
};

static struct desk desk;
static Mail_Desk_buffers buffers;

static void server(void)
{
    Mail_Desk_serve(&methods, &desk, &buffers);
}

/* --- the client --- */

static char letters[2000];

static const char *letters_of(uint32_t count, char first, char last_one)
{
    for (uint32_t i = 0; i < count; i++)
        letters[i] = (char)('a' + i % 26);
    letters[0] = first;
    if (count > 0)
        letters[count - 1] = last_one;
    letters[count] = 0;
    return letters;
}

static void values(void)
{
    int64_t tariff;
    Mail_Size s = { 3, -4, 500 }, t;
    Mail_Slip l = { 200, 77, false };
    Mail_Desk_weigh_raised raised;

    CHECK(Mail_Desk_knock(SERVER) == QUILL_OK && desk.calls == 1);
    CHECK(Mail_Desk_shout(SERVER, -1, Mail_urgent) == QUILL_OK && desk.shouts == 1);
    CHECK(Mail_Desk_shout(SERVER, -1, 8) == QUILL_MALFORMED);
    CHECK(Mail_Desk_set_tariff(SERVER, 0x123456789abcdef) == QUILL_OK);
    CHECK(Mail_Desk_get_tariff(SERVER, &tariff) == QUILL_OK && tariff == 0x123456789abcdef);
    CHECK(Mail_Desk_set_tariff(SERVER, -5) == 77);

    CHECK(Mail_Desk_weigh(SERVER, &s, &l, true, &t, &raised) == QUILL_OK);
    CHECK(t.width == -4 && t.height == 3 && t.grams == 501 && l.zone == 200 && l.code == -77 && l.paid);
    s.grams = 0;
    CHECK(Mail_Desk_weigh(SERVER, &s, &l, true, &t, &raised) == 2);
    s.grams = -7;
    CHECK(Mail_Desk_weigh(SERVER, &s, &l, true, &t, &raised) == 1);
    CHECK(raised.Lost.where == -7 && raised.Lost.last == Mail_Express);
    s.grams = -9;
    CHECK(Mail_Desk_weigh(SERVER, &s, &l, true, &t, &raised) == QUILL_MALFORMED);

    double sum;
    CHECK(Mail_Desk_add(SERVER, 0.5f, 1.25, 1ull << 40, 7, 65535, -3, &sum) == QUILL_OK);
    CHECK(sum == 0.5 + 1.25 + (double)(1ll << 40) + 7 + 65535 - 3);
    uint8_t small;
    CHECK(Mail_Desk_last(SERVER, 1, 0x1234567890, 2, &small) == QUILL_OK && small == 0x93);
}

static void texts(void)
{
    char answer[401], name[37];
    char *result = answer, *called = name;
    int32_t bytes;

    /* Of all lengths, at all alignments: in registers, and as items from 248 bytes on. */
    for (uint32_t n = 0; n <= 300; n++) {
        const char *text = letters_of(n, 'A', 'Z') + (n > 4 ? n % 4 : 0);
        CHECK(Mail_Desk_address(SERVER, text, &bytes, &result) == (strlen(text) > 100 ? QUILL_MALFORMED : QUILL_OK));
        if (strlen(text) > 100)
            continue;
        CHECK(bytes == (int32_t)strlen(text) && strlen(answer) == strlen(text));
        for (int32_t i = 0; i < bytes; i++)
            CHECK(answer[i] == (text[i] ^ 0x20));
    }
    CHECK(Mail_Desk_address(SERVER, letters_of(90, '=', 'Z'), &bytes, &result) == QUILL_OK && same(answer, letters));
    /* More than a hundred characters of several bytes: the reply is an item. */
    for (int i = 0; i < 98; i++)
        memcpy(letters + 1 + 4 * i, "\360\237\230\200", 5);
    letters[0] = '=';
    CHECK(Mail_Desk_address(SERVER, letters, &bytes, &result) == QUILL_OK && bytes == 393 && same(answer, letters));
    CHECK(Mail_Desk_address(SERVER, letters_of(599, '=', 'Z'), &bytes, &result) == QUILL_MALFORMED);
    CHECK(Mail_Desk_address(SERVER, letters_of(600, 'A', 'Z'), &bytes, &result) == QUILL_MALFORMED);
    CHECK(Mail_Desk_address(SERVER, letters_of(8, '\377', 'Z'), &bytes, &result) == QUILL_MALFORMED);
    desk.leave_out = true;
    CHECK(Mail_Desk_address(SERVER, "A", &bytes, &result) == QUILL_MALFORMED);
    desk.leave_out = false;

    CHECK(Mail_Desk_rename(SERVER, "o", "f") == QUILL_OK);
    CHECK(Mail_Desk_rename(SERVER, "o", letters_of(500, 'q', 'f')) == QUILL_OK);
    CHECK(Mail_Desk_rename(SERVER, "o", letters_of(501, 'q', 'f')) == QUILL_TOO_LONG);
    CHECK(Mail_Desk_rename(SERVER, letters_of(71, 'o', 'f'), "f") == QUILL_TOO_LONG);

    CHECK(Mail_Desk_nick(SERVER, "Annabel", &called) == QUILL_OK && same(name, "Anna"));
    CHECK(Mail_Desk_nick(SERVER, "=Annabe", &called) == QUILL_MALFORMED);
    CHECK(Mail_Desk_nick(SERVER, "-Annabe", &called) == QUILL_MALFORMED);
    CHECK(Mail_Desk_initials(SERVER, "seventeen", 'S', &called) == QUILL_OK && same(name, "Seventeen"));
    CHECK(Mail_Desk_initials(SERVER, "\303\237\303\237", 0x1f600, &called) == QUILL_OK && same(name, "\303\237\303\237"));
    CHECK(Mail_Desk_initials(SERVER, "ten is too many", 'S', &called) == QUILL_TOO_LONG);
    CHECK(Mail_Desk_initials(SERVER, "no", 0xd800, &called) == QUILL_MALFORMED);
}

static uint8_t sent[20001], back[20000];
static int32_t squares[3000];

static void lists(void)
{
    static const uint32_t lengths[] = { 0, 1, 7, 8, 1000, 19999, 20000 };
    Mail_Pages p = { 0, sent }, r = { 0, back };
    Mail_Numbers n = { 0, squares };

    for (uint32_t i = 0; i < 20000; i++)
        sent[i] = (uint8_t)(i * 7);
    for (uint32_t k = 0; k < 7; k++) {
        p._length = lengths[k];
        CHECK(Mail_Desk_copy(SERVER, &p, 3, &n, &r) == QUILL_OK);
        CHECK(r._length == p._length && n._length == p._length / 8);
        for (uint32_t i = 0; i < p._length; i++)
            CHECK(back[i] == (uint8_t)(sent[i] + 3));
        for (uint32_t i = 0; i < n._length; i++)
            CHECK(squares[i] == (int32_t)(i * i));
    }
    CHECK(r._buffer == back && n._buffer == squares);
    CHECK(Mail_Desk_copy(SERVER, &p, 255, &n, &r) == QUILL_MALFORMED);
    /* Whoever notices, the caller is told the same. */
    static const uint32_t too_long[] = { 20001, 30000, 65536, 1 << 20, 1 << 21, 1 << 22, 0x401000, 1u << 31, 0xffffffff };
    for (uint32_t k = 0; k < 9; k++) {
        p._length = too_long[k];
        CHECK(Mail_Desk_copy(SERVER, &p, 3, &n, &r) == QUILL_TOO_LONG);
    }

    int16_t some[5] = { 1, -2, 3, -4, 5 }, changed[5];
    Mail_Few f = { 4, some }, g = { 0, changed };
    Mail_Speed speed = Mail_Second;
    uint8_t seal[6];
    CHECK(Mail_Desk_some(SERVER, &f, &speed, seal, &g) == QUILL_OK);
    CHECK(g._length == 4 && changed[1] == 2 && changed[3] == 4 && speed == Mail_First && seal[5] == 6);
    f._length = 5;
    CHECK(Mail_Desk_some(SERVER, &f, &speed, seal, &g) == QUILL_MALFORMED);
    f._length = 6;
    CHECK(Mail_Desk_some(SERVER, &f, &speed, seal, &g) == QUILL_TOO_LONG);
    f._length = 1;
    speed = 3;
    CHECK(Mail_Desk_some(SERVER, &f, &speed, seal, &g) == QUILL_MALFORMED);

    static int32_t hundred[100];
    int32_t sum;
    for (int i = 0; i < 100; i++)
        hundred[i] = i;
    CHECK(Mail_Desk_product(SERVER, hundred, -2, &sum) == QUILL_OK && sum == -9900);
}

/* Whatever lay in the registers before, the message is the same. */
static void nothing_shows(void)
{
    static const uint8_t before[] = { 0x00, 0xa5, 0xff };
    static quill_word there[3][64], again[3][64];
    Mail_Size s = { 3, -4, 500 }, t;
    Mail_Desk_weigh_raised raised;
    int16_t some[5] = { 1, -2, 3, -4, 5 }, changed[5];
    Mail_Few f = { 3, some }, g = { 0, changed };
    uint8_t seal[6], small;
    char answer[401], name[37];
    char *result = answer, *called = name;
    int32_t bytes;

    for (int what = 0; what < 7; what++) {
        for (int i = 0; i < 3; i++) {
            Mail_Slip l = { 200, 77, false };
            Mail_Speed speed = Mail_Second;
            for (int side = 0; side < 2; side++)
                memset(utcb(threads + side) + 1, before[i], 63 * sizeof(quill_word));
            switch (what) {
            case 0: CHECK(Mail_Desk_weigh(SERVER, &s, &l, true, &t, &raised) == QUILL_OK); break;
            case 1: CHECK(Mail_Desk_last(SERVER, 1, 2, 3, &small) == QUILL_OK); break;
            case 2: CHECK(Mail_Desk_some(SERVER, &f, &speed, seal, &g) == QUILL_OK); break;
            case 3: CHECK(Mail_Desk_address(SERVER, "Anna", &bytes, &result) == QUILL_OK); break;
            case 4: CHECK(Mail_Desk_address(SERVER, "Annabel", &bytes, &result) == QUILL_OK); break;
            case 5: CHECK(Mail_Desk_initials(SERVER, "anna", 'B', &called) == QUILL_OK); break;
            case 6: s.grams = -7; CHECK(Mail_Desk_weigh(SERVER, &s, &l, true, &t, &raised) == 1); break;
            }
            memcpy(there[i], request, sizeof request);
            memcpy(again[i], reply, sizeof reply);
        }
        for (int i = 1; i < 3; i++)
            CHECK(equal(there[i], there[0], sizeof request) && equal(again[i], again[0], sizeof reply));
    }
}

/* A request as somebody else might send it. */
static quill_word raw(const quill_word *words)
{
    char *mine = quill_utcb();
    uint32_t w0, w1;

    for (int i = 1; i < 64; i++)
        *quill_register(mine, i) = words[i];
    return quill_call(mine, SERVER, words[0], 252, 252, &w0, &w1);
}

static void damage(void)
{
    static quill_word good[8][64];
    char answer[401], name[37];
    char *result = answer, *called = name;
    Mail_Size s = { 3, -4, 500 }, t;
    Mail_Slip l = { 200, 77, false };
    Mail_Desk_weigh_raised raised;
    int16_t some[5] = { 1, -2, 3, -4, 5 }, changed[5];
    Mail_Few f = { 3, some }, g = { 0, changed };
    Mail_Pages p = { 100, sent }, r = { 0, back };
    Mail_Numbers n = { 0, squares };
    Mail_Speed speed = Mail_Second;
    uint8_t seal[6];
    int32_t bytes;
    uint32_t refused = 0;

    Mail_Desk_weigh(SERVER, &s, &l, true, &t, &raised), memcpy(good[0], request, sizeof request);
    Mail_Desk_address(SERVER, "somebody", &bytes, &result), memcpy(good[1], request, sizeof request);
    Mail_Desk_address(SERVER, letters_of(400, 'a', 'b'), &bytes, &result), memcpy(good[2], request, sizeof request);
    Mail_Desk_rename(SERVER, "old", "stuff"), memcpy(good[3], request, sizeof request);
    Mail_Desk_initials(SERVER, "some", 'S', &called), memcpy(good[4], request, sizeof request);
    Mail_Desk_copy(SERVER, &p, 1, &n, &r), memcpy(good[5], request, sizeof request);
    Mail_Desk_some(SERVER, &f, &speed, seal, &g), memcpy(good[6], request, sizeof request);
    Mail_Desk_shout(SERVER, 1, Mail_urgent), memcpy(good[7], request, sizeof request);
    desk.damaged = true;
    for (uint32_t round = 0; round < 40000; round++) {
        quill_word words[64];
        uint32_t which = pick() % 8, changes = 1 + pick() % 3;
        memcpy(words, good[which], sizeof words);
        while (changes-- > 0) {
            switch (pick() % 6) {
            case 0: words[0] ^= (quill_word)1 << pick() % 12; break;                      /* counts */
            case 1: words[0] ^= (quill_word)1 << (16 + pick() % 16); break;               /* label */
            case 2: words[0] = (words[0] & ~(quill_word)0xfff) | (pick() & 0xfff); break;
            case 3: words[1 + pick() % 8] ^= (quill_word)1 << pick() % (8 * sizeof(quill_word)); break;
            case 4: words[1 + pick() % 20] = pick(); break;
            case 5: words[1 + pick() % 20] = 0; break;
            }
        }
        /* The kernel's own labels get no answer, and nothing comes back from an oneway method: not what is tried here. */
        if ((uint16_t)(words[0] >> 16) >= 0xff80 || (uint16_t)(words[0] >> 28) == 8)
            continue;
        quill_word tag = raw(words);
        CHECK((tag & 0x8000) != 0 || tag >> 16 == 0 || tag >> 16 == 1 || tag >> 16 == 2 || tag >> 16 == 77 ||
              tag >> 16 == QUILL_MALFORMED || tag >> 16 == QUILL_NO_METHOD || tag >> 16 == 0xff03);
        refused += tag >> 16 == QUILL_MALFORMED || tag >> 16 == QUILL_NO_METHOD;
    }
    desk.damaged = false;
    CHECK(refused > 5000);
    /* Bits that the kernel adds do not matter. */
    good[0][0] |= 0x7000;
    CHECK(raw(good[0]) >> 16 == 0);
    good[1][0] |= 0x4000;
    CHECK(raw(good[1]) >> 16 == 0);
}

static void client(void)
{
    values();
    texts();
    lists();
    nothing_shows();
    damage();
    /* The server lives. */
    desk.calls = desk.shouts = 0;
    values();
}
