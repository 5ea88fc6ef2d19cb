//! The wall clock server: reads the PC's battery-backed clock and serves seconds since 1970.
//!
//! The clock is read once; from then on the kernel's time is added, which is finer and costs no device access.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod cmos;

use rt::api::stub::Failure;
use rt::api::{self, Name, clock, memory, names};
use rt::sys::Fpage;
use rt::time;

rt::entry!(main);

fn main() -> i32 {
    match prepare() {
        Ok(zero) => clock::serve(&mut Clock { zero }),
        Err(_) => 1,
    }
}

/// What the server knows.
struct Clock {
    /// The wall clock at the kernel's time 0.
    zero: u64,
}

impl clock::Server for Clock {
    fn now(&mut self) -> Result<u64, Failure> {
        Ok(self.zero + time::now().as_secs())
    }
}

/// Gets the device and the name; returns the wall clock at the kernel's time 0.
fn prepare() -> api::Result<u64> {
    let ports = Fpage::ports(cmos::FIRST_PORT, cmos::PORTS_LOG2);
    memory::resource(rt::home(), ports, ports)?;
    let zero = cmos::now().saturating_sub(time::now().as_secs());
    let name = Name::new(clock::NAME).ok_or(api::Failure::Garbled)?;
    names::register(rt::home(), &name)?;
    Ok(zero)
}
