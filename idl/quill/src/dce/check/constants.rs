//! Constants and expressions, computed as C does.

use super::*;

impl Checker<'_> {
    pub(super) fn constant(&mut self, spec: &Spec, declarator: &Declarator, expr: &Expr) {
        let ty = self.spec(spec, &[], false);
        let ty = self.derive(ty, declarator, &[], false);
        let Some(name) = declarator.name else { return };
        let value = self.eval(expr);
        let value = if self.is_converted(expr) { self.lowest_bits(value, ty) } else { value };
        let value = self.convert(value, ty, expr.span);
        if let Some(&(_, first, false)) = self.ordinary.get(&name.name)
            && self.s.map.file_index(first) == self.s.map.file_index(name.span)
        {
            // What is said again is no news.
            if !self.is_same_constant(name, ty, &value) {
                self.twice(name, first);
            }
            return;
        }
        let imported = !self.in_main(name.span);
        self.model.consts.push(Const { name: self.owned(name.name), ty, value, imported });
        self.declare(name, Entry::Const(self.model.consts.len() - 1), false);
    }

    /// Whether a name is that of a constant with that type and value.
    fn is_same_constant(&self, name: Ident, ty: TypeId, value: &Value) -> bool {
        let Some(&(Entry::Const(index), ..)) = self.ordinary.get(&name.name) else { return false };
        let old = &self.model.consts[index];
        let [of, to] = [old.ty, ty].map(|ty| self.model.ty(self.model.resolved(ty)));
        let alike = of == to || matches!((of, to), (Type::Pointer(..), Type::Pointer(..)));
        alike && old.value == *value && *value != Value::Error
    }

    /// Whether a conversion to a type is written in an expression, as in `(T)-1`.
    fn is_converted(&self, expr: &Expr) -> bool {
        let converts = |step: &Step| match step {
            Step::Unary(Unary::Convert) => true,
            Step::Grouped(name) => self.is_type(name.parts[0].name),
            _ => false,
        };
        expr.items.iter().any(|(step, _)| converts(step))
    }

    /// A number as one of its type that has the same bits, if they are not too many: what is converted by name is meant so.
    fn lowest_bits(&self, value: Value, ty: TypeId) -> Value {
        match (self.model.ty(self.model.resolved(ty)), value) {
            (Type::Int { bits, signed }, Value::Int(v)) if v.unsigned_abs() < 1 << bits => {
                Value::Int(cut(v, *bits, *signed))
            }
            (Type::Octet, Value::Int(v)) if v.unsigned_abs() < 1 << 8 => Value::Int(cut(v, 8, false)),
            (_, value) => value,
        }
    }

    /// A value as one of the type that a constant is declared with, as C converts it.
    pub(super) fn convert(&mut self, value: Value, ty: TypeId, span: Span) -> Value {
        let resolved = self.model.resolved(ty);
        match (self.model.ty(resolved), &value) {
            (Type::Int { bits, signed }, Value::Int(v)) => {
                let (bits, signed) = (*bits, *signed);
                Value::Int(self.wrapped(*v, (bits, signed), ty, span))
            }
            (Type::Octet, Value::Int(v)) => Value::Int(self.wrapped(*v, (8, false), ty, span)),
            (Type::Char, Value::Int(v)) => Value::Char(self.wrapped(*v, (8, false), ty, span) as u32),
            (Type::WideChar, Value::Int(v)) => {
                Value::WideChar(self.wrapped(*v, (16, false), ty, span) as u32)
            }
            (Type::Bool, Value::Int(v)) => {
                if !(0..=1).contains(v) {
                    let message = format!("{v} is out of range for `boolean` and becomes TRUE");
                    self.s.diags.push(Diagnostic::warning(Code::Range, span, message));
                }
                Value::Bool(*v != 0)
            }
            // What a program gets for a number of an enum that has some below zero.
            (Type::Enum(_, members), Value::Int(v)) if members.iter().any(|m| m.1 < 0) => {
                Value::Int(i128::from(*v as u32 as i32))
            }
            (Type::Int { .. }, Value::Float(v)) if v.is_finite() => {
                let message = format!("{v} is cut to a whole number");
                self.s.diags.push(Diagnostic::warning(Code::Range, span, message));
                self.convert(Value::Int(v.trunc() as i128), ty, span)
            }
            (Type::Float(_), Value::Int(v)) => self.convert(Value::Float(*v as f64), ty, span),
            (Type::Float(32), Value::Float(v)) if (*v as f32).is_infinite() => {
                self.error(Code::Range, span, format!("{v:e} is out of range for `float`"));
                Value::Error
            }
            (Type::Int { .. } | Type::Float(_), Value::Str(_) | Value::WideStr(_)) => {
                let message = format!("a string is no value of the type `{}`", self.model.show(ty));
                self.error(Code::ConstType, span, message);
                Value::Error
            }
            _ => value,
        }
    }

    /// A number as one of so many bits. C takes one that does not fit for its lowest bits, which is what a program gets, too, and may be meant:
    /// so it is told, and no error. A `char` may have a sign or none.
    fn wrapped(&mut self, value: i128, (bits, signed): (u8, bool), ty: TypeId, span: Span) -> i128 {
        let wrapped = cut(value, bits, signed);
        let is_char = matches!(self.model.ty(self.model.resolved(ty)), Type::Char);
        if wrapped != value && !(is_char && (-128..0).contains(&value)) {
            let message =
                format!("{value} is out of range for `{}` and becomes {wrapped}", self.model.show(ty));
            self.s.diags.push(Diagnostic::warning(Code::Range, span, message));
        }
        wrapped
    }

    pub(super) fn quiet_eval(&mut self, expr: &Expr) -> Value {
        let diags = std::mem::take(&mut self.s.diags);
        let value = self.eval(expr);
        self.s.diags = diags;
        value
    }

    pub(super) fn eval(&mut self, expr: &Expr) -> Value {
        let mut stack: Vec<Value> = Vec::new();
        // Where a conversion `(T)` stands on the stack, until its operand comes.
        let mut conversion = None;
        for (step, span) in &expr.items {
            let place = stack.len();
            let mut pop = || stack.pop().unwrap_or(Value::Error);
            let result = match step {
                Step::Grouped(name) if self.is_type(name.parts[0].name) => {
                    conversion = Some(place);
                    Ok(Value::Error)
                }
                Step::Binary(operator @ ("-" | "+")) if conversion == Some(place.wrapping_sub(2)) => {
                    conversion = None;
                    let operand = pop();
                    pop();
                    unary(if *operator == "-" { Unary::Minus } else { Unary::Plus }, operand)
                }
                Step::Int(v) => Ok(Value::Int((*v).into())),
                Step::Float(v) => Ok(Value::Float(*v)),
                Step::Char(v) => Ok(Value::Int((*v).into())),
                Step::WideChar(v) => Ok(Value::Int((*v).into())),
                Step::Str(v) => Ok(Value::Str(v.clone())),
                Step::WideStr(v) => Ok(Value::WideStr(v.clone())),
                Step::Bool(v) => Ok(Value::Int((*v).into())),
                Step::Name(name) | Step::Grouped(name) => Ok(self.constant_named(name.parts[0])),
                Step::Unary(operator) => unary(*operator, pop()),
                Step::Binary(operator) => {
                    let (right, left) = (pop(), pop());
                    binary(operator, left, right)
                }
                Step::Conditional => {
                    let (no, yes, condition) = (pop(), pop(), pop());
                    Ok(chosen(&condition, yes, no))
                }
                Step::Member(_) => {
                    pop();
                    Ok(Value::Error)
                }
                Step::Index => {
                    pop();
                    pop();
                    Ok(Value::Error)
                }
                Step::Call(count) => {
                    for _ in 0..=*count {
                        pop();
                    }
                    Ok(Value::Error)
                }
                Step::Opaque | Step::SizeOf(_) | Step::Fixed(_) => Ok(Value::Error),
            };
            stack.push(result.unwrap_or_else(|why| {
                self.error(Code::Arithmetic, *span, why);
                Value::Error
            }));
        }
        stack.pop().unwrap_or(Value::Error)
    }

    /// Whether a name is that of a type here.
    pub(super) fn is_type(&self, name: Symbol) -> bool {
        match self.ordinary.get(&name) {
            Some((entry, ..)) => matches!(entry, Entry::Type(_) | Entry::Interface(_)),
            None => self.tags.contains_key(&name) || predefined::ty(self.text(name)).is_some(),
        }
    }

    pub(super) fn constant_named(&mut self, name: Ident) -> Value {
        match self.ordinary.get(&name.name) {
            Some((Entry::Const(index), ..)) => match &self.model.consts[*index].value {
                Value::Char(v) | Value::WideChar(v) => Value::Int((*v).into()),
                Value::Bool(v) => Value::Int((*v).into()),
                value => value.clone(),
            },
            Some((Entry::Enumerator(value), ..)) => Value::Int(*value),
            Some((Entry::Unread, ..)) => Value::Error,
            Some(_) => {
                let message = format!("`{}` is no constant", self.text(name.name));
                self.error(Code::ConstType, name.span, message);
                Value::Error
            }
            None => {
                if let Some(value) = predefined::constant(self.text(name.name)) {
                    return Value::Int(value);
                }
                if self.s.diags.stop() || self.s.incomplete || self.samba || !self.poisoned.insert(name.name)
                {
                    return Value::Error;
                }
                let text = self.owned(name.name);
                let constant = |e: &Entry| matches!(e, Entry::Const(_) | Entry::Enumerator(_));
                let mut candidates: Vec<&str> = self
                    .ordinary
                    .iter()
                    .filter(|(_, (e, ..))| constant(e))
                    .map(|(&n, _)| self.s.names.text(n))
                    .collect();
                candidates.sort_unstable();
                let near = nearest(&text, candidates).map(str::to_owned);
                let message = format!("`{text}` is not declared");
                let diagnostic = Diagnostic::error(Code::Unknown, name.span, message).maybe(near.as_deref());
                self.s.diags.push(diagnostic);
                Value::Error
            }
        }
    }
}

