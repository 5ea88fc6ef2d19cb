//! The verb `mutate`: does a test notice when something of the kernel is gone?
//!
//! Two ways. Without `--checks`, cargo-mutants changes one function or operator after the other and runs the tests on the host:
//! it finds what nobody thought of, but knows nothing of assembly and of the booted system. With `--checks`, the entries of a
//! list of security checks ([`list`]) are taken out one by one in a copy of the checkout ([`tree`]); the tests on the host
//! ([`host`]) run first, and the guest's suite ([`guest`]) if they noticed nothing.

pub mod guest;
pub mod host;
pub mod list;
pub mod mutants;
pub mod tree;

use crate::cli::MutateOptions;
use crate::{Error, Result, build, paths};
use guest::Boots;
use host::Tests;
use list::Check;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use tree::Tree;

/// Of a hundred checks, so many have to be caught.
const CAUGHT_PERCENT: usize = 98;

/// Where the table of the last complete run is, relative to the checkout.
const TABLE: &str = "tests/caught.md";

/// What came of taking out one check.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// A test on the host failed.
    Host(String),
    /// A test in the guest failed, or the machine ended.
    Guest(String),
    /// No test failed.
    Survived,
    /// The entry is wrong: without the check nothing compiles, or it asks for tests that there are not.
    Wrong(String),
}

/// A fate and the seconds that it took.
type Verdict = (Fate, u64);

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Checks that were caught, or survive for a reason that is written down.
    pub accounted: u64,
    /// All others.
    pub open: u64,
}

/// Does what the options say.
pub fn perform(options: MutateOptions) -> Result<u8> {
    if !options.checks {
        return mutants::perform(&options);
    }
    let all = list::read(&paths::root())?;
    let chosen = choose(&all, options.what.as_deref())?;
    let verdicts = run(&chosen, options.jobs, options.baseline)?;
    let table = table(&chosen, &verdicts);
    print!("{table}");
    if options.bless && chosen.len() == all.len() {
        paths::write(&paths::root().join(TABLE), page(&table).as_bytes())?;
    }
    let outcome = outcome(&chosen, &verdicts);
    println!("{} checks accounted for, {} not", outcome.accounted, outcome.open);
    Ok(u8::from(outcome.open > 0))
}

/// All checks, as a part of the full test: what passes with all of them in their places is known.
pub fn all_checks() -> Result<Outcome> {
    let checks = list::read(&paths::root())?;
    let verdicts = run(&checks, None, false)?;
    print!("{}", table(&checks, &verdicts));
    Ok(outcome(&checks, &verdicts))
}

/// The checks whose name or file contains the text.
fn choose(all: &[Check], what: Option<&str>) -> Result<Vec<Check>> {
    let what = what.unwrap_or("");
    let fits = |check: &&Check| check.name.contains(what) || check.file.to_string_lossy().contains(what);
    let chosen: Vec<Check> = all.iter().filter(fits).cloned().collect();
    match chosen.is_empty() {
        true => Err(Error::usage(format!("no check has {what:?} in its name or file; see {}", list::LIST))),
        false => Ok(chosen),
    }
}

/// Takes the checks out, several at a time.
fn run(checks: &[Check], jobs: Option<usize>, baseline: bool) -> Result<Vec<Verdict>> {
    let archive = build::system()?.archive;
    let processors = thread::available_parallelism().map_or(1, |count| count.get());
    let jobs = jobs.unwrap_or(processors).clamp(1, checks.len());
    let next = AtomicUsize::new(0);
    let verdicts: Mutex<BTreeMap<usize, Verdict>> = Mutex::default();
    let work = |job: usize| -> Result<()> {
        let tree = Tree::prepare(job)?;
        let tests = host::build(&tree)?;
        let plain = Boots::build(&tree, archive.clone())?;
        if baseline && job == 0 {
            eprintln!("tern: running the tests with every check in its place");
            if let Some(failed) =
                tests.run(None)?.map_or_else(|| plain.run(None), |failed| Ok(Some(failed)))?
            {
                return Err(Error::new(format!("a test fails with every check in its place: {failed}")));
            }
        }
        let plain = plain.kernel()?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(check) = checks.get(number) else { return Ok(()) };
            let began = Instant::now();
            let (archive, plain) = (&*archive, &*plain);
            let mut kernel = Kernel { tree: &tree, archive, plain, tests: None, boots: None };
            let fate = tree.without(check, || kernel.fate(check));
            let fate = fate.unwrap_or_else(|error| Fate::Wrong(error.message));
            let verdict = (fate, began.elapsed().as_secs());
            eprintln!("tern: {}/{} {}", number + 1, checks.len(), line(check, &verdict));
            verdicts.lock().unwrap_or_else(|poison| poison.into_inner()).insert(number, verdict);
        }
    };
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..jobs).map(|job| scope.spawn(move || work(job))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a job does not panic"))
    })?;
    Ok(verdicts.into_inner().unwrap_or_else(|poison| poison.into_inner()).into_values().collect())
}

/// A copy in which a check is missing, and what was built from it so far.
struct Kernel<'a> {
    tree: &'a Tree,
    archive: &'a Path,
    /// The kernel that has the check.
    plain: &'a [u8],
    tests: Option<Tests>,
    boots: Option<Boots>,
}

