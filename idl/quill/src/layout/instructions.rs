//! How many instructions the stubs of a method take over Tern, by ipc or through a door: a prediction, made of what stands in its messages.
//!
//! Predictions are of what `./tern bench idl` counts: a client's method from its arguments in memory to its results there, with one instruction
//! for the kernel; a server from one system call to the next, with a method that does nothing; an object from its entry to the return. All of it is the way to success, and copies of texts and
//! lists are the kernel's. A client is the same either way. The weights, in tenths of an instruction, were found by counting stubs in C of 600 interfaces by chance, and those in
//! Rust from the rows of `bench/`. A test holds them against the rows, and against other interfaces (`tests/cost.rs`).

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Carrier, InterfaceLayout, Leaf, Message, Method, Place};
use crate::kernel::KernelPart;
use crate::model::{Model, Type, TypeId};

/// Instructions of a method's stubs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// Of a client in C.
    pub c_client: u32,
    /// Of a server in C.
    pub c_server: u32,
    /// Of a client in Rust.
    pub rust_client: u32,
    /// Of a server in Rust.
    pub rust_server: u32,
}

/// Things in a message that take instructions.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Registers, up to the last that is used.
    words: u32,
    /// Values and counts.
    values: u32,
    truths: u32,
    enums: u32,
    /// Structs in one register, and registers of longer ones.
    small_structs: u32,
    struct_words: u32,
    /// Registers with two numbers of 32 bits each, which a compiler may treat as one of 64.
    pairs: u32,
    /// Values in other registers beside one that is there already.
    further: u32,
    /// Lists and texts that are not in registers.
    lists: u32,
    texts: u32,
}

impl Counts {
    fn new(model: &Model, message: &Message) -> Option<Counts> {
        let mut counts = Counts { words: message.registers, ..Counts::default() };
        let kind = |ty: TypeId| model.ty(model.resolved(ty));
        let mut shared: BTreeMap<u32, (u32, bool)> = BTreeMap::new();
        for slot in &message.slots {
            // Values with places in memory have not been counted.
            let Place::Register(word, _) = slot.place else { return None };
            let Leaf::Value(ty) = slot.leaf else { continue };
            counts.values += 1;
            let mut is_number = slot.fixed.size == 4;
            match kind(ty) {
                Type::Bool => counts.truths += 1,
                // Nothing has counted the look at its digits.
                Type::Fixed(..) => return None,
                Type::Enum(..) => {
                    counts.enums += 1;
                    is_number = false;
                }
                Type::Struct(..) | Type::Array(..) if slot.fixed.size <= 8 => counts.small_structs += 1,
                Type::Struct(..) | Type::Array(..) => {
                    counts.struct_words += slot.fixed.size.div_ceil(8) as u32
                }
                _ => {}
            }
            let register = shared.entry(word).or_insert((0, true));
            *register = (register.0 + 1, register.1 && is_number);
        }
        for (values, numbers) in shared.into_values() {
            match (values, numbers) {
                (2, true) => counts.pairs += 1,
                (values, _) => counts.further += values - 1,
            }
        }
        for chunk in &message.chunks {
            if chunk.carrier == Carrier::Behind || chunk.element.is_none() {
                return None;
            }
            match kind(chunk.ty) {
                Type::Str { .. } => counts.texts += 1,
                _ => counts.lists += 1,
            }
        }
        Some(counts)
    }
}

/// Sum of so many things with so many tenths each, in whole instructions.
fn sum(parts: &[(u32, u32)]) -> u32 {
    let tenths: u32 = parts.iter().map(|(count, tenths)| count * tenths).sum();
    (tenths + 5) / 10
}

/// Instructions of a method's stubs; `None` if it has what has not been counted: values read piece by piece, places in memory, replies with
/// lists, what is handed over, nothing that comes back; and for kernels whose stubs have not been counted.
pub fn instructions(model: &Model, method: &Method, kernel: &dyn KernelPart) -> Option<Instructions> {
    let [c_server, rust_server] = servers(kernel)?;
    if method.oneway
        || method.hands_pages()
        || method.replies_from_memory()
        || !method.reply.chunks.is_empty()
    {
        return None;
    }
    let (there, back) = (Counts::new(model, &method.request)?, Counts::new(model, &method.reply)?);
    let checks = there.enums + back.enums;
    Some(Instructions {
        c_client: sum(&[
            (1, 160),
            (back.words, 10),
            (back.truths, 31),
            (checks, 20),
            (back.further, 22),
            (there.further, 31),
            (there.texts, 260),
            (there.lists, 95),
        ]),
        c_server: c_server(&there, &back),
        rust_client: sum(&[
            (1, 195),
            (back.words, 10),
            (there.texts, 30),
            (there.lists, 55),
            (back.truths, 31),
            (checks, 20),
        ]),
        rust_server: rust_server(&there, &back),
    })
}

