//! Beginning and end of threads.
//!
//! A thread ends in steps: first its uid leads to no thread any more; then the threads in its queue learn of it, and those that wait for it
//! alone; then it is taken apart. A thread that ends itself is freed by the thread that runs next.

use crate::args::done;
use crate::kernel::Kernel;
use crate::mem::pool::Frame as PoolFrame;
use crate::object::shuttle::ShuttleRef;
use crate::object::thread::{Errand, Frame, Operation, State, Tcb, Wait, special};
use crate::object::{TaskRef, ThreadRef, door};
use crate::processor::{self, extended};
use crate::sched::Next;
use crate::{ipc, lend, param};
use abi::{Error, Fpage, Rights, TaskId, Uid};

/// Makes a thread, which has not run yet.
pub fn new_thread(k: &Kernel, task: TaskRef, priority: u8) -> Result<ThreadRef, Error> {
    if task.is_ending() {
        return Err(Error::NoSuch);
    }
    let frame = task.take_frame(&k.pool).ok_or(Error::NoMemory)?;
    let Some((thread, uid)) = place(k, task, frame) else {
        task.give_back_frame(&k.pool, frame);
        return Err(Error::NoMemory);
    };
    thread.init(uid, frame);
    thread.block.init(k, task);
    thread.task.set(Some(task));
    thread.home.priority.set(priority);
    thread.home.effective.set(priority);
    thread.home.slice_ns.set(param::TIME_SLICE_NS);
    thread.hot.space.set(task.space.get());
    lend::begin(thread, uid);
    thread.hot.uid.set(uid.0);
    if task.domain.get() != TaskId::NIL {
        thread.special.set(special::IN_DOMAIN);
    }
    thread.refold();
    task.threads.push_back(thread);
    task.thread_count.set(task.thread_count.get() + 1);
    Ok(thread)
}

/// Finds a slot for a control block, charged to the task. Changes nothing if there is none.
fn place(k: &Kernel, task: TaskRef, frame: PoolFrame) -> Option<(ThreadRef, Uid)> {
    let has_paid = k.pay_for_uid(task)?;
    let Some((slot, generation)) = k.thread_slots.take(&k.pool, || k.take_reserved()) else {
        k.take_back_pay(task, has_paid);
        return None;
    };
    let Some(thread) = processor::map_tcb(k, slot, frame) else {
        k.thread_slots.return_unused(slot);
        k.take_back_pay(task, has_paid);
        return None;
    };
    task.uids.set(task.uids.get() - 1);
    Some((thread, Uid::thread(slot, generation, task.clan())))
}

/// Makes a thread for boot.
pub fn boot_thread(k: &Kernel, task: TaskRef, priority: u8) -> ThreadRef {
    new_thread(k, task, priority).expect("boot has memory for its threads")
}

/// Lets a thread begin at `ip`.
pub fn start_thread(k: &Kernel, thread: ThreadRef, ip: u64, sp: u64, argument: u64) {
    thread.frame.begin(ip, sp, [argument, thread.uid().0, thread.task().id.get().0]);
    thread.operation.set(Operation::None);
    thread.errand.set(Errand::Ipc);
    thread.set_special(0, special::STOPPED);
    thread.set_ready();
    k.wake(thread);
}

/// Does the first step of a thread's end: from here on no uid leads to it, and it neither runs nor waits.
pub fn begin_end(k: &Kernel, thread: ThreadRef) {
    ipc::alert::start_at_end(k, thread);
    ipc::end::leave(k, thread);
    k.wheel.unlink(thread);
    ipc::interrupt::detach(k, thread);
    k.end_shuttle(thread);
    thread.hot.uid.set(0);
    thread.hot.accept.set(crate::object::thread::NEVER);
    thread.queueing_at.set(None);
    // A thread that ends itself must be able to go on with that after an interrupt.
    thread.state.set(if thread == processor::current() { State::Ready } else { State::Inactive });
    thread.cursor.set(0);
}

/// Goes on with a thread's end. The current thread is busy until it is over, or is the victim itself.
pub fn end_thread(k: &Kernel, current: ThreadRef, victim: Uid) -> Next {
    let (over, its_own) = match ThreadRef::named(victim) {
        Some(thread) => {
            let its_own = thread.operation.get();
            (end_thread_step(k, thread, Some(current)), its_own)
        }
        None => (true, Operation::None),
    };
    let next = match its_own {
        _ if !over => Some(victim),
        // The victim was itself ending another thread, which nobody else will end.
        Operation::EndThread { victim: other } if other != victim => Some(other),
        _ => None,
    };
    if let Some(victim) = next {
        current.operation.set(Operation::EndThread { victim });
        k.set_busy(current);
        return Next::Same;
    }
    current.operation.set(Operation::None);
    if current.name.get() == victim {
        current.state.set(State::Inactive);
        return Next::Any;
    }
    done(current, Ok(()))
}

/// Does one budget of work on a thread's end. True when nothing of it is left.
pub fn end_thread_step(k: &Kernel, thread: ThreadRef, current: Option<ThreadRef>) -> bool {
    if !close_queue(k, thread) || !wake_waiters(k, thread) {
        return false;
    }
    dismantle(k, thread, current);
    true
}

/// Closes a thread to messages, and alerts the thread that it called. True when nobody is left in its queue.
fn close_queue(k: &Kernel, thread: ThreadRef) -> bool {
    if thread.hot.uid.get() != 0 {
        begin_end(k, thread);
    }
    if !ipc::alert::go_on(k, thread) {
        return false;
    }
    if thread.senders.is_empty() {
        return k.end_inheritance(thread);
    }
    for _ in 0..param::PREEMPTION_SENDERS {
        let Some(sender) = thread.senders.first() else { break };
        k.step_back(sender, thread);
        sender.state.set(State::Ready);
        ipc::end::partner_died(k, sender);
    }
    thread.refold();
    // That was enough for one step, whoever is left.
    false
}

