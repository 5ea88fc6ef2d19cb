//! A file of a sandbox of Linux, which has pages of it in frames, and another client of the same server that writes to it, too: against a row of bytes.
//!
//! Calls of the sandbox that write a little, and processes that have the file mapped, write to every other block of bytes, and the other client to those
//! between, so that one of them never overwrites the other's. A page that a process has written to is the file's as a whole when it is synced; until
//! then the other client leaves it alone. All else is at random: large writes, ends, names, pages that go for want of frames, and time.

use crate::as_on_linux::{Random, programs};
use crate::served::Served;
use linux::frames::{Bytes, Frame, PAGE};
use linux::memory::{Fault, Kind, Memory, Rights, Source};
use linux::store::{Clock, Store};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use vfs::page::Plain;
use vfs::remote::Remote;
use vfs::{Attributes, How, Inode, Ram, Volume};

type Client = Remote<Served<Ram<Plain>>>;

const CREATE: How = How { create: true, exclusive: false, truncate: false };

/// Bytes of a block.
const BLOCK: u64 = 64;

/// Longest file.
const LEN_MAX: u64 = 6 * PAGE;

/// Memory of the process: a buffer, memory that only takes frames, and the file, once to be written and once for itself.
const BUFFER: u64 = 0x10_0000;
const OTHER: u64 = 0x20_0000;
const SHARED: u64 = 0x30_0000;
const PRIVATE: u64 = 0x40_0000;

/// Nanoseconds since 1970.
static NOW: AtomicU64 = AtomicU64::new(1_000_000_000_000);

/// The server has whole seconds.
fn seconds() -> u64 {
    NOW.load(Ordering::Relaxed) / 1_000_000_000 * 1_000_000_000
}

struct Pages(Vec<Vec<u8>>);

impl Bytes for Pages {
    fn count(&self) -> u32 {
        self.0.len() as u32
    }
    fn make(&mut self, _: Frame) -> bool {
        true
    }
    fn clear(&mut self, frame: Frame) {
        self.0[frame.0 as usize].fill(0);
    }
    fn copy(&mut self, from: Frame, to: Frame) {
        self.0[to.0 as usize] = self.0[from.0 as usize].clone();
    }
    fn copy_part(&mut self, from: (Frame, usize), to: (Frame, usize), len: usize) {
        let bytes = self.0[from.0.0 as usize][from.1..from.1 + len].to_vec();
        self.write(to.0, to.1, &bytes);
    }
    fn read(&self, frame: Frame, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.0[frame.0 as usize][at..at + to.len()]);
    }
    fn write(&mut self, frame: Frame, at: usize, from: &[u8]) {
        self.0[frame.0 as usize][at..at + from.len()].copy_from_slice(from);
    }
    fn protect(&mut self, _: Frame) {}
    fn withdraw(&mut self, _: Frame) {}
}

struct Pair {
    store: Store<Pages, Client>,
    memory: Memory,
    inode: Inode,
    other: Volume<Client>,
    file: Inode,
    names: [&'static [u8]; 2],
    /// The file as the sandbox sees it.
    model: Vec<u8>,
    /// Pages that the process has written to, and that were not synced since.
    touched: BTreeSet<u64>,
    random: Random,
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let served = Served::new(Ram::new(16 << 20, seconds), 100);
        let mut other = Volume::new(Remote::new(served.clone()).unwrap());
        let root = other.root();
        let file = other.open(root, b"a", CREATE, 0o600).unwrap();
        // Nobody has used it for long.
        NOW.fetch_add(10_000_000_000, Ordering::Relaxed);
        let pages = Pages(vec![vec![0xee; PAGE as usize]; 18]);
        let mut store = Store::new(pages, Remote::new(served).unwrap());
        store.clock = Clock(Box::new(|| NOW.load(Ordering::Relaxed)));
        store.volume.begin();
        let inode = store.volume.open(store.root, b"a", How::default(), 0).unwrap();
        let mut memory = Memory::default();
        let number = store.map_file(inode).unwrap();
        let private = Kind::private(Rights::READ_WRITE);
        let of_file = Kind { source: Some(Source { file: number, offset: 0 }), ..private };
        let shared = Kind { is_shared: true, ..of_file };
        let all = [(BUFFER, 2, private), (OTHER, 8, private), (SHARED, 6, shared), (PRIVATE, 6, of_file)];
        for (at, pages, kind) in all {
            memory.map(&mut store.frames, Some(at), pages * PAGE, kind, false).unwrap();
        }
        let names: [&[u8]; 2] = [b"a", b"b"];
        let (model, touched, random) = (Vec::new(), BTreeSet::new(), Random(seed));
        Pair { store, memory, inode, other, file, names, model, touched, random }
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        let end = at as usize + bytes.len();
        self.model.resize(self.model.len().max(end), 0);
        self.model[at as usize..end].copy_from_slice(bytes);
    }

