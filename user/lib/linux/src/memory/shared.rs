//! Memory without a file that several processes share: what `mmap` makes that is shared and anonymous, and `memfd_create`.
//!
//! Such an object has a number among those of files, and is the source of what is mapped of it, so its pages are everybody's also if nobody has touched
//! them yet. It is there while an address space has some of it mapped, or somebody else [holds](Frames::hold_object) it.

use super::pages::Pages;
use super::{Access, Fault, FileNumber, Kind, Memory, Region, Rights, Source};
use crate::budget::Share;
use crate::errno::{EACCES, EFBIG, EINVAL, ENOMEM, EOPNOTSUPP, Result};
use crate::frames::{Bytes, Frame, Frames, PAGE};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Bits that numbers of objects have. No file has them, and nothing special that can be mapped.
const OBJECTS: u64 = 0xff << 56;

/// Bytes that an object counts for, beside its pages.
const OBJECT_BYTES: usize = 160;

/// Bytes that an address space counts for each object that it has.
pub(super) const USE_BYTES: usize = 32;

/// Longest object.
const LEN_MAX: u64 = 1 << 46;

/// All objects, by number.
#[derive(Debug, Default)]
pub struct Objects {
    all: BTreeMap<FileNumber, Object>,
    made: u64,
}

impl Objects {
    /// None.
    pub const fn new() -> Objects {
        Objects { all: BTreeMap::new(), made: 0 }
    }
}

#[derive(Debug)]
struct Object {
    pages: Pages,
    len: u64,
    uses: usize,
    /// Its name, as `/proc` shows it, if it has one.
    name: Option<Rc<[u8]>>,
    /// Share of the budget that its tables have.
    share: Share,
}

impl Object {
    /// Bytes that it counts for.
    fn bytes(&self) -> usize {
        let name = self.name.as_ref().map_or(0, |name| name.len());
        OBJECT_BYTES + name + self.pages.bytes()
    }
}

impl FileNumber {
    /// Whether it is an object without a file.
    pub const fn is_object(self) -> bool {
        self.0 & OBJECTS == OBJECTS
    }

    /// Number of the object among those that there were.
    pub const fn object(self) -> u64 {
        self.0 & !OBJECTS
    }
}

impl<B: Bytes> Frames<B> {
    /// Makes an object of so many zeros, which its maker holds, with the name that `/proc` shows. No length: one that ends nowhere.
    pub fn make_object(&mut self, len: Option<u64>, name: Option<Rc<[u8]>>) -> Result<FileNumber> {
        let name_bytes = name.as_ref().map_or(0, |name| name.len());
        let share = self.budget.take(OBJECT_BYTES + name_bytes).ok_or(ENOMEM)?;
        self.objects.made += 1;
        let number = FileNumber(OBJECTS | self.objects.made & !OBJECTS);
        let (pages, len) = (Pages::default(), len.unwrap_or(u64::MAX));
        self.objects.all.insert(number, Object { pages, len, uses: 1, name, share });
        Ok(number)
    }

    /// Name of an object, if it has one.
    pub fn object_name(&self, number: FileNumber) -> Option<Rc<[u8]>> {
        self.objects.all.get(&number)?.name.clone()
    }

    /// Keeps an object once more.
    pub fn hold_object(&mut self, number: FileNumber) {
        if let Some(object) = self.objects.all.get_mut(&number) {
            object.uses += 1;
        }
    }

    /// Keeps an object once less. It is gone with the last one.
    pub fn leave_object(&mut self, number: FileNumber) {
        let Some(object) = self.objects.all.get_mut(&number) else { return };
        object.uses -= 1;
        if object.uses > 0 {
            return;
        }
        if let Some(mut object) = self.objects.all.remove(&number) {
            for (_, frame) in object.pages.take(0..u64::MAX / PAGE) {
                self.release(frame);
            }
        }
    }

    /// Objects that there are.
    pub fn object_count(&self) -> usize {
        self.objects.all.len()
    }

    /// Bytes that the tables of all objects count for.
    pub fn object_tables(&self) -> usize {
        self.objects.all.values().map(Object::bytes).sum()
    }

