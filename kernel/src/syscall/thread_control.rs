//! `thread_control`: make, start, change, watch and end threads.

use super::{Args, done, registers};
use crate::kernel::Kernel;
use crate::lend::Stake;
use crate::mem::pool::Frame as PoolFrame;
use crate::object::thread::{Errand, Frame, Operation, State, Tcb, Wait, special};
use crate::object::{TaskRef, ThreadRef, door, interrupt};
use crate::sched::Next;
use crate::{arch, ipc, lend, param, trace};
use abi::call::{
    ALERT_CLEAR, ALERT_POLL, ALERT_SET, FLAGS, PRIORITIES, TRACE_COUNTERS, TRACE_DOORS, thread_op as op,
};
use abi::{Dope, Error, Fpage, Rights, TaskId, Uid};

/// The table of sub-operations.
pub fn thread_control(k: &Kernel, current: ThreadRef, operation: u32) -> Next {
    let args = Args(&current.frame);
    let result = match operation {
        op::CREATE => create(k, current, &args),
        op::NEXT => next(k, current, &args),
        op::READ_TRACE => read_trace(k, current, &args),
        op::START..op::COUNT => match target(k, current, Uid(args.rdi())) {
            Ok(thread) => return on_thread(k, current, thread, operation, &args),
            Err(error) => Err(error),
        },
        _ => Err(Error::BadArgument),
    };
    done(current, result)
}

/// The thread that an operation is about, if the current thread may control it.
fn target(k: &Kernel, current: ThreadRef, uid: Uid) -> Result<ThreadRef, Error> {
    if uid.is_nil() {
        return Ok(current);
    }
    let thread = k.thread(uid).ok_or(Error::NoSuch)?;
    may_control(current, thread.task()).map(|()| thread)
}

/// A task controls its own threads, a chief those of the tasks it created.
fn may_control(current: ThreadRef, task: TaskRef) -> Result<(), Error> {
    let mine = current.task();
    if mine == task || mine.is_chief_of(task) { Ok(()) } else { Err(Error::Denied) }
}

/// The task that an operation is about: nil for the current one.
fn target_task(k: &Kernel, current: ThreadRef, id: TaskId) -> Result<TaskRef, Error> {
    let task = if id == TaskId::NIL { current.task() } else { k.task(id).ok_or(Error::NoSuch)? };
    may_control(current, task).map(|()| task)
}

fn on_thread(k: &Kernel, current: ThreadRef, thread: ThreadRef, operation: u32, args: &Args) -> Next {
    let result = match operation {
        op::START => start(k, thread, args),
        op::DESTROY => {
            begin_end(k, thread);
            return end_thread(k, current, thread.name.get());
        }
        op::SET_PAGER => {
            thread.pager.set(Uid(args.rsi()));
            thread.handler.set(Uid(args.rdx()));
            Ok(())
        }
        op::SET_PRIORITY => set_priority(k, thread, args.rsi(), args.rdx()),
        op::STOP => {
            k.unqueue_thread(thread);
            thread.set_special(special::STOPPED, 0);
            let _ = done(current, Ok(()));
            return if thread == current { Next::Any } else { Next::Same };
        }
        op::RESUME => {
            resume(k, current, thread);
            Ok(())
        }
        op::ABORT if ipc::abort(k, thread) => Ok(()),
        op::ABORT => Err(Error::BadState),
        op::SET_FS => set_fs(thread, thread == current, args.rsi()),
        op::DENY_NATIVE => {
            let deny = args.rsi() != 0;
            let flag = special::DENY_NATIVE;
            thread.set_special(if deny { flag } else { 0 }, flag);
            Ok(())
        }
        op::GET_REGISTERS => registers::get(thread, args),
        op::SET_REGISTERS => registers::set(thread, args),
        op::STEP => {
            let _ = done(current, Ok(()));
            registers::step(thread, args.rsi() != 0);
            return Next::Same;
        }
        op::TRACE if is_privileged(current) => {
            trace::set(thread, args.rsi() & 1 != 0);
            if args.rsi() & 2 != 0 {
                trace::restart(k);
            }
            Ok(())
        }
        op::TRACE => Err(Error::Denied),
        op::BREAKPOINT => registers::breakpoint(thread, thread == current, args),
        op::ALERT => return alert(k, current, thread, args),
        op::SET_WINDOW => set_window(thread, args),
        op::SET_BLOCK => set_block(k, thread, args),
        op::INFO => {
            info(k, thread, args);
            Ok(())
        }
        _ => Err(Error::BadArgument),
    };
    done(current, result)
}

