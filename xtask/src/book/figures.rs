//! Figures that stand beside the name of a row, against the committed tables.

use super::{pages, text};
use crate::bench::{self, Figures as Row};
use std::collections::HashMap;

/// A figure of today that a page gives for a row.
#[derive(Debug, PartialEq)]
struct Claim {
    line: usize,
    row: String,
    /// Name of the figure in the row.
    name: &'static str,
    figure: u64,
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    /// Text in backquotes that is a row's name.
    Row(String),
    Number(u64),
    Word(String),
    Mark(char),
}

/// A paragraph, an entry of a list, or a line of a table with the table's heading.
struct Unit {
    line: usize,
    text: String,
    heading: Option<String>,
}

/// Words behind a number that make it something else than a count of instructions.
const UNITS: [&str; 15] = [
    "KiB", "MiB", "GiB", "bytes", "byte", "pages", "page", "words", "tasks", "threads", "lines", "times",
    "partners", "faults", "µs",
];

/// Headings of columns that are compared with a figure of that name.
const COLUMNS: [(&str, &str); 6] = [
    ("instructions", "insns"),
    ("user", "user"),
    ("kernel", "kernel"),
    ("in the kernel", "kernel"),
    ("linux", "linux"),
    ("", "insns"),
];

fn rows() -> HashMap<String, Row> {
    bench::committed_figures().unwrap()
}

/// Parts a page. Lines of a table are units of their own; fenced blocks are none.
fn units(page: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let (mut fenced, mut open, mut heading) = (false, false, None);
    for (line, text) in page.lines().enumerate().map(|(index, text)| (index + 1, text.trim())) {
        if text.starts_with("```") {
            fenced = !fenced;
        }
        let in_table = text.starts_with('|') && !fenced;
        if fenced || text.is_empty() || text.starts_with("```") {
            (open, heading) = (false, None);
        } else if in_table {
            open = false;
            let heading = heading.get_or_insert_with(|| text.to_string()).clone();
            units.push(Unit { line, text: text.into(), heading: Some(heading) });
        } else if open && !text.starts_with("* ") && !text.starts_with("- ") {
            let last = units.last_mut().unwrap();
            last.text = format!("{} {text}", last.text);
        } else {
            (open, heading) = (true, None);
            units.push(Unit { line, text: text.into(), heading: None });
        }
    }
    units
}

fn pieces(text: &str, rows: &HashMap<String, Row>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 1 {
            let is_row = rows.contains_key(part);
            pieces.push(if is_row { Piece::Row(part.into()) } else { Piece::Word(part.into()) });
            continue;
        }
        for word in part.split_whitespace() {
            let core = word.trim_matches(|c: char| !c.is_alphanumeric());
            let (before, behind) = if core.is_empty() { (word, "") } else { word.split_once(core).unwrap() };
            pieces.extend(before.chars().map(Piece::Mark));
            let digits = core.replace(',', "");
            match digits.parse() {
                _ if core.is_empty() => {}
                Ok(number) if digits.bytes().all(|c| c.is_ascii_digit()) => {
                    pieces.push(Piece::Number(number))
                }
                _ => pieces.push(Piece::Word(core.into())),
            }
            pieces.extend(behind.chars().map(Piece::Mark));
        }
    }
    pieces
}

/// Whether the number at this place says when it was true: "then 12", or "then 12 and 13".
fn is_of_then(pieces: &[Piece], at: usize) -> bool {
    let links = ["and", "instead", "of", "to", "instructions"];
    let before = pieces[..at].iter().rev();
    let mut before = before.skip_while(|piece| match piece {
        Piece::Number(_) | Piece::Mark(',') => true,
        Piece::Word(word) => links.contains(&word.as_str()),
        _ => false,
    });
    before.next() == Some(&Piece::Word("then".into()))
}

/// Whether a count of instructions is here.
fn count(pieces: &[Piece], at: usize) -> Option<u64> {
    let Piece::Number(number) = pieces[at] else { return None };
    let unit = matches!(pieces.get(at + 1), Some(Piece::Word(word)) if UNITS.contains(&word.as_str()));
    (!unit).then_some(number)
}

/// Whether a mark ends a sentence, or one thought of it.
fn parts_sentences(piece: &Piece) -> bool {
    matches!(piece, Piece::Mark(';' | '.' | '?'))
}

