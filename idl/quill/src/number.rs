//! Spellings of numbers, characters and strings to values.

use std::iter::Peekable;
use std::str::Chars;

/// A whole number in decimal, octal or hexadecimal; no sign, no suffix.
pub fn integer(text: &str) -> Option<u64> {
    match text.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => u64::from_str_radix(&text[2..], 16).ok(),
        [b'0', b'b' | b'B', _, ..] => u64::from_str_radix(&text[2..], 2).ok(),
        [b'0', b'0'..=b'9', ..] => u64::from_str_radix(&text[1..], 8).ok(),
        [b'0'..=b'9', ..] => text.parse().ok(),
        _ => None,
    }
}

/// Whether a spelling has the form of a whole number, large or not.
pub fn looks_whole(text: &str) -> bool {
    let digits = |t: &str, ok: fn(char) -> bool| !t.is_empty() && t.chars().all(ok);
    match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => digits(&text[2..], |c| c.is_ascii_hexdigit()),
        [b'0', ..] => digits(text, |c| ('0'..='7').contains(&c)),
        _ => digits(text, |c| c.is_ascii_digit()),
    }
}

/// A floating-point number: digits with a point, an exponent, or both.
pub fn float(text: &str) -> Option<f64> {
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    let starts = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let special = text.contains(['.', 'e', 'E']);
    if !starts || !special || !text.chars().all(plain) || !text.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Why a literal has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// An unknown escape.
    Unknown,
    /// An escape without digits, or out of range.
    Digits,
}

/// The characters between the quotes of a string or character literal.
pub fn characters(text: &str) -> Result<Vec<u32>, Escape> {
    let text = text.strip_prefix('L').unwrap_or(text);
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
    let mut out = Vec::with_capacity(inner.len());
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c as u32);
            continue;
        }
        out.push(match chars.next() {
            Some('n') => 10,
            Some('t') => 9,
            Some('v') => 11,
            Some('b') => 8,
            Some('r') => 13,
            Some('f') => 12,
            Some('a') => 7,
            Some(c @ ('\\' | '?' | '\'' | '"')) => c as u32,
            Some('x') => digits(&mut chars, 16, 2).ok_or(Escape::Digits)?,
            Some('u') => digits(&mut chars, 16, 4).ok_or(Escape::Digits)?,
            Some(c @ '0'..='7') => {
                let first = c as u32 - '0' as u32;
                let rest = chars.clone().take(2).take_while(|c| c.is_digit(8)).count();
                match digits(&mut chars, 8, 2) {
                    Some(value) => (first << (3 * rest)) + value,
                    None => first,
                }
            }
            _ => return Err(Escape::Unknown),
        });
    }
    Ok(out)
}

/// Up to `max` digits; `None` when there are none.
fn digits(chars: &mut Peekable<Chars>, radix: u32, max: usize) -> Option<u32> {
    let mut value = None;
    for _ in 0..max {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else { break };
        value = Some(value.unwrap_or(0) * radix + digit);
        chars.next();
    }
    value
}

/// The value of a character literal with exactly one character.
pub fn character(text: &str) -> Option<u32> {
    match characters(text).ok()?.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(integer("0x1F"), Some(31));
        assert_eq!(integer("011"), Some(9));
        assert_eq!(integer("08"), None);
        assert_eq!(integer("18446744073709551615"), Some(u64::MAX));
        assert_eq!(integer("18446744073709551616"), None);
        assert_eq!(float("14."), Some(14.0));
        assert_eq!(float(".14"), Some(0.14));
        assert_eq!(float("14e-3"), Some(0.014));
        assert_eq!(float("14e"), None);
        assert_eq!(float("14"), None);
    }

    #[test]
    fn literals() {
        assert_eq!(characters("\"a\\x41\\101\\n\""), Ok(vec![97, 65, 65, 10]));
        assert_eq!(characters("L'\\u002E'"), Ok(vec![0x2E]));
        assert_eq!(characters("'\\q'"), Err(Escape::Unknown));
        assert_eq!(characters("'\\x'"), Err(Escape::Digits));
        assert_eq!(character("'\\0'"), Some(0));
        assert_eq!(character("'ab'"), None);
    }
}
