//! Tokens to [`super::ast`].
//!
//! Newer keywords (`map`, `port`, `component`, `int8` …) are keywords only where they start the construct they
//! belong to: files older than them use them as names.

use super::ast::*;
use crate::codes::Code;
use crate::cursor::{Cursor, Ident, Parse, Reported};
use crate::diag::Diagnostic;
use crate::expr::{Expr, ScopedName, Style};
use crate::l4;
use crate::lex::{Kind, Token};
use crate::source::Span;

mod l4_dialect;
mod templates;
mod types;

use l4_dialect::{attributes, import, typedef};
use types::*;

/// Words that are no names, in any mixture of case.
pub const KEYWORDS: [&str; 45] = [
    "abstract",
    "any",
    "attribute",
    "boolean",
    "case",
    "char",
    "const",
    "context",
    "custom",
    "default",
    "double",
    "enum",
    "exception",
    "FALSE",
    "fixed",
    "float",
    "in",
    "inout",
    "interface",
    "long",
    "module",
    "native",
    "Object",
    "octet",
    "oneway",
    "out",
    "private",
    "public",
    "raises",
    "readonly",
    "sequence",
    "short",
    "string",
    "struct",
    "supports",
    "switch",
    "TRUE",
    "truncatable",
    "typedef",
    "union",
    "unsigned",
    "ValueBase",
    "valuetype",
    "void",
    "wchar",
];

const STARTS: [&str; 22] = [
    "abstract",
    "attribute",
    "bitmask",
    "bitset",
    "const",
    "custom",
    "enum",
    "eventtype",
    "exception",
    "interface",
    "local",
    "module",
    "native",
    "oneway",
    "readonly",
    "struct",
    "typedef",
    "typeid",
    "typeprefix",
    "union",
    "valuetype",
    "component",
];

const TYPES: [&str; 25] = [
    "any", "boolean", "char", "double", "fixed", "float", "long", "octet", "sequence", "short", "string",
    "unsigned", "void", "wchar", "wstring", "Object", "int8", "int16", "int32", "int64", "uint8", "uint16",
    "uint32", "uint64", "map",
];

/// Parses a whole file.
pub fn parse(c: &mut Cursor) -> Vec<Decl> {
    let mut decls = Vec::new();
    while !c.at_end() && !c.s.diags.stop() {
        if c.is("}") {
            let span = c.bump().span;
            let _ = c.fail::<()>(Diagnostic::error(Code::Syntax, span, "this `}` closes nothing"));
            c.eat(";");
            continue;
        }
        declaration(c, Inside::Module, &mut decls);
    }
    decls
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Module,
    /// A template module.
    Template,
    Interface,
    Value,
    Component,
}

/// One declaration, with recovery.
fn declaration(c: &mut Cursor, inside: Inside, decls: &mut Vec<Decl>) {
    if c.is(";") {
        let span = c.bump().span;
        c.s.diags.push(Diagnostic::warning(Code::Stray, span, "this `;` ends nothing"));
        return;
    }
    let start = c.span();
    let result = attributes(c).and_then(|annotations| {
        let kind = c.nested(|c| declaration_kind(c, inside))?;
        Ok(Decl { annotations, kind, span: start })
    });
    match result {
        Ok(decl) => decls.push(decl),
        Err(Reported) => c.recover(),
    }
}