/// Claims of a paragraph or of a cell: "`row` 12", "`row`, said in words: 12", "12 (`row`)", "12 and 13 (`row`, `row`)".
/// The second value says which names of rows got none.
fn claims_of_prose(pieces: &[Piece], line: usize) -> (Vec<Claim>, Vec<String>) {
    let (mut claims, mut without) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < pieces.len() {
        let Piece::Row(_) = pieces[at] else {
            at += 1;
            continue;
        };
        // Names that stand together.
        let link = |piece: &Piece| *piece == Piece::Mark(',') || *piece == Piece::Word("and".into());
        let mut end = at + 1;
        while let Some(more) = pieces[end..].iter().position(|piece| !link(piece))
            && matches!(pieces[end + more], Piece::Row(_))
        {
            end += more + 1;
        }
        let names: Vec<&String> = pieces[at..end]
            .iter()
            .filter_map(|piece| if let Piece::Row(row) = piece { Some(row) } else { None })
            .collect();
        // "(`row`)", and also "(`./tern bench ipc`, row `row`)".
        let words = |piece: &&Piece| matches!(piece, Piece::Word(_) | Piece::Mark(','));
        let before_names = at - pieces[..at].iter().rev().take_while(words).count();
        let in_brackets = before_names > 0 && pieces[before_names - 1] == Piece::Mark('(');
        let found = behind(pieces, end, names.len(), in_brackets)
            .or_else(|| in_brackets.then(|| before(pieces, before_names - 1, names.len())).flatten());
        match found {
            Some(found) => {
                claims.extend(names.iter().zip(found).filter(|(_, place)| !is_of_then(pieces, *place)).map(
                    |(row, place)| Claim {
                        line,
                        row: row.to_string(),
                        name: "insns",
                        figure: count(pieces, place).unwrap(),
                    },
                ))
            }
            None => without.extend(names.into_iter().cloned()),
        }
        at = end;
    }
    (claims, without)
}

/// Places of as many counts behind the names, in the sentence and before further names.
fn behind(pieces: &[Piece], from: usize, wanted: usize, in_brackets: bool) -> Option<Vec<usize>> {
    let ends = |piece: &Piece| {
        parts_sentences(piece)
            || matches!(piece, Piece::Row(_))
            || in_brackets && matches!(piece, Piece::Mark(')'))
            || !in_brackets && matches!(piece, Piece::Mark('('))
    };
    // "`row` (12)".
    if let [Piece::Mark('('), Piece::Number(_), ..] = pieces[from..] {
        return (wanted == 1).then_some(vec![from + 1]);
    }
    let end = pieces[from..].iter().position(ends).map_or(pieces.len(), |more| from + more);
    // "12 instead of 13 (`row`)": what is in front of a further bracket belongs to the names in it.
    let further = match pieces.get(end) {
        Some(Piece::Mark('(')) => {
            let inside = pieces[end..].iter().take_while(|piece| **piece != Piece::Mark(')'));
            inside.filter(|piece| matches!(piece, Piece::Row(_))).count()
        }
        _ => 0,
    };
    let places: Vec<usize> = (from..end).filter(|&at| count(pieces, at).is_some()).collect();
    (places.len() >= wanted + further).then(|| places[..wanted].to_vec())
}

/// Places of the last counts in front of a bracket.
fn before(pieces: &[Piece], bracket: usize, wanted: usize) -> Option<Vec<usize>> {
    let start = pieces[..bracket].iter().rposition(parts_sentences).map_or(0, |at| at + 1);
    let mut places: Vec<usize> =
        (start..bracket).rev().filter(|&at| count(pieces, at).is_some()).take(wanted).collect();
    places.reverse();
    (places.len() == wanted).then_some(places)
}

