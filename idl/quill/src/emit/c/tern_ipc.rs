//! C over Tern, by ipc or through doors: values between variables and the words of a short message.
//!
//! Words are an array of constant indices, which compilers keep in registers. Short lists lie inside their structs and short
//! texts in arrays, with room for as much as their bounds allow, so nobody allocates: a caller brings the room. Longer ones
//! are sent from where they lie, and a server uses them where they arrive.
//!
//! A server is one function for each interface, with its methods in it. Each method has a stretch of code from its request
//! to the next one, to which it jumps by a table in the function's stack frame.
//!
//! Through a door, a client is the one by ipc with another call: see [`Way`]. What a call begins with is in [`door`].

use std::fmt::Write;

use super::tree::{Expr, Item, Parameters, Stmt, Ty, call, name};
use super::{Emitter, Lists, Part, agree, interface, word};
use crate::emit::travel::streamed;
use crate::kernel::table_bits;
use crate::layout::{Carrier, Chunk, Handed, InterfaceLayout, Leaf, Message, Method, Place, Room, Slot};
use crate::marshal::Lying;
use crate::model::{Operation, Type, TypeId};
use crate::sizes::for_all_types;

use interface::{Interface, Spot, borrowed, status};

use super::linux::values;

mod door;
mod pages;
mod references;

/// C over Tern, in one of its ways.
#[derive(Clone, Copy, Debug)]
pub struct Tern(pub &'static Way);

/// How a message gets to a server: the functions and constants of the runtime.
#[derive(Debug)]
pub struct Way {
    /// The type of what a client calls; without one, it is a reference to an object.
    callee: Option<&'static str>,
    /// What calls it; with `_long`, if the request has a part in memory, and `_taking`, if the reply may bring more than words.
    call: &'static str,
    /// `rax` after a call that succeeded, without and with a part of the reply in memory.
    done: [&'static str; 2],
    /// What makes of `rax` that of a call by ipc, if it is another one.
    reply: Option<&'static str>,
    /// What makes a status of a call to which nothing comes back, if it is a call at all.
    sent: Option<&'static str>,
    /// Whether a call begins a server's function, which does not hear from whom. Otherwise it comes to a loop.
    begins: bool,
}

/// By ipc.
pub const IPC: Way = Way {
    callee: Some("tern_uid"),
    call: "quill_ipc_call",
    done: ["QUILL_DONE", "QUILL_LONG_DONE"],
    reply: None,
    sent: None,
    begins: false,
};

/// Through doors.
pub const DOOR: Way = Way {
    callee: None,
    call: "quill_door_call",
    done: ["QUILL_DOOR_DONE", "QUILL_DOOR_LONG_DONE"],
    reply: Some("quill_door_reply"),
    sent: Some("quill_door_sent"),
    begins: true,
};

impl Part for Tern {
    fn runtime(&self) -> &'static str {
        macro_rules! of_ipc {
            ($($more:tt)*) => {
                concat!(
                    include_str!("utf8.h"),
                    include_str!("tern_ipc_runtime.h"),
                    include_str!("stream_places.h"),
                    include_str!("tern_stream.h"),
                    include_str!("stream.h"),
                    include_str!("places_shared.h"),
                    include_str!("stream_shared.h"),
                    include_str!("stream_texts.h"),
                    include_str!("tern_serve.h"),
                    $($more)*
                )
            };
        }
        if self.0.begins { of_ipc!("\n", include_str!("tern_references.h")) } else { of_ipc!() }
    }

    fn hands_references(&self) -> bool {
        self.0.begins
    }

    fn lists(&self) -> Lists {
        Lists::Inside(ELEMENTS_MAX)
    }

    fn carries(&self, emitter: &Emitter, ty: TypeId) -> bool {
        let flat = |of: TypeId| emitter.sizes.fixed(of).is_some() && emitter.sizes.flat(of);
        match emitter.model.ty(emitter.model.resolved(ty)) {
            // An array is copied as it is, so whatever its bytes are must be a value. Without a fixed size it is read piece by
            // piece.
            Type::Sequence(of, bound) if emitter.sizes.is_looked_at(*of, *bound) => true,
            Type::Sequence(of, _) | Type::Array(of, _) => emitter.sizes.fixed(*of).is_none() || flat(*of),
            Type::Object(_) => !self.hands_references(),
            _ => true,
        }
    }

    fn refuses(&self, emitter: &Emitter, _: &Operation, method: &Method) -> Option<String> {
        let kept = method.replies().map(|reply| kept_words(emitter, reply)).max().unwrap_or(0);
        let bytes = 8 * KEPT_WORDS_MAX;
        (kept > KEPT_WORDS_MAX)
            .then(|| format!("what comes back, arrays and short lists, has more than {bytes} bytes"))
    }

    fn values(&self, emitter: &Emitter) -> Vec<Item> {
        let streamed = streamed(emitter.model, &emitter.sizes, Lying::Long);
        let mut items = if self.0.begins { references::types(emitter) } else { Vec::new() };
        items.extend(values::functions(emitter, |id| streamed[id.0 as usize]));
        items
    }

    fn interface(&self, emitter: &Emitter, layout: &InterfaceLayout, operations: &[&Operation]) -> Vec<Item> {
        let c = Interface { emitter, interface: &emitter.model.interfaces[layout.interface.0 as usize].name };
        let way = self.0;
        let caller = caller(way);
        // The loop that serves other interfaces can neither send nor get them.
        if !way.begins && layout.methods.iter().any(Method::hands_pages) {
            return handing_pages(way, &c, layout, operations);
        }
        let mut items = c.declarations(operations, caller.as_ref());
        let room = layout.room();
        let replies = layout.replies();
        if way.begins {
            items.extend(door::room(&c, &room));
        } else if room.needed {
            let mut requests = layout.methods.iter().map(|method| &method.request);
            let memory = requests.any(|request| needs_memory(c.emitter, request));
            items.extend(room_record(&c, &room, "room", memory));
        }
        if replies.needed {
            items.extend(room_record(&c, &replies, "replies", replies_need_memory(&c, layout)));
        }
        let place = if way.begins { Arrival::Shared } else { Arrival::Own(&room) };
        for (operation, method) in operations.iter().copied().zip(&layout.methods) {
            items.push(client(way, &c, layout, (operation, method)));
            if way.begins {
                items.extend(references::owner(&c, layout, operation, method));
            }
            items.push(answer(way, &c, operation, method, place));
        }
        if way.begins {
            items.push(references::narrow(&c, layout));
            items.push(Item::Text(door::server(&c, operations, layout, &room)));
        } else {
            items.push(dispatch(&c, operations, &layout.methods));
            items.extend(unless_own_ipc(serve(&c, operations, &layout.methods, &room)));
        }
        if replies.needed {
            items.extend(unless_own_ipc(open(&c, &replies)));
        }
        items
    }
}

/// An interface by ipc some of whose methods hand over pages.
fn handing_pages(way: &Way, c: &Interface, layout: &InterfaceLayout, operations: &[&Operation]) -> Vec<Item> {
    let has_server = pages::fits(layout);
    let mut items = if has_server {
        c.declarations(operations, caller(way).as_ref())
    } else {
        let comment = format!("The interface {}, of which there are clients only.", c.interface);
        [vec![Item::Comment(comment)], c.unions(operations)].concat()
    };
    let replies = layout.replies();
    if replies.needed {
        items.extend(room_record(c, &replies, "replies", replies_need_memory(c, layout)));
    }
    let methods = operations.iter().zip(&layout.methods);
    items.extend(methods.map(|(operation, method)| client(way, c, layout, (operation, method))));
    if replies.needed {
        items.extend(unless_own_ipc(open(c, &replies)));
    }
    if has_server {
        items.extend(pages::server(c, operations, &layout.methods));
    }
    items
}

/// Text that a program leaves out which brings system calls of its own.
fn unless_own_ipc(text: String) -> [Item; 3] {
    [Item::Verbatim("#ifndef QUILL_OWN_IPC\n"), Item::Text(text), Item::Verbatim("#endif\n")]
}

/// The parameter of a method that says who calls.
fn caller(way: &Way) -> Option<(Ty, String)> {
    (!way.begins).then(|| (Ty::named("tern_uid"), "_from".into()))
}

/// Whether something that is read piece by piece has a list that does not lie in its value, or no end.
fn has_list_elsewhere(e: &Emitter, ty: TypeId) -> bool {
    let elsewhere = |ty: TypeId, of: &mut dyn FnMut(TypeId) -> bool| match e.model.ty(ty) {
        Type::Optional(_) | Type::Shared(_) => true,
        Type::Sequence(element, bound) => !e.inside(*bound) || of(*element),
        Type::Array(element, _) => of(*element),
        Type::Struct(_, fields) => fields.iter().any(|f| of(f.ty)),
        Type::Union { branches, .. } => branches.iter().any(|b| of(b.field.ty)),
        _ => false,
    };
    e.elsewhere.get_or_init(|| for_all_types(e.model, true, &elsewhere))[ty.0 as usize]
}

/// Elements of a list that could ever be in registers.
const ELEMENTS_MAX: u64 = 88;

fn words() -> Expr {
    name("_words")
}

fn malformed() -> Vec<Stmt> {
    vec![Stmt::Return(Some(name("QUILL_MALFORMED")))]
}

/// The end of a function whose values do not agree.
fn refused() -> Stmt {
    Stmt::Return(Some(name("QUILL_TOO_LONG")))
}

/// Who makes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    /// Its arguments stay where they are until the message is sent.
    Client,
    /// Its variables do not: what is not elsewhere is kept in the server's frame.
    Server,
}

