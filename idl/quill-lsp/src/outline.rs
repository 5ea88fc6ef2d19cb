//! Declarations of a file, found by its brackets and keywords: a text that is being typed has these long before a parser accepts it.
//!
//! Both dialects are read alike. Nothing here judges: what is no declaration is passed over.

use quill::intern::Symbol as Word;
use quill::lex::{Kind, Token};
use quill::session::{Dialect, Session};
use quill::source::Span;

/// Kinds of declarations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Module,
    Interface,
    Struct,
    Union,
    Enum,
    Bitmask,
    Exception,
    Typedef,
    Native,
    Const,
    Enumerator,
    Operation,
    Attribute,
    Field,
    /// Announced; the definition is elsewhere.
    Forward,
}

/// A declaration.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Its name with those of modules and interfaces before it.
    pub path: String,
    /// Its kind.
    pub sort: Sort,
    /// Its name's place.
    pub span: Span,
    /// All of it.
    pub first: Span,
    /// The last token of it.
    pub last: Span,
    /// The declaration around it.
    pub parent: Option<usize>,
    /// Tokens between its braces: the list, the first, and the one behind the last.
    pub body: Option<(usize, usize, usize)>,
    /// Names of its bases, as they are written.
    pub bases: Vec<Vec<String>>,
}

/// Everything that a file declares, with what it includes and imports.
pub struct Outline {
    /// The language of the file.
    pub dialect: Dialect,
    /// The declarations, in the order in which they begin.
    pub symbols: Vec<Symbol>,
    /// The tokens of the file, then of each file that it imports.
    pub lists: Vec<Vec<Token>>,
}

/// Declarations of one file with its includes. Real files have a hundredth.
const SYMBOLS_MAX: usize = 200_000;
/// Bodies within each other, as in the parsers.
const NESTING_MAX: usize = quill::limits::NESTING_MAX;

/// A body that is being read.
struct Open {
    symbol: Option<usize>,
    sort: Option<Sort>,
    /// Where the declaration with the body begins.
    start: usize,
}

struct Scan<'a> {
    session: &'a Session,
    dialect: Dialect,
    tokens: &'a [Token],
    list: usize,
    symbols: &'a mut Vec<Symbol>,
    open: Vec<Open>,
    /// The first token of this declaration.
    start: usize,
    /// The first token behind its body.
    tail: Option<usize>,
}

impl Outline {
    /// One of a file that says nothing.
    pub fn new(dialect: Dialect) -> Outline {
        Outline { dialect, symbols: Vec::new(), lists: Vec::new() }
    }

    /// Adds what a list of tokens declares.
    pub fn add(&mut self, session: &Session, tokens: Vec<Token>) {
        let list = self.lists.len();
        let mut scan = Scan {
            session,
            dialect: self.dialect,
            tokens: &tokens,
            list,
            symbols: &mut self.symbols,
            open: Vec::new(),
            start: 0,
            tail: None,
        };
        scan.run();
        self.lists.push(tokens);
    }
}

