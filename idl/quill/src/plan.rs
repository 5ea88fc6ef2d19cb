//! Marshalling plans: the steps by which a message is made and read, one list for all languages.
//!
//! The [layout](crate::layout) says where each value lies. A plan adds whatever would have to be searched for or added up
//! there: the list that a count, a tail or an offer belongs to; how a part in memory begins; the words that describe a string
//! or a reference; and the place of a list that its maker has to copy. Emitters print the steps. The order of the groups of
//! steps is the emitter's, because machine code is better with one or another; within a group it is the plan's.

use crate::layout::{Carrier, Chunk, Handed, Leaf, Message, Place, Slot};
use crate::model::{Model, Type, TypeId};
use crate::sizes::Sizes;

pub use table::{Kind, Stands, kinds, place, places};

mod table;

/// Words of memory in which a message is made, at most: they lie on a stack.
pub const KEPT_WORDS_MAX: u64 = 4096;

/// The steps of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan<'m> {
    /// Values of the fixed part, by number.
    pub fixed: Vec<Step<'m>>,
    /// Content of the variable part, by number.
    pub variable: Vec<Variable<'m>>,
    /// How the part in memory begins.
    pub memory: Memory,
    /// Parameters that are described in memory, since they are handed over.
    pub items: Vec<Item<'m>>,
    /// Words of memory in which the message is made.
    pub words: u64,
}

/// A step for a value of the fixed part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<'m> {
    /// Its number.
    pub number: usize,
    /// The parameter, and the fields below it.
    pub path: &'m [String],
    /// Its type, or that of the list to which it belongs.
    pub ty: TypeId,
    /// Where it lies.
    pub place: Place,
    /// How many bytes it has.
    pub bytes: u64,
    /// Its content.
    pub what: What,
}

/// Content of a value of the fixed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A value.
    Value,
    /// The number of elements of a list: of that one in the variable part, or of one in the fixed part.
    Count(Option<usize>),
    /// The elements of a list, of so many bytes each; the step has their number. An array has none.
    Elements(u64, Option<usize>),
    /// The last bytes of that list in the variable part.
    Tail(usize),
    /// The number of the offer that may stand for the bytes of a list: how many offers precede it, and the most elements
    /// of the list.
    Offer(usize, u64),
}

/// A step for something in the variable part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable<'m> {
    /// Its number.
    pub number: usize,
    /// The layout's chunk: path, type, bound.
    pub chunk: &'m Chunk,
    /// Its content.
    pub content: Content,
    /// The step with the number of its elements.
    pub count: Option<usize>,
    /// The step with its last bytes.
    pub tail: Option<usize>,
    /// The string as which it travels: its number, and the first of two words that describe it.
    pub string: Option<(u32, Word)>,
    /// The word from which on its maker has a copy of it.
    pub kept: Option<u64>,
}

/// Content of the variable part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A text of at most so many characters.
    Text(Option<u64>),
    /// Elements of that type, each of the same size.
    List(TypeId),
    /// An array.
    Array,
    /// A value that is written piece by piece.
    Pieces,
}

/// How the part in memory begins of a message that is another kind of message if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// It has none.
    None,
    /// All of it is one list, from where that lies.
    List,
    /// It is made of words, and of descriptors.
    Block(Block),
}

/// A part in memory that is made of words, and of descriptors behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Words of the fixed part.
    pub fixed: u64,
    /// The word at which that ends which is written piece by piece behind them, if there is something.
    pub pieces_end: Option<u64>,
    /// How many strings are described.
    pub strings: u64,
    /// How many parameters are described because they are handed over.
    pub items: u64,
    /// The most references within what is written piece by piece.
    pub within: u64,
}

/// A word of a part in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// That one.
    At(u64),
    /// The one so many words behind all that is written piece by piece.
    Behind(u64),
}

