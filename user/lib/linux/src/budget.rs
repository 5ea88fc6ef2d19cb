//! The budget: memory of this program that all processes of a sandbox share, in bytes, so that none of them fills it.
//!
//! Everything that a process makes this program keep has a [`Share`], which is charged to the process that asked for it until it is given back. There are
//! two rules. A process has at most half of what all others leave, so each one that fills its part leaves half of it to the next. All processes of a user
//! who is not `root` have at most three quarters of what other users leave. What this program needs for itself is not in the budget:
//! see [`Budget::of_memory`].
//!
//! The process that is charged is the one whose call is made: [`Budget::serve`] notes it, and no path that keeps nothing looks at it.

use crate::machine::Tid;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

/// Bytes that processes may have if nothing else is said.
const DEFAULT: usize = 48 << 20;

/// Bytes that the program has for itself, whatever a sandbox does: its image and stacks, what one call needs while it is made (pieces of 1 MiB, or arguments of a program
/// that have no share yet), and tables that have an end of their own, such as those of locks and timers.
const OWN_BYTES: usize = 8 << 20;

/// Bytes of tables for each frame that processes can have: who uses it, where it is, and its place in the cache of pages of files.
const FRAME_BYTES: usize = 160;

/// Part of the rest that stays free, since memory is lost between pieces of it, and closing and ending may need some.
const RESERVE: usize = 8;

/// Descriptors in messages that are on the way, at most, in all sockets.
const FILES_MAX: usize = 4096;

/// Bytes of which shares can be had. A copy is the same budget.
#[derive(Clone, Debug)]
pub struct Budget(Rc<Pool>);

#[derive(Debug)]
struct Pool {
    max: Cell<usize>,
    used: Cell<usize>,
    /// Descriptors in messages that are on the way.
    files: Cell<usize>,
    /// The process that is charged now.
    served: Cell<Tid>,
    accounts: RefCell<BTreeMap<Tid, Rc<Account>>>,
    /// Bytes of all accounts of a user.
    users: RefCell<BTreeMap<u32, usize>>,
}

/// Account of a process. It is there for as long as it has shares, also when the process has ended.
#[derive(Debug)]
struct Account {
    user: Cell<u32>,
    used: Cell<usize>,
    files: Cell<usize>,
}

/// Bytes of a budget, which has them back at the end of this.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    account: Option<Rc<Account>>,
    bytes: usize,
}

/// Descriptors in a message that is on the way, as the budget counts them.
#[derive(Debug)]
pub struct Passage {
    budget: Budget,
    account: Option<Rc<Account>>,
    count: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(DEFAULT)
    }
}

/// Whether one that has `own` of all that is `used` may have so much more: a part of what the others leave, in quarters.
fn is_fair(max: usize, used: usize, own: usize, more: usize, quarters: usize) -> bool {
    let left = max.saturating_sub(used.saturating_sub(own));
    own.saturating_add(more) <= left.saturating_mul(quarters) / 4
}

impl Budget {
    /// So many bytes.
    pub fn new(max: usize) -> Budget {
        Budget(Rc::new(Pool {
            max: Cell::new(max),
            used: Cell::new(0),
            files: Cell::new(0),
            served: Cell::new(0),
            accounts: RefCell::default(),
            users: RefCell::default(),
        }))
    }

    /// Bytes that processes may have, if this program has so many bytes of memory, and they so many frames.
    pub fn of_memory(bytes: usize, frames: usize) -> usize {
        let own = OWN_BYTES.saturating_add(frames.saturating_mul(FRAME_BYTES));
        // With so little that nothing would be left, the part of processes is small, and large calls may fail.
        let rest = bytes.saturating_sub(own).max(bytes / 4);
        rest - rest / RESERVE
    }

    /// Sets how many bytes there are. What is had already stays.
    pub fn set_max(&self, max: usize) {
        self.0.max.set(max);
    }

    /// Bytes that there are.
    pub fn max(&self) -> usize {
        self.0.max.get()
    }

    /// Bytes that are had.
    pub fn used(&self) -> usize {
        self.0.used.get()
    }

    /// Bytes that are charged to a process.
    pub fn used_by(&self, process: Tid) -> usize {
        self.account(process).map_or(0, |account| account.used.get())
    }

    /// Descriptors in messages that are on the way.
    pub fn files(&self) -> usize {
        self.0.files.get()
    }