/// Claims of a line of a table: of each cell, and of the cells behind one that has names and no figure.
fn claims_of_table(unit: &Unit, heading: &str, rows: &HashMap<String, Row>) -> (Vec<Claim>, Vec<String>) {
    let cells: Vec<&str> = unit.text.trim_matches('|').split('|').collect();
    let headings: Vec<String> =
        heading.trim_matches('|').split('|').map(|cell| cell.trim().to_lowercase()).collect();
    let (mut claims, mut without) = (Vec::new(), Vec::new());
    for (index, cell) in cells.iter().enumerate() {
        let (found, names) = claims_of_prose(&pieces(cell, rows), unit.line);
        claims.extend(found);
        let several = names.len() > 1;
        let mut left = names.iter();
        let mut name = left.next();
        for (cell, heading) in cells.iter().zip(&headings).skip(index + 1) {
            let Some(row) = name else { break };
            let cell = pieces(cell, rows);
            let Some(place) = (0..cell.len()).find(|&at| matches!(cell[at], Piece::Number(_))) else {
                continue;
            };
            let column = COLUMNS.iter().find(|(words, _)| heading == words);
            if let (Some((_, figure)), Some(count)) = (column, count(&cell, place))
                && !is_of_then(&cell, place)
            {
                claims.push(Claim { line: unit.line, row: row.clone(), name: figure, figure: count });
            } else if column.is_none() && !OTHER_COLUMNS.iter().any(|word| heading.contains(word)) {
                without.push(format!("{row} under the heading {heading:?}"));
            }
            if several {
                name = left.next();
            }
        }
    }
    (claims, without)
}

/// Words in headings of columns that are not compared: figures of another time, goals and their reasons, and what the columns count that are
/// no instructions.
const OTHER_COLUMNS: [&str; 10] =
    ["then", "goal", "reason", "lines", "pages", "code", "data", "address", "switches", "part"];

/// Claims of a page, and what stands where none is understood.
fn claims(page: &str, rows: &HashMap<String, Row>) -> (Vec<Claim>, Vec<String>) {
    let (mut claims, mut unclear) = (Vec::new(), Vec::new());
    for unit in units(page) {
        let (found, without) = match &unit.heading {
            Some(heading) => claims_of_table(&unit, heading, rows),
            None => (claims_of_prose(&pieces(&unit.text, rows), unit.line).0, Vec::new()),
        };
        claims.extend(found);
        unclear.extend(without.into_iter().map(|what| format!("line {}: {what}", unit.line)));
    }
    (claims, unclear)
}

#[test]
fn the_book_quotes_the_tables() {
    let rows = rows();
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for page in pages() {
        let (claims, unclear) = claims(&text(&page), &rows);
        compared += claims.len();
        wrong.extend(unclear.into_iter().map(|what| format!("{page}, {what}: which figure is it?")));
        wrong.extend(claims.into_iter().filter_map(|claim| {
            let measured = *rows[&claim.row].get(claim.name)?;
            let Claim { line, row, name, figure } = claim;
            (measured != figure)
                .then(|| format!("{page}, line {line}: {row} costs {figure} {name}, says the page; {measured}, says the table"))
        }));
    }
    assert!(wrong.is_empty(), "docs/style.md says how figures are written:\n{}", wrong.join("\n"));
    assert!(compared > 30, "only {compared} figures were found in the book");
}

/// Tables of numbers that are no figures of rows: page, and beginning of the heading.
const OTHER_TABLES: [(&str, &str); 13] = [
    ("docs/full-test.md", "| calls | seed |"),
    ("docs/full-test.md", "| way or kind |"),
    ("docs/guide/address-space-switch.md", "| pages | Pentium"),
    ("docs/guide/idl-stubs.md", "| limit | client in C |"),
    ("docs/guide/idl-tern.md", "| client | | server in Rust |"),
    ("docs/guide/idl-tern.md", "| | Cap'n Proto | gRPC |"),
    ("docs/guide/network.md", "| | |"),
    ("docs/guide/web-server.md", "| request | answer |"),
    ("docs/ipc-cost.md", "| action | 486, 1993 (instructions) |"),
    ("docs/ipc-cost.md", "| # | instruction | minimum has it?"),
    ("docs/ipc-cost.md", "| | instructions of a round trip |"),
    ("docs/ipc-cost.md", "| variant | instructions | what it shows |"),
    ("docs/start-here.md", "| change | files |"),
];

/// Folders whose pages are of another time, or give numbers of other things.
const OTHER_FOLDERS: [&str; 2] = ["docs/decisions/", "docs/spec/"];

