//! The suite's pager and exception handler, and the children that it serves.
//!
//! A child sees the suite's own memory, at the same addresses. An exception of an agent is noted in its
//! mailbox, and the agent continues where its attempt ends. Children that ask for it see the heap, too. Faults anywhere else are left alone: the thread
//! stays in them, and the test that waits for it fails.

use super::{Outcome, agent};
use core::arch::asm;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use sys::abi::call::{PORT_FAULT, REFUSE, RESUME, vector};
use sys::{Fpage, Kind, Message, Rights, TaskId, Timeout, Uid};

static PAGER: AtomicU64 = AtomicU64::new(0);
static PRIORITY: AtomicU8 = AtomicU8::new(0);
static SERVED: AtomicU64 = AtomicU64::new(0);

/// The pager's uid.
pub fn uid() -> Uid {
    Uid(PAGER.load(Ordering::Relaxed))
}

/// The priority of the suite's main thread and of its agents.
pub fn priority() -> u8 {
    PRIORITY.load(Ordering::Relaxed)
}

/// Messages served so far.
pub fn served() -> u64 {
    SERVED.load(Ordering::Relaxed)
}

/// Starts the pager.
pub fn start() -> Outcome {
    let me = sys::identity();
    let priority = sys::thread_info(me.uid)?.priority;
    PRIORITY.store(priority, Ordering::Relaxed);
    let thread = agent::spawn(TaskId::NIL, priority, serve, 0)?;
    PAGER.store(thread.uid.0, Ordering::Relaxed);
    core::mem::forget(thread);
    Ok(())
}

extern "C" fn serve(_: u64, _: u64) -> ! {
    let mut message = sys::ipc_reply_wait(Uid::NIL, 0, [0; 8]);
    loop {
        message = match message {
            Ok(message) => {
                SERVED.fetch_add(1, Ordering::Relaxed);
                answer(message)
            }
            Err(_) => sys::ipc_reply_wait(Uid::NIL, 0, [0; 8]),
        }
    }
}

fn answer(message: Message) -> sys::Result<Message> {
    match message.kind {
        // Tests get their ports by hand.
        Kind::Fault if message.words[0] & PORT_FAULT != 0 => {
            sys::ipc_reply_wait(message.sender, REFUSE, [0; 8])
        }
        Kind::Fault => {
            let address = message.words[0];
            let page = address & !0xfff;
            let is_heap = rt::layout::HEAP.contains(&page) && may_see_heap(TaskId(message.words[2]));
            if !(is_mine(page) || is_heap) || agent::is_guard(page) {
                return sys::receive(Uid::ANY, Timeout::NEVER);
            }
            let access = Rights(address as u8 & 7);
            if access.has(Rights::W) && is_constant(page) {
                return sys::ipc_reply_wait(message.sender, REFUSE, [0; 8]);
            }
            touch(page, access);
            sys::reply_item_wait(message.sender, 0, [0; 8], (Fpage::memory(page, 12, Rights::RWX), page))
        }
        Kind::Exception => {
            if message.words[0] == vector::SYSCALL {
                let _ = sys::thread_deny_native(message.sender, 0);
            }
            let Some((ip, sp)) = agent::caught(message.sender, message.words) else {
                return sys::receive(Uid::ANY, Timeout::NEVER);
            };
            sys::ipc_reply_wait(message.sender, RESUME, [0, 0, ip, sp, 0x202, 0, 0, 0])
        }
        _ => sys::receive(Uid::ANY, Timeout::NEVER),
    }
}

/// Tasks that see the suite's heap.
static WITH_HEAP: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

fn replace_task(old: TaskId, new: TaskId) -> bool {
    let exchange = |place: &AtomicU64| {
        place.compare_exchange(old.0, new.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    WITH_HEAP.iter().any(exchange)
}

/// Lets a child see the heap; false if too many do.
pub fn allow_heap(task: TaskId) -> bool {
    replace_task(TaskId::NIL, task)
}

/// Ends that. Pages that the child has stay.
pub fn forbid_heap(task: TaskId) {
    replace_task(task, TaskId::NIL);
}

fn may_see_heap(task: TaskId) -> bool {
    WITH_HEAP.iter().any(|place| place.load(Ordering::Relaxed) == task.0)
}

/// A part of the suite's program that nobody gets, so that memory in front of it cannot be overrun.
static FENCE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Puts up the fence: `len` bytes from `start` on, whole pages.
pub fn fence(start: u64, len: u64) {
    for (cell, value) in FENCE.iter().zip([start, start + len]) {
        cell.store(value, Ordering::Relaxed);
    }
}

/// Whether a page is part of the suite's program.
pub fn is_mine(page: u64) -> bool {
    let (start, end) = super::image();
    let [from, to] = FENCE.each_ref().map(|cell| cell.load(Ordering::Relaxed));
    page >= start & !0xfff && page < end && !(from..to).contains(&page)
}

/// Whether a page is part of the program's code or constants, so that nobody has it to write to.
pub fn is_constant(page: u64) -> bool {
    rt::layout::constants().contains(&page)
}

/// Makes sure that the suite has a page with the wanted access, so that it can be mapped on.
pub fn touch(page: u64, access: Rights) {
    // SAFETY: the page is the suite's; adding nothing changes nothing, and the addition is atomic.
    unsafe {
        if access.has(Rights::W) {
            asm!("lock add dword ptr [{}], 0", in(reg) page);
        } else {
            (page as *const u8).read_volatile();
        }
    }
}

/// A child task. It ends when this value is dropped.
pub struct Child(pub TaskId);

impl Child {
    /// Kernel memory that is enough for a few agents and mappings, in frames.
    pub const QUOTA: u64 = 32;

    /// Makes a child.
    #[track_caller]
    pub fn new() -> Outcome<Child> {
        Child::with_quota(Child::QUOTA)
    }

    /// Makes a child with another quota.
    #[track_caller]
    pub fn with_quota(frames: u64) -> Outcome<Child> {
        Ok(Child(sys::task_create(frames, priority())?))
    }

    /// An agent in it.
    #[track_caller]
    pub fn agent(&self) -> Outcome<agent::Agent> {
        agent::Agent::new(self.0)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // A test may have ended it before.
        let _ = sys::task_destroy(self.0);
    }
}
