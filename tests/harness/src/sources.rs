//! Tests that programs of Linux bring with their sources: busybox's testsuite, redis's tests of a server elsewhere, and SQLite's `speedtest1`.
//!
//! They are no part of a plain test, since no package has them: `apt-get source --download-only busybox redis sqlite3` in the folder `target/tern/linux/sources` fetches
//! them, and who has them has these trials. The programs are those of Debian's packages, as in all trials of programs.

use crate::databases::{Elsewhere, make_root};
use crate::debian::{bring, fetched};
use crate::files::{check_disk, root_disk, tool};
use crate::linux::{PROGRAMS, linux};
use crate::world::{Scratch, Verdict, World, run_within};
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest time of a trial's machine.
const LIMIT: Duration = Duration::from_secs(3600);

/// How the archives are fetched.
const FETCH: &str =
    "apt-get source --download-only busybox redis sqlite3, in target/tern/linux/sources, fetches the sources";

/// A trial of what is in an archive.
type OfArchive = fn(&'static World, &Path) -> Verdict;

/// The trials of this module whose archives somebody has fetched.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [(&str, &str, OfArchive); 3] = [
        ("busybox_passes_what_it_passes_on_linux", "busybox_", busybox_passes_what_it_passes_on_linux),
        ("redis_passes_its_own_tests", "redis_", redis_passes_its_own_tests),
        ("speedtest1_of_sqlite_finds_what_it_finds_on_linux", "sqlite3_", speedtest1),
    ];
    let fetched = trials.into_iter().filter_map(|(name, package, verdict)| {
        let found = archive(package, ".orig.tar.");
        if found.is_none() {
            world.skip(&format!("sources::{name}"), FETCH);
        }
        let archive = found?;
        Some(world.trial("linux", format!("sources::{name}"), move |world| verdict(world, &archive)))
    });
    fetched.collect()
}

/// The newest archive of a package of sources, if somebody has fetched it.
fn archive(package: &str, part: &str) -> Option<PathBuf> {
    fetched("sources", |name| name.starts_with(package) && name.contains(part) && !name.ends_with(".asc"))
}

/// Unpacks what an archive has below its first folder, as far as paths are like this pattern.
fn unpack(archive: &Path, pattern: &str, to: &Path) -> Verdict {
    fs::create_dir_all(to)?;
    let (archive, to) = (archive.display().to_string(), to.display().to_string());
    let how = ["-xf", &archive, "-C", &to, "--strip-components=1", "--no-same-owner", "--wildcards", pattern];
    tool("/usr/bin/tar", &how)?;
    Ok(())
}

/// Tests of busybox that no trial runs: they mount, make devices, stop processes by name, or ask hosts of the internet; and `bc` calculates for a minute of Linux's.
const LEFT_OUT: [&str; 6] = ["bc", "makedevs", "mdev", "mount", "start-stop-daemon", "wget"];

/// A script that runs tests of busybox, by the shell that is tested, in the folder where it lies.
const RUNNER: &str = "cd \"${0%/*}/testsuite\" && exec sh ./runtest";

