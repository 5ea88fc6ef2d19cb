//! Shows random bytes: `random [COUNT]`, up to a page of them, from the `entropy` server; and what the seeds of programs are made of.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::vec;
use alloc::vec::Vec;
use rt::api::entropy::{self, BYTES_MAX, Replies};
use rt::api::{self, Failure, Name, Status, names, stub};
use rt::random::{self, Sources};
use rt::{eprintln, println};

rt::entry!(main);

static REPLIES: stub::Once<Replies> = stub::Once::new(Replies::new());

/// Bytes that are shown if nobody says how many.
const USUAL: usize = 16;

/// Bytes of a line.
const LINE: usize = 16;

fn main() -> i32 {
    let arguments = rt::arguments();
    let words: Vec<&str> = arguments.iter().map(|word| word.as_str()).collect();
    let count = match words[..] {
        [] => Some(USUAL),
        [count] => count.parse().ok().filter(|count| (1..=BYTES_MAX as usize).contains(count)),
        _ => None,
    };
    let Some(count) = count else {
        eprintln!("usage: random [COUNT], from 1 to {BYTES_MAX}");
        return 2;
    };
    match random::generator().map(|generator| generator.sources()) {
        Ok(Sources { processor: true, server: true }) => println!("seeds: processor and server"),
        Ok(Sources { processor: true, .. }) => println!("seeds: processor"),
        Ok(_) => println!("seeds: server"),
        Err(reason) => println!("seeds: {reason}"),
    }
    match read(count) {
        Ok(bytes) => {
            for line in bytes.chunks(LINE) {
                let words: Vec<_> = line.iter().map(|byte| alloc::format!("{byte:02x}")).collect();
                println!("{}", words.join(" "));
            }
            0
        }
        Err(failure) => {
            eprintln!("random: {failure}");
            1
        }
    }
}

/// So many bytes, in as many parts as they come in.
fn read(count: usize) -> api::Result<Vec<u8>> {
    let server = names::resolve(rt::home(), &Name::new(entropy::NAME).ok_or(Failure::Garbled)?)?;
    let replies = REPLIES.take().ok_or(Failure::Refused(Status::Busy))?;
    let mut bytes = vec![0; count];
    let mut len = 0;
    while len < count {
        len += entropy::read(server, replies, &mut bytes[len..])?;
    }
    Ok(bytes)
}
