//! Attributes that calls about names set.

use crate::frames::PAGE;
use crate::world::{OWN, World};
use linux_raw_sys::general::*;

/// Where answers come.
const TO: u64 = OWN + 4 * PAGE;

/// Times before 1970 are the first that there is.
#[test]
fn times_begin_in_1970() {
    let mut world = World::new();
    world.file(b"/file", b"text", 0o644);
    let [accessed, modified] = [72, 88];
    let times = |world: &mut World| {
        world.by_path(1, __NR_stat, "/file", &[TO]).unwrap();
        [accessed, modified].map(|at| world.system.words::<2>(1, TO + at).unwrap())
    };
    let early = (-1i64).cast_unsigned();
    for (number, words, expected) in [
        (__NR_utimensat, [early, 5, 7, 8], [[0, 0], [7, 8]]),
        (__NR_utimensat, [1, 2, i64::MIN.cast_unsigned(), 999_999_999], [[1, 2], [0, 0]]),
        (__NR_utimes, [early, 5, 7, 8], [[0, 0], [7, 8000]]),
        (__NR_utime, [3, early, 0, 0], [[3, 0], [0, 0]]),
    ] {
        world.put(1, OWN + 512, &words.map(u64::to_le_bytes).concat());
        world.put(1, OWN, b"/file\0");
        let here = AT_FDCWD as i64 as u64;
        let outcome = if number == __NR_utimensat {
            world.now(1, number, &[here, OWN, OWN + 512, 0])
        } else {
            world.now(1, number, &[OWN, OWN + 512])
        };
        assert_eq!((outcome, times(&mut world)), (Ok(0), expected), "{number} {words:x?}");
    }
}