impl Scan<'_> {
    fn word(&self, at: usize) -> &str {
        match self.tokens.get(at) {
            Some(token) if matches!(token.kind, Kind::Ident | Kind::Punct) => self.session.text(token),
            _ => "",
        }
    }

    fn is_name(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|t| t.kind == Kind::Ident)
    }

    fn text(&self, word: Word) -> String {
        plain(self.session.name(word), self.dialect).to_owned()
    }

    fn run(&mut self) {
        let mut at = 0;
        while at < self.tokens.len() && self.symbols.len() < SYMBOLS_MAX {
            match self.word(at) {
                "{" => self.begin(at),
                "}" => self.end(at),
                ";" => {
                    self.declaration(at);
                    (self.start, self.tail) = (at + 1, None);
                }
                // Enumerators.
                _ if self.is_name(at)
                    && self.in_enum()
                    && matches!(self.word(at - 1), "{" | "," | ")" | "]") =>
                {
                    self.symbol(Sort::Enumerator, at, at, at);
                }
                _ => {}
            }
            at += 1;
        }
        while !self.open.is_empty() {
            self.close(self.tokens.len().saturating_sub(1));
        }
    }

    fn in_enum(&self) -> bool {
        self.open.last().is_some_and(|open| matches!(open.sort, Some(Sort::Enum | Sort::Bitmask)))
    }

    /// A body begins.
    fn begin(&mut self, at: usize) {
        if self.open.len() > NESTING_MAX {
            return;
        }
        let start = self.after_attributes(self.tail.unwrap_or(self.start), at);
        let keyword = (start..at).find_map(|i| Some((i, sort_of(self.word(i))?)));
        let is_name = |i: usize| self.is_name(i) && i < at;
        let named = keyword.filter(|&(i, _)| is_name(i + 1) && self.word(start) != "@");
        let symbol = named.map(|(i, sort)| {
            let symbol = self.symbol(sort, i + 1, self.start, at);
            let bases = self.bases(i + 2, at);
            self.symbols[symbol].bases = bases;
            self.symbols[symbol].body = Some((self.list, at + 1, at + 1));
            symbol
        });
        self.open.push(Open { symbol, sort: keyword.map(|k| k.1), start: self.start });
        (self.start, self.tail) = (at + 1, None);
    }

    /// A body ends.
    fn end(&mut self, at: usize) {
        let Some(open) = self.open.last() else {
            (self.start, self.tail) = (at + 1, None);
            return;
        };
        let (sort, start) = (open.sort, open.start);
        self.close(at);
        // Behind a type there may be names that are declared by it.
        let goes_on = matches!(sort, Some(Sort::Struct | Sort::Union | Sort::Enum | Sort::Bitmask));
        let begins = |word: &str| sort_of(word).is_some() || matches!(word, "typedef" | "const" | "import");
        let next_begins = self.tokens.get(at + 1).is_some_and(|t| t.line_start) && begins(self.word(at + 1));
        if goes_on && !next_begins {
            (self.start, self.tail) = (start, Some(at + 1));
        } else {
            (self.start, self.tail) = (at + 1, None);
        }
    }

    fn close(&mut self, at: usize) {
        let Some(symbol) = self.open.pop().and_then(|open| open.symbol) else { return };
        let symbol = &mut self.symbols[symbol];
        symbol.last = self.tokens[at].span;
        if let Some((_, _, end)) = &mut symbol.body {
            *end = at;
        }
    }

    /// The names behind a colon, up to the body.
    fn bases(&self, from: usize, to: usize) -> Vec<Vec<String>> {
        let mut bases = Vec::new();
        if self.word(from) != ":" {
            return bases;
        }
        let mut base = Vec::new();
        for at in from + 1..to {
            match self.word(at) {
                "," => bases.push(std::mem::take(&mut base)),
                "::" => {}
                _ if self.is_name(at) => base.push(self.text(self.tokens[at].text)),
                _ => break,
            }
        }
        bases.push(base);
        bases.retain(|base| !base.is_empty());
        bases
    }

    /// Adds a declaration; returns its number.
    fn symbol(&mut self, sort: Sort, name: usize, first: usize, last: usize) -> usize {
        let parent = self.open.iter().rev().find_map(|open| open.symbol);
        let text = self.text(self.tokens[name].text);
        // An enumerator belongs to what its enum stands in.
        let scope = match sort {
            Sort::Enumerator => parent.and_then(|parent| {
                let own = self.open.last().is_some_and(|open| open.symbol == Some(parent));
                if own { self.symbols[parent].parent } else { Some(parent) }
            }),
            _ => parent,
        };
        let path = match scope.map(|scope| &self.symbols[scope].path) {
            Some(scope) if scope.len() + text.len() < quill::limits::PATH_BYTES_MAX => {
                format!("{scope}::{text}")
            }
            _ => text.clone(),
        };
        let [span, first, last] = [name, first, last].map(|at| self.tokens[at].span);
        let symbol =
            Symbol { name: text, path, sort, span, first, last, parent, body: None, bases: Vec::new() };
        self.symbols.push(symbol);
        self.symbols.len() - 1
    }

    /// The first token behind attributes in brackets and annotations.
    fn after_attributes(&self, from: usize, to: usize) -> usize {
        let mut at = from;
        while at < to {
            match self.word(at) {
                "[" => at = self.after_group(at, to),
                "@" if self.word(at + 1) != "annotation" => {
                    at += 2;
                    while self.word(at) == "::" {
                        at += 2;
                    }
                    if self.word(at) == "(" {
                        at = self.after_group(at, to);
                    }
                }
                _ => break,
            }
        }
        at.min(to)
    }

    fn after_group(&self, open: usize, to: usize) -> usize {
        let mut depth = 0usize;
        for at in open..to {
            match self.word(at) {
                "(" | "[" => depth += 1,
                ")" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return at + 1;
            }
        }
        to
    }

    /// A declaration ends with the semicolon at `end`.
    fn declaration(&mut self, end: usize) {
        let mut start = self.after_attributes(self.start, end);
        if self.word(start) == "typedef" {
            let from = self.tail.unwrap_or(self.after_attributes(start + 1, end));
            return self.declarators(Sort::Typedef, from, end);
        }
        let within = self.open.iter().rev().find_map(|open| open.sort);
        if let Some(tail) = self.tail {
            let fields = matches!(within, Some(Sort::Struct | Sort::Union | Sort::Exception));
            return if fields {
                self.declarators(Sort::Field, tail, end)
            };
        }
        match self.word(start) {
            "const" => {
                if let Some(equals) = (start..end).find(|&at| self.word(at) == "=") {
                    self.declarators(Sort::Const, start + 1, equals);
                }
                return;
            }
            "attribute" => return self.declarators(Sort::Attribute, start + 1, end),
            "readonly" => return self.declarators(Sort::Attribute, start + 2, end),
            "native" => return self.declarators(Sort::Native, start + 1, end),
            "abstract" | "local" | "custom" => start += 1,
            "import" | "importlib" | "cpp_quote" => return,
            "case" | "default" => {
                let label = (start..end).rev().find(|&at| self.word(at) == ":");
                start = self.after_attributes(label.map_or(end, |at| at + 1), end);
            }
            _ => {}
        }
        if sort_of(self.word(start)).is_some() && start + 2 == end && self.is_name(start + 1) {
            self.symbol(Sort::Forward, start + 1, self.start, end);
            return;
        }
        match within {
            Some(Sort::Struct | Sort::Union | Sort::Exception) => self.declarators(Sort::Field, start, end),
            _ => self.operation(start, end),
        }
    }

    /// A name before a parenthesis.
    fn operation(&mut self, start: usize, end: usize) {
        let called = (start + 1..end).find(|&at| self.word(at) == "(");
        if let Some(open) = called
            && open >= start + 2
            && self.is_name(open - 1)
        {
            self.symbol(Sort::Operation, open - 1, start, end - 1);
        }
    }

    /// Names separated by commas, the first behind a type: each is the last one before its dimensions.
    fn declarators(&mut self, sort: Sort, from: usize, to: usize) {
        let (mut depth, mut name, first) = (0usize, None, self.start);
        for at in from..=to {
            let (is_comma, ends) = (self.word(at) == ",", at == to || self.ends_names(at));
            match self.word(at) {
                _ if at == to => {}
                "(" | "[" | "<" | "{" => depth += 1,
                ")" | "]" | ">" | "}" => depth = depth.saturating_sub(1),
                ">>" => depth = depth.saturating_sub(2),
                _ if depth == 0 && !is_comma && !ends && self.is_name(at) => name = Some(at),
                _ => {}
            }
            if at == to || (depth == 0 && (is_comma || ends)) {
                if let Some(name) = name.take() {
                    self.symbol(sort, name, first, at.saturating_sub(1).max(name));
                }
                if ends {
                    return;
                }
            }
        }
    }

    /// Whether no name stands behind this: the width of a bit field, or what an attribute raises.
    fn ends_names(&self, at: usize) -> bool {
        matches!(self.word(at), ":" | "raises" | "getraises" | "setraises")
    }
}

/// Kind of a declaration that begins with this keyword and may have a body.
fn sort_of(word: &str) -> Option<Sort> {
    Some(match word {
        "module" | "library" => Sort::Module,
        "interface" | "valuetype" | "component" | "home" | "eventtype" | "porttype" | "connector"
        | "dispinterface" | "coclass" => Sort::Interface,
        "struct" | "bitset" => Sort::Struct,
        "union" => Sort::Union,
        "enum" => Sort::Enum,
        "bitmask" => Sort::Bitmask,
        "exception" => Sort::Exception,
        _ => return None,
    })
}

/// A name as it is meant: an underscore keeps a name of CORBA's from being a keyword.
pub fn plain(word: &str, dialect: Dialect) -> &str {
    let escaped = word.strip_prefix('_').filter(|rest| dialect == Dialect::Corba && !rest.is_empty());
    escaped.unwrap_or(word)
}
