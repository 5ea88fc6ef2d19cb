//! System calls: numbers, registers, message kinds.
//!
//! Every call is the instruction `syscall` with the operation in `eax`. Native numbers have bit 31 set, so
//! that they are disjoint from Linux's; any other number becomes an exception ipc to the thread's handler.
//! `rcx` and `r11` are destroyed; flags come back as [`FLAGS`] after ipc.
//!
//! ## ipc
//!
//! | register | in | out |
//! |---|---|---|
//! | `eax` | [`IPC_CALL`], [`IPC_REPLY_WAIT`] or [`Call::Ipc`] with flags | [`Kind`] of the message received (bit 31 set), or an [`Error`](crate::Error) (bit 31 clear), or 0 if nothing was to be received |
//! | upper half of `rax` | label: 32 bits that travel with the message | sender's label |
//! | `rdx` | destination, or nil | sender |
//! | `rdi rsi r8 r9 r10 r12 r13 r14` | w0 … w7 | w0 … w7 |
//! | `rbx` | short forms: w8; [`Call::Ipc`]: thread to receive from (nil: no receive) | w8 or 0 |
//! | `rbp` | short forms: w9; [`Call::Ipc`]: window for a map item ([`Fpage`](crate::Fpage), 0: none) | w9 or 0 |
//! | `r15` | short forms: w10; [`Call::Ipc`]: timeouts, send in the low half, receive in the high half ([`Timeout`]) | w10 or 0 |
//!
//! The two short forms are what a client and a server do all day (row P1): *call* sends to `rdx` and waits
//! for the answer of that thread alone; *reply and wait* sends to `rdx` if that thread is waiting for it, and
//! then waits for anybody. A reply never blocks: if the destination does not wait, the message is dropped.
//! *Call* waits forever in both phases. Neither can carry a map item; *reply and wait* accepts one
//! in the thread's standing window ([`thread_op::SET_WINDOW`]), and so does *call* if its answer may bring one
//! ([`op::TAKES_ITEM`]). w8 … w10 arrive if the sender used
//! a short form, whatever form the receiver used; otherwise the receiver finds 0 there. After an error all message
//! registers are 0.
//!
//! With [`op::ITEM`] the general form also sends a map item: w6 is the flexpage with the rights to give (and
//! [`Rights::GRANT`](crate::Rights)), w7 the hot spot, which selects the place in the larger of flexpage and
//! window. The receiver gets in w6 the flexpage where the item arrived, in its own addresses, and w7 as it was sent.
//!
//! ## Messages with a part in memory
//!
//! [`IPC_LONG_CALL`] and [`IPC_LONG_REPLY_WAIT`] are the short forms for a message that has a
//! [block](crate::message); so is [`Call::Ipc`] with [`op::BLOCK`]. Then w0 is its [`Dope`](crate::Dope) and w1 its address;
//! w2 … w9 (with [`Call::Ipc`]: w2 … w7) are words as always, and w10 is lost. The receiver must have registered a block
//! to receive into ([`thread_op::SET_BLOCK`]), and take one just now: in *reply and wait*, and in a call or the general
//! form with [`op::TAKES_BLOCK`]. It finds its dope in w0, with the lengths of the message as used, and its address in w1;
//! [`NO_BLOCK`] is clear in `eax`. Its other words are the sender's.
//!
//! ## All other calls
//!
//! Number in the low byte of `eax`, sub-operation in bits 8–15. Arguments in `rdi rsi rdx r10 r8 r9`; `rax`
//! returns 0 or an [`Error`](crate::Error), results come in the same six registers; all registers that carry no
//! result are preserved.

use crate::op::{self, Op};

