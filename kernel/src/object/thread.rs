//! Thread: an activity in a task, named by a uid that is unique in time (rows C5, C8).
//!
//! A control block is one page of the virtual array (rows P4, P5): cold fields at the bottom, extended state and the kernel stack
//! above them, the saved user registers on top of it, and the one cache line that ipc touches ([`Hot`]) last. The
//! processor's stack pointer for entries from user mode is the address of the hot line, so finding the current
//! thread, its stack and the place for its registers is one and the same load.
//!
//! ```text
//!    0              ~0x200                     3856        4032       4096
//!    +----------------+---------------------------+-----------+----------+
//!    |  cold fields   |   kernel stack  <---------|   Frame   |   Hot    |
//!    +----------------+---------------------------+-----------+----------+
//! ```
//!
//! Every field is a cell: control blocks are shared by reference, and only the thread's own CPU changes them.
//!
//! # The folded words
//!
//! Three words of the hot line are all that the fast path checks. `accept` is the key that a sender has to show: the open
//! key of the thread (open wait), the key of its partner (closed wait), or [`NEVER`]. They are derived: [`set_wait`]
//! and [`refold`] compute them from the true state, and [`Tcb::wait`] reads the true state back, because the fast
//! path changes `accept` alone. In short: **a wait that the fast path may end lives in `accept`; any other wait
//! lives in `state`, with `accept` at `NEVER`.** [`Receiving::takes`] says then whether it takes more than words.
//!
//! [`set_wait`]: Tcb::set_wait
//! [`refold`]: Tcb::refold

use super::block::Block;
use super::breakpoint::Breakpoints;
use super::checked::{Checked, Generation};
use super::mapping::{Bookmark, Node};
use super::queue::Queue;
use super::shuttle::{Shuttle, ShuttleRef};
use super::task::TaskRef;
use crate::arch;
use crate::arch::extended::Extended;
pub use crate::arch::frame::{Frame, WORDS};
use crate::lend::word::{Stake, Word};
use crate::mem::plan::Plan;
use crate::mem::pool::{Frame as PoolFrame, Zeroable};
use crate::util::discipline::Locked;
use crate::util::list::{Link, Tag};
use crate::util::timeout::Timeout;
use abi::call::{FLAGS, FOREIGN, vector};
use abi::op;
use abi::uid::{CLAN_SHIFT, STATION_SHIFT};
use abi::{Fpage, Rights, TaskId, ThreadState, Uid};
use core::cell::Cell;

/// `accept` of a thread that no sender can satisfy on the fast path, and of an absent block.
pub const NEVER: u64 = 0;

/// A key that matches no `accept` word: neither an open key nor a key has these low bits.
const POISON: u64 = 0xe;

/// Low bits of an open key, which no key has.
const OPEN_MARK: u64 = 0xf;

/// Low bits of an open key that tell it from all other keys.
const OPEN: u64 = OPEN_MARK & !TAKES_ITEM;

/// Low bits of `accept` of a caller through a door; the others are from the key of its server.
const DOOR_MARK: u64 = 1;

/// Low bit of `accept`: the thread takes a block. An open key has it.
pub const TAKES_BLOCK: u64 = 2;

/// Low bit of `accept`: the thread takes an item into its standing window. An open key has it, and [`IDLE`].
pub const TAKES_ITEM: u64 = 8;

/// Low bits of `accept` for everything beside words.
pub const TAKING: u64 = TAKES_BLOCK | TAKES_ITEM;

/// Bit of [`Receiving::takes`]: the thread takes foreign calls.
pub const TAKES_FOREIGN: u64 = 4;

/// Low bits of `accept` of a handler that takes foreign calls, with its own key, and of a thread that waits for the return from such a
/// call, with its handler's.
pub const FOREIGN_MARK: u64 = TAKING | TAKES_FOREIGN;

/// Things that a call takes, by its flags; of [`TAKING`].
#[inline(always)]
pub fn taken_by(flags: op::Flags) -> u64 {
    (flags.takes() >> 8) as u64
}

const _: () = assert!((op::TAKES >> 8) as u64 == TAKING);

/// `accept` of a server that waits for a call through a door, and that the fast path may take.
pub const IDLE: u64 = CPU << STATION_SHIFT | 0xd;

/// The cache line of a thread that ipc reads and writes.
#[repr(C, align(64))]
pub struct Hot {
    /// The thread's uid; 0 in an absent block.
    pub uid: Cell<u64>,
    /// Key that a sender must show; see the module's text.
    pub accept: Cell<u64>,
    /// Key that this thread shows to a partner that waits for it alone: uid with the CPU in the station's place.
    pub key: Cell<u64>,
    /// Key that this thread shows to a partner that waits for anybody: clan and CPU.
    pub open_key: Cell<u64>,
    /// User instruction pointer, while the thread is in a system call.
    pub ip: Cell<u64>,
    /// User stack pointer, while the thread is in a system call.
    pub sp: Cell<u64>,
    /// Word that selects the task's address space in the processor.
    pub space: Cell<u64>,
    /// The shuttle that the thread holds or claims: see [`Stake`].
    pub shuttle: Word,
}

/// State of a thread, unless `accept` says that it waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    /// Never started.
    Inactive = 0,
    /// Runs, or would if it had a processor.
    Ready = 1,
    /// Waits for a message in a way that the fast path cannot end: from `partner`, with a timeout or a window.
    Receiving = 2,
    /// Waits in the queue of `partner`, to send.
    Sending = 3,
    /// Waits for the answer of `partner` to a page fault or an exception.
    Faulting = 4,
    /// Receives a mapping or a long message, in steps, from `partner`.
    Taking = 5,
    /// Sends a long message to `partner`, for which a page fault is being resolved on the partner's side.
    Stalled = 6,
    /// Waits for the return from its call through a door, from `partner`, in a way that the fast path cannot end.
    Calling = 7,
    /// Waits for a server of the task `queueing_at`.
    Queueing = 8,
    /// A server that waits for a call, and that the fast path may not take.
    Idle = 9,
    /// Waits for a shortage of servers.
    Watching = 10,
}

