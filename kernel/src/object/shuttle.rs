//! Shuttle: the unit that the scheduler schedules; priority, time slice, accounting (row D6, and P10's donation).
//!
//! Every thread has one of its own, its *home* shuttle. A call lends it to the thread that is called, an answer gives
//! it back, and the fast path does both by copying or comparing one word, the [`ShuttleRef`]. All moves are in
//! [`lend`](crate::lend).
//!
//! A reference holds the shuttle's *epoch*. When a caller is cut off (timeout, abort, end of its partner), its
//! shuttle comes home by raising the epoch: any thread of the old chain that still runs or will run holds a stale
//! reference, finds that out at its next slow event, and goes on with its own home shuttle. Cutting a chain is
//! therefore a constant amount of work, however long the chain is, and allocates nothing.

use super::ThreadRef;
use crate::lend::word::Word;
use crate::util::list::{Link, Tag};
use abi::Uid;
use abi::uid::{GENERATION_BITS, SLOT_BITS, SLOT_MASK, SLOT_SHIFT};
use core::cell::Cell;

/// Names a thread's home shuttle: the owner's uid, with the epoch in the place of what is not slot and generation. So the owner's control
/// block is found as by a uid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct ShuttleRef(pub u64);

/// Bits of a reference that name the owner.
const OWNER: u64 = ((1 << (SLOT_BITS + GENERATION_BITS)) - 1) << SLOT_SHIFT;

/// Number of bits below which the epoch lies, when a reference is rotated left by the bits above the owner.
const EPOCH_BITS: u32 = u64::BITS - SLOT_BITS - GENERATION_BITS;

impl ShuttleRef {
    /// No shuttle.
    pub const NONE: ShuttleRef = ShuttleRef(0);

    /// Packs owner and epoch. The epoch wraps after 2²⁸ cuts of one thread; a reference that is stale for so long
    /// would at worst have time charged to the wrong thread.
    pub const fn new(owner: Uid, epoch: u32) -> ShuttleRef {
        let epoch = epoch as u64 & ((1 << EPOCH_BITS) - 1);
        ShuttleRef(owner.0 & OWNER | epoch.rotate_right(EPOCH_BITS - SLOT_SHIFT))
    }

    /// Slot of the thread whose home shuttle this is.
    pub const fn slot(self) -> u32 {
        (self.0 as u32 & SLOT_MASK as u32) >> SLOT_SHIFT
    }

    /// The reference that replaces this one when the chain is cut.
    pub const fn next(self) -> ShuttleRef {
        let epoch = self.epoch().wrapping_add(1) & ((1 << EPOCH_BITS) - 1);
        ShuttleRef(self.0 & OWNER | epoch.rotate_right(EPOCH_BITS - SLOT_SHIFT))
    }

    /// How often the chain was cut since an older reference to this shuttle was made.
    pub const fn cuts_since(self, older: ShuttleRef) -> u64 {
        self.epoch().wrapping_sub(older.epoch()) & ((1 << EPOCH_BITS) - 1)
    }

    const fn epoch(self) -> u64 {
        self.0.rotate_left(EPOCH_BITS - SLOT_SHIFT) & ((1 << EPOCH_BITS) - 1)
    }

    /// Whether both name the same thread's shuttle, whatever the epoch.
    pub const fn same_owner(self, other: ShuttleRef) -> bool {
        (self.0 ^ other.0) & OWNER == 0
    }
}

/// A home shuttle, part of its owner's control block.
#[repr(C)]
pub struct Shuttle {
    /// Membership in a ready queue.
    pub link: Link,
    /// Thread that runs when this shuttle is scheduled; meaningful while it is in a ready queue.
    pub carrier: Cell<Option<ThreadRef>>,
    /// Time used, in nanoseconds.
    pub time_ns: Cell<u64>,
    /// Length of the time slice, in nanoseconds.
    pub slice_ns: Cell<u64>,
    /// Rest of the slice, in nanoseconds.
    pub left_ns: Cell<u64>,
    /// Reference that names this shuttle now; all others to it are stale.
    pub reference: Word,
    /// Priority, 0 (lowest) to 63.
    pub priority: Cell<u8>,
    /// Priority at which it is scheduled: its own, or that of the most urgent waiter that it has to serve; see [`inherit`](crate::inherit).
    pub effective: Cell<u8>,
    /// Priority at which its owner stands in a queue, while it does.
    pub stands_at: Cell<u8>,
    /// Whether its effective priority is to be computed anew.
    pub unsettled: Cell<bool>,
    /// Whether it is to have its own priority before that, so that it does not support itself.
    pub sinks: Cell<bool>,
}

/// Tag of the ready queues, which link shuttles through their owners.
pub struct Ready;

impl Tag for Ready {
    fn link(thread: &ThreadRef) -> &Link {
        &thread.home.link
    }
}
