//! The file system.
//!
//! A file's length in its first block is that up to which all blocks are known to survive: where a file becomes longer, the first block says so when it is synced, and
//! after the other blocks. Where it becomes shorter, the first block says so before. So a server or machine that ends at any time leaves files that are whole.
//!
//! There are no holes, since a hole would be a block that anybody can make. Zeros are written, and a call that would write very many of them is refused.

mod blocks;

use crate::block::{self, BLOCK, capacity, place};
use crate::key::{self, Cost, Keys, NoKeys};
use crate::name;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use blocks::zeros;
use core::fmt;
use vfs::{Attributes, Changes, Entry, Error, FileSystem, Inode, Kind, Name, New, Result, Space};

/// The keys, in the root.
const KEY: &[u8] = b".key";

/// The directory of what is not complete, in the root.
const MAKING: &[u8] = b".new";

/// The symbolic link that has a directory's number.
const ID: &[u8] = b".id";

/// Longest file.
const FILE_MAX: u64 = 1 << 46;

/// Most files that nobody has open of which the first block is kept in mind, and most directories.
const SPARE_MAX: usize = 64;

/// Why nothing is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The other file system fails.
    Files(Error),
    /// The passphrase is another one, or the keys were changed.
    WrongPassphrase,
    /// The file that has the keys is none.
    NoKeys,
    /// There are files, and no keys: another directory is meant.
    NotEmpty,
    /// There is not as much memory as it takes to try a passphrase.
    NoMemory,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Refusal::Files(error) => write!(f, "the files below cannot be used: {error:?}"),
            Refusal::WrongPassphrase => f.write_str("the passphrase is wrong, or .key was changed"),
            Refusal::NoKeys => f.write_str(".key has no keys"),
            Refusal::NotEmpty => f.write_str("there are files, and no .key"),
            Refusal::NoMemory => f.write_str("there is not enough memory to try the passphrase"),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Files(error)
    }
}

impl From<NoKeys> for Refusal {
    fn from(why: NoKeys) -> Refusal {
        match why {
            NoKeys::WrongPassphrase => Refusal::WrongPassphrase,
            NoKeys::Damaged => Refusal::NoKeys,
            NoKeys::NoMemory => Refusal::NoMemory,
        }
    }
}

/// Encrypted files in another file system.
#[derive(Debug)]
pub struct Crypt<F> {
    fs: F,
    keys: Keys,
    random: fn(&mut [u8]),
    /// The directory `.new`.
    making: Inode,
    /// The next name there.
    next: u64,
    /// Numbers of directories.
    ids: BTreeMap<Inode, [u8; name::ID]>,
    files: BTreeMap<Inode, Header>,
    /// The block that was used last.
    last: Option<(Inode, u64, Box<[u8; BLOCK]>)>,
    clock: u64,
}

/// Beginning of a file: the first block as it is, and as it is to be.
#[derive(Clone, Copy, Debug)]
struct Header {
    id: [u8; block::ID],
    len: u64,
    /// The length in the first block.
    stored: u64,
    /// So many blocks survive a loss of power.
    safe: u64,
    is_held: bool,
    used: u64,
}

fn name_of(name: &[u8]) -> Result<Name<'_>> {
    Name::new(name)
}

