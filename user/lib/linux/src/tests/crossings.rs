//! A file in all ways at once, against a row of bytes: written in small and large pieces and at its end, cut off, mapped by several processes that are copied
//! meanwhile, without a name, where frames are few, and changed by others.

use super::counted::Counted;
use super::random::Random;
use crate::errno::EFBIG;
use crate::frames::PAGE;
use crate::machine::Tid;
use crate::world::{OWN, World};
use core::cell::Cell;
use linux_raw_sys::general::*;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::vec;
use std::vec::Vec;
use vfs::path::Last;
use vfs::{FileSystem, Inode, Ram};

/// Longest file.
const LEN_MAX: u64 = 6 * PAGE;

/// Address at which each process has the file mapped.
const PLACE: u64 = 0x3000_0000;

/// Address of pieces in memory of a process: so that they cross a page, and there is room for the longest.
const PIECE: u64 = OWN + 2 * PAGE - 100;

/// Pages that a process has mapped.
#[derive(Clone, Copy, Debug)]
struct Mapped {
    first: u64,
    count: u64,
    is_writable: bool,
}

struct Crossing<F: FileSystem> {
    world: World<F>,
    random: Random,
    model: Vec<u8>,
    inode: Inode,
    /// A descriptor, and one that appends.
    fds: [u64; 2],
    maps: BTreeMap<Tid, Mapped>,
    limit: u64,
    has_name: bool,
    /// Others change the file, and say so.
    others: Option<Rc<Cell<u64>>>,
}

impl<F: FileSystem> Crossing<F> {
    fn new(files: F, seed: u64, others: Option<Rc<Cell<u64>>>) -> Crossing<F> {
        let mut world = World::on(files);
        world.file(b"/model", b"abcdef", 0o644);
        let fds = [0, O_APPEND].map(|flag| world.open(1, "/model", O_RDWR | flag).unwrap());
        world.action(1, SIGXFSZ, 1);
        world.put(1, OWN, &[0; 16 * PAGE as usize]);
        let root = world.system.store.root;
        let inode = world.system.store.volume.attributes_at(root, b"/model", Last::Name).unwrap().inode;
        let (random, model, maps, limit) = (Random(seed), b"abcdef".to_vec(), BTreeMap::new(), u64::MAX);
        Crossing { world, random, model, inode, fds, maps, limit, has_name: true, others }
    }

    fn len(&self) -> u64 {
        self.model.len() as u64
    }

    fn some(&mut self, len: u64) -> Vec<u8> {
        (0..len).map(|_| self.random.below(256) as u8).collect()
    }

    fn process(&mut self) -> Tid {
        let all: Vec<Tid> = self.world.system.processes.keys().copied().collect();
        all[self.random.below(all.len() as u64) as usize]
    }

    /// Bytes come to a position by a call.
    fn put(&mut self, at: u64, bytes: &[u8]) {
        let end = at as usize + bytes.len();
        if self.model.len() < end {
            self.model.resize(end, 0);
        }
        self.model[at as usize..end].copy_from_slice(bytes);
    }

    fn write(&mut self, appends: bool) {
        let most = if self.random.below(6) == 0 { 5 * PAGE } else { 300 };
        let at = if appends { self.len() } else { self.random.below(self.len() + 50) };
        let len = (1 + self.random.below(most)).min(LEN_MAX.saturating_sub(at));
        let bytes = self.some(len);
        self.world.put(1, PIECE, &bytes);
        let written = if appends {
            self.world.now(1, __NR_write, &[self.fds[1], PIECE, len])
        } else {
            self.world.now(1, __NR_pwrite64, &[self.fds[0], PIECE, len, at])
        };
        let expected = match self.limit.checked_sub(at) {
            _ if len == 0 => Ok(0),
            None | Some(0) => Err(EFBIG),
            Some(room) => Ok(len.min(room)),
        };
        assert_eq!(written, expected, "{len} bytes at {at} of {}", self.len());
        if let Ok(count @ 1..) = written {
            self.put(at, &bytes[..count as usize]);
        }
    }

    fn read(&mut self, at: u64, len: u64) {
        let wanted = self.model.get(at as usize..).unwrap_or_default();
        let wanted = wanted[..wanted.len().min(len as usize)].to_vec();
        let count = self.world.now(1, __NR_pread64, &[self.fds[0], PIECE, len, at]).unwrap();
        let mut bytes = vec![0; count as usize];
        self.world.system.read(1, PIECE, &mut bytes).unwrap();
        assert!(bytes == wanted, "{len} bytes at {at} of {}", self.len());
    }

    fn cut(&mut self) {
        let len = self.random.below(LEN_MAX);
        let cut = self.world.now(1, __NR_ftruncate, &[self.fds[0], len]);
        let is_too_long = len > self.len() && len > self.limit;
        assert_eq!(cut, if is_too_long { Err(EFBIG) } else { Ok(0) });
        if !is_too_long {
            self.model.resize(len as usize, 0);
        }
    }

