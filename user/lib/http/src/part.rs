//! Names under which files come that are not whole yet.
//!
//! A name says which server the file comes to, by its port, and which of its lives: two servers at one port are there one after the other. So a server tells its own
//! files that are coming from those that were left when a server before it was ended, and from those of a server beside it.

use alloc::format;
use alloc::string::String;

/// Begin of all such names. Nobody is shown any, nor may make one.
pub const PART: &[u8] = b".part-";

/// Digits of a life's number.
const DIGITS: usize = 16;

/// Names of one server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parts {
    port: u16,
    life: u64,
}

/// Whether a name is one of a file that is not whole yet.
pub fn is_part(name: &[u8]) -> bool {
    name.starts_with(PART)
}

impl Parts {
    /// Those of the server at a port. `life` is a number that servers before it did not have.
    pub const fn new(port: u16, life: u64) -> Parts {
        Parts { port, life }
    }

    /// The name for the file that comes to the thread with that number.
    pub fn name(&self, thread: usize) -> String {
        let Parts { port, life } = self;
        format!(".part-{port}-{life:016x}-{thread}")
    }

    /// Whether a name is one that a server at this port has made which is there no more.
    pub fn is_earlier(&self, name: &[u8]) -> bool {
        let earlier = || {
            let mut parts = core::str::from_utf8(name.strip_prefix(PART)?).ok()?.split('-');
            let (port, life, thread) = (parts.next()?, parts.next()?, parts.next()?);
            let life = Some(life).filter(|life| life.len() == DIGITS)?;
            let other = Parts { port: port.parse().ok()?, life: u64::from_str_radix(life, 16).ok()? };
            // Numbers can be written in other ways, too.
            let is_whole = other.name(thread.parse().ok()?).as_bytes() == name;
            Some(is_whole && other.port == self.port && other.life != self.life)
        };
        earlier().unwrap_or(false)
    }
}
