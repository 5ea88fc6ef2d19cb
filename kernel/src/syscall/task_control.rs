//! `task_control`: make, watch, pay for and end tasks.

use crate::args::{Args, done};
use crate::kernel::Kernel;
use crate::life::task::{end_task, new_task, task_frames};
use crate::object::{TaskRef, ThreadRef};
use crate::sched::Next;
use crate::{arch, param};
use abi::call::{PRIORITIES, task_op as op};
use abi::{Error, TaskId};

/// The table of sub-operations.
pub fn task_control(k: &Kernel, current: ThreadRef, operation: u32) -> Next {
    let args = Args(&current.frame);
    let result = match operation {
        op::CREATE => create(k, current, &args),
        op::DESTROY => match child(k, current, &args) {
            Ok(task) => {
                task.set_dying();
                let id = task.id.get();
                return end_task(k, current, id, id);
            }
            Err(error) => Err(error),
        },
        op::INFO => info(k, current, &args),
        op::SET_QUOTA => {
            lasting_child(k, current, &args).and_then(|task| set_quota(current.task(), task, args.second()))
        }
        op::NEXT => next(k, current, &args),
        op::EXHAUST => exhaust(k, current, &args),
        op::SET_DOMAIN => lasting_child(k, current, &args).and_then(|task| set_domain(task, &args)),
        op::SELF => {
            let task = current.task().id.get();
            args.give([current.uid().0, task.0, current.fault.pager.get().0, current.fault.handler.get().0]);
            Ok(())
        }
        _ => Err(Error::BadArgument),
    };
    done(current, result)
}

/// The task that the arguments name, if the current thread's task created it.
fn child(k: &Kernel, current: ThreadRef, args: &Args) -> Result<TaskRef, Error> {
    if args.first() == 0 {
        return Err(Error::Denied);
    }
    let task = k.task(TaskId(args.first())).ok_or(Error::NoSuch)?;
    if current.task().is_chief_of(task) { Ok(task) } else { Err(Error::Denied) }
}

/// A child that is not being ended.
fn lasting_child(k: &Kernel, current: ThreadRef, args: &Args) -> Result<TaskRef, Error> {
    let task = child(k, current, args)?;
    if task.is_ending() { Err(Error::NoSuch) } else { Ok(task) }
}

fn create(k: &Kernel, current: ThreadRef, args: &Args) -> Result<(), Error> {
    let chief = current.task();
    if chief.is_ending() {
        return Err(Error::NoSuch);
    }
    let (quota, priority) = (args.first(), args.second());
    if priority >= PRIORITIES as u64 || priority as u8 > chief.priority_max.get() {
        return Err(Error::BadArgument);
    }
    if quota < task_frames() as u64 || quota > (chief.quota.get() - chief.used.get()) as u64 {
        return Err(Error::NoMemory);
    }
    if chief.depth.get() >= param::CLAN_DEPTH_MAX {
        return Err(Error::Limit);
    }
    let task = new_task(k, Some(chief), quota as u32, priority as u8).ok_or(Error::NoMemory)?;
    task.supervisor.set(current.uid());
    args.give([task.id.get().0]);
    Ok(())
}

fn info(k: &Kernel, current: ThreadRef, args: &Args) -> Result<(), Error> {
    let task = match TaskId(args.first()) {
        TaskId::NIL => current.task(),
        id if current.task().id.get() == id => current.task(),
        _ => child(k, current, args)?,
    };
    args.give([
        task.quota.get() as u64,
        task.used.get() as u64,
        task.pages.get() as u64,
        task.thread_count.get() as u64,
        task.faults.get() as u64,
        task.priority_max.get() as u64,
    ]);
    Ok(())
}

fn set_quota(chief: TaskRef, task: TaskRef, quota: u64) -> Result<(), Error> {
    let old = task.quota.get() as u64;
    let available = (chief.quota.get() - chief.used.get()) as u64;
    if quota < task.used.get() as u64 || quota > old + available {
        return Err(Error::NoMemory);
    }
    chief.used.set((chief.used.get() as u64 + quota - old) as u32);
    task.quota.set(quota as u32);
    Ok(())
}

/// Puts a task that is empty yet into a prediction domain of its own. Its threads, of which there is none to be told, are off the fast path.
fn set_domain(task: TaskRef, args: &Args) -> Result<(), Error> {
    if task.threads.first().is_some() || task.child.get().is_some() {
        return Err(Error::BadState);
    }
    task.domain.set(task.id.get());
    args.give([arch::forgets_predictions() as u64]);
    Ok(())
}

fn exhaust(k: &Kernel, current: ThreadRef, args: &Args) -> Result<(), Error> {
    if !k.may_exhaust.get() {
        return Err(Error::Denied);
    }
    let task = if args.first() == 0 { current.task() } else { child(k, current, args)? };
    let (first, count) = (args.second(), args.third());
    task.set_counted(first != 0);
    args.give(k.pool.deny(first, count));
    Ok(())
}

fn next(k: &Kernel, current: ThreadRef, args: &Args) -> Result<(), Error> {
    let next = if args.first() == 0 {
        current.task().child.get()
    } else {
        child(k, current, args)?.sibling_next.get()
    };
    args.give([next.map_or(0, |task| task.id.get().0)]);
    Ok(())
}
