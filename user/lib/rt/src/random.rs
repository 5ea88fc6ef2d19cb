//! Random numbers.
//!
//! A ChaCha generator for the whole program. Its seed is made of the processor's random numbers (RDSEED, RDRAND), and of those of the `entropy` server where the
//! program may ask it: whoever knows one of both knows nothing of the seed. Where there is neither, there is no [`Generator`], and so no random number. All that
//! is left then is [`weak_number`], whose name says it.
#![allow(unsafe_code)]

use crate::sync::Mutex;
use api::{Name, entropy, names};
use core::arch::x86_64::{__cpuid, __cpuid_count, _rdrand64_step, _rdseed64_step, _rdtsc};
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

const WORDS: usize = entropy::SEED_WORDS;

/// Numbers of one source.
type Words = [u64; WORDS];

static GENERATOR: Mutex<Option<(ChaCha20Rng, Sources)>> = Mutex::new(None);

/// How often an instruction is asked again that has no number at the moment, as Intel recommends (SDM volume 1, 7.3.17).
const TRIES: usize = 10;

/// Nobody here has random numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoEntropy;

impl fmt::Display for NoEntropy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("neither this processor nor a server has random numbers")
    }
}

/// Sources of a seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sources {
    /// The processor.
    pub processor: bool,
    /// The `entropy` server.
    pub server: bool,
}

/// Proof that this program's generator has a seed that nobody can guess.
#[derive(Clone, Copy, Debug)]
pub struct Generator(());

/// The generator of this program. It is seeded once; where that fails the next call tries again.
pub fn generator() -> Result<Generator, NoEntropy> {
    seeded(from_server)
}

/// The generator of a program without which the `entropy` server cannot answer, such as the memory manager: its seed is the processor's alone.
pub fn generator_without_server() -> Result<Generator, NoEntropy> {
    seeded(|| None)
}

fn seeded(from_server: impl FnOnce() -> Option<Words>) -> Result<Generator, NoEntropy> {
    if GENERATOR.lock().is_some() {
        return Ok(Generator(()));
    }
    // Nobody is kept waiting while a server is asked, but for who asks.
    let (processor, server) = (from_processor(), from_server());
    let seed = mixed(processor, server, core::array::from_fn(|_| weak_number()))?;
    let sources = Sources { processor: processor.is_some(), server: server.is_some() };
    GENERATOR.lock().get_or_insert_with(|| (ChaCha20Rng::from_seed(seed), sources));
    Ok(Generator(()))
}

impl Generator {
    /// Fills bytes.
    pub fn fill(self, bytes: &mut [u8]) {
        self.with(|(generator, _)| generator.fill_bytes(bytes));
    }

    /// A number, all of which are equally likely.
    pub fn number(self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number below `end`, all of which are equally likely; 0 if there is none.
    pub fn below(self, end: u64) -> u64 {
        if end == 0 {
            return 0;
        }
        // Numbers of the last, incomplete turn would make small ones more likely.
        let turns = u64::MAX - u64::MAX % end;
        loop {
            let number = self.number();
            if number < turns {
                return number % end;
            }
        }
    }

    /// Sources of its seed.
    pub fn sources(self) -> Sources {
        let mut sources = Sources { processor: false, server: false };
        self.with(|(_, found)| sources = *found);
        sources
    }

    fn with(self, action: impl FnOnce(&mut (ChaCha20Rng, Sources))) {
        // A `Generator` is made only where one is here, and it stays.
        if let Some(generator) = GENERATOR.lock().as_mut() {
            action(generator);
        }
    }
}

/// A number that is seldom one that was there before, for whoever can do without random ones: it is made of time, the thread's number and a count, so a stranger
/// guesses it with some effort.
pub fn weak_number() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // SAFETY: every x86-64 processor has the instruction, and the kernel allows it.
    let time = unsafe { _rdtsc() };
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    mix(mix(time, sys::myself().0), count)
}

/// A seed of all sources that there are, with numbers besides that are nobody's secret.
fn mixed(processor: Option<Words>, server: Option<Words>, weak: Words) -> Result<[u8; 32], NoEntropy> {
    if processor.is_none() && server.is_none() {
        return Err(NoEntropy);
    }
    let sources = [processor.unwrap_or_default(), server.unwrap_or_default(), weak];
    let mut seed = [0; 32];
    for (at, part) in seed.chunks_exact_mut(8).enumerate() {
        let word = sources.iter().fold(0, |word, source| word ^ source[at]);
        part.copy_from_slice(&word.to_le_bytes());
    }
    Ok(seed)
}

/// Numbers of an instruction. `None` if it has none for one of them, or the same for all: there are processors whose instruction always says that it has one.
fn words(mut next: impl FnMut() -> Option<u64>) -> Option<Words> {
    let mut words = [0; WORDS];
    for word in &mut words {
        *word = (0..TRIES).find_map(|_| next())?;
    }
    words.iter().any(|&word| word != words[0]).then_some(words)
}

fn from_processor() -> Option<Words> {
    let (has_rdseed, has_rdrand) = (has_rdseed(), has_rdrand());
    words(|| {
        let mut number = 0;
        // SAFETY: each is asked for its number only if CPUID says that it is there.
        let came = unsafe { (has_rdseed && rdseed(&mut number)) || (has_rdrand && rdrand(&mut number)) };
        came.then_some(number)
    })
}

fn from_server() -> Option<Words> {
    let server = names::resolve(crate::home(), &Name::new(entropy::NAME)?).ok()?;
    let words = entropy::seed(server).ok()?;
    words.iter().any(|&word| word != words[0]).then_some(words)
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

    #[test]
    fn an_instruction_that_has_no_number_is_no_source() {
        assert_eq!(words(|| None), None);
        assert_eq!(words(|| Some(u64::MAX)), None, "it says that it has one, and has not");
        assert_eq!(words(|| Some(0)), None);
        let mut calls = 0;
        // Each number comes at the tenth try.
        let slow = words(|| {
            calls += 1;
            (calls % TRIES == 0).then_some(calls as u64)
        });
        assert_eq!(slow, Some([10, 20, 30, 40]));
        let mut calls = 0;
        let too_slow = words(|| {
            calls += 1;
            (calls % (TRIES + 1) == 0).then_some(calls as u64)
        });
        assert_eq!(too_slow, None);
        let mut left = WORDS as u64 - 1;
        let ends = words(|| {
            left = left.checked_sub(1)?;
            Some(left)
        });
        assert_eq!(ends, None, "one number is missing");
    }

    #[test]
    fn a_seed_has_all_sources_or_is_none() {
        let (processor, server, weak) = ([1, 2, 3, 4], [0x10, 0x20, 0x30, 0x40], [0x100; 4]);
        assert_eq!(mixed(None, None, weak), Err(NoEntropy));
        let seeds = [
            mixed(Some(processor), None, weak).unwrap(),
            mixed(None, Some(server), weak).unwrap(),
            mixed(Some(processor), Some(server), weak).unwrap(),
        ];
        assert_eq!(seeds[0][..10], [1, 1, 0, 0, 0, 0, 0, 0, 2, 1]);
        assert_eq!(seeds[1][..10], [0x10, 1, 0, 0, 0, 0, 0, 0, 0x20, 1]);
        assert_eq!(seeds[2][..10], [0x11, 1, 0, 0, 0, 0, 0, 0, 0x22, 1]);
    }
}
