//! Tables of the book whose cells are figures of rows, although no name of a row stands in them. A comment in front of the table says which:
//!
//! ```text
//! <!-- rows: tiny large - | columns: idl.*.rt - idl.c.bare.*.rt:user+kernel -->
//! ```
//!
//! Each line of the table has a word behind `rows`, each column but the first one behind `columns`; a `-` stands where there are no figures. The
//! star of one word is replaced by the other word, which makes the name of a row; behind a colon are the figures that are added up,
//! instructions if there is none. The first number of the cell is that figure. Text around it stays, and so does a cell without a number, if there is no
//! such row.

use super::page::grouped;
use crate::{Error, Result};

/// Beginning of the comment, middle between its halves, and end.
const BEGIN: &str = "<!-- rows: ";
const MIDDLE: &str = " | columns: ";
const END: &str = " -->";

/// Word for a line or a column without figures.
const NOTHING: &str = "-";

/// A figure of a row, by the names of both.
type Find<'a> = &'a dyn Fn(&str, &str) -> Option<u64>;

/// Words of a comment: for each line of the table, and for each column.
struct Named<'a> {
    rows: Vec<&'a str>,
    columns: Vec<&'a str>,
}

/// A page with today's figures in such tables.
pub(super) fn with_figures(page: &str, find: Find) -> Result<String> {
    let mut out = String::new();
    let mut named: Option<Named> = None;
    let mut table: Vec<&str> = Vec::new();
    // A line more, so that a table at the end of the page ends, too.
    for line in page.lines().chain([""]) {
        if line.starts_with('|') && named.is_some() {
            table.push(line);
            continue;
        }
        if !table.is_empty()
            && let Some(named) = named.take()
        {
            out += &renewed(&named, &table, find)?;
            table.clear();
        }
        if let Some(found) = read_comment(line)? {
            named = Some(found);
        } else if named.is_some() && !line.is_empty() {
            return Err(Error::new(format!("a table has to follow the comment, and not: {line}")));
        }
        out += line;
        out.push('\n');
    }
    out.pop();
    Ok(out)
}

/// Whether a line is such a comment.
pub fn is_comment(line: &str) -> bool {
    line.starts_with(BEGIN)
}

fn read_comment(line: &str) -> Result<Option<Named<'_>>> {
    let Some(text) = line.strip_prefix(BEGIN) else { return Ok(None) };
    let halves = text.strip_suffix(END).and_then(|text| text.split_once(MIDDLE));
    let (rows, columns) = halves.ok_or_else(|| Error::new(format!("no comment for a table: {line}")))?;
    let words = |text| str::split_whitespace(text).collect();
    Ok(Some(Named { rows: words(rows), columns: words(columns) }))
}

/// A table with today's figures; it has a heading and a line of dashes.
fn renewed(named: &Named, table: &[&str], find: Find) -> Result<String> {
    let [heading, dashes, lines @ ..] = table else {
        return Err(Error::new(format!("a table without lines: {table:?}")));
    };
    if lines.len() != named.rows.len() {
        let (lines, rows) = (lines.len(), named.rows.len());
        return Err(Error::new(format!("{heading}: {lines} lines, and the comment has {rows} rows")));
    }
    let mut out = format!("{heading}\n{dashes}\n");
    for (line, row) in lines.iter().zip(&named.rows) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        if cells.len() != named.columns.len() + 1 {
            return Err(Error::new(format!("{line}: the comment has {} columns", named.columns.len())));
        }
        out += &format!("|{}|", cells[0]);
        for (cell, column) in cells[1..].iter().zip(&named.columns) {
            out += &format!("{}|", renewed_cell(cell, row, column, find)?);
        }
        out.push('\n');
    }
    Ok(out)
}

fn renewed_cell(cell: &str, row: &str, column: &str, find: Find) -> Result<String> {
    if row == NOTHING || column == NOTHING {
        return Ok(cell.to_string());
    }
    let (column, figures) = column.split_once(':').unwrap_or((column, "insns"));
    let name = if column.contains('*') { column.replace('*', row) } else { row.replace('*', column) };
    let figure = figures.split('+').map(|figure| find(&name, figure)).sum::<Option<u64>>();
    let begin = cell.find(|c: char| c.is_ascii_digit());
    match (begin, figure) {
        (None, None) => Ok(cell.to_string()),
        (Some(begin), Some(figure)) => {
            let behind = &cell[begin..];
            let len = behind.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(behind.len());
            Ok(format!("{}{}{}", &cell[..begin], grouped(figure), &behind[len..]))
        }
        (_, figure) => {
            Err(Error::new(format!("the cell {cell:?} and {name}, whose figure {figures} is {figure:?}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows a.x with 1,234 instructions, of which 4 are the user's, and b.x with 7 and 3.
    fn find(name: &str, figure: &str) -> Option<u64> {
        match (name, figure) {
            ("a.x", "insns") => Some(1234),
            ("a.x", "user") => Some(4),
            ("b.x", "insns") => Some(7),
            ("b.x", "user") => Some(3),
            _ => None,
        }
    }

    fn renew(comment: &str, lines: &str) -> Result<String> {
        let page =
            |lines: &str| format!("text\n\n{comment}\n\n| a | b | c |\n|---|--:|--:|\n{lines}\n\nend 5\n");
        let renewed = with_figures(&page(lines), &find)?;
        let [head, tail] = [page(""), "\n\nend 5\n".to_string()];
        let table = renewed.strip_prefix(head.strip_suffix(&tail).unwrap()).unwrap();
        Ok(table.strip_suffix(&tail).unwrap().to_string())
    }

    #[test]
    fn cells_get_their_figures() {
        let both = "<!-- rows: a b | columns: *.x *.x:user -->";
        assert_eq!(renew(both, "| 9 | 9 | 9 |\n| | 9 | 9 |").unwrap(), "| 9 | 1,234 | 4 |\n| | 7 | 3 |");
        assert_eq!(
            renew(both, "| 9 | **9,999** (a) | 1 |\n| | 9; 2 | 9 |").unwrap(),
            "| 9 | **1,234** (a) | 4 |\n| | 7; 2 | 3 |"
        );
        let transposed = "<!-- rows: *.x - | columns: a b:insns+user -->";
        assert_eq!(renew(transposed, "| | 9 | 9 |\n| | 9 | |").unwrap(), "| | 1,234 | 10 |\n| | 9 | |");
        let partly = "<!-- rows: a c | columns: - *.x -->";
        assert_eq!(renew(partly, "| | 9 | 9 |\n| | 9 | |").unwrap(), "| | 9 | 1,234 |\n| | 9 | |");
    }

    #[test]
    fn tables_and_comments_fit() {
        let both = "<!-- rows: a b | columns: *.x *.x:user -->";
        for (comment, lines) in [
            (both, "| | 9 | 9 |"),
            (both, "| | 9 |\n| | 9 |"),
            (both, "| | 9 | |\n| | 9 | 9 |"),
            ("<!-- rows: a c | columns: *.x *.x -->", "| | 9 | 9 |\n| | 9 | 9 |"),
            ("<!-- rows: a b -->", "| | 9 | 9 |\n| | 9 | 9 |"),
            ("<!-- rows: a b | columns: *.x *.x -->\ntext", "| | 9 | 9 |\n| | 9 | 9 |"),
        ] {
            assert!(renew(comment, lines).is_err(), "{comment} {lines}");
        }
    }

    #[test]
    fn pages_without_comments_stay() {
        let page = "text\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";
        assert_eq!(with_figures(page, &find).unwrap(), page);
    }
}