fn declaration_kind(c: &mut Cursor, inside: Inside) -> Parse<DeclKind> {
    let kind = match (c.word(), c.word_at(1)) {
        ("module", _) => module(c, inside)?,
        ("alias", _) if inside == Inside::Template => {
            c.bump();
            templates::instance(c)?
        }
        ("interface", _) => interface(c, Flavour::Plain)?,
        ("abstract" | "local" | "pseudo", "interface") => {
            let flavour = if c.is("abstract") { Flavour::Abstract } else { Flavour::Local };
            c.bump();
            interface(c, flavour)?
        }
        ("abstract" | "custom", "valuetype" | "eventtype") => {
            let special = if c.is("abstract") { "abstract" } else { "custom" };
            c.bump();
            value(c, Some(special))?
        }
        ("valuetype", _) => value(c, None)?,
        ("eventtype", _) if starts_name(c, 1) => value(c, None)?,
        ("const", _) => constant(c)?,
        ("typedef", _) => {
            c.bump();
            typedef(c)?
        }
        ("struct" | "union", _) if c.word_at(2) == ";" => {
            let kind = if c.bump().text == c.s.names.intern("struct") {
                ForwardKind::Struct
            } else {
                ForwardKind::Union
            };
            DeclKind::Forward(ident(c)?, kind)
        }
        ("struct" | "union" | "enum", _) => DeclKind::Constructed(constructed(c)?),
        ("bitmask" | "bitset", _) if starts_name(c, 1) => DeclKind::Constructed(constructed(c)?),
        ("exception", _) => {
            c.bump();
            let name = ident(c)?;
            DeclKind::Exception(name, members(c)?)
        }
        ("native", _) => {
            c.bump();
            DeclKind::Native(ident(c)?)
        }
        ("typeid" | "typeprefix", _) if starts_name(c, 1) || c.word_at(1) == "::" => repository_id(c)?,
        ("import", _) if c.s.l4 && (c.word_at(1) == "<" || c.peek_at(1).kind == Kind::Str) => {
            return l4_dialect::loose_import(c);
        }
        ("import", _) if starts_name(c, 1) || c.word_at(1) == "::" || c.peek_at(1).kind == Kind::Str => {
            import(c)?
        }
        ("component" | "connector" | "home" | "porttype", _) if starts_name(c, 1) => assembly(c)?,
        ("@", _) => return annotation_type(c),
        _ if !matches!(inside, Inside::Module | Inside::Template) => return member_declaration(c, inside),
        _ => return no_declaration(c),
    };
    c.semicolon()?;
    Ok(kind)
}

/// `typeid` or `typeprefix`, with the name that it is about.
fn repository_id(c: &mut Cursor) -> Parse<DeclKind> {
    c.bump();
    let name = c.scoped_name()?;
    if !matches!(c.peek().kind, Kind::Str) {
        return c.unexpected("a string");
    }
    c.bump();
    Ok(DeclKind::About(vec![name]))
}

/// Fails at a word that begins no declaration where a module's may stand.
fn no_declaration(c: &mut Cursor) -> Parse<DeclKind> {
    let word = c.word();
    if c.s.l4 && word == "library" {
        let message = "`library` begins a part in DCE IDL, and what is around it is CORBA IDL";
        let help = "put each language into a file of its own";
        return c.fail(Diagnostic::error(Code::Syntax, c.span(), message).help(help));
    }
    if TYPES.contains(&word) || matches!(word, "oneway" | "attribute" | "readonly") {
        let message = format!("`{word}` cannot start a declaration here");
        let span = c.span();
        let help = "operations and attributes belong into an interface; a type gets a name by `typedef`";
        return c.fail(Diagnostic::error(Code::Syntax, span, message).help(help));
    }
    unexpected_near(c, "a declaration", &STARTS)
}

