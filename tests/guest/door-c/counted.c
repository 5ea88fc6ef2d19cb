/* Calls through a door whose kinds and sizes are known, for the test of what the system counts (shell::doors_are_counted, which has these
 * numbers, too). Sizes lie on both sides of the borders between classes, which are 16, 64, 256, 1,024 and 5,120 bytes.
 *
 * The server answers nothing, but where the label asks for it: then with eight words. */

#include "door.h"

#include <system.h>
#include <unistd.h>

enum { OBJECT = 3, PLACE = 20, WORDS = 11, BLOCK_WORDS = 641, PAUSE_US = 1000 };
enum { NOTHING, EIGHT_WORDS };

static uint64_t sent[BLOCK_WORDS], received[BLOCK_WORDS];

void counted_call(struct tern_message *message)
{
    int has_item = (message->kind & TERN_NO_ITEM) == 0;

    if (has_item)
        tern_door_release(PLACE);
    for (int i = 0; i < 8; i++)
        message->words[i] = message->label == EIGHT_WORDS;
    message->label = 0;
}

TERN_DOOR_ENTRY(counted_entry, counted_call);

/* Serves with room for the largest block, and for an identifier. */
static void serve(void)
{
    uint64_t block[6] = { TERN_NIL, (uint64_t)received, (uint64_t)BLOCK_WORDS << 32, TERN_NEVER };
    uint64_t window[6] = { TERN_NIL, TERN_FPAGE_DOORS(PLACE, 0, TERN_R | TERN_W) }, end[6] = { TERN_NIL };

    if (tern_control(TERN_THREAD_CONTROL, TERN_THREAD_SET_BLOCK, block) == TERN_OK &&
        tern_control(TERN_THREAD_CONTROL, TERN_THREAD_SET_WINDOW, window) == TERN_OK)
        tern_door_serve();
    tern_control(TERN_THREAD_CONTROL, TERN_THREAD_DESTROY, end);
}

/* Calls so many times with words of which this is the last that is not 0. */
static int call_with_words(int times, int last)
{
    for (; times > 0; times--) {
        struct tern_message message = { .label = EIGHT_WORDS, .partner = OBJECT };
        uint64_t words[WORDS] = { 0 };

        words[last] = 1;
        memcpy(message.words, words, sizeof message.words);
        if (tern_ipc_raw(TERN_DOOR_CALL, &message, words[8], words[9], words[10]) != TERN_OK)
            return 0;
    }
    return 1;
}

/* Calls so many times with a block of so many bytes. */
static int call_with_block(int times, uint64_t bytes)
{
    for (; times > 0; times--) {
        struct tern_message message = { .label = NOTHING, .partner = OBJECT, .words = { bytes / 8, (uint64_t)sent } };

        if (tern_ipc_raw(TERN_DOOR_CALL & ~TERN_BLOCK, &message, 0, 0, 0) != TERN_OK)
            return 0;
    }
    return 1;
}

/* Calls so many times with an identifier of the object, and words of which this is the last that is not 0. */
static int call_with_item(int times, int last)
{
    for (; times > 0; times--) {
        struct tern_message message = { .label = NOTHING, .partner = OBJECT };

        message.words[last] = 1;
        message.words[6] = TERN_FPAGE_DOORS(OBJECT, 0, TERN_R | TERN_W);
        if (tern_ipc_raw(TERN_DOOR_CALL & ~TERN_ITEM, &message, 0, 0, 0) != TERN_OK)
            return 0;
    }
    return 1;
}

int make_counted_calls(void)
{
    struct tern_message message = { 0 };

    if (tern_door_create(OBJECT, counted_entry, 0) != TERN_OK || start_server(serve) == TERN_NIL)
        return 1;
    if (!call_with_words(2, 1) || !call_with_words(3, 2) || !call_with_words(4, 7) || !call_with_words(5, 8))
        return 2;
    if (!call_with_block(1, 16) || !call_with_block(2, 64) || !call_with_block(3, 72) || !call_with_block(4, 1024) ||
        !call_with_block(5, 5120) || !call_with_block(6, 5128))
        return 3;
    if (!call_with_item(2, 1) || !call_with_item(3, 5))
        return 4;
    if (System_Names_register(tern_home(), (uint8_t[16]){ "counted" }) != QUILL_OK)
        return 5;
    return tern_ipc(&message, 0, TERN_ANY, 0, TERN_TIMEOUTS(TERN_NEVER, TERN_NEVER));
}

int await_counted_calls(void)
{
    while (tern_resolve("counted") == TERN_NIL)
        usleep(PAUSE_US);
    return 0;
}
