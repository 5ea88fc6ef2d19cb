//! Bytes to preprocessing tokens, one file at a time.
//!
//! Both dialects share these tokens: C's, with `::` as one token and `..` never part of a number (DCE writes
//! bounds as `0..*`). Comments and spliced lines end here. The lexer never reports: what it cannot make sense of
//! becomes [`Kind::Other`] or [`Kind::Unterminated`], since it also runs over text that conditionals skip.

use std::borrow::Cow;
use std::rc::Rc;

use crate::intern::{Interner, Symbol};
use crate::source::{SourceFile, Span};

/// What sort of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name or keyword.
    Ident,
    /// A number, not yet understood.
    Number,
    /// `'x'`.
    Char,
    /// `L'x'`.
    WideChar,
    /// `"x"`.
    Str,
    /// `L"x"`.
    WideStr,
    /// An operator or bracket.
    Punct,
    /// A character that means nothing here.
    Other,
    /// A string, character or comment that never ends.
    Unterminated,
    /// The end of the file, or of a list of tokens.
    Eof,
}

/// A token: what it is, how it is spelled, where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// What sort.
    pub kind: Kind,
    /// White space stands before it.
    pub space: bool,
    /// It is the first on its line.
    pub line_start: bool,
    /// It names a macro that must not be expanded any more.
    pub painted: bool,
    /// The spelling.
    pub text: Symbol,
    /// The place.
    pub span: Span,
}

const PUNCTUATORS: [&str; 22] = [
    "...", "##", "::", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "->", "++", "--", "+=", "-=", "*=",
    "/=", "|=", "&=", "^=", "..",
];

/// Reads tokens from one file.
#[derive(Clone, Debug)]
pub struct Lexer {
    text: Rc<str>,
    start: u32,
    at: usize,
    line_start: bool,
}

impl Lexer {
    /// A lexer at the start of a file.
    pub fn new(file: &SourceFile) -> Lexer {
        Lexer { text: file.text.clone(), start: file.start, at: 0, line_start: true }
    }

