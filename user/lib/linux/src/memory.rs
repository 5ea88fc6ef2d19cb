//! Memory of a process: regions, and the frames of their pages.
//!
//! A page gets its frame at the first access ([`Memory::fault`]). A copy of a process has the same frames; who writes first gets a frame of its own.
//! The machine's mappings follow: a frame is mapped by a fault, and taken from whoever must not have it any more by [`Bytes::protect`] and
//! [`Bytes::withdraw`], which take it from all that have it: the others get it back by another fault.

mod access;
mod forks;
mod names;
mod pages;
mod recent;
mod rights;
mod shared;

use crate::budget::Share;
use crate::errno::{EACCES, EEXIST, EFAULT, EINVAL, ENOMEM, Result};
use crate::frames::{Bytes, Frame, Frames, PAGE};
use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::Range;
pub use forks::AtFork;
use names::Names;
pub use names::{Label, NAME_BYTES, Name};
use pages::Pages;
use recent::Recent;
pub use rights::Rights;
pub use shared::{Objects, whole_pages};

/// Lowest address that can be mapped: an access through a null pointer with an offset must fail.
pub const FIRST: u64 = 0x1_0000;
/// End of the addresses of a process.
pub const END: u64 = 0x7fff_ffff_f000;
/// Where mappings are searched for, from here downwards, below the stack.
const MAPPINGS_END: u64 = 0x7fff_f000_0000;
/// Where mappings are searched for, from the beginning upwards, that a program wants at addresses of 31 bits: `MAP_32BIT`. As in Linux.
const LOW: Range<u64> = 0x4000_0000..0x8000_0000;
/// Bytes between a stack and what is below it.
const STACK_GAP: u64 = 256 * PAGE;

/// Number of a file whose pages are mapped, as its owner knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FileNumber(pub u64);

/// A place in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// The file.
    pub file: FileNumber,
    /// Bytes from its start.
    pub offset: u64,
}

/// Kind of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// Rights to its pages.
    pub rights: Rights,
    /// Whether what is written is seen by all that have the pages; otherwise by this process alone.
    pub is_shared: bool,
    /// Whether it becomes longer downwards when it is accessed just below.
    pub grows_down: bool,
    /// Whether nobody can get the right to write to it: it shows a file itself, which was opened to be read.
    pub is_read_only: bool,
    /// Place in a file that its first page shows. Without one, zeros.
    pub source: Option<Source>,
    /// Its state in a copy.
    pub at_fork: AtFork,
    /// The name that its program has given to it.
    pub name: Name,
}

impl Kind {
    /// Private memory of zeros.
    pub const fn private(rights: Rights) -> Kind {
        let (at_fork, name) = (AtFork::COPIED, Name::NONE);
        Kind { rights, is_shared: false, grows_down: false, is_read_only: false, source: None, at_fork, name }
    }

    /// The kind `bytes` further up.
    fn from(self, bytes: u64) -> Kind {
        let source = self.source.map(|source| Source { offset: source.offset + bytes, ..source });
        Kind { source, ..self }
    }
}

/// A piece of memory of one kind.
#[derive(Clone, Copy, Debug)]
struct Region {
    end: u64,
    kind: Kind,
}

/// Why an access fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Nothing is there: `SEGV_MAPERR`.
    Nothing,
    /// That may not be done there: `SEGV_ACCERR`.
    Denied,
    /// The file ends before: `BUS_ADRERR`.
    BehindEnd,
    /// There are no frames left.
    NoMemory,
}

/// Outcome of an access to a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// The page has this frame, to be mapped with these rights.
    Mapped(Frame, Rights),
    /// The page shows this of a file: [`Memory::supply`] it, and try again. The other word says whether what is written there is the file's.
    Wants(Source, bool),
}

/// Most regions of a process: as many as in Linux.
pub const REGIONS_MAX: usize = 65_530;

/// Bytes that a region counts for.
const REGION_BYTES: usize = 96;

/// Memory of a process.
#[derive(Debug, Default)]
pub struct Memory {
    /// By their first addresses.
    regions: BTreeMap<u64, Region>,
    pages: Pages,
    recent: Recent,
    /// Where the heap of `brk` begins, and where it ends.
    heap: (u64, u64),
    /// Where the stack begins; 0: nowhere.
    stack: u64,
    /// Share of the budget that its tables have, since there are some.
    share: Option<Share>,
    /// Objects without a file of which something is mapped.
    objects: BTreeSet<FileNumber>,
    /// Names of regions.
    names: Names,
}

