//! What the tests are made of: agents, children, raw system calls, checks.

mod agent;
mod check;
mod frame;
mod later;
pub mod pager;
mod painted;
pub mod seen;
pub mod source;
mod stage;

pub use agent::{Agent, Attempt, Attempted, Thread, caught, door_entry, guarded, is_blocked, spawn};
pub use check::{Failure, Outcome};
pub use frame::{Frame, PLAIN_FLAGS, WORDS};
pub use later::{abort_later, stop_later};
pub use pager::Child;
pub use painted::{Found, Painter};
pub use seen::{fails, note};
pub use stage::{Client, Stage};

use core::sync::atomic::{AtomicU64, Ordering};
use sys::abi::Uid;

static PROGRESS: AtomicU64 = AtomicU64::new(0);

/// Tells the watchdog that a long test goes on.
pub fn progress() {
    PROGRESS.fetch_add(1, Ordering::Relaxed);
}

/// How often that was said.
pub fn progress_so_far() -> u64 {
    PROGRESS.load(Ordering::Relaxed)
}

/// Tries something that needs time: so many microseconds, and four times as many as long as these were too few on this machine.
/// False if half a minute would not do.
pub fn in_time_enough(us: u64, mut attempt: impl FnMut(u64) -> Outcome<bool>) -> Outcome<bool> {
    const LIMIT_US: u64 = 30_000_000;
    let mut us = us;
    while us <= LIMIT_US {
        progress();
        if attempt(us)? {
            return Ok(true);
        }
        us *= 4;
    }
    Ok(false)
}

/// Lets a thread run until something has happened. False if it did not in time enough.
pub fn runs_until(thread: Uid, mut has_happened: impl FnMut() -> Outcome<bool>) -> Outcome<bool> {
    in_time_enough(1000, |us| {
        sys::thread_switch(thread)?;
        if has_happened()? {
            return Ok(true);
        }
        sys::sleep_us(us)?;
        has_happened()
    })
}

core::arch::global_asm!(include_str!("kit.s"));

/// Where the program begins and ends in memory.
pub fn image() -> (u64, u64) {
    unsafe extern "C" {
        static suite_image_end: u8;
    }
    (rt::layout::IMAGE.start, &raw const suite_image_end as u64)
}

/// A generator of numbers that look random and repeat with their seed (xorshift64*).
#[derive(Clone, Copy)]
pub struct Random(u64);

impl Random {
    /// Starts a sequence.
    pub const fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}
