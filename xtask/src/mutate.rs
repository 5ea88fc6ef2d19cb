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
pub mod table;
pub mod tree;

use crate::cli::MutateOptions;
use crate::{Error, Result, build, paths};
use guest::Boots;
use host::Tests;
use list::Check;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;
use tree::Tree;

/// Of a hundred checks, so many have to be caught.
const CAUGHT_PERCENT: usize = 98;

/// Outcome of taking out one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A test on the host failed.
    Host(String),
    /// A test in the guest failed, or the machine ended.
    Guest(String),
    /// No test failed.
    Survived,
    /// The entry is wrong: without the check nothing compiles, or it asks for tests that there are not.
    Wrong(String),
}

/// Test that caught a check, in the table.
const HOST: &str = "host";
const GUEST: &str = "guest";

impl Fate {
    /// Test that caught it, or none.
    fn by(&self) -> &'static str {
        match self {
            Fate::Host(_) => HOST,
            Fate::Guest(_) => GUEST,
            Fate::Survived => "lives",
            Fate::Wrong(_) => "wrong",
        }
    }

    /// The test that failed, or the reason why none could.
    fn test(&self) -> &str {
        match self {
            Fate::Host(test) | Fate::Guest(test) | Fate::Wrong(test) => test,
            Fate::Survived => "",
        }
    }
}

/// A fate and the seconds that it took.
pub type Verdict = (Fate, u64);

/// Counts of a run. A check of which the committed table says something else is open, too.
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
    let mut chosen = choose(&all, options.what.as_deref())?;
    if options.missing {
        chosen = table::without_row(&paths::root(), chosen);
    }
    let blessed = options.bless.then_some(&all[..]);
    let verdicts = run(&chosen, options.jobs, options.baseline, blessed)?;
    print!("{}", summary(&chosen, &verdicts));
    let mut outcome = outcome(&chosen, &verdicts);
    // The committed table has to say of each what has come out; a run that renews it has written that down.
    if !options.bless {
        for line in table::differences(&paths::root(), &chosen, &verdicts) {
            println!("{line}");
            outcome.open += 1;
        }
    }
    println!("{} checks accounted for, {} not", outcome.accounted, outcome.open);
    Ok(u8::from(outcome.open > 0))
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

/// Work that is still to be done: a check's number, and whether all tests are to be asked.
struct Queue<'a> {
    checks: &'a [Check],
    /// All checks of the table, if it is renewed.
    blessed: Option<&'a [Check]>,
    todo: Mutex<VecDeque<(usize, bool)>>,
    verdicts: Mutex<BTreeMap<usize, Verdict>>,
}

impl Queue<'_> {
    fn next(&self) -> Option<(usize, bool)> {
        self.todo.lock().unwrap_or_else(|poison| poison.into_inner()).pop_front()
    }

    /// Notes a verdict, or that the tests that an entry names have noticed nothing: all are asked when no other is left.
    fn note(&self, number: usize, fate: Option<Fate>, seconds: u64) -> Result<()> {
        let mut verdicts = self.verdicts.lock().unwrap_or_else(|poison| poison.into_inner());
        let before = verdicts.get(&number).map_or(0, |(_, seconds)| *seconds);
        let verdict = (fate.clone().unwrap_or(Fate::Survived), before + seconds);
        let (check, count) = (&self.checks[number], self.checks.len());
        if fate.is_none() {
            eprintln!("tern: {}/{count} {} | all tests will be asked", number + 1, check.name);
            self.todo.lock().unwrap_or_else(|poison| poison.into_inner()).push_back((number, true));
        } else {
            eprintln!("tern: {}/{count} {}", number + 1, line(check, &verdict));
            if let Some(all) = self.blessed {
                table::renew(&paths::root(), all, check, &verdict.0)?;
            }
        }
        verdicts.insert(number, verdict);
        Ok(())
    }
}

/// Takes the checks out, several at a time, and writes each verdict into the table of all that are blessed.
fn run(
    checks: &[Check],
    jobs: Option<usize>,
    baseline: bool,
    blessed: Option<&[Check]>,
) -> Result<Vec<Verdict>> {
    let archive = table::keep(&build::system()?.archive)?;
    let processors = thread::available_parallelism().map_or(1, |count| count.get());
    let jobs = jobs.unwrap_or(processors).clamp(1, checks.len().max(1));
    let todo = Mutex::new((0..checks.len()).map(|number| (number, false)).collect());
    let queue = Queue { checks, blessed, todo, verdicts: Mutex::default() };
    let work = |job| work(job, &queue, &archive, baseline && job == 0);
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..jobs).map(|job| scope.spawn(move || work(job))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a job does not panic"))
    })?;
    let verdicts = queue.verdicts.into_inner().unwrap_or_else(|poison| poison.into_inner());
    Ok(verdicts.into_values().collect())
}

