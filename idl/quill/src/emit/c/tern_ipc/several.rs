//! References within values, and several in a message: items behind the strings of a message's part in memory.
//!
//! Those that are parameters come first, then those within what is read piece by piece, in the order in which they are written. What has come is
//! nobody's until the message has been read. In a client the [owner](super::references::owner) opens windows for as long as the call and knows
//! afterwards what is the caller's; in a server a method begins when it has all, and a reply that cannot be made gives back what was to go with
//! it. The rules are in `tern_handing.h`, for who writes programs.

use super::super::Emitter;
use super::super::interface::{Interface, Spot, status};
use super::super::release::release;
use super::super::tree::{Expr, Item, Parameters, Stmt, Ty, call, name};
use super::{Maker, Making, inlined, malformed, start, words};
use crate::layout::{Chunk, InterfaceLayout, Message, Method};
use crate::model::{Direction, Operation};
use crate::plan::{Block, Plan};

/// Windows, and what has come there.
pub const CARRIED: &str = "_carried";

/// References that are handed over within values.
pub const HANDING: &str = "_handing";

/// Those of a request, in its owner.
pub const LENT: &str = "_lent";

/// Windows that an owner opens.
pub const WINDOWS: &str = "_windows";

/// Whether references of a request are read by what this module makes: all but a single one that is a parameter.
fn is_several(request: &Message) -> bool {
    request.hands_from_memory() && (!request.more.is_empty() || request.references_within() > 0)
}

/// Whether a method's function in a server, and its client if something comes back, know of windows.
pub fn is_carried(method: &Method) -> bool {
    is_several(&method.request) || method.replies_from_memory()
}

/// Whether references come with requests to the windows of a server.
pub fn comes(method: &Method) -> bool {
    is_carried(method) && method.request.hands_from_memory()
}

/// Names of parameters in whose place something comes back that has references in it.
pub fn replaced<'a>(e: &Emitter, operation: &'a Operation, method: &Method) -> Vec<&'a str> {
    let comes_back =
        |name: &str| method.request.streams().any(|chunk| chunk.path.len() == 1 && chunk.path[0] == name);
    let both =
        operation.params.iter().filter(|param| param.direction == Direction::InOut && e.refers(param.ty));
    both.map(|param| param.name.as_str()).filter(|name| comes_back(name)).collect()
}

/// The parameter of a function that looks after references.
pub fn carried() -> (Ty, String) {
    (Ty::named("quill_carried").to(), CARRIED.into())
}

/// Parameters of a client's inner function, which its owner knows: windows, and what has to be told of values that are replaced.
pub fn client_parameters(e: &Emitter, operation: &Operation, method: &Method) -> Parameters {
    let windows = method.replies_from_memory().then(carried);
    let handing = (!replaced(e, operation, method).is_empty())
        .then(|| (Ty::named("quill_handing").to(), HANDING.to_owned()));
    windows.into_iter().chain(handing).collect()
}

/// Arguments that an owner gives for them.
pub fn owner_arguments(e: &Emitter, operation: &Operation, method: &Method) -> Vec<Expr> {
    let of = |parameter: &str| name(if parameter == CARRIED { WINDOWS } else { LENT }).address();
    client_parameters(e, operation, method).iter().map(|(_, parameter)| of(parameter)).collect()
}

/// The statement that begins to hand over what is within values.
fn begin_handing(within: u64, handing: Expr, granted: bool) -> Stmt {
    let most = Expr::Int(within.into());
    let granted = name(if granted { "true" } else { "false" });
    Stmt::Do(call("quill_begin_handing", [handing, most, granted]))
}

/// Statements that begin to write what is written piece by piece, with references beside it if there are some.
pub fn begin_out(block: Block, making: Making, begun: Expr) -> Vec<Stmt> {
    let out = |of: Expr| Stmt::Let(Ty::named("quill_out").to(), "_out".into(), Some(of));
    if block.within == 0 {
        let stream = Stmt::Let(Ty::named("quill_out"), "_stream".into(), Some(begun));
        return vec![stream, out(name("_stream").address())];
    }
    let mut body = Vec::new();
    if making.replaced.is_empty() {
        let here = || name("_handing_here").address();
        body.push(Stmt::Announce(Ty::named("quill_handing"), "_handing_here".into()));
        body.push(Stmt::Let(Ty::named("quill_handing").to(), HANDING.into(), Some(here())));
        body.push(begin_handing(block.within, name(HANDING), making.maker == Maker::Server));
    }
    body.extend([
        Stmt::Announce(Ty::named("quill_out_with"), "_stream".into()),
        out(name("_stream").field("out").address()),
        Stmt::Set(name("_stream").field("out"), begun),
        Stmt::Set(name("_stream").field("handing"), name(HANDING)),
    ]);
    body
}

