//! Clients: functions that pack, call, and take out of the reply what comes back.

use super::*;

/// All words, zero.
pub(super) fn fresh() -> Stmt {
    Stmt::Let(Ty { dims: vec![11], ..Ty::named("uint64_t") }, "_words".into(), None)
}

/// The flexpage of a map item.
pub(super) fn handed(given: &Handed, value: Expr) -> Expr {
    match given.grant {
        None => value,
        Some(grant) => call("quill_handed", [value, Expr::Int(grant.into())]),
    }
}

/// A client's function. If there is something to be said of who has references, it is a part of [another one](references::owner).
pub(super) fn client(
    way: &Way,
    c: &Interface,
    layout: &InterfaceLayout,
    (operation, method): (&Operation, &Method),
) -> Item {
    let replies = layout.replies();
    let parameters = client_parameters(way, c, layout, (operation, method));
    let mut body = vec![fresh()];
    let parameter = |of: usize| c.parameter(operation, of);
    body.extend(agree::parameters(c.emitter, operation, false, &parameter, &refused));
    let replaced = several::replaced(c.emitter, operation, method);
    let making =
        Making { maker: Maker::Client, oneway: operation.oneway, replaced: &replaced, offers: way.begins };
    body.extend(pack(c, &method.request, &c.inputs(operation), making));
    let function =
        if way.begins { references::client_name(c, operation, method) } else { c.operation(operation) };
    if let (Some(handed), "_item") = (&method.request.pages, request_kind(way, method)) {
        let words = [6, 7].map(|word| words().index(Expr::Int(word)));
        body.extend(references::item(handed, &c.inputs(operation), Maker::Client, words));
    }
    let called = client_call(way, operation, method);
    if operation.oneway {
        body.push(Stmt::Return(Some(called)));
        return Item::Function(inlined(status()), function, parameters, body);
    }
    let called = Stmt::Let(Ty::named("uint64_t"), "_rax".into(), Some(called));
    let back = references::in_registers(&method.reply);
    match back {
        Some(handed) if way.begins => body.extend(references::in_window(c.emitter, handed, called)),
        _ => body.push(called),
    }
    body.extend(c.unused_place(operation));
    let done = name(match () {
        () if back.is_some() && way.begins => "QUILL_DOOR_PAGES_DONE",
        () if back.is_some() => "QUILL_PAGES_DONE",
        () => way.done[usize::from(method.reply.long)],
    });
    let rax = several::apart_from_items([&method.reply], name("_rax"));
    let done = call("__builtin_expect", [rax.with("!=", done), Expr::Int(0)]);
    body.push(Stmt::If(done, client_failure(way, c, operation, method, &replies)));
    body.extend(arrive(c, &method.reply, &c.outputs(operation), &replies));
    let wrong = || malformed().remove(0);
    body.extend(agree::parameters(c.emitter, operation, true, &parameter, &wrong));
    if let Some(pages) = back {
        let arrived = Interface::at(&c.outputs(operation), std::slice::from_ref(&pages.param));
        if way.begins {
            body.extend(references::arrived(c.emitter, pages, arrived));
        } else {
            body.push(Stmt::Set(arrived, words().index(Expr::Int(6))));
        }
    }
    body.push(Stmt::Return(Some(name("QUILL_OK"))));
    Item::Function(inlined(status()), function, parameters, body)
}

pub(super) fn client_parameters(
    way: &Way,
    c: &Interface,
    layout: &InterfaceLayout,
    (operation, method): (&Operation, &Method),
) -> Parameters {
    let callee = way.callee.map_or_else(|| c.emitter.reference(Some(layout.interface)), str::to_owned);
    let mut parameters: Parameters = vec![(Ty::named(callee), "_server".into())];
    if method.needs_inbox() {
        parameters.push((Ty::named(c.function("replies")).to(), "_room".into()));
    }
    match references::in_registers(&method.reply) {
        Some(handed) if way.begins => parameters.push(references::place(c.emitter, handed)),
        Some(_) => parameters.push((Ty::named("tern_fpage"), references::WINDOW.into())),
        None => {}
    }
    if way.begins {
        parameters.extend(several::client_parameters(c.emitter, operation, method));
    }
    parameters.extend(c.parameters(operation));
    if way.begins && offers::count(method) > 0 {
        parameters.push(offers::parameter());
    }
    parameters
}

/// The end of the name of a function that calls with such a request.
pub(super) fn request_kind(way: &Way, method: &Method) -> &'static str {
    match () {
        () if method.request.long => "_long",
        () if way.begins && method.request.pages.is_some() => "_item",
        () => "",
    }
}

