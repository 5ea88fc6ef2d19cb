//! [`super::ast`] to the [`Model`]: names are resolved, constants evaluated, and every rule that a compiler can check
//! is checked.
//!
//! Names match without regard to case and must then be spelled as declared. A name that an operation or type
//! *uses* is reserved there (OMG IDL 4.2, 7.20.2). Entries live in [`Scope`]s; an interface's scope also holds what
//! it inherits, copied once when it is opened, so that a look-up never walks a graph of bases. After an error a name
//! stands for [`Entry::Poison`] or a type for [`Type::Error`], and both keep silent.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::ast::{self, Base, Constructed, Decl, DeclKind, ForwardKind, TypeKind};
use super::value;
use crate::codes::Code;
use crate::cursor::Ident;
use crate::diag::{Diagnostic, nearest};
use crate::effects;
use crate::expr::{Expr, Item, ScopedName};
use crate::hints;
use crate::intern::Symbol;
use crate::l4;
use crate::limits;
use crate::model::{
    Branch, Called, Const, Direction, Exception, ExceptionId, Field, Interface, InterfaceId, Model,
    Operation, Param, Shown, Type, TypeId, Value,
};
use crate::pp::Pragma;
use crate::session::Session;
use crate::source::Span;

mod annotations;
mod bitsets;
mod constants;
mod headers;
mod interfaces;
mod names;
mod pragma;
mod templates;
mod types;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Module(usize),
    Template(usize),
    Type(TypeId, Option<usize>),
    Interface(InterfaceId, usize),
    Value(TypeId, usize),
    Exception(ExceptionId, usize),
    Const(usize),
    /// A constant that an instance of a template module is given.
    Argument(usize),
    Enumerator(TypeId, i128),
    /// A field, parameter or port.
    Instance,
    /// An operation or attribute.
    Callable,
    /// The scope's own name.
    Own,
    /// A name from outside that is used here.
    Use,
    Assembly(usize),
    Poison,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ScopeKind {
    Global,
    Module,
    Interface,
    Value,
    /// Struct, union or exception.
    Record,
    Operation,
}

#[derive(Debug)]
struct Scope {
    parent: usize,
    kind: ScopeKind,
    path: String,
    entries: HashMap<Symbol, (Entry, Ident)>,
    inherited: HashMap<Symbol, Inherited>,
}

#[derive(Clone, Copy, Debug)]
struct Inherited {
    entry: Entry,
    ident: Ident,
    /// Another name from another base that is spelled the same.
    rival: Option<Ident>,
}

struct Checker<'a> {
    s: &'a mut Session,
    model: Model,
    scopes: Vec<Scope>,
    current: usize,
    poisoned: HashSet<Symbol>,
    /// Interfaces above each interface, itself excluded.
    ancestors: HashMap<InterfaceId, HashSet<InterfaceId>>,
    interface_types: HashMap<InterfaceId, TypeId>,
    inherited_total: usize,
    forwards: HashMap<TypeId, (Ident, ForwardKind)>,
    value_forwards: HashSet<TypeId>,
    interface_scopes: HashMap<InterfaceId, usize>,
    forward_interfaces: Vec<(InterfaceId, Ident)>,
    /// Bases that were only declared when they were inherited: the interface, the base, the place.
    late_bases: Vec<(InterfaceId, InterfaceId, Span)>,
    basics: HashMap<(u8, u8), TypeId>,
    /// Template modules, and the scopes that they are in.
    templates: Vec<(Rc<ast::Template>, usize)>,
    /// The template modules of which instances are being checked, one within another.
    instances: Vec<usize>,
    /// Constants that instances are given.
    arguments: Vec<Value>,
    /// Tokens of all instances.
    instance_tokens: usize,
    error: TypeId,
    main: usize,
    defines: usize,
}

/// Checks a parsed file.
pub fn check(
    s: &mut Session,
    decls: &[Decl],
    pragmas: &[Pragma],
    poisoned: HashSet<Symbol>,
    main: usize,
) -> Model {
    let mut model = Model::default();
    let error = model.add(Type::Error);
    let global = Scope {
        parent: 0,
        kind: ScopeKind::Global,
        path: String::new(),
        entries: HashMap::new(),
        inherited: HashMap::new(),
    };
    let mut checker = Checker {
        s,
        model,
        scopes: vec![global],
        current: 0,
        poisoned,
        ancestors: HashMap::new(),
        interface_types: HashMap::new(),
        inherited_total: 0,
        forwards: HashMap::new(),
        value_forwards: HashSet::new(),
        interface_scopes: HashMap::new(),
        forward_interfaces: Vec::new(),
        late_bases: Vec::new(),
        basics: HashMap::new(),
        templates: Vec::new(),
        instances: Vec::new(),
        arguments: Vec::new(),
        instance_tokens: 0,
        error,
        main,
        defines: 0,
    };
    checker.decls(decls);
    checker.undefined_forwards();
    checker.unknown_annotations();
    checker.pragmas(pragmas);
    checker.model
}

