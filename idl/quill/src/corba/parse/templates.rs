//! Template modules, their instances and their aliases (OMG IDL 4.2, 7.4.12).

use std::rc::Rc;

use super::*;

/// Whether the angle brackets that are next hold formal parameters: a body follows them.
pub(super) fn is_template(c: &Cursor) -> bool {
    let mut depth = 0usize;
    for n in 0.. {
        match c.word_at(n) {
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
            ">>" => depth = depth.saturating_sub(2),
            "{" | ";" => return false,
            _ if c.peek_at(n).kind == Kind::Eof => return false,
            _ => {}
        }
        if depth == 0 {
            return c.word_at(n + 1) == "{";
        }
    }
    false
}

/// A template module, behind its name.
pub(super) fn template(c: &mut Cursor, name: Ident, inside: Inside) -> Parse<DeclKind> {
    if inside == Inside::Template {
        let message = "a template module cannot be declared in another one";
        return c.fail(Diagnostic::error(Code::Syntax, name.span, message));
    }
    let formals = angle_list(c, formal)?;
    let start = c.at;
    let body = body(c, Inside::Template, &mut Vec::new())?;
    Ok(DeclKind::Template(Rc::new(Template { name, formals, body, size: c.at - start })))
}

/// At least one parameter, between angle brackets.
fn angle_list<T>(c: &mut Cursor, one: fn(&mut Cursor) -> Parse<T>) -> Parse<Vec<T>> {
    let open = c.expect("<")?;
    let mut all = vec![one(c)?];
    while c.eat(",") {
        all.push(one(c)?);
    }
    if !c.eat_close_angle() {
        c.close(">", open)?;
    }
    Ok(all)
}

fn formal(c: &mut Cursor) -> Parse<Formal> {
    let word = c.word().to_owned();
    let kind = match word.as_str() {
        "typename" => FormalKind::Type,
        "interface" => FormalKind::Interface,
        "valuetype" | "eventtype" => FormalKind::Value,
        "struct" => FormalKind::Struct,
        "union" => FormalKind::Union,
        "enum" => FormalKind::Enum,
        "exception" => FormalKind::Exception,
        "sequence" if c.word_at(1) == "<" => FormalKind::Sequence(Some(type_spec(c)?)),
        "sequence" => FormalKind::Sequence(None),
        "const" => {
            c.bump();
            FormalKind::Const(type_spec(c)?)
        }
        _ => {
            let words = [
                "typename",
                "interface",
                "valuetype",
                "eventtype",
                "struct",
                "union",
                "enum",
                "exception",
                "sequence",
                "const",
            ];
            return unexpected_near(c, "the kind of a parameter, such as `typename`", &words);
        }
    };
    if !matches!(kind, FormalKind::Sequence(Some(_)) | FormalKind::Const(_)) {
        c.bump();
    }
    Ok(Formal { kind, name: ident(c)? })
}

/// `NAME<…> name`, which `module` or `alias` precedes.
pub(super) fn instance(c: &mut Cursor) -> Parse<DeclKind> {
    let template = c.scoped_name()?;
    let actuals = angle_list(c, actual)?;
    Ok(DeclKind::Instance(Instance { template, actuals, name: ident(c)? }))
}

fn actual(c: &mut Cursor) -> Parse<Actual> {
    let is_type = TYPES.contains(&c.word()) || {
        // A name alone, which may be a constant's too.
        let mut n = usize::from(c.is("::"));
        while starts_name(c, n) && c.word_at(n + 1) == "::" {
            n += 2;
        }
        starts_name(c, n) && matches!(c.word_at(n + 1), "," | ">" | ">>") && !is_truth(c.word_at(n))
    };
    if is_type { Ok(Actual::Type(type_spec(c)?)) } else { Ok(Actual::Value(angle_expr(c)?)) }
}

fn is_truth(word: &str) -> bool {
    matches!(word, "TRUE" | "FALSE")
}
