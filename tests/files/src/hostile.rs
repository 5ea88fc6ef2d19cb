//! Clients that mean no good, and disks that do no good.

use crate::as_on_linux::{Folder, Random, ext4, is_full};
use crate::ext4_on_disk::{KINDS, Memory, check_by_linux, made_by_linux, mount};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use vfs::page::Plain;
use vfs::path::{Last, NAMES_MAX};
use vfs::{Changes, Error, FileSystem, How, Kind, Ram, Result, Volume};

const CREATE: How = How { create: true, exclusive: false, truncate: false };

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Offsets and lengths that no file can have change nothing. `end` is the longest file.
fn numbers_have_bounds<F: FileSystem>(fs: F, end: u64) -> Result<()> {
    let mut volume = Volume::new(fs);
    let root = volume.root();
    let file = volume.open(root, b"file", CREATE, 0o644)?;
    volume.write(file, 0, b"text")?;
    for at in [end - 3, end, end + 1, 1 << 50, 1 << 62, i64::MAX as u64, 1 << 63, u64::MAX - 3, u64::MAX] {
        assert_eq!(volume.write(file, at, b"more"), Err(Error::TooLarge), "{at:x}");
        assert_eq!(volume.read(file, at, &mut [0; 9])?, 0, "{at:x}");
        if at > end {
            assert_eq!(volume.truncate(file, at), Err(Error::TooLarge), "{at:x}");
        }
        assert_eq!(volume.attributes(file)?.len, 4, "{at:x}");
    }
    assert_eq!(volume.write(file, end - 4, b"more"), Ok(4));
    assert_eq!(volume.attributes(file)?.len, end);
    volume.truncate(file, 4)?;
    let mut all = [0; 9];
    assert_eq!((volume.read(file, 0, &mut all)?, &all[..4]), (4, &b"text"[..]));
    // A time that the disk does not have is the last that it has, and not one long ago.
    for late in [u32::MAX.into(), (1 << 32) + 5, u64::MAX / SECOND] {
        let changes = Changes { times: Some((late * SECOND, late * SECOND)), ..Changes::default() };
        volume.change(file, &changes)?;
        assert!(volume.attributes(file)?.modified >= u64::from(u32::MAX) * SECOND, "{late}");
    }
    for (len, outcome) in
        [(4095, Ok(())), (4096, Err(Error::NameTooLong)), (1 << 20, Err(Error::NameTooLong))]
    {
        let name = format!("link-{len}");
        assert_eq!(volume.symlink(root, &vec![b'a'; len], name.as_bytes()), outcome);
        assert_eq!(volume.readlink(root, name.as_bytes()).is_ok_and(|to| to.len() == len), outcome.is_ok());
    }
    Ok(())
}

#[test]
fn numbers_in_memory_have_bounds() -> Result<()> {
    numbers_have_bounds(Ram::<Plain>::new(1 << 20, || 0), 1 << 46)
}

#[test]
fn numbers_on_a_disk_have_bounds() -> Result<()> {
    numbers_have_bounds(ext4(), u64::from(u32::MAX) * 4096)
}

/// Cursors that nobody has given are no more than wrong: what is listed is there.
#[test]
fn cursors_that_nobody_has_given() -> Result<()> {
    let mut volume = Volume::new(ext4());
    let root = volume.root();
    volume.mkdir(root, b"small", 0o755)?;
    for number in 0..600 {
        volume.symlink(root, b"nowhere", format!("name-{number}").as_bytes())?;
        if number < 20 {
            volume.symlink(root, b"nowhere", format!("small/name-{number}").as_bytes())?;
        }
    }
    let small = volume.enter(root, b"small")?;
    let mut random = Random(1);
    for round in 0..4000u64 {
        let cursor = (random.below(1 << 31) << 33 | random.below(1 << 31) << 2) >> random.below(64);
        let cursor = cursor | (round & 1) << 63;
        for directory in [root, small] {
            let Ok(entries) = volume.readdir(directory, cursor, 14) else { continue };
            for entry in entries.iter().filter(|entry| entry.kind == Kind::Symlink) {
                let found = volume.attributes_at(directory, &entry.name, Last::Stay)?;
                assert_eq!(found.inode, entry.inode, "cursor {cursor:x}");
            }
        }
    }
    Ok(())
}

