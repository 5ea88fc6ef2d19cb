//! Clients: functions that pack, call, and take out of the reply what comes back.

use super::*;

/// All words, zero.
fn fresh() -> Stmt {
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
    way: &dyn Way,
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
    let (maker, offers) = (Maker::Client, way.takes_offers());
    let making = Making { maker, oneway: operation.oneway, replaced: &replaced, offers };
    body.extend(pack(c, &method.request, &c.inputs(operation), making));
    let function = way.client_name(c, operation, method);
    if let Some(handed) = references::in_registers(&method.request).filter(|_| way.hands_references()) {
        let words = [6, 7].map(|word| words().index(Expr::Int(word)));
        body.extend(references::item(handed, &c.inputs(operation), Maker::Client, words));
    }
    let called = way.call(method);
    if operation.oneway {
        body.push(Stmt::Return(Some(called)));
        return Item::Function(inlined(status()), function, parameters, body);
    }
    let called = Stmt::Let(Ty::named("uint64_t"), "_rax".into(), Some(called));
    let back = references::in_registers(&method.reply);
    body.extend(match back {
        Some(handed) => way.in_window(c.emitter, handed, called),
        None => vec![called],
    });
    body.extend(c.unused_place(operation));
    let rax = several::apart_from_items([&method.reply], name("_rax"));
    let done = match back {
        Some(_) => "PAGES_DONE",
        None if method.reply.long => "LONG_DONE",
        None => "DONE",
    };
    let done = name(format!("{}{done}", way.constants()));
    let done = call("__builtin_expect", [rax.with("!=", done), Expr::Int(0)]);
    body.push(Stmt::If(done, client_failure(way, c, operation, method, &replies)));
    body.extend(arrive(c, &method.reply, &c.outputs(operation), &replies));
    let wrong = || malformed().remove(0);
    body.extend(agree::parameters(c.emitter, operation, true, &parameter, &wrong));
    if let Some(pages) = back {
        let arrived = Interface::at(&c.outputs(operation), std::slice::from_ref(&pages.param));
        body.extend(references::arrived(c.emitter, pages, arrived));
    }
    body.push(Stmt::Return(Some(name("QUILL_OK"))));
    Item::Function(inlined(status()), function, parameters, body)
}

fn client_parameters(
    way: &dyn Way,
    c: &Interface,
    layout: &InterfaceLayout,
    (operation, method): (&Operation, &Method),
) -> Parameters {
    let mut parameters: Parameters = vec![(way.callee(c.emitter, layout), "_server".into())];
    if method.needs_inbox() {
        parameters.push((Ty::named(c.function("replies")).to(), "_room".into()));
    }
    let back = references::in_registers(&method.reply);
    parameters.extend(back.map(|handed| references::place(c.emitter, handed)));
    parameters.extend(several::client_parameters(c.emitter, operation, method));
    parameters.extend(c.parameters(operation));
    if way.takes_offers() && offers::count(method) > 0 {
        parameters.push(offers::parameter());
    }
    parameters
}

/// A call that says how many registers go there and come back, and what else it takes.
pub(super) fn called(function: String, to: [Expr; 3], method: &Method, takes: Option<Expr>) -> Expr {
    let registers = [method.request.words(), method.given()].map(|words| Expr::Int(words.into()));
    call(function, to.into_iter().chain(registers).chain(takes))
}

/// Statements with which a client reads a reply, which has to be in its own room.
fn arrive(c: &Interface, message: &Message, spots: &[Spot], replies: &Room) -> Vec<Stmt> {
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
fn client_failure(
    way: &dyn Way,
    c: &Interface,
    operation: &Operation,
    method: &Method,
    replies: &Room,
) -> Vec<Stmt> {
    let long = method.exceptions.iter().any(|(_, message)| message.long);
    let exceptions = method.exceptions.iter().map(|(_, message)| message);
    let rax = several::apart_from_items(exceptions, name("_rax"));
    let rax = way.reply(rax);
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
    let raised = name("_raised").deref();
    let cases = c.exception_cases(operation, method, &raised, |message, spots| {
        let mut case = Vec::new();
        if long {
            let wrong = if message.long { Expr::Not(Box::new(name("_long"))) } else { name("_long") };
            case.push(Stmt::If(wrong, malformed()));
        }
        case.extend(arrive(c, message, spots, replies));
        case.push(Stmt::Return(Some(Expr::Int(message.label.into()))));
        case
    });
    let mut otherwise = vec![Stmt::Return(Some(name("_status")))];
    if long {
        body.push(Stmt::Let(Ty::named("bool"), "_long".into(), Some(name("false"))));
        otherwise.insert(0, Stmt::If(name("_long"), malformed()));
    }
    body.push(Stmt::Let(status(), "_status".into(), Some(failed)));
    body.push(Stmt::Switch(name("_status"), cases, otherwise));
    body
}

/// The function with which a client says where it receives.
pub(super) fn open(c: &Interface, replies: &Room) -> String {
    let (function, record) = (c.function("open"), c.function("replies"));
    let (lists, arguments) = registration(replies, "room");
    format!(
        "/* Lets replies arrive in `room`, until `quill_close(before)`. */\n\
         static inline __attribute__((unused)) quill_status {function}({record} *room, quill_inbox *before)\n{{\n\
         {lists}    return quill_register({arguments}, before);\n}}\n"
    )
}

/// Lists of capacities, and the arguments of `quill_register`.
pub(super) fn registration(room: &Room, variable: &str) -> (String, String) {
    let list = |all: Vec<String>| if all.is_empty() { "0".into() } else { all.join(", ") };
    let capacities = list(room.capacities.iter().map(u64::to_string).collect());
    let begins = list((0..room.capacities.len()).map(|n| begin(room, n as u32).to_string()).collect());
    let (words, count) = (room_words(room), room.capacities.len());
    let windows = room.windows;
    let arguments = format!(
        "{variable}, {words}, {count}, {windows}, {variable}->strings, {variable}->buffers, quill_capacities, quill_begins"
    );
    let lists = format!(
        "    static const uint32_t quill_capacities[] = {{ {capacities} }}, quill_begins[] = {{ {begins} }};\n"
    );
    (lists, arguments)
}
