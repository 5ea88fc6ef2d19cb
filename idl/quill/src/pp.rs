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

    fn push_file(&mut self, file: usize) {
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

    fn place_macro(&mut self, token: Token) -> Token {
        let site = self.s.map.call_site(token.span);
        let text = match self.s.map.place(site) {
            Some(place) if token.text == self.known.line => place.line.to_string(),
            Some(place) => format!("{:?}", place.file.path.display().to_string()),
            None => "0".into(),
        };
        let kind = if token.text == self.known.line { Kind::Number } else { Kind::Str };
        Token { kind, text: self.s.names.intern(&text), ..token }
    }

    /// Starts the expansion of a macro; false when a function-like macro is named without arguments.
    fn call_macro(&mut self, token: &Token, found: &Rc<Macro>) -> bool {
        let arguments = match &found.params {
            None => Vec::new(),
            Some(params) => {
                if !self.opens_arguments() {
                    return false;
                }
                match self.arguments(token, params.len(), found.variadic) {
                    Some(arguments) => arguments,
                    None => return true,
                }
            }
        };
        let name = self.s.names.shared(token.text);
        let ctx = self.s.map.expand(Expansion { call: token.span, name, definition: found.span });
        let mut body = self.substitute(token, found, &arguments, ctx);
        if let Some(first) = body.first_mut() {
            first.space = token.space;
        }
        self.push_context(body, Some(token.text));
        true
    }

    /// Whether `(` comes next; takes it if so.
    fn opens_arguments(&mut self) -> bool {
        loop {
            if let Some(context) = self.contexts.last_mut() {
                match context.tokens.get(context.at) {
                    Some(token) if self.s.names.text(token.text) == "(" => {
                        context.at += 1;
                        return true;
                    }
                    Some(_) => return false,
                    None => self.pop_context(),
                }
                continue;
            }
            if self.lists > 0 {
                return false;
            }
            let Some(frame) = self.frames.last_mut() else { return false };
            let saved = frame.lexer.clone();
            let token = frame.lexer.next(&mut self.s.names);
            if token.kind == Kind::Punct && self.s.text(&token) == "(" {
                return true;
            }
            if let Some(frame) = self.frames.last_mut() {
                frame.lexer = saved;
            }
            return false;
        }
    }

    /// The arguments of a call whose `(` is taken.
    fn arguments(&mut self, call: &Token, params: usize, variadic: bool) -> Option<Vec<Vec<Token>>> {
        let mut arguments = vec![Vec::new()];
        let mut depth = 0usize;
        let mut count = 0usize;
        loop {
            let token = self.raw();
            count += 1;
            if token.kind == Kind::Eof || count > limits::EXPANDED_TOKENS_MAX {
                let name = self.s.text(call).to_owned();
                self.error(
                    Code::MacroCall,
                    call.span,
                    format!("the arguments of the macro `{name}` have no `)`"),
                );
                return None;
            }
            if token.kind == Kind::Punct {
                match self.s.text(&token) {
                    "(" => depth += 1,
                    ")" if depth == 0 => break,
                    ")" => depth -= 1,
                    "," if depth == 0 && !(variadic && arguments.len() > params) => {
                        arguments.push(Vec::new());
                        continue;
                    }
                    _ => {}
                }
            }
            if let Some(last) = arguments.last_mut() {
                last.push(token);
            }
        }
        self.s.expanded_tokens += count;
        let wanted = params + usize::from(variadic);
        if params == 0 && !variadic && arguments.len() == 1 && arguments[0].is_empty() {
            arguments.clear();
        }
        if variadic && arguments.len() == params {
            arguments.push(Vec::new());
        }
        if arguments.len() != wanted {
            let name = self.s.text(call).to_owned();
            let message =
                format!("the macro `{name}` takes {wanted} arguments, but here are {}", arguments.len());
            let definition = self.macros.get(&call.text).map(|m| m.span);
            let mut diagnostic = Diagnostic::error(Code::MacroCall, call.span, message);
            if let Some(span) = definition {
                diagnostic = diagnostic.note(span, "the macro is defined here");
            }
            self.s.diags.push(diagnostic);
            return None;
        }
        Some(arguments)
    }

    /// The body of a macro with its parameters replaced, `#` and `##` done.
    fn substitute(&mut self, call: &Token, found: &Macro, arguments: &[Vec<Token>], ctx: u32) -> Vec<Token> {
        let no_params = Vec::new();
        let params = found.params.as_ref().unwrap_or(&no_params);
        let va_args = self.known.va_args;
        let index = |name: Symbol| {
            params
                .iter()
                .position(|&p| p == name)
                .or((found.variadic && name == va_args).then_some(params.len()))
        };
        let mut expanded: Vec<Option<Vec<Token>>> = vec![None; arguments.len()];
        let mut out: Vec<Token> = Vec::new();
        let mut i = 0;
        while i < found.body.len() {
            if self.s.diags.stop() {
                break;
            }
            if self.s.expanded_tokens + out.len() > limits::EXPANDED_TOKENS_MAX {
                let max = limits::EXPANDED_TOKENS_MAX;
                self.limit(call.span, format!("macros expand to more than {max} tokens"));
                break;
            }
            let token = found.body[i];
            let text = self.s.names.text(token.text);
            let next_is_paste = found.body.get(i + 1).is_some_and(|t| self.s.names.text(t.text) == "##");
            if text == "#" && found.params.is_some() && i + 1 < found.body.len() {
                if let Some(n) = index(found.body[i + 1].text) {
                    let string = self.stringize(&arguments[n]);
                    out.push(Token {
                        kind: Kind::Str,
                        text: string,
                        span: call.span,
                        space: token.space,
                        ..token
                    });
                    i += 2;
                    continue;
                }
            } else if text == "##" && !out.is_empty() && i + 1 < found.body.len() {
                let right = found.body[i + 1];
                let list = match index(right.text) {
                    Some(n) if right.kind == Kind::Ident => arguments[n].clone(),
                    _ => vec![Token { span: Span { ctx, ..right.span }, ..right }],
                };
                self.paste(call, &mut out, list);
                i += 2;
                continue;
            }
            match index(token.text) {
                Some(n) if token.kind == Kind::Ident => {
                    if next_is_paste {
                        // An empty left side leaves a mark, so that `##` still has something to join.
                        out.extend(arguments[n].iter().copied());
                        if arguments[n].is_empty() {
                            let empty = self.s.names.intern("");
                            out.push(Token { kind: Kind::Other, text: empty, ..*call });
                        }
                    } else {
                        if expanded[n].is_none() {
                            expanded[n] = Some(self.expand_list(arguments[n].clone()));
                        }
                        let at = out.len();
                        out.extend(expanded[n].iter().flatten().copied());
                        if let Some(first) = out.get_mut(at) {
                            first.space = token.space;
                        }
                    }
                }
                _ => out.push(Token { span: Span { ctx, ..token.span }, ..token }),
            }
            i += 1;
        }
        let names = &self.s.names;
        out.retain(|t| !names.text(t.text).is_empty());
        out
    }

    fn stringize(&mut self, tokens: &[Token]) -> Symbol {
        let mut text = String::from("\"");
        for (i, token) in tokens.iter().enumerate() {
            if i > 0 && token.space {
                text.push(' ');
            }
            for c in self.s.text(token).chars() {
                if matches!(token.kind, Kind::Str | Kind::Char | Kind::WideStr | Kind::WideChar)
                    && matches!(c, '"' | '\\')
                {
                    text.push('\\');
                }
                text.push(c);
            }
            if text.len() > limits::STRING_BYTES_MAX {
                break;
            }
        }
        text.push('"');
        self.s.names.intern(&text)
    }

    /// Joins the last token of `out` with the first of `right`, and appends the rest.
    fn paste(&mut self, call: &Token, out: &mut Vec<Token>, right: Vec<Token>) {
        let mut right = right.into_iter();
        if let (Some(left), Some(first)) = (out.last().copied(), right.next()) {
            let text = format!("{}{}", self.s.text(&left), self.s.text(&first));
            if text.len() > limits::STRING_BYTES_MAX {
                return self.limit(call.span, "a pasted token is too long".into());
            }
            self.s.expanded_tokens += text.len() / 16;
            let kind = match text.as_bytes() {
                [] => Kind::Other,
                [b, ..] if b.is_ascii_digit() => Kind::Number,
                [b'.', b, ..] if b.is_ascii_digit() => Kind::Number,
                [b'L', b'"', ..] => Kind::WideStr,
                [b'"', ..] => Kind::Str,
                [b'\'', ..] => Kind::Char,
                [b, ..] if b.is_ascii_alphabetic() || *b == b'_' => Kind::Ident,
                _ => Kind::Punct,
            };
            let text = self.s.names.intern(&text);
            out.pop();
            out.push(Token {
                kind,
                text,
                space: left.space,
                painted: false,
                line_start: false,
                span: call.span,
            });
        }
        out.extend(right);
    }

    /// Expands a list of tokens on its own, without reading on behind it.
    fn expand_list(&mut self, tokens: Vec<Token>) -> Vec<Token> {
        if self.lists >= limits::MACRO_DEPTH_MAX {
            let span = tokens.first().map_or(Span::default(), |t| t.span);
            let max = limits::MACRO_DEPTH_MAX;
            self.limit(span, format!("macro calls are nested deeper than {max}"));
            return Vec::new();
        }
        let outer = std::mem::take(&mut self.contexts);
        self.lists += 1;
        self.push_context(tokens, None);
        let mut out = Vec::new();
        loop {
            let token = self.expanded();
            if token.kind == Kind::Eof {
                break;
            }
            out.push(token);
        }
        while !self.contexts.is_empty() {
            self.pop_context();
        }
        self.lists -= 1;
        self.contexts = outer;
        out
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
                let header = |f: Option<&Frame>| f.is_some_and(|f| is_header(&self.s.map.file(f.file).path));
                if header(self.frames.first()) {
                } else if name == "error" && !header(self.frames.last()) {
                    self.error(Code::ErrorDirective, hash.span.to(word.span), message.trim());
                } else {
                    let warning =
                        Diagnostic::warning(Code::ErrorDirective, hash.span.to(word.span), message.trim());
                    self.s.diags.push(warning);
                }
            }
            "pragma" => {
                let tokens = self.line_tokens();
                if tokens.first().is_some_and(|t| self.s.text(t) == "once")
                    && let Some(frame) = self.frames.last()
                {
                    self.once.insert(frame.file);
                }
                let span = tokens.last().map_or(word.span, |t| hash.span.to(t.span));
                self.pragmas.push(Pragma { before: self.produced, tokens, span });
            }
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

    fn define(&mut self) {
        let mut tokens = self.line_tokens();
        let Some(name) = tokens.first().copied() else { return };
        if name.kind != Kind::Ident || name.text == self.known.defined {
            return self.error(Code::Directive, name.span, "`#define` needs a name");
        }
        let function = tokens.get(1).is_some_and(|t| !t.space && self.s.text(t) == "(");
        let (mut params, mut variadic) = (None, false);
        if function {
            let close = tokens.iter().position(|t| self.s.text(t) == ")");
            let Some(close) = close else {
                return self.error(Code::Directive, name.span, "the parameters of this macro have no `)`");
            };
            let mut list = Vec::new();
            for (i, token) in tokens[2..close].iter().enumerate() {
                match self.s.text(token) {
                    "..." => variadic = true,
                    "," if i % 2 == 1 => {}
                    _ if token.kind == Kind::Ident && i % 2 == 0 => list.push(token.text),
                    _ => {
                        return self.error(
                            Code::Directive,
                            token.span,
                            "a macro's parameters are names with commas between",
                        );
                    }
                }
            }
            params = Some(list);
            tokens.drain(..=close);
        } else {
            tokens.remove(0);
        }
        if let Some(bad) = tokens.iter().find(|t| t.kind == Kind::Unterminated).copied() {
            tokens.retain(|t| t.kind != Kind::Unterminated);
            if self.s.text(&bad).starts_with('"') {
                self.report_unterminated(&bad);
            }
        }
        for token in &mut tokens {
            token.line_start = false;
        }
        let found = Macro { params, variadic, body: tokens.into(), span: name.span };
        if let Some(old) = self.macros.get(&name.text) {
            let same = old.params == found.params
                && old.body.len() == found.body.len()
                && old.body.iter().zip(found.body.iter()).all(|(a, b)| a.text == b.text);
            if !same {
                let message = format!("the macro `{}` is defined anew", self.s.text(&name));
                let warning = Diagnostic::warning(Code::MacroRedefined, name.span, message);
                let warning = warning.note(old.span, "it was defined here");
                self.s.diags.push(warning);
            }
        }
        self.macros.insert(name.text, found.into());
    }

    fn include(&mut self, word: &Token, directive: &str) {
        let (text, span) = self.rest_of_line();
        let lead = text.len() - text.trim_start().len();
        let mut text = strip_comment(text.trim()).trim().to_owned();
        let span = Span {
            lo: span.lo + lead as u32,
            hi: (span.lo + (lead + text.len()) as u32).max(span.lo),
            ctx: 0,
        };
        if !text.starts_with(['"', '<']) {
            text = self.expand_include(span);
        }
        let (name, system) = match text.as_bytes() {
            [b'"', ..] if text[1..].contains('"') => (text[1..].split('"').next().unwrap_or(""), false),
            [b'<', ..] if text.contains('>') => (text[1..].split('>').next().unwrap_or(""), true),
            [b'"' | b'<', ..] => {
                let message = format!("the name of the file behind `#{directive}` never ends");
                return self.error(Code::Unterminated, span, message);
            }
            _ => {
                return self.error(
                    Code::Directive,
                    word.span,
                    format!("`#{directive}` needs \"FILE\" or <FILE>"),
                );
            }
        };
        if name.is_empty() {
            return self.error(Code::Directive, span, format!("`#{directive}` needs the name of a file"));
        }
        let includers: Vec<PathBuf> =
            self.frames.iter().map(|f| self.s.map.file(f.file).path.clone()).collect();
        let Some(path) = find(self.s, name, system, &includers, directive == "include_next") else {
            // Every ORB brings an orb.idl of its own; what it declares is known without it. So are C's own types.
            if name.rsplit('/').next() == Some("orb.idl") || C_HEADERS.contains(&name) {
                return;
            }
            let from_header = self.frames.last().is_some_and(|f| is_header(&self.s.map.file(f.file).path));
            return not_found(self.s, name, span, from_header);
        };
        if self.frames.len() >= limits::INCLUDE_DEPTH_MAX {
            let max = limits::INCLUDE_DEPTH_MAX;
            let cycle = includers.contains(&path);
            let why = if cycle { " (the file includes itself)" } else { "" };
            return self.limit(span, format!("files are included deeper than {max}{why}"));
        }
        match self.s.load(&path, Some(span)) {
            Ok(file) if self.once.contains(&file) => {}
            Ok(file) => {
                if directive == "import" {
                    self.once.insert(file);
                }
                self.push_file(file);
            }
            Err(why) if self.s.includes > limits::INCLUDES_MAX => self.limit(span, why),
            Err(why) => {
                self.s.incomplete = true;
                self.error(Code::Unreadable, span, format!("cannot read `{}`: {why}", path.display()));
            }
        }
    }

    /// An `#include` whose file is named by a macro.
    fn expand_include(&mut self, span: Span) -> String {
        let Some(frame) = self.frames.last_mut() else { return String::new() };
        let after = frame.lexer.clone();
        let file = self.s.map.file(frame.file);
        frame.lexer = Lexer::new(file);
        frame.lexer.seek((span.lo - file.start) as usize);
        let tokens = self.line_tokens();
        let tokens = self.expand_list(tokens);
        if let Some(frame) = self.frames.last_mut() {
            frame.lexer = after;
        }
        tokens.iter().map(|t| self.s.text(t)).collect()
    }
}

