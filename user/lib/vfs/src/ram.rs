//! A file system in memory. Files are pages, and holes take none.
//!
//! A limit is said when it is made, and all that it uses is counted: pages, and for each inode and each name a fixed amount and its bytes. So it is full before
//! its server's memory is.

use crate::{self as vfs, Attributes, Changes, Error, FileSystem, Inode, Kind, Name, New, Result, Space};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;

/// Bytes of a page.
const PAGE: usize = 4096;

/// Bytes that an inode counts for, beside its pages. A name, too, beside its bytes.
const OVERHEAD: u64 = 256;

/// Longest file. An index of pages is then a number of 32 bits and more to spare.
const FILE_MAX: u64 = 1 << 46;

const ROOT: Inode = Inode(1);

/// A file system in memory.
#[derive(Debug)]
pub struct Ram {
    nodes: BTreeMap<Inode, Node>,
    next: u64,
    /// Bytes that it may use, and uses.
    limit: u64,
    used: u64,
    /// Nanoseconds since 1970.
    clock: fn() -> u64,
}

/// Pages of a file, by their numbers. Those that are not there are zeros.
type Pages = BTreeMap<u64, Box<[u8]>>;

#[derive(Debug)]
struct Node {
    attributes: Attributes,
    content: Content,
}

#[derive(Debug)]
enum Content {
    File(Pages),
    Directory(Directory),
    Symlink(Vec<u8>),
}

/// Names by their bytes, and in the order in which they came: an entry keeps its place, so a cursor is never wrong.
#[derive(Default, Debug)]
struct Directory {
    places: BTreeMap<Vec<u8>, u64>,
    entries: BTreeMap<u64, (Vec<u8>, Inode)>,
    next: u64,
}

impl Directory {
    fn find(&self, name: Name) -> Option<Inode> {
        let place = self.places.get(name.bytes())?;
        self.entries.get(place).map(|&(_, inode)| inode)
    }

    fn insert(&mut self, name: Name, inode: Inode) {
        // Cursor 0 means the beginning, so no entry has it.
        self.next += 1;
        self.places.insert(name.bytes().to_vec(), self.next);
        self.entries.insert(self.next, (name.bytes().to_vec(), inode));
    }

    fn remove(&mut self, name: Name) -> Option<Inode> {
        let place = self.places.remove(name.bytes())?;
        self.entries.remove(&place).map(|(_, inode)| inode)
    }
}

fn weight(name: Name) -> u64 {
    OVERHEAD + 2 * name.bytes().len() as u64
}

impl Ram {
    /// An empty one that uses at most so many bytes. `clock` tells nanoseconds since 1970.
    pub fn new(limit: u64, clock: fn() -> u64) -> Ram {
        let mut ram = Ram { nodes: BTreeMap::new(), next: ROOT.0, limit, used: 0, clock };
        let root = ram.node(Content::Directory(Directory::default()), 0o755);
        ram.nodes.insert(ROOT, Node { attributes: Attributes { links: 2, ..root.attributes }, ..root });
        ram
    }

    fn node(&mut self, content: Content, permissions: u16) -> Node {
        let now = (self.clock)();
        let inode = Inode(self.next);
        self.next += 1;
        let (kind, len) = match &content {
            Content::File(_) => (Kind::File, 0),
            Content::Directory(_) => (Kind::Directory, 0),
            Content::Symlink(target) => (Kind::Symlink, target.len() as u64),
        };
        let attributes = Attributes {
            inode,
            kind,
            permissions,
            links: 0,
            owner: 0,
            group: 0,
            len,
            allocated: 0,
            accessed: now,
            modified: now,
            changed: now,
        };
        Node { attributes, content }
    }

    fn get(&mut self, inode: Inode) -> Result<&mut Node> {
        self.nodes.get_mut(&inode).ok_or(Error::NotFound)
    }

    fn directory(&mut self, inode: Inode) -> Result<&mut Directory> {
        match &mut self.get(inode)?.content {
            Content::Directory(directory) => Ok(directory),
            _ => Err(Error::NotDirectory),
        }
    }

    fn find(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        self.directory(directory)?.find(name).ok_or(Error::NotFound)
    }

    /// Counts bytes that are to be used.
    fn take(&mut self, bytes: u64) -> Result<()> {
        if bytes > self.limit - self.used {
            return Err(Error::NoSpace);
        }
        self.used += bytes;
        Ok(())
    }

    fn give(&mut self, bytes: u64) {
        self.used -= bytes;
    }

    fn linked(&mut self, inode: Inode, by: i32) -> Result<()> {
        let now = (self.clock)();
        let attributes = &mut self.get(inode)?.attributes;
        attributes.links = attributes.links.saturating_add_signed(by);
        attributes.changed = now;
        Ok(())
    }

