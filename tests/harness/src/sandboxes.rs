//! Two sandboxes of Linux on one disk, in the system `sandboxes`: a hostile program in one reaches nothing of the other. And what is told of calls.

use crate::consoles::socket;
use crate::files::{check_disk, root_disk};
use crate::linux::compile;
use crate::world::{LIMIT, Named, Scratch, Verdict, World};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;
use xtask::archive::pack;
use xtask::console::Event;
use xtask::guest::Guest;
use xtask::machine::{Boot, Forward};
use xtask::{paths, peripherals};

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 7] = [
        ("a_hostile_program_reaches_nothing_of_the_other", a_hostile_program_reaches_nothing_of_the_other),
        ("random_calls_harm_nobody_else", random_calls_harm_nobody_else),
        ("a_server_that_is_killed_ends_its_sandbox_alone", a_server_that_is_killed_ends_its_sandbox_alone),
        ("a_server_that_crashes_ends_its_sandbox_alone", a_server_that_crashes_ends_its_sandbox_alone),
        ("nothing_is_done_without_the_monitor", nothing_is_done_without_the_monitor),
        ("calls_are_told_of", calls_are_told_of),
        ("a_program_tells_of_no_calls", a_program_tells_of_no_calls),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("linux", format!("sandboxes::{name}"), verdict)))
}

/// Random calls of a sandbox, in a plain test and in a full one, each with the longest time that they may take. Ten million need more than half an hour.
const CALLS: [(u64, Duration); 2] = [(20_000, LIMIT), (10_000_000, Duration::from_secs(3 * 3600))];

/// The shell of both.
const SHELL: &str = "/bin/busybox";

/// A disk with a root in each of these directories.
fn disk(scratch: &Scratch, roots: &[&str]) -> Result<String, Failed> {
    for root in roots {
        let bin = scratch.0.join("disk").join(root).join("bin");
        fs::create_dir_all(&bin)?;
        fs::copy(SHELL, bin.join("busybox"))
            .map_err(|error| format!("{SHELL}: {error}; the package busybox-static has it"))?;
        for name in ["sh", "cat"] {
            symlink("busybox", bin.join(name))?;
        }
    }
    Ok(scratch.0.join("disk.img").display().to_string())
}

/// Builds one of the programs of `tests/linux/sandbox.c`.
fn program(name: &str, to: &Path) -> Verdict {
    compile("sandbox.c", &[&format!("-D{}", name.to_uppercase())], to)
}

/// A machine whose console is read until something stands there.
struct Console {
    guest: Guest,
    text: String,
}

impl Console {
    fn expect(&mut self, wanted: &str) -> Verdict {
        self.expect_before(wanted, None)
    }

    /// Waits for a text, and fails if another one comes first.
    fn expect_before(&mut self, wanted: &str, other: Option<&str>) -> Verdict {
        let len = wanted.len().max(other.map_or(0, str::len));
        let mut from = 0;
        // A text that was not there before ends in what has come since.
        while !self.text[from..].contains(wanted) {
            if other.is_some_and(|other| self.text[from..].contains(other)) {
                return Err(format!("expected {wanted:?}\n--- console\n{}", self.text).into());
            }
            from = self.text.floor_char_boundary(self.text.len().saturating_sub(len));
            match self.guest.next_event() {
                Some(Event::Text(bytes)) => self.text += &String::from_utf8_lossy(&bytes),
                Some(_) => {}
                None => return Err(format!("expected {wanted:?}\n--- console\n{}", self.text).into()),
            }
        }
        Ok(())
    }
}

/// Writes down the command with which a sandbox begins.
fn start(scratch: &Scratch, root: &str, line: &str) -> Verdict {
    let start = scratch.0.join("disk").join(root).join("start");
    fs::write(&start, format!("{line}\n"))?;
    fs::set_permissions(start, PermissionsExt::from_mode(0o755))?;
    Ok(())
}

/// A machine with the system `sandboxes` on a disk, which is made of what there is by now. The victim is in the second one.
fn boot(world: &World, scratch: &Scratch, disk: &str, limit: Duration) -> Result<Console, Failed> {
    boot_as(world, scratch, disk, limit, &description()?)
}

/// Text of the description of the system.
fn description() -> Result<String, Failed> {
    Ok(fs::read_to_string(paths::root().join("systems/sandboxes.toml"))?)
}

