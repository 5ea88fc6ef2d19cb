//! How values get into a message: into words, beside them, and in pieces.

use super::*;

/// Statements that put a message into the words, which are zero.
pub(super) fn pack(c: &Interface, message: &Message, spots: &[Spot], making: Making) -> Vec<Stmt> {
    let e = c.emitter;
    let checks = spots.iter().flat_map(|(_, ty, value)| agree::fields(e, *ty, value, &refused, 0));
    let mut body: Vec<Stmt> = checks.collect();
    body.extend(pack_block(c, message, spots, making));
    for (i, slot) in message.slots.iter().enumerate() {
        let value = Interface::at(spots, &slot.path);
        let memory = making.maker.block();
        let (words, word, byte) = place(slot, memory);
        let here = || words.clone().index(Expr::Int(word.into()));
        let merge = |bits: Expr| {
            let bits = if byte > 0 { bits.with("<<", Expr::Int((byte * 8).into())) } else { bits };
            Stmt::Set(here(), here().with("|", bits))
        };
        let long = Ty::named("uint64_t");
        match slot.leaf {
            Leaf::Value(ty) => {
                if let Some(wrong) = wrong(e, ty, &value) {
                    body.push(Stmt::If(wrong, malformed()));
                } else if matches!(e.kind(ty), Type::Array(..)) {
                    body.extend(elements::look(e, ty, &value, 0));
                }
                body.push(if let Some(bits) = bits(e, ty, &value) {
                    merge(bits)
                } else {
                    let size = Expr::Int(slot.fixed.size.into());
                    let from = start(e, ty, value);
                    Stmt::Do(call("__builtin_memcpy", [address(slot, memory), from, size]))
                });
            }
            Leaf::Count(_) if message.chunks.iter().any(|chunk| chunk.path == slot.path) => {
                body.push(merge(sent(message, slot, "count")));
            }
            Leaf::Count(ty) => {
                let count = format!("_length_{i}");
                let Some((length, limit)) = length(e, ty, value) else { continue };
                body.push(Stmt::Let(Ty::named("uint32_t"), count.clone(), Some(length)));
                let too_long = name(&count).with(">", Expr::Int(limit.into()));
                body.push(Stmt::If(too_long, vec![Stmt::Return(Some(name("QUILL_TOO_LONG")))]));
                body.push(merge(name(&count).cast(long)));
            }
            Leaf::Elements(ty, element) => {
                let count = name(format!("_length_{}", count_slot(message, slot)));
                body.extend(elements::look(e, ty, &value, 0));
                let from = elements(e, ty, value);
                let size = count.with("*", Expr::Int(element.size.into()));
                body.push(Stmt::Do(call("__builtin_memcpy", [address(slot, memory), from, size])));
            }
            Leaf::Offer(_) if making.offers => body.push(merge(offers::number(message, slot))),
            // The word stays 0, and the bytes are sent.
            Leaf::Offer(_) => {}
            Leaf::Tail(_) => {
                let of = |what| sent(message, slot, what);
                body.push(merge(call("quill_tail", [of("lies"), of("bytes"), of("few")])));
            }
        }
    }
    body
}

/// A value as bits of a word, if it is not a record or an array.
pub(super) fn bits(e: &Emitter, ty: TypeId, value: &Expr) -> Option<Expr> {
    let long = Ty::named("uint64_t");
    let narrow = |bits: u8| value.clone().cast(Ty::named(format!("uint{bits}_t"))).cast(long);
    Some(match e.kind(ty) {
        Type::Bool | Type::Octet | Type::Char => narrow(8),
        Type::WideChar | Type::Enum(..) => narrow(32),
        Type::Int { bits, .. } | Type::Bitmask(_, bits, _) => narrow(*bits),
        Type::Object(_) | Type::Fixed(..) => narrow(64),
        Type::Float(32) => call("quill_bits_f32", [value.clone()]),
        Type::Float(_) => call("quill_bits_f64", [value.clone()]),
        _ => return None,
    })
}

/// The number of a list's elements, or of a text's bytes, and how large it may be.
pub(super) fn length(e: &Emitter, ty: TypeId, value: Expr) -> Option<(Expr, u64)> {
    Some(match e.kind(ty) {
        Type::Str { bound, .. } if e.counted(ty) => {
            let bound = bound.unwrap_or(0);
            let text = [value.clone().field("_buffer"), value.field("_length")];
            let most = Expr::Int(bound.into());
            (call("quill_counted_bytes", text.into_iter().chain([most])), 4 * bound)
        }
        Type::Str { bound, .. } => {
            let bound = bound.unwrap_or(0);
            (call("quill_text_bytes", [value, Expr::Int(bound.into())]), 4 * bound)
        }
        Type::Sequence(_, bound) => (value.field("_length"), bound.unwrap_or(0)),
        _ => return None,
    })
}

