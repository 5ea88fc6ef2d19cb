//! Programs that ask for too much, or for what makes no sense: each test is named after what was possible once.

use super::world::{CODE, DATA, Did, World, executable};
use crate::errno::{EINVAL, ENOEXEC, EOVERFLOW};
use crate::frames::PAGE;
use linux_raw_sys::general::{self as nr, MAP_SHARED};

/// A world with room.
fn world() -> World {
    World::new(2048, 16)
}

/// Opens a path in the first process.
fn open(world: &mut World, path: &str, flags: u32) -> u64 {
    let at = world.put(1, 0, path.as_bytes());
    world.good(1, nr::__NR_open, &[at, flags.into(), 0o644])
}

#[test]
fn a_child_ends_with_a_signal_that_there_is() {
    let mut world = world();
    assert_eq!(world.bad(1, nr::__NR_clone, &[65, 0, 0, 0, 0]), EINVAL);
    assert_eq!(world.bad(1, nr::__NR_clone, &[255, 0, 0, 0, 0]), EINVAL);
    let child = world.good(1, nr::__NR_clone, &[64, 0, 0, 0, 0]) as u32;
    assert_eq!(world.call(child, nr::__NR_exit, &[0]), Did::Gone);
}

#[test]
fn a_mapping_ends_where_a_file_can() {
    let mut world = world();
    let fd = open(&mut world, "/file", 0);
    let shared = u64::from(MAP_SHARED);
    for offset in [u64::MAX - PAGE + 1, 1 << 63, i64::MAX as u64 - PAGE + 1] {
        assert_eq!(world.bad(1, nr::__NR_mmap, &[0, 2 * PAGE, 1, shared, fd, offset]), EOVERFLOW);
    }
    let at = world.good(1, nr::__NR_mmap, &[0, PAGE, 1, shared, fd, i64::MAX as u64 + 1 - 2 * PAGE]);
    world.good(1, nr::__NR_mremap, &[at, PAGE, 1 << 40, 1]);
}

#[test]
fn executables_wrap_around_nowhere() {
    let mut world = world();
    let high = 0x7000_0000_0000;
    let heads = [
        // Where it would have to be is below zero.
        executable(3, high, &[(5, 0, high, PAGE, PAGE)]),
        executable(3, u64::MAX - 5, &[(5, 0, 0, PAGE, PAGE)]),
        executable(2, CODE, &[(5, 0, CODE, PAGE, u64::MAX - CODE)]),
        executable(2, CODE, &[(5, 1 << 63, CODE, PAGE, PAGE)]),
        executable(2, CODE, &[(5, 0, CODE, 2 * PAGE, PAGE)]),
    ];
    for head in heads {
        world.file(b"/bad", &head);
        let path = world.put(1, 0, b"/bad");
        assert_eq!(world.bad(1, nr::__NR_execve, &[path, 0, 0]), ENOEXEC);
    }
    let mut tables = executable(3, 0, &[(5, 0, 0, PAGE, PAGE), (6, 0, u64::MAX - 3, 0, 0)]);
    // The second says where the headers are.
    tables[64 + 56] = 6;
    world.file(b"/bad", &tables);
    let path = world.put(1, 0, b"/bad");
    assert_eq!(world.bad(1, nr::__NR_execve, &[path, 0, 0]), ENOEXEC);
    world.check();
}

#[test]
fn frames_of_signals_wrap_around() {
    for top in [0, 8, 128, 1000, u64::MAX - 10, 1 << 63] {
        let mut world = world();
        let child = world.good(1, nr::__NR_fork, &[]) as u32;
        let action = world.put_words(child, 0, &[CODE, u64::from(nr::SA_ONSTACK), 0, 0]);
        world.good(child, nr::__NR_rt_sigaction, &[10, action, 0, 8]);
        let stack = world.put_words(child, 0, &[top, 0, 4096]);
        world.good(child, nr::__NR_sigaltstack, &[stack, 0]);
        assert_eq!(world.call(child, nr::__NR_kill, &[child.into(), 10]), Did::Gone);
        world.check();
    }
}

#[test]
fn times_are_as_late_as_can_be() {
    let mut world = world();
    let times = world.put_words(1, 512, &[u64::MAX, u64::MAX, i64::MAX as u64, 999_999]);
    let path = world.put(1, 0, b"/file");
    for number in [nr::__NR_utimes, nr::__NR_utime] {
        world.good(1, number, &[path, times]);
        world.good(1, nr::__NR_stat, &[path, DATA + 1024]);
    }
    world.pass(u64::MAX / 2);
    world.good(1, nr::__NR_alarm, &[u32::MAX.into()]);
    let timer = world.put_words(1, 0, &[i64::MAX as u64, 1, i64::MAX as u64, 1]);
    world.good(1, nr::__NR_setitimer, &[0, timer, 0]);
    world.pass(u64::MAX / 4);
    let timer = world.put_words(1, 0, &[i64::MAX as u64, 1, 0, 1]);
    let set = world.put_words(1, 64, &[1 << 13]);
    world.good(1, nr::__NR_rt_sigprocmask, &[0, set, 0, 8]);
    world.good(1, nr::__NR_setitimer, &[0, timer, 0]);
    world.pass(1_000_000);
    assert_eq!(world.good(1, nr::__NR_getpid, &[]), 1);
}

#[test]
fn timers_leave_time_for_others() {
    let mut world = world();
    let set = world.put_words(1, 64, &[1 << 13]);
    world.good(1, nr::__NR_rt_sigprocmask, &[0, set, 0, 8]);
    let timer = world.put_words(1, 0, &[0, 1, 0, 1]);
    world.good(1, nr::__NR_setitimer, &[0, timer, 0]);
    world.pass(1000);
    let wake = world.system.machine.wake.unwrap();
    assert_eq!(wake, world.system.machine.now + 1_000_000);
    world.good(1, nr::__NR_getitimer, &[0, DATA]);
    assert_eq!(world.system.words(1, DATA).unwrap(), [0, 1000]);
}