/// A root with busybox under all of its names, and its tests, which `suite/run.sh` runs.
fn busybox_root(scratch: &Scratch, archive: &Path) -> Result<PathBuf, Failed> {
    let root = scratch.0.join("disk/linux");
    for folder in ["bin", "tmp", "usr/bin", "etc", "root"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for name in ["passwd", "group"] {
        fs::copy(Path::new("/etc").join(name), root.join("etc").join(name))?;
    }
    // The name of the sandbox has an address, as that of this machine.
    fs::write(root.join("etc/hosts"), "127.0.0.1 localhost tern\n")?;
    fs::copy(PROGRAMS[0], root.join("bin/busybox"))?;
    let suite = root.join("suite");
    unpack(archive, "*/testsuite", &suite)?;
    // Tests look at a file beside the program that says what it can do.
    let settings =
        self::archive("busybox_", ".debian.tar.").ok_or("the archive of Debian's settings is missing")?;
    let unpacked = scratch.0.join("settings");
    unpack(&settings, "debian/config/pkg/static", &unpacked)?;
    fs::copy(unpacked.join("config/pkg/static"), suite.join(".config"))?;
    fs::copy(PROGRAMS[0], suite.join("busybox"))?;
    // The shell that is tested runs the tests, here and there, whatever `/bin/sh` is; each has a limit.
    let runner = suite.join("testsuite/runtest");
    let by_shell = "timeout 600 sh \"$tsdir/$applet.tests\"";
    fs::write(&runner, fs::read_to_string(&runner)?.replace("\"$tsdir/$applet.tests\"", by_shell))?;
    let mut script = String::from(RUNNER);
    for applet in tool(PROGRAMS[0], &["--list"])?.lines().filter(|name| *name != "busybox") {
        symlink("busybox", root.join("bin").join(applet))?;
        let tests = suite.join("testsuite").join(applet);
        let has_tests = tests.is_dir() || tests.with_extension("tests").is_file();
        if has_tests && !LEFT_OUT.contains(&applet) {
            script += &format!(" {applet}");
        }
    }
    fs::write(suite.join("run.sh"), script + "\n")?;
    Ok(root)
}

/// Lines that tell of a test, in order.
fn results(said: &str) -> Vec<String> {
    let kinds = ["PASS: ", "FAIL: ", "SKIPPED: ", "UNTESTED: "];
    let lines = said.lines().map(|line| line.trim_end_matches('\r'));
    lines.filter(|line| kinds.iter().any(|kind| line.starts_with(kind))).map(String::from).collect()
}

/// Each test of busybox has the result that it has on this machine.
fn busybox_passes_what_it_passes_on_linux(world: &'static World, archive: &Path) -> Verdict {
    let scratch = Scratch::create()?;
    let root = busybox_root(&scratch, archive)?;
    let disk = root_disk(&scratch, "128M")?;
    let output = Command::new(root.join("bin/busybox"))
        .arg("sh")
        .arg(root.join("suite/run.sh"))
        .env_clear()
        .env("PATH", root.join("bin"))
        .envs([("HOME", "/root"), ("TERM", "xterm"), ("USER", "root")])
        .output()?;
    let wanted = results(&String::from_utf8_lossy(&output.stdout));
    let mut command = world.tern_command();
    command.args(["run", "--disk", &disk, "--memory", "512", "--linux", "sh", "/suite/run.sh"]);
    let reply = run_within(LIMIT, command, b"")?;
    check_disk(&disk)?;
    let found = results(&reply.out);
    let wrong: Vec<&String> = wanted.iter().filter(|line| !found.contains(line)).collect();
    let is_enough = wanted.len() > 600 && found.len() == wanted.len();
    eprintln!("sources: {} tests of busybox on Linux, {} on Tern", wanted.len(), found.len());
    if wrong.is_empty() && is_enough { Ok(()) } else { Err(reply.failed(&format!("on Linux: {wrong:#?}"))) }
}

/// Files of redis's own tests that ask a server on another machine; the first of them are those that run without `--full`.
const OF_REDIS: [&str; 24] = [
    "unit/type/string",
    "unit/type/incr",
    "unit/protocol",
    "unit/keyspace",
    "unit/scan",
    "unit/type/list",
    "unit/type/list-2",
    "unit/type/list-3",
    "unit/type/set",
    "unit/type/zset",
    "unit/type/hash",
    "unit/type/stream",
    "unit/type/stream-cgroups",
    "unit/sort",
    "unit/expire",
    "unit/other",
    "unit/multi",
    "unit/pubsub",
    "unit/scripting",
    "unit/bitops",
    "unit/bitfield",
    "unit/geo",
    "unit/hyperloglog",
    "unit/dump",
];

/// Tests of redis that want the same second here and there. The clock of a PC says no parts of seconds, so another machine's may be behind.
const OF_SECONDS: [&str; 3] = ["GETEX EXAT option", "GETEX PXAT option", "Extended SET PXAT option"];

/// Number of files in a test that is not full.
const FEW: usize = 3;

/// Redis's own tests, which run here, find nothing wrong with a server on Tern.
fn redis_passes_its_own_tests(world: &'static World, archive: &Path) -> Verdict {
    let scratch = Scratch::create()?;
    let tests = scratch.0.join("redis");
    unpack(archive, "*/tests", &tests)?;
    fs::create_dir_all(tests.join("src"))?;
    for name in ["redis-cli", "redis-benchmark"] {
        symlink(Path::new("/usr/bin").join(name), tests.join("src").join(name))?;
    }
    let server = Elsewhere::start(
        world,
        &scratch,
        LIMIT,
        &["--enable-debug-command", "yes", "--enable-protected-configs", "yes"],
    )?;
    let files = if world.full { &OF_REDIS[..] } else { &OF_REDIS[..FEW] };
    let mut command = Command::new("/usr/bin/tclsh");
    command.current_dir(&tests).args([
        "tests/test_helper.tcl",
        "--host",
        "127.0.0.1",
        "--port",
        &server.port,
    ]);
    for file in files {
        command.args(["--single", file]);
    }
    for test in OF_SECONDS {
        command.args(["--skiptest", test]);
    }
    let said = run_within(LIMIT, command, b"");
    server.end()?.check_code(0)?;
    let said = said?;
    said.check_contains("All tests passed without errors")
}

/// Sizes of what `speedtest1` does, in a test that is not full and in one that is, in hundredths of the usual.
const SIZES: [&str; 2] = ["2", "25"];

/// SQLite's `speedtest1` reads on Tern the bytes that it reads on Linux, and leaves a database in which nothing is wrong.
fn speedtest1(world: &'static World, archive: &Path) -> Verdict {
    let scratch = Scratch::create()?;
    make_root(&scratch, &[("/usr/bin/sqlite3", "sqlite3")], None)?;
    let (source, root) = (scratch.0.join("source"), scratch.0.join("disk/linux"));
    unpack(archive, "*/test/speedtest1.c", &source)?;
    unpack(archive, "*/src/sqlite.h.in", &source)?;
    // The header of an installed library has the same text with a version in its place.
    let header = fs::read_to_string(source.join("src/sqlite.h.in"))?.replace("--VERSION-NUMBER--", "3000000");
    fs::write(source.join("test/sqlite3.h"), header)?;
    let [from, program] = [source.join("test/speedtest1.c"), root.join("bin/speedtest1")]
        .map(|path| path.display().to_string());
    tool("/usr/bin/gcc", &["-O2", "-o", &program, &from, SQLITE, "-lm"])?;
    bring(&root, Path::new(SQLITE), &mut BTreeSet::new())?;
    let disk = root_disk(&scratch, "256M")?;
    let place = scratch.0.join("here.db").display().to_string();
    let size = SIZES[usize::from(world.full)];
    let how = ["--verify", "--size", size, "--journal", "wal"];
    let wanted = tool(&program, &[&how[..], &[&place]].concat())?;
    let line = format!(
        "speedtest1 {} /data/there.db && sqlite3 /data/there.db 'pragma integrity_check'",
        how.join(" ")
    );
    let reply = linux(world, &disk, &["dash", "-c", &line], b"")?;
    check_disk(&disk)?;
    let found = reply.out.replace('\r', "");
    let is_alike = bytes_read(&wanted).is_some_and(|read| bytes_read(&found) == Some(read));
    if !is_alike || !found.ends_with("\nok\n") {
        return Err(reply.failed(&format!("expected\n{wanted}")));
    }
    reply.check_code(0)
}

/// The library that `speedtest1` is linked with.
const SQLITE: &str = "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0";

/// The line with the hash of all that was read, and their number.
fn bytes_read(said: &str) -> Option<&str> {
    said.lines().find(|line| line.starts_with("Verification Hash: "))
}
