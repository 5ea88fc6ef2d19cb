//! The guest's own test suite, booted with the fast path on and off.
//!
//! The suite prints `TEST name ... ok` or `TEST name ... FAILED: reason` for each test, and at its end
//! `SUITE-END ran=N failed=M`. Lines that start with `TRANSCRIPT ` must be the same in both boots.

use crate::world::{LIMIT, World, boot, failed};
use libtest_mimic::{Failed, Trial};
use std::thread;
use std::time::Duration;
use xtask::guest::End;

/// Longest time for the suite with the large counts.
const FULL_LIMIT: Duration = Duration::from_secs(3600);

/// What a boot of the suite said.
#[derive(Debug)]
struct Report {
    variant: &'static str,
    outcome: Result<(End, String), String>,
}

/// Boots both variants and returns a trial for each test, for each boot as a whole, and for their agreement.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let boots = ["on", "off"].map(|variant| thread::spawn(move || run(world, variant)));
    let reports = boots.map(|boot| boot.join().expect("the boot's thread does not panic"));
    let mut trials = Vec::new();
    let agreement = agreement(&reports[0], &reports[1]);
    for report in reports {
        trials.extend(tests(&report));
        let verdict = verdict(&report);
        trials.push(trial(format!("fastpath-{}::suite_ends_well", report.variant), verdict));
    }
    trials.push(trial("fastpath-on-off::same_transcript".into(), agreement));
    trials
}

fn run(world: &World, variant: &'static str) -> Report {
    let mut machine = world.machine().with(&format!("init=suite fastpath={variant}"));
    if world.full {
        machine = machine.with("args=full");
    }
    let limit = if world.full { FULL_LIMIT } else { LIMIT };
    Report { variant, outcome: boot(&machine, limit).map_err(|error| error.message) }
}

fn trial(name: String, verdict: Result<(), Failed>) -> Trial {
    Trial::test(name, move || verdict).with_kind("guest")
}

/// One trial for each line of a test.
fn tests(report: &Report) -> Vec<Trial> {
    let Ok((_, text)) = &report.outcome else { return Vec::new() };
    let results = text.lines().filter_map(|line| line.strip_prefix("TEST ")?.split_once(" ... "));
    results
        .map(|(name, result)| {
            let verdict = if result == "ok" { Ok(()) } else { Err(result.to_string().into()) };
            trial(format!("fastpath-{}::{name}", report.variant), verdict)
        })
        .collect()
}

/// Whether the boot as a whole went well: an orderly end, the end marker, and as many lines as it promises.
fn verdict(report: &Report) -> Result<(), Failed> {
    let (end, text) = report.outcome.as_ref().map_err(Failed::from)?;
    let Some((ran, bad)) = text.lines().find_map(end_marker) else {
        return Err(failed("the suite did not reach its end", end, text));
    };
    let lines = tests(report).len();
    if lines != ran || ran == 0 {
        return Err(failed(&format!("{ran} tests ran and {lines} gave a result"), end, text));
    }
    // Failed tests have trials of their own; here the exit code must agree with them.
    let expected = if bad == 0 { *end == End::Orderly(0) } else { matches!(end, End::Orderly(1..)) };
    if expected { Ok(()) } else { Err(failed("the suite did not end in order", end, text)) }
}

/// Reads `SUITE-END ran=N failed=M`.
fn end_marker(line: &str) -> Option<(usize, usize)> {
    let (ran, failed) = line.strip_prefix("SUITE-END ran=")?.split_once(" failed=")?;
    Some((ran.parse().ok()?, failed.trim().parse().ok()?))
}

fn agreement(one: &Report, other: &Report) -> Result<(), Failed> {
    let transcript = |report: &Report| -> Result<Vec<String>, Failed> {
        let (_, text) = report.outcome.as_ref().map_err(Failed::from)?;
        Ok(text.lines().filter(|line| line.starts_with("TRANSCRIPT ")).map(String::from).collect())
    };
    let (on, off) = (transcript(one)?, transcript(other)?);
    if on.is_empty() {
        return Err("the suite printed no TRANSCRIPT line".into());
    }
    let first = on.iter().zip(&off).find(|(on, off)| on != off);
    match first {
        Some((on, off)) => Err(format!("fast path on:  {on}\nfast path off: {off}").into()),
        None if on.len() != off.len() => Err("one boot printed more TRANSCRIPT lines".into()),
        None => Ok(()),
    }
}