/// A parameter that is handed over, and the first of two words that describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'m> {
    /// The parameter.
    pub handed: &'m Handed,
    /// The first word.
    pub at: Word,
}

impl<'m> Plan<'m> {
    /// The steps for who reads a message, or makes it of lists that stay where they lie.
    pub fn of(model: &Model, message: &'m Message) -> Plan<'m> {
        Plan::keeping(model, message, |_| false)
    }

    /// The steps for who makes a message and copies those lists.
    pub fn keeping(model: &Model, message: &'m Message, keeps: impl Fn(&Chunk) -> bool) -> Plan<'m> {
        let memory = Memory::of(message);
        let mut words = message.block_words();
        let described = |number| match memory {
            Memory::Block(block) => block.descriptor(number),
            Memory::None | Memory::List => Word::At(2 * number),
        };
        let variable = message.chunks.iter().enumerate().map(|(number, chunk)| {
            let kept = chunk.bytes_max().filter(|_| keeps(chunk)).map(|bytes| {
                let begin = words;
                words = words.saturating_add(bytes.div_ceil(8));
                begin
            });
            let string = match chunk.carrier {
                Carrier::String(string) => Some((string, described(string.into()))),
                Carrier::Behind | Carrier::Direct => None,
            };
            Variable {
                number,
                chunk,
                content: Content::of(model, chunk),
                count: step_of(message, chunk, |leaf| matches!(leaf, Leaf::Count(_))),
                tail: step_of(message, chunk, |leaf| matches!(leaf, Leaf::Tail(_))),
                string,
                kept,
            }
        });
        let variable = variable.collect();
        let first = message.strings().count() as u64;
        let items = message.handed().filter(|_| message.long).zip(first..);
        let items = items.map(|(handed, number)| Item { handed, at: described(number) }).collect();
        let fixed = message.slots.iter().enumerate();
        let fixed = fixed.map(|(number, slot)| Step::of(message, number, slot)).collect();
        Plan { fixed, variable, memory, items, words }
    }

    /// The lists and arrays of the variable part.
    pub fn lists(&self) -> impl Iterator<Item = &Variable<'m>> {
        self.variable.iter().filter(|variable| variable.content != Content::Pieces)
    }

    /// Values that are written piece by piece.
    pub fn pieces(&self) -> impl Iterator<Item = &Variable<'m>> {
        self.variable.iter().filter(|variable| variable.content == Content::Pieces)
    }

    /// The steps for offers, with the most elements that each list has.
    pub fn offers(&self) -> impl Iterator<Item = (&Step<'m>, u64)> {
        self.fixed.iter().filter_map(|step| match step.what {
            What::Offer(_, most) => Some((step, most)),
            _ => None,
        })
    }

    /// The part in memory that is made of words, if there is one.
    pub fn block(&self) -> Option<Block> {
        if let Memory::Block(block) = self.memory { Some(block) } else { None }
    }
}

/// The number of the step with that leaf of a list.
fn step_of(message: &Message, list: &Chunk, is_it: impl Fn(&Leaf) -> bool) -> Option<usize> {
    message.slots.iter().position(|slot| slot.path == list.path && is_it(&slot.leaf))
}

impl<'m> Step<'m> {
    /// Where it lies in memory.
    pub fn offset(&self) -> u64 {
        if let Place::Memory(at) = self.place { at } else { 0 }
    }

