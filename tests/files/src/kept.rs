//! Pages of files on a disk that are kept when nobody holds them. That they never tell anything but what the file system would is tested against Linux in `as_on_linux`.

use crate::as_on_linux::{Folder, Random};
use crate::ext4_on_disk::{KINDS, Memory, made_by_linux, mount};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use vfs::page::{PAGE, Page, Paged, Plain, PlainSent};
use vfs::{Cached, How, Inode, Ram, Result, Volume};

const CREATE: How = How { create: true, exclusive: false, truncate: false };

/// A disk that counts what is read.
#[derive(Clone)]
struct Read {
    disk: Memory,
    count: Rc<Cell<usize>>,
}

impl ext4::Disk for Read {
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
        self.count.set(self.count.get() + 1);
        self.disk.read(first, to)
    }
    fn write(&mut self, first: u64, from: &[u8]) -> Result<()> {
        self.disk.write(first, from)
    }
    fn flush(&mut self) -> Result<()> {
        self.disk.flush()
    }
}

/// How a page's bytes are got.
fn page_of<F: Paged>(volume: &mut Volume<F>, file: Inode, number: usize, is_sent: bool) -> Vec<u8> {
    let at = (number * PAGE) as u64;
    if is_sent {
        return volume.send(file, at, PAGE).unwrap().expect("it is sent from where it lies").to_vec();
    }
    let mut bytes = vec![0; PAGE];
    assert_eq!(volume.read(file, at, &mut bytes), Ok(PAGE));
    bytes
}

/// A file is read again, sent and mapped again, and its length is known: the disk is not asked. What was not used for long is read again when there was no room for it.
#[test]
fn a_disk_is_not_asked_again() {
    const PAGES: usize = 16;
    let folder = Folder::new("kept");
    for options in KINDS {
        let count = Rc::new(Cell::new(0));
        let disk = Read { disk: made_by_linux(&folder, 16, options), count: count.clone() };
        let mounted = mount(disk, || 1 << 60).unwrap();
        let mut volume: Volume<Cached<_, Plain>> = Volume::new(Cached::keeping(mounted, PAGES));
        let root = volume.root();
        let file = volume.open(root, b"f", CREATE, 0o644).unwrap();
        let contents: Vec<u8> = (0..2 * PAGES).flat_map(|number| [number as u8 + 1; PAGE]).collect();
        volume.write(file, 0, &contents).unwrap();
        volume.sync(file).unwrap();
        let len = volume.len_word(file).unwrap();
        let asked = |run: &mut dyn FnMut()| {
            let before = count.get();
            run();
            count.get() - before
        };
        assert!(
            asked(&mut || (0..PAGES).for_each(|number| drop(page_of(&mut volume, file, number, false)))) > 0
        );
        for is_sent in [false, true] {
            let again = asked(&mut || {
                for number in 0..PAGES {
                    assert_eq!(page_of(&mut volume, file, number, is_sent), [number as u8 + 1; PAGE]);
                }
                assert_eq!(len.load(Ordering::Acquire), (2 * PAGES * PAGE) as u64);
                drop(volume.page(file, PAGE as u64, false).unwrap());
            });
            assert_eq!(again, 0, "{options:?}");
        }
        // The others need room, which those have that were used less lately.
        for number in PAGES..2 * PAGES - 2 {
            page_of(&mut volume, file, number, false);
            page_of(&mut volume, file, 3, true);
        }
        assert_eq!(asked(&mut || drop(page_of(&mut volume, file, 3, false))), 0);
        assert!(asked(&mut || drop(page_of(&mut volume, file, 4, false))) > 0);
        // Bytes that are written are there at once, and need no reading.
        let written = asked(&mut || {
            volume.write(file, 3 * PAGE as u64 + 5, b"text").unwrap();
        });
        let mut bytes = [0; 4];
        let read = asked(&mut || assert_eq!(volume.read(file, 3 * PAGE as u64 + 5, &mut bytes), Ok(4)));
        assert_eq!((&bytes, read <= 1), (b"text", true), "{written} to write");
        let mounted = volume.into_inner().into_inner();
        mounted.unmount().unwrap();
    }
}

thread_local! {
    /// Pages for which there is still memory.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// A page of memory of which there is little.
#[derive(Clone)]
struct Few(Plain, #[expect(dead_code, reason = "it counts")] Rc<Counted>);

struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        LEFT.set(LEFT.get() + 1);
    }
}

impl Few {
    fn of(page: impl FnOnce() -> Option<Plain>) -> Option<Few> {
        LEFT.set(LEFT.get().checked_sub(1)?);
        Some(Few(page()?, Rc::new(Counted)))
    }
}

impl Page for Few {
    fn zeroed() -> Option<Few> {
        Few::of(Plain::zeroed)
    }
    fn read(&self, at: usize, to: &mut [u8]) {
        self.0.read(at, to);
    }
    fn write(&self, at: usize, from: &[u8]) {
        self.0.write(at, from);
    }
    fn clear(&self, at: usize) {
        self.0.clear(at);
    }
    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }
    type Sent = PlainSent;
    fn send(&mut self, at: usize, len: usize) -> Option<PlainSent> {
        self.0.send(at, len)
    }
    fn is_sent(&self) -> bool {
        self.0.is_sent()
    }
    fn copied(&self) -> Option<Few> {
        Few::of(|| self.0.copied())
    }
}

/// When memory is short, pages that are kept are given up for others; with none at all, files are read all the same.
#[test]
fn kept_pages_are_given_up_when_memory_is_short() {
    for memory in [0, 1, 3, 8] {
        LEFT.set(memory);
        let mut volume: Volume<Cached<Ram<Plain>, Few>> =
            Volume::new(Cached::keeping(Ram::new(1 << 20, || 0), 1000));
        let root = volume.root();
        let file = volume.open(root, b"f", CREATE, 0o644).unwrap();
        let mut expected = vec![0; 40 * PAGE];
        volume.write(file, 0, &expected).unwrap();
        let mut random = Random(memory as u64);
        let mut sent = Vec::new();
        for step in 0..2000 {
            let at = random.below(39 * PAGE as u64) as usize;
            let len = 1 + random.below(PAGE as u64) as usize;
            match random.below(4) {
                0 => {
                    let bytes = vec![step as u8; len];
                    assert_eq!(volume.write(file, at as u64, &bytes), Ok(len));
                    expected[at..at + len].copy_from_slice(&bytes);
                }
                1 => {
                    let len = len.min(PAGE - at % PAGE);
                    if let Some(bytes) = volume.send(file, at as u64, len).unwrap() {
                        assert_eq!(*bytes, expected[at..at + len], "{memory}, step {step}");
                        sent.push(bytes);
                    }
                    if sent.len() > 2 {
                        sent.remove(0);
                    }
                }
                _ => {
                    let mut bytes = vec![0; len];
                    assert_eq!(volume.read(file, at as u64, &mut bytes), Ok(len));
                    assert_eq!(bytes, expected[at..at + len], "{memory}, step {step}");
                }
            }
        }
        assert!(volume.into_inner().pages_count() <= memory);
    }
}
