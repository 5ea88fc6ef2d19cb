//! Extended attributes: each file system has those that were set, and Linux finds them on a disk.

use crate::as_on_linux::{Fixed, Folder, Random, ram};
use crate::ext4_on_disk::{KINDS, check_by_linux, made_by_linux, mount, tool};
use crate::served::Served;
use std::collections::BTreeMap;
use std::fs;
use vfs::remote::Remote;
use vfs::{
    Amount, Before, Cached, Error, FileSystem, Inode, Merge, Name, New, Quota, XATTR_BYTES_MAX,
    XATTR_NAME_MAX,
};

/// Names of files and directories that have attributes.
const NODES: [&str; 3] = ["file", "other", "directory"];

/// Names of attributes.
const NAMES: [&str; 5] =
    ["user.a", "user.comment", "trusted.c", "security.d", "user.with-a-name-that-is-longer"];

/// Bytes of attributes for which each file system has room, in the smallest block.
const ROOM: usize = 700;

/// Attributes of a node.
type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// Makes the nodes.
fn nodes(fs: &mut impl FileSystem) -> [Inode; 3] {
    let root = fs.root();
    NODES.map(|node| {
        let new = if node == "directory" { New::Directory } else { New::File };
        fs.create(root, Name::new(node.as_bytes()).unwrap(), new, 0o700).unwrap()
    })
}

/// Attributes that a file system tells.
fn told(fs: &mut impl FileSystem, inode: Inode) -> Attributes {
    let names = fs.xattrs(inode).unwrap();
    assert!(names.is_empty() || names.ends_with(&[0]));
    let names = names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    names.map(|name| (name.to_vec(), fs.xattr(inode, name).unwrap())).collect()
}

/// Sets one attribute at random, as the rule says that it must end.
fn set(fs: &mut impl FileSystem, inode: Inode, model: &mut Attributes, name: &[u8], random: &mut Random) {
    let value: Vec<u8> = (0..random.below(200)).map(|_| random.below(256) as u8).collect();
    let before = [Before::Any, Before::None, Before::One][random.below(3) as usize];
    let is_there = model.contains_key(name);
    match (before, fs.set_xattr(inode, name, &value, before)) {
        (Before::None, outcome) if is_there => assert_eq!(outcome, Err(Error::Exists)),
        (Before::One, outcome) if !is_there => assert_eq!(outcome, Err(Error::NotFound)),
        (_, Err(Error::NoSpace)) => {
            let used: usize = model.iter().map(|(name, value)| 20 + name.len() + value.len()).sum();
            assert!(
                used + 20 + name.len() + value.len() > ROOM,
                "there is room: {used} bytes are used, {} are to be set",
                value.len()
            );
        }
        (_, outcome) => {
            outcome.unwrap();
            model.insert(name.to_vec(), value);
        }
    }
}

/// Sets and removes attributes at random, and compares all of them after each step.
fn change_at_random(fs: &mut impl FileSystem, inodes: [Inode; 3], seed: u64) -> [Attributes; 3] {
    let mut random = Random(seed);
    let mut models = inodes.map(|inode| told(fs, inode));
    for _ in 0..200 {
        let at = random.below(3) as usize;
        let name = NAMES[random.below(NAMES.len() as u64) as usize].as_bytes();
        if random.below(3) == 0 {
            let expected = models[at].remove(name).map(drop).ok_or(Error::NotFound);
            assert_eq!(fs.remove_xattr(inodes[at], name), expected);
        } else {
            set(fs, inodes[at], &mut models[at], name, &mut random);
        }
        assert_eq!(fs.xattr(inodes[at], name), models[at].get(name).cloned().ok_or(Error::NotFound));
        for (inode, model) in inodes.iter().zip(&models) {
            assert_eq!(told(fs, *inode), *model);
        }
    }
    models
}

/// Names and values that no attribute has are refused, and change nothing.
fn refuse(fs: &mut impl FileSystem, inode: Inode) {
    let before = told(fs, inode);
    let long = [b"user.".as_slice(), &[b'n'; XATTR_NAME_MAX]].concat();
    assert_eq!(fs.set_xattr(inode, &long, b"", Before::Any), Err(Error::NameTooLong));
    assert!(fs.set_xattr(inode, b"user.a\0b", b"", Before::Any).is_err());
    assert!(fs.set_xattr(inode, b"", b"", Before::Any).is_err());
    let bytes = [1; XATTR_BYTES_MAX + 1];
    assert_eq!(fs.set_xattr(inode, b"user.large", &bytes, Before::Any), Err(Error::NoSpace));
    assert_eq!(told(fs, inode), before);
}

#[test]
fn memory_has_what_was_set() {
    for seed in 1..10 {
        let mut fs = Cached::<_, vfs::page::Plain>::new(ram(), 10);
        let space = fs.space().unwrap().free;
        let inodes = nodes(&mut fs);
        refuse(&mut fs, inodes[0]);
        change_at_random(&mut fs, inodes, seed);
        let root = fs.root();
        for (node, inode) in NODES.into_iter().zip(inodes) {
            let name = Name::new(node.as_bytes()).unwrap();
            if node == "directory" { fs.rmdir(root, name) } else { fs.unlink(root, name) }.unwrap();
            fs.forget(inode).unwrap();
        }
        assert_eq!(fs.space().unwrap().free, space, "something is counted that is gone");
    }
}

