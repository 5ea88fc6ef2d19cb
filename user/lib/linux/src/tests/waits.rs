//! Threads that end while others wait for them: whoever waits hears of it, wherever the one that ends was.

use super::world::{CODE, DATA, Did, Place, World};
use crate::frames::PAGE;
use crate::machine::Tid;
use crate::process::Status;
use abi::state::register;
use linux_raw_sys::general as nr;
use linux_raw_sys::prctl::PR_SET_PDEATHSIG;

/// A signal comes while a thread waits for a page, and is taken when it has that.
#[test]
fn who_ends_behind_a_fault_is_heard_of() {
    let mut world = World::new(256, 8);
    assert_eq!(world.good(1, nr::__NR_fork, &[]), 2);
    let place = |world: &mut World, place| world.system.machine.threads.get_mut(&2).unwrap().place = place;
    place(&mut world, Place::Call);
    world.good(1, nr::__NR_kill, &[2, nr::SIGTERM.into()]);
    assert_eq!(world.call(1, nr::__NR_wait4, &[2, DATA, 0, 0]), Did::Waits);
    place(&mut world, Place::Code);
    world.system.after_fault(2);
    assert_eq!(world.outcome(1), Did::Value(2));
    world.check();
}

/// Sleeps for the time that a handler has left are no longer together than the one that was wanted, however often a signal comes.
#[test]
fn a_sleep_that_a_handler_ends_has_a_rest() {
    for number in [nr::__NR_nanosleep, nr::__NR_clock_nanosleep] {
        let mut world = World::new(256, 8);
        let action = world.put_words(1, 0, &[CODE, u64::from(nr::SA_RESTART), 0, 0]);
        world.good(1, nr::__NR_rt_sigaction, &[nr::SIGUSR1.into(), action, 0, 8]);
        assert_eq!(world.good(1, nr::__NR_fork, &[]), 2);
        let time = world.put_words(2, 256, &[1, 500_000_000, 7, 7]);
        let arguments = match number {
            nr::__NR_nanosleep => [time, time + 16, 0, 0],
            _ => [nr::CLOCK_MONOTONIC.into(), 0, time, time + 16],
        };
        assert_eq!(world.call(2, number, &arguments), Did::Waits);
        world.pass(300_000_000);
        world.good(1, nr::__NR_kill, &[2, nr::SIGUSR1.into()]);
        assert_eq!(world.system.machine.threads[&2].place, Place::Code);
        assert_eq!(world.system.words(2, time + 16).unwrap(), [1, 200_000_000]);
    }
}

/// A signal came while a thread was on its way into a call that does not come back: it takes the signal where it goes on.
#[test]
fn a_signal_is_taken_behind_a_call_that_goes_on_elsewhere() {
    for signal in [nr::SIGUSR1, nr::SIGTERM] {
        let mut world = World::new(256, 8);
        let action = world.put_words(1, 0, &[CODE + 64, 0, 0, 0]);
        world.good(1, nr::__NR_rt_sigaction, &[nr::SIGUSR1.into(), action, 0, 8]);
        assert_eq!(world.good(1, nr::__NR_fork, &[]), 2);
        come_on_the_way(&mut world, 2, signal);
        if signal == nr::SIGUSR1 {
            world.call(2, nr::__NR_arch_prctl, &[0x1002, DATA]);
            let state = &world.system.machine.threads[&2].state;
            assert_eq!((state.registers[register::RIP], state.fs_base), (CODE + 64, DATA));
        } else {
            let path = world.put(2, 256, b"/program");
            world.call(2, nr::__NR_execve, &[path, 0, 0]);
            assert_eq!(world.system.processes[&2].ended, Some(Status::killed(signal)));
        }
        world.check();
    }
}

