//! Programs of Linux, as Debian ships them: what they print on Linux they print here.

use crate::debian::bring;
use crate::files::{check_disk, root_disk, tool};
use crate::world::{LIMIT, Named, Reply, Scratch, Verdict, World, run, run_within};
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 11] = [
        ("a_terminal_edits_lines", a_terminal_edits_lines),
        ("what_is_no_program_is_told", what_is_no_program_is_told),
        ("a_program_is_known_by_its_header", a_program_is_known_by_its_header),
        ("registers_are_what_they_were", registers_are_what_they_were),
        ("corners_are_those_of_linux", corners_are_those_of_linux),
        ("attributes_of_files_are_those_of_linux", attributes_of_files_are_those_of_linux),
        ("threads_and_code_that_is_made", threads_and_code_that_is_made),
        ("what_the_standard_library_of_rust_does", what_the_standard_library_of_rust_does),
        ("classes_of_stress_ng_end_well", classes_of_stress_ng_end_well),
        ("busybox_prints_what_it_prints_on_linux", busybox_prints_what_it_prints_on_linux),
        ("bash_prints_what_it_prints_on_linux", bash_prints_what_it_prints_on_linux),
    ];
    trials
        .into_iter()
        .map(|(name, verdict)| world.trial("linux", format!("linux::{name}"), verdict))
        .collect()
}

/// Programs that the tests run, as Debian's packages have them.
pub const PROGRAMS: [&str; 2] = ["/bin/busybox", "/bin/bash-static"];

/// Directory in which each command begins.
const PLACE: &str = "/tmp/place";

/// A root of Linux: a folder of this machine, and the disk that is made of it.
pub struct Root {
    scratch: Scratch,
}

impl Root {
    /// Folders, and both shells.
    pub fn new() -> Result<Root, Failed> {
        let scratch = Scratch::create()?;
        let root = Root { scratch };
        for folder in ["bin", "tmp", "usr/bin", "lists"] {
            fs::create_dir_all(root.folder().join(folder))?;
        }
        for program in PROGRAMS {
            let name = Path::new(program).file_name().ok_or("a program has a name")?;
            fs::copy(program, root.folder().join("bin").join(name)).map_err(|error| {
                format!("{program}: {error}; it is in the package busybox-static or bash-static")
            })?;
        }
        let applets = tool(PROGRAMS[0], &["--list"])?;
        for applet in applets.lines().filter(|applet| *applet != "busybox") {
            symlink("busybox", root.folder().join("bin").join(applet))?;
        }
        let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("../linux");
        for list in ["run.sh", "busybox.txt", "bash.txt", "zsh.txt", "sash.txt"] {
            fs::copy(lists.join(list), root.folder().join("lists").join(list))?;
        }
        Ok(root)
    }

    /// The folder.
    pub fn folder(&self) -> PathBuf {
        self.scratch.0.join("disk/linux")
    }

    /// The disk, made of the folder as it is now.
    pub fn disk(&self) -> Result<String, Failed> {
        root_disk(&self.scratch, "64M")
    }

