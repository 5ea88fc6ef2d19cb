#ifndef QUILL_TERN_OFFERS_H
#define QUILL_TERN_OFFERS_H

/* Lists that a client offers instead of sending them (row D13): the object's thread looks at the client's own pages, and whoever writes to one gets a
 * copy of it. The library makes and takes offers (tern.h).
 *
 * In a client a list is offered if it is whole pages, enough of them. If the server does not take it, it is sent: the caller sees no difference.
 *
 * In a method it is a list like any other, and can be written to: that changes nothing of the client's. It is there until the method ends. A list that
 * the method gives back must not lie in it: the stub refuses that with QUILL_MALFORMED, also if the list was sent. */

/* The number of an offer of such bytes; 0 if they are sent. */
QUILL_INLINE uint64_t quill_offer(const void *bytes, uint64_t len)
{
    bool is_whole = ((quill_address(bytes) | len) & (TERN_PAGE_SIZE - 1)) == 0;

    return is_whole && len >= TERN_OFFER_PAGES_MIN * TERN_PAGE_SIZE ? tern_offer(bytes, len) : 0;
}

/* A call with these offers has ended. True if it has to be made anew, with the bytes; then there are none. */
QUILL_INLINE bool quill_offers_over(uint64_t *offers, unsigned count, quill_status status)
{
    bool is_declined = false;

    for (unsigned i = 0; i < count; i++) {
        if (offers[i] == 0)
            continue;
        /* If the call has succeeded the object has taken it, and its end is the object's business. */
        if (status != QUILL_OK)
            tern_offer_withdraw(offers[i]);
        is_declined |= status == QUILL_DECLINED;
        offers[i] = 0;
    }
    return is_declined;
}

/* Leaves a list as it was sent if the number is 0, and otherwise makes it the pages of that offer. False if it cannot be taken. */
QUILL_INLINE bool quill_take_offer(struct tern_taken *taken, uint64_t number, uint64_t bytes_max, uint8_t **bytes, uint32_t *len)
{
    if (__builtin_expect(number == 0, 1))
        return true;
    if (!tern_offer_take(number, bytes_max, taken))
        return false;
    *bytes = taken->bytes;
    *len = (uint32_t)taken->len;
    return true;
}

/* The reply is made, so what was taken is given back. */
QUILL_INLINE void quill_taken_over(struct tern_taken *taken, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (taken[i].number != 0)
            tern_offer_done(&taken[i]);
}

/* Whether something begins in a list. */
QUILL_INLINE bool quill_lies_in(const void *first, const uint8_t *list, uint32_t len)
{
    return quill_address(first) - quill_address(list) < len;
}

#endif
