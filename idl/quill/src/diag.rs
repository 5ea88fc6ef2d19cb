//! Diagnostics: what is wrong, where, what else is involved, and what may have been meant.
//!
//! Stages report into [`Diags`]; [`render`] prints in the manner of rustc. Codes and their long explanations
//! are in [`crate::codes`]. A stage that met an error leaves a marker (an error type, a poisoned name) behind, so
//! that later stages stay silent about the consequences: one mistake, one message.

use std::collections::HashSet;
use std::fmt::Write;

use crate::codes::Code;
use crate::limits;
use crate::source::{SourceMap, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The input is at fault; nothing is generated.
    Error,
    /// Accepted, but perhaps not what was meant.
    Warning,
}

/// One message.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The code, for `quill explain`.
    pub code: Code,
    /// The message, one line.
    pub message: String,
    /// The place.
    pub span: Span,
    /// A few words beside the carets.
    pub label: String,
    /// Other places involved.
    pub notes: Vec<(Span, String)>,
    /// Suggestions, without a place.
    pub helps: Vec<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            span,
            label: String::new(),
            notes: Vec::new(),
            helps: Vec::new(),
        }
    }

    /// A warning.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// Words beside the carets.
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.label = text.into();
        self
    }

    /// Another place that is involved.
    pub fn note(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.notes.push((span, text.into()));
        self
    }

    /// A suggestion.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.helps.push(text.into());
        self
    }

    /// The suggestion to write `near` instead, when there is one.
    pub fn maybe(self, near: Option<&str>) -> Diagnostic {
        match near {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self,
        }
    }
}

/// The messages of a run, in the order in which they were found.
#[derive(Debug, Default)]
pub struct Diags {
    list: Vec<Diagnostic>,
    seen: HashSet<(Code, Span)>,
    errors: usize,
    warnings: usize,
    fatal: bool,
    /// The place of the instance of a template module that is being checked.
    pub site: Option<Span>,
}

impl Diags {
    /// Adds a message, unless the same was said about the same place.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Warning && self.warnings >= limits::WARNINGS_MAX {
            self.warnings += 1;
            return;
        }
        if !self.seen.insert((diagnostic.code, diagnostic.span)) {
            return;
        }
        let (count, max) = match diagnostic.severity {
            Severity::Error => (&mut self.errors, limits::ERRORS_MAX),
            Severity::Warning => (&mut self.warnings, limits::WARNINGS_MAX),
        };
        *count += 1;
        if *count <= max {
            let diagnostic = match self.site {
                Some(site) => diagnostic.note(site, "in the instance that is made here"),
                None => diagnostic,
            };
            self.list.push(diagnostic);
        }
    }

    /// Adds an error after which nothing that follows would be worth saying.
    pub fn fatal(&mut self, diagnostic: Diagnostic) {
        self.push(diagnostic);
        self.fatal = true;
    }

    /// Whether the run should stop: something fatal, or more errors than anyone reads.
    pub fn stop(&self) -> bool {
        self.fatal || self.errors > limits::ERRORS_MAX
    }

    /// Whether another message would be shown; if not, a suggestion for it need not be searched.
    pub fn full(&self) -> bool {
        self.stop() || self.warnings >= limits::WARNINGS_MAX
    }

    /// Errors so far.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Warnings so far.
    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// The messages.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }
}

/// All messages as text, with a last line that counts them.
pub fn render(diags: &Diags, map: &SourceMap) -> String {
    let mut out = String::new();
    for diagnostic in &diags.list {
        render_one(&mut out, diagnostic, map);
        out.push('\n');
    }
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    match (diags.errors, diags.warnings) {
        (0, 0) => {}
        (0, w) => writeln!(out, "{}", plural(w, "warning")).unwrap(),
        (e, 0) => writeln!(out, "{}", plural(e, "error")).unwrap(),
        (e, w) => writeln!(out, "{}, {}", plural(e, "error"), plural(w, "warning")).unwrap(),
    }
    out
}

