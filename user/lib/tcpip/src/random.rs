//! Random numbers of the stack, and the order of its ports.
//!
//! All are made of one seed by a generator whose numbers tell nothing of those before and after them, so a client that has the number of a socket, or another machine that sees ports, knows no other one.

use alloc::vec::Vec;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Bytes of a seed.
pub const SEED: usize = 32;

/// The first of the ports that are given to who does not say which.
const FIRST_FREE_PORT: u16 = 49152;

/// Random numbers.
pub(crate) struct Random(ChaCha20Rng);

impl Random {
    pub fn new(seed: [u8; SEED]) -> Random {
        Random(ChaCha20Rng::from_seed(seed))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`, which is a power of two.
    fn below(&mut self, end: usize) -> usize {
        self.number() as usize & (end - 1)
    }
}

/// Ports in an order that nobody guesses. One that was given is not given again before half of all others were, so the other side of its last connection has forgotten that: this is the first algorithm of RFC 6056,
/// without its weakness.
pub(crate) struct Ports {
    /// All of them, the one that was given last just before `next`.
    ring: Vec<u16>,
    next: usize,
}

impl Default for Ports {
    fn default() -> Ports {
        Ports { ring: (FIRST_FREE_PORT..=u16::MAX).collect(), next: 0 }
    }
}

impl Ports {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.ring.len()
    }

    /// The next one.
    pub fn next(&mut self, random: &mut Random) -> u16 {
        let count = self.ring.len();
        let chosen = (self.next + random.below(count / 2)) % count;
        self.ring.swap(self.next, chosen);
        let port = self.ring[self.next];
        self.next = (self.next + 1) % count;
        port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// None comes back soon, all come at last, and the order is none that a machine would guess from the last one.
    #[test]
    fn ports_come_in_no_order() {
        let (mut ports, mut random) = (Ports::default(), Random::new([7; SEED]));
        let count = ports.count();
        assert_eq!(count, 16384);
        let all: Vec<u16> = (0..40 * count).map(|_| ports.next(&mut random)).collect();
        let mut last = std::vec![None; 1 << 16];
        for (at, &port) in all.iter().enumerate() {
            let before: Option<usize> = last[usize::from(port)].replace(at);
            assert!(before.is_none_or(|before| at - before > count / 2), "{port} after {before:?} at {at}");
        }
        assert_eq!(last.iter().flatten().count(), count, "some port never comes");
        let steps = |step: u16| all.windows(2).filter(|pair| pair[1].wrapping_sub(pair[0]) == step).count();
        assert!((1..10).chain(u16::MAX - 10..=u16::MAX).all(|step| steps(step) < all.len() / 1000));
    }
}
