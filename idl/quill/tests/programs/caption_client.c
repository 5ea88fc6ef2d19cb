/* A client of caption.idl over any kernel: texts of many lengths from every place of a word, with a letter behind them where
 * they are counted; texts with a zero in them; texts that are too long or none; and damaged requests. */

#ifdef ON_TERN
#include <tern.h>
#define QUILL_OWN_IPC
static uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back);
static uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back);
static uint32_t quill_ipc_send_long(tern_uid server, uint32_t label, const uint64_t *words);
#endif
#include CLIENT_HEADER
#ifdef ON_L4
#include "l4_kernel.h"
#else
#include "check.h"
#endif
#define SIDE_COUNTED COUNTED_CLIENT
#include "caption_sides.h"

extern int32_t noted;

#ifdef ON_TERN

#define PEER 3
#define PEER_REPLIES PEER, replies

uint32_t caption_answer(tern_uid *partner, uint32_t label, uint64_t *words, void *room, uint64_t *kept, bool *in_memory);

/* Whichever way a side has texts, there is as much room; in front of nothing. */
static Caption_Rich_room *room;
static Caption_Rich_replies *replies;

/* The part in memory arrives; false if there is no room for it. */
static bool arrive(uint64_t *words, void *to, uint64_t most, uint64_t *strings, char *buffers, uint32_t capacity)
{
    uint64_t count = words[0] & 0xfff, parts = words[0] >> 12 & 0xff;
    const char *block = (const char *)(uintptr_t)words[1];

    if (count > most || parts > 1)
        return false;
    if (count > 0)
        memcpy(to, block, 8 * count);
    if (parts > 0) {
        uint64_t from[2];
        memcpy(from, block + 8 * count, 16);
        if (from[1] > capacity)
            return false;
        /* Whatever is behind it is not its own. */
        memset(buffers, 'Z', capacity);
        if (from[1] > 0)
            memcpy(buffers, (const void *)(uintptr_t)from[0], from[1]);
        strings[1] = (uint64_t)capacity << 32 | from[1];
    }
    words[0] |= (most | 1 << 12) << 32;
    words[1] = (uintptr_t)to;
    words[10] = 0;
    return true;
}

static uint64_t answered(uint32_t label, uint64_t *words, void *from)
{
    uint64_t kept[64];
    bool in_memory = false;
    tern_uid partner = 7;

    label = caption_answer(&partner, label, words, from, kept, &in_memory);
    if (!in_memory)
        return (uint64_t)label << 32 | TERN_KIND_REPLY;
    CHECK(arrive(words, replies, sizeof replies->words / 8, replies->strings, replies->buffers, 800));
    return (uint64_t)label << 32 | (TERN_KIND_REPLY & ~(uint64_t)QUILL_NO_BLOCK);
}

static uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    CHECK(server == PEER && there <= QUILL_WORDS && back <= QUILL_WORDS);
    return answered(label, words, NULL);
}

static uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    CHECK(server == PEER && there <= QUILL_WORDS && back <= QUILL_WORDS);
    CHECK(arrive(words, room, sizeof room->words / 8, room->strings, room->buffers, 1200));
    return answered(label, words, room);
}

static uint32_t quill_ipc_send_long(tern_uid server, uint32_t label, const uint64_t *words)
{
    uint64_t copy[QUILL_WORDS];

    memcpy(copy, words, sizeof copy);
    quill_ipc_call_long(server, label, copy, 0, 0);
    return QUILL_OK;
}

#elif defined(ON_L4)

#define PEER SERVER

void caption_serve(void);

static void server(void)
{
    caption_serve();
}

#else

#include <sys/wait.h>

#define PEER &way
#define PEER_REPLIES &way

int caption_serve(int socket);
void caption_damage(uint32_t label, const uint8_t *bytes, size_t length);
static quill_client way;

#endif

/* Longer than any that may be sent. */
static char letters[9000];

