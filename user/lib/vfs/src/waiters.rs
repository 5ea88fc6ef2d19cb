//! Threads that wait for watches. One that ends while it waits is not known to have ended, so none may take up room that others need.

use alloc::vec::Vec;

/// Threads that wait for one watch, at most.
pub const OF_ONE_MAX: usize = 8;

/// All who wait, each of them for one watch.
#[derive(Debug)]
pub struct Waiters<T>(Vec<Waiter<T>>);

#[derive(Debug)]
struct Waiter<T> {
    thread: T,
    watch: u64,
    until_ns: u64,
}

impl<T> Default for Waiters<T> {
    fn default() -> Waiters<T> {
        Waiters(Vec::new())
    }
}

impl<T: Copy + PartialEq> Waiters<T> {
    /// A thread waits for a watch, in place of what it has waited for before. False if too many wait for it.
    pub fn add(&mut self, thread: T, watch: u64, until_ns: u64) -> bool {
        self.0.retain(|waiter| waiter.thread != thread);
        let has_room = self.0.iter().filter(|waiter| waiter.watch == watch).count() < OF_ONE_MAX;
        if has_room {
            self.0.push(Waiter { thread, watch, until_ns });
        }
        has_room
    }

    /// Takes out those whose watches are ready (true), or whose time is over (false).
    pub fn take(&mut self, now_ns: u64, mut is_ready: impl FnMut(u64) -> bool) -> Vec<(T, bool)> {
        let mut taken = Vec::new();
        self.0.retain(|waiter| {
            let is_ready = is_ready(waiter.watch);
            let waits = !is_ready && waiter.until_ns > now_ns;
            if !waits {
                taken.push((waiter.thread, is_ready));
            }
            waits
        });
        taken
    }

    /// When the time of the next one is over, if one has an end.
    pub fn next_ns(&self) -> Option<u64> {
        self.0.iter().map(|waiter| waiter.until_ns).min().filter(|&until_ns| until_ns != u64::MAX)
    }

    /// How many wait.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_answered_once() {
        let mut waiters = Waiters::default();
        assert!(waiters.add(1, 10, 100) && waiters.add(2, 11, u64::MAX) && waiters.add(3, 10, u64::MAX));
        assert_eq!(waiters.next_ns(), Some(100));
        assert_eq!(waiters.take(99, |_| false), []);
        assert_eq!(waiters.take(100, |_| false), [(1, false)]);
        assert_eq!((waiters.next_ns(), waiters.count()), (None, 2));
        assert_eq!(waiters.take(0, |watch| watch == 10), [(3, true)]);
        // One that waits for something else waits no more for the first.
        assert!(waiters.add(2, 12, 50));
        assert_eq!(waiters.take(60, |watch| watch == 11), [(2, false)]);
        assert_eq!(waiters.count(), 0);
    }

    #[test]
    fn threads_that_have_ended_take_up_little() {
        let mut waiters = Waiters::default();
        let room = (0..100).filter(|&thread| waiters.add(thread, 1, u64::MAX)).count();
        assert_eq!((room, waiters.count()), (OF_ONE_MAX, OF_ONE_MAX));
        assert!(waiters.add(100, 2, u64::MAX), "another watch is not their business");
        assert_eq!(waiters.take(0, |watch| watch == 1).len(), OF_ONE_MAX);
    }
}
