//! Texts that threads of many programs put together, and how much of that is kept for one program.

use crate::text::{Memory, SHORT_LEN_MAX, Text};
use alloc::collections::BTreeMap;
use api::Status;
use sys::{TaskId, Uid};

/// Threads of one program whose texts are kept at once.
pub const THREADS_MAX: usize = 64;

/// Bytes of all short texts of one program together.
pub const SHARE_LEN_MAX: usize = 64 << 10;

/// A thread, behind its task.
pub type Owner = (TaskId, Uid);

/// A text of each thread that has one. Short ones of a program have [`SHARE_LEN_MAX`] bytes together; how many long ones there may be is said by who gives
/// memory for them.
#[derive(Debug)]
pub struct Staging<M> {
    texts: BTreeMap<Owner, Text<M>>,
}

impl<M> Default for Staging<M> {
    fn default() -> Staging<M> {
        Staging { texts: BTreeMap::new() }
    }
}

impl<M: Memory> Staging<M> {
    /// Puts a piece into a thread's text, from a byte on; what was there from that byte on is forgotten. Byte 0 begins anew. Errors, after which nothing is longer than it
    /// was: [`Status::TooLarge`] if the text would have more than `len_max` bytes, [`Status::BadRequest`] if something is missing before the piece,
    /// [`Status::Exhausted`] if the program has its share, or if it gets no memory for a long text. `memory` is asked when a text becomes long, with the number of long ones that
    /// the program has.
    pub fn put(
        &mut self,
        owner: Owner,
        offset: usize,
        piece: &[u8],
        len_max: usize,
        memory: impl FnOnce(usize) -> Option<M>,
    ) -> Result<(), Status> {
        let len = offset.saturating_add(piece.len());
        if len > len_max {
            return Err(Status::TooLarge);
        }
        let before = self.texts.get(&owner).map_or(0, Text::len);
        if offset > before {
            return Err(Status::BadRequest);
        }
        if offset == 0 {
            // The next text may be a short one again, and gives back the memory of the one before it.
            self.texts.remove(&owner);
        }
        let (mut threads, mut bytes, mut long) = (0, 0, 0);
        for (_, text) in self.of_task(owner.0).filter(|(other, _)| **other != owner) {
            threads += 1;
            match text {
                Text::Short(text) => bytes += text.len(),
                Text::Long(..) => long += 1,
            }
        }
        if threads >= THREADS_MAX || len <= SHORT_LEN_MAX && bytes + len > SHARE_LEN_MAX {
            return Err(Status::Exhausted);
        }
        let text = self.texts.entry(owner).or_default();
        text.truncate(offset);
        text.append(piece, || memory(long))
    }

    /// The text of a thread, which it has no more.
    pub fn take(&mut self, owner: Owner) -> Text<M> {
        self.texts.remove(&owner).unwrap_or_default()
    }

    /// Forgets the texts of a program.
    pub fn forget(&mut self, task: TaskId) {
        self.texts.retain(|owner, _| owner.0 != task);
    }

    /// Forgets all texts.
    pub fn clear(&mut self) {
        self.texts.clear();
    }

    fn of_task(&self, task: TaskId) -> impl Iterator<Item = (&Owner, &Text<M>)> {
        self.texts.range((task, Uid(0))..=(task, Uid(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::{Counted, LONG_LEN_MAX};
    use std::rc::Rc;
    use std::vec::Vec;

    const TASK: TaskId = TaskId(7);

    fn owner(thread: u64) -> Owner {
        (TASK, Uid(thread))
    }

    /// Threads of a program that make their texts long, and then short again.
    #[test]
    fn texts_that_become_short_give_memory_back() {
        let mut staging = Staging::<Counted>::default();
        for thread in 1..=THREADS_MAX as u64 {
            for offset in (0..SHORT_LEN_MAX - 56).step_by(56) {
                staging.put(owner(thread), offset, &[b'x'; 56], LONG_LEN_MAX, |_| None).unwrap();
            }
            staging.put(owner(thread), 1, b"x", LONG_LEN_MAX, |_| None).unwrap();
        }
        let kept: usize = staging
            .texts
            .values()
            .map(|text| match text {
                Text::Short(bytes) => bytes.capacity(),
                Text::Long(..) => 0,
            })
            .sum();
        assert!(kept <= SHARE_LEN_MAX, "{kept}");
    }

    /// A program whose threads put pieces anywhere, for ever: what is kept for it has its limit, and is gone with it.
    #[test]
    fn a_hostile_program_has_its_share() {
        let all = Rc::new(());
        let mut staging = Staging::default();
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % below
        };
        let piece = [b'x'; 5000];
        let mut refused = 0;
        for _ in 0..20_000 {
            let (thread, len) = (random(100), random(5000) as usize);
            let offset = staging.texts.get(&owner(thread)).map_or(0, Text::len);
            let offset = if random(8) == 0 { random(9000) as usize } else { offset };
            let memory = |long: usize| if long < 2 { Counted::new(&all, 99) } else { None };
            refused +=
                usize::from(staging.put(owner(thread), offset, &piece[..len], LONG_LEN_MAX, memory).is_err());
            let short = |text: &Text<Counted>| if text.is_long() { 0 } else { text.len() };
            let bytes: usize = staging.texts.values().map(short).sum();
            assert!(bytes <= SHARE_LEN_MAX && staging.texts.len() <= THREADS_MAX);
            assert_eq!(
                staging.texts.values().filter(|text| text.is_long()).count(),
                Rc::strong_count(&all) - 1
            );
            assert!(Rc::strong_count(&all) <= 3, "two are long");
        }
        assert!(refused > 1000, "limits were met");
        // Others have theirs.
        let other = (TaskId(8), Uid(1));
        staging.put(other, 0, b"ls", LONG_LEN_MAX, |_| None).expect("there is room for another program");
        staging.forget(TASK);
        assert_eq!((staging.texts.len(), Rc::strong_count(&all)), (1, 1));
        assert_eq!(staging.take(other).bytes(), b"ls");
        assert!(staging.take(other).is_empty());
    }

    /// A text that begins anew is that of the last pieces; gaps and lengths beyond the limit are refused.
    #[test]
    fn texts_begin_anew() {
        let all = Rc::new(());
        let mut staging = Staging::default();
        let memory = |_: usize| Counted::new(&all, 1);
        let long: Vec<u8> = (0..LONG_LEN_MAX).map(|at| at as u8).collect();
        for _ in 0..3 {
            for (at, piece) in long.chunks(56).enumerate() {
                staging.put(owner(1), at * 56, piece, LONG_LEN_MAX, memory).expect("it fits");
            }
            assert_eq!(staging.texts[&owner(1)].bytes(), long);
        }
        assert_eq!(staging.put(owner(1), LONG_LEN_MAX, b"x", LONG_LEN_MAX, memory), Err(Status::TooLarge));
        assert_eq!(staging.put(owner(1), usize::MAX, b"x", LONG_LEN_MAX, memory), Err(Status::TooLarge));
        assert_eq!(staging.put(owner(2), 1, b"x", LONG_LEN_MAX, memory), Err(Status::BadRequest));
        staging.put(owner(1), 0, b"short", LONG_LEN_MAX, memory).expect("it is short");
        assert_eq!(Rc::strong_count(&all), 1, "it needs no memory of its own any more");
        staging.put(owner(1), 2, b"e", LONG_LEN_MAX, memory).expect("it replaces the end");
        assert_eq!(staging.take(owner(1)).bytes(), b"she");
    }
}
