#ifndef QUILL_TERN_HANDING_H
#define QUILL_TERN_HANDING_H

/* References to objects within values, and several in a message.
 *
 * A message has them beside its words, as items in the order in which they are written; a byte among the words says whether there is one.
 * Number 0 is none.
 *
 * A reference belongs to one side at a time, and each number is one reference: to give an object away twice, duplicate it.
 *
 * In a client:
 *   in        They stay the caller's, whatever becomes of the call. One that is `grant`ed goes, whatever becomes of the call.
 *   out       If the call succeeds they are the caller's; so are those of an exception that it raises. Otherwise all that has come has been
 *             given back, and results with references in them are all zeros.
 *   inout     If the call succeeds those that were there are given back, and the new ones are the caller's. Otherwise it is as it was.
 * In a method:
 *   in        They are the method's, also if it fails: it keeps them, or gives them back.
 *   out       If it succeeds they go, also if the reply does not arrive, or is refused because something in it is no value, is too long, or
 *             is there twice. So do those of an exception that it raises. If it fails otherwise nothing is looked at, and they stay.
 *   inout     Both: those that came are the method's, and those that it leaves there go.
 * A method begins with all references of its request, or not at all: then they have been given back.
 *
 * Numbers that are not among `tern_arrivals` are the program's own doors. They never go: the other side gets another reference.
 *
 * For each type with references in it, `quill_release_TYPE(&value)` gives all of them back; for one, tern_release(its number) does. */

/* References of a message at most. */
#define QUILL_HANDED_MAX 16

/* --- to be sent --- */

/* Those within values, as items: where each is, and w7 of it. */
typedef struct {
    uint64_t items[2 * QUILL_HANDED_MAX];
    uint32_t count, most;
    uint32_t replaced; /* a bit for each in whose place something comes back */
    bool granted;      /* when they have left, they are nobody's here */
    bool replaces;     /* said before a value is written */
} quill_handing;

/* Values that are written piece by piece, with references beside them. It begins as it does without any, so functions for that take it, too. */
typedef struct {
    quill_out out;
    quill_handing *handing;
} quill_out_with;

static inline void quill_begin_handing(quill_handing *handing, uint32_t most, bool granted)
{
    handing->count = handing->replaced = 0;
    handing->most = most;
    handing->granted = granted;
    handing->replaces = false;
}

/* Writes whether there is a reference, and hands it over. One too many is too long. */
static inline __attribute__((unused)) void quill_put_reference(quill_out *out, uint32_t number, uint32_t view)
{
    quill_handing *handing = ((quill_out_with *)out)->handing;
    uint32_t place = handing->count;

    quill_put_bool(out, number != 0);
    if (number == 0)
        return;
    if (place == handing->most) {
        quill_fail(out, QUILL_TOO_LONG);
        return;
    }
    handing->items[2 * place] = quill_handed_over(number, handing->granted);
    handing->items[2 * place + 1] = view;
    handing->replaced |= (uint32_t)handing->replaces << place;
    handing->count++;
}

/* Describes them in the words of a block, and says how many they are as its dope does. */
static inline __attribute__((unused)) uint64_t quill_describe(const quill_handing *handing, uint64_t *words)
{
    __builtin_memcpy(words, handing->items, handing->count * 2 * sizeof *words);
    return (uint64_t)handing->count << 20;
}

/* Those in whose place others have come are given back. */
static inline __attribute__((unused)) void quill_replaced(const quill_handing *handing)
{
    for (uint32_t i = 0; i < handing->count; i++)
        if ((handing->replaced >> i & 1) != 0)
            tern_release(quill_number_at(handing->items[2 * i]));
}

/* --- to be received --- */

/* Windows for references, which are items of a block. What has come is nobody's until all of the message has been read: then there is no
 * way back, and before that none of it is kept. */
typedef struct {
    uint64_t *windows;
    uint32_t open;    /* how many there are */
    uint32_t arrived; /* in how many something has come that nobody has */
    uint32_t next;    /* the next that is read */
    uint32_t given;   /* how many leave with a server's reply */
} quill_carried;

/* Values that are read piece by piece, with references beside them. */
typedef struct {
    quill_in in;
    quill_carried *carried;
} quill_in_with;

