//! Tasks, threads and the kernel memory they may use: all of it comes back, and nobody takes another's.

use crate::kit::{Agent, Child, Frame, Outcome, WORDS, fails, pager, progress};
use crate::{check, check_eq};
use core::sync::atomic::{AtomicU64, Ordering};
use sys::abi::call::{Call, task_op, thread_op};
use sys::{Error, TaskId, Timeout, Uid};

fn thread_call(op: u32) -> u32 {
    Call::ThreadControl as u32 | op << 8
}

fn task_call(op: u32) -> u32 {
    Call::TaskControl as u32 | op << 8
}

/// Frames that this program's task uses and may use.
fn own() -> Outcome<(u64, u64)> {
    let info = sys::task_info(TaskId::NIL)?;
    Ok((info.used, info.quota))
}

pub fn everything_comes_back() -> Outcome {
    // Once before, so that this program's own tables are there, and its slabs are as full as they stay.
    families_come_and_go()?;
    let before = own()?;
    families_come_and_go()?;
    check_eq!(own()?, before);
    Ok(())
}

fn families_come_and_go() -> Outcome {
    for _ in 0..10 {
        let child = Child::with_quota(64)?;
        let mut agents = [child.agent()?, child.agent()?];
        agents[0].peek(0)?;
        agents[1].block(Frame::call(pager::uid(), 0, WORDS))?;
        let (rax, [grandchild, ..]) = agents[0].control(task_call(task_op::CREATE), [16, 0, 0, 0, 0, 0])?;
        check_eq!(rax, 0);
        for _ in 0..3 {
            let (rax, _) = agents[0].control(thread_call(thread_op::CREATE), [grandchild, 0, 0, 0, 0, 0])?;
            check_eq!(rax, 0);
        }
        let info = sys::task_info(child.0)?;
        check!(info.used > 0 && info.used <= info.quota);
    }
    Ok(())
}

/// A quota is carved from the creator's, and moves back and forth.
pub fn quota_is_conserved() -> Outcome {
    // The first time this program's own pages come in, and are paid for.
    let _ = quota_moves();
    quota_moves()
}

fn quota_moves() -> Outcome {
    let (used, quota) = own()?;
    let child = Child::with_quota(20)?;
    check_eq!(sys::task_info(child.0)?.quota, 20);
    let held = |info: (u64, u64)| info.1 as i64 - info.0 as i64;
    let after = own()?;
    check!(held(after) <= held((used, quota)) - 20, "20 frames cost {}", held((used, quota)) - held(after));
    sys::task_set_quota(child.0, 50)?;
    check_eq!(held(own()?), held(after) - 30);
    sys::task_set_quota(child.0, 20)?;
    check_eq!(own()?, after);
    let agent = child.agent()?;
    // Not below what is used, not above what there is.
    check!(sys::task_set_quota(child.0, 0).is_err());
    fails(Call::TaskControl, sys::task_set_quota(child.0, 1 << 40), Error::NoMemory)?;
    fails(Call::TaskControl, sys::task_create(1 << 40, 0), Error::NoMemory)?;
    fails(Call::TaskControl, sys::task_create(u64::MAX, 0), Error::NoMemory)?;
    drop(agent);
    drop(child);
    check_eq!(own()?, (used, quota));
    Ok(())
}

/// Threads of a prediction domain get and give the messages that all others do, and answer faults; a task in use gets no domain.
pub fn domains_talk_as_others_do() -> Outcome {
    let (apart, common) = (Child::with_quota(64)?, Child::with_quota(64)?);
    sys::task_set_domain(apart.0)?;
    let (mut inside, mut outside) = (apart.agent()?, common.agent()?);
    fails(Call::TaskControl, sys::task_set_domain(apart.0), Error::BadState)?;
    for round in 0..20 {
        inside.start(Frame::receive(outside.uid, Timeout::NEVER));
        check!(inside.settle()?);
        let mut words = WORDS;
        words[0] = round;
        outside.start(Frame::call(inside.uid, 7, words));
        let got = inside.wait()?;
        check_eq!((got.received_label(), got.words()[0]), (7, round));
        inside.peek(0)?;
        inside.run(Frame::send(outside.uid, Timeout::NEVER))?;
        check_eq!(outside.wait()?.error(), None);
    }
    Ok(())
}

pub fn quota_limits_threads_and_tasks() -> Outcome {
    let child = Child::with_quota(16)?;
    let mut agent = child.agent()?;
    agent.peek(0)?;
    let mut threads = 0;
    let last = loop {
        let (rax, _) = agent.control(thread_call(thread_op::CREATE), [0; 6])?;
        if rax != 0 {
            break rax;
        }
        threads += 1;
        check!(threads < 64, "a quota of 16 frames paid for {threads} threads");
    };
    check_eq!(last, Error::NoMemory as u64);
    let (rax, _) = agent.control(task_call(task_op::CREATE), [4, 0, 0, 0, 0, 0])?;
    check_eq!(rax, Error::NoMemory as u64);
    fails(Call::ThreadControl, sys::thread_create(child.0, 0, Uid::NIL, Uid::NIL), Error::NoMemory)?;
    let info = sys::task_info(child.0)?;
    check!(info.used <= info.quota);
    Ok(())
}

