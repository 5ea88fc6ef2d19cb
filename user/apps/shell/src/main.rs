//! The shell: reads commands from the console and carries them out.
//!
//! Two modes. For a person it prompts, edits lines and keeps a history; as `shell script` it prints no prompt and
//! no echo, ends at end of input, and its exit status is that of the last command, as POSIX has it. A further shell beside the first, `shell session`, is one that
//! `root` starts again when it has ended; without a console of its own it has nothing to do.
//!
//! Reading order: [`shell`], the loop; [`commands`], the table of what it can do; [`editor`] (with [`screen`] and [`complete`]) and [`script`], where
//! lines come from; [`programs`], [`binary`] and [`foreground`], starting and ending programs; [`pipe`] and [`jobs`], several commands on a line.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod binary;
mod commands;
mod complete;
mod doors;
mod editor;
mod environment;
mod files;
mod foreground;
mod input;
mod jobs;
mod listing;
mod manual;
mod pipe;
mod place;
mod programs;
mod screen;
mod script;
mod shell;
mod trace;

use rt::api::process::UNAVAILABLE;
use rt::api::{Failure, Name, Status, console, names};

rt::entry!(main);

/// Tells whoever watches the serial line that the shell is there.
const BEGIN: &str = "\x1b]tern;begin\x07";

fn main() -> i32 {
    let arguments = rt::arguments();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let is_session = has("session");
    if is_session && !has_console() {
        return UNAVAILABLE;
    }
    rt::print!("{BEGIN}");
    if has("script") {
        return shell::run(&mut script::Script::default(), false);
    }
    rt::println!("Tern. \"help\" lists the commands.");
    let mut editor = if is_session { editor::Editor::default() } else { editor::Editor::of_system() };
    shell::run(&mut editor, true)
}

/// Whether this machine has a console for it. Waits for one that is starting.
fn has_console() -> bool {
    let found = Name::new(console::NAME).map(|name| names::resolve(rt::home(), &name));
    !matches!(found, Some(Err(Failure::Refused(Status::NotFound))))
}
