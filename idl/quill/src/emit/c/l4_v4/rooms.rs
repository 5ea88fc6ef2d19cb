//! Memory that servers and clients bring for what is too long for registers.

use super::*;

/// Whether something in a message is read piece by piece.
pub(super) fn has_streams(message: &Message) -> bool {
    message.streams().next().is_some()
}

/// The first byte of room for a value that is read piece by piece.
pub(super) fn start_of(room: Expr) -> Expr {
    room.address().cast(Ty::named("char *"))
}

/// Room for items by their numbers: a union of what bounds ask for, and of what there is for something without one.
fn rooms<'m>(c: &Interface, chunks: impl Iterator<Item = (usize, &'m Chunk)>) -> Vec<(usize, Parameters)> {
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
pub(super) fn in_room(method: &Method) -> Vec<bool> {
    let items = method.replies().map(|reply| reply.chunks.len()).max().unwrap_or(0);
    let is_in_room = |number: usize| {
        method.exceptions.iter().any(|(_, message)| message.chunks.len() > number)
            || method.reply.chunks.get(number).is_some_and(|chunk| chunk.element.is_none())
    };
    (0..items).map(is_in_room).collect()
}

/// Whether a client brings a room for what comes back.
pub fn needs_room(method: &Method) -> bool {
    let has_list = |message: &Message| message.slots.iter().any(|slot| matches!(slot.leaf, Leaf::Count(_)));
    in_room(method).contains(&true) || method.exceptions.iter().any(|(_, message)| has_list(message))
}

/// A struct with such rooms.
fn record(c: &Interface, what: &str, rooms: Vec<(String, String, Parameters)>, memory: bool) -> Vec<Item> {
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
pub(super) fn buffers(c: &Interface, methods: &[Method]) -> Vec<Item> {
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
pub(super) fn replies(c: &Interface, methods: &[Method]) -> Vec<Item> {
    let needed: Vec<&Method> = methods.iter().filter(|method| needs_room(method)).collect();
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
