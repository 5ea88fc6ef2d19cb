//! How values come out of a message: out of words, out of what has arrived in memory, and out of pieces.

use super::*;

/// Statements that take a message out of the words, with every check.
pub(super) fn unpack(c: &Interface, message: &Message, spots: &[Spot]) -> Vec<Stmt> {
    let e = c.emitter;
    let mut body = Vec::new();
    for (i, slot) in message.slots.iter().enumerate() {
        let value = Interface::at(spots, &slot.path);
        let (words, word, byte) = place(slot, ARRIVED);
        let here = words.index(Expr::Int(word.into()));
        let bits = if byte > 0 { here.with(">>", Expr::Int((byte * 8).into())) } else { here };
        match slot.leaf {
            Leaf::Value(ty) => {
                let as_type = |base: String| bits.clone().cast(Ty::named(base));
                let found = match e.kind(ty) {
                    Type::Bool => {
                        let raw = as_type("uint8_t".into());
                        body.push(Stmt::If(raw.clone().with(">", Expr::Int(1)), malformed()));
                        raw.with("!=", Expr::Int(0))
                    }
                    Type::Float(32) => call("quill_f32", [bits]),
                    Type::Float(_) => call("quill_f64", [bits]),
                    Type::Struct(..) | Type::Flat(..) | Type::Array(..) => {
                        let size = Expr::Int(slot.fixed.size.into());
                        body.push(Stmt::Do(call(
                            "__builtin_memcpy",
                            [start(e, ty, value.clone()), address(slot, ARRIVED), size],
                        )));
                        body.extend(elements::look(e, ty, &value, 0));
                        continue;
                    }
                    _ => as_type(e.ty(ty).base),
                };
                body.push(Stmt::Set(value.clone(), found));
                if let Some(wrong) = wrong(e, ty, &value) {
                    body.push(Stmt::If(wrong, malformed()));
                }
            }
            Leaf::Count(_) => {
                let ty = Ty::named(format!("uint{}_t", 8 * slot.fixed.size));
                let found = bits.cast(ty.clone());
                body.push(Stmt::Let(ty, format!("_count_{i}"), Some(found)));
            }
            Leaf::Elements(ty, element) => {
                let count = name(format!("_count_{}", count_slot(message, slot)));
                let from = address(slot, ARRIVED);
                if let Type::Str { bound, .. } = e.kind(ty)
                    && e.counted(ty)
                    && !e.text_inside(ty)
                {
                    let room = format!("_text_{i}");
                    let dims = vec![(4 * bound.unwrap_or(0)).max(1)];
                    body.push(Stmt::Announce(Ty { dims, ..Ty::named("char") }, room.clone()));
                    body.push(Stmt::Set(value.clone().field("_buffer"), name(room)));
                }
                body.extend(unpack_elements(e, ty, value, count, from, element.size));
            }
            // Looked at when all else is known to be good: see `offers`.
            Leaf::Offer(_) => {}
            Leaf::Tail(_) => body.push(Stmt::Let(Ty::named("uint64_t"), format!("_tail_{i}"), Some(bits))),
        }
    }
    body
}

/// Statements that copy so many elements, of `size` bytes each, to a value with room for them.
pub(super) fn unpack_elements(
    e: &Emitter,
    ty: TypeId,
    value: Expr,
    count: Expr,
    from: Expr,
    size: u64,
) -> Vec<Stmt> {
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
    let mut body = Vec::new();
    let direct = message.chunks.iter().any(|chunk| chunk.carrier == Carrier::Direct);
    if has_streams(message) {
        let fixed = Expr::Int((message.memory_bytes / 8).into());
        let parts =
            if several::reads(message) { message.strings().count() as u64 } else { parts_in_memory(message) };
        let strings = Expr::Int(parts.into());
        let of = [name("_room").deref().field("words"), words(), fixed, strings];
        body.extend(several::begin_in(message, of));
        body.push(Stmt::If(name("_in").deref().field("failed"), malformed()));
        body.extend(share(c.emitter, message, "_in"));
        body.extend(give_memory(c.emitter, message, room));
    } else if message.long && !direct {
        let came = words().index(Expr::Int(0)).cast(Ty::named("uint32_t"));
        body.push(Stmt::If(came.with("!=", Expr::Int(dope(message).into())), malformed()));
    }
    if message.memory_bytes > 0 {
        let arrived = name("_room").deref().field("words");
        body.push(Stmt::Let(Ty::named("uint64_t").to(), ARRIVED.into(), Some(arrived)));
    }
    body.extend(unpack(c, message, spots));
    body.extend(unpack_block(c, message, spots, room, taker));
    for path in values::anys(c.emitter, message) {
        body.push(Stmt::If(values::unsound(Interface::at(spots, path)), malformed()));
    }
    let wrong = || malformed().remove(0);
    body.extend(spots.iter().flat_map(|(_, ty, value)| agree::fields(c.emitter, *ty, value, &wrong, 0)));
    body
}

