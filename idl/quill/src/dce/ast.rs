//! What a DCE or MS IDL file says, before anything is looked up.

use crate::cursor::Ident;
use crate::expr::Expr;
use crate::intern::Symbol;
use crate::lex::Token;
use crate::source::Span;

/// An attribute in brackets.
#[derive(Clone, Debug)]
pub struct Attr {
    /// Its name.
    pub name: Symbol,
    /// What stands in parentheses behind it, unread.
    pub arguments: Option<Vec<Token>>,
    /// The place.
    pub span: Span,
}

/// Something in a file or interface.
#[derive(Clone, Debug)]
pub struct Item {
    /// What precedes it in brackets.
    pub attrs: Vec<Attr>,
    /// Which.
    pub kind: ItemKind,
    /// It stands in a C header: what cannot be understood there is no error.
    pub header: bool,
    /// The place of its start.
    pub span: Span,
}

/// The kinds of item.
#[derive(Clone, Debug)]
pub enum ItemKind {
    /// `import "a.idl", "b.idl";`: the literals
    Import(Vec<(Symbol, Span)>),
    /// `typedef`, with the attributes behind the word
    Typedef(Vec<Attr>, Spec, Vec<Declarator>),
    /// `const`
    Const(Spec, Declarator, Expr),
    /// A type on its own: a body, or a promise of one
    Type(Spec),
    /// An operation, or a function that a header declares, and what it raises
    Function(Spec, Declarator, Vec<Ident>),
    /// `exception X {…}`, as IDL4 has it
    Exception(Ident, Vec<Field>),
    /// `interface X;`, or the same with `coclass`, `dispinterface` …
    Forward(Ident),
    /// `interface X : Y {…}` and `dispinterface`
    Interface(Interface),
    /// `library`, `module`, `namespace`, `extern "C"`: items within braces
    Group(&'static str, Option<Ident>, Vec<Item>),
    /// `coclass`, `runtimeclass`: the interfaces that it names
    Class(Ident, Vec<Ident>),
    /// A name that a header declares in a way that is not understood
    Unread(Ident),
    /// `importlib`
    TypeLibrary,
    /// `cpp_quote`: text for headers of C
    Quote(String),
    /// Nothing that concerns types: `pyhelper` …
    Nothing,
}

/// An interface with a body.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its name.
    pub name: Ident,
    /// What it inherits or requires.
    pub bases: Vec<Ident>,
    /// What it contains.
    pub items: Vec<Item>,
    /// A `dispinterface`, whose operations may share names.
    pub dispatch: bool,
}

/// A type without pointers and arrays.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Which.
    pub kind: SpecKind,
    /// The place.
    pub span: Span,
}

/// The kinds of type.
#[derive(Clone, Debug)]
pub enum SpecKind {
    /// Keywords
    Basic(Basic),
    /// A name
    Named(Ident),
    /// A name with arguments or dots, as WinRT has them: only the first part is looked up
    Generic(Ident),
    /// `struct` or `union`
    Record(Record),
    /// `enum` or `bitmap`
    Enum(Enum),
    /// `pipe T`
    Pipe(Box<Spec>),
    /// `SAFEARRAY(T)`
    SafeArray(Box<Spec>),
}

/// Types that keywords name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basic {
    /// `void`
    Void,
    /// Whole numbers: bits, signed
    Int(u8, bool),
    /// `float` or `double`
    Float(u8),
    /// `boolean`
    Boolean,
    /// `byte`
    Byte,
    /// `char`
    Char,
    /// `wchar_t`
    WideChar,
    /// `handle_t`
    Handle,
}

/// A struct or union.
#[derive(Clone, Debug)]
pub struct Record {
    /// A union.
    pub union: bool,
    /// Its tag.
    pub tag: Option<Ident>,
    /// Its body.
    pub body: Option<Vec<Field>>,
    /// `switch (type name)` of an encapsulated union.
    pub switch: Option<(Box<Spec>, Ident)>,
}

/// An enum or bitmap.
#[derive(Clone, Debug)]
pub struct Enum {
    /// What stands between the keyword and the name.
    pub attrs: Vec<Attr>,
    /// A bitmap.
    pub bits: bool,
    /// Its tag.
    pub tag: Option<Ident>,
    /// Its names.
    pub members: Option<Vec<(Ident, Option<Expr>)>>,
}

/// Fields of one type; of a union, a branch.
#[derive(Clone, Debug)]
pub struct Field {
    /// What precedes them in brackets.
    pub attrs: Vec<Attr>,
    /// Their type; `None` for an empty branch.
    pub spec: Option<Spec>,
    /// Their names.
    pub names: Vec<Declarator>,
    /// Labels written as `case X:`; `None` is `default:`.
    pub labels: Vec<(Option<Expr>, Span)>,
    /// The place of its start.
    pub span: Span,
}

/// A declared name with what stands around it.
#[derive(Clone, Debug)]
pub struct Declarator {
    /// The name; a parameter may have none.
    pub name: Option<Ident>,
    /// What the name is, read outwards from it.
    pub derived: Vec<Derived>,
    /// The place.
    pub span: Span,
}

/// A step from a declared name to its type.
#[derive(Clone, Debug)]
pub enum Derived {
    /// `*`
    Pointer,
    /// `[n]`, or without a size
    Array(Option<Expr>),
    /// `(…)`
    Function(Vec<Param>),
    /// `: n`
    Bits(Expr),
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// What precedes it in brackets.
    pub attrs: Vec<Attr>,
    /// Its type.
    pub spec: Spec,
    /// Its name.
    pub declarator: Declarator,
}
