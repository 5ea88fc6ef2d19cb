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

mod fold;
mod state;

pub use fold::{FOREIGN_MARK, IDLE, NEVER, TAKES_BLOCK, TAKES_FOREIGN, TAKES_ITEM, TAKING, Wait, taken_by};
pub use state::{Errand, Operation, Place, Route, State, special};

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
use crate::lend::word::Word;
use crate::mem::plan::Plan;
use crate::mem::pool::{Frame as PoolFrame, Zeroable};
use crate::util::discipline::Locked;
use crate::util::list::{Link, Tag};
use crate::util::timeout::Timeout;
use abi::call::{FLAGS, FOREIGN};
use abi::{Fpage, Rights, ThreadState, Uid};
use core::cell::Cell;
use fold::POISON;

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
    /// The shuttle that the caller had lent whose foreign call it does, if that caller waits no longer: its return goes to nobody.
    pub unwanted: Cell<ShuttleRef>,
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

    /// Whether the ipc that it is in the middle of is a call. Its registers still name the destination.
    pub fn is_calling(&self) -> bool {
        self.receiving.from.get().0 == self.frame.partner()
    }

    /// Whether it must not run, ready or not.
    #[inline(always)]
    pub fn is_stopped(&self) -> bool {
        self.special.get() & special::STOPPED != 0
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
