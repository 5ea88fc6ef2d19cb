//! Messages on the way, and sums over all sockets.

use super::flight::{self, Flight};
use super::{Credentials, Socket, SocketName};
use crate::budget::{Budget, Share};
use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

/// Most sockets, those that wait to be accepted and that no descriptor leads to among them.
const SOCKETS_MAX: usize = 8192;

/// Sums over all sockets.
#[derive(Debug, Default)]
pub struct Traffic {
    pub(super) budget: Budget,
    pub(super) bytes: Cell<usize>,
    pub(super) sockets: Cell<usize>,
    /// Sockets to which descriptors are on the way, or were.
    pub(super) carriers: RefCell<BTreeMap<u64, Weak<Socket>>>,
}

impl Traffic {
    /// No sockets, with shares of a budget.
    pub fn within(budget: &Budget) -> Traffic {
        Traffic { budget: budget.clone(), ..Traffic::default() }
    }

    /// Descriptors on the way.
    pub fn files(&self) -> usize {
        self.budget.files()
    }

    /// Sockets that are only reached through themselves.
    pub fn lost(&self) -> Vec<Rc<Socket>> {
        let all: Vec<Rc<Socket>> = self.carriers.borrow().values().filter_map(Weak::upgrade).collect();
        let carriers: Vec<Rc<Socket>> = all.into_iter().filter(|socket| socket.carries()).collect();
        let known = carriers.iter().map(|socket| (socket.number, Rc::downgrade(socket))).collect();
        self.carriers.replace(known);
        flight::lost(&carriers)
    }

    /// Whether there may be one socket more.
    pub fn has_room(&self) -> bool {
        self.sockets.get() < SOCKETS_MAX
    }

    /// Bytes on the way, with what messages count for beside their own.
    pub fn bytes(&self) -> usize {
        self.bytes.get()
    }
}

/// A message on the way.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    /// Bytes of it that have been read.
    pub(super) read: usize,
    pub(super) flight: Flight,
    pub(super) credentials: Credentials,
    pub(super) from: Option<SocketName>,
    pub(super) sender: Weak<Socket>,
    pub(super) charge: usize,
    pub(super) _share: Share,
    pub(super) traffic: Rc<Traffic>,
}

impl Message {
    pub(super) fn left(&self) -> &[u8] {
        self.bytes.get(self.read..).unwrap_or_default()
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.upgrade() {
            sender.sent.set(sender.sent.get().saturating_sub(self.charge));
        }
        self.traffic.bytes.set(self.traffic.bytes.get().saturating_sub(self.charge));
    }
}
