//! Bytes out and in: [`print!`](crate::print!), [`println!`](crate::println!), [`read`], by way of the console server; [`eprintln!`](crate::eprintln!)
//! for what a person is to see in any case.
//!
//! The server is looked up when it is first needed, and again when it turns out to be gone. Whoever starts a program can put a pipe in the console's place, for its output, its
//! input, or both: see [`stream`](crate::stream).

use crate::stream::{Closed, Reader, Writer};
use crate::sync::Mutex;
use api::pipe::{self, STATUS_CLOSED};
use api::{Failure, Name, Result, Status, console};
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

/// A pipe that is in the console's place, if there is one, once that is known.
type End<T> = Mutex<Option<Option<Way<T>>>>;

/// How it is used.
enum Way<T> {
    /// By its memory.
    Ring(T),
    /// By calls of its thread, as of the console, if its memory could not be had.
    Calls(Uid),
}

static OUTPUT: End<Writer> = Mutex::new(None);
static INPUT: End<Reader> = Mutex::new(None);

/// Does something with the pipe that a variable names. `None` if there is none, or if it is not for this program.
fn with_pipe<T, R>(
    end: &End<T>,
    variable: &str,
    attach: fn(Uid) -> Result<T>,
    action: impl FnOnce(&mut Way<T>) -> R,
) -> Option<R> {
    let mut end = end.lock();
    let known = end.get_or_insert_with(|| {
        let text = crate::environment::variable(variable)?;
        let server = Uid(u64::from_str_radix(&text, 16).ok()?);
        match attach(server) {
            Ok(end) => Some(Way::Ring(end)),
            // It is the pipe of whoever started this program.
            Err(Failure::Refused(Status::Denied)) => None,
            Err(_) => Some(Way::Calls(server)),
        }
    });
    known.as_mut().map(action)
}

/// Prints bytes. There is nobody to complain to, so failures are forgotten; but a program that prints into a pipe from which nobody reads any more ends, with
/// [`STATUS_CLOSED`].
pub fn write(bytes: &[u8]) {
    if let Some(hooks) = crate::start::hooks() {
        return (hooks.write)(bytes);
    }
    let write = |way: &mut Way<Writer>| match way {
        Way::Ring(pipe) => pipe.write(bytes),
        Way::Calls(server) => console::write(*server, bytes).map_err(|_| Closed),
    };
    match with_pipe(&OUTPUT, pipe::OUTPUT, Writer::attach, write) {
        None => drop(CONSOLE.with(|server| console::write(server, bytes))),
        Some(Ok(())) => {}
        Some(Err(Closed)) => crate::exit(STATUS_CLOSED),
    }
}

/// Prints bytes on the console, wherever the program's output goes.
pub fn complain(bytes: &[u8]) {
    match crate::start::hooks() {
        Some(hooks) => (hooks.write)(bytes),
        None => drop(CONSOLE.with(|server| console::write(server, bytes))),
    }
}

/// Waits for input; returns how many bytes came. From a pipe, none is the end.
pub fn read(buffer: &mut [u8]) -> Result<usize> {
    let read = |way: &mut Way<Reader>| match way {
        Way::Ring(pipe) => pipe.read(buffer),
        // A pipe whose thread is gone has ended.
        Way::Calls(server) => console::read(*server, buffer).unwrap_or(0),
    };
    match with_pipe(&INPUT, pipe::INPUT, Reader::attach, read) {
        Some(count) => Ok(count),
        None => CONSOLE.with(|server| console::read(server, buffer)),
    }
}

/// Whether a pipe is in the console's place for the input.
pub fn is_input_piped() -> bool {
    with_pipe(&INPUT, pipe::INPUT, Reader::attach, |_| ()).is_some()
}

/// Waits until somebody types Ctrl-C, at most `patience_us`; what else is typed meanwhile stays to be read.
pub fn watch_interrupt_key(patience_us: u64) -> Result<()> {
    CONSOLE.with(|server| console::watch(server, patience_us))
}

/// Prints formatted text. The macros call it.
pub fn print(arguments: Arguments) {
    print_by(write, arguments);
}

/// Prints formatted text on the console, wherever the program's output goes.
pub fn print_complaint(arguments: Arguments) {
    print_by(complain, arguments);
}

fn print_by(write: fn(&[u8]), arguments: Arguments) {
    let mut line = Line { bytes: ArrayVec::new(), write };
    // Formatting into a line fails only if a `Display` of the program does.
    let _ = line.write_fmt(arguments);
    line.flush();
}

/// Collects pieces, so that a line travels in few messages.
struct Line {
    bytes: ArrayVec<u8, 240>,
    write: fn(&[u8]),
}

impl Line {
    fn flush(&mut self) {
        if !self.bytes.is_empty() {
            (self.write)(&self.bytes);
            self.bytes.clear();
        }
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            if self.bytes.is_full() {
                self.flush();
            }
            let (now, later) = rest.split_at(rest.len().min(self.bytes.remaining_capacity()));
            self.bytes.extend(now.iter().copied());
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

/// Prints like the standard library's `eprint!`: see [`eprintln!`](crate::eprintln!).
#[macro_export]
macro_rules! eprint {
    ($($part:tt)*) => { $crate::io::print_complaint(format_args!($($part)*)) };
}

/// Prints like the standard library's `eprintln!`: a person sees it, even if the program's output goes into a file or to another program.
#[macro_export]
macro_rules! eprintln {
    () => { $crate::io::print_complaint(format_args!("\n")) };
    ($format:literal $($part:tt)*) => {
        $crate::io::print_complaint(format_args!("{}\n", format_args!($format $($part)*)))
    };
}
