//! The checked model: what both front ends produce and everything behind them reads.
//!
//! Types live in one list and refer to one another by [`TypeId`], so that recursion needs no pointers. Nothing in a
//! model is wrong: names are resolved, constants have values in range. What a dialect can say but no kernel part
//! carries (custom value types, native types …) is [`Type::Foreign`]: accepted here, refused by name when stubs are asked for.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::rc::Rc;

use crate::source::Span;

pub use agreement::{Agreement, Rule, Size};
pub use always::{DIGITS_MAX, most_units};
pub use binding::{Binding, Called};

mod agreement;
mod always;
mod binding;
mod bitsets;
mod contexts;

/// A type's place in the model; see [`Model::ty`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// An interface's place in [`Model::interfaces`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InterfaceId(pub u32);

/// An exception's place in [`Model::exceptions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExceptionId(pub u32);

/// A value of a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number; the widest type has 64 bits, so this never overflows.
    Int(i128),
    /// A floating-point number.
    Float(f64),
    /// A fixed-point number: `value / 10^scale`.
    Fixed(i128, u32),
    /// A truth value.
    Bool(bool),
    /// A character.
    Char(u32),
    /// A wide character.
    WideChar(u32),
    /// A string.
    Str(Rc<[u32]>),
    /// A wide string.
    WideStr(Rc<[u32]>),
    /// A name of an enum: its type, and its number.
    Enum(TypeId, i128),
    /// An error was reported.
    Error,
}

/// A field of a struct, exception or message.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TypeId,
}

/// A branch of a union.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Values of the discriminator; an empty list with `is_default` is a pure default.
    pub labels: Vec<i128>,
    /// It takes every other value.
    pub is_default: bool,
    /// Its field.
    pub field: Field,
}

/// Those members of an enum that are the first with their number: each of its values once.
pub fn values_of(members: &[(String, i128)]) -> impl Iterator<Item = &(String, i128)> {
    let mut seen = HashSet::new();
    members.iter().filter(move |member| seen.insert(member.1))
}

/// Whether the values of an enum are all numbers from 0 on.
pub fn counts_up(members: &[(String, i128)]) -> bool {
    members.iter().zip(0..).all(|(member, number)| member.1 == number)
}

/// The bits that a value of a bitmask may have.
pub fn bits_of(members: &[(String, i128)]) -> u64 {
    members.iter().fold(0, |all, member| all | member.1 as u64)
}

/// What a pointer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// Never null, never shared: passing by reference.
    Ref,
    /// Perhaps null.
    Unique,
    /// Perhaps null, perhaps equal to another one.
    Full,
    /// Nothing is said: what it is depends on where it stands.
    Unsaid,
}

/// How a text looks to programs in C, as an attribute file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// With a zero at its end.
    #[default]
    Terminated,
    /// With its length beside it, and where lists lie in their values, there.
    Counted,
    /// Counted, but always where it lies: an argument that goes to the server and not back.
    Lent,
    /// With a zero at its end, and always where it lies: a text that may be absent, where others lie in their values.
    Elsewhere,
}

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// An error was reported.
    Error,
    /// No value.
    Void,
    /// A truth value.
    Bool,
    /// A byte without meaning.
    Octet,
    /// A character of 8 bits.
    Char,
    /// A wide character.
    WideChar,
    /// A whole number.
    Int {
        /// 8, 16, 32 or 64.
        bits: u8,
        /// Has negative values.
        signed: bool,
    },
    /// A floating-point number of 32, 64 or 128 bits.
    Float(u8),
    /// A fixed-point number: its name, its decimal digits, and how many of these stand behind the point. Without digits it is the type of
    /// constants that do not say theirs.
    Fixed(String, u32, u32),
    /// Characters, at most `bound` of them.
    Str {
        /// 16-bit or wider characters.
        wide: bool,
        /// The largest length.
        bound: Option<u64>,
        /// How C has it. Nothing of this travels.
        shown: Shown,
    },
    /// A counted list.
    Sequence(TypeId, Option<u64>),
    /// As many as the dimensions say.
    Array(TypeId, Vec<u64>),
    /// A struct: its name, its fields with those of its base first.
    Struct(String, Vec<Field>),
    /// A union.
    Union {
        /// Its name.
        name: String,
        /// The type of its discriminator.
        switch: TypeId,
        /// Its branches.
        branches: Vec<Branch>,
    },
    /// A flat union: its name, and its members, all of them for the same bytes. Nothing says which of them is meant.
    Flat(String, Vec<Field>),
    /// An enum: its name, its members and their numbers. Numbers have 32 bits, either all signed or all unsigned, and are what
    /// travels; a file may give several members one number.
    Enum(String, Vec<(String, i128)>),
    /// A bitmask: its name, how many bits, its members and the bits that each of them stands for.
    Bitmask(String, u8, Vec<(String, i128)>),
    /// Another name for a type.
    Alias(String, TypeId),
    /// A value that may be absent.
    Optional(TypeId),
    /// A value that may be absent, and that several parts of a message may have in common: what they share is there once.
    Shared(TypeId),
    /// A pointer, of which nothing says how it travels.
    Pointer(Pointer, TypeId),
    /// An array whose size an attribute gives.
    Open(TypeId),
    /// A reference to an object with this interface, or with any.
    Object(Option<InterfaceId>),
    /// Pages, ports or interrupts that are handed over.
    Fpage,
    /// Declared, and perhaps defined later.
    Forward(String),
    /// Understood, but nothing that stubs can carry: what it is, and its name.
    Foreign(&'static str, String),
}

