//! Tests of the stream: against a queue, and against a partner that lies.

use crate::ring::Broken;
use crate::stream::{self, Reader, Side, Store, WORDS, Writer};
use crate::tests::Random;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::vec;
use std::vec::Vec;

/// Operations of the random test, plain and full.
const STEPS: [usize; 2] = [20_000, 1_000_000];

/// Memory of this process.
struct Own(RefCell<Vec<u8>>);

impl Store for &Own {
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

fn words() -> Vec<AtomicU64> {
    (0..WORDS).map(|_| AtomicU64::new(0)).collect()
}

fn store(len: usize) -> Own {
    Own(RefCell::new(vec![0; len]))
}

#[test]
fn a_stream_needs_room() {
    let (few, small, enough) = (&words()[1..], store(1), store(2));
    assert!(Writer::new(few, &enough).is_none() && Reader::new(few, &enough).is_none());
    let words = words();
    assert!(Writer::new(&words, &small).is_none() && Reader::new(&words, &small).is_none());
    assert!(Writer::new(&words, &enough).is_some());
}

/// A stream does what a queue of bytes of that size does, whatever pieces are written and read.
#[test]
fn a_stream_is_a_queue() {
    let full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    let mut random = Random(1);
    for len in [2, 3, 8, 61, 4096] {
        let (words, store) = (words(), store(len));
        let (mut writer, mut reader) =
            (Writer::new(&words, &store).unwrap(), Reader::new(&words, &store).unwrap());
        let mut model: VecDeque<u8> = VecDeque::new();
        let mut writes = true;
        for _ in 0..STEPS[usize::from(full)] / 5 {
            if random.below(4) == 0 {
                writes = !writes;
            }
            let count = random.below(len as u64 + 2) as usize;
            if writes {
                let bytes: Vec<u8> = (0..count).map(|_| random.below(256) as u8).collect();
                let fits = count.min(len - model.len());
                assert_eq!(writer.write(&bytes), Ok(fits));
                model.extend(&bytes[..fits]);
            } else {
                let mut to = vec![0; count];
                let there = count.min(model.len());
                assert_eq!(reader.read(&mut to), Ok(there));
                assert_eq!(to[..there], model.drain(..there).collect::<Vec<_>>());
            }
            assert_eq!(reader.waiting(), Ok(model.len()));
            assert_eq!(reader.may_sleep(), Ok(model.is_empty()));
            assert_eq!(writer.may_sleep(), Ok(model.len() == len));
            assert_eq!(writer.wakes(), model.is_empty());
        }
    }
}

#[test]
fn a_reader_is_woken_by_every_byte_and_a_writer_by_half_of_the_room() {
    let (words, store) = (words(), store(8));
    let (mut writer, mut reader) =
        (Writer::new(&words, &store).unwrap(), Reader::new(&words, &store).unwrap());
    assert_eq!(reader.may_sleep(), Ok(true));
    assert_eq!(writer.write(b"a"), Ok(1));
    assert!(writer.wakes());
    assert!(!writer.wakes(), "it is awake");
    assert_eq!(reader.may_sleep(), Ok(false), "there is something");
    assert_eq!(writer.write(b"bcdefghijk"), Ok(7));
    assert_eq!(writer.may_sleep(), Ok(true));
    let mut to = [0; 3];
    assert_eq!((reader.read(&mut to), reader.wakes()), (Ok(3), Ok(false)));
    assert_eq!((reader.read(&mut to), reader.wakes()), (Ok(3), Ok(true)));
    assert_eq!(reader.wakes(), Ok(false), "it is awake");
    reader.could_not_wake();
    assert_eq!(reader.wakes(), Ok(true), "it has not been woken");
    assert_eq!(writer.may_sleep(), Ok(false), "there is room");
}

#[test]
fn the_end_of_a_side_wakes_the_other_and_loses_nothing() {
    let (words, store) = (words(), store(8));
    let (mut writer, mut reader) =
        (Writer::new(&words, &store).unwrap(), Reader::new(&words, &store).unwrap());
    assert_eq!(writer.write(b"last"), Ok(4));
    assert!(!stream::close(&words, Side::Writer), "nobody sleeps");
    assert_eq!((reader.is_over(), reader.may_sleep()), (Ok(false), Ok(false)));
    let mut to = [0; 8];
    assert_eq!((reader.read(&mut to), reader.is_over(), reader.may_sleep()), (Ok(4), Ok(true), Ok(false)));

    stream::reset(&words);
    let (mut writer, reader) = (Writer::new(&words, &store).unwrap(), Reader::new(&words, &store).unwrap());
    assert_eq!(reader.may_sleep(), Ok(true));
    assert!(stream::close(&words, Side::Writer), "the reader sleeps");
    assert_eq!(writer.write(b"12345678"), Ok(8));
    assert_eq!((writer.is_over(), writer.may_sleep()), (false, Ok(true)));
    assert!(stream::close(&words, Side::Reader), "the writer sleeps");
    assert_eq!((writer.is_over(), writer.may_sleep()), (true, Ok(false)));
}

/// Numbers that cannot be are refused by who reads them, and nothing outside of the store is touched.
#[test]
fn lies_are_found() {
    for lie in [9, 10, 1 << 32, 1 << 63, u64::MAX, u64::MAX - 8] {
        let (words, store) = (words(), store(8));
        let mut reader = Reader::new(&words, &store).unwrap();
        words[0].store(lie, Ordering::Relaxed);
        assert_eq!(reader.read(&mut [0; 8]), Err(Broken), "written {lie}");
        assert_eq!(
            (reader.is_over(), reader.may_sleep(), reader.wakes()),
            (Err(Broken), Err(Broken), Err(Broken))
        );
    }
    for lie in [1, 2, 1 << 32, 1 << 63, u64::MAX - 8] {
        let (words, store) = (words(), store(8));
        let mut writer = Writer::new(&words, &store).unwrap();
        words[8].store(lie, Ordering::Relaxed);
        assert_eq!((writer.write(b"x"), writer.may_sleep()), (Err(Broken), Err(Broken)), "taken {lie}");
    }
}

/// Whatever is written into the memory, both sides go on or say that it is broken.
#[test]
fn random_memory_does_no_harm() {
    let mut random = Random(7);
    let mut broken = 0;
    for _ in 0..2_000 {
        let (words, store) = (words(), store(24));
        let (mut writer, mut reader) =
            (Writer::new(&words, &store).unwrap(), Reader::new(&words, &store).unwrap());
        for _ in 0..8 {
            let at = [0, 8, 16, 24, 32, 40][random.below(6) as usize];
            let value =
                [random.below(4), random.below(64), u64::MAX - random.below(4)][random.below(3) as usize];
            words[at].store(value, Ordering::Relaxed);
            broken += usize::from(writer.write(b"some bytes").is_err());
            broken += usize::from(reader.read(&mut [0; 16]).is_err());
            broken += usize::from(reader.may_sleep().is_err());
            broken += usize::from(writer.may_sleep().is_err());
            let _ = (writer.wakes(), reader.wakes(), writer.is_over(), reader.is_over());
        }
    }
    assert!(broken > 1000, "{broken}");
}
