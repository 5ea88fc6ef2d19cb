//! Says how large the disk is: `disk`. `disk read SECTOR` shows how a sector begins; `disk write SECTOR TEXT` writes one that begins with a
//! text, and waits until that is safe.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::vec;
use alloc::vec::Vec;
use rt::api::block::{self, BYTES_MAX, Replies};
use rt::api::{self, Failure, Name, Status, names, stub};
use rt::sys::Uid;
use rt::{eprintln, println};

rt::entry!(main);

static REPLIES: stub::Once<Replies> = stub::Once::new(Replies::new());

/// Bytes of a sector that are shown.
const SHOWN: usize = 32;

fn main() -> i32 {
    let arguments = rt::arguments();
    let words: Vec<&str> = arguments.iter().map(|word| word.as_str()).collect();
    let outcome = match words[..] {
        [] => tell(),
        ["read", sector] => number(sector).and_then(|sector| read(sector, 1)),
        ["read", sector, count] => {
            number(sector).and_then(|sector| number(count).and_then(|count| read(sector, count as u32)))
        }
        ["write", sector, text] => number(sector).and_then(|sector| write(sector, text.as_bytes())),
        _ => {
            eprintln!("usage: disk [read SECTOR [COUNT] | write SECTOR TEXT]");
            return 2;
        }
    };
    match outcome {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("disk: {failure}");
            1
        }
    }
}

fn number(text: &str) -> api::Result<u64> {
    text.parse().map_err(|_| Failure::Refused(Status::BadRequest))
}

fn server() -> api::Result<Uid> {
    names::resolve(rt::home(), &Name::new(block::NAME).ok_or(Failure::Garbled)?)
}

fn tell() -> api::Result<()> {
    let block::Info { sector_bytes, sectors, is_read_only } = block::info(server()?)?;
    let note = if is_read_only { ", read-only" } else { "" };
    println!("{sectors} sectors of {sector_bytes} bytes{note}");
    Ok(())
}

fn read(first: u64, count: u32) -> api::Result<()> {
    let server = server()?;
    let bytes = u64::from(block::info(server)?.sector_bytes) * u64::from(count);
    // A request for too much is sent all the same: the driver says no.
    let mut sectors = vec![0; bytes.min(BYTES_MAX as u64) as usize];
    block::read(server, REPLIES.take().ok_or(Failure::Garbled)?, first, count, &mut sectors)?;
    let shown = &sectors[..SHOWN.min(sectors.len())];
    let text: alloc::string::String =
        shown.iter().map(|&byte| if byte.is_ascii_graphic() { byte as char } else { '.' }).collect();
    println!("{text}");
    Ok(())
}

fn write(first: u64, text: &[u8]) -> api::Result<()> {
    let server = server()?;
    let mut sector = vec![0; block::info(server)?.sector_bytes as usize];
    let len = text.len().min(sector.len());
    sector[..len].copy_from_slice(&text[..len]);
    block::write(server, first, &sector)?;
    block::flush(server)
}
