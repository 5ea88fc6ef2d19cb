use super::*;
use crate::page::Plain;
use crate::path::Last;
use crate::{How, Ram, Volume};
use alloc::string::String;
use alloc::{format, vec};

const CREATE: How = How { create: true, exclusive: false, truncate: false };

/// Blocks that the tests have.
const BLOCKS: u64 = 16;

type Part = Volume<Quota<Ram<Plain>>>;

fn limit(bytes: u64, files: u64) -> Amount {
    Amount { bytes, files }
}

/// An empty part of [`BLOCKS`] blocks, for so many files.
fn part(files: u64) -> Part {
    Volume::new(Quota::new(Ram::new(1 << 20, || 0), limit(BLOCKS * BLOCK, files)).unwrap())
}

fn make(part: &mut Part, path: &str) -> Inode {
    let root = part.root();
    part.open(root, path.as_bytes(), CREATE, 0o600).unwrap()
}

fn used(part: Part) -> (Part, Amount) {
    let mut quota = part.into_inner();
    let used = quota.used().unwrap();
    (Volume::new(quota), used)
}

#[test]
fn a_full_part_takes_no_more_and_keeps_what_it_has() {
    let mut part = part(10);
    let file = make(&mut part, "file");
    let bytes = vec![7; BLOCKS as usize * BLOCK as usize];
    assert_eq!(part.write(file, 0, &bytes[..10 * 4096 + 1]), Ok(10 * 4096 + 1));
    // Of the block that it has a part of the rest is free, and five more.
    assert_eq!(part.write(file, 10 * BLOCK + 1, &bytes), Ok(6 * 4096 - 1));
    assert_eq!(part.write(file, BLOCKS * BLOCK, b"x"), Err(Error::NoSpace));
    assert_eq!(part.len(file), Ok(BLOCKS * BLOCK));
    // Bytes that are there are written again as often as somebody likes.
    for at in 0..BLOCKS {
        assert_eq!(part.write(file, at * BLOCK, &bytes[..4096]), Ok(4096), "{at}");
    }
    // Names take no more, and go.
    let root = part.root();
    assert_eq!(part.open(root, b"other", CREATE, 0o600), Err(Error::NoSpace));
    assert_eq!(part.mkdir(root, b"other", 0o700), Err(Error::NoSpace));
    assert_eq!(part.link(root, b"file", b"other"), Err(Error::NoSpace));
    assert_eq!(part.truncate(file, BLOCK), Ok(()));
    assert_eq!(part.link(root, b"file", b"other"), Ok(()));
    assert_eq!(part.unlink(root, b"other"), Ok(()));
    part.close(file).unwrap();
    let (mut part, found) = used(part);
    assert_eq!(found, limit(BLOCK, 1));
    assert_eq!(part.unlink(root, b"file"), Ok(()));
    assert_eq!(used(part).1, limit(0, 0));
}

#[test]
fn files_are_counted_by_their_inodes() {
    let mut part = part(3);
    let root = part.root();
    part.mkdir(root, b"d", 0o700).unwrap();
    part.symlink(root, b"d", b"link").unwrap();
    let file = make(&mut part, "d/file");
    for step in 0..2 {
        assert_eq!(part.open(root, b"more", CREATE, 0o600), Err(Error::NoSpace), "{step}");
        assert_eq!(part.mkdir(root, b"more", 0o700), Err(Error::NoSpace), "{step}");
        assert_eq!(part.symlink(root, b"d", b"more"), Err(Error::NoSpace), "{step}");
        // Another name is no other file, and one without names is there while it is open.
        let _ = part.link(root, b"d/file", b"another");
        if step == 1 {
            part.unlink(root, b"another").unwrap();
            part.unlink(root, b"d/file").unwrap();
            assert_eq!(part.open(root, b"more", CREATE, 0o600), Err(Error::NoSpace));
        }
    }
    part.close(file).unwrap();
    let more = make(&mut part, "more");
    part.close(more).unwrap();
    // An inode whose name is replaced goes.
    part.rename(root, b"more", b"link").unwrap();
    assert_eq!(used(part).1.files, 2);
}

#[test]
fn holes_take_nothing_until_they_are_filled() {
    let mut part = part(10);
    let (sparse, other) = (make(&mut part, "sparse"), make(&mut part, "other"));
    let bytes = vec![7; BLOCK as usize];
    assert_eq!(part.truncate(sparse, 1000 * BLOCK), Ok(()));
    assert_eq!(part.write(sparse, 2000 * BLOCK, b"end"), Ok(3));
    for at in 0..BLOCKS - 1 {
        assert_eq!(part.write(other, at * BLOCK, &bytes), Ok(4096), "{at}");
    }
    // A part of a write that fills a hole, and a write behind the end that leaves no trace.
    assert_eq!(part.write(sparse, 5 * BLOCK, b"x"), Err(Error::NoSpace));
    assert_eq!(part.write(sparse, 3000 * BLOCK, b"x"), Err(Error::NoSpace));
    assert_eq!(part.len(sparse), Ok(2000 * BLOCK + 3));
    assert_eq!(part.truncate(sparse, 4000 * BLOCK), Ok(()));
    assert_eq!(part.truncate(other, BLOCK), Ok(()));
    assert_eq!(part.write(sparse, 5 * BLOCK, &bytes.repeat(20)), Ok(14 * 4096));
    part.close(sparse).unwrap();
    part.close(other).unwrap();
    assert_eq!(used(part).1, limit(BLOCKS * BLOCK, 2));
}

/// All that is there when it begins is counted, however deep it lies.
#[test]
fn a_part_is_counted_when_it_begins() {
    let mut ram = Volume::new(Ram::<Plain>::new(1 << 20, || 0));
    let root = ram.root();
    let mut path = String::new();
    for depth in 0..100 {
        path += "d";
        ram.mkdir(root, path.as_bytes(), 0o700).unwrap();
        path += "/";
        let file = ram.open(root, format!("{path}file").as_bytes(), CREATE, 0o600).unwrap();
        ram.write(file, 0, &[7; 3]).unwrap();
        ram.close(file).unwrap();
        if depth % 10 == 0 {
            let (from, to) = (format!("{path}file"), format!("link-{depth}"));
            ram.link(root, from.as_bytes(), to.as_bytes()).unwrap();
        }
    }
    let fs = ram.into_inner();
    let mut quota = Quota::new(fs, limit(50 * BLOCK, 200)).unwrap();
    assert_eq!(quota.used(), Some(limit(100 * BLOCK, 200)));
    let space = quota.space().unwrap();
    assert_eq!((space.total, space.free, space.files_free), (50 * BLOCK, 0, 0));
    // There are more files than may be.
    assert!(matches!(Quota::new(quota.into_inner(), limit(u64::MAX, 199)), Err(Error::NoSpace)));
}

#[test]
fn space_is_that_of_the_part() {
    let mut part = part(10);
    let file = make(&mut part, "file");
    part.write(file, 0, b"text").unwrap();
    let space = part.space().unwrap();
    assert_eq!((space.total, space.free), (BLOCKS * BLOCK, (BLOCKS - 1) * BLOCK));
    assert_eq!((space.files, space.files_free), (10, 9));
    let root = part.root();
    assert!(part.attributes_at(root, b"file", Last::Stay).is_ok());
    let mut all = Quota::without(Ram::<Plain>::new(1 << 20, || 0));
    assert_eq!((all.used(), all.space().unwrap().total), (None, 1 << 20));
}
