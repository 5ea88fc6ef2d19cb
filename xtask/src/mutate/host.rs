//! The kernel's tests on the host, in a copy of the checkout: until the first fails.

use super::tree::Tree;
use crate::{Context, Error, Result, interrupt, paths};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The crates whose tests these are.
pub const PACKAGES: [&str; 3] = ["tern-kernel", "tern-model-tests", "tern-abi"];

/// After so long without a result the tests do not come to their end any more.
const LIMIT: Duration = Duration::from_secs(1200);

/// Option of cargo for these builds: nobody reads the lines at which a test fails.
const WITHOUT_LINES: [&str; 2] = ["--config", "profile.dev.debug=0"];

/// Random tests say that they have failed before they look for a short program that fails.
pub const NO_SHORTENING: (&str, &str) = ("TERN_SHORTEN", "0");

/// The tests of a copy, built.
pub struct Tests(Vec<PathBuf>);

/// Builds them. The error is the compiler's.
pub fn build(tree: &Tree) -> Result<Tests> {
    let mut command = Command::new("cargo");
    command.args(["test", "--quiet", "--no-run", "--message-format=json", "--manifest-path"]);
    command.arg(tree.root.join("Cargo.toml")).arg("--target-dir").arg(&tree.target);
    command.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    // One file of the kernel differs from build to build, so each begins with the last one's results, whatever this program was told.
    command.args(WITHOUT_LINES).env("CARGO_INCREMENTAL", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = interrupt::spawn(command.env_remove("CARGO_MANIFEST_DIR"))?;
    let output = interrupt::output(child)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut errors = errors.filter(|said| said["message"]["level"] == "error");
        let first = errors.next().and_then(|said| Some(said["message"]["message"].as_str()?.to_string()));
        return Err(Error::new(format!("it does not compile: {}", first.unwrap_or_default())));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let artifacts = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_test = |artifact: &Value| artifact["profile"]["test"] == true;
    let executables = artifacts.filter(is_test).filter_map(|it| Some(it["executable"].as_str()?.into()));
    Ok(Tests(executables.collect()))
}

/// Whether what is built for the host has anything of a file in it, by what the compiler noted when it built it last.
pub fn sees(tree: &Tree, file: &Path) -> Result<bool> {
    let directory = tree.target.join("debug/deps");
    let read = fs::read_dir(&directory).context(|| format!("read {}", directory.display()))?;
    let notes = read.filter_map(|entry| Some(entry.ok()?.path()));
    // A file may be reached by a path through its neighbours.
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let wanted = fs::canonicalize(tree.root.join(file)).context(|| format!("find {}", file.display()))?;
    for note in notes.filter(|path| path.extension().is_some_and(|extension| extension == "d")) {
        let text = String::from_utf8_lossy(&paths::read(&note)?).into_owned();
        let named = text.split_whitespace().filter(|word| word.trim_end_matches(':').ends_with(&name));
        let mut places = named.map(|word| tree.root.join(word.trim_end_matches(':')));
        if places.any(|place| fs::canonicalize(place).is_ok_and(|place| place == wanted)) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Tests {
    /// Runs those whose names contain the text, or all. Says which one failed.
    pub fn run(&self, filter: Option<&str>) -> Result<Option<String>> {
        let mut asked = 0;
        for test in &self.0 {
            if let Some(caught) = run(test, filter, &mut asked)? {
                return Ok(Some(caught));
            }
        }
        match asked {
            0 => Err(Error::new(format!("no test on the host was asked: {}", filter.unwrap_or("")))),
            _ => Ok(None),
        }
    }
}

/// Runs the tests of one crate, and counts them.
fn run(test: &Path, filter: Option<&str>, asked: &mut usize) -> Result<Option<String>> {
    let mut command = Command::new(test);
    command.args(filter).env(NO_SHORTENING.0, NO_SHORTENING.1);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = interrupt::spawn(&mut command)?;
    let (sender, lines) = sync_channel(64);
    let output = child.stdout.take().ok_or_else(|| Error::new("tests without output"))?;
    thread::spawn(move || {
        BufReader::new(output).lines().map_while(|line| line.ok()).all(|line| sender.send(line).is_ok())
    });
    let mut deadline = Instant::now() + LIMIT;
    let caught = loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                deadline = Instant::now() + LIMIT;
                if let Some(name) = failed(&line) {
                    break Some(name.to_string());
                }
                *asked += (line.starts_with("test ") && line.ends_with(" ... ok")) as usize;
            }
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => break Some(format!("no result for {} s", LIMIT.as_secs())),
        }
    };
    if caught.is_some() {
        let _ = child.kill();
    }
    let status = interrupt::wait(child)?;
    Ok(caught.or_else(|| (!status.success()).then(|| format!("the tests died ({status})"))))
}

/// Reads "test NAME ... FAILED".
fn failed(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_read() {
        assert_eq!(failed("test walk::a ... FAILED"), Some("walk::a"));
        assert_eq!(failed("test walk::a ... ok"), None);
        assert_eq!(failed("test result: FAILED. 1 passed; 1 failed"), None);
    }
}
