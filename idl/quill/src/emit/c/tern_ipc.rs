//! C over Tern, by ipc or through doors: values between variables and the words of a short message.
//!
//! Words are an array of constant indices, which compilers keep in registers. Short lists lie inside their structs and short
//! texts in arrays, with room for as much as their bounds allow, so nobody allocates: a caller brings the room. Longer ones
//! are sent from where they lie, and a server uses them where they arrive.
//!
//! The messages of both ways are the same, and so is nearly all of the code. A [`Way`], [`ipc`] or [`door`], says how a client
//! calls its server, and what calls the function that answers for a method.

use super::tree::{Expr, Item, Parameters, Stmt, Ty, call, name};
use super::{Emitter, Lists, Part, agree, interface, word};
use crate::emit::travel::streamed;
use crate::kernel::table_bits;
use crate::layout::{Chunk, Handed, InterfaceLayout, Message, Method, Place, Room};
use crate::marshal::{HELD_ELEMENTS_MAX, Lying};
use crate::model::{Field, Operation, Type, TypeId};
use crate::plan::{self, Block, Content, KEPT_WORDS_MAX, Memory, Plan, Stands, Step, Variable, What, Word};
use crate::sizes::for_all_types;

use interface::{Interface, Spot, borrowed, status};

use super::pieces::{self, start, wrong_bits};
use super::release;

use client::*;
use pack::*;
use server::*;
use unpack::*;

/// The runtime of a way: what all have, and more.
macro_rules! runtime {
    ($($more:tt)*) => {
        concat!(
            include_str!("../utf8.h"),
            include_str!("../tern_ipc_runtime.h"),
            include_str!("../stream_places.h"),
            include_str!("../tern_stream.h"),
            include_str!("../stream.h"),
            include_str!("../places_shared.h"),
            include_str!("../stream_shared.h"),
            include_str!("../stream_texts.h"),
            include_str!("../tern_serve.h"),
            $($more)*
        )
    };
}

mod client;
pub mod door;
mod elements;
pub mod ipc;
mod offers;
mod pack;
mod pages;
mod references;
mod server;
mod several;
mod unpack;

/// C over Tern, in one of its ways.
#[derive(Clone, Copy, Debug)]
pub struct Tern(pub &'static dyn Way);

/// How a message gets to a server and into a method.
pub trait Way: Sync + std::fmt::Debug {
    /// The runtime: text that stubs share.
    fn runtime(&self) -> &'static str;

    /// Whether references to objects are handed over, and somebody owns them.
    fn hands_references(&self) -> bool;

    /// Whether clients offer lists, and servers take them.
    fn takes_offers(&self) -> bool;

    /// The type of what a client calls.
    fn callee(&self, e: &Emitter, layout: &InterfaceLayout) -> Ty;

    /// The parameter of a method that says who calls, if anybody knows.
    fn caller(&self) -> Option<(Ty, String)>;

    /// A client's functions for a method.
    fn clients(&self, c: &Interface, layout: &InterfaceLayout, of: (&Operation, &Method)) -> Vec<Item>;

    /// The name of the one that calls.
    fn client_name(&self, c: &Interface, operation: &Operation, method: &Method) -> String;

    /// The call. It evaluates to `rax`, or to a status if nothing comes back.
    fn call(&self, method: &Method) -> Expr;

    /// Statements around a call whose reply brings something in registers: the call itself may not say where it is to arrive.
    fn in_window(&self, _: &Emitter, _: &Handed, called: Stmt) -> Vec<Stmt> {
        vec![called]
    }

    /// Beginning of the names of what `rax` is after a call.
    fn constants(&self) -> &'static str;

    /// `rax` as it is after a call by ipc.
    fn reply(&self, rax: Expr) -> Expr {
        rax
    }

    /// Where the parts of requests in memory arrive.
    fn arrival<'r>(&self, room: &'r Room) -> Arrival<'r>;

    /// Declarations about the memory where they arrive.
    fn room(&self, c: &Interface, layout: &InterfaceLayout, room: &Room) -> Vec<Item>;

    /// The server: functions or macros that answer requests.
    fn server(&self, c: &Interface, layout: &InterfaceLayout, operations: &[&Operation]) -> Vec<Item>;

    /// All of an interface that cannot be served in the usual way.
    fn unusual(&self, _: &Interface, _: &InterfaceLayout, _: &[&Operation]) -> Option<Vec<Item>> {
        None
    }
}