impl Checker<'_> {
    fn text(&self, name: Symbol) -> &str {
        self.s.names.text(name)
    }

    fn fold(&mut self, name: Symbol) -> Symbol {
        let text = self.s.names.text(name);
        if text.bytes().any(|b| b.is_ascii_uppercase()) {
            let lower = text.to_ascii_lowercase();
            return self.s.names.intern(&lower);
        }
        name
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.s.diags.push(Diagnostic::error(code, span, message));
    }

    fn imported(&self, span: Span) -> bool {
        // An instance is where it is made, wherever its template is.
        let site = self.s.map.call_site(self.s.diags.site.unwrap_or(span));
        self.s.map.file_index(site) != Some(self.main)
    }

    fn path(&self, ident: Ident) -> String {
        let scope = &self.scopes[self.current].path;
        let name = self.text(ident.name);
        if scope.is_empty() { name.to_owned() } else { format!("{scope}::{name}") }
    }

    fn decls(&mut self, decls: &[Decl]) {
        for decl in decls {
            if self.s.diags.stop() {
                return;
            }
            self.decl(decl);
        }
    }

    fn decl(&mut self, decl: &Decl) {
        self.defines += 1;
        match &decl.kind {
            DeclKind::Module(name, decls) => {
                self.defines -= 1;
                let scope = self.module(*name);
                self.within(scope, |c| c.decls(decls));
            }
            DeclKind::Template(template) => {
                self.defines -= 1;
                self.template(template);
            }
            DeclKind::Instance(instance) => {
                self.defines -= 1;
                self.instance(instance);
            }
            DeclKind::InterfaceForward(name, flavour) => {
                self.defines -= 1;
                self.interface_entry(*name, *flavour);
            }
            DeclKind::Interface(interface) => self.interface(interface, &decl.annotations),
            DeclKind::Const(ty, name, value) => self.constant(ty, *name, value),
            DeclKind::Typedef(ty, names) => self.typedef(ty, names, &decl.annotations),
            DeclKind::Constructed(constructed) => {
                self.constructed(constructed, &decl.annotations);
            }
            DeclKind::Forward(name, kind) => {
                self.defines -= 1;
                self.forward(*name, *kind);
            }
            DeclKind::Exception(name, members) => self.exception(*name, members),
            DeclKind::Native(name) => {
                let ty = self.model.add(Type::Foreign("the native type", self.path(*name)));
                self.declare(*name, Entry::Type(ty, None));
            }
            DeclKind::Operation(operation) => {
                self.operation(operation);
            }
            DeclKind::Attribute(attribute) => {
                self.attribute(attribute);
            }
            DeclKind::Value(value) => self.value(value),
            DeclKind::Assembly(assembly) => self.assembly(assembly),
            DeclKind::About(names) => {
                for name in names {
                    self.resolve(name);
                }
            }
            DeclKind::Import(literal, span) => self.import(*literal, *span),
            DeclKind::AnnotationType(_) => {}
        }
    }

    fn typedef(&mut self, ty: &ast::Type, names: &[ast::Declarator], annotations: &[ast::Annotation]) {
        let id = self.ty(ty);
        self.limits(annotations, id);
        for declarator in names {
            let of = self.array(id, declarator);
            let path = self.path(declarator.name);
            let alias = self.model.add(Type::Alias(path, of));
            let scope = self.scope_of_type(ty);
            if self.declare(declarator.name, Entry::Type(alias, scope)) {
                self.name_type(alias, declarator.name.span);
            }
        }
    }

    fn module(&mut self, name: Ident) -> usize {
        let folded = self.fold(name.name);
        if let Some(&(Entry::Module(scope), first)) = self.scopes[self.current].entries.get(&folded)
            && first.name == name.name
        {
            return scope;
        }
        let scope = self.open(ScopeKind::Module, name);
        self.declare(name, Entry::Module(scope));
        scope
    }

    fn undefined_forwards(&mut self) {
        let stopped = self.s.diags.errors() > 0;
        let mut forwards: Vec<(Ident, ForwardKind)> =
            std::mem::take(&mut self.forwards).into_values().collect();
        forwards.sort_by_key(|f| f.0.span.lo);
        for (ident, kind) in forwards {
            if self.poisoned.contains(&ident.name) {
                continue;
            }
            let what = if kind == ForwardKind::Struct { "struct" } else { "union" };
            let message = format!("the {what} `{}` is declared and never defined", self.text(ident.name));
            let code = Code::NeverDefined;
            let diagnostic = if self.imported(ident.span) {
                Diagnostic::warning(code, ident.span, message)
            } else {
                Diagnostic::error(code, ident.span, message)
            };
            self.s.diags.push(diagnostic);
        }
        self.late_bases();
        let undefined: Vec<(InterfaceId, Ident)> = std::mem::take(&mut self.forward_interfaces);
        for (id, ident) in undefined {
            if self.model.interfaces[id.0 as usize].defined || self.imported(ident.span) || stopped {
                continue;
            }
            let name = self.text(ident.name);
            let message = format!("the interface `{name}` is declared and never defined");
            // Its references can still be passed on. A file of which that is the only content says nothing.
            let diagnostic = if self.defines == 0 {
                let diagnostic = Diagnostic::error(Code::NeverDefined, ident.span, message);
                diagnostic.help("nothing else is in this file, so there is nothing to compile")
            } else {
                Diagnostic::warning(Code::NeverDefined, ident.span, message)
            };
            self.s.diags.push(diagnostic);
        }
    }
}

fn last(name: &ScopedName) -> Ident {
    name.parts[name.parts.len() - 1]
}

/// The first value of an annotation.
fn annotation<'e>(s: &Session, annotations: &'e [ast::Annotation], name: &str) -> Option<&'e Expr> {
    let found = annotations.iter().find(|a| s.names.text(a.name.name) == name)?;
    found.arguments.first().map(|(_, value)| value)
}

#[cfg(test)]
mod tests;
