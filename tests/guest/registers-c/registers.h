/* The parts of this program: what a thread in C relies on across a message (own.c), client and servers (main.c, doors.c), and a pager (pager.c). */
#ifndef REGISTERS_H
#define REGISTERS_H

#include <tern.h>

/* Words that nobody else is to find in vector registers; the partner knows them (tests/guest/hostile). */
#define SECRET 0x5ec4e75ec4e75ec4ul

/* Notes everything that a thread relies on, and sets it apart from what others have: the way of rounding, errno, thread-local numbers. */
void own_begins(int number);

/* Whether all of it is as it was, and computes with all of it. */
void own_is_as_it_was(const char *when);

/* Fills all vector registers with the secret. To be called right before a message leaves. */
static inline __attribute__((always_inline)) void show_secret(void);

/* Doors of this program, and the place of the partner's. */
enum { OBJECT = 2, STUB = 3, PARTNER = 4 };

/* Work of a server on a message, before it sends it back. */
void answer(struct tern_message *message, const char *when);

/* Makes the program's doors; the thread that serves them; a call through the partner's, by a stub. */
void make_doors(void);
int serve_doors(void *nothing);
uint32_t call_by_door(double number, double *result);

/* How often something was otherwise than it should be, in all threads. */
extern int failures;

void check(int is_so, const char *what, const char *when);

/* The pager and handler of another program's thread. */
int serve_faults(void *nothing);

extern unsigned char tern_processor;

static inline __attribute__((always_inline)) void show_secret(void)
{
    uint64_t secret = SECRET;

    __asm__ volatile(".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
                     "movq %0, %%xmm\\n\n\t"
                     "punpcklqdq %%xmm\\n, %%xmm\\n\n\t"
                     ".endr\n\t"
                     "testb %2, %1\n\t"
                     "jz 1f\n\t"
                     ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
                     "vinsertf128 $1, %%xmm\\n, %%ymm\\n, %%ymm\\n\n\t"
                     ".endr\n"
                     "1:"
                     :
                     : "r"(secret), "m"(tern_processor), "i"(TERN_HAS_AVX)
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

#endif
