/* Both sides of parcel.idl over words, without a kernel between them: a call ends in the dispatcher. */

#define STUBS "parcel.h"
#include "on_tern.h"

struct desk {
    int64_t tariff;
    int shouts, calls;
};

/* --- the server --- */

static quill_status knock(SELF)
{
    ((struct desk *)self)->calls++;
    return from == 7 ? QUILL_OK : 78;
}

static quill_status shout(SELF, int32_t code, Post_Flags how)
{
    (void)from;
    ((struct desk *)self)->shouts += code == -1 && how == Post_urgent;
    return QUILL_OK;
}

static quill_status get_tariff(SELF, int64_t *result)
{
    (void)from;
    *result = ((struct desk *)self)->tariff;
    return QUILL_OK;
}

static quill_status set_tariff(SELF, int64_t value)
{
    (void)from;
    if (value < 0)
        return 77;
    ((struct desk *)self)->tariff = value;
    return QUILL_OK;
}

static quill_status weigh(SELF, const Post_Weight *w, Post_Label *l, bool gently,
                          Post_Weight *result, Post_Office_weigh_raised *raised)
{
    (void)self, (void)from;
    if (w->grams == 0)
        return 2;
    if (w->grams < 0) {
        raised->Lost.where = *l;
        raised->Lost.since = 9;
        return 1;
    }
    *result = *w;
    l->checked = gently;
    return QUILL_OK;
}

static quill_status wrap(SELF, const Post_Bytes *content, uint8_t fill, Post_Bytes *result)
{
    (void)self, (void)from;
    *result = *content;
    if (content->_length < 40)
        result->_buffer[content->_length] = fill;
    result->_length++;
    return QUILL_OK;
}

static quill_status give_name(SELF, const char *given, uint32_t initial, char *result)
{
    (void)self, (void)from;
    if (initial == 0xdf) {
        strcpy(result, "\303\237");
        strcat(result, given);
    } else {
        result[0] = (char)initial;
        strcpy(result + 1, given);
    }
    return QUILL_OK;
}

static quill_status codes(SELF, const uint16_t *c, Post_Service *s, Post_Flags *f,
                          uint16_t *result)
{
    (void)self, (void)from, (void)s;
    for (int i = 0; i < 6; i++)
        result[i] = c[5 - i];
    *f = Post_insured;
    return QUILL_OK;
}

static quill_status keep(SELF, const Post_Note *n, Post_Note *result)
{
    (void)self, (void)from;
    *result = *n;
    return QUILL_OK;
}

static quill_status add(SELF, float a, double b, uint64_t c, char d, uint16_t e, int32_t f,
                        int32_t g, int32_t h, int32_t i, int32_t j, int16_t match, bool type, double *result)
{
    (void)self, (void)from;
    *result = (double)a + b + (double)c + d + e + (double)f + g + h + i + j + match + type;
    return QUILL_OK;
}

static const Post_Office_server methods = {
    knock, shout, get_tariff, set_tariff, weigh, wrap, give_name, codes, keep, add,
};

SERVES(Post_Office, methods)

/* --- instead of a kernel --- */

static struct desk desk;
static uint64_t noise;

uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there,
                               unsigned back)
{
    tern_uid partner = 7;

    CHECK(server == 3 && back <= QUILL_WORDS);
    for (unsigned i = there; i < QUILL_WORDS; i++)
        CHECK(words[i] == 0);
    if (noise) {
        for (int i = 0; i < QUILL_WORDS; i++)
            words[i] = chance();
        return QUILL_DONE;
    }
    label = ANSWER(Post_Office, &methods, &desk, &partner, label, words, NULL, NULL, NULL);
    CHECK(partner == 7);
    return (uint64_t)label << 32 | TERN_KIND_REPLY;
}

uint32_t quill_ipc_send(tern_uid server, uint32_t label, const uint64_t *words)
{
    tern_uid partner = 7;
    uint64_t copy[QUILL_WORDS];

    CHECK(server == 3);
    memcpy(copy, words, sizeof copy);
    ANSWER(Post_Office, &methods, &desk, &partner, label, copy, NULL, NULL, NULL);
    CHECK(partner == TERN_NIL);
    return QUILL_OK;
}

/* --- the client --- */

