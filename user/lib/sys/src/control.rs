//! System calls that are neither ipc nor doors: threads, tasks, flush, clock.

use crate::{Dope, Fpage, Result, TaskId, ThreadState, Timeout, Uid, error};
use abi::call::{
    ALERT_CLEAR, ALERT_POLL, ALERT_SET, Call, FLUSH_SELF, NULL, TRACE_DOORS, task_op, thread_op,
};
use abi::state::REGISTERS;
use core::arch::asm;

/// The six registers of arguments and results: `rdi rsi rdx r10 r8 r9`.
pub type Registers = [u64; 6];

/// Any call but ipc: `eax` and the six registers in, `rax` and the six registers out.
///
/// # Safety
///
/// The call must not take away memory that the program goes on using, and `eax` must not be an ipc, which
/// changes more registers than this function knows of.
#[inline(always)]
pub unsafe fn system_call(eax: u32, registers: &mut Registers) -> u64 {
    let mut rax = eax as u64;
    let [rdi, rsi, rdx, r10, r8, r9] = registers;
    // SAFETY: the kernel changes only the registers named here; what the call does is the caller's promise.
    unsafe {
        asm!(
            "syscall",
            inout("rax") rax,
            inout("rdi") *rdi,
            inout("rsi") *rsi,
            inout("rdx") *rdx,
            inout("r10") *r10,
            inout("r8") *r8,
            inout("r9") *r9,
            out("rcx") _,
            out("r11") _,
        );
    }
    rax
}

#[inline(always)]
pub(crate) fn control(eax: u32, mut registers: Registers) -> Result<Registers> {
    // SAFETY: threads and tasks are the kernel's objects; what the operations of this module do to memory
    // is what their callers ask for.
    match unsafe { system_call(eax, &mut registers) } {
        0 => Ok(registers),
        code => Err(error(code)),
    }
}

#[inline(always)]
pub(crate) fn thread(op: u32, registers: Registers) -> Result<Registers> {
    control(Call::ThreadControl as u32 | op << 8, registers)
}

#[inline(always)]
fn task(op: u32, registers: Registers) -> Result<Registers> {
    control(Call::TaskControl as u32 | op << 8, registers)
}

/// Enters and leaves the kernel.
#[inline(always)]
pub fn null() {
    // SAFETY: the null call does nothing.
    unsafe { system_call(NULL, &mut [0; 6]) };
}

/// Nanoseconds since the kernel started.
#[inline]
pub fn clock() -> u64 {
    control(Call::Clock as u32, [0; 6]).map_or(0, |[ns, ..]| ns)
}

/// Gives the rest of the time slice to a thread, or with nil to whoever is next.
#[inline]
pub fn thread_switch(to: Uid) -> Result<()> {
    control(Call::ThreadSwitch as u32, [to.0, 0, 0, 0, 0, 0]).map(drop)
}

/// Accesses to flushed pages since the last flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touched {
    /// Some page was accessed.
    pub accessed: bool,
    /// Some page was written.
    pub written: bool,
}

fn flush_with(fpage: Fpage, flags: u64) -> Result<Touched> {
    let [bits, ..] = control(Call::Flush as u32, [fpage.0, flags, 0, 0, 0, 0])?;
    Ok(Touched { accessed: bits & 1 != 0, written: bits & 2 != 0 })
}

/// Takes the rights of `fpage` back from everyone who got its pages from this task.
pub fn flush(fpage: Fpage) -> Result<Touched> {
    flush_with(fpage, 0)
}

/// Like [`flush`], and takes them from this task too.
///
/// # Safety
///
/// The program must not use the memory any more in the ways that were taken.
pub unsafe fn flush_self(fpage: Fpage) -> Result<Touched> {
    flush_with(fpage, FLUSH_SELF)
}

/// Makes a thread in `in_task` (nil: own), which does not run before [`thread_start`]. Pager and handler are as for [`thread_set_pager`].
pub fn thread_create(in_task: TaskId, priority: u8, pager: Uid, handler: Uid) -> Result<Uid> {
    thread(thread_op::CREATE, [in_task.0, priority as u64, pager.0, handler.0, 0, 0])
        .map(|[uid, ..]| Uid(uid))
}

