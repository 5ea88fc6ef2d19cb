//! Copy on write between the tasks of one memory manager (row D13): pages of one are shown to another as they are at that moment, and
//! whoever writes to one while both have it gets a copy.
//!
//! The *giver* offers pages that are its own and writable, and gets a number that nobody can guess. Whoever has the number *takes* the offer into
//! one of its windows, and is *done* with it when it likes: until then the pages stay as they were, whatever becomes of the giver. Nothing
//! is mapped here and nothing copied. Both happen at page faults: [`Memory::own`] for the giver, [`Offers::look`] for the taker.
//!
//! Pages that were offered stay common after the end of an offer, until their owner writes to one. So what is offered again and was not
//! written to costs no flush; and if it is taken into the same window, the taker still has it mapped ([`Shown::stale`]).
//!
//! **Payment.** The pages of an offer count twice with the giver while it lasts, so that a write of the giver's never fails at its limit. A
//! copy counts with the taker if the taker writes.
//!
//! This file knows no frame and no kernel; frames are what [`Frames`] says. The test is a model of address spaces with random operations.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use api::Status;
use api::memory::Refusal;
use sys::TaskId;
use sys::abi::PAGE_SIZE;

/// Pages of an offer at most: those of a window.
pub const PAGES_MAX: u64 = 256;

/// Windows of a task, whose numbers begin with 1.
pub const WINDOWS: u64 = 15;

/// Offers of a task at a time. One ends with the call that it is for.
const OFFERS_MAX: u32 = 32;

/// Pages of a window whose frames are remembered when it is empty again.
const REMEMBERED_MAX: usize = 64;

/// Frames, as a manager has them.
pub trait Frames {
    /// A frame that one task may write to.
    type Own;
    /// A frame that nobody writes to.
    type Common;
    /// Takes the right to write from everybody.
    fn freeze(&mut self, own: Self::Own) -> Self::Common;
    /// Takes a frame from everybody who can read it, so that it can be written to.
    fn thaw(&mut self, common: Self::Common) -> Self::Own;
    /// A new frame with these bytes, if there is one.
    fn copy(&mut self, common: &Self::Common) -> Option<Self::Own>;
    /// Takes a frame from everybody; it is free.
    fn put(&mut self, own: Self::Own);
    /// Number of a frame, which is not 0, and no other frame's at the same time.
    fn number(common: &Self::Common) -> u64;
}

/// A page of a task.
#[derive(Debug)]
pub enum Page<O, C> {
    /// Its own.
    Own(O),
    /// It is or was offered, and has not been written to since.
    Common(Arc<C>),
    /// In the middle of a change, which ends before anybody looks.
    Changing,
}

/// Memory of a task: its pages by their addresses, and what it has to do with offers.
#[derive(Debug)]
pub struct Memory<O, C> {
    pages: BTreeMap<u64, Page<O, C>>,
    pages_max: u64,
    /// The number by which the task is known in requests; 0 before the first.
    key: u64,
    /// Its offers, and their pages.
    offers: u32,
    offered: u64,
    /// Pages that it has written to in windows.
    copied: u64,
    windows: BTreeMap<u64, Window<O>>,
}

/// A place where a task looks at what it has taken.
#[derive(Debug)]
struct Window<O> {
    /// The offer that is there now.
    offer: Option<u64>,
    /// Pages from the begin that the task may have mapped, and their frames as far as they are known. Where it has written, nothing is mapped
    /// when its copy has gone.
    mapped: u64,
    frames: Vec<u64>,
    /// Copies of pages that the task has written to.
    own: BTreeMap<u64, O>,
}

/// A frame for a window's page.
#[derive(Debug)]
pub enum Look<'a, O, C> {
    /// To read and write.
    Own(&'a O),
    /// To read.
    Common(&'a C),
}

/// Content of a window after [`Offers::take`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shown {
    /// Pages of the offer, from the window's begin.
    pub pages: u64,
    /// So many pages from the begin may still be mapped from another offer. The taker gives them back before it looks.
    pub stale: u64,
}

