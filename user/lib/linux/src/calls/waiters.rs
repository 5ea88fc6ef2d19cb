//! Threads that wait for something, in the order in which their waits began: all who wake some of them, or do their calls for them, ask here.

use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::process::{Blocked, Event, Thread};
use crate::system::System;
use alloc::vec::Vec;
use vfs::FileSystem;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Threads that wait, and that nobody has woken yet, as far as somebody wants something of their calls: the one that has waited longest comes first.
    pub(super) fn waiters_by<T>(&self, wanted: impl Fn(&Blocked) -> Option<T>) -> Vec<(Tid, T)> {
        let waits = |(tid, thread): (&Tid, &Thread)| {
            let blocked = thread.blocked.as_ref().filter(|_| !thread.is_woken)?;
            Some((thread.turn, *tid, wanted(blocked)?))
        };
        let mut all: Vec<(u64, Tid, T)> = self.threads.iter().filter_map(waits).collect();
        all.sort_unstable_by_key(|(turn, ..)| *turn);
        all.into_iter().map(|(_, tid, of)| (tid, of)).collect()
    }

    /// Those of them that wait for one event, each with its [bits](Blocked::bits).
    pub(super) fn waiters(&self, of: Event) -> Vec<(Tid, u32)> {
        self.waiters_by(|blocked| blocked.on.contains(&of).then_some(blocked.bits))
    }
}
