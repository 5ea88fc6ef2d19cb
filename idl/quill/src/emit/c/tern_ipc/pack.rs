//! How values get into a message: into words, beside them, and in pieces.

use super::*;

/// Statements that put a message into the words, which are zero.
pub(super) fn pack(c: &Interface, message: &Message, spots: &[Spot], making: Making) -> Vec<Stmt> {
    let e = c.emitter;
    let checks = spots.iter().flat_map(|(_, ty, value)| agree::fields(e, *ty, value, &refused, 0));
    let mut body: Vec<Stmt> = checks.collect();
    let plan = Plan::keeping(e.model, message, |chunk| making.maker.keeps(e, chunk));
    body.extend(pack_memory(c, &plan, spots, making));
    for step in &plan.fixed {
        pack_step(e, step, Interface::at(spots, step.path), making, &mut body);
    }
    body
}

/// Statements that put a value of the fixed part into its place.
fn pack_step(e: &Emitter, step: &Step, value: Expr, making: Making, body: &mut Vec<Stmt>) {
    let memory = making.maker.block();
    let (words, word, byte) = place(step, memory);
    let here = || words.clone().index(Expr::Int(word.into()));
    let merge = |bits: Expr| {
        let bits = if byte > 0 { bits.with("<<", Expr::Int((byte * 8).into())) } else { bits };
        Stmt::Set(here(), here().with("|", bits))
    };
    let copy =
        |from: Expr, bytes: Expr| Stmt::Do(call("__builtin_memcpy", [address(step, memory), from, bytes]));
    match step.what {
        What::Value => {
            if let Some(wrong) = wrong_bits(e, step.ty, &value) {
                body.push(Stmt::If(wrong, malformed()));
            } else if matches!(e.kind(step.ty), Type::Array(..)) {
                body.extend(elements::look(e, step.ty, &value, 0));
            }
            body.push(match bits(e, step.ty, &value) {
                Some(bits) => merge(bits),
                None => copy(start(e, step.ty, value), Expr::Int(step.bytes.into())),
            });
        }
        What::Count(Some(list)) => body.push(merge(sent("count", list))),
        What::Count(None) => {
            let count = format!("_length_{}", step.number);
            let Some((length, limit)) = length(e, step.ty, value) else { return };
            body.push(Stmt::Let(Ty::named("uint32_t"), count.clone(), Some(length)));
            body.push(Stmt::If(name(&count).with(">", Expr::Int(limit.into())), vec![refused()]));
            body.push(merge(name(&count).cast(Ty::named("uint64_t"))));
        }
        What::Elements(element, count) => {
            body.extend(elements::look(e, step.ty, &value, 0));
            let count = name(format!("_length_{}", count.unwrap_or(0)));
            body.push(copy(elements(e, step.ty, value), count.with("*", Expr::Int(element.into()))));
        }
        What::Offer(number, _) if making.offers => body.push(merge(offers::number(number))),
        // The word stays 0, and the bytes are sent.
        What::Offer(..) => {}
        What::Tail(list) => {
            body.push(merge(call("quill_tail", ["lies", "bytes", "few"].map(|what| sent(what, list)))));
        }
    }
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

/// A variable about a list that is sent from where it lies.
fn sent(what: &str, list: usize) -> Expr {
    name(format!("_{what}_sent_{list}"))
}

/// How many strings, and how many parameters that are handed over, a part in memory describes: as a dope has it from bit 12 on.
pub(super) fn described(block: Block) -> u64 {
    block.strings + block.items * ITEM
}

/// One item, beside the number of strings.
const ITEM: u64 = 1 << 8;

/// Statements that say which lists go from where they lie, and leave dope and address in the first two words.
fn pack_memory(c: &Interface, plan: &Plan, spots: &[Spot], making: Making) -> Vec<Stmt> {
    let maker = making.maker;
    let (block, mut body) = match plan.memory {
        Memory::None => return Vec::new(),
        Memory::List => (None, Vec::new()),
        Memory::Block(block) => (Some(block), begin_block(c, plan, block, spots, making)),
    };
    for list in plan.lists() {
        pack_list(c.emitter, list, Interface::at(spots, &list.chunk.path), making, &mut body);
    }
    for item in &plan.items {
        let places = [item.at, item.at.next()].map(|at| maker.word(at));
        body.extend(references::item(item.handed, spots, maker, places));
    }
    if let Some(block) = block.filter(|block| block.within > 0) {
        let described = maker.word(block.within_at()).address();
        let count = call("quill_describe", [name(several::HANDING), described]);
        body.push(Stmt::Set(words().index(Expr::Int(0)), words().index(Expr::Int(0)).with("+", count)));
    }
    body
}

/// Statements that describe a list: as a string, or in the first words as all that the message has in memory.
fn pack_list(e: &Emitter, list: &Variable, value: Expr, making: Making, body: &mut Vec<Stmt>) {
    let long = || Ty::named("uint64_t");
    let variable = |what: &str| format!("_{what}_sent_{}", list.number);
    let (count, bytes, lies) = (variable("count"), variable("bytes"), variable("lies"));
    let first = elements(e, list.chunk.ty, value.clone());
    let unknown = call("quill_unknown", [first.clone()]);
    body.push(Stmt::Let(Ty::named("char").to().constant(), lies.clone(), Some(unknown)));
    let found = list_length(e, list, value, name(&lies), making.oneway);
    body.push(Stmt::Let(long(), count.clone(), Some(found)));
    if list.content != Content::Array {
        body.push(Stmt::If(name(&count).with(">", Expr::Int(list.most().into())), vec![refused()]));
    }
    let size = name(&count).with("*", Expr::Int(list.element().into()));
    body.push(Stmt::Let(long(), bytes.clone(), Some(size)));
    if let Some(kept) = list.kept {
        let to = name(making.maker.block()).with("+", Expr::Int(kept.into()));
        body.push(Stmt::Do(call("__builtin_memcpy", [to.clone(), first, name(&bytes)])));
        body.push(Stmt::Set(name(&lies), to.cast(Ty::named("char").to())));
    }
    let lies = call("quill_address", [name(&lies)]);
    if let Some((_, at)) = list.string {
        body.push(Stmt::Set(making.maker.word(at), lies));
        body.push(Stmt::Set(making.maker.word(at.next()), name(&bytes)));
        return;
    }
    let few = variable("few");
    body.push(Stmt::Let(Ty::named("bool"), few.clone(), None));
    let whole = call("quill_whole", [name(&bytes), name(&few).address()]);
    body.push(Stmt::Set(words().index(Expr::Int(0)), whole));
    body.push(Stmt::Set(words().index(Expr::Int(1)), lies));
    // A list of whole words has no tail.
    body.push(Stmt::Do(name(&few).cast(Ty::named("void"))));
}

/// Statements that make the words of a message in memory, and leave dope and address in the first two.
fn begin_block(c: &Interface, plan: &Plan, block: Block, spots: &[Spot], making: Making) -> Vec<Stmt> {
    let (mut body, maker) = (Vec::new(), making.maker);
    let memory = || name(maker.block());
    if maker == Maker::Client {
        let array = Ty { dims: vec![plan.words.max(1)], ..Ty::named("uint64_t") };
        body.push(Stmt::Let(array, maker.block().into(), None));
    } else if block.fixed > 0 {
        let all = [memory(), Expr::Int(0), Expr::Int((8 * block.fixed).into())];
        body.push(Stmt::Do(call("__builtin_memset", all)));
    }
    let dope = match block.pieces_end {
        Some(end) => {
            body.extend(pack_pieces(c, plan, (block, end), spots, making));
            name(STREAM_WORDS).with("|", Expr::Int((described(block) << 12).into()))
        }
        None => Expr::Int(dope(block).into()),
    };
    body.push(Stmt::Set(words().index(Expr::Int(0)), dope));
    body.push(Stmt::Set(words().index(Expr::Int(1)), call("quill_address", [memory()])));
    body
}

/// The dope of a message whose words in memory are a fixed number.
pub(super) fn dope(block: Block) -> u64 {
    block.fixed + (described(block) << 12)
}

/// How many elements a list has, or bytes a text that `lies` somewhere, with every check of it.
fn list_length(e: &Emitter, list: &Variable, value: Expr, lies: Expr, oneway: bool) -> Expr {
    match list.content {
        Content::Text(characters) => {
            let most = list.most();
            let characters = characters.unwrap_or(most);
            // Nobody hears of a oneway request that is refused.
            let checked = name(if oneway { "true" } else { "false" });
            let most = [Expr::Int(most.into()), Expr::Int(characters.into()), checked];
            let (function, text) = if e.counted(list.chunk.ty) {
                ("quill_counted_size", [lies, value.field("_length")])
            } else {
                ("quill_text_size", [value, lies])
            };
            call(function, text.into_iter().chain(most))
        }
        Content::List(_) => value.field("_length"),
        Content::Array | Content::Pieces => Expr::Int(1),
    }
}

/// How many words a message has in memory whose number is not known.
const STREAM_WORDS: &str = "_stream_words";

impl Maker {
    /// The words that describe the part of its message in memory.
    fn block(self) -> &'static str {
        match self {
            Maker::Client => "_block",
            Maker::Server => "_kept",
        }
    }

    /// One of them.
    pub(super) fn word(self, at: Word) -> Expr {
        name(self.block()).index(match at {
            Word::At(word) => Expr::Int(word.into()),
            Word::Behind(words) => name(STREAM_WORDS).with("+", Expr::Int(words.into())),
        })
    }

    /// Whether it copies a list.
    fn keeps(self, e: &Emitter, chunk: &Chunk) -> bool {
        self == Maker::Server && !lies_elsewhere(e, chunk)
    }
}