impl Part for Tern {
    fn runtime(&self) -> &'static str {
        self.0.runtime()
    }

    fn hands_references(&self) -> bool {
        self.0.hands_references()
    }

    fn lists(&self) -> Lists {
        Lists::Inside(HELD_ELEMENTS_MAX)
    }

    fn carries(&self, _: &Emitter, _: TypeId) -> bool {
        true
    }

    fn refuses(&self, emitter: &Emitter, _: &Operation, method: &Method) -> Option<String> {
        let kept = method.replies().map(|reply| kept_words(emitter, reply)).max().unwrap_or(0);
        let bytes = 8 * KEPT_WORDS_MAX;
        let large = (kept > KEPT_WORDS_MAX)
            .then(|| format!("what comes back, arrays and short lists, has more than {bytes} bytes"));
        large.or_else(|| elements::refused(emitter, method))
    }

    fn types(&self, emitter: &Emitter) -> Vec<Item> {
        if self.0.hands_references() { references::types(emitter) } else { Vec::new() }
    }

    fn values(&self, emitter: &Emitter) -> Vec<Item> {
        let streamed = streamed(emitter.model, &emitter.sizes, Lying::Long, &emitter.refers);
        let mut items = pieces::functions(emitter, |id| streamed[id.0 as usize]);
        items.extend(release::exceptions(emitter));
        items.extend(release::other_names(emitter));
        items
    }

    fn interface(&self, emitter: &Emitter, layout: &InterfaceLayout, operations: &[&Operation]) -> Vec<Item> {
        let c = Interface { emitter, interface: &emitter.model.interfaces[layout.interface.0 as usize].name };
        let way = self.0;
        if let Some(items) = way.unusual(&c, layout, operations) {
            return items;
        }
        let mut items = c.declarations(operations, way.caller().as_ref());
        let (room, replies) = (layout.room(), layout.replies());
        items.extend(way.room(&c, layout, &room));
        if replies.needed {
            items.extend(room_record(&c, &replies, "replies", replies_need_memory(&c, layout)));
        }
        for (operation, method) in operations.iter().zip(&layout.methods) {
            items.extend(way.clients(&c, layout, (operation, method)));
            items.extend(answer(way, &c, operation, method, way.arrival(&room)));
        }
        items.extend(way.server(&c, layout, operations));
        if replies.needed {
            items.extend(unless_own_ipc(open(&c, &replies)));
        }
        items
    }
}

/// Text that a program leaves out which brings system calls of its own.
fn unless_own_ipc(text: String) -> [Item; 3] {
    [Item::Verbatim("#ifndef QUILL_OWN_IPC\n"), Item::Text(text), Item::Verbatim("#endif\n")]
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

/// The words of a message that has arrived, as far as they are in memory.
const ARRIVED: &str = "_arrived";

/// Where the parts of a message in memory arrive.
#[derive(Clone, Copy)]
pub enum Arrival<'a> {
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

/// Whether a list lies elsewhere and not in its value.
fn lies_elsewhere(e: &Emitter, chunk: &Chunk) -> bool {
    match e.kind(chunk.ty) {
        Type::Str { .. } => !e.text_inside(chunk.ty),
        Type::Sequence(_, bound) => !e.inside(*bound),
        _ => false,
    }
}

/// Facts about a message that is being made.
#[derive(Clone, Copy)]
struct Making<'a> {
    maker: Maker,
    /// Nobody hears of a refusal.
    oneway: bool,
    /// Values with references in whose place others come back.
    replaced: &'a [&'a str],
    /// It may offer lists instead of sending them.
    offers: bool,
}

impl Making<'_> {
    fn of(maker: Maker) -> Making<'static> {
        Making { maker, oneway: false, replaced: &[], offers: false }
    }
}

/// The place of a value: the words that it is among, the word, the byte. `memory` are the words in memory.
fn place(step: &Step, memory: &str) -> (Expr, u64, u64) {
    match step.place {
        Place::Register(word, byte) => (words(), word.into(), byte.into()),
        Place::Memory(at) => (name(memory), at / 8, at % 8),
    }
}

/// The address of that place.
fn address(step: &Step, memory: &str) -> Expr {
    let (words, word, byte) = place(step, memory);
    words.cast(Ty::named("char *")).with("+", Expr::Int((word * 8 + byte).into()))
}

/// Where the first element of a list is.
fn elements(e: &Emitter, ty: TypeId, value: Expr) -> Expr {
    if e.counted(ty) || matches!(e.kind(ty), Type::Sequence(..)) { value.field("_buffer") } else { value }
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
        (array("uint64_t", 2 * (strings + room.windows).max(1)), "strings".into()),
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
fn give_memory(e: &Emitter, plan: &Plan, room: Arrival) -> Vec<Stmt> {
    if !plan.pieces().any(|part| has_list_elsewhere(e, part.chunk.ty)) {
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
fn share(e: &Emitter, plan: &Plan, of: &str) -> Vec<Stmt> {
    if !plan.pieces().any(|part| e.shares(part.chunk.ty)) {
        return Vec::new();
    }
    let table = format!("_shared{of}");
    vec![
        Stmt::Announce(Ty::named("quill_shared"), table.clone()),
        Stmt::Set(name(of).deref().field("shared"), call("quill_begin_shared", [name(table).address()])),
    ]
}
