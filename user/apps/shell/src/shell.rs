//! The loop, and what lasts from command to command.

use crate::commands;
use crate::environment::Environment;
use crate::input::{Line, Source};
use crate::pipe;
use crate::place::Place;
use crate::programs::{self, Background};
use alloc::vec::Vec;
use rt::api::process::Outcome;
use rt::println;

/// Status of a line that cannot be understood.
pub const STATUS_USAGE: i32 = 2;
/// Status of a command or program that does not exist.
pub const STATUS_NOT_FOUND: i32 = 127;

/// The shell's memory.
pub struct Shell {
    /// Status of the last command.
    pub status: i32,
    /// How the last program ended, for `time`.
    pub outcome: Option<Outcome>,
    /// Whether a person types: then Ctrl-C ends the program in the foreground.
    pub is_interactive: bool,
    /// Programs in the background whose end has not been told.
    pub background: Vec<Background>,
    /// Variables of programs that it starts.
    pub environment: Environment,
    /// The directory in which paths begin.
    pub place: Place,
    /// Set by `exit`.
    pub is_over: bool,
}

/// Reads and carries out commands until the end; returns the exit status.
pub fn run(source: &mut impl Source, is_interactive: bool) -> i32 {
    let environment = Environment::inherit(is_interactive);
    let background = Vec::new();
    let mut shell = Shell {
        status: 0,
        outcome: None,
        is_interactive,
        background,
        environment,
        place: Place::root(),
        is_over: false,
    };
    while !shell.is_over {
        if is_interactive {
            programs::tell_ended(&mut shell.background);
        }
        match source.next_line(&shell.place) {
            Line::End => break,
            Line::Bad(reason) => {
                println!("shell: {reason}");
                shell.status = STATUS_USAGE;
            }
            Line::Text(line) => shell.line(&line),
        }
    }
    programs::end_jobs(&shell.background);
    shell.status & 0xff
}

impl Shell {
    fn line(&mut self, line: &str) {
        // A word that begins with # starts a comment.
        let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
        if !words.is_empty() {
            self.outcome = None;
            self.status = self.command(&words);
        }
    }

    /// Carries out a command, or several of a pipe; returns the status.
    pub fn command(&mut self, words: &[&str]) -> i32 {
        pipe::run(self, words)
    }

    /// Carries out one command; returns its status.
    pub fn one(&mut self, words: &[&str]) -> i32 {
        let Some((name, arguments)) = words.split_first() else { return 0 };
        match commands::COMMANDS.iter().find(|command| command.name == *name) {
            Some(command) => (command.run)(self, arguments),
            None => programs::run(self, words),
        }
    }
}
