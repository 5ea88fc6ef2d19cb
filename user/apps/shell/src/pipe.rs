//! Pipes and files: `COMMAND | COMMAND`, `COMMAND > PATH`, `COMMAND >> PATH`. Marks are words of their own.
//!
//! One command runs after the other. While one runs whose output is meant for the next, whatever it prints is kept here instead. One that fails ends the line, and what
//! it has printed is shown: so no reason is lost. Programs write to the console themselves, so nothing of them is kept.

use crate::files;
use crate::shell::{STATUS_USAGE, Shell};
use alloc::vec::Vec;
use rt::api::{console, process};
use rt::io::Session;
use rt::start::Hooks;
use rt::sync::Mutex;
use rt::{println, sys};

/// Bytes that are kept, at most.
const HELD_MAX: usize = 1 << 20;

/// Commands that start programs.
const PROGRAMS: [&str; 3] = ["run", "bench", "crash"];

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
    matches!(*word, ">" | ">>")
}

/// Carries out what may be several commands; returns the status of the last that ran.
pub fn run(shell: &mut Shell, words: &[&str]) -> i32 {
    let is_whole = |word: &&str| *word == "time" || PROGRAMS.contains(word);
    let has_pipe = words.contains(&"|");
    // These take all that follows, and a program may know the mark of a file itself.
    if words.first() == Some(&"time") || !has_pipe && words.first().is_none_or(is_whole) {
        return shell.one(words);
    }
    let mut parts: Vec<&[&str]> = words.split(|word| *word == "|").collect();
    let mut target = None;
    if let Some(last) = parts.last_mut()
        && let [before @ .., mark, path] = *last
        && is_mark(mark)
    {
        (*last, target) = (before, Some((*mark == ">>", *path)));
    }
    if parts.iter().any(|part| part.is_empty() || part.iter().any(is_mark)) {
        println!("shell: expected COMMAND | COMMAND > PATH");
        return STATUS_USAGE;
    }
    if let Some(name) = parts.iter().map(|part| part[0]).find(|name| is_whole(name)) {
        println!("shell: {name}: programs write to the console, and not into pipes");
        return STATUS_USAGE;
    }
    let status = parts_in_turn(shell, &parts, target);
    shell.input = None;
    status
}

fn parts_in_turn(shell: &mut Shell, parts: &[&[&str]], target: Option<(bool, &str)>) -> i32 {
    for (number, part) in parts.iter().enumerate() {
        let is_last = number + 1 == parts.len();
        if is_last && target.is_none() {
            return shell.one(part);
        }
        let (status, output) = keep(shell, part);
        if output.len() > HELD_MAX {
            println!("shell: {}: more than {} KiB for a pipe", part[0], HELD_MAX >> 10);
            return 1;
        }
        if status != 0 {
            rt::io::write(&output);
            return status;
        }
        match target {
            Some((is_more, path)) if is_last => return files::write(shell, part[0], path, &output, is_more),
            _ => shell.input = Some(output),
        }
    }
    0
}
