//! Expressions, as a list in the order of evaluation (operands before their operator).
//!
//! A list and not a tree: evaluation needs a small stack of values and no recursion, and freeing a long
//! expression cannot overflow the stack either.

use std::rc::Rc;

use crate::codes::Code;
use crate::cursor::{Cursor, Ident, Parse};
use crate::diag::Diagnostic;
use crate::intern::Symbol;
use crate::lex::{Kind, Token};
use crate::limits;
use crate::number;
use crate::source::Span;

/// A name with its qualifiers, `::A::B`.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopedName {
    /// It starts with `::`.
    pub absolute: bool,
    /// The names.
    pub parts: Vec<Ident>,
    /// The place of all of it.
    pub span: Span,
}

/// A step of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A whole number.
    Int(u64),
    /// A floating-point number.
    Float(f64),
    /// A fixed-point number, as spelled without its `d`.
    Fixed(Symbol),
    /// A character.
    Char(u32),
    /// A wide character.
    WideChar(u32),
    /// A string.
    Str(Rc<[u32]>),
    /// A wide string.
    WideStr(Rc<[u32]>),
    /// `TRUE` or `FALSE`.
    Bool(bool),
    /// A name.
    Name(ScopedName),
    /// A name in parentheses, in C: a value, or a conversion of what follows if the name is a type's, so that the
    /// operator behind it has one operand.
    Grouped(ScopedName),
    /// An operator with one operand.
    Unary(Unary),
    /// An operator with two operands.
    Binary(&'static str),
    /// `a ? b : c`, three operands.
    Conditional,
    /// `a.b` or `a->b`.
    Member(Symbol),
    /// `a[b]`, two operands.
    Index,
    /// A call of an unknown function with so many arguments; the function is the first operand.
    Call(usize),
    /// `sizeof(name)`.
    SizeOf(Symbol),
    /// `sizeof(…)` of more than a name: the value depends on types of C that are not modelled.
    Opaque,
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `~`
    Complement,
    /// `!`
    Not,
    /// `*`
    Deref,
    /// `&`
    Address,
    /// A conversion such as `(unsigned long)`, to a type that is not looked at.
    Convert,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The steps.
    pub items: Vec<(Item, Span)>,
    /// The place.
    pub span: Span,
}

impl Expr {
    /// The expression as a single name, if it is one.
    pub fn name(&self) -> Option<&ScopedName> {
        match self.items.as_slice() {
            [(Item::Name(name), _)] => Some(name),
            _ => None,
        }
    }
}

/// Which operators a dialect has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// OMG IDL: arithmetic and bits.
    Omg,
    /// C, as far as DCE and MS IDL use it.
    C,
}

const OPERATORS: [(&str, u8); 18] = [
    ("||", 2),
    ("&&", 3),
    ("|", 4),
    ("^", 5),
    ("&", 6),
    ("==", 7),
    ("!=", 7),
    ("<", 8),
    (">", 8),
    ("<=", 8),
    (">=", 8),
    ("<<", 9),
    (">>", 9),
    ("+", 10),
    ("-", 10),
    ("*", 11),
    ("/", 11),
    ("%", 11),
];

