//! Evaluation of constant expressions, and conversion to the type of a constant.

use std::rc::Rc;

use crate::codes::Code;
use crate::diag::{Diagnostic, Diags};
use crate::expr::Unary;
use crate::model::{Model, Type, TypeId, Value};
use crate::number;
use crate::source::Span;

/// Applies an operator with one operand. The complement depends on the type of the constant: without a sign, it
/// stays within the type's bits.
pub fn unary(operator: Unary, value: Value, unsigned_bits: Option<u8>) -> Result<Value, &'static str> {
    Ok(match (operator, value) {
        (_, Value::Error) => Value::Error,
        (Unary::Plus, v @ (Value::Int(_) | Value::Float(_) | Value::Fixed(..))) => v,
        (Unary::Minus, Value::Int(v)) => Value::Int(-v),
        (Unary::Minus, Value::Float(v)) => Value::Float(-v),
        (Unary::Minus, Value::Fixed(v, s)) => Value::Fixed(-v, s),
        (Unary::Complement, Value::Int(v)) => match unsigned_bits.map(|bits| range(bits, false).1) {
            Some(max) if (0..=max).contains(&v) => Value::Int(max - v),
            _ => Value::Int(!v),
        },
        _ => return Err("this operator needs a number"),
    })
}

/// Applies an operator with two operands.
pub fn binary(operator: &str, left: Value, right: Value) -> Result<Value, &'static str> {
    let value = match (left, right) {
        (Value::Error, _) | (_, Value::Error) => Value::Error,
        (Value::Int(a), Value::Int(b)) => Value::Int(whole(operator, a, b)?),
        (Value::Float(a), Value::Float(b)) => Value::Float(float(operator, a, b)?),
        (Value::Int(a), Value::Float(b)) => Value::Float(float(operator, a as f64, b)?),
        (Value::Float(a), Value::Int(b)) => Value::Float(float(operator, a, b as f64)?),
        (Value::Fixed(a, s), Value::Fixed(b, t)) => fixed(operator, (a, s), (b, t))?,
        (Value::Bool(a), Value::Bool(b)) => Value::Bool(match operator {
            "|" => a | b,
            "&" => a & b,
            "^" => a ^ b,
            _ => return Err("this operator does not work on truth values"),
        }),
        _ => return Err("the two sides of this operator do not go together"),
    };
    let real = match value {
        Value::Int(v) => v.unsigned_abs() <= 1 << 100,
        Value::Float(v) => v.is_finite(),
        Value::Fixed(v, s) => v.unsigned_abs() <= 1 << 110 && s <= 62,
        _ => true,
    };
    if real { Ok(value) } else { Err("this value is too large") }
}

fn whole(operator: &str, a: i128, b: i128) -> Result<i128, &'static str> {
    let shift = || (0..64).contains(&b).then_some(b as u32).ok_or("a shift is by 0 to 63 places");
    let large = "this value is too large";
    Ok(match operator {
        "|" => a | b,
        "&" => a & b,
        "^" => a ^ b,
        // Bits that leave a 64-bit value are gone, as in the languages that stubs are written in.
        "<<" => {
            a.checked_shl(shift()?).map(|v| if a >= 0 { v & u64::MAX as i128 } else { v }).ok_or(large)?
        }
        ">>" => a >> shift()?,
        "+" => a.checked_add(b).ok_or(large)?,
        "-" => a.checked_sub(b).ok_or(large)?,
        "*" => a.checked_mul(b).ok_or(large)?,
        "/" => a.checked_div(b).ok_or("division by zero")?,
        "%" => a.checked_rem(b).ok_or("division by zero")?,
        _ => return Err("this operator does not work here"),
    })
}

fn float(operator: &str, a: f64, b: f64) -> Result<f64, &'static str> {
    Ok(match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" if b == 0.0 => return Err("division by zero"),
        "/" => a / b,
        _ => return Err("this operator needs whole numbers"),
    })
}

