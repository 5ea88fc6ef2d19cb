//! Arguments and results of every system call but ipc, in registers that [`abi::call`] names.

use crate::object::ThreadRef;
use crate::object::thread::Frame;
use crate::sched::Next;
use abi::Error;

/// Arguments and results of every call but ipc.
pub struct Args<'a>(pub &'a Frame);

impl Args<'_> {
    /// The first argument.
    #[inline(always)]
    pub fn first(&self) -> u64 {
        self.0.argument(0)
    }

    /// The second argument.
    #[inline(always)]
    pub fn second(&self) -> u64 {
        self.0.argument(1)
    }

    /// The third argument.
    #[inline(always)]
    pub fn third(&self) -> u64 {
        self.0.argument(2)
    }

    /// The fourth argument.
    #[inline(always)]
    pub fn fourth(&self) -> u64 {
        self.0.argument(3)
    }

    /// The fifth argument.
    #[inline(always)]
    pub fn fifth(&self) -> u64 {
        self.0.argument(4)
    }

    /// The sixth argument.
    #[inline(always)]
    pub fn sixth(&self) -> u64 {
        self.0.argument(5)
    }

    /// Stores results in the argument registers, in order.
    #[inline(always)]
    pub fn give<const N: usize>(&self, results: [u64; N]) {
        self.0.give(results);
    }
}

/// Ends the call with an error code or success.
pub fn done(thread: ThreadRef, result: Result<(), Error>) -> Next {
    thread.frame.finish(result.err().map_or(0, |error| error as u64));
    Next::Same
}
