//! Servers: the function that answers a request for a method, whatever calls it.

use super::*;

/// The function that answers a request for a method.
pub(super) fn answer(
    way: &dyn Way,
    c: &Interface,
    operation: &Operation,
    method: &Method,
    room: Arrival,
) -> Vec<Item> {
    let parameters = answer_parameters(way, c, method, room);
    let request = &method.request;
    let result = inlined(status());
    let lists = || request.chunks.iter().filter(|c| c.element.is_some());
    let in_room = |param: &str| lists().any(|c| matches!(&c.path[..], [path] if path == param));
    let mut body = c.variables(operation, in_room);
    let inputs = c.local(c.inputs(operation));
    let outputs = c.local(c.outputs(operation));
    if method.needs_inbox() {
        body.push(Stmt::Do(name("_kept").cast(Ty::named("void"))));
    }
    if method.request.long && method.request.chunks.is_empty() {
        body.push(Stmt::Do(name("_room").cast(Ty::named("void"))));
    }
    let comes = several::comes(method);
    if comes {
        body.extend(several::own(request, &borrowed(&inputs), false));
    }
    body.extend(take(c, request, &borrowed(&inputs), room, Maker::Server));
    let (variable, wrong) = (|of: usize| name(word(&operation.params[of].name)), || malformed().remove(0));
    body.extend(agree::parameters(c.emitter, operation, false, &variable, &wrong));
    body.extend(offers::take(way, c.emitter, method, &borrowed(&inputs)));
    if let Some(handed) = references::single(method) {
        body.push(references::taken(handed, &borrowed(&inputs)));
    }
    if comes {
        body.extend(several::all_there(request, false));
    }
    let given = std::iter::once("_self".to_owned()).chain(way.caller().map(|(_, from)| from));
    let called = c.call_method(operation, given.map(name).collect());
    let function = c.function(&format!("{}_answer", operation.name));
    if operation.oneway {
        // It may have no parameters.
        body.push(Stmt::Do(words().cast(Ty::named("void"))));
        body.push(Stmt::Do(called.cast(Ty::named("void"))));
        body.push(Stmt::Return(Some(name("QUILL_SILENT"))));
        return vec![Item::Function(result, function, parameters, body)];
    }
    body.push(Stmt::Let(status(), "_status".into(), Some(called)));
    body.push(Stmt::Do(call("quill_clear", [words()])));
    if method.replies_from_memory() {
        let parameter = |of: usize| c.parameter(operation, of);
        let cases = replies(
            way,
            c,
            (operation, method),
            [&[], &c.outputs(operation)],
            &parameter,
            &name("_raised").deref(),
        );
        body.extend(several::replied(c, operation, method));
        return vec![several::reply(c, operation, cases), Item::Function(result, function, parameters, body)];
    }
    let spots = [&borrowed(&inputs)[..], &borrowed(&outputs)];
    let cases = replies(way, c, (operation, method), spots, &variable, &name("_raised"));
    body.push(Stmt::Switch(name("_status"), cases, Vec::new()));
    body.push(Stmt::Return(Some(name("_status"))));
    vec![Item::Function(result, function, parameters, body)]
}

/// Statements that make each reply of a method, by what it has said: its results, parameters by their numbers, and what it has raised.
fn replies(
    way: &dyn Way,
    c: &Interface,
    (operation, method): (&Operation, &Method),
    [inputs, outputs]: [&[Spot]; 2],
    parameter: &dyn Fn(usize) -> Expr,
    raised: &Expr,
) -> Vec<(Vec<i128>, Vec<Stmt>)> {
    let make = |message: &Message, spots: &[Spot]| {
        let given = references::in_registers(message);
        let mut made: Vec<Stmt> =
            given.into_iter().map(|handed| references::given(c.emitter, handed, spots)).collect();
        made.extend(offers::apart(way, c.emitter, method, message, [inputs, spots]));
        made.extend(pack(c, message, spots, Making::of(Maker::Server)));
        made.extend(several::leave(c.emitter, message, spots));
        if message.long {
            made.push(Stmt::Set(name("_long").deref(), name("true")));
        }
        made
    };
    let mut good = agree::parameters(c.emitter, operation, true, parameter, &refused);
    good.extend(make(&method.reply, outputs));
    let mut cases = vec![(vec![0], good)];
    cases.extend(c.exception_cases(operation, method, raised, make));
    cases
}

fn answer_parameters(way: &dyn Way, c: &Interface, method: &Method, room: Arrival) -> Parameters {
    let mut parameters = vec![
        (Ty::named(c.function("server")).to().constant(), "_methods".into()),
        (Ty::named("void *"), "_self".into()),
    ];
    parameters.extend(way.caller());
    parameters.push((Ty::named("uint64_t").to(), "_words".into()));
    if method.request.long {
        parameters.push((Ty::named(room.record(c)).to(), "_room".into()));
    }
    if method.needs_inbox() {
        parameters.push((Ty::named("uint64_t").to(), "_kept".into()));
        parameters.push((Ty::named("bool").to(), "_long".into()));
    }
    if plan::looks_twice(c.emitter.model, &method.request) {
        parameters.push((Ty::named("bool"), "_again".into()));
    }
    if references::has_item(method) {
        parameters.push((Ty::named("quill_item").to(), references::ITEM.into()));
    }
    if several::is_carried(method) {
        parameters.push(several::carried());
    }
    if offers::taken(way, method) > 0 {
        parameters.push(offers::place_for_taken());
    }
    parameters
}

/// First parameters of a function that finds the method for a request by ipc.
pub(super) fn dispatch_parameters() -> Parameters {
    vec![
        (Ty::named("const void *"), "_methods".into()),
        (Ty::named("void *"), "_self".into()),
        (Ty::named("tern_uid"), "_from".into()),
        (Ty::named("uint32_t"), "_label".into()),
        (Ty::named("uint64_t").to(), "_words".into()),
    ]
}

/// The result of a function that has to be part of whatever calls it, so that words stay in registers.
pub(super) fn inlined(result: Ty) -> Ty {
    Ty::named(format!("__attribute__((always_inline)) {}", result.base))
}
