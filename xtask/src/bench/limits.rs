//! The limits of rows: what `./tern bench` and the test of the tables fail above.

use super::compare::is_of_host;
use super::{COMPILER, Row, rows_of};
use serde_json::Value;

/// One line for each row of a table that is over its limit. Rows of the host have theirs with the committed table's compiler.
pub(super) fn over(rows: &[Row], table: &Value, committed: &Value) -> Vec<String> {
    let same_compiler = committed[COMPILER].is_null() || committed[COMPILER] == table[COMPILER];
    let measured = rows_of(table).iter().filter(|row| same_compiler || !is_of_host(row));
    let over = measured.filter_map(|measured| {
        let row = rows.iter().find(|row| measured["name"] == *row.name)?;
        let (limit, insns) = (row.limit?, measured["insns"].as_u64()?);
        (insns > limit)
            .then(|| format!("{}: {insns} instructions, its limit is {limit} (bench/rows.tsv)", row.name))
    });
    over.collect()
}

#[cfg(test)]
mod tests {
    use super::super::rows::{read_row, rows};
    use super::super::{committed, committed_figures, rows_of, suite_names};
    use crate::paths;
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::fs;

    #[test]
    fn limits_are_kept() {
        let rows: Vec<_> = ["s\ta\t0\t-\t5\t-\t", "s\tidl.l4v4.x\thost\t-\t5\t-\t", "s\tb\t0\t-\t-\t-\t"]
            .iter()
            .map(|line| read_row(line).unwrap())
            .collect();
        let table = |compiler: &str, insns: u64| {
            let row = |name: &str| json!({"name": name, "insns": insns});
            json!({"l4v4_compiler": compiler, "rows": [row("a"), row("idl.l4v4.x"), row("b")]})
        };
        let over = |compiler, insns| super::over(&rows, &table(compiler, insns), &table("one", 0));
        assert_eq!(over("one", 5), [""; 0]);
        let a = "a: 6 instructions, its limit is 5 (bench/rows.tsv)";
        assert_eq!(over("one", 6), [a, "idl.l4v4.x: 6 instructions, its limit is 5 (bench/rows.tsv)"]);
        assert_eq!(over("two", 6), [a]);
    }

    #[test]
    fn committed_tables_keep_to_the_limits() {
        let rows = rows().unwrap();
        for suite in suite_names().unwrap() {
            let table = committed(&suite).unwrap();
            assert_eq!(super::over(&rows, &table, &table), [""; 0]);
        }
    }

    /// The goal that a row misses, by its note.
    fn goal(note: &str) -> Option<u64> {
        let text = note.split_once("wanted are ")?.1;
        let number: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
        number.trim_end_matches(',').replace(',', "").parse().ok()
    }

    #[test]
    fn missed_goals_are_caveats() {
        let page = fs::read_to_string(paths::root().join("docs/spec/caveats.md")).unwrap();
        let (_, section) = page.split_once("## What falls short of its goal").unwrap();
        let section = section.split("\n## ").next().unwrap();
        let said: BTreeMap<String, u64> = section
            .lines()
            .filter_map(|line| {
                let [_, name, _, goal, reason, _] = line.split('|').collect::<Vec<_>>()[..] else {
                    return None;
                };
                let name = name.trim().strip_prefix('`')?.strip_suffix('`')?.to_string();
                assert!(reason.len() > 5, "{name}: why?");
                Some((name, goal.trim().replace(',', "").parse().unwrap()))
            })
            .collect();
        let figures = committed_figures().unwrap();
        let rows = rows().unwrap();
        let missed: BTreeMap<String, u64> =
            rows.iter().filter_map(|row| Some((row.name.clone(), goal(&row.note)?))).collect();
        assert_eq!(said, missed, "lines of docs/spec/caveats.md, and rows whose notes say \"wanted are\"");
        for (name, goal) in &missed {
            let figure = figures[name]["insns"];
            assert!(figure > *goal, "{name}: {figure} keeps the goal {goal}, which can be its limit");
        }
    }

    #[test]
    fn goals_are_read() {
        let note = |text: &str| goal(&format!("a call; {text}"));
        assert_eq!(note("wanted are 900: the loop"), Some(900));
        assert_eq!(note("wanted are 20,000, and"), Some(20_000));
        assert_eq!(note("nothing is wanted"), None);
    }

    #[test]
    fn nothing_is_below_the_floor() {
        let table = committed("idl").unwrap();
        let figure = |name: &str| {
            let row = rows_of(&table).iter().find(|row| row["name"] == *name);
            row.and_then(|row| row["insns"].as_u64())
        };
        let methods = ["tiny", "small", "large", "larger", "record", "str", "length"];
        for method in ["tiny", "small", "large", "str"] {
            let [floor, stub] = ["idl.floor.c.program.", "idl.c.program."]
                .map(|stubs| figure(&format!("{stubs}{method}")).unwrap());
            assert!(floor <= stub, "{method} between programs in C: {stub}, by hand {floor}");
        }
        for (method, side) in methods.iter().flat_map(|m| ["client", "server", "rt"].map(|side| (m, side))) {
            let floor = figure(&format!("idl.floor.{method}.{side}")).unwrap();
            for stubs in ["idl.", "idl.c.bare."] {
                let stub = figure(&format!("{stubs}{method}.{side}")).unwrap();
                assert!(floor <= stub, "{stubs}{method}.{side}: {stub}, by hand {floor}");
            }
        }
    }
}
