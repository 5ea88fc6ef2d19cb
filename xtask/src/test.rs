//! The verb `test`: everything that can fail, in one command, with the totals in its last lines.
//!
//! First all is built, side by side: what boots, the tests that need no machine ([`hosts`]), and the harness. Then the harness runs all tests by one queue, machines beside
//! programs of the host, the longest first, so that processors have work until the end. What it prints is passed on and added up. Whether these tests would notice the loss of a
//! security check is another question, which the verb [`mutate`](crate::mutate) asks.

pub mod hosts;

use crate::cli::TestOptions;
use crate::{Context, Error, Result, bench, build, interrupt, paths, programs};
use hosts::Program;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Counts of trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
}

/// Counts by kind of test.
type Kinds = BTreeMap<String, Counts>;

/// Options of cargo for the large counts, with which the kernel and its models have ten minutes of a processor's work: so it pays to optimise them as far as a compiler can.
const FOR_LONG: [&str; 4] = [
    "--config",
    "profile.dev.package.tern-kernel.opt-level=3",
    "--config",
    "profile.dev.package.tern-model-tests.opt-level=3",
];

/// Runs the tests whose name contains the filter.
pub fn perform(options: TestOptions) -> Result<u8> {
    eprintln!("tern: building the system and its tests");
    let full = options.full;
    let (tests, system) = build::side_by_side(|| tests(full), build::system);
    let (list, system) = (hosts::write(&tests?)?, system?);
    let tool = std::env::current_exe().context(|| "find this program".into())?;
    let mut kinds = Kinds::new();
    let mut command = harness(full)?;
    command
        .env("TERN_FULL", if full { "1" } else { "0" })
        .env("TERN_XTASK", &tool)
        .env(build::PREBUILT, system.kernel.parent().unwrap_or(&system.kernel))
        .env(hosts::LIST, list)
        .arg("--")
        .args(&options.filter);
    eprintln!("tern: running the tests");
    let told = run("system", &mut command, &mut kinds)?;
    Ok(report(&kinds, &told, options.filter.as_deref()))
}

/// Builds all tests, and the plugin with which the suite's machines are watched. The harness is none of the programs that it runs.
fn tests(full: bool) -> Result<Vec<Program>> {
    let mut programs = hosts::build("host", &mut workspace(full)?)?;
    programs.extend(hosts::build("tools", &mut tools())?);
    hosts::build("system", &mut harness(full)?)?;
    bench::plugin()?;
    Ok(programs)
}

/// The crates of the workspace that have tests. The one of the harness is not among those that cargo runs unless it is named, see [`harness`].
fn workspace(full: bool) -> Result<Command> {
    let mut command = cargo_test("Cargo.toml");
    command.args(if full { &FOR_LONG[..] } else { &[] });
    command.args(["--package", "tern-harness"]);
    for package in programs::packages()?.iter().filter(|package| package.has_host_tests()) {
        command.arg("--package").arg(&package.name);
    }
    Ok(command)
}

/// The workspace of ipcscope, as far as it runs outside of an emulator.
fn tools() -> Command {
    let mut command = cargo_test("tools/ipcscope/Cargo.toml");
    command.args(["--package", "ipcscope-core", "--target-dir"]).arg(paths::target().join("ipcscope"));
    command
}

/// The test that boots machines, of the crates that [`workspace`] selects: what all of these want of libraries decides how libraries are
/// built, so another selection would build them, quill and this program once more.
fn harness(full: bool) -> Result<Command> {
    let mut command = workspace(full)?;
    command.args(["--test", "system"]);
    Ok(command)
}

fn cargo_test(manifest: &str) -> Command {
    let mut command = Command::new("cargo");
    command.args(["test", "--no-fail-fast", "--manifest-path"]).arg(paths::root().join(manifest));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Beginning of a line that tells of a test that cannot be had here, and of the reason.
const SKIPPED: &str = "skipped: ";

/// The line behind which the reasons of failures stand, and the beginning of the first one behind them.
const FAILURES: [&str; 2] = ["failures:", "test result: "];

/// Lines of the output that are repeated at the end.
#[derive(Default)]
struct Told {
    /// They tell of tests that are not there.
    skipped: Vec<String>,
    /// They say why tests have failed.
    failures: Vec<String>,
    /// Those of failures are not over.
    is_within: bool,
}

impl Told {
    fn note(&mut self, line: &str) {
        let [begin, end] = FAILURES;
        self.is_within = (self.is_within || line == begin) && !line.starts_with(end);
        if self.is_within {
            self.failures.push(line.to_string());
        } else if line.starts_with(SKIPPED) {
            self.skipped.push(line.to_string());
        }
    }
}

/// Runs the harness, passes its output on and counts. The name is for tests whose kinds are unknown. Lines that are to be repeated at the end.
fn run(name: &str, command: &mut Command, kinds: &mut Kinds) -> Result<Told> {
    let mut child = interrupt::spawn(command)?;
    let output = child.stdout.take().ok_or_else(|| Error::new("a harness without output"))?;
    let (mut total, mut by_line, mut told) = (Counts::default(), Kinds::new(), Told::default());
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context(|| "read the tests' output".into())?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        told.note(&line);
        if let Some(result) = result_line(&line) {
            total.passed += result.passed;
            total.failed += result.failed;
        } else if let Some((kind, passed)) = kind_line(&line) {
            let counts = by_line.entry(kind.to_string()).or_default();
            *(if passed { &mut counts.passed } else { &mut counts.failed }) += 1;
        }
    }
    let status = interrupt::wait(child)?;
    if !status.success() && total.failed == 0 {
        println!("the {name} tests did not come to their end");
        total.failed = 1;
        by_line.clear();
    }
    add(kinds, name, total, by_line);
    Ok(told)
}