/// What a victim can do, counted; the same whatever others do.
fn victim(agent: &mut Agent) -> Outcome<[u64; 6]> {
    let mut counts = [0; 6];
    for _ in 0..20 {
        let (rax, [thread, ..]) = agent.control(thread_call(thread_op::CREATE), [0; 6])?;
        counts[0] += (rax == 0) as u64;
        let (rax, _) = agent.control(thread_call(thread_op::DESTROY), [thread, 0, 0, 0, 0, 0])?;
        counts[1] += (rax == 0) as u64;
    }
    for _ in 0..5 {
        let (rax, [task, ..]) = agent.control(task_call(task_op::CREATE), [8, 0, 0, 0, 0, 0])?;
        counts[2] += (rax == 0) as u64;
        let (rax, _) = agent.control(task_call(task_op::DESTROY), [task, 0, 0, 0, 0, 0])?;
        counts[3] += (rax == 0) as u64;
    }
    counts[4] = agent.peek(super::map::WINDOW)?.is_some() as u64;
    let (_, [_, used, ..]) = agent.control(task_call(task_op::INFO), [0; 6])?;
    counts[5] = used;
    Ok(counts)
}

/// An attacker uses up all that it may; a victim's counts stay identical.
pub fn attacker_at_its_limit() -> Outcome {
    let (bad, good) = (Child::with_quota(48)?, Child::with_quota(48)?);
    let mut attacker = bad.agent()?;
    let mut agent = good.agent()?;
    agent.peek(0)?;
    attacker.peek(0)?;
    victim(&mut agent)?;
    let before = victim(&mut agent)?;
    for round in 0..3 {
        loop {
            let (rax, _) = attacker.control(thread_call(thread_op::CREATE), [0; 6])?;
            if rax != 0 {
                check_eq!(rax, Error::NoMemory as u64);
                break;
            }
        }
        check_eq!(victim(&mut agent)?, before);
        // Frames that come free go to it again, and to nobody else.
        let mut thread = Uid::NIL;
        for _ in 0..round + 1 {
            thread = sys::thread_next(bad.0, Uid::NIL)?;
            if thread == attacker.uid {
                thread = sys::thread_next(bad.0, thread)?;
            }
            sys::thread_destroy(thread)?;
        }
        check!(!thread.is_nil());
        check_eq!(victim(&mut agent)?, before);
    }
    Ok(())
}

pub fn ended_tasks_are_gone() -> Outcome {
    let child = Child::new()?;
    let agent = child.agent()?;
    let (task, thread) = (child.0, agent.uid);
    sys::task_destroy(task)?;
    fails(Call::TaskControl, sys::task_destroy(task), Error::NoSuch)?;
    fails(Call::TaskControl, sys::task_info(task), Error::NoSuch)?;
    fails(Call::ThreadControl, sys::thread_info(thread), Error::NoSuch)?;
    fails(Call::ThreadControl, sys::thread_create(task, 0, Uid::NIL, Uid::NIL), Error::NoSuch)?;
    let mut last = task;
    for _ in 0..100 {
        let next = Child::new()?;
        check!(next.0 != task && next.0 != last, "a task identifier was used twice");
        last = next.0;
    }
    fails(Call::TaskControl, sys::task_info(task), Error::NoSuch)
}

pub fn generations_grow() -> Outcome {
    let mut last = sys::thread_create(TaskId::NIL, 0, Uid::NIL, Uid::NIL)?;
    sys::thread_destroy(last)?;
    let mut reused = 0;
    for _ in 0..200 {
        let next = sys::thread_create(TaskId::NIL, 0, Uid::NIL, Uid::NIL)?;
        check!(next != last);
        if next.slot() == last.slot() {
            reused += 1;
            check!(next.generation() > last.generation());
        }
        sys::thread_destroy(next)?;
        last = next;
    }
    check!(reused > 0, "no slot was used again");
    Ok(())
}

