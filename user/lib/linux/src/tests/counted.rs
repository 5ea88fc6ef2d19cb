//! Files of which it is known when others change them, as those of a server: who asks after the beginning of a call hears of all that was changed before. It is counted how often
//! somebody asks for attributes, and waits for the disk.

use core::cell::Cell;
use std::rc::Rc;
use std::vec::Vec;
use vfs::page::Plain;
use vfs::{Attributes, Changes, Entry, FileSystem, How, Inode, Name, New, Ram, Result, Space, Volume};

/// Files in memory, how often others have changed them, how often somebody has waited for the disk, and how often somebody has asked for attributes.
#[derive(Debug)]
pub struct Counted(Ram<Plain>, Rc<Cell<u64>>, Rc<Cell<u64>>, Rc<Cell<u64>>);

impl Counted {
    /// So many bytes, and the number that whoever changes something past the store makes greater.
    pub fn new(bytes: u64) -> (Counted, Rc<Cell<u64>>) {
        let others = Rc::new(Cell::new(1));
        (Counted(Ram::new(bytes, || 7), others.clone(), Rc::default(), Rc::default()), others)
    }

    /// How often somebody has asked for attributes; it goes on counting.
    pub fn asked(&self) -> Rc<Cell<u64>> {
        self.3.clone()
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
        self.3.set(self.3.get() + 1);
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

/// A watch of a large directory asks for the attributes of none of its entries, and knows the names of those that are open.
#[test]
fn a_watch_asks_for_nothing_of_entries() {
    let (files, _) = Counted::new(16 << 20);
    let asked = files.asked();
    let mut volume = Volume::new(files);
    volume.tell_by_path();
    let root = volume.root();
    volume.mkdir(root, b"w", 0o755).unwrap();
    let how = How { create: true, ..How::default() };
    let mut open = Vec::new();
    for number in 0..800 {
        let [file, other, directory] = ["f", "l", "d"].map(|kind| std::format!("w/{kind}{number}"));
        let inode = volume.open(root, file.as_bytes(), how, 0o644).unwrap();
        if number % 8 == 0 {
            open.push(inode);
        } else {
            volume.close(inode).unwrap();
        }
        volume.link(root, file.as_bytes(), other.as_bytes()).unwrap();
        volume.mkdir(root, directory.as_bytes(), 0o755).unwrap();
    }
    let before = asked.get();
    volume.watch(root, b"w", 1).unwrap();
    assert!(asked.get() - before < 8, "{} times", asked.get() - before);
    // Those are known that lie among the first entries; for the rest the watch looks again.
    let known = open.iter().filter(|inode| !volume.watches_of(**inode).is_empty()).count();
    assert!(known > 20, "{known} of {}", open.len());
    let before = asked.get();
    assert_eq!(volume.write(open[0], 0, b"text"), Ok(4));
    assert_eq!((volume.events(1, 9).unwrap().len(), asked.get()), (1, before));
}
