//! Clocks as programs see them. What is expected is what Linux does.

use super::SECOND;
use crate::calls::rig::{FIRST, Rig};
use crate::errno::EINVAL;
use crate::machine::Tid;
use linux_raw_sys::general as nr;

/// The clock of somebody's CPU time, as C libraries name it: bits of its kind, of which 2 is the usual one, and 4 for that of a thread.
fn clock(number: Tid, bits: i32) -> u64 {
    u64::from((!(number as i32) << 3 | bits) as u32)
}

/// Seconds and nanoseconds of a clock, or an error.
fn time(rig: &mut Rig, tid: Tid, clock: u64) -> Result<[u32; 2], i64> {
    let to = rig.room(16);
    match rig.call_by(tid, nr::__NR_clock_gettime, &[clock, to]) {
        0 => Ok([rig.half(to), rig.half(to + 8)]),
        error => Err(error),
    }
}

#[test]
fn the_cpu_time_of_others_has_a_clock() {
    let mut rig = Rig::begun();
    let (child, thread) = (rig.fork(), rig.thread());
    for (pid, seconds) in [(FIRST, 2), (child, 3)] {
        rig.system.processes.get_mut(&pid).unwrap().used[0] = seconds * SECOND + 5;
    }
    for kind in 0..3 {
        for (number, expected) in [(0, [2, 5]), (FIRST, [2, 5]), (child, [3, 5])] {
            assert_eq!(time(&mut rig, FIRST, clock(number, kind)), Ok(expected));
        }
        for number in [0, FIRST, thread] {
            assert_eq!(time(&mut rig, FIRST, clock(number, 4 | kind)), Ok([0, 0]));
        }
    }
    // A thread may name its process by its own number.
    assert_eq!(time(&mut rig, thread, clock(thread, 2)), Ok([2, 5]));
    assert_eq!(rig.call(nr::__NR_clock_getres, &[clock(child, 2), 0]), 0);
    let invalid = -i64::from(EINVAL.0);
    for nobody in
        [clock(thread, 2), clock(99, 2), clock(FIRST, 3), clock(child, 6), clock(99, 6), clock(0, 7)]
    {
        assert_eq!(time(&mut rig, FIRST, nobody), Err(invalid));
    }
}
