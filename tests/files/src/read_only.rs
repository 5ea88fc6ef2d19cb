//! Disks that can only be read: everything is read, and each operation that would write is refused.

use crate::as_on_linux::Folder;
use crate::ext4_on_disk::{self, KINDS, Memory, made_by_linux, mount};
use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::rc::Rc;
use vfs::page::{PAGE, Page, Plain};
use vfs::path::Last;
use vfs::{Cached, Changes, Error, How, Inode, Result, Volume};

/// A disk that refuses to be written, and counts who has tried.
struct ReadOnly {
    disk: Memory,
    tries: Rc<Cell<u32>>,
}

impl ext4::Disk for ReadOnly {
    fn sector_bytes(&self) -> u32 {
        self.disk.sector_bytes()
    }

    fn sectors(&self) -> u64 {
        self.disk.sectors()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<()> {
        self.disk.read(first, to)
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<()> {
        self.tries.set(self.tries.get() + 1);
        Err(Error::ReadOnly)
    }

    fn flush(&mut self) -> Result<()> {
        self.tries.set(self.tries.get() + 1);
        Err(Error::ReadOnly)
    }
}

type Mounted = Cached<ext4_on_disk::Mounted<'static>, Plain>;

/// A disk, mounted to be read, and how often somebody has tried to write to it.
fn mounted(disk: &Memory) -> Result<(Volume<Mounted>, Rc<Cell<u32>>)> {
    let tries = Rc::new(Cell::new(0));
    let disk = ReadOnly { disk: disk.clone(), tries: tries.clone() };
    Ok((Volume::new(Cached::new(mount(disk, || 1 << 60)?, 16)), tries))
}

/// An operation that would write.
type Refused = fn(&mut Volume<Mounted>, Inode, Inode) -> Result<()>;

/// Operations on a file that is open, and in the root directory.
const REFUSED: [(&str, Refused); 19] = [
    ("make a file", |volume, root, _| volume.open(root, b"new", CREATE, 0o644).map(drop)),
    ("empty a file", |volume, root, _| {
        volume.open(root, b"file", How { truncate: true, ..How::default() }, 0).map(drop)
    }),
    ("write", |volume, _, file| volume.write(file, 0, b"more").map(drop)),
    ("write behind the end", |volume, _, file| volume.write(file, 1 << 20, b"more").map(drop)),
    ("append", |volume, _, file| volume.append(file, b"more").map(drop)),
    ("cut off", |volume, _, file| volume.truncate(file, 1)),
    ("make longer", |volume, _, file| volume.truncate(file, 1 << 20)),
    ("map to write", |volume, _, file| volume.page(file, 0, true).map(drop)),
    ("change a file", |volume, _, file| volume.change(file, &PERMISSIONS)),
    ("change a directory", |volume, root, _| volume.change(root, &PERMISSIONS)),
    ("change times", |volume, _, file| {
        volume.change(file, &Changes { times: Some((1, 2)), ..Changes::default() })
    }),
    ("make a directory", |volume, root, _| volume.mkdir(root, b"new", 0o755)),
    ("make a link", |volume, root, _| volume.link(root, b"file", b"new")),
    ("make a symbolic link", |volume, root, _| volume.symlink(root, b"file", b"new")),
    ("move", |volume, root, _| volume.rename(root, b"file", b"new")),
    ("move over another", |volume, root, _| volume.rename(root, b"file", b"inner/deep")),
    ("unlink", |volume, root, _| volume.unlink(root, b"file")),
    ("unlink a symbolic link", |volume, root, _| volume.unlink(root, b"link")),
    ("remove a directory", |volume, root, _| volume.rmdir(root, b"empty")),
];

const CREATE: How = How { create: true, exclusive: false, truncate: false };

const PERMISSIONS: Changes = Changes { permissions: Some(0o600), owner: None, times: None };

/// Contents of the two files on the disk.
const TEXT: &[u8] = &[b'x'; 5000];

/// Fails unless all is there.
fn check_all(volume: &mut Volume<Mounted>, root: Inode) -> Result<()> {
    for path in [&b"file"[..], b"inner/deep", b"link"] {
        let file = volume.open(root, path, How::default(), 0)?;
        let mut bytes = [0; TEXT.len() + 1];
        assert_eq!(volume.read(file, 0, &mut bytes)?, TEXT.len());
        assert!(bytes.starts_with(TEXT));
        let (page, mut mapped) = (volume.page(file, PAGE as u64, false)?, [0; PAGE]);
        page.read(0, &mut mapped);
        assert!(mapped.starts_with(&TEXT[PAGE..]));
        assert_eq!(volume.attributes_at(root, path, Last::Follow)?.len, TEXT.len() as u64);
        // A reader does so as a matter of course.
        volume.sync(file)?;
        volume.close(file)?;
    }
    assert_eq!(volume.readlink(root, b"link")?, b"inner/deep");
    let names = volume.readdir(root, 0, 14)?.into_iter().map(|entry| entry.name).collect::<Vec<_>>();
    assert_eq!(names.iter().filter(|name| *name != b"lost+found").count(), 4, "{names:?}");
    volume.sync_all(root)?;
    assert!(volume.space()?.free > 0);
    Ok(())
}

#[test]
fn a_disk_that_can_only_be_read_is_read() -> Result<()> {
    for (number, options) in KINDS.into_iter().enumerate() {
        let folder = Folder::new(&format!("read-only-{number}"));
        let source = folder.0.join("source");
        fs::create_dir_all(source.join("inner")).unwrap();
        fs::create_dir_all(source.join("empty")).unwrap();
        for name in ["file", "inner/deep"] {
            fs::write(source.join(name), TEXT).unwrap();
        }
        symlink("inner/deep", source.join("link")).unwrap();
        let disk = made_by_linux(&folder, 16, &[options, &["-d", source.to_str().unwrap()]].concat());
        let before = disk.0.borrow().clone();
        let (mut volume, tries) = mounted(&disk)?;
        let root = volume.root();
        check_all(&mut volume, root)?;
        let file = volume.open(root, b"file", How::default(), 0)?;
        for (name, operation) in REFUSED {
            assert_eq!(operation(&mut volume, root, file), Err(Error::ReadOnly), "{name}, {options:?}");
        }
        check_all(&mut volume, root)?;
        volume.close(file)?;
        assert_eq!(volume.open_count(), 1, "only the root is open");
        volume.into_inner().into_inner().unmount()?;
        assert_eq!(tries.get(), 0, "nobody has tried to write, {options:?}");
        assert!(*disk.0.borrow() == before, "{options:?}");
    }
    Ok(())
}

/// The last one who could write has lost power: what he had synced lies in the journal, and is read all the same. The disk stays as it is.
#[test]
fn a_journal_that_cannot_be_replayed_is_read() -> Result<()> {
    let folder = Folder::new("read-only-journal");
    let disk = made_by_linux(&folder, 16, KINDS[0]);
    let mut volume = Volume::new(mount(disk.clone(), || 1 << 60)?);
    let root = volume.root();
    volume.mkdir(root, b"inner", 0o755)?;
    for path in [&b"file"[..], b"inner/deep"] {
        let file = volume.open(root, path, CREATE, 0o644)?;
        volume.write(file, 0, TEXT)?;
        volume.close(file)?;
    }
    volume.mkdir(root, b"empty", 0o755)?;
    volume.symlink(root, b"inner/deep", b"link")?;
    volume.sync(root)?;
    let before = disk.0.borrow().clone();
    drop(volume);
    *disk.0.borrow_mut() = before.clone();
    let (mut volume, tries) = mounted(&disk)?;
    let root = volume.root();
    check_all(&mut volume, root)?;
    assert_eq!(volume.mkdir(root, b"new", 0o755), Err(Error::ReadOnly));
    volume.into_inner().into_inner().unmount()?;
    assert_eq!(tries.get(), 0);
    assert!(*disk.0.borrow() == before);
    Ok(())
}
