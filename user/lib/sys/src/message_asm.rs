//! The registers of a message, for inline assembly: written down once.

/// `asm!` around an ipc: `rax`, `rdx` and the eight words go in and out, `rbx` and `rbp`, which the compiler keeps for itself, are
/// saved around the lines, which may use them for w8 and w9. The operands for `r15`, `rcx` and `r11` follow.
///
/// There is no red zone that the pushes could hit: the targets of Tern have none.
#[macro_export]
macro_rules! message_asm {
    (
        $($line:literal),+;
        $rax:ident, $rdx:ident,
        [$w0:ident, $w1:ident, $w2:ident, $w3:ident, $w4:ident, $w5:ident, $w6:ident, $w7:ident];
        $($operands:tt)+
    ) => {
        core::arch::asm!(
            "push rbx",
            "push rbp",
            $($line,)+
            "pop rbp",
            "pop rbx",
            inout("rax") $rax,
            inout("rdx") $rdx,
            inout("rdi") $w0,
            inout("rsi") $w1,
            inout("r8") $w2,
            inout("r9") $w3,
            inout("r10") $w4,
            inout("r12") $w5,
            inout("r13") $w6,
            inout("r14") $w7,
            $($operands)+
        )
    };
}
