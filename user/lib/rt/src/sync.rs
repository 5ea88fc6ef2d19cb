//! Mutual exclusion between the threads of a program, and how they wait for one another: [`Mutex`], [`Condvar`], [`RwLock`],
//! [`channel`].
//!
//! A thread that finds a [`Mutex`] taken sleeps for a moment and looks again. Waiting by spinning would be wrong here:
//! priorities are strict, so an urgent thread that spins never lets the owner go on. Whoever may wait for long stands in a line
//! (`line`) and sleeps until it is woken; condition variables, locks for readers and channels are made of that.
//!
//! `line`, `condvar`, `rwlock` and `channel` know the system only as `system`, so that `tests/waiting` can run them, as they
//! are, through all their interleavings.

pub mod channel;
mod condvar;
mod line;
mod rwlock;
mod system;

use core::sync::atomic::{AtomicBool, Ordering};
use line::Line;
use talc::lock_api;

pub use channel::{Receiver, Sender};
pub use condvar::Condvar;
pub use rwlock::RawReadersLock;

/// A value that one thread at a time can use.
pub type Mutex<T> = lock_api::Mutex<RawLock, T>;

/// The right to use a [`Mutex`]'s value, until it is dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawLock, T>;

/// A value that many threads can read at a time, or one change. Who wants to change it goes before those who come to read later.
pub type RwLock<T> = lock_api::RwLock<RawReadersLock, T>;

/// The lock of a [`Mutex`].
#[derive(Debug)]
pub struct RawLock {
    /// Acquire in `try_lock` pairs with release in `unlock`.
    taken: AtomicBool,
}

/// How long a thread sleeps before it looks again, in µs.
const PAUSE_US: u64 = 100;

#[allow(unsafe_code)]
// SAFETY: `taken` changes from false to true in one atomic step, so only one thread holds the lock.
unsafe impl lock_api::RawMutex for RawLock {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawLock = RawLock { taken: AtomicBool::new(false) };
    type GuardMarker = lock_api::GuardSend;

    fn lock(&self) {
        while !self.try_lock() {
            // An aborted sleep only means that we look earlier.
            let _ = sys::sleep_us(PAUSE_US);
        }
    }

    fn try_lock(&self) -> bool {
        !self.taken.swap(true, Ordering::Acquire)
    }

    unsafe fn unlock(&self) {
        self.taken.store(false, Ordering::Release);
    }
}

impl Condvar {
    /// One that nobody waits for.
    pub const fn new() -> Condvar {
        Condvar { line: Mutex::new(Line::new()) }
    }
}

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}

#[allow(unsafe_code)]
// SAFETY: `rwlock` counts readers and the writer under a lock, and lets a writer in only when it is alone.
unsafe impl lock_api::RawRwLock for RawReadersLock {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawReadersLock = RawReadersLock { state: Mutex::new(rwlock::State::new()) };
    type GuardMarker = lock_api::GuardSend;

    fn lock_shared(&self) {
        self.enter_shared();
    }

    fn try_lock_shared(&self) -> bool {
        self.try_enter_shared()
    }

    unsafe fn unlock_shared(&self) {
        self.leave_shared();
    }

    fn lock_exclusive(&self) {
        self.enter_alone();
    }

    fn try_lock_exclusive(&self) -> bool {
        self.try_enter_alone()
    }

    unsafe fn unlock_exclusive(&self) {
        self.leave_alone();
    }
}
