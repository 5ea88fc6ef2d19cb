//! Pipes and files: `COMMAND < PATH | COMMAND | COMMAND > PATH`, or `>> PATH`. Marks are words of their own.
//!
//! Programs that follow one another run at once, with pipes between them ([`crate::jobs`]). Between commands of the shell itself, and between these and programs, one runs
//! after the other: while one runs whose output is meant for the next, whatever it prints is kept here instead. One that fails ends the line, and what
//! it has printed is shown: so no reason is lost.

use crate::files;
use crate::jobs::{Job, Sink, Source};
use crate::programs::{self, Call};
use crate::shell::{STATUS_USAGE, Shell};
use alloc::vec::Vec;
use rt::api::{console, process};
use rt::io::Session;
use rt::start::Hooks;
use rt::sync::Mutex;
use rt::{println, sys};

/// Bytes that are kept, at most.
pub const HELD_MAX: usize = 1 << 20;

/// Commands that take all that follows, or start programs that cannot be joined to others.
const WHOLE: [&str; 2] = ["time", "crash"];

/// Output of the command that runs, if it is kept.
static HELD: Mutex<Option<Vec<u8>>> = Mutex::new(None);

static CONSOLE: Session = Session::new(console::NAME);

static HOOKS: Hooks = Hooks { write, exit };

fn write(bytes: &[u8]) {
    if let Some(held) = &mut *HELD.lock() {
        let room = (HELD_MAX + 1).saturating_sub(held.len());
        held.extend_from_slice(&bytes[..bytes.len().min(room)]);
        return;
    }
    let _ = CONSOLE.with(|server| console::write(server, bytes));
}

/// Ends the shell. What was kept may be why.
fn exit(status: i32) -> ! {
    if let Some(held) = HELD.lock().take() {
        write(&held);
    }
    let _ = process::exit(rt::home(), status);
    loop {
        let _ = sys::thread_destroy(sys::Uid::NIL);
    }
}

/// Runs a command; gives back its status and its output.
fn keep(shell: &mut Shell, words: &[&str]) -> (i32, Vec<u8>) {
    rt::set_hooks(&HOOKS);
    *HELD.lock() = Some(Vec::new());
    let status = shell.one(words);
    (status, HELD.lock().take().unwrap_or_default())
}

/// Marks of files.
fn is_mark(word: &&str) -> bool {
    matches!(*word, "<" | ">" | ">>")
}

/// A line, taken apart.
struct Line<'a> {
    /// File that the first command reads.
    from: Option<&'a str>,
    parts: Vec<&'a [&'a str]>,
    /// File that the last command's output goes to, and whether it goes behind what is there.
    to: Option<(&'a str, bool)>,
    in_background: bool,
}

impl<'a> Line<'a> {
    /// `None` if marks are where they cannot be.
    fn new(words: &'a [&'a str]) -> Option<Line<'a>> {
        let (words, in_background) = match words {
            [words @ .., "&"] => (words, true),
            words => (words, false),
        };
        let (words, to) = match words {
            [words @ .., mark @ (">" | ">>"), path] => (words, Some((*path, *mark == ">>"))),
            words => (words, None),
        };
        let mut parts: Vec<&[&str]> = words.split(|word| *word == "|").collect();
        let mut from = None;
        if let Some(first) = parts.first_mut()
            && let [before @ .., "<", path] = *first
        {
            (*first, from) = (before, Some(*path));
        }
        let is_right = parts.iter().all(|part| !part.is_empty() && !part.iter().any(is_mark));
        let paths = from.iter().chain(to.iter().map(|(path, _)| path));
        let has_paths = paths.into_iter().all(|path| !is_mark(path) && *path != "|");
        (is_right && has_paths).then_some(Line { from, parts, to, in_background })
    }

    fn is_plain(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.parts.len() == 1
    }
}

/// Carries out what may be several commands; returns the status of the last that ran.
pub fn run(shell: &mut Shell, words: &[&str]) -> i32 {
    if words.first() == Some(&"time") {
        return shell.one(words);
    }
    let Some(line) = Line::new(words) else {
        println!("shell: expected COMMAND < PATH | COMMAND > PATH");
        return STATUS_USAGE;
    };
    if line.is_plain() {
        match Call::of(line.parts[0]) {
            Some(call) => return programs::run_one(shell, call, line.in_background),
            None if !line.in_background => return shell.one(words),
            None => {}
        }
    }
    if let Some(name) = line.parts.iter().map(|part| part[0]).find(|name| WHOLE.contains(name)) {
        println!("shell: {name} stands alone on its line");
        return STATUS_USAGE;
    }
    if line.in_background && line.parts.iter().any(|part| Call::of(part).is_none()) {
        println!("shell: & is for programs");
        return STATUS_USAGE;
    }
    parts_in_turn(shell, &line)
}

fn parts_in_turn(shell: &mut Shell, line: &Line) -> i32 {
    let mut rest = &line.parts[..];
    let mut source = match line.from.map(|typed| Source::file(typed, &shell.place.path_of(typed))) {
        Some(Ok(file)) => file,
        Some(Err(status)) => return status,
        None => Source::Console,
    };
    while let [first, behind @ ..] = rest {
        let count = rest.iter().take_while(|part| Call::of(part).is_some()).count();
        let (outcome, later) = if count > 0 {
            (programs_at_once(shell, &rest[..count], source, line, count == rest.len()), &rest[count..])
        } else {
            (own(shell, first, line, behind.is_empty()), behind)
        };
        match outcome {
            Ok(output) => source = Source::Held(output),
            Err(status) => return status,
        }
        rest = later;
    }
    0
}

/// Runs programs that follow one another. Gives back what the last one has printed for the next command, or the status with which the line ends.
fn programs_at_once(
    shell: &mut Shell,
    parts: &[&[&str]],
    source: Source,
    line: &Line,
    is_last: bool,
) -> Result<Vec<u8>, i32> {
    let sink = match line.to {
        _ if !is_last => Sink::Held,
        Some((typed, is_more)) => Sink::file(typed, &shell.place.path_of(typed), is_more)?,
        None => Sink::Console,
    };
    let calls: Vec<Call> = parts.iter().filter_map(|part| Call::of(part)).collect();
    let job = Job::start(shell, &calls, source, sink)?;
    if line.in_background {
        programs::leave(shell, job);
        return Err(0);
    }
    let (status, output) = job.wait(shell);
    if output.len() > HELD_MAX {
        return Err(too_much(calls[calls.len() - 1].name));
    }
    if is_last {
        return Err(status);
    }
    ended(status, output)
}

/// Runs a command of the shell's own, as [`programs_at_once`] does programs. None of them reads.
fn own(shell: &mut Shell, words: &[&str], line: &Line, is_last: bool) -> Result<Vec<u8>, i32> {
    if is_last && line.to.is_none() {
        return Err(shell.one(words));
    }
    let (status, output) = keep(shell, words);
    if output.len() > HELD_MAX {
        return Err(too_much(words[0]));
    }
    match line.to {
        Some((path, is_more)) if is_last && status == 0 => {
            Err(files::write(shell, words[0], path, &output, is_more))
        }
        _ => ended(status, output),
    }
}

/// Shows what was printed before a command failed.
fn ended(status: i32, output: Vec<u8>) -> Result<Vec<u8>, i32> {
    if status == 0 {
        return Ok(output);
    }
    rt::io::write(&output);
    Err(status)
}

fn too_much(name: &str) -> i32 {
    println!("shell: {name}: more than {} KiB for a pipe", HELD_MAX >> 10);
    1
}
