//! Clients, each a task. What one has of the file systems stays with it as long as it lives, so that it has one share of each, however often it asks.

use crate::tree::{All, Tree};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use files::stubs::Files::{Directory, Joined};
use rt::api::stub::View;
use rt::api::{Status, process};
use rt::door::{self, Reference};
use rt::home;
use rt::sys::{TaskId, Uid};
use vfs::Shares;
use vfs::mounts::Mounts;

/// Directories of all file systems together that there are at most, of all clients.
const OBJECTS_MAX: usize = 512;

/// All clients.
pub struct Clients {
    mounts: Arc<Mounts>,
    shares: Shares,
    /// By their tasks.
    known: BTreeMap<u64, Arc<All>>,
}

impl Clients {
    /// None yet.
    pub fn new(mounts: Mounts) -> Clients {
        Clients { mounts: Arc::new(mounts), shares: Shares::new(OBJECTS_MAX, 1), known: BTreeMap::new() }
    }

    /// The root of all, for a task.
    pub fn root(&mut self, task: u64) -> Result<Reference<Directory::Client<View>>, Status> {
        let all = match self.known.get(&task) {
            Some(all) => all.clone(),
            None => self.meet(task)?,
        };
        let root = Tree::root(all).ok_or(Status::TooManyOpen)?;
        Ok(door::serve(Joined::Object(root)).map_err(|_| Status::Exhausted)?.into())
    }

    /// A client that comes for the first time. Those that have ended are forgotten.
    fn meet(&mut self, task: u64) -> Result<Arc<All>, Status> {
        self.known.retain(|&task, _| is_there(TaskId(task)));
        let part = self.shares.open(task).ok_or(Status::TooManyOpen)?;
        let all = Arc::new(All::new(self.mounts.clone(), part));
        self.known.insert(task, all.clone());
        Ok(all)
    }
}

/// Whether a task has threads. One of which `root` tells nothing is taken for one that has.
fn is_there(task: TaskId) -> bool {
    !matches!(process::thread_after(home(), task, Uid::NIL), Ok(None))
}
