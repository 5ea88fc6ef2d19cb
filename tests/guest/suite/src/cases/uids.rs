//! Uids, which are used up for good: who makes threads without end pays for them, and nobody else.
//!
//! First of all tests, so that this program has been charged for what its tasks used up before others count its frames.

use crate::kit::{Agent, Child, Outcome, progress};
use crate::{check, check_eq};
use sys::abi::call::{Call, thread_op};
use sys::{TaskId, Uid};

fn call(op: u32) -> u32 {
    Call::ThreadControl as u32 | op << 8
}

/// Makes and ends a thread of the agent's task.
fn make_and_end(agent: &mut Agent) -> Outcome<Uid> {
    let (rax, [thread, ..]) = agent.control(call(thread_op::CREATE), [0; 6])?;
    check_eq!(rax, 0);
    let (rax, _) = agent.control(call(thread_op::DESTROY), [thread, 0, 0, 0, 0, 0])?;
    check_eq!(rax, 0);
    Ok(Uid(thread))
}

pub fn who_makes_many_threads_pays() -> Outcome {
    let (bad, good) = (Child::with_quota(48)?, Child::with_quota(48)?);
    let (mut attacker, mut victim) = (bad.agent()?, good.agent()?);
    make_and_end(&mut victim)?;
    let last = make_and_end(&mut attacker)?;
    let before =
        [sys::task_info(good.0)?.used, sys::task_info(bad.0)?.used, sys::task_info(TaskId::NIL)?.used];
    let mut slots = 1;
    let mut slot = last.slot();
    for made in 0..crate::uids_to_use_up() {
        let uid = make_and_end(&mut attacker)?;
        slots += (uid.slot() != slot) as u64;
        slot = uid.slot();
        if made % 1024 == 0 {
            progress();
        }
    }
    // A slot has 262,143 uids.
    check!(slots > crate::uids_to_use_up() >> 18);
    let after =
        [sys::task_info(good.0)?.used, sys::task_info(bad.0)?.used, sys::task_info(TaskId::NIL)?.used];
    check_eq!([after[0], after[2]], [before[0], before[2]]);
    check!(after[1] > before[1] && after[1] <= before[1] + 4, "{} frames became {}", before[1], after[1]);
    for _ in 0..100 {
        make_and_end(&mut victim)?;
    }
    check_eq!(sys::task_info(good.0)?.used, before[0]);
    Ok(())
}
