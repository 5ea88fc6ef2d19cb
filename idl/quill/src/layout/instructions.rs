//! How many instructions the stubs of a method take: a prediction, made of what stands in its messages.
//!
//! Predictions are of what `./tern bench idl` counts. Over Tern, by ipc or through a door, that is a client's method from its arguments in memory to its results there, with one instruction
//! for the kernel; a server from one system call to the next, with a method that does nothing; an object from its entry to the return. All of it is the way to success. A client
//! is the same either way. Stubs over L4 are counted in another way (`l4_v4`).
//!
//! A list is copied by the kernel, so most of a stub does not depend on its length. What does is a loop over a text: a client in C looks for its end, and who gets
//! it looks at every byte. These [loops](Loop) are known, instruction by instruction. All else are weights, in tenths of an instruction ([`weights`]), found by counting stubs of
//! interfaces made by chance; a test holds them against the rows of `bench/`, and against other interfaces (`tests/cost.rs`).

use std::fmt;
use std::fmt::Write;

use super::{InterfaceLayout, Method};
use crate::kernel::{KernelPart, L4V4, Linux};
use crate::model::Model;

use counts::Counts;
use weights::Side;

mod counts;
mod l4_v4;
mod weights;

/// Instructions of a method's stubs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// In C.
    pub c: Sides,
    /// In Rust, if the kernel part has such stubs.
    pub rust: Option<Sides>,
}

/// Instructions of both sides of a method, in one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sides {
    /// Of a client.
    pub client: Formula,
    /// Of a server.
    pub server: Formula,
}

/// Instructions of a stub: so many whatever it carries, and more for each loop over a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formula {
    /// Whatever the lists hold, if each has eight bytes or more. Shorter ones have code of their own, which nothing has counted.
    pub fixed: u32,
    /// Loops, in the order of the lists.
    pub loops: Vec<Loop>,
}

/// Loop over a list: rounds for so many bytes each, and what comes of the whole words that are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The parameter, and the fields below it, with dots between them.
    pub list: String,
    /// Bytes of a round: a multiple of eight.
    pub bytes: u64,
    /// Instructions of a round.
    pub round: u32,
    /// Instructions for each eight bytes that are less than a round.
    pub rest: u32,
}

impl Formula {
    /// Instructions when the list of that name has so many bytes.
    pub fn at(&self, bytes: impl Fn(&str) -> u64) -> u32 {
        let looped = |one: &Loop| {
            let bytes = bytes(&one.list);
            let (rounds, left) = (bytes / one.bytes, bytes % one.bytes / 8);
            let all = rounds.saturating_mul(u64::from(one.round)).saturating_add(left * u64::from(one.rest));
            u32::try_from(all).unwrap_or(u32::MAX)
        };
        self.loops.iter().map(looped).fold(self.fixed, u32::saturating_add)
    }
}

/// Sum such as `25 + 9/16 s`: 25, and nine for each sixteen bytes of `s`.
impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut text = self.fixed.to_string();
        for Loop { list, bytes, round, .. } in &self.loops {
            write!(text, " + {round}/{bytes} {list}")?;
        }
        f.pad(&text)
    }
}

/// Kernel part whose stubs have been counted.
enum Counted {
    /// Over Tern, with the weights of a server in C and of one in Rust.
    Tern(&'static Side, &'static Side),
    L4V4,
}

impl Counted {
    /// Fails with a reason if no stubs of that kernel part have been counted.
    fn new(kernel: &dyn KernelPart) -> Result<Counted, String> {
        if kernel.name() == L4V4.name() {
            return Ok(Counted::L4V4);
        }
        if kernel.name() == Linux.name() {
            let why =
                "call libraries for memory, texts and the system, whose instructions differ between versions";
            return Err(format!("stubs over `{}` {why}", kernel.name()));
        }
        let servers = weights::servers(kernel).map(|(c, rust)| Counted::Tern(c, rust));
        servers.ok_or_else(|| format!("no stubs over `{}` have been counted for a model", kernel.name()))
    }

