//! A file of a sandbox of Linux, which has pages of it in frames, and another client of the same server that writes to it, too: against a row of bytes.
//!
//! Calls of the sandbox that write a little, and processes that have the file mapped, write to every other block of bytes, and the other client to those
//! between, so that one of them never overwrites the other's. A page that a process has written to is the file's as a whole when it is synced; until
//! then the other client leaves it alone. All else is at random: large writes, ends, names, pages that go for want of frames, and time.

use crate::as_on_linux::{Random, programs};
use crate::served::Served;
use linux::errno::Errno;
use linux::frames::{Bytes, Frame, PAGE};
use linux::memory::{Fault, Kind, Memory, Rights, Source};
use linux::store::{Clock, Store};
use std::cell::Cell;
use std::collections::BTreeSet;
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

thread_local! {
    /// Nanoseconds since 1970, of each test by itself.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

fn pass(nanoseconds: u64) {
    NOW.set(NOW.get() + nanoseconds);
}

/// The server has whole seconds.
fn seconds() -> u64 {
    NOW.get() / 1_000_000_000 * 1_000_000_000
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

type Sandbox = Store<Pages, Client>;

struct Pair {
    seed: u64,
    store: Sandbox,
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

/// A failure says by which seed it comes again.
impl Drop for Pair {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.seed);
        }
    }
}

