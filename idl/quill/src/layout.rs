//! Where every value of every message lies. The one place that decides it: emitters, `quill layout` and `quill cost` only
//! read what stands here.
//!
//! A message is a label, a **fixed part** and a **variable part**. Parameters are taken apart into leaves (record
//! partitioning): whole numbers and the like, short arrays, the counts of strings and sequences. Leaves are packed largest first, so no holes arise, and those of inout parameters before
//! all others in both directions, so a value that comes back has not moved. The first leaves lie in registers, the rest in
//! memory. What has no fixed size follows in the variable part, in the order of the parameters: a string or a sequence of
//! fixed-size elements as a **block**, whose length is known before its first byte is read; anything else (a union, a
//! sequence of strings) as a **stream**, read element by element.

use std::fmt::Write;

use crate::codes::Code;
use crate::diag::Diagnostic;
use crate::kernel::KernelPart;
use crate::limits;
use crate::model::{Direction, InterfaceId, Model, Operation, Type, TypeId};

/// Size and alignment of a type whose values all have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// Bytes.
    pub size: u64,
    /// A power of two, at most 8.
    pub align: u64,
}

/// Where a leaf lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a register, from this byte of it.
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
    /// From the server, label 0. The result is called [`RESULT`].
    pub reply: Message,
    /// From the server, one for each exception: labels from 1.
    pub exceptions: Vec<(String, Message)>,
}

/// All methods of an interface, inherited ones first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceLayout {
    /// The interface.
    pub interface: InterfaceId,
    /// Its methods; the label of a request is the place in this list.
    pub methods: Vec<Method>,
}

/// What the result of an operation is called; no name of a file starts with an underscore.
pub const RESULT: &str = "_result";

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
        for (label, operation) in operations.into_iter().enumerate() {
            let mut planner =
                Planner { model, sizes: &sizes, kernel, operation, refused: &mut refused, stopped: false };
            methods.push(planner.method(label as u32));
        }
        all.push(InterfaceLayout { interface: id, methods });
    }
    if refused.is_empty() { Ok(all) } else { Err(refused) }
}

/// What the layout asks of types again and again, found once.
#[derive(Debug)]
pub struct Sizes {
    fixed: Vec<Option<Fixed>>,
    checked: Vec<bool>,
}

impl Sizes {
    /// The sizes of all types. Types stand behind those they contain (nearly always), so this recurses hardly at all,
    /// and types that contain one another a thousand deep are no danger.
    pub fn new(model: &Model) -> Sizes {
        let count = model.types_len();
        let mut sizes = Sizes { fixed: vec![None; count], checked: vec![false; count] };
        let mut known = vec![false; count];
        for index in 0..count {
            sizes.find(model, TypeId(index as u32), &mut known, 0);
        }
        sizes
    }

    /// Size and alignment of a type whose values all have the same size.
    pub fn fixed(&self, ty: TypeId) -> Option<Fixed> {
        self.fixed[ty.0 as usize]
    }

    /// Whether some bit patterns of a fixed-size type are no values of it.
    pub fn checked(&self, ty: TypeId) -> bool {
        self.checked[ty.0 as usize]
    }

    fn find(&mut self, model: &Model, ty: TypeId, known: &mut [bool], depth: usize) {
        let index = ty.0 as usize;
        if known[index] || depth > limits::NESTING_MAX {
            return;
        }
        let resolved = model.resolved(ty);
        let inner: Vec<TypeId> = match model.ty(resolved) {
            _ if resolved != ty => vec![resolved],
            Type::Array(of, _) => vec![*of],
            Type::Struct(_, fields) => fields.iter().map(|f| f.ty).collect(),
            _ => Vec::new(),
        };
        for &ty in &inner {
            self.find(model, ty, known, depth + 1);
        }
        known[index] = true;
        self.checked[index] = match model.ty(ty) {
            Type::Bool | Type::Enum(..) | Type::WideChar | Type::Bitmask(..) => true,
            _ => inner.iter().any(|&ty| self.checked(ty)),
        };
        self.fixed[index] = if resolved == ty { self.size(model, ty) } else { self.fixed(resolved) };
    }

