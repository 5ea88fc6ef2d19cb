//! Places for the parts of a message: which values share registers, which lists lie in them, and what goes to memory.

use super::{Carrier, Chunk, Handed, Leaf, Message, Place, Slot};
use crate::kernel::{Block, KernelPart, Shape};
use crate::marshal::{Call, Op, References, What};
use crate::model::{Model, Type};
use crate::sizes::Fixed;

/// Whether values have places up to that register: those that are larger than one begin with one, so there may be holes.
pub(super) fn fits_without_holes(shape: &Shape, parts: &Parts, end: u32) -> bool {
    place(Shape { registers: end, ..*shape }, parts, false).memory == 0
}

/// Which registers a message can use: up to which, and from which on if it is long.
#[derive(Clone, Copy, Default)]
pub(super) struct Ends {
    pub(super) first_long: u32,
    pub(super) short: [u32; 2],
    pub(super) long: [u32; 2],
    /// Nothing can be in memory, because something is handed over, here or in the other direction.
    pub(super) bare: bool,
    /// It has a part in memory, whatever it consists of.
    pub(super) in_memory: bool,
}

impl Ends {
    pub(super) fn new(shape: &Shape, oneway: bool) -> Ends {
        let cut = |easy: u32, all: u32, oneway_end: u32| {
            let all = if oneway { all.min(oneway_end) } else { all };
            [easy, all]
        };
        let short = cut(shape.easy_registers, shape.registers, shape.oneway_registers);
        let long = shape.block.map_or([0, 0], |b| cut(b.easy_registers, b.registers, b.oneway_registers));
        let first_long = shape.block.map_or(0, |b| b.first_register);
        Ends { first_long, short, long, bare: false, in_memory: false }
    }

    /// Those of a message of a call whose answer, or one of its exceptions, hands over references that are described in memory.
    pub(super) fn in_memory(self, shape: &Shape, in_memory: bool) -> Ends {
        let end = shape.pages.map_or(u32::MAX, |pages| pages.other_registers);
        Ends { short: self.short.map(|all| all.min(end)), in_memory, ..self }
    }

    /// Those of a message of a call that hands something over. With references a request may have a part in memory, and a reply that
    /// hands none over.
    pub(super) fn with_pages(
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
            _ if shape.references != References::Handed => {
                return Err(crowded(shape));
            }
            _ => pages.registers,
        };
        let may_be_long =
            shape.references == References::Handed && (is_request || pages_of(ops).count() == 0);
        Ok(Ends { short: self.short.map(|all| all.min(end)), bare: !may_be_long, ..self })
    }

    pub(super) fn easy(&self, long: bool) -> u32 {
        if long { self.long[0] } else { self.short[0] }
    }

    pub(super) fn all(&self, long: bool) -> u32 {
        if long { self.long[1] } else { self.short[1] }
    }
}

/// A value that has no place yet.
pub(super) struct Value<'a> {
    pub(super) op: &'a Op,
    pub(super) fixed: Fixed,
    pub(super) leaf: Leaf,
}

/// What a message consists of, before anything has a place.
#[derive(Default)]
pub(super) struct Parts<'a> {
    /// In registers or in the fixed part.
    pub(super) values: Vec<Value<'a>>,
    /// Lists that go to registers.
    pub(super) blocks: Vec<&'a Op>,
    /// What is of variable size otherwise.
    pub(super) chunks: Vec<Chunk>,
    pub(super) long: bool,
    /// The first register.
    pub(super) first: u32,
    pub(super) ends: Ends,
    pub(super) pages: Option<Handed>,
    pub(super) more: Vec<Handed>,
}

/// Refusal of a call that has more beside a flexpage than its messages carry: a second one, another reference, or something in memory.
fn crowded(shape: &Shape) -> String {
    let (with, without) = shape.pages.map_or((0, 0), |pages| (pages.registers, pages.other_registers));
    match shape.references {
        References::Handed => format!(
            "what comes back brings references to objects, or one flexpage, beside which there are up to {with} words \
             in registers and nothing in memory"
        ),
        _ => format!(
            "a message hands over one flexpage, beside which there are up to {with} words in registers, and up to \
             {without} the other way; nothing of such a call is in memory"
        ),
    }
}

/// The flexpages among the steps of a message, and whether they are granted.
pub(super) fn pages_of(ops: &[Op]) -> impl Iterator<Item = Handed> {
    ops.iter().filter_map(|op| match op.what {
        What::Pages { grant } => Some(Handed { param: op.path.join("."), ty: op.ty, grant }),
        _ => None,
    })
}

