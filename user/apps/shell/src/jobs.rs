//! Programs that run at once, joined by pipes, with a file or something that is kept at either end.
//!
//! One thread waits for each program, and says that its ends of pipes are closed when it has ended; another writes what is to be read, and one reads what is
//! to be kept.

use crate::foreground;
use crate::pipe::HELD_MAX;
use crate::programs::{self, Call};
use crate::shell::Shell;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use files::wire::BYTES_MAX;
use files::{Directory, File};
use pipe::Pipe;
use rt::api::Failure;
use rt::api::pipe::End;
use rt::api::process::{self, Outcome};
use rt::println;
use rt::stream::{Reader, Writer};
use rt::sys::{self, TaskId, Uid};
use rt::thread::{self, Handle};
use vfs::How;

/// Where the first program's input comes from.
pub enum Source {
    /// It reads the console, as a program does that nobody has told otherwise.
    Console,
    /// Output of the command before it.
    Held(Vec<u8>),
    /// A file, and its path as it was typed.
    File(File, String),
}

impl Source {
    /// A file, or the status of the line without it.
    pub fn file(typed: &str, path: &str) -> Result<Source, i32> {
        match Directory::root().and_then(|root| root.open(path, How::default())) {
            Ok(file) => Ok(Source::File(file, typed.into())),
            Err(failure) => Err(complain(typed, failure)),
        }
    }

    /// Writes all of it. Whoever does not read to the end does not want it.
    fn write(self, mut writer: Writer) {
        match self {
            Source::Console => {}
            Source::Held(bytes) => drop(writer.write(&bytes)),
            Source::File(file, typed) => {
                let mut is_over = false;
                let outcome = file.pieces(|_, piece| {
                    is_over |= writer.write(piece).is_err();
                    if is_over { Err(Failure::Garbled) } else { Ok(()) }
                });
                if let Err(failure) = outcome
                    && !is_over
                {
                    complain(&typed, failure);
                }
            }
        }
    }
}

/// Where the last program's output goes.
pub enum Sink {
    /// The console, as that of a program does that nobody has told otherwise.
    Console,
    /// It is kept for the next command.
    Held,
    /// A file, and its path as it was typed.
    File(File, String),
}

impl Sink {
    /// A file, emptied if nothing is to be behind what it has, or the status of the line without it.
    pub fn file(typed: &str, path: &str, is_more: bool) -> Result<Sink, i32> {
        let how = How { create: true, truncate: !is_more, ..How::default() };
        match Directory::root().and_then(|root| root.open(path, how)) {
            Ok(file) => Ok(Sink::File(file, typed.into())),
            Err(failure) => Err(complain(typed, failure)),
        }
    }

    /// Takes all that comes. Gives back what is kept, which is more than [`HELD_MAX`] if it is too much, and whether all is well.
    fn take(self, mut reader: Reader) -> (Vec<u8>, bool) {
        let mut piece = alloc::vec![0; BYTES_MAX];
        let mut held = Vec::new();
        let mut outcome = Ok(());
        loop {
            let count = reader.read(&mut piece);
            if count == 0 {
                break;
            }
            match &self {
                Sink::File(file, _) => outcome = file.append(&piece[..count]).map(drop),
                Sink::Console | Sink::Held => held.extend_from_slice(&piece[..count]),
            }
            if outcome.is_err() || held.len() > HELD_MAX {
                break;
            }
        }
        if let Sink::File(file, typed) = &self
            && let Err(failure) = outcome.and_then(|()| file.sync())
        {
            complain(typed, failure);
            return (held, false);
        }
        (held, true)
    }
}

fn complain(typed: &str, failure: Failure) -> i32 {
    println!("shell: {typed}: {failure}");
    1
}

/// A program that runs.
struct Member {
    name: String,
    task: TaskId,
    waiter: Handle<rt::api::Result<Option<Outcome>>>,
}

/// Programs that run at once.
pub struct Job {
    members: Vec<Member>,
    feeder: Option<Handle<()>>,
    taker: Option<Handle<(Vec<u8>, bool)>>,
    /// All pipes.
    pipes: Vec<Arc<Pipe>>,
    /// Threads that have not ended yet.
    left: Arc<AtomicUsize>,
}

/// Starts a thread of the shell that counts as long as it runs.
fn thread<T: Send + 'static>(
    left: &Arc<AtomicUsize>,
    body: impl FnOnce() -> T + Send + 'static,
) -> sys::Result<Handle<T>> {
    let priority = sys::thread_info(Uid::NIL)?.priority;
    let theirs = left.clone();
    left.fetch_add(1, Ordering::Relaxed);
    let handle = thread::spawn(priority, move || {
        let value = body();
        theirs.fetch_sub(1, Ordering::Release);
        value
    });
    if handle.is_err() {
        left.fetch_sub(1, Ordering::Relaxed);
    }
    handle
}

