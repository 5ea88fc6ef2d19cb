//! Segments of shared memory. Errors and numbers that are expected are Linux's own.

use crate::calls::rig::{DATA, FIRST, Rig};
use crate::errno::{EACCES, EEXIST, EINVAL, ENOENT, ENOSPC, EPERM, Errno};
use crate::frames::PAGE;
use crate::ipc::numbers::*;
use crate::machine::Tid;
use crate::memory::{Fault, Rights};
use linux_raw_sys::general as nr;
use std::vec::Vec;

const KEY: u64 = 0x1234;
const CREATE: u64 = (IPC_CREAT | 0o600) as u64;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn get(rig: &mut Rig, key: u64, len: u64, flags: u64) -> i64 {
    rig.call(nr::__NR_shmget, &[key, len, flags])
}

fn attach(rig: &mut Rig, tid: Tid, id: i64, flags: u32) -> u64 {
    let at = rig.call_by(tid, nr::__NR_shmat, &[id as u64, 0, flags.into()]);
    assert!(at > 0, "{at}");
    at as u64
}

fn control(rig: &mut Rig, tid: Tid, id: i64, command: u32, at: u64) -> i64 {
    rig.call_by(tid, nr::__NR_shmctl, &[id as u64, command.into(), at])
}

/// Mode, length, attachments, maker and last process of a segment.
fn told(rig: &mut Rig, id: i64) -> (u32, u64, u64, u32, u32) {
    let at = rig.room(112);
    assert_eq!(control(rig, FIRST, id, IPC_STAT, at), 0);
    let bytes = rig.get(FIRST, at, 112);
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    (half(20), half(48).into(), half(88).into(), half(80), half(84))
}

fn put(rig: &mut Rig, tid: Tid, at: u64, byte: u8) {
    rig.system.write(tid, at, &[byte]).unwrap();
}

fn frames(rig: &Rig) -> (usize, usize, usize) {
    let frames = &rig.system.store.frames;
    (frames.used(), frames.object_count(), rig.system.kept.ipc.lasting.bytes())
}

fn exit(rig: &mut Rig, tid: Tid) {
    assert_eq!(rig.try_by(tid, nr::__NR_exit_group, &[0]), None);
    assert_eq!(rig.call(nr::__NR_wait4, &[tid.into(), 0, 0, 0]), tid.into());
}

#[test]
fn a_segment_is_found_by_its_key() {
    let mut rig = Rig::begun();
    assert_eq!(get(&mut rig, KEY, 5000, 0o600), error(ENOENT));
    let id = get(&mut rig, KEY, 5000, CREATE);
    assert_eq!(id, 0);
    assert_eq!(get(&mut rig, KEY, 100, 0), id);
    assert_eq!(get(&mut rig, KEY, 5001, 0), error(EINVAL), "it is shorter");
    assert_eq!(get(&mut rig, KEY, 5000, CREATE | u64::from(IPC_EXCL)), error(EEXIST));
    assert_eq!(get(&mut rig, KEY + 1, 0, CREATE), error(EINVAL));
    assert_eq!(get(&mut rig, KEY + 1, 1, CREATE | u64::from(SHM_HUGETLB)), error(EINVAL));
    let one = get(&mut rig, 0, 1, 0o600);
    assert_eq!((one, get(&mut rig, 0, 1, 0o600)), (1, 2), "nobody finds these");
    assert_eq!(told(&mut rig, id), (0o600, 5000, 0, FIRST, 0));
    assert_eq!(control(&mut rig, FIRST, 1, IPC_RMID, 0), 0);
    assert_eq!(control(&mut rig, FIRST, 1, IPC_RMID, 0), error(EINVAL));
    assert_eq!(control(&mut rig, FIRST, -1, IPC_RMID, 0), error(EINVAL));
}

