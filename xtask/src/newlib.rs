//! The C library of C programs: newlib, built from the source that the Debian package `newlib-source` brings.
//!
//! Nothing of it is in this tree. It is built once, with newlib's own configure script, into the build directory, and again when
//! the source, the options here or the compiler are others. What newlib asks of a system is in `user/lib/c/lib`.

use crate::build::run_builder;
use crate::fresh;
use crate::{Context, Error, Result, paths};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Source archive that the Debian package installs.
pub const SOURCE: &str = "/usr/src/newlib/newlib-3.3.0.tar.xz";

/// The package.
pub const PACKAGE: &str = "newlib-source";

/// SHA-256 of the source in `newlib-source` 3.3.0-1.3+deb12u1, with which the tests have passed.
const TESTED: &str = "c6f3a88b9d93420904241b231ca8647303be3bfb3cfef6adc8d1ea9207291033";

/// newlib for a machine without an operating system, whose threads have a `struct _reent` each, share the standard streams, and
/// lock what they share.
const OPTIONS: [&str; 10] = [
    "--build=x86_64-pc-linux-gnu",
    "--host=x86_64-unknown-elf",
    "--target=x86_64-unknown-elf",
    "--disable-multilib",
    "--disable-newlib-supplied-syscalls",
    "--enable-newlib-retargetable-locking",
    "--enable-newlib-global-stdio-streams",
    "--enable-newlib-io-long-long",
    "--enable-newlib-io-c99-formats",
    "--silent",
];

/// Options of the compiler for the library alone. The functions that it wants of a system are those with a thread's data as their first argument.
const LIBRARY_FLAGS: [&str; 3] = ["-O2", "-DREENTRANT_SYSCALLS_PROVIDED", "-UMISSING_SYSCALL_NAMES"];

/// Option of the compiler by which failed assertions of the library name its files as they are in its own source, wherever that is built.
const MAP: &str = "-fmacro-prefix-map=";

/// Options of the compiler for all C code on Tern, the library as well as programs. The compiler is the host's: what makes it think of Linux
/// is taken away. The last makes `errno` and its like a thread's own.
pub const TARGET_FLAGS: [&str; 11] = [
    "-fno-pie",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-U__linux__",
    "-U__linux",
    "-Ulinux",
    "-U__gnu_linux__",
    "-U__unix__",
    "-U__unix",
    "-Uunix",
    "-D__DYNAMIC_REENT__",
];

/// A finished library.
#[derive(Clone, Debug)]
pub struct Newlib {
    /// Its headers.
    pub include: PathBuf,
    /// `libc.a` and `libm.a`.
    pub lib: PathBuf,
}

/// The library, built if it is not there yet.
pub fn build() -> Result<Newlib> {
    let digest = digest(Path::new(SOURCE))?;
    let all = paths::target().join("newlib");
    let place = all.join(key(&digest)?);
    let installed = place.join("x86_64-unknown-elf");
    let newlib = Newlib { include: installed.join("include"), lib: installed.join("lib") };
    if place.is_dir() {
        return Ok(newlib);
    }
    eprintln!("tern: building the C library from {SOURCE} (once)");
    if digest != TESTED {
        eprintln!("tern: note: this is another version of {PACKAGE} than the one that was tested");
    }
    // Nobody sees half a library, and two builders do not meet.
    let work = all.join(format!("work.{}", std::process::id()));
    let outcome = build_in(&work, &place);
    let _ = fs::remove_dir_all(&work);
    outcome.map(|()| newlib)
}

fn build_in(work: &Path, place: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(work);
    let (source, objects, installed) = (work.join("source"), work.join("objects"), work.join("installed"));
    for directory in [&source, &objects] {
        paths::create(directory)?;
    }
    let log = work.join("log");
    let mut unpack = Command::new("tar");
    unpack.args(["--extract", "--strip-components=1", "--file", SOURCE, "--directory"]).arg(&source);
    quietly(&mut unpack, &log)?;
    let mut configure = Command::new(source.join("newlib/configure"));
    configure
        .args(OPTIONS)
        .arg(format!("--prefix={}", installed.display()))
        .arg(format!(
            "CFLAGS={} {} {MAP}{}/=",
            LIBRARY_FLAGS.join(" "),
            TARGET_FLAGS.join(" "),
            work.display()
        ))
        .args(["CC=gcc", "AR=ar", "RANLIB=ranlib"])
        .current_dir(&objects);
    quietly(&mut configure, &log)?;
    // A make above has its own say about how many jobs there may be.
    let jobs = std::thread::available_parallelism().map_or(1, |count| count.get());
    for (goal, jobs) in [("all", jobs), ("install", 1)] {
        let mut make = Command::new("make");
        make.args(["--silent", goal, &format!("--jobs={jobs}")]).current_dir(&objects);
        quietly(make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL"), &log)?;
    }
    match fs::rename(&installed, place) {
        // Somebody else was faster, with the same result.
        Err(_) if place.is_dir() => Ok(()),
        outcome => outcome.context(|| format!("create {}", place.display())),
    }
}

/// Runs a builder whose words nobody wants to read, unless it fails.
fn quietly(command: &mut Command, log: &Path) -> Result<()> {
    let file = fs::File::create(log).context(|| format!("write {}", log.display()))?;
    let copy = file.try_clone().context(|| format!("write {}", log.display()))?;
    let outcome = run_builder(command.env("LC_ALL", "C").stdout(file).stderr(copy), "the C library");
    if outcome.is_err() {
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        eprintln!("{}", lines[lines.len().saturating_sub(40)..].join("\n"));
    }
    outcome
}

/// The name of the directory for a library that is made of this source, with these options, by this compiler.
fn key(digest: &str) -> Result<String> {
    let compiler = output(Command::new("gcc").arg("-dumpfullversion"))?;
    let flags = OPTIONS.iter().chain(&LIBRARY_FLAGS).chain(&TARGET_FLAGS).chain([&MAP]);
    let parts = [digest, &compiler].into_iter().chain(flags.copied());
    Ok(format!("{:016x}", fresh::sum(parts.flat_map(str::as_bytes))))
}

/// SHA-256 of a file.
fn digest(path: &Path) -> Result<String> {
    if !path.is_file() {
        let why = format!("{SOURCE} is missing; install with: apt-get install {PACKAGE}");
        return Err(Error::new(why));
    }
    let line = output(Command::new("sha256sum").arg(path))?;
    Ok(line.split_whitespace().next().unwrap_or_default().to_string())
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().context(|| format!("run {:?}", command.get_program()))?;
    if !output.status.success() {
        return Err(Error::new(String::from_utf8_lossy(&output.stderr).trim().to_string()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}
