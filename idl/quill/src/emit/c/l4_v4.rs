//! C over `l4-v4`: values between variables and the message registers of L4's X.2 API, which lie in the UTCB.
//!
//! A value is read and written where it lies in the message, so nothing is copied but the values themselves. The first
//! two words arrive in registers of the processor and are taken from there. A list that is too long for registers is an
//! item, which the kernel copies from the client's memory into a buffer of the server's; a text that is alone travels in
//! registers as long as it fits. Nobody allocates: a caller brings the room for what comes back.
//!
//! All of a server is one function, loop included, that is part of its caller. Where the caller's methods are a constant
//! the compiler puts them into it, and nothing remains of the calls.

use std::collections::BTreeMap;

use super::linux::values;
use super::tree::{Expr, Item, Parameters, Stmt, Ty, call, name};
use super::{Emitter, Lists, Part, agree, interface, word};
use crate::emit::travel::streamed;
use crate::kernel::table_bits;
use crate::layout::{Chunk, InterfaceLayout, Leaf, Message, Method, Place, Slot};
use crate::marshal::Lying;
use crate::model::{Direction, Operation, Type, TypeId};
use crate::sizes::Fixed;

use interface::{Interface, Spot, borrowed, status};

/// C over L4's V4 API.
#[derive(Clone, Copy, Debug)]
pub struct L4V4;

impl Part for L4V4 {
    fn runtime(&self) -> &'static str {
        concat!(
            include_str!("utf8.h"),
            include_str!("l4_v4_runtime.h"),
            include_str!("stream_places.h"),
            include_str!("stream.h"),
            include_str!("stream_texts.h"),
            include_str!("l4_v4_texts.h")
        )
    }

    fn lists(&self) -> Lists {
        Lists::Pointers
    }

    fn carries(&self, _: &Emitter, _: TypeId) -> bool {
        true
    }

    fn refuses(&self, emitter: &Emitter, _: &Operation, method: &Method) -> Option<String> {
        let counted_slot = |slot: &&Slot| is_list(emitter, slot) && emitter.counted(leaf_type(slot));
        if let Some((exception, _)) = method.exceptions.iter().find(|(_, message)| {
            message.slots.iter().any(|slot| counted_slot(&slot))
                || message.chunks.iter().any(|chunk| emitter.counted(chunk.ty))
        }) {
            return Some(format!(
                "the exception `{exception}` has a counted text, which does not fit into registers"
            ));
        }
        let counted = |chunk: &&Chunk| emitter.counted(chunk.ty);
        if let Some(chunk) = method.reply.chunks.iter().find(counted) {
            return Some(format!(
                "`{}`, a counted text that comes back, does not fit into registers",
                chunk.path[0]
            ));
        }
        let long = |chunk: &&Chunk| bytes_max(emitter, chunk).is_some_and(|bytes| bytes > COPY_BYTES_MAX);
        if let Some(chunk) = method.request.chunks.iter().filter(counted).find(long) {
            return Some(format!(
                "`{}`, a counted text, may have more than {COPY_BYTES_MAX} bytes",
                chunk.path[0]
            ));
        }
        None
    }

    fn values(&self, emitter: &Emitter) -> Vec<Item> {
        let streamed = streamed(emitter.model, &emitter.sizes, Lying::All);
        values::functions(emitter, |id| streamed[id.0 as usize])
    }

    fn interface(&self, emitter: &Emitter, layout: &InterfaceLayout, operations: &[&Operation]) -> Vec<Item> {
        let c = Interface { emitter, interface: &emitter.model.interfaces[layout.interface.0 as usize].name };
        let caller = (Ty::named("quill_thread"), "_from".into());
        let mut items = c.declarations(operations, Some(&caller));
        items.extend(buffers(&c, &layout.methods));
        items.extend(replies(&c, &layout.methods));
        for (operation, method) in operations.iter().zip(&layout.methods) {
            items.push(client(&c, operation, method));
            items.push(answer(&c, operation, method));
        }
        items.push(serve(&c, operations, &layout.methods));
        items
    }
}

/// A counted text has no zero at its end, but an item that is one does: where it is long, it is copied to the client's stack.
const COPY_BYTES_MAX: u64 = 32 << 10;

/// Whether a slot belongs to a text or a list.
fn is_list(e: &Emitter, slot: &Slot) -> bool {
    match slot.leaf {
        Leaf::Count(_) => true,
        Leaf::Elements(ty, _) => !matches!(e.kind(ty), Type::Array(..)),
        Leaf::Value(_) | Leaf::Tail(_) => false,
    }
}

/// Type of a slot's value or list.
fn leaf_type(slot: &Slot) -> TypeId {
    match slot.leaf {
        Leaf::Value(ty) | Leaf::Count(ty) | Leaf::Elements(ty, _) | Leaf::Tail(ty) => ty,
    }
}

/// The most bytes of a longer list, with the zero at the end of a text; `None` without a bound. A value that is read piece by piece
/// and may be long has as many bytes as one without a bound.
fn bytes_max(e: &Emitter, chunk: &Chunk) -> Option<u64> {
    let Some(element) = chunk.element else {
        return chunk.bound.filter(|bytes| *bytes <= COPY_BYTES_MAX).map(|bytes| bytes.max(1));
    };
    let bytes = chunk.bound?.saturating_mul(element.size);
    Some(bytes + u64::from(matches!(e.kind(chunk.ty), Type::Str { .. })))
}

/// [`bytes_max`] as an expression; without a bound it is what servers have room for.
fn room(e: &Emitter, chunk: &Chunk) -> Expr {
    bytes_max(e, chunk).map_or_else(|| name("QUILL_UNBOUNDED_BYTES"), |bytes| Expr::Int(bytes.into()))
}

