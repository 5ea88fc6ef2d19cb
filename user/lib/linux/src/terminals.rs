//! All terminals of a sandbox: that of the system, whose other side is the machine, and pseudo-terminals, whose other side is a process.
//!
//! A pseudo-terminal is a pair: bytes that are written to the master are typed at the slave, and what the slave shows is read from the master. It has a
//! number until both sides are closed; its name in `/dev/pts` goes with the master.

use crate::budget::Share;
use crate::errno::{EIO, ENOSPC, Result};
use crate::machine::Tid;
use crate::terminal::{GROWTH_MAX, Terminal, Window};
use alloc::collections::{BTreeMap, VecDeque};

/// Number of the system's terminal.
pub const SYSTEM: u32 = 0;

/// Most pseudo-terminals. Their numbers are those from 1 on.
pub const PAIRS_MAX: u32 = 64;

/// Bytes that wait for the reader of a master, at most, before whoever writes to the slave has to wait.
pub const OUTPUT_MAX: usize = 4096;

/// Bytes of the budget that a pseudo-terminal counts for: what is typed, what is held, and what waits for its reader.
pub const PAIR_BYTES: usize = 32 << 10;

/// Bytes of echo that wait beside them, at most. More are lost: whoever types does not wait for himself.
const ECHO_MAX: usize = 4096;

/// The other side of a pseudo-terminal.
#[derive(Debug)]
pub struct Pair {
    /// Whether the master is open.
    pub has_master: bool,
    /// Open files of the slave.
    pub slaves: u32,
    /// Whether the slave was open, and is not any more.
    pub is_left: bool,
    /// Whether the slave cannot be opened yet.
    pub is_locked: bool,
    /// Owner and group of the slave's name.
    pub owner: (u32, u32),
    /// Bytes for the reader of the master.
    output: VecDeque<u8>,
    _share: Share,
}

impl Pair {
    /// Bytes that can be read from the master.
    pub fn len(&self) -> usize {
        self.output.len()
    }

    /// Whether nothing can be read from the master.
    pub fn is_empty(&self) -> bool {
        self.output.is_empty()
    }

    /// Bytes that may be added.
    pub fn room(&self) -> usize {
        OUTPUT_MAX.saturating_sub(self.output.len())
    }

    /// Adds bytes that the slave has written, no more than there is [room](Pair::room) for.
    pub fn put(&mut self, bytes: &[u8]) {
        self.output.extend(bytes);
    }

    /// Adds what is shown because bytes were typed.
    pub fn echo(&mut self, bytes: &[u8]) {
        let room = (OUTPUT_MAX + ECHO_MAX).saturating_sub(self.output.len());
        self.output.extend(bytes.iter().take(room));
    }

    /// Takes bytes. How many.
    pub fn take(&mut self, to: &mut [u8]) -> usize {
        let count = to.len().min(self.output.len());
        for (to, byte) in to.iter_mut().zip(self.output.drain(..count)) {
            *to = byte;
        }
        if self.output.is_empty() {
            // An idle pair has no memory.
            self.output = VecDeque::new();
        }
        count
    }

    /// Forgets the bytes.
    pub fn clear(&mut self) {
        self.output = VecDeque::new();
    }
}

/// A terminal with the processes that are at it.
#[derive(Debug)]
pub struct Line {
    /// Its line discipline.
    pub terminal: Terminal,
    /// The session whose controlling terminal it is; 0: none.
    pub session: Tid,
    /// The process group in front; 0: none.
    pub foreground: Tid,
    /// The other side, unless that is the machine.
    pub pair: Option<Pair>,
}

impl Line {
    /// Bytes for the screen that it takes now.
    pub fn room(&self) -> usize {
        self.pair.as_ref().map_or(usize::MAX, Pair::room)
    }

    /// Whether a write would not wait. A byte becomes several when it is shown, so there has to be room for all of them.
    pub fn is_writable(&self) -> bool {
        self.terminal.is_writable() && (self.room() >= GROWTH_MAX || self.terminal.is_hung_up())
    }
}

/// Terminals by their numbers.
#[derive(Debug)]
pub struct Terminals(BTreeMap<u32, Line>);

impl Default for Terminals {
    /// That of the system, of the size that is usual, until somebody says another one.
    fn default() -> Terminals {
        let mut terminal = Terminal::new();
        terminal.set_window(Window { rows: 24, columns: 80, pixels: (0, 0) });
        let line = Line { terminal, session: 0, foreground: 0, pair: None };
        Terminals(BTreeMap::from([(SYSTEM, line)]))
    }
}

impl Terminals {
    /// A terminal.
    pub fn get(&self, number: u32) -> Option<&Line> {
        self.0.get(&number)
    }

    /// A terminal, to change it. `EIO` if it is gone.
    pub fn line(&mut self, number: u32) -> Result<&mut Line> {
        self.0.get_mut(&number).ok_or(EIO)
    }

    /// A pseudo-terminal, to change its other side. `EIO` if it is none.
    pub fn pair(&mut self, number: u32) -> Result<&mut Pair> {
        self.line(number)?.pair.as_mut().ok_or(EIO)
    }

    /// Makes a pseudo-terminal with a share of [`PAIR_BYTES`], whose master is open. `ENOSPC` if there are too many.
    pub fn make(&mut self, owner: (u32, u32), share: Share) -> Result<u32> {
        let number = (1..=PAIRS_MAX).find(|number| !self.0.contains_key(number)).ok_or(ENOSPC)?;
        let output = VecDeque::new();
        let (slaves, _share) = (0, share);
        let pair = Pair { has_master: true, slaves, is_left: false, is_locked: true, owner, output, _share };
        let line = Line { terminal: Terminal::new(), session: 0, foreground: 0, pair: Some(pair) };
        self.0.insert(number, line);
        Ok(number)
    }

    /// Forgets a pseudo-terminal that nobody has open.
    pub fn forget(&mut self, number: u32) {
        let is_open = |pair: &Pair| pair.has_master || pair.slaves > 0;
        let is_unused = |line: &Line| line.pair.as_ref().is_some_and(|pair| !is_open(pair));
        if self.0.get(&number).is_some_and(is_unused) {
            self.0.remove(&number);
        }
    }

    /// Pseudo-terminals.
    pub fn pairs(&self) -> usize {
        self.0.values().filter(|line| line.pair.is_some()).count()
    }

    /// Whether a number is that of a session with a terminal, or of a group that is in front, though it may have no processes.
    pub fn know(&self, number: Tid) -> bool {
        self.0.values().any(|line| line.session == number || line.foreground == number)
    }
}
