//! Niceness and classes. Numbers that are expected are Linux's own.

use super::{IDLE_SHARE, USUAL_SHARE, Wishes};
use crate::calls::rig::{FIRST, Rig};
use crate::errno::{E2BIG, EACCES, EINVAL, EPERM, ESRCH, Errno};
use linux_raw_sys::general::*;

/// Owner of nothing.
const SOMEBODY: u64 = 1000;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn nice(rig: &mut Rig, tid: u32, of: u32, niceness: i32) -> i64 {
    rig.call_by(tid, __NR_setpriority, &[PRIO_PROCESS.into(), of.into(), niceness as u32 as u64])
}

fn niceness(rig: &mut Rig, kind: u32, number: u32) -> i64 {
    20 - rig.call(__NR_getpriority, &[kind.into(), number.into()])
}

/// Makes somebody of a process who is not root.
fn leave_root(rig: &mut Rig, tid: u32, owner: u64) {
    assert_eq!(rig.call_by(tid, __NR_setresuid, &[owner, owner, owner]), 0);
}

#[test]
fn each_step_is_a_quarter_more() {
    let share = |niceness| Wishes { niceness, ..Wishes::USUAL }.share();
    assert_eq!((share(0), share(1), share(-1)), (USUAL_SHARE, 819, 1280));
    assert!((-20..19).all(|niceness| share(niceness) > share(niceness + 1)));
    assert!(share(19) > 0 && share(-20) > 80 * USUAL_SHARE);
    assert_eq!(Wishes { class: SCHED_IDLE, niceness: -20, ..Wishes::USUAL }.share(), IDLE_SHARE);
}

#[test]
fn threads_are_nice_one_by_one_and_their_children_with_them() {
    let mut rig = Rig::begun();
    let thread = rig.thread();
    assert_eq!(nice(&mut rig, FIRST, thread, 5), 0);
    assert_eq!((niceness(&mut rig, PRIO_PROCESS, thread), niceness(&mut rig, PRIO_PROCESS, 0)), (5, 0));
    assert_eq!(
        rig.system.machine.shares.get(&thread),
        Some(&Wishes { niceness: 5, ..Wishes::USUAL }.share())
    );
    assert_eq!(nice(&mut rig, FIRST, 0, 7), 0);
    let (child, other) = (rig.fork(), rig.thread());
    for new in [child, other] {
        assert_eq!(niceness(&mut rig, PRIO_PROCESS, new), 7);
        assert!(rig.system.machine.shares[&new] < USUAL_SHARE, "a new thread has its share before it runs");
    }
    assert_eq!(nice(&mut rig, FIRST, 0, 0), 0);
    assert_eq!(rig.system.machine.shares[&FIRST], USUAL_SHARE);
    // Numbers beyond the last are the last.
    assert_eq!((nice(&mut rig, FIRST, 0, 99), niceness(&mut rig, PRIO_PROCESS, 0)), (0, 19));
    assert_eq!((nice(&mut rig, FIRST, 0, -99), niceness(&mut rig, PRIO_PROCESS, 0)), (0, -20));
    let stat = rig.open(&std::format!("/proc/{FIRST}/stat")) as u64;
    let line = std::string::String::from_utf8(rig.read(stat, 999).unwrap()).unwrap();
    assert_eq!(line.split(' ').skip(17).take(2).collect::<std::vec::Vec<_>>(), ["0", "-20"]);
}

#[test]
fn groups_and_owners_are_asked_as_one() {
    let mut rig = Rig::begun();
    let [one, two] = [rig.fork(), rig.fork()];
    assert_eq!(rig.call_by(two, __NR_setpgid, &[0, 0]), 0);
    leave_root(&mut rig, two, SOMEBODY);
    let group = rig.call(__NR_getpgid, &[0]) as u64;
    assert_eq!(rig.call(__NR_setpriority, &[PRIO_PGRP.into(), 0, 3]), 0);
    let all = [FIRST, one, two].map(|of| niceness(&mut rig, PRIO_PROCESS, of));
    assert_eq!(all, [3, 3, 0]);
    assert_eq!(nice(&mut rig, FIRST, one, 1), 0);
    assert_eq!(niceness(&mut rig, PRIO_PGRP, group as u32), 1, "the least of all");
    assert_eq!(rig.call(__NR_setpriority, &[PRIO_USER.into(), SOMEBODY, 9]), 0);
    let all = [FIRST, one, two].map(|of| niceness(&mut rig, PRIO_PROCESS, of));
    assert_eq!((all, niceness(&mut rig, PRIO_USER, 0)), ([3, 1, 9], 1));
    for (kind, number, expected) in [
        (PRIO_PROCESS, 9999, ESRCH),
        (PRIO_PGRP, 9999, ESRCH),
        (PRIO_USER, 9999, ESRCH),
        (3, 0, EINVAL),
        (u32::MAX, 0, EINVAL),
    ] {
        assert_eq!(rig.call(__NR_getpriority, &[kind.into(), number]), error(expected));
        assert_eq!(rig.call(__NR_setpriority, &[kind.into(), number, 0]), error(expected));
    }
}