fn strip_comment(text: &str) -> &str {
    let close = match text.as_bytes() {
        [b'"', ..] => text[1..].find('"'),
        [b'<', ..] => text[1..].find('>'),
        _ => None,
    };
    match close {
        Some(n) => &text[..n + 2],
        None => text.split("//").next().unwrap_or("").split("/*").next().unwrap_or(""),
    }
}

/// The path of an included or imported file: beside the files that ask for it (innermost first), then in the
/// directories of `-I`; the other way round for `<FILE>`.
pub fn find(s: &Session, name: &str, system: bool, includers: &[PathBuf], next: bool) -> Option<PathBuf> {
    let name = name.replace('\\', "/");
    let skip = usize::from(next);
    let beside = includers.iter().rev().skip(skip).filter_map(|p| p.parent()).map(|p| p.join(&name));
    let listed = s.options.include_dirs.iter().map(|p| p.join(&name));
    let not_again = |path: &PathBuf| s.exists(path) && !(next && includers.contains(path));
    if system { listed.chain(beside).find(not_again) } else { beside.chain(listed).find(not_again) }
}

/// Whether a file is a C header, by its name.
pub fn is_header(path: &Path) -> bool {
    path.extension().is_some_and(|e| ["h", "H", "hpp", "hxx"].iter().any(|h| e == *h))
}

