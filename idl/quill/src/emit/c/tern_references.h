#ifndef QUILL_TERN_REFERENCES_H
#define QUILL_TERN_REFERENCES_H

/* References to objects, as stubs through doors hand them over.
 *
 * What arrives has a number of `tern_arrivals` and belongs to the program until it hands that away, or calls tern_release. Numbers
 * elsewhere are the program's own affair: what has one is never given away, but given once more. */

/* An object of which nothing is known: `Object`. A reference is the number of an identifier, and what labels of its interface's methods
 * have more than those of the interface by itself, because the object has more interfaces. */
typedef struct quill_object {
    uint32_t number, view;
} quill_object;

/* The flexpage with which an identifier is handed on or, if it has arrived, away. */
static inline tern_fpage quill_handed_over(uint32_t number, bool grant)
{
    tern_fpage given = grant && tern_number_is_in(&tern_arrivals, number) ? TERN_GRANT : 0;

    return TERN_FPAGE_DOORS(number, 0, TERN_R | TERN_W) | given;
}

QUILL_INLINE tern_fpage quill_window_at(uint32_t number)
{
    return TERN_FPAGE_DOORS(number, 0, TERN_R | TERN_W);
}

/* The number of a window, or of what has arrived there; 0 if it is none for one identifier. */
QUILL_INLINE uint32_t quill_number_at(tern_fpage window)
{
    return (window & 0xff0) == (TERN_FPAGE_DOORS(0, 0, 0) & 0xff0) ? (uint32_t)(window >> 12) : 0;
}

#ifndef QUILL_OWN_IPC

/* A call with a reference in w6 and w7. */
QUILL_INLINE uint64_t quill_door_call_item(uint32_t door, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    tern_uid partner = door;

    return quill_ipc((uint64_t)label << 32 | (TERN_DOOR_CALL & ~TERN_NO_ITEM), &partner, words, there, back);
}

/* As quill_door_call_item, where the reply may have a part in memory, or hand something over. */
QUILL_INLINE uint64_t quill_door_call_item_taking(uint32_t door, uint32_t label, uint64_t *words, unsigned there,
                                                  unsigned back, uint32_t takes)
{
    tern_uid partner = door;

    return quill_ipc((uint64_t)label << 32 | (TERN_DOOR_CALL & ~(TERN_NO_ITEM | takes)), &partner, words, there, back);
}

/* What arrives with messages to the calling thread has its place there from now on; says where it had until then. */
static inline tern_fpage quill_set_window(tern_fpage window)
{
    uint64_t words[6] = { TERN_NIL, window };

    tern_control(TERN_THREAD_CONTROL, TERN_THREAD_SET_WINDOW, words);
    return words[1];
}

#else

#define quill_door_call_item_taking(door, label, words, there, back, takes) \
    quill_door_call_item(door, label, words, there, back)

#endif

/* Asks an object where in its table an interface is: the same identifier is a reference to it as that. */
static inline quill_status quill_find(uint32_t number, uint64_t interface, uint32_t *same, uint32_t *view)
{
    uint64_t words[QUILL_WORDS] = { interface }, rax = quill_door_call(number, UINT32_MAX, words, 1, 1);

    if (rax != QUILL_DOOR_DONE)
        return quill_failure(quill_door_reply(rax));
    *same = number, *view = (uint32_t)words[0];
    return QUILL_OK;
}

/* A server has what came, and the number is the method's; another one is the place for the next. False if there is none. */
static inline bool quill_take_item(quill_item *item, uint32_t *number, uint32_t *view)
{
    uint32_t next = (item->place & TERN_R) != 0 ? tern_number_take(&tern_arrivals) : 0;

    if (next == 0)
        return false;
    *number = quill_number_at(item->place);
    *view = (uint32_t)item->view;
    item->place = 0;
    if (item->window != NULL)
        item->window[0] = quill_window_at(next), item->window[1] = 0;
    else
        quill_set_window(quill_window_at(next));
    return true;
}

/* A server hands a reference away: its number is the place for the next one from now on, and is empty by then. False if it is none. */
static inline bool quill_give_item(quill_item *item, uint32_t number, uint32_t view)
{
    if (number == 0)
        return false;
    item->place = quill_handed_over(number, true);
    item->view = view;
    if ((item->place & TERN_GRANT) != 0)
        tern_release(quill_number_at(quill_set_window(quill_window_at(number))));
    return true;
}

/* A server hands over pages, ports or a line: the two last bits before the size say which, and how many there are at most. False if it
 * is no such flexpage, or one that is cut off. */
static inline bool quill_give_pages(quill_item *item, tern_fpage pages)
{
    static const uint8_t bits[] = { 47, 16 + 12, 8 + 12, 0 };
    unsigned log2 = pages >> 4 & 0x3f, space = pages >> 10 & 3, size = space != 0 ? log2 + 12 : log2;

    if (size < 12 || size > bits[space] || pages >> bits[space] != 0 || (pages & ~(tern_fpage)0xfff) << (64 - size) != 0)
        return false;
    item->place = pages;
    item->view = 0;
    return true;
}

/* What was to be handed over, or came and is not wanted, goes. The number stays the place for the next. */
static inline __attribute__((cold)) void quill_let_go(uint64_t place)
{
    uint32_t number = quill_number_at(place);

    if (tern_number_is_in(&tern_arrivals, number))
        QUILL_RELEASE(number);
}

/* What becomes of a reference when a method is through: what the method has not got, or cannot give, is let go. Returns what leaves. */
QUILL_INLINE tern_fpage quill_leaves(quill_item *item, quill_status status, uint64_t *words)
{
    if (item->place == 0)
        return 0;
    if (status != QUILL_OK) {
        quill_let_go(item->place);
        return 0;
    }
    words[6] = item->place, words[7] = item->view;
    return item->place;
}

#endif