/// Starts a thread that never ran or is stopped; it finds `argument` in `rdi`, its uid in `rsi`, its task in
/// `rdx`.
///
/// # Safety
///
/// In the caller's own task the code at `ip` must be sound to run with the stack that ends at `sp`.
pub unsafe fn thread_start(target: Uid, ip: u64, sp: u64, argument: u64) -> Result<()> {
    thread(thread_op::START, [target.0, ip, sp, argument, 0, 0]).map(drop)
}

/// Ends a thread; nil: the caller, which then does not return.
pub fn thread_destroy(target: Uid) -> Result<()> {
    thread(thread_op::DESTROY, [target.0, 0, 0, 0, 0, 0]).map(drop)
}

/// Sets who gets a thread's page faults and who its exceptions: nil for nobody.
///
/// # Errors
///
/// `NoSuch`: one of them is no thread. `Denied`: a chief would have to hear what the caller, and the thread's task, send there, and it hears of neither's faults yet.
pub fn thread_set_pager(target: Uid, pager: Uid, handler: Uid) -> Result<()> {
    thread(thread_op::SET_PAGER, [target.0, pager.0, handler.0, 0, 0, 0]).map(drop)
}

/// Sets a thread's priority, and its time slice in µs unless that is 0.
pub fn thread_set_priority(target: Uid, priority: u8, slice_us: u64) -> Result<()> {
    thread(thread_op::SET_PRIORITY, [target.0, priority as u64, slice_us, 0, 0, 0]).map(drop)
}

/// Keeps a thread from running user code until [`thread_resume`]; a pending ipc goes on waiting.
pub fn thread_stop(target: Uid) -> Result<()> {
    thread(thread_op::STOP, [target.0, 0, 0, 0, 0, 0]).map(drop)
}

/// Undoes [`thread_stop`].
pub fn thread_resume(target: Uid) -> Result<()> {
    thread(thread_op::RESUME, [target.0, 0, 0, 0, 0, 0]).map(drop)
}

/// Ends a thread's pending ipc with an error.
pub fn thread_abort(target: Uid) -> Result<()> {
    thread(thread_op::ABORT, [target.0, 0, 0, 0, 0, 0]).map(drop)
}

/// Alerts a thread, and with it all servers that follow in its chain of calls through doors (row D9): a hint that somebody in front of
/// them thinks the work not worth going on. What they began as alertable ends, see [`Ipc::alertable`](crate::Ipc::alertable) and
/// [`door_call_alertable`](crate::door_call_alertable); all else they may do as if nothing were. Says whether it was alerted before.
pub fn alert(target: Uid) -> Result<bool> {
    thread(thread_op::ALERT, [target.0, ALERT_SET, 0, 0, 0, 0]).map(|[was, ..]| was != 0)
}

/// Whether a thread is alerted. A server is until it returns.
pub fn is_alerted(target: Uid) -> Result<bool> {
    thread(thread_op::ALERT, [target.0, ALERT_POLL, 0, 0, 0, 0]).map(|[was, ..]| was != 0)
}

/// A thread, and it alone, is alerted no more. Says whether it was.
pub fn clear_alert(target: Uid) -> Result<bool> {
    thread(thread_op::ALERT, [target.0, ALERT_CLEAR, 0, 0, 0, 0]).map(|[was, ..]| was != 0)
}

/// Registers where a thread receives the part of messages that lies in memory: the address of a
/// [block](abi::message) and its room. `patience` bounds how long the thread takes part in a transfer
/// that takes more than one step; until it is set, [`PATIENCE_US`](abi::call::PATIENCE_US).
/// Says what was registered before.
pub fn thread_set_block(target: Uid, address: u64, room: Dope, patience: Timeout) -> Result<Registered> {
    let registers = [target.0, address, room.0, patience.0 as u64, 0, 0];
    let [_, address, room, patience, ..] = thread(thread_op::SET_BLOCK, registers)?;
    Ok(Registered { address, room: Dope(room), patience: Timeout(patience as u32) })
}

/// Where a thread receives the part of messages that lies in memory; see [`thread_set_block`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registered {
    /// The address of the block.
    pub address: u64,
    /// Its room; [`Dope::NONE`]: there is no block.
    pub room: Dope,
    /// How long a transfer waits for page faults on the partner's side.
    pub patience: Timeout,
}