/// A directory of very many files, some of which have the longest names: each is found and listed once, and goes again. While they are there, the file system is given away
/// for a moment. Gives it back in the end.
fn many_files<F: FileSystem>(fs: F, count: usize, again: impl FnOnce(F) -> Result<F>) -> Result<F> {
    let mut volume = Volume::new(fs);
    let root = volume.root();
    let before = volume.space()?.free;
    volume.mkdir(root, b"many", 0o755)?;
    let many = volume.enter(root, b"many")?;
    let name = |number: usize| match number % 10 {
        0 => format!("{number:x>255}").into_bytes(),
        _ => format!("{number}").into_bytes(),
    };
    for number in 0..count {
        let file = volume.open(many, &name(number), CREATE, 0o644)?;
        volume.close(file)?;
    }
    assert_eq!(volume.open(many, &[b'x'; 256], CREATE, 0o644), Err(Error::NameTooLong));
    let (mut found, mut cursor) = (BTreeSet::new(), 0);
    loop {
        let entries = volume.readdir(many, cursor, 14)?;
        let Some(last) = entries.last() else { break };
        cursor = last.next;
        for entry in entries.into_iter().filter(|entry| entry.kind == Kind::File) {
            assert!(found.insert(entry.name), "listed twice");
        }
    }
    assert!(found == (0..count).map(name).collect(), "all of them are listed, and nothing else");
    volume.close(many)?;
    let mut volume = Volume::new(again(volume.into_inner())?);
    let root = volume.root();
    let many = volume.enter(root, b"many")?;
    for number in 0..count {
        assert_eq!(volume.attributes_at(many, &name(number), Last::Stay)?.len, 0);
        volume.unlink(many, &name(number))?;
    }
    volume.close(many)?;
    volume.rmdir(root, b"many")?;
    volume.sync(root)?;
    assert_eq!(volume.space()?.free, before);
    Ok(volume.into_inner())
}

#[test]
fn directories_in_memory_may_be_large() -> Result<()> {
    many_files(Ram::<Plain>::new(1 << 30, || 0), if is_full() { 100_000 } else { 5_000 }, Ok).map(drop)
}

#[test]
fn directories_on_a_disk_may_be_large() -> Result<()> {
    let folder = Folder::new("many");
    // Inodes of several groups, none of which has as many as its bitmap has bits.
    let (count, options) = match is_full() {
        true => (100_000, ["-t", "ext4", "-b", "4096", "-N", "120000"]),
        false => (1_000, ["-t", "ext4", "-g", "4096", "-N", "1200"]),
    };
    let disk = made_by_linux(&folder, 64, &options);
    let fs = many_files(mount(disk.clone(), || 0)?, count, |fs| {
        fs.unmount()?;
        check_by_linux(&folder, &disk.0.borrow());
        mount(disk.clone(), || 0)
    })?;
    fs.unmount()?;
    check_by_linux(&folder, &disk.0.borrow());
    Ok(())
}

/// A path of many names takes as long as it is, and not the square of that: this one would take days.
#[test]
fn long_paths_end() -> Result<()> {
    let mut volume = Volume::new(Ram::<Plain>::new(1 << 20, || 0));
    let root = volume.root();
    assert_eq!(volume.enter(root, &b"./".repeat(4 << 20))?, root);
    assert_eq!(volume.enter(root, &b"../".repeat(1 << 20))?, root);
    Ok(())
}

/// Symbolic links that lead through very many directories, one after the other: a walk looks up so many names, and then it is over.
#[test]
fn walks_through_many_directories_end() -> Result<()> {
    let mut volume = Volume::new(Ram::<Plain>::new(4 << 20, || 0));
    let root = volume.root();
    let (depth, mut deep) = (NAMES_MAX / 5 * 2, b"d".to_vec());
    volume.mkdir(root, &deep, 0o755)?;
    for _ in 1..depth {
        deep.extend(b"/d");
        volume.mkdir(root, &deep, 0o755)?;
    }
    volume.symlink(root, &deep, b"l")?;
    volume.symlink(root, &[b"/", &deep[..]].concat(), &[&deep[..], b"/l"].concat())?;
    let whole = volume.enter(root, &deep)?;
    assert_eq!(volume.enter(root, b"l/l")?, whole);
    for path in [&b"l/l/l"[..], &b"l/".repeat(40)] {
        assert_eq!(volume.enter(root, path), Err(Error::Loop));
    }
    Ok(())
}

