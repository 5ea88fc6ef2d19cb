//! Arguments and results of every system call but ipc, in registers that [`abi::call`] names.

use crate::object::ThreadRef;
use crate::object::thread::Frame;
use crate::sched::Next;
use abi::Error;
use abi::call::FLAGS;

/// Arguments and results of every call but ipc.
pub struct Args<'a>(pub &'a Frame);

impl Args<'_> {
    /// The first.
    pub fn rdi(&self) -> u64 {
        self.0.w[Frame::RDI].get()
    }

    /// The second.
    pub fn rsi(&self) -> u64 {
        self.0.w[Frame::RSI].get()
    }

    /// The third.
    pub fn rdx(&self) -> u64 {
        self.0.rdx.get()
    }

    /// The fourth.
    pub fn r10(&self) -> u64 {
        self.0.w[Frame::R10].get()
    }

    /// The fifth.
    pub fn r8(&self) -> u64 {
        self.0.w[Frame::R8].get()
    }

    /// The sixth.
    pub fn r9(&self) -> u64 {
        self.0.w[Frame::R9].get()
    }

    /// Stores results in the argument registers, in order.
    pub fn give<const N: usize>(&self, results: [u64; N]) {
        let f = self.0;
        let registers =
            [&f.w[Frame::RDI], &f.w[Frame::RSI], &f.rdx, &f.w[Frame::R10], &f.w[Frame::R8], &f.w[Frame::R9]];
        for (register, result) in registers.into_iter().zip(results) {
            register.set(result);
        }
    }
}

/// Leaves the call with an error code or success.
pub fn done(thread: ThreadRef, result: Result<(), Error>) -> Next {
    thread.frame.rax.set(result.err().map_or(0, |error| error as u64));
    thread.frame.r11.set(FLAGS);
    Next::Same
}
