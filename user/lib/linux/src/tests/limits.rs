//! Programs that ask for too much, or for what makes no sense: each test is named after what was possible once.

use super::world::{CODE, DATA, Did, World, executable};
use crate::errno::{EACCES, EFAULT, EINVAL, ENOENT, ENOEXEC, ENOMEM, EOVERFLOW, ESRCH};
use crate::frames::PAGE;
use crate::memory::REGIONS_MAX;
use crate::process::PROCESSES_MAX;
use linux_raw_sys::general::{self as nr, MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, MAP_SHARED};
use std::vec::Vec;
use vfs::How;

const PRIVATE: u64 = (MAP_PRIVATE | MAP_ANONYMOUS) as u64;

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
    let times = world.put_words(1, 512, &[u64::MAX, 999_999, i64::MAX as u64, 999_999]);
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

/// Maps private memory of zeros. Where.
fn map(world: &mut World, at: u64, len: u64, rights: u64) -> Did {
    let fixed = if at == 0 { 0 } else { u64::from(MAP_FIXED) };
    world.call(1, nr::__NR_mmap, &[at, len, rights, PRIVATE | fixed, u64::MAX, 0])
}

#[test]
fn children_that_nobody_waits_for_are_few() {
    let mut world = world();
    let mut children = 1;
    loop {
        match world.call(1, nr::__NR_fork, &[]) {
            Did::Value(child) if child > 0 => {
                assert_eq!(world.call(child as u32, nr::__NR_exit, &[0]), Did::Gone);
            }
            other => {
                assert_eq!(other, Did::Value(-11));
                break;
            }
        }
        children += 1;
    }
    assert_eq!(children, PROCESSES_MAX);
    let ended: Vec<_> = world.system.processes.values().filter(|process| process.ended.is_some()).collect();
    assert!(ended.len() > 100 && ended.iter().all(|process| process.arguments[0].is_empty()));
    // A new one has a number that none of them has.
    for _ in 0..40_000 {
        let child = world.good(1, nr::__NR_wait4, &[u64::MAX, 0, 0, 0]);
        let next = world.good(1, nr::__NR_fork, &[]);
        assert!(child > 1 && next > 1);
        assert_eq!(world.call(next as u32, nr::__NR_exit, &[0]), Did::Gone);
    }
    world.check();
}

#[test]
fn regions_of_a_process_are_so_many() {
    let mut world = world();
    let len = 2 * (REGIONS_MAX as u64 + 100) * PAGE;
    let Did::Value(at) = map(&mut world, 0, len, 0) else { panic!("no room") };
    let count = |world: &World| world.system.processes[&1].room.borrow().memory.regions().count();
    let mut page = at as u64;
    while world.call(1, nr::__NR_mprotect, &[page, PAGE, 1]) == Did::Value(0) {
        page += 2 * PAGE;
    }
    assert!((REGIONS_MAX - 2..=REGIONS_MAX).contains(&count(&world)), "{}", count(&world));
    assert_eq!(world.bad(1, nr::__NR_mprotect, &[page + PAGE, PAGE, 1]), ENOMEM);
    while world.call(1, nr::__NR_munmap, &[page + 4 * PAGE, PAGE]) == Did::Value(0) {
        page += 2 * PAGE;
    }
    assert_eq!(count(&world), REGIONS_MAX);
    // Less is always possible, and then more.
    world.good(1, nr::__NR_munmap, &[at as u64, 64 * PAGE]);
    world.good(1, nr::__NR_mprotect, &[page, PAGE, 1]);
    let child = world.good(1, nr::__NR_fork, &[]) as u32;
    assert_eq!(world.call(child, nr::__NR_exit, &[0]), Did::Gone);
    world.good(1, nr::__NR_munmap, &[at as u64, len]);
    assert!(count(&world) < 10);
}

/// A move that fails for want of regions has taken nothing: pages of the process are where they were, and frames are somebody's.
#[test]
fn a_move_that_cannot_be_loses_no_pages() {
    let mut world = world();
    let (from, to, holes) = (0x1000_0000, 0x2000_0000, 0x4000_0000);
    map(&mut world, from, 3 * PAGE, 3);
    map(&mut world, to, 3 * PAGE, 0);
    map(&mut world, holes, 2 * (REGIONS_MAX as u64 + 100) * PAGE, 0);
    let count = |world: &World| world.system.processes[&1].room.borrow().memory.regions().count();
    for hole in 1..=(REGIONS_MAX - 2 - count(&world)) as u64 {
        world.good(1, nr::__NR_munmap, &[holes + 2 * hole * PAGE, PAGE]);
    }
    assert_eq!(count(&world), REGIONS_MAX - 2);
    world.system.write(1, from + PAGE, b"text").unwrap();
    let used = world.system.store.frames.used();
    let how = u64::from(nr::MREMAP_MAYMOVE | nr::MREMAP_FIXED);
    assert_eq!(world.bad(1, nr::__NR_mremap, &[from + PAGE, PAGE, PAGE, how, to + PAGE]), ENOMEM);
    let mut bytes = [0; 4];
    world.system.read(1, from + PAGE, &mut bytes).unwrap();
    assert_eq!(&bytes, b"text");
    world.good(1, nr::__NR_munmap, &[from, 3 * PAGE]);
    assert_eq!(world.system.store.frames.used(), used - 1);
}

