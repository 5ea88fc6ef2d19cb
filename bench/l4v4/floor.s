# Three of the clients as one would write them by hand: the floor. Arguments are on the stack, ebx, esi, edi and ebp are the
# caller's, as for the compiler. They do less than generated stubs: they trust whoever answers, and do not look at the tag.

.text

# Registers that ipc destroys are kept; four words and the return address are then below the arguments.
.macro FLOOR name
.globl \name
\name:
    push %ebp
    push %ebx
    push %esi
    push %edi
.endm

.macro CALL_KERNEL tag
    mov 20(%esp), %eax                  # the server: to and from
    mov %eax, %edx
    mov $\tag, %esi
    call __L4_Ipc
.endm

.macro LEAVE_CLIENT
    pop %edi
    pop %esi
    pop %ebx
    pop %ebp
    ret
.endm

FLOOR floor_tiny
    mov %gs:0, %edi
    mov 24(%esp), %ecx
    mov %ecx, 4(%edi)
    xor %ecx, %ecx
    CALL_KERNEL 0x00000001
LEAVE_CLIENT

FLOOR floor_small
    mov %gs:0, %edi
    mov 24(%esp), %ecx
    mov %ecx, 4(%edi)
    mov 30(%esp), %ecx                  # both shorts in one register: c above, and b over what lies below
    mov 28(%esp), %cx
    mov %ecx, 8(%edi)
    xor %ecx, %ecx
    CALL_KERNEL 0x80000002
    mov %ebx, %eax
LEAVE_CLIENT

# Nine words there by one instruction for each, and nine back by two: an address, and a copy. The repetitions count.
FLOOR floor_large
    mov %gs:0, %edi
    lea 24(%esp), %esi
    mov $9, %ecx
    add $4, %edi
    rep movsl                           # ecx is 0 then, which means no timeout
    sub $40, %edi
    CALL_KERNEL 0x40000009
    mov 60(%esp), %ecx
    mov %ebx, (%ecx)
    mov 64(%esp), %ecx
    mov %ebp, (%ecx)
    lea 12(%edi), %esi
.irp argument, 68, 72, 76, 80, 84, 88, 92
    mov \argument(%esp), %edi
    movsl
.endr
LEAVE_CLIENT

.section .note.GNU-stack, "", @progbits
