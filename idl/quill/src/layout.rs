//! Where every value of every message lies. The one place that decides it: emitters, `quill layout` and `quill cost` only
//! read what stands here.
//!
//! A message is a label, a **fixed part** and a **variable part**. The values among its marshal operations are sorted
//! largest first, so no holes arise, and those of inout parameters before all others in both directions, so a value that
//! comes back has not moved. The first lie in registers, the rest in memory. Registers that travel anyway cost nothing,
//! so values have one each as long as there are enough, and share them only when there are not. A block whose bound
//! leaves it room in the registers goes there too. Everything else of variable size follows in the variable part.

use std::collections::HashMap;

use crate::codes::Code;
use crate::diag::Diagnostic;
use crate::kernel::{KernelPart, Shape};
use crate::limits;
pub use crate::marshal::RESULT;
use crate::marshal::{self, Op};
use crate::model::{InterfaceId, Model, Operation, TypeId};
use crate::sizes::{Fixed, Sizes};

pub use heap::{Asked, Heap, Pieces, heap_text};
pub use instructions::{Formula, Instructions, Loop, Sides, costs_text, instructions, instructions_text};
pub use plot::{Missing, Part, Picture, plot};
pub use text::{Cost, cost, cost_text, text};

use places::{Ends, Parts, fits_without_holes, message, pages_of, replies_from_memory};

mod heap;
mod instructions;
mod places;
mod plot;
mod text;

/// Where a leaf lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a register, from this byte of it; what is larger than a register goes on in the next ones.
    Register(u32, u32),
    /// In memory, from this byte of the fixed part.
    Memory(u64),
}

/// What a leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// A value of this type.
    Value(TypeId),
    /// The number of elements of a string or sequence of this type; 32 bits, or 64 for one that is sent from where it lies.
    Count(TypeId),
    /// The elements of such a string or sequence, with room for as many as there may be.
    Elements(TypeId, Fixed),
    /// The last eight bytes of such a string or sequence, or all if there are fewer.
    Tail(TypeId),
    /// The number of an offer that stands for the bytes of such a sequence, or 0.
    Offer(TypeId),
}

/// A leaf, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The parameter, and the fields below it.
    pub path: Vec<String>,
    /// What it is.
    pub leaf: Leaf,
    /// How large.
    pub fixed: Fixed,
    /// Where.
    pub place: Place,
}

/// How something of variable size travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Behind the fixed part, and behind what comes before it.
    Behind,
    /// As all that the message has in memory, from where it lies: in whole words. Its last eight bytes are in the slot
    /// [`Leaf::Tail`], unless its size is always whole words.
    Direct,
    /// As the string of this number, from where it lies.
    String(u32),
}

/// Something in the variable part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The parameter, and the fields below it.
    pub path: Vec<String>,
    /// Its type.
    pub ty: TypeId,
    /// The size of an element, for a block; `None` for a stream.
    pub element: Option<Fixed>,
    /// The most elements a block may have, or the most bytes of a stream. There is one for each block that is not carried
    /// behind the fixed part.
    pub bound: Option<u64>,
    /// How it travels.
    pub carrier: Carrier,
    /// How many levels of caches it may take new lines of, where the interface says so: a hint for the kernel.
    pub caches: Option<u8>,
    /// How many references to objects are handed over with it at most.
    pub references: u64,
}

impl Chunk {
    /// The most bytes it may have, if it has an end.
    pub fn bytes_max(&self) -> Option<u64> {
        self.element?.size.checked_mul(self.bound?)
    }
}

/// One direction of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The label.
    pub label: u32,
    /// The fixed part.
    pub slots: Vec<Slot>,
    /// Registers used, or passed over.
    pub registers: u32,
    /// It has a part in memory that costs it registers.
    pub long: bool,
    /// Bytes of the fixed part in memory.
    pub memory_bytes: u64,
    /// Room in memory for streams behind it, in whole words, where a message with a part in memory is another kind of message.
    pub stream_bytes: u64,
    /// The variable part.
    pub chunks: Vec<Chunk>,
    /// What is handed over beside the words.
    pub pages: Option<Handed>,
    /// More of that: further references to objects. Then it has a part in memory, where all of them are described.
    pub more: Vec<Handed>,
    /// Whether its lists are copied by who sends them and by who gets them, rather than sent and used as they lie.
    pub copies: bool,
}

