//! Turns of threads.

use crate::calls::rig::{FIRST, Rig};
use crate::errno::{EINVAL, EPERM, Errno};
use linux_raw_sys::general::{__NR_getpid, __NR_membarrier, __NR_personality, __NR_sched_yield};

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

#[test]
fn who_gives_up_a_turn_goes_on_behind_others() {
    let mut rig = Rig::begun();
    let (thread, child) = (rig.thread(), rig.fork());
    for (tid, own) in [(FIRST, FIRST), (thread, FIRST), (child, child)] {
        rig.system.machine.behind.clear();
        assert_eq!(rig.call_by(tid, __NR_sched_yield, &[]), 0);
        assert_eq!(rig.system.machine.behind, [tid], "it is answered once, behind others");
        // It makes calls as before, which are answered at once.
        assert_eq!(rig.call_by(tid, __NR_getpid, &[]), own.into());
        assert_eq!(rig.system.machine.behind, [tid]);
    }
}

#[test]
fn barriers_are_for_who_has_asked() {
    let mut rig = Rig::begun();
    assert_eq!(rig.call(__NR_membarrier, &[0, 0]), 0x1f);
    assert_eq!(rig.call(__NR_membarrier, &[8, 0]), error(EPERM), "it has not said that it would");
    assert_eq!([16, 8, 1].map(|command| rig.call(__NR_membarrier, &[command, 0])), [0; 3]);
    assert_eq!(rig.call(__NR_membarrier, &[8, 1]), error(EINVAL));
    assert_eq!(rig.call(__NR_membarrier, &[32, 0]), error(EINVAL));
    assert_eq!(rig.call(__NR_personality, &[0xffff_ffff]), 0);
    assert_eq!(rig.call(__NR_personality, &[8]), error(EINVAL));
}
