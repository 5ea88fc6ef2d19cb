//! Signals that meet calls: those that a call has blocked for its time, those that stop a process or let it go on, and those that end who sends them.

use super::{HANDLER, OWN, World};
use crate::errno::{EINTR, EINVAL, EPERM, ESRCH};
use crate::frames::PAGE;
use crate::machine::Tid;
use crate::process::Status;
use crate::signal::Set;
use abi::state::register;
use linux_raw_sys::general::*;
use linux_raw_sys::ioctl::{TIOCGPTN, TIOCSPTLCK};
use linux_raw_sys::net::{AF_UNIX, SO_RCVTIMEO_OLD, SOCK_STREAM, SOL_SOCKET};
use linux_raw_sys::prctl::{PR_GET_PDEATHSIG, PR_SET_PDEATHSIG};
use std::format;
use std::vec::Vec;

/// Where the frame of a handler has the result of the call.
const RESULT_AT: u64 = 8 + 40 + 8 * 13;

impl World {
    fn signal(&mut self, tid: Tid, pid: Tid, signal: u32) {
        self.now(tid, __NR_kill, &[pid.into(), signal.into()]).unwrap();
    }

    fn block(&mut self, tid: Tid, signal: u32) {
        self.system.thread(tid).unwrap().mask.0 |= Set::of(signal).0;
    }

    fn unblock(&mut self, tid: Tid, signal: u32) {
        self.system.write_words(tid, OWN, &[Set::of(signal).0]).unwrap();
        self.call(tid, __NR_rt_sigprocmask, &[SIG_UNBLOCK.into(), OWN, 0, 8]);
    }

    /// Makes a process another program.
    fn begins(&mut self, tid: Tid) {
        self.put(tid, OWN, b"/program\0");
        assert_eq!(self.call(tid, __NR_execve, &[OWN, 0, 0]), None);
        self.lay_out(tid);
    }

    /// Whether a process has ended, also if nobody knows it any more.
    fn is_over(&self, pid: Tid) -> bool {
        self.system.processes.get(&pid).is_none_or(|process| process.ended.is_some())
    }
}

/// Calls that wait for nothing else than a time of 1 s, and block `SIGUSR1` meanwhile.
fn waits(world: &mut World, tid: Tid) -> [(u32, Vec<u64>); 3] {
    let [time, set] = [OWN + 64, OWN + 80];
    world.system.write_words(tid, time, &[1, 0, Set::of(SIGUSR1).0, set, 8]).unwrap();
    let list = world.now(tid, __NR_epoll_create1, &[0]).unwrap();
    [
        (__NR_ppoll, Vec::from([0, 0, time, set, 8])),
        (__NR_pselect6, Vec::from([0, 0, 0, 0, time, set + 8])),
        (__NR_epoll_pwait, Vec::from([list, OWN + 256, 1, 1000, set, 8])),
    ]
}

/// Nobody but the call has blocked the signal, so it is handled when the call is done, and not at the next one.
#[test]
fn a_signal_that_a_wait_has_blocked_comes_behind_it() {
    let mut world = World::new();
    let child = world.fork(1);
    world.action(child, SIGUSR1, HANDLER);
    for (call, arguments) in waits(&mut world, child) {
        world.system.write_words(child, OWN + 64, &[1, 0]).unwrap();
        assert_eq!(world.call(child, call, &arguments), None);
        world.signal(1, child, SIGUSR1);
        assert_eq!((world.answer(child), world.handles(child)), (None, false), "{call} blocks it");
        world.wait(2_000_000_000);
        assert!(world.handles(child), "{call} is over");
        assert_eq!(world.answer(child), None, "the handler has the result");
        world.system.thread(child).unwrap().mask = Set(0);
    }
    world.system.write_words(child, OWN + 64, &[0, 0, Set::of(SIGUSR1).0]).unwrap();
    assert_eq!(world.call(child, __NR_ppoll, &[0, 0, OWN + 64, OWN + 80, 8]), Some(Ok(0)));
    assert_eq!(world.system.thread(child).unwrap().mask, Set(0));
}