/* Does as quill_begin_in, however many items there are. */
static inline __attribute__((unused)) quill_in quill_begin_in_with(uint64_t *room, const uint64_t *words, uint64_t fixed,
                                                                   uint32_t strings)
{
    uint64_t apart = words[0] & ~((uint64_t)0xff << 20);

    return quill_begin_in(room, &apart, fixed, strings);
}

/* The next one; false if there is none, or if it has not come. */
static inline bool quill_next_reference(quill_carried *carried, uint32_t *number, uint32_t *view)
{
    const uint64_t *item = carried->windows + 2 * carried->next;

    if (carried->next >= carried->arrived || (item[0] & TERN_R) == 0)
        return false;
    carried->next++;
    *number = quill_number_at(item[0]);
    *view = (uint32_t)item[1];
    return *number != 0;
}

/* Reads whether there is a reference, and finds it. */
static inline __attribute__((unused)) void quill_get_reference(quill_in *in, uint32_t *number, uint32_t *view)
{
    *number = *view = 0;
    if (quill_get_bool(in) && !in->failed && !quill_next_reference(((quill_in_with *)in)->carried, number, view))
        in->failed = true;
}

/* Whether nothing has come that nobody has asked for. */
static inline __attribute__((unused)) bool quill_has_all(const quill_carried *carried)
{
    return carried->next == carried->arrived;
}

/* --- clients --- */

/* rax of a call, whether or not references have come with the reply's part in memory. */
QUILL_INLINE uint64_t quill_apart_from_items(uint64_t rax)
{
    return (uint32_t)rax >> 31 == 0 ? rax : rax | TERN_NO_ITEM;
}

/* The windows of a client's room are closed; those from `first` on are empty, too. */
static inline void quill_close_windows(quill_carried *carried, uint32_t first)
{
    for (uint32_t i = 0; i < carried->open; i++) {
        if (i >= first)
            tern_release(quill_number_at(carried->windows[2 * i]));
        carried->windows[2 * i] = carried->windows[2 * i + 1] = 0;
    }
}

/* Opens windows for as long as a call: each has a number. */
static inline __attribute__((unused)) quill_status quill_open_windows(quill_carried *carried, uint64_t *windows, uint32_t count)
{
    *carried = (quill_carried){ windows, 0, 0, 0, 0 };
    for (; carried->open < count; carried->open++) {
        uint32_t number = tern_number_take(&tern_arrivals);
        if (number == 0) {
            quill_close_windows(carried, 0);
            return QUILL_KERNEL + TERN_LIMIT;
        }
        windows[2 * carried->open] = quill_window_at(number);
        windows[2 * carried->open + 1] = 0;
    }
    return QUILL_OK;
}

/* A reply has come, with as many as its dope says. */
static inline __attribute__((unused)) void quill_came(quill_carried *carried, uint64_t dope)
{
    uint32_t items = (uint32_t)(dope >> 20) & 0xff;

    carried->arrived = items < carried->open ? items : carried->open;
    carried->next = 0;
}

/* The call is over. If it has brought something, that is the caller's; otherwise all that has come goes. */
static inline __attribute__((unused)) void quill_call_over(quill_carried *carried, quill_status status)
{
    quill_close_windows(carried, status < QUILL_KERNEL ? carried->next : 0);
}

/* --- servers --- */

/* References that have come with a request that has this dope, in the thread's room. */
QUILL_INLINE quill_carried quill_carried_in(uint64_t dope, quill_door_room *room)
{
    return (quill_carried){ room->strings + 2 * (dope >> 44 & 0xff), dope >> 52 & 0xff, dope >> 20 & 0xff, 0, 0 };
}

/* All that has come is the method's, and other numbers are the windows for what comes next. False, and nothing has changed, if there are
 * not enough. */