/// `eax` of *call*: send to `rdx`, wait for its answer; no timeouts. The fast path (row P1).
pub const IPC_CALL: u32 = Op::CALL.0;
/// `eax` of *reply and wait*: send to `rdx` without blocking, then wait for anybody. The fast path (row P1).
pub const IPC_REPLY_WAIT: u32 = Op::REPLY_WAIT.0;
/// `eax` of [`IPC_CALL`] with a block.
pub const IPC_LONG_CALL: u32 = Op::CALL.with(op::BLOCK).0;
/// `eax` of [`IPC_REPLY_WAIT`] with a block. If the receiver has no room for it, only the receiver gets an error.
pub const IPC_LONG_REPLY_WAIT: u32 = Op::REPLY_WAIT.with(op::BLOCK).0;
/// `eax` of [`IPC_CALL`] whose answer may bring a block.
pub const IPC_TAKING_CALL: u32 = Op::CALL.with(op::TAKES_BLOCK).0;
/// `eax` of [`IPC_CALL`] whose answer may bring an item.
pub const IPC_ITEM_TAKING_CALL: u32 = Op::CALL.with(op::TAKES_ITEM).0;
/// `eax` of [`IPC_LONG_CALL`] whose answer may bring a block.
pub const IPC_LONG_TAKING_CALL: u32 = Op::CALL.with(op::BLOCK | op::TAKES_BLOCK).0;
/// `eax` of *door call*: `rdx` is a door identifier of the caller's task, its low 32 bits count. The words, eleven as in the
/// other short forms, arrive with a server thread of the task that made the door, at the door's entry, with the door's datum
/// in `rdx`. The caller waits for the return. No timeouts. The fast path (rows D1, D11).
///
/// If there is no such identifier the error is [`NoSuch`](crate::Error::NoSuch), and all registers but `rax` are as they were.
pub const DOOR_CALL: u32 = Op::DOOR_CALL.0;
/// `eax` of *door return*: the words arrive with the caller that the kernel recorded, with 0 in `rdx`, if it still waits. The
/// thread itself waits for its next call, which begins anew with the stack that it had at [`door_op::SERVE`]. The fast
/// path (row D3).
pub const DOOR_RETURN: u32 = Op::DOOR_RETURN.0;
/// `eax` of [`DOOR_CALL`] with a block, as of [`IPC_LONG_CALL`] (rows D12, D13). It arrives in the block of the server that takes the
/// call, which the server has registered like any thread.
pub const DOOR_LONG_CALL: u32 = Op::DOOR_CALL.with(op::BLOCK).0;
/// `eax` of [`DOOR_RETURN`] with a block. If the caller has no room for it, the caller gets an error.
pub const DOOR_LONG_RETURN: u32 = Op::DOOR_RETURN.with(op::BLOCK).0;
/// `eax` of [`DOOR_CALL`] with a map item in w6 and w7, as of [`op::ITEM`]: eight words, and the item arrives in the standing window
/// of the server that takes the call.
pub const DOOR_ITEM_CALL: u32 = Op::DOOR_CALL.with(op::ITEM).0;
/// `eax` of [`DOOR_RETURN`] with a map item, into the standing window of the caller.
pub const DOOR_ITEM_RETURN: u32 = Op::DOOR_RETURN.with(op::ITEM).0;
/// `eax` of [`DOOR_CALL`] whose return may bring a block. The other calls have such a form, too, and all have one for an item.
pub const DOOR_TAKING_CALL: u32 = Op::DOOR_CALL.with(op::TAKES_BLOCK).0;
/// Log2 of [`DOORS_MAX`].
pub const DOORS_LOG2: u32 = 18;
/// Number of door identifiers that a task can have: numbers from 0 on.
pub const DOORS_MAX: u32 = 1 << DOORS_LOG2;
/// Number of server threads that a task can have.
pub const SERVERS_MAX: u32 = 128;
/// `eax` of the null call: enters and leaves the kernel, for measurements. It is never denied.
pub const NULL: u32 = 0xffff_fffd;

