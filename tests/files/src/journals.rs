//! Journals that are too long for a server's memory: a part of them is used, by Tern and by Linux.

use crate::as_on_linux::Folder;
use crate::ext4_on_disk::{KINDS, Memory, check_by_linux, made_by_linux, mount, run, tool};
use std::fs;
use vfs::path::Last;
use vfs::{Changes, How, Result, Volume};

/// Bytes of a journal that are used, at most.
const LEN_MAX: usize = 16 << 20;

/// Bytes of the journals here, and in mebibytes.
const LEN: usize = 24 << 20;
const LONG: &str = "size=24";

/// Directories of a directory, and of these.
const OUTER: u32 = 20;
const INNER: u32 = 40;

/// Where a block of the journal lies on the disk, in bytes.
fn journal_at(folder: &Folder, disk: &Memory, block: usize, block_bytes: usize) -> usize {
    let image = folder.0.join("looked-at");
    fs::write(&image, &*disk.0.borrow()).unwrap();
    let found = tool("debugfs", &["-R", &format!("bmap <8> {block}"), image.to_str().unwrap()]);
    let found: usize = String::from_utf8(found).unwrap().trim().parse().unwrap();
    found * block_bytes
}

/// Numbers in a journal's first block: its length in blocks, the block with which it begins or 0, and its checksum.
const LENGTH: usize = 0x10;
const START: usize = 0x1c;
const CHECKSUM: usize = 0xfc;

fn word(disk: &Memory, at: usize) -> u32 {
    u32::from_be_bytes(disk.0.borrow()[at..at + 4].try_into().unwrap())
}

/// Makes directories, each of which is safe before the next one is made: with blocks of 4 KiB more than a journal has room for. Then power is lost.
fn make_directories(disk: &Memory) -> Result<()> {
    let mut volume = Volume::new(mount(disk.clone(), || 0)?);
    let root = volume.root();
    for outer in 0..OUTER {
        volume.mkdir(root, format!("{outer}").as_bytes(), 0o755)?;
        for inner in 0..INNER {
            volume.mkdir(root, format!("{outer}/{inner}").as_bytes(), 0o755)?;
            volume.sync(root)?;
        }
    }
    Ok(())
}

/// Fails unless all directories are there.
fn look(disk: &Memory) -> Result<()> {
    let mut volume = Volume::new(mount(disk.clone(), || 0)?);
    let root = volume.root();
    for number in 0..OUTER * INNER {
        let (outer, inner) = (number / INNER, number % INNER);
        volume.attributes_at(root, format!("{outer}/{inner}").as_bytes(), Last::Stay)?;
    }
    Ok(())
}

/// Whatever is done, nothing is written behind the part that is used; and what is in the journal when power is lost is found by Linux's tools and by Tern.
#[test]
fn of_a_long_journal_a_part_is_used() {
    for (number, block_bytes) in [4096, 1024].into_iter().enumerate() {
        let folder = Folder::new(&format!("journal-{number}"));
        let size = block_bytes.to_string();
        let disk = made_by_linux(&folder, 64, &["-t", "ext4", "-b", &size, "-J", LONG]);
        let at = |block| journal_at(&folder, &disk, block, block_bytes);
        let (most, all) = (LEN_MAX / block_bytes, LEN / block_bytes);
        let (journal, unused) = (at(0), (most..all).step_by(2000).map(at).collect::<Vec<_>>());
        assert_eq!(word(&disk, journal + LENGTH) as usize, all);
        make_directories(&disk).unwrap();
        assert_eq!(word(&disk, journal + LENGTH) as usize, most);
        for at in unused {
            assert!(disk.0.borrow()[at..at + block_bytes].iter().all(|&byte| byte == 0), "a block at {at}");
        }
        // Linux brings it to its end.
        let image = folder.0.join("lost");
        fs::write(&image, &*disk.0.borrow()).unwrap();
        let repaired = run("e2fsck", &["-p", image.to_str().unwrap()]);
        assert!(repaired.status.code().is_some_and(|code| code < 2), "{repaired:?}");
        let repaired = Memory::of(fs::read(&image).unwrap());
        check_by_linux(&folder, &repaired.0.borrow());
        look(&repaired).unwrap();
        // So does Tern.
        look(&disk).unwrap();
        look(&disk).unwrap();
        let whole = mount(disk.clone(), || 0).unwrap();
        whole.unmount().unwrap();
        check_by_linux(&folder, &disk.0.borrow());
    }
}

