//! Arguments in place: a trusted callee sees its caller's memory, so nothing is transferred at all (row C24).
//!
//! The pager pages the *owner*, and the guests whom the owner named when the pager was made. A guest's fault on an address
//! of the zone is answered with the owner's page at the same address, for as much as the owner allows. So a call carries
//! a pointer in a register, and the callee follows it. The first call costs a fault for each page; later ones nothing,
//! whatever the size of the arguments.
//!
//! The trust is real: a guest sees the whole zone, not only what a call names, and at any time. Keep in the zone what is
//! meant for the guest.

use crate::{Pager, Zone, show};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use rt::api::Reply;
use rt::frames::{Pool, Shared, Supply};
use rt::pager::{Fault, REFUSAL};
use rt::sys::{Rights, TaskId};

/// A pager whose zone several tasks share.
#[derive(Debug)]
pub struct Sharing<S> {
    zone: Zone,
    pool: Pool<S>,
    owner: TaskId,
    guests: Vec<(TaskId, Rights)>,
    pages: BTreeMap<u64, Shared>,
}

impl<S: Supply> Sharing<S> {
    /// A zone of `owner`, in which each guest may do what is said there.
    pub fn new(zone: Zone, pool: Pool<S>, owner: TaskId, guests: Vec<(TaskId, Rights)>) -> Sharing<S> {
        Sharing { zone, pool, owner, guests, pages: BTreeMap::new() }
    }

    fn rights(&self, task: TaskId) -> Rights {
        if task == self.owner {
            return Rights::RW;
        }
        let guest = self.guests.iter().find(|(guest, _)| *guest == task);
        guest.map_or(Rights::NONE, |(_, rights)| *rights)
    }

    fn find(&mut self, fault: &Fault) -> Option<Reply> {
        let rights = self.rights(fault.task);
        let page = self.zone.page(fault, rights)?;
        // A guest cannot make pages: what the owner never touched is no argument.
        if fault.task == self.owner && !self.pages.contains_key(&page) {
            let mut frame = self.pool.take()?;
            frame.bytes_mut().fill(0);
            self.pages.insert(page, frame.share());
        }
        Some(show(self.pages.get(&page)?.fpage(rights), self.zone.address(page)))
    }
}

impl<S: Supply> Pager for Sharing<S> {
    fn fault(&mut self, fault: Fault) -> Reply {
        self.find(&fault).unwrap_or(REFUSAL)
    }
}