/// The bound of a text in characters.
fn characters(e: &Emitter, ty: TypeId) -> Expr {
    match e.kind(ty) {
        Type::Str { bound: Some(bound), .. } => Expr::Int((*bound).into()),
        _ => name("UINT64_MAX"),
    }
}

/// The bound of a list whose length in bytes has 21 bits at most. A length with more of them than an item has fails when
/// it is made; whatever else is beyond the bound is refused by the kernel, for which the server's buffer is too short, or
/// by the server.
fn refused_later(e: &Emitter, chunk: &Chunk) -> Option<u64> {
    let element = chunk.element.map_or(1, |element| element.size);
    let short = |bound: &u64| bound.saturating_mul(element) < 1 << 21 && *bound > 0;
    chunk.bound.filter(short).filter(|_| matches!(e.kind(chunk.ty), Type::Sequence(..)))
}

/// Whether something of a request comes back in its place.
fn goes_back(operation: &Operation, chunk: &Chunk) -> bool {
    operation.params.iter().any(|p| p.name == chunk.path[0] && p.direction == Direction::InOut)
}

/// The text of a message that may travel behind the values: a lone one.
fn tail<'m>(e: &Emitter, message: &'m Message) -> Option<&'m Chunk> {
    let [chunk] = &message.chunks[..] else { return None };
    (matches!(e.kind(chunk.ty), Type::Str { .. }) && chunk.element.is_some()).then_some(chunk)
}

/// The first byte of a slot.
fn offset(slot: &Slot) -> u32 {
    match slot.place {
        Place::Register(word, byte) => 4 * word + byte,
        // The layout refused what does not fit.
        Place::Memory(_) => 0,
    }
}

/// Bytes of the fixed part.
fn fixed_bytes(message: &Message) -> u32 {
    4 * message.registers
}

fn int(value: impl Into<i128>) -> Expr {
    Expr::Int(value.into())
}

fn utcb() -> Expr {
    name("_utcb")
}

/// The address of a byte of the message.
fn address(at: u32) -> Expr {
    call("quill_at", [utcb(), int(at)])
}

/// A value in the message.
fn place(ty: &str, at: u32) -> Expr {
    call("QUILL_AT", [name(ty), utcb(), int(at)])
}

/// The address of a value's first byte; an array is one.
fn start(e: &Emitter, ty: TypeId, value: Expr) -> Expr {
    if matches!(e.kind(ty), Type::Array(..)) { value } else { value.address() }
}

/// A tag: label, bytes in registers, items.
fn tag(message: &Message) -> Expr {
    let label = int(message.label);
    call("QUILL_TAG", [label, int(fixed_bytes(message)), int(message.chunks.len() as u32)])
}

/// Whether a value is copied as bytes.
fn is_block(e: &Emitter, ty: TypeId) -> bool {
    matches!(e.kind(ty), Type::Struct(..) | Type::Flat(..) | Type::Array(..))
}

/// Whether a block's first words are put in their place from registers; `quill_take_out` does it.
fn taken(slot: &Slot) -> bool {
    match offset(slot) {
        0 => slot.fixed.size >= 8,
        4 => slot.fixed.size >= 4,
        _ => false,
    }
}

/// A condition under which a number is no value of its type.
fn wrong(e: &Emitter, ty: TypeId, value: &Expr) -> Option<Expr> {
    match e.kind(ty) {
        Type::WideChar => Some(Expr::Not(Box::new(call("quill_is_scalar", [value.clone()])))),
        _ => super::linux::values::wrong(e, ty, value.clone()),
    }
}

/// A condition that is not expected.
fn unlikely(condition: Expr) -> Expr {
    call("QUILL_UNLIKELY", [condition])
}

/// What one side of a call does with a message.
struct Side<'a> {
    c: &'a Interface<'a>,
    message: &'a Message,
    spots: &'a [Spot<'a>],
    /// What is returned when something is no value.
    malformed: Expr,
    /// What is returned when something is too long.
    too_long: Expr,
    /// The message is a reply: its texts may lie in the request that it replaces.
    reply: bool,
    /// The receiver's refusal comes back, so it is enough to look for a list that is too long when it does.
    answered: bool,
    /// A text goes both ways, so that it may not stay in the message that the reply replaces.
    both_ways: bool,
    /// The message is an exception on the client's side: what is in it lies in the client's room.
    raised: bool,
    /// Items that arrive in the client's room, wherever they are wanted, by number.
    in_room: Vec<bool>,
}

