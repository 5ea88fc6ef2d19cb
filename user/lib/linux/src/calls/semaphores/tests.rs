//! Semaphores of System V. Errors and numbers that are expected are Linux's own.

use crate::calls::rig::{FIRST, Rig};
use crate::calls::time::SECOND;
use crate::errno::{
    E2BIG, EACCES, EAGAIN, EFAULT, EFBIG, EIDRM, EINTR, EINVAL, ENOENT, ENOSPC, ERANGE, Errno,
};
use crate::ipc::numbers::*;
use crate::machine::Tid;
use crate::world::{HANDLER, OWN, World};
use linux_raw_sys::general as nr;
use std::vec;
use std::vec::Vec;

const NOWAIT: i16 = IPC_NOWAIT as i16;
const UNDO: i16 = SEM_UNDO as i16;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

/// A set of so many semaphores.
fn set(rig: &mut Rig, count: u64) -> u64 {
    let id = rig.call(nr::__NR_semget, &[0, count, 0o600]);
    assert!(id >= 0, "{id}");
    id as u64
}

/// Makes a call with operations, each of which is semaphore, change, flags.
fn operate(rig: &mut Rig, tid: Tid, id: u64, operations: &[[i16; 3]]) -> Option<i64> {
    let before = rig.free;
    let bytes: Vec<u8> = operations.iter().flatten().flat_map(|half| half.to_le_bytes()).collect();
    let at = rig.room(bytes.len());
    rig.system.write(tid, at, &bytes).unwrap();
    let done = rig.try_by(tid, nr::__NR_semop, &[id, at, operations.len() as u64]);
    // A call that waits has read them: others may take their place.
    rig.system.write(tid, at, &vec![0xee; bytes.len()]).unwrap();
    rig.free = before;
    done
}

fn control(rig: &mut Rig, id: u64, at: u64, command: u32, value: u64) -> i64 {
    rig.call(nr::__NR_semctl, &[id, at, command.into(), value])
}

fn values(rig: &mut Rig, id: u64, count: u64) -> Vec<i64> {
    (0..count).map(|at| control(rig, id, at, GETVAL, 0)).collect()
}

#[test]
fn operations_are_done_together() {
    let mut rig = Rig::begun();
    let id = set(&mut rig, 3);
    assert_eq!(operate(&mut rig, FIRST, id, &[[0, 2, 0], [1, 1, 0], [0, 0, NOWAIT]]), Some(error(EAGAIN)));
    assert_eq!(values(&mut rig, id, 3), [0, 0, 0]);
    assert_eq!(operate(&mut rig, FIRST, id, &[[0, 2, 0], [1, 1, 0], [0, -1, 0]]), Some(0));
    assert_eq!(values(&mut rig, id, 3), [1, 1, 0]);
    assert_eq!(operate(&mut rig, FIRST, id, &[[0, -1, 0], [0, 0, NOWAIT], [2, 5, 0]]), Some(0));
    assert_eq!(values(&mut rig, id, 3), [0, 1, 5]);
    assert_eq!(operate(&mut rig, FIRST, id, &[[1, 32766, 0], [1, 1, 0]]), Some(error(ERANGE)));
    assert_eq!(operate(&mut rig, FIRST, id, &[[3, 1, 0]]), Some(error(EFBIG)));
    assert_eq!(operate(&mut rig, FIRST, id, &[]), Some(error(EINVAL)));
    assert_eq!(operate(&mut rig, FIRST, 99, &[[0, 0, 0]]), Some(error(EINVAL)));
    assert_eq!(rig.call(nr::__NR_semop, &[id, 8, 1]), error(EFAULT));
    assert_eq!(rig.call(nr::__NR_semop, &[id, 8, 501]), error(E2BIG));
    let child = rig.fork();
    assert_eq!(operate(&mut rig, child, id, &[[2, 0, NOWAIT]]), Some(error(EAGAIN)));
    assert_eq!(operate(&mut rig, child, id, &[[0, 0, 0]]), Some(0));
    let last: Vec<i64> = (0..3).map(|at| control(&mut rig, id, at, GETPID, 0)).collect();
    assert_eq!(last, [i64::from(child), 1, 1]);
}

