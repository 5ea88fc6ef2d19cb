//! `thread_control`: make, start, change, watch and end threads.

use super::{foreign_return, registers, thread_state};
use crate::arch::extended::has_bases;
use crate::args::{Args, done};
use crate::kernel::Kernel;
use crate::lend::word::Stake;
use crate::life::thread::{begin_end, end_thread, new_thread, start_thread};
use crate::mem::space;
use crate::object::thread::{Operation, State, Wait, special};
use crate::object::{TaskRef, ThreadRef};
use crate::processor::extended;
use crate::sched::Next;
use crate::{arch, ipc, param, trace};
use abi::call::{
    ALERT_CLEAR, ALERT_POLL, ALERT_SET, FLAGS, FOREIGN, FOREIGN_LABEL_MAX, PRIORITIES, TRACE_COUNTERS,
    TRACE_DOORS, thread_op as op,
};
use abi::{Dope, Error, Fpage, TaskId, Uid};

/// The table of sub-operations.
pub fn thread_control(k: &Kernel, current: ThreadRef, operation: u32) -> Next {
    let args = Args(&current.frame);
    let result = match operation {
        op::CREATE => create(k, current, &args),
        op::NEXT => next(k, current, &args),
        op::READ_TRACE => read_trace(k, current, &args),
        op::INTERRUPT_MESSAGE => interrupt_message(k, current, &args),
        op::GET_REGISTERS | op::SET_REGISTERS => registers::hand_over(k, current, operation, &args),
        op::START..op::COUNT => match target(k, current, Uid(args.first())) {
            Ok(thread) => return on_thread(k, current, thread, operation, &args),
            Err(error) => Err(error),
        },
        _ => Err(Error::BadArgument),
    };
    done(current, result)
}

/// Begins the call in the registers of the current thread anew, after a page fault in its middle.
pub fn begin_anew(k: &Kernel, current: ThreadRef) -> Next {
    current.operation.set(Operation::None);
    thread_control(k, current, current.frame.head() as u32 >> 8 & 0xff)
}

/// The thread that an operation is about, if the current thread may control it; all of its registers are where a thread has them that waits for its handler.
fn target(k: &Kernel, current: ThreadRef, uid: Uid) -> Result<ThreadRef, Error> {
    let thread = controlled(k, current, uid)?;
    if let Wait::Foreign(_) = thread.wait() {
        thread.unfold();
    }
    Ok(thread)
}

