//! A part of a file system: the count that is kept while files come and go is the one that somebody finds who counts again, and it stays below its limit.

use crate::as_on_linux::{Folder, Random, programs};
use crate::ext4_on_disk::{KINDS, made_by_linux, mount};
use crate::served::Served;
use vfs::page::Plain;
use vfs::path::Last;
use vfs::remote::Remote;
use vfs::{Amount, Error, FileSystem, How, Inode, Quota, Ram, Volume};

const CREATE: How = How { create: true, exclusive: false, truncate: false };

const NAMES: [&str; 12] = ["a", "b", "c", "d", "d/a", "d/b", "d/c", "e", "e/a", "e/f", "e/f/a", "e/f/b"];

/// Part that may be used.
const LIMIT: Amount = Amount { bytes: 160 << 10, files: 9 };

/// Bytes beyond that: of each file one block in which a file system notes where bytes lie.
const BESIDE: u64 = LIMIT.files * 4096;

/// A part in use, with a few files that are open.
struct Parted<F: FileSystem> {
    volume: Volume<Quota<F>>,
    open: Vec<Inode>,
    random: Random,
    /// Whether something was refused for want of room.
    was_full: bool,
}

impl<F: FileSystem> Parted<F> {
    fn new(fs: F, seed: u64) -> Parted<F> {
        let volume = Volume::new(Quota::new(fs, LIMIT).unwrap());
        Parted { volume, open: Vec::new(), random: Random(seed), was_full: false }
    }

    /// Does something at random. Whether it can be done is a matter of the rest.
    fn act(&mut self) {
        let root = self.volume.root();
        let mut name = || NAMES[self.random.below(NAMES.len() as u64) as usize].as_bytes();
        let (first, second) = (name(), name());
        let done = match self.random.below(14) {
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
        for file in std::mem::take(&mut self.open) {
            self.volume.close(file).unwrap();
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
