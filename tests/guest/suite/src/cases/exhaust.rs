//! Kernel memory that runs out: every kind of system call with its first, second, third … allocation denied, until one comes
//! through untouched. These run only where the boot option `exhaust=on` lets programs order that.
//!
//! Each time somebody learns of it, the same call succeeds afterwards, and once all is ended nothing is missing. The
//! kernel's objects are looked into on the host, by `tests/model`.

use super::{device, long, map};
use crate::kit::{Agent, Attempted, Child, Frame, Outcome, note};
use crate::{check, check_eq};
use alloc::vec::Vec;
use sys::abi::call::{BREAK_WRITE, ITEM_WHOLE, PORT_FAULT, task_op, thread_op, vector};
use sys::abi::{Call, PAGE_SIZE};
use sys::{Dope, Error, Fpage, Kind, Rights, TaskId, ThreadState, Timeout, Uid};

unsafe extern "C" {
    fn suite_in();
    fn suite_load();
    fn suite_nothing();
    fn suite_store();
}

/// Whether programs may order that kernel memory runs out.
pub fn is_allowed() -> bool {
    sys::task_exhaust(TaskId::NIL, 0, 0).is_ok()
}

/// What a call says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    Done,
    /// Something could not be paid for.
    Denied,
}

use Said::{Denied, Done};

/// More than any call needs.
const MOST: u64 = 100;

fn used() -> Outcome<u64> {
    Ok(sys::task_info(TaskId::NIL)?.used)
}

/// Makes `attempt` on what `prepare` has made, with each allocation that is charged to some tasks denied. Returns how many
/// there are.
fn at_every_allocation<S>(
    prepare: impl Fn() -> Outcome<S>,
    payers: impl Fn(&S) -> Vec<TaskId>,
    attempt: impl Fn(&mut S) -> Outcome<Said>,
) -> Outcome<u64> {
    // Says whether it succeeds without the allocation of that number, of which there is none then.
    let without = |first: u64| -> Outcome<bool> {
        let mut stage = prepare()?;
        let payers = payers(&stage);
        for payer in &payers {
            sys::task_exhaust(*payer, first, 1)?;
        }
        let said = attempt(&mut stage);
        let mut left = 0;
        for payer in &payers {
            left += sys::task_exhaust(*payer, 0, 0)?[1];
        }
        check_eq!((first, said?), (first, if left == 0 { Denied } else { Done }));
        if left == 0 {
            check_eq!((first, attempt(&mut stage)?), (first, Done));
        }
        Ok(left != 0)
    };
    // Once with everything there is, and once without something, so that what this program itself pays for is paid.
    check_eq!(attempt(&mut prepare()?)?, Done);
    without(1)?;
    let before = used()?;
    for first in 1..MOST {
        let succeeds = without(first)?;
        check_eq!(used()?, before);
        if succeeds {
            return Ok(first - 1);
        }
    }
    Err(crate::kit::Failure::new(format_args!("it never succeeds")))
}

fn said<T>(call: Call, result: sys::Result<T>) -> Outcome<Said> {
    match note(call, result) {
        Ok(_) => Ok(Done),
        Err(error) => {
            check_eq!(error, Error::NoMemory);
            Ok(Denied)
        }
    }
}

fn only(child: &Child) -> Vec<TaskId> {
    Vec::from([child.0])
}

pub fn thread_create() -> Outcome {
    let attempt =
        |child: &mut Child| said(Call::ThreadControl, sys::thread_create(child.0, 1, Uid::NIL, Uid::NIL));
    check_eq!(at_every_allocation(Child::new, only, attempt)?, 1);
    Ok(())
}

/// A block is registered without tables, too: they are for the fast path alone.
pub fn set_block() -> Outcome {
    const NOWHERE: u64 = 0x90_0000_0000;
    let empty = sys::task_info(Child::new()?.0)?.used;
    let prepare = || {
        let child = Child::new()?;
        let thread = sys::thread_create(child.0, 1, Uid::NIL, Uid::NIL)?;
        Ok((child, thread))
    };
    let attempt = |(child, thread): &mut (Child, Uid)| {
        sys::thread_set_block(*thread, NOWHERE, Dope::room(8, 0, 0), Timeout::ZERO)?;
        // Its block and its page tables: the task's own frames, the thread, four tables.
        Ok(if sys::task_info(child.0)?.used == empty + 5 { Done } else { Denied })
    };
    check_eq!(at_every_allocation(prepare, |(child, _)| only(child), attempt)?, 4);
    Ok(())
}

