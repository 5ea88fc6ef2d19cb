//! Rings of packets (`user/lib/ring`), as they are: a wake that is lost shows as two sides that both wait, which loom reports.

use crate::ring::{Consumer, PACKET_MAX, Producer, SLOT_WORDS};
use crate::word::AtomicU64;
use loom::sync::Notify;
use loom::thread;
use std::sync::Arc;

/// Preemptions in a run.
const PREEMPTIONS: usize = 3;

/// Packets that are put.
const PACKETS: u8 = 2;

/// A ring, and a way to wake who takes from it, which is remembered, as an answer to a call is that has not yet begun to wait.
struct Way {
    words: Vec<AtomicU64>,
    wake: Notify,
}

/// Puts some packets, one by one, and wakes who sleeps. With a ring of one slot it has to wait for room, too, which it does by looking again.
fn put(way: &Way) {
    let mut producer = Producer::new(&way.words).expect("a ring");
    for number in 0..PACKETS {
        while !producer.put(&[number]).expect("nobody lies") {
            thread::yield_now();
        }
        if producer.wakes() {
            way.wake.notify();
        }
    }
}

fn take(way: &Way) {
    let mut consumer = Consumer::new(&way.words).expect("a ring");
    let mut packet = [0; PACKET_MAX];
    for number in 0..PACKETS {
        loop {
            match consumer.take(&mut packet).expect("nobody lies") {
                Some(len) => break assert_eq!(packet[..len], [number]),
                None if consumer.may_sleep().expect("nobody lies") => way.wake.wait(),
                None => {}
            }
        }
    }
}

#[test]
fn who_sleeps_at_a_ring_is_woken() {
    for slots in [1, 2] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(move || {
            let words = (0..(1 + slots) * SLOT_WORDS).map(|_| AtomicU64::new(0)).collect();
            let way = Arc::new(Way { words, wake: Notify::new() });
            let theirs = way.clone();
            let producer = thread::spawn(move || put(&theirs));
            take(&way);
            producer.join().expect("it ends");
        });
    }
}