impl<O, C> Memory<O, C> {
    /// That of a task with at most so many pages.
    pub fn new(pages_max: u64) -> Memory<O, C> {
        Memory {
            pages: BTreeMap::new(),
            pages_max,
            key: 0,
            offers: 0,
            offered: 0,
            copied: 0,
            windows: BTreeMap::new(),
        }
    }

    /// How many pages it may have.
    pub fn pages_max(&self) -> u64 {
        self.pages_max
    }

    /// Whether it may have so many more. Pages that it has offered do not count here: whoever keeps an offer must not keep its giver from memory.
    pub fn has_room(&self, pages: u64) -> bool {
        (self.pages.len() as u64 + self.copied).saturating_add(pages) <= self.pages_max
    }

    /// Whether it may offer so many more, of each of which there may be a copy soon.
    fn may_offer(&self, pages: u64) -> bool {
        self.has_room(self.offered.saturating_add(pages))
    }

    /// The page at an address.
    pub fn get(&self, address: u64) -> Option<&Page<O, C>> {
        self.pages.get(&address)
    }

    /// Puts a page where there is none.
    pub fn add(&mut self, address: u64, own: O) {
        self.pages.insert(address, Page::Own(own));
    }

    /// Makes a page one that the task can write to: the same frame, or a copy if somebody else looks at that. `None` if there is no such page,
    /// or no frame for the copy.
    pub fn own<F: Frames<Own = O, Common = C>>(&mut self, address: u64, frames: &mut F) -> Option<&O> {
        let page = self.pages.get_mut(&address)?;
        if let Page::Common(common) = page {
            let copy = match Arc::get_mut(common) {
                Some(_) => None,
                None => Some(frames.copy(common)?),
            };
            if let Page::Common(common) = core::mem::replace(page, Page::Changing) {
                *page = match (copy, Arc::try_unwrap(common)) {
                    (Some(copy), _) => Page::Own(copy),
                    (None, Ok(last)) => Page::Own(frames.thaw(last)),
                    (None, Err(common)) => Page::Common(common),
                };
            }
        }
        match page {
            Page::Own(own) => Some(own),
            _ => None,
        }
    }
}

/// A task as its manager has it.
pub trait Task<O, C> {
    /// Its memory.
    fn memory(&mut self) -> &mut Memory<O, C>;
    /// Whether it may write to all pages from `first` to `end`.
    fn is_writable(&self, first: u64, end: u64) -> bool;
}

/// Pages that a task has offered.
#[derive(Debug)]
struct Offer<C> {
    /// None once that has ended: another task may have its number then.
    giver: Option<TaskId>,
    pages: Vec<Arc<C>>,
    /// Task that looks at them, and in which window.
    taken: Option<(TaskId, u64)>,
}

/// All offers between tasks of a manager.
#[derive(Debug)]
pub struct Offers<C> {
    offers: BTreeMap<u64, Offer<C>>,
    keys: BTreeMap<u64, TaskId>,
}

impl<C> Default for Offers<C> {
    fn default() -> Self {
        Offers { offers: BTreeMap::new(), keys: BTreeMap::new() }
    }
}

impl<C> Offers<C> {
    /// Makes a task known by a random number, unless it is; gives back its number.
    pub fn introduce<O>(&mut self, task: TaskId, memory: &mut Memory<O, C>, random: u64) -> u64 {
        if memory.key == 0 {
            memory.key = random.max(1);
            self.keys.insert(memory.key, task);
        }
        memory.key
    }

    fn task(&self, key: u64) -> Result<TaskId, Status> {
        self.keys.get(&key).copied().ok_or(Status::Denied)
    }

