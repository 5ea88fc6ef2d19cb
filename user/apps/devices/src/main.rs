//! Lists the devices behind PCI: `devices` shows where they are, vendor and number, class, interrupt line, whether somebody drives them, and what they answer at.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::format;
use rt::api::bus::{self, Entry, Kind};
use rt::api::{self, Failure, Name, Status, names};
use rt::sys::Uid;
use rt::{eprintln, println};

rt::entry!(main);

/// Base address registers of a function.
const BARS: u8 = 6;

fn main() -> i32 {
    match list() {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("devices: {failure}");
            1
        }
    }
}

fn server() -> api::Result<Uid> {
    names::resolve(rt::home(), &Name::new(bus::NAME).ok_or(Failure::Garbled)?)
}

fn list() -> api::Result<()> {
    let server = server()?;
    println!("{:<9}{:<11}{:<8}{:<6}{:<8}ANSWERS AT", "ADDRESS", "NUMBERS", "CLASS", "LINE", "DRIVER");
    for place in 0.. {
        match bus::device(server, place) {
            Ok(entry) => show(server, place, &entry)?,
            Err(Failure::Refused(Status::NotFound)) => break,
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

fn show(server: Uid, place: u32, entry: &Entry) -> api::Result<()> {
    let Entry { address, vendor, device, class_code, line, pin, messages, messages_taken, is_claimed } =
        *entry;
    let line = if pin == 0 { "-".into() } else { format!("{line}") };
    let mut parts = alloc::string::String::new();
    for number in 0..BARS {
        let (kind, base, len) = bus::bar(server, place, number)?;
        let kind = match kind {
            Kind::NOTHING => continue,
            Kind::PORTS => "ports",
            Kind::PREFETCHABLE => "prefetchable",
            _ => "memory",
        };
        parts += &format!(" {kind} {base:#x}+{len:#x}");
    }
    if messages != 0 {
        parts += &format!(" messages {messages_taken} of {messages}");
    }
    let (bus, slot, function) = (address >> 8, address >> 3 & 31, address & 7);
    let driver = if is_claimed { "yes" } else { "-" };
    println!(
        "{bus:02x}:{slot:02x}.{function}  {vendor:04x}:{device:04x}  {class_code:06x}  {line:<6}{driver:<7}{parts}"
    );
    Ok(())
}
