//! Calls of a server that may have ended, with files that are opened again by their paths.

use super::{Answer, Asked, Directory, Failure, File, FileOf, Open, Remote, Server, TRIES};
use crate::{Attributes, Error, FileSystem, How, Inode, Kind, Name, Result};
use alloc::vec::Vec;

/// Most files of which it is kept in mind that they may have lost something.
const LOST_MAX: usize = 1024;

/// Most directories with which all begins. Each has a share of what may be open there.
const BASES_MAX: usize = 6;

/// Most files that are open though nobody has them open.
pub(super) const SPARE_MAX: usize = 8;

impl<S: Server> Remote<S> {
    /// The server has ended: what was open there is not any more.
    pub(super) fn lose(&mut self) {
        self.bases.clear();
        self.listed = None;
        self.nameless.clear();
        self.forget_found();
        for (&inode, open) in &mut self.files {
            open.file = None;
            open.is_lost |= open.is_dirty;
            if open.is_lost && !open.is_held {
                self.lost.insert(inode);
            }
        }
        self.files.retain(|_, open| open.is_held);
        while self.lost.len() > LOST_MAX {
            self.lost.pop_first();
        }
    }

    /// Makes a call that begins at the root, and again if it can be made twice, or was not begun.
    pub(super) fn call<T>(
        &mut self,
        can_repeat: bool,
        run: impl Fn(&S::Directory) -> Answer<T>,
    ) -> Result<T> {
        for _ in 0..TRIES {
            if self.bases.is_empty() {
                let base = self.server.connect()?;
                self.bases.push(base);
            }
            match self.bases.last().map(&run) {
                Some(Ok(done)) => return Ok(done),
                Some(Err(Failure::Refused(error))) => return Err(error),
                Some(Err(failure)) => {
                    self.lose();
                    if failure == Failure::Broken && !can_repeat {
                        break;
                    }
                }
                None => break,
            }
        }
        Err(Error::Io)
    }

    /// Makes a call that changes something, of which all that it concerns was forgotten.
    pub(super) fn change_by<T>(&mut self, run: impl Fn(&S::Directory) -> Answer<T>) -> Result<T> {
        let done = self.call(false, run);
        self.counts(done)
    }

    /// A call that counts as a change has ended.
    pub(super) fn counts<T>(&mut self, done: Result<T>) -> Result<T> {
        match done {
            Ok(_) => self.found.has_changed(1),
            // It may have been made or not.
            Err(_) => self.forget_found(),
        }
        done
    }

    pub(super) fn forget_found(&mut self) {
        self.found.forget();
        if self.asked != Asked::EachTime {
            self.asked = Asked::NotYet;
        }
    }

    /// Whether what was found is of use: nobody else has changed anything.
    pub(super) fn is_known(&mut self) -> bool {
        if let Asked::Yes(is_known) = self.asked {
            return is_known;
        }
        let changes = self.call(true, |base| base.changes()).unwrap_or(0);
        let is_known = self.found.look(changes);
        if self.asked == Asked::NotYet {
            self.asked = Asked::Yes(is_known);
        }
        is_known
    }

    /// Asks for attributes.
    pub(super) fn ask_attributes(&mut self, inode: Inode) -> Result<Attributes> {
        if self.files.get(&inode).is_some_and(|open| open.file.is_some()) {
            return self.with_file(inode, false, |file| file.stat());
        }
        if let Some(left) = self.places.get(inode)? {
            return Ok(*left);
        }
        let path = self.places.path(inode)?;
        let found = self.stat_at(&path)?;
        if found.inode == inode { Ok(found) } else { Err(Error::NotFound) }
    }

    /// Makes a call that opens something. If there is too much open, what nobody needs is closed; if it still is, this is one client more.
    pub(super) fn opening<T>(
        &mut self,
        can_repeat: bool,
        run: impl Fn(&S::Directory) -> Answer<T>,
    ) -> Result<T> {
        for _ in 0..=BASES_MAX {
            match self.call(can_repeat, &run) {
                Err(Error::TooManyOpen) => {}
                outcome => return outcome,
            }
            if self.listed.take().is_some() || self.close_spare(0) {
                continue;
            }
            if self.bases.len() >= BASES_MAX {
                // One that was used before may have some again.
                self.bases.rotate_right(1);
                return self.call(can_repeat, &run);
            }
            let base = self.server.connect()?;
            self.bases.push(base);
        }
        Err(Error::TooManyOpen)
    }

    /// Closes files that nobody has open, but so many. Says whether there were some.
    pub(super) fn close_spare(&mut self, count: usize) -> bool {
        let mut spare: Vec<(u64, Inode)> = self
            .files
            .iter()
            .filter(|(_, open)| !open.is_held)
            .map(|(&inode, open)| (open.used, inode))
            .collect();
        spare.sort_unstable();
        spare.truncate(spare.len().saturating_sub(count));
        for &(_, inode) in &spare {
            if let Some(open) = self.files.remove(&inode)
                && open.is_dirty
                && open.file.is_none_or(|file| file.sync().is_err())
            {
                self.lost.insert(inode);
            }
        }
        !spare.is_empty()
    }

    /// Path of an inode that has the name that is known.
    pub(super) fn path(&mut self, inode: Inode) -> Result<Vec<u8>> {
        match self.places.get(inode)? {
            Some(_) => Err(Error::NotFound),
            None => self.places.path(inode),
        }
    }

