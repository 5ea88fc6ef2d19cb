/* Both sides of freight.idl: an any with a value of each type of the file, and contents that are none. */

#define STUBS "freight.h"
#ifdef ON_L4
#define INTERFACE Freight_Depot
#else
#define INTERFACE Freight_Harbour
#endif
#define REQUEST_STRINGS { 4096, 4096, 4096, 0 }
#define REPLY_STRINGS { 4096, 4096, 4096, 0 }
#define IS_ONEWAY(label) false
#ifdef ON_SOCKETS
/* A client or a server, whose other side is a program of its own. */
#include "check.h"
#include STUBS
#include "sockets.h"
#define INSIDE 0
#define SELF void *self, quill_memory *from
#define OF(name) Freight_Harbour_##name
#define PEER &way
#define PEER_REPLIES PEER
#define EXPECT(condition) CHECK(condition)
static quill_client way;
static const bool sane = true;
#else
#include "sides_begin.h"
#endif
#include "freight_values.h"

/* --- the server, which makes each any again before it gives it back --- */

static quill_status weigh(SELF, const quill_any *value, uint32_t *result)
{
    quill_any made;

    (void)self, (void)from;
    CHECK(quill_any_is_sound(value));
    *result = type_of(value, &made);
    return QUILL_OK;
}

static quill_status turn(SELF, const quill_any *value, quill_any *result)
{
    static quill_any last;

    (void)self, (void)from;
    CHECK(quill_any_is_sound(value));
    if (type_of(value, &last) >= KINDS)
        last = *value;
    *result = last;
    return QUILL_OK;
}

#ifdef ON_L4
static const Freight_Depot_server methods = { weigh, turn };
#else

static quill_status search(SELF, const quill_any *value, Freight_Harbour_search_raised *raised)
{
    (void)self, (void)from;
    CHECK(quill_any_is_sound(value));
    raised->Found.what = *value;
    return 1;
}

static quill_status sorted(SELF, const Freight_Pile *pile, Freight_Pile *result)
{
    (void)self, (void)from;
    for (uint32_t i = 0; i < pile->_length; i++)
        CHECK(quill_any_is_sound(&pile->_buffer[i]));
    *result = *pile;
    return QUILL_OK;
}

static const Freight_Harbour_server methods = { weigh, turn, search, sorted };
#endif

/* --- the client --- */

#ifndef ON_L4
static void more(uint32_t which, const quill_any *value)
{
    static uint8_t others[3][ROOM_BYTES];
    Freight_Harbour_search_raised raised = { 0 };
    Freight_Pile pile, back;
#if !INSIDE
    quill_any three[3];
    pile._buffer = three;
#endif

    EXPECT(OF(search)(PEER_REPLIES, value, &raised) == 1 && same(&raised.Found.what, value));
    pile._length = 3;
    for (uint32_t i = 0; i < 3; i++)
        CHECK(some_any((which + i) % KINDS, others[i], &pile._buffer[i]));
    EXPECT(OF(sorted)(PEER_REPLIES, &pile, &back) == QUILL_OK && back._length == 3);
    for (uint32_t i = 0; i < 3 && sane; i++)
        CHECK(same(&pile._buffer[i], &back._buffer[i]));
}
#endif

static void calls(void)
{
    static uint8_t room_for[ROOM_BYTES], came[ROOM_BYTES];
    quill_any value, back = { 0 };
    uint32_t found = KINDS;

    for (uint32_t which = 0; which < KINDS; which++) {
        CHECK(some_any(which, room_for, &value));
        EXPECT(OF(weigh)(PEER, &value, &found) == QUILL_OK && found == which);
        back.content._buffer = came;
        EXPECT(OF(turn)(PEER_REPLIES, &value, &back) == QUILL_OK && same(&value, &back));
#ifndef ON_L4
        more(which, &value);
#endif
        /* Parts that do not go together reach nobody. */
        value.bits += 4;
        EXPECT(OF(weigh)(PEER, &value, &found) == QUILL_MALFORMED);
    }
    /* Neither does a text that is not there, nor a content. */
    value = quill_any_string(NULL);
    EXPECT(OF(weigh)(PEER, &value, &found) == QUILL_MALFORMED);
#ifdef ON_SOCKETS
    value = (quill_any){ quill_tk_described, 8, { 16, NULL } };
    EXPECT(OF(weigh)(PEER, &value, &found) == QUILL_MALFORMED);
    CHECK(OF(search)(PEER, &value, &(Freight_Harbour_search_raised){ 0 }) == QUILL_MALFORMED);
    Freight_Pile one = { 1, &value }, none;
    CHECK(OF(sorted)(PEER, &one, &none) == QUILL_MALFORMED);
#endif
    if (sane) {
        bytes_of_all();
        no_values();
        no_texts();
        too_deep();
    }
    /* Once is enough. */
    static bool looked;
    if (!looked)
        nearly_right();
    looked = true;
}

#ifdef ON_SOCKETS
int main(int count, char **arguments)
{
    CHECK(count == 3);
    bool serves = strcmp(arguments[1], "serve") == 0;
    way.socket = connection(arguments[2], serves);
    if (serves)
        CHECK(quill_serve(way.socket, Freight_Harbour_dispatch, &methods, NULL) == QUILL_OK);
    else
        calls();
    quill_release(&way.memory);
    return 0;
}
#else
#include "sides_end.h"
#endif
