//! The verbs `miri` and `fuzz`, which need a compiler that is not stable: one pinned nightly, added when first used.

use crate::tools::{Tool, download_allowed, exit_code};
use crate::{Context, Error, Result, paths};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The pinned toolchain.
const PINNED: &str = "nightly-2026-05-20";

/// The date of its compiler, by which the same toolchain under another name is recognised.
const COMPILER_DATE: &str = "2026-05-19)";

/// The fuzzer's front end.
const CARGO_FUZZ: Tool = Tool { name: "cargo-fuzz", version: "0.13.2" };

/// Tests that Miri runs unless a filter is given: those of the modules with unsafe code, and of what they carry.
const MIRI_FILTERS: [&str; 2] = ["mem::", "util::"];

/// Objects that the kernel makes live as long as the machine, so the tests leak it.
const MIRI_FLAGS: &str = "-Zmiri-ignore-leaks";

/// Runs the kernel's host tests under Miri.
pub fn miri(arguments: &[String]) -> Result<u8> {
    check_miri(arguments)?;
    let toolchain = toolchain()?;
    need_component(&toolchain, "miri")?;
    need_component(&toolchain, "rust-src")?;
    let mut command = cargo(&toolchain);
    command.env("MIRIFLAGS", MIRI_FLAGS);
    command.args(["miri", "test", "--package", "tern-kernel", "--lib", "--target-dir"]);
    command.arg(paths::target().join("miri"));
    command.arg("--manifest-path").arg(paths::root().join("Cargo.toml")).arg("--");
    if arguments.is_empty() {
        command.args(MIRI_FILTERS);
    }
    exit_code(command.args(arguments))
}

/// Runs a fuzz target, or lists them.
pub fn fuzz(arguments: &[String]) -> Result<u8> {
    let directory = paths::root().join("fuzz");
    let targets = fuzz_targets()?;
    let Some((target, rest)) = arguments.split_first() else {
        println!("targets: {}", targets.join(" "));
        println!("./tern fuzz TARGET [-- -max_total_time=SECONDS]");
        return Ok(0);
    };
    if !targets.contains(target) {
        return Err(Error::usage(format!(
            "there is no fuzz target {target}; there are: {}",
            targets.join(", ")
        )));
    }
    check_fuzz(rest, &directory)?;
    let toolchain = toolchain()?;
    let front_end = CARGO_FUZZ.ensure(cargo(&toolchain))?;
    let mut command = Command::new(front_end);
    command.args(["run", "--fuzz-dir"]).arg(&directory).arg("--target-dir").arg(paths::target().join("fuzz"));
    if target.starts_with("idl_") {
        // quill has no unsafe code, so a sanitizer would find nothing, and take most of the time.
        command.arg("--sanitizer=none");
    }
    command.arg(target).args(rest).current_dir(&directory).env("RUSTUP_TOOLCHAIN", &toolchain);
    exit_code(&mut command)
}

/// Options of Rust's test programs, without and with a value in the next word.
const TEST_FLAGS: [&str; 9] = [
    "--exact",
    "--ignored",
    "--include-ignored",
    "--list",
    "--nocapture",
    "--no-capture",
    "--quiet",
    "-q",
    "--show-output",
];
const TEST_OPTIONS: [&str; 4] = ["--skip", "--test-threads", "--color", "--format"];

/// Options of `cargo fuzz run` that make sense here, likewise.
const FUZZ_FLAGS: [&str; 6] = ["--dev", "--release", "--debug-assertions", "--verbose", "-v", "--careful"];
const FUZZ_OPTIONS: [&str; 2] = ["--jobs", "-j"];

/// Refuses what the test program would refuse: before it is built, and before a toolchain is installed for that.
fn check_miri(arguments: &[String]) -> Result<()> {
    words_behind_options(arguments, &TEST_FLAGS, &TEST_OPTIONS, "miri").map(drop)
}

/// Refuses what the fuzzer would refuse, before it is installed. Inputs are found in the folder in which it runs.
fn check_fuzz(arguments: &[String], directory: &Path) -> Result<()> {
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let (own, engine) = arguments.split_at(end);
    let mut inputs = words_behind_options(own, &FUZZ_FLAGS, &FUZZ_OPTIONS, "fuzz")?;
    if let Some(missing) = inputs.find(|input| !directory.join(input).exists()) {
        return Err(Error::usage(format!("there is no input {missing} in {}", directory.display())));
    }
    let is_engine_option = |word: &&String| word.starts_with('-') && word.contains('=');
    match engine.iter().skip(1).find(|word| !is_engine_option(word)) {
        Some(word) => Err(Error::usage(format!("{word} is no option of the fuzzer, which are -NAME=VALUE"))),
        None => Ok(()),
    }
}

