//! Damaged ext4 file systems: each is refused, or read with errors, and nothing goes on for ever.
//!
//! Where metadata have checksums, hardly any damage gets behind them. So some of these images have their [checksums repaired](crate::sums) after the damage, as somebody
//! would who means harm; others have none.

use crate::as_on_linux::{Folder, Random, is_full};
use crate::ext4_on_disk::{KINDS, Memory, Mounted, made_by_linux, mount, run, tool};
use crate::sums;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::panic::catch_unwind;
use std::rc::Rc;
use vfs::path::Last;
use vfs::{Before, How, Inode, Result, Volume};

/// Requests to the disk by which all of a sound image is looked at, and changed here and there, times so many are as much as a damaged one may take.
const TIMES_MORE: u64 = 10;

/// Entries of a directory, at most. The sound ones have fewer than 100; damaged ones have no room for more in blocks of 64 KiB.
const ENTRIES_MAX: usize = 6000;

/// Where the superblock is, and an end of what comes right behind it.
const SUPERBLOCK: usize = 1024;
/// See [`SUPERBLOCK`].
const FRONT_END: usize = 8 << 10;

/// Each byte of files' contents.
const CONTENTS: u8 = 0xaa;

/// Files that have extended attributes.
const ATTRIBUTES: Range<usize> = 12..24;

/// Whether a byte is one of the file system's own, and says something: no file's, nor one of bitmaps' and of what nobody uses.
fn is_own(byte: u8) -> bool {
    !matches!(byte, 0 | 0xff | CONTENTS)
}

/// A disk that counts requests, and fails from a certain number on.
#[derive(Clone)]
struct Counted {
    disk: Memory,
    count: Rc<Cell<u64>>,
    count_max: u64,
}

impl Counted {
    fn new(bytes: Vec<u8>, count_max: u64) -> Counted {
        Counted { disk: Memory::of(bytes), count: Rc::default(), count_max }
    }

    fn count(&self) -> Result<()> {
        self.count.set(self.count.get() + 1);
        if self.count.get() > self.count_max { Err(vfs::Error::Io) } else { Ok(()) }
    }
}

impl ext4::Disk for Counted {
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
        self.count()?;
        self.disk.read(first, to)
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<()> {
        self.count()?;
        self.disk.write(first, from)
    }

    fn flush(&mut self) -> Result<()> {
        self.count()?;
        self.disk.flush()
    }
}

type Looked = Volume<Mounted<'static>>;

/// Reads all that can be read, and enters each directory once: in a damaged file system they may lead to one another. Whether each came to an end, after so many entries at most.
fn look_at_all(volume: &mut Looked, directory: Inode, entered: &mut BTreeSet<Inode>) -> bool {
    let (mut cursor, mut left) = (0, ENTRIES_MAX);
    while let Ok(entries) = volume.readdir(directory, cursor, 14) {
        let Some(last) = entries.last() else { break };
        cursor = last.next;
        let Some(rest) = left.checked_sub(entries.len()) else { return false };
        left = rest;
        for entry in entries {
            let _ = volume.attributes_at(directory, &entry.name, Last::Stay);
            let _ = volume.readlink(directory, &entry.name);
            if let Ok(inner) = volume.enter(directory, &entry.name) {
                if entered.insert(inner) && !look_at_all(volume, inner, entered) {
                    return false;
                }
                let _ = volume.close(inner);
            } else if let Ok(file) = volume.open(directory, &entry.name, How::default(), 0) {
                let mut bytes = vec![0; 70_000];
                let _ = volume.read(file, 0, &mut bytes);
                let names = volume.xattrs(file).unwrap_or_default();
                for name in names.split(|&byte| byte == 0) {
                    let _ = volume.xattr(file, name);
                }
                let _ = volume.close(file);
            }
        }
    }
    true
}

/// Changes something of each kind. Whether it can be changed is a matter of the damage.
fn change_some(volume: &mut Looked, root: Inode) {
    let create = How { create: true, ..How::default() };
    let _ = volume.mkdir(root, b"new", 0o755);
    let _ = volume.rename(root, b"inner/file-3", b"new/file");
    let _ = volume.unlink(root, b"inner/file-7");
    for number in 0..30 {
        let name = format!("inner/a-file-with-a-long-name-{number}");
        if let Ok(file) = volume.open(root, name.as_bytes(), create, 0o644) {
            let _ = volume.write(file, 5000, b"text");
            let _ = volume.close(file);
        }
    }
    if let Ok(file) = volume.open(root, b"inner/file-20", How::default(), 0) {
        let _ = volume.set_xattr(file, b"user.new", &[CONTENTS; 300], Before::Any);
        let _ = volume.remove_xattr(file, b"user.large");
        let _ = volume.write(file, 100_000, &[7; 9000]);
        let _ = volume.truncate(file, 5);
        let _ = volume.sync(file);
        let _ = volume.close(file);
    }
    let _ = volume.rmdir(root, b"inner/deep");
    let _ = volume.sync(root);
}

/// Looks at all of a disk and changes some of it. Whether each directory came to an end; `None` if the disk is refused.
fn use_it(disk: &Counted) -> Option<bool> {
    let mut volume = Volume::new(mount(disk.clone(), || 0).ok()?);
    let root = volume.root();
    let has_end = look_at_all(&mut volume, root, &mut BTreeSet::from([root]));
    change_some(&mut volume, root);
    let _ = volume.into_inner().unmount();
    Some(has_end)
}