#[test]
fn tables_of_all_memories_have_a_limit() {
    let mut world = World::new(2048, 64);
    let len = 2 * REGIONS_MAX as u64 * PAGE;
    let Did::Value(at) = map(&mut world, 0, len, 0) else { panic!("no room") };
    for page in 0..REGIONS_MAX as u64 / 2 - 10 {
        world.good(1, nr::__NR_mprotect, &[at as u64 + 2 * page * PAGE, PAGE, 1]);
    }
    let mut children = 0;
    while let Did::Value(1..) = world.call(1, nr::__NR_fork, &[]) {
        children += 1;
    }
    assert!((3..10).contains(&children), "{children}");
    world.check();
}

#[test]
fn a_page_here_and_there_takes_little() {
    let mut world = world();
    let Did::Value(at) = map(&mut world, 0, 1 << 40, 3) else { panic!("no room") };
    let used = world.system.store.frames.used();
    for page in 0..1000 {
        world.system.write(1, at as u64 + (page << 25), b"x").unwrap();
    }
    assert_eq!(world.system.store.frames.used() - used, 1000);
    world.good(1, nr::__NR_madvise, &[at as u64, 1 << 40, 4]);
    assert_eq!(world.system.store.frames.used(), used);
}

#[test]
fn what_can_be_written_can_be_read() {
    let mut world = world();
    for (rights, is_readable) in [(0, false), (1, true), (2, true), (4, true), (6, true)] {
        let Did::Value(at) = map(&mut world, 0, PAGE, rights) else { panic!("no room") };
        assert_eq!(world.system.read(1, at as u64, &mut [0]).is_ok(), is_readable);
        assert_eq!(world.system.write(1, at as u64, &[0]).is_ok(), rights & 2 != 0);
    }
}

#[test]
fn a_file_that_is_read_is_not_written_through_a_mapping() {
    let mut world = world();
    let (reads, writes) = (open(&mut world, "/file", 0), open(&mut world, "/file", 2));
    let shared = u64::from(MAP_SHARED);
    let at = world.good(1, nr::__NR_mmap, &[0, 2 * PAGE, 1, shared, reads, 0]);
    assert_eq!(world.bad(1, nr::__NR_mprotect, &[at + PAGE, PAGE, 3]), EACCES);
    assert_eq!(world.bad(1, nr::__NR_mmap, &[0, PAGE, 3, shared, reads, 0]), EACCES);
    world.good(1, nr::__NR_mprotect, &[at, PAGE, 0]);
    assert_eq!(world.bad(1, nr::__NR_mprotect, &[at, PAGE, 2]), EACCES);
    // It is the same when it was read before.
    let at = world.good(1, nr::__NR_mmap, &[0, PAGE, 1, shared, writes, 2 * PAGE]);
    world.system.read(1, at, &mut [0]).unwrap();
    world.good(1, nr::__NR_mprotect, &[at, PAGE, 3]);
    world.system.write(1, at, b"late").unwrap();
    world.good(1, nr::__NR_msync, &[at, PAGE, nr::MS_SYNC.into()]);
    let root = world.system.store.root;
    let inode = world.system.store.volume.open(root, b"/file", How::default(), 0).unwrap();
    let mut bytes = [0; 4];
    world.system.store.volume.read(inode, 2 * PAGE, &mut bytes).unwrap();
    assert_eq!(&bytes, b"late");
    // A copy of it may be written, and so may the file by those who can.
    let own = world.good(1, nr::__NR_mmap, &[0, PAGE, 1, MAP_PRIVATE.into(), reads, 0]);
    world.good(1, nr::__NR_mprotect, &[own, PAGE, 3]);
    let at = world.good(1, nr::__NR_mmap, &[0, PAGE, 1, shared, writes, 0]);
    world.good(1, nr::__NR_mprotect, &[at, PAGE, 3]);
    world.system.write(1, at, b"new").unwrap();
    world.good(1, nr::__NR_munmap, &[at, PAGE]);
    world.system.store.volume.read(inode, 0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"newf");
}

