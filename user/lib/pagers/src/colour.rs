//! Page colouring: neighbours in memory do not meet in the second-level cache (row C14).
//!
//! A cache that is indexed by physical address has as many *colours* as pages fit into one of its ways. Pages of one colour
//! compete for the same lines. This pager gives page *n* a frame of colour *n mod colours*, so that any run of pages
//! spreads evenly over the cache, whatever the order in which they are touched. It knows physical addresses because
//! managers tell them with their blocks; that is all it needs from those below it.
//!
//! The paper's second example, a second-level TLB handled by a user-level server, has no object here: on x86 the processor
//! walks the page tables by itself.

use crate::{Pager, Zone, show};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use rt::api::Reply;
use rt::frames::{Frame, Shared, Supply};
use rt::pager::{Fault, REFUSAL};
use rt::sys::abi::PAGE_SIZE;
use rt::sys::{Rights, TaskId};

/// The colouring pager.
#[derive(Debug)]
pub struct Coloured<S> {
    zone: Zone,
    supply: S,
    /// Log2 of the size of the blocks it asks for: large enough to have frames of all colours.
    block_log2: u32,
    /// Free frames by colour.
    free: Vec<Vec<Frame>>,
    pages: BTreeMap<(TaskId, u64), Shared>,
}

impl<S: Supply> Coloured<S> {
    /// A pager for a cache of so many colours, a power of two.
    pub fn new(zone: Zone, supply: S, colours: usize, block_log2: u32) -> Coloured<S> {
        assert!(colours.is_power_of_two() && colours << 12 <= 1 << block_log2, "a block has all colours");
        let free = (0..colours).map(|_| Vec::new()).collect();
        Coloured { zone, supply, block_log2, free, pages: BTreeMap::new() }
    }

    fn colour(&self, address: u64) -> usize {
        (address / PAGE_SIZE) as usize % self.free.len()
    }

    fn frame(&mut self, colour: usize) -> Option<Frame> {
        if self.free[colour].is_empty() {
            for frame in self.supply.block(self.block_log2)?.into_frames() {
                let colour = self.colour(frame.physical());
                self.free[colour].push(frame);
            }
        }
        self.free[colour].pop()
    }

    fn find(&mut self, fault: &Fault) -> Option<Reply> {
        let page = self.zone.page(fault, Rights::RW)?;
        let (key, address) = ((fault.task, page), self.zone.address(page));
        if !self.pages.contains_key(&key) {
            let mut frame = self.frame(self.colour(address))?;
            frame.bytes_mut().fill(0);
            self.pages.insert(key, frame.share());
        }
        Some(show(self.pages.get(&key)?.fpage(Rights::RW), address))
    }
}

impl<S: Supply> Pager for Coloured<S> {
    fn fault(&mut self, fault: Fault) -> Reply {
        self.find(&fault).unwrap_or(REFUSAL)
    }
}
