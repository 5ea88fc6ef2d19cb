//! Who may do what to whom: a task controls its threads, a chief the tasks it created, and nobody else anybody.

use crate::kit::{Agent, Child, Frame, Outcome, fails, pager};
use crate::{check, check_eq};
use sys::abi::call::{Call, PRIORITIES, task_op, thread_op};
use sys::{Error, TaskId, Uid, thread_state};

fn thread_call(op: u32) -> u32 {
    Call::ThreadControl as u32 | op << 8
}

fn task_call(op: u32) -> u32 {
    Call::TaskControl as u32 | op << 8
}

/// Tries every operation on a thread and expects to be refused.
fn thread_is_out_of_reach(agent: &mut Agent, victim: Uid) -> Outcome {
    for op in [
        thread_op::START,
        thread_op::DESTROY,
        thread_op::SET_PAGER,
        thread_op::SET_PRIORITY,
        thread_op::STOP,
        thread_op::RESUME,
        thread_op::ABORT,
        thread_op::SET_FS,
        thread_op::DENY_NATIVE,
        thread_op::SET_WINDOW,
        thread_op::SET_BLOCK,
    ] {
        let arguments = match op {
            thread_op::DENY_NATIVE => [victim.0, 1, 0, 0, 0, 0],
            _ => [victim.0, 0, 0, 0, 0, 0],
        };
        let (rax, _) = agent.control(thread_call(op), arguments)?;
        check!(rax == Error::Denied as u64, "thread operation {op} on {victim:?}: {rax}");
    }
    Ok(())
}

fn task_is_out_of_reach(agent: &mut Agent, victim: TaskId) -> Outcome {
    for op in [task_op::DESTROY, task_op::SET_QUOTA] {
        let (rax, _) = agent.control(task_call(op), [victim.0, 1, 0, 0, 0, 0])?;
        check!(rax == Error::Denied as u64, "task operation {op} on {victim:?}: {rax}");
    }
    let (rax, _) = agent.control(thread_call(thread_op::CREATE), [victim.0, 0, 0, 0, 0, 0])?;
    check!(rax == Error::Denied as u64, "a thread in {victim:?}: {rax}");
    Ok(())
}

pub fn siblings_and_chiefs_are_out_of_reach() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let mut agent = near.agent()?;
    let sibling = far.agent()?;
    let me = sys::identity();
    for victim in [sibling.uid, me.uid, pager::uid(), me.pager, me.handler] {
        thread_is_out_of_reach(&mut agent, victim)?;
    }
    for victim in [far.0, me.task] {
        task_is_out_of_reach(&mut agent, victim)?;
    }
    // Not even of its own task may it change the limits, which are its chief's to set.
    let (rax, _) = agent.control(task_call(task_op::SET_QUOTA), [near.0.0, 1000, 0, 0, 0, 0])?;
    check_eq!(rax, Error::Denied as u64);
    let (rax, _) = agent.control(task_call(task_op::SET_QUOTA), [0, 1000, 0, 0, 0, 0])?;
    check!(rax == Error::Denied as u64 || rax == Error::NoSuch as u64, "{rax}");
    check_eq!(sibling.info()?.state, thread_state::READY);
    Ok(())
}

/// The first tasks of the system, found by their slots, are as far away as any other.
pub fn first_tasks_are_out_of_reach() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let mut tried = 0;
    for clan in 0..4 {
        for slot in 0..24 {
            for generation in 0..3 {
                let uid = Uid::thread(slot, generation, clan);
                if uid.is_nil() {
                    continue; // The agent itself.
                }
                let (rax, _) = agent.control(thread_call(thread_op::STOP), [uid.0, 0, 0, 0, 0, 0])?;
                check!(rax == Error::Denied as u64 || rax == Error::NoSuch as u64, "{uid:?}: {rax}");
                tried += (rax == Error::Denied as u64) as u64;
            }
        }
    }
    let mut tasks = 0;
    for number in 0..16 {
        for generation in 0..3 {
            let task = TaskId::new(number, generation);
            let (rax, _) = agent.control(task_call(task_op::DESTROY), [task.0, 0, 0, 0, 0, 0])?;
            check!(rax == Error::Denied as u64 || rax == Error::NoSuch as u64, "{task:?}: {rax}");
            tasks += (rax == Error::Denied as u64) as u64;
        }
    }
    check!(tried >= 3 && tasks >= 2, "only {tried} threads and {tasks} tasks were found");
    Ok(())
}