/// The words that are neither options nor values of options.
fn words_behind_options<'a>(
    arguments: &'a [String],
    flags: &[&str],
    options: &[&str],
    verb: &str,
) -> Result<impl Iterator<Item = &'a str>> {
    let mut words = Vec::new();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(word) = rest.next() {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        if !word.starts_with('-') {
            words.push(word);
        } else if options.contains(&name) {
            if value.or_else(|| rest.next()).is_none() {
                return Err(Error::usage(format!("{name} of ./tern {verb} needs a value")));
            }
        } else if !flags.contains(&word) {
            let known = [flags, options].concat().join(" ");
            return Err(Error::usage(format!("./tern {verb} has no option {word}; it has {known}")));
        }
    }
    Ok(words.into_iter())
}

/// The names of the fuzz targets.
fn fuzz_targets() -> Result<Vec<String>> {
    let directory = paths::root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&directory).context(|| format!("read {}", directory.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut names: Vec<String> =
        paths.filter_map(|path| Some(path.file_stem()?.to_str()?.to_string())).collect();
    names.sort();
    Ok(names)
}

/// The pinned toolchain's name if it is installed, under its own name or as the current nightly.
pub fn installed() -> Option<String> {
    [PINNED, "nightly"].into_iter().find(|name| has_compiler(name)).map(String::from)
}

fn has_compiler(toolchain: &str) -> bool {
    // `rustup run` would install a missing toolchain by itself.
    let output = rustup(&["which", "--toolchain", toolchain, "rustc"]);
    let Some(compiler) = output.map(|path| path.trim().to_string()) else { return false };
    let version = Command::new(compiler).arg("--version").output();
    version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(COMPILER_DATE))
}

/// The pinned toolchain, installed if it is missing.
fn toolchain() -> Result<String> {
    if let Some(name) = installed() {
        return Ok(name);
    }
    install(&["toolchain", "install", PINNED, "--profile", "minimal", "--no-self-update"])?;
    Ok(PINNED.into())
}

fn need_component(toolchain: &str, component: &str) -> Result<()> {
    let list = rustup(&["component", "list", "--installed", "--toolchain", toolchain]).unwrap_or_default();
    if list.lines().any(|line| line.starts_with(component)) {
        return Ok(());
    }
    install(&["component", "add", "--toolchain", toolchain, component])
}

/// The output of a successful rustup command.
fn rustup(arguments: &[&str]) -> Option<String> {
    let output = Command::new("rustup").args(arguments).env("RUSTUP_AUTO_INSTALL", "0").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn install(arguments: &[&str]) -> Result<()> {
    let line = format!("rustup {}", arguments.join(" "));
    download_allowed(&line)?;
    eprintln!("tern: {line}");
    let code = exit_code(Command::new("rustup").args(arguments))?;
    if code == 0 { Ok(()) } else { Err(Error::new(format!("this failed: {line}"))) }
}

fn cargo(toolchain: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", toolchain, "cargo"]).env_remove("RUSTUP_TOOLCHAIN");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn arguments_for_other_tools_are_checked_first() {
        let fuzz = paths::root().join("fuzz");
        let miri = |line: &str| check_miri(&words(line));
        let fuzzer = |line: &str| check_fuzz(&words(line), &fuzz);
        for line in ["", "mem::", "mem:: --exact --skip slow", "--test-threads=1", "--nocapture"] {
            assert!(miri(line).is_ok(), "{line}");
        }
        for line in ["", "-- -max_total_time=5 -seed=7", "--jobs 2 fuzz_targets", "--release -- -runs=9"] {
            assert!(fuzzer(line).is_ok(), "{line}");
        }
        let wrong = [
            (miri("--bogus"), "--bogus"),
            (miri("mem:: --skip"), "--skip"),
            (miri("-- mem::"), "--"),
            (fuzzer("--bogus"), "--bogus"),
            (fuzzer("nosuch"), "nosuch"),
            (fuzzer("-max_total_time=5"), "-max_total_time=5"),
            (fuzzer("-- max_total_time=5"), "max_total_time"),
            (fuzzer("--jobs"), "--jobs"),
        ];
        for (result, word) in wrong {
            let error = result.expect_err(word);
            assert!(error.message.contains(word) && !error.message.contains('\n'), "{error}");
            assert_eq!(error.exit_code, crate::error::USAGE);
        }
    }
}
