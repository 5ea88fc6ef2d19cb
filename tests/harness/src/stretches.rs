//! How long interrupts stay off, anywhere: watched by ipcscope while the guest's suite runs.

use crate::world::{Verdict, World};
use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use xtask::ksyms::Names;
use xtask::{Context, bench, paths};

/// Most instructions of the kernel between two moments at which it takes interrupts.
const LENGTH_MAX: u64 = 5_000;

/// Fewer stretches than any run of the suite has: the plugin did not watch.
const STRETCHES_MIN: u64 = 100;

/// Where the kernel takes an interrupt: it was on until then, even if no instruction of a user ran.
const INTERRUPT_ENTRY: &str = "interrupt_common";

/// A watch over one machine.
#[derive(Debug)]
pub struct Watch {
    report: PathBuf,
    /// Argument of the emulator.
    pub plugin: String,
}

impl Watch {
    /// Prepares one; the name tells it from others.
    pub fn prepare(world: &World, name: &str) -> xtask::Result<Watch> {
        let report = paths::out()?.join(format!("stretches-{name}-{}.txt", std::process::id()));
        let kernel = &world.system.kernel;
        let image = fs::read(kernel).context(|| format!("read {}", kernel.display()))?;
        let entry = Names::read(&image)?.address_of(INTERRUPT_ENTRY);
        let entry = entry.ok_or_else(|| xtask::Error::new("the kernel has no entry for interrupts"))?;
        let plugin = bench::plugin()?;
        let plugin = format!("{},stretches={},interrupt={entry:#x}", plugin.display(), report.display());
        Ok(Watch { report, plugin })
    }

    /// Reads what it saw; the file goes.
    pub fn take(&self) -> xtask::Result<String> {
        let text = fs::read_to_string(&self.report).context(|| format!("read {}", self.report.display()))?;
        let _ = fs::remove_file(&self.report);
        Ok(text)
    }
}

/// Fails if a stretch is too long, and names where those began, ended and were spent.
pub fn judge(world: &World, report: &str) -> Verdict {
    let count = report.lines().find_map(|line| line.strip_suffix(" stretches")?.parse::<u64>().ok());
    if count.is_none_or(|count| count < STRETCHES_MIN) {
        return Err(format!("the watch saw next to nothing:\n{report}").into());
    }
    let names = Names::read(&fs::read(&world.system.kernel)?)?;
    let too_long: Vec<String> = report
        .lines()
        .filter(|line| length(line).is_some_and(|length| length > LENGTH_MAX))
        .map(|line| told(&names, line))
        .collect();
    if too_long.is_empty() {
        return Ok(());
    }
    Err(format!("more than {LENGTH_MAX} instructions with interrupts off:\n{}", too_long.join("\n")).into())
}

/// The longest stretch of a report, which is its first.
pub fn longest(report: &str) -> u64 {
    report.lines().find_map(length).unwrap_or(0)
}

fn length(line: &str) -> Option<u64> {
    let (length, rest) = line.split_once(' ')?;
    length.parse().ok().filter(|_| rest != "stretches")
}

/// A stretch for people: its length, where it began and ended, and its functions with the times that a block of each was executed.
fn told(names: &Names, line: &str) -> String {
    let mut words = line.split(' ');
    let mut told: Vec<String> = words.by_ref().take(3).map(|word| named(names, word)).collect();
    let mut functions = HashSet::new();
    for (address, times) in words.filter_map(|word| word.split_once('*')) {
        let place = named(names, address);
        let function = place.rsplit_once('+').map_or(place.as_str(), |(function, _)| function);
        if functions.insert(function.to_string()) {
            told.push(format!("{function}*{times}"));
        }
    }
    told.join(" ")
}

/// An address of a report as a name.
fn named(names: &Names, word: &str) -> String {
    let address = word.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    address.map_or_else(|| word.into(), |address| names.of(address))
}
