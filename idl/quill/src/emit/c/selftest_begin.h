/* The self-test of an interface over L4's V4 API: client and server make the same random values from the number of the
 * call, so each knows what it must be given. What stands in front is the stubs, and a kernel. */

static bool selftest_sane = true;
static uint32_t selftest_call_number, selftest_calls, selftest_exceptions, selftest_damaged, selftest_refused, selftest_wrong;

/* What a server's method returns when a value is not the one that was sent. */
#define QUILL_TEST_WRONG 0x7001u

static char selftest_client_values[4 << 20] __attribute__((aligned(8)));
static char selftest_server_values[4 << 20] __attribute__((aligned(8)));

/* Random values, and memory for those that have no place of their own. */
struct selftest_random {
    uint64_t state;
    char *at, *end;
};

static uint64_t selftest_next(struct selftest_random *r)
{
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return r->state;
}

static struct selftest_random selftest_values_of(uint64_t call, char *values)
{
    struct selftest_random r = { (uint64_t)QUILL_SEED ^ (call * 0x9e3779b97f4a7c15u) ^ 0x123456789abcdef1u, values,
                              values + sizeof selftest_client_values };

    r.state |= 1;
    for (int i = 0; i < 4; i++)
        selftest_next(&r);
    return r;
}

static uint32_t selftest_below(struct selftest_random *r, uint32_t limit)
{
    return (uint32_t)(selftest_next(r) >> 33) % limit;
}

/* A number, often one at the edge of its range. */
static uint64_t selftest_number(struct selftest_random *r)
{
    uint64_t bits = selftest_next(r);

    switch (selftest_below(r, 8)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return UINT64_MAX;
    case 3: return (uint64_t)1 << bits % 64;
    case 4: return ((uint64_t)1 << bits % 64) - 1;
    default: return bits;
    }
}

/* A number that is so far from 0 at most. */
__attribute__((unused)) static int64_t selftest_within(struct selftest_random *r, int64_t most)
{
    int64_t value = (int64_t)selftest_number(r);

    if (selftest_below(r, 8) == 0)
        return value < 0 ? -most : most;
    while (value > most || value < -most)
        value /= 2;
    return value;
}

/* Finite numbers: others do not equal themselves. */
__attribute__((unused)) static float selftest_single(struct selftest_random *r)
{
    return (float)(int32_t)selftest_number(r) / 8;
}

__attribute__((unused)) static double selftest_real(struct selftest_random *r)
{
    return (double)(int64_t)selftest_number(r) / 16;
}

static const uint32_t selftest_letters[] = { 'a', 'Z', '7', ' ', '"', 0xe9, 0xdf, 0x20ac, 0xfffd, 0x1d11e, 0x10ffff };

static uint32_t selftest_letter(struct selftest_random *r)
{
    return selftest_letters[selftest_below(r, sizeof selftest_letters / sizeof *selftest_letters)];
}

/* The length of a list with a bound. */
static uint32_t selftest_length(struct selftest_random *r, uint64_t bound)
{
    switch (selftest_below(r, 4)) {
    case 0: return bound < 40 ? (uint32_t)bound : 40;
    case 1: return 0;
    default: return selftest_below(r, bound < 9 ? (uint32_t)bound + 1 : 10);
    }
}

static void *selftest_place(struct selftest_random *r, uint64_t bytes)
{
    char *place = r->at;

    CHECK(bytes <= (uint64_t)(r->end - place));
    r->at += (bytes + 7) / 8 * 8;
    return place;
}

/* Room for as many bytes as a text of so many characters can have, and the zero. */
__attribute__((unused)) static char *selftest_text_room(struct selftest_random *r, uint64_t bound)
{
    return selftest_place(r, 4 * bound + 1);
}

__attribute__((unused)) static char *selftest_some_text(struct selftest_random *r, uint64_t bound)
{
    char *text = selftest_text_room(r, bound < 1000 ? bound : 1000);
    uint32_t length = selftest_length(r, bound), at = 0;

    for (uint32_t i = 0; i < length; i++) {
        uint32_t letter = selftest_letter(r);
        if (letter < 0x80) {
            text[at++] = (char)letter;
            continue;
        }
        int more = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
        text[at++] = (char)((0xff00 >> (more + 1) & 0xff) | letter >> 6 * more);
        while (more-- > 0)
            text[at++] = (char)(0x80 | (letter >> 6 * more & 0x3f));
    }
    text[at] = 0;
    return text;
}

/* Room for as many elements as there may be, or as there are here if nobody says how many. */
static void *selftest_list_room(struct selftest_random *r, uint64_t bound, uint64_t size)
{
    return selftest_place(r, bound < 4096 ? bound * size : (bound * size < 1 << 20 ? bound * size : 4096 * size));
}

__attribute__((unused)) static uint32_t selftest_list_length(struct selftest_random *r, uint64_t bound, uint64_t size)
{
    return selftest_length(r, bound < 4000 / size ? bound : 4000 / size);
}

static bool selftest_same_text(const char *one, const char *other)
{
    while (*one != 0 && *one == *other)
        one++, other++;
    return *one == *other;
}

__attribute__((unused)) static bool selftest_same_counted(quill_text one, quill_text other)
{
    bool same = one._length == other._length;

    for (uint32_t i = 0; same && i < one._length; i++)
        same = one._buffer[i] == other._buffer[i];
    return same;
}

#ifdef QUILL_ANY_H

__attribute__((unused)) static quill_any selftest_some_any(struct selftest_random *r)
{
    switch (selftest_below(r, 10)) {
    case 0: return quill_any_null();
    case 1: return quill_any_boolean(selftest_below(r, 2) == 1);
    case 2: return quill_any_octet((uint8_t)selftest_number(r));
    case 3: return quill_any_short((int16_t)selftest_number(r));
    case 4: return quill_any_long((int32_t)selftest_number(r));
    case 5: return quill_any_ulonglong(selftest_number(r));
    case 6: return quill_any_double(selftest_real(r));
    case 7: return quill_any_wchar(selftest_letter(r));
    default: return quill_any_string(selftest_some_text(r, QUILL_ANY_CHARACTERS_MAX));
    }
}

__attribute__((unused)) static bool selftest_same_any(quill_any one, quill_any other)
{
    bool same = one.kind == other.kind && one.bits == other.bits && one.content._length == other.content._length;

    for (uint32_t i = 0; same && i < one.content._length; i++)
        same = one.content._buffer[i] == other.content._buffer[i];
    return same;
}

#endif

/* Requests, kept to be damaged later. */
static quill_word selftest_kept[64][64];
static uint32_t selftest_known;

__attribute__((unused)) static void selftest_keep_request(void)
{
    memcpy(selftest_kept[selftest_known++ % 64], request, sizeof request);
}

__attribute__((unused)) static void selftest_called(const char *method, bool same, bool exception)
{
    selftest_calls++;
    selftest_exceptions += exception;
    if (!same && selftest_wrong++ < 10)
        say("  "), say(method), say(": not what was sent\n");
}