/// The next multiple of a page; none if there is none.
fn up(address: u64) -> Option<u64> {
    Some(address.checked_add(PAGE - 1)? / PAGE * PAGE)
}

impl Memory {
    /// A range of whole pages that a call names.
    fn range(start: u64, len: u64) -> Result<Range<u64>> {
        let end = up(len).and_then(|len| start.checked_add(len)).ok_or(EINVAL)?;
        if !start.is_multiple_of(PAGE) || end > END { Err(EINVAL) } else { Ok(start..end) }
    }

    /// Tells how large the tables are, after each change of them.
    fn count<B: Bytes>(&mut self, frames: &mut Frames<B>) {
        let now = self.table_bytes();
        if self.share.as_ref().map_or(0, Share::bytes) != now {
            self.share.get_or_insert_with(|| frames.budget.empty()).set(now);
        }
    }

    /// Bytes that its tables count for.
    pub fn table_bytes(&self) -> usize {
        let objects = self.objects.len() * shared::USE_BYTES;
        self.regions.len() * REGION_BYTES + self.pages.bytes() + objects + self.names.bytes()
    }

    /// Fails if there is no room for more regions.
    fn check_regions<B: Bytes>(&self, frames: &Frames<B>, more: usize) -> Result<()> {
        let has_room =
            self.regions.len() + more <= REGIONS_MAX && frames.budget.has_room(more * REGION_BYTES);
        if has_room { Ok(()) } else { Err(ENOMEM) }
    }

    /// Fails if there is no room for the regions into which a range is cut out of others.
    fn check_cuts<B: Bytes>(&self, frames: &Frames<B>, range: &Range<u64>) -> Result<()> {
        let more = [range.start, range.end].into_iter().filter(|at| self.is_inside(*at)).count();
        if more > 0 { self.check_regions(frames, more) } else { Ok(()) }
    }

    /// Whether an address has parts of one region on both sides.
    fn is_inside(&self, address: u64) -> bool {
        self.region(address).is_some_and(|(start, _)| start < address)
    }

    /// Kind of what is mapped at an address, with the place in its file that the address itself shows.
    pub fn kind_at(&self, address: u64) -> Option<Kind> {
        self.region(address).map(|(start, region)| region.kind.from(address - start))
    }

    /// The region that an address lies in, and where it begins.
    fn region(&self, address: u64) -> Option<(u64, Region)> {
        let (&start, &region) = self.regions.range(..=address).next_back()?;
        (address < region.end).then_some((start, region))
    }

    /// First region that begins or goes on behind an address, from its start.
    fn next(&self, address: u64) -> Option<(u64, Region)> {
        self.region(address)
            .or_else(|| self.regions.range(address..).next().map(|(&start, &region)| (start, region)))
    }

    /// Whether nothing is in a range.
    fn is_free(&self, range: &Range<u64>) -> bool {
        self.next(range.start).is_none_or(|(start, _)| start >= range.end)
    }

    /// Makes an address the start of a region, if it lies in one.
    fn split(&mut self, at: u64) {
        if let Some((start, region)) = self.region(at)
            && start < at
        {
            self.regions.insert(start, Region { end: at, ..region });
            self.regions.insert(at, Region { end: region.end, kind: region.kind.from(at - start) });
        }
    }

    /// Cuts regions so that none goes beyond a range. They are looked at one after the other then: a list of them would be as large as all of their tables.
    fn cut(&mut self, range: &Range<u64>) {
        self.split(range.start);
        self.split(range.end);
    }

    /// Room of so many bytes, as high as possible; below the stack.
    fn search(&self, len: u64) -> Result<u64> {
        let mut end = MAPPINGS_END;
        for (&start, region) in self.regions.range(..MAPPINGS_END).rev() {
            if region.end <= end && end - region.end >= len {
                return Ok(end - len);
            }
            end = end.min(start);
        }
        end.checked_sub(len).filter(|&start| start >= FIRST).ok_or(ENOMEM)
    }