#[test]
fn mapped_files_are_closed() {
    let mut world = world();
    let before = world.system.store.volume.open_count();
    for round in 0..400 {
        let path = std::format!("/tmp/{round}");
        world.file(path.as_bytes(), b"text");
        let fd = open(&mut world, &path, 2);
        let at = world.good(1, nr::__NR_mmap, &[0, PAGE, 3, u64::from(MAP_SHARED), fd, 0]);
        assert_eq!(world.system.write(1, at, b"T"), Ok(()));
        world.good(1, nr::__NR_close, &[fd]);
        if round % 100 > 0 {
            world.good(1, nr::__NR_munmap, &[at, PAGE]);
        }
        let path = world.put(1, 0, path.as_bytes());
        world.good(1, nr::__NR_unlink, &[path]);
        assert!(world.system.store.volume.open_count() < before + 140);
        if round == 399 {
            let mut bytes = [0; 4];
            world.system.read(1, at - PAGE, &mut bytes).unwrap_err();
        }
    }
    let files = world.system.processes[&1].room.borrow().memory.files().len();
    assert_eq!(files, 5);
}

#[test]
fn files_that_are_mapped_stay_while_programs_begin() {
    let mut world = world();
    let mut mapped = Vec::new();
    for round in 0..80 {
        let path = std::format!("/tmp/{round}");
        world.file(path.as_bytes(), b"text");
        let fd = open(&mut world, &path, 0);
        mapped.push(world.good(1, nr::__NR_mmap, &[0, PAGE, 1, u64::from(MAP_SHARED), fd, 0]));
    }
    let child = world.good(1, nr::__NR_fork, &[]) as u32;
    let path = world.put(child, 0, b"/program");
    world.call(child, nr::__NR_execve, &[path, 0, 0]);
    let mut bytes = [0; 4];
    for at in mapped {
        world.system.read(1, at, &mut bytes).unwrap();
        assert_eq!(&bytes, b"text");
    }
    world.system.read(child, CODE, &mut bytes).unwrap();
    assert_eq!(&bytes, b"\x7fELF");
}

#[test]
fn mincore_goes_through_what_is_mapped() {
    let mut world = world();
    let Did::Value(at) = map(&mut world, 0, 1 << 33, 0) else { panic!("no room") };
    let at = at as u64;
    assert_eq!(world.bad(1, nr::__NR_mincore, &[at, 1 << 33, DATA]), ENOMEM);
    assert_eq!(world.bad(1, nr::__NR_mincore, &[1 << 20, PAGE, DATA]), ENOMEM);
    assert_eq!(world.bad(1, nr::__NR_mincore, &[at, 1 << 24, u64::MAX]), EFAULT);
    world.good(1, nr::__NR_mincore, &[at, 5000 * PAGE, DATA]);
    let mut bytes = [0; 5001];
    world.system.read(1, DATA, &mut bytes).unwrap();
    assert!(bytes[..5000].iter().all(|byte| *byte == 1) && bytes[5000] == 0);
    assert_eq!(world.bad(1, nr::__NR_mincore, &[at, 1 << 32, DATA]), EFAULT);
}

#[test]
fn texts_of_proc_are_kept_nowhere() {
    let mut world = world();
    let fd = open(&mut world, "/proc/self/maps", 0);
    let read = |world: &mut World, len: u64| world.good(1, nr::__NR_pread64, &[fd, DATA, len, 0]);
    let before = read(&mut world, 4096);
    map(&mut world, 0x1000_0000, PAGE, 1);
    assert!(read(&mut world, 4096) > before, "it is read as it is now");
    for page in 0..30_000 {
        map(&mut world, 0x1000_0000 + 2 * page * PAGE, PAGE, 1);
    }
    let len = world.good(1, nr::__NR_lseek, &[fd, 0, 2]);
    assert!((1 << 20..(1 << 20) + 200).contains(&len));
    let child = world.good(1, nr::__NR_fork, &[]) as u32;
    let fd = open(&mut world, &std::format!("/proc/{child}/stat"), 0);
    world.good(1, nr::__NR_kill, &[child.into(), 9]);
    world.good(1, nr::__NR_wait4, &[u64::MAX, 0, 0, 0]);
    assert_eq!(world.bad(1, nr::__NR_read, &[fd, DATA, 100]), ESRCH);
}

#[test]
fn a_first_process_begins_after_one_that_could_not() {
    let mut world = world();
    let store = std::mem::replace(&mut world, World::new(1, 1)).system.store;
    let mut system = crate::system::System::new(super::world::Below::default(), store, 16);
    assert_eq!(system.begin(b"/nothing", Vec::new(), &[], b""), Err(ENOENT));
    system.begin(b"/program", Vec::from([b"program".to_vec()]), &[], b"").unwrap();
    system.settle();
    // Nothing tells it of the end of the other one's terminal.
    assert!(system.ended.is_none() && system.processes.contains_key(&1));
}