/* So many letters from a place on, and behind them what nobody may look at, or the zero. */
static IN text_at(uint32_t place, uint32_t length)
{
    char *text = letters + place;

    for (uint32_t i = 0; i < length; i++)
        text[i] = (char)('a' + (i + place) % 26);
#if SIDE_COUNTED
    text[length] = '#';
    return quill_text_of(text, length);
#else
    text[length] = 0;
    return text;
#endif
}

/* A text that is given with its length, because it may have a zero in it. */
static IN text_of(const char *bytes, uint32_t length)
{
#if SIDE_COUNTED
    for (uint32_t i = 0; i < length; i++)
        letters[i] = bytes[i];
    letters[length] = '#';
    return quill_text_of(letters, length);
#else
    (void)length;
    return bytes;
#endif
}

#define OF(literal) text_of("" literal, sizeof(literal) - 1)

static bool equal(const char *a, uint32_t length, const char *b)
{
    for (uint32_t i = 0; i < length; i++)
        if (a[i] != b[i])
            return false;
    return b[length] == 0;
}

static void lone_texts(void)
{
    int32_t found;

    for (uint32_t length = 0; length < 600; length += length < 300 ? 1 : 37) {
        uint32_t place = length % 9;
        IN text = text_at(place, length);
        CHECK(FUNCTION(total)(PEER, text, &found) == QUILL_OK && found == sum_of(letters + place, length));
    }
    for (uint32_t place = 0; place < 8; place++) {
        for (uint32_t length = 2; length < 30; length++) {
            IN text = text_at(place, length);
            for (uint32_t at = 0; at + 2 <= length; at += 2) {
                letters[place + at] = '\303';
                letters[place + at + 1] = '\244';
                CHECK(FUNCTION(total)(PEER, text, &found) == QUILL_OK && found == sum_of(letters + place, length));
#ifndef ON_L4
                letters[place + at + 1] = 'x';
                CHECK(FUNCTION(total)(PEER, text, &found) == QUILL_MALFORMED);
#endif
                letters[place + at] = 'x';
            }
        }
    }
#ifdef ON_TERN
    CHECK(FUNCTION(total)(PEER, text_at(0, 4096), &found) == QUILL_OK && found == sum_of(letters, 4096));
    CHECK(FUNCTION(total)(PEER, text_at(0, 4097), &found) == QUILL_TOO_LONG);
#elif defined(ON_L4)
    CHECK(FUNCTION(total)(PEER, text_at(3, 599), &found) == QUILL_OK && found == sum_of(letters + 3, 599));
    CHECK(FUNCTION(total)(PEER, text_at(0, 600), &found) == (SIDE_COUNTED ? QUILL_TOO_LONG : QUILL_MALFORMED));
#endif
}

static void bounded_texts(void)
{
    int32_t found, first;
    Caption_Entry e;

    for (uint32_t length = 0; length <= 300; length += length < 20 ? 1 : 28) {
        IN text = text_at(length % 7, length);
        first = sum_of(letters + length % 7, length);
        CHECK(FUNCTION(pair)(PEER, text, text, 5, &found) == (length <= 12 ? QUILL_OK : QUILL_TOO_LONG));
        if (length <= 12)
            CHECK(found == first - 7 * first + 5);
    }
    CHECK(FUNCTION(pair)(PEER, text_at(0, 300), text_at(400, 12), -5, &found) == QUILL_OK);
    CHECK(found == sum_of(letters, 300) - 7 * sum_of(letters + 400, 12) - 5);
    CHECK(FUNCTION(pair)(PEER, text_at(0, 301), text_at(400, 1), 0, &found) != QUILL_OK);
    /* Bounds count characters. */
    CHECK(FUNCTION(pair)(PEER, text_at(400, 5), OF("\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244"),
                         0, &found) == QUILL_OK);
    CHECK(found == sum_of(letters + 400, 5) - 7 * sum_of("\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244", 24));
    CHECK(FUNCTION(pair)(PEER, text_at(400, 5), OF("caf\351"), 0, &found) == QUILL_TOO_LONG);
    IN wide = text_at(0, 300);
    letters[7] = '\377';
    CHECK(FUNCTION(pair)(PEER, wide, text_at(400, 1), 0, &found) != QUILL_OK);

    IN key = text_at(3, 11);
#if SIDE_COUNTED && INSIDE
    e.key._length = LENGTH(key);
    memcpy(e.key._buffer, BYTES(key), LENGTH(key));
#elif SIDE_COUNTED
    e.key = key;
#elif INSIDE
    memcpy(e.key, key, 12);
#else
    e.key = (char *)(uintptr_t)key;
#endif
    e.number = 40;
    CHECK(FUNCTION(entry)(PEER, &e, &found) == QUILL_OK && found == 40 + sum_of(letters + 3, 11));
#if SIDE_COUNTED
    e.key._length = 49;
    CHECK(FUNCTION(entry)(PEER, &e, &found) == QUILL_TOO_LONG);
    e.key._length = UINT32_MAX;
    CHECK(FUNCTION(entry)(PEER, &e, &found) == QUILL_TOO_LONG);
    CHECK(FUNCTION(pair)(PEER, quill_text_of(letters, UINT32_MAX), key, 0, &found) == QUILL_TOO_LONG);
#endif
}

