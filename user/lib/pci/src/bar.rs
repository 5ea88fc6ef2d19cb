//! Base address registers: what a function answers at, and how large that is.

use crate::{Address, Configuration, Function, command, offset};

/// Base address registers of a function.
pub const BARS: usize = 6;

/// Meaning of a base address register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bar {
    /// Nothing, or nothing that makes sense; or the upper half of the one before.
    Nothing,
    /// Memory. Length is a power of two, of which the base is a multiple.
    Memory {
        /// Physical address.
        base: u64,
        /// Bytes.
        len: u64,
        /// Whether reading has no effects.
        prefetchable: bool,
    },
    /// Ports. Length is a power of two, of which the base is a multiple.
    Ports {
        /// The first one.
        base: u16,
        /// How many there are.
        len: u32,
    },
}

const IS_PORTS: u32 = 1 << 0;
const IS_64_BITS: u32 = 0b10 << 1;
const WIDTH: u32 = 0b11 << 1;
const IS_PREFETCHABLE: u32 = 1 << 3;
const PORTS_MASK: u32 = 0xfffc;
const MEMORY_MASK: u32 = !0xf;

/// The largest memory that makes sense, in bytes: as much as a flexpage can be.
const LEN_MAX: u64 = 1 << 46;

/// Sizes all of a function's registers, while it answers at none of them. From then on it does not use memory, and does not interrupt: a line that
/// it shares must not be held by a function without a driver.
pub(crate) fn sized(configuration: &mut impl Configuration, address: Address) -> [Bar; BARS] {
    // The status is in the upper half, where ones clear bits: zeroes leave it.
    let before =
        configuration.read(address, offset::COMMAND) & 0xffff & !command::MASTER | command::NO_INTERRUPT;
    configuration.write(address, offset::COMMAND, before & !(command::PORTS | command::MEMORY));
    let mut bars = [Bar::Nothing; BARS];
    let mut number = 0;
    while number < BARS {
        let (value, mask) = ask(configuration, address, number);
        let is_wide = value & (IS_PORTS | WIDTH) == IS_64_BITS;
        let upper = if is_wide && number + 1 < BARS {
            ask(configuration, address, number + 1)
        } else {
            (0, u32::MAX)
        };
        bars[number] = match value & IS_PORTS {
            // Its upper half would be no register any more.
            0 if is_wide && number + 1 == BARS => Bar::Nothing,
            0 => memory(wide(value, upper.0), wide(mask, upper.1), value & IS_PREFETCHABLE != 0),
            _ => ports(value, mask),
        };
        number += if is_wide { 2 } else { 1 };
    }
    configuration.write(address, offset::COMMAND, before);
    bars
}

/// Value of a register, and what becomes of all ones there.
fn ask(configuration: &mut impl Configuration, address: Address, number: usize) -> (u32, u32) {
    let at = offset::BAR + 4 * number as u8;
    let value = configuration.read(address, at);
    configuration.write(address, at, u32::MAX);
    let mask = configuration.read(address, at);
    configuration.write(address, at, value);
    (value, mask)
}

fn wide(lower: u32, upper: u32) -> u64 {
    u64::from(upper) << 32 | u64::from(lower & MEMORY_MASK)
}

fn memory(base: u64, mask: u64, prefetchable: bool) -> Bar {
    // The bits that are always 0 are the size. If all are, no register is there.
    let len = (!mask).wrapping_add(1);
    let is_sound = len.is_power_of_two()
        && len <= LEN_MAX
        && base != 0
        && base.is_multiple_of(len)
        && base.checked_add(len).is_some_and(|end| end <= LEN_MAX);
    if is_sound { Bar::Memory { base, len, prefetchable } } else { Bar::Nothing }
}

fn ports(base: u32, mask: u32) -> Bar {
    // There are 65,536 ports, and the upper half of a mask may be anything.
    let (base, len) = (base & PORTS_MASK, (!(mask & PORTS_MASK) & 0xffff) + 1);
    let is_sound = mask & PORTS_MASK != 0 && len.is_power_of_two() && base != 0 && base.is_multiple_of(len);
    if is_sound { Bar::Ports { base: base as u16, len } } else { Bar::Nothing }
}

/// Log2 of the size of a page.
const PAGE_LOG2: u32 = 12;

/// Memory and ports that belong to the PC itself, whatever a register says: first and end. Memory of old adapters and of firmware; interrupt
/// controllers, timers and firmware below 4 GiB; devices of the board; the ports of configuration spaces.
const MEMORY_OF_THE_BOARD: [(u64, u64); 2] = [(0, 1 << 20), (0xfec0_0000, 1 << 32)];
/// See [`MEMORY_OF_THE_BOARD`].
const PORTS_OF_THE_BOARD: [(u64, u64); 2] = [(0, 0x400), (0xcf8, 0xd00)];

/// Memory or ports that a register of a function leads to, in units that can be handed to its driver alone: first and log2 of the number of bytes or
/// ports. `None` if there is nothing, or if a part of it is another function's, too, or the board's: to what each PC has belongs the memory in
/// `board`, given as first and end.
pub fn piece(
    functions: &[Function],
    board: &[(u64, u64)],
    place: usize,
    number: usize,
) -> Option<(u64, u32)> {
    let bar = *functions.get(place)?.bars.get(number)?;
    let own = range(bar)?;
    let others = functions.iter().enumerate().filter(|(other, _)| *other != place);
    let mut others =
        others.flat_map(|(_, function)| function.bars).filter(|other| is_of_one_kind(bar, *other));
    let overlaps = |other: (u64, u64)| other.0 < own.1 && own.0 < other.1;
    let (of_each, more) = match bar {
        Bar::Ports { .. } => (PORTS_OF_THE_BOARD, &[][..]),
        _ => (MEMORY_OF_THE_BOARD, board),
    };
    let is_shared = others.any(|other| range(other).is_some_and(overlaps))
        || of_each.iter().chain(more).copied().any(overlaps);
    (!is_shared).then_some((own.0, (own.1 - own.0).ilog2()))
}

/// Whether two registers lead to memory in one page, so that who has the one has some of the other.
pub fn share_a_page(one: Bar, other: Bar) -> bool {
    let (Some(one_range), Some(other_range)) = (range(one), range(other)) else { return false };
    is_of_one_kind(one, other) && one_range.0 < other_range.1 && other_range.0 < one_range.1
}

fn is_of_one_kind(one: Bar, other: Bar) -> bool {
    matches!((one, other), (Bar::Memory { .. }, Bar::Memory { .. }) | (Bar::Ports { .. }, Bar::Ports { .. }))
}

/// First and end: of ports, or of whole pages.
fn range(bar: Bar) -> Option<(u64, u64)> {
    match bar {
        Bar::Nothing => None,
        Bar::Memory { base, len, .. } => {
            let first = base >> PAGE_LOG2 << PAGE_LOG2;
            Some((first, first + len.max(1 << PAGE_LOG2)))
        }
        Bar::Ports { base, len } => Some((base.into(), u64::from(base) + u64::from(len))),
    }
}
