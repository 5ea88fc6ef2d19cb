//! References to objects: identifiers that a message through a door hands over beside its words.
//!
//! A reference is a struct of its interface's own, so that a compiler tells them apart: the number of an identifier, and what labels of the
//! interface's methods have more than by themselves. It travels as a map item, in w6 and w7 or behind the strings of a block.
//!
//! Where somebody has to be told what has become of a number, a client's function has two parts: the [inner one](super::client), which
//! returns at many places, and its [owner], which looks after the numbers whatever came of it.

use super::super::Emitter;
use super::super::interface::{Interface, Spot, status};
use super::super::tree::{Expr, Item, Parameters, Stmt, Ty, call, name};
use super::client::handed as with_grant;
use super::{Maker, inlined, malformed, offers, several, words};
use crate::layout::{Handed, InterfaceLayout, Message, Method, interface_id};
use crate::model::{Direction, InterfaceId, Operation, Param, Type, TypeId};

/// Where the reference of a reply is to arrive, in a client's inner function.
pub const PLACE: &str = "_place";

/// What came with a request, and what leaves with the reply.
pub const ITEM: &str = "_item";

/// The types of references to all interfaces that the file has, and that its methods name. Two headers may have the same one.
pub fn types(e: &Emitter) -> Vec<Item> {
    let mut named = vec![false; e.model.interfaces.len()];
    for index in 0..e.model.types_len() {
        if let Type::Object(Some(to)) = e.model.ty(TypeId(index as u32)) {
            named[to.0 as usize] = true;
        }
    }
    let all = e.model.interfaces.iter().enumerate();
    let used = all.filter(|(index, interface)| named[*index] || (!interface.local && !interface.imported));
    let items: Vec<Item> = used
        .map(|(index, _)| {
            let reference = e.reference(Some(InterfaceId(index as u32)));
            let fields = ["number", "view"].map(|field| (Ty::named("uint32_t"), field.to_owned()));
            let record = Item::Record("struct", reference.clone(), fields.into());
            let guard = format!("QUILL_REFERENCE_{reference}");
            Item::Once(guard, vec![Item::Announce("struct", reference), record])
        })
        .collect();
    let comment = "References to objects: the number of an identifier, and where in the object's table the interface is: 0 if it is the object's own.";
    let comment = (!items.is_empty()).then(|| Item::Comment(comment.into()));
    comment.into_iter().chain(items).collect()
}

/// Where the pages of a reply may go.
pub const WINDOW: &str = "_window";

/// Whether what is handed over is no reference, but pages or the like.
pub fn is_pages(e: &Emitter, handed: &Handed) -> bool {
    matches!(e.kind(handed.ty), Type::Fpage)
}

/// Finds what a message hands over in registers.
pub fn in_registers(message: &Message) -> Option<&Handed> {
    message.pages.as_ref().filter(|_| !message.long)
}

/// The reference that a reply brings in registers.
fn brought<'a>(e: &Emitter, method: &'a Method) -> Option<&'a Handed> {
    in_registers(&method.reply).filter(|handed| !is_pages(e, handed))
}

/// Finds the one parameter that comes with a request, in registers or beside what is in memory, if there is one.
pub fn single(method: &Method) -> Option<&Handed> {
    method.request.pages.as_ref().filter(|_| !several::is_carried(method))
}

/// Whether a method's function in a server has something to do with one item: what comes, or goes in registers.
pub fn has_item(method: &Method) -> bool {
    single(method).is_some() || in_registers(&method.reply).is_some()
}

/// Whether a method's client has an owner.
fn is_owned(e: &Emitter, method: &Method) -> bool {
    let away = method.request.handed().any(|handed| handed.grant == Some(true));
    away || brought(e, method).is_some() || method.replies_from_memory()
}

/// The name of the function that calls.
pub fn client_name(c: &Interface, operation: &Operation, method: &Method) -> String {
    let inner = || c.function(&format!("{}_called", operation.name));
    if is_owned(c.emitter, method) { inner() } else { offers::inner_name(c, operation, method) }
}

/// The value of a reference that is handed over.
fn at(handed: &Handed, spots: &[Spot]) -> Expr {
    Interface::at(spots, std::slice::from_ref(&handed.param))
}

