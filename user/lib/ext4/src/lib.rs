//! ext4 as a [`FileSystem`], on the library `rsext4`, which has the journal, the trees and the checksums.
//!
//! Here are the seams: a [`Disk`] under it, a clock, errors and cursors of ours. What the library does with a damaged disk, it does in the task of
//! the server that runs it, and a panic ends that task alone.
//!
//! The surprise: a cursor of a directory with an index is a hash of 64 bits, and names whose hashes are equal are read together. More of them than
//! fit into one answer are refused, since no cursor tells them apart; it takes somebody who makes such names.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod counts;
mod disk;
mod geometry;
mod journal;
mod log;
mod padding;
mod raw;
mod readdir;
mod xattrs;

pub use disk::Disk;

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use disk::Sectors;
use rsext4::{
    Clock, DirectoryEntryType, Ext4, Ext4Error, Ext4ErrorKind, Ext4Result, Ext4Timestamp, FileExtent,
    FileExtentState, FileExtentTarget, FileName, FilePermissions, InodeFlags, InodeInfo, InodeMetadataUpdate,
    InodeNumber, MkfsOptions, MountOptions, MountServices, MountedServices, MutationContext, NoopObserver,
    RenameOptions,
};
use vfs::{
    Attributes, Before, Changes, Entry, Error, FileSystem, Inode, Kind, Name, New, Result, Space,
    XATTR_BYTES_MAX,
};

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Bytes of a sector, in which the library counts blocks of a file.
const SECTOR: u64 = 512;

/// Blocks of a file, at most: the number of the last one behind a file has 32 bits.
const BLOCKS_MAX: u64 = u32::MAX as u64;

/// Blocks that one write needs besides those of its bytes, at most: two of which it has a part, and a tree of extents that grows.
const BLOCKS_BESIDES: u64 = 16;

/// Longest file that is forgotten as it is, in bytes, if it has no more than these. It has blocks of few groups, however small these are.
const SIMPLE_MAX: u64 = 8 << 20;

/// Pieces of a file that is cut off before it is forgotten, at most: nodes of the tree of so many fit into one transaction of any disk that has as many blocks. A file in more pieces is
/// forgotten as it is.
const EXTENTS_MAX: usize = 64 << 10;

/// How often an operation is tried that is no transaction: each time there is more room in the journal, or less that it needs.
const TRIES: usize = 16;

/// Files belong to user 0 until somebody else gets them; permissions are as they are asked for.
const CONTEXT: MutationContext = MutationContext::new(0, 0, 0, 0);

/// Tells nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Time(fn() -> u64);

impl Clock for Time {
    fn now(&self) -> Ext4Result<Ext4Timestamp> {
        Ok(timestamp((self.0)()))
    }
}

/// A time as the disk has it. One that is too late for that is the last there is.
fn timestamp(time: u64) -> Ext4Timestamp {
    let seconds = time / SECOND;
    if seconds > u32::MAX.into() {
        return Ext4Timestamp::new(u32::MAX.into(), 0);
    }
    Ext4Timestamp::new(seconds as i64, (time % SECOND) as u32)
}

/// A file system of the library's.
type Library<D> = Ext4<Sectors<D>, MountedServices<(), NoopObserver, ()>>;

/// Has the library mount what is on a disk.
fn mount<D: Disk>(disk: D, clock: fn() -> u64) -> Result<Library<D>> {
    let services = MountServices::new(Time(clock), (), NoopObserver);
    let mounted = if disk.is_read_only() {
        let options = MountOptions { readonly: true, replay_journal: true, block_validity: true };
        Ext4::mount(Sectors::mounted(disk), services, options)
    } else {
        Ext4::mount_with_readonly_fallback(Sectors::mounted(disk), services)
    };
    mounted.map_err(error)
}

/// A mounted ext4 file system.
pub struct Mounted<D: Disk> {
    fs: Library<D>,
    /// Blocks were freed since the last commit. See [`Mounted::settle`].
    has_freed: bool,
}

impl<D: Disk> fmt::Debug for Mounted<D> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Mounted").finish_non_exhaustive()
    }
}

/// Makes an empty file system on a disk. What was there is lost.
pub fn format<D: Disk>(disk: D, clock: fn() -> u64) -> Result<()> {
    rsext4::format(Sectors::empty(disk), Time(clock), MkfsOptions::default()).map(drop).map_err(error)
}

