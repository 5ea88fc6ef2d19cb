/* Feeds clients and servers in C messages that are nearly right. What is compiled here is a program that stands between a client and a server of each
 * interface (`relay.c`), so a request is read by a server and its reply by a client.
 *
 * With RECORD it is that program, and notes what comes by, in the file RECORD and the interface's name. Without, it takes what was noted, changes it, and
 * feeds it: `fuzz_decoders INTERFACE FILE RUNS SEED`. What comes to places in the code where nobody was before is changed further. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static ssize_t fed_send(int end, const void *bytes, size_t count, int flags);
static ssize_t fed_recv(int end, void *bytes, size_t count, int flags);

#define send fed_send
#define recv fed_recv
#define main relay
#include "relay.c"
#undef send
#undef recv
#undef main

#ifdef RECORD

static FILE *notes;

static ssize_t fed_send(int end, const void *bytes, size_t count, int flags)
{
    return send(end, bytes, count, flags);
}

/* Notes are the end, the number of bytes, and the bytes. */
static ssize_t fed_recv(int end, void *bytes, size_t count, int flags)
{
    ssize_t done = recv(end, bytes, count, flags);
    uint32_t head[2] = { (uint32_t)end, (uint32_t)done };

    if (done > 0 && (fwrite(head, sizeof head, 1, notes) != 1 || fwrite(bytes, (size_t)done, 1, notes) != 1))
        abort();
    return done;
}

int main(int count, char **words)
{
    char path[4096];
    int code;

    snprintf(path, sizeof path, "%s%s", RECORD, count > 1 ? words[1] : "");
    notes = fopen(path, "ab");
    if (notes == NULL)
        return 3;
    code = relay(count, words);
    return fclose(notes) == 0 ? code : 3;
}

#else

#define MESSAGE_BYTES_MAX 8192
#define SEEDS_MAX 20000

struct message {
    uint32_t length;
    uint8_t bytes[];
};

/* A request, and the reply to it, if there was one. */
struct seed {
    struct message *sides[2];
};

static struct seed seeds[SEEDS_MAX];
static uint32_t seeds_count;

/* Messages that are fed: a request at 0, a reply at 1. */
static struct {
    uint32_t length, at;
    uint8_t bytes[MESSAGE_BYTES_MAX];
} fed[2];

static uint64_t state;
static uint32_t touched;

static uint32_t below(uint32_t bound)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return bound == 0 ? 0 : (uint32_t)(state >> 32) % bound;
}

/* Places of the code where somebody has been. */
static uint8_t been[1 << 16];
static bool is_new;

void __sanitizer_cov_trace_pc(void);

__attribute__((no_sanitize_coverage, no_sanitize("address", "undefined"))) void __sanitizer_cov_trace_pc(void)
{
    static uintptr_t before;
    uintptr_t here = (uintptr_t)__builtin_return_address(0);
    uint32_t place = (uint32_t)((here ^ (before >> 1)) * 0x9e3779b1u) >> 16;

    before = here;
    if (been[place] == 0) {
        been[place] = 1;
        is_new = true;
    }
}

static ssize_t fed_send(int end, const void *bytes, size_t count, int flags)
{
    size_t done = below(16) == 0 ? (count + 1) / 2 : count;

    (void)flags;
    for (size_t i = 0; i < done; i++)
        touched += ((const uint8_t *)bytes)[i];
    /* A reply comes anew for each request. */
    if (end == 1)
        fed[1].at = 0;
    return (ssize_t)done;
}

static ssize_t fed_recv(int end, void *bytes, size_t count, int flags)
{
    size_t left = fed[end].length - fed[end].at, done = count < left ? count : left;

    (void)flags;
    if (done > 1 && below(8) == 0)
        done = 1 + below((uint32_t)done);
    memcpy(bytes, fed[end].bytes + fed[end].at, done);
    fed[end].at += (uint32_t)done;
    return (ssize_t)done;
}

static struct message *kept(const uint8_t *bytes, uint32_t length)
{
    struct message *message = malloc(sizeof *message + length);

    if (message == NULL)
        abort();
    message->length = length;
    memcpy(message->bytes, bytes, length);
    return message;
}

