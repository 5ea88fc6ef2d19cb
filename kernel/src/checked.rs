//! A kernel that checks itself: the invariants of [`check`](crate::check) at each exit from it.
//!
//! The boot option `check=SEED` turns this on. At each exit the threads concerned are checked: the one that goes on, the one that went
//! on at the exit before, their partners, servers and shuttles, and the queues of those. All threads and queues
//! are checked now and then, and all spaces and accounts too, but less often: at intervals that look random and follow from
//! the seed.
//!
//! The fast path's exits do not count. With the fast path off (`fastpath=off`) there are none, so that each system
//! call is checked; with it on, what the fast path leaves behind is checked at the next exception, interrupt, or call that
//! it does not take.
//!
//! This file decides which checks are made when, and is the same on all machines. Its caller is `entry/x86_64/checked.rs`, at no cost
//! where nobody asks for checks.

use crate::kernel::Kernel;
use crate::object::ThreadRef;
use abi::Uid;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Exits among which all threads and queues are checked once, on average. Some 100 threads then take a tenth of the time.
const THREADS_EVERY: u64 = 16;

/// Exits among which everything is checked once, on average: all page tables, which takes as long as some thousand exits.
const ALL_EVERY: u64 = 1024;

/// State that the checks keep from one exit to the next.
#[derive(Default)]
pub struct Checks {
    /// State of the generator; 0: it was not seeded.
    random: AtomicU64,
    /// Name of the thread that went on at the last exit.
    last: AtomicU64,
    /// Sum of the frames of tasks, those they paid for uids, and the free ones, less the reserve, plus 1; 0 before it was counted.
    sum: AtomicU64,
}

impl Checks {
    /// Checks that are not seeded yet.
    pub const fn new() -> Checks {
        Checks { random: AtomicU64::new(0), last: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }

    /// Starts the generator. To be called once, before the first exit.
    pub fn seed(&self, seed: u64) {
        self.random.store(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, Relaxed);
    }

    /// The next number (xorshift64*).
    fn draw(&self) -> u64 {
        let mut state = self.random.load(Relaxed);
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.random.store(state, Relaxed);
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }

    /// Makes the checks of one exit. `next` goes on, in user mode or between two steps; it is the current thread.
    pub fn at_exit(&self, k: &Kernel, next: ThreadRef) {
        next.tcb().check_stack();
        let last = Uid(self.last.swap(next.name.get().0, Relaxed));
        let draw = self.draw();
        if draw.is_multiple_of(ALL_EVERY) {
            self.check_all(k);
        } else if draw.is_multiple_of(THREADS_EVERY) {
            k.check_threads();
        } else {
            k.check_around(next);
            if let Some(last) = k.named(last).filter(|&last| last != next) {
                k.check_around(last);
            }
        }
    }

    /// Checks everything, and that no frame was lost since the first time.
    fn check_all(&self, k: &Kernel) {
        let somebodys = (k.check() + k.pool.free_frames()) as u64;
        let sum = somebodys + k.worn() as u64 - k.reserve() as u64 + 1;
        match self.sum.swap(sum, Relaxed) {
            0 => {}
            before => assert_eq!(sum, before, "frames are lost, or somebody's twice"),
        }
    }
}
