//! Attribute configuration files: how an interface looks to one side's programs, without a change on the wire.
//!
//! ```text
//! [counted] interface Desk { include "x"; typedef [terminated] Name; [counted] title(); find([counted] what); }
//! ```
//!
//! The form is DCE's, and serves both dialects. What stubs follow is `counted` and `terminated`, which are quill's own: a
//! text with its length beside it in C, or with a zero at its end, which is the rule. Before an interface they concern all its
//! parameters and results, before an operation its result. `comm_status` and `fault_status` are DCE's: a place in C for how a call failed.

use std::path::PathBuf;

use crate::codes::Code;
use crate::cursor::{Cursor, Parse, Reported};
use crate::dce::attrs;
use crate::dce::{ast::Attr, parse};
use crate::diag::{Diagnostic, nearest};
use crate::lex::Kind;
use crate::model::{Binding, Called, Direction, Model, Operation, Shown, Told, Type, TypeId};
use crate::pp::{self, Preprocessed};
use crate::session::Session;
use crate::source::Span;

/// Operations and their parameters.
pub type Operations = Vec<(String, Vec<String>)>;

/// What an attribute file may name.
pub struct Names<'a> {
    /// The operations of an interface; `None` if there is no such interface.
    pub operations: &'a dyn Fn(&str) -> Option<Operations>,
    /// Whether there is a type of that name.
    pub is_type: &'a dyn Fn(&str) -> bool,
}

/// The attribute file of a run, if it has one: what the user named, or `NAME.acf` beside `NAME.idl`.
pub fn load(s: &mut Session, main: usize) -> Option<Preprocessed> {
    let beside = s.map.file(main).path.with_extension("acf");
    let path: PathBuf = match s.options.acf.clone() {
        Some(path) => path,
        None if s.exists(&beside) => beside,
        None => return None,
    };
    match s.load(&path, None) {
        Ok(file) => Some(pp::preprocess(s, file)),
        Err(why) => {
            let message = format!("cannot read the attribute file `{}`: {why}", path.display());
            s.diags.push(Diagnostic::error(Code::Unreadable, Span::default(), message));
            None
        }
    }
}

/// Applies the attribute file of a main file, if there is one, to a model that knows all names itself.
pub fn present(s: &mut Session, main: usize, model: &mut Model) {
    let Some(source) = load(s, main) else { return };
    let operations = |interface: &str| {
        let found = model.interfaces.iter().find(|i| is_called(&i.name, interface))?;
        let params = |o: &crate::model::Operation| o.params.iter().map(|p| p.name.clone()).collect();
        Some(found.operations.iter().map(|o| (o.name.clone(), params(o))).collect())
    };
    let is_type = |name: &str| {
        model.named.iter().any(|&(id, _)| match model.ty(id) {
            Type::Struct(path, _)
            | Type::Flat(path, _)
            | Type::Enum(path, _)
            | Type::Bitmask(path, ..)
            | Type::Alias(path, _)
            | Type::Foreign(_, path)
            | Type::Union { name: path, .. } => is_called(path, name),
            _ => false,
        })
    };
    let wishes = read(s, source, &Names { operations: &operations, is_type: &is_type });
    apply(s, model, wishes);
}

/// Whether something with this path is called so: by the path, or by the end of it.
fn is_called(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|scope| scope.is_empty() || scope.ends_with("::"))
}

/// How something is to look.
#[derive(Clone, Debug)]
pub struct Wish {
    interface: String,
    what: What,
    how: How,
    span: Span,
}

/// Change that is wished for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// Another look of texts.
    Shown(Shown),
    /// A place for failures of the way to the server.
    Comm,
    /// A place for failures of the server.
    Fault,
    /// A first parameter that says whom to call.
    Explicit,
}

#[derive(Clone, Debug)]
enum What {
    /// All parameters and results.
    Interface,
    Type(String),
    Result(String),
    Param(String, String),
}

