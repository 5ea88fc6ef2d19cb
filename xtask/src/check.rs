//! The verb `check`: format, lints, and the health of the source.

use crate::build::{self, KERNEL_FLAGS};
use crate::programs::{self, Package};
use crate::{Result, health, interrupt, paths};
use std::process::Command;

/// Runs all checks, then says which failed.
pub fn perform() -> Result<u8> {
    let packages = programs::packages()?;
    let steps: [(&str, Vec<Command>); 5] = [
        ("format", vec![format("Cargo.toml"), format("tools/ipcscope/Cargo.toml")]),
        ("lints, host", vec![lint_host(&packages), lint_tools()]),
        ("lints, kernel", vec![lint_kernel()]),
        ("lints, user", vec![lint_user(&packages)]),
        ("shell syntax", vec![shell_syntax()]),
    ];
    let mut failed = Vec::new();
    for (name, commands) in steps {
        eprintln!("tern: checking {name}");
        for mut command in commands {
            if !interrupt::status(&mut command)?.success() {
                failed.push(name);
            }
        }
    }
    let health = health::examine(&paths::root())?;
    print!("{}", health.report());
    if health.is_bad() {
        failed.push("health");
    }
    if failed.is_empty() {
        println!("all checks passed");
        return Ok(0);
    }
    failed.dedup();
    println!("failed: {}", failed.join("; "));
    Ok(1)
}

fn cargo(verb: &str, manifest: &str) -> Command {
    let mut command = Command::new("cargo");
    command.arg(verb).arg("--quiet").arg("--manifest-path").arg(paths::root().join(manifest));
    command
}

fn format(manifest: &str) -> Command {
    let mut command = cargo("fmt", manifest);
    command.args(["--all", "--check"]);
    command
}

/// Everything that is built for the host, tests included.
fn lint_host(packages: &[Package]) -> Command {
    let mut command = cargo("clippy", "Cargo.toml");
    for package in packages.iter().filter(|package| package.has_host_tests() || package.is_harness()) {
        command.arg("--package").arg(&package.name);
    }
    // The kernel's binary is for the guest's target only.
    command.args(["--lib", "--bin", "xtask", "--tests", "--", "--deny", "warnings"]);
    command
}

fn lint_tools() -> Command {
    let mut command = cargo("clippy", "tools/ipcscope/Cargo.toml");
    command.arg("--target-dir").arg(paths::target().join("ipcscope"));
    command.args(["--all-targets", "--", "--deny", "warnings"]);
    command
}

fn lint_kernel() -> Command {
    let mut command = build::cargo("clippy", &paths::target().join("kernel"), &KERNEL_FLAGS);
    command.args(["--package", "tern-kernel", "--", "--deny", "warnings"]);
    command
}

fn lint_user(packages: &[Package]) -> Command {
    let mut command = build::cargo_for_programs("clippy", &paths::target().join("user"));
    for package in packages.iter().filter(|package| package.is_guest()) {
        command.arg("--package").arg(&package.name);
    }
    command.args(["--", "--deny", "warnings"]);
    command
}

fn shell_syntax() -> Command {
    let mut command = Command::new("sh");
    command.arg("-n").arg(paths::root().join("tern"));
    command
}