    /// Bytes of the file that a process has mapped: where they begin and end.
    fn seen(&self, tid: Tid) -> Option<(u64, u64)> {
        let Mapped { first, count, .. } = *self.maps.get(&tid)?;
        let (from, to) = (first * PAGE, ((first + count) * PAGE).min(self.len()));
        (from < to).then_some((from, to))
    }

    fn access(&mut self, tid: Tid, writes: bool) {
        let Some(Mapped { first, count, is_writable }) = self.maps.get(&tid).copied() else { return };
        let end = PLACE + count * PAGE;
        // Behind the last page of the file there is nothing.
        let behind = PLACE + self.len().div_ceil(PAGE).saturating_sub(first) * PAGE;
        if behind < end {
            assert!(self.world.system.read(tid, behind, &mut [0]).is_err());
        }
        let Some((from, to)) = self.seen(tid) else { return };
        let at = from + self.random.below(to - from);
        let len = (1 + self.random.below(200)).min(to - at);
        let address = PLACE + at - first * PAGE;
        if writes {
            let bytes = self.some(len);
            let written = self.world.system.write(tid, address, &bytes);
            assert_eq!(written.is_ok(), is_writable);
            if is_writable {
                self.put(at, &bytes);
            }
        } else {
            let mut bytes = vec![0; len as usize];
            self.world.system.read(tid, address, &mut bytes).unwrap();
            assert!(bytes == self.model[at as usize..(at + len) as usize], "{len} bytes at {at} by {tid}");
        }
    }

    fn map(&mut self, tid: Tid) {
        let (first, count) = (self.random.below(4), 1 + self.random.below(4));
        let shared = u64::from(MAP_SHARED | MAP_FIXED);
        let arguments = [PLACE, count * PAGE, 3, shared, self.fds[0], first * PAGE];
        self.world.now(tid, __NR_mmap, &arguments).unwrap();
        let before = self.maps.insert(tid, Mapped { first, count, is_writable: true });
        if let Some(more) = before.map(|before| before.count.saturating_sub(count)).filter(|more| *more > 0) {
            self.world.now(tid, __NR_munmap, &[PLACE + count * PAGE, more * PAGE]).unwrap();
        }
    }

