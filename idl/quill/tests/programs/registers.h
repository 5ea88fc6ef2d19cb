/* Where a server and its caller meet in a test that has a function in the place of the system call: the registers that the kernel would
 * hand on (rax, rdx, the words), and the stack that each has left. */

__attribute__((used)) uint64_t registers[13];
__attribute__((used)) uint64_t server_stack, client_stack;

/* What a server sends. */
#define KEEP_REGISTERS                                                                                  \
    "mov %rax, registers(%rip)\n\tmov %rdx, registers+8(%rip)\n\tmov %rdi, registers+16(%rip)\n\t"      \
    "mov %rsi, registers+24(%rip)\n\tmov %r8, registers+32(%rip)\n\tmov %r9, registers+40(%rip)\n\t"    \
    "mov %r10, registers+48(%rip)\n\tmov %r12, registers+56(%rip)\n\tmov %r13, registers+64(%rip)\n\t"  \
    "mov %r14, registers+72(%rip)\n\tmov %rbx, registers+80(%rip)\n\tmov %rbp, registers+88(%rip)\n\t"  \
    "mov %r15, registers+96(%rip)\n\t"

/* On the client's stack: goes on where that went on to the server. */
#define BACK_TO_THE_CLIENT                                                           \
    "pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop %rbx\n\tret\n"

/* What a server receives, on its own stack. */
#define ON_TO_THE_SERVER                                                                                \
    "push %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\t"                    \
    "mov %rsp, client_stack(%rip)\n\tmov server_stack(%rip), %rsp\n\t"                                  \
    "mov registers(%rip), %rax\n\tmov registers+8(%rip), %rdx\n\tmov registers+16(%rip), %rdi\n\t"      \
    "mov registers+24(%rip), %rsi\n\tmov registers+32(%rip), %r8\n\tmov registers+40(%rip), %r9\n\t"    \
    "mov registers+48(%rip), %r10\n\tmov registers+56(%rip), %r12\n\tmov registers+64(%rip), %r13\n\t"  \
    "mov registers+72(%rip), %r14\n\tmov registers+80(%rip), %rbx\n\tmov registers+88(%rip), %rbp\n\t"  \
    "mov registers+96(%rip), %r15\n\t"
