/* What is between the two sides; see sides_begin.h. First messages arrive as they are, then damaged, then as they are. */

#if defined(ON_TERN)

static void called(void)
{
}

/* The part in memory arrives. When messages are damaged, something of it changes on the way. */
static void arrive(uint64_t *words, uint64_t *to, uint64_t most, uint64_t *strings, char *buffer, const uint32_t *rooms, uint64_t count)
{
    uint64_t length = words[0] & 0xfff, parts = words[0] >> 12 & 0xff;
    const char *block = (const char *)(uintptr_t)words[1];

    CHECK(length <= most && parts <= count);
    if (length > 0)
        memcpy(to, block, 8 * length);
    for (uint64_t i = 0; i < parts; i++) {
        uint64_t lies[2];
        memcpy(lies, block + 8 * length + 16 * i, 16);
        CHECK(lies[1] <= rooms[i]);
        if (lies[1] > 0)
            memcpy(buffer, (const void *)(uintptr_t)lies[0], lies[1]);
        if (!sane && pick() % 4 == 0)
            lies[1] = pick() % (rooms[i] + 1);
        if (!sane && pick() % 4 == 0)
            buffer[pick() % 8] = (char)pick();
        strings[2 * i] = (uintptr_t)buffer;
        strings[2 * i + 1] = (uint64_t)rooms[i] << 32 | lies[1];
        buffer += (rooms[i] + 7) / 8 * 8 + 8;
    }
    if (!sane && length > 0)
        switch (pick() % 6) {
        case 0: to[pick() % length] = pick(); break;
        case 1: to[pick() % length] ^= (uint64_t)1 << pick() % 64; break;
        case 2: words[0] -= 1 + pick() % length; break;
        case 3: words[0] += length < most; break;
        }
    if (!sane && pick() % 8 == 0)
        words[0] ^= (uint64_t)1 << 12;
    words[0] |= (most | count << 12) << 32;
    words[1] = (uintptr_t)to;
    words[10] = 0;
}

/* Words that carry values, from the first one on that does not say where memory is. */
static void damage_words(uint64_t *words, int first)
{
    if (sane)
        return;
    for (uint32_t changes = pick() % 3; changes > 0; changes--) {
        uint64_t *word = words + first + pick() % (uint32_t)(10 - first);
        *word = pick() % 3 == 0 ? pick() % 40 : pick() % 2 == 0 ? *word ^ (uint64_t)1 << pick() % 64 : pick();
    }
}

#define SERVES_OF(interface, methods) SERVES(interface, methods)
#define ANSWER_OF(interface, ...) ANSWER(interface, __VA_ARGS__)

SERVES_OF(INTERFACE, methods)

static uint64_t answered(uint32_t label, uint64_t *words, void *where)
{
    static const uint32_t rooms[] = REPLY_STRINGS;
    static uint64_t kept[4096];
    bool in_memory = false;
    tern_uid partner = 7;

    if (!sane && pick() % 16 == 0)
        label ^= 1u << pick() % 32;
    label = ANSWER_OF(INTERFACE, &methods, NULL, &partner, label, words, where, kept, &in_memory);
    damage_words(words, in_memory ? 2 : 0);
    if (!in_memory)
        return (uint64_t)label << 32 | TERN_KIND_REPLY;
    arrive(words, replies->words, sizeof replies->words / 8 - 1, replies->strings, replies->buffers, rooms,
           sizeof rooms / sizeof *rooms - 1);
    return (uint64_t)label << 32 | (TERN_KIND_REPLY & ~(uint64_t)QUILL_NO_BLOCK);
}

uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    CHECK(server == PEER_NUMBER && there <= QUILL_WORDS && back <= QUILL_WORDS);
    damage_words(words, 0);
    return answered(label, words, NULL);
}

uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    static const uint32_t rooms[] = REQUEST_STRINGS;

    CHECK(server == PEER_NUMBER && there <= QUILL_WORDS && back <= QUILL_WORDS);
    damage_words(words, 2);
    arrive(words, room->words, sizeof room->words / 8 - 1, room->strings, room->buffers, rooms,
           sizeof rooms / sizeof *rooms - 1);
    return answered(label, words, room);
}

uint32_t quill_ipc_send(tern_uid server, uint32_t label, const uint64_t *words)
{
    uint64_t copy[QUILL_WORDS];

    memcpy(copy, words, sizeof copy);
    quill_ipc_call(server, label, copy, 0, 0);
    return QUILL_OK;
}

uint32_t quill_ipc_send_long(tern_uid server, uint32_t label, const uint64_t *words)
{
    uint64_t copy[QUILL_WORDS];

    memcpy(copy, words, sizeof copy);
    quill_ipc_call_long(server, label, copy, 0, 0);
    return QUILL_OK;
}

