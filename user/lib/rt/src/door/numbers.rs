//! The program's numbers for door identifiers: which are in use. The lowest free one is the next, since the kernel's tables
//! cost memory for each 512 numbers.

use crate::sync::Mutex;
use alloc::vec::Vec;
use sys::abi::call::DOORS_MAX;

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { words: Vec::new(), first: 0 });

struct Numbers {
    /// A bit for each number in use.
    words: Vec<u64>,
    /// In no word before this one is a number free.
    first: usize,
}

/// A number that nobody else uses; `None` if there is none.
pub fn take() -> Option<u32> {
    let mut numbers = NUMBERS.lock();
    let Numbers { words, first } = &mut *numbers;
    while words.get(*first) == Some(&u64::MAX) {
        *first += 1;
    }
    if *first == words.len() {
        if *first as u32 == DOORS_MAX / u64::BITS {
            return None;
        }
        words.push(0);
    }
    let bit = words[*first].trailing_ones();
    words[*first] |= 1 << bit;
    Some(*first as u32 * u64::BITS + bit)
}

/// Nobody uses this number any more, and nothing is there.
pub fn free(number: u32) {
    let mut numbers = NUMBERS.lock();
    let index = (number / u64::BITS) as usize;
    numbers.words[index] &= !(1 << (number % u64::BITS));
    numbers.first = numbers.first.min(index);
}

/// How many are in use.
pub fn in_use() -> u32 {
    NUMBERS.lock().words.iter().map(|word| word.count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_is_next_and_there_is_an_end() {
        for number in 0..DOORS_MAX {
            assert_eq!(take(), Some(number));
        }
        assert_eq!((take(), in_use()), (None, DOORS_MAX));
        for number in [DOORS_MAX - 1, 700, 64, 63] {
            free(number);
        }
        for number in [63, 64, 700, DOORS_MAX - 1] {
            assert_eq!(take(), Some(number));
        }
        assert_eq!(take(), None);
    }
}
