//! Capabilities, as programs see them. Results that are expected are Linux's own.

use crate::calls::HERE;
use crate::calls::rig::{FIRST, Rig};
use crate::capabilities::{ALL, Capabilities, KEEP, NO_ROOT};
use crate::errno::{EACCES, EEXIST, EINVAL, ENOENT, EPERM, ESRCH, Errno};
use crate::machine::Tid;
use crate::special::{OfProcess, Special};
use linux_raw_sys::general::{self as nr, *};
use linux_raw_sys::prctl::*;
use std::string::String;
use std::vec::Vec;

/// An owner that is not `root`.
const USER: u64 = 1000;

/// A file that is another owner's, and that nobody else may read or write.
const OTHERS: &str = "/tmp/others";

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

/// Puts bytes into memory of a thread.
fn put(rig: &mut Rig, tid: Tid, bytes: &[u8]) -> u64 {
    let at = rig.room(bytes.len());
    rig.system.write(tid, at, bytes).unwrap();
    at
}

fn text(rig: &mut Rig, tid: Tid, text: &str) -> u64 {
    put(rig, tid, &[text.as_bytes(), b"\0"].concat())
}

fn header(rig: &mut Rig, tid: Tid, version: u32, of: Tid) -> u64 {
    put(rig, tid, &[version, of].map(u32::to_le_bytes).concat())
}

/// Sets effective, permitted and inheritable capabilities of a thread.
fn set(rig: &mut Rig, tid: Tid, sets: [u64; 3]) -> i64 {
    let halves = [0, 32].map(|shift| sets.map(|set| ((set >> shift) as u32).to_le_bytes()).concat());
    let (header, from) = (header(rig, tid, _LINUX_CAPABILITY_VERSION_3, 0), put(rig, tid, &halves.concat()));
    rig.call_by(tid, nr::__NR_capset, &[header, from])
}

/// Effective, permitted and inheritable ones, as a thread is told.
fn get(rig: &mut Rig, tid: Tid, of: Tid) -> Result<[u64; 3], i64> {
    let (header, to) = (header(rig, tid, _LINUX_CAPABILITY_VERSION_3, of), put(rig, tid, &[0; 24]));
    let outcome = rig.call_by(tid, nr::__NR_capget, &[header, to]);
    let bytes = rig.get(tid, to, 24);
    let half = |at: usize| u64::from(u32::from_le_bytes(*bytes[4 * at..].first_chunk().unwrap()));
    if outcome < 0 { Err(outcome) } else { Ok([0, 1, 2].map(|at| half(at) | half(at + 3) << 32)) }
}

fn capabilities(rig: &Rig, tid: Tid) -> Capabilities {
    rig.system.threads.get(&tid).unwrap().capabilities
}

fn choose(rig: &mut Rig, tid: Tid, code: u32, argument: u64) -> i64 {
    rig.call_by(tid, nr::__NR_prctl, &[code.into(), argument])
}

/// Begins the program that there is.
fn execute(rig: &mut Rig, tid: Tid) {
    let path = text(rig, tid, "/bin/test");
    rig.try_by(tid, nr::__NR_execve, &[path, 0, 0]);
}

/// A file of owner 5, whom nobody is.
fn with_others() -> Rig {
    let mut rig = Rig::begun();
    assert!(rig.open(OTHERS) > 0);
    let path = text(&mut rig, FIRST, OTHERS);
    assert_eq!(rig.call(nr::__NR_chmod, &[path, 0o600]), 0);
    assert_eq!(rig.call(nr::__NR_chown, &[path, 5, 5]), 0);
    rig
}

/// Something that a thread needs a capability for.
type Deed = fn(&mut Rig, Tid) -> i64;

fn by_path(rig: &mut Rig, tid: Tid, number: u32, path: &str, arguments: &[u64]) -> i64 {
    let path = text(rig, tid, path);
    rig.call_by(tid, number, &[&[path], arguments].concat())
}

