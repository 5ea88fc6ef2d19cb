//! Pending timeouts as the 1993 paper has them: eight unordered lists and a long-time list (row P8).
//!
//! Time is counted in ticks of about 4 ms. A deadline is filed in the list of its tick modulo 8, and each tick looks at
//! all of one list: those that are due expire, those that are far away go to the long-time list, the others stay. The
//! long-time list is looked at once in 256 ticks, and who is due before its next turn goes back. Filing is as cheap
//! as it can be; what each tick costs grows with what is filed.
//!
//! Three things differ from the paper. A point in time is one word, since words have 64 bits: there is no base that
//! has to be moved. A look at a list works on a budget, so that no interrupt takes long, however much is filed; the
//! lists have two halves for that, and a look moves from the one to the other. And nothing ticks while nothing is
//! filed.
//!
//! This is one arm of [`param::Timeouts`](crate::param::Timeouts); decision 0012 has the comparison.

use super::list::List;
use super::timeout::{Deadlines, GRAIN_SHIFT, NEVER, grain_of};
use crate::check::members;
use crate::object::ThreadRef;
use core::cell::Cell;

/// Log2 of a tick in grains.
const TICK_SHIFT: u32 = 12;
/// Length of a tick in nanoseconds.
pub const TICK_NS: u64 = 1 << (TICK_SHIFT + GRAIN_SHIFT);
/// The short-time lists.
const LISTS: usize = 8;
/// Number of the long-time list.
const LONG: usize = LISTS;
/// Ticks between two looks at the long-time list: about a second.
const LONG_TICKS: u64 = 256;

/// A list in two halves. Entries are in the half `here`, but for those that a look, not finished, has not yet seen.
struct Halves {
    halves: [List<Deadlines>; 2],
    here: Cell<usize>,
}

impl Halves {
    const fn new() -> Halves {
        Halves { halves: [const { List::new() }; 2], here: Cell::new(0) }
    }

    /// The half that has to be seen, if any of it is left.
    fn unseen(&self) -> &List<Deadlines> {
        &self.halves[1 - self.here.get()]
    }
}

/// All pending timeouts of one CPU.
pub struct Lists {
    lists: [Halves; LISTS + 1],
    /// The last tick whose list was begun to be looked at.
    tick: Cell<u64>,
    /// Which list is being looked at.
    looking: Cell<usize>,
    /// Entries in all lists.
    filed: Cell<usize>,
}

impl Default for Lists {
    fn default() -> Self {
        Lists::new()
    }
}

impl Lists {
    /// Empty lists at time 0.
    pub const fn new() -> Lists {
        Lists {
            lists: [const { Halves::new() }; LISTS + 1],
            tick: Cell::new(0),
            looking: Cell::new(0),
            filed: Cell::new(0),
        }
    }

    /// Files `thread` to expire at `deadline_ns`, which has not passed, or up to two ticks later, in the place of what it
    /// had before. True if the timer must fire earlier than before.
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
        self.file(thread, (Lists::tick_of(deadline).max(self.tick.get() + 1)) as usize % LISTS);
        self.filed.get() == 1
    }

    /// The tick at which a deadline has passed.
    fn tick_of(deadline: u64) -> u64 {
        (deadline + (1 << TICK_SHIFT) - 1) >> TICK_SHIFT
    }

    #[inline(always)]
    fn file(&self, thread: ThreadRef, number: usize) {
        let list = &self.lists[number];
        thread.timeout.filed.set(thread.timeout.deadline.get());
        thread.timeout.list.set((number * 2 + list.here.get()) as u16);
        list.halves[list.here.get()].push_back(thread);
        self.filed.set(self.filed.get() + 1);
    }

    /// Drops the timeout of `thread`, if it has one. It stays filed.
    #[inline(always)]
    pub fn remove(&self, thread: ThreadRef) {
        thread.timeout.deadline.set(NEVER);
    }

    /// Takes a thread out whose block is going away, or that is filed too late.
    pub fn unlink(&self, thread: ThreadRef) {
        if thread.timeout.link.is_linked() {
            let list = thread.timeout.list.get() as usize;
            self.lists[list / 2].halves[list % 2].remove(thread);
            self.filed.set(self.filed.get() - 1);
        }
    }

    /// When the timer should next fire, in nanoseconds: at the next tick, or about `u64::MAX` if nothing is filed.
    #[inline]
    pub fn not_before_ns(&self) -> u64 {
        if self.filed.get() == 0 { NEVER << GRAIN_SHIFT } else { (self.tick.get() + 1) * TICK_NS }
    }

    /// Advances to `now_ns` and hands each expired thread to `expired`. At most `limit` entries are touched; true
    /// if it must be called again.
    pub fn expire(&self, now_ns: u64, limit: usize, mut expired: impl FnMut(ThreadRef)) -> bool {
        let now = now_ns >> GRAIN_SHIFT;
        let mut limit = limit;
        while self.look(now, &mut limit, &mut expired) {
            if self.tick.get() >= now >> TICK_SHIFT {
                return false;
            }
            self.begin_tick(now >> TICK_SHIFT);
        }
        true
    }

    /// Checks that each thread is filed where it says. Returns how many are filed.
    pub fn check(&self) -> usize {
        let mut filed = 0;
        for (number, list) in self.lists.iter().enumerate() {
            for (half, list) in list.halves.iter().enumerate() {
                for thread in members(list.first(), |thread| list.after(thread)) {
                    let timeout = &thread.timeout;
                    assert_eq!(
                        timeout.list.get() as usize,
                        number * 2 + half,
                        "{thread:?} is filed elsewhere"
                    );
                    assert!(timeout.filed.get() <= timeout.deadline.get(), "{thread:?} is filed too late");
                    filed += 1;
                }
            }
        }
        assert_eq!(filed, self.filed.get(), "timeouts are counted wrongly");
        filed
    }

    /// Begins the look at the next list. Ticks that were missed come one after the other, but each list once.
    fn begin_tick(&self, last: u64) {
        // After a long time in which nothing was filed, one turn of all lists is enough.
        let behind = last.saturating_sub(LONG_TICKS);
        let tick = self.tick.get().max(behind) + 1;
        // A tick in which the long-time list has its turn looks at that first.
        let is_long = tick.is_multiple_of(LONG_TICKS) && self.looking.get() != LONG;
        let number = if is_long { LONG } else { tick as usize % LISTS };
        if !is_long {
            self.tick.set(if self.filed.get() == 0 { last } else { tick });
        }
        self.looking.set(number);
        let list = &self.lists[number];
        list.here.set(1 - list.here.get());
    }

    /// Goes on with the list that is being looked at. True if it is done.
    fn look(&self, now: u64, limit: &mut usize, expired: &mut impl FnMut(ThreadRef)) -> bool {
        let number = self.looking.get();
        while let Some(thread) = self.lists[number].unseen().first() {
            if *limit == 0 {
                return false;
            }
            *limit -= 1;
            self.unlink(thread);
            let deadline = thread.timeout.deadline.get();
            let soon = (self.tick.get() + LONG_TICKS) << TICK_SHIFT;
            match deadline {
                NEVER => {}
                _ if deadline <= now => expired(thread),
                _ if deadline > soon => self.file(thread, LONG),
                _ => self.file(thread, Lists::tick_of(deadline) as usize % LISTS),
            }
        }
        true
    }
}

const _: () = assert!(LISTS.is_power_of_two() && LONG_TICKS.is_multiple_of(LISTS as u64));
