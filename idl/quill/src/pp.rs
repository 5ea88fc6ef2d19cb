//! The preprocessor: C's, with spans.
//!
//! [`preprocess`] turns a file and everything it includes into one list of tokens, each of which still knows where
//! it was written and which macro put it there. Pragmas are collected beside the tokens. Own code rather than
//! `cc -E`, because a diagnostic must point at what the user wrote and because any input must end in bounded time.
//!
//! Shape: [`Pp::raw`] delivers tokens from the innermost running expansion or from the current file, handling
//! directives; [`Pp::expanded`] replaces macros. A macro is disabled while its expansion is being read, and names
//! met meanwhile are painted, as in C. Arguments are expanded by a nested, depth-limited call.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::codes::Code;
use crate::diag::{Diagnostic, nearest};
use crate::intern::Symbol;
use crate::lex::{Kind, Lexer, Token};
use crate::limits;
use crate::session::Session;
use crate::source::{Expansion, Span};

mod condition;
mod include;
mod macros;

pub use include::{find, is_header, not_found};

/// A `#pragma`, and how many tokens stand before it.
#[derive(Clone, Debug)]
pub struct Pragma {
    /// Index of the token that follows it.
    pub before: usize,
    /// The tokens behind the word `pragma`.
    pub tokens: Vec<Token>,
    /// The whole line.
    pub span: Span,
}

/// What preprocessing leaves.
#[derive(Clone, Debug, Default)]
pub struct Preprocessed {
    /// The tokens, with one [`Kind::Eof`] at the end.
    pub tokens: Vec<Token>,
    /// The pragmas.
    pub pragmas: Vec<Pragma>,
    /// The number of the file that was asked for.
    pub file: usize,
}

#[derive(Debug)]
struct Macro {
    params: Option<Vec<Symbol>>,
    variadic: bool,
    body: Rc<[Token]>,
    span: Span,
}

impl Macro {
    /// The number of the parameter with a name; what is left over is one named `va_args`.
    fn parameter(&self, name: Symbol, va_args: Symbol) -> Option<usize> {
        let params = self.params.as_deref().unwrap_or_default();
        let found = params.iter().position(|&p| p == name);
        found.or((self.variadic && name == va_args).then_some(params.len()))
    }
}

#[derive(Debug)]
struct Conditional {
    span: Span,
    /// The text around it is live.
    outer: bool,
    /// Some branch was taken already.
    taken: bool,
    /// This branch is live.
    live: bool,
    has_else: bool,
}

struct Frame {
    lexer: Lexer,
    file: usize,
    conditionals: Vec<Conditional>,
}

struct Context {
    tokens: Rc<[Token]>,
    at: usize,
    name: Option<Symbol>,
}

/// Names that the preprocessor compares with, interned once.
struct Known {
    defined: Symbol,
    va_args: Symbol,
    file: Symbol,
    line: Symbol,
}

struct Pp<'a> {
    s: &'a mut Session,
    macros: HashMap<Symbol, Rc<Macro>>,
    disabled: HashMap<Symbol, u32>,
    frames: Vec<Frame>,
    contexts: Vec<Context>,
    /// Argument or condition lists being expanded: the file must not be read meanwhile.
    lists: usize,
    once: HashSet<usize>,
    pragmas: Vec<Pragma>,
    produced: usize,
    known: Known,
}

/// Preprocesses a file that the session has loaded.
pub fn preprocess(s: &mut Session, file: usize) -> Preprocessed {
    let known = Known {
        defined: s.names.intern("defined"),
        va_args: s.names.intern("__VA_ARGS__"),
        file: s.names.intern("__FILE__"),
        line: s.names.intern("__LINE__"),
    };
    let mut pp = Pp {
        s,
        macros: HashMap::new(),
        disabled: HashMap::new(),
        frames: Vec::new(),
        contexts: Vec::new(),
        lists: 0,
        once: HashSet::new(),
        pragmas: Vec::new(),
        produced: 0,
        known,
    };
    pp.predefine();
    pp.push_file(file);
    let mut tokens = Vec::new();
    loop {
        let token = pp.expanded();
        if token.kind == Kind::Unterminated {
            pp.report_unterminated(&token);
            continue;
        }
        let at_end = token.kind == Kind::Eof;
        pp.produced = tokens.len() + 1;
        tokens.push(token);
        if tokens.len() >= limits::TOKENS_MAX && !at_end {
            pp.limit(
                token.span,
                format!("the file has more than {} tokens with its includes", limits::TOKENS_MAX),
            );
        }
        if at_end {
            break;
        }
    }
    Preprocessed { tokens, pragmas: pp.pragmas, file }
}

