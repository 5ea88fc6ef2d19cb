//! The commands: one table, and the short ones themselves.

use crate::shell::{STATUS_USAGE, Shell};
use crate::{doors, listing, programs, trace};
use rt::api::calendar::{self, Date};
use rt::module::Service;
use rt::{print, println, time};

/// A command.
pub struct Command {
    /// First word.
    pub name: &'static str,
    usage: &'static str,
    purpose: &'static str,
    /// Carries it out with the other words; returns the status.
    pub run: fn(&mut Shell, &[&str]) -> i32,
}

/// All commands, in the order of `help`.
pub const COMMANDS: [Command; 13] = [
    Command { name: "help", usage: "", purpose: "list the commands", run: help },
    Command { name: "ps", usage: "", purpose: "list tasks and threads", run: listing::tasks },
    Command { name: "mem", usage: "", purpose: "show how much memory is in use", run: listing::memory },
    Command {
        name: "run",
        usage: "PROGRAM [ARGUMENT...] [&]",
        purpose: "run a program; & does not wait for it",
        run: programs::run,
    },
    Command { name: "kill", usage: "NAME|NUMBER", purpose: "end a task", run: programs::kill },
    Command { name: "time", usage: "COMMAND...", purpose: "tell how long a command takes", run: time },
    Command { name: "date", usage: "", purpose: "show date and time (UTC)", run: date },
    Command {
        name: "bench",
        usage: "[ARGUMENT...]",
        purpose: "run the program bench: measurements",
        run: programs::bench,
    },
    Command {
        name: "crash",
        usage: "[KIND]",
        purpose: "run the program crash, which misbehaves, and tell how it ended",
        run: programs::crash,
    },
    Command {
        name: "trace",
        usage: "on|off|show [COUNT]",
        purpose: "record what threads do, and show the last of it",
        run: trace::trace,
    },
    Command {
        name: "doors",
        usage: "",
        purpose: "count the calls through doors of threads that are recorded",
        run: doors::doors,
    },
    Command { name: "echo", usage: "[WORD...]", purpose: "print words", run: echo },
    Command { name: "exit", usage: "[STATUS]", purpose: "end the shell, and with it the system", run: exit },
];

fn help(_: &mut Shell, _: &[&str]) -> i32 {
    let width =
        COMMANDS.iter().map(|command| command.name.len() + command.usage.len() + 1).max().unwrap_or(0);
    for Command { name, usage, purpose, .. } in &COMMANDS {
        println!("  {name} {usage:pad$}  {purpose}", pad = width - name.len() - 1);
    }
    0
}

fn echo(_: &mut Shell, words: &[&str]) -> i32 {
    for (index, word) in words.iter().enumerate() {
        print!("{}{word}", if index == 0 { "" } else { " " });
    }
    println!();
    0
}

fn exit(shell: &mut Shell, words: &[&str]) -> i32 {
    let status = match words {
        [] => Ok(shell.status),
        [number] => number.parse().map_err(drop),
        _ => Err(()),
    };
    shell.is_over = true;
    status.unwrap_or_else(|()| {
        println!("exit: the status must be one number");
        STATUS_USAGE
    })
}

fn time(shell: &mut Shell, words: &[&str]) -> i32 {
    if words.is_empty() {
        println!("usage: time COMMAND...");
        return STATUS_USAGE;
    }
    let start = time::now();
    let status = shell.command(words);
    let real = time::now() - start;
    print!("real {}.{:06} s", real.as_secs(), real.subsec_micros());
    if let Some(outcome) = shell.outcome {
        let cpu = core::time::Duration::from_nanos(outcome.cpu_ns);
        print!("   cpu {}.{:06} s   page faults {}", cpu.as_secs(), cpu.subsec_micros(), outcome.faults);
    }
    println!();
    status
}

fn date(_: &mut Shell, _: &[&str]) -> i32 {
    static CALENDAR: Service = Service::new(calendar::NAME);
    match calendar::now(&CALENDAR) {
        Ok(Date { year, month, day, hour, minute, second }) => {
            println!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC");
            0
        }
        Err(failure) => {
            println!("date: {failure}");
            1
        }
    }
}
