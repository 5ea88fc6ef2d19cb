//! The wall clock, a module: reads the PC's battery-backed clock and says how many seconds have passed since 1970.
//!
//! The clock is read once; from then on the kernel's time is added, which is finer and costs no device access. The clock has whole seconds, so a module that starts again
//! may be a second off from what it said before.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cmos;

use alloc::sync::Arc;
use rt::api::stub::Failure;
use rt::api::{self, clock, memory};
use rt::door::Object;
use rt::module::{Module, answer};
use rt::sys::Fpage;
use rt::time;

/// The module.
pub static MODULE: Module = Module { name: clock::NAME, make };

/// State of the clock.
struct Clock {
    /// The wall clock at the kernel's time 0.
    zero: u64,
}

impl clock::Server for &Clock {
    fn now(&mut self) -> Result<u64, Failure> {
        Ok(self.zero + time::now().as_secs())
    }
}

impl Object for Clock {
    fn call(&self, label: u32, words: [u64; 8]) -> (u32, [u64; 8]) {
        answer(label, words, |message| clock::dispatch(&mut &*self, message))
    }
}

/// Gets the device, and reads it.
fn make() -> api::Result<Arc<dyn Object>> {
    let ports = Fpage::ports(cmos::FIRST_PORT, cmos::PORTS_LOG2);
    memory::resource(rt::home(), ports, ports)?;
    let zero = cmos::now().saturating_sub(time::now().as_secs());
    Ok(Arc::new(Clock { zero }))
}
