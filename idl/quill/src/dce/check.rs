//! [`super::ast`] to the [`Model`], and the imports between files.
//!
//! Names are global, as in the C that such files become: an interface's body is no scope for types. Tags of structs,
//! unions and enums have a table of their own. A C header's declarations are believed, never reported.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::acf;
use super::ast::*;
use super::attrs::{self, find, has};
use super::parse;
use super::predefined;
use crate::codes::Code;
use crate::cursor::{Cursor, Ident};
use crate::diag::{Diagnostic, nearest};
use crate::expr::{Expr, Item as Step, Unary};
use crate::intern::Symbol;
use crate::lex::Kind;
use crate::limits;
use crate::model::{
    self, Branch, Const, Direction, Interface as ModelInterface, InterfaceId, Model, Operation, Pointer,
    Type, TypeId, Value,
};
use crate::pp::{self, Preprocessed};
use crate::session::Session;
use crate::source::Span;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Type(TypeId),
    Const(usize),
    Enumerator(i128),
    Interface(InterfaceId),
    Function,
    /// Declared in a way that is not understood, in a header.
    Unread,
}

/// A struct, union or enum by its tag.
#[derive(Clone, Copy, Debug)]
struct Tag {
    ty: TypeId,
    defined: bool,
    span: Span,
}

/// Names that an attribute's expression may use: fields or parameters, innermost list last.
type Siblings = Vec<Vec<Symbol>>;

struct Checker<'a> {
    s: &'a mut Session,
    model: Model,
    ordinary: HashMap<Symbol, (Entry, Span, bool)>,
    tags: HashMap<Symbol, Tag>,
    imported: HashSet<usize>,
    poisoned: HashSet<Symbol>,
    operations: HashMap<Symbol, Vec<Symbol>>,
    siblings: Siblings,
    import_depth: usize,
    in_library: bool,
    /// The interface is one of objects in COM's sense, which compilers of that world check less.
    of_objects: bool,
    /// A size that attributes give could not be resolved since this was last cleared.
    unsized_array: bool,
    /// The first `importlib`: names that nothing declares may come from that type library.
    type_library: Option<Span>,
    main: usize,
    /// Samba's dialect: types come from its own library, and expressions contain C code.
    samba: bool,
    error: TypeId,
    void: TypeId,
    anonymous: usize,
}

/// Parses and checks a preprocessed file, with all that it imports.
pub fn compile(s: &mut Session, source: Preprocessed) -> Model {
    let samba = is_samba(s, &source);
    let mut model = Model::default();
    let error = model.add(Type::Error);
    let void = model.add(Type::Void);
    let main = source.file;
    let mut checker = Checker {
        s,
        model,
        ordinary: HashMap::new(),
        tags: HashMap::new(),
        imported: HashSet::from([main]),
        poisoned: HashSet::new(),
        operations: HashMap::new(),
        siblings: Vec::new(),
        import_depth: 0,
        in_library: false,
        of_objects: false,
        unsized_array: false,
        type_library: None,
        main,
        samba,
        error,
        void,
        anonymous: 0,
    };
    let header = checker.is_header(main);
    checker.file(source, header);
    checker.attribute_file();
    checker.model
}

fn is_samba(s: &Session, source: &Preprocessed) -> bool {
    let text = |i: usize| source.tokens.get(i).map_or("", |t| s.names.text(t.text));
    (0..source.tokens.len()).any(|i| {
        source.tokens[i].kind == Kind::Ident
            && match text(i) {
                "bitmap" => {
                    source.tokens.get(i + 1).is_some_and(|t| t.kind == Kind::Ident) || text(i + 1) == "{"
                }
                "declare" => {
                    source.tokens.get(i + 1).is_some_and(|t| t.kind == Kind::Ident) || text(i + 1) == "["
                }
                // Its base types; other dialects spell them in other ways.
                "uint8" | "uint16" | "uint32" | "HYPER_T" | "unistr" | "NTTIME" => text(i + 1) != ";",
                "pyhelper" | "helper" => text(i + 1) == "(",
                "WERROR" | "DATA_BLOB" => true,
                name => {
                    attrs::SAMBA.contains(&name) && (text(i + 1) == "(" || matches!(text(i + 1), "," | "]"))
                }
            }
    })
}

