/* The server of caption.idl, over any kernel. */

#ifdef ON_TERN
#include <tern.h>
#define QUILL_OWN_IPC
/* It calls nobody. */
static uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back);
static uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back);
static uint32_t quill_ipc_send_long(tern_uid server, uint32_t label, const uint64_t *words);
#endif
#include SERVER_HEADER
#define SIDE_COUNTED COUNTED_SERVER
#include "caption_sides.h"

#ifdef ON_TERN
uint32_t caption_answer(tern_uid *partner, uint32_t label, uint64_t *words, void *room, uint64_t *kept, bool *in_memory);
#elif defined(ON_L4)
void caption_serve(void);
#else
int caption_serve(int socket);
void caption_damage(uint32_t label, const uint8_t *bytes, size_t length);
#endif
extern int32_t noted;
int32_t noted;

/* What is handed back lies here. */
static char kept[801];

static void give_tag(OUT_TAG(to), const char *bytes, uint32_t length)
{
#if INSIDE
    char *room = (char *)to;
#if SIDE_COUNTED
    room = to->_buffer;
    to->_length = length;
#else
    room[length] = 0;
#endif
    for (uint32_t i = 0; i < length; i++)
        room[i] = bytes[i];
#elif SIDE_COUNTED
    *to = quill_text_of(bytes, length);
#else
    (void)length;
    *to = (char *)(uintptr_t)bytes;
#endif
}

static quill_status total(void *self, CONTEXT, IN text, int32_t *result)
{
    (void)self, (void)from;
    *result = sum_of(BYTES(text), LENGTH(text));
    return QUILL_OK;
}

static quill_status pair(void *self, CONTEXT, IN a, IN b, int32_t n, int32_t *result)
{
    (void)self, (void)from;
    *result = sum_of(BYTES(a), LENGTH(a)) - 7 * sum_of(BYTES(b), LENGTH(b)) + n;
    return QUILL_OK;
}

static quill_status nick(void *self, CONTEXT, IN s, OUT_TAG(result))
{
    uint32_t length = LENGTH(s);

    (void)self, (void)from;
    for (uint32_t i = 0; i < length; i++)
        kept[i] = BYTES(s)[length - 1 - i];
    kept[length] = 0;
    if (length > 0 && kept[0] == '!') {
        /* More than may come back. */
        for (length = 0; length < 20; length++)
            kept[length] = 'x';
        kept[length] = 0;
    }
    give_tag(result, kept, length);
    return QUILL_OK;
}

static quill_status entry(void *self, CONTEXT, const Caption_Entry *e, int32_t *result)
{
    (void)self, (void)from;
    *result = sum_of(BYTES(e->key), LENGTH(e->key)) + e->number;
    return QUILL_OK;
}

static quill_status note(void *self, CONTEXT, IN s)
{
    (void)self, (void)from;
    noted = sum_of(BYTES(s), LENGTH(s));
    return QUILL_OK;
}

#ifndef ON_L4
static quill_status title(void *self, CONTEXT, IN l, OUT_TAG(s), LONG *result, Caption_Rich_title_raised *raised)
{
    static char why[] = "empty", more[] = "a line without a letter";
    uint32_t length = LENGTH(l);

    (void)self, (void)from;
    for (uint32_t i = 0; i < length; i++)
        kept[i] = BYTES(l)[length - 1 - i];
    kept[length] = 0;
#if SIDE_COUNTED
    kept[length] = '#';
    *result = quill_text_of(kept, length);
    raised->Wrong.more = quill_text_of(more, sizeof more - 1);
#else
    *result = kept;
    raised->Wrong.more = more;
#endif
#if SIDE_COUNTED || !INSIDE
    give_tag(&raised->Wrong.why, why, sizeof why - 1);
#else
    give_tag(raised->Wrong.why, why, sizeof why - 1);
#endif
    give_tag(s, "done", 4);
    return length == 0 ? 1 : QUILL_OK;
}

static quill_status all(void *self, CONTEXT, const Caption_Tags *t, Caption_Tags *result)
{
    (void)self, (void)from;
    *result = *t;
    return QUILL_OK;
}

static const Caption_Rich_server methods = { total, pair, nick, entry, note, title, all };
#else
#ifdef METHODS_CAN_CHANGE
static Caption_Board_server methods = { total, pair, nick, entry, note };
#else
static const Caption_Board_server methods = { total, pair, nick, entry, note };
#endif
#endif

#ifdef ON_TERN

uint32_t caption_answer(tern_uid *partner, uint32_t label, uint64_t *words, void *room, uint64_t *kept_words, bool *in_memory)
{
    return quill_answer(Caption_Rich_dispatch, &methods, NULL, partner, label, words, room, kept_words, in_memory);
}

static uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    (void)server, (void)label, (void)words, (void)there, (void)back;
    return 0;
}

static uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    return quill_ipc_call(server, label, words, there, back);
}

static uint32_t quill_ipc_send_long(tern_uid server, uint32_t label, const uint64_t *words)
{
    (void)server, (void)label, (void)words;
    return 0;
}

#elif defined(ON_L4)

void caption_serve(void)
{
    static Caption_Board_buffers buffers;

    Caption_Board_serve(&methods, NULL, &buffers);
}

#else

int caption_serve(int socket)
{
    return quill_serve(socket, Caption_Rich_dispatch, &methods, NULL) == QUILL_OK ? 0 : 1;
}

/* A message that nobody would send. The bytes end where the allocation ends, so that a sanitizer sees what goes beyond. */
void caption_damage(uint32_t label, const uint8_t *bytes, size_t length)
{
    quill_memory memory = { NULL };
    quill_out out = { 0 };
    uint8_t *copy = malloc(length + 1);
    quill_in in = quill_begin_in(copy, length, &memory);
    bool silent = false;

    memcpy(copy, bytes, length);
    Caption_Rich_dispatch(&methods, NULL, label, &in, &out, &silent);
    quill_discard(&out);
    free(copy);
    quill_release(&memory);
}

#endif
