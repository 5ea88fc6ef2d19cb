//! How the kernel comes to check itself at each exit: [`leave_kernel`](super::fast_path::leave_kernel) leads here where the boot
//! option `check=` asks for it, and not even a test does otherwise. What is checked is up to [`Checks`].
//!
//! The checks run on a stack of their own, since a thread's is as small as the kernel's own work needs it; interrupts are off.

use super::fast_path;
use crate::arch::stack::Stack;
use crate::checked::Checks;
use crate::object::thread::Hot;
use crate::{global, processor};

const STACK_SIZE: usize = 0x8000;

/// Size of [`STACK`].
pub(super) const STACK_BYTES: usize = size_of::<Stack<STACK_SIZE>>();

pub(super) static mut STACK: Stack<STACK_SIZE> = Stack::EMPTY;

static CHECKS: Checks = Checks::new();

/// From the next exit on the kernel checks itself. Once, before the first user runs.
pub fn start(seed: u64) {
    CHECKS.seed(seed);
    fast_path::check_exits();
}

/// The kernel is about to be left with the current thread.
pub(super) extern "C" fn on_exit(hot: *const Hot) {
    let current = processor::current();
    assert_eq!(
        hot,
        &raw const current.tcb().hot,
        "the kernel is left with another thread than the current one"
    );
    CHECKS.at_exit(global::kernel(), current);
}
