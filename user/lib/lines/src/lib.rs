//! Programs that read lines and print lines, without files and pipes, so all of them run on the host.
//!
//! In reading order: [`Filter`] is one of them, and [`Lines`] cuts what comes into lines; [`Grep`], [`Head`], [`Sort`], [`Uniq`] and [`Wc`]; [`words`] takes apart what was typed behind the
//! name of a program.
//!
//! Lines are bytes, and end with a newline; behind the last one it may be missing. None keeps more in memory than a line, but for [`Sort`], and both have a limit.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod grep;
mod head;
mod lines;
mod sort;
mod uniq;
mod wc;
mod words;

pub use grep::{Choice, Grep};
pub use head::Head;
pub use lines::{LINE_MAX, Lines};
pub use sort::{Order, SORT_MAX, Sort};
pub use uniq::{Kept, Uniq};
pub use wc::Wc;
pub use words::{Words, words};

use alloc::collections::TryReserveError;
use core::fmt;
use core::ops::ControlFlow;

/// Where a filter prints.
pub type Out<'a> = dyn FnMut(&[u8]) + 'a;

/// Reason why a filter cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A line has more than [`LINE_MAX`] bytes; the number of the line, from 1 on.
    Long(u64),
    /// There is more to sort than [`SORT_MAX`].
    Much,
    /// Memory is used up.
    Memory,
}

impl From<TryReserveError> for Fault {
    fn from(_: TryReserveError) -> Fault {
        Fault::Memory
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Fault::Long(number) => write!(f, "line {number} has more than {} KiB", LINE_MAX >> 10),
            Fault::Much => write!(f, "more than {} KiB to sort", SORT_MAX >> 10),
            Fault::Memory => f.write_str("no memory left"),
        }
    }
}

/// A program that reads files, one behind the other, and prints.
pub trait Filter {
    /// A file begins. It has its name if several are read. The one before it may have been left without its end.
    fn begin(&mut self, _name: Option<&str>, _out: &mut Out) {}

    /// Takes a piece of the file. If it breaks, no more of the file is wanted.
    fn take(&mut self, piece: &[u8], out: &mut Out) -> Result<ControlFlow<()>, Fault>;

    /// The file has ended.
    fn end(&mut self, _out: &mut Out) -> Result<(), Fault> {
        Ok(())
    }

    /// All files have ended.
    fn finish(&mut self, _out: &mut Out) -> Result<(), Fault> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
