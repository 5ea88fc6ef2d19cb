//! The suite `memory`: what everything takes in memory when the default system has booted and its shell can be typed at.
//!
//! The figures are the shell's own: `ps` tells of tasks, `mem` of all together. The system is booted on a machine without a disk and a card, and on one that has both. The
//! machines count instead of timing, so figures are nearly the same in each run; and since a change of any program moves some, they are compared with a margin.

use super::devices::make_disk;
use super::rows_of;
use crate::build::System;
use crate::guest::{End, Guest};
use crate::machine::{Forward, Machine};
use crate::{Context, Error, Result, paths};
use object::{Object, ObjectSegment};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// The suite's name.
pub const SUITE: &str = "memory";

/// Beginning of the rows' names.
pub const PREFIX: &str = "memory.";

/// Beginning of the names of those rows, behind [`PREFIX`], for which the machine has a disk with a file system and a card.
pub const DEVICES: &str = "devices.";

/// Figures of a row: its pages of 4 KiB, the frames of kernel memory that are used for it, its threads.
pub const FIGURES: [&str; 3] = ["pages", "frames", "threads"];

/// Bytes of a page.
const PAGE: u64 = 4096;

/// KiB of a page.
const PAGE_KIB: u64 = PAGE / 1024;

/// Typed at the shell.
const SCRIPT: &[u8] = b"ps\nmem\nexit\n";

/// Longest time for the boot.
const LIMIT: Duration = Duration::from_secs(120);

/// Figures may differ by this part of the committed one, or by so many pages, frames or threads, whatever is more.
const MARGIN: (u64, u64) = (8, 4);

/// Boots the system on both machines and looks.
pub fn table(system: &System) -> Result<Value> {
    let bare = Machine::new(system).with("init=shell args=script").counting();
    let mut equipped = bare.clone();
    let image = paths::out()?.join("bench-memory.img");
    make_disk(&image, None, "16M")?;
    equipped.disk = Some(image);
    // Nobody connects to the port, which is any.
    equipped.net = Some(Forward { host: 0, guest: 1 });
    let mut rows = rows_on(&bare, "")?;
    rows.extend(rows_on(&equipped, DEVICES)?);
    rows.push(row("image", [pages(image_bytes(system)?), 0, 0]));
    let archive = fs::metadata(&system.archive).context(|| format!("read {}", system.archive.display()))?;
    rows.push(row("archive", [pages(archive.len()), 0, 0]));
    Ok(json!({ "suite": SUITE, "rows": rows }))
}

/// Boots a machine and looks. `group`: the beginning of its rows' names.
fn rows_on(machine: &Machine, group: &str) -> Result<Vec<Value>> {
    let mut guest = Guest::start(machine)?;
    guest.limit(Some(LIMIT));
    if guest.expect_begin() {
        guest.send(SCRIPT);
    }
    match guest.finish() {
        End::Orderly(0) => {}
        end => {
            eprint!("{}", guest.text());
            return Err(Error::machine(format!("the system ended: {end:?}")));
        }
    }
    let rows = rows_from(&guest.text(), group);
    if rows.len() < TOTALS.len() + 2 {
        return Err(Error::machine(format!("the shell did not tell of memory:\n{}", guest.text())));
    }
    Ok(rows)
}

fn row(name: &str, figures: [u64; 3]) -> Value {
    let mut row = json!({ "name": format!("{PREFIX}{name}") });
    for (name, figure) in FIGURES.iter().zip(figures) {
        row[*name] = figure.into();
    }
    row
}

/// Pages for so many bytes.
fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE)
}

/// Bytes of the kernel's file in memory.
fn image_bytes(system: &System) -> Result<u64> {
    let image = paths::read(&system.kernel)?;
    let file = object::File::parse(&*image).context(|| "read the kernel's ELF file".into())?;
    Ok(file.segments().map(|segment| segment.size()).sum())
}

/// Lines of `mem`, and the rows that they become.
const TOTALS: [(&str, &str); 3] =
    [("machine (sigma0)", "machine"), ("programs (mm)", "programs"), ("kernel memory (root)", "kernel")];

/// The rows that the shell's answers are, in this group.
fn rows_from(text: &str, group: &str) -> Vec<Value> {
    let mut tasks: Vec<(&str, [u64; 3])> = Vec::new();
    for line in text.lines() {
        tasks.extend(task_of(line));
        // Lines of further threads belong to the task above.
        if let Some((_, [.., threads])) = tasks.last_mut() {
            *threads += u64::from(is_thread(line));
        }
    }
    let totals = text.lines().filter_map(total_of).map(|(name, used)| (name, [used, 0, 0]));
    let all = tasks.into_iter().chain(totals);
    all.map(|(name, figures)| row(&format!("{group}{name}"), figures)).collect()
}

