//! Things beside messages: each has a head, a `struct cmsghdr`, with its length, its level and its type.

use crate::errno::{EINVAL, Result};
use alloc::vec::Vec;

/// Bytes of the head of something beside a message: length, level, type.
pub const HEAD_BYTES: usize = 16;

/// Bytes to which lengths are rounded up from one thing to the next.
const STEP: usize = 8;

/// A number of 32 bits in bytes; 0 where there are none.
pub fn half(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// Level, type and bytes of each thing that a program has put beside a message. `EINVAL`: a length is wrong; nothing comes behind that.
pub fn things(bytes: &[u8]) -> impl Iterator<Item = Result<((u32, u32), &[u8])>> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        if rest.len() < HEAD_BYTES {
            return None;
        }
        let len = u64::from(half(rest, 0)) | u64::from(half(rest, 4)) << 32;
        let body = usize::try_from(len).ok().and_then(|len| rest.get(HEAD_BYTES..len));
        let thing = body.map(|body| ((half(rest, 8), half(rest, 12)), body)).ok_or(EINVAL);
        rest = body
            .and_then(|body| rest.get((HEAD_BYTES + body.len()).next_multiple_of(STEP)..))
            .unwrap_or_default();
        Some(thing)
    })
}

/// Things beside a message, as a process sees them.
#[derive(Debug, Default)]
pub struct Control {
    /// All of them.
    pub bytes: Vec<u8>,
    room: usize,
    /// Whether something had no room.
    pub is_cut: bool,
}

impl Control {
    /// Nothing yet, and so much room.
    pub fn with_room(room: usize) -> Control {
        Control { room, ..Control::default() }
    }

    /// Bytes of room that are left.
    pub fn left(&self) -> usize {
        self.room.saturating_sub(self.bytes.len())
    }

    /// Adds a thing. Without room for its head it is left out, and without room for all its bytes it has fewer.
    pub fn put(&mut self, (level, kind): (u32, u32), body: &[u8]) {
        let left = self.left();
        if left < HEAD_BYTES {
            self.is_cut = true;
            return;
        }
        let len = HEAD_BYTES + body.len();
        self.is_cut |= len > left;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&(len.min(left) as u64).to_le_bytes());
        self.bytes.extend_from_slice(&level.to_le_bytes());
        self.bytes.extend_from_slice(&kind.to_le_bytes());
        self.bytes.extend_from_slice(body);
        self.bytes.resize(start + len.next_multiple_of(STEP).min(left), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::{Control, HEAD_BYTES, half, things};
    use crate::errno::EINVAL;
    use std::vec::Vec;

    fn thing(len: u64, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = [&len.to_le_bytes()[..], &1u32.to_le_bytes(), &kind.to_le_bytes(), body].concat();
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn things_are_found_one_behind_the_other() {
        let all = [thing(17, 2, b"a"), thing(16, 3, b""), thing(20, 4, b"bcde")].concat();
        let found: Vec<_> = things(&all).map(Result::unwrap).collect();
        assert_eq!(found, [((1, 2), &b"a"[..]), ((1, 3), b""), ((1, 4), b"bcde")]);
        // The last one needs no bytes up to the next one that there could be, and fewer bytes than a head are nothing.
        let cut = all.len() - 4;
        assert_eq!(things(&all[..cut]).filter(Result::is_ok).count(), 3);
        for len in 0..HEAD_BYTES {
            assert_eq!(things(&all[..len]).count(), 0);
        }
    }

    #[test]
    fn wrong_lengths_are_told_once() {
        for len in [0, 1, 15, 41, 1 << 32 | 20, u64::MAX, u64::MAX - 7] {
            let all = [thing(len, 2, b"body"), thing(20, 3, b"body")].concat();
            let found: Vec<_> = things(&all[..40]).collect();
            assert_eq!(found, [Err(EINVAL)], "{len}");
        }
        // One may have all bytes that there are.
        let all = [thing(40, 2, b"body"), thing(20, 3, b"body")].concat();
        assert_eq!(things(&all[..40]).map(|thing| thing.unwrap().1.len()).collect::<Vec<_>>(), [24]);
    }

    /// Lengths and flags are those that Linux 6.18 gives for things of 12, 4 and 1 bytes.
    #[test]
    fn what_has_no_room_is_cut() {
        let lens = [16, 17, 18, 19, 20, 21, 24, 28, 31, 32, 40, 47, 48, 53, 56, 57, 71, 72, 73, 79, 80, 96];
        let told = [16, 17, 18, 19, 20, 21, 24, 28, 31, 32, 32, 32, 48, 53, 56, 56, 56, 72, 73, 79, 80, 80];
        for (room, told) in (0..16).map(|room| (room, 0)).chain(lens.into_iter().zip(told)) {
            let mut control = Control::with_room(room);
            control.put((0, 8), &[8; 12]);
            control.put((0, 2), &[2; 4]);
            control.put((0, 1), &[1]);
            assert_eq!((control.bytes.len(), control.is_cut), (told, room < 73), "{room}");
            if room >= 16 {
                assert_eq!(half(&control.bytes, 0), 28.min(room as u32), "{room}");
            }
        }
    }
}
