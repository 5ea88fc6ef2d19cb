//! A memory manager: gets memory from the manager above it and hands it on, within limits (row C10).
//!
//! Its clients are tasks, whose pages it fills with zeroes when they are touched, and further managers, which ask for
//! blocks. It speaks upwards the interface that it serves downwards, so M1 and M2 stand on M0 as M0 stands on what is
//! above it. What it hands on stays its own: when a client has too much, or ends, the manager takes it back, wherever it
//! went. One client's greed ends at its limit and is nobody else's loss.

use crate::{Pager, Zone, show};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use rt::api::memory::{self, Answer, Request};
use rt::api::{Reply, Status};
use rt::frames::{Lent, Pool, Shared, Supply};
use rt::pager::{Fault, REFUSAL};
use rt::sys::{Message, Rights, TaskId, Uid};

/// A memory manager.
#[derive(Debug)]
pub struct Manager<S> {
    pool: Pool<S>,
    zone: Zone,
    limits: Limits,
    pages: BTreeMap<TaskId, BTreeMap<u64, Shared>>,
    blocks: BTreeMap<Uid, Vec<(Lent, u32)>>,
}

/// Limits of one client.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A task, in pages.
    pub pages: usize,
    /// A manager, in bytes.
    pub blocks: u64,
}

impl<S: Supply> Manager<S> {
    /// A manager that fills `zone` in the tasks it pages.
    pub fn new(pool: Pool<S>, zone: Zone, limits: Limits) -> Manager<S> {
        Manager { pool, zone, limits, pages: BTreeMap::new(), blocks: BTreeMap::new() }
    }

    /// The page of a task that a fault is about, mapped again or new.
    fn find(&mut self, fault: &Fault) -> Option<Reply> {
        let page = self.zone.page(fault, Rights::RW)?;
        let pages = self.pages.entry(fault.task).or_default();
        if !pages.contains_key(&page) {
            if pages.len() >= self.limits.pages {
                return None;
            }
            let mut frame = self.pool.take()?;
            frame.bytes_mut().fill(0);
            pages.insert(page, frame.share());
        }
        Some(show(pages.get(&page)?.fpage(Rights::RW), self.zone.address(page)))
    }

    /// A block for another manager.
    fn block(&mut self, client: Uid, log2: u32) -> Result<Reply, Status> {
        let blocks = self.blocks.entry(client).or_default();
        let held: u64 = blocks.iter().map(|(_, log2)| 1 << log2).sum();
        if held + (1 << log2) > self.limits.blocks {
            return Err(Status::Denied);
        }
        let lent = self.pool.supply.block(log2).ok_or(Status::Exhausted)?.lend();
        let answer = Answer::Pages(lent.physical(), lent.fpage());
        blocks.push((lent, log2));
        Ok(answer.into())
    }

    /// Takes a block back from a manager, from its clients, and from theirs.
    fn take_back(&mut self, client: Uid, physical: u64, log2: u32) -> Result<Reply, Status> {
        let blocks = self.blocks.get_mut(&client).ok_or(Status::NotFound)?;
        let is_meant = |(lent, of): &(Lent, u32)| lent.physical() == physical && *of == log2;
        let at = blocks.iter().position(is_meant).ok_or(Status::NotFound)?;
        let frames = blocks.swap_remove(at).0.reclaim().into_frames();
        frames.for_each(|frame| self.pool.put(frame));
        Ok(Answer::GiveBack.into())
    }
}

impl<S: Supply> Pager for Manager<S> {
    fn fault(&mut self, fault: Fault) -> Reply {
        self.find(&fault).unwrap_or(REFUSAL)
    }

    fn request(&mut self, message: &Message) -> Reply {
        let request = Request::read(message).map_err(Status::from);
        let reply = request.and_then(|request| match request {
            Request::Pages { log2 } => self.block(message.sender, memory::block_log2(log2)?),
            Request::GiveBack { physical, log2 } => {
                self.take_back(message.sender, physical, memory::block_log2(log2)?)
            }
            Request::Statistics => Ok(Answer::Statistics(self.pool.statistics()).into()),
            _ => Err(Status::Denied),
        });
        reply.unwrap_or_else(Reply::from)
    }
}
