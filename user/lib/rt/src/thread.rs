//! Threads: [`spawn`] and [`Handle::join`].
//!
//! A finished thread waits for its joiner, answers it, and is then destroyed by it: so its stack is free for sure
//! when the next thread gets it. A detached thread destroys itself and keeps its stack's place.
#![allow(unsafe_code)]

use crate::layout::{STACK_SLOT, STACKS};
use crate::sync::Mutex;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use sys::{Error, Result, TaskId, Uid};

core::arch::global_asm!(
    // In: rdi the boxed start, rsp end of the stack.
    "tern_thread:",
    "xor ebp, ebp",
    "and rsp, -16",
    "call {begin}",
    "ud2",
    begin = sym begin,
);

unsafe extern "C" {
    fn tern_thread() -> !;
}

/// How many stack slots there are.
pub const SLOTS_MAX: usize = ((STACKS.end - STACKS.start) / STACK_SLOT) as usize;

/// One bit per stack slot; the first thread has slot 0.
static SLOTS: AtomicU64 = AtomicU64::new(1);

const RUNNING: u8 = 0;
const FINISHED: u8 = 1;
const DETACHED: u8 = 2;

struct Packet<T> {
    state: AtomicU8,
    value: Mutex<Option<T>>,
}

type Start = Box<dyn FnOnce() + Send>;

/// A thread that was started here. Dropping it joins it.
pub struct Handle<T> {
    uid: Uid,
    slot: u32,
    packet: Arc<Packet<T>>,
}

/// Starts a thread of this program, with a priority, the caller's pager and exception handler.
pub fn spawn<T: Send + 'static>(
    priority: u8,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<Handle<T>> {
    let identity = sys::identity();
    let packet = Arc::new(Packet { state: AtomicU8::new(RUNNING), value: Mutex::new(None) });
    let theirs = packet.clone();
    let start: Start = Box::new(move || {
        let value = body();
        *theirs.value.lock() = Some(value);
        let outcome = theirs.state.compare_exchange(RUNNING, FINISHED, Ordering::AcqRel, Ordering::Relaxed);
        drop(theirs);
        if outcome.is_ok() {
            await_joiner(identity.task);
        }
    });
    let slot = take_slot().ok_or(Error::Limit)?;
    let uid = match sys::thread_create(TaskId::NIL, priority, identity.pager, identity.handler) {
        Ok(uid) => uid,
        Err(error) => {
            free_slot(slot);
            return Err(error);
        }
    };
    let argument = Box::into_raw(Box::new(start));
    let stack = STACKS.end - slot as u64 * STACK_SLOT;
    // SAFETY: `tern_thread` takes this argument and any stack; the slot is the new thread's alone.
    let started = unsafe { sys::thread_start(uid, tern_thread as *const () as u64, stack, argument as u64) };
    if let Err(error) = started {
        // SAFETY: the thread did not start, so nobody else took the box.
        drop(unsafe { Box::from_raw(argument) });
        let _ = sys::thread_destroy(uid);
        free_slot(slot);
        return Err(error);
    }
    Ok(Handle { uid, slot, packet })
}

/// Beginning of a program's first thread.
#[derive(Clone, Copy, Debug)]
pub struct First {
    /// Its priority.
    pub priority: u8,
    /// Thread that gets its page faults.
    pub pager: Uid,
    /// Thread that gets its exceptions: the program's home.
    pub handler: Uid,
    /// Where it starts.
    pub entry: u64,
    /// Word that it finds in `rdi`.
    pub argument: u64,
}

/// Makes and starts the first thread of another task, on the stack in the first slot.
pub fn start_first(task: TaskId, first: First) -> Result<Uid> {
    let First { priority, pager, handler, entry, argument } = first;
    if task == TaskId::NIL || task == sys::identity().task {
        return Err(Error::BadArgument);
    }
    let uid = sys::thread_create(task, priority, pager, handler)?;
    // SAFETY: the task is another one, so nothing in this address space is affected.
    unsafe { sys::thread_start(uid, entry, STACKS.end, argument) }?;
    Ok(uid)
}

/// The slot that the caller's stack lies in, if it lies in one: no other thread has that as long as this one runs.
#[inline]
pub fn own_slot() -> Option<usize> {
    let here = 0u8;
    let at = (&raw const here).addr() as u64;
    STACKS.contains(&at).then(|| ((STACKS.end - 1 - at) / STACK_SLOT) as usize)
}

extern "C" fn begin(start: *mut Start) -> ! {
    // SAFETY: `spawn` made the box and gave it away.
    let start = unsafe { Box::from_raw(start) };
    start();
    loop {
        let _ = sys::thread_destroy(Uid::NIL);
    }
}

/// Waits until a thread of the same task asks, answers, and waits to be destroyed.
fn await_joiner(task: TaskId) {
    let mut message = crate::server::wait();
    loop {
        // Only threads of one's own task, or of tasks that it made, tell their state.
        let is_ours = sys::thread_info(message.sender).is_ok_and(|info| info.task == task);
        message = if is_ours {
            crate::server::reply_wait(message.sender, &api::Reply::DONE)
        } else {
            crate::server::wait()
        };
    }
}

fn take_slot() -> Option<u32> {
    loop {
        let taken = SLOTS.load(Ordering::Relaxed);
        let slot = taken.trailing_ones();
        if slot == u64::BITS {
            return None;
        }
        let now = taken | 1 << slot;
        if SLOTS.compare_exchange(taken, now, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return Some(slot);
        }
    }
}

fn free_slot(slot: u32) {
    SLOTS.fetch_and(!(1 << slot), Ordering::Release);
}

impl<T> Handle<T> {
    /// The thread's uid.
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// Waits for the thread's end and returns its value; `None` if somebody destroyed the thread.
    pub fn join(self) -> Option<T> {
        self.finish();
        self.packet.value.lock().take()
    }

    /// Lets the thread run on by itself.
    pub fn detach(self) {
        let state = &self.packet.state;
        if state.compare_exchange(RUNNING, DETACHED, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            // Its stack's place stays taken.
            core::mem::forget(self);
        }
    }

    fn finish(&self) {
        // The call fails at once if the thread is gone already.
        while let Err(Error::ReceiveAborted | Error::SendAborted) = sys::ipc_call(self.uid, 0, [0; 8]) {}
        let _ = sys::thread_destroy(self.uid);
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        self.finish();
        free_slot(self.slot);
    }
}
