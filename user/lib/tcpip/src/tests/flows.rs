//! Connections whose bytes go through memory: against what calls do, with programs that stop in the middle, and with some that write nonsense.

use super::hostile::Random;
use super::{Host, connection, end};
use crate::flows::{Flow, Part};
use crate::readiness::{READABLE, WRITABLE};
use crate::{Id, Refusal};
use ring::stream::{self, Reader, Side, Store, WORDS, Writer};
use std::boxed::Box;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::vec;
use std::vec::Vec;

/// Bytes of each stream: few, so that everything is full all the time.
const BYTES: usize = 3000;

/// Memory of this process, which stays.
#[derive(Clone, Copy)]
struct Own(&'static RefCell<Vec<u8>>);

impl Store for Own {
    fn size(&self) -> usize {
        self.0.borrow().len()
    }

    fn get(&self, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.0.borrow()[at..at + to.len()]);
    }

    fn put(&self, at: usize, from: &[u8]) {
        self.0.borrow_mut()[at..at + from.len()].copy_from_slice(from);
    }
}

fn words(count: usize) -> &'static [AtomicU64] {
    Box::leak((0..count).map(|_| AtomicU64::new(0)).collect())
}

/// A program's ends.
struct Program {
    words: &'static [AtomicU64],
    to_send: Writer<'static, Own>,
    received: Reader<'static, Own>,
}

/// A connection's streams, for the server and for the program, which uses them already.
fn shared() -> (Flow<Own>, Program) {
    let words = words(1 + 2 * WORDS);
    let (begun, streams) = words.split_first().unwrap();
    let (to_send, received) = streams.split_at(WORDS);
    let stores = [0; 2].map(|_| Own(Box::leak(Box::new(RefCell::new(vec![0; BYTES])))));
    let parts = [(to_send, stores[0]), (received, stores[1])].map(|(words, store)| Part { words, store });
    let [first, second] = parts;
    let flow = Flow::new(begun, first, second).unwrap();
    begun.store(1, Ordering::Release);
    let program = Program {
        words,
        to_send: Writer::new(to_send, stores[0]).unwrap(),
        received: Reader::new(received, stores[1]).unwrap(),
    };
    (flow, program)
}

/// A turn as the server takes it. Says whether there was something to do again at once.
fn turn(host: &mut Host, flows: &mut [(Id, Flow<Own>)]) -> bool {
    let mut all = |host: &mut Host| {
        flows.iter_mut().fold(false, |more, (id, flow)| flow.turn(&mut host.stack, *id) | more)
    };
    all(host);
    host.turn(1);
    all(host)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| ((at * 31) >> 4) as u8).collect()
}

/// One end writes and the other one reads, in pieces of all sizes, each through memory or by calls.
#[test]
fn all_bytes_arrive_by_either_way() {
    let all = pattern(150_000);
    for (seed, ways) in [[true, true], [true, false], [false, true]].into_iter().enumerate() {
        let mut host = Host::new(20 + seed as u64, None);
        let (_, near, far) = connection(&mut host, "127.0.0.1:80");
        let [(near_flow, mut writer), (far_flow, mut reader)] = [shared(), shared()];
        let ends = [(near, near_flow), (far, far_flow)];
        let mut flows: Vec<_> =
            ends.into_iter().zip(ways).filter(|(_, way)| *way).map(|(end, _)| end).collect();
        let mut random = Random(seed as u64);
        let (mut written, mut read, mut is_shut) = (0, Vec::new(), false);
        for _ in 0..10_000 {
            let piece = &all[written..][..random.below(5000).min(all.len() - written)];
            written += match ways[0] {
                true => writer.to_send.write(piece).unwrap(),
                false => host.stack.write(near, piece).unwrap_or(0),
            };
            turn(&mut host, &mut flows);
            if written == all.len() && !is_shut {
                is_shut = !ways[0] || flows[0].1.drain(&mut host.stack, near);
                if is_shut {
                    host.stack.shutdown(near).unwrap();
                }
            }
            let mut bytes = vec![0; random.below(5000) + 1];
            let outcome = match ways[1] {
                true => match reader.received.read(&mut bytes).unwrap() {
                    0 if !reader.received.is_over().unwrap() => Err(Refusal::Again),
                    len => Ok(len),
                },
                false => host.stack.read(far, &mut bytes),
            };
            match outcome {
                Ok(0) => break,
                Ok(len) => read.extend_from_slice(&bytes[..len]),
                Err(refusal) => assert_eq!(refusal, Refusal::Again),
            }
        }
        assert!(read == all, "{ways:?}: {} of {} bytes", read.len(), all.len());
    }
}