    /// Moves to a byte offset within the file.
    pub fn seek(&mut self, offset: usize) {
        self.at = offset;
        self.line_start = false;
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Length of a backslash and newline at `at`, or 0.
    fn splice(&self, at: usize) -> usize {
        match self.text.as_bytes().get(at..).unwrap_or(&[]) {
            [b'\\', b'\r', b'\n', ..] => 3,
            [b'\\', b'\n' | b'\r', ..] => 2,
            _ => 0,
        }
    }

    fn skip_splices(&mut self) {
        while self.splice(self.at) > 0 {
            self.at += self.splice(self.at);
        }
    }

    /// Skips white space and comments; true when there were any. An endless comment stays for the next token.
    fn skip_space(&mut self) -> (bool, bool) {
        let before = self.at;
        loop {
            self.skip_splices();
            match self.byte(0) {
                b'\n' | b'\r' => {
                    self.line_start = true;
                    self.at += 1;
                }
                // 0x1A is how CP/M and early DOS ended a text.
                b' ' | b'\t' | 0x0B | 0x0C | 0x1A => self.at += 1,
                b'/' if self.byte(1) == b'/' => {
                    while self.at < self.text.len() && !matches!(self.byte(0), b'\n' | b'\r') {
                        self.at += self.splice(self.at).max(1);
                    }
                }
                b'/' if self.byte(1) == b'*' => {
                    let rest = &self.text.as_bytes()[self.at + 2..];
                    match rest.windows(2).position(|w| w == b"*/") {
                        Some(n) => {
                            self.line_start |= rest[..n].contains(&b'\n');
                            self.at += n + 4;
                        }
                        None => return (true, true),
                    }
                }
                0xC2 if self.byte(1) == 0xA0 => self.at += 2,
                _ => return (self.at > before, false),
            }
        }
    }

    fn take_while(&mut self, keep: impl Fn(u8) -> bool) {
        loop {
            self.skip_splices();
            if self.at >= self.text.len() || !keep(self.byte(0)) {
                return;
            }
            self.at += 1;
        }
    }

    /// The next token.
    pub fn next(&mut self, names: &mut Interner) -> Token {
        let (space, endless) = self.skip_space();
        let line_start = std::mem::take(&mut self.line_start);
        let begin = self.at;
        let kind = if endless {
            self.at = self.text.len();
            Kind::Unterminated
        } else if self.at >= self.text.len() {
            self.line_start = true;
            Kind::Eof
        } else {
            self.token()
        };
        let end = if kind == Kind::Unterminated && endless { begin + 2 } else { self.at };
        let raw = &self.text[begin..end];
        let text = if raw.contains('\\') { unsplice(raw) } else { Cow::Borrowed(raw) };
        Token {
            kind,
            space,
            line_start,
            painted: false,
            text: names.intern(&text),
            span: Span { lo: self.start + begin as u32, hi: self.start + end as u32, ctx: 0 },
        }
    }

    fn token(&mut self) -> Kind {
        let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'$';
        match self.byte(0) {
            b'L' if matches!(self.byte(1), b'\'' | b'"') => {
                self.at += 1;
                if self.byte(0) == b'"' {
                    self.quoted(b'"', Kind::WideStr)
                } else {
                    self.quoted(b'\'', Kind::WideChar)
                }
            }
            b'"' => self.quoted(b'"', Kind::Str),
            b'\'' => self.quoted(b'\'', Kind::Char),
            b if b.is_ascii_digit() || (b == b'.' && self.byte(1).is_ascii_digit()) => {
                self.number();
                Kind::Number
            }
            b if word(b) => {
                self.take_while(word);
                Kind::Ident
            }
            b if b.is_ascii_punctuation() && b != b'\\' && b != b'`' => {
                let rest = &self.text[self.at..];
                self.at += PUNCTUATORS.iter().find(|p| rest.starts_with(**p)).map_or(1, |p| p.len());
                Kind::Punct
            }
            _ => {
                let c = self.text[self.at..].chars().next().unwrap_or('\0');
                self.at += c.len_utf8();
                Kind::Other
            }
        }
    }

    fn number(&mut self) {
        let hex = self.byte(0) == b'0' && matches!(self.byte(1), b'x' | b'X');
        loop {
            let before = self.byte(0);
            self.at += 1;
            self.skip_splices();
            match self.byte(0) {
                b'.' if self.byte(1) == b'.' => return,
                b'+' | b'-' if !hex && matches!(before, b'e' | b'E') => {}
                b if b.is_ascii_alphanumeric() || b == b'.' || b == b'_' => {}
                _ => return,
            }
        }
    }

    fn quoted(&mut self, quote: u8, kind: Kind) -> Kind {
        self.at += 1;
        loop {
            self.skip_splices();
            match self.byte(0) {
                b'\n' | b'\r' => return Kind::Unterminated,
                0 if self.at >= self.text.len() => return Kind::Unterminated,
                b'\\' if self.at + 1 < self.text.len() => {
                    self.at += 1;
                    self.at += self.text[self.at..].chars().next().map_or(0, char::len_utf8);
                }
                b => {
                    self.at += 1;
                    if b == quote {
                        return kind;
                    }
                }
            }
        }
    }

    /// Whether the next token would be on another line (or is the end).
    pub fn at_line_end(&mut self) -> bool {
        let saved = self.clone();
        self.skip_space();
        let end = self.line_start || self.at >= self.text.len();
        *self = saved;
        end
    }

    /// The rest of the line from what is no blank, as text, spliced lines joined, and its place. The lexer stands behind it afterwards.
    pub fn rest_of_line(&mut self) -> (String, Span) {
        self.take_while(|byte| matches!(byte, b' ' | b'\t' | 0x0b | 0x0c));
        let begin = self.at;
        while self.at < self.text.len() && !matches!(self.byte(0), b'\n' | b'\r') {
            self.at += self.splice(self.at).max(1);
        }
        self.at = self.at.min(self.text.len());
        let raw = &self.text[begin..self.at];
        let span = Span { lo: self.start + begin as u32, hi: self.start + self.at as u32, ctx: 0 };
        (unsplice(raw).into_owned(), span)
    }
}

fn unsplice(raw: &str) -> Cow<'_, str> {
    if raw.contains("\\\n") || raw.contains("\\\r") {
        Cow::Owned(raw.replace("\\\r\n", "").replace("\\\n", "").replace("\\\r", ""))
    } else {
        Cow::Borrowed(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceMap;
    use std::path::Path;

    fn check(text: &str, expected: &str) {
        let mut map = SourceMap::default();
        let index = map.add(Path::new("t"), text.as_bytes(), None).unwrap();
        let mut names = Interner::default();
        let mut lexer = Lexer::new(map.file(index));
        let mut found = Vec::new();
        loop {
            let token = lexer.next(&mut names);
            if token.kind == Kind::Eof {
                break;
            }
            let mark = if token.line_start { "^" } else { "" };
            found.push(format!("{mark}{:?}:{}", token.kind, names.text(token.text)));
        }
        assert_eq!(found.join(" "), expected, "{text:?}");
    }

    #[test]
    fn tokens() {
        check("a::b c\n1.5e-3", "^Ident:a Punct::: Ident:b Ident:c ^Number:1.5e-3");
        check("[0..*]", "^Punct:[ Number:0 Punct:.. Punct:* Punct:]");
        check("0x1e-3", "^Number:0x1e Punct:- Number:3");
        check(".5d L'x' L\"y\"", "^Number:.5d WideChar:L'x' WideStr:L\"y\"");
        check("/* a\n */ b // c\nd", "^Ident:b ^Ident:d");
        check("a\\\nb", "^Ident:ab");
        check("\"a\\\"b\" 'don", "^Str:\"a\\\"b\" Unterminated:'don");
        check("x /* y", "^Ident:x Unterminated:/*");
        check("é\0", "^Other:é Other:\0");
        check("\"abc\\", "^Unterminated:\"abc\\");
        check("x \u{1a}\n", "^Ident:x");
    }
}
