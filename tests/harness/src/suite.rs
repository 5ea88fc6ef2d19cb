//! The guest's own test suite, booted with the fast path on and off.
//!
//! What is judged by the clock runs in boots of its own, on a machine whose time is what it has executed. All others run once
//! more on a kernel that checks itself at each exit, with fewer random calls.
//!
//! The suite prints `TEST name ... ok` or `TEST name ... FAILED: reason` for each test, and at its end
//! `SUITE-END ran=N failed=M`. Besides, it can run a random program from a seed and print what came of it in lines
//! that start with `TRANSCRIPT `; they must be the same with the fast path on and off.

use crate::order;
use crate::stretches::{self, Watch};
use crate::world::{Verdict, World, boot, failed};
use libtest_mimic::{Failed, Trial};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use xtask::guest::End;

/// Longest time for the suite, ordinarily and with the large counts.
const SUITE_LIMITS: [Duration; 2] = [Duration::from_secs(1800), Duration::from_secs(7200)];

/// What is told apart: the tests that are judged by the clock, all others, and these on a kernel that checks itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Part {
    Untimed,
    Timed,
    Checked,
}

impl Part {
    const ALL: [Part; 3] = [Part::Untimed, Part::Timed, Part::Checked];

    /// As it is called in the names of trials.
    fn name(self) -> &'static str {
        match self {
            Part::Untimed => "untimed",
            Part::Timed => "timed",
            Part::Checked => "checked",
        }
    }

    /// What the names of its tests begin with.
    fn prefix(self) -> &'static str {
        if self == Part::Checked { CHECKED } else { ORDINARY }
    }

    /// For the suite.
    fn arguments(self, full: bool) -> String {
        match self {
            Part::Timed => "timed".into(),
            Part::Untimed => format!("{}untimed", if full { "full," } else { "" }),
            Part::Checked => {
                let [calls, kills] = CHECKED_COUNTS[usize::from(full)];
                format!("untimed,calls={calls},kills={kills}")
            }
        }
    }
}

const ORDINARY: &str = "fastpath-";
const CHECKED: &str = "checked-";

/// Random calls, and ends of threads and tasks, on a kernel that checks itself; ordinarily and with the large counts.
const CHECKED_COUNTS: [[u64; 2]; 2] = [[250_000, 2500], [2_500_000, 25_000]];

/// Seeds of the random programs, ordinarily and with the large counts, and the steps of each program.
const SEEDS: [u64; 2] = [2, 20];
const STEPS: [u64; 2] = [4000, 40_000];

/// What a boot of the suite said.
#[derive(Debug)]
struct Report {
    variant: &'static str,
    part: Part,
    outcome: Result<(End, String), String>,
    /// How long interrupts stayed off, by ipcscope; where the kernel checks itself, nobody watches.
    stretches: Option<Result<String, String>>,
}

impl Report {
    /// What the names of its tests begin with.
    fn prefix(&self) -> String {
        format!("{}{}", self.part.prefix(), self.variant)
    }
}

/// The random programs, one trial for each seed.
pub fn transcripts(world: &'static World) -> Vec<Trial> {
    let full = usize::from(world.full);
    let trial = |seed| {
        let name = format!("transcript::seed_{seed}");
        world.trial("guest", name, move |world| same_transcript(world, seed, STEPS[full]))
    };
    (1..=SEEDS[full]).map(trial).collect()
}

/// Processors of which each has other instructions for extended state: with XSAVEOPT and FSGSBASE, without the latter, without XSAVE.
const PROCESSORS: [&str; 5] = ["EPYC", "Skylake-Client", "SandyBridge", "Nehalem", "qemu64"];

/// Kinds of tests that look at registers: in an ordinary run those of which that is all, and with the large counts also
/// whatever else threads do at doors.
const KINDS: [&str; 2] = [
    "state.,handover.,exception.,debug.,foreign.,door.words,door.a_call",
    "state.,handover.,exception.,debug.,foreign.,door.",
];

