//! The shell, fed with scripts as a person would type them.

use crate::world::{Named, Verdict, World};
use libtest_mimic::Trial;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 12] = [
        ("the_show", the_show),
        ("trace_shows_what_happened", trace_shows_what_happened),
        ("doors_are_counted", doors_are_counted),
        ("a_monitor_hears_its_client", a_monitor_hears_its_client),
        ("keys_are_delivered_to_the_demander_only", keys_are_delivered_to_the_demander_only),
        ("help_tells_about_each_command", help_tells_about_each_command),
        ("help_tells_about_programs", help_tells_about_programs),
        ("a_server_that_stays_down_starts_again", a_server_that_stays_down_starts_again),
        ("ends_with_the_last_status", ends_with_the_last_status),
        ("exit_overrides", exit_overrides),
        ("end_without_newline", end_without_newline),
        ("prints_only_answers", prints_only_answers),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("shell", format!("shell::{name}"), verdict)))
}

/// Programs in two languages run; one that misbehaves is reported; the system goes on.
fn the_show(world: &'static World) -> Verdict {
    let reply = world.script(b"ps\nrun hello-c\nrun hello-rust\ncrash fault\nps\nexit\n")?;
    reply.check_code(0)?;
    for task in ["sigma0", "root", "console", "shell"] {
        if reply.out.lines().filter(|line| line.contains(task)).count() < 2 {
            return Err(reply.failed(&format!("expected {task} in both lists of tasks")));
        }
    }
    // Whoever answers the shell works for it, and nobody else does.
    let for_shell = |line: &&str| line.contains(" shell (");
    let servers: Vec<&str> = reply.out.lines().filter(for_shell).collect();
    if servers.len() != 2 || !servers.iter().all(|line| line.contains(" root ")) {
        return Err(reply.failed("expected that root works for the shell, in both lists"));
    }
    for word in ["C", "Rust", "fault"] {
        reply.check_contains(word)?;
    }
    if reply.err.is_empty() { Ok(()) } else { Err(reply.failed("expected nothing on standard error")) }
}

/// A program is traced from its start: its faults, the mappings that answer them, and its messages.
fn trace_shows_what_happened(world: &'static World) -> Verdict {
    let reply = world.script(b"trace on\nrun hello-rust\ntrace off\ntrace show 200\ntrace\nexit 0\n")?;
    reply.check_code(0)?;
    for word in
        [" ipc ", " switch ", " fault ", " map ", "messages for each", "fit in registers", "usage: trace"]
    {
        reply.check_contains(word)?;
    }
    let reply = world.script(b"trace show\n")?;
    reply.check_code(0)?;
    reply.check_contains("nothing is recorded")?;
    let has_figures = reply.out.contains("messages for each");
    if has_figures { Err(reply.failed("expected no figures of nothing")) } else { Ok(()) }
}

/// Calls through doors are counted, by what they carry, by size and by task, while what makes them is traced. The numbers are those of
/// the calls that `tests/guest/door-c/counted.c` makes; nobody else is traced who calls a door.
fn doors_are_counted(world: &'static World) -> Verdict {
    let script = "doors\ntrace on\nrun door-c counted &\nrun door-c await\ntrace off\ndoors\n";
    let reply = world.script(script.as_bytes())?;
    reply.check_code(0)?;
    reply.check_contains("no call is counted")?;
    // Up to 16, 64, 256, 1,024 and 5,120 bytes, and more.
    let kinds = [
        ("call: words", [2, 3 + 4, 5, 0, 0, 0]),
        ("call: block", [1, 2, 3, 4, 5, 6]),
        ("call: item", [2, 3, 0, 0, 0, 0]),
        ("return: words", [21 + 5, 14, 0, 0, 0, 0]),
        ("return: block", [0; 6]),
        ("return: item", [0; 6]),
    ];
    // All calls of the program, in the order of the kinds.
    let task = ("door-c", kinds.map(|(_, sizes)| sizes.iter().sum::<u64>()));
    for (name, expected) in kinds.into_iter().chain([task]) {
        let numbers = |line: &str| -> Option<Vec<u64>> {
            let cells = line.split_once(name)?.1.split_whitespace();
            cells.map(|cell| cell.parse().ok()).collect()
        };
        let found: Vec<_> = reply.out.lines().filter_map(numbers).filter(|row| !row.is_empty()).collect();
        if found != [expected.to_vec()] {
            return Err(reply.failed(&format!("{name}: {found:?} instead of {expected:?}")));
        }
    }
    Ok(())
}

/// The reference monitor passes on what it allows, refuses the rest, and writes both down.
fn a_monitor_hears_its_client(world: &'static World) -> Verdict {
    let reply = world.script(b"run monitor\n")?;
    reply.check_code(0)?;
    for (word, count) in [
        ("to clock: passed on", 2),
        ("to clock: refused", 1),
        ("to console: refused", 1),
        ("to root: refused", 1),
    ] {
        if reply.out.matches(word).count() != count {
            return Err(reply.failed(&format!("expected {count} times '{word}'")));
        }
    }
    reply.check_contains("2 answers and 3 refusals")
}

