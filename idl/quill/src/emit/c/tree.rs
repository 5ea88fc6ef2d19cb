//! The target tree for C: as much of the language as stubs need, and its text.
//!
//! The text depends on the tree alone. Operands that are not plain are put in parentheses, so that no table of
//! precedences decides what a stub means.

use std::fmt::Write;

/// A type as it stands before and behind a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ty {
    /// Its name.
    pub base: String,
    /// What it points to cannot be changed.
    pub constant: bool,
    /// It is a pointer.
    pub pointer: bool,
    /// It is an array.
    pub dims: Vec<u64>,
}

impl Ty {
    /// A plain type.
    pub fn named(base: impl Into<String>) -> Ty {
        Ty { base: base.into(), constant: false, pointer: false, dims: Vec::new() }
    }

    /// A pointer to a type that is none.
    pub fn to(mut self) -> Ty {
        self.pointer = true;
        self
    }

    /// This type, but constant.
    pub fn constant(mut self) -> Ty {
        self.constant = true;
        self
    }

    /// The declaration of a name.
    pub fn declare(&self, name: &str) -> String {
        let constant = if self.constant { "const " } else { "" };
        let star = if self.pointer { "*" } else { "" };
        // A pointer to an array needs parentheses.
        let name = if self.pointer && !self.dims.is_empty() {
            format!("({star}{name})")
        } else {
            format!("{star}{name}")
        };
        let dims: String = self.dims.iter().map(|d| format!("[{d}]")).collect();
        let gap = if name.is_empty() || self.base.ends_with('*') { "" } else { " " };
        format!("{constant}{}{gap}{name}{dims}", self.base)
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A name, or anything that is as tight as one.
    Name(String),
    /// A whole number that fits its place without a suffix.
    Int(i128),
    /// A field of a value.
    Field(Box<Expr>, String),
    /// A field of what a pointer points to.
    Arrow(Box<Expr>, String),
    /// An element.
    Index(Box<Expr>, Box<Expr>),
    /// What a pointer points to.
    Deref(Box<Expr>),
    /// The address of a place.
    Address(Box<Expr>),
    /// A call of a function.
    Call(Box<Expr>, Vec<Expr>),
    /// Two operands.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// Not.
    Not(Box<Expr>),
    /// A value as another type.
    Cast(Ty, Box<Expr>),
}

/// A name.
pub fn name(text: impl Into<String>) -> Expr {
    Expr::Name(text.into())
}

/// A call of a function by name.
pub fn call(function: impl Into<String>, arguments: impl IntoIterator<Item = Expr>) -> Expr {
    Expr::Call(Box::new(name(function)), arguments.into_iter().collect())
}

impl Expr {
    /// A field of it.
    pub fn field(self, field: impl Into<String>) -> Expr {
        match self {
            Expr::Deref(pointer) => Expr::Arrow(pointer, field.into()),
            value => Expr::Field(Box::new(value), field.into()),
        }
    }

    /// Its address.
    pub fn address(self) -> Expr {
        match self {
            Expr::Deref(pointer) => *pointer,
            place => Expr::Address(Box::new(place)),
        }
    }

    /// What it points to.
    pub fn deref(self) -> Expr {
        match self {
            Expr::Address(place) => *place,
            pointer => Expr::Deref(Box::new(pointer)),
        }
    }

    /// An element of it.
    pub fn index(self, index: Expr) -> Expr {
        Expr::Index(Box::new(self), Box::new(index))
    }

    /// It and another operand.
    pub fn with(self, operator: &'static str, other: Expr) -> Expr {
        Expr::Binary(operator, Box::new(self), Box::new(other))
    }

    /// It as another type.
    pub fn cast(self, ty: Ty) -> Expr {
        Expr::Cast(ty, Box::new(self))
    }

    /// Its text.
    pub fn text(&self) -> String {
        match self {
            Expr::Name(text) => text.clone(),
            Expr::Int(value) => integer(*value),
            Expr::Field(of, field) => format!("{}.{field}", of.tight()),
            Expr::Arrow(of, field) => format!("{}->{field}", of.tight()),
            Expr::Index(of, index) => format!("{}[{}]", of.tight(), index.text()),
            Expr::Deref(of) => format!("*{}", of.tight()),
            Expr::Address(of) => format!("&{}", of.tight()),
            Expr::Call(function, arguments) => {
                let arguments: Vec<String> = arguments.iter().map(Expr::text).collect();
                format!("{}({})", function.tight(), arguments.join(", "))
            }
            Expr::Binary(operator, a, b) => format!("{} {operator} {}", a.tight(), b.tight()),
            Expr::Not(of) => format!("!{}", of.tight()),
            Expr::Cast(ty, of) => format!("({}){}", ty.declare(""), of.tight()),
        }
    }