/// Statements that put a reference into the two words of an item. What a server answers with goes.
pub fn item(handed: &Handed, spots: &[Spot], maker: Maker, [place, beside]: [Expr; 2]) -> [Stmt; 2] {
    let reference = at(handed, spots);
    let grant = Expr::Int((handed.grant == Some(true) || maker == Maker::Server).into());
    [
        Stmt::Set(place, call("quill_handed_over", [reference.clone().field("number"), grant])),
        Stmt::Set(beside, reference.field("view")),
    ]
}

/// The parameter that says where something is to arrive which a reply brings.
pub fn place(e: &Emitter, handed: &Handed) -> (Ty, String) {
    if is_pages(e, handed) {
        (Ty::named("tern_fpage"), WINDOW.into())
    } else {
        (Ty::named("uint32_t"), PLACE.into())
    }
}

/// Statements around a call whose reply brings that.
pub fn in_window(e: &Emitter, handed: &Handed, called: Stmt) -> [Stmt; 3] {
    let window = if is_pages(e, handed) { name(WINDOW) } else { call("quill_window_at", [name(PLACE)]) };
    let window = call("quill_set_window", [window]);
    [
        Stmt::Let(Ty::named("tern_fpage"), "_before".into(), Some(window)),
        called,
        Stmt::Do(call("quill_set_window", [name("_before")])),
    ]
}

/// Statements that make a reference, or a flexpage, of what has arrived.
pub fn arrived(e: &Emitter, handed: &Handed, to: Expr) -> Vec<Stmt> {
    if is_pages(e, handed) {
        return vec![Stmt::Set(to, words().index(Expr::Int(6)))];
    }
    let view = words().index(Expr::Int(7)).cast(Ty::named("uint32_t"));
    vec![Stmt::Set(to.clone().field("number"), name(PLACE)), Stmt::Set(to.field("view"), view)]
}

/// The statement with which a server's method gets what came with its request.
pub fn taken(handed: &Handed, spots: &[Spot]) -> Stmt {
    let reference = at(handed, spots);
    let fields = ["number", "view"].map(|field| reference.clone().field(field).address());
    let took = call("quill_take_item", [name(ITEM)].into_iter().chain(fields));
    Stmt::If(Expr::Not(Box::new(took)), malformed())
}

/// The statement with which a server gives what its method gave.
pub fn given(e: &Emitter, handed: &Handed, spots: &[Spot]) -> Stmt {
    let value = at(handed, spots);
    let gave = if is_pages(e, handed) {
        call("quill_give_pages", [name(ITEM), with_grant(handed, value)])
    } else {
        let fields = ["number", "view"].map(|field| value.clone().field(field));
        call("quill_give_item", [name(ITEM)].into_iter().chain(fields))
    };
    Stmt::If(Expr::Not(Box::new(gave)), malformed())
}

/// Parameters of a client's function before those of its method: who is called, and where something goes that comes back, unless it is a
/// reference.
fn first_parameters(c: &Interface, layout: &InterfaceLayout, method: &Method) -> Parameters {
    let e = c.emitter;
    let mut parameters = vec![(Ty::named(e.reference(Some(layout.interface))), "_server".to_owned())];
    if method.needs_inbox() {
        parameters.push((Ty::named(c.function("replies")).to(), "_room".into()));
    }
    let pages = in_registers(&method.reply).filter(|handed| is_pages(e, handed));
    parameters.extend(pages.map(|handed| place(e, handed)));
    parameters
}

/// A reference that is a parameter and goes with a call, whatever becomes of it, or if another one has come in its place.
struct Sent {
    /// The variable that has its number.
    number: String,
    is_replaced: bool,
}

/// Statements that note which references go with a call: nobody else would release them.
fn sent(c: &Interface, operation: &Operation, method: &Method) -> (Vec<Stmt>, Vec<Sent>) {
    let (mut body, mut all) = (Vec::new(), Vec::new());
    for handed in method.request.handed() {
        let is_it = |param: &Param| param.name == handed.param && param.direction == Direction::InOut;
        let is_replaced = operation.params.iter().any(is_it);
        if is_replaced || handed.grant == Some(true) {
            let number = format!("_sent_{}", all.len());
            let value = at(handed, &c.inputs(operation)).field("number");
            body.push(Stmt::Let(Ty::named("uint32_t"), number.clone(), Some(value)));
            all.push(Sent { number, is_replaced: is_replaced && handed.grant != Some(true) });
        }
    }
    (body, all)
}

