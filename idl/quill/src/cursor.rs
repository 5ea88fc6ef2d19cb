//! Place in a list of tokens, expectations, and recovery after an error, as both parsers have them.
//!
//! A parse function returns [`Parse`]; its error says that a message has been given. The caller that owns a list of
//! declarations then calls [`Cursor::recover`] and goes on with the next one. Names in skipped text are *poisoned*:
//! whoever fails to resolve one later stays silent, since its declaration may be what was skipped.

use std::collections::HashSet;

use crate::codes::Code;
use crate::diag::{Diagnostic, nearest};
use crate::intern::Symbol;
use crate::lex::{Kind, Token};
use crate::limits;
use crate::session::Session;
use crate::source::Span;

/// A message has been given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported;

/// The result of a parse function.
pub type Parse<T> = Result<T, Reported>;

/// A name in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ident {
    /// The spelling, without the underscore that escapes a keyword.
    pub name: Symbol,
    /// The place.
    pub span: Span,
}

/// A place in a list of tokens.
pub struct Cursor<'a> {
    /// The run.
    pub s: &'a mut Session,
    /// The tokens; the last is the end.
    pub tokens: Vec<Token>,
    /// Index of the next token.
    pub at: usize,
    /// Names in skipped text.
    pub poisoned: HashSet<Symbol>,
    depth: usize,
    escapes: bool,
    angles: bool,
}

impl<'a> Cursor<'a> {
    /// A cursor at the first token.
    pub fn new(s: &'a mut Session, tokens: Vec<Token>) -> Cursor<'a> {
        Cursor { s, tokens, at: 0, poisoned: HashSet::new(), depth: 0, escapes: false, angles: false }
    }

    /// This cursor for a dialect in which `_name` is `name` kept from being a keyword.
    pub fn with_escapes(self) -> Cursor<'a> {
        Cursor { escapes: true, ..self }
    }

    /// Whether a leading underscore escapes a keyword.
    pub fn unescapes(&self) -> bool {
        self.escapes
    }

