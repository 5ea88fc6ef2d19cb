/* Both sides of cabinet.idl in C: what pointers share arrives once. Over sockets, `serve PATH`, `call PATH`, or neither, for the server
 * alone against damaged requests; over words, without a kernel between both sides, whose messages are then damaged. */

#define STUBS "cabinet.h"

#if defined ON_TERN || defined ON_DOOR
#include "on_tern.h"
static Cabinet_replies *replies;
static ROOM(Cabinet) *room;
#define SHORT(method, ...) Cabinet_##method(TO(Cabinet), __VA_ARGS__)
#define LONG(method, ...) Cabinet_##method(TO(Cabinet), replies, __VA_ARGS__)
#define CLIENT void
/* The most that a message can hold. */
#define MANY 64
#else
#include STUBS
#include "check.h"
#include "sockets.h"
#define SELF void *self, quill_memory *from
#define SHORT(method, ...) Cabinet_##method(client, __VA_ARGS__)
#define LONG SHORT
#define CLIENT quill_client *client
#define SERVES(interface, methods)
#define MANY 20000
#endif

/* --- the server --- */

static int served;

/* How many there are among some pointers, each counted once. */
static int32_t different(const void **all, int count)
{
    int32_t found = 0;

    for (int i = 0; i < count; i++) {
        bool is_first = all[i] != NULL;
        for (int j = 0; j < i; j++)
            is_first = is_first && all[j] != all[i];
        found += is_first;
    }
    return found;
}

static quill_status count_papers(SELF, paper *one, paper *two, int32_t *papers, int32_t *titles)
{
    const void *all[512], *texts[512];
    int count = 0;

    (void)self, (void)from;
    served++;
    for (int list = 0; list < 2; list++)
        for (paper *at = list == 0 ? one : two; at != NULL && count < 510; at = at->next) {
            all[count] = at;
            texts[count++] = at->title;
            if (at->same != NULL) {
                all[count] = at->same;
                texts[count++] = at->same->title;
            }
        }
    *papers = different(all, count);
    *titles = different(texts, count);
    return QUILL_OK;
}

static quill_status open_cabinet(SELF, paper *one, paper **all, paper **second)
{
    (void)self, (void)from;
    served++;
    *all = one;
    *second = one == NULL ? NULL : one->next;
    return QUILL_OK;
}

static quill_status sheets(SELF, int32_t n, const sequence_sheet *all, int32_t *more, int32_t *lists)
{
    static const void *found[MANY];

    (void)self, (void)from;
    served++;
    CHECK((int32_t)all->_length == n && n <= MANY);
    for (int32_t i = 0; i < n; i++) {
        found[i] = all->_buffer[i].values;
        CHECK(found[i] == NULL || (int32_t)all->_buffer[i].values->_length == all->_buffer[i].n);
    }
    /* Of many, only neighbours are compared. */
    *lists = more == NULL ? 0 : *more;
    if (n <= 600)
        *lists += different(found, n);
    else
        for (int32_t i = 0; i < n; i++)
            *lists += i == 0 || found[i] != found[i - 1];
    return QUILL_OK;
}

static const Cabinet_server methods = { .count = count_papers, .open = open_cabinet, .sheets = sheets };

SERVES(Cabinet, methods)

/* --- the client --- */