impl Kernel<'_> {
    /// Runs tests on the host. None is asked if the file is not built for the host.
    fn on_host(&mut self, file: &Path, filter: Option<&str>) -> Result<Option<Fate>> {
        if !host::sees(self.tree, file)? {
            return Ok(None);
        }
        let tests = match self.tests.take() {
            Some(tests) => tests,
            None => host::build(self.tree)?,
        };
        Ok(self.tests.insert(tests).run(filter)?.map(Fate::Host))
    }

    /// Runs tests in the guest.
    fn in_guest(&mut self, filter: Option<&str>) -> Result<Option<Fate>> {
        let boots = match self.boots.take() {
            Some(boots) => boots,
            None => Boots::build(self.tree, self.archive.to_path_buf())?,
        };
        if boots.kernel()? == self.plain {
            return Err(Error::new("the compiler makes the same kernel with and without it"));
        }
        Ok(self.boots.insert(boots).run(filter)?.map(Fate::Guest))
    }

    /// Who notices? Those who should are asked first, then all others.
    fn fate(&mut self, check: &Check) -> Result<Fate> {
        if let Some(filter) = &check.host
            && let Some(fate) = self.on_host(&check.file, Some(filter))?
        {
            return Ok(fate);
        }
        if let Some(filter) = &check.guest
            && let Some(fate) = self.in_guest(Some(filter))?
        {
            return Ok(fate);
        }
        if let Some(fate) = self.on_host(&check.file, None)? {
            return Ok(fate);
        }
        Ok(self.in_guest(None)?.unwrap_or(Fate::Survived))
    }
}

fn line(check: &Check, (fate, seconds): &Verdict) -> String {
    let fate = match fate {
        Fate::Host(test) => format!("host   {test}"),
        Fate::Guest(test) => format!("guest  {test}"),
        Fate::Survived if check.survives.is_some() => "lives, for a reason".into(),
        Fate::Survived => "LIVES".into(),
        Fate::Wrong(why) => format!("WRONG {why}"),
    };
    format!("{} | {fate} | {seconds} s", check.name)
}

/// A line for each check, then why some survive, then the counts.
fn table(checks: &[Check], verdicts: &[Verdict]) -> String {
    let mut out = String::new();
    let mut sums = [0; 3];
    for (check, verdict) in checks.iter().zip(verdicts) {
        let _ = writeln!(out, "{}", line(check, verdict));
        sums[match verdict.0 {
            Fate::Host(_) => 0,
            Fate::Guest(_) => 1,
            Fate::Survived | Fate::Wrong(_) => 2,
        }] += 1;
    }
    for (check, (fate, _)) in checks.iter().zip(verdicts) {
        match (&check.survives, fate) {
            (Some(reason), Fate::Survived) => _ = writeln!(out, "{} lives: {reason}", check.name),
            (Some(_), _) => _ = writeln!(out, "{} was caught, although the list has a reason", check.name),
            (None, _) => {}
        }
    }
    let [host, guest, lives] = sums;
    let seconds: u64 = verdicts.iter().map(|(_, seconds)| seconds).sum();
    let _ = writeln!(
        out,
        "{} checks: {host} caught on the host, {guest} in the guest, {lives} live; {} minutes of work",
        checks.len(),
        seconds.div_ceil(60)
    );
    out
}

/// The table as a page.
fn page(table: &str) -> String {
    let (rows, rest): (Vec<&str>, Vec<&str>) = table.lines().partition(|line| line.contains(" | "));
    let rows: Vec<String> = rows.iter().map(|row| format!("| {row} |\n")).collect();
    format!(
        "# Who notices when a check is gone\n\nMade by `./tern mutate --checks --bless`; see [README.md](README.md).\n\n\
         | check | caught by | time |\n|---|---|--:|\n{}\n{}\n",
        rows.concat(),
        rest.join("\n")
    )
}

/// A check that survives without a reason is open; and if too many survive, each of them is.
fn outcome(checks: &[Check], verdicts: &[Verdict]) -> Outcome {
    let survived = |(_, (fate, _)): &(&Check, &Verdict)| matches!(fate, Fate::Survived | Fate::Wrong(_));
    let survivors: Vec<_> = checks.iter().zip(verdicts).filter(survived).collect();
    let caught = checks.len() - survivors.len();
    // Of a few checks none may survive by this rule, so it is for lists.
    let too_many = checks.len() >= 50 && caught * 100 < checks.len() * CAUGHT_PERCENT;
    let is_open = |(check, (fate, _)): &&(&Check, &Verdict)| {
        too_many || check.survives.is_none() || *fate != Fate::Survived
    };
    let open = survivors.iter().filter(is_open).count() as u64;
    Outcome { accounted: checks.len() as u64 - open, open }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(count: usize, reason: Option<&str>) -> Vec<Check> {
        let check = Check {
            name: "a".into(),
            file: "b".into(),
            take: "c".into(),
            put: String::new(),
            protects: "d".into(),
            guest: None,
            host: None,
            survives: reason.map(String::from),
        };
        vec![check; count]
    }

    fn verdicts(count: usize, lives: usize) -> Vec<Verdict> {
        let fate = |i| if i < lives { Fate::Survived } else { Fate::Host("t".into()) };
        (0..count).map(|i| (fate(i), 1)).collect()
    }

    #[test]
    fn survivors_need_a_reason_and_are_few() {
        let open = |reason, lives| outcome(&checks(100, reason), &verdicts(100, lives)).open;
        assert_eq!(open(None, 0), 0);
        assert_eq!(open(None, 1), 1);
        assert_eq!(open(Some("no test can"), 2), 0);
        assert_eq!(open(Some("no test can"), 3), 3);
    }

    #[test]
    fn a_table_becomes_a_page() {
        let page = page(&table(&checks(2, Some("why")), &verdicts(2, 1)));
        assert!(page.contains("| a | host   t | 1 s |"), "{page}");
        assert!(page.contains("a lives: why"), "{page}");
    }
}
