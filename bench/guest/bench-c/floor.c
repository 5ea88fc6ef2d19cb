/* Programs around the stubs of floor.S: a server, and its client, which measures them and afterwards calls the server by quill's stubs, too, with texts of
 * all kinds. */

#define QUILL_OMIT_FRAME_POINTER
#include "by_hand.h"

#include <bench.h>
#include <string.h>
#include <system.h>

#define NAME "floor"

enum { WORDS = 4096 / 8 + 1, PATIENCE_US = 1000000, METHODS = 4, ITERATIONS = 160 };

_Thread_local double floor_done;

int floor_call_tiny(tern_uid server, const char *text);
int floor_call_small(tern_uid server, const char *text);
int floor_call_large(tern_uid server, const char *text);
int floor_call_str(tern_uid server, const char *text);
void floor_serve(void);

/* Whether bytes that are not ASCII are a text in UTF-8 without a zero. */
bool floor_is_other_text(const char *text, uint64_t len)
{
    return quill_is_other_text(text, len, 4096);
}

int serve_floor(void)
{
    static uint64_t room[WORDS];
    uint64_t control[6] = { TERN_NIL, (uint64_t)room, (uint64_t)WORDS << 32, PATIENCE_US };

    if (tern_control(TERN_THREAD_CONTROL, TERN_THREAD_SET_BLOCK, control) != TERN_OK ||
        System_Names_register(tern_home(), (uint8_t[16]){ NAME }) != QUILL_OK)
        return 1;
    floor_serve();
    return 1;
}

/* Texts from 0 to 40 bytes at any place of a piece of sixteen, and one byte of them that is not ASCII. */
static int check_texts(tern_uid server)
{
    static _Alignas(16) char room[64 + 16];
    int32_t a, b;

    for (int place = 0; place < 16; place++) {
        for (int len = 0; len <= 40; len++) {
            char *text = room + place;

            memset(text, 'a', (size_t)len);
            text[len] = 0;
            if (Bench_Calls_str(server, text, &a, &b) != QUILL_OK)
                return 0;
            if (len < 2)
                continue;
            memcpy(text + len - 2, "\xc3\xa4", 2); /* a letter of two bytes */
            if (Bench_Calls_str(server, text, &a, &b) != QUILL_OK)
                return 0;
            text[len - 1] = 'a';
            if (Bench_Calls_str(server, text, &a, &b) != QUILL_MALFORMED)
                return 0;
        }
    }
    return 1;
}

int call_floor(void)
{
    static _Alignas(16) const char text[] = "sixteen letters.";
    tern_uid server = find_server(NAME);

    if (floor_call_tiny(server, text) != 0 || floor_call_small(server, text) != 0 || floor_call_large(server, text) != 0 ||
        floor_call_str(server, text) != 0)
        return 1;
    return floor_done == METHODS * ITERATIONS && check_texts(server) ? 0 : 2;
}
