//! The shell: reads commands from the console and carries them out.
//!
//! Two modes. For a person it prompts, edits lines and keeps a history; as `shell script` it prints no prompt and
//! no echo, ends at end of input, and its exit status is that of the last command, as POSIX has it.
//!
//! Reading order: [`shell`], the loop; [`commands`], the table of what it can do; [`editor`] (with [`screen`]) and [`script`], where
//! lines come from; [`programs`] and [`foreground`], starting and ending programs; [`pipe`] and [`jobs`], several commands on a line.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod commands;
mod doors;
mod editor;
mod environment;
mod files;
mod filters;
mod foreground;
mod input;
mod jobs;
mod listing;
mod pipe;
mod place;
mod programs;
mod screen;
mod script;
mod shell;
mod trace;

rt::entry!(main);

/// Tells whoever watches the serial line that the shell is there.
const BEGIN: &str = "\x1b]tern;begin\x07";

fn main() -> i32 {
    let is_script = rt::arguments().iter().any(|argument| argument == "script");
    rt::print!("{BEGIN}");
    if is_script {
        shell::run(&mut script::Script::default(), false)
    } else {
        rt::println!("Tern. \"help\" lists the commands.");
        shell::run(&mut editor::Editor::default(), true)
    }
}