/* A text that comes back, and what it is. */
static void backwards(const char *word, uint32_t length, const char *expected, quill_status status)
{
#if SIDE_COUNTED && INSIDE
    quill_text_12 tag = { 0, { 0 } };
    quill_text_12 *result = &tag;
#elif SIDE_COUNTED
    static char tag_room[48];
    quill_text tag = { 0, tag_room };
    quill_text *result = &tag;
#elif INSIDE
    char tag[49], *result = tag;
#else
    static char tag_room[49];
    char *tag = tag_room, **result = &tag;
#endif
    CHECK(FUNCTION(nick)(PEER, text_of(word, length), result) == status);
    if (status == QUILL_OK)
        CHECK(equal(BYTES(tag), LENGTH(tag), expected));
}

static void texts_that_come_back(void)
{
    backwards("", sizeof("") - 1, "", QUILL_OK);
    backwards("a", sizeof("a") - 1, "a", QUILL_OK);
    backwards("twelve chars", sizeof("twelve chars") - 1, "srahc evlewt", QUILL_OK);
    backwards("thirteen char", sizeof("thirteen char") - 1, "", QUILL_TOO_LONG);
    /* What the server would hand back is no text, or too long. */
#ifdef ON_TERN
    backwards("\303\244", sizeof("\303\244") - 1, "", QUILL_TOO_LONG);
    backwards("x!", sizeof("x!") - 1, "", QUILL_TOO_LONG);
#else
    backwards("\303\244", sizeof("\303\244") - 1, "", QUILL_MALFORMED);
    backwards("x!", sizeof("x!") - 1, "", QUILL_MALFORMED);
#endif
}

/* A zero is a character like any other where both sides count; nobody who looks for one is given half a text. */
static void zeros(void)
{
#if SIDE_COUNTED
    int32_t found;
    quill_status lone, short_one;

    for (uint32_t length = 1; length < 40; length++) {
        for (uint32_t at = 0; at < length; at++) {
            IN text = text_at(0, length);
            letters[at] = 0;
            lone = FUNCTION(total)(PEER, text, &found);
#ifdef ON_L4
            /* A lone text travels without a length. */
            CHECK(lone == QUILL_TOO_LONG);
#elif COUNTED_SERVER
            CHECK(lone == QUILL_OK && found == sum_of(letters, length));
#else
            CHECK(lone == QUILL_MALFORMED);
#endif
            if (length > 12)
                continue;
            short_one = FUNCTION(pair)(PEER, OF("a"), quill_text_of(memcpy(letters + 500, "a\0b", 3), 3), 0, &found);
#ifdef ON_L4
            /* Of several texts, long ones among them, each is an item, with a zero at its end. */
            CHECK(short_one == QUILL_TOO_LONG);
            continue;
#endif
            CHECK(COUNTED_SERVER ? short_one == QUILL_OK && found == sum_of("a", 1) - 7 * sum_of("a\0b", 3)
                                 : short_one == QUILL_MALFORMED);
        }
    }
    backwards("a\0b", 3, "b\0a", COUNTED_SERVER ? QUILL_OK : QUILL_MALFORMED);
#endif
}