static void calls(CLIENT)
{
    char shared[] = "both", own[] = "both";
    paper last = { 3, shared, NULL, NULL }, middle = { 2, shared, &last, &last }, first = { 1, own, &middle, &middle };
    paper other = { 4, shared, &middle, NULL }, *all = NULL, *second = NULL;
    paper chain[66];
    int32_t papers = 0, titles = 0, lists = 0, more = 100, numbers[] = { 7, 8, 9 };
    sequence_int32_t values = { 3, numbers }, two = { 2, numbers };
    sheet some[] = { { 3, &values }, { 3, &values }, { 2, &two }, { 9, NULL }, { 3, &values } };
    sequence_sheet list = { 5, some };

    CHECK(SHORT(count, &first, &other, &papers, &titles) == QUILL_OK && papers == 4 && titles == 2);
    CHECK(SHORT(count, &first, &first, &papers, &titles) == QUILL_OK && papers == 3 && titles == 2);
    CHECK(SHORT(count, NULL, &last, &papers, &titles) == QUILL_OK && papers == 1 && titles == 1);
    CHECK(LONG(open, &first, &all, &second) == QUILL_OK);
    CHECK(all->number == 1 && all->next == second && all->same == second && second->number == 2);
    CHECK(second->next == second->same && second->next->title == second->title && second->title != all->title);
    CHECK(strcmp(all->title, "both") == 0 && strcmp(second->title, "both") == 0);
    CHECK(LONG(open, NULL, &all, &second) == QUILL_OK && all == NULL && second == NULL);
    CHECK(SHORT(sheets, 5, &list, &more, &lists) == QUILL_OK && lists == 102);
    CHECK(SHORT(sheets, 5, &list, NULL, &lists) == QUILL_OK && lists == 2);
    some[4].n = 2;
    CHECK(SHORT(sheets, 5, &list, NULL, &lists) == QUILL_TOO_LONG);
    /* A value that contains itself would have no end for whoever follows it. */
    last.next = &first;
    CHECK(SHORT(count, &first, NULL, &papers, &titles) == QUILL_TOO_LONG);
    last.next = NULL;
    last.same = &last;
    CHECK(SHORT(count, &first, NULL, &papers, &titles) == QUILL_TOO_LONG);
    last.same = NULL;
    /* A chain as deep as one may go, and one more; each is there in two ways. */
    for (int i = 0; i < 66; i++) {
        chain[i] = (paper){ i, NULL, NULL, NULL };
        if (i < 65)
            chain[i].next = chain[i].same = &chain[i + 1];
    }
    CHECK(SHORT(count, &chain[2], NULL, &papers, &titles) == QUILL_OK && papers == 64 && titles == 0);
    CHECK(SHORT(count, &chain[1], NULL, &papers, &titles) == QUILL_TOO_LONG);
}

/* A list that many have in common, and many lists. */
static void many(CLIENT)
{
    int32_t *numbers = calloc(2 * MANY, sizeof *numbers), lists = 0;
    sequence_int32_t *values = calloc(MANY + 1, sizeof *values);
    sheet *all = calloc(MANY + 1, sizeof *all);
    sequence_sheet list = { MANY, all };

    for (int i = 0; i < MANY + 1; i++) {
        values[i] = (sequence_int32_t){ 1, numbers + i };
        all[i] = (sheet){ 1, &values[0] };
    }
    CHECK(SHORT(sheets, MANY, &list, NULL, &lists) == QUILL_OK && lists == 1);
    for (int i = 0; i < MANY + 1; i++)
        all[i].values = &values[i];
    CHECK(SHORT(sheets, MANY, &list, NULL, &lists) == QUILL_OK && lists == MANY);
#if defined ON_TERN || defined ON_DOOR
    list._length = MANY + 1;
    CHECK(SHORT(sheets, MANY + 1, &list, NULL, &lists) == QUILL_TOO_LONG);
#else
    /* One that is long is looked at once for each sheet, which its server does not do without end. */
    values[0]._length = 2 * MANY;
    for (int i = 0; i < MANY; i++)
        all[i] = (sheet){ 2 * MANY, &values[0] };
    CHECK(SHORT(sheets, MANY, &list, NULL, &lists) == QUILL_MALFORMED);
    list._length = 100;
    CHECK(SHORT(sheets, 100, &list, NULL, &lists) == QUILL_OK && lists == 1);
#endif
    free(numbers);
    free(values);
    free(all);
}

#if defined ON_TERN || defined ON_DOOR

/* --- instead of a kernel --- */

static bool damaged;
static int refused, taken;