/// Registers a block and hands back what was registered before, so that whoever needs one for a while can undo it.
fn set_block(k: &Kernel, thread: ThreadRef, args: &Args) -> Result<(), Error> {
    let block = &thread.block;
    if ipc::is_taking(thread) {
        return Err(Error::BadState);
    }
    let before = [args.rdi(), block.address.get(), block.room.get(), block.timeout.get().into()];
    block.set(k, thread.task(), args.rsi(), Dope(args.rdx()))?;
    block.timeout.set(args.r10() as u32);
    args.give(before);
    Ok(())
}

fn alert(k: &Kernel, current: ThreadRef, thread: ThreadRef, args: &Args) -> Next {
    let was_alerted = thread.special.get() & special::ALERTED != 0;
    match args.rsi() {
        ALERT_CLEAR => thread.set_special(0, special::ALERTED),
        ALERT_SET => ipc::alert::start(current, thread),
        ALERT_POLL => {}
        _ => return done(current, Err(Error::BadArgument)),
    }
    args.give([was_alerted as u64]);
    continue_alert(k, current)
}

/// Goes on with an alert that runs along a chain of calls.
pub fn continue_alert(k: &Kernel, current: ThreadRef) -> Next {
    if ipc::alert::go_on(k, current) {
        current.operation.set(Operation::None);
        return done(current, Ok(()));
    }
    current.operation.set(Operation::Alert);
    k.set_busy(current);
    Next::Same
}

/// The first task, and those that it made.
fn is_privileged(current: ThreadRef) -> bool {
    let task = current.task();
    task.is_sigma0.get() || task.chief.get().is_some_and(|chief| chief.is_sigma0.get())
}

fn read_trace(k: &Kernel, current: ThreadRef, args: &Args) -> Result<(), Error> {
    if !is_privileged(current) {
        return Err(Error::Denied);
    }
    match args.rdi() {
        TRACE_COUNTERS => args.give(trace::counters(k)),
        row @ TRACE_DOORS.. => {
            let of = TaskId(args.rsi());
            let task = if of == TaskId::NIL { None } else { Some(k.task(of).ok_or(Error::NoSuch)?) };
            args.give(trace::doors(k, task, row - TRACE_DOORS).ok_or(Error::NoSuch)?);
        }
        number => args.give(k.trace.read(number).ok_or(Error::NoSuch)?),
    }
    Ok(())
}

fn create(k: &Kernel, current: ThreadRef, args: &Args) -> Result<(), Error> {
    let task = target_task(k, current, TaskId(args.rdi()))?;
    let priority = args.rsi();
    if priority >= PRIORITIES as u64 || priority as u8 > task.priority_max.get() {
        return Err(Error::BadArgument);
    }
    let thread = new_thread(k, task, priority as u8)?;
    thread.pager.set(Uid(args.rdx()));
    thread.handler.set(Uid(args.r10()));
    // Whoever is traced makes traced threads, so that programs are from their start.
    thread.set_special(current.special.get() & special::TRACED, 0);
    args.give([thread.uid().0]);
    Ok(())
}

/// Makes a thread that never ran.
fn new_thread(k: &Kernel, task: TaskRef, priority: u8) -> Result<ThreadRef, Error> {
    if task.is_ending() {
        return Err(Error::NoSuch);
    }
    let frame = task.take_frame(&k.pool).ok_or(Error::NoMemory)?;
    let give_back = |error| {
        task.give_back_frame(&k.pool, frame);
        Err(error)
    };
    let Some((slot, generation)) = k.thread_slots.take(&k.pool, || k.take_reserved()) else {
        return give_back(Error::NoMemory);
    };
    let Some(thread) = arch::map_tcb(k, slot, frame) else {
        k.thread_slots.give_back(slot);
        return give_back(Error::NoMemory);
    };
    let uid = Uid::thread(slot, generation, task.clan());
    thread.init(uid, frame);
    thread.block.init(k, task);
    thread.task.set(Some(task));
    thread.home.priority.set(priority);
    thread.home.slice_ns.set(param::TIME_SLICE_NS);
    thread.hot.space.set(task.space.get());
    lend::begin(thread, uid);
    thread.hot.uid.set(uid.0);
    thread.refold();
    task.threads.push_back(thread);
    task.thread_count.set(task.thread_count.get() + 1);
    Ok(thread)
}