#[test]
fn all_that_attach_a_segment_see_it() {
    let mut rig = Rig::begun();
    let id = get(&mut rig, KEY, 3 * PAGE, CREATE);
    rig.put(b"a page that is used");
    let before = frames(&rig);
    let at = attach(&mut rig, FIRST, id, 0);
    let child = rig.fork();
    let there = attach(&mut rig, child, id, SHM_RDONLY);
    assert_ne!(at, there);
    put(&mut rig, FIRST, at + PAGE, 7);
    assert_eq!(rig.get(child, at + PAGE, 1), [7], "a copy has it");
    assert_eq!(rig.get(child, there + PAGE, 1), [7]);
    assert_eq!(rig.system.fault(child, there, Rights::WRITE), Err(Fault::Denied));
    let all = u64::from(nr::PROT_READ | nr::PROT_WRITE);
    assert_eq!(rig.call_by(child, nr::__NR_mprotect, &[there, PAGE, all]), error(EACCES));
    assert_eq!(rig.system.fault(child, at + 3 * PAGE, Rights::READ), Err(Fault::Nothing));
    assert_eq!(told(&mut rig, id), (0o600, 3 * PAGE, 3, FIRST, child));
    assert_eq!(rig.call_by(child, nr::__NR_shmdt, &[there + PAGE]), error(EINVAL));
    assert_eq!(rig.call_by(child, nr::__NR_shmdt, &[there + 1]), error(EINVAL));
    assert_eq!(rig.call_by(child, nr::__NR_shmdt, &[there]), 0);
    assert_eq!(told(&mut rig, id).2, 2);
    // A hole in it makes two pieces, which go together.
    assert_eq!(rig.call_by(child, nr::__NR_munmap, &[at + PAGE, PAGE]), 0);
    assert_eq!(told(&mut rig, id).2, 3);
    assert_eq!(rig.call_by(child, nr::__NR_shmdt, &[at]), 0);
    assert_eq!(told(&mut rig, id).2, 1);
    assert_eq!(rig.call_by(child, nr::__NR_shmdt, &[at]), error(EINVAL));
    exit(&mut rig, child);
    assert_eq!(rig.call(nr::__NR_shmdt, &[at]), 0);
    // Bytes that were written stay without anybody.
    assert_eq!(frames(&rig), (before.0 + 1, before.1, before.2));
    let at = attach(&mut rig, FIRST, id, 0);
    assert_eq!(rig.get(FIRST, at + PAGE, 1), [7]);
}

#[test]
fn a_removed_segment_goes_with_the_last_that_has_it() {
    let mut rig = Rig::begun();
    rig.put(b"a page that is used");
    let before = frames(&rig);
    let id = get(&mut rig, KEY, 2 * PAGE, CREATE);
    let at = attach(&mut rig, FIRST, id, 0);
    put(&mut rig, FIRST, at, 5);
    let child = rig.fork();
    assert_eq!(control(&mut rig, FIRST, id, IPC_RMID, 0), 0);
    assert_eq!(get(&mut rig, KEY, 1, 0), error(ENOENT), "its key is another one's");
    assert_eq!(told(&mut rig, id), (0o600 | SHM_DEST, 2 * PAGE, 2, FIRST, FIRST));
    assert_eq!(rig.call(nr::__NR_shmdt, &[at]), 0);
    assert_eq!(control(&mut rig, FIRST, id, IPC_RMID, 0), 0);
    let again = attach(&mut rig, FIRST, id, 0);
    assert_eq!(rig.get(FIRST, again, 1), [5], "it can be attached by its identifier");
    assert_eq!(rig.call(nr::__NR_munmap, &[again, 2 * PAGE]), 0);
    assert_eq!(told(&mut rig, id).2, 1);
    // Another program has no segments.
    let path = rig.put(b"/bin/test\0");
    rig.system.write(child, path, b"/bin/test\0").unwrap();
    assert_eq!(rig.try_by(child, nr::__NR_execve, &[path, 0, 0]), Some(0));
    assert_eq!(control(&mut rig, FIRST, id, IPC_STAT, DATA), error(EINVAL));
    exit(&mut rig, child);
    assert_eq!(frames(&rig), before);
}

/// A removed segment takes its own place: it is not lost in between.
#[test]
fn a_removed_segment_is_attached_over_itself() {
    let mut rig = Rig::begun();
    rig.put(b"a page that is used");
    let before = frames(&rig);
    let id = get(&mut rig, KEY, 2 * PAGE, CREATE);
    let at = attach(&mut rig, FIRST, id, 0);
    put(&mut rig, FIRST, at + PAGE, 6);
    assert_eq!(control(&mut rig, FIRST, id, IPC_RMID, 0), 0);
    for _ in 0..2 {
        let again = rig.call(nr::__NR_shmat, &[id as u64, at, SHM_REMAP.into()]);
        assert_eq!(again, at as i64);
        assert_eq!((rig.get(FIRST, at + PAGE, 1), told(&mut rig, id).2), (Vec::from([6]), 1));
    }
    // A call that fails takes nothing away.
    let denied = rig.call(nr::__NR_shmat, &[id as u64, 1 << 47, SHM_REMAP.into()]);
    assert_eq!(denied, error(crate::errno::ENOMEM));
    assert_eq!(rig.get(FIRST, at + PAGE, 1), [6]);
    let child = rig.fork();
    assert_eq!(rig.call_by(child, nr::__NR_shmdt, &[at]), 0);
    put(&mut rig, FIRST, at, 7);
    assert_eq!(rig.call(nr::__NR_shmdt, &[at]), 0);
    assert_eq!(control(&mut rig, FIRST, id, IPC_STAT, DATA), error(EINVAL));
    exit(&mut rig, child);
    assert_eq!(frames(&rig), before);
}

