/* Both sides of an interface with arrays and short lists of truth values and enums, in the words of short messages: each byte of which is damaged
 * in turn, there and back. */

#define STUBS "lamps.h"
#include "on_tern.h"

static int served;

static bool are_colors(const Color *colors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (colors[i] > blue)
            return false;
    return true;
}

static bool are_flags(const bool *flags)
{
    unsigned char bytes[sizeof(Flags)];

    memcpy(bytes, flags, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i] > 1)
            return false;
    return true;
}

static quill_status turn(SELF, const bool *flags, const sequence_3_Color *colors, bool *back, sequence_3_Color *result)
{
    (void)self, (void)from;
    CHECK(are_flags(flags) && colors->_length <= 3 && are_colors(colors->_buffer, colors->_length));
    served++;
    for (int i = 0; i < 5; i++)
        back[i] = !flags[i];
    *result = *colors;
    return QUILL_OK;
}

static quill_status swap(SELF, Pair *pairs, Pair *result)
{
    (void)self, (void)from;
    CHECK(are_colors(&pairs[0].left, 4));
    served++;
    memcpy(result, pairs, sizeof(Pairs));
    for (int i = 0; i < 2; i++)
        pairs[i] = (Pair){ result[i].right, result[i].left };
    return QUILL_OK;
}

static const Lamps_server methods = { .turn = turn, .swap = swap };

SERVES(Lamps, methods)

/* A byte that is damaged on the way there, or back; the words have no more than that of it. */
static int there_byte = -1, back_byte = -1, bytes_there, bytes_back;

uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    tern_uid partner = 7;

    CHECK(server == PEER_NUMBER && there <= QUILL_WORDS && back <= QUILL_WORDS);
    bytes_there = 8 * (int)there;
    bytes_back = 8 * (int)back;
    if (there_byte >= 0)
        ((unsigned char *)words)[there_byte] = 0xff;
    label = ANSWER(Lamps, &methods, NULL, &partner, label, words, NULL, NULL, NULL);
    if (back_byte >= 0)
        ((unsigned char *)words)[back_byte] = 0xff;
    return (uint64_t)label << 32 | TERN_KIND_REPLY;
}

static quill_status turned(void)
{
    bool flags[5] = { true, false, true, true, false }, back[5];
    sequence_3_Color colors = { 3, { blue, red, green } }, found;
    quill_status status = Lamps_turn(TO(Lamps), flags, &colors, back, &found);

    CHECK(status != QUILL_OK || (are_flags(back) && found._length <= 3 && are_colors(found._buffer, found._length)));
    if (status == QUILL_OK && there_byte < 0 && back_byte < 0)
        CHECK(!back[0] && back[1] && found._length == 3 && found._buffer[0] == blue && found._buffer[2] == green);
    return status;
}

static quill_status swapped(void)
{
    Pair pairs[2] = { { red, blue }, { green, red } }, before[2];
    quill_status status = Lamps_swap(TO(Lamps), pairs, before);

    CHECK(status != QUILL_OK || (are_colors(&pairs[0].left, 4) && are_colors(&before[0].left, 4)));
    if (status == QUILL_OK && there_byte < 0 && back_byte < 0)
        CHECK(pairs[0].left == blue && pairs[1].right == green && before[0].right == blue);
    return status;
}

/* How many bytes of a call's messages are looked at: none of them goes through with a bit that is too many. */
static int looked_at(quill_status (*call)(void), int *byte, const int *bytes)
{
    int refused = 0;

    CHECK(call() == QUILL_OK);
    for (*byte = *bytes - 1; *byte >= 0; (*byte)--) {
        quill_status status = call();
        CHECK(status == QUILL_OK || status == QUILL_MALFORMED);
        refused += status == QUILL_MALFORMED;
    }
    return refused;
}

int main(void)
{
    bool flags[5] = { false }, back[5];
    sequence_3_Color colors = { 1, { blue + 1 } }, found;
    Pair pairs[2] = { { red, red }, { red, blue + 1 } }, before[2];

    /* Five truth values, three colors of four bytes, and their number; four colors. */
    CHECK(looked_at(turned, &there_byte, &bytes_there) >= 18 && looked_at(turned, &back_byte, &bytes_back) >= 18);
    CHECK(looked_at(swapped, &there_byte, &bytes_there) == 16 && looked_at(swapped, &back_byte, &bytes_back) == 32);
    /* A client that calls with no value is told so, and no server hears of it. */
    served = 0;
    CHECK(Lamps_turn(TO(Lamps), flags, &colors, back, &found) == QUILL_MALFORMED);
    CHECK(Lamps_swap(TO(Lamps), pairs, before) == QUILL_MALFORMED && served == 0);
    colors._length = 0;
    CHECK(Lamps_turn(TO(Lamps), flags, &colors, back, &found) == QUILL_OK && served == 1);
    return 0;
}
