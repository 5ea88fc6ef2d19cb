//! Console: bytes out, bytes in. Served by `console`; σ0 serves [`Request::Write`] until that runs.

use crate::stubs::System::Console::Client;
use crate::wire::{Failure, Result, take};
use sys::Uid;

pub use crate::stubs::System::Console::{Answer, NUMBER, Request};
use stub::{Callee, Within};

/// The name under which the server registers.
pub const NAME: &str = "console";

/// The key that a watcher waits for: Ctrl-C. Without a watcher it is input like any other.
pub const INTERRUPT_KEY: u8 = 3;

/// Prints bytes. Returns when the server has taken all of them.
pub fn write(server: Uid, bytes: &[u8]) -> Result<()> {
    write_by(Client { server }, bytes)
}

/// Like [`write()`], but gives up when the server takes longer than `patience_us` for any part.
pub fn write_within(server: Uid, bytes: &[u8], patience_us: u64) -> Result<()> {
    write_by(Client { server: Within::us(server, patience_us) }, bytes)
}

fn write_by(client: Client<impl Callee>, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let (text, rest) = take(bytes);
        client.write(&text, !rest.is_empty())?;
        bytes = rest;
    }
    Ok(())
}

/// Waits for input, at most as much as `buffer` holds; returns how much came.
pub fn read(server: Uid, buffer: &mut [u8]) -> Result<usize> {
    let text = Client { server }.read(buffer.len().try_into().unwrap_or(u32::MAX))?;
    buffer.get_mut(..text.len()).ok_or(Failure::Garbled)?.copy_from_slice(&text);
    Ok(text.len())
}

/// Waits until everything written has left the machine, at most `patience_us`.
pub fn drain(server: Uid, patience_us: u64) -> Result<()> {
    Ok(Client { server: Within::us(server, patience_us) }.drain()?)
}

/// Waits until somebody types [`INTERRUPT_KEY`], at most `patience_us`. There is one watcher at a time, the last.
pub fn watch(server: Uid, patience_us: u64) -> Result<()> {
    Ok(Client { server: Within::us(server, patience_us) }.watch()?)
}
