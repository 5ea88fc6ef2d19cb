//! Instructions of stubs in C over L4's V4 API, on x86 with 32 bits, as the rows `idl.l4v4` of `./tern bench idl` have them: a client is a function
//! around the stub, with its call and its return and its arguments on the stack; a server goes from one ipc to the next, with methods that want each
//! argument in a register and give each result a value.
//!
//! Values are written to the message one by one, and few registers are left for anything else. So most of a stub follows from how many values
//! of which size go in which direction. A longer list is an item, which the kernel copies. Weights are in tenths of an instruction, found by least
//! squares over stubs of 604 interfaces made by chance and over the rows.

use super::counts::What;
use super::weights::sum;
use super::{Formula, Instructions, Sides};
use crate::layout::{Chunk, Leaf, Message, Method, Place, RESULT, Slot};
use crate::model::{Model, Type};
use crate::sizes::Sizes;

/// Values of a message, by what moving them takes.
#[derive(Debug, Default)]
struct Values {
    /// Of one or two bytes, of four, and of eight.
    small: u32,
    long: u32,
    wide: u32,
    /// Structs and arrays that are copied in one piece, and their words.
    structs: u32,
    words: u32,
    truths: u32,
    enums: u32,
    /// Structs, and values of eight bytes, that begin in one of the two words that arrive in registers of the processor.
    early_structs: u32,
    early_wide: u32,
    /// Values that do not begin a word.
    further: u32,
    /// The result, if a function can return it.
    returned: u32,
    /// Words of values, but for structs, and how many of them come before the last value that is checked: these are kept until all is well.
    read: u32,
    held: u32,
    /// Words of the message, without those of items.
    registers: u32,
    /// Lists that are items: of bytes, of two or four bytes, of eight or another power of two, of others.
    items: [u32; 4],
    /// Those of them that have a bound.
    bounded: u32,
}

/// Instructions of a method's stubs; or why they are not predicted.
pub(super) fn instructions(model: &Model, method: &Method) -> Result<Instructions, String> {
    let has_lists = |message: &Message| !message.chunks.is_empty();
    if let Some((name, _)) = method.exceptions.iter().find(|(_, message)| has_lists(message)) {
        return Err(format!("`{name}` brings a list, and no such stubs have been counted"));
    }
    let (there, back) = (Values::new(model, &method.request)?, Values::new(model, &method.reply)?);
    let both = Both {
        values: goes_both_ways(&paths(method, |message| {
            message.slots.iter().map(|slot| &slot.path[..]).collect()
        })),
        items: goes_both_ways(&paths(method, |message| {
            message.chunks.iter().map(|chunk| &chunk.path[..]).collect()
        })),
    };
    let formula = |fixed| Formula { fixed, loops: Vec::new() };
    let c = Sides {
        client: formula(client(&there, &back, &both)),
        server: formula(server(&there, &back, &both)),
    };
    Ok(Instructions { c, rust: None })
}

impl Values {
    /// Fails with a reason if there is something that nobody has counted.
    fn new(model: &Model, message: &Message) -> Result<Values, String> {
        let sizes = Sizes::new(model);
        let mut values = Values { registers: message.registers, ..Values::default() };
        message.slots.iter().try_for_each(|slot| values.add(model, &sizes, slot))?;
        message.chunks.iter().try_for_each(|chunk| values.add_item(model, &sizes, chunk))?;
        Ok(values)
    }

    fn add(&mut self, model: &Model, sizes: &Sizes, slot: &Slot) -> Result<(), String> {
        let path = slot.path.join(".");
        let Leaf::Value(ty) = slot.leaf else {
            return Err(format!("`{path}` lies in registers: how a library copies it there is not known"));
        };
        let mut is_struct = false;
        let Place::Register(word, byte) = slot.place else {
            return Err(format!("`{path}` lies in memory, and no such stubs have been counted"));
        };
        self.further += u32::from(byte > 0);
        let early = u32::from(word < 2);
        let of = model.ty(model.resolved(ty));
        if matches!(of, Type::Bool | Type::Enum(..)) {
            self.held = self.read;
        }
        match (of, slot.fixed.size) {
            (Type::Bool, _) => self.truths += 1,
            (Type::Enum(..), _) => self.enums += 1,
            (Type::Octet | Type::Char | Type::Int { .. } | Type::Bitmask(..), 1 | 2) => self.small += 1,
            (Type::Int { .. } | Type::Bitmask(..), 4) => self.long += 1,
            (Type::Int { .. } | Type::Bitmask(..), 8) => {
                self.wide += 1;
                self.early_wide += early;
            }
            (Type::Struct(..) | Type::Array(..), size) if sizes.flat(ty) => {
                is_struct = true;
                self.structs += 1;
                self.words += size.div_ceil(4) as u32;
                self.early_structs += early;
            }
            _ => return Err(format!("no stubs with values of the type of `{path}` have been counted")),
        }
        if !is_struct {
            self.read += slot.fixed.size.div_ceil(4) as u32;
            self.returned += u32::from(slot.path == [RESULT]);
        }
        Ok(())
    }