impl Cursor<'_> {
    /// Parses an expression.
    pub fn expr(&mut self, style: Style) -> Parse<Expr> {
        let start = self.span();
        let mut items = Vec::new();
        self.ternary(style, &mut items)?;
        Ok(Expr { items, span: start.to(self.last_span()) })
    }

    /// Parses a name with its qualifiers.
    pub fn scoped_name(&mut self) -> Parse<ScopedName> {
        let start = self.span();
        let absolute = self.eat("::");
        let mut parts = Vec::new();
        loop {
            if self.peek().kind != Kind::Ident {
                return self.unexpected("a name");
            }
            parts.push(self.ident_token());
            if !self.is("::") {
                break;
            }
            self.bump();
        }
        Ok(ScopedName { absolute, parts, span: start.to(self.last_span()) })
    }

    /// Takes a name, with the underscore that escapes a keyword removed.
    pub fn ident_token(&mut self) -> Ident {
        let token = self.bump();
        let text = self.s.names.text(token.text);
        let name = match text.strip_prefix('_') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_alphabetic()) && self.unescapes() => {
                let rest = rest.to_owned();
                self.s.names.intern(&rest)
            }
            _ => token.text,
        };
        Ident { name, span: token.span }
    }

    fn push_item(&mut self, items: &mut Vec<(Item, Span)>, item: Item, span: Span) -> Parse<()> {
        if items.len() >= limits::EXPRESSION_ITEMS_MAX {
            let message = format!("this expression has more than {} parts", limits::EXPRESSION_ITEMS_MAX);
            return self.fail(Diagnostic::error(Code::Limit, span, message));
        }
        items.push((item, span));
        Ok(())
    }

    fn ternary(&mut self, style: Style, items: &mut Vec<(Item, Span)>) -> Parse<()> {
        self.nested(|c| {
            let start = c.span();
            c.binary(style, 2, items)?;
            if style == Style::C && c.eat("?") {
                c.ternary(style, items)?;
                c.expect(":")?;
                c.ternary(style, items)?;
                c.push_item(items, Item::Conditional, start.to(c.last_span()))?;
            }
            Ok(())
        })
    }

    fn binary(&mut self, style: Style, least: u8, items: &mut Vec<(Item, Span)>) -> Parse<()> {
        let start = self.span();
        self.unary(style, items)?;
        loop {
            if self.closes_angle() {
                return Ok(());
            }
            let word = self.word();
            let Some(&(operator, strength)) = OPERATORS.iter().find(|o| o.0 == word && o.1 >= least) else {
                return Ok(());
            };
            let omg = matches!(operator, "|" | "^" | "&" | "<<" | ">>" | "+" | "-" | "*" | "/" | "%");
            if style == Style::Omg && !omg {
                return Ok(());
            }
            self.bump();
            self.binary(style, strength + 1, items)?;
            self.push_item(items, Item::Binary(operator), start.to(self.last_span()))?;
        }
    }

    fn unary(&mut self, style: Style, items: &mut Vec<(Item, Span)>) -> Parse<()> {
        let start = self.span();
        let operator = match self.word() {
            "+" => Some(Unary::Plus),
            "-" => Some(Unary::Minus),
            "~" => Some(Unary::Complement),
            "!" if style == Style::C => Some(Unary::Not),
            "*" if style == Style::C => Some(Unary::Deref),
            "&" if style == Style::C => Some(Unary::Address),
            _ => None,
        };
        match operator {
            Some(operator) => {
                self.bump();
                self.nested(|c| c.unary(style, items))?;
                self.push_item(items, Item::Unary(operator), start.to(self.last_span()))
            }
            None => {
                self.primary(style, items)?;
                if style == Style::C { self.postfix(items, start) } else { Ok(()) }
            }
        }
    }

    fn postfix(&mut self, items: &mut Vec<(Item, Span)>, start: Span) -> Parse<()> {
        loop {
            if self.eat(".") || self.eat("->") {
                if self.peek().kind != Kind::Ident {
                    return self.unexpected("the name of a member");
                }
                let name = self.bump().text;
                self.push_item(items, Item::Member(name), start.to(self.last_span()))?;
            } else if self.is("[") {
                self.bump();
                self.ternary(Style::C, items)?;
                self.expect("]")?;
                self.push_item(items, Item::Index, start.to(self.last_span()))?;
            } else if self.is("(") {
                self.bump();
                let mut count = 0;
                while !self.is(")") {
                    self.ternary(Style::C, items)?;
                    count += 1;
                    if !self.eat(",") {
                        break;
                    }
                }
                self.expect(")")?;
                self.push_item(items, Item::Call(count), start.to(self.last_span()))?;
            } else {
                return Ok(());
            }
        }
    }

    fn primary(&mut self, style: Style, items: &mut Vec<(Item, Span)>) -> Parse<()> {
        let token = self.peek();
        let text = self.s.names.shared(token.text);
        let item = match token.kind {
            Kind::Number => {
                self.bump();
                self.number(&text, token.span, style)?
            }
            Kind::Char | Kind::WideChar => {
                self.bump();
                let characters = self.literal(&text, token.span)?;
                let [one] = characters[..] else {
                    let message = "a character literal holds exactly one character";
                    return self.fail(Diagnostic::error(Code::Literal, token.span, message));
                };
                if token.kind == Kind::Char { Item::Char(one) } else { Item::WideChar(one) }
            }
            Kind::Str => Item::Str(self.strings(&token)?.into()),
            Kind::WideStr => Item::WideStr(self.strings(&token)?.into()),
            Kind::Punct if &*text == "(" && style == Style::C && self.is_cast() => {
                self.group()?;
                self.nested(|c| c.unary(style, items))?;
                Item::Unary(Unary::Convert)
            }
            Kind::Punct if &*text == "(" => return self.grouped(style, items),
            Kind::Ident if style == Style::C && &*text == "sizeof" => {
                self.bump();
                let name = self.peek_at(1);
                let alone = self.is("(") && name.kind == Kind::Ident && self.word_at(2) == ")";
                if self.is("(") {
                    self.group()?;
                }
                if alone { Item::SizeOf(name.text) } else { Item::Opaque }
            }
            Kind::Ident if matches!(&*text, "TRUE" | "FALSE") => {
                self.bump();
                Item::Bool(&*text == "TRUE")
            }
            Kind::Ident => Item::Name(self.scoped_name()?),
            Kind::Punct if &*text == "::" => Item::Name(self.scoped_name()?),
            _ => return self.unexpected("a value"),
        };
        let span = token.span.to(self.last_span());
        self.push_item(items, item, span)
    }

    /// The characters of string literals that follow one another, all of the kind of the first.
    fn strings(&mut self, first: &Token) -> Parse<Vec<u32>> {
        let mut all = Vec::new();
        while self.peek().kind == first.kind {
            let next = self.bump();
            let text = self.s.names.shared(next.text);
            all.extend(self.literal(&text, next.span)?);
            if all.len() > limits::STRING_BYTES_MAX {
                let message = format!("this string is longer than {}", limits::STRING_BYTES_MAX);
                return self.fail(Diagnostic::error(Code::Limit, first.span, message));
            }
        }
        Ok(all)
    }

    /// An expression in parentheses.
    fn grouped(&mut self, style: Style, items: &mut Vec<(Item, Span)>) -> Parse<()> {
        let open = self.bump().span;
        let first = items.len();
        self.in_parentheses(|c| c.ternary(style, items))?;
        self.close(")", open)?;
        if style == Style::C
            && items.len() == first + 1
            && let Some((item @ Item::Name(_), _)) = items.last_mut()
            && let Item::Name(name) = item.clone()
        {
            *item = Item::Grouped(name);
        }
        Ok(())
    }

    /// Whether the `(` that is next starts a conversion such as `(unsigned long)` or `(T *)`.
    fn is_cast(&self) -> bool {
        let basic = [
            "unsigned", "signed", "long", "short", "int", "char", "float", "double", "void", "const",
            "struct",
        ];
        if basic.contains(&self.word_at(1)) {
            return self.word_at(2) != "(";
        }
        let mut n = 2;
        while self.word_at(n) == "*" {
            n += 1;
        }
        let operand = |c: &Self| {
            let next = c.peek_at(n + 1);
            matches!(next.kind, Kind::Ident | Kind::Number | Kind::Char | Kind::Str)
                || matches!(c.word_at(n + 1), "(" | "~" | "!")
        };
        self.peek_at(1).kind == Kind::Ident && self.word_at(n) == ")" && (n > 2 || operand(self))
    }

    fn literal(&mut self, text: &str, span: Span) -> Parse<Vec<u32>> {
        number::characters(text).or_else(|why| {
            let message = match why {
                number::Escape::Unknown => "unknown escape sequence",
                number::Escape::Digits => "this escape sequence has no digits",
            };
            self.fail(Diagnostic::error(Code::Literal, span, message))
        })
    }

    fn number(&mut self, text: &str, span: Span, style: Style) -> Parse<Item> {
        let hex = text.starts_with("0x") || text.starts_with("0X");
        if let Some(fixed) = text.strip_suffix(['d', 'D']).filter(|_| !hex && style == Style::Omg) {
            let plain =
                fixed.chars().all(|c| c.is_ascii_digit() || c == '.') && fixed.matches('.').count() <= 1;
            if plain {
                return Ok(Item::Fixed(self.s.names.intern(fixed)));
            }
        }
        let whole = match style {
            Style::Omg => text,
            Style::C => {
                let sized = text.strip_suffix("i64").or(text.strip_suffix("I64")).unwrap_or(text);
                sized.trim_end_matches(['u', 'U', 'l', 'L'])
            }
        };
        if let Some(value) = number::integer(whole) {
            return Ok(Item::Int(value));
        }
        let real = if style == Style::C && !hex { text.trim_end_matches(['f', 'F', 'l', 'L']) } else { text };
        if let Some(value) = number::float(real) {
            return Ok(Item::Float(value));
        }
        let message = if number::looks_whole(whole) {
            format!("`{text}` does not fit into 64 bits")
        } else if whole.starts_with('0') && whole.chars().all(|c| c.is_ascii_digit()) {
            format!(
                "`{text}` is not a number: digits 8 and 9 do not exist in octal, and a leading 0 means octal"
            )
        } else {
            format!("`{text}` is not a number")
        };
        let code = if number::looks_whole(whole) { Code::Range } else { Code::Literal };
        self.fail(Diagnostic::error(code, span, message))
    }
}