/// Headings of tables with columns of numbers, in pages about today, of whose figures nobody says which rows they are.
fn tables_without_rows(page: &str, rows: &HashMap<String, Row>) -> Vec<String> {
    let lines: Vec<&str> = page.lines().collect();
    let mut without = Vec::new();
    for at in 1..lines.len() {
        let [heading, dashes] = [lines[at - 1], lines[at]];
        if !heading.starts_with('|') || !dashes.starts_with("|--") || !dashes.contains("--:") {
            continue;
        }
        let before = lines[..at - 1].iter().rev().find(|line| !line.is_empty()).copied().unwrap_or_default();
        let has_comment = bench::is_comment(before) || before.starts_with("<!-- table: ");
        let table = lines[at + 1..].iter().take_while(|line| line.starts_with('|'));
        let names_rows = |line: &&str| pieces(line, rows).iter().any(|piece| matches!(piece, Piece::Row(_)));
        if !has_comment && !heading.contains("then") && !table.clone().any(names_rows) {
            without.push(heading.to_string());
        }
    }
    without
}

#[test]
fn tables_of_numbers_say_which_rows_they_show() {
    let rows = rows();
    let mut wrong = Vec::new();
    let mut others: Vec<_> = OTHER_TABLES.to_vec();
    let is_of_today =
        |page: &&String| page.starts_with("docs/") && !OTHER_FOLDERS.iter().any(|it| page.starts_with(it));
    for page in pages().iter().filter(is_of_today) {
        for heading in tables_without_rows(&text(page), &rows) {
            match others.iter().position(|(name, begin)| name == page && heading.starts_with(begin)) {
                Some(at) => drop(others.swap_remove(at)),
                None => wrong.push(format!("{page}: {heading}")),
            }
        }
    }
    assert!(wrong.is_empty(), "no rows are named in (docs/style.md):\n{}", wrong.join("\n"));
    assert!(others.is_empty(), "there are no such tables: {others:?}");
}

#[test]
fn pages_with_such_comments_are_renewed() {
    let has_comment = |page: &String| text(page).lines().any(bench::is_comment);
    let with: Vec<String> = pages().into_iter().filter(has_comment).collect();
    let mut renewed = bench::PAGES_WITH_CELLS;
    renewed.sort();
    assert_eq!(with, renewed, "PAGES_WITH_CELLS in xtask/src/bench/page.rs");
}

/// Pages on which no count of instructions stands without its row: those that strangers read first.
const WITH_ROWS: [&str; 6] = [
    "README.md",
    "docs/architecture.md",
    "docs/start-here.md",
    "docs/techniques.md",
    "bench/README.md",
    "kernel/README.md",
];

/// Places of counts of instructions that say so themselves: "12 instructions", "1 of 12", "a fast path of 12".
fn counts_in_words(pieces: &[Piece]) -> Vec<usize> {
    let is_word =
        |at: usize, wanted: &str| matches!(pieces.get(at), Some(Piece::Word(word)) if word == wanted);
    let says_so = |&at: &usize| {
        let of = at >= 2 && is_word(at - 1, "of");
        let of_how_many = of && (is_word(at - 2, "path") || matches!(pieces[at - 2], Piece::Number(_)));
        count(pieces, at).is_some() && (is_word(at + 1, "instructions") || of_how_many)
    };
    (0..pieces.len()).filter(says_so).collect()
}

/// Counts of a page that say that they are such, and that no name of a row in their paragraph or line vouches for.
fn counts_without_row(page: &str, rows: &HashMap<String, Row>) -> Vec<(usize, u64)> {
    let (claims, _) = claims(page, rows);
    let mut without = Vec::new();
    for unit in units(page) {
        let pieces = pieces(&unit.text, rows);
        let places = counts_in_words(&pieces).into_iter().filter(|place| !is_of_then(&pieces, *place));
        let figures = places.map(|place| count(&pieces, place).unwrap());
        let is_claimed = |figure: &u64| claims.iter().any(|it| it.line == unit.line && it.figure == *figure);
        without.extend(figures.filter(|figure| !is_claimed(figure)).map(|figure| (unit.line, figure)));
    }
    without
}

#[test]
fn pages_for_strangers_name_the_rows_of_their_figures() {
    let rows = rows();
    for page in WITH_ROWS {
        let without = counts_without_row(&text(page), &rows);
        assert!(without.is_empty(), "{page}: no row is beside (line, figure) {without:?}");
    }
}

#[test]
fn counts_without_a_row_are_found() {
    let rows = HashMap::from([("a.b".to_string(), Row::from([("insns".into(), 12)]))]);
    let page = "A fast path of 13.\n\n28 instructions\n\n| 4 of 14 are |\n\n12 instructions (`a.b`), then 15 instructions\n\n\
        2 of 12 (`a.b`), 3 of 9 pages";
    assert_eq!(counts_without_row(page, &rows), [(1, 13), (3, 28), (5, 14)]);
}

