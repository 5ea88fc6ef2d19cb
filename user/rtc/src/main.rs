//! The wall clock server: reads the PC's battery-backed clock and serves seconds since 1970.
//!
//! The clock is read once; from then on the kernel's time is added, which is finer and costs no device access.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod cmos;

use rt::api::wire::{interface, interface_of};
use rt::api::{self, Name, Reply, Status, clock, memory, names};
use rt::sys::{Fpage, Kind, Message};
use rt::time;

rt::entry!(main);

fn main() -> i32 {
    match prepare() {
        Ok(zero) => {
            rt::server::serve(|message| (message.kind == Kind::Request).then(|| answer(zero, message)))
        }
        Err(_) => 1,
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

fn answer(zero: u64, message: &Message) -> Reply {
    if interface_of(message) != interface::CLOCK {
        return Status::BadRequest.into();
    }
    match clock::Request::decode(message) {
        Ok(clock::Request::Now) => clock::time(zero + time::now().as_secs()),
        Err(status) => status.into(),
    }
}
