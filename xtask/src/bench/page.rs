//! The page of the book about what servers cost, and about memory: its tables are those of the committed measurements, so that no figure is written by hand.

use super::{committed, linux, memory, rows::rows, rows_of};
use crate::{Context, Error, Result, paths};
use serde_json::Value;
use std::fs;

/// The page.
const PAGE: &str = "docs/servers-cost.md";

/// The suite of the first table.
const SERVERS: &str = "servers";

/// Line in front of a table, and line behind one.
const BEGIN: [&str; 2] = ["<!-- table: ", " -->"];
const END: &str = "<!-- end of the table -->";

/// Renews the page.
pub fn renew() -> Result<()> {
    let path = paths::root().join(PAGE);
    let page = fs::read_to_string(&path).context(|| format!("read {}", path.display()))?;
    let renewed = with_tables(&page, table_of)?;
    if renewed != page {
        paths::write(&path, renewed.as_bytes())?;
        eprintln!("tern: renewed {}", path.display());
    }
    Ok(())
}

/// The page with other tables.
fn with_tables(page: &str, table_of: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += line;
        out.push('\n');
        let name = line.strip_prefix(BEGIN[0]).and_then(|rest| rest.strip_suffix(BEGIN[1]));
        if let Some(name) = name {
            if !lines.any(|line| line == END) {
                return Err(Error::new(format!("{PAGE}: the table {name} has no end")));
            }
            out += &format!("\n{}\n{END}\n", table_of(name)?);
        }
    }
    Ok(out)
}

/// A table, without the line behind it.
fn table_of(name: &str) -> Result<String> {
    match name {
        SERVERS => of_servers(),
        memory::SUITE => Ok(of_memory(&committed(memory::SUITE)?)),
        _ => Err(Error::new(format!("{PAGE}: there is no table {name}"))),
    }
}

/// Costs of servers, and those of Linux beside.
fn of_servers() -> Result<String> {
    let (measured, peer) = (committed(SERVERS)?, linux::peer());
    let mut out = String::from("| what | row | instructions | kernel | Linux |\n|---|---|--:|--:|--:|\n");
    for row in rows()?.iter().filter(|row| row.suite == SERVERS) {
        let found = rows_of(&measured).iter().find(|found| found["name"] == row.name.as_str());
        let Some(found) = found else { continue };
        let what = row.note.replace('`', "");
        let linux = linux::figure(&peer, row).map_or(String::new(), grouped);
        let figure = |name: &str| grouped(found[name].as_u64().unwrap_or(0));
        out +=
            &format!("| {what} | `{}` | {} | {} | {linux} |\n", row.name, figure("insns"), figure("kernel"));
    }
    Ok(out)
}

/// Memory of everything, as a table.
fn of_memory(table: &Value) -> String {
    let mut out = String::from("| what | pages | kernel pages | threads |\n|---|--:|--:|--:|\n");
    for row in rows_of(table) {
        let name = row["name"].as_str().unwrap_or("?");
        let name = name.strip_prefix(memory::PREFIX).unwrap_or(name);
        let cells = memory::FIGURES.map(|figure| grouped(row[figure].as_u64().unwrap_or(0)));
        out += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    out
}

/// A number with a comma in front of each three digits.
fn grouped(number: u64) -> String {
    match number {
        ..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_committed_tables() {
        let page = fs::read_to_string(paths::root().join(PAGE)).unwrap();
        let renewed = with_tables(&page, table_of).unwrap();
        assert_eq!(renewed, page, "{PAGE} is renewed by ./tern bench servers --bless");
        for name in [SERVERS, memory::SUITE] {
            assert!(page.contains(&format!("{}{name}{}", BEGIN[0], BEGIN[1])), "no table {name}");
        }
    }

    #[test]
    fn tables_are_replaced() {
        let table = |name: &str| Ok(format!("| {name} |\n"));
        let page = "a\n\n<!-- table: x -->\n\n| old |\n\n<!-- end of the table -->\n\nb\n";
        let renewed = "a\n\n<!-- table: x -->\n\n| x |\n\n<!-- end of the table -->\n\nb\n";
        assert_eq!(with_tables(page, table).unwrap(), renewed);
        assert_eq!(with_tables(renewed, table).unwrap(), renewed);
        assert!(with_tables("<!-- table: x -->\n| old |\n", table).is_err());
        assert!(table_of("nosuch").is_err());
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
