//! Lines that follow one another and are the same.

use crate::{Fault, Filter, Lines, Out};
use alloc::format;
use alloc::vec::Vec;
use core::ops::ControlFlow;

/// Lines of which one is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// All.
    #[default]
    All,
    /// Those that are there several times (`-d`).
    Repeated,
    /// Those that are there once (`-u`).
    Single,
}

/// The program `uniq`.
#[derive(Clone, Debug)]
pub struct Uniq {
    kept: Kept,
    counts: bool,
    lines: Lines,
    run: Run,
}

/// A line, and how often it has come. No time if there was none yet.
#[derive(Clone, Debug, Default)]
struct Run {
    line: Vec<u8>,
    count: u64,
}

impl Run {
    /// Takes the next line. If it is another one, the line before it is over.
    fn take(&mut self, line: &[u8], over: impl FnOnce(&Run)) -> Result<(), Fault> {
        if self.count > 0 && self.line == line {
            self.count += 1;
            return Ok(());
        }
        over(self);
        self.count = 1;
        self.line.clear();
        self.line.try_reserve(line.len())?;
        self.line.extend_from_slice(line);
        Ok(())
    }

    fn show(&self, kept: Kept, counts: bool, out: &mut Out) {
        let is_shown = match kept {
            Kept::All => self.count > 0,
            Kept::Repeated => self.count > 1,
            Kept::Single => self.count == 1,
        };
        if !is_shown {
            return;
        }
        if counts {
            out(format!("{:>7} ", self.count).as_bytes());
        }
        out(&self.line);
        out(b"\n");
    }
}

impl Uniq {
    /// One that shows these lines, with numbers in front if `counts`.
    pub fn new(kept: Kept, counts: bool) -> Uniq {
        Uniq { kept, counts, lines: Lines::default(), run: Run::default() }
    }
}

impl Filter for Uniq {
    fn take(&mut self, piece: &[u8], out: &mut Out) -> Result<ControlFlow<()>, Fault> {
        let Uniq { kept, counts, lines, run } = self;
        lines.take(piece, |line| run.take(line, |run| run.show(*kept, *counts, out)))?;
        Ok(ControlFlow::Continue(()))
    }

    fn end(&mut self, out: &mut Out) -> Result<(), Fault> {
        let Uniq { kept, counts, lines, run } = self;
        lines.end(|line| run.take(line, |run| run.show(*kept, *counts, out)))
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.run.show(self.kept, self.counts, out);
        Ok(())
    }
}