    /// Languages in which there are stubs.
    fn columns(&self) -> &'static [&'static str] {
        match self {
            Counted::Tern(..) => &["client in C", "server", "in Rust", "server"],
            Counted::L4V4 => &["client in C", "server"],
        }
    }
}

/// Instructions of a method's stubs; or why they are not predicted.
pub fn instructions(model: &Model, method: &Method, kernel: &dyn KernelPart) -> Result<Instructions, String> {
    let counted = Counted::new(kernel)?;
    if method.oneway {
        return Err("no stubs to which nothing comes back have been counted".into());
    }
    match counted {
        Counted::L4V4 => l4_v4::instructions(model, method),
        Counted::Tern(c, rust) => over_tern(model, method, c, rust),
    }
}

fn over_tern(model: &Model, method: &Method, c: &Side, rust: &Side) -> Result<Instructions, String> {
    if method.hands_pages() || method.replies_from_memory() {
        return Err("it hands over pages or references, and no such stubs have been counted".into());
    }
    if let Some((name, _)) = method.exceptions.iter().find(|(_, message)| message.long) {
        return Err(format!("`{name}` brings more than registers hold, and no such stubs have been counted"));
    }
    let (there, back) = (Counts::new(model, &method.request)?, Counts::new(model, &method.reply)?);
    let sides = |client: &Side, server: &Side| Sides {
        client: client.formula(&there, &back),
        server: server.formula(&there, &back),
    };
    let rust = Some(sides(&weights::RUST_CLIENT, rust));
    Ok(Instructions { c: sides(&weights::C_CLIENT, c), rust })
}

/// All that `quill cost` shows: what messages hold, and what their stubs take, of instructions and of the heap.
pub fn costs_text(model: &Model, layouts: &[InterfaceLayout], kernel: &dyn KernelPart) -> String {
    super::cost_text(model, layouts, kernel)
        + &instructions_text(model, layouts, kernel)
        + &super::heap_text(model, layouts, kernel)
}

/// The predicted instructions of every method as a table.
pub fn instructions_text(model: &Model, layouts: &[InterfaceLayout], kernel: &dyn KernelPart) -> String {
    let mut out = String::new();
    let counted = Counted::new(kernel);
    let mut has_loops = false;
    for layout in layouts.iter().filter(|layout| !layout.methods.is_empty()) {
        let name = &model.interfaces[layout.interface.0 as usize].name;
        let _ = writeln!(out, "instructions of {name} over {}, predicted", kernel.name());
        let columns = match &counted {
            Ok(counted) => counted.columns(),
            Err(why) => {
                let _ = writeln!(out, "  not predicted: {why}");
                continue;
            }
        };
        row(&mut out, "method", columns.iter().copied());
        for method in &layout.methods {
            match instructions(model, method, kernel) {
                Ok(Instructions { c, rust }) => {
                    let sides = [Some(c), rust].into_iter().flatten();
                    let all: Vec<Formula> =
                        sides.flat_map(|Sides { client, server }| [client, server]).collect();
                    has_loops |= all.iter().any(|formula| !formula.loops.is_empty());
                    row(&mut out, &method.name, all.iter());
                }
                Err(why) => {
                    let _ = writeln!(out, "  {:<24} not predicted: {why}", method.name);
                }
            }
        }
    }
    if has_loops {
        out += "`25 + 9/16 s` is 25, and 9 for each 16 bytes of `s`, which has 8 or more\n";
    }
    out
}

/// Line of a table: a name, and a cell for each column.
pub(super) fn row(out: &mut String, name: &str, columns: impl Iterator<Item = impl fmt::Display>) {
    let _ = write!(out, "  {name:<24}");
    for column in columns {
        let _ = write!(out, " {column:>15}");
    }
    out.push('\n');
}