fn unexpected_near<T>(c: &mut Cursor, wanted: &str, words: &[&'static str]) -> Parse<T> {
    let near = if c.peek().kind == Kind::Ident { c.near(words) } else { None };
    let message = format!("expected {wanted}, found {}", c.found());
    let token = c.peek();
    let code = if token.kind == Kind::Other { Code::Character } else { Code::Syntax };
    let diagnostic = Diagnostic::error(code, token.span, message).label(format!("expected {wanted}"));
    c.fail(diagnostic.maybe(near))
}

fn starts_name(c: &Cursor, n: usize) -> bool {
    c.peek_at(n).kind == Kind::Ident
}

/// Takes a name that is being declared.
fn ident(c: &mut Cursor) -> Parse<Ident> {
    let token = c.peek();
    if token.kind != Kind::Ident {
        return c.unexpected("a name");
    }
    let text = c.s.names.shared(token.text);
    if let Some(keyword) =
        KEYWORDS.iter().chain(&["wstring", "factory"]).find(|k| k.eq_ignore_ascii_case(&text))
    {
        let help = format!("`_{text}` is the name, kept from being a keyword");
        // Older files than value types have it as a name.
        if **keyword == *text && *text != *"factory" {
            let message = format!("`{text}` is a keyword and cannot be a name");
            return c.fail(Diagnostic::error(Code::Keyword, token.span, message).help(help));
        }
        // Forbidden by the book, but the book's own services do it.
        let message = format!("`{text}` differs from the keyword `{keyword}` only in case");
        c.s.diags.push(Diagnostic::warning(Code::Keyword, token.span, message).help(help));
    }
    Ok(c.ident_token())
}

fn annotations(c: &mut Cursor) -> Parse<Vec<Annotation>> {
    let mut all = Vec::new();
    while c.is("@") && c.word_at(1) != "annotation" {
        let start = c.bump().span;
        let name = c.scoped_name()?;
        let mut arguments = Vec::new();
        if c.is("(") {
            let tokens = c.group()?;
            arguments = annotation_values(c, tokens);
        }
        let name = name.parts[name.parts.len() - 1];
        c.s.annotations.push(name);
        all.push(Annotation { name, arguments, span: start.to(c.last_span()) });
    }
    Ok(all)
}

/// The values of an annotation. Everyone may invent annotations, so values that are no expressions are passed over.
fn annotation_values(c: &mut Cursor, mut tokens: Vec<Token>) -> Vec<(Option<Ident>, Expr)> {
    let Some(&first) = tokens.first() else { return Vec::new() };
    tokens.push(Token { kind: Kind::Eof, ..first });
    let messages = std::mem::take(&mut c.s.diags);
    let mut inner = Cursor::new(c.s, tokens).with_escapes();
    let mut values = Vec::new();
    while !inner.at_end() {
        let named = inner.peek().kind == Kind::Ident && inner.word_at(1) == "=";
        let name = named.then(|| inner.ident_token());
        if named {
            inner.bump();
        }
        match inner.expr(Style::Omg) {
            Ok(value) => values.push((name, value)),
            Err(Reported) => break,
        }
        if !inner.eat(",") {
            break;
        }
    }
    c.s.diags = messages;
    values
}

fn annotation_type(c: &mut Cursor) -> Parse<DeclKind> {
    c.bump();
    c.bump();
    c.eat("struct");
    let name = ident(c)?;
    c.s.own_annotations.insert(name.name);
    if !c.is("{") {
        return c.unexpected("`{`");
    }
    c.group()?;
    c.semicolon()?;
    Ok(DeclKind::AnnotationType(name))
}

/// Declarations between braces.
fn body(c: &mut Cursor, inside: Inside, state: &mut Vec<Member>) -> Parse<Vec<Decl>> {
    let open = c.expect("{")?;
    let mut decls = Vec::new();
    while !c.is("}") && !c.at_end() && !c.s.diags.stop() {
        if inside == Inside::Value && matches!(c.word(), "public" | "private") {
            c.bump();
            match member(c) {
                Ok(member) => state.push(member),
                Err(Reported) => c.recover(),
            }
            continue;
        }
        declaration(c, inside, &mut decls);
    }
    c.close("}", open)?;
    Ok(decls)
}

fn module(c: &mut Cursor, inside: Inside) -> Parse<DeclKind> {
    c.bump();
    let start = c.at;
    if c.is("::") {
        return templates::instance(c);
    }
    let name = ident(c)?;
    if c.is("<") && templates::is_template(c) {
        return templates::template(c, name, inside);
    }
    // `module A::B {` is a spelling that several compilers accept.
    let mut inner = Vec::new();
    while c.eat("::") {
        inner.push(ident(c)?);
    }
    if c.is("<") {
        c.at = start;
        return templates::instance(c);
    }
    let span = name.span;
    let mut decls = body(c, inside, &mut Vec::new())?;
    for ident in inner.into_iter().rev() {
        decls = vec![Decl { annotations: Vec::new(), kind: DeclKind::Module(ident, decls), span }];
    }
    Ok(DeclKind::Module(name, decls))
}

fn names(c: &mut Cursor) -> Parse<Vec<ScopedName>> {
    let mut all = vec![c.scoped_name()?];
    while c.eat(",") {
        all.push(c.scoped_name()?);
    }
    Ok(all)
}

fn interface(c: &mut Cursor, flavour: Flavour) -> Parse<DeclKind> {
    c.bump();
    let name = ident(c)?;
    if c.is(";") {
        return Ok(DeclKind::InterfaceForward(name, flavour));
    }
    let bases = if c.eat(":") { names(c)? } else { Vec::new() };
    let body = body(c, Inside::Interface, &mut Vec::new())?;
    Ok(DeclKind::Interface(Interface { name, flavour, bases, body }))
}

fn value(c: &mut Cursor, special: Option<&'static str>) -> Parse<DeclKind> {
    c.bump();
    let name = ident(c)?;
    let mut value = Value {
        name,
        special,
        forward: false,
        boxed: None,
        bases: Vec::new(),
        supports: Vec::new(),
        body: Vec::new(),
        state: Vec::new(),
    };
    if c.is(";") {
        value.forward = true;
        return Ok(DeclKind::Value(value));
    }
    if !matches!(c.word(), ":" | "supports" | "{") {
        value.boxed = Some(type_spec(c)?);
        return Ok(DeclKind::Value(value));
    }
    if c.eat(":") {
        c.eat("truncatable");
        value.bases = names(c)?;
    }
    if c.eat("supports") {
        value.supports = names(c)?;
    }
    value.body = body(c, Inside::Value, &mut value.state)?;
    Ok(DeclKind::Value(value))
}

fn assembly(c: &mut Cursor) -> Parse<DeclKind> {
    let keyword =
        ["component", "connector", "home", "porttype"].into_iter().find(|k| c.is(k)).unwrap_or("component");
    c.bump();
    let name = ident(c)?;
    let mut uses = Vec::new();
    if c.is(";") {
        let (ports, body) = (Vec::new(), Vec::new());
        return Ok(DeclKind::Assembly(Assembly { keyword, name, forward: true, uses, ports, body }));
    }
    while c.eat(":") || c.eat("supports") || c.eat("manages") || c.eat("primarykey") {
        uses.extend(names(c)?);
    }
    let open = c.expect("{")?;
    let (mut ports, mut decls) = (Vec::new(), Vec::new());
    while !c.is("}") && !c.at_end() && !c.s.diags.stop() {
        let port = matches!(
            c.word(),
            "provides" | "uses" | "emits" | "publishes" | "consumes" | "port" | "mirrorport"
        );
        if port && (starts_name(c, 1) || c.word_at(1) == "::") {
            let result = (|| {
                c.bump();
                if c.is("multiple") && starts_name(c, 1) {
                    c.bump();
                }
                let ty = c.scoped_name()?;
                let name = ident(c)?;
                c.semicolon()?;
                Ok((ty, name))
            })();
            match result {
                Ok((ty, name)) => {
                    uses.push(ty);
                    ports.push(name);
                }
                Err(Reported) => c.recover(),
            }
            continue;
        }
        declaration(c, Inside::Component, &mut decls);
    }
    c.close("}", open)?;
    Ok(DeclKind::Assembly(Assembly { keyword, name, forward: false, uses, ports, body: decls }))
}

fn constant(c: &mut Cursor) -> Parse<DeclKind> {
    c.bump();
    let ty = type_spec(c)?;
    let name = ident(c)?;
    c.expect("=")?;
    let value = c.expr(Style::Omg)?;
    Ok(DeclKind::Const(ty, name, value))
}

/// An operation or an attribute.
fn member_declaration(c: &mut Cursor, inside: Inside) -> Parse<DeclKind> {
    let readonly = c.is("readonly") && c.word_at(1) == "attribute";
    if readonly {
        c.bump();
    }
    let kind = if c.is("attribute") {
        c.bump();
        DeclKind::Attribute(attribute(c, readonly)?)
    } else if inside != Inside::Interface && matches!(c.word(), "factory" | "finder") && c.word_at(2) == "(" {
        c.bump();
        let name = ident(c)?;
        DeclKind::Operation(operation(c, name, None, None)?)
    } else {
        let oneway = c.is("oneway").then(|| c.bump().span);
        let result = type_spec(c).map(Some)?;
        if c.is("(") && matches!(result, Some(Type { kind: TypeKind::Named(_), .. })) {
            let message = "this operation has no result type";
            return c.fail(
                Diagnostic::error(Code::Syntax, c.last_span(), message)
                    .help("write `void` if nothing comes back"),
            );
        }
        let name = ident(c)?;
        DeclKind::Operation(operation(c, name, oneway, result)?)
    };
    c.semicolon()?;
    Ok(kind)
}

fn attribute(c: &mut Cursor, readonly: bool) -> Parse<Attribute> {
    let ty = type_spec(c)?;
    let mut names_ = vec![ident(c)?];
    while c.eat(",") {
        names_.push(ident(c)?);
    }
    let mut attribute =
        Attribute { readonly, ty, names: names_, get_raises: Vec::new(), set_raises: Vec::new() };
    loop {
        let which = c.word().to_owned();
        if !matches!(which.as_str(), "raises" | "getraises" | "setraises") {
            return Ok(attribute);
        }
        c.bump();
        let list = parenthesised_names(c)?;
        match which.as_str() {
            "setraises" => attribute.set_raises = list,
            _ => attribute.get_raises = list,
        }
    }
}

fn parenthesised_names(c: &mut Cursor) -> Parse<Vec<ScopedName>> {
    let open = c.expect("(")?;
    let list = if c.is(")") { Vec::new() } else { names(c)? };
    c.close(")", open)?;
    Ok(list)
}

fn operation(c: &mut Cursor, name: Ident, oneway: Option<Span>, result: Option<Type>) -> Parse<Operation> {
    let open = c.expect("(")?;
    let mut params = Vec::new();
    while !c.is(")") {
        params.push(param(c)?);
        if !c.eat(",") {
            break;
        }
        if c.is(")") {
            return c.unexpected("a parameter");
        }
    }
    c.close(")", open)?;
    let raises = if c.eat("raises") { parenthesised_names(c)? } else { Vec::new() };
    if c.is("context") {
        let span = c.bump().span;
        let message = "`context` has no effect: nothing of a caller's context travels";
        c.s.diags.push(Diagnostic::warning(Code::Attribute, span, message));
        let open = c.expect("(")?;
        while c.peek().kind == Kind::Str {
            c.bump();
            if !c.eat(",") {
                break;
            }
        }
        c.close(")", open)?;
    }
    Ok(Operation { name, oneway, result, params, raises })
}

fn param(c: &mut Cursor) -> Parse<Param> {
    let mut annotations_ = attributes(c)?;
    let direction = match c.word() {
        "in" => Direction::In,
        "out" => Direction::Out,
        "inout" => Direction::InOut,
        _ => {
            let help = "every parameter says which way it goes, as in `in long x`";
            let message = format!("expected `in`, `out` or `inout`, found {}", c.found());
            return c.fail(Diagnostic::error(Code::Direction, c.span(), message).help(help));
        }
    };
    c.bump();
    annotations_.extend(annotations(c)?);
    let ty = type_spec(c)?;
    let name = ident(c)?;
    Ok(Param { annotations: annotations_, direction, ty, name })
}
