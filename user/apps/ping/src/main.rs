//! Asks a machine for echoes: `ping HOST [COUNT]`.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use net::sockets::{Error, NAME_PATIENCE_MS, Net, Result};
use rt::{eprintln, println, time};

rt::entry!(main);

/// How long to wait for an answer, in milliseconds.
const PATIENCE_MS: u64 = 3000;

/// Bytes of a request.
const BYTES: [u8; 56] = [0; 56];

fn main() -> i32 {
    let arguments = rt::arguments();
    let words: Vec<&str> = arguments.iter().map(|word| word.as_str()).collect();
    let outcome = match words[..] {
        [host] => ping(host, 1),
        [host, count] => count.parse().map_err(|_| Error::Bad).and_then(|count| ping(host, count)),
        _ => {
            eprintln!("usage: ping HOST [COUNT]");
            return 2;
        }
    };
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("ping: {error}");
            1
        }
    }
}

fn ping(host: &str, count: u16) -> Result<()> {
    let net = Net::open()?;
    let to = net.resolve(host, NAME_PATIENCE_MS)?;
    let echo = net.echo()?;
    for number in 1..=count {
        let begin = time::now();
        echo.ask(to, number, &BYTES)?;
        loop {
            let (from, answered, bytes) = echo.answer(PATIENCE_MS)?;
            // An answer to an earlier question may be late.
            if answered == number {
                let (len, time_us) = (bytes.len(), (time::now() - begin).as_micros());
                println!("{len} bytes from {from}, number {number}, {time_us} us");
                break;
            }
        }
    }
    Ok(())
}