/// Message that a thread in [`State::Sending`] sends, or to which it waits for the answer in [`State::Faulting`] and
/// [`State::Taking`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Errand {
    /// The message in its registers.
    Ipc,
    /// A page fault at `fault_address`.
    Fault,
    /// An exception.
    Exception,
}

/// A thread's wait, as the slow path sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// It does not wait to receive.
    No,
    /// It takes a message from anybody.
    Open,
    /// It takes a message from one thread or interrupt.
    Closed(Uid),
    /// It takes an answer to a fault or exception.
    Answer(Uid),
    /// It takes the return from a foreign call, of this handler, in a way that the fast path may end.
    Foreign(Uid),
    /// It waits for a server to return from a call through a door.
    Return(Uid),
    /// It is a server and waits for a call through a door.
    Idle,
}

/// Bits of [`Tcb::special`]: reasons why the fast path must not see a thread.
pub mod special {
    /// Stopped by `thread_control`, or without a handler.
    pub const STOPPED: u32 = 1 << 0;
    /// Native system calls are exceptions.
    pub const DENY_NATIVE: u32 = 1 << 1;
    /// Has an FS base that must be loaded and cleared again, since the processor has no instruction by which users do so.
    pub const HAS_FS: u32 = 1 << 2;
    /// Faulted on a borrowed shuttle: its extended state is kept with it, and must be loaded.
    pub const STATE_KEPT: u32 = 1 << 3;
    /// The port bitmap is switched on for its task.
    pub const PORTS_LIVE: u32 = 1 << 4;
    /// Each of its instructions ends in an exception.
    pub const STEPPED: u32 = 1 << 6;
    /// Has breakpoints, which must be loaded and taken back.
    pub const BREAKPOINTS: u32 = 1 << 7;
    /// Its actions are recorded.
    pub const TRACED: u32 = 1 << 8;
    /// A server whose door nobody refers to any more: when it returns, the kernel looks whether that was the last call.
    pub const LAST_CALL: u32 = 1 << 9;
    /// Alerted (row D9).
    pub const ALERTED: u32 = 1 << 10;
    /// Its last system call was one that an alert ends.
    pub const ALERTABLE: u32 = 1 << 11;
    /// Its task is in a prediction domain that is not that of all others.
    pub const IN_DOMAIN: u32 = 1 << 12;
    /// Callers wait for it whose shuttle was taken away: see [`Inherited::cut_off`].
    pub const CUT_OFF: u32 = 1 << 13;
    /// Bits that a switch to or from the thread has to care about.
    pub const SWITCHED: u32 = HAS_FS | STATE_KEPT | PORTS_LIVE | STEPPED | BREAKPOINTS | TRACED | IN_DOMAIN;
    /// An interrupt of its own is pending or masked: its next receive must look.
    pub const INTERRUPT: u32 = 1 << 5;
}

/// An operation that is done in steps, and all that it needs to go on (no Rust frame survives a preemption). Objects
/// are named, not referred to: they may end between two steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// No operation.
    None,
    /// The receive phase of an ipc whose message was taken while the thread was not running.
    Receive,
    /// The map item of an ipc; then the ipc goes on.
    Map {
        /// Receiver of the item.
        to: Uid,
        /// Progress, as [`Progress::noted`] gives it.
        ///
        /// [`Progress::noted`]: crate::mem::space::Progress::noted
        noted: u64,
        /// Whether everything so far could be mapped.
        whole: bool,
    },
    /// The block of a message; then the ipc goes on.
    Transfer {
        /// Receiver of the block.
        to: Uid,
        /// Progress.
        at: Place,
    },
    /// A message of which the fast path has copied something, and that is not being sent yet: the slow path goes on with it at once.
    Ahead {
        /// The thread whose block and buffers were written.
        to: Uid,
        /// Progress.
        at: Place,
    },
    /// A long message is received, and a page fault of the receiver's is being resolved for it.
    Taken {
        /// Sender of the message.
        from: Uid,
        /// Whether the fault took the receiver's shuttle back from the sender, which is to have it again.
        returned: bool,
    },
    /// The call `flush`, from address `at` on; with the status bits collected so far.
    Flush {
        /// Next address.
        at: u64,
        /// Accessed and dirty bits so far.
        status: u64,
    },
    /// The end of a thread, its own or another's.
    EndThread {
        /// The thread that ends.
        victim: Uid,
    },
    /// The end of a task.
    EndTask {
        /// The task that ends.
        victim: TaskId,
        /// That task, or the one of its descendants that is being taken apart.
        at: TaskId,
    },
    /// A server looks for something to do.
    Serve,
    /// A return from a foreign call looks for the caller again.
    ForeignReturn,
    /// An alert goes on along a chain, from [`Cold::alerting`].
    Alert,
    /// A door is made: its task has one table more, and the call in the registers begins anew.
    CreateDoor,
    /// The state of a thread is copied from memory of the caller or to it. A page was not there; then the call in the registers begins anew.
    CopyState,
}

/// State of a server of its task's doors: the line of a thread that the fast path needs beside [`Hot`].
#[repr(C, align(64))]
pub struct Server {
    /// The list of servers that wait for a call: [`Servers::idle`](super::door::Servers). `None`: the thread is no server.
    pub pool: Cell<Option<&'static Cell<u64>>>,
    /// Next in that list: the address of a hot line, or 0.
    pub next: Cell<u64>,
    /// The hot line of the thread whose call it serves; that thread may have ended, or wait for another.
    pub caller: Cell<u64>,
    /// The door whose call it serves, or served last; `None` if that has gone since.
    pub door: Cell<Option<&'static Node>>,
    /// Word for which its caller waits, in that thread's `accept`.
    pub key: Cell<u64>,
    /// Stack pointer at the start of each call.
    pub stack: Cell<u64>,
    /// Instruction pointer at which it goes on when it is no server any more.
    pub resume: Cell<u64>,
}

