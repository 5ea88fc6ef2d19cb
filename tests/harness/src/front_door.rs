//! The script `./tern` itself, and the terminal that it borrows.

use crate::world::{LIMIT, Named, Scratch, Verdict, World, run};
use libtest_mimic::Trial;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::thread;
use std::time::Duration;
use xtask::guest::Guest;
use xtask::{Context, paths};

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 8] = [
        ("a_person_has_a_disk", a_person_has_a_disk),
        ("a_program_in_no_room", a_program_in_no_room),
        ("help_names_the_verbs", help_names_the_verbs),
        ("help_needs_nothing", help_needs_nothing),
        ("missing_package_without_root", missing_package_without_root),
        ("missing_rustup", missing_rustup),
        ("sources_in_c_in_a_crate_s_place", sources_in_c_in_a_crate_s_place),
        ("terminal_is_restored", terminal_is_restored),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("door", format!("front_door::{name}"), verdict)))
}

fn help_names_the_verbs(world: &'static World) -> Verdict {
    let reply = world.tern(&["help"], b"")?;
    reply.check_code(0)?;
    ["run", "test", "bench", "check", "image", "doctor"]
        .iter()
        .try_for_each(|verb| reply.check_contains(verb))
}

/// Help comes without compiler, packages or a built tool, and is what the tool would say.
fn help_needs_nothing(world: &'static World) -> Verdict {
    let path = bare_path(&["sh", "dirname", "cat"])?;
    for arguments in [&["help"][..], &["--help"], &["help", "run"], &["run", "--help"], &["help", "doctor"]] {
        let mut command = Command::new("/usr/bin/env");
        command.arg("-i").arg(format!("PATH={}", path.0.display())).arg("/bin/sh");
        command.arg(paths::root().join("tern")).args(arguments);
        let (at_once, built) = (run(command, b"")?, world.tern(arguments, b"")?);
        at_once.check_code(0)?;
        if at_once.out != built.out || !at_once.err.is_empty() {
            return Err(at_once.failed(&format!("expected for {arguments:?}:\n{}", built.out)));
        }
    }
    Ok(())
}

/// A directory with only these programs, to be used as the whole PATH.
fn bare_path(programs: &[&str]) -> xtask::Result<Scratch> {
    let scratch = Scratch::create()?;
    for name in programs {
        let program =
            paths::find_program(name).ok_or_else(|| xtask::Error::new(format!("there is no {name}")))?;
        symlink(program, scratch.0.join(name)).context(|| "make a link".into())?;
    }
    Ok(scratch)
}

/// `./tern` with a PATH of its own; what belongs to the person is left out.
fn door(path: &Scratch, user: &[&str]) -> Command {
    let mut command = Command::new("/usr/bin/env");
    command.arg("-i").arg(format!("PATH={}", path.0.display())).args(user).arg("/bin/sh");
    command.arg(paths::root().join("tern")).args(["run", "--script", "-"]);
    command
}

const SHELL_TOOLS: [&str; 7] = ["sh", "dirname", "id", "sort", "tr", "sed", "grep"];

