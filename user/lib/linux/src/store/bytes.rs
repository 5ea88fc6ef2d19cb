//! Bytes of files: small pieces by way of [pages](super::pages) that are in frames, which the file gets later, and large ones past them.

use super::Store;
use super::pages::{Page, WHOLE};
use crate::errno::{EFAULT, EFBIG, ENOMEM, Result};
use crate::frames::{Bytes, Frame, PAGE};
use crate::memory::{FileNumber, Memory, Rights, Source};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use vfs::{Attributes, FileSystem, Inode};

impl<B: Bytes, F: FileSystem> Store<B, F> {
    /// Bytes of a file from an offset on, as many as there are.
    pub(super) fn read_file(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = to.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.volume.read(inode, offset + done as u64, rest)? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }

    /// Reads a file; bytes that the file gets later, and pages that others have mapped and may write to, as they are there.
    pub fn read_at(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        self.look(inode)?;
        let count = self.read_file(inode, offset, to)?;
        if !self.written.is_empty() || !self.late.is_empty() {
            for page in self.pages_in(inode, offset, count) {
                let late = self.late.get(&page).cloned();
                let part = if self.written.contains_key(&page) { Some(WHOLE) } else { late };
                let frame = self.cache.get(&page).copied();
                let (Some(frame), Some((at, range))) =
                    (frame, part.and_then(|part| within(page, part, offset, count)))
                else {
                    continue;
                };
                if let Some(to) = to.get_mut(range) {
                    self.frames.bytes.read(frame, at, to);
                }
            }
        }
        Ok(count)
    }

    /// Writes a file, and the pages of it that are here.
    pub fn write_at(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        if offset.checked_add(from.len() as u64).is_none_or(|end| end > i64::MAX as u64) {
            return Err(EFBIG);
        }
        let before = self.look(inode)?;
        let count = self.volume.write(inode, offset, from)?;
        let Some(before) = before else { return Ok(count) };
        if offset + count as u64 > before {
            self.clear_behind(inode, before);
        }
        for page in self.pages_in(inode, offset, count) {
            if let Some((at, range)) = within(page, WHOLE, offset, count)
                && let Some(from) = from.get(range)
            {
                self.change_page(page, |bytes, frame| bytes.write(frame, at, from));
            }
        }
        self.noticed(inode);
        Ok(count)
    }

    /// Pages that are here of a range of a file.
    fn pages_in(&self, inode: Inode, offset: u64, len: usize) -> Vec<Page> {
        let of = (inode.0, offset / PAGE)..(inode.0, (offset + len as u64).div_ceil(PAGE));
        if of.is_empty() { Vec::new() } else { self.cache.range(of).map(|(page, _)| *page).collect() }
    }