    fn add_item(&mut self, model: &Model, sizes: &Sizes, chunk: &Chunk) -> Result<(), String> {
        let path = chunk.path.join(".");
        let Some(element) = chunk.element else {
            return Err(format!("`{path}` is read piece by piece, so it depends on each element"));
        };
        let kind = match What::new(model, sizes, chunk, element.size)? {
            What::Text => {
                return Err(format!(
                    "`{path}` is a text: whether the loop that copies it is a part of the stub depends on the rest of the file"
                ));
            }
            What::Bytes => 0,
            What::Parts => 1,
            What::Words => 2,
            What::Others => 3,
        };
        self.items[kind] += 1;
        self.bounded += u32::from(chunk.bound.is_some());
        Ok(())
    }

    fn all_items(&self) -> u32 {
        self.items.iter().sum()
    }

    /// Values that are no structs and have four bytes at most.
    fn narrow(&self) -> u32 {
        self.small + self.long + self.truths + self.enums
    }

    fn all(&self) -> u32 {
        self.narrow() + self.wide + self.structs
    }
}

/// Parameters that go both ways.
struct Both {
    values: u32,
    items: u32,
}

/// Paths of a method's request, and of its reply.
fn paths<'a>(method: &'a Method, of: impl Fn(&'a Message) -> Vec<&'a [String]>) -> [Vec<&'a [String]>; 2] {
    [of(&method.request), of(&method.reply)]
}

fn goes_both_ways([there, back]: &[Vec<&[String]>; 2]) -> u32 {
    there.iter().filter(|path| back.contains(path)).count() as u32
}

/// Tenths for the items of a message: for the first, and for each by its kind.
fn lists(message: &Values, first: i32, each: [i32; 4]) -> i32 {
    let all: i32 = message.items.iter().zip(each).map(|(&count, tenths)| count as i32 * tenths).sum();
    if message.all_items() > 0 { all + first } else { 0 }
}

/// A function around a client's. What comes back is stored where a pointer says, and so is what goes both ways; a result is returned. The more there is to
/// send, the fewer registers are left for pointers. The buffers of a server that calls are kept while an item may come back: those of several in a loop.
fn client(there: &Values, back: &Values, both: &Both) -> u32 {
    let values = [
        (1, 179),
        (there.small, 29),
        (there.long, 15),
        (there.wide, 40),
        (there.truths, 29),
        (there.enums, 40),
        (there.structs + back.structs, 19),
        (there.words + back.words, 19),
        (there.further, -10),
        (there.all().saturating_sub(3), 7),
        (there.all().saturating_sub(7), 2),
        (back.small, 27),
        (back.long, 28),
        (back.wide, 50),
        (back.truths, 63),
        (back.enums, 49),
        (back.early_wide, 19),
        (back.early_structs, -21),
        (back.returned, -21),
        (there.bounded, -20),
        (if back.all_items() > 1 { back.all_items() } else { 0 }, 224),
        (both.values, 10),
        (both.items, -17),
    ];
    sum(&values, lists(there, 0, [81, 83, 81, 93]) + lists(back, -71, [341, 366, 371, 413]))
}

/// A server with its methods in it. Results are constants there, so each is little more than the instruction that puts it into the message. For many arguments
/// there are not enough registers: of what is kept until all is checked, and beside the address of a struct that comes back.
fn server(there: &Values, back: &Values, both: &Both) -> u32 {
    let values = [
        (1, 103),
        (there.small, 10),
        (there.long, 12),
        (there.wide, 47),
        (there.early_wide, 17),
        (there.truths, 41),
        (there.enums, 29),
        (there.structs, 10),
        (there.words, 29),
        (there.early_structs, -28),
        (there.held.saturating_sub(3), 13),
        (there.all().saturating_sub(5), 5),
        (there.registers.saturating_sub(2), -4),
        (if there.all_items() > 0 { there.all() } else { 0 }, -6),
        (u32::from(back.all() > 0), 8),
        (back.narrow(), 8),
        (back.wide, 18),
        (back.structs, 43),
        (back.structs.saturating_sub(1), 44),
        (u32::from(back.structs > 0) * there.all().saturating_sub(3), 5),
        (both.values, 1),
        (both.items, -5),
    ];
    sum(&values, lists(there, -30, [78, 118, 120, 189]) + lists(back, 39, [19, 16, 12, 14]))
}
