//! Filters of calls. Errors and statuses that are expected are Linux's own.

use crate::calls::rig::{DATA, FIRST, Rig};
use crate::errno::{EACCES, EFAULT, EINVAL, EIO, ENOMEM, ENOSYS, EOPNOTSUPP, EPERM, Errno};
use crate::filter::tests::bytes;
use crate::machine::Tid;
use crate::world::{HANDLER, World};
use linux_raw_sys::general::{self as nr, SIGKILL, SIGSYS};
use linux_raw_sys::prctl::{PR_GET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP};
use linux_raw_sys::ptrace::*;
use std::vec;
use std::vec::Vec;

const RETURN: u32 = BPF_RET | BPF_K;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

/// A program that says an action of one call, and allows all others.
fn against(number: u32, action: u32) -> Vec<u8> {
    let equal = (BPF_JMP | BPF_JEQ | BPF_K, 0, 1, number);
    let read = (BPF_LD | BPF_W | BPF_ABS, 0, 0, 0);
    bytes(&[read, equal, (RETURN, 0, 0, action), (RETURN, 0, 0, SECCOMP_RET_ALLOW)])
}

/// Where a program is for `seccomp`, in memory of a thread.
fn put(rig: &mut Rig, tid: Tid, program: &[u8]) -> u64 {
    let (from, at) = (rig.room(program.len()), rig.room(16));
    rig.system.write(tid, from, program).unwrap();
    rig.system.write_words(tid, at, &[program.len() as u64 / 8, from]).unwrap();
    at
}

fn add(rig: &mut Rig, tid: Tid, flags: u32, program: &[u8]) -> i64 {
    let before = rig.free;
    let at = put(rig, tid, program);
    let done = rig.call_by(tid, nr::__NR_seccomp, &[SECCOMP_SET_MODE_FILTER.into(), flags.into(), at]);
    rig.free = before;
    done
}

/// How a child has ended.
fn status(rig: &mut Rig, child: Tid) -> u32 {
    let at = rig.room(4);
    assert_eq!(rig.call(nr::__NR_wait4, &[child.into(), at, 0, 0]), child.into());
    rig.half(at)
}

#[test]
fn a_filter_is_for_all_that_follows() {
    let mut rig = Rig::begun();
    let before = rig.system.budget.used();
    let child = rig.fork();
    assert_eq!(add(&mut rig, child, 0, &against(nr::__NR_getpid, SECCOMP_RET_ERRNO | 5)), 0);
    let ask = |rig: &mut Rig, tid| rig.call_by(tid, nr::__NR_getpid, &[]);
    assert_eq!((ask(&mut rig, child), ask(&mut rig, FIRST)), (error(EIO), FIRST.into()));
    assert_eq!(rig.call_by(child, nr::__NR_getppid, &[]), FIRST.into());
    assert_eq!(rig.call_by(child, nr::__NR_prctl, &[PR_GET_SECCOMP.into()]), 2);
    assert_eq!(rig.call(nr::__NR_prctl, &[PR_GET_SECCOMP.into()]), 0);
    let grandchild = rig.call_by(child, nr::__NR_fork, &[]) as Tid;
    assert_eq!(ask(&mut rig, grandchild), error(EIO));
    let flags = nr::CLONE_VM | nr::CLONE_SIGHAND | nr::CLONE_THREAD;
    let thread = rig.call_by(child, nr::__NR_clone, &[flags.into(), DATA + 8192]) as Tid;
    assert_eq!(ask(&mut rig, thread), error(EIO));
    let path = rig.room(16);
    rig.system.write(grandchild, path, b"/bin/test\0").unwrap();
    assert_eq!(rig.try_by(grandchild, nr::__NR_execve, &[path, 0, 0]), Some(0));
    assert_eq!(ask(&mut rig, grandchild), error(EIO), "also for another program");
    // It is not taken away, and another one does not give back what one has taken.
    assert_eq!(add(&mut rig, child, 0, &bytes(&[(RETURN, 0, 0, SECCOMP_RET_ALLOW)])), 0);
    assert_eq!(ask(&mut rig, child), error(EIO));
    let name = std::format!("/proc/{child}/status\0");
    let path = rig.put(name.as_bytes());
    let fd = rig.call(nr::__NR_open, &[path, 0, 0]) as u64;
    let text = rig.read(fd, 4096).unwrap();
    let text = std::string::String::from_utf8(text).unwrap();
    assert!(text.contains("\nSeccomp:\t2\nSeccomp_filters:\t2\n"), "{text}");
    assert_eq!(rig.call(nr::__NR_close, &[fd]), 0);
    for tid in [grandchild, child] {
        assert_eq!(rig.call(nr::__NR_kill, &[tid.into(), SIGKILL.into()]), 0);
    }
    status(&mut rig, child);
    assert_eq!(rig.call(nr::__NR_wait4, &[u64::MAX, 0, 0, 0]), grandchild.into());
    assert!(rig.system.budget.used() <= before + 2048, "filters are given back");
}

