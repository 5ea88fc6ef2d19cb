//! Link: a network card, frame by frame. Served by its driver; the interface is `idl/interfaces/link.idl`.

use core::sync::atomic::{AtomicU64, Ordering};
use rt::api::stub::{Failure as Fault, Within};
use rt::api::{Failure, Result};
use rt::region::Region;
use rt::sys::{Error, Fpage, Ipc, Message, Timeout, Uid};

pub use Link::Card::{Answer, Client, NUMBER, Request};

rt::interface!(ipc, "../../../idl/interfaces/link.idl");

/// The name under which the server registers.
pub const NAME: &str = "link";

/// How long a driver may take to hear that there is something to be sent, in µs.
const KICK_US: u64 = 10_000;

/// Log2 of the bytes of a ring.
const RING_LOG2: u32 = 16;

/// Words of a ring.
const RING_WORDS: usize = (1 << RING_LOG2) / size_of::<AtomicU64>();

/// Memory for both rings, empty.
pub fn region() -> Option<Region> {
    Region::new(RING_LOG2 + 1)
}

/// Words of both rings.
pub fn rings(region: Region) -> [&'static [AtomicU64]; 2] {
    let (received, to_send) = region.words().split_at(RING_WORDS);
    [received, to_send]
}

/// Makes both rings empty. For the owner, while nobody else has them.
pub fn reset(region: Region) {
    for ring in rings(region) {
        ring.iter().take(ring::SLOT_WORDS).for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

/// A hardware address, and bytes of a frame at most.
pub type Info = ([u8; 6], u32);

/// Asks for address and size of frames.
pub fn info(server: Uid) -> Result<Info> {
    Ok(Client { server }.info()?)
}

/// Hands over two rings; the lease arrives in `window`.
pub fn attach(server: Uid, rings: Fpage, window: Fpage) -> Result<()> {
    Client { server }.attach(window, rings)?;
    Ok(())
}

/// Says that there is something to be sent. Fails if the driver does not listen for a while.
pub fn kick(server: Uid) -> Result<()> {
    match (Client { server: Within::us(server, KICK_US) }).kick() {
        Ok(()) => Ok(()),
        Err(Fault::Kernel(error)) => Err(Failure::Kernel(error)),
        Err(_) => Err(Failure::Garbled),
    }
}

/// Waits until something was received.
pub fn wait(server: Uid) -> Result<()> {
    Ok(Client { server }.wait()?)
}

/// Waits for a message, and lets a map item into `window`. `None` if that failed.
pub fn next(window: Fpage) -> Option<Message> {
    let ipc = Ipc { from: Uid::ANY, window, receive_timeout: Timeout::NEVER, ..Ipc::NONE };
    match ipc.run() {
        Ok(message) => message,
        Err(Error::ReceiveTimeout) | Err(_) => None,
    }
}
