//! Copy on write: pages of one task are shown to another as they are now (row D13).
//!
//! The pager fills a zone in several tasks, each of which has pages of its own there. One *offers* some of them to another, which
//! *takes* them ([`rt::api::copies`]). Nothing is copied then: both see the same frames and can only read them. Whoever writes
//! first has a fault, and gets a copy; when one task only is left that has the page, it gets the page.
//!
//! So a call can carry an address and a length where it would carry 64 KiB, and the callee finds there what the caller had when it
//! offered it, whatever either does afterwards. Taking is the receiver's word: nobody finds pages in his zone that he did not
//! ask for. A thread can do either once it has had a fault in the zone; by that the pager knows its task.

use crate::{Pager, Zone, show};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use rt::api::copies::{Answer, Request};
use rt::api::{Reply, Status};
use rt::frames::{Frozen, Pool, Shared, Supply};
use rt::pager::{Fault, REFUSAL};
use rt::sys::abi::PAGE_SIZE;
use rt::sys::{Message, Rights, TaskId, Uid};

/// A page that a task has.
#[derive(Debug)]
enum Page {
    /// Owned by this task alone.
    Own(Shared),
    /// Shared with other tasks, until it is written to.
    Common(Arc<Frozen>),
}

/// The pages of a task, by their place in the zone.
type Pages = BTreeMap<u64, Page>;

/// Pages in a row; where there is none, it was never touched.
type Offer = Vec<Option<Arc<Frozen>>>;

/// The pager.
#[derive(Debug)]
pub struct Copies<S> {
    zone: Zone,
    pool: Pool<S>,
    pages: BTreeMap<TaskId, Pages>,
    /// The tasks of threads that have faulted: the kernel says so then, and at no other time.
    tasks: BTreeMap<Uid, TaskId>,
    /// Offer of one task to another.
    offers: BTreeMap<(TaskId, TaskId), Offer>,
}

impl<S: Supply> Copies<S> {
    /// A pager that fills `zone` in the tasks it pages.
    pub fn new(zone: Zone, pool: Pool<S>) -> Copies<S> {
        Copies { zone, pool, pages: BTreeMap::new(), tasks: BTreeMap::new(), offers: BTreeMap::new() }
    }

    fn find(&mut self, fault: &Fault) -> Option<Reply> {
        let number = self.zone.page(fault, Rights::RW)?;
        let address = self.zone.address(number);
        self.tasks.insert(fault.thread, fault.task);
        let pages = self.pages.entry(fault.task).or_default();
        let page = match pages.remove(&number) {
            Some(Page::Common(page)) if fault.access.has(Rights::W) => match Arc::try_unwrap(page) {
                Ok(last) => Page::Own(last.thaw()),
                Err(page) => {
                    let Some(mut frame) = self.pool.take() else {
                        pages.insert(number, Page::Common(page));
                        return None;
                    };
                    frame.bytes_mut().copy_from_slice(page.bytes());
                    Page::Own(frame.share())
                }
            },
            Some(page) => page,
            None => {
                let mut frame = self.pool.take()?;
                frame.bytes_mut().fill(0);
                Page::Own(frame.share())
            }
        };
        let fpage = match &page {
            Page::Own(page) => page.fpage(Rights::RW),
            Page::Common(page) => page.fpage(),
        };
        pages.insert(number, page);
        Some(show(fpage, address))
    }

    /// The numbers of so many pages, if all of them are in the zone.
    fn range(&self, first: u64, pages: u64) -> Result<core::ops::Range<u64>, Status> {
        let all = (self.zone.0.end - self.zone.0.start) / PAGE_SIZE;
        let end = first.checked_add(pages).filter(|&end| end <= all);
        end.map(|end| first..end).ok_or(Status::BadRequest)
    }

    fn offer(&mut self, from: TaskId, (first, pages): (u64, u64), to: TaskId) -> Result<(), Status> {
        let range = self.range(first, pages)?;
        let own = self.pages.entry(from).or_default();
        let freeze = |number| {
            let page = match own.remove(&number)? {
                Page::Own(page) => Arc::new(page.freeze()),
                Page::Common(page) => page,
            };
            own.insert(number, Page::Common(page.clone()));
            Some(page)
        };
        let offer = range.map(freeze).collect();
        if let Some(old) = self.offers.insert((from, to), offer) {
            old.into_iter().flatten().for_each(|page| self.drop_page(Page::Common(page)));
        }
        Ok(())
    }

    fn take(&mut self, to: TaskId, from: TaskId, at: u64) -> Result<u64, Status> {
        let len = self.offers.get(&(from, to)).ok_or(Status::NotFound)?.len() as u64;
        let range = self.range(at, len)?;
        let offer = self.offers.remove(&(from, to)).ok_or(Status::NotFound)?;
        for (number, page) in range.zip(offer) {
            let own = self.pages.entry(to).or_default();
            let old = match page {
                Some(page) => own.insert(number, Page::Common(page)),
                None => own.remove(&number),
            };
            if let Some(old) = old {
                self.drop_page(old);
            }
        }
        Ok(len)
    }

    /// A task has a page no more. Others that have it will fault for it again.
    fn drop_page(&mut self, page: Page) {
        match page {
            Page::Own(page) => self.pool.put(page.reclaim()),
            Page::Common(page) => match Arc::try_unwrap(page) {
                Ok(last) => self.pool.put(last.reclaim()),
                Err(page) => page.hide(),
            },
        }
    }

    fn serve(&mut self, message: &Message) -> Result<Answer, Status> {
        let caller = *self.tasks.get(&message.sender).ok_or(Status::Denied)?;
        match Request::read(message)? {
            Request::Offer { first, pages, to } => {
                self.offer(caller, (first, pages), TaskId(to))?;
                Ok(Answer::Offer)
            }
            Request::Take { from, at } => Ok(Answer::Take(self.take(caller, TaskId(from), at)?)),
        }
    }
}

impl<S: Supply> Pager for Copies<S> {
    fn fault(&mut self, fault: Fault) -> Reply {
        self.find(&fault).unwrap_or(REFUSAL)
    }

    fn request(&mut self, message: &Message) -> Reply {
        self.serve(message).map_or_else(Reply::from, Reply::from)
    }
}
