/* Several references that are parameters, arrays of them, and what may be absent; and one beside what is in memory, in a program whose servers have windows for
 * more. */

#define STUBS "several.h"
#define REPLIES W_replies
#define REPLY_STRINGS 1
#define WINDOWS W_WINDOWS
#include "identifiers.h"

static R reference(uint32_t object)
{
    R it = { tern_number_take(&tern_arrivals), 0 };

    CHECK(it.number != 0);
    holds[it.number] = object;
    return it;
}

static bool leads_to(R it, uint32_t object)
{
    return tern_number_is_in(&tern_arrivals, it.number) && holds[it.number] == object;
}

/* --- the object: it keeps what `two` is given away, and what is bound --- */

static R kept, bound;
static quill_status outcome;

static quill_status two(void *self, R a, R b, int32_t x, int32_t *result)
{
    (void)self;
    *result = x + (int32_t)(holds[a.number] * 100 + holds[b.number]);
    tern_release(a.number);
    tern_release(kept.number);
    kept = b;
    return outcome;
}

static quill_status pick(void *self, const L *all, uint32_t which, R *result)
{
    quill_status status = which < all->_length ? QUILL_OK : 3;

    (void)self;
    for (uint32_t i = 0; i < all->_length; i++)
        if (i == which)
            *result = all->_buffer[i];
        else
            tern_release(all->_buffer[i].number);
    return status;
}

static quill_status mix(void *self, const Pair *p, Square f, Pair *result)
{
    static R more;

    (void)self;
    *result = *p;
    more = f[0][0];
    /* Something absent is there, and the other way round. */
    result->other = p->other == NULL ? &more : NULL;
    f[0][0] = p->other == NULL ? (R){ 0, 0 } : *p->other;
    if (p->other != NULL)
        tern_release(more.number);
    return outcome;
}

static quill_status bind(void *self, const char *who, R it)
{
    (void)self;
    tern_release(bound.number);
    bound = it;
    return strlen(who) > 3 ? QUILL_OK : QUILL_KERNEL + TERN_LIMIT;
}

static quill_status turn(void *self, R *a, R *b, char was[161])
{
    (void)self;
    strcpy(was, "turned");
    *b = *a;
    *a = outcome == QUILL_OK ? reference(55) : (R){ 0, 0 };
    if (outcome == 97)
        tern_release(b->number);
    return outcome == 97 ? outcome : QUILL_OK;
}

static const W_server methods = { two, pick, mix, bind, turn };
W_ENTRY(entry, methods, NULL)

/* --- the client --- */

static const W w = { PEER_NUMBER, 0 }, nowhere = { 77, 0 };

#define OWNED(clients) check_owners((clients) + (kept.number != 0) + (bound.number != 0), __LINE__)

static void check_parameters(void)
{
    R one = reference(3);
    int32_t sum = 0;

    CHECK(W_two(w, one, reference(4), 1000, &sum) == QUILL_OK && sum == 1304 && leads_to(kept, 4));
    OWNED(1);
    CHECK(W_two(nowhere, one, reference(5), 0, &sum) == QUILL_KERNEL + TERN_NO_SUCH && leads_to(kept, 4));
    OWNED(1);
    outcome = 98;
    CHECK(W_two(w, one, reference(5), 0, &sum) == 98 && leads_to(kept, 5));
    outcome = QUILL_OK;
    for (that_lead_nowhere = 1; that_lead_nowhere <= 2; that_lead_nowhere++)
        CHECK(W_two(w, one, reference(6), 0, &sum) == QUILL_MALFORMED && leads_to(kept, 5));
    that_lead_nowhere = 0;
    /* None at all is none that arrives. */
    CHECK(W_two(w, (R){ 0, 0 }, reference(6), 0, &sum) == QUILL_MALFORMED);
    OWNED(1);
    tern_release(one.number);
}

static void check_lists(void)
{
    L all = { 3, { reference(1), { 0, 0 }, reference(2) } };
    R got;

    CHECK(W_pick(w, &all, 2, &got) == QUILL_OK && leads_to(got, 2));
    OWNED(3);
    tern_release(got.number);
    CHECK(W_pick(w, &all, 3, &got) == 3 && got.number == 0);
    CHECK(W_pick(w, &all, 1, &got) == QUILL_MALFORMED && got.number == 0);
    all._length = 6;
    CHECK(W_pick(w, &all, 0, &got) == QUILL_TOO_LONG && got.number == 0);
    undelivered = 1;
    all._length = 3;
    CHECK(W_pick(w, &all, 0, &got) != QUILL_OK && got.number == 0);
    OWNED(2);
    quill_release_L(&all);
    OWNED(0);
}

