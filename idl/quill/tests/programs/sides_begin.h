/* Both sides of an interface in one program, over each kernel part alike, with what stands in sides_end.h between them.
 *
 * A program says first which STUBS it includes and which INTERFACE it tests; for ON_TERN (and ON_DOOR there) the room of each string,
 * in REQUEST_STRINGS and REPLY_STRINGS; for ON_L4 which labels get no answer, in IS_ONEWAY. Then it has a server's `methods`
 * and the client's `calls`, in which EXPECT says what holds while messages arrive as they were sent. */

#ifdef ON_TERN
#include "on_tern.h"
#else
#include STUBS
#endif

#if defined(ON_L4)
#include "l4_kernel.h"
#elif !defined(ON_TERN)
#include "check.h"
#endif

#define JOINED(one, other) one##other
#define JOIN(one, other) JOINED(one, other)
#define OF(name) JOIN(INTERFACE, _##name)

#if defined(ON_TERN)
#define ROOM_OF(interface) ROOM(interface)
#define INSIDE 1 /* short lists lie in their values */
#define TO_IT(interface) TO(interface)
#define PEER TO_IT(INTERFACE)
#define PEER_REPLIES PEER, replies
static ROOM_OF(INTERFACE) *room;
static OF(replies) *replies;
#elif defined(ON_L4)
#define INSIDE 0
#define SELF void *self, quill_thread from
#define SAME_SELF self, from
#define PEER SERVER
#define PEER_REPLIES PEER
#else
#include <sys/wait.h>
#define INSIDE 0
#define SELF void *self, quill_memory *from
#define SAME_SELF self, from
#define PEER &way
#define PEER_REPLIES PEER
static quill_client way;
#endif

static bool sane = true;
static void called(void);

#define EXPECT(condition)      \
    do {                       \
        bool holds = (condition); \
        called();              \
        if (sane)              \
            CHECK(holds);      \
    } while (0)

static inline bool equal(const void *a, const void *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const char *)a)[i] != ((const char *)b)[i])
            return false;
    return true;
}

static inline uint32_t pick(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 9);
}