/// Sets where map items arrive that come in answer to a short form, and those of calls and returns through doors; nil: nowhere. Says
/// what was set before.
pub fn thread_set_window(target: Uid, window: Fpage) -> Result<Fpage> {
    thread(thread_op::SET_WINDOW, [target.0, window.0, 0, 0, 0, 0]).map(|[_, before, ..]| Fpage(before))
}

/// Sets a thread's FS base, for thread-local storage; 0: none.
pub fn thread_set_fs(target: Uid, base: u64) -> Result<()> {
    thread(thread_op::SET_FS, [target.0, base, 0, 0, 0, 0]).map(drop)
}

/// Turns all native calls of a thread into exceptions (1), or allows them (0).
pub fn thread_deny_native(target: Uid, deny: u64) -> Result<()> {
    thread(thread_op::DENY_NATIVE, [target.0, deny, 0, 0, 0, 0]).map(drop)
}

/// Reads a group of registers ([`abi::call::REGISTERS`]) of a thread that stands still.
pub fn thread_registers(target: Uid, group: usize) -> Result<[u64; 4]> {
    let [_, _, a, b, c, d] = thread(thread_op::GET_REGISTERS, [target.0, group as u64, 0, 0, 0, 0])?;
    Ok([a, b, c, d])
}

/// Writes a group of registers of a thread that stands still.
pub fn thread_set_registers(target: Uid, group: usize, [a, b, c, d]: [u64; 4]) -> Result<()> {
    thread(thread_op::SET_REGISTERS, [target.0, group as u64, a, b, c, d]).map(drop)
}

/// Reads all registers of a thread that stands still.
pub fn thread_get_state(target: Uid, state: &mut ThreadState) -> Result<()> {
    let address = core::ptr::from_mut(state) as u64;
    thread(thread_op::GET_STATE, [target.0, address, ThreadState::LEN_BYTES, 0, 0, 0]).map(drop)
}

/// Writes all registers of a thread that stands still, or has never run: then it is stopped, and [`thread_resume`] lets it run.
///
/// # Errors
///
/// `BadArgument`: no thread may have such a state; nothing has changed.
pub fn thread_set_state(target: Uid, state: &ThreadState) -> Result<()> {
    let address = core::ptr::from_ref(state) as u64;
    thread(thread_op::SET_STATE, [target.0, address, ThreadState::LEN_BYTES, 0, 0, 0]).map(drop)
}

/// Reads the general registers of a thread that stands still, by their numbers in [`abi::state::register`].
pub fn thread_get_general(target: Uid, registers: &mut [u64; REGISTERS]) -> Result<()> {
    let address = core::ptr::from_mut(registers) as u64;
    thread(thread_op::GET_STATE, [target.0, address, ThreadState::GENERAL_BYTES, 0, 0, 0]).map(drop)
}

/// Writes the general registers of a thread that stands still. All others stay as they are.
///
/// # Errors
///
/// `BadArgument`: no thread may have such an instruction pointer or stack pointer; nothing has changed. `BadState`: it does not stand still, or has never run.
pub fn thread_set_general(target: Uid, registers: &[u64; REGISTERS]) -> Result<()> {
    let address = core::ptr::from_ref(registers) as u64;
    thread(thread_op::SET_STATE, [target.0, address, ThreadState::GENERAL_BYTES, 0, 0, 0]).map(drop)
}

/// Lets each instruction of a thread end in an exception, or no longer.
pub fn thread_step(target: Uid, on: bool) -> Result<()> {
    thread(thread_op::STEP, [target.0, on as u64, 0, 0, 0, 0]).map(drop)
}

/// Sets one of a thread's four breakpoints: what it waits for is [`abi::call::BREAK_EXECUTE`] or its like.
pub fn thread_breakpoint(target: Uid, number: u64, address: u64, event: u64, len: u64) -> Result<()> {
    thread(thread_op::BREAKPOINT, [target.0, number, address, event, len, 0]).map(drop)
}

