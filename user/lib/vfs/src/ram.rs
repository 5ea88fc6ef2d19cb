//! A file system in memory. Files are pages, and holes take none.
//!
//! A limit is said when it is made, and all that it uses is counted: pages, and for each inode and each name a fixed amount and its bytes. So it is full before
//! its server's memory is. A page that somebody holds is counted until he lets go.
//!
//! Bytes that are being sent from a page stay as they are: whoever writes there meanwhile gets the file another page. The one before is not counted, since few are sent at a time.

mod nodes;
mod xattrs;

use crate::page::{PAGE, Page, Paged, parts};
use crate::{
    self as vfs, Attributes, Before, Changes, Error, FileSystem, Inode, Kind, Name, New, Result, Space,
};
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use nodes::Nodes;
use xattrs::Xattrs;

/// Bytes that an inode counts for, beside its pages. A name, too, beside its bytes.
const OVERHEAD: u64 = 256;

/// Longest file. An index of pages is then a number of 32 bits and more to spare.
const FILE_MAX: u64 = 1 << 46;

const ROOT: Inode = Inode(1);

/// A file system in memory.
#[derive(Debug)]
pub struct Ram<P> {
    nodes: Nodes<P>,
    /// Bytes that it may use, and uses.
    limit: u64,
    used: u64,
    /// Pages that are no file's any more, and that somebody held when they were looked at last. They are counted.
    orphans: Vec<P>,
    /// Nanoseconds since 1970.
    clock: fn() -> u64,
}

/// Pages of a file, by their numbers. Those that are not there are zeros.
type Pages<P> = BTreeMap<u64, P>;

#[derive(Debug)]
struct Node<P> {
    attributes: Attributes,
    content: Content<P>,
    xattrs: Xattrs,
}

#[derive(Debug)]
enum Content<P> {
    /// Its pages, and its length once more, for those who ask often.
    File(Pages<P>, Arc<AtomicU64>),
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

impl<P: Page> Ram<P> {
    /// An empty one that uses at most so many bytes. `clock` tells nanoseconds since 1970.
    pub fn new(limit: u64, clock: fn() -> u64) -> Ram<P> {
        let mut ram = Ram { nodes: Nodes::new(), limit, used: 0, orphans: Vec::new(), clock };
        let mut root = ram.node(Content::Directory(Directory::default()), 0o755);
        root.attributes.links = 2;
        // Without memory for it there is no root, and each call says so.
        if ram.nodes.make_room().is_ok() {
            ram.nodes.insert(root);
        }
        ram
    }

