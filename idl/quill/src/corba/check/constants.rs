//! Constants and the expressions in types.

use super::*;

impl Checker<'_> {
    pub(super) fn constant(&mut self, ty: &ast::Type, name: Ident, expr: &Expr) {
        let id = self.constant_type(ty);
        let value = self.eval(expr, id);
        let value = value::convert(&self.model, &mut self.s.diags, value, id, expr.span);
        let index = self.model.consts.len();
        let imported = self.imported(name.span);
        self.model.consts.push(Const { name: self.path(name), ty: id, value, imported });
        self.declare(name, Entry::Const(index));
    }

    /// The type of a constant, or [`Type::Error`].
    pub(super) fn constant_type(&mut self, ty: &ast::Type) -> TypeId {
        let id = self.ty(ty);
        let resolved = self.model.resolved(id);
        let ok = matches!(
            self.model.ty(resolved),
            Type::Int { .. }
                | Type::Octet
                | Type::Bool
                | Type::Char
                | Type::WideChar
                | Type::Float(_)
                | Type::Fixed(..)
                | Type::Str { .. }
                | Type::Enum(..)
                | Type::Bitmask(..)
                | Type::Error
        );
        if !ok || self.model.is_bitset(resolved) {
            let message = format!("a constant cannot have the type `{}`", self.model.show(id));
            self.error(Code::ConstType, ty.span, message);
            return self.error;
        }
        id
    }

    pub(super) fn positive(&mut self, expr: &Expr, what: &str) -> Option<u64> {
        let value = self.number(expr)?;
        if !(1..=u32::MAX.into()).contains(&value) {
            let help = if value > 0 { "it is at most 4294967295" } else { "it is at least 1" };
            let message = format!("{what} cannot be {value}");
            self.s.diags.push(Diagnostic::error(Code::Bound, expr.span, message).help(help));
            return None;
        }
        Some(value as u64)
    }

    /// The value of an expression that must be a whole number.
    pub(super) fn number(&mut self, expr: &Expr) -> Option<i128> {
        match self.eval(expr, self.error) {
            Value::Int(v) | Value::Enum(_, v) => Some(v),
            Value::Error => None,
            _ => {
                self.error(Code::ConstType, expr.span, "a whole number is needed here");
                None
            }
        }
    }

    pub(super) fn eval(&mut self, expr: &Expr, target: TypeId) -> Value {
        let unsigned_bits = match self.model.ty(self.model.resolved(target)) {
            Type::Int { bits, signed: false } => Some(*bits),
            Type::Octet => Some(8),
            _ => None,
        };
        let mut stack: Vec<Value> = Vec::new();
        for (item, span) in &expr.items {
            let result = match item {
                Item::Int(v) => Ok(Value::Int((*v).into())),
                Item::Float(v) if v.is_infinite() => Err("this number is too large"),
                Item::Float(v) => Ok(Value::Float(*v)),
                Item::Fixed(text) => {
                    value::fixed_literal(self.text(*text)).ok_or("a fixed-point number has at most 31 digits")
                }
                Item::Char(v) => Ok(Value::Char(*v)),
                Item::WideChar(v) => Ok(Value::WideChar(*v)),
                Item::Str(v) => Ok(Value::Str(v.clone())),
                Item::WideStr(v) => Ok(Value::WideStr(v.clone())),
                Item::Bool(v) => Ok(Value::Bool(*v)),
                Item::Name(name) | Item::Grouped(name) => Ok(self.constant_named(name)),
                Item::Unary(operator) => {
                    let value = stack.pop().unwrap_or(Value::Error);
                    value::unary(*operator, value, unsigned_bits)
                }
                Item::Binary(operator) => {
                    let right = stack.pop().unwrap_or(Value::Error);
                    let left = stack.pop().unwrap_or(Value::Error);
                    value::binary(operator, left, right)
                }
                _ => Err("this does not belong into a constant expression"),
            };
            stack.push(result.unwrap_or_else(|why| {
                self.error(Code::Arithmetic, *span, why);
                Value::Error
            }));
        }
        stack.pop().unwrap_or(Value::Error)
    }

    pub(super) fn constant_named(&mut self, name: &ScopedName) -> Value {
        match self.resolve(name) {
            Entry::Const(index) => self.model.consts[index].value.clone(),
            Entry::Argument(index) => self.arguments[index].clone(),
            Entry::Enumerator(ty, value) if matches!(self.model.ty(ty), Type::Bitmask(..)) => {
                Value::Int(value)
            }
            Entry::Enumerator(ty, value) => Value::Enum(ty, value),
            Entry::Poison => Value::Error,
            _ => {
                self.error(
                    Code::ConstType,
                    name.span,
                    format!("`{}` is no constant", self.text(last(name).name)),
                );
                Value::Error
            }
        }
    }
}
