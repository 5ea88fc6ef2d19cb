//! Timers behind descriptors: `timerfd`.
//!
//! A timer that repeats is told of once, and counts on only when somebody reads it, as in Linux. So the shortest interval costs no more than a long one.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::{Rc, Weak};
use core::cell::Cell;

/// A timer. Times are those of the machine, in nanoseconds.
#[derive(Debug)]
pub struct Timer {
    /// Number that no other has.
    pub number: u64,
    /// Clock that absolute times are of: `CLOCK_…`.
    pub clock: u32,
    state: Cell<State>,
}

#[derive(Clone, Copy, Default, Debug)]
struct State {
    /// When it expires, or has expired first since it was read.
    at: Option<u64>,
    /// Time until it expires again; 0: it does not.
    every: u64,
    /// Expirations that nobody has read.
    count: u64,
    /// Whether it has expired at [`State::at`].
    has_expired: bool,
}

impl State {
    fn expire(&mut self, now: u64) {
        if !self.has_expired && self.at.is_some_and(|at| at <= now) {
            self.has_expired = true;
            self.count += 1;
        }
    }

    /// Counts what has passed since it expired, and goes on.
    fn go_on(&mut self, now: u64) {
        let Some(at) = self.at.filter(|_| self.has_expired) else { return };
        self.at = now.saturating_sub(at).checked_div(self.every).map(|more| {
            self.count = self.count.saturating_add(more);
            at.saturating_add(self.every.saturating_mul(more + 1))
        });
        self.has_expired = false;
    }
}

impl Timer {
    /// A timer that is not set.
    pub fn new(number: u64, clock: u32) -> Rc<Timer> {
        Rc::new(Timer { number, clock, state: Cell::default() })
    }

    /// Changes the state, and gives back what the change says.
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.get();
        let outcome = change(&mut state);
        self.state.set(state);
        outcome
    }

    /// Sets it, or stops it. Expirations before are forgotten.
    pub fn set(&self, at: Option<u64>, every: u64) {
        self.state.set(State { at, every, ..State::default() });
    }

    /// When somebody has to be told.
    pub fn due(&self) -> Option<u64> {
        let state = self.state.get();
        state.at.filter(|_| !state.has_expired)
    }

    /// Its time may have come.
    pub fn expire(&self, now: u64) {
        self.with(|state| state.expire(now));
    }

    /// Expirations that nobody has read.
    pub fn count(&self, now: u64) -> u64 {
        let mut state = self.state.get();
        state.expire(now);
        state.count
    }

    /// Takes the expirations that nobody has read.
    pub fn read(&self, now: u64) -> u64 {
        self.with(|state| {
            state.expire(now);
            state.go_on(now);
            core::mem::take(&mut state.count)
        })
    }

    /// Its interval, and the time that is left.
    pub fn left(&self, now: u64) -> (u64, u64) {
        self.with(|state| {
            state.expire(now);
            state.go_on(now);
            (state.every, state.at.map_or(0, |at| at.saturating_sub(now)))
        })
    }
}

/// All timers.
#[derive(Debug, Default)]
pub struct Timers {
    due: BTreeSet<(u64, u64)>,
    all: BTreeMap<u64, (Option<u64>, Weak<Timer>)>,
    /// When the next of those is due that send signals.
    pub also: Option<u64>,
}

impl Timers {
    /// A timer may be due at another time than before.
    pub fn note(&mut self, timer: &Rc<Timer>) {
        self.forget(timer.number);
        let due = timer.due();
        self.due.extend(due.map(|at| (at, timer.number)));
        self.all.insert(timer.number, (due, Rc::downgrade(timer)));
    }

    /// A timer is closed.
    pub fn forget(&mut self, number: u64) {
        if let Some((Some(at), _)) = self.all.remove(&number) {
            self.due.remove(&(at, number));
        }
    }

    /// When the next one is due.
    pub fn next(&self) -> Option<u64> {
        self.due.first().map(|(at, _)| *at).into_iter().chain(self.also).min()
    }

    /// Takes one that is due.
    pub fn take(&mut self, now: u64) -> Option<Rc<Timer>> {
        while let Some((at, number)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, number));
            let Some((due, timer)) = self.all.get_mut(&number) else { continue };
            *due = None;
            if let Some(timer) = timer.upgrade() {
                return Some(timer);
            }
        }
        None
    }
}