/// Progress of the transfer of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// Number of the part: 0 the direct words, then the strings, then the items.
    pub part: u16,
    /// Bytes of this part that are done; of an item its progress, in another form.
    pub done: u64,
    /// Bytes of all parts that were transferred.
    pub moved: u64,
    /// Whether an item could be mapped only in part.
    pub cut: bool,
    /// Whether the string or item in this part has been begun: then [`Cold::string`] or [`Cold::item`] holds it, whatever the descriptors
    /// say by now.
    pub begun: bool,
    /// Whether interrupts have to be let in before the next part.
    pub pauses: bool,
    /// Whether a page of either side was not there.
    pub faulted: bool,
    /// Whether the sender's patience has an end: it has waited for a fault of the receiver's.
    pub sender_limited: bool,
    /// Whether the receiver's patience has an end: the transfer takes more than a step.
    pub receiver_limited: bool,
}

/// Route of a thread's messages to another across the border of a clan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The destination; nil if no route is known.
    pub to: Uid,
    /// Thread that the message is shown to come from; nil for the sender itself.
    pub shown: Uid,
    /// Receiver: a chief, or the destination.
    pub hop: Uid,
}

impl Place {
    /// Counts so many bytes of the part as done, or as not done if the number is negative.
    pub fn advance(&mut self, bytes: i64) {
        self.done = self.done.wrapping_add_signed(bytes);
        self.moved = self.moved.wrapping_add_signed(bytes);
    }
}

/// Largest size of [`Cold`] in bytes. In debug builds references to threads and tasks carry a generation.
const COLD_MAX: usize = if cfg!(debug_assertions) { 1024 } else { 768 };
const STACK_WORDS: usize = (4096
    - size_of::<Cold>()
    - size_of::<Extended>()
    - size_of::<Bookmark>()
    - size_of::<Frame>()
    - size_of::<Hot>())
    / 8;

/// Words at the upper end of a kernel stack in which the state of a thread stands while it is got or set.
pub const STATE_WORDS: usize = size_of::<ThreadState>() / 8;

/// Words at the lower end of the kernel stack that nothing ever uses, whatever threads do.
const STACK_MARGIN: usize = 48;

const _: () = assert!(STATE_WORDS + STACK_MARGIN < STACK_WORDS);

/// Thread control block: one page.
#[repr(C, align(4096))]
pub struct Tcb {
    cold: Cold,
    /// Extended state of the thread's own shuttle, while the processor holds another's.
    pub extended: Extended,
    /// Mark of a walk that the thread broke off.
    pub bookmark: Bookmark,
    /// Holds [`Tcb::CANARY`] as long as the stack did not run over, and in a kernel that checks itself [`Tcb::MARKED`].
    pub canary: Cell<u64>,
    /// The kernel stack, upside down. Only a kernel that checks itself looks at it, and [`Tcb::place_for_state`] while nothing is on it.
    stack: [Cell<u64>; STACK_WORDS - 1],
    /// User registers.
    pub frame: Frame,
    /// Fields that ipc touches.
    pub hot: Hot,
}

/// Fields that a short message on the fast path does not touch. They are the home processor's alone, unless something else is said.
#[repr(C, align(128))]
pub struct Cold {
    /// State as a server of doors.
    pub server: Server,
    /// The thread's task.
    pub task: Cell<Option<TaskRef>>,
    /// The uid, which stays here while the thread is being ended and nobody finds it by [`Hot::uid`] any more.
    pub name: Cell<Uid>,
    /// The pool frame that the block is.
    pub frame_address: Cell<u64>,
    /// The thread's own shuttle.
    pub home: Shuttle,
    /// See [`State`].
    pub state: Cell<State>,
    /// Message that it sends, or to which it waits for an answer.
    pub errand: Cell<Errand>,
    /// See [`special`].
    pub special: Cell<u32>,
    /// The thread that it waits for in `Receiving`, `Sending`, `Faulting`, `Taking`, `Stalled`, `Calling`.
    pub partner: Cell<Uid>,
    /// The thread to which it lent the shuttle that it claims, if it waits in a way that the fast path cannot end; otherwise nil. Of a
    /// thread that the fast path may answer, `accept` says it.
    pub lent_to: Cell<Uid>,
    /// The receive that it is in, or that follows what it sends.
    pub receiving: Receiving,
    /// How the message that it sends crosses the border of a clan.
    pub crossing: Crossing,
    /// Block into which it receives long messages.
    pub block: Block,
    /// Threads that wait to send to this one, the most urgent first.
    pub senders: Queue,
    /// Membership in another thread's `senders`, among the callers that wait for a server, or among another thread's
    /// [callers that are cut off](Inherited::cut_off).
    pub sender_link: Link,
    /// Membership in the task's list of threads.
    pub task_link: Locked<Link>,
    /// Membership in the task's list of servers.
    pub server_link: Locked<Link>,
    /// The task for whose server it waits.
    pub queueing_at: Cell<Option<TaskRef>>,
    /// Pending timeout.
    pub timeout: Timeout,
    /// Page faults and exceptions, and the threads that deal with them.
    pub fault: Fault,
    /// The shuttle that was taken from it last, while it was on that; none since it took foreign calls again.
    pub lost: Cell<ShuttleRef>,
    /// Words for foreign calls.
    pub foreign: Foreign,
    /// State of the processor beside the registers in the frame.
    pub context: Context,
    /// Interrupt line that is attached to the thread, plus 1; 0 for none.
    pub line: Cell<u16>,
    /// While the thread is being ended: slots below this were searched for threads that wait for it.
    pub cursor: Cell<u32>,
    /// The last thread that an alert has reached for which this one is responsible: it gave it, or is being ended. Nil if there is
    /// none.
    pub alerting: Cell<Uid>,
    /// The operation that the thread is in the middle of.
    pub operation: Cell<Operation>,
    /// The item of a block that it is in the middle of mapping, and its hot spot; see [`Place::begun`].
    pub item: Cell<(Plan, u64)>,
    /// Descriptors, the sender's and the receiver's, of the string of a block that it is in the middle of copying; see [`Place::begun`].
    pub string: Cell<([u64; 2], [u64; 2])>,
    /// State of the inheritance of priorities.
    pub inherited: Inherited,
}

