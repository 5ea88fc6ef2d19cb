//! Promises that a comparison with Linux cannot show: paths that would lead out, files without a name, a file system that is full.

use crate::as_on_linux::Fixed;
use std::sync::atomic::Ordering;
use vfs::page::{PAGE, Page, Plain};
use vfs::path::{self, Last};
use vfs::{Cached, Changes, Error, FileSystem, How, Inode, Kind, Ram, Volume};

const CREATE: How = How { create: true, exclusive: false, truncate: false };

fn ram() -> (Volume<Ram<Plain>>, Inode) {
    let mut volume = Volume::new(Ram::<Plain>::new(1 << 20, || 7));
    let root = volume.root();
    (volume, root)
}

fn put(volume: &mut Volume<Ram<Plain>>, base: Inode, path: &str, text: &str) -> vfs::Result<()> {
    let file = volume.open(base, path.as_bytes(), CREATE, 0o644)?;
    volume.write(file, 0, text.as_bytes())?;
    volume.close(file)
}

fn get(volume: &mut Volume<Ram<Plain>>, base: Inode, path: &str) -> vfs::Result<String> {
    let file = volume.open(base, path.as_bytes(), How::default(), 0)?;
    let mut text = vec![0; 100];
    let len = volume.read(file, 0, &mut text)?;
    volume.close(file)?;
    Ok(String::from_utf8_lossy(&text[..len]).into())
}

#[test]
fn no_path_leads_out_of_its_base() -> vfs::Result<()> {
    let (mut volume, root) = ram();
    put(&mut volume, root, "secret", "outside")?;
    volume.mkdir(root, b"home", 0o755)?;
    volume.mkdir(root, b"home/inner", 0o755)?;
    put(&mut volume, root, "home/secret", "inside")?;
    volume.symlink(root, b"/secret", b"home/inner/absolute")?;
    volume.symlink(root, b"../../../secret", b"home/inner/upward")?;
    let home = volume.enter(root, b"home")?;
    for path in [
        "secret",
        "/secret",
        "../secret",
        "/../../secret",
        "inner/../../secret",
        "inner/absolute",
        "inner/upward",
    ] {
        assert_eq!(get(&mut volume, home, path)?, "inside", "{path}");
    }
    // From above the links lead elsewhere.
    for path in ["home/inner/absolute", "home/inner/upward", "home/../secret"] {
        assert_eq!(get(&mut volume, root, path)?, "outside", "{path}");
    }
    let outer = volume.enter(home, b"..")?;
    assert_eq!(outer, home);
    volume.close(outer)
}

/// A tree with symbolic links, deeper than is noted without memory.
fn with_links() -> vfs::Result<(Fixed<Ram<Plain>>, Inode)> {
    let (mut volume, root) = ram();
    for depth in 1..=12 {
        volume.mkdir(root, "/a".repeat(depth).as_bytes(), 0o755)?;
    }
    put(&mut volume, root, "a/a/f", "text")?;
    volume.symlink(root, b"a/a", b"link")?;
    volume.symlink(root, b"../../link", b"a/a/up")?;
    volume.symlink(root, b"/a", b"a/top")?;
    Ok((Fixed::new(volume.into_inner()), root))
}

#[test]
fn each_name_is_looked_up_once() -> vfs::Result<()> {
    let (mut fs, root) = with_links()?;
    let deep = "/a".repeat(12);
    for (path, lookups) in [
        ("", 0),
        ("a/a/f", 3),
        ("a/../a/a/f", 4),
        ("../a/./a/..//a/f", 4),
        ("link/f", 4),
        ("a/a/up/f", 7),
        ("a/top/a/f", 5),
        (&deep, 12),
        (&(deep.clone() + "/../a"), 13),
    ] {
        fs.lookups = 0;
        path::find(&mut fs, root, path.as_bytes(), Last::Follow)?;
        assert_eq!(fs.lookups, lookups, "{path}");
    }
    Ok(())
}