fn missing_package_without_root(_: &'static World) -> Verdict {
    let path = bare_path(&SHELL_TOOLS)?;
    let nobody: &[&str] = &["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let is_root = rustix::process::geteuid().is_root();
    let reply = run(door(&path, if is_root { nobody } else { &[] }), b"")?;
    reply.check_refusal(&[1])?;
    let names = reply.err.contains("qemu-system-x86") && reply.err.contains("apt-get install");
    if names { Ok(()) } else { Err(reply.failed("expected the packages and the command")) }
}

fn missing_rustup(_: &'static World) -> Verdict {
    let path = bare_path(&[&SHELL_TOOLS[..], &["cc", "qemu-system-x86_64"]].concat())?;
    let reply = run(door(&path, &["CARGO_HOME=/nonexistent"]), b"")?;
    reply.check_refusal(&[1])?;
    if reply.err.contains("rustup") { Ok(()) } else { Err(reply.failed("expected a word about rustup")) }
}

/// A program in C whose files lie where cargo looks for crates is told before cargo stops for it.
fn sources_in_c_in_a_crate_s_place(_: &'static World) -> Verdict {
    for place in ["user/apps/tune/src", "tests/guest/tune/src", "bench/guest/tune/src"] {
        refused_with(&format!("{place}/tune.c"), place)?;
    }
    Ok(())
}

/// A program beside the rooms of `user/`, which nothing would build, is told.
fn a_program_in_no_room(_: &'static World) -> Verdict {
    refused_with("user/tune/tune.c", "user/tune is in no room")?;
    refused_with("user/tune/Cargo.toml", "user/tune is in no room")
}

/// Builds a checkout that has nothing but the front door and one file; that is refused with a line that contains the text.
fn refused_with(file: &str, told: &str) -> Verdict {
    let checkout = Scratch::create()?;
    let source = checkout.0.join(file);
    fs::create_dir_all(source.parent().unwrap_or(&source))?;
    fs::write(source, "")?;
    let door = checkout.0.join("tern");
    fs::copy(paths::root().join("tern"), &door)?;
    let mut command = Command::new("/bin/sh");
    command.arg(door).arg("build");
    let reply = run(command, b"")?;
    reply.check_refusal(&[1])?;
    if reply.err.contains(told) { Ok(()) } else { Err(reply.failed(&format!("expected: {told}"))) }
}

/// The terminal's modes are the same before and after a run, however it ends: the tool's first line comes before
/// the machine, the shell's first line when it listens.
fn terminal_is_restored(world: &'static World) -> Verdict {
    for (wait_for, keys) in
        [("\"help\" lists", "exit 3\n"), ("\"help\" lists", "\u{1}x"), ("Ctrl-A x", "\u{3}")]
    {
        let tool = world.tern_command();
        let name = tool.get_program().to_string_lossy().into_owned();
        let line = format!("trap : INT; stty -g; '{name}' run --bare; echo; stty -g; echo session over");
        let mut session = Command::new("script");
        session.args(["-qec", &line, "/dev/null"]);
        for (key, value) in tool.get_envs() {
            session.env(key, value.unwrap_or_default());
        }
        let mut terminal = Guest::start_command(session)?;
        terminal.limit(Some(LIMIT));
        let ready = terminal.expect(wait_for);
        // The line above is printed just before the terminal is taken over.
        thread::sleep(Duration::from_millis(500));
        terminal.send(keys.as_bytes());
        // Ctrl-C may have come when the shell was there already; then it is the shell's, and this ends it.
        thread::sleep(Duration::from_millis(500));
        terminal.send(b"\x01x");
        let over = terminal.expect("session over");
        let text = terminal.text();
        let modes: Vec<&str> = text.lines().map(str::trim).filter(|line| is_modes(line)).collect();
        if !ready || !over || modes.len() != 2 || modes[0] != modes[1] {
            return Err(format!("the terminal was not restored after {keys:?}\n{text}").into());
        }
    }
    Ok(())
}

/// At a terminal there is a disk that nobody has asked for, and what is written there is there the next time. Without a terminal there is none.
fn a_person_has_a_disk(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let tool = world.tern_command();
    let name = tool.get_program().to_string_lossy().into_owned();
    let session = |arguments: &str, command: &str, told: &str| -> Verdict {
        let mut session = Command::new("script");
        session.current_dir(&scratch.0).args(["-qec", &format!("'{name}' run {arguments}"), "/dev/null"]);
        for (key, value) in tool.get_envs() {
            session.env(key, value.unwrap_or_default());
        }
        let mut terminal = Guest::start_command(session)?;
        terminal.limit(Some(LIMIT));
        let ready = terminal.expect("\"help\" lists");
        terminal.send(format!("{command}\rexit 0\r").as_bytes());
        if ready && terminal.expect(told) {
            terminal.finish();
            return Ok(());
        }
        Err(format!("expected {told:?} of {command}\n{}", terminal.text()).into())
    };
    session("", "echo kept and safe > /disk/file\rsync\rcat /disk/file", "\nkept and safe")?;
    session("", "cat /disk/file", "\nkept and safe")?;
    session("--bare", "ls /disk", "not found")?;
    let disk = scratch.0.join("disk.img");
    fs::metadata(&disk).context(|| format!("look at {}", disk.display()))?;
    Ok(())
}

/// Whether a line is what `stty -g` prints.
fn is_modes(line: &str) -> bool {
    line.split(':').count() > 10 && line.chars().all(|c| c.is_ascii_hexdigit() || c == ':')
}
