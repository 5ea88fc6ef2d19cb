//! Local ipc: calls between the threads of one task that do not enter the kernel (row P22).
//!
//! A thread that takes part ([`Local`]) calls and serves with the same uids, words and labels as by the kernel. If the
//! partner takes part too and waits, its code runs at once, *on the caller's kernel thread*: `path.s` changes the stack and
//! nothing else. In every other case the same function makes the system call. The kernel knows nothing of this. It sees one
//! thread of the task running and another one waiting for anybody, which is true enough for what it does with them:
//! time and priority are the caller's in any case, and the memory is the same.
//!
//! **Who runs** must be told to the kernel when it matters, and only then: a thread that is *carried* by a caller's kernel
//! thread and wants to be seen as itself takes its own first. The carrier then makes the call to it that was left out,
//! and waits in the kernel as if it had done so from the beginning; see [`Local::own`]. What a thread sends by way of this
//! module always comes from itself.
//!
//! **What is different** from ipc by the kernel:
//!
//! * A carried thread that uses `sys` directly acts as its carrier. So it must call [`Local::own`] first if it matters who
//!   calls.
//! * Stopping, aborting or ending the carrier does the same to what it carries. If it ends, the carried thread never answers
//!   anybody again.
//! * A message by the kernel for a thread that is carried just then waits until the local call has ended.
//! * FS base, floating-point registers and the thread's block for long messages are the carrier's.
//! * All threads that take part are on one processor, and the memory of this module is the task's own.
//!
//! **Unsafe code** is the assembly's call. Each kernel thread uses a stack only while it *is* the thread that the stack
//! belongs to, which is decided by one instruction that cannot be interrupted halfway.

#![no_std]

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ptr::from_ref;
use core::sync::atomic::{AtomicU64, Ordering};
use sys::abi::call::{Call, IPC_CALL, IPC_REPLY_WAIT, thread_op};
use sys::abi::uid::SLOT_SHIFT;
use sys::{Error, Message, Result, Timeout, Uid};

/// Threads that can take part. Two whose slots are equal modulo this number cannot at the same time.
pub const THREADS: usize = 64;

/// How long a kernel thread with a message sleeps while somebody else is its thread, in µs. Who ends being that thread wakes
/// it; only right before the sleep begins that fails.
const PAUSE_US: u64 = 100;

/// Thread as `path.s` knows it: one cache line. All fields change there, but for the uid.
#[repr(C, align(64))]
struct Block {
    /// Uid of its thread; 0: none.
    uid: AtomicU64,
    /// Its stack while it waits. On top lies where it goes on.
    stack: AtomicU64,
    /// The block of the thread whose local answer it waits for, or 0.
    partner: AtomicU64,
    /// The block of the thread as which the kernel knows it.
    carrier: AtomicU64,
    /// Bit 0: it waits for anybody, and whoever clears this is this thread until it waits again. Bit 31: its kernel thread
    /// has a message, and sleeps until it can be this thread.
    open: AtomicU64,
    /// Not 0: its carrier is about to send to it by the kernel, which gives it to its own kernel thread: 1, in the middle of
    /// its work, by the call that was left out; 2, while it waits for anybody, for the sake of `held`.
    moving: AtomicU64,
    /// 1: `held` is a message for it.
    pending: AtomicU64,
    /// Where its kernel thread keeps a message that came while it was carried.
    held: AtomicU64,
}

/// A message in registers: `rax`, `rdx` and eleven words.
#[repr(C)]
struct Held(UnsafeCell<[u64; 13]>);

// SAFETY: only the kernel thread whose message it is uses it.
unsafe impl Sync for Held {}

/// One page: one entry of the TLB.
#[repr(C, align(4096))]
struct Table([Block; THREADS]);

static TABLE: Table = Table(
    [const {
        Block {
            uid: AtomicU64::new(0),
            stack: AtomicU64::new(0),
            partner: AtomicU64::new(0),
            carrier: AtomicU64::new(0),
            open: AtomicU64::new(0),
            moving: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            held: AtomicU64::new(0),
        }
    }; THREADS],
);
static HELD: [Held; THREADS] = [const { Held(UnsafeCell::new([0; 13])) }; THREADS];

