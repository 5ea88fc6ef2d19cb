//! Types that a file has without declaring them.

use super::{Model, Type, TypeId};

/// Digits of the fixed-point numbers that can travel: a whole number of 64 bits has room for so many, whichever they are.
pub const DIGITS_MAX: u32 = 18;

/// The greatest number with so many digits, [`DIGITS_MAX`] at most.
pub fn most_units(digits: u32) -> i64 {
    10i64.pow(digits.min(DIGITS_MAX)) - 1
}

impl Model {
    /// The type `fixed<digits, scale>`.
    pub fn fixed(&mut self, digits: u32, scale: u32) -> TypeId {
        if let Some(&known) = self.fixed.get(&(digits, scale)) {
            return known;
        }
        let id =
            self.add(Type::Fixed(format!("{}::fixed_{digits}_{scale}", crate::any::MODULE), digits, scale));
        self.fixed.insert((digits, scale), id);
        id
    }

    /// The type `any`; see [`crate::any`].
    pub fn any(&mut self) -> TypeId {
        if let Some(any) = self.any {
            return any;
        }
        let any = crate::any::add(self);
        self.any = Some(any);
        any
    }

    /// The kind of a `TypeCode`, and the type itself; see [`crate::type_code`].
    pub fn type_code(&mut self) -> (TypeId, TypeId) {
        if let Some(type_code) = self.type_code {
            return type_code;
        }
        let type_code = crate::type_code::add(self);
        self.type_code = Some(type_code);
        type_code
    }

    /// Whether there is an `any`.
    pub fn has_any(&self) -> bool {
        self.any.is_some()
    }

    /// Whether there is a `TypeCode`.
    pub fn has_type_code(&self) -> bool {
        self.type_code.is_some()
    }

    /// Whether a type is `any`.
    pub fn is_any(&self, id: TypeId) -> bool {
        self.any == Some(self.resolved(id))
    }

    /// Whether a type is that of the kind of an `any`.
    pub fn is_any_kind(&self, id: TypeId) -> bool {
        let Some(Type::Struct(_, fields)) = self.any.map(|any| self.ty(any)) else { return false };
        fields[0].ty == self.resolved(id)
    }
}