/// Random paths lead to the same place with notes and without, or to the same error.
#[test]
fn a_path_is_found_as_it_is_walked() -> vfs::Result<()> {
    const NAMES: [&str; 9] = ["a", "a", "a", "..", ".", "link", "up", "top", "f"];
    let (mut fs, root) = with_links()?;
    let (mut state, mut found) = (1_u64, 0);
    let mut number = |below: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) % below
    };
    for _ in 0..20_000 {
        let mut path = String::new();
        for _ in 0..number(14) {
            path += NAMES[number(9) as usize];
            path += ["/", "/", "//", ""][number(4) as usize];
        }
        let last = [Last::Follow, Last::Stay, Last::Name][number(3) as usize];
        let walked = path::walk(&mut fs, root, path.as_bytes(), last).and_then(|place| place.existing());
        assert_eq!(path::find(&mut fs, root, path.as_bytes(), last), walked, "{path} {last:?}");
        found += u32::from(walked.is_ok());
    }
    assert!(found > 1000, "{found} paths lead somewhere");
    Ok(())
}

#[test]
fn a_file_without_a_name_lives_until_it_is_closed() -> vfs::Result<()> {
    let (mut volume, root) = ram();
    let before = volume.space()?;
    put(&mut volume, root, "file", "still here")?;
    let open = volume.open(root, b"file", How::default(), 0)?;
    volume.unlink(root, b"file")?;
    put(&mut volume, root, "file", "another")?;
    let mut text = [0; 20];
    let len = volume.read(open, 0, &mut text)?;
    assert_eq!((&text[..len], volume.attributes(open)?.links), (&b"still here"[..], 0));
    // One that is replaced, too.
    let replaced = volume.open(root, b"file", How::default(), 0)?;
    put(&mut volume, root, "new", "new")?;
    volume.rename(root, b"new", b"file")?;
    assert_eq!(volume.attributes(replaced)?.links, 0);
    assert_eq!(get(&mut volume, root, "file")?, "new");
    volume.close(open)?;
    volume.close(replaced)?;
    volume.unlink(root, b"file")?;
    assert_eq!(volume.space()?, before, "all of it is given back");
    assert_eq!(volume.close(open), Err(Error::Invalid), "it was closed");
    Ok(())
}

#[test]
fn a_directory_without_a_name_gets_no_names() -> vfs::Result<()> {
    let (mut volume, root) = ram();
    volume.mkdir(root, b"gone", 0o755)?;
    let gone = volume.enter(root, b"gone")?;
    volume.rmdir(root, b"gone")?;
    assert_eq!(volume.readdir(gone, 0, 9)?, []);
    assert_eq!(volume.mkdir(gone, b"more", 0o755), Err(Error::NotFound));
    assert_eq!(put(&mut volume, gone, "file", ""), Err(Error::NotFound));
    put(&mut volume, root, "file", "")?;
    assert_eq!(volume.attributes(gone)?.links, 0);
    volume.close(gone)
}

