//! More tasks than a processor has tags for address spaces: the same tests, with tasks that share a tag, that have one used
//! before, and with one of each.
//!
//! That takes more kernel memory than a machine has by default (`kmem=96M`), so it is a run of its own.

use crate::check;
use crate::kit::{Outcome, progress};
use alloc::vec::Vec;
use sys::TaskId;

/// Tags that tasks can have for themselves.
const TAGS: u16 = 4094;

/// Which of the crowd leave, in the order in which the tests run, so that their tags are free for the tests' own tasks.
pub const STAGES: [(&str, core::ops::Range<u16>); 4] = [
    ("share a tag until they get another task's", 0..0),
    ("have a tag, or share one", 300..302),
    ("have tags that were used before", 40..200),
    ("are the only ones again", 0..u16::MAX),
];

/// Tasks without threads, which do nothing but have numbers.
pub struct Crowd(Vec<TaskId>);

impl Crowd {
    /// As many as it takes so that the next ones have to share a tag.
    pub fn gather() -> Outcome<Crowd> {
        let mut crowd = Vec::new();
        while crowd.last().is_none_or(|last: &TaskId| last.number() < TAGS + 100) {
            crowd.push(sys::task_create(2, 0)?);
            progress();
        }
        Ok(Crowd(crowd))
    }

    /// Ends those with these numbers.
    pub fn leave(&mut self, numbers: &core::ops::Range<u16>) -> Outcome {
        let before = self.0.len();
        for task in self.0.extract_if(.., |task| numbers.contains(&task.number())) {
            sys::task_destroy(task)?;
            progress();
        }
        check!(numbers.is_empty() || self.0.len() < before, "none of {numbers:?} is there");
        Ok(())
    }
}
