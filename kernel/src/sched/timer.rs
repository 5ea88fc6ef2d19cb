//! The timer: ends waits and time slices.

use crate::kernel::Kernel;
use crate::sched::Next;
use crate::{arch, ipc, param, processor};

/// The timer fired: ends timeouts that are due and slices that are used up.
pub fn fired(k: &Kernel) -> Next {
    let now = arch::now_ns();
    k.sched.armed_ns.set(u64::MAX);
    let _ = k.charge(now);
    let more = k.wheel.expire(now, param::EXPIRIES, |thread| ipc::end::expired(k, thread));
    let current = processor::current();
    let mut slice_end = u64::MAX;
    let mut next = Next::Any;
    if current != k.idle() && current.is_ready() {
        next = Next::Same;
        let owner = k.shuttle_of(current);
        if owner.home.left_ns.get() == 0 {
            owner.home.left_ns.set(owner.home.slice_ns.get());
            processor::space::renew_tag(k, current.task());
            k.enqueue(current, false);
            next = Next::Any;
        }
        slice_end = now + owner.home.left_ns.get();
    }
    // The running thread gets its share even if many timeouts end at once.
    if more {
        k.arm_at(slice_end.min(arch::now_ns() + param::EXPIRY_PAUSE_NS));
    } else {
        k.arm(slice_end);
    }
    next
}
