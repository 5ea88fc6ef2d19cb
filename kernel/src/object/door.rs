//! Door: an entry point and a datum in a task, called by others through identifiers (rows D1, D2, D4, D5, D18).
//!
//! An identifier is a number in a task's space of doors, which is built like the others by mapping: its node hangs below
//! the node of the door's maker, directly, whoever handed it on. So the maker revokes all of them by a flush,
//! and whether anybody has one is one look at the list.
//!
//! For the fast path there is a table of words beside the nodes, at one address in any task that runs: the word of a number
//! is the address of the door's node, or [`NO_DOOR`].
//!
//! **Servers.** A task's doors are served by the threads that said so ([`Servers`]). Those that wait for a call are in one of two
//! lists: the fast path takes from the first and trusts it, so that servers which a switch must care about are
//! in the second. A server leads to its caller and to the door of its call; no link leads from the door to its calls,
//! so that they cost the fast path one store. To learn whether a door has calls, all servers of its task are looked at.

use super::ThreadRef;
use super::mapping::{Node, NodeTable};
use super::queue::Queue;
use super::thread::{IDLE, NEVER, State, Wait};
use crate::layout;
use crate::mem::pool::Words;
use crate::object::thread::{Frame as Registers, Tcb};
use crate::param::{INHERIT_SERVERS, TCB_SHIFT};
use crate::trace::ring::DoorCounts;
use crate::util::list::{Link, List, Tag};
use abi::call::{FLAGS, SERVERS_MAX};
use core::cell::Cell;

/// The word of a number that is no identifier. Not negative, as addresses of the kernel are; and, since this spares the fast path an
/// instruction, the flags with which it goes back to the user.
pub const NO_DOOR: u64 = FLAGS;

/// A task's door identifiers, and the servers of its doors.
#[repr(C)]
pub struct Doors {
    /// Servers of its doors.
    pub servers: Servers,
    /// Tables of the third, second and first level that show the words; 0: none.
    pub(crate) tables: [Cell<u64>; 3],
    /// Words and nodes of the first numbers, which are all that most tasks use; `None` until there are any.
    pub(crate) words: Cell<Option<&'static Words>>,
    pub(crate) nodes: Cell<Option<&'static NodeTable>>,
    /// While the task is being ended: entries of the last-level table below this have been looked at.
    pub(crate) released: Cell<u32>,
    /// Counts of calls and returns of its traced threads.
    pub counts: DoorCounts,
}

impl Doors {
    /// Offset of `words` for the fast path. There are both words and nodes, or neither.
    pub const NEAR_WORDS: usize = core::mem::offset_of!(Doors, words);
    /// Offset of `nodes` for the fast path; see [`Doors::NEAR_WORDS`].
    pub const NEAR_NODES: usize = core::mem::offset_of!(Doors, nodes);

    /// Hides the first numbers of a task that is being ended: the fast path hands it nothing any more.
    pub fn hide(&self) {
        self.words.set(None);
        self.nodes.set(None);
    }
}

/// The servers of a task's doors.
#[repr(C)]
pub struct Servers {
    /// The hot line of the first that waits for a call and is not special; the others follow by [`Server::next`](super::thread::Server).
    pub idle: Cell<u64>,
    /// The hot line of the first of the others that wait, which a switch has to care about. Behind `idle`: a door leads here.
    pub odd: Cell<u64>,
    /// All servers.
    pub all: List<OfServers>,
    /// Number of servers.
    pub count: Cell<u32>,
    /// Callers that wait for a server, the most urgent first.
    pub callers: Queue,
    /// Thread that waits for a shortage.
    pub watcher: Cell<Option<ThreadRef>>,
    /// Thread that was told of a shortage, until there is one more server, or it watches again. It inherits as a server does.
    pub maker: Cell<Option<ThreadRef>>,
    /// The first door that nobody refers to, of which no server knows yet.
    pub unreferenced: Cell<Option<&'static Node>>,
    /// Whether the task is being ended. Then the fast path finds no server that waits for a call.
    closed: Cell<bool>,
}

/// Tag of the list of a task's servers.
pub struct OfServers;

impl Tag for OfServers {
    fn link(thread: &ThreadRef) -> &Link {
        &thread.server_link
    }
}

/// The address of a thread's hot line.
pub fn hot_address(thread: ThreadRef) -> u64 {
    layout::TCBS + ((thread.name.get().slot() as u64) << TCB_SHIFT) + Tcb::HOT_OFFSET as u64
}

/// The hot line of a slot that never has a thread: it is readable, and in no wait.
pub const NOBODY: u64 = layout::TCBS + Tcb::HOT_OFFSET as u64;

/// The thread whose hot line is at an address; it may have ended, and another one be in its place.
pub fn thread_at(hot: u64) -> Option<ThreadRef> {
    if hot < NOBODY {
        return None;
    }
    ThreadRef::in_slot(((hot - layout::TCBS) >> TCB_SHIFT) as u32)
}