/// The statement that says before a value whether its references are replaced by what comes back.
pub fn mark(e: &Emitter, chunk: &Chunk, replaced: &[&str]) -> Option<Stmt> {
    let is_it = chunk.path.first().is_some_and(|param| replaced.contains(&param.as_str()));
    let said = name(if is_it { "true" } else { "false" });
    let has_some = !replaced.is_empty() && e.refers(chunk.ty);
    has_some.then(|| Stmt::Set(name(HANDING).deref().field("replaces"), said))
}

/// Statements that begin to read what is read piece by piece: with the words that have come, those in registers, how many have places, how many
/// strings there are.
pub fn begin_in(block: Block, of: [Expr; 4]) -> Vec<Stmt> {
    let read = |of: Expr| Stmt::Let(Ty::named("quill_in").to(), "_in".into(), Some(of));
    if block.within == 0 {
        let come = Stmt::Let(Ty::named("quill_in"), "_stream_in".into(), Some(call("quill_begin_in", of)));
        return vec![come, read(name("_stream_in").address())];
    }
    vec![
        Stmt::Announce(Ty::named("quill_in_with"), "_stream_in".into()),
        read(name("_stream_in").field("in").address()),
        Stmt::Set(name("_stream_in").field("in"), call("quill_begin_in_with", of)),
        Stmt::Set(name("_stream_in").field("carried"), name(CARRIED)),
    ]
}

/// `rax` of a call, apart from whether references have come in memory, if they may with one of these.
pub fn apart_from_items<'m>(messages: impl IntoIterator<Item = &'m Message>, rax: Expr) -> Expr {
    let may_come = messages.into_iter().any(Message::hands_from_memory);
    if may_come { call("quill_apart_from_items", [rax]) } else { rax }
}

/// Statements that know what has come with a message, and take those that are no part of anything.
pub fn own(message: &Message, spots: &[Spot], of_reply: bool) -> Vec<Stmt> {
    if !message.hands_from_memory() {
        return Vec::new();
    }
    let mut body = Vec::new();
    if of_reply {
        body.push(Stmt::Do(call("quill_came", [name(CARRIED), words().index(Expr::Int(0))])));
    }
    for handed in message.handed() {
        let reference = Interface::at(spots, std::slice::from_ref(&handed.param));
        let fields = ["number", "view"].map(|field| reference.clone().field(field).address());
        let next = call("quill_next_reference", [name(CARRIED)].into_iter().chain(fields));
        body.push(Stmt::If(Expr::Not(Box::new(next)), malformed()));
    }
    body
}

/// The statement behind all that reads a message: a client has read all references, or a method begins with all.
pub fn all_there(message: &Message, of_reply: bool) -> Option<Stmt> {
    let all = call(if of_reply { "quill_has_all" } else { "quill_take_all" }, [name(CARRIED)]);
    message.hands_from_memory().then(|| Stmt::If(Expr::Not(Box::new(all)), malformed()))
}

/// Statements behind all that makes a reply, whose references leave from words of its part in memory.
pub fn leave(e: &Emitter, message: &Message, spots: &[Spot]) -> Vec<Stmt> {
    let mut body = Vec::new();
    let Some(block) = Plan::of(e.model, message).block().filter(|_| message.hands_from_memory()) else {
        return body;
    };
    let items = Maker::Server.word(block.items_at());
    for handed in message.handed() {
        let number = Interface::at(spots, std::slice::from_ref(&handed.param)).field("number");
        body.push(Stmt::If(number.with("==", Expr::Int(0)), malformed()));
    }
    let own = Expr::Int((message.handed().count() as u64).into());
    let count = match message.references_within() {
        0 => own,
        _ => own.with("+", name(HANDING).deref().field("count")),
    };
    let gave = call("quill_give_all", [name(CARRIED), items.address(), count]);
    body.push(Stmt::Let(status(), "_gave".into(), Some(gave)));
    let failed = name("_gave").with("!=", name("QUILL_OK"));
    body.push(Stmt::If(failed, vec![Stmt::Return(Some(name("_gave")))]));
    body
}

/// Statements that give back the references of a reply that could not be made.
fn unsent(e: &Emitter, spots: &[Spot]) -> Vec<Stmt> {
    spots.iter().flat_map(|(_, ty, value)| release(e, *ty, value.clone(), 0)).collect()
}

/// The function that makes a reply of what a method has said, where references may leave with it.
pub fn reply(c: &Interface, operation: &Operation, cases: Vec<(Vec<i128>, Vec<Stmt>)>) -> Item {
    let parameters = reply_parameters(c, operation);
    let mut body: Vec<Stmt> =
        parameters.iter().map(|(_, unused)| Stmt::Do(name(unused).cast(Ty::named("void")))).collect();
    body.push(Stmt::Switch(name("_status"), cases, Vec::new()));
    body.push(Stmt::Return(Some(name("_status"))));
    Item::Function(inlined(status()), reply_name(c, operation), parameters, body)
}

fn reply_name(c: &Interface, operation: &Operation) -> String {
    c.function(&format!("{}_reply", operation.name))
}

