//! What a debugger does to a thread of another task: registers, single steps, breakpoints. The debugger is the suite's main
//! thread, chief of the task and handler of the thread's exceptions.

use super::long;
use crate::kit::{Agent, Attempt, Attempted, Child, Frame, Outcome, WORDS, fails, pager};
use crate::{check, check_eq};
use core::time::Duration;
use sys::abi::Call;
use sys::abi::call::{
    BREAK_ACCESS, BREAK_EXECUTE, BREAK_OFF, BREAK_WRITE, REGISTERS, RESUME, RESUME_AS_IS, thread_op,
};
use sys::abi::{INFO_PAGE, USER_END};
use sys::{Dope, Error, Kind, Message, Timeout, Uid};

unsafe extern "C" {
    fn suite_spin();
    fn suite_spin_loop();
    fn suite_spin_end();
    fn suite_steps();
    fn suite_steps_end();
    fn suite_nothing();
    fn suite_store();
    fn suite_load();
}

/// The exception of steps and breakpoints.
const DEBUG: u64 = 1;
/// Its error code for a single step.
const STEPPED: u64 = 1 << 14;
/// RFLAGS: no breakpoint for one instruction.
const RESUME_FLAG: u64 = 1 << 16;

fn address(function: Attempt) -> u64 {
    function as *const () as usize as u64
}

/// Waits for the thread's next exception.
fn exception(thread: Uid) -> Outcome<Message> {
    let message = sys::receive(thread, Timeout::from_us(60_000_000))?;
    check_eq!(message.kind, Kind::Exception);
    Ok(message)
}

fn go_on(thread: Uid) -> Outcome {
    Ok(sys::send(thread, RESUME_AS_IS, [0; 8], Timeout::ZERO)?)
}

/// An agent whose exceptions come to this thread.
fn debugged(child: &Child) -> Outcome<Agent> {
    let mut agent = child.agent()?;
    agent.attempt(suite_nothing, 0, 0)?;
    sys::thread_set_pager(agent.uid, pager::uid(), sys::myself())?;
    Ok(agent)
}

/// Runs an agent into its loop and stops it there.
fn spinning(agent: &mut Agent, pattern: u64) -> Outcome {
    agent.start_attempt(suite_spin, pattern, 0);
    stop_in_loop(agent)
}

/// Stops an agent that gets into its loop.
pub fn stop_in_loop(agent: &Agent) -> Outcome {
    for _ in 0..10_000 {
        rt::time::sleep(Duration::from_millis(1));
        if agent.info()?.ip == address(suite_spin_loop) {
            return Ok(sys::thread_stop(agent.uid)?);
        }
    }
    check!(false, "the thread does not get into its loop");
    Ok(())
}

pub fn registers_are_handed_over() -> Outcome {
    let child = Child::new()?;
    let mut agent = debugged(&child)?;
    const PATTERN: u64 = 0x0bad_cafe_0000_0000;
    spinning(&mut agent, PATTERN)?;
    let mut groups = [[0; 4]; REGISTERS.len()];
    for (number, group) in groups.iter_mut().enumerate() {
        *group = sys::thread_registers(agent.uid, number)?;
    }
    let order = [
        "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
    ];
    let mut sum = 0u64;
    for (index, name) in order.iter().enumerate() {
        let mut cells = REGISTERS.iter().flatten().zip(groups.iter().flatten());
        let found = cells.find(|(register, _)| *register == name).map_or(0, |(_, value)| *value);
        check!(found == PATTERN + index as u64 + 1, "{name} is {found:x}");
        sum = sum.wrapping_add(found);
    }
    check_eq!(groups[0][0], address(suite_spin_loop));
    check_eq!(groups[0][2] & 0x3200, 0x200);
    // Other values, and on behind the loop; what a user must not have in its flags is left out.
    for (number, group) in groups.iter_mut().enumerate().skip(1) {
        group.iter_mut().for_each(|value| *value = value.wrapping_add(0x1000));
        sys::thread_set_registers(agent.uid, number, *group)?;
    }
    let [_, sp, flags, rax] = groups[0];
    sys::thread_set_registers(
        agent.uid,
        0,
        [address(suite_spin_end), sp, flags | 0xffff_3000 & !0x100, rax + 0x1000],
    )?;
    check_eq!(sys::thread_registers(agent.uid, 0)?[2] & 0x3200, 0x200);
    sys::thread_resume(agent.uid)?;
    check_eq!(agent.attempted()?, Attempted::Returned(sum.wrapping_add(15 * 0x1000)));
    Ok(())
}

