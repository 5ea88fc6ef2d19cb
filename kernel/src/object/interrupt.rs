//! Interrupt: a line of the interrupt controller, seen as a thread that sends (row C6).
//!
//! A line is owned like a page: σ0 has all of them and maps them on. A thread whose task holds a line *attaches* to it
//! by its first receive from the line's uid; from then on the line's messages also come when it waits for anybody.
//!
//! A level-triggered line is masked when it fires and released by the driver's next receive; an edge-triggered line
//! stays open and is counted, since an edge that comes while it is masked would be lost.

use super::ThreadRef;
use crate::param::INTERRUPT_LINES;
use core::cell::Cell;

/// One line.
#[derive(Default)]
pub(crate) struct Line {
    /// Thread that is attached to it.
    pub(crate) thread: Cell<Option<ThreadRef>>,
    /// Number of interrupts that nobody has been told of.
    pub(crate) pending: Cell<u64>,
    /// Whether the controller lets none through.
    pub(crate) masked: Cell<bool>,
}

/// All lines.
pub struct Lines(pub(crate) [Line; INTERRUPT_LINES]);

impl Default for Lines {
    fn default() -> Self {
        Lines::new()
    }
}

impl Lines {
    /// All lines free and masked.
    pub const fn new() -> Lines {
        Lines(
            [const { Line { thread: Cell::new(None), pending: Cell::new(0), masked: Cell::new(true) } };
                INTERRUPT_LINES],
        )
    }

    /// The line with this number, if there is one.
    pub(crate) fn line(&self, number: u8) -> Option<&Line> {
        self.0.get(number as usize)
    }
}
