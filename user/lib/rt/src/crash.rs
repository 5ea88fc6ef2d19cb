//! The report of a crash, for the tools at the other end of the serial line: `xtask/src/crash.rs` makes functions, files and
//! lines of it. Terminals ignore it.
//!
//! ```text
//! ESC ] tern;crash PROGRAM rip rsp rbp rbx r12 r13 r14 r15 BEL
//! ESC ] tern;stack ADDRESS BYTES BEL                             as often as there is more of the stack
//! ESC ] tern;crashed BEL
//! ```
//!
//! All numbers are hexadecimal. PROGRAM is the name of its file in the boot archive.

use crate::{eprint, layout};
use core::fmt;

/// The registers of a report, in its order: where the program is, its stack, and what functions give back as they found it.
pub type Registers = [u64; 8];

/// Most bytes of the stack that are told: a dozen calls or more.
pub const STACK_LEN_MAX: u64 = 4096;

/// Bytes of the stack in one sequence.
const LINE_LEN: usize = 64;

/// Prints a report. `read` copies what lies on the stack at an address, and says how many bytes there are.
#[inline(never)]
pub fn report(program: &str, registers: &Registers, mut read: impl FnMut(u64, &mut [u8]) -> usize) {
    eprint!("\x1b]tern;crash {program}{}\x07", Words(registers));
    let from = stack_from(registers[1]);
    for at in (from..from.saturating_add(STACK_LEN_MAX)).step_by(LINE_LEN) {
        let mut line = [0; LINE_LEN];
        let len = read(at, &mut line).min(LINE_LEN);
        if len > 0 {
            eprint!("\x1b]tern;stack {at:x} {}\x07", Bytes(&line[..len]));
        }
        if len < LINE_LEN {
            break;
        }
    }
    eprint!("\x1b]tern;crashed\x07");
}

/// Where on a stack there is something: not below its end, if the stack pointer has gone there.
pub fn stack_from(sp: u64) -> u64 {
    match layout::STACKS.contains(&sp) {
        true => sp.max(sp / layout::STACK_SLOT * layout::STACK_SLOT + layout::STACK_GUARD),
        false => sp,
    }
}

struct Words<'a>(&'a [u64]);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.iter().try_for_each(|word| write!(f, " {word:x}"))
    }
}

struct Bytes<'a>(&'a [u8]);

impl fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The number of the thread, from 1 on, that has used up its stack: its access is in the part below the stack that is never mapped, and so is
/// its stack pointer, or nearly so.
pub fn overflown_stack(address: u64, sp: u64) -> Option<u64> {
    let slot = |at: u64| (layout::STACKS.end - 1 - at) / layout::STACK_SLOT;
    let is_below = |at: u64, room: u64| {
        layout::STACKS.contains(&at) && at % layout::STACK_SLOT < layout::STACK_GUARD + room
    };
    // A function that calls one with large variables writes below its stack pointer before it moves.
    let is_overflow = is_below(address, 0) && is_below(sp, layout::STACK_GUARD) && slot(address) == slot(sp);
    is_overflow.then(|| slot(address) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{STACK_GUARD, STACK_SLOT, STACKS};

    #[test]
    fn overflows_are_told_from_wild_pointers() {
        let first = STACKS.end - STACK_SLOT;
        let guard_end = first + STACK_GUARD;
        assert_eq!(overflown_stack(guard_end - 8, guard_end), Some(1));
        assert_eq!(overflown_stack(guard_end - 8, guard_end - 8), Some(1));
        assert_eq!(overflown_stack(guard_end - 8 - STACK_SLOT, guard_end - STACK_SLOT), Some(2));
        assert_eq!(overflown_stack(first, first), Some(1));
        // The stack is fine, the pointer is not.
        assert_eq!(overflown_stack(guard_end - 8, STACKS.end - 64), None);
        assert_eq!(overflown_stack(guard_end, guard_end), None);
        assert_eq!(overflown_stack(0, guard_end), None);
        assert_eq!(overflown_stack(guard_end - 8, 0), None);
        assert_eq!(overflown_stack(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn what_is_told_begins_where_the_stack_ends() {
        let first = STACKS.end - STACK_SLOT;
        assert_eq!(stack_from(first + STACK_GUARD - 8), first + STACK_GUARD);
        assert_eq!(stack_from(first + STACK_GUARD + 8), first + STACK_GUARD + 8);
        assert_eq!(stack_from(u64::MAX), u64::MAX);
        assert_eq!(stack_from(0), 0);
    }
}