/// Registers come when the ipc is over: aborted, or complete.
pub fn registers_of_a_waiting_thread() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let control = |result| fails(Call::ThreadControl, result, Error::BadState);
    for complete in [false, true] {
        agent.block(Frame::reply_wait(Uid::NIL, 0, WORDS))?;
        control(sys::thread_registers(agent.uid, 0).map(drop))?;
        sys::thread_stop(agent.uid)?;
        control(sys::thread_registers(agent.uid, 0).map(drop))?;
        control(sys::thread_set_registers(agent.uid, 0, [0; 4]))?;
        if complete {
            sys::send(agent.uid, 7, [0x77; 8], Timeout::ZERO)?;
        } else {
            sys::thread_abort(agent.uid)?;
        }
        let [ip, _, _, rax] = sys::thread_registers(agent.uid, 0)?;
        let [rdi, _, w2, w3] = sys::thread_registers(agent.uid, 2)?;
        let [_, rcx, ..] = sys::thread_registers(agent.uid, 1)?;
        check_eq!(rcx, ip);
        if complete {
            check_eq!((rax >> 32, rdi, w2, w3), (7, 0x77, 0x77, 0x77));
        } else {
            check_eq!((rax, rdi, w2, w3), (Error::ReceiveAborted as u64, 0, 0, 0));
        }
        // One word of the message is the debugger's.
        let [_, rbp, ..] = [rdi, sys::thread_registers(agent.uid, 2)?[1]];
        sys::thread_set_registers(agent.uid, 2, [0xdeb, rbp, w2, w3])?;
        sys::thread_resume(agent.uid)?;
        check_eq!(agent.wait()?.rdi, 0xdeb);
    }
    Ok(())
}

pub fn single_steps() -> Outcome {
    let child = Child::new()?;
    let mut agent = debugged(&child)?;
    let (first, end) = (address(suite_steps), address(suite_steps_end));
    sys::thread_breakpoint(agent.uid, 2, first, BREAK_EXECUTE, 1)?;
    agent.start_attempt(suite_steps, 0, 0);
    let got = exception(agent.uid)?;
    let [vector, code, ip, sp, flags, rax, ..] = got.words;
    check_eq!((vector, code & 0xf, ip), (DEBUG, 1 << 2, first));
    sys::thread_step(agent.uid, true)?;
    // Past the breakpoint, which stays.
    let words = [0, 0, ip, sp, flags | RESUME_FLAG, rax, 0, 0];
    sys::send(agent.uid, RESUME, words, Timeout::ZERO)?;
    let (mut last, mut seen, mut inside) = (first, 0, 0);
    loop {
        let [vector, code, ip, ..] = exception(agent.uid)?.words;
        check_eq!((vector, code & STEPPED), (DEBUG, STEPPED));
        check!(ip < USER_END && ip != last, "{ip:x} after {last:x}");
        seen += 1;
        inside += u32::from((first..end).contains(&ip));
        last = ip;
        if !(first..end).contains(&ip) || seen > 100 {
            break;
        }
        go_on(agent.uid)?;
    }
    // A move, three turns of two, and then two system calls with two instructions each; some processors take a call
    // and what follows it as one step.
    check!((9..=13).contains(&inside), "{inside} steps");
    sys::thread_step(agent.uid, false)?;
    sys::thread_breakpoint(agent.uid, 2, 0, BREAK_OFF, 0)?;
    go_on(agent.uid)?;
    check_eq!(agent.attempted()?, Attempted::Returned(7));
    // No step is left over.
    check_eq!(agent.attempt(suite_steps, 0, 0)?, Attempted::Returned(7));
    Ok(())
}

pub fn watchpoints() -> Outcome {
    static CELLS: [core::sync::atomic::AtomicU64; 4] = [const { core::sync::atomic::AtomicU64::new(0) }; 4];
    let child = Child::new()?;
    let (mut agent, mut other) = (debugged(&child)?, debugged(&child)?);
    let place = |index: usize| CELLS[index].as_ptr() as u64;
    for agent in [&mut agent, &mut other] {
        check_eq!(agent.attempt(suite_store, place(0), 1)?.is_fine(), true);
    }
    for number in 0..4 {
        let event = if number % 2 == 0 { BREAK_WRITE } else { BREAK_ACCESS };
        sys::thread_breakpoint(agent.uid, number as u64, place(number), event, 8)?;
    }
    for number in 0..4usize {
        for (function, traps) in [(suite_store as Attempt, true), (suite_load, number % 2 == 1)] {
            agent.start_attempt(function, place(number), 5);
            if traps {
                let [vector, code, ..] = exception(agent.uid)?.words;
                check_eq!((vector, code), (DEBUG, 1 << number));
                go_on(agent.uid)?;
            }
            check!(agent.attempted()?.is_fine());
            // They are one thread's.
            check!(other.attempt(function, place(number), 6)?.is_fine());
        }
    }
    for number in 0..4 {
        sys::thread_breakpoint(agent.uid, number, 0, BREAK_OFF, 0)?;
    }
    check!(agent.attempt(suite_store, place(0), 7)?.is_fine());
    Ok(())
}