/// Records what a thread does, or no longer. `anew` starts the counters again.
pub fn thread_trace(target: Uid, on: bool, anew: bool) -> Result<()> {
    thread(thread_op::TRACE, [target.0, on as u64 | (anew as u64) << 1, 0, 0, 0, 0]).map(drop)
}

/// How many calls or returns through doors recorded threads made, by size; see [`thread_op::READ_TRACE`]. `task`: nil for all.
pub fn trace_doors(task: TaskId, row: u64) -> Result<[u64; 6]> {
    thread(thread_op::READ_TRACE, [TRACE_DOORS.saturating_add(row), task.0, 0, 0, 0, 0])
}

/// A record of what threads did, by its number, or [`abi::call::TRACE_COUNTERS`].
pub fn trace_read(number: u64) -> Result<[u64; 4]> {
    let [a, b, c, d, ..] = thread(thread_op::READ_TRACE, [number, 0, 0, 0, 0, 0])?;
    Ok([a, b, c, d])
}

/// Message that fires an interrupt line which this task holds: address and word. See [`thread_op::INTERRUPT_MESSAGE`].
pub fn interrupt_message(line: u8) -> Result<(u64, u32)> {
    let [address, word, ..] = thread(thread_op::INTERRUPT_MESSAGE, [Uid::interrupt(line).0, 0, 0, 0, 0, 0])?;
    Ok((address, word as u32))
}

/// States of threads, by number: their places among the names in [`thread_op::STATES`].
pub mod thread_state {
    use super::thread_op::STATES;

    /// It was never started.
    pub const INACTIVE: u8 = number_of("inactive");
    /// It runs, or could run.
    pub const READY: u8 = number_of("ready");
    /// It waits for a message.
    pub const RECEIVING: u8 = number_of("receiving");
    /// It waits until its partner takes its message.
    pub const SENDING: u8 = number_of("sending");
    /// It waits for the answer to a fault or an exception.
    pub const FAULTING: u8 = number_of("faulting");
    /// Somebody has stopped it.
    pub const STOPPED: u8 = number_of("stopped");
    /// A message is on its way to it or from it.
    pub const BUSY: u8 = number_of("busy");

    /// Compiled only: a name that is none does not compile.
    const fn number_of(name: &str) -> u8 {
        let mut number = 0;
        while !is_same(STATES[number].as_bytes(), name.as_bytes()) {
            number += 1;
        }
        number as u8
    }

    const fn is_same(one: &[u8], other: &[u8]) -> bool {
        let mut at = 0;
        while at < one.len() && at < other.len() && one[at] == other[at] {
            at += 1;
        }
        at == one.len() && at == other.len()
    }
}

/// The state of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadInfo {
    /// One of [`thread_state`]'s; an index into [`thread_op::STATES`].
    pub state: u8,
    /// It is in the middle of ipc, of a fault or of an exception, also if somebody has stopped it there.
    pub is_in_call: bool,
    /// Its own priority.
    pub priority: u8,
    /// Priority at which its own shuttle is scheduled, whoever is on that: its own, or the greatest that the shuttle inherits.
    pub effective: u8,
    /// Slot of the thread on whose time it works ([`Uid::slot`]), because that has called it or somebody who did; 0: on its own.
    pub works_for: u32,
    /// CPU time in nanoseconds, time lent out included.
    pub cpu_ns: u64,
    /// Instruction pointer.
    pub ip: u64,
    /// Page faults so far.
    pub faults: u64,
    /// Thread that gets its page faults.
    pub pager: Uid,
    /// Its task.
    pub task: TaskId,
}

/// All bits of a slot.
const SLOTS: u32 = (1 << abi::uid::SLOT_BITS) - 1;

/// Reads the state of a thread.
pub fn thread_info(target: Uid) -> Result<ThreadInfo> {
    let [state, cpu_ns, ip, faults, pager, of] = thread(thread_op::INFO, [target.0, 0, 0, 0, 0, 0])?;
    let (number, priority, effective) = (state as u8, (state >> 8) as u8, (state >> 34) as u8);
    let works_for = (state >> 16) as u32 & SLOTS;
    let is_in_call = state >> 42 & 1 != 0;
    let (pager, task) = (Uid(pager), TaskId(of));
    Ok(ThreadInfo {
        state: number,
        is_in_call,
        priority,
        effective,
        works_for,
        cpu_ns,
        ip,
        faults,
        pager,
        task,
    })
}

