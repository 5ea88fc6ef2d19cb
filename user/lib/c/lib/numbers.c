/* Numbers for door identifiers, and how a program gets an identifier a second time. */

#include <tern.h>

struct tern_numbers tern_arrivals;

/* The thread that is the porter. */
static tern_uid porter;

int tern_number_is_in(const struct tern_numbers *numbers, uint32_t number)
{
    return number - numbers->first < numbers->count;
}

uint32_t tern_number_take(struct tern_numbers *numbers)
{
    for (uint32_t word = 0; 64 * word < numbers->count; word++) {
        uint64_t used = __atomic_load_n(&numbers->used[word], __ATOMIC_ACQUIRE);
        while (~used != 0) {
            uint32_t bit = (uint32_t)__builtin_ctzll(~used);
            if (64 * word + bit >= numbers->count)
                return 0;
            if (__atomic_compare_exchange_n(&numbers->used[word], &used, used | UINT64_C(1) << bit, 0,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return numbers->first + 64 * word + bit;
        }
    }
    return 0;
}

void tern_number_free(struct tern_numbers *numbers, uint32_t number)
{
    uint32_t place = number - numbers->first;

    if (tern_number_is_in(numbers, number))
        __atomic_fetch_and(&numbers->used[place / 64], ~(UINT64_C(1) << place % 64), __ATOMIC_RELEASE);
}

uint32_t tern_numbers_in_use(const struct tern_numbers *numbers)
{
    uint32_t count = 0;

    for (uint32_t word = 0; 64 * word < numbers->count; word++)
        for (uint64_t used = __atomic_load_n(&numbers->used[word], __ATOMIC_ACQUIRE); used != 0; used &= used - 1)
            count++;
    return count;
}

void tern_release(uint32_t number)
{
    if (!tern_number_is_in(&tern_arrivals, number))
        return;
    tern_door_release(number);
    tern_number_free(&tern_arrivals, number);
}

/* Whether a thread is the program's own. */
static int is_own(tern_uid thread)
{
    uint64_t self[6] = { TERN_NIL }, other[6] = { thread };

    return tern_control(TERN_THREAD_CONTROL, TERN_THREAD_INFO, self) == TERN_OK &&
           tern_control(TERN_THREAD_CONTROL, TERN_THREAD_INFO, other) == TERN_OK && self[5] == other[5];
}

/* How long the porter waits before it looks for a number again, in microseconds. */
#define PAUSE_US 10000

void tern_porter(void)
{
    uint64_t self[6] = { 0 };

    tern_control(TERN_TASK_CONTROL, TERN_TASK_SELF, self);
    __atomic_store_n(&porter, self[0], __ATOMIC_RELEASE);
    for (;;) {
        struct tern_message message = { 0 };
        uint32_t number = tern_number_take(&tern_arrivals);
        tern_fpage window = number == 0 ? 0 : TERN_FPAGE_DOORS(number, 0, TERN_R | TERN_W);
        uint32_t patience = number == 0 ? PAUSE_US : TERN_NEVER;
        int error = tern_ipc(&message, 0, TERN_ANY, window, TERN_TIMEOUTS(0, patience));
        int has_come = error == TERN_OK && (message.kind & TERN_NO_ITEM) == 0;

        /* Strangers get nothing, and what they send is gone. So is a copy for which nobody waits any more. */
        if (error == TERN_OK && is_own(message.partner)) {
            struct tern_message answer = { .label = has_come ? TERN_OK : TERN_LIMIT, .partner = message.partner,
                                           .words = { number } };
            if (tern_ipc(&answer, 0, TERN_NIL, 0, TERN_TIMEOUTS(0, 0)) == TERN_OK && has_come)
                continue;
        }
        tern_release(number);
    }
}

int tern_door_duplicate(uint32_t identifier, uint32_t *copy)
{
    tern_uid to = __atomic_load_n(&porter, __ATOMIC_ACQUIRE);
    struct tern_message message = { .partner = to };
    int error;

    if (to == TERN_NIL)
        return TERN_NO_SUCH;
    message.words[6] = TERN_FPAGE_DOORS(identifier, 0, TERN_R | TERN_W);
    error = tern_ipc(&message, TERN_ITEM, to, 0, TERN_TIMEOUTS(TERN_NEVER, TERN_NEVER));
    if (error != TERN_OK)
        /* Without a number the porter has no window. */
        return error == TERN_NO_WINDOW ? TERN_LIMIT : error;
    *copy = (uint32_t)message.words[0];
    return (int)message.label;
}
