//! Large directories on ext4: their blocks, and those of their trees of extents, are counted as Linux counts them, whenever power is lost.

use crate::as_on_linux::Folder;
use crate::ext4_on_disk::{self, KINDS, Memory, Mounted, check_by_linux, made_by_linux, run, tool};
use crate::served::Served;
use std::fs;
use vfs::path::Last;
use vfs::remote::Remote;
use vfs::{How, Volume};

const CREATE: How = How { create: true, exclusive: false, truncate: false };

/// A name of 200 bytes.
fn name(number: u32) -> Vec<u8> {
    format!("d/{number:0>200}").into_bytes()
}

fn mount(disk: &Memory) -> Volume<Mounted<'static>> {
    Volume::new(ext4_on_disk::mount(disk.clone(), || 1_000_000_000 << 30).unwrap())
}

/// Files of a directory whose blocks lie between theirs, so that each is an extent of its own. Disks that would be there if power were lost meanwhile.
fn fill(disk: &Memory, files: u32) -> Vec<Vec<u8>> {
    let mut volume = mount(disk);
    let root = volume.root();
    volume.mkdir(root, b"d", 0o755).unwrap();
    let mut lost = Vec::new();
    for number in 0..files {
        let file = volume.open(root, &name(number), CREATE, 0o644).unwrap();
        volume.write(file, 0, b"text").unwrap();
        // Each file is safe before the next one is made, so there are as many transactions.
        volume.sync(file).unwrap();
        volume.close(file).unwrap();
        if number % (files / 8) == files / 9 {
            lost.push(disk.0.borrow().clone());
        }
    }
    volume.into_inner().unmount().unwrap();
    lost
}

/// Depth of the tree of extents that the directory has.
fn depth(folder: &Folder) -> u32 {
    let image = folder.0.join("checked");
    let found = tool("debugfs", &["-R", "ex /d", image.to_str().unwrap()]);
    let found = String::from_utf8(found).unwrap();
    let line = found.lines().nth(1).unwrap();
    line.split('/').nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap().parse().unwrap()
}

/// Fails unless both bring a disk in order on which power was lost, and Linux finds no mistake then; nor may Linux correct a count when it does so.
fn check_lost(folder: &Folder, lost: Vec<u8>) {
    let image = folder.0.join("lost");
    fs::write(&image, &lost).unwrap();
    let repaired = run("e2fsck", &["-p", image.to_str().unwrap()]);
    assert!(repaired.status.code().is_some_and(|code| code < 2), "{repaired:?}");
    let forced = run("e2fsck", &["-f", "-n", image.to_str().unwrap()]);
    assert!(forced.status.success(), "{}", String::from_utf8_lossy(&forced.stdout));
    let disk = Memory::of(lost);
    mount(&disk).into_inner().unmount().unwrap();
    check_by_linux(folder, &disk.0.borrow());
}

/// Kinds of journals: as `mke2fs` makes them, and with the checksums that Linux gives them.
const SUMS: [Option<&str>; 3] = [None, Some("2"), Some("3")];

#[test]
fn blocks_of_directories_are_counted() {
    for (number, options) in KINDS.into_iter().enumerate() {
        let has_journal = !options.contains(&"^has_journal");
        for sums in SUMS {
            let is_plain = options.contains(&"^dir_index,^metadata_csum");
            if sums.is_some() && (!has_journal || is_plain) {
                continue;
            }
            let folder = Folder::new(&format!("counted-{number}-{}", sums.unwrap_or("0")));
            let disk = made_by_linux(&folder, 32, options);
            if let Some(sums) = sums {
                give_sums(&folder, &disk, sums);
            }
            let is_small = options.contains(&"1024");
            let lost = fill(&disk, if is_small { 1500 } else { 300 });
            check_by_linux(&folder, &disk.0.borrow());
            // With small blocks there are so many that the tree has nodes that lead to nodes.
            assert_eq!(depth(&folder), if is_small { 2 } else { 1 }, "{options:?}");
            if has_journal {
                lost.into_iter().for_each(|lost| check_lost(&folder, lost));
            }
        }
    }
}