#[test]
fn a_process_goes_on_whoever_blocks_the_signal() {
    let mut world = World::new();
    let child = world.fork(1);
    world.block(child, SIGCONT);
    for number in [__NR_kill, __NR_tkill] {
        world.signal(1, child, SIGSTOP);
        assert_eq!(world.system.processes[&child].stopped, Some(SIGSTOP));
        world.now(1, number, &[child.into(), SIGCONT.into()]).unwrap();
        assert_eq!(world.system.processes[&child].stopped, None);
    }
    // One takes the other back, also if it was for a thread alone.
    let job = world.fork(1);
    world.now(job, __NR_setpgid, &[0, 0]).unwrap();
    world.block(job, SIGTSTP);
    world.now(1, __NR_tkill, &[job.into(), SIGTSTP.into()]).unwrap();
    world.signal(1, job, SIGCONT);
    world.unblock(job, SIGTSTP);
    assert_eq!(world.system.processes[&job].stopped, None);
    world.now(1, __NR_tkill, &[job.into(), SIGTSTP.into()]).unwrap();
    assert_eq!(world.system.processes[&job].stopped, Some(SIGTSTP));
}

/// A shell lets jobs go on that have set another owner.
#[test]
fn a_process_of_the_session_goes_on_whatever_its_owner_is() {
    let mut world = World::new();
    let [shell, job] = [1000, 2000].map(|owner: u64| {
        let child = world.fork(1);
        world.now(child, __NR_setresuid, &[owner; 3]).unwrap();
        child
    });
    world.signal(1, job, SIGSTOP);
    assert_eq!(world.now(shell, __NR_kill, &[job.into(), SIGTERM.into()]), Err(EPERM));
    world.signal(shell, job, SIGCONT);
    assert_eq!(world.system.processes[&job].stopped, None);
    world.now(job, __NR_setsid, &[]).unwrap();
    assert_eq!(world.now(shell, __NR_kill, &[job.into(), SIGCONT.into()]), Err(EPERM));
}

/// A process that is forgotten since another one has ended before it keeps the others from nothing.
#[test]
fn all_get_a_signal_that_is_for_all() {
    let mut world = World::new();
    world.action(1, SIGCHLD, 1);
    let parent = world.fork(1);
    world.action(parent, SIGCHLD, 0);
    let zombie = world.fork(parent);
    let [other, own] = [(); 2].map(|()| world.fork(1));
    world.exit(zombie);
    assert!(world.system.processes.contains_key(&zombie));
    assert_eq!(world.now(own, __NR_kill, &[u64::MAX, SIGKILL.into()]), Ok(0));
    assert_eq!([parent, zombie, other, own].map(|pid| world.is_over(pid)), [true, true, true, false]);
}

/// A process is killed by what its own call does. Nothing of what it has open stays open.
#[test]
fn a_process_that_is_killed_in_a_call_leaves_nothing_open() {
    let mut world = World::new();
    let killed = world.fork(1);
    let master = world.open(killed, "/dev/ptmx", O_RDWR).unwrap();
    for (request, value) in [(TIOCSPTLCK, 0u32), (TIOCGPTN, 0)] {
        world.put(killed, OWN, &value.to_le_bytes());
        world.now(killed, __NR_ioctl, &[master, request.into(), OWN]).unwrap();
    }
    let name = format!("/dev/pts/{}", world.number(killed, OWN));
    // The end of this child ends its parent, who types the key that ends it.
    let child = world.now(killed, __NR_clone, &[SIGKILL.into()]).unwrap() as Tid;
    world.now(child, __NR_setsid, &[]).unwrap();
    world.open(child, &name, O_RDWR).unwrap();
    assert_eq!(world.write(killed, master, b"\x03"), None);
    assert_eq!(world.system.processes[&killed].ended, Some(Status::killed(SIGKILL)));
    assert_eq!(world.system.terminals.pairs(), 0, "the master is closed");
    // A process that kills itself does not come back.
    let other = world.fork(1);
    assert_eq!(world.call(other, __NR_kill, &[other.into(), SIGKILL.into()]), None);
    assert_eq!(world.system.processes[&other].ended, Some(Status::killed(SIGKILL)));
}

/// A program that begins has to bear nothing that another one has chosen.
#[test]
fn programs_that_begin_hear_of_children_as_usual() {
    let mut world = World::new();
    world.action(1, SIGCHLD, HANDLER);
    let child = world.now(1, __NR_clone, &[SIGUSR1.into()]).unwrap() as Tid;
    world.begins(child);
    world.exit(child);
    assert!(world.handles(1), "it is SIGCHLD");
    let parent = world.fork(1);
    let child = world.now(parent, __NR_clone, &[SIGKILL.into()]).unwrap() as Tid;
    world.begins(parent);
    world.exit(child);
    assert!(!world.is_over(parent));
    assert_eq!(world.status(parent, child), Some(0));
}

