//! A pager: fills the pages of tasks that start with nothing.
//!
//! [`Space`] is what a pager knows of one task; [`Manager`] serves the memory interface for many of them. Three
//! programs page with this code, each with frames from the one above it: σ0 pages `root`, a thread of `root`
//! pages `mm`, `mm` pages all others.
//!
//! A fault is answered with the page, or refused: then the kernel makes an exception of it. A page that is
//! there already is mapped again, so a fault that two threads raise together is no problem.
//!
//! Tasks of one manager can show each other pages as they are and copy them on write: [`offers`].

pub mod offers;

use crate::frames::{Colours, FRAME_LOG2, Frame, Frozen, Pool, Shared, Supply};
use crate::image::Image;
use crate::layout;
use crate::random::{self, Generator};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use api::memory::{self, Answer, File, Refusal, Request};
use api::wire::{TEXT_LEN_MAX, UNRESOLVABLE, take};
use api::{Reply, Status, Text};
use core::hint::black_box;
use offers::{Frames, Look, Memory, Offers, Page, Task};
use sys::abi::call::PORT_FAULT;
use sys::abi::{PAGE_SIZE, USER_END};
use sys::{Fpage, Kind, Message, Rights, TaskId, Uid};

/// A page fault, as the kernel tells it.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Where.
    pub address: u64,
    /// Access that the thread wanted.
    pub access: Rights,
    /// In which task.
    pub task: TaskId,
    /// Thread that faulted.
    pub thread: Uid,
}

impl Fault {
    /// Reads a message of [`Kind::Fault`]. `None` if it is about ports.
    pub fn decode(message: &Message) -> Option<Fault> {
        let [access, _, task, ..] = message.words;
        let fault = Fault {
            address: access & !7,
            access: Rights((access & 7) as u8),
            task: TaskId(task),
            thread: message.sender,
        };
        (access & PORT_FAULT == 0).then_some(fault)
    }
}

/// The answer to a fault that is not resolved.
pub const REFUSAL: Reply = Reply::label(UNRESOLVABLE);

/// The boot archive as a task sees it: a window onto the pager's own.
#[derive(Clone, Copy, Debug)]
pub struct Archive {
    /// Its bytes, in the pager.
    pub bytes: &'static [u8],
    /// Where it begins in the task.
    pub address: u64,
}

impl Archive {
    /// The largest piece around a page that can be mapped at once, if the address is in the archive.
    fn piece(&self, address: u64) -> Option<(Fpage, u64)> {
        let source = self.bytes.as_ptr() as u64;
        let offset = address.checked_sub(self.address & !(PAGE_SIZE - 1))?;
        let page = ((source & !(PAGE_SIZE - 1)) + offset) & !(PAGE_SIZE - 1);
        let end = (source + self.bytes.len() as u64).next_multiple_of(PAGE_SIZE);
        if page >= end {
            return None;
        }
        // The page must be here before it can be mapped on.
        black_box(self.bytes[(page.max(source) - source) as usize]);
        let fits = |log2: &u32| {
            let base = page >> log2 << log2;
            base >= source & !(PAGE_SIZE - 1)
                && base + (1 << log2) <= end
                && (page ^ address) & ((1 << log2) - 1) & !(PAGE_SIZE - 1) == 0
        };
        let log2 = (FRAME_LOG2..=30).rev().find(fits)?;
        Some((Fpage::memory(page, log2, Rights::R), address >> log2 << log2))
    }
}

/// Task as its pager knows it.
#[derive(Debug)]
pub struct Space {
    image: Image,
    memory: Memory<Shared, Frozen>,
    archive: Option<Archive>,
    /// Colours by which its pages get their frames; `None`: as they come.
    colours: Option<Colours>,
    /// Why the last fault was refused, if one was.
    refusal: Refusal,
    /// Blocks that were granted to the task: physical address and log2 of the size.
    blocks: Vec<(u64, u32)>,
}

impl Space {
    /// The space of a task that runs a program; nothing is mapped yet.
    pub fn new(image: Image, pages_max: u64) -> Space {
        Space {
            image,
            memory: Memory::new(pages_max),
            archive: None,
            colours: None,
            refusal: Refusal::NOT_REFUSED,
            blocks: Vec::new(),
        }
    }

    /// Lets the task read the boot archive.
    pub fn show(&mut self, archive: Archive) {
        self.archive = Some(archive);
    }

    /// Gives its pages, from now on, frames of their colours, as far as there are such.
    pub fn colour(&mut self, colours: Colours) {
        self.colours = Some(colours);
    }

