/* The stubs of a program with both sides in it, over Tern's ipc, or ON_DOOR through a door: STUBS, and what a call ends in.
 *
 * A program has the functions that carry a message, as for ipc, or some of them, and answers one with ANSWER. Through a door, that is a call as the
 * kernel makes it: it begins at the interface's entry, on a stack of its own, with the words in the kernel's registers, and does
 * not come back from its last instruction. */

#include "check.h"
#include <tern.h>

#define QUILL_OWN_IPC
/* Of these, a program has what it needs. */
#define MAY_BE __attribute__((weak))
MAY_BE uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back);
MAY_BE uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back);
MAY_BE uint32_t quill_ipc_send(tern_uid server, uint32_t label, const uint64_t *words);
MAY_BE uint32_t quill_ipc_send_long(tern_uid server, uint32_t label, const uint64_t *words);

#define PEER_NUMBER 3

#ifndef ON_DOOR

#include STUBS

/* What a client calls. */
#define TO(interface) PEER_NUMBER
/* The first parameters of a method; and those, handed on. */
#define SELF void *self, tern_uid from
#define SAME_SELF self, from
#define SERVES(interface, methods)
#define ROOM(interface) interface##_room
#define ANSWER(interface, methods, self, partner, label, words, room, kept, in_memory) \
    quill_answer(interface##_dispatch, methods, self, partner, label, words, room, kept, in_memory)

#else

#define QUILL_SYSCALL "call exchange"
static __attribute__((unused)) uint64_t quill_door_call(uint32_t door, uint32_t label, uint64_t *words, unsigned there, unsigned back);
static __attribute__((unused)) uint64_t quill_door_call_long(uint32_t door, uint32_t label, uint64_t *words, unsigned there, unsigned back);
/* Who hands references over has these, and what the library has of numbers. */
MAY_BE uint64_t quill_door_call_item(uint32_t door, uint32_t label, uint64_t *words, unsigned there, unsigned back);
MAY_BE tern_fpage quill_set_window(tern_fpage window);
MAY_BE int released(uint32_t number);
#define QUILL_RELEASE(number) (released != NULL ? (void)released(number) : (void)0)

#include STUBS

#define TO(interface) ((interface){ PEER_NUMBER, 0 })
#define SELF void *self
#define SAME_SELF self
/* Defines the entry. */
#define SERVES(interface, methods) interface##_ENTRY(door_of, methods, NULL)
/* What it would be. */
static __attribute__((unused)) const tern_uid from = 7;

/* A quill_door_room, and buffers behind it. */
struct room {
    uint64_t words[QUILL_ROOM_WORDS], strings[2 * QUILL_ROOM_STRINGS];
    char buffers[80000];
};
#define ROOM(interface) struct room

#include "registers.h"

__attribute__((used)) void (*door_entry)(void);
/* How many returns come back with an error, as if their caller had no room. */
__attribute__((used)) uint32_t undelivered;
void door_begin(void);

/* `door_begin` begins a call, and comes back with what was returned. `exchange` is where a server returns. */
__asm__(".text\n.globl exchange\n"
        "exchange:\n\t"
        "cmpl $0, undelivered(%rip)\n\tje 1f\n\t"
        "decl undelivered(%rip)\n\tmov $8, %eax\n\tret\n"
        "1:\n\t"
        KEEP_REGISTERS
        "mov client_stack(%rip), %rsp\n\t"
        BACK_TO_THE_CLIENT
        ".globl door_begin\n"
        "door_begin:\n\t"
        ON_TO_THE_SERVER
        "mov $0x1111, %ecx\n\tmov $0x2222, %r11d\n\tjmp *door_entry(%rip)\n");

/* Begins a call at an entry: rax and the words are replaced by those of the return. */
static __attribute__((unused)) uint64_t through_door(void (*entry)(void), const void *object, uint64_t rax, uint64_t *words)
{
    static _Alignas(16) uint64_t stack[1 << 14];

    door_entry = entry;
    server_stack = (uintptr_t)(stack + (1 << 14));
    registers[0] = rax;
    registers[1] = (uintptr_t)object;
    memcpy(registers + 2, words, 8 * QUILL_WORDS);
    door_begin();
    memcpy(words, registers + 2, 8 * QUILL_WORDS);
    return registers[0];
}

/* A request by a door, answered as quill_answer does. */
static __attribute__((unused)) uint32_t answer_by_door(void (*entry)(void), const void *object, uint32_t label, uint64_t *words, void *room,
                                   bool *in_memory)
{
    uint32_t kind = room != NULL ? QUILL_DOOR_LONG_CALL : TERN_DOOR_CALL;
    uint64_t rax = through_door(entry, object, (uint64_t)label << 32 | kind, words);
    bool is_long = (rax & QUILL_NO_BLOCK) == 0;

    CHECK((uint32_t)(rax | QUILL_NO_BLOCK) == TERN_DOOR_RETURN && (!is_long || in_memory != NULL));
    if (in_memory != NULL)
        *in_memory = is_long;
    return (uint32_t)(rax >> 32);
}

#define ANSWER(interface, methods, self, partner, label, words, room, kept, in_memory) \
    ((void)(partner), (void)(kept), answer_by_door(door_of, self, label, words, room, in_memory))

/* A reply as it is through a door. */
static __attribute__((unused)) uint64_t as_return(uint64_t rax)
{
    return (uint32_t)rax >> 31 == 0 ? rax : rax ^ QUILL_DOOR_KIND;
}

static __attribute__((unused)) uint64_t quill_door_call(uint32_t door, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    return as_return(quill_ipc_call(door, label, words, there, back));
}

static __attribute__((unused)) uint64_t quill_door_call_long(uint32_t door, uint32_t label, uint64_t *words, unsigned there, unsigned back)
{
    return as_return(quill_ipc_call_long(door, label, words, there, back));
}

#endif
