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

use super::linux::values::{self, start, wrong_bits};
use super::release;

use client::*;
use pack::*;
use server::*;
use unpack::*;

mod client;
mod door;
mod elements;
mod offers;
mod pack;
mod pages;
mod references;
mod server;
mod several;
mod unpack;

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
        match self.0.begins {
            true => of_ipc!(
                "\n",
                include_str!("tern_references.h"),
                "\n",
                include_str!("tern_handing.h"),
                "\n",
                include_str!("tern_offers.h")
            ),
            false => of_ipc!(),
        }
    }

    fn hands_references(&self) -> bool {
        self.0.begins
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
        if self.0.begins { references::types(emitter) } else { Vec::new() }
    }

    fn values(&self, emitter: &Emitter) -> Vec<Item> {
        let streamed = streamed(emitter.model, &emitter.sizes, Lying::Long, &emitter.refers);
        let mut items = values::functions(emitter, |id| streamed[id.0 as usize]);
        items.extend(release::exceptions(emitter));
        items.extend(release::other_names(emitter));
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
            items.extend(door::room(&c, &room, layout.windows()));
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
                let inner = items.last().and_then(|inner| offers::client(&c, operation, method, inner));
                items.extend(inner);
            }
            items.extend(answer(way, &c, operation, method, place));
        }
        if way.begins {
            items.push(references::narrow(&c, layout));
            items.push(Item::Text(door::server(&c, operations, layout)));
        } else {
            items.push(dispatch(&c, operations, &layout.methods));
            items.extend(unless_own_ipc(serve(&c, operations, layout, &room)));
        }
        if replies.needed {
            items.extend(unless_own_ipc(open(&c, &replies)));
        }
        items
    }
}

/// An interface by ipc some of whose methods hand over pages.
fn handing_pages(way: &Way, c: &Interface, layout: &InterfaceLayout, operations: &[&Operation]) -> Vec<Item> {
    let has_server = layout.methods.iter().all(Method::is_general);
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
