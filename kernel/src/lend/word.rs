//! The word that each thread has about a shuttle, and its possible meanings.

use crate::object::shuttle::ShuttleRef;
use abi::Uid;
use core::cell::Cell;

/// A reference to a shuttle that only [lending](super) changes.
#[repr(transparent)]
pub struct Word(Cell<ShuttleRef>);

impl Word {
    /// The reference.
    #[inline(always)]
    pub fn get(&self) -> ShuttleRef {
        self.0.get()
    }

    #[inline(always)]
    pub(super) fn set(&self, reference: ShuttleRef) {
        self.0.set(reference);
    }
}

/// Meaning of a thread's word about a shuttle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stake {
    /// The thread is on the shuttle.
    Holds,
    /// The thread has lent the shuttle to another, whose answer brings it back.
    Claims(Uid),
    /// The thread is on no shuttle.
    Nothing,
}
