//! Pages of files that are in frames: those that are mapped, those that small reads and writes go by, and bytes that a file gets later.
//!
//! Others write to the same files. So a file is compared with how it was when its pages were read, before they are used and before this program itself
//! writes to the file: by the number of [changes of others](FileSystem::others) where there is one, and by its length and times otherwise. A time that is
//! hardly over says nothing, since the next change may have the same. If the file is another one, pages that nobody has mapped go, and the others are
//! read again where they are.
//!
//! Bytes that calls have written and that the file does not have yet are *late*, and stay. A page that processes may write to where it is mapped is
//! noted with a sum of the bytes that agree with the file: only if it has another sum did somebody write there.

use super::{Known, Store};
use crate::errno::{EIO, ENOMEM, ENOSPC, Result};
use crate::frames::{Bytes, Frame, PAGE};
use crate::memory::{Fault, FileNumber, Source};
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use vfs::{Attributes, FileSystem, Inode};

/// Number of a file, and of a page in it.
pub(super) type Page = (u64, u64);

/// All bytes of a page.
pub(super) const WHOLE: Range<usize> = 0..PAGE as usize;

/// Pages of files in frames above which those go that nobody has mapped.
pub(super) const CACHED_MAX: usize = 8192;

/// Pages that come, at least, before it is looked again which can go: the others may all be mapped.
const CACHED_MORE: usize = CACHED_MAX / 4;

/// Files of which nothing is mapped, and that stay open all the same for their pages in the cache, at most; or as many as are mapped, if those are more.
pub(super) const UNMAPPED_MAX: usize = 64;

/// Nanoseconds in which a file's time may be that of a later change, too: file systems with times in seconds, and clocks that differ by one.
const RECENT_NS: u64 = 3_000_000_000;

/// Pages that processes may write to where they are mapped, of those that a file gets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mapped {
    None,
    /// Those that nobody has mapped any more.
    NoLonger,
    All,
}

impl Known {
    fn new(found: &Attributes, others: Option<u64>, is_sure: bool) -> Known {
        let Attributes { len, modified, changed, .. } = *found;
        Known { len, modified, changed, others, is_sure }
    }

    fn is(&self, found: &Attributes) -> bool {
        (self.len, self.modified, self.changed) == (found.len, found.modified, found.changed)
    }
}

impl<B: Bytes, F: FileSystem> Store<B, F> {
    /// Keeps a file for pages of it that are mapped.
    pub fn map_file(&mut self, inode: Inode) -> Result<FileNumber> {
        self.keep(inode)?;
        Ok(FileNumber(inode.0))
    }

    /// Keeps a file open for its pages, which are those of now. Its length.
    pub(super) fn keep(&mut self, inode: Inode) -> Result<u64> {
        if let Some(len) = self.look(inode)? {
            return Ok(len);
        }
        let others = self.volume.others();
        let found = self.volume.attributes(inode)?;
        self.volume.opened(inode)?;
        let known = Known::new(&found, others, !self.is_recent(&found));
        self.mapped.insert(inode.0, known);
        Ok(found.len)
    }

    /// Reads pages of a file again if others have changed it. Its length; `None` if there are no pages of it.
    pub(super) fn look(&mut self, inode: Inode) -> Result<Option<u64>> {
        let Some(known) = self.mapped.get(&inode.0).copied() else { return Ok(None) };
        let others = self.volume.others();
        if others.is_some() && others == known.others {
            return Ok(Some(known.len));
        }
        self.compare(inode, known, others).map(Some)
    }

    /// Compares a file that others may have changed with how it was. Its length.
    #[cold]
    fn compare(&mut self, inode: Inode, known: Known, others: Option<u64>) -> Result<u64> {
        let mut found = self.volume.attributes(inode)?;
        let mut is_sure = known.is_sure && known.is(&found);
        if !is_sure {
            let has_written = self.renew(inode, known.len, found.len)?;
            if has_written {
                found = self.volume.attributes(inode)?;
            }
            is_sure = !has_written && !self.is_recent(&found);
        }
        self.mapped.insert(inode.0, Known::new(&found, others, is_sure));
        Ok(found.len)
    }

