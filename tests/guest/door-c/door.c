/* Doors from C: objects in this task that its own server thread serves, called through the maker's number. One has its entry by
 * hand (TERN_DOOR_ENTRY), the other one that of an interface (bounded.idl). */

#include "door.h"

#include <door/bounded.h>

enum { OBJECT = 3, NOTHING = 4, OTHER = 5 };

/* What is behind the door. */
struct counter {
    uint64_t sum;
};

/* Label 1 adds w0 and gives back the sum; others are echoed. */
void counter_call(struct tern_message *message)
{
    struct counter *counter = (struct counter *)message->partner;

    if (message->kind == TERN_KIND_DOOR_CALL && message->label == 1)
        message->words[0] = counter->sum += message->words[0];
    else
        message->label = ~message->label;
}

TERN_DOOR_ENTRY(counter_entry, counter_call);

/* An object with the interface Door::Counter. */
struct bounded {
    const Door_Counter_server *methods;
    int32_t sum, most;
    char note[801];
};

static quill_status add(void *self, int32_t a, int16_t b, int32_t *result, Door_Counter_add_raised *raised)
{
    struct bounded *bounded = self;

    if (bounded->sum + a + b > bounded->most) {
        raised->Full.most = bounded->most;
        return 1;
    }
    *result = bounded->sum += a + b;
    return QUILL_OK;
}

static quill_status forget(void *self)
{
    ((struct bounded *)self)->sum = 0;
    return QUILL_OK;
}

static quill_status note(void *self, const char *text)
{
    /* The text is the call's, so the object keeps a copy. */
    memcpy(((struct bounded *)self)->note, text, strlen(text) + 1);
    return QUILL_OK;
}

/* Another implementation: it only takes. */
static quill_status take(void *self, int32_t a, int16_t b, int32_t *result, Door_Counter_add_raised *raised)
{
    (void)raised;
    *result = ((struct bounded *)self)->sum -= a + b;
    return QUILL_OK;
}

static const Door_Counter_server adds = { add, forget, note };
static const Door_Counter_server takes = { take, forget, note };

/* The entry of objects that add; and that of objects which do what they are told. */
Door_Counter_ENTRY(add_entry, adds, NULL)
Door_Counter_ENTRY(any_entry, *((struct bounded *)quill_self)->methods, NULL)

/* Why a thread has ended its service: that without room for texts, and that with it. */
static volatile int why_it_ended[2];

static void serve(void)
{
    static quill_door_room room;
    uint64_t words[6] = { TERN_NIL };

    why_it_ended[0] = tern_door_serve();
    if (quill_receive(&room, Door_Counter_STRINGS, Door_Counter_STRING_BYTES, NULL) == QUILL_OK)
        why_it_ended[1] = tern_door_serve();
    tern_control(TERN_THREAD_CONTROL, TERN_THREAD_DESTROY, words);
}

tern_uid start_server(void (*serve)(void))
{
    static char stack[16384] __attribute__((aligned(16)));
    uint64_t self[6] = { 0 }, info[6] = { 0 };

    tern_control(TERN_TASK_CONTROL, TERN_TASK_SELF, self);
    tern_control(TERN_THREAD_CONTROL, TERN_THREAD_INFO, info);
    uint64_t create[6] = { TERN_NIL, info[0] >> 8 & 0xff, self[2], self[3] };
    if (tern_control(TERN_THREAD_CONTROL, TERN_THREAD_CREATE, create) != TERN_OK)
        return TERN_NIL;
    uint64_t start[6] = { create[0], (uint64_t)serve, (uint64_t)(stack + sizeof stack - 8) };
    return tern_control(TERN_THREAD_CONTROL, TERN_THREAD_START, start) == TERN_OK ? create[0] : TERN_NIL;
}

static int failures;

static void check(int is_so, const char *what)
{
    if (!is_so) {
        printf("DOOR-C FAILED: %s\n", what);
        failures++;
    }
}

/* Ends a service. The server goes on with the next one on the time that this thread gives it. */
static void end_service(tern_uid server, int number)
{
    uint64_t abort[6] = { server };

    check(tern_control(TERN_THREAD_CONTROL, TERN_THREAD_ABORT, abort) == TERN_OK, "a server can be aborted");
    for (int i = 0; i < 1000 && why_it_ended[number] == TERN_OK; i++) {
        uint64_t next[6] = { server };
        tern_control(TERN_THREAD_SWITCH, 0, next);
    }
    check(why_it_ended[number] == TERN_RECEIVE_ABORTED, "and says why it ended");
}

