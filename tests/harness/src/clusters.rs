//! Modules that share a task and modules that do not: the same programs, booted with different files `clusters`.

use crate::world::{LIMIT, Named, Reply, Scratch, Verdict, World, boot, failed};
use libtest_mimic::Trial;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use xtask::archive::{Entry, pack};
use xtask::guest::End;
use xtask::machine::Boot;
use xtask::{Context, paths};

const TOGETHER: &str = "services: clock calendar\n";
const TOGETHER_THE_OTHER_WAY: &str = "services: calendar clock\n";
const APART: &str = "calendar: calendar\ntime: clock\n";

/// How far the guest's date may be from the host's, in seconds. The host may be busy.
const DIFFERENCE_MAX: u64 = 120;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 5] = [
        ("in_one_task_calls_are_local", in_one_task_calls_are_local),
        ("apart_calls_go_through_doors", apart_calls_go_through_doors),
        ("a_module_that_ended_is_found_again", a_module_that_ended_is_found_again),
        ("mistakes_are_told_and_the_rest_runs", mistakes_are_told_and_the_rest_runs),
        ("without_a_module_its_callers_learn_it", without_a_module_its_callers_learn_it),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("clusters", format!("clusters::{name}"), verdict)))
}

/// The shell calls the calendar through a door. That the calendar calls the clock, nobody sees.
fn in_one_task_calls_are_local(world: &'static World) -> Verdict {
    for clusters in [TOGETHER, TOGETHER_THE_OTHER_WAY] {
        check_doors(world, clusters, &[("services", [0, 1]), ("shell", [1, 0])])?;
    }
    Ok(())
}

/// The calendar's call is one through a door, and is served in another task.
fn apart_calls_go_through_doors(world: &'static World) -> Verdict {
    check_doors(world, APART, &[("calendar", [1, 1]), ("shell", [1, 0]), ("time", [0, 1])])
}

/// The date is right, and it took these calls and returns through doors, each by a task; and no others.
fn check_doors(world: &World, clusters: &str, expected: &[(&str, [u64; 2])]) -> Verdict {
    let reply = script(world, clusters, b"trace on\ndate\ntrace off\ndoors\n")?;
    reply.check_code(0)?;
    check_dates(&reply, 1)?;
    let tasks = reply.out.lines().skip_while(|line| !line.starts_with("TASK")).skip(1);
    let mut found: Vec<(&str, [u64; 2])> = tasks
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
    for (clusters, ended) in [(TOGETHER, "services"), (APART, "time"), (APART, "calendar")] {
        let text = format!("date\nkill {ended}\ndate\ndate\n");
        let reply = script(world, clusters, text.as_bytes())?;
        reply.check_code(0)?;
        check_dates(&reply, 3)?;
    }
    Ok(())
}

/// Each line with a mistake is told, with its number; the others count.
fn mistakes_are_told_and_the_rest_runs(world: &'static World) -> Verdict {
    let clusters = "# mistakes\none: nosuch\nshell: clock\nclock\ntwo: clock calendar\nthree: clock\n";
    let scratch = Scratch::create()?;
    let archive = scratch.0.join("boot.cpio");
    paths::write(&archive, &pack(&entries(world, clusters)?))?;
    let mut machine = world.machine().with("init=hello-rust");
    machine.boot = Boot::Direct { kernel: world.system.kernel.clone(), archive: Some(archive) };
    let (end, text) = boot(&machine, LIMIT)?;
    for told in [
        "line 2: there is no module nosuch",
        "line 3: shell is the name of a file",
        "line 4: expected a task's name and a colon",
        "line 6: clock is there twice",
    ] {
        if !text.contains(&format!("root: file 'clusters', {told}")) {
            return Err(failed(&format!("expected '{told}'"), &end, &text));
        }
    }
    if end != End::Orderly(0) {
        return Err(failed("expected that the first program runs", &end, &text));
    }
    check_dates(&script(world, clusters, b"date\n")?, 1)
}

/// Who is left out is not waited for.
fn without_a_module_its_callers_learn_it(world: &'static World) -> Verdict {
    let reply = script(world, "one: calendar\n", b"date\n")?;
    reply.check_code(1)?;
    reply.check_contains("date: busy")?;
    let reply = script(world, "", b"date\n")?;
    reply.check_code(1)?;
    reply.check_contains("date: not found")
}

/// The boot archive with another file `clusters`.
fn entries(world: &World, clusters: &str) -> xtask::Result<Vec<Entry>> {
    let mut entries = world.entries()?;
    entries.retain(|entry| entry.name != "clusters");
    entries.push(Entry { name: "clusters".into(), data: clusters.into() });
    Ok(entries)
}

fn script(world: &World, clusters: &str, script: &[u8]) -> xtask::Result<Reply> {
    world.script_in(&entries(world, clusters)?, script)
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
