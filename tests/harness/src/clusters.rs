//! Modules that share a task and modules that do not: the same programs, booted with different system descriptions.

use crate::world::{Named, Reply, Verdict, World, usual_description};
use libtest_mimic::Trial;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use xtask::Context;
use xtask::archive::Entry;

/// A task that is made of modules, and their names.
type Task = (&'static str, &'static [&'static str]);

const TOGETHER: &[Task] = &[("services", &["clock", "calendar"])];
const TOGETHER_THE_OTHER_WAY: &[Task] = &[("services", &["calendar", "clock"])];
const APART: &[Task] = &[("calendar", &["calendar"]), ("time", &["clock"])];

/// How far the guest's date may be from the host's, in seconds. The host may be busy.
const DIFFERENCE_MAX: u64 = 120;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 4] = [
        ("in_one_task_calls_are_local", in_one_task_calls_are_local),
        ("apart_calls_go_through_doors", apart_calls_go_through_doors),
        ("a_module_that_ended_is_found_again", a_module_that_ended_is_found_again),
        ("without_a_module_its_callers_learn_it", without_a_module_its_callers_learn_it),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("clusters", format!("clusters::{name}"), verdict)))
}

/// The shell calls the calendar through a door. That the calendar calls the clock, nobody sees.
fn in_one_task_calls_are_local(world: &'static World) -> Verdict {
    for tasks in [TOGETHER, TOGETHER_THE_OTHER_WAY] {
        check_doors(world, tasks, &[("services", [0, 1]), ("shell", [1, 0])])?;
    }
    Ok(())
}

/// The calendar's call is one through a door, and is served in another task.
fn apart_calls_go_through_doors(world: &'static World) -> Verdict {
    check_doors(world, APART, &[("calendar", [1, 1]), ("shell", [1, 0]), ("time", [0, 1])])
}

/// The date is right, and it took these calls and returns through doors, each by a task; and no others.
fn check_doors(world: &World, tasks: &[Task], expected: &[(&str, [u64; 2])]) -> Verdict {
    let reply = script(world, tasks, b"trace on\ndate\ntrace off\ndoors\n")?;
    reply.check_code(0)?;
    check_dates(&reply, 1)?;
    let lines = reply.out.lines().skip_while(|line| !line.starts_with("TASK")).skip(1);
    let mut found: Vec<(&str, [u64; 2])> = lines
        .filter_map(|line| {
            let mut cells = line.split_whitespace().skip(1);
            let name = cells.next()?;
            let counts: Vec<u64> = cells.filter_map(|cell| cell.parse().ok()).collect();
            // Calls with words only are the first column, their returns the fourth; all else must be nothing.
            let [calls, returns] = [*counts.first()?, *counts.get(3)?];
            (counts.iter().sum::<u64>() == calls + returns).then_some((name, [calls, returns]))
        })
        .collect();
    found.sort_unstable();
    if found == expected { Ok(()) } else { Err(reply.failed(&format!("{found:?} instead of {expected:?}"))) }
}

/// Root starts what ended again, and nobody who calls it has to know.
fn a_module_that_ended_is_found_again(world: &'static World) -> Verdict {
    for (tasks, ended) in [(TOGETHER, "services"), (APART, "time"), (APART, "calendar")] {
        let text = format!("date\nkill {ended}\ndate\ndate\n");
        let reply = script(world, tasks, text.as_bytes())?;
        reply.check_code(0)?;
        check_dates(&reply, 3)?;
    }
    Ok(())
}

/// Who is left out is not waited for.
fn without_a_module_its_callers_learn_it(world: &'static World) -> Verdict {
    let reply = script(world, &[("one", &["calendar"])], b"date\n")?;
    reply.check_code(1)?;
    reply.check_contains("date: busy")?;
    let reply = script(world, &[], b"date\n")?;
    reply.check_code(1)?;
    reply.check_contains("date: not found")
}

/// The boot archive with another description: the default one with other tasks, and no modules but theirs.
fn entries(world: &World, tasks: &[Task]) -> xtask::Result<Vec<Entry>> {
    let text = usual_description()?;
    // Without a clock nobody can say that he uses it.
    let has_clock = tasks.iter().any(|(_, modules)| modules.contains(&"clock"));
    let text = if has_clock { text } else { text.replace(", \"clock\"]", "]") };
    let is_kept = |part: &&str| match part.split_once('\n') {
        Some(("task]]", _)) => false,
        Some(("module]]", rest)) => tasks
            .iter()
            .flat_map(|(_, modules)| *modules)
            .any(|module| rest.starts_with(&format!("name = {module:?}\n"))),
        _ => true,
    };
    let parts: Vec<&str> = text.split("\n[[").filter(is_kept).collect();
    let tasks: String = tasks
        .iter()
        .map(|(name, modules)| format!("\n[[task]]\nname = {name:?}\nmodules = {modules:?}\n"))
        .collect();
    // A program that may ask for all may ask for a name that nobody serves.
    let text = (parts.join("\n[[") + &tasks).replace("uses = [\"console\", \"clock\"]\n", "");
    world.entries_of(|files| xtask::system::of_text("clusters", &text, files))
}

fn script(world: &World, tasks: &[Task], script: &[u8]) -> xtask::Result<Reply> {
    world.script_in(&entries(world, tasks)?, script)
}

/// So many lines are dates, and all of them the host's, as its own calendar sees it.
fn check_dates(reply: &Reply, count: usize) -> Verdict {
    let dates: Vec<&str> = reply.out.lines().filter(|line| line.trim_end().ends_with(" UTC")).collect();
    if dates.len() != count {
        return Err(reply.failed(&format!("expected {count} dates")));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    for date in dates {
        let output = Command::new("date").args(["--utc", "+%s", "--date", date.trim_end()]).output();
        let text = String::from_utf8_lossy(&output.context(|| "run date".into())?.stdout).into_owned();
        let is_now = text.trim().parse::<u64>().is_ok_and(|seconds| seconds.abs_diff(now) <= DIFFERENCE_MAX);
        if !is_now {
            return Err(reply.failed(&format!("'{date}' is not now")));
        }
    }
    Ok(())
}