struct Reader<'a, 'c> {
    c: &'a mut Cursor<'c>,
    names: &'a Names<'a>,
    interface: String,
    operations: Operations,
    wishes: Wishes,
}

/// All that an attribute file asks for.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    all: Vec<Wish>,
    /// How the clients of interfaces are bound.
    bindings: Vec<(String, Binding, Span)>,
}

/// Reads an attribute file and checks what it names.
pub fn read(s: &mut Session, source: Preprocessed, names: &Names) -> Wishes {
    let mut c = Cursor::new(s, source.tokens);
    let mut reader = Reader {
        c: &mut c,
        names,
        interface: String::new(),
        operations: Vec::new(),
        wishes: Wishes::default(),
    };
    while !reader.c.at_end() && !reader.c.s.diags.stop() {
        if reader.c.eat(";") {
            continue;
        }
        if reader.interface().is_err() {
            reader.c.recover();
            reader.c.eat("}");
        }
    }
    reader.wishes
}

impl Reader<'_, '_> {
    fn interface(&mut self) -> Parse<()> {
        let attrs = parse::attributes(self.c)?;
        self.c.expect("interface")?;
        let begin = self.c.peek().span;
        self.interface = self.path("the name of the interface")?;
        match (self.names.operations)(&self.interface) {
            Some(operations) => self.operations = operations,
            None if self.c.s.incomplete => self.operations.clear(),
            None => {
                let message = format!("there is no interface `{}`", self.interface);
                self.c.s.diags.push(Diagnostic::error(Code::AcfTarget, begin, message));
                return Err(Reported);
            }
        }
        self.wish(&attrs, What::Interface);
        let open = self.c.expect("{")?;
        while !self.c.is("}") && !self.c.at_end() && !self.c.s.diags.stop() {
            match self.statement() {
                Ok(()) => {}
                Err(Reported) => self.c.recover(),
            }
        }
        self.c.close("}", open)?;
        self.c.eat(";");
        Ok(())
    }

    /// A name, perhaps with those of modules before it.
    fn path(&mut self, what: &str) -> Parse<String> {
        let mut path = String::new();
        loop {
            let name = self.c.peek();
            if name.kind != Kind::Ident {
                return self.c.unexpected(what);
            }
            self.c.bump();
            path += self.c.s.text(&name);
            if !self.c.eat("::") {
                return Ok(path);
            }
            path += "::";
        }
    }

    /// Attributes and the name that they stand before, and where it is.
    fn named(&mut self, what: &str) -> Parse<(Vec<Attr>, String, Span)> {
        let attrs = parse::attributes(self.c)?;
        let token = self.c.peek();
        if token.kind != Kind::Ident {
            return self.c.unexpected(what);
        }
        self.c.bump();
        Ok((attrs, self.c.s.text(&token).to_owned(), token.span))
    }

    /// Notes what attributes ask for, and says of which nothing comes.
    fn wish(&mut self, attrs: &[Attr], what: What) {
        for attr in attrs {
            let name = self.c.s.names.text(attr.name).to_owned();
            let told = !matches!(what, What::Interface | What::Type(_));
            let binding = attrs::binding(self.c.s, std::slice::from_ref(attr));
            if let (What::Interface, Some(binding)) = (&what, binding) {
                self.wishes.bindings.push((self.interface.clone(), binding, attr.span));
                continue;
            }
            let how = match name.as_str() {
                "counted" => How::Shown(Shown::Counted),
                "terminated" => How::Shown(Shown::Terminated),
                "comm_status" if told => How::Comm,
                "fault_status" if told => How::Fault,
                "explicit_handle" if matches!(what, What::Result(_)) => How::Explicit,
                _ => {
                    attrs::check_configuration(self.c.s, attr, &["counted", "terminated"]);
                    continue;
                }
            };
            let interface = self.interface.clone();
            self.wishes.all.push(Wish { interface, what: what.clone(), how, span: attr.span });
        }
    }