/// An agent that has run, in a task of its own.
fn agent() -> Outcome<(Child, Agent)> {
    let child = Child::with_quota(128)?;
    let mut agent = child.agent()?;
    agent.attempt(suite_nothing, 0, 0)?;
    Ok((child, agent))
}

fn its_task<T>((child, _): &(Child, T)) -> Vec<TaskId> {
    only(child)
}

fn whole(got: &Frame) -> Outcome<Said> {
    check_eq!(got.kind(), Some(Kind::Reply));
    Ok(if got.rax as u32 & ITEM_WHOLE == 0 { Denied } else { Done })
}

pub fn items() -> Outcome {
    let port = Fpage::ports(device::PROGRESS, 0);
    let line = Fpage::interrupt(device::CLOCK_LINE);
    device::get(port)?;
    device::get(line)?;
    map::fill_all(0..128, 7);
    let pages = |log2| Fpage::memory(map::page(0), log2, Rights::RW);
    let cases = [
        // Tables; the agent's first slab of nodes is there already.
        (pages(12), Fpage::WHOLE, 4),
        (pages(19), Fpage::WHOLE, 6),
        (port, Fpage::ports(0, 16), 4),
        (line, Fpage::interrupts(), 1),
    ];
    for (item, window, least) in cases {
        let take = |(_, agent): &mut (Child, Agent)| whole(&agent.take((item, map::WINDOW), window)?);
        let needed = at_every_allocation(agent, its_task, take)?;
        check!(needed >= least, "{item:?} needs {needed} frames");
        sys::flush(item)?;
    }
    Ok(())
}

/// What cannot be paid for stays with the one who grants it.
pub fn grants() -> Outcome {
    const FROM: u64 = map::WINDOW;
    map::fill_all(0..16, 9);
    let prepare = || {
        let (giver, taker) = (agent()?, agent()?);
        let (near, mut giver) = giver;
        let item = Fpage::memory(map::page(0), 16, Rights::RW);
        giver.take((item, FROM), Fpage::WHOLE)?;
        Ok(((near, giver), taker))
    };
    let attempt = |((_, giver), (_, taker)): &mut ((Child, Agent), (Child, Agent))| {
        let granted = Fpage::memory(FROM, 16, Rights::RW.or(Rights::GRANT));
        taker.block(Frame::receive(giver.uid, Timeout::NEVER).window(Fpage::WHOLE))?;
        check_eq!(giver.run(Frame::send(taker.uid, Timeout::ZERO).item(granted, 0x85_0000_0000))?.rax, 0);
        let said = whole(&taker.wait()?)?;
        for i in 0..16 {
            let place = i * PAGE_SIZE;
            let (old, new) = (giver.peek(FROM + place)?, taker.peek(0x85_0000_0000 + place)?);
            check!(old.is_some() != new.is_some(), "page {i} is with both, or lost");
            check!(said == Denied || new.is_some(), "page {i} has not arrived");
        }
        Ok(said)
    };
    let payers = |(giver, taker): &((Child, Agent), (Child, Agent))| Vec::from([giver.0.0, taker.0.0]);
    check_eq!(at_every_allocation(prepare, payers, attempt)?, 4);
    sys::flush(Fpage::memory(map::page(0), 16, Rights::RWX))?;
    Ok(())
}

fn caught(attempted: Attempted, vector: u64) -> Outcome<Said> {
    check!(attempted.is_fine() || attempted.vector() == Some(vector), "{attempted:x?}");
    Ok(if attempted.is_fine() { Done } else { Denied })
}