/// Takes the kinds that the lines name if they account for the whole, and the harness's name otherwise.
fn add(kinds: &mut Kinds, name: &str, total: Counts, by_line: Kinds) {
    let sum = by_line.values().fold(Counts::default(), |sum, counts| Counts {
        passed: sum.passed + counts.passed,
        failed: sum.failed + counts.failed,
    });
    let parts = if sum == total { by_line } else { Kinds::from([(name.to_string(), total)]) };
    for (kind, counts) in parts {
        let entry = kinds.entry(kind).or_default();
        entry.passed += counts.passed;
        entry.failed += counts.failed;
    }
}

/// Reads "test result: ok. 3 passed; 0 failed; …".
fn result_line(line: &str) -> Option<Counts> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number =
        |what: &str| counts.split("; ").find_map(|part| part.strip_suffix(what)?.trim().parse().ok());
    Some(Counts { passed: number("passed")?, failed: number("failed")? })
}

/// Reads "test [kind] name ... ok".
fn kind_line(line: &str) -> Option<(&str, bool)> {
    let (kind, rest) = line.strip_prefix("test [")?.split_once("] ")?;
    let passed = rest.ends_with("... ok");
    (passed || rest.ends_with("... FAILED")).then_some((kind, passed))
}

/// Prints the totals, the last line alone for programs, and returns the exit code. In front of the totals stands why tests have failed, and which were not there: whoever
/// keeps the end of an output has all of that.
fn report(kinds: &Kinds, told: &Told, filter: Option<&str>) -> u8 {
    let sum = |count: fn(&Counts) -> u64| kinds.values().map(count).sum::<u64>();
    let (passed, failed) = (sum(|counts| counts.passed), sum(|counts| counts.failed));
    println!();
    told.failures.iter().chain(&told.skipped).for_each(|line| println!("{line}"));
    for (kind, counts) in kinds.iter().filter(|(_, counts)| **counts != Counts::default()) {
        println!("{kind:<8} {:>5} passed {:>5} failed", counts.passed, counts.failed);
    }
    println!("{passed} passed, {failed} failed");
    if passed + failed == 0 {
        eprintln!("tern: no test has {:?} in its name", filter.unwrap_or(""));
        return 1;
    }
    u8::from(failed > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_repeated() {
        let mut told = Told::default();
        let before = ["test [files] one ... ok", "skipped: two: it is not there"];
        let reasons =
            ["failures:", "", "---- three ----", "skipped: no reason", "", "failures:", "    three"];
        let after = ["test result: FAILED. 1 passed; 1 failed; 0 ignored", "test [guest] four ... ok"];
        before.iter().chain(&reasons).chain(&after).for_each(|line| told.note(line));
        assert_eq!(
            (&told.failures[..], &told.skipped[..]),
            (&reasons.map(String::from)[..], &before.map(String::from)[1..])
        );
    }

    #[test]
    fn results_are_read() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.5s";
        assert_eq!(result_line(line), Some(Counts { passed: 12, failed: 3 }));
        assert_eq!(result_line("test a ... ok"), None);
        assert_eq!(kind_line("test [boot] boot::pc ... ok"), Some(("boot", true)));
        assert_eq!(kind_line("test [boot] boot::pc ... FAILED"), Some(("boot", false)));
        assert_eq!(kind_line("test plain ... ok"), None);
    }

    #[test]
    fn kinds_are_used_only_if_they_add_up() {
        let one = Counts { passed: 1, failed: 0 };
        let mut kinds = Kinds::new();
        add(&mut kinds, "system", one, Kinds::from([("boot".into(), one)]));
        add(&mut kinds, "host", Counts { passed: 2, failed: 0 }, Kinds::from([("boot".into(), one)]));
        assert_eq!(kinds["boot"], one);
        assert_eq!(kinds["host"].passed, 2);
    }
}