/// A parameter that hands over pages, ports or interrupts, or a reference to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    /// Its name.
    pub param: String,
    /// Its type.
    pub ty: TypeId,
    /// Whether the sender loses them; if nothing is said, the flexpage says it.
    pub grant: Option<bool>,
}

/// Words of a message in the general form of Tern's ipc, and of one that hands something over in registers: that is the last of them.
pub const GENERAL_WORDS: u32 = 8;

impl Message {
    /// Words that its receiver looks at.
    pub fn words(&self) -> u32 {
        if self.pages.is_some() && !self.long { GENERAL_WORDS } else { self.registers }
    }

    /// Room for words that its receiver needs, in bytes.
    pub fn words_bytes_max(&self) -> u64 {
        let direct = self.chunks.iter().filter(|c| c.carrier == Carrier::Direct);
        let words = self.memory_bytes + self.stream_bytes;
        direct.filter_map(Chunk::bytes_max).fold(words, u64::max).next_multiple_of(8)
    }

    /// Whether a second look at a request with a text reads that register: the tail of a list is in its place by then.
    pub fn reads_again(&self, word: u32) -> bool {
        let holds = |slot: &Slot| match slot.place {
            Place::Register(first, byte) => {
                let end = u64::from(first) + (u64::from(byte) + slot.fixed.size).div_ceil(8);
                !matches!(slot.leaf, Leaf::Tail(_)) && first <= word && u64::from(word) < end
            }
            Place::Memory(_) => false,
        };
        // The dope is in the first.
        word == 0 || self.slots.iter().any(holds)
    }

    /// Lists whose bytes an offer may stand for.
    pub fn offers(&self) -> impl Iterator<Item = &Chunk> {
        let offered = |list: &&Chunk| {
            self.slots.iter().any(|slot| matches!(slot.leaf, Leaf::Offer(_)) && slot.path == list.path)
        };
        self.chunks.iter().filter(offered)
    }

    /// What is read piece by piece behind the fixed part in memory.
    pub fn streams(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().filter(|c| c.element.is_none())
    }

    /// All that is handed over.
    pub fn handed(&self) -> impl Iterator<Item = &Handed> {
        self.pages.iter().chain(&self.more)
    }

    /// How many references to objects are handed over at most with what is read piece by piece.
    pub fn references_within(&self) -> u64 {
        let all = self.chunks.iter().map(|chunk| chunk.references).fold(0, u64::saturating_add);
        all.min((places::HANDED_MAX - self.handed().count().min(places::HANDED_MAX)) as u64)
    }

    /// How many things are handed over at most.
    pub fn handed_max(&self) -> u64 {
        self.handed().count() as u64 + self.references_within()
    }

    /// Whether it may hand over references that are described in its part in memory.
    pub fn hands_from_memory(&self) -> bool {
        self.long && self.handed_max() > 0
    }

    /// Words that describe its part in memory, and hold what is there besides lists.
    pub fn block_words(&self) -> u64 {
        let handed = if self.long { self.handed_max() } else { 0 };
        let parts = self.strings().count() as u64 + handed;
        (self.memory_bytes + self.stream_bytes) / 8 + 2 * parts
    }

    /// Room for strings that its receiver needs, in bytes.
    pub fn strings(&self) -> impl Iterator<Item = u64> {
        let strings = self.chunks.iter().filter(|c| matches!(c.carrier, Carrier::String(_)));
        strings.filter_map(Chunk::bytes_max)
    }
}

/// A method: its request and its replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// The name of the operation.
    pub name: String,
    /// Nothing comes back.
    pub oneway: bool,
    /// To the server.
    pub request: Message,
    /// From the server, when the method succeeds. The result is called [`RESULT`].
    pub reply: Message,
    /// From the server, one for each exception: labels from 1.
    pub exceptions: Vec<(String, Message)>,
}

