//! Every choice and limit of the kernel: one constant each, with its unit and its reason.
//!
//! Both arms of a choice are always compiled. Relations between constants are asserted below.

/// Log2 of the size of a thread control block, kernel stack included (row P4). One page: a block costs memory
/// only if it exists, and a slot number becomes an address without a multiplication.
pub const TCB_SHIFT: u32 = abi::uid::SLOT_SHIFT;

/// Threads that can exist; the virtual array of control blocks is `TCB_MAX << TCB_SHIFT` bytes.
pub const TCB_MAX: usize = 1 << abi::uid::SLOT_BITS;

/// Threads that a task makes, one after the other, before it is charged for their uids. All tasks together use up one slot in 256 by
/// that, and few tasks ever make so many.
pub const UIDS_FREE: u64 = 1 << 14;

/// Slots whose uids are charged as one frame, at most: the tables of so many take less than a frame.
pub const SLOTS_PER_FRAME_MAX: u64 = 255;

/// Tasks that can exist. The number is part of every uid (its clan), hence 16 bits at most.
pub const TASK_MAX: usize = 1 << 14;

/// Depth to which clans may be nested: the route of a message from one clan to another is searched in one step.
pub const CLAN_DEPTH_MAX: u8 = 32;

/// Time slice of a new thread, in nanoseconds. Long against a switch, short against a person's patience.
pub const TIME_SLICE_NS: u64 = 10_000_000;

/// Shortest time slice that a thread can be given, in nanoseconds: more interrupts than work below it.
pub const TIME_SLICE_MIN_NS: u64 = 100_000;

/// Longest time slice that a thread can be given, in nanoseconds.
pub const TIME_SLICE_MAX_NS: u64 = 10_000_000_000;

/// Pages that a mapping, a flush or the end of a task handles before it looks for pending interrupts.
pub const PREEMPTION_PAGES: usize = 16;

/// Pages that a mapping handles where a thread takes an item out of its queue: it may have come there at the end of a step of its own, and
/// the two together are one stretch without interrupts.
pub const TAKEN_PAGES: usize = 4;

/// Bytes of a long message that are copied before the kernel looks for pending interrupts, unless they come during the copy:
/// 3,072 repetitions of the copy instruction, which leaves the rest of a step of 5,000 to other work: beginning with the message on the fast
/// path, going on with it on the slow one, and a fault.
pub const PREEMPTION_BYTES: u64 = 24 << 10;

/// Most direct words that the fast path copies: a page, so that they touch two pages at most.
pub const FAST_WORDS_MAX: u64 = 512;

/// Threads that a task may have, at most, to get another one's tag of address spaces or to lose its own: the control block of
/// each names the tag.
pub const TAG_THREADS_MAX: u32 = 16;

/// Tasks looked at in one step when a tag of address spaces is to be taken from one.
pub const TAG_SEARCH: u32 = 16;

/// Pages in a row from which on a space without a tag is loaded anew, which forgets all at once, instead of one instruction for each
/// of them. The next switch would do so anyway.
pub const FORGOTTEN_TOGETHER: usize = 8;

/// Threads looked at in one step, when a thread ends, to find those that wait for it: up to 33 instructions each. The last of a step
/// may be woken in addition.
pub const PREEMPTION_SCAN: u32 = 48;

/// Weight of a thread that is woken since it waited for one that ends, in threads looked at: some 115 instructions, and 500 more if its
/// exception goes to a queue with waiters of all priorities.
pub const SCAN_WAKE: u32 = 40;

/// Threads taken out of the queue of one that ends, in one step. The exception of each may go to another queue, as above.
pub const PREEMPTION_SENDERS: usize = 3;

/// Callers that are cut off from a thread which ends, forgotten in one step.
pub const PREEMPTION_CUT_OFF: usize = 4;

/// Weight of a thread whose wait crosses the border of a clan, in threads looked at: up to 32 chiefs are asked.
pub const SCAN_ROUTE: u32 = 12;

/// Threads of a chain of calls that an alert reaches in one step. The wait of each may end with it: up to 1,200 instructions, where threads of all
/// priorities stand in the queues of the chain.
pub const PREEMPTION_ALERTS: usize = 3;

/// Threads of a chain of calls whose queues count for the effective priority of the shuttle that carries the chain.
pub const INHERIT_CHAIN: usize = 8;

/// Servers of a task that inherit the priority of the most urgent caller that waits for one: those that became servers first.
pub const INHERIT_SERVERS: usize = 8;

/// Work on effective priorities in one dispatch, in threads of chains and priorities of queues looked at: some 15 instructions each. The last
/// shuttle may take 150 more. What is left is done at the next interrupt, which comes at once if it can matter to the thread that runs.
pub const SETTLE_WORK: u32 = 48;

/// Weight in it of a shuttle, beside what is looked at.
pub const SETTLE_LOOK: u32 = 8;

/// Weight in it of a change of its priority: it leaves queues and enters others.
pub const SETTLE_LINK: u32 = 12;

/// Structure of pending timeouts (decision 0012).
pub type Timeouts = crate::util::wheel::Wheel;

/// Pending timeouts that one clock interrupt handles, expired or filed anew, so that it stays short however many end together: some 240
/// instructions each.
pub const EXPIRIES: usize = 8;

/// Weight among them of one that takes a shuttle back, or ends a transfer: some 1,000 instructions, and 500 more if a caller that is cut off
/// moves in a queue with waiters of all priorities.
pub const EXPIRY_OF_TWO: usize = 3;

/// Time until the next clock interrupt if more are due, in nanoseconds: about as long as the interrupt took, so that they
/// do not take more than half of the processor from the running thread.
pub const EXPIRY_PAUSE_NS: u64 = 2_000;

/// Share of physical memory that becomes the kernel's pool unless the boot option `kmem` says otherwise.
pub const POOL_SHARE: u64 = 8;

/// Largest pool that the kernel takes unless the boot option `kmem` says otherwise, in bytes. A thread is one frame of it, and there are slots
/// for as many threads (decision 0080).
pub const POOL_SHARE_MAX: u64 = 1016 << 20;

/// Smallest pool the kernel starts with, in bytes.
pub const POOL_MIN: u64 = 2 << 20;

/// Least physical memory the kernel starts with, in bytes.
pub const MEMORY_MIN: u64 = 24 << 20;

/// Interrupt lines that can be handed to drivers.
pub const INTERRUPT_LINES: usize = 192;

const _: () = assert!(TASK_MAX <= 1 << 16);
const _: () = assert!(INTERRUPT_LINES <= 256);

/// Senders in a queue that a receive looks at for a message which is shown to come from the thread for which it waits.
pub const QUEUE_SCAN: usize = 128;

/// Threads that are being ended, at most, that are passed over where the next thread of a task is asked for.
pub const NEXT_SCAN: usize = 64;