    /// An inode without a number.
    fn node(&self, content: Content<P>, permissions: u16) -> Node<P> {
        let now = (self.clock)();
        let (kind, len) = match &content {
            Content::File(..) => (Kind::File, 0),
            Content::Directory(_) => (Kind::Directory, 0),
            Content::Symlink(target) => (Kind::Symlink, target.len() as u64),
        };
        let attributes = Attributes {
            inode: Inode(0),
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
        Node { attributes, content, xattrs: Xattrs::default() }
    }

    fn get(&mut self, inode: Inode) -> Result<&mut Node<P>> {
        self.nodes.get_mut(inode).ok_or(Error::NotFound)
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
        if bytes > self.free() {
            return Err(Error::NoSpace);
        }
        self.used += bytes;
        Ok(())
    }

    /// Bytes that are left, when whatever is not used any more has been given back.
    fn free(&mut self) -> u64 {
        if !self.orphans.is_empty() {
            let before = self.orphans.len();
            self.orphans.retain(Page::is_shared);
            self.give(((before - self.orphans.len()) * PAGE) as u64);
        }
        self.limit - self.used
    }

    /// These pages are no file's any more.
    fn let_go(&mut self, pages: Pages<P>) {
        let before = self.orphans.len();
        let count = pages.len();
        self.orphans.extend(pages.into_values().filter(Page::is_shared));
        let held = self.orphans.len() - before;
        self.give(((count - held) * PAGE) as u64);
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

    /// Changes extended attributes, and counts the bytes that they weigh then.
    fn change_xattrs(&mut self, inode: Inode, change: impl FnOnce(&mut Xattrs) -> Result<()>) -> Result<()> {
        let now = (self.clock)();
        let node = self.get(inode)?;
        let before = node.xattrs.weight();
        change(&mut node.xattrs)?;
        node.attributes.changed = now;
        let after = node.xattrs.weight();
        self.used = self.used - before + after;
        Ok(())
    }

    fn check_empty(&mut self, inode: Inode) -> Result<()> {
        match &self.get(inode)?.content {
            Content::Directory(directory) if !directory.entries.is_empty() => Err(Error::NotEmpty),
            _ => Ok(()),
        }
    }
}

impl<P> Node<P> {
    fn pages(&mut self) -> Result<(&mut Attributes, &mut Pages<P>, &AtomicU64)> {
        match &mut self.content {
            Content::File(pages, len) => Ok((&mut self.attributes, pages, len)),
            Content::Directory(_) => Err(Error::IsDirectory),
            Content::Symlink(_) => Err(Error::Invalid),
        }
    }
}

/// The end of a file is there, or was. Bytes behind it are zeros, whatever somebody has put there who has the page.
fn clear_behind<P: Page>(pages: &mut Pages<P>, end: u64) -> Result<()> {
    let at = (end % PAGE as u64) as usize;
    if at > 0
        && let Some(page) = pages.get_mut(&(end / PAGE as u64))
    {
        to_change(page)?.clear(at);
    }
    Ok(())
}

/// A page of a file that is to be changed, or given out. If bytes of it are being sent, it is another one with the same bytes.
fn to_change<P: Page>(page: &mut P) -> Result<&mut P> {
    if page.is_sent() {
        *page = page.copied().ok_or(Error::NoSpace)?;
    }
    Ok(page)
}

/// The page of that number, which is made if there is none and if `free` bytes are enough for it, and then is taken from these.
fn page_of<'a, P: Page>(pages: &'a mut Pages<P>, number: u64, free: &mut u64) -> Result<&'a mut P> {
    match pages.entry(number) {
        Entry::Occupied(page) => Ok(page.into_mut()),
        Entry::Vacant(place) => {
            let left = free.checked_sub(PAGE as u64).ok_or(Error::NoSpace)?;
            let page = P::zeroed().ok_or(Error::NoSpace)?;
            *free = left;
            Ok(place.insert(page))
        }
    }
}

impl<P: Page> FileSystem for Ram<P> {
    fn root(&self) -> Inode {
        ROOT
    }

    fn knows_all_changes(&self) -> bool {
        true
    }

    fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        let node = self.get(inode)?;
        let allocated = match &node.content {
            Content::File(pages, _) => pages.len() * PAGE,
            _ => 0,
        };
        Ok(Attributes { allocated: allocated as u64, ..node.attributes })
    }

    fn len(&mut self, file: Inode) -> Result<u64> {
        Ok(self.get(file)?.attributes.len)
    }