/// Name of a type, as it is lent.
macro_rules! declared {
    ($ty:expr) => {
        match $ty {
            Type::Struct(name, _)
            | Type::Flat(name, _)
            | Type::Enum(name, _)
            | Type::Bitmask(name, ..)
            | Type::Fixed(name, ..)
            | Type::Alias(name, _)
            | Type::Union { name, .. } => Some(name),
            _ => None,
        }
    };
}

impl Type {
    /// The name of a type that values have and that a file declares.
    pub fn name(&self) -> Option<&str> {
        declared!(self).map(|name| name.as_str())
    }

    /// Place of that name, for another one.
    pub(crate) fn name_mut(&mut self) -> Option<&mut String> {
        declared!(self)
    }
}

/// Which way a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the server.
    In,
    /// From the server.
    Out,
    /// Both ways.
    InOut,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TypeId,
    /// Its direction.
    pub direction: Direction,
    /// How many elements or characters it has most of the time, if the interface says so.
    pub typical: Option<u64>,
    /// Whether the sender of these pages loses them; if nothing is said, the flexpage says it.
    pub grant: Option<bool>,
    /// How many levels of caches its content may take new lines of; 0 is none at all.
    pub caches: Option<u8>,
    /// Whether its pages may be shown to the receiver instead of copied.
    pub copy_on_write: bool,
    /// An attribute that stubs cannot follow; see [`crate::hints`].
    pub unsupported: Option<&'static str>,
}

impl Param {
    /// A parameter of which nothing else is said.
    pub fn new(name: impl Into<String>, ty: TypeId, direction: Direction) -> Param {
        Param {
            name: name.into(),
            ty,
            direction,
            typical: None,
            grant: None,
            caches: None,
            copy_on_write: false,
            unsupported: None,
        }
    }
}

/// Place in which a client in C finds how a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The result.
    Result,
    /// A parameter of the interface that comes back.
    Param(String),
    /// A further parameter, which only this side's programs have.
    Added(String),
}

/// How a client in C is told of failures besides the function's own result, as an attribute file says. Nothing of this travels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses {
    /// Failures of the way to the server.
    pub comm: Option<Told>,
    /// Failures of the server.
    pub fault: Option<Told>,
}

/// An operation; attributes are one or two of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its name.
    pub name: String,
    /// Nothing comes back.
    pub oneway: bool,
    /// Its result.
    pub result: TypeId,
    /// Its parameters.
    pub params: Vec<Param>,
    /// What it may raise.
    pub raises: Vec<ExceptionId>,
    /// How its parameters have to agree with one another.
    pub agreements: Vec<Agreement>,
    /// How clients in C are told of failures.
    pub statuses: Statuses,
    /// Server that a client in C calls.
    pub called: Called,
    /// The reason why stubs cannot have it, whatever its parameters are.
    pub refused: Option<&'static str>,
    /// Where it is declared.
    pub span: Span,
}

/// An interface.
#[derive(Clone, Debug, PartialEq)]
pub struct Interface {
    /// Its name with the modules around it.
    pub name: String,
    /// What it inherits directly.
    pub bases: Vec<InterfaceId>,
    /// Its own operations, without those of its bases.
    pub operations: Vec<Operation>,
    /// A number that tells its messages from those of others, if the file gives it one; otherwise 0.
    pub number: u16,
    /// How clients find the server, if nothing in a call says it.
    pub binding: Option<Binding>,
    /// It never leaves its process.
    pub local: bool,
    /// It is abstract.
    pub is_abstract: bool,
    /// It has a body.
    pub defined: bool,
    /// It came from an included or imported file.
    pub imported: bool,
    /// Where it is declared.
    pub span: Span,
}