static inline __attribute__((unused)) bool quill_take_all(quill_carried *carried)
{
    uint32_t next[QUILL_HANDED_MAX], count = carried->arrived;

    if (!quill_has_all(carried) || count > QUILL_HANDED_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        next[i] = tern_number_take(&tern_arrivals);
        if (next[i] == 0) {
            while (i > 0)
                tern_number_free(&tern_arrivals, next[--i]);
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        carried->windows[2 * i] = quill_window_at(next[i]), carried->windows[2 * i + 1] = 0;
    carried->arrived = 0;
    return true;
}

/* References that have come and no method has are let go. The numbers stay windows. */
static inline __attribute__((unused)) void quill_let_go_of_carried(quill_carried *carried)
{
    for (uint32_t i = 0; i < carried->arrived; i++)
        quill_let_go(carried->windows[2 * i]);
    carried->arrived = 0;
}

/* Whether one of these is given away that was given away before. */
static inline bool quill_is_given_twice(const uint64_t *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t j = 0; j < i; j++)
            if ((items[2 * i] & TERN_GRANT) != 0 && items[2 * i] == items[2 * j])
                return true;
    return false;
}

/* A reply is made, with references that these words describe. The numbers of those that go are the thread's windows from now on. Nothing
 * has changed if it has not so many, or if one of them would go twice. */
static inline __attribute__((unused)) quill_status quill_give_all(quill_carried *carried, const uint64_t *items,
                                                                  uint32_t count)
{
    uint32_t given = 0;

    for (uint32_t i = 0; i < count; i++)
        given += (items[2 * i] & TERN_GRANT) != 0;
    if (given > carried->open)
        return QUILL_KERNEL + TERN_NO_WINDOW;
    if (quill_is_given_twice(items, count))
        return QUILL_MALFORMED;
    for (uint32_t i = 0; i < count; i++)
        if ((items[2 * i] & TERN_GRANT) != 0) {
            uint64_t *window = carried->windows + 2 * carried->given++;
            uint32_t before = quill_number_at(window[0]);
            window[0] = quill_window_at(quill_number_at(items[2 * i])), window[1] = 0;
            tern_release(before);
        }
    return QUILL_OK;
}

/* References that were to leave with a reply that has not arrived are let go: so many windows of these. */
static __attribute__((noinline, cold, unused)) void quill_let_go_of_given(const uint64_t *windows_and_count)
{
    const uint64_t *windows = (const uint64_t *)(uintptr_t)windows_and_count[0];

    for (uint64_t i = 0; i < windows_and_count[1]; i++)
        quill_let_go(windows[2 * i]);
}

#ifndef QUILL_OWN_IPC

/* As quill_receive, and references arrive, too: in so many windows beside what is in memory, as the largest WINDOWS of the interfaces that the
 * thread serves says. A thread whose interfaces have no requests in memory has no room: NULL. */
static inline __attribute__((unused)) quill_status quill_receive_several(quill_door_room *room, unsigned strings,
                                                                         uint32_t bytes, char *buffers, unsigned windows)
{
    uint32_t numbers[1 + QUILL_HANDED_MAX];
    tern_fpage places[QUILL_HANDED_MAX];
    unsigned count = room != NULL ? windows : 0, taken = 0;
    quill_status status = QUILL_OK;

    if (count > QUILL_HANDED_MAX)
        return QUILL_KERNEL + TERN_BAD_ARGUMENT;
    /* The last is for one in registers. */
    for (; taken < 1 + count && status == QUILL_OK; taken++)
        if ((numbers[taken] = tern_number_take(&tern_arrivals)) == 0)
            status = QUILL_KERNEL + TERN_LIMIT;
    for (unsigned i = 0; i < count && status == QUILL_OK; i++)
        places[i] = quill_window_at(numbers[i]);
    if (room != NULL && status == QUILL_OK)
        status = quill_receive_with(room, strings, bytes, buffers, places, count);
    if (status == QUILL_OK) {
        quill_set_window(quill_window_at(numbers[count]));
        return QUILL_OK;
    }
    while (taken > 0)
        tern_number_free(&tern_arrivals, numbers[--taken]);
    return status;
}

/* Opens one window. */
static inline __attribute__((unused)) quill_status quill_receive_references(quill_door_room *room, unsigned strings,
                                                                            uint32_t bytes, char *buffers)
{
    return quill_receive_several(room, strings, bytes, buffers, 1);
}

/* For a thread that serves no more: nothing arrives, and the numbers are free. */
static inline __attribute__((unused)) void quill_receive_nothing(quill_door_room *room, unsigned strings)
{
    uint64_t control[6] = { TERN_NIL };

    tern_release(quill_number_at(quill_set_window(0)));
    /* It says what there was: as many windows as are in its dope. */
    if (tern_control(TERN_THREAD_CONTROL, TERN_THREAD_SET_BLOCK, control) != TERN_OK || room == NULL)
        return;
    for (unsigned i = 0; i < (control[2] >> 52 & 0xff); i++)
        tern_release(quill_number_at(room->strings[2 * (strings + i)]));
}

#endif

#endif
