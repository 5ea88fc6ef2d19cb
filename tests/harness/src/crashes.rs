//! Programs that crash: what they did is called what it is, and a person learns in which line of which file.

use crate::world::{Named, Reply, Verdict, World};
use description::Program;
use libtest_mimic::Trial;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 6] = [
        ("every_kind_says_where", every_kind_says_where),
        ("used_up_stacks_and_memory_are_called_so", used_up_stacks_and_memory_are_called_so),
        ("a_small_machine_has_no_memory_left", a_small_machine_has_no_memory_left),
        ("a_server_uses_up_its_memory_first", a_server_uses_up_its_memory_first),
        ("in_c_too", in_c_too),
        ("another_file_gives_no_names", another_file_gives_no_names),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("crash", format!("crash::{name}"), verdict)))
}

/// All kinds that the program `crash` knows, in the words of the program itself.
fn kinds(world: &World) -> xtask::Result<Vec<String>> {
    let reply = world.script(b"crash nosuch\n")?;
    let list = reply.out.split_once("there are:").map_or("", |(_, list)| list);
    Ok(list.lines().next().unwrap_or("").split_whitespace().map(String::from).collect())
}

/// Whatever ends a program by an exception or a panic is followed by a way from there to `main`, each step with function, file
/// and line.
fn every_kind_says_where(world: &'static World) -> Verdict {
    // One of them never ends by itself; all others have the time that they need.
    let mut kinds = kinds(world)?;
    kinds.retain(|kind| kind != "loop");
    let script: String = kinds.iter().map(|kind| format!("echo == {kind}\nrun crash {kind}\n")).collect();
    let reply = world.script(format!("{script}exit 0\n").as_bytes())?;
    reply.check_code(0)?;
    let parts: Vec<&str> = reply.out.split("== ").skip(1).collect();
    if kinds.len() < 14 || parts.len() != kinds.len() {
        return Err(reply.failed("expected a part for each of many kinds"));
    }
    let mut told = 0;
    for (kind, part) in kinds.iter().zip(&parts) {
        if !part.contains("crashed: ") && !part.contains("panicked") {
            continue;
        }
        told += 1;
        let steps: Vec<&str> =
            part.lines().filter(|line| line.starts_with("    in ") || line.starts_with("    by ")).collect();
        let is_placed = |step: &&str| step.contains(".rs:") && step.contains(" (");
        // Where a stack is used up the beginning is too far away to be told.
        let ends = kind.starts_with("stack")
            || steps.iter().any(|step| step.contains("by crash::main (tests/guest/crash/src/main.rs:"));
        let is_first = steps.first().is_some_and(|step| step.starts_with("    in "));
        let is_misdeed = steps.iter().any(|step| step.contains("(tests/guest/crash/src/"));
        if !is_first || !is_misdeed || !ends || !steps.iter().all(is_placed) {
            return Err(reply.failed(&format!("expected to learn where '{kind}' crashed")));
        }
    }
    if told < 14 { Err(reply.failed("expected more crashes")) } else { Ok(()) }
}

fn used_up_stacks_and_memory_are_called_so(world: &'static World) -> Verdict {
    let reply = world.script(b"crash stack\ncrash stack2\nrun crash memory\n")?;
    reply.check_code(139)?;
    for text in [
        "crashed: stack overflow of thread 1,",
        "ended by stack overflow of thread 1;",
        "crashed: stack overflow of thread 2,",
        "crashed: out of memory: limit 64 MiB,",
        "by crash::misdeeds::recurse (tests/guest/crash/src/misdeeds.rs:",
    ] {
        reply.check_contains(text)?;
    }
    nothing_hidden(&reply)
}

/// Two kinds of memory can be used up before the limit is reached: the machine's, and the kernel's.
fn a_small_machine_has_no_memory_left(world: &'static World) -> Verdict {
    for (kernel_memory, text) in [
        ("kmem=8M", "out of memory: no kernel memory is left for mappings,"),
        ("kmem=30M", "out of memory: the machine has none left,"),
    ] {
        let arguments = ["run", "--memory", "64", "--boot", kernel_memory, "--script", "-"];
        let reply = world.tern(&arguments, b"run crash memory\nrun hello-rust\n")?;
        reply.check_code(0)?;
        reply.check_contains(&format!("crashed: {text}"))?;
        // The memory is there again.
        reply.check_contains("Hello")?;
    }
    Ok(())
}

/// A server with the least kernel memory gets more until it has all memory that it may have, and no more: there it ends. A program with as little ends long before.
fn a_server_uses_up_its_memory_first(world: &'static World) -> Verdict {
    let entries = world.entries_of(|files| {
        let mut system = xtask::system::read("default", files)?;
        for (name, serves) in [("server", vec!["greed".to_string()]), ("program", vec![])] {
            let (name, file, arguments) = (name.into(), "crash".into(), "memory".into());
            let usual = system.usual.clone();
            system.programs.push(Program {
                name,
                file,
                arguments,
                serves,
                kernel_share: 1,
                restarts: 0,
                ..usual
            });
        }
        Ok(system)
    })?;
    // Nobody waits for the server's end, so another program takes as long.
    let script =
        "restart greed\nrun crash memory\nrun crash memory\nrun program memory\nrun hello-rust\nexit 0\n";
    let reply = world.script_in(&entries, script.as_bytes())?;
    reply.check_code(0)?;
    reply.check_contains("Hello")?;
    for (name, text) in [
        ("server", "crashed: out of memory: limit 64 MiB,"),
        ("program", "crashed: out of memory: no kernel memory is left for mappings,"),
    ] {
        let begin = format!("root: {name} (task ");
        if !reply.out.lines().any(|line| line.starts_with(&begin) && line.contains(text)) {
            return Err(reply.failed(&format!("expected that {name} {text}")));
        }
    }
    Ok(())
}

fn in_c_too(world: &'static World) -> Verdict {
    let reply = world.script(b"run crash-c errors\nrun crash-c divide\nrun crash-c\n")?;
    reply.check_code(139)?;
    for text in [
        "no such thread or task",
        "crashed: division error",
        "in divide (tests/guest/crash-c/crash.c:",
        "crashed: unresolved page fault",
        "in write_to (tests/guest/crash-c/crash.c:",
        "by misbehave (tests/guest/crash-c/crash.c:",
        "by main (tests/guest/crash-c/crash.c:",
    ] {
        reply.check_contains(text)?;
    }
    nothing_hidden(&reply)
}

/// A program that is not the one that was built is not explained by that one's lines.
fn another_file_gives_no_names(world: &'static World) -> Verdict {
    let mut entries = world.entries()?;
    for entry in entries.iter_mut().filter(|entry| entry.name == "crash") {
        entry.data.push(0);
    }
    let reply = world.script_in(&entries, b"crash fault\n")?;
    reply.check_contains("unresolved page fault (vector 257) at ip")?;
    if reply.out.contains("misdeeds.rs") {
        Err(reply.failed("expected no lines"))
    } else {
        nothing_hidden(&reply)
    }
}

/// What is meant for the tools does not reach a person.
fn nothing_hidden(reply: &Reply) -> Verdict {
    let is_clean = !reply.out.contains('\x1b') && !reply.out.contains("]tern;");
    if is_clean { Ok(()) } else { Err(reply.failed("expected no control sequences")) }
}