    /// Room of so many bytes in [`LOW`], as low as possible.
    fn search_low(&self, len: u64) -> Result<u64> {
        let mut start = self.region(LOW.start).map_or(LOW.start, |(_, region)| region.end);
        for (&next, region) in self.regions.range(LOW) {
            if next.saturating_sub(start) >= len {
                return Ok(start);
            }
            start = start.max(region.end);
        }
        if LOW.end.saturating_sub(start) >= len { Ok(start) } else { Err(ENOMEM) }
    }

    /// Maps at an address, or where there is room if it is none. `replaces`: what is there goes; otherwise it is an error.
    pub fn map<B: Bytes>(
        &mut self,
        frames: &mut Frames<B>,
        at: Option<u64>,
        len: u64,
        kind: Kind,
        replaces: bool,
    ) -> Result<u64> {
        if len == 0 {
            return Err(EINVAL);
        }
        let len = up(len).filter(|&len| len < END).ok_or(ENOMEM)?;
        self.check_regions(frames, 1)?;
        let start = match at {
            Some(start) => {
                let range =
                    Memory::range(start, len).map_err(|_| if start % PAGE == 0 { ENOMEM } else { EINVAL })?;
                if start < FIRST {
                    return Err(EACCES);
                }
                if replaces {
                    self.unmap(frames, start, len)?;
                } else if !self.is_free(&range) {
                    return Err(EEXIST);
                }
                start
            }
            None => self.search(len)?,
        };
        self.insert(start, start + len, kind);
        self.use_object(frames, kind);
        self.count(frames);
        Ok(start)
    }

    /// Maps near an address if there is room, and somewhere otherwise.
    pub fn map_near<B: Bytes>(
        &mut self,
        frames: &mut Frames<B>,
        hint: u64,
        len: u64,
        kind: Kind,
    ) -> Result<u64> {
        let hint = hint / PAGE * PAGE;
        let at = self.is_good(hint, len, MAPPINGS_END).then_some(hint);
        self.map(frames, at, len, kind, false)
    }

    /// Maps near an address if there is room and it ends where [`LOW`] does or before, and somewhere there otherwise.
    pub fn map_low<B: Bytes>(
        &mut self,
        frames: &mut Frames<B>,
        hint: u64,
        len: u64,
        kind: Kind,
    ) -> Result<u64> {
        let hint = hint / PAGE * PAGE;
        let low = || self.search_low(up(len).ok_or(ENOMEM)?);
        let at = if self.is_good(hint, len, LOW.end) { hint } else { low()? };
        self.map(frames, Some(at), len, kind, false)
    }

    /// Whether a program can have a mapping where it would like it: nothing is there, and it does not go beyond an end.
    fn is_good(&self, hint: u64, len: u64, end: u64) -> bool {
        hint >= FIRST && Memory::range(hint, len).is_ok_and(|range| range.end <= end && self.is_free(&range))
    }

    /// Adds a region where nothing is. One that goes on where its neighbour ends becomes a part of it.
    fn insert(&mut self, mut start: u64, mut end: u64, kind: Kind) {
        let mut kind = kind;
        if let Some((&before, &region)) = self.regions.range(..start).next_back()
            && region.end == start
            && region.kind.from(start - before) == kind
        {
            (start, kind) = (before, region.kind);
        }
        // More than one, where a range was cut.
        while let Some(&region) = self.regions.get(&end)
            && kind.from(end - start) == region.kind
        {
            self.regions.remove(&end);
            end = region.end;
        }
        self.regions.insert(start, Region { end, kind });
    }

    /// Unmaps what there is of a range.
    pub fn unmap<B: Bytes>(&mut self, frames: &mut Frames<B>, start: u64, len: u64) -> Result<()> {
        let range = Memory::range(start, len)?;
        if range.is_empty() {
            return Err(EINVAL);
        }
        // A region loses its middle, and becomes two.
        if self
            .region(range.start)
            .is_some_and(|(start, region)| start < range.start && range.end < region.end)
        {
            self.check_regions(frames, 1)?;
        }
        self.cut(&range);
        self.remove(frames, &range);
        self.forget(frames, range);
        Ok(())
    }

