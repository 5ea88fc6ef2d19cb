//! `any`: a value that brings its type along. It is a struct, and travels as one; what makes it more is a check that its
//! parts go together, and functions of both languages that ask for the type and give the value.
//!
//! | field | what |
//! |---|---|
//! | `kind` | which of [`KINDS`] |
//! | `bits` | the value, from the lowest bit on; nothing above it |
//! | `text` | a string, and otherwise nothing |

use crate::model::{Field, Model, Shown, Type, TypeId};

/// The names of the kinds, as CORBA has them, and the bits of their values.
pub const KINDS: [(&str, u32); 14] = [
    ("tk_null", 0),
    ("tk_boolean", 1),
    ("tk_char", 8),
    ("tk_octet", 8),
    ("tk_short", 16),
    ("tk_ushort", 16),
    ("tk_long", 32),
    ("tk_ulong", 32),
    ("tk_longlong", 64),
    ("tk_ulonglong", 64),
    ("tk_float", 32),
    ("tk_double", 64),
    ("tk_wchar", 21),
    ("tk_string", 0),
];

/// The most characters of a string in it, so that everybody knows how much room to bring.
pub const CHARACTERS_MAX: u64 = 255;

/// The module that its names are in.
pub const MODULE: &str = "quill";

/// Adds the type to a model.
pub(crate) fn add(model: &mut Model) -> TypeId {
    let members = KINDS.iter().zip(0..).map(|(&(kind, _), number)| (kind.to_owned(), number));
    let kind = model.add(Type::Enum(format!("{MODULE}::any_kind"), members.collect()));
    let bits = model.add(Type::Int { bits: 64, signed: false });
    let bound = Some(CHARACTERS_MAX);
    let text = model.add(Type::Str { wide: false, bound, shown: Shown::default() });
    let fields = [("kind", kind), ("bits", bits), ("text", text)];
    let fields = fields.map(|(name, ty)| Field { name: name.into(), ty });
    model.add(Type::Struct(format!("{MODULE}::any"), fields.into()))
}