    /// Output of a list of commands on this machine, by a shell that wants them so.
    fn on_linux(&self, shell: &str, list: &str, how: &str) -> Result<String, Failed> {
        let folder = self.folder();
        let here = |path: &str| folder.join(path).display().to_string();
        let output = Command::new(here("bin/busybox"))
            .args([
                "sh",
                &here("lists/run.sh"),
                &here(shell),
                &here(list),
                &self.scratch.0.join("place").display().to_string(),
                how,
            ])
            .env_clear()
            .env("PATH", here("bin"))
            .env("HOME", "/root")
            .env("TERM", "xterm")
            .env("USER", "root")
            .output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a list here and there by a shell that wants its commands so (`run.sh`), and compares.
    pub fn compare(&self, world: &World, shell: &str, list: &str, how: &str) -> Verdict {
        let disk = self.disk()?;
        let wanted = self.on_linux(shell, list, how)?;
        let (shell, path) = (format!("/{shell}"), format!("/{list}"));
        let reply = linux(world, &disk, &["sh", "/lists/run.sh", &shell, &path, PLACE, how], b"")?;
        check_disk(&disk)?;
        same_output(&wanted, &reply, &self.folder().join(list), &self.folder().display().to_string())
    }
}

/// Runs a program of Linux that is on a disk.
pub fn linux(world: &World, disk: &str, words: &[&str], input: &[u8]) -> Result<Reply, Failed> {
    let mut all = Vec::from(["run", "--disk", disk, "--linux"]);
    all.extend(words);
    Ok(world.tern(&all, input)?)
}

/// Runs a list here and there, and compares.
fn compare(world: &World, shell: &str, list: &str) -> Verdict {
    Root::new()?.compare(world, shell, list, "")
}

/// Compares outputs of a list of command lines, each with its number. Paths of `folder` on this machine are those of the root there.
pub fn same_output(wanted: &str, reply: &Reply, list: &Path, folder: &str) -> Verdict {
    let lines = fs::read_to_string(list)?;
    let lines: Vec<&str> = lines.lines().collect();
    let mut wrong = String::new();
    let pieces = |text: &str| -> Vec<String> { text.split("@@ ").map(str::to_string).collect() };
    let (wanted, found) = (pieces(wanted), pieces(&reply.out.replace('\r', "")));
    let mut line = "";
    for (number, piece) in wanted.iter().enumerate() {
        let piece = piece.replace(folder, "");
        // A status has no number of its own.
        let first = piece.split_whitespace().next().and_then(|word| word.parse::<usize>().ok());
        line = first.and_then(|number| lines.get(number - 1)).copied().unwrap_or(line);
        if found.get(number) != Some(&piece) {
            let there = found.get(number).map_or("(nothing)", String::as_str);
            wrong += &format!("{line}\n  on Linux: {piece:?}\n  on Tern:  {there:?}\n");
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(reply.failed(&wrong)) }
}

fn busybox_prints_what_it_prints_on_linux(world: &'static World) -> Verdict {
    compare(world, "bin/sh", "lists/busybox.txt")
}

fn bash_prints_what_it_prints_on_linux(world: &'static World) -> Verdict {
    compare(world, "bin/bash-static", "lists/bash.txt")
}

/// Path of a program of `tests/linux`.
pub fn source(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../linux").join(name).display().to_string()
}

/// Compiles a program of `tests/linux` that needs no C library.
pub fn compile(name: &str, options: &[&str], to: &Path) -> Verdict {
    let source = source(name);
    let to = to.display().to_string();
    let flags =
        ["-O1", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-fno-pie", "-no-pie"];
    tool("/usr/bin/gcc", &[&flags[..], options, &["-o", &to, &source]].concat())?;
    Ok(())
}

/// Registers survive calls, handlers of signals and interruptions, in three processes at once: on Linux and here.
fn registers_are_what_they_were(world: &'static World) -> Verdict {
    let root = Root::new()?;
    let program = root.folder().join("bin/registers");
    compile("registers.c", &[], &program)?;
    let wanted = tool(&program.display().to_string(), &[])?;
    let disk = root.disk()?;
    let reply = linux(world, &disk, &["registers"], b"")?;
    reply.check_contains(&wanted)?;
    reply.check_code(0)
}

/// Extended attributes that a program sets are read from the disk by Linux's `debugfs`, and those that this sets by the program.
fn attributes_of_files_are_those_of_linux(world: &'static World) -> Verdict {
    let root = Root::new()?;
    let program = root.folder().join("bin/attributes").display().to_string();
    tool("/usr/bin/gcc", &["-O1", "-static", "-s", "-o", &program, &source("attributes.c")])?;
    let disk = root.disk()?;
    let reply = linux(world, &disk, &["attributes", "set"], b"")?;
    reply.check_contains("/tmp/f user.nothing: No data available\n")?;
    let set = "/tmp/f user.comment = by a program\n/tmp/f user.large: 1000 bytes, the last of them x\n\
               /tmp/d user.comment = of a directory\n";
    if !reply.out.replace('\r', "").contains(set) {
        return Err(reply.failed(&format!("expected\n{set}")));
    }
    check_disk(&disk)?;
    for (path, value) in [("f", "by a program"), ("d", "of a directory")] {
        let said = tool("debugfs", &["-R", &format!("ea_get -V /linux/tmp/{path} user.comment"), &disk])?;
        if !said.contains(value) {
            return Err(format!("debugfs finds {said:?} at {path}").into());
        }
    }
    tool("debugfs", &["-w", "-R", "ea_set /linux/tmp/f user.host by-linux", &disk])?;
    let reply = linux(world, &disk, &["attributes", "get"], b"")?;
    reply.check_contains("/tmp/f user.host = by-linux")?;
    reply.check_contains("/tmp/f user.comment = by a program")?;
    reply.check_code(0)
}

/// Runs a program of a root here, where it has a directory of its own, and there. It prints one text.
pub fn prints_one_text(world: &World, root: &Root, name: &str) -> Verdict {
    let program = root.folder().join("bin").join(name).display().to_string();
    prints_text_of(world, root, &[&program], &[name])
}

/// Runs a program that is called so on this machine, and so there; the directory is its last word. It prints one text.
pub fn prints_text_of(world: &World, root: &Root, here: &[&str], there: &[&str]) -> Verdict {
    let place = root.scratch.0.join("place").display().to_string();
    fs::create_dir_all(&place)?;
    let wanted = tool(here[0], &[&here[1..], &[&place]].concat())?;
    let disk = root.disk()?;
    let reply = linux(world, &disk, &[there, &["/tmp"]].concat(), b"")?;
    if wanted != reply.out.replace('\r', "") || !wanted.ends_with("all is well\n") {
        return Err(reply.failed(&format!("expected\n{wanted}")));
    }
    reply.check_code(0)?;
    check_disk(&disk)
}

/// Locks of each kind, threads that are cancelled or get signals, children of programs with threads, code that a program makes and changes: by the C library.
fn threads_and_code_that_is_made(world: &'static World) -> Verdict {
    let root = Root::new()?;
    let source = source("threads.c");
    let program = root.folder().join("bin/threads").display().to_string();
    tool("/usr/bin/gcc", &["-O2", "-static", "-pthread", "-s", "-o", &program, &source])?;
    prints_one_text(world, &root, "threads")
}

/// Classes of `stress-ng` do their work and find nothing wrong with it, each for a bounded count (`stress.sh`). The plain test has one in three: those for the processor, memory, pipes, futexes, signals, `fork` and `mmap`.
fn classes_of_stress_ng_end_well(world: &'static World) -> Verdict {
    let root = Root::new()?;
    bring(&root.folder(), Path::new("/usr/bin/stress-ng"), &mut BTreeSet::new())?;
    fs::copy(source("stress.sh"), root.folder().join("lists/stress.sh"))?;
    let disk = root.disk()?;
    let [times, one_in] = if world.full { ["2", "1"] } else { ["1", "3"] };
    let mut command = world.tern_command();
    command.args([
        "run",
        "--disk",
        &disk,
        "--memory",
        "512",
        "--linux",
        "sh",
        "/lists/stress.sh",
        times,
        one_in,
    ]);
    let reply = run_within(LIMIT * if world.full { 10 } else { 3 }, command, b"")?;
    check_disk(&disk)?;
    reply.check_contains("all classes\n")?;
    reply.check_code(0)
}

/// Threads, channels, files, processes, sockets and clocks of Rust's standard library.
fn what_the_standard_library_of_rust_does(world: &'static World) -> Verdict {
    let root = Root::new()?;
    let program = root.folder().join("bin/standard");
    let mut command = Command::new("rustc");
    command.args([
        "--edition",
        "2024",
        "-O",
        "-C",
        "target-feature=+crt-static",
        "-C",
        "strip=symbols",
        "-o",
    ]);
    command.arg(program).arg(source("standard.rs"));
    let reply = run(command, b"")?;
    reply.check_code(0)?;
    prints_one_text(world, &root, "standard")
}

/// Handlers of several signals, descriptors that are closed while others wait with them, places, empty paths, memory of children, objects of System V's ipc, filters and numbers of calls: a program prints what they do, here and there.
fn corners_are_those_of_linux(world: &'static World) -> Verdict {
    let root = Root::new()?;
    let program = root.folder().join("bin/corners");
    compile("corners.c", &[], &program)?;
    let place = root.scratch.0.join("place").display().to_string();
    fs::create_dir_all(&place)?;
    let wanted = tool(&program.display().to_string(), &[&place])?;
    let disk = root.disk()?;
    let reply = linux(world, &disk, &["corners", "/tmp"], b"")?;
    check_disk(&disk)?;
    // Calls that are not there are told of on the console.
    let lines = |text: &str| -> Vec<String> {
        let text = text.replace('\r', "");
        text.lines().filter(|line| !line.starts_with("linux: call ")).map(str::to_string).collect()
    };
    for (number, (wanted, found)) in lines(&wanted).into_iter().zip(lines(&reply.out)).enumerate() {
        if wanted != found {
            return Err(
                reply.failed(&format!("line {}: on Linux: {wanted:?}, on Tern: {found:?}", number + 1))
            );
        }
    }
    reply.check_contains("all corners\n")?;
    reply.check_code(0)
}

/// A program reads lines from a terminal, where they are edited.
fn a_terminal_edits_lines(world: &'static World) -> Verdict {
    let root = Root::new()?;
    let disk = root.disk()?;
    let reply = linux(world, &disk, &["cat"], b"wrong\x15this is editee\x7fd\n")?;
    // The echo, then what the program prints.
    reply.check_contains("\nthis is edited\n")?;
    reply.check_code(0)
}

/// The shell runs a file by its header: for Linux, static or not, with the root to which it belongs, and for Tern.
fn a_program_is_known_by_its_header(world: &'static World) -> Verdict {
    let root = Root::new()?;
    let other = root.scratch.0.join("disk/other");
    bring(&other, Path::new("/usr/bin/env"), &mut BTreeSet::new())?;
    fs::create_dir_all(root.scratch.0.join("disk/alone"))?;
    fs::copy(PROGRAMS[0], root.scratch.0.join("disk/alone/busybox"))?;
    fs::copy("/usr/bin/env", root.scratch.0.join("disk/alone/env"))?;
    fs::write(root.scratch.0.join("disk/alone/text"), "no program\n")?;
    let disk = root.disk()?;
    let run = |script: &str| world.tern(&["run", "--disk", &disk, "--script", "-"], script.as_bytes());
    // A program of Linux takes what is typed behind it, so each is the last one.
    for (script, said, status) in [
        ("run /disk/linux/bin/busybox ls /lists/run.sh\n", "/lists/run.sh\n", 0),
        (
            "cd /disk/linux/bin\n./bash-static -c \"echo $0 $BASH_VERSINFO; exit 4\"\n",
            "/bin/./bash-static 5\n",
            4,
        ),
        ("run /disk/other/usr/bin/env A=1\n", "A=1\n", 0),
        ("run /disk/alone/busybox ls /busybox\n", "/busybox\n", 0),
        ("run /boot/hello-rust\n", "Hello from Rust\n", 0),
        (
            "run /disk/alone/env\n",
            "run: /disk/alone/env: its interpreter /lib64/ld-linux-x86-64.so.2 is below none of",
            126,
        ),
        ("run /disk/alone/text\n", "run: /disk/alone/text: it is no program\n", 126),
        ("/disk/alone/nosuch\n", "run: /disk/alone/nosuch: not found\n", 127),
        ("run /disk/alone\n", "run: /disk/alone: ", 126),
    ] {
        let reply = run(script)?;
        reply.check_contains(said)?;
        reply.check_code(status)?;
    }
    Ok(())
}

/// Path of the interpreter of programs that are linked with shared libraries.
const INTERPRETER: &[u8] = b"/lib64/ld-linux-x86-64.so.2";

fn what_is_no_program_is_told(world: &'static World) -> Verdict {
    let root = Root::new()?;
    let bin = root.folder().join("bin");
    let whole = fs::read(PROGRAMS[0])?;
    fs::write(bin.join("cut-off"), &whole[..100])?;
    fs::write(bin.join("text"), "no program\n")?;
    let mut other = whole.clone();
    // Of another processor.
    other[18] = 0xb7;
    fs::write(bin.join("other"), &other)?;
    // The first two segments begin at one address.
    let mut overlapping = whole.clone();
    overlapping.copy_within(64 + 16..64 + 32, 64 + 56 + 16);
    fs::write(bin.join("overlapping"), &overlapping)?;
    let linked = fs::read("/usr/bin/env")?;
    let at = linked.windows(INTERPRETER.len()).position(|bytes| bytes == INTERPRETER);
    fs::write(bin.join("alone"), &linked)?;
    let mut nameless = linked.clone();
    nameless[at.ok_or("env has an interpreter")?..][..INTERPRETER.len()].fill(0);
    fs::write(bin.join("nameless"), &nameless)?;
    for name in ["cut-off", "text", "other", "overlapping", "alone", "nameless"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(bin.join(name), mode)?;
    }
    let disk = root.disk()?;
    for (name, error) in [
        ("cut-off", "ENOEXEC"),
        ("text", "ENOEXEC"),
        ("other", "ENOEXEC"),
        ("overlapping", "ENOEXEC"),
        // Its interpreter is not there; or has no name, which leads to the directory where the program begins.
        ("alone", "ENOENT"),
        ("nameless", "EACCES"),
        ("nosuch", "ENOENT"),
        ("/tmp", "EACCES"),
    ] {
        let reply = linux(world, &disk, &[name], b"")?;
        reply.check_contains(&format!("linux: {name}: {error}"))?;
        reply.check_code(127)?;
    }
    Ok(())
}