/// Statements that check what a message has in memory and leave its lists where they are: behind those that read its words.
pub(super) fn unpack_block(
    c: &Interface,
    message: &Message,
    spots: &[Spot],
    room: Arrival,
    taker: Maker,
) -> Vec<Stmt> {
    let e = c.emitter;
    let mut body = Vec::new();
    let twice = taker == Maker::Server && looks_twice(c, message);
    let align = || Stmt::Do(call("quill_get_align", [name("_in"), Expr::Int(8)]));
    for (number, chunk) in message.chunks.iter().enumerate() {
        let value = Interface::at(spots, &chunk.path);
        if chunk.element.is_none() {
            body.push(align());
            body.extend(values::get(e, chunk.ty, value, 0));
            continue;
        }
        let (count, bytes, at) =
            (format!("_count_of_{number}"), format!("_bytes_of_{number}"), name(format!("_at_{number}")));
        let mut last = call("quill_last", [at.clone(), name(&bytes)]);
        let element = chunk.element.map_or(1, |element| element.size);
        let bound = chunk.bound.unwrap_or(0);
        let slot = |is_it: fn(&Leaf) -> bool| {
            message.slots.iter().position(|slot| slot.path == chunk.path && is_it(&slot.leaf))
        };
        match chunk.carrier {
            Carrier::String(string) => {
                let len = room.string_bytes(string);
                body.push(Stmt::Let(Ty::named("uint64_t"), bytes.clone(), Some(len)));
                let at = Some(room.string(string));
                body.push(Stmt::Let(Ty::named("char").to(), format!("_at_{number}"), at));
                body.extend(check_string(room, string, name(&bytes), bound, element));
                if matches!(e.kind(chunk.ty), Type::Sequence(..)) {
                    let elements = name(&bytes).with("/", Expr::Int(element.into()));
                    body.push(Stmt::Let(Ty::named("uint64_t"), count.clone(), Some(elements)));
                }
            }
            Carrier::Direct | Carrier::Behind => {
                let counted = slot(|leaf| matches!(leaf, Leaf::Count(_)));
                let found = counted.map_or(Expr::Int(1), |i| name(format!("_count_{i}")));
                body.extend(count_direct([&count, &bytes], found, bound, element));
                let words = call("quill_unknown", [name("_room").deref().field("words")]);
                let words = words.cast(Ty::named("char *"));
                body.push(Stmt::Let(Ty::named("char").to(), format!("_at_{number}"), Some(words)));
                if let Some(i) = slot(|leaf| matches!(leaf, Leaf::Tail(_))) {
                    let tail = name(format!("_tail_{i}"));
                    let complete = Stmt::Do(call("quill_complete", [at.clone(), name(&bytes), tail.clone()]));
                    // The second look finds it done.
                    let twice = twice && matches!(e.kind(chunk.ty), Type::Str { .. });
                    let first = Expr::Not(Box::new(name("_again")));
                    body.push(if twice { Stmt::If(first, vec![complete]) } else { complete });
                    last = tail;
                }
            }
        }
        body.extend(take_list(e, chunk, value, [at, name(&count), name(&bytes), last], taker));
    }
    if has_streams(message) {
        let end = call("quill_is_end", [name("_in")]);
        body.extend([align(), Stmt::If(Expr::Not(Box::new(end)), malformed())]);
    }
    body
}

/// Statements that leave the number of elements and of bytes of a list that is the words of a message, and check them.
pub(super) fn count_direct([count, bytes]: [&str; 2], found: Expr, bound: u64, element: u64) -> [Stmt; 4] {
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
pub(super) fn check_string(room: Arrival, string: u32, bytes: Expr, bound: u64, element: u64) -> Vec<Stmt> {
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
pub(super) fn take_list(
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
pub(super) fn pointer_to(e: &Emitter, of: TypeId) -> Ty {
    let ty = e.ty(of);
    if ty.dims.is_empty() { ty.to() } else { Ty::named("void *") }
}
