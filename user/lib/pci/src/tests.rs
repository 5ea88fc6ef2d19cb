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
        find(&mut fake)[0].messages.is_some()
    };
    assert!(list(&[(0x40, 0x0000_5009), (0x50, 0x0000_0005)], 0x40));
    assert!(!list(&[(0x40, 0x0000_5009), (0x50, 0x0000_4009)], 0x40), "a circle");
    assert!(!list(&[(0x40, 0x0000_4009)], 0x40), "one that follows itself");
    assert!(!list(&[(0x40, 0x0000_0409), (0x04, 0x11)], 0x40), "into the header");
    assert!(!list(&[], 0xff), "at the end");
    assert!(!list(&[], 0));
}

/// A function with capabilities, the first at 0x40.
fn with_capabilities(fake: Fake, words: &[(u8, u32, u32)]) -> Fake {
    let fake = fake.with(HERE, offset::CAPABILITIES, 0x40, 0);
    words.iter().fold(fake, |fake, &(at, value, writable)| fake.with(HERE, at, value, writable))
}

/// Control half of a capability that can be written.
const CONTROL: u32 = 0xffff_0000;

#[test]
fn messages_of_a_table_are_in_memory_of_the_function() {
    // MSI-X, with so many entries from an offset on behind register 1, which leads to 4 KiB; MSI behind it.
    let messages = |last: u32, place: u32| {
        let fake = bar(1, 0xfebf_1000, 0xffff_f000);
        let msix = [(0x40, 0x5011 | last << 16, 0), (0x44, place, 0), (0x50, 0x0005, 0)];
        find(&mut with_capabilities(fake, &msix))[0].messages
    };
    let table = |offset, count| Some(Messages::Table { at: 0x40, bar: 1, offset, count });
    assert_eq!(messages(2, 0x0801), table(0x800, 3));
    assert_eq!(messages(127, 0x0801), table(0x800, 128));
    assert_eq!(messages(255, 0x0001), table(0, 256));
    // A table that makes no sense is not used, and the other way is.
    let one = Some(Messages::One { at: 0x50 });
    for (last, place) in [(128, 0x801), (256, 1), (0, 0x1001), (0, 0xffff_fff9), (0, 0), (0, 6), (0, 7)] {
        assert_eq!(messages(last, place), one, "{last} {place:#x}");
    }
}

#[test]
fn messages_that_do_not_fit_into_the_space_are_none() {
    for (control, last) in [(0, 0xf4), (1 << 23, 0xf0), (1 << 24, 0xec), (3 << 23, 0xe8)] {
        for at in (0x40..=0xfc).step_by(4) {
            let fake = fake().with(HERE, offset::CAPABILITIES, at, 0);
            let found = find(&mut fake.with(HERE, at as u8, 5 | control, 0))[0].messages;
            let wanted = (at <= last).then_some(Messages::One { at: at as u8 });
            assert_eq!(found, wanted, "{at:#x} {control:#x}");
        }
    }
    for at in (0xe0..=0xfc).step_by(4) {
        let fake = bar(1, 0xfebf_1000, 0xffff_f000).with(HERE, offset::CAPABILITIES, at, 0);
        let fake = if at < 0xfc { fake.with(HERE, at as u8 + 4, 1, 0) } else { fake };
        assert_eq!(find(&mut fake.with(HERE, at as u8, 0x11, 0))[0].messages.is_some(), at <= 0xf4);
    }
}

#[test]
fn one_message_is_sent_and_no_longer() {
    const ADDRESS: u64 = 0xfee0_3000;
    for control in [0, 1 << 23, 1 << 24, 3 << 23] {
        // Firmware has had it send eight.
        let words = [0x44, 0x48, 0x4c, 0x50].map(|at| (at, 0xaaaa_aaaa, u32::MAX));
        let mut fake = with_capabilities(fake(), &words);
        fake = fake.with(HERE, 0x40, 5 | control | 0x0031_0000, 0x0071_0000);
        find(&mut fake);
        assert_eq!(fake.read(HERE, 0x40), 5 | control | 0x0030_0000, "silent when it is found");
        assert!(send_one(&mut fake, HERE, 0x40, (ADDRESS, 0xc5)));
        assert_eq!(fake.read(HERE, 0x40), 5 | control | 1 << 16, "one, and it is on");
        assert_eq!(fake.read(HERE, 0x44), ADDRESS as u32);
        let rest = [0x48, 0x4c, 0x50].map(|at| fake.read(HERE, at));
        let left = 0xaaaa_aaaa;
        let wanted = match control >> 23 {
            0 => [0xc5, left, left],
            1 => [0, 0xc5, left],
            2 => [0xc5, 0, left],
            _ => [0, 0xc5, 0],
        };
        assert_eq!(rest, wanted, "{control:#x}");
        let is_wide = control >> 23 & 1 != 0;
        assert_eq!(
            send_one(&mut fake, HERE, 0x40, (1 << 32, 1)),
            is_wide,
            "no message to half of an address"
        );
        send_none(&mut fake, HERE);
        assert_eq!(fake.read(HERE, 0x40), 5 | control);
    }
}

#[test]
fn messages_of_a_table_are_sent_and_no_longer() {
    let fake = bar(1, 0xfebf_1000, 0xffff_f000).with(HERE, 0x44, 1, 0);
    // Firmware has it send all but keep them.
    let mut fake = with_capabilities(fake, &[(0x40, 0x0011 | 0xc003 << 16, CONTROL)]);
    find(&mut fake);
    assert_eq!(fake.read(HERE, 0x40), 0x0011 | 0x4003 << 16);
    send_from_table(&mut fake, HERE, 0x40);
    assert_eq!(fake.read(HERE, 0x40), 0x0011 | 0x8003 << 16);
    send_none(&mut fake, HERE);
    assert_eq!(fake.read(HERE, 0x40), 0x0011 | 0x0003 << 16);
    assert_eq!(entry((0x1_fee0_3000, 0xc5)), [0xfee0_3000, 1, 0xc5, 0]);
}

/// Ways to send messages that are not used are off, too: a table that is not there, and one message beside a table.
#[test]
fn a_function_that_is_found_sends_nothing() {
    for place in [1, 0xffff_fff9] {
        let words = [(0x40, 0x5011 | 0x8000 << 16, CONTROL), (0x44, place, 0), (0x50, 5 | 1 << 16, CONTROL)];
        let mut fake = with_capabilities(bar(1, 0xfebf_1000, 0xffff_f000), &words);
        find(&mut fake);
        assert_eq!((fake.read(HERE, 0x40), fake.read(HERE, 0x50)), (0x5011, 5), "{place:#x}");
    }
}

#[test]
fn registers_share_pages() {
    let memory = |base, len| Bar::Memory { base, len, prefetchable: false };
    let table = memory(0xfebf_1000, 0x100);
    for (other, shares) in [
        (memory(0xfebf_1100, 0x100), true),
        (memory(0xfebf_1000, 0x1000), true),
        (memory(0xfebf_0000, 0x1000), false),
        (memory(0xfebf_2000, 0x10), false),
        (memory(0xfebf_0000, 0x1_0000), true),
        (Bar::Ports { base: 0x1000, len: 0x100 }, false),
        (Bar::Nothing, false),
    ] {
        assert_eq!((share_a_page(table, other), share_a_page(other, table)), (shares, shares), "{other:?}");
    }
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
