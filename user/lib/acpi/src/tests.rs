//! A machine's tables, and what becomes of them when a byte is another one.

use super::*;
use dmar::{Bridges, unit_of, units};

const BASE: u64 = 0x1000;
const ROOT: u64 = 0x1040;
const OLD_ROOT: u64 = 0x10c0;
const MCFG: u64 = 0x1100;
const DMAR: u64 = 0x1200;

struct Bytes(Vec<u8>);

impl Memory for Bytes {
    fn read(&mut self, at: u64, to: &mut [u8]) -> bool {
        let from = at.checked_sub(BASE).and_then(|at| self.0.get(at as usize..)?.get(..to.len()));
        from.is_some_and(|from| {
            to.copy_from_slice(from);
            true
        })
    }
}

fn fix_sum(bytes: &mut [u8], at: usize) {
    bytes[at] = 0;
    bytes[at] = bytes.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
}

fn made(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut table = name.to_vec();
    table.extend((HEADER_BYTES as u32 + body.len() as u32).to_le_bytes());
    table.resize(HEADER_BYTES, 0);
    table.extend(body);
    fix_sum(&mut table, 9);
    table
}

fn mcfg_body() -> Vec<u8> {
    let mut body = vec![0; 8];
    // Of another segment, then of the first.
    body.extend(0xe000_0000u64.to_le_bytes());
    body.extend([1, 0, 0, 255, 0, 0, 0, 0]);
    body.extend(0xb000_0000u64.to_le_bytes());
    body.extend([0, 0, 0, 127, 0, 0, 0, 0]);
    body
}

fn scope(kind: u8, bus: u8, steps: &[[u8; 2]]) -> Vec<u8> {
    let mut scope = vec![kind, (6 + 2 * steps.len()) as u8, 0, 0, 0, bus];
    scope.extend(steps.iter().flatten());
    scope
}

fn structure(kind: u16, flags: u8, segment: u16, registers: u64, scopes: &[Vec<u8>]) -> Vec<u8> {
    let scopes = scopes.concat();
    let mut structure = kind.to_le_bytes().to_vec();
    structure.extend((16 + scopes.len() as u16).to_le_bytes());
    structure.extend([flags, 0]);
    structure.extend(segment.to_le_bytes());
    structure.extend(registers.to_le_bytes());
    structure.extend(scopes);
    structure
}

fn dmar_body() -> Vec<u8> {
    let mut body = vec![38, 1];
    body.resize(12, 0);
    // One function; all that is behind a bridge that is behind a bridge; reserved memory; another segment; the rest.
    body.extend(structure(0, 0, 0, 0xfed9_0000, &[scope(1, 0, &[[2, 0]])]));
    body.extend(structure(
        0,
        0,
        0,
        0xfed9_1000,
        &[scope(3, 0xf0, &[[31, 0]]), scope(2, 0, &[[1, 0], [0, 0]])],
    ));
    body.extend(structure(1, 0, 0, 0x7f00_0000, &[]));
    body.extend(structure(0, 1, 1, 0xfed9_2000, &[]));
    body.extend(structure(0, 1, 0, 0xfed9_3000, &[scope(3, 0xf0, &[[31, 0]])]));
    body
}

/// A machine of one block of memory.
fn machine() -> Vec<u8> {
    let mut pointer = b"RSD PTR \0TERN  \x02".to_vec();
    pointer.extend((OLD_ROOT as u32).to_le_bytes());
    pointer.extend(36u32.to_le_bytes());
    pointer.extend(ROOT.to_le_bytes());
    pointer.extend([0; 4]);
    fix_sum(&mut pointer[..20], 8);
    fix_sum(&mut pointer, 32);

    let mut memory = vec![0; 0x1000];
    let mut put =
        |at: u64, bytes: &[u8]| memory[(at - BASE) as usize..][..bytes.len()].copy_from_slice(bytes);
    put(BASE, &pointer);
    let entries: Vec<u8> = [0, u64::MAX, MCFG, DMAR].iter().flat_map(|at| at.to_le_bytes()).collect();
    put(ROOT, &made(b"XSDT", &entries));
    let entries: Vec<u8> = [MCFG as u32].iter().flat_map(|at| at.to_le_bytes()).collect();
    put(OLD_ROOT, &made(b"RSDT", &entries));
    put(MCFG, &made(b"MCFG", &mcfg_body()));
    put(DMAR, &made(b"DMAR", &dmar_body()));
    memory
}

