//! The expression behind `#if`.

use super::Pp;
use crate::codes::Code;
use crate::lex::{Kind, Token};
use crate::limits;

/// Binding strengths; C's.
fn strength(operator: &str) -> Option<u8> {
    Some(match operator {
        "||" => 1,
        "&&" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "==" | "!=" => 6,
        "<" | ">" | "<=" | ">=" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "%" => 10,
        _ => return None,
    })
}

struct Condition<'p, 'a> {
    pp: &'p mut Pp<'a>,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    failed: Option<(Option<Token>, &'static str)>,
}

impl Pp<'_> {
    /// Whether the tokens of an `#if` come to something other than zero.
    pub(super) fn condition(&mut self, word: &Token, tokens: Vec<Token>) -> bool {
        let tokens = self.resolve_defined(tokens);
        let tokens = self.expand_list(tokens);
        let mut condition = Condition { pp: self, tokens, at: 0, depth: 0, failed: None };
        let value = condition.ternary();
        if condition.failed.is_none() && condition.at < condition.tokens.len() {
            condition.fail("an operator is missing before this");
        }
        if let Some((token, what)) = condition.failed.take() {
            let span = token.map_or(word.span, |t| t.span);
            condition.pp.error(Code::Condition, span, format!("this condition cannot be understood: {what}"));
            return false;
        }
        value.bits != 0
    }

    /// Replaces `defined X` before macros are expanded.
    fn resolve_defined(&mut self, tokens: Vec<Token>) -> Vec<Token> {
        let mut out = Vec::new();
        let mut i = 0;
        while i < tokens.len() {
            let token = tokens[i];
            if token.text != self.known.defined {
                out.push(token);
                i += 1;
                continue;
            }
            let text = |n: usize| tokens.get(n).map_or("", |t| self.s.text(t));
            let (name, used) = match (text(i + 1), text(i + 3)) {
                ("(", ")") => (tokens[i + 2], 4),
                _ => (tokens.get(i + 1).copied().unwrap_or(token), 2),
            };
            let value = if name.kind == Kind::Ident && self.is_defined(name.text) { "1" } else { "0" };
            out.push(Token { kind: Kind::Number, text: self.s.names.intern(value), ..token });
            i += used;
        }
        out
    }
}

impl Condition<'_, '_> {
    fn text(&self) -> &str {
        self.tokens.get(self.at).map_or("", |t| self.pp.s.names.text(t.text))
    }

    fn fail(&mut self, what: &'static str) -> Number {
        if self.failed.is_none() {
            self.failed = Some((self.tokens.get(self.at).or(self.tokens.last()).copied(), what));
        }
        self.at = self.tokens.len();
        Number::from(0)
    }

    fn ternary(&mut self) -> Number {
        self.depth += 1;
        if self.depth > limits::NESTING_MAX {
            return self.fail("it is nested too deeply");
        }
        let condition = self.binary(1);
        let mut value = condition;
        if self.text() == "?" {
            self.at += 1;
            let yes = self.ternary();
            if self.text() != ":" {
                return self.fail("`:` is missing");
            }
            self.at += 1;
            let no = self.ternary();
            let chosen = if condition.bits != 0 { yes } else { no };
            value = Number { bits: chosen.bits, unsigned: yes.unsigned || no.unsigned };
        }
        self.depth -= 1;
        value
    }

    fn binary(&mut self, least: u8) -> Number {
        let mut left = self.unary();
        loop {
            let operator = self.text().to_owned();
            let Some(strength) = strength(&operator).filter(|&s| s >= least) else { return left };
            self.at += 1;
            let right = self.binary(strength + 1);
            left = combine(&operator, left, right);
        }
    }

