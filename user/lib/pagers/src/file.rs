//! A file in memory: pages with a content, made when they are first wanted.
//!
//! It serves the interface [`rt::api::file`], and it is a pager: a task that has it as pager sees the file in its zone
//! (row C11: mapped files and databases). With a content of zeroes it is a disk in memory.

use crate::{Pager, Zone, show};
use alloc::collections::BTreeMap;
use rt::api::file::{self, Answer, Request};
use rt::api::{Reply, Status};
use rt::frames::{Pool, Shared, Supply};
use rt::pager::{Fault, REFUSAL};
use rt::sys::abi::PAGE_SIZE;
use rt::sys::{Message, Rights};

/// Writes the first content of a page, whose frame may hold anything.
pub type Fill = fn(u64, &mut [u8; PAGE_SIZE as usize]);

/// A file.
#[derive(Debug)]
pub struct File<S> {
    pool: Pool<S>,
    /// Where it lies in the tasks that it pages. As long as the file.
    zone: Zone,
    /// Rights of its users to its pages.
    rights: Rights,
    fill: Fill,
    pages: BTreeMap<u64, Shared>,
}

impl<S: Supply> File<S> {
    /// A file as long as `zone`.
    pub fn new(pool: Pool<S>, zone: Zone, rights: Rights, fill: Fill) -> File<S> {
        File { pool, zone, rights, fill, pages: BTreeMap::new() }
    }

    fn page(&mut self, number: u64) -> Option<&Shared> {
        if !self.pages.contains_key(&number) {
            if self.zone.address(number) >= self.zone.0.end {
                return None;
            }
            let mut frame = self.pool.take()?;
            (self.fill)(number, frame.bytes_mut());
            self.pages.insert(number, frame.share());
        }
        self.pages.get(&number)
    }

    fn find(&mut self, fault: &Fault) -> Option<Reply> {
        let (rights, number) = (self.rights, self.zone.page(fault, self.rights)?);
        let page = self.page(number)?.fpage(rights);
        Some(show(page, self.zone.address(number)))
    }
}

impl<S: Supply> File<S> {
    fn show(&mut self, message: &Message) -> Result<Answer, Status> {
        let Request::Page { number, rights } = Request::read(message)?;
        let rights = file::rights(rights)?;
        if !self.rights.has(rights) {
            return Err(Status::Denied);
        }
        let page = self.page(number).ok_or(Status::NotFound)?;
        Ok(Answer::Page(page.fpage(rights)))
    }
}

impl<S: Supply> Pager for File<S> {
    fn fault(&mut self, fault: Fault) -> Reply {
        self.find(&fault).unwrap_or(REFUSAL)
    }

    fn request(&mut self, message: &Message) -> Reply {
        self.show(message).map_or_else(Reply::from, Reply::from)
    }
}
