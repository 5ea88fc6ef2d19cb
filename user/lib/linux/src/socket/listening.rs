//! Sockets that listen: connections wait there to be accepted.

use super::{Credentials, Socket};
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;

/// Connections of a socket that nobody has accepted yet.
#[derive(Debug)]
pub(super) struct Listening {
    /// How many there may be, beside one.
    backlog: usize,
    pub(super) waiting: VecDeque<Rc<Socket>>,
    /// The process that listens.
    credentials: Credentials,
}

impl Socket {
    /// Begins to listen, or goes on with another number of connections that may wait.
    pub fn listen(&self, backlog: usize, credentials: Credentials) {
        let mut listening = self.listening.borrow_mut();
        let waiting = listening.take().map(|before| before.waiting).unwrap_or_default();
        *listening = Some(Listening { backlog, waiting, credentials });
    }

    /// Whether it listens.
    pub fn is_listening(&self) -> bool {
        self.listening.borrow().is_some()
    }

    /// Whether one more connection may wait.
    pub fn has_room_for_connection(&self) -> bool {
        self.listening.borrow().as_ref().is_some_and(|listening| listening.waiting.len() <= listening.backlog)
    }

    /// A connection waits to be accepted. The process that listens.
    pub fn add_connection(&self, accepted: Rc<Socket>) -> Credentials {
        let mut listening = self.listening.borrow_mut();
        let Some(listening) = listening.as_mut() else { return Credentials::NOBODY };
        listening.waiting.push_back(accepted);
        listening.credentials
    }

    /// Takes the connection that has waited longest.
    pub fn take_connection(&self) -> Option<Rc<Socket>> {
        let mut listening = self.listening.borrow_mut();
        let waiting = &mut listening.as_mut()?.waiting;
        let taken = waiting.pop_front();
        crate::places::shorten_queue(waiting);
        taken
    }

    /// Places of the queues of messages and of connections, and of the list of sockets that have found no room.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        let waiting = self.listening.borrow().as_ref().map_or(0, |listening| listening.waiting.capacity());
        self.queue.borrow().capacity() + waiting + self.stuck.borrow().capacity()
    }

    /// Connections that wait to be accepted.
    pub(super) fn waiting(&self) -> Vec<Rc<Socket>> {
        let listening = self.listening.borrow();
        listening.iter().flat_map(|listening| listening.waiting.iter().cloned()).collect()
    }

    pub(super) fn has_connection(&self) -> bool {
        self.listening.borrow().as_ref().is_some_and(|listening| !listening.waiting.is_empty())
    }
}