/// The call of a method by its client. It evaluates to `rax`, or to a status if nothing comes back.
pub(super) fn client_call(way: &Way, operation: &Operation, method: &Method) -> Expr {
    let pages = !way.begins && method.hands_pages();
    let item = || {
        let given = method.request.pages.as_ref();
        given.map_or(Expr::Int(0), |given| handed(given, name(word(&given.param))))
    };
    let label = Expr::Int(method.request.label.into());
    let (server, label) = match way.callee {
        Some(_) => (name("_server"), label),
        None => (name("_server").field("number"), label.with("|", name("_server").field("view"))),
    };
    let kind = request_kind(way, method);
    let takes_reference = way.begins && references::in_registers(&method.reply).is_some();
    let takes_block = method.needs_inbox();
    let taking = if takes_reference || takes_block { "_taking" } else { "" };
    // By ipc, items go where the call says, and only a block has to be mentioned.
    let takes = match (takes_block, takes_reference) {
        _ if !way.begins => None,
        (false, false) => None,
        (true, false) => Some(name("TERN_TAKES_BLOCK")),
        (false, true) => Some(name("TERN_TAKES_ITEM")),
        (true, true) => Some(name("TERN_TAKES_BLOCK").with("|", name("TERN_TAKES_ITEM"))),
    };
    let plainly = |label: Expr| {
        let there = Expr::Int(method.request.words().into());
        let back = Expr::Int(method.given().into());
        let arguments = [server.clone(), label, words(), there, back];
        call(format!("{}{kind}{taking}", way.call), arguments.into_iter().chain(takes))
    };
    match way.sent {
        Some(sent) if operation.oneway => call(sent, [plainly(label)]),
        None if operation.oneway && pages => call("quill_ipc_send_pages", [server, label, words(), item()]),
        None if operation.oneway => call(format!("quill_ipc_send{kind}"), [server, label, words()]),
        _ if pages => {
            let window = if method.reply.pages.is_some() { name(references::WINDOW) } else { Expr::Int(0) };
            call(format!("quill_ipc_call_pages{taking}"), [server, label, words(), item(), window])
        }
        _ => plainly(label),
    }
}

/// Statements with which a client reads a reply, which has to be in its own room.
pub(super) fn arrive(c: &Interface, message: &Message, spots: &[Spot], replies: &Room) -> Vec<Stmt> {
    let mut body = Vec::new();
    if message.long {
        let elsewhere = words().index(Expr::Int(1)).with("!=", call("quill_address", [name("_room")]));
        body.push(Stmt::If(elsewhere, vec![Stmt::Return(Some(name("QUILL_OTHER_INBOX")))]));
    }
    body.extend(several::own(message, spots, true));
    body.extend(take(c, message, spots, Arrival::Own(replies), Maker::Client));
    body.extend(several::all_there(message, true));
    body
}

/// Statements of a client for a reply that is not that of success.
pub(super) fn client_failure(
    way: &Way,
    c: &Interface,
    operation: &Operation,
    method: &Method,
    replies: &Room,
) -> Vec<Stmt> {
    let long = method.exceptions.iter().any(|(_, message)| message.long);
    let exceptions = method.exceptions.iter().map(|(_, message)| message);
    let rax = several::apart_from_items(exceptions, name("_rax"));
    let rax = way.reply.map_or_else(|| rax.clone(), |reply| call(reply, [rax.clone()]));
    let mut body = Vec::new();
    if references::in_registers(&method.reply).is_some() {
        let short = call("quill_came_short", [rax.clone()]);
        body.push(Stmt::If(short, vec![Stmt::Return(Some(name("QUILL_PAGES_SHORT")))]));
    }
    let failed = if long {
        call("quill_failure_in", [rax, name("_long").address()])
    } else {
        call("quill_failure", [rax])
    };
    if method.exceptions.is_empty() {
        body.push(Stmt::Return(Some(failed)));
        return body;
    }
    let mut cases = Vec::new();
    for (number, (_, message)) in method.exceptions.iter().enumerate() {
        let spots = c.exception_spots(operation, number, name("_raised").deref());
        let mut case = Vec::new();
        if long {
            let wrong = if message.long { Expr::Not(Box::new(name("_long"))) } else { name("_long") };
            case.push(Stmt::If(wrong, malformed()));
        }
        case.extend(arrive(c, message, &borrowed(&spots), replies));
        case.push(Stmt::Return(Some(Expr::Int(message.label.into()))));
        cases.push((vec![i128::from(message.label)], case));
    }
    let mut otherwise = vec![Stmt::Return(Some(name("_status")))];
    if long {
        body.push(Stmt::Let(Ty::named("bool"), "_long".into(), Some(name("false"))));
        otherwise.insert(0, Stmt::If(name("_long"), malformed()));
    }
    body.push(Stmt::Let(status(), "_status".into(), Some(failed)));
    body.push(Stmt::Switch(name("_status"), cases, otherwise));
    body
}
