//! Wrong input of every kind: one clear line, an exit code that is not zero, nothing left behind.

use crate::world::{LIMIT, Named, Reply, Scratch, Verdict, World, boot, failed, run};
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use xtask::archive::{Entry, pack};
use xtask::error::{MACHINE_FAILED, USAGE};
use xtask::guest::End;
use xtask::machine::Boot;
use xtask::{Context, interrupt, paths};

/// Wrong command lines.
const COMMAND_LINES: [(&str, &[&str]); 12] = [
    ("no_verb", &[]),
    ("unknown_verb", &["fly"]),
    ("unknown_option", &["run", "--fast"]),
    ("unknown_machine", &["run", "--machine", "vax"]),
    ("unknown_suite", &["bench", "nosuch"]),
    ("no_processor", &["run", "--smp", "0"]),
    ("processors_in_words", &["run", "--smp", "two"]),
    ("no_memory", &["run", "--memory", "0"]),
    ("surplus_argument", &["bench", "ipc", "more"]),
    ("no_first_program", &["run", "--boot", "init="]),
    ("no_jobs", &["mutate", "--jobs", "0"]),
    ("missing_interface", &["selftest", "/nosuch.idl"]),
];

/// Scripts whose last command fails, and a word that the complaint must contain.
const SCRIPTS: [(&str, &[u8], &str); 9] = [
    ("unknown_command", b"frobnicate\n", "frobnicate"),
    ("line_not_utf8", b"ps \xff\xfe\n", ""),
    ("missing_program", b"run nosuch\n", "nosuch"),
    ("program_of_the_system", b"run console\n", "console is a server of the system"),
    ("kill_sigma0", b"kill sigma0\n", "sigma0"),
    ("help_about_nothing", b"help nosuch\n", "nosuch"),
    ("restart_of_no_server", b"restart hello-rust\n", "no such server"),
    ("restart_of_a_server_that_runs", b"restart clock\n", "clock runs"),
    ("program_that_is_no_elf", b"run rubbish\n", "rubbish"),
];

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, arguments) in COMMAND_LINES {
        trials.push(world.trial("input", format!("bad_input::{name}"), move |world| {
            world.tern(arguments, b"")?.check_refusal(&[USAGE])
        }));
    }
    for (name, script, word) in SCRIPTS {
        trials.push(
            world.trial("input", format!("bad_input::{name}"), move |world| {
                failing_script(world, script, word)
            }),
        );
    }
    let others: [Named; 18] = [
        ("overlong_line", overlong_line),
        ("missing_script", missing_script),
        ("image_in_no_folder", |world| refused_image(world, "/nosuch/x")),
        ("image_in_place_of_a_folder", |world| refused_image(world, "/")),
        ("no_emulator", no_emulator),
        ("little_memory", little_memory),
        ("unknown_boot_option", |world| refused_options(world, "colour=blue")),
        ("wrong_boot_value", |world| refused_options(world, "fastpath=perhaps")),
        ("word_that_is_no_option", |world| refused_options(world, "quiet")),
        ("missing_first_program", |world| refused_options(world, "init=nosuch")),
        ("no_archive", |world| refused_archive(world, None)),
        ("rubbish_as_archive", |world| refused_archive(world, Some(b"this is no archive".repeat(100)))),
        ("empty_archive", |world| refused_archive(world, Some(pack(&[])))),
        ("archive_cut_short", archive_cut_short),
        ("sigma0_is_no_elf", |world| refused_archive(world, Some(with_rubbish_for(world, "sigma0")?))),
        ("sigma0_begins_nowhere", sigma0_begins_nowhere),
        ("root_is_no_elf", |world| refused_archive(world, Some(with_rubbish_for(world, "root")?))),
        ("interrupt_leaves_nothing", interrupt_leaves_nothing),
    ];
    trials.extend(others.map(|(name, verdict)| world.trial("input", format!("bad_input::{name}"), verdict)));
    trials
}

/// The command fails with a line, and the shell goes on: its exit code is the failed command's.
fn failing_script(world: &World, script: &[u8], word: &str) -> Verdict {
    let mut entries = world.entries()?;
    entries.push(Entry { name: "rubbish".into(), data: b"no ELF".to_vec() });
    let reply = world.script_in(&entries, script)?;
    if reply.code == 0 || reply.code == MACHINE_FAILED || reply.out.trim().is_empty() {
        return Err(reply.failed("expected a complaint and the exit code of a failed command"));
    }
    reply.check_contains(word)?;
    // That script with something after it: the shell has survived.
    let reply = world.script(&[script, b"exit 0\n"].concat())?;
    reply.check_code(0)
}

fn overlong_line(world: &'static World) -> Verdict {
    let line = [b"ps ".to_vec(), vec![b'x'; 140_000], b"\n".to_vec()].concat();
    failing_script(world, &line, "long")
}

fn missing_script(world: &'static World) -> Verdict {
    world.tern(&["run", "--script", "/nosuch/script"], b"")?.check_refusal(&[1])
}

/// Refused before anything is made.
fn refused_image(world: &World, output: &str) -> Verdict {
    let reply = world.tern(&["image", "-o", output], b"")?;
    reply.check_refusal(&[1])?;
    if reply.err.contains("disc image") && reply.err.contains("folder") {
        Ok(())
    } else {
        Err(reply.failed("expected to hear of the folder"))
    }
}

fn no_emulator(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let mut command = world.tern_command();
    if std::env::var_os("TERN_XTASK").is_none() {
        return Ok(()); // The front door itself would look for a compiler first.
    }
    command.env("PATH", &scratch.0).args(["run", "--script", "-"]);
    run(command, b"")?.check_refusal(&[1])
}

