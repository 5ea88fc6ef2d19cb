//! Extended state: whose the registers beside those of a message are (row P17, decision 0078).
//!
//! **It belongs to the shuttle.** On a message only instruction pointer, stack pointer and space change; all else that the processor holds
//! passes to the partner as it is, with the shuttle. It is saved and loaded when the processor goes to another shuttle, into an area beside
//! that shuttle. So a message costs nothing for it, on the fast path or not, and a thread finds in these registers after an ipc what it left
//! there itself, or its partner, or the initial state; never what a third one left.
//!
//! A thread that faults, or raises an exception, has it back as its pager or handler leaves it, who are trusted with it.
//!
//! Two events part a thread from the shuttle that it is on:
//!
//! * The shuttle is taken back, since a wait of its owner ended. The state goes with the thread that is on it, home; the shuttle goes on
//!   with the initial state ([`part`]).
//! * A thread faults on a borrowed shuttle, which may be taken back while its pager works. So its state is kept with itself until it runs
//!   again ([`keep`]).
//!
//! An idle processor keeps what it holds: the last shuttle mostly is the next.

use crate::arch::extended::Extended;
use crate::kernel::Kernel;
use crate::lend::word::Stake;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, special};
use crate::processor;
use abi::Uid;

/// Makes the processor hold the state of the shuttle of `owner`, since it goes there from `current`.
#[inline(always)]
pub fn bring(k: &Kernel, current: ThreadRef, owner: ThreadRef) {
    let Some(last) = k.loaded.replace(Some(owner)) else { return owner.extended.load() };
    if last != owner {
        if current != k.idle() {
            last.context.state_of.set(current.name.get());
        }
        last.extended.exchange(&owner.extended);
    }
}

/// Notes that the processor is going to be idle, and holds the state of `current`.
pub fn rest(k: &Kernel, current: ThreadRef) {
    if current != k.idle()
        && let Some(last) = k.loaded.get()
    {
        last.context.state_of.set(current.name.get());
    }
}

/// Parts the shuttle of `owner`, which `taker` takes, from the thread that is on it: that thread's state goes with it to its own shuttle.
/// `lent`: the thread to which `taker` lent it, if any. All words about the shuttle are still as they were.
#[cold]
pub fn part(k: &Kernel, owner: ThreadRef, taker: ThreadRef, lent: Uid) {
    let (current, is_loaded) = (processor::current(), k.loaded.get() == Some(owner));
    let last = owner.context.state_of.get();
    if !is_loaded && last == Uid::NIL && lent == Uid::NIL {
        // Its owner ends, and nobody else was on it.
        return;
    }
    let last = last_on(k, owner);
    if last == Some(taker) || last == Some(owner) {
        return;
    }
    // A thread that waits for anybody has left its state here, and goes on with what its own shuttle has.
    let carrier = last.filter(|&last| carries(k, last, owner));
    // A thread that waits for its pager has the state back, even from a pager that is not done with it, or has ended; from no other thread.
    let left = last.map_or(owner.context.state_of.get(), |last| last.name.get());
    let keeps = taker == owner && owner.errand.get() != Errand::Ipc && left == lent;
    if is_loaded && (keeps || carrier.is_some_and(|carrier| carrier != current)) {
        owner.extended.save();
    }
    match carrier {
        Some(carrier) if is_loaded && carrier == current => k.loaded.set(Some(carrier)),
        Some(carrier) => {
            // The state that was kept of the carrier is with it already, and somebody may have set it since.
            if carrier.special.get() & special::STATE_KEPT == 0 {
                carrier.extended.copy_from(&owner.extended);
            }
            if is_loaded || k.loaded.get() == Some(carrier) {
                k.loaded.set(None);
            }
        }
        None if is_loaded => k.loaded.set(None),
        None => {}
    }
    owner.context.state_of.set(taker.uid());
    if !keeps {
        owner.extended.init();
    }
}

/// Keeps the state of the current thread, which faults on a borrowed shuttle, with the thread itself until it runs again.
#[cold]
pub fn keep(current: ThreadRef) {
    current.extended.save();
    current.set_special(special::STATE_KEPT, 0);
}

