//! Four levels of page tables with 512 entries each, in x86-64's form, for the real machine and the simulated one.
//!
//! [`pte`] is the form of an entry, plain arithmetic. [`space`] is the word that selects a space in the processor, with its tag, and what
//! must be forgotten. [`window`] is the slot of a top-level table through which a message is copied into another space. [`doors`] shows a
//! task's identifiers to the fast path. All of them get tables and words, and know no object of the kernel's. What they need of the
//! processor (`instructions`, `cpu`, `paging`, `user_copy`) is `x86_64`'s, or the simulated machine's by the same names.
//!
//! A machine with other tables gets a module of its own beside this one.

pub mod doors;
pub mod pte;
pub mod space;
pub mod window;

use core::cell::Cell;

/// A table of any level.
pub type Table = [Cell<u64>; 512];

/// Third-level entries, of 1 GiB each, that the words of all 2³² door identifiers take.
pub const DOORS_THIRD_ENTRIES: usize = 1 << (32 + 3 - 30);
