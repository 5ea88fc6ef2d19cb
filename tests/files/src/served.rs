//! A server of files without a machine: objects that are open in a volume, which all end when the server does.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use vfs::path::Last;
use vfs::remote::{Answer, Directory, Failure, File, Server};
use vfs::{Attributes, Before, Changes, Entry, Error, FileSystem, How, Inode, Result, Space, Volume};

/// The server. A clone is the server itself.
pub struct Served<F>(Rc<State<F>>);

struct State<F> {
    /// None only while it is started anew.
    volume: RefCell<Option<Volume<F>>>,
    /// How often it was started anew.
    starts: Cell<u64>,
    open: Cell<usize>,
    open_max: usize,
    /// Changes that it has counted.
    changes: Cell<u64>,
    /// Calls of its objects.
    calls: Cell<u64>,
    /// How often it still starts anew right after somebody has connected.
    restarts: Cell<usize>,
}

/// An object of the server.
pub struct Object<F: FileSystem> {
    state: Rc<State<F>>,
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
        let volume = RefCell::new(Some(Volume::new(fs)));
        Served(Rc::new(State {
            volume,
            starts: Cell::new(0),
            open: Cell::new(0),
            open_max,
            restarts: Cell::new(0),
            changes: Cell::new(1),
            calls: Cell::new(0),
        }))
    }

    /// Ends and starts anew. What its file system does not keep is lost.
    pub fn restart(&self, lose: impl FnOnce(F) -> F) {
        self.0.starts.set(self.0.starts.get() + 1);
        self.0.open.set(0);
        self.0.changes.set(1);
        let volume = self.0.volume.take();
        // Only the old volume knew what is open; what has no name stays for ever, and no test looks at that.
        self.0.volume.replace(volume.map(|volume| Volume::new(lose(volume.into_inner()))));
    }

    /// Starts anew each time right after somebody has connected, so often.
    pub fn restart_when_connected(&self, times: usize) {
        self.0.restarts.set(times);
    }

    /// How often its objects were called.
    pub fn calls(&self) -> u64 {
        self.0.calls.get()
    }

    /// How many objects are open.
    pub fn open_count(&self) -> usize {
        self.0.open.get()
    }
}

impl<F: FileSystem> Object<F> {
    fn new(state: &Rc<State<F>>, open: impl FnOnce(&mut Volume<F>) -> Result<Inode>) -> Answer<Object<F>> {
        if state.open.get() >= state.open_max {
            return Err(Failure::Refused(Error::TooManyOpen));
        }
        let inode = open(state.volume.borrow_mut().as_mut().unwrap()).map_err(Failure::Refused)?;
        state.open.set(state.open.get() + 1);
        Ok(Object { state: state.clone(), inode, start: state.starts.get() })
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
        Object::new(&self.state, |volume| run(volume, self.inode))
    }
}

impl<F: FileSystem> Drop for Object<F> {
    fn drop(&mut self) {
        if self.start == self.state.starts.get() {
            self.state.open.set(self.state.open.get() - 1);
            self.state.volume.borrow_mut().as_mut().unwrap().close(self.inode).unwrap();
        }
    }
}

impl<F: FileSystem> Server for Served<F> {
    type Directory = Object<F>;

    fn connect(&mut self) -> Result<Object<F>> {
        let root = Object::new(&self.0, |volume| Ok(volume.root())).map_err(|_| Error::TooManyOpen)?;
        if let Some(left) = self.0.restarts.get().checked_sub(1) {
            self.0.restarts.set(left);
            self.restart(|fs| fs);
        }
        Ok(root)
    }
}

/// Calls that concern extended attributes, which files and directories have alike.
macro_rules! xattrs {
    () => {
        fn xattr(&self, name: &[u8]) -> Answer<Vec<u8>> {
            self.with(|volume, inode| volume.xattr(inode, name))
        }
        fn xattrs(&self) -> Answer<Vec<u8>> {
            self.with(Volume::xattrs)
        }
        fn set_xattr(&self, name: &[u8], value: &[u8], before: Before) -> Answer<()> {
            self.changing(|volume, inode| volume.set_xattr(inode, name, value, before))
        }
        fn remove_xattr(&self, name: &[u8]) -> Answer<()> {
            self.changing(|volume, inode| volume.remove_xattr(inode, name))
        }
    };
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
        self.changing(|volume, base| volume.rename(base, existing, path))
    }
    fn unlink(&self, path: &[u8]) -> Answer<()> {
        self.changing(|volume, base| volume.unlink(base, path))
    }
    fn rmdir(&self, path: &[u8]) -> Answer<()> {
        self.changing(|volume, base| volume.rmdir(base, path))
    }
    fn change(&self, changes: &Changes) -> Answer<()> {
        self.changing_by(changes.count(), |volume, base| volume.change(base, changes))
    }
    xattrs!();
    fn sync(&self) -> Answer<()> {
        self.with(|volume, base| volume.sync(base))
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
        self.changing(|volume, file| volume.write(file, offset, &from[..from.len().min(4096)]))
    }
    fn truncate(&self, len: u64) -> Answer<()> {
        self.changing(|volume, file| volume.truncate(file, len))
    }
    fn change(&self, changes: &Changes) -> Answer<()> {
        self.changing_by(changes.count(), |volume, file| volume.change(file, changes))
    }
    xattrs!();
    fn sync(&self) -> Answer<()> {
        self.with(|volume, file| volume.sync(file))
    }
}