fn fixed(operator: &str, (a, s): (i128, u32), (b, t): (i128, u32)) -> Result<Value, &'static str> {
    let large = "this value is too large";
    let scale = s.max(t);
    let align =
        |v: i128, from: u32| 10i128.checked_pow(scale - from).and_then(|p| v.checked_mul(p)).ok_or(large);
    Ok(match operator {
        "+" => Value::Fixed(align(a, s)?.checked_add(align(b, t)?).ok_or(large)?, scale),
        "-" => Value::Fixed(align(a, s)?.checked_sub(align(b, t)?).ok_or(large)?, scale),
        "*" => Value::Fixed(a.checked_mul(b).ok_or(large)?, s + t),
        "/" => {
            if b == 0 {
                return Err("division by zero");
            }
            // Eight further digits; a constant with more is cut.
            let scaled = align(a, s)?.checked_mul(100_000_000).ok_or(large)?;
            Value::Fixed(scaled / align(b, t)?, 8)
        }
        _ => return Err("this operator does not work on fixed-point numbers"),
    })
}

/// A fixed-point literal, without its `d`.
pub fn fixed_literal(text: &str) -> Option<Value> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{part}");
    if digits.len() > 31 {
        return None;
    }
    Some(Value::Fixed(digits.parse().ok()?, part.len() as u32))
}

/// The smallest and largest value of a whole-number type.
pub fn range(bits: u8, signed: bool) -> (i128, i128) {
    if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) }
}

/// Makes a value fit the type of a constant, or says why it does not.
pub fn convert(model: &Model, diags: &mut Diags, value: Value, ty: TypeId, span: Span) -> Value {
    let resolved = model.resolved(ty);
    let mut target = Target { model, diags, ty, span };
    match (model.ty(resolved), value) {
        (Type::Error, _) | (_, Value::Error) => Value::Error,
        (Type::Int { bits, signed }, value @ Value::Int(v)) => target.ranged(value, v, range(*bits, *signed)),
        (Type::Bitmask(_, bits, _), value @ Value::Int(v)) => target.ranged(value, v, range(*bits, false)),
        (Type::Octet, value @ Value::Int(v)) => target.ranged(value, v, (0, 255)),
        (Type::Float(32), Value::Float(v)) if (v as f32).is_infinite() => {
            target.refused(Code::Range, format!("{v:e} is out of range for `float`"))
        }
        (Type::Float(_), Value::Float(v)) => Value::Float(v),
        (Type::Float(_), Value::Int(v)) => {
            let message = format!("a whole number is no value of the type `{}`", model.show(ty));
            let help = format!("write `{v}.0`");
            target.report(Diagnostic::error(Code::ConstType, span, message).help(help))
        }
        (Type::Fixed(_, digits, scale), Value::Fixed(v, s)) => {
            // A constant may be declared `fixed` alone; then it takes what the value has.
            let whole = v.unsigned_abs().checked_div(10u128.checked_pow(s).unwrap_or(u128::MAX)).unwrap_or(0);
            if *digits > 0 && whole >= 10u128.checked_pow(digits - scale).unwrap_or(u128::MAX) {
                let message = format!("this value does not fit into `{}`", model.show(ty));
                return target.refused(Code::Range, message);
            }
            Value::Fixed(v, s)
        }
        (Type::Bool, v @ Value::Bool(_)) => v,
        (Type::Char, value @ Value::Char(v)) => target.ranged(value, v.into(), (0, 255)),
        (Type::WideChar, Value::WideChar(v)) => Value::WideChar(v),
        // `const wchar c = 'x';` lacks its L, but cannot mean anything else.
        (Type::WideChar, Value::Char(v)) => Value::WideChar(v),
        (Type::Str { wide, bound, .. }, Value::Str(text)) => target.text(text, *wide, *bound),
        (Type::Str { wide: true, bound, .. }, Value::WideStr(text)) => target.text(text, true, *bound),
        (Type::Enum(..), Value::Enum(of, v)) if of == resolved => Value::Enum(of, v),
        (_, value) => target.mismatch(&value),
    }
}