/* Takes notes apart into requests and what came back for each. */
static void take(const char *path)
{
    static uint8_t request[MESSAGE_BYTES_MAX], reply[MESSAGE_BYTES_MAX];
    uint32_t have = 0, answered = 0, head[2];
    FILE *notes = fopen(path, "rb");

    if (notes == NULL)
        exit(3);
    while (fread(head, sizeof head, 1, notes) == 1) {
        uint8_t *to = head[0] == 0 ? request : reply;
        uint32_t *length = head[0] == 0 ? &have : &answered, whole = 0;

        /* A request that begins ends the one before. */
        if (head[0] == 0 && have >= 8)
            memcpy(&whole, request + 4, 4);
        if (head[0] == 0 && have >= 8 && have == whole + 8) {
            if (seeds_count < SEEDS_MAX / 2)
                seeds[seeds_count++] = (struct seed){ { kept(request, have), kept(reply, answered) } };
            have = answered = 0;
        }
        if (head[1] > MESSAGE_BYTES_MAX - *length) {
            /* Longer ones are left out. */
            have = answered = 0;
            fseek(notes, head[1], SEEK_CUR);
            continue;
        }
        if (fread(to + *length, 1, head[1], notes) != head[1])
            break;
        *length += head[1];
    }
    fclose(notes);
}

/* Changes a message at one place. */
static void change(int side)
{
    static const uint32_t odd[] = { 0, 1, 2, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0xffff, 0x7fffffff, 0x80000000u, 0xffffffffu, 16u << 20 };
    uint32_t length = fed[side].length, at = length > 8 ? 8 + below(length - 8) : 8, value;
    const struct message *other;

    switch (below(8)) {
    case 0: /* cut or made longer */
        fed[side].length = 8 + below(length + 16);
        if (fed[side].length > MESSAGE_BYTES_MAX)
            fed[side].length = MESSAGE_BYTES_MAX;
        break;
    case 1: /* a part of another one */
        other = seeds[below(seeds_count)].sides[side];
        if (other->length > 8) {
            uint32_t from = 8 + below(other->length - 8), bytes = 1 + below(other->length - from);
            if (bytes <= MESSAGE_BYTES_MAX - at) {
                memcpy(fed[side].bytes + at, other->bytes + from, bytes);
                if (at + bytes > length)
                    fed[side].length = at + bytes;
            }
        }
        break;
    case 2: /* a part twice */
        if (length > 8 && length <= MESSAGE_BYTES_MAX / 2) {
            uint32_t bytes = (1 + below(length - at)) & ~7u;
            memmove(fed[side].bytes + at + bytes, fed[side].bytes + at, length - at);
            fed[side].length += bytes;
        }
        break;
    case 3: /* a bit */
        if (at < length)
            fed[side].bytes[at] ^= (uint8_t)(1u << below(8));
        break;
    case 4: /* a byte */
        if (at < length)
            fed[side].bytes[at] = (uint8_t)below(256);
        break;
    default: /* a number, most of them small or at an edge */
        value = below(2) == 0 ? below(40) : odd[below(sizeof odd / sizeof odd[0])];
        at &= ~3u;
        if (at + 4 <= length)
            memcpy(fed[side].bytes + at, &value, 4);
    }
}

static void bring(int side, const struct message *from)
{
    fed[side].length = from->length;
    fed[side].at = 0;
    memcpy(fed[side].bytes, from->bytes, from->length);
}

/* A header says how long its message is, nearly always. */
static void head(int side)
{
    uint32_t length = fed[side].length - 8;

    if (fed[side].length < 8)
        return;
    if (below(64) == 0)
        length = below(2) == 0 ? length + below(9) - 4 : 0x1000000u - below(2);
    memcpy(fed[side].bytes + 4, &length, 4);
}

int main(int count, char **words)
{
    unsigned long runs, run;
    char *called[2] = { words[0], NULL };

    if (count != 5)
        return 2;
    called[1] = words[1];
    take(words[2]);
    runs = strtoul(words[3], NULL, 10);
    state = strtoul(words[4], NULL, 10) * 2 + 1;
    if (seeds_count == 0)
        return 3;
    const uint32_t first = seeds_count;
    for (run = 0; run < runs; run++) {
        const struct seed *seed = &seeds[below(seeds_count)];
        uint32_t what = below(4);

        bring(0, seed->sides[0]);
        bring(1, (below(16) == 0 ? &seeds[below(seeds_count)] : seed)->sides[1]);
        for (int side = 0; side < 2; side++) {
            if (what != (uint32_t)(1 - side) && fed[side].length >= 8)
                for (uint32_t times = 1 + below(4); times > 0; times--)
                    change(side);
            head(side);
        }
        is_new = false;
        relay(2, called);
        if (is_new && seeds_count < SEEDS_MAX)
            seeds[seeds_count++] =
                (struct seed){ { kept(fed[0].bytes, fed[0].length), kept(fed[1].bytes, fed[1].length) } };
    }
    printf("%s: %lu executions, %u messages, and %u that were new\n", words[1], runs, first, seeds_count - first);
    for (uint32_t i = 0; i < seeds_count; i++) {
        free(seeds[i].sides[0]);
        free(seeds[i].sides[1]);
    }
    return touched == 1 ? 4 : 0;
}

#endif
