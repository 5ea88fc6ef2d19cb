//! Names: from a short name to the thread that serves it. Served by `root`, every program's exception handler.

use crate::stubs::System::Names::Client;
use crate::wire::{Name, Result};
use sys::Uid;

pub use crate::stubs::System::Names::{Answer, NUMBER, Request};

/// Makes the calling thread the one behind a name. The name is free again when the task ends.
pub fn register(registry: Uid, name: &Name) -> Result<()> {
    Ok(Client { server: registry }.register(name.bytes())?)
}

/// Finds the thread behind a name. Waits while a boot server of that name starts (again).
pub fn resolve(registry: Uid, name: &Name) -> Result<Uid> {
    Ok(Client { server: registry }.resolve(name.bytes())?)
}
