//! Condition variables: a thread gives a mutex back and waits until another one says that things have changed.

use super::line::{Line, wait};
use super::system::{Mutex, MutexGuard, now_ns};
use core::time::Duration;

/// A condition variable. It wakes nobody without reason; still, wait in a loop, because somebody else may have been faster.
#[derive(Debug)]
pub struct Condvar {
    pub(super) line: Mutex<Line>,
}

impl Condvar {
    /// Gives the mutex back, waits to be woken, and takes the mutex again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_until(guard, None);
    }

    /// Like [`wait`](Condvar::wait), for at most so long. False: nobody came.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, patience: Duration) -> bool {
        let patience = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        self.wait_until(guard, Some(now_ns().saturating_add(patience)))
    }

    fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, until_ns: Option<u64>) -> bool {
        // It stands in line before others can change what it waits for.
        let ticket = self.line.lock().join();
        MutexGuard::unlocked(guard, || wait(&self.line, |line| line, ticket, until_ns))
    }

    /// Wakes the thread that has waited longest; says whether there was one.
    pub fn notify_one(&self) -> bool {
        self.line.lock().wake_one()
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.line.lock().wake_all();
    }
}
