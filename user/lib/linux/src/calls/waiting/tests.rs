//! `poll` and `select` with addresses at which nothing can be.

use crate::calls::rig::Rig;
use crate::errno::{EFAULT, EINVAL, Errno};
use linux_raw_sys::general::{__NR_poll, __NR_pselect6, __NR_select};

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

#[test]
fn sets_lie_in_memory() {
    let mut rig = Rig::begun();
    let (set, now) = (rig.room(128), rig.put(&[0; 16]));
    for call in [__NR_select, __NR_pselect6] {
        for at in [u64::MAX, u64::MAX - 7, u64::MAX - 63, 0u64.wrapping_sub(128), 8, 1 << 47] {
            for place in 0..3 {
                let mut sets = [set; 3];
                sets[place] = at;
                let [read, write, except] = sets;
                for count in [1, 64, 1024, i32::MAX as u64] {
                    let outcome = rig.call(call, &[count, read, write, except, now]);
                    assert_eq!(outcome, error(EFAULT), "{count} descriptors, set {place} at {at:#x}");
                }
            }
        }
        assert_eq!(rig.call(call, &[1024, set, set, set, now]), 0);
        assert_eq!(rig.call(call, &[u64::from(u32::MAX), set, set, set, now]), error(EINVAL));
    }
    for at in [u64::MAX, u64::MAX - 7, 8] {
        assert_eq!(rig.call(__NR_poll, &[at, 2, 0]), error(EFAULT));
    }
}
