//! Calls that look into another process, and some that few programs make. Numbers that are expected are Linux's own.

use crate::calls::HERE;
use crate::calls::rig::{DATA, FIRST, Rig};
use crate::errno::{EBADF, EFAULT, EINTR, EINVAL, EPERM, ESRCH, Errno};
use crate::frames::PAGE;
use linux_raw_sys::general::*;
use linux_raw_sys::prctl::*;
use std::vec::Vec;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

/// Pieces of memory, as `struct iovec` has them.
fn pieces(rig: &mut Rig, pieces: &[(u64, u64)]) -> [u64; 2] {
    let bytes: Vec<u8> =
        pieces.iter().flat_map(|(at, len)| [at.to_le_bytes(), len.to_le_bytes()].concat()).collect();
    [rig.put(&bytes), pieces.len() as u64]
}

#[test]
fn memory_of_another_process_is_read_and_written() {
    let mut rig = Rig::begun();
    let text = rig.put(b"parent");
    let to = rig.room(64);
    let child: u64 = rig.fork().into();
    rig.call(__NR_write, &[1, text, 0]);
    assert_eq!(rig.system.write(child as u32, text, b"child!"), Ok(()));
    // Another page is nobody's.
    let nothing = DATA - PAGE;
    let own = pieces(&mut rig, &[(to, 2), (to + 10, 50)]);
    let theirs = pieces(&mut rig, &[(text, 4), (text + 4, 2), (nothing, 5)]);
    let [own_at, own_count, their_at, their_count] = [own[0], own[1], theirs[0], theirs[1]];
    let both = [child, own_at, own_count, their_at, their_count, 0];
    assert_eq!(rig.call(__NR_process_vm_readv, &both), 6);
    assert_eq!((rig.get(FIRST, to, 2), rig.get(FIRST, to + 10, 4)), (b"ch".to_vec(), b"ild!".to_vec()));
    assert_eq!(rig.call(__NR_process_vm_writev, &[child, their_at, 1, their_at, 1, 0]), 4);
    assert_eq!(rig.get(child as u32, text, 6), b"pared!");
    let bad = pieces(&mut rig, &[(nothing, 5)]);
    assert_eq!(rig.call(__NR_process_vm_readv, &[child, own_at, 2, bad[0], 1, 0]), error(EFAULT));
    assert_eq!(rig.call(__NR_process_vm_readv, &[99, own_at, 2, their_at, 1, 0]), error(ESRCH));
    assert_eq!(rig.call(__NR_process_vm_readv, &[99, own_at, 0, their_at, 1, 0]), 0);
    assert_eq!(rig.call(__NR_process_vm_readv, &[child, own_at, 2, their_at, 1, 1]), error(EINVAL));
    assert_eq!(rig.call_by(child as u32, __NR_setresuid, &[7, 7, 7]), 0);
    for (at, len) in [(own_at, 32), (their_at, 48)] {
        let lists = rig.get(FIRST, at, len);
        rig.system.write(child as u32, at, &lists).unwrap();
    }
    let first = [FIRST.into(), own_at, 2, their_at, 1, 0];
    assert_eq!(rig.call_by(child as u32, __NR_process_vm_readv, &first), error(EPERM));
    assert_eq!(rig.call_by(child as u32, __NR_process_vm_readv, &both), 6);
}

/// Pieces that do not fit each other move whole, up to as much as a call may.
#[test]
fn much_memory_is_read_at_once() {
    let mut rig = Rig::begun();
    let (from, to, len) = (DATA + (1 << 20), DATA + (5 << 19) + 7, (1 << 20) + 5000);
    let text: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
    rig.system.write(FIRST, from, &text).unwrap();
    let own = pieces(&mut rig, &[(to, 1), (to + 1, 600_000), (to + 600_001, len)]);
    let theirs = pieces(&mut rig, &[(from, len)]);
    let arguments = [FIRST.into(), own[0], own[1], theirs[0], 1, 0];
    assert_eq!(rig.call(__NR_process_vm_readv, &arguments), len as i64);
    assert!(rig.get(FIRST, to, len as usize) == text);
}