/// `eax` of the return from a foreign call, in which all other registers are results. The words, `rdx` and, as the caller's `rax`, the
/// handler's `rsp` arrive with the thread on whose time the handler works; that goes on behind its `syscall`, with its own
/// stack pointer and flags. The handler then waits for anybody, as in *reply and wait*, and takes foreign calls: it goes on behind this
/// `syscall` with the stack pointer of its last wait with [`op::TAKES_FOREIGN`]. If nobody waits for it, the registers are dropped. The fast path.
///
/// A foreign call is one whose number has bit 31 clear, of a thread to which native calls are denied
/// ([`thread_op::DENY_NATIVE`]). It arrives with the thread's handler, if that takes foreign calls, in all registers but three: `rsp` is the
/// handler's, `rcx` is destroyed, and `r11` has [`FOREIGN`] and the label. With any other handler it is an exception.
pub const FOREIGN_RETURN: u32 = 0xffff_fffb;
/// Bit of `r11` with a foreign call; after any other message it is clear. Bits 32 to 62 are the thread's label.
pub const FOREIGN: u64 = 1 << 63;
/// Largest label of a thread whose foreign calls are handled.
pub const FOREIGN_LABEL_MAX: u64 = (1 << 31) - 1;

/// Points in time from this one on, 146 years after boot, never come; see [`op::ABSOLUTE`].
pub const ABSOLUTE_END: u64 = 1 << 62;

/// RFLAGS after an ipc: interrupts on, everything else clear.
pub const FLAGS: u64 = 0x202;

/// System-call numbers: bit 31 and the number in the low byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Call {
    /// Send and/or receive with all options; see the module's table.
    Ipc = 0x8000_0001,
    /// Take pages, ports or interrupts back from everyone who got them from the caller (row C2).
    ///
    /// In: `rdi` flexpage; its rights are those to take away. `rsi` [`FLUSH_SELF`] or 0.
    /// Out: `rdi` bit 0: some page was accessed, bit 1: some page was written, since the last flush.
    Flush = 0x8000_0002,
    /// Operations on a thread; see [`thread_op`].
    ThreadControl = 0x8000_0003,
    /// Operations on a task; see [`task_op`].
    TaskControl = 0x8000_0004,
    /// Give the rest of the time slice away. In: `rdi` thread to run next, or nil for the next in the queue.
    ThreadSwitch = 0x8000_0005,
    /// Tell the time. Out: `rdi` nanoseconds since the kernel started.
    Clock = 0x8000_0006,
    /// Operations on doors and server threads; see [`door_op`].
    DoorControl = 0x8000_0007,
}

