//! Processes and threads.

use crate::budget::{Budget, Share};
use crate::calls::ipc::Unsent;
use crate::calls::niceness::Wishes;
use crate::calls::seccomp::Restriction;
use crate::calls::semaphores::Operations;
use crate::capabilities::Capabilities;
use crate::errno::Result;
use crate::frames::Frame;
use crate::machine::{Registers, Space, Tid};
use crate::memory::{FileNumber, Memory};
use crate::open::{Descriptors, Open};
use crate::signal::{Action, Pending, Set, Stack};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use vfs::Inode;

/// Highest number of a process or thread.
pub const NUMBER_MAX: Tid = 32767;

/// Most processes of a sandbox, those included that have ended and that no parent has waited for.
pub const PROCESSES_MAX: usize = 256;

/// Bytes of the budget that a process counts for, with its first thread and its paths, and when it has ended.
pub const PROCESS_BYTES: [usize; 2] = [8192, 4096];

/// Bytes of the budget that each other thread counts for.
pub const THREAD_BYTES: usize = 2048;

/// Events that a call may wait for without a share of the budget.
pub const EVENTS_FREE: usize = 16;

/// Bytes of arguments, and of the environment, that `/proc` shows, at most.
pub const ARGUMENTS_KEPT: usize = 64 << 10;

/// Nanoseconds by which the waits of the first thread may be too long, as Linux has it.
const SLACK_NS: u64 = 50_000;

/// Signals that there can be.
pub const SIGNALS: usize = 64;

/// Name of a program, at most so many bytes.
pub const NAME_BYTES: usize = 15;

/// Memory, and the address space in which it is mapped. A process that `vfork` has made shares that of its parent.
#[derive(Debug)]
pub struct Room {
    /// The address space.
    pub space: Space,
    /// Its mappings.
    pub memory: Memory,
}

/// Room of processes.
pub type Shared = Rc<RefCell<Room>>;

/// How a process has ended, as `wait4` says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status(pub u32);

impl Status {
    /// It has called `exit`.
    pub const fn exited(code: u32) -> Status {
        Status((code & 0xff) << 8)
    }

    /// A signal has ended it.
    pub const fn killed(signal: u32) -> Status {
        Status(signal)
    }

    /// A signal has stopped it.
    pub const fn stopped(signal: u32) -> Status {
        Status(signal << 8 | 0x7f)
    }

    /// It goes on.
    pub const CONTINUED: Status = Status(0xffff);

    /// `si_code` and `si_status` for its parent.
    pub const fn told(self) -> (i32, u32) {
        use linux_raw_sys::general::{CLD_CONTINUED, CLD_EXITED, CLD_KILLED, CLD_STOPPED};
        let code = self.0 >> 8 & 0xff;
        let (kind, value) = match self.0 & 0x7f {
            0 => (CLD_EXITED, code),
            _ if self.0 == Status::CONTINUED.0 => (CLD_CONTINUED, linux_raw_sys::general::SIGCONT),
            0x7f => (CLD_STOPPED, code),
            signal => (CLD_KILLED, signal),
        };
        (kind as i32, value)
    }
}

/// Owners and groups.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    /// Real, effective and saved owner.
    pub owner: [u32; 3],
    /// Real, effective and saved group.
    pub group: [u32; 3],
    /// Other groups.
    pub groups: Vec<u32>,
}

/// Choices of a process about which it can ask. Its children have them, too.
#[derive(Clone, Copy, Default, Debug)]
pub struct Choices {
    /// Effective owner and group as which it may be looked at when it crashes, as far as anybody does that (`PR_SET_DUMPABLE`): as any others it may not.
    pub dumpable_by: Option<(u32, u32)>,
    /// Whether it wants no large pages, of which there are none (`PR_SET_THP_DISABLE`).
    pub has_no_large_pages: bool,
    /// Commands of `membarrier` by which it is registered: bits.
    pub barriers: u32,
}

