//! Copies between addresses of the loaded space, by way of the [translation caches](super::tlb).
//!
//! Each returns how many bytes are left, and if there are any, the address that faulted and whether that was a write.

use super::{load, store, tlb};
use abi::{PAGE_SIZE, Rights};
use std::cell::Cell;

/// How to copy: there is only one way.
pub type Routine = ();

/// Routine for a copy with interrupts off; none comes in the middle of a copy here.
pub const CLOSED: Routine = ();

/// Routine for a copy with interrupts let in; none comes in the middle of a copy here.
pub const OPEN: Routine = ();

/// Whether a copy can let interrupts in: not here, where all copies are done in short steps.
pub const COPIES_OPENLY: bool = false;

/// Physical address of `address`, and how many of `len` bytes follow it in its page; `None` if the access faults.
fn part(address: u64, len: u64, right: Rights) -> Option<(u64, u64)> {
    Some((tlb::access(address, right)?, len.min(PAGE_SIZE - address % PAGE_SIZE)))
}

/// Copies bytes.
///
/// # Safety
/// Nothing is asked of the caller here; on a real machine the target must be the caller's to write.
pub unsafe fn copy_bytes(to: u64, from: u64, len: u64, _: Routine) -> (u64, u64, bool) {
    let mut done = 0;
    while done < len {
        let (left, source, target) = (len - done, from + done, to + done);
        let Some((read, here)) = part(source, left, Rights::R) else { return (left, source, false) };
        let Some((write, there)) = part(target, left, Rights::W) else { return (left, target, true) };
        let now = here.min(there);
        store(write, &load(read, now as usize));
        done += now;
    }
    (0, 0, false)
}

/// Reads words of a user.
pub fn load_words(words: &[Cell<u64>], from: u64) -> (u64, u64, bool) {
    let mut bytes = Vec::new();
    let len = size_of_val(words) as u64;
    while (bytes.len() as u64) < len {
        let (at, left) = (from + bytes.len() as u64, len - bytes.len() as u64);
        let Some((read, here)) = part(at, left, Rights::R) else { return (left, at, false) };
        bytes.extend(load(read, here as usize));
    }
    for (word, bytes) in words.iter().zip(bytes.chunks_exact(8)) {
        word.set(u64::from_le_bytes(bytes.try_into().expect("eight bytes")));
    }
    (0, 0, false)
}

/// Writes words of a user.
///
/// # Safety
/// See [`copy_bytes`].
pub unsafe fn store_words(to: u64, words: &[u64]) -> (u64, u64, bool) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (at, left) = (to + (bytes.len() - rest.len()) as u64, rest.len() as u64);
        let Some((write, here)) = part(at, left, Rights::W) else { return (left, at, true) };
        let (now, later) = rest.split_at(here as usize);
        store(write, now);
        rest = later;
    }
    (0, 0, false)
}

/// Writes words of a user from cells.
///
/// # Safety
/// See [`copy_bytes`].
pub unsafe fn store_cells(to: u64, words: &[Cell<u64>]) -> (u64, u64, bool) {
    let words: Vec<u64> = words.iter().map(Cell::get).collect();
    // SAFETY: the caller answers for the target.
    unsafe { store_words(to, &words) }
}

/// Reads two words of a user, or of a window, at each of two addresses. The error is the address that faulted, and whether it was at the second.
pub fn load_pairs(first: u64, second: u64) -> Result<([u64; 2], [u64; 2]), (u64, bool)> {
    let load = |from: u64, is_second: bool| {
        let words = [const { Cell::new(0) }; 2];
        match load_words(&words, from) {
            (0, ..) => Ok(words.map(Cell::into_inner)),
            (_, address, _) => Err((address, is_second)),
        }
    };
    Ok((load(first, false)?, load(second, true)?))
}

/// Writes two words of a user, or of a window; the error is the address that faulted.
///
/// # Safety
/// See [`copy_bytes`].
pub unsafe fn store_pair(to: u64, words: [u64; 2]) -> Result<(), u64> {
    // SAFETY: the caller answers for the target.
    match unsafe { store_words(to, &words) } {
        (0, ..) => Ok(()),
        (_, address, _) => Err(address),
    }
}