impl Job {
    /// Starts programs, or says why not.
    pub fn start(shell: &Shell, calls: &[Call], source: Source, sink: Sink) -> Result<Job, i32> {
        let failed = |failure: Failure| {
            println!("shell: {failure}");
            1
        };
        let pipe = || Pipe::new().map(Arc::new);
        let left = Arc::new(AtomicUsize::new(0));
        let mut job = Job { members: Vec::new(), feeder: None, taker: None, pipes: Vec::new(), left };
        let mut input: Option<Arc<Pipe>> = None;
        if !matches!(source, Source::Console) {
            let first = pipe().map_err(failed)?;
            job.pipes.push(first.clone());
            let writer = first.writer().map_err(failed)?;
            let theirs = first.clone();
            let feeder = thread(&job.left, move || {
                source.write(writer);
                theirs.close(End::WRITER);
            });
            job.feeder = Some(feeder.map_err(|error| failed(Failure::Kernel(error)))?);
            input = Some(first);
        }
        let mut sink = Some(sink);
        for (index, &call) in calls.iter().enumerate() {
            let is_last = index + 1 == calls.len();
            let output = match &sink {
                Some(Sink::Console) if is_last => None,
                _ => match pipe() {
                    Ok(pipe) => Some(pipe),
                    Err(failure) => return Err(job.give_up(failed(failure))),
                },
            };
            job.pipes.extend(output.clone());
            let task = match programs::start(shell, call, input.as_deref(), output.as_deref()) {
                Ok(task) => task,
                Err(status) => return Err(job.give_up(status)),
            };
            let ends = (input.take(), output.clone());
            let waiter = thread(&job.left, move || {
                let outcome = process::wait(rt::home(), task, u64::MAX);
                ends.0.inspect(|pipe| pipe.close(End::READER));
                ends.1.inspect(|pipe| pipe.close(End::WRITER));
                outcome
            });
            match waiter {
                Ok(waiter) => job.members.push(Member { name: call.name.into(), task, waiter }),
                Err(error) => {
                    let _ = process::kill(rt::home(), task);
                    return Err(job.give_up(failed(Failure::Kernel(error))));
                }
            }
            if is_last && let (Some(last), Some(sink)) = (&output, sink.take()) {
                let taker = last.reader().and_then(|reader| {
                    let theirs = last.clone();
                    let take = move || {
                        let taken = sink.take(reader);
                        theirs.close(End::READER);
                        taken
                    };
                    thread(&job.left, take).map_err(Failure::Kernel)
                });
                match taker {
                    Ok(taker) => job.taker = Some(taker),
                    Err(failure) => return Err(job.give_up(failed(failure))),
                }
            }
            input = output;
        }
        Ok(job)
    }

    /// Ends what runs already.
    pub fn end(&self) {
        for member in &self.members {
            // Fails only if the program has just ended by itself.
            let _ = process::kill(rt::home(), member.task);
        }
        for pipe in &self.pipes {
            pipe.close(End::READER);
            pipe.close(End::WRITER);
        }
    }

    fn give_up(self, status: i32) -> i32 {
        self.end();
        status
    }

    /// Whether all of it has ended.
    pub fn is_over(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// Tasks of its programs.
    pub fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.members.iter().map(|member| member.task)
    }

    /// How its programs ended, by task and name.
    pub fn outcomes(self) -> impl Iterator<Item = (TaskId, String, rt::api::Result<Option<Outcome>>)> {
        self.members
            .into_iter()
            .map(|Member { name, task, waiter }| (task, name, waiter.join().unwrap_or(Ok(None))))
    }

    /// Waits until all have ended; a person can end them by Ctrl-C. Gives back the status of the last program, and what was kept.
    pub fn wait(self, shell: &mut Shell) -> (i32, Vec<u8>) {
        let watcher = foreground::watch(self.tasks().collect(), shell.is_interactive);
        let Job { members, feeder, taker, .. } = self;
        let mut status = 0;
        for Member { name, waiter, .. } in members {
            status = match waiter.join() {
                Some(Ok(Some(outcome))) => programs::ended(shell, &name, outcome),
                Some(Err(failure)) => {
                    println!("run: {failure}");
                    1
                }
                Some(Ok(None)) | None => 1,
            };
        }
        feeder.map(Handle::join);
        let (held, is_well) = taker.and_then(Handle::join).unwrap_or((Vec::new(), true));
        drop(watcher);
        (if is_well { status } else { 1 }, held)
    }
}