/// Attributes of a file system that is served elsewhere are asked for there, those of files and directories alike.
#[test]
fn a_server_has_what_was_set() {
    for seed in 1..10 {
        let served = Served::new(ram(), 1000);
        let mut fs = Remote::new(served.clone()).unwrap();
        let inodes = nodes(&mut fs);
        let models = change_at_random(&mut fs, inodes, seed);
        let root = fs.root();
        fs.sync(root).unwrap();
        served.restart(|fs| fs);
        assert_eq!(inodes.map(|inode| told(&mut fs, inode)), models);
    }
}

/// A file that is copied to the upper file system keeps the attributes that it has in the lower one.
#[test]
fn a_merge_has_what_was_set_below() {
    for seed in 1..10 {
        let mut lower = ram();
        let inodes = nodes(&mut lower);
        let below = change_at_random(&mut lower, inodes, seed);
        let mut fs = Merge::new(ram(), Fixed::new(lower)).unwrap();
        let root = fs.root();
        let found = NODES.map(|node| fs.lookup(root, Name::new(node.as_bytes()).unwrap()).unwrap());
        assert_eq!(found.map(|inode| told(&mut fs, inode)), below);
        fs.write(found[0], 0, b"text").unwrap();
        fs.create(found[2], Name::new(b"below").unwrap(), New::File, 0o700).unwrap();
        assert_eq!(found.map(|inode| told(&mut fs, inode)), below);
        change_at_random(&mut fs, found, seed + 100);
    }
}

/// Attributes that are set are on the disk, in the inode or in a block beside it; Linux finds them there, and no mistake.
#[test]
fn linux_reads_attributes_that_were_set() {
    for (number, options) in KINDS.into_iter().enumerate() {
        let folder = Folder::new(&format!("xattrs-{number}"));
        let disk = made_by_linux(&folder, 16, options);
        let mut fs = mount(disk.clone(), || 1_000_000_000 << 30).unwrap();
        let inodes = nodes(&mut fs);
        refuse(&mut fs, inodes[0]);
        assert_eq!(
            fs.set_xattr(inodes[0], b"system.posix_acl_access", b"", Before::Any),
            Err(Error::Unsupported)
        );
        assert_eq!(fs.xattr(inodes[0], b"no-kind"), Err(Error::Unsupported));
        if options.contains(&"128") {
            // The library begins with the room behind an inode, and there is none (rsext4 0.9.2).
            assert_eq!(fs.set_xattr(inodes[0], b"user.a", b"", Before::Any), Err(Error::NoSpace));
            assert!(told(&mut fs, inodes[0]).is_empty());
            continue;
        }
        let models = change_at_random(&mut fs, inodes, number as u64 + 1);
        fs.unmount().unwrap();
        check_by_linux(&folder, &disk.0.borrow());
        let image = folder.0.join("checked").display().to_string();
        let value = folder.0.join("value");
        for (node, model) in NODES.iter().zip(&models) {
            for (name, expected) in model {
                let _ = fs::remove_file(&value);
                let name = String::from_utf8_lossy(name);
                let ask = format!("ea_get -f {} /{node} {name}", value.display());
                tool("debugfs", &["-R", &ask, &image]);
                assert_eq!(fs::read(&value).unwrap(), *expected, "{node} {name} {options:?}");
            }
        }
    }
}

#[test]
fn attributes_that_linux_has_set_are_read() {
    let folder = Folder::new("xattrs-of-linux");
    let disk = made_by_linux(&folder, 16, KINDS[0]);
    let mut fs = mount(disk.clone(), || 1_000_000_000 << 30).unwrap();
    let inodes = nodes(&mut fs);
    fs.unmount().unwrap();
    check_by_linux(&folder, &disk.0.borrow());
    let (image, long) = (folder.0.join("checked"), folder.0.join("value"));
    fs::write(&long, vec![b'x'; 1000]).unwrap();
    for set in
        ["ea_set /file user.short of-linux".into(), format!("ea_set -f {} /file user.long", long.display())]
    {
        tool("debugfs", &["-w", "-R", &set, image.to_str().unwrap()]);
    }
    *disk.0.borrow_mut() = fs::read(&image).unwrap();
    let mut fs = mount(disk, || 1_000_000_000 << 30).unwrap();
    let expected = [("user.short", b"of-linux".to_vec()), ("user.long", vec![b'x'; 1000])];
    let expected: Attributes = expected.map(|(name, value)| (name.as_bytes().to_vec(), value)).into();
    assert_eq!(told(&mut fs, inodes[0]), expected);
}

/// A block with attributes counts as the user's, and is not to be had when he has none left.
#[test]
fn a_part_of_a_disk_counts_attributes() {
    let folder = Folder::new("xattrs-counted");
    let fs = mount(made_by_linux(&folder, 16, KINDS[0]), || 1_000_000_000 << 30).unwrap();
    let limit = Amount { bytes: 64 << 10, files: 9 };
    let mut fs = Quota::new(fs, limit).unwrap();
    let inodes = nodes(&mut fs);
    let before = fs.used().unwrap().bytes;
    fs.set_xattr(inodes[0], b"user.large", &[1; 1000], Before::Any).unwrap();
    assert_eq!(fs.used().unwrap().bytes, before + 4096);
    fs.remove_xattr(inodes[0], b"user.large").unwrap();
    assert_eq!(fs.used().unwrap().bytes, before);
    for page in 0.. {
        if fs.write(inodes[1], page * 4096, &[1; 4096]).is_err() {
            break;
        }
    }
    assert_eq!(fs.set_xattr(inodes[0], b"user.large", &[1; 1000], Before::Any), Err(Error::NoSpace));
    assert!(told(&mut fs, inodes[0]).is_empty());
}