impl Maker {
    /// The words that describe the part of its message in memory.
    fn block(self) -> &'static str {
        match self {
            Maker::Client => "_block",
            Maker::Server => "_kept",
        }
    }
}

/// The words of a message that has arrived, as far as they are in memory.
const ARRIVED: &str = "_arrived";

/// Where the parts of a message in memory arrive.
#[derive(Clone, Copy)]
enum Arrival<'a> {
    /// In a record of the interface.
    Own(&'a Room),
    /// In one that all interfaces of a program share. The buffers for strings lie anywhere.
    Shared,
}

impl Arrival<'_> {
    /// The record's type.
    fn record(self, c: &Interface) -> String {
        match self {
            Arrival::Own(_) => c.function("room"),
            Arrival::Shared => "quill_door_room".into(),
        }
    }

    /// How many bytes a string has.
    fn string_bytes(self, string: u32) -> Expr {
        match self {
            Arrival::Own(room) => {
                call("quill_string_bytes", [name("_room"), Expr::Int(descriptor(room, string).into())])
            }
            Arrival::Shared => call("quill_shared_bytes", [name("_room"), Expr::Int(string.into())]),
        }
    }

    /// Where it is.
    fn string(self, string: u32) -> Expr {
        match self {
            Arrival::Own(room) => {
                let buffers = name("_room").deref().field("buffers");
                buffers.with("+", Expr::Int(begin(room, string).into()))
            }
            Arrival::Shared => call("quill_shared_string", [name("_room"), Expr::Int(string.into())]),
        }
    }

    /// Whether the kernel lets through a string that is longer than that.
    fn takes_more(self, string: u32, bytes: u64) -> bool {
        match self {
            Arrival::Own(room) => {
                room.capacities.get(string as usize).is_some_and(|&capacity| capacity > bytes)
            }
            Arrival::Shared => true,
        }
    }
}

/// Words that a server keeps for its replies, on its stack.
const KEPT_WORDS_MAX: u64 = 4096;

/// Whether a list lies elsewhere and not in its value.
fn lies_elsewhere(e: &Emitter, chunk: &Chunk) -> bool {
    match e.kind(chunk.ty) {
        Type::Str { .. } => !e.text_inside(chunk.ty),
        Type::Sequence(_, bound) => !e.inside(*bound),
        _ => false,
    }
}

/// Words of a reply that a server keeps.
fn kept_words(e: &Emitter, reply: &Message) -> u64 {
    let lists = reply.chunks.iter().filter(|chunk| !lies_elsewhere(e, chunk)).filter_map(Chunk::bytes_max);
    lists.fold(reply.block_words(), |sum, bytes| sum.saturating_add(bytes.div_ceil(8)))
}