/// Instructions of a server for a method with such a request and such a reply.
type Server = fn(&Counts, &Counts) -> u32;

/// Those in C and in Rust.
fn servers(kernel: &dyn KernelPart) -> Option<[Server; 2]> {
    match kernel.name() {
        "tern-ipc" => Some([c_loop, rust_loop]),
        "tern-door" => Some([c_object, rust_object]),
        _ => None,
    }
}

fn c_loop(there: &Counts, back: &Counts) -> u32 {
    sum(&[
        (1, 106),
        (there.words + back.words, 1),
        (there.words.saturating_sub(5) + back.words.saturating_sub(5), 5),
        (there.truths, 33),
        (there.enums, 22),
        (back.enums, 27),
        (there.further, 24),
        (back.further, 37),
        (there.small_structs, 14),
        (back.small_structs, 10),
        (there.struct_words + back.struct_words, 15),
        (back.pairs, 45),
        (there.texts, 325),
        (there.lists, 45),
    ])
}

fn rust_loop(there: &Counts, back: &Counts) -> u32 {
    sum(&[
        (1, 140),
        (there.values.saturating_sub(4), 31),
        (back.values, 23),
        (there.struct_words, 20),
        (there.texts, 200),
        (there.lists, 45),
        (there.truths, 20),
        (there.enums + back.enums, 20),
    ])
}

/// Words that are no arguments of a function, and those that it does not return, have places in a frame.
fn framed(there: &Counts, back: &Counts) -> [u32; 3] {
    let (there, back) = (there.words.saturating_sub(4), back.words.saturating_sub(1));
    [there, back, u32::from(there + back > 0)]
}

fn c_object(there: &Counts, back: &Counts) -> u32 {
    let [words_there, words_back, frame] = framed(there, back);
    sum(&[
        (1, 150),
        (words_there, 26),
        (words_back, 25),
        (frame, 15),
        (there.truths, 35),
        (there.enums, 26),
        (back.enums, 25),
        (there.further, 23),
        (back.further, 38),
        (there.small_structs, 22),
        (there.struct_words + back.struct_words, 15),
        (back.pairs, 45),
        (there.texts, 325),
        (there.lists, 60),
    ])
}

fn rust_object(there: &Counts, back: &Counts) -> u32 {
    let [words_there, words_back, _] = framed(there, back);
    sum(&[
        (1, 150),
        (words_there, 26),
        (words_back, 29),
        (there.pairs + back.pairs, 27),
        (there.further + back.further, 27),
        (there.struct_words, 20),
        (there.texts, 200),
        (there.lists, 110),
        (there.truths, 20),
        (there.enums + back.enums, 20),
    ])
}

/// All that `quill cost` shows: what messages hold, and what their stubs take.
pub fn costs_text(model: &Model, layouts: &[InterfaceLayout], kernel: &dyn KernelPart) -> String {
    super::cost_text(model, layouts, kernel) + &instructions_text(model, layouts, kernel)
}

/// The predicted instructions of every method as a table; empty for a kernel whose stubs have not been counted.
pub fn instructions_text(model: &Model, layouts: &[InterfaceLayout], kernel: &dyn KernelPart) -> String {
    let mut out = String::new();
    if servers(kernel).is_none() {
        return out;
    }
    for layout in layouts {
        let name = &model.interfaces[layout.interface.0 as usize].name;
        let _ = writeln!(out, "instructions of {name} over {}, predicted", kernel.name());
        let _ = writeln!(
            out,
            "  {:<24} {:>11} {:>11} {:>11} {:>11}",
            "method", "client in C", "server", "in Rust", "server"
        );
        for method in &layout.methods {
            let _ = match instructions(model, method, kernel) {
                Some(Instructions { c_client, c_server, rust_client, rust_server }) => writeln!(
                    out,
                    "  {:<24} {c_client:>11} {c_server:>11} {rust_client:>11} {rust_server:>11}",
                    method.name
                ),
                None => {
                    writeln!(out, "  {:<24} {:>11} {:>11} {:>11} {:>11}", method.name, "-", "-", "-", "-")
                }
            };
        }
    }
    out
}
