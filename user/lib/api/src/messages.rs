//! Requests and answers as they lie in messages, without a kernel between them.

use crate::stubs::System::{Console, Machine, Memory, Names, Process};
use crate::wire::take;
use crate::{Name, Reply, Status, interface_of};
use std::vec::Vec;
use stub::Failure;
use sys::abi::call::Kind;
use sys::{Flags, Fpage, Message, Rights, Uid};

fn request(label: u32, words: [u64; 8]) -> Message {
    let kind = Kind::Request;
    Message { kind, flags: Flags(kind as u32), label, sender: Uid(0x2001), words }
}

/// A label as the interface file numbers it: the method's number from the top down, the interface's below.
const fn label(interface: u16, method: u32) -> u32 {
    method.reverse_bits() | interface as u32
}

#[test]
fn requests_are_read() {
    let mut words = [5, 0, 0, 0, 0, 0, 0, 0];
    words[0] |= 1 << 32;
    words[1] = u64::from_le_bytes(*b"hello\0\0\0");
    let message = request(label(Console::NUMBER, 0), words);
    assert_eq!(interface_of(&message), Console::NUMBER);
    let read = Console::Request::read(&message);
    assert!(matches!(read, Ok(Console::Request::Write { text, more: true }) if text[..] == *b"hello"));
    let resolve = request(label(Names::NUMBER, 1), [u64::from_le_bytes(*b"console\0"), 0, 9, 9, 9, 9, 9, 9]);
    let Ok(Names::Request::Resolve { name }) = Names::Request::read(&resolve) else { panic!("no name") };
    assert_eq!(Name::from_bytes(name), Name::new("console"));
}

#[test]
fn what_is_no_request_is_refused() {
    let write = label(Console::NUMBER, 0);
    let wrong = |message: &Message| Console::Request::read(message).unwrap_err();
    assert_eq!(wrong(&request(write, [57, 0, 0, 0, 0, 0, 0, 0])), Failure::Malformed, "too long");
    assert_eq!(wrong(&request(write, [2 << 32, 0, 0, 0, 0, 0, 0, 0])), Failure::Malformed, "no truth value");
    for label in [label(Console::NUMBER, 4), label(Names::NUMBER, 0), label(Console::NUMBER, 0) + 1] {
        assert_eq!(wrong(&request(label, [0; 8])), Failure::Refused(stub::NO_METHOD), "{label:#x}");
    }
    let fine = request(write, [0; 8]);
    assert!(Console::Request::read(&fine).is_ok());
    assert_eq!(wrong(&Message { kind: Kind::Fault, ..fine }), Failure::Malformed);
    for bit in [sys::abi::call::NO_ITEM, sys::abi::call::NO_BLOCK] {
        let more = Message { flags: Flags(fine.flags.0 & !bit), ..fine };
        assert_eq!(wrong(&more), Failure::Malformed, "more than a request in registers");
    }
}

#[test]
fn no_message_does_harm() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        state.rotate_left(21) >> (state >> 58)
    };
    let mut read = 0;
    for _ in 0..100_000 {
        let (interface, method) = (next() as u16 % 8, next() as u32 % 12);
        let message = request(label(interface, method), [(); 8].map(|()| next()));
        read += [
            Console::Request::read(&message).is_ok(),
            Machine::Request::read(&message).is_ok(),
            Memory::Request::read(&message).is_ok(),
            Names::Request::read(&message).is_ok(),
            Process::Request::read(&message).is_ok(),
        ]
        .into_iter()
        .map(u32::from)
        .sum::<u32>();
    }
    assert!(read > 10_000, "{read}");
}

#[test]
fn answers_are_written() {
    let done = Reply::from(Console::Answer::Write);
    assert_eq!((done.label, done.words, done.item), (u32::MAX, [0; 8], None));
    let text = Reply::from(crate::process::shown(&[b'x'; 100], 60));
    assert_eq!(text.words[0], 40 | 100 << 32);
    assert_eq!(text.words[1..6], [u64::from_le_bytes([b'x'; 8]); 5]);
    let (all, rest) = take(b"some");
    let reply = Reply::from(Console::Answer::Read(all));
    assert_eq!((reply.words[0], rest.len()), (4, 0));
    let page = Fpage::memory(0x5000, 12, Rights::RW);
    let reply = Reply::from(Memory::Answer::Pages(0x9000, page));
    assert_eq!((reply.label, reply.words[0], reply.item), (u32::MAX, 0x9000, Some((page, 0))));
    assert_eq!(Reply::from(Status::Busy).label, Status::Busy as u32);
}

#[test]
fn interfaces_have_numbers_of_their_own() {
    let numbers = [Memory::NUMBER, Names::NUMBER, Console::NUMBER, Process::NUMBER, Machine::NUMBER];
    let mut distinct = Vec::from(numbers);
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), numbers.len());
}