fn reply_parameters(c: &Interface, operation: &Operation) -> Parameters {
    let mut parameters = vec![
        (Ty::named("uint64_t").to(), "_words".into()),
        (Ty::named("uint64_t").to(), "_kept".into()),
        (Ty::named("bool").to(), "_long".into()),
        carried(),
        (status(), "_status".into()),
    ];
    parameters.extend(c.parameters(operation));
    parameters
}

/// Statements of a server's function behind its method: the reply, and what is given back if there is none.
pub fn replied(c: &Interface, operation: &Operation, method: &Method) -> Vec<Stmt> {
    let fixed = ["_words", "_kept", "_long", CARRIED, "_status"].map(name).to_vec();
    let arguments = c.parameters(operation).into_iter().map(|(ty, parameter)| {
        let value = name(parameter);
        if ty.pointer && ty.dims.is_empty() { value.address() } else { value }
    });
    let made = call(reply_name(c, operation), fixed.into_iter().chain(arguments));
    let mut cases = vec![(vec![0], unsent(c.emitter, &super::borrowed(&c.local(c.outputs(operation)))))];
    let raised = name("_raised");
    cases.extend(c.exception_cases(operation, method, &raised, |_, spots| unsent(c.emitter, spots)));
    cases.retain(|(_, body)| !body.is_empty());
    let failed = name("_made").with("!=", name("_status"));
    vec![
        Stmt::Let(status(), "_made".into(), Some(made)),
        Stmt::If(failed, vec![Stmt::Switch(name("_status"), cases, Vec::new())]),
        Stmt::Return(Some(name("_made"))),
    ]
}

/// Something of a client's caller that has references in it: where it is, and how many bytes of it.
struct Place {
    at: Expr,
    bytes: Expr,
    /// A variable for its value before the call, with its type.
    before: Option<(Ty, String)>,
}

fn places(c: &Interface, operation: &Operation) -> Vec<Place> {
    let e = c.emitter;
    let outputs = c.outputs(operation).into_iter().filter(|(_, ty, _)| e.refers(*ty));
    let places = outputs.map(|(param, ty, value)| {
        let is_inout = |p: &crate::model::Param| p.name == param && p.direction == Direction::InOut;
        let is_inout = operation.params.iter().any(is_inout);
        let bytes = name(format!("sizeof({})", e.ty(ty).declare("")));
        let before = is_inout.then(|| (e.ty(ty), format!("_before_{param}")));
        Place { at: start(e, ty, value), bytes, before }
    });
    places.collect()
}

/// Statements of an owner around the call: windows are open as long, and results are as they should be, however it ends. The call leaves its
/// outcome in `_status`.
pub fn call_with_windows(
    c: &Interface,
    layout: &InterfaceLayout,
    (operation, method): (&Operation, &Method),
    called: Expr,
) -> Vec<Stmt> {
    let copy = |to: Expr, from: Expr, bytes: Expr| Stmt::Do(call("__builtin_memcpy", [to, from, bytes]));
    let places = places(c, operation);
    let mut body = vec![Stmt::Announce(Ty::named("quill_carried"), WINDOWS.into())];
    let carried = || name(WINDOWS).address();
    for place in &places {
        let Some((ty, before)) = &place.before else { continue };
        body.push(Stmt::Announce(ty.clone(), before.clone()));
        body.push(copy(name(before).address(), place.at.clone(), place.bytes.clone()));
    }
    let is_replaced = !replaced(c.emitter, operation, method).is_empty();
    if is_replaced {
        body.push(Stmt::Announce(Ty::named("quill_handing"), LENT.into()));
        body.push(begin_handing(method.request.references_within(), name(LENT).address(), false));
    }
    let strings = layout.replies().capacities.len() as u64;
    let windows = name("_room").deref().field("strings").with("+", Expr::Int((2 * strings).into()));
    let opened = call("quill_open_windows", [carried(), windows, Expr::Int(method.windows_back().into())]);
    body.push(Stmt::Let(status(), "_status".into(), Some(opened)));
    let over = Stmt::Do(call("quill_call_over", [carried(), name("_status")]));
    let good = name("_status").with("==", name("QUILL_OK"));
    body.push(Stmt::If(good.clone(), vec![Stmt::Set(name("_status"), called), over]));
    let as_before = places.iter().map(|place| match &place.before {
        Some((_, before)) => copy(place.at.clone(), name(before).address(), place.bytes.clone()),
        None => {
            let zeros = [place.at.clone(), Expr::Int(0), place.bytes.clone()];
            Stmt::Do(call("__builtin_memset", zeros))
        }
    });
    let as_before: Vec<Stmt> = as_before.collect();
    if !as_before.is_empty() {
        body.push(Stmt::If(name("_status").with("!=", name("QUILL_OK")), as_before));
    }
    if is_replaced {
        body.push(Stmt::If(good, vec![Stmt::Do(call("quill_replaced", [name(LENT).address()]))]));
    }
    body
}
