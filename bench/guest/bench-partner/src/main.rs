//! The other end of the pipes that `bench` measures: takes as many bytes as it is told that come, and answers with something of them.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

rt::entry!(main);

/// Bytes that are read at once.
const PAGE: usize = 4096;

fn main() -> i32 {
    let mut bytes = [0; PAGE];
    let mut word = [0; 8];
    while let Ok(8) = rt::io::read(&mut word) {
        let mut left = u64::from_le_bytes(word) as usize;
        let mut sum = 0u64;
        while left > 0 {
            let Ok(count @ 1..) = rt::io::read(&mut bytes[..left.min(PAGE)]) else { return 1 };
            sum = sum.wrapping_add(bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)));
            left -= count;
        }
        rt::io::write(&sum.to_le_bytes());
    }
    0
}