    /// As an operand.
    pub fn tight(&self) -> String {
        match self {
            Expr::Binary(..) | Expr::Cast(..) | Expr::Deref(_) | Expr::Address(_) | Expr::Not(_) => {
                format!("({})", self.text())
            }
            Expr::Int(value) if *value < 0 => format!("({})", self.text()),
            _ => self.text(),
        }
    }
}

/// A number, with the suffix that its size needs. The smallest of all cannot be written as such.
pub fn integer(value: i128) -> String {
    match value {
        v if v == i128::from(i64::MIN) => "(-9223372036854775807ll - 1)".into(),
        v if v == i128::from(i32::MIN) => "(-2147483647 - 1)".into(),
        v if v > i128::from(i64::MAX) => format!("{v}ull"),
        v if i32::try_from(v).is_err() => {
            if u32::try_from(v).is_ok() {
                format!("{v}u")
            } else {
                format!("{v}ll")
            }
        }
        v => v.to_string(),
    }
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// A variable; without a value it is zero.
    Let(Ty, String, Option<Expr>),
    /// A variable that gets its value later.
    Announce(Ty, String),
    /// An assignment.
    Set(Expr, Expr),
    /// An expression for its effect.
    Do(Expr),
    /// A condition.
    If(Expr, Vec<Stmt>),
    /// A loop over an index from 0.
    For(String, Expr, Vec<Stmt>),
    /// A loop without an end.
    Forever(Vec<Stmt>),
    /// A choice by number; the last list is for all others.
    Switch(Expr, Vec<(Vec<i128>, Vec<Stmt>)>, Vec<Stmt>),
    /// The end of a function.
    Return(Option<Expr>),
}

/// Types and names of parameters.
pub type Parameters = Vec<(Ty, String)>;

/// What stands at the outermost level.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Text that is the same in each file.
    Verbatim(&'static str),
    /// Text that no compiler takes apart: a function of assembly.
    Text(String),
    /// A macro for a constant.
    Define(String, String),
    /// A type by another name.
    Typedef(Ty, String),
    /// A struct or union announced before it is defined.
    Announce(&'static str, String),
    /// A struct or union: its keyword, its name, its fields; the name is also a type.
    Record(&'static str, String, Vec<(Ty, String)>),
    /// Names for numbers.
    Enum(Vec<(String, i128)>),
    /// A function that is announced before it is defined.
    Prototype(Ty, String, Parameters),
    /// A function.
    Function(Ty, String, Parameters, Vec<Stmt>),
    /// A struct of pointers to functions: the name, and result, name and parameters of each.
    Methods(String, Vec<(Ty, String, Parameters)>),
    /// What a reader should know of the next item.
    Comment(String),
    /// Items that another header may have brought already; the macro says so.
    Once(String, Vec<Item>),
}

/// The text of a file.
pub fn text(items: &[Item]) -> String {
    let mut out = String::new();
    for (i, item) in items.iter().enumerate() {
        let together = |a: &Item, b: &Item| {
            std::mem::discriminant(a) == std::mem::discriminant(b)
                && matches!(
                    a,
                    Item::Define(..) | Item::Typedef(..) | Item::Announce(..) | Item::Prototype(..)
                )
        };
        if i > 0 && !together(&items[i - 1], item) && !matches!(items[i - 1], Item::Comment(_)) {
            out.push('\n');
        }
        item.write(&mut out);
    }
    out
}

impl Item {
    fn write(&self, out: &mut String) {
        match self {
            Item::Verbatim(text) => out.push_str(text),
            Item::Text(text) => out.push_str(text),
            Item::Define(name, value) => writeln!(out, "#define {name} {value}").unwrap_or(()),
            Item::Typedef(ty, name) => writeln!(out, "typedef {};", ty.declare(name)).unwrap_or(()),
            Item::Announce(keyword, name) => {
                writeln!(out, "typedef {keyword} {name} {name};").unwrap_or(());
            }
            Item::Record(keyword, name, fields) => {
                writeln!(out, "{keyword} {name} {{").unwrap_or(());
                for (ty, field) in fields {
                    writeln!(out, "    {};", ty.declare(field)).unwrap_or(());
                }
                out.push_str("};\n");
            }
            Item::Enum(members) => {
                out.push_str("enum {\n");
                for (member, value) in members {
                    writeln!(out, "    {member} = {},", integer(*value)).unwrap_or(());
                }
                out.push_str("};\n");
            }
            Item::Prototype(result, name, parameters) => {
                writeln!(out, "{};", head(result, name, parameters)).unwrap_or(());
            }
            Item::Function(result, name, parameters, body) => {
                writeln!(out, "{}\n{{", head(result, name, parameters)).unwrap_or(());
                body.iter().for_each(|s| s.write(out, 1));
                out.push_str("}\n");
            }
            Item::Methods(name, methods) => {
                writeln!(out, "struct {name} {{").unwrap_or(());
                for (result, method, parameters) in methods {
                    let parameters = list(parameters);
                    writeln!(out, "    {} (*{method})({parameters});", result.declare("")).unwrap_or(());
                }
                out.push_str("};\n");
            }
            Item::Once(guard, items) => {
                writeln!(out, "#ifndef {guard}\n#define {guard}").unwrap_or(());
                items.iter().for_each(|item| item.write(out));
                out.push_str("#endif\n");
            }
            Item::Comment(text) => writeln!(out, "/* {} */", text.replace("*/", "* /")).unwrap_or(()),
        }
    }
}

/// Every function is the file's own: stubs are inlined, and two files may include one header.
fn head(result: &Ty, name: &str, parameters: &[(Ty, String)]) -> String {
    format!("static inline {}({})", result.declare(name), list(parameters))
}

fn list(parameters: &[(Ty, String)]) -> String {
    if parameters.is_empty() {
        return "void".into();
    }
    parameters.iter().map(|(ty, name)| ty.declare(name)).collect::<Vec<_>>().join(", ")
}

impl Stmt {
    fn write(&self, out: &mut String, depth: usize) {
        let pad = "    ".repeat(depth);
        let block = |out: &mut String, body: &[Stmt]| {
            out.push_str(" {\n");
            body.iter().for_each(|s| s.write(out, depth + 1));
            out.push_str(&pad);
            out.push('}');
        };
        out.push_str(&pad);
        match self {
            Stmt::Let(ty, name, Some(value)) => {
                write!(out, "{} = {};", ty.declare(name), value.text()).unwrap_or(());
            }
            Stmt::Let(ty, name, None) => {
                // Braces, so that it holds for structs and arrays as for numbers.
                write!(out, "{} = {{ 0 }};", ty.declare(name)).unwrap_or(());
            }
            Stmt::Announce(ty, name) => write!(out, "{};", ty.declare(name)).unwrap_or(()),
            Stmt::Set(place, value) => write!(out, "{} = {};", place.text(), value.text()).unwrap_or(()),
            Stmt::Do(expr) => write!(out, "{};", expr.text()).unwrap_or(()),
            Stmt::If(condition, body) => {
                write!(out, "if ({})", condition.text()).unwrap_or(());
                block(out, body);
            }
            Stmt::For(index, count, body) => {
                write!(out, "for (size_t {index} = 0; {index} < {}; {index}++)", count.tight()).unwrap_or(());
                block(out, body);
            }
            Stmt::Forever(body) => {
                out.push_str("for (;;)");
                block(out, body);
            }
            Stmt::Switch(value, cases, others) => {
                writeln!(out, "switch ({}) {{", value.text()).unwrap_or(());
                let arms = cases.iter().map(|(labels, body)| (labels.as_slice(), body));
                for (labels, body) in arms.chain([(&[][..], others)]) {
                    let heads: Vec<String> =
                        labels.iter().map(|l| format!("{pad}case {}:", integer(*l))).collect();
                    let heads = if heads.is_empty() { format!("{pad}default:") } else { heads.join("\n") };
                    writeln!(out, "{heads} {{").unwrap_or(());
                    body.iter().for_each(|s| s.write(out, depth + 1));
                    if !matches!(body.last(), Some(Stmt::Return(_))) {
                        writeln!(out, "{pad}    break;").unwrap_or(());
                    }
                    writeln!(out, "{pad}}}").unwrap_or(());
                }
                write!(out, "{pad}}}").unwrap_or(());
            }
            Stmt::Return(Some(value)) => write!(out, "return {};", value.text()).unwrap_or(()),
            Stmt::Return(None) => out.push_str("return;"),
        }
        out.push('\n');
    }
}
