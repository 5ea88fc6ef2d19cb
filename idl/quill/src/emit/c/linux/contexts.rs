//! Context handles over sockets: which of them a client may use, and what becomes of those that it leaves open. The table is that of the connection
//! (`quill_contexts`), so it is one for all objects that a client calls on it.

use super::super::interface::Interface;
use super::super::tree::{Expr, Parameters, Stmt, Ty, call, name};
use super::super::word;
use crate::layout::{RESULT, interface_id};
use crate::model::{Direction, Operation};

/// Name of the function that is told of a handle of this type.
fn rundown(c: &Interface, context: &str) -> String {
    let last = context.rsplit("::").next().unwrap_or(context);
    let mut function = format!("{last}_rundown");
    let model = c.emitter.model;
    let taken = |function: &str| {
        let operations = model.interfaces.iter().flat_map(|interface| &interface.operations);
        operations.map(|operation| c.emitter.method(operation)).any(|method| method == function)
    };
    while taken(&function) {
        function.push('_');
    }
    word(&function)
}

/// Functions of a server that are told of handles whose client is gone.
pub fn rundowns(c: &Interface, operations: &[&Operation]) -> Vec<(Ty, String, Parameters)> {
    let contexts = c.emitter.model.contexts_of(operations.iter().copied());
    let parameters = vec![(Ty::named("void *"), "_self".into()), (Ty::named("uint64_t"), "_handle".into())];
    contexts.into_iter().map(|of| (Ty::named("void"), rundown(c, of), parameters.clone())).collect()
}

/// Number of a type of handles, the same in all headers.
fn kind(context: &str) -> Expr {
    name(format!("0x{:x}ull", interface_id(context)))
}

/// Statements that refuse a request with handles that the client has not open, and keep those that may be closed.
pub fn check(c: &Interface, operation: &Operation) -> Vec<Stmt> {
    let mut body = Vec::new();
    for param in operation.params.iter().filter(|p| p.direction != Direction::Out) {
        let Some(context) = c.emitter.model.context(param.ty) else { continue };
        let handle = || name(word(&param.name));
        let known = call("quill_has_context", [name("_in"), name("_self"), kind(context), handle()]);
        let refused = Stmt::Return(Some(name("QUILL_NO_CONTEXT")));
        body.push(Stmt::If(Expr::Not(Box::new(known)), vec![refused]));
        if param.direction == Direction::InOut {
            body.push(Stmt::Let(Ty::named("uint64_t"), before(&param.name), Some(handle())));
        }
    }
    body
}

/// Variable with the handle that went to the server in a parameter that comes back.
fn before(param: &str) -> String {
    format!("_was_{param}")
}

/// Statements that note which handles a method has opened and closed, if it has succeeded.
pub fn note(c: &Interface, operation: &Operation) -> Vec<Stmt> {
    let params = operation.params.iter().filter(|p| p.direction != Direction::In).map(|param| {
        let was = match param.direction {
            Direction::InOut => name(before(&param.name)),
            _ => Expr::Int(0),
        };
        (param.ty, name(word(&param.name)), was)
    });
    let all = params.chain([(operation.result, name(RESULT), Expr::Int(0))]);
    let notes = all.filter_map(|(ty, handle, was)| {
        let context = c.emitter.model.context(ty)?;
        let now = format!(
            "(quill_context){{ {}, {}, _self, _methods->{} }}",
            handle.tight(),
            kind(context).tight(),
            rundown(c, context)
        );
        let changed = call("quill_change_context", [name("_in"), name(now), was]);
        let lost = Expr::Not(Box::new(changed));
        let failed = Stmt::Return(Some(name("QUILL_MEMORY")));
        Some(Stmt::If(name("_status").with("==", name("QUILL_OK")).with("&&", lost), vec![failed]))
    });
    notes.collect()
}
