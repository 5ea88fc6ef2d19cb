//! Kernel parts: everything that depends on what carries a message.
//!
//! A kernel part is a value that implements [`KernelPart`]. The layout asks it for its [`Shape`] and for labels. Its code, by language, is in
//! [`parts`](crate::parts), which joins it with an emitter. To add one, implement the trait and list it in [`ALL`]; a part without code for a language
//! has layouts and costs all the same.

use crate::marshal::{Lying, References};

/// What carries messages.
pub trait KernelPart: Sync {
    /// The name for `--kernel`.
    fn name(&self) -> &'static str;

    /// What a message can hold.
    fn shape(&self) -> Shape;

    /// The label of the request for a method, by the method's number and that of its interface.
    fn request_label(&self, number: u32, _interface: u16) -> u32 {
        number
    }

    /// The label of a reply that brings results. Exceptions have 1 and up, errors [`crate::layout::LABEL_ERROR`] and up.
    fn success_label(&self) -> u32 {
        0
    }

    /// Whether who serves an interface can be called as each of its bases ([`View`](crate::layout::View)).
    fn has_views(&self) -> bool {
        false
    }

    /// Whether a kernel can be told which caches a list may use ([`crate::hints`]).
    fn takes_cache_hints(&self) -> bool {
        false
    }

    /// Whether what several pointers of a message share (`ptr`) arrives once.
    fn keeps_shared(&self) -> bool {
        true
    }
}

/// What a message can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Message registers for the caller's use. All of them travel with every message, so using one costs nothing.
    pub registers: u32,
    /// How many of them, the first ones, a compiler can use like any other. Values share these before they use the rest.
    pub easy_registers: u32,
    /// How many of them a request has to which nothing comes back.
    pub oneway_registers: u32,
    /// Width of a message register.
    pub word_bytes: u32,
    /// Bytes that may follow in memory; 0 when nothing follows.
    pub memory_bytes_max: u64,
    /// Each register that travels has its cost, so values share them whenever they can.
    pub dense: bool,
    /// What follows in memory is an item for each block, with its own length: such a block leaves no count in the fixed
    /// part, and the fixed part has to be in registers. An item takes two of them.
    pub items: bool,
    /// How a message goes that is too long for registers, if it is then another kind of message.
    pub block: Option<Block>,
    /// How a message hands over pages, if it can.
    pub pages: Option<Pages>,
    /// How references to objects are sent.
    pub references: References,
    /// Whether a request may have the number of an offer of pages in the place of the pages' bytes.
    pub offers: bool,
    /// Nothing is optimised, to compare with: whatever may be in memory is there, each value by itself and in the interface's order, and
    /// lists are copied by who sends them and by who gets them.
    pub plain: bool,
    /// Where a label travels that costs no register, in words for a reader.
    pub label: &'static str,
}

impl Shape {
    /// Lists that receivers use as they lie.
    pub fn lying(&self) -> Lying {
        match (self.items, self.block) {
            (true, _) => Lying::All,
            (false, Some(_)) => Lying::Long,
            (false, None) => Lying::None,
        }
    }
}

/// A message with a part in memory, where that costs some of the registers.
///
/// The part in memory is words, in one piece, and strings, each of which lies where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The registers before this one describe the part in memory.
    pub first_register: u32,
    /// The registers from this one on have no value.
    pub registers: u32,
    /// As `registers`, if only those shall be used that a compiler can use like any other.
    pub easy_registers: u32,
    /// As `registers`, for a request to which nothing comes back.
    pub oneway_registers: u32,
    /// Most bytes of words.
    pub words_bytes_max: u64,
    /// Most strings.
    pub strings_max: u32,
    /// Most bytes of a string.
    pub string_bytes_max: u64,
    /// Most bytes of a string or sequence to which the interface sets no bound.
    pub unbounded_bytes: u64,
}

/// What is left of the registers in a call that hands pages over, in either direction. Nothing of it is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// In the message that hands them over.
    pub registers: u32,
    /// In the others.
    pub other_registers: u32,
}

/// Messages over Unix-domain stream sockets: no registers, up to 16 MiB in memory behind a header.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

impl KernelPart for Linux {
    fn name(&self) -> &'static str {
        "linux"
    }
    fn shape(&self) -> Shape {
        Shape {
            registers: 0,
            easy_registers: 0,
            oneway_registers: 0,
            word_bytes: 8,
            memory_bytes_max: 16 << 20,
            dense: false,
            items: false,
            block: None,
            pages: None,
            references: References::Words,
            offers: false,
            plain: false,
            label: "header",
        }
    }
}

/// Tern's ipc: eleven registers of 64 bits, and a label of 32 bits that costs none of them; or eight registers, words in
/// memory, and strings.
#[derive(Clone, Copy, Debug)]
pub struct TernIpc;

impl TernIpc {
    /// Dope and address of the block take two registers, and the last one is lost.
    pub const BLOCK: Option<Block> = Some(Block {
        first_register: 2,
        registers: 10,
        easy_registers: 8,
        oneway_registers: 8,
        // More would leave the kernel's fast path.
        words_bytes_max: 4096,
        strings_max: 255,
        string_bytes_max: 4 << 20,
        unbounded_bytes: 4096,
    });
}