impl<'a> Parts<'a> {
    pub(super) fn new(shape: &Shape, ends: Ends, ops: &'a [Op]) -> Result<Parts<'a>, String> {
        let mut handed = pages_of(ops);
        let (pages, more) = (handed.next(), handed.collect());
        let mut parts = Parts { first: 0, ends, pages, more, ..Parts::default() };
        for op in ops {
            match op.what {
                What::Value(fixed) => parts.value(op, fixed, Leaf::Value(op.ty)),
                What::Count => parts.value(op, COUNT, Leaf::Count(op.ty)),
                What::Offer => parts.value(op, OFFER, Leaf::Offer(op.ty)),
                // An array has no count, and in registers it is a value like any other.
                What::Block { element, bound: Some(1) } if shape.block.is_some() && !counted(ops, op) => {
                    parts.value(op, element, Leaf::Value(op.ty));
                }
                What::Block { .. } => parts.blocks.push(op),
                What::Stream { bytes_max, .. } => {
                    parts.chunks.push(chunk(op, None, bytes_max, Carrier::Behind));
                }
                What::Pages { .. } => {}
            }
        }
        // Short lists go to the registers together or not at all: which of two would stay behind would be a riddle.
        let fits = parts.lists_fit(shape, &ends);
        if let Some(block) = &shape.block
            && !(parts.more.is_empty()
                && !ends.in_memory
                && parts.chunks.is_empty()
                && fits
                && place(Shape { registers: ends.all(false), ..*shape }, &parts, false).memory == 0)
        {
            return Parts::in_memory(shape, block, ends, ops, &is_usually_copied);
        }
        if !fits {
            parts.follow(ops);
            if shape.items {
                parts.values.retain(|value| !matches!(value.leaf, Leaf::Count(_)));
            }
        }
        Ok(parts)
    }

    /// Those of a message in which nothing is optimised: in memory, unless there is nothing or cannot be anything there. A list of a request that
    /// would fit into registers is among its words.
    pub(super) fn plain(
        shape: &Shape,
        ends: Ends,
        ops: &'a [Op],
        is_request: bool,
    ) -> Result<Parts<'a>, String> {
        let registers_bytes = u64::from(shape.registers * shape.word_bytes);
        let is_copied = |bytes, is_alone| match is_request {
            true => bytes <= registers_bytes,
            false => is_usually_copied(bytes, is_alone),
        };
        let has_values = ops.iter().any(|op| !matches!(op.what, What::Pages { .. }));
        match &shape.block {
            Some(block) if has_values && !ends.bare => Parts::in_memory(shape, block, ends, ops, &is_copied),
            _ => Parts::new(shape, ends, ops),
        }
    }

    /// Whether values and lists fit into registers.
    pub(super) fn lists_fit(&self, shape: &Shape, ends: &Ends) -> bool {
        let values = self.values.iter().fold(0u64, |sum, v| sum.saturating_add(v.fixed.size));
        let lists = self.blocks.iter().map(|op| block_words(op, shape)).fold(0, u32::saturating_add);
        words(values, shape).saturating_add(lists) <= ends.all(false)
    }

    /// Puts all lists behind the fixed part, among the streams.
    pub(super) fn follow(&mut self, ops: &[Op]) {
        self.blocks.clear();
        let chunks = ops.iter().filter_map(|op| match op.what {
            What::Block { element, bound } => Some(chunk(op, Some(element), bound, Carrier::Behind)),
            What::Stream { bytes_max, .. } => Some(chunk(op, None, bytes_max, Carrier::Behind)),
            _ => None,
        });
        self.chunks = chunks.collect();
    }

    pub(super) fn value(&mut self, op: &'a Op, fixed: Fixed, leaf: Leaf) {
        self.values.push(Value { op, fixed, leaf });
    }