/// Rights that differ from page to page make as many pieces. They go together, and nothing else goes with them.
#[test]
fn a_segment_in_thousands_of_pieces_goes_as_one() {
    let mut rig = Rig::begun();
    let pages = 2000;
    let id = get(&mut rig, KEY, pages * PAGE, CREATE);
    let (at, other) = (attach(&mut rig, FIRST, id, 0), attach(&mut rig, FIRST, id, 0));
    let readable = u64::from(nr::PROT_READ);
    for page in (0..pages).step_by(2) {
        assert_eq!(rig.call(nr::__NR_mprotect, &[at + page * PAGE, PAGE, readable]), 0);
    }
    assert_eq!(told(&mut rig, id).2, pages + 1);
    // Some pages are gone already, and something else is there.
    let anonymous = u64::from(nr::MAP_PRIVATE | nr::MAP_ANONYMOUS | nr::MAP_FIXED);
    let own = at + 10 * PAGE;
    assert_eq!(rig.call(nr::__NR_mmap, &[own, 4 * PAGE, readable, anonymous, u64::MAX, 0]), own as i64);
    put(&mut rig, FIRST, at + PAGE, 3);
    put(&mut rig, FIRST, at + (pages - 1) * PAGE, 4);
    assert_eq!(rig.call(nr::__NR_shmdt, &[at]), 0);
    assert_eq!(told(&mut rig, id).2, 1);
    assert_eq!(rig.system.fault(FIRST, at + PAGE, Rights::READ), Err(Fault::Nothing));
    assert_eq!(rig.system.fault(FIRST, at + (pages - 1) * PAGE, Rights::READ), Err(Fault::Nothing));
    assert_eq!(rig.get(FIRST, own, 1), [0]);
    assert_eq!(rig.get(FIRST, other + PAGE, 1), [3]);
    assert_eq!(rig.get(FIRST, other + (pages - 1) * PAGE, 1), [4]);
    // With the last piece of a removed segment its bytes are gone.
    assert_eq!(control(&mut rig, FIRST, id, IPC_RMID, 0), 0);
    let objects = frames(&rig).1;
    assert_eq!(rig.call(nr::__NR_shmdt, &[other]), 0);
    assert_eq!(frames(&rig).1, objects - 1);
    assert_eq!(control(&mut rig, FIRST, id, IPC_STAT, DATA), error(EINVAL));
}

#[test]
fn a_segment_goes_where_it_is_asked_to() {
    let mut rig = Rig::begun();
    let id = get(&mut rig, 0, PAGE, CREATE) as u64;
    let (place, round, replace) = (0x2000_0000, u64::from(SHM_RND), u64::from(SHM_REMAP));
    let at = |rig: &mut Rig, at: u64, flags: u64| rig.call(nr::__NR_shmat, &[id, at, flags]);
    assert_eq!(at(&mut rig, place, 0), place as i64);
    assert_eq!(at(&mut rig, place, 0), error(EINVAL), "something is there");
    assert_eq!(at(&mut rig, place + 8, 0), error(EINVAL));
    assert_eq!(at(&mut rig, place + PAGE + 8, round), (place + PAGE) as i64);
    assert_eq!(at(&mut rig, 0, replace), error(EINVAL));
    assert_eq!(at(&mut rig, place, replace), place as i64);
    assert_eq!(told(&mut rig, id as i64).2, 2);
    let far = at(&mut rig, 8, round);
    assert!(far > 0, "an address that is none by rounding: {far}");
    assert_eq!(rig.call(nr::__NR_shmat, &[99, 0, 0]), error(EINVAL));
}