/// A thread's part in the inheritance of priorities; see [`inherit`](crate::inherit).
#[repr(C)]
pub struct Inherited {
    /// Callers that wait for this thread, and whose shuttle was taken away meanwhile, the most urgent first.
    pub cut_off: Queue,
    /// The thread on the home shuttle that stands in a queue, if there is one.
    pub waiter: Cell<Option<ThreadRef>>,
    /// While the thread stands in a queue as the first or the last of its priority: the other of the two, or itself.
    pub end: Cell<Option<ThreadRef>>,
    /// Next of the threads whose home shuttle's effective priority is to be computed anew.
    pub next: Cell<Option<ThreadRef>>,
    /// Next of those of them whose home shuttle is to have its own priority first.
    pub next_to_sink: Cell<Option<ThreadRef>>,
}

/// The receive that a thread is in, or that follows what it sends.
#[repr(C)]
pub struct Receiving {
    /// Things that it takes in the receive beside words, of [`TAKING`]. On the fast path they are in `accept`.
    pub takes: Cell<u64>,
    /// Window of the receive.
    pub window: Cell<Fpage>,
    /// Window of every receive by a short form, set by `thread_control`.
    pub standing: Cell<Fpage>,
    /// While sending: partner of the receive that follows.
    pub from: Cell<Uid>,
    /// While sending: timeout of the receive that follows, as in the ABI.
    pub timeout: Cell<u32>,
}

/// How the message that a thread sends crosses the border of a clan; see `ipc::clan`.
#[repr(C)]
pub struct Crossing {
    /// Thread that the message is shown to come from.
    pub shown: Cell<Uid>,
    /// Flags of the crossing; 0 if the message crosses no border.
    pub bits: Cell<u8>,
    /// Route of the last message across a border.
    pub route: Cell<Route>,
}

/// Page faults and exceptions of a thread, and the threads that deal with them.
#[repr(C)]
pub struct Fault {
    /// Page faults so far.
    pub count: Cell<u32>,
    /// Access of the last page fault.
    pub rights: Cell<Rights>,
    /// Thread that resolves page faults.
    pub pager: Cell<Uid>,
    /// Thread that handles exceptions.
    pub handler: Cell<Uid>,
    /// Address of the last page fault.
    pub address: Cell<u64>,
    /// Vector of the last exception.
    pub exception: Cell<u64>,
    /// Whether that was a system call which its handler has in all registers, as a foreign call.
    pub is_foreign: Cell<bool>,
}

/// Value of [`Foreign::stack`] that is no stack pointer.
pub const NO_STACK: u64 = u64::MAX;

/// Words that the fast path needs for foreign calls: of the thread that makes them the first three, of their handler the last.
#[repr(C, align(32))]
pub struct Foreign {
    /// The hot line of the thread's handler, or its own.
    pub handler: Cell<u64>,
    /// Word that the handler has in `accept` while it takes a call of this thread; [`POISON`] if the fast path must not see the thread's
    /// calls.
    pub key: Cell<u64>,
    /// Mark and label of the thread's calls, with the flags that the handler gets.
    pub mark: Cell<u64>,
    /// The stack pointer with which the handler goes on when it has returned; [`NO_STACK`] as long as it has taken no foreign calls.
    pub stack: Cell<u64>,
}

impl Foreign {
    /// Makes the words of a new thread: its foreign calls are not for the fast path.
    pub fn init(&self, own: &Hot) {
        self.handler.set(core::ptr::from_ref(own) as u64);
        self.key.set(POISON);
        self.mark.set(FOREIGN | FLAGS);
        self.stack.set(NO_STACK);
    }
}

/// State of the processor that a thread has beside the registers in its frame.
#[repr(C)]
pub struct Context {
    /// Thread whose extended state is beside the home shuttle, if the processor does not hold it.
    pub state_of: Cell<Uid>,
    /// FS base, on a processor without instructions for it.
    pub fs_base: Cell<u64>,
    /// Events that a debugger waits for.
    pub breakpoints: Breakpoints,
}

#[allow(unsafe_code)]
// SAFETY: cells; `None`, `State::Inactive`, `Errand::Ipc`, `Operation::None` and the like are zero. (The enums
// are listed with explicit zero variants or, for `Operation`, written before use by `Tcb::init`.)
unsafe impl Zeroable for Tcb {}

const _: () = assert!(size_of::<Tcb>() == 4096);
const _: () = assert!(size_of::<Cold>() <= COLD_MAX);
const _: () = assert!(size_of::<Hot>() == 64);
const _: () = assert!(core::mem::offset_of!(Tcb, hot) == Tcb::HOT_OFFSET);
const _: () = assert!(core::mem::offset_of!(Tcb, frame) % 16 == 0, "the stack must be aligned for calls");

impl core::ops::Deref for Tcb {
    type Target = Cold;

    fn deref(&self) -> &Cold {
        &self.cold
    }
}

/// Tag of the list of threads that wait to send to a thread.
pub struct Senders;

impl Tag for Senders {
    fn link(thread: &ThreadRef) -> &Link {
        &thread.sender_link
    }
}

/// Tag of the list of a task's threads.
pub struct OfTask;

impl Tag for OfTask {
    fn link(thread: &ThreadRef) -> &Link {
        &thread.task_link
    }
}

/// A control block that exists.
#[derive(Clone, Copy)]
pub struct ThreadRef(Checked<Tcb>);

impl Generation for Tcb {
    fn generation(&self) -> u32 {
        self.name.get().generation()
    }
}