/// A line of `ps` in which a task begins: its name, pages and frames.
fn task_of(line: &str) -> Option<(&str, [u64; 3])> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [number, name, _thread, _state, _priority, _time, _faults, pages, kernel, ..] = words[..] else {
        return None;
    };
    number.parse::<u64>().ok()?;
    let (used, _) = kernel.split_once('/')?;
    Some((name, [pages.parse().ok()?, used.parse().ok()?, 0]))
}

/// Whether a line of `ps` is a thread's: there is its state.
fn is_thread(line: &str) -> bool {
    let states = abi::call::thread_op::STATES;
    line.split_whitespace().take(4).any(|word| states.contains(&word))
}

/// A line of `mem`: its row's name, and used pages.
fn total_of(line: &str) -> Option<(&'static str, u64)> {
    let (what, name) = TOTALS.iter().find(|(what, _)| line.starts_with(what))?;
    let [_total, used, _free] = line.strip_prefix(what)?.split_whitespace().collect::<Vec<_>>()[..] else {
        return None;
    };
    Some((name, used.parse::<u64>().ok()?.div_ceil(PAGE_KIB)))
}

/// The table for people.
pub fn for_people(table: &Value) -> String {
    let mut out = format!("{SUITE:<22}");
    for name in FIGURES {
        out += &format!(" {name:>8}");
    }
    out.push('\n');
    for row in rows_of(table) {
        out += &format!("{:<22}", row["name"].as_str().unwrap_or("?"));
        for name in FIGURES {
            out += &format!(" {:>8}", figure(row, name));
        }
        out.push('\n');
    }
    out += "Pages of 4 KiB that a task has mapped, frames of kernel memory used for it, its threads. memory.machine, programs and kernel: all \
            that is in use; image and archive: what was loaded.\n";
    out
}

fn figure(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or(0)
}

/// One line for each figure that is beyond the margin, and for each row that only one table has.
pub fn compare(committed: &Value, measured: &Value) -> Vec<String> {
    let find = |table: &Value, row: &Value| {
        rows_of(table).iter().find(|other| other["name"] == row["name"]).cloned()
    };
    let name = |row: &Value| row["name"].as_str().unwrap_or("?").to_string();
    let mut lines = Vec::new();
    for old in rows_of(committed) {
        let Some(new) = find(measured, old) else {
            lines.push(format!("{}: no longer there", name(old)));
            continue;
        };
        let changed = FIGURES.iter().filter(|what| !is_near(figure(old, what), figure(&new, what)));
        lines.extend(changed.map(|what| format!("{}: {what} {} -> {}", name(old), old[*what], new[*what])));
    }
    let added = rows_of(measured).iter().filter(|row| find(committed, row).is_none());
    lines.extend(added.map(|row| format!("{}: not in the committed table", name(row))));
    lines
}

fn is_near(old: u64, new: u64) -> bool {
    let (part, least) = MARGIN;
    old.abs_diff(new) <= (old / part).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str =
        " TASK  NAME               THREAD  STATE     PRIO       CPU ms  FAULTS   PAGES  KERNEL      WORKS FOR
    1  sigma0              1.1  receiving   63        0.123       0    1234  12/0
    4  network             9.1  receiving   53        1.000     120      88  20/128
                          10.1  busy        53        0.010       0
    5  shell              12.1  ready       40        2.000      50      61  11/128      network (4)

                              TOTAL KiB   USED KiB   FREE KiB
machine (sigma0)                 200000      80001     119999
programs (mm)                      9000       6000       3000
kernel memory (root)               8192       4096       4096
";

    #[test]
    fn what_the_shell_says_becomes_rows() {
        let expected = [
            row("sigma0", [1234, 12, 1]),
            row("network", [88, 20, 2]),
            row("shell", [61, 11, 1]),
            row("machine", [20001, 0, 0]),
            row("programs", [1500, 0, 0]),
            row("kernel", [1024, 0, 0]),
        ];
        assert_eq!(rows_from(SAID, ""), expected);
        assert_eq!(rows_from(SAID, DEVICES)[1], row("devices.network", [88, 20, 2]));
        assert!(rows_from("ps: the server refused", "").is_empty());
    }

    #[test]
    fn a_little_more_is_no_difference() {
        let table = |pages: u64, frames: u64| json!({"rows": [row("a", [pages, frames, 1])]});
        assert!(compare(&table(80, 9), &table(90, 13)).is_empty());
        assert_eq!(compare(&table(80, 9), &table(91, 9)), ["memory.a: pages 80 -> 91"]);
        assert_eq!(compare(&table(80, 9), &table(80, 14)), ["memory.a: frames 9 -> 14"]);
        let none = json!({"rows": []});
        assert_eq!(compare(&table(1, 1), &none), ["memory.a: no longer there"]);
        assert_eq!(compare(&none, &table(1, 1)), ["memory.a: not in the committed table"]);
    }
}
