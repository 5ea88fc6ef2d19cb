//! A server: a function for each method, and the loop that they are part of.

use super::*;

/// A function that is a part of its caller.
fn inlined(ty: &str) -> Ty {
    Ty::named(format!("__attribute__((always_inline)) {ty}"))
}

/// Whether a method's request can have items, or something in its reply is kept until that is sent.
pub fn needs_buffers(method: &Method) -> bool {
    !method.request.chunks.is_empty() || method.replies().any(has_streams)
}

/// The function that answers a request for a method: from a tag to the tag of the reply.
pub(super) fn answer(c: &Interface, operation: &Operation, method: &Method) -> Item {
    let e = c.emitter;
    let parameters = answer_parameters(c, method);
    let refused = call("quill_refuse", [name("_partner"), name("_tag"), name("QUILL_MALFORMED")]);
    let inputs = c.local(c.inputs(operation));
    let outputs = c.local(c.outputs(operation));
    let inputs = borrowed(&inputs);
    let both_ways = tail(e, &method.request).is_some_and(|chunk| goes_back(operation, chunk));
    let request = Side::new(c, &method.request, &inputs, [refused.clone(), refused.clone()], false);
    let request = Side { both_ways, ..request };
    let mut body = variables(c, operation, &method.request);
    body.extend(["_utcb", "_w0", "_w1"].map(|unused| Stmt::Do(name(unused).cast(Ty::named("void")))));
    if tail(e, &method.request).is_none() {
        let whole = call("quill_is_shape", [name("_tag"), tag(&method.request)]);
        body.push(Stmt::If(unlikely(Expr::Not(Box::new(whole))), vec![Stmt::Return(Some(refused.clone()))]));
    }
    body.extend(request.unpack(&|i, _| buffer(i).address().cast(Ty::named("char *"))));
    let variable = |of: usize| name(word(&operation.params[of].name));
    let wrong = || Stmt::Return(Some(refused.clone()));
    body.extend(agree::parameters(e, operation, false, &variable, &wrong));
    let called = c.call_method(operation, vec![name("_self"), name("_partner").deref()]);
    let function = c.function(&format!("{}_answer", operation.name));
    if operation.oneway {
        body.push(Stmt::Do(called.cast(Ty::named("void"))));
        body.push(Stmt::Set(name("_partner").deref(), int(0)));
        body.push(Stmt::Return(Some(int(0))));
        return Item::Function(inlined("quill_word"), function, parameters, body);
    }
    body.push(Stmt::Let(status(), "_status".into(), Some(called)));
    let other = call("quill_refuse_as", [name("_status")]);
    let cases = c.exception_cases(operation, method, &name("_raised"), |message, spots| {
        let mut case = reply(c, message, spots).pack();
        case.push(Stmt::Return(Some(name("_tag"))));
        case
    });
    let failed = if cases.is_empty() {
        vec![Stmt::Return(Some(other))]
    } else {
        vec![Stmt::Switch(name("_status"), cases, vec![Stmt::Return(Some(other))])]
    };
    body.push(Stmt::If(unlikely(name("_status").with("!=", name("QUILL_OK"))), failed));
    let outputs = borrowed(&outputs);
    let refuse = || Stmt::Return(Some(call("quill_refuse_as", [name("QUILL_MALFORMED")])));
    body.extend(agree::parameters(e, operation, true, &variable, &refuse));
    body.extend(reply(c, &method.reply, &outputs).pack());
    body.push(Stmt::Return(Some(name("_tag"))));
    Item::Function(inlined("quill_word"), function, parameters, body)
}

fn answer_parameters(c: &Interface, method: &Method) -> Parameters {
    let mut parameters: Parameters = vec![
        (Ty::named(c.function("server")).to().constant(), "_methods".into()),
        (Ty::named("void *"), "_self".into()),
        (Ty::named("quill_thread").to(), "_partner".into()),
        (Ty::named("char *"), "_utcb".into()),
        (Ty::named("quill_word"), "_tag".into()),
        (Ty::named("uint32_t"), "_w0".into()),
        (Ty::named("uint32_t"), "_w1".into()),
    ];
    if needs_buffers(method) {
        parameters.push((Ty::named(c.function("buffers")).to(), "_buffers".into()));
    }
    parameters
}

