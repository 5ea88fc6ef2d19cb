//! A server of files without a machine, for tests: objects that are open in a volume, which all end when the server does.

use super::{Answer, Directory, Failure, File, Server};
use crate::path::Last;
use crate::{Attributes, Changes, Entry, Error, FileSystem, How, Inode, Result, Space, Volume};
use alloc::collections::BTreeSet;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

/// The server. A clone is the server itself.
pub struct Served<F>(Rc<State<F>>);

struct State<F> {
    /// None only while it is started anew.
    volume: RefCell<Option<Volume<F>>>,
    /// How often it was started anew.
    starts: Cell<u64>,
    open: Cell<usize>,
    open_max: usize,
    /// Objects that each who connects may have, with the one that he connects by.
    share_max: usize,
    /// Changes that it has counted.
    changes: Cell<u64>,
    /// Calls of its objects.
    calls: Cell<u64>,
    /// How often it still starts anew right after somebody has connected.
    restarts: Cell<usize>,
    /// Files that were written to and not synced.
    unsynced: RefCell<BTreeSet<Inode>>,
    /// How often a file with a name was closed that was not synced.
    closed_unsynced: Cell<usize>,
    has_bad_syncs: Cell<bool>,
    /// It starts anew before it takes a name away.
    ends_before_names: Cell<bool>,
}

/// An object of the server.
pub struct Object<F: FileSystem> {
    state: Rc<State<F>>,
    /// Objects of the client whose this one is.
    account: Rc<Cell<usize>>,
    inode: Inode,
    start: u64,
}

impl<F> Clone for Served<F> {
    fn clone(&self) -> Served<F> {
        Served(self.0.clone())
    }
}

impl<F: FileSystem> Served<F> {
    /// A server that has at most so many objects.
    pub fn new(fs: F, open_max: usize) -> Served<F> {
        Served::with_shares(fs, open_max, open_max)
    }

    /// A server that has at most so many objects, and of these so many for each time that somebody connects.
    pub fn with_shares(fs: F, open_max: usize, share_max: usize) -> Served<F> {
        let volume = RefCell::new(Some(Volume::new(fs)));
        Served(Rc::new(State {
            volume,
            starts: Cell::new(0),
            open: Cell::new(0),
            open_max,
            share_max,
            changes: Cell::new(1),
            calls: Cell::new(0),
            restarts: Cell::new(0),
            unsynced: RefCell::default(),
            closed_unsynced: Cell::new(0),
            has_bad_syncs: Cell::new(false),
            ends_before_names: Cell::new(false),
        }))
    }

    /// Ends and starts anew. What its file system does not keep is lost.
    pub fn restart(&self, lose: impl FnOnce(F) -> F) {
        self.0.starts.set(self.0.starts.get() + 1);
        self.0.open.set(0);
        self.0.changes.set(1);
        self.0.unsynced.borrow_mut().clear();
        let volume = self.0.volume.take();
        // Only the old volume knew what is open; what has no name stays for ever, and no test looks at that.
        self.0.volume.replace(volume.map(|volume| Volume::new(lose(volume.into_inner()))));
    }

    /// Starts anew each time right after somebody has connected, so often.
    pub fn restart_when_connected(&self, times: usize) {
        self.0.restarts.set(times);
    }

    /// Starts anew right before a name is taken away the next time.
    pub fn restart_before_a_name_goes(&self) {
        self.0.ends_before_names.set(true);
    }

    /// Lets each sync fail from now on, or none.
    pub fn let_syncs_fail(&self, has_bad_syncs: bool) {
        self.0.has_bad_syncs.set(has_bad_syncs);
    }

    /// How often its objects were called.
    pub fn calls(&self) -> u64 {
        self.0.calls.get()
    }

    /// How many objects are open.
    pub fn open_count(&self) -> usize {
        self.0.open.get()
    }

    /// How often a file with a name was closed that had been written to and not synced.
    pub fn closed_unsynced(&self) -> usize {
        self.0.closed_unsynced.get()
    }
}

impl<F: FileSystem> Object<F> {
    fn new(
        state: &Rc<State<F>>,
        account: &Rc<Cell<usize>>,
        open: impl FnOnce(&mut Volume<F>) -> Result<Inode>,
    ) -> Answer<Object<F>> {
        if state.open.get() >= state.open_max || account.get() >= state.share_max {
            return Err(Failure::Refused(Error::TooManyOpen));
        }
        let inode = open(state.volume.borrow_mut().as_mut().unwrap()).map_err(Failure::Refused)?;
        state.open.set(state.open.get() + 1);
        account.set(account.get() + 1);
        Ok(Object { state: state.clone(), account: account.clone(), inode, start: state.starts.get() })
    }

    fn with<T>(&self, run: impl FnOnce(&mut Volume<F>, Inode) -> Result<T>) -> Answer<T> {
        if self.start != self.state.starts.get() {
            return Err(Failure::NotBegun);
        }
        self.state.calls.set(self.state.calls.get() + 1);
        run(self.state.volume.borrow_mut().as_mut().unwrap(), self.inode).map_err(Failure::Refused)
    }

    /// Like [`Self::with`], and counts a change.
    fn changing<T>(&self, run: impl FnOnce(&mut Volume<F>, Inode) -> Result<T>) -> Answer<T> {
        self.changing_by(1, run)
    }

    /// Like [`Self::with`], and counts so many changes.
    fn changing_by<T>(&self, count: u64, run: impl FnOnce(&mut Volume<F>, Inode) -> Result<T>) -> Answer<T> {
        self.with(|volume, inode| {
            let done = run(volume, inode);
            self.state.changes.set(self.state.changes.get() + count);
            done
        })
    }