    /// Whether an object is there.
    pub fn has_object(&self, number: FileNumber) -> bool {
        self.objects.all.contains_key(&number)
    }

    /// Whether it is an object without a name: no call but `mmap` has made it.
    pub fn is_nameless(&self, number: FileNumber) -> bool {
        self.objects.all.get(&number).is_some_and(|object| object.name.is_none())
    }

    /// Bytes of an object.
    pub fn object_len(&self, number: FileNumber) -> u64 {
        self.objects.all.get(&number).map_or(0, |object| object.len)
    }

    /// Bytes of an object that have frames.
    pub fn object_bytes(&self, number: FileNumber) -> u64 {
        self.objects
            .all
            .get(&number)
            .map_or(0, |object| object.pages.among(0..u64::MAX / PAGE).count() as u64 * PAGE)
    }

    /// Makes an object shorter, or longer by zeros. Whoever has a page mapped that goes keeps it until it is [taken](Memory::forget_source).
    pub fn set_object_len(&mut self, number: FileNumber, len: u64) -> Result<()> {
        if len > LEN_MAX {
            return Err(EFBIG);
        }
        let Some(object) = self.objects.all.get_mut(&number) else { return Ok(()) };
        object.len = len;
        let gone = object.pages.take(len.div_ceil(PAGE)..u64::MAX / PAGE);
        let cut = object.pages.get(len / PAGE).filter(|_| !len.is_multiple_of(PAGE));
        self.count_object(number);
        gone.into_iter().for_each(|(_, frame)| self.release(frame));
        if let Some(frame) = cut {
            let at = (len % PAGE) as usize;
            self.bytes.write(frame, at, &vec![0; PAGE as usize - at]);
        }
        Ok(())
    }

    /// Frame that a page of an object has.
    fn object_frame(&self, number: FileNumber, page: u64) -> Option<Frame> {
        self.objects.all.get(&number)?.pages.get(page)
    }

    /// Makes a part of an object zeros, and gives back the frames of whole pages. Memories that have such a page mapped [lose](Memory::forget_pages) it before.
    pub fn clear_object(&mut self, number: FileNumber, hole: &Range<u64>) {
        let whole = whole_pages(hole);
        let Some(object) = self.objects.all.get_mut(&number) else { return };
        let gone = object.pages.take(whole.clone());
        self.count_object(number);
        gone.into_iter().for_each(|(_, frame)| self.release(frame));
        // Pages at its ends, which may be one.
        let ends = [hole.start, hole.end.saturating_sub(1)].map(|at| at / PAGE);
        for page in ends.into_iter().filter(|page| !whole.contains(page)).collect::<BTreeSet<_>>() {
            let (from, to) = (hole.start.max(page * PAGE), hole.end.min((page + 1) * PAGE));
            if let Some(frame) = self.object_frame(number, page).filter(|_| from < to) {
                self.bytes.write(frame, (from % PAGE) as usize, &vec![0; (to - from) as usize]);
            }
        }
    }

    fn count_object(&mut self, number: FileNumber) {
        let Some(object) = self.objects.all.get_mut(&number) else { return };
        let bytes = object.bytes();
        object.share.set(bytes);
    }

    /// Frame of a page of an object, which it gets if it has none.
    fn object_page(&mut self, at: Source) -> core::result::Result<Frame, Fault> {
        let page = at.offset / PAGE;
        let object = self.objects.all.get(&at.file).ok_or(Fault::BehindEnd)?;
        if at.offset >= object.len {
            return Err(Fault::BehindEnd);
        }
        if let Some(frame) = object.pages.get(page) {
            return Ok(frame);
        }
        let more = object.pages.more_bytes(page).ok_or(Fault::NoMemory)?;
        if !self.budget.has_room(more) {
            return Err(Fault::NoMemory);
        }
        let frame = self.zeroed().map_err(|_| Fault::NoMemory)?;
        match self.objects.all.get_mut(&at.file) {
            Some(object) => object.pages.set(page, frame),
            None => return Err(Fault::BehindEnd),
        }
        self.count_object(at.file);
        Ok(frame)
    }