/// Whether a method's client needs an inbox.
fn has_long_reply(method: &Method) -> bool {
    method.replies().any(|reply| reply.long)
}

/// The place of a slot: the words that it is among, the word, the byte. `memory` are the words in memory.
fn place(slot: &Slot, memory: &str) -> (Expr, u64, u64) {
    match slot.place {
        Place::Register(word, byte) => (words(), word.into(), byte.into()),
        Place::Memory(at) => (name(memory), at / 8, at % 8),
    }
}

/// The address of a slot in the words.
fn address(slot: &Slot, memory: &str) -> Expr {
    let (words, word, byte) = place(slot, memory);
    words.cast(Ty::named("char *")).with("+", Expr::Int((word * 8 + byte).into()))
}

/// Where the first element of a list is.
fn elements(e: &Emitter, ty: TypeId, value: Expr) -> Expr {
    if e.counted(ty) || matches!(e.kind(ty), Type::Sequence(..)) { value.field("_buffer") } else { value }
}

/// The address of a value's first byte; an array is one.
fn start(e: &Emitter, ty: TypeId, value: Expr) -> Expr {
    if matches!(e.kind(ty), Type::Array(..)) { value } else { value.address() }
}

/// A condition under which a number is no value of its type.
fn wrong(e: &Emitter, ty: TypeId, value: &Expr) -> Option<Expr> {
    match e.kind(ty) {
        Type::WideChar => Some(Expr::Not(Box::new(call("quill_is_scalar", [value.clone()])))),
        _ => values::wrong(e, ty, value.clone()),
    }
}

/// Statements that put a message into the words, which are zero.
fn pack(c: &Interface, message: &Message, spots: &[Spot], oneway: bool, maker: Maker) -> Vec<Stmt> {
    let e = c.emitter;
    let checks = spots.iter().flat_map(|(_, ty, value)| agree::fields(e, *ty, value, &refused, 0));
    let mut body: Vec<Stmt> = checks.collect();
    body.extend(pack_block(c, message, spots, oneway, maker));
    for (i, slot) in message.slots.iter().enumerate() {
        let value = Interface::at(spots, &slot.path);
        let memory = maker.block();
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
                let from = elements(e, ty, value);
                let size = count.with("*", Expr::Int(element.size.into()));
                body.push(Stmt::Do(call("__builtin_memcpy", [address(slot, memory), from, size])));
            }
            Leaf::Tail(_) => {
                let of = |what| sent(message, slot, what);
                body.push(merge(call("quill_tail", [of("lies"), of("bytes"), of("few")])));
            }
        }
    }
    body
}

/// A value as bits of a word, if it is not a record or an array.
fn bits(e: &Emitter, ty: TypeId, value: &Expr) -> Option<Expr> {
    let long = Ty::named("uint64_t");
    let narrow = |bits: u8| value.clone().cast(Ty::named(format!("uint{bits}_t"))).cast(long);
    Some(match e.kind(ty) {
        Type::Bool | Type::Octet | Type::Char => narrow(8),
        Type::WideChar | Type::Enum(..) => narrow(32),
        Type::Int { bits, .. } | Type::Bitmask(_, bits, _) => narrow(*bits),
        Type::Object(_) => narrow(64),
        Type::Float(32) => call("quill_bits_f32", [value.clone()]),
        Type::Float(_) => call("quill_bits_f64", [value.clone()]),
        _ => return None,
    })
}

/// The number of a list's elements, or of a text's bytes, and how large it may be.
fn length(e: &Emitter, ty: TypeId, value: Expr) -> Option<(Expr, u64)> {
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
fn count_slot(message: &Message, elements: &Slot) -> usize {
    let is_count = |slot: &Slot| matches!(slot.leaf, Leaf::Count(_)) && slot.path == elements.path;
    message.slots.iter().position(is_count).unwrap_or(0)
}

/// Statements that take a message out of the words, with every check.
fn unpack(c: &Interface, message: &Message, spots: &[Spot]) -> Vec<Stmt> {
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
                            [start(e, ty, value), address(slot, ARRIVED), size],
                        )));
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
            Leaf::Tail(_) => body.push(Stmt::Let(Ty::named("uint64_t"), format!("_tail_{i}"), Some(bits))),
        }
    }
    body
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
            vec![
                Stmt::If(count.clone().with(">", bound), malformed()),
                Stmt::Set(value.clone().field("_length"), count),
                Stmt::Do(call("__builtin_memcpy", [value.field("_buffer"), from, bytes])),
            ]
        }
        _ => Vec::new(),
    }
}

/// The variable with the number of elements or bytes of a list that is sent from where it lies.
fn sent(message: &Message, slot: &Slot, what: &str) -> Expr {
    let number = message.chunks.iter().position(|chunk| chunk.path == slot.path).unwrap_or(0);
    name(format!("_{what}_sent_{number}"))
}

/// How many strings a message has in memory, and whether something is handed over from there: as a dope says it, from bit 12 on.
fn parts_in_memory(message: &Message) -> u64 {
    message.strings().count() as u64 + if message.long && message.pages.is_some() { ITEM } else { 0 }
}

/// One item, beside the number of strings.
const ITEM: u64 = 1 << 8;

/// The dope of a message whose words in memory are a fixed number.
fn dope(message: &Message) -> u64 {
    message.memory_bytes / 8 + (parts_in_memory(message) << 12)
}

/// Statements that say which lists go from where they lie, and leave dope and address in the first two words.
fn pack_block(c: &Interface, message: &Message, spots: &[Spot], oneway: bool, maker: Maker) -> Vec<Stmt> {
    let e = c.emitter;
    if !message.long {
        return Vec::new();
    }
    let long = || Ty::named("uint64_t");
    let direct = message.chunks.iter().any(|chunk| chunk.carrier == Carrier::Direct);
    let descriptor = |at: u64| behind_words(message, maker, at);
    let mut body = if direct { Vec::new() } else { begin_block(c, message, spots, maker) };
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
        let found = list_length(e, chunk, value, name(&lies), oneway);
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
    if let Some(handed) = &message.pages {
        let at = 2 * message.strings().count() as u64;
        body.extend(references::item(handed, spots, [descriptor(at), descriptor(at + 1)]));
    }
    body
}

