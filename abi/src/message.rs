//! Messages with a part in memory (rows P2, P3).
//!
//! A *block* is memory of the user that describes such a message; its [`Dope`] says how long each of its parts is:
//!
//! ```text
//! block    direct words        8 bytes each
//!          string descriptors  16 bytes each: address; length in the low half, capacity in the high half
//!          item descriptors    16 bytes each: flexpage; hot spot
//! ```
//!
//! A block to receive into has the same shape: room for words, strings' buffers with their capacities, and as flexpages
//! the windows for items. The kernel writes the message into it: words, the strings' lengths, where the items arrived. With
//! the dope that the kernel returns it can be sent on as it is, or received into again.

/// Lengths of the parts of a block: how much is used, and how much room there is.
///
/// ```text
/// bits  0–11  words used      bits 32–43  room for words
/// bits 12–19  strings used    bits 44–51  room for strings
/// bits 20–27  items used      bits 52–59  room for items
/// ```
///
/// All other bits are zero. A part begins where the room of the part before it ends, or its used length, if that is greater.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Dope(pub u64);

const USED: u64 = 0x0fff_ffff;

impl Dope {
    /// A message without a block.
    pub const NONE: Dope = Dope(0);
    /// Number of direct words, at most.
    pub const WORDS_MAX: u64 = 4095;
    /// Number of strings, and of items, at most.
    pub const PARTS_MAX: u64 = 255;

    /// Size of the largest block, in bytes, or more.
    pub const SIZE_MAX: u64 = 1 << 16;

    /// Lengths of a message to be sent; each number is cut to its limit.
    pub const fn used(words: u64, strings: u64, items: u64) -> Dope {
        Dope(words & Dope::WORDS_MAX | (strings & Dope::PARTS_MAX) << 12 | (items & Dope::PARTS_MAX) << 20)
    }

    /// Room for a message to be received.
    pub const fn room(words: u64, strings: u64, items: u64) -> Dope {
        Dope(Dope::used(words, strings, items).0 << 32)
    }

    /// This room, of which `used` is used.
    pub const fn with_used(self, used: Dope) -> Dope {
        Dope(self.0 & !USED | used.0 & USED)
    }

    /// The room of this dope, as lengths that are used.
    pub const fn room_as_used(self) -> Dope {
        Dope(self.0 >> 32 & USED)
    }

    /// Number of direct words used.
    pub const fn words(self) -> u64 {
        self.0 & Dope::WORDS_MAX
    }

    /// Number of strings used.
    pub const fn strings(self) -> u64 {
        self.0 >> 12 & Dope::PARTS_MAX
    }

    /// Number of items used.
    pub const fn items(self) -> u64 {
        self.0 >> 20 & Dope::PARTS_MAX
    }

    /// Whether all reserved bits are zero.
    pub const fn is_valid(self) -> bool {
        self.0 & !(USED | USED << 32) == 0
    }

    /// Whether a message is nothing but words and strings, and the bits of its used part that are reserved are zero.
    pub const fn is_words_and_strings(self) -> bool {
        self.0 & 0xfff0_0000 == 0
    }

    /// Offset of the string descriptors in the block, in bytes.
    pub const fn strings_offset(self) -> u64 {
        8 * larger(self.words(), self.room_as_used().words())
    }

    /// Offset of the item descriptors in the block, in bytes.
    pub const fn items_offset(self) -> u64 {
        self.strings_offset() + 16 * larger(self.strings(), self.room_as_used().strings())
    }

    /// Bytes from the start of the block to the end of its used part.
    pub const fn used_size(self) -> u64 {
        if self.items() > 0 {
            self.items_offset() + 16 * self.items()
        } else if self.strings() > 0 {
            self.strings_offset() + 16 * self.strings()
        } else {
            8 * self.words()
        }
    }

    /// Size of the block, in bytes.
    pub const fn size(self) -> u64 {
        self.items_offset() + 16 * larger(self.items(), self.room_as_used().items())
    }
}

const fn larger(a: u64, b: u64) -> u64 {
    if a > b { a } else { b }
}

const _: () = assert!(Dope::used(u64::MAX, u64::MAX, u64::MAX).size() <= Dope::SIZE_MAX);

impl core::fmt::Debug for Dope {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let room = self.room_as_used();
        write!(f, "words {}/{}", self.words(), room.words())?;
        write!(f, " strings {}/{}", self.strings(), room.strings())?;
        write!(f, " items {}/{}", self.items(), room.items())
    }
}

/// A string descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct StringPart {
    /// Address of the string or its buffer.
    pub address: u64,
    /// Bytes to send, or bytes that arrived; at most [`StringPart::MAX`].
    pub len: u32,
    /// Bytes that fit into the buffer.
    pub capacity: u32,
}

impl StringPart {
    /// Longest string, in bytes.
    pub const MAX: u32 = 4 << 20;

    /// A string to send.
    pub const fn send(address: u64, len: u32) -> StringPart {
        StringPart { address, len, capacity: 0 }
    }

    /// A buffer to receive into.
    pub const fn room(address: u64, capacity: u32) -> StringPart {
        StringPart { address, len: 0, capacity }
    }

    /// The descriptor as it lies in memory.
    pub const fn from_words([address, sizes]: [u64; 2]) -> StringPart {
        StringPart { address, len: sizes as u32, capacity: (sizes >> 32) as u32 }
    }

    /// The second word of the descriptor.
    pub const fn sizes(self) -> u64 {
        (self.capacity as u64) << 32 | self.len as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_received_dope_keeps_its_room() {
        let room = Dope::room(100, 3, 2);
        let got = room.with_used(Dope::used(7, 1, 0));
        assert_eq!((got.words(), got.strings(), got.items()), (7, 1, 0));
        assert_eq!((got.strings_offset(), got.items_offset(), got.size()), (800, 848, 880));
        // Room behind what is used does not count, room in front of it does.
        assert_eq!((got.used_size(), room.used_size()), (816, 0));
        assert_eq!(room.with_used(Dope::used(7, 0, 0)).used_size(), 56);
        assert_eq!(room.with_used(Dope::used(0, 0, 1)).used_size(), 864);
        assert!(got.is_valid() && got.room_as_used() == Dope::used(100, 3, 2));
        assert!(!Dope(1 << 28).is_valid() && !Dope(1 << 63).is_valid());
    }
}