#[test]
fn who_has_waited_longest_comes_first() {
    let mut rig = Rig::begun();
    let id = set(&mut rig, 2);
    let [one, two, three] = [rig.fork(), rig.fork(), rig.fork()];
    // The first wants both, the second gives one and wants another, the third wants the one that the second gives.
    assert_eq!(operate(&mut rig, one, id, &[[0, -1, 0], [1, -1, 0]]), None);
    assert_eq!(operate(&mut rig, two, id, &[[0, -1, 0], [1, 1, 0], [0, 1, 0]]), None);
    assert_eq!(operate(&mut rig, three, id, &[[1, -1, 0]]), None);
    let waiters = |rig: &mut Rig, command| (control(rig, id, 0, command, 0), control(rig, id, 1, command, 0));
    assert_eq!(waiters(&mut rig, GETNCNT), (2, 1));
    assert_eq!(waiters(&mut rig, GETZCNT), (0, 0));
    assert_eq!(operate(&mut rig, FIRST, id, &[[0, 1, 0]]), Some(0));
    assert_eq!((rig.answer(two), rig.answer(one), rig.answer(three)), (Some(0), Some(0), None));
    assert_eq!(values(&mut rig, id, 2), [0, 0]);
    assert_eq!(operate(&mut rig, FIRST, id, &[[1, 1, 0]]), Some(0));
    assert_eq!(rig.answer(three), Some(0));
    // One that wants more keeps nobody from less.
    assert_eq!(operate(&mut rig, one, id, &[[0, -3, 0]]), None);
    assert_eq!(operate(&mut rig, two, id, &[[0, -1, 0]]), None);
    assert_eq!(operate(&mut rig, three, id, &[[1, 1, 0], [0, 0, 0], [1, 0, 0]]), None);
    assert_eq!((waiters(&mut rig, GETNCNT), waiters(&mut rig, GETZCNT)), ((2, 0), (0, 1)));
    assert_eq!(operate(&mut rig, FIRST, id, &[[0, 2, 0]]), Some(0));
    assert_eq!((rig.answer(one), rig.answer(two)), (None, Some(0)));
    assert_eq!(control(&mut rig, id, 0, SETVAL, 3), 0);
    assert_eq!((rig.answer(one), values(&mut rig, id, 2)), (Some(0), vec![0, 0]));
    // A set that is removed is nobody's.
    assert_eq!(control(&mut rig, id, 0, IPC_RMID, 0), 0);
    assert_eq!(rig.answer(three), Some(error(EIDRM)));
    assert_eq!(control(&mut rig, id, 0, GETVAL, 0), error(EINVAL));
}