/// Words of a reply that a server keeps.
pub(super) fn kept_words(e: &Emitter, reply: &Message) -> u64 {
    plan::words(reply, |chunk| Maker::Server.keeps(e, chunk))
}

/// Statements that write what is read piece by piece behind the fixed part in memory, up to the word `end`.
fn pack_pieces(
    c: &Interface,
    plan: &Plan,
    (block, end): (Block, u64),
    spots: &[Spot],
    making: Making,
) -> Vec<Stmt> {
    let begin = name(making.maker.block()).with("+", Expr::Int(block.fixed.into())).cast(Ty::named("char *"));
    let out = || name("_out");
    let align = || Stmt::Do(call("quill_put_align", [out(), Expr::Int(8)]));
    let begun = call("quill_begin_out", [begin, Expr::Int((8 * (end - block.fixed)).into())]);
    let mut body = several::begin_out(block, making, begun);
    body.extend(share(c.emitter, plan, "_out"));
    for Variable { chunk, .. } in plan.pieces() {
        body.push(align());
        body.extend(several::mark(c.emitter, chunk, making.replaced));
        body.extend(pieces::put(c.emitter, chunk.ty, Interface::at(spots, &chunk.path), 0));
    }
    let status = || out().deref().field("status");
    let written = out().deref().field("length").with("/", Expr::Int(8));
    let all = Expr::Int(block.fixed.into()).with("+", written);
    body.extend([
        align(),
        Stmt::If(status().with("!=", name("QUILL_OK")), vec![Stmt::Return(Some(status()))]),
        Stmt::Let(Ty::named("uint64_t"), STREAM_WORDS.into(), Some(all)),
    ]);
    body
}
