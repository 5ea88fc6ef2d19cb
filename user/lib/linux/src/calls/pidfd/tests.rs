//! `clone3`, and descriptors of processes, as programs see them. Numbers that are expected are Linux's own.

use crate::calls::rig::{DATA, FIRST, Rig};
use crate::errno::{E2BIG, EAGAIN, EBADF, ECHILD, EFAULT, EINVAL, EPERM, ESRCH, Errno};
use crate::machine::Tid;
use linux_raw_sys::general::{
    self as nr, CLONE_CLEAR_SIGHAND, CLONE_INTO_CGROUP, CLONE_PIDFD, CLONE_SIGHAND, CLONE_THREAD,
    CLONE_VFORK, CLONE_VM, EPOLL_CTL_ADD, EPOLLIN, O_NONBLOCK, POLLIN, POLLRDNORM, SIGCHLD, SIGKILL, SIGUSR1,
    WEXITED, WNOHANG,
};
use std::vec::Vec;

const READ: u32 = POLLIN | POLLRDNORM;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

/// Arguments: flags, where the descriptor goes, signal; and further words from the stack on.
fn arguments(rig: &mut Rig, flags: u64, pidfd: u64, signal: u64, more: &[u64]) -> u64 {
    let mut words = Vec::from([flags, pidfd, 0, 0, signal]);
    words.extend(more);
    words.resize(8.max(words.len()), 0);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    rig.put(&bytes)
}

fn clone3(rig: &mut Rig, flags: u64, signal: u64, more: &[u64]) -> i64 {
    let at = arguments(rig, flags, 0, signal, more);
    rig.call(nr::__NR_clone3, &[at, 64.max(8 * (5 + more.len() as u64))])
}

/// A child with a descriptor of it.
fn child(rig: &mut Rig) -> (Tid, u64) {
    let to = rig.room(4);
    let at = arguments(rig, CLONE_PIDFD.into(), to, SIGCHLD.into(), &[]);
    let child = rig.call(nr::__NR_clone3, &[at, 64]);
    assert!(child > 0, "{child}");
    (child as Tid, rig.half(to).into())
}

fn wait(rig: &mut Rig, fd: u64, options: u32) -> Option<i64> {
    rig.try_by(FIRST, nr::__NR_waitid, &[nr::P_PIDFD.into(), fd, 0, options.into(), 0])
}

#[test]
fn a_structure_has_sizes() {
    let mut rig = Rig::begun();
    let at = arguments(&mut rig, 0, 0, SIGCHLD.into(), &[0, 0, 0, 0, 0, 0, 0, 7]);
    for (len, outcome) in [(56, EINVAL), (0, EINVAL), (104, E2BIG), (4097, E2BIG), (u64::MAX, E2BIG)] {
        assert_eq!(rig.call(nr::__NR_clone3, &[at, len]), error(outcome), "{len}");
    }
    assert_eq!(rig.call(nr::__NR_clone3, &[8, 64]), error(EFAULT));
    for len in [64, 80, 88, 96] {
        assert!(rig.call(nr::__NR_clone3, &[at, len]) > 0, "{len}");
    }
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let mut rig = Rig::begun();
    for flags in [1 << 34, CLONE_INTO_CGROUP, 0x11, u64::from(nr::CLONE_DETACHED), 1 << 63] {
        assert_eq!(clone3(&mut rig, flags, 0, &[]), error(EINVAL), "{flags:x}");
    }
    let thread = u64::from(CLONE_VM | CLONE_SIGHAND | CLONE_THREAD);
    assert_eq!(clone3(&mut rig, thread | CLONE_CLEAR_SIGHAND, 0, &[]), error(EINVAL));
    assert_eq!(clone3(&mut rig, thread | u64::from(CLONE_PIDFD), 0, &[]), error(EINVAL));
    assert_eq!(clone3(&mut rig, thread, SIGCHLD.into(), &[]), error(EINVAL));
    assert_eq!(clone3(&mut rig, thread & !u64::from(CLONE_VM), 0, &[]), error(EINVAL));
    assert_eq!(clone3(&mut rig, 0, 65, &[]), error(EINVAL));
    assert_eq!(clone3(&mut rig, nr::CLONE_NEWPID.into(), 17, &[]), error(EPERM));
    assert_eq!(clone3(&mut rig, nr::CLONE_NEWTIME.into(), 17, &[]), error(EPERM));
    // A stack has both, and numbers of threads are chosen by nobody.
    assert_eq!(clone3(&mut rig, 0, 17, &[DATA, 0]), error(EINVAL));
    assert_eq!(clone3(&mut rig, 0, 17, &[0, 4096]), error(EINVAL));
    assert_eq!(clone3(&mut rig, 0, 17, &[u64::MAX, 4096]), error(EINVAL));
    assert_eq!(clone3(&mut rig, 0, 17, &[0, 0, 0, DATA, 0]), error(EINVAL));
    assert_eq!(clone3(&mut rig, 0, 17, &[0, 0, 0, DATA, 1]), error(EPERM));
}