/// A thread that waits has what it had asked for, and was allowed, when its call was made: neither its memory nor permissions are looked at once more.
#[test]
fn operations_are_read_and_allowed_once() {
    let mut rig = Rig::begun();
    let id = rig.call(nr::__NR_semget, &[0, 2, 0o664]) as u64;
    assert_eq!(operate(&mut rig, FIRST, id, &[[0, 1, 0]]), Some(0));
    let [reader, taker, long] = [rig.fork(), rig.fork(), rig.fork()];
    // The one may only look, the other is of the group.
    assert_eq!(rig.call_by(reader, nr::__NR_setgid, &[7]), 0);
    assert_eq!(rig.call_by(reader, nr::__NR_setuid, &[5]), 0);
    assert_eq!(rig.call_by(taker, nr::__NR_setuid, &[6]), 0);
    let list = rig.room(6);
    rig.system.write(reader, list, &[0i16, 0, 0].map(i16::to_le_bytes).concat()).unwrap();
    assert_eq!(rig.try_by(reader, nr::__NR_semop, &[id, list, 1]), None);
    rig.system.write(reader, list, &[0i16, 7, 0].map(i16::to_le_bytes).concat()).unwrap();
    assert_eq!(operate(&mut rig, FIRST, id, &[[0, -1, 0]]), Some(0));
    assert_eq!((rig.answer(reader), values(&mut rig, id, 2)), (Some(0), vec![0, 0]));
    assert_eq!(rig.call_by(reader, nr::__NR_semop, &[id, list, 1]), error(EACCES));
    assert_eq!(operate(&mut rig, taker, id, &[[1, -1, 0]]), None);
    let used = rig.system.budget.used();
    assert_eq!(operate(&mut rig, long, id, &[[1, -2, 0]; 500]), None);
    assert!(rig.system.budget.used() >= used + 4000, "a long list counts");
    let nobody = [[0u32, 9, 9, 0, 0, 0].map(u32::to_le_bytes).concat(), vec![0; 80]].concat();
    let nobody = rig.put(&nobody);
    assert_eq!(control(&mut rig, id, 0, IPC_SET, nobody), 0);
    assert_eq!(operate(&mut rig, FIRST, id, &[[1, 1, 0]]), Some(0));
    assert_eq!((rig.answer(taker), values(&mut rig, id, 2)), (Some(0), vec![0, 0]));
    assert_eq!(operate(&mut rig, taker, id, &[[1, -1, 0]]), Some(error(EACCES)));
    assert_eq!(control(&mut rig, id, 1, GETNCNT, 0), 1);
    assert_eq!(rig.call(nr::__NR_kill, &[long.into(), nr::SIGKILL.into()]), 0);
    assert_eq!(control(&mut rig, id, 1, GETNCNT, 0), 0);
}

/// One call lets as many go on as can, in whatever order they have come: each changes what the one before it waits for.
#[test]
fn one_operation_lets_a_row_of_others_go_on() {
    let mut rig = Rig::begun();
    let id = set(&mut rig, 2);
    let row: Vec<Tid> = (0..40).map(|_| rig.fork()).collect();
    for (place, tid) in (1..=40).rev().zip(&row) {
        // From exactly that value to the next. The one that is to be the last comes first.
        assert_eq!(operate(&mut rig, *tid, id, &[[0, -place, 0], [0, 0, 0], [0, place + 1, 0]]), None);
    }
    assert_eq!(control(&mut rig, id, 0, GETNCNT, 0), 40);
    assert_eq!(operate(&mut rig, FIRST, id, &[[0, 1, 0]]), Some(0));
    assert!(row.iter().all(|tid| rig.answer(*tid) == Some(0)));
    assert_eq!(values(&mut rig, id, 2), [41, 0]);
    // The one that is looked at first waits for the zero that the last one leaves.
    let [zero, one, two] = [row[0], row[1], row[2]];
    assert_eq!(operate(&mut rig, zero, id, &[[0, 0, 0], [1, 3, 0]]), None);
    assert_eq!(operate(&mut rig, one, id, &[[0, -41, 0], [1, -1, 0]]), None);
    assert_eq!(operate(&mut rig, two, id, &[[1, -2, 0]]), None);
    // The reason of a wait is told as it is now.
    assert_eq!((control(&mut rig, id, 0, GETNCNT, 0), control(&mut rig, id, 1, GETNCNT, 0)), (0, 2));
    assert_eq!(operate(&mut rig, FIRST, id, &[[1, 1, 0]]), Some(0));
    assert_eq!([zero, one, two].map(|tid| rig.answer(tid)), [Some(0); 3]);
    assert_eq!(values(&mut rig, id, 2), [0, 1]);
}