/// A chief controls its children, but not its grandchildren.
pub fn grandchildren_belong_to_their_chief() -> Outcome {
    let child = Child::with_quota(64)?;
    let mut agent = child.agent()?;
    let (rax, [task, ..]) = agent.control(task_call(task_op::CREATE), [16, 0, 0, 0, 0, 0])?;
    check_eq!(rax, 0);
    let (rax, [thread, ..]) = agent.control(thread_call(thread_op::CREATE), [task, 0, 0, 0, 0, 0])?;
    check_eq!(rax, 0);
    fails(Call::ThreadControl, sys::thread_destroy(Uid(thread)), Error::Denied)?;
    fails(Call::ThreadControl, sys::thread_abort(Uid(thread)), Error::Denied)?;
    fails(Call::TaskControl, sys::task_destroy(TaskId(task)), Error::Denied)?;
    fails(Call::TaskControl, sys::task_set_quota(TaskId(task), 20), Error::Denied)?;
    // A uid shows whose clan it is.
    check_eq!(Uid(thread).clan(), child.0.number());
    check_eq!(agent.uid.clan(), sys::identity().task.number());
    // The chief may, and so may the end of the chief.
    let (rax, _) = agent.control(task_call(task_op::DESTROY), [task, 0, 0, 0, 0, 0])?;
    check_eq!(rax, 0);
    fails(Call::ThreadControl, sys::thread_info(Uid(thread)), Error::NoSuch)
}

pub fn priorities_have_a_limit() -> Outcome {
    // The limit is this thread's own priority: below it the agent would not run while this thread watches it.
    let limit = pager::priority();
    let above = limit as u64 + 1;
    let child = Child(sys::task_create(16, limit)?);
    check_eq!(sys::task_info(child.0)?.priority_max, limit);
    let mut agent = child.agent()?;
    let me = agent.uid.0;
    let (rax, _) = agent.control(thread_call(thread_op::SET_PRIORITY), [me, above, 0, 0, 0, 0])?;
    check!(rax == Error::Denied as u64 || rax == Error::BadArgument as u64, "{rax}");
    let (rax, _) = agent.control(thread_call(thread_op::CREATE), [0, above, 0, 0, 0, 0])?;
    check!(rax == Error::Denied as u64 || rax == Error::BadArgument as u64, "{rax}");
    let (rax, _) = agent.control(task_call(task_op::CREATE), [4, above, 0, 0, 0, 0])?;
    check!(rax == Error::Denied as u64 || rax == Error::BadArgument as u64, "{rax}");
    check_eq!(agent.info()?.priority, limit);
    sys::thread_set_priority(agent.uid, limit - 1, 0)?;
    check_eq!(agent.info()?.priority, limit - 1);
    sys::thread_set_priority(agent.uid, limit, 0)?;
    fails(
        Call::ThreadControl,
        sys::thread_create(TaskId::NIL, PRIORITIES as u8, Uid::NIL, Uid::NIL),
        Error::BadArgument,
    )?;
    fails(Call::TaskControl, sys::task_create(4, PRIORITIES as u8), Error::BadArgument)
}