impl ThreadRef {
    /// Wraps a block.
    pub fn new(tcb: &'static Tcb) -> ThreadRef {
        ThreadRef(Checked::new(tcb))
    }

    /// The block of a slot of the array. A slot without a thread shows zeroes, or on the simulated machine, nothing.
    #[inline]
    #[allow(unsafe_code)]
    pub fn in_slot(slot: u32) -> Option<ThreadRef> {
        let block = arch::slot_block(slot)?.cast::<Tcb>();
        // SAFETY: a block for which a frame was mapped, or zeroes, which are a valid one; only mapped blocks are written to.
        Some(ThreadRef::new(unsafe { &*block }))
    }

    /// The thread with a name, alive or in the middle of its end.
    #[inline]
    pub fn named(name: Uid) -> Option<ThreadRef> {
        ThreadRef::in_slot(name.slot()).filter(|thread| thread.name.get() == name)
    }

    /// The block itself, for as long as the kernel runs.
    pub fn tcb(self) -> &'static Tcb {
        self.0.get()
    }

    /// Sets and clears bits of [`special`], and folds again.
    pub fn set_special(self, set: u32, clear: u32) {
        let before = self.special.get();
        let special = before & !clear | set;
        let wait = if self.hot.accept.get() == NEVER && self.state.get() != State::Idle {
            Wait::No
        } else {
            self.wait()
        };
        match wait {
            Wait::Idle => {
                let servers = &self.task().state().doors.servers;
                servers.unlist(self);
                self.special.set(special);
                servers.enlist(self);
            }
            Wait::Foreign(_) => self.unfold(),
            _ if special != 0 => self.unfold(),
            _ => {}
        }
        self.special.set(special);
        self.refold();
        if (before | special) & special::DENY_NATIVE != 0 {
            self.refold_foreign();
        }
    }

    /// Computes the words for the fast path of foreign calls. To be called whenever a thread to which native calls are denied gets another
    /// handler, or other bits of `special`.
    pub fn refold_foreign(self) {
        let name = self.fault.handler.get();
        let is_handler = |handler: &ThreadRef| {
            !name.is_nil() && handler.uid() == name && *handler != self && handler.may_do_calls_of(self)
        };
        match ThreadRef::named(name).filter(is_handler) {
            Some(handler) if self.special.get() == special::DENY_NATIVE => {
                self.foreign.handler.set(super::door::hot_address(handler));
                self.foreign.key.set(handler.foreign_key());
            }
            _ => {
                self.foreign.handler.set(super::door::hot_address(self));
                self.foreign.key.set(POISON);
            }
        }
    }

    /// Whether the thread may have another one's foreign calls: it belongs to that one's task, or to the chief of that. So nobody else can make a thread
    /// whose calls look like those of a thread that the handler knows.
    pub fn may_do_calls_of(self, thread: ThreadRef) -> bool {
        let (own, task) = (self.task(), thread.task());
        own == task || task.chief.get() == Some(own)
    }

    /// Makes the thread wait for the return from its foreign call, which `handler` has taken on the shuttle that the thread lent. True if the
    /// fast path may end the wait; otherwise nothing is changed.
    pub fn fold_foreign(self, handler: ThreadRef) -> bool {
        if self.foreign.key.get() != handler.foreign_key() {
            return false;
        }
        self.errand.set(Errand::Ipc);
        self.lent_to.set(Uid::NIL);
        self.state.set(State::Ready);
        self.hot.accept.set(self.foreign.key.get());
        // Both may have been set while the call was in the queue.
        self.hot.ip.set(self.frame.ip());
        self.hot.sp.set(self.frame.sp());
        self.hot.key.set(self.frame.call_flags());
        true
    }

    /// Instruction pointer, stack pointer and flags of a thread that waits for the return from a foreign call in a way that the fast path may end. It goes on there.
    pub fn place_of_foreign_call(self) -> [u64; 3] {
        [self.hot.ip.get(), self.hot.sp.get(), Frame::user_flags(self.hot.key.get())]
    }

    /// Sets these, of which the caller answers that they are fit for user mode.
    pub fn set_place_of_foreign_call(self, [ip, sp, flags]: [u64; 3]) {
        self.hot.ip.set(ip);
        self.hot.sp.set(sp);
        self.hot.key.set(flags);
    }

    /// Whether it waits for the return from a foreign call in a way that the fast path may end.
    #[inline(always)]
    pub fn is_folded_foreign(self) -> bool {
        matches!(self.wait(), Wait::Foreign(_))
    }

    /// Makes a wait that has to do with foreign calls one that [`Tcb::common_wait`] tells, and returns it.
    #[cold]
    #[inline(never)]
    pub fn settle(self) -> Wait {
        if self.wait() != Wait::Idle {
            self.unfold();
        }
        self.common_wait()
    }

    /// Makes the wait for the return from a foreign call that for the answer to an exception. The other registers are with the handler.
    #[cold]
    fn unfold_foreign(self, handler: Uid) {
        self.fault.exception.set(vector::SYSCALL);
        self.fault.is_foreign.set(true);
        self.errand.set(Errand::Exception);
        self.frame.complete_foreign(self.hot.ip.get(), self.hot.sp.get(), self.hot.key.get());
        self.set_faulting(handler, true);
        self.refold();
    }

    /// Makes a wait for an answer or for anybody, which the fast path might end, one that it cannot end.
    #[inline(never)]
    pub fn unfold(self) {
        let to = match self.stake() {
            _ if self.hot.accept.get() == NEVER => return,
            Stake::Claims(to) => to,
            _ => Uid::NIL,
        };
        let foreign = if self.takes_foreign() { TAKES_FOREIGN } else { 0 };
        self.receiving.takes.set(self.taking() | foreign);
        match self.wait() {
            Wait::Foreign(handler) => return self.unfold_foreign(handler),
            Wait::Return(server) => self.set_call_of(server),
            Wait::Closed(from) => self.set_wait_slowly(from, to),
            _ => self.set_wait_slowly(Uid::ANY, to),
        }
        self.receiving.window.set(self.open_window());
        self.errand.set(Errand::Ipc);
        // The fast path does not record that the thread is in a system call; the last trap is long over.
        self.frame.mode.set(Frame::SYSRET);
    }

    /// The shuttle reference that names this thread's own shuttle now.
    #[inline(always)]
    pub fn home_ref(self) -> ShuttleRef {
        self.home.reference.get()
    }
}