/// An exception.
#[derive(Clone, Debug, PartialEq)]
pub struct Exception {
    /// Its name with the modules around it.
    pub name: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Const {
    /// Its name with the modules around it.
    pub name: String,
    /// Its type.
    pub ty: TypeId,
    /// Its value.
    pub value: Value,
    /// It came from an included or imported file.
    pub imported: bool,
}

/// Everything a file declares, checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    types: Vec<Type>,
    /// Each type with its aliases looked through.
    canonical: Vec<TypeId>,
    pub(crate) any: Option<TypeId>,
    /// Types of fixed-point numbers, by their digits and those of them behind the point.
    fixed: HashMap<(u32, u32), TypeId>,
    /// The kind of a `TypeCode`, and that type itself.
    pub(crate) type_code: Option<(TypeId, TypeId)>,
    /// Types whose values are context handles: numbers that a server has chosen for one client, 0 for none.
    contexts: HashSet<TypeId>,
    /// Bitmasks that are bitsets, and how many bits each of them has.
    bitsets: HashMap<TypeId, u64>,
    /// How the fields of structs have to agree with one another.
    pub agreements: HashMap<TypeId, Vec<Agreement>>,
    /// Types that have a name, in the order of their declaration, and whether each came from another file.
    pub named: Vec<(TypeId, bool)>,
    /// The constants.
    pub consts: Vec<Const>,
    /// The exceptions.
    pub exceptions: Vec<Exception>,
    /// The interfaces.
    pub interfaces: Vec<Interface>,
    /// Lines of text for headers of C, and where they stand.
    pub quotes: Vec<(Span, String)>,
}

impl Model {
    /// Adds a type.
    pub fn add(&mut self, ty: Type) -> TypeId {
        let id = TypeId(self.types.len() as u32);
        let canonical = if let Type::Alias(_, to) = &ty { self.canonical[to.0 as usize] } else { id };
        self.types.push(ty);
        self.canonical.push(canonical);
        id
    }

    /// Takes all types of another model that has no interfaces. A type's place there, and what comes back, is its place here.
    pub fn absorb(&mut self, other: Model) -> u32 {
        let first = self.types.len() as u32;
        let place = |id: &mut TypeId| id.0 += first;
        for mut ty in other.types {
            match &mut ty {
                Type::Sequence(of, _) | Type::Array(of, _) | Type::Alias(_, of) => place(of),
                Type::Optional(of) | Type::Shared(of) | Type::Pointer(_, of) | Type::Open(of) => place(of),
                Type::Struct(_, fields) | Type::Flat(_, fields) => {
                    fields.iter_mut().for_each(|field| place(&mut field.ty));
                }
                Type::Union { switch, branches, .. } => {
                    place(switch);
                    branches.iter_mut().for_each(|branch| place(&mut branch.field.ty));
                }
                Type::Object(interface) => *interface = None,
                _ => {}
            }
            self.types.push(ty);
        }
        self.canonical.extend(other.canonical.into_iter().map(|id| TypeId(id.0 + first)));
        self.contexts.extend(other.contexts.into_iter().map(|id| TypeId(id.0 + first)));
        self.bitsets.extend(other.bitsets.into_iter().map(|(id, bits)| (TypeId(id.0 + first), bits)));
        self.named.extend(other.named.into_iter().map(|(id, _)| (TypeId(id.0 + first), true)));
        first
    }

    /// Completes a type that was declared before; `ty` is no alias.
    pub fn define(&mut self, id: TypeId, ty: Type) {
        debug_assert!(!matches!(ty, Type::Alias(..)));
        self.types[id.0 as usize] = ty;
    }