#[test]
fn rows_that_pages_name_exist() {
    let rows = rows();
    let mut wrong = Vec::new();
    for page in pages() {
        for unit in units(&text(&page)) {
            for name in named_rows(&unit.text) {
                let (first, last) = name.split_once('*').unwrap_or((&name, ""));
                let fits = |row: &String| match name.contains('*') {
                    true => row.starts_with(first) && row.ends_with(last),
                    false => *row == name || name.starts_with('.') && row.ends_with(&name),
                };
                if !rows.keys().any(fits) {
                    wrong.push(format!("{page}, line {}: there is no row {name}", unit.line));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names in backquotes behind the word "row" or "rows".
fn named_rows(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('`').collect();
    let mut names = Vec::new();
    let mut in_list = false;
    for pair in parts.chunks(2) {
        let [between, name] = pair else { break };
        let link = between.trim_matches(|c: char| c.is_whitespace() || c == ',');
        in_list = [" row ", " rows ", "Row ", "Rows "].iter().any(|word| between.ends_with(word))
            || in_list && ["", "and"].contains(&link);
        // "`door.*` of `./tern bench`" names a command, "row `TAG`" a thing of another kind.
        if in_list && name.contains('.') && !name.contains(|c: char| c == '/' || c == ' ' || c.is_uppercase())
        {
            names.push(name.to_string());
        }
    }
    names
}

#[test]
fn each_form_is_understood() {
    let row = |insns: u64| Row::from([("insns".into(), insns), ("user".into(), 3)]);
    let rows = HashMap::from([("a.b".to_string(), row(12)), ("c.d".to_string(), row(1234))]);
    let found = |page: &str| -> Vec<(String, u64)> {
        claims(page, &rows).0.into_iter().map(|claim| (claim.row, claim.figure)).collect()
    };
    let one = |figure| vec![("a.b".to_string(), figure)];
    for page in [
        "`a.b` 13",
        "`a.b`: 13",
        "`a.b` (13) and 12",
        "65, or rather 13 (`./tern run`, row `a.b`)",
        "13 (`a.b`)",
        "it costs 13 instructions (`a.b`), and 12 otherwise",
        "`a.b`, said in words: 13 instructions",
        "a call of 4 KiB is `a.b`, 4 KiB\nin 13; 12 otherwise",
        "* 13\n  (`a.b`)",
        "| x | y |\n|---|---|\n| 11; 13 for it (`a.b`) | 12 |",
        "| what | instructions |\n|---|---|\n| this (`a.b`) | 13, or 12 |",
    ] {
        assert_eq!(found(page), one(13), "{page}");
    }
    let both = vec![("a.b".to_string(), 13), ("c.d".to_string(), 1235)];
    for page in [
        "`a.b` 13, `c.d` 1,235",
        "`a.b` 13 instead of 1,235 (`c.d`)",
        "13 and 1,235 (`a.b`, `c.d`)",
        "13 for one, 1,235 for two (`a.b`,\n`c.d`)",
        "rows `a.b` and `c.d`: 13 and 1,235",
        "| | lazy, in instructions |\n|---|\n| `a.b` 13 | `c.d` 1,235 |",
    ] {
        assert_eq!(found(page), both, "{page}");
    }
    for page in [
        "`a.b`, then 13",
        "then 13 and 14 (`a.b`)",
        "`a.b` was changed. 13 others were not",
        "```\n`a.b` 13\n```",
        "| what | instructions then |\n|---|---|\n| `a.b` | 13 |",
    ] {
        assert_eq!(found(page), [], "{page}");
    }
    let columns = claims("| | user | before |\n|---|---|---|\n| `a.b` | 4 | 13 |", &rows);
    assert_eq!(columns.0, [Claim { line: 3, row: "a.b".into(), name: "user", figure: 4 }]);
    assert_eq!(columns.1, ["line 3: a.b under the heading \"before\""]);
    assert_eq!(
        named_rows("see rows `a.b`, `x.y` and `.w4`; `no.row`, a row `z.*`"),
        ["a.b", "x.y", ".w4", "z.*"]
    );
}
