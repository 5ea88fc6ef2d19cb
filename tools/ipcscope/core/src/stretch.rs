//! How long interrupts stay off: the longest stretches of kernel instructions between two moments at which the
//! processor would take one.
//!
//! This is for kernels that run with interrupts off, except where they look for them. A stretch ends at `sti`,
//! `hlt` and `sysret`, and with the first block of user code. An `iret` ends none by itself: it may lead back
//! into the kernel. What comes before the first `sysret` or `iret` is the start of the system and not measured.
//!
//! Behind an `sti` interrupts are on, until a `cli` or the first code that lies elsewhere: that is the handler of one, or code
//! that nobody has shown to be short. What runs until then belongs to no stretch.

use std::collections::HashMap;
use std::fmt::Write;

/// Shorter stretches are not told apart.
const LENGTH_MIN: u64 = 256;

/// How far behind an `sti` code may lie for which interrupts are on, in bytes.
const OPEN_BYTES: u64 = 32;

/// Blocks of a stretch that are remembered, to say where it was spent.
const BLOCKS_MAX: usize = 1 << 16;

/// Blocks of a stretch that are told: enough for the body of a loop with the functions that it calls.
const BLOCKS_TOLD: usize = 100;

/// Counts of the emulator itself.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// Kernel instructions executed.
    pub instructions: u64,
    /// Blocks of user code executed.
    pub user_blocks: u64,
}

/// Where a stretch began and ended: addresses of its first and of its last block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Ends {
    first: u64,
    last: u64,
}

/// The longest stretch between two places.
#[derive(Clone, Debug)]
struct Longest {
    instructions: u64,
    /// Blocks that were executed most often, with the number of times.
    blocks: Vec<(u64, usize)>,
}

/// Watches one processor.
#[derive(Default, Debug)]
pub struct Stretches {
    /// The system has left the kernel once.
    started: bool,
    /// It had when the present stretch began, so that counts.
    counts: bool,
    /// A moment for interrupts has come since the last block.
    ended: bool,
    /// The `sti` behind which the processor still is.
    open: Option<u64>,
    /// Interrupts were on until the last block.
    shut: bool,
    began: Counts,
    blocks: Vec<u64>,
    stretches: u64,
    longest: HashMap<Ends, Longest>,
}

impl Stretches {
    /// A block of kernel code is about to run.
    pub fn block(&mut self, pc: u64, counts: Counts) {
        if self.ended || counts.user_blocks != self.began.user_blocks {
            self.end(counts);
        } else if let Some(at) = self.open {
            let is_elsewhere = !(at..at + OPEN_BYTES).contains(&pc);
            self.open = self.open.filter(|_| !is_elsewhere);
            self.begin(counts);
        } else if std::mem::take(&mut self.shut) {
            self.begin(counts);
        }
        if self.blocks.len() < BLOCKS_MAX {
            self.blocks.push(pc);
        }
    }

    /// An `iret` of the kernel is about to run.
    pub fn leave(&mut self) {
        self.started = true;
    }

    /// An instruction of the kernel is about to run after which interrupts are taken, or the entry of one that was.
    pub fn open(&mut self) {
        self.ended = true;
        self.open = None;
    }

    /// The `sti` at this address is about to run.
    pub fn open_at(&mut self, pc: u64) {
        self.ended = true;
        self.open = Some(pc);
    }

    /// A `cli` is about to run.
    pub fn shut(&mut self) {
        self.shut = self.open.take().is_some();
    }

    /// A `sysret` is about to run.
    pub fn leave_open(&mut self) {
        self.leave();
        self.open();
    }

    fn end(&mut self, counts: Counts) {
        let instructions = counts.instructions - self.began.instructions;
        if self.counts && instructions >= LENGTH_MIN {
            self.note(instructions);
        }
        self.stretches += u64::from(self.counts);
        self.counts = self.started;
        self.ended = false;
        self.begin(counts);
    }

    fn begin(&mut self, counts: Counts) {
        self.began = counts;
        self.blocks.clear();
    }

