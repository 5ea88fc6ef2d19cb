//! Flexpages: the unit in which memory, I/O ports, interrupts and doors are handed on (rows C2, C4, C6, D2).
//!
//! ```text
//!  63                     12 11  10 9        4 3     0
//! +-------------------------+------+----------+-------+
//! |          base           | space| log2size | GXWR  |
//! +-------------------------+------+----------+-------+
//! ```
//!
//! For memory the base is an address (its low 12 bits are zero) and the size counts bytes. For ports, interrupts and door
//! identifiers the base field is the first number, shifted left by 12, and the size counts ports, lines or identifiers.

use crate::call::DOORS_LOG2;

/// Space of a task in which a flexpage lies, one of four.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Space {
    /// Pages of memory.
    Memory = 0,
    /// Single x86 I/O ports; a port maps only to itself.
    Port = 1,
    /// Interrupt lines; a line maps only to itself.
    Interrupt = 2,
    /// Door identifiers. The receiver's number is its own choice, as an address is. [`Rights::R`] is the right to call,
    /// [`Rights::W`] the right to hand on.
    Door = 3,
}

/// Access rights, and in a map item the wish to grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Rights(pub u8);

impl Rights {
    /// No right.
    pub const NONE: Rights = Rights(0);
    /// Read.
    pub const R: Rights = Rights(1);
    /// Write (on this processor it implies read).
    pub const W: Rights = Rights(2);
    /// Execute.
    pub const X: Rights = Rights(4);
    /// Read and write.
    pub const RW: Rights = Rights(3);
    /// Read and execute.
    pub const RX: Rights = Rights(5);
    /// All access rights.
    pub const RWX: Rights = Rights(7);
    /// Wish in a map item: hand the page over instead of sharing it.
    pub const GRANT: Rights = Rights(8);

    /// The rights in both.
    pub const fn and(self, other: Rights) -> Rights {
        Rights(self.0 & other.0)
    }

    /// The rights in either.
    pub const fn or(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }

    /// The rights in `self` that `other` lacks.
    pub const fn without(self, other: Rights) -> Rights {
        Rights(self.0 & !other.0)
    }

    /// Whether `self` includes all of `other`.
    pub const fn has(self, other: Rights) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A flexpage as it travels in a register.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Fpage(pub u64);

impl Fpage {
    /// The empty flexpage: a window that accepts nothing.
    pub const NIL: Fpage = Fpage(0);
    /// Log2 of the whole user half of the address space.
    pub const WHOLE_LOG2: u32 = 47;
    /// The whole user half, all rights: a window that accepts anything anywhere.
    pub const WHOLE: Fpage = Fpage::memory(0, Fpage::WHOLE_LOG2, Rights::RWX);

    /// A flexpage of memory of `1 << log2` bytes. Base bits below the size are cleared.
    pub const fn memory(base: u64, log2: u32, rights: Rights) -> Fpage {
        Fpage::new(Space::Memory, base & !((1 << log2) - 1), log2, rights)
    }

    /// `1 << log2` I/O ports from `first` on.
    pub const fn ports(first: u16, log2: u32) -> Fpage {
        Fpage::new(Space::Port, (first as u64 & !((1 << log2) - 1)) << 12, log2, Rights::RW)
    }

    /// One interrupt line.
    pub const fn interrupt(line: u8) -> Fpage {
        Fpage::new(Space::Interrupt, (line as u64) << 12, 0, Rights::RW)
    }

    /// All interrupt lines.
    pub const fn interrupts() -> Fpage {
        Fpage::new(Space::Interrupt, 0, 8, Rights::RW)
    }

    /// `1 << log2` door identifiers from `first` on.
    pub const fn doors(first: u32, log2: u32, rights: Rights) -> Fpage {
        Fpage::new(Space::Door, (first as u64 & !((1 << log2) - 1)) << 12, log2, rights)
    }

    const fn new(space: Space, base: u64, log2: u32, rights: Rights) -> Fpage {
        Fpage(base & !0xfff | (space as u64) << 10 | (log2 as u64) << 4 | rights.0 as u64)
    }

    /// The space in which it lies.
    pub const fn space(self) -> Space {
        // Memory, the most common case, by one test.
        if self.0 & 3 << 10 == 0 {
            return Space::Memory;
        }
        match self.0 >> 10 & 3 {
            1 => Space::Port,
            2 => Space::Interrupt,
            _ => Space::Door,
        }
    }