impl Pair {
    fn new(seed: u64) -> Pair {
        // Each seed begins at the same time, whatever ran before.
        NOW.set(1_000_000_000_000);
        let served = Served::new(Ram::new(16 << 20, seconds), 100);
        let mut other = Volume::new(Remote::new(served.clone()).unwrap());
        let root = other.root();
        let file = other.open(root, b"a", CREATE, 0o600).unwrap();
        // Nobody has used it for long.
        pass(10_000_000_000);
        let pages = Pages(vec![vec![0xee; PAGE as usize]; 18]);
        let mut store = Store::new(pages, Remote::new(served).unwrap());
        store.clock = Clock(Box::new(|| NOW.get()));
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
        Pair { seed, store, memory, inode, other, file, names, model, touched, random }
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

    /// A call or a fault of the process, from its beginning to its end: then pages are nobody's that it has found to be behind the end of a file.
    fn enter<T>(&mut self, run: impl FnOnce(&mut Sandbox, &mut Memory) -> T) -> T {
        self.store.volume.begin();
        let done = run(&mut self.store, &mut self.memory);
        for source in self.store.take_cut() {
            self.memory.forget_source(&mut self.store.frames, source);
        }
        done
    }

    /// The process writes to its memory. Whether it can.
    fn poke(&mut self, place: u64, bytes: &[u8]) -> bool {
        self.enter(|store, memory| store.write(memory, place, bytes).is_ok())
    }

    fn sync(&mut self) {
        let inode = self.inode;
        self.enter(|store, _| store.write_back_all(inode)).unwrap();
        self.touched.clear();
    }

    /// The process gives frames back.
    fn make_room(&mut self) {
        self.enter(|store, memory| memory.discard(&mut store.frames, OTHER, 8 * PAGE)).unwrap();
    }

    /// A file ends here from now on.
    fn ends(&mut self, len: u64) {
        self.model.resize(len as usize, 0);
        self.touched.retain(|page| page * PAGE < len);
    }

    /// Something that the sandbox does.
    fn act(&mut self) {
        let (len, inode) = (self.model.len() as u64, self.inode);
        match self.random.below(12) {
            0..4 => {
                let Some((at, bytes)) = self.piece(false) else { return };
                // Across the border of two pages of the process.
                let place = BUFFER + PAGE - self.random.below(BLOCK);
                if !self.poke(place, &bytes) {
                    return;
                }
                let piece = (place, bytes.len() as u64);
                let count = self.enter(|store, memory| store.write_cached(memory, inode, at, piece));
                assert_eq!(count, Ok(Some(piece.1)));
                self.put(at, &bytes);
            }
            4 => {
                let at = self.random.below(len.min(LEN_MAX - 1) + 1);
                let count = 1 + self.random.below((LEN_MAX - at).min(2 * PAGE));
                let value = self.random.below(255) as u8 + 1;
                let bytes = vec![value; count as usize];
                assert_eq!(self.enter(|store, _| store.write_at(inode, at, &bytes)), Ok(bytes.len()));
                self.put(at, &bytes);
            }
            5 => {
                let to = self.random.below(LEN_MAX);
                self.enter(|store, _| store.truncate(inode, to)).unwrap();
                self.ends(to);
            }
            6 => self.sync(),
            7 => self.enter(|store, _| store.write_late(inode)).unwrap(),
            8 => {
                let found = self.enter(|store, _| store.attributes(inode)).unwrap();
                self.other.begin();
                let seen = self.other.attributes(self.file).unwrap();
                assert_eq!(Attributes { accessed: 0, ..found }, Attributes { accessed: 0, ..seen });
                assert_eq!(found.len, len);
            }
            9 => {
                // Some frames are used for something else, or not any more.
                let at = OTHER + self.random.below(8) * PAGE;
                if !self.poke(at, b"x") {
                    self.make_room();
                }
            }
            _ => {
                // Without a call, but not before one has seen what the other client wrote to this page.
                let Some((at, bytes)) = self.piece(false) else { return };
                self.enter(|store, _| store.map_file(inode)).unwrap();
                if self.poke(SHARED + at, &bytes) {
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
        let inode = self.inode;
        let mut at = 0;
        while at < self.model.len() as u64 {
            let piece = (BUFFER, 1 + self.random.below(PAGE));
            let Ok(count) = self.enter(|store, memory| store.read_cached(memory, inode, at, piece)) else {
                self.make_room();
                continue;
            };
            let mut bytes = vec![0; count as usize];
            self.enter(|store, memory| store.read(memory, BUFFER, &mut bytes)).unwrap();
            assert!(count > 0, "at {at} of {}", self.model.len());
            self.same(&bytes, at, "small");
            at += count;
        }
        let mut all = vec![0; LEN_MAX as usize + 1];
        let count = self.enter(|store, _| store.read_at(inode, 0, &mut all)).unwrap();
        assert_eq!(count, self.model.len());
        self.same(&all[..count], 0, "large");
        self.compare_mapped();
    }

    /// The sandbox sees all of the file where it is mapped, and nothing behind its end.
    fn compare_mapped(&mut self) {
        for page in 0..6 {
            let at = page * PAGE;
            for place in [SHARED, PRIVATE] {
                let mut bytes = vec![0; PAGE as usize];
                let found = self.enter(|store, memory| store.page(memory, place + at, Rights::READ));
                if at >= self.model.len() as u64 {
                    assert_eq!(found, Err(Fault::BehindEnd), "page {page}");
                } else if found != Err(Fault::NoMemory) {
                    self.enter(|store, memory| store.read(memory, place + at, &mut bytes)).unwrap();
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
                0..4 => pair.act(),
                4..6 => pair.others_act(),
                6 => pair.compare(),
                _ => {
                    pass(pair.random.below(3_000_000_000));
                }
            }
        }
        pair.sync();
        pair.other.begin();
        let mut all = vec![0; LEN_MAX as usize + 1];
        let count = pair.other.read(pair.file, 0, &mut all).unwrap();
        assert_eq!(&all[..count], pair.model);
        pair.compare();
    }
}

type Call = fn(&mut Sandbox, &mut Memory, Inode) -> Result<(), Errno>;

/// Calls by which a sandbox finds that a file has ended, none of which changes it.
const CALLS: [(&str, Call); 9] = [
    ("a small read", |store, memory, file| store.read_cached(memory, file, 0, (BUFFER, 1)).map(|_| ())),
    ("a large read", |store, _, file| store.read_at(file, 0, &mut [0; 8]).map(|_| ())),
    ("a small write", |store, memory, file| {
        store.write_cached(memory, file, LEN_MAX, (BUFFER, 1)).map(|count| assert_eq!(count, None))
    }),
    ("a large write", |store, _, file| store.write_at(file, 0, &[]).map(|_| ())),
    ("an end", |store, _, file| {
        let len = store.volume.len(file).unwrap();
        store.truncate(file, len)
    }),
    ("a mapping", |store, _, file| store.map_file(file).map(|_| ())),
    ("a sync", |store, _, file| store.write_back_all(file)),
    ("late bytes", |store, _, file| store.write_late(file)),
    ("attributes", |store, _, file| store.attributes(file).map(|_| ())),
];

/// An empty file has nothing to be read in small pieces: a large read, or any other call, may be the first that finds it so.
#[test]
fn pages_behind_the_end_go_with_the_call_that_finds_it() {
    for len in [0, 1, PAGE, PAGE + 1] {
        for (name, call) in CALLS {
            let mut pair = Pair::new(1);
            let bytes = vec![7; 2 * PAGE as usize];
            assert_eq!(pair.other.write(pair.file, 0, &bytes), Ok(bytes.len()));
            pair.put(0, &bytes);
            pair.compare();
            let inode = pair.inode;
            // One byte is late, and goes with the others.
            assert!(pair.poke(BUFFER, &[8]));
            assert_eq!(
                pair.enter(|store, memory| store.write_cached(memory, inode, 0, (BUFFER, 1))),
                Ok(Some(1))
            );
            pair.put(0, &[8]);
            pair.other.begin();
            pair.other.truncate(pair.file, len).unwrap();
            pair.ends(len);
            let done = pair.enter(|store, memory| call(store, memory, inode));
            println!("{name}, {len} bytes: {done:?}");
            assert_eq!(done, Ok(()));
            pair.compare_mapped();
            pair.compare();
        }
    }
}
