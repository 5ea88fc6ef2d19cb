//! Types where they are used, and those with a body.

use super::*;

pub(super) fn declarators(c: &mut Cursor) -> Parse<Vec<Declarator>> {
    let mut all = Vec::new();
    loop {
        let _ = annotations(c)?;
        let name = ident(c)?;
        let mut dims = Vec::new();
        let _ = annotations(c)?;
        while c.eat("[") {
            let open = c.last_span();
            if c.is("]") {
                return c.unexpected("the number of elements");
            }
            dims.push(c.expr(Style::Omg)?);
            c.close("]", open)?;
        }
        all.push(Declarator { name, dims });
        if !c.eat(",") {
            return Ok(all);
        }
    }
}

pub(super) fn member(c: &mut Cursor) -> Parse<Member> {
    let annotations = attributes(c)?;
    let ty = type_spec(c)?;
    let names = declarators(c)?;
    c.semicolon()?;
    Ok(Member { annotations, ty, names })
}

pub(super) fn members(c: &mut Cursor) -> Parse<Vec<Member>> {
    members_and(c, &mut Vec::new())
}

/// Fields, and the constants among them.
pub(super) fn members_and(c: &mut Cursor, inner: &mut Vec<Decl>) -> Parse<Vec<Member>> {
    let open = c.expect("{")?;
    let mut all = Vec::new();
    while !c.is("}") && !c.at_end() && !c.s.diags.stop() {
        if c.is(";") {
            let span = c.bump().span;
            c.s.diags.push(Diagnostic::warning(Code::Stray, span, "this `;` ends nothing"));
            continue;
        }
        if c.is("const") {
            declaration(c, Inside::Module, inner);
            continue;
        }
        match member(c) {
            Ok(member) => all.push(member),
            Err(Reported) => c.recover(),
        }
    }
    c.close("}", open)?;
    Ok(all)
}

/// A struct, union, enum, bitmask or bitset with its body.
pub(super) fn constructed(c: &mut Cursor) -> Parse<Constructed> {
    let keyword = c.word().to_owned();
    c.bump();
    let name = if c.s.l4 && c.is("{") { l4_dialect::nameless(c) } else { ident(c)? };
    c.nested(|c| match keyword.as_str() {
        "struct" => {
            let base = if c.eat(":") { Some(c.scoped_name()?) } else { None };
            let mut inner = Vec::new();
            let members = members_and(c, &mut inner)?;
            Ok(Constructed::Struct { name, base, members, inner })
        }
        "union" => union(c, name),
        "enum" => Ok(Constructed::Enum { name, members: enumerators(c)? }),
        "bitmask" => Ok(Constructed::Bitmask { name, members: enumerators(c)? }),
        _ => bitset(c, name),
    })
}

pub(super) fn union(c: &mut Cursor, name: Ident) -> Parse<Constructed> {
    if c.is("{") && !matches!(c.word_at(1), "case" | "default" | "}") {
        return Ok(Constructed::Flat { name, members: members(c)? });
    }
    c.expect("switch")?;
    let open = c.expect("(")?;
    let _ = annotations(c)?;
    let switch = type_spec(c)?;
    c.close(")", open)?;
    let open = c.expect("{")?;
    let mut cases = Vec::new();
    while !c.is("}") && !c.at_end() && !c.s.diags.stop() {
        match case(c) {
            Ok(case) => cases.push(case),
            Err(Reported) => c.recover(),
        }
    }
    c.close("}", open)?;
    Ok(Constructed::Union { name, switch, cases })
}

pub(super) fn case(c: &mut Cursor) -> Parse<Case> {
    let mut labels = Vec::new();
    let _ = annotations(c)?;
    loop {
        let start = c.span();
        if c.eat("default") {
            labels.push((None, start));
        } else if c.eat("case") {
            let value = c.expr(Style::Omg)?;
            labels.push((Some(value), start.to(c.last_span())));
        } else {
            break;
        }
        c.expect(":")?;
    }
    if labels.is_empty() {
        return unexpected_near(c, "`case` or `default`", &["case", "default"]);
    }
    Ok(Case { labels, member: member(c)? })
}

pub(super) fn enumerators(c: &mut Cursor) -> Parse<Vec<(Ident, Vec<Annotation>)>> {
    let open = c.expect("{")?;
    let mut all = Vec::new();
    loop {
        let before = annotations(c)?;
        all.push((ident(c)?, before));
        if !c.eat(",") {
            break;
        }
        if c.is("}") {
            let span = c.last_span();
            c.s.diags.push(Diagnostic::warning(Code::Stray, span, "this `,` separates nothing"));
            break;
        }
    }
    c.close("}", open)?;
    Ok(all)
}

pub(super) fn bitset(c: &mut Cursor, name: Ident) -> Parse<Constructed> {
    let base = if c.eat(":") { Some(c.scoped_name()?) } else { None };
    let open = c.expect("{")?;
    let mut fields = Vec::new();
    while !c.is("}") && !c.at_end() {
        let _ = annotations(c)?;
        c.expect("bitfield")?;
        c.expect("<")?;
        let width = angle_expr(c)?;
        if c.eat(",") {
            type_spec(c)?;
        }
        close_angle(c)?;
        let mut names = Vec::new();
        while starts_name(c, 0) {
            names.push(ident(c)?);
            c.eat(",");
        }
        c.semicolon()?;
        fields.push((width, names));
    }
    c.close("}", open)?;
    Ok(Constructed::Bitset { name, base, fields })
}

