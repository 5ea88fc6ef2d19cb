//! Step: the work that one stretch of map or flush may still do before the kernel looks for interrupts.
//!
//! Work is counted in units: a page that is handed on, or one that is looked at and taken from its only other owner. When they are
//! used up, the function at work returns [`Stop::Again`] and is called again; all that is done shows in the tables and trees, so nothing
//! is lost or done twice. Work that takes most of a step, such as a new table or the split of a large page, begins only in a step in which
//! nothing else was done.

use super::budget::{Stop, again};
use super::pool::Pool;
use crate::global::known;
use crate::kernel::Kernel;
use crate::object::TaskRef;
use crate::object::mapping::{Mark, Node};
use crate::processor;
use core::num::NonZero;

/// Reason why there is nothing to be mapped at an address of the giver's.
pub enum Gap {
    /// The giver has nothing before this address.
    Until(NonZero<u64>),
    /// The giver cannot pay for a table or a node, or not in this step.
    Stop(Stop),
}

impl Gap {
    /// A gap up to this address, which is not 0.
    pub fn hole(until: u64) -> Gap {
        NonZero::new(until).map_or(Gap::Stop(Stop::NoMemory), Gap::Until)
    }
}

impl From<Stop> for Gap {
    fn from(stop: Stop) -> Gap {
        Gap::Stop(stop)
    }
}

/// Price of splitting a large page, or of changing all its parts, in units.
const LARGE_UNITS: usize = 24;

/// Units below which a step has done something large.
const LARGE_REST: usize = LARGE_UNITS / 2;

/// Nodes that are passed for one unit.
const PASSED_PER_UNIT: usize = 3;

/// One stretch of work.
pub struct Step<'k> {
    k: &'k Kernel,
    /// Units that are left.
    pub budget: usize,
    /// Whether nothing was done in this step yet, so that work that takes a whole one may begin.
    pub is_fresh: bool,
    /// Task whose threads go on with the work.
    pub task: TaskRef,
    /// Whether a walk below a page was broken off; then the thread's bookmark stands where it was.
    pub walking: bool,
    /// Status bits that the processor noted of the pages that were taken, as `flush` reports them.
    pub status: u64,
    /// Number of nodes that may still be passed for the last unit.
    passes: usize,
}

impl<'k> Step<'k> {
    /// A step with this many units, for work that threads of `task` go on with.
    #[inline(always)]
    pub fn new(k: &'k Kernel, budget: usize, task: TaskRef) -> Step<'k> {
        Step { k, budget, is_fresh: true, task, walking: false, status: 0, passes: 0 }
    }

    /// The kernel. A field in memory is no constant to the compiler, but this is one.
    #[inline(always)]
    pub fn k(&self) -> &'k Kernel {
        known(self.k)
    }

    /// The kernel's frames.
    #[inline(always)]
    pub fn pool(&self) -> &'k Pool {
        &self.k().pool
    }

    /// Begins work of this price in units; one at least must be left.
    #[inline(always)]
    pub fn begin(&mut self, units: usize) -> Result<(), Stop> {
        if self.budget == 0 {
            return Err(Stop::Again);
        }
        self.charge(units);
        Ok(())
    }

    /// Charges work that was more than expected.
    #[inline(always)]
    pub fn charge(&mut self, units: usize) {
        self.budget = self.budget.saturating_sub(units);
    }

    /// Passes one node of a tree.
    pub fn pass(&mut self) -> Result<(), Stop> {
        if self.passes == 0 {
            self.begin(1)?;
            self.passes = PASSED_PER_UNIT;
        }
        self.passes -= 1;
        self.is_fresh = false;
        Ok(())
    }

    /// Ends this step: the work that follows is one of its own.
    pub fn stop<T>(&mut self) -> Result<T, Stop> {
        again(&mut self.budget)
    }

    /// Begins work that takes a step of its own.
    pub fn begin_alone(&mut self) -> Result<(), Stop> {
        if self.is_fresh { Ok(()) } else { self.stop() }
    }

    /// Whether work as long as the change of a large page fits into this step.
    pub fn has_room_for_large(&self) -> bool {
        self.is_fresh || self.budget >= LARGE_UNITS
    }

    /// Begins the change of a large page.
    pub fn begin_large(&mut self) -> Result<(), Stop> {
        if !self.has_room_for_large() {
            return self.stop();
        }
        self.charge(LARGE_UNITS);
        self.is_fresh = false;
        Ok(())
    }

    /// Ends a walk below a large page: it is longer than others, and behind a large change nothing more fits in.
    pub fn end_large(&mut self) {
        self.budget = if self.budget < LARGE_REST { 0 } else { self.budget - 3 };
    }

    /// Breaks a walk below `root` off. A thread that takes a message for its sender leaves a long walk to that one.
    pub fn leave(&mut self, root: &'static Node, mark: Mark) {
        let walker = processor::current().tcb();
        if walker.task() == self.task {
            walker.bookmark.leave(root, mark);
            self.walking = true;
        }
        self.budget = 0;
    }

    /// Mark at which the walk below `root` was broken off that this step goes on with, if it does.
    pub fn resume(&mut self, root: &'static Node) -> Option<Mark> {
        if core::mem::take(&mut self.walking) { processor::current().bookmark.resume(root) } else { None }
    }
}
