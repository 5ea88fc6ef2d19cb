//! Block: a disk, sector by sector. Served by its driver; the interface is `idl/interfaces/block.idl`.

use crate::wire::Result;
use stub::Inbox;
use sys::Uid;

pub use stubs::Block::BYTES_MAX;
pub use stubs::Block::Disk::{Client, Replies, Room, Server, serve};

#[allow(missing_docs)]
mod stubs {
    include!(concat!(env!("OUT_DIR"), "/block.rs"));
}

/// The name under which the server registers.
pub const NAME: &str = "block";

/// Size of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// How many sectors there are.
    pub sectors: u64,
    /// Whether they can only be read.
    pub is_read_only: bool,
}

/// Asks for the size.
pub fn info(server: Uid) -> Result<Info> {
    let (sector_bytes, sectors, is_read_only) = Client { server }.info()?;
    Ok(Info { sector_bytes, sectors, is_read_only })
}

/// Copies sectors from `first` on, as many as `to` holds: [`BYTES_MAX`] bytes at most. `replies`: where they arrive.
pub fn read(server: Uid, replies: &mut Replies, first: u64, count: u32, to: &mut [u8]) -> Result<()> {
    let fits = Inbox::open(replies, |inbox| {
        let bytes = Client { server }.read(inbox, first, count)?;
        let fits = bytes.len() == to.len();
        if fits {
            to.copy_from_slice(bytes);
        }
        Ok::<bool, stub::Failure>(fits)
    })?;
    if fits? { Ok(()) } else { Err(crate::Failure::Garbled) }
}

/// Writes whole sectors from `first` on: [`BYTES_MAX`] bytes at most.
pub fn write(server: Uid, first: u64, bytes: &[u8]) -> Result<()> {
    Ok(Client { server }.write(first, bytes)?)
}

/// Waits until what was written survives a loss of power.
pub fn flush(server: Uid) -> Result<()> {
    Ok(Client { server }.flush()?)
}
