//! How values come out of a message: out of words, out of what has arrived in memory, and out of pieces.

use super::*;

/// Statements that take a value of the fixed part out of its place, with every check.
fn unpack_step(e: &Emitter, step: &Step, value: Expr, body: &mut Vec<Stmt>) {
    let (words, word, byte) = place(step, ARRIVED);
    let here = words.index(Expr::Int(word.into()));
    let bits = if byte > 0 { here.with(">>", Expr::Int((byte * 8).into())) } else { here };
    match step.what {
        What::Value => unpack_value(e, step, bits, value, body),
        What::Count(_) => {
            let ty = Ty::named(format!("uint{}_t", 8 * step.bytes));
            body.push(Stmt::Let(ty.clone(), format!("_count_{}", step.number), Some(bits.cast(ty))));
        }
        What::Elements(size, count) => {
            if let Type::Str { bound, .. } = e.kind(step.ty)
                && e.counted(step.ty)
                && !e.text_inside(step.ty)
            {
                let room = format!("_text_{}", step.number);
                let dims = vec![(4 * bound.unwrap_or(0)).max(1)];
                body.push(Stmt::Announce(Ty { dims, ..Ty::named("char") }, room.clone()));
                body.push(Stmt::Set(value.clone().field("_buffer"), name(room)));
            }
            let count = name(format!("_count_{}", count.unwrap_or(0)));
            body.extend(unpack_elements(e, step.ty, value, count, address(step, ARRIVED), size));
        }
        // Looked at when all else is known to be good: see `offers`.
        What::Offer(..) => {}
        What::Tail(_) => {
            body.push(Stmt::Let(Ty::named("uint64_t"), format!("_tail_{}", step.number), Some(bits)));
        }
    }
}

/// Statements that take a value out of the bits of a word, or out of several words.
fn unpack_value(e: &Emitter, step: &Step, bits: Expr, value: Expr, body: &mut Vec<Stmt>) {
    let found = match e.kind(step.ty) {
        Type::Bool => {
            let raw = bits.cast(Ty::named("uint8_t"));
            body.push(Stmt::If(raw.clone().with(">", Expr::Int(1)), malformed()));
            raw.with("!=", Expr::Int(0))
        }
        Type::Float(32) => call("quill_f32", [bits]),
        Type::Float(_) => call("quill_f64", [bits]),
        Type::Struct(..) | Type::Flat(..) | Type::Array(..) => {
            let to = start(e, step.ty, value.clone());
            let copy = [to, address(step, ARRIVED), Expr::Int(step.bytes.into())];
            body.push(Stmt::Do(call("__builtin_memcpy", copy)));
            return body.extend(elements::look(e, step.ty, &value, 0));
        }
        _ => bits.cast(Ty::named(e.ty(step.ty).base)),
    };
    body.push(Stmt::Set(value.clone(), found));
    body.extend(wrong_bits(e, step.ty, &value).map(|wrong| Stmt::If(wrong, malformed())));
}

/// Statements that copy so many elements, of `size` bytes each, to a value with room for them.
fn unpack_elements(e: &Emitter, ty: TypeId, value: Expr, count: Expr, from: Expr, size: u64) -> Vec<Stmt> {
    match e.kind(ty) {
        Type::Str { bound, .. } if e.counted(ty) => {
            let most = Expr::Int(bound.unwrap_or(0).into());
            let text = [value.clone().field("_buffer"), from, count.clone(), most];
            let text = call("quill_get_counted_text", text);
            vec![Stmt::If(Expr::Not(Box::new(text)), malformed()), Stmt::Set(value.field("_length"), count)]
        }
        Type::Str { bound, .. } => {
            let text = call("quill_get_text", [value, from, count, Expr::Int(bound.unwrap_or(0).into())]);
            vec![Stmt::If(Expr::Not(Box::new(text)), malformed())]
        }
        Type::Sequence(_, bound) => {
            let bound = Expr::Int(bound.unwrap_or(0).into());
            let bytes = count.clone().with("*", Expr::Int(size.into()));
            let mut body = vec![
                Stmt::If(count.clone().with(">", bound), malformed()),
                Stmt::Set(value.clone().field("_length"), count),
                Stmt::Do(call("__builtin_memcpy", [value.clone().field("_buffer"), from, bytes])),
            ];
            body.extend(elements::look(e, ty, &value, 0));
            body
        }
        _ => Vec::new(),
    }
}