#[test]
fn things_of_two_processes_are_compared() {
    let mut rig = Rig::begun();
    let [first, second] = rig.two(__NR_pipe, &[], 0);
    let copy = rig.call(__NR_dup, &[first]) as u64;
    let (child, thread) = (rig.fork().into(), rig.thread().into());
    let own = u64::from(FIRST);
    let mut compare = |one: u64, other: u64, kind: u64, fds: [u64; 2]| {
        rig.call(__NR_kcmp, &[one, other, kind, fds[0], fds[1]])
    };
    assert_eq!(compare(own, child, 0, [first, copy]), 0);
    let orders = [compare(own, own, 0, [first, second]), compare(own, own, 0, [second, first])];
    assert!(orders == [1, 2] || orders == [2, 1], "{orders:?}");
    assert_eq!(compare(own, own, 0, [99, first]), error(EBADF));
    for kind in 1..=6 {
        assert_eq!(compare(own, thread, kind, [0, 0]), 0);
        let orders = [compare(own, child, kind, [0, 0]), compare(child, own, kind, [0, 0])];
        assert!(orders == [1, 2] || orders == [2, 1], "{kind}: {orders:?}");
    }
    assert_eq!(compare(own, own, 9, [0, 0]), error(EINVAL));
    assert_eq!(compare(own, 99, 1, [0, 0]), error(ESRCH));
}

/// Entries in their old form have the kind behind the name.
#[test]
fn entries_have_an_old_form() {
    let mut rig = Rig::begun();
    let path = rig.put(b"/\0");
    let fd = rig.call(__NR_openat, &[HERE, path, O_DIRECTORY.into(), 0]) as u64;
    let to = rig.room(4096);
    let mut list = |number: u32, kind_of: fn(&[u8]) -> (u8, usize)| {
        rig.call(__NR_lseek, &[fd, 0, 0]);
        let len = rig.call(number, &[fd, to, 4096]);
        let (bytes, mut at, mut found) = (rig.get(FIRST, to, len as usize), 0, Vec::new());
        while at < bytes.len() {
            let size = usize::from(u16::from_le_bytes([bytes[at + 16], bytes[at + 17]]));
            let entry = &bytes[at..at + size];
            let (kind, name) = kind_of(entry);
            let name = entry[name..].split(|byte| *byte == 0).next().unwrap().to_vec();
            found.push((entry[..16].to_vec(), kind, name));
            at += size;
        }
        found
    };
    let new = list(__NR_getdents64, |entry| (entry[18], 19));
    let old = list(__NR_getdents, |entry| (entry[entry.len() - 1], 18));
    assert_eq!(new, old);
    assert!(new.iter().any(|(_, kind, name)| *kind == DT_DIR as u8 && name == b"tmp"));
    assert_eq!(rig.call(__NR_lseek, &[fd, 0, 0]), 0);
    assert_eq!(rig.call(__NR_getdents, &[fd, to, 20]), error(EINVAL));
}

#[test]
fn times_are_set_in_microseconds() {
    let mut rig = Rig::begun();
    let fd = rig.open("/tmp/file") as u64;
    let path = rig.put(b"/tmp/file\0");
    let stat = rig.room(144);
    let words = |all: [u64; 4]| all.map(u64::to_le_bytes).concat();
    let times = rig.put(&words([7, 8, 9, 10]));
    let wrong = rig.put(&words([7, 1_000_000, 9, 10]));
    for (number, arguments, expected) in [
        (__NR_futimesat, [HERE, path, times], [7, 8000, 9, 10_000]),
        (__NR_utime, [path, times, 0], [7, 0, 8, 0]),
        (__NR_futimesat, [fd, 0, times], [7, 8000, 9, 10_000]),
        (__NR_utime, [path, times, 0], [7, 0, 8, 0]),
        (__NR_utimes, [path, times, 0], [7, 8000, 9, 10_000]),
    ] {
        assert_eq!(rig.call(number, &arguments), 0);
        assert_eq!(rig.call(__NR_fstat, &[fd, stat]), 0);
        assert_eq!(rig.get(FIRST, stat + 72, 32), words(expected));
    }
    assert_eq!(rig.call(__NR_utimes, &[path, wrong]), error(EINVAL));
    assert_eq!(rig.call(__NR_utimes, &[0, times]), error(EFAULT));
}