    /// The long form. A single list is sent from where it lies as the words of the message, if these have no other use.
    /// Several are a string each, but for those that are among the words: by how long each is most of the time, in bytes, and whether it is the only one.
    pub(super) fn in_memory(
        shape: &Shape,
        block: &Block,
        ends: Ends,
        ops: &'a [Op],
        is_copied: &dyn Fn(u64, bool) -> bool,
    ) -> Result<Parts<'a>, String> {
        if ends.bare {
            return Err(crowded(shape));
        }
        let mut handed = pages_of(ops);
        let (pages, more) = (handed.next(), handed.collect());
        let mut parts = Parts { long: true, first: ends.first_long, ends, pages, more, ..Parts::default() };
        let lists: Vec<&Op> = ops.iter().filter(|op| matches!(op.what, What::Block { .. })).collect();
        let streams: Vec<Chunk> = ops
            .iter()
            .filter_map(|op| match op.what {
                What::Stream { bytes_max, .. } => Some(chunk(op, None, bytes_max, Carrier::Behind)),
                _ => None,
            })
            .collect();
        for &op in &lists {
            let What::Block { element, bound } = op.what else { continue };
            let carrier = Carrier::String(parts.chunks.len() as u32);
            // As long as it is most of the time; or as it may be, if nobody says.
            let usual = op.typical.or(bound).and_then(|count| count.checked_mul(element.size));
            let is_alone = lists.len() + streams.len() == 1;
            // An array has no count, and so no place among the words that says where it ends.
            let short = usual.is_some_and(|bytes| is_copied(bytes, is_alone)) && counted(ops, op);
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
                What::Offer => parts.value(op, OFFER, Leaf::Offer(op.ty)),
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
            && !shape.plain
            && parts.chunks[0].bytes_max().is_some_and(|bytes| bytes <= block.words_bytes_max)
        {
            parts.send_directly(shape, ops, op);
        }
        parts.chunks.extend(streams);
        Ok(parts)
    }

    /// Makes the words of the message of its only long list `op`, if registers are left for its length.
    pub(super) fn send_directly(&mut self, shape: &Shape, ops: &'a [Op], op: &'a Op) {
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
    pub(super) fn spread_words(&self, shape: &Shape) -> u32 {
        let values = self.values.iter().map(|v| words(v.fixed.size, shape));
        let blocks = self.blocks.iter().map(|op| block_words(op, shape));
        let all = values.chain(blocks).fold(0, u32::saturating_add);
        if self.has_more() { u32::MAX } else { all }
    }

    /// Registers needed when values share them.
    pub(super) fn packed_words(&self, shape: &Shape) -> u32 {
        let bytes = self.values.iter().fold(0u64, |sum, v| sum.saturating_add(v.fixed.size));
        let blocks = self.blocks.iter().map(|op| block_words(op, shape)).fold(0, u32::saturating_add);
        if self.has_more() { u32::MAX } else { words(bytes, shape).saturating_add(blocks) }
    }

    /// Whether there is something that has no place in registers and none of its own.
    pub(super) fn has_more(&self) -> bool {
        !self.long && self.chunks.iter().any(|c| c.carrier == Carrier::Behind)
    }
}

/// A list that has no more bytes most of the time is copied to the words of a message rather than sent as a string: the kernel's way to a
/// string is long.
pub(super) const SHORT_BYTES: u64 = 64;

/// Whether a list that has so many bytes most of the time is among the words of a message with a part in memory.
fn is_usually_copied(bytes: u64, is_alone: bool) -> bool {
    !is_alone && bytes <= SHORT_BYTES
}

/// Whether a block's number of elements is a step of its own.
pub(super) fn counted(ops: &[Op], block: &Op) -> bool {
    ops.iter().any(|op| op.what == What::Count && op.path == block.path)
}

pub(super) fn chunk(op: &Op, element: Option<Fixed>, bound: Option<u64>, carrier: Carrier) -> Chunk {
    let references = if let What::Stream { references, .. } = op.what { references } else { 0 };
    Chunk { path: op.path.clone(), ty: op.ty, element, bound, carrier, caches: op.caches, references }
}

/// Whole registers for so many bytes.
pub(super) fn words(bytes: u64, shape: &Shape) -> u32 {
    u32::try_from(bytes.div_ceil(u64::from(shape.word_bytes))).unwrap_or(u32::MAX)
}

/// Whole registers for a block; too many if it has no bound.
pub(super) fn block_words(op: &Op, shape: &Shape) -> u32 {
    let What::Block { element, bound: Some(bound) } = op.what else { return u32::MAX };
    element.size.checked_mul(bound).map_or(u32::MAX, |bytes| words(bytes, shape))
}

/// References to objects in a message: who gets it has a window for each, which is a number of the task's. The kernel itself has a limit of 255 for all
/// strings and items.
pub(super) const HANDED_MAX: usize = 16;

/// Whether the answer of a call, or one of its exceptions, hands over references that are described in its part in memory: all but an answer with one
/// beside a few values in registers. Fails if a message hands over more than it can.
pub(super) fn replies_from_memory(
    model: &Model,
    shape: &Shape,
    ends: Ends,
    call: &Call,
) -> Result<bool, String> {
    if shape.references != References::Handed {
        return Ok(false);
    }
    for ops in call.messages() {
        let count = |op: &Op| match op.what {
            What::Pages { .. } => 1,
            What::Stream { references, .. } => references,
            _ => 0,
        };
        // A list without a bound is looked at when it is sent.
        let has_end = |op: &&Op| count(op) < u64::MAX;
        let all = ops.iter().filter(has_end).map(count).fold(0, u64::saturating_add);
        if all > HANDED_MAX as u64 {
            let names: Vec<String> = ops
                .iter()
                .filter(|op| op.hands_over())
                .map(|op| format!("`{}`", op.path.join(".")))
                .collect();
            return Err(format!(
                "a message hands over at most {HANDED_MAX} references to objects, and there may be {all} in {}",
                names.join(", ")
            ));
        }
    }
    let is_page = |op: &Op| matches!(model.ty(model.resolved(op.ty)), Type::Fpage);
    let handing = || call.messages().skip(1).flatten().filter(|op| op.hands_over());
    if handing().any(is_page) {
        return match handing().count() {
            1 => Ok(false),
            _ => Err(crowded(shape)),
        };
    }
    let pages = shape.pages.map_or(0, |pages| pages.registers);
    let bare = Ends { short: ends.short.map(|all| all.min(pages)), bare: true, ..ends };
    let exceptions = call.exceptions.iter().any(|(_, ops)| ops.iter().any(Op::hands_over));
    let fits = || pages_of(&call.reply).count() == 1 && Parts::new(shape, bare, &call.reply).is_ok();
    Ok(exceptions || (call.reply.iter().any(Op::hands_over) && !fits()))
}

/// Lists that go to memory as items: a receiver has a place for each.
pub(super) const ITEMS_MAX: usize = 16;

pub(super) const COUNT: Fixed = Fixed { size: 4, align: 4 };
pub(super) const LONG_COUNT: Fixed = Fixed { size: 8, align: 8 };
pub(super) const OFFER: Fixed = Fixed { size: 8, align: 8 };
pub(super) const TAIL: Fixed = Fixed { size: 8, align: 8 };

/// Places the parts of a message.
pub(super) fn message(
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
        copies: shape.plain,
    })
}