    /// Bytes of an object from an offset on, as many as there are.
    pub fn read_object(&self, number: FileNumber, offset: u64, to: &mut [u8]) -> usize {
        let Some(object) = self.objects.all.get(&number) else { return 0 };
        let count = object.len.saturating_sub(offset).min(to.len() as u64) as usize;
        let mut left = &mut to[..count];
        let mut at = offset;
        while !left.is_empty() {
            let place = (at % PAGE) as usize;
            let (now, later) = left.split_at_mut((PAGE as usize - place).min(left.len()));
            match object.pages.get(at / PAGE) {
                Some(frame) => self.bytes.read(frame, place, now),
                None => now.fill(0),
            }
            at += now.len() as u64;
            left = later;
        }
        count
    }

    /// Writes bytes of an object, which becomes longer where that is needed. How many: fewer only if there are no frames left, none are an error.
    pub fn write_object(&mut self, number: FileNumber, offset: u64, from: &[u8]) -> Result<usize> {
        let end = offset.checked_add(from.len() as u64).filter(|end| *end <= LEN_MAX).ok_or(EFBIG)?;
        let before = self.object_len(number);
        if let Some(object) = self.objects.all.get_mut(&number) {
            object.len = object.len.max(end);
        }
        let mut done = 0;
        while done < from.len() {
            let at = offset + done as u64;
            let place = (at % PAGE) as usize;
            let count = (PAGE as usize - place).min(from.len() - done);
            let Ok(frame) = self.object_page(Source { file: number, offset: at }) else { break };
            self.bytes.write(frame, place, &from[done..done + count]);
            done += count;
        }
        if done < from.len()
            && let Some(object) = self.objects.all.get_mut(&number)
        {
            object.len = before.max(offset + done as u64);
        }
        if done == 0 && !from.is_empty() { Err(ENOMEM) } else { Ok(done) }
    }
}

/// The object that a region shows, if it shows one.
fn object_of(region: &Region) -> Option<FileNumber> {
    region.kind.source.map(|source| source.file).filter(|file| file.is_object())
}

/// Pages that lie in a range of bytes as a whole.
pub fn whole_pages(range: &Range<u64>) -> Range<u64> {
    let (first, end) = (range.start.div_ceil(PAGE), range.end / PAGE);
    first..end.max(first)
}

impl Memory {
    /// Pages of objects have no frames here any more: ranges of pages, in order, none of which meets another one. Those that were copied stay as they are.
    pub fn forget_pages<B: Bytes>(&mut self, frames: &mut Frames<B>, gone: &[(FileNumber, Range<u64>)]) {
        let of = |file: FileNumber| {
            let end = gone.partition_point(|(of, _)| *of <= file);
            &gone[gone.partition_point(|(of, _)| *of < file)..end]
        };
        if self.objects.iter().all(|object| of(*object).is_empty()) {
            return;
        }
        let mut lost = Vec::new();
        for (start, end, kind) in self.regions() {
            let Some(source) = kind.source.filter(|source| source.file.is_object()) else { continue };
            let (first, here) = (source.offset / PAGE, start / PAGE);
            let behind = first + (end / PAGE - here);
            let holes = of(source.file);
            let from = holes.partition_point(|(_, hole)| hole.end <= first);
            for (_, hole) in holes[from..].iter().take_while(|(_, hole)| hole.start < behind) {
                let pages = hole.start.max(first) - first + here..hole.end.min(behind) - first + here;
                if kind.is_shared {
                    lost.push(pages);
                    continue;
                }
                let is_copy = |(page, frame): &(u64, Frame)| {
                    frames.object_frame(source.file, page - here + first) != Some(*frame)
                };
                let copies = self.pages.among(pages.clone()).filter(is_copy).map(|(page, _)| page);
                // From behind one copy to the next one.
                let mut next = pages.start;
                for copy in copies.chain([pages.end]) {
                    lost.extend((next < copy).then_some(next..copy));
                    next = copy + 1;
                }
            }
        }
        for pages in lost {
            self.forget(frames, pages.start * PAGE..pages.end * PAGE);
        }
    }