/// A long journal that somebody has left with something in it: nothing of that is lost when it is made shorter.
#[test]
fn a_long_journal_in_use_comes_to_its_end_first() -> Result<()> {
    let folder = Folder::new("journal-in-use");
    let disk = made_by_linux(&folder, 64, &["-t", "ext4", "-b", "4096", "-J", LONG]);
    let journal = journal_at(&folder, &disk, 0, 4096);
    {
        let mut volume = Volume::new(mount(disk.clone(), || 0)?);
        let root = volume.root();
        volume.mkdir(root, b"kept", 0o755)?;
        volume.sync(root)?;
    }
    // It is as somebody would have left it who uses all of it, since he has not come to the end of the part.
    let most = (LEN_MAX / 4096) as u32;
    assert_eq!(word(&disk, journal + LENGTH), most);
    assert_ne!(word(&disk, journal + START), 0, "there is something in it");
    assert_eq!(word(&disk, journal + CHECKSUM), 0, "it has no checksum");
    let place = journal + LENGTH..journal + LENGTH + 4;
    disk.0.borrow_mut()[place].copy_from_slice(&((LEN / 4096) as u32).to_be_bytes());
    {
        let mut volume = Volume::new(mount(disk.clone(), || 0)?);
        let root = volume.root();
        assert!(volume.attributes_at(root, b"kept", Last::Stay).is_ok());
        volume.mkdir(root, b"new", 0o755)?;
        volume.sync(root)?;
    }
    assert_eq!(word(&disk, journal + LENGTH), most);
    let mut volume = Volume::new(mount(disk.clone(), || 0)?);
    let root = volume.root();
    for name in [&b"kept"[..], b"new"] {
        assert!(volume.attributes_at(root, name, Last::Stay).is_ok());
    }
    volume.into_inner().unmount()?;
    check_by_linux(&folder, &disk.0.borrow());
    Ok(())
}

/// Changes that are no transactions of the library's own, each safe before the next one is made, fill the journal again and again. None is refused, and the last one is there, also when power is lost.
#[test]
fn small_changes_have_room_in_the_journal() -> Result<()> {
    for (number, options) in KINDS.into_iter().enumerate() {
        let folder = Folder::new(&format!("journal-small-{number}"));
        let disk = made_by_linux(&folder, 32, options);
        let mut volume = Volume::new(mount(disk.clone(), || 1 << 60)?);
        let root = volume.root();
        let create = How { create: true, ..How::default() };
        let file = volume.open(root, b"f", create, 0o644)?;
        volume.write(file, 0, b"text")?;
        for step in 0..3000u16 {
            let changes = Changes { permissions: Some(step & 0o777), ..Changes::default() };
            let times = Changes { times: Some((1, 1)), ..Changes::default() };
            volume.change(file, if step % 3 == 0 { &times } else { &changes })?;
            // The time of the last reading is a change, too.
            volume.read(file, 0, &mut [0; 4])?;
            volume.sync(file)?;
        }
        let lost = Memory::of(disk.0.borrow().clone());
        volume.close(file)?;
        volume.into_inner().unmount()?;
        for disk in [disk, lost] {
            let mut volume = Volume::new(mount(disk.clone(), || 0)?);
            let root = volume.root();
            assert_eq!(volume.attributes_at(root, b"f", Last::Stay)?.permissions, 2999 & 0o777);
            volume.into_inner().unmount()?;
            check_by_linux(&folder, &disk.0.borrow());
        }
    }
    Ok(())
}