/// The key server keeps its promise among honest clients and a spy.
fn keys_are_delivered_to_the_demander_only(world: &'static World) -> Verdict {
    let reply = world.script(b"run keys\n")?;
    reply.check_code(0)?;
    for word in ["got 20 pairs, 20 of them right", "and 0 worked", "of 40 pairs no pair was delivered twice"]
    {
        reply.check_contains(word)?;
    }
    // A single pair that comes twice is found.
    let reply = world.script(b"run keys careless\n")?;
    reply.check_contains("of 40 pairs 1 had been delivered before")?;
    if reply.code == 0 {
        Err(reply.failed("expected that a pair that comes twice is an error"))
    } else {
        Ok(())
    }
}

/// Each command of the list has a page, and so has each program.
fn help_tells_about_each_command(world: &'static World) -> Verdict {
    let reply = world.script(b"help\n")?;
    // All of it is seen at once, with the prompt below it.
    let is_seen = |line: &str| line.chars().count() <= 80;
    if reply.out.lines().count() > 23 || !reply.out.lines().all(is_seen) {
        return Err(reply.failed("expected 23 lines of 80 characters at most"));
    }
    let rows = reply.out.lines().filter(|line| line.starts_with("  "));
    let names: Vec<&str> = rows.flat_map(str::split_whitespace).collect();
    let script: String = names.iter().map(|name| format!("help {name}\n")).collect();
    let pages = world.script(script.as_bytes())?;
    pages.check_code(0)?;
    if names.len() < 14 {
        return Err(reply.failed("expected more commands"));
    }
    for name in ["exit", "ls", "mount", "ping", "grep", "httpd"] {
        if !names.contains(&name) {
            return Err(reply.failed(&format!("expected {name} in the list")));
        }
    }
    let is_told = |name: &&&str| {
        pages.out.contains(&format!("usage: {name}")) || pages.out.contains(&format!("{name} is a program: "))
    };
    match names.iter().find(|name| !is_told(name)) {
        Some(name) => Err(pages.failed(&format!("expected a page of {name}"))),
        None => {
            let long = world.script(b"help -l\n")?;
            let words = |line: &str| line.split_whitespace().next().map(String::from);
            let mut listed: Vec<String> = long.out.lines().filter_map(words).collect();
            listed.sort();
            let mut names = names;
            names.sort();
            if listed == names {
                Ok(())
            } else {
                Err(long.failed(&format!("expected a line of each of {names:?}")))
            }
        }
    }
}

/// A program has what the comment at the head of its source says.
fn help_tells_about_programs(world: &'static World) -> Verdict {
    let reply = world.script(b"help ping\nhelp hello-c\nhelp bench\nhelp nosuch\n")?;
    reply.check_contains(
        "ping is a program: \"run ping\"\n  Asks a machine for echoes: \"ping HOST [COUNT]\".\n",
    )?;
    reply.check_contains("  The smallest C program.\n")?;
    // A command of that name comes first.
    reply.check_contains("usage: bench [ARGUMENT...]\n")?;
    reply.check_contains("help: nosuch: no such command")
}

/// A server that ends too often stays down, and says how to get it back; then it may end as often again.
fn a_server_that_stays_down_starts_again(world: &'static World) -> Verdict {
    let six = "kill services\n".repeat(6);
    let script = format!("{six}date\nrestart services\ndate\n{six}date\nrestart clock\ndate\n");
    let reply = world.script(script.as_bytes())?;
    reply.check_code(0)?;
    for (text, count) in
        [("stays down; \"restart services\" starts it again", 2), ("date: not found", 2), (" UTC", 2)]
    {
        if reply.out.matches(text).count() != count {
            return Err(reply.failed(&format!("expected {count} times {text:?}")));
        }
    }
    Ok(())
}

fn ends_with_the_last_status(world: &'static World) -> Verdict {
    world.script(b"nosuch\nhelp\n")?.check_code(0)?;
    world.script(b"ls\ncat /nosuch\n")?.check_code(1)?;
    world.script(b"cat\n")?.check_code(2)?;
    let reply = world.script(b"help\nnosuch\n")?;
    if reply.code == 0 { Err(reply.failed("expected the status of the last command")) } else { Ok(()) }
}

fn exit_overrides(world: &'static World) -> Verdict {
    world.script(b"nosuch\nexit 0\n")?.check_code(0)?;
    world.script(b"help\nexit 42\nhelp\n")?.check_code(42)?;
    // What is no status is none, not what is left of it in a byte; and what follows in the script was not meant to run.
    for wrong in ["256", "300", "-1", "two", "1 2"] {
        let reply = world.script(format!("exit {wrong}\necho afterwards\n").as_bytes())?;
        reply.check_code(2)?;
        reply.check_contains("one number from 0 to 255")?;
        if reply.out.contains("afterwards") {
            return Err(reply.failed("expected the end"));
        }
    }
    Ok(())
}

fn end_without_newline(world: &'static World) -> Verdict {
    world.script(b"exit 9")?.check_code(9)?;
    world.script(b"")?.check_code(0)
}

fn prints_only_answers(world: &'static World) -> Verdict {
    let reply = world.script(b"exit 0\n")?;
    let silent = reply.out.is_empty() && reply.err.is_empty() && reply.code == 0;
    if silent { Ok(()) } else { Err(reply.failed("expected nothing but exit code 0")) }
}