#[test]
fn threads_and_processes_are_made() {
    let mut rig = Rig::begun();
    let flags = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | nr::CLONE_PARENT_SETTID | nr::CLONE_CHILD_CLEARTID;
    let to = rig.room(4);
    let words = [u64::from(flags), 0, to, to, 0, DATA + 4096, 4096, 0].map(u64::to_le_bytes).concat();
    let at = rig.put(&words);
    let thread = rig.call(nr::__NR_clone3, &[at, 88]) as Tid;
    assert_eq!(rig.half(to), thread);
    assert_eq!(rig.try_by(thread, nr::__NR_exit, &[0]), None);
    assert_eq!(rig.half(to), 0);
    // A child that has its parent's memory, and no handlers.
    let action = rig.put(&[0x5000u64, 0, 0, 0].map(u64::to_le_bytes).concat());
    assert_eq!(rig.call(nr::__NR_rt_sigaction, &[SIGUSR1.into(), action, 0, 8]), 0);
    rig.ignore(nr::SIGUSR2);
    let at = arguments(&mut rig, u64::from(CLONE_VM | CLONE_VFORK) | CLONE_CLEAR_SIGHAND, 0, 17, &[]);
    assert_eq!(rig.try_by(FIRST, nr::__NR_clone3, &[at, 88]), None);
    let child = *rig.system.processes.keys().last().unwrap();
    let actions = rig.system.processes.get(&child).unwrap().actions;
    assert_eq!([SIGUSR1, nr::SIGUSR2].map(|signal| actions[signal as usize - 1].handler), [0, 1]);
    assert_eq!(rig.try_by(child, nr::__NR_exit_group, &[0]), None);
    assert_eq!(rig.answer(FIRST), Some(child.into()));
}

#[test]
fn a_descriptor_tells_of_the_end() {
    let mut rig = Rig::begun();
    let (child, fd) = child(&mut rig);
    let list = rig.call(nr::__NR_epoll_create1, &[0]) as u64;
    let event = rig.put(&[&EPOLLIN.to_le_bytes()[..], &7u64.to_le_bytes()].concat());
    assert_eq!(rig.call(nr::__NR_epoll_ctl, &[list, EPOLL_CTL_ADD.into(), fd, event]), 0);
    assert_eq!((rig.poll(fd), rig.call_by(child, nr::__NR_close, &[fd])), (0, error(EBADF)));
    assert_eq!(wait(&mut rig, fd, WEXITED | WNOHANG), Some(0));
    let to = rig.room(24);
    assert_eq!(rig.try_by(FIRST, nr::__NR_epoll_wait, &[list, to, 2, u64::MAX]), None);
    assert_eq!(rig.try_by(child, nr::__NR_exit_group, &[3]), None);
    assert_eq!((rig.answer(FIRST), rig.half(to)), (Some(1), EPOLLIN));
    assert_eq!(rig.poll(fd), READ);
    let other = rig.call(nr::__NR_pidfd_open, &[child.into(), 0]) as u64;
    let info = rig.room(128);
    assert_eq!(rig.call(nr::__NR_waitid, &[nr::P_PIDFD.into(), fd, info, WEXITED.into(), 0]), 0);
    assert_eq!([8, 16, 24].map(|at| rig.half(info + at)), [1, child, 3]);
    assert_eq!((wait(&mut rig, other, WEXITED), rig.poll(other)), (Some(error(ECHILD)), READ));
    assert_eq!(rig.call(nr::__NR_pidfd_send_signal, &[other, 0, 0, 0]), error(ESRCH));
    assert_eq!(rig.call(nr::__NR_pidfd_open, &[child.into(), 0]), error(ESRCH));
    assert_eq!(rig.read(fd, 9), Err(error(EINVAL)));
}

#[test]
fn a_process_that_has_the_number_later_is_not_meant() {
    let mut rig = Rig::begun();
    let (child, fd) = child(&mut rig);
    assert_eq!(rig.call(nr::__NR_pidfd_send_signal, &[fd, SIGKILL.into(), 0, 0]), 0);
    assert_eq!(wait(&mut rig, fd, WEXITED), Some(0));
    rig.system.next = child - 1;
    assert_eq!(rig.fork(), child);
    assert_eq!(rig.call(nr::__NR_pidfd_send_signal, &[fd, SIGKILL.into(), 0, 0]), error(ESRCH));
    assert_eq!(rig.poll(fd), READ);
    let new = rig.call(nr::__NR_pidfd_open, &[child.into(), O_NONBLOCK.into()]) as u64;
    assert_eq!((rig.poll(new), wait(&mut rig, new, WEXITED)), (0, Some(error(EAGAIN))));
}