fn opens(rig: &mut Rig, tid: Tid, flags: u32) -> i64 {
    let path = text(rig, tid, OTHERS);
    rig.call_by(tid, nr::__NR_openat, &[HERE, path, flags.into(), 0])
}

fn raises_a_limit(rig: &mut Rig, tid: Tid) -> i64 {
    let [less, more] = [[0, 1], [0, 2u64]].map(|limit| put(rig, tid, &limit.map(u64::to_le_bytes).concat()));
    assert_eq!(rig.call_by(tid, nr::__NR_setrlimit, &[RLIMIT_CORE.into(), less]), 0);
    rig.call_by(tid, nr::__NR_setrlimit, &[RLIMIT_CORE.into(), more])
}

fn locks_memory(rig: &mut Rig, tid: Tid) -> i64 {
    let none = put(rig, tid, &[0; 16]);
    assert_eq!(rig.call_by(tid, nr::__NR_setrlimit, &[RLIMIT_MEMLOCK.into(), none]), 0);
    rig.call_by(tid, nr::__NR_mlock, &[none, 1])
}

/// Another owner's process, which the thread itself makes.
fn kills_another(rig: &mut Rig, tid: Tid) -> i64 {
    let other = rig.fork();
    assert_eq!(rig.call_by(other, nr::__NR_setresuid, &[USER; 3]), 0);
    rig.call_by(tid, nr::__NR_kill, &[other.into(), 0])
}

const DEEDS: [(u32, Errno, Deed); 15] = [
    (CAP_CHOWN, EPERM, |rig, tid| by_path(rig, tid, nr::__NR_chown, "/tmp", &[5, 5])),
    (CAP_DAC_OVERRIDE, EACCES, |rig, tid| opens(rig, tid, O_RDWR)),
    (CAP_FOWNER, EPERM, |rig, tid| by_path(rig, tid, nr::__NR_chmod, OTHERS, &[0o640])),
    (CAP_KILL, EPERM, kills_another),
    (CAP_SETGID, EPERM, |rig, tid| rig.call_by(tid, nr::__NR_setgroups, &[0, 0])),
    (CAP_SETGID, EPERM, |rig, tid| rig.call_by(tid, nr::__NR_setresgid, &[5; 3])),
    (CAP_SETUID, EPERM, |rig, tid| rig.call_by(tid, nr::__NR_setresuid, &[5; 3])),
    (CAP_SETUID, EPERM, |rig, tid| rig.call_by(tid, nr::__NR_setuid, &[5])),
    (CAP_SETUID, EPERM, |rig, tid| rig.call_by(tid, nr::__NR_setreuid, &[5, 5])),
    (CAP_SETPCAP, EPERM, |rig, tid| choose(rig, tid, PR_CAPBSET_DROP, 3)),
    (CAP_SETPCAP, EPERM, |rig, tid| choose(rig, tid, PR_SET_SECUREBITS, NO_ROOT.into())),
    (CAP_SYS_CHROOT, EPERM, |rig, tid| by_path(rig, tid, nr::__NR_chroot, "/", &[])),
    (CAP_SYS_ADMIN, EPERM, |rig, tid| by_path(rig, tid, nr::__NR_sethostname, "name", &[4])),
    (CAP_SYS_RESOURCE, EPERM, raises_a_limit),
    (CAP_IPC_LOCK, EPERM, locks_memory),
];

#[test]
fn each_deed_needs_its_capability() {
    for (number, (capability, refused, deed)) in DEEDS.into_iter().enumerate() {
        let one = 1 << capability;
        let mut rig = with_others();
        // A right to read everything opens nothing to write, and a right to everything else no more.
        let child = rig.fork();
        assert_eq!(set(&mut rig, child, [ALL & !one, ALL, 0]), 0);
        assert_eq!(deed(&mut rig, child), error(refused), "deed {number} without its capability");
        let child = rig.fork();
        assert_eq!(set(&mut rig, child, [one; 3]), 0);
        assert!(deed(&mut rig, child) >= 0, "deed {number} with its capability alone");
    }
}

