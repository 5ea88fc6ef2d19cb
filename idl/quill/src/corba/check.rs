//! [`super::ast`] to the [`Model`]: names are resolved, constants evaluated, and every rule that a compiler can check
//! is checked.
//!
//! Names match without regard to case and must then be spelled as declared. A name that an operation or type
//! *uses* is reserved there (OMG IDL 4.2, 7.20.2). Entries live in [`Scope`]s; an interface's scope also holds what
//! it inherits, copied once when it is opened, so that a look-up never walks a graph of bases. After an error a name
//! stands for [`Entry::Poison`] or a type for [`Type::Error`], and both keep silent.

use std::collections::{HashMap, HashSet};

use super::ast::{self, Base, Constructed, Decl, DeclKind, ForwardKind, TypeKind};
use super::value;
use crate::codes::Code;
use crate::cursor::Ident;
use crate::diag::{Diagnostic, nearest};
use crate::expr::{Expr, Item, ScopedName};
use crate::intern::Symbol;
use crate::limits;
use crate::model::{
    Branch, Const, Direction, Exception, ExceptionId, Field, Interface, InterfaceId, Model, Operation, Param,
    Type, TypeId, Value,
};
use crate::pp::Pragma;
use crate::session::Session;
use crate::source::Span;

mod pragma;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Module(usize),
    Type(TypeId, Option<usize>),
    Interface(InterfaceId, usize),
    Value(TypeId, usize),
    Exception(ExceptionId, usize),
    Const(usize),
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
        error,
        main,
        defines: 0,
    };
    checker.decls(decls);
    checker.undefined_forwards();
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
        let site = self.s.map.call_site(span);
        self.s.map.file_index(site) != Some(self.main)
    }

    fn path(&self, ident: Ident) -> String {
        let scope = &self.scopes[self.current].path;
        let name = self.text(ident.name);
        if scope.is_empty() { name.to_owned() } else { format!("{scope}::{name}") }
    }

    // --- scopes and names

    fn open(&mut self, kind: ScopeKind, ident: Ident) -> usize {
        // A path is kept for messages and for names in the output; deeply nested long names would fill memory.
        let mut path = self.path(ident);
        if path.len() > 4096 {
            path = self.text(ident.name).to_owned();
        }
        let mut entries = HashMap::new();
        if kind != ScopeKind::Operation {
            entries.insert(self.fold(ident.name), (Entry::Own, ident));
        }
        self.scopes.push(Scope { parent: self.current, kind, path, entries, inherited: HashMap::new() });
        self.scopes.len() - 1
    }

    fn within<T>(&mut self, scope: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.current, scope);
        let result = work(self);
        self.current = outer;
        result
    }

    /// Enters a name into the current scope; false when it clashes.
    fn declare(&mut self, ident: Ident, entry: Entry) -> bool {
        self.declare_in(self.current, ident, entry)
    }

    fn declare_in(&mut self, scope: usize, ident: Ident, entry: Entry) -> bool {
        let folded = self.fold(ident.name);
        let name = self.s.names.shared(ident.name);
        if let Some(&(old, first)) = self.scopes[scope].entries.get(&folded) {
            let diagnostic = match old {
                Entry::Poison => None,
                Entry::Use => self.declared_after_use(scope, ident, first, entry),
                Entry::Own => {
                    let message = format!("`{name}` is the name of the scope around it");
                    // A field that is named like its struct hides nothing that anyone could mean.
                    let field = entry == Entry::Instance && self.scopes[scope].kind == ScopeKind::Record;
                    let make: fn(Code, Span, String) -> Diagnostic =
                        if field { Diagnostic::warning } else { Diagnostic::error };
                    Some(make(Code::OwnName, ident.span, message).note(first.span, "the scope is this"))
                }
                _ if first.name == ident.name => {
                    let message = format!("`{name}` is declared twice");
                    Some(
                        Diagnostic::error(Code::Duplicate, ident.span, message)
                            .note(first.span, "first declared here"),
                    )
                }
                _ => {
                    let message = format!("`{name}` differs from `{}` only in case", self.text(first.name));
                    let diagnostic = Diagnostic::error(Code::CaseClash, ident.span, message);
                    Some(diagnostic.note(first.span, "the other is declared here"))
                }
            };
            let warned = diagnostic.as_ref().is_none_or(|d| d.severity == crate::diag::Severity::Warning);
            if let Some(diagnostic) = diagnostic {
                self.s.diags.push(diagnostic);
            }
            if !warned {
                return false;
            }
        }
        if entry == Entry::Callable
            && let Some(inherited) = self.scopes[scope].inherited.get(&folded).copied()
            && matches!(inherited.entry, Entry::Callable)
        {
            let message = format!("`{name}` is already inherited");
            let diagnostic = Diagnostic::error(Code::Inherited, ident.span, message);
            self.s.diags.push(diagnostic.note(inherited.ident.span, "it is inherited from here"));
            return false;
        }
        self.scopes[scope].entries.insert(folded, (entry, ident));
        true
    }

    fn declared_after_use(
        &self,
        scope: usize,
        ident: Ident,
        used: Ident,
        entry: Entry,
    ) -> Option<Diagnostic> {
        let name = self.text(ident.name);
        let kind = self.scopes[scope].kind;
        let message = format!("`{name}` is declared where a `{}` from outside is used", self.text(used.name));
        // Fields named like their type are too common in data models to refuse.
        let harmless = entry == Entry::Instance && kind == ScopeKind::Record;
        let diagnostic = if harmless {
            if used.name != ident.name {
                return None;
            }
            Diagnostic::warning(Code::UsedBefore, ident.span, message)
        } else {
            Diagnostic::error(Code::UsedBefore, ident.span, message)
        };
        Some(diagnostic.note(used.span, "it is used here"))
    }

    /// Looks in one scope, without its parents.
    fn find_in(&mut self, scope: usize, ident: Ident) -> Option<(Entry, Ident)> {
        let folded = self.fold(ident.name);
        match self.scopes[scope].entries.get(&folded) {
            Some(&(Entry::Use, _)) | None => {}
            Some(&(Entry::Own, own)) => {
                // The scope's own name means the scope, as seen from around it.
                let parent = self.scopes[scope].parent;
                if parent != scope {
                    return match self.scopes[parent].entries.get(&folded) {
                        Some(&(entry, _)) if !matches!(entry, Entry::Own | Entry::Use) => Some((entry, own)),
                        _ => None,
                    };
                }
            }
            Some(&found) => return Some(found),
        }
        let inherited = self.scopes[scope].inherited.get(&folded).copied()?;
        if let Some(rival) = inherited.rival {
            let message = format!("`{}` is ambiguous: two bases have it", self.text(ident.name));
            let diagnostic = Diagnostic::error(Code::Ambiguous, ident.span, message);
            let diagnostic =
                diagnostic.note(inherited.ident.span, "one is here").note(rival.span, "one is here");
            self.s.diags.push(diagnostic);
            return Some((Entry::Poison, ident));
        }
        Some((inherited.entry, inherited.ident))
    }

    /// What a name stands for; reports when it stands for nothing.
    fn resolve(&mut self, name: &ScopedName) -> Entry {
        let first = name.parts[0];
        let mut scope = if name.absolute { 0 } else { self.current };
        // The nearest name in the right case; only without one, the nearest in another case.
        let mut other_case = None;
        let mut found = loop {
            match self.find_in(scope, first) {
                Some(found) if found.1.name == first.name || found.0 == Entry::Poison => break Some(found),
                Some(found) => other_case = other_case.or(Some((found, scope))),
                None => {}
            }
            if scope == 0 {
                break None;
            }
            scope = self.scopes[scope].parent;
        };
        if found.is_none()
            && let Some((near, its_scope)) = other_case
        {
            (found, scope) = (Some(near), its_scope);
        }
        if found.is_none() {
            if let Some(entry) = self.predefined(name) {
                return entry;
            }
            self.unknown(name, first, None);
            return Entry::Poison;
        }
        if !name.absolute && scope != self.current {
            self.record_use(first);
        }
        for (i, &part) in name.parts.iter().enumerate() {
            if i > 0 {
                let inner = match found {
                    Some((Entry::Module(scope) | Entry::Interface(_, scope) | Entry::Value(_, scope), _)) => {
                        Some(scope)
                    }
                    Some((Entry::Type(_, scope), _)) => scope,
                    Some((Entry::Exception(_, scope) | Entry::Assembly(scope), _)) => Some(scope),
                    _ => None,
                };
                if let Some((Entry::Poison, _)) = found {
                    return Entry::Poison;
                }
                let Some(inner) = inner else {
                    let message = format!("`{}` contains no names", self.text(name.parts[i - 1].name));
                    self.error(Code::NotScope, name.parts[i - 1].span, message);
                    return Entry::Poison;
                };
                found = self.find_in(inner, part);
                if found.is_none() {
                    if let Some(entry) = self.predefined(name) {
                        return entry;
                    }
                    self.unknown(name, part, Some(inner));
                    return Entry::Poison;
                }
            }
            if let Some((entry, declared)) = found
                && declared.name != part.name
                && entry != Entry::Poison
            {
                let message =
                    format!("`{}` is declared as `{}`", self.text(part.name), self.text(declared.name));
                let diagnostic = Diagnostic::error(Code::CaseUse, part.span, message);
                let diagnostic = diagnostic.note(declared.span, "declared here");
                let help = format!(
                    "write `{}`: names are used in the case of their declaration",
                    self.text(declared.name)
                );
                self.s.diags.push(diagnostic.help(help));
            }
        }
        found.map_or(Entry::Poison, |(entry, _)| entry)
    }

    fn record_use(&mut self, ident: Ident) {
        let folded = self.fold(ident.name);
        let mut scope = self.current;
        loop {
            let kind = self.scopes[scope].kind;
            if matches!(kind, ScopeKind::Global | ScopeKind::Module) {
                return;
            }
            self.scopes[scope].entries.entry(folded).or_insert((Entry::Use, ident));
            if !matches!(kind, ScopeKind::Record | ScopeKind::Operation) {
                return;
            }
            scope = self.scopes[scope].parent;
        }
    }

    fn unknown(&mut self, name: &ScopedName, part: Ident, inside: Option<usize>) {
        if self.s.incomplete || name.parts.iter().any(|p| self.poisoned.contains(&p.name)) {
            return;
        }
        // Names in reach, innermost scope first.
        let mut candidates = Vec::new();
        let mut scope = inside.unwrap_or(self.current);
        loop {
            let here = &self.scopes[scope];
            let visible =
                |e: &Entry| !matches!(e, Entry::Use | Entry::Poison | Entry::Instance | Entry::Callable);
            candidates.extend(here.entries.values().filter(|(e, _)| visible(e)).map(|(_, i)| i.name));
            candidates.extend(here.inherited.values().filter(|i| visible(&i.entry)).map(|i| i.ident.name));
            if scope == 0 || inside.is_some() || candidates.len() > 20_000 {
                break;
            }
            scope = here.parent;
        }
        candidates.sort();
        let text = self.s.names.shared(part.name);
        let words = [
            "string", "sequence", "boolean", "octet", "long", "short", "unsigned", "double", "float",
            "wstring",
        ];
        let all = candidates.iter().map(|&n| self.s.names.text(n));
        let near = nearest(&text, all.chain(if inside.is_none() { words.to_vec() } else { Vec::new() }));
        let message = match inside {
            Some(scope) => format!("`{text}` is not declared in `{}`", self.scopes[scope].path),
            None => format!("`{text}` is not declared"),
        };
        let mut diagnostic = Diagnostic::error(Code::Unknown, part.span, message).maybe(near);
        if near.is_none() && inside.is_none() {
            let help = match &*text {
                "int" => Some("`long` is the whole number of 32 bits"),
                "bool" => Some("the type of truth values is `boolean`"),
                "byte" => Some("the type of bytes is `octet`"),
                "true" | "false" => Some("truth values are written `TRUE` and `FALSE`"),
                _ => None,
            };
            if let Some(help) = help {
                diagnostic = diagnostic.help(help);
            }
        }
        self.s.diags.push(diagnostic);
        // One message for a name, however often it is used.
        self.poisoned.insert(part.name);
    }

    /// Names that every ORB supplies in the module CORBA without a declaration.
    fn predefined(&mut self, name: &ScopedName) -> Option<Entry> {
        let texts: Vec<String> = name.parts.iter().map(|p| self.text(p.name).to_owned()).collect();
        let in_corba = self.scopes[self.current].path.split("::").next() == Some("CORBA");
        let last = match texts.as_slice() {
            [module, last] if module == "CORBA" => last.as_str(),
            [last] if in_corba && !name.absolute => last.as_str(),
            _ => return None,
        };
        let ty = match last {
            "TypeCode" | "Principal" | "NamedValue" | "NVList" | "Context" | "Request" | "ORB" | "Policy"
            | "Current" | "DomainManager" | "ConstructionPolicy" | "InterfaceDef" | "ImplementationDef"
            | "AbstractBase" | "PolicyList" | "Environment" | "ServerRequest" => {
                Type::Foreign("the pseudo object", last.into())
            }
            "ServiceType" | "ServiceOption" | "DefinitionKind" => Type::Int { bits: 16, signed: false },
            "ServiceDetailType" | "PolicyType" | "Flags" => Type::Int { bits: 32, signed: false },
            "Identifier" | "RepositoryId" | "ScopedName" | "VersionSpec" | "ORBid" | "OAid" => {
                Type::Str { wide: false, bound: None }
            }
            "Object" => Type::Object(None),
            "StringValue" | "WStringValue" => Type::Foreign("the value type", last.into()),
            _ => {
                let element = match last.strip_suffix("Seq")? {
                    "Octet" => Base::Octet,
                    "Any" => Base::Any,
                    "Boolean" => Base::Boolean,
                    "Char" => Base::Char,
                    "WChar" => Base::WideChar,
                    "Short" => Base::Int(16, true),
                    "UShort" => Base::Int(16, false),
                    "Long" => Base::Int(32, true),
                    "ULong" => Base::Int(32, false),
                    "LongLong" => Base::Int(64, true),
                    "ULongLong" => Base::Int(64, false),
                    "Float" => Base::Float(32),
                    "Double" => Base::Float(64),
                    text @ ("String" | "WString") => {
                        let string = self.model.add(Type::Str { wide: text == "WString", bound: None });
                        return Some(Entry::Type(self.model.add(Type::Sequence(string, None)), None));
                    }
                    _ => return None,
                };
                let element = self.basic(element);
                Type::Sequence(element, None)
            }
        };
        Some(Entry::Type(self.model.add(ty), None))
    }

    // --- declarations

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
            DeclKind::InterfaceForward(name, flavour) => {
                self.defines -= 1;
                self.interface_entry(*name, *flavour);
            }
            DeclKind::Interface(interface) => self.interface(interface),
            DeclKind::Const(ty, name, value) => self.constant(ty, *name, value),
            DeclKind::Typedef(ty, names) => {
                let id = self.ty(ty);
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
            DeclKind::AnnotationType(_) => {}
        }
    }

    fn name_type(&mut self, id: TypeId, span: Span) {
        let imported = self.imported(span);
        self.model.named.push((id, imported));
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

    fn forward(&mut self, name: Ident, kind: ForwardKind) {
        let folded = self.fold(name.name);
        if let Some(&(Entry::Type(id, _), first)) = self.scopes[self.current].entries.get(&folded)
            && first.name == name.name
        {
            let declared = self.forwards.get(&id).map(|f| f.1);
            let same = match self.model.ty(id) {
                Type::Struct(..) => kind == ForwardKind::Struct,
                Type::Union { .. } => kind == ForwardKind::Union,
                Type::Forward(_) => declared == Some(kind),
                _ => false,
            };
            if same {
                return;
            }
        }
        let id = self.model.add(Type::Forward(self.path(name)));
        let scope = self.open(ScopeKind::Record, name);
        if self.declare(name, Entry::Type(id, Some(scope))) {
            self.forwards.insert(id, (name, kind));
        }
    }

    /// The type and scope for the body of a struct or union: those of its forward declaration, or new ones.
    fn begin_record(&mut self, name: Ident, kind: ForwardKind) -> (TypeId, usize) {
        let folded = self.fold(name.name);
        if let Some(&(Entry::Type(id, Some(scope)), first)) = self.scopes[self.current].entries.get(&folded)
            && first.name == name.name
            && matches!(self.model.ty(id), Type::Forward(_))
            && self.forwards.get(&id).is_some_and(|f| f.1 == kind)
        {
            self.forwards.remove(&id);
            return (id, scope);
        }
        let id = self.model.add(Type::Forward(self.path(name)));
        let scope = self.open(ScopeKind::Record, name);
        self.declare(name, Entry::Type(id, Some(scope)));
        (id, scope)
    }

    fn constructed(&mut self, constructed: &Constructed, annotations: &[ast::Annotation]) -> TypeId {
        match constructed {
            Constructed::Struct { name, base, members, inner } => {
                self.structure(*name, base.as_ref(), members, inner)
            }
            Constructed::Union { name, switch, cases } => self.union(*name, switch, cases),
            Constructed::Enum { name, members } => self.enumeration(*name, members),
            Constructed::Bitmask { name, members } => self.bitmask(*name, members, annotations),
            Constructed::Bitset { name, base, fields } => {
                if let Some(base) = base {
                    self.resolve(base);
                }
                let id = self.model.add(Type::Foreign("the bitset", self.path(*name)));
                let scope = self.open(ScopeKind::Record, *name);
                self.declare(*name, Entry::Type(id, Some(scope)));
                self.within(scope, |c| {
                    for (width, names) in fields {
                        c.positive(width, "the width of a bit field");
                        for &name in names {
                            c.declare(name, Entry::Instance);
                        }
                    }
                });
                id
            }
        }
    }

    fn structure(
        &mut self,
        name: Ident,
        base: Option<&ScopedName>,
        members: &[ast::Member],
        inner: &[Decl],
    ) -> TypeId {
        let mut fields = Vec::new();
        let base = base.map(|base| (base, self.resolve(base)));
        let (id, scope) = self.begin_record(name, ForwardKind::Struct);
        if let Some((base, entry)) = base {
            fields = self.base_fields(base, entry, scope);
        }
        self.within(scope, |c| {
            c.decls(inner);
            c.members(members, &mut fields);
        });
        self.model.define(id, Type::Struct(self.path(name), fields));
        self.name_type(id, name.span);
        id
    }

    fn base_fields(&mut self, base: &ScopedName, entry: Entry, scope: usize) -> Vec<Field> {
        match entry {
            Entry::Poison => Vec::new(),
            Entry::Type(id, base_scope)
                if matches!(self.model.ty(self.model.resolved(id)), Type::Struct(..)) =>
            {
                let Type::Struct(_, fields) = self.model.ty(self.model.resolved(id)) else {
                    return Vec::new();
                };
                let fields = fields.clone();
                self.inherited_total += fields.len();
                if self.inherited_total > limits::INHERITED_NAMES_MAX {
                    let message = "structs inherit too many fields in this file";
                    self.s.diags.fatal(Diagnostic::error(Code::Limit, base.span, message));
                }
                if let Some(from) = base_scope {
                    let entries: Vec<_> = self.scopes[from].entries.values().copied().collect();
                    for (entry, ident) in entries.into_iter().filter(|e| e.0 == Entry::Instance) {
                        self.declare_in(scope, ident, entry);
                    }
                }
                fields
            }
            _ => {
                let message =
                    format!("`{}` is no struct that can be extended here", self.text(last(base).name));
                self.error(Code::BadBase, base.span, message);
                Vec::new()
            }
        }
    }

    fn members(&mut self, members: &[ast::Member], fields: &mut Vec<Field>) {
        for member in members {
            // An external field is held by reference, so its type may still be open.
            let external = member.annotations.iter().any(|a| self.text(a.name.name) == "external");
            let ty =
                if external { self.external(&member.ty) } else { self.value_type(&member.ty, "a field") };
            for declarator in &member.names {
                let ty = self.array(ty, declarator);
                if self.declare(declarator.name, Entry::Instance) {
                    fields.push(Field { name: self.text(declarator.name.name).to_owned(), ty });
                }
            }
        }
    }

    fn exception(&mut self, name: Ident, members: &[ast::Member]) {
        let id = ExceptionId(self.model.exceptions.len() as u32);
        self.model.exceptions.push(Exception { name: self.path(name), fields: Vec::new() });
        let scope = self.open(ScopeKind::Record, name);
        self.declare(name, Entry::Exception(id, scope));
        let mut fields = Vec::new();
        self.within(scope, |c| c.members(members, &mut fields));
        self.model.exceptions[id.0 as usize].fields = fields;
    }

    fn enumeration(&mut self, name: Ident, members: &[(Ident, Vec<ast::Annotation>)]) -> TypeId {
        let path = self.path(name);
        let id = self.model.add(Type::Enum(path.clone(), Vec::new()));
        let scope = self.open(ScopeKind::Record, name);
        self.declare(name, Entry::Type(id, Some(scope)));
        let mut list = Vec::new();
        let mut next = 0i128;
        for (member, annotations) in members {
            if let Some(expr) = annotation(self.s, annotations, "value") {
                let value = self.number(expr);
                if let Some(value) = value {
                    next = value;
                }
            }
            let number = next.clamp(i64::MIN.into(), i64::MAX.into());
            if self.declare(*member, Entry::Enumerator(id, number)) {
                let folded = self.fold(member.name);
                self.scopes[scope].entries.entry(folded).or_insert((Entry::Enumerator(id, number), *member));
                list.push((self.text(member.name).to_owned(), number));
            }
            next = number + 1;
        }
        self.model.define(id, Type::Enum(path, list));
        self.name_type(id, name.span);
        id
    }

    fn bitmask(
        &mut self,
        name: Ident,
        members: &[(Ident, Vec<ast::Annotation>)],
        annotations: &[ast::Annotation],
    ) -> TypeId {
        let bound = annotation(self.s, annotations, "bit_bound").and_then(|e| self.number(e)).unwrap_or(32);
        let bits = match bound {
            1..=8 => 8,
            9..=16 => 16,
            17..=32 => 32,
            33..=64 => 64,
            _ => {
                self.error(Code::Range, name.span, "a bitmask has 1 to 64 bits");
                64
            }
        };
        let path = self.path(name);
        let id = self.model.add(Type::Bitmask(path.clone(), bits, Vec::new()));
        let scope = self.open(ScopeKind::Record, name);
        self.declare(name, Entry::Type(id, Some(scope)));
        let mut list = Vec::new();
        let mut next = 0i128;
        let mut taken = HashSet::new();
        for (member, annotations) in members {
            if let Some(expr) = annotation(self.s, annotations, "position")
                && let Some(value) = self.number(expr)
            {
                next = value;
            }
            if !(0..bound.clamp(1, 64)).contains(&next) || !taken.insert(next) {
                let message = format!("position {next} is taken or outside of the bitmask's {bound} bits");
                self.error(Code::Range, member.span, message);
            }
            let value = 1i128 << next.clamp(0, 63);
            if self.declare(*member, Entry::Enumerator(id, value)) {
                let folded = self.fold(member.name);
                self.scopes[scope].entries.entry(folded).or_insert((Entry::Enumerator(id, value), *member));
                list.push((self.text(member.name).to_owned(), next));
            }
            next = next.clamp(0, 64) + 1;
        }
        self.model.define(id, Type::Bitmask(path, bits, list));
        self.name_type(id, name.span);
        id
    }

    fn union(&mut self, name: Ident, switch: &ast::Type, cases: &[ast::Case]) -> TypeId {
        let (id, scope) = self.begin_record(name, ForwardKind::Union);
        let mut branches = Vec::new();
        let switch_id = self.within(scope, |c| {
            let switch_id = c.ty(switch);
            let resolved = c.model.resolved(switch_id);
            let ok = matches!(
                c.model.ty(resolved),
                Type::Int { .. }
                    | Type::Bool
                    | Type::Char
                    | Type::WideChar
                    | Type::Octet
                    | Type::Enum(..)
                    | Type::Bitmask(..)
            );
            let known = ok || matches!(c.model.ty(resolved), Type::Error);
            if !known {
                let message = format!("`{}` cannot choose the branch of a union", c.model.show(switch_id));
                let help = "it can be a whole number, a character, `boolean` or an enum";
                c.s.diags.push(Diagnostic::error(Code::Switch, switch.span, message).help(help));
            }
            let switch_id = if ok { switch_id } else { c.error };
            c.branches(switch_id, cases, &mut branches);
            switch_id
        });
        self.model.define(id, Type::Union { name: self.path(name), switch: switch_id, branches });
        self.name_type(id, name.span);
        id
    }

    fn branches(&mut self, switch: TypeId, cases: &[ast::Case], branches: &mut Vec<Branch>) {
        let mut seen: HashMap<i128, Span> = HashMap::new();
        let mut default: Option<Span> = None;
        for case in cases {
            let mut branch = Branch {
                labels: Vec::new(),
                is_default: false,
                field: Field { name: String::new(), ty: self.error },
            };
            for (label, span) in &case.labels {
                let Some(expr) = label else {
                    branch.is_default = true;
                    if let Some(first) = default.replace(*span) {
                        let diagnostic = Diagnostic::error(Code::Label, *span, "`default` appears twice");
                        self.s.diags.push(diagnostic.note(first, "the first is here"));
                    }
                    continue;
                };
                let Some(value) = self.label(switch, expr) else { continue };
                if let Some(first) = seen.insert(value, *span) {
                    let diagnostic = Diagnostic::error(Code::Label, *span, "this label appears twice");
                    self.s.diags.push(diagnostic.note(first, "the first is here"));
                } else {
                    branch.labels.push(value);
                }
            }
            let member = &case.member;
            let ty = self.value_type(&member.ty, "a branch");
            for (i, declarator) in member.names.iter().enumerate() {
                if i > 0 {
                    self.error(Code::Syntax, declarator.name.span, "a branch of a union has one field");
                    break;
                }
                let ty = self.array(ty, declarator);
                self.declare(declarator.name, Entry::Instance);
                branch.field = Field { name: self.text(declarator.name.name).to_owned(), ty };
            }
            branches.push(branch);
        }
        let all = match self.model.ty(self.model.resolved(switch)) {
            Type::Bool => Some(2),
            Type::Enum(_, members) => Some(members.len()),
            _ => None,
        };
        if let Some(span) = default
            && all.is_some_and(|n| n > 0 && seen.len() >= n)
        {
            let message = "this `default` is never taken: the labels cover every value";
            self.s.diags.push(Diagnostic::warning(Code::Label, span, message));
        }
    }

    /// The number of a label, converted to the type of the discriminator.
    fn label(&mut self, switch: TypeId, expr: &Expr) -> Option<i128> {
        let resolved = self.model.resolved(switch);
        // A plain name is first looked for among the names of the enum, wherever that is declared.
        if let (Type::Enum(_, members), Some(name)) = (self.model.ty(resolved), expr.name())
            && let [part] = name.parts[..]
            && let Some((_, value)) = members.iter().find(|m| m.0 == self.text(part.name))
        {
            return Some(*value);
        }
        if let (Type::Bitmask(_, _, members), Some(name)) = (self.model.ty(resolved), expr.name())
            && let [part] = name.parts[..]
            && let Some((_, position)) = members.iter().find(|m| m.0 == self.text(part.name))
        {
            return Some(1 << position);
        }
        let value = self.eval(expr, switch);
        let value = match value::convert(&self.model, &mut self.s.diags, value, switch, expr.span) {
            Value::Int(v) | Value::Enum(_, v) => v,
            Value::Bool(v) => v.into(),
            Value::Char(v) | Value::WideChar(v) => v.into(),
            _ => return None,
        };
        Some(value)
    }

    fn constant(&mut self, ty: &ast::Type, name: Ident, expr: &Expr) {
        let id = self.ty(ty);
        let resolved = self.model.resolved(id);
        let ok = matches!(
            self.model.ty(resolved),
            Type::Int { .. }
                | Type::Octet
                | Type::Bool
                | Type::Char
                | Type::WideChar
                | Type::Float(_)
                | Type::Fixed(..)
                | Type::Str { .. }
                | Type::Enum(..)
                | Type::Bitmask(..)
                | Type::Error
        );
        if !ok {
            let message = format!("a constant cannot have the type `{}`", self.model.show(id));
            self.error(Code::ConstType, ty.span, message);
        }
        let value = self.eval(expr, id);
        let value = if ok {
            value::convert(&self.model, &mut self.s.diags, value, id, expr.span)
        } else {
            Value::Error
        };
        let index = self.model.consts.len();
        let imported = self.imported(name.span);
        self.model.consts.push(Const { name: self.path(name), ty: id, value, imported });
        self.declare(name, Entry::Const(index));
    }

    // --- interfaces

    fn interface_entry(&mut self, name: Ident, flavour: ast::Flavour) -> (InterfaceId, usize) {
        let folded = self.fold(name.name);
        if let Some(&(Entry::Interface(id, scope), first)) = self.scopes[self.current].entries.get(&folded)
            && first.name == name.name
        {
            let interface = &self.model.interfaces[id.0 as usize];
            let same = interface.local == (flavour == ast::Flavour::Local)
                && interface.is_abstract == (flavour == ast::Flavour::Abstract);
            if !same {
                let message = format!(
                    "`{}` is declared in two ways: `local`, `abstract` or neither",
                    self.text(name.name)
                );
                let diagnostic = Diagnostic::error(Code::Flavour, name.span, message);
                self.s.diags.push(diagnostic.note(first.span, "the other declaration is here"));
            }
            return (id, scope);
        }
        let id = InterfaceId(self.model.interfaces.len() as u32);
        let interface = Interface {
            name: self.path(name),
            bases: Vec::new(),
            operations: Vec::new(),
            local: flavour == ast::Flavour::Local,
            is_abstract: flavour == ast::Flavour::Abstract,
            defined: false,
            imported: self.imported(name.span),
            span: name.span,
        };
        self.model.interfaces.push(interface);
        let ty = self.model.add(Type::Object(Some(id)));
        self.interface_types.insert(id, ty);
        let scope = self.open(ScopeKind::Interface, name);
        self.interface_scopes.insert(id, scope);
        self.declare(name, Entry::Interface(id, scope));
        self.forward_interfaces.push((id, name));
        (id, scope)
    }

    fn interface(&mut self, interface: &ast::Interface) {
        let (mut id, mut scope) = self.interface_entry(interface.name, interface.flavour);
        if self.model.interfaces[id.0 as usize].defined {
            let first = self.model.interfaces[id.0 as usize].span;
            let message = format!("`{}` is defined twice", self.text(interface.name.name));
            let diagnostic = Diagnostic::error(Code::Duplicate, interface.name.span, message);
            self.s.diags.push(diagnostic.note(first, "first defined here"));
            // The second body is still checked, on its own.
            id = InterfaceId(self.model.interfaces.len() as u32);
            let copy = Interface {
                bases: Vec::new(),
                operations: Vec::new(),
                ..self.model.interfaces[id.0 as usize - 1].clone()
            };
            self.model.interfaces.push(copy);
            let ty = self.model.add(Type::Object(Some(id)));
            self.interface_types.insert(id, ty);
            scope = self.open(ScopeKind::Interface, interface.name);
        }
        let imported = self.imported(interface.name.span);
        let entry = &mut self.model.interfaces[id.0 as usize];
        entry.defined = true;
        entry.span = interface.name.span;
        entry.imported = imported;
        self.bases(id, scope, interface);
        let operations = self.within(scope, |c| c.interface_body(&interface.body));
        self.model.interfaces[id.0 as usize].operations = operations;
    }

    fn interface_body(&mut self, body: &[Decl]) -> Vec<Operation> {
        let mut operations = Vec::new();
        for decl in body {
            if self.s.diags.stop() {
                break;
            }
            match &decl.kind {
                DeclKind::Operation(operation) => operations.extend(self.operation(operation)),
                DeclKind::Attribute(attribute) => operations.extend(self.attribute(attribute)),
                _ => self.decl(decl),
            }
        }
        operations
    }

    fn bases(&mut self, id: InterfaceId, scope: usize, interface: &ast::Interface) {
        let mut direct: Vec<InterfaceId> = Vec::new();
        let mut above = HashSet::new();
        for base in &interface.bases {
            let entry = self.resolve(base);
            let name = self.text(last(base).name).to_owned();
            let (base_id, base_scope) = match entry {
                Entry::Interface(id, scope) => (id, scope),
                Entry::Poison => continue,
                Entry::Type(ty, _) if self.interface_of(ty).is_some() => {
                    let Some(found) = self.interface_of(ty) else { continue };
                    found
                }
                _ => {
                    let message = format!("`{name}` is no interface and cannot be inherited from");
                    self.error(Code::BadBase, base.span, message);
                    continue;
                }
            };
            let other = &self.model.interfaces[base_id.0 as usize];
            let (other_span, other_local, other_abstract) = (other.span, other.local, other.is_abstract);
            if !other.defined {
                self.late_bases.push((id, base_id, base.span));
                continue;
            }
            if base_id == id {
                self.error(Code::BadBase, base.span, format!("`{name}` cannot inherit itself"));
                continue;
            }
            if direct.contains(&base_id) {
                self.error(Code::BadBase, base.span, format!("`{name}` is inherited twice"));
                continue;
            }
            if interface.flavour != ast::Flavour::Local && other_local {
                let message = format!("an interface that is not local cannot inherit the local `{name}`");
                let diagnostic = Diagnostic::error(Code::BadBase, base.span, message);
                self.s.diags.push(diagnostic.note(other_span, "it is declared local here"));
            }
            if interface.flavour == ast::Flavour::Abstract && !other_abstract {
                let message = format!("an abstract interface cannot inherit `{name}`, which is not abstract");
                self.error(Code::BadBase, base.span, message);
            }
            direct.push(base_id);
            above.insert(base_id);
            above.extend(self.ancestors.get(&base_id).into_iter().flatten().copied());
            if above.len() > limits::BASES_MAX {
                let message =
                    format!("an interface with more than {} interfaces above it", limits::BASES_MAX);
                self.s.diags.fatal(Diagnostic::error(Code::Limit, base.span, message));
                return;
            }
            self.inherit(scope, base_scope, base);
        }
        self.inherited_total += above.len();
        self.ancestors.insert(id, above);
        self.model.interfaces[id.0 as usize].bases = direct;
    }

    /// The interface that a typedef names.
    fn interface_of(&self, ty: TypeId) -> Option<(InterfaceId, usize)> {
        let Type::Object(Some(id)) = self.model.ty(self.model.resolved(ty)) else { return None };
        Some((*id, *self.interface_scopes.get(id)?))
    }

    /// Copies the names of a base.
    fn inherit(&mut self, scope: usize, from: usize, base: &ScopedName) {
        let source = &self.scopes[from];
        let own = source.entries.iter().filter(|(_, (e, _))| !matches!(e, Entry::Use | Entry::Own));
        let own = own.map(|(&n, &(entry, ident))| (n, Inherited { entry, ident, rival: None }));
        let hidden =
            |n: &Symbol| source.entries.get(n).is_some_and(|e| !matches!(e.0, Entry::Use | Entry::Own));
        let above = source.inherited.iter().filter(|(n, _)| !hidden(n)).map(|(&n, &i)| (n, i));
        let mut all: Vec<(Symbol, Inherited)> = own.chain(above).collect();
        all.sort_by_key(|(_, i)| i.ident.span.lo);
        self.inherited_total += all.len();
        if self.inherited_total > limits::INHERITED_NAMES_MAX {
            let message =
                format!("interfaces of this file inherit more than {} names", limits::INHERITED_NAMES_MAX);
            self.s.diags.fatal(Diagnostic::error(Code::Limit, base.span, message));
            return;
        }
        for (name, found) in all {
            let Some(old) = self.scopes[scope].inherited.get_mut(&name) else {
                self.scopes[scope].inherited.insert(name, found);
                continue;
            };
            if old.ident == found.ident {
                continue;
            }
            let rival = old.ident;
            old.rival = Some(found.ident);
            if old.entry == Entry::Callable || found.entry == Entry::Callable {
                let message =
                    format!("`{}` is inherited from two interfaces", self.s.names.text(found.ident.name));
                let diagnostic = Diagnostic::error(Code::Inherited, base.span, message);
                let diagnostic =
                    diagnostic.note(rival.span, "one is here").note(found.ident.span, "the other is here");
                self.s.diags.push(diagnostic);
            }
        }
    }

    fn operation(&mut self, operation: &ast::Operation) -> Option<Operation> {
        let result = match &operation.result {
            Some(ty) => self.param_type(ty, true),
            None => self.basic(Base::Void),
        };
        let fresh = self.declare(operation.name, Entry::Callable);
        let scope = self.open(ScopeKind::Operation, operation.name);
        let mut params = Vec::new();
        self.within(scope, |c| {
            for param in &operation.params {
                let ty = c.param_type(&param.ty, false);
                let direction = match param.direction {
                    ast::Direction::In => Direction::In,
                    ast::Direction::Out => Direction::Out,
                    ast::Direction::InOut => Direction::InOut,
                };
                if let Some(span) = operation.oneway
                    && direction != Direction::In
                {
                    let message = "a oneway operation brings nothing back";
                    let diagnostic = Diagnostic::error(Code::Oneway, param.name.span, message);
                    c.s.diags.push(diagnostic.note(span, "it is oneway"));
                }
                c.declare(param.name, Entry::Instance);
                params.push(Param { name: c.text(param.name.name).to_owned(), ty, direction });
            }
        });
        let raises = self.raises(&operation.raises);
        if let Some(span) = operation.oneway {
            if !matches!(self.model.ty(result), Type::Void | Type::Error) {
                let message = "the result of a oneway operation is `void`";
                self.error(Code::Oneway, operation.result.as_ref().map_or(span, |t| t.span), message);
            }
            if let Some(first) = operation.raises.first() {
                self.error(Code::Oneway, first.span, "a oneway operation raises nothing");
            }
        }
        let name = self.text(operation.name.name).to_owned();
        let oneway = operation.oneway.is_some();
        fresh.then_some(Operation { name, oneway, result, params, raises, span: operation.name.span })
    }

    fn attribute(&mut self, attribute: &ast::Attribute) -> Vec<Operation> {
        let ty = self.param_type(&attribute.ty, false);
        let get = self.raises(&attribute.get_raises);
        let set = self.raises(&attribute.set_raises);
        let void = self.basic(Base::Void);
        let mut operations = Vec::new();
        for &ident in &attribute.names {
            if !self.declare(ident, Entry::Callable) {
                continue;
            }
            let name = self.text(ident.name).to_owned();
            let make = |prefix: &str, result, params, raises| Operation {
                name: format!("{prefix}{name}"),
                oneway: false,
                result,
                params,
                raises,
                span: ident.span,
            };
            operations.push(make("_get_", ty, Vec::new(), get.clone()));
            if !attribute.readonly {
                let value = Param { name: "value".into(), ty, direction: Direction::In };
                operations.push(make("_set_", void, vec![value], set.clone()));
            }
        }
        operations
    }

    fn raises(&mut self, names: &[ScopedName]) -> Vec<ExceptionId> {
        let mut ids = Vec::new();
        for name in names {
            match self.resolve(name) {
                Entry::Exception(id, _) if ids.contains(&id) => {
                    let message = format!("`{}` is listed twice", self.text(last(name).name));
                    self.s.diags.push(Diagnostic::warning(Code::Raises, name.span, message));
                }
                Entry::Exception(id, _) => ids.push(id),
                Entry::Poison => {}
                // Standard exceptions of the ORB, and native ones.
                Entry::Type(id, _) if matches!(self.model.ty(id), Type::Foreign(..)) => {}
                _ => {
                    let message = format!("`{}` is no exception", self.text(last(name).name));
                    let help = "only what is declared with `exception` can be raised";
                    self.s.diags.push(Diagnostic::error(Code::Raises, name.span, message).help(help));
                }
            }
        }
        ids
    }

    // --- value types, components

    fn value(&mut self, value: &ast::Value) {
        let folded = self.fold(value.name.name);
        let existing = match self.scopes[self.current].entries.get(&folded) {
            Some(&(Entry::Value(id, scope), first)) if first.name == value.name.name => Some((id, scope)),
            _ => None,
        };
        let forward = existing.is_some_and(|(id, _)| matches!(self.model.ty(id), Type::Forward(_)));
        let (id, scope) = match existing {
            Some((id, scope)) if forward || value.forward => (id, scope),
            _ => {
                let id = self.model.add(Type::Forward(self.path(value.name)));
                let scope = self.open(ScopeKind::Value, value.name);
                self.value_forwards.insert(id);
                self.declare(value.name, Entry::Value(id, scope));
                (id, scope)
            }
        };
        if value.forward {
            self.defines -= 1;
            return;
        }
        self.model.define(id, Type::Foreign("the value type", self.path(value.name)));
        if let Some(boxed) = &value.boxed {
            self.within(scope, |c| c.value_type(boxed, "a boxed value"));
            return;
        }
        for base in &value.bases {
            match self.resolve(base) {
                Entry::Value(base_id, base_scope) if base_id != id => {
                    if matches!(self.model.ty(base_id), Type::Forward(_)) {
                        let message =
                            format!("`{}` is not defined yet, only declared", self.text(last(base).name));
                        self.error(Code::Incomplete, base.span, message);
                    }
                    self.inherit(scope, base_scope, base);
                }
                Entry::Poison => {}
                _ => {
                    let message =
                        format!("`{}` is no value type that can be inherited", self.text(last(base).name));
                    self.error(Code::BadBase, base.span, message);
                }
            }
        }
        for base in &value.supports {
            match self.resolve(base) {
                Entry::Interface(_, base_scope) => self.inherit(scope, base_scope, base),
                Entry::Poison => {}
                _ => {
                    let message =
                        format!("`{}` is no interface that can be supported", self.text(last(base).name));
                    self.error(Code::BadBase, base.span, message);
                }
            }
        }
        self.within(scope, |c| {
            let mut fields = Vec::new();
            c.members(&value.state, &mut fields);
            c.interface_body(&value.body);
        });
    }

    fn assembly(&mut self, assembly: &ast::Assembly) {
        let folded = self.fold(assembly.name.name);
        let scope = match self.scopes[self.current].entries.get(&folded) {
            Some(&(Entry::Assembly(scope), first)) if first.name == assembly.name.name => scope,
            _ => {
                let scope = self.open(ScopeKind::Interface, assembly.name);
                self.declare(assembly.name, Entry::Assembly(scope));
                scope
            }
        };
        if assembly.forward {
            return;
        }
        for name in &assembly.uses {
            self.resolve(name);
        }
        self.within(scope, |c| {
            for &port in &assembly.ports {
                c.declare(port, Entry::Instance);
            }
            c.interface_body(&assembly.body);
        });
    }

    // --- types

    fn basic(&mut self, base: Base) -> TypeId {
        let (key, ty) = match base {
            Base::Void => ((0, 0), Type::Void),
            Base::Int(bits, signed) => ((1 + u8::from(signed), bits), Type::Int { bits, signed }),
            Base::Float(bits) => ((3, bits), Type::Float(bits)),
            Base::Boolean => ((4, 0), Type::Bool),
            Base::Octet => ((5, 0), Type::Octet),
            Base::Char => ((6, 0), Type::Char),
            Base::WideChar => ((7, 0), Type::WideChar),
            Base::Any => ((8, 0), Type::Foreign("the type", "any".into())),
            Base::Object => ((9, 0), Type::Object(None)),
            Base::ValueBase => ((10, 0), Type::Foreign("the type", "ValueBase".into())),
        };
        if let Some(&id) = self.basics.get(&key) {
            return id;
        }
        let id = self.model.add(ty);
        self.basics.insert(key, id);
        id
    }

    fn ty(&mut self, ty: &ast::Type) -> TypeId {
        match &ty.kind {
            TypeKind::Base(base) => self.basic(*base),
            TypeKind::Named(name) => self.named_type(name),
            TypeKind::String(wide, bound) => {
                let bound = bound.as_ref().and_then(|b| self.positive(b, "the bound of a string"));
                self.model.add(Type::Str { wide: *wide, bound })
            }
            TypeKind::Sequence(of, bound) => {
                let of_id = self.ty(of);
                self.no_void(of_id, of.span, "an element");
                let bound = bound.as_ref().and_then(|b| self.positive(b, "the bound of a sequence"));
                self.model.add(Type::Sequence(of_id, bound))
            }
            TypeKind::Map(key, value, bound) => {
                let key_id = self.value_type(key, "a key");
                let value_id = self.value_type(value, "a value");
                let name = format!("map<{}, {}>", self.model.show(key_id), self.model.show(value_id));
                if let Some(bound) = bound {
                    self.positive(bound, "the bound of a map");
                }
                self.model.add(Type::Foreign("the type", name))
            }
            TypeKind::Fixed(None) => self.model.add(Type::Fixed(0, 0)),
            TypeKind::Fixed(Some((digits, scale))) => self.fixed(digits, scale),
            TypeKind::Constructed(constructed) => self.constructed(constructed, &[]),
        }
    }

    fn fixed(&mut self, digits: &Expr, scale: &Expr) -> TypeId {
        let digits_value = self.number(digits).unwrap_or(31);
        let scale_value = self.number(scale).unwrap_or(0);
        if !(1..=31).contains(&digits_value) {
            self.error(Code::Range, digits.span, "a fixed-point type has 1 to 31 digits");
            return self.error;
        }
        if !(0..=digits_value).contains(&scale_value) {
            let message =
                format!("this type has {digits_value} digits; not {scale_value} can stand behind the point");
            self.error(Code::Range, scale.span, message);
            return self.error;
        }
        self.model.add(Type::Fixed(digits_value as u32, scale_value as u32))
    }

    fn named_type(&mut self, name: &ScopedName) -> TypeId {
        let what = match self.resolve(name) {
            Entry::Type(id, _) | Entry::Value(id, _) => return id,
            Entry::Interface(id, _) => return self.interface_types[&id],
            Entry::Assembly(_) => {
                let path = self.text(last(name).name).to_owned();
                return self.model.add(Type::Foreign("the component", path));
            }
            Entry::Poison => return self.error,
            Entry::Exception(..) => "an exception",
            Entry::Module(_) => "a module",
            Entry::Const(_) => "a constant",
            Entry::Enumerator(..) => "a name of an enum",
            Entry::Instance => "a field or parameter",
            Entry::Callable => "an operation or attribute",
            Entry::Own | Entry::Use => "no declaration of its own",
        };
        let message = format!("`{}` is no type but {what}", self.text(last(name).name));
        self.error(Code::NotType, name.span, message);
        self.error
    }

    /// The type of a field: it has a value, and its size is known.
    fn value_type(&mut self, ty: &ast::Type, what: &str) -> TypeId {
        let id = self.ty(ty);
        self.no_void(id, ty.span, what);
        if let Type::Forward(name) = self.model.ty(self.model.resolved(id)) {
            // A value type is held by reference, so it may still be open.
            if !self.value_forwards.contains(&self.model.resolved(id)) {
                let message = format!("`{}` is not complete here", name.clone());
                let help = "a type can contain itself only through a sequence";
                self.s.diags.push(Diagnostic::error(Code::Incomplete, ty.span, message).help(help));
            }
        }
        id
    }

    /// The type of an external field. One that is not complete yet may lead back to the struct around it, which no
    /// stub can hold by value.
    fn external(&mut self, ty: &ast::Type) -> TypeId {
        let id = self.ty(ty);
        self.no_void(id, ty.span, "a field");
        match self.model.ty(self.model.resolved(id)) {
            Type::Forward(name) => {
                let foreign = Type::Foreign("the external", name.clone());
                self.model.add(foreign)
            }
            _ => id,
        }
    }

    fn no_void(&mut self, id: TypeId, span: Span, what: &str) {
        if matches!(self.model.ty(id), Type::Void) {
            self.error(Code::NotType, span, format!("{what} cannot be `void`"));
        }
    }

    /// The type of a parameter or result, which must have a name.
    fn param_type(&mut self, ty: &ast::Type, result: bool) -> TypeId {
        let what = match &ty.kind {
            TypeKind::Sequence(..) => "a sequence",
            TypeKind::Map(..) => "a map",
            TypeKind::Constructed(_) => "a type with a body",
            _ => "",
        };
        if !what.is_empty() {
            let message = format!("{what} cannot stand here without a name");
            let help = "give it a name with `typedef` and use that";
            self.s.diags.push(Diagnostic::error(Code::Anonymous, ty.span, message).help(help));
        }
        let id = self.ty(ty);
        if !result {
            self.no_void(id, ty.span, "a parameter or attribute");
        }
        id
    }

    fn array(&mut self, of: TypeId, declarator: &ast::Declarator) -> TypeId {
        if declarator.dims.is_empty() {
            return of;
        }
        self.no_void(of, declarator.name.span, "an element");
        let mut dims = Vec::new();
        let mut total = 1u64;
        for dim in &declarator.dims {
            let Some(size) = self.positive(dim, "the size of an array") else { return self.error };
            total = total.saturating_mul(size);
            dims.push(size);
        }
        if total > 1 << 40 {
            self.error(Code::Range, declarator.name.span, "this array has more than 2^40 elements");
            return self.error;
        }
        self.model.add(Type::Array(of, dims))
    }

    fn scope_of_type(&mut self, ty: &ast::Type) -> Option<usize> {
        let TypeKind::Named(name) = &ty.kind else { return None };
        match self.resolve(name) {
            Entry::Type(_, scope) => scope,
            Entry::Interface(_, scope) | Entry::Value(_, scope) => Some(scope),
            _ => None,
        }
    }

    // --- constants

    fn positive(&mut self, expr: &Expr, what: &str) -> Option<u64> {
        let value = self.number(expr)?;
        if !(1..=u32::MAX.into()).contains(&value) {
            let help = if value > 0 { "it is at most 4294967295" } else { "it is at least 1" };
            let message = format!("{what} cannot be {value}");
            self.s.diags.push(Diagnostic::error(Code::Bound, expr.span, message).help(help));
            return None;
        }
        Some(value as u64)
    }

    /// The value of an expression that must be a whole number.
    fn number(&mut self, expr: &Expr) -> Option<i128> {
        match self.eval(expr, self.error) {
            Value::Int(v) | Value::Enum(_, v) => Some(v),
            Value::Error => None,
            _ => {
                self.error(Code::ConstType, expr.span, "a whole number is needed here");
                None
            }
        }
    }

    fn eval(&mut self, expr: &Expr, target: TypeId) -> Value {
        let unsigned_bits = match self.model.ty(self.model.resolved(target)) {
            Type::Int { bits, signed: false } => Some(*bits),
            Type::Octet => Some(8),
            _ => None,
        };
        let mut stack: Vec<Value> = Vec::new();
        for (item, span) in &expr.items {
            let result = match item {
                Item::Int(v) => Ok(Value::Int((*v).into())),
                Item::Float(v) if v.is_infinite() => Err("this number is too large"),
                Item::Float(v) => Ok(Value::Float(*v)),
                Item::Fixed(text) => {
                    value::fixed_literal(self.text(*text)).ok_or("a fixed-point number has at most 31 digits")
                }
                Item::Char(v) => Ok(Value::Char(*v)),
                Item::WideChar(v) => Ok(Value::WideChar(*v)),
                Item::Str(v) => Ok(Value::Str(v.clone())),
                Item::WideStr(v) => Ok(Value::WideStr(v.clone())),
                Item::Bool(v) => Ok(Value::Bool(*v)),
                Item::Name(name) | Item::Grouped(name) => Ok(self.constant_named(name)),
                Item::Unary(operator) => {
                    let value = stack.pop().unwrap_or(Value::Error);
                    value::unary(*operator, value, unsigned_bits)
                }
                Item::Binary(operator) => {
                    let right = stack.pop().unwrap_or(Value::Error);
                    let left = stack.pop().unwrap_or(Value::Error);
                    value::binary(operator, left, right)
                }
                _ => Err("this does not belong into a constant expression"),
            };
            stack.push(result.unwrap_or_else(|why| {
                self.error(Code::Arithmetic, *span, why);
                Value::Error
            }));
        }
        stack.pop().unwrap_or(Value::Error)
    }

    fn constant_named(&mut self, name: &ScopedName) -> Value {
        match self.resolve(name) {
            Entry::Const(index) => self.model.consts[index].value.clone(),
            Entry::Enumerator(ty, value) if matches!(self.model.ty(ty), Type::Bitmask(..)) => {
                Value::Int(value)
            }
            Entry::Enumerator(ty, value) => Value::Enum(ty, value),
            Entry::Poison => Value::Error,
            _ => {
                self.error(
                    Code::ConstType,
                    name.span,
                    format!("`{}` is no constant", self.text(last(name).name)),
                );
                Value::Error
            }
        }
    }

    // --- the end of the file

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

impl Checker<'_> {
    /// Bases that were inherited before their definition: by the book an error, but some compilers look ahead, so it is
    /// one only when the definition never comes or closes a circle.
    fn late_bases(&mut self) {
        for (id, base, span) in std::mem::take(&mut self.late_bases) {
            let found = &self.model.interfaces[base.0 as usize];
            let (declared, name) = (found.span, found.name.clone());
            let circle = self.reaches(base, id);
            if found.defined && !circle {
                let message = format!("`{name}` is inherited before it is defined");
                self.s.diags.push(
                    Diagnostic::warning(Code::Incomplete, span, message).note(declared, "defined here"),
                );
                self.model.interfaces[id.0 as usize].bases.push(base);
                continue;
            }
            let message = if circle {
                format!("`{name}` inherits this interface in turn")
            } else {
                format!("`{name}` is not defined, only declared")
            };
            let diagnostic = Diagnostic::error(Code::Incomplete, span, message);
            self.s.diags.push(diagnostic.note(declared, "it is declared here"));
        }
    }

    /// Whether `to` is `from` or above it.
    fn reaches(&self, from: InterfaceId, to: InterfaceId) -> bool {
        let (mut stack, mut seen) = (vec![from], HashSet::new());
        while let Some(id) = stack.pop() {
            if id == to {
                return true;
            }
            if seen.insert(id) {
                stack.extend(&self.model.interfaces[id.0 as usize].bases);
            }
        }
        false
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
