//! Terminals: the line discipline between one that types and programs that read, as Linux's `n_tty` has it.
//!
//! Bytes come in one by one and are edited, echoed, or made signals; bytes of programs go out with their columns counted. Nothing waits in here, and time is
//! told by the caller. In reading order: [`settings`], [`input`], [`output`]; [`question`], how the size of a window is heard of. `ECHOPRT`, `PARMRK` and what concerns parity and breaks are without effect.

mod input;
mod output;
pub mod question;
mod settings;
#[cfg(test)]
mod tests;

use crate::errno::{EAGAIN, EINVAL, EIO, Result};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use linux_raw_sys::general::*;
use output::Column;
pub use output::GROWTH_MAX;
pub use settings::{Settings, TERMIOS_BYTES, TERMIOS2_BYTES};

/// Most bytes that wait for readers.
pub const QUEUE_MAX: usize = 4096;

/// Most bytes of echo that wait while output is stopped. More are lost.
const HELD_MAX: usize = 4096;

/// Room in the queue at which the other side is told to stop, if `IXOFF` is set; and bytes in it at which it may go on.
const THROTTLE: usize = 128;

/// A signal for the foreground process group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// `SIGINT`
    Interrupt,
    /// `SIGQUIT`
    Quit,
    /// `SIGTSTP`
    Suspend,
    /// `SIGWINCH`
    Resized,
    /// `SIGHUP`, and `SIGCONT` after it; the leader of the session gets both, too.
    HungUp,
}

impl Signal {
    /// Its number.
    pub const fn number(self) -> u32 {
        match self {
            Signal::Interrupt => SIGINT,
            Signal::Quit => SIGQUIT,
            Signal::Suspend => SIGTSTP,
            Signal::Resized => SIGWINCH,
            Signal::HungUp => SIGHUP,
        }
    }
}

/// Outcome of a change: things that the caller has to do.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Happened {
    /// Bytes to show, or to hand to the master of a pseudo terminal.
    pub echo: Vec<u8>,
    /// A signal to send.
    pub signal: Option<Signal>,
    /// All who wait to read have to look again.
    pub wakes_readers: bool,
    /// All who wait to write have to look again.
    pub wakes_writers: bool,
    /// Output that was written before and has not been shown is to be forgotten, before the echo.
    pub drops_output: bool,
}

/// Outcome of reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// So many bytes; none at the end of the input, or if the time is over.
    Bytes(usize),
    /// Nothing yet: again when there is input, or at this time at the latest.
    Wait {
        /// In nanoseconds, by the caller's clock.
        until_ns: Option<u64>,
    },
}

/// Whether a byte ends something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    None,
    /// The line ends with it.
    Line,
    /// The line ends before it: it is read by nobody.
    File,
}

/// A byte that was typed.
#[derive(Clone, Copy, Debug)]
struct Cell {
    byte: u8,
    end: End,
}

/// Size of a window.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Window {
    /// Lines.
    pub rows: u16,
    /// Characters of a line.
    pub columns: u16,
    /// Width and height in pixels, if they are known.
    pub pixels: (u16, u16),
}

impl Window {
    /// Bytes of `struct winsize`.
    pub fn bytes(&self) -> [u8; 8] {
        let mut bytes = [0; 8];
        let words = [self.rows, self.columns, self.pixels.0, self.pixels.1];
        for (to, word) in bytes.chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// From `struct winsize`.
    pub fn read(bytes: [u8; 8]) -> Window {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Window { rows: word(0), columns: word(2), pixels: (word(4), word(6)) }
    }
}

/// Fate of input when settings change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Nothing: `TCSETS`, and `TCSETSW`, before which the caller waits for output.
    Keep,
    /// Input that nobody has read is lost: `TCSETSF`.
    Flush,
}

/// A terminal.
#[derive(Debug, Default)]
pub struct Terminal {
    settings: Settings,
    window: Window,
    queue: VecDeque<Cell>,
    /// Cells of the queue that are lines which have ended.
    whole: usize,
    column: Column,
    /// The next byte is text, whatever it is.
    is_literal: bool,
    /// Output is stopped.
    is_stopped: bool,
    /// The other side was told to stop.
    is_throttled: bool,
    is_hung_up: bool,
    /// Echo from the time since output was stopped.
    held: Vec<u8>,
    /// When the last byte came.
    last_ns: u64,
}