impl Call {
    /// Every call with its name, in numeric order.
    pub const ALL: [(Call, &'static str); 7] = [
        (Call::Ipc, "ipc"),
        (Call::Flush, "flush"),
        (Call::ThreadControl, "thread_control"),
        (Call::TaskControl, "task_control"),
        (Call::ThreadSwitch, "thread_switch"),
        (Call::Clock, "clock"),
        (Call::DoorControl, "door_control"),
    ];
}

/// Flag of [`Call::Flush`]: also take the pages from the caller itself.
pub const FLUSH_SELF: u64 = 1;

/// Sub-operations of [`Call::ThreadControl`]. `rdi` is the thread, nil for the caller itself. A task controls
/// its own threads, a chief those of the tasks that it created.
pub mod thread_op {
    /// Make a thread. In: `rdi` task (nil: own), `rsi` priority, `rdx` pager, `r10` exception handler.
    /// Out: `rdi` uid. It does not run before [`START`]. Its memory is charged to the task.
    pub const CREATE: u32 = 0;
    /// Start a thread that never ran or is stopped. In: `rsi` instruction pointer, `rdx` stack pointer, `r10`
    /// value that it finds in `rdi`. It finds its own uid in `rsi`, its task in `rdx`, 0 in all other registers.
    pub const START: u32 = 1;
    /// End a thread. Threads that wait for it get an error.
    pub const DESTROY: u32 = 2;
    /// Set pager and exception handler. In: `rsi` pager, `rdx` handler.
    pub const SET_PAGER: u32 = 3;
    /// Set priority and time slice. In: `rsi` priority, at most the maximum of the thread's task; `rdx` slice in µs, 0 to keep it.
    pub const SET_PRIORITY: u32 = 4;
    /// Keep a thread from running user code until [`RESUME`]. A pending ipc goes on waiting.
    pub const STOP: u32 = 5;
    /// Undo [`STOP`].
    pub const RESUME: u32 = 6;
    /// End a pending ipc with an error.
    pub const ABORT: u32 = 7;
    /// Set the FS base, for thread-local storage. In: `rsi` base; 0 for none.
    pub const SET_FS: u32 = 8;
    /// Deny native calls or allow them. In: `rsi` 1 to turn all native calls of the thread into exceptions, 0 to allow them; `rdx`
    /// label with which its foreign calls arrive, at most [`FOREIGN_LABEL_MAX`](super::FOREIGN_LABEL_MAX).
    pub const DENY_NATIVE: u32 = 9;
    /// Tell about a thread. Out: `rdi` state ([`STATES`]) in bits 0–7, priority in bits 8–15, in bits 16–33 the slot of the thread on
    /// whose time it works, 0 if on its own, in bits 34–41 the effective priority of its own shuttle, in bit 42 whether it is in the middle of ipc, of a fault or of an
    /// exception, which a stopped thread may be, too; `rsi` CPU time in ns, time lent out included; `rdx` instruction pointer; `r10` page
    /// faults so far; `r8` pager; `r9` task.
    pub const INFO: u32 = 10;
    /// Name the next thread. In: `rsi` task (nil: own), `rdi` a thread of it or nil. Out: `rdi` the next thread of the task, or nil.
    pub const NEXT: u32 = 11;
    /// Set the standing window, in which items arrive in answer to a short form. None at first. In: `rsi` window. Out: `rsi` the old one.
    pub const SET_WINDOW: u32 = 12;
    /// Register a block. In: `rsi` address of a [block](crate::message) to receive into; `rdx` its room, a [`Dope`](crate::Dope) of which
    /// nothing is used, 0 for none; `r10` how long a transfer may wait for page faults on the partner's side, a
    /// [`Timeout`](crate::Timeout). Takes effect at once; while a message is on its way to the thread
    /// it is [`BadState`](crate::Error::BadState). Out: in these registers the former values, which can be registered again.
    pub const SET_BLOCK: u32 = 13;
    /// Read registers. In: `rsi` a group of [`REGISTERS`](super::REGISTERS). Out: its four registers in `rdx r10 r8 r9`. The thread must
    /// stand still in user code: be stopped with no ipc under way, or wait for an answer to a fault or exception.
    pub const GET_REGISTERS: u32 = 14;
    /// Write registers. In: `rsi` as above, `rdx r10 r8 r9` the new values of the group. The FS base is not set by this.
    pub const SET_REGISTERS: u32 = 15;
    /// Turn single steps on or off. In: `rsi` 1 to get exception 1 after each instruction of the thread, 0 not to.
    pub const STEP: u32 = 16;
    /// Set a breakpoint. In: `rsi` number 0–3, `rdx` address, `r10` event ([`BREAK_EXECUTE`](super::BREAK_EXECUTE) and its
    /// like), `r8` length in bytes: 1, 2, 4 or 8. The event ends in exception 1.
    pub const BREAKPOINT: u32 = 17;
    /// Record a thread. In: `rsi` bit 0: record what it does, bit 1: start the counters anew. A thread that is made by one that is
    /// recorded is recorded too. For the first task and those that it made.
    pub const TRACE: u32 = 18;
    /// Read records. In: `rdi` number of a record, from 0 on; 256 are kept. Out: `rdi` time in ns, `rsi` index in
    /// [`TRACE_EVENTS`](super::TRACE_EVENTS), `rdx` thread, `r10` argument. With [`TRACE_COUNTERS`](super::TRACE_COUNTERS):
    /// `rdi` records made, `rsi` messages of recorded threads, `rdx` updates of ready queues, `r10` those messages that
    /// had a block in memory. With [`TRACE_DOORS`](super::TRACE_DOORS) and an index in [`DOOR_ROWS`](super::DOOR_ROWS), and in `rsi` a
    /// task, nil for all: how many calls or returns through doors its recorded threads made, in `rdi rsi rdx r10 r8 r9` by
    /// size ([`DOOR_SIZES`](super::DOOR_SIZES)); of a task since it was made, of all since the counters were started (row D17). Rights as
    /// for [`TRACE`].
    pub const READ_TRACE: u32 = 19;
    /// Change a thread's alert or ask for it. In: `rsi` [`ALERT_CLEAR`](super::ALERT_CLEAR), [`ALERT_SET`](super::ALERT_SET) or
    /// [`ALERT_POLL`](super::ALERT_POLL) (row D9). Out: `rdi` 1 if it was alerted, 0 if not.
    pub const ALERT: u32 = 20;
    /// Read all registers at once. In: `rsi` address of a [`ThreadState`](crate::ThreadState), a multiple of 64; `rdx` bytes of room there. With room for exactly
    /// [`GENERAL_BYTES`](crate::ThreadState::GENERAL_BYTES), at a multiple of 8: the general registers alone, whoever has the others.
    /// The thread must stand still, as for [`GET_REGISTERS`]. A page of the block that the caller lacks is its page fault; if nobody
    /// resolves that, [`NoAccess`](crate::Error::NoAccess).
    pub const GET_STATE: u32 = 21;
    /// Write all registers at once. In: as above. The thread must stand still, or never have run: then it is stopped afterwards, and
    /// [`RESUME`] lets it run. A state that no thread may have is [`BadArgument`](crate::Error::BadArgument), and changes nothing; flags
    /// that a user must not set are left out.
    pub const SET_STATE: u32 = 22;
    /// Tell the message that fires an interrupt line which has no wire: what a device with MSI or MSI-X writes, and where. In: `rdi` the
    /// line's uid; the caller's task must hold the line. Out: `rdi` physical address, `rsi` word of 32 bits. A line that is wired to a
    /// pin has no message: [`NoSuch`](crate::Error::NoSuch).
    pub const INTERRUPT_MESSAGE: u32 = 23;
    /// Return from a foreign call that was left unanswered. In: `rsi` address of its [registers](crate::foreign::Registers), a multiple of 8. The
    /// caller must be the handler for which the thread waits; it goes on behind its call, where it stood, with these registers. A caller that still
    /// works on the thread's shuttle gives that back, with all that passes with it: FS base, GS base and vector registers, which are undefined for the caller
    /// afterwards, as after an ipc. A page of the block that the caller lacks is its page fault, as for [`GET_STATE`].
    pub const FOREIGN_RETURN: u32 = 24;
    /// Number of sub-operations.
    pub const COUNT: u32 = 25;