/// The number that has the lowest bits of another one.
fn cut(value: i128, bits: u8, signed: bool) -> i128 {
    let size = 1i128 << bits;
    let rest = value.rem_euclid(size);
    if signed && rest >= size / 2 { rest - size } else { rest }
}

/// The value of `condition ? yes : no`.
fn chosen(condition: &Value, yes: Value, no: Value) -> Value {
    match condition {
        Value::Int(0) => no,
        Value::Int(_) => yes,
        _ => Value::Error,
    }
}

pub(super) fn unary(operator: Unary, value: Value) -> Result<Value, &'static str> {
    Ok(match (operator, value) {
        (Unary::Plus | Unary::Convert, v) => v,
        (Unary::Minus, Value::Int(v)) => Value::Int(-v),
        (Unary::Minus, Value::Float(v)) => Value::Float(-v),
        (Unary::Complement, Value::Int(v)) => Value::Int(!v),
        (Unary::Not, Value::Int(v)) => Value::Int((v == 0).into()),
        (_, Value::Error) | (Unary::Deref | Unary::Address, _) => Value::Error,
        _ => return Err("this operator needs a number"),
    })
}

pub(super) fn binary(operator: &str, left: Value, right: Value) -> Result<Value, &'static str> {
    let (a, b) = match (&left, &right) {
        (Value::Int(a), Value::Int(b)) => (*a, *b),
        (Value::Error, _) | (_, Value::Error) => return Ok(Value::Error),
        _ if matches!(operator, "==" | "!=" | "<" | ">" | "<=" | ">=" | "&&" | "||") => {
            return Ok(Value::Error);
        }
        _ => return crate::corba::binary(operator, left, right),
    };
    let truth = match operator {
        "==" => a == b,
        "!=" => a != b,
        "<" => a < b,
        ">" => a > b,
        "<=" => a <= b,
        ">=" => a >= b,
        "&&" => a != 0 && b != 0,
        "||" => a != 0 || b != 0,
        _ => return crate::corba::binary(operator, left, right),
    };
    Ok(Value::Int(truth.into()))
}
