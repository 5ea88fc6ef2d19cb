//! Owners of sockets: the tasks of the threads that asked for the network. The kernel says which thread that is; which task it belongs to, `root`
//! knows.

use crate::objects;
use crate::shared::Shared;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use rt::api::{Status, process};
use rt::door::Door;
use rt::sync::Mutex;
use rt::sys::Uid;
use tcpip::sockets::{Limits, Taken};

/// Objects that make sockets. A task that is alone gets eight, and one for each program that `root` starts is set aside.
const OBJECTS: Limits = Limits { all: 128, owners: 64, own: None };

/// How many objects each task has.
type Counts = Arc<Mutex<BTreeMap<u64, usize>>>;

/// A task's part in the network.
pub struct Membership {
    counts: Counts,
    /// The task.
    pub owner: u64,
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.owner);
            }
        }
    }
}

/// All clients.
pub struct Clients {
    shared: Shared,
    counts: Counts,
}

impl Clients {
    /// None yet.
    pub fn new(shared: Shared) -> Clients {
        Clients { shared, counts: Counts::default() }
    }

    /// An object that makes sockets, for the task of a thread.
    pub fn open(&self, thread: Uid) -> Result<Door, Status> {
        let owner = process::task_of(rt::home(), thread).map_err(|_| Status::Denied)?.0;
        let mut counts = self.counts.lock();
        let own = counts.get(&owner).copied().unwrap_or(0);
        let taken = Taken { own, all: counts.values().sum(), owners: counts.len() };
        if OBJECTS.more(taken, 1) == 0 {
            return Err(Status::Exhausted);
        }
        counts.insert(owner, own + 1);
        drop(counts);
        let membership = Membership { counts: self.counts.clone(), owner };
        objects::host(self.shared.clone(), membership).map_err(|_| Status::Exhausted)
    }
}
