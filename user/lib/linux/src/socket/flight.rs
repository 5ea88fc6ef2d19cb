//! Descriptors on the way: those of messages that nobody has received. A socket may be on the way to itself, or several to one another; then nobody
//! reaches them any more once their descriptors are closed, and [`lost`] finds them.
//!
//! A descriptor counts how often it is on the way. When that is as often as there are references to it, it can only be reached through messages, and only
//! then it is looked for those that are lost.

use super::{FILE_BYTES, Message, SOCKET_BYTES, Socket, charge};
use crate::budget::Passage;
use crate::open::{Object, Open};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::vec::Vec;

/// Descriptors of a message.
#[derive(Debug)]
pub(super) struct Flight {
    files: Vec<Rc<Open>>,
    /// How they are counted, for as long as the message is there.
    passage: Option<Passage>,
}

impl Flight {
    /// Descriptors go on the way.
    pub(super) fn new(files: Vec<Rc<Open>>, passage: Passage) -> Flight {
        let sockets = files.iter().filter_map(socket);
        sockets.for_each(|socket| socket.in_flight.set(socket.in_flight.get() + 1));
        let passage = (!files.is_empty()).then_some(passage);
        Flight { files, passage }
    }

    /// Descriptors that it had at the beginning.
    pub(super) fn count(&self) -> usize {
        self.passage.as_ref().map_or(0, Passage::count)
    }

    /// The descriptors.
    pub(super) fn files(&self) -> &[Rc<Open>] {
        &self.files
    }

    /// Takes them out: they are not on the way any more.
    pub(super) fn take(&mut self) -> Vec<Rc<Open>> {
        let files = core::mem::take(&mut self.files);
        let sockets = files.iter().filter_map(socket);
        sockets.for_each(|socket| socket.in_flight.set(socket.in_flight.get().saturating_sub(1)));
        files
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// The socket of something open.
fn socket(open: &Rc<Open>) -> Option<&Rc<Socket>> {
    match &open.object {
        Object::Socket(socket) => Some(socket),
        _ => None,
    }
}

/// Whether something open can only be reached through messages that are on the way, if anybody reaches it. `own`: references that do not count.
pub fn may_be_lost(open: &Rc<Open>, own: usize) -> bool {
    socket(open).is_some_and(|socket| {
        let in_flight = socket.in_flight.get();
        in_flight > 0 && Rc::strong_count(open) == in_flight + own
    })
}

impl Socket {
    /// Sockets whose descriptors are on the way to this one, or to a connection that waits here to be accepted: each as often as it is.
    fn carried(&self) -> Vec<Rc<Socket>> {
        self.files_on_the_way().iter().filter_map(socket).cloned().collect()
    }

    /// Bytes of the budget that it has, with its messages and with connections that wait to be accepted.
    pub fn held_bytes(&self) -> usize {
        let of = |message: &Message| charge(message.bytes.len()) + message.flight.count() * FILE_BYTES;
        let waiting: usize = self.waiting().iter().map(|waiting| waiting.held_bytes()).sum();
        SOCKET_BYTES + self.queue.borrow().iter().map(of).sum::<usize>() + waiting
    }

    /// Descriptors that are on the way to it, or to connections that wait to be accepted.
    pub fn files_on_the_way(&self) -> Vec<Rc<Open>> {
        let mut all = Vec::new();
        for socket in self.waiting() {
            all.extend(socket.files_on_the_way());
        }
        let queue = self.queue.borrow();
        all.extend(queue.iter().flat_map(|message| message.flight.files()).cloned());
        all
    }

    /// Whether descriptors are on the way to it.
    pub(super) fn carries(&self) -> bool {
        self.queue.borrow().iter().any(|message| !message.flight.files().is_empty())
    }
}

/// Finds sockets that are lost, among those to which descriptors are on the way.
///
/// An open socket is lost if nothing but messages leads to it, and each of these lies in a socket that is lost.
pub(super) fn lost(carriers: &[Rc<Socket>]) -> Vec<Rc<Socket>> {
    let mut suspects = BTreeMap::new();
    for carrier in carriers {
        for message in &*carrier.queue.borrow() {
            for open in message.flight.files().iter().filter(|open| may_be_lost(open, 0)) {
                if let Some(socket) = socket(open) {
                    suspects.insert(socket.number, socket.clone());
                }
            }
        }
    }
    // Connections that nobody has accepted are reached through the socket at which they wait.
    let inside: BTreeSet<u64> =
        suspects.values().flat_map(|suspect| suspect.waiting()).map(|waiting| waiting.number).collect();
    let is_reached =
        |carrier: &&Rc<Socket>| !suspects.contains_key(&carrier.number) && !inside.contains(&carrier.number);
    let mut reached: Vec<Rc<Socket>> = carriers.iter().filter(is_reached).cloned().collect();
    while let Some(carrier) = reached.pop() {
        reached.extend(carrier.carried().iter().filter_map(|socket| suspects.remove(&socket.number)));
    }
    suspects.into_values().collect()
}
