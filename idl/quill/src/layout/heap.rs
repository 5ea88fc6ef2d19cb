//! Pieces of the heap that stubs over sockets take for a call: a prediction that is exact where there is one.
//!
//! How many instructions these stubs take is for the most part a matter of the libraries that they call for memory, texts and the system, and these differ between
//! versions and processors. How often they ask the heap follows from the interface: for what has no fixed size and arrives, and in Rust for a
//! reply that is made. They ask the system once for each message that is sent, and once for each that is received.

use std::fmt;
use std::fmt::Write;

use super::instructions::row;
use super::{InterfaceLayout, Leaf, Message, Method};
use crate::kernel::{KernelPart, Linux};
use crate::model::{Model, Shown, Type, TypeId};
use crate::sizes::for_all_types;

/// A body of up to so many bytes is made without a further piece.
pub const FIRST_BYTES: u64 = 248;

/// Pieces of the heap: so many, and more for each element of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// Whatever the lists hold, if none is empty.
    pub fixed: u32,
    /// For each element of a list, which is the parameter and the fields below it.
    pub each: Vec<(String, u32)>,
}

impl Pieces {
    /// All of them, when the list of that name has so many elements.
    pub fn at(&self, elements: impl Fn(&str) -> u32) -> u32 {
        let of = |(list, each): &(String, u32)| elements(list).saturating_mul(*each);
        self.each.iter().map(of).fold(self.fixed, u32::saturating_add)
    }

    fn and(self, more: u32) -> Pieces {
        Pieces { fixed: self.fixed.saturating_add(more), ..self }
    }
}

/// Sum such as `2 + 1 names`: 2, and one for each element of `names`.
impl fmt::Display for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut text = self.fixed.to_string();
        for (list, each) in &self.each {
            write!(text, " + {each} {list}")?;
        }
        f.pad(&text)
    }
}

/// Pieces that a client takes for a call, and those that a server takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// In C.
    pub c: [Pieces; 2],
    /// In Rust.
    pub rust: [Pieces; 2],
}

/// Predictions for the methods of a model.
#[derive(Debug)]
pub struct Heap<'m> {
    model: &'m Model,
    /// For a value of each type that arrives; none, where it depends on the value.
    in_client: Vec<Option<u32>>,
    in_server: Vec<Option<u32>>,
    in_rust: Vec<Option<u32>>,
}

impl<'m> Heap<'m> {
    /// Looks at all types.
    pub fn new(model: &'m Model) -> Heap<'m> {
        Heap {
            model,
            in_client: values(model, Side::Client),
            in_server: values(model, Side::Server),
            in_rust: values(model, Side::Rust),
        }
    }

    /// The pieces for a call of a method, as far as it succeeds; or why they are not predicted.
    pub fn asked(&self, method: &Method) -> Result<Asked, String> {
        let Method { request, reply, oneway, .. } = method;
        let body = u32::from(reply.memory_bytes > 0 || !reply.chunks.is_empty());
        // In Rust, a reply that is sent is a body, and the header with the body behind it.
        let answered = if *oneway { 0 } else { 1 + body };
        let [client, server, rust] = [&self.in_client, &self.in_server, &self.in_rust];
        Ok(Asked {
            c: [self.arriving(client, reply)?, self.arriving(server, request)?],
            rust: [self.arriving(rust, reply)?, self.arriving(rust, request)?.and(answered)],
        })
    }

    /// Pieces for what is in a message that arrives.
    fn arriving(&self, values: &[Option<u32>], message: &Message) -> Result<Pieces, String> {
        let mut all = Pieces::default();
        let of = |ty: TypeId, path: &[String]| {
            let why = "has parts that may be absent, or lists within lists, or is a context handle";
            values[ty.0 as usize].ok_or_else(|| format!("`{}` {why}", path.join(".")))
        };
        for slot in &message.slots {
            if let Leaf::Value(ty) = slot.leaf {
                all = all.and(of(ty, &slot.path)?);
            }
        }
        for chunk in &message.chunks {
            if let Type::Sequence(element, _) = self.model.ty(self.model.resolved(chunk.ty)) {
                let each = of(*element, &chunk.path)?;
                all = all.and(1);
                if each > 0 {
                    all.each.push((chunk.path.join("."), each));
                }
            } else {
                all = all.and(of(chunk.ty, &chunk.path)?);
            }
        }
        Ok(all)
    }
}

/// Where values arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// In a client in C, whose reply is gone when the call ends.
    Client,
    /// In a server in C, whose request stays until the next one.
    Server,
    /// In Rust.
    Rust,
}

/// Pieces for a value of each type that arrives.
fn values(model: &Model, side: Side) -> Vec<Option<u32>> {
    let in_rust = side == Side::Rust;
    let about = |ty: TypeId, of: &mut dyn FnMut(TypeId) -> Option<u32>| match model.ty(ty) {
        _ if model.is_any(ty) || model.context(ty).is_some() => None,
        // Where it has arrived.
        Type::Str { shown: Shown::Counted | Shown::Lent, .. } if side == Side::Server => Some(0),
        Type::Str { .. } => Some(1),
        Type::Sequence(element, _) => (of(*element)? == 0).then_some(1),
        Type::Array(element, dims) => dims.iter().rev().try_fold(of(*element)?, |all, &count| {
            // In Rust, elements arrive in a list that becomes an array.
            all.checked_mul(u32::try_from(count).ok()?)?.checked_add(u32::from(in_rust))
        }),
        Type::Struct(_, fields) => fields.iter().try_fold(0u32, |all, field| all.checked_add(of(field.ty)?)),
        Type::Flat(..) if !in_rust => Some(0),
        Type::Flat(..) | Type::Union { .. } | Type::Optional(_) | Type::Shared(_) => None,
        _ => Some(0),
    };
    for_all_types(model, None, &about)
}

/// The predicted pieces of every method as a table; nothing over other kernel parts, whose stubs ask no heap.
pub fn heap_text(model: &Model, layouts: &[InterfaceLayout], kernel: &dyn KernelPart) -> String {
    let mut out = String::new();
    if kernel.name() != Linux.name() {
        return out;
    }
    let heap = Heap::new(model);
    for layout in layouts.iter().filter(|layout| !layout.methods.is_empty()) {
        let name = &model.interfaces[layout.interface.0 as usize].name;
        let _ = writeln!(out, "pieces of the heap for a call of {name} over {}, predicted", kernel.name());
        row(&mut out, "method", ["client in C", "server", "in Rust", "server"].iter());
        for method in &layout.methods {
            match heap.asked(method) {
                Ok(Asked { c, rust }) => row(&mut out, &method.name, c.iter().chain(&rust)),
                Err(why) => {
                    let _ = writeln!(out, "  {:<24} not predicted: {why}", method.name);
                }
            }
        }
    }
    if !out.is_empty() {
        let _ = writeln!(
            out,
            "where no list or text is empty, no message longer than {FIRST_BYTES} bytes, and in C no piece left from a call before; `2 + 1 s` is 2, and 1 for each element of `s`"
        );
        out += "each message is one system call of who sends it, and one of who gets it\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both runtimes make bodies of so many bytes without more of the heap.
    #[test]
    fn runtimes_have_room_for_short_bodies() {
        let in_c = format!("#define QUILL_FIRST_BYTES {FIRST_BYTES} ");
        assert!(include_str!("../emit/c/linux_message.h").contains(&in_c));
        let in_rust = format!("const FIRST_BYTES: usize = {FIRST_BYTES};");
        assert!(include_str!("../emit/rust/linux/runtime.rs").contains(&in_rust));
    }
}