/// Makes a thread for boot.
pub fn boot_thread(k: &Kernel, task: TaskRef, priority: u8) -> ThreadRef {
    new_thread(k, task, priority).expect("boot has memory for its threads")
}

fn start(k: &Kernel, thread: ThreadRef, args: &Args) -> Result<(), Error> {
    // In the middle of a call it is ready too, but others may wait for the rest of that.
    let between = thread.operation.get() != Operation::None;
    let stopped = thread.is_stopped() && thread.is_ready() && !between;
    if thread.state.get() != State::Inactive && !stopped {
        return Err(Error::BadState);
    }
    if args.rsi() >= abi::USER_END || args.rdx() >> 47 != 0 {
        return Err(Error::BadArgument);
    }
    start_thread(k, thread, args.rsi(), args.rdx(), args.r10());
    Ok(())
}

/// Lets a thread begin at `ip`.
pub fn start_thread(k: &Kernel, thread: ThreadRef, ip: u64, sp: u64, argument: u64) {
    let frame = &thread.frame;
    frame.w.iter().for_each(|word| word.set(0));
    frame.w[Frame::RDI].set(argument);
    frame.w[Frame::RSI].set(thread.uid().0);
    frame.rdx.set(thread.task().id.get().0);
    frame.rax.set(0);
    frame.rcx.set(0);
    frame.r11.set(0);
    frame.mode.set(Frame::TRAP | 0xff);
    frame.rip.set(ip);
    frame.rsp.set(sp);
    frame.rflags.set(FLAGS);
    arch::set_user_segments(frame);
    thread.operation.set(Operation::None);
    thread.errand.set(Errand::Ipc);
    thread.set_special(0, special::STOPPED);
    thread.set_ready();
    k.wake(thread);
}

fn resume(k: &Kernel, current: ThreadRef, thread: ThreadRef) {
    if !thread.is_stopped() {
        return;
    }
    thread.set_special(0, special::STOPPED);
    ipc::door::resumed(k, thread);
    if thread.is_ready() && thread != current {
        k.wake(thread);
    }
}

fn set_priority(k: &Kernel, thread: ThreadRef, priority: u64, slice_us: u64) -> Result<(), Error> {
    let slice_ns = slice_us.saturating_mul(1000);
    let slice_fits =
        slice_us == 0 || (param::TIME_SLICE_MIN_NS..=param::TIME_SLICE_MAX_NS).contains(&slice_ns);
    if priority >= PRIORITIES as u64 || priority as u8 > thread.task().priority_max.get() || !slice_fits {
        return Err(Error::BadArgument);
    }
    let carrier = k.unqueue(thread);
    k.stop_counting(thread);
    thread.home.priority.set(priority as u8);
    if slice_us != 0 {
        thread.home.slice_ns.set(slice_ns);
    }
    if let Some(carrier) = carrier {
        k.wake(carrier);
    }
    Ok(())
}

/// Takes effect from the thread's next receive on; a wait that the fast path may end is rare enough to be one. Hands back what was
/// set before, for the same reason as [`set_block`].
fn set_window(thread: ThreadRef, args: &Args) -> Result<(), Error> {
    let window = Fpage(args.rsi());
    if !window.is_nil() && !window.is_valid() {
        return Err(Error::BadArgument);
    }
    args.give([args.rdi(), thread.standing.replace(window).0, 0, 0]);
    Ok(())
}

fn set_fs(thread: ThreadRef, is_current: bool, base: u64) -> Result<(), Error> {
    if base >> 47 != 0 {
        return Err(Error::BadArgument);
    }
    thread.fs_base.set(base);
    let flag = special::HAS_FS;
    thread.set_special(if base != 0 { flag } else { 0 }, flag);
    if is_current {
        arch::load_fs(base);
    }
    Ok(())
}

