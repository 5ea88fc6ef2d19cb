//! Pipes against a queue of bytes.

use super::{ATOMIC_BYTES, End, PAGE_BYTES, Pipe, SIZE, SIZE_MAX, ready};
use crate::errno::{EAGAIN, EBUSY, EINVAL, EPERM, EPIPE};
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

fn opened() -> Pipe {
    let mut pipe = Pipe::new();
    pipe.open(End::Read);
    pipe.open(End::Write);
    pipe
}

#[test]
fn a_short_write_is_whole_or_is_not() {
    let mut pipe = opened();
    assert_eq!(pipe.write(&vec![1; SIZE - 100]), Ok(SIZE - 100));
    assert_eq!(pipe.write(&[2; 101]), Err(EAGAIN));
    assert_eq!(pipe.write(&[2; ATOMIC_BYTES]), Err(EAGAIN));
    assert_eq!(pipe.write(&[2; ATOMIC_BYTES + 1]), Ok(100), "a long one is taken apart");
    assert_eq!(pipe.write_rest(&[2; 1]), Err(EAGAIN));
    assert_eq!(pipe.read(&mut [0; 10]), Ok(10));
    assert_eq!(pipe.write(&[3; 20]), Err(EAGAIN));
    assert_eq!(pipe.write_rest(&[3; 20]), Ok(10), "the rest of a long one, too");
    assert_eq!(pipe.len(), SIZE);
}

#[test]
fn ends_that_go() {
    let mut pipe = opened();
    pipe.open(End::Write);
    assert_eq!(pipe.write(b"last"), Ok(4));
    assert_eq!(pipe.poll(End::Read), ready::READ);
    assert!(!pipe.close(End::Write));
    assert!(pipe.close(End::Write));
    assert_eq!(pipe.poll(End::Read), ready::READ | ready::HUNG_UP);
    assert_eq!(pipe.read(&mut [0; 9]), Ok(4));
    assert_eq!(pipe.read(&mut [0; 9]), Ok(0));
    assert_eq!(pipe.poll(End::Read), ready::HUNG_UP);
    pipe.open(End::Write);
    assert_eq!(pipe.read(&mut [0; 9]), Err(EAGAIN));
    assert_eq!(pipe.poll(End::Write), ready::WRITE);
    assert!(pipe.close(End::Read));
    assert_eq!(pipe.write(b"x"), Err(EPIPE));
    assert_eq!(pipe.write(&[0; 5000]), Err(EPIPE));
    assert_eq!(pipe.write(b""), Ok(0));
    assert_eq!(pipe.poll(End::Write), ready::WRITE | ready::BROKEN);
    assert!(pipe.close(End::Write));
    assert!(!pipe.close(End::Write), "there is none any more");
    assert_eq!(pipe.ends(), (0, 0));
}

#[test]
fn a_pipe_is_ready_for_writers_while_a_short_write_fits() {
    let mut pipe = opened();
    assert_eq!(pipe.write(&vec![0; SIZE - ATOMIC_BYTES]), Ok(SIZE - ATOMIC_BYTES));
    assert_eq!(pipe.poll(End::Write), ready::WRITE);
    assert_eq!(pipe.write(&[0]), Ok(1));
    assert_eq!(pipe.poll(End::Write), 0);
}

#[test]
fn sizes() {
    let mut pipe = opened();
    assert_eq!(pipe.size(), SIZE);
    assert_eq!(pipe.resize(1), Ok(PAGE_BYTES));
    assert_eq!(pipe.resize(5000), Ok(2 * PAGE_BYTES));
    assert_eq!(pipe.resize(SIZE_MAX as u64), Ok(SIZE_MAX));
    assert_eq!(pipe.resize(SIZE_MAX as u64 + 1), Err(EPERM));
    assert_eq!((pipe.resize(u64::MAX), pipe.resize(0)), (Err(EINVAL), Err(EINVAL)));
    assert_eq!(pipe.write(&vec![0; 2 * SIZE_MAX]), Ok(SIZE_MAX));
    assert_eq!(pipe.resize(SIZE as u64), Err(EBUSY));
    assert_eq!(pipe.pages(), SIZE_MAX / PAGE_BYTES);
    assert_eq!(pipe.read(&mut vec![0; SIZE_MAX]), Ok(SIZE_MAX));
    assert_eq!(pipe.pages(), 1, "an empty pipe keeps a page");
}