/// A fault that cannot be resolved is an exception; the next one at the same place can be.
pub fn page_faults() -> Outcome {
    let attempt = |(_, agent): &mut (Child, Agent)| {
        caught(agent.attempt(suite_load, map::page(1000), 0)?, vector::UNRESOLVED_FAULT)
    };
    let needed = at_every_allocation(agent, its_task, attempt)?;
    check!(needed >= 2, "a table and its shadow: {needed}");
    Ok(())
}

pub fn port_faults() -> Outcome {
    let port = Fpage::ports(device::PROGRESS, 0);
    device::get(port)?;
    let prepare = || {
        let (mut pager, driver) = (agent()?, agent()?);
        pager.1.take((port, 0), Fpage::ports(0, 16))?;
        Ok((pager, driver))
    };
    let attempt = |((_, pager), (_, driver)): &mut ((Child, Agent), (Child, Agent))| {
        sys::thread_set_pager(driver.uid, pager.uid, crate::kit::pager::uid())?;
        pager.block(Frame::receive(Uid::ANY, Timeout::NEVER))?;
        driver.start_attempt(suite_in, device::PROGRESS.into(), 0);
        let got = pager.wait()?;
        check_eq!(got.words()[0], port.with_rights(Rights::R).0 | PORT_FAULT);
        check_eq!(pager.run(Frame::send(driver.uid, Timeout::ZERO).item(port, 0))?.rax, 0);
        let said = caught(driver.attempted()?, vector::PROTECTION);
        sys::thread_set_pager(driver.uid, crate::kit::pager::uid(), crate::kit::pager::uid())?;
        said
    };
    let payers = |(_, driver): &((Child, Agent), (Child, Agent))| only(&driver.0);
    let needed = at_every_allocation(prepare, payers, attempt)?;
    check!(needed >= 4, "two tables, two halves of the bitmap: {needed}");
    sys::flush(port)?;
    Ok(())
}

/// Buffers of both sides come in while the message is copied; what cannot be paid for breaks it off for both.
pub fn long_messages() -> Outcome {
    let (used, room) = (Dope::used(600, 2, 0), Dope::room(700, 2, 0));
    long::prepare(77);
    let parts = [(5, 4000, 100_003, 100_003), (900_000, 600_001, 4097, 8192)];
    long::describe(used, room, parts);
    let prepare = || long::pair(room);
    let attempt = |(_, sender, _, receiver): &mut (Child, Agent, Child, Agent)| {
        sender.start(long::long_call(receiver.uid, used));
        receiver.settle()?;
        let got = receiver.wait()?;
        if got.kind() == Some(Kind::Request) {
            for (at, there, len, _) in parts {
                check!(long::arrived(at, there, len as usize), "{len} bytes differ");
            }
            check!(sender.settle()?);
            sys::thread_abort(sender.uid)?;
            sender.wait()?;
            receiver.block(long::open())?;
            return Ok(Done);
        }
        check_eq!((got.error(), sender.wait()?.error()), (Some(Error::NoAccess), Some(Error::NoAccess)));
        receiver.block(long::open())?;
        Ok(Denied)
    };
    let payers = |(near, _, far, _): &(Child, Agent, Child, Agent)| Vec::from([near.0, far.0]);
    let needed = at_every_allocation(prepare, payers, attempt)?;
    check!(needed >= 2, "both sides need nodes or tables: {needed}");
    Ok(())
}

static mut STATE: ThreadState = ThreadState::ZERO;