    /// Bytes of objects that a range shows to be shared, in order, for holes there. None of them meets another one. `EINVAL`: some of it shows no file; `EACCES`: it may not be written to;
    /// `EOPNOTSUPP`: a file of a file system has no holes.
    pub fn objects_in(&self, start: u64, len: u64) -> Result<Vec<(FileNumber, Range<u64>)>> {
        let range = Memory::range(start, len).map_err(|_| ENOMEM)?;
        let first = self.region(range.start).map_or(range.start, |(start, _)| start);
        let mut shown = Vec::new();
        for (&start, region) in self.regions.range(first..range.end) {
            let source = region.kind.source.ok_or(EINVAL)?;
            if !region.kind.is_shared || region.kind.is_read_only {
                return Err(EACCES);
            }
            if !source.file.is_object() {
                return Err(EOPNOTSUPP);
            }
            let (from, to) = (start.max(range.start), region.end.min(range.end));
            shown.push((source.file, source.offset + (from - start)..source.offset + (to - start)));
        }
        shown.sort_unstable_by_key(|(file, range)| (*file, range.start));
        shown.dedup_by(|(file, later), (before, range)| {
            let meets = file == before && later.start <= range.end;
            if meets {
                range.end = range.end.max(later.end);
            }
            meets
        });
        Ok(shown)
    }

    /// Shows another piece of its file or object in a range of shared memory, all of which shows one.
    pub fn show_elsewhere<B: Bytes>(
        &mut self,
        frames: &mut Frames<B>,
        (start, len): (u64, u64),
        offset: u64,
    ) -> Result<()> {
        let range = Memory::range(start, len)?;
        let (kind, source) = self.shown_by_all(&range).ok_or(EINVAL)?;
        let kind = Kind { source: Some(Source { offset, ..source }), ..kind };
        // An object does not end in between.
        frames.hold_object(source.file);
        let mapped = self.map(frames, Some(start), len, kind, true);
        frames.leave_object(source.file);
        mapped.map(drop)
    }

    /// Kind of a range that shows one file or object by shared memory with the same rights, and the place that its first page shows.
    fn shown_by_all(&self, range: &Range<u64>) -> Option<(Kind, Source)> {
        let kind = self.kind_at(range.start)?;
        let source = kind.source.filter(|_| kind.is_shared)?;
        let mut at = range.start;
        while at < range.end {
            let (_, region) = self.region(at)?;
            let is_it = region.kind.source.is_some_and(|shown| shown.file == source.file);
            if !is_it || !region.kind.is_shared || region.kind.rights != kind.rights {
                return None;
            }
            at = region.end;
        }
        Some((kind, source))
    }

    /// Some of an object is mapped from now on.
    pub(super) fn use_object<B: Bytes>(&mut self, frames: &mut Frames<B>, kind: Kind) {
        if let Some(Source { file, .. }) = kind.source
            && file.is_object()
            && self.objects.insert(file)
        {
            frames.hold_object(file);
        }
    }

    /// Removes the regions that begin in a range. Objects of which nothing is mapped any more are left.
    pub(super) fn remove<B: Bytes>(&mut self, frames: &mut Frames<B>, range: &Range<u64>) {
        let mut gone = BTreeSet::new();
        while let Some((&start, region)) = self.regions.range(range.clone()).next() {
            gone.extend(object_of(region));
            self.regions.remove(&start);
        }
        self.leave_unmapped(frames, gone);
    }

    /// Unmaps whole regions that show an object. However many they are, one look tells whether something of it is left.
    pub fn unmap_pieces<B: Bytes>(
        &mut self,
        frames: &mut Frames<B>,
        object: FileNumber,
        pieces: &[Range<u64>],
    ) {
        for piece in pieces {
            self.regions.remove(&piece.start);
            self.forget(frames, piece.clone());
        }
        self.leave_unmapped(frames, BTreeSet::from([object]));
        self.count(frames);
    }