    /// Runs `parse` between angle brackets, where `>>` is no operator.
    pub fn in_angles<T>(&mut self, parse: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.angles, true);
        let result = parse(self);
        self.angles = before;
        result
    }

    /// Runs `parse` between parentheses, where it is one again.
    pub fn in_parentheses<T>(&mut self, parse: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.angles, false);
        let result = parse(self);
        self.angles = before;
        result
    }

    /// Whether `>` and `>>` close a bracket here.
    pub fn closes_angle(&self) -> bool {
        self.angles && matches!(self.word(), ">" | ">>")
    }

    /// The next token.
    pub fn peek(&self) -> Token {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    /// The token `n` behind the next.
    pub fn peek_at(&self, n: usize) -> Token {
        self.tokens[(self.at + n).min(self.tokens.len() - 1)]
    }

    /// Spelling of the token `n` behind the next, if it is a name or an operator.
    pub fn word_at(&self, n: usize) -> &str {
        let token = self.peek_at(n);
        match token.kind {
            Kind::Ident | Kind::Punct => self.s.names.text(token.text),
            _ => "",
        }
    }

    /// Spelling of the next token, if it is a name or an operator.
    pub fn word(&self) -> &str {
        self.word_at(0)
    }

    /// Whether the next token is this word or operator.
    pub fn is(&self, word: &str) -> bool {
        self.word() == word
    }

    /// Whether the input is at its end.
    pub fn at_end(&self) -> bool {
        self.at + 1 >= self.tokens.len()
    }

    /// The place of the next token.
    pub fn span(&self) -> Span {
        self.peek().span
    }

    /// The place of the token just taken.
    pub fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1).min(self.tokens.len() - 1)].span
    }

    /// Takes the next token.
    pub fn bump(&mut self) -> Token {
        let token = self.peek();
        if !self.at_end() {
            self.at += 1;
        }
        token
    }

    /// Takes the name of a file between angle brackets, as a literal.
    pub fn angled(&mut self) -> Parse<(Symbol, Span)> {
        let open = self.expect("<")?;
        let mut name = String::from("\"");
        while !self.is(">") && !self.is(";") && !self.at_end() {
            let token = self.bump();
            name += self.s.names.text(token.text);
        }
        self.close(">", open)?;
        name.push('"');
        Ok((self.s.names.intern(&name), open.to(self.last_span())))
    }

    /// Takes the next token if it is this word or operator.
    pub fn eat(&mut self, word: &str) -> bool {
        let found = self.is(word);
        if found {
            self.bump();
        }
        found
    }

    /// Takes `>`, also as the first half of `>>`.
    pub fn eat_close_angle(&mut self) -> bool {
        if self.is(">>") {
            let at = self.at;
            let one = self.s.names.intern(">");
            self.tokens[at].text = one;
            self.tokens[at].span.lo += 1;
            return true;
        }
        self.eat(">")
    }

    /// Gives an error and returns the token of that.
    pub fn fail<T>(&mut self, diagnostic: Diagnostic) -> Parse<T> {
        self.s.diags.push(diagnostic);
        Err(Reported)
    }

    /// How the next token is called in a message.
    pub fn found(&self) -> String {
        let token = self.peek();
        let text = self.s.names.text(token.text);
        match token.kind {
            Kind::Eof => "the end of the file".into(),
            Kind::Other => format!("the character `{}`", text.escape_default()),
            Kind::Str | Kind::WideStr if text.len() > 20 => "a string".into(),
            _ => format!("`{text}`"),
        }
    }

    /// Reports that something else was expected here.
    pub fn unexpected<T>(&mut self, wanted: &str) -> Parse<T> {
        let message = format!("expected {wanted}, found {}", self.found());
        let token = self.peek();
        let code = if token.kind == Kind::Other { Code::Character } else { Code::Syntax };
        let near = self.near_template();
        self.fail(
            Diagnostic::error(code, token.span, message).label(format!("expected {wanted}")).maybe(near),
        )
    }

    /// The type with parameters that the word before a `<` was meant to be, perhaps.
    fn near_template(&self) -> Option<&'static str> {
        let before = self.at.checked_sub(1).map(|at| self.tokens[at.min(self.tokens.len() - 1)])?;
        let is_meant = self.is("<") && before.kind == Kind::Ident && !self.s.diags.full();
        let templates = ["sequence", "string", "wstring", "fixed", "map"];
        if is_meant { nearest(self.s.names.text(before.text), templates) } else { None }
    }

    /// Takes this word or operator, or reports that it is missing.
    pub fn expect(&mut self, word: &str) -> Parse<Span> {
        if self.eat(word) {
            return Ok(self.last_span());
        }
        self.unexpected(&format!("`{word}`"))
    }

    /// Takes the bracket that closes what was opened at `open`.
    pub fn close(&mut self, word: &str, open: Span) -> Parse<Span> {
        if self.eat(word) {
            return Ok(self.last_span());
        }
        let message = format!("expected `{word}`, found {}", self.found());
        let span = self.span();
        let diagnostic = Diagnostic::error(Code::Syntax, span, message).label(format!("expected `{word}`"));
        self.fail(diagnostic.note(open, "it would close what is opened here"))
    }

    /// Takes `;`. When it is missing at the end of a line, says so and goes on as if it were there.
    pub fn semicolon(&mut self) -> Parse<()> {
        if self.eat(";") {
            return Ok(());
        }
        let next = self.peek();
        let message = format!("expected `;`, found {}", self.found());
        let last = self.last_span();
        let diagnostic = Diagnostic::error(Code::Syntax, last.after(), message).label("`;` is missing here");
        self.s.diags.push(diagnostic);
        if next.line_start || self.at_end() { Ok(()) } else { Err(Reported) }
    }

    /// Runs `parse` one level deeper; too deep is an error.
    pub fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= limits::NESTING_MAX {
            let message = format!("this is nested deeper than {} levels", limits::NESTING_MAX);
            self.s.diags.fatal(Diagnostic::error(Code::Limit, self.span(), message));
            self.at = self.tokens.len() - 1;
            return Err(Reported);
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Skips to behind the next `;`, or to the `}` that closes the list in which the error happened.
    pub fn recover(&mut self) {
        let mut depth = 0usize;
        let start = self.at;
        while !self.at_end() {
            let token = self.peek();
            if token.kind == Kind::Ident {
                self.poisoned.insert(token.text);
            }
            match self.word() {
                "{" => depth += 1,
                "}" if depth == 0 => break,
                "}" => {
                    depth -= 1;
                    // A body that ends a line without `;` ends the declaration too.
                    if depth == 0
                        && self.peek_at(1).line_start
                        && self.word_at(1) != ";"
                        && self.word_at(1) != "}"
                    {
                        self.bump();
                        break;
                    }
                }
                ";" if depth == 0 => {
                    self.bump();
                    break;
                }
                _ => {}
            }
            self.bump();
        }
        // The text just before the error names what was being declared.
        for token in &self.tokens[start.saturating_sub(4)..start.min(self.tokens.len())] {
            if token.kind == Kind::Ident {
                self.poisoned.insert(token.text);
            }
        }
    }

    /// Skips a bracketed group whose opening bracket is next, and returns its tokens without the brackets.
    pub fn group(&mut self) -> Parse<Vec<Token>> {
        let open = self.bump();
        let mut stack = 1usize;
        let start = self.at;
        loop {
            if self.at_end() {
                let opener = self.s.text(&open).to_owned();
                let message = format!("this `{opener}` is never closed");
                return self.fail(Diagnostic::error(Code::Syntax, open.span, message));
            }
            match self.word() {
                "(" | "[" | "{" => stack += 1,
                ")" | "]" | "}" => stack -= 1,
                _ => {}
            }
            self.bump();
            if stack == 0 {
                return Ok(self.tokens[start..self.at - 1].to_vec());
            }
        }
    }

    /// Adds "did you mean" for the next token, chosen among `words`.
    pub fn near(&self, words: &[&'static str]) -> Option<&'static str> {
        let text = self.s.names.text(self.peek().text);
        nearest(text, words.iter().copied())
    }
}
