//! Pages of the heap that others may have: this program has lent them, or lets others' memory be mapped over them. None of them is [offered](crate::offer), since an
//! offer takes the right to write from everybody, and shows what the memory manager has there.
//!
//! Pages of [`page`](crate::page), and [regions](crate::region) whose flexpage was given out, are noted for ever. Who maps other memory of the program to others, by `sys`, does not offer it.

use crate::layout::HEAP;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use sys::abi::PAGE_SIZE;

/// A bit for each page of the heap.
static LENT: [AtomicU64; ((HEAP.end - HEAP.start) / PAGE_SIZE).div_ceil(64) as usize] =
    [const { AtomicU64::new(0) }; _];

/// Words of [`LENT`] for pages in which such bytes lie, and the bits there. Nothing for bytes outside the heap, which nobody offers.
fn words(address: u64, bytes: usize) -> impl Iterator<Item = (&'static AtomicU64, u64)> {
    let inside = |at: u64| at.clamp(HEAP.start, HEAP.end) - HEAP.start;
    let first = inside(address) / PAGE_SIZE;
    let end = inside(address.saturating_add(bytes as u64)).div_ceil(PAGE_SIZE);
    let words = if first < end { first / 64..end.div_ceil(64) } else { Range::default() };
    words.filter_map(move |word| {
        let from = first.max(word * 64) - word * 64;
        let count = end.min(word * 64 + 64) - word * 64 - from;
        LENT.get(word as usize).map(|lent| (lent, (u64::MAX >> (64 - count)) << from))
    })
}

/// Notes that others may have these bytes.
pub fn note(address: u64, bytes: usize) {
    for (word, bits) in words(address, bytes) {
        word.fetch_or(bits, Ordering::Relaxed);
    }
}

/// Whether others may have some of these bytes.
pub fn is_noted(address: u64, bytes: usize) -> bool {
    words(address, bytes).any(|(word, bits)| word.load(Ordering::Relaxed) & bits != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = PAGE_SIZE;

    /// All places of a few pages around the borders of words, against each page by itself.
    #[test]
    fn pages_are_lent_one_by_one() {
        let begin = HEAP.start + 1000 * PAGE;
        let noted = [(60, 1), (62, 5), (128, 64), (200, 130)];
        for (first, count) in noted {
            note(begin + first * PAGE, (count * PAGE) as usize);
        }
        let is_one = |page: u64| noted.iter().any(|&(first, count)| (first..first + count).contains(&page));
        for first in 40..400 {
            for count in [1, 2, 7, 64, 65, 150] {
                let found = is_noted(begin + first * PAGE, (count * PAGE) as usize);
                assert_eq!(found, (first..first + count).any(is_one), "{count} pages from {first} on");
            }
            // Parts of a page.
            assert_eq!(is_noted(begin + first * PAGE + 4000, 200), is_one(first) || is_one(first + 1));
            assert_eq!(is_noted(begin + first * PAGE + 8, 8), is_one(first));
        }
    }

    #[test]
    fn what_lies_outside_is_not_noted() {
        for (address, bytes) in [
            (0, 4096),
            (HEAP.end, 8192),
            (HEAP.start - PAGE, 4096),
            (u64::MAX, usize::MAX),
            (HEAP.start + 5000 * PAGE, 0),
        ] {
            note(address, bytes);
            assert!(!is_noted(address, bytes), "{bytes} bytes at {address:#x}");
        }
        note(HEAP.end - PAGE, 3 * PAGE as usize);
        assert!(is_noted(HEAP.end - 1, 2) && !is_noted(HEAP.end, 1));
        assert!(!is_noted(HEAP.end - 2 * PAGE, PAGE as usize));
    }
}
