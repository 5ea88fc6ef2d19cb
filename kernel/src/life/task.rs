//! Beginning and end of tasks.
//!
//! A task ends after all tasks below it, the lowest first. It loses its threads, the callers of its doors, its four spaces, and its tables.

use super::thread::end_threads_step;
use crate::args::done;
use crate::kernel::Kernel;
use crate::mem::pool::Frame;
use crate::mem::space::{self, Flush};
use crate::mem::{doors, table};
use crate::object::task::Task;
use crate::object::thread::Operation;
use crate::object::{TaskRef, ThreadRef};
use crate::sched::Next;
use crate::{ipc, param, processor};
use abi::call::{DOORS_LOG2, DOORS_MAX, PRIORITIES};
use abi::{Fpage, Rights, TaskId};

/// Number of frames that a task needs for itself: its own, and its top-level tables.
pub fn task_frames() -> u32 {
    1 + processor::space::space_frames()
}

/// Makes a task with nothing in it. `chief`: none for the first one.
pub fn new_task(k: &Kernel, chief: Option<TaskRef>, quota: u32, priority_max: u8) -> Option<TaskRef> {
    let (number, generation) = k.task_slots.take(&k.pool, || k.take_reserved())?;
    let frame = k.pool.take_zeroed().expect("quotas never exceed the pool");
    if !k.set_task(number as u16, Some(frame)) {
        k.pool.give_back_zeroed(frame);
        k.task_slots.give_back(number);
        return None;
    }
    let task = TaskRef::at(&k.pool, frame);
    task.id.set(TaskId::new(number as u16, generation));
    task.quota.set(quota);
    task.priority_max.set(priority_max);
    task.used.set(1);
    task.uids.set(k.free_uids());
    let top = task.take_zeroed_frame(&k.pool).expect("the quota is large enough");
    task.top.set(top.0);
    if processor::space::space_frames() > 1 {
        let users = task.take_zeroed_frame(&k.pool).expect("the quota is large enough");
        task.user_space.set(users.0);
    }
    processor::space::init_space(k, task);
    if let Some(chief) = chief {
        task.depth.set(chief.depth.get() + 1);
        task.domain.set(chief.domain.get());
        chief.used.set(chief.used.get() + quota);
        chief.adopt(task);
    }
    Some(task)
}

/// Makes the first task.
pub fn boot_task(k: &Kernel) -> TaskRef {
    let quota = k.quota_total();
    new_task(k, None, quota, PRIORITIES as u8 - 1).expect("boot has memory for the first task")
}

/// Goes on with a task's end; the current thread is busy until it is over.
pub fn end_task(k: &Kernel, current: ThreadRef, victim: TaskId, at: TaskId) -> Next {
    let Some(root) = k.task(victim) else {
        current.operation.set(Operation::None);
        return done(current, Ok(()));
    };
    let mut task = k.task(at).unwrap_or(root);
    // Children first. Each step goes down one level, so that a long line of descent is no long step.
    if let Some(child) = task.child.get() {
        child.set_dying();
        task = child;
    } else if take_apart(k, task) {
        let chief = task.chief.get().expect("the first task has no chief that could end it");
        bury_task(k, task, chief);
        if task == root {
            current.operation.set(Operation::None);
            return done(current, Ok(()));
        }
        task = chief;
    }
    current.operation.set(Operation::EndTask { victim, at: task.id.get() });
    k.set_busy(current);
    Next::Same
}

/// Does one budget of work on the end of a task without children. True when only its frame and top table are left.
fn take_apart(k: &Kernel, task: TaskRef) -> bool {
    // Threads, callers and pages that go in one step share its budget.
    let mut budget = param::PREEMPTION_PAGES;
    if !end_threads_step(k, task, &mut budget) || !ipc::serve::close(k, task, &mut budget) {
        return false;
    }
    if task.cursor.get() < EVERYTHING_END {
        empty(k, task, budget);
        return false;
    }
    if doors::release_tables(k, task, param::PREEMPTION_PAGES as u32 / 4) {
        return false;
    }
    // Small tables are a step of their own. The others go together with their shadow tables, so a step takes half as many as pages.
    !space::release_small(k, task) && table::release(&k.pool, task, param::PREEMPTION_PAGES / 2)
}

/// Offsets of a task's four spaces, laid one behind the other for the cursor that walks through them.
const PORTS_AT: u64 = 1 << Fpage::WHOLE_LOG2;

const LINES_AT: u64 = PORTS_AT + (1 << 16);

const DOORS_AT: u64 = LINES_AT + (1 << 8);

const EVERYTHING_END: u64 = DOORS_AT + DOORS_MAX as u64;

/// Takes one budget of pages, ports, lines or identifiers from a task and from everyone who got them from it.
fn empty(k: &Kernel, task: TaskRef, mut budget: usize) {
    let cursor = task.cursor.get();
    let (page, start, end) = match cursor {
        0..PORTS_AT => (Fpage::WHOLE, 0, PORTS_AT),
        PORTS_AT..LINES_AT => (Fpage::ports(0, 16), PORTS_AT, LINES_AT),
        LINES_AT..DOORS_AT => (Fpage::interrupts(), LINES_AT, DOORS_AT),
        _ => (Fpage::doors(0, DOORS_LOG2, Rights::RW), DOORS_AT, EVERYTHING_END),
    };
    let mut at = cursor - start;
    // Large page that was dealt with: other pages may have taken its place.
    let mut status = task.flushing.get();
    let rest = space::flush(k, Flush { task, page, own: true }, &mut at, &mut status, &mut budget);
    task.flushing.set(if rest.is_ok() { 0 } else { status });
    // A space without tables is empty, and a step for each part of it would cost more than this look.
    let is_last = end == PORTS_AT && !space::has_small(task) && !doors::has_tables(task);
    task.cursor.set(match rest {
        Ok(()) if is_last => EVERYTHING_END,
        Ok(()) => end,
        Err(_) => start + at,
    });
}

/// Gives back what is left of a task, and its quota to its chief.
fn bury_task(k: &Kernel, task: TaskRef, chief: TaskRef) {
    task.disown();
    task.closed_slabs.release_last(&k.pool);
    let top = Frame(task.top.get());
    processor::space::end_space(k, task);
    if task.user_space.get() != 0 {
        let users = Frame(task.user_space.get());
        task.give_back_zeroed_frame(&k.pool, users);
    }
    task.give_back_zeroed_frame(&k.pool, top);
    assert_eq!(task.used.get(), 1 + task.worn.get(), "{task:?} leaks kernel memory");
    chief.used.set(chief.used.get() - task.quota.get());
    k.inherit_wear(chief, task);
    let number = task.id.get().number();
    let frame = k.task_frame(number);
    k.set_task(number, None);
    k.task_slots.give_back(number as u32);
    k.pool.give_back_cleared(frame, size_of::<Task>());
}
