//! Things in a message that take instructions.

use std::collections::{BTreeMap, BTreeSet};

use crate::layout::{Carrier, Chunk, Leaf, Message, Place, Slot};
use crate::model::{Model, Shown, Type, TypeId};
use crate::sizes::Sizes;

/// Things in a message that take instructions.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Registers, up to the last that is used.
    pub registers: u32,
    /// Registers that hold values.
    pub words: u32,
    pub truths: u32,
    pub enums: u32,
    /// Structs in one register, and registers of longer ones.
    pub small_structs: u32,
    pub struct_words: u32,
    /// Registers with two numbers of 32 bits each, which a compiler may treat as one of 64.
    pub pairs: u32,
    /// Values in other registers beside one that is there already.
    pub further: u32,
    /// Lists, each where it lies.
    pub lists: Vec<List>,
}

/// A list that goes from where it lies.
#[derive(Clone, Debug)]
pub(super) struct List {
    /// The parameter, and the fields below it.
    pub path: String,
    pub what: What,
    /// Whether it is one of several strings, rather than the words of the message.
    pub is_string: bool,
}

/// Kind of a list, as far as stubs treat it in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Text that ends with a zero in C.
    Text,
    /// Elements of one byte.
    Bytes,
    /// Elements of two or four bytes.
    Parts,
    /// Elements of eight bytes, or of another power of two above that.
    Words,
    /// Elements of other sizes, by which a stub multiplies and divides.
    Others,
}

impl Counts {
    /// Fails with a reason if there is something that nobody has counted.
    pub fn new(model: &Model, message: &Message) -> Result<Counts, String> {
        let sizes = Sizes::new(model);
        let mut counts = Counts { registers: message.registers, ..Counts::default() };
        let mut shared: BTreeMap<u32, (u32, bool)> = BTreeMap::new();
        let mut words = BTreeSet::new();
        for slot in &message.slots {
            if let Some((word, is_number)) = counts.value(model, &sizes, slot)? {
                let register = shared.entry(word).or_insert((0, true));
                *register = (register.0 + 1, register.1 && is_number);
                words.extend(word..word + slot.fixed.size.div_ceil(8) as u32);
            }
        }
        counts.words = words.len() as u32;
        for (values, numbers) in shared.into_values() {
            match (values, numbers) {
                (2, true) => counts.pairs += 1,
                (values, _) => counts.further += values - 1,
            }
        }
        counts.lists =
            message.chunks.iter().map(|chunk| List::new(model, &sizes, chunk)).collect::<Result<_, _>>()?;
        Ok(counts)
    }

    /// Counts a value; says which register it begins in, and whether it is a number of 32 bits.
    fn value(&mut self, model: &Model, sizes: &Sizes, slot: &Slot) -> Result<Option<(u32, bool)>, String> {
        let path = slot.path.join(".");
        let Place::Register(word, _) = slot.place else {
            return Err(format!("`{path}` and others lie in memory, and no such stubs have been counted"));
        };
        let ty = match slot.leaf {
            Leaf::Value(ty) => ty,
            Leaf::Count(_) | Leaf::Tail(_) => return Ok(None),
            Leaf::Elements(..) => {
                return Err(format!(
                    "`{path}` lies in registers: how a library copies it there is not known"
                ));
            }
            Leaf::Offer(_) => return Err(format!("`{path}` may be offered as pages instead of bytes")),
        };
        let mut is_number = slot.fixed.size == 4;
        match model.ty(model.resolved(ty)) {
            Type::Bool => self.truths += 1,
            Type::Enum(..) => {
                self.enums += 1;
                is_number = false;
            }
            Type::Octet | Type::Char | Type::Int { .. } | Type::Bitmask(..) => {}
            Type::Struct(..) | Type::Array(..) if sizes.flat(ty) && slot.fixed.size <= 8 => {
                self.small_structs += 1
            }
            Type::Struct(..) | Type::Array(..) if sizes.flat(ty) => {
                self.struct_words += slot.fixed.size.div_ceil(8) as u32;
            }
            _ => return Err(format!("no stubs with values of the type of `{path}` have been counted")),
        }
        Ok(Some((word, is_number)))
    }
}

impl List {
    fn new(model: &Model, sizes: &Sizes, chunk: &Chunk) -> Result<List, String> {
        let path = chunk.path.join(".");
        let Some(element) = chunk.element else {
            return Err(format!("`{path}` is read piece by piece, so it depends on each element"));
        };
        let is_string = match chunk.carrier {
            Carrier::Direct => false,
            Carrier::String(_) => true,
            Carrier::Behind => return Err(format!("`{path}` is copied by a library that is not known")),
        };
        Ok(List { what: What::new(model, sizes, chunk, element.size)?, path, is_string })
    }
}

impl What {
    /// Kind of a list whose elements have so many bytes. Fails with a reason if nobody has counted such lists.
    pub fn new(model: &Model, sizes: &Sizes, chunk: &Chunk, element: u64) -> Result<What, String> {
        let path = chunk.path.join(".");
        let is_flat = |of: TypeId| sizes.flat(of);
        Ok(match model.ty(model.resolved(chunk.ty)) {
            Type::Str { wide: true, .. } => return Err(format!("`{path}` is of wide characters")),
            Type::Str { shown: Shown::Terminated, .. } => What::Text,
            Type::Str { .. } => {
                return Err(format!("`{path}` is a counted text, and nobody has counted such stubs"));
            }
            Type::Sequence(of, _) if is_flat(*of) => match element {
                1 => What::Bytes,
                2 | 4 => What::Parts,
                size if size.is_power_of_two() => What::Words,
                _ => What::Others,
            },
            _ => return Err(format!("each element of `{path}` is looked at")),
        })
    }
}