/// `kill` takes the number of any thread for that of its process: all of that gets the signal.
#[test]
fn a_process_has_the_numbers_of_its_threads() {
    let mut world = World::new();
    let child = world.fork(1);
    let thread = world.thread(child);
    assert_eq!(world.now(1, __NR_kill, &[thread.into(), 0]), Ok(0));
    assert_eq!(world.now(1, __NR_kill, &[(thread + 1).into(), 0]), Err(ESRCH));
    world.signal(1, thread, SIGTERM);
    assert_eq!(world.status(1, child), Some(SIGTERM));
    assert_eq!(world.now(1, __NR_kill, &[thread.into(), 0]), Err(ESRCH));
}

#[test]
fn children_hear_of_the_end_of_their_parent_if_they_want() {
    let mut world = World::new();
    let parent = world.fork(1);
    let [hears, other] = [(); 2].map(|()| world.fork(parent));
    assert_eq!(world.now(hears, __NR_prctl, &[PR_SET_PDEATHSIG.into(), 65]), Err(EINVAL));
    world.now(hears, __NR_prctl, &[PR_SET_PDEATHSIG.into(), SIGTERM.into()]).unwrap();
    let below = world.fork(hears);
    for (tid, signal) in [(hears, SIGTERM), (below, 0)] {
        world.now(tid, __NR_prctl, &[PR_GET_PDEATHSIG.into(), OWN]).unwrap();
        assert_eq!(world.number(tid, OWN), signal);
    }
    world.exit(parent);
    assert_eq!(world.system.processes[&hears].ended, Some(Status::killed(SIGTERM)));
    assert_eq!([other, below].map(|pid| world.is_over(pid)), [false; 2]);
}

#[test]
fn who_was_a_child_is_told() {
    let mut world = World::new();
    let child = world.fork(1);
    world.now(child, __NR_setresuid, &[7; 3]).unwrap();
    world.exit(child);
    world.now(1, __NR_waitid, &[P_PID.into(), child.into(), OWN, WEXITED.into()]).unwrap();
    assert_eq!([16, 20].map(|at| world.number(1, OWN + at)), [child, 7]);
}

/// `select` and its like leave the time that they have not waited.
#[test]
fn waits_leave_the_rest_of_their_time() {
    let mut world = World::new();
    let child = world.fork(1);
    world.action(child, SIGUSR1, HANDLER);
    world.now(child, __NR_pipe, &[OWN]).unwrap();
    let [reader, writer] = [OWN, OWN + 4].map(|at| u64::from(world.number(child, at)));
    let [time, set] = [OWN + 2 * PAGE, OWN + 2 * PAGE + 64];
    let thread = world.thread(child);
    let read = [reader + 1, set, 0, 0, time, 0];
    for (call, arguments, parts) in [
        (__NR_select, read, 1_000_000),
        (__NR_pselect6, read, 1_000_000_000),
        (__NR_ppoll, [set + 8, 1, time, 0, 0, 0], 1_000_000_000u64),
    ] {
        for ends_by_signal in [true, false] {
            world.system.write_words(child, time, &[3, parts / 2]).unwrap();
            world.system.write_words(child, set, &[1 << reader, reader | 1 << 32]).unwrap();
            assert_eq!(world.call(child, call, &arguments), None);
            world.wait(1_200_000_000);
            if ends_by_signal {
                world.signal(1, child, SIGUSR1);
                assert!(world.handles(child));
                world.system.thread(child).unwrap().mask = Set(0);
            } else {
                assert_eq!(world.write(thread, writer, b"x"), Some(Ok(1)));
                assert_eq!(world.answer(child), Some(Ok(1)));
                world.read(child, reader, 1);
            }
            assert_eq!(world.system.words(child, time), Ok([2, parts / 10 * 3]), "{call}");
        }
    }
}

