//! `thread_switch` and `clock`.

use crate::arch;
use crate::args::{Args, done};
use crate::kernel::Kernel;
use crate::object::ThreadRef;
use crate::sched::Next;
use abi::{Error, Uid};

pub fn thread_switch(k: &Kernel, current: ThreadRef) -> Next {
    let to = Uid(Args(&current.frame).first());
    let thread = k.thread(to);
    let result = if to.is_nil() || thread.is_some() { Ok(()) } else { Err(Error::NoSuch) };
    let _ = done(current, result);
    match thread {
        Some(thread) if thread != current && thread.is_ready() && !thread.is_stopped() => {
            k.unqueue_thread(thread);
            k.wake(current);
            Next::To(thread)
        }
        _ if result.is_ok() => k.yield_now(current),
        _ => Next::Same,
    }
}

pub fn clock(current: ThreadRef) -> Next {
    Args(&current.frame).give([arch::now_ns()]);
    done(current, Ok(()))
}
