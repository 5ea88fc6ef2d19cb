//! Things that processes share: frames, files, and the pages of files that are in frames.

use crate::errno::{EFAULT, EINVAL, EIO, ENAMETOOLONG, Errno, Result};
use crate::frames::{Bytes, Frame, Frames, PAGE};
use crate::memory::{Access, Fault, FileNumber, Memory, Rights, Source};
use crate::namespace::{Namespace, View};
use crate::special::Special;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ops::Range;
use vfs::{Attributes, FileSystem, Inode, Volume};

/// Longest path, with the zero behind it.
pub const PATH_MAX: usize = 4096;

/// All bytes of a page.
const WHOLE: Range<usize> = 0..PAGE as usize;

/// Bytes of a text that are looked at together.
const TEXT_PIECE: usize = 128;

/// Pages of files that stay in frames though nobody has them mapped.
const CACHED_MAX: usize = 8192;

/// Frames, files, and pages of files.
#[derive(Debug)]
pub struct Store<B, F> {
    /// All frames.
    pub frames: Frames<B>,
    /// All files.
    pub volume: Volume<Namespace<F>>,
    /// The root directory.
    pub root: Inode,
    /// Names in `/proc` that depend on processes.
    pub view: Rc<RefCell<View>>,
    /// Pages of files by inode and number. The cache uses each frame once.
    cache: BTreeMap<(u64, u64), Frame>,
    /// Files of which pages are mapped or cached. Each is open once for that; with length and time of change when its pages were read.
    mapped: BTreeMap<u64, (u64, u64)>,
    /// Pages of [`Self::cache`] that somebody may write to.
    written: BTreeSet<(u64, u64)>,
    /// Pages of the cache that calls have written to, and that the file does not have yet.
    late: BTreeMap<(u64, u64), Range<usize>>,
    /// Files that have had a mark when they were looked at last.
    pub(crate) nodes: BTreeSet<u64>,
    /// Number of files in [`Self::mapped`] above which those are closed that nobody uses any more.
    mapped_many: usize,
}

/// Files of which nothing is mapped, and that stay open all the same for their pages in the cache, at most; or as many as are mapped, if those are more.
const UNMAPPED_MAX: usize = 64;

impl<B: Bytes, F: FileSystem> Store<B, F> {
    /// Nothing used and nothing open.
    pub fn new(bytes: B, files: F) -> Store<B, F> {
        let view = Rc::new(RefCell::new(View::default()));
        let mut volume = Volume::new(Namespace::new(files, view.clone()));
        let root = volume.root();
        let (cache, mapped) = (BTreeMap::new(), BTreeMap::new());
        let (written, late) = (BTreeSet::new(), BTreeMap::new());
        let mapped_many = UNMAPPED_MAX;
        let (frames, nodes) = (Frames::new(bytes), BTreeSet::new());
        Store { frames, volume, root, view, cache, mapped, written, late, nodes, mapped_many }
    }

