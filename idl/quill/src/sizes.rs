//! Sizes of types: which have one, and which have bit patterns that are no value.

use crate::limits;
use crate::model::{Field, Model, Type, TypeId};

/// Size and alignment of a type whose values all have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// Bytes.
    pub size: u64,
    /// A power of two, at most 8.
    pub align: u64,
}

/// What the layout asks of types again and again, found once.
#[derive(Debug)]
pub struct Sizes {
    fixed: Vec<Option<Fixed>>,
    checked: Vec<bool>,
    flat: Vec<bool>,
}

impl Sizes {
    /// The sizes of all types. Types stand behind those they contain (nearly always), so this recurses hardly at all,
    /// and types that contain one another a thousand deep are no danger.
    pub fn new(model: &Model) -> Sizes {
        let count = model.types_len();
        let mut sizes =
            Sizes { fixed: vec![None; count], checked: vec![false; count], flat: vec![false; count] };
        let mut known = vec![false; count];
        for index in 0..count {
            sizes.find(model, TypeId(index as u32), &mut known, 0);
        }
        sizes
    }

    /// Size and alignment of a type whose values all have the same size.
    pub fn fixed(&self, ty: TypeId) -> Option<Fixed> {
        self.fixed[ty.0 as usize]
    }

    /// Whether some bit patterns of a fixed-size type are no values of it.
    pub fn checked(&self, ty: TypeId) -> bool {
        self.checked[ty.0 as usize]
    }

    /// Whether all bytes of a fixed-size type belong to some value, and none of them needs a check: it can be copied as
    /// one piece.
    pub fn flat(&self, ty: TypeId) -> bool {
        self.flat[ty.0 as usize]
    }

    /// Where the fields of a fixed-size struct begin.
    pub fn offsets(&self, fields: &[Field]) -> Vec<u64> {
        let mut at = 0;
        let begins = fields.iter().filter_map(|field| self.fixed(field.ty)).map(|fixed| {
            let begin = u64::next_multiple_of(at, fixed.align);
            at = begin + fixed.size;
            begin
        });
        begins.collect()
    }

    fn find(&mut self, model: &Model, ty: TypeId, known: &mut [bool], depth: usize) {
        let index = ty.0 as usize;
        if known[index] || depth > limits::NESTING_MAX {
            return;
        }
        let resolved = model.resolved(ty);
        let inner: Vec<TypeId> = match model.ty(resolved) {
            _ if resolved != ty => vec![resolved],
            Type::Array(of, _) => vec![*of],
            Type::Struct(_, fields) => fields.iter().map(|f| f.ty).collect(),
            _ => Vec::new(),
        };
        for &ty in &inner {
            self.find(model, ty, known, depth + 1);
        }
        known[index] = true;
        self.checked[index] = match model.ty(ty) {
            Type::Bool | Type::Enum(..) | Type::WideChar | Type::Bitmask(..) => true,
            _ => inner.iter().any(|&ty| self.checked(ty)),
        };
        self.fixed[index] = if resolved == ty { self.size(model, ty) } else { self.fixed(resolved) };
        let whole = match model.ty(ty) {
            Type::Struct(..) => {
                let bytes: u64 = inner.iter().filter_map(|&ty| self.fixed(ty)).map(|f| f.size).sum();
                self.fixed(ty).is_some_and(|fixed| fixed.size == bytes)
            }
            _ => self.fixed(ty).is_some(),
        };
        self.flat[index] = whole && !self.checked[index] && inner.iter().all(|&ty| self.flat(ty));
    }

    fn size(&self, model: &Model, ty: TypeId) -> Option<Fixed> {
        let scalar = |size: u64| Some(Fixed { size, align: size });
        let fixed = match model.ty(ty) {
            Type::Bool | Type::Octet | Type::Char => scalar(1),
            Type::Int { bits, .. } | Type::Bitmask(_, bits, _) => scalar(u64::from(*bits) / 8),
            Type::Float(32) => scalar(4),
            Type::Float(64) => scalar(8),
            Type::Enum(..) | Type::WideChar => scalar(4),
            Type::Array(of, dims) => {
                let of = self.fixed(*of)?;
                let count = dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d))?;
                Some(Fixed { size: of.size.checked_mul(count)?, align: of.align })
            }
            Type::Struct(_, fields) if !fields.is_empty() => {
                let mut total = Fixed { size: 0, align: 1 };
                for field in fields {
                    let field = self.fixed(field.ty)?;
                    total.size = total.size.next_multiple_of(field.align).checked_add(field.size)?;
                    total.align = total.align.max(field.align);
                }
                Some(Fixed { size: total.size.next_multiple_of(total.align), ..total })
            }
            _ => None,
        };
        fixed.filter(|f| f.size <= SIZE_MAX)
    }
}

/// No fixed-size type is larger; a type that would be counts as one without a size, and is refused.
const SIZE_MAX: u64 = 1 << 40;
