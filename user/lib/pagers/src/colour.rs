//! Page colouring: neighbours in memory do not meet in the second-level cache (row C14).
//!
//! A cache that is indexed by physical address has as many *colours* as pages fit into one of its ways. Pages of one colour
//! compete for the same lines. This pager gives page *n* a frame of colour *n mod colours*, so that any run of pages
//! spreads evenly over the cache, whatever the order in which they are touched. It knows physical addresses because
//! managers tell them with their blocks; that is all it needs from those below it.
//!
//! The memory manager of the system does the same for programs whose entry in the system description says `colours`, from one pool with all
//! others ([`Pool::take_of`]). There a page has a frame of another colour rather than none; here it has its own, or none.
//!
//! The paper's second example, a second-level TLB handled by a user-level server, has no object here: on x86 the processor
//! walks the page tables by itself.

use crate::{Pager, Zone, show};
use alloc::collections::BTreeMap;
use rt::api::Reply;
use rt::frames::{Colours, Pool, Shared, Supply};
use rt::pager::{Fault, REFUSAL};
use rt::sys::{Rights, TaskId};

/// The colouring pager.
#[derive(Debug)]
pub struct Coloured<S> {
    zone: Zone,
    pool: Pool<S>,
    colours: Colours,
    pages: BTreeMap<(TaskId, u64), Shared>,
}

impl<S: Supply> Coloured<S> {
    /// A pager that asks for blocks of this size, each of which has all colours.
    pub fn new(zone: Zone, supply: S, colours: Colours, block_log2: u32) -> Coloured<S> {
        assert!(colours.count() << 12 <= 1 << block_log2, "a block has all colours");
        Coloured { zone, pool: Pool::new(supply, block_log2), colours, pages: BTreeMap::new() }
    }

    fn find(&mut self, fault: &Fault) -> Option<Reply> {
        let page = self.zone.page(fault, Rights::RW)?;
        let (key, address) = ((fault.task, page), self.zone.address(page));
        if !self.pages.contains_key(&key) {
            let mut frame = self.pool.take_of(self.colours, address)?;
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