/// Takes checks out of one copy until none is left.
fn work(job: usize, queue: &Queue, archive: &Path, baseline: bool) -> Result<()> {
    let tree = Tree::prepare(job)?;
    let tests = host::build(&tree)?;
    let plain = Boots::build(&tree, archive.to_path_buf())?;
    if baseline {
        eprintln!("tern: running the tests with every check in its place");
        if let Some(failed) = tests.run(None)?.map_or_else(|| plain.run(None), |failed| Ok(Some(failed)))? {
            return Err(Error::new(format!("a test fails with every check in its place: {failed}")));
        }
    }
    let plain = plain.kernel()?;
    while let Some((number, all)) = queue.next() {
        let (check, began) = (&queue.checks[number], Instant::now());
        let mut kernel = Kernel { tree: &tree, archive, plain: &plain, tests: None, boots: None };
        let fate = tree.without(check, || match all {
            true => kernel.asked_all(&check.file),
            false => kernel.asked_named(check),
        });
        let fate = fate.unwrap_or_else(|error| Some(Fate::Wrong(error.message)));
        queue.note(number, fate, began.elapsed().as_secs())?;
    }
    Ok(())
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

    /// Do the tests notice that should? `None` if all have to be asked.
    fn asked_named(&mut self, check: &Check) -> Result<Option<Fate>> {
        if let Some(filter) = &check.host
            && let Some(fate) = self.on_host(&check.file, Some(filter))?
        {
            return Ok(Some(fate));
        }
        match &check.guest {
            Some(filter) => self.in_guest(Some(filter)),
            None => Ok(None),
        }
    }

    /// Does any test notice?
    fn asked_all(&mut self, file: &Path) -> Result<Option<Fate>> {
        if let Some(fate) = self.on_host(file, None)? {
            return Ok(Some(fate));
        }
        Ok(Some(self.in_guest(None)?.unwrap_or(Fate::Survived)))
    }
}

fn line(check: &Check, (fate, seconds): &Verdict) -> String {
    format!("{} | {} | {} | {seconds} s", check.name, fate.by(), fate.test())
}

/// Why some survive, then the counts.
fn summary(checks: &[Check], verdicts: &[Verdict]) -> String {
    let mut out = String::new();
    for (check, (fate, _)) in checks.iter().zip(verdicts) {
        out += &match (&check.survives, fate) {
            (Some(reason), Fate::Survived) => format!("{} lives: {reason}\n", check.name),
            (Some(_), _) => format!("{} was caught, although the list has a reason\n", check.name),
            (None, Fate::Survived) => format!("{} LIVES\n", check.name),
            (None, Fate::Wrong(why)) => format!("{}: {why}\n", check.name),
            (None, _) => continue,
        };
    }
    let count = |by: &str| verdicts.iter().filter(|(fate, _)| fate.by() == by).count();
    let seconds: u64 = verdicts.iter().map(|(_, seconds)| seconds).sum();
    let [host, guest, minutes] = [count(HOST), count(GUEST), seconds.div_ceil(60) as usize];
    let rest = checks.len() - host - guest;
    out + &format!(
        "{} checks: {host} caught on the host, {guest} in the guest, {rest} live; {minutes} minutes of work\n",
        checks.len()
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
    fn who_is_not_noticed_by_some_is_shown_to_all() {
        let todo = Mutex::new(VecDeque::from([(0, false), (1, false)]));
        let checks = checks(2, None);
        let queue = Queue { checks: &checks, blessed: None, todo, verdicts: Mutex::default() };
        assert_eq!(queue.next(), Some((0, false)));
        queue.note(0, None, 5).unwrap();
        assert_eq!(queue.next(), Some((1, false)));
        queue.note(1, Some(Fate::Guest("t".into())), 5).unwrap();
        assert_eq!(queue.next(), Some((0, true)));
        queue.note(0, Some(Fate::Survived), 5).unwrap();
        assert_eq!(queue.verdicts.lock().unwrap()[&0], (Fate::Survived, 10));
        assert_eq!(queue.next(), None);
    }
}
