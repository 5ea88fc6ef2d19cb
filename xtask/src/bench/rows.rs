//! The lines of `bench/rows.tsv`: what is measured.

use super::devices::Wanted;
use super::{ITERATIONS_MIN, STARTS_MIN, linux, memory};
use crate::{Context, Error, Result, colours, paths, tlb};
use std::fs;

/// In the column of boot options: the row is measured on Linux alone.
const LINUX_ALONE: &str = "linux";

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub suite: String,
    pub name: String,
    pub region: String,
    /// Further boot options, and what the machine has besides: see [`Wanted`].
    pub boot: String,
    /// Most instructions it may cost.
    pub limit: Option<u64>,
    /// For a row about one side of a call: user instructions of the other side, which are taken off. The kernel's
    /// figures are then nobody's.
    pub partner: Option<u64>,
    /// One operation, in words.
    pub note: String,
    /// For a row that copies: bytes that one operation takes from memory to memory.
    pub bytes: Option<u64>,
    /// Name of Linux's figure for that operation, if Linux has one.
    pub linux: Option<String>,
}

impl Row {
    /// Whether it is measured on Linux and not on Tern.
    pub fn is_of_linux_alone(&self) -> bool {
        self.boot == LINUX_ALONE
    }

    /// The package of the program that it measures, if it measures one of Debian's.
    pub fn program(&self) -> Option<&str> {
        self.boot.split_whitespace().find_map(|word| word.strip_prefix("program="))
    }

    /// Warm iterations that it needs at least: fewer of a whole process, which is a thousand times as long as a call.
    pub fn iterations_min(&self) -> u64 {
        if self.program().is_some() { STARTS_MIN } else { ITERATIONS_MIN }
    }

    /// The part of its figures by which they may differ from run to run, since a device of the emulator has a say in them; none if they are the same in each run. An interrupt
    /// comes before a driver sleeps or afterwards, which is a fifth of a short operation; a program that merely lies on a disk hardly notices.
    pub fn rough_part(&self) -> Option<u64> {
        match Wanted::read(&self.boot) {
            _ if self.suite == linux::SUITE => Some(20),
            Ok(wanted) if wanted.has_devices() => Some(4),
            _ => None,
        }
    }
}

/// All lines.
pub(super) fn rows() -> Result<Vec<Row>> {
    let path = paths::root().join("bench/rows.tsv");
    let text = fs::read_to_string(&path).context(|| format!("read {}", path.display()))?;
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(read_row).collect()
}

/// Reads a line.
pub(super) fn read_row(line: &str) -> Result<Row> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [suite, name, region, boot, limit, partner, ..] = fields[..] else {
        return Err(Error::new(format!("bench/rows.tsv: too few columns: {line}")));
    };
    let number = |field: &str| match field {
        "-" => Ok(None),
        number => number.parse().map(Some).context(|| format!("read bench/rows.tsv: {line}")),
    };
    let further = |column: usize| fields.get(column).copied().unwrap_or("-");
    let (limit, partner) = (number(limit)?, number(partner)?);
    let bytes = number(further(7))?;
    let linux = Some(further(8)).filter(|linux| *linux != "-");
    let boot = if boot == "-" { "" } else { boot };
    Ok(Row {
        suite: suite.into(),
        name: name.into(),
        region: region.into(),
        boot: boot.into(),
        limit,
        partner,
        note: further(6).into(),
        bytes,
        linux: linux.map(String::from),
    })
}

/// Names of the suites, in the order of the table.
pub(super) fn suites(rows: &[Row]) -> Vec<String> {
    let mut suites: Vec<String> = rows.iter().map(|row| row.suite.clone()).collect();
    suites.dedup();
    suites.extend([tlb::SUITE, colours::SUITE, memory::SUITE].map(String::from));
    suites
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read() {
        let row = read_row("ipc\tnull.syscall\t0\t-\t12\t-\tnote").unwrap();
        assert_eq!((row.boot.as_str(), row.limit, row.partner), ("", Some(12), None));
        assert_eq!((row.linux, row.bytes), (None, None));
        assert_eq!(read_row("idl\tx\t0\t-\t-\t3\tnote").unwrap().partner, Some(3));
        assert_eq!(read_row("ipc\tx\t0\t-\t-\t-\tnote\t64").unwrap().bytes, Some(64));
        let row = read_row("servers\tx\t0\t-\t-\t-\tnote\t-\tcall").unwrap();
        assert_eq!((row.linux.as_deref(), row.bytes), (Some("call"), None));
        assert!(read_row("ipc\tx").is_err());
        assert!(read_row("ipc\tx\t0\t-\tmany\t-\t").is_err());
    }

    #[test]
    fn rows_name_programs() {
        let program = |boot: &str| {
            let row = read_row(&format!("linux\tx\t0\t{boot}\t-\t-\t")).unwrap();
            row.program().map(String::from)
        };
        assert_eq!((program("a=b program=lua5.4"), program("-")), (Some("lua5.4".into()), None));
    }

    #[test]
    fn rows_with_devices_are_rough() {
        let part = |suite: &str, boot: &str| {
            read_row(&format!("{suite}\tx\t0\t{boot}\t-\t-\t")).unwrap().rough_part()
        };
        assert_eq!((part("servers", "disk=null"), part("servers", "a=b card=on")), (Some(4), Some(4)));
        assert_eq!((part("linux", "-"), part("linux", "linux")), (Some(20), Some(20)));
        assert_eq!((part("servers", "-"), part("ipc", "cpu=EPYC pti=off")), (None, None));
    }

    #[test]
    fn figures_of_linux_belong_to_rows() {
        let rows = rows().unwrap();
        let measured: Vec<&str> =
            rows.iter().filter(|row| row.suite == linux::SUITE).map(|row| row.name.as_str()).collect();
        for row in &rows {
            let is_there = row.linux.as_deref().is_none_or(|name| measured.contains(&name));
            assert!(is_there, "{}: the suite linux has no row {:?}", row.name, row.linux);
            assert!(Wanted::read(&row.boot).is_ok(), "{}: {}", row.name, row.boot);
        }
    }
}
