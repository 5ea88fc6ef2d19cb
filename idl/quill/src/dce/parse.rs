//! Tokens to [`super::ast`].
//!
//! The grammar is C's declarations with attributes in brackets. It needs no table of types: the first name that is not a
//! keyword is the type, the next is what is declared. Text that comes from a C header is read with the same code,
//! but what cannot be read there is skipped in silence ([`ItemKind::Unread`] keeps its name).

use super::ast::*;
use crate::codes::Code;
use crate::cursor::{Cursor, Ident, Parse, Reported};
use crate::diag::Diagnostic;
use crate::expr::{Expr, Style};
use crate::lex::{Kind, Token};
use crate::number;
use crate::source::Span;

mod types;

pub(super) use types::spec;
use types::*;

const STARTS: [&str; 12] = [
    "interface",
    "typedef",
    "const",
    "import",
    "struct",
    "union",
    "enum",
    "cpp_quote",
    "library",
    "coclass",
    "dispinterface",
    "importlib",
];

/// Parses a file. `header`: all of it is a C header.
pub fn parse(c: &mut Cursor, header: bool) -> Vec<Item> {
    let mut items = Vec::new();
    while !c.at_end() && !c.s.diags.stop() {
        if c.is("}") {
            let span = c.bump().span;
            if !in_header(c, span, header) {
                let _ = c.fail::<()>(Diagnostic::error(Code::Syntax, span, "this `}` closes nothing"));
            }
            c.eat(";");
            continue;
        }
        item(c, header, &mut items);
    }
    items
}

fn in_header(c: &Cursor, span: Span, header: bool) -> bool {
    let site = c.s.map.call_site(span);
    header || c.s.map.file_index(site).is_some_and(|i| crate::pp::is_header(&c.s.map.file(i).path))
}

/// One item, with recovery.
fn item(c: &mut Cursor, header: bool, items: &mut Vec<Item>) {
    if c.eat(";") {
        return;
    }
    let span = c.span();
    let header = in_header(c, span, header);
    let start = c.at;
    let messages = c.s.diags.errors();
    if header {
        return header_item(c, span, items);
    }
    let result = attributes(c).and_then(|attrs| {
        let kind = c.nested(item_kind)?;
        Ok(Item { attrs, kind, header, span })
    });
    match result {
        Ok(item) => items.push(item),
        Err(Reported) => {
            debug_assert!(c.s.diags.errors() > messages || c.s.diags.stop() || start <= c.at);
            c.recover();
        }
    }
}

/// An item of a C header: only plain declarations are read, the rest is stepped over.
fn header_item(c: &mut Cursor, span: Span, items: &mut Vec<Item>) {
    if c.is("extern") && c.peek_at(1).kind == Kind::Str {
        c.bump();
        c.bump();
        c.eat("{");
        return;
    }
    let start = c.at;
    let end = end_of_c_declaration(c);
    let mut tokens: Vec<Token> = c.tokens[start..end].to_vec();
    let plain = tokens
        .first()
        .is_some_and(|t| matches!(c.s.text(t), "typedef" | "struct" | "union" | "enum" | "interface"));
    c.at = end;
    if !plain {
        return;
    }
    // The declared name stands before `)(` in a function's type, and last in any other.
    let function = tokens
        .windows(3)
        .find(|w| w[0].kind == Kind::Ident && c.s.text(&w[1]) == ")" && c.s.text(&w[2]) == "(");
    let last = tokens.iter().rev().find(|t| t.kind == Kind::Ident);
    let last_name = function.map(|w| w[0]).or(last.copied());
    tokens.push(Token { kind: Kind::Eof, ..c.peek() });
    // Read on a trial: messages about a header are of no use to the user of an interface.
    let trial_diags = std::mem::take(&mut c.s.diags);
    let mut trial = Cursor::new(c.s, tokens);
    let result = trial.nested(item_kind);
    let complete = trial.at_end();
    c.s.diags = trial_diags;
    match result {
        Ok(kind) if complete => items.push(Item { attrs: Vec::new(), kind, header: true, span }),
        _ => {
            if let Some(name) = last_name {
                let name = Ident { name: name.text, span: name.span };
                items.push(Item { attrs: Vec::new(), kind: ItemKind::Unread(name), header: true, span });
            }
        }
    }
}

