//! Pages of the book with figures of the committed measurements, so that none is written by hand: whole tables about servers, calls of Linux, memory and page colours, and
//! single [cells] of others.

use super::{cells, committed, figures_of_linux, linux, memory, rows::rows, rows_of, suite_names};
use crate::{Context, Error, Result, colours, paths};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;

/// Pages with whole tables.
const PAGES: [&str; 3] = ["docs/servers-cost.md", "docs/linux-cost.md", "docs/guide/pagers.md"];

/// Pages with tables of which cells are figures.
pub const PAGES_WITH_CELLS: [&str; 8] = [
    "docs/ipc-cost.md",
    "docs/guide/idl-doors.md",
    "docs/guide/idl-stubs.md",
    "docs/guide/idl-tern.md",
    "docs/decisions/0029-l4-servers-are-one-function.md",
    "docs/decisions/0040-c-servers-are-one-function.md",
    "docs/decisions/0043-doors-share-the-messages-of-ipc.md",
    "docs/decisions/0048-identifiers-on-the-fast-path.md",
];

/// Figures of a row by name: `insns`, `user`, `kernel`, …; and `linux`, Linux's instructions for its operation.
pub type Figures = HashMap<String, u64>;

/// The suite of the first table.
const SERVERS: &str = "servers";

/// Line in front of a table, and line behind one.
const BEGIN: [&str; 2] = ["<!-- table: ", " -->"];
const END: &str = "<!-- end of the table -->";

/// Renews the pages.
pub fn renew() -> Result<()> {
    let figures = committed_figures()?;
    for name in PAGES.iter().chain(&PAGES_WITH_CELLS) {
        let path = paths::root().join(name);
        let page = fs::read_to_string(&path).context(|| format!("read {}", path.display()))?;
        let renewed =
            renewed(&page, &figures).map_err(|error| Error::new(format!("{name}: {}", error.message)))?;
        if renewed != page {
            paths::write(&path, renewed.as_bytes())?;
            eprintln!("tern: renewed {}", path.display());
        }
    }
    Ok(())
}

/// A page with the committed figures.
fn renewed(page: &str, figures: &HashMap<String, Figures>) -> Result<String> {
    let find = |row: &str, name: &str| figures.get(row)?.get(name).copied();
    cells::with_figures(&with_tables(page, table_of)?, &find)
}

/// Figures of all committed rows, by their names.
pub fn committed_figures() -> Result<HashMap<String, Figures>> {
    let mut rows: HashMap<String, Figures> = HashMap::new();
    for suite in suite_names()? {
        for row in rows_of(&committed(&suite)?) {
            let figures = row.as_object().into_iter().flatten();
            let figures = figures.filter_map(|(name, value)| Some((name.clone(), value.as_u64()?)));
            if let Some(name) = row["name"].as_str() {
                rows.insert(name.to_string(), figures.collect());
            }
        }
    }
    for (name, figure) in figures_of_linux()? {
        if let Some(row) = rows.get_mut(&name) {
            row.insert("linux".into(), figure);
        }
    }
    Ok(rows)
}

