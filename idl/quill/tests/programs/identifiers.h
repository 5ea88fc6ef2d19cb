/* Identifiers of doors in both sides of one program, with functions in the kernel's place: an identifier is what a number holds, an object's number or 0. A
 * program says REPLIES, the type of a client's room, REPLY_STRINGS, how many strings that has, and WINDOWS, how many a server has, before it brings this, and has
 * its object at `entry`. A server's room has one string. */

#include "on_tern.h"

/* The library's numbers, as they are; what it releases, the test hears of. */
#define tern_door_release(number) released(number)
#include "numbers.c"

enum { FIRST = 100, NUMBERS = 192, STRINGS = 1 };

/* A door of the program's own. */
enum { OWN = 7, ITS_OBJECT = 9 };

static uint64_t used[NUMBERS / 64];
/* Objects that numbers hold; those before FIRST are the program's own. */
static uint32_t holds[FIRST + NUMBERS];

int released(uint32_t number)
{
    CHECK(number < FIRST + NUMBERS);
    holds[number] = 0;
    return TERN_OK;
}

/* Where what is handed over in registers arrives, on each side; and which side runs. */
static tern_fpage standing[2];
static bool on_server;

tern_fpage quill_set_window(tern_fpage window)
{
    tern_fpage before = standing[on_server];

    standing[on_server] = window;
    return before;
}

static void entry(void);

static struct room room;
static REPLIES replies;
/* How many of the references that a message hands over lead nowhere: those from the last on. */
static uint32_t that_lead_nowhere;

/* Hands over what an item says into a window. */
static void hand_over(const uint64_t *item, uint64_t *window)
{
    uint32_t giver = quill_number_at(item[0]), to = quill_number_at(window[0]);

    CHECK(giver < FIRST + NUMBERS && to >= FIRST && to < FIRST + NUMBERS && to - FIRST < NUMBERS);
    CHECK((used[(to - FIRST) / 64] >> (to - FIRST) % 64 & 1) != 0);
    holds[to] = holds[giver];
    if ((item[0] & TERN_GRANT) != 0)
        holds[giver] = 0;
    window[0] = (window[0] & ~(tern_fpage)0xf) | (holds[to] != 0 ? TERN_R | TERN_W : 0);
    window[1] = item[1];
}

/* Carries a block to where the other side has room for words, so many strings, and so many windows. False if it has not. */
static bool carry(uint64_t *words, uint64_t *to, uint64_t *strings, unsigned buffers, unsigned windows)
{
    const uint64_t *block = (const uint64_t *)(uintptr_t)words[1];
    uint64_t count = words[0] & 0xfff, texts = words[0] >> 12 & 0xff, items = words[0] >> 20 & 0xff;

    CHECK(words[0] >> 28 == 0);
    if (count > QUILL_ROOM_WORDS - 1 || texts > buffers || items > windows)
        return false;
    memcpy(to, block, 8 * count);
    for (uint64_t i = 0; i < texts; i++) {
        uint64_t bytes = block[count + 2 * i + 1];
        if (bytes > strings[2 * i + 1] >> 32)
            return false;
        memcpy((void *)(uintptr_t)strings[2 * i], (const void *)(uintptr_t)block[count + 2 * i], bytes);
        strings[2 * i + 1] = (strings[2 * i + 1] & ~UINT64_C(0xffffffff)) | bytes;
    }
    for (uint64_t i = 0; i < items; i++) {
        uint64_t item[2];
        memcpy(item, block + count + 2 * texts + 2 * i, sizeof item);
        if (items - i <= that_lead_nowhere && (item[0] & TERN_GRANT) != 0)
            holds[quill_number_at(item[0])] = 0;
        else if (items - i <= that_lead_nowhere)
            item[0] = quill_handed_over(OWN + 1, false);
        if (quill_number_at(strings[2 * (buffers + i)]) == 0)
            return false;
        hand_over(item, strings + 2 * (buffers + i));
    }
    words[0] |= (uint64_t)buffers << 44 | (uint64_t)windows << 52;
    words[1] = (uintptr_t)to;
    return true;
}

/* The reply, if it is not the server's: its kind, and words. */
static uint64_t lie, lying_words[2];

static uint64_t deliver(uint64_t rax, uint64_t *words)
{
    if ((rax & QUILL_NO_BLOCK) == 0 && lie == 0) {
        if (!carry(words, room.words, room.strings, STRINGS, WINDOWS))
            return TERN_OVERFLOW;
        if ((words[0] >> 20 & 0xff) != 0)
            rax &= ~(uint64_t)TERN_NO_ITEM;
    }
    if (lie != 0) {
        memcpy(words, lying_words, sizeof lying_words);
        rax = lie;
    } else {
        on_server = true;
        rax = through_door(entry, NULL, rax, words);
        on_server = false;
    }
    if ((uint32_t)rax >> 31 != 0 && (rax & TERN_NO_ITEM) == 0) {
        uint64_t window[2] = { standing[0], 0 };
        hand_over(words + 6, window);
        words[6] = window[0];
    }
    if ((uint32_t)rax >> 31 != 0 && (rax & QUILL_NO_BLOCK) == 0) {
        uint64_t *strings = replies.strings;
        if (!carry(words, replies.words, strings, REPLY_STRINGS, sizeof replies.strings / 16 - REPLY_STRINGS))
            return TERN_NO_ACCESS;
        if ((words[0] >> 20 & 0xff) != 0)
            rax &= ~(uint64_t)TERN_NO_ITEM;
    }
    return rax;
}

uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    (void)there, (void)back;
    CHECK(server == PEER_NUMBER);
    return as_return(deliver((uint64_t)label << 32 | TERN_DOOR_CALL, words));
}

uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    (void)there, (void)back;
    if (server != PEER_NUMBER)
        return TERN_NO_SUCH;
    return as_return(deliver((uint64_t)label << 32 | QUILL_DOOR_LONG_CALL, words));
}

/* That so many references are somebody's, each under a number of its own; windows have numbers and hold nothing. */
static void check_owners(unsigned owned, int line)
{
    unsigned in_use = tern_numbers_in_use(&tern_arrivals), held = 0;

    for (uint32_t number = FIRST; number < FIRST + NUMBERS; number++)
        held += holds[number] != 0;
    for (size_t i = 2 * REPLY_STRINGS; i < sizeof replies.strings / 8; i++)
        CHECK(replies.strings[i] == 0);
    if (in_use != 1 + WINDOWS + owned || held != owned)
        fprintf(stderr, "line %d: %u in use, %u held, %u owned\n", line, in_use, held, owned);
    CHECK(in_use == 1 + WINDOWS + owned && held == owned);
}

static void begin_identifiers(uint32_t request_bytes, uint32_t reply_bytes)
{
    tern_arrivals = (struct tern_numbers){ FIRST, NUMBERS, used };
    standing[1] = quill_window_at(tern_number_take(&tern_arrivals));
    room.strings[0] = (uintptr_t)room.buffers, room.strings[1] = (uint64_t)request_bytes << 32;
    if (REPLY_STRINGS != 0)
        replies.strings[0] = (uintptr_t)replies.buffers, replies.strings[1] = (uint64_t)reply_bytes << 32;
    for (uint32_t i = 0; i < WINDOWS; i++)
        room.strings[2 * (STRINGS + i)] = quill_window_at(tern_number_take(&tern_arrivals));
    holds[OWN] = ITS_OBJECT;
}