impl Terminal {
    /// A terminal as Linux has them in the beginning.
    pub fn new() -> Terminal {
        Terminal::default()
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Settings as `struct termios2`, the first [`TERMIOS_BYTES`] of which are `struct termios`.
    pub fn settings_bytes(&self) -> [u8; TERMIOS2_BYTES] {
        self.settings.bytes()
    }

    /// Changes the settings: `struct termios` or `struct termios2`, by its length.
    pub fn set_settings(&mut self, bytes: &[u8], change: Change) -> Result<Happened> {
        let new = self.settings.changed(bytes)?;
        let mut happened = Happened::default();
        let old = core::mem::replace(&mut self.settings, new);
        if change == Change::Flush {
            self.flush_input(&mut happened);
        }
        if (old.local ^ new.local) & ICANON != 0 {
            self.is_literal = false;
            self.queue.iter_mut().for_each(|cell| cell.end = End::None);
            self.whole = 0;
            if new.local(ICANON)
                && let Some(last) = self.queue.back_mut()
            {
                // Bytes that were typed are a line.
                last.end = End::Line;
                self.whole = self.queue.len();
            }
        }
        if old.input(IXON) && !new.input(IXON) {
            self.start(&mut happened);
        }
        happened.wakes_readers = true;
        happened.echo = self.release(core::mem::take(&mut happened.echo));
        if self.is_throttled && !new.input(IXOFF) {
            self.unthrottle(&mut happened);
        }
        Ok(happened)
    }

    /// Size of its window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Changes the size of its window. The foreground gets a signal if it is another one.
    pub fn set_window(&mut self, window: Window) -> Happened {
        let signal = (self.window != window).then_some(Signal::Resized);
        self.window = window;
        Happened { signal, ..Happened::default() }
    }

    /// Bytes that can be typed before any is lost. A master of a pseudo terminal that writes more has to wait.
    pub fn room(&self) -> usize {
        let is_line = self.settings.local(ICANON);
        let left = (QUEUE_MAX - usize::from(is_line)).saturating_sub(self.queue.len());
        // A line that is too long for the queue loses its bytes: if it waited, nobody would ever read it.
        if is_line && self.whole == 0 { left.max(1) } else { left }
    }

    /// Bytes that can be read: `FIONREAD`.
    pub fn bytes_to_read(&self) -> usize {
        if !self.settings.local(ICANON) {
            return self.queue.len();
        }
        self.queue.range(..self.whole).filter(|cell| cell.end != End::File).count()
    }

    /// Whether a read would not wait, for `poll`.
    pub fn is_readable(&self) -> bool {
        if self.settings.local(ICANON) {
            return self.whole > 0 || self.is_hung_up;
        }
        let (min, time) = self.minimum();
        let wanted = if time == 0 { min.max(1) } else { 1 };
        self.queue.len() >= wanted || self.is_hung_up
    }

    /// Whether a write would not wait, as far as the terminal knows.
    pub fn is_writable(&self) -> bool {
        !self.is_stopped || self.is_hung_up
    }

    /// Whether nobody is at the other side any more.
    pub fn is_hung_up(&self) -> bool {
        self.is_hung_up
    }

    /// `VMIN`, and `VTIME` in tenths of a second.
    fn minimum(&self) -> (usize, u64) {
        let [min, time] = [VMIN, VTIME].map(|index| self.settings.characters[index as usize]);
        (usize::from(min), u64::from(time))
    }

    /// Reads. `began_ns`: when the call began, `now_ns`: now. What happened is to be done in either case.
    pub fn read(&mut self, to: &mut [u8], began_ns: u64, now_ns: u64) -> (Read, Happened) {
        let mut happened = Happened::default();
        if to.is_empty() || self.is_hung_up {
            return (Read::Bytes(0), happened);
        }
        if self.settings.local(ICANON) {
            if self.whole == 0 {
                return (Read::Wait { until_ns: None }, happened);
            }
        } else if let Err(until_ns) = self.suffices(to.len(), began_ns, now_ns) {
            return (Read::Wait { until_ns }, happened);
        }
        let count = if self.settings.local(ICANON) { self.take_line(to) } else { self.take(to) };
        if self.is_throttled && self.queue.len() <= THROTTLE {
            self.unthrottle(&mut happened);
        }
        if self.queue.is_empty() {
            // An idle terminal has no memory.
            self.queue = VecDeque::new();
        }
        (Read::Bytes(count), happened)
    }

    /// Whether a read without lines is over; otherwise until when it waits at most.
    fn suffices(&self, len: usize, began_ns: u64, now_ns: u64) -> core::result::Result<(), Option<u64>> {
        let (min, time) = self.minimum();
        let there = self.queue.len();
        if there >= min.max(1).min(len) || min == 0 && time == 0 {
            return Ok(());
        }
        // Time begins with the call if no byte has to come, and with each byte otherwise.
        let from_ns = if min == 0 { began_ns } else { began_ns.max(self.last_ns) };
        if time == 0 || min > 0 && there == 0 {
            return Err(None);
        }
        let until_ns = from_ns.saturating_add(time * 100_000_000);
        if now_ns >= until_ns { Ok(()) } else { Err(Some(until_ns)) }
    }

    fn take(&mut self, to: &mut [u8]) -> usize {
        let count = to.len().min(self.queue.len());
        for (to, cell) in to.iter_mut().zip(self.queue.drain(..count)) {
            *to = cell.byte;
        }
        count
    }

    /// Takes bytes of the first line.
    fn take_line(&mut self, to: &mut [u8]) -> usize {
        let mut count = 0;
        while self.whole > 0
            && let Some(&Cell { byte, end }) = self.queue.front()
        {
            // An end of file that is just behind the last byte that fits goes with it, so that the next read does not find it.
            if count == to.len() && end != End::File {
                break;
            }
            self.queue.pop_front();
            self.whole -= 1;
            if end == End::File {
                break;
            }
            to[count] = byte;
            count += 1;
            if end == End::Line {
                break;
            }
        }
        count
    }

    /// Writes: adds bytes for the screen, at most so many. Bytes that were taken; `EAGAIN`: none now; `EIO`: nobody is there.
    pub fn write(&mut self, bytes: &[u8], room: usize, to: &mut Vec<u8>) -> Result<usize> {
        if self.is_hung_up {
            return Err(EIO);
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.is_stopped {
            return Err(EAGAIN);
        }
        let end = to.len().saturating_add(room);
        let mut taken = 0;
        for &byte in bytes {
            let before = (to.len(), self.column);
            self.column.put(&self.settings, byte, to);
            if to.len() > end {
                to.truncate(before.0);
                self.column = before.1;
                break;
            }
            taken += 1;
        }
        if taken == 0 { Err(EAGAIN) } else { Ok(taken) }
    }

    /// Forgets bytes: `TCFLSH`. The caller forgets those of output if it is told to.
    pub fn flush(&mut self, queue: u32) -> Result<Happened> {
        let mut happened = Happened::default();
        if !matches!(queue, TCIFLUSH | TCOFLUSH | TCIOFLUSH) {
            return Err(EINVAL);
        }
        if queue != TCOFLUSH {
            self.flush_input(&mut happened);
        }
        if queue != TCIFLUSH {
            self.held = Vec::new();
            (happened.wakes_writers, happened.drops_output) = (true, true);
        }
        Ok(happened)
    }

    fn flush_input(&mut self, happened: &mut Happened) {
        (self.queue, self.whole, self.is_literal) = (VecDeque::new(), 0, false);
        if self.is_throttled {
            self.unthrottle(happened);
        }
    }

    /// Stops or starts output, or tells the other side to: `TCXONC`.
    pub fn flow(&mut self, action: u32) -> Result<Happened> {
        let mut happened = Happened::default();
        match action {
            TCOOFF => self.is_stopped = true,
            TCOON => self.start(&mut happened),
            TCIOFF => happened.echo.push(self.settings.characters[VSTOP as usize]),
            TCION => happened.echo.push(self.settings.characters[VSTART as usize]),
            _ => return Err(EINVAL),
        }
        happened.echo.retain(|&byte| byte != 0 || action == TCOON);
        Ok(happened)
    }

    /// Nobody is at the other side any more: reads end, writes fail, and what was typed is lost.
    pub fn hang_up(&mut self) -> Happened {
        let mut happened = Happened::default();
        if !self.is_hung_up {
            self.flush_input(&mut happened);
            (self.is_hung_up, self.is_stopped, self.held) = (true, false, Vec::new());
            happened = Happened {
                echo: Vec::new(),
                signal: Some(Signal::HungUp),
                wakes_readers: true,
                wakes_writers: true,
                drops_output: true,
            };
        }
        happened
    }

    /// Output goes on, with the echo that was held.
    fn start(&mut self, happened: &mut Happened) {
        if core::mem::take(&mut self.is_stopped) {
            let mut held = core::mem::take(&mut self.held);
            held.append(&mut happened.echo);
            happened.echo = held;
            happened.wakes_writers = true;
        }
    }

    /// Echo that may go out now; what may not is held.
    fn release(&mut self, echo: Vec<u8>) -> Vec<u8> {
        if !self.is_stopped {
            return echo;
        }
        let room = HELD_MAX.saturating_sub(self.held.len());
        self.held.extend(echo.into_iter().take(room));
        Vec::new()
    }

    /// Tells the other side to stop if there is little room.
    fn throttle(&mut self, happened: &mut Happened) {
        let stop = self.settings.characters[VSTOP as usize];
        let is_full = QUEUE_MAX - self.queue.len() < THROTTLE;
        // A line that has not ended is waited for, however long it is.
        let is_needed = self.settings.local(ICANON) && self.whole == 0;
        if self.settings.input(IXOFF) && stop != 0 && is_full && !is_needed && !self.is_throttled {
            self.is_throttled = true;
            happened.echo.push(stop);
        }
    }

    fn unthrottle(&mut self, happened: &mut Happened) {
        self.is_throttled = false;
        happened.echo.extend(Some(self.settings.characters[VSTART as usize]).filter(|&byte| byte != 0));
    }
}
