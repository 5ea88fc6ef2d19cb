//! Calendar: date and time of day, UTC. Served by the module `calendar`; its interface is `idl/interfaces/calendar.idl`.

use crate::wire::Result;
use stub::Callee;

pub use stubs::Calendar::Civil::{Client, Server, dispatch};
pub use stubs::Calendar::Date;

#[allow(missing_docs)]
mod stubs {
    include!(concat!(env!("OUT_DIR"), "/calendar.rs"));
}

/// The name under which the server registers.
pub const NAME: &str = "calendar";

/// Date and time.
pub fn now(server: impl Callee) -> Result<Date> {
    Ok(Client { server }.now()?)
}