#[test]
fn who_gets_no_rights_may_give_them_up() {
    let mut rig = Rig::begun();
    let child = rig.fork();
    let program = against(nr::__NR_getpid, SECCOMP_RET_ERRNO);
    assert_eq!(rig.call_by(child, nr::__NR_setuid, &[5]), 0);
    assert_eq!(add(&mut rig, child, 0, &program), error(EACCES));
    assert_eq!(rig.call_by(child, nr::__NR_prctl, &[PR_SET_NO_NEW_PRIVS.into(), 1]), 0);
    assert_eq!(add(&mut rig, child, 0, &program), 0);
    assert_eq!(rig.call_by(child, nr::__NR_getpid, &[]), 0, "an error without a number is none");
    let at = put(&mut rig, FIRST, &program);
    let mode = u64::from(SECCOMP_MODE_FILTER);
    assert_eq!(rig.call(nr::__NR_prctl, &[PR_SET_SECCOMP.into(), mode, at]), 0, "`root` may");
}

#[test]
fn the_most_severe_action_counts() {
    let mut rig = Rig::begun();
    let number = nr::__NR_getuid;
    let child = rig.fork();
    let ask = |rig: &mut Rig| rig.try_by(child, number, &[]);
    for (action, expected) in [
        (SECCOMP_RET_LOG, Some(0)),
        (SECCOMP_RET_TRACE, Some(error(ENOSYS))),
        (SECCOMP_RET_USER_NOTIF, Some(error(ENOSYS))),
        (SECCOMP_RET_ERRNO | 13, Some(error(EACCES))),
        // The last one counts of two that are alike.
        (SECCOMP_RET_ERRNO | 1, Some(error(EPERM))),
        (SECCOMP_RET_ERRNO | 0xffff, Some(-4095)),
        (SECCOMP_RET_ALLOW, Some(-4095)),
        // An action that there is not ends the process, if no other one is more severe.
        (0x1234_0000, Some(-4095)),
        (0x0001_0000, None),
    ] {
        assert_eq!(add(&mut rig, child, 0, &against(number, action)), 0);
        assert_eq!(ask(&mut rig), expected, "{action:#x}");
    }
    assert_eq!(status(&mut rig, child), SIGSYS);
}

#[test]
fn a_thread_ends_alone_or_with_its_process() {
    for (action, is_alone) in [(SECCOMP_RET_KILL_THREAD, true), (SECCOMP_RET_KILL_PROCESS, false)] {
        let mut rig = Rig::begun();
        let child = rig.fork();
        let flags = nr::CLONE_VM | nr::CLONE_SIGHAND | nr::CLONE_THREAD;
        let thread = rig.call_by(child, nr::__NR_clone, &[flags.into(), DATA + 8192]) as Tid;
        assert_eq!(add(&mut rig, thread, 0, &against(nr::__NR_getpid, action)), 0);
        assert_eq!(rig.try_by(thread, nr::__NR_getpid, &[]), None);
        assert_eq!(rig.system.threads.contains_key(&child), is_alone);
        if is_alone {
            assert_eq!(add(&mut rig, child, 0, &against(nr::__NR_getpid, action)), 0);
            assert_eq!(rig.try_by(child, nr::__NR_getpid, &[]), None);
        }
        assert_eq!(status(&mut rig, child), SIGSYS);
    }
}