/// Statements of an owner around a call that brings a reference in registers, which has a number. The call leaves its outcome in `_status`.
fn call_with_place(c: &Interface, operation: &Operation, brings: &Handed, called: Expr) -> Vec<Stmt> {
    let mut body = Vec::new();
    let is_it = |param: &Param| param.name == brings.param && param.direction == Direction::InOut;
    if !operation.params.iter().any(is_it) {
        let result = at(brings, &c.outputs(operation));
        body.extend(["number", "view"].map(|field| Stmt::Set(result.clone().field(field), Expr::Int(0))));
    }
    let place = call("tern_number_take", [name("tern_arrivals").address()]);
    body.push(Stmt::Let(Ty::named("uint32_t"), PLACE.into(), Some(place)));
    let none = name("QUILL_KERNEL").with("+", name("TERN_LIMIT"));
    body.push(Stmt::Let(status(), "_status".into(), Some(none)));
    let failed = name("_status").with("!=", name("QUILL_OK"));
    body.push(Stmt::If(
        name(PLACE).with("!=", Expr::Int(0)),
        vec![Stmt::Set(name("_status"), called), Stmt::If(failed, vec![release(name(PLACE))])],
    ));
    body
}

/// Gives a reference back.
fn release(number: Expr) -> Stmt {
    Stmt::Do(call("tern_release", [number]))
}

/// The client's function of a method that gives references away, or brings some: it has numbers for what comes, and frees what is not used
/// any more, whatever becomes of the call.
pub fn owner(
    c: &Interface,
    layout: &InterfaceLayout,
    operation: &Operation,
    method: &Method,
) -> Option<Item> {
    let e = c.emitter;
    if !is_owned(e, method) {
        return None;
    }
    let mut parameters = first_parameters(c, layout, method);
    let own = parameters.len();
    let mut arguments: Vec<Expr> = parameters.iter().map(|(_, parameter)| name(parameter)).collect();
    let brings = brought(e, method);
    arguments.extend(brings.map(|_| name(PLACE)));
    arguments.extend(several::owner_arguments(e, operation, method));
    parameters.extend(c.parameters(operation));
    if offers::count(method) > 0 {
        parameters.push(offers::parameter());
    }
    arguments.extend(parameters[own..].iter().map(|(_, parameter)| name(parameter)));
    let called = call(client_name(c, operation, method), arguments);
    let (mut body, sent) = sent(c, operation, method);
    body.extend(match brings {
        Some(brings) => call_with_place(c, operation, brings, called),
        None if method.replies_from_memory() => {
            several::call_with_windows(c, layout, (operation, method), called)
        }
        None => vec![Stmt::Let(status(), "_status".into(), Some(called))],
    });
    for Sent { number, is_replaced } in sent {
        let goes = release(name(number));
        let done = name("_status").with("==", name("QUILL_OK"));
        body.push(if is_replaced { Stmt::If(done, vec![goes]) } else { goes });
    }
    body.push(Stmt::Return(Some(name("_status"))));
    Some(Item::Function(inlined(status()), offers::inner_name(c, operation, method), parameters, body))
}

/// The function that asks an object whether it has the interface.
pub fn narrow(c: &Interface, layout: &InterfaceLayout) -> Item {
    let reference = Ty::named(c.emitter.reference(Some(layout.interface)));
    let parameters = vec![(Ty::named("uint32_t"), "_number".to_owned()), (reference.to(), "_found".into())];
    let id = name(format!("{:#x}ull", interface_id(c.interface)));
    let fields = ["number", "view"].map(|field| name("_found").deref().field(field).address());
    let asked = call("quill_find", [name("_number"), id].into_iter().chain(fields));
    let body = vec![Stmt::Return(Some(asked))];
    Item::Function(status(), c.function("narrow"), parameters, body)
}
