//! Queue: threads that wait for a thread, or for a server of a task, the most urgent first; within one priority first come, first served.
//!
//! It is one list. The first and the last waiter of each priority know each other, so an insertion looks at one waiter of each priority that
//! is in the queue, 64 at most, and at no other; a removal looks at none.

use super::ThreadRef;
use super::thread::Senders;
use crate::util::list::List;

/// A queue of waiters. Each stands in it at the priority that it had when it came, or that it was [moved](Queue::insert) to since.
#[derive(Default)]
pub struct Queue(List<Senders>);

impl Queue {
    /// The most urgent waiter.
    #[inline(always)]
    pub fn first(&self) -> Option<ThreadRef> {
        self.0.first()
    }

    /// The waiter behind `thread`, which is in this queue.
    pub fn after(&self, thread: ThreadRef) -> Option<ThreadRef> {
        self.0.after(thread)
    }

    /// Whether nobody waits.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Priority of the most urgent waiter; 0, which helps nobody, if there is none.
    pub fn urgency(&self) -> u8 {
        self.first().map_or(0, |first| first.home.stands_at.get())
    }

    /// First waiter of `priority`, and the last one above that; with the number of priorities looked at.
    fn find(&self, priority: u8) -> (Option<ThreadRef>, Option<ThreadRef>, u32) {
        let (mut place, mut above, mut looked) = (self.first(), None, 0);
        while let Some(first) = place.filter(|first| first.home.stands_at.get() > priority) {
            above = first.inherited.end.get();
            place = above.and_then(|last| self.after(last));
            looked += 1;
        }
        (place.filter(|first| first.home.stands_at.get() == priority), above, looked)
    }

    /// Puts a thread that is in no queue behind all waiters of `priority` and above. Returns the number of priorities looked at.
    pub fn insert(&self, thread: ThreadRef, priority: u8) -> u32 {
        let (first, above, looked) = self.find(priority);
        thread.home.stands_at.set(priority);
        match first {
            Some(first) => {
                let last = first.inherited.end.replace(Some(thread)).expect("the first knows the last");
                if last != first {
                    last.inherited.end.set(None);
                }
                thread.inherited.end.set(Some(first));
                self.0.insert_after(last, thread);
            }
            None => {
                thread.inherited.end.set(Some(thread));
                above.map_or_else(|| self.0.push_front(thread), |above| self.0.insert_after(above, thread));
            }
        }
        looked
    }

    /// Takes a waiter out.
    pub fn remove(&self, thread: ThreadRef) {
        let priority = thread.home.stands_at.get();
        let equal = |it: &ThreadRef| it.home.stands_at.get() == priority;
        let before = self.0.before(thread).filter(equal);
        let behind = self.0.after(thread).filter(equal);
        let end = thread.inherited.end.take();
        if let Some(neighbour) = before.xor(behind) {
            // It was the first or the last of several.
            let other = end.expect("the first and the last know each other");
            neighbour.inherited.end.set(Some(other));
            other.inherited.end.set(Some(neighbour));
        }
        self.0.remove(thread);
    }

    /// Checks the order, and that the first and the last of each priority know each other, and no other waiter anybody.
    pub fn check(&self) {
        let mut first = self.first();
        while let Some(thread) = first {
            let priority = thread.home.stands_at.get();
            let (mut last, mut next) = (thread, self.after(thread));
            while let Some(it) = next.filter(|it| it.home.stands_at.get() == priority) {
                assert!(
                    last == thread || last.inherited.end.get().is_none(),
                    "{last:?} is neither first nor last"
                );
                (last, next) = (it, self.after(it));
            }
            let ends = (thread.inherited.end.get(), last.inherited.end.get());
            assert_eq!(ends, (Some(last), Some(thread)), "the ends of a priority know others");
            assert!(next.is_none_or(|it| it.home.stands_at.get() < priority), "a queue is out of order");
            first = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::thread::Tcb;

    #[test]
    fn a_queue_is_sorted_and_within_a_priority_first_come_first_served() {
        let threads: Vec<ThreadRef> = (0..20).map(|_| ThreadRef::new(Tcb::leak_for_tests())).collect();
        let queue = Queue::default();
        let mut model: Vec<(u8, ThreadRef)> = Vec::new();
        let mut state = 1u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        for _ in 0..20_000 {
            let thread = threads[below(20) as usize];
            match model.iter().position(|&(_, it)| it == thread) {
                Some(at) => {
                    model.remove(at);
                    queue.remove(thread);
                }
                None => {
                    let priority = below(5) as u8;
                    let at = model.iter().position(|&(other, _)| other < priority).unwrap_or(model.len());
                    model.insert(at, (priority, thread));
                    queue.insert(thread, priority);
                }
            }
            queue.check();
            let all = core::iter::successors(queue.first(), |&it| queue.after(it));
            assert!(all.eq(model.iter().map(|&(_, it)| it)));
            assert_eq!(queue.urgency(), model.first().map_or(0, |&(priority, _)| priority));
        }
    }
}
