//! Additions of L4's dialect: attributes in brackets, types without a name of their own, imports.

use super::*;

/// Annotations, or in L4's dialect attributes in brackets, which say the same things.
pub(super) fn attributes(c: &mut Cursor) -> Parse<Vec<Annotation>> {
    let mut all = annotations(c)?;
    while c.s.l4 && c.is("[") {
        let open = c.bump().span;
        loop {
            let start = c.span();
            if c.peek().kind != Kind::Ident {
                return c.unexpected("an attribute");
            }
            let name = c.ident_token();
            let mut arguments = Vec::new();
            if c.is("(") {
                let tokens = c.group()?;
                arguments = annotation_values(c, tokens);
            }
            if !l4::is_known(c.s.names.text(name.name)) {
                c.s.annotations.push(name);
            }
            all.push(Annotation { name, arguments, span: start.to(c.last_span()) });
            if !c.eat(",") {
                break;
            }
        }
        c.close("]", open)?;
        all.extend(annotations(c)?);
    }
    Ok(all)
}

/// A typedef. In L4's dialect the first plain name of a type without one is the type's own.
pub(super) fn typedef(c: &mut Cursor) -> Parse<DeclKind> {
    let is_nameless = c.s.l4 && matches!(c.word(), "struct" | "union" | "enum") && c.word_at(1) == "{";
    let mut ty = type_spec(c)?;
    let mut names = declarators(c)?;
    if is_nameless
        && let TypeKind::Constructed(constructed, _) = &mut ty.kind
        && let Some(plain) = names.iter().position(|name| name.dims.is_empty())
    {
        *constructed.name_mut() = names.remove(plain).name;
    }
    Ok(DeclKind::Typedef(ty, names))
}

/// `import`, with the name of a scope or a file.
pub(super) fn import(c: &mut Cursor) -> Parse<DeclKind> {
    c.bump();
    if c.peek().kind == Kind::Str {
        let token = c.bump();
        return Ok(DeclKind::Import(token.text, token.span));
    } else if c.s.l4 && c.is("<") {
        let (literal, span) = c.angled()?;
        return Ok(DeclKind::Import(literal, span));
    } else {
        c.scoped_name()?;
    }
    Ok(DeclKind::About(Vec::new()))
}

/// Name of the tag-less type that begins at a word of the source: no other has it.
pub(super) fn nameless(c: &mut Cursor) -> Ident {
    let span = c.last_span();
    let name = format!("anonymous_{}", c.at);
    Ident { name: c.s.names.intern(&name), span }
}

/// An import, which needs no semicolon.
pub(super) fn loose_import(c: &mut Cursor) -> Parse<DeclKind> {
    let kind = import(c)?;
    c.eat(";");
    Ok(kind)
}