/// A call that waits at a socket with a limit of time does not begin again: it would wait that long once more, and again.
#[test]
fn a_limit_of_time_is_kept_whatever_a_handler_says() {
    for (timeout, call) in [(0, __NR_recvfrom), (5, __NR_recvfrom), (5, __NR_recvmsg), (5, __NR_read)] {
        let mut world = World::new();
        let child = world.fork(1);
        let action = [HANDLER, u64::from(SA_RESTORER | SA_RESTART), HANDLER + 64, 0];
        world.system.write_words(child, OWN, &action).unwrap();
        world.now(child, __NR_rt_sigaction, &[SIGUSR1.into(), OWN, 0, 8]).unwrap();
        world.now(child, __NR_socketpair, &[AF_UNIX.into(), SOCK_STREAM.into(), 0, OWN]).unwrap();
        let socket = u64::from(world.number(child, OWN));
        world.system.write_words(child, OWN, &[timeout, 0]).unwrap();
        let limit = [socket, SOL_SOCKET.into(), SO_RCVTIMEO_OLD.into(), OWN, 16];
        world.now(child, __NR_setsockopt, &limit).unwrap();
        // A header of one piece of 8 bytes.
        world.system.write_words(child, OWN, &[0, 0, OWN + 64, 1, 0, 0, 0, 0, OWN + PAGE, 8]).unwrap();
        let arguments = if call == __NR_recvmsg { [socket, OWN, 0] } else { [socket, OWN + PAGE, 8] };
        assert_eq!(world.call(child, call, &arguments), None);
        world.signal(1, child, SIGUSR1);
        let frame = world.system.machine.states.remove(&child).unwrap().registers[register::RSP];
        let [result] = world.system.words(child, frame + RESULT_AT).unwrap();
        assert_eq!(result, if timeout == 0 { call.into() } else { EINTR.result() }, "{call} with {timeout}");
    }
}

/// Programs set `SS_ONSTACK`, which says nothing that is not known.
#[test]
fn a_stack_of_handlers_may_be_said_to_be_one() {
    let mut world = World::new();
    for (flags, expected) in [(0, Ok(0)), (SS_ONSTACK, Ok(0)), (SS_DISABLE, Ok(0)), (4, Err(EINVAL))] {
        world.system.write_words(1, OWN, &[OWN + PAGE, flags.into(), PAGE]).unwrap();
        assert_eq!(world.now(1, __NR_sigaltstack, &[OWN, 0]), expected);
        world.now(1, __NR_sigaltstack, &[0, OWN]).unwrap();
        let told = if flags == 4 { SS_DISABLE } else { flags & SS_DISABLE };
        assert_eq!(world.number(1, OWN + 8), told);
    }
}

/// Where the frame of a handler has the first argument, the stack and the instruction pointer of what it returns to, and the mask.
const RETURN_AT: [u64; 4] = [8 + 40 + 8 * 8, 8 + 40 + 8 * 15, 8 + 40 + 8 * 16, 8 + 296];

/// Each signal that waits has its frame before a handler runs: that of the last one begins, and returns into the beginning of the one before. One that a handler
/// blocks comes behind it.
#[test]
fn each_signal_that_waits_has_its_frame() {
    for is_blocked in [false, true] {
        let mut world = World::new();
        let child = world.fork(1);
        world.action(child, SIGUSR1, HANDLER);
        world.action(child, SIGUSR2, HANDLER + 16);
        let (first, second) = (Set::of(SIGUSR1).0, Set::of(SIGUSR2).0);
        if is_blocked {
            let words = [HANDLER, SA_RESTORER.into(), HANDLER + 64, second];
            world.system.write_words(child, OWN, &words).unwrap();
            world.now(child, __NR_rt_sigaction, &[SIGUSR1.into(), OWN, 0, 8]).unwrap();
        }
        for signal in [SIGUSR2, SIGUSR1] {
            world.block(child, signal);
            world.signal(1, child, signal);
        }
        world.system.write_words(child, OWN, &[first | second]).unwrap();
        world.call(child, __NR_rt_sigprocmask, &[SIG_UNBLOCK.into(), OWN, 0, 8]);
        let registers = world.system.machine.states[&child].registers;
        let place = [register::RDI, register::RSP, register::RIP].map(|index| registers[index]);
        assert_eq!(world.system.thread(child).unwrap().mask, Set(first | second));
        if is_blocked {
            assert_eq!([place[0], place[2]], [SIGUSR1.into(), HANDLER]);
            assert!(world.system.processes[&child].pending.set().has(SIGUSR2));
            continue;
        }
        assert_eq!([place[0], place[2]], [SIGUSR2.into(), HANDLER + 16]);
        let saved = RETURN_AT.map(|at| world.system.words::<1>(child, place[1] + at).unwrap()[0]);
        assert_eq!([saved[0], saved[2], saved[3]], [SIGUSR1.into(), HANDLER, first]);
        let saved = RETURN_AT.map(|at| world.system.words::<1>(child, saved[1] + at).unwrap()[0]);
        assert_eq!((saved[3], world.system.processes[&child].pending.set()), (0, Set(0)));
    }
}

