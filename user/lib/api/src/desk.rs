//! Desk: where a module's door is to be had. Served by the thread that is registered under the module's name; see the module
//! `module` of `rt`.

use crate::wire::Result;
use sys::{Fpage, Uid};

pub use crate::stubs::System::Desk::{Answer, Client, NUMBER, Request};

/// Gets an identifier of the module's door into `window`.
pub fn door(server: Uid, window: Fpage) -> Result<()> {
    Client { server }.door(window)?;
    Ok(())
}