/// A machine that holds what is booted, and little more.
fn little_memory(world: &'static World) -> Verdict {
    let archive = paths::read(&world.system.archive)?.len() >> 20;
    let reply = world.tern(&["run", "--memory", &(archive + 3).to_string(), "--script", "-"], b"")?;
    reply.check_refusal(&[MACHINE_FAILED])?;
    if reply.err.contains("memory") { Ok(()) } else { Err(reply.failed("expected a sentence about memory")) }
}

/// A boot option that does not hold ends in one line that names it.
fn refused_options(world: &World, options: &str) -> Verdict {
    let reply: Reply = world.tern(&["run", "--script", "-", "--boot", options], b"exit\n")?;
    reply.check_refusal(&(1..=u8::MAX).collect::<Vec<u8>>())
}

/// A machine with this archive stops with a sentence, neither a panic nor a hang.
fn refused_archive(world: &World, archive: Option<Vec<u8>>) -> Verdict {
    let scratch = Scratch::create()?;
    let path = scratch.0.join("boot.cpio");
    let mut machine = world.machine();
    if let Some(bytes) = &archive {
        paths::write(&path, bytes)?;
    }
    machine.boot = Boot::Direct { kernel: world.system.kernel.clone(), archive: archive.map(|_| path) };
    let (end, text) = boot(&machine, LIMIT)?;
    let refused = match &end {
        End::Stopped(reason) => !reason.contains("PANIC") && reason != "it gave no reason",
        End::Orderly(code) => *code != 0 && text.lines().any(|line| line.starts_with("tern: ")),
        End::Broken(_) => false,
    };
    if refused { Ok(()) } else { Err(failed("expected a refusal", &end, &text)) }
}

fn archive_cut_short(world: &'static World) -> Verdict {
    let mut bytes = paths::read(&world.system.archive)?;
    bytes.truncate(bytes.len() / 3);
    refused_archive(world, Some(bytes))
}

/// The boot archive with one program replaced by something else.
fn with_rubbish_for(world: &World, program: &str) -> xtask::Result<Vec<u8>> {
    let mut entries = world.entries()?;
    for entry in entries.iter_mut().filter(|entry| entry.name == program) {
        entry.data = b"#!/bin/sh\necho not today\n".repeat(10);
    }
    Ok(pack(&entries))
}

/// The first program's entry point is in none of its segments, in one that is not executed, or nowhere at all.
fn sigma0_begins_nowhere(world: &'static World) -> Verdict {
    const ENTRY: usize = 24;
    let entries = world.entries()?;
    let sigma0 = entries.iter().find(|entry| entry.name == "sigma0");
    let image = sigma0.map(|entry| entry.data.clone()).ok_or("the boot archive has no sigma0")?;
    let data = first_data(&image).ok_or("sigma0 has no segment without code")?;
    for entry in [0, 0x1000, data, 0x7fff_ffff_f000, 0xffff_ffff_8010_1000, u64::MAX] {
        let mut entries = world.entries()?;
        for program in entries.iter_mut().filter(|program| program.name == "sigma0") {
            program.data[ENTRY..ENTRY + 8].copy_from_slice(&entry.to_le_bytes());
        }
        refused_archive(world, Some(pack(&entries)))?;
    }
    Ok(())
}

/// Address of the first segment of an ELF file that is loaded and not executed.
fn first_data(image: &[u8]) -> Option<u64> {
    let word = |at: usize| Some(u64::from_le_bytes(image.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?));
    let (table, sizes) = (word(32)? as usize, word(54)?);
    let (size, count) = (sizes as u16 as usize, (sizes >> 16) as u16 as usize);
    let is_data = |at: &usize| half(*at) == Some(1) && half(*at + 4).is_some_and(|flags| flags & 1 == 0);
    word((0..count).map(|i| table + i * size).find(is_data)? + 16)
}

/// An interrupt in the middle of a script ends the tool with its code, and the emulator with it.
fn interrupt_leaves_nothing(world: &'static World) -> Verdict {
    let mut command: Command = world.tern_command();
    command.args(["run", "--script", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = interrupt::spawn(&mut command)?;
    let pid = Pid::from_child(&child);
    let emulator = wait_for_child_of(pid);
    thread::sleep(Duration::from_millis(500));
    kill_process(pid, Signal::INT).context(|| "send a signal".into())?;
    let output = child.wait_with_output().context(|| "wait for the tool".into())?;
    let reply = Reply {
        code: output.status.code().map_or(255, |code| code as u8),
        out: String::new(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    reply.check_refusal(&[130])?;
    let Some(emulator) = emulator else { return Err(reply.failed("no emulator was started")) };
    let deadline = Instant::now() + LIMIT;
    while is_alive(emulator) {
        if Instant::now() > deadline {
            return Err(reply.failed("the emulator outlived the tool"));
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Waits until a process has a child that is the emulator.
fn wait_for_child_of(parent: Pid) -> Option<u32> {
    let parent = parent.as_raw_nonzero();
    let children = format!("/proc/{parent}/task/{parent}/children");
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        let list = fs::read_to_string(&children).unwrap_or_default();
        if let Some(child) = list.split_whitespace().next().and_then(|pid| pid.parse().ok()) {
            return Some(child);
        }
        thread::sleep(Duration::from_millis(20));
    }
    None
}

/// Whether a process runs; one that waits for its parent's attention does not.
fn is_alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z') && !line.contains('X'))
}