impl core::ops::Deref for ThreadRef {
    type Target = Tcb;

    #[inline(always)]
    fn deref(&self) -> &Tcb {
        self.0.get()
    }
}

impl PartialEq for ThreadRef {
    fn eq(&self, other: &ThreadRef) -> bool {
        core::ptr::eq(self.0.place(), other.0.place())
    }
}

impl core::fmt::Debug for ThreadRef {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        write!(f, "thread {:?}", self.uid())
    }
}

impl Tcb {
    /// Offset of [`Hot`] in the block.
    pub const HOT_OFFSET: usize = 4096 - size_of::<Hot>();
    /// Distance from the hot line to [`Cold::block`].
    pub const BLOCK_FROM_HOT: i64 = core::mem::offset_of!(Tcb, cold.block) as i64 - Tcb::HOT_OFFSET as i64;
    /// Distance from the hot line to [`Cold::server`].
    pub const SERVER_FROM_HOT: i64 = core::mem::offset_of!(Tcb, cold.server) as i64 - Tcb::HOT_OFFSET as i64;
    /// Distance from the hot line to [`Receiving::standing`].
    pub const STANDING_FROM_HOT: i64 =
        core::mem::offset_of!(Tcb, cold.receiving.standing) as i64 - Tcb::HOT_OFFSET as i64;
    /// Distance from the hot line to [`Cold::foreign`].
    pub const FOREIGN_FROM_HOT: i64 =
        core::mem::offset_of!(Tcb, cold.foreign) as i64 - Tcb::HOT_OFFSET as i64;
    /// Distance from the hot line to [`Cold::task`].
    pub const TASK_FROM_HOT: i64 = core::mem::offset_of!(Tcb, cold.task) as i64 - Tcb::HOT_OFFSET as i64;
    /// Bytes of the block that must be zero before it is used for a new thread.
    pub const COLD_BYTES: usize = size_of::<Cold>();
    /// Value of `canary`.
    pub const CANARY: u64 = 0x7465_726e;
    /// Bit of `canary`: the lower end of the stack holds the canary too, as [`Tcb::check_stack`] left it.
    pub const MARKED: u64 = 1 << 32;

    /// The thread's uid.
    pub fn uid(&self) -> Uid {
        Uid(self.hot.uid.get())
    }

    /// The thread's task. Every thread that a uid leads to has one.
    pub fn task(&self) -> TaskRef {
        self.task.get().expect("a thread without a task")
    }

    /// The pool frame that the block is.
    pub fn own_frame(&self) -> PoolFrame {
        PoolFrame(self.frame_address.get())
    }

    fn true_key(&self) -> u64 {
        self.uid().0 | CPU << STATION_SHIFT
    }

    fn true_open_key(&self) -> u64 {
        (self.uid().clan() as u64) << CLAN_SHIFT | CPU << STATION_SHIFT | OPEN_MARK
    }

    /// The thread's wait, wherever that is recorded.
    #[inline(always)]
    pub fn wait(&self) -> Wait {
        self.wait_or(|| self.rare_wait())
    }

    /// The thread's wait, with [`Wait::Idle`] for all that are rarely met; see [`ThreadRef::settle`].
    #[inline(always)]
    pub fn common_wait(&self) -> Wait {
        self.wait_or(|| Wait::Idle)
    }

    #[inline(always)]
    fn wait_or(&self, rare: impl FnOnce() -> Wait) -> Wait {
        let accept = self.hot.accept.get();
        if accept == NEVER {
            return match self.state.get() {
                State::Receiving if self.partner.get() == Uid::ANY => Wait::Open,
                State::Receiving => Wait::Closed(self.partner.get()),
                State::Faulting => Wait::Answer(self.partner.get()),
                State::Calling => Wait::Return(self.partner.get()),
                State::Idle => Wait::Idle,
                _ => Wait::No,
            };
        }
        let uid = accepted(accept);
        if accept & OPEN == OPEN {
            return Wait::Open;
        }
        match accept & (0xf & !TAKING) {
            0 => Wait::Closed(uid),
            DOOR_MARK => Wait::Return(uid),
            _ => rare(),
        }
    }

    /// The thread that takes foreign calls, or does one, if the wait of this thread is one of [`FOREIGN_MARK`].
    #[inline(always)]
    pub fn foreign_handler(&self) -> Option<Uid> {
        let accept = self.hot.accept.get();
        if accept & 0xf == FOREIGN_MARK { Some(accepted(accept)) } else { None }
    }

    #[inline(always)]
    fn rare_wait(&self) -> Wait {
        self.foreign_handler().map_or(Wait::Idle, |handler| self.foreign_wait(handler))
    }

    #[cold]
    #[inline(never)]
    fn foreign_wait(&self, handler: Uid) -> Wait {
        if handler == self.uid() { Wait::Open } else { Wait::Foreign(handler) }
    }

    /// Word in `accept` while the thread takes foreign calls and the fast path may see it.
    #[inline(always)]
    pub fn foreign_key(&self) -> u64 {
        self.true_key() | FOREIGN_MARK
    }

    /// Whether the thread, which waits or is about to, takes foreign calls.
    #[inline(always)]
    pub fn takes_foreign(&self) -> bool {
        match self.hot.accept.get() {
            NEVER => self.receiving.takes.get() & TAKES_FOREIGN != 0,
            accept => accept == self.foreign_key(),
        }
    }

