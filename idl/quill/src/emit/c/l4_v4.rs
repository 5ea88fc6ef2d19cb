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

use super::pieces::{self, start, wrong_bits};
use super::tree::{Expr, Item, Parameters, Stmt, Ty, call, name};
use super::{Emitter, Lists, Part, agree, interface, word};
use crate::emit::travel::streamed;
use crate::kernel::table_bits;
use crate::layout::{Chunk, InterfaceLayout, Leaf, Message, Method, Place, Slot};
use crate::marshal::Lying;
use crate::model::{Direction, Operation, Type, TypeId};
use crate::plan::{self, Content, Plan, Step, Variable, What};

use client::client;
use interface::{Interface, Spot, borrowed, status};
use rooms::{buffers, has_streams, in_room, replies, start_of};
use server::{answer, serve};
use side::Side;

pub use rooms::needs_room;
pub use server::needs_buffers;

mod client;
mod rooms;
mod server;
mod side;

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

    /// Each value has an item of its own, with a beginning of its own.
    fn keeps_shared(&self) -> bool {
        false
    }

    fn refuses(&self, emitter: &Emitter, _: &Operation, method: &Method) -> Option<String> {
        let counted_slot = |slot: &Slot| matches!(slot.leaf, Leaf::Count(ty) if emitter.counted(ty));
        if let Some((exception, _)) = method.exceptions.iter().find(|(_, message)| {
            message.slots.iter().any(counted_slot)
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
        let streamed = streamed(emitter.model, &emitter.sizes, Lying::All, &[]);
        pieces::functions(emitter, |id| streamed[id.0 as usize])
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

/// The first byte of a value of the fixed part.
fn offset(step: &Step) -> u32 {
    match step.place {
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
fn taken(step: &Step) -> bool {
    match offset(step) {
        0 => step.bytes >= 8,
        4 => step.bytes >= 4,
        _ => false,
    }
}

/// A condition that is not expected.
fn unlikely(condition: Expr) -> Expr {
    call("QUILL_UNLIKELY", [condition])
}

/// The most bytes of an item.
const ITEM_BYTES_MAX: u32 = (1 << 22) - 1;

/// A text in a message is changed by nobody; its type in a struct or an argument may not say so.
fn unconst(text: Expr) -> Expr {
    text.cast(Ty::named("uintptr_t")).cast(Ty::named("char *"))
}

/// The name of a server's n-th buffer.
fn buffer(number: usize) -> Expr {
    name("_buffers").deref().field(format!("_{number}"))
}
