//! The other end of the pipes that `bench` measures: takes as many bytes as it is told that come, and answers with something of them. Started
//! as `bench-partner object`, it has an object that looks at pages, and hands out its door.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use Shown::Pages::{Object, Server};
use rt::api::stub::Failure;
use rt::api::{Name, names};
use rt::door::{self, Door};
use rt::sys::{Ipc, Rights, Timeout, Uid};

rt::entry!(main);
rt::interface!(door, "src/pages.idl");

/// Bytes that are read at once.
const PAGE: usize = 4096;

/// Name under which the object's door is handed out.
const OBJECT: &str = "bench-object";

struct Own;

impl Server for Own {
    fn look(&self, data: &[u8]) -> Result<u64, Failure> {
        Ok(first_words(data))
    }
    fn copied(&self, data: &[u8]) -> Result<u64, Failure> {
        Ok(first_words(data))
    }
}

fn first_words(data: &[u8]) -> u64 {
    let words = data.chunks(PAGE).filter_map(|page| Some(u64::from_le_bytes(*page.first_chunk()?)));
    words.fold(0, u64::wrapping_add)
}

/// Gives everybody who asks a reference to the object.
fn hand_out(object: &Door) -> ! {
    let mut client = Uid::NIL;
    loop {
        let item = (client != Uid::NIL).then(|| object.item(Rights::RW));
        let answer = Ipc { to: client, item, from: Uid::ANY, send_timeout: Timeout::ZERO, ..Ipc::NONE };
        client = answer.run().ok().flatten().map_or(Uid::NIL, |message| message.sender);
    }
}

fn main() -> i32 {
    if rt::argument_text() == "object" {
        let name = Name::new(OBJECT).filter(|name| names::register(rt::home(), name).is_ok());
        return match (name, door::serve(Object(Own))) {
            (Some(_), Ok(object)) => hand_out(&object),
            _ => 1,
        };
    }
    let mut bytes = [0; PAGE];
    let mut word = [0; 8];
    while let Ok(8) = rt::io::read(&mut word) {
        let mut left = u64::from_le_bytes(word) as usize;
        let mut sum = 0u64;
        while left > 0 {
            let Ok(count @ 1..) = rt::io::read(&mut bytes[..left.min(PAGE)]) else { return 1 };
            sum = sum.wrapping_add(bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)));
            left -= count;
        }
        rt::io::write(&sum.to_le_bytes());
    }
    0
}