/// The thread after `previous` (nil: the first) in a task (nil: own); nil at the end.
pub fn thread_next(of: TaskId, previous: Uid) -> Result<Uid> {
    thread(thread_op::NEXT, [previous.0, of.0, 0, 0, 0, 0]).map(|[uid, ..]| Uid(uid))
}

/// Makes a task with `quota` frames of kernel memory out of the caller's, and a limit for priorities.
pub fn task_create(quota: u64, priority_max: u8) -> Result<TaskId> {
    task(task_op::CREATE, [quota, priority_max as u64, 0, 0, 0, 0]).map(|[id, ..]| TaskId(id))
}

/// Ends a task, its threads, and every task that it created.
pub fn task_destroy(target: TaskId) -> Result<()> {
    task(task_op::DESTROY, [target.0, 0, 0, 0, 0, 0]).map(drop)
}

/// The state of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskInfo {
    /// Kernel memory that it may use, in frames.
    pub quota: u64,
    /// Kernel memory that it uses, in frames.
    pub used: u64,
    /// Pages mapped.
    pub pages: u64,
    /// Threads.
    pub threads: u64,
    /// Page faults so far.
    pub faults: u64,
    /// Highest priority that its threads may have.
    pub priority_max: u8,
}

/// Reads the state of a task (nil: own).
pub fn task_info(target: TaskId) -> Result<TaskInfo> {
    let [quota, used, pages, threads, faults, priority_max] = task(task_op::INFO, [target.0, 0, 0, 0, 0, 0])?;
    Ok(TaskInfo { quota, used, pages, threads, faults, priority_max: priority_max as u8 })
}

/// Moves quota between the caller's task and one that it created, so that that one has `quota`.
pub fn task_set_quota(target: TaskId, quota: u64) -> Result<()> {
    task(task_op::SET_QUOTA, [target.0, quota, 0, 0, 0, 0]).map(drop)
}

/// Orders, for tests, that `count` frames of kernel memory, from the one that counted tasks ask for as number `first` on, be
/// denied to them; `target` (nil: own) is counted from now on. With 0 in `first` none is denied, and `target` is not counted
/// any more. Returns what was left of the last order. Only where the boot option `exhaust=on` allows it.
pub fn task_exhaust(target: TaskId, first: u64, count: u64) -> Result<[u64; 2]> {
    task(task_op::EXHAUST, [target.0, first, count, 0, 0, 0]).map(|[first, count, ..]| [first, count])
}

/// Puts a task that the caller's task created, and that has neither threads nor tasks yet, into a prediction domain of its own, with all
/// tasks that will be made in it: the processor forgets what it has learned of branches where it goes from one domain to another. Its
/// messages are off the fast path. False if the processor cannot do that.
pub fn task_set_domain(target: TaskId) -> Result<bool> {
    task(task_op::SET_DOMAIN, [target.0, 0, 0, 0, 0, 0]).map(|[forgets, ..]| forgets != 0)
}

/// The task after `previous` (nil: the first) among those that the caller's task created; nil at the end.
pub fn task_next(previous: TaskId) -> Result<TaskId> {
    task(task_op::NEXT, [previous.0, 0, 0, 0, 0, 0]).map(|[id, ..]| TaskId(id))
}

/// Identity of a thread, for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its uid.
    pub uid: Uid,
    /// Its task.
    pub task: TaskId,
    /// Thread that gets its page faults.
    pub pager: Uid,
    /// Thread that gets its exceptions.
    pub handler: Uid,
}

/// Identity of the caller.
pub fn identity() -> Identity {
    match task(task_op::SELF, [0; 6]) {
        Ok([uid, of, pager, handler, ..]) => {
            Identity { uid: Uid(uid), task: TaskId(of), pager: Uid(pager), handler: Uid(handler) }
        }
        // Unreachable while native calls are allowed; if they are denied the handler decides what comes back.
        Err(_) => Identity { uid: Uid::NIL, task: TaskId::NIL, pager: Uid::NIL, handler: Uid::NIL },
    }
}

/// The caller's uid.
pub fn myself() -> Uid {
    identity().uid
}
