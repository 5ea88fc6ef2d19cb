//! Tests of the ring: against a queue, and against a partner that lies.

use crate::ring::{Broken, Consumer, PACKET_MAX, Producer, SLOT_WORDS};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::vec;
use std::vec::Vec;

/// Operations of the random test, plain and full.
const STEPS: [usize; 2] = [20_000, 1_000_000];

pub(crate) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

fn words(slots: usize) -> Vec<AtomicU64> {
    (0..(1 + slots) * SLOT_WORDS).map(|_| AtomicU64::new(0)).collect()
}

#[test]
fn a_ring_needs_room() {
    assert!(Producer::new(&words(0)).is_none() && Consumer::new(&words(0)).is_none());
    assert!(Producer::new(&words(1)).is_some());
}

#[test]
fn lengths_at_the_borders_arrive() {
    let words = words(2);
    let (mut producer, mut consumer) = (Producer::new(&words).unwrap(), Consumer::new(&words).unwrap());
    let mut to = [0; PACKET_MAX];
    for len in [0, 1, 7, 8, 9, 1514, PACKET_MAX - 1, PACKET_MAX] {
        let packet: Vec<u8> = (0..len).map(|at| at as u8).collect();
        assert_eq!(producer.put(&packet), Ok(true));
        assert_eq!(consumer.take(&mut to), Ok(Some(len)));
        assert_eq!(&to[..len], &packet[..]);
    }
    assert_eq!(producer.put(&vec![0; PACKET_MAX + 1]), Ok(false));
    assert_eq!(consumer.take(&mut to), Ok(None));
}

/// A ring does what a queue of that size does.
#[test]
fn a_ring_is_a_queue() {
    let full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    let mut random = Random(1);
    for slots in [1, 2, 3, 7, 31] {
        let words = words(slots);
        let (mut producer, mut consumer) = (Producer::new(&words).unwrap(), Consumer::new(&words).unwrap());
        let mut model: VecDeque<Vec<u8>> = VecDeque::new();
        let mut to = [0; PACKET_MAX];
        // Runs of one kind, so that it is full and empty often.
        let mut puts = true;
        for _ in 0..STEPS[usize::from(full)] / 5 {
            if random.below(slots as u64 + 1) == 0 {
                puts = !puts;
            }
            if puts {
                let packet: Vec<u8> = (0..random.below(64)).map(|_| random.below(256) as u8).collect();
                let fits = model.len() < slots;
                assert_eq!(producer.put(&packet), Ok(fits));
                model.extend(fits.then_some(packet));
            } else {
                let taken = consumer.take(&mut to).unwrap();
                assert_eq!(taken.map(|len| to[..len].to_vec()), model.pop_front());
            }
            assert_eq!(producer.waiting(), Ok(model.len() as u64));
            assert_eq!(consumer.waiting(), Ok(model.len() as u64));
        }
    }
}

/// A sleeper is woken once, and nobody sleeps while there is something.
#[test]
fn a_sleeper_is_woken_once() {
    let words = words(2);
    let (mut producer, mut consumer) = (Producer::new(&words).unwrap(), Consumer::new(&words).unwrap());
    assert!(!producer.wakes(), "nobody sleeps");
    assert_eq!(consumer.may_sleep(), Ok(true));
    assert_eq!(producer.put(b"a"), Ok(true));
    assert!(producer.wakes());
    assert!(!producer.wakes(), "it is awake");
    assert_eq!(consumer.may_sleep(), Ok(false), "there is something");
    assert!(!producer.wakes(), "it does not sleep");
    consumer.take(&mut [0; PACKET_MAX]).unwrap();
    assert_eq!(consumer.may_sleep(), Ok(true));
    assert!(producer.wakes());
    producer.could_not_wake();
    assert!(producer.wakes(), "it has not been woken");
}

/// Numbers and lengths that cannot be are refused by who reads them, and nothing outside of the ring is read.
#[test]
fn lies_are_found() {
    let slots = 3;
    let impossible = [slots + 1, slots + 2, 1 << 32, 1 << 63, u64::MAX, u64::MAX - slots];
    for lie in impossible {
        let words = words(slots as usize);
        let mut consumer = Consumer::new(&words).unwrap();
        words[0].store(lie, Ordering::Relaxed);
        assert_eq!(consumer.take(&mut [0; PACKET_MAX]), Err(Broken), "tail {lie}");
        assert_eq!(consumer.may_sleep(), Err(Broken));
        let mut producer = Producer::new(&words).unwrap();
        words[8].store(lie, Ordering::Relaxed);
        // All but numbers that were never put look like more than there is room for.
        if lie != u64::MAX && lie != u64::MAX - slots + 1 {
            let seen = producer.put(b"x");
            assert!(seen == Err(Broken) || 0u64.wrapping_sub(lie) <= slots, "head {lie}: {seen:?}");
        }
    }
    for lie in [PACKET_MAX as u64 + 1, 1 << 32, u64::MAX] {
        let words = words(slots as usize);
        let (mut producer, mut consumer) = (Producer::new(&words).unwrap(), Consumer::new(&words).unwrap());
        assert_eq!(producer.put(b"packet"), Ok(true));
        words[SLOT_WORDS].store(lie, Ordering::Relaxed);
        assert_eq!(consumer.take(&mut [0; PACKET_MAX]), Err(Broken), "length {lie}");
    }
}

/// Whatever is written into the memory, both sides go on or say that it is broken.
#[test]
fn random_memory_does_no_harm() {
    let mut random = Random(7);
    let mut broken = 0;
    for _ in 0..2_000 {
        let words = words(2);
        let (mut producer, mut consumer) = (Producer::new(&words).unwrap(), Consumer::new(&words).unwrap());
        for _ in 0..8 {
            let at = [0, 8, 16, SLOT_WORDS, 2 * SLOT_WORDS][random.below(5) as usize];
            let value =
                [random.below(4), random.below(4096), u64::MAX - random.below(4)][random.below(3) as usize];
            words[at].store(value, Ordering::Relaxed);
            broken += usize::from(producer.put(b"some packet").is_err());
            broken += usize::from(consumer.take(&mut [0; PACKET_MAX]).is_err());
            broken += usize::from(consumer.may_sleep().is_err());
            let _ = producer.wakes();
        }
    }
    assert!(broken > 1000, "{broken}");
}