int main(void)
{
    room = calloc(1, sizeof *room);
    replies = calloc(1, sizeof *replies);
    calls();
    sane = false;
    for (int round = 0; round < 300; round++)
        calls();
    sane = true;
    calls();
    free(room);
    free(replies);
    return 0;
}

#elif defined(ON_L4)

static quill_word good[64][64];
static uint32_t known;

/* Keeps requests, to be damaged later. */
static void called(void)
{
    if (!IS_ONEWAY(request[0] >> 16))
        memcpy(good[known++ % 64], request, sizeof request);
}

static void server(void)
{
    static OF(buffers) buffers;

    OF(serve)(&methods, NULL, &buffers);
}

/* Requests as somebody else might send them: each gets an answer. The kernel's own labels and those of oneway methods get
 * none, which is not what is tried here. */
static void damage(void)
{
    char *mine = quill_utcb();
    uint32_t w0, w1, refused = 0;

    for (uint32_t round = 0; round < 40000; round++) {
        quill_word words[64];
        memcpy(words, good[pick() % (known < 64 ? known : 64)], sizeof words);
        for (uint32_t changes = 1 + pick() % 3; changes > 0; changes--) {
            switch (pick() % 6) {
            case 0: words[0] ^= (quill_word)1 << pick() % 12; break;
            case 1: words[0] ^= (quill_word)1 << (16 + pick() % 16); break;
            case 2: words[1 + pick() % 12] ^= (quill_word)1 << pick() % (8 * sizeof(quill_word)); break;
            case 3: words[1 + pick() % 20] = pick(); break;
            case 4: words[1 + pick() % 20] = pick() % 64; break;
            case 5: words[1 + pick() % 20] = 0; break;
            }
        }
        if ((uint16_t)(words[0] >> 16) >= 0xff80 || IS_ONEWAY((uint16_t)(words[0] >> 16)))
            continue;
        for (int i = 1; i < 64; i++)
            *quill_register(mine, i) = words[i];
        quill_word tag = quill_call(mine, SERVER, words[0], 252, 252, &w0, &w1);
        refused += (tag & QUILL_TAG_ERROR) || tag >> 16 == QUILL_MALFORMED || tag >> 16 == QUILL_NO_METHOD;
    }
    CHECK(refused > 5000);
}

static __attribute__((noinline)) void client(void)
{
    calls();
    sane = false;
    damage();
    sane = true;
    calls();
}

#else

static void called(void)
{
}

/* Answers a request into nothing. Its bytes end where an allocation ends, so that a sanitizer sees what goes beyond. */
static void answer_copy(uint32_t label, const uint8_t *bytes, size_t length)
{
    quill_memory memory = { NULL };
    quill_out out = { 0 };
    uint8_t *copy = malloc(length + 1);
    quill_in in;
    bool silent = false;

    memcpy(copy, bytes, length);
    in = quill_begin_in(copy, length, &memory);
    OF(dispatch)(&methods, NULL, label, &in, &out, &silent);
    quill_discard(&out);
    free(copy);
    quill_release(&memory);
}

/* Serves; but before it answers a request, it has answered it cut and damaged. */
static int serve(int socket)
{
    for (;;) {
        quill_memory memory = { NULL };
        quill_out out = { 0 };
        quill_in in;
        uint32_t label;
        bool silent = false;
        quill_status status = quill_receive(socket, &memory, &label, &in);

        if (status != QUILL_OK)
            return status == 1 ? 0 : 1;
        sane = false;
        for (size_t cut = 0; cut < in.length && cut < 60; cut++)
            answer_copy(label, in.bytes, cut);
        for (int round = 0; round < 40; round++) {
            uint8_t *copy = malloc(in.length + 8);
            size_t length = in.length + (pick() % 8 == 0 ? pick() % 8 : 0);

            memset(copy, 0, in.length + 8);
            memcpy(copy, in.bytes, in.length);
            for (uint32_t changes = 1 + pick() % 3; changes > 0 && length > 0; changes--)
                copy[pick() % (pick() % 2 == 0 && length > 40 ? 40 : length)] = (uint8_t)(pick() % 3 == 0 ? pick() : pick() % 16);
            answer_copy(label, copy, length);
            free(copy);
        }
        sane = true;
        label = OF(dispatch)(&methods, NULL, label, &in, &out, &silent);
        status = QUILL_OK;
        if (silent)
            quill_discard(&out);
        else
            status = quill_send(socket, label, &out);
        quill_release(&memory);
        if (status != QUILL_OK)
            return 1;
    }
}

int main(void)
{
    int pair[2], how = 0;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(pair[1]);
        return serve(pair[0]);
    }
    close(pair[0]);
    way.socket = pair[1];
    calls();
    close(pair[1]);
    quill_release(&way.memory);
    CHECK(waitpid(child, &how, 0) == child && how == 0);
    return 0;
}

#endif