/* Clients and an object made by quill. */
static void call_by_stubs(tern_uid server)
{
    static struct bounded bounded = { &adds, 0, 100, "" };
    const Door_Counter object = { OBJECT, 0 }, other = { OTHER, 0 }, nothing = { NOTHING, 0 };
    Door_Counter_add_raised raised;
    int32_t sum = 0;

    check(tern_door_create(OBJECT, add_entry, (uint64_t)&bounded) == TERN_OK, "an object is made");
    check(Door_Counter_add(object, 40, 2, &sum, &raised) == QUILL_OK && sum == 42, "a stub calls");
    check(Door_Counter_add(object, 60, 2, &sum, &raised) == 1 && raised.Full.most == 100, "and hears of exceptions");
    check(Door_Counter_forget(object) == QUILL_OK && bounded.sum == 0, "a oneway call is through when it is back");
    check(tern_door_create(OTHER, any_entry, (uint64_t)&bounded) == TERN_OK, "it has another door");
    check(Door_Counter_add(other, 40, 2, &sum, &raised) == QUILL_OK && sum == 42, "which leads to the same methods");
    bounded.methods = &takes;
    check(Door_Counter_add(other, 60, 2, &sum, &raised) == QUILL_OK && sum == -20, "until they are replaced");
    check(tern_door_release(OTHER) == TERN_OK, "it is released");
    check(Door_Counter_note(object, "text") == QUILL_KERNEL + TERN_NO_WINDOW, "a server without a block gets no text");
    end_service(server, 0);
    check(Door_Counter_note(object, "a text of many words") == QUILL_OK, "one with a block does");
    check(strcmp(bounded.note, "a text of many words") == 0, "as it was");
    check(Door_Counter_note(object, "caf\303\251") == QUILL_OK && bounded.note[4] == '\251', "also if it is not ASCII");
    struct tern_message nonsense = { .label = 1u << 30 };
    check(tern_door_call(OBJECT, &nonsense) == TERN_OK && nonsense.label == QUILL_MALFORMED, "what is no text is refused");
    nonsense = (struct tern_message){ .label = 3u << 30 };
    check(tern_door_call(OBJECT, &nonsense) == TERN_OK && nonsense.label == QUILL_NO_METHOD, "and what is no method");
    check(Door_Counter_forget(nothing) == QUILL_KERNEL + TERN_NO_SUCH, "nobody is there");
    check(Door_Counter_add(nothing, 1, 1, &sum, &raised) == QUILL_KERNEL + TERN_NO_SUCH, "for any method");
    check(tern_door_release(OBJECT) == TERN_OK, "the object is released");
}

/* Thread-local data that are to lie at a multiple of more than the thread's control block does. */
static _Thread_local _Alignas(256) char wide[3] = "wi";

/* `door-c counted` and `door-c await` are the two halves of a test from outside. */
int main(int argc, char **argv)
{
    static struct counter counter;

    if (argc == 2 && strcmp(argv[1], "counted") == 0)
        return make_counted_calls();
    if (argc == 2 && strcmp(argv[1], "await") == 0)
        return await_counted_calls();

    tern_uid server = start_server(serve);

    check(server != TERN_NIL, "a server starts");
    check((uintptr_t)wide % 256 == 0 && strcmp(wide, "wi") == 0, "thread-local data are where they should be");
    check(tern_door_create(OBJECT, counter_entry, (uint64_t)&counter) == TERN_OK, "a door is made");
    check(tern_door_create(OBJECT, counter_entry, 0) == TERN_BAD_STATE, "but not twice");
    for (uint64_t i = 1; i <= 100; i++) {
        struct tern_message message = { .label = 1, .words = { 2, 3 } };
        check(tern_door_call(OBJECT, &message) == TERN_OK, "a call returns");
        check(message.kind == TERN_KIND_DOOR_RETURN && message.label == 1, "as what it is");
        check(message.words[0] == 2 * i && message.words[1] == 3, "with its words");
    }
    struct tern_message message = { .label = 7, .words = { 0, 1, 2, 3, 4, 5, 6, 7 } };
    check(tern_door_call(OBJECT, &message) == TERN_OK && message.label == ~7u, "labels come and go");
    for (uint64_t i = 0; i < 8; i++)
        check(message.words[i] == i, "and all words");
    check(tern_door_call(NOTHING, &message) == TERN_NO_SUCH, "there is no other door");
    check(tern_door_revoke(OBJECT) == TERN_OK, "identifiers are taken back");
    check(tern_door_call(OBJECT, &message) == TERN_OK, "the maker's stays");
    check(tern_door_release(OBJECT) == TERN_OK, "a door is released");
    check(tern_door_call(OBJECT, &message) == TERN_NO_SUCH, "and is gone");
    call_by_stubs(server);
    end_service(server, 1);
    puts(failures == 0 ? "DOOR-C ok" : "DOOR-C FAILED");
    return failures != 0;
}
