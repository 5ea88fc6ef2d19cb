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

/// Files in use that are closed at a time, so that few calls are refused.
const CLOSED_COUNT: usize = 16;

impl<S: Server> Remote<S> {
    /// The server has ended: what was open there is not any more.
    pub(super) fn lose(&mut self) {
        self.bases.clear();
        self.listed = None;
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

    /// Makes a call that takes the name at a path away from an inode, of which all was forgotten. It [is open](Remote::keep) then if somebody has it open, and is opened anew if the server
    /// has ended in between.
    pub(super) fn take_name(
        &mut self,
        inode: Option<Inode>,
        path: &[u8],
        run: impl Fn(&S::Directory) -> Answer<()>,
    ) -> Result<()> {
        for _ in 0..TRIES {
            if let Some(inode) = inode {
                self.keep(inode, path)?;
            }
            if self.bases.is_empty() {
                let base = self.server.connect()?;
                self.bases.push(base);
            }
            match self.bases.last().map(&run) {
                Some(Ok(())) => return self.counts(Ok(())),
                Some(Err(Failure::Refused(error))) => return self.counts(Err(error)),
                Some(Err(Failure::NotBegun)) => self.lose(),
                Some(Err(Failure::Broken)) => {
                    self.lose();
                    break;
                }
                None => break,
            }
        }
        self.counts(Err(Error::Io))
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

    /// Makes a call that opens something. If too much is open, what nobody needs is closed; if it still is, this is one client more; and if that is not enough, files in
    /// use are closed, to be opened again.
    pub(super) fn opening<T>(
        &mut self,
        can_repeat: bool,
        run: impl Fn(&S::Directory) -> Answer<T>,
    ) -> Result<T> {
        let mut outcome = self.opening_one_more(can_repeat, &run);
        while matches!(outcome, Err(Error::TooManyOpen)) && self.close_held() {
            outcome = self.by_any_base(can_repeat, &run);
        }
        outcome
    }

    /// Makes a call that opens something, while files in use stay open.
    fn opening_one_more<T>(
        &mut self,
        can_repeat: bool,
        run: &impl Fn(&S::Directory) -> Answer<T>,
    ) -> Result<T> {
        // Behind the first call there is room from a directory, from files that nobody needs, and from each further client.
        for _ in 0..BASES_MAX + 2 {
            match self.by_any_base(can_repeat, run) {
                Err(Error::TooManyOpen) if self.make_room() => {}
                outcome => return outcome,
            }
        }
        Err(Error::TooManyOpen)
    }

    /// Makes a call that opens something as the first of the clients that has room.
    fn by_any_base<T>(&mut self, can_repeat: bool, run: &impl Fn(&S::Directory) -> Answer<T>) -> Result<T> {
        let mut outcome = self.call(can_repeat, run);
        for _ in 1..self.bases.len() {
            if !matches!(outcome, Err(Error::TooManyOpen)) {
                break;
            }
            // One that was used before may have room again.
            if let Some(last) = self.bases.pop() {
                self.bases.insert(0, last);
            }
            outcome = self.call(can_repeat, run);
        }
        outcome
    }

    /// Closes what nobody needs, or else becomes one client more. Says whether there may be room now.
    fn make_room(&mut self) -> bool {
        if self.listed.take().is_some() || self.close_spare(0) {
            return true;
        }
        if self.bases.len() >= BASES_MAX {
            return false;
        }
        match self.server.connect() {
            Ok(base) => {
                self.bases.push(base);
                true
            }
            // A server that has no room for a file may have none for a client either. If it is gone, the next call finds that.
            Err(_) => false,
        }
    }

    /// Closes some files in use, those that were used longest ago. They are opened again by their paths when somebody uses them. Says whether there were some.
    fn close_held(&mut self) -> bool {
        let mut held: Vec<(u64, Inode)> = self
            .files
            .iter()
            .filter(|(_, open)| open.is_held && open.file.is_some())
            .map(|(&inode, open)| (open.used, inode))
            .collect();
        held.sort_unstable();
        let mut closed = 0;
        for (_, inode) in held {
            let is_safe = self.is_safe(inode);
            self.clock += 1;
            let Some(open) = self.files.get_mut(&inode) else { continue };
            // If the server has ended meanwhile, nothing of it is open any more.
            if is_safe || open.file.is_none() {
                open.file = None;
                closed += 1;
            } else {
                // Others are looked at first the next time.
                open.used = self.clock;
            }
            if closed == CLOSED_COUNT {
                break;
            }
        }
        closed > 0
    }

    /// Says whether a file in use can be opened again with all of its bytes: it is at the path that is known, and what was written to it is safe.
    fn is_safe(&mut self, inode: Inode) -> bool {
        let Ok(path) = self.path(inode) else { return false };
        self.stat_at(&path).is_ok_and(|found| found.inode == inode) && self.sync(inode).is_ok()
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
        self.open_at(inode, &path)
    }

    /// Opens a file by its path.
    fn open_at(&mut self, inode: Inode, path: &[u8]) -> Result<()> {
        let file = self.opening(true, |base| {
            let file = base.open(path, How::default(), 0)?;
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

    /// A file that is held, and is at this path, is to be open before its name goes: nobody could open it afterwards.
    fn keep(&mut self, inode: Inode, path: &[u8]) -> Result<()> {
        let Some(open) = self.files.get(&inode).filter(|open| open.is_held && !open.is_lost) else {
            return Ok(());
        };
        if open.file.is_none() {
            match self.open_at(inode, path) {
                // Others have moved it since.
                Err(Error::NotFound) => return Ok(()),
                opened => opened?,
            }
        }
        self.leave_room(inode, path)
    }

    /// A file that loses its name stays open. Fails unless there is room for one more, so that files in use that are not open can be opened in turn.
    fn leave_room(&mut self, inode: Inode, path: &[u8]) -> Result<()> {
        let waits = |open: &Open<FileOf<S>>| open.is_held && open.file.is_none() && !open.is_lost;
        if !self.files.values().any(waits) {
            return Ok(());
        }
        let has_name = |file: Inode| self.places.get(file).is_ok_and(Option::is_none);
        let mut others = self.files.iter().filter(|(other, open)| **other != inode && open.file.is_some());
        if others.any(|(&other, open)| !open.is_held || has_name(other)) {
            return Ok(());
        }
        // If it can be opened once more, something else can be.
        let once_more = |base: &S::Directory| base.open(path, How::default(), 0);
        match self.opening_one_more(true, &once_more) {
            Err(Error::TooManyOpen) => Err(Error::TooManyOpen),
            _ => Ok(()),
        }
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
