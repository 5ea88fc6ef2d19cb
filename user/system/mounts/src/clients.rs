//! Clients, each a task. What one has of the file systems stays with it as long as it lives, so that it has one share of each, however often it asks.

use crate::table::Table;
use crate::tree::{All, Tree};
use alloc::sync::Arc;
use files::stubs::Files::{Directory, Joined};
use rt::api::Status;
use rt::api::stub::View;
use rt::door::{self, Reference};
use vfs::Shares;
use vfs::mounts::Mounts;

/// Directories of all file systems together that there are at most, of all clients.
const OBJECTS_MAX: usize = 512;

/// All clients.
pub struct Clients {
    table: Arc<Table>,
    shares: Shares,
}

impl Clients {
    /// None yet.
    pub fn new(mounts: Mounts) -> Clients {
        Clients { table: Arc::new(Table::new(mounts)), shares: Shares::new(OBJECTS_MAX, 1) }
    }

    /// The root of all, for a task.
    pub fn root(&mut self, task: u64) -> Result<Reference<Directory::Client<View>>, Status> {
        let all = match self.table.client(task) {
            Some(all) => all,
            None => self.meet(task)?,
        };
        let root = Tree::root(all).ok_or(Status::TooManyOpen)?;
        Ok(door::serve(Joined::Object(root)).map_err(|_| Status::Exhausted)?.into())
    }

    /// A client that comes for the first time. Those that have ended are forgotten.
    fn meet(&mut self, task: u64) -> Result<Arc<All>, Status> {
        self.table.forget_ended();
        let part = self.shares.open(task).ok_or(Status::TooManyOpen)?;
        let all = Arc::new(All::new(self.table.clone(), task, part));
        self.table.add_client(task, all.clone());
        Ok(all)
    }
}