/// How images of a kind were used.
#[derive(Default, Debug)]
struct Counts {
    refused: u32,
    read: u32,
    panics: u32,
    requests_max: u64,
}

/// Damages an image with so many seeds, and uses each.
fn damage(whole: &[u8], seeds: u64, is_repaired: bool, count_max: u64) -> Counts {
    let mut counts = Counts::default();
    let places: Vec<usize> = (SUPERBLOCK..whole.len()).filter(|&at| is_own(whole[at])).collect();
    let front = places.partition_point(|&at| at < FRONT_END);
    for seed in 0..seeds {
        let mut random = Random(seed);
        let mut image = whole.to_vec();
        for _ in 0..1 + random.below(8) {
            // Half of the places are the superblock's, or the groups', of which there is one.
            let places = if random.chance(2) { &places[..front] } else { &places };
            let byte = &mut image[places[random.below(places.len() as u64) as usize]];
            *byte = match random.below(4) {
                0 => random.below(256) as u8,
                1 => *byte ^ (1 << random.below(8)),
                2 => 0,
                _ => 0xff,
            };
        }
        if is_repaired {
            sums::repair(&mut image);
        }
        let disk = Counted::new(image, count_max);
        let outcome = catch_unwind(std::panic::AssertUnwindSafe(|| use_it(&disk)));
        let requests = disk.count.get();
        counts.requests_max = counts.requests_max.max(requests);
        assert!(requests <= count_max, "seed {seed}, repaired: {is_repaired}: {requests} requests");
        match outcome {
            Ok(Some(has_end)) => {
                assert!(has_end, "seed {seed}, repaired: {is_repaired}: a directory without end");
                counts.read += 1;
            }
            Ok(None) => counts.refused += 1,
            Err(_) => {
                eprintln!("seed {seed}, repaired: {is_repaired}: a panic");
                counts.panics += 1;
            }
        }
    }
    counts
}

/// Has Linux give files of an image extended attributes: some that fit into an inode, and some that need a block.
fn attach(folder: &Folder, image: &str) {
    let value = folder.0.join("value");
    fs::write(&value, [CONTENTS; 500]).unwrap();
    for number in ATTRIBUTES {
        let file = format!("/inner/file-{number}");
        let set = match number % 3 {
            0 => format!("ea_set {file} user.small x"),
            _ => format!("ea_set -f {} {file} user.large", value.display()),
        };
        tool("debugfs", &["-w", "-R", &set, image]);
    }
}

/// Kinds of file systems whose metadata have no checksums.
const WITHOUT_SUMS: [&[&str]; 2] = [
    &["-t", "ext4", "-b", "1024", "-O", "^metadata_csum"],
    &["-t", "ext4", "-b", "4096", "-O", "^metadata_csum,^has_journal"],
];

/// Bytes of the file system's own are changed at random: it is refused, or read with errors. The library may give up by a panic, which would end a server
/// of it alone; it does not.
#[test]
fn damaged_file_systems_do_no_harm() {
    let folder = Folder::new("damaged");
    let source = folder.0.join("source");
    fs::create_dir_all(source.join("inner/deep")).unwrap();
    std::os::unix::fs::symlink("inner/file-1", source.join("link")).unwrap();
    for file in 0..40 {
        fs::write(source.join(format!("inner/file-{file}")), vec![CONTENTS; file * 300]).unwrap();
    }
    // So many holes make a tree of extents.
    let holes = fs::File::create(source.join("holes")).unwrap();
    for piece in 0..20 {
        holes.write_all_at(&[CONTENTS; 4096], piece * 3 * 4096).unwrap();
    }
    let mut all = Counts::default();
    for options in KINDS.into_iter().chain(WITHOUT_SUMS) {
        let whole = made_by_linux(&folder, 8, &[options, &["-d", source.to_str().unwrap()]].concat());
        // Directories get an index, where there are some.
        let image = folder.0.join("indexed");
        fs::write(&image, &*whole.0.borrow()).unwrap();
        run("e2fsck", &["-fyD", image.to_str().unwrap()]);
        attach(&folder, image.to_str().unwrap());
        let whole = fs::read(&image).unwrap();
        let mut repaired = whole.clone();
        sums::repair(&mut repaired);
        assert!(repaired == whole, "{options:?}: a sound one is repaired to another one");
        let sound = Counted::new(whole.clone(), u64::MAX);
        assert_eq!(use_it(&sound), Some(true), "{options:?}");
        let count_max = sound.count.get() * TIMES_MORE;
        let has_sums = !options.iter().any(|option| option.contains("^metadata_csum"));
        for is_repaired in [false, true].into_iter().take(1 + usize::from(has_sums)) {
            let seeds = if is_full() { 1000 } else { 60 };
            let counts = damage(&whole, seeds, is_repaired, count_max);
            eprintln!(
                "{options:?}, repaired: {is_repaired}, sound {} requests: {counts:?}",
                sound.count.get()
            );
            all.refused += counts.refused;
            all.read += counts.read;
            all.panics += counts.panics;
        }
    }
    eprintln!("damaged: {all:?}");
    assert!(all.refused > 0 && all.read > 0 && all.panics == 0);
}