/// Where a C declaration ends: behind `;`, or behind the body of a function.
fn end_of_c_declaration(c: &Cursor) -> usize {
    let mut depth = 0usize;
    let mut parenthesis = false;
    for i in c.at..c.tokens.len() - 1 {
        let token = c.tokens[i];
        if token.kind != Kind::Punct {
            continue;
        }
        match c.s.names.text(token.text) {
            "{" | "(" | "[" => depth += 1,
            ")" | "]" => {
                depth = depth.saturating_sub(1);
                parenthesis |= depth == 0;
            }
            "}" => {
                if depth == 0 {
                    return (i + 1).max(c.at + 1);
                }
                depth -= 1;
                let first = c.s.names.text(c.tokens[c.at].text);
                let next = c.tokens.get(i + 1).map_or("", |t| c.s.names.text(t.text));
                if depth == 0 && parenthesis && first != "typedef" && next != ";" {
                    return i + 1;
                }
            }
            ";" if depth == 0 => return i + 1,
            _ => {}
        }
    }
    c.tokens.len() - 1
}

/// Attribute lists, any number of them.
pub(crate) fn attributes(c: &mut Cursor) -> Parse<Vec<Attr>> {
    let mut attrs = Vec::new();
    while c.is("[") {
        let open = c.bump().span;
        while !c.is("]") {
            if c.eat(",") {
                continue;
            }
            let name = c.peek();
            if name.kind != Kind::Ident {
                if c.at_end() {
                    return c.fail(Diagnostic::error(Code::Syntax, open, "this `[` is never closed"));
                }
                return c.unexpected("an attribute");
            }
            c.bump();
            // `custom.attribute(…)`, and `helper "x"` of older compilers.
            while c.eat(".") {
                c.bump();
            }
            let arguments = if c.is("(") { Some(c.group()?) } else { None };
            attrs.push(Attr { name: name.text, arguments, span: name.span.to(c.last_span()) });
            if !c.eat(",") && !c.is("]") {
                return c.unexpected("`,` or `]`");
            }
        }
        c.close("]", open)?;
    }
    Ok(attrs)
}

/// Takes a name that is being declared.
fn ident(c: &mut Cursor) -> Parse<Ident> {
    if c.peek().kind != Kind::Ident {
        return c.unexpected("a name");
    }
    if RESERVED.contains(&c.word()) {
        let message = format!("`{}` is a keyword and cannot be a name", c.word());
        return c.fail(Diagnostic::error(Code::Keyword, c.span(), message));
    }
    let token = c.bump();
    Ok(Ident { name: token.text, span: token.span })
}

/// A name, perhaps with dots between its parts; the last part counts.
fn dotted(c: &mut Cursor) -> Parse<Ident> {
    let mut name = ident(c)?;
    while c.eat(".") || c.eat("::") {
        name = if c.s.l4 && c.is("if") { c.ident_token() } else { ident(c)? };
    }
    if c.is("<") {
        skip_angles(c);
    }
    Ok(name)
}

fn skip_angles(c: &mut Cursor) {
    let mut depth = 0usize;
    while !c.at_end() && !matches!(c.word(), ";" | "{" | "}") {
        match c.word() {
            "<" => depth += 1,
            ">" => depth -= 1,
            ">>" => depth = depth.saturating_sub(2),
            _ => {}
        }
        c.bump();
        if depth == 0 {
            return;
        }
    }
}

fn item_kind(c: &mut Cursor) -> Parse<ItemKind> {
    let next_is_name = c.peek_at(1).kind == Kind::Ident;
    let kind = match c.word() {
        "import" if c.peek_at(1).kind == Kind::Str || c.s.l4 && c.word_at(1) == "<" => {
            let files = imports(c)?;
            // DICE's files end it without a semicolon.
            if c.s.l4 {
                c.eat(";");
                return Ok(files);
            }
            files
        }
        "exception" if c.s.l4 && next_is_name && c.word_at(2) == "{" => {
            c.bump();
            let name = ident(c)?;
            ItemKind::Exception(name, fields(c, false)?)
        }
        "importlib" if c.word_at(1) == "(" => {
            c.bump();
            c.group()?;
            ItemKind::TypeLibrary
        }
        "cpp_quote" | "pyhelper" | "helper" | "helpstring" | "c_helper" if c.word_at(1) == "(" => {
            return quoted(c);
        }
        "midl_pragma" => return pragma(c),
        "include" if c.peek_at(1).kind == Kind::Str => {
            while !c.is(";") && !c.at_end() {
                c.bump();
            }
            ItemKind::Nothing
        }
        "typedef" => {
            c.bump();
            typedef(c)?
        }
        "const" if !is_function(c) => constant(c)?,
        "interface" | "dispinterface" if next_is_name && !declares(c) => return interface(c),
        "coclass" | "runtimeclass" | "apicontract" if next_is_name && !declares(c) => return class(c),
        "delegate" => delegate(c)?,
        "library" | "module" | "namespace" | "declare"
            if next_is_name || c.word_at(1) == "{" || c.word_at(1) == "[" =>
        {
            return group(c);
        }
        "extern" if c.peek_at(1).kind == Kind::Str => {
            c.bump();
            c.bump();
            if !c.is("{") {
                return item_kind(c);
            }
            let items = items(c)?;
            return Ok(ItemKind::Group("extern", None, items));
        }
        _ => declaration(c)?,
    };
    c.semicolon()?;
    Ok(kind)
}