    /// Offers so many pages from `first` on, all of which the giver must have and may write to. `number` is for whoever is to take them.
    pub fn offer<O, T: Task<O, C>, F: Frames<Own = O, Common = C>>(
        &mut self,
        tasks: &mut BTreeMap<TaskId, T>,
        (key, number): (u64, u64),
        (first, pages): (u64, u64),
        frames: &mut F,
    ) -> Result<u64, Status> {
        let giver = self.task(key)?;
        let bytes = pages.checked_mul(PAGE_SIZE).filter(|_| (1..=PAGES_MAX).contains(&pages));
        let end = bytes.and_then(|bytes| first.checked_add(bytes)).ok_or(Status::BadRequest)?;
        let task = tasks.get_mut(&giver).ok_or(Status::Denied)?;
        if !first.is_multiple_of(PAGE_SIZE) || !task.is_writable(first, end) {
            return Err(Status::BadRequest);
        }
        let memory = task.memory();
        if memory.pages.range(first..end).count() as u64 != pages {
            return Err(Status::NotFound);
        }
        let is_free = number != 0 && !self.offers.contains_key(&number);
        if !is_free || memory.offers >= OFFERS_MAX || !memory.may_offer(pages) {
            return Err(Status::Exhausted);
        }
        let mut common = Vec::new();
        common.try_reserve_exact(pages as usize).map_err(|_| Status::Exhausted)?;
        for (_, page) in memory.pages.range_mut(first..end) {
            if let Page::Own(_) = page
                && let Page::Own(own) = core::mem::replace(page, Page::Changing)
            {
                *page = Page::Common(Arc::new(frames.freeze(own)));
            }
            if let Page::Common(page) = page {
                common.push(page.clone());
            }
        }
        memory.offers += 1;
        memory.offered += pages;
        self.offers.insert(number, Offer { giver: Some(giver), pages: common, taken: None });
        Ok(number)
    }

    /// Puts an offer into a window of the task with that key. An offer is taken once, and a window has one at a time.
    pub fn take<O, T: Task<O, C>, F: Frames<Own = O, Common = C>>(
        &mut self,
        tasks: &mut BTreeMap<TaskId, T>,
        (key, number): (u64, u64),
        at: u64,
    ) -> Result<Shown, Status> {
        let taker = self.task(key)?;
        let offer = self.offers.get_mut(&number).filter(|offer| offer.taken.is_none());
        let offer = offer.ok_or(Status::NotFound)?;
        if !(1..=WINDOWS).contains(&at) {
            return Err(Status::BadRequest);
        }
        let memory = tasks.get_mut(&taker).ok_or(Status::Denied)?.memory();
        let empty = || Window { offer: None, mapped: 0, frames: Vec::new(), own: BTreeMap::new() };
        let window = memory.windows.entry(at).or_insert_with(empty);
        if window.offer.is_some() {
            return Err(Status::Taken);
        }
        let pages = offer.pages.len() as u64;
        let numbers = || offer.pages.iter().map(|page| F::number(page));
        let mut stale = 0;
        if !numbers().eq(window.frames.iter().copied()) {
            window.frames.try_reserve(offer.pages.len()).map_err(|_| Status::Exhausted)?;
            stale = window.mapped;
            window.mapped = pages;
            window.frames.clear();
            window.frames.extend(numbers());
        }
        window.offer = Some(number);
        offer.taken = Some((taker, at));
        Ok(Shown { pages, stale })
    }

