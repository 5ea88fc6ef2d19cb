//! Block: the memory into which a thread receives the blocks of messages (rows P2, P3).
//!
//! It is registered once and holds for every receive, so that a receive names no memory and the fast path finds
//! everything checked: the entry that it puts into its window lies here ready-made.

use abi::Dope;
use core::cell::Cell;

/// A thread's block, part of its control block; all zero if there is none.
#[repr(C)]
pub struct Block {
    /// Address in the thread's space.
    pub address: Cell<u64>,
    /// Its room, a [`Dope`] of which nothing is used.
    pub room: Cell<u64>,
    /// Bound of the fast path, which copies messages of fewer direct words than this. 0: none, not even an empty one.
    pub fast_below: Cell<u64>,
    /// Address at which the block appears in a sender's window.
    pub shown_at: Cell<u64>,
    /// Top-level entry that shows it there.
    pub entry: Cell<u64>,
    /// Slot of the window in the top-level table of this thread's own task. The fast path finds it here; it is not about the block.
    pub slot: Cell<u64>,
    /// Key that the thread shows to a partner that waits for it alone and takes a block; not about the block either. See
    /// [`Hot::key`](super::thread::Hot::key).
    pub answer_key: Cell<u64>,
    /// Patience of the thread, a [`Timeout`](abi::Timeout): how long it takes part in a transfer that takes more than a step. Zero: as
    /// long as by default, but it does not wait for page faults on the partner's side.
    pub timeout: Cell<u32>,
    /// Point in time at which its patience ends for the present transfer, in nanoseconds; means nothing before that has taken a step.
    pub patient_until: Cell<u64>,
}

impl Block {
    /// The block's room.
    pub fn room(&self) -> Dope {
        Dope(self.room.get())
    }
}
