//! How processes are made, as programs see it.

use crate::calls::rig::{FIRST, Rig};
use crate::errno::{ECHILD, EINVAL, EPERM, Errno};
use crate::machine::Tid;
use linux_raw_sys::general::{
    self as nr, CLONE_NEWPID, CLONE_PARENT, CLONE_SIGHAND, CLONE_THREAD, CLONE_VM, SIGCHLD, SIGUSR1, WNOHANG,
};

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn clone(rig: &mut Rig, tid: Tid, flags: u32) -> i64 {
    rig.call_by(tid, nr::__NR_clone, &[flags.into()])
}

/// Waits for any child, if one has ended.
fn wait(rig: &mut Rig, tid: Tid) -> i64 {
    rig.call_by(tid, nr::__NR_wait4, &[u64::MAX, 0, WNOHANG.into(), 0])
}

#[test]
fn a_sibling_is_its_parents_child() {
    let mut rig = Rig::begun();
    let maker = clone(&mut rig, FIRST, SIGUSR1) as Tid;
    let sibling = clone(&mut rig, maker, CLONE_PARENT | SIGCHLD) as Tid;
    assert_eq!(rig.call_by(sibling, nr::__NR_getppid, &[]), FIRST.into());
    assert_eq!(rig.system.processes.get(&sibling).unwrap().exit_signal, SIGUSR1, "its maker's");
    let child = clone(&mut rig, sibling, SIGCHLD) as Tid;
    assert_eq!(rig.call_by(child, nr::__NR_getppid, &[]), sibling.into());
    rig.ignore(SIGUSR1);
    assert_eq!(rig.try_by(sibling, nr::__NR_exit_group, &[0]), None);
    assert_eq!(wait(&mut rig, maker), error(ECHILD));
    assert_eq!(wait(&mut rig, FIRST), sibling.into());
}

#[test]
fn the_first_process_has_no_siblings() {
    let mut rig = Rig::begun();
    let thread = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
    for flags in [SIGCHLD, CLONE_NEWPID, thread] {
        assert_eq!(clone(&mut rig, FIRST, CLONE_PARENT | flags), error(EINVAL), "{flags:#x}");
    }
    let structure = [u64::from(CLONE_PARENT), 0, 0, 0, 0, 0, 0, 0].map(u64::to_le_bytes).concat();
    let at = rig.put(&structure);
    assert_eq!(rig.call(nr::__NR_clone3, &[at, 64]), error(EINVAL));
    let child = rig.fork();
    assert_eq!(clone(&mut rig, child, CLONE_PARENT | CLONE_NEWPID), error(EPERM));
    assert!(rig.call_by(child, nr::__NR_clone3, &[at, 64]) > 0);
}