/// A negative number comes as an exception of the thread. Filters have their say about it as about others, and whoever waits for the process hears of its end.
#[test]
fn filters_look_at_negative_numbers() {
    let number = 1 << 31 | nr::__NR_getpid;
    for (action, expected) in [
        (SECCOMP_RET_ALLOW, Some(error(ENOSYS))),
        (SECCOMP_RET_ERRNO | 5, Some(error(EIO))),
        (SECCOMP_RET_TRAP, None),
        (SECCOMP_RET_KILL_THREAD, None),
        (SECCOMP_RET_KILL_PROCESS, None),
    ] {
        let mut rig = Rig::begun();
        let child = rig.fork();
        assert_eq!(add(&mut rig, child, 0, &against(number, action)), 0);
        let at = rig.room(4);
        assert_eq!(rig.try_by(FIRST, nr::__NR_wait4, &[child.into(), at, 0, 0]), None);
        rig.system.negative_call(child, number);
        assert_eq!(rig.answer(child), expected, "{action:#x}");
        let ended: Option<i64> = expected.is_none().then(|| child.into());
        assert_eq!(rig.answer(FIRST), ended, "{action:#x}");
        assert!(ended.is_none() || rig.half(at) == SIGSYS);
    }
}

#[test]
fn a_handler_hears_of_a_call() {
    let mut world = World::new();
    let place = crate::world::OWN + 1024;
    for (handler, is_blocked) in [(HANDLER, false), (HANDLER, true), (1, false), (0, false)] {
        let child = world.fork(1);
        world.action(child, SIGSYS, handler);
        if is_blocked {
            world.system.write_words(child, place, &[1 << (SIGSYS - 1)]).unwrap();
            world.now(child, nr::__NR_rt_sigprocmask, &[0, place, 0, 8]).unwrap();
        }
        let program = against(nr::__NR_getpid, SECCOMP_RET_TRAP | 7);
        world.put(child, place + 16, &program);
        world.system.write_words(child, place, &[program.len() as u64 / 8, place + 16]).unwrap();
        let filter = SECCOMP_SET_MODE_FILTER.into();
        assert_eq!(world.now(child, nr::__NR_seccomp, &[filter, 0, place]), Ok(0));
        let is_handled = handler == HANDLER && !is_blocked;
        let _ = world.call(child, nr::__NR_getpid, &[]);
        assert_eq!(world.handles(child), is_handled);
        assert_eq!(world.status(1, child), (!is_handled).then_some(SIGSYS));
    }
}

#[test]
fn strictly_little_is_left() {
    let mut rig = Rig::begun();
    let [reader, writer] = rig.two(nr::__NR_pipe, &[], 0);
    let child = rig.fork();
    let strict = u64::from(SECCOMP_SET_MODE_STRICT);
    assert_eq!(rig.call_by(child, nr::__NR_seccomp, &[strict, 1, 0]), error(EINVAL));
    assert_eq!(rig.call_by(child, nr::__NR_seccomp, &[strict, 0, DATA]), error(EINVAL));
    let mode = u64::from(SECCOMP_MODE_STRICT);
    assert_eq!(rig.call_by(child, nr::__NR_prctl, &[PR_SET_SECCOMP.into(), mode]), 0);
    assert_eq!(rig.call_by(child, nr::__NR_write, &[writer, DATA, 3]), 3);
    assert_eq!(rig.call_by(child, nr::__NR_read, &[reader, DATA, 3]), 3);
    assert_eq!(rig.try_by(child, nr::__NR_getpid, &[]), None);
    assert_eq!(status(&mut rig, child), SIGKILL);
    let child = rig.fork();
    assert_eq!(rig.call_by(child, nr::__NR_seccomp, &[strict, 0, 0]), 0);
    assert_eq!(rig.try_by(child, nr::__NR_exit, &[3]), None);
    assert_eq!(status(&mut rig, child), 3 << 8);
    let child = rig.fork();
    assert_eq!(add(&mut rig, child, 0, &against(1, SECCOMP_RET_ALLOW)), 0);
    assert_eq!(rig.call_by(child, nr::__NR_seccomp, &[strict, 0, 0]), error(EINVAL), "it has filters");
}