static void check_mixed(void)
{
    Pair p = { { reference(1), reference(2) }, NULL }, back;
    Square f = { { reference(11), { 0, 0 } }, { reference(13), reference(14) } };
    R other = reference(3), same[4];

    CHECK(W_mix(w, &replies, &p, f, &back) == QUILL_OK && leads_to(back.both[0], 1) && leads_to(back.both[1], 2));
    CHECK(back.other != NULL && leads_to(*back.other, 11) && f[0][0].number == 0 && leads_to(f[1][1], 14));
    OWNED(8);
    quill_release_Pair(&back);
    p.other = &other;
    CHECK(W_mix(w, &replies, &p, f, &back) == QUILL_OK && back.other == NULL && leads_to(f[0][0], 3));
    OWNED(8);
    quill_release_Pair(&back);
    memcpy(same, f, sizeof same);
    CHECK(W_mix(nowhere, &replies, &p, f, &back) == QUILL_KERNEL + TERN_NO_SUCH && memcmp(same, f, sizeof same) == 0);
    CHECK(back.both[1].number == 0 && back.other == NULL);
    undelivered = 1;
    CHECK(W_mix(w, &replies, &p, f, &back) != QUILL_OK && memcmp(same, f, sizeof same) == 0);
    OWNED(6);
    quill_release_Pair(&p);
    for (int i = 0; i < 4; i++)
        tern_release(f[i / 2][i % 2].number);
    OWNED(0);
}

/* One that goes both ways, beside one that comes back and a text. */
static void check_turned(void)
{
    R a = reference(31), b, before = a;
    char was[161];

    CHECK(W_turn(w, &replies, &a, &b, was) == QUILL_OK && strcmp(was, "turned") == 0);
    CHECK(leads_to(a, 55) && leads_to(b, 31));
    OWNED(2);
    tern_release(b.number);
    before = a;
    for (outcome = 97; outcome < 99; outcome++) {
        CHECK(W_turn(w, &replies, &a, &b, was) == (outcome == 97 ? 97 : QUILL_MALFORMED));
        CHECK(a.number == before.number && leads_to(a, 55) && b.number == 0);
        OWNED(1);
    }
    outcome = QUILL_OK;
    CHECK(W_turn(nowhere, &replies, &a, &b, was) == QUILL_KERNEL + TERN_NO_SUCH && leads_to(a, 55));
    undelivered = 1;
    CHECK(W_turn(w, &replies, &a, &b, was) != QUILL_OK && leads_to(a, 55) && b.number == 0);
    OWNED(1);
    tern_release(a.number);
}

/* One beside a text; and requests with more of them, for this method and for each other. */
static void check_bound(void)
{
    R it = reference(21);
    char text[] = "many";

    CHECK(W_bind(w, text, it) == QUILL_OK && leads_to(bound, 21));
    CHECK(W_bind(w, "few", it) == QUILL_KERNEL + TERN_LIMIT && leads_to(bound, 21));
    CHECK(W_bind(w, "caf\351", it) == QUILL_MALFORMED);
    OWNED(1);
    tern_release(it.number);
    for (uint64_t label = 0; label < 8; label++)
        for (uint64_t items = 0; items <= WINDOWS; items++)
            for (uint64_t texts = 0; texts < 2; texts++) {
                uint64_t block[4 + 2 * WINDOWS] = { 0 }, dope = 2 - 2 * texts + (texts << 12) + (items << 20);
                uint64_t words[QUILL_WORDS] = { dope, (uintptr_t)block }, rax;
                if (texts != 0)
                    block[0] = (uintptr_t)text, block[1] = 4;
                for (uint64_t i = 0; i < items; i++)
                    block[2 + 2 * i] = quill_handed_over(OWN, false);
                rax = deliver(label << 61 | QUILL_DOOR_LONG_CALL, words);
                CHECK((uint32_t)(rax | QUILL_NO_BLOCK | TERN_NO_ITEM) == TERN_DOOR_RETURN || rax == TERN_NO_ACCESS);
                OWNED(0);
            }
}

int main(void)
{
    begin_identifiers(200, 160);
    for (int round = 0; round < 3; round++) {
        check_parameters();
        check_lists();
        check_mixed();
        check_turned();
        check_bound();
    }
    return 0;
}