/// A process that stands still has its operations done, as in Linux, and hears of it when it goes on. So it does of the end of a set, whatever has its number by then.
#[test]
fn who_stands_still_is_served() {
    let mut rig = Rig::begun();
    let (id, other) = (set(&mut rig, 1), set(&mut rig, 1));
    let [one, two] = [rig.fork(), rig.fork()];
    assert_eq!(operate(&mut rig, one, id, &[[0, -1, 0]]), None);
    assert_eq!(operate(&mut rig, two, other, &[[0, -1, 0]]), None);
    for tid in [one, two] {
        assert_eq!(rig.call(nr::__NR_kill, &[tid.into(), nr::SIGSTOP.into()]), 0);
    }
    assert_eq!(operate(&mut rig, FIRST, id, &[[0, 1, 0]]), Some(0));
    assert_eq!(values(&mut rig, id, 1), [0]);
    assert_eq!(control(&mut rig, other, 0, IPC_RMID, 0), 0);
    assert_eq!([one, two].map(|tid| rig.answer(tid)), [None; 2]);
    for tid in [one, two] {
        assert_eq!(rig.call(nr::__NR_kill, &[tid.into(), nr::SIGCONT.into()]), 0);
    }
    assert_eq!([one, two].map(|tid| rig.answer(tid)), [Some(0), Some(error(EIDRM))]);
}

#[test]
fn the_end_of_a_process_takes_back_what_it_has_done() {
    let mut rig = Rig::begun();
    let id = set(&mut rig, 2);
    assert_eq!(control(&mut rig, id, 0, SETVAL, 5), 0);
    let [child, other] = [rig.fork(), rig.fork()];
    assert_eq!(operate(&mut rig, child, id, &[[0, -3, UNDO], [1, 1, UNDO]]), Some(0));
    assert_eq!(operate(&mut rig, child, id, &[[0, -1, UNDO]]), Some(0));
    assert_eq!(operate(&mut rig, child, id, &[[0, 1, 0]]), Some(0), "that stays");
    assert_eq!(values(&mut rig, id, 2), [2, 1]);
    let grandchild = rig.call_by(child, nr::__NR_fork, &[]) as Tid;
    assert_eq!(rig.try_by(grandchild, nr::__NR_exit_group, &[0]), None);
    assert_eq!(values(&mut rig, id, 2), [2, 1], "a copy takes nothing back");
    assert_eq!(operate(&mut rig, other, id, &[[0, -6, 0]]), None);
    // Another program of the same process does.
    rig.system.write(child, rig.free, b"/bin/test\0").unwrap();
    assert_eq!(rig.try_by(child, nr::__NR_execve, &[rig.free, 0, 0]), Some(0));
    assert_eq!(operate(&mut rig, FIRST, id, &[[1, -1, 0]]), Some(0));
    assert_eq!(rig.try_by(child, nr::__NR_exit_group, &[0]), None);
    assert_eq!(rig.answer(other), Some(0));
    assert_eq!(values(&mut rig, id, 2), [0, 0], "none is below 0");
    assert_eq!(control(&mut rig, id, 1, GETPID, 0), child.into());
    // Values that somebody sets are not changed by what was before.
    let child = rig.fork();
    assert_eq!(operate(&mut rig, child, id, &[[0, 4, UNDO], [1, 4, UNDO]]), Some(0));
    assert_eq!(control(&mut rig, id, 0, SETVAL, 9), 0);
    assert_eq!(rig.try_by(child, nr::__NR_exit_group, &[0]), None);
    assert_eq!(values(&mut rig, id, 2), [9, 0]);
    let child = rig.fork();
    assert_eq!(operate(&mut rig, child, id, &[[0, -9, UNDO], [0, 32_767, UNDO]]), Some(0));
    assert_eq!(operate(&mut rig, child, id, &[[0, -32_767, 0]]), Some(0));
    assert_eq!(operate(&mut rig, child, id, &[[0, 32_767, UNDO]]), Some(error(ERANGE)));
    assert_eq!(values(&mut rig, id, 2), [0, 0]);
}

