//! Types: the words that make them, structs and unions, and what is declared of them.

use super::*;

const QUALIFIERS: [&str; 22] = [
    "const",
    "volatile",
    "static",
    "extern",
    "inline",
    "register",
    "__inline",
    "__stdcall",
    "_stdcall",
    "stdcall",
    "__cdecl",
    "_cdecl",
    "cdecl",
    "__fastcall",
    "__pascal",
    "pascal",
    "__RPC_FAR",
    "__unaligned",
    "restrict",
    "__restrict",
    "__ptr32",
    "__ptr64",
];

pub(super) fn qualifiers(c: &mut Cursor) {
    // DICE's files have operations of such names.
    while c.peek().kind == Kind::Ident && QUALIFIERS.contains(&c.word()) && !(c.s.l4 && c.word_at(1) == "(") {
        c.bump();
    }
}

/// A type without pointers and arrays.
pub(in crate::dce) fn spec(c: &mut Cursor) -> Parse<Spec> {
    let start = c.span();
    qualifiers(c);
    let kind = c.nested(spec_kind)?;
    qualifiers(c);
    Ok(Spec { kind, span: start.to(c.last_span()) })
}

pub(super) fn spec_kind(c: &mut Cursor) -> Parse<SpecKind> {
    let named_type = c.peek_at(1).kind == Kind::Ident || matches!(c.word_at(1), "{" | "[" | "*");
    match c.word() {
        "struct" | "union" => return record(c),
        "enum" | "bitmap" if named_type => return enumeration(c),
        "pipe" if named_type => {
            c.bump();
            return Ok(SpecKind::Pipe(Box::new(spec(c)?)));
        }
        "SAFEARRAY" if c.word_at(1) == "(" => {
            c.bump();
            let open = c.bump().span;
            let of = spec(c)?;
            declarator(c)?;
            c.close(")", open)?;
            return Ok(SpecKind::SafeArray(Box::new(of)));
        }
        "interface" | "coclass" | "dispinterface" if c.peek_at(1).kind == Kind::Ident => {
            c.bump();
            return Ok(SpecKind::Named(dotted(c)?));
        }
        _ => {}
    }
    if let Some(basic) = basic(c)? {
        return Ok(SpecKind::Basic(basic));
    }
    if c.peek().kind != Kind::Ident {
        return c.unexpected("a type");
    }
    if KEYWORDS.contains(&c.word()) {
        return c.unexpected("a type");
    }
    let name = ident(c)?;
    if matches!(c.word(), "." | "<" | "::") {
        let l4 = c.s.l4 && c.is("::");
        let mut last = name;
        while c.eat(".") || c.eat("::") {
            last = ident(c)?;
        }
        if l4 {
            return Ok(SpecKind::Named(last));
        }
        if c.is("<") {
            skip_angles(c);
        }
        return Ok(SpecKind::Generic(name));
    }
    Ok(SpecKind::Named(name))
}

/// Words that can be neither a type nor a name.
const KEYWORDS: [&str; 8] =
    ["typedef", "interface", "import", "library", "switch", "case", "default", "cpp_quote"];

/// Words that cannot be declared: C's, since that is where such files end, and those that start a declaration.
pub(super) const RESERVED: [&str; 31] = [
    "break",
    "case",
    "char",
    "coclass",
    "const",
    "continue",
    "default",
    "dispinterface",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "int",
    "interface",
    "long",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
];

/// The words of a type that change another one.
#[derive(Default)]
struct Modifiers {
    unsigned: bool,
    signed: bool,
    longs: u32,
    short: bool,
}

impl Modifiers {
    /// Notes a word; false if it is none of them.
    fn note(&mut self, word: &str) -> bool {
        match word {
            "unsigned" | "__unsigned" => self.unsigned = true,
            "signed" => self.signed = true,
            "long" => self.longs += 1,
            "short" => self.short = true,
            _ => return false,
        }
        true
    }

    /// Whether they can stand before a type.
    fn fit(&self, core: Basic) -> bool {
        match core {
            Basic::Int(..) => true,
            Basic::Char => self.longs == 0 && !self.short,
            Basic::Float(64) => !self.unsigned && !self.signed && !self.short,
            _ => !(self.unsigned || self.signed || self.longs > 0 || self.short),
        }
    }

    /// The type that they make of another one, or of none.
    fn change(&self, core: Option<Basic>) -> Basic {
        match core {
            None | Some(Basic::Int(32, true)) => {
                let bits = match (self.longs, self.short) {
                    (_, true) => 16,
                    (2.., _) => 64,
                    _ => 32,
                };
                Basic::Int(bits, !self.unsigned)
            }
            Some(Basic::Int(bits, _)) => Basic::Int(bits, !self.unsigned),
            Some(Basic::Char) if self.unsigned => Basic::Int(8, false),
            Some(Basic::Char) if self.signed => Basic::Int(8, true),
            Some(other) => other,
        }
    }
}

