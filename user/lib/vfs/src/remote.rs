//! A file system that somebody else serves, as one of ours: so it can lie below another one.
//!
//! The other side knows paths, and objects that are open. So [`Remote`] notes at which path it has found an inode ([`Places`]), and has a file open there as long as
//! somebody has it open here, besides a few that were used last. Directories are reached by their paths.
//!
//! If the server ends and is started anew, files are opened again by their paths, without a word; but one that was written to and not synced may have lost
//! something. So all calls of it fail until it is closed; and if none was made until then, opening it fails, once. Whoever moves and removes things past this file system
//! makes calls fail that meant them, and nothing worse: a file that has another inode is none that was found.

mod calls;
mod server;

pub use server::{Answer, Directory, Failure, File, Server};

use crate::found::Found;
use crate::{
    Attributes, Before, Changes, Entry, Error, FileSystem, How, Inode, Kind, Name, New, Places, Result, Space,
};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use calls::SPARE_MAX;

/// How often a call is made whose server is gone.
const TRIES: usize = 3;

/// A file system that a server has.
pub struct Remote<S: Server> {
    server: S,
    root: Inode,
    /// The last one is used; others are there for the files that were opened with them.
    bases: Vec<S::Directory>,
    /// Of what has lost the name that was known, its attributes: nobody else has them any more.
    places: Places<Option<Attributes>>,
    files: BTreeMap<Inode, Open<FileOf<S>>>,
    /// Directories that somebody has open here, and that have lost their names: as long as they are open there, too, nothing else gets their numbers.
    nameless: BTreeMap<Inode, S::Directory>,
    /// Files that may have lost something that nobody was told of.
    lost: BTreeSet<Inode>,
    /// The directory that was listed last.
    listed: Option<(Inode, S::Directory)>,
    clock: u64,
    /// Names and attributes that are known without asking.
    found: Found,
    /// The server is asked for changes once after each beginning, or each time if nobody says when something begins.
    asked: Asked,
}

/// Whether the server was asked for changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    /// It is asked each time.
    EachTime,
    /// Not since something began.
    NotYet,
    /// Since something began, and what was found is of use or not.
    Yes(bool),
}

type FileOf<S> = <<S as Server>::Directory as Directory>::File;

#[derive(Debug)]
struct Open<F> {
    /// None if the server was started anew since.
    file: Option<F>,
    is_held: bool,
    /// It was written to and not synced.
    is_dirty: bool,
    /// Something that was written may be lost.
    is_lost: bool,
    /// A call has failed since. A sync does not count: who closes a file may sync it and not look at what comes of that.
    is_told: bool,
    used: u64,
}

impl<S: Server> Remote<S> {
    /// The file system of a server.
    pub fn new(mut server: S) -> Result<Remote<S>> {
        let mut begun = Err(Error::Io);
        for _ in 0..TRIES {
            let base = server.connect()?;
            match base.stat(b"") {
                Ok(found) if found.kind == Kind::Directory => {
                    begun = Ok((base, found.inode));
                    break;
                }
                Ok(_) => return Err(Error::NotDirectory),
                Err(Failure::Refused(error)) => return Err(error),
                // The server has ended between the two.
                Err(_) => {}
            }
        }
        let (base, root) = begun?;
        Ok(Remote {
            server,
            root,
            bases: Vec::from([base]),
            places: Places::new(root, None),
            files: BTreeMap::new(),
            nameless: BTreeMap::new(),
            lost: BTreeSet::new(),
            listed: None,
            clock: 0,
            found: Found::default(),
            asked: Asked::EachTime,
        })
    }

    /// How many objects of the server are open.
    pub fn open_count(&self) -> usize {
        let files = self.files.values().filter(|open| open.file.is_some()).count();
        self.bases.len() + files + self.nameless.len() + usize::from(self.listed.is_some())
    }
}

impl<S: Server> FileSystem for Remote<S> {
    fn root(&self) -> Inode {
        self.root
    }

    fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        if self.is_known()
            && let Some(found) = self.found.attributes(inode)
        {
            return Ok(*found);
        }
        let found = self.ask_attributes(inode)?;
        self.found.put_attributes(found);
        Ok(found)
    }

    fn begin(&mut self) {
        self.asked = Asked::NotYet;
    }

    fn others(&mut self) -> Option<u64> {
        self.is_known().then(|| self.found.others())
    }

    fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()> {
        if matches!(self.attributes(inode)?.kind, Kind::Symlink | Kind::Special) {
            return Err(Error::Unsupported);
        }
        let done = self.of_node(inode, |directory| directory.change(changes), |file| file.change(changes));
        match done {
            Ok(()) => {
                self.found.forget_attributes(inode);
                self.found.has_changed(changes.count());
            }
            Err(_) => self.forget_found(),
        }
        done
    }

    fn xattr(&mut self, inode: Inode, name: &[u8]) -> Result<Vec<u8>> {
        self.of_node(inode, |directory| directory.xattr(name), |file| file.xattr(name))
    }

    fn xattrs(&mut self, inode: Inode) -> Result<Vec<u8>> {
        match self.of_node(inode, Directory::xattrs, File::xattrs) {
            // Neither a file nor a directory: it has none.
            Err(Error::Unsupported) => Ok(Vec::new()),
            found => found,
        }
    }

    fn set_xattr(&mut self, inode: Inode, name: &[u8], value: &[u8], before: Before) -> Result<()> {
        let set = |file: &FileOf<S>| file.set_xattr(name, value, before);
        let done = self.of_node(inode, |directory| directory.set_xattr(name, value, before), set);
        self.found.forget_attributes(inode);
        self.counts(done)
    }

    fn remove_xattr(&mut self, inode: Inode, name: &[u8]) -> Result<()> {
        let done =
            self.of_node(inode, |directory| directory.remove_xattr(name), |file| file.remove_xattr(name));
        self.found.forget_attributes(inode);
        self.counts(done)
    }

    fn lookup(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        if self.is_known() {
            match self.found.name(directory, name.bytes()) {
                // Its name that was known may be gone, while it has this one.
                Some(Some(inode)) if self.places.used(inode).is_ok_and(Option::is_none) => return Ok(inode),
                Some(None) => return Err(Error::NotFound),
                _ => {}
            }
        }
        let path = self.path_of(directory, name)?;
        let found = match self.stat_at(&path) {
            Err(Error::NotFound) => {
                self.found.put_name(directory, name.bytes(), None);
                return Err(Error::NotFound);
            }
            found => found?,
        };
        self.found_at(found, directory, name)
    }

    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>> {
        let mut entries = Err(Error::Io);
        for _ in 0..TRIES {
            if self.listed.as_ref().is_none_or(|(listed, _)| *listed != directory) {
                self.is_where_it_was(directory)?;
                let path = self.path(directory)?;
                self.listed = None;
                let entered = self.opening(true, |base| base.enter(&path))?;
                self.listed = Some((directory, entered));
            }
            match self.listed.as_ref().map(|(_, listed)| listed.readdir(cursor)) {
                Some(Ok(found)) => entries = Ok(found),
                Some(Err(Failure::Refused(error))) => entries = Err(error),
                Some(Err(_)) => {
                    self.lose();
                    continue;
                }
                None => {}
            }
            break;
        }
        let mut entries = entries?;
        entries.truncate(count_max);
        for entry in &entries {
            self.places.put(entry.inode, directory, Name::new(&entry.name)?, None)?;
        }
        Ok(entries)
    }

    fn create(&mut self, directory: Inode, name: Name, new: New, permissions: u16) -> Result<Inode> {
        let path = self.path_of(directory, name)?;
        self.found.forget_name(directory, name.bytes());
        match new {
            New::File => {
                let how = How { create: true, exclusive: true, truncate: false };
                let opened = self.opening(false, |base| {
                    let file = base.open(&path, how, permissions)?;
                    let found = file.stat()?;
                    Ok((file, found))
                });
                let (file, found) = self.counts(opened)?;
                if self.places.is_held(found.inode) {
                    drop(file);
                    return self.undo(|base| base.unlink(&path));
                }
                self.found.forget_inode(found.inode);
                self.places.put(found.inode, directory, name, None)?;
                self.opened(found.inode, file);
                return Ok(found.inode);
            }
            New::Directory => self.change_by(|base| base.mkdir(&path, permissions))?,
            New::Symlink(target) => self.change_by(|base| base.symlink(target, &path))?,
        }
        let found = self.stat_at(&path)?;
        // One that has not lost its name here may be made anew on a server that has lost everything.
        let has_no_name = self.places.get(found.inode).is_ok_and(Option::is_some);
        if has_no_name && self.places.is_held(found.inode) {
            return match new {
                New::Directory => self.undo(|base| base.rmdir(&path)),
                _ => self.undo(|base| base.unlink(&path)),
            };
        }
        self.found.forget_inode(found.inode);
        self.found_at(found, directory, name)
    }

    fn link(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()> {
        let (existing, path) = (self.path(inode)?, self.path_of(directory, name)?);
        self.found.forget_name(directory, name.bytes());
        self.found.forget_attributes(inode);
        self.change_by(|base| base.link(&existing, &path))
    }

    fn unlink(&mut self, directory: Inode, name: Name) -> Result<()> {
        let path = self.path_of(directory, name)?;
        let found = self.stat_at(&path)?;
        self.keep(&found, &path)?;
        self.found.forget_name(directory, name.bytes());
        self.found.forget_inode(found.inode);
        self.change_by(|base| base.unlink(&path))?;
        self.lost_name(&found, directory, name)
    }

    fn rmdir(&mut self, directory: Inode, name: Name) -> Result<()> {
        let path = self.path_of(directory, name)?;
        let found = self.stat_at(&path)?;
        if self.listed.as_ref().is_some_and(|(listed, _)| *listed == found.inode) {
            self.listed = None;
        }
        self.keep(&found, &path)?;
        self.found.forget_name(directory, name.bytes());
        self.found.forget_inode(found.inode);
        let removed = self.change_by(|base| base.rmdir(&path));
        if removed.is_err() {
            self.nameless.remove(&found.inode);
        }
        removed?;
        self.lost_name(&found, directory, name)
    }

    fn rename(&mut self, from: Inode, name: Name, to: Inode, new_name: Name) -> Result<()> {
        let (existing, path) = (self.path_of(from, name)?, self.path_of(to, new_name)?);
        let moved = self.stat_at(&existing)?;
        let replaced = match self.stat_at(&path) {
            Ok(found) => Some(found),
            Err(Error::NotFound) => None,
            Err(error) => return Err(error),
        };
        if let Some(replaced) = &replaced {
            self.keep(replaced, &path)?;
            if self.listed.as_ref().is_some_and(|(listed, _)| *listed == replaced.inode) {
                self.listed = None;
            }
        }
        self.found.forget_name(from, name.bytes());
        self.found.forget_name(to, new_name.bytes());
        self.found.forget_attributes(moved.inode);
        if let Some(replaced) = &replaced {
            self.found.forget_inode(replaced.inode);
        }
        let renamed = self.change_by(|base| base.rename(&existing, &path));
        if let (Err(_), Some(replaced)) = (renamed, &replaced) {
            self.nameless.remove(&replaced.inode);
        }
        renamed?;
        if let Some(replaced) = replaced {
            self.lost_name(&replaced, to, new_name)?;
        }
        if self.places.has(moved.inode) {
            self.places.moved(moved.inode, to, new_name);
            *self.places.get_mut(moved.inode)? = None;
        }
        Ok(())
    }

    fn forget(&mut self, inode: Inode) -> Result<()> {
        if self.attributes(inode)?.links > 0 {
            return Err(Error::Busy);
        }
        // With the last reference the server forgets it.
        self.found.forget_inode(inode);
        self.files.remove(&inode);
        self.nameless.remove(&inode);
        self.lost.remove(&inode);
        self.places.remove(inode);
        Ok(())
    }

    fn readlink(&mut self, inode: Inode) -> Result<Vec<u8>> {
        if self.is_known()
            && let Some(target) = self.found.target(inode)
        {
            return Ok(target.clone());
        }
        let path = self.path(inode)?;
        let target = self.call(true, |base| base.readlink(&path))?;
        self.found.put_target(inode, &target);
        Ok(target)
    }

    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        // It has another time at which it was read.
        self.found.forget_attributes(inode);
        let mut done = 0;
        while done < to.len() {
            let at = offset.saturating_add(done as u64);
            let rest = &mut to[done..];
            match self.with_file(inode, false, |file| file.read(at, rest))? {
                0 => break,
                count => done += count.min(rest.len()),
            }
        }
        Ok(done)
    }

    fn write(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        let mut done = 0;
        while done < from.len() {
            let rest = &from[done..];
            let at = offset.checked_add(done as u64).ok_or(Error::TooLarge)?;
            self.found.forget_attributes(inode);
            let written = self.with_file(inode, true, |file| file.write(at, rest));
            match self.counts(written) {
                Ok(0) => break,
                Ok(count) => done += count.min(rest.len()),
                Err(Error::NoSpace) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        self.found.forget_attributes(inode);
        let done = self.with_file(inode, true, |file| file.truncate(len));
        self.counts(done)
    }

    fn sync(&mut self, inode: Inode) -> Result<()> {
        match self.files.get_mut(&inode) {
            Some(open) if open.is_lost => Err(Error::Io),
            Some(open) if open.is_dirty => {
                let was_told = open.is_told;
                let synced = self.with_file(inode, false, |file| file.sync());
                if let Some(open) = self.files.get_mut(&inode) {
                    open.is_dirty = synced.is_err();
                    open.is_told = was_told;
                }
                synced
            }
            // Names are safe as soon as a call comes back.
            Some(_) => Ok(()),
            None if self.lost.remove(&inode) => Err(Error::Io),
            // A directory, and with it all of the file system.
            None => {
                self.call(true, |base| base.sync())?;
                self.files.values_mut().for_each(|open| open.is_dirty = false);
                Ok(())
            }
        }
    }

    fn space(&mut self) -> Result<Space> {
        self.call(true, |base| base.space())
    }

    fn hold(&mut self, inode: Inode) -> Result<()> {
        if inode == self.root {
            return Ok(());
        }
        if self.attributes(inode)?.kind == Kind::File {
            self.open(inode)?;
        }
        self.places.hold(inode)?;
        if let Some(open) = self.files.get_mut(&inode) {
            open.is_held = true;
        }
        Ok(())
    }

    fn release(&mut self, inode: Inode) {
        self.places.release(inode);
        self.nameless.remove(&inode);
        if let Some(open) = self.files.get_mut(&inode) {
            open.is_held = false;
            if open.is_lost {
                if !open.is_told {
                    self.lost.insert(inode);
                }
                self.files.remove(&inode);
            } else {
                self.close_spare(SPARE_MAX);
            }
        }
    }
}
