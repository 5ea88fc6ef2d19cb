//! Bytes out and in: [`print!`](crate::print!), [`println!`](crate::println!), [`read`], by way of the console server.
//!
//! The server is looked up when it is first needed, and again when it turns out to be gone.

use api::{Failure, Name, Result, console};
use arrayvec::ArrayVec;
use core::fmt::{Arguments, Write};
use core::sync::atomic::{AtomicU64, Ordering};
use sys::Uid;

/// A server that is looked up by name, and again when it is gone.
#[derive(Debug)]
pub struct Session {
    name: &'static str,
    server: AtomicU64,
}

/// How often a request is sent to a restarted server before its client hears of the failure.
const TRIES: usize = 3;

impl Session {
    /// A session with the server of this name; nothing is looked up yet.
    pub const fn new(name: &'static str) -> Session {
        Session { name, server: AtomicU64::new(0) }
    }

    /// Does something with the server.
    pub fn with<T>(&self, mut request: impl FnMut(Uid) -> Result<T>) -> Result<T> {
        let mut outcome = Err(Failure::Garbled);
        for _ in 0..TRIES {
            outcome = self.server().and_then(&mut request);
            match outcome {
                Err(failure) if failure.server_is_gone() => self.server.store(0, Ordering::Relaxed),
                _ => break,
            }
        }
        outcome
    }

    fn server(&self) -> Result<Uid> {
        let known = Uid(self.server.load(Ordering::Relaxed));
        if !known.is_nil() {
            return Ok(known);
        }
        let name = Name::new(self.name).ok_or(Failure::Garbled)?;
        let found = api::names::resolve(crate::home(), &name)?;
        self.server.store(found.0, Ordering::Relaxed);
        Ok(found)
    }
}

static CONSOLE: Session = Session::new(console::NAME);

/// Prints bytes. There is nobody to complain to, so failures are forgotten.
pub fn write(bytes: &[u8]) {
    match crate::start::hooks() {
        Some(hooks) => (hooks.write)(bytes),
        None => drop(CONSOLE.with(|server| console::write(server, bytes))),
    }
}

/// Waits for input; returns how many bytes came.
pub fn read(buffer: &mut [u8]) -> Result<usize> {
    CONSOLE.with(|server| console::read(server, buffer))
}

/// Waits until somebody types Ctrl-C, at most `patience_us`; what else is typed meanwhile stays to be read.
pub fn watch_interrupt_key(patience_us: u64) -> Result<()> {
    CONSOLE.with(|server| console::watch(server, patience_us))
}

/// Prints formatted text. The macros call it.
pub fn print(arguments: Arguments) {
    let mut line = Line::default();
    // Formatting into a line fails only if a `Display` of the program does.
    let _ = line.write_fmt(arguments);
    line.flush();
}

/// Collects pieces, so that a line travels in few messages.
#[derive(Default)]
struct Line(ArrayVec<u8, 240>);

impl Line {
    fn flush(&mut self) {
        if !self.0.is_empty() {
            write(&self.0);
            self.0.clear();
        }
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            if self.0.is_full() {
                self.flush();
            }
            let (now, later) = rest.split_at(rest.len().min(self.0.remaining_capacity()));
            self.0.extend(now.iter().copied());
            rest = later;
        }
        Ok(())
    }
}

/// Prints like the standard library's `print!`.
#[macro_export]
macro_rules! print {
    ($($part:tt)*) => { $crate::io::print(format_args!($($part)*)) };
}

/// Prints like the standard library's `println!`.
#[macro_export]
macro_rules! println {
    () => { $crate::io::print(format_args!("\n")) };
    ($format:literal $($part:tt)*) => { $crate::io::print(format_args!("{}\n", format_args!($format $($part)*))) };
}