impl Checker<'_> {
    fn text(&self, name: Symbol) -> &str {
        self.s.names.text(name)
    }

    fn owned(&self, name: Symbol) -> String {
        self.text(name).to_owned()
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.s.diags.push(Diagnostic::error(code, span, message));
    }

    fn in_main(&self, span: Span) -> bool {
        let site = self.s.map.call_site(span);
        self.s.map.file_index(site) == Some(self.main)
    }

    fn is_header(&self, file: usize) -> bool {
        pp::is_header(&self.s.map.file(file).path)
    }

    // --- files

    fn file(&mut self, source: Preprocessed, header: bool) {
        let mut cursor = Cursor::new(self.s, source.tokens);
        let items = parse::parse(&mut cursor, header);
        let poisoned = std::mem::take(&mut cursor.poisoned);
        self.poisoned.extend(poisoned);
        self.items(&items);
    }

    fn import(&mut self, literal: Symbol, span: Span) {
        let text = self.owned(literal);
        let name = text.trim_matches('"').to_owned();
        let includer: Vec<PathBuf> =
            self.s.map.file_index(span).map(|i| self.s.map.file(i).path.clone()).into_iter().collect();
        let main = self.s.map.file(self.main).path.clone();
        let includers: Vec<PathBuf> = std::iter::once(main).chain(includer).collect();
        let Some(path) = pp::find(self.s, &name, false, &includers, false) else {
            return pp::not_found(self.s, &name, span, false);
        };
        if self.import_depth >= limits::INCLUDE_DEPTH_MAX {
            let message = format!("files import one another deeper than {}", limits::INCLUDE_DEPTH_MAX);
            return self.s.diags.fatal(Diagnostic::error(Code::Limit, span, message));
        }
        let file = match self.s.load(&path, Some(span)) {
            Ok(file) => file,
            Err(why) => {
                self.s.incomplete = true;
                let message = format!("cannot read `{}`: {why}", path.display());
                return self.error(Code::Unreadable, span, message);
            }
        };
        if !self.imported.insert(file) {
            return;
        }
        let source = pp::preprocess(self.s, file);
        let header = self.is_header(file);
        self.import_depth += 1;
        self.file(source, header);
        self.import_depth -= 1;
    }

    /// Reads `NAME.acf` beside `NAME.idl`, or the attribute file that the user named.
    fn attribute_file(&mut self) {
        let path = match self.s.options.acf.clone() {
            Some(path) => path,
            None => {
                let beside = self.s.map.file(self.main).path.with_extension("acf");
                if !self.s.exists(&beside) {
                    return;
                }
                beside
            }
        };
        match self.s.load(&path, None) {
            Ok(file) => {
                let source = pp::preprocess(self.s, file);
                acf::check(self.s, source, &self.operations, &|s, name| {
                    let known = self.ordinary.contains_key(&name);
                    known || predefined::ty(s.names.text(name)).is_some()
                });
            }
            Err(why) => {
                let message = format!("cannot read the attribute file `{}`: {why}", path.display());
                self.s.diags.push(Diagnostic::error(Code::Unreadable, Span::default(), message));
            }
        }
    }

    // --- names

    fn declare(&mut self, name: Ident, entry: Entry, header: bool) {
        self.ordinary.insert(name.name, (entry, name.span, header));
    }

    fn twice(&mut self, name: Ident, first: Span) {
        let message = format!("`{}` is declared twice", self.text(name.name));
        let diagnostic = Diagnostic::error(Code::Duplicate, name.span, message);
        self.s.diags.push(diagnostic.note(first, "first declared here"));
    }

    fn named(&mut self, name: Ident, header: bool) -> TypeId {
        if let Some(&(entry, _, _)) = self.ordinary.get(&name.name) {
            match entry {
                Entry::Type(id) => return id,
                Entry::Interface(id) => return self.model.add(Type::Object(Some(id))),
                Entry::Unread => return self.error,
                _ => {
                    let message = format!("`{}` is no type", self.text(name.name));
                    self.error(Code::NotType, name.span, message);
                    return self.error;
                }
            }
        }
        // `struct X {…};` is often used as plain `X`, as C++ allows.
        if let Some(tag) = self.tags.get(&name.name) {
            return tag.ty;
        }
        if let Some(ty) = predefined::ty(self.text(name.name)) {
            let id = self.model.add(ty);
            self.ordinary.insert(name.name, (Entry::Type(id), name.span, true));
            return id;
        }
        self.unknown_type(name, header);
        self.error
    }

    fn unknown_type(&mut self, name: Ident, header: bool) {
        if header || self.s.incomplete || self.poisoned.contains(&name.name) {
            return;
        }
        let text = self.owned(name.name);
        let message = format!("the type `{text}` is not declared");
        let mut candidates: Vec<&str> = self
            .ordinary
            .iter()
            .filter(|(_, (e, ..))| matches!(e, Entry::Type(_) | Entry::Interface(_)))
            .map(|(&n, _)| self.s.names.text(n))
            .collect();
        candidates.sort_unstable();
        let words = [
            "long", "short", "char", "void", "byte", "hyper", "small", "float", "double", "boolean",
            "unsigned", "handle_t",
        ];
        let near = nearest(&text, candidates.into_iter().chain(words)).map(str::to_owned);
        self.undeclared(name, message, near);
    }

    /// Reports a name that nothing declares; a warning where it may come from what quill does not read.
    fn undeclared(&mut self, name: Ident, message: String, near: Option<String>) {
        self.poisoned.insert(name.name);
        let diagnostic = match self.type_library {
            _ if self.samba => Diagnostic::warning(Code::Unknown, name.span, message),
            Some(library) => Diagnostic::warning(Code::Unknown, name.span, message)
                .note(library, "it may come from this type library, which is not read"),
            None => Diagnostic::error(Code::Unknown, name.span, message),
        };
        self.s.diags.push(diagnostic.maybe(near.as_deref()));
    }

    // --- items

    fn items(&mut self, items: &[Item]) {
        for item in items {
            if self.s.diags.stop() {
                return;
            }
            self.item(item, None);
        }
    }

    /// One item; `interface` is the one around it, with what its operations are collected in.
    fn item(&mut self, item: &Item, interface: Option<(&Interface, &mut Vec<Operation>, bool)>) {
        if !item.header {
            self.attributes(&item.attrs, "here");
        }
        match &item.kind {
            ItemKind::Import(files) => {
                for &(file, span) in files {
                    self.import(file, span);
                }
            }
            ItemKind::Typedef(attrs, spec, names) => self.typedef(attrs, spec, names, item.header),
            ItemKind::Const(spec, declarator, value) => self.constant(spec, declarator, value),
            ItemKind::Type(spec) => {
                self.spec(spec, &item.attrs, item.header);
            }
            ItemKind::Function(spec, declarator) => match interface {
                Some((around, operations, local)) => {
                    if let Some(operation) = self.operation(item, spec, declarator, around, local) {
                        operations.push(operation);
                    }
                }
                None => {
                    if let Some(name) = declarator.name {
                        self.declare(name, Entry::Function, item.header);
                    }
                }
            },
            ItemKind::Forward(name) => {
                self.interface_entry(*name);
            }
            ItemKind::Interface(interface) => self.interface(interface, item),
            ItemKind::Group(keyword, name, items) => {
                if let Some(name) = name
                    && *keyword != "namespace"
                    && !self.ordinary.contains_key(&name.name)
                {
                    self.declare(*name, Entry::Unread, false);
                }
                if *keyword == "module" {
                    // A module's functions are entries of a library, not operations.
                    let mut none = Vec::new();
                    let around = Interface {
                        name: Ident { name: Symbol::default(), span: item.span },
                        bases: Vec::new(),
                        items: Vec::new(),
                        dispatch: true,
                    };
                    for item in items {
                        self.item(item, Some((&around, &mut none, true)));
                    }
                } else {
                    let outer = self.in_library;
                    self.in_library |= *keyword == "library";
                    self.items(items);
                    self.in_library = outer;
                }
            }
            ItemKind::Class(name, members) => {
                for member in members {
                    if !self.ordinary.contains_key(&member.name)
                        && !self.s.incomplete
                        && !self.poisoned.contains(&member.name)
                    {
                        // Nothing is made of a class, so that the name alone does no harm.
                        let message = format!("the interface `{}` is not declared", self.text(member.name));
                        let near = self.near_interface(member.name);
                        let diagnostic = Diagnostic::warning(Code::Unknown, member.span, message);
                        self.s.diags.push(diagnostic.maybe(near.as_deref()));
                    }
                }
                self.declare(*name, Entry::Unread, item.header);
            }
            ItemKind::Unread(name) => {
                if !self.ordinary.contains_key(&name.name) {
                    self.declare(*name, Entry::Unread, item.header);
                }
            }
            ItemKind::TypeLibrary => {
                self.type_library.get_or_insert(item.span);
            }
            ItemKind::Nothing => {}
        }
    }

    fn typedef(&mut self, attrs: &[Attr], spec: &Spec, names: &[Declarator], header: bool) {
        if !header {
            self.attributes(attrs, "a typedef");
        }
        let base = self.spec(spec, attrs, header);
        for declarator in names {
            let Some(name) = declarator.name else { continue };
            let mut of = self.derive(base, declarator, attrs, header);
            let text = self.owned(name.name);
            if has(self.s, attrs, "context_handle") {
                of = self.model.add(Type::Foreign("the context handle", text.clone()));
            }
            if let Some(&(old, first, old_header)) = self.ordinary.get(&name.name) {
                let same = match old {
                    Entry::Type(id) => {
                        self.model.resolved(id) == self.model.resolved(of)
                            || self.model.show(id) == text && {
                                self.model.ty(self.model.resolved(id))
                                    == self.model.ty(self.model.resolved(of))
                            }
                    }
                    Entry::Unread => true,
                    // `typedef interface IFoo IFoo;` and forward declarations.
                    Entry::Interface(_) => {
                        matches!(self.model.ty(self.model.resolved(of)), Type::Object(_) | Type::Error)
                    }
                    _ => false,
                };
                if matches!(old, Entry::Interface(_)) && same {
                    continue;
                }
                if !same
                    && !header
                    && !old_header
                    && self.s.map.file_index(first) == self.s.map.file_index(name.span)
                {
                    self.twice(name, first);
                    continue;
                }
            }
            let alias = self.model.add(Type::Alias(text, of));
            let imported = !self.in_main(name.span);
            self.model.named.push((alias, imported));
            self.declare(name, Entry::Type(alias), header);
        }
    }

    fn constant(&mut self, spec: &Spec, declarator: &Declarator, expr: &Expr) {
        let ty = self.spec(spec, &[], false);
        let ty = self.derive(ty, declarator, &[], false);
        let Some(name) = declarator.name else { return };
        let value = self.eval(expr);
        let value = self.convert(value, ty, expr.span);
        if let Some(&(_, first, false)) = self.ordinary.get(&name.name)
            && self.s.map.file_index(first) == self.s.map.file_index(name.span)
        {
            return self.twice(name, first);
        }
        let imported = !self.in_main(name.span);
        self.model.consts.push(Const { name: self.owned(name.name), ty, value, imported });
        self.declare(name, Entry::Const(self.model.consts.len() - 1), false);
    }

    fn convert(&mut self, value: Value, ty: TypeId, span: Span) -> Value {
        let resolved = self.model.resolved(ty);
        match (self.model.ty(resolved), &value) {
            (Type::Int { bits, signed }, Value::Int(v)) => {
                // C converts silently between signed and unsigned; only a value with too many bits is a mistake.
                let size = 1i128 << bits;
                if !(-size..size).contains(v) {
                    let message = format!("{v} is out of range for `{}`", self.model.show(ty));
                    self.s.diags.push(Diagnostic::warning(Code::Range, span, message));
                }
                let wrapped = v.rem_euclid(size);
                Value::Int(if *signed && wrapped >= size / 2 { wrapped - size } else { wrapped })
            }
            (Type::Int { .. } | Type::Float(_), Value::Str(_) | Value::WideStr(_)) => {
                let message = format!("a string is no value of the type `{}`", self.model.show(ty));
                self.error(Code::ConstType, span, message);
                Value::Error
            }
            _ => value,
        }
    }

    // --- interfaces

    fn near_interface(&self, name: Symbol) -> Option<String> {
        let entries = self.ordinary.iter().filter(|(_, (e, ..))| matches!(e, Entry::Interface(_)));
        let mut names: Vec<&str> = entries.map(|(&n, _)| self.s.names.text(n)).collect();
        names.sort_unstable();
        nearest(self.text(name), names).map(str::to_owned)
    }

    fn interface_entry(&mut self, name: Ident) -> InterfaceId {
        if let Some(&(Entry::Interface(id), ..)) = self.ordinary.get(&name.name) {
            return id;
        }
        let id = InterfaceId(self.model.interfaces.len() as u32);
        self.model.interfaces.push(ModelInterface {
            name: self.owned(name.name),
            bases: Vec::new(),
            operations: Vec::new(),
            local: false,
            is_abstract: false,
            defined: false,
            imported: !self.in_main(name.span),
            span: name.span,
        });
        self.declare(name, Entry::Interface(id), false);
        id
    }

    fn interface(&mut self, interface: &Interface, item: &Item) {
        let id = self.interface_entry(interface.name);
        let entry = &self.model.interfaces[id.0 as usize];
        let (defined, first) = (entry.defined, entry.span);
        if defined && !item.header {
            self.twice(interface.name, first);
        }
        let mut bases = Vec::new();
        for base in &interface.bases {
            match self.ordinary.get(&base.name) {
                Some(&(Entry::Interface(base_id), ..)) if base_id == id => {
                    let message = format!("`{}` cannot inherit itself", self.text(base.name));
                    self.error(Code::BadBase, base.span, message);
                }
                Some(&(Entry::Interface(base_id), ..)) => bases.push(base_id),
                Some(&(Entry::Unread | Entry::Type(_), ..)) => {}
                Some(_) => {
                    let message = format!("`{}` is no interface", self.text(base.name));
                    self.error(Code::BadBase, base.span, message);
                }
                None if self.s.incomplete || self.poisoned.contains(&base.name) => {}
                // A type library that a library imports declares these two.
                None if matches!(self.text(base.name), "IUnknown" | "IDispatch") && self.in_library => {}
                None => {
                    let message = format!("the interface `{}` is not declared", self.text(base.name));
                    let near = self.near_interface(base.name);
                    self.undeclared(*base, message, near);
                }
            }
        }
        let local = has(self.s, &item.attrs, "local");
        let imported = !self.in_main(interface.name.span);
        let entry = &mut self.model.interfaces[id.0 as usize];
        entry.defined = true;
        entry.local = local;
        entry.imported = imported;
        entry.span = interface.name.span;
        entry.bases = bases;
        let mut operations = Vec::new();
        let objects = ["object", "odl", "dual", "oleautomation", "local"];
        self.of_objects = interface.dispatch || objects.iter().any(|a| has(self.s, &item.attrs, a));
        for item in &interface.items {
            if self.s.diags.stop() {
                return;
            }
            self.item(item, Some((interface, &mut operations, local)));
        }
        self.of_objects = false;
        self.overloads(interface);
        self.model.interfaces[id.0 as usize].operations = operations;
    }

    /// Reports operations that share a name and are not the two halves of a property.
    fn overloads(&mut self, interface: &Interface) {
        if interface.dispatch {
            return;
        }
        let mut seen: HashMap<Symbol, Span> = HashMap::new();
        for item in &interface.items {
            let ItemKind::Function(_, declarator) = &item.kind else { continue };
            let Some(name) = declarator.name else { continue };
            let special =
                ["propget", "propput", "propputref", "overload", "eventadd", "eventremove", "local"];
            if special.iter().any(|a| has(self.s, &item.attrs, a)) {
                continue;
            }
            if let Some(&first) = seen.get(&name.name) {
                self.twice(name, first);
            } else {
                seen.insert(name.name, name.span);
            }
        }
    }

    fn operation(
        &mut self,
        item: &Item,
        spec: &Spec,
        declarator: &Declarator,
        around: &Interface,
        local: bool,
    ) -> Option<Operation> {
        let name = declarator.name?;
        let params = declarator.derived.iter().find_map(|d| match d {
            Derived::Function(params) => Some(params),
            _ => None,
        })?;
        let local = local
            || has(self.s, &item.attrs, "local")
            || around.dispatch
            || has(self.s, &item.attrs, "callback");
        let mut result = self.spec(spec, &item.attrs, item.header);
        for step in &declarator.derived {
            if matches!(step, Derived::Pointer) {
                result = self.model.add(Type::Pointer(Pointer::Unique, result));
            }
        }
        let names: Vec<Symbol> = params.iter().filter_map(|p| p.declarator.name).map(|n| n.name).collect();
        self.siblings.push(names.clone());
        let mut list = Vec::new();
        let mut seen: HashMap<Symbol, Span> = HashMap::new();
        for param in params {
            if let Some(name) = param.declarator.name
                && let Some(first) = seen.insert(name.name, name.span)
            {
                self.twice(name, first);
            }
            list.push(self.param(param, local, item.header));
        }
        self.siblings.pop();
        for attr in item.attrs.iter().filter(|_| !item.header) {
            if self.text(attr.name) == "call_as" {
                self.call_as(attr, around);
            }
        }
        self.operations.insert(name.name, names);
        let name_text = self.owned(name.name);
        let oneway = has(self.s, &item.attrs, "maybe");
        Some(Operation { name: name_text, oneway, result, params: list, raises: Vec::new(), span: name.span })
    }

    fn call_as(&mut self, attr: &Attr, around: &Interface) {
        let Some(target) = attr.arguments.iter().flatten().next() else { return };
        let found = around.items.iter().any(|i| match &i.kind {
            ItemKind::Function(_, d) => d.name.is_some_and(|n| n.name == target.text),
            _ => false,
        });
        if !found && !self.poisoned.contains(&target.text) {
            let message = format!("`{}` is no operation of this interface", self.s.text(target));
            self.s.diags.push(Diagnostic::warning(Code::SizeExpression, target.span, message));
        }
    }

    fn param(&mut self, param: &Param, local: bool, header: bool) -> model::Param {
        self.unsized_array = false;
        if !header {
            self.attributes(&param.attrs, "a parameter");
        }
        let unsized_array = self.unsized_array;
        let base = self.spec(&param.spec, &param.attrs, header);
        let mut ty = self.derive(base, &param.declarator, &param.attrs, header);
        if unsized_array {
            ty = self.model.add(Type::Foreign("the array of unknown size", self.model.show(ty)));
        }
        let span = param.declarator.name.map_or(param.spec.span, |n| n.span);
        self.pointer_attributes(&param.attrs, ty);
        let out = has(self.s, &param.attrs, "out");
        let inward = has(self.s, &param.attrs, "in") || !out;
        if out && !local && !self.samba {
            let resolved = self.model.resolved(ty);
            let by_value = matches!(
                self.model.ty(resolved),
                Type::Int { .. }
                    | Type::Float(_)
                    | Type::Bool
                    | Type::Char
                    | Type::WideChar
                    | Type::Octet
                    | Type::Struct(..)
                    | Type::Union { .. }
                    | Type::Enum(..)
            );
            if by_value {
                let name = param
                    .declarator
                    .name
                    .map_or("this parameter".into(), |n| format!("`{}`", self.text(n.name)));
                let message = format!("{name} is `out` but neither a pointer nor an array");
                let help = "the server needs something to write to: add a `*`";
                let make = self.severity();
                self.s.diags.push(make(Code::Pointer, span, message).help(help));
            }
        }
        if self.model.resolved(ty) == self.void && !header {
            self.error(Code::NotType, span, "a parameter cannot be `void`");
        }
        let direction = match (inward, out) {
            (true, true) => Direction::InOut,
            (false, true) => Direction::Out,
            _ => Direction::In,
        };
        let name = param.declarator.name.map_or(String::new(), |n| self.owned(n.name));
        model::Param { name, ty, direction }
    }

    // --- attributes

    fn attributes(&mut self, attrs: &[Attr], place: &str) {
        for attr in attrs {
            if !self.samba && self.in_main(attr.span) {
                attrs::check_name(self.s, attr);
            }
            attrs::check_form(self.s, attr);
            let name = self.owned(attr.name);
            if matches!(name.as_str(), "in" | "out") && place == "a field" {
                let message = format!("`{name}` belongs to a parameter, not to a field");
                self.error(Code::AttributeForm, attr.span, message);
            }
            if attrs::SIZES.contains(&name.as_str()) && matches!(place, "a field" | "a parameter") {
                self.size_expression(attr);
            }
        }
        let kinds: Vec<&Attr> =
            attrs.iter().filter(|a| matches!(self.text(a.name), "ref" | "unique" | "ptr")).collect();
        if let [first, second, ..] = kinds[..]
            && first.name != second.name
        {
            let message =
                format!("a pointer is either `{}` or `{}`", self.text(first.name), self.text(second.name));
            let diagnostic = Diagnostic::error(Code::AttributeForm, second.span, message);
            self.s.diags.push(diagnostic.note(first.span, "the other is here"));
        }
    }

    /// Checks the names in `size_is(…)` and its like.
    fn size_expression(&mut self, attr: &Attr) {
        let parts = attrs::split(self.s, attr);
        if attr.arguments.is_none() || (parts.len() == 1 && parts[0].is_empty()) {
            let message = format!("`{}` needs a value in parentheses", self.text(attr.name));
            return self.error(Code::AttributeForm, attr.span, message);
        }
        for tokens in parts {
            let star = tokens.len() == 1 && self.s.text(&tokens[0]) == "*";
            if tokens.is_empty() || star || self.samba {
                continue;
            }
            let Ok(expr) = attrs::expression(self.s, tokens, attr) else { continue };
            for (step, span) in &expr.items {
                match step {
                    Step::Grouped(name) if self.is_type(name.parts[0].name) => {}
                    Step::Name(name) | Step::Grouped(name) if name.parts.len() == 1 => {
                        self.size_name(name.parts[0], *span, attr);
                    }
                    _ => {}
                }
            }
        }
    }

    fn size_name(&mut self, part: Ident, span: Span, attr: &Attr) {
        if self.siblings.iter().flatten().any(|&n| n == part.name)
            || self.poisoned.contains(&part.name)
            || self.s.incomplete
        {
            return;
        }
        match self.ordinary.get(&part.name) {
            Some((Entry::Const(_) | Entry::Enumerator(_) | Entry::Unread, ..)) => return,
            _ if predefined::constant(self.text(part.name)).is_some() => return,
            _ => {}
        }
        let text = self.owned(part.name);
        let candidates: Vec<&str> = self.siblings.iter().flatten().map(|&n| self.s.names.text(n)).collect();
        let near = nearest(&text, candidates.iter().copied().take(1000));
        let message = format!(
            "`{}` names `{text}`, which is no field, parameter or constant here",
            self.text(attr.name)
        );
        let make = self.severity();
        self.unsized_array = true;
        self.s.diags.push(make(Code::SizeExpression, span, message).maybe(near));
    }

    /// How a mistake counts that the compilers of COM let pass.
    fn severity(&self) -> fn(Code, Span, String) -> Diagnostic {
        if self.of_objects { Diagnostic::warning } else { Diagnostic::error }
    }

    /// What `string`, `ref` and the like ask of the type that they are applied to.
    fn pointer_attributes(&mut self, attrs: &[Attr], ty: TypeId) {
        let kind = ["ref", "unique", "ptr"].iter().find_map(|kind| find(self.s, attrs, kind));
        let plain = matches!(
            self.model.ty(self.model.resolved(ty)),
            Type::Int { .. } | Type::Float(_) | Type::Bool | Type::Char | Type::Octet | Type::WideChar
        );
        if let Some(kind) = kind
            && plain
            && !self.samba
        {
            let message =
                format!("`{}` is for pointers, not for `{}`", self.text(kind.name), self.model.show(ty));
            self.error(Code::AttributeForm, kind.span, message);
        }
        let Some(string) = find(self.s, attrs, "string") else { return };
        let mut id = self.model.resolved(ty);
        let mut steps = 0;
        while let Type::Pointer(_, to) | Type::Array(to, _) | Type::Open(to) = self.model.ty(id) {
            id = self.model.resolved(*to);
            steps += 1;
            if steps > limits::NESTING_MAX {
                return;
            }
        }
        let wrong = matches!(
            self.model.ty(id),
            Type::Int { bits: 32 | 64, .. } | Type::Float(_) | Type::Bool | Type::Union { .. }
        );
        if wrong && !self.samba {
            let message = format!("`string` is for arrays of characters, not of `{}`", self.model.show(id));
            self.error(Code::AttributeForm, string.span, message);
        }
    }

    // --- types

    fn pointer_kind(&self, attrs: &[Attr]) -> Pointer {
        if has(self.s, attrs, "ref") {
            Pointer::Ref
        } else if has(self.s, attrs, "ptr") {
            Pointer::Full
        } else {
            Pointer::Unique
        }
    }

    /// The type of a declared name.
    fn derive(&mut self, base: TypeId, declarator: &Declarator, attrs: &[Attr], header: bool) -> TypeId {
        let mut ty = base;
        for step in declarator.derived.iter().rev() {
            ty = match step {
                Derived::Pointer => {
                    let kind = self.pointer_kind(attrs);
                    self.model.add(Type::Pointer(kind, ty))
                }
                Derived::Array(None) => self.model.add(Type::Open(ty)),
                Derived::Array(Some(size)) => {
                    let size = if header { None } else { self.array_size(size) };
                    match size {
                        Some(size) => self.model.add(Type::Array(ty, vec![size])),
                        None => self.model.add(Type::Open(ty)),
                    }
                }
                Derived::Function(params) => {
                    if !header {
                        self.siblings
                            .push(params.iter().filter_map(|p| p.declarator.name).map(|n| n.name).collect());
                        for param in params {
                            self.param(param, true, header);
                        }
                        self.siblings.pop();
                    }
                    self.model.add(Type::Foreign("the function type", String::new()))
                }
                Derived::Bits(width) => {
                    if !header {
                        self.eval(width);
                    }
                    ty
                }
            };
        }
        ty
    }

    /// The size of an array: a constant, or a field that gives it (Samba).
    fn array_size(&mut self, size: &Expr) -> Option<u64> {
        let sibling = size.items.iter().any(|(step, _)| match step {
            Step::Name(name) | Step::Grouped(name) => {
                self.siblings.iter().flatten().any(|&n| n == name.parts[0].name)
            }
            _ => false,
        });
        if sibling || (self.samba && !matches!(size.items[..], [(Step::Int(_), _)])) {
            return None;
        }
        match self.eval(size) {
            Value::Int(v) if (1..=u32::MAX.into()).contains(&v) => Some(v as u64),
            Value::Int(0) => None,
            Value::Int(v) => {
                self.error(Code::Bound, size.span, format!("the size of an array cannot be {v}"));
                None
            }
            _ => None,
        }
    }

    fn spec(&mut self, spec: &Spec, attrs: &[Attr], header: bool) -> TypeId {
        match &spec.kind {
            SpecKind::Basic(basic) => {
                let ty = match basic {
                    Basic::Void => return self.void,
                    Basic::Int(bits, signed) => Type::Int { bits: *bits, signed: *signed },
                    Basic::Float(bits) => Type::Float(*bits),
                    Basic::Boolean => Type::Bool,
                    Basic::Byte => Type::Octet,
                    Basic::Char => Type::Char,
                    Basic::WideChar => Type::WideChar,
                    Basic::Handle => Type::Foreign("the type", "handle_t".into()),
                };
                self.model.add(ty)
            }
            SpecKind::Named(name) => self.named(*name, header),
            SpecKind::Generic(name) => {
                self.model.add(Type::Foreign("the generic type", self.owned(name.name)))
            }
            SpecKind::Record(record) => self.record(record, attrs, header),
            SpecKind::Enum(e) => self.enumeration(e, header),
            SpecKind::Pipe(of) => {
                self.spec(of, &[], header);
                self.model.add(Type::Foreign("the pipe", String::new()))
            }
            SpecKind::SafeArray(of) => {
                self.spec(of, &[], header);
                self.model.add(Type::Foreign("the type", "SAFEARRAY".into()))
            }
        }
    }

    fn tag(&mut self, tag: Option<Ident>, body: bool, header: bool) -> (TypeId, String, bool) {
        let Some(name) = tag else {
            self.anonymous += 1;
            let id = self.model.add(Type::Forward(format!("anonymous_{}", self.anonymous)));
            return (id, format!("anonymous_{}", self.anonymous), true);
        };
        let text = self.owned(name.name);
        if let Some(old) = self.tags.get(&name.name).copied() {
            if !body || !old.defined {
                self.tags.insert(name.name, Tag { defined: old.defined || body, ..old });
                return (old.ty, text, true);
            }
            let one_file = self.s.map.file_index(old.span) == self.s.map.file_index(name.span);
            if !header && one_file {
                self.twice(name, old.span);
            }
        }
        let id = self.model.add(Type::Forward(text.clone()));
        self.tags.insert(name.name, Tag { ty: id, defined: body, span: name.span });
        (id, text, true)
    }

    fn record(&mut self, record: &Record, attrs: &[Attr], header: bool) -> TypeId {
        let (id, name, _) = self.tag(record.tag, record.body.is_some(), header);
        let Some(body) = &record.body else { return id };
        let mut names: Vec<Symbol> =
            body.iter().flat_map(|f| &f.names).filter_map(|d| d.name).map(|n| n.name).collect();
        let mut switch_ty = self.error;
        if let Some((ty, tag)) = &record.switch {
            switch_ty = self.spec(ty, &[], header);
            names.push(tag.name);
        }
        self.siblings.push(names);
        let mut fields = Vec::new();
        let mut branches = Vec::new();
        let mut seen: HashMap<Symbol, Span> = HashMap::new();
        let mut labels: HashMap<i128, Span> = HashMap::new();
        let mut default: Option<Span> = None;
        for field in body {
            if !header {
                self.attributes(&field.attrs, "a field");
            }
            let (values, is_default) =
                if header { (Vec::new(), false) } else { self.labels(field, &mut labels, &mut default) };
            let base = field.spec.as_ref().map(|s| self.spec(s, &field.attrs, header));
            for declarator in &field.names {
                let ty = self.derive(base.unwrap_or(self.void), declarator, &field.attrs, header);
                if !header {
                    self.pointer_attributes(&field.attrs, ty);
                    self.complete(ty, declarator.span);
                }
                let Some(name) = declarator.name else { continue };
                if let Some(first) = seen.insert(name.name, name.span)
                    && !header
                    && !(self.samba && record.union)
                {
                    self.twice(name, first);
                }
                fields.push(model::Field { name: self.owned(name.name), ty });
            }
            if record.union {
                let field = match (base, fields.pop()) {
                    (Some(_), Some(field)) => field,
                    _ => model::Field { name: String::new(), ty: self.void },
                };
                branches.push(Branch { labels: values, is_default, field });
            }
        }
        self.siblings.pop();
        let ty = if record.union {
            if let Some(attr) = find(self.s, attrs, "switch_type").cloned() {
                switch_ty = self.switch_type(&attr);
            }
            Type::Union { name, switch: switch_ty, branches }
        } else {
            Type::Struct(name, fields)
        };
        self.model.define(id, ty);
        if record.tag.is_some() {
            let imported = record.tag.is_some_and(|t| !self.in_main(t.span));
            self.model.named.push((id, imported));
        }
        id
    }

    /// A struct cannot contain itself.
    fn complete(&mut self, ty: TypeId, span: Span) {
        let mut id = self.model.resolved(ty);
        let mut steps = 0;
        while let Type::Array(of, _) = self.model.ty(id) {
            id = self.model.resolved(*of);
            steps += 1;
            if steps > limits::NESTING_MAX {
                return;
            }
        }
        if let Type::Forward(name) = self.model.ty(id)
            && !name.starts_with("anonymous_")
            && !self.s.incomplete
            && !self.samba
        {
            let message = format!("`{}` is not complete here", name.clone());
            let help = "a type can contain itself only through a pointer";
            self.s.diags.push(Diagnostic::error(Code::Incomplete, span, message).help(help));
        }
    }

    fn switch_type(&mut self, attr: &Attr) -> TypeId {
        let mut tokens = attr.arguments.clone().unwrap_or_default();
        let Some(&first) = tokens.first() else { return self.error };
        tokens.push(crate::lex::Token { kind: Kind::Eof, ..first });
        let mut cursor = Cursor::new(self.s, tokens);
        match parse::spec(&mut cursor) {
            Ok(spec) => self.spec(&spec, &[], false),
            Err(_) => self.error,
        }
    }

    /// The labels of a branch: `case X:` or `[case(X, Y)]`.
    fn labels(
        &mut self,
        field: &Field,
        seen: &mut HashMap<i128, Span>,
        default: &mut Option<Span>,
    ) -> (Vec<i128>, bool) {
        let mut exprs: Vec<(Expr, Span)> = Vec::new();
        let mut is_default = None;
        for (label, span) in &field.labels {
            match label {
                Some(expr) => exprs.push((expr.clone(), *span)),
                None => is_default = Some(*span),
            }
        }
        if let Some(attr) = find(self.s, &field.attrs, "default") {
            is_default = Some(attr.span);
        }
        if let Some(attr) = find(self.s, &field.attrs, "case").cloned() {
            for tokens in attrs::split(self.s, &attr) {
                if tokens.is_empty() {
                    continue;
                }
                if let Ok(expr) = attrs::expression(self.s, tokens, &attr) {
                    exprs.push((expr, attr.span));
                }
            }
        }
        if let Some(span) = is_default
            && let Some(first) = default.replace(span)
        {
            let diagnostic = Diagnostic::error(Code::Label, span, "`default` appears twice");
            self.s.diags.push(diagnostic.note(first, "the first is here"));
        }
        let mut values = Vec::new();
        for (expr, span) in exprs {
            let value = match self.eval(&expr) {
                Value::Int(v) => v,
                Value::Char(v) | Value::WideChar(v) => v.into(),
                Value::Bool(v) => v.into(),
                _ => continue,
            };
            if let Some(first) = seen.insert(value, span) {
                let diagnostic = Diagnostic::error(Code::Label, span, "this label appears twice");
                self.s.diags.push(diagnostic.note(first, "the first is here"));
            }
            values.push(value);
        }
        (values, is_default.is_some())
    }

    fn enumeration(&mut self, e: &Enum, header: bool) -> TypeId {
        let (id, name, _) = self.tag(e.tag, e.members.is_some(), header);
        let Some(members) = &e.members else {
            if matches!(self.model.ty(id), Type::Forward(_)) {
                self.model.define(id, Type::Enum(name, Vec::new()));
            }
            return id;
        };
        let mut list = Vec::new();
        let mut next = 0i128;
        for (member, expr) in members {
            if let Some(expr) = expr
                && let Value::Int(v) = if header { self.quiet_eval(expr) } else { self.eval(expr) }
            {
                next = v;
            }
            let value = next.clamp(i64::MIN.into(), u64::MAX.into());
            if let Some(&(old, first, old_header)) = self.ordinary.get(&member.name) {
                let one_file = self.s.map.file_index(first) == self.s.map.file_index(member.span);
                let clash = matches!(
                    old,
                    Entry::Enumerator(_) | Entry::Type(_) | Entry::Const(_) | Entry::Interface(_)
                );
                if clash && !header && !old_header && one_file {
                    self.twice(*member, first);
                }
            }
            self.declare(*member, Entry::Enumerator(value), header);
            list.push((self.owned(member.name), value));
            next = value + 1;
        }
        self.model.define(id, if e.bits { Type::Bitmask(name, 32, list) } else { Type::Enum(name, list) });
        if e.tag.is_some_and(|t| self.in_main(t.span)) {
            self.model.named.push((id, false));
        }
        id
    }

    // --- constants

    fn quiet_eval(&mut self, expr: &Expr) -> Value {
        let diags = std::mem::take(&mut self.s.diags);
        let value = self.eval(expr);
        self.s.diags = diags;
        value
    }

    fn eval(&mut self, expr: &Expr) -> Value {
        let mut stack: Vec<Value> = Vec::new();
        // Where a conversion `(T)` stands on the stack, until its operand comes.
        let mut conversion = None;
        for (step, span) in &expr.items {
            let place = stack.len();
            let mut pop = || stack.pop().unwrap_or(Value::Error);
            let result = match step {
                Step::Grouped(name) if self.is_type(name.parts[0].name) => {
                    conversion = Some(place);
                    Ok(Value::Error)
                }
                Step::Binary(operator @ ("-" | "+")) if conversion == Some(place.wrapping_sub(2)) => {
                    conversion = None;
                    let operand = pop();
                    pop();
                    unary(if *operator == "-" { Unary::Minus } else { Unary::Plus }, operand)
                }
                Step::Int(v) => Ok(Value::Int((*v).into())),
                Step::Float(v) => Ok(Value::Float(*v)),
                Step::Char(v) => Ok(Value::Int((*v).into())),
                Step::WideChar(v) => Ok(Value::Int((*v).into())),
                Step::Str(v) => Ok(Value::Str(v.clone())),
                Step::WideStr(v) => Ok(Value::WideStr(v.clone())),
                Step::Bool(v) => Ok(Value::Int((*v).into())),
                Step::Name(name) | Step::Grouped(name) => Ok(self.constant_named(name.parts[0])),
                Step::Unary(operator) => unary(*operator, pop()),
                Step::Binary(operator) => {
                    let (right, left) = (pop(), pop());
                    binary(operator, left, right)
                }
                Step::Conditional => {
                    let (no, yes, condition) = (pop(), pop(), pop());
                    Ok(match condition {
                        Value::Int(0) => no,
                        Value::Int(_) => yes,
                        _ => Value::Error,
                    })
                }
                Step::Member(_) => {
                    pop();
                    Ok(Value::Error)
                }
                Step::Index => {
                    pop();
                    pop();
                    Ok(Value::Error)
                }
                Step::Call(count) => {
                    for _ in 0..=*count {
                        pop();
                    }
                    Ok(Value::Error)
                }
                Step::Opaque | Step::Fixed(_) => Ok(Value::Error),
            };
            stack.push(result.unwrap_or_else(|why| {
                self.error(Code::Arithmetic, *span, why);
                Value::Error
            }));
        }
        stack.pop().unwrap_or(Value::Error)
    }

    /// Whether a name is that of a type here.
    fn is_type(&self, name: Symbol) -> bool {
        match self.ordinary.get(&name) {
            Some((entry, ..)) => matches!(entry, Entry::Type(_) | Entry::Interface(_)),
            None => self.tags.contains_key(&name) || predefined::ty(self.text(name)).is_some(),
        }
    }

    fn constant_named(&mut self, name: Ident) -> Value {
        match self.ordinary.get(&name.name) {
            Some((Entry::Const(index), ..)) => match &self.model.consts[*index].value {
                Value::Char(v) => Value::Int((*v).into()),
                value => value.clone(),
            },
            Some((Entry::Enumerator(value), ..)) => Value::Int(*value),
            Some((Entry::Unread, ..)) => Value::Error,
            Some(_) => {
                let message = format!("`{}` is no constant", self.text(name.name));
                self.error(Code::ConstType, name.span, message);
                Value::Error
            }
            None => {
                if let Some(value) = predefined::constant(self.text(name.name)) {
                    return Value::Int(value);
                }
                if self.s.incomplete || self.samba || !self.poisoned.insert(name.name) {
                    return Value::Error;
                }
                let text = self.owned(name.name);
                let constant = |e: &Entry| matches!(e, Entry::Const(_) | Entry::Enumerator(_));
                let mut candidates: Vec<&str> = self
                    .ordinary
                    .iter()
                    .filter(|(_, (e, ..))| constant(e))
                    .map(|(&n, _)| self.s.names.text(n))
                    .collect();
                candidates.sort_unstable();
                let near = nearest(&text, candidates).map(str::to_owned);
                let message = format!("`{text}` is not declared");
                let diagnostic = Diagnostic::error(Code::Unknown, name.span, message).maybe(near.as_deref());
                self.s.diags.push(diagnostic);
                Value::Error
            }
        }
    }
}