fn render_one(out: &mut String, d: &Diagnostic, map: &SourceMap) {
    let kind = if d.severity == Severity::Error { "error" } else { "warning" };
    writeln!(out, "{kind}[{}]: {}", d.code.name(), d.message).unwrap();
    let site = map.call_site(d.span);
    snippet(out, site, &d.label, map);
    if d.span.ctx != 0 {
        let name = map.expansion(d.span).map_or("", |e| &e.name);
        writeln!(out, "note: it comes from the macro `{name}`").unwrap();
        snippet(out, Span { ctx: 0, ..d.span }, "", map);
    }
    for (span, text) in &d.notes {
        writeln!(out, "note: {text}").unwrap();
        snippet(out, map.call_site(*span), "", map);
    }
    for help in &d.helps {
        writeln!(out, "help: {help}").unwrap();
    }
    let mut from = map.file_index(site).and_then(|i| map.file(i).included_from);
    let mut shown = 0;
    while let Some(span) = from {
        let Some(place) = map.place(span) else { break };
        if shown < 3 {
            writeln!(out, "note: included from {}:{}", place.file.path.display(), place.line).unwrap();
        }
        shown += 1;
        from = place.file.included_from;
    }
    if shown > 3 {
        writeln!(out, "note: and {} more", shown - 3).unwrap();
    }
}

/// Characters of a source line that a snippet shows; longer ones are cut around the carets.
const LINE_CHARS_MAX: usize = 140;

fn snippet(out: &mut String, span: Span, label: &str, map: &SourceMap) {
    let Some(place) = map.place(span) else { return };
    let line = place.file.line(place.line - 1);
    let bytes = ((span.hi - span.lo) as usize).min(line.len() - place.offset);
    let carets = line.get(place.offset..place.offset + bytes).map_or(1, |s| s.chars().count()).max(1);
    let cut = if place.column + carets > LINE_CHARS_MAX { place.column.saturating_sub(60) } else { 0 };
    let carets = carets.min(LINE_CHARS_MAX);
    let clean = |c: char| if c == '\t' || c.is_control() { ' ' } else { c };
    let shown: String = line.chars().skip(cut).take(LINE_CHARS_MAX + 20).map(clean).collect();
    let number = place.line.to_string();
    let gutter = " ".repeat(number.len());
    writeln!(out, "{gutter}--> {}:{}:{}", place.file.path.display(), place.line, place.column).unwrap();
    writeln!(out, "{gutter} |").unwrap();
    writeln!(out, "{number} | {}", shown.trim_end()).unwrap();
    let space = " ".repeat(place.column - 1 - cut.min(place.column - 1));
    let text = format!("{gutter} | {space}{} {label}", "^".repeat(carets));
    writeln!(out, "{}", text.trim_end()).unwrap();
}

/// The candidate nearest to `name`, when it is near enough to be a slip of the finger.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match name.chars().count() {
        0..=2 => 1,
        3..=5 => 2,
        _ => 3,
    }
    .min(name.chars().count().saturating_sub(1));
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates.into_iter().take(NEAREST_CANDIDATES_MAX) {
        if candidate == name || candidate.len().abs_diff(name.len()) > allowed {
            continue;
        }
        let distance =
            if candidate.eq_ignore_ascii_case(name) { 0 } else { distance(name, candidate, allowed) };
        if distance <= allowed && best.is_none_or(|(d, c)| (distance, candidate) < (d, c)) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, c)| c)
}

/// Names compared for one suggestion; there are at most [`limits::ERRORS_MAX`] suggestions a run.
const NEAREST_CANDIDATES_MAX: usize = 20_000;

/// Edits (insert, delete, replace, swap neighbours) between two words; more than `max` is `max + 1`.
fn distance(a: &str, b: &str, max: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut cost = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                cost = cost.min(before[j - 2] + 1);
            }
            row.push(cost);
        }
        if row.iter().min().is_some_and(|&m| m > max) {
            return max + 1;
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions() {
        let words = ["string", "struct", "sequence", "short"];
        assert_eq!(nearest("strng", words), Some("string"));
        assert_eq!(nearest("shrot", words), Some("short"));
        assert_eq!(nearest("Struct", words), Some("struct"));
        assert_eq!(nearest("banana", words), None);
        assert_eq!(nearest("x", ["y"]), None);
    }
}