impl Side<'_> {
    fn refuse_if(&self, condition: Expr) -> Stmt {
        Stmt::If(unlikely(condition), vec![Stmt::Return(Some(self.malformed.clone()))])
    }

    /// Words of which some bytes belong to no value: they would show what was there before.
    fn holes(&self) -> Vec<Stmt> {
        let mut covered = vec![0u64; self.message.registers as usize];
        for slot in &self.message.slots {
            let size = match slot.leaf {
                // The rest of a list's room is cleared by whoever fills it.
                Leaf::Elements(ty, element) => element.size * self.room(ty),
                _ => slot.fixed.size,
            };
            let (first, end) = (u64::from(offset(slot)), u64::from(offset(slot)) + size);
            for word in first / 4..end.div_ceil(4) {
                if let Some(bytes) = covered.get_mut(word as usize) {
                    *bytes += end.min(4 * word + 4) - first.max(4 * word);
                }
            }
        }
        let holed = covered.iter().enumerate().filter(|(_, bytes)| **bytes < 4);
        let mut clear: Vec<Stmt> =
            holed.map(|(word, _)| Stmt::Set(place("uint32_t", 4 * word as u32), int(0))).collect();
        // A processor of 64 bits sends whole words of its own.
        if self.message.registers % 2 == 1 && tail(self.c.emitter, self.message).is_none() {
            let end = place("uint32_t", fixed_bytes(self.message));
            let odd = call("sizeof", [name("quill_word")]).with(">", int(4));
            clear.push(Stmt::If(odd, vec![Stmt::Set(end, int(0))]));
        }
        clear
    }

    /// Elements that a list has room for in registers.
    fn room(&self, ty: TypeId) -> u64 {
        match self.c.emitter.kind(ty) {
            Type::Str { bound, .. } => 4 * bound.unwrap_or(0),
            Type::Sequence(_, bound) => bound.unwrap_or(0),
            _ => 1,
        }
    }

    /// Which slot holds the number of elements of this one.
    fn count_of(&self, slot: &Slot) -> usize {
        let count = |s: &Slot| matches!(s.leaf, Leaf::Count(_)) && s.path == slot.path;
        self.message.slots.iter().position(count).unwrap_or(0)
    }

    /// Statements that put the values into the message and leave its tag in `_tag`.
    fn pack(&self) -> Vec<Stmt> {
        let e = self.c.emitter;
        let refuse = || Stmt::Return(Some(self.too_long.clone()));
        let mut body = self.agree(&refuse);
        if has_streams(self.message) {
            body.push(Stmt::Announce(Ty::named("quill_out"), "_stream".into()));
            let stream = Some(name("_stream").address());
            body.push(Stmt::Let(Ty::named("quill_out").to(), "_out".into(), stream));
        }
        // A text first: what the values replace may be a part of it.
        if let Some(chunk) = tail(e, self.message) {
            let value = Interface::at(self.spots, &chunk.path);
            let label = int(self.message.label);
            let at = int(fixed_bytes(self.message));
            let bound = characters(e, chunk.ty);
            let put = if e.counted(chunk.ty) {
                let copy = self.copy_of(0, chunk, &mut body);
                call("quill_put_counted_tail", [utcb(), label, at, value, bound, copy, room(e, chunk)])
            } else {
                let put = if self.reply { "quill_put_reply_tail" } else { "quill_put_tail" };
                call(put, [utcb(), label, at, value, bound])
            };
            body.push(Stmt::Set(name("_tag"), put));
            if let Some(levels) = chunk.caches {
                let at = int(fixed_bytes(self.message));
                let hint = call("quill_hint_caches", [utcb(), at, int(levels)]);
                body.push(Stmt::If(call("quill_has_items", [name("_tag")]), vec![Stmt::Do(hint)]));
            }
            let none = unlikely(name("_tag").with("==", int(0)));
            body.push(Stmt::If(none, vec![Stmt::Return(Some(self.too_long.clone()))]));
        }
        body.extend(self.holes());
        for (i, slot) in self.message.slots.iter().enumerate() {
            self.pack_slot(i, slot, &mut body);
        }
        if tail(e, self.message).is_none() {
            for (i, chunk) in self.message.chunks.iter().enumerate() {
                self.pack_chunk(i, chunk, &mut body);
            }
            body.push(Stmt::Set(name("_tag"), tag(self.message)));
        }
        body
    }

    fn pack_slot(&self, i: usize, slot: &Slot, body: &mut Vec<Stmt>) {
        let e = self.c.emitter;
        let value = Interface::at(self.spots, &slot.path);
        let at = offset(slot);
        match slot.leaf {
            Leaf::Value(ty) if is_block(e, ty) => {
                let copy = [address(at), start(e, ty, value), int(slot.fixed.size as u32)];
                body.push(Stmt::Do(call("__builtin_memcpy", copy)));
            }
            Leaf::Value(ty) => {
                if let Some(wrong) = wrong(e, ty, &value) {
                    body.push(self.refuse_if(wrong));
                }
                body.push(Stmt::Set(place(&e.ty(ty).base, at), value));
            }
            Leaf::Count(ty) => {
                let bound = self.room(ty);
                let length = match e.kind(ty) {
                    Type::Str { .. } if e.counted(ty) => {
                        let counted = call("quill_counted_bytes", [value.clone(), characters(e, ty)]);
                        if self.reply {
                            let from = value.field("_buffer");
                            body.push(self.refuse_if(call("quill_in_message", [utcb(), from])));
                        }
                        counted
                    }
                    Type::Str { .. } if self.reply => {
                        call("quill_reply_text_bytes", [utcb(), value, characters(e, ty)])
                    }
                    Type::Str { .. } => call("quill_text_bytes", [value, characters(e, ty)]),
                    _ => value.field("_length"),
                };
                let count = format!("_length_{i}");
                body.push(Stmt::Let(Ty::named("uint32_t"), count.clone(), Some(length)));
                let too_long = unlikely(name(&count).with(">", int(bound)));
                body.push(Stmt::If(too_long, vec![Stmt::Return(Some(self.too_long.clone()))]));
                body.push(Stmt::Set(place("uint32_t", at), name(count)));
            }
            Leaf::Elements(ty, element) if matches!(e.kind(ty), Type::Array(..)) => {
                body.push(Stmt::Do(call("__builtin_memcpy", [address(at), value, int(element.size)])));
            }
            Leaf::Elements(ty, element) => {
                let count = name(format!("_length_{}", self.count_of(slot)));
                let terminated = matches!(e.kind(ty), Type::Str { .. }) && !e.counted(ty);
                let from = if terminated { value } else { value.field("_buffer") };
                let size = count.with("*", int(element.size));
                let all = int(self.room(ty) * element.size);
                body.push(Stmt::Do(call("quill_put_elements", [address(at), from, size, all])));
            }
            // Only a kernel whose messages have whole words in memory has tails.
            Leaf::Tail(_) => {}
        }
    }

    fn pack_chunk(&self, i: usize, chunk: &Chunk, body: &mut Vec<Stmt>) {
        if chunk.element.is_none() {
            return self.pack_stream(i, chunk, body);
        }
        let e = self.c.emitter;
        let value = Interface::at(self.spots, &chunk.path);
        let at = self.item(i);
        let element = chunk.element.map_or(1, |element| element.size);
        if self.answered && refused_later(e, chunk).is_some() {
            let [word, too_long] = ["_word", "_long"].map(|variable| format!("{variable}_{i}"));
            body.push(Stmt::Announce(Ty::named("uint32_t"), word.clone()));
            body.push(Stmt::Announce(Ty::named("bool"), too_long.clone()));
            let length = value.clone().field("_length");
            let arguments = [name(&word), name(&too_long), length, int(element)];
            body.push(Stmt::Do(call("QUILL_LIST_WORD", arguments)));
            let refuse = vec![Stmt::Return(Some(self.too_long.clone()))];
            body.push(Stmt::If(unlikely(name(too_long)), refuse));
            body.push(Stmt::Do(call(
                "quill_put_item_word",
                [utcb(), at.clone(), value.field("_buffer"), name(word)],
            )));
            if let Some(levels) = chunk.caches {
                body.push(Stmt::Do(call("quill_hint_caches", [utcb(), at, int(levels)])));
            }
            return;
        }
        let (from, bytes, too_long) = match e.kind(chunk.ty) {
            Type::Str { .. } if e.counted(chunk.ty) => {
                let copy = self.copy_of(i, chunk, body);
                let bytes = format!("_sent_{i}");
                let arguments = [copy.clone(), room(e, chunk), value, characters(e, chunk.ty)];
                let found = call("quill_copy_counted", arguments);
                body.push(Stmt::Let(Ty::named("size_t"), bytes.clone(), Some(found)));
                (copy, name(&bytes), Some(name(bytes).with("==", int(0))))
            }
            Type::Str { .. } => {
                let bytes = format!("_sent_{i}");
                let found = call("quill_item_text", [value.clone(), characters(e, chunk.ty)]);
                body.push(Stmt::Let(Ty::named("size_t"), bytes.clone(), Some(found)));
                (value, name(&bytes), Some(name(bytes).with("==", int(0))))
            }
            Type::Sequence(..) => {
                let length = value.clone().field("_length");
                let most = chunk.bound.unwrap_or(u64::MAX).min(u64::from(ITEM_BYTES_MAX) / element.max(1));
                let bytes =
                    if element == 1 { length.clone() } else { length.clone().with("*", int(element)) };
                (value.field("_buffer"), bytes, Some(length.with(">", int(most))))
            }
            _ => (value, int(element), None),
        };
        if let Some(too_long) = too_long {
            body.push(Stmt::If(unlikely(too_long), vec![Stmt::Return(Some(self.too_long.clone()))]));
        }
        if self.reply {
            body.push(self.refuse_if(call("quill_in_message", [utcb(), from.clone()])));
        }
        body.push(Stmt::Do(call("quill_put_item", [utcb(), at.clone(), from, bytes])));
        if let Some(levels) = chunk.caches {
            body.push(Stmt::Do(call("quill_hint_caches", [utcb(), at, int(levels)])));
        }
    }

    /// Room on the stack for a counted text and the zero that it gets.
    fn copy_of(&self, i: usize, chunk: &Chunk, body: &mut Vec<Stmt>) -> Expr {
        let copy = format!("_copy_{i}");
        let (ty, size) = match bytes_max(self.c.emitter, chunk) {
            Some(bytes) => ("char", vec![bytes]),
            None => ("quill_unbounded", Vec::new()),
        };
        body.push(Stmt::Announce(Ty { dims: size, ..Ty::named(ty) }, copy.clone()));
        if bytes_max(self.c.emitter, chunk).is_some() { name(copy) } else { name(copy).field("bytes") }
    }

    /// The first byte of an item. On a processor of 64 bits it is rounded up to a word, and so is the fixed part.
    fn item(&self, number: usize) -> Expr {
        let fixed = int(fixed_bytes(self.message));
        if number == 0 {
            return fixed;
        }
        let words = call("sizeof", [name("quill_word")]).with("*", int(2 * number as u32));
        fixed.with("+", words)
    }

    /// Statements that take the values out of a message of the right shape, with every check. `buffer` says where an
    /// item was received.
    fn unpack(&self, buffer: &dyn Fn(usize, &Chunk) -> Expr) -> Vec<Stmt> {
        let mut body = self.unpack_parts(buffer);
        for path in super::linux::values::anys(self.c.emitter, self.message) {
            let unsound = super::linux::values::unsound(Interface::at(self.spots, path));
            body.push(self.refuse_if(unsound));
        }
        body.extend(self.agree(&|| Stmt::Return(Some(self.malformed.clone()))));
        body
    }

    /// Statements that check whether what is in structs agrees.
    fn agree(&self, fail: &dyn Fn() -> Stmt) -> Vec<Stmt> {
        let e = self.c.emitter;
        self.spots.iter().flat_map(|(_, ty, value)| agree::fields(e, *ty, value, fail, 0)).collect()
    }

    /// Statements that write a value that is read piece by piece, and make it an item.
    fn pack_stream(&self, i: usize, chunk: &Chunk, body: &mut Vec<Stmt>) {
        let e = self.c.emitter;
        let place = if self.reply { self.reply_room(i) } else { name(format!("_piece_{i}")) };
        if !self.reply {
            let room = match bytes_max(e, chunk) {
                Some(bytes) => Ty { dims: vec![bytes.div_ceil(8)], ..Ty::named("uint64_t") },
                None => Ty::named("quill_unbounded"),
            };
            body.push(Stmt::Announce(room, format!("_piece_{i}")));
        }
        let (begin, room) = (start_of(place.clone()), call("sizeof", [place]));
        let stream = || name("_stream");
        body.push(Stmt::Set(stream(), call("quill_begin_out", [begin.clone(), room])));
        body.extend(values::put(e, chunk.ty, Interface::at(self.spots, &chunk.path), 0));
        let status = || stream().field("status");
        let failed = unlikely(status().with("!=", name("QUILL_OK")));
        let why = if self.reply { self.too_long.clone() } else { status() };
        body.push(Stmt::If(failed, vec![Stmt::Return(Some(why))]));
        let item = [utcb(), self.item(i), begin, stream().field("length")];
        body.push(Stmt::Do(call("quill_put_item", item)));
    }

    /// Place in a server for a value of a reply until it is sent.
    fn reply_room(&self, i: usize) -> Expr {
        name("_buffers").deref().field(format!("_reply_{i}"))
    }

    /// Statements that read such a value from where it has arrived.
    fn unpack_stream(&self, i: usize, chunk: &Chunk, buffer: Expr, body: &mut Vec<Stmt>) {
        let e = self.c.emitter;
        let bytes = format!("_bytes_{i}");
        let found = call("quill_item_bytes", [utcb(), self.item(i)]);
        body.push(Stmt::Let(Ty::named("quill_word"), bytes.clone(), Some(found)));
        body.push(self.refuse_if(name(&bytes).with(">", room(e, chunk))));
        body.push(Stmt::Do(call("quill_next_in", [name("_in"), buffer, name(bytes)])));
        body.extend(values::get(e, chunk.ty, Interface::at(self.spots, &chunk.path), 0));
        body.push(self.refuse_if(Expr::Not(Box::new(call("quill_is_end", [name("_in")])))));
    }

    /// Statements before values are read piece by piece: memory for lists in them.
    fn begin_streams(&self) -> Vec<Stmt> {
        if !has_streams(self.message) {
            return Vec::new();
        }
        let owner = name(if self.reply { "_room" } else { "_buffers" }).deref();
        let kept = self.kept_bytes(self.message.slots.len());
        let memory = owner.field("_memory").cast(Ty::named("char *")).with("+", int(kept));
        let left = name("QUILL_MEMORY_BYTES").with("-", int(kept));
        let given = call("quill_give_memory", [name("_in"), memory, left]);
        vec![
            Stmt::Let(Ty::named("quill_in"), "_pieces".into(), None),
            Stmt::Let(Ty::named("quill_in").to(), "_in".into(), Some(name("_pieces").address())),
            Stmt::Do(given),
        ]
    }

    fn unpack_parts(&self, buffer: &dyn Fn(usize, &Chunk) -> Expr) -> Vec<Stmt> {
        let e = self.c.emitter;
        let mut body = self.begin_streams();
        if self.spills() {
            body.push(Stmt::Do(call("quill_spill", [utcb(), name("_w0"), name("_w1")])));
        }
        for (i, slot) in self.message.slots.iter().enumerate() {
            self.unpack_slot(i, slot, &mut body);
        }
        if let Some(chunk) = tail(e, self.message) {
            let text = format!("_text_{}", self.message.slots.len());
            let place = buffer(0, chunk);
            if chunk.caches.is_some() {
                let forget = call("quill_forget_hints", [utcb(), int(fixed_bytes(self.message))]);
                body.push(Stmt::If(call("quill_has_items", [name("_tag")]), vec![Stmt::Do(forget)]));
            }
            let arguments = [
                utcb(),
                name("_tag"),
                int(self.message.label),
                int(fixed_bytes(self.message)),
                place.clone(),
                room(e, chunk),
                characters(e, chunk.ty),
            ];
            if e.counted(chunk.ty) {
                let value = Interface::at(self.spots, &chunk.path);
                let found = call("quill_get_counted_tail", arguments.into_iter().chain([value.address()]));
                body.push(self.refuse_if(Expr::Not(Box::new(found))));
                return body;
            }
            let found = call("quill_get_tail", arguments);
            body.push(Stmt::Let(Ty::named("const char *"), text.clone(), Some(found)));
            body.push(self.refuse_if(name(&text).with("==", name("NULL"))));
            let value = Interface::at(self.spots, &chunk.path);
            if self.reply && !self.raised {
                body.push(Stmt::Do(call("quill_bring_text", [value, name(text)])));
            } else if self.both_ways || self.raised {
                body.push(Stmt::Do(call("quill_bring_text", [place.clone(), name(text)])));
                body.push(Stmt::Set(value, place));
            } else {
                body.push(Stmt::Set(value, unconst(name(text))));
            }
            return body;
        }
        for (i, chunk) in self.message.chunks.iter().enumerate() {
            self.unpack_chunk(i, chunk, buffer(i, chunk), &mut body);
        }
        body
    }

    /// Whether something is read as bytes that begins in the first two words.
    fn spills(&self) -> bool {
        let e = self.c.emitter;
        let early = |slot: &Slot| match slot.leaf {
            Leaf::Value(ty) if is_block(e, ty) => !taken(slot),
            Leaf::Value(ty) => slot.fixed.size > 4 || matches!(e.kind(ty), Type::Float(_)),
            Leaf::Count(_) | Leaf::Tail(_) => false,
            Leaf::Elements(..) => true,
        };
        self.message.slots.iter().any(|slot| offset(slot) < 8 && early(slot))
            || fixed_bytes(self.message) < 8 && !self.message.chunks.is_empty()
    }

    fn unpack_slot(&self, i: usize, slot: &Slot, body: &mut Vec<Stmt>) {
        let e = self.c.emitter;
        let value = Interface::at(self.spots, &slot.path);
        let at = offset(slot);
        match slot.leaf {
            Leaf::Value(ty) if is_block(e, ty) => {
                let from = [utcb(), int(at), int(slot.fixed.size as u32), name("_w0"), name("_w1")];
                body.push(Stmt::Do(call("quill_take_out", [start(e, ty, value)].into_iter().chain(from))));
            }
            Leaf::Value(ty) => {
                let base = if matches!(e.kind(ty), Type::Bool) { "uint8_t".into() } else { e.ty(ty).base };
                let early = at < 8 && slot.fixed.size <= 4 && !matches!(e.kind(ty), Type::Float(_));
                let found = if early {
                    let word = name(if at < 4 { "_w0" } else { "_w1" });
                    let shift = 8 * (at % 4);
                    let word = if shift > 0 { word.with(">>", int(shift)) } else { word };
                    word.cast(Ty::named(base))
                } else {
                    place(&base, at)
                };
                if matches!(e.kind(ty), Type::Bool) {
                    body.push(self.refuse_if(found.clone().with(">", int(1))));
                    body.push(Stmt::Set(value, found.with("!=", int(0))));
                    return;
                }
                body.push(Stmt::Set(value.clone(), found));
                if let Some(wrong) = wrong(e, ty, &value) {
                    body.push(self.refuse_if(wrong));
                }
            }
            Leaf::Count(_) => {
                let word = match at {
                    0 => name("_w0"),
                    4 => name("_w1"),
                    _ => place("uint32_t", at),
                };
                body.push(Stmt::Let(Ty::named("uint32_t"), format!("_count_{i}"), Some(word)));
            }
            Leaf::Tail(_) => {}
            Leaf::Elements(ty, element) => self.unpack_elements(i, slot, ty, element, value, body),
        }
    }

    /// Where a list of an exception that arrives in registers is kept: in the memory of the client's room.
    fn kept_list(&self, i: usize) -> Expr {
        let memory = name("_room").deref().field("_memory").cast(Ty::named("char *"));
        memory.with("+", int(self.kept_bytes(i)))
    }

    /// Bytes of memory that such lists before this slot take.
    fn kept_bytes(&self, before: usize) -> i128 {
        let bytes = self.message.slots[..before].iter().map(|slot| match slot.leaf {
            Leaf::Elements(ty, element) if self.raised => {
                (self.room(ty) * element.size + 1).next_multiple_of(8)
            }
            _ => 0,
        });
        bytes.sum::<u64>().into()
    }

    fn unpack_elements(
        &self,
        i: usize,
        slot: &Slot,
        ty: TypeId,
        element: Fixed,
        value: Expr,
        body: &mut Vec<Stmt>,
    ) {
        let e = self.c.emitter;
        let from = address(offset(slot));
        let count = name(format!("_count_{}", self.count_of(slot)));
        match e.kind(ty) {
            Type::Str { .. } if e.counted(ty) => {
                let to = value.clone().field("_buffer");
                if !self.reply {
                    let text = format!("_text_{i}");
                    let room = Ty { dims: vec![self.room(ty).max(1)], ..Ty::named("char") };
                    body.push(Stmt::Announce(room, text.clone()));
                    body.push(Stmt::Set(to.clone(), name(text)));
                }
                let text = call("quill_get_counted_text", [to, from, count.clone(), characters(e, ty)]);
                body.push(self.refuse_if(Expr::Not(Box::new(text))));
                body.push(Stmt::Set(value.field("_length"), count));
            }
            Type::Str { .. } => {
                let mut to = if self.raised { self.kept_list(i) } else { value.clone() };
                if !self.reply {
                    let text = format!("_text_{i}");
                    let room = Ty { dims: vec![self.room(ty) + 1], ..Ty::named("char") };
                    body.push(Stmt::Let(room, text.clone(), None));
                    to = name(text);
                }
                let text = call("quill_get_text", [to.clone(), from, count, characters(e, ty)]);
                body.push(self.refuse_if(Expr::Not(Box::new(text))));
                if !self.reply || self.raised {
                    body.push(Stmt::Set(value, to));
                }
            }
            Type::Sequence(of, bound) => {
                let bound = bound.unwrap_or(0);
                body.push(self.refuse_if(count.clone().with(">", int(bound))));
                if !self.reply {
                    let list = format!("_list_{i}");
                    let mut room = e.ty(*of);
                    room.dims.insert(0, bound.max(1));
                    body.push(Stmt::Let(room, list.clone(), None));
                    body.push(Stmt::Set(value.clone().field("_buffer"), name(list)));
                } else if self.raised {
                    let kept = self.kept_list(i).cast(Ty::named("void *"));
                    body.push(Stmt::Set(value.clone().field("_buffer"), kept));
                }
                body.push(Stmt::Set(value.clone().field("_length"), count.clone()));
                let size = count.with("*", int(element.size));
                body.push(Stmt::Do(call("__builtin_memcpy", [value.field("_buffer"), from, size])));
            }
            _ => body.push(Stmt::Do(call("__builtin_memcpy", [value, from, int(element.size)]))),
        }
    }

    /// Whether an item of a reply is in the client's room.
    fn is_in_room(&self, i: usize) -> bool {
        self.in_room.get(i).is_some_and(|is_in_room| *is_in_room)
    }

    fn unpack_chunk(&self, i: usize, chunk: &Chunk, buffer: Expr, body: &mut Vec<Stmt>) {
        if chunk.element.is_none() {
            return self.unpack_stream(i, chunk, buffer, body);
        }
        let e = self.c.emitter;
        let value = Interface::at(self.spots, &chunk.path);
        let bytes = format!("_bytes_{i}");
        if chunk.caches.is_some() {
            body.push(Stmt::Do(call("quill_forget_hints", [utcb(), self.item(i)])));
        }
        let found = call("quill_item_bytes", [utcb(), self.item(i)]);
        body.push(Stmt::Let(Ty::named("quill_word"), bytes.clone(), Some(found)));
        let bytes = name(bytes);
        let element = chunk.element.map_or(1, |element| element.size);
        match e.kind(chunk.ty) {
            Type::Str { .. } => {
                let too_long = bytes.clone().with(">", room(e, chunk));
                let text = call("quill_is_text", [buffer.clone(), bytes.clone(), characters(e, chunk.ty)]);
                let length = bytes.clone().with("-", int(1)).cast(Ty::named("uint32_t"));
                body.push(self.refuse_if(too_long.with("||", Expr::Not(Box::new(text)))));
                if e.counted(chunk.ty) {
                    body.push(Stmt::Set(value.clone().field("_length"), length));
                    body.push(Stmt::Set(value.field("_buffer"), buffer));
                } else if !self.reply || self.raised {
                    body.push(Stmt::Set(value, buffer));
                } else if self.is_in_room(i) {
                    body.push(Stmt::Do(call("quill_bring_text", [value, buffer])));
                }
            }
            Type::Sequence(..) => {
                let mut bad = bytes.clone().with(">", room(e, chunk));
                if element > 1 {
                    bad = bad.with("||", bytes.clone().with("%", int(element)).with("!=", int(0)));
                }
                body.push(self.refuse_if(bad));
                let length = if element > 1 { bytes.clone().with("/", int(element)) } else { bytes.clone() };
                body.push(Stmt::Set(value.clone().field("_length"), length.cast(Ty::named("uint32_t"))));
                if !self.reply || self.raised {
                    body.push(Stmt::Set(value.field("_buffer"), buffer.cast(Ty::named("void *"))));
                } else if self.is_in_room(i) {
                    let copy = [value.field("_buffer"), buffer, bytes];
                    body.push(Stmt::Do(call("__builtin_memcpy", copy)));
                }
            }
            _ => {
                body.push(self.refuse_if(bytes.with("!=", int(element))));
                if !self.reply || self.raised || self.is_in_room(i) {
                    body.push(Stmt::Do(call("__builtin_memcpy", [value, buffer, int(element)])));
                }
            }
        }
    }
}

