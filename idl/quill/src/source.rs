//! Source files and places in them.
//!
//! All files of a run share one number line: a [`Span`] is a range on it, plus the macro expansion that
//! produced the text (if any). [`SourceMap`] turns a span back into file, line and column. The surprising
//! part: a span whose `ctx` is not zero was spelled in a macro's body; [`SourceMap::call_site`] gives the place
//! where the user wrote the macro's name.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::limits;

/// A range of source text, and the macro expansion that put it there (0: none).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte, on the number line that all files share.
    pub lo: u32,
    /// One past the last byte.
    pub hi: u32,
    /// Index of the macro expansion, or 0.
    pub ctx: u32,
}

impl Span {
    /// The smallest span that covers both, or `self` when the two have nothing in common.
    pub fn to(self, other: Span) -> Span {
        if self.ctx != other.ctx || other.hi < self.lo {
            return self;
        }
        Span { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi), ctx: self.ctx }
    }

    /// The empty span just behind this one.
    pub fn after(self) -> Span {
        Span { lo: self.hi, hi: self.hi, ctx: self.ctx }
    }
}

/// One file, with the places where its lines start.
#[derive(Debug)]
pub struct SourceFile {
    /// The path as the user would write it.
    pub path: PathBuf,
    /// The text; invalid UTF-8 was read as Latin-1, the character set of IDL.
    pub text: Rc<str>,
    /// Where the file starts on the shared number line.
    pub start: u32,
    /// The place of the `#include` or `import` that asked for the file.
    pub included_from: Option<Span>,
    lines: Vec<u32>,
}

impl SourceFile {
    /// Text of a line (counted from 0) without its end.
    pub fn line(&self, index: usize) -> &str {
        let lo = self.lines[index] as usize;
        let hi = self.lines.get(index + 1).map_or(self.text.len(), |&l| l as usize);
        self.text[lo..hi].trim_end_matches(['\n', '\r'])
    }
}

/// A use of a macro.
#[derive(Clone, Debug)]
pub struct Expansion {
    /// Where the macro's name was written.
    pub call: Span,
    /// The macro's name.
    pub name: Rc<str>,
    /// Where the macro was defined.
    pub definition: Span,
}

/// File, line and column of a place; lines and columns count from 1, columns in characters.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    /// The file.
    pub file: &'a SourceFile,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Byte offset in the line.
    pub offset: usize,
}

/// All files and macro expansions of a run.
#[derive(Debug)]
pub struct SourceMap {
    files: Vec<SourceFile>,
    expansions: Vec<Expansion>,
    bytes_total: usize,
}

impl Default for SourceMap {
    fn default() -> SourceMap {
        let nothing = Expansion { call: Span::default(), name: "".into(), definition: Span::default() };
        SourceMap { files: Vec::new(), expansions: vec![nothing], bytes_total: 0 }
    }
}

impl SourceMap {
    /// Adds a file; `None` when the run would hold more text than [`limits::SOURCE_BYTES_MAX`].
    pub fn add(&mut self, path: &Path, bytes: &[u8], included_from: Option<Span>) -> Option<usize> {
        if self.bytes_total + bytes.len() > limits::SOURCE_BYTES_MAX {
            return None;
        }
        let text: Rc<str> = decode(bytes).into();
        self.bytes_total += text.len() + 1;
        // Number 0 is kept for `Span::default()`, a place that is nowhere.
        let start = self.files.last().map_or(1, |f| f.start + f.text.len() as u32 + 1);
        let mut lines = vec![0];
        let raw = text.as_bytes();
        for (i, &b) in raw.iter().enumerate() {
            if b == b'\n' || (b == b'\r' && raw.get(i + 1) != Some(&b'\n')) {
                lines.push(i as u32 + 1);
            }
        }
        self.files.push(SourceFile { path: path.into(), text, start, included_from, lines });
        Some(self.files.len() - 1)
    }

    /// A file by the number that [`SourceMap::add`] returned.
    pub fn file(&self, index: usize) -> &SourceFile {
        &self.files[index]
    }

    /// All files, in the order in which they were read.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Notes a use of a macro; the result goes into [`Span::ctx`].
    pub fn expand(&mut self, expansion: Expansion) -> u32 {
        self.expansions.push(expansion);
        self.expansions.len() as u32 - 1
    }

    /// The expansion that a span's text came from.
    pub fn expansion(&self, span: Span) -> Option<&Expansion> {
        if span.ctx == 0 { None } else { self.expansions.get(span.ctx as usize) }
    }

    /// The place where the user wrote what became `span`: the outermost macro call, or the span itself.
    pub fn call_site(&self, mut span: Span) -> Span {
        while let Some(expansion) = self.expansion(span) {
            span = expansion.call;
        }
        span
    }

    /// The file that a span lies in, by number.
    pub fn file_index(&self, span: Span) -> Option<usize> {
        if span.lo == 0 {
            return None;
        }
        self.files.partition_point(|f| f.start <= span.lo).checked_sub(1)
    }

    /// File, line and column of a span's start.
    pub fn place(&self, span: Span) -> Option<Place<'_>> {
        let file = &self.files[self.file_index(span)?];
        let at = ((span.lo - file.start) as usize).min(file.text.len());
        let index = file.lines.partition_point(|&l| l as usize <= at) - 1;
        let offset = (at - file.lines[index] as usize).min(file.line(index).len());
        let before = file.line(index).get(..offset).unwrap_or("");
        Some(Place { file, line: index + 1, column: before.chars().count() + 1, offset })
    }
}

/// Text of a file: UTF-16 when its byte-order mark says so, UTF-8 when valid, Latin-1 otherwise.
fn decode(bytes: &[u8]) -> String {
    let wide = |pair: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|c| pair([c[0], c[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xFF, 0xFE, ..] => wide(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => wide(u16::from_be_bytes),
        _ => {
            let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
            match std::str::from_utf8(bytes) {
                Ok(text) => text.into(),
                Err(_) => bytes.iter().map(|&b| b as char).collect(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], lo: u32, line: usize, column: usize) {
        let mut map = SourceMap::default();
        map.add(Path::new("t"), text, None).unwrap();
        let place = map.place(Span { lo: lo + 1, hi: lo + 2, ctx: 0 }).unwrap();
        assert_eq!((place.line, place.column), (line, column), "{text:?} at {lo}");
    }

    #[test]
    fn places() {
        check(b"ab\ncd", 0, 1, 1);
        check(b"ab\ncd", 4, 2, 2);
        check(b"ab\r\ncd", 4, 2, 1);
        check(b"ab\rcd", 3, 2, 1);
        check("äb\n".as_bytes(), 2, 1, 2);
        check(b"", 0, 1, 1);
        check(b"a\n", 2, 2, 1);
    }

    #[test]
    fn decodes() {
        assert_eq!(decode(b"\xEF\xBB\xBFx"), "x");
        assert_eq!(decode(b"\xFF\xFEa\0b\0"), "ab");
        assert_eq!(decode(b"caf\xE9"), "café");
    }
}