static void calls(void)
{
    int64_t tariff = 0;
    Post_Label label = { 3, -4, false };
    Post_Weight weight = { 8, -2, 5 }, back;
    Post_Office_weigh_raised raised;
    Post_Bytes bytes = { 3, "abc" }, wrapped;
    Post_Note note = { Post_Parcel, { 2, { 9, 8 } } }, kept;
    Post_Service service = Post_Registered;
    Post_Flags flags;
    char text[37];
    uint16_t code[6] = { 1, 2, 3, 4, 5, 6 }, turned[6];
    double sum = 0;

    CHECK(Post_Office_knock(TO(Post_Office)) == QUILL_OK && Post_Base_knock(TO(Post_Base)) == QUILL_OK && desk.calls == 2);
    CHECK(Post_Office_shout(TO(Post_Office), -1, Post_urgent) == QUILL_OK && desk.shouts == 1);
    CHECK(Post_Office_shout(TO(Post_Office), -1, 4) == QUILL_MALFORMED);
    CHECK(Post_Office_set_tariff(TO(Post_Office), (int64_t)1 << 40) == QUILL_OK);
    CHECK(Post_Office_get_tariff(TO(Post_Office), &tariff) == QUILL_OK && tariff == (int64_t)1 << 40);
    CHECK(Post_Office_set_tariff(TO(Post_Office), -1) == 77);
    CHECK(Post_Office_weigh(TO(Post_Office), &weight, &label, true, &back, &raised) == QUILL_OK);
    CHECK(memcmp(&back, &weight, sizeof back) == 0 && label.zone == 3 && label.code == -4 && label.checked);
    weight.grams = 0;
    CHECK(Post_Office_weigh(TO(Post_Office), &weight, &label, true, &back, &raised) == 2);
    weight.grams = -1;
    CHECK(Post_Office_weigh(TO(Post_Office), &weight, &label, true, &back, &raised) == 1);
    CHECK(raised.Lost.where.code == -4 && raised.Lost.where.checked && raised.Lost.since == 9);
    CHECK(Post_Office_wrap(TO(Post_Office), &bytes, '!', &wrapped) == QUILL_OK);
    CHECK(wrapped._length == 4 && memcmp(wrapped._buffer, "abc!", 4) == 0);
    bytes._length = 41;
    CHECK(Post_Office_wrap(TO(Post_Office), &bytes, 0, &wrapped) == QUILL_TOO_LONG);
    bytes._length = 40;
    CHECK(Post_Office_wrap(TO(Post_Office), &bytes, 0, &wrapped) == QUILL_TOO_LONG);
    CHECK(Post_Office_name(TO(Post_Office), "n\303\251e Byrn", 0xdf, text) == QUILL_OK);
    CHECK(strcmp(text, "\303\237n\303\251e Byrn") == 0);
    CHECK(Post_Office_name(TO(Post_Office), "ten letter", 'x', text) == QUILL_TOO_LONG);
    CHECK(Post_Office_name(TO(Post_Office), "x", 0xd800, text) == QUILL_MALFORMED);
    CHECK(Post_Office_codes(TO(Post_Office), code, &service, &flags, turned) == QUILL_OK);
    CHECK(turned[0] == 6 && turned[5] == 1 && service == Post_Registered && flags == Post_insured);
    CHECK(Post_Office_keep(TO(Post_Office), &note, &kept) == QUILL_OK);
    CHECK(kept.service == Post_Parcel && kept.mark._length == 2 && kept.mark._buffer[1] == 8);
    CHECK(Post_Office_sum(TO(Post_Office), 0.5f, 1.5, 10, 1, 2, -3, 4, -5, 6, -7, 8, true, &sum) == QUILL_OK && sum == 19);
}

static void damage(void)
{
    int refused = 0, taken = 0, unknown = 0, bad = 0;

    for (int run = 0; run < 300000; run++) {
        uint64_t words[QUILL_WORDS];
        tern_uid partner = 7;
        uint32_t label;
        for (int i = 0; i < QUILL_WORDS; i++)
            words[i] = chance() % 4 == 0 ? chance() : chance() % 2 == 0 ? chance() % 48 : 0;
        label = ANSWER(Post_Office, &methods, &desk, &partner, (uint32_t)chance() & 0xf0000000u, words,
                             NULL, NULL, NULL);
        refused += label == QUILL_MALFORMED || label == QUILL_TOO_LONG;
        unknown += label == QUILL_NO_METHOD;
        taken += label == UINT32_MAX;
        for (int i = 0; label == QUILL_NO_METHOD && i < QUILL_WORDS; i++)
            CHECK(words[i] == 0);
    }
    printf("%d refused, %d taken, %d of no method\n", refused, taken, unknown);
    CHECK(refused > 10000 && taken > 10000 && unknown > 10000);
    /* The client checks as well. */
    noise = 1;
    for (int run = 0; run < 1000; run++) {
        uint16_t code[6] = { 0 }, turned[6];
        Post_Service service = Post_Letter;
        Post_Flags flags;
        bad += Post_Office_codes(TO(Post_Office), code, &service, &flags, turned) == QUILL_MALFORMED;
    }
    CHECK(bad > 900);
}

int main(void)
{
    calls();
    damage();
    return 0;
}
