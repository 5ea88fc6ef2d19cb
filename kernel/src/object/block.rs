//! Block: where a thread receives the part of a message that lies in memory (rows P2, P3).
//!
//! It is registered once and holds for every receive, so that a receive names no memory and the fast path finds
//! everything checked: what it needs to open its window lies here ready-made.

use abi::Dope;
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
    /// How long the thread takes part in a transfer that takes more than a step; a [`Timeout`](abi::Timeout). Zero: as long as by default, but it does
    /// not wait for page faults on the partner's side.
    pub timeout: Cell<u32>,
    /// When that ends for the present transfer, in nanoseconds; means nothing before it has taken a step.
    pub patient_until: Cell<u64>,
}

impl Block {
    /// The block's room.
    pub fn room(&self) -> Dope {
        Dope(self.room.get())
    }
}