    fn size(&self, model: &Model, ty: TypeId) -> Option<Fixed> {
        let scalar = |size: u64| Some(Fixed { size, align: size });
        let fixed = match model.ty(ty) {
            Type::Bool | Type::Octet | Type::Char => scalar(1),
            Type::Int { bits, .. } | Type::Bitmask(_, bits, _) => scalar(u64::from(*bits) / 8),
            Type::Float(32) => scalar(4),
            Type::Float(64) => scalar(8),
            Type::Enum(..) | Type::WideChar => scalar(4),
            Type::Array(of, dims) => {
                let of = self.fixed(*of)?;
                let count = dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d))?;
                Some(Fixed { size: of.size.checked_mul(count)?, align: of.align })
            }
            Type::Struct(_, fields) if !fields.is_empty() => {
                let mut total = Fixed { size: 0, align: 1 };
                for field in fields {
                    let field = self.fixed(field.ty)?;
                    total.size = total.size.next_multiple_of(field.align).checked_add(field.size)?;
                    total.align = total.align.max(field.align);
                }
                Some(Fixed { size: total.size.next_multiple_of(total.align), ..total })
            }
            _ => None,
        };
        fixed.filter(|f| f.size <= SIZE_MAX)
    }
}

/// No fixed-size type is larger; a type that would be counts as one without a size, and is refused.
const SIZE_MAX: u64 = 1 << 40;

/// Arrays up to this size are leaves of the fixed part; a longer one is a block, copied in one piece.
const LEAF_BYTES_MAX: u64 = 64;

struct Planner<'a> {
    model: &'a Model,
    sizes: &'a Sizes,
    kernel: &'a dyn KernelPart,
    operation: &'a Operation,
    refused: &'a mut Vec<Diagnostic>,
    /// This operation was refused: nothing more of it is looked at.
    stopped: bool,
}