#[test]
fn files_are_read_by_whoever_may_read_all() {
    let mut rig = with_others();
    let child = rig.fork();
    assert_eq!(set(&mut rig, child, [0; 3]), 0);
    assert_eq!(opens(&mut rig, child, O_RDONLY), error(EACCES), "it is root, and no more");
    let child = rig.fork();
    assert_eq!(set(&mut rig, child, [1 << CAP_DAC_READ_SEARCH; 3]), 0);
    assert!(opens(&mut rig, child, O_RDONLY) >= 0);
    assert_eq!(opens(&mut rig, child, O_WRONLY), error(EACCES));
    // `access` asks for the real owner, and for those permitted if that is root.
    let child = rig.fork();
    assert_eq!(set(&mut rig, child, [0, ALL, 0]), 0);
    assert_eq!(by_path(&mut rig, child, nr::__NR_access, OTHERS, &[R_OK.into()]), 0);
    assert_eq!(opens(&mut rig, child, O_RDONLY), error(EACCES));
    let path = text(&mut rig, child, OTHERS);
    let effective = [HERE, path, R_OK.into(), AT_EACCESS.into()];
    assert_eq!(rig.call_by(child, nr::__NR_faccessat2, &effective), error(EACCES));
}

/// A name for what is open is made where its maker may write, though that reaches everything.
#[test]
fn names_are_made_where_one_may_write() {
    let mut rig = with_others();
    assert_eq!(by_path(&mut rig, FIRST, nr::__NR_mkdir, "/closed", &[0o755]), 0);
    let child = rig.fork();
    assert_eq!(choose(&mut rig, child, PR_SET_KEEPCAPS, 1), 0);
    assert_eq!(rig.call_by(child, nr::__NR_setresuid, &[USER; 3]), 0);
    assert_eq!(set(&mut rig, child, [1 << CAP_DAC_READ_SEARCH; 3]), 0);
    let fd = opens(&mut rig, child, O_RDONLY) as u64;
    let empty = text(&mut rig, child, "");
    let give = |rig: &mut Rig, name: &str| {
        let name = text(rig, child, name);
        rig.call_by(child, nr::__NR_linkat, &[fd, empty, HERE, name, AT_EMPTY_PATH.into()])
    };
    assert_eq!(give(&mut rig, "/closed/name"), error(EACCES));
    assert_eq!(give(&mut rig, OTHERS), error(EEXIST));
    assert_eq!(by_path(&mut rig, FIRST, nr::__NR_chmod, "/closed", &[0o777]), 0);
    assert_eq!(give(&mut rig, "/closed/name"), 0);
}

#[test]
fn what_was_given_up_is_told() {
    let mut rig = Rig::begun();
    assert_eq!(get(&mut rig, FIRST, 0), Ok([ALL, ALL, 0]));
    let child = rig.fork();
    assert_eq!(set(&mut rig, child, [1, 1 << 40 | 3, 2]), 0);
    assert_eq!(get(&mut rig, child, 0), Ok([1, 1 << 40 | 3, 2]));
    assert_eq!(get(&mut rig, FIRST, child), Ok([1, 1 << 40 | 3, 2]));
    assert_eq!(get(&mut rig, child, FIRST), Ok([ALL, ALL, 0]));
    assert_eq!(set(&mut rig, child, [4, 4, 0]), error(EPERM), "it is gone for good");
    assert_eq!(get(&mut rig, FIRST, 999), Err(error(ESRCH)));
    assert_eq!(get(&mut rig, FIRST, u32::MAX), Err(error(EINVAL)));
    let told = rig.system.proc_text(Special::OfProcess(child, OfProcess::Status)).unwrap();
    let told = String::from_utf8(told.to_vec()).unwrap();
    let lines: Vec<&str> = told.lines().filter(|line| line.starts_with("Cap")).collect();
    let expected = [
        "CapInh:\t0000000000000002",
        "CapPrm:\t0000010000000003",
        "CapEff:\t0000000000000001",
        "CapBnd:\t000001ffffffffff",
        "CapAmb:\t0000000000000000",
    ];
    assert_eq!(lines, expected);
    let grandchild = rig.call_by(child, nr::__NR_fork, &[]) as Tid;
    assert_eq!(capabilities(&rig, grandchild), capabilities(&rig, child));
}

