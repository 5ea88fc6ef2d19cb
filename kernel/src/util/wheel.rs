//! Pending timeouts: a hierarchical timing wheel (row P8).
//!
//! Deadlines are counted in units of 1,024 ns. Level *n* has 64 lists, each for a span of 64ⁿ units. A deadline is
//! filed at the level of the highest group of 6 bits in which it differs from *now*, so filing costs the same
//! for one pending timeout and for a hundred thousand, and the next non-empty list is found by a bit scan:
//! no periodic tick is needed. A list of a higher level is refiled when its span begins.
//!
//! Filing is lazy in the paper's sense: a thread whose wait ended stays filed until its list is looked at or it
//! waits again; [`Wheel::expire`] is told by its caller whether a wait still stands.
//!
//! Where the paper has eight unordered lists that are walked every few milliseconds, this has microsecond
//! grain and no walk; `docs/decisions` holds the comparison.

use super::list::{Link, List, Tag};
use crate::object::ThreadRef;
use core::cell::Cell;

const GROUP_BITS: u32 = 6;
const LISTS: usize = 1 << GROUP_BITS;
const LEVELS: usize = 9;
const NEVER: u64 = u64::MAX >> GRAIN_SHIFT;
/// Log2 of the grain in nanoseconds.
pub const GRAIN_SHIFT: u32 = 10;

/// The deadlines' links.
pub struct Deadlines;

impl Tag for Deadlines {
    fn link(thread: &ThreadRef) -> &Link {
        &thread.timeout.link
    }
}

/// A thread's entry in the wheel.
#[derive(Default)]
pub struct Timeout {
    link: Link,
    /// Deadline in grains.
    deadline: Cell<u64>,
    /// Which list it is in: level × 64 + number.
    list: Cell<u16>,
}

/// All pending timeouts of one CPU.
pub struct Wheel {
    lists: [[List<Deadlines>; LISTS]; LEVELS],
    occupied: [Cell<u64>; LEVELS],
    /// Everything before this grain is expired or refiled.
    now: Cell<u64>,
    /// No deadline is before this grain. A lower bound: a timeout that was dropped may have set it.
    not_before: Cell<u64>,
    /// Level and number of the list that the last [`Wheel::expire`] did not finish.
    unfinished: Cell<Option<(usize, usize)>>,
}

impl Default for Wheel {
    fn default() -> Self {
        Wheel::new()
    }
}

impl Wheel {
    /// An empty wheel at time 0.
    pub const fn new() -> Wheel {
        Wheel {
            lists: [const { [const { List::new() }; LISTS] }; LEVELS],
            occupied: [const { Cell::new(0) }; LEVELS],
            now: Cell::new(0),
            not_before: Cell::new(NEVER),
            unfinished: Cell::new(None),
        }
    }

    /// Files `thread` to expire at `deadline_ns` or up to one grain later. An older entry of it is dropped.
    pub fn insert(&self, thread: ThreadRef, deadline_ns: u64) {
        self.remove(thread);
        let deadline = (deadline_ns >> GRAIN_SHIFT) + 1;
        let deadline = deadline.max(self.now.get() + 1);
        thread.timeout.deadline.set(deadline);
        self.not_before.set(self.not_before.get().min(deadline));
        self.file(thread);
    }

    fn file(&self, thread: ThreadRef) {
        let deadline = thread.timeout.deadline.get();
        let differing = (deadline ^ self.now.get()) | 1;
        let level = ((63 - differing.leading_zeros()) / GROUP_BITS).min(LEVELS as u32 - 1);
        let number = (deadline >> (level * GROUP_BITS)) as usize % LISTS;
        thread.timeout.list.set((level as usize * LISTS + number) as u16);
        self.lists[level as usize][number].push_back(thread);
        self.occupied[level as usize].set(self.occupied[level as usize].get() | 1 << number);
    }

    /// Drops the entry of `thread`, if it has one. Most have none.
    #[inline(always)]
    pub fn remove(&self, thread: ThreadRef) {
        if thread.timeout.link.is_linked() {
            self.remove_entry(thread);
        }
    }

    #[inline(never)]
    fn remove_entry(&self, thread: ThreadRef) {
        let list = thread.timeout.list.get() as usize;
        let (level, number) = (list / LISTS, list % LISTS);
        self.lists[level][number].remove(thread);
        self.clear_if_empty(level, number);
    }

