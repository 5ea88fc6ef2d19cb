//! Attribute configuration files: how an interface looks to one side's programs, without a change on the wire.
//!
//! ```text
//! [explicit_handle] interface bank { include "x"; typedef [out_of_line] T; deposit([comm_status] status); }
//! ```

use std::collections::HashMap;

use super::parse;
use crate::codes::Code;
use crate::cursor::{Cursor, Parse, Reported};
use crate::diag::{Diagnostic, nearest};
use crate::intern::Symbol;
use crate::lex::Kind;
use crate::pp::Preprocessed;
use crate::session::Session;

/// Reads an attribute file and checks what it names against the interface's operations and types.
pub fn check(
    s: &mut Session,
    source: Preprocessed,
    operations: &HashMap<Symbol, Vec<Symbol>>,
    is_type: &dyn Fn(&Session, Symbol) -> bool,
) {
    let mut c = Cursor::new(s, source.tokens);
    while !c.at_end() && !c.s.diags.stop() {
        if c.eat(";") {
            continue;
        }
        if interface(&mut c, operations, is_type).is_err() {
            c.recover();
            c.eat("}");
        }
    }
}

fn interface(
    c: &mut Cursor,
    operations: &HashMap<Symbol, Vec<Symbol>>,
    is_type: &dyn Fn(&Session, Symbol) -> bool,
) -> Parse<()> {
    parse::attributes(c)?;
    c.expect("interface")?;
    if c.peek().kind != Kind::Ident {
        return c.unexpected("the name of the interface");
    }
    c.bump();
    let open = c.expect("{")?;
    while !c.is("}") && !c.at_end() && !c.s.diags.stop() {
        match statement(c, operations, is_type) {
            Ok(()) => {}
            Err(Reported) => c.recover(),
        }
    }
    c.close("}", open)?;
    c.eat(";");
    Ok(())
}

fn statement(
    c: &mut Cursor,
    operations: &HashMap<Symbol, Vec<Symbol>>,
    is_type: &dyn Fn(&Session, Symbol) -> bool,
) -> Parse<()> {
    if c.eat(";") {
        return Ok(());
    }
    if c.is("include") {
        c.bump();
        while c.peek().kind == Kind::Str {
            c.bump();
            c.eat(",");
        }
        return c.semicolon();
    }
    if c.eat("typedef") {
        parse::attributes(c)?;
        loop {
            let name = c.peek();
            if name.kind != Kind::Ident {
                return c.unexpected("the name of a type");
            }
            c.bump();
            if !is_type(c.s, name.text) && !c.s.incomplete {
                let message = format!("the interface has no type `{}`", c.s.text(&name));
                c.s.diags.push(Diagnostic::error(Code::AcfTarget, name.span, message));
            }
            if !c.eat(",") {
                return c.semicolon();
            }
        }
    }
    parse::attributes(c)?;
    let name = c.peek();
    if name.kind != Kind::Ident {
        return c.unexpected("the name of an operation");
    }
    c.bump();
    let params = operations.get(&name.text);
    if params.is_none() && !c.s.incomplete {
        let mut known: Vec<&str> = operations.keys().map(|&k| c.s.names.text(k)).collect();
        known.sort_unstable();
        let near = nearest(c.s.text(&name), known).map(str::to_owned);
        let message = format!("the interface has no operation `{}`", c.s.text(&name));
        c.s.diags.push(Diagnostic::error(Code::AcfTarget, name.span, message).maybe(near.as_deref()));
    }
    if c.is("(") {
        let open = c.bump().span;
        while !c.is(")") {
            let attrs = parse::attributes(c)?;
            let param = c.peek();
            if param.kind != Kind::Ident {
                return c.unexpected("the name of a parameter");
            }
            c.bump();
            // A status parameter may be added here: it exists on this side only.
            let status =
                attrs.iter().any(|a| matches!(c.s.names.text(a.name), "comm_status" | "fault_status"));
            let known = params.is_none_or(|p| p.contains(&param.text));
            if !known && !status {
                let message = format!("`{}` has no parameter `{}`", c.s.text(&name), c.s.text(&param));
                c.s.diags.push(Diagnostic::error(Code::AcfTarget, param.span, message));
            }
            if !c.eat(",") {
                break;
            }
        }
        c.close(")", open)?;
    }
    c.semicolon()
}