/// Variables for all values of a method. What is copied in one piece needs no zeros.
fn variables(c: &Interface, operation: &Operation, request: &Message) -> Vec<Stmt> {
    let e = c.emitter;
    let mut body = c.variables(operation, |_| false);
    for (param, variable) in operation.params.iter().zip(&mut body) {
        let whole = |slot: &Slot| {
            slot.path == [param.name.as_str()] && matches!(slot.leaf, Leaf::Value(ty) if is_block(e, ty))
        };
        if let Stmt::Let(ty, variable_name, None) = variable
            && param.direction != Direction::Out
            && request.slots.iter().any(whole)
        {
            *variable = Stmt::Announce(ty.clone(), variable_name.clone());
        }
    }
    body
}

/// A reply on the server's side.
fn reply<'a>(c: &'a Interface, message: &'a Message, spots: &'a [Spot<'a>]) -> Side<'a> {
    let bad = call("quill_refuse_as", [name("QUILL_MALFORMED")]);
    Side::new(c, message, spots, [bad.clone(), bad], true)
}

/// The server's loop: the place of a method is found by the first bits of the label, as many as there are places.
pub(super) fn serve(c: &Interface, operations: &[&Operation], methods: &[Method]) -> Item {
    let mut parameters: Parameters = vec![
        (Ty::named(c.function("server")).to().constant(), "_methods".into()),
        (Ty::named("void *"), "_self".into()),
    ];
    let most = methods.iter().map(|method| method.request.chunks.len()).max().unwrap_or(0);
    let has_buffers = methods.iter().any(needs_buffers);
    parameters.extend(has_buffers.then(|| (Ty::named(c.function("buffers")).to(), "_buffers".into())));
    let mut body = vec![
        Stmt::Let(Ty::named("char *"), "_utcb".into(), Some(call("quill_utcb", []))),
        Stmt::Let(Ty::named("quill_thread"), "_partner".into(), Some(int(0))),
        Stmt::Let(Ty::named("quill_word"), "_tag".into(), Some(int(0))),
        Stmt::Let(Ty::named("uint32_t"), "_w0".into(), Some(int(0))),
        Stmt::Let(Ty::named("uint32_t"), "_w1".into(), Some(int(0))),
        Stmt::Do(name("_methods").cast(Ty::named("void"))),
        Stmt::Do(name("_self").cast(Ty::named("void"))),
    ];
    body.extend(has_buffers.then(|| Stmt::Do(name("_buffers").cast(Ty::named("void")))));
    for number in 0..most {
        let place = buffer(number);
        let size = call("sizeof", [place.clone()]);
        let arguments = [utcb(), int(number as u32), int(most as u32), place.address(), size];
        body.push(Stmt::Do(call("quill_accept", arguments)));
    }
    if most == 0 {
        body.push(Stmt::Do(call("quill_accept_nothing", [utcb()])));
    }
    let bits = table_bits(operations.len());
    let mut cases: Vec<(Vec<i128>, Vec<Stmt>)> = Vec::new();
    for (number, (operation, method)) in operations.iter().zip(methods).enumerate() {
        let function = c.function(&format!("{}_answer", operation.name));
        let mut arguments = vec![name("_methods"), name("_self"), name("_partner").address()];
        arguments.extend(["_utcb", "_tag", "_w0", "_w1"].map(name));
        if needs_buffers(method) {
            arguments.push(name("_buffers"));
        }
        let place = plan::place(number as u32, bits);
        cases.push((vec![place.into()], vec![Stmt::Set(name("_tag"), call(function, arguments))]));
    }
    let none = vec![Stmt::Set(
        name("_tag"),
        call("quill_refuse", [name("_partner").address(), name("_tag"), name("QUILL_NO_METHOD")]),
    )];
    // Places without a method are in the table as well, so that no label is outside of it.
    if bits <= PADDED_BITS_MAX {
        let taken: Vec<i128> = cases.iter().flat_map(|(labels, _)| labels.clone()).collect();
        let free: Vec<i128> = (0..1i128 << bits).filter(|place| !taken.contains(place)).collect();
        if !free.is_empty() {
            cases.push((free, none.clone()));
        }
    }
    let words = [name("_w0").address(), name("_w1").address()];
    let arguments = [utcb(), name("_partner").address(), name("_tag")].into_iter().chain(words);
    body.push(Stmt::Forever(vec![
        Stmt::Set(name("_tag"), call("quill_reply_wait", arguments)),
        Stmt::Switch(call("QUILL_PLACE", [name("_tag"), int(bits)]), cases, none),
    ]));
    Item::Function(inlined("void"), c.function("serve"), parameters, body)
}

/// Longer tables have a bounds check instead of places without a method.
const PADDED_BITS_MAX: u32 = 8;
