//! Layouts and costs as text, for people and for tests.

use std::fmt::Write;

use super::{Carrier, Handed, InterfaceLayout, Leaf, Message, Place, Slot};
use crate::kernel::KernelPart;
use crate::model::{Model, Type};
use crate::sizes::Sizes;

/// All layouts as text, for people and for tests.
pub fn text(model: &Model, layouts: &[InterfaceLayout], kernel: &dyn KernelPart) -> String {
    let mut out = String::new();
    for layout in layouts {
        let interface = &model.interfaces[layout.interface.0 as usize];
        if interface.local {
            writeln!(out, "interface {}, local: called without a message", interface.name).unwrap();
            continue;
        }
        writeln!(
            out,
            "interface {} over {} (label in the {})",
            interface.name,
            kernel.name(),
            kernel.shape().label
        )
        .unwrap();
        for view in layout.views.iter().filter(|view| view.first > 0 && kernel.has_views()) {
            let base = &model.interfaces[view.interface.0 as usize].name;
            let first = label(kernel.request_label(view.first, 0));
            writeln!(out, "  as {base}: its labels, and {first}").unwrap();
        }
        for method in &layout.methods {
            let oneway = if method.oneway { ", oneway" } else { "" };
            writeln!(out, "  {} (label {}){oneway}", method.name, label(method.request.label)).unwrap();
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

/// A label as people read it: small ones are counted, large ones are patterns.
fn label(label: u32) -> String {
    if label < 1 << 16 { label.to_string() } else { format!("{label:#x}") }
}

fn message_text(out: &mut String, model: &Model, title: &str, message: &Message) {
    let empty = if message.slots.is_empty() && message.chunks.is_empty() && message.pages.is_none() {
        ": empty"
    } else {
        ""
    };
    writeln!(out, "    {title}{empty}").unwrap();
    for slot in &message.slots {
        let place = match slot.place {
            Place::Register(word, byte) => format!("w{word}[{byte}..{}]", u64::from(byte) + slot.fixed.size),
            Place::Memory(at) => format!("{at}..{}", at + slot.fixed.size),
        };
        let what = match slot.leaf {
            Leaf::Value(ty) => model.show(ty),
            Leaf::Count(ty) => format!("count of {}", model.show(ty)),
            Leaf::Elements(ty, _) => format!("elements of {}", model.show(ty)),
            Leaf::Tail(ty) => format!("last bytes of {}", model.show(ty)),
            Leaf::Offer(ty) => format!("offer of {}", model.show(ty)),
        };
        writeln!(out, "      {place:<12} {:<24} {what}", slot.path.join(".")).unwrap();
    }
    for Handed { param, ty, grant } in message.handed() {
        let how = match grant {
            Some(true) => ", granted",
            Some(false) => ", mapped",
            None => "",
        };
        let how = format!("{}{how}", model.show(*ty));
        writeln!(out, "      {:<12} {param:<24} {how}", "item").unwrap();
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
            (None, _) if chunk.references == u64::MAX => "stream, with references to objects".into(),
            (None, _) if chunk.references > 0 => {
                format!("stream, with at most {} references to objects", chunk.references)
            }
            (None, _) => "stream".into(),
        };
        let place = match chunk.carrier {
            Carrier::Behind => "then".into(),
            Carrier::Direct => "words".into(),
            Carrier::String(number) => format!("string {number}"),
        };
        writeln!(out, "      {place:<12} {:<24} {how}", chunk.path.join(".")).unwrap();
    }
}

/// What a message costs, without running it: registers, bytes in memory, lists, streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Registers used.
    pub registers: u32,
    /// Bytes of the fixed part in memory.
    pub memory_bytes: u64,
    /// Lists that are copied whole.
    pub blocks: usize,
    /// Lists that the kernel takes from where each lies.
    pub strings: usize,
    /// Values that are read element by element.
    pub streams: usize,
    /// Checks that a receiver makes: lengths, bounds, truth values, enums.
    pub checks: usize,
}

/// The cost of a message.
pub fn cost(sizes: &Sizes, message: &Message) -> Cost {
    let lists = message.chunks.iter().filter(|c| c.element.is_some()).count();
    let strings = message.strings().count();
    // Bit patterns that are no value: only these types have any, and only they are checked.
    let checked = |slot: &Slot| match slot.leaf {
        Leaf::Count(_) | Leaf::Elements(..) => true,
        Leaf::Tail(_) | Leaf::Offer(_) => false,
        Leaf::Value(ty) => sizes.checked(ty),
    };
    Cost {
        registers: message.registers,
        memory_bytes: message.memory_bytes,
        blocks: lists - strings,
        strings,
        streams: message.chunks.len() - lists,
        checks: 1 + strings + message.slots.iter().filter(|s| checked(s)).count(),
    }
}

/// The cost of every method as a table.
pub fn cost_text(model: &Model, layouts: &[InterfaceLayout], kernel: &dyn KernelPart) -> String {
    let mut out = String::new();
    let sizes = Sizes::new(model);
    for layout in layouts {
        let name = &model.interfaces[layout.interface.0 as usize].name;
        writeln!(out, "interface {name} over {}", kernel.name()).unwrap();
        let head = ["method", "message", "registers", "bytes", "blocks", "strings", "streams", "checks"];
        let [method, message, rest @ ..] = head;
        write!(out, "  {method:<24} {message:<10}").unwrap();
        rest.iter().for_each(|h| write!(out, " {h:>9}").unwrap());
        out.push('\n');
        for method in &layout.methods {
            let mut row = |what: &str, message: &Message| {
                let c = cost(&sizes, message);
                write!(out, "  {:<24} {what:<10} {:>9} {:>9}", method.name, c.registers, c.memory_bytes)
                    .unwrap();
                writeln!(out, " {:>9} {:>9} {:>9} {:>9}", c.blocks, c.strings, c.streams, c.checks).unwrap();
            };
            row("request", &method.request);
            if !method.oneway {
                row("reply", &method.reply);
            }
        }
    }
    out
}