    /// A directory has got or lost a name, and directories by so many.
    fn touched(&mut self, directory: Inode, directories: i32) -> Result<()> {
        let now = (self.clock)();
        let attributes = &mut self.get(directory)?.attributes;
        attributes.links = attributes.links.saturating_add_signed(directories);
        (attributes.modified, attributes.changed) = (now, now);
        Ok(())
    }

    /// Takes an entry out.
    fn take_name(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        let inode = self.directory(directory)?.remove(name).ok_or(Error::NotFound)?;
        self.give(weight(name));
        Ok(inode)
    }

    /// A name that its caller has taken out was an inode's: of a directory the last.
    fn lose_name(&mut self, directory: Inode, inode: Inode) -> Result<()> {
        if self.get(inode)?.attributes.kind == Kind::Directory {
            self.get(inode)?.attributes.links = 0;
            self.touched(directory, -1)
        } else {
            self.linked(inode, -1)?;
            self.touched(directory, 0)
        }
    }

    fn check_empty(&mut self, inode: Inode) -> Result<()> {
        match &self.get(inode)?.content {
            Content::Directory(directory) if !directory.entries.is_empty() => Err(Error::NotEmpty),
            _ => Ok(()),
        }
    }
}

impl Node {
    fn pages(&mut self) -> Result<(&mut Attributes, &mut Pages)> {
        match &mut self.content {
            Content::File(pages) => Ok((&mut self.attributes, pages)),
            Content::Directory(_) => Err(Error::IsDirectory),
            Content::Symlink(_) => Err(Error::Invalid),
        }
    }
}

/// A page of zeros, if there is memory for one.
fn page() -> Result<Box<[u8]>> {
    let mut page = Vec::new();
    page.try_reserve_exact(PAGE).map_err(|_| Error::NoSpace)?;
    page.resize(PAGE, 0);
    Ok(page.into_boxed_slice())
}

/// The parts of a range that lie in one page each: number of the page, and where in it.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = offset;
    let end = offset + len as u64;
    core::iter::from_fn(move || {
        let (number, first) = (at / PAGE as u64, (at % PAGE as u64) as usize);
        let count = (end - at).min((PAGE - first) as u64);
        at += count;
        (count > 0).then_some((number, first, count as usize))
    })
}

impl FileSystem for Ram {
    fn root(&self) -> Inode {
        ROOT
    }

    fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        let node = self.get(inode)?;
        let allocated = match &node.content {
            Content::File(pages) => pages.len() * PAGE,
            _ => 0,
        };
        Ok(Attributes { allocated: allocated as u64, ..node.attributes })
    }

    fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()> {
        let now = (self.clock)();
        let attributes = &mut self.get(inode)?.attributes;
        if let Some(permissions) = changes.permissions {
            attributes.permissions = permissions & 0o7777;
        }
        if let Some((owner, group)) = changes.owner {
            (attributes.owner, attributes.group) = (owner, group);
        }
        if let Some((accessed, modified)) = changes.times {
            (attributes.accessed, attributes.modified) = (accessed, modified);
        }
        attributes.changed = now;
        Ok(())
    }

    fn lookup(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        self.find(directory, name)
    }

    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<vfs::Entry>> {
        let found: Vec<_> = self
            .directory(directory)?
            .entries
            .range(cursor..)
            .take(count_max)
            .map(|(&place, (name, inode))| (place, name.clone(), *inode))
            .collect();
        found
            .into_iter()
            .map(|(place, name, inode)| {
                let kind = self.get(inode)?.attributes.kind;
                Ok(vfs::Entry { name, inode, kind, next: place + 1 })
            })
            .collect()
    }

    fn create(&mut self, directory: Inode, name: Name, new: New, permissions: u16) -> Result<Inode> {
        if self.directory(directory)?.find(name).is_some() {
            return Err(Error::Exists);
        }
        let (content, own, links) = match new {
            New::File => (Content::File(BTreeMap::new()), 0, 1),
            New::Directory => (Content::Directory(Directory::default()), 0, 2),
            New::Symlink(target) => (Content::Symlink(target.to_vec()), target.len() as u64, 1),
        };
        self.take(OVERHEAD + own + weight(name))?;
        let mut node = self.node(content, permissions);
        node.attributes.links = links;
        let inode = node.attributes.inode;
        self.nodes.insert(inode, node);
        self.directory(directory)?.insert(name, inode);
        self.touched(directory, i32::from(new == New::Directory))?;
        Ok(inode)
    }

    fn link(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()> {
        if self.get(inode)?.attributes.kind == Kind::Directory {
            return Err(Error::IsDirectory);
        }
        if self.directory(directory)?.find(name).is_some() {
            return Err(Error::Exists);
        }
        self.take(weight(name))?;
        self.directory(directory)?.insert(name, inode);
        self.touched(directory, 0)?;
        self.linked(inode, 1)
    }

    fn unlink(&mut self, directory: Inode, name: Name) -> Result<()> {
        let inode = self.find(directory, name)?;
        if self.get(inode)?.attributes.kind == Kind::Directory {
            return Err(Error::IsDirectory);
        }
        self.take_name(directory, name)?;
        self.lose_name(directory, inode)
    }

    fn rmdir(&mut self, directory: Inode, name: Name) -> Result<()> {
        let inode = self.find(directory, name)?;
        self.directory(inode)?;
        self.check_empty(inode)?;
        self.take_name(directory, name)?;
        self.lose_name(directory, inode)
    }

    fn rename(&mut self, from: Inode, name: Name, to: Inode, new_name: Name) -> Result<()> {
        let inode = self.find(from, name)?;
        let is_directory = self.get(inode)?.attributes.kind == Kind::Directory;
        let replaced = self.directory(to)?.find(new_name);
        if let Some(replaced) = replaced {
            self.check_empty(replaced)?;
        } else {
            // The other name is given back first, but a longer one may not fit.
            let more = weight(new_name).saturating_sub(weight(name));
            if more > self.limit - self.used {
                return Err(Error::NoSpace);
            }
        }
        if let Some(replaced) = replaced {
            self.take_name(to, new_name)?;
            self.lose_name(to, replaced)?;
        }
        self.take_name(from, name)?;
        self.take(weight(new_name))?;
        self.directory(to)?.insert(new_name, inode);
        let moves = i32::from(is_directory && from != to);
        self.touched(from, -moves)?;
        self.touched(to, moves)?;
        self.linked(inode, 0)
    }

    fn forget(&mut self, inode: Inode) -> Result<()> {
        if self.get(inode)?.attributes.links > 0 {
            return Err(Error::Busy);
        }
        let own = match self.nodes.remove(&inode).map(|node| node.content) {
            Some(Content::File(pages)) => pages.len() * PAGE,
            Some(Content::Symlink(target)) => target.len(),
            _ => 0,
        };
        self.give(OVERHEAD + own as u64);
        Ok(())
    }

    fn readlink(&mut self, inode: Inode) -> Result<Vec<u8>> {
        match &self.get(inode)?.content {
            Content::Symlink(target) => Ok(target.clone()),
            _ => Err(Error::Invalid),
        }
    }

    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        let now = (self.clock)();
        let (attributes, pages) = self.get(inode)?.pages()?;
        let count = attributes.len.saturating_sub(offset).min(to.len() as u64) as usize;
        let mut rest = &mut to[..count];
        for (number, first, len) in parts(offset, count) {
            let (now, later) = rest.split_at_mut(len);
            match pages.get(&number) {
                Some(page) => now.copy_from_slice(&page[first..first + len]),
                None => now.fill(0),
            }
            rest = later;
        }
        attributes.accessed = now;
        Ok(count)
    }

    fn write(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        if offset.checked_add(from.len() as u64).is_none_or(|end| end > FILE_MAX) {
            return Err(Error::TooLarge);
        }
        let (now, mut free) = ((self.clock)(), self.limit - self.used);
        let (attributes, pages) = self.get(inode)?.pages()?;
        let (before, mut written) = (pages.len(), 0);
        for (number, first, len) in parts(offset, from.len()) {
            let page = match pages.entry(number) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(place) => {
                    let Some(left) = free.checked_sub(PAGE as u64) else { break };
                    let Ok(page) = page() else { break };
                    free = left;
                    place.insert(page)
                }
            };
            page[first..first + len].copy_from_slice(&from[written..written + len]);
            written += len;
        }
        if written == 0 && !from.is_empty() {
            return Err(Error::NoSpace);
        }
        attributes.len = attributes.len.max(offset + written as u64);
        (attributes.modified, attributes.changed) = (now, now);
        let more = pages.len() - before;
        self.take((more * PAGE) as u64)?;
        Ok(written)
    }

    fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        if len > FILE_MAX {
            return Err(Error::TooLarge);
        }
        let now = (self.clock)();
        let (attributes, pages) = self.get(inode)?.pages()?;
        let before = pages.len();
        if len < attributes.len {
            pages.split_off(&len.div_ceil(PAGE as u64));
            // Bytes behind the end are zeros, for when it moves again.
            if let Some(page) = pages.get_mut(&(len / PAGE as u64)) {
                page[(len % PAGE as u64) as usize..].fill(0);
            }
        }
        attributes.len = len;
        (attributes.modified, attributes.changed) = (now, now);
        let fewer = before - pages.len();
        self.give((fewer * PAGE) as u64);
        Ok(())
    }

    fn sync(&mut self, inode: Inode) -> Result<()> {
        self.get(inode).map(drop)
    }

    fn space(&mut self) -> Result<Space> {
        let free = self.limit - self.used;
        let (files, each) = (self.nodes.len() as u64, 2 * OVERHEAD);
        Ok(Space { total: self.limit, free, files: files + free / each, files_free: free / each })
    }
}