/// That with another description.
fn boot_as(
    world: &World,
    scratch: &Scratch,
    disk: &str,
    limit: Duration,
    text: &str,
) -> Result<Console, Failed> {
    program("victim", &scratch.0.join("disk/two/bin/victim"))?;
    start(scratch, "two", "/bin/victim")?;
    fs::write(scratch.0.join("disk/two/secret"), "of two\n")?;
    root_disk(scratch, "64M")?;
    let archive = scratch.0.join("boot.cpio");
    let entries = world.entries_of(|files| xtask::system::of_text("sandboxes", text, files))?;
    paths::write(&archive, &pack(&entries))?;
    // A shell that takes commands without a prompt.
    let mut machine = world.machine().with("init=shell args=script");
    machine.boot = Boot::Direct { kernel: world.system.kernel.clone(), archive: Some(archive) };
    machine.disk = Some(peripherals::disk(Path::new(disk))?);
    // Devices that no sandbox has: a card, and a second console, at which nobody sits.
    machine.net = Some(Forward { host: peripherals::free_port()?, guest: 80 });
    machine.console = Some(socket()?);
    let mut guest = Guest::start(&machine)?;
    guest.limit(Some(limit));
    let mut console = Console { guest, text: String::new() };
    console.expect("two: there")?;
    // The emulator has it open by now.
    machine.console.into_iter().for_each(|socket| drop(fs::remove_file(socket)));
    Ok(console)
}

/// The second sandbox is what it was, and the machine ends.
fn check_victim(console: &mut Console, disk: &str) -> Verdict {
    console.guest.send(b"echo go > /disk/two/go\n");
    console.expect("two: nothing was touched")?;
    console.guest.send(b"exit\n");
    while console.guest.next_event().is_some() {}
    check_disk(disk)
}

fn a_hostile_program_reaches_nothing_of_the_other(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let disk = disk(&scratch, &["one", "two"])?;
    program("hostile", &scratch.0.join("disk/one/bin/hostile"))?;
    start(&scratch, "one", "/bin/hostile")?;
    let mut console = boot(world, &scratch, &disk, LIMIT)?;
    console.guest.send(b"echo go > /disk/one/go\n");
    console.expect_before("one: nothing was reached", Some("one: done, and there are breaches"))?;
    // The monitor of the other one hears of every call, by a line for each.
    console.expect("bind(3, {sa_family=AF_UNIX, sun_path=@\"hidden\"}, 9)")?;
    check_victim(&mut console, &disk)?;
    if console.text.contains("breach") { Err(console.text.into()) } else { Ok(()) }
}

/// Random calls from a seed, by many processes and threads: the first process of the sandbox, one beside them, and another sandbox work on, and nothing is kept of them.
fn random_calls_harm_nobody_else(world: &'static World) -> Verdict {
    let (calls, limit) = CALLS[usize::from(world.full)];
    // Many of the calls make the disk safe, and nobody cuts its power off here.
    let scratch = Scratch::in_memory()?;
    let disk = disk(&scratch, &["one", "two"])?;
    compile("random.c", &[], &scratch.0.join("disk/one/bin/random"))?;
    fs::create_dir_all(scratch.0.join("disk/one/tmp"))?;
    start(&scratch, "one", &format!("exec /bin/random 1 {calls}"))?;
    let mut console = boot(world, &scratch, &disk, limit)?;
    console.expect_before("calls, and it is over", Some(": failed"))?;
    check_victim(&mut console, &disk)
}

/// A program for the first sandbox that says that it is there, and stays.
const STAYS: &str = "echo one: there; exec /bin/busybox sleep 100000";

/// Somebody ends the server of a sandbox. Its end is told, the shell and the other sandbox go on, and it can be started again.
fn a_server_that_is_killed_ends_its_sandbox_alone(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let disk = disk(&scratch, &["one", "two"])?;
    start(&scratch, "one", STAYS)?;
    let mut console = boot(world, &scratch, &disk, LIMIT)?;
    console.expect("one: there")?;
    console.guest.send(b"kill sandbox-one\n");
    console.expect("root: sandbox-one (task ")?;
    console.expect(") was killed")?;
    console.expect("ends too often and stays down; \"restart sandbox-one\" starts it again")?;
    console.guest.send(b"echo the shell goes on\n");
    console.expect("the shell goes on")?;
    console.text.clear();
    console.guest.send(b"restart sandbox-one\n");
    console.expect("one: there")?;
    check_victim(&mut console, &disk)
}

/// A server that has too little memory for itself crashes when it needs more. That is told, and the shell and the other sandbox go on.
fn a_server_that_crashes_ends_its_sandbox_alone(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let disk = disk(&scratch, &["one", "two"])?;
    start(&scratch, "one", STAYS)?;
    // The first of two entries is that of the first sandbox.
    let text = description()?.replacen(
        "memory = \"24 MiB\"\n\n[program.sandbox]",
        "memory = \"1 MiB\"\n\n[program.sandbox]",
        1,
    );
    let mut console = boot_as(world, &scratch, &disk, LIMIT, &text)?;
    console.expect("root: sandbox-one (task ")?;
    console.expect(") crashed: ")?;
    console.expect("crashes too often and stays down")?;
    console.guest.send(b"echo the shell goes on\n");
    console.expect("the shell goes on")?;
    check_victim(&mut console, &disk)?;
    if console.text.contains("one: there") { Err(console.text.into()) } else { Ok(()) }
}