    fn statement(&mut self) -> Parse<()> {
        if self.c.eat(";") {
            return Ok(());
        }
        if self.c.is("include") {
            self.c.bump();
            while self.c.peek().kind == Kind::Str {
                self.c.bump();
                self.c.eat(",");
            }
            return self.c.semicolon();
        }
        if self.c.eat("typedef") {
            return self.types();
        }
        let (attrs, name, span) = self.named("the name of an operation")?;
        let params =
            self.operations.iter().find(|(known, _)| *known == name).map(|(_, params)| params.clone());
        if params.is_none() && !self.c.s.incomplete {
            let near = nearest(&name, self.operations.iter().map(|(known, _)| known.as_str()));
            let message = format!("the interface has no operation `{name}`");
            let diagnostic = Diagnostic::error(Code::AcfTarget, span, message).maybe(near);
            self.c.s.diags.push(diagnostic);
        }
        self.wish(&attrs, What::Result(name.clone()));
        if self.c.is("(") {
            let open = self.c.bump().span;
            while !self.c.is(")") {
                self.parameter(&name, params.as_deref())?;
                if !self.c.eat(",") {
                    break;
                }
            }
            self.c.close(")", open)?;
        }
        self.c.semicolon()
    }

    fn types(&mut self) -> Parse<()> {
        let attrs = parse::attributes(self.c)?;
        loop {
            let begin = self.c.peek().span;
            let name = self.path("the name of a type")?;
            if !(self.names.is_type)(&name) && !self.c.s.incomplete {
                let message = format!("the interface has no type `{name}`");
                self.c.s.diags.push(Diagnostic::error(Code::AcfTarget, begin, message));
            }
            self.wish(&attrs, What::Type(name));
            if !self.c.eat(",") {
                return self.c.semicolon();
            }
        }
    }

    fn parameter(&mut self, operation: &str, params: Option<&[String]>) -> Parse<()> {
        let (attrs, name, span) = self.named("the name of a parameter")?;
        // A status parameter may be added here: it exists on this side only.
        let is_status = |a: &Attr| matches!(self.c.s.names.text(a.name), "comm_status" | "fault_status");
        let status = attrs.iter().any(is_status);
        let known = params.is_none_or(|params| params.contains(&name));
        if !known && !status {
            let near = nearest(&name, params.unwrap_or_default().iter().map(String::as_str));
            let message = format!("`{operation}` has no parameter `{name}`");
            let diagnostic = Diagnostic::error(Code::AcfTarget, span, message).maybe(near);
            self.c.s.diags.push(diagnostic);
        }
        self.wish(&attrs, What::Param(operation.to_owned(), name));
        Ok(())
    }
}

/// Gives texts the looks that are wished for: what is said of one alone comes after what is said of all.
pub fn apply(s: &mut Session, model: &mut Model, wishes: Wishes) {
    bind(s, model, wishes.bindings);
    let mut wishes = wishes.all;
    wishes.sort_by_key(|wish| !matches!(wish.what, What::Interface));
    let is_there = |wish: &&Wish| model.interfaces.iter().any(|i| is_called(&i.name, &wish.interface));
    if let Some(wish) = wishes.iter().find(|wish| !matches!(wish.what, What::Type(_)) && !is_there(wish)) {
        let message = format!("there is no interface `{}`", wish.interface);
        s.diags.push(Diagnostic::error(Code::AcfTarget, wish.span, message));
    }
    for wish in &wishes {
        if let What::Type(name) = &wish.what {
            present_type(s, model, name, wish);
        }
    }
    for index in 0..model.interfaces.len() {
        let mut operations = std::mem::take(&mut model.interfaces[index].operations);
        let called = model.interfaces[index].name.clone();
        for operation in &mut operations {
            for wish in wishes.iter().filter(|wish| is_called(&called, &wish.interface)) {
                match wish.how {
                    How::Shown(shown) => show(s, model, operation, wish, shown),
                    How::Comm | How::Fault => tell(s, model, operation, wish),
                    How::Explicit => {
                        let is_it = matches!(&wish.what, What::Result(name) if *name == operation.name);
                        if is_it {
                            operation.called = Called::Said;
                        }
                    }
                }
            }
            for param in operation.params.iter_mut().filter(|p| p.direction == Direction::In) {
                let ty = model.ty(model.resolved(param.ty));
                if matches!(ty, Type::Str { shown: Shown::Counted, .. }) {
                    param.ty = model.shown_as(param.ty, Shown::Lent);
                }
            }
        }
        model.interfaces[index].operations = operations;
    }
}