    /// Reads a file into memory of a process by way of the cache: one copy, and none of what others did not change since. Bytes that were read.
    pub fn read_cached(
        &mut self,
        memory: &mut Memory,
        inode: Inode,
        offset: u64,
        (address, len): (u64, u64),
    ) -> Result<u64> {
        let end = self.keep(inode)?;
        let len = len.min(end.saturating_sub(offset));
        let mut done = 0;
        while done < len {
            let source = Source { file: FileNumber(inode.0), offset: offset + done };
            let to = address.checked_add(done).ok_or(EFAULT);
            match to.and_then(|to| self.read_piece(memory, source, to, len - done)) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Reads what lies in one page of the file and in one of the process. Bytes that were read: none behind the end.
    #[inline]
    fn read_piece(&mut self, memory: &mut Memory, source: Source, address: u64, len: u64) -> Result<u64> {
        // The page of the process comes first: what is cached may go to make room for it.
        let to = self.page_of_process(memory, address, Rights::WRITE)?;
        let count = len.min(PAGE - address % PAGE).min(PAGE - source.offset % PAGE);
        let (from_at, to_at) = ((source.offset % PAGE) as usize, (address % PAGE) as usize);
        match self.cached(source) {
            Ok(Some(from)) => {
                self.frames.bytes.copy_part((from, from_at), (to, to_at), count as usize);
                Ok(count)
            }
            Ok(None) => Ok(0),
            // Past the cache, if there is no room in it.
            Err(ENOMEM) => {
                let mut bytes = vec![0; count as usize];
                let count = self.read_file(Inode(source.file.0), source.offset, &mut bytes)?;
                self.frames.bytes.write(to, to_at, bytes.get(..count).unwrap_or_default());
                Ok(count as u64)
            }
            Err(error) => Err(error),
        }
    }

    fn page_of_process(&mut self, memory: &mut Memory, address: u64, wanted: Rights) -> Result<Frame> {
        match self.page(memory, address, wanted) {
            Ok((frame, _)) => Ok(frame),
            Err(_) => Err(EFAULT),
        }
    }

    /// Overwrites bytes that a file has with memory of a process, in the cache: the file gets them [later](Store::write_late). `None` if these bytes lie
    /// beyond its end.
    pub fn write_cached(
        &mut self,
        memory: &mut Memory,
        inode: Inode,
        offset: u64,
        (address, len): (u64, u64),
    ) -> Result<Option<u64>> {
        // A file that only becomes longer is not kept open for its pages.
        let known = self.look(inode)?;
        let end = known.map_or_else(|| self.volume.len(inode), Ok)?;
        if offset.checked_add(len).is_none_or(|behind| behind > end) {
            return Ok(None);
        }
        if known.is_none() {
            self.keep(inode)?;
        }
        let mut done = 0;
        while done < len {
            let target = Source { file: FileNumber(inode.0), offset: offset + done };
            let from = address.checked_add(done).ok_or(EFAULT);
            match from.and_then(|from| self.write_piece(memory, target, from, len - done)) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        // Others may have cut it off since: then it becomes longer.
        Ok((done > 0 || len == 0).then_some(done))
    }

    /// Writes what lies in one page of the file and in one of the process. Bytes that were written: none behind the end.
    #[inline]
    fn write_piece(&mut self, memory: &mut Memory, target: Source, address: u64, len: u64) -> Result<u64> {
        let from = self.page_of_process(memory, address, Rights::READ)?;
        let count = len.min(PAGE - address % PAGE).min(PAGE - target.offset % PAGE);
        let (from_at, to_at) = ((address % PAGE) as usize, (target.offset % PAGE) as usize);
        match self.cached(target) {
            Ok(Some(to)) => {
                let page = (target.file.0, target.offset / PAGE);
                let part = self.join_late(page, to_at..to_at + count as usize)?;
                let is_touched = self.is_touched(page);
                self.frames.bytes.copy_part((from, from_at), (to, to_at), count as usize);
                self.late.insert(page, part);
                if !is_touched && !self.written.is_empty() {
                    self.agree(page);
                }
                Ok(count)
            }
            Ok(None) => Ok(0),
            Err(ENOMEM) => {
                let mut bytes = vec![0; count as usize];
                self.frames.bytes.read(from, from_at, &mut bytes);
                self.write_at(Inode(target.file.0), target.offset, &bytes).map(|count| count as u64)
            }
            Err(error) => Err(error),
        }
    }

    /// The late part of a page, when one more is written to. Others may write to the bytes around them meanwhile, so no other ones are written then: a part
    /// that does not touch the one before sends that first.
    fn join_late(&mut self, page: Page, part: Range<usize>) -> Result<Range<usize>> {
        let Some(before) = self.late.get(&page).cloned() else { return Ok(part) };
        if before.end < part.start || part.end < before.start {
            self.bring_late(page)?;
            self.noticed(Inode(page.0));
            return Ok(part);
        }
        Ok(before.start.min(part.start)..before.end.max(part.end))
    }

    /// Cuts a file off, or makes it longer by zeros.
    pub fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        let before = self.look(inode)?;
        self.volume.truncate(inode, len)?;
        match before {
            None => return Ok(()),
            Some(before) if len < before => self.cut_off(inode, len),
            Some(before) => self.clear_behind(inode, before),
        }
        self.noticed(inode);
        Ok(())
    }

    /// Attributes of a file that is open.
    pub fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        // The time at which it was changed is that of its last write. One that cannot be made is told by a sync.
        let _ = self.write_late(inode);
        Ok(self.volume.attributes(inode)?)
    }
}

/// Bytes of a part of a page that lie in a range of its file: where they are in the page, and in the range.
fn within(page: Page, part: Range<usize>, offset: u64, len: usize) -> Option<(usize, Range<usize>)> {
    let start = page.1 * PAGE;
    let from = offset.max(start + part.start as u64);
    let to = (offset + len as u64).min(start + part.end as u64);
    (from < to).then(|| ((from - start) as usize, (from - offset) as usize..(to - offset) as usize))
}