/// Statements that make the words of a message in memory, and leave dope and address in the first two.
fn begin_block(c: &Interface, message: &Message, spots: &[Spot], maker: Maker) -> Vec<Stmt> {
    let mut body = Vec::new();
    let fixed = message.memory_bytes / 8;
    let block = || name(maker.block());
    if maker == Maker::Client {
        let array = Ty { dims: vec![message.block_words()], ..Ty::named("uint64_t") };
        body.push(Stmt::Let(array, maker.block().into(), None));
    } else if fixed > 0 {
        let all = [block(), Expr::Int(0), Expr::Int((8 * fixed).into())];
        body.push(Stmt::Do(call("__builtin_memset", all)));
    }
    body.extend(pack_streams(c, message, spots, maker));
    let (constant, parts) =
        (Expr::Int(dope(message).into()), Expr::Int((parts_in_memory(message) << 12).into()));
    let dope = if has_streams(message) { name(STREAM_WORDS).with("|", parts) } else { constant };
    body.push(Stmt::Set(words().index(Expr::Int(0)), dope));
    body.push(Stmt::Set(words().index(Expr::Int(1)), call("quill_address", [block()])));
    body
}

/// A word that is so many words behind those of the message in memory, however many these are.
fn behind_words(message: &Message, maker: Maker, number: u64) -> Expr {
    let constant = |number: u64| Expr::Int(number.into());
    name(maker.block()).index(if has_streams(message) {
        name(STREAM_WORDS).with("+", constant(number))
    } else {
        constant(message.memory_bytes / 8 + number)
    })
}