    fn change_map(&mut self, tid: Tid) {
        let Some(Mapped { first, count, is_writable }) = self.maps.get(&tid).copied() else { return };
        let left = 1 + self.random.below(count);
        let len = count * PAGE;
        match self.random.below(5) {
            0 => {
                self.world.now(tid, __NR_mremap, &[PLACE, len, left * PAGE, 0]).unwrap();
                self.maps.insert(tid, Mapped { first, count: left, is_writable });
            }
            1 => {
                let rights = if is_writable { PROT_READ } else { PROT_READ | PROT_WRITE };
                self.world.now(tid, __NR_mprotect, &[PLACE, len, rights.into()]).unwrap();
                self.maps.insert(tid, Mapped { first, count, is_writable: !is_writable });
            }
            2 => {
                let over = u64::from(MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
                self.world.now(tid, __NR_mmap, &[PLACE, len, 3, over, 0, 0]).unwrap();
                self.world.now(tid, __NR_munmap, &[PLACE, len]).unwrap();
                self.maps.remove(&tid);
            }
            3 => drop(self.world.now(tid, __NR_madvise, &[PLACE, len, MADV_DONTNEED.into()]).unwrap()),
            _ => {
                self.world.now(tid, __NR_munmap, &[PLACE, len]).unwrap();
                self.maps.remove(&tid);
            }
        }
    }

    fn begin_or_end(&mut self) {
        let tid = self.process();
        if tid == 1 && self.world.system.processes.len() < 4 {
            let child = self.world.fork(1);
            if let Some(mapped) = self.maps.get(&1).copied() {
                self.maps.insert(child, mapped);
            }
        } else if tid != 1 {
            self.world.exit(tid);
            self.maps.remove(&tid);
            assert_eq!(self.world.now(1, __NR_wait4, &[tid.into(), 0, 0, 0]), Ok(tid.into()));
        }
    }

    /// The file itself has all of it after a sync. Then others may change it.
    fn sync(&mut self) {
        match self.random.below(3) {
            0 => drop(self.world.now(1, __NR_sync, &[]).unwrap()),
            _ => drop(self.world.now(1, __NR_fsync, &[self.fds[0]]).unwrap()),
        }
        self.compare();
        if self.random.below(3) > 0 {
            return;
        }
        let len = self.len();
        let volume = &mut self.world.system.store.volume;
        if self.random.below(3) == 0 {
            let len = self.random.below(len + 1);
            volume.truncate(self.inode, len).unwrap();
            self.model.truncate(len as usize);
        } else {
            let at = self.random.below(len + 1);
            let bytes: Vec<u8> = (0..1 + self.random.below(300)).map(|_| b'o').collect();
            let bytes = &bytes[..bytes.len().min((LEN_MAX - at) as usize)];
            volume.write(self.inode, at, bytes).unwrap();
            self.put(at, bytes);
        }
        if let Some(others) = &self.others {
            others.set(others.get() + 1);
        }
        // The next call sees it, and so do pages from then on.
        self.read(0, 10);
    }

    fn compare(&mut self) {
        let mut bytes = vec![0; LEN_MAX as usize + 1];
        let count = self.world.system.store.volume.read(self.inode, 0, &mut bytes).unwrap();
        bytes.truncate(count);
        assert!(bytes == self.model, "{count} bytes, where {} should be", self.model.len());
    }

    /// Frames run out, so all that nobody has mapped has to go.
    fn press(&mut self) {
        let kind = u64::from(MAP_PRIVATE | MAP_ANONYMOUS);
        let at = self.world.now(1, __NR_mmap, &[0, 1100 * PAGE, 3, kind, 0, 0]).unwrap();
        let taken = (0..1100).take_while(|page| self.world.system.write(1, at + page * PAGE, b"x").is_ok());
        assert!(taken.count() < 1000);
        // Pages of memory that a child has, too, cannot be written to then.
        if self.world.system.processes.len() == 1 {
            self.read(0, 100);
            self.write(false);
        }
        self.world.now(1, __NR_munmap, &[at, 1100 * PAGE]).unwrap();
    }

    fn others_ways(&mut self) {
        match self.random.below(6) {
            0 if self.has_name => {
                let fd = self.world.open(1, "/model", O_RDWR | O_TRUNC).unwrap();
                self.model.clear();
                self.world.now(1, __NR_close, &[fd]).unwrap();
            }
            1 => {
                let fd = self.world.now(1, __NR_dup, &[self.fds[0]]).unwrap();
                self.world.now(1, __NR_close, &[fd]).unwrap();
            }
            2 => {
                let len = self.len() / 4;
                let from = self.random.below(len + 1);
                let to = from + len + self.random.below(len + 1);
                self.world.put(1, OWN, &[from, to].map(u64::to_le_bytes).concat());
                let arguments = [self.fds[0], OWN, self.fds[0], OWN + 8, len];
                let copied = self.world.now(1, __NR_copy_file_range, &arguments);
                let room = self.limit.saturating_sub(to);
                let expected = if len > 0 && room == 0 { Err(EFBIG) } else { Ok(len.min(room)) };
                assert_eq!(copied, expected);
                let count = copied.unwrap_or(0) as usize;
                let bytes = self.model[from as usize..from as usize + count].to_vec();
                self.put(to, &bytes);
            }
            3 => {
                self.limit = if self.limit == u64::MAX { self.random.below(LEN_MAX) } else { u64::MAX };
                self.world.put(1, OWN, &[self.limit, u64::MAX].map(u64::to_le_bytes).concat());
                self.world.now(1, __NR_setrlimit, &[RLIMIT_FSIZE.into(), OWN]).unwrap();
            }
            4 if self.has_name && self.random.below(8) == 0 => {
                self.world.by_path(1, __NR_unlink, "/model", &[]).unwrap();
                self.has_name = false;
            }
            5 if self.random.below(4) == 0 => self.press(),
            _ => self.world.wait(1_000_000_000),
        }
    }

    fn step(&mut self) {
        let tid = self.process();
        match self.random.below(20) {
            0..4 => self.write(false),
            4 => self.write(true),
            5..8 => {
                let at = self.random.below(self.len() + 50);
                let len = if self.random.below(5) == 0 { 5 * PAGE } else { 300 };
                self.read(at, len);
            }
            8 => self.cut(),
            9..12 => self.access(tid, true),
            12..15 => self.access(tid, false),
            15 => self.map(tid),
            16 => self.change_map(tid),
            17 => self.begin_or_end(),
            18 => self.sync(),
            _ => self.others_ways(),
        }
    }

    fn run(mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
        while self.world.system.processes.len() > 1 {
            self.begin_or_end();
        }
        self.world.now(1, __NR_munmap, &[PLACE, 16 * PAGE]).unwrap();
        self.world.now(1, __NR_close, &[self.fds[1]]).unwrap();
        self.compare();
        self.world.now(1, __NR_close, &[self.fds[0]]).unwrap();
        let store = &mut self.world.system.store;
        store.keep_mapped(&BTreeSet::new());
        assert_eq!(store.volume.times_open(self.inode), 0);
    }
}

fn rounds() -> u64 {
    if std::env::var_os("TERN_FULL").is_some_and(|value| value == "1") { 400 } else { 20 }
}

/// Nobody knows what others do: the file is compared at each call.
#[test]
fn a_file_of_which_nobody_knows_others_is_a_row_of_bytes() {
    for seed in 1..=rounds() {
        Crossing::new(Ram::<vfs::page::Plain>::new(8 << 20, || 7), seed, None).run(400);
    }
}

/// Changes of others are known, as in a sandbox.
#[test]
fn a_file_of_which_others_are_known_is_a_row_of_bytes() {
    for seed in 1..=rounds() {
        let (files, others) = Counted::new(8 << 20);
        Crossing::new(files, seed, Some(others)).run(400);
    }
}
