//! Lists that a client may offer instead of sending them: a word of the request is the offer's number, or 0 if the bytes are sent (decision 0114).
//!
//! *A client* through a door has two functions: the inner one makes the call with the numbers that it is given, and the one around it makes the
//! offers, and calls once more with the bytes if they were declined. *A server* takes what is offered when all else of the request has been looked
//! at, and gives it back when its reply is made. By ipc nobody offers anything, and a server declines.

use super::super::Emitter;
use super::super::interface::{Interface, Spot, status};
use super::super::tree::{Expr, Item, Stmt, Ty, call, name};
use super::{ARRIVED, Way, elements, inlined, lies_elsewhere, malformed, place};
use crate::layout::{Chunk, Message, Method};
use crate::model::Operation;
use crate::plan::Plan;

/// The numbers of a call's offers, in a client.
pub const OFFERS: &str = "_offers";

/// Offers that a server has taken.
pub const TAKEN: &str = "_taken";

/// How many lists a method's clients may offer.
pub fn count(method: &Method) -> u64 {
    method.request.offers().count() as u64
}

/// The number of an offer, in a client's inner function.
pub fn number(offer: usize) -> Expr {
    name(OFFERS).index(Expr::Int(offer as i128))
}

/// The parameter of a client's inner function.
pub fn parameter() -> (Ty, String) {
    (Ty::named("uint64_t").constant().to(), OFFERS.into())
}

/// The name of a client's function that is told the numbers, if there is another one around it.
pub fn inner_name(c: &Interface, operation: &Operation, method: &Method) -> String {
    if count(method) > 0 { c.function(&format!("{}_with", operation.name)) } else { c.operation(operation) }
}

/// The function of a client that makes the offers, around one that is told their numbers.
pub fn client(c: &Interface, operation: &Operation, method: &Method, inner: &Item) -> Option<Item> {
    let Item::Function(_, function, parameters, _) = inner else { return None };
    if count(method) == 0 {
        return None;
    }
    let inputs = c.inputs(operation);
    let (mut body, mut made, mut sent) = (Vec::new(), Vec::new(), Vec::new());
    let whole: Vec<Expr> = parameters.iter().map(|(_, parameter)| name(parameter)).collect();
    let mut arguments = whole.clone();
    for (at, list) in method.request.offers().enumerate() {
        let (ty, most) = (c.emitter.ty(list.ty), Expr::Int(list.bound.unwrap_or(0).into()));
        let list = Interface::at(&inputs, &list.path);
        let (offer, copy) = (number(at), format!("_sent_{at}"));
        let length = list.clone().field("_length");
        let too_long = vec![Stmt::Return(Some(name("QUILL_TOO_LONG")))];
        body.push(Stmt::If(length.clone().with(">", most), too_long));
        let bytes = [list.clone().field("_buffer"), length];
        made.push(Stmt::Set(offer.clone(), call("quill_offer", bytes)));
        let is_offered = offer.with("!=", Expr::Int(0));
        let nothing = Stmt::Set(name(&copy).field("_length"), Expr::Int(0));
        sent.push(Stmt::Let(ty, copy.clone(), Some(list.clone())));
        sent.push(Stmt::If(is_offered, vec![nothing]));
        let own = list.address();
        for argument in arguments.iter_mut().filter(|argument| **argument == own) {
            *argument = name(&copy).address();
        }
    }
    let numbers = Ty { dims: vec![count(method)], ..Ty::named("uint64_t") };
    let over = call("quill_offers_over", [name(OFFERS), Expr::Int(count(method).into()), name("_status")]);
    body.push(Stmt::Let(numbers, OFFERS.into(), None));
    body.extend(made.into_iter().chain(sent));
    body.push(Stmt::Let(status(), "_status".into(), Some(call(function.clone(), arguments))));
    body.push(Stmt::If(Expr::Not(Box::new(over)), vec![Stmt::Return(Some(name("_status")))]));
    // No loop: compilers would not see that whoever is told of a success has all results.
    body.push(Stmt::Return(Some(call(function.clone(), whole))));
    let mut parameters = parameters.clone();
    parameters.pop();
    Some(Item::Function(inlined(status()), c.operation(operation), parameters, body))
}

/// How many offers a server takes for a method. It takes none where its reply has references in memory: those lists would have to be looked at elsewhere.
pub fn taken(way: &dyn Way, method: &Method) -> u64 {
    if way.takes_offers() && !method.replies_from_memory() { count(method) } else { 0 }
}

/// Statements of a server that takes what is offered or, if it takes nothing, declines: then its method does not begin, and the client sends the
/// bytes. They stand behind all checks, so that a request that is no message is never declined.
pub fn take(way: &dyn Way, e: &Emitter, method: &Method, inputs: &[Spot]) -> Vec<Stmt> {
    let plan = Plan::of(e.model, &method.request);
    let statements = plan.offers().enumerate().map(|(at, (step, most))| {
        let (words, index, _) = place(step, ARRIVED);
        let number = words.index(Expr::Int(index.into()));
        let has_not = if taken(way, method) > 0 {
            let list = Interface::at(inputs, step.path);
            let fields = ["_buffer", "_length"].map(|field| list.clone().field(field).address());
            let given = [name(TAKEN).with("+", Expr::Int(at as i128)), number, Expr::Int(most.into())];
            Expr::Not(Box::new(call("quill_take_offer", given.into_iter().chain(fields))))
        } else {
            number.with("!=", Expr::Int(0))
        };
        Stmt::If(has_not, vec![Stmt::Return(Some(name("QUILL_DECLINED")))])
    });
    statements.collect()
}

/// Statements of a server that refuses a reply with a list that lies in one that may have been taken: when that leaves, the offer is over. They
/// are the same if the bytes were sent, so that a program behaves alike whichever way they took.
pub fn apart(
    way: &dyn Way,
    e: &Emitter,
    method: &Method,
    reply: &Message,
    [inputs, outputs]: [&[Spot]; 2],
) -> Vec<Stmt> {
    if taken(way, method) == 0 {
        return Vec::new();
    }
    let is_elsewhere = |list: &&Chunk| list.element.is_some() && lies_elsewhere(e, list);
    let lists = reply.chunks.iter().filter(is_elsewhere);
    let pairs = lists.flat_map(|list| method.request.offers().map(move |offered| (list, offered)));
    let refuse = |(list, offered): (&Chunk, &Chunk)| {
        let first = elements(e, list.ty, Interface::at(outputs, &list.path));
        let given = Interface::at(inputs, &offered.path);
        let given = ["_buffer", "_length"].map(|field| given.clone().field(field));
        Stmt::If(call("quill_lies_in", [first].into_iter().chain(given)), malformed())
    };
    pairs.map(refuse).collect()
}

/// The parameter of a server's function that takes offers.
pub fn place_for_taken() -> (Ty, String) {
    (Ty::named("struct tern_taken").to(), TAKEN.into())
}