fn find(fs: &mut impl FileSystem, directory: Inode, name: &[u8]) -> Result<Option<Inode>> {
    match fs.lookup(directory, name_of(name)?) {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Names of a directory of the other file system, with their inodes.
fn entries(fs: &mut impl FileSystem, directory: Inode) -> Result<Vec<Entry>> {
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let more = fs.readdir(directory, all.last().map_or(0, |entry| entry.next), 32)?;
        if more.is_empty() {
            return Ok(all);
        }
        all.extend(more);
    }
}

impl<F: FileSystem> Crypt<F> {
    /// The files that are encrypted in the root of another file system. If that is empty it gets new keys, at that cost. `random` fills bytes with what nobody can
    /// guess.
    pub fn new(
        mut fs: F,
        passphrase: &[u8],
        cost: Cost,
        random: fn(&mut [u8]),
    ) -> core::result::Result<Crypt<F>, Refusal> {
        let root = fs.root();
        let file = find(&mut fs, root, KEY)?;
        let keys = match file {
            Some(file) => {
                let mut bytes = [0; key::FILE + 1];
                let len = fs.read(file, 0, &mut bytes)?;
                Some(key::read(&bytes[..len], passphrase)?)
            }
            None => None,
        };
        let is_new = |entry: &Entry| matches!(&*entry.name, MAKING | ID | b"lost+found");
        if keys.is_none() && !entries(&mut fs, root)?.iter().all(is_new) {
            return Err(Refusal::NotEmpty);
        }
        let making = match find(&mut fs, root, MAKING)? {
            Some(making) => making,
            None => fs.create(root, name_of(MAKING)?, New::Directory, 0o700)?,
        };
        fs.hold(making)?;
        for entry in entries(&mut fs, making)? {
            discard(&mut fs, making, &entry.name, entry.inode)?;
        }
        if find(&mut fs, root, ID)?.is_none() {
            make_id(&mut fs, root, random)?;
        }
        let keys = match keys {
            Some(keys) => keys,
            None => {
                let (keys, bytes) = key::make(passphrase, cost, random)?;
                // Only one that is complete is found.
                let file = fs.create(making, name_of(KEY)?, New::File, 0o600)?;
                if fs.write(file, 0, &bytes)? < bytes.len() {
                    return Err(Refusal::Files(Error::NoSpace));
                }
                fs.sync(file)?;
                fs.rename(making, name_of(KEY)?, root, name_of(KEY)?)?;
                fs.sync(root)?;
                keys
            }
        };
        let (ids, files) = (BTreeMap::new(), BTreeMap::new());
        Ok(Crypt { fs, keys, random, making, next: 0, ids, files, last: None, clock: 0 })
    }

    /// The other file system, when nothing of this one is in use any more.
    pub fn into_inner(self) -> F {
        self.fs
    }

    fn new_name(&mut self) -> String {
        self.next += 1;
        format!("{:x}", self.next)
    }

    /// The number of a directory. One that has none and is empty gets one: it was about to be removed, and was not.
    fn id(&mut self, directory: Inode) -> Result<[u8; name::ID]> {
        if let Some(id) = self.ids.get(&directory) {
            return Ok(*id);
        }
        let id = match find(&mut self.fs, directory, ID)? {
            Some(link) => name::id_of(&self.fs.readlink(link)?)?,
            None if self.fs.readdir(directory, 0, 1)?.is_empty() => {
                make_id(&mut self.fs, directory, self.random)?
            }
            None => return Err(Error::Damaged),
        };
        if self.ids.len() >= SPARE_MAX {
            self.ids.clear();
        }
        self.ids.insert(directory, id);
        Ok(id)
    }

    /// A name as it is in the other file system.
    fn sealed(&mut self, directory: Inode, name: Name) -> Result<String> {
        let id = self.id(directory)?;
        name::seal(&mut self.keys, &id, name.bytes())
    }

    /// Takes the number away from a directory that has nothing else, so that the other file system removes it.
    fn clear(&mut self, directory: Inode) -> Result<()> {
        let mut link = None;
        for entry in self.fs.readdir(directory, 0, 2)? {
            if entry.name != ID {
                return Err(Error::NotEmpty);
            }
            link = Some(entry.inode);
        }
        self.ids.remove(&directory);
        if let Some(link) = link {
            self.fs.unlink(directory, name_of(ID)?)?;
            let_go(&mut self.fs, link);
        }
        Ok(())
    }

    /// Makes a file that nobody sees until its first block is there.
    fn create_file(&mut self, directory: Inode, sealed: &str, permissions: u16) -> Result<Inode> {
        let made_name = self.new_name();
        let made = self.fs.create(self.making, name_of(made_name.as_bytes())?, New::File, permissions)?;
        let mut id = [0; block::ID];
        (self.random)(&mut id);
        self.clock += 1;
        let header = Header { id, len: 0, stored: 0, safe: 1, is_held: false, used: self.clock };
        self.keep(made, header);
        let outcome = self.put(made, 0, zeros()).and_then(|()| {
            self.fs.sync(made)?;
            self.fs.rename(
                self.making,
                name_of(made_name.as_bytes())?,
                directory,
                name_of(sealed.as_bytes())?,
            )
        });
        if let Err(error) = outcome {
            self.drop_file(made);
            let _ = discard(&mut self.fs, self.making, made_name.as_bytes(), made);
            return Err(error);
        }
        Ok(made)
    }

    fn create_directory(&mut self, directory: Inode, sealed: &str, permissions: u16) -> Result<Inode> {
        let made_name = self.new_name();
        let made =
            self.fs.create(self.making, name_of(made_name.as_bytes())?, New::Directory, permissions)?;
        let outcome = make_id(&mut self.fs, made, self.random).and_then(|_| {
            self.fs.rename(
                self.making,
                name_of(made_name.as_bytes())?,
                directory,
                name_of(sealed.as_bytes())?,
            )
        });
        if let Err(error) = outcome {
            let _ = discard(&mut self.fs, self.making, made_name.as_bytes(), made);
            return Err(error);
        }
        self.ids.remove(&made);
        Ok(made)
    }

    fn drop_file(&mut self, file: Inode) {
        self.files.remove(&file);
        if self.last.as_ref().is_some_and(|(of, _, _)| *of == file) {
            self.last = None;
        }
    }
}

/// Gives a directory a number.
fn make_id(fs: &mut impl FileSystem, directory: Inode, random: fn(&mut [u8])) -> Result<[u8; name::ID]> {
    let mut id = [0; name::ID];
    random(&mut id);
    fs.create(directory, name_of(ID)?, New::Symlink(name::id_text(&id).as_bytes()), 0o777)?;
    Ok(id)
}

/// An inode that nobody else knows has lost its name. If that cannot be said, it takes room, and nothing else.
fn let_go(fs: &mut impl FileSystem, inode: Inode) {
    if fs.attributes(inode).is_ok_and(|found| found.links == 0) {
        let _ = fs.forget(inode);
    }
}

/// Removes what is not complete: a file, or a directory with no more than its number.
fn discard(fs: &mut impl FileSystem, directory: Inode, name: &[u8], inode: Inode) -> Result<()> {
    if fs.attributes(inode)?.kind == Kind::Directory {
        if let Some(id) = find(fs, inode, ID)? {
            fs.unlink(inode, name_of(ID)?)?;
            let_go(fs, id);
        }
        fs.rmdir(directory, name_of(name)?)?;
    } else {
        fs.unlink(directory, name_of(name)?)?;
    }
    let_go(fs, inode);
    Ok(())
}

impl<F: FileSystem> FileSystem for Crypt<F> {
    fn root(&self) -> Inode {
        self.fs.root()
    }

    fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        let found = self.fs.attributes(inode)?;
        let len = match found.kind {
            Kind::File => self.len_or_guess(&found)?,
            Kind::Symlink => name::target_len(found.len),
            _ => found.len,
        };
        Ok(Attributes { len, ..found })
    }

    fn len(&mut self, file: Inode) -> Result<u64> {
        self.header(file).map(|header| header.len)
    }

    fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()> {
        self.fs.change(inode, changes)
    }

    fn lookup(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        let sealed = self.sealed(directory, name)?;
        self.fs.lookup(directory, name_of(sealed.as_bytes())?)
    }

    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>> {
        let id = self.id(directory)?;
        let mut from = cursor;
        loop {
            let sealed = self.fs.readdir(directory, from, count_max)?;
            let Some(last) = sealed.last() else { return Ok(sealed) };
            from = last.next;
            // Names that are none of ours are not shown: somebody has put them there.
            let found: Vec<Entry> = sealed
                .into_iter()
                .filter_map(|entry| {
                    let name = name::open(&mut self.keys, &id, &entry.name).ok()?;
                    Some(Entry { name, ..entry })
                })
                .collect();
            if !found.is_empty() {
                return Ok(found);
            }
        }
    }

    fn create(&mut self, directory: Inode, name: Name, new: New, permissions: u16) -> Result<Inode> {
        let sealed = self.sealed(directory, name)?;
        if find(&mut self.fs, directory, sealed.as_bytes())?.is_some() {
            return Err(Error::Exists);
        }
        match new {
            New::File => self.create_file(directory, &sealed, permissions),
            New::Directory => self.create_directory(directory, &sealed, permissions),
            New::Symlink(target) => {
                let target = name::seal_target(&self.keys, target, self.random)?;
                let link = New::Symlink(target.as_bytes());
                self.fs.create(directory, name_of(sealed.as_bytes())?, link, permissions)
            }
        }
    }

    fn link(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()> {
        let sealed = self.sealed(directory, name)?;
        self.fs.link(inode, directory, name_of(sealed.as_bytes())?)
    }

    fn unlink(&mut self, directory: Inode, name: Name) -> Result<()> {
        let sealed = self.sealed(directory, name)?;
        self.fs.unlink(directory, name_of(sealed.as_bytes())?)
    }

    fn rmdir(&mut self, directory: Inode, name: Name) -> Result<()> {
        let sealed = self.sealed(directory, name)?;
        let sealed = name_of(sealed.as_bytes())?;
        let inode = self.fs.lookup(directory, sealed)?;
        if self.fs.attributes(inode)?.kind != Kind::Directory {
            return Err(Error::NotDirectory);
        }
        self.clear(inode)?;
        self.fs.rmdir(directory, sealed)
    }

    fn rename(&mut self, from: Inode, name: Name, to: Inode, new_name: Name) -> Result<()> {
        let (existing, sealed) = (self.sealed(from, name)?, self.sealed(to, new_name)?);
        let (existing, sealed) = (name_of(existing.as_bytes())?, name_of(sealed.as_bytes())?);
        if let Some(replaced) = find(&mut self.fs, to, sealed.bytes())?
            && self.fs.attributes(replaced)?.kind == Kind::Directory
        {
            self.clear(replaced)?;
        }
        self.fs.rename(from, existing, to, sealed)
    }

    fn forget(&mut self, inode: Inode) -> Result<()> {
        self.fs.forget(inode)?;
        self.ids.remove(&inode);
        self.drop_file(inode);
        Ok(())
    }

    fn readlink(&mut self, inode: Inode) -> Result<Vec<u8>> {
        let sealed = self.fs.readlink(inode)?;
        name::open_target(&self.keys, &sealed)
    }

    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        let len = self.header(inode)?.len;
        let count = len.saturating_sub(offset).min(to.len() as u64) as usize;
        let mut done = 0;
        while done < count {
            let (number, at) = place(offset + done as u64);
            let part = (capacity(number) - at).min(count - done);
            let block = self.block(inode, number)?;
            to[done..done + part].copy_from_slice(&block::contents(number, block)[at..at + part]);
            done += part;
        }
        Ok(count)
    }

    fn write(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        let count = from.len() as u64;
        if offset.checked_add(count).is_none_or(|end| end > FILE_MAX) {
            return Err(Error::TooLarge);
        }
        self.lengthen(inode, offset)?;
        self.write_range(inode, offset, count, Some(from)).map(|written| written as usize)
    }

    fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        if len > self.header(inode)?.len { self.lengthen(inode, len) } else { self.shorten(inode, len) }
    }

    fn sync(&mut self, inode: Inode) -> Result<()> {
        if !self.files.contains_key(&inode) {
            // A directory, with all that is in the file system.
            let all: Vec<Inode> = self.files.keys().copied().collect();
            for file in all {
                // The client that has it hears of it when it syncs; its file is no reason for another's name not to be safe.
                let _ = self.store(file);
            }
        }
        self.store(inode)?;
        self.fs.sync(inode)
    }

    fn space(&mut self) -> Result<Space> {
        self.fs.space()
    }

    fn is_read_only(&self) -> bool {
        self.fs.is_read_only()
    }

    fn hold(&mut self, inode: Inode) -> Result<()> {
        self.fs.hold(inode)?;
        if let Some(header) = self.files.get_mut(&inode) {
            header.is_held = true;
        }
        Ok(())
    }

    fn release(&mut self, inode: Inode) {
        // Nobody is left who could hear of an error.
        let _ = self.store(inode);
        self.drop_file(inode);
        self.fs.release(inode);
    }
}
