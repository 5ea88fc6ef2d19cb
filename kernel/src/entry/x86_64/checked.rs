//! Self-check of the kernel at each exit: [`leave_kernel`](super::fast_path::leave_kernel) leads here where the boot option `check=`
//! asks for it; elsewhere not even a test is executed. [`Checks`] decides what is checked.
//!
//! The checks run on a stack of their own, since a thread's is only as large as the kernel's own work needs; interrupts are off.

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

/// Makes the kernel check itself from the next exit on. Once, before the first user runs.
pub fn start(seed: u64) {
    CHECKS.seed(seed);
    fast_path::check_exits();
}

/// Checks the kernel, which is about to be left with the current thread.
pub(super) extern "C" fn on_exit(hot: *const Hot) {
    let current = processor::current();
    assert_eq!(
        hot,
        &raw const current.tcb().hot,
        "the kernel is left with another thread than the current one"
    );
    CHECKS.at_exit(global::kernel(), current);
}