#[test]
fn nobody_takes_what_is_others() {
    let mut rig = Rig::begun();
    let [own, other] = [rig.fork(), rig.fork()];
    leave_root(&mut rig, own, SOMEBODY);
    leave_root(&mut rig, other, SOMEBODY + 1);
    assert_eq!(nice(&mut rig, own, other, 5), error(EPERM));
    assert_eq!(nice(&mut rig, own, FIRST, 5), error(EPERM));
    assert_eq!(nice(&mut rig, own, 0, 5), 0);
    assert_eq!(nice(&mut rig, own, 0, 5), 0, "no less");
    assert_eq!(nice(&mut rig, own, 0, 4), error(EACCES));
    assert_eq!(nice(&mut rig, own, 0, 6), 0);
    // A limit of 20 less the niceness, which root gives.
    let limit = rig.put([15u64, 15].map(u64::to_le_bytes).as_flattened());
    assert_eq!(rig.call(__NR_prlimit64, &[own.into(), RLIMIT_NICE.into(), limit, 0]), 0);
    assert_eq!([5, 4].map(|to| nice(&mut rig, own, 0, to)), [0, error(EACCES)]);
    // All of an owner's: those that may be are set, and one that may not is told.
    assert_eq!(rig.call_by(own, __NR_setpriority, &[PRIO_PGRP.into(), 0, 8]), error(EPERM));
    assert_eq!((niceness(&mut rig, PRIO_PROCESS, own), niceness(&mut rig, PRIO_PROCESS, FIRST)), (8, 0));
}

#[test]
fn classes_are_kept_and_none_comes_before_all_others() {
    let mut rig = Rig::begun();
    let none = rig.put(&[0; 16]);
    let one = rig.put(&1u32.to_le_bytes());
    assert_eq!(rig.call(__NR_sched_getscheduler, &[0]), 0);
    assert_eq!(rig.call(__NR_sched_getscheduler, &[77]), error(ESRCH));
    assert_eq!(rig.call(__NR_sched_getscheduler, &[u64::MAX]), error(EINVAL));
    let to = rig.put(&9u32.to_le_bytes());
    assert_eq!((rig.call(__NR_sched_getparam, &[0, to]), rig.half(to)), (0, 0));
    let marked = u64::from(SCHED_BATCH | SCHED_RESET_ON_FORK);
    assert_eq!(rig.call(__NR_sched_setscheduler, &[0, marked, none]), 0);
    assert_eq!(rig.call(__NR_sched_getscheduler, &[0]), marked as i64);
    assert_eq!(rig.call(__NR_sched_setparam, &[0, none]), 0);
    assert_eq!(rig.call(__NR_sched_getscheduler, &[0]), marked as i64, "a parameter leaves the class");
    assert_eq!(nice(&mut rig, FIRST, 0, -5), 0);
    let child = rig.fork();
    assert_eq!(rig.call(__NR_sched_getscheduler, &[child.into()]), SCHED_BATCH.into());
    assert_eq!(niceness(&mut rig, PRIO_PROCESS, child), 0, "it gets no more than usual");
    assert_eq!(rig.call(__NR_sched_setscheduler, &[0, SCHED_NORMAL.into(), one]), error(EINVAL));
    assert_eq!(rig.call(__NR_sched_setscheduler, &[0, SCHED_FIFO.into(), one]), error(EPERM));
    assert_eq!(rig.call(__NR_sched_setscheduler, &[0, 4, none]), error(EINVAL));
    assert_eq!(rig.call(__NR_sched_setparam, &[0, one]), error(EINVAL));
    let ends = |rig: &mut Rig, policy: u32| {
        [__NR_sched_get_priority_min, __NR_sched_get_priority_max]
            .map(|call| rig.call(call, &[policy.into()]))
    };
    assert_eq!((ends(&mut rig, SCHED_RR), ends(&mut rig, SCHED_NORMAL)), ([1, 99], [0, 0]));
    assert_eq!(ends(&mut rig, 9), [error(EINVAL); 2]);
    assert_eq!(rig.call(__NR_sched_rr_get_interval, &[0, none]), 0);
    // An idle thread gets no more by a class, and nobody sheds the mark.
    leave_root(&mut rig, child, SOMEBODY);
    assert_eq!(rig.call(__NR_sched_setscheduler, &[child.into(), SCHED_IDLE.into(), none]), 0);
    assert_eq!(rig.system.machine.shares[&child], IDLE_SHARE);
    let normal = [0, SCHED_NORMAL.into(), none];
    assert_eq!(rig.call_by(child, __NR_sched_setscheduler, &normal), error(EPERM));
    assert_eq!(rig.call_by(child, __NR_sched_setscheduler, &[FIRST.into(), 0, none]), error(EPERM));
    assert_eq!(rig.call(__NR_sched_setscheduler, &[child.into(), u64::from(SCHED_RESET_ON_FORK), none]), 0);
    assert_eq!(rig.call_by(child, __NR_sched_setscheduler, &normal), error(EPERM));
    assert_eq!(rig.call(__NR_sched_setscheduler, &[child.into(), 0, none]), 0);
}