    /// A type.
    pub fn ty(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// A text of that type that C has in another way, under the same name; the type itself if it is no text.
    pub fn shown_as(&mut self, id: TypeId, shown: Shown) -> TypeId {
        let Type::Str { wide, bound, .. } = *self.ty(self.resolved(id)) else { return id };
        let text = self.add(Type::Str { wide, bound, shown });
        match self.ty(id) {
            Type::Alias(name, _) => self.add(Type::Alias(name.clone(), text)),
            _ => text,
        }
    }

    /// Gives another name another meaning, wherever it is used already.
    pub fn redirect(&mut self, alias: TypeId, to: TypeId) {
        let Type::Alias(name, _) = &self.types[alias.0 as usize] else { return };
        self.types[alias.0 as usize] = Type::Alias(name.clone(), to);
        for index in alias.0 as usize..self.types.len() {
            if let Type::Alias(_, to) = &self.types[index] {
                self.canonical[index] = self.canonical[to.0 as usize];
            }
        }
    }

    /// A type that is to be changed; none becomes or was an alias.
    pub(crate) fn ty_mut(&mut self, id: TypeId) -> &mut Type {
        &mut self.types[id.0 as usize]
    }

    /// Gives a type that has a name another one.
    pub(crate) fn rename(&mut self, id: TypeId, to: String) {
        if let Some(name) = self.ty_mut(id).name_mut() {
            *name = to;
        }
    }

    /// All types.
    pub fn ids(&self) -> impl Iterator<Item = TypeId> + use<> {
        (0..self.types.len() as u32).map(TypeId)
    }

    /// How many types there are.
    pub fn types_len(&self) -> usize {
        self.types.len()
    }

    /// A type with its aliases looked through.
    pub fn resolved(&self, id: TypeId) -> TypeId {
        self.canonical[id.0 as usize]
    }

    /// How a type is called in a message.
    pub fn show(&self, id: TypeId) -> String {
        Show(self, id, 0).to_string()
    }

    /// All operations of an interface in a fixed order: those of its bases (each once, depth first), then its own.
    pub fn operations(&self, id: InterfaceId) -> Vec<&Operation> {
        let order = self.with_bases(id);
        order.iter().flat_map(|id| &self.interfaces[id.0 as usize].operations).collect()
    }

    /// For each of [`operations`](Model::operations), the number of the interface that declares it.
    pub fn interface_numbers(&self, id: InterfaceId) -> Vec<u16> {
        let order = self.with_bases(id);
        let interfaces = order.iter().map(|id| &self.interfaces[id.0 as usize]);
        interfaces.flat_map(|i| i.operations.iter().map(|_| i.number)).collect()
    }

    /// An interface behind its bases, each once, depth first.
    pub fn with_bases(&self, id: InterfaceId) -> Vec<InterfaceId> {
        let mut order = Vec::new();
        let mut seen = vec![false; self.interfaces.len()];
        let mut stack = vec![(id, false)];
        while let Some((id, expanded)) = stack.pop() {
            let index = id.0 as usize;
            if expanded {
                order.push(id);
                continue;
            }
            if std::mem::replace(&mut seen[index], true) {
                continue;
            }
            stack.push((id, true));
            stack.extend(self.interfaces[index].bases.iter().rev().map(|&b| (b, false)));
        }
        order
    }
}

struct Show<'a>(&'a Model, TypeId, usize);

impl fmt::Display for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Show(model, id, depth) = *self;
        if depth > 8 {
            return f.write_str("…");
        }
        let bound = |b: &Option<u64>| b.map_or(String::new(), |b| format!(", {b}"));
        match model.ty(id) {
            Type::Error => f.write_str("?"),
            Type::Void => f.write_str("void"),
            Type::Bool => f.write_str("boolean"),
            Type::Octet => f.write_str("octet"),
            Type::Char => f.write_str("char"),
            Type::WideChar => f.write_str("wchar"),
            Type::Int { bits, signed } => {
                let name = match bits {
                    8 => return write!(f, "{}int8", if *signed { "" } else { "u" }),
                    16 => "short",
                    32 => "long",
                    _ => "long long",
                };
                write!(f, "{}{name}", if *signed { "" } else { "unsigned " })
            }
            Type::Float(32) => f.write_str("float"),
            Type::Float(64) => f.write_str("double"),
            Type::Float(_) => f.write_str("long double"),
            Type::Fixed(_, 0, _) => f.write_str("fixed"),
            Type::Fixed(_, digits, scale) => write!(f, "fixed<{digits}, {scale}>"),
            Type::Str { wide, bound, .. } => {
                f.write_str(if *wide { "wstring" } else { "string" })?;
                bound.map_or(Ok(()), |b| write!(f, "<{b}>"))
            }
            Type::Sequence(of, b) => write!(f, "sequence<{}{}>", Show(model, *of, depth + 1), bound(b)),
            Type::Array(of, dims) => {
                write!(f, "{}", Show(model, *of, depth + 1))?;
                dims.iter().try_for_each(|d| write!(f, "[{d}]"))
            }
            _ if model.any == Some(id) => f.write_str("any"),
            Type::Struct(name, _)
            | Type::Flat(name, _)
            | Type::Enum(name, _)
            | Type::Bitmask(name, ..)
            | Type::Alias(name, _) => f.write_str(name),
            Type::Union { name, .. } | Type::Forward(name) => f.write_str(name),
            Type::Optional(of) | Type::Shared(of) => {
                write!(f, "{}, which may be absent", Show(model, *of, depth + 1))
            }
            Type::Pointer(_, to) => write!(f, "{} *", Show(model, *to, depth + 1)),
            Type::Open(of) => write!(f, "{}[]", Show(model, *of, depth + 1)),
            Type::Fpage => f.write_str("fpage"),
            Type::Object(None) => f.write_str("Object"),
            Type::Object(Some(id)) => f.write_str(&model.interfaces[id.0 as usize].name),
            Type::Foreign(what, name) if name.is_empty() => f.write_str(what.trim_start_matches("the ")),
            Type::Foreign(_, name) => f.write_str(name),
        }
    }
}
