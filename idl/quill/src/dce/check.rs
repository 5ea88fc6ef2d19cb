//! [`super::ast`] to the [`Model`], and the imports between files.
//!
//! Names are global, as in the C that such files become: an interface's body is no scope for types. Tags of structs,
//! unions and enums have a table of their own. A C header's declarations are believed, never reported.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::ast::*;
use super::attrs::{self, find, has};
use super::parse;
use super::predefined;
use crate::acf;
use crate::codes::Code;
use crate::cursor::{Cursor, Ident};
use crate::diag::{Diagnostic, nearest};
use crate::effects;
use crate::expr::{Expr, Item as Step, Unary};
use crate::hints;
use crate::intern::Symbol;
use crate::l4;
use crate::lex::Kind;
use crate::limits;
use crate::model::{
    self, Branch, Const, Direction, Exception, ExceptionId, Interface as ModelInterface, InterfaceId, Model,
    Operation, Pointer, Shown, Type, TypeId, Value,
};
use crate::pp::{self, Preprocessed};
use crate::session::Session;
use crate::source::Span;

/// How the names of types without one begin.
const ANONYMOUS: &str = "anonymous_";

mod attributes;
mod carried;
mod constants;
mod interfaces;
mod pipes;
mod types;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Type(TypeId),
    Const(usize),
    Enumerator(i128),
    Interface(InterfaceId),
    Function,
    Exception(ExceptionId),
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

/// Names that an attribute's expression may use: fields or parameters, innermost ones last.
type Siblings = Vec<HashSet<Symbol>>;

struct Checker<'a> {
    s: &'a mut Session,
    model: Model,
    ordinary: HashMap<Symbol, (Entry, Span, bool)>,
    tags: HashMap<Symbol, Tag>,
    imported: HashSet<usize>,
    poisoned: HashSet<Symbol>,
    operations: HashMap<Symbol, Vec<Symbol>>,
    siblings: Siblings,
    /// Names for texts: `typedef [string] char *Name`.
    strings: HashSet<TypeId>,
    /// Names of types whose values say which server is called (`handle`).
    handles: HashSet<TypeId>,
    /// Lists that are pipes, which only parameters can be.
    pipes: HashSet<TypeId>,
    /// Kind of a pointer within something, if nothing is said about it.
    pointer_default: Pointer,
    /// The functions of the interface that is being checked.
    functions: HashSet<Symbol>,
    import_depth: usize,
    in_library: bool,
    /// In a `namespace`, as interfaces of the Windows Runtime are: enumerators belong to their enum.
    in_namespace: bool,
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
    let mut checker = checker(s, &source);
    let header = checker.is_header(checker.main);
    checker.file(source, header);
    checker.attribute_file();
    checker.model
}

/// Types of a C header, and the names that stand for them.
pub fn header(s: &mut Session, source: Preprocessed) -> (Model, Vec<(Symbol, TypeId)>) {
    let mut checker = checker(s, &source);
    checker.samba = false;
    checker.file(source, true);
    let ordinary = checker.ordinary.iter().filter_map(|(&name, &(entry, ..))| match entry {
        Entry::Type(id) => Some((name, id)),
        _ => None,
    });
    let mut names: Vec<(Symbol, TypeId)> = ordinary.collect();
    let tags = checker.tags.iter().filter(|(name, _)| !checker.ordinary.contains_key(name));
    names.extend(tags.map(|(&name, tag)| (name, tag.ty)));
    names.sort_unstable_by_key(|(_, id)| *id);
    (checker.model, names)
}