fn found(memory: &[u8], name: [u8; 4]) -> Option<Vec<u8>> {
    find(&mut Bytes(memory.to_vec()), BASE, name)
}

/// Two bridges: bus 1 behind 0:1.0, and buses 2 to 4 behind 1:0.0.
struct Two;

impl Bridges for Two {
    fn behind(&mut self, bus: u8, device: u8, function: u8) -> Option<(u8, u8)> {
        match (bus, device, function) {
            (0, 1, 0) => Some((1, 4)),
            (1, 0, 0) => Some((2, 4)),
            _ => None,
        }
    }
}

#[test]
fn an_ordinary_machine() {
    let memory = machine();
    let spaces = mcfg::spaces(&found(&memory, mcfg::NAME).unwrap()).unwrap();
    assert_eq!(spaces.of_bus(0), Some(0xb000_0000));
    assert_eq!(spaces.of_bus(127), Some(0xb7f0_0000));
    assert_eq!(spaces.of_bus(128), None);
    assert_eq!(spaces.range(), (0xb000_0000, 0xb800_0000));

    let units = units(&found(&memory, dmar::NAME).unwrap());
    let registers: Vec<u64> = units.iter().map(|unit| unit.registers).collect();
    assert_eq!(registers, [0xfed9_0000, 0xfed9_1000, 0xfed9_3000]);
    for (function, unit) in [
        ((0, 2, 0), 0),
        ((0, 2, 1), 2),
        ((0, 1, 0), 2),
        ((1, 0, 0), 1),
        ((1, 1, 0), 2),
        ((2, 7, 7), 1),
        ((4, 0, 0), 1),
        ((5, 0, 0), 2),
    ] {
        assert_eq!(unit_of(&units, &mut Two, function), Some(unit), "{function:?}");
    }
    assert_eq!(unit_of(&units[..2], &mut Two, (0, 3, 0)), None);
    assert_eq!(found(&memory, *b"HPET"), None);
}

#[test]
fn the_first_form() {
    let mut memory = machine();
    // Revision 0, and a sum that fits.
    memory[15] = 0;
    fix_sum(&mut memory[..20], 8);
    assert!(found(&memory, mcfg::NAME).is_some());
    assert_eq!(found(&memory, dmar::NAME), None);
    // A second form that does not sum up leads to the first, too.
    let mut memory = machine();
    memory[33] ^= 1;
    assert!(found(&memory, mcfg::NAME).is_some());
    assert_eq!(found(&memory, dmar::NAME), None);
}