    fn unary(&mut self) -> Number {
        self.depth += 1;
        if self.depth > limits::NESTING_MAX {
            return self.fail("it is nested too deeply");
        }
        let Some(token) = self.tokens.get(self.at).copied() else {
            return self.fail("an operand is missing");
        };
        let text = self.pp.s.text(&token).to_owned();
        let value = match (token.kind, text.as_str()) {
            (Kind::Punct, "!") => {
                self.at += 1;
                Number::from(i64::from(self.unary().bits == 0))
            }
            (Kind::Punct, "+") => {
                self.at += 1;
                self.unary()
            }
            (Kind::Punct, operator @ ("-" | "~")) => {
                self.at += 1;
                let value = self.unary();
                let bits = if operator == "-" { value.bits.wrapping_neg() } else { !value.bits };
                Number { bits, ..value }
            }
            (Kind::Punct, "(") => {
                self.at += 1;
                let value = self.ternary();
                if self.text() != ")" {
                    return self.fail("`)` is missing");
                }
                self.at += 1;
                value
            }
            (Kind::Number, text) => match Number::read(text) {
                Some(value) => {
                    self.at += 1;
                    value
                }
                None => self.fail("this is not a whole number"),
            },
            (Kind::Char, text) => {
                self.at += 1;
                Number::from(crate::number::character(text).map_or(0, |c| c as i64))
            }
            (Kind::Ident, _) => {
                self.at += 1;
                // A function-like macro that is not defined, such as __has_include(x): zero, with its arguments.
                if self.text() == "(" {
                    self.skip_arguments();
                }
                Number::from(0)
            }
            _ => self.fail("this is not an operand"),
        };
        self.depth -= 1;
        value
    }

    /// Goes behind the parenthesis that closes the one here.
    fn skip_arguments(&mut self) {
        let mut depth = 0i64;
        while self.at < self.tokens.len() {
            depth += match self.text() {
                "(" => 1,
                ")" => -1,
                _ => 0,
            };
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
    }
}

/// A value of a condition: 64 bits, with or without a sign, as C has it.
#[derive(Clone, Copy, Debug)]
struct Number {
    bits: i64,
    unsigned: bool,
}

impl Number {
    /// The number that a text is. It has no sign if it says so, or is too large to have one.
    fn read(text: &str) -> Option<Number> {
        let value = crate::number::integer(text.trim_end_matches(['u', 'U', 'l', 'L']))?;
        let unsigned = text.contains(['u', 'U']) || i64::try_from(value).is_err();
        Some(Number { bits: value as i64, unsigned })
    }
}

impl From<i64> for Number {
    fn from(bits: i64) -> Number {
        Number { bits, unsigned: false }
    }
}

/// Two operands: if one has no sign, neither has the other. Shifts look at the left one alone.
fn combine(operator: &str, left: Number, right: Number) -> Number {
    let (a, b) = (left.bits, right.bits);
    let unsigned = left.unsigned || right.unsigned;
    let order = if unsigned { (a as u64).cmp(&(b as u64)) } else { a.cmp(&b) };
    let truth = |value: bool| Number::from(i64::from(value));
    let bits = match operator {
        "||" => return truth(a != 0 || b != 0),
        "&&" => return truth(a != 0 && b != 0),
        "==" => return truth(a == b),
        "!=" => return truth(a != b),
        "<" => return truth(order.is_lt()),
        ">" => return truth(order.is_gt()),
        "<=" => return truth(order.is_le()),
        ">=" => return truth(order.is_ge()),
        "<<" => return Number { bits: a.wrapping_shl(b as u32), ..left },
        ">>" if left.unsigned => return Number { bits: (a as u64).wrapping_shr(b as u32) as i64, ..left },
        ">>" => return Number { bits: a.wrapping_shr(b as u32), ..left },
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        // Division by zero counts as zero: it may stand in a branch that `&&` cut off.
        "/" if unsigned => (a as u64).checked_div(b as u64).unwrap_or(0) as i64,
        "/" => a.checked_div(b).unwrap_or(0),
        _ if unsigned => (a as u64).checked_rem(b as u64).unwrap_or(0) as i64,
        _ => a.checked_rem(b).unwrap_or(0),
    };
    Number { bits, unsigned }
}