/// Directories in which paths of a process begin, and permissions that its files do not get. Processes that `CLONE_FS` has made share it.
#[derive(Clone, Default, Debug)]
pub struct FilesystemInformation {
    /// The root directory; none: that of the sandbox.
    pub root: Option<Rc<Open>>,
    /// The working directory, a path without symbolic links from the sandbox's root on.
    pub directory: Vec<u8>,
    /// Whether that was removed: another directory may have the path.
    pub is_directory_gone: bool,
    /// Permissions that files do not get which the process makes.
    pub umask: u32,
}

impl FilesystemInformation {
    /// That of the first process, which begins in a directory.
    pub fn first(directory: &[u8]) -> FilesystemInformation {
        FilesystemInformation { directory: directory.to_vec(), umask: 0o022, ..Default::default() }
    }
}

/// A limit: now, and at most.
pub type Limit = [u64; 2];

/// Kinds of limits.
pub const LIMITS: usize = 16;

/// A process.
#[derive(Debug)]
pub struct Process {
    /// The process that waits for it.
    pub parent: Tid,
    /// Its process group.
    pub group: Tid,
    /// Its session.
    pub session: Tid,
    /// Its threads.
    pub threads: Vec<Tid>,
    /// Its memory.
    pub room: Shared,
    /// Its descriptors.
    pub descriptors: Descriptors,
    /// Its directories, and its umask.
    pub filesystem: Rc<RefCell<FilesystemInformation>>,
    /// Its choices for signals.
    pub actions: [Action; SIGNALS],
    /// Signals for any of its threads.
    pub pending: Pending,
    /// Its owners.
    pub owners: Owners,
    /// Whether no program that it begins gives it an owner or a group: `PR_SET_NO_NEW_PRIVS`.
    pub has_no_new_rights: bool,
    /// Its choices.
    pub choices: Choices,
    /// Its limits.
    pub limits: [Limit; LIMITS],
    /// Name of its program.
    pub name: Vec<u8>,
    /// Path of its program, without symbolic links as it was begun.
    pub program: Vec<u8>,
    /// File of its program, to which nobody writes while the process runs.
    pub image: Option<Inode>,
    /// Arguments and environment, as they were at the beginning: a zero behind each. They end after [`ARGUMENTS_KEPT`]. Children share them.
    pub arguments: [Rc<[u8]>; 2],
    /// Facts that its program has found on its stack when it began: pairs of words. Children share them.
    pub auxiliary: Rc<[u8]>,
    /// Share of the budget that these have.
    pub arguments_share: Option<Rc<Share>>,
    /// Share of the budget that the process itself has.
    pub share: Share,
    /// Set when it has ended and its parent does not know yet.
    pub ended: Option<Status>,
    /// The signal by which it stands still.
    pub stopped: Option<u32>,
    /// News for its parent: that it stopped, or goes on.
    pub news: Option<Status>,
    /// Whether the first process is its parent because the one that made it has ended.
    pub is_adopted: bool,
    /// Whether it becomes the parent of those below it whose parents end: `PR_SET_CHILD_SUBREAPER`.
    pub is_reaper: bool,
    /// Signal to its parent when it ends.
    pub exit_signal: u32,
    /// Number of its controlling terminal.
    pub terminal: Option<u32>,
    /// The group that was in front at its controlling terminal when that hung up; 0: none. It hears of the end of the session.
    pub left_group: Tid,
    /// Whether it has begun a program since it was made.
    pub has_begun: bool,
    /// Programs that it has had: what one of them has asked for is not for the next one.
    pub programs: u64,
    /// Signal that it gets when its parent ends; 0: none.
    pub death_signal: u32,
    /// When `SIGALRM` comes, and how long after that again.
    pub alarm: (Option<u64>, u64),
    /// CPU time of threads that have ended, and of children that were waited for.
    pub used: [u64; 2],
    /// When it began.
    pub since: u64,
}