/// A type that keywords name: any order of them that C and IDL allow.
pub(super) fn basic(c: &mut Cursor) -> Parse<Option<Basic>> {
    let start = c.at;
    let mut modifiers = Modifiers::default();
    let mut core: Option<Basic> = None;
    while c.peek().kind == Kind::Ident {
        if modifiers.note(c.word()) || c.at > start && matches!(c.word(), "const" | "volatile") {
            c.bump();
            continue;
        }
        // After a complete type the next word is what is declared, even if it is `small`.
        let found = if c.s.l4 && c.is("handle_t") { None } else { basic_word(c.word()) };
        match found {
            Some(found) if core.is_none() && modifiers.fit(found) => core = Some(found),
            _ => break,
        }
        c.bump();
    }
    Ok(if c.at == start { None } else { Some(modifiers.change(core)) })
}

/// The type that one keyword names.
fn basic_word(word: &str) -> Option<Basic> {
    Some(match word {
        "void" => Basic::Void,
        "int" => Basic::Int(32, true),
        "small" | "__int8" => Basic::Int(8, true),
        "__int16" => Basic::Int(16, true),
        "__int32" => Basic::Int(32, true),
        "hyper" | "__int64" | "__int3264" | "_int64" => Basic::Int(64, true),
        "char" => Basic::Char,
        "wchar_t" | "__wchar_t" => Basic::WideChar,
        "float" => Basic::Float(32),
        "double" => Basic::Float(64),
        "boolean" => Basic::Boolean,
        "byte" => Basic::Byte,
        "handle_t" => Basic::Handle,
        _ => return None,
    })
}

pub(super) fn record(c: &mut Cursor) -> Parse<SpecKind> {
    let union = c.is("union");
    c.bump();
    let _ = attributes(c)?;
    qualifiers(c);
    let tag = if c.peek().kind == Kind::Ident && c.word() != "switch" { Some(ident(c)?) } else { None };
    let mut switch = None;
    if union && c.is("switch") {
        c.bump();
        let open = c.expect("(")?;
        let ty = spec(c)?;
        let name = ident(c)?;
        c.close(")", open)?;
        if c.peek().kind == Kind::Ident {
            c.bump();
        }
        switch = Some((Box::new(ty), name));
    }
    // `struct B : A {…}` is C++ in headers.
    let body = if c.is("{") { Some(fields(c, union)?) } else { None };
    if tag.is_none() && body.is_none() {
        return c.unexpected("a name or `{`");
    }
    Ok(SpecKind::Record(Record { union, tag, body, switch }))
}

pub(super) fn fields(c: &mut Cursor, labelled: bool) -> Parse<Vec<Field>> {
    let open = c.expect("{")?;
    let mut all = Vec::new();
    while !c.is("}") && !c.at_end() && !c.s.diags.stop() {
        match field(c, labelled) {
            Ok(field) => all.push(field),
            Err(Reported) => c.recover(),
        }
    }
    c.close("}", open)?;
    Ok(all)
}

pub(super) fn field(c: &mut Cursor, labelled: bool) -> Parse<Field> {
    let span = c.span();
    let mut labels = Vec::new();
    while labelled && matches!(c.word(), "case" | "default") {
        let start = c.span();
        if c.bump().text == c.s.names.intern("default") {
            labels.push((None, start));
        } else {
            loop {
                let value = c.expr(Style::C)?;
                labels.push((Some(value), start.to(c.last_span())));
                if !c.eat(",") {
                    break;
                }
            }
        }
        c.expect(":")?;
    }
    let attrs = attributes(c)?;
    if c.eat(";") {
        return Ok(Field { attrs, spec: None, names: Vec::new(), labels, span });
    }
    let spec = spec(c)?;
    if c.is(";") && matches!(spec.kind, SpecKind::Basic(_)) {
        return c.unexpected("a name");
    }
    let names = declarators(c)?;
    if !(c.is("}") && labelled) {
        c.semicolon()?;
    }
    Ok(Field { attrs, spec: Some(spec), names, labels, span })
}

pub(super) fn enumeration(c: &mut Cursor) -> Parse<SpecKind> {
    let bits = c.is("bitmap");
    c.bump();
    let attrs = attributes(c)?;
    let tag = if c.peek().kind == Kind::Ident { Some(ident(c)?) } else { None };
    if !c.is("{") {
        return Ok(SpecKind::Enum(Enum { attrs, bits, tag, members: None }));
    }
    let open = c.bump().span;
    let mut members = Vec::new();
    while !c.is("}") {
        let _ = attributes(c)?;
        let name = ident(c)?;
        let value = if c.eat("=") { Some(c.expr(Style::C)?) } else { None };
        members.push((name, value));
        if !c.eat(",") {
            break;
        }
    }
    c.close("}", open)?;
    Ok(SpecKind::Enum(Enum { attrs, bits, tag, members: Some(members) }))
}