/// A whole family of tasks ends with its head.
pub fn families_end_together() -> Outcome {
    let before = own()?;
    let child = Child::with_quota(128)?;
    let mut agent = child.agent()?;
    let (rax, [below, ..]) =
        agent.control(task_call(task_op::CREATE), [64, pager::priority() as u64, 0, 0, 0, 0])?;
    check_eq!(rax, 0);
    // A thread of the grandchild that waits, and one that runs on its own.
    for _ in 0..2 {
        let pager = pager::uid().0;
        let (rax, [thread, ..]) =
            agent.control(thread_call(thread_op::CREATE), [below, 0, pager, pager, 0, 0])?;
        check_eq!(rax, 0);
        let ip = spin as *const () as usize as u64;
        let (rax, _) = agent.control(thread_call(thread_op::START), [thread, ip, 0, 0, 0, 0])?;
        check_eq!(rax, 0);
    }
    let outside = Child::new()?;
    let mut waiter = outside.agent()?;
    let (_, [thread, ..]) = agent.control(thread_call(thread_op::NEXT), [0, below, 0, 0, 0, 0])?;
    waiter.block(Frame::receive(Uid(thread), Timeout::NEVER))?;
    sys::task_destroy(child.0)?;
    check_eq!(waiter.wait()?.error(), Some(Error::PartnerDied));
    fails(Call::TaskControl, sys::task_info(TaskId(below)), Error::NoSuch)?;
    drop((agent, child, waiter, outside));
    check_eq!(own()?, before);
    Ok(())
}

extern "C" fn spin(_: u64, _: u64) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// What the last one to be refused a new task for good was told.
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// How often one was refused for want of memory.
static IS_LARGE: AtomicU64 = AtomicU64::new(0);

/// Makes tasks until memory runs out, and from then on each in the place of another one.
extern "C" fn grow(_: u64) -> u64 {
    let _ = sys::task_create(8, 0);
    // The first one can never be paid for. So all pages of this loop are there before memory runs out: nobody could answer a page fault
    // afterwards.
    let mut quota = 1 << 30;
    loop {
        let error = match sys::task_create(core::mem::replace(&mut quota, 8), 0) {
            Ok(_) => continue,
            Err(Error::NoMemory) => {
                IS_LARGE.fetch_add(1, Ordering::Relaxed);
                sys::task_next(TaskId::NIL).and_then(sys::task_destroy).err()
            }
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            REFUSED.store(error as u64, Ordering::Relaxed);
            let _ = sys::receive(sys::myself(), Timeout::NEVER);
        }
        let _ = sys::sleep_us(20);
    }
}

/// A task makes tasks as fast as it can, at a higher priority than whoever ends it. It is told that there is nothing to be had any
/// more, and the end comes.
pub fn families_that_grow_end() -> Outcome {
    // Whether it runs in the middle of its end is up to the clock. The end takes so long that it nearly always does.
    for _ in 0..20 {
        progress();
        REFUSED.store(0, Ordering::Relaxed);
        IS_LARGE.store(0, Ordering::Relaxed);
        let urgent = pager::priority() + 1;
        let (used, quota) = own()?;
        let child = Child(sys::task_create((quota - used) / 2, urgent)?);
        let mut agent = Agent::create(child.0, urgent)?;
        agent.start_apply(grow, 0);
        agent.begin()?;
        while IS_LARGE.load(Ordering::Relaxed) < 2 {
            sys::sleep_us(1000)?;
        }
        sys::task_destroy(child.0)?;
        match REFUSED.load(Ordering::Relaxed) {
            0 => {}
            error => {
                check_eq!(error, Error::NoSuch as u64);
                return Ok(());
            }
        }
    }
    // The clock never let it run in the middle. That it is refused all then, the tests on the host see at each step.
    Ok(())
}

/// A thread that ends itself, and a task whose last thread does.
pub fn threads_end_themselves() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    agent.start(Frame::control(thread_call(thread_op::DESTROY), [0; 6]));
    for _ in 0..1000 {
        if agent.info().is_err() {
            break;
        }
        sys::thread_switch(Uid::NIL)?;
    }
    fails(Call::ThreadControl, agent.info(), Error::NoSuch)?;
    check_eq!(sys::task_info(child.0)?.threads, 0);
    let mut second = child.agent()?;
    second.start(Frame::control(task_call(task_op::DESTROY), [0; 6]));
    for _ in 0..1000 {
        if second.is_done() || second.info().is_err() {
            break;
        }
        sys::thread_switch(Uid::NIL)?;
    }
    // Ending one's own task is the chief's affair, or ends it.
    if second.is_done() {
        let error = second.wait()?.rax;
        check!(error == Error::Denied as u64 || error == Error::NoSuch as u64, "{error}");
    }
    Ok(())
}

/// Kernel memory runs out by order only where boot allows it, and then only for those whom one controls.
pub fn who_may_exhaust() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let mut agent = near.agent()?;
    let expected = if super::exhaust::is_allowed() { 0 } else { Error::Denied as u64 };
    let exhaust = task_call(task_op::EXHAUST);
    check_eq!(agent.control(exhaust, [0; 6])?.0, expected);
    check_eq!(agent.control(exhaust, [far.0.0, 1, 1, 0, 0, 0])?.0, Error::Denied as u64);
    check_eq!(agent.control(exhaust, [near.0.0, 1, 1, 0, 0, 0])?.0, Error::Denied as u64);
    check_eq!(sys::task_exhaust(far.0, 0, 0).is_ok(), super::exhaust::is_allowed());
    Ok(())
}
