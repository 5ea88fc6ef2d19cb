//! Memory of a process, as far as calls name it.

use alloc::string::String;
use alloc::vec::Vec;

/// Memory of a process that is looked at.
pub trait Memory {
    /// Reads bytes from an address on, up to where there are none. Says how many there were.
    fn peek(&mut self, address: u64, to: &mut [u8]) -> usize;
}

/// Bytes that a text is looked for at once.
const PIECE: usize = 64;

impl dyn Memory + '_ {
    /// Bytes at an address, if all of them are there.
    pub(super) fn bytes<const N: usize>(&mut self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        (self.peek(address, &mut bytes) == N).then_some(bytes)
    }

    /// Words at an address.
    pub(super) fn words<const N: usize>(&mut self, address: u64) -> Option<[u64; N]> {
        let mut words = [0; N];
        for (word, at) in words.iter_mut().zip((0u64..).step_by(8)) {
            *word = u64::from_le_bytes(self.bytes(address.wrapping_add(at))?);
        }
        Some(words)
    }

    /// Numbers of 32 bits at an address.
    pub(super) fn numbers<const N: usize>(&mut self, address: u64) -> Option<[u32; N]> {
        let mut numbers = [0; N];
        for (number, at) in numbers.iter_mut().zip((0u64..).step_by(4)) {
            *number = u32::from_le_bytes(self.bytes(address.wrapping_add(at))?);
        }
        Some(numbers)
    }

    /// So many bytes at an address, or those that are there.
    pub(super) fn some(&mut self, address: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = alloc::vec![0; len];
        let count = self.peek(address, &mut bytes);
        bytes.truncate(count);
        (count > 0 || len == 0).then_some(bytes)
    }

    /// Bytes in front of a zero, and whether these are all: there are no more than `len_max`. None if memory ends before.
    pub(super) fn text(&mut self, address: u64, len_max: usize) -> Option<(Vec<u8>, bool)> {
        let mut text = Vec::new();
        while text.len() < len_max {
            let mut piece = [0; PIECE];
            let at = address.checked_add(text.len() as u64)?;
            let count = self.peek(at, &mut piece);
            let found = piece.get(..count)?;
            if let Some(end) = found.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&found[..end]);
                let is_whole = text.len() <= len_max;
                text.truncate(len_max);
                return Some((text, is_whole));
            }
            if count < PIECE {
                return None;
            }
            text.extend_from_slice(found);
        }
        text.truncate(len_max);
        Some((text, false))
    }
}

/// Items between brackets, such as `[1, 2, ...]`. Behind the last one there may be more.
pub(super) fn list(items: impl Iterator<Item = Option<String>>, has_more: bool) -> Option<String> {
    let mut items = items.collect::<Option<Vec<String>>>()?;
    if has_more {
        items.push("...".into());
    }
    Some(alloc::format!("[{}]", items.join(", ")))
}
