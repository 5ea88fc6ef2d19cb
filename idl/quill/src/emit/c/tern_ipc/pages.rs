//! Servers that are handed pages, or hand some: in the general form of ipc, with a loop of their own.
//!
//! A message of such an interface is in registers, and in no more than the general form has, or there are clients only. The
//! words lie in memory here: a system call that changes mappings is none where a move more or less would be seen.

use super::super::interface::{Interface, borrowed, status};
use super::super::tree::{Expr, Item, Stmt, Ty, call, name};
use super::{dispatch_parameters, handed, malformed, pack, take, words};
use crate::layout::{Method, Room};
use crate::model::Operation;

use super::{Arrival, Maker, Making};

/// The functions of a server.
pub fn server(c: &Interface, operations: &[&Operation], methods: &[Method]) -> Vec<Item> {
    let both = || operations.iter().zip(methods);
    let mut items: Vec<Item> = both().map(|(operation, method)| answer(c, operation, method)).collect();
    items.push(dispatch(c, operations, methods));
    items.push(Item::Verbatim("#ifndef QUILL_OWN_IPC\n"));
    items.push(Item::Comment(
        "Answers requests, forever; returns only if the window is no flexpage. Pages arrive there.".into(),
    ));
    let parameters = vec![
        (Ty::named(c.function("server")).to().constant(), "methods".into()),
        (Ty::named("void").to(), "self".into()),
        (Ty::named("tern_fpage"), "window".into()),
    ];
    let serve = call(
        "quill_serve_pages",
        [name(c.function("dispatch")), name("methods"), name("self"), name("window")],
    );
    items.push(Item::Function(status(), c.function("serve"), parameters, vec![Stmt::Return(Some(serve))]));
    items.push(Item::Verbatim("#endif\n"));
    items
}

/// What is handed over: of a request, where it has arrived; of a reply, what goes.
fn pages() -> Expr {
    name("_pages").deref()
}

/// The function that answers a request for a method.
fn answer(c: &Interface, operation: &Operation, method: &Method) -> Item {
    let parameters = vec![
        (Ty::named(c.function("server")).to().constant(), "_methods".into()),
        (Ty::named("void *"), "_self".into()),
        (Ty::named("tern_uid"), "_from".into()),
        (Ty::named("uint64_t").to(), "_words".into()),
        (Ty::named("tern_fpage").to(), "_pages".into()),
    ];
    let mut body = c.variables(operation, |_| false);
    let inputs = c.local(c.inputs(operation));
    let outputs = c.local(c.outputs(operation));
    match &method.request.pages {
        Some(given) => {
            body.push(Stmt::If(pages().with("==", Expr::Int(0)), malformed()));
            body.push(Stmt::Set(
                Interface::at(&borrowed(&inputs), std::slice::from_ref(&given.param)),
                pages(),
            ));
            body.push(Stmt::Set(pages(), Expr::Int(0)));
        }
        None => body.push(Stmt::If(pages().with("!=", Expr::Int(0)), malformed())),
    }
    body.extend(take(c, &method.request, &borrowed(&inputs), Arrival::Own(&Room::default()), Maker::Server));
    let called = c.call_method(operation, vec![name("_self"), name("_from")]);
    let function = c.function(&format!("{}_answer", operation.name));
    if operation.oneway {
        body.push(Stmt::Do(words().cast(Ty::named("void"))));
        body.push(Stmt::Do(called.cast(Ty::named("void"))));
        body.push(Stmt::Return(Some(name("QUILL_SILENT"))));
        return Item::Function(status(), function, parameters, body);
    }
    body.push(Stmt::Let(status(), "_status".into(), Some(called)));
    body.push(Stmt::Do(call("quill_clear", [words()])));
    let mut done = pack(c, &method.reply, &borrowed(&outputs), Making::of(Maker::Server));
    if let Some(given) = &method.reply.pages {
        let value = Interface::at(&borrowed(&outputs), std::slice::from_ref(&given.param));
        done.push(Stmt::Set(pages(), handed(given, value)));
    }
    let mut cases = vec![(vec![0], done)];
    cases.extend(c.exception_cases(operation, method, &name("_raised"), |message, spots| {
        pack(c, message, spots, Making::of(Maker::Server))
    }));
    body.push(Stmt::Switch(name("_status"), cases, Vec::new()));
    body.push(Stmt::Return(Some(name("_status"))));
    Item::Function(status(), function, parameters, body)
}

/// The function that finds the method for a request: by the first bits of the label, as many as there are places.
fn dispatch(c: &Interface, operations: &[&Operation], methods: &[Method]) -> Item {
    let mut parameters = dispatch_parameters();
    parameters
        .extend([(Ty::named("tern_fpage").to(), "_pages".into()), (Ty::named("bool"), "_waits".into())]);
    // The lower half is the interface's number, and all of it has to be right: a thread may serve several.
    let cases = operations.iter().zip(methods).map(|(operation, method)| {
        let function = c.function(&format!("{}_answer", operation.name));
        let arguments = ["_methods", "_self", "_from", "_words", "_pages"].map(name);
        // Who sends a oneway request does not wait; who waits for the answer to one would do so in vain.
        let wrong = if operation.oneway {
            Stmt::If(name("_waits"), malformed())
        } else {
            Stmt::If(Expr::Not(Box::new(name("_waits"))), vec![Stmt::Return(Some(name("QUILL_SILENT")))])
        };
        let answer = Stmt::Return(Some(call(function, arguments)));
        (vec![i128::from(method.request.label)], vec![wrong, answer])
    });
    let none = vec![Stmt::Return(Some(name("QUILL_NO_METHOD")))];
    let body = vec![Stmt::Switch(name("_label"), cases.collect(), none)];
    Item::Function(status(), c.function("dispatch"), parameters, body)
}