/// Statements that read a message: its words, and what it has in memory, which is in `_room`.
pub(super) fn take(
    c: &Interface,
    message: &Message,
    spots: &[Spot],
    room: Arrival,
    taker: Maker,
) -> Vec<Stmt> {
    let (e, plan) = (c.emitter, Plan::of(c.emitter.model, message));
    let mut body = Vec::new();
    if let Some(block) = plan.block() {
        body.extend(unpack_memory(e, &plan, block, room));
    }
    if message.memory_bytes > 0 {
        let arrived = name("_room").deref().field("words");
        body.push(Stmt::Let(Ty::named("uint64_t").to(), ARRIVED.into(), Some(arrived)));
    }
    for step in &plan.fixed {
        unpack_step(e, step, Interface::at(spots, step.path), &mut body);
    }
    let align = || Stmt::Do(call("quill_get_align", [name("_in"), Expr::Int(8)]));
    let twice = taker == Maker::Server && plan::looks_twice(e.model, message);
    for part in &plan.variable {
        let value = Interface::at(spots, &part.chunk.path);
        if part.content == Content::Pieces {
            body.push(align());
            body.extend(pieces::get(e, part.chunk.ty, value, 0));
        } else {
            unpack_list(e, part, value, room, (taker, twice), &mut body);
        }
    }
    if plan.pieces().next().is_some() {
        let end = call("quill_is_end", [name("_in")]);
        body.extend([align(), Stmt::If(Expr::Not(Box::new(end)), malformed())]);
    }
    for path in pieces::anys(e, message) {
        body.push(Stmt::If(pieces::unsound(Interface::at(spots, path)), malformed()));
    }
    let wrong = || malformed().remove(0);
    body.extend(spots.iter().flat_map(|(_, ty, value)| agree::fields(e, *ty, value, &wrong, 0)));
    body
}

/// Statements that check what a message has in memory.
fn unpack_memory(e: &Emitter, plan: &Plan, block: Block, room: Arrival) -> Vec<Stmt> {
    if block.pieces_end.is_none() {
        let came = words().index(Expr::Int(0)).cast(Ty::named("uint32_t"));
        return vec![Stmt::If(came.with("!=", Expr::Int(dope(block).into())), malformed())];
    }
    let parts = if block.within > 0 { block.strings } else { described(block) };
    let [fixed, parts] = [block.fixed, parts].map(|count| Expr::Int(count.into()));
    let come = [name("_room").deref().field("words"), words(), fixed, parts];
    let mut body = several::begin_in(block, come);
    body.push(Stmt::If(name("_in").deref().field("failed"), malformed()));
    body.extend(share(e, plan, "_in"));
    body.extend(give_memory(e, plan, room));
    body
}

/// Statements that check a list that has arrived in memory, and leave it where it is. The `taker` may look at it twice.
fn unpack_list(
    e: &Emitter,
    list: &Variable,
    value: Expr,
    room: Arrival,
    (taker, twice): (Maker, bool),
    body: &mut Vec<Stmt>,
) {
    let variable = |what: &str| format!("_{what}_{}", list.number);
    let (count, bytes, at) = (variable("count_of"), variable("bytes_of"), name(variable("at")));
    let (element, most) = (list.element(), list.most());
    let mut last = call("quill_last", [at.clone(), name(&bytes)]);
    if let Some((string, _)) = list.string {
        body.push(Stmt::Let(Ty::named("uint64_t"), bytes.clone(), Some(room.string_bytes(string))));
        body.push(Stmt::Let(Ty::named("char").to(), variable("at"), Some(room.string(string))));
        body.extend(check_string(room, string, name(&bytes), most, element));
        if matches!(list.content, Content::List(_)) {
            let elements = name(&bytes).with("/", Expr::Int(element.into()));
            body.push(Stmt::Let(Ty::named("uint64_t"), count.clone(), Some(elements)));
        }
    } else {
        let found = list.count.map_or(Expr::Int(1), |step| name(format!("_count_{step}")));
        body.extend(count_direct([&count, &bytes], found, most, element));
        let words = call("quill_unknown", [name("_room").deref().field("words")]);
        let words = words.cast(Ty::named("char *"));
        body.push(Stmt::Let(Ty::named("char").to(), variable("at"), Some(words)));
        if let Some(step) = list.tail {
            let tail = name(format!("_tail_{step}"));
            let complete = Stmt::Do(call("quill_complete", [at.clone(), name(&bytes), tail.clone()]));
            // The second look finds it done.
            let first = Expr::Not(Box::new(name("_again")));
            let twice = twice && matches!(list.content, Content::Text(_));
            body.push(if twice { Stmt::If(first, vec![complete]) } else { complete });
            last = tail;
        }
    }
    body.extend(take_list(e, list.chunk, value, [at, name(&count), name(&bytes), last], taker));
}