#[test]
fn what_is_full_loses_nothing() -> vfs::Result<()> {
    let (mut volume, root) = ram();
    let before = volume.space()?;
    let file = volume.open(root, b"large", CREATE, 0o644)?;
    let written = volume.write(file, 0, &vec![1; 2 << 20])?;
    assert!((900 << 10..1 << 20).contains(&written) && written.is_multiple_of(4096), "{written}");
    assert_eq!(volume.attributes(file)?.len, written as u64);
    assert_eq!(volume.write(file, written as u64, &[1]), Err(Error::NoSpace));
    assert_eq!(volume.append(file, &[1]), Err(Error::NoSpace));
    volume.truncate(file, written as u64 - 8192)?;
    assert_eq!(volume.append(file, &[1; 8193]), Err(Error::NoSpace), "all or nothing");
    assert_eq!(volume.attributes(file)?.len, written as u64 - 8192);
    assert_eq!(volume.append(file, &[1; 8192])?, written as u64 - 8192);
    // Bytes that have their page can be written.
    assert_eq!(volume.write(file, 0, &[2; 100])?, 100);
    let mut made = 0;
    let error = loop {
        match volume.mkdir(root, format!("directory-{made}").as_bytes(), 0o755) {
            Ok(()) => made += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, Error::NoSpace);
    let long = "x".repeat(255);
    assert_eq!(volume.rename(root, b"large", long.as_bytes()), Err(Error::NoSpace));
    assert_eq!(volume.attributes(file)?.links, 1);
    volume.truncate(file, 1)?;
    volume.rename(root, b"large", long.as_bytes())?;
    volume.close(file)?;
    volume.unlink(root, long.as_bytes())?;
    for number in 0..made {
        volume.rmdir(root, format!("directory-{number}").as_bytes())?;
    }
    assert_eq!(volume.space()?, before);
    Ok(())
}

#[test]
fn names_and_lengths_have_bounds() -> vfs::Result<()> {
    let (mut volume, root) = ram();
    let (longest, longer) = ("n".repeat(255), "n".repeat(256));
    put(&mut volume, root, &longest, "")?;
    assert_eq!(put(&mut volume, root, &longer, ""), Err(Error::NameTooLong));
    assert_eq!(volume.attributes_at(root, longer.as_bytes(), Last::Stay), Err(Error::NameTooLong));
    assert_eq!(put(&mut volume, root, "zero\0byte", ""), Err(Error::Invalid));
    put(&mut volume, root, "not \u{fffd} only ASCII", "")?;
    let file = volume.open(root, b"file", CREATE, 0o644)?;
    for offset in [u64::MAX, i64::MAX as u64, 1 << 46] {
        assert_eq!(volume.write(file, offset, b"x"), Err(Error::TooLarge), "{offset}");
        assert_eq!(volume.read(file, offset, &mut [0; 9])?, 0);
    }
    assert_eq!(volume.truncate(file, 1 << 63), Err(Error::TooLarge));
    assert_eq!(volume.truncate(file, (1 << 46) + 1), Err(Error::TooLarge));
    // The largest is a hole, and takes nothing.
    volume.truncate(file, 1 << 46)?;
    assert_eq!(volume.attributes(file)?.allocated, 0);
    assert_eq!(volume.write(file, (1 << 46) - 1, b"x")?, 1);
    volume.close(file)?;
    for count in [40, 41] {
        for number in 0..count {
            let _ = volume.symlink(
                root,
                format!("{count}-{}", number + 1).as_bytes(),
                format!("{count}-{number}").as_bytes(),
            );
        }
        put(&mut volume, root, &format!("{count}-{count}"), "end")?;
    }
    assert_eq!(get(&mut volume, root, "40-0")?, "end");
    assert_eq!(get(&mut volume, root, "41-0"), Err(Error::Loop));
    Ok(())
}

/// A file system that makes each symbolic link twice as long does not make its server work for ever.
#[test]
fn links_that_grow_end() -> vfs::Result<()> {
    let (mut volume, root) = ram();
    volume.symlink(root, "a/".repeat(2000).as_bytes(), b"a")?;
    assert_eq!(get(&mut volume, root, "a").unwrap_err(), Error::NameTooLong);
    volume.symlink(root, b".", b"dot")?;
    assert_eq!(volume.enter(root, "dot/".repeat(40).as_bytes())?, root);
    assert_eq!(volume.enter(root, "dot/".repeat(41).as_bytes()), Err(Error::Loop));
    Ok(())
}

#[test]
fn a_listing_goes_on_while_entries_come_and_go() -> vfs::Result<()> {
    let (mut volume, root) = ram();
    for number in 0..40 {
        put(&mut volume, root, &format!("{number}"), "")?;
    }
    let (mut seen, mut cursor, mut round) = (Vec::new(), 0, 0);
    loop {
        let entries = volume.readdir(root, cursor, 3)?;
        let Some(last) = entries.last() else { break };
        cursor = last.next;
        seen.extend(entries.into_iter().map(|entry| String::from_utf8(entry.name).unwrap()));
        // One that was seen goes, others come, and one of these goes again.
        if round < 10 {
            volume.unlink(root, format!("{round}").as_bytes())?;
            put(&mut volume, root, &format!("late-{round}"), "")?;
            put(&mut volume, root, "short", "")?;
            volume.unlink(root, b"short")?;
        }
        round += 1;
        assert!(round < 100, "it ends");
    }
    let stayed =
        (0..40).filter(|number| seen.iter().filter(|name| **name == number.to_string()).count() == 1).count();
    assert_eq!(stayed, 40, "each that was there came once");
    Ok(())
}

#[test]
fn attributes_change_alone() -> vfs::Result<()> {
    let (mut volume, root) = ram();
    put(&mut volume, root, "file", "text")?;
    let file = volume.open(root, b"file", How::default(), 0)?;
    let before = volume.attributes(file)?;
    assert_eq!((before.kind, before.permissions, before.len), (Kind::File, 0o644, 4));
    volume.change(file, &Changes { permissions: Some(0o17777), ..Changes::default() })?;
    volume.change(file, &Changes { owner: Some((3, 4)), ..Changes::default() })?;
    volume.change(file, &Changes { times: Some((5, 6)), ..Changes::default() })?;
    let after = volume.attributes(file)?;
    assert_eq!((after.permissions, after.owner, after.group), (0o7777, 3, 4));
    assert_eq!((after.accessed, after.modified, after.len, after.links), (5, 6, 4, 1));
    volume.close(file)
}

/// Promises of a [`FileSystem`]'s caller that are broken are errors.
#[test]
fn wrong_inodes_are_errors() -> vfs::Result<()> {
    let mut ram = Ram::<Plain>::new(1 << 20, || 0);
    let (root, name) = (ram.root(), vfs::Name::new(b"file")?);
    let file = ram.create(root, name, vfs::New::File, 0o644)?;
    let nothing = Inode(99);
    assert_eq!(ram.attributes(nothing), Err(Error::NotFound));
    assert_eq!(ram.lookup(file, name), Err(Error::NotDirectory));
    assert_eq!(ram.create(root, name, vfs::New::File, 0), Err(Error::Exists));
    assert_eq!(ram.rmdir(root, name), Err(Error::NotDirectory));
    assert_eq!(ram.read(root, 0, &mut [0]), Err(Error::IsDirectory));
    assert_eq!(ram.readlink(file), Err(Error::Invalid));
    assert_eq!(ram.forget(file), Err(Error::Busy));
    assert_eq!(ram.link(root, root, vfs::Name::new(b"x")?), Err(Error::IsDirectory));
    for wrong in [&b""[..], b".", b"..", b"a/b", b"a\0b"] {
        assert_eq!(vfs::Name::new(wrong), Err(Error::Invalid));
    }
    Ok(())
}

/// A page that cannot be written back is its holder's trouble, and nobody else's.
#[test]
fn a_page_without_room_stops_nobody_else() {
    let make = How { create: true, ..How::default() };
    let mut volume = Volume::new(Cached::<_, Plain>::new(Ram::<Plain>::new(1 << 20, || 0), 8));
    let root = volume.root();
    let [hole, other, big] =
        ["hole", "other", "big"].map(|name| volume.open(root, name.as_bytes(), make, 0o644).unwrap());
    volume.truncate(hole, PAGE as u64).unwrap();
    volume.write(other, 0, b"text").unwrap();
    let mut end = 0;
    while let Ok(count) = volume.write(big, end, &[1; PAGE]) {
        end += count as u64;
    }
    let held: Vec<_> = (0..2).map(|_| volume.page(hole, 0, true).unwrap()).collect();
    held[0].write(0, b"more than there is room for");
    assert_eq!(volume.sync(hole), Err(Error::NoSpace), "its holder hears of it");
    let page = volume.page(other, 0, true).unwrap();
    page.write(0, b"next");
    for _ in 0..2 {
        assert_eq!((volume.sync(root), volume.sync_all(root), volume.sync(other)), (Ok(()), Ok(()), Ok(())));
    }
    drop(held);
    volume.close(hole).unwrap();
    // Its place is free, for as many as there may be.
    let pages: Vec<_> = (0..7).map(|number| volume.page(big, number * PAGE as u64, false).unwrap()).collect();
    assert_eq!(volume.page(big, 7 * PAGE as u64, false).err(), Some(Error::NoSpace));
    drop((pages, page));
    let mut bytes = [0; 4];
    volume.read(other, 0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"next");
}

/// Bytes that are sent from where they lie, and all that can happen to a page meanwhile. [`Plain`] finds out if they change.
#[test]
fn what_is_sent_does_not_change() -> vfs::Result<()> {
    let (mut volume, root) = ram();
    let free = volume.space()?.free;
    put(&mut volume, root, "file", &"a".repeat(PAGE + 1000))?;
    let file = volume.open(root, b"file", How::default(), 0)?;
    assert!(volume.send(file, 4000, 200)?.is_none(), "that lies in two pages");
    assert!(volume.send(file, PAGE as u64 + 1000, 1)?.is_none(), "that lies behind the end");
    let (whole, end) = (volume.send(file, 0, PAGE)?.unwrap(), volume.send(file, PAGE as u64, PAGE)?.unwrap());
    assert_eq!((whole.len(), end.len()), (PAGE, 1000));
    volume.write(file, 1, b"b")?;
    let after = volume.send(file, 0, 3)?.unwrap();
    assert_eq!((&whole[..3], &after[..]), (&b"aaa"[..], &b"aba"[..]));
    // A page that is mapped is the file's own, and nothing is sent from there.
    let page = volume.page(file, PAGE as u64, true)?;
    page.write(0, b"c");
    assert!(volume.send(file, PAGE as u64, PAGE)?.is_none(), "somebody could write to it");
    drop(page);
    assert_eq!(&volume.send(file, PAGE as u64, 3)?.unwrap()[..], b"caa");
    // The end moves forth and back, and zeros come behind it.
    volume.truncate(file, 2)?;
    volume.write(file, 5, b"d")?;
    assert_eq!(get(&mut volume, root, "file")?, "ab\0\0\0d");
    volume.unlink(root, b"file")?;
    volume.close(file)?;
    assert_eq!(volume.space()?.free, free, "what is sent is not counted");
    assert!(whole.iter().chain(&*end).all(|&byte| byte == b'a') && &after[..] == b"aba");
    Ok(())
}

/// The length that a file says without being asked is that which it has.
#[test]
fn the_length_is_known() -> vfs::Result<()> {
    let (mut volume, root) = ram();
    let file = volume.open(root, b"file", CREATE, 0o644)?;
    let word = volume.len_word(file).unwrap();
    let check = |volume: &mut Volume<Ram<Plain>>, len| {
        assert_eq!((volume.len(file), word.load(Ordering::Relaxed)), (Ok(len), len));
    };
    check(&mut volume, 0);
    volume.write(file, 10, b"text")?;
    check(&mut volume, 14);
    volume.append(file, b"more")?;
    check(&mut volume, 18);
    volume.truncate(file, 5)?;
    check(&mut volume, 5);
    assert!(volume.truncate(file, u64::MAX).is_err() && volume.len_word(root).is_none());
    check(&mut volume, 5);
    Ok(())
}

/// Places of inodes that are gone are used again, and their numbers are not.
#[test]
fn no_number_comes_again() -> vfs::Result<()> {
    let (mut volume, root) = ram();
    let names = || (0..50).map(|number| format!("file-{number}"));
    let mut seen = std::collections::BTreeSet::from([root.0]);
    for round in 0..9 {
        for name in names().skip(round).step_by(3) {
            if volume.unlink(root, name.as_bytes()).is_ok() {
                assert_eq!(get(&mut volume, root, &name).err(), Some(Error::NotFound));
            }
        }
        for name in names().filter(|name| name.len() + round != 9) {
            if get(&mut volume, root, &name).is_err() {
                put(&mut volume, root, &name, &name)?;
                let inode = volume.attributes_at(root, name.as_bytes(), Last::Stay)?.inode;
                assert!(seen.insert(inode.0), "{name} has the number of another one");
                assert!(inode.0 as u32 <= 51, "there is a free place");
            }
            assert_eq!(get(&mut volume, root, &name)?, name);
        }
    }
    Ok(())
}