    /// Names of thread states, by the number in [`INFO`].
    pub const STATES: [&str; 7] =
        ["inactive", "ready", "receiving", "sending", "faulting", "stopped", "busy"];
}

/// The groups of [`thread_op::GET_REGISTERS`]. A system call leaves its return address in `rcx` and its flags in `r11`.
pub const REGISTERS: [[&str; 4]; 5] = [
    ["rip", "rsp", "rflags", "rax"],
    ["rbx", "rcx", "rdx", "rsi"],
    ["rdi", "rbp", "r8", "r9"],
    ["r10", "r11", "r12", "r13"],
    ["r14", "r15", "fs", "none"],
];

/// Kinds of records. The argument is: the receiver of a message; the next thread; address and access of a fault, or vector of an
/// exception; the line; the flexpage that is sent; the server of a door's call, or the caller that gets its return.
pub const TRACE_EVENTS: [&str; 6] = ["ipc", "switch", "fault", "interrupt", "map", "door"];
/// Number of a record that stands for the counters.
pub const TRACE_COUNTERS: u64 = u64::MAX;

/// Number of a record that stands, with an index in [`DOOR_ROWS`] added, for calls and returns through doors.
pub const TRACE_DOORS: u64 = 1 << 63;
/// Classes of calls and returns through doors: with nothing but words in registers; with a block in memory, and the identifiers and
/// pages that it may have; with one identifier or page beside words.
pub const DOOR_ROWS: [&str; 6] =
    ["call: words", "call: block", "call: item", "return: words", "return: block", "return: item"];
/// Largest number of bytes in each class of sizes but the last, which has no limit. Words count up to the last that is not 0.
pub const DOOR_SIZES: [u64; 5] = [16, 64, 256, 1024, 5120];

/// Event of a [`thread_op::BREAKPOINT`] that is off.
pub const BREAK_OFF: u64 = 0;
/// Event: the execution of the instruction at the address. The exception comes before it. Set the flag RF (bit 16) to let the
/// thread go on, or it comes again.
pub const BREAK_EXECUTE: u64 = 1;
/// Event: a store. The exception comes after it.
pub const BREAK_WRITE: u64 = 2;
/// Event: a load or store. The exception comes after it.
pub const BREAK_ACCESS: u64 = 3;

/// Order of [`thread_op::ALERT`]: the thread is alerted no more. A return does this for a server.
pub const ALERT_CLEAR: u64 = 0;
/// Order of [`thread_op::ALERT`]: the thread is alerted, and so are the server that it has called through a door, and all that follow in
/// the chain of calls. Nothing happens to a server that waits for a call.
pub const ALERT_SET: u64 = 1;
/// Order of [`thread_op::ALERT`]: only tell.
pub const ALERT_POLL: u64 = 2;

/// Sub-operations of [`Call::TaskControl`]. `rdi` is the task, nil for the caller's own. Only a task's chief may
/// change it.
pub mod task_op {
    /// Make a task. Its chief is the caller's task, and its messages across the clan's border come to the caller. In: `rdi` quota of
    /// kernel memory in frames of 4 KiB, taken from the caller's; `rsi` highest priority its threads may have. Out: `rdi` task.
    pub const CREATE: u32 = 0;
    /// End a task, its threads, and every task that it created. Its quota returns to the caller's task.
    pub const DESTROY: u32 = 1;
    /// Tell about a task. Out: `rdi` quota, `rsi` frames used, `rdx` pages mapped, `r10` threads, `r8` page faults so far,
    /// `r9` highest priority.
    pub const INFO: u32 = 2;
    /// Move quota between the caller's task and a task that it created. In: `rsi` the new quota.
    pub const SET_QUOTA: u32 = 3;
    /// Name the next child. In: `rdi` a task that the caller's task created, or nil. Out: `rdi` the next one, or nil.
    pub const NEXT: u32 = 4;
    /// Tell about the caller. Out: `rdi` its uid, `rsi` its task, `rdx` its pager, `r10` its exception handler.
    pub const SELF: u32 = 5;
    /// Let kernel memory run out; for tests, and only where the boot option `exhaust=on` allows it. In: `rdi` task (nil: own),
    /// which is one of those counted from now on; `rsi` number of the frame, from 1 on, that is denied to the counted tasks,
    /// `rdx` how many are denied from there on. With 0 in `rsi` none is denied, and the task is not counted any more. Out:
    /// `rdi` and `rsi`: the rest of the last order, 0 and 0 if nothing is left of it.
    pub const EXHAUST: u32 = 6;
    /// Put a task that the caller's task created, and that has neither threads nor tasks yet, into a prediction domain of its own, with all
    /// tasks that will be made in it. Where the processor goes from one domain to another, it forgets what it has learned of branches. In:
    /// `rdi` the task. Out: `rdi` 1 if the processor can do that, otherwise 0.
    pub const SET_DOMAIN: u32 = 7;
    /// Number of sub-operations.
    pub const COUNT: u32 = 8;
}

/// Sub-operations of [`Call::DoorControl`], all of them on the caller's own task.
pub mod door_op {
    /// Make a door (row D1). In: `rdi` the number under which the maker itself has it, which must be free; `rsi` entry: where
    /// its calls arrive; `rdx` datum. The maker maps the door's identifiers from this number; to flush it revokes
    /// them all (row D5), and with [`FLUSH_SELF`](super::FLUSH_SELF) the door is gone.
    pub const CREATE: u32 = 0;
    /// Become a server: the calling thread waits for calls of its task's doors, and each begins with the stack
    /// pointer that it has now (row D7). Returns only if somebody aborts the wait.
    pub const SERVE: u32 = 1;
    /// Wait until a caller has to wait for a server thread (row D7). Out: `rdi` number of the task's servers. One thread of
    /// a task can wait for this.
    pub const SHORTAGE: u32 = 2;
    /// Number of sub-operations.
    pub const COUNT: u32 = 3;
}

/// Kind of a received message: the low half of `rax` after an ipc.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Kind {
    /// A plain message or a reply: the sender does not wait for an answer.
    Reply = 0xffff_ffff,
    /// The sender waits for an answer from this thread alone.
    Request = 0xffff_fffe,
    /// A page fault, sent by the kernel for the thread (row C7). w0: address, with the access in bits 0–2 as
    /// [`Rights`](crate::Rights); w1: instruction pointer; w2: task. The answer's map item resolves it; an
    /// answer without one makes the thread try again.
    Fault = 0xffff_fffc,
    /// An exception, sent by the kernel (row C7). w0: vector (see [`vector`]); w1: error code; w2: instruction
    /// pointer; w3: stack pointer; w4: flags; w5: `rax`; w6: task; w7: address, for faults. The answer gives in
    /// w2 … w5 what the thread continues with; its label must be [`RESUME`] (or [`RESUME_AS_IS`], and
    /// no words count), otherwise the thread stops. Of vector 1 the error code is DR6: bits 0–3 breakpoints, bit 14 step.
    Exception = 0xffff_fffb,
    /// An interrupt (row C6). w0: how many came since the last message.
    Interrupt = 0xffff_fffa,
    /// A call through a door (row D1). `rdx` is the door's datum.
    DoorCall = DOOR_CALL,
    /// The return from a call through a door (row D3).
    DoorReturn = DOOR_RETURN,
    /// Nobody but its maker has an identifier of the door any more, and no call of it is under way (row D4). `rdx` is its
    /// datum. It comes like a call; what is returned is dropped.
    Unreferenced = 0xffff_fff7,
}