/// Value of [`Cold::cursor`](crate::object::thread::Cold::cursor): threads that wait for this one are sought for its whole task at once.
const WITH_TASK: u32 = u32::MAX;

/// Does one budget of work on the end of all threads of a task: first none of them takes a message any more, then one search
/// finds all threads that wait for any of them, then they go, each a part of the budget. (A search for each would take the square of their number.)
/// True when none is left.
pub fn end_threads_step(k: &Kernel, task: TaskRef, budget: &mut usize) -> bool {
    let Some(thread) = task.threads.first() else { return true };
    if thread.cursor.get() != WITH_TASK {
        // Threads that are done go to the end of the list, so that all are done when the first one is.
        if close_queue(k, thread) {
            thread.cursor.set(WITH_TASK);
            task.threads.remove(thread);
            task.threads.push_back(thread);
        }
        return false;
    }
    let start = task.searched.get();
    if start < k.thread_slots.high_water() {
        task.searched.set(wake_waiters_for(k, start, |name| {
            ThreadRef::named(name)
                .is_some_and(|thread| thread.cursor.get() == WITH_TASK && thread.task() == task)
        }));
        return false;
    }
    while *budget > 0 {
        let Some(thread) = task.threads.first() else { return true };
        dismantle(k, thread, None);
        *budget -= 1;
    }
    false
}

/// Takes a thread apart for which nobody waits.
fn dismantle(k: &Kernel, thread: ThreadRef, current: Option<ThreadRef>) {
    // It may be in a ready queue, to go on with its own end, which another thread has just finished.
    k.unqueue(thread);
    let task = thread.task();
    task.threads.remove(thread);
    task.thread_count.set(task.thread_count.get() - 1);
    if current == Some(thread) {
        k.zombie.set(Some(thread));
    } else {
        free(k, thread);
    }
}

/// Looks for threads that wait for `thread` alone, at some of all in each step. True when all were seen.
fn wake_waiters(k: &Kernel, thread: ThreadRef) -> bool {
    // A thread that is ended by itself does not wait for the search of its whole task.
    let start = if thread.cursor.get() == WITH_TASK { 0 } else { thread.cursor.get() };
    let name = thread.name.get();
    let end = wake_waiters_for(k, start, |from| from == name);
    thread.cursor.set(end);
    end >= k.thread_slots.high_water()
}

/// Fails the waits of threads, in slots from `start` on, that wait alone for a thread which `ends`. Returns the slot at which the step's
/// budget was used up.
fn wake_waiters_for(k: &Kernel, start: u32, ends: impl Fn(Uid) -> bool) -> u32 {
    let mut end = k.thread_slots.high_water().min(start + param::PREEMPTION_SCAN);
    let mut slot = start;
    while slot < end {
        if let Some(waiter) = ThreadRef::in_slot(slot) {
            let waits = match waiter.common_wait() {
                Wait::Closed(from) | Wait::Answer(from) | Wait::Return(from) if ends(from) => true,
                Wait::Idle => waiter.foreign_handler().is_some_and(&ends),
                Wait::Closed(from) if from.clan() != waiter.uid().clan() => {
                    end = end.saturating_sub(param::SCAN_ROUTE);
                    ipc::clan::route_to(k, waiter, from).is_some_and(&ends)
                }
                _ => false,
            };
            if waits {
                end = end.saturating_sub(param::SCAN_WAKE);
                ipc::end::fail_blocked(k, waiter, Error::PartnerDied);
            }
        }
        slot += 1;
    }
    slot
}

/// Frees a control block, on whose stack nothing runs.
fn free(k: &Kernel, thread: ThreadRef) {
    let (task, slot) = (thread.task(), thread.name.get().slot());
    let frame = thread.own_frame();
    debug_assert!(!thread.timeout.is_filed());
    thread.bookmark.remove();
    extended::forget(k, thread);
    thread.name.set(Uid::NIL);
    processor::unmap_tcb(slot);
    k.thread_slots.give_back(slot);
    task.give_back_frame(&k.pool, frame);
}

/// Frees the block of a thread that ended itself, now that another stack is in use: the next thread is busy with this, or the first
/// interrupt does it if there was none.
#[inline(always)]
pub fn bury(k: &Kernel) {
    if k.zombie.get().is_none() {
        return;
    }
    if let Some(zombie) = k.zombie.take() {
        free(k, zombie);
    }
}

impl Tcb {
    /// Fills in the cold part of a new block and marks it as one.
    fn init(&self, uid: Uid, frame: PoolFrame) {
        self.name.set(uid);
        self.special.set(0);
        self.state.set(State::Inactive);
        self.errand.set(Errand::Ipc);
        self.partner.set(Uid::NIL);
        self.alerting.set(Uid::NIL);
        self.receiving.window.set(Fpage::NIL);
        self.fault.rights.set(Rights::NONE);
        self.operation.set(Operation::None);
        self.bookmark.init();
        self.extended.init();
        self.canary.set(Tcb::CANARY);
        self.frame.mode.set(Frame::SYSRET);
        self.hot.accept.set(crate::object::thread::NEVER);
        self.hot.ip.set(0);
        self.hot.sp.set(0);
        self.server.caller.set(door::NOBODY);
        self.foreign.init(&self.hot);
        self.lost.set(ShuttleRef::NONE);
        self.unwanted.set(ShuttleRef::NONE);
        self.frame_address.set(frame.0);
    }
}