fn unary(operator: Unary, value: Value) -> Result<Value, &'static str> {
    Ok(match (operator, value) {
        (Unary::Plus, v) => v,
        (Unary::Minus, Value::Int(v)) => Value::Int(-v),
        (Unary::Minus, Value::Float(v)) => Value::Float(-v),
        (Unary::Complement, Value::Int(v)) => Value::Int(!v),
        (Unary::Not, Value::Int(v)) => Value::Int((v == 0).into()),
        (_, Value::Error) | (Unary::Deref | Unary::Address, _) => Value::Error,
        _ => return Err("this operator needs a number"),
    })
}

fn binary(operator: &str, left: Value, right: Value) -> Result<Value, &'static str> {
    let (a, b) = match (&left, &right) {
        (Value::Int(a), Value::Int(b)) => (*a, *b),
        (Value::Error, _) | (_, Value::Error) => return Ok(Value::Error),
        _ if matches!(operator, "==" | "!=" | "<" | ">" | "<=" | ">=" | "&&" | "||") => {
            return Ok(Value::Error);
        }
        _ => return crate::corba::binary(operator, left, right),
    };
    let truth = match operator {
        "==" => a == b,
        "!=" => a != b,
        "<" => a < b,
        ">" => a > b,
        "<=" => a <= b,
        ">=" => a >= b,
        "&&" => a != 0 && b != 0,
        "||" => a != 0 || b != 0,
        _ => return crate::corba::binary(operator, left, right),
    };
    Ok(Value::Int(truth.into()))
}