/// Gives interfaces the bindings that are wished for.
fn bind(s: &mut Session, model: &mut Model, bindings: Vec<(String, Binding, Span)>) {
    for (called, binding, span) in bindings {
        for interface in model.interfaces.iter_mut().filter(|i| is_called(&i.name, &called)) {
            if interface.binding.as_ref().is_some_and(|other| *other != binding) {
                let message = format!("`{called}` is bound in two ways");
                s.diags.push(Diagnostic::error(Code::AttributeForm, span, message));
            }
            interface.binding = Some(binding.clone());
        }
    }
}

/// Gives texts of an operation another look.
fn show(s: &mut Session, model: &mut Model, operation: &mut Operation, wish: &Wish, shown: Shown) {
    match &wish.what {
        What::Interface => {
            operation.result = model.shown_as(operation.result, shown);
            for param in &mut operation.params {
                param.ty = model.shown_as(param.ty, shown);
            }
        }
        What::Result(name) if *name == operation.name => {
            operation.result = text_as(s, model, operation.result, wish);
        }
        What::Param(name, param) if *name == operation.name => {
            for param in operation.params.iter_mut().filter(|p| p.name == *param) {
                param.ty = text_as(s, model, param.ty, wish);
            }
        }
        _ => {}
    }
}

/// Gives an operation a place for failures: its result, or a parameter that comes back or is added.
fn tell(s: &mut Session, model: &Model, operation: &mut Operation, wish: &Wish) {
    let (told, ty) = match &wish.what {
        What::Result(name) if *name == operation.name => (Told::Result, Some(operation.result)),
        What::Param(name, param) if *name == operation.name => {
            match operation.params.iter().find(|p| p.name == *param) {
                Some(found) if found.direction == Direction::In => (Told::Param(param.clone()), None),
                Some(found) => (Told::Param(param.clone()), Some(found.ty)),
                None => (Told::Added(param.clone()), Some(TypeId(0))),
            }
        }
        _ => return,
    };
    let is_number = |ty: TypeId| matches!(model.ty(model.resolved(ty)), Type::Int { bits: 32, .. });
    let fits = matches!(told, Told::Added(_)) || ty.is_some_and(is_number);
    if !fits || operation.oneway {
        let message = format!("how `{}` fails needs a place of 32 bits that comes back", operation.name);
        return s.diags.push(Diagnostic::error(Code::AttributeForm, wish.span, message));
    }
    let place =
        if wish.how == How::Comm { &mut operation.statuses.comm } else { &mut operation.statuses.fault };
    *place = Some(told);
}

fn present_type(s: &mut Session, model: &mut Model, name: &str, wish: &Wish) {
    for index in 0..model.types_len() {
        let id = TypeId(index as u32);
        if !matches!(model.ty(id), Type::Alias(path, _) if is_called(path, name)) {
            continue;
        }
        let text = text_as(s, model, model.resolved(id), wish);
        model.redirect(id, text);
    }
}

/// A type with the look that is wished for; anything but a text has none.
fn text_as(s: &mut Session, model: &mut Model, ty: TypeId, wish: &Wish) -> TypeId {
    if !matches!(model.ty(model.resolved(ty)), Type::Str { .. } | Type::Error) {
        let message = format!("texts are counted or terminated, and `{}` is none", model.show(ty));
        s.diags.push(Diagnostic::error(Code::AttributeForm, wish.span, message));
    }
    match wish.how {
        How::Shown(shown) => model.shown_as(ty, shown),
        How::Comm | How::Fault | How::Explicit => ty,
    }
}