    /// Whether a file may change once more without getting another time.
    fn is_recent(&self, found: &Attributes) -> bool {
        let last = found.changed.max(found.modified);
        last.saturating_add(RECENT_NS) >= self.clock.now()
    }

    /// This program itself has written to a file, or changed its length, after a [look](Store::look) at it. Others may have done so since, too.
    pub(super) fn noticed(&mut self, inode: Inode) {
        let found = self.volume.attributes(inode);
        if let Some(known) = self.mapped.get_mut(&inode.0) {
            *known = match found {
                Ok(found) => Known::new(&found, known.others, false),
                Err(_) => Known { others: None, is_sure: false, ..*known },
            };
        }
    }

    /// Others have changed a file that was so long before and is so long now. Pages that processes have written to are the file's first, as far as it went
    /// when they were read. Whether some were.
    fn renew(&mut self, inode: Inode, before: u64, len: u64) -> Result<bool> {
        let mut has_written = false;
        if len < before {
            self.cut_off(inode, len);
        }
        for page in self.pages_of(inode, 0) {
            if self.is_touched(page) {
                let there = before.saturating_sub(page.1 * PAGE).min(PAGE) as usize;
                // One that cannot be written stays as it is: whoever syncs hears why.
                if self.write_back(page, 0..there).is_err() {
                    continue;
                }
                has_written = true;
                self.agree(page);
            }
            let is_shared = self.cache.get(&page).is_some_and(|frame| self.frames.is_shared(*frame));
            match self.late.get(&page).cloned() {
                None if !is_shared => self.forget_page(page),
                late => self.read_again(page, late.unwrap_or(0..0))?,
            }
        }
        Ok(has_written)
    }

    /// Reads a page again where it is, but for a part of it.
    fn read_again(&mut self, page: Page, except: Range<usize>) -> Result<()> {
        let Some(frame) = self.cache.get(&page).copied() else { return Ok(()) };
        let mut bytes = vec![0; PAGE as usize];
        self.read_file(Inode(page.0), page.1 * PAGE, &mut bytes)?;
        for part in [0..except.start, except.end..PAGE as usize] {
            if let Some(new) = bytes.get(part.clone()) {
                self.frames.bytes.write(frame, part.start, new);
            }
        }
        self.agree(page);
        Ok(())
    }

    /// A file ends here now: pages behind it go, for whoever has them mapped by [`Store::cut`], and the rest of the last one is zeros.
    pub(super) fn cut_off(&mut self, inode: Inode, len: u64) {
        let first = len.div_ceil(PAGE);
        for page in self.pages_of(inode, first) {
            self.forget_page(page);
        }
        self.clear_behind(inode, len);
        self.cut.push(Source { file: FileNumber(inode.0), offset: first * PAGE });
    }

    /// Files that end before places which may be mapped, since this was asked last: whoever has them there is to [lose them](crate::memory::Memory::forget_source).
    pub fn take_cut(&mut self) -> Vec<Source> {
        core::mem::take(&mut self.cut)
    }

    /// Bytes behind the end of a file, in its last page, are zeros, whatever somebody has put there.
    pub(super) fn clear_behind(&mut self, inode: Inode, end: u64) {
        let (page, at) = ((inode.0, end / PAGE), (end % PAGE) as usize);
        if at == 0 {
            return;
        }
        self.change_page(page, |bytes, frame| bytes.write(frame, at, &vec![0; PAGE as usize - at]));
        if let Some(late) = self.late.get_mut(&page) {
            late.end = late.end.min(at);
            if late.start >= late.end {
                self.late.remove(&page);
            }
        }
    }