/// A page with other tables.
fn with_tables(page: &str, table_of: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += line;
        out.push('\n');
        let name = line.strip_prefix(BEGIN[0]).and_then(|rest| rest.strip_suffix(BEGIN[1]));
        if let Some(name) = name {
            if !lines.any(|line| line == END) {
                return Err(Error::new(format!("the table {name} has no end")));
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
        linux::SUITE => of_linux(),
        memory::SUITE => Ok(of_memory(&committed(memory::SUITE)?)),
        colours::SUITE => Ok(of_colours(&committed(colours::SUITE)?)),
        _ => Err(Error::new(format!("there is no table {name}"))),
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

/// Costs of calls of Linux, and those on Linux itself.
fn of_linux() -> Result<String> {
    let (measured, peer) = (committed(linux::SUITE)?, linux::peer());
    let mut out = String::from(
        "| what | row | instructions | kernel | switches | lines | Linux | lines | part |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in rows()?.iter().filter(|row| row.suite == linux::SUITE) {
        let named =
            |table: &Value| rows_of(table).iter().find(|found| found["name"] == row.name.as_str()).cloned();
        let (Some(own), Some(other)) = (named(&measured), named(&peer)) else { continue };
        let figure = |of: &Value, name: &str| of[name].as_u64().unwrap_or(0);
        let lines = |of: &Value| grouped(figure(of, "ilines") + figure(of, "dlines"));
        let (cost, cost_of_linux) = (figure(&own, "insns"), figure(&other, "insns"));
        let part = (cost * 100).checked_div(cost_of_linux).unwrap_or(0);
        let (what, name) = (row.note.replace('`', ""), &row.name);
        let [cost, kernel, cost_of_linux] = [cost, figure(&own, "kernel"), cost_of_linux].map(grouped);
        let [own_lines, lines_of_linux] = [&own, &other].map(lines);
        out += &format!(
            "| {what} | `{name}` | {cost} | {kernel} | {} | {own_lines} | {cost_of_linux} | {lines_of_linux} | {part} % |\n",
            figure(&own, "cr3")
        );
    }
    Ok(out)
}

/// Memory of everything, as a table: on a machine without devices, and beside it on one with them.
fn of_memory(table: &Value) -> String {
    let mut out = String::from(
        "| what | pages | kernel pages | threads | with devices: pages | kernel pages | threads |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
    );
    let mut names: Vec<&str> = Vec::new();
    for row in rows_of(table) {
        let name = row["name"].as_str().and_then(|name| name.strip_prefix(memory::PREFIX)).unwrap_or("?");
        let name = name.strip_prefix(memory::DEVICES).unwrap_or(name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let cells = ["", memory::DEVICES].map(|group| {
            let own = format!("{}{group}{name}", memory::PREFIX);
            let row = rows_of(table).iter().find(|row| row["name"] == own.as_str());
            let cell =
                |figure: &str| row.map_or(String::new(), |row| grouped(row[figure].as_u64().unwrap_or(0)));
            memory::FIGURES.map(cell).join(" | ")
        });
        out += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    out
}

/// Misses of a program with coloured pages, and with others.
fn of_colours(table: &Value) -> String {
    let mut out =
        String::from("| processor | pages | lines | coloured | used | worst |\n|---|--:|--:|--:|--:|--:|\n");
    for row in rows_of(table) {
        let name = row["name"].as_str().and_then(|name| name.strip_prefix(colours::PREFIX)).unwrap_or("?");
        let (processor, pages) = name.rsplit_once('.').unwrap_or((name, "0"));
        let lines = pages.parse::<u64>().unwrap_or(0) * colours::LINES;
        let cells = ["coloured", "used", "worst"].map(|name| grouped(colours::figure(row, name)));
        out += &format!("| {processor} | {pages} | {} | {} |\n", grouped(lines), cells.join(" | "));
    }
    out
}

/// A number with a comma in front of each three digits.
pub(super) fn grouped(number: u64) -> String {
    match number {
        ..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_have_the_committed_tables() {
        let mut all = String::new();
        let figures = committed_figures().unwrap();
        for name in PAGES.iter().chain(&PAGES_WITH_CELLS) {
            let page = fs::read_to_string(paths::root().join(name)).unwrap();
            let renewed =
                renewed(&page, &figures).unwrap_or_else(|error| panic!("{name}: {}", error.message));
            let stale = renewed.lines().zip(page.lines()).find(|(new, old)| new != old);
            assert!(renewed == page, "{name} is renewed by ./tern bench SUITE --bless: {stale:?}");
            all += &page;
        }
        for name in [SERVERS, linux::SUITE, memory::SUITE, colours::SUITE] {
            assert_eq!(all.matches(&format!("{}{name}{}", BEGIN[0], BEGIN[1])).count(), 1, "table {name}");
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