pub(super) fn close_angle(c: &mut Cursor) -> Parse<()> {
    if c.eat_close_angle() { Ok(()) } else { c.unexpected("`>`") }
}

/// An expression between angle brackets: `>>` closes them, unless parentheses stand around the shift.
pub(super) fn angle_expr(c: &mut Cursor) -> Parse<Expr> {
    c.in_angles(|c| c.expr(Style::Omg))
}

/// A type where one is used, bodies included.
pub(super) fn type_spec(c: &mut Cursor) -> Parse<Type> {
    let before = annotations(c)?;
    let start = c.span();
    let mut kind = c.nested(type_kind)?;
    if let TypeKind::Constructed(_, annotations) = &mut kind {
        *annotations = before;
    }
    Ok(Type { kind, span: start.to(c.last_span()) })
}

pub(super) fn type_kind(c: &mut Cursor) -> Parse<TypeKind> {
    if let Some(base) = base(c)? {
        c.bump();
        return Ok(TypeKind::Base(base));
    }
    let follows_name = starts_name(c, 1) || c.word_at(1) == "@";
    match c.word() {
        "string" | "wstring" => {
            let wide = c.is("wstring");
            c.bump();
            let bound = if c.eat("<") {
                let bound = angle_expr(c)?;
                close_angle(c)?;
                Some(bound)
            } else {
                None
            };
            Ok(TypeKind::String(wide, bound))
        }
        "sequence" => {
            c.bump();
            c.expect("<")?;
            let element = type_spec(c)?;
            let bound = if c.eat(",") { Some(angle_expr(c)?) } else { None };
            close_angle(c)?;
            Ok(TypeKind::Sequence(Box::new(element), bound))
        }
        "map" if c.word_at(1) == "<" => {
            c.bump();
            c.bump();
            let key = type_spec(c)?;
            c.expect(",")?;
            let value = type_spec(c)?;
            let bound = if c.eat(",") { Some(angle_expr(c)?) } else { None };
            close_angle(c)?;
            Ok(TypeKind::Map(Box::new(key), Box::new(value), bound))
        }
        "fixed" => fixed(c),
        "ref" if c.s.l4 && starts_name(c, 1) && starts_name(c, 2) => {
            c.bump();
            Ok(TypeKind::Ref(Box::new(type_spec(c)?)))
        }
        "struct" | "union" | "enum" => Ok(TypeKind::Constructed(Box::new(constructed(c)?), Vec::new())),
        "bitmask" | "bitset" if follows_name => {
            Ok(TypeKind::Constructed(Box::new(constructed(c)?), Vec::new()))
        }
        word if c.peek().kind == Kind::Ident && !KEYWORDS.contains(&word) || c.is("::") => {
            Ok(TypeKind::Named(c.scoped_name()?))
        }
        _ => unexpected_near(c, "a type", &TYPES),
    }
}

/// `fixed`, with digits and scale if they are given.
fn fixed(c: &mut Cursor) -> Parse<TypeKind> {
    c.bump();
    if !c.eat("<") {
        return Ok(TypeKind::Fixed(None));
    }
    let digits = angle_expr(c)?;
    c.expect(",")?;
    let scale = angle_expr(c)?;
    close_angle(c)?;
    Ok(TypeKind::Fixed(Some((digits, scale))))
}

/// The type that one or several words name, if they do; the cursor stays at the last of them.
fn base(c: &mut Cursor) -> Parse<Option<Base>> {
    Ok(Some(match c.word() {
        "void" => Base::Void,
        "boolean" => Base::Boolean,
        "octet" => Base::Octet,
        "char" => Base::Char,
        "wchar" => Base::WideChar,
        "any" => Base::Any,
        "Object" => Base::Object,
        "ValueBase" => Base::ValueBase,
        "float" => Base::Float(32),
        "double" => Base::Float(64),
        "short" => Base::Int(16, true),
        "int8" if sized(c) => Base::Int(8, true),
        "int16" if sized(c) => Base::Int(16, true),
        "int32" if sized(c) => Base::Int(32, true),
        "int64" if sized(c) => Base::Int(64, true),
        "uint8" if sized(c) => Base::Int(8, false),
        "uint16" if sized(c) => Base::Int(16, false),
        "uint32" if sized(c) => Base::Int(32, false),
        "uint64" if sized(c) => Base::Int(64, false),
        "long" => match c.word_at(1) {
            "long" => {
                c.bump();
                Base::Int(64, true)
            }
            "double" => {
                c.bump();
                Base::Float(128)
            }
            _ => Base::Int(32, true),
        },
        "int" if c.s.l4 => Base::Int(32, true),
        "unsigned" if c.s.l4 && !matches!(c.word_at(1), "short" | "long") => match c.word_at(1) {
            "int" => {
                c.bump();
                Base::Int(32, false)
            }
            "char" => {
                c.bump();
                Base::Octet
            }
            _ => Base::Int(32, false),
        },
        "unsigned" => {
            c.bump();
            match (c.word(), c.word_at(1)) {
                ("short", _) => Base::Int(16, false),
                ("long", "long") => {
                    c.bump();
                    Base::Int(64, false)
                }
                ("long", _) => Base::Int(32, false),
                _ => return c.unexpected("`short` or `long` behind `unsigned`"),
            }
        }
        _ => return Ok(None),
    }))
}

/// Whether a word such as `int8` names the type here, and not a type that the file declared under that name.
pub(super) fn sized(c: &Cursor) -> bool {
    c.word_at(1) != "::"
}