    /// Changes bytes of a page, if it is there, as the file has them or gets them later: that is no writing of processes.
    pub(super) fn change_page(&mut self, page: Page, change: impl FnOnce(&mut B, Frame)) {
        let Some(frame) = self.cache.get(&page).copied() else { return };
        let is_touched = self.is_touched(page);
        change(&mut self.frames.bytes, frame);
        if !is_touched {
            self.agree(page);
        }
    }

    /// Whether a process has written to a page where it is mapped.
    pub(super) fn is_touched(&self, page: Page) -> bool {
        !self.written.is_empty()
            && self
                .written
                .get(&page)
                .is_some_and(|sum| self.cache.get(&page).is_some_and(|frame| self.sum(*frame) != *sum))
    }

    /// The bytes of a page are the file's, or will be.
    pub(super) fn agree(&mut self, page: Page) {
        if !self.written.contains_key(&page) {
            return;
        }
        if let Some(sum) = self.cache.get(&page).map(|frame| self.sum(*frame)) {
            self.written.insert(page, sum);
        }
    }

    /// A sum of the bytes of a frame.
    fn sum(&self, frame: Frame) -> u64 {
        let mut bytes = vec![0; PAGE as usize];
        self.frames.bytes.read(frame, 0, &mut bytes);
        bytes.as_chunks::<8>().0.iter().fold(0, |sum: u64, word| {
            (sum.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }

    /// Processes may write to a page from now on.
    pub(super) fn note_written(&mut self, page: Page, frame: Frame) {
        if !self.written.contains_key(&page) {
            self.written.insert(page, self.sum(frame));
        }
    }

    /// Pages of a file that are here, from a number on.
    fn pages_of(&self, inode: Inode, first: u64) -> Vec<Page> {
        self.cache.range((inode.0, first)..=(inode.0, u64::MAX)).map(|(page, _)| *page).collect()
    }

    /// A page is not here any more, with what the file does not have of it.
    fn forget_page(&mut self, page: Page) {
        self.late.remove(&page);
        self.written.remove(&page);
        if let Some(frame) = self.cache.remove(&page) {
            self.frames.release(frame);
        }
    }

    /// Whether so many files are open for their pages that it is to be looked which are still mapped: then [`Store::keep_mapped`] is called.
    pub fn has_many_mapped(&self) -> bool {
        self.mapped.len() > self.mapped_many
    }

    /// Closes files whose pages nobody uses any more: all but these. Their cached pages go, unless there is no room for what the file does not have of them.
    pub fn keep_mapped(&mut self, used: &BTreeSet<FileNumber>) {
        let all: Vec<u64> = self.mapped.keys().copied().collect();
        for file in all.into_iter().filter(|file| !used.contains(&FileNumber(*file))) {
            if self.write_back_all(Inode(file)) != Err(ENOSPC) {
                self.let_go(Inode(file));
            }
        }
        self.mapped_many = UNMAPPED_MAX.max(2 * self.mapped.len());
    }

    /// Closes a file with all of its pages.
    fn let_go(&mut self, inode: Inode) {
        for page in self.pages_of(inode, 0) {
            self.forget_page(page);
        }
        if self.mapped.remove(&inode.0).is_some() {
            let _ = self.volume.close(inode);
        }
    }

    /// A file may have lost its last name.
    pub fn lost_name(&mut self, inode: Inode) {
        let has_none = |found: Attributes| found.links == 0;
        if self.volume.times_open(inode) > 0 && self.volume.attributes(inode).is_ok_and(has_none) {
            self.removed.insert(inode.0);
        }
    }

    /// Whether a file has lost its last name while it was open.
    pub fn has_lost_name(&self, inode: Inode) -> bool {
        self.removed.contains(&inode.0)
    }

    /// Whether there are files without names that are open once, and so perhaps for their pages alone: then [`Store::let_removed_go`] is called.
    pub fn has_removed(&mut self) -> bool {
        let volume = &self.volume;
        self.removed.retain(|file| volume.times_open(Inode(*file)) > 0);
        let is_open_once = |file: &u64| volume.times_open(Inode(*file)) == 1;
        self.removed.iter().any(|file| self.mapped.contains_key(file) && is_open_once(file))
    }

    /// Closes files without names that are open for their pages alone, and of which nothing is mapped. What was not written yet is nobody's.
    pub fn let_removed_go(&mut self, used: &BTreeSet<FileNumber>) {
        for file in self.removed.iter().copied().collect::<Vec<u64>>() {
            let is_unused = self.mapped.contains_key(&file) && !used.contains(&FileNumber(file));
            if is_unused && self.volume.times_open(Inode(file)) == 1 {
                self.let_nameless_go(Inode(file));
            }
            if self.volume.times_open(Inode(file)) == 0 {
                self.removed.remove(&file);
            }
        }
    }

    /// Closes a file with all of its pages, unless it is another one that has the same number now.
    fn let_nameless_go(&mut self, inode: Inode) {
        if self.volume.attributes(inode).is_ok_and(|found| found.links > 0) {
            self.removed.remove(&inode.0);
        } else {
            self.let_go(inode);
        }
    }

    /// Writes a part of a page back to its file, as far as the file goes.
    fn write_back(&mut self, page: Page, part: Range<usize>) -> Result<()> {
        let Some(frame) = self.cache.get(&page).copied() else { return Ok(()) };
        let (inode, at) = (Inode(page.0), page.1 * PAGE + part.start as u64);
        let there = self.volume.len(inode)?.saturating_sub(at);
        let len = there.min(part.len() as u64) as usize;
        let mut bytes = vec![0; len];
        self.frames.bytes.read(frame, part.start, &mut bytes);
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            match self.volume.write(inode, at + done as u64, rest)? {
                0 => return Err(EIO),
                count => done += count,
            }
        }
        Ok(())
    }

    /// Gives a file what calls and processes have written to its pages.
    pub fn write_back_all(&mut self, inode: Inode) -> Result<()> {
        self.bring(inode, Mapped::All)
    }

    /// Gives a file what calls have written to it. What cannot be written stays late: the next call that asks for it hears why.
    pub fn write_late(&mut self, inode: Inode) -> Result<()> {
        if self.is_late(inode) { self.bring(inode, Mapped::None) } else { Ok(()) }
    }

    fn bring(&mut self, inode: Inode, mapped: Mapped) -> Result<()> {
        let of = (inode.0, 0)..=(inode.0, u64::MAX);
        let has_written = mapped != Mapped::None && self.written.range(of.clone()).next().is_some();
        if !has_written && !self.is_late(inode) {
            return Ok(());
        }
        self.look(inode)?;
        let late: Vec<Page> = self.late.range(of.clone()).map(|(page, _)| *page).collect();
        let written =
            if has_written { self.written.range(of).map(|(page, _)| *page).collect() } else { Vec::new() };
        let mut has_changed = !late.is_empty();
        let mut outcome = Ok(());
        for page in late {
            outcome = self.bring_late(page);
            if outcome.is_err() {
                break;
            }
        }
        for page in written {
            let is_shared = self.cache.get(&page).is_some_and(|frame| self.frames.is_shared(*frame));
            if is_shared && mapped == Mapped::NoLonger {
                continue;
            }
            let is_touched = self.is_touched(page);
            let brought = if is_touched { self.write_back(page, WHOLE) } else { Ok(()) };
            has_changed |= is_touched;
            match brought {
                Ok(()) if is_shared => self.agree(page),
                Ok(()) => drop(self.written.remove(&page)),
                Err(_) => {}
            }
            outcome = outcome.and(brought);
        }
        if has_changed {
            self.noticed(inode);
        }
        outcome
    }

    pub(super) fn bring_late(&mut self, page: Page) -> Result<()> {
        if let Some(part) = self.late.get(&page).cloned() {
            self.write_back(page, part)?;
            self.late.remove(&page);
        }
        Ok(())
    }

    /// Whether a file is open for more than its pages.
    pub fn has_users(&self, inode: Inode) -> bool {
        self.volume.times_open(inode) > usize::from(self.mapped.contains_key(&inode.0))
    }

    /// Whether processes may have written to pages of a file where it is mapped.
    pub fn may_be_touched(&self, inode: Inode) -> bool {
        self.written.range((inode.0, 0)..=(inode.0, u64::MAX)).next().is_some()
    }

    /// Files of which somebody may have written to pages.
    pub fn written_files(&self) -> Vec<Inode> {
        let files: BTreeSet<u64> =
            self.written.keys().chain(self.late.keys()).map(|(inode, _)| *inode).collect();
        files.into_iter().map(Inode).collect()
    }

    /// Whether a file does not have all yet that calls have written to it.
    pub fn is_late(&self, inode: Inode) -> bool {
        !self.late.is_empty() && self.late.range((inode.0, 0)..=(inode.0, u64::MAX)).next().is_some()
    }

    /// Files that do not have all yet that calls have written to them.
    pub fn late_files(&self) -> Vec<Inode> {
        let files: BTreeSet<u64> = self.late.keys().map(|(inode, _)| *inode).collect();
        files.into_iter().map(Inode).collect()
    }

    /// Gives frames back that only the cache uses. Whether there were some.
    pub(super) fn shrink(&mut self) -> bool {
        let before = self.cache.len();
        let pages: Vec<Page> = self
            .cache
            .iter()
            .filter(|(_, frame)| !self.frames.is_shared(**frame))
            .map(|(page, _)| *page)
            .collect();
        let is_kept =
            |store: &Self, page: &Page| store.late.contains_key(page) || store.written.contains_key(page);
        let files: BTreeSet<u64> =
            pages.iter().filter(|page| is_kept(self, page)).map(|(file, _)| *file).collect();
        for file in files {
            // Bytes that cannot be written stay, until somebody hears why.
            let _ = self.bring(Inode(file), Mapped::NoLonger);
        }
        for page in pages {
            if !is_kept(self, &page) {
                self.forget_page(page);
            }
        }
        self.cache.len() < before
    }

    /// The frame of a file's page, for an access to memory.
    pub(super) fn mapped_page(&mut self, source: Source) -> core::result::Result<Frame, Fault> {
        match self.cached(source) {
            Ok(Some(frame)) => Ok(frame),
            Err(ENOMEM) => Err(Fault::NoMemory),
            Ok(None) | Err(_) => Err(Fault::BehindEnd),
        }
    }

    /// The frame of a file's page; `None` behind its end. `ENOMEM`: there are no frames.
    pub(super) fn cached(&mut self, source: Source) -> Result<Option<Frame>> {
        let (file, number) = (source.file.0, source.offset / PAGE);
        if let Some(frame) = self.cache.get(&(file, number)) {
            return Ok(Some(*frame));
        }
        let len = self.volume.len(Inode(file))?;
        if source.offset >= len {
            return Ok(None);
        }
        if self.cache.len() >= self.cached_many {
            self.shrink();
            self.cached_many = CACHED_MAX.max(self.cache.len() + CACHED_MORE);
        }
        let frame = match self.frames.zeroed() {
            Ok(frame) => frame,
            Err(_) if self.shrink() => self.frames.zeroed()?,
            Err(error) => return Err(error),
        };
        let mut bytes = vec![0; len.saturating_sub(number * PAGE).min(PAGE) as usize];
        if let Err(error) = self.read_file(Inode(file), number * PAGE, &mut bytes) {
            self.frames.release(frame);
            return Err(error);
        }
        self.frames.bytes.write(frame, 0, &bytes);
        self.cache.insert((file, number), frame);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests;