impl Planner<'_> {
    fn refuse(&mut self, what: String) {
        self.stopped = true;
        let message = format!("`{}` cannot be translated: {what}", self.operation.name);
        self.refused.push(Diagnostic::error(Code::Unsupported, self.operation.span, message));
    }

    fn method(&mut self, label: u32) -> Method {
        let operation = self.operation;
        let mut request = Vec::new();
        let mut reply = Vec::new();
        for param in &operation.params {
            let item = (param.name.clone(), param.ty, param.direction == Direction::InOut);
            if param.direction != Direction::Out {
                request.push(item.clone());
            }
            if param.direction != Direction::In {
                reply.push(item);
            }
        }
        if !matches!(self.model.ty(self.model.resolved(operation.result)), Type::Void) {
            reply.insert(0, (RESULT.into(), operation.result, false));
        }
        let mut exceptions = Vec::new();
        for (i, id) in operation.raises.iter().enumerate() {
            let exception = &self.model.exceptions[id.0 as usize];
            let fields = exception.fields.iter().map(|f| (f.name.clone(), f.ty, false)).collect();
            exceptions.push((exception.name.clone(), self.message(i as u32 + 1, fields)));
        }
        Method {
            name: operation.name.clone(),
            oneway: operation.oneway,
            request: self.message(label, request),
            reply: self.message(0, reply),
            exceptions,
        }
    }

    fn message(&mut self, label: u32, items: Vec<(String, TypeId, bool)>) -> Message {
        let mut leaves: Vec<(bool, Slot)> = Vec::new();
        let mut chunks = Vec::new();
        for (name, ty, stays) in items {
            let mut slots = Vec::new();
            self.take_apart(&mut vec![name], ty, &mut slots, &mut chunks, 0);
            leaves.extend(slots.into_iter().map(|s| (stays, s)));
        }
        // Inout first, then by size; the sort is stable, so leaves of a size keep the order of the parameters.
        leaves.sort_by_key(|(stays, slot)| (!stays, std::cmp::Reverse(slot.fixed.align)));
        let word = u64::from(self.kernel.word_bytes());
        let registers_bytes = u64::from(self.kernel.registers()) * word;
        let (mut register_at, mut memory_at) = (0u64, 0u64);
        let mut slots = Vec::new();
        for (_, mut slot) in leaves {
            let at = register_at.next_multiple_of(slot.fixed.align);
            if slot.fixed.size <= word && at + slot.fixed.size <= registers_bytes {
                slot.place = Place::Register((at / word) as u32, (at % word) as u32);
                register_at = at + slot.fixed.size;
            } else {
                memory_at = memory_at.next_multiple_of(slot.fixed.align);
                slot.place = Place::Memory(memory_at);
                memory_at += slot.fixed.size;
            }
            slots.push(slot);
        }
        if self.kernel.memory_bytes_max() == 0 && (memory_at > 0 || !chunks.is_empty()) {
            let name = self.kernel.name();
            let registers = self.kernel.registers();
            self.refuse(format!(
                "a message of `{name}` is {registers} registers, and it needs more than that"
            ));
        }
        let largest = chunks.iter().filter_map(|c| c.element).map(|e| e.size).max().unwrap_or(0);
        if largest > self.kernel.memory_bytes_max() && self.kernel.memory_bytes_max() > 0 {
            self.refuse(format!("{largest} bytes in one piece are more than a message can hold"));
        }
        let registers = register_at.div_ceil(word) as u32;
        Message { label, slots, registers, memory_bytes: memory_at.next_multiple_of(8), chunks }
    }

    fn take_apart(
        &mut self,
        path: &mut Vec<String>,
        ty: TypeId,
        slots: &mut Vec<Slot>,
        chunks: &mut Vec<Chunk>,
        depth: usize,
    ) {
        if self.stopped {
            return;
        }
        if depth > limits::NESTING_MAX || slots.len() + chunks.len() > LEAVES_MAX {
            return self.refuse("its parameters are too large to be taken apart".into());
        }
        let resolved = self.model.resolved(ty);
        let mut slot =
            |leaf, fixed| slots.push(Slot { path: path.clone(), leaf, fixed, place: Place::Memory(0) });
        let mut chunk = |element, bound| chunks.push(Chunk { path: path.clone(), ty, element, bound });
        let count = Fixed { size: 4, align: 4 };
        match self.model.ty(resolved) {
            Type::Struct(_, fields) => {
                for field in fields {
                    path.push(field.name.clone());
                    self.take_apart(path, field.ty, slots, chunks, depth + 1);
                    path.pop();
                }
            }
            Type::Array(..) => match self.sizes.fixed(resolved) {
                Some(size) if size.size <= LEAF_BYTES_MAX => slot(Leaf::Value(ty), size),
                Some(size) => chunk(Some(size), Some(1)),
                None => {
                    chunk(None, None);
                    self.carried(ty);
                }
            },
            // Text of either kind is UTF-8 on the way; the count is of bytes, the bound of characters.
            Type::Str { bound, .. } => {
                slot(Leaf::Count(ty), count);
                chunk(Some(Fixed { size: 1, align: 1 }), *bound);
            }
            Type::Sequence(of, bound) => match self.sizes.fixed(*of) {
                Some(element) => {
                    slot(Leaf::Count(ty), count);
                    chunk(Some(element), *bound);
                }
                None => {
                    chunk(None, None);
                    self.carried(ty);
                }
            },
            Type::Union { .. } => {
                chunk(None, None);
                self.carried(ty);
            }
            _ => match self.sizes.fixed(resolved) {
                Some(size) => slot(Leaf::Value(ty), size),
                None => self.carried(ty),
            },
        }
    }

    /// Refuses what a stream cannot carry, wherever it stands in a type.
    fn carried(&mut self, ty: TypeId) {
        let mut seen = vec![false; self.model.types_len()];
        let mut stack = vec![ty];
        while let Some(id) = stack.pop() {
            let id = self.model.resolved(id);
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                continue;
            }
            match self.model.ty(id) {
                Type::Struct(_, fields) => stack.extend(fields.iter().map(|f| f.ty)),
                Type::Union { switch, branches, .. } => {
                    stack.push(*switch);
                    stack.extend(branches.iter().map(|b| b.field.ty));
                }
                Type::Sequence(of, _) => stack.push(*of),
                Type::Array(of, dims) => {
                    let elements = dims.iter().fold(1u64, |n, &d| n.saturating_mul(d));
                    if elements > self.kernel.memory_bytes_max() {
                        let show = self.model.show(id);
                        self.refuse(format!("`{show}` is larger than a message can be"));
                    }
                    stack.push(*of);
                }
                Type::Foreign(what, name) => {
                    self.refuse(format!("{what} `{name}` is nothing that stubs can carry"))
                }
                Type::Object(_) => {
                    let show = self.model.show(id);
                    self.refuse(format!("a reference to an object (`{show}`) cannot be sent yet"));
                }
                Type::Fixed(..) => self.refuse("fixed-point numbers cannot be sent yet".into()),
                Type::Float(128) => {
                    self.refuse("`long double` cannot be sent: it differs between machines".into())
                }
                Type::Pointer(..) | Type::Open(_) => {
                    let show = self.model.show(id);
                    self.refuse(format!("pointers and open arrays (`{show}`) cannot be sent yet"));
                }
                Type::Forward(name) => self.refuse(format!("`{name}` is declared and never defined")),
                _ => {}
            }
        }
    }
}

/// Leaves and chunks of one message. Beyond it nobody would read the layout, or call the method.
const LEAVES_MAX: usize = 4_096;