    fn of(message: &Message, number: usize, slot: &'m Slot) -> Step<'m> {
        let list = || message.chunks.iter().position(|chunk| chunk.path == slot.path);
        let (ty, what) = match slot.leaf {
            Leaf::Value(ty) => (ty, What::Value),
            Leaf::Count(ty) => (ty, What::Count(list())),
            Leaf::Elements(ty, element) => {
                let is_count = |of: &Slot| matches!(of.leaf, Leaf::Count(_)) && of.path == slot.path;
                (ty, What::Elements(element.size, message.slots.iter().position(is_count)))
            }
            Leaf::Tail(ty) => (ty, What::Tail(list().unwrap_or(0))),
            Leaf::Offer(ty) => {
                let before = message.slots[..number].iter().filter(|of| matches!(of.leaf, Leaf::Offer(_)));
                let most = list().and_then(|list| message.chunks[list].bound).unwrap_or(0);
                (ty, What::Offer(before.count(), most))
            }
        };
        Step { number, path: &slot.path, ty, place: slot.place, bytes: slot.fixed.size, what }
    }
}

impl Variable<'_> {
    /// Bytes of an element.
    pub fn element(&self) -> u64 {
        self.chunk.element.map_or(1, |element| element.size)
    }

    /// The most elements, where each list has a bound.
    pub fn most(&self) -> u64 {
        self.chunk.bound.unwrap_or(0)
    }
}

impl Content {
    fn of(model: &Model, chunk: &Chunk) -> Content {
        match (model.ty(model.resolved(chunk.ty)), chunk.element) {
            (_, None) => Content::Pieces,
            (Type::Str { bound, .. }, _) => Content::Text(*bound),
            (Type::Sequence(of, _), _) => Content::List(*of),
            _ => Content::Array,
        }
    }
}

impl Memory {
    fn of(message: &Message) -> Memory {
        if !message.long {
            return Memory::None;
        }
        if message.chunks.iter().any(|chunk| chunk.carrier == Carrier::Direct) {
            return Memory::List;
        }
        let has_pieces = message.streams().next().is_some();
        Memory::Block(Block {
            fixed: message.memory_bytes / 8,
            pieces_end: has_pieces.then_some((message.memory_bytes + message.stream_bytes) / 8),
            strings: message.strings().count() as u64,
            items: message.handed().count() as u64,
            within: message.references_within(),
        })
    }
}

impl Block {
    /// The first word of the descriptor of that number.
    fn descriptor(&self, number: u64) -> Word {
        match self.pieces_end {
            Some(_) => Word::Behind(2 * number),
            None => Word::At(self.fixed + 2 * number),
        }
    }

    /// The first word that describes what is handed over.
    pub fn items_at(&self) -> Word {
        self.descriptor(self.strings)
    }

    /// The first word that describes references within what is written piece by piece.
    pub fn within_at(&self) -> Word {
        self.descriptor(self.strings + self.items)
    }
}

impl Word {
    /// The word behind it.
    pub fn next(self) -> Word {
        match self {
            Word::At(word) => Word::At(word + 1),
            Word::Behind(words) => Word::Behind(words + 1),
        }
    }
}

/// Words of memory in which a message is made whose maker copies those lists.
pub fn words(message: &Message, keeps: impl Fn(&Chunk) -> bool) -> u64 {
    let kept = message.chunks.iter().filter(|chunk| keeps(chunk)).filter_map(Chunk::bytes_max);
    kept.fold(message.block_words(), |sum, bytes| sum.saturating_add(bytes.div_ceil(8)))
}

/// Whether a request has a text in memory. Most texts are ASCII, so a server looks for that first, and calls nothing to do so.
pub fn looks_twice(model: &Model, request: &Message) -> bool {
    request.chunks.iter().any(|chunk| matches!(Content::of(model, chunk), Content::Text(_)))
}

/// The refusal of a message with a list that is used as it lies, although not every bit pattern is a value of its elements.
pub fn refusal(model: &Model, sizes: &Sizes, message: &Message) -> Option<String> {
    let is_mixed = |list: &&Chunk| match model.ty(model.resolved(list.ty)) {
        Type::Sequence(of, _) | Type::Array(of, _) => list.element.is_some() && !sizes.flat(*of),
        _ => false,
    };
    let path = message.chunks.iter().find(is_mixed)?.path.join(".");
    Some(format!(
        "`{path}` is used as it lies in memory, but not every bit pattern is a value of its elements"
    ))
}

#[cfg(test)]
mod tests;
