//! What only σ0 can do: switch the machine off, and tell about itself. For `root` alone.
//!
//! σ0 also serves [`memory`](crate::memory) and the writing half of [`console`](crate::console).

use crate::process::{TaskEntry, ThreadEntry};
use crate::stubs::System::Machine::Client;
use crate::wire::Result;
use sys::Uid;

pub use crate::stubs::System::Machine::{Answer, NUMBER, Request};

/// Ends the machine with an exit status.
pub fn power_off(server: Uid, status: i32) -> Result<()> {
    Ok(Client { server }.power_off(status)?)
}

/// σ0's own entry in the list of tasks.
pub fn usage(server: Uid) -> Result<TaskEntry> {
    Ok(Client { server }.usage()?)
}

/// σ0's only thread.
pub fn thread(server: Uid) -> Result<ThreadEntry> {
    Ok(Client { server }.thread()?)
}