    /// The frame for a page of a window, at a fault of the task whose memory that is.
    pub fn look<'a, O, F: Frames<Own = O, Common = C>>(
        &'a self,
        memory: &'a mut Memory<O, C>,
        (at, number): (u64, u64),
        is_written: bool,
        frames: &mut F,
    ) -> Result<Look<'a, O, C>, Refusal> {
        const NOTHING: Refusal = Refusal::NOTHING_THERE;
        let has_room = memory.has_room(1);
        let window = memory.windows.get_mut(&at).ok_or(NOTHING)?;
        let offer = window.offer.and_then(|offer| self.offers.get(&offer)).ok_or(NOTHING)?;
        let common = offer.pages.get(number as usize).ok_or(NOTHING)?;
        if is_written && !window.own.contains_key(&number) {
            if !has_room {
                return Err(Refusal::LIMIT);
            }
            let copy = frames.copy(common).ok_or(Refusal::NO_MEMORY)?;
            window.own.insert(number, copy);
            memory.copied += 1;
        }
        Ok(window.own.get(&number).map_or(Look::Common(&**common), Look::Own))
    }

    /// The taker looks at an offer no more, and its copies go.
    pub fn done<O, T: Task<O, C>, F: Frames<Own = O, Common = C>>(
        &mut self,
        tasks: &mut BTreeMap<TaskId, T>,
        (key, number): (u64, u64),
        frames: &mut F,
    ) -> Result<(), Status> {
        let taker = self.task(key)?;
        let taken = self.offers.get(&number).and_then(|offer| offer.taken);
        if taken.is_none_or(|(task, _)| task != taker) {
            return Err(Status::NotFound);
        }
        self.end(tasks, number, frames);
        Ok(())
    }

    /// The giver's call is over, and perhaps nobody took the offer. One that was taken stays until its taker is done.
    pub fn withdraw<O, T: Task<O, C>, F: Frames<Own = O, Common = C>>(
        &mut self,
        tasks: &mut BTreeMap<TaskId, T>,
        (key, number): (u64, u64),
        frames: &mut F,
    ) -> Result<(), Status> {
        let giver = self.task(key)?;
        let offer =
            self.offers.get(&number).filter(|offer| offer.giver == Some(giver)).ok_or(Status::NotFound)?;
        if offer.taken.is_none() {
            self.end(tasks, number, frames);
        }
        Ok(())
    }

    /// An offer is over.
    fn end<O, T: Task<O, C>, F: Frames<Own = O, Common = C>>(
        &mut self,
        tasks: &mut BTreeMap<TaskId, T>,
        number: u64,
        frames: &mut F,
    ) {
        let Some(offer) = self.offers.remove(&number) else { return };
        if let Some(giver) = offer.giver.and_then(|giver| tasks.get_mut(&giver)) {
            let memory = giver.memory();
            memory.offers -= 1;
            memory.offered -= offer.pages.len() as u64;
        }
        let taker = offer.taken.and_then(|(task, at)| Some((tasks.get_mut(&task)?.memory(), at)));
        if let Some((memory, at)) = taker
            && let Some(window) = memory.windows.get_mut(&at)
        {
            window.offer = None;
            if window.frames.len() > REMEMBERED_MAX {
                window.frames = Vec::new();
            }
            if !window.own.is_empty() {
                let own = core::mem::take(&mut window.own);
                memory.copied -= own.len() as u64;
                own.into_values().for_each(|own| frames.put(own));
            }
        }
        offer.pages.into_iter().for_each(|page| release(page, frames));
    }

    /// A task has ended, and this was its memory. What others look at stays until they are done.
    pub fn forget<O, T: Task<O, C>, F: Frames<Own = O, Common = C>>(
        &mut self,
        tasks: &mut BTreeMap<TaskId, T>,
        task: TaskId,
        memory: Memory<O, C>,
        frames: &mut F,
    ) {
        self.keys.remove(&memory.key);
        let is_over = |offer: &Offer<C>| match offer.taken {
            Some((taker, _)) => taker == task,
            None => offer.giver == Some(task),
        };
        let over: Vec<u64> = self.offers.iter().filter(|(_, o)| is_over(o)).map(|(&n, _)| n).collect();
        over.into_iter().for_each(|number| self.end(tasks, number, frames));
        for offer in self.offers.values_mut() {
            offer.giver = offer.giver.filter(|giver| *giver != task);
        }
        for window in memory.windows.into_values() {
            window.own.into_values().for_each(|own| frames.put(own));
        }
        for page in memory.pages.into_values() {
            match page {
                Page::Own(own) => frames.put(own),
                Page::Common(common) => release(common, frames),
                Page::Changing => {}
            }
        }
    }
}

/// Somebody has a common page no more. The last one frees it.
fn release<F: Frames>(page: Arc<F::Common>, frames: &mut F) {
    if let Ok(last) = Arc::try_unwrap(page) {
        let own = frames.thaw(last);
        frames.put(own);
    }
}

#[cfg(test)]
mod tests;
