//! Tools that come from crates.io: built when they are first used, in a version that is pinned.

use crate::{Error, Result, interrupt, paths};
use std::path::PathBuf;
use std::process::Command;

/// A crate with one binary of the same name.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

impl Tool {
    fn directory(self) -> PathBuf {
        paths::target().join("tools").join(format!("{}-{}", self.name, self.version))
    }

    /// Where its binary is, or will be.
    pub fn binary(self) -> PathBuf {
        self.directory().join("bin").join(self.name)
    }

    /// Its binary, built by `cargo` if it is missing.
    pub fn ensure(self, mut cargo: Command) -> Result<PathBuf> {
        let (binary, Tool { name, version }) = (self.binary(), self);
        if binary.exists() {
            return Ok(binary);
        }
        download_allowed(&format!("cargo install {name} --version {version} --locked"))?;
        eprintln!("tern: building {name} (once)");
        cargo.args(["install", "--quiet", "--locked", name, "--version", version, "--root"]);
        if !interrupt::status(cargo.arg(self.directory()))?.success() {
            return Err(Error::new(format!("{name} could not be built")));
        }
        Ok(binary)
    }
}

/// Refuses a download that the person has forbidden.
pub fn download_allowed(line: &str) -> Result<()> {
    match std::env::var_os("TERN_OFFLINE").filter(|value| !value.is_empty()) {
        Some(_) => Err(Error::new(format!("missing, and --offline was given; the command is: {line}"))),
        None => Ok(()),
    }
}

/// Runs a command to its end and gives back its exit code; 1 if a signal ended it.
pub fn exit_code(command: &mut Command) -> Result<u8> {
    let status = interrupt::status(command)?;
    Ok(status.code().map_or(1, |code| code as u8))
}