/// The number of the slot with the count of the elements in another one.
pub(super) fn count_slot(message: &Message, elements: &Slot) -> usize {
    let is_count = |slot: &Slot| matches!(slot.leaf, Leaf::Count(_)) && slot.path == elements.path;
    message.slots.iter().position(is_count).unwrap_or(0)
}

/// The variable with the number of elements or bytes of a list that is sent from where it lies.
pub(super) fn sent(message: &Message, slot: &Slot, what: &str) -> Expr {
    let number = message.chunks.iter().position(|chunk| chunk.path == slot.path).unwrap_or(0);
    name(format!("_{what}_sent_{number}"))
}

/// How many strings a message has in memory, and how many parameters are handed over from there: as a dope says it, from bit 12 on.
pub(super) fn parts_in_memory(message: &Message) -> u64 {
    let items = if message.long { message.handed().count() as u64 } else { 0 };
    message.strings().count() as u64 + items * ITEM
}

/// One item, beside the number of strings.
pub(super) const ITEM: u64 = 1 << 8;

/// The dope of a message whose words in memory are a fixed number.
pub(super) fn dope(message: &Message) -> u64 {
    message.memory_bytes / 8 + (parts_in_memory(message) << 12)
}

/// Statements that say which lists go from where they lie, and leave dope and address in the first two words.
pub(super) fn pack_block(c: &Interface, message: &Message, spots: &[Spot], making: Making) -> Vec<Stmt> {
    let (e, maker) = (c.emitter, making.maker);
    if !message.long {
        return Vec::new();
    }
    let long = || Ty::named("uint64_t");
    let direct = message.chunks.iter().any(|chunk| chunk.carrier == Carrier::Direct);
    let descriptor = |at: u64| behind_words(message, maker, at);
    let mut body = if direct { Vec::new() } else { begin_block(c, message, spots, making) };
    let mut kept = message.block_words();
    let lists = message.chunks.iter().filter(|chunk| chunk.element.is_some());
    for (number, chunk) in lists.enumerate() {
        let value = Interface::at(spots, &chunk.path);
        let bound = chunk.bound.unwrap_or(0);
        let element = chunk.element.map_or(1, |element| element.size);
        let variable = |what: &str| format!("_{what}_sent_{number}");
        let (count, bytes, lies) = (variable("count"), variable("bytes"), variable("lies"));
        let first = elements(e, chunk.ty, value.clone());
        let unknown = call("quill_unknown", [first.clone()]);
        body.push(Stmt::Let(Ty::named("char").to().constant(), lies.clone(), Some(unknown)));
        let found = list_length(e, chunk, value, name(&lies), making.oneway);
        body.push(Stmt::Let(long(), count.clone(), Some(found)));
        if !matches!(e.kind(chunk.ty), Type::Array(..)) {
            let too_long = name(&count).with(">", Expr::Int(bound.into()));
            body.push(Stmt::If(too_long, vec![Stmt::Return(Some(name("QUILL_TOO_LONG")))]));
        }
        let size = name(&count).with("*", Expr::Int(element.into()));
        body.push(Stmt::Let(long(), bytes.clone(), Some(size)));
        if maker == Maker::Server && !lies_elsewhere(e, chunk) {
            let to = name(maker.block()).with("+", Expr::Int(kept.into()));
            body.push(Stmt::Do(call("__builtin_memcpy", [to.clone(), first, name(&bytes)])));
            kept += chunk.bytes_max().unwrap_or(0).div_ceil(8);
            body.push(Stmt::Set(name(&lies), to.cast(Ty::named("char").to())));
        }
        let lies = call("quill_address", [name(&lies)]);
        if direct {
            let few = variable("few");
            body.push(Stmt::Let(Ty::named("bool"), few.clone(), None));
            let whole = call("quill_whole", [name(&bytes), name(&few).address()]);
            body.push(Stmt::Set(words().index(Expr::Int(0)), whole));
            body.push(Stmt::Set(words().index(Expr::Int(1)), lies));
            // A list of whole words has no tail.
            body.push(Stmt::Do(name(&few).cast(Ty::named("void"))));
        } else {
            let at = 2 * number as u64;
            body.push(Stmt::Set(descriptor(at), lies));
            body.push(Stmt::Set(descriptor(at + 1), name(&bytes)));
        }
    }
    let mut at = 2 * message.strings().count() as u64;
    for handed in message.handed() {
        body.extend(references::item(handed, spots, maker, [descriptor(at), descriptor(at + 1)]));
        at += 2;
    }
    if message.references_within() > 0 {
        let count = call("quill_describe", [name(several::HANDING), descriptor(at).address()]);
        body.push(Stmt::Set(words().index(Expr::Int(0)), words().index(Expr::Int(0)).with("+", count)));
    }
    body
}

