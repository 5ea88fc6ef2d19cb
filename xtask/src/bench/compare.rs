//! Compares a measured table with the committed one.
//!
//! Rows that another host cannot have are no difference: those that were counted with another compiler of the host, and those of a program of Debian's that is not there, or is
//! there in another version.

use super::{COMPILER, FIGURES, HOST, linux, rows_of};
use crate::{colours, tlb};
use serde_json::Value;

/// Whether a row of a table was counted on the host.
pub(super) fn is_of_host(row: &Value) -> bool {
    row["name"].as_str().is_some_and(|name| name.starts_with(HOST.1))
}

/// Whether a row measures no program of Debian's, or another table has the row with that version of its program.
pub(super) fn is_of_same_program(row: &Value, other: &Value) -> bool {
    let is_same =
        |other: &Value| other["name"] == row["name"] && other[linux::MEASURED] == row[linux::MEASURED];
    row[linux::MEASURED].is_null() || rows_of(other).iter().any(is_same)
}

/// A host that cannot count does not remove what another one has counted.
pub(super) fn with_rows_of_other_hosts(mut table: Value, committed: &Value) -> Value {
    if table[COMPILER].is_null() && !committed[COMPILER].is_null() {
        let old = rows_of(committed).iter().filter(|row| is_of_host(row)).cloned();
        table[COMPILER] = committed[COMPILER].clone();
        if let Some(rows) = table["rows"].as_array_mut() {
            rows.extend(old);
        }
    }
    let of_programs = rows_of(committed).iter().filter(|row| !row[linux::MEASURED].is_null());
    let is_missing = |row: &&Value| rows_of(&table).iter().all(|other| other["name"] != row["name"]);
    let missing: Vec<Value> = of_programs.filter(is_missing).cloned().collect();
    if let Some(rows) = table["rows"].as_array_mut() {
        rows.extend(missing);
    }
    table
}

/// One line for each figure that differs between two tables. Rows of the host are compared if the compiler is the same, and of rough rows the instructions, which
/// may differ by a [part](super::rows::Row::rough_part): a device of the emulator has a say in them, whose interrupts come when the host has done its part.
pub(super) fn compare(
    committed: &Value,
    measured: &Value,
    rough_part: impl Fn(&str) -> Option<u64>,
) -> Vec<String> {
    let same_compiler = committed[COMPILER] == measured[COMPILER];
    let rows = |table: &Value| -> Vec<Value> {
        rows_of(table).iter().filter(|row| same_compiler || !is_of_host(row)).cloned().collect()
    };
    let find = |table: &Value, name: &Value| rows(table).into_iter().find(|row| row["name"] == *name);
    let mut lines = Vec::new();
    for old in rows(committed).iter().filter(|row| is_of_same_program(row, measured)) {
        let name = old["name"].as_str().unwrap_or("?").to_string();
        let Some(new) = find(measured, &old["name"]) else {
            lines.push(format!("{name}: no longer measured"));
            continue;
        };
        let all = FIGURES.iter().map(|(figure, _)| *figure).chain(["bytes", "passes"]);
        let all = all.chain(tlb::figures()).chain(colours::figures());
        let part = rough_part(&name);
        let figures = all.filter(|figure| part.is_none() || *figure == FIGURES[0].0);
        for figure in figures.filter(|figure| old[*figure] != new[*figure]) {
            if !part.is_some_and(|part| is_near(&old[figure], &new[figure], part)) {
                lines.push(format!("{name}: {figure} {} -> {}", old[figure], new[figure]));
            }
        }
    }
    for new in rows(measured).iter().filter(|row| find(committed, &row["name"]).is_none()) {
        lines.push(format!("{}: not in the committed table", new["name"].as_str().unwrap_or("?")));
    }
    lines
}

/// Whether two figures differ by such a part of the old one at most.
fn is_near(old: &Value, new: &Value, part: u64) -> bool {
    matches!((old.as_u64(), new.as_u64()), (Some(old), Some(new)) if old.abs_diff(new) * part <= old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compare(old: &Value, new: &Value) -> String {
        super::compare(old, new, |_| None).join("\n")
    }

    #[test]
    fn differences_are_named() {
        let old = json!({"rows": [{"name": "a", "insns": 1}, {"name": "b"}]});
        let new = json!({"rows": [{"name": "a", "insns": 2}, {"name": "c"}]});
        let expected = "a: insns 1 -> 2\nb: no longer measured\nc: not in the committed table";
        assert_eq!(compare(&old, &new), expected);
        assert_eq!(compare(&old, &old), "");
    }

    #[test]
    fn a_part_is_no_difference_of_a_rough_row() {
        let table = |insns: u64| json!({"rows": [{"name": "a", "insns": insns, "user": insns}]});
        let compare = |new: &Value| super::compare(&table(1000), new, |name| (name == "a").then_some(20));
        assert!(compare(&table(1050)).is_empty());
        assert_eq!(compare(&table(1051)), ["a: insns 1000 -> 1051"]);
        assert_eq!(compare(&json!({"rows": [{"name": "a"}]})), ["a: insns 1000 -> null"]);
        assert_eq!(compare(&json!({"rows": []})), ["a: no longer measured"]);
    }

    #[test]
    fn a_program_of_another_version_is_no_difference() {
        let table = |rows: Value| json!({"rows": rows});
        let old = table(json!([{"name": "a", "insns": 1}, {"name": "lua", "insns": 1, "program": "lua 1"}]));
        let new = |version: &str| {
            table(json!([{"name": "a", "insns": 1}, {"name": "lua", "insns": 2, "program": version}]))
        };
        let none = table(json!([{"name": "a", "insns": 1}]));
        assert_eq!(compare(&old, &new("lua 1")), "lua: insns 1 -> 2");
        assert_eq!([compare(&old, &new("lua 2")), compare(&old, &none)], ["", ""]);
        assert_eq!(with_rows_of_other_hosts(none, &old), old);
        assert_eq!(with_rows_of_other_hosts(new("lua 2"), &old), new("lua 2"));
    }

    #[test]
    fn another_compiler_is_no_difference() {
        let rows = |insns: u64| json!([{"name": "a", "insns": 1}, {"name": "idl.l4v4.x", "insns": insns}]);
        let old = json!({"l4v4_compiler": "one", "rows": rows(1)});
        let same = json!({"l4v4_compiler": "one", "rows": rows(2)});
        let other = json!({"l4v4_compiler": "two", "rows": rows(2)});
        let none = json!({"rows": [{"name": "a", "insns": 1}]});
        assert_eq!(compare(&old, &same), "idl.l4v4.x: insns 1 -> 2");
        assert_eq!(compare(&old, &other), "");
        assert_eq!(compare(&old, &none), "");
        assert_eq!(with_rows_of_other_hosts(none, &old)["rows"], old["rows"]);
        assert_eq!(with_rows_of_other_hosts(same.clone(), &old), same);
    }
}
