//! Image of the extended state, as users give it and get it: the standard format of XSAVE, as words (`abi/src/state.rs`).
//!
//! A processor saves no more of a part that is in its initial state than a clear bit, and on a load it faults on an image that is malformed. So
//! whatever leaves the kernel is completed here, and whatever comes in is checked here. Intel SDM volume 1, 13.4 and 13.8.

use abi::state::{IMAGE_HEADER, IMAGE_MXCSR, IMAGE_WORDS, STATE_AVX, STATE_SSE, STATE_X87};
use core::cell::Cell;
use core::ops::Range;

/// An image in memory of the kernel's.
pub type Image = [Cell<u64>; IMAGE_WORDS];

/// Initial value of the x87 control word: all exceptions masked. The rest of its word is zero: the tag byte says that all registers are empty.
pub const FCW: u64 = 0x37f;

/// Initial value of MXCSR: all exceptions masked.
pub const MXCSR: u64 = 0x1f80;

/// Words of each part; the word with MXCSR is of none, since a load takes it whatever the header says.
const PARTS: [(u64, Range<usize>); 4] =
    [(STATE_X87, 0..3), (STATE_X87, 4..20), (STATE_SSE, 20..52), (STATE_AVX, 72..IMAGE_WORDS)];

/// Words that mean nothing: those that FXSAVE leaves to programs, and all of the header but its first.
const RESERVED: [Range<usize>; 2] = [52..IMAGE_HEADER, IMAGE_HEADER + 1..72];

/// Words with the upper parts of the x87 registers, every other one: of these a save need not write more than the lowest bits.
const UPPER_PARTS: Range<usize> = 5..20;

/// Bits of such a word that belong to a register of 80 bits.
const UPPER_BITS: u64 = 0xffff;

/// Gives everything that the header denies its initial value, and clears what means nothing. `mxcsr_mask`: bits that MXCSR may have.
pub fn complete(image: &Image, mxcsr_mask: u32) {
    let present = image[IMAGE_HEADER].get();
    let denied = PARTS.into_iter().filter(|(part, _)| present & part == 0).map(|(_, words)| words);
    for words in denied.chain(RESERVED) {
        image[words].iter().for_each(|word| word.set(0));
    }
    if present & STATE_X87 == 0 {
        image[0].set(FCW);
    }
    UPPER_PARTS.step_by(2).for_each(|at| image[at].set(image[at].get() & UPPER_BITS));
    let mxcsr = image[IMAGE_MXCSR].get() as u32;
    image[IMAGE_MXCSR].set(u64::from(mxcsr) | u64::from(mxcsr_mask) << 32);
}

/// Whether a processor that manages these `parts` loads the image without a fault.
pub fn is_fit(image: &Image, parts: u64, mxcsr_mask: u32) -> bool {
    let header = &image[IMAGE_HEADER..72];
    let has_parts = header[0].get() & !parts == 0;
    let is_plain = header[1..].iter().all(|word| word.get() == 0);
    has_parts && is_plain && image[IMAGE_MXCSR].get() as u32 & !mxcsr_mask == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASK: u32 = 0xffff;
    const ALL: u64 = STATE_X87 | STATE_SSE | STATE_AVX;

    fn image() -> Image {
        let image = [const { Cell::new(0) }; IMAGE_WORDS];
        image[IMAGE_MXCSR].set(MXCSR);
        image
    }

    #[test]
    fn denied_parts_show_nothing_of_what_was_there() {
        for present in 0..=ALL {
            let image = image();
            image.iter().for_each(|word| word.set(!0));
            image[IMAGE_MXCSR].set(MXCSR);
            image[IMAGE_HEADER].set(present);
            complete(&image, MASK);
            let mut expected = [0; IMAGE_WORDS];
            for (part, words) in PARTS {
                expected[words].fill(if present & part != 0 { !0 } else { 0 });
            }
            // An x87 register has 80 bits of its two words.
            (5..20).step_by(2).for_each(|at| expected[at] &= 0xffff);
            expected[IMAGE_HEADER] = present;
            expected[IMAGE_MXCSR] = MXCSR | u64::from(MASK) << 32;
            if present & STATE_X87 == 0 {
                expected[0] = FCW;
            }
            assert_eq!(image.map(Cell::into_inner), expected);
            // A part of the whole, and each word belongs to at most one.
            let covered: usize = PARTS.iter().map(|(_, words)| words.len()).sum::<usize>()
                + RESERVED.iter().map(Range::len).sum::<usize>();
            assert_eq!(covered + 2, IMAGE_WORDS);
        }
    }

    #[test]
    fn images_on_which_a_load_faults_are_not_fit() {
        assert!(is_fit(&image(), ALL, MASK));
        let with = |at: usize, word: u64, parts: u64| {
            let image = image();
            image[at].set(word);
            is_fit(&image, parts, MASK)
        };
        for bit in 0..64 {
            let one = 1 << bit;
            assert_eq!(with(IMAGE_HEADER, one, ALL), bit < 3, "XSTATE_BV {bit}");
            assert_eq!(with(IMAGE_HEADER, one, STATE_X87 | STATE_SSE), bit < 2, "XSTATE_BV {bit}, no AVX");
            assert_eq!(with(IMAGE_MXCSR, one, ALL), !(16..32).contains(&bit), "MXCSR {bit}");
            for at in IMAGE_HEADER + 1..72 {
                assert!(!with(at, one, ALL), "word {at} of the image, {bit}");
            }
        }
        for at in (0..IMAGE_HEADER).chain(72..IMAGE_WORDS).filter(|&at| at != IMAGE_MXCSR) {
            assert!(with(at, !0, ALL), "word {at} of the image");
        }
    }
}