/// How many elements a list has, or bytes a text that `lies` somewhere, with every check of it.
fn list_length(e: &Emitter, chunk: &Chunk, value: Expr, lies: Expr, oneway: bool) -> Expr {
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
const STREAM_WORDS: &str = "_stream_words";

fn has_streams(message: &Message) -> bool {
    message.streams().next().is_some()
}

/// Statements that write what is read piece by piece behind the fixed part in memory.
fn pack_streams(c: &Interface, message: &Message, spots: &[Spot], maker: Maker) -> Vec<Stmt> {
    if !has_streams(message) {
        return Vec::new();
    }
    let fixed = message.memory_bytes / 8;
    let begin = name(maker.block()).with("+", Expr::Int(fixed.into())).cast(Ty::named("char *"));
    let out = || name("_out");
    let align = || Stmt::Do(call("quill_put_align", [out(), Expr::Int(8)]));
    let mut body = vec![
        Stmt::Let(
            Ty::named("quill_out"),
            "_stream".into(),
            Some(call("quill_begin_out", [begin, Expr::Int(message.stream_bytes.into())])),
        ),
        Stmt::Let(Ty::named("quill_out").to(), "_out".into(), Some(name("_stream").address())),
    ];
    body.extend(share(c.emitter, message, "_out"));
    for chunk in message.streams() {
        body.push(align());
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

/// Statements that read a message: its words, and what it has in memory, which is in `_room`.
fn take(c: &Interface, message: &Message, spots: &[Spot], room: Arrival, taker: Maker) -> Vec<Stmt> {
    let mut body = Vec::new();
    let direct = message.chunks.iter().any(|chunk| chunk.carrier == Carrier::Direct);
    if has_streams(message) {
        let fixed = Expr::Int((message.memory_bytes / 8).into());
        let strings = Expr::Int(parts_in_memory(message).into());
        let came = call("quill_begin_in", [name("_room").deref().field("words"), words(), fixed, strings]);
        body.push(Stmt::Let(Ty::named("quill_in"), "_stream_in".into(), Some(came)));
        body.push(Stmt::Let(Ty::named("quill_in").to(), "_in".into(), Some(name("_stream_in").address())));
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
fn unpack_block(c: &Interface, message: &Message, spots: &[Spot], room: Arrival, taker: Maker) -> Vec<Stmt> {
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

/// Words of a room in C: one more than can come, for the zero behind a text.
fn room_words(room: &Room) -> u64 {
    room.words_bytes / 8 + 1
}

/// The word of a room that says how long a string is.
fn descriptor(room: &Room, string: u32) -> u64 {
    room_words(room) + 2 * u64::from(string) + 1
}

/// Where the buffer for a string begins in C, where each has a place more for a zero.
fn begin(room: &Room, string: u32) -> u64 {
    room.begin(string) + 8 * u64::from(string)
}

/// Memory for messages of one direction.
fn room_record(c: &Interface, room: &Room, what: &str, memory: bool) -> Vec<Item> {
    let record = c.function(what);
    let messages = if what == "room" { "requests" } else { what };
    let comment = format!("Memory for {messages} that do not fit into registers; it begins as zeros.");
    let strings = room.capacities.len() as u64;
    let array = |base: &str, length: u64| Ty { dims: vec![length], ..Ty::named(base) };
    let mut fields = vec![
        (array("uint64_t", room_words(room)), "words".into()),
        (array("uint64_t", 2 * strings.max(1)), "strings".into()),
        (array("char", (room.buffers_bytes() + 8 * strings).max(8)), "buffers".into()),
    ];
    if memory {
        fields.push((array("uint64_t", MEMORY_WORDS), "memory".into()));
    }
    vec![
        Item::Comment(comment),
        Item::Announce("struct", record.clone()),
        Item::Record("struct", record, fields),
    ]
}

/// Words of memory for lists that are read piece by piece, and for what may be absent: all of a message has to do with it.
const MEMORY_WORDS: u64 = 1024;

/// Whether something in a message needs memory when it is read.
fn needs_memory(e: &Emitter, message: &Message) -> bool {
    message.streams().any(|chunk| has_list_elsewhere(e, chunk.ty))
}

/// Whether a reply does.
fn replies_need_memory(c: &Interface, layout: &InterfaceLayout) -> bool {
    layout.methods.iter().flat_map(Method::replies).any(|reply| needs_memory(c.emitter, reply))
}

/// Statements that give memory to what reads a message.
fn give_memory(e: &Emitter, message: &Message, room: Arrival) -> Vec<Stmt> {
    if !needs_memory(e, message) {
        return Vec::new();
    }
    let mut body = Vec::new();
    let memory = match room {
        Arrival::Own(_) => name("_room").deref().field("memory"),
        Arrival::Shared => {
            let array = Ty { dims: vec![MEMORY_WORDS], ..Ty::named("uint64_t") };
            body.push(Stmt::Announce(array, "_memory".into()));
            name("_memory")
        }
    };
    let given = [name("_in"), memory.cast(Ty::named("char *")), Expr::Int((8 * MEMORY_WORDS).into())];
    body.push(Stmt::Do(call("quill_give_memory", given)));
    body
}

/// Statements that give a message a table of the values that others may share, if it has such.
fn share(e: &Emitter, message: &Message, of: &str) -> Vec<Stmt> {
    if !message.streams().any(|chunk| e.shares(chunk.ty)) {
        return Vec::new();
    }
    let table = format!("_shared{of}");
    vec![
        Stmt::Announce(Ty::named("quill_shared"), table.clone()),
        Stmt::Set(name(of).deref().field("shared"), call("quill_begin_shared", [name(table).address()])),
    ]
}

/// All words, zero.
fn fresh() -> Stmt {
    Stmt::Let(Ty { dims: vec![11], ..Ty::named("uint64_t") }, "_words".into(), None)
}

/// The flexpage of a map item.
fn handed(given: &Handed, value: Expr) -> Expr {
    match given.grant {
        None => value,
        Some(grant) => call("quill_handed", [value, Expr::Int(grant.into())]),
    }
}

/// A client's function. If there is something to be said of who has references, it is a part of [another one](references::owner).
fn client(
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
    body.extend(pack(c, &method.request, &c.inputs(operation), operation.oneway, Maker::Client));
    let function =
        if way.begins { references::client_name(c, operation, method) } else { c.operation(operation) };
    if let (Some(handed), "_item") = (&method.request.pages, request_kind(way, method)) {
        let words = [6, 7].map(|word| words().index(Expr::Int(word)));
        body.extend(references::item(handed, &c.inputs(operation), words));
    }
    let called = client_call(way, operation, method);
    if operation.oneway {
        body.push(Stmt::Return(Some(called)));
        return Item::Function(inlined(status()), function, parameters, body);
    }
    let called = Stmt::Let(Ty::named("uint64_t"), "_rax".into(), Some(called));
    if way.begins && method.reply.pages.is_some() {
        body.extend(references::in_window(called));
    } else {
        body.push(called);
    }
    body.extend(c.unused_place(operation));
    let done = name(match () {
        () if method.reply.pages.is_some() && way.begins => "QUILL_DOOR_PAGES_DONE",
        () if method.reply.pages.is_some() => "QUILL_PAGES_DONE",
        () => way.done[usize::from(method.reply.long)],
    });
    let done = call("__builtin_expect", [name("_rax").with("!=", done), Expr::Int(0)]);
    body.push(Stmt::If(done, client_failure(way, c, operation, method, &replies)));
    body.extend(arrive(c, &method.reply, &c.outputs(operation), &replies));
    let wrong = || malformed().remove(0);
    body.extend(agree::parameters(c.emitter, operation, true, &parameter, &wrong));
    if let Some(pages) = &method.reply.pages {
        let arrived = Interface::at(&c.outputs(operation), std::slice::from_ref(&pages.param));
        if way.begins {
            body.extend(references::arrived(arrived));
        } else {
            body.push(Stmt::Set(arrived, words().index(Expr::Int(6))));
        }
    }
    body.push(Stmt::Return(Some(name("QUILL_OK"))));
    Item::Function(inlined(status()), function, parameters, body)
}

fn client_parameters(
    way: &Way,
    c: &Interface,
    layout: &InterfaceLayout,
    (operation, method): (&Operation, &Method),
) -> Parameters {
    let callee = way.callee.map_or_else(|| c.emitter.reference(Some(layout.interface)), str::to_owned);
    let mut parameters: Parameters = vec![(Ty::named(callee), "_server".into())];
    if has_long_reply(method) {
        parameters.push((Ty::named(c.function("replies")).to(), "_room".into()));
    }
    match &method.reply.pages {
        Some(_) if way.begins => parameters.push((Ty::named("uint32_t"), references::PLACE.into())),
        Some(_) => parameters.push((Ty::named("tern_fpage"), "_window".into())),
        None => {}
    }
    parameters.extend(c.parameters(operation));
    parameters
}

/// The end of the name of a function that calls with such a request.
fn request_kind(way: &Way, method: &Method) -> &'static str {
    match () {
        () if method.request.long => "_long",
        () if way.begins && method.request.pages.is_some() => "_item",
        () => "",
    }
}

/// The call of a method by its client. It evaluates to `rax`, or to a status if nothing comes back.
fn client_call(way: &Way, operation: &Operation, method: &Method) -> Expr {
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
    let takes_reference = way.begins && method.reply.pages.is_some();
    let takes_block = method.replies().any(|reply| reply.long);
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
        let there = Expr::Int(taken(method).into());
        let back = Expr::Int(given(operation, method).into());
        let arguments = [server.clone(), label, words(), there, back];
        call(format!("{}{kind}{taking}", way.call), arguments.into_iter().chain(takes))
    };
    match way.sent {
        Some(sent) if operation.oneway => call(sent, [plainly(label)]),
        None if operation.oneway && pages => call("quill_ipc_send_pages", [server, label, words(), item()]),
        None if operation.oneway => call(format!("quill_ipc_send{kind}"), [server, label, words()]),
        _ if pages => {
            let window = if method.reply.pages.is_some() { name("_window") } else { Expr::Int(0) };
            call(format!("quill_ipc_call_pages{taking}"), [server, label, words(), item(), window])
        }
        _ => plainly(label),
    }
}

/// Statements with which a client reads a reply, which has to be in its own room.
fn arrive(c: &Interface, message: &Message, spots: &[Spot], replies: &Room) -> Vec<Stmt> {
    let mut body = Vec::new();
    if message.long {
        let elsewhere = words().index(Expr::Int(1)).with("!=", call("quill_address", [name("_room")]));
        body.push(Stmt::If(elsewhere, vec![Stmt::Return(Some(name("QUILL_OTHER_INBOX")))]));
    }
    body.extend(take(c, message, spots, Arrival::Own(replies), Maker::Client));
    body
}

/// Statements of a client for a reply that is not that of success.
fn client_failure(
    way: &Way,
    c: &Interface,
    operation: &Operation,
    method: &Method,
    replies: &Room,
) -> Vec<Stmt> {
    let long = method.exceptions.iter().any(|(_, message)| message.long);
    let rax = way.reply.map_or_else(|| name("_rax"), |reply| call(reply, [name("_rax")]));
    let mut body = Vec::new();
    if method.reply.pages.is_some() {
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

/// The function that answers a request for a method.
fn answer(way: &Way, c: &Interface, operation: &Operation, method: &Method, room: Arrival) -> Item {
    let parameters = answer_parameters(way, c, method, room);
    let request = &method.request;
    let result = inlined(status());
    let lists = || request.chunks.iter().filter(|c| c.element.is_some());
    let in_room = |param: &str| lists().any(|c| matches!(&c.path[..], [path] if path == param));
    let mut body = c.variables(operation, in_room);
    let inputs = c.local(c.inputs(operation));
    let outputs = c.local(c.outputs(operation));
    if has_long_reply(method) {
        body.push(Stmt::Do(name("_kept").cast(Ty::named("void"))));
    }
    body.extend(take(c, request, &borrowed(&inputs), room, Maker::Server));
    let (variable, wrong) = (|of: usize| name(word(&operation.params[of].name)), || malformed().remove(0));
    body.extend(agree::parameters(c.emitter, operation, false, &variable, &wrong));
    if let Some(handed) = &request.pages {
        body.push(references::taken(handed, &borrowed(&inputs)));
    }
    let given = std::iter::once("_self".to_owned()).chain(caller(way).map(|(_, from)| from));
    let called = c.call_method(operation, given.map(name).collect());
    let function = c.function(&format!("{}_answer", operation.name));
    if operation.oneway {
        // It may have no parameters.
        body.push(Stmt::Do(words().cast(Ty::named("void"))));
        body.push(Stmt::Do(called.cast(Ty::named("void"))));
        body.push(Stmt::Return(Some(name("QUILL_SILENT"))));
        return Item::Function(result, function, parameters, body);
    }
    body.push(Stmt::Let(status(), "_status".into(), Some(called)));
    body.push(Stmt::Do(call("quill_clear", [words()])));
    let make = |message: &Message, spots: &[Spot]| {
        let mut made: Vec<Stmt> =
            message.pages.iter().map(|handed| references::given(handed, spots)).collect();
        made.extend(pack(c, message, spots, false, Maker::Server));
        if message.long {
            made.push(Stmt::Set(name("_long").deref(), name("true")));
        }
        made
    };
    let mut good = agree::parameters(c.emitter, operation, true, &variable, &refused);
    good.extend(make(&method.reply, &borrowed(&outputs)));
    let mut cases = vec![(vec![0], good)];
    for (number, (_, message)) in method.exceptions.iter().enumerate() {
        let spots = c.exception_spots(operation, number, name("_raised"));
        cases.push((vec![message.label.into()], make(message, &borrowed(&spots))));
    }
    body.push(Stmt::Switch(name("_status"), cases, Vec::new()));
    body.push(Stmt::Return(Some(name("_status"))));
    Item::Function(result, function, parameters, body)
}

fn answer_parameters(way: &Way, c: &Interface, method: &Method, room: Arrival) -> Parameters {
    let mut parameters = vec![
        (Ty::named(c.function("server")).to().constant(), "_methods".into()),
        (Ty::named("void *"), "_self".into()),
    ];
    parameters.extend(caller(way));
    parameters.push((Ty::named("uint64_t").to(), "_words".into()));
    if method.request.long {
        parameters.push((Ty::named(room.record(c)).to(), "_room".into()));
    }
    if has_long_reply(method) {
        parameters.push((Ty::named("uint64_t").to(), "_kept".into()));
        parameters.push((Ty::named("bool").to(), "_long".into()));
    }
    if looks_twice(c, &method.request) {
        parameters.push((Ty::named("bool"), "_again".into()));
    }
    if method.hands_pages() {
        parameters.push((Ty::named("quill_item").to(), references::ITEM.into()));
    }
    parameters
}

/// Whether a request has a text in memory: most are ASCII, so a server first knows only that, and calls nothing.
fn looks_twice(c: &Interface, request: &Message) -> bool {
    request.chunks.iter().any(|chunk| matches!(c.emitter.kind(chunk.ty), Type::Str { .. }))
}

/// The result of a function that has to be part of whatever calls it, so that words stay in registers.
fn inlined(result: Ty) -> Ty {
    Ty::named(format!("__attribute__((always_inline)) {}", result.base))
}

/// The function that finds the method for a request: by the first bits of the label, as many as there are places. A request
/// with a part in memory comes with the room that it is in.
fn dispatch(c: &Interface, operations: &[&Operation], methods: &[Method]) -> Item {
    let parameters = vec![
        (Ty::named("const void *"), "_methods".into()),
        (Ty::named("void *"), "_self".into()),
        (Ty::named("tern_uid"), "_from".into()),
        (Ty::named("uint32_t"), "_label".into()),
        (Ty::named("uint64_t").to(), "_words".into()),
        (Ty::named("void *"), "_room".into()),
        (Ty::named("uint64_t").to(), "_kept".into()),
        (Ty::named("bool").to(), "_long".into()),
    ];
    let bits = table_bits(operations.len());
    let cases = operations.iter().zip(methods).enumerate().map(|(number, (operation, method))| {
        let function = c.function(&format!("{}_answer", operation.name));
        let mut arguments = ["_methods", "_self", "_from", "_words"].map(name).to_vec();
        let other = if method.request.long {
            arguments.push(name("_room"));
            Expr::Not(Box::new(name("_room")))
        } else {
            name("_room")
        };
        if has_long_reply(method) {
            arguments.extend(["_kept", "_long"].map(name));
        }
        let place = (number as u32).reverse_bits() >> (32 - bits);
        let mut body = vec![Stmt::If(other, malformed())];
        if looks_twice(c, &method.request) {
            let look = |again: &str, mut arguments: Vec<Expr>| {
                arguments.push(name(again));
                call(function.clone(), arguments)
            };
            let first = look("false", arguments.clone());
            body.push(Stmt::Let(status(), "_status".into(), Some(first)));
            let again = name("_status").with("==", name("QUILL_AGAIN"));
            body.push(Stmt::If(again, vec![Stmt::Return(Some(look("true", arguments)))]));
            body.push(Stmt::Return(Some(name("_status"))));
        } else {
            body.push(Stmt::Return(Some(call(function, arguments))));
        }
        (vec![i128::from(place)], body)
    });
    let place = name("_label").with(">>", Expr::Int((32 - bits).into()));
    let none = vec![Stmt::Return(Some(name("QUILL_NO_METHOD")))];
    // An interface may have no methods.
    let mut body: Vec<Stmt> =
        parameters.iter().map(|(_, unused)| Stmt::Do(name(unused).cast(Ty::named("void")))).collect();
    body.push(Stmt::Switch(place, cases.collect(), none));
    Item::Function(status(), c.function("dispatch"), parameters, body)
}

/// Words of a message. What is handed over is the last of eight, if it is not in memory.
fn registers(message: &Message) -> u32 {
    if message.pages.is_some() && !message.long { 8 } else { message.registers }
}

/// Words of the request.
fn taken(method: &Method) -> u32 {
    registers(&method.request)
}

/// Words of the longest reply.
fn given(operation: &Operation, method: &Method) -> u32 {
    if operation.oneway { 0 } else { method.replies().map(registers).max().unwrap_or(0) }
}

/// The macro that defines a server's function. The methods are a constant, so that calls of them are plain calls, or none.
fn serve(c: &Interface, operations: &[&Operation], methods: &[Method], room: &Room) -> String {
    let mut text = String::new();
    let all = || operations.iter().zip(methods).enumerate();
    for (number, (operation, method)) in all().filter(|(_, (_, m))| looks_twice(c, &m.request)) {
        text += &second_look(c, operation, method, number);
    }
    let (result, declared) = if room.needed {
        ("quill_status", format!(", {} *quill_room", c.function("room")))
    } else {
        ("void", String::new())
    };
    let _ = writeln!(
        text,
        "static __attribute__((noinline, unused)) {result} name(void *quill_self{declared})\n{{"
    );
    // Without methods nothing else would use them.
    text += "    (void)&(methods), (void)quill_self;\n";
    text += &register(room);
    let kept = methods.iter().flat_map(Method::replies).map(|reply| kept_words(c.emitter, reply)).max();
    if methods.iter().any(has_long_reply) {
        let _ = writeln!(text, "    uint64_t quill_kept[{}];", kept.unwrap_or(0).max(1));
    }
    text += &wait(methods, room);
    for (number, (operation, method)) in all() {
        text += &stretch(c, operation, method, (number, table_bits(operations.len())));
    }
    text += "}";
    let lines: Vec<&str> = text.lines().collect();
    let returns =
        if room.needed { "; it returns only if the kernel\n * does not accept the room" } else { "" };
    let (macro_name, lines) = (c.function("SERVE"), lines.join(" \\\n"));
    let comment = format!(
        "Defines the function `name`, which answers requests with `methods`, a constant, forever{returns}."
    );
    format!("/* {comment} */\n#define {macro_name}(name, methods) \\\n{lines}\n")
}

/// The arguments of a method's `answer`; `message` has the partner.
fn answer_arguments(method: &Method, message: &str, words: &str, in_memory: &str) -> String {
    let room = if method.request.long { ", quill_room" } else { "" };
    let kept = if has_long_reply(method) { format!(", quill_kept, {in_memory}") } else { String::new() };
    format!("&(methods), quill_self, {message}partner, {words}{room}{kept}")
}

/// The function that looks at a request again, and its registers: a function of its own, so that nothing else saves any.
fn second_look(c: &Interface, operation: &Operation, method: &Method, number: usize) -> String {
    let room =
        if method.request.long { format!(", {} *quill_room", c.function("room")) } else { String::new() };
    let kept = if has_long_reply(method) { ", uint64_t *quill_kept, bool *quill_in_memory" } else { "" };
    let arguments = answer_arguments(method, "quill_now->", "quill_now->words", "quill_in_memory");
    let answer = c.function(&format!("{}_answer", operation.name));
    format!(
        "static __attribute__((noinline, cold, unused)) quill_status name##_{number}_again(\n    \
             void *quill_self, quill_message *quill_now{room}{kept})\n\
         {{\n    return {answer}({arguments}, true);\n}}\n"
    )
}

/// The places of the table, the first wait, and what happens to a message that no method takes.
fn wait(methods: &[Method], room: &Room) -> String {
    let bits = table_bits(methods.len());
    let (shift, half) = (64 - bits, 1u32 << bits);
    let place = |place: u32| {
        let number = (place % half).reverse_bits() >> (32 - bits);
        match methods.get(number as usize) {
            Some(method) if method.request.long == (place >= half) => format!("&&quill_{number}"),
            Some(_) => "&&quill_mismatch".into(),
            None => "&&quill_no_method".into(),
        }
    };
    let places: Vec<String> = (0..if room.needed { 2 * half } else { half }).map(place).collect();
    let (count, list) = (places.len(), places.join(", "));
    let no_method = if list.contains("quill_no_method") {
        "quill_no_method:\n    QUILL_REFUSE(QUILL_NO_METHOD);\n    goto quill_wait;\n"
    } else {
        ""
    };
    let long = |kind: &str| {
        let jump = format!("goto *quill_places[{half} + (quill_rax >> {shift})];\n");
        let check = format!("    if ((uint32_t)quill_rax == {kind})\n        {jump}");
        if room.needed { check } else { String::new() }
    };
    let (call, reply) = (long("QUILL_IPC_LONG_CALL"), long("QUILL_IPC_LONG_REPLY_WAIT"));
    // The table is in memory that the compiler does not know, so one instruction finds a place and jumps.
    format!(
        r#"    void *quill_places[{count}] = {{ {list} }};
    QUILL_REGISTERS;
    __asm__("" : "+m"(quill_places));
    quill_rdx = TERN_NIL;
    QUILL_REFUSE(QUILL_OK);
quill_wait:
    QUILL_REPLY_WAIT(-1);
quill_odd:
{call}    if ((uint32_t)quill_rax == TERN_IPC_CALL || (uint32_t)quill_rax == TERN_IPC_REPLY_WAIT)
        goto *quill_places[quill_rax >> {shift}];
{reply}    if (!quill_is_request(quill_rax))
        quill_rdx = TERN_NIL;
    goto quill_mismatch;
quill_mismatch:
    QUILL_REFUSE(QUILL_MALFORMED);
    goto quill_wait;
{no_method}"#
    )
}

/// From a request for a method to the next request.
fn stretch(c: &Interface, operation: &Operation, method: &Method, (number, bits): (usize, u32)) -> String {
    let twice = looks_twice(c, &method.request);
    let long = has_long_reply(method);
    let answer = c.function(&format!("{}_answer", operation.name));
    let again = if twice { ", false" } else { "" };
    let arguments = answer_arguments(method, "quill_now.", "quill_words", "&quill_in_memory");
    let (flag, in_memory) =
        if long { ("        bool quill_in_memory = false;\n", "quill_in_memory") } else { ("", "false") };
    let done = if operation.oneway { "QUILL_SILENT" } else { "QUILL_OK" };
    let (hand, look) = if twice { look_again(method, number) } else { Default::default() };
    let given = given(operation, method);
    let finish = if operation.oneway {
        "quill_silent(&quill_now)".into()
    } else {
        format!("quill_done(&quill_now, quill_words, {given}, {in_memory})")
    };
    let shift = 64 - bits;
    format!(
        r#"quill_{number}: {{
        quill_message quill_now = QUILL_ARRIVED;
        uint64_t quill_words[QUILL_WORDS];
        quill_status quill_state;
{flag}        quill_copy(quill_words, quill_now.words);
        quill_state = {answer}({arguments}{again});
        if (__builtin_expect(quill_state != {done}, 0)) {{
{hand}            quill_otherwise(&quill_now, quill_words, quill_state, {in_memory});
            QUILL_LEAVES(quill_now);
            goto quill_wait;
        }}
        {finish};
        QUILL_NEXT(quill_now, {number}, {shift});
    }}
{look}"#
    )
}

/// Statements that hand a request to the second look, and that look. The words lie for it as if the request had just come, so
/// that they need no other place until then; those that it does not read need none at all.
fn look_again(method: &Method, number: usize) -> (String, String) {
    let request = &method.request;
    let unread = (1..11).filter(|&word| !request.reads_again(word));
    let cleared: String = unread.map(|word| format!("quill_now.words[{word}] = ")).collect();
    let first = checked_dope(request);
    let room = if method.request.long { ", quill_room" } else { "" };
    let (flag, kept, in_memory) = if has_long_reply(method) {
        ("        bool quill_in_memory = false;\n", ", quill_kept, &quill_in_memory", "quill_in_memory")
    } else {
        ("", "", "false")
    };
    let hand = format!(
        r#"            if (quill_state == QUILL_AGAIN) {{
                quill_now.rax = {cleared}0;
                {first}QUILL_LEAVES(quill_now);
                goto quill_{number}_again;
            }}
"#
    );
    let look = format!(
        r#"quill_{number}_again: {{
        quill_message quill_now = QUILL_ARRIVED;
{flag}        quill_status quill_state = name##_{number}_again(quill_self, &quill_now{room}{kept});
        quill_otherwise(&quill_now, quill_now.words, quill_state, {in_memory});
        QUILL_LEAVES(quill_now);
        goto quill_wait;
    }}
"#
    );
    (hand, look)
}