#[test]
fn signals_have_causes_that_are_true() {
    let mut rig = Rig::begun();
    let (child, fd) = child(&mut rig);
    let set = rig.put(&(1u64 << (SIGUSR1 - 1)).to_le_bytes());
    let bytes = rig.get(FIRST, set, 8);
    rig.system.write(child, set, &bytes).unwrap();
    assert_eq!(rig.call_by(child, nr::__NR_rt_sigprocmask, &[0, set, 0, 8]), 0);
    let mut info = [0u64, 0, 1 | 1000 << 32, 77];
    info[0] = SIGUSR1.into();
    let mut send = |rig: &mut Rig, number: u32, code: i32, call: &[u64]| {
        info[1] = u64::from(code as u32);
        let at = rig.put(&info.map(u64::to_le_bytes).concat());
        let mut all = call.to_vec();
        all.push(at);
        rig.call(number, &all)
    };
    let by_fd = [fd, SIGUSR1.into()];
    let by_pid = [child.into(), SIGUSR1.into()];
    assert_eq!(send(&mut rig, nr::__NR_pidfd_send_signal, 0, &by_fd), error(EPERM));
    assert_eq!(send(&mut rig, nr::__NR_pidfd_send_signal, nr::SI_TKILL, &by_fd), error(EPERM));
    assert_eq!(send(&mut rig, nr::__NR_pidfd_send_signal, -1, &[fd, 10 + 1]), error(EINVAL));
    assert_eq!(send(&mut rig, nr::__NR_rt_sigqueueinfo, 5, &by_pid), error(EPERM));
    assert_eq!(send(&mut rig, nr::__NR_rt_sigqueueinfo, -1, &by_pid), 0);
    let to = rig.room(128);
    assert_eq!(rig.call_by(child, nr::__NR_rt_sigtimedwait, &[set, to, 0, 8]), SIGUSR1.into());
    let words = rig.get(child, to, 32);
    assert_eq!(&words[8..12], &(-1i32).to_le_bytes());
    assert_eq!((&words[16..24], words[24]), (&(1u64 | 1000 << 32).to_le_bytes()[..], 77));
    assert_eq!(send(&mut rig, nr::__NR_rt_tgsigqueueinfo, -1, &[child.into(), child.into(), 10]), 0);
    assert_eq!(rig.call_by(child, nr::__NR_rt_sigtimedwait, &[set, to, 0, 8]), SIGUSR1.into());
    assert_eq!(rig.call(nr::__NR_pidfd_send_signal, &[0, 9, 0, 0]), error(EBADF));
    assert_eq!(rig.call(nr::__NR_pidfd_send_signal, &[fd, 9, 0, 1]), error(EINVAL));
    assert_eq!(rig.call(nr::__NR_pidfd_open, &[0, 0]), error(EINVAL));
    let thread = rig.thread();
    assert_eq!(rig.call(nr::__NR_pidfd_open, &[thread.into(), 0]), error(EINVAL));
    // Descriptors of the process can be had by it.
    let taken = rig.call(nr::__NR_pidfd_getfd, &[fd, 0, 0]);
    assert!(taken > 0);
    assert_eq!(rig.call(nr::__NR_pidfd_getfd, &[fd, 99, 0]), error(EBADF));
}

/// The directory of a process in `/proc` stands for it when a signal is sent, as long as it is there.
#[test]
fn directories_of_processes_take_signals() {
    let mut rig = Rig::begun();
    let child = rig.fork();
    let open = |rig: &mut Rig, path: &str| {
        let at = rig.put(&[path.as_bytes(), &[0]].concat());
        rig.call(nr::__NR_open, &[at, nr::O_DIRECTORY.into(), 0]) as u64
    };
    let [directory, other] =
        [std::format!("/proc/{child}"), "/proc".into()].map(|path| open(&mut rig, &path));
    let send = |rig: &mut Rig, fd: u64, signal: u32| {
        rig.call(nr::__NR_pidfd_send_signal, &[fd, signal.into(), 0, 0])
    };
    assert_eq!((send(&mut rig, directory, 0), send(&mut rig, other, 0)), (0, error(EBADF)));
    assert_eq!(rig.call(nr::__NR_pidfd_getfd, &[directory, 0, 0]), error(EBADF));
    assert_eq!(send(&mut rig, directory, SIGKILL), 0);
    assert_eq!(rig.call(nr::__NR_wait4, &[child.into(), 0, WNOHANG.into(), 0]), child.into());
    assert_eq!(send(&mut rig, directory, SIGKILL), error(ESRCH));
}