global_asm!(
    include_str!("path.s"),
    blocks = sym TABLE,
    index_shift = const SLOT_SHIFT - 6,
    index_mask = const (THREADS - 1) * 64,
    uid = const offset_of!(Block, uid),
    stack = const offset_of!(Block, stack),
    partner = const offset_of!(Block, partner),
    carrier = const offset_of!(Block, carrier),
    open = const offset_of!(Block, open),
    moving = const offset_of!(Block, moving),
    pending = const offset_of!(Block, pending),
    held = const offset_of!(Block, held),
    aborted = const Error::ReceiveAborted as u32,
    ipc_call = const IPC_CALL,
    general = const Call::Ipc as u32,
    abort = const Call::ThreadControl as u32 | thread_op::ABORT << 8,
    pause = const sys::abi::call::timeouts(Timeout::ZERO, Timeout::from_us(PAUSE_US)),
);

const _: () = assert!(size_of::<Block>() == 64 && size_of::<Table>() == 4096);

unsafe extern "C" {
    fn local_call();
    fn local_reply_wait();
    fn local_own();
}

/// A thread that takes part, until this value is dropped. It stays with its thread.
pub struct Local {
    block: &'static Block,
    _of_this_thread: PhantomData<*const ()>,
}

impl Local {
    /// The calling thread takes part from now on. `None` if its place in the table is taken.
    pub fn new() -> Option<Local> {
        let uid = sys::myself();
        let index = uid.slot() as usize % THREADS;
        let block = &TABLE.0[index];
        let owner = block.uid.load(Ordering::Relaxed);
        // A thread that somebody else ended had no time to leave.
        if owner != 0 && sys::thread_info(Uid(owner)) != Err(Error::NoSuch) {
            return None;
        }
        block.uid.compare_exchange(owner, uid.0, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        for word in [&block.partner, &block.open, &block.moving, &block.pending] {
            word.store(0, Ordering::Relaxed);
        }
        block.carrier.store(from_ref(block) as u64, Ordering::Relaxed);
        block.held.store(HELD[index].0.get() as u64, Ordering::Relaxed);
        Some(Local { block, _of_this_thread: PhantomData })
    }

    /// Sends to `to` and waits for the answer of that thread alone: [`sys::ipc_call`].
    #[inline]
    pub fn call(&self, to: Uid, label: u32, words: [u64; 8]) -> Result<Message> {
        self.run(local_call, IPC_CALL, to, label, words)
    }

    /// Answers `to` if that thread waits for it, then waits for anybody: [`sys::ipc_reply_wait`].
    #[inline]
    pub fn reply_wait(&self, to: Uid, label: u32, words: [u64; 8]) -> Result<Message> {
        self.run(local_reply_wait, IPC_REPLY_WAIT, to, label, words)
    }

    /// Afterwards the kernel knows the calling thread as itself: system calls that it makes are its own.
    pub fn own(&self) {
        // SAFETY: only `rcx` and `r11` change; this thread goes on with the stack that it has.
        unsafe {
            asm!("call {own}", own = sym local_own, inout("rcx") from_ref(self.block) => _, out("r11") _)
        };
    }

    /// Whether the kernel knows the calling thread as another one.
    pub fn is_carried(&self) -> bool {
        self.block.carrier.load(Ordering::Relaxed) != from_ref(self.block) as u64
    }

    /// For assembly: what `local_call` and `local_reply_wait` want in `rcx`.
    pub fn block(&self) -> u64 {
        from_ref(self.block) as u64
    }

    #[inline(always)]
    fn run(
        &self,
        path: unsafe extern "C" fn(),
        operation: u32,
        to: Uid,
        label: u32,
        words: [u64; 8],
    ) -> Result<Message> {
        let mut rax = (label as u64) << 32 | operation as u64;
        let mut rdx = to.0;
        let [mut w0, mut w1, mut w2, mut w3, mut w4, mut w5, mut w6, mut w7] = words;
        // SAFETY: as for the system call, which changes the same registers. The stack is this thread's again
        // when the path returns, and was left alone in between.
        unsafe {
            sys::message_asm!(
                "xor ebx, ebx", "xor ebp, ebp", "call r11";
                rax, rdx, [w0, w1, w2, w3, w4, w5, w6, w7];
                inout("r15") 0u64 => _,
                inout("rcx") from_ref(self.block) => _,
                inout("r11") path => _,
            );
        }
        let words = [w0, w1, w2, w3, w4, w5, w6, w7];
        Message::from_registers(rax, rdx, words)?.ok_or(Error::BadArgument)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.own();
        self.block.uid.store(0, Ordering::Relaxed);
    }
}
