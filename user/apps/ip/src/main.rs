//! Shows addresses and the state of the network: `ip`.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use net::sockets::{Error, Net, Result, unpacked};
use rt::{eprintln, println};

rt::entry!(main);

/// Addresses of an interface, at most.
const ADDRESSES_MAX: u32 = 8;

/// Servers of names, at most.
const NAMES_MAX: u32 = 4;

fn main() -> i32 {
    match show() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("ip: {error}");
            1
        }
    }
}

fn show() -> Result<()> {
    let net = Net::open()?;
    let host = net.host();
    let (is_up, hardware, is_leased) = host.link()?;
    let [a, b, c, d, e, f, ..] = hardware.to_le_bytes();
    let state = if is_up { "up" } else { "no card" };
    println!("link      {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} {state}");
    for place in 0..ADDRESSES_MAX {
        match host.address_at(place).map_err(Error::from) {
            Ok((address, prefix)) => {
                let address = unpacked(address);
                let note = if is_leased && place == 0 { " leased" } else { "" };
                println!("address   {address}/{prefix}{note}");
            }
            Err(Error::NotFound) => break,
            Err(error) => return Err(error),
        }
    }
    let (v4, v6) = host.router()?;
    for router in [v4, v6].into_iter().filter(|router| *router != [0; 16]) {
        println!("router    {}", unpacked(router));
    }
    for place in 0..NAMES_MAX {
        match host.names_at(place).map_err(Error::from) {
            Ok(names) => println!("names     {}", unpacked(names)),
            Err(Error::NotFound) => break,
            Err(error) => return Err(error),
        }
    }
    let (received, sent, lost) = host.counts()?;
    println!("frames    {received} received, {sent} sent, {lost} lost");
    Ok(())
}