    /// Base address (memory) or first number shifted left by 12 (ports, interrupts, door identifiers).
    pub const fn base(self) -> u64 {
        self.0 & !0xfff
    }

    /// Log2 of the size in bytes (memory), ports, lines or identifiers.
    pub const fn log2(self) -> u32 {
        (self.0 >> 4 & 0x3f) as u32
    }

    /// The rights bits.
    pub const fn rights(self) -> Rights {
        Rights((self.0 & 0xf) as u8)
    }

    /// This region with other rights.
    pub const fn with_rights(self, rights: Rights) -> Fpage {
        Fpage(self.0 & !0xf | rights.0 as u64)
    }

    /// Whether this is one door identifier, whatever its rights.
    pub const fn is_identifier(self) -> bool {
        self.0 & Fpage::SPACE_AND_SIZE == Fpage::doors(0, 0, Rights::NONE).0
    }

    /// Whether it is [`Fpage::NIL`].
    pub const fn is_nil(self) -> bool {
        self.0 == 0
    }

    /// Mask of the bits that say in which space it lies, and how large it is.
    pub const SPACE_AND_SIZE: u64 = 0xff0;

    /// Checks alignment, size and range. Memory: 4 KiB to the whole user half, base aligned to the size;
    /// ports: at most 65,536; interrupts: at most 256; door identifiers: at most [`DOORS_MAX`](crate::call::DOORS_MAX).
    pub const fn is_valid(self) -> bool {
        const PAGE: u64 = 12 << 4;
        const MEMORY_MAX: u64 = (Fpage::WHOLE_LOG2 as u64) << 4;
        // Memory is the space 0, so its sizes are the smallest numbers; a page, the most common one, is aligned anyway.
        let kind = self.0 & Fpage::SPACE_AND_SIZE;
        if kind == PAGE {
            return self.0 >> Fpage::WHOLE_LOG2 == 0;
        }
        if kind >= PAGE && kind <= MEMORY_MAX {
            let within = self.base() & ((1 << self.log2()) - 1);
            return within | self.0 >> Fpage::WHOLE_LOG2 == 0;
        }
        let log2 = self.log2();
        match self.space() {
            Space::Memory => false,
            Space::Port => log2 <= 16 && self.fits(log2 + 12, 16 + 12),
            Space::Interrupt => log2 <= 8 && self.fits(log2 + 12, 8 + 12),
            Space::Door => log2 <= DOORS_LOG2 && self.fits(log2 + 12, DOORS_LOG2 + 12),
        }
    }

    /// Whether the base is aligned to `1 << size` and below `1 << limit`.
    const fn fits(self, size: u32, limit: u32) -> bool {
        let base = self.base();
        (base >> size) << size == base && base >> limit == 0
    }
}

impl core::fmt::Debug for Fpage {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let r = self.rights();
        let flag = |right, c| if r.has(right) { c } else { '-' };
        write!(
            f,
            "{:?} {:#x}+2^{} {}{}{}{}",
            self.space(),
            self.base(),
            self.log2(),
            flag(Rights::R, 'r'),
            flag(Rights::W, 'w'),
            flag(Rights::X, 'x'),
            flag(Rights::GRANT, 'g')
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity() {
        assert!(Fpage::WHOLE.is_valid());
        assert!(Fpage::memory(0x1000, 12, Rights::R).is_valid());
        assert!(!Fpage(0x1000 | 13 << 4).is_valid(), "misaligned");
        assert!(!Fpage(0x1000 | 11 << 4).is_valid(), "smaller than a page");
        assert!(!Fpage(1 << 47 | 12 << 4).is_valid(), "kernel half");
        assert!(!Fpage(48 << 4).is_valid(), "larger than the user half");
        assert!(Fpage::doors(0x1234, 2, Rights::RW).is_valid());
        assert!(!Fpage(0x1235 << 12 | 3 << 10 | 1 << 4).is_valid(), "misaligned");
        assert!(!Fpage(1 << (DOORS_LOG2 + 12) | 3 << 10).is_valid(), "identifier out of range");
        assert!(Fpage::ports(0x3f8, 3).is_valid());
        assert!(!Fpage(0x10000 << 12 | 1 << 10).is_valid(), "port out of range");
        assert!(Fpage::interrupt(255).is_valid());
        assert!(!Fpage(256 << 12 | 2 << 10).is_valid(), "line out of range");
    }
}
