//! Random numbers.
//!
//! A ChaCha generator for the whole program, with a seed of the processor's random numbers where it has them (RDSEED, RDRAND).
//! [`is_strong`] says whether it has; without them the seed is made of what a stranger can guess with some effort, time and the number of
//! the thread, so keys must not be made of it.
#![allow(unsafe_code)]

use crate::sync::Mutex;
use core::arch::x86_64::{__cpuid, __cpuid_count, _rdrand64_step, _rdseed64_step, _rdtsc};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

static GENERATOR: Mutex<Option<ChaCha20Rng>> = Mutex::new(None);

/// How often an instruction is asked again that has no number at the moment, as Intel recommends (SDM volume 1, 7.3.17).
const TRIES: usize = 10;

/// Fills bytes.
pub fn fill(bytes: &mut [u8]) {
    with_generator(|generator| generator.fill_bytes(bytes));
}

/// A number, all of which are equally likely.
pub fn number() -> u64 {
    with_generator(RngCore::next_u64)
}

/// A number below `end`, all of which are equally likely; 0 if there is none.
pub fn below(end: u64) -> u64 {
    if end == 0 {
        return 0;
    }
    // Numbers of the last, incomplete turn would make small ones more likely.
    let turns = u64::MAX - u64::MAX % end;
    loop {
        let number = number();
        if number < turns {
            return number % end;
        }
    }
}

/// Whether the seed comes from the processor's random numbers, so that nobody can guess it.
pub fn is_strong() -> bool {
    has_rdseed() || has_rdrand()
}

fn with_generator<T>(action: impl FnOnce(&mut ChaCha20Rng) -> T) -> T {
    action(GENERATOR.lock().get_or_insert_with(|| ChaCha20Rng::from_seed(seed())))
}

fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    for (at, part) in seed.chunks_exact_mut(8).enumerate() {
        part.copy_from_slice(&mix(entropy(), at as u64).to_le_bytes());
    }
    seed
}

/// The best number that the processor has, and time.
fn entropy() -> u64 {
    let mut number = 0;
    // SAFETY: every x86-64 processor has the instruction, and the kernel allows it.
    let time = unsafe { _rdtsc() };
    for _ in 0..TRIES {
        // SAFETY: each is asked for its number only if CPUID says that it is there.
        let came = unsafe { (has_rdseed() && rdseed(&mut number)) || (has_rdrand() && rdrand(&mut number)) };
        if came {
            break;
        }
    }
    number ^ mix(time, sys::myself().0)
}

/// Spreads each bit over all (the finisher of MurmurHash3).
fn mix(one: u64, other: u64) -> u64 {
    let mut word = one ^ other.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        word = (word ^ (word >> 33)).wrapping_mul(factor);
    }
    word ^ (word >> 33)
}

/// # Safety
///
/// The processor has the instruction.
#[target_feature(enable = "rdseed")]
unsafe fn rdseed(number: &mut u64) -> bool {
    _rdseed64_step(number) == 1
}

/// # Safety
///
/// The processor has the instruction.
#[target_feature(enable = "rdrand")]
unsafe fn rdrand(number: &mut u64) -> bool {
    _rdrand64_step(number) == 1
}

fn has_rdrand() -> bool {
    __cpuid(1).ecx & 1 << 30 != 0
}

fn has_rdseed() -> bool {
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx & 1 << 18 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_spread() {
        let far = |one: u64, other: u64| (one ^ other).count_ones() > 12;
        assert!((0..64).all(|bit| far(mix(1 << bit, 0), mix(0, 0)) && far(mix(7, bit), mix(7, bit + 1))));
    }
}
