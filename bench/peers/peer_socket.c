/* No stubs at all: the same messages by hand on the two ends of a Unix-domain socket, trusted by both sides. What is above this is what stubs cost. */

#include "measure.h"

#include <string.h>
#include <sys/wait.h>

/* A label, how many bytes follow, and these. */
struct message {
    uint32_t label, length;
    uint8_t body[BYTES_LEN + 8];
};

enum { TINY, SMALL, STR, LENGTH, FETCH };

static uint8_t page[BYTES_LEN];

static void transmit(int end, const struct message *message)
{
    size_t whole = 8 + message->length;

    if (send(end, message, whole, MSG_NOSIGNAL) != (ssize_t)whole)
        exit(1);
}

/* Whether the other side has not closed. */
static int receive(int end, struct message *message)
{
    size_t have = 0;

    while (have < 8 || have < 8 + message->length) {
        ssize_t done = recv(end, (uint8_t *)message + have, sizeof *message - have, 0);
        if (done <= 0)
            return 0;
        have += (size_t)done;
    }
    return 1;
}

static void answer(struct message *message)
{
    int32_t number[2];

    switch (message->label) {
    case TINY:
        message->length = 0;
        break;
    case SMALL: {
        int16_t halves[2];
        memcpy(number, message->body, 4);
        memcpy(halves, message->body + 4, 4);
        number[0] += halves[0] + halves[1];
        memcpy(message->body, number, 4);
        message->length = 4;
        break;
    }
    case FETCH:
        memcpy(number, message->body, 4);
        memcpy(message->body, page, (size_t)number[0]);
        message->length = (uint32_t)number[0];
        break;
    default:
        memcpy(message->body, &message->length, 4);
        message->length = 4;
    }
    message->label = 0;
}

/* A call with that body, of which so many bytes come back. */
static uint32_t call(int end, uint32_t label, const void *body, uint32_t length, struct message *message)
{
    message->label = label;
    message->length = length;
    memcpy(message->body, body, length);
    transmit(end, message);
    return receive(end, message) ? message->length : 0;
}

static int32_t number_in(const struct message *message)
{
    int32_t number;

    memcpy(&number, message->body, 4);
    return number;
}

int main(void)
{
    static struct message message;
    const int32_t one = 1, count = BYTES_LEN;
    const uint8_t small[8] = { 1, 0, 0, 0, 2, 0, 3, 0 };
    int end;
    pid_t child = fork_connected(&end);

    if (child == 0) {
        while (receive(end, &message)) {
            answer(&message);
            transmit(end, &message);
        }
        _exit(0);
    }

    MEASURE("tiny", CALLS, EXPECT(call(end, TINY, &one, 4, &message) == 0));
    MEASURE("small", CALLS, EXPECT(call(end, SMALL, small, 8, &message) == 4 && number_in(&message) == 6));
    MEASURE("str.100", CALLS, EXPECT(call(end, STR, TEXT, TEXT_LEN, &message) == 4 && number_in(&message) == TEXT_LEN));
    MEASURE("length.4096", CALLS,
            EXPECT(call(end, LENGTH, page, BYTES_LEN, &message) == 4 && number_in(&message) == BYTES_LEN));
    MEASURE("fetch.4096", CALLS, EXPECT(call(end, FETCH, &count, 4, &message) == BYTES_LEN));
    close(end);
    waitpid(child, NULL, 0);
    return 0;
}
