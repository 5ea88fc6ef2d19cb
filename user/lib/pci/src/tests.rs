//! A configuration space made of registers with masks, and devices that do what they should not.

use super::*;
use alloc::collections::BTreeMap;
use alloc::vec;

/// Functions: the value of each register, and the bits of it that can be written.
#[derive(Default)]
struct Fake {
    registers: BTreeMap<(u16, u8), (u32, u32)>,
    /// Writes to base address registers while the function answered.
    careless: usize,
}

impl Fake {
    fn with(mut self, address: Address, offset: u8, value: u32, writable: u32) -> Fake {
        self.registers.insert((address.0, offset), (value, writable));
        self
    }

    /// A function with a class, that answers and uses memory.
    fn function(self, address: Address, numbers: u32, class_code: u32) -> Fake {
        self.with(address, offset::NUMBERS, numbers, 0)
            .with(address, offset::COMMAND, 0x0010_0007, 0x0407)
            .with(address, offset::CLASS, class_code << 8, 0)
            .with(address, offset::HEADER, 0, 0)
    }
}

impl Configuration for Fake {
    fn read(&self, address: Address, offset: u8) -> u32 {
        let is_there = self.registers.contains_key(&(address.0, 0));
        let nothing = if is_there { 0 } else { u32::MAX };
        self.registers.get(&(address.0, offset & !3)).map_or(nothing, |(value, _)| *value)
    }

    fn write(&mut self, address: Address, offset: u8, value: u32) {
        let answers = self.read(address, offset::COMMAND) & 3 != 0;
        if (offset::BAR..offset::BAR + 24).contains(&offset) && answers {
            self.careless += 1;
        }
        if let Some((old, writable)) = self.registers.get_mut(&(address.0, offset)) {
            *old = *old & !*writable | value & *writable;
        }
    }
}

const HERE: Address = Address::new(0, 3, 0);

fn fake() -> Fake {
    Fake::default().function(HERE, 0x1042_1af4, 0x01_00_00)
}

/// Register number `number` of the one function.
fn bar(number: u8, value: u32, writable: u32) -> Fake {
    fake().with(HERE, offset::BAR + 4 * number, value, writable)
}

fn bars_of(mut fake: Fake) -> [Bar; BARS] {
    let before = fake.registers.clone();
    let found = find(&mut fake);
    assert_eq!(found.len(), 1);
    assert_eq!(fake.careless, 0, "sized while it answered");
    for ((at, old), new) in before.iter().zip(fake.registers.values()) {
        // Nothing but the rights to use memory and to interrupt has changed.
        let silent = |command: u32| command & !command::MASTER | command::NO_INTERRUPT;
        let wanted = if at.1 == offset::COMMAND { silent(old.0) } else { old.0 };
        assert_eq!(new.0, wanted, "{at:x?}");
    }
    found[0].bars
}

#[test]
fn sizes() {
    let memory = |base, len, prefetchable| Bar::Memory { base, len, prefetchable };
    for (value, writable, wanted) in [
        (0xfebf_1000, 0xffff_f000, memory(0xfebf_1000, 0x1000, false)),
        (0xfebf_1008, 0xffff_f000, memory(0xfebf_1000, 0x1000, true)),
        (0xfebf_1010, 0xffff_fff0, memory(0xfebf_1010, 16, false)),
        (0x8000_0000, 0x8000_0000, memory(0x8000_0000, 0x8000_0000, false)),
        (0xc041, 0xffff_ffc0, Bar::Ports { base: 0xc040, len: 64 }),
        (0xc041, 0x0000_ffc0, Bar::Ports { base: 0xc040, len: 64 }),
        // No register.
        (0, 0, Bar::Nothing),
        // Nothing assigned.
        (0, 0xffff_f000, Bar::Nothing),
        (1, 0xffff_ffc0, Bar::Nothing),
        // Of size 0, of all sizes, with holes, not aligned.
        (0xfebf_1000, 0, Bar::Nothing),
        (0xc041, 0, Bar::Nothing),
        (0xfebf_1000, 0xf0f0_f000, Bar::Nothing),
        (0xc041, 0xf0c0, Bar::Nothing),
        (0xfebf_1000, 0xfff0_0000, Bar::Nothing),
    ] {
        // Bits that cannot be written are of the kind, or stay what they are.
        let found = bars_of(bar(2, value, writable));
        assert_eq!(found[2], wanted, "{value:#x} {writable:#x}");
        assert!(found.iter().enumerate().all(|(number, bar)| number == 2 || *bar == Bar::Nothing));
    }
}

#[test]
fn wide_registers() {
    let wide = |low, low_mask, high, high_mask| {
        bars_of(bar(4, low, low_mask).with(HERE, offset::BAR + 20, high, high_mask))
    };
    let found = wide(0x0000_400c, 0xffff_c000, 0x38, u32::MAX);
    assert_eq!(found[4], Bar::Memory { base: 0x38_0000_4000, len: 0x4000, prefetchable: true });
    assert_eq!(found[5], Bar::Nothing);
    // Larger than 4 GiB; larger than everything; at the end of everything.
    let found = wide(0x0000_000c, 0, 0x38, 0xffff_fff8);
    assert_eq!(found[4], Bar::Memory { base: 0x38_0000_0000, len: 8 << 32, prefetchable: true });
    assert_eq!(wide(0xc, 0, 0x8000_0000, 0x8000_0000)[4], Bar::Nothing);
    assert_eq!(wide(0xffff_c00c, 0xffff_c000, u32::MAX, u32::MAX)[4], Bar::Nothing);
    // The last register has no upper half.
    assert_eq!(bars_of(bar(5, 0xfebf_1004, 0xffff_f000))[5], Bar::Nothing);
}