static void hints(void)
{
    noted = 0;
    CHECK(FUNCTION(note)(PEER, OF("nobody answers")) == QUILL_OK);
#ifndef ON_L4
    CHECK(FUNCTION(note)(PEER, text_at(0, 21)) == QUILL_TOO_LONG);
#endif
}

#ifndef ON_L4

static void title_of(const char *line, const char *expected, quill_status status)
{
    LONG result;
    Caption_Rich_title_raised raised;
#if SIDE_COUNTED && INSIDE
    quill_text_12 tag = { 2, "in" }, *place = &tag;
#elif SIDE_COUNTED
    quill_text tag = QUILL_TEXT("in"), *place = &tag;
#elif INSIDE
    char tag[49] = "in", *place = tag;
#else
    char *tag = (char *)(uintptr_t)"in", **place = &tag;
#endif
    memset(&raised, 0, sizeof raised);
    CHECK(Caption_Rich_title(PEER_REPLIES, text_of(line, length_of(line)), place, &result, &raised) == status);
    if (status == QUILL_OK) {
        CHECK(equal(BYTES(result), LENGTH(result), expected));
        CHECK(equal(BYTES(tag), LENGTH(tag), "done"));
    } else if (status == 1) {
        CHECK(equal(BYTES(raised.Wrong.why), LENGTH(raised.Wrong.why), "empty"));
        CHECK(equal(BYTES(raised.Wrong.more), LENGTH(raised.Wrong.more), "a line without a letter"));
    }
}

/* A list of texts, piece by piece. */
static void lists(void)
{
    Caption_Tags tags, back;
#if INSIDE
    memset(&tags, 0, sizeof tags);
    for (uint32_t i = 0; i < 3; i++) {
#if SIDE_COUNTED
        tags._buffer[i]._length = i;
        memcpy(tags._buffer[i]._buffer, "xyz#", 4);
#else
        memcpy(tags._buffer[i], "xyz", i);
#endif
    }
#elif SIDE_COUNTED
    quill_text all[4] = { QUILL_TEXT(""), QUILL_TEXT("x"), QUILL_TEXT("xy"), QUILL_TEXT("thirteen char") };
    tags._buffer = all;
#else
    char *all[4] = { (char *)(uintptr_t)"", (char *)(uintptr_t)"x", (char *)(uintptr_t)"xy",
                     (char *)(uintptr_t)"thirteen char" };
    tags._buffer = all;
#endif
    tags._length = 3;
    CHECK(Caption_Rich_all(PEER_REPLIES, &tags, &back) == QUILL_OK && back._length == 3);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(LENGTH(back._buffer[i]) == i && memcmp(BYTES(back._buffer[i]), "xy", i) == 0);
#if SIDE_COUNTED && INSIDE
    tags._buffer[1]._length = 13;
    CHECK(Caption_Rich_all(PEER_REPLIES, &tags, &back) == QUILL_MALFORMED || COUNTED_CLIENT);
#elif !INSIDE
    tags._length = 4;
    CHECK(Caption_Rich_all(PEER_REPLIES, &tags, &back) == QUILL_TOO_LONG);
#endif
}

#endif

#ifdef ON_TERN