/// The thread with a name, if the current thread may control it.
#[inline(always)]
pub(super) fn controlled(k: &Kernel, current: ThreadRef, uid: Uid) -> Result<ThreadRef, Error> {
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
        op::SET_PAGER => set_pager(k, current, thread, [args.second(), args.third()].map(Uid)),
        op::SET_PRIORITY => set_priority(k, thread, args.second(), args.third()),
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
        op::ABORT if ipc::end::abort(k, thread) => Ok(()),
        op::ABORT => Err(Error::BadState),
        op::SET_FS => set_fs(k, thread, thread == current, args.second()),
        op::DENY_NATIVE => deny_native(thread, args),
        op::GET_STATE => return thread_state::get(k, current, thread, args),
        op::SET_STATE => return thread_state::set(k, current, thread, args),
        op::FOREIGN_RETURN => return foreign_return::late(k, current, thread, args),
        op::STEP => {
            let _ = done(current, Ok(()));
            registers::step(thread, args.second() != 0);
            return Next::Same;
        }
        op::TRACE if is_privileged(current) => {
            trace::set(thread, args.second() & 1 != 0);
            if args.second() & 2 != 0 {
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

/// Denies native calls or allows them, and labels the foreign ones.
fn deny_native(thread: ThreadRef, args: &Args) -> Result<(), Error> {
    let (deny, label) = (args.second() != 0, args.third());
    if label > FOREIGN_LABEL_MAX {
        return Err(Error::BadArgument);
    }
    thread.foreign.mark.set(FOREIGN | label << 32 | FLAGS);
    let flag = special::DENY_NATIVE;
    thread.set_special(if deny { flag } else { 0 }, flag);
    Ok(())
}

/// Registers a block and returns the former one, so that a library can borrow the registration and restore it.
fn set_block(k: &Kernel, thread: ThreadRef, args: &Args) -> Result<(), Error> {
    let block = &thread.block;
    if ipc::taking::is_taking(thread) {
        return Err(Error::BadState);
    }
    let before = [args.first(), block.address.get(), block.room.get(), block.timeout.get().into()];
    block.set(k, thread.task(), args.second(), Dope(args.third()))?;
    block.timeout.set(args.fourth() as u32);
    args.give(before);
    Ok(())
}

fn alert(k: &Kernel, current: ThreadRef, thread: ThreadRef, args: &Args) -> Next {
    let was_alerted = thread.special.get() & special::ALERTED != 0;
    match args.second() {
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

/// Whether the current thread belongs to the first task, or to one that this made.
fn is_privileged(current: ThreadRef) -> bool {
    let task = current.task();
    task.is_sigma0.get() || task.chief.get().is_some_and(|chief| chief.is_sigma0.get())
}

fn read_trace(k: &Kernel, current: ThreadRef, args: &Args) -> Result<(), Error> {
    if !is_privileged(current) {
        return Err(Error::Denied);
    }
    match args.first() {
        TRACE_COUNTERS => args.give(trace::counters(k)),
        row @ TRACE_DOORS.. => {
            let of = TaskId(args.second());
            let task = if of == TaskId::NIL { None } else { Some(k.task(of).ok_or(Error::NoSuch)?) };
            args.give(trace::doors(k, task, row - TRACE_DOORS).ok_or(Error::NoSuch)?);
        }
        number => args.give(k.trace.read(number).ok_or(Error::NoSuch)?),
    }
    Ok(())
}

/// Tells the message that fires a line, to a task that holds the line.
fn interrupt_message(k: &Kernel, current: ThreadRef, args: &Args) -> Result<(), Error> {
    let line = Uid(args.first()).as_interrupt().ok_or(Error::BadArgument)?;
    if !space::holds_interrupt(k, current.task(), line) {
        return Err(Error::Denied);
    }
    let (address, word) = arch::irq_message(line).ok_or(Error::NoSuch)?;
    args.give([address, word.into()]);
    Ok(())
}

fn create(k: &Kernel, current: ThreadRef, args: &Args) -> Result<(), Error> {
    let task = target_task(k, current, TaskId(args.first()))?;
    let priority = args.second();
    if priority >= PRIORITIES as u64 || priority as u8 > task.priority_max.get() {
        return Err(Error::BadArgument);
    }
    let [pager, handler] = [args.third(), args.fourth()].map(Uid);
    for named in [pager, handler] {
        may_hear(k, current, task, named)?;
    }
    let thread = new_thread(k, task, priority as u8)?;
    thread.fault.pager.set(pager);
    thread.fault.handler.set(handler);
    // A traced thread makes traced threads, so that programs are traced from their start.
    thread.set_special(current.special.get() & special::TRACED, 0);
    args.give([thread.uid().0]);
    Ok(())
}

fn set_pager(
    k: &Kernel,
    current: ThreadRef,
    thread: ThreadRef,
    [pager, handler]: [Uid; 2],
) -> Result<(), Error> {
    for named in [pager, handler].into_iter().filter(|&named| !hears(thread, named)) {
        may_hear(k, current, thread.task(), named)?;
    }
    thread.fault.pager.set(pager);
    thread.fault.handler.set(handler);
    thread.refold_foreign();
    Ok(())
}

/// Whether a thread's faults or exceptions are told to `named` already.
fn hears(thread: ThreadRef, named: Uid) -> bool {
    thread.fault.pager.get() == named || thread.fault.handler.get() == named
}

/// Checks whether the current thread may let `named` hear of faults and exceptions of a task's threads. These cross every border of a clan, and so do the answers: it must be
/// somebody to whom the current thread or that task may send by itself, or who hears of the current thread's (row C9).
fn may_hear(k: &Kernel, current: ThreadRef, task: TaskRef, named: Uid) -> Result<(), Error> {
    if named.is_nil() || hears(current, named) {
        return Ok(());
    }
    let to = k.thread(named).ok_or(Error::NoSuch)?.task();
    let reaches = |from: TaskRef| ipc::clan::hop(from, to).is_none();
    if reaches(current.task()) || reaches(task) { Ok(()) } else { Err(Error::Denied) }
}

fn start(k: &Kernel, thread: ThreadRef, args: &Args) -> Result<(), Error> {
    // A thread in the middle of a call is ready too, but others may wait for the rest of that call.
    let between = thread.operation.get() != Operation::None;
    let stopped = thread.is_stopped() && thread.is_ready() && !between;
    if thread.state.get() != State::Inactive && !stopped {
        return Err(Error::BadState);
    }
    if args.second() >= abi::USER_END || args.third() >> 47 != 0 {
        return Err(Error::BadArgument);
    }
    start_thread(k, thread, args.second(), args.third(), args.fourth());
    Ok(())
}

fn resume(k: &Kernel, current: ThreadRef, thread: ThreadRef) {
    if !thread.is_stopped() {
        return;
    }
    thread.set_special(0, special::STOPPED);
    ipc::serve::resumed(k, thread);
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
    k.reconsider(thread);
    k.settle_shuttle(thread);
    if slice_us != 0 {
        thread.home.slice_ns.set(slice_ns);
    }
    if let Some(carrier) = carrier {
        k.wake(carrier);
    }
    Ok(())
}

/// Applies from the thread's next receive on; a wait that the fast path may end counts as one. Returns the old window, so that a
/// library can borrow the window and restore it.
fn set_window(thread: ThreadRef, args: &Args) -> Result<(), Error> {
    let window = Fpage(args.second());
    if !window.is_nil() && !window.is_valid() {
        return Err(Error::BadArgument);
    }
    args.give([args.first(), thread.receiving.standing.replace(window).0, 0, 0]);
    Ok(())
}

fn set_fs(k: &Kernel, thread: ThreadRef, is_current: bool, base: u64) -> Result<(), Error> {
    if base >> 47 != 0 {
        return Err(Error::BadArgument);
    }
    if has_bases() {
        if extended::is_with_another(k, thread) {
            return Err(Error::BadState);
        }
        extended::with(k, thread, |extended| extended.fs_base.set(base));
        return Ok(());
    }
    keep_fs(thread, base);
    if is_current {
        arch::load_fs(base);
    }
    Ok(())
}

/// Keeps the FS base of a thread on a processor where users have no instruction for it.
pub fn keep_fs(thread: ThreadRef, base: u64) {
    thread.context.fs_base.set(base);
    let flag = special::HAS_FS;
    thread.set_special(if base != 0 { flag } else { 0 }, flag);
}

fn info(k: &Kernel, thread: ThreadRef, args: &Args) {
    k.charge(arch::now_ns());
    let is_between = !thread.is_ready() || registers::is_in_call(thread);
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
        state
            | u64::from(thread.home.priority.get()) << 8
            | u64::from(works_for(k, thread)) << 16
            | u64::from(thread.home.effective.get()) << 34
            | u64::from(is_between) << 42,
        thread.home.time_ns.get(),
        thread.user_ip(),
        thread.fault.count.get() as u64,
        thread.fault.pager.get().0,
        thread.task().id.get().0,
    ]);
}

/// Slot of the thread on whose time this one works, since that has called it, or called somebody who did; 0 if it works on its own time.
fn works_for(k: &Kernel, thread: ThreadRef) -> u32 {
    let reference = thread.hot.shuttle.get();
    // A thread that waits for anybody is on no shuttle; its word is left from the last one.
    let owner = k.owner(reference).filter(|&owner| owner != thread && thread.stake() != Stake::Nothing);
    owner.map_or(0, |_| reference.slot())
}

fn next(k: &Kernel, current: ThreadRef, args: &Args) -> Result<(), Error> {
    let task = target_task(k, current, TaskId(args.second()))?;
    let next = if args.first() == 0 {
        task.threads.first()
    } else {
        let thread =
            k.thread(Uid(args.first())).filter(|thread| thread.task() == task).ok_or(Error::NoSuch)?;
        task.threads.after(thread)
    };
    // A thread that is being ended has lost its uid. There are as many as threads that end others.
    let mut behind =
        core::iter::successors(next, |&thread| task.threads.after(thread)).take(param::NEXT_SCAN);
    args.give([behind.find(|thread| !thread.uid().is_nil()).map_or(0, |thread| thread.uid().0)]);
    Ok(())
}