    /// Meaning of the thread's word about a shuttle.
    #[inline(always)]
    pub fn stake(&self) -> Stake {
        match self.wait() {
            Wait::Foreign(handler) => Stake::Claims(handler),
            wait => self.stake_in(wait),
        }
    }

    /// Meaning of that word for a thread whose wait is known, and none for the return from a foreign call.
    #[inline(always)]
    pub fn stake_in(&self, wait: Wait) -> Stake {
        match wait {
            Wait::Open | Wait::Idle => Stake::Nothing,
            Wait::Closed(from) | Wait::Return(from) if self.hot.accept.get() != NEVER => Stake::Claims(from),
            _ => match self.lent_to.get() {
                Uid::NIL => Stake::Holds,
                to => Stake::Claims(to),
            },
        }
    }

    /// Things that the thread, which waits or is about to, takes from its partner, of [`TAKING`].
    #[inline(always)]
    fn taking(&self) -> u64 {
        let accept = self.hot.accept.get();
        if accept == NEVER { self.receiving.takes.get() } else { accept & TAKING }
    }

    /// Whether it takes a block, and has one.
    #[inline(always)]
    pub fn takes_block(&self) -> bool {
        self.block.room.get() != 0 && self.taking() & TAKES_BLOCK != 0
    }

    /// Whether it takes an item into its standing window.
    #[inline(always)]
    pub fn takes_item(&self) -> bool {
        self.taking() & TAKES_ITEM != 0
    }

    /// The standing window, if items may arrive there: in a receive without a window of its own.
    #[inline(always)]
    pub fn open_window(&self) -> Fpage {
        if self.takes_item() { self.receiving.standing.get() } else { Fpage::NIL }
    }