impl Method {
    /// What can come back: that of success, then those of the exceptions.
    pub fn replies(&self) -> impl Iterator<Item = &Message> {
        [&self.reply].into_iter().chain(self.exceptions.iter().map(|(_, message)| message))
    }

    /// Whether something that comes back may hand over references from its part in memory.
    pub fn replies_from_memory(&self) -> bool {
        self.replies().any(Message::hands_from_memory)
    }

    /// All its messages.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.replies().chain([&self.request])
    }

    /// Whether a call hands pages over, in either direction.
    pub fn hands_pages(&self) -> bool {
        self.messages().any(|message| message.pages.is_some())
    }

    /// Whether something that can come back has a part in memory, so that a client needs an inbox.
    pub fn needs_inbox(&self) -> bool {
        self.replies().any(|reply| reply.long)
    }

    /// How many windows a client has for references that come back.
    pub fn windows_back(&self) -> u64 {
        self.replies().filter(|reply| reply.long).map(Message::handed_max).max().unwrap_or(0)
    }

    /// Words of the longest reply.
    pub fn given(&self) -> u32 {
        if self.oneway { 0 } else { self.replies().map(Message::words).max().unwrap_or(0) }
    }

    /// Whether all its messages fit into the general form of Tern's ipc.
    pub fn is_general(&self) -> bool {
        self.messages().all(|message| !message.long && message.registers <= GENERAL_WORDS)
    }

    /// Registers used in either direction.
    pub fn registers(&self) -> u32 {
        self.replies().map(|reply| reply.registers).fold(self.request.registers, u32::max)
    }
}

/// All methods of an interface, inherited ones first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceLayout {
    /// The interface.
    pub interface: InterfaceId,
    /// Its methods, by number. The kernel part makes the labels of requests from the numbers. A local interface has none:
    /// its methods are called without a message.
    pub methods: Vec<Method>,
    /// Where somebody finds them who knows one of its bases only, if there can be such; and itself, as the first.
    pub views: Vec<View>,
}

/// An interface as one of its bases.
///
/// The methods of the first base, and of that one's first base, have the same numbers in both. Those of another base do not: so
/// they have further numbers here, in the base's order, from a multiple of a power of two on that is not less than how many they are. So whoever
/// knows where they begin finds each by *or*, in numbers and in labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The base.
    pub interface: InterfaceId,
    /// The number of its first method here.
    pub first: u32,
    /// For each of its methods, the number that it has by itself here.
    pub methods: Vec<u32>,
}

/// Memory for messages of one direction with a part there, whatever their method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Whether there are such messages.
    pub needed: bool,
    /// For words, in bytes.
    pub words_bytes: u64,
    /// For each string.
    pub capacities: Vec<u64>,
    /// Windows for references to objects.
    pub windows: u64,
}

impl Room {
    /// Where the buffer for a string begins: they lie one behind the other, each from a multiple of 8.
    pub fn begin(&self, number: u32) -> u64 {
        self.capacities.iter().take(number as usize).map(|bytes| bytes.next_multiple_of(8)).sum()
    }

    /// For all strings.
    pub fn buffers_bytes(&self) -> u64 {
        self.begin(u32::MAX)
    }

    fn include(&mut self, message: &Message) {
        self.needed |= message.long;
        self.words_bytes = self.words_bytes.max(message.words_bytes_max());
        self.windows = self.windows.max(if message.long { message.handed_max() } else { 0 });
        for (number, bytes) in message.strings().enumerate() {
            match self.capacities.get_mut(number) {
                Some(capacity) => *capacity = bytes.max(*capacity),
                None => self.capacities.push(bytes),
            }
        }
    }
}

impl InterfaceLayout {
    /// The method with a number, those of views included.
    pub fn method_at(&self, number: u32) -> Option<u32> {
        let at = |view: &View| view.methods.get(number.checked_sub(view.first)? as usize).copied();
        self.views.iter().find_map(at)
    }

