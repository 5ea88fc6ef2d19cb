//! The ring of records, and the counters beside it.

use crate::arch;
use abi::Uid;
use abi::call::{DOOR_ROWS, DOOR_SIZES, TRACE_EVENTS};
use core::cell::Cell;

/// Number of records that are kept.
const LEN: usize = 256;

/// Kinds of events: index in [`TRACE_EVENTS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Ipc,
    Switch,
    Fault,
    Interrupt,
    Map,
    Door,
}

const _: () = assert!(Event::Door as usize + 1 == TRACE_EVENTS.len());

/// A record: time, kind, thread, argument.
type Record = [Cell<u64>; 4];

/// The ring and its counters.
pub struct Trace {
    records: [Record; LEN],
    /// Records made so far.
    pub(super) made: Cell<u64>,
    /// Messages of traced threads since tracing began: their own, and those that the kernel sends for them or to them.
    pub(super) messages: Cell<u64>,
    /// Messages among them that had a block in memory.
    pub(super) long: Cell<u64>,
    /// Updates of the ready queues before tracing began.
    pub(super) updates_before: Cell<u64>,
    /// Calls and returns through doors since tracing began.
    pub(super) doors: DoorCounts,
}

/// Calls and returns through doors, by what they carry, and by their size (row D17).
pub struct DoorCounts([[Cell<u32>; DOOR_SIZES.len() + 1]; DOOR_ROWS.len()]);

impl DoorCounts {
    /// Counts that are all zero.
    const fn new() -> DoorCounts {
        DoorCounts([const { [const { Cell::new(0) }; DOOR_SIZES.len() + 1] }; DOOR_ROWS.len()])
    }

    pub(super) fn count(&self, row: usize, size: usize) {
        let counter = &self.0[row][size];
        counter.set(counter.get().wrapping_add(1));
    }

    pub(super) fn restart(&self) {
        self.0.iter().flatten().for_each(|counter| counter.set(0));
    }

    /// Counts of a row of [`DOOR_ROWS`], if there is such a row.
    pub fn row(&self, row: u64) -> Option<[u64; DOOR_SIZES.len() + 1]> {
        Some(self.0.get(row as usize)?.each_ref().map(|counter| counter.get().into()))
    }
}

impl Default for Trace {
    fn default() -> Self {
        Trace::new()
    }
}

impl Trace {
    /// An empty ring.
    pub const fn new() -> Trace {
        Trace {
            records: [const { [const { Cell::new(0) }; 4] }; LEN],
            made: Cell::new(0),
            messages: Cell::new(0),
            long: Cell::new(0),
            updates_before: Cell::new(0),
            doors: DoorCounts::new(),
        }
    }

    pub(super) fn record(&self, event: Event, thread: Uid, argument: u64) {
        if matches!(event, Event::Ipc | Event::Fault | Event::Interrupt | Event::Door) {
            self.messages.set(self.messages.get() + 1);
        }
        let record = &self.records[self.made.get() as usize % LEN];
        for (cell, word) in record.iter().zip([arch::now_ns(), event as u64, thread.0, argument]) {
            cell.set(word);
        }
        self.made.set(self.made.get() + 1);
    }

    /// The record with this number, if it was made and is still there.
    pub fn read(&self, number: u64) -> Option<[u64; 4]> {
        let made = self.made.get();
        let kept = (made.saturating_sub(LEN as u64)..made).contains(&number);
        kept.then(|| self.records[number as usize % LEN].each_ref().map(Cell::get))
    }
}