/// Statements that make the words of a message in memory, and leave dope and address in the first two.
pub(super) fn begin_block(c: &Interface, message: &Message, spots: &[Spot], making: Making) -> Vec<Stmt> {
    let (mut body, maker) = (Vec::new(), making.maker);
    let fixed = message.memory_bytes / 8;
    let block = || name(maker.block());
    if maker == Maker::Client {
        let array = Ty { dims: vec![message.block_words().max(1)], ..Ty::named("uint64_t") };
        body.push(Stmt::Let(array, maker.block().into(), None));
    } else if fixed > 0 {
        let all = [block(), Expr::Int(0), Expr::Int((8 * fixed).into())];
        body.push(Stmt::Do(call("__builtin_memset", all)));
    }
    body.extend(pack_streams(c, message, spots, making));
    let (constant, parts) =
        (Expr::Int(dope(message).into()), Expr::Int((parts_in_memory(message) << 12).into()));
    let dope = if has_streams(message) { name(STREAM_WORDS).with("|", parts) } else { constant };
    body.push(Stmt::Set(words().index(Expr::Int(0)), dope));
    body.push(Stmt::Set(words().index(Expr::Int(1)), call("quill_address", [block()])));
    body
}

/// A word that is so many words behind those of the message in memory, however many these are.
pub(super) fn behind_words(message: &Message, maker: Maker, number: u64) -> Expr {
    let constant = |number: u64| Expr::Int(number.into());
    name(maker.block()).index(if has_streams(message) {
        name(STREAM_WORDS).with("+", constant(number))
    } else {
        constant(message.memory_bytes / 8 + number)
    })
}

/// How many elements a list has, or bytes a text that `lies` somewhere, with every check of it.
pub(super) fn list_length(e: &Emitter, chunk: &Chunk, value: Expr, lies: Expr, oneway: bool) -> Expr {
    match e.kind(chunk.ty) {
        Type::Str { bound: characters, .. } => {
            let bound = chunk.bound.unwrap_or(0);
            let characters = characters.unwrap_or(bound);
            // Nobody hears of a oneway request that is refused.
            let checked = name(if oneway { "true" } else { "false" });
            let most = [Expr::Int(bound.into()), Expr::Int(characters.into()), checked];
            let (function, text) = if e.counted(chunk.ty) {
                ("quill_counted_size", [lies, value.field("_length")])
            } else {
                ("quill_text_size", [value, lies])
            };
            call(function, text.into_iter().chain(most))
        }
        Type::Sequence(..) => value.field("_length"),
        _ => Expr::Int(1),
    }
}

/// How many words a message has in memory whose number is not known.
pub(super) const STREAM_WORDS: &str = "_stream_words";

pub(super) fn has_streams(message: &Message) -> bool {
    message.streams().next().is_some()
}

/// Statements that write what is read piece by piece behind the fixed part in memory.
pub(super) fn pack_streams(c: &Interface, message: &Message, spots: &[Spot], making: Making) -> Vec<Stmt> {
    let maker = making.maker;
    if !has_streams(message) {
        return Vec::new();
    }
    let fixed = message.memory_bytes / 8;
    let begin = name(maker.block()).with("+", Expr::Int(fixed.into())).cast(Ty::named("char *"));
    let out = || name("_out");
    let align = || Stmt::Do(call("quill_put_align", [out(), Expr::Int(8)]));
    let begun = call("quill_begin_out", [begin, Expr::Int(message.stream_bytes.into())]);
    let mut body = several::begin_out(message, making, begun);
    body.extend(share(c.emitter, message, "_out"));
    for chunk in message.streams() {
        body.push(align());
        body.extend(several::mark(c.emitter, chunk, making.replaced));
        body.extend(values::put(c.emitter, chunk.ty, Interface::at(spots, &chunk.path), 0));
    }
    let status = || out().deref().field("status");
    let written = out().deref().field("length").with("/", Expr::Int(8));
    body.extend([
        align(),
        Stmt::If(status().with("!=", name("QUILL_OK")), vec![Stmt::Return(Some(status()))]),
        Stmt::Let(
            Ty::named("uint64_t"),
            STREAM_WORDS.into(),
            Some(Expr::Int(fixed.into()).with("+", written)),
        ),
    ]);
    body
}