    /// Answer to a fault.
    pub fn resolve<S: Supply>(&mut self, fault: Fault, pool: &mut Pool<S>) -> Reply {
        match self.find(fault, pool) {
            Ok((pages, hot_spot)) => Reply::item(pages, hot_spot),
            Err(refusal) => {
                self.refusal = refusal;
                REFUSAL
            }
        }
    }

    fn find<S: Supply>(&mut self, fault: Fault, pool: &mut Pool<S>) -> Result<(Fpage, u64), Refusal> {
        const NOTHING: Refusal = Refusal::NOTHING_THERE;
        let address = fault.address & !(PAGE_SIZE - 1);
        if address >= USER_END {
            return Err(NOTHING);
        }
        let part = self.image.page(address);
        let rights = match part {
            Some(part) => part.rights,
            None if layout::is_zero_filled(address) => Rights::RW,
            None => {
                let archive = self.archive.filter(|_| fault.access == Rights::R).ok_or(NOTHING)?;
                return archive.piece(address).ok_or(NOTHING);
            }
        };
        if !rights.has(fault.access) {
            return Err(NOTHING);
        }
        match self.memory.get(address) {
            Some(Page::Own(page)) => return Ok((page.fpage(rights), address)),
            Some(Page::Common(page)) if !fault.access.has(Rights::W) => return Ok((page.fpage(), address)),
            Some(_) => {
                let page = self.memory.own(address, pool).ok_or(Refusal::NO_MEMORY)?;
                return Ok((page.fpage(rights), address));
            }
            None => {}
        }
        if !self.memory.has_room(1) {
            return Err(Refusal::LIMIT);
        }
        let mut frame = self.frame(address, pool).ok_or(Refusal::NO_MEMORY)?;
        let bytes = frame.bytes_mut();
        bytes.fill(0);
        if let Some(part) = part {
            bytes[part.at..part.at + part.bytes.len()].copy_from_slice(part.bytes);
        }
        let page = frame.share();
        let shown = page.fpage(rights);
        self.memory.add(address, page);
        Ok((shown, address))
    }

    /// A frame for the page at an address. One of another colour is better than none.
    fn frame<S: Supply>(&self, address: u64, pool: &mut Pool<S>) -> Option<Frame> {
        let coloured = self.colours.and_then(|colours| pool.take_of(colours, address));
        coloured.or_else(|| pool.take())
    }

    /// Shows the task the page with its key.
    fn show_key<S: Supply>(&mut self, key: u64, pool: &mut Pool<S>) -> Result<(Fpage, u64), Refusal> {
        if let Some(Page::Own(page)) = self.memory.get(layout::KEY) {
            return Ok((page.fpage(Rights::R), layout::KEY));
        }
        if !self.memory.has_room(1) {
            return Err(Refusal::LIMIT);
        }
        let mut frame = pool.take().ok_or(Refusal::NO_MEMORY)?;
        let bytes = frame.bytes_mut();
        bytes.fill(0);
        bytes[..size_of::<u64>()].copy_from_slice(&key.to_le_bytes());
        let page = frame.share();
        let shown = page.fpage(Rights::R);
        self.memory.add(layout::KEY, page);
        Ok((shown, layout::KEY))
    }

    /// Bytes in memory from an address on, to the end of its page; nothing if the pager has put nothing there.
    pub fn look(&self, address: u64) -> Text {
        let (page, at) = (address & !(PAGE_SIZE - 1), (address % PAGE_SIZE) as usize);
        let mut bytes = [0; TEXT_LEN_MAX];
        let len = match self.memory.get(page) {
            Some(Page::Own(page)) => page.read(at, &mut bytes),
            Some(Page::Common(page)) => {
                let there = page.bytes().get(at..).unwrap_or_default();
                let len = there.len().min(bytes.len());
                bytes[..len].copy_from_slice(&there[..len]);
                len
            }
            _ => 0,
        };
        take(&bytes[..len]).0
    }
}

impl Task<Shared, Frozen> for Space {
    fn memory(&mut self) -> &mut Memory<Shared, Frozen> {
        &mut self.memory
    }

    fn is_writable(&self, first: u64, end: u64) -> bool {
        let is_writable = |address| match self.image.page(address) {
            Some(part) => part.rights == Rights::RW,
            None => layout::is_zero_filled(address),
        };
        let is_heap = layout::HEAP.start <= first && end <= layout::HEAP.end;
        is_heap || (first..end).step_by(PAGE_SIZE as usize).all(is_writable)
    }
}

/// A number that no program guesses. On a processor without random numbers there is none, and nobody offers pages: a key that can be guessed opens its task's memory.
fn secret() -> Option<u64> {
    random::generator_without_server().map(Generator::number).ok()
}