impl Servers {
    /// Whether the task is being ended.
    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }

    fn list(&self, thread: ThreadRef) -> Option<&Cell<u64>> {
        if thread.hot.accept.get() == IDLE {
            return Some(&self.idle);
        }
        let is_odd = thread.state.get() == State::Idle && !thread.is_stopped();
        is_odd.then_some(&self.odd)
    }

    /// Puts a server that waits for calls into its list; or into another, because something about it has changed.
    pub fn enlist(&self, thread: ThreadRef) {
        let is_plain = thread.special.get() == 0 && !self.closed.get();
        thread.state.set(if is_plain { State::Ready } else { State::Idle });
        thread.hot.accept.set(if is_plain { IDLE } else { NEVER });
        if !is_plain {
            // The fast path does not record that the thread is in a system call; the last trap is long over.
            thread.frame.mode.set(Registers::SYSRET);
        }
        if let Some(list) = self.list(thread) {
            let first = list.replace(hot_address(thread));
            thread.server.next.set(if first == Self::WANTED { 0 } else { first });
        }
    }

    /// Value of [`Servers::idle`] if no server is in that list, and somebody waits for one. The fast path looks for it.
    pub const WANTED: u64 = 1;

    /// Computes that value anew. To be called whenever the callers and doors that wait for a server change, or the servers that wait.
    pub fn refold(&self) {
        if thread_at(self.idle.get()).is_none() {
            let is_wanted =
                self.closed.get() || !self.callers.is_empty() || self.unreferenced.get().is_some();
            self.idle.set(if is_wanted { Self::WANTED } else { 0 });
        }
    }

    /// Closes the doors of a task that is being ended: from now on its servers ([`SERVERS_MAX`] at most) wait where no fast path looks.
    pub fn close(&self) {
        self.closed.set(true);
        let mut place = &self.idle;
        while let Some(thread) = thread_at(place.get()) {
            thread.state.set(State::Idle);
            thread.hot.accept.set(NEVER);
            thread.frame.mode.set(Registers::SYSRET);
            place = &thread.tcb().server.next;
        }
        // The list as it is goes in front of the other.
        if thread_at(self.idle.get()).is_some() {
            place.set(self.odd.replace(self.idle.replace(0)));
        }
        self.refold();
    }

    /// Takes a server that waits for calls out of its list. Its state must be set then.
    pub fn unlist(&self, thread: ThreadRef) {
        let Some(mut place) = self.list(thread) else { return };
        let me = hot_address(thread);
        while place.get() != me {
            place = &thread_at(place.get()).expect("a server is in its list").tcb().server.next;
        }
        place.set(thread.server.next.get());
        self.refold();
    }

    /// Takes the server for the next call, if one waits. As long as one does, no caller waits for a server, unless the one that takes
    /// it is about to bring the two together.
    pub fn take(&self) -> Option<ThreadRef> {
        let list = if thread_at(self.idle.get()).is_some() { &self.idle } else { &self.odd };
        let thread = thread_at(list.get())?;
        list.set(thread.server.next.get());
        Some(thread)
    }

    /// Makes a thread a server. `None` if they are too many.
    pub fn add(&'static self, thread: ThreadRef) -> Option<()> {
        if self.count.get() >= SERVERS_MAX {
            return None;
        }
        self.count.set(self.count.get() + 1);
        self.all.push_back(thread);
        thread.server.pool.set(Some(&self.idle));
        thread.server.door.set(None);
        thread.server.caller.set(NOBODY);
        Some(())
    }

    /// Makes a thread a server no more. It is in no list of those that wait.
    pub fn remove(&self, thread: ThreadRef) {
        self.count.set(self.count.get() - 1);
        self.all.remove(thread);
        thread.server.pool.set(None);
        thread.server.caller.set(NOBODY);
        thread.server.door.set(None);
    }

    /// All servers.
    pub fn each(&self) -> impl Iterator<Item = ThreadRef> {
        core::iter::successors(self.all.first(), |&thread| self.all.after(thread))
    }

    /// Servers that inherit the priority of the most urgent caller that waits for one.
    pub fn helped(&self) -> impl Iterator<Item = ThreadRef> {
        self.each().take(INHERIT_SERVERS)
    }

    /// Server that has a call of this door now, if there is one.
    pub fn busy_with(&self, door: &'static Node) -> Option<ThreadRef> {
        self.each().find(|thread| {
            thread.wait() != Wait::Idle && thread.server.door.get().is_some_and(|of| core::ptr::eq(of, door))
        })
    }

    /// Forgets a door that is gone: nobody serves it any more.
    pub(crate) fn forget(&self, door: &'static Node) {
        self.each()
            .filter(|thread| thread.server.door.get().is_some_and(|of| core::ptr::eq(of, door)))
            .for_each(|thread| thread.server.door.set(None));
        door.unlink_unreferenced(&self.unreferenced);
        self.refold();
    }
}