/// Statements that leave the number of elements and of bytes of a list that is the words of a message, and check them.
fn count_direct([count, bytes]: [&str; 2], found: Expr, bound: u64, element: u64) -> [Stmt; 4] {
    let long = || Ty::named("uint64_t");
    let size = name(count).with("*", Expr::Int(element.into()));
    let whole = name(bytes).with("/", Expr::Int(8));
    let used = words().index(Expr::Int(0)).cast(Ty::named("uint32_t"));
    [
        Stmt::Let(long(), count.into(), Some(found)),
        Stmt::If(name(count).with(">", Expr::Int(bound.into())), malformed()),
        Stmt::Let(long(), bytes.into(), Some(size)),
        Stmt::If(used.with("!=", whole), malformed()),
    ]
}

/// Statements that check whether a string has no more than its elements, and no part of one.
fn check_string(room: Arrival, string: u32, bytes: Expr, bound: u64, element: u64) -> Vec<Stmt> {
    let mut body = Vec::new();
    let most = bound * element;
    if room.takes_more(string, most) {
        body.push(Stmt::If(bytes.clone().with(">", Expr::Int(most.into())), malformed()));
    }
    if element > 1 {
        let rest = bytes.with("%", Expr::Int(element.into()));
        body.push(Stmt::If(rest.with("!=", Expr::Int(0)), malformed()));
    }
    body
}

/// Statements that make a value of a list that is `at` some place in the room; of a text, the `last` bytes are known.
fn take_list(
    e: &Emitter,
    chunk: &Chunk,
    value: Expr,
    [at, count, bytes, last]: [Expr; 4],
    taker: Maker,
) -> Vec<Stmt> {
    let copy = |to: Expr| Stmt::Do(call("__builtin_memcpy", [to, at.clone(), bytes.clone()]));
    // A server's variable for an array is a pointer; a client's caller has room for one.
    let array_stays = taker == Maker::Server && chunk.path.len() == 1;
    match e.kind(chunk.ty) {
        Type::Str { bound, .. } => {
            let characters = bound.or(chunk.bound).unwrap_or(0);
            let most = Expr::Int(characters.into());
            let text = [at.clone(), bytes.clone(), last, most];
            let counted = e.counted(chunk.ty);
            let text = match taker {
                Maker::Server => {
                    let look = if counted { "quill_is_counted_text" } else { "quill_end_text" };
                    call(look, text.into_iter().chain([name("_again")]))
                }
                Maker::Client if counted => call("quill_is_any_counted_text", text),
                Maker::Client => call("quill_end_any_text", text),
            };
            // A request is looked at again by who knows more than ASCII.
            let wrong = match taker {
                Maker::Server => vec![Stmt::Return(Some(call("quill_refused", [name("_again")])))],
                Maker::Client => malformed(),
            };
            let check = Stmt::If(Expr::Not(Box::new(text)), wrong);
            if counted {
                let to = value.clone().field("_buffer");
                let length = Stmt::Set(value.field("_length"), bytes.clone().cast(Ty::named("uint32_t")));
                let lies = if e.text_inside(chunk.ty) { copy(to) } else { Stmt::Set(to, at) };
                vec![check, length, lies]
            } else if e.text_inside(chunk.ty) {
                let whole = bytes.with("+", Expr::Int(1));
                vec![check, Stmt::Do(call("__builtin_memcpy", [value, at, whole]))]
            } else {
                vec![check, Stmt::Set(value, at)]
            }
        }
        Type::Sequence(of, bound) => {
            let length = Stmt::Set(value.clone().field("_length"), count.cast(Ty::named("uint32_t")));
            let buffer = value.field("_buffer");
            let lies = if e.inside(*bound) {
                copy(buffer)
            } else {
                Stmt::Set(buffer, at.cast(Ty::named("void *")).cast(pointer_to(e, *of)))
            };
            vec![length, lies]
        }
        _ if array_stays => vec![Stmt::Set(value, at.cast(Ty::named("void *")))],
        _ => vec![copy(value)],
    }
}

/// A pointer to elements of a type; nothing needs to know more where it is no plain one.
fn pointer_to(e: &Emitter, of: TypeId) -> Ty {
    let ty = e.ty(of);
    if ty.dims.is_empty() { ty.to() } else { Ty::named("void *") }
}
