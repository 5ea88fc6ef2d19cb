//! `TypeCode`: the description of a type, as CORBA has it. It is a union like any other, so all kernel parts and languages have it; in IDL it is:
//!
//! ```idl
//! module CORBA {
//!   union TypeCode switch (Kind) {
//!     case tk_objref: case tk_native: …   Name   named;     // an id and a name
//!     case tk_struct: case tk_except:     Record record;    // and members
//!     case tk_union:                      Choice choice;    // and a discriminator, and what it chooses from
//!     case tk_enum:                       Names  names;     // and the names of its values
//!     case tk_string: case tk_wstring:    unsigned long bound;   // 0 for none
//!     case tk_sequence: case tk_array:    List   list;      // what it consists of, and how much of it
//!     case tk_alias: case tk_value_box:   Alias  alias;     // an id, a name and what stands behind it
//!     case tk_fixed:                      Digits digits;
//!     case tk_value: case tk_event:       State  state;     // and a base and members
//!     case tk_recursive:                  string around;    // the id of a type that this one stands in
//!   };
//! };
//! ```
//!
//! Types within a type are values that may be absent, so they have the depth and the memory of these. What is called `Kind` here is
//! `CORBA::TCKind` in a file, and like the structs beside it is declared within `TypeCode`: a file's own module `CORBA` cannot meet them.

use crate::model::{Branch, Field, Model, Shown, Type, TypeId};

pub use packed::{BYTES_MAX, packed, packed_exception};

mod packed;

/// The path of the type.
const PATH: &str = "CORBA::TypeCode";

/// The kinds of types in CORBA's order, and one more: a type that stands in itself.
pub const KINDS: [&str; 38] = [
    "tk_null",
    "tk_void",
    "tk_short",
    "tk_long",
    "tk_ushort",
    "tk_ulong",
    "tk_float",
    "tk_double",
    "tk_boolean",
    "tk_char",
    "tk_octet",
    "tk_any",
    "tk_TypeCode",
    "tk_Principal",
    "tk_objref",
    "tk_struct",
    "tk_union",
    "tk_enum",
    "tk_string",
    "tk_sequence",
    "tk_array",
    "tk_alias",
    "tk_except",
    "tk_longlong",
    "tk_ulonglong",
    "tk_longdouble",
    "tk_wchar",
    "tk_wstring",
    "tk_fixed",
    "tk_value",
    "tk_value_box",
    "tk_native",
    "tk_abstract_interface",
    "tk_local_interface",
    "tk_component",
    "tk_home",
    "tk_event",
    "tk_recursive",
];

/// Whether a path is that of a type that stands in the description of types, and nowhere else.
pub(crate) fn is_inner(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.starts_with("::"))
}

/// Whether a file has something of its own in the place of the type.
fn is_taken(model: &Model) -> bool {
    let names = model.ids().filter_map(|id| model.ty(id).name());
    let interfaces = model.interfaces.iter().map(|interface| &*interface.name);
    let others = model.exceptions.iter().map(|e| &*e.name).chain(model.consts.iter().map(|c| &*c.name));
    names.chain(interfaces).chain(others).any(|name| name == PATH || is_inner(name))
}

/// Gives a model with an `any` the type, so that programs can see what one holds; unless the file has something else in its place.
pub(crate) fn complete(model: &mut Model) {
    if model.has_any() && !model.has_type_code() && !is_taken(model) {
        model.type_code();
    }
}

/// Adds the type to a model; gives back its kind and itself.
pub(crate) fn add(model: &mut Model) -> (TypeId, TypeId) {
    let members = KINDS.iter().zip(0..).map(|(&kind, number)| (kind.to_owned(), number));
    let kind = model.add(Type::Enum(format!("{PATH}::Kind"), members.collect()));
    // It stands in what it consists of.
    let code = model.add(Type::Forward(PATH.into()));
    let mut parts = Parts { model, inner: code };
    let branches = parts.branches();
    model.define(code, Type::Union { name: PATH.into(), switch: kind, branches });
    (kind, code)
}

struct Parts<'a> {
    model: &'a mut Model,
    inner: TypeId,
}

impl Parts<'_> {
    fn text(&mut self) -> TypeId {
        self.model.add(Type::Str { wide: false, bound: None, shown: Shown::default() })
    }

    fn number(&mut self, bits: u8, signed: bool) -> TypeId {
        self.model.add(Type::Int { bits, signed })
    }

    fn list(&mut self, of: TypeId) -> TypeId {
        self.model.add(Type::Sequence(of, None))
    }

    /// A type within a type.
    fn within(&mut self) -> TypeId {
        self.model.add(Type::Optional(self.inner))
    }

    fn record<const N: usize>(&mut self, name: &str, fields: [(&str, TypeId); N]) -> TypeId {
        let fields = fields.map(|(name, ty)| Field { name: name.into(), ty });
        self.model.add(Type::Struct(format!("{PATH}::{name}"), fields.into()))
    }

    fn branches(&mut self) -> Vec<Branch> {
        let (text, length, inner) = (self.text(), self.number(32, false), self.within());
        let (short, count) = (self.number(16, true), self.number(16, false));
        let (wide, index) = (self.number(64, true), self.number(32, true));
        let names = self.list(text);
        let named = self.record("Name", [("id", text), ("name", text)]);
        let member = self.record("Member", [("name", text), ("type", inner)]);
        let members = self.list(member);
        let record = self.record("Record", [("id", text), ("name", text), ("members", members)]);
        let case = self.record("Case", [("name", text), ("label", wide), ("type", inner)]);
        let cases = self.list(case);
        let choice = [("id", text), ("name", text), ("discriminator", inner), ("default_index", index)];
        let [id, name, discriminator, default] = choice;
        let choice = self.record("Choice", [id, name, discriminator, default, ("cases", cases)]);
        let of_names = self.record("Names", [id, name, ("members", names)]);
        let list = self.record("List", [("content", inner), ("length", length)]);
        let alias = self.record("Alias", [id, name, ("content", inner)]);
        let digits = self.record("Digits", [("digits", count), ("scale", short)]);
        let field = self.record("Field", [("name", text), ("type", inner), ("visibility", short)]);
        let fields = self.list(field);
        let state = [id, name, ("modifier", short), ("base", inner), ("members", fields)];
        let state = self.record("State", state);
        let rows = [
            (
                "tk_objref tk_native tk_abstract_interface tk_local_interface tk_component tk_home",
                "named",
                named,
            ),
            ("tk_struct tk_except", "record", record),
            ("tk_union", "choice", choice),
            ("tk_enum", "names", of_names),
            ("tk_string tk_wstring", "bound", length),
            ("tk_sequence tk_array", "list", list),
            ("tk_alias tk_value_box", "alias", alias),
            ("tk_fixed", "digits", digits),
            ("tk_value tk_event", "state", state),
            ("tk_recursive", "around", text),
        ];
        let label =
            |kind: &str| KINDS.iter().zip(0..).find(|(known, _)| **known == kind).map(|(_, number)| number);
        let branch = |(kinds, name, ty): (&str, &str, TypeId)| Branch {
            labels: kinds.split_whitespace().filter_map(label).collect(),
            is_default: false,
            field: Field { name: name.into(), ty },
        };
        rows.into_iter().map(branch).collect()
    }
}
