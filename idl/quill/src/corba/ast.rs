//! What a CORBA file says, before anything is looked up.

use std::rc::Rc;

use crate::cursor::Ident;
use crate::expr::{Expr, ScopedName};
use crate::intern::Symbol;
use crate::source::Span;

/// `@name` or `@name(…)`.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// The name; of `@a::b`, the last part.
    pub name: Ident,
    /// Values, with their names if given.
    pub arguments: Vec<(Option<Ident>, Expr)>,
    /// The place.
    pub span: Span,
}

/// A declaration.
#[derive(Clone, Debug)]
pub struct Decl {
    /// What precedes it.
    pub annotations: Vec<Annotation>,
    /// What it declares.
    pub kind: DeclKind,
    /// The place of its first line.
    pub span: Span,
}

/// The kinds of interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// `interface`
    Plain,
    /// `abstract interface`
    Abstract,
    /// `local interface`, or the older `pseudo`
    Local,
}

/// What is declared.
#[derive(Clone, Debug)]
pub enum DeclKind {
    /// `module`
    Module(Ident, Vec<Decl>),
    /// `module X<…> {…}`
    Template(Rc<Template>),
    /// `module X<…> Y`, and `alias X<…> Y` in a template module
    Instance(Instance),
    /// `interface X;`
    InterfaceForward(Ident, Flavour),
    /// `interface X {…}`
    Interface(Interface),
    /// `const`
    Const(Type, Ident, Expr),
    /// `typedef`
    Typedef(Type, Vec<Declarator>),
    /// A struct, union, enum, bitmask or bitset on its own
    Constructed(Constructed),
    /// `struct X;` or `union X;`
    Forward(Ident, ForwardKind),
    /// `exception`
    Exception(Ident, Vec<Member>),
    /// `native`
    Native(Ident),
    /// An operation
    Operation(Operation),
    /// `attribute`
    Attribute(Attribute),
    /// `valuetype` or `eventtype`, all forms
    Value(Value),
    /// `component`, `connector`, `home`, `porttype`: read and kept as a scope
    Assembly(Assembly),
    /// `import` of a file: the literal
    Import(Symbol, Span),
    /// `typeid`, `typeprefix`, `import`: the name is checked
    About(Vec<ScopedName>),
    /// `@annotation X {…}`
    AnnotationType(Ident),
}

/// What a forward declaration promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardKind {
    /// `struct X;`
    Struct,
    /// `union X;`
    Union,
}

/// A module with parameters.
#[derive(Clone, Debug)]
pub struct Template {
    /// Its name.
    pub name: Ident,
    /// Its parameters.
    pub formals: Vec<Formal>,
    /// What it contains.
    pub body: Vec<Decl>,
    /// Tokens of the body.
    pub size: usize,
}

/// A parameter of a template module.
#[derive(Clone, Debug)]
pub struct Formal {
    /// What may stand for it.
    pub kind: FormalKind,
    /// Its name.
    pub name: Ident,
}

/// What may stand for a parameter of a template module.
#[derive(Clone, Debug)]
pub enum FormalKind {
    /// `typename`: any type
    Type,
    /// `interface`
    Interface,
    /// `valuetype` or `eventtype`
    Value,
    /// `struct`
    Struct,
    /// `union`
    Union,
    /// `enum`
    Enum,
    /// `exception`
    Exception,
    /// `sequence`, or a particular one
    Sequence(Option<Type>),
    /// `const`, with its type
    Const(Type),
}

/// A module that is made of a template module.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The template.
    pub template: ScopedName,
    /// What stands for its parameters.
    pub actuals: Vec<Actual>,
    /// The name of the new module.
    pub name: Ident,
}

/// What stands for a parameter of a template module.
#[derive(Clone, Debug)]
pub enum Actual {
    /// A type, or the name of anything.
    Type(Type),
    /// A value.
    Value(Expr),
}

/// An interface with a body.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its name.
    pub name: Ident,
    /// Its kind.
    pub flavour: Flavour,
    /// What it inherits.
    pub bases: Vec<ScopedName>,
    /// What it contains.
    pub body: Vec<Decl>,
}

/// A type where one is used.
#[derive(Clone, Debug)]
pub struct Type {
    /// Which.
    pub kind: TypeKind,
    /// The place.
    pub span: Span,
}

/// The types.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// A type that a keyword or two name.
    Base(Base),
    /// A name.
    Named(ScopedName),
    /// `string` or `wstring`, with a bound.
    String(bool, Option<Expr>),
    /// `sequence`
    Sequence(Box<Type>, Option<Expr>),
    /// `map`
    Map(Box<Type>, Box<Type>, Option<Expr>),
    /// `ref`, an address of a value, as IDL4 has it.
    Ref(Box<Type>),
    /// `fixed`, with digits and scale.
    Fixed(Option<(Expr, Expr)>),
    /// A type declared where it is used, and what precedes it.
    Constructed(Box<Constructed>, Vec<Annotation>),
}