#[test]
fn tables_without_sense() {
    let spaces = |base: u64, first, last| {
        let mut body = vec![0; 8];
        body.extend(base.to_le_bytes());
        body.extend([0, 0, first, last, 0, 0, 0, 0]);
        mcfg::spaces(&made(b"MCFG", &body))
    };
    assert!(spaces(0xb000_0000, 3, 3).is_some());
    assert_eq!(spaces(0xb000_0000, 4, 3), None);
    assert_eq!(spaces(0xb000_1000, 0, 3), None);
    assert_eq!(spaces(0, 0, 3), None);
    assert_eq!(spaces(u64::MAX << 20, 0, 255), None);
    assert_eq!(mcfg::spaces(&[]), None);

    let of = |structures: &[Vec<u8>]| {
        let mut body = vec![0; 12];
        body.extend(structures.concat());
        units(&made(b"DMAR", &body))
    };
    for registers in [0, 0xfed9_0010, 1 << 46, u64::MAX << 12] {
        assert_eq!(of(&[structure(0, 1, 0, registers, &[])]), []);
    }
    // A structure of no length would be met for ever; one that is longer than the table is none.
    assert_eq!(of(&[vec![0; 64], structure(0, 1, 0, 0x1000, &[])]), []);
    let mut long = structure(0, 1, 0, 0x1000, &[]);
    long[2] = 17;
    assert_eq!(of(&[long]), []);
    // A scope of no length: those before are kept.
    let two = of(&[structure(0, 0, 0, 0x1000, &[scope(1, 0, &[[2, 0]]), vec![1, 0, 0, 0, 0, 0, 3, 0]])]);
    assert_eq!(unit_of(&two, &mut Two, (0, 2, 0)), Some(0));
    assert_eq!(unit_of(&two, &mut Two, (0, 3, 0)), None);
    // More than are kept.
    let many = vec![structure(0, 1, 0, 0x1000, &vec![scope(1, 0, &[[2, 0]]); 100]); 40];
    assert_eq!(of(&many).len(), dmar::UNITS_MAX);
}

#[test]
fn damage_never_panics() {
    let memory = machine();
    let look = |memory: &[u8]| {
        if let Some(table) = found(memory, mcfg::NAME) {
            mcfg::spaces(&table).map(|spaces| (spaces.range(), spaces.of_bus(3)));
        }
        if let Some(table) = found(memory, dmar::NAME) {
            let units = units(&table);
            assert!(
                (0..=255)
                    .all(|bus| unit_of(&units, &mut Two, (bus, 2, 0)).is_none_or(|unit| unit < units.len()))
            );
        }
    };
    for at in 0..0x320 {
        for value in [0, 1, 2, 0x7f, 0xff] {
            let mut bad = memory.clone();
            bad[at] = value;
            look(&bad);
            // Damage as before, but with sums that fit.
            for (table, sum) in [(ROOT, 9), (OLD_ROOT, 9), (MCFG, 9), (DMAR, 9)] {
                let start = (table - BASE) as usize;
                let len = number(&bad, start + 4, 4) as usize;
                if len > 10
                    && let Some(bytes) = bad.get_mut(start..start.saturating_add(len))
                {
                    fix_sum(bytes, sum);
                }
            }
            look(&bad);
        }
    }
    (0..memory.len()).for_each(|len| look(&memory[..len]));
}

/// Bytes that nobody has thought of, with a length and a sum that fit.
#[test]
fn any_table_is_read() {
    let mut seed = 1u64;
    let mut random = || {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        seed >> 33
    };
    for _ in 0..20_000 {
        let len = random() as usize % 200;
        // Small numbers are lengths and kinds more often than others.
        let body: Vec<u8> = (0..len).map(|_| (random() >> (random() % 8)) as u8).collect();
        let units = units(&made(b"DMAR", &body));
        assert!(units.iter().all(|unit| unit.registers.is_multiple_of(4096)));
        let _ = unit_of(&units, &mut Two, (random() as u8, random() as u8 & 31, random() as u8 & 7));
        if let Some(spaces) = mcfg::spaces(&made(b"MCFG", &body)) {
            let (first, end) = spaces.range();
            assert!(first < end && spaces.of_bus((first >> 20) as u8).is_none_or(|at| at < end));
        }
    }
}

#[test]
fn memory_that_cannot_be_read() {
    struct Nothing;
    impl Memory for Nothing {
        fn read(&mut self, _: u64, _: &mut [u8]) -> bool {
            false
        }
    }
    assert_eq!(find(&mut Nothing, 0x1000, mcfg::NAME), None);
    assert_eq!(find(&mut Bytes(machine()), 0, mcfg::NAME), None);
    assert_eq!(find(&mut Bytes(machine()), u64::MAX, mcfg::NAME), None);
}