    /// Whether the thread would run if it were its turn (it may be stopped all the same).
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        self.hot.accept.get() == NEVER && self.state.get() == State::Ready
    }

    /// Whether the ipc that it is in the middle of is a call. Its registers still name the destination.
    pub fn is_calling(&self) -> bool {
        self.receiving.from.get().0 == self.frame.partner()
    }

    /// Whether somebody may stand in its queue, or be [cut off](Inherited::cut_off) from it: its key, or the fast path's flags in the place of
    /// that, say so.
    #[inline(always)]
    pub fn is_awaited(&self) -> bool {
        self.hot.key.get() & 0xf != 0
    }

    /// Whether it stands in a queue since it wants to send, or to call through a door.
    pub fn is_queued(&self) -> bool {
        self.hot.accept.get() == NEVER && matches!(self.state.get(), State::Sending | State::Queueing)
    }

    /// Whether it must not run, ready or not.
    #[inline(always)]
    pub fn is_stopped(&self) -> bool {
        self.special.get() & special::STOPPED != 0
    }

    /// Makes the thread wait for `from` (a thread, an interrupt, or anybody), and take what [`Receiving::takes`] says. `lent_to`: the
    /// thread to which it has lent its shuttle; nil if it has not. `plain`: the wait
    /// has neither a timeout nor a window but the [open one](Tcb::open_window), so that the fast path may end it. The fast
    /// path takes every wait for one thread for a wait for the answer to a call.
    #[inline(always)]
    pub fn set_wait(&self, from: Uid, plain: bool, lent_to: Uid) {
        let takes = self.receiving.takes.get();
        let plain = plain && self.special.get() == 0;
        if plain && from == lent_to {
            self.state.set(State::Ready);
            self.hot.accept.set(from.0 | CPU << STATION_SHIFT | takes);
        } else if plain && from == Uid::ANY && takes == TAKING {
            self.state.set(State::Ready);
            self.hot.accept.set(self.true_open_key());
        } else if takes & TAKES_FOREIGN != 0 {
            self.set_wait_for_foreign(from, plain, lent_to);
        } else {
            self.set_wait_slowly(from, lent_to);
        }
    }

    #[cold]
    #[inline(never)]
    fn set_wait_for_foreign(&self, from: Uid, plain: bool, lent_to: Uid) {
        if plain && from == Uid::ANY && self.receiving.takes.get() == FOREIGN_MARK {
            self.state.set(State::Ready);
            self.hot.accept.set(self.foreign_key());
        } else {
            self.set_wait_slowly(from, lent_to);
        }
    }

    fn set_wait_slowly(&self, from: Uid, lent_to: Uid) {
        self.hot.accept.set(NEVER);
        self.lent_to.set(lent_to);
        self.state.set(State::Receiving);
        self.partner.set(from);
    }

    /// Makes the thread wait for the return from a call through a door, which `server` serves. If the thread is alerted, so is its
    /// server from now on.
    pub fn set_call(&self, server: ThreadRef) {
        if self.special.get() | server.special.get() == 0 {
            self.state.set(State::Ready);
            self.hot.accept.set(server.server.key.get() | self.receiving.takes.get());
        } else {
            self.set_call_of(server.uid());
            if self.special.get() & special::ALERTED != 0 {
                server.set_special(special::ALERTED, 0);
            }
        }
    }

    fn set_call_of(&self, server: Uid) {
        self.hot.accept.set(NEVER);
        self.lent_to.set(server);
        self.state.set(State::Calling);
        self.partner.set(server);
    }

    /// Whether a window is the [open one](Tcb::open_window) of a thread that is about to wait. Most have none at all.
    #[inline(always)]
    pub fn is_open_window(&self, window: Fpage) -> bool {
        let standing = self.receiving.standing.get();
        window.0 | standing.0 == 0
            || window == if self.receiving.takes.get() & TAKES_ITEM != 0 { standing } else { Fpage::NIL }
    }

    /// Ends any wait: the thread is ready from now on.
    pub fn set_ready(&self) {
        self.hot.accept.set(NEVER);
        self.state.set(State::Ready);
    }

    /// Computes the two keys from the true state. To be called whenever `special` or the emptiness of
    /// `senders` changes.
    pub fn refold(&self) {
        let special = self.special.get() != 0;
        // A thread that waits for the return from a foreign call has its flags in the place of its key.
        if special && self.hot.accept.get() & 0xf == FOREIGN_MARK {
            return;
        }
        let queue = !self.senders.is_empty();
        self.hot.key.set(if special || queue { POISON } else { self.true_key() });
        self.block.answer_key.set(self.hot.key.get() | TAKES_BLOCK);
        self.hot.open_key.set(if special { POISON } else { self.true_open_key() });
        self.server.key.set(if special { POISON } else { self.true_key() | DOOR_MARK });
    }

    /// Instruction pointer at which the thread continues in user mode.
    pub fn user_ip(&self) -> u64 {
        if self.is_trapped() { self.frame.ip() } else { self.hot.ip.get() }
    }

    /// The user's stack pointer.
    pub fn user_sp(&self) -> u64 {
        if self.is_trapped() { self.frame.sp() } else { self.hot.sp.get() }
    }

    /// Whether the thread left user mode by an exception or interrupt. The fast path does not record that a thread
    /// is in a system call, but then `accept` tells.
    pub fn is_trapped(&self) -> bool {
        self.hot.accept.get() == NEVER && self.frame.mode.get() & Frame::TRAP != 0
    }

    /// Sets the trap flag of a thread that is stepped, wherever it goes on in user mode, and clears that of any other.
    pub fn set_trap_flag(&self) {
        self.frame.set_stepped(self.is_trapped(), self.special.get() & special::STEPPED != 0);
    }

    /// Makes the thread wait for the answer of `partner` to its page fault or exception, for which it `lends` its shuttle.
    #[inline(always)]
    pub fn set_faulting(&self, partner: Uid, lends: bool) {
        self.hot.accept.set(NEVER);
        self.lent_to.set(if lends { partner } else { Uid::NIL });
        self.state.set(State::Faulting);
        self.partner.set(partner);
    }

    /// Whether the kernel stack did not run over.
    #[inline(always)]
    pub fn stack_ends_well(&self) -> bool {
        self.canary.get() as u32 == Tcb::CANARY as u32
    }

    /// Room for a state of the thread, which does not run: the upper end of its kernel stack, on which nothing is.
    pub fn place_for_state(&self) -> &[Cell<u64>; STATE_WORDS] {
        self.stack.last_chunk().expect("the stack is larger")
    }

    /// Checks that the lower end of the kernel stack was not used since the last call, while nothing is on the stack.
    pub fn check_stack(&self) {
        assert!(self.stack_ends_well(), "kernel stack overflow");
        let end = self.stack.first_chunk::<STACK_MARGIN>().expect("the stack is larger");
        if self.canary.get() & Tcb::MARKED != 0 {
            let left = end.iter().take_while(|word| word.get() == Tcb::CANARY).count();
            assert_eq!(left, STACK_MARGIN, "words of a kernel stack that are left");
        }
        end.iter().for_each(|word| word.set(Tcb::CANARY));
        self.canary.set(Tcb::CANARY | Tcb::MARKED);
    }

    /// Checks what the block's fields promise each other; test builds call it after each operation.
    pub fn check(&self) {
        assert!(self.stack_ends_well(), "kernel stack overflow");
        let special = self.special.get() != 0;
        let (accept, key) = (self.hot.accept.get(), self.hot.key.get());
        // The key of a thread that made a foreign call is its flags, which are nobody's key: one of their bits is in the station's place.
        let has_flags = self.special.get() == special::DENY_NATIVE && key & FLAGS == FLAGS && key >> 32 == 0;
        if special {
            let is_foreign = has_flags && accept & 0xf == FOREIGN_MARK && accepted(accept) != self.uid();
            assert!(accept == NEVER || is_foreign, "a special thread is open to the fast path");
            assert_eq!(self.hot.open_key.get(), POISON);
        }
        if self.foreign.key.get() != POISON {
            assert_eq!(
                self.special.get(),
                special::DENY_NATIVE,
                "a thread's foreign calls are open to the fast path"
            );
        }
        if self.is_ready() || self.hot.accept.get() != NEVER {
            assert_eq!(
                self.lent_to.get(),
                Uid::NIL,
                "a thread runs, or the fast path answers it, and a claim is left"
            );
        }
        assert!(has_flags || self.block.answer_key.get() == key | TAKES_BLOCK);
        assert_eq!(key == POISON || has_flags, special || !self.senders.is_empty());
        let is_cut_off = self.sender_link.is_linked() && matches!(self.stake(), Stake::Claims(_));
        assert_eq!(self.sender_link.is_linked(), self.is_queued() || is_cut_off);
        assert_eq!(self.special.get() & special::CUT_OFF != 0, !self.inherited.cut_off.is_empty());
    }
}

#[cfg(test)]
impl Tcb {
    /// A block outside any pool.
    pub fn leak_for_tests() -> &'static Tcb {
        let pool = crate::mem::pool::Pool::for_tests(3);
        let frame = pool.take_zeroed().expect("a new pool has a frame");
        pool.at::<Tcb>(frame)
    }
}

/// Thread of a wait that is not open, by the word `accept`.
#[inline(always)]
fn accepted(accept: u64) -> Uid {
    Uid(accept & !(0xff << STATION_SHIFT | 0xf))
}

/// The number of this CPU. Keys carry it, so that a thread of another CPU fails the fast path's compare.
const CPU: u64 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_of_the_lower_end_of_a_stack_is_noticed() {
        let tcb = Tcb::leak_for_tests();
        tcb.canary.set(Tcb::CANARY);
        tcb.stack[0].set(1);
        tcb.check_stack();
        // All but the lower end may hold anything, and a block may be looked at any number of times.
        tcb.stack[STACK_MARGIN].set(1);
        tcb.check_stack();
        tcb.check_stack();
        tcb.stack[STACK_MARGIN - 1].set(0);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tcb.check_stack())).is_err());
        assert!(tcb.stack_ends_well());
    }
}