/// Has the journal's blocks have checksums.
fn give_sums(folder: &Folder, disk: &Memory, version: &str) {
    let (image, orders) = (folder.0.join("summed"), folder.0.join("orders"));
    fs::write(&image, &*disk.0.borrow()).unwrap();
    fs::write(&orders, format!("journal_open -c -v {version}\njournal_close\n")).unwrap();
    tool("debugfs", &["-w", "-f", orders.to_str().unwrap(), image.to_str().unwrap()]);
    let found = tool("dumpe2fs", &["-h", image.to_str().unwrap()]);
    let found = String::from_utf8(found).unwrap();
    assert!(found.contains(&format!("journal_checksum_v{version}")), "{found}");
    *disk.0.borrow_mut() = fs::read(&image).unwrap();
}

/// Names that make a tree, of a directory that goes again: its blocks are free then.
#[test]
fn blocks_of_directories_are_given_back() {
    let folder = Folder::new("counted-gone");
    let disk = made_by_linux(&folder, 32, KINDS[3]);
    let mut volume = mount(&disk);
    let root = volume.root();
    let before = volume.space().unwrap().free;
    volume.into_inner().unmount().unwrap();
    fill(&disk, 600);
    let mut volume = mount(&disk);
    for number in 0..600 {
        volume.unlink(root, &name(number)).unwrap();
    }
    volume.rmdir(root, b"d").unwrap();
    assert_eq!(volume.space().unwrap().free, before);
    volume.into_inner().unmount().unwrap();
    check_by_linux(&folder, &disk.0.borrow());
}

/// A directory that loses its name while a client has it open keeps its number until it is closed, though the disk would give it to the next thing that is made.
#[test]
fn an_open_directory_keeps_its_number() {
    let folder = Folder::new("number");
    let disk = made_by_linux(&folder, 8, KINDS[0]);
    let served = Served::new(mount(&disk).into_inner(), 100);
    let mut client = Volume::new(Remote::new(served.clone()).unwrap());
    let (root, before) = (client.root(), served.open_count());
    for is_replaced in [false, true] {
        client.mkdir(root, b"d", 0o755).unwrap();
        let directory = client.enter(root, b"d").unwrap();
        if is_replaced {
            client.mkdir(root, b"other", 0o755).unwrap();
            client.rename(root, b"other", b"d").unwrap();
        } else {
            client.rmdir(root, b"d").unwrap();
            // A directory that is not empty keeps its name, and nothing is kept for it.
            client.mkdir(root, b"d", 0o755).unwrap();
            client.mkdir(root, b"d/d", 0o755).unwrap();
            let full = client.enter(root, b"d").unwrap();
            client.rmdir(root, b"d").unwrap_err();
            client.close(full).unwrap();
            client.rmdir(root, b"d/d").unwrap();
        }
        let file = client.open(root, b"file", CREATE, 0o644).unwrap();
        client.mkdir(root, b"e", 0o755).unwrap();
        client.symlink(root, b"to", b"link").unwrap();
        for name in [&b"file"[..], b"d", b"e", b"link"] {
            let found = client.attributes_at(root, name, Last::Stay).unwrap();
            assert_ne!(found.inode, directory, "{is_replaced}");
        }
        assert_eq!(client.attributes(directory).map(|found| found.links), Ok(0));
        client.close(file).unwrap();
        client.close(directory).unwrap();
        for name in [&b"file"[..], b"link"] {
            client.unlink(root, name).unwrap();
        }
        for name in [&b"d"[..], b"e"] {
            client.rmdir(root, name).unwrap();
        }
    }
    assert!(served.open_count() <= before + 1, "{} objects", served.open_count());
}
