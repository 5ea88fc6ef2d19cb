//! Places in the spaces of tasks.

use super::step::Step;
use super::table::{self, Found};
use crate::object::TaskRef;

/// An address, or number, in a task.
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

    /// What is there.
    #[inline(always)]
    pub fn find(self, step: &Step) -> Found {
        table::find(step.pool(), self.task, self.address)
    }
}

/// Frames of two tasks; the difference says how many were made.
pub fn frames(from: TaskRef, to: TaskRef) -> usize {
    from.used.get() as usize + to.used.get() as usize
}
