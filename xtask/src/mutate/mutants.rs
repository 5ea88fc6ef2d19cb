//! cargo-mutants over the kernel, with its tests on the host.

use super::host::{NO_SHORTENING, PACKAGES};
use crate::cli::MutateOptions;
use crate::tools::{Tool, exit_code};
use crate::{Context, Error, Result, paths};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// The tool.
pub const CARGO_MUTANTS: Tool = Tool { name: "cargo-mutants", version: "27.1.0" };

/// Files that are changed unless something narrower is asked for.
const PARTS: [&str; 4] = ["ipc", "object", "syscall", "mem"];

/// A changed kernel that takes longer than its tests do otherwise by this factor will not come to an end.
const PATIENCE: &str = "5";

/// Exit codes that are results: all caught, some missed, some timed out.
const RESULTS: [u8; 3] = [0, 2, 3];

/// Runs it and prints the table.
pub fn perform(options: &MutateOptions) -> Result<u8> {
    let root = paths::root();
    // A wrong argument is told before anything is downloaded for it.
    let chosen = chosen(&root, options)?;
    let tool = CARGO_MUTANTS.ensure(Command::new("cargo"))?;
    let output = paths::target().join("mutate");
    std::fs::create_dir_all(&output).context(|| format!("create {}", output.display()))?;
    let mut command = Command::new(tool);
    command.args(["mutants", "--dir"]).arg(&root).arg("--output").arg(&output);
    command.args(["--package", PACKAGES[0], "--colors", "never"]);
    for package in PACKAGES {
        command.args(["--test-package", package]);
    }
    for part in chosen {
        command.args(part);
    }
    if options.list {
        return exit_code(command.arg("--list"));
    }
    command.args(["--jobs", &options.jobs.unwrap_or(1).to_string()]);
    if options.baseline {
        command.args(["--timeout-multiplier", PATIENCE, "--minimum-test-timeout", "120"]);
    } else {
        // Nothing is known that could be multiplied.
        command.args(["--baseline", "skip", "--timeout", "600"]);
    }
    let code = exit_code(command.env(NO_SHORTENING.0, NO_SHORTENING.1))?;
    if !RESULTS.contains(&code) {
        return Err(Error::new("cargo-mutants came to no result; the tests may fail without any change"));
    }
    let outcomes = paths::read(&output.join("mutants.out/outcomes.json"))?;
    let outcomes = serde_json::from_slice(&outcomes).context(|| "read what cargo-mutants found".into())?;
    print!("{}", report(&outcomes));
    Ok(u8::from(code != 0))
}

/// The arguments that choose: a file or directory by its path, otherwise functions by a regular expression.
fn chosen(root: &std::path::Path, options: &MutateOptions) -> Result<Vec<[String; 2]>> {
    let parts = || PARTS.map(|part| format!("kernel/src/{part}*/**"));
    let Some(what) = &options.what else {
        let files = PARTS.map(|part| format!("kernel/src/{part}.rs"));
        return Ok(parts().into_iter().chain(files).map(|glob| ["--file".into(), glob]).collect());
    };
    if root.join(what).is_dir() {
        return Ok(vec![["--file".into(), format!("{what}/**")]]);
    }
    if root.join(what).is_file() {
        return Ok(vec![["--file".into(), what.clone()]]);
    }
    if what.ends_with(".rs") || what.contains('/') {
        return Err(Error::usage(format!("there is no file {what}")));
    }
    let files = parts().into_iter().map(|glob| ["--file".to_string(), glob]);
    Ok(files.chain([["--re".into(), what.clone()]]).collect())
}

/// Counts for each file, then what was missed.
fn report(outcomes: &Value) -> String {
    const KINDS: [&str; 4] = ["CaughtMutant", "MissedMutant", "Timeout", "Unviable"];
    let mut files: BTreeMap<&str, [u64; 4]> = BTreeMap::new();
    let mut missed = Vec::new();
    for outcome in outcomes["outcomes"].as_array().map_or(&[][..], Vec::as_slice) {
        let mutant = &outcome["scenario"]["Mutant"];
        let (Some(file), Some(summary)) = (mutant["file"].as_str(), outcome["summary"].as_str()) else {
            continue;
        };
        let Some(kind) = KINDS.iter().position(|kind| *kind == summary) else { continue };
        files.entry(file).or_default()[kind] += 1;
        if kind == 1 {
            missed.push(mutant["name"].as_str().unwrap_or(file));
        }
    }
    let mut out =
        format!("{:<44} {:>7} {:>7} {:>9} {:>9}\n", "file", "caught", "missed", "timeouts", "no change");
    let mut sum = [0; 4];
    let mut row = |name: &str, counts: [u64; 4]| {
        let [caught, missed, timeouts, unviable] = counts;
        out += &format!("{name:<44} {caught:>7} {missed:>7} {timeouts:>9} {unviable:>9}\n");
    };
    for (file, counts) in &files {
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        row(file, *counts);
    }
    row("all", sum);
    if !missed.is_empty() {
        out += &format!("missed:\n  {}\n", missed.join("\n  "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_become_a_table() {
        let mutant = |name: &str, summary: &str| serde_json::json!({ "scenario": { "Mutant": { "file": "a.rs", "name": name } }, "summary": summary });
        let outcomes = serde_json::json!({ "outcomes": [
            { "scenario": "Baseline", "summary": "Success" },
            mutant("one", "CaughtMutant"),
            mutant("two", "MissedMutant"),
        ] });
        let report = report(&outcomes);
        assert!(report.contains("missed:\n  two\n") && !report.contains("one"), "{report}");
        let all = report.lines().find(|line| line.starts_with("all")).expect("a sum");
        assert_eq!(all.split_whitespace().collect::<Vec<_>>(), ["all", "1", "1", "0", "0"]);
    }
}
