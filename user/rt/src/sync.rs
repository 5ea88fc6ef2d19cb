//! Mutual exclusion between the threads of a program.
//!
//! A thread that finds the lock taken sleeps for a moment and looks again. Waiting by spinning would be wrong here:
//! priorities are strict, so an urgent thread that spins never lets the owner go on.

use core::sync::atomic::{AtomicBool, Ordering};
use talc::lock_api;

/// A value that one thread at a time can use.
pub type Mutex<T> = lock_api::Mutex<RawLock, T>;

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