/// What a typedef or a field declares: names, which only a bit field can do without.
pub(super) fn declarators(c: &mut Cursor) -> Parse<Vec<Declarator>> {
    let mut names = Vec::new();
    while !c.is(";") {
        let one = declarator(c)?;
        if one.name.is_none() && !matches!(one.derived[..], [Derived::Bits(_)]) {
            return c.unexpected("a name");
        }
        names.push(one);
        if !c.eat(",") {
            break;
        }
    }
    Ok(names)
}

/// A declarator, with or without a name.
pub(in crate::dce) fn declarator(c: &mut Cursor) -> Parse<Declarator> {
    let start = c.span();
    let (name, derived) = c.nested(declarator_parts)?;
    Ok(Declarator { name, derived, span: start.to(c.last_span()) })
}

pub(super) fn declarator_parts(c: &mut Cursor) -> Parse<(Option<Ident>, Vec<Derived>)> {
    let pointers = stars(c)?;
    let mut name = None;
    let mut derived = Vec::new();
    // A word before the name is a calling convention that the headers define: `HRESULT STDCALL f()`.
    while c.peek().kind == Kind::Ident
        && c.peek_at(1).kind == Kind::Ident
        && matches!(c.word_at(2), "(" | ")")
    {
        c.bump();
    }
    if c.peek().kind == Kind::Ident {
        name = Some(ident(c)?);
    } else if c.is("(")
        && (matches!(c.word_at(1), "*" | "(" | "&") || c.word_at(2) == "*" || function_name_like(c))
    {
        let open = c.bump().span;
        let (inner_name, inner) = c.nested(declarator_parts)?;
        c.close(")", open)?;
        (name, derived) = (inner_name, inner);
    }
    loop {
        if c.is("[") {
            derived.push(Derived::Array(array_size(c)?));
        } else if c.is("(") {
            derived.push(Derived::Function(params(c)?));
        } else if c.is(":") {
            c.bump();
            derived.push(Derived::Bits(c.expr(Style::C)?));
        } else {
            break;
        }
        if derived.len() > crate::limits::NESTING_MAX {
            return c.unexpected("fewer dimensions");
        }
    }
    derived.extend(std::iter::repeat_n(Derived::Pointer, pointers));
    Ok((name, derived))
}

/// How many stars stand before a name, with the words and attributes between them.
fn stars(c: &mut Cursor) -> Parse<usize> {
    let mut pointers = 0;
    // A word that says how far a pointer reaches: `FAR *`.
    if c.peek().kind == Kind::Ident && c.word_at(1) == "*" && !matches!(c.word(), "in" | "out") {
        c.bump();
    }
    loop {
        qualifiers(c);
        if c.is("*") || c.is("&") {
            c.bump();
            pointers += 1;
            if pointers > crate::limits::NESTING_MAX {
                return c.nested(|c| c.unexpected("fewer pointers"));
            }
        } else if c.is("[") && pointers > 0 && attribute_like(c) {
            // `* [unique] p`: old style attributes behind the star.
            attributes(c)?;
        } else {
            return Ok(pointers);
        }
    }
}

/// The size of an array in its brackets, or of `low..high`, the end.
fn array_size(c: &mut Cursor) -> Parse<Option<Expr>> {
    let open = c.bump().span;
    let size = match (c.word(), c.word_at(1)) {
        ("]", _) => None,
        ("*", "]") => {
            c.bump();
            None
        }
        _ => {
            let low = c.expr(Style::C)?;
            if c.eat("..") { if c.eat("*") { None } else { Some(c.expr(Style::C)?) } } else { Some(low) }
        }
    };
    c.close("]", open)?;
    Ok(size)
}

/// `(NAME)(` or `(CONVENTION NAME)(`: a function's name in parentheses.
fn function_name_like(c: &Cursor) -> bool {
    let is_name = |at: usize| c.peek_at(at).kind == Kind::Ident;
    let ends = |at: usize| c.word_at(at) == ")" && c.word_at(at + 1) == "(";
    is_name(1) && (ends(2) || is_name(2) && ends(3))
}

pub(super) fn attribute_like(c: &Cursor) -> bool {
    matches!(c.word_at(1), "ref" | "unique" | "ptr" | "string" | "full" | "size_is" | "in" | "out")
}

pub(super) fn params(c: &mut Cursor) -> Parse<Vec<Param>> {
    let open = c.bump().span;
    let mut all = Vec::new();
    if c.is("void") && c.word_at(1) == ")" {
        c.bump();
    }
    while !c.is(")") {
        if c.eat("...") {
            break;
        }
        let attrs = attributes(c)?;
        let spec = spec(c)?;
        let declarator = declarator(c)?;
        if c.eat("=") {
            c.expr(Style::C)?;
        }
        all.push(Param { attrs, spec, declarator });
        if !c.eat(",") {
            break;
        }
    }
    c.close(")", open)?;
    Ok(all)
}