/// A statement that sets a request's first word to what it is known to be, so that it needs no register until then.
fn checked_dope(request: &Message) -> String {
    let indent = " ".repeat(16);
    let Some(chunk) = request.chunks.iter().find(|chunk| chunk.carrier == Carrier::Direct) else {
        let constant = format!("quill_now.words[0] = {};\n{indent}", dope(request));
        return if has_streams(request) { String::new() } else { constant };
    };
    let count = |slot: &&Slot| slot.path == chunk.path && matches!(slot.leaf, Leaf::Count(_));
    match request.slots.iter().find(count).map(|slot| (slot.fixed.size, slot.place)) {
        Some((size, Place::Register(word, byte))) => {
            let bytes = format!("(uint{}_t)(quill_now.words[{word}] >> {})", 8 * size, 8 * byte);
            format!("quill_now.words[0] = quill_words_again({bytes});\n{indent}")
        }
        _ => String::new(),
    }
}

/// The statements with which a server says where it receives, if it does.
fn register(room: &Room) -> String {
    if !room.needed {
        return String::new();
    }
    let (lists, arguments) = registration(room, "quill_room");
    format!(
        "{lists}    quill_status quill_registered = quill_register({arguments}, NULL);\n    \
         if (quill_registered != QUILL_OK)\n        return quill_registered;\n"
    )
}