    /// Fails if a directory is not at the path that is known: others may have moved it, and made another one there.
    pub(super) fn is_where_it_was(&mut self, directory: Inode) -> Result<()> {
        if directory == self.root { Ok(()) } else { self.attributes(directory).map(drop) }
    }

    /// Path of a name in a directory.
    pub(super) fn path_of(&mut self, directory: Inode, name: Name) -> Result<Vec<u8>> {
        self.is_where_it_was(directory)?;
        let mut path = self.path(directory)?;
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.bytes());
        Ok(path)
    }

    /// Opens a file, unless it is open.
    pub(super) fn open(&mut self, inode: Inode) -> Result<()> {
        if self.lost.remove(&inode) {
            return Err(Error::Io);
        }
        match self.files.get_mut(&inode) {
            Some(open) if open.is_lost => {
                open.is_told = true;
                return Err(Error::Io);
            }
            Some(open) if open.file.is_some() => return Ok(()),
            _ => {}
        }
        let path = self.path(inode)?;
        let file = self.opening(true, |base| {
            let file = base.open(&path, How::default(), 0)?;
            // It may be another one by now.
            if file.stat()?.inode == inode { Ok(file) } else { Err(Failure::Refused(Error::NotFound)) }
        })?;
        self.opened(inode, file);
        Ok(())
    }

    pub(super) fn opened(&mut self, inode: Inode, file: FileOf<S>) {
        self.clock += 1;
        let used = self.clock;
        let is_held = self.places.is_held(inode);
        let open = Open { file: Some(file), is_held, is_dirty: false, is_lost: false, is_told: false, used };
        self.files.insert(inode, open);
        self.close_spare(SPARE_MAX);
    }

    /// Makes a call of a file, which can be made twice.
    pub(super) fn with_file<T>(
        &mut self,
        inode: Inode,
        writes: bool,
        mut run: impl FnMut(&FileOf<S>) -> Answer<T>,
    ) -> Result<T> {
        for _ in 0..TRIES {
            self.open(inode)?;
            self.clock += 1;
            let Some(open) = self.files.get_mut(&inode) else { break };
            open.used = self.clock;
            let outcome = open.file.as_ref().map(&mut run);
            match outcome {
                Some(Ok(done)) => {
                    open.is_dirty |= writes;
                    return Ok(done);
                }
                Some(Err(Failure::Refused(error))) => return Err(error),
                Some(Err(_)) => self.lose(),
                None => break,
            }
        }
        Err(Error::Io)
    }

    /// Makes a call of a file or directory, which can be made twice. Nothing else is an object that could be called.
    pub(super) fn of_node<T>(
        &mut self,
        inode: Inode,
        of_directory: impl Fn(&S::Directory) -> Answer<T>,
        of_file: impl Fn(&FileOf<S>) -> Answer<T>,
    ) -> Result<T> {
        match self.attributes(inode)?.kind {
            Kind::Symlink | Kind::Special => Err(Error::Unsupported),
            Kind::File => self.with_file(inode, false, of_file),
            Kind::Directory => {
                let path = self.path(inode)?;
                self.opening(true, |base| {
                    if path.is_empty() { of_directory(base) } else { of_directory(&base.enter(&path)?) }
                })
            }
        }
    }

    /// A file or directory that is held is to be open before its name goes: the server gives the number of one that nobody has open there to something new.
    pub(super) fn keep(&mut self, found: &Attributes, path: &[u8]) -> Result<()> {
        let inode = found.inode;
        if found.kind == Kind::Directory && self.places.is_held(inode) {
            let entered = self.opening(true, |base| base.enter(path))?;
            self.nameless.insert(inode, entered);
        } else if self.files.get(&inode).is_some_and(|open| open.is_held) {
            let _ = self.open(inode);
        }
        Ok(())
    }

    /// Removes what was made, which has the number of something that is held here, as a server that was started again may give it. Who has that must not get this.
    pub(super) fn undo<T>(&mut self, remove: impl Fn(&S::Directory) -> Answer<()>) -> Result<T> {
        self.forget_found();
        self.call(false, remove)?;
        Err(Error::Io)
    }

    /// A name is an inode's that has these attributes.
    pub(super) fn found_at(&mut self, found: Attributes, directory: Inode, name: Name) -> Result<Inode> {
        self.places.put(found.inode, directory, name, None)?;
        self.found.put_name(directory, name.bytes(), Some(found.inode));
        self.found.put_attributes(found);
        Ok(found.inode)
    }

    /// A name of an inode is gone that has had these attributes.
    pub(super) fn lost_name(&mut self, found: &Attributes, directory: Inode, name: Name) -> Result<()> {
        let links = if found.kind == Kind::Directory { 0 } else { found.links.saturating_sub(1) };
        let left = Attributes { links, ..*found };
        match self.places.entry(found.inode) {
            Ok((parent, known)) if links > 0 && (parent, known) != (directory, name) => {}
            Ok(_) => *self.places.get_mut(found.inode)? = Some(left),
            Err(_) => drop(self.places.put(found.inode, directory, name, Some(left))?),
        }
        Ok(())
    }

    pub(super) fn stat_at(&mut self, path: &[u8]) -> Result<Attributes> {
        self.call(true, |base| base.stat(path))
    }
}