    /// A process has begun, of a user.
    pub fn begin(&self, process: Tid, user: u32) {
        let account = Account { user: Cell::new(user), used: Cell::new(0), files: Cell::new(0) };
        self.0.accounts.borrow_mut().insert(process, Rc::new(account));
    }

    /// A process has ended. Shares that others go on using stay charged.
    pub fn end(&self, process: Tid) {
        self.0.accounts.borrow_mut().remove(&process);
    }

    /// A process has another user from now on, with all that it is charged.
    pub fn set_user(&self, process: Tid, user: u32) {
        let Some(account) = self.account(process) else { return };
        let used = account.used.get();
        self.charge_user(account.user.replace(user), used, 0);
        self.charge_user(user, 0, used);
    }

    fn charge_user(&self, user: u32, less: usize, more: usize) {
        let mut users = self.0.users.borrow_mut();
        let used = users.entry(user).or_default();
        *used = (*used + more).saturating_sub(less);
        if *used == 0 {
            users.remove(&user);
        }
    }

    /// Charges this process from now on. The one before.
    #[inline]
    pub fn serve(&self, process: Tid) -> Tid {
        self.0.served.replace(process)
    }

    fn account(&self, process: Tid) -> Option<Rc<Account>> {
        self.0.accounts.borrow().get(&process).cloned()
    }

    fn served(&self) -> Option<Rc<Account>> {
        self.account(self.0.served.get())
    }

    fn allows(&self, account: Option<&Account>, more: usize) -> bool {
        let (max, used) = (self.0.max.get(), self.0.used.get());
        if used.saturating_add(more) > max {
            return false;
        }
        let Some(account) = account else { return true };
        let user = account.user.get();
        let of_user = || self.0.users.borrow().get(&user).copied().unwrap_or(0);
        is_fair(max, used, account.used.get(), more, 2)
            && (user == 0 || is_fair(max, used, of_user(), more, 3))
    }

    /// Whether the process that is served may have so many bytes more.
    pub fn has_room(&self, bytes: usize) -> bool {
        bytes == 0 || self.allows(self.served().as_deref(), bytes)
    }

    /// A share of nothing, which grows at the cost of the process that is served.
    pub fn empty(&self) -> Share {
        Share { budget: self.clone(), account: self.served(), bytes: 0 }
    }

    /// A share of nothing, which grows at the cost of a process.
    pub fn empty_of(&self, process: Tid) -> Share {
        Share { budget: self.clone(), account: self.account(process), bytes: 0 }
    }

    /// A share, if the process that is served may have so much.
    pub fn take(&self, bytes: usize) -> Option<Share> {
        let mut share = self.empty();
        share.resize(bytes).then_some(share)
    }

    /// Notes that so many descriptors go into a message. None if those of the process that is served would be more than `limit`, or than half of what others
    /// leave.
    pub fn pass(&self, count: usize, limit: usize) -> Option<Passage> {
        let account = self.served();
        let own = account.as_ref().map_or(0, |account| account.files.get());
        let files = self.0.files.get();
        let is_allowed = count == 0 || own + count <= limit && is_fair(FILES_MAX, files, own, count, 2);
        is_allowed.then(|| {
            self.0.files.set(files + count);
            if let Some(account) = &account {
                account.files.set(own + count);
            }
            Passage { budget: self.clone(), account, count }
        })
    }
}

impl Share {
    /// Bytes that it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes it smaller, or larger if that is allowed. Whether it has that size now.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let is_allowed =
            bytes <= self.bytes || self.budget.allows(self.account.as_deref(), bytes - self.bytes);
        if is_allowed {
            self.set(bytes);
        }
        is_allowed
    }

    /// Gives it a size, whatever there is left: for what is had already, and for which [there was room](Budget::has_room).
    pub fn set(&mut self, bytes: usize) {
        let before = core::mem::replace(&mut self.bytes, bytes);
        let changed = |used: &Cell<usize>| used.set((used.get() + bytes).saturating_sub(before));
        changed(&self.budget.0.used);
        if let Some(account) = &self.account {
            changed(&account.used);
            self.budget.charge_user(account.user.get(), before, bytes);
        }
    }
}

impl Passage {
    /// Descriptors.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let less = |files: &Cell<usize>| files.set(files.get().saturating_sub(self.count));
        less(&self.budget.0.files);
        if let Some(account) = &self.account {
            less(&account.files);
        }
    }
}

#[cfg(test)]
mod tests;