/// The most bytes of an item.
const ITEM_BYTES_MAX: u32 = (1 << 22) - 1;

/// A text in a message is changed by nobody; its type in a struct or an argument may not say so.
fn unconst(text: Expr) -> Expr {
    text.cast(Ty::named("uintptr_t")).cast(Ty::named("char *"))
}

/// Whether something in a message is read piece by piece.
fn has_streams(message: &Message) -> bool {
    message.streams().next().is_some()
}

/// The first byte of room for a value that is read piece by piece.
fn start_of(room: Expr) -> Expr {
    room.address().cast(Ty::named("char *"))
}

/// Room for items by their numbers: a union of what bounds ask for, and of what there is for something without one.
fn rooms<'m>(
    c: &Interface,
    chunks: impl Iterator<Item = (usize, &'m Chunk)>,
) -> Vec<(usize, Vec<(Ty, String)>)> {
    let mut sizes: BTreeMap<usize, Vec<Option<u64>>> = BTreeMap::new();
    for (number, chunk) in chunks {
        sizes.entry(number).or_default().push(bytes_max(c.emitter, chunk));
    }
    let room = |(number, sizes): (usize, Vec<Option<u64>>)| {
        let bound = sizes.iter().flatten().copied().max().unwrap_or(0).max(1).next_multiple_of(8);
        let words = Ty { dims: vec![bound.div_ceil(8)], ..Ty::named("uint64_t") };
        let mut inner = vec![(words, "_bounded".into())];
        if sizes.contains(&None) {
            inner.push((Ty::named("quill_unbounded"), "_unbounded".into()));
        }
        (number, inner)
    };
    sizes.into_iter().map(room).collect()
}

