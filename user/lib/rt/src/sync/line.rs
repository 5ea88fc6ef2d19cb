//! Threads that stand in line until somebody wakes them.
//!
//! A line lies under a lock, mostly beside what is waited for. Who waits sleeps in an ipc that an alert ends; who wakes it alerts it
//! *under the lock*, while it is in line. So a wake that comes before the sleep is not lost, and none comes after the wait.
//!
//! **The surprise: a thread has one alert, and it may be meant for something else** ([`sys::alert`]). An alert that finds the thread in
//! line, and is no wake, is set again at the end of the wait. One that comes between the wake and its end is taken for
//! the wake. The twin in C is `user/lib/c/lib/wait.c`.

use super::system::{Mutex, alert, clear_alert, myself, now_ns, sleep};
use alloc::collections::VecDeque;
use sys::Uid;

/// Queue of those who wait, first come first.
#[derive(Debug)]
pub struct Line {
    waiting: VecDeque<Place>,
    next_ticket: u64,
}

/// One place in a line.
#[derive(Debug)]
struct Place {
    ticket: u64,
    thread: Uid,
    is_woken: bool,
    /// Whether the thread was alerted already when it was woken.
    was_alerted: bool,
}

impl Line {
    /// An empty line.
    pub const fn new() -> Line {
        Line { waiting: VecDeque::new(), next_ticket: 0 }
    }

    /// The calling thread stands in line from now on, and calls [`wait`] next.
    pub fn join(&mut self) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting.push_back(Place { ticket, thread: myself(), is_woken: false, was_alerted: false });
        ticket
    }

    /// Wakes the first who is not woken yet; says whether there was one.
    pub fn wake_one(&mut self) -> bool {
        let Some(place) = self.waiting.iter_mut().find(|place| !place.is_woken) else { return false };
        place.is_woken = true;
        place.was_alerted = alert(place.thread);
        true
    }

    /// Wakes all.
    pub fn wake_all(&mut self) {
        while self.wake_one() {}
    }

    /// The place of a ticket goes, if it is woken or has to.
    fn leave(&mut self, ticket: u64, has_to: bool) -> Option<Place> {
        let at = self.waiting.iter().position(|place| place.ticket == ticket)?;
        if self.waiting[at].is_woken || has_to { self.waiting.remove(at) } else { None }
    }
}

/// Waits with a ticket of a line under `lock`, until the thread is woken (true) or it is that time (false).
pub fn wait<T>(
    lock: &Mutex<T>,
    line: impl Fn(&mut T) -> &mut Line,
    ticket: u64,
    until_ns: Option<u64>,
) -> bool {
    let thread = myself();
    let mut others_alert = false;
    loop {
        let is_late = until_ns.is_some_and(|until| now_ns() >= until);
        if !is_late {
            sleep(thread, until_ns);
        }
        let mut state = lock.lock();
        let is_alerted = clear_alert();
        let place = line(&mut state).leave(ticket, is_late);
        drop(state);
        let Some(place) = place else {
            others_alert |= is_alerted;
            continue;
        };
        if others_alert || if place.is_woken { place.was_alerted } else { is_alerted } {
            alert(thread);
        }
        return place.is_woken;
    }
}
