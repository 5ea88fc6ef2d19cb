//! Random numbers of the stack, the numbers with which connections begin, and the order of ports.
//!
//! All are made of one seed by a generator whose numbers tell nothing of those before and after them, so a client that has the number of a socket, or another machine that sees ports, knows no other one.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::net::SocketAddr;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Bytes of a seed.
pub const SEED: usize = 32;

/// The first of the ports that are given to who does not say which.
const FIRST_FREE_PORT: u16 = 49152;

/// The clock with which numbers of connections grow counts one in so many microseconds.
pub(crate) const TICK_US: u64 = 4;

/// Random numbers.
pub(crate) struct Random {
    numbers: ChaCha20Rng,
    /// Key of the hash that numbers of connections are made of.
    key: [u64; 2],
}

impl Random {
    pub fn new(seed: [u8; SEED]) -> Random {
        let mut keys = ChaCha20Rng::from_seed(seed);
        keys.set_stream(1);
        Random { numbers: ChaCha20Rng::from_seed(seed), key: [keys.next_u64(), keys.next_u64()] }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.numbers.next_u64()
    }

    /// The number with which a connection between two ends, this machine's first, begins at a time: a clock, counted from a number that nobody guesses and that belongs to these ends (RFC 6528). So a connection of
    /// ends that had one before begins above all that was sent in that one, unless it sent more than the clock counts, which is 250,000 bytes in a second.
    pub fn beginning(&self, ends: [SocketAddr; 2], now_us: u64) -> u32 {
        // SipHash is what this needs: short, keyed, and looked at by many. The library has kept it under this name, which is deprecated for tables, since those should not name their hash.
        #[expect(deprecated, reason = "the hash itself is meant, not any")]
        let mut hasher = core::hash::SipHasher::new_with_keys(self.key[0], self.key[1]);
        ends.hash(&mut hasher);
        (hasher.finish() as u32).wrapping_add((now_us / TICK_US) as u32)
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

    /// Numbers of the same ends grow with time; those of others, and of another machine, begin anywhere.
    #[test]
    fn numbers_of_connections_grow_with_time() {
        let random = Random::new([7; SEED]);
        let end = |text: &str| text.parse::<SocketAddr>().expect("an end");
        let ends = [end("10.1.0.1:50000"), end("10.1.0.2:80")];
        let first = random.beginning(ends, 0);
        for now_us in [0, 3, 4, 1_000_000, 4 * 60 * 1_000_000, 1 << 33, (1 << 34) + 8, u64::MAX] {
            assert_eq!(random.beginning(ends, now_us).wrapping_sub(first), (now_us / TICK_US) as u32);
        }
        let others = [
            [ends[1], ends[0]],
            [ends[0], end("10.1.0.2:81")],
            [end("10.1.0.1:50001"), ends[1]],
            [end("10.1.0.3:50000"), ends[1]],
            [end("[fe80::1]:50000"), end("[fe80::2]:80")],
        ];
        let mut all: Vec<u32> = others.iter().map(|&ends| random.beginning(ends, 0)).collect();
        all.extend([first, Random::new([8; SEED]).beginning(ends, 0)]);
        let near = |at: usize| all[at + 1..].iter().any(|&other| all[at].abs_diff(other) < 1 << 12);
        assert!(!(0..all.len()).any(near), "{all:?}");
    }

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