/// The function with which a client says where it receives.
fn open(c: &Interface, replies: &Room) -> String {
    let (function, record) = (c.function("open"), c.function("replies"));
    let (lists, arguments) = registration(replies, "room");
    format!(
        "/* Lets replies arrive in `room`, until `quill_close(before)`. */\n\
         static inline __attribute__((unused)) quill_status {function}({record} *room, quill_inbox *before)\n{{\n\
         {lists}    return quill_register({arguments}, before);\n}}\n"
    )
}

/// Lists of capacities, and the arguments of `quill_register`.
fn registration(room: &Room, variable: &str) -> (String, String) {
    let list = |all: Vec<String>| if all.is_empty() { "0".into() } else { all.join(", ") };
    let capacities = list(room.capacities.iter().map(u64::to_string).collect());
    let begins = list((0..room.capacities.len()).map(|n| begin(room, n as u32).to_string()).collect());
    let (words, count) = (room_words(room), room.capacities.len());
    let arguments = format!(
        "{variable}, {words}, {count}, {variable}->strings, {variable}->buffers, quill_capacities, quill_begins"
    );
    let lists = format!(
        "    static const uint32_t quill_capacities[] = {{ {capacities} }}, quill_begins[] = {{ {begins} }};\n"
    );
    (lists, arguments)
}
