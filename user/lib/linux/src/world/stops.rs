//! Processes that stand still, orphans, and parents whose memory a child has.

use super::{HANDLER, OWN, World};
use crate::machine::Tid;
use crate::process::Status;
use linux_raw_sys::general::*;

impl World {
    fn kill(&mut self, tid: Tid, pid: Tid, signal: u32) {
        self.now(tid, __NR_kill, &[pid.into(), signal.into()]).unwrap();
    }

    fn vfork(&mut self, tid: Tid, flags: u32) -> Tid {
        let before = self.system.next;
        assert_eq!(self.call(tid, __NR_clone, &[(CLONE_VM | CLONE_VFORK | flags).into()]), None, "it waits");
        before + 1
    }

    /// A child in a group of its own.
    fn job(&mut self, tid: Tid) -> Tid {
        let job = self.fork(tid);
        self.now(job, __NR_setpgid, &[0, 0]).unwrap();
        job
    }

    fn ended(&self, pid: Tid) -> Option<Status> {
        self.system.processes.get(&pid)?.ended
    }
}

/// D6: a parent goes on when its memory is its own again.
#[test]
fn no_signal_wakes_a_parent_whose_memory_a_child_has() {
    for ends in [true, false] {
        let mut world = World::new();
        let parent = world.fork(1);
        world.action(parent, SIGUSR1, HANDLER);
        let child = world.vfork(parent, SIGCHLD);
        world.kill(1, parent, SIGUSR1);
        world.kill(1, parent, SIGSTOP);
        world.kill(1, parent, SIGCONT);
        assert_eq!((world.handles(parent), world.answer(parent)), (false, None));
        if ends {
            world.exit(child);
        } else {
            world.put(child, OWN, b"/program\0");
            assert_eq!(world.call(child, __NR_execve, &[OWN, 0, 0]), None);
        }
        assert!(world.handles(parent));
        world.exit(parent);
    }
    let mut world = World::new();
    let parent = world.fork(1);
    world.vfork(parent, SIGCHLD);
    world.kill(1, parent, SIGTERM);
    assert_eq!(world.ended(parent), Some(Status::killed(SIGTERM)));
}

#[test]
fn a_thread_can_be_waited_for_by_vfork() {
    let mut world = World::new();
    let thread = world.vfork(1, CLONE_THREAD | CLONE_SIGHAND);
    assert_eq!(world.system.pid(thread), Ok(1));
    assert_eq!(world.call(thread, __NR_exit, &[0]), None);
    assert_eq!(world.answer(1), Some(Ok(thread.into())));
}

/// D7: calls of a process that stands still are made again when it goes on.
#[test]
fn calls_stand_still_with_their_process() {
    let mut world = World::new();
    let child = world.fork(1);
    world.now(1, __NR_pipe, &[OWN]).unwrap();
    let [reader, writer] = [OWN, OWN + 4].map(|at| u64::from(world.number(1, at)));
    let reading = world.job(1);
    let sleeping = world.job(1);
    assert_eq!(world.read(reading, reader, 9), None);
    world.system.write_words(sleeping, OWN, &[1, 0]).unwrap();
    assert_eq!(world.call(sleeping, __NR_nanosleep, &[OWN, 0]), None);
    for pid in [reading, sleeping] {
        world.kill(1, pid, SIGSTOP);
        assert_eq!(world.status(1, pid), Some(Status::stopped(SIGSTOP).0));
    }
    world.write(1, writer, b"text");
    world.wait(2_000_000_000);
    assert_eq!((world.answer(reading), world.answer(sleeping)), (None, None));
    // The bytes are not lost: somebody else reads two of them.
    assert_eq!(world.read(1, reader, 2), Some(Ok(b"te".to_vec())));
    for pid in [reading, sleeping] {
        world.kill(1, pid, SIGCONT);
        assert_eq!(world.status(1, pid), Some(Status::CONTINUED.0));
    }
    assert_eq!((world.answer(reading), world.answer(sleeping)), (Some(Ok(2)), Some(Ok(0))));
    world.exit(child);
}

/// D8: a group that nobody can continue does not stand still.
#[test]
fn orphans_go_on_and_do_not_stop() {
    let mut world = World::new();
    let shell = world.job(1);
    let [stopped, running] = [(); 2].map(|()| world.job(shell));
    world.kill(shell, stopped, SIGTSTP);
    assert_eq!(world.status(shell, stopped), Some(Status::stopped(SIGTSTP).0));
    world.action(stopped, SIGHUP, HANDLER);
    world.handles(stopped);
    world.exit(shell);
    assert!(world.handles(stopped), "it hears of it");
    assert_eq!(world.system.processes[&stopped].stopped, None);
    assert_eq!(world.ended(running), None, "one that runs does not");
    for signal in [SIGTSTP, SIGTTIN, SIGTTOU] {
        world.kill(1, running, signal);
        assert_eq!(world.system.processes[&running].stopped, None);
    }
    world.kill(1, running, SIGSTOP);
    assert_eq!(world.system.processes[&running].stopped, Some(SIGSTOP));
    // The group of the first process has no parent at all.
    world.kill(1, 1, SIGTSTP);
    assert_eq!(world.system.processes[&1].stopped, None);
}

#[test]
fn a_group_is_orphaned_by_the_end_of_its_own_process() {
    let mut world = World::new();
    let outer = world.job(1);
    let inner = world.fork(outer);
    world.kill(1, inner, SIGTSTP);
    assert_eq!(world.system.processes[&inner].stopped, Some(SIGTSTP));
    world.exit(outer);
    assert_eq!(world.ended(inner), Some(Status::killed(SIGHUP)));
}

#[test]
fn a_child_that_is_left_ends_as_others_do() {
    let mut world = World::new();
    world.action(1, SIGCHLD, HANDLER);
    let middle = world.fork(1);
    let flags = u64::from(SIGUSR1);
    let left = world.now(middle, __NR_clone, &[flags]).unwrap() as Tid;
    let zombie = world.fork(middle);
    world.exit(zombie);
    world.handles(1);
    world.exit(middle);
    assert!(world.handles(1));
    assert_eq!(world.status(1, zombie), Some(0), "the first process gets it");
    world.system.thread(1).unwrap().mask = crate::signal::Set(0);
    world.exit(left);
    assert!(world.handles(1), "it is SIGCHLD");
    assert_eq!((world.status(1, left), world.status(1, middle)), (Some(0), Some(0)));
}