/// Random writes, reads and sizes: all bytes come out in order, and no more pages are there than are needed.
#[test]
fn a_pipe_is_a_queue() {
    let mut random = 1u64;
    let mut below = |end: u64| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (random >> 33) % end
    };
    for _ in 0..30 {
        let mut pipe = opened();
        let mut model = VecDeque::<u8>::new();
        let mut next = 0u8;
        for _ in 0..200 {
            let count = [below(20), below(6000), below(80_000)][below(3) as usize] as usize;
            match below(8) {
                0 => {
                    let fits = count.max(PAGE_BYTES).next_power_of_two() >= model.len();
                    assert_eq!(pipe.resize(count as u64).is_ok(), fits && count > 0);
                }
                1..=4 => {
                    let bytes: Vec<u8> = (0..count).map(|at| next.wrapping_add(at as u8)).collect();
                    let room = pipe.size() - model.len();
                    let expected = match count {
                        0 => Ok(0),
                        1..=ATOMIC_BYTES if count > room => Err(EAGAIN),
                        _ if room == 0 => Err(EAGAIN),
                        _ => Ok(count.min(room)),
                    };
                    assert_eq!(pipe.write(&bytes), expected);
                    let written = expected.unwrap_or(0);
                    model.extend(&bytes[..written]);
                    next = next.wrapping_add(written as u8);
                }
                _ => {
                    let mut to = vec![0; count];
                    let expected = match count {
                        0 => Ok(0),
                        _ if model.is_empty() => Err(EAGAIN),
                        _ => Ok(count.min(model.len())),
                    };
                    assert_eq!(pipe.read(&mut to), expected);
                    let read = expected.unwrap_or(0);
                    assert!(model.drain(..read).eq(to[..read].iter().copied()));
                }
            }
            assert_eq!(pipe.len(), model.len());
            assert!(pipe.pages() <= model.len().div_ceil(PAGE_BYTES) + 1);
            assert!(!model.is_empty() || pipe.pages() <= 1);
        }
    }
}

/// Bytes that come from memory with an end, and go to such: those behind it are neither written nor lost, and no page is left without bytes.
#[test]
fn bytes_beyond_an_end_stay() {
    for there in [0, 1, PAGE_BYTES - 3, PAGE_BYTES, 3 * PAGE_BYTES + 7] {
        let mut pipe = opened();
        assert_eq!(pipe.write(b"abc"), Ok(3));
        let put = pipe.write_from(5 * PAGE_BYTES, false, |done, place| {
            let count = place.len().min(there - done);
            place[..count].fill(7);
            count
        });
        assert_eq!(put, Ok(there));
        assert_eq!(pipe.len(), 3 + there);
        assert_eq!(pipe.pages(), (3 + there).div_ceil(PAGE_BYTES));
        let mut taken = Vec::new();
        let half = there / 2;
        let read = pipe.read_to(usize::MAX, |done, bytes| {
            let count = bytes.len().min(half - done);
            taken.extend_from_slice(&bytes[..count]);
            count
        });
        assert_eq!((read, taken.len()), (Ok(half), half));
        assert_eq!(pipe.len(), 3 + there - half);
        taken.resize(3 + there, 0);
        assert_eq!(pipe.read(&mut taken[half..]), Ok(3 + there - half));
        assert_eq!((&taken[..3], taken[3..].iter().all(|byte| *byte == 7)), (&b"abc"[..], true));
        assert!(pipe.is_empty() && pipe.pages() <= 1);
    }
}
