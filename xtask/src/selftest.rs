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

/// Most bytes of tests that are compiled and booted together: a compiler needs more memory for more of them than machines have.
const BATCH_MAX: u64 = 2 << 20;

/// Makes the tests, boots them, prints their lines. The exit code is 0 when all is well, and otherwise that of the first part that was not.
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
    let mut tests = Vec::new();
    for (number, file) in options.files.iter().enumerate() {
        // Files of several directories may have one name.
        let directory = all.join(format!("file-{number}"));
        fs::create_dir_all(&directory).context(|| format!("create {}", directory.display()))?;
        let exit_code = write_test(file, &options, &directory)?;
        if exit_code != 0 {
            return Ok(exit_code);
        }
        tests.extend(written(&directory)?);
    }
    if tests.is_empty() {
        return Err(Error::usage("there is no interface in these files, so there is nothing to test"));
    }
    let kernel = build::kernel()?;
    let mut exit_code = 0;
    for (number, batch) in batches(tests).iter().enumerate() {
        let directory = all.join(format!("batch-{number}"));
        collect(batch, &directory.join(&options.kernel))?;
        let entries = programs::build_all_with(build::DEFAULT, Some((VARIABLE, &directory)))?;
        let system = System { kernel: kernel.clone(), archive: build::archive(&entries)? };
        let found = run(&system, &options)?;
        exit_code = if exit_code == 0 { found } else { exit_code };
    }
    Ok(exit_code)
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

/// A test that quill has written, and its size in bytes.
type Test = (PathBuf, u64);

/// The test in a directory; none if its file has no interface.
fn written(directory: &Path) -> Result<Vec<Test>> {
    let entries = fs::read_dir(directory).context(|| format!("read {}", directory.display()))?;
    let test = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.path(), entry.metadata()?.len()))
    };
    entries.map(test).collect::<std::io::Result<_>>().context(|| format!("read {}", directory.display()))
}

/// Tests in their order, as many together as one system may have.
fn batches(tests: Vec<Test>) -> Vec<Vec<Test>> {
    let mut batches: Vec<Vec<Test>> = Vec::new();
    let mut bytes = 0;
    for test in tests {
        bytes += test.1;
        match batches.last_mut() {
            Some(batch) if bytes <= BATCH_MAX => batch.push(test),
            _ => {
                bytes = test.1;
                batches.push(Vec::from([test]));
            }
        }
    }
    batches
}

/// Moves the tests of a batch into one directory, under names of their own.
fn collect(batch: &[Test], directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).context(|| format!("create {}", directory.display()))?;
    for (number, (path, _)) in batch.iter().enumerate() {
        let to = directory.join(format!("test_{number}.rs"));
        fs::rename(path, &to).context(|| format!("move {} to {}", path.display(), to.display()))?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_the_order_and_the_limit() {
        let test = |name: &str, bytes| (PathBuf::from(name), bytes);
        let half = BATCH_MAX / 2;
        let tests = [("a", half), ("b", half), ("c", 1), ("d", BATCH_MAX + 1), ("e", 2)];
        let made = batches(tests.map(|(name, bytes)| test(name, bytes)).into());
        let names: Vec<Vec<&str>> =
            made.iter().map(|batch| batch.iter().filter_map(|(path, _)| path.to_str()).collect()).collect();
        assert_eq!(names, [vec!["a", "b"], vec!["c"], vec!["d"], vec!["e"]]);
        assert!(batches(Vec::new()).is_empty());
    }
}
