//! The simulated system: mutexes, threads with an alert each, and a clock for each that passes while it sleeps.

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{self, Notify};
use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use sys::Uid;

/// A mutex as the runtime has it.
#[derive(Debug)]
pub struct Mutex<T>(sync::Mutex<T>);

/// Its guard; `None` only while it is given back for a moment.
#[derive(Debug)]
pub struct MutexGuard<'a, T>(&'a Mutex<T>, Option<sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(self, Some(self.0.lock().expect("nobody panics")))
    }
}

impl<'a, T> MutexGuard<'a, T> {
    /// Gives the mutex back while `action` runs.
    pub fn unlocked<U>(guard: &mut MutexGuard<'a, T>, action: impl FnOnce() -> U) -> U {
        guard.1 = None;
        let outcome = action();
        guard.1 = guard.0.lock().1.take();
        outcome
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.1.as_ref().expect("it is locked")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.1.as_mut().expect("it is locked")
    }
}

/// What the kernel knows of a thread.
struct Thread {
    is_alerted: AtomicBool,
    bell: Notify,
}

std::thread_local! {
    /// The threads of the run, by uid: loom runs them all in one thread of the host.
    static THREADS: RefCell<Vec<Arc<Thread>>> = const { RefCell::new(Vec::new()) };
}

loom::thread_local! {
    static OWN: (Uid, Cell<u64>) = (register(), Cell::new(0));
}

fn register() -> Uid {
    THREADS.with_borrow_mut(|threads| {
        threads.push(Arc::new(Thread { is_alerted: AtomicBool::new(false), bell: Notify::new() }));
        Uid(threads.len() as u64)
    })
}

fn thread(uid: Uid) -> Arc<Thread> {
    THREADS.with_borrow(|threads| threads[uid.0 as usize - 1].clone())
}

/// Runs a test through all interleavings with so many preemptions at most.
pub fn explore(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        THREADS.with_borrow_mut(Vec::clear);
        test();
        THREADS.with_borrow_mut(Vec::clear);
    });
}

pub fn myself() -> Uid {
    OWN.with(|own| own.0)
}

pub fn now_ns() -> u64 {
    OWN.with(|own| own.1.get())
}

pub fn sleep(uid: Uid, until_ns: Option<u64>) {
    let own = thread(uid);
    if own.is_alerted.load(Ordering::Acquire) {
        return;
    }
    match until_ns {
        None => own.bell.wait(),
        Some(until) => {
            // Whatever the others do meanwhile, time passes.
            loom::thread::yield_now();
            OWN.with(|own| own.1.set(until));
        }
    }
}

pub fn alert(uid: Uid) -> bool {
    let thread = thread(uid);
    let was = thread.is_alerted.swap(true, Ordering::AcqRel);
    thread.bell.notify();
    was
}

pub fn clear_alert() -> bool {
    thread(myself()).is_alerted.swap(false, Ordering::AcqRel)
}