impl Process {
    /// Permissions that files do not get which it makes.
    pub fn umask(&self) -> u32 {
        self.filesystem.borrow().umask
    }
}

/// Something that a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Event {
    /// Something changed at a pipe or a counter with that number.
    Ring(u64),
    /// Something changed at the terminal with that number, at one of its sides.
    Terminal(u32),
    /// A signal has come for that process, or for one of its threads.
    Signals(Tid),
    /// A lock of the file with that inode was given back.
    FileLock(u64),
    /// A child of that process has news.
    Child(Tid),
    /// A signal waits for that process, or for one of its threads.
    Signal(Tid),
    /// That process goes on which stood still: all of its calls are made again, since they missed what happened meanwhile.
    Continued(Tid),
    /// A child that `vfork` has made for that thread does not need its memory any more.
    Vfork(Tid),
    /// Somebody calls `futex` to wake whoever waits at that word.
    Futex(Word),
    /// Somebody gives up a lock that is that word.
    Lock(Word),
    /// Somebody has done the call of that thread, which waited for something that several want.
    Done(Tid),
}

/// The word of a futex, as all know it that mean the same one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Word {
    /// One that only calls of its address space mean: at that address.
    Private(Space, u64),
    /// One that other processes could mean, if they had its memory: at that address.
    Own(Space, u64),
    /// A place in a file that is mapped to be shared.
    OfFile(FileNumber, u64),
    /// A place in a frame of shared memory that is no file's.
    OfFrame(Frame, u64),
}

/// A call that waits.
#[derive(Debug)]
pub struct Blocked {
    /// Registers with which it was made.
    pub registers: Registers,
    /// Events that end the wait; none: a signal does.
    pub on: Vec<Event>,
    /// When it waits no longer.
    pub until: Option<u64>,
    /// Part of it that is waited for: bits of a futex's waiter, or a mark of a queue's.
    pub bits: u32,
    /// Share of the budget that the events have, if they are many.
    pub share: Option<Share>,
}

/// Descriptors with which `poll` or `select` has begun to wait, in a process where other threads can close them: by their numbers, and whether somebody has.
#[derive(Default, Debug)]
pub struct Polled {
    numbers: Vec<(u32, bool)>,
    /// Share of the budget that the list has, with the files that it keeps open.
    share: Option<Share>,
}

impl Polled {
    /// These numbers. `None`: the budget has no room for them.
    pub fn new(mut numbers: Vec<u32>, budget: &Budget) -> Option<Polled> {
        numbers.sort_unstable();
        numbers.dedup();
        let bytes = numbers.len() * (size_of::<(u32, bool)>() + size_of::<(u32, Rc<Open>)>());
        let share = if numbers.len() > EVENTS_FREE { Some(budget.take(bytes)?) } else { None };
        Some(Polled { numbers: numbers.into_iter().map(|number| (number, false)).collect(), share })
    }

    /// Somebody closes a descriptor. Whether it is one of these, and was not closed before.
    pub fn close(&mut self, number: u32) -> bool {
        let found = self.numbers.binary_search_by_key(&number, |(number, _)| *number);
        found
            .ok()
            .and_then(|at| self.numbers.get_mut(at))
            .is_some_and(|(_, is_closed)| !core::mem::replace(is_closed, true))
    }

    /// Bytes of the budget that it has.
    pub fn bytes(&self) -> usize {
        self.share.as_ref().map_or(0, Share::bytes)
    }

    /// The wait is over.
    pub fn clear(&mut self) {
        if !self.numbers.is_empty() {
            *self = Polled::default();
        }
    }
}

