//! Registers the blocks into which threads receive ([`Block`]), and prepares the page-table entry by which the fast path shows a block to a
//! sender. The copying is in [`crate::ipc::block`].

use super::table;
use crate::arch;
use crate::kernel::Kernel;
use crate::layout::{WINDOW, WINDOW_SIZE};
use crate::object::TaskRef;
use crate::object::block::Block;
use crate::param::FAST_WORDS_MAX;
use crate::processor::copy::top;
use abi::call::PATIENCE_US;
use abi::{Dope, Error, Timeout};

impl Block {
    /// Prepares the block of a new thread: none, and the patience that threads have at first.
    pub fn init(&self, k: &Kernel, task: TaskRef) {
        self.slot.set(core::ptr::from_ref(arch::copy::window_slot(top(k, task))) as u64);
        self.timeout.set(Timeout::from_us(PATIENCE_US).0);
    }

    /// Registers a block, or none.
    pub fn set(&self, k: &Kernel, task: TaskRef, address: u64, room: Dope) -> Result<(), Error> {
        let end = address.checked_add(room.size()).ok_or(Error::BadArgument)?;
        let crosses = room != Dope::NONE && address / WINDOW_SIZE != (end - 1) / WINDOW_SIZE;
        if crosses || !room.is_valid() || room.with_used(Dope::NONE) != room || end > abi::USER_END {
            return Err(Error::BadArgument);
        }
        self.address.set(address);
        self.room.set(room.0);
        self.fast_below.set(0);
        self.shown_at.set(WINDOW + address % WINDOW_SIZE);
        self.entry.set(0);
        // With its tables there, the entry that the copy window needs never changes.
        if room != Dope::NONE && table::ensure_way(&k.pool, task, address).is_some() {
            self.set_fast(k, task, address, room.room_as_used().words().min(FAST_WORDS_MAX));
        }
        Ok(())
    }

    fn set_fast(&self, k: &Kernel, task: TaskRef, address: u64, words: u64) {
        if let Some((entry, window)) = arch::copy::window_view(top(k, task), address, 8 * words) {
            self.entry.set(entry);
            self.shown_at.set(window);
            self.fast_below.set(if words == 0 { 0 } else { words + 1 });
        }
    }
}