    fn note(&mut self, instructions: u64) {
        let (Some(&first), Some(&last)) = (self.blocks.first(), self.blocks.last()) else { return };
        let known = self.longest.entry(Ends { first, last });
        let known = known.or_insert(Longest { instructions: 0, blocks: Vec::new() });
        if instructions > known.instructions {
            *known = Longest { instructions, blocks: most_frequent(&self.blocks) };
        }
    }

    /// One line for each pair of places, the longest first: instructions, first and last block, and the blocks that
    /// were executed most often with their counts. The last line says how many stretches there were.
    pub fn report(&self) -> String {
        let mut longest: Vec<_> = self.longest.iter().collect();
        longest
            .sort_by_key(|(ends, longest)| (std::cmp::Reverse(longest.instructions), ends.first, ends.last));
        let mut text = String::new();
        for (ends, Longest { instructions, blocks }) in longest {
            let _ = write!(text, "{instructions} {:#x} {:#x}", ends.first, ends.last);
            for (pc, times) in blocks {
                let _ = write!(text, " {pc:#x}*{times}");
            }
            text.push('\n');
        }
        let _ = writeln!(text, "{} stretches", self.stretches);
        text
    }
}

fn most_frequent(blocks: &[u64]) -> Vec<(u64, usize)> {
    let mut times: HashMap<u64, usize> = HashMap::new();
    blocks.iter().for_each(|pc| *times.entry(*pc).or_default() += 1);
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_by_key(|&(pc, times)| (std::cmp::Reverse(times), pc));
    times.truncate(BLOCKS_TOLD);
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs blocks of 100 instructions each; a block at 0 is a user's.
    struct Machine(Stretches, Counts);

    impl Machine {
        fn run(&mut self, blocks: &[u64]) {
            for &pc in blocks {
                if pc == 0 {
                    self.1.user_blocks += 1;
                } else {
                    self.0.block(pc, self.1);
                    self.1.instructions += 100;
                }
            }
        }
    }

    #[test]
    fn stretches_end_where_interrupts_are_taken() {
        let mut machine = Machine(Stretches::default(), Counts::default());
        machine.run(&[1; 100]);
        machine.0.leave_open();
        // A system call, one with a fault of the kernel's own in it, and one in two steps.
        machine.run(&[0, 2, 3, 3, 3]);
        machine.0.leave_open();
        machine.run(&[0, 2, 3]);
        machine.0.leave();
        machine.run(&[4, 5, 0, 2, 3, 6]);
        machine.0.open();
        machine.run(&[7, 7, 7, 8, 0, 9]);
        let expected = "400 0x2 0x3 0x3*3 0x2*1\n400 0x2 0x5 0x2*1 0x3*1 0x4*1 0x5*1\n\
                        400 0x7 0x8 0x7*3 0x8*1\n300 0x2 0x6 0x2*1 0x3*1 0x6*1\n4 stretches\n";
        assert_eq!(machine.0.report(), expected);
    }

    #[test]
    fn what_runs_with_interrupts_on_is_in_no_stretch() {
        let mut machine = Machine(Stretches::default(), Counts::default());
        machine.0.leave_open();
        // A long copy behind `sti`, once to its end, and once until an interrupt.
        machine.run(&[0, 0x100, 0x101, 0x102]);
        machine.0.open_at(0x102);
        machine.run(&[0x103; 50]);
        machine.0.shut();
        machine.run(&[0x104, 0x105, 0x106, 0, 0x100, 0x101, 0x102]);
        machine.0.open_at(0x102);
        machine.run(&[0x103; 50]);
        machine.run(&[0x800, 0x801, 0x802, 0]);
        machine.run(&[0x100]);
        let expected = "300 0x100 0x102 0x100*1 0x101*1 0x102*1\n300 0x104 0x106 0x104*1 0x105*1 0x106*1\n\
                        300 0x800 0x802 0x800*1 0x801*1 0x802*1\n4 stretches\n";
        assert_eq!(machine.0.report(), expected);
    }
}