#[test]
fn headers_have_versions() {
    let mut rig = Rig::begun();
    let (to, unknown) = (rig.room(24), header(&mut rig, FIRST, 7, 0));
    assert_eq!(rig.call(nr::__NR_capget, &[unknown, to]), error(EINVAL));
    assert_eq!(rig.half(unknown), _LINUX_CAPABILITY_VERSION_3);
    for (version, expected) in [(_LINUX_CAPABILITY_VERSION_1, 0), (_LINUX_CAPABILITY_VERSION_2, 0x1ff)] {
        let at = header(&mut rig, FIRST, version, 0);
        rig.system.write(FIRST, to, &[0; 24]).unwrap();
        assert_eq!(rig.call(nr::__NR_capget, &[at, to]), 0);
        assert_eq!((rig.half(to), rig.half(to + 12)), (u32::MAX, expected), "{version:#x}");
    }
    let child = rig.fork();
    let at = header(&mut rig, FIRST, _LINUX_CAPABILITY_VERSION_3, child);
    assert_eq!(rig.call(nr::__NR_capset, &[at, to]), error(EPERM), "those of others are theirs");
}

#[test]
fn kept_ones_are_permitted_under_another_owner() {
    let mut rig = with_others();
    let child = rig.fork();
    assert_eq!(choose(&mut rig, child, PR_SET_KEEPCAPS, 2), error(EINVAL));
    assert_eq!(choose(&mut rig, child, PR_SET_KEEPCAPS, 1), 0);
    assert_eq!(choose(&mut rig, child, PR_GET_KEEPCAPS, 0), 1);
    assert_eq!(choose(&mut rig, child, PR_GET_SECUREBITS, 0), KEEP.into());
    assert_eq!(rig.call_by(child, nr::__NR_setresuid, &[USER; 3]), 0);
    assert_eq!(get(&mut rig, child, 0), Ok([0, ALL, 0]));
    assert_eq!(opens(&mut rig, child, O_RDONLY), error(EACCES));
    let one = 1 << CAP_DAC_OVERRIDE;
    assert_eq!(set(&mut rig, child, [one; 3]), 0);
    let fd = opens(&mut rig, child, O_RDWR);
    assert!(fd >= 0);
    // Files that it makes are its own, whatever it may do.
    let path = text(&mut rig, child, "/tmp/new");
    let made = rig.call_by(child, nr::__NR_openat, &[HERE, path, (O_RDWR | O_CREAT).into(), 0o644]);
    let stat = rig.room(144);
    assert_eq!(rig.call_by(child, nr::__NR_fstat, &[made as u64, stat]), 0);
    assert_eq!(rig.get(child, stat + 28, 4), (USER as u32).to_le_bytes());
    execute(&mut rig, child);
    let own = capabilities(&rig, child);
    assert_eq!((own.effective, own.permitted, own.inheritable, own.secure), (0, 0, one, 0));
}

#[test]
fn ambient_ones_are_had_by_programs() {
    let mut rig = Rig::begun();
    let child = rig.fork();
    let (one, number) = (1 << CAP_KILL, u64::from(CAP_KILL));
    let ambient = |rig: &mut Rig, what: u32, capability: u64, more: u64| {
        rig.call_by(child, nr::__NR_prctl, &[PR_CAP_AMBIENT.into(), what.into(), capability, more])
    };
    assert_eq!(ambient(&mut rig, PR_CAP_AMBIENT_RAISE, number, 0), error(EPERM), "it is not inheritable");
    assert_eq!(choose(&mut rig, child, PR_SET_KEEPCAPS, 1), 0);
    assert_eq!(rig.call_by(child, nr::__NR_setresuid, &[USER; 3]), 0);
    assert_eq!(set(&mut rig, child, [one; 3]), 0);
    assert_eq!(ambient(&mut rig, PR_CAP_AMBIENT_RAISE, number, 1), error(EINVAL));
    assert_eq!(ambient(&mut rig, PR_CAP_AMBIENT_RAISE, number, 0), 0);
    assert_eq!(ambient(&mut rig, PR_CAP_AMBIENT_IS_SET, number, 0), 1);
    execute(&mut rig, child);
    assert_eq!(get(&mut rig, child, 0), Ok([one; 3]));
    assert_eq!(ambient(&mut rig, PR_CAP_AMBIENT_CLEAR_ALL, 1, 0), error(EINVAL));
    assert_eq!(ambient(&mut rig, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0), 0);
    assert_eq!(ambient(&mut rig, PR_CAP_AMBIENT_IS_SET, number, 0), 0);
    execute(&mut rig, child);
    assert_eq!(get(&mut rig, child, 0), Ok([0, 0, one]));
}