    fn kind_of(&mut self, inode: Inode) -> Result<Kind> {
        Ok(self.get(inode)?.attributes.kind)
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

    fn xattr(&mut self, inode: Inode, name: &[u8]) -> Result<Vec<u8>> {
        self.get(inode)?.xattrs.get(name)
    }

    fn xattrs(&mut self, inode: Inode) -> Result<Vec<u8>> {
        Ok(self.get(inode)?.xattrs.names())
    }

    fn set_xattr(&mut self, inode: Inode, name: &[u8], value: &[u8], before: Before) -> Result<()> {
        let free = self.free();
        self.change_xattrs(inode, |xattrs| xattrs.set(name, value, before, free))
    }

    fn remove_xattr(&mut self, inode: Inode, name: &[u8]) -> Result<()> {
        self.change_xattrs(inode, |xattrs| xattrs.remove(name))
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
            New::File => (Content::File(BTreeMap::new(), Arc::default()), 0, 1),
            New::Directory => (Content::Directory(Directory::default()), 0, 2),
            New::Symlink(target) => (Content::Symlink(target.to_vec()), target.len() as u64, 1),
        };
        self.nodes.make_room()?;
        self.take(OVERHEAD + own + weight(name))?;
        let mut node = self.node(content, permissions);
        node.attributes.links = links;
        let inode = self.nodes.insert(node);
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
            if more > self.free() {
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
        let node = self.nodes.remove(inode).ok_or(Error::NotFound)?;
        self.give(OVERHEAD + node.xattrs.weight());
        match node.content {
            Content::File(pages, _) => self.let_go(pages),
            Content::Symlink(target) => self.give(target.len() as u64),
            Content::Directory(_) => {}
        }
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
        let (attributes, pages, _) = self.get(inode)?.pages()?;
        let count = attributes.len.saturating_sub(offset).min(to.len() as u64) as usize;
        let mut rest = &mut to[..count];
        for (number, first, len) in parts(offset, count) {
            let (now, later) = rest.split_at_mut(len);
            match pages.get(&number) {
                Some(page) => page.read(first, now),
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
        let (now, mut free) = ((self.clock)(), self.free());
        let (attributes, pages, end) = self.get(inode)?.pages()?;
        if offset > attributes.len {
            clear_behind(pages, attributes.len)?;
        }
        let (before, mut written) = (pages.len(), 0);
        for (number, first, len) in parts(offset, from.len()) {
            let now = &from[written..written + len];
            let Ok(page) = page_of(pages, number, &mut free).and_then(to_change) else { break };
            page.write(first, now);
            written += len;
        }
        if written == 0 && !from.is_empty() {
            return Err(Error::NoSpace);
        }
        attributes.len = attributes.len.max(offset + written as u64);
        end.store(attributes.len, Ordering::Release);
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
        let (attributes, pages, end) = self.get(inode)?.pages()?;
        clear_behind(pages, len.min(attributes.len))?;
        let cut =
            if len < attributes.len { pages.split_off(&len.div_ceil(PAGE as u64)) } else { Pages::new() };
        attributes.len = len;
        end.store(len, Ordering::Release);
        (attributes.modified, attributes.changed) = (now, now);
        self.let_go(cut);
        Ok(())
    }

    fn sync(&mut self, inode: Inode) -> Result<()> {
        self.get(inode).map(drop)
    }

    fn space(&mut self) -> Result<Space> {
        let free = self.free();
        let (files, each) = (self.nodes.count as u64, 2 * OVERHEAD);
        Ok(Space { total: self.limit, free, files: files + free / each, files_free: free / each })
    }
}

impl<P: Page> Paged for Ram<P> {
    type Page = P;

    fn page(&mut self, file: Inode, number: u64, is_writable: bool) -> Result<P> {
        let (now, mut free) = ((self.clock)(), self.free());
        let (attributes, pages, _) = self.get(file)?.pages()?;
        if number >= attributes.len.div_ceil(PAGE as u64) {
            return Err(Error::Invalid);
        }
        let before = pages.len();
        let page = page_of(pages, number, &mut free).and_then(to_change)?.clone();
        if is_writable {
            // When it is written nobody says.
            (attributes.modified, attributes.changed) = (now, now);
        }
        let more = pages.len() - before;
        self.take((more * PAGE) as u64)?;
        Ok(page)
    }

    fn wrote(&mut self, file: Inode) {
        let now = (self.clock)();
        if let Ok(node) = self.get(file) {
            (node.attributes.modified, node.attributes.changed) = (now, now);
        }
    }

    fn pages_max(&self) -> usize {
        (self.limit / PAGE as u64) as usize
    }

    fn send(&mut self, file: Inode, offset: u64, len: usize) -> Result<Option<P::Sent>> {
        let now = (self.clock)();
        let (attributes, pages, _) = self.get(file)?.pages()?;
        let count = attributes.len.saturating_sub(offset).min(len as u64) as usize;
        let first = (offset % PAGE as u64) as usize;
        if count == 0 || count > PAGE - first {
            return Ok(None);
        }
        let sent = pages.get_mut(&(offset / PAGE as u64)).and_then(|page| page.send(first, count));
        if sent.is_some() {
            attributes.accessed = now;
        }
        Ok(sent)
    }

    fn len_word(&mut self, file: Inode) -> Option<Arc<AtomicU64>> {
        match &self.nodes.get(file)?.content {
            Content::File(_, len) => Some(len.clone()),
            _ => None,
        }
    }
}