#[test]
fn lists_of_capabilities_end() {
    let list = |heads: &[(u8, u32)], first| {
        let mut fake = fake().with(HERE, offset::CAPABILITIES, first, 0);
        for &(at, head) in heads {
            fake = fake.with(HERE, at, head, 0);
        }
        find(&mut fake)[0].has_msix
    };
    assert!(list(&[(0x40, 0x0000_5009), (0x50, 0x0000_0011)], 0x40));
    assert!(!list(&[(0x40, 0x0000_5009), (0x50, 0x0000_4009)], 0x40), "a circle");
    assert!(!list(&[(0x40, 0x0000_4009)], 0x40), "one that follows itself");
    assert!(!list(&[(0x40, 0x0000_0409), (0x04, 0x11)], 0x40), "into the header");
    assert!(!list(&[], 0xff), "at the end");
    assert!(!list(&[], 0));
}

#[test]
fn buses_behind_bridges_are_visited_once() {
    let bridge =
        |fake: Fake, address, behind: u32| {
            fake.function(address, 0x000c_1b36, 0x06_04_00)
                .with(address, offset::HEADER, 0x0001_0000, 0)
                .with(address, offset::BUSES, (behind + 2) << 16 | behind << 8, 0)
        };
    let (first, second) = (Address::new(0, 1, 0), Address::new(7, 0, 0));
    // The second leads back, in a circle; another one says that its own bus is behind it.
    let fake = bridge(bridge(fake(), first, 7), second, 0);
    let fake = bridge(fake, Address::new(7, 1, 0), 7);
    let mut fake = fake.function(Address::new(7, 2, 0), 0x1041_1af4, 0x02_00_00);
    let found: Vec<u16> = find(&mut fake).iter().map(|function| function.address.0).collect();
    assert_eq!(found, vec![first.0, HERE.0, second.0, second.0 + 8, second.0 + 16]);
    assert_eq!(buses_behind(&fake, first), Some((7, 9)));
    assert_eq!(buses_behind(&fake, second), None);
    assert_ne!(fake.read(first, offset::COMMAND) & command::MASTER, 0, "bridges go on for others");
}

#[test]
fn functions_of_one_device() {
    let many = |header| {
        let mut fake = fake().with(HERE, offset::HEADER, header, 0);
        fake = fake.function(Address::new(0, 3, 5), 0x1041_1af4, 0x02_00_00);
        find(&mut fake).len()
    };
    assert_eq!((many(0), many(MULTIPLE_FUNCTIONS)), (1, 2));
}

#[test]
fn where_everything_answers() {
    struct Everywhere;
    impl Configuration for Everywhere {
        fn read(&self, _: Address, _: u8) -> u32 {
            0x0081_8181
        }
        fn write(&mut self, _: Address, _: u8, _: u32) {}
    }
    assert_eq!(find(&mut Everywhere).len(), FUNCTIONS_MAX);
    struct Nowhere;
    impl Configuration for Nowhere {
        fn read(&self, _: Address, _: u8) -> u32 {
            u32::MAX
        }
        fn write(&mut self, _: Address, _: u8, _: u32) {}
    }
    assert_eq!(find(&mut Nowhere).len(), 0);
}

#[test]
fn pieces_are_of_one_function() {
    let other = Address::new(0, 4, 0);
    let pieces = |base: u32| {
        let fake = bar(0, 0xfebf_1000, 0xffff_ff00).with(HERE, offset::BAR + 4, 0xc041, 0xffc0);
        let fake = fake.function(other, 0x1042_1af4, 0x01_00_00);
        let mut fake =
            fake.with(other, offset::BAR, base, 0xffff_ff00).with(other, offset::BAR + 4, 0xc081, 0xffc0);
        let found = find(&mut fake);
        [
            piece(&found, &[], 0, 0),
            piece(&found, &[], 0, 1),
            piece(&found, &[], 0, 2),
            piece(&found, &[], 2, 0),
            piece(&found, &[], 0, 6),
        ]
    };
    assert_eq!(pieces(0xfebf_2000), [Some((0xfebf_1000, 12)), Some((0xc040, 6)), None, None, None]);
    assert_eq!(pieces(0xfebf_1100)[0], None, "a page with both");
}

#[test]
fn what_is_the_boards_is_no_piece() {
    for (value, writable) in [
        (0xfee0_0000, 0xffff_f000),
        (0xfec0_0000, 0xffff_f000),
        (0xfed0_0100, 0xffff_ff00),
        (0x000b_8000, 0xffff_8000),
        (0xc000_0000, 0xc000_0000),
        (0x0cf9, 0xfff8),
        (0x0c01, 0xfc00),
        (0x0021, 0xffe0),
    ] {
        let found = find(&mut bar(0, value, writable));
        assert_ne!(found[0].bars[0], Bar::Nothing, "{value:#x}");
        assert_eq!(piece(&found, &[], 0, 0), None, "{value:#x}");
    }
    // Memory that is another machine's board's, as tables say.
    let found = find(&mut bar(0, 0xb123_4000, 0xffff_f000));
    for (board, wanted) in [
        (&[][..], Some((0xb123_4000, 12))),
        (&[(0xb000_0000, 0xb123_4000), (0xb123_5000, 0xb124_0000)], Some((0xb123_4000, 12))),
        (&[(0x1000, 0x2000), (0xb000_0000, 0xc000_0000)], None),
        (&[(0xb123_4800, 0xb123_4900)], None),
    ] {
        assert_eq!(piece(&found, board, 0, 0), wanted, "{board:x?}");
    }
}

#[test]
fn addresses_as_people_write_them() {
    let address = Address::new(0x3a, 31, 5);
    assert_eq!((address.parts(), alloc::format!("{address}").as_str()), ((0x3a, 31, 5), "3a:1f.5"));
}