impl Kind {
    /// The kind in a received `eax`, if it holds one. Flags ([`NO_ITEM`], [`ITEM_SHORT`]) are ignored.
    pub const fn from_eax(eax: u32) -> Option<Kind> {
        Some(match eax | !KIND_MASK {
            0xffff_ffff => Kind::Reply,
            0xffff_fffe => Kind::Request,
            0xffff_fffc => Kind::Fault,
            0xffff_fffb => Kind::Exception,
            0xffff_fffa => Kind::Interrupt,
            DOOR_CALL => Kind::DoorCall,
            DOOR_RETURN => Kind::DoorReturn,
            0xffff_fff7 => Kind::Unreferenced,
            _ => return None,
        })
    }
}

const KIND_MASK: u32 = 0xff | 1 << 31;
/// Bit of a received `eax` that is *clear* when a map item arrived.
pub const NO_ITEM: u32 = op::ITEM;
/// Bit of a received `eax` that is *clear* when a map item arrived only in part, for want of kernel memory: the receiver's,
/// or σ0's, if σ0 gives it.
pub const ITEM_WHOLE: u32 = 1 << 9;

/// Bit of a received `eax` that is *clear* when the message had a block.
pub const NO_BLOCK: u32 = op::BLOCK;

/// Bit of a received `eax` that is *clear* when the message was diverted: it crosses the border of a clan, and this thread
/// is the chief's (row C9). w10 is the thread that it was meant for; w10 of the sender is lost.
pub const NOT_DIVERTED: u32 = 1 << 11;