/// A program waits for a socket as it would without streams, and is told when its streams are ready. The server sleeps, and says so, when it has moved everything.
#[test]
fn who_waits_is_told_by_the_streams() {
    let mut host = Host::new(30, None);
    let (_, near, far) = connection(&mut host, "127.0.0.1:80");
    let [(near_flow, mut writer), (far_flow, mut reader)] = [shared(), shared()];
    let mut flows = [(near, near_flow), (far, far_flow)];
    let ready = |host: &mut Host, flow: &Flow<Own>, id| flow.ready(host.stack.ready(id)).unwrap();
    turn(&mut host, &mut flows);
    assert_eq!(ready(&mut host, &flows[1].1, far), WRITABLE);
    assert_eq!(writer.to_send.write(b"eight by"), Ok(8));
    assert!(writer.to_send.wakes(), "it sleeps");
    assert!(!writer.to_send.wakes(), "it has been woken");
    turn(&mut host, &mut flows);
    assert_eq!(ready(&mut host, &flows[1].1, far), READABLE | WRITABLE);
    let mut bytes = [0; 100];
    assert_eq!(reader.received.read(&mut bytes), Ok(8));
    assert_eq!(ready(&mut host, &flows[1].1, far), WRITABLE);
    // Until nothing moves any more: both streams and both sockets are full.
    let (mut written, mut rounds) = (0, 0);
    while rounds < 10 {
        let count = writer.to_send.write(&[7; 999]).unwrap();
        writer.to_send.wakes();
        turn(&mut host, &mut flows);
        rounds = if count == 0 { rounds + 1 } else { 0 };
        written += count;
    }
    assert!(written > 4 * BYTES, "{written}");
    assert_eq!(ready(&mut host, &flows[0].1, near) & WRITABLE, 0, "there is no room");
    assert!(!writer.to_send.wakes(), "it waits for the socket, and not for this program");
    // A reader makes room, and everything arrives.
    let mut read = 0;
    for _ in 0..200 {
        let mut bytes = [0; 1000];
        read += reader.received.read(&mut bytes).unwrap();
        assert!(reader.received.wakes().is_ok());
        turn(&mut host, &mut flows);
        host.turn(4);
    }
    assert_eq!(read, written);
    assert_eq!(ready(&mut host, &flows[0].1, near), WRITABLE);
}

/// Bytes that were written arrive when the program is gone, as they do without streams.
#[test]
fn a_program_that_goes_has_sent_everything() {
    let mut host = Host::new(31, None);
    let (_, near, far) = connection(&mut host, "127.0.0.1:80");
    let (flow, mut writer) = shared();
    let mut flows = [(near, flow)];
    let all = pattern(30_000);
    let (mut written, mut read, mut bytes) = (0, Vec::new(), [0; 999]);
    // It fills what the sockets keep on both sides, and the stream.
    for _ in 0..40 {
        written += writer.to_send.write(&all[written..]).unwrap();
        turn(&mut host, &mut flows);
    }
    let mut is_closed = false;
    for _ in 0..400 {
        if !is_closed && flows[0].1.drain(&mut host.stack, near) {
            host.stack.close(near);
            is_closed = true;
        }
        host.turn(1);
        match host.stack.read(far, &mut bytes) {
            Ok(0) => break,
            Ok(len) => read.extend_from_slice(&bytes[..len]),
            Err(refusal) => assert_eq!(refusal, Refusal::Again),
        }
    }
    assert!(is_closed && read == all[..written], "{} of {written} bytes", read.len());
}

/// When there was no time for all bytes, the other side hears that, and does not take what it has for all of it.
#[test]
fn a_connection_that_is_broken_off_has_no_orderly_end() {
    let mut host = Host::new(35, None);
    let (_, near, far) = connection(&mut host, "127.0.0.1:80");
    let (flow, mut writer) = shared();
    let mut flows = [(near, flow)];
    let mut written = 0;
    for _ in 0..40 {
        written += writer.to_send.write(&[1; 3000]).unwrap();
        turn(&mut host, &mut flows);
    }
    assert!(!flows[0].1.drain(&mut host.stack, near), "nobody reads");
    host.stack.break_off(near);
    host.turn(20);
    let (mut read, mut bytes) = (0, [0; 999]);
    let end = loop {
        match host.stack.read(far, &mut bytes) {
            Ok(len) if len > 0 => read += len,
            end => break end,
        }
    };
    assert!(end == Err(Refusal::Closed) && read < written, "{end:?} after {read} of {written} bytes");
    assert_eq!((host.stack.owned(1), host.stack.ready(near)), (0, Err(Refusal::Closed)));
}

/// Bytes that wait in memory are known, since a call that read would overtake them.
#[test]
fn what_waits_in_memory_comes_first() {
    let mut host = Host::new(36, None);
    let (_, near, far) = connection(&mut host, "127.0.0.1:80");
    let (flow, mut program) = shared();
    let mut flows = [(near, flow)];
    assert!(!flows[0].1.holds_received());
    host.stack.write(far, b"first").unwrap();
    turn(&mut host, &mut flows);
    assert!(flows[0].1.holds_received());
    let mut bytes = [0; 9];
    assert_eq!(program.received.read(&mut bytes), Ok(5));
    assert!(!flows[0].1.holds_received());
    // A program that uses it no more gets the rest by calls.
    host.stack.write(far, b"second").unwrap();
    turn(&mut host, &mut flows);
    program.words[0].store(0, Ordering::Release);
    assert!(!flows[0].1.holds_received());
}