#[test]
fn waits_end_at_a_time() {
    let mut rig = Rig::begun();
    let id = set(&mut rig, 1);
    let child = rig.fork();
    let operations = rig.room(6);
    let minus_one = [0i16, -1, 0].map(i16::to_le_bytes).concat();
    for tid in [FIRST, child] {
        rig.system.write(tid, operations, &minus_one).unwrap();
    }
    let time = rig.put(&[2u64, 5].map(u64::to_le_bytes).concat());
    rig.system.write_words(child, time, &[2, 5]).unwrap();
    let call = [id, operations, 1, time];
    assert_eq!(rig.try_by(child, nr::__NR_semtimedop, &call), None);
    rig.pass(2 * SECOND);
    assert_eq!(rig.answer(child), None);
    rig.pass(5);
    assert_eq!(rig.answer(child), Some(error(EAGAIN)));
    assert_eq!(rig.try_by(child, nr::__NR_semtimedop, &call), None);
    assert_eq!(control(&mut rig, id, 0, SETVAL, 2), 0);
    assert_eq!(rig.answer(child), Some(0));
    rig.pass(3 * SECOND);
    assert_eq!(values(&mut rig, id, 1), [1]);
    rig.system.write_words(child, time, &[0, SECOND]).unwrap();
    assert_eq!(rig.try_by(child, nr::__NR_semtimedop, &call), Some(error(EINVAL)));
    rig.system.write_words(child, time, &[0, 0]).unwrap();
    assert_eq!(rig.try_by(child, nr::__NR_semtimedop, &call), Some(0));
    assert_eq!(rig.try_by(child, nr::__NR_semtimedop, &call), Some(error(EAGAIN)));
}

/// A handler ends a wait, whatever its action says.
#[test]
fn handlers_end_waits_for_good() {
    let mut world = World::new();
    let id = world.now(1, nr::__NR_semget, &[0, 1, 0o600]).unwrap();
    let child = world.fork(1);
    let restarts = [HANDLER, (nr::SA_RESTORER | nr::SA_RESTART).into(), HANDLER + 64, 0];
    world.system.write_words(child, OWN, &restarts).unwrap();
    world.now(child, nr::__NR_rt_sigaction, &[nr::SIGUSR1.into(), OWN, 0, 8]).unwrap();
    world.put(child, OWN, &[0i16, -1, 0].map(i16::to_le_bytes).concat());
    assert_eq!(world.call(child, nr::__NR_semop, &[id, OWN, 1]), None);
    world.now(1, nr::__NR_kill, &[child.into(), nr::SIGUSR1.into()]).unwrap();
    assert!(world.handles(child));
    assert_eq!(world.now(1, nr::__NR_semctl, &[id, 0, GETNCNT.into()]), Ok(0));
    // The result is in the frame of the handler: that call is not made again.
    world.now(1, nr::__NR_semctl, &[id, 0, SETVAL.into(), 1]).unwrap();
    assert_eq!(world.now(1, nr::__NR_semctl, &[id, 0, GETVAL.into()]), Ok(1));
    let registers = crate::machine::Registers { rax: nr::__NR_semop.into(), ..Default::default() };
    let action = crate::signal::Action { flags: nr::SA_RESTART.into(), ..Default::default() };
    assert!(!crate::again::is_made_again(registers.rax, &registers, action), "{EINTR:?}");
}