    /// Pages of a range have no frames any more.
    fn forget<B: Bytes>(&mut self, frames: &mut Frames<B>, range: Range<u64>) {
        self.recent.forget();
        for (_, frame) in self.pages.take(range.start / PAGE..range.end / PAGE) {
            if frames.is_shared(frame) {
                // Others have it, too, and get it back when they use it.
                frames.withdraw(frame);
            }
            frames.release(frame);
        }
        self.count(frames);
    }

    /// Gives back the frames of private memory, which is zero afterwards, or what its file says: `MADV_DONTNEED`.
    pub fn discard<B: Bytes>(&mut self, frames: &mut Frames<B>, start: u64, len: u64) -> Result<()> {
        let range = Memory::range(start, len)?;
        self.all_mapped(&range)?;
        self.forget(frames, range);
        Ok(())
    }

    /// Fails unless all of a range of whole pages is mapped.
    pub fn check_mapped(&self, start: u64, len: u64) -> Result<()> {
        self.all_mapped(&Memory::range(start, len).map_err(|_| ENOMEM)?)
    }

    /// Fails unless all of a range is mapped.
    fn all_mapped(&self, range: &Range<u64>) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            at = self.region(at).ok_or(ENOMEM)?.1.end;
        }
        Ok(())
    }

    /// Changes what may be done in a range.
    pub fn protect<B: Bytes>(
        &mut self,
        frames: &mut Frames<B>,
        start: u64,
        len: u64,
        rights: Rights,
    ) -> Result<()> {
        let range = Memory::range(start, len)?;
        self.recent.forget();
        self.all_mapped(&range)?;
        if rights.has(Rights::WRITE) && self.kinds(&range).any(|kind| kind.is_read_only) {
            return Err(EACCES);
        }
        self.check_cuts(frames, &range)?;
        self.cut(&range);
        let mut at = range.start;
        // Also where nothing changes, so that pieces which were cut apart are one again. One that had these rights may be a part of the one before by now.
        while let Some((&start, &region)) = self.regions.range(at..range.end).next() {
            let before = region.kind.rights;
            at = region.end;
            self.regions.remove(&start);
            self.insert(start, region.end, Kind { rights, ..region.kind });
            let (before, now) = (before.in_processor(), rights.in_processor());
            if region.kind.is_shared && region.kind.source.is_some() && !before.has(now) {
                // Pages that were read are asked for once more, so that it is known who writes to the file.
                self.forget(frames, start..region.end);
                continue;
            }
            if now.has(before) {
                continue;
            }
            for (_, frame) in self.pages.among(start / PAGE..region.end / PAGE) {
                if now.has(Rights(before.0 & !Rights::WRITE.0)) {
                    frames.protect(frame);
                } else {
                    frames.withdraw(frame);
                }
            }
        }
        self.count(frames);
        Ok(())
    }

    /// Sets where the heap begins, which is empty.
    pub fn begin_heap(&mut self, start: u64) {
        self.heap = (start, start);
    }

    /// End of the heap.
    pub const fn heap_end(&self) -> u64 {
        self.heap.1
    }

    /// Moves the end of the heap, if that can be. Where it is then.
    pub fn set_break<B: Bytes>(&mut self, frames: &mut Frames<B>, end: u64) -> u64 {
        let (start, before) = self.heap;
        let (Some(old), Some(new)) = (up(before), up(end)) else { return before };
        if end < start {
            return before;
        }
        let is_done = match new.cmp(&old) {
            core::cmp::Ordering::Greater => {
                let kind = Kind::private(Rights::READ_WRITE);
                self.map(frames, Some(old), new - old, kind, false).is_ok()
            }
            core::cmp::Ordering::Less => self.unmap(frames, new, old - new).is_ok(),
            core::cmp::Ordering::Equal => true,
        };
        if is_done {
            self.heap.1 = end;
        }
        self.heap.1
    }

    /// Makes a mapping longer or shorter, or moves it: `mremap`. `to`: where it is to be, or whether it may be anywhere.
    pub fn remap<B: Bytes>(
        &mut self,
        frames: &mut Frames<B>,
        old: (u64, u64),
        len: u64,
        to: Move,
    ) -> Result<u64> {
        let from = Memory::range(old.0, old.1)?;
        if from.is_empty() {
            return Err(EINVAL);
        }
        self.recent.forget();
        let len = up(len).filter(|&len| len > 0).ok_or(EINVAL)?;
        let (first, region) = self.region(from.start).ok_or(EFAULT)?;
        if from.end > region.end {
            return Err(EFAULT);
        }
        let kind = region.kind.from(from.start - first);
        // Each of its bytes has a place in what it shows.
        if kind.source.is_some_and(|source| source.offset.checked_add(len).is_none()) {
            return Err(EINVAL);
        }
        let old_len = from.end - from.start;
        // The new one, and pieces on both sides of what is taken out of regions: here, and where it goes. Nothing may fail once pages have been taken.
        self.check_regions(frames, if matches!(to, Move::To(_)) { 3 } else { 2 })?;
        if let Move::To(at) = to {
            let target = Memory::range(at, len)?;
            if at < FIRST || target.start < from.end && from.start < target.end {
                return Err(EINVAL);
            }
            self.unmap(frames, at, len)?;
        } else if len <= old_len {
            if len < old_len {
                self.unmap(frames, from.start + len, old_len - len)?;
            }
            return Ok(from.start);
        } else {
            let end = from.start.checked_add(len).filter(|&end| end <= END);
            if let Some(more) = end.map(|end| from.end..end)
                && self.is_free(&more)
            {
                self.insert(more.start, more.end, kind.from(old_len));
                self.count(frames);
                return Ok(from.start);
            }
            if to == Move::Never {
                return Err(ENOMEM);
            }
        }
        let at = match to {
            Move::To(at) => at,
            _ => self.search(len)?,
        };
        let kept = old_len.min(len);
        let moved = self.pages.take(from.start / PAGE..(from.start + kept) / PAGE);
        // An object is mapped all the time, and does not end in between.
        self.insert(at, at + len, kind);
        self.unmap(frames, from.start, old_len)?;
        for (page, frame) in moved {
            frames.withdraw(frame);
            self.pages.set(page - from.start / PAGE + at / PAGE, frame);
        }
        self.count(frames);
        Ok(at)
    }

    /// Gives all of it back, of an address space that is gone or has nothing mapped.
    pub fn clear<B: Bytes>(&mut self, frames: &mut Frames<B>) {
        self.regions.clear();
        self.names = Names::default();
        self.leave_all_objects(frames);
        self.recent.forget();
        self.pages.take_all(|frame| frames.leave(frame));
        self.count(frames);
        (self.heap, self.stack) = ((0, 0), 0);
    }

    /// Files of which something is mapped.
    pub fn files(&self) -> BTreeSet<FileNumber> {
        let sources = self.regions.values().filter_map(|region| region.kind.source);
        sources.map(|source| source.file).filter(|file| !file.is_object()).collect()
    }

    /// Files that are written to by who writes to a range of addresses.
    pub fn shared_files(&self, range: Range<u64>) -> BTreeSet<FileNumber> {
        let shared = self.kinds(&range).filter(|kind| kind.is_shared && !kind.is_read_only);
        let files = shared.filter_map(|kind| kind.source).map(|source| source.file);
        files.filter(|file| !file.is_object()).collect()
    }

    /// Kinds of the regions of a range, from the highest on.
    fn kinds(&self, range: &Range<u64>) -> impl Iterator<Item = Kind> {
        let (start, below) = (range.start, self.regions.range(..range.end).rev());
        below.take_while(move |(_, region)| region.end > start).map(|(_, region)| region.kind)
    }

    /// Bytes that are mapped, and bytes that have frames.
    pub fn sizes(&self) -> (u64, u64) {
        let mapped = self.regions.iter().map(|(start, region)| region.end - start).sum();
        (mapped, self.pages.among(0..END / PAGE).count() as u64 * PAGE)
    }

    /// All regions: first address, end, kind.
    pub fn regions(&self) -> impl Iterator<Item = (u64, u64, Kind)> {
        self.regions.iter().map(|(&start, region)| (start, region.end, region.kind))
    }

    /// Frames that pages of a region have.
    pub fn frames_of(&self, start: u64, end: u64) -> impl Iterator<Item = Frame> {
        self.pages.among(start / PAGE..end / PAGE).map(|(_, frame)| frame)
    }
}

/// Most bytes of a stack.
pub const STACK_MAX: u64 = 8 << 20;

/// Where `mremap` may put a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// Where it is.
    Never,
    /// Anywhere.
    Anywhere,
    /// There, in the place of what is there.
    To(u64),
}