/// Items of messages, with their numbers.
fn items_of<'m>(messages: impl Iterator<Item = &'m Message>) -> impl Iterator<Item = (usize, &'m Chunk)> {
    messages.flat_map(|message| message.chunks.iter().enumerate())
}

/// Finds those items of a method's replies that arrive in the client's room: values that are read piece by piece, and all that are of an exception.
fn in_room(method: &Method) -> Vec<bool> {
    let items = method.replies().map(|reply| reply.chunks.len()).max().unwrap_or(0);
    let is_in_room = |number: usize| {
        method.exceptions.iter().any(|(_, message)| message.chunks.len() > number)
            || method.reply.chunks.get(number).is_some_and(|chunk| chunk.element.is_none())
    };
    (0..items).map(is_in_room).collect()
}

/// Whether a client brings a room for what comes back.
pub fn needs_room(e: &Emitter, method: &Method) -> bool {
    let has_list = |message: &Message| message.slots.iter().any(|slot| is_list(e, slot));
    in_room(method).contains(&true) || method.exceptions.iter().any(|(_, message)| has_list(message))
}

/// A struct with such rooms.
fn record(
    c: &Interface,
    what: &str,
    rooms: Vec<(String, String, Vec<(Ty, String)>)>,
    memory: bool,
) -> Vec<Item> {
    let record = c.function(what);
    let mut items = Vec::new();
    let mut members = Vec::new();
    for (union, field, inner) in rooms {
        let union = c.function(&union);
        items.push(Item::Announce("union", union.clone()));
        items.push(Item::Record("union", union.clone(), inner));
        members.push((Ty::named(union), field));
    }
    if memory {
        let words = Ty { dims: vec![MEMORY_WORDS], ..Ty::named("uint64_t") };
        members.push((words, "_memory".into()));
    }
    items.push(Item::Announce("struct", record.clone()));
    items.push(Item::Record("struct", record, members));
    items
}

