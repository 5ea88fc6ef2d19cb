//! Entropy: random bytes of a device. Served by its driver; the interface is `idl/interfaces/entropy.idl`.

use crate::wire::Result;
use stub::Inbox;
use sys::Uid;

pub use stubs::Entropy::BYTES_MAX;
pub use stubs::Entropy::Source::{Client, Replies, Server, serve};

#[allow(missing_docs)]
mod stubs {
    include!(concat!(env!("OUT_DIR"), "/entropy.rs"));
}

/// The name under which the server registers.
pub const NAME: &str = "entropy";

/// Words of a [`seed`].
pub const SEED_WORDS: usize = 4;

/// Fills the begin of `to` with random bytes: one at least, [`BYTES_MAX`] at most. Returns how many there are. `replies`: where they arrive.
pub fn read(server: Uid, replies: &mut Replies, to: &mut [u8]) -> Result<usize> {
    let wanted = to.len().min(BYTES_MAX as usize);
    let len = Inbox::open(replies, |inbox| {
        let bytes = Client { server }.read(inbox, wanted as u32)?;
        let len = (1..=wanted).contains(&bytes.len()).then_some(bytes.len());
        if let Some(len) = len {
            to[..len].copy_from_slice(bytes);
        }
        Ok::<Option<usize>, stub::Failure>(len)
    })?;
    len?.ok_or(crate::Failure::Garbled)
}

/// Asks for what a generator of random numbers begins with.
pub fn seed(server: Uid) -> Result<[u64; SEED_WORDS]> {
    Ok(Client { server }.seed()?)
}
