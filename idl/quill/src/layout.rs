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
use crate::kernel::{Block, KernelPart, Shape};
use crate::limits;
pub use crate::marshal::RESULT;
use crate::marshal::{self, Op, References, What};
use crate::model::{InterfaceId, Model, Operation, TypeId};
use crate::sizes::{Fixed, Sizes};

pub use instructions::{Instructions, instructions, instructions_text};
pub use text::{Cost, cost, cost_text, text};

mod instructions;
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

impl Message {
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

    /// What is read piece by piece behind the fixed part in memory.
    pub fn streams(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().filter(|c| c.element.is_none())
    }

    /// All that is handed over.
    pub fn handed(&self) -> impl Iterator<Item = &Handed> {
        self.pages.iter().chain(&self.more)
    }

    /// Words that describe its part in memory, and hold what is there besides lists.
    pub fn block_words(&self) -> u64 {
        let handed = if self.long { self.handed().count() } else { 0 };
        let parts = self.strings().count() + handed;
        (self.memory_bytes + self.stream_bytes) / 8 + 2 * parts as u64
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

    /// Whether a call hands pages over, in either direction.
    pub fn hands_pages(&self) -> bool {
        self.replies().chain([&self.request]).any(|message| message.pages.is_some())
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
    let call = marshal::call(model, sizes, operation, shape.references, shape.lying())?;
    let ends = Ends::new(&shape, operation.oneway);
    let all = || [&call.request, &call.reply].into_iter().chain(call.exceptions.iter().map(|(_, ops)| ops));
    let mut parts = Vec::new();
    let hands = all().any(|ops| pages_of(ops).next().is_some());
    for (i, ops) in all().enumerate() {
        let ends = if hands { ends.with_pages(&shape, kernel, ops, i == 0)? } else { ends };
        parts.push(Parts::new(&shape, ends, ops)?);
    }
    // What goes both ways must lie in the same place both ways. So both directions decide together whether to share, whether to
    // do with the easy registers, and where to begin.
    let longest = parts.iter().any(|p| p.long);
    if longest && call.request.iter().any(|op| op.stays) {
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
        let shape = Shape { registers: end(&parts), ..shape };
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

/// Whether values have places up to that register: those that are larger than one begin with one, so there may be holes.
fn fits_without_holes(shape: &Shape, parts: &Parts, end: u32) -> bool {
    place(Shape { registers: end, ..*shape }, parts, false).memory == 0
}

/// Which registers a message can use: up to which, and from which on if it is long.
#[derive(Clone, Copy, Default)]
struct Ends {
    first_long: u32,
    short: [u32; 2],
    long: [u32; 2],
    /// Nothing can be in memory, because something is handed over, here or in the other direction.
    bare: bool,
}

impl Ends {
    fn new(shape: &Shape, oneway: bool) -> Ends {
        let cut = |easy: u32, all: u32, oneway_end: u32| {
            let all = if oneway { all.min(oneway_end) } else { all };
            [easy, all]
        };
        let short = cut(shape.easy_registers, shape.registers, shape.oneway_registers);
        let long = shape.block.map_or([0, 0], |b| cut(b.easy_registers, b.registers, b.oneway_registers));
        Ends { first_long: shape.block.map_or(0, |b| b.first_register), short, long, bare: false }
    }

    /// Those of a message of a call that hands something over. With references a request may have a part in memory, and a reply that
    /// hands none over.
    fn with_pages(
        self,
        shape: &Shape,
        kernel: &dyn KernelPart,
        ops: &[Op],
        is_request: bool,
    ) -> Result<Ends, String> {
        let Some(pages) = shape.pages else {
            return Err(format!("pages cannot be handed over by `{}`", kernel.name()));
        };
        let end = match pages_of(ops).count() {
            0 => pages.other_registers,
            1 => pages.registers,
            2..=HANDED_MAX if shape.references == References::Handed && is_request => pages.registers,
            _ if shape.references != References::Handed => {
                return Err("a message hands over one flexpage".into());
            }
            _ if is_request => {
                return Err(format!("a request hands over at most {HANDED_MAX} references to objects"));
            }
            _ => return Err("a reply hands over one reference to an object".into()),
        };
        let may_be_long =
            shape.references == References::Handed && (is_request || pages_of(ops).count() == 0);
        Ok(Ends { short: self.short.map(|all| all.min(end)), bare: !may_be_long, ..self })
    }

    fn easy(&self, long: bool) -> u32 {
        if long { self.long[0] } else { self.short[0] }
    }

    fn all(&self, long: bool) -> u32 {
        if long { self.long[1] } else { self.short[1] }
    }
}

/// A value that has no place yet.
struct Value<'a> {
    op: &'a Op,
    fixed: Fixed,
    leaf: Leaf,
}

/// What a message consists of, before anything has a place.
#[derive(Default)]
struct Parts<'a> {
    /// In registers or in the fixed part.
    values: Vec<Value<'a>>,
    /// Lists that go to registers.
    blocks: Vec<&'a Op>,
    /// What is of variable size otherwise.
    chunks: Vec<Chunk>,
    long: bool,
    /// The first register.
    first: u32,
    ends: Ends,
    pages: Option<Handed>,
    more: Vec<Handed>,
}

/// The flexpages among the steps of a message, and whether they are granted.
fn pages_of(ops: &[Op]) -> impl Iterator<Item = Handed> {
    ops.iter().filter_map(|op| match op.what {
        What::Pages { grant } => Some(Handed { param: op.path.join("."), ty: op.ty, grant }),
        _ => None,
    })
}

impl<'a> Parts<'a> {
    fn new(shape: &Shape, ends: Ends, ops: &'a [Op]) -> Result<Parts<'a>, String> {
        let mut handed = pages_of(ops);
        let (pages, more) = (handed.next(), handed.collect());
        let mut parts = Parts { first: 0, ends, pages, more, ..Parts::default() };
        for op in ops {
            match op.what {
                What::Value(fixed) => parts.value(op, fixed, Leaf::Value(op.ty)),
                What::Count => parts.value(op, COUNT, Leaf::Count(op.ty)),
                // An array has no count, and in registers it is a value like any other.
                What::Block { element, bound: Some(1) } if shape.block.is_some() && !counted(ops, op) => {
                    parts.value(op, element, Leaf::Value(op.ty));
                }
                What::Block { .. } => parts.blocks.push(op),
                What::Stream { bytes_max } => {
                    parts.chunks.push(chunk(op, None, bytes_max, Carrier::Behind));
                }
                What::Pages { .. } => {}
            }
        }
        // Short lists go to the registers together or not at all: which of two would stay behind would be a riddle.
        let fits = parts.lists_fit(shape, &ends);
        if let Some(block) = &shape.block
            && !(parts.more.is_empty()
                && parts.chunks.is_empty()
                && fits
                && place(Shape { registers: ends.all(false), ..*shape }, &parts, false).memory == 0)
        {
            return Parts::in_memory(shape, block, ends, ops);
        }
        if !fits {
            parts.follow(ops);
            if shape.items {
                parts.values.retain(|value| !matches!(value.leaf, Leaf::Count(_)));
            }
        }
        Ok(parts)
    }

    /// Whether values and lists fit into registers.
    fn lists_fit(&self, shape: &Shape, ends: &Ends) -> bool {
        let values = self.values.iter().fold(0u64, |sum, v| sum.saturating_add(v.fixed.size));
        let lists = self.blocks.iter().map(|op| block_words(op, shape)).fold(0, u32::saturating_add);
        words(values, shape).saturating_add(lists) <= ends.all(false)
    }

    /// Puts all lists behind the fixed part, among the streams.
    fn follow(&mut self, ops: &[Op]) {
        self.blocks.clear();
        let chunks = ops.iter().filter_map(|op| match op.what {
            What::Block { element, bound } => Some(chunk(op, Some(element), bound, Carrier::Behind)),
            What::Stream { bytes_max } => Some(chunk(op, None, bytes_max, Carrier::Behind)),
            _ => None,
        });
        self.chunks = chunks.collect();
    }

    fn value(&mut self, op: &'a Op, fixed: Fixed, leaf: Leaf) {
        self.values.push(Value { op, fixed, leaf });
    }

    /// The long form. A single list is sent from where it lies as the words of the message, if these have no other use.
    /// Several are a string each, but for the short ones, which it is cheaper to copy.
    fn in_memory(shape: &Shape, block: &Block, ends: Ends, ops: &'a [Op]) -> Result<Parts<'a>, String> {
        if ends.bare {
            return Err("what is handed over leaves room for values in registers only".into());
        }
        let mut handed = pages_of(ops);
        let (pages, more) = (handed.next(), handed.collect());
        let mut parts = Parts { long: true, first: ends.first_long, ends, pages, more, ..Parts::default() };
        let lists: Vec<&Op> = ops.iter().filter(|op| matches!(op.what, What::Block { .. })).collect();
        let streams: Vec<Chunk> = ops
            .iter()
            .filter_map(|op| match op.what {
                What::Stream { bytes_max } => Some(chunk(op, None, bytes_max, Carrier::Behind)),
                _ => None,
            })
            .collect();
        for &op in &lists {
            let What::Block { element, bound } = op.what else { continue };
            let carrier = Carrier::String(parts.chunks.len() as u32);
            // As long as it is most of the time; or as it may be, if nobody says.
            let usual = op.typical.or(bound).and_then(|count| count.checked_mul(element.size));
            let short = lists.len() + streams.len() > 1 && usual.is_some_and(|size| size <= SHORT_BYTES);
            let bound = bound.unwrap_or(block.unbounded_bytes / element.size.max(1));
            let list = chunk(op, Some(element), Some(bound), carrier);
            match list.bytes_max() {
                Some(_) if short => parts.blocks.push(op),
                Some(bytes) if bytes <= block.string_bytes_max => parts.chunks.push(list),
                _ => {
                    let path = op.path.join(".");
                    return Err(format!(
                        "`{path}` may have more than the {} bytes of a string",
                        block.string_bytes_max
                    ));
                }
            }
        }
        if parts.chunks.len() > block.strings_max as usize {
            return Err(format!("a message has at most {} strings and sequences", block.strings_max));
        }
        for op in ops {
            match op.what {
                What::Value(fixed) => parts.value(op, fixed, Leaf::Value(op.ty)),
                What::Count if parts.blocks.iter().any(|list| list.path == op.path) => {
                    parts.value(op, COUNT, Leaf::Count(op.ty));
                }
                _ => {}
            }
        }
        let mut long = lists.iter().filter(|list| !parts.blocks.iter().any(|short| short.path == list.path));
        if let (Some(&op), None) = (long.next(), long.next())
            && streams.is_empty()
            && parts.pages.is_none()
            && parts.chunks[0].bytes_max().is_some_and(|bytes| bytes <= block.words_bytes_max)
        {
            parts.send_directly(shape, ops, op);
        }
        parts.chunks.extend(streams);
        Ok(parts)
    }

    /// Makes the words of the message of its only long list `op`, if registers are left for its length.
    fn send_directly(&mut self, shape: &Shape, ops: &'a [Op], op: &'a Op) {
        let values = self.values.len();
        let whole = self.chunks[0].element.is_some_and(|element| element.size % 8 == 0);
        if !whole {
            self.value(op, TAIL, Leaf::Tail(op.ty));
        }
        let count = ops.iter().find(|other| other.what == What::Count && other.path == op.path);
        if let Some(count) = count {
            // A register of its own, which nobody cuts.
            self.value(count, LONG_COUNT, Leaf::Count(op.ty));
        }
        if self.first + self.packed_words(shape) <= self.ends.all(true) {
            self.chunks[0].carrier = Carrier::Direct;
        } else {
            self.values.truncate(values);
        }
    }

    /// Registers needed when no two values share one. Whatever cannot be in registers at all counts as too much.
    fn spread_words(&self, shape: &Shape) -> u32 {
        let values = self.values.iter().map(|v| words(v.fixed.size, shape));
        let blocks = self.blocks.iter().map(|op| block_words(op, shape));
        let all = values.chain(blocks).fold(0, u32::saturating_add);
        if self.has_more() { u32::MAX } else { all }
    }

    /// Registers needed when values share them.
    fn packed_words(&self, shape: &Shape) -> u32 {
        let bytes = self.values.iter().fold(0u64, |sum, v| sum.saturating_add(v.fixed.size));
        let blocks = self.blocks.iter().map(|op| block_words(op, shape)).fold(0, u32::saturating_add);
        if self.has_more() { u32::MAX } else { words(bytes, shape).saturating_add(blocks) }
    }

    /// Whether there is something that has no place in registers and none of its own.
    fn has_more(&self) -> bool {
        !self.long && self.chunks.iter().any(|c| c.carrier == Carrier::Behind)
    }
}

/// A list that has no more bytes most of the time is copied to the words of a message rather than sent as a string: the kernel's way to a
/// string is long.
const SHORT_BYTES: u64 = 64;

/// Whether a block's number of elements is a step of its own.
fn counted(ops: &[Op], block: &Op) -> bool {
    ops.iter().any(|op| op.what == What::Count && op.path == block.path)
}

fn chunk(op: &Op, element: Option<Fixed>, bound: Option<u64>, carrier: Carrier) -> Chunk {
    Chunk { path: op.path.clone(), ty: op.ty, element, bound, carrier, caches: op.caches }
}

/// Whole registers for so many bytes.
fn words(bytes: u64, shape: &Shape) -> u32 {
    u32::try_from(bytes.div_ceil(u64::from(shape.word_bytes))).unwrap_or(u32::MAX)
}

/// Whole registers for a block; too many if it has no bound.
fn block_words(op: &Op, shape: &Shape) -> u32 {
    let What::Block { element, bound: Some(bound) } = op.what else { return u32::MAX };
    element.size.checked_mul(bound).map_or(u32::MAX, |bytes| words(bytes, shape))
}

/// References to objects in a request: a server has a window for each.
const HANDED_MAX: usize = 16;

/// Lists that go to memory as items: a receiver has a place for each.
const ITEMS_MAX: usize = 16;

const COUNT: Fixed = Fixed { size: 4, align: 4 };
const LONG_COUNT: Fixed = Fixed { size: 8, align: 8 };
const TAIL: Fixed = Fixed { size: 8, align: 8 };

/// Places the parts of a message.
fn message(
    kernel: &dyn KernelPart,
    shape: Shape,
    label: u32,
    parts: Parts,
    roomy: bool,
) -> Result<Message, String> {
    let placer = place(shape, &parts, roomy);
    let Parts { chunks, long, pages, more, .. } = parts;
    let memory_bytes = placer.memory.next_multiple_of(8);
    let mut behind = chunks.iter().filter(|c| c.carrier == Carrier::Behind);
    if shape.memory_bytes_max == 0
        && !long
        && let Some(stream) = behind.next()
    {
        let path = stream.path.join(".");
        return Err(format!("`{path}` is made of pieces, and a message of `{}` is in one", kernel.name()));
    }
    if shape.memory_bytes_max == 0 && memory_bytes > 0 && !long {
        return Err(format!("a message of `{}` has {} registers", kernel.name(), shape.registers));
    }
    if let Some(block) = shape.block
        && memory_bytes > block.words_bytes_max
    {
        return Err(format!("a message has at most {} bytes besides its strings", block.words_bytes_max));
    }
    let room = shape.block.filter(|_| long).map_or(0, |block| block.words_bytes_max - memory_bytes);
    if shape.items
        && (memory_bytes > 0 || placer.words_used() as usize + 2 * chunks.len() > shape.registers as usize)
    {
        return Err(format!(
            "the fixed part of a message of `{}` is {} words, with two for each longer list",
            kernel.name(),
            shape.registers
        ));
    }
    if shape.items && chunks.len() > ITEMS_MAX {
        return Err(format!("a message of `{}` has at most {ITEMS_MAX} longer lists", kernel.name()));
    }
    let behind = chunks.iter().filter(|c| c.carrier == Carrier::Behind);
    let largest = behind.filter_map(|c| c.element).map(|e| e.size).max().unwrap_or(0);
    if largest > shape.memory_bytes_max {
        return Err(format!("{largest} bytes in one piece are more than a message can hold"));
    }
    let registers = placer.words_used();
    Ok(Message {
        label,
        slots: placer.slots,
        registers,
        long,
        memory_bytes,
        stream_bytes: stream_bytes(&chunks).min(room),
        chunks,
        pages,
        more,
    })
}

/// Bytes of what is read piece by piece. A message with more than it has room for is refused when it is sent.
fn stream_bytes(chunks: &[Chunk]) -> u64 {
    let wanted = |c: &Chunk| c.bound.unwrap_or(u64::MAX).div_ceil(8).saturating_mul(8);
    chunks.iter().filter(|c| c.element.is_none()).map(wanted).fold(0, u64::saturating_add)
}

/// Finds places for values and for lists in registers.
fn place(shape: Shape, parts: &Parts, roomy: bool) -> Placer {
    let mut placer = Placer { shape, word: parts.first, byte: 0, memory: 0, slots: Vec::new() };
    let mut values: Vec<&Value> = parts.values.iter().collect();
    // The sort is stable, so values of a size keep the order of the parameters.
    values.sort_by_key(|value| (!value.op.stays, std::cmp::Reverse(value.fixed.align)));
    let inout = values.iter().take_while(|value| value.op.stays).count();
    placer.values(&values[..inout], if roomy { inout } else { 0 });
    for op in parts.blocks.iter().filter(|op| op.stays) {
        placer.block(op);
    }
    let rest = &values[inout..];
    let later = parts.blocks.iter().filter(|op| !op.stays);
    let later_words = later.clone().map(|op| block_words(op, &shape)).fold(0, u32::saturating_add);
    let alone = match () {
        () if roomy => rest.len(),
        () if shape.dense => 0,
        () => placer.alone(rest, later_words),
    };
    placer.values(rest, alone);
    later.for_each(|op| placer.block(op));
    placer
}

/// The next free place.
struct Placer {
    shape: Shape,
    word: u32,
    byte: u32,
    memory: u64,
    slots: Vec<Slot>,
}

impl Placer {
    fn words_used(&self) -> u32 {
        self.word + u32::from(self.byte > 0)
    }

    /// Begins a register of its own.
    fn next_word(&mut self) {
        self.word = self.words_used();
        self.byte = 0;
    }

    /// Takes so many bytes of the registers, if they are free.
    fn take(&mut self, fixed: Fixed) -> Option<Place> {
        let word_bytes = self.shape.word_bytes;
        let align = (fixed.align as u32).min(word_bytes);
        let size = u32::try_from(fixed.size).ok()?;
        let (mut word, mut byte) = (self.word, self.byte.next_multiple_of(align));
        // What is larger than a register starts with one.
        if byte + size > word_bytes && byte > 0 {
            (word, byte) = (self.words_used(), 0);
        }
        let end = byte + size;
        if word + end.div_ceil(word_bytes) > self.shape.registers {
            return None;
        }
        (self.word, self.byte) = (word + end / word_bytes, end % word_bytes);
        Some(Place::Register(word, byte))
    }

    /// How many of these values can have registers of their own if the rest share, and `after` registers stay free.
    fn alone(&self, values: &[&Value], after: u32) -> usize {
        if values.len() as u64 > u64::from(self.shape.registers) * u64::from(self.shape.word_bytes) {
            return 0;
        }
        let fits = |alone: usize| {
            let mut trial = Placer { slots: Vec::new(), ..*self };
            trial.values(values, alone);
            trial.memory == self.memory && trial.words_used() + after <= self.shape.registers
        };
        (0..=values.len()).rev().find(|&alone| fits(alone)).unwrap_or(0)
    }

    /// Places values: the first `alone` of them in registers of their own.
    fn values(&mut self, values: &[&Value], alone: usize) {
        for (i, Value { op, fixed, leaf }) in values.iter().enumerate() {
            if i <= alone && self.shape.registers > 0 && alone > 0 {
                self.next_word();
            }
            let place = self.take(*fixed).unwrap_or_else(|| {
                let at = self.memory.next_multiple_of(fixed.align);
                self.memory = at + fixed.size;
                Place::Memory(at)
            });
            self.slots.push(Slot { path: op.path.clone(), leaf: *leaf, fixed: *fixed, place });
        }
        if alone > 0 {
            self.next_word();
        }
    }

    /// Places the elements of a block in registers; the caller knows that it has a bound.
    fn block(&mut self, op: &Op) {
        let What::Block { element, bound: Some(bound) } = op.what else { return };
        self.next_word();
        let fixed = Fixed { size: element.size * bound, align: element.align };
        let place = self.take(fixed).unwrap_or(Place::Memory(self.memory));
        if let Place::Memory(at) = place {
            let at = at.next_multiple_of(fixed.align);
            self.memory = at + fixed.size;
        }
        self.next_word();
        self.slots.push(Slot { path: op.path.clone(), leaf: Leaf::Elements(op.ty, element), fixed, place });
    }
}

#[cfg(test)]
mod tests;
