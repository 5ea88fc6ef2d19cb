//! A client's functions.

use super::*;

/// A client's function.
pub(super) fn client(c: &Interface, operation: &Operation, method: &Method) -> Item {
    let mut parameters: Parameters = vec![(Ty::named("quill_thread"), "_server".into())];
    if needs_room(method) {
        parameters.push((Ty::named(c.function("replies")).to(), "_room".into()));
    }
    parameters.extend(c.parameters(operation));
    let inputs = c.inputs(operation);
    let mut body = vec![
        Stmt::Let(Ty::named("char *"), "_utcb".into(), Some(call("quill_utcb", []))),
        Stmt::Let(Ty::named("quill_word"), "_tag".into(), Some(int(0))),
    ];
    let parameter = |of: usize| c.parameter(operation, of);
    let refuse = || Stmt::Return(Some(name("QUILL_TOO_LONG")));
    body.extend(agree::parameters(c.emitter, operation, false, &parameter, &refuse));
    let request = Side { answered: !operation.oneway, ..client_side(c, &method.request, &inputs, false) };
    body.extend(request.pack());
    if operation.oneway {
        let sent = call("quill_send", [utcb(), name("_server"), name("_tag"), int(travels(&method.request))]);
        body.push(Stmt::Set(name("_tag"), sent));
        let failed = name("_tag").with("&", name("QUILL_TAG_ERROR"));
        let why = call("quill_failed", [utcb(), name("_tag")]);
        body.push(Stmt::If(unlikely(failed), vec![Stmt::Return(Some(why))]));
    } else {
        exchange(c, operation, method, &mut body);
    }
    body.push(Stmt::Return(Some(name("QUILL_OK"))));
    Item::Function(status(), c.operation(operation), parameters, body)
}