/// `import`, with the names of files.
fn imports(c: &mut Cursor) -> Parse<ItemKind> {
    c.bump();
    if c.is("<") {
        return Ok(ItemKind::Import(vec![c.angled()?]));
    }
    let mut files = Vec::new();
    while c.peek().kind == Kind::Str {
        let token = c.bump();
        files.push((token.text, token.span));
        if !c.eat(",") {
            break;
        }
    }
    Ok(ItemKind::Import(files))
}

/// Text for the output of other compilers.
fn quoted(c: &mut Cursor) -> Parse<ItemKind> {
    let quote = c.is("cpp_quote");
    c.bump();
    let text = c.group()?;
    if quote && (text.is_empty() || text.iter().any(|t| t.kind != Kind::Str)) {
        let message = "`cpp_quote` takes a string";
        return c.fail(Diagnostic::error(Code::AttributeForm, c.last_span(), message));
    }
    c.eat(";");
    if !quote {
        return Ok(ItemKind::Nothing);
    }
    Ok(ItemKind::Quote(text.iter().map(|part| unquoted(c.s.text(part))).collect()))
}

/// Text of a string; as it is written, where it has escapes that C does not.
fn unquoted(literal: &str) -> String {
    let characters = match number::characters(literal) {
        Ok(characters) => characters.into_iter().filter_map(char::from_u32).collect(),
        Err(_) => literal.trim_matches('"').to_owned(),
    };
    characters.replace('\0', "")
}

/// `midl_pragma`, a word, and perhaps arguments.
fn pragma(c: &mut Cursor) -> Parse<ItemKind> {
    c.bump();
    c.bump();
    if c.is("(") {
        c.group()?;
    }
    c.eat(";");
    Ok(ItemKind::Nothing)
}

/// `delegate`: its name alone, or the type of a function.
fn delegate(c: &mut Cursor) -> Parse<ItemKind> {
    c.bump();
    if c.peek().kind == Kind::Ident && c.word_at(1) == ";" {
        return Ok(ItemKind::Forward(ident(c)?));
    }
    let spec = spec(c)?;
    let declarator = declarator(c)?;
    Ok(declarator.name.map_or(ItemKind::Type(spec), ItemKind::Forward))
}

/// A function, a type, or a variable, of which only the type is kept: only headers and `dispinterface` have them.
fn declaration(c: &mut Cursor) -> Parse<ItemKind> {
    if c.peek().kind == Kind::Ident
        && c.near(&STARTS).is_some()
        && c.peek_at(1).kind == Kind::Ident
        && c.word_at(2) == "{"
    {
        let near = c.near(&STARTS);
        let message = format!("expected a declaration, found {}", c.found());
        return c.fail(Diagnostic::error(Code::Syntax, c.span(), message).maybe(near));
    }
    let spec = spec(c)?;
    if c.is(";") {
        return Ok(ItemKind::Type(spec));
    }
    let first = declarator(c)?;
    if first.name.is_none() && matches!(spec.kind, SpecKind::Basic(_) | SpecKind::Named(_)) {
        return c.unexpected("a name");
    }
    if c.eat("=") {
        c.expr(Style::C)?;
    }
    while c.eat(",") {
        declarator(c)?;
    }
    let function = first.derived.iter().any(|d| matches!(d, Derived::Function(_)));
    let raises = if function && c.s.l4 && c.eat("raises") { raised(c)? } else { Vec::new() };
    Ok(if function { ItemKind::Function(spec, first, raises) } else { ItemKind::Type(spec) })
}