impl KernelPart for TernIpc {
    fn name(&self) -> &'static str {
        "tern-ipc"
    }
    fn shape(&self) -> Shape {
        Shape {
            registers: 11,
            // rbx and rbp are the compiler's own, and reached only by way of others.
            easy_registers: 8,
            // A send alone is the general form, which needs three registers for itself.
            oneway_registers: 8,
            word_bytes: 8,
            memory_bytes_max: 0,
            dense: false,
            items: false,
            block: TernIpc::BLOCK,
            // The general form of ipc has eight, and a map item takes two of them.
            pages: Some(Pages { registers: 6, other_registers: 8 }),
            references: References::Words,
            offers: true,
            plain: false,
            label: "upper half of rax",
        }
    }
    /// The number's bits from the top down. A server finds a method's place in a table of 2^k entries with one shift, which
    /// is the bounds check, too; and a longer table of a derived interface still has the base's methods under their labels.
    /// The lower half is the interface's, for a thread that serves several: two thousand methods leave it free.
    fn request_label(&self, number: u32, interface: u16) -> u32 {
        number.reverse_bits() | u32::from(interface)
    }
    /// All ones: with the kind of a plain reply below it, a client's whole check is one compare with -1.
    fn success_label(&self) -> u32 {
        u32::MAX
    }
}

/// Calls through Tern's doors: the messages of [`TernIpc`], to an object instead of a thread.
#[derive(Clone, Copy, Debug)]
pub struct TernDoor;

impl KernelPart for TernDoor {
    fn name(&self) -> &'static str {
        "tern-door"
    }
    fn shape(&self) -> Shape {
        Shape { references: References::Handed, ..TernIpc.shape() }
    }
    fn has_views(&self) -> bool {
        true
    }
    fn request_label(&self, number: u32, interface: u16) -> u32 {
        TernIpc.request_label(number, interface)
    }
    fn success_label(&self) -> u32 {
        TernIpc.success_label()
    }
}

/// Calls through Tern's doors as a compiler makes them that optimises nothing. It is there to be measured beside [`TernDoor`]: programs
/// have the same interfaces, methods and objects, and other messages.
#[derive(Clone, Copy, Debug)]
pub struct TernDoorPlain;

impl KernelPart for TernDoorPlain {
    fn name(&self) -> &'static str {
        "tern-door-plain"
    }
    fn shape(&self) -> Shape {
        Shape { plain: true, offers: false, ..TernDoor.shape() }
    }
    fn has_views(&self) -> bool {
        TernDoor.has_views()
    }
    fn request_label(&self, number: u32, interface: u16) -> u32 {
        TernDoor.request_label(number, interface)
    }
    fn success_label(&self) -> u32 {
        TernDoor.success_label()
    }
}

/// L4's V4 API (X.2) on x86: 63 message registers behind the tag, which holds the label, and items that the kernel copies
/// from memory to memory. The registers are counted in units of 32 bits, so that a message is the same sequence of bytes
/// on processors of 32 and of 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct L4V4;

impl KernelPart for L4V4 {
    fn name(&self) -> &'static str {
        "l4-v4"
    }
    fn shape(&self) -> Shape {
        Shape {
            registers: 63,
            easy_registers: 63,
            oneway_registers: 63,
            word_bytes: 4,
            // The length of an item has 22 bits.
            memory_bytes_max: (4 << 20) - 1,
            dense: true,
            items: true,
            block: None,
            pages: None,
            references: References::Words,
            offers: false,
            plain: false,
            label: "tag",
        }
    }
    fn takes_cache_hints(&self) -> bool {
        true
    }
    fn keeps_shared(&self) -> bool {
        false
    }
    /// The number's bits from the top down, as over Tern's ipc: the tag's label has 16 bits.
    fn request_label(&self, number: u32, _: u16) -> u32 {
        number.reverse_bits() >> 16
    }
}

/// How many of a label's first bits select a method of Tern's ipc: as many as a table of a power of two places needs, and
/// one at least, because a shift by all bits is none.
pub fn table_bits(methods: usize) -> u32 {
    (usize::BITS - methods.saturating_sub(1).leading_zeros()).max(1)
}

/// All kernel parts.
pub const ALL: [&dyn KernelPart; 5] = [&Linux, &TernIpc, &TernDoor, &TernDoorPlain, &L4V4];

/// The kernel part of that name.
pub fn find(name: &str) -> Option<&'static dyn KernelPart> {
    ALL.into_iter().find(|k| k.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dispatch by a shift: every label of a method is a place of its own, in the table of its interface and in the longer
    /// tables of interfaces that inherit from it.
    #[test]
    fn every_method_has_a_place_in_each_table_that_is_long_enough() {
        for methods in [1usize, 2, 3, 5, 8, 9, 100] {
            for bits in table_bits(methods)..=12 {
                let place = |number: usize| TernIpc.request_label(number as u32, u16::MAX) >> (32 - bits);
                let mut places: Vec<u32> = (0..methods).map(place).collect();
                places.sort_unstable();
                places.dedup();
                assert_eq!(places.len(), methods, "{methods} methods in 2^{bits} places");
                assert!(places.iter().all(|&place| place < 1 << bits));
            }
        }
    }

    #[test]
    fn tables_are_no_longer_than_they_must_be() {
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 9].map(table_bits), [1, 1, 1, 2, 2, 3, 3, 4]);
    }
}
