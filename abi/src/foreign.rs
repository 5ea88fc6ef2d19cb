//! Foreign calls: the registers in which a handler has the call of another system (row C7, decision 0082).

use crate::ThreadState;
use crate::state::register as at;

/// Registers of a thread in a foreign call, in the order in which its handler gets them: all but the stack pointer, and `rcx` and `r11`, which the
/// instruction itself overwrites.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Registers {
    /// The first argument.
    pub rdi: u64,
    /// The second argument.
    pub rsi: u64,
    /// The third argument.
    pub rdx: u64,
    /// The fourth argument.
    pub r10: u64,
    /// The fifth argument.
    pub r8: u64,
    /// The sixth argument.
    pub r9: u64,
    /// `rbx`.
    pub rbx: u64,
    /// `rbp`.
    pub rbp: u64,
    /// `r12`.
    pub r12: u64,
    /// `r13`.
    pub r13: u64,
    /// `r14`.
    pub r14: u64,
    /// `r15`.
    pub r15: u64,
    /// The number of the call, then its result.
    pub rax: u64,
}

impl Registers {
    /// Length of the block in bytes.
    pub const LEN_BYTES: u64 = size_of::<Registers>() as u64;

    /// The arguments of a call.
    pub const fn arguments(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9]
    }

    /// Those of a whole state.
    pub const fn of(state: &ThreadState) -> Registers {
        let all = &state.registers;
        Registers {
            rdi: all[at::RDI],
            rsi: all[at::RSI],
            rdx: all[at::RDX],
            r10: all[at::R10],
            r8: all[at::R8],
            r9: all[at::R9],
            rbx: all[at::RBX],
            rbp: all[at::RBP],
            r12: all[at::R12],
            r13: all[at::R13],
            r14: all[at::R14],
            r15: all[at::R15],
            rax: all[at::RAX],
        }
    }

    /// Puts them into a whole state, behind the `syscall` instruction.
    pub fn put(&self, state: &mut ThreadState) {
        let ip = state.registers[at::RIP];
        let flags = state.registers[at::RFLAGS];
        let all = [
            (at::RDI, self.rdi),
            (at::RSI, self.rsi),
            (at::RDX, self.rdx),
            (at::R10, self.r10),
            (at::R8, self.r8),
            (at::R9, self.r9),
            (at::RBX, self.rbx),
            (at::RBP, self.rbp),
            (at::R12, self.r12),
            (at::R13, self.r13),
            (at::R14, self.r14),
            (at::R15, self.r15),
            (at::RAX, self.rax),
            (at::RCX, ip),
            (at::R11, flags),
        ];
        for (index, value) in all {
            state.registers[index] = value;
        }
    }
}
