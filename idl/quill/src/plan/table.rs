//! Tables in which a server finds the method for a request, by the first bits of its label.

use crate::layout::{InterfaceLayout, Method};

/// Kind of a request: its content besides words. A table has a part for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// A part in memory.
    pub long: bool,
    /// Something that is handed over.
    pub item: bool,
}

impl Kind {
    /// Nothing.
    pub const WORDS: Kind = Kind { long: false, item: false };
    /// A part in memory.
    pub const LONG: Kind = Kind { long: true, item: false };
    /// Something that is handed over.
    pub const ITEM: Kind = Kind { long: false, item: true };
    /// Both.
    pub const LONG_ITEM: Kind = Kind { long: true, item: true };

    /// Whether requests of a method are of this kind. One may be of either, if it has references within values and those may
    /// be none.
    pub fn has(self, method: &Method) -> bool {
        let request = &method.request;
        match self {
            Kind::LONG_ITEM => request.hands_from_memory(),
            Kind { long, item } => request.long == long && request.pages.is_some() == item,
        }
    }
}

/// The kinds for which the table of an interface has a part, in order.
pub fn kinds(layout: &InterfaceLayout) -> impl Iterator<Item = Kind> {
    let any = |is_it: &dyn Fn(&Method) -> bool| layout.methods.iter().any(is_it);
    let has = move |kind: &Kind| match *kind {
        Kind::WORDS => true,
        Kind::LONG => any(&|method| method.request.long),
        kind => any(&|method| kind.has(method)),
    };
    [Kind::WORDS, Kind::LONG, Kind::ITEM, Kind::LONG_ITEM].into_iter().filter(has)
}

/// Content of a place of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// A method.
    Method(u32),
    /// A method whose requests are of another kind.
    Mismatch,
    /// No method.
    Nothing,
}

/// The place of a method in a table with 2^`bits` of them, by its number; or the number of the method in a place.
pub fn place(number: u32, bits: u32) -> u32 {
    number.reverse_bits() >> (32 - bits)
}

/// The part of a table that is for requests of a kind: 2^`bits` places. The method with a number is the one that `method_at` says.
pub fn places(
    methods: &[Method],
    kind: Kind,
    bits: u32,
    method_at: impl Fn(u32) -> Option<u32>,
) -> impl Iterator<Item = Stands> {
    (0..1u32 << bits).map(move |at| {
        let method = method_at(place(at, bits));
        let found = method.and_then(|number| Some((number, methods.get(number as usize)?)));
        match found {
            Some((number, method)) if kind.has(method) => Stands::Method(number),
            Some(_) => Stands::Mismatch,
            None => Stands::Nothing,
        }
    })
}
