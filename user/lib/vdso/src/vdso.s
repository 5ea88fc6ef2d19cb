# A shared library of one page, without sections: ELF specification 1.2 and its supplement for AMD64; versions of symbols as in the Linux Standard
# Base 10.7. All numbers in it are offsets in the page.

    .section .rodata.linux_vdso, "a"
    .balign {page}
    .globl linux_vdso
linux_vdso:
    .byte 0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0
    .zero 8
    .short 3, 62                                // shared library, AMD64
    .long 1
    .quad 0
    .quad .Lvdso_segments - linux_vdso
    .quad 0                                     // no sections
    .long 0
    .short 64, 56, 2, 64, 0, 0

.Lvdso_segments:
    .long 1, 5                                  // PT_LOAD, to be read and executed
    .quad 0, 0, 0, {page}, {page}, {page}
    .long 2, 4                                  // PT_DYNAMIC
    .quad .Lvdso_dynamic - linux_vdso, .Lvdso_dynamic - linux_vdso, .Lvdso_dynamic - linux_vdso
    .quad .Lvdso_dynamic_end - .Lvdso_dynamic, .Lvdso_dynamic_end - .Lvdso_dynamic, 8

.Lvdso_dynamic:
    .quad 14, .Lvdso_name - .Lvdso_texts        // DT_SONAME
    .quad 4, .Lvdso_hashes - linux_vdso         // DT_HASH
    .quad 5, .Lvdso_texts - linux_vdso          // DT_STRTAB
    .quad 6, .Lvdso_symbols - linux_vdso        // DT_SYMTAB
    .quad 10, .Lvdso_texts_end - .Lvdso_texts   // DT_STRSZ
    .quad 11, 24                                // DT_SYMENT
    .quad 0x6ffffff0, .Lvdso_versions - linux_vdso
    .quad 0x6ffffffc, .Lvdso_defined - linux_vdso
    .quad 0x6ffffffd, 2                         // DT_VERDEFNUM
    .quad 0, 0
.Lvdso_dynamic_end:

.Lvdso_symbols:
    .zero 24
    .macro vdso_symbol name
    .long .Lvdso_text_\name - .Lvdso_texts
    .byte 0x12, 0                               // a global function
    .short 1
    .quad .Lvdso_\name - linux_vdso, .Lvdso_\name\()_end - .Lvdso_\name
    .endm
    vdso_symbol clock_gettime
    vdso_symbol gettimeofday
    vdso_symbol time
    vdso_symbol getcpu

.Lvdso_hashes:                                  // one bucket: all symbols in a row
    .long 1, 5, 1
    .long 0, 2, 3, 4, 0

.Lvdso_versions:
    .short 0, 2, 2, 2, 2
    .balign 4
.Lvdso_defined:
    .short 1, 1, 1, 1                           // the library itself
    .long 0x0deebfa1, 20, 28
    .long .Lvdso_name - .Lvdso_texts, 0
    .short 1, 0, 2, 1
    .long 0x03ae75f6, 20, 0
    .long .Lvdso_version - .Lvdso_texts, 0

.Lvdso_texts:
    .byte 0
.Lvdso_name:
    .asciz "linux-vdso.so.1"
.Lvdso_version:
    .asciz "LINUX_2.6"
.Lvdso_text_clock_gettime:
    .asciz "__vdso_clock_gettime"
.Lvdso_text_gettimeofday:
    .asciz "__vdso_gettimeofday"
.Lvdso_text_time:
    .asciz "__vdso_time"
.Lvdso_text_getcpu:
    .asciz "__vdso_getcpu"
.Lvdso_texts_end:

    // Nanoseconds since the machine's clock stood at 0, in rax. Lost: rdx, r8.
    .macro vdso_now
    movabs r8, {info}
    rdtsc
    shl rdx, 32
    or rax, rdx
    sub rax, [r8 + {tsc_start}]
    mul qword ptr [r8 + {tsc_to_ns}]
    shrd rax, rdx, 32
    .endm

    // Seconds in rax and the rest of the nanoseconds in rdx, of nanoseconds in rax. Lost: rcx.
    .macro vdso_seconds
    xor edx, edx
    mov ecx, 1000000000
    div rcx
    .endm

    // int clock_gettime(clockid_t edi, struct timespec *rsi). Clocks 0, 1 and 4 to 7 are known here, of which 0 and 5 tell the date.
    .balign 16
.Lvdso_clock_gettime:
    cmp edi, 7
    ja 3f
    mov eax, 0xf3
    bt eax, edi
    jnc 3f
    vdso_now
    mov ecx, 0x21
    bt ecx, edi
    jnc 2f
    add rax, [rip + .Lvdso_zero]
2:  vdso_seconds
    mov [rsi], rax
    mov [rsi + 8], rdx
    xor eax, eax
    ret
3:  mov eax, 228
    syscall
    ret
.Lvdso_clock_gettime_end:

    // int gettimeofday(struct timeval *rdi, struct timezone *rsi); each may be missing.
    .balign 16
.Lvdso_gettimeofday:
    test rsi, rsi
    jz 2f
    mov qword ptr [rsi], 0
2:  test rdi, rdi
    jz 3f
    vdso_now
    add rax, [rip + .Lvdso_zero]
    vdso_seconds
    mov [rdi], rax
    mov eax, edx
    xor edx, edx
    mov ecx, 1000
    div ecx
    mov [rdi + 8], rax
3:  xor eax, eax
    ret
.Lvdso_gettimeofday_end:

    // time_t time(time_t *rdi), which may be missing.
    .balign 16
.Lvdso_time:
    vdso_now
    add rax, [rip + .Lvdso_zero]
    vdso_seconds
    test rdi, rdi
    jz 2f
    mov [rdi], rax
2:  ret
.Lvdso_time_end:

    // int getcpu(unsigned *rdi, unsigned *rsi), each of which may be missing. There is one processor.
    .balign 16
.Lvdso_getcpu:
    xor eax, eax
    test rdi, rdi
    jz 2f
    mov [rdi], eax
2:  test rsi, rsi
    jz 3f
    mov [rsi], eax
3:  ret
.Lvdso_getcpu_end:

    .zero {zero} - (. - linux_vdso)
.Lvdso_zero:
    .quad 0
    .text
