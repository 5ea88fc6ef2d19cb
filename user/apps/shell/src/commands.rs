//! The commands: one table, and the short ones themselves.

use crate::shell::{STATUS_NOT_FOUND, STATUS_USAGE, Shell};
use crate::{doors, environment, listing, manual, place, programs, trace};
use alloc::string::String;
use alloc::vec::Vec;
use rt::api::calendar::{self, Date};
use rt::module::Service;
use rt::{print, println, time};

/// A command.
pub struct Command {
    /// First word.
    pub name: &'static str,
    usage: &'static str,
    purpose: &'static str,
    /// Further text of `help` about this command alone.
    details: &'static str,
    /// Carries it out with the other words; returns the status.
    pub run: fn(&mut Shell, &[&str]) -> i32,
}

/// A command without details.
const fn plain(
    name: &'static str,
    usage: &'static str,
    purpose: &'static str,
    run: fn(&mut Shell, &[&str]) -> i32,
) -> Command {
    Command { name, usage, purpose, details: "", run }
}

/// All commands, in the order of `help`.
pub const COMMANDS: [Command; 17] = [
    Command {
        details: "With -l each has a line. Programs tell what the comment at the head of their source says; those\n\
                  are listed that say first how they are called.",
        ..plain("help", "[-l|COMMAND|PROGRAM]", "list commands and programs, or tell about one", help)
    },
    Command {
        details: "One line for each thread. CPU is what it spent itself, FAULTS are its page faults; PAGES and\n\
                  KERNEL (frames used/allowed) are its task's. A server that was called WORKS FOR its caller,\n\
                  or for who called that one: it runs on that task's time.",
        ..plain("ps", "", "list tasks and threads", listing::tasks)
    },
    plain("mem", "", "show how much memory is in use", listing::memory),
    Command {
        details: "Programs are files of the boot archive. \"run\" may be left out where no command has the name. The status is that of the program: 139 if it crashed, 137 if\n\
                  it was killed, 127 if there is none of that name. Ctrl-C ends the program that runs. How a program\n\
                  with & ended is told before the next prompt.",
        ..plain("run", "PROGRAM [ARGUMENT...] [&]", "run a program; & does not wait for it", programs::run)
    },
    Command {
        details: "\"ps\" shows names and numbers. A server of the system is started again at once.",
        ..plain("kill", "NAME|NUMBER", "end a task", programs::kill)
    },
    Command {
        details: "A server that crashes more than five times within ten seconds stays down until this command starts\n\
                  it. SERVER is its name, or the name of a service that it gives.",
        ..plain("restart", "SERVER", "start a server that stays down", programs::restart)
    },
    Command {
        details: "Paths that do not begin with / begin there. Without a PATH it goes to /.",
        ..plain("cd", "[PATH]", "go to a directory", place::change)
    },
    plain("pwd", "", "tell in which directory the shell is", place::tell),
    plain("time", "COMMAND...", "tell how long a command takes", time),
    plain("date", "", "show date and time (UTC)", date),
    plain("bench", "[ARGUMENT...]", "run the program bench: measurements", programs::run),
    Command {
        details: "Without a KIND it writes to an address that is not its own. A KIND that does not exist gets a list.",
        ..plain(
            "crash",
            "[KIND]",
            "run the program crash, which misbehaves, and tell how it ended",
            programs::crash,
        )
    },
    Command {
        details: "\"show\" tells the last 24 records, or COUNT of them. At most 256 are kept.",
        ..plain(
            "trace",
            "on|off|show [COUNT]",
            "record what threads do, and show the last of it",
            trace::trace,
        )
    },
    Command {
        details: "\"trace on\" begins to record.",
        ..plain("doors", "", "count the calls through doors of threads that are recorded", doors::doors)
    },
    Command {
        details: "A program finds the variables when it starts. NAME= takes one away.",
        ..plain(
            "set",
            "[NAME=VALUE...]",
            "list the variables that programs find, or set some",
            environment::set,
        )
    },
    Command {
        details: "Behind > is the file to write them to, behind >> the one to add them to; so it is with all commands and\n\
                  programs. Behind < is a file that a program reads: \"wc < FILE\". Behind | stands a program that reads\n\
                  what the one before it prints: \"ps | grep net | wc\". Programs that follow one another run at once.",
        ..plain("echo", "[WORD...] [>|>> PATH]", "print words, or write them to a file", echo)
    },
    Command {
        details: "STATUS is a number from 0 to 255; without it, the status of the last command.",
        ..plain("exit", "[STATUS]", "end the shell, and with it the system", exit)
    },
];

fn help(_: &mut Shell, words: &[&str]) -> i32 {
    match words {
        [] => {
            list();
            0
        }
        ["-l"] => {
            list_long();
            0
        }
        [name] => tell(name),
        _ => {
            println!("usage: help [-l|COMMAND|PROGRAM]");
            STATUS_USAGE
        }
    }
}

/// Columns of a terminal, of which none is known to have fewer. All names fit on one with 24 rows.
const COLUMNS: usize = 80;

/// Programs whose texts begin with a purpose and a call: of each its name and both.
fn listed_programs() -> Vec<(String, String, String)> {
    let texts = manual::texts().into_iter().filter(|(name, _)| !is_command(name));
    let of = |(name, text): (String, String)| {
        let (call, purpose) = manual::call_of(&name, &text)?;
        Some((name.clone(), call.into(), purpose.into()))
    };
    texts.filter_map(of).collect()
}

/// Lists the names of commands and of programs.
fn list() {
    let mut commands = COMMANDS.map(|command| command.name);
    commands.sort_unstable();
    let programs: Vec<String> = listed_programs().into_iter().map(|(name, ..)| name).collect();
    println!("Commands of the shell; \"help NAME\" tells about one, \"help -l\" about all:");
    show(&commands);
    if !programs.is_empty() {
        println!("\nPrograms:");
        show(&programs);
    }
}

fn show(names: &[impl AsRef<str>]) {
    for row in completion::rows(names, COLUMNS - 2) {
        println!("  {row}");
    }
}

/// Lists commands and programs, with calls and purposes.
fn list_long() {
    let width =
        COMMANDS.iter().map(|command| command.name.len() + command.usage.len() + 1).max().unwrap_or(0);
    for Command { name, usage, purpose, .. } in &COMMANDS {
        println!("  {name} {usage:pad$}  {purpose}", pad = width - name.len() - 1);
    }
    println!();
    for (_, call, purpose) in listed_programs() {
        println!("  {call:width$}  {purpose}");
    }
}

/// Whether a name is a command's, and not a program's.
pub fn is_command(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.name == name)
}

/// Tells about one command.
fn tell(name: &str) -> i32 {
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        let Some(text) = manual::text_of(name) else {
            println!("help: {name}: no such command; \"help\" lists them");
            return STATUS_NOT_FOUND;
        };
        println!("{name} is a program: \"run {name}\"");
        println!("  {text}");
        return 0;
    };
    println!("usage: {}", [command.name, command.usage].join(" ").trim_end());
    println!("  {}", command.purpose);
    if !command.details.is_empty() {
        println!("{}", command.details);
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

/// A script ends even if the status is none: what follows is not meant to run.
fn exit(shell: &mut Shell, words: &[&str]) -> i32 {
    let status: Option<u8> = match words {
        [] => Some(shell.status as u8),
        [number] => number.parse().ok(),
        _ => None,
    };
    shell.is_over = status.is_some() || !shell.is_interactive;
    status.map_or_else(
        || {
            println!("exit: the status must be one number from 0 to 255");
            STATUS_USAGE
        },
        i32::from,
    )
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