/// Sends what [`keep`] kept of a thread along with its own shuttle, which it lends: the borrowed one was taken back meanwhile. From now on that
/// state is where the shuttle's is, and whoever is on the shuttle replaces it.
#[cold]
pub fn goes_along(thread: ThreadRef) {
    if thread.hot.shuttle.get() == thread.home_ref() {
        thread.set_special(0, special::STATE_KEPT);
    }
}

/// Loads what [`keep`] kept of a thread, which is switched to.
pub fn load_kept(to: ThreadRef) {
    to.extended.load();
    to.set_special(0, special::STATE_KEPT);
}

/// Forgets what the processor holds of a shuttle whose owner is freed.
pub fn forget(k: &Kernel, owner: ThreadRef) {
    if k.loaded.get() == Some(owner) {
        k.loaded.set(None);
    }
}

/// The thread that last was on the shuttle of `owner`: it runs, or has left its state there.
fn last_on(k: &Kernel, owner: ThreadRef) -> Option<ThreadRef> {
    let (current, is_loaded) = (processor::current(), k.loaded.get() == Some(owner));
    if is_loaded && current != k.idle() { Some(current) } else { k.thread(owner.context.state_of.get()) }
}

/// Area with the state of a thread: beside the shuttle that it is on, or has lent; if that was taken from it, or the state was kept, beside its own.
fn place_of(k: &Kernel, thread: ThreadRef) -> ThreadRef {
    let is_kept = thread.special.get() & special::STATE_KEPT != 0;
    match thread.stake() {
        Stake::Holds if !is_kept => k.shuttle_of(thread),
        Stake::Claims(_) if !is_kept => k.owner(thread.hot.shuttle.get()).unwrap_or(thread),
        _ => thread,
    }
}

/// Longest chain of calls that is followed to whoever is on a shuttle that was lent.
const CHAIN_MAX: usize = 16;

/// Whether what is in the place of a thread's state is that of somebody else, who works on the shuttle that the thread lent: its pager, or a
/// server, or whom these called; or who has left it there, and is neither the thread nor the one to which it lent. The current thread is nobody
/// else. Such a state is not the thread's to be shown or changed.
pub fn is_with_another(k: &Kernel, thread: ThreadRef) -> bool {
    let lent = match thread.stake() {
        Stake::Claims(to) if thread.special.get() & special::STATE_KEPT == 0 => to,
        // Nobody else is on the shuttle that it holds, and what was kept is its own.
        _ => return false,
    };
    let owner = place_of(k, thread);
    if k.loaded.get() == Some(owner) && processor::current() != k.idle() {
        return false;
    }
    let is_trusted = [Uid::NIL, thread.name.get(), lent].contains(&owner.context.state_of.get());
    !is_trusted || is_lent_on(k, owner, lent)
}

/// Whether another thread than the current one is on the shuttle of `owner`, which that lent to `lent`: the last in the chain of calls. If one of
/// them has just ended, or the chain is longer than [`CHAIN_MAX`], it may be.
fn is_lent_on(k: &Kernel, owner: ThreadRef, mut lent: Uid) -> bool {
    for _ in 0..CHAIN_MAX {
        let Some(thread) = k.thread(lent) else { return true };
        match thread.stake() {
            Stake::Claims(to) => lent = to,
            Stake::Holds => {
                return thread != processor::current() && thread.hot.shuttle.get() == owner.home_ref();
            }
            Stake::Nothing => return false,
        }
    }
    true
}

/// Whether a thread is on the shuttle of `owner`, so that the state there is that thread's.
fn carries(k: &Kernel, thread: ThreadRef, owner: ThreadRef) -> bool {
    thread.stake() == Stake::Holds && k.shuttle_of(thread) == owner
}

/// Lets `work` see or change the state of a thread, in memory; if the processor holds it, it is saved before and loaded afterwards.
pub fn with<T>(k: &Kernel, thread: ThreadRef, work: impl FnOnce(&Extended) -> T) -> T {
    let owner = place_of(k, thread);
    if k.loaded.get() != Some(owner) {
        return work(&owner.extended);
    }
    owner.extended.save();
    let result = work(&owner.extended);
    owner.extended.load();
    result
}