/// The basic types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// `void`
    Void,
    /// Whole numbers: bits, signed.
    Int(u8, bool),
    /// Floating point: bits.
    Float(u8),
    /// `boolean`
    Boolean,
    /// `octet`
    Octet,
    /// `char`
    Char,
    /// `wchar`
    WideChar,
    /// `any`
    Any,
    /// `Object`
    Object,
    /// `ValueBase`
    ValueBase,
}

/// A declared name with array bounds.
#[derive(Clone, Debug)]
pub struct Declarator {
    /// The name.
    pub name: Ident,
    /// The bounds.
    pub dims: Vec<Expr>,
}

/// Fields of one type.
#[derive(Clone, Debug)]
pub struct Member {
    /// What precedes them.
    pub annotations: Vec<Annotation>,
    /// Their type.
    pub ty: Type,
    /// Their names.
    pub names: Vec<Declarator>,
}

/// A type with a body.
#[derive(Clone, Debug)]
pub enum Constructed {
    /// `struct`
    Struct {
        /// Its name.
        name: Ident,
        /// The struct it extends.
        base: Option<ScopedName>,
        /// Its fields.
        members: Vec<Member>,
        /// Constants among the fields, as some compilers allow.
        inner: Vec<Decl>,
    },
    /// `union`
    Union {
        /// Its name.
        name: Ident,
        /// The type of the discriminator.
        switch: Type,
        /// Its branches.
        cases: Vec<Case>,
    },
    /// `union` without a discriminator
    Flat {
        /// Its name.
        name: Ident,
        /// Its members.
        members: Vec<Member>,
    },
    /// `enum`
    Enum {
        /// Its name.
        name: Ident,
        /// Its names.
        members: Vec<(Ident, Vec<Annotation>)>,
    },
    /// `bitmask`
    Bitmask {
        /// Its name.
        name: Ident,
        /// Its names.
        members: Vec<(Ident, Vec<Annotation>)>,
    },
    /// `bitset`
    Bitset {
        /// Its name.
        name: Ident,
        /// The bitset it extends.
        base: Option<ScopedName>,
        /// Width and names of each group.
        fields: Vec<(Expr, Vec<Ident>)>,
    },
}

impl Constructed {
    /// Place of its name, for another one.
    pub fn name_mut(&mut self) -> &mut Ident {
        match self {
            Constructed::Struct { name, .. }
            | Constructed::Union { name, .. }
            | Constructed::Flat { name, .. }
            | Constructed::Enum { name, .. }
            | Constructed::Bitmask { name, .. }
            | Constructed::Bitset { name, .. } => name,
        }
    }
}

/// A branch of a union.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its labels; `None` is `default`, with its place.
    pub labels: Vec<(Option<Expr>, Span)>,
    /// Its field.
    pub member: Member,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Its name.
    pub name: Ident,
    /// Nothing comes back.
    pub oneway: Option<Span>,
    /// Its result; `None` for a factory or finder.
    pub result: Option<Type>,
    /// Its parameters.
    pub params: Vec<Param>,
    /// What it may raise.
    pub raises: Vec<ScopedName>,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// What precedes it.
    pub annotations: Vec<Annotation>,
    /// `in`, `out` or `inout`.
    pub direction: Direction,
    /// Its type.
    pub ty: Type,
    /// Its name.
    pub name: Ident,
}

/// Which way a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the server
    In,
    /// From the server
    Out,
    /// Both
    InOut,
}

/// One or more attributes.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// It has no setter.
    pub readonly: bool,
    /// Its type.
    pub ty: Type,
    /// The names.
    pub names: Vec<Ident>,
    /// What getting and setting may raise.
    pub get_raises: Vec<ScopedName>,
    /// What setting may raise.
    pub set_raises: Vec<ScopedName>,
}

/// A value type in any form.
#[derive(Clone, Debug)]
pub struct Value {
    /// Its name.
    pub name: Ident,
    /// `abstract`, which has no state, or `custom`, whose state its programs write; or neither.
    pub special: Option<&'static str>,
    /// Only a declaration.
    pub forward: bool,
    /// `valuetype X type;`
    pub boxed: Option<Type>,
    /// What it inherits.
    pub bases: Vec<ScopedName>,
    /// What it supports.
    pub supports: Vec<ScopedName>,
    /// State, factories, operations, types.
    pub body: Vec<Decl>,
    /// State members.
    pub state: Vec<Member>,
}

/// A component, home or port type.
#[derive(Clone, Debug)]
pub struct Assembly {
    /// The keyword.
    pub keyword: &'static str,
    /// Its name.
    pub name: Ident,
    /// Only a declaration.
    pub forward: bool,
    /// Types it names anywhere.
    pub uses: Vec<ScopedName>,
    /// Ports: names that it declares.
    pub ports: Vec<Ident>,
    /// Operations, attributes, types.
    pub body: Vec<Decl>,
}
