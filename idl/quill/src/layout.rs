//! Where every value of every message lies. The one place that decides it: emitters, `quill layout` and `quill cost` only
//! read what stands here.
//!
//! A message is a label, a **fixed part** and a **variable part**. The values among its marshal operations are sorted
//! largest first, so no holes arise, and those of inout parameters before all others in both directions, so a value that
//! comes back has not moved. The first lie in registers, the rest in memory. Registers that travel anyway cost nothing,
//! so values have one each as long as there are enough, and share them only when there are not. A block whose bound
//! leaves it room in the registers goes there too. Everything else of variable size follows in the variable part.

use crate::codes::Code;
use crate::diag::Diagnostic;
use crate::kernel::{KernelPart, Shape};
use crate::limits;
pub use crate::marshal::RESULT;
use crate::marshal::{self, Op, What};
use crate::model::{InterfaceId, Model, Operation, TypeId};
use crate::sizes::{Fixed, Sizes};

pub use text::{Cost, cost, cost_text, text};

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
    /// The number of elements of a string or sequence of this type; 32 bits.
    Count(TypeId),
    /// The elements of such a string or sequence, with room for as many as there may be.
    Elements(TypeId, Fixed),
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

/// Something in the variable part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The parameter, and the fields below it.
    pub path: Vec<String>,
    /// Its type.
    pub ty: TypeId,
    /// The size of an element, for a block; `None` for a stream.
    pub element: Option<Fixed>,
    /// The most elements a block may have.
    pub bound: Option<u64>,
}

/// One direction of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The label.
    pub label: u32,
    /// The fixed part.
    pub slots: Vec<Slot>,
    /// Registers used.
    pub registers: u32,
    /// Bytes of the fixed part in memory.
    pub memory_bytes: u64,
    /// The variable part.
    pub chunks: Vec<Chunk>,
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

/// All methods of an interface, inherited ones first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceLayout {
    /// The interface.
    pub interface: InterfaceId,
    /// Its methods, by number. The kernel part makes the labels of requests from the numbers.
    pub methods: Vec<Method>,
}

/// Labels of replies from here on are errors of the transport, and not of the server's program.
pub const LABEL_ERROR: u32 = 0xffff_0000;

/// Lays out all interfaces that a file itself declares; refuses by name what cannot be carried.
pub fn layout(model: &Model, kernel: &dyn KernelPart) -> Result<Vec<InterfaceLayout>, Vec<Diagnostic>> {
    let mut all = Vec::new();
    let mut refused = Vec::new();
    let sizes = Sizes::new(model);
    let mut total = 0;
    for (index, interface) in model.interfaces.iter().enumerate() {
        if interface.imported || !interface.defined {
            continue;
        }
        let id = InterfaceId(index as u32);
        let mut methods = Vec::new();
        let operations = model.operations(id);
        total += operations.len();
        if total > limits::METHODS_MAX {
            let message =
                format!("the interfaces of this file have more than {} methods", limits::METHODS_MAX);
            return Err(vec![Diagnostic::error(Code::Limit, interface.span, message)]);
        }
        for (number, operation) in operations.into_iter().enumerate() {
            match method(model, &sizes, kernel, operation, number as u32) {
                Ok(method) => methods.push(method),
                Err(what) => {
                    let message = format!("`{}` cannot be translated: {what}", operation.name);
                    refused.push(Diagnostic::error(Code::Unsupported, operation.span, message));
                }
            }
        }
        all.push(InterfaceLayout { interface: id, methods });
    }
    if refused.is_empty() { Ok(all) } else { Err(refused) }
}

fn method(
    model: &Model,
    sizes: &Sizes,
    kernel: &dyn KernelPart,
    operation: &Operation,
    number: u32,
) -> Result<Method, String> {
    let call = marshal::call(model, sizes, operation)?;
    // What goes both ways must lie in the same place both ways, so both directions decide together whether to share, and
    // whether to do with the easy registers.
    let mut shape = kernel.shape();
    if operation.oneway {
        shape.registers = shape.oneway_registers;
    }
    let packed = [&call.request, &call.reply].into_iter().chain(call.exceptions.iter().map(|(_, ops)| ops));
    if packed.map(|ops| packed_words(ops, &shape)).max().unwrap_or(0) <= shape.easy_registers {
        shape.registers = shape.registers.min(shape.easy_registers);
    }
    let roomy = !shape.dense
        && [&call.request, &call.reply].into_iter().all(|ops| spread_words(ops, &shape) <= shape.registers);
    let place = |label, ops: &[Op]| message(kernel, shape, label, ops, roomy);
    let mut exceptions = Vec::new();
    for (i, (id, ops)) in call.exceptions.iter().enumerate() {
        exceptions.push((model.exceptions[id.0 as usize].name.clone(), place(i as u32 + 1, ops)?));
    }
    Ok(Method {
        name: operation.name.clone(),
        oneway: operation.oneway,
        request: place(kernel.request_label(number), &call.request)?,
        reply: place(kernel.success_label(), &call.reply)?,
        exceptions,
    })
}