/* Requests that no client sends: they are answered, and nothing is read that is not there. */
static void damage(void)
{
    int refused = 0;

    for (int run = 0; run < 200000; run++) {
        uint64_t words[QUILL_WORDS], kept[64], count = chance() % 80;
        tern_uid partner = 7;
        bool in_memory = false, is_long = chance() % 8 > 0;
        uint32_t label = (uint32_t)chance() & 0xe0000000u;

        for (uint64_t i = 0; i < count; i++)
            room->words[i] = chance() % 3 > 0 ? 0x6161616161616161 : chance();
        room->strings[1] = (uint64_t)1200 << 32 | chance() % 1201;
        for (int i = 0; i < QUILL_WORDS; i++)
            words[i] = chance() % 3 > 0 ? chance() % 60 : chance() % 2 ? 0x6161616161616161 : chance() % 3 ? chance() : UINT32_MAX;
        if (is_long) {
            words[0] = (sizeof room->words / 8 | 1 << 12) * ((uint64_t)1 << 32) | (chance() % 2 << 12 | count);
            words[1] = (uintptr_t)room;
            words[3] = chance() % 4 > 0 ? 8 * count + chance() % 8 : chance();
        }
        label = caption_answer(&partner, label, words, is_long ? room : NULL, kept, &in_memory);
        CHECK(label == UINT32_MAX || label == 1 || label == QUILL_MALFORMED || label == QUILL_NO_METHOD ||
              label == QUILL_TOO_LONG || label == QUILL_SILENT);
        refused += label == QUILL_MALFORMED;
    }
    CHECK(refused > 10000 && refused < 200000);
}

#elif defined(ON_L4)

/* The words of a lone text that do not end with a zero, that are none at all, and an item without a zero. */
static void damage(void)
{
    quill_word words[64], tag, from = SERVER;
    uint32_t w0, w1;
    char *utcb_ = quill_utcb();

    for (uint32_t length = 0; length < 63 * sizeof(quill_word) / sizeof(quill_word); length++) {
        memset(words, 'a', sizeof words);
        memcpy(quill_at(utcb_, 0), words, 63 * sizeof(quill_word) / 4 * 4);
        tag = quill_call(utcb_, from, (quill_word)length, length * sizeof(quill_word), 8, &w0, &w1);
        CHECK(QUILL_LABEL(tag) == QUILL_MALFORMED);
    }
    for (uint32_t bytes = 0; bytes < 601; bytes += 100) {
        quill_put_item(utcb_, 0, letters, bytes);
        letters[bytes > 0 ? bytes - 1 : 0] = '#';
        tag = quill_call(utcb_, from, QUILL_TAG(0, 0, 1), 8, 8, &w0, &w1);
        CHECK((tag & QUILL_TAG_ERROR) || QUILL_LABEL(tag) == QUILL_MALFORMED);
    }
}

#else

static void damage(void)
{
    for (int run = 0; run < 100000; run++) {
        uint8_t bytes[200];
        size_t length = chance() % sizeof bytes;

        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)(chance() % 3 == 0 ? chance() : chance() % 2 ? 'a' : i % 4 == 0 ? chance() % 80 : 0);
        caption_damage((uint32_t)(chance() % 8 + 1), bytes, length);
    }
}

#endif

static void everything(void)
{
    lone_texts();
    bounded_texts();
    texts_that_come_back();
    zeros();
    hints();
#ifndef ON_L4
    title_of("a line", "enil a", QUILL_OK);
    title_of("", "", 1);
    title_of("a line that is so long that its two hundred characters are more than any register holds",
             "sdloh retsiger yna naht erom era sretcarahc derdnuh owt sti taht gnol os si taht enil a", QUILL_OK);
    lists();
#endif
}

#ifdef ON_TERN

int main(void)
{
    room = calloc(1, sizeof *room);
    replies = calloc(1, sizeof *replies);
    everything();
    CHECK(noted == sum_of("nobody answers", 14));
    damage();
    everything();
    free(room);
    free(replies);
    return 0;
}

#elif defined(ON_L4)

/* What is known of the UTCB before the threads are there must not be used here. */
static __attribute__((noinline)) void client(void)
{
    everything();
    damage();
    everything();
}

#else

int main(void)
{
    int pair[2], how = 0;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(pair[1]);
        return caption_serve(pair[0]);
    }
    close(pair[0]);
    way.socket = pair[1];
    everything();
    close(pair[1]);
    quill_release(&way.memory);
    CHECK(waitpid(child, &how, 0) == child && how == 0);
    damage();
    return 0;
}

#endif