fn info(k: &Kernel, thread: ThreadRef, args: &Args) {
    k.charge(arch::now_ns());
    let state = if thread.is_stopped() {
        5
    } else if thread.wait() != Wait::No && thread.state.get() != State::Faulting {
        2
    } else {
        match (thread.state.get(), thread.operation.get()) {
            (State::Inactive, _) => 0,
            (State::Ready, Operation::None) => 1,
            (State::Ready, _) | (State::Taking, _) => 6,
            (State::Receiving | State::Calling | State::Idle | State::Watching, _) => 2,
            (State::Sending | State::Stalled | State::Queueing, _) => 3,
            (State::Faulting, _) => 4,
        }
    };
    args.give([
        state | (thread.home.priority.get() as u64) << 8 | u64::from(works_for(k, thread)) << 16,
        thread.home.time_ns.get(),
        thread.user_ip(),
        thread.faults.get() as u64,
        thread.pager.get().0,
        thread.task().id.get().0,
    ]);
}

/// Slot of the thread on whose time a thread works, because that has called it or somebody who did; 0 if it is its own.
fn works_for(k: &Kernel, thread: ThreadRef) -> u32 {
    let reference = thread.hot.shuttle.get();
    // Who waits for anybody is on no shuttle, and its word is left from the last one.
    let owner = k.owner(reference).filter(|&owner| owner != thread && thread.stake() != Stake::Nothing);
    owner.map_or(0, |_| reference.slot())
}

fn next(k: &Kernel, current: ThreadRef, args: &Args) -> Result<(), Error> {
    let task = target_task(k, current, TaskId(args.rsi()))?;
    let next = if args.rdi() == 0 {
        task.threads.first()
    } else {
        let thread = k.thread(Uid(args.rdi())).filter(|thread| thread.task() == task).ok_or(Error::NoSuch)?;
        task.threads.after(thread)
    };
    // A thread that is being ended has lost its uid.
    args.give([next.map_or(0, |thread| thread.uid().0)]);
    Ok(())
}

/// First step of a thread's end: from here on no uid leads to it, and it neither runs nor waits.
fn begin_end(k: &Kernel, thread: ThreadRef) {
    ipc::alert::start_at_end(k, thread);
    ipc::leave(k, thread);
    k.wheel.unlink(thread);
    interrupt::detach(k, thread);
    k.end_shuttle(thread);
    thread.hot.uid.set(0);
    thread.hot.accept.set(crate::object::thread::NEVER);
    thread.queueing_at.set(None);
    // A thread that ends itself must come back to it if it is interrupted.
    thread.state.set(if thread == arch::current() { State::Ready } else { State::Inactive });
    thread.cursor.set(0);
    if k.fpu_owner.get() == Some(thread) {
        k.fpu_owner.set(None);
    }
}

/// Goes on with a thread's end. The current thread is busy until it is over, or is the victim itself.
pub fn end_thread(k: &Kernel, current: ThreadRef, victim: Uid) -> Next {
    let name = |thread: &ThreadRef| thread.name.get() == victim;
    let (over, its_own) = match arch::tcb(victim.slot()).filter(name) {
        Some(thread) => {
            let its_own = thread.operation.get();
            (end_thread_step(k, thread, Some(current)), its_own)
        }
        None => (true, Operation::None),
    };
    let next = match its_own {
        _ if !over => Some(victim),
        // Whom it was ending itself nobody else will end.
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

/// One budget of work on a thread's end. True when nothing of it is left.
pub fn end_thread_step(k: &Kernel, thread: ThreadRef, current: Option<ThreadRef>) -> bool {
    if !close_queue(k, thread) || !wake_waiters(k, thread) {
        return false;
    }
    dismantle(k, thread, current);
    true
}

/// The thread takes no message any more, and whom it called is alerted. True when nobody is left in its queue.
fn close_queue(k: &Kernel, thread: ThreadRef) -> bool {
    if thread.hot.uid.get() != 0 {
        begin_end(k, thread);
    }
    if !ipc::alert::go_on(k, thread) {
        return false;
    }
    for _ in 0..param::PREEMPTION_PAGES {
        let Some(sender) = thread.senders.first() else { break };
        thread.senders.remove(sender);
        sender.state.set(State::Ready);
        ipc::partner_died(k, sender);
    }
    thread.refold();
    thread.senders.is_empty()
}

/// In [`Cold::cursor`](crate::object::thread::Cold::cursor): who waits for the thread is sought for its whole task at once.
const WITH_TASK: u32 = u32::MAX;

/// One budget of work on the end of all threads of a task: first none of them takes a message any more, then one search
/// finds all who wait for any of them, then they go. (A search for each would take the square of their number.) True
/// when none is left.
pub fn end_threads_step(k: &Kernel, task: TaskRef) -> bool {
    let Some(thread) = task.threads.first() else { return true };
    if thread.cursor.get() != WITH_TASK {
        // Those that are done go to the end of the list, so that the first is done when all are.
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
            let named = arch::tcb(name.slot()).filter(|thread| thread.name.get() == name);
            named.is_some_and(|thread| thread.cursor.get() == WITH_TASK && thread.task() == task)
        }));
        return false;
    }
    for _ in 0..param::PREEMPTION_PAGES {
        let Some(thread) = task.threads.first() else { return true };
        dismantle(k, thread, None);
    }
    false
}