pub fn bad_arguments_of_control() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    for op in [thread_op::COUNT, thread_op::COUNT + 1, 99, 255] {
        let (rax, _) = agent.control(thread_call(op), [0; 6])?;
        check_eq!(rax, Error::BadArgument as u64);
    }
    for op in [task_op::COUNT, 99, 255] {
        let (rax, _) = agent.control(task_call(op), [0; 6])?;
        check_eq!(rax, Error::BadArgument as u64);
    }
    // Where user code can never run, or its data be.
    let thread = sys::thread_create(child.0, 0, pager::uid(), pager::uid())?;
    for place in [0xffff_8000_0000_0000, 0x8000_0000_0000, u64::MAX, 0x7fff_ffff_f000 + 0x1000] {
        // SAFETY: nothing starts.
        let started = unsafe { sys::thread_start(thread, place, 0, 0) };
        fails(Call::ThreadControl, started, Error::BadArgument)?;
        fails(Call::ThreadControl, sys::thread_set_fs(thread, place), Error::BadArgument)?;
    }
    for (priority, slice_us) in [(64, 0), (256, 0), (u64::MAX, 0), (0, 1), (0, u64::MAX)] {
        let set = thread_call(thread_op::SET_PRIORITY);
        let (rax, _) = agent.control(set, [agent.uid.0, priority, slice_us, 0, 0, 0])?;
        check!(rax == Error::BadArgument as u64, "priority {priority}, slice {slice_us} us: {rax}");
    }
    sys::thread_destroy(thread)?;
    // Things that do not exist.
    fails(Call::TaskControl, sys::task_destroy(TaskId::new(9999, 7)), Error::NoSuch)?;
    fails(Call::TaskControl, sys::task_info(TaskId(0x1234_5678)), Error::NoSuch)?;
    fails(Call::TaskControl, sys::task_next(TaskId(u64::MAX)), Error::NoSuch)?;
    fails(Call::ThreadControl, sys::thread_create(TaskId(77), 0, Uid::NIL, Uid::NIL), Error::NoSuch)?;
    fails(Call::ThreadControl, sys::thread_info(Uid::ANY), Error::NoSuch)?;
    fails(Call::ThreadSwitch, sys::thread_switch(Uid(0x7777_0000)), Error::NoSuch)
}

pub fn states_forbid() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    agent.apply(nothing, 0)?;
    // SAFETY: it fails.
    fails(Call::ThreadControl, unsafe { sys::thread_start(agent.uid, 0x1000, 0, 0) }, Error::BadState)?;
    check_eq!(agent.apply(nothing, 3)?, 3);
    // A thread that never started.
    let idle = sys::thread_create(child.0, 0, pager::uid(), pager::uid())?;
    check_eq!(sys::thread_info(idle)?.state, thread_state::INACTIVE);
    let got = agent.run(Frame::send(idle, sys::Timeout::ZERO))?;
    check_eq!(got.error(), Some(Error::SendTimeout));
    sys::thread_destroy(idle)?;
    Ok(())
}

extern "C" fn nothing(argument: u64) -> u64 {
    argument
}

/// Lists of tasks and threads are complete.
pub fn enumeration() -> Outcome {
    let children = [Child::new()?, Child::new()?];
    let agents = [children[0].agent()?, children[0].agent()?, children[1].agent()?];
    let mut found = 0;
    let mut task = TaskId::NIL;
    for _ in 0..1000 {
        task = sys::task_next(task)?;
        if task.0 == 0 {
            break;
        }
        found += children.iter().filter(|child| child.0 == task).count();
    }
    check_eq!(found, 2);
    let (mut found, mut all) = (0, 0);
    let mut thread = Uid::NIL;
    for _ in 0..1000 {
        thread = sys::thread_next(children[0].0, thread)?;
        if thread.is_nil() {
            break;
        }
        all += 1;
        found += agents.iter().filter(|agent| agent.uid == thread).count();
    }
    check_eq!((found, all), (2, 2));
    check_eq!(sys::task_info(children[0].0)?.threads, 2);
    let own = sys::thread_next(TaskId::NIL, Uid::NIL)?;
    check!(!own.is_nil());
    check_eq!(agents[0].info()?.task, children[0].0);
    Ok(())
}

pub fn identity_is_true() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let (rax, [uid, task, pager, handler, ..]) =
        agent.control(task_call(task_op::SELF), [1, 2, 3, 4, 5, 6])?;
    check_eq!(rax, 0);
    check_eq!((Uid(uid), TaskId(task)), (agent.uid, child.0));
    check_eq!((Uid(pager), Uid(handler)), (pager::uid(), pager::uid()));
    Ok(())
}