/// A thread.
#[derive(Debug)]
pub struct Thread {
    /// Its process.
    pub process: Tid,
    /// Signals that it blocks.
    pub mask: Set,
    /// Signals that it blocked before a call that blocks others for its time.
    pub mask_before: Option<Set>,
    /// Signals for it alone.
    pub pending: Pending,
    /// Stack of its handlers.
    pub stack: Stack,
    /// Word to be cleared when it ends.
    pub clear: u64,
    /// Its list of locks that others are told of when it ends.
    pub robust: (u64, u64),
    /// The thread that waits until this one ends, or begins a program: it has made this one by `vfork`.
    pub vfork: Option<Tid>,
    /// The call that waits.
    pub blocked: Option<Blocked>,
    /// When the call that is made again waits no longer.
    pub until: Option<Option<u64>>,
    /// Number of the wait of that call, among all that there were: the one that has waited longest comes first.
    pub turn: u64,
    /// When the read of a terminal has begun that is made again.
    pub began: Option<u64>,
    /// Bytes that a call has done before it had to wait.
    pub done: u64,
    /// Descriptors with which the call waits, and that others have closed: it has them until it is over.
    pub held: Vec<(u32, Rc<Open>)>,
    /// Descriptors that `poll` or `select` waits with.
    pub polled: Polled,
    /// The futex at which it waits: that of the call which is made again, or one to which others have moved it.
    pub futex: Option<Word>,
    /// Part that the call which is being made waits for, of a futex or of a queue: see [`Blocked::bits`].
    pub bits: u32,
    /// Set if what it waited for came.
    pub is_woken: bool,
    /// Result of the call that waits, if somebody else has done it.
    pub outcome: Option<Result<u64>>,
    /// Operations with semaphores that the call waits to do.
    pub operations: Option<Box<Operations>>,
    /// The message that the call waits to send.
    pub unsent: Option<Box<Unsent>>,
    /// Calls that it has given up.
    pub restriction: Restriction,
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// Its wishes about when it runs.
    pub wishes: Wishes,
    /// Nanoseconds by which its waits may be too long, though they are not: as it says, and as its maker had said.
    pub slack_ns: [u64; 2],
    /// Share of the budget that it has, unless it is the first of its process.
    pub share: Option<Share>,
    /// Its name, if it has another one than its process.
    pub name: Option<Box<[u8]>>,
}

impl Thread {
    /// Its call is over: nothing of it is kept. One that has never waited has left nothing but the time at which it began, so most calls end with one store and one comparison.
    #[inline]
    pub fn end_call(&mut self) {
        self.began = None;
        if self.until.is_some() {
            self.forget_call();
        }
        debug_assert!(self.keeps_nothing(), "a call that has not waited leaves something: {self:?}");
    }

    /// Nothing is kept of a call, whether it has waited or was going to.
    pub fn forget_call(&mut self) {
        (self.until, self.began, self.futex) = (None, None, None);
        (self.done, self.is_woken) = (0, false);
        (self.outcome, self.operations, self.unsent) = (None, None, None);
    }

    /// Whether nothing is kept of a call, neither for the time for which it waits nor by others.
    fn keeps_nothing(&self) -> bool {
        let Thread { until, began, done, futex, is_woken, outcome, operations, unsent, .. } = self;
        let has_times = until.is_some() || began.is_some();
        let is_done = *done > 0 || *is_woken || futex.is_some() || outcome.is_some();
        !has_times && !is_done && operations.is_none() && unsent.is_none()
    }

    /// A thread of a process, with all capabilities. One that another makes has those of its maker.
    pub fn new(process: Tid, mask: Set) -> Thread {
        Thread {
            process,
            mask,
            mask_before: None,
            pending: Pending::default(),
            stack: Stack::NONE,
            clear: 0,
            robust: (0, 0),
            vfork: None,
            blocked: None,
            until: None,
            turn: 0,
            began: None,
            done: 0,
            held: Vec::new(),
            polled: Polled::default(),
            futex: None,
            bits: u32::MAX,
            is_woken: false,
            outcome: None,
            operations: None,
            unsent: None,
            restriction: Restriction::None,
            capabilities: Capabilities::ROOT,
            wishes: Wishes::USUAL,
            slack_ns: [SLACK_NS; 2],
            share: None,
            name: None,
        }
    }
}
