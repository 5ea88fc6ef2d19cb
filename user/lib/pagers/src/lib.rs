//! Pagers: programs that decide what memory others see, and when.
//!
//! The kernel knows no policy of memory. It turns a page fault into a call to the thread's pager, and maps what the
//! answer says; everything else is a program. Each module here is one idea, short enough to read in one sitting, and of
//! use as it is:
//!
//! * [`manager`]: hands memory on, to clients and to further managers, within limits. Managers stack (row C10).
//! * [`file`]: pages with a content of their own. A mapped file, and a disk in memory.
//! * [`merge`]: shows two files as one and *grants* their pages on, so that it stays out of the mapping: figure 1 of
//!   "On µ-Kernel Construction" (row C11).
//! * [`swap`]: more pages than frames; its user supplies the [`policy`] that says which one has to go (row C11).
//! * [`mapped`]: a file in a program's own memory, of which few pages are there at a time; [`residents`] knows which, and asks the policy (row C24).
//! * [`colour`]: pages of different colours do not meet in the second-level cache (row C14).
//! * [`locked`]: memory that is there before it is needed and never goes: for real time (row C12).
//! * [`sharing`]: a trusted callee sees its caller's arguments where they are (row C24).
//! * [`copies`]: pages go to another task, and are copied when somebody writes (row D13).
//!
//! A pager gets its frames from the manager above it, named by its uid: [`rt::frames::Upstream`]. It does not know
//! whether that is σ0 or the fifth manager of a stack. It pages every task whose chief chose it; who that is, the
//! chief decides.
//!
//! A pager is one thread that never waits for its clients, and that calls upwards only. So nothing waits in a circle.
//! It may wait for those above it, and its clients wait with it: a pager is as good as what it builds on.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod colour;
pub mod copies;
pub mod file;
pub mod locked;
pub mod manager;
pub mod mapped;
pub mod merge;
pub mod policy;
pub mod residents;
pub mod sharing;
pub mod swap;

use core::ops::Range;
use rt::api::{Reply, Status};
use rt::pager::Fault;
use rt::sys::abi::PAGE_SIZE;
use rt::sys::{Fpage, Kind, Message, Rights};

/// Work of a pager.
pub trait Pager {
    /// The answer to a page fault: [`show`] a page, or [`rt::pager::REFUSAL`].
    fn fault(&mut self, fault: Fault) -> Reply;

    /// The answer to a request: by its clients, by other pagers.
    fn request(&mut self, _: &Message) -> Reply {
        Status::BadRequest.into()
    }

    /// The answer to any message.
    fn answer(&mut self, message: &Message) -> Reply {
        match message.kind {
            Kind::Fault => Fault::decode(message).map_or(rt::pager::REFUSAL, |fault| self.fault(fault)),
            Kind::Request => self.request(message),
            _ => Status::BadRequest.into(),
        }
    }
}

/// Serves faults and requests forever.
pub fn serve(mut pager: impl Pager) -> ! {
    rt::server::serve(|message| Some(pager.answer(message)))
}

/// An answer that maps `fpage`, in the pager's addresses, to `address` in the client.
pub fn show(fpage: Fpage, address: u64) -> Reply {
    Reply::item(fpage, address)
}

/// The addresses that a pager fills in the tasks it pages. A fault elsewhere is none of its business.
#[derive(Clone, Debug)]
pub struct Zone(pub Range<u64>);

impl Zone {
    /// The page that a fault is about, counted from the start of the zone; `None` if it lies outside, or wants to do
    /// with the page what `rights` do not allow.
    pub fn page(&self, fault: &Fault, rights: Rights) -> Option<u64> {
        let is_inside = self.0.contains(&fault.address) && rights.has(fault.access);
        is_inside.then(|| (fault.address - self.0.start) / PAGE_SIZE)
    }

    /// Where a page lies.
    pub fn address(&self, page: u64) -> u64 {
        self.0.start + page * PAGE_SIZE
    }
}
