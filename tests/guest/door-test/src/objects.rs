//! The objects that tests put behind doors. Each counts itself.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rt::door::{self, Door, Object, Revoker};

/// Objects that there are in this task.
static ALIVE: AtomicU64 = AtomicU64::new(0);
/// Objects that have been dropped.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Objects of this task: how many there are, and how many there were.
pub fn count() -> (u64, u64) {
    (ALIVE.load(Ordering::SeqCst), DROPPED.load(Ordering::SeqCst))
}

/// Part of each object.
struct Counted;

impl Counted {
    fn new() -> Counted {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
        DROPPED.fetch_add(1, Ordering::SeqCst);
    }
}

/// The label of a call that adds w0 to the sum; all others are echoed.
pub const ADD: u32 = 1;

/// How large a [`Sum`] is, so that a few hundred that nobody drops are more than a program may have.
const SIZE: usize = 64 << 10;

/// Adds.
pub struct Sum {
    sum: AtomicU64,
    _bulk: Box<[u8; SIZE]>,
    _counted: Counted,
}

impl Sum {
    pub fn new() -> Sum {
        Sum { sum: AtomicU64::new(0), _bulk: Box::new([1; SIZE]), _counted: Counted::new() }
    }
}

impl Object for Sum {
    fn call(&self, label: u32, words: [u64; 8]) -> (u32, [u64; 8]) {
        match label {
            ADD => (label, [self.sum.fetch_add(words[0], Ordering::SeqCst) + words[0], 0, 0, 0, 0, 0, 0, 0]),
            _ => (!label, words.map(|word| !word)),
        }
    }
}

static OPEN: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicU64 = AtomicU64::new(0);

/// Calls return when the gate of this task is open.
pub struct Gate {
    _counted: Counted,
}

impl Gate {
    pub fn new() -> Gate {
        Gate { _counted: Counted::new() }
    }
}

pub fn set_gate(open: bool) {
    OPEN.store(open, Ordering::SeqCst);
}

/// Calls that wait at the gate.
pub fn inside() -> u64 {
    INSIDE.load(Ordering::SeqCst)
}

impl Object for Gate {
    fn call(&self, label: u32, words: [u64; 8]) -> (u32, [u64; 8]) {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let mut aborted = 0;
        while !OPEN.load(Ordering::SeqCst) {
            // Nobody may end a sleep of the object's: not who ends idle servers either.
            aborted += u64::from(sys::sleep_us(500).is_err());
        }
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        (label, [words[0], aborted, 0, 0, 0, 0, 0, 0])
    }
}

/// Calls another object with what it is called with, and returns what that returns; an error is label 0.
pub struct Forwarder {
    pub to: Door,
    _counted: Counted,
}

impl Forwarder {
    pub fn new(to: Door) -> Forwarder {
        Forwarder { to, _counted: Counted::new() }
    }
}

impl Object for Forwarder {
    fn call(&self, label: u32, words: [u64; 8]) -> (u32, [u64; 8]) {
        self.to.call(label, words).unwrap_or((0, [0; 8]))
    }
}

/// A [`Sum`] that can be taken back.
pub fn revocable() -> sys::Result<(Door, Revoker)> {
    door::export_revocable(Sum::new())
}