/// The type of a constant, and where one that does not fit is reported.
struct Target<'a> {
    model: &'a Model,
    diags: &'a mut Diags,
    ty: TypeId,
    span: Span,
}

impl Target<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Value {
        self.diags.push(diagnostic);
        Value::Error
    }

    fn refused(&mut self, code: Code, message: impl Into<String>) -> Value {
        self.report(Diagnostic::error(code, self.span, message))
    }

    /// The value, if its number `v` is in range.
    fn ranged(&mut self, value: Value, v: i128, (low, high): (i128, i128)) -> Value {
        if (low..=high).contains(&v) {
            return value;
        }
        let message = format!("{v} is out of range for `{}`", self.model.show(self.ty));
        let help = format!("it holds {low} to {high}");
        self.report(Diagnostic::error(Code::Range, self.span, message).help(help))
    }

    /// A string, if it is short enough and has no zero in it.
    fn text(&mut self, text: Rc<[u32]>, wide: bool, bound: Option<u64>) -> Value {
        if bound.is_some_and(|b| text.len() as u64 > b) {
            let (len, ty) = (text.len(), self.model.show(self.ty));
            return self
                .refused(Code::Range, format!("a string of {len} characters does not fit into `{ty}`"));
        }
        if text.contains(&0) {
            return self.refused(Code::Literal, "a string constant cannot hold the character 0");
        }
        if wide { Value::WideStr(text) } else { Value::Str(text) }
    }

    /// A value of another kind.
    fn mismatch(&mut self, value: &Value) -> Value {
        let what = match value {
            Value::Int(_) => "a whole number".to_owned(),
            Value::Float(_) => "a floating-point number".into(),
            Value::Fixed(..) => "a fixed-point number".into(),
            Value::Bool(_) => "a truth value".into(),
            Value::Char(_) => "a character".into(),
            Value::WideChar(_) => "a wide character".into(),
            Value::Str(_) => "a string".into(),
            Value::WideStr(_) => "a wide string".into(),
            Value::Enum(of, _) => format!("a name of `{}`", self.model.show(*of)),
            Value::Error => "this".into(),
        };
        let ty = self.model.show(self.ty);
        let message = format!("{what} is no value of the type `{ty}`");
        let label = format!("expected `{ty}`");
        self.report(Diagnostic::error(Code::ConstType, self.span, message).label(label))
    }
}

/// Whether a spelling can be a version such as `1.2`.
pub fn is_version(text: &str) -> bool {
    let digits = |t: &str| !t.is_empty() && t.len() < 6 && t.chars().all(|c| c.is_ascii_digit());
    text.split_once('.').is_some_and(|(major, minor)| digits(major) && digits(minor))
        || number::looks_whole(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic() {
        assert_eq!(binary("+", Value::Int(1), Value::Int(2)), Ok(Value::Int(3)));
        assert_eq!(binary("<<", Value::Int(1), Value::Int(63)), Ok(Value::Int(1 << 63)));
        assert_eq!(binary("<<", Value::Int(2), Value::Int(63)), Ok(Value::Int(0)));
        assert_eq!(binary("<<", Value::Int(1), Value::Int(64)), Err("a shift is by 0 to 63 places"));
        assert_eq!(binary("/", Value::Int(1), Value::Int(0)), Err("division by zero"));
        assert_eq!(binary("*", Value::Int(1 << 90), Value::Int(1 << 20)), Err("this value is too large"));
        assert_eq!(binary("+", Value::Fixed(15, 1), Value::Fixed(25, 2)), Ok(Value::Fixed(175, 2)));
        assert_eq!(fixed_literal("2.40"), Some(Value::Fixed(240, 2)));
    }
}
