//! Sizes of types: which have one, and which have bit patterns that are no value.

use crate::limits;
use crate::model::{DIGITS_MAX, Field, Model, Type, TypeId};

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
    plain: Vec<bool>,
    streams: Vec<Option<u64>>,
}

/// Something about a type, given the same about those it consists of.
type About<'a, T> = &'a dyn Fn(TypeId, &mut dyn FnMut(TypeId) -> T) -> T;

/// Something about each type that is known from what it consists of; `endless` of one that contains itself. Each is asked about
/// once, since types can contain others again and again.
pub fn for_all_types<T: Copy>(model: &Model, endless: T, about: About<T>) -> Vec<T> {
    let count = model.types_len();
    let mut all = ForAll { model, endless, about, found: vec![None; count], asked: vec![false; count] };
    (0..count).map(|index| all.get(TypeId(index as u32), 0)).collect()
}

struct ForAll<'a, T> {
    model: &'a Model,
    endless: T,
    about: About<'a, T>,
    found: Vec<Option<T>>,
    asked: Vec<bool>,
}

impl<T: Copy> ForAll<'_, T> {
    fn get(&mut self, ty: TypeId, depth: usize) -> T {
        let ty = self.model.resolved(ty);
        let index = ty.0 as usize;
        if let Some(found) = self.found[index] {
            return found;
        }
        if depth > limits::NESTING_MAX || std::mem::replace(&mut self.asked[index], true) {
            return self.endless;
        }
        let about = self.about;
        let found = about(ty, &mut |inner| self.get(inner, depth + 1));
        self.found[index] = Some(found);
        found
    }
}

impl Sizes {
    /// The sizes of all types. Types stand behind those they contain (nearly always), so this recurses hardly at all,
    /// and types that contain one another a thousand deep are no danger.
    pub fn new(model: &Model) -> Sizes {
        let count = model.types_len();
        let mut sizes = Sizes {
            fixed: vec![None; count],
            checked: vec![false; count],
            flat: vec![false; count],
            plain: vec![false; count],
            streams: Vec::new(),
        };
        let mut known = vec![false; count];
        for index in 0..count {
            sizes.find(model, TypeId(index as u32), &mut known, 0);
        }
        sizes.find_streams(model);
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

    /// Whether a list is long, and has elements of a fixed size not every bit pattern of which is a value.
    pub fn is_looked_at(&self, of: TypeId, bound: Option<u64>) -> bool {
        let is_long = bound.is_none_or(|bound| bound > crate::marshal::HELD_ELEMENTS_MAX);
        is_long && self.fixed(of).is_some() && !self.flat(of)
    }

    /// Whether a type can share its bytes with others, as a member of a flat union: it can be copied as one piece, and its
    /// bytes mean nothing but themselves.
    pub fn plain(&self, ty: TypeId) -> bool {
        self.plain[ty.0 as usize]
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

    /// The most bytes of a value that travels piece by piece, wherever it begins; `None` if there is no end to them. A
    /// text has a zero behind it.
    pub fn stream_bytes_max(&self, ty: TypeId) -> Option<u64> {
        self.streams[ty.0 as usize]
    }

    fn find_streams(&mut self, model: &Model) {
        let bytes = |ty: TypeId, of: &mut dyn FnMut(TypeId) -> Option<u64>| {
            if let Some(fixed) = self.fixed(ty) {
                return fixed.size.checked_add(fixed.align - 1);
            }
            match model.ty(ty) {
                Type::Str { bound, .. } => bound.as_ref()?.checked_mul(4)?.checked_add(COUNT_BYTES_MAX + 1),
                Type::Sequence(element, bound) => {
                    of(*element)?.checked_mul(bound.as_ref().copied()?)?.checked_add(COUNT_BYTES_MAX)
                }
                // A byte says whether it is there.
                Type::Optional(inner) => of(*inner)?.checked_add(1),
                // Or it says which one it is, by a number.
                Type::Shared(inner) => of(*inner)?.max(COUNT_BYTES_MAX).checked_add(1),
                Type::Array(element, dims) => {
                    dims.iter().try_fold(of(*element)?, |all, &n| all.checked_mul(n))
                }
                // One without fields is a byte.
                Type::Struct(_, fields) => fields.iter().try_fold(1u64, |all, f| all.checked_add(of(f.ty)?)),
                Type::Union { switch, branches, .. } => {
                    let longest = branches.iter().try_fold(0, |most, b| Some(of(b.field.ty)?.max(most)))?;
                    longest.checked_add(of(*switch)?)
                }
                _ => None,
            }
        };
        self.streams = for_all_types(model, None, &bytes);
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
            Type::Struct(_, fields) | Type::Flat(_, fields) => fields.iter().map(|f| f.ty).collect(),
            _ => Vec::new(),
        };
        for &ty in &inner {
            self.find(model, ty, known, depth + 1);
        }
        known[index] = true;
        self.checked[index] = match model.ty(ty) {
            Type::Bool | Type::Enum(..) | Type::WideChar | Type::Bitmask(..) | Type::Fixed(..) => true,
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
        let name = matches!(model.ty(ty), Type::Object(_));
        self.plain[index] = self.flat[index] && !name && inner.iter().all(|&ty| self.plain(ty));
    }

    fn size(&self, model: &Model, ty: TypeId) -> Option<Fixed> {
        let scalar = |size: u64| Some(Fixed { size, align: size });
        let fixed = match model.ty(ty) {
            Type::Bool | Type::Octet | Type::Char => scalar(1),
            Type::Int { bits, .. } | Type::Bitmask(_, bits, _) => scalar(u64::from(*bits) / 8),
            Type::Float(32) => scalar(4),
            Type::Float(64) | Type::Object(_) | Type::Fixed(_, 1..=DIGITS_MAX, _) => scalar(8),
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
            // The bytes of the largest member.
            Type::Flat(_, members) if !members.is_empty() => {
                let mut total = Fixed { size: 0, align: 1 };
                for member in members {
                    let member = self.fixed(member.ty).filter(|_| self.plain(member.ty))?;
                    total.size = total.size.max(member.size);
                    total.align = total.align.max(member.align);
                }
                Some(Fixed { size: total.size.next_multiple_of(total.align), ..total })
            }
            _ => None,
        };
        fixed.filter(|f| f.size <= SIZE_MAX)
    }
}

/// The number of elements of a list in a stream, and what is before it so that it begins at a multiple of its size.
const COUNT_BYTES_MAX: u64 = 4 + 3;

/// No fixed-size type is larger; a type that would be counts as one without a size, and is refused.
const SIZE_MAX: u64 = 1 << 40;
