/* Objects behind doors as they are, with calls in the place of system calls: each call finds its method, each return has its
 * words, and no word shows anything else. */

#define STUBS "object.h"
#include "on_tern.h"

#include "strange.h"

#define ID_OF_I UINT64_C(0xaf64044c86023084) /* FNV-1a of "I" */

/* What a datum leads to. */
struct thing {
    const I_server *methods;
    int32_t own, hints, ends;
};

static struct room room;
static char own_name[] = "the server's own, and long enough to lie in memory";
static char seen[500];

static quill_status tiny(void *self, int32_t a, int32_t *result)
{
    *result = a + ((struct thing *)self)->own;
    return QUILL_OK;
}

static quill_status other_tiny(void *self, int32_t a, int32_t *result)
{
    *result = a * ((struct thing *)self)->own;
    return QUILL_OK;
}

static quill_status wide(void *self, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,
                         uint64_t a6, uint64_t a7, uint64_t a8, uint64_t a9, uint64_t a10, uint64_t *b0, uint64_t *b1,
                         uint64_t *b2, uint64_t *b3, uint64_t *b4, uint64_t *b5, uint64_t *b6, uint64_t *b7, uint64_t *b8,
                         uint64_t *b9, uint64_t *b10)
{
    (void)self;
    *b0 = a10 + 1, *b1 = a9 + 1, *b2 = a8 + 1, *b3 = a7 + 1, *b4 = a6 + 1, *b5 = a5 + 1;
    *b6 = a4 + 1, *b7 = a3 + 1, *b8 = a2 + 1, *b9 = a1 + 1, *b10 = a0 + 1;
    return QUILL_OK;
}

static quill_status fail(void *self, int32_t how, I_fail_raised *raised)
{
    (void)self;
    if (how == 1)
        raised->Bad.how = 7;
    return how == 2 ? QUILL_KERNEL + ERROR : (quill_status)how;
}

static quill_status hint(void *self, int32_t a)
{
    ((struct thing *)self)->hints += a;
    return QUILL_OK;
}

static quill_status text(void *self, const char *s, int32_t *bytes)
{
    (void)self;
    strcpy(seen, s);
    *bytes = (int32_t)strlen(s);
    return QUILL_OK;
}

static quill_status name(void *self, char **s)
{
    (void)self;
    *s = own_name;
    return QUILL_OK;
}

static void unreferenced(void *self)
{
    ((struct thing *)self)->ends++;
}

static const I_server methods = { tiny, wide, fail, hint, text, name };
static const I_server others = { other_tiny, wide, fail, hint, text, name };

/* Two entries for one implementation each; and one for whatever an object has. */
I_ENTRY(entry, methods, unreferenced)
I_ENTRY(other_entry, others, NULL)
I_ENTRY(any_entry, *((struct thing *)quill_self)->methods, NULL)

static struct thing thing = { &methods, 3, 0, 0 };

static uint64_t words[11];

/* Calls, with all words but the first ones known to be strange. */
static uint64_t ask(void (*where)(void), uint32_t label, uint32_t kind, const uint64_t *first, unsigned count)
{
    fill(words, first, count);
    return through_door(where, &thing, (uint64_t)label << 32 | kind, words);
}

static uint64_t failed(uint32_t label)
{
    return (uint64_t)label << 32 | TERN_DOOR_RETURN;
}

/* Sends a text as a client does. */
static uint64_t send_text(const char *letters, uint64_t bytes, uint64_t dope)
{
    uint64_t first[4];

    put_text(first, &room, room.words, sizeof room.words, letters, bytes, dope);
    return ask(entry, 0x20000000, QUILL_DOOR_LONG_CALL, first, 4);
}

static void check_text(const char *letters)
{
    uint64_t bytes = strlen(letters);

    CHECK(send_text(letters, bytes, bytes / 8) == QUILL_DOOR_DONE && strcmp(seen, letters) == 0);
    check_words(words, &bytes, 1);
}

static void check_refused(uint64_t rax, uint32_t label)
{
    CHECK(rax == failed(label));
    check_words(words, NULL, 0);
}

