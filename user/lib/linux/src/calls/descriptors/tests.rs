//! Descriptors as programs see them. What is expected is what Linux does.

use crate::calls::rig::Rig;
use crate::errno::{EFAULT, ENOTTY};
use linux_raw_sys::general::{self as nr, F_GETFL, F_SETFL, FASYNC};
use linux_raw_sys::ioctl::FIOASYNC;
use linux_raw_sys::net::{AF_UNIX, SOCK_STREAM};

/// Servers set the mode of signals before they share a socket with a child, and give up if they cannot.
#[test]
fn the_mode_of_signals_is_kept_where_there_is_one() {
    let mut rig = Rig::begun();
    let [reader, writer] = rig.two(nr::__NR_pipe2, &[0], 0);
    let [one, _] = rig.two(nr::__NR_socketpair, &[AF_UNIX.into(), SOCK_STREAM.into(), 0], 3);
    let file = rig.open("/tmp/file") as u64;
    let counter = rig.call(nr::__NR_eventfd2, &[0, 0]) as u64;
    let [on, off] = [1u32, 0].map(|value| rig.put(&value.to_le_bytes()));
    let mode = i64::from(FASYNC);
    for (fd, has_mode) in
        [(reader, true), (writer, true), (one, true), (0, true), (file, false), (counter, false)]
    {
        let (outcome, flag) = if has_mode { (0, mode) } else { (-i64::from(ENOTTY.0), 0) };
        let flags = |rig: &mut Rig| rig.call(nr::__NR_fcntl, &[fd, F_GETFL.into()]) & mode;
        assert_eq!(rig.call(nr::__NR_ioctl, &[fd, FIOASYNC.into(), on]), outcome);
        assert_eq!(flags(&mut rig), flag);
        assert_eq!(rig.call(nr::__NR_ioctl, &[fd, FIOASYNC.into(), off]), 0);
        assert_eq!(flags(&mut rig), 0);
        assert_eq!(rig.call(nr::__NR_fcntl, &[fd, F_SETFL.into(), FASYNC.into()]), 0);
        assert_eq!(flags(&mut rig), flag);
        assert_eq!(rig.call(nr::__NR_fcntl, &[fd, F_SETFL.into(), 0]), 0);
        assert_eq!(flags(&mut rig), 0);
    }
    assert_eq!(rig.call(nr::__NR_ioctl, &[reader, FIOASYNC.into(), 8]), -i64::from(EFAULT.0));
}
