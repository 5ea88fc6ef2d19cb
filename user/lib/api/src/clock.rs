//! Wall clock: nanoseconds since the start of 1970, UTC. Served by the module `rtc`; its interface is `idl/interfaces/clock.idl`.

use crate::wire::Result;
use stub::Callee;

pub use stubs::Clock::Wall::{Client, Server, dispatch};

#[allow(missing_docs)]
mod stubs {
    include!(concat!(env!("OUT_DIR"), "/clock.rs"));
}

/// The name under which the server registers.
pub const NAME: &str = "clock";

/// The time, in nanoseconds since the start of 1970. Less the kernel's time it is the time at which the kernel's began.
pub fn now(server: impl Callee) -> Result<u64> {
    Ok(Client { server }.now()?)
}
