//! Blocks of a file. In the other file system each has 4 KiB, is written by one call, and lies where a block of a disk does: it is there, or the one before is.
//!
//! ```text
//! first   number of the file 16 | nonce 24 | encrypted: length of the file 8, contents 4,032 | tag 16
//! others                          nonce 24 | encrypted: contents 4,056                       | tag 16
//! ```
//!
//! The number of the file, which no other has, and that of the block are part of what the tag says. The length in the first one is what the file has, so blocks that are
//! missing at the end are missed.

use crate::key::{Keys, nonce_of, tag_of};
use chacha20poly1305::aead::AeadInOut;
use vfs::{Error, Result};

/// Bytes of a block in the other file system.
pub const BLOCK: usize = 4096;

/// Bytes of a file's number.
pub const ID: usize = 16;

/// Bytes of a nonce.
pub const NONCE: usize = 24;

/// Bytes of a tag.
pub const TAG: usize = 16;

/// Bytes of the length in the first block.
pub const LEN: usize = 8;

/// Bytes of contents in the first block.
pub const FIRST: usize = BLOCK - ID - NONCE - LEN - TAG;

/// Bytes of contents in each other one.
pub const OTHER: usize = BLOCK - NONCE - TAG;

/// Bytes of contents in a block.
pub const fn capacity(number: u64) -> usize {
    if number == 0 { FIRST } else { OTHER }
}

/// The first byte of contents in a block.
pub const fn start(number: u64) -> u64 {
    if number == 0 { 0 } else { FIRST as u64 + (number - 1) * OTHER as u64 }
}

/// The block that has a byte, and where in it.
pub const fn place(offset: u64) -> (u64, usize) {
    match offset.checked_sub(FIRST as u64) {
        None => (0, offset as usize),
        Some(rest) => (1 + rest / OTHER as u64, (rest % OTHER as u64) as usize),
    }
}

/// Blocks of a file of a length. Each has the first.
pub const fn count(len: u64) -> u64 {
    1 + len.saturating_sub(FIRST as u64).div_ceil(OTHER as u64)
}

/// Beside what is encrypted: the file's number and the block's.
fn beside(file: &[u8; ID], number: u64) -> [u8; ID + 8] {
    let mut beside = [0; ID + 8];
    beside[..ID].copy_from_slice(file);
    beside[ID..].copy_from_slice(&number.to_le_bytes());
    beside
}

/// Where nonce, ciphertext and tag are.
const fn ciphertext(number: u64) -> core::ops::Range<usize> {
    let first = if number == 0 { ID + NONCE } else { NONCE };
    first..BLOCK - TAG
}

/// Encrypts a block that has contents in its place, and in the first the length in front of them.
pub fn seal(
    keys: &Keys,
    file: &[u8; ID],
    number: u64,
    block: &mut [u8; BLOCK],
    random: fn(&mut [u8]),
) -> Result<()> {
    let own = ciphertext(number);
    if number == 0 {
        block[..ID].copy_from_slice(file);
    }
    random(&mut block[own.start - NONCE..own.start]);
    let nonce = nonce_of(&block[own.start - NONCE..]);
    let tag = keys
        .contents
        .encrypt_inout_detached(&nonce, &beside(file, number), (&mut block[own.clone()]).into())
        .map_err(|_| Error::TooLarge)?;
    block[own.end..].copy_from_slice(&tag);
    Ok(())
}

/// Decrypts it. [`Error::Damaged`] if it is not that block of that file.
pub fn open(keys: &Keys, file: &[u8; ID], number: u64, block: &mut [u8; BLOCK]) -> Result<()> {
    let own = ciphertext(number);
    if number == 0 && block[..ID] != *file {
        return Err(Error::Damaged);
    }
    let (nonce, tag) = (nonce_of(&block[own.start - NONCE..]), tag_of(&block[own.end..]));
    keys.contents
        .decrypt_inout_detached(&nonce, &beside(file, number), (&mut block[own]).into(), &tag)
        .map_err(|_| Error::Damaged)
}

/// Contents of a block that is not encrypted.
pub fn contents(number: u64, block: &mut [u8; BLOCK]) -> &mut [u8] {
    let end = BLOCK - TAG;
    &mut block[end - capacity(number)..end]
}

/// The length in a first block that is not encrypted.
pub fn len(block: &[u8; BLOCK]) -> u64 {
    let mut len = [0; LEN];
    len.copy_from_slice(&block[ID + NONCE..][..LEN]);
    u64::from_le_bytes(len)
}

/// Says the length in a first block that is not encrypted.
pub fn set_len(block: &mut [u8; BLOCK], len: u64) {
    block[ID + NONCE..][..LEN].copy_from_slice(&len.to_le_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::key::{self, Cost};
    use core::sync::atomic::{AtomicU64, Ordering};

    /// Not random, and each time others.
    pub fn random(bytes: &mut [u8]) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        for part in bytes.chunks_mut(8) {
            let number = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            part.copy_from_slice(&(number ^ number >> 29).to_le_bytes()[..part.len()]);
        }
    }

    pub fn keys() -> Keys {
        key::make(b"", Cost { memory_kib: 8, passes: 1, lanes: 1 }, random).unwrap().0
    }

    #[test]
    fn places_are_in_a_row() {
        let mut at = 0;
        for number in 0..5 {
            assert_eq!(start(number), at);
            assert_eq!(place(at), (number, 0));
            at += capacity(number) as u64;
            assert_eq!(place(at - 1), (number, capacity(number) - 1));
            assert_eq!((count(at), count(at + 1)), (number + 1, number + 2));
        }
        assert_eq!((count(0), FIRST, OTHER), (1, 4032, 4056));
    }

    #[test]
    fn a_block_is_one_of_its_file_and_place() {
        let keys = keys();
        let (file, other) = ([1; ID], [2; ID]);
        for number in [0, 1, 7] {
            let mut block = [0; BLOCK];
            contents(number, &mut block).fill(b'x');
            if number == 0 {
                set_len(&mut block, 12345);
            }
            seal(&keys, &file, number, &mut block, random).unwrap();
            assert!(!block.windows(8).any(|part| part == b"xxxxxxxx"));
            let sealed = block;
            open(&keys, &file, number, &mut block).unwrap();
            assert!(contents(number, &mut block).iter().all(|&byte| byte == b'x'));
            assert!(number > 0 || len(&block) == 12345);
            for (file, number) in [(other, number), (file, number + 1), (file, number ^ 1)] {
                let mut block = sealed;
                assert_eq!(open(&keys, &file, number, &mut block), Err(Error::Damaged));
            }
            for at in (0..BLOCK).step_by(97).chain([ID, BLOCK - 1]) {
                let mut block = sealed;
                block[at] ^= 0x10;
                assert_eq!(open(&keys, &file, number, &mut block), Err(Error::Damaged), "byte {at}");
            }
        }
    }
}