/// Words of memory for lists in values that are read piece by piece; as QUILL_MEMORY_BYTES says.
const MEMORY_WORDS: u64 = 1024;

/// Room of a server: for the items of any request, and the values of its replies that are read piece by piece.
fn buffers(c: &Interface, methods: &[Method]) -> Vec<Item> {
    if !methods.iter().any(needs_buffers) {
        return Vec::new();
    }
    let requests = || methods.iter().map(|method| &method.request);
    let come = rooms(c, items_of(requests())).into_iter();
    let come = come.map(|(number, inner)| (format!("buffers_{number}"), format!("_{number}"), inner));
    let answers = items_of(methods.iter().flat_map(Method::replies));
    let go = rooms(c, answers.filter(|(_, chunk)| chunk.element.is_none())).into_iter();
    let go = go.map(|(number, inner)| (format!("answers_{number}"), format!("_reply_{number}"), inner));
    record(c, "buffers", come.chain(go).collect(), requests().any(has_streams))
}

/// Room that a client brings for replies with values that are read piece by piece, and for lists in exceptions.
fn replies(c: &Interface, methods: &[Method]) -> Vec<Item> {
    let needed: Vec<&Method> = methods.iter().filter(|method| needs_room(c.emitter, method)).collect();
    if needed.is_empty() {
        return Vec::new();
    }
    let chunks = needed.iter().flat_map(|method| {
        let in_room = in_room(method);
        items_of(method.replies()).filter(move |(number, _)| in_room[*number])
    });
    let rooms = rooms(c, chunks).into_iter();
    let rooms = rooms.map(|(number, inner)| (format!("replies_{number}"), format!("_{number}"), inner));
    record(c, "replies", rooms.collect(), true)
}