/// A message on the client's side.
fn client_side<'a>(c: &'a Interface, message: &'a Message, spots: &'a [Spot<'a>], reply: bool) -> Side<'a> {
    Side::new(c, message, spots, ["QUILL_MALFORMED", "QUILL_TOO_LONG"].map(name), reply)
}

/// Room for an item in what a client brings.
fn in_room_at(number: usize) -> Expr {
    name("_room").deref().field(format!("_{number}"))
}

/// Statements that send the request and take the reply apart. What is to come as items has a place before: the buffer
/// registers are the thread's, which may be a server with places of its own.
fn exchange(c: &Interface, operation: &Operation, method: &Method, body: &mut Vec<Stmt>) {
    let e = c.emitter;
    for word in ["_w0", "_w1"] {
        body.push(Stmt::Let(Ty::named("uint32_t"), word.into(), Some(int(0))));
    }
    let outputs = c.outputs(operation);
    let in_room = in_room(method);
    let items = in_room.len() as u32;
    let kept = 2 * items + 1;
    let room_of = |number: usize, chunk: &Chunk| {
        if in_room[number] {
            return start_of(in_room_at(number));
        }
        let value = Interface::at(&outputs, &chunk.path);
        if matches!(e.kind(chunk.ty), Type::Sequence(..)) { value.field("_buffer") } else { value }
    };
    if items > 0 {
        let saved = Ty { dims: vec![kept.into()], ..Ty::named("quill_word") };
        body.push(Stmt::Let(saved, "_kept".into(), None));
        body.push(Stmt::Do(call("quill_keep_buffers", [utcb(), name("_kept"), int(kept)])));
    }
    for (i, &is_in_room) in in_room.iter().enumerate() {
        let [to, size] = match method.reply.chunks.get(i) {
            Some(chunk) if !is_in_room => [room_of(i, chunk), room(e, chunk)],
            _ => [start_of(in_room_at(i)), call("sizeof", [in_room_at(i)])],
        };
        body.push(Stmt::Do(call("quill_accept", [utcb(), int(i as u32), int(items), to, size])));
    }
    let messages = [&method.reply].into_iter().chain(method.exceptions.iter().map(|(_, message)| message));
    let received = messages.map(travels).max().unwrap_or(0);
    let arguments = [utcb(), name("_server"), name("_tag"), int(travels(&method.request)), int(received)];
    let words = [name("_w0").address(), name("_w1").address()];
    body.push(Stmt::Set(name("_tag"), call("quill_call", arguments.into_iter().chain(words))));
    if items > 0 {
        body.push(Stmt::Do(call("quill_restore_buffers", [utcb(), name("_kept"), int(kept)])));
    }
    body.extend(["_w0", "_w1"].map(|unused| Stmt::Do(name(unused).cast(Ty::named("void")))));
    body.push(expected(e, &method.reply, failure(c, operation, method)));
    if needs_room(method) {
        body.push(Stmt::Do(name("_room").cast(Ty::named("void"))));
    }
    let reply = Side { in_room: in_room.clone(), ..client_side(c, &method.reply, &outputs, true) };
    body.extend(reply.unpack(&room_of));
    let parameter = |of: usize| c.parameter(operation, of);
    let wrong = || Stmt::Return(Some(name("QUILL_MALFORMED")));
    body.extend(agree::parameters(e, operation, true, &parameter, &wrong));
}

/// The bytes of a message in registers, at most.
fn travels(message: &Message) -> u32 {
    if message.chunks.is_empty() { fixed_bytes(message) } else { BYTES_MAX }
}

/// Every register, in bytes.
const BYTES_MAX: u32 = 63 * 4;

/// A check of the tag: whether it is that of a message, hints aside. Hints are rare, so they are looked at last. The tag
/// of a message with a lone text is checked together with the text; here only its label is.
fn expected(e: &Emitter, message: &Message, otherwise: Vec<Stmt>) -> Stmt {
    if tail(e, message).is_some() {
        let odd = call("quill_is_other", [name("_tag"), int(message.label)]);
        return Stmt::If(unlikely(odd), otherwise);
    }
    let whole = call("quill_is_shape", [name("_tag"), tag(message)]);
    Stmt::If(unlikely(Expr::Not(Box::new(whole))), otherwise)
}

/// Statements of a client for a reply that is not that of success.
fn failure(c: &Interface, operation: &Operation, method: &Method) -> Vec<Stmt> {
    let e = c.emitter;
    let failed = call("quill_failed", [utcb(), name("_tag")]);
    let mut body = Vec::new();
    let inputs = c.inputs(operation);
    for chunk in &method.request.chunks {
        if let Some(bound) = refused_later(e, chunk) {
            let too_long = Interface::at(&inputs, &chunk.path).field("_length").with(">", int(bound));
            body.push(Stmt::If(too_long, vec![Stmt::Return(Some(name("QUILL_TOO_LONG")))]));
        }
    }
    if method.exceptions.is_empty() {
        body.push(Stmt::Return(Some(failed)));
        return body;
    }
    body.extend(c.unused_place(operation));
    for (number, (_, message)) in method.exceptions.iter().enumerate() {
        let spots = c.exception_spots(operation, number, name("_raised").deref());
        let spots = borrowed(&spots);
        let exception = Side { raised: true, ..client_side(c, message, &spots, true) };
        let mut case = exception.unpack(&|number, _| start_of(in_room_at(number)));
        case.push(Stmt::Return(Some(int(message.label))));
        // The rest of the tag of a lone text is looked at with the text.
        let is_it = match tail(e, message) {
            Some(_) => Expr::Not(Box::new(call("quill_is_other", [name("_tag"), int(message.label)]))),
            None => call("quill_is_shape", [name("_tag"), tag(message)]),
        };
        body.push(Stmt::If(is_it, case));
    }
    // A label of an exception with another shape than its own.
    let found = Stmt::Let(status(), "_status".into(), Some(failed));
    let most = int(method.exceptions.len() as u32);
    body.push(found);
    body.push(Stmt::Return(Some(call("quill_no_exception", [name("_status"), most]))));
    body
}
