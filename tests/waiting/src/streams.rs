//! Streams of bytes (`user/lib/ring`), as they are: a wake that is lost shows as sides that wait for ever, which loom reports.

use crate::stream::{self, Reader, Side, Store, WORDS, Writer};
use crate::word::AtomicU64;
use loom::sync::Notify;
use loom::thread;
use std::sync::Arc;

/// Preemptions in a run.
const PREEMPTIONS: usize = 2;

/// Bytes that are written: more than there is room for.
const BYTES: [u8; 3] = [1, 2, 3];

/// A stream, and ways to wake both of its sides, which are remembered, as an answer to a call is that has not yet begun to wait.
struct Way {
    words: Vec<AtomicU64>,
    bytes: Vec<AtomicU64>,
    reader: Notify,
    writer: Notify,
}

/// A word for each byte.
impl Store for &Way {
    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn get(&self, at: usize, to: &mut [u8]) {
        for (byte, word) in to.iter_mut().zip(&self.bytes[at..]) {
            *byte = word.load(crate::word::Ordering::Relaxed) as u8;
        }
    }

    fn put(&self, at: usize, from: &[u8]) {
        for (&byte, word) in from.iter().zip(&self.bytes[at..]) {
            word.store(byte.into(), crate::word::Ordering::Relaxed);
        }
    }
}

/// Writes all bytes, and says that this was all.
fn write(way: &Way) {
    let mut writer = Writer::new(&way.words, way).expect("a stream");
    let mut rest = &BYTES[..];
    while !rest.is_empty() {
        let count = writer.write(rest).expect("nobody lies");
        rest = &rest[count..];
        if writer.wakes() {
            way.reader.notify();
        }
        if count == 0 && writer.may_sleep().expect("nobody lies") {
            way.writer.wait();
        }
    }
    if stream::close(&way.words, Side::Writer) {
        way.reader.notify();
    }
}

/// Reads to the end.
fn read(way: &Way) {
    let mut reader = Reader::new(&way.words, way).expect("a stream");
    let mut all: Vec<u8> = Vec::new();
    loop {
        let mut to = [0; 2];
        let count = reader.read(&mut to).expect("nobody lies");
        all.extend(&to[..count]);
        if reader.wakes().expect("nobody lies") {
            way.writer.notify();
        }
        if count == 0 {
            if reader.is_over().expect("nobody lies") {
                break;
            }
            if reader.may_sleep().expect("nobody lies") {
                way.reader.wait();
            }
        }
    }
    assert_eq!(all, BYTES);
}

fn all_ways(writes: fn(&Way), reads: fn(&Way)) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS);
    model.check(move || {
        let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        let way = Arc::new(Way {
            words: zeros(WORDS),
            bytes: zeros(2),
            reader: Notify::new(),
            writer: Notify::new(),
        });
        let theirs = way.clone();
        let writer = thread::spawn(move || writes(&theirs));
        reads(&way);
        writer.join().expect("it ends");
    });
}

#[test]
fn who_sleeps_at_a_stream_is_woken_and_hears_of_its_end() {
    all_ways(write, read);
}

/// The side that reads ends first.
#[test]
fn who_writes_hears_that_nobody_reads() {
    let write = |way: &Way| {
        let mut writer = Writer::new(&way.words, way).expect("a stream");
        while !writer.is_over() {
            let count = writer.write(&BYTES).expect("nobody lies");
            if count == 0 && writer.may_sleep().expect("nobody lies") {
                way.writer.wait();
            }
        }
    };
    let read = |way: &Way| {
        if stream::close(&way.words, Side::Reader) {
            way.writer.notify();
        }
    };
    all_ways(write, read);
}
