//! A part of a file system: the count that is kept while files come and go is the one that somebody finds who counts again, and it stays below its limit.

use crate::as_on_linux::{Folder, Random, programs};
use crate::ext4_on_disk::{KINDS, made_by_linux, mount};
use crate::served::Served;
use vfs::page::Plain;
use vfs::path::Last;
use vfs::remote::Remote;
use vfs::{Amount, Before, Cached, Error, FileSystem, How, Inode, Quota, Ram, Volume};

const CREATE: How = How { create: true, exclusive: false, truncate: false };

const NAMES: [&str; 12] = ["a", "b", "c", "d", "d/a", "d/b", "d/c", "e", "e/a", "e/f", "e/f/a", "e/f/b"];

/// Part that may be used.
const LIMIT: Amount = Amount { bytes: 160 << 10, files: 9 };

/// Bytes beyond that: of each file one block in which a file system notes where bytes lie.
const BESIDE: u64 = LIMIT.files * 4096;

/// A part in use, with a few files and directories that are open.
struct Parted<F: FileSystem> {
    volume: Volume<Quota<F>>,
    open: Vec<Inode>,
    entered: Vec<Inode>,
    random: Random,
    /// Whether something was refused for want of room.
    was_full: bool,
}

impl<F: FileSystem> Parted<F> {
    fn new(fs: F, seed: u64) -> Parted<F> {
        let volume = Volume::new(Quota::new(fs, LIMIT).unwrap());
        Parted { volume, open: Vec::new(), entered: Vec::new(), random: Random(seed), was_full: false }
    }

    /// Does something at random. Whether it can be done is a matter of the rest.
    fn act(&mut self) {
        let root = self.volume.root();
        let mut name = || NAMES[self.random.below(NAMES.len() as u64) as usize].as_bytes();
        let (first, second) = (name(), name());
        let done = match self.random.below(18) {
            14 => self.enter(first),
            15..17 => self.attach(first),
            17 => self.fill(),
            0..3 => self.volume.open(root, first, CREATE, 0o600).map(|file| self.open.push(file)),
            3 => self.volume.mkdir(root, first, 0o700),
            4 => self.volume.symlink(root, &[b'x'; 100], first),
            5 => self.volume.link(root, first, second),
            6 => self.volume.rename(root, first, second),
            7 => self.volume.unlink(root, first),
            8 => self.volume.rmdir(root, first),
            9 => self.close(),
            choice => self.change(choice),
        };
        self.was_full |= done == Err(Error::NoSpace);
    }

    /// Sets an extended attribute of a file or directory, or removes it.
    fn attach(&mut self, path: &[u8]) -> vfs::Result<()> {
        let root = self.volume.root();
        let inode = self.volume.attributes_at(root, path, Last::Stay)?.inode;
        if self.random.chance(3) {
            return self.volume.remove_xattr(inode, b"user.some");
        }
        let value = vec![7; self.random.below(600) as usize];
        self.volume.set_xattr(inode, b"user.some", &value, Before::Any)
    }

    /// Makes names in a directory until it takes more room, and removes them again.
    fn fill(&mut self) -> vfs::Result<()> {
        let root = self.volume.root();
        let file = self.volume.open(root, b"d/a", CREATE, 0o600)?;
        let name = |number| format!("d/{number:0>200}").into_bytes();
        let made = (0..40).map_while(|number| self.volume.link(root, b"d/a", &name(number)).ok()).count();
        (0..made).try_for_each(|number| self.volume.unlink(root, &name(number)))?;
        self.volume.close(file)
    }

    /// Opens a directory, and closes another one.
    fn enter(&mut self, path: &[u8]) -> vfs::Result<()> {
        if self.entered.len() > 2 {
            let at = self.random.below(self.entered.len() as u64) as usize;
            self.volume.close(self.entered.swap_remove(at))?;
        }
        let root = self.volume.root();
        self.volume.enter(root, path).map(|directory| self.entered.push(directory))
    }