    /// The frame of a page that a process accesses, and what it may do there.
    pub fn page(
        &mut self,
        memory: &mut Memory,
        address: u64,
        wanted: Rights,
    ) -> core::result::Result<(Frame, Rights), Fault> {
        loop {
            match memory.fault(&mut self.frames, address, wanted) {
                Ok(Access::Mapped(frame, rights)) => return Ok((frame, rights)),
                Ok(Access::Wants(source, is_written)) => {
                    let frame = self.cached(source)?;
                    if is_written {
                        self.written.insert((source.file.0, source.offset / PAGE));
                    }
                    memory.supply(&mut self.frames, address, frame);
                }
                Err(Fault::NoMemory) if self.shrink() => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Reads memory of a process.
    pub fn read(&mut self, memory: &mut Memory, address: u64, to: &mut [u8]) -> Result<()> {
        if self.read_some(memory, address, to) < to.len() { Err(EFAULT) } else { Ok(()) }
    }

    /// Writes memory of a process.
    pub fn write(&mut self, memory: &mut Memory, address: u64, from: &[u8]) -> Result<()> {
        if self.write_some(memory, address, from) < from.len() { Err(EFAULT) } else { Ok(()) }
    }

    /// Reads memory of a process up to where it has none. How many bytes those were.
    pub fn read_some(&mut self, memory: &mut Memory, address: u64, to: &mut [u8]) -> usize {
        let mut done = 0;
        while done < to.len() {
            let Some((frame, offset)) = self.place(memory, address, done, Rights::READ) else { break };
            let len = (to.len() - done).min(PAGE as usize - offset);
            self.frames.bytes.read(frame, offset, &mut to[done..done + len]);
            done += len;
        }
        done
    }

    /// Writes memory of a process up to where it has none. How many bytes those were.
    pub fn write_some(&mut self, memory: &mut Memory, address: u64, from: &[u8]) -> usize {
        let mut done = 0;
        while done < from.len() {
            let Some((frame, offset)) = self.place(memory, address, done, Rights::WRITE) else { break };
            let len = (from.len() - done).min(PAGE as usize - offset);
            self.frames.bytes.write(frame, offset, &from[done..done + len]);
            done += len;
        }
        done
    }

    /// Bytes from an address on that can be written, of so many.
    pub fn writable(&mut self, memory: &mut Memory, address: u64, len: u64) -> u64 {
        let mut done = 0;
        while done < len {
            let Some((_, offset)) = self.place(memory, address, done as usize, Rights::WRITE) else { break };
            done += (len - done).min(PAGE - offset as u64);
        }
        done
    }

    /// Frame of a byte, and where in it, if it can be accessed.
    fn place(
        &mut self,
        memory: &mut Memory,
        address: u64,
        by: usize,
        wanted: Rights,
    ) -> Option<(Frame, usize)> {
        let at = address.checked_add(by as u64)?;
        let (frame, _) = self.page(memory, at, wanted).ok()?;
        Some((frame, (at % PAGE) as usize))
    }

    /// Bytes in front of a zero, at most so many.
    pub fn text(&mut self, memory: &mut Memory, address: u64, len_max: usize) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            let at = address.checked_add(text.len() as u64).ok_or(EFAULT)?;
            let (frame, _) = self.page(memory, at, Rights::READ).map_err(|_| EFAULT)?;
            let offset = (at % PAGE) as usize;
            let mut piece = [0; TEXT_PIECE];
            let piece = &mut piece[..(PAGE as usize - offset).min(TEXT_PIECE)];
            self.frames.bytes.read(frame, offset, piece);
            match piece.iter().position(|byte| *byte == 0) {
                Some(end) => text.extend_from_slice(&piece[..end]),
                None => text.extend_from_slice(piece),
            }
            if text.len() >= len_max {
                return Err(ENAMETOOLONG);
            }
            if piece.contains(&0) {
                return Ok(text);
            }
        }
    }

    /// Keeps a file for pages of it that are mapped.
    pub fn map_file(&mut self, inode: Inode) -> Result<FileNumber> {
        if self.is_late(inode) {
            return Ok(FileNumber(inode.0));
        }
        let found = self.volume.attributes(inode)?;
        let now = (found.len, found.modified);
        match self.mapped.get(&inode.0) {
            None => {
                self.volume.opened(inode)?;
                self.mapped.insert(inode.0, now);
            }
            Some(before) if *before != now => {
                self.mapped.insert(inode.0, now);
                self.forget_unmapped(inode);
            }
            Some(_) => {}
        }
        Ok(FileNumber(inode.0))
    }

    /// Whether so many files are open for their pages that it is to be looked which are still mapped: then [`Store::keep_mapped`] is called.
    pub fn has_many_mapped(&self) -> bool {
        self.mapped.len() > self.mapped_many
    }

    /// Closes files whose pages nobody uses any more: all but these. Their cached pages go.
    pub fn keep_mapped(&mut self, used: &BTreeSet<FileNumber>) {
        let all: Vec<u64> = self.mapped.keys().copied().collect();
        for file in all.into_iter().filter(|file| !used.contains(&FileNumber(*file))) {
            let of = (file, 0)..=(file, u64::MAX);
            let pages: Vec<(u64, u64)> = self.cache.range(of).map(|(page, _)| *page).collect();
            for page in pages {
                self.drop_page(page);
            }
            self.mapped.remove(&file);
            let _ = self.volume.close(Inode(file));
        }
        self.mapped_many = UNMAPPED_MAX.max(2 * self.mapped.len());
    }

    /// Pages of a file are read anew that nobody has mapped.
    fn forget_unmapped(&mut self, inode: Inode) {
        let of = (inode.0, 0)..=(inode.0, u64::MAX);
        let pages: Vec<(u64, u64)> = self.cache.range(of).map(|(page, _)| *page).collect();
        for page in pages {
            if !self.cache.get(&page).is_some_and(|frame| self.frames.is_shared(*frame)) {
                self.drop_page(page);
            }
        }
    }

    fn drop_page(&mut self, page: (u64, u64)) {
        let late = self.late.remove(&page);
        let part = if self.written.remove(&page) { Some(WHOLE) } else { late };
        if let Some(part) = part {
            let _ = self.write_back(page, part);
        }
        if let Some(frame) = self.cache.remove(&page) {
            self.frames.release(frame);
        }
    }

    /// Writes a part of a page back to its file, as far as the file goes.
    fn write_back(&mut self, page: (u64, u64), part: Range<usize>) -> Result<()> {
        let Some(frame) = self.cache.get(&page).copied() else { return Ok(()) };
        let (inode, at) = (Inode(page.0), page.1 * PAGE + part.start as u64);
        let there = self.volume.len(inode)?.saturating_sub(at);
        let len = there.min(part.len() as u64) as usize;
        let mut bytes = vec![0; len];
        self.frames.bytes.read(frame, part.start, &mut bytes);
        let mut done = 0;
        while done < len {
            match self.volume.write(inode, at + done as u64, &bytes[done..])? {
                0 => return Err(EIO),
                count => done += count,
            }
        }
        Ok(())
    }

    /// Writes all pages of a file back that may have been written to where they are mapped.
    pub fn write_back_all(&mut self, inode: Inode) -> Result<()> {
        self.write_late(inode)?;
        let of = (inode.0, 0)..=(inode.0, u64::MAX);
        let pages: Vec<(u64, u64)> = self.written.range(of).copied().collect();
        for page in pages {
            self.write_back(page, WHOLE)?;
            if self.cache.get(&page).is_none_or(|frame| !self.frames.is_shared(*frame)) {
                self.written.remove(&page);
            }
        }
        if let Ok(found) = self.volume.attributes(inode)
            && let Some(known) = self.mapped.get_mut(&inode.0)
        {
            *known = (found.len, found.modified);
        }
        Ok(())
    }

    /// Files of which somebody may have written to pages.
    pub fn written_files(&self) -> Vec<Inode> {
        let files: BTreeSet<u64> =
            self.written.iter().chain(self.late.keys()).map(|(inode, _)| *inode).collect();
        files.into_iter().map(Inode).collect()
    }

    /// Gives frames back that only the cache uses. Whether there were some.
    fn shrink(&mut self) -> bool {
        let free = |frame: &Frame| !self.frames.is_shared(*frame);
        let pages: Vec<(u64, u64)> =
            self.cache.iter().filter(|(_, frame)| free(frame)).map(|(page, _)| *page).collect();
        for page in &pages {
            self.drop_page(*page);
        }
        !pages.is_empty()
    }

    /// The frame of a file's page.
    fn cached(&mut self, source: Source) -> core::result::Result<Frame, Fault> {
        let (file, number) = (source.file.0, source.offset / PAGE);
        if let Some(frame) = self.cache.get(&(file, number)) {
            return Ok(*frame);
        }
        let len = self.volume.len(Inode(file)).map_err(|_| Fault::BehindEnd)?;
        if source.offset >= len {
            return Err(Fault::BehindEnd);
        }
        if self.cache.len() >= CACHED_MAX {
            self.shrink();
        }
        let frame = match self.frames.zeroed() {
            Ok(frame) => frame,
            Err(_) if self.shrink() => self.frames.zeroed().map_err(|_| Fault::NoMemory)?,
            Err(_) => return Err(Fault::NoMemory),
        };
        let mut bytes = vec![0; len.saturating_sub(number * PAGE).min(PAGE) as usize];
        if self.read_file(Inode(file), number * PAGE, &mut bytes).is_err() {
            self.frames.release(frame);
            return Err(Fault::BehindEnd);
        }
        self.frames.bytes.write(frame, 0, &bytes);
        self.cache.insert((file, number), frame);
        Ok(frame)
    }

    /// Bytes of a file from an offset on, as many as there are.
    fn read_file(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < to.len() {
            match self.volume.read(inode, offset + done as u64, &mut to[done..])? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }

    /// Reads a file; pages that others have mapped and may write to as they are there.
    pub fn read_at(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        let count = self.read_file(inode, offset, to)?;
        if !self.written.is_empty() || !self.late.is_empty() {
            self.overlay(inode, offset, count, |bytes, frame, at, range| {
                bytes.read(frame, at, &mut to[range])
            });
        }
        Ok(count)
    }

    /// Writes a file, and the pages of it that are mapped.
    pub fn write_at(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        if offset.checked_add(from.len() as u64).is_none_or(|end| end > i64::MAX as u64) {
            return Err(EINVAL);
        }
        let count = self.volume.write(inode, offset, from)?;
        if self.mapped.contains_key(&inode.0) {
            self.overlay(inode, offset, count, |bytes, frame, at, range| {
                bytes.write(frame, at, &from[range])
            });
            self.noticed(inode);
        }
        Ok(count)
    }

    /// Reads a file into memory of a process by way of the cache: one copy, and none of what others did not change since. Bytes that were read.
    pub fn read_cached(
        &mut self,
        memory: &mut Memory,
        inode: Inode,
        offset: u64,
        (address, len): (u64, u64),
    ) -> Result<u64> {
        let file = self.map_file(inode)?;
        let end = self.mapped.get(&inode.0).map_or(0, |(len, _)| *len);
        let len = len.min(end.saturating_sub(offset));
        let mut done = 0;
        while done < len {
            let source = Source { file, offset: offset + done };
            let moved = address.checked_add(done).and_then(|at| {
                // The page of the process comes first: what is cached may go to make room for it.
                let (to, _) = self.page(memory, at, Rights::WRITE).ok()?;
                let from = self.cached(source).ok()?;
                let count = (len - done).min(PAGE - at % PAGE).min(PAGE - source.offset % PAGE);
                let (from_at, to_at) = ((source.offset % PAGE) as usize, (at % PAGE) as usize);
                self.frames.bytes.copy_part((from, from_at), (to, to_at), count as usize);
                Some(count)
            });
            match moved {
                Some(count) => done += count,
                None if done > 0 => break,
                None => return Err(EFAULT),
            }
        }
        Ok(done)
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
        let end = self.volume.len(inode)?;
        if offset.checked_add(len).is_none_or(|behind| behind > end) {
            return Ok(None);
        }
        let file = self.map_file(inode)?;
        let mut done = 0;
        while done < len {
            let target = Source { file, offset: offset + done };
            let moved = address.checked_add(done).and_then(|at| {
                let (from, _) = self.page(memory, at, Rights::READ).ok()?;
                let to = self.cached(target).ok()?;
                let count = (len - done).min(PAGE - at % PAGE).min(PAGE - target.offset % PAGE);
                let (from_at, to_at) = ((at % PAGE) as usize, (target.offset % PAGE) as usize);
                self.frames.bytes.copy_part((from, from_at), (to, to_at), count as usize);
                Some(count)
            });
            match moved {
                Some(count) => {
                    self.note_late(target, count as usize)?;
                    done += count;
                }
                None if done > 0 => break,
                None => return Err(EFAULT),
            }
        }
        Ok(Some(done))
    }

    /// Notes bytes of a page that the file gets later. Others may write to the bytes around them meanwhile, so no other ones are written then: a part that does
    /// not touch the one before sends that first.
    fn note_late(&mut self, Source { file, offset }: Source, count: usize) -> Result<()> {
        let (page, start) = ((file.0, offset / PAGE), (offset % PAGE) as usize);
        let mut part = start..start + count;
        if let Some(before) = self.late.get(&page).cloned() {
            if before.end < part.start || part.end < before.start {
                self.write_back(page, before)?;
            } else {
                part = before.start.min(part.start)..before.end.max(part.end);
            }
        }
        self.late.insert(page, part);
        Ok(())
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

    /// Gives a file what calls have written to it.
    pub fn write_late(&mut self, inode: Inode) -> Result<()> {
        if !self.is_late(inode) {
            return Ok(());
        }
        let of = (inode.0, 0)..=(inode.0, u64::MAX);
        let pages: Vec<((u64, u64), Range<usize>)> =
            self.late.range(of).map(|(page, part)| (*page, part.clone())).collect();
        for (page, part) in pages {
            // Bytes that cannot be written stay late: the next call that asks for it hears why.
            self.write_back(page, part)?;
            self.late.remove(&page);
        }
        self.noticed(inode);
        Ok(())
    }

    /// Cuts a file off, or makes it longer by zeros.
    pub fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        self.volume.truncate(inode, len)?;
        if self.mapped.contains_key(&inode.0) {
            let behind = len.div_ceil(PAGE);
            let of = (inode.0, behind)..=(inode.0, u64::MAX);
            let pages: Vec<(u64, u64)> = self.cache.range(of).map(|(page, _)| *page).collect();
            for page in pages {
                self.written.remove(&page);
                self.late.remove(&page);
                self.drop_page(page);
            }
            if let Some(frame) = self.cache.get(&(inode.0, len / PAGE)).copied()
                && !len.is_multiple_of(PAGE)
            {
                let zeros = vec![0; (PAGE - len % PAGE) as usize];
                self.frames.bytes.write(frame, (len % PAGE) as usize, &zeros);
            }
            self.noticed(inode);
        }
        Ok(())
    }

    /// Cached pages of a file show it as it is now.
    fn noticed(&mut self, inode: Inode) {
        if let Ok(found) = self.volume.attributes(inode) {
            self.mapped.insert(inode.0, (found.len, found.modified));
        }
    }

    /// Visits those cached pages of a range of a file that there are: frame, place in it, place in the range.
    fn overlay(
        &mut self,
        inode: Inode,
        offset: u64,
        len: usize,
        mut visit: impl FnMut(&mut B, Frame, usize, core::ops::Range<usize>),
    ) {
        let end = offset + len as u64;
        let of = (inode.0, offset / PAGE)..(inode.0, end.div_ceil(PAGE));
        for (&(_, number), &frame) in self.cache.range(of) {
            let from = offset.max(number * PAGE);
            let to = end.min((number + 1) * PAGE);
            let range = (from - offset) as usize..(to - offset) as usize;
            visit(&mut self.frames.bytes, frame, (from % PAGE) as usize, range);
        }
    }

    /// Attributes of a file that is open.
    pub fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        // The time at which it was changed is that of its last write.
        self.write_late(inode)?;
        Ok(self.volume.attributes(inode)?)
    }

    /// Whether something is of the file system, and not of `/dev` or `/proc`.
    pub fn is_own(inode: Inode) -> bool {
        Special::of(inode).is_none()
    }

    /// Words of memory of a process.
    pub fn words<const N: usize>(&mut self, memory: &mut Memory, address: u64) -> Result<[u64; N]> {
        let mut bytes = vec![0; N * 8];
        self.read(memory, address, &mut bytes)?;
        let mut words = [0; N];
        for (word, piece) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(piece.try_into().map_err(|_| Errno::NO_MEMORY)?);
        }
        Ok(words)
    }
}