#[test]
fn permissions_say_who_may_do_what() {
    let mut rig = Rig::begun();
    let id = get(&mut rig, KEY, PAGE, u64::from(IPC_CREAT) | 0o644);
    let child = rig.fork();
    assert_eq!(rig.call_by(child, nr::__NR_setgid, &[5]), 0);
    assert_eq!(rig.call_by(child, nr::__NR_setuid, &[5]), 0);
    let get_by = |rig: &mut Rig, flags: u64| rig.call_by(child, nr::__NR_shmget, &[KEY, 1, flags]);
    assert_eq!((get_by(&mut rig, 0o444), get_by(&mut rig, 0o600)), (id, error(EACCES)));
    let at = |rig: &mut Rig, flags: u32| rig.call_by(child, nr::__NR_shmat, &[id as u64, 0, flags.into()]);
    assert_eq!(at(&mut rig, 0), error(EACCES));
    assert!(at(&mut rig, SHM_RDONLY) > 0);
    assert_eq!(at(&mut rig, SHM_RDONLY | SHM_EXEC), error(EACCES));
    for command in [IPC_RMID, IPC_SET, SHM_LOCK, SHM_UNLOCK] {
        assert_eq!(control(&mut rig, child, id, command, DATA), error(EPERM), "{command}");
    }
    // `root` gives it away. The maker keeps what the owner may.
    let set = [0u32, 5, 6, 0, 0, 0o17640].map(u32::to_le_bytes).concat();
    let structure = rig.put(&[set, Vec::from([0; 88])].concat());
    assert_eq!(control(&mut rig, FIRST, id, IPC_SET, structure), 0);
    assert_eq!(told(&mut rig, id).0, 0o640);
    assert!(at(&mut rig, 0) > 0);
    assert_eq!(control(&mut rig, child, id, SHM_LOCK, 0), 0);
    assert_eq!(told(&mut rig, id).0, 0o640 | SHM_LOCKED);
    assert_eq!(control(&mut rig, child, id, SHM_UNLOCK, 0), 0);
    let nobody = [0u32, u32::MAX, 6, 0, 0, 0].map(u32::to_le_bytes).concat();
    let nobody = rig.put(&[nobody, Vec::from([0; 88])].concat());
    assert_eq!(control(&mut rig, FIRST, id, IPC_SET, nobody), error(EINVAL));
    assert_eq!(control(&mut rig, child, id, IPC_RMID, 0), 0);
    // The group, and others.
    let id = get(&mut rig, KEY, PAGE, u64::from(IPC_CREAT) | 0o640);
    assert_eq!(control(&mut rig, child, id, IPC_STAT, DATA), error(EACCES));
    assert_eq!(control(&mut rig, child, id & 0x7fff, SHM_STAT, DATA), error(EACCES));
    assert_eq!(control(&mut rig, child, id & 0x7fff, SHM_STAT_ANY, DATA + PAGE), id);
}

#[test]
fn segments_have_half_of_the_frames() {
    let mut rig = Rig::begun();
    let all = rig.system.memory_bytes().0 / PAGE;
    rig.put(b"a page that is used");
    let before = frames(&rig);
    let id = get(&mut rig, KEY, all / 2 * PAGE, CREATE);
    assert!(id >= 0);
    assert_eq!(get(&mut rig, 0, 1, CREATE), error(ENOSPC));
    let at = rig.room(72);
    assert_eq!(control(&mut rig, FIRST, 0, IPC_INFO, at), 0);
    assert_eq!(rig.system.words::<5>(FIRST, at), Ok([SHMMAX, 1, 1024, 1024, all / 2]));
    assert_eq!(control(&mut rig, FIRST, 0, SHM_INFO, at), 0);
    assert_eq!(rig.system.words::<3>(FIRST, at), Ok([1, all / 2, 0]));
    assert_eq!(control(&mut rig, FIRST, id, IPC_RMID, 0), 0);
    assert_eq!(frames(&rig), before);
    assert_eq!(get(&mut rig, 0, u64::MAX, CREATE), error(EINVAL));
    assert_eq!(get(&mut rig, 0, 1 << 40, CREATE), error(ENOSPC));
}

/// One process after the other makes segments that outlast it. They have a part of the budget, and the others what is left.
#[test]
fn segments_end_before_the_budget_does() {
    let mut rig = Rig::begun();
    rig.system.budget.set_max(200_000);
    let mut made = 0;
    for _ in 0..20 {
        let child = rig.fork();
        while rig.call_by(child, nr::__NR_shmget, &[0, 1, CREATE]) >= 0 {
            made += 1;
            assert!(made < 1000);
        }
        assert_eq!(rig.call_by(child, nr::__NR_shmget, &[0, 1, CREATE]), error(ENOSPC));
        exit(&mut rig, child);
    }
    let used = rig.system.budget.used();
    assert!(made > 50 && used < 120_000, "{made} segments, {used} bytes");
    // With the first process all of it ends.
    rig.system.end_process(FIRST, crate::process::Status::exited(0));
    assert_eq!(rig.system.kept.ipc.held() + rig.system.store.frames.object_count(), 0);
}

#[test]
fn segments_are_a_file() {
    let mut rig = Rig::begun();
    let id = get(&mut rig, 0xffff_fffe, 4097, CREATE);
    let at = attach(&mut rig, FIRST, id, 0);
    put(&mut rig, FIRST, at, 1);
    let path = rig.put(b"/proc/sysvipc/shm\0");
    let fd = rig.call(nr::__NR_open, &[path, 0, 0]);
    let text = rig.read(fd as u64, 4096).unwrap();
    let text = std::str::from_utf8(&text).unwrap();
    let line = "        -2          0   600                  4097     1     1      1     0     0     0     0 1700000000          \
                0 1700000000                  4096                     0";
    assert_eq!(text.lines().nth(1), Some(line));
}
