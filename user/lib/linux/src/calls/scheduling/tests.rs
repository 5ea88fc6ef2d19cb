//! Turns of threads.

use crate::calls::rig::{FIRST, Rig};
use linux_raw_sys::general::{__NR_getpid, __NR_sched_yield};

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