impl<S: Supply> Frames for Pool<S> {
    type Own = Shared;
    type Common = Frozen;

    fn freeze(&mut self, own: Shared) -> Frozen {
        own.freeze()
    }

    fn thaw(&mut self, common: Frozen) -> Shared {
        common.thaw()
    }

    fn copy(&mut self, common: &Frozen) -> Option<Shared> {
        let mut frame = self.take()?;
        frame.bytes_mut().copy_from_slice(common.bytes());
        Some(frame.share())
    }

    fn put(&mut self, own: Shared) {
        Pool::put(self, own.reclaim());
    }

    fn number(common: &Frozen) -> u64 {
        common.physical()
    }
}

/// A memory server.
#[derive(Debug)]
pub struct Manager<S> {
    /// Thread that may register tasks.
    authority: Uid,
    /// Whether its clients are memory managers, who get blocks and the archive.
    is_stacked: bool,
    archive: Archive,
    pool: Pool<S>,
    spaces: BTreeMap<TaskId, Space>,
    offers: Offers<Frozen>,
    /// Page of zeros for tasks that can have no page with a key.
    no_key: Option<Shared>,
}

impl<S: Supply> Manager<S> {
    /// A manager without tasks.
    pub fn new(authority: Uid, is_stacked: bool, archive: Archive, pool: Pool<S>) -> Manager<S> {
        Manager {
            authority,
            is_stacked,
            archive,
            pool,
            spaces: BTreeMap::new(),
            offers: Offers::default(),
            no_key: None,
        }
    }

    /// The answer to a message.
    pub fn answer(&mut self, message: &Message) -> Reply {
        match message.kind {
            Kind::Fault => Fault::decode(message).map_or(REFUSAL, |fault| self.fault(fault)),
            _ if api::interface_of(message) == api::offers::NUMBER => {
                self.offer(message).unwrap_or_else(Reply::from)
            }
            _ => {
                let request = Request::read(message).map_err(Status::from);
                let reply = request.and_then(|request| self.request(message.sender, request));
                reply.unwrap_or_else(Reply::from)
            }
        }
    }

    fn fault(&mut self, fault: Fault) -> Reply {
        let Some(space) = self.spaces.get_mut(&fault.task) else { return REFUSAL };
        if !layout::OFFERS.contains(&fault.address) {
            return space.resolve(fault, &mut self.pool);
        }
        match self.look(fault) {
            Ok((page, hot_spot)) => Reply::item(page, hot_spot),
            Err(refusal) => {
                if let Some(space) = self.spaces.get_mut(&fault.task) {
                    space.refusal = refusal;
                }
                REFUSAL
            }
        }
    }

    /// A page of a window, or the page with the task's key.
    fn look(&mut self, fault: Fault) -> Result<(Fpage, u64), Refusal> {
        let address = fault.address & !(PAGE_SIZE - 1);
        let space = self.spaces.get_mut(&fault.task).ok_or(Refusal::NOTHING_THERE)?;
        if address == layout::KEY && fault.access == Rights::R {
            // A task at its limit is not to end because it asks: without a key its bytes are copied.
            let shown = secret().ok_or(Refusal::LIMIT).and_then(|secret| {
                let key = self.offers.introduce(fault.task, &mut space.memory, secret);
                space.show_key(key, &mut self.pool)
            });
            return shown.or_else(|refusal| {
                let page = self.no_key.as_ref().ok_or(refusal)?;
                Ok((page.fpage(Rights::R), layout::KEY))
            });
        }
        if fault.access.has(Rights::X) {
            return Err(Refusal::NOTHING_THERE);
        }
        let (at, number) = layout::window_page(address);
        let is_written = fault.access.has(Rights::W);
        let page = match self.offers.look(&mut space.memory, (at, number), is_written, &mut self.pool)? {
            Look::Own(page) => page.fpage(Rights::RW),
            Look::Common(page) => page.fpage(),
        };
        Ok((page, address))
    }

    /// A request about offers, from whoever says a task's key.
    fn offer(&mut self, message: &Message) -> Result<Reply, Status> {
        use api::offers::{Answer, Request};
        let Manager { spaces, offers, pool, .. } = self;
        Ok(match Request::read(message)? {
            Request::Key => Answer::Key(layout::KEY).into(),
            Request::Offer { key, address, pages } => {
                let number = secret().ok_or(Status::Exhausted)?;
                Answer::Offer(offers.offer(spaces, (key, number), (address, pages), pool)?).into()
            }
            Request::Take { key, offer, at } => {
                let shown = offers.take::<_, _, Pool<S>>(spaces, (key, offer), at)?;
                Answer::Take(shown.pages, shown.stale).into()
            }
            Request::Done { key, offer } => {
                offers.done(spaces, (key, offer), pool)?;
                Answer::Done.into()
            }
            Request::Withdraw { key, offer } => {
                offers.withdraw(spaces, (key, offer), pool)?;
                Answer::Withdraw.into()
            }
        })
    }