/// All layouts as text, for people and for tests.
pub fn text(model: &Model, layouts: &[InterfaceLayout], kernel: &dyn KernelPart) -> String {
    let mut out = String::new();
    for layout in layouts {
        let interface = &model.interfaces[layout.interface.0 as usize];
        writeln!(
            out,
            "interface {} over {} (label in the {})",
            interface.name,
            kernel.name(),
            kernel.label()
        )
        .unwrap();
        for method in &layout.methods {
            let oneway = if method.oneway { ", oneway" } else { "" };
            writeln!(out, "  {} (label {}){oneway}", method.name, method.request.label).unwrap();
            message_text(&mut out, model, "request", &method.request);
            if !method.oneway {
                message_text(&mut out, model, "reply", &method.reply);
            }
            for (name, message) in &method.exceptions {
                message_text(
                    &mut out,
                    model,
                    &format!("exception {name} (label {})", message.label),
                    message,
                );
            }
        }
    }
    out
}

fn message_text(out: &mut String, model: &Model, title: &str, message: &Message) {
    let empty = if message.slots.is_empty() && message.chunks.is_empty() { ": empty" } else { "" };
    writeln!(out, "    {title}{empty}").unwrap();
    for slot in &message.slots {
        let place = match slot.place {
            Place::Register(word, byte) => format!("w{word}[{byte}..{}]", u64::from(byte) + slot.fixed.size),
            Place::Memory(at) => format!("{at}..{}", at + slot.fixed.size),
        };
        let what = match slot.leaf {
            Leaf::Value(ty) => model.show(ty),
            Leaf::Count(ty) => format!("count of {}", model.show(ty)),
        };
        writeln!(out, "      {place:<12} {:<24} {what}", slot.path.join(".")).unwrap();
    }
    for chunk in &message.chunks {
        let how = match (chunk.element, chunk.bound) {
            (Some(element), Some(1)) if matches!(model.ty(model.resolved(chunk.ty)), Type::Array(..)) => {
                format!("block of {} bytes", element.size)
            }
            (Some(element), Some(bound)) => {
                format!("block of {}-byte elements, at most {bound}", element.size)
            }
            (Some(element), None) => format!("block of {}-byte elements", element.size),
            (None, _) => "stream".into(),
        };
        writeln!(out, "      {:<12} {:<24} {how}", "then", chunk.path.join(".")).unwrap();
    }
}

/// What a message costs, without running it: registers, bytes in memory, blocks, streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Registers used.
    pub registers: u32,
    /// Bytes of the fixed part in memory.
    pub memory_bytes: u64,
    /// Copies of a whole block.
    pub blocks: usize,
    /// Values that are read element by element.
    pub streams: usize,
    /// Checks that a receiver makes: lengths, bounds, truth values, enums.
    pub checks: usize,
}

/// The cost of a message.
pub fn cost(sizes: &Sizes, message: &Message) -> Cost {
    let blocks = message.chunks.iter().filter(|c| c.element.is_some()).count();
    // Bit patterns that are no value: only these types have any, and only they are checked.
    let checked = |slot: &Slot| match slot.leaf {
        Leaf::Count(_) => true,
        Leaf::Value(ty) => sizes.checked(ty),
    };
    Cost {
        registers: message.registers,
        memory_bytes: message.memory_bytes,
        blocks,
        streams: message.chunks.len() - blocks,
        checks: 1 + message.slots.iter().filter(|s| checked(s)).count(),
    }
}

/// The cost of every method as a table.
pub fn cost_text(model: &Model, layouts: &[InterfaceLayout], kernel: &dyn KernelPart) -> String {
    let mut out = String::new();
    let sizes = Sizes::new(model);
    for layout in layouts {
        let name = &model.interfaces[layout.interface.0 as usize].name;
        writeln!(out, "interface {name} over {}", kernel.name()).unwrap();
        let head = ["method", "message", "registers", "bytes", "blocks", "streams", "checks"];
        let [method, message, rest @ ..] = head;
        write!(out, "  {method:<24} {message:<10}").unwrap();
        rest.iter().for_each(|h| write!(out, " {h:>9}").unwrap());
        out.push('\n');
        for method in &layout.methods {
            let mut row = |what: &str, message: &Message| {
                let c = cost(&sizes, message);
                write!(out, "  {:<24} {what:<10} {:>9} {:>9}", method.name, c.registers, c.memory_bytes)
                    .unwrap();
                writeln!(out, " {:>9} {:>9} {:>9}", c.blocks, c.streams, c.checks).unwrap();
            };
            row("request", &method.request);
            if !method.oneway {
                row("reply", &method.reply);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