/// Label of an answer to an exception that lets the thread continue.
pub const RESUME: u32 = 1;

/// Label of an answer to an exception after which the thread continues with the registers that it has.
pub const RESUME_AS_IS: u32 = 3;

/// Label of an answer to a page fault that the pager does not resolve: the thread gets [`vector::UNRESOLVED_FAULT`].
pub const REFUSE: u32 = u32::MAX;

/// Vectors of [`Kind::Exception`] beyond the processor's own.
pub mod vector {
    /// The processor's general protection. Also a port that the task has not, if no pager gets it: error code 0.
    pub const PROTECTION: u64 = 13;
    /// A system-call number that is not native, or a native one on a thread to which they are denied.
    /// The error code is the number.
    pub const SYSCALL: u64 = 256;
    /// A page fault that nobody resolves: the thread has no pager, or the pager is gone, or the task cannot pay for
    /// the mapping.
    pub const UNRESOLVED_FAULT: u64 = 257;
}

/// Flag in w0 of a message of [`Kind::Fault`](crate::Kind): it is about ports, not about an address. The rest is the flexpage of those
/// that the thread wanted, with the access as its rights.
pub const PORT_FAULT: u64 = 1 << 63;

/// Patience of a thread in microseconds, unless it sets another one when it registers a block: how long it takes part in a transfer, or in
/// the mapping of an item, that takes more than one step. It is long enough for any honest partner, and an end all the same.
pub const PATIENCE_US: u64 = 10_000_000;