int main(void)
{
    uint64_t all[11] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, back[11] = { 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2 };
    uint64_t number = 5, word;

    for (int round = 0; round < 2; round++) {
        /* Two implementations; and one that is replaced. */
        CHECK(ask(entry, 0, TERN_DOOR_CALL, &number, 1) == QUILL_DOOR_DONE);
        check_words(words, (word = 8, &word), 1);
        CHECK(ask(other_entry, 0, TERN_DOOR_CALL, &number, 1) == QUILL_DOOR_DONE);
        check_words(words, (word = 15, &word), 1);
        CHECK(ask(any_entry, 0, TERN_DOOR_CALL, &number, 1) == QUILL_DOOR_DONE);
        check_words(words, (word = 8, &word), 1);
        thing.methods = &others;
        CHECK(ask(any_entry, 0, TERN_DOOR_CALL, &number, 1) == QUILL_DOOR_DONE);
        check_words(words, (word = 15, &word), 1);
        thing.methods = &methods;

        CHECK(ask(entry, 0x80000000, TERN_DOOR_CALL, all, 11) == QUILL_DOOR_DONE);
        check_words(words, back, 11);

        /* Success, an exception, an error. */
        CHECK(ask(entry, 0x40000000, TERN_DOOR_CALL, (word = 0, &word), 1) == QUILL_DOOR_DONE);
        check_words(words, NULL, 0);
        CHECK(ask(entry, 0x40000000, TERN_DOOR_CALL, (word = 1, &word), 1) == failed(1));
        check_words(words, (word = 7, &word), 1);
        check_refused(ask(entry, 0x40000000, TERN_DOOR_CALL, (word = 2, &word), 1), QUILL_KERNEL + ERROR);

        /* Oneway: whoever waits for its end hears nothing of it. */
        CHECK(ask(entry, 0xc0000000, TERN_DOOR_CALL, &number, 1) == QUILL_DOOR_DONE && thing.hints == 5 * (round + 1));
        check_words(words, NULL, 0);

        /* Texts: ASCII, short and long, and those for which there is a second look. */
        check_text("sixteen letters.");
        check_text("");
        check_text("short");
        check_text("a text that is longer, and has something left behind its words");
        check_text("n\u00e9e, and so on and so on");
        check_refused(send_text("sixteen\0letters.", 16, 2), QUILL_MALFORMED);
        check_refused(send_text("sixteen\xff letters", 16, 2), QUILL_MALFORMED);
        check_refused(send_text("sixteen\x80 letters", 16, 2), QUILL_MALFORMED);
        check_refused(send_text("sixteen letters.", 16, 3), QUILL_MALFORMED);
        check_refused(send_text("n\u00e9e, and so on", 16, 3), QUILL_MALFORMED);

        /* A reply with a part in memory; and one that nobody can take, after which there is another return, of nothing. */
        CHECK(ask(entry, 0xa0000000, TERN_DOOR_CALL, NULL, 0) == QUILL_DOOR_LONG_DONE);
        CHECK(words[0] == strlen(own_name) / 8 && words[1] == (uintptr_t)own_name && words[3] == strlen(own_name));
        CHECK(words[4] == 0);
        undelivered = 1;
        check_refused(ask(entry, 0xa0000000, TERN_DOOR_CALL, NULL, 0), 0);
        CHECK(undelivered == 0);

        /* No such method; one whose requests are of the other kind. */
        check_refused(ask(entry, 0x60000000, TERN_DOOR_CALL, NULL, 0), QUILL_NO_METHOD);
        check_refused(ask(entry, 0xe0000000, QUILL_DOOR_LONG_CALL, NULL, 0), QUILL_NO_METHOD);
        check_refused(ask(entry, 0x60000000, QUILL_DOOR_LONG_CALL, NULL, 0), QUILL_NO_METHOD);
        check_refused(ask(entry, 0, QUILL_DOOR_LONG_CALL, NULL, 0), QUILL_MALFORMED);
        check_refused(ask(entry, 0x20000000, TERN_DOOR_CALL, NULL, 0), QUILL_MALFORMED);

        /* Where the object has an interface: each has itself at the beginning. */
        CHECK(ask(entry, UINT32_MAX, TERN_DOOR_CALL, (word = ID_OF_I, &word), 1) == QUILL_DOOR_DONE);
        check_words(words, (word = 0, &word), 1);
        check_refused(ask(entry, UINT32_MAX, TERN_DOOR_CALL, (word = ID_OF_I + 1, &word), 1), QUILL_NO_METHOD);

        /* A call with a map item. */
        check_refused(ask(entry, 0, TERN_DOOR_CALL & ~TERN_NO_ITEM, NULL, 0), QUILL_MALFORMED);

        /* Nobody has an identifier any more: the object that wants to hear of it does. */
        check_refused(ask(entry, 0, TERN_KIND_UNREFERENCED, NULL, 0), 0);
        check_refused(ask(other_entry, 0, TERN_KIND_UNREFERENCED, NULL, 0), 0);
        CHECK(thing.ends == round + 1);
    }
    return 0;
}
