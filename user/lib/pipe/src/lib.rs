//! Pipes between programs. Whoever makes one says which programs are at its two ends, tells it when they have ended, and may have an end itself.
//!
//! In reading order: [`Pipe`], for whoever joins programs; [`start`], a program with pipes in the console's place; `server`, a pipe's thread.
//!
//! The bytes go through memory that both ends have mapped ([`ring::stream`]). The thread wakes an end that sleeps, and moves the bytes of programs that call it
//! as they would call the console.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod server;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use ring::stream;
use rt::api::pipe::{self as wire, End};
use rt::api::{Failure, Name, Result, process};
use rt::page::PAGE;
use rt::region::Region;
use rt::stream::{Reader, Writer};
use rt::sync::Mutex;
use rt::sys::{self, Error, TaskId, Uid};
use rt::thread::{self, Handle};

/// Memory of pipes that are no more: zeros, and nobody else has it.
static SPARE: Mutex<Vec<Region>> = Mutex::new(Vec::new());

/// Both ends, by their number.
const ENDS: usize = 2;

/// State that the pipe's thread shares with its maker.
struct Shared {
    region: Region,
    /// Programs that may use an end. Locked while one is started, so that the pipe's thread knows it before it hears of it.
    programs: [Mutex<Vec<TaskId>>; ENDS],
    /// Ends of which somebody makes use.
    is_taken: [AtomicBool; ENDS],
    /// The pipe is not needed any more.
    is_over: AtomicBool,
}

impl Shared {
    /// Takes an end for somebody. False if it is taken.
    fn take(&self, end: End) -> bool {
        !self.is_taken[number(end)].swap(true, Ordering::AcqRel)
    }
}

const fn number(end: End) -> usize {
    match end {
        End::WRITER => 0,
        End::READER => 1,
    }
}

/// A pipe. When it is dropped, both of its ends are gone.
pub struct Pipe {
    shared: Arc<Shared>,
    /// There until it is dropped.
    thread: Option<Handle<()>>,
}

impl Pipe {
    /// A pipe whose thread has the caller's priority.
    pub fn new() -> Result<Pipe> {
        let region = SPARE.lock().pop().or_else(rt::stream::memory);
        let region = region.ok_or(Failure::Kernel(Error::NoMemory))?;
        stream::reset(region.words());
        let shared = Arc::new(Shared {
            region,
            programs: [const { Mutex::new(Vec::new()) }; ENDS],
            is_taken: [const { AtomicBool::new(false) }; ENDS],
            is_over: AtomicBool::new(false),
        });
        let theirs = shared.clone();
        let priority = sys::thread_info(Uid::NIL).map_err(Failure::Kernel)?.priority;
        let thread = thread::spawn(priority, move || server::serve(&theirs)).map_err(|error| {
            SPARE.lock().push(region);
            Failure::Kernel(error)
        })?;
        Ok(Pipe { shared, thread: Some(thread) })
    }

    /// Its thread, which programs find in their environment.
    pub fn uid(&self) -> Uid {
        self.thread.as_ref().map_or(Uid::NIL, Handle::uid)
    }

    /// The end that writes, for the caller itself.
    pub fn writer(&self) -> Result<Writer> {
        self.own(End::WRITER)?;
        Writer::of(self.shared.region, self.uid())
    }

    /// The end that reads, for the caller itself.
    pub fn reader(&self) -> Result<Reader> {
        self.own(End::READER)?;
        Reader::of(self.shared.region, self.uid())
    }

    fn own(&self, end: End) -> Result<()> {
        if self.shared.take(end) { Ok(()) } else { Err(Failure::Refused(rt::api::Status::Taken)) }
    }

    /// Says that nobody will use an end any more.
    pub fn close(&self, end: End) {
        // It cannot fail: the thread waits for nothing else.
        let _ = wire::close(self.uid(), end);
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        // It closes both ends, since the pipe is over.
        self.close(End::WRITER);
        drop(self.thread.take());
        // Programs that still have it find other memory in its place: zeroes.
        self.shared.region.take_back();
        // Bytes of this pipe are not the next one's affair.
        wipe(self.shared.region);
        SPARE.lock().push(self.shared.region);
    }
}

/// Overwrites all of a pipe's memory, which nobody else has.
fn wipe(region: Region) {
    let zeroes = [0; PAGE];
    (0..region.size()).step_by(PAGE).for_each(|at| region.write(at, &zeroes));
}

/// Starts a program, with pipes in the console's place for its input, its output, or both. `arguments` may have an environment behind them.
pub fn start(name: &Name, arguments: &str, input: Option<&Pipe>, output: Option<&Pipe>) -> Result<TaskId> {
    let (words, environment) = arguments.split_once('\0').unwrap_or((arguments, ""));
    let mut text = String::from(words);
    for (pipe, variable) in [(input, wire::INPUT), (output, wire::OUTPUT)] {
        if let Some(pipe) = pipe {
            text.push_str(&format!("\0{variable}={:x}", pipe.uid().0));
        }
    }
    // Of two variables with one name the first counts.
    if arguments.len() > words.len() {
        text.extend(["\0", environment]);
    }
    let ends = [input.map(|pipe| (pipe, End::READER)), output.map(|pipe| (pipe, End::WRITER))];
    let mut programs = ends.map(|end| end.map(|(pipe, end)| pipe.shared.programs[number(end)].lock()));
    let task = process::start(rt::home(), name, &text)?;
    for list in programs.iter_mut().flatten() {
        list.push(task);
    }
    Ok(task)
}
