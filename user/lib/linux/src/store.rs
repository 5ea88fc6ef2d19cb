//! Things that processes share: frames, files, and the pages of files that are in frames.

mod bytes;
mod pages;

use crate::errno::{EFAULT, ENAMETOOLONG, Result};
use crate::frames::{Bytes, Frame, Frames, PAGE};
use crate::memory::{Access, Fault, Memory, Rights, Source};
use crate::namespace::{Namespace, View};
use crate::special::Special;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::ops::Range;
use pages::Page;
use vfs::{FileSystem, Inode, Volume};

/// Longest path, with the zero behind it.
pub const PATH_MAX: usize = 4096;

/// Bytes that names in watched directories may cost, of all of them together. They take some four times as much, and no process is charged for them.
const NAMES_MAX: usize = 256 << 10;

/// Bytes of a text that are looked at together.
const TEXT_PIECE: usize = 128;

/// The time by which files are changed: nanoseconds since 1970.
pub struct Clock(pub Box<dyn Fn() -> u64>);

impl Clock {
    fn now(&self) -> u64 {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.now().fmt(f)
    }
}

/// A file of which pages are in frames, as it was when they were read.
#[derive(Clone, Copy, Debug)]
struct Known {
    len: u64,
    modified: u64,
    changed: u64,
    /// The number of [changes of others](FileSystem::others) then.
    others: Option<u64>,
    /// Whether a file that is still so has the same bytes. Not after a write of this program's, since others may have written before it was asked for these, nor
    /// if another change may have the same time.
    is_sure: bool,
}

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
    /// The clock of those who change files. As long as it says 0, no time of a file is believed.
    pub clock: Clock,
    /// Pages of files by inode and number. The cache uses each frame once.
    cache: BTreeMap<Page, Frame>,
    /// Files of which pages are mapped or cached. Each is open once for that.
    mapped: BTreeMap<u64, Known>,
    /// Pages of [`Self::cache`] that processes may write to where they are mapped, with a sum of the bytes that agree with the file.
    written: BTreeMap<Page, u64>,
    /// Pages of the cache that calls have written to, and that the file does not have yet.
    late: BTreeMap<Page, Range<usize>>,
    /// Files that end here now. Whoever has more of them mapped does not know yet.
    pub(crate) cut: Vec<Source>,
    /// Files without names that are open, some of them perhaps for their pages alone.
    removed: BTreeSet<u64>,
    /// Files that have had a mark when they were looked at last.
    pub(crate) nodes: BTreeSet<u64>,
    /// Number of files in [`Self::mapped`] above which those are closed that nobody uses any more.
    mapped_many: usize,
    /// Number of pages in [`Self::cache`] from which on those go that only the cache uses.
    cached_many: usize,
}

impl<B: Bytes, F: FileSystem> Store<B, F> {
    /// Nothing used and nothing open.
    pub fn new(bytes: B, files: F) -> Store<B, F> {
        let view = Rc::new(RefCell::new(View::default()));
        let mut volume = Volume::new(Namespace::new(files, view.clone()));
        volume.limit_names(NAMES_MAX);
        let root = volume.root();
        Store {
            frames: Frames::new(bytes),
            volume,
            root,
            view,
            clock: Clock(Box::new(|| 0)),
            cache: BTreeMap::new(),
            mapped: BTreeMap::new(),
            written: BTreeMap::new(),
            late: BTreeMap::new(),
            cut: Vec::new(),
            removed: BTreeSet::new(),
            nodes: BTreeSet::new(),
            mapped_many: pages::UNMAPPED_MAX,
            cached_many: pages::CACHED_MAX,
        }
    }

    /// The frame of a page that a process accesses, and what it may do there.
    #[inline]
    pub fn page(
        &mut self,
        memory: &mut Memory,
        address: u64,
        wanted: Rights,
    ) -> core::result::Result<(Frame, Rights), Fault> {
        match memory.recent_page(address, wanted) {
            Some(found) => Ok(found),
            None => self.search_page(memory, address, wanted),
        }
    }

    #[inline(never)]
    fn search_page(
        &mut self,
        memory: &mut Memory,
        address: u64,
        wanted: Rights,
    ) -> core::result::Result<(Frame, Rights), Fault> {
        loop {
            match memory.fault(&mut self.frames, address, wanted) {
                Ok(Access::Mapped(frame, rights)) => return Ok((frame, rights)),
                Ok(Access::Wants(source, is_written)) => {
                    let frame = self.mapped_page(source)?;
                    if is_written {
                        self.note_written((source.file.0, source.offset / PAGE), frame);
                    }
                    memory.supply(&mut self.frames, address, frame);
                }
                Err(Fault::NoMemory) if self.shrink() => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Does as [`Store::page`], for a page that is mapped then.
    pub fn map_page(
        &mut self,
        memory: &mut Memory,
        address: u64,
        wanted: Rights,
    ) -> core::result::Result<(Frame, Rights), Fault> {
        let (frame, rights) = self.page(memory, address, wanted)?;
        self.frames.note_mapped(frame, rights);
        Ok((frame, rights))
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
            let end = piece.iter().position(|byte| *byte == 0);
            text.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
            if text.len() >= len_max {
                return Err(ENAMETOOLONG);
            }
            if end.is_some() {
                return Ok(text);
            }
        }
    }

    /// Whether something is of the file system, and not of `/dev` or `/proc`.
    pub fn is_own(inode: Inode) -> bool {
        Special::of(inode).is_none()
    }

    /// Words of memory of a process.
    pub fn words<const N: usize>(&mut self, memory: &mut Memory, address: u64) -> Result<[u64; N]> {
        let mut bytes = [[0; 8]; N];
        self.read(memory, address, bytes.as_flattened_mut())?;
        Ok(bytes.map(u64::from_le_bytes))
    }
}
