//! Files of which it is known when others change them, as those of a server: who asks after the beginning of a call hears of all that was changed before.

use core::cell::Cell;
use std::rc::Rc;
use std::vec::Vec;
use vfs::page::Plain;
use vfs::{Attributes, Changes, Entry, FileSystem, Inode, Name, New, Ram, Result, Space};

/// Files in memory, how often others have changed them, and how often somebody has waited for the disk.
#[derive(Debug)]
pub struct Counted(Ram<Plain>, Rc<Cell<u64>>, Rc<Cell<u64>>);

impl Counted {
    /// So many bytes, and the number that whoever changes something past the store makes greater.
    pub fn new(bytes: u64) -> (Counted, Rc<Cell<u64>>) {
        let others = Rc::new(Cell::new(1));
        (Counted(Ram::new(bytes, || 7), others.clone(), Rc::default()), others)
    }

    /// How often somebody has waited for the disk; it goes on counting.
    pub fn syncs(&self) -> Rc<Cell<u64>> {
        self.2.clone()
    }
}

impl FileSystem for Counted {
    fn root(&self) -> Inode {
        self.0.root()
    }
    fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        self.0.attributes(inode)
    }
    fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()> {
        self.0.change(inode, changes)
    }
    fn lookup(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        self.0.lookup(directory, name)
    }
    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>> {
        self.0.readdir(directory, cursor, count_max)
    }
    fn create(&mut self, directory: Inode, name: Name, new: New, permissions: u16) -> Result<Inode> {
        self.0.create(directory, name, new, permissions)
    }
    fn link(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()> {
        self.0.link(inode, directory, name)
    }
    fn unlink(&mut self, directory: Inode, name: Name) -> Result<()> {
        self.0.unlink(directory, name)
    }
    fn rmdir(&mut self, directory: Inode, name: Name) -> Result<()> {
        self.0.rmdir(directory, name)
    }
    fn rename(&mut self, from: Inode, name: Name, to: Inode, new_name: Name) -> Result<()> {
        self.0.rename(from, name, to, new_name)
    }
    fn forget(&mut self, inode: Inode) -> Result<()> {
        self.0.forget(inode)
    }
    fn readlink(&mut self, inode: Inode) -> Result<Vec<u8>> {
        self.0.readlink(inode)
    }
    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        self.0.read(inode, offset, to)
    }
    fn write(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        self.0.write(inode, offset, from)
    }
    fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        self.0.truncate(inode, len)
    }
    fn sync(&mut self, inode: Inode) -> Result<()> {
        self.2.set(self.2.get() + 1);
        self.0.sync(inode)
    }
    fn space(&mut self) -> Result<Space> {
        self.0.space()
    }
    fn others(&mut self) -> Option<u64> {
        Some(self.1.get())
    }
    fn hold(&mut self, inode: Inode) -> Result<()> {
        self.0.hold(inode)
    }
    fn release(&mut self, inode: Inode) {
        self.0.release(inode);
    }
}
