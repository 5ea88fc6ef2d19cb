//! The verbs `miri` and `fuzz`, which need a compiler that is not stable: one pinned nightly, added when first used.

use crate::tools::{Tool, download_allowed, exit_code};
use crate::{Context, Error, Result, paths};
use std::fs;
use std::process::Command;

/// The pinned toolchain.
const PINNED: &str = "nightly-2026-05-20";

/// The date of its compiler, by which the same toolchain under another name is recognised.
const COMPILER_DATE: &str = "2026-05-19)";

/// The fuzzer's front end.
const CARGO_FUZZ: Tool = Tool { name: "cargo-fuzz", version: "0.13.2" };

/// Tests that Miri runs unless a filter is given: those of the modules with unsafe code, and of what they carry.
const MIRI_FILTERS: [&str; 2] = ["mem::", "util::"];

/// What the kernel makes lives as long as the machine, so the tests leak it.
const MIRI_FLAGS: &str = "-Zmiri-ignore-leaks";

/// Runs the kernel's host tests under Miri.
pub fn miri(arguments: &[String]) -> Result<u8> {
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