#[test]
fn threads_get_a_filter_together() {
    let mut rig = Rig::begun();
    let [reader, _] = rig.two(nr::__NR_pipe, &[], 0);
    let (one, two) = (rig.thread(), rig.thread());
    assert_eq!(rig.try_by(two, nr::__NR_read, &[reader, DATA, 1]), None);
    let all = SECCOMP_FILTER_FLAG_TSYNC;
    assert_eq!(add(&mut rig, FIRST, all, &against(nr::__NR_read, SECCOMP_RET_ERRNO | 5)), 0);
    for tid in [FIRST, one] {
        assert_eq!(rig.call_by(tid, nr::__NR_read, &[reader, DATA, 1]), error(EIO));
    }
    // A call that waits was made before.
    let writer = reader + 1;
    assert_eq!((rig.write(writer, b"x"), rig.answer(two)), (1, Some(1)));
    assert_eq!(rig.call_by(two, nr::__NR_read, &[reader, DATA, 1]), error(EIO));
    // One that has another filter stays apart.
    assert_eq!(add(&mut rig, one, 0, &against(nr::__NR_getuid, SECCOMP_RET_ERRNO | 5)), 0);
    assert_eq!(add(&mut rig, FIRST, all, &against(nr::__NR_getgid, SECCOMP_RET_ERRNO | 5)), one.into());
    assert_eq!(rig.call(nr::__NR_getgid, &[]), 0);
    let tells = all | SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    let refused = add(&mut rig, FIRST, tells, &against(nr::__NR_getgid, SECCOMP_RET_ERRNO | 5));
    assert_eq!(refused, error(crate::errno::ESRCH));
    assert_eq!(add(&mut rig, one, all, &against(nr::__NR_getgid, SECCOMP_RET_ERRNO | 5)), 0);
    assert_eq!(rig.call(nr::__NR_getuid, &[]), error(EIO), "it is a child's of the others' now");
    assert_eq!(rig.call_by(two, nr::__NR_getgid, &[]), error(EIO));
}

#[test]
fn filters_have_limits() {
    let mut rig = Rig::begun();
    let set = u64::from(SECCOMP_SET_MODE_FILTER);
    let call = |rig: &mut Rig, operation: u64, flags: u64, at: u64| {
        rig.call(nr::__NR_seccomp, &[operation, flags, at])
    };
    assert_eq!(call(&mut rig, set, 0, 8), error(EFAULT));
    assert_eq!(call(&mut rig, set, 8, DATA), error(EINVAL), "nobody listens");
    assert_eq!(call(&mut rig, 9, 0, DATA), error(EINVAL));
    for words in [[0, DATA], [4097, DATA], [1 << 16, DATA]] {
        let at = rig.put(&words.map(u64::to_le_bytes).concat());
        assert_eq!(call(&mut rig, set, 0, at), error(EINVAL));
    }
    let at = rig.put(&[1, 8].map(u64::to_le_bytes).concat());
    assert_eq!(call(&mut rig, set, 0, at), error(EFAULT));
    assert_eq!(add(&mut rig, FIRST, 0, &bytes(&[(BPF_LD, 0, 0, 0)])), error(EINVAL));
    let ask = u64::from(SECCOMP_GET_ACTION_AVAIL);
    for (action, expected) in [
        (SECCOMP_RET_ERRNO, 0),
        (SECCOMP_RET_KILL_PROCESS, 0),
        (SECCOMP_RET_USER_NOTIF, error(EOPNOTSUPP)),
        (0x1234_0000, error(EOPNOTSUPP)),
    ] {
        let at = rig.put(&action.to_le_bytes());
        assert_eq!(call(&mut rig, ask, 0, at), expected, "{action:#x}");
    }
    assert_eq!(call(&mut rig, ask, 1, DATA), error(EINVAL));
    let long = bytes(&vec![(RETURN, 0, 0, SECCOMP_RET_ALLOW); 4096]);
    let mut added = 0;
    while add(&mut rig, FIRST, 0, &long) == 0 {
        added += 1;
    }
    assert_eq!(added, 7, "as many as Linux takes");
    assert_eq!(add(&mut rig, FIRST, 0, &long), error(ENOMEM));
    assert_eq!(add(&mut rig, FIRST, 0, &bytes(&[(RETURN, 0, 0, SECCOMP_RET_ALLOW)])), 0);
    rig.system.budget.set_max(rig.system.budget.used() + 100);
    assert_eq!(add(&mut rig, FIRST, 0, &bytes(&[(RETURN, 0, 0, SECCOMP_RET_ALLOW)])), error(ENOMEM));
}
