//! The file systems that there are now, for all clients, and how they change.

use crate::tree::All;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use rt::api::process::{self, KEPT_LEN_MAX};
use rt::api::{Failure, Status};
use rt::home;
use rt::sync::Mutex;
use rt::sys::{TaskId, Uid};
use vfs::mounts::{KEPT_MAX, Mounts, Refusal};

const _: () = assert!(KEPT_MAX <= KEPT_LEN_MAX, "whatever may be mounted is kept");

/// All file systems, and all clients.
pub struct Table {
    /// Each call looks at them as they are when it begins.
    mounts: Mutex<Arc<Mounts>>,
    /// Taken by whoever changes them, from the look at what there is to the end.
    changing: Mutex<()>,
    /// By their tasks.
    clients: Mutex<BTreeMap<u64, Arc<All>>>,
}

impl Table {
    /// These, and no client.
    pub fn new(mounts: Mounts) -> Table {
        let mounts = Mutex::new(Arc::new(mounts));
        Table { mounts, changing: Mutex::new(()), clients: Mutex::new(BTreeMap::new()) }
    }

    /// The file systems that there are now.
    pub fn mounts(&self) -> Arc<Mounts> {
        self.mounts.lock().clone()
    }

    /// Changes what there is, for all clients. `root` keeps it first: what was acknowledged is there again after this server was killed, and if it is killed in here,
    /// the change is made or not.
    pub fn change(&self, change: impl FnOnce(&Mounts) -> Result<Mounts, Refusal>) -> Result<(), Status> {
        let _changing = self.changing.lock();
        let changed = change(&self.mounts()).map_err(status_of)?;
        process::keep(home(), &changed.kept()).map_err(|failure| match failure {
            Failure::Refused(status) => status,
            _ => Status::Busy,
        })?;
        *self.mounts.lock() = Arc::new(changed);
        Ok(())
    }

    /// Drops clients' references to file systems that nobody finds any more; files and directories that they have opened there stay.
    pub fn forget_unmounted(&self) {
        let clients: Vec<Arc<All>> = self.clients.lock().values().cloned().collect();
        let mounts = self.mounts();
        clients.iter().for_each(|all| all.keep_only(&mounts, None));
    }

    /// A client that has been here before.
    pub fn client(&self, task: u64) -> Option<Arc<All>> {
        self.clients.lock().get(&task).cloned()
    }

    /// Another client.
    pub fn add_client(&self, task: u64, all: Arc<All>) {
        self.clients.lock().insert(task, all);
    }

    /// Forgets those that have ended.
    pub fn forget_ended(&self) {
        let mut tasks: Vec<u64> = self.clients.lock().keys().copied().collect();
        tasks.retain(|&task| !is_there(TaskId(task)));
        let ended: Vec<Arc<All>> = {
            let mut clients = self.clients.lock();
            tasks.iter().filter_map(|task| clients.remove(task)).collect()
        };
        // Their references go when nothing is locked.
        drop(ended);
    }
}

/// Whether a task has threads. One of which `root` tells nothing is taken for one that has.
fn is_there(task: TaskId) -> bool {
    !matches!(process::thread_after(home(), task, Uid::NIL), Ok(None))
}

/// How a refusal is told.
pub fn status_of(refusal: Refusal) -> Status {
    match refusal {
        Refusal::Senseless => Status::BadRequest,
        Refusal::TooLong => Status::NameTooLong,
        Refusal::Full => Status::Full,
        Refusal::NotMounted => Status::NotFound,
        Refusal::Fixed => Status::Denied,
        Refusal::Busy => Status::Busy,
    }
}
