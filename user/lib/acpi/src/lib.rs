//! Tables of the firmware (ACPI), as far as a server that knows PCI needs them: [`mcfg`] says where configuration spaces lie in memory,
//! [`dmar`] where the IOMMUs are, and which functions each of them stands before.
//!
//! It works on any [`Memory`], so that the tests bring one of their own. Nothing is believed before its length and checksum fit, and what is
//! read then is bounded: a table may be damaged, or made to harm. ACPI specification 6.5, chapter 5.2.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod dmar;
pub mod mcfg;
#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;

/// Physical memory.
pub trait Memory {
    /// Copies from a physical address on. False if some of it cannot be read.
    fn read(&mut self, at: u64, to: &mut [u8]) -> bool;
}

/// Bytes of the header that each table begins with.
const HEADER_BYTES: usize = 36;

/// The longest table that is believed, in bytes.
const TABLE_MAX: usize = 64 * 1024;

/// Entries of the root table that are looked at, at most.
const ENTRIES_MAX: usize = 256;

/// Bytes of the root pointer, in its first form and in the one that has 64 bits.
const POINTER_BYTES: [usize; 2] = [20, 36];

/// The first table with a name, whole. `pointer` is the physical address of the root pointer. `None` if there is none that is sound.
pub fn find(memory: &mut impl Memory, pointer: u64, name: [u8; 4]) -> Option<Vec<u8>> {
    let (root, is_wide) = root(memory, pointer)?;
    let root = table(memory, root, if is_wide { *b"XSDT" } else { *b"RSDT" })?;
    let entries = root[HEADER_BYTES..].chunks_exact(if is_wide { 8 } else { 4 });
    let mut places = entries.map(|entry| number(entry, 0, entry.len())).take(ENTRIES_MAX);
    places.find_map(|at| table(memory, at, name))
}

/// The root table: where it is, and whether its entries have 64 bits.
fn root(memory: &mut impl Memory, pointer: u64) -> Option<(u64, bool)> {
    let [old, new] = POINTER_BYTES;
    let mut bytes = [0; POINTER_BYTES[1]];
    if pointer == 0 || !memory.read(pointer, &mut bytes[..old]) {
        return None;
    }
    if !bytes.starts_with(b"RSD PTR ") || !is_sound(&bytes[..old]) {
        return None;
    }
    // The revision.
    if bytes[15] >= 2 && memory.read(pointer, &mut bytes[..new]) && is_sound(&bytes) {
        let wide = number(&bytes, 24, 8);
        if wide != 0 {
            return Some((wide, true));
        }
    }
    Some((number(&bytes, 16, 4), false))
}

/// The whole table at an address, if it has this name, and its length and checksum fit.
fn table(memory: &mut impl Memory, at: u64, name: [u8; 4]) -> Option<Vec<u8>> {
    let mut header = [0; HEADER_BYTES];
    if at == 0 || !memory.read(at, &mut header) || header[..4] != name {
        return None;
    }
    let len = number(&header, 4, 4) as usize;
    if !(HEADER_BYTES..=TABLE_MAX).contains(&len) {
        return None;
    }
    let mut bytes = vec![0; len];
    // It is read anew, so what counts is what is there then.
    let is_whole = memory.read(at, &mut bytes) && bytes[..4] == name && number(&bytes, 4, 4) as usize == len;
    (is_whole && is_sound(&bytes)).then_some(bytes)
}

fn is_sound(bytes: &[u8]) -> bool {
    bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) == 0
}

/// The number in up to eight bytes, lowest first. Bytes that are not there are 0.
fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let there = bytes.get(at..).unwrap_or_default();
    there.iter().take(len.min(8)).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