/// A timeout in half a register: microseconds, or milliseconds if bit 31 is set (row P8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Timeout(pub u32);

impl Timeout {
    /// Do not wait.
    pub const ZERO: Timeout = Timeout(0);
    /// Wait forever.
    pub const NEVER: Timeout = Timeout(u32::MAX);

    /// `us` microseconds, or the nearest longer millisecond from 2³¹ µs (35 minutes) on.
    pub const fn from_us(us: u64) -> Timeout {
        if us < 1 << 31 {
            Timeout(us as u32)
        } else {
            let ms = us.div_ceil(1000);
            Timeout(1 << 31 | if ms < 0x7fff_ffff { ms as u32 } else { 0x7fff_fffe })
        }
    }

    /// Microseconds, or `None` for [`Timeout::NEVER`].
    pub const fn us(self) -> Option<u64> {
        match self.0 {
            u32::MAX => None,
            ms if ms >> 31 != 0 => Some((ms & 0x7fff_ffff) as u64 * 1000),
            us => Some(us as u64),
        }
    }
}

/// Packs the two timeouts of an ipc for `r15`.
pub const fn timeouts(send: Timeout, receive: Timeout) -> u64 {
    (receive.0 as u64) << 32 | send.0 as u64
}

/// Number of thread priorities; 0 is the lowest.
pub const PRIORITIES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_round_up() {
        assert_eq!(Timeout::from_us(5).us(), Some(5));
        assert_eq!(Timeout::from_us(u64::MAX).us(), Some(0x7fff_fffe * 1000));
        assert_eq!(Timeout::from_us((1 << 31) + 1).us(), Some(2_147_484_000));
        assert_eq!(Timeout::NEVER.us(), None);
    }

    #[test]
    fn kinds_survive_flags() {
        assert_eq!(Kind::from_eax(IPC_CALL), Some(Kind::Request));
        assert_eq!(Kind::from_eax(IPC_REPLY_WAIT & !NO_ITEM), Some(Kind::Reply));
        assert_eq!(Kind::from_eax(1), None);
        assert_eq!(Kind::from_eax(0), None);
    }
}