    /// Leaves those of some objects of which nothing is mapped any more. To find them, it looks at all regions once at most.
    fn leave_unmapped<B: Bytes>(&mut self, frames: &mut Frames<B>, mut gone: BTreeSet<FileNumber>) {
        let mut left = self.regions.values().filter_map(object_of);
        while !gone.is_empty()
            && let Some(file) = left.next()
        {
            gone.remove(&file);
        }
        for file in gone {
            if self.objects.remove(&file) {
                frames.leave_object(file);
            }
        }
    }

    /// Pages that show a file or an object from a place on have no frames any more, also those that were copied: it ends in front of them.
    pub fn forget_source<B: Bytes>(&mut self, frames: &mut Frames<B>, from: Source) {
        let behind = |(&start, region): (&u64, &Region)| {
            let source = region.kind.source.filter(|source| source.file == from.file)?;
            let first = start.saturating_add(from.offset.saturating_sub(source.offset));
            (first < region.end).then_some(first..region.end)
        };
        let ranges: Vec<_> = self.regions.iter().filter_map(behind).collect();
        for range in ranges {
            self.forget(frames, range);
        }
    }

    /// All objects are left.
    pub(super) fn leave_all_objects<B: Bytes>(&mut self, frames: &mut Frames<B>) {
        for file in core::mem::take(&mut self.objects) {
            frames.leave_object(file);
        }
    }

    /// Gives a page the frame that an object has there, and tries the access again.
    pub(super) fn fault_in_object<B: Bytes>(
        &mut self,
        frames: &mut Frames<B>,
        at: Source,
        address: u64,
        wanted: Rights,
    ) -> core::result::Result<Access, Fault> {
        let frame = frames.object_page(at)?;
        self.supply(frames, address, frame);
        self.fault(frames, address, wanted)
    }

    /// Bytes of frames of an object that are mapped here.
    pub fn mapped_of_object<B: Bytes>(&self, frames: &Frames<B>, number: FileNumber) -> u64 {
        let Some(object) = frames.objects.all.get(&number) else { return 0 };
        let mut count = 0;
        for (start, end, kind) in self.regions() {
            let Some(source) = kind.source.filter(|source| source.file == number) else { continue };
            let first = source.offset / PAGE;
            let mapped = self.pages.among(start / PAGE..end / PAGE);
            count += mapped
                .filter(|(page, frame)| object.pages.get(first + page - start / PAGE) == Some(*frame))
                .count() as u64;
        }
        count * PAGE
    }

    /// Whether some of an object is mapped.
    pub fn has_object(&self, number: FileNumber) -> bool {
        self.objects.contains(&number)
    }

    /// Pieces of an object that are mapped.
    pub fn pieces_of_object(&self, number: FileNumber) -> u64 {
        let is_it = |kind: &Kind| kind.source.is_some_and(|source| source.file == number);
        if self.has_object(number) {
            self.regions().filter(|(_, _, kind)| is_it(kind)).count() as u64
        } else {
            0
        }
    }

    /// Pieces that show an object which is meant so that it begins at an address: of the object that comes first, as far as they are where they were mapped.
    pub fn shown_from(
        &self,
        at: u64,
        is_meant: impl Fn(FileNumber) -> bool,
    ) -> Option<(FileNumber, Vec<Range<u64>>)> {
        let shown = |(&start, region): (&u64, &Region)| {
            let source = region.kind.source.filter(|source| source.offset == start - at)?;
            Some((source.file, start..region.end))
        };
        let mut shown = self.regions.range(at..).filter_map(shown);
        let (object, first) = shown.find(|(file, _)| is_meant(*file))?;
        let more = shown.filter(|(file, _)| *file == object).map(|(_, piece)| piece);
        Some((object, core::iter::once(first).chain(more).collect()))
    }

    /// Whether some of an object is mapped so that what is written there is the object's.
    pub fn may_write_object(&self, number: FileNumber) -> bool {
        let is_it = |kind: &Kind| kind.source.is_some_and(|source| source.file == number);
        let may_write = |kind: &Kind| kind.is_shared && !kind.is_read_only;
        self.objects.contains(&number) && self.regions().any(|(_, _, kind)| is_it(&kind) && may_write(&kind))
    }
}
