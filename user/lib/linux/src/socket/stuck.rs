//! Sockets for datagrams that find no room at the one to which they are connected, and are told when there is some.

use super::{STRANGERS_MAX, Socket};
use crate::places::shorten;
use alloc::rc::Rc;

impl Socket {
    /// Whether a datagram from another socket has to wait until others are read. If that is connected to this one, it hears of that, as in Linux; a call that
    /// waits hears of this socket itself.
    pub(super) fn is_full_for(self: &Rc<Self>, sender: &Rc<Socket>) -> bool {
        let is_peer = self.peer().is_some_and(|peer| peer.number == sender.number);
        let is_full = !is_peer && self.number != sender.number && self.queue.borrow().len() > STRANGERS_MAX;
        if is_full && sender.peer().is_some_and(|peer| peer.number == self.number) {
            self.add_stuck(sender);
        }
        is_full
    }

    /// Notes that a socket has found no room here. It is in one list at most, so all lists are no longer than there are sockets.
    fn add_stuck(self: &Rc<Self>, sender: &Rc<Socket>) {
        if sender.stuck_at.borrow().as_ptr() != Rc::as_ptr(self) {
            sender.leave_stuck();
            sender.stuck_at.replace(Rc::downgrade(self));
            self.stuck.borrow_mut().push(Rc::downgrade(sender));
        }
    }

    /// Takes it out of the list of those that have found no room.
    pub(super) fn leave_stuck(&self) {
        if let Some(at) = self.stuck_at.take().upgrade() {
            let mut stuck = at.stuck.borrow_mut();
            stuck.retain(|other| other.as_ptr() != core::ptr::from_ref(self));
            shorten(&mut stuck);
        }
    }

    /// Numbers of sockets that have found no room.
    pub(super) fn take_stuck(&self) -> impl Iterator<Item = u64> {
        let stuck = core::mem::take(&mut *self.stuck.borrow_mut());
        stuck.into_iter().filter_map(|other| {
            let other = other.upgrade()?;
            other.stuck_at.take();
            Some(other.number)
        })
    }
}