impl<D: Disk> Mounted<D> {
    /// Mounts what is on a disk, and first brings to an end what its journal has begun. A disk that can only be read, or whose file system
    /// has recorded errors, is mounted to be read. What the journal of one that can only be read has begun comes to its end in memory; if that is too
    /// much, it is refused as [`Error::ReadOnly`]. Of a long journal a part is used from now on.
    pub fn new(mut disk: D, clock: fn() -> u64) -> Result<Mounted<D>> {
        // Whatever goes wrong in here is found by who mounts the disk next.
        if !disk.is_read_only() && journal::shorten(&mut disk) == Ok(journal::Found::InUse) {
            if let Ok(mut fs) = mount(&mut disk, clock) {
                let _ = fs.unmount();
            }
            let _ = journal::shorten(&mut disk);
        }
        Ok(Mounted { fs: mount(disk, clock)?, has_freed: false })
    }

    /// Writes all that is still to be written, and marks the file system as whole.
    pub fn unmount(mut self) -> Result<()> {
        self.tried(Library::unmount)
    }

    /// An operation that the library does without a transaction of its own: the change of a time or of permissions, and whatever writes all that is left.
    ///
    /// The library makes room in the journal when a transaction begins. Without one it finds in the middle of a block that there is no room, and says that it is busy (rsext4 0.9.2); it would
    /// say so until somebody begins a transaction. So one is begun here that changes nothing.
    fn tried<T>(&mut self, run: impl Fn(&mut Library<D>) -> Ext4Result<T>) -> Result<T> {
        for _ in 1..TRIES {
            match run(&mut self.fs) {
                Err(error) if error.kind() == Ext4ErrorKind::Busy => self.make_room()?,
                done => return done.map_err(error),
            }
        }
        run(&mut self.fs).map_err(error)
    }

    /// Begins a transaction, and so makes room in the journal. It ends as it began: a directory gets no second name.
    fn make_room(&mut self) -> Result<()> {
        let (root, name) = (self.fs.root_inode(), FileName::new(b"root").map_err(error)?);
        match self.fs.hard_link(root, root, name) {
            Err(error) if error.kind() == Ext4ErrorKind::PermissionDenied => Ok(()),
            done => done.map(drop).map_err(error),
        }
    }

    fn info(&mut self, inode: Inode) -> Result<InodeInfo> {
        self.fs.inode(number(inode)?).map_err(error)
    }

    /// Commits what has freed blocks, before contents are written that may get them.
    ///
    /// Contents go to their place on the disk before the transaction that they belong to. Were it a block that the disk still says is another file's, that file would
    /// have these bytes after a loss of power. The library gives freed blocks to the next one who asks (rsext4 0.9.2).
    fn settle(&mut self) -> Result<()> {
        if self.has_freed {
            self.tried(Library::sync)?;
            self.has_freed = false;
        }
        Ok(())
    }

    /// Cuts off a file that has no name any more, if the library would not forget it well as it is.
    ///
    /// To forget a file, the library makes a list of all blocks that were written to, and frees them in one transaction, which has room for some 80 groups of blocks (rsext4 0.9.2). So
    /// blocks that were set aside and not written to stay taken for ever; a file of gibibytes costs more memory than there is, again when the disk is mounted the next
    /// time; and one that has blocks of more groups stays. To cut a file off has none of that. Files without a tree of extents are cut off by the library itself.
    fn cut_off(&mut self, file: InodeNumber) -> Result<()> {
        let info = self.fs.inode(file).map_err(error)?;
        let is_usual = info.flags.contains(InodeFlags::EXTENTS) && kind(info.file_type()) == Kind::File;
        if !is_usual || info.blocks == 0 {
            return Ok(());
        }
        let map = self.fs.inode_extents(file, 0, u64::MAX, FileExtentTarget::Data, EXTENTS_MAX);
        let map = map.map_err(error)?;
        let is_written = |extent: &&FileExtent| extent.state == FileExtentState::Initialized;
        let written = map.extents.iter().filter(is_written);
        let written = written.fold(0u64, |sum, extent| sum.saturating_add(extent.length));
        // Its bytes are all that it has: no blocks that were set aside, and no more pieces than its inode tells.
        let taken = info.blocks.saturating_mul(SECTOR);
        if written == taken && taken <= SIMPLE_MAX || !map.complete {
            return Ok(());
        }
        if info.size == 0 {
            // The library does not look behind the end of a file that ends already where it shall.
            self.fs.truncate_inode(file, 1).map_err(error)?;
        }
        self.fs.truncate_inode(file, 0).map_err(error)
    }

    /// Refuses an end of a file that no file can have.
    fn check_end(&self, end: Option<u64>) -> Result<()> {
        let end_max = BLOCKS_MAX.saturating_mul(self.fs.statfs().block_size);
        if end.is_some_and(|end| end <= end_max) { Ok(()) } else { Err(Error::TooLarge) }
    }

