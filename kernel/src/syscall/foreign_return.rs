//! Late returns from foreign calls (row C7, decision 0128): a handler that left a call unanswered sets the thread's registers and lets it go
//! on in one operation.
//!
//! The block is copied to the kernel stack of the thread first, which does not run, as a whole state is (see [`super::thread_state`]).

use super::thread_state::{place, wait_for_page};
use crate::arch::frame::RETURNED;
use crate::args::{Args, done};
use crate::ipc::foreign;
use crate::kernel::Kernel;
use crate::object::ThreadRef;
use crate::processor::copy;
use crate::sched::Next;
use abi::foreign::Registers;
use abi::{Error, Rights};

/// Returns from the foreign call of a thread.
pub fn late(k: &Kernel, current: ThreadRef, thread: ThreadRef, args: &Args) -> Next {
    let address = args.second();
    let is_aligned = address.is_multiple_of(align_of::<Registers>() as u64);
    if !is_aligned || address > abi::USER_END - Registers::LEN_BYTES {
        return done(current, Err(Error::BadArgument));
    }
    if !foreign::waits_for(current, thread) {
        return done(current, Err(Error::BadState));
    }
    let words = place(thread).first_chunk::<RETURNED>().expect("a state is larger");
    if let Err(at) = copy::load(address, words) {
        return wait_for_page(k, current, at, Rights::R);
    }
    thread.frame.set_returned(words);
    let _ = done(current, Ok(()));
    foreign::answer_later(k, current, thread)
}