/// The name of a server's n-th buffer.
fn buffer(number: usize) -> Expr {
    name("_buffers").deref().field(format!("_{number}"))
}

/// A client's function.
fn client(c: &Interface, operation: &Operation, method: &Method) -> Item {
    let mut parameters: Parameters = vec![(Ty::named("quill_thread"), "_server".into())];
    if needs_room(c.emitter, method) {
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
    Side {
        c,
        message,
        spots,
        malformed: name("QUILL_MALFORMED"),
        too_long: name("QUILL_TOO_LONG"),
        reply,
        answered: false,
        both_ways: false,
        raised: false,
        in_room: Vec::new(),
    }
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
    if needs_room(e, method) {
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

/// What a client does with a reply that is not that of success.
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

/// A function that is a part of its caller.
fn inlined(ty: &str) -> Ty {
    Ty::named(format!("__attribute__((always_inline)) {ty}"))
}

/// Whether a method's request can have items, or something in its reply is kept until that is sent.
pub fn needs_buffers(method: &Method) -> bool {
    !method.request.chunks.is_empty() || method.replies().any(has_streams)
}

/// The function that answers a request for a method: from a tag to the tag of the reply.
fn answer(c: &Interface, operation: &Operation, method: &Method) -> Item {
    let e = c.emitter;
    let parameters = answer_parameters(c, method);
    let refused = call("quill_refuse", [name("_partner"), name("_tag"), name("QUILL_MALFORMED")]);
    let inputs = c.local(c.inputs(operation));
    let outputs = c.local(c.outputs(operation));
    let inputs = borrowed(&inputs);
    let request = Side {
        c,
        message: &method.request,
        spots: &inputs,
        malformed: refused.clone(),
        too_long: refused.clone(),
        reply: false,
        answered: false,
        both_ways: tail(e, &method.request).is_some_and(|chunk| goes_back(operation, chunk)),
        raised: false,
        in_room: Vec::new(),
    };
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
    let mut cases = Vec::new();
    for (number, (_, message)) in method.exceptions.iter().enumerate() {
        let spots = c.exception_spots(operation, number, name("_raised"));
        let mut case = reply(c, message, &borrowed(&spots)).pack();
        case.push(Stmt::Return(Some(name("_tag"))));
        cases.push((vec![message.label.into()], case));
    }
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
    Side {
        c,
        message,
        spots,
        malformed: bad.clone(),
        too_long: bad,
        reply: true,
        answered: false,
        both_ways: false,
        raised: false,
        in_room: Vec::new(),
    }
}

/// The server's loop: the place of a method is found by the first bits of the label, as many as there are places.
fn serve(c: &Interface, operations: &[&Operation], methods: &[Method]) -> Item {
    let mut parameters: Parameters = vec![
        (Ty::named(c.function("server")).to().constant(), "_methods".into()),
        (Ty::named("void *"), "_self".into()),
    ];
    let most = methods.iter().map(|method| method.request.chunks.len()).max().unwrap_or(0);
    if methods.iter().any(needs_buffers) {
        parameters.push((Ty::named(c.function("buffers")).to(), "_buffers".into()));
    }
    let mut body = vec![
        Stmt::Let(Ty::named("char *"), "_utcb".into(), Some(call("quill_utcb", []))),
        Stmt::Let(Ty::named("quill_thread"), "_partner".into(), Some(int(0))),
        Stmt::Let(Ty::named("quill_word"), "_tag".into(), Some(int(0))),
        Stmt::Let(Ty::named("uint32_t"), "_w0".into(), Some(int(0))),
        Stmt::Let(Ty::named("uint32_t"), "_w1".into(), Some(int(0))),
        Stmt::Do(name("_methods").cast(Ty::named("void"))),
        Stmt::Do(name("_self").cast(Ty::named("void"))),
    ];
    if methods.iter().any(needs_buffers) {
        body.push(Stmt::Do(name("_buffers").cast(Ty::named("void"))));
    }
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
        let place = (number as u32).reverse_bits() >> (32 - bits);
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