    /// Writes one block after the other, as far as there is room. Gives back how many bytes that were.
    fn write_blocks(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        let block_size = self.fs.statfs().block_size;
        let mut done = 0;
        while done < from.len() {
            let at = offset + done as u64;
            let len = (block_size - at % block_size).min((from.len() - done) as u64) as usize;
            match self.fs.write_inode(number(inode)?, at, &from[done..done + len]).map_err(error) {
                Ok(()) => done += len,
                Err(Error::NoSpace) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn find(&mut self, directory: Inode, name: Name) -> Result<InodeInfo> {
        let name = file_name(name)?;
        self.fs.lookup_child(number(directory)?, name).map_err(error)?.ok_or(Error::NotFound)
    }
}

fn number(inode: Inode) -> Result<InodeNumber> {
    InodeNumber::from_u64(inode.0).map_err(|_| Error::NotFound)
}

fn inode(number: InodeNumber) -> Inode {
    Inode(number.as_u64())
}

fn file_name(name: Name<'_>) -> Result<FileName<'_>> {
    FileName::new(name.bytes()).map_err(error)
}

fn kind(file_type: DirectoryEntryType) -> Kind {
    match file_type {
        DirectoryEntryType::RegularFile => Kind::File,
        DirectoryEntryType::Directory => Kind::Directory,
        DirectoryEntryType::Symlink => Kind::Symlink,
        _ => Kind::Special,
    }
}

fn error(error: Ext4Error) -> Error {
    match error.kind() {
        Ext4ErrorKind::Io | Ext4ErrorKind::Timeout | Ext4ErrorKind::JournalAborted => Error::Io,
        Ext4ErrorKind::Corrupted
        | Ext4ErrorKind::ChecksumMismatch
        | Ext4ErrorKind::BadSuperblock
        | Ext4ErrorKind::InvalidMagic => Error::Damaged,
        Ext4ErrorKind::ReadOnly => Error::ReadOnly,
        Ext4ErrorKind::NoSpace | Ext4ErrorKind::NoMemory | Ext4ErrorKind::QuotaExceeded => Error::NoSpace,
        Ext4ErrorKind::TooManyLinks => Error::TooManyLinks,
        Ext4ErrorKind::NotFound | Ext4ErrorKind::BadFileDescriptor => Error::NotFound,
        Ext4ErrorKind::AlreadyExists => Error::Exists,
        Ext4ErrorKind::NotDirectory => Error::NotDirectory,
        Ext4ErrorKind::IsDirectory => Error::IsDirectory,
        Ext4ErrorKind::NotEmpty => Error::NotEmpty,
        Ext4ErrorKind::Busy => Error::Busy,
        Ext4ErrorKind::InvalidInput | Ext4ErrorKind::PermissionDenied => Error::Invalid,
        Ext4ErrorKind::Overflow | Ext4ErrorKind::FileTooLarge => Error::TooLarge,
        _ => Error::Unsupported,
    }
}

impl<D: Disk> FileSystem for Mounted<D> {
    fn root(&self) -> Inode {
        inode(self.fs.root_inode())
    }

    fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        let info = self.info(inode)?;
        Ok(Attributes {
            inode,
            kind: kind(info.file_type()),
            permissions: info.mode & 0o7777,
            links: info.links.into(),
            owner: info.uid,
            group: info.gid,
            len: info.size,
            allocated: info.blocks.saturating_mul(SECTOR),
            accessed: u64::from(info.atime) * SECOND,
            modified: u64::from(info.mtime) * SECOND,
            changed: u64::from(info.ctime) * SECOND,
        })
    }

    fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()> {
        let permissions = changes.permissions.map(|bits| FilePermissions::new(bits & 0o7777));
        let update = InodeMetadataUpdate {
            permissions: permissions.transpose().map_err(error)?,
            owner: changes.owner,
            atime: changes.times.map(|(accessed, _)| timestamp(accessed)),
            mtime: changes.times.map(|(_, modified)| timestamp(modified)),
            device_number: None,
            project_id: None,
            flags: None,
        };
        let number = number(inode)?;
        self.tried(|fs| fs.update_inode_metadata(number, update)).map(drop)
    }

    fn xattr(&mut self, inode: Inode, name: &[u8]) -> Result<Vec<u8>> {
        let (kind, name) = xattrs::split(name)?;
        self.fs.get_xattr(number(inode)?, kind, name).map_err(error)
    }

    fn xattrs(&mut self, inode: Inode) -> Result<Vec<u8>> {
        self.fs.list_xattrs(number(inode)?).map(|names| xattrs::joined(&names)).map_err(error)
    }

    fn set_xattr(&mut self, inode: Inode, name: &[u8], value: &[u8], before: Before) -> Result<()> {
        let (kind, name) = xattrs::split(name)?;
        if value.len() > XATTR_BYTES_MAX {
            return Err(Error::NoSpace);
        }
        self.settle()?;
        self.fs.set_xattr(number(inode)?, kind, name, value, xattrs::mode(before)).map_err(error)
    }

    fn remove_xattr(&mut self, inode: Inode, name: &[u8]) -> Result<()> {
        let (kind, name) = xattrs::split(name)?;
        // The block that they had may be free then.
        self.has_freed = true;
        self.fs.remove_xattr(number(inode)?, kind, name).map_err(error)
    }

    fn lookup(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        self.find(directory, name).map(|info| inode(info.number))
    }

    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>> {
        readdir::read(&mut self.fs, number(directory)?, cursor, count_max)
    }

    fn create(&mut self, directory: Inode, name: Name, new: New, permissions: u16) -> Result<Inode> {
        let (parent, name) = (number(directory)?, file_name(name)?);
        if let New::Symlink(target) = new
            && target.len() as u64 >= self.fs.statfs().block_size
        {
            // With the zero behind it it has to fit into one block.
            return Err(Error::NameTooLong);
        }
        let permissions = FilePermissions::new(permissions & 0o7777).map_err(error)?;
        self.settle()?;
        let made = match new {
            New::File => self.fs.create_regular_file(CONTEXT, parent, name, permissions),
            New::Directory => self.fs.create_directory(CONTEXT, parent, name, permissions),
            New::Symlink(target) => self.fs.create_symlink(CONTEXT, parent, name, target),
        };
        made.map(|info| inode(info.number)).map_err(error)
    }

    fn link(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()> {
        self.fs.hard_link(number(inode)?, number(directory)?, file_name(name)?).map(drop).map_err(error)
    }

    fn unlink(&mut self, directory: Inode, name: Name) -> Result<()> {
        self.fs.unlink(number(directory)?, file_name(name)?).map(drop).map_err(error)
    }

    fn rmdir(&mut self, directory: Inode, name: Name) -> Result<()> {
        self.fs.remove_empty_directory(number(directory)?, file_name(name)?).map(drop).map_err(error)
    }

    fn rename(&mut self, from: Inode, name: Name, to: Inode, new_name: Name) -> Result<()> {
        let (from, to) = (number(from)?, number(to)?);
        let options = RenameOptions::REPLACE;
        self.fs.rename(from, file_name(name)?, to, file_name(new_name)?, options).map(drop).map_err(error)
    }

    fn forget(&mut self, inode: Inode) -> Result<()> {
        self.has_freed = true;
        let number = number(inode)?;
        // If that fails, it may go as it is.
        let _ = self.cut_off(number);
        self.fs.reap_unlinked_inode(number).map_err(error)
    }

    fn readlink(&mut self, inode: Inode) -> Result<Vec<u8>> {
        let info = self.info(inode)?;
        if kind(info.file_type()) != Kind::Symlink {
            return Err(Error::Invalid);
        }
        // A block is the longest that ext4 has.
        let mut target = vec![0; info.size.min(4096) as usize];
        let len = self.fs.read_inode(info.number, 0, &mut target).map_err(error)?;
        target.truncate(len);
        Ok(target)
    }

    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        match self.fs.read_inode(number(inode)?, offset, to) {
            // It would note the time in the journal.
            Err(error) if error.kind() == Ext4ErrorKind::Busy => self.make_room()?,
            done => return done.map_err(error),
        }
        self.fs.read_inode(number(inode)?, offset, to).map_err(error)
    }

    fn write(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        self.check_end(offset.checked_add(from.len() as u64))?;
        self.settle()?;
        let space = self.fs.statfs();
        if space.free_blocks < from.len() as u64 / space.block_size + BLOCKS_BESIDES {
            // The library loses blocks if it finds in the middle of them that there are too few.
            return self.write_blocks(inode, offset, from);
        }
        self.fs.write_inode(number(inode)?, offset, from).map_err(error)?;
        Ok(from.len())
    }

    fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        self.check_end(Some(len))?;
        self.has_freed |= len < self.len(inode)?;
        self.fs.truncate_inode(number(inode)?, len).map_err(error)
    }

    fn sync(&mut self, _: Inode) -> Result<()> {
        self.tried(Library::sync)?;
        self.has_freed = false;
        Ok(())
    }

    fn is_read_only(&self) -> bool {
        self.fs.options().readonly
    }

    fn knows_all_changes(&self) -> bool {
        true
    }

    fn space(&mut self) -> Result<Space> {
        let found = self.fs.statfs();
        Ok(Space {
            total: found.total_blocks.saturating_mul(found.block_size),
            free: found.free_blocks.saturating_mul(found.block_size),
            files: found.total_inodes.into(),
            files_free: found.free_inodes.into(),
        })
    }
}