    fn request(&mut self, sender: Uid, request: Request) -> Result<Reply, Status> {
        match request {
            Request::Register { task, offset, len, pages_max } if sender == self.authority => {
                self.register(TaskId(task), File { offset, len }, pages_max)
            }
            Request::Release { task } if sender == self.authority => {
                let mut space = self.spaces.remove(&TaskId(task)).ok_or(Status::NotFound)?;
                for (physical, log2) in core::mem::take(&mut space.blocks) {
                    self.pool.supply.give_back(physical, log2);
                    self.pool.unbook(1 << log2);
                }
                self.offers.forget(&mut self.spaces, TaskId(task), space.memory, &mut self.pool);
                Ok(Answer::Release.into())
            }
            Request::Statistics => Ok(Answer::Statistics(self.pool.statistics()).into()),
            Request::WhyRefused { task } if sender == self.authority => {
                let space = self.spaces.get(&TaskId(task)).ok_or(Status::NotFound)?;
                Ok(Answer::WhyRefused(space.refusal, space.memory.pages_max()).into())
            }
            Request::Look { task, address } if sender == self.authority => {
                let space = self.spaces.get(&TaskId(task)).ok_or(Status::NotFound)?;
                Ok(Answer::Look(space.look(address)).into())
            }
            Request::ShowArchive { task } if sender == self.authority => {
                let archive = self.archive;
                self.spaces.get_mut(&TaskId(task)).ok_or(Status::NotFound)?.show(archive);
                Ok(Answer::ShowArchive(archive.address, archive.bytes.len() as u64).into())
            }
            Request::Colour { task, colours } if sender == self.authority => {
                let colours = Colours::new(colours).ok_or(Status::BadRequest)?;
                self.spaces.get_mut(&TaskId(task)).ok_or(Status::NotFound)?.colour(colours);
                Ok(Answer::Colour.into())
            }
            Request::Pages { log2 } if self.is_stacked => {
                self.client(sender)?;
                let log2 = memory::block_log2(log2)?;
                if !self.pool.book(1 << log2) {
                    return Err(Status::Exhausted);
                }
                let Some(block) = self.pool.supply.block(log2) else {
                    self.pool.unbook(1 << log2);
                    return Err(Status::Exhausted);
                };
                let physical = block.physical();
                self.client(sender)?.blocks.push((physical, log2));
                // Granted, so that this manager stays out of the mapping and pays nothing for it.
                Ok(Answer::Pages(physical, block.into_grant()).into())
            }
            Request::Archive if self.is_stacked => {
                let archive = self.archive;
                self.client(sender)?.show(archive);
                Ok(Answer::Archive(archive.address, archive.bytes.len() as u64).into())
            }
            _ => Err(Status::Denied),
        }
    }

    fn register(&mut self, task: TaskId, file: File, pages_max: u64) -> Result<Reply, Status> {
        let end = file.offset.checked_add(file.len).ok_or(Status::BadRequest)?;
        let bytes: &'static [u8] =
            self.archive.bytes.get(file.offset as usize..end as usize).ok_or(Status::BadRequest)?;
        let image = Image::parse(bytes)?;
        let entry = image.entry();
        if self.spaces.contains_key(&task) {
            return Err(Status::Taken);
        }
        if self.no_key.is_none()
            && let Some(mut frame) = self.pool.take()
        {
            frame.bytes_mut().fill(0);
            self.no_key = Some(frame.share());
        }
        self.spaces.insert(task, Space::new(image, pages_max));
        Ok(Answer::Register(entry).into())
    }

    /// The space of the task that sent a message. Works where the manager runs in the task's chief.
    fn client(&mut self, sender: Uid) -> Result<&mut Space, Status> {
        let info = sys::thread_info(sender).map_err(|_| Status::Denied)?;
        self.spaces.get_mut(&info.task).ok_or(Status::Denied)
    }
}

/// Asks a memory server for the boot archive; a program that may read it asks `root`, its [home](crate::home).
pub fn archive(server: Uid) -> api::Result<Archive> {
    let (address, len) = api::memory::archive(server)?;
    Ok(Archive { bytes: crate::boot::shown_archive(address, len), address })
}
