//! Files of more than 4 GiB, on a disk that is larger still: an image of the host's with holes, so that it takes no room.

use crate::as_on_linux::Folder;
use crate::ext4_on_disk::{mount, tool};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;
use vfs::page::{PAGE, Page, Paged, Plain};
use vfs::{Cached, FileSystem, How, Ram, Result, Volume};

const GIB: u64 = 1 << 30;

/// Bytes of the image.
const DISK: u64 = 8 * GIB;

/// Blocks that something else has, of 4 KiB: with them gone a file's bytes lie behind 4 GiB of the disk, too.
const TAKEN: u64 = 1_100_000;

/// Places at which bytes are written: across 2 and 4 GiB, and behind 5 GiB.
const PLACES: [u64; 5] = [0, 2 * GIB - 3, 4 * GIB - 3, 5 * GIB, 5 * GIB + 5000];

/// Bytes that are written at each.
const TEXT: &[u8; 8] = b"far away";

const CREATE: How = How { create: true, exclusive: false, truncate: false };

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// A file of the host's as a disk.
#[derive(Clone)]
struct Image(Rc<File>);

impl ext4::Disk for Image {
    fn sector_bytes(&self) -> u32 {
        SECTOR as u32
    }

    fn sectors(&self) -> u64 {
        DISK / SECTOR
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<()> {
        self.0.read_exact_at(to, first * SECTOR).unwrap();
        Ok(())
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<()> {
        self.0.write_all_at(from, first * SECTOR).unwrap();
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

fn read<F: Paged>(volume: &mut Volume<F>, file: vfs::Inode, at: u64, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0xee; len];
    let count = volume.read(file, at, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Bytes of a page that is mapped.
fn mapped<F: Paged>(volume: &mut Volume<F>, file: vfs::Inode, at: u64) -> Result<[u8; PAGE]> {
    let mut bytes = [0; PAGE];
    volume.page(file, at, false)?.read(0, &mut bytes);
    Ok(bytes)
}

/// A file is written, read, mapped and cut off on both sides of 4 GiB. Afterwards `far` is as long as [`PLACES`] says, and `cut` ends in front of 4 GiB.
fn far_away<F: Paged>(volume: &mut Volume<F>) -> Result<()> {
    let root = volume.root();
    for name in [&b"far"[..], b"cut"] {
        let file = volume.open(root, name, CREATE, 0o644)?;
        for at in PLACES {
            assert_eq!(volume.write(file, at, TEXT)?, TEXT.len());
        }
        let end = 5 * GIB + 5000 + 8;
        assert_eq!(volume.attributes(file)?.len, end);
        for at in PLACES {
            assert_eq!(read(volume, file, at, TEXT.len())?, TEXT, "{at:x}");
            assert_eq!(read(volume, file, at + 100, 3)?.iter().sum::<u8>(), 0, "{at:x}");
        }
        assert_eq!(read(volume, file, end - 3, 9)?, b"way");
        assert_eq!(read(volume, file, end, 9)?, b"");
        let page = mapped(volume, file, 4 * GIB)?;
        assert!(page.starts_with(b" away") && page[5..].iter().all(|&byte| byte == 0));
        assert!(mapped(volume, file, 5 * GIB)?.starts_with(TEXT));
        assert_eq!(&mapped(volume, file, 5 * GIB + PAGE as u64)?[904..912], TEXT);
        assert!(volume.page(file, 5 * GIB + 2 * PAGE as u64, false).is_err());
        volume.close(file)?;
    }
    let cut = volume.open(root, b"cut", How::default(), 0)?;
    for end in [4 * GIB + 1, 4 * GIB, 4 * GIB - 1] {
        volume.truncate(cut, end)?;
        assert_eq!(volume.attributes(cut)?.len, end);
        assert_eq!(read(volume, cut, end - 2, 9)?.len(), 2);
        // Bytes that were cut off do not come back.
        volume.truncate(cut, 5 * GIB + 8)?;
        assert_eq!(read(volume, cut, 5 * GIB, 9)?, [0; 8]);
        assert_eq!(read(volume, cut, end, 9)?, [0; 9]);
        volume.truncate(cut, end)?;
    }
    assert_eq!(read(volume, cut, 4 * GIB - 3, 9)?, b"fa");
    // By way of a page, too.
    let far = volume.open(root, b"far", How::default(), 0)?;
    volume.page(far, 5 * GIB, true)?.write(1000, TEXT);
    volume.sync(far)?;
    assert_eq!(read(volume, far, 5 * GIB + 1000, 8)?, TEXT);
    volume.close(far)?;
    volume.close(cut)
}

/// Fails unless Linux finds no mistake, and finds these bytes of a file.
fn check_by_linux(image: &Path, disk: &Image, expected: &[(&str, u64, &[u8])]) {
    let image = image.to_str().unwrap();
    tool("e2fsck", &["-f", "-n", image]);
    for &(name, at, bytes) in expected {
        let place = String::from_utf8(tool("debugfs", &["-R", &format!("bmap {name} {}", at / 4096), image]));
        let block: u64 = place.unwrap().trim().parse().unwrap();
        assert!(block * 4096 > 4 * GIB, "{name} lies at {block}, in front of 4 GiB");
        let mut found = vec![0; bytes.len()];
        disk.0.read_exact_at(&mut found, block * 4096 + at % 4096).unwrap();
        assert_eq!(found, bytes, "{name} at {at:x}");
    }
}

#[test]
fn files_on_a_disk_may_be_large() -> Result<()> {
    let folder = Folder::new("large");
    let image = folder.0.join("image");
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&image).unwrap();
    file.set_len(DISK).unwrap();
    let at = image.to_str().unwrap();
    tool("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "4096", "-E", "nodiscard,lazy_itable_init=1", at]);
    tool("debugfs", &["-w", "-R", "write /dev/null taken", at]);
    tool("debugfs", &["-w", "-R", &format!("fallocate taken 0 {TAKEN}"), at]);
    let disk = Image(Rc::new(file));
    let mut volume = Volume::new(Cached::new(mount(disk.clone(), || 1 << 60)?, 16));
    far_away::<Cached<_, Plain>>(&mut volume)?;
    volume.into_inner().into_inner().unmount()?;
    check_by_linux(
        &image,
        &disk,
        &[
            ("far", 4 * GIB, b" away\0"),
            ("far", 5 * GIB, TEXT),
            ("far", 5 * GIB + 1000, TEXT),
            ("far", 5 * GIB + 5000, TEXT),
            ("cut", 4 * GIB - 3, b"fa\0"),
        ],
    );
    let stat = tool("debugfs", &["-R", "stat far", at]);
    let len = format!("Size: {}", 5 * GIB + 5008);
    assert!(String::from_utf8_lossy(&stat).contains(&len), "Linux finds it {len}");
    Ok(())
}

#[test]
fn files_in_memory_may_be_large() -> Result<()> {
    let mut volume = Volume::new(Ram::<Plain>::new(16 << 20, || 0));
    far_away(&mut volume)?;
    assert!(volume.into_inner().space()?.free > 15 << 20);
    Ok(())
}