#[test]
fn nobody_keeps_the_clock() {
    let mut rig = Rig::begun();
    let at = rig.put(&[0; 208]);
    for (number, arguments) in [(__NR_adjtimex, [at, 0]), (__NR_clock_adjtime, [0, at])] {
        assert_eq!(rig.call(number, &arguments), 5);
        let word = |rig: &mut Rig, place: u64| rig.half(at + place);
        assert_eq!([40, 56, 88].map(|place| word(&mut rig, place)), [0x40, 1, 10_000]);
        assert_eq!(u64::from(word(&mut rig, 72)), 1_700_000_000);
    }
    rig.system.write(FIRST, at, &[2]).unwrap();
    assert_eq!(rig.call(__NR_adjtimex, &[at]), error(EPERM));
    assert_eq!(rig.call(__NR_clock_adjtime, &[1, at]), error(EINVAL));
    assert_eq!(rig.call(__NR_restart_syscall, &[]), error(EINTR));
}

#[test]
fn processes_say_what_they_may_have() {
    let mut rig = Rig::begun();
    let ambient = u64::from(PR_CAP_AMBIENT);
    for (arguments, expected) in [
        ([PR_CAPBSET_READ.into(), 40, 0], 1),
        ([PR_CAPBSET_READ.into(), 41, 0], error(EINVAL)),
        ([ambient, PR_CAP_AMBIENT_IS_SET.into(), 3], 0),
        ([ambient, PR_CAP_AMBIENT_IS_SET.into(), 41], error(EINVAL)),
        ([ambient, PR_CAP_AMBIENT_RAISE.into(), 3], error(EPERM)),
        ([ambient, PR_CAP_AMBIENT_CLEAR_ALL.into(), 0], 0),
        ([ambient, 9, 0], error(EINVAL)),
        ([PR_GET_SECCOMP.into(), 0, 0], 0),
        ([PR_GET_KEEPCAPS.into(), 0, 0], 0),
        ([PR_MCE_KILL_GET.into(), 0, 0], 2),
    ] {
        assert_eq!(rig.call(__NR_prctl, &arguments), expected, "{arguments:?}");
    }
}

/// A process whose parent ends is the child of the nearest above that wants it, or of the first one.
#[test]
fn a_process_takes_those_below_it() {
    for wants in [false, true] {
        let mut rig = Rig::begun();
        let reaper = rig.fork();
        assert_eq!(rig.call_by(reaper, __NR_prctl, &[PR_SET_CHILD_SUBREAPER.into(), wants.into()]), 0);
        let at = rig.room(4);
        assert_eq!(rig.call_by(reaper, __NR_prctl, &[PR_GET_CHILD_SUBREAPER.into(), at]), 0);
        assert_eq!(rig.get(reaper, at, 4), u32::from(wants).to_le_bytes());
        let parent = rig.call_by(reaper, __NR_fork, &[]) as u32;
        let child = rig.call_by(parent, __NR_fork, &[]) as u32;
        assert_eq!(rig.try_by(parent, __NR_exit_group, &[0]), None);
        let expected = if wants { reaper } else { FIRST };
        assert_eq!(rig.call_by(child, __NR_getppid, &[]), i64::from(expected));
        assert_eq!(rig.try_by(child, __NR_exit_group, &[3]), None);
        let status = rig.call_by(expected, __NR_wait4, &[child.into(), at, WNOHANG.into(), 0]);
        assert_eq!((status, rig.get(expected, at, 2)), (child.into(), std::vec![0, 3]));
        // It is not handed on to children.
        assert_eq!(rig.system.processes[&reaper].is_reaper, wants);
    }
}

