//! Interrupts as messages: a function writes a word to an address instead of asserting a line. PCI Local Bus Specification 3.0, section 6.8.
//!
//! A function with MSI keeps its message in its configuration space. One with MSI-X has a table of messages in its memory, and a driver tells
//! it which of them to send for what.

use crate::{Address, Bar, Configuration, capabilities};
use alloc::vec::Vec;

const MSI: u8 = 0x05;
const MSIX: u8 = 0x11;

/// Bits of the control half of the first word of MSI's capability.
mod msi {
    pub const ENABLED: u32 = 1 << 16;
    /// Log2 of the number of messages that the function sends: 0 for one.
    pub const COUNT: u32 = 0b111 << 20;
    pub const IS_WIDE: u32 = 1 << 23;
    pub const HAS_MASKS: u32 = 1 << 24;
}

/// Bits of the control half of the first word of MSI-X's capability.
mod msix {
    pub const LAST: u32 = 0x7ff << 16;
    pub const ALL_MASKED: u32 = 1 << 30;
    pub const ENABLED: u32 = 1 << 31;
    /// Of the second word: number of the base address register that leads to the table. The rest is the table's offset.
    pub const REGISTER: u32 = 0b111;
}

/// Bytes of an entry in a table.
pub const ENTRY_BYTES: u64 = 16;

/// The way in which a function sends messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Messages {
    /// MSI: one message.
    One {
        /// Offset of the capability.
        at: u8,
    },
    /// MSI-X: a table of them.
    Table {
        /// Offset of the capability.
        at: u8,
        /// Base address register that leads to it.
        bar: u8,
        /// Its offset there.
        offset: u64,
        /// Entries, at least 1.
        count: u16,
    },
}

impl Messages {
    /// Messages that a function can send. `None` if there are none, or if what it says makes no sense.
    pub(crate) fn of(configuration: &impl Configuration, address: Address, bars: &[Bar]) -> Option<Messages> {
        let all = || capabilities(configuration, address);
        all().find_map(|(at, id)| table(configuration, address, bars, at).filter(|_| id == MSIX)).or_else(
            || {
                let (at, _) =
                    all().find(|(at, id)| *id == MSI && ends_in_space(configuration, address, *at))?;
                Some(Messages::One { at })
            },
        )
    }

    /// How many there are.
    pub fn count(self) -> u16 {
        match self {
            Messages::One { .. } => 1,
            Messages::Table { count, .. } => count,
        }
    }
}

fn table(configuration: &impl Configuration, address: Address, bars: &[Bar], at: u8) -> Option<Messages> {
    // Three words.
    at.checked_add(11)?;
    let count = ((configuration.read(address, at) & msix::LAST) >> 16) as u16 + 1;
    let place = configuration.read(address, at + 4);
    let (bar, offset) = ((place & msix::REGISTER) as u8, u64::from(place & !msix::REGISTER));
    let Bar::Memory { len, .. } = *bars.get(usize::from(bar))? else { return None };
    let fits = offset + u64::from(count) * ENTRY_BYTES <= len;
    fits.then_some(Messages::Table { at, bar, offset, count })
}

/// Bytes of MSI's capability from its start to the end of its word and of its masks.
fn ends_in_space(configuration: &impl Configuration, address: Address, at: u8) -> bool {
    let control = configuration.read(address, at);
    at.checked_add(word_at(control) + if control & msi::HAS_MASKS != 0 { 11 } else { 3 }).is_some()
}

/// Offset of the word in MSI's capability, behind the address.
fn word_at(control: u32) -> u8 {
    if control & msi::IS_WIDE != 0 { 12 } else { 8 }
}

/// Has a function with MSI send its one message from now on: this word, to this address. False if it cannot write to that address.
pub fn send_one(
    configuration: &mut impl Configuration,
    function: Address,
    at: u8,
    (address, word): (u64, u16),
) -> bool {
    let control = configuration.read(function, at) & !(msi::COUNT | msi::ENABLED);
    let is_wide = control & msi::IS_WIDE != 0;
    if address >> 32 != 0 && !is_wide {
        return false;
    }
    configuration.write(function, at, control);
    configuration.write(function, at + 4, address as u32);
    if is_wide {
        configuration.write(function, at + 8, (address >> 32) as u32);
    }
    let word_at = at + word_at(control);
    configuration.write(function, word_at, word.into());
    if control & msi::HAS_MASKS != 0 {
        configuration.write(function, word_at + 4, 0);
    }
    configuration.write(function, at, control | msi::ENABLED);
    true
}

/// Has a function with MSI-X send the messages of its table from now on.
pub fn send_from_table(configuration: &mut impl Configuration, function: Address, at: u8) {
    let control = configuration.read(function, at) & !msix::ALL_MASKED;
    configuration.write(function, at, control | msix::ENABLED);
}

/// Has a function send no messages any more, in none of the ways that it has.
pub fn send_none(configuration: &mut impl Configuration, function: Address) {
    let ways: Vec<(u8, u8)> = capabilities(configuration, function).collect();
    for (at, id) in ways {
        let enabled = match id {
            MSI => msi::ENABLED,
            MSIX => msix::ENABLED,
            _ => continue,
        };
        let control = configuration.read(function, at);
        if control & enabled != 0 {
            configuration.write(function, at, control & !enabled);
        }
    }
}

/// Words of an entry in a table: a message that is sent when it is due.
pub fn entry((address, word): (u64, u32)) -> [u32; 4] {
    [address as u32, (address >> 32) as u32, word, 0]
}