impl Pp<'_> {
    fn predefine(&mut self) {
        let mut text = String::from(
            "#define __QUILL__ 1\n#define __midl 801\n#define __DATE__ \"Jan  1 1970\"\n#define __TIME__ \"00:00:00\"\n",
        );
        for define in &self.s.options.defines {
            let (name, value) = define.split_once('=').unwrap_or((define, "1"));
            text.push_str(&format!("#define {name} {value}\n"));
        }
        if let Ok(file) = self.s.load_bytes(Path::new("<command line>"), text.as_bytes(), None) {
            self.push_file(file);
            while self.raw().kind != Kind::Eof {}
        }
    }

    fn is_header(&self, frame: Option<&Frame>) -> bool {
        frame.is_some_and(|frame| is_header(&self.s.map.file(frame.file).path))
    }

    /// Whether what is read just now is a header.
    fn in_header(&self) -> bool {
        self.is_header(self.frames.last())
    }

    fn push_file(&mut self, file: usize) {
        self.s.read_bytes += self.s.map.file(file).text.len();
        let lexer = Lexer::new(self.s.map.file(file));
        self.frames.push(Frame { lexer, file, conditionals: Vec::new() });
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.s.diags.push(Diagnostic::error(code, span, message));
    }

    /// A limit is exceeded: says so and ends the input.
    fn limit(&mut self, span: Span, message: String) {
        self.s.diags.fatal(Diagnostic::error(Code::Limit, span, message));
        self.contexts.clear();
        self.frames.clear();
    }

    fn report_unterminated(&mut self, token: &Token) {
        let what = match self.s.text(token).as_bytes() {
            [b'/', ..] => "comment",
            [b'"', ..] | [b'L', b'"', ..] => "string",
            _ => "character",
        };
        let message = format!("this {what} never ends");
        self.error(Code::Unterminated, token.span, message);
    }

    fn eof(&self) -> Token {
        let span = self.frames.last().map_or(Span::default(), |f| {
            let file = self.s.map.file(f.file);
            let at = file.start + file.text.len() as u32;
            Span { lo: at, hi: at, ctx: 0 }
        });
        Token {
            kind: Kind::Eof,
            space: true,
            line_start: true,
            painted: false,
            text: self.known.defined,
            span,
        }
    }

    /// The next token before expansion, from the innermost context or the file.
    fn raw(&mut self) -> Token {
        loop {
            if self.s.diags.stop() {
                self.contexts.clear();
            }
            if let Some(context) = self.contexts.last_mut() {
                if let Some(token) = context.tokens.get(context.at) {
                    context.at += 1;
                    return *token;
                }
                self.pop_context();
                continue;
            }
            if self.lists > 0 || self.frames.is_empty() || self.s.diags.stop() {
                return self.eof();
            }
            let token = self.lex();
            if token.kind == Kind::Eof {
                let end = self.eof();
                self.end_of_file();
                if self.frames.is_empty() {
                    return end;
                }
                continue;
            }
            if token.line_start && self.s.text(&token) == "#" {
                self.directive(&token);
                continue;
            }
            if self.live() {
                return token;
            }
            self.skip_dead_lines();
        }
    }

    fn lex(&mut self) -> Token {
        match self.frames.last_mut() {
            Some(frame) => frame.lexer.next(&mut self.s.names),
            None => self.eof(),
        }
    }

    fn live(&self) -> bool {
        self.frames.last().is_none_or(|f| f.conditionals.last().is_none_or(|c| c.live))
    }

    /// Reads on to the end of the line, comments understood, nothing else.
    fn skip_dead_lines(&mut self) {
        while self.frames.last_mut().is_some_and(|f| !f.lexer.at_line_end()) {
            self.lex();
        }
    }

    fn pop_context(&mut self) {
        if let Some(Context { name: Some(name), .. }) = self.contexts.pop()
            && let Some(count) = self.disabled.get_mut(&name)
        {
            *count -= 1;
        }
    }

    fn push_context(&mut self, tokens: Vec<Token>, name: Option<Symbol>) {
        self.s.expanded_tokens += tokens.len() + 1;
        if let Some(name) = name {
            *self.disabled.entry(name).or_insert(0) += 1;
        }
        self.contexts.push(Context { tokens: tokens.into(), at: 0, name });
    }

    fn end_of_file(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        for conditional in frame.conditionals {
            self.error(Code::Conditional, conditional.span, "this conditional has no `#endif`");
        }
    }

    /// The next token with macros replaced.
    fn expanded(&mut self) -> Token {
        loop {
            let mut token = self.raw();
            if token.kind != Kind::Ident || token.painted {
                return token;
            }
            if token.text == self.known.file || token.text == self.known.line {
                return self.place_macro(token);
            }
            let Some(found) = self.macros.get(&token.text) else { return token };
            if self.disabled.get(&token.text).is_some_and(|&n| n > 0) {
                token.painted = true;
                return token;
            }
            let found = found.clone();
            if self.s.expanded_tokens > limits::EXPANDED_TOKENS_MAX {
                let max = limits::EXPANDED_TOKENS_MAX;
                self.limit(token.span, format!("macros expand to more than {max} tokens"));
                continue;
            }
            if !self.call_macro(&token, &found) {
                return token;
            }
        }
    }

    /// The tokens up to the end of the line.
    fn line_tokens(&mut self) -> Vec<Token> {
        let mut tokens = Vec::new();
        while self.frames.last_mut().is_some_and(|f| !f.lexer.at_line_end()) {
            let token = self.lex();
            tokens.push(token);
        }
        tokens
    }

    fn directive(&mut self, hash: &Token) {
        if self.frames.last_mut().is_none_or(|f| f.lexer.at_line_end()) {
            return;
        }
        let word = self.lex();
        let name = self.s.text(&word).to_owned();
        match name.as_str() {
            "if" | "ifdef" | "ifndef" | "elif" | "else" | "endif" | "elifdef" | "elifndef" => {
                self.conditional(&word, &name);
                self.skip_dead_lines();
                return;
            }
            _ if !self.live() => return self.skip_dead_lines(),
            "include" | "include_next" | "import" => return self.include(&word, &name),
            "define" => self.define(),
            "undef" => {
                let tokens = self.line_tokens();
                match tokens.first() {
                    Some(token) if token.kind == Kind::Ident => {
                        self.macros.remove(&token.text);
                    }
                    _ => self.error(Code::Directive, word.span, "`#undef` needs a name"),
                }
            }
            "error" | "warning" => {
                let (text, _) = self.rest_of_line();
                let message = format!("#{name} {}", text.trim());
                // A header's complaints are about C compilers: imported, it is read for its types alone.
                if self.is_header(self.frames.first()) {
                } else if name == "error" && !self.in_header() {
                    self.error(Code::ErrorDirective, hash.span.to(word.span), message.trim());
                } else {
                    let warning =
                        Diagnostic::warning(Code::ErrorDirective, hash.span.to(word.span), message.trim());
                    self.s.diags.push(warning);
                }
            }
            "pragma" => self.pragma(hash, &word),
            // Line markers of an earlier preprocessor run, and notes to other tools.
            "line" | "ident" | "sccs" => {}
            _ if word.kind == Kind::Number => {}
            _ => {
                let known = [
                    "include", "define", "undef", "ifdef", "ifndef", "endif", "else", "elif", "pragma",
                    "error",
                ];
                let near = nearest(&name, known);
                let message = format!("unknown directive `#{name}`");
                self.s.diags.push(Diagnostic::error(Code::Directive, word.span, message).maybe(near));
            }
        }
        self.skip_dead_lines();
    }

    fn pragma(&mut self, hash: &Token, word: &Token) {
        let tokens = self.line_tokens();
        if tokens.first().is_some_and(|t| self.s.text(t) == "once")
            && let Some(frame) = self.frames.last()
        {
            self.once.insert(frame.file);
        }
        let span = tokens.last().map_or(word.span, |t| hash.span.to(t.span));
        self.pragmas.push(Pragma { before: self.produced, tokens, span });
    }

    fn rest_of_line(&mut self) -> (String, Span) {
        self.frames.last_mut().map_or_else(Default::default, |f| f.lexer.rest_of_line())
    }

    fn conditional(&mut self, word: &Token, name: &str) {
        let live = self.live();
        match name {
            "if" | "ifdef" | "ifndef" => {
                let holds = live && self.holds(word, name);
                let Some(frame) = self.frames.last_mut() else { return };
                frame.conditionals.push(Conditional {
                    span: word.span,
                    outer: live,
                    taken: holds,
                    live: holds,
                    has_else: false,
                });
                if frame.conditionals.len() > limits::CONDITIONAL_DEPTH_MAX {
                    let max = limits::CONDITIONAL_DEPTH_MAX;
                    self.limit(word.span, format!("conditionals are nested deeper than {max}"));
                }
            }
            _ => {
                let Some(top) = self.frames.last().and_then(|f| f.conditionals.last()) else {
                    return self.error(Code::Conditional, word.span, format!("`#{name}` without `#if`"));
                };
                if top.has_else && name != "endif" {
                    let note = top.span;
                    let message = format!("`#{name}` behind `#else`");
                    let diagnostic = Diagnostic::error(Code::Conditional, word.span, message);
                    return self.s.diags.push(diagnostic.note(note, "the conditional starts here"));
                }
                let open = top.outer && !top.taken;
                let holds =
                    open && (name == "else" || (name.starts_with("elif") && self.holds(word, &name[2..])));
                let Some(conditionals) = self.frames.last_mut().map(|f| &mut f.conditionals) else { return };
                if name == "endif" {
                    conditionals.pop();
                } else if let Some(top) = conditionals.last_mut() {
                    top.live = holds;
                    top.taken |= holds;
                    top.has_else |= name == "else";
                }
            }
        }
    }

    /// The value of a condition: of `if`, `ifdef` or `ifndef`.
    fn holds(&mut self, word: &Token, name: &str) -> bool {
        let tokens = self.line_tokens();
        if name == "if" {
            return self.condition(word, tokens);
        }
        match tokens.first() {
            Some(token) if token.kind == Kind::Ident => {
                let defined = self.is_defined(token.text);
                defined == (name == "ifdef")
            }
            _ => {
                self.error(Code::Directive, word.span, format!("`#{name}` needs a name"));
                false
            }
        }
    }

    fn is_defined(&self, name: Symbol) -> bool {
        self.macros.contains_key(&name) || name == self.known.file || name == self.known.line
    }
}

#[cfg(test)]
mod tests;