#[test]
fn attributes_have_the_niceness_too() {
    let mut rig = Rig::begun();
    let set = |rig: &mut Rig, size: u32, class: u32, flags: u32, niceness: i32, priority: u32| {
        let words = [size, class, flags, 0, niceness as u32, priority].map(u32::to_le_bytes);
        let at = rig.put(words.as_flattened());
        rig.call(__NR_sched_setattr, &[0, at, 0])
    };
    assert_eq!(set(&mut rig, 48, SCHED_BATCH, SCHED_FLAG_RESET_ON_FORK, 7, 0), 0);
    let to = rig.room(48);
    assert_eq!(rig.call(__NR_sched_getattr, &[0, to, 48, 0]), 0);
    let halves = [0, 4, 8, 16, 20].map(|offset| rig.half(to + offset));
    assert_eq!(halves, [48, SCHED_BATCH, 1, 7, 0]);
    assert_eq!(set(&mut rig, 0, SCHED_NORMAL, 0, -99, 0), 0);
    assert_eq!(niceness(&mut rig, PRIO_PROCESS, 0), -20);
    assert_eq!(set(&mut rig, 48, SCHED_FIFO, SCHED_FLAG_KEEP_POLICY | SCHED_FLAG_KEEP_PARAMS, 5, 1), 0);
    assert_eq!(niceness(&mut rig, PRIO_PROCESS, 0), -20, "all is kept");
    assert_eq!(set(&mut rig, 47, SCHED_NORMAL, 0, 0, 0), error(E2BIG));
    assert_eq!(set(&mut rig, 5000, SCHED_NORMAL, 0, 0, 0), error(E2BIG));
    assert_eq!(set(&mut rig, 48, SCHED_NORMAL, 2, 0, 0), error(EINVAL), "time of who has a deadline");
    assert_eq!(set(&mut rig, 48, SCHED_NORMAL, 0, 0, 1), error(EINVAL));
    for (len, flags) in [(47, 0), (4097, 0), (48, 1)] {
        assert_eq!(rig.call(__NR_sched_getattr, &[0, to, len, flags]), error(EINVAL));
    }
}

#[test]
fn priorities_of_io_are_told_back() {
    let mut rig = Rig::begun();
    let (child, set) = (rig.fork(), |rig: &mut Rig, tid: u32, of: u32, class: u64, level: u64| {
        rig.call_by(tid, __NR_ioprio_set, &[1, of.into(), class << 13 | level])
    });
    assert_eq!(rig.call(__NR_ioprio_get, &[1, 0]), 0);
    assert_eq!(set(&mut rig, FIRST, child, 3, 7), 0);
    assert_eq!(rig.call(__NR_ioprio_get, &[1, child.into()]), 3 << 13 | 7);
    assert_eq!(rig.call(__NR_ioprio_get, &[2, 0]), 2 << 13 | 4, "the best of a group");
    assert_eq!(set(&mut rig, FIRST, 0, 0, 1), error(EINVAL));
    assert_eq!(set(&mut rig, FIRST, 0, 2, 8), error(EINVAL));
    assert_eq!(set(&mut rig, FIRST, 0, 4, 0), error(EINVAL));
    assert_eq!(set(&mut rig, FIRST, 9999, 2, 0), error(ESRCH));
    assert_eq!(rig.call(__NR_ioprio_get, &[0, 0]), error(EINVAL));
    leave_root(&mut rig, child, SOMEBODY);
    assert_eq!(set(&mut rig, child, FIRST, 2, 0), error(EPERM));
    assert_eq!(set(&mut rig, child, 0, 1, 0), error(EPERM));
    assert_eq!(set(&mut rig, child, 0, 2, 1), 0);
}