#[test]
fn programs_of_root_get_what_is_bounded() {
    let mut rig = Rig::begun();
    let child = rig.fork();
    assert_eq!(choose(&mut rig, child, PR_CAPBSET_DROP, CAP_SYS_ADMIN.into()), 0);
    assert_eq!(choose(&mut rig, child, PR_CAPBSET_READ, CAP_SYS_ADMIN.into()), 0);
    assert_eq!(set(&mut rig, child, [1 << CAP_SETPCAP; 3]), 0);
    execute(&mut rig, child);
    let rest = ALL & !(1 << CAP_SYS_ADMIN);
    assert_eq!(get(&mut rig, child, 0), Ok([rest, rest, 1 << CAP_SETPCAP]));
    assert_eq!(choose(&mut rig, child, PR_SET_SECUREBITS, NO_ROOT.into()), 0);
    execute(&mut rig, child);
    assert_eq!(get(&mut rig, child, 0), Ok([0, 0, 1 << CAP_SETPCAP]));
    // Nothing comes back where that was renounced.
    let child = rig.fork();
    assert_eq!(set(&mut rig, child, [2, 3, 0]), 0);
    assert_eq!(choose(&mut rig, child, PR_SET_NO_NEW_PRIVS, 1), 0);
    execute(&mut rig, child);
    assert_eq!(get(&mut rig, child, 0), Ok([3, 3, 0]));
}

#[test]
fn each_thread_gives_up_its_own() {
    let mut rig = Rig::begun();
    let thread = rig.thread();
    assert_eq!(set(&mut rig, thread, [1; 3]), 0);
    assert_eq!(get(&mut rig, FIRST, 0), Ok([ALL, ALL, 0]));
    assert_eq!(get(&mut rig, FIRST, thread), Ok([1; 3]));
    assert_eq!(rig.call_by(thread, nr::__NR_setgroups, &[0, 0]), error(EPERM));
    assert_eq!(rig.call(nr::__NR_setgroups, &[0, 0]), 0);
    // Owners are the process's, so those of all threads go with them.
    assert_eq!(rig.call(nr::__NR_setresuid, &[USER; 3]), 0);
    for tid in [FIRST, thread] {
        let own = capabilities(&rig, tid);
        assert_eq!((own.effective, own.permitted), (0, 0), "thread {tid}");
    }
}

#[test]
fn others_are_looked_into_by_whoever_has_as_much() {
    let mut rig = Rig::begun();
    let (whole, less) = (rig.fork(), rig.fork());
    assert_eq!(set(&mut rig, less, [1, 1, 0]), 0);
    let look = |rig: &mut Rig, tid: Tid, of: Tid| {
        let to = put(rig, tid, &[0; 64]);
        by_path(rig, tid, nr::__NR_readlink, &std::format!("/proc/{of}/cwd"), &[to, 64])
    };
    assert!(look(&mut rig, less, less) > 0);
    assert_eq!(look(&mut rig, less, whole), error(EACCES));
    assert!(look(&mut rig, whole, less) > 0);
    assert_eq!(look(&mut rig, whole, 999), error(ENOENT));
    assert_eq!(set(&mut rig, whole, [0; 3]), 0);
    assert!(look(&mut rig, less, whole) > 0);
}
