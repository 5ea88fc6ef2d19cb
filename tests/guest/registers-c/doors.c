/* Doors of the program, and calls through the partner's, with stubs and without. */

#include "registers.h"

#include <door/registers.h>

void answer(struct tern_message *message, const char *when)
{
    own_is_as_it_was(when);
    message->label = 0;
    tern_hide_x87();
    show_secret();
}

/* All calls through doors begin in one thread. */
void object_call(struct tern_message *message)
{
    answer(message, "behind a door");
}

TERN_DOOR_ENTRY(object_entry, object_call);

static quill_status turn_behind_door(void *self, double number, double *result)
{
    (void)self;
    own_is_as_it_was("behind the door of a stub");
    *result = number * 1.0;
    show_secret();
    return QUILL_OK;
}

static const Registers_Echo_server door_methods = { turn_behind_door };

Registers_Echo_ENTRY(stub_entry, door_methods, NULL)

int serve_doors(void *nothing)
{
    (void)nothing;
    own_begins(4);
    return tern_door_serve();
}

void make_doors(void)
{
    check(tern_door_create(OBJECT, object_entry, 0) == TERN_OK, "a door", "is made");
    check(tern_door_create(STUB, stub_entry, 0) == TERN_OK, "a door", "is made");
}

uint32_t call_by_door(double number, double *result)
{
    const Registers_Echo door = { PARTNER, 0 };

    show_secret();
    return Registers_Echo_turn(door, number, result);
}