    /// From here on nothing has a number, those of views included.
    pub fn numbers_end(&self) -> u32 {
        ends(&self.views)
    }

    /// How many windows a server has for references: those of an answer leave from there.
    pub fn windows(&self) -> u64 {
        let messages = self.methods.iter().flat_map(Method::messages);
        messages.filter(|message| message.hands_from_memory()).map(Message::handed_max).max().unwrap_or(0)
    }

    /// Memory for all requests.
    pub fn room(&self) -> Room {
        let mut room = Room::default();
        self.methods.iter().for_each(|method| room.include(&method.request));
        room
    }

    /// Memory for all replies, those of exceptions included.
    pub fn replies(&self) -> Room {
        let mut room = Room::default();
        self.methods.iter().flat_map(Method::replies).for_each(|reply| room.include(reply));
        room
    }
}

/// What an interface is called among objects: a hash (FNV-1a) of its name with its modules'.
pub fn interface_id(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// From here on nothing has a number.
fn ends(views: &[View]) -> u32 {
    views.iter().map(|view| view.first + view.methods.len() as u32).max().unwrap_or(0)
}

/// An interface as it is itself, and as each of its bases; `None` if that are more than `left`, from which it takes what it looks at.
fn views(model: &Model, id: InterfaceId, left: &mut usize) -> Option<Vec<View>> {
    let own = model.operations(id);
    let numbers: HashMap<*const Operation, u32> =
        own.into_iter().zip(0..).map(|(operation, number)| (std::ptr::from_ref(operation), number)).collect();
    let (mut views, mut end) = (Vec::new(), 0u32);
    for interface in model.with_bases(id).into_iter().rev() {
        *left = left.checked_sub(model.interfaces.len() / 64 + 1)?;
        let methods = model.operations(interface);
        *left = left.checked_sub(methods.len())?;
        let number = |operation: &&Operation| numbers.get(&std::ptr::from_ref(*operation)).copied();
        let methods: Vec<u32> = methods.iter().filter_map(number).collect();
        let is_first = methods.iter().zip(0..).all(|(&number, i)| number == i);
        let alignment = (methods.len() as u32).next_power_of_two();
        let first = if is_first { 0 } else { end.next_multiple_of(alignment) };
        end = end.max(first + methods.len() as u32);
        views.push(View { interface, first, methods });
    }
    Some(views)
}

/// Labels of replies from here on are errors of the transport, and not of the server's program.
pub const LABEL_ERROR: u32 = 0xffff_0000;

/// Lays out all interfaces that a file itself declares; refuses by name what cannot be carried.
pub fn layout(model: &Model, kernel: &dyn KernelPart) -> Result<Vec<InterfaceLayout>, Vec<Diagnostic>> {
    let mut all = Vec::new();
    let mut refused = Vec::new();
    let sizes = Sizes::new(model);
    let (mut total, mut looks) = (0, limits::VIEWS_MAX);
    for (index, interface) in model.interfaces.iter().enumerate() {
        if interface.imported || !interface.defined {
            continue;
        }
        let id = InterfaceId(index as u32);
        let mut methods = Vec::new();
        if interface.local {
            all.push(InterfaceLayout { interface: id, methods, views: Vec::new() });
            continue;
        }
        let operations = model.operations(id).into_iter().zip(model.interface_numbers(id));
        total += operations.len();
        if total > limits::METHODS_MAX {
            let message =
                format!("the interfaces of this file have more than {} methods", limits::METHODS_MAX);
            return Err(vec![Diagnostic::error(Code::Limit, interface.span, message)]);
        }
        for (number, (operation, interface)) in operations.enumerate() {
            let label = kernel.request_label(number as u32, interface);
            match method(model, &sizes, kernel, operation, label) {
                Ok(method) => methods.push(method),
                Err(what) => {
                    let message = format!("`{}` cannot be translated: {what}", operation.name);
                    refused.push(Diagnostic::error(Code::Unsupported, operation.span, message));
                }
            }
        }
        let views = if kernel.has_views() { views(model, id, &mut looks) } else { Some(Vec::new()) };
        let Some(views) = views.filter(|views| ends(views) as usize <= limits::METHODS_MAX) else {
            let message = "what interfaces of this file inherit is too much to be found as each base";
            return Err(vec![Diagnostic::error(Code::Limit, interface.span, message)]);
        };
        all.push(InterfaceLayout { interface: id, methods, views });
    }
    if refused.is_empty() { Ok(all) } else { Err(refused) }
}

fn method(
    model: &Model,
    sizes: &Sizes,
    kernel: &dyn KernelPart,
    operation: &Operation,
    label: u32,
) -> Result<Method, String> {
    let shape = kernel.shape();
    let steps = |struct_bytes_max| {
        marshal::call(model, sizes, operation, shape.references, shape.lying(), struct_bytes_max)
    };
    let mut call = steps(marshal::VALUE_BYTES_MAX)?;
    if shape.offers {
        call.with_offers(operation);
    }
    let call = call;
    // Each value by itself, for messages in which nothing is optimised.
    let apart = if shape.plain { Some(steps(0)?) } else { None };
    let ends = Ends::new(&shape, operation.oneway);
    let mut parts = Vec::new();
    let hands = call.messages().any(|ops| pages_of(ops).next().is_some());
    let from_memory = replies_from_memory(model, &shape, ends, &call)?;
    for (i, ops) in call.messages().enumerate() {
        let ends = match () {
            () if from_memory => ends.in_memory(&shape, i == 0 || ops.iter().any(Op::hands_over)),
            () if hands => ends.with_pages(&shape, kernel, ops, i == 0)?,
            () => ends,
        };
        let usual = Parts::new(&shape, ends, ops)?;
        // A reply in registers stays there: programs know of it that it needs no inbox.
        let apart = apart.as_ref().filter(|_| usual.long || i == 0);
        parts.push(match apart.and_then(|apart| apart.messages().nth(i)) {
            Some(apart) => Parts::plain(&shape, ends, apart, i == 0)?,
            None => usual,
        });
    }
    // What goes both ways must lie in the same place both ways. So both directions decide together whether to share, whether to
    // do with the easy registers, and where to begin.
    let longest = parts.iter().any(|p| p.long);
    if longest && !shape.plain && call.request.iter().any(|op| op.stays) {
        parts.iter_mut().for_each(|p| p.first = ends.first_long);
    }
    let easy = parts.iter().all(|p| {
        let end = p.ends.easy(p.long);
        p.first + p.packed_words(&shape) <= end && (p.long || fits_without_holes(&shape, p, end))
    });
    let end = |p: &Parts| if easy { p.ends.easy(p.long).min(p.ends.all(p.long)) } else { p.ends.all(p.long) };
    let roomy = !shape.dense && parts.iter().take(2).all(|p| p.first + p.spread_words(&shape) <= end(p));
    let mut parts = parts.into_iter();
    let mut place = |label| {
        let parts = parts.next().unwrap_or_default();
        // Where nothing is optimised, all values of a message with a part in memory are there.
        let in_memory = shape.plain && parts.long;
        let shape = Shape { registers: if in_memory { parts.first } else { end(&parts) }, ..shape };
        // An exception shares no place with the request, and has values in registers of their own only if it fits so itself.
        let roomy = roomy && parts.spread_words(&shape) <= shape.registers.saturating_sub(parts.first);
        message(kernel, shape, label, parts, roomy)
    };
    let request = place(label)?;
    let reply = place(kernel.success_label())?;
    let mut exceptions = Vec::new();
    for (i, (id, _)) in call.exceptions.iter().enumerate() {
        exceptions.push((model.exceptions[id.0 as usize].name.clone(), place(i as u32 + 1)?));
    }
    Ok(Method { name: operation.name.clone(), oneway: operation.oneway, request, reply, exceptions })
}

#[cfg(test)]
mod tests;