    fn opens(&self, run: impl FnOnce(&mut Volume<F>, Inode) -> Result<Inode>) -> Answer<Object<F>> {
        self.with(|_, _| Ok(()))?;
        Object::new(&self.state, &self.account, |volume| run(volume, self.inode))
    }

    /// Takes a name away.
    fn taking_name(&self, run: impl FnOnce(&mut Volume<F>, Inode) -> Result<()>) -> Answer<()> {
        if self.state.ends_before_names.take() {
            Served(self.state.clone()).restart(|fs| fs);
        }
        self.changing(run)
    }

    /// Writes to a file, which is not safe then.
    fn writing<T>(&self, run: impl FnOnce(&mut Volume<F>, Inode) -> Result<T>) -> Answer<T> {
        let written = self.changing(run)?;
        self.state.unsynced.borrow_mut().insert(self.inode);
        Ok(written)
    }

    fn syncing(&self) -> Answer<()> {
        let is_bad = self.state.has_bad_syncs.get();
        self.with(|volume, inode| if is_bad { Err(Error::Io) } else { volume.sync(inode) })
    }
}

impl<F: FileSystem> Drop for Object<F> {
    fn drop(&mut self) {
        if self.start == self.state.starts.get() {
            self.state.open.set(self.state.open.get() - 1);
            self.account.set(self.account.get() - 1);
            let mut volume = self.state.volume.borrow_mut();
            let volume = volume.as_mut().unwrap();
            let is_last = volume.times_open(self.inode) == 1;
            if is_last && self.state.unsynced.borrow_mut().remove(&self.inode) {
                let has_name = volume.attributes(self.inode).unwrap().links > 0;
                self.state.closed_unsynced.update(|count| count + usize::from(has_name));
            }
            volume.close(self.inode).unwrap();
        }
    }
}

impl<F: FileSystem> Server for Served<F> {
    type Directory = Object<F>;

    fn connect(&mut self) -> Result<Object<F>> {
        let opened = Object::new(&self.0, &Rc::default(), |volume| Ok(volume.root()));
        let root = opened.map_err(|_| Error::TooManyOpen)?;
        if let Some(left) = self.0.restarts.get().checked_sub(1) {
            self.0.restarts.set(left);
            self.restart(|fs| fs);
        }
        Ok(root)
    }
}

impl<F: FileSystem> Directory for Object<F> {
    type File = Object<F>;

    fn open(&self, path: &[u8], how: How, permissions: u16) -> Answer<Object<F>> {
        self.opens(|volume, base| {
            let opened = volume.open(base, path, how, permissions);
            if how != How::default() {
                self.state.changes.set(self.state.changes.get() + 1);
            }
            opened
        })
    }
    fn enter(&self, path: &[u8]) -> Answer<Object<F>> {
        self.opens(|volume, base| volume.enter(base, path))
    }
    fn stat(&self, path: &[u8]) -> Answer<Attributes> {
        self.with(|volume, base| volume.attributes_at(base, path, Last::Stay))
    }
    fn readdir(&self, cursor: u64) -> Answer<Vec<Entry>> {
        self.with(|volume, base| volume.readdir(base, cursor, 14))
    }
    fn mkdir(&self, path: &[u8], permissions: u16) -> Answer<()> {
        self.changing(|volume, base| volume.mkdir(base, path, permissions))
    }
    fn symlink(&self, target: &[u8], path: &[u8]) -> Answer<()> {
        self.changing(|volume, base| volume.symlink(base, target, path))
    }
    fn readlink(&self, path: &[u8]) -> Answer<Vec<u8>> {
        self.with(|volume, base| volume.readlink(base, path))
    }
    fn link(&self, existing: &[u8], path: &[u8]) -> Answer<()> {
        self.changing(|volume, base| volume.link(base, existing, path))
    }
    fn rename(&self, existing: &[u8], path: &[u8]) -> Answer<()> {
        self.taking_name(|volume, base| volume.rename(base, existing, path))
    }
    fn unlink(&self, path: &[u8]) -> Answer<()> {
        self.taking_name(|volume, base| volume.unlink(base, path))
    }
    fn rmdir(&self, path: &[u8]) -> Answer<()> {
        self.changing(|volume, base| volume.rmdir(base, path))
    }
    fn change(&self, changes: &Changes) -> Answer<()> {
        self.changing_by(changes.count(), |volume, base| volume.change(base, changes))
    }
    fn sync(&self) -> Answer<()> {
        self.syncing()?;
        self.state.unsynced.borrow_mut().clear();
        Ok(())
    }
    fn space(&self) -> Answer<Space> {
        self.with(|volume, _| volume.space())
    }
    fn changes(&self) -> Answer<u64> {
        self.with(|_, _| Ok(self.state.changes.get()))
    }
}

impl<F: FileSystem> File for Object<F> {
    fn stat(&self) -> Answer<Attributes> {
        self.with(|volume, file| volume.attributes(file))
    }
    fn read(&self, offset: u64, to: &mut [u8]) -> Answer<usize> {
        let count = to.len().min(4096);
        self.with(|volume, file| volume.read(file, offset, &mut to[..count]))
    }
    fn write(&self, offset: u64, from: &[u8]) -> Answer<usize> {
        self.writing(|volume, file| volume.write(file, offset, &from[..from.len().min(4096)]))
    }
    fn truncate(&self, len: u64) -> Answer<()> {
        self.writing(|volume, file| volume.truncate(file, len))
    }
    fn change(&self, changes: &Changes) -> Answer<()> {
        self.changing_by(changes.count(), |volume, file| volume.change(file, changes))
    }
    fn sync(&self) -> Answer<()> {
        self.syncing()?;
        self.state.unsynced.borrow_mut().remove(&self.inode);
        Ok(())
    }
}