/// A signal was for any thread of a process, and the one that was to take it ends, or blocks it.
#[test]
fn a_signal_is_taken_by_another_thread() {
    for blocks in [false, true] {
        let mut world = World::new(256, 8);
        let action = world.put_words(1, 0, &[CODE + 64, 0, 0, 0]);
        world.good(1, nr::__NR_rt_sigaction, &[nr::SIGUSR1.into(), action, 0, 8]);
        assert_eq!(world.good(1, nr::__NR_fork, &[]), 2);
        let flags = nr::CLONE_VM | nr::CLONE_SIGHAND | nr::CLONE_THREAD;
        assert_eq!(world.good(2, nr::__NR_clone, &[flags.into(), DATA + 8 * PAGE]), 3);
        assert_eq!(world.call(3, nr::__NR_pause, &[]), Did::Waits);
        come_on_the_way(&mut world, 2, nr::SIGUSR1);
        assert_eq!(world.outcome(3), Did::Waits);
        if blocks {
            let set = world.put_words(2, 256, &[u64::MAX]);
            assert_eq!(world.good(2, nr::__NR_rt_sigprocmask, &[nr::SIG_BLOCK.into(), set, 0, 8]), 0);
        } else {
            assert_eq!(world.call(2, nr::__NR_exit, &[0]), Did::Gone);
        }
        assert_eq!(world.system.machine.threads[&3].place, Place::Code);
        assert_eq!(world.system.machine.threads[&3].state.registers[register::RIP], CODE + 64);
        world.check();
    }
}

/// The last of a row of processes, each of which has made the next one.
const LAST: Tid = 240;

/// Makes a row of processes from 2 to [`LAST`], by `clone` with these flags; each does something when it begins. One of them exits, by which all end. How the first and the
/// last one have ended. All ends together take no more room than one: the stack here is small.
fn row_ends(flags: u32, begin: impl Fn(&mut World, Tid) + Send + 'static, exits: Tid) -> [Option<Status>; 2] {
    let row = move || {
        let mut world = World::new(512, 256);
        world.good(1, nr::__NR_fork, &[]);
        begin(&mut world, 2);
        for parent in 2..LAST {
            assert_eq!(world.good(parent, nr::__NR_clone, &[flags.into()]), u64::from(parent) + 1);
            begin(&mut world, parent + 1);
        }
        assert_eq!(world.call(exits, nr::__NR_exit_group, &[0]), Did::Gone);
        world.check();
        assert_eq!(world.system.threads.len(), 1);
        [2, LAST].map(|pid| world.system.processes.get(&pid).and_then(|process| process.ended))
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(row).unwrap();
    thread.join().unwrap()
}

/// Each of a row of processes cannot handle the end of the next one, and ends by it.
#[test]
fn ends_that_follow_from_one_another_need_little_room() {
    let begin = |world: &mut World, tid: Tid| {
        if tid == 2 {
            let stack = world.put_words(2, 0, &[DATA + (1 << 24), 0, 2 * PAGE]);
            world.good(2, nr::__NR_sigaltstack, &[stack, 0]);
            let action = world.put_words(2, 64, &[CODE, nr::SA_ONSTACK.into(), 0, 0]);
            world.good(2, nr::__NR_rt_sigaction, &[nr::SIGCHLD.into(), action, 0, 8]);
        }
    };
    let [first, _] = row_ends(nr::SIGCHLD, begin, LAST);
    assert_eq!(first, Some(Status::killed(nr::SIGSEGV)));
}

/// Each of a row of processes hears of the end of the next one by a signal that ends it.
#[test]
fn ends_by_signals_of_children_need_little_room() {
    for signal in [nr::SIGUSR1, nr::SIGKILL] {
        let [first, _] = row_ends(signal, |_, _| {}, LAST);
        assert_eq!(first, Some(Status::killed(signal)));
    }
}

/// Each of a row of processes ends by a signal when the one before has ended.
#[test]
fn ends_by_signals_of_parents_need_little_room() {
    for signal in [nr::SIGUSR1, nr::SIGKILL] {
        let ends = row_ends(nr::SIGCHLD, move |world, tid| ends_with_parent(world, tid, signal), 2);
        assert_eq!(ends, [Some(Status::exited(0)), Some(Status::killed(signal))]);
    }
}

fn ends_with_parent(world: &mut World, tid: Tid, signal: u32) {
    assert_eq!(world.good(tid, nr::__NR_prctl, &[PR_SET_PDEATHSIG.into(), signal.into()]), 0);
}

/// A signal comes for a thread that has made a call of which nobody knows yet.
fn come_on_the_way(world: &mut World, tid: Tid, signal: u32) {
    world.system.machine.threads.get_mut(&tid).unwrap().place = Place::Call;
    world.good(1, nr::__NR_kill, &[tid.into(), signal.into()]);
    world.system.machine.threads.get_mut(&tid).unwrap().place = Place::Code;
}