/// Choices can be asked about by the process or the thread that has made them, and those that it makes have them, too.
#[test]
fn choices_are_kept() {
    let mut rig = Rig::begun();
    let (at, word) = (rig.room(8), rig.room(8));
    let prctl = |rig: &mut Rig, tid, code: u32, arguments: [u64; 2]| {
        rig.call_by(tid, __NR_prctl, &[code.into(), arguments[0], arguments[1]])
    };
    for (code, arguments, expected) in [
        (PR_GET_DUMPABLE, [0, 0], 1),
        (PR_SET_DUMPABLE, [2, 0], error(EINVAL)),
        (PR_SET_DUMPABLE, [0, 0], 0),
        (PR_GET_DUMPABLE, [0, 0], 0),
        (PR_SET_DUMPABLE, [1, 0], 0),
        (PR_GET_DUMPABLE, [0, 0], 1),
        (PR_GET_THP_DISABLE, [0, 0], 0),
        (PR_GET_THP_DISABLE, [1, 0], error(EINVAL)),
        (PR_SET_THP_DISABLE, [1, 1], error(EINVAL)),
        (PR_SET_THP_DISABLE, [1, 0], 0),
        (PR_GET_THP_DISABLE, [0, 0], 1),
        (PR_GET_TIMERSLACK, [0, 0], 50_000),
        (PR_SET_TIMERSLACK, [7, 0], 0),
        (PR_GET_TIMERSLACK, [0, 0], 7),
        (PR_GET_TID_ADDRESS, [8, 0], error(EFAULT)),
    ] {
        assert_eq!(prctl(&mut rig, FIRST, code, arguments), expected, "{code}, {arguments:?}");
    }
    assert_eq!(rig.call(__NR_set_tid_address, &[word]), i64::from(FIRST));
    assert_eq!(prctl(&mut rig, FIRST, PR_GET_TID_ADDRESS, [at, 0]), 0);
    assert_eq!(rig.system.words(FIRST, at), Ok([word]));
    let (thread, child) = (rig.thread(), rig.fork());
    for tid in [thread, child] {
        assert_eq!(prctl(&mut rig, tid, PR_GET_TIMERSLACK, [0, 0]), 7);
        assert_eq!(prctl(&mut rig, tid, PR_GET_THP_DISABLE, [0, 0]), 1);
        assert_eq!(prctl(&mut rig, tid, PR_SET_TIMERSLACK, [9, 0]), 0);
        assert_eq!(prctl(&mut rig, tid, PR_SET_TIMERSLACK, [u64::MAX, 0]), 0);
        assert_eq!(prctl(&mut rig, tid, PR_GET_TIMERSLACK, [0, 0]), 7, "as it began");
    }
    assert_eq!(prctl(&mut rig, FIRST, PR_SET_TIMERSLACK, [0, 0]), 0);
    assert_eq!(prctl(&mut rig, FIRST, PR_GET_TIMERSLACK, [0, 0]), 50_000);
    // Another owner may not be looked at before he says so.
    assert_eq!(rig.call_by(child, __NR_setuid, &[5]), 0);
    assert_eq!(prctl(&mut rig, child, PR_GET_DUMPABLE, [0, 0]), 0);
    assert_eq!(prctl(&mut rig, child, PR_SET_DUMPABLE, [1, 0]), 0);
    assert_eq!(prctl(&mut rig, child, PR_GET_DUMPABLE, [0, 0]), 1);
}