    fn clear_if_empty(&self, level: usize, number: usize) {
        if self.lists[level][number].is_empty() {
            self.occupied[level].set(self.occupied[level].get() & !(1 << number));
        }
    }

    /// The first occupied list in time: level, number, and the grain at which its span begins.
    fn next_list(&self) -> Option<(usize, usize, u64)> {
        if let Some((level, number)) = self.unfinished.get() {
            if !self.lists[level][number].is_empty() {
                return Some((level, number, self.now.get()));
            }
            self.unfinished.set(None);
        }
        for level in 0..LEVELS {
            let shift = level as u32 * GROUP_BITS;
            let position = (self.now.get() >> shift) as usize % LISTS;
            // Lists at or behind the position of a level hold nothing: their spans have begun.
            let ahead = self.occupied[level].get() & (!0 << position);
            if ahead != 0 {
                let number = ahead.trailing_zeros() as usize;
                let round = self.now.get() >> shift >> GROUP_BITS << GROUP_BITS;
                let start = (round | number as u64) << shift;
                return Some((level, number, start.max(self.now.get())));
            }
        }
        None
    }

    /// When the timer should next fire, in nanoseconds: never later than the earliest deadline, and about
    /// `u64::MAX` if there is none.
    #[inline]
    pub fn not_before_ns(&self) -> u64 {
        self.not_before.get() << GRAIN_SHIFT
    }

    /// Advances to `now_ns` and hands each expired thread to `expired`. At most `limit` entries are touched; true
    /// if it must be called again.
    pub fn expire(&self, now_ns: u64, mut limit: usize, mut expired: impl FnMut(ThreadRef)) -> bool {
        let target = now_ns >> GRAIN_SHIFT;
        while let Some((level, number, start)) = self.next_list() {
            if start > target {
                break;
            }
            self.now.set(start);
            while let Some(thread) = self.lists[level][number].first() {
                if limit == 0 {
                    self.unfinished.set(Some((level, number)));
                    self.not_before.set(start);
                    return true;
                }
                limit -= 1;
                self.lists[level][number].remove(thread);
                if thread.timeout.deadline.get() <= start {
                    expired(thread);
                } else {
                    self.file(thread);
                }
            }
            self.clear_if_empty(level, number);
        }
        self.now.set(target.max(self.now.get()));
        self.not_before.set(self.next_list().map_or(NEVER, |(_, _, start)| start));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::thread::Tcb;

    fn thread() -> ThreadRef {
        ThreadRef::new(Tcb::leak_for_tests())
    }

    /// A few thousand random insertions, removals and advances against a plain list.
    #[test]
    fn behaves_like_a_sorted_list() {
        let wheel = Wheel::new();
        let threads: Vec<ThreadRef> = (0..64).map(|_| thread()).collect();
        let mut model: Vec<Option<u64>> = vec![None; 64];
        let mut seed = 1u64;
        let mut random = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let mut now = 0u64;
        for _ in 0..if cfg!(miri) { 300 } else { 20_000 } {
            let i = (random() % 64) as usize;
            match random() % 8 {
                0..4 => {
                    let after = random() >> (20 + random() % 40);
                    wheel.insert(threads[i], now + after);
                    model[i] = Some(now + after);
                }
                4 => {
                    wheel.remove(threads[i]);
                    model[i] = None;
                }
                _ => {
                    if let Some(&earliest) = model.iter().flatten().min() {
                        let next = wheel.not_before_ns();
                        assert!(next <= earliest.max(now) + (1 << GRAIN_SHIFT), "{next} {earliest}");
                    }
                    now += random() >> (24 + random() % 36);
                    let mut fired = Vec::new();
                    while wheel.expire(now, 3, |t| fired.push(t)) {}
                    for (i, slot) in model.iter_mut().enumerate() {
                        let due = fired.contains(&threads[i]);
                        if let Some(deadline) = *slot {
                            let surely = deadline + (2 << GRAIN_SHIFT) <= now;
                            assert!(!due || deadline <= now, "fired {} early", deadline - now);
                            assert!(due || !surely, "missed {}", now - deadline);
                            if due {
                                *slot = None;
                            }
                        } else {
                            assert!(!due, "fired without a deadline");
                        }
                    }
                }
            }
        }
    }
}
