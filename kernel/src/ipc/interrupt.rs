//! Messages of interrupts: the thread that gets those of a line, and when the line is open (row C6). The line itself is in
//! [`crate::object::interrupt`].

use super::{end, outcome};
use crate::arch;
use crate::kernel::Kernel;
use crate::mem::space;
use crate::object::thread::{Wait, special};
use crate::object::{TaskRef, ThreadRef};
use abi::{Error, Uid};

/// Attaches `thread` to a line, if its task holds it.
pub(super) fn attach(k: &Kernel, thread: ThreadRef, number: u8) -> Result<(), Error> {
    let line = k.lines.line(number).ok_or(Error::Denied)?;
    if !space::holds_interrupt(k, thread.task(), number) {
        return Err(Error::Denied);
    }
    if line.thread.get() == Some(thread) {
        return Ok(());
    }
    if let Some(old) = line.thread.get() {
        detach(k, old);
    }
    detach(k, thread);
    line.thread.set(Some(thread));
    line.pending.set(0);
    thread.line.set(number as u16 + 1);
    // The line is masked until a wait releases it, and this receive may end without one.
    thread.set_special(special::INTERRUPT, 0);
    Ok(())
}

/// Undoes [`attach`]; the line is masked.
pub fn detach(k: &Kernel, thread: ThreadRef) {
    let Some(number) = thread.line.get().checked_sub(1) else { return };
    let line = &k.lines.0[number as usize];
    thread.line.set(0);
    thread.set_special(0, special::INTERRUPT);
    line.thread.set(None);
    line.masked.set(true);
    arch::irq_mask(number as u8);
}

/// Takes a line that `task` lost by flush from its thread.
pub(super) fn revoked(k: &Kernel, task: TaskRef, number: u8) {
    let Some(line) = k.lines.line(number) else { return };
    let Some(thread) = line.thread.get().filter(|thread| thread.task() == task) else { return };
    detach(k, thread);
    if thread.wait() == Wait::Closed(Uid::interrupt(number)) {
        end::fail_blocked(k, thread, Error::PartnerDied);
    }
}

/// Line of `thread` and number of its interrupts that are pending, if `thread` waits for `from`. They are taken.
pub(super) fn take_pending(k: &Kernel, thread: ThreadRef, from: Uid) -> Option<(u8, u64)> {
    let number = thread.line.get().checked_sub(1)? as u8;
    if from != Uid::ANY && from != Uid::interrupt(number) {
        return None;
    }
    let count = k.lines.0[number as usize].pending.replace(0);
    (count != 0).then_some((number, count))
}

/// Releases the line of `thread`, which is about to wait for `from`, if that is included.
pub(super) fn release(k: &Kernel, thread: ThreadRef, from: Uid) {
    let Some(number) = thread.line.get().checked_sub(1) else { return };
    if from != Uid::ANY && from != Uid::interrupt(number as u8) {
        return;
    }
    thread.set_special(0, special::INTERRUPT);
    if k.lines.0[number as usize].masked.replace(false) {
        arch::irq_unmask(number as u8);
    }
}

/// Sends the message of a line that fired: its driver gets it at once if it waits for one. Then it is ready, in no queue, and returned.
#[inline(always)]
pub fn fired(k: &Kernel, number: u8) -> Option<ThreadRef> {
    let line = &k.lines.0[number as usize];
    if arch::irq_is_level(number) || line.thread.get().is_none() {
        arch::irq_mask(number);
        line.masked.set(true);
    }
    arch::irq_acknowledge();
    let thread = line.thread.get()?;
    line.pending.set(line.pending.get() + 1);
    let open = match thread.wait() {
        Wait::Open => true,
        Wait::Closed(from) if from == Uid::interrupt(number) => false,
        _ => {
            thread.set_special(special::INTERRUPT, 0);
            return None;
        }
    };
    let count = line.pending.replace(0);
    k.wheel.remove(thread);
    outcome::deliver_interrupt(thread, number, count);
    if line.masked.get() {
        thread.set_special(special::INTERRUPT, 0);
    }
    if open {
        k.go_home(thread);
    }
    Some(thread)
}