    fn close(&mut self) -> vfs::Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        let at = self.random.below(self.open.len() as u64) as usize;
        self.volume.close(self.open.swap_remove(at))
    }

    /// Writes to an open file, or moves its end.
    fn change(&mut self, choice: u64) -> vfs::Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        let file = self.open[self.random.below(self.open.len() as u64) as usize];
        let end = self.volume.len(file)?;
        let offset = [0, end, end + self.random.below(60_000)][self.random.below(3) as usize];
        if choice == 10 {
            return self.volume.truncate(file, offset / 2);
        }
        let bytes = vec![7; 1 + self.random.below(30_000) as usize];
        let count = self.volume.write(file, offset, &bytes)?;
        assert!(count > 0 && self.volume.len(file)? >= offset + count as u64);
        Ok(())
    }

    /// Closes all and counts again.
    fn count_again(mut self, seed: u64) -> F {
        for inode in self.open.drain(..).chain(self.entered.drain(..)) {
            self.volume.close(inode).unwrap();
        }
        let mut quota = self.volume.into_inner();
        let known = quota.used().unwrap();
        assert!(known.files <= LIMIT.files && known.bytes <= LIMIT.bytes + BESIDE, "seed {seed}: {known:?}");
        let all = Amount { bytes: u64::MAX, files: u64::MAX };
        let mut again = Quota::new(quota.into_inner(), all).unwrap();
        assert_eq!(again.used(), Some(known), "seed {seed}");
        again.into_inner()
    }
}

/// Runs a random program, and goes on with what is there after it was counted again.
fn run<F: FileSystem>(mut fs: F, seed: u64) -> bool {
    let mut was_full = false;
    for round in 0..4 {
        let mut parted = Parted::new(fs, seed * 4 + round);
        for _ in 0..150 {
            parted.volume.begin();
            parted.act();
        }
        was_full |= parted.was_full;
        fs = parted.count_again(seed);
    }
    was_full
}

#[test]
fn a_part_is_counted_while_it_changes() {
    let full = (1..=programs()).filter(|&seed| run(Ram::<Plain>::new(16 << 20, || 0), seed)).count();
    assert!(full > 0, "no program was refused anything");
}

#[test]
fn a_part_that_somebody_serves() {
    let served = |_| Remote::new(Served::new(Ram::<Plain>::new(16 << 20, || 0), 100)).unwrap();
    let full = (1..=programs()).filter(|&seed| run(served(seed), seed)).count();
    assert!(full > 0, "no program was refused anything");
}

#[test]
fn a_part_of_files_that_have_pages() {
    let pages = || Cached::<_, Plain>::keeping(Ram::<Plain>::new(16 << 20, || 0), 20);
    let served = |_| Remote::new(Served::new(pages(), 100)).unwrap();
    let full = (1..=programs()).filter(|&seed| run(served(seed), seed)).count();
    assert!(full > 0, "no program was refused anything");
}

#[test]
fn a_part_of_a_disk() {
    let folder = Folder::new("quota");
    for (number, options) in KINDS.into_iter().enumerate() {
        let disk = made_by_linux(&folder, 32, options);
        let mut volume = Volume::new(mount(disk, || 0).unwrap());
        let root = volume.root();
        let _ = volume.rmdir(root, b"lost+found");
        assert!(run(volume.into_inner(), 1 + number as u64), "{options:?}");
    }
}

/// Numbers of inodes are used again by a disk, and what is open has its own as long as it is.
#[test]
fn a_part_of_a_disk_that_somebody_serves() {
    let folder = Folder::new("served-quota");
    for seed in 1..=programs() {
        let mut volume = Volume::new(mount(made_by_linux(&folder, 32, KINDS[0]), || 0).unwrap());
        let root = volume.root();
        let _ = volume.rmdir(root, b"lost+found");
        run(Remote::new(Served::new(volume.into_inner(), 100)).unwrap(), seed);
    }
}

/// Files that are not there any more by somebody else's hand leave a count that is too high, and nothing worse.
#[test]
fn others_may_remove_files() {
    let served = Served::new(Ram::<Plain>::new(16 << 20, || 0), 100);
    let mut part = Volume::new(Quota::new(Remote::new(served.clone()).unwrap(), LIMIT).unwrap());
    let mut other = Volume::new(Remote::new(served.clone()).unwrap());
    let (root, others) = (part.root(), other.root());
    for name in NAMES[..4].iter().map(|name| name.as_bytes()) {
        let file = part.open(root, name, CREATE, 0o600).unwrap();
        part.write(file, 0, &[7; 5000]).unwrap();
        part.close(file).unwrap();
        other.begin();
        other.unlink(others, name).unwrap();
        part.begin();
        assert_eq!(part.attributes_at(root, name, Last::Stay).map(drop), Err(Error::NotFound));
    }
    let mut quota = part.into_inner();
    assert_eq!(quota.used().map(|used| used.files), Some(4));
    let mut again = Quota::new(quota.into_inner(), LIMIT).unwrap();
    assert_eq!(again.used(), Some(Amount::default()));
}
