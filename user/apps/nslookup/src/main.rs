//! Asks for the address of a name: `nslookup NAME...`.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use net::sockets::{NAME_PATIENCE_MS, Net, Result};
use rt::{eprintln, println};

rt::entry!(main);

fn main() -> i32 {
    let names = rt::arguments();
    if names.is_empty() {
        eprintln!("usage: nslookup NAME...");
        return 2;
    }
    let ask = |name: &str| -> Result<()> {
        let address = Net::open()?.resolve(name, NAME_PATIENCE_MS)?;
        println!("{name}  {address}");
        Ok(())
    };
    let mut status = 0;
    for name in &names {
        if let Err(error) = ask(name) {
            eprintln!("nslookup: {name}: {error}");
            status = 1;
        }
    }
    status
}
