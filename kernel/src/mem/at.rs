//! Places in the spaces of tasks.

use super::step::Step;
use super::table::{self, Found};
use crate::object::TaskRef;

/// An address in a task; for other spaces, a number.
#[derive(Clone, Copy, PartialEq)]
pub struct At {
    /// The task.
    pub task: TaskRef,
    /// The address.
    pub address: u64,
}

impl At {
    /// This address in this task.
    #[inline(always)]
    pub fn new(task: TaskRef, address: u64) -> At {
        At { task, address }
    }

    /// Entry or table that is there.
    #[inline(always)]
    pub fn find(self, step: &Step) -> Found {
        table::find(step.pool(), self.task, self.address)
    }
}

/// Frames that two tasks use; the difference of two such sums says how many were taken in between.
pub fn frames(from: TaskRef, to: TaskRef) -> usize {
    from.used.get() as usize + to.used.get() as usize
}