/// Entry of a second console, which is a monitor that does not start again.
const MONITOR: &str = "\n[[program]]\nname = \"virtio-console\"\nserves = [\"console-2\"]\npriority = 56\npriority-max = 56\nkernel-share = 4\n\
                       memory = \"4 MiB\"\nuses = [\"console\", \"bus\"]\ndevices = [\"communication\"]\nrestarts = 0\n";

/// A sandbox whose monitor is killed makes no call any more, says so and ends. The shell and the other sandbox go on.
fn nothing_is_done_without_the_monitor(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let disk = disk(&scratch, &["one", "two"])?;
    start(
        &scratch,
        "one",
        "echo one: there; while read -t 1 x; [ ! -e /go ]; do :; done; echo one: goes on; exec /bin/busybox sleep 100000",
    )?;
    let text = description()?
        .replacen(
            "uses = [\"console\", \"files\", \"clock\"]",
            "uses = [\"console\", \"console-2\", \"files\", \"clock\"]",
            1,
        )
        .replacen("files = 500\n", "files = 500\nmonitor = \"console-2\"\n", 1);
    let mut console = boot_as(world, &scratch, &disk, LIMIT, &(text + MONITOR))?;
    console.expect("one: there")?;
    console.guest.send(b"kill virtio-console\n");
    console.expect("linux: the monitor does not answer")?;
    console.expect("root: sandbox-one (task ")?;
    console.guest.send(b"echo go > /disk/one/go\necho the shell goes on\n");
    console.expect("the shell goes on")?;
    check_victim(&mut console, &disk)?;
    if console.text.contains("one: goes on") { Err(console.text.into()) } else { Ok(()) }
}

/// Lines of calls, and a table, are on standard error or in a file, and not in what the program prints.
fn calls_are_told_of(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let disk = disk(&scratch, &["linux"])?;
    fs::write(scratch.0.join("disk/linux/text"), "a line\n")?;
    root_disk(&scratch, "64M")?;
    let reply = world.tern(
        &["run", "--disk", &disk, "--strace", "--profile", "--linux", "cat", "/text", "/nosuch"],
        b"",
    )?;
    reply.check_contains("a line\n")?;
    reply.check_code(1)?;
    for line in [
        "openat(AT_FDCWD, \"/text\", O_RDONLY)",
        "openat(AT_FDCWD, \"/nosuch\", O_RDONLY)",
        "= -1 ENOENT (No such file or directory)\n",
        "exit_group(1)                           = ?\n",
        "+++ exited with 1 +++\n",
        "% time     seconds  usecs/call     calls    errors syscall\n",
    ] {
        reply.check_error(line)?;
    }
    if reply.out.contains("exit_group") {
        return Err(reply.failed("calls are among what the program prints"));
    }
    let file = scratch.0.join("calls").display().to_string();
    let script = "(read word; echo $word) < /text; cat /text & wait";
    let reply = world
        .tern(&["run", "--disk", &disk, &format!("--strace={file}"), "--linux", "sh", "-c", script], b"")?;
    reply.check_code(0)?;
    let told = fs::read_to_string(&file)?;
    for line in [
        "[pid     2] ",
        " <unfinished ...>\n",
        " resumed>",
        "--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, ",
    ] {
        if !told.contains(line) {
            return Err(format!("expected {line:?} in\n{told}").into());
        }
    }
    Ok(())
}

/// A program prints what the machine prints to tell of a call, of a crash and of its end, also in pieces. It is text, as all that it prints.
fn a_program_tells_of_no_calls(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let disk = disk(&scratch, &["linux"])?;
    let marks = ["trace forged(1) = 0\n", "exit=7", "crash forged 0", "begin"];
    let text: String = marks.iter().map(|mark| format!("\x1b]tern;{mark}\x07")).collect();
    fs::write(scratch.0.join("disk/linux/text"), format!("before\n{text}\nbehind\n"))?;
    // Each byte is a call of its own.
    let script = "cat /text; while IFS= read -r -n1 byte; do printf '%s' \"$byte\"; done < /text; exit 3";
    root_disk(&scratch, "64M")?;
    let reply = world.tern(&["run", "--disk", &disk, "--strace", "--linux", "sh", "-c", script], b"")?;
    reply.check_code(3)?;
    if reply.err.lines().any(|line| line.starts_with("forged")) {
        return Err(reply.failed("a program tells of a call that nobody has made"));
    }
    for part in ["before\n", "forged(1) = 0", "exit=7", "crash forged 0", "begin", "behind\n"] {
        reply.check_contains(part)?;
    }
    reply.check_error("write(1, ")?;
    reply.check_error("exit_group(3)")
}