/// The second one ends the process, or stops it: then the first handler begins when it goes on.
#[test]
fn a_signal_without_a_handler_comes_behind_one_with() {
    for signal in [SIGTERM, SIGTSTP] {
        let mut world = World::new();
        let child = world.fork(1);
        world.now(child, __NR_setpgid, &[0, 0]).unwrap();
        world.action(child, SIGUSR1, HANDLER);
        for signal in [SIGUSR1, signal] {
            world.block(child, signal);
            world.signal(1, child, signal);
        }
        world.system.write_words(child, OWN, &[Set::of(SIGUSR1).0 | Set::of(signal).0]).unwrap();
        world.call(child, __NR_rt_sigprocmask, &[SIG_UNBLOCK.into(), OWN, 0, 8]);
        if signal == SIGTERM {
            assert!(world.is_over(child));
            continue;
        }
        assert_eq!(world.system.processes[&child].stopped, Some(SIGTSTP));
        assert!(world.system.machine.paused.contains(&child));
        world.signal(1, child, SIGCONT);
        assert!(world.handles(child) && !world.system.machine.paused.contains(&child));
    }
}

/// Signals that came while a process stood still come together with the one that lets it go on, in the order of the numbers: the handler of the last one runs first.
#[test]
fn signals_come_with_the_one_that_continues() {
    for by_thread in [false, true] {
        let mut world = World::new();
        let child = world.fork(1);
        world.action(child, SIGCONT, HANDLER);
        world.action(child, SIGWINCH, HANDLER + 16);
        world.signal(1, child, SIGSTOP);
        world.signal(1, child, SIGWINCH);
        let call = if by_thread { __NR_tkill } else { __NR_kill };
        world.now(1, call, &[child.into(), SIGCONT.into()]).unwrap();
        let registers = world.system.machine.states[&child].registers;
        assert_eq!([register::RDI, register::RIP].map(|at| registers[at]), [SIGWINCH.into(), HANDLER + 16]);
        let sp = registers[register::RSP];
        let saved = RETURN_AT.map(|at| world.system.words::<1>(child, sp + at).unwrap()[0]);
        assert_eq!([saved[0], saved[2]], [SIGCONT.into(), HANDLER]);
        assert_eq!(world.system.processes[&child].pending.set(), Set(0));
    }
}

/// A stack for handlers has room for the frames of two signals, and not for a third: a process that gets three at once ends, and nothing below the stack is overwritten.
#[test]
fn frames_stay_on_the_stack_for_handlers() {
    let signals = [SIGUSR1, SIGUSR2, SIGWINCH];
    for count in 1..=3 {
        let mut world = World::new();
        let child = world.fork(1);
        let (at, len) = (OWN + 2 * PAGE, PAGE - 1024);
        world.system.write_words(child, OWN, &[at, 0, len]).unwrap();
        world.now(child, __NR_sigaltstack, &[OWN, 0]).unwrap();
        for signal in signals {
            let action = [HANDLER, u64::from(SA_RESTORER | SA_ONSTACK), HANDLER + 64, 0];
            world.system.write_words(child, OWN, &action).unwrap();
            world.now(child, __NR_rt_sigaction, &[signal.into(), OWN, 0, 8]).unwrap();
            world.block(child, signal);
        }
        let below = [0x1234_5678; 8];
        world.system.write_words(child, at - 64, &below).unwrap();
        for signal in &signals[..count] {
            world.signal(1, child, *signal);
        }
        let mask = signals.iter().fold(0, |all, signal| all | Set::of(*signal).0);
        world.system.write_words(child, OWN, &[mask]).unwrap();
        world.call(child, __NR_rt_sigprocmask, &[SIG_UNBLOCK.into(), OWN, 0, 8]);
        if count < 3 {
            assert!(world.handles(child), "{count}");
            assert_eq!(world.system.words(child, at - 64), Ok(below));
        } else {
            assert_eq!(world.system.processes[&child].ended, Some(Status::killed(SIGSEGV)));
        }
    }
}
