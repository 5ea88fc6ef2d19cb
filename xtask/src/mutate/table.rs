//! The committed table of who notices when a check is gone: a row for each check of the list, in the list's order.
//!
//! A run of some checks renews their rows and leaves the others. The time is not in it, and the test that failed first is
//! there for people: what has to come out again is who caught a check.

use super::list::Check;
use super::{Fate, GUEST, HOST, Verdict};
use crate::{Context, Result, paths};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where it is, relative to the checkout.
pub const TABLE: &str = "tests/caught.md";

/// In a row: never run.
const NOT_RUN: &str = "not run";

/// Kind of test that caught a check, and which test or reason is named.
type Row = (String, String);

/// Keeps the programs that are booted, whatever is built in the checkout meanwhile. Says where.
pub fn keep(archive: &Path) -> Result<PathBuf> {
    let path = paths::target().join("mutate/boot.cpio");
    fs::create_dir_all(paths::target().join("mutate")).context(|| "create target/mutate".into())?;
    paths::write(&path, &paths::read(archive)?)?;
    Ok(path)
}

/// Writes the row of a check that was taken out into the table.
pub fn renew(root: &Path, all: &[Check], check: &Check, fate: &Fate) -> Result<()> {
    let mut rows = read(root);
    rows.insert(check.name.clone(), (fate.by().into(), fate.test().into()));
    paths::write(&root.join(TABLE), page(all, &rows).as_bytes())
}

/// The checks of which the table knows nothing yet.
pub fn without_row(root: &Path, checks: Vec<Check>) -> Vec<Check> {
    let rows = read(root);
    let is_new = |check: &Check| rows.get(&check.name).is_none_or(|(by, _)| by == NOT_RUN);
    checks.into_iter().filter(is_new).collect()
}

/// Checks of which the table says otherwise than a run, or nothing, a line for each.
pub fn differences(root: &Path, checks: &[Check], verdicts: &[Verdict]) -> Vec<String> {
    let rows = read(root);
    let known = |check: &Check| rows.get(&check.name).map_or(NOT_RUN, |(by, _)| by.as_str());
    let pairs = checks.iter().zip(verdicts).map(|(check, (fate, _))| (check, known(check), fate.by()));
    let differ = pairs.filter(|(_, known, by)| known != by);
    differ.map(|(check, known, by)| format!("{TABLE}: {}: {known}, and now {by}", check.name)).collect()
}

fn read(root: &Path) -> BTreeMap<String, Row> {
    let text = fs::read_to_string(root.join(TABLE)).unwrap_or_default();
    text.lines().filter_map(row).collect()
}

/// Reads "| check | by | test |".
fn row(line: &str) -> Option<(String, Row)> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix('|')?.split(" | ").map(str::trim).collect();
    let &[name, by, test] = cells.as_slice() else { return None };
    Some((name.into(), (by.into(), test.trim_matches('`').into())))
}

fn page(all: &[Check], rows: &BTreeMap<String, Row>) -> String {
    let none: Row = (NOT_RUN.into(), String::new());
    let of = |check: &Check| rows.get(&check.name).unwrap_or(&none);
    let count = |kind: &str| all.iter().filter(|check| of(check).0 == kind).count();
    let (host, guest) = (count(HOST), count(GUEST));
    let lines = all.iter().map(|check| {
        let (by, test) = of(check);
        let why = match (&check.survives, test.as_str()) {
            (Some(reason), "") => reason.clone(),
            (_, "") => String::new(),
            (_, test) => format!("`{test}`"),
        };
        format!("| {} | {by} | {why} |\n", check.name)
    });
    format!(
        "# Who notices when a check is gone\n\nMade by `./tern mutate --checks --bless`; see [README.md](README.md). \
         A check is caught on the host or in the guest, by the test that failed first; or it lives, for the reason that is \
         named.\n\n{} checks: {host} are caught on the host, {guest} in the guest, {} are not, \
         or not run yet.\n\n\
         | check | caught by | test or reason |\n|---|---|---|\n{}",
        all.len(),
        all.len() - host - guest,
        lines.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::list;

    #[test]
    fn rows_are_read_as_they_are_written() {
        let row = row("| a: b | guest | `fastpath-on::c.d` |").expect("a row");
        assert_eq!(row, ("a: b".into(), ("guest".into(), "fastpath-on::c.d".into())));
    }

    #[test]
    fn nothing_lives_without_a_reason() {
        let root = paths::root();
        let (rows, checks) = (read(&root), list::read(&root).expect("the list is right"));
        for (check, (by, _)) in checks.iter().filter_map(|check| Some((check, rows.get(&check.name)?))) {
            let is_caught = [HOST, GUEST, NOT_RUN].contains(&by.as_str());
            assert!(is_caught || check.survives.is_some(), "{}: {by}", check.name);
        }
    }

    #[test]
    fn what_has_changed_is_said() {
        let (root, checks) = (paths::root(), list::read(&paths::root()).expect("the list is right"));
        let rows = checks.iter().zip(std::iter::repeat((Fate::Wrong("why".into()), 1)));
        let (checks, verdicts): (Vec<_>, Vec<_>) =
            rows.map(|(check, verdict)| (check.clone(), verdict)).unzip();
        assert_eq!(differences(&root, &checks, &verdicts).len(), checks.len());
    }
}