/// A program hears of the other side's end, and of a connection that is broken off, after what came before.
#[test]
fn ends_are_told() {
    for is_reset in [false, true] {
        let mut host = Host::new(32, None);
        let (_, near, far) = connection(&mut host, "127.0.0.1:80");
        let (flow, mut program) = shared();
        let mut flows = [(near, flow)];
        host.stack.write(far, b"last words").unwrap();
        turn(&mut host, &mut flows);
        if is_reset {
            // Bytes for somebody who reads no more break the connection off.
            host.stack.close(far);
            for _ in 0..20 {
                program.to_send.write(b"too late").unwrap();
                turn(&mut host, &mut flows);
                host.now_us += 20 * super::SECOND_US;
            }
            assert!(program.to_send.is_over());
        } else {
            host.stack.shutdown(far).unwrap();
            turn(&mut host, &mut flows);
            assert!(!program.to_send.is_over(), "the other direction is open");
        }
        let mut bytes = [0; 100];
        assert_eq!(program.received.read(&mut bytes), Ok(10));
        assert_eq!(program.received.is_over(), Ok(true), "reset: {is_reset}");
        assert_eq!(flows[0].1.ready(host.stack.ready(near)).unwrap() & READABLE, READABLE);
    }
}

/// Until a program says that it uses the streams, its calls get everything.
#[test]
fn streams_that_nobody_uses_take_nothing() {
    let mut host = Host::new(33, None);
    let (_, near, far) = connection(&mut host, "127.0.0.1:80");
    let (flow, program) = shared();
    program.words[0].store(0, Ordering::Release);
    let mut flows = [(near, flow)];
    host.stack.write(far, b"for a call").unwrap();
    assert!(!turn(&mut host, &mut flows) && !turn(&mut host, &mut flows));
    assert_eq!(flows[0].1.ready(host.stack.ready(near)), Ok(READABLE | WRITABLE));
    let mut bytes = [0; 100];
    assert_eq!(host.stack.read(near, &mut bytes), Ok(10));
    assert!(flows[0].1.drain(&mut host.stack, near), "there is nothing to be sent");
    assert_eq!(flows[0].1.ready(host.stack.ready(near ^ 1)), Err(Refusal::Closed), "nobody has this one");
}

/// Programs of the property, plain and full.
const PROGRAMS: [u64; 2] = [300, 30_000];

/// Somebody writes nonsense to all words all the time: each turn comes to an end, the stack goes on, and another connection has all of its bytes.
#[test]
fn nonsense_in_memory_harms_its_own_connection_alone() {
    let full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    let mut broken = 0;
    for seed in 0..PROGRAMS[usize::from(full)] {
        let mut random = Random(seed);
        let mut host = Host::new(34, None);
        let (listener, near, far) = connection(&mut host, "127.0.0.1:80");
        let (flow, mut program) = shared();
        let other = host.stack.open(3, crate::Kind::Tcp).unwrap();
        host.stack.connect(other, end("127.0.0.1:80")).unwrap();
        host.turn(8);
        let others = host.stack.accept(listener).unwrap();
        let mut flows = [(near, flow)];
        let mut bytes = [0; 4096];
        for round in 0..30u8 {
            let word = random.below(program.words.len());
            let value =
                [0, 1, u64::MAX, random.below(BYTES) as u64, random.below(9000) as u64][random.below(5)];
            program.words[word].store(value, Ordering::Relaxed);
            if random.below(2) == 0 {
                let _ = program.to_send.write(&[round; 777]);
                stream::close(&program.words[1..], [Side::Reader, Side::Writer][random.below(2)]);
            }
            let _ = host.stack.write(far, &[round; 500]);
            assert_eq!(host.stack.write(other, &[round; 100]), Ok(100));
            turn(&mut host, &mut flows);
            host.turn(4);
            let _ = flows[0].1.ready(host.stack.ready(near));
            assert_eq!(host.stack.read(others, &mut bytes), Ok(100));
            assert!(bytes[..100].iter().all(|&byte| byte == round));
        }
        broken += usize::from(program.to_send.write(b"x").is_err() || program.received.waiting().is_err());
        let mut is_drained = false;
        for _ in 0..200 {
            let _ = host.stack.read(far, &mut bytes);
            is_drained = is_drained || flows[0].1.drain(&mut host.stack, near);
            host.turn(2);
        }
        assert!(is_drained, "seed {seed}: what is to be sent has no end");
    }
    assert!(broken > 0);
}