/// Takes a thread apart for which nobody waits.
fn dismantle(k: &Kernel, thread: ThreadRef, current: Option<ThreadRef>) {
    // It waits to go on with its own end, which somebody else has just finished.
    k.unqueue(thread);
    let task = thread.task();
    task.threads.remove(thread);
    task.thread_count.set(task.thread_count.get() - 1);
    if thread.fpu.get() != 0 {
        task.give_back_frame(&k.pool, PoolFrame(thread.fpu.replace(0)));
    }
    if current == Some(thread) {
        k.zombie.set(Some(thread));
    } else {
        free(k, thread);
    }
}

/// Looks through all threads, some in each step, for those that wait for `thread` alone. True when all were seen.
fn wake_waiters(k: &Kernel, thread: ThreadRef) -> bool {
    // Somebody who ends it alone does not wait for the search of its task.
    let start = if thread.cursor.get() == WITH_TASK { 0 } else { thread.cursor.get() };
    let name = thread.name.get();
    let end = wake_waiters_for(k, start, |from| from == name);
    thread.cursor.set(end);
    end >= k.thread_slots.high_water()
}

/// Those in the slots from `start` on that wait for a thread that ends, alone, learn of it. Returns the slot at which the step's budget was
/// used up.
fn wake_waiters_for(k: &Kernel, start: u32, ends: impl Fn(Uid) -> bool) -> u32 {
    let mut end = k.thread_slots.high_water().min(start + param::PREEMPTION_SCAN);
    let mut slot = start;
    while slot < end {
        if let Some(waiter) = arch::tcb(slot) {
            let waits = match waiter.wait() {
                Wait::Closed(from) | Wait::Answer(from) | Wait::Return(from) if ends(from) => true,
                Wait::Closed(from) if from.clan() != waiter.uid().clan() => {
                    end = end.saturating_sub(param::SCAN_WAY);
                    ipc::way_to(k, waiter, from).is_some_and(&ends)
                }
                _ => false,
            };
            if waits {
                end = end.saturating_sub(param::SCAN_WAKE);
                ipc::fail_blocked(k, waiter, Error::PartnerDied);
            }
        }
        slot += 1;
    }
    slot
}

/// Takes the block itself apart. Nothing runs on its stack.
fn free(k: &Kernel, thread: ThreadRef) {
    let (task, slot) = (thread.task(), thread.name.get().slot());
    let frame = thread.own_frame();
    debug_assert!(!thread.timeout.is_filed());
    thread.name.set(Uid::NIL);
    thread.bookmark.remove();
    arch::unmap_tcb(slot);
    k.thread_slots.give_back(slot);
    task.give_back_frame(&k.pool, frame);
}

/// Frees the block of a thread that ended itself, now that another thread's stack is in use: who runs next is busy with this, or it is the
/// first interrupt after nobody ran.
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
        self.window.set(Fpage::NIL);
        self.fault_rights.set(Rights::NONE);
        self.operation.set(Operation::None);
        self.bookmark.init();
        self.canary.set(Tcb::CANARY);
        self.frame.mode.set(Frame::SYSRET);
        self.hot.accept.set(crate::object::thread::NEVER);
        self.hot.rip.set(0);
        self.hot.rsp.set(0);
        self.server.caller.set(door::NOBODY);
        self.frame_address.set(frame.0);
    }
}