/// Names of exceptions in parentheses.
fn raised(c: &mut Cursor) -> Parse<Vec<Ident>> {
    let open = c.expect("(")?;
    let mut names = Vec::new();
    while !c.is(")") {
        names.push(dotted(c)?);
        if !c.eat(",") {
            break;
        }
    }
    c.close(")", open)?;
    Ok(names)
}

/// Whether `interface X` here is the type of something: `interface X *f();`.
fn declares(c: &Cursor) -> bool {
    c.word_at(2) == "*"
}

/// Whether `const` starts the result type of an operation.
fn is_function(c: &Cursor) -> bool {
    for n in 1..12 {
        match c.word_at(n) {
            "(" => return true,
            "=" | ";" | "{" => return false,
            _ => {}
        }
    }
    false
}

fn typedef(c: &mut Cursor) -> Parse<ItemKind> {
    let attrs = attributes(c)?;
    let spec = spec(c)?;
    let names = declarators(c)?;
    Ok(ItemKind::Typedef(attrs, spec, names))
}

fn constant(c: &mut Cursor) -> Parse<ItemKind> {
    c.bump();
    let spec = spec(c)?;
    let declarator = declarator(c)?;
    if declarator.name.is_none() {
        return c.unexpected("a name");
    }
    c.expect("=")?;
    let value = c.expr(Style::C)?;
    Ok(ItemKind::Const(spec, declarator, value))
}

fn interface(c: &mut Cursor) -> Parse<ItemKind> {
    let dispatch = c.is("dispinterface");
    c.bump();
    // No word of C is left in the names that are made of it.
    let name = if c.s.l4 && c.is("if") { c.ident_token() } else { dotted(c)? };
    if c.eat(";") {
        return Ok(ItemKind::Forward(name));
    }
    let mut bases = Vec::new();
    while c.eat(":") || c.eat("requires") || c.eat(",") {
        let _ = attributes(c)?;
        bases.push(dotted(c)?);
    }
    let items = items(c)?;
    c.eat(";");
    Ok(ItemKind::Interface(Interface { name, bases, items, dispatch }))
}

fn class(c: &mut Cursor) -> Parse<ItemKind> {
    c.bump();
    let name = dotted(c)?;
    if c.eat(";") {
        return Ok(ItemKind::Forward(name));
    }
    while c.eat(":") || c.eat(",") {
        dotted(c)?;
    }
    let open = c.expect("{")?;
    let mut members = Vec::new();
    while !c.is("}") && !c.at_end() {
        attributes(c)?;
        if !c.eat("interface") {
            c.eat("dispinterface");
        }
        if c.eat(";") {
            continue;
        }
        members.push(dotted(c)?);
        c.semicolon()?;
    }
    c.close("}", open)?;
    c.eat(";");
    Ok(ItemKind::Class(name, members))
}

fn group(c: &mut Cursor) -> Parse<ItemKind> {
    let keyword =
        ["library", "module", "namespace", "declare"].into_iter().find(|k| c.is(k)).unwrap_or("library");
    c.bump();
    if keyword == "declare" && !c.is("{") {
        // `declare [public] enum X;`: a type that another compiler's library supplies.
        attributes(c)?;
        for word in ["struct", "union", "enum", "bitmap"] {
            if c.is(word) && c.peek_at(1).kind == Kind::Ident {
                c.bump();
            }
        }
        let name = ident(c)?;
        while !c.is(";") && !c.at_end() && !c.is("}") {
            c.bump();
        }
        c.semicolon()?;
        return Ok(ItemKind::Unread(name));
    }
    let name = if c.peek().kind == Kind::Ident { Some(dotted(c)?) } else { None };
    let items = items(c)?;
    c.eat(";");
    Ok(ItemKind::Group(keyword, name, items))
}

/// Items between braces.
fn items(c: &mut Cursor) -> Parse<Vec<Item>> {
    let open = c.expect("{")?;
    let mut all = Vec::new();
    while !c.is("}") && !c.at_end() && !c.s.diags.stop() {
        // `properties:` and `methods:` of a dispinterface.
        if matches!(c.word(), "properties" | "methods") && c.word_at(1) == ":" {
            c.bump();
            c.bump();
            continue;
        }
        item(c, false, &mut all);
    }
    c.close("}", open)?;
    Ok(all)
}
