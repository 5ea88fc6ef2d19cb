//! The verb `selftest`: tests the stubs of interface files in the booted system, between two tasks.
//!
//! quill writes clients and servers that test each other; `tests/guest/stub-test` takes them the place of its own.

use crate::build::{self, System};
use crate::cli::SelftestOptions;
use crate::guest::Guest;
use crate::machine::Machine;
use crate::{Context, Error, Result, interrupt, paths, programs};
use quill::kernel::{KernelPart, TernDoor, TernDoorPlain, TernIpc};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Tells the build script of `stub-test` where the self-tests are.
const VARIABLE: &str = "TERN_SELFTEST";

/// Longest time from switching on to the last line.
const LIMIT: Duration = Duration::from_secs(600);

/// Makes the tests, boots them, prints their lines. The exit code is 0 when all is well, 1 when it is not.
pub fn perform(options: SelftestOptions) -> Result<u8> {
    if ![TernIpc.name(), TernDoor.name(), TernDoorPlain.name()].contains(&options.kernel.as_str()) {
        return Err(Error::usage("--kernel is tern-ipc, tern-door or tern-door-plain"));
    }
    for file in &options.files {
        let opened = fs::File::open(file);
        opened.map_err(|error| Error::usage(format!("read {}: {error}", file.display())))?;
    }
    let all = paths::out()?.join("selftest");
    let _ = fs::remove_dir_all(&all);
    let directory = all.join(&options.kernel);
    fs::create_dir_all(&directory).context(|| format!("create {}", directory.display()))?;
    for file in &options.files {
        let exit_code = write_test(file, &options, &directory)?;
        if exit_code != 0 {
            return Ok(exit_code);
        }
    }
    let tests = fs::read_dir(&directory).context(|| format!("read {}", directory.display()))?.count();
    if tests < options.files.len() {
        return Err(Error::usage("two of the files have the same name, or one has no interface"));
    }
    let system = System {
        kernel: build::kernel()?,
        archive: build::archive(&programs::build_all_with(build::DEFAULT, Some((VARIABLE, &all)))?)?,
    };
    run(&system, &options)
}

/// Lets quill write the self-test of a file; its exit code.
fn write_test(file: &Path, options: &SelftestOptions, directory: &Path) -> Result<u8> {
    let mut quill = Command::new("cargo");
    quill.args(["run", "--quiet", "--manifest-path"]).arg(paths::root().join("Cargo.toml"));
    quill.args(["--package", "quill", "--", "test", "--kernel", &options.kernel]);
    quill.arg("-o").arg(directory);
    quill.args(options.include.iter().flat_map(|include| [OsStr::new("-I"), include.as_os_str()]));
    quill.args(options.define.iter().flat_map(|define| ["-D", define]));
    let status = interrupt::status(quill.arg(file))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

fn run(system: &System, options: &SelftestOptions) -> Result<u8> {
    let boot = format!("init=stub-test args=rounds={},seed={}", options.rounds, options.seed);
    let mut guest = Guest::start(&Machine::new(system).with(&boot))?;
    guest.limit(Some(LIMIT));
    while guest.next_event().is_some() {}
    let end = guest.finish();
    let text = guest.text();
    let lines = text.lines().map(str::trim_end);
    lines.filter(|line| line.starts_with("SELFTEST ") || line.starts_with("  ")).for_each(|line| {
        println!("{}", line.strip_prefix("SELFTEST ").unwrap_or(line));
    });
    end.code()
}

/// The files that somebody names are there, whatever the current directory of those who read them.
pub fn absolute(path: &str) -> std::result::Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| error.to_string())
}