/// Bytes of what is read piece by piece. A message with more than it has room for is refused when it is sent.
pub(super) fn stream_bytes(chunks: &[Chunk]) -> u64 {
    let wanted = |c: &Chunk| c.bound.unwrap_or(u64::MAX).div_ceil(8).saturating_mul(8);
    chunks.iter().filter(|c| c.element.is_none()).map(wanted).fold(0, u64::saturating_add)
}

/// Finds places for values and for lists in registers.
pub(super) fn place(shape: Shape, parts: &Parts, roomy: bool) -> Placer {
    let mut placer = Placer { shape, word: parts.first, byte: 0, memory: 0, slots: Vec::new() };
    let mut values: Vec<&Value> = parts.values.iter().collect();
    // Where nothing is optimised, nothing has a place of its own.
    let has_order = !(shape.plain && parts.long);
    let stays = |op: &Op| has_order && op.stays;
    // The sort is stable, so values of a size keep the order of the parameters.
    if has_order {
        values.sort_by_key(|value| (!value.op.stays, std::cmp::Reverse(value.fixed.align)));
    }
    let inout = values.iter().take_while(|value| stays(value.op)).count();
    placer.values(&values[..inout], if roomy { inout } else { 0 });
    for op in parts.blocks.iter().filter(|op| stays(op)) {
        placer.block(op);
    }
    let rest = &values[inout..];
    let later = parts.blocks.iter().filter(|op| !stays(op));
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
pub(super) struct Placer {
    pub(super) shape: Shape,
    pub(super) word: u32,
    pub(super) byte: u32,
    pub(super) memory: u64,
    pub(super) slots: Vec<Slot>,
}

impl Placer {
    pub(super) fn words_used(&self) -> u32 {
        self.word + u32::from(self.byte > 0)
    }

    /// Begins a register of its own.
    pub(super) fn next_word(&mut self) {
        self.word = self.words_used();
        self.byte = 0;
    }

    /// Takes so many bytes of the registers, if they are free.
    pub(super) fn take(&mut self, fixed: Fixed) -> Option<Place> {
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
    pub(super) fn alone(&self, values: &[&Value], after: u32) -> usize {
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
    pub(super) fn values(&mut self, values: &[&Value], alone: usize) {
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
    pub(super) fn block(&mut self, op: &Op) {
        let What::Block { element, bound: Some(bound) } = op.what else { return };
        self.next_word();
        let fixed = Fixed { size: element.size * bound, align: element.align };
        let place = self.take(fixed).unwrap_or_else(|| {
            let at = self.memory.next_multiple_of(fixed.align);
            self.memory = at + fixed.size;
            Place::Memory(at)
        });
        self.next_word();
        self.slots.push(Slot { path: op.path.clone(), leaf: Leaf::Elements(op.ty, element), fixed, place });
    }
}