    /// A piece of a block that is there, of the sandbox's or of the other's.
    fn piece(&mut self, is_other: bool) -> Option<(u64, Vec<u8>)> {
        let blocks = self.model.len() as u64 / (2 * BLOCK);
        let block = self.random.below(blocks.max(1)) * 2 + u64::from(is_other);
        let first = self.random.below(BLOCK);
        let len = 1 + self.random.below(BLOCK - first);
        let value = self.random.below(255) as u8 + 1;
        (blocks > 0).then(|| (block * BLOCK + first, vec![value; len as usize]))
    }

    /// After a call of the sandbox, pages behind the end of a file are nobody's.
    fn settle(&mut self) {
        for source in self.store.take_cut() {
            self.memory.forget_source(&mut self.store.frames, source);
        }
    }

    fn sync(&mut self) {
        self.store.write_back_all(self.inode).unwrap();
        self.touched.clear();
    }

    /// A file ends here from now on.
    fn ends(&mut self, len: u64) {
        self.model.resize(len as usize, 0);
        self.touched.retain(|page| page * PAGE < len);
    }

    /// Something that the sandbox does.
    fn act(&mut self) {
        let len = self.model.len() as u64;
        match self.random.below(12) {
            0..4 => {
                let Some((at, bytes)) = self.piece(false) else { return };
                // Across the border of two pages of the process.
                let place = BUFFER + PAGE - self.random.below(BLOCK);
                if self.store.write(&mut self.memory, place, &bytes).is_err() {
                    return;
                }
                let piece = (place, bytes.len() as u64);
                let count = self.store.write_cached(&mut self.memory, self.inode, at, piece).unwrap();
                assert_eq!(count, Some(piece.1));
                self.put(at, &bytes);
            }
            4 => {
                let at = self.random.below(len.min(LEN_MAX - 1) + 1);
                let count = 1 + self.random.below((LEN_MAX - at).min(2 * PAGE));
                let value = self.random.below(255) as u8 + 1;
                let bytes = vec![value; count as usize];
                assert_eq!(self.store.write_at(self.inode, at, &bytes), Ok(bytes.len()));
                self.put(at, &bytes);
            }
            5 => {
                let to = self.random.below(LEN_MAX);
                self.store.truncate(self.inode, to).unwrap();
                self.ends(to);
            }
            6 => self.sync(),
            7 => self.store.write_late(self.inode).unwrap(),
            8 => {
                let found = self.store.attributes(self.inode).unwrap();
                self.other.begin();
                let seen = self.other.attributes(self.file).unwrap();
                assert_eq!(Attributes { accessed: 0, ..found }, Attributes { accessed: 0, ..seen });
                assert_eq!(found.len, len);
            }
            9 => {
                // Some frames are used for something else, or not any more.
                let at = OTHER + self.random.below(8) * PAGE;
                if self.store.write(&mut self.memory, at, b"x").is_err() {
                    self.memory.discard(&mut self.store.frames, OTHER, 8 * PAGE).unwrap();
                }
            }
            _ => {
                // Without a call, but not before one has seen what the other client wrote to this page.
                let Some((at, bytes)) = self.piece(false) else { return };
                self.store.map_file(self.inode).unwrap();
                self.settle();
                if self.store.write(&mut self.memory, SHARED + at, &bytes).is_ok() {
                    self.put(at, &bytes);
                    self.touched.insert(at / PAGE);
                }
            }
        }
    }