/// Registers needed when no two values share one. Whatever cannot be in registers at all counts as too much.
fn spread_words(ops: &[Op], shape: &Shape) -> u32 {
    ops.iter().map(|op| words(op, shape).unwrap_or(shape.registers + 1)).fold(0, u32::saturating_add)
}

/// Registers needed when values share them.
fn packed_words<'a>(ops: impl IntoIterator<Item = &'a Op>, shape: &Shape) -> u32 {
    let (mut bytes, mut blocks) = (0u64, 0u32);
    for op in ops {
        match op.what {
            What::Value(fixed) => bytes = bytes.saturating_add(fixed.size),
            What::Count => bytes = bytes.saturating_add(COUNT.size),
            What::Block { .. } | What::Stream => {
                blocks = blocks.saturating_add(words(op, shape).unwrap_or(shape.registers + 1));
            }
        }
    }
    let words = u32::try_from(bytes.div_ceil(u64::from(shape.word_bytes))).unwrap_or(u32::MAX);
    words.saturating_add(blocks)
}

/// Whole registers for a step; `None` if it cannot be there.
fn words(op: &Op, shape: &Shape) -> Option<u32> {
    let bytes = match op.what {
        What::Value(fixed) => fixed.size,
        What::Count => COUNT.size,
        What::Block { element, bound } => element.size.checked_mul(bound?)?,
        What::Stream => return None,
    };
    let words = bytes.div_ceil(u64::from(shape.word_bytes));
    u32::try_from(words).ok().filter(|&words| words <= shape.registers)
}

/// Lists that go to memory as items: a receiver has a place for each.
const ITEMS_MAX: usize = 16;

const COUNT: Fixed = Fixed { size: 4, align: 4 };

/// Places the steps of a message.
fn message(
    kernel: &dyn KernelPart,
    shape: Shape,
    label: u32,
    ops: &[Op],
    roomy: bool,
) -> Result<Message, String> {
    let mut placer = Placer { shape, word: 0, byte: 0, memory: 0, slots: Vec::new() };
    let mut values: Vec<(&Op, Fixed)> = Vec::new();
    let (mut blocks, mut chunks) = (Vec::new(), Vec::new());
    // Short blocks go to the registers together or not at all: which of two would stay behind would be a riddle.
    let still = ops.iter().filter(|op| op.what != What::Stream);
    let blocks_fit = packed_words(still, &shape) <= shape.registers;
    for op in ops {
        match op.what {
            What::Value(fixed) => values.push((op, fixed)),
            What::Count if shape.items && !blocks_fit => {}
            What::Count => values.push((op, COUNT)),
            What::Block { .. } if blocks_fit => blocks.push(op),
            What::Block { element, bound } => {
                chunks.push(Chunk { path: op.path.clone(), ty: op.ty, element: Some(element), bound });
            }
            What::Stream => {
                chunks.push(Chunk { path: op.path.clone(), ty: op.ty, element: None, bound: None });
            }
        }
    }
    // The sort is stable, so values of a size keep the order of the parameters.
    values.sort_by_key(|(op, fixed)| (!op.stays, std::cmp::Reverse(fixed.align)));
    let inout = values.iter().take_while(|(op, _)| op.stays).count();
    placer.values(&values[..inout], if roomy { inout } else { 0 });
    for op in blocks.iter().filter(|op| op.stays) {
        placer.block(op);
    }
    let rest = &values[inout..];
    let later = blocks.iter().filter(|op| !op.stays);
    let later_words: u32 = later.clone().filter_map(|op| words(op, &shape)).sum();
    let alone = match () {
        () if roomy => rest.len(),
        () if shape.dense => 0,
        () => placer.alone(rest, later_words),
    };
    placer.values(rest, alone);
    later.for_each(|op| placer.block(op));
    let memory_bytes = placer.memory.next_multiple_of(8);
    if shape.memory_bytes_max == 0 && (memory_bytes > 0 || !chunks.is_empty()) {
        return Err(format!(
            "a message of `{}` is {} registers, and it needs more than that",
            kernel.name(),
            shape.registers
        ));
    }
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
    let largest = chunks.iter().filter_map(|c| c.element).map(|e| e.size).max().unwrap_or(0);
    if largest > shape.memory_bytes_max {
        return Err(format!("{largest} bytes in one piece are more than a message can hold"));
    }
    let registers = placer.words_used();
    Ok(Message { label, slots: placer.slots, registers, memory_bytes, chunks })
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
    fn alone(&self, values: &[(&Op, Fixed)], after: u32) -> usize {
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
    fn values(&mut self, values: &[(&Op, Fixed)], alone: usize) {
        for (i, (op, fixed)) in values.iter().enumerate() {
            if i <= alone && self.shape.registers > 0 && alone > 0 {
                self.next_word();
            }
            let place = self.take(*fixed).unwrap_or_else(|| {
                let at = self.memory.next_multiple_of(fixed.align);
                self.memory = at + fixed.size;
                Place::Memory(at)
            });
            let leaf = if op.what == What::Count { Leaf::Count(op.ty) } else { Leaf::Value(op.ty) };
            self.slots.push(Slot { path: op.path.clone(), leaf, fixed: *fixed, place });
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
