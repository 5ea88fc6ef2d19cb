//! Step: what one stretch of map or flush may still do before the kernel looks for interrupts.
//!
//! Work is counted in units: a page that is handed on, or one that is looked at and taken from its only other owner. When they are
//! used up, whoever works returns [`Stop::Again`] and is called again; what is done shows in the tables and trees, so nothing
//! is lost or done twice. What takes most of a step, as a table or a large page that is split, is done only in one in which
//! nothing else was.

use super::budget::{Stop, again};
use super::pool::Pool;
use crate::global::known;
use crate::kernel::Kernel;
use crate::object::TaskRef;
use crate::object::mapping::{Mark, Node};
use crate::processor;
use core::num::NonZero;

/// Why there is nothing to be mapped at a place of the giver's.
pub enum Gap {
    /// It has nothing before this address.
    Until(NonZero<u64>),
    /// It cannot pay for a table or a node, or not in this step.
    Stop(Stop),
}

impl Gap {
    /// Nothing is there before this address, which is not 0.
    pub fn hole(until: u64) -> Gap {
        NonZero::new(until).map_or(Gap::Stop(Stop::NoMemory), Gap::Until)
    }
}

impl From<Stop> for Gap {
    fn from(stop: Stop) -> Gap {
        Gap::Stop(stop)
    }
}

/// Units that splitting a large page, or changing all its parts, costs.
const LARGE_UNITS: usize = 24;

/// With fewer units left, a step has done something large.
const LARGE_REST: usize = LARGE_UNITS / 2;

/// Nodes that are passed for one unit.
const PASSED_PER_UNIT: usize = 3;

/// One stretch of work.
pub struct Step<'k> {
    k: &'k Kernel,
    /// Units that are left.
    pub budget: usize,
    /// Nothing was done in this step yet, so there is room for what takes a whole one.
    pub is_fresh: bool,
    /// Whose threads go on with the work.
    pub task: TaskRef,
    /// A walk below a page was broken off, and the thread's bookmark says where.
    pub walking: bool,
    /// What the processor noted of the pages that were taken, as `flush` reports it.
    pub status: u64,
    /// Nodes that may still be passed for the last unit.
    passes: usize,
}

impl<'k> Step<'k> {
    /// A step with this many units, for work that threads of `task` go on with.
    #[inline(always)]
    pub fn new(k: &'k Kernel, budget: usize, task: TaskRef) -> Step<'k> {
        Step { k, budget, is_fresh: true, task, walking: false, status: 0, passes: 0 }
    }

    /// The kernel. What is in memory is no constant to the compiler, and this is one.
    #[inline(always)]
    pub fn k(&self) -> &'k Kernel {
        known(self.k)
    }

    /// The kernel's frames.
    #[inline(always)]
    pub fn pool(&self) -> &'k Pool {
        &self.k().pool
    }

    /// Begins what costs this many units; one at least must be left.
    #[inline(always)]
    pub fn begin(&mut self, units: usize) -> Result<(), Stop> {
        if self.budget == 0 {
            return Err(Stop::Again);
        }
        self.charge(units);
        Ok(())
    }

    /// Counts what was more than expected.
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

    /// Ends this step: what comes next is one of its own.
    pub fn stop<T>(&mut self) -> Result<T, Stop> {
        again(&mut self.budget)
    }

    /// Begins what takes a step of its own.
    pub fn begin_alone(&mut self) -> Result<(), Stop> {
        if self.is_fresh { Ok(()) } else { self.stop() }
    }

    /// Whether something as long as the change of a large page fits into this step.
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

    /// Breaks a walk below `root` off. Who takes a message for its sender leaves a long walk to that.
    pub fn leave(&mut self, root: &'static Node, mark: Mark) {
        let walker = processor::current().tcb();
        if walker.task() == self.task {
            walker.bookmark.leave(root, mark);
            self.walking = true;
        }
        self.budget = 0;
    }

    /// Where the walk below `root` was broken off that this step goes on with, if it does.
    pub fn resume(&mut self, root: &'static Node) -> Option<Mark> {
        if core::mem::take(&mut self.walking) { processor::current().bookmark.resume(root) } else { None }
    }
}