/// A checker that knows nothing yet.
fn checker<'a>(s: &'a mut Session, source: &Preprocessed) -> Checker<'a> {
    let samba = is_samba(s, source);
    let mut model = Model::default();
    let error = model.add(Type::Error);
    let void = model.add(Type::Void);
    let main = source.file;
    Checker {
        s,
        model,
        ordinary: HashMap::new(),
        tags: HashMap::new(),
        imported: HashSet::from([main]),
        poisoned: HashSet::new(),
        operations: HashMap::new(),
        siblings: Vec::new(),
        strings: HashSet::new(),
        handles: HashSet::new(),
        pipes: HashSet::new(),
        pointer_default: Pointer::Unique,
        functions: HashSet::new(),
        import_depth: 0,
        in_library: false,
        in_namespace: false,
        of_objects: false,
        unsized_array: false,
        type_library: None,
        main,
        samba,
        error,
        void,
        anonymous: 0,
    }
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
            if self.s.l4 && l4::is_header(&name) {
                return l4::warn_of_header(self.s, &name, span);
            }
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

    /// Follows the attribute file. One for several files may name any of their operations, whatever its interface.
    fn attribute_file(&mut self) {
        let Some(source) = acf::load(self.s, self.main) else { return };
        let text = |&name: &Symbol| self.s.names.text(name).to_owned();
        let mut all: acf::Operations = self
            .operations
            .iter()
            .map(|(name, params)| (text(name), params.iter().map(text).collect()))
            .collect();
        all.sort_unstable();
        let types: HashSet<String> = self.ordinary.keys().map(text).collect();
        let operations = |_: &str| Some(all.clone());
        let is_type = |name: &str| types.contains(name) || predefined::ty(name).is_some();
        let wishes = acf::read(self.s, source, &acf::Names { operations: &operations, is_type: &is_type });
        acf::apply(self.s, &mut self.model, wishes);
    }

    /// Whether a name's second type is an enum without a tag, and its first the tag of the same name, of which nothing more was known.
    /// Then the two are one.
    fn completes(&mut self, name: Symbol, first: TypeId, second: TypeId) -> bool {
        let (first, text) = (self.model.resolved(first), self.owned(name));
        let whole = match self.model.ty(self.model.resolved(second)) {
            Type::Enum(own, members) if own.starts_with(ANONYMOUS) => Type::Enum(text, members.clone()),
            Type::Bitmask(own, bits, members) if own.starts_with(ANONYMOUS) => {
                Type::Bitmask(text, *bits, members.clone())
            }
            _ => return false,
        };
        let Some(tag) = self.tags.get_mut(&name) else { return false };
        if tag.defined || self.model.resolved(tag.ty) != first {
            return false;
        }
        tag.defined = true;
        self.model.define(first, whole);
        true
    }

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
        let of_l4 =
            if self.s.l4 { l4::ty(self.text(name.name)).map(predefined::Predefined::Is) } else { None };
        if let Some(ty) = of_l4.or_else(|| predefined::ty(self.text(name.name))) {
            let id = match ty {
                predefined::Predefined::Is(ty) => self.model.add(ty),
                predefined::Predefined::Any => self.model.any(),
                predefined::Predefined::Uuid { pointer } => {
                    let uuid = self.uuid();
                    if pointer { self.model.add(Type::Pointer(Pointer::Unsaid, uuid)) } else { uuid }
                }
            };
            self.ordinary.insert(name.name, (Entry::Type(id), name.span, true));
            return id;
        }
        self.unknown_type(name, header);
        self.error
    }

    /// The struct of an identifier, as DCE has it.
    fn uuid(&mut self) -> TypeId {
        let name = self.s.names.intern("uuid_t");
        if let Some(&(Entry::Type(id), ..)) = self.ordinary.get(&name) {
            return id;
        }
        let mut number = |bits| self.model.add(Type::Int { bits, signed: false });
        let (long, short, byte) = (number(32), number(16), number(8));
        let node = self.model.add(Type::Array(byte, vec![6]));
        let fields = [
            ("time_low", long),
            ("time_mid", short),
            ("time_hi_and_version", short),
            ("clock_seq_hi_and_reserved", byte),
            ("clock_seq_low", byte),
            ("node", node),
        ];
        let fields = fields.map(|(name, ty)| model::Field { name: name.into(), ty });
        let id = self.model.add(Type::Struct("uuid_t".into(), fields.into()));
        self.ordinary.insert(name, (Entry::Type(id), Span::default(), true));
        id
    }

    fn unknown_type(&mut self, name: Ident, header: bool) {
        if header || self.s.incomplete || self.poisoned.contains(&name.name) {
            return;
        }
        let text = self.owned(name.name);
        let message = format!("the type `{text}` is not declared");
        if self.s.diags.full() {
            return self.undeclared(name, message, None);
        }
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
                let ty = self.spec(spec, &item.attrs, item.header);
                if !item.header {
                    self.flat_attribute(&item.attrs, ty);
                }
            }
            ItemKind::Exception(name, fields) => self.exception(*name, fields),
            ItemKind::Function(spec, declarator, raises) => match interface {
                Some((around, operations, local)) => {
                    // Beside a local operation there is another one that is called in its place.
                    let stays = !local && has(self.s, &item.attrs, "local");
                    let raises = self.raises(raises);
                    let operation = self.operation(item, spec, declarator, around, local);
                    let operation = operation.map(|operation| self.raising(operation, raises));
                    operations.extend(operation.filter(|_| !stays));
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
            ItemKind::Group(keyword, name, items) => self.group(keyword, *name, items, item.span),
            ItemKind::Class(name, members) => {
                self.class_members(members);
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
            ItemKind::Quote(text) => {
                if self.in_main(item.span) {
                    self.model.quotes.push((item.span, text.clone()));
                }
            }
            ItemKind::Nothing => {}
        }
    }

    /// Items in braces behind a keyword: a library, a module, a namespace.
    fn group(&mut self, keyword: &str, name: Option<Ident>, items: &[Item], span: Span) {
        if let Some(name) = name
            && keyword != "namespace"
            && !self.ordinary.contains_key(&name.name)
        {
            self.declare(name, Entry::Unread, false);
        }
        if keyword == "module" {
            // A module's functions are entries of a library, not operations.
            let mut none = Vec::new();
            let around = Interface {
                name: Ident { name: Symbol::default(), span },
                bases: Vec::new(),
                items: Vec::new(),
                dispatch: true,
            };
            for item in items {
                self.item(item, Some((&around, &mut none, true)));
            }
        } else {
            let outer = (self.in_library, self.in_namespace);
            self.in_library |= keyword == "library";
            self.in_namespace |= keyword == "namespace";
            self.items(items);
            (self.in_library, self.in_namespace) = outer;
        }
    }

    /// Warns of interfaces of a class that are not declared. Nothing is made of a class, so that the name alone does no harm.
    fn class_members(&mut self, members: &[Ident]) {
        for member in members {
            if !self.ordinary.contains_key(&member.name)
                && !self.s.incomplete
                && !self.poisoned.contains(&member.name)
            {
                let message = format!("the interface `{}` is not declared", self.text(member.name));
                let near = self.near_interface(member.name);
                let diagnostic = Diagnostic::warning(Code::Unknown, member.span, message);
                self.s.diags.push(diagnostic.maybe(near.as_deref()));
            }
        }
    }

    /// Gives a type without a tag the first name that stands for it alone.
    fn name_after(&mut self, ty: TypeId, names: &[Declarator], header: bool) {
        let Some(name) = names.iter().filter(|d| d.derived.is_empty()).find_map(|d| d.name) else { return };
        let is_free = !self.tags.contains_key(&name.name) && !self.ordinary.contains_key(&name.name);
        let is_anonymous = self.model.ty(ty).name().is_some_and(|own| own.starts_with(ANONYMOUS));
        let is_alias = matches!(self.model.ty(ty), Type::Alias(..));
        if is_anonymous && is_free && !is_alias && !header {
            let text = self.owned(name.name);
            self.model.rename(ty, text);
        }
    }

    /// Meaning of a name whose declaration says so.
    fn named_after(&mut self, declared: TypeId, attrs: &[Attr]) -> TypeId {
        if has(self.s, attrs, "context_handle") {
            return self.model.add_context();
        }
        // Stubs have what travels: programs may have something else in its place.
        let other = ["wire_marshal", "user_marshal", "transmit_as"];
        let other = other.iter().find_map(|name| find(self.s, attrs, name)).cloned();
        other.map_or(declared, |attr| self.switch_type(&attr))
    }

    fn typedef(&mut self, attrs: &[Attr], spec: &Spec, names: &[Declarator], header: bool) {
        if !header {
            self.attributes(attrs, "a typedef");
        }
        let base = self.spec(spec, attrs, header);
        if !header {
            self.flat_attribute(attrs, base);
        }
        self.name_after(base, names, header);
        for declarator in names {
            let Some(name) = declarator.name else { continue };
            let declared = self.derive(base, declarator, attrs, header);
            let (of, text) = (self.named_after(declared, attrs), self.owned(name.name));
            let of = self.refused_in_samba(attrs, of, Some(name));
            if let Some(&(old, first, old_header)) = self.ordinary.get(&name.name) {
                let same = match old {
                    // `typedef enum X X;` and later `typedef enum { ... } X;`: the second is what the first announced.
                    Entry::Type(id) if self.completes(name.name, id, of) => continue,
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
            if has(self.s, attrs, "string") {
                self.strings.insert(alias);
            }
            if has(self.s, attrs, "handle") {
                self.handles.insert(alias);
            }
            let imported = !self.in_main(name.span);
            self.model.named.push((alias, imported));
            self.declare(name, Entry::Type(alias), header);
        }
    }
}
