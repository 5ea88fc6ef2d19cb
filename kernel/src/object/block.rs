//! Block: where a thread receives the part of a message that lies in memory (rows P2, P3).
//!
//! It is registered once and holds for every receive, so that a receive names no memory and the fast path finds
//! everything checked: what it needs to open its window lies here ready-made.

use super::TaskRef;
use crate::arch;
use crate::kernel::Kernel;
use crate::layout::WINDOW_SIZE;
use crate::mem::table;
use crate::param::FAST_WORDS_MAX;
use abi::call::PATIENCE_US;
use abi::{Dope, Error, Timeout};
use core::cell::Cell;

/// A thread's block, part of its control block; zero is none.
#[repr(C)]
pub struct Block {
    /// Address in the thread's space.
    pub address: Cell<u64>,
    /// Its room; nothing is used.
    pub room: Cell<u64>,
    /// The fast path copies messages of fewer direct words than this. 0: none, not even an empty one.
    pub fast_below: Cell<u64>,
    /// Where the block appears in a sender's window.
    pub window: Cell<u64>,
    /// The top-level entry that shows it there.
    pub entry: Cell<u64>,
    /// Not about the block: where this thread's own task keeps the top-level entry of its window.
    pub slot: Cell<u64>,
    /// Nor this: what the thread shows to a partner that waits for it alone and takes a block; otherwise as
    /// [`Hot::key`](super::thread::Hot::key).
    pub answer_key: Cell<u64>,
    /// How long the thread takes part in a transfer that takes more than a step; a [`Timeout`]. Zero: as long as by default, but it does
    /// not wait for page faults on the partner's side.
    pub timeout: Cell<u32>,
    /// When that ends for the present transfer, in nanoseconds; means nothing before it has taken a step.
    pub patient_until: Cell<u64>,
}

impl Block {
    /// What a new thread has.
    pub fn init(&self, k: &Kernel, task: TaskRef) {
        self.slot.set(arch::window_slot(k, task));
        self.timeout.set(Timeout::from_us(PATIENCE_US).0);
    }

    /// The block's room.
    pub fn room(&self) -> Dope {
        Dope(self.room.get())
    }

    /// Registers a block, or none.
    pub fn set(&self, k: &Kernel, task: TaskRef, address: u64, room: Dope) -> Result<(), Error> {
        let end = address.checked_add(room.size()).ok_or(Error::BadArgument)?;
        let crosses = room != Dope::NONE && address / WINDOW_SIZE != (end - 1) / WINDOW_SIZE;
        if crosses || !room.is_valid() || room.with_used(Dope::NONE) != room || end > abi::USER_END {
            return Err(Error::BadArgument);
        }
        self.address.set(address);
        self.room.set(room.0);
        self.fast_below.set(0);
        let words = room.room_as_used().words().min(FAST_WORDS_MAX);
        // With its tables there, the entry that the window needs never changes.
        if words != 0 && table::ensure_way(&k.pool, task, address).is_some() {
            self.set_fast(k, task, address, words);
        }
        Ok(())
    }

    fn set_fast(&self, k: &Kernel, task: TaskRef, address: u64, words: u64) {
        if let Some((entry, window)) = arch::window_view(k, task, address, 8 * words) {
            self.entry.set(entry);
            self.window.set(window);
            self.fast_below.set(words + 1);
        }
    }
}
