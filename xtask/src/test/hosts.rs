//! Tests that need no machine: cargo builds them as programs of many tests each, and here each test runs in a process of its own.
//!
//! So the queue of the harness has them one by one, beside machines: no program's last test keeps processors waiting, and no test finds what another one has left in memory.

use crate::{Context, Error, Result, interrupt, paths};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Names the file with the list of programs, for the harness.
pub const LIST: &str = "TERN_HOST_TESTS";

/// Beginning of a program's last line.
const RESULT: &str = "test result: ";

/// Program of tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Kind of its tests in the totals.
    pub kind: String,
    /// Name of its crate, or of its file of tests.
    pub name: String,
    /// Directory of its package, in which it runs.
    pub directory: PathBuf,
    /// Its file.
    pub executable: PathBuf,
}

/// Builds the programs that a command of cargo would run. Their tests are of one kind.
pub fn build(kind: &str, command: &mut Command) -> Result<Vec<Program>> {
    command.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let output = interrupt::output(interrupt::spawn(command)?)?;
    if !output.status.success() {
        return Err(Error::new(format!("building the {kind} tests failed")));
    }
    Ok(programs(kind, &String::from_utf8_lossy(&output.stdout)))
}

/// Programs of tests among what cargo says that it has built.
fn programs(kind: &str, said: &str) -> Vec<Program> {
    let artifacts = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tests = artifacts.filter(|artifact| artifact["profile"]["test"] == true);
    let program = |artifact: Value| {
        Some(Program {
            kind: kind.into(),
            name: artifact["target"]["name"].as_str()?.into(),
            directory: Path::new(artifact["manifest_path"].as_str()?).parent()?.into(),
            executable: artifact["executable"].as_str()?.into(),
        })
    };
    tests.filter_map(program).collect()
}

/// Writes the list of programs; gives back the file.
pub fn write(programs: &[Program]) -> Result<PathBuf> {
    let path = paths::out()?.join("host-tests.json");
    let list = serde_json::to_vec(programs).context(|| "list the tests".into())?;
    paths::write(&path, &list)?;
    Ok(path)
}

/// The programs of the list that [`LIST`] names; none without it.
pub fn listed() -> Result<Vec<Program>> {
    let Some(path) = std::env::var_os(LIST).map(PathBuf::from) else { return Ok(Vec::new()) };
    serde_json::from_slice(&paths::read(&path)?).context(|| format!("understand {}", path.display()))
}

impl Program {
    /// Names of its tests.
    pub fn tests(&self) -> Result<Vec<String>> {
        let output = self.run(&["--list", "--format", "terse"])?;
        if !output.status.success() {
            return Err(Error::new(format!("{} does not list its tests", self.executable.display())));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        Ok(said.lines().filter_map(|line| line.strip_suffix(": test")).map(String::from).collect())
    }

    /// Runs one of its tests. The error is all that it has printed. A test that passes is heard only if it goes past its runner.
    pub fn perform(&self, test: &str) -> Result<()> {
        let output = self.run(&["--exact", test])?;
        let [said, complained] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        if output.status.success() && has_passed(&said) {
            eprint!("{complained}");
            return Ok(());
        }
        // Results are added up by lines that begin so, and this one is counted already.
        let said = said.lines().filter(|line| !line.starts_with(RESULT)).collect::<Vec<_>>().join("\n");
        Err(Error::new(format!("{}: {}\n{said}\n{complained}", self.name, output.status)))
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(&self.executable);
        // Cargo would do so, too.
        command.args(arguments).current_dir(&self.directory).env("CARGO_MANIFEST_DIR", &self.directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        interrupt::output(interrupt::spawn(&mut command)?)
    }
}

/// Whether a program has run one test, and that passed.
fn has_passed(said: &str) -> bool {
    let mut results = said.lines().filter_map(|line| line.strip_prefix(RESULT));
    results.any(|result| result.starts_with("ok. 1 passed; 0 failed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_tests_are_found_among_artifacts() {
        let artifact = |test: bool, executable: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"manifest_path\":\"/tree/kernel/Cargo.toml\",\"target\":{{\"name\":\"kernel\"}},\
                 \"profile\":{{\"test\":{test}}},\"executable\":{executable}}}\n"
            )
        };
        let said = artifact(false, "null")
            + "no json\n"
            + &artifact(true, "\"/built/kernel-1\"")
            + &artifact(false, "\"/built/tern\"")
            + "{\"reason\":\"build-finished\",\"success\":true}\n";
        let program = Program {
            kind: "host".into(),
            name: "kernel".into(),
            directory: "/tree/kernel".into(),
            executable: "/built/kernel-1".into(),
        };
        assert_eq!(programs("host", &said), std::slice::from_ref(&program));
        let list = serde_json::to_vec(&[&program]).unwrap();
        assert_eq!(serde_json::from_slice::<Vec<Program>>(&list).unwrap(), [program]);
    }

    #[test]
    fn one_test_has_to_have_run() {
        let line =
            |outcome: &str| format!("\nrunning 1 test\ntest a ... x\n\ntest result: {outcome}; 0 ignored\n");
        assert!(has_passed(&line("ok. 1 passed; 0 failed")));
        assert!(!has_passed(&line("ok. 0 passed; 0 failed")));
        assert!(!has_passed(&line("FAILED. 0 passed; 1 failed")));
    }

    /// This program itself has tests, and runs one.
    #[test]
    fn tests_are_listed_and_run() {
        let executable = std::env::current_exe().unwrap();
        let directory = paths::root().join("xtask");
        let own = Program { kind: "host".into(), name: "xtask".into(), directory, executable };
        let name = "test::hosts::tests::one_test_has_to_have_run";
        assert!(own.tests().unwrap().iter().any(|test| test == name));
        own.perform(name).unwrap();
        let why = own.perform("test::hosts::tests::nosuch").unwrap_err();
        assert!(why.message.starts_with("xtask: "), "{why}");
    }
}