/// The registers of threads on several processors.
pub fn registers(world: &'static World) -> Vec<Trial> {
    let trial = |cpu: &'static str| {
        world.trial("guest", format!("registers::on_{cpu}"), move |world| {
            let kinds = KINDS[usize::from(world.full)];
            let mut machine = world.machine().with(&format!("init=suite args={kinds} pti=off"));
            machine.cpu = cpu.into();
            let (end, text) = boot(&machine, SUITE_LIMITS[0])?;
            let all_fine = text.lines().filter_map(end_marker).any(|(ran, bad)| ran >= 46 && bad == 0);
            if end == End::Orderly(0) && all_fine {
                return Ok(());
            }
            Err(failed("expected that all tests of these kinds pass", &end, &text))
        })
    };
    PROCESSORS.map(trial).into()
}

/// Machines for random system calls beside the one of the suite's own boots, which is `max`: a processor, and options of the boot, of which the last
/// word says whether the fast path is on. Under page-table isolation, which this processor asks for, it is off.
const RANDOM_MACHINES: [[&str; 2]; 5] = [
    ["Skylake-Client", "pti=off fastpath=on"],
    ["Skylake-Client", "pti=off fastpath=off"],
    ["Skylake-Client", ""],
    ["EPYC", "fastpath=on"],
    ["EPYC", "fastpath=off"],
];

/// Random calls on each of these machines, ordinarily and with the large counts: then as many on all of them as on one of the suite's own boots.
const RANDOM_CALLS: [u64; 2] = [100_000, 2_000_000];

/// Seed of the first of these machines. Each has one of its own, and none that of the suite's own boots.
const RANDOM_SEED: usize = 2;