/* The part in memory arrives, of which a bit may be damaged on the way. */
static void arrive(uint64_t *words, uint64_t *to, uint64_t most)
{
    uint64_t length = words[0] & 0xfff;

    CHECK(length <= most && (words[0] >> 12 & 0xff) == 0);
    memcpy(to, (const void *)(uintptr_t)words[1], 8 * length);
    for (uint64_t times = damaged && length > 0 ? chance() % 3 : 0; times > 0; times--)
        to[chance() % length] ^= (chance() % 2 == 0 ? UINT64_C(3) : UINT64_C(1) << chance() % 8) << 8 * (chance() % 8);
    words[10] = 0;
}

uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    uint64_t kept[2048];
    tern_uid partner = 7;
    bool in_memory = false;
    int before = served;

    CHECK(server == 3 && there <= 10 && back <= QUILL_WORDS);
    arrive(words, room->words, sizeof room->words / 8 - 1);
    words[1] = (uintptr_t)room;
    memset(kept, 0x55, sizeof kept);
    label = ANSWER(Cabinet, &methods, NULL, &partner, label, words, room, kept, &in_memory);
    refused += label == QUILL_MALFORMED;
    taken += served > before;
    CHECK(label != QUILL_MALFORMED || served == before);
    if (!in_memory)
        return (uint64_t)label << 32 | TERN_KIND_REPLY;
    arrive(words, replies->words, sizeof replies->words / 8 - 1);
    words[1] = (uintptr_t)replies;
    return (uint64_t)label << 32 | QUILL_IPC_LONG_REPLY_WAIT;
}

int main(void)
{
    paper last = { 3, (char *)"last", NULL, NULL }, first = { 1, last.title, &last, &last }, *all, *second;

    room = calloc(1, sizeof *room);
    replies = calloc(1, sizeof *replies);
    CHECK(room != NULL && replies != NULL);
    calls();
    many();
    damaged = true;
    refused = taken = 0;
    for (int run = 0, good = 0; run < 100000; run++) {
        good += LONG(open, &first, &all, &second) == QUILL_OK;
        CHECK(run < 99999 || good > 5000);
    }
    printf("%d refused, %d taken\n", refused, taken);
    CHECK(refused > 10000 && taken > 10000);
    free(room);
    free(replies);
    return 0;
}

#else

static size_t pick(size_t n)
{
    return n == 0 ? 0 : chance() % n;
}

static void damage(void)
{
    int taken = 0, refused = 0;

    for (int run = 0; run < 300000; run++) {
        /* No byte more than it has, so that a sanitizer sees who reads beyond it. */
        size_t length = pick(121);
        uint8_t *body = malloc(length + (length == 0));
        quill_memory memory = { NULL };
        quill_in in = quill_begin_in(body, length, &memory);
        quill_out out = { 0 };
        bool silent = false;
        for (size_t i = 0; i < length; i++)
            body[i] = (uint8_t)(pick(30) == 0 ? pick(256) : pick(3) == 0 ? pick(3) : 0);
        uint32_t status = Cabinet_dispatch(&methods, NULL, (uint32_t)pick(3), &in, &out, &silent);
        refused += status >= QUILL_MALFORMED;
        taken += status == QUILL_OK;
        quill_discard(&out);
        quill_release(&memory);
        free(body);
    }
    printf("%d refused, %d taken, %d served\n", refused, taken, served);
    CHECK(refused > 10000 && taken > 100);
}

int main(int count, char **arguments)
{
    if (count != 3) {
        damage();
        return 0;
    }
    bool serves = strcmp(arguments[1], "serve") == 0;
    int end = connection(arguments[2], serves);
    if (serves) {
        CHECK(quill_serve(end, Cabinet_dispatch, &methods, NULL) == QUILL_OK);
    } else {
        quill_client client = { end, { NULL } };
        calls(&client);
        many(&client);
        quill_release(&client.memory);
    }
    return 0;
}

#endif