/// The headers that belong to C itself.
const C_HEADERS: [&str; 27] = [
    "assert.h",
    "complex.h",
    "ctype.h",
    "errno.h",
    "fenv.h",
    "float.h",
    "inttypes.h",
    "iso646.h",
    "limits.h",
    "locale.h",
    "math.h",
    "setjmp.h",
    "signal.h",
    "stdalign.h",
    "stdarg.h",
    "stdatomic.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "sys/types.h",
    "time.h",
    "uchar.h",
    "wchar.h",
    "wctype.h",
];

/// Reports a file that cannot be found, with what the user may have meant. What a C header misses is a warning: it is
/// read for the types that it has.
pub fn not_found(s: &mut Session, name: &str, span: Span, from_header: bool) {
    let make = if from_header { Diagnostic::warning } else { Diagnostic::error };
    let mut diagnostic = make(Code::NotFound, span, format!("the file `{name}` is not found"));
    let from = s.map.file_index(span).map(|i| s.map.file(i).path.clone());
    let beside = from.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let wanted = Path::new(name);
    let mut candidates = Vec::new();
    for dir in beside.iter().chain(&s.options.include_dirs) {
        let dir = dir.join(wanted.parent().unwrap_or(Path::new("")));
        let dir = if dir.as_os_str().is_empty() { PathBuf::from(".") } else { dir };
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().take(1000);
        candidates.extend(entries.map(|e| e.file_name().to_string_lossy().into_owned()));
    }
    candidates.sort();
    let base = wanted.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    diagnostic = diagnostic.maybe(nearest(&base, candidates.iter().map(String::as_str)));
    if s.options.include_dirs.is_empty() {
        diagnostic = diagnostic.help("`-I DIR` adds a directory to search");
    }
    s.diags.push(diagnostic);
    s.incomplete = true;
}

#[cfg(test)]
mod tests;