/// Random system calls, foreign ones among them, on several processors.
pub fn random(world: &'static World) -> Vec<Trial> {
    let trial = |(number, [cpu, options]): (usize, [&'static str; 2])| {
        let name = format!("random::on_{cpu} {options}").trim_end().replace([' ', '='], "_");
        world.trial("guest", name, move |world| {
            let full = usize::from(world.full);
            let (calls, seed) = (RANDOM_CALLS[full], RANDOM_SEED + number);
            let arguments = format!("random.,calls={calls},seed={seed}");
            let mut machine =
                world.machine().with(&format!("init=suite args={arguments} exhaust=on {options}"));
            machine.cpu = cpu.into();
            let (end, text) = boot(&machine, SUITE_LIMITS[full])?;
            let is_fine = text.lines().filter_map(end_marker).any(|end| end == (1, 0));
            let path = if options.ends_with("on") { "fast path on" } else { "fast path off" };
            if end == End::Orderly(0) && is_fine && text.contains(path) {
                return Ok(());
            }
            Err(failed(&format!("expected {calls} random calls, {path}"), &end, &text))
        })
    };
    RANDOM_MACHINES.into_iter().enumerate().map(trial).collect()
}

/// Large pages, where memory is large enough for a gibibyte of them.
pub fn much_memory(world: &'static World) -> Trial {
    world.trial("guest", "large::a_gibibyte_where_there_is_one", |world| {
        let mut machine = world.machine().with("init=suite args=large.");
        machine.memory_mib = 4096;
        let (end, text) = boot(&machine, SUITE_LIMITS[0])?;
        let all_fine = text.lines().filter_map(end_marker).any(|(ran, bad)| ran >= 9 && bad == 0);
        if end == End::Orderly(0) && all_fine && !text.contains("no gibibyte") {
            return Ok(());
        }
        Err(failed("expected that all tests of the kind pass, with a gibibyte", &end, &text))
    })
}

fn same_transcript(world: &World, seed: u64, steps: u64) -> Verdict {
    let transcript = |variant| -> Result<Vec<String>, Failed> {
        let options = format!("init=suite args=transcript,steps={steps} seed={seed} fastpath={variant}");
        let (end, text) = boot(&world.machine().with(&options).counting(), SUITE_LIMITS[0])?;
        let lines: Vec<String> =
            text.lines().filter(|line| line.starts_with("TRANSCRIPT ")).map(String::from).collect();
        if end != End::Orderly(0) || lines.is_empty() {
            return Err(failed("expected a transcript", &end, &text));
        }
        Ok(lines)
    };
    let (on, off) = (transcript("on")?, transcript("off")?);
    match on.iter().zip(&off).find(|(on, off)| on != off) {
        Some((on, off)) => Err(format!("fast path on:  {on}\nfast path off: {off}").into()),
        None if on.len() != off.len() => Err("one transcript is longer".into()),
        None => Ok(()),
    }
}

/// Boots of the suite, in the order in which they are best begun: the longest first.
fn all_boots() -> impl Iterator<Item = (Part, &'static str)> {
    [Part::Checked, Part::Untimed, Part::Timed]
        .into_iter()
        .flat_map(|part| ["off", "on"].map(|variant| (part, variant)))
}

/// Reports of boots of the whole suite that are over.
#[derive(Clone, Default)]
pub struct Reports(Arc<Mutex<Vec<Report>>>);

impl Reports {
    /// A trial for each boot as a whole. Tests of the guest's have names only after they have run, so their trials come afterwards: see [`Reports::trials`].
    pub fn boots(&self, world: &'static World) -> Vec<Trial> {
        let boot = |(part, variant): (Part, &'static str)| {
            let reports = self.clone();
            trial(ends_well(part, variant, ""), move || {
                let report = run(world, variant, part, "");
                let verdict = verdict(&report);
                reports.0.lock().unwrap_or_else(PoisonError::into_inner).push(report);
                verdict
            })
        };
        all_boots().map(boot).collect()
    }

    /// A trial for each test of the boots that are over.
    pub fn trials(&self, world: &'static World) -> Vec<Trial> {
        let mut reports = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        reports.sort_by_key(|report| (report.part, report.variant));
        reports.iter().flat_map(|report| results(world, report, "")).collect()
    }
}

/// Boots the suite for a part of it at once, and returns a trial for each test, and one for each boot as a whole.
pub fn trials(world: &'static World, filter: &str) -> Vec<Trial> {
    let Some(words) = words_for_guest(filter) else { return Vec::new() };
    eprintln!("tern: booting the guest's test suite, with the fast path on and off");
    let boots = ["on", "off"].map(|variant| {
        let words = words.clone();
        thread::spawn(move || Part::ALL.map(|part| run(world, variant, part, &words)))
    });
    let reports = boots.map(|boot| boot.join().expect("the boot's thread does not panic"));
    let mut trials = Vec::new();
    for report in reports.iter().flatten().filter(|report| words.is_empty() || !tests(report).is_empty()) {
        let verdict = verdict(report);
        trials.push(trial(ends_well(report.part, report.variant, filter), move || verdict));
        trials.extend(results(world, report, filter));
    }
    trials
}

/// Name of the trial of a boot as a whole. It contains the filter, by which trials are chosen.
fn ends_well(part: Part, variant: &str, filter: &str) -> String {
    format!("{}{variant}::suite_{}_ends_well_{filter}", part.prefix(), part.name())
}

/// A trial for each test of a boot, and one for how long interrupts were off.
fn results(world: &'static World, report: &Report, filter: &str) -> Vec<Trial> {
    let mut trials = tests(report);
    if let Some(stretches) = &report.stretches {
        let stretches = stretches.as_deref().map_err(Failed::from);
        let verdict = stretches.and_then(|stretches| stretches::judge(world, stretches));
        let name =
            format!("{}::interrupts_of_{}_stay_off_briefly_{filter}", report.prefix(), report.part.name());
        trials.push(trial(name, move || verdict));
    }
    trials
}

/// The part of the filter that the guest understands: parts of its tests' names. `None` if no test of the guest's
/// can be meant.
fn words_for_guest(filter: &str) -> Option<String> {
    match filter.split_once("::") {
        Some((module, _)) if !module.starts_with(ORDINARY) && !module.starts_with(CHECKED) => None,
        Some((_, name)) => Some(name.into()),
        None if filter.starts_with("fastpath")
            || filter.starts_with("checked")
            || filter.contains([' ', ',']) =>
        {
            Some(String::new())
        }
        None => Some(filter.into()),
    }
}

fn run(world: &World, variant: &'static str, part: Part, words: &str) -> Report {
    let arguments = part.arguments(world.full);
    let options = format!("init=suite args={arguments},{words} fastpath={variant} exhaust=on");
    let machine = world.machine().with(&options);
    let limit = SUITE_LIMITS[usize::from(world.full)];
    if part == Part::Checked {
        let outcome = boot(&machine.with(CHECK[usize::from(variant == "on")]), limit);
        let outcome = outcome.map_err(|error| error.message);
        if let Ok((_, text)) = &outcome {
            tell_rate(variant, text);
        }
        return Report { variant, part, outcome, stretches: None };
    }
    let mut machine = if part == Part::Timed { machine.counting() } else { machine };
    let name = part.name();
    let watch = Watch::prepare(world, &format!("{name}-{variant}")).map_err(|error| error.message);
    if let Ok(watch) = &watch {
        machine.extra.extend(["-plugin".into(), watch.plugin.clone()]);
    }
    let outcome = boot(&machine, limit).map_err(|error| error.message);
    let stretches = watch.and_then(|watch| watch.take().map_err(|error| error.message));
    if let Ok(stretches) = &stretches {
        let longest = stretches::longest(stretches);
        eprintln!("tern: {name}, fast path {variant}: interrupts off for at most {longest} instructions");
    }
    Report { variant, part, outcome, stretches: Some(stretches) }
}

/// How the kernel is told to check itself, with the fast path off and on. Any two numbers that differ.
const CHECK: [&str; 2] = ["check=1", "check=2"];

/// Says how many random calls a second a kernel that checks itself does.
fn tell_rate(variant: &str, text: &str) {
    let number =
        |line: &str, key: &str| line.split(' ').find_map(|word| word.strip_prefix(key)?.parse::<u64>().ok());
    let line = text.lines().find(|line| line.starts_with("RANDOM "));
    if let Some((calls, ms)) = line.and_then(|line| Some((number(line, "calls=")?, number(line, "ms=")?))) {
        let rate = calls * 1000 / ms.max(1);
        eprintln!("tern: checked, fast path {variant}: {rate} random calls a second");
    }
}

fn trial(name: String, verdict: impl FnOnce() -> Verdict + Send + 'static) -> Trial {
    order::trial("guest", name, verdict)
}

/// One trial for each line of a test.
fn tests(report: &Report) -> Vec<Trial> {
    let Ok((_, text)) = &report.outcome else { return Vec::new() };
    let results = text.lines().filter_map(|line| line.strip_prefix("TEST ")?.split_once(" ... "));
    results
        .map(|(name, result)| {
            let verdict: Verdict = if result == "ok" { Ok(()) } else { Err(result.to_string().into()) };
            trial(format!("{}::{name}", report.prefix()), move || verdict)
        })
        .collect()
}

/// Whether the boot as a whole went well: an orderly end, the end marker, and as many lines as it promises.
fn verdict(report: &Report) -> Verdict {
    let (end, text) = report.outcome.as_ref().map_err(Failed::from)?;
    let Some((ran, bad)) = text.lines().find_map(end_marker) else {
        return Err(failed("the suite did not reach its end", end, text));
    };
    let lines = tests(report).len();
    if lines != ran || ran == 0 {
        return Err(failed(&format!("{ran} tests ran and {lines} gave a result"), end, text));
    }
    if report.part == Part::Checked && !text.contains("tern: check ") {
        return Err(failed("the kernel did not check itself", end, text));
    }
    // Failed tests have trials of their own; here the exit code must agree with them.
    let expected = if bad == 0 { *end == End::Orderly(0) } else { matches!(end, End::Orderly(1..)) };
    if expected { Ok(()) } else { Err(failed("the suite did not end in order", end, text)) }
}

/// Reads `SUITE-END ran=N failed=M`.
pub fn end_marker(line: &str) -> Option<(usize, usize)> {
    let (ran, failed) = line.strip_prefix("SUITE-END ran=")?.split_once(" failed=")?;
    Some((ran.parse().ok()?, failed.trim().parse().ok()?))
}
