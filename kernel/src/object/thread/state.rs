//! States of a thread: its place between the ready queue and a wait, and operations that are done in steps.

use abi::{TaskId, Uid};

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
