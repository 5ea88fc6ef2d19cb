//! `any`: a value that brings its type along. It is a struct, and travels as one; what makes it more is a check that its
//! parts go together, and functions of both languages that ask for the type and give the value.
//!
//! | field | what | of a type of the file |
//! |---|---|---|
//! | `kind` | which of [`KINDS`] | [`DESCRIBED`] |
//! | `bits` | the value, from the lowest bit on; nothing above it | how many bytes of the content its type code has |
//! | `content` | a string with a zero behind it, and otherwise nothing | the [type code](crate::type_code::packed), and behind it the value |
//!
//! The content of a value of a type of the file is **packed**: written piece by piece as over Tern, each number from a multiple
//! of its size and each text before a zero, whatever carries the `any`. The type code and the value begin at
//! multiples of 8. So who does not know the type hands the bytes on, from one kernel part to another if need be.

use crate::model::{ExceptionId, Field, Model, Type, TypeId};
use crate::type_code;

/// The names of the kinds, as CORBA has them, and the bits of their values.
pub const KINDS: [(&str, u32); 15] = [
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
    (DESCRIBED, 32),
];

/// The kind of a value whose content begins with a type code.
pub const DESCRIBED: &str = "tk_described";

/// The most characters of a string in it that is none of a type of the file, so that everybody knows how much room to bring.
pub const CHARACTERS_MAX: u64 = 255;

/// Types of a file whose values a self-test puts into an `any`, at most.
pub const TESTED_MAX: usize = 40;

/// The module that its names are in.
pub const MODULE: &str = "quill";

/// Adds the type to a model.
pub(crate) fn add(model: &mut Model) -> TypeId {
    let members = KINDS.iter().zip(0..).map(|(&(kind, _), number)| (kind.to_owned(), number));
    let kind = model.add(Type::Enum(format!("{MODULE}::any_kind"), members.collect()));
    let bits = model.add(Type::Int { bits: 64, signed: false });
    let octet = model.add(Type::Octet);
    let content = model.add(Type::Sequence(octet, None));
    let fields = [("kind", kind), ("bits", bits), ("content", content)];
    let fields = fields.map(|(name, ty)| Field { name: name.into(), ty });
    model.add(Type::Struct(format!("{MODULE}::any"), fields.into()))
}

/// The types of a file whose values an `any` can hold as far as their type codes go: those with a name, and exceptions. There are
/// none where no `any` is in the file. Names are the file's own, so this is found before an emitter chooses others.
#[derive(Debug, Default)]
pub struct Codes {
    /// Types, each with its [type code](crate::type_code::packed).
    pub types: Vec<(TypeId, Vec<u8>)>,
    /// Exceptions.
    pub exceptions: Vec<(ExceptionId, Vec<u8>)>,
}

impl Codes {
    /// Those of a model.
    pub fn of(model: &Model) -> Codes {
        if !model.has_any() {
            return Codes::default();
        }
        let is_named = |id: &TypeId| match model.ty(*id) {
            _ if model.context(*id).is_some() || model.is_any_kind(*id) => false,
            ty => ty.name().is_some_and(|name| !type_code::is_inner(name)),
        };
        let types = model.ids().filter(is_named).filter_map(|id| Some((id, type_code::packed(model, id)?)));
        let exceptions = (0..model.exceptions.len() as u32).map(ExceptionId);
        let exceptions = exceptions.filter_map(|id| Some((id, type_code::packed_exception(model, id)?)));
        Codes { types: types.collect(), exceptions: exceptions.collect() }
    }
}

/// The packed type code of a value of a basic kind: eight bytes, whichever it is.
pub fn basic_code(kind: &str) -> [u8; 8] {
    let number = type_code::KINDS.iter().position(|known| *known == kind).unwrap_or(0);
    [number as u8, 0, 0, 0, 0, 0, 0, 0]
}