/// All other calls succeed with everything denied.
pub fn other_calls_need_no_memory() -> Outcome {
    let (child, mut caller) = agent()?;
    let mut other = child.agent()?;
    other.attempt(suite_nothing, 0, 0)?;
    let line = Fpage::interrupt(device::CLOCK_LINE);
    device::get(line)?;
    caller.take((line, 0), Fpage::interrupts())?;
    let denied = [Error::Denied as u64, 0];
    let paid_for = [thread_op::CREATE, thread_op::SET_BLOCK];
    // The caller has the page that the state is written to, and read from afterwards.
    let state = &raw mut STATE as u64;
    check!(caller.attempt(suite_store, state, 0)?.is_fine());
    let mut calls = Vec::new();
    for operation in (0..thread_op::COUNT).filter(|operation| !paid_for.contains(operation)) {
        let eax = Call::ThreadControl as u32 | operation << 8;
        let name = other.uid.0;
        let (arguments, expected) = match operation {
            thread_op::TRACE | thread_op::READ_TRACE => ([name, 0, 0, 0, 0, 0], denied[0]),
            // The line has a pin.
            thread_op::INTERRUPT_MESSAGE => {
                ([Uid::interrupt(device::CLOCK_LINE).0, 0, 0, 0, 0, 0], Error::NoSuch as u64)
            }
            // There is no call.
            thread_op::FOREIGN_RETURN => ([name, 0, 0, 0, 0, 0], Error::BadState as u64),
            thread_op::NEXT | thread_op::SET_WINDOW => ([0; 6], 0),
            thread_op::BREAKPOINT => ([name, 1, 0x1000, BREAK_WRITE, 8, 0], 0),
            thread_op::SET_PAGER => {
                let pager = crate::kit::pager::uid().0;
                ([name, pager, pager, 0, 0, 0], 0)
            }
            thread_op::SET_PRIORITY => ([name, crate::kit::pager::priority().into(), 0, 0, 0, 0], 0),
            thread_op::GET_STATE | thread_op::SET_STATE => {
                ([name, state, ThreadState::LEN_BYTES, 0, 0, 0], 0)
            }
            // Ended last, below.
            thread_op::DESTROY => continue,
            _ => ([name, 0, 0, 0, 0, 0], 0),
        };
        calls.push((eax, arguments, expected));
    }
    calls.sort_by_key(|(eax, ..)| order(*eax));
    calls.push((Call::ThreadControl as u32 | thread_op::DESTROY << 8, [other.uid.0, 0, 0, 0, 0, 0], 0));
    for operation in [task_op::INFO, task_op::NEXT, task_op::SELF] {
        calls.push((Call::TaskControl as u32 | operation << 8, [0; 6], 0));
    }
    let page = Fpage::memory(map::WINDOW, 20, Rights::RWX);
    calls.push((Call::Flush as u32, [page.0, 1, 0, 0, 0, 0], 0));
    calls.push((Call::Flush as u32, [line.0, 1, 0, 0, 0, 0], 0));
    calls.push((Call::ThreadSwitch as u32, [0; 6], 0));
    calls.push((Call::Clock as u32, [0; 6], 0));
    other.block(Frame::receive(Uid::ANY, Timeout::NEVER))?;
    sys::task_exhaust(child.0, 1, u64::MAX)?;
    let attach = caller.run(Frame::receive(Uid::interrupt(device::CLOCK_LINE), Timeout::from_us(50)))?;
    let mut results = Vec::new();
    for (eax, arguments, expected) in calls {
        results.push((eax, caller.control(eax, arguments)?.0, expected));
    }
    // A task made and ended by one that gets no memory: what the new one needs is in its quota.
    let (made, [grandchild, ..]) = caller.control(Call::TaskControl as u32, [4, 1, 0, 0, 0, 0])?;
    let set = Call::TaskControl as u32 | task_op::SET_QUOTA << 8;
    let end = Call::TaskControl as u32 | task_op::DESTROY << 8;
    results.push((set, caller.control(set, [grandchild, 3, 0, 0, 0, 0])?.0, 0));
    results.push((end, caller.control(end, [grandchild, 0, 0, 0, 0, 0])?.0, 0));
    let left = sys::task_exhaust(child.0, 0, 0)?;
    check_eq!((made, attach.error()), (0, Some(Error::ReceiveTimeout)));
    for (eax, rax, expected) in results {
        check!(rax == expected, "call {eax:x}: {rax}");
    }
    check_eq!(left, [1, u64::MAX]);
    Ok(())
}

/// The thread waits at first; then it is stopped, and looked at, and started.
fn order(eax: u32) -> u32 {
    match eax >> 8 & 0xff {
        thread_op::STOP => 0,
        thread_op::ABORT => 1,
        thread_op::GET_REGISTERS | thread_op::SET_REGISTERS | thread_op::GET_STATE => 2,
        thread_op::SET_STATE => 3,
        thread_op::START => 9,
        thread_op::RESUME => 10,
        _ => 5,
    }
}
