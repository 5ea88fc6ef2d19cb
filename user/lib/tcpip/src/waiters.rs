//! Threads that wait for sockets. A thread that ends while it waits is not known to have ended, so none may take up room that others need.

use crate::readiness::{READABLE, WRITABLE};
use crate::{Id, Refusal};
use alloc::vec::Vec;

/// Threads that wait for one socket, at most. There is no other limit, since there are so many sockets at most.
pub const OF_ONE_MAX: usize = 16;

/// Somebody who waits.
#[derive(Debug)]
struct Waiter<T> {
    who: T,
    socket: Id,
    events: u32,
    until_ns: u64,
}

/// All who wait; each of them for one socket.
#[derive(Debug)]
pub struct Waiters<T>(Vec<Waiter<T>>);

impl<T> Default for Waiters<T> {
    fn default() -> Waiters<T> {
        Waiters(Vec::new())
    }
}

impl<T: Copy + PartialEq> Waiters<T> {
    /// Somebody waits for these events at a socket, in place of what he has waited for before. Refused if these are none, or if too many wait
    /// for this socket.
    pub fn add(&mut self, who: T, socket: Id, events: u32, until_ns: u64) -> Result<(), Refusal> {
        self.0.retain(|waiter| waiter.who != who);
        if events == 0 || events & !(READABLE | WRITABLE) != 0 {
            return Err(Refusal::Bad);
        }
        if self.0.iter().filter(|waiter| waiter.socket == socket).count() >= OF_ONE_MAX {
            return Err(Refusal::Limit);
        }
        self.0.push(Waiter { who, socket, events, until_ns });
        Ok(())
    }

    /// Answers those whose sockets are ready, or whose time is over, with the events that there are. A socket that is gone is ready for everything: who
    /// calls it hears so. Says when the time of the next one is over.
    pub fn answer(
        &mut self,
        now_ns: u64,
        mut ready: impl FnMut(Id) -> Result<u32, Refusal>,
        mut reply: impl FnMut(T, u32),
    ) -> Option<u64> {
        self.0.retain(|waiter| {
            let events = ready(waiter.socket).unwrap_or(u32::MAX) & waiter.events;
            let waits = events == 0 && waiter.until_ns > now_ns;
            if !waits {
                reply(waiter.who, events);
            }
            waits
        });
        self.0.iter().map(|waiter| waiter.until_ns).min().filter(|&until_ns| until_ns != u64::MAX)
    }

    /// How many wait.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}