#[test]
fn values_are_set_and_told() {
    let mut rig = Rig::begun();
    let id = set(&mut rig, 3);
    let at = rig.put(&[1u16, 2, 32767].map(u16::to_le_bytes).concat());
    assert_eq!(control(&mut rig, id, 0, SETALL, at), 0);
    let to = rig.room(6);
    assert_eq!(control(&mut rig, id, 0, GETALL, to), 0);
    assert_eq!(rig.get(FIRST, to, 6), rig.get(FIRST, at, 6));
    let large = rig.put(&[1u16, 32768, 3].map(u16::to_le_bytes).concat());
    assert_eq!(control(&mut rig, id, 0, SETALL, large), error(ERANGE));
    assert_eq!(control(&mut rig, id, 0, SETALL, 8), error(EFAULT));
    assert_eq!(control(&mut rig, id, 0, SETVAL, u64::MAX), error(ERANGE));
    assert_eq!(control(&mut rig, id, 3, SETVAL, 1), error(EINVAL));
    assert_eq!(control(&mut rig, id, u64::MAX, GETVAL, 1), error(EINVAL));
    assert_eq!(control(&mut rig, id, 0, 99, 1), error(EINVAL));
    assert_eq!(values(&mut rig, id, 3), [1, 2, 32767]);
    let at = rig.room(104);
    assert_eq!(control(&mut rig, id, 0, IPC_STAT, at), 0);
    let [used, _, changed, _, count] = rig.system.words(FIRST, at + 48).unwrap();
    assert_eq!((used, changed, count), (0, 1_700_000_000, 3));
    let child = rig.fork();
    assert_eq!(rig.call_by(child, nr::__NR_setuid, &[5]), 0);
    for command in [GETVAL, GETALL, SETVAL, SETALL, IPC_STAT, GETPID, GETNCNT] {
        let denied = rig.call_by(child, nr::__NR_semctl, &[id, 0, command.into(), 0]);
        assert_eq!(denied, error(EACCES), "{command}");
    }
    assert_eq!(operate(&mut rig, child, id, &[[0, 1, 0]]), Some(error(EACCES)));
    assert_eq!(operate(&mut rig, child, id, &[[3, 1, 0]]), Some(error(EFBIG)));
}

#[test]
fn sets_have_limits() {
    let mut rig = Rig::begun();
    let get =
        |rig: &mut Rig, key: u64, count: u64, flags: u64| rig.call(nr::__NR_semget, &[key, count, flags]);
    let create = u64::from(IPC_CREAT) | 0o600;
    assert_eq!(get(&mut rig, 7, 0, create), error(EINVAL));
    assert_eq!(get(&mut rig, 7, 32_001, create), error(EINVAL));
    assert_eq!(get(&mut rig, 7, u64::MAX, create), error(EINVAL));
    assert_eq!(get(&mut rig, 7, 1, 0), error(ENOENT));
    let id = get(&mut rig, 7, 3, create);
    assert_eq!((get(&mut rig, 7, 0, 0), get(&mut rig, 7, 3, 0)), (id, id));
    assert_eq!(get(&mut rig, 7, 4, 0), error(EINVAL));
    let at = rig.room(40);
    assert_eq!(control(&mut rig, 0, 0, IPC_INFO, at), 0);
    let halves: Vec<u32> = (0..10).map(|index| rig.half(at + 4 * index)).collect();
    assert_eq!(halves, [256_000, 1024, 256_000, 256_000, 32_000, 500, 500, 20, 32_767, 32_767]);
    assert_eq!(control(&mut rig, 0, 0, SEM_INFO, at), 0);
    assert_eq!((rig.half(at + 28), rig.half(at + 36)), (1, 3));
    let mut made = 0;
    while get(&mut rig, 0, 32_000, create) >= 0 {
        made += 1;
    }
    assert_eq!(get(&mut rig, 0, 32_000, create), error(ENOSPC));
    assert!((4..8).contains(&made), "{made}");
    rig.system.budget.set_max(rig.system.budget.used() + 100);
    assert_eq!(operate(&mut rig, FIRST, id as u64, &[[0, 1, UNDO]]), Some(error(crate::errno::ENOMEM)));
    assert_eq!(values(&mut rig, id as u64, 3), [0, 0, 0]);
}

/// A thread that only looks is not passed over by those that take what is free at once.
#[test]
fn who_changes_nothing_comes_first() {
    let mut rig = Rig::begun();
    let id = set(&mut rig, 1);
    let [lock, look] = [rig.fork(), rig.fork()];
    assert_eq!(operate(&mut rig, FIRST, id, &[[0, 1, 0]]), Some(0));
    assert_eq!(operate(&mut rig, lock, id, &[[0, 0, 0], [0, 1, 0]]), None);
    assert_eq!(operate(&mut rig, look, id, &[[0, 0, 0]]), None);
    assert_eq!(operate(&mut rig, FIRST, id, &[[0, -1, 0]]), Some(0));
    assert_eq!((rig.answer(look), rig.answer(lock), values(&mut rig, id, 1)), (Some(0), Some(0), vec![1]));
}
