//! A thread's pending timeout: its entry in the [wheel](super::wheel), and the unit of its deadline.

use super::list::{Link, Tag};
use crate::object::ThreadRef;
use core::cell::Cell;

/// Log2 of the grain of deadlines in nanoseconds.
pub const GRAIN_SHIFT: u32 = 10;

/// No deadline, in grains. All ones, so that storing it takes one instruction.
pub(super) const NEVER: u64 = u64::MAX;

/// The first grain that begins after a point in time.
#[inline(always)]
pub(super) fn grain_of(ns: u64) -> u64 {
    (ns >> GRAIN_SHIFT) + 1
}

/// Tag of the lists of deadlines.
pub struct Deadlines;

impl Tag for Deadlines {
    fn link(thread: &ThreadRef) -> &Link {
        &thread.timeout.link
    }
}

/// A thread's entry in the wheel.
#[derive(Default)]
pub struct Timeout {
    pub(super) link: Link,
    /// Deadline in grains. Means nothing while the entry is not linked.
    pub(super) deadline: Cell<u64>,
    /// The deadline that chose its list; never later than `deadline`.
    pub(super) filed: Cell<u64>,
    /// Number of the wheel's list that the entry is in.
    pub(super) list: Cell<u16>,
}

impl Timeout {
    /// Whether a deadline stands.
    pub fn is_pending(&self) -> bool {
        self.link.is_linked() && self.deadline.get() != NEVER
    }

    /// Whether the entry is in a list, with or without a deadline.
    pub fn is_filed(&self) -> bool {
        self.link.is_linked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::thread::Tcb;
    use crate::util::wheel;

    /// A few thousand random insertions, removals and advances against a plain list. `grain_ns` is how late a
    /// structure may be.
    macro_rules! behaves_like_a_plain_list {
        ($name:ident, $structure:expr, $grain_ns:expr, $shift:expr) => {
            #[test]
            fn $name() {
                let structure = $structure;
                let thread = |_| ThreadRef::new(Tcb::leak_for_tests());
                let threads: Vec<ThreadRef> = (0..64).map(thread).collect();
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
                    match random() % 9 {
                        0..4 => {
                            let after = random() >> ($shift + random() % 40);
                            let _ = structure.insert(threads[i], now + after);
                            model[i] = Some(now + after);
                        }
                        4 => {
                            structure.remove(threads[i]);
                            model[i] = None;
                        }
                        5 => {
                            structure.unlink(threads[i]);
                            model[i] = None;
                            assert!(!threads[i].timeout.is_filed());
                        }
                        _ => {
                            if let Some(&earliest) = model.iter().flatten().min() {
                                let next = structure.not_before_ns();
                                assert!(next <= earliest.max(now) + $grain_ns, "{next} {earliest}");
                            }
                            now += random() >> ($shift + 4 + random() % 36);
                            let mut fired = Vec::new();
                            while structure.expire(now, 3, |t| {
                                fired.push(t);
                                1
                            }) {}
                            for (i, slot) in model.iter_mut().enumerate() {
                                let due = fired.contains(&threads[i]);
                                if let Some(deadline) = *slot {
                                    let surely = deadline + 2 * $grain_ns <= now;
                                    assert!(!due || deadline <= now, "fired {} early", deadline - now);
                                    assert!(due || !surely, "missed {}", now - deadline);
                                    if due {
                                        *slot = None;
                                    }
                                } else {
                                    assert!(!due, "fired without a deadline");
                                }
                                assert_eq!(threads[i].timeout.is_pending(), slot.is_some());
                            }
                        }
                    }
                }
            }
        };
    }

    behaves_like_a_plain_list!(wheel, wheel::Wheel::new(), 1 << GRAIN_SHIFT, 20);
}