/// A disk that is full to its last block loses none of them, and gives all back.
#[test]
fn a_full_disk_loses_no_blocks() {
    for (number, options) in KINDS.into_iter().enumerate() {
        let folder = Folder::new(&format!("full-{number}"));
        let disk = made_by_linux(&folder, 8, options);
        let mut volume = Volume::new(mount(disk.clone(), || 0).unwrap());
        let root = volume.root();
        let before = volume.space().unwrap();
        let file = volume.open(root, b"large", CREATE, 0o644).unwrap();
        // Pieces that begin and end in the middle of blocks.
        let piece = [7; 3000];
        let mut len = 0;
        let error = loop {
            match volume.append(file, &piece) {
                Ok(at) => {
                    assert_eq!(at, len);
                    len += piece.len() as u64;
                }
                Err(error) => break error,
            }
        };
        assert_eq!((error, volume.attributes(file).unwrap().len), (Error::NoSpace, len), "{options:?}");
        // A write takes as much as fits.
        let mut end = len;
        while let Ok(more) = volume.write(file, end, &piece) {
            end += more as u64;
        }
        assert!(end - len < 3000 && end + 32768 > before.free, "{options:?}: {end} of {}", before.free);
        assert_eq!(volume.space().unwrap().free, 0, "{options:?}");
        assert_eq!(volume.mkdir(root, b"directory", 0o755), Err(Error::NoSpace), "{options:?}");
        assert!(matches!(
            volume.symlink(root, &[b'x'; 1500], b"link"),
            Err(Error::NoSpace | Error::NameTooLong)
        ));
        volume.unlink(root, b"large").unwrap();
        volume.close(file).unwrap();
        assert_eq!(volume.space().unwrap(), before, "{options:?}");
        volume.into_inner().unmount().unwrap();
        check_by_linux(&folder, &disk.0.borrow());
    }
}

/// A disk that fails after so many requests, for so many of them.
#[derive(Clone)]
struct Failing {
    disk: Memory,
    left: Rc<Cell<i64>>,
    failures: i64,
}

impl Failing {
    fn request(&self) -> Result<()> {
        let left = self.left.get() - 1;
        self.left.set(left);
        if (-self.failures..0).contains(&left) { Err(Error::Io) } else { Ok(()) }
    }
}

impl ext4::Disk for Failing {
    fn sector_bytes(&self) -> u32 {
        self.disk.sector_bytes()
    }

    fn sectors(&self) -> u64 {
        self.disk.sectors()
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<()> {
        self.request()?;
        self.disk.read(first, to)
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<()> {
        self.request()?;
        self.disk.write(first, from)
    }

    fn flush(&mut self) -> Result<()> {
        self.request()?;
        self.disk.flush()
    }
}

/// Whenever a disk fails, for a while or for good: operations fail, and nothing panics or stays open.
#[test]
fn a_disk_that_fails_ends_no_server() {
    let folder = Folder::new("failing");
    let whole = made_by_linux(&folder, 8, KINDS[0]).0.borrow().clone();
    let mut failed = 0;
    for seed in 0..60 {
        let mut random = Random(seed);
        let left = Rc::new(Cell::new(i64::MAX));
        let failures = [1, 3, 20, 1 << 40][seed as usize % 4];
        let disk = Failing { disk: Memory::of(whole.clone()), left: left.clone(), failures };
        let mut volume = Volume::new(mount(disk, || 0).unwrap());
        let root = volume.root();
        left.set(random.below(400) as i64);
        for step in 0..60 {
            let name = format!("file-{}", random.below(8));
            let mut outcome = volume.open(root, name.as_bytes(), CREATE, 0o644).and_then(|file| {
                let written = volume.write(file, random.below(30_000), &[3; 3000]);
                volume.close(file).and(written.map(drop))
            });
            if random.chance(3) {
                outcome = outcome.and(volume.unlink(root, name.as_bytes()));
            }
            if random.chance(3) {
                outcome = outcome.and(volume.mkdir(root, format!("directory-{step}").as_bytes(), 0o755));
            }
            failed += u32::from(outcome.and(volume.sync(root)).is_err());
        }
        assert_eq!(volume.open_count(), 1, "seed {seed}: only the root is open");
    }
    assert!(failed > 100, "{failed}");
}