/// A copy that the kernel makes of watched memory is no event, however often; the thread's own access afterwards is one.
pub fn the_kernel_reads_what_is_watched() -> Outcome {
    let count = Dope::PARTS_MAX;
    let (used, room) = (Dope::used(0, count, 0), Dope::room(0, count, 0));
    long::prepare(9);
    long::describe(used, room, (0..count as usize).map(|i| (64, 64 * i, 40, 64)));
    let (_near, mut sender, _far, mut receiver) = long::pair(room)?;
    sys::thread_set_pager(sender.uid, pager::uid(), sys::myself())?;
    let watched = &raw const long::from().bytes[64] as u64;
    check!(sender.attempt(suite_load, watched, 0)?.is_fine());
    for number in 0..4 {
        sys::thread_breakpoint(sender.uid, number, watched + 8 * number, BREAK_ACCESS, 8)?;
    }
    sender.block(long::long_call(receiver.uid, used))?;
    check_eq!(receiver.wait()?.sender(), sender.uid);
    check!((0..count as usize).all(|i| long::arrived(64, 64 * i, 40)), "a string differs");
    sender.wait_for_answer(&mut receiver)?;
    sender.start_attempt(suite_load, watched + 16, 0);
    let [vector, code, ..] = exception(sender.uid)?.words;
    check_eq!((vector, code), (DEBUG, 1 << 2));
    go_on(sender.uid)?;
    check!(sender.attempted()?.is_fine());
    Ok(())
}

/// No debugger reaches the kernel, other people's threads, or a thread that runs.
pub fn debuggers_have_limits() -> Outcome {
    let child = Child::new()?;
    let agent = debugged(&child)?;
    let refused = |number, at, event, len| {
        fails(
            Call::ThreadControl,
            sys::thread_breakpoint(agent.uid, number, at, event, len),
            Error::BadArgument,
        )
    };
    let kernel = [USER_END, 0x8000_0000_0000, 0xffff_8000_0000_0000, INFO_PAGE, 0xffff_ffff_8010_0000, !7];
    for event in [BREAK_EXECUTE, BREAK_WRITE, BREAK_ACCESS] {
        for at in kernel {
            refused(0, at, event, 1)?;
        }
    }
    for (number, at, event, len) in [
        (4, 0x1000, BREAK_WRITE, 8),
        (0, 0x1001, BREAK_WRITE, 2),
        (0, 0x1004, BREAK_ACCESS, 8),
        (0, 0x1000, 4, 1),
        (0, 0x1000, BREAK_WRITE, 3),
        (0, 0x1000, BREAK_EXECUTE, 2),
        (u64::MAX, 0x1000, BREAK_WRITE, 1),
    ] {
        refused(number, at, event, len)?;
    }
    sys::thread_stop(agent.uid)?;
    // If it waits for its next order, not any more.
    let _ = sys::thread_abort(agent.uid);
    let bad = |result| fails(Call::ThreadControl, result, Error::BadArgument);
    bad(sys::thread_registers(agent.uid, REGISTERS.len()).map(drop))?;
    for [ip, sp] in [[USER_END, 0], [u64::MAX, 0], [0x1000, 1 << 47], [0x1000, u64::MAX]] {
        bad(sys::thread_set_registers(agent.uid, 0, [ip, sp, 0x202, 0]))?;
    }
    // From a task that is not its chief's.
    let (mut stranger, home) = (child.agent()?, sys::identity().pager);
    for operation in
        [thread_op::GET_REGISTERS, thread_op::SET_REGISTERS, thread_op::STEP, thread_op::BREAKPOINT]
    {
        for (thread, error) in
            [(home, Error::Denied), (pager::uid(), Error::Denied), (Uid(0x5000), Error::NoSuch)]
        {
            let eax = Call::ThreadControl as u32 | operation << 8;
            let (code, _) = stranger.control(eax, [thread.0, 0, 0, 0, 1, 0])?;
            check_eq!(code, error as u64);
        }
    }
    // Nor does anybody but the first tasks record what threads do, or read it.
    let denied = |result| fails(Call::ThreadControl, result, Error::Denied);
    denied(sys::thread_trace(agent.uid, true, false))?;
    denied(sys::trace_read(0).map(drop))?;
    let me = sys::myself();
    fails(Call::ThreadControl, sys::thread_registers(me, 0).map(drop), Error::BadState)?;
    Ok(())
}
