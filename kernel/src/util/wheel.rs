//! Pending timeouts: a hierarchical timing wheel (row P8).
//!
//! Deadlines are counted in units of 1,024 ns. Level *n* has 64 lists, each for a span of 64ⁿ units. A deadline is
//! filed at the level of the highest group of 6 bits in which it differs from *now*, so filing costs the same
//! for one pending timeout and for a hundred thousand, and the next non-empty list is found by a bit scan:
//! no periodic tick is needed. A list of a higher level is refiled when its span begins.
//!
//! Filing is lazy in the paper's sense: a thread whose wait ended stays filed until its list is looked at or it ends,
//! and a deadline later than the one under which the thread is filed leaves it there. So a client that calls with the
//! same timeout again and again touches no list.
//!
//! Decision 0012 compares the wheel with the paper's own structure.

use super::list::List;
use super::timeout::{Deadlines, GRAIN_SHIFT, NEVER, grain_of};
use crate::check::members;
use crate::object::ThreadRef;
use core::cell::Cell;

const GROUP_BITS: u32 = 6;
const LISTS: usize = 1 << GROUP_BITS;
const LEVELS: usize = 9;

/// All pending timeouts of one CPU.
pub struct Wheel {
    /// Lists by level × 64 + number.
    lists: [List<Deadlines>; LEVELS * LISTS],
    occupied: [Cell<u64>; LEVELS],
    /// Grain that the wheel has reached: everything before it is expired or refiled.
    now: Cell<u64>,
    /// Lower bound of all deadlines, in grains. A timeout that was dropped may have set it.
    not_before: Cell<u64>,
    /// The list that the last [`Wheel::expire`] did not finish.
    unfinished: Cell<Option<usize>>,
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
            lists: [const { List::new() }; LEVELS * LISTS],
            occupied: [const { Cell::new(0) }; LEVELS],
            now: Cell::new(0),
            not_before: Cell::new(NEVER),
            unfinished: Cell::new(None),
        }
    }

    /// Files `thread` to expire at `deadline_ns`, which has not passed, or up to one grain later. This replaces a former
    /// timeout. True if the timer must fire earlier than before.
    #[inline(always)]
    #[must_use]
    pub fn insert(&self, thread: ThreadRef, deadline_ns: u64) -> bool {
        let deadline = grain_of(deadline_ns);
        let timeout = &thread.timeout;
        timeout.deadline.set(deadline);
        if timeout.link.is_linked() {
            if deadline >= timeout.filed.get() {
                return false;
            }
            self.unlink(thread);
        }
        self.file(thread, deadline);
        let earlier = deadline < self.not_before.get();
        if earlier {
            self.not_before.set(deadline);
        }
        earlier
    }

    #[inline(always)]
    fn file(&self, thread: ThreadRef, deadline: u64) {
        thread.timeout.filed.set(deadline);
        let level = (deadline ^ self.now.get() | 1).ilog2() / GROUP_BITS;
        let number = (deadline >> (level * GROUP_BITS)) as usize % LISTS;
        let index = level as usize * LISTS + number;
        thread.timeout.list.set(index as u16);
        let list = &self.lists[index];
        if list.is_empty() {
            let occupied = &self.occupied[level as usize];
            occupied.set(occupied.get() | 1 << number);
        }
        list.push_back(thread);
    }

    /// Drops the timeout of `thread`, if it has one. It stays filed.
    #[inline(always)]
    pub fn remove(&self, thread: ThreadRef) {
        thread.timeout.deadline.set(NEVER);
    }

    /// Takes a thread out of its list: its block is going away, or it is filed too late.
    #[inline]
    pub fn unlink(&self, thread: ThreadRef) {
        if thread.timeout.link.is_linked() {
            let index = thread.timeout.list.get() as usize;
            self.lists[index].remove(thread);
            self.clear_if_empty(index);
        }
    }

    #[inline]
    fn clear_if_empty(&self, index: usize) {
        if self.lists[index].is_empty() {
            let occupied = &self.occupied[index / LISTS];
            occupied.set(occupied.get() & !(1 << (index % LISTS)));
        }
    }

    /// The first occupied list in time, and the grain at which its span begins.
    fn next_list(&self) -> Option<(usize, u64)> {
        if let Some(index) = self.unfinished.get() {
            if !self.lists[index].is_empty() {
                return Some((index, self.now.get()));
            }
            self.unfinished.set(None);
        }
        for (level, occupied) in self.occupied.iter().enumerate() {
            let shift = level as u32 * GROUP_BITS;
            let position = (self.now.get() >> shift) as usize % LISTS;
            // Lists at or behind the position of a level hold nothing: their spans have begun.
            let ahead = occupied.get() & (!0 << position);
            if ahead != 0 {
                let number = ahead.trailing_zeros() as usize;
                let round = self.now.get() >> shift >> GROUP_BITS << GROUP_BITS;
                let start = (round | number as u64) << shift;
                return Some((level * LISTS + number, start.max(self.now.get())));
            }
        }
        None
    }

    /// Time at which the timer should fire next, in nanoseconds: never later than the earliest deadline, and about
    /// `u64::MAX` if there is none.
    #[inline]
    pub fn not_before_ns(&self) -> u64 {
        self.not_before.get() << GRAIN_SHIFT
    }

    /// Advances to `now_ns` and hands each expired thread to `expired`, which returns the weight of that. Entries of at most the weight
    /// `limit` are touched, and the rest of the last one; true if it must be called again.
    pub fn expire(&self, now_ns: u64, mut limit: usize, mut expired: impl FnMut(ThreadRef) -> usize) -> bool {
        let target = now_ns >> GRAIN_SHIFT;
        while let Some((index, start)) = self.next_list() {
            if start > target {
                break;
            }
            self.now.set(start);
            while let Some(thread) = self.lists[index].first() {
                if limit == 0 {
                    self.unfinished.set(Some(index));
                    self.not_before.set(start);
                    return true;
                }
                self.lists[index].remove(thread);
                let weight = match thread.timeout.deadline.get() {
                    deadline if deadline <= start => expired(thread),
                    NEVER => 1,
                    deadline => {
                        self.file(thread, deadline);
                        1
                    }
                };
                limit = limit.saturating_sub(weight);
            }
            self.clear_if_empty(index);
        }
        self.now.set(target.max(self.now.get()));
        self.not_before.set(self.next_list().map_or(NEVER, |(_, start)| start));
        false
    }

    /// Checks that each thread is filed where it will be found at its time, and not later. Returns how many are filed.
    pub fn check(&self) -> usize {
        let mut filed = 0;
        for (index, list) in self.lists.iter().enumerate() {
            let (level, number) = (index / LISTS, index % LISTS);
            let occupied = self.occupied[level].get() >> number & 1 != 0;
            let unfinished = self.unfinished.get() == Some(index);
            assert!(occupied || list.is_empty(), "list {index} is not seen");
            for thread in members(list.first(), |thread| list.after(thread)) {
                let timeout = &thread.timeout;
                assert_eq!(timeout.list.get() as usize, index, "{thread:?} is filed elsewhere");
                assert!(timeout.filed.get() <= timeout.deadline.get(), "{thread:?} is filed too late");
                let shift = level as u32 * GROUP_BITS;
                assert_eq!(
                    (timeout.filed.get() >> shift) as usize % LISTS,
                    number,
                    "{thread:?} is filed under another time"
                );
                // The lists of a level that are ahead belong to this round of it.
                let round = shift + GROUP_BITS;
                let ahead = unfinished || timeout.filed.get() >> shift >= self.now.get() >> shift;
                let same = round >= u64::BITS || timeout.filed.get() >> round == self.now.get() >> round;
                assert!(ahead && same, "{thread:?} is filed where nobody will look in time");
                if timeout.is_pending() {
                    assert!(
                        timeout.deadline.get() >= self.not_before.get(),
                        "the timer will be late for {thread:?}"
                    );
                }
                filed += 1;
            }
        }
        filed
    }
}

const _: () = assert!(u64::BITS - GRAIN_SHIFT <= LEVELS as u32 * GROUP_BITS);
