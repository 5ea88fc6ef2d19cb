//! Ends of pipes. `pipe-test write COUNT` prints so many bytes, of which each says where it is; `read [COUNT]` reads them to the end, or so many, and says on the console what it found;
//! `copy` prints what it reads; `fault` reads a little and crashes; `spy` tries what no program may do with another's pipe; `vanish` takes the memory of its ends away;
//! `stale` looks whether an earlier pipe has left something in its own.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::vec;
use core::sync::atomic::Ordering;
use rt::api::pipe::{self, End, INPUT, OUTPUT};
use rt::api::{Failure, Status, console};
use rt::eprintln;
use rt::page::PAGE;
use rt::region::Region;
use rt::sys::Uid;

rt::entry!(main);

/// Bytes that are written or read at once. They go over the end of a pipe's memory in all ways.
const PIECES: [usize; 5] = [1, 4093, 56, 30_011, 7];

/// Status of a wrong argument.
const USAGE: i32 = 2;

fn main() -> i32 {
    let arguments = rt::arguments();
    let count = arguments.get(1).map_or(Some(u64::MAX), |count| count.parse().ok());
    match (arguments.first().map(|mode| &**mode), count) {
        (Some("write"), Some(count)) => write(count),
        (Some("read"), Some(count)) => read(count),
        (Some("copy"), _) => copy(),
        (Some("fault"), _) => fault(),
        (Some("spy"), _) => spy(),
        (Some("vanish"), _) => vanish(),
        (Some("stale"), _) => stale(),
        _ => {
            eprintln!("usage: pipe-test write COUNT|read [COUNT]|copy|fault|spy|vanish|stale");
            USAGE
        }
    }
}

/// The byte at a place.
fn byte(at: u64) -> u8 {
    (at ^ at >> 8 ^ at >> 16) as u8
}

fn write(count: u64) -> i32 {
    let mut at = 0;
    for len in PIECES.into_iter().cycle() {
        let end = count.min(at + len as u64);
        let piece: vec::Vec<u8> = (at..end).map(byte).collect();
        rt::io::write(&piece);
        at = end;
        if at == count {
            break;
        }
    }
    0
}

fn read(count: u64) -> i32 {
    let mut at = 0;
    let mut bytes = vec![0; 40_000];
    for len in PIECES.into_iter().cycle() {
        let len = (len as u64).min(count - at) as usize;
        let found = match rt::io::read(&mut bytes[..len]) {
            Ok(0) => break,
            Ok(found) => found,
            Err(failure) => {
                eprintln!("pipe-test: {failure}");
                return 1;
            }
        };
        if let Some(wrong) = (at..).zip(&bytes[..found]).find(|&(at, &found)| byte(at) != found) {
            eprintln!("pipe-test: {} at {}", wrong.1, wrong.0);
            return 1;
        }
        at += found as u64;
        if at == count {
            break;
        }
    }
    eprintln!("pipe-test: {at} bytes as they were written");
    0
}

fn copy() -> i32 {
    let mut bytes = [0; 1000];
    while let Ok(count @ 1..) = rt::io::read(&mut bytes) {
        rt::io::write(&bytes[..count]);
    }
    0
}

fn fault() -> i32 {
    let _ = rt::io::read(&mut [0; 10]);
    panic!("as it was told to");
}

/// Its own pipe is at hand by its number. Nothing but its own end is for it, and that once.
fn spy() -> i32 {
    let uid = rt::environment::variable(INPUT).and_then(|text| u64::from_str_radix(&text, 16).ok());
    let (Some(uid), Some(region)) = (uid, Region::new(pipe::MEMORY_LOG2)) else {
        eprintln!("pipe-test: there is no pipe to spy on");
        return 1;
    };
    let server = Uid(uid);
    let denied = Err(Failure::Refused(Status::Denied));
    let mut wrong = 0;
    let mut check = |what: &str, found: rt::api::Result<()>, wanted: rt::api::Result<()>| {
        if found != wanted {
            eprintln!("pipe-test: {what}: {found:?}");
            wrong += 1;
        }
    };
    check("the other end's memory", pipe::attach(server, region.fpage(), End::WRITER).map(drop), denied);
    check("a wait at the other end", pipe::wait(server, End::WRITER), denied);
    check("a wake of its own end", pipe::wake(server, End::READER), Ok(()));
    check("its own end closed", pipe::close(server, End::READER), denied);
    check("the other end closed", pipe::close(server, End::WRITER), denied);
    check("writing", console::write(server, b"from the wrong side"), denied);
    check("Ctrl-C", console::watch(server, 1_000_000), Err(Failure::Refused(Status::Unsupported)));
    check("a call by its own end", console::read(server, &mut [0; 4]).map(drop), Ok(()));
    let taken = Err(Failure::Refused(Status::Taken));
    check("memory, after a call", pipe::attach(server, region.fpage(), End::READER).map(drop), taken);
    check(
        "nothing read",
        console::read(server, &mut []).map(drop),
        Err(Failure::Refused(Status::BadRequest)),
    );
    if wrong == 0 {
        eprintln!("pipe-test: nothing but its own end is for a spy");
    }
    wrong
}

/// Memory of its input, to which nobody has written: what an earlier pipe's programs have said is not for this one.
fn stale() -> i32 {
    let uid = rt::environment::variable(INPUT).and_then(|text| u64::from_str_radix(&text, 16).ok());
    let (Some(uid), Some(region)) = (uid, Region::new(pipe::MEMORY_LOG2)) else { return 1 };
    if let Err(failure) = pipe::attach(Uid(uid), region.fpage(), End::READER) {
        eprintln!("pipe-test: {failure}");
        return 1;
    }
    // Behind the page that says how far both ends are.
    let left =
        region.words().iter().skip(PAGE / size_of::<u64>()).any(|word| word.load(Ordering::Relaxed) != 0);
    eprintln!("pipe-test: {} of an earlier pipe", if left { "bytes" } else { "nothing" });
    i32::from(left)
}

/// Memory of both its ends, as far as it has them, goes again and again, while the other end reads or writes.
fn vanish() -> i32 {
    for (variable, end) in [(INPUT, End::READER), (OUTPUT, End::WRITER)] {
        let uid = rt::environment::variable(variable).and_then(|text| u64::from_str_radix(&text, 16).ok());
        let (Some(uid), Some(region)) = (uid, Region::new(pipe::MEMORY_LOG2)) else { continue };
        if pipe::attach(Uid(uid), region.fpage(), end).is_err() {
            continue;
        }
        for round in 0..100 {
            region.clear();
            let words = region.words();
            words[round % words.len()].store(u64::MAX, Ordering::Relaxed);
            let _ = pipe::wake(Uid(uid), end);
        }
        eprintln!("pipe-test: an end has vanished");
    }
    0
}