    /// Something that the other client does.
    fn others_act(&mut self) {
        self.other.begin();
        match self.random.below(8) {
            0..5 => {
                let Some((at, bytes)) = self.piece(true) else { return };
                if !self.touched.contains(&(at / PAGE)) {
                    assert_eq!(self.other.write(self.file, at, &bytes), Ok(bytes.len()));
                    self.put(at, &bytes);
                }
            }
            5 => {
                // Bytes that it appends are not in a page that is written to.
                let at = self.model.len() as u64;
                let len = self.random.below(300).min(LEN_MAX - at.min(LEN_MAX)) as usize;
                if !self.touched.contains(&(at / PAGE)) && len > 0 {
                    assert_eq!(self.other.write(self.file, at, &vec![7; len]), Ok(len));
                    self.put(at, &vec![7; len]);
                }
            }
            6 => {
                let to = self.random.below(LEN_MAX);
                if self.touched.is_empty() {
                    self.other.truncate(self.file, to).unwrap();
                    self.ends(to);
                    // Late bytes of the sandbox that were cut off come back if it does not hear of it before the file gets longer.
                    self.compare();
                }
            }
            _ => {
                let root = self.other.root();
                self.other.rename(root, self.names[0], self.names[1]).unwrap();
                self.names.reverse();
            }
        }
    }

    /// The sandbox sees all of the file, by small reads, by large ones, and where it is mapped.
    fn compare(&mut self) {
        self.store.volume.begin();
        let mut at = 0;
        while at < self.model.len() as u64 {
            let len = 1 + self.random.below(PAGE);
            let Ok(count) = self.store.read_cached(&mut self.memory, self.inode, at, (BUFFER, len)) else {
                self.memory.discard(&mut self.store.frames, OTHER, 8 * PAGE).unwrap();
                continue;
            };
            let mut bytes = vec![0; count as usize];
            self.store.read(&mut self.memory, BUFFER, &mut bytes).unwrap();
            assert!(count > 0, "at {at} of {}", self.model.len());
            self.same(&bytes, at, "small");
            at += count;
        }
        self.settle();
        let mut all = vec![0; LEN_MAX as usize + 1];
        let count = self.store.read_at(self.inode, 0, &mut all).unwrap();
        assert_eq!(count, self.model.len());
        self.same(&all[..count], 0, "large");
        for page in 0..6 {
            let at = page * PAGE;
            for place in [SHARED, PRIVATE] {
                let mut bytes = vec![0; PAGE as usize];
                let found = self.store.page(&mut self.memory, place + at, Rights::READ);
                if at >= self.model.len() as u64 {
                    assert_eq!(found, Err(Fault::BehindEnd), "page {page}");
                } else if found != Err(Fault::NoMemory) {
                    self.store.read(&mut self.memory, place + at, &mut bytes).unwrap();
                    let there = (self.model.len() - at as usize).min(PAGE as usize);
                    self.same(&bytes[..there], at, "mapped");
                    assert!(bytes[there..].iter().all(|byte| *byte == 0), "behind the end");
                }
            }
        }
    }

    fn same(&self, bytes: &[u8], at: u64, how: &str) {
        let wanted = &self.model[at as usize..at as usize + bytes.len()];
        let wrong = bytes.iter().zip(wanted).position(|(found, wanted)| found != wanted);
        assert_eq!(wrong.map(|wrong| wrong as u64 + at), None, "{how}");
    }
}

#[test]
fn a_file_is_one_for_a_sandbox_and_another_client() {
    for seed in 1..=programs() {
        let mut pair = Pair::new(seed);
        for _ in 0..300 {
            match pair.random.below(8) {
                0..4 => {
                    pair.store.volume.begin();
                    pair.act();
                    pair.settle();
                }
                4..6 => pair.others_act(),
                6 => pair.compare(),
                _ => {
                    NOW.fetch_add(pair.random.below(3_000_000_000), Ordering::Relaxed);
                }
            }
        }
        pair.store.volume.begin();
        pair.sync();
        pair.other.begin();
        let mut all = vec![0; LEN_MAX as usize + 1];
        let count = pair.other.read(pair.file, 0, &mut all).unwrap();
        assert_eq!(&all[..count], pair.model, "seed {seed}");
        pair.compare();
    }
}
