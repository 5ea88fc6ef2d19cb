//! Power is lost after each single write of a history, and what was promised is there: by a file system itself, and by what a server makes of it.
//!
//! A history is a [mix] of steps on ext4 with pages, as the server has it. All writes to the disk are recorded; each prefix of them is a disk, which Tern's
//! journal brings to its end and, for many of them, Linux's. Then [`power::judge`] says whether the files are those that must be there.

use crate::disk::{self, Memory, SECTOR};
use crate::judge::{History, Promise};
use crate::replay::{self, Lost};
use mix::{DIRECTORIES, Step};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use vfs::page::{Page, Plain};
use vfs::{Cached, How, Inode, Result, Volume};

/// Pages that are mapped or kept at most, as in the server.
const PAGES_MAX: usize = 1024;

/// A disk with so many MiB, of which its journal has some.
const MEBIBYTES: usize = 12;
const KIND: [&str; 6] = ["-t", "ext4", "-b", "4096", "-J", "size=4"];

/// Whether the large counts are asked for.
fn is_full() -> bool {
    env::var_os("TERN_FULL").is_some_and(|value| value == "1")
}

/// A folder of Linux that is removed when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        // In memory, if Linux has a place for that: images are written again and again.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_path_buf() } else { env::temp_dir() };
        let path = place.join(format!("tern-power-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// A disk with an empty file system that Linux has made.
    fn disk(&self) -> Memory {
        let image = self.0.join("image");
        let tool = ["/usr/sbin/mke2fs", "/sbin/mke2fs"].into_iter().find(|path| Path::new(path).exists());
        let tool = tool.expect("mke2fs is not there: it is part of the package e2fsprogs");
        let size = format!("{MEBIBYTES}M");
        let made = Command::new(tool).args(["-q", "-F"]).args(KIND).arg(&image).arg(size).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Memory::of(fs::read(image).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Requests that a disk got.
enum Told {
    /// Bytes were written from one on.
    Write(usize, Vec<u8>),
    /// All writes before are safe.
    Flush,
}

/// A disk in memory that records what it is told.
#[derive(Clone)]
struct Recorded {
    disk: Memory,
    log: Rc<RefCell<Vec<Told>>>,
}

impl ext4::Disk for Recorded {
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
        self.disk.read(first, to)
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<()> {
        self.log.borrow_mut().push(Told::Write(first as usize * SECTOR, from.to_vec()));
        self.disk.write(first, from)
    }

    fn flush(&mut self) -> Result<()> {
        self.log.borrow_mut().push(Told::Flush);
        self.disk.flush()
    }
}

type Mounted = Volume<Cached<disk::Mounted<'static>, Plain>>;

/// A history that was done.
struct Record {
    history: History,
    /// The disk before the first step.
    before: Vec<u8>,
    log: Vec<Told>,
    /// How much the disk had been told when each step began, and when it was acknowledged.
    spans: Vec<(usize, usize)>,
}

/// A program that does steps, and what it has open.
struct Program {
    disk: Memory,
    volume: Mounted,
    root: Inode,
    /// Pages that were mapped and stamped, until their files are synced.
    mapped: BTreeMap<Inode, Plain>,
}

impl Program {
    /// One on a disk with an empty file system, and all that the disk is told from now on.
    fn new(disk: &Memory) -> (Program, Rc<RefCell<Vec<Told>>>) {
        let recorded = Recorded { disk: disk.clone(), log: Rc::default() };
        let log = recorded.log.clone();
        let mut volume: Mounted =
            Volume::new(Cached::keeping(disk::mount(recorded, || 0).unwrap(), PAGES_MAX));
        let root = volume.root();
        DIRECTORIES.iter().for_each(|name| volume.mkdir(root, name.as_bytes(), 0o755).unwrap());
        volume.sync(root).unwrap();
        log.borrow_mut().clear();
        (Program { disk: disk.clone(), volume, root, mapped: BTreeMap::new() }, log)
    }

    fn open(&mut self, name: mix::Name, how: How) -> Result<Inode> {
        self.volume.open(self.root, name.path().as_bytes(), how, 0o644)
    }

    fn take(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Create(name) => {
                let file = self.open(name, How { create: true, exclusive: true, truncate: false })?;
                self.volume.close(file)
            }
            Step::Append { name, file, at, len } => {
                let inode = self.open(name, How::default())?;
                assert_eq!(self.volume.append(inode, &mix::bytes(file, at, len))?, at);
                self.volume.close(inode)
            }
            Step::Stamp { name, number } => {
                let inode = self.open(name, How::default())?;
                let page = self.volume.page(inode, 0, true)?;
                page.write(0, &number.to_le_bytes());
                self.mapped.insert(inode, page);
                self.volume.close(inode)
            }
            Step::Sync(name) => {
                let inode = self.open(name, How::default())?;
                self.volume.sync(inode)?;
                self.mapped.remove(&inode);
                self.volume.close(inode)
            }
            Step::Rename(from, to) => {
                self.volume.rename(self.root, from.path().as_bytes(), to.path().as_bytes())
            }
            Step::Unlink(name) => self.volume.unlink(self.root, name.path().as_bytes()),
        }
    }
}

impl Record {
    /// Does steps of a seed, and acknowledges them as the server does, or as the file system by itself.
    fn of(folder: &Folder, seed: u64, steps: usize, promise: Promise) -> Record {
        let (mut program, log) = Program::new(&folder.disk());
        let before = program.disk.0.borrow().clone();
        let history = History::new(seed, steps, promise);
        let mut spans = Vec::new();
        for &step in &history.steps {
            let begin = log.borrow().len();
            program.take(step).unwrap_or_else(|error| panic!("seed {seed}: {step:?}: {error:?}"));
            if promise == Promise::Names && step.changes_names() {
                program.volume.sync(program.root).unwrap();
            }
            spans.push((begin, log.borrow().len()));
        }
        drop(program);
        let log = log.take();
        Record { history, before, log, spans }
    }

    /// How many steps were acknowledged, and how many begun, when the disk had been told so much.
    fn steps(&self, told: usize) -> (usize, usize) {
        let acknowledged = self.spans.partition_point(|&(_, end)| end <= told);
        (acknowledged, self.spans.partition_point(|&(begin, _)| begin < told).max(acknowledged))
    }

    /// Power is lost when the disk had been told so much, and looks like that.
    fn judge(&self, told: usize, image: &[u8], folder: Option<&Folder>) -> std::result::Result<(), String> {
        Lost::of(image, folder.map(|folder| folder.0.as_path()))?.judge(&self.history, self.steps(told))
    }
}

fn write_to(image: &mut [u8], told: &Told) {
    if let Told::Write(at, bytes) = told {
        image[*at..*at + bytes.len()].copy_from_slice(bytes);
    }
}

/// All prefixes of so many histories with so many steps, each first replayed by Tern; one in so many by Linux, too. Gives back how many prefixes that were.
fn all_prefixes(name: &str, promise: Promise, seeds: u64, steps: usize, linux_each: usize) -> usize {
    let (mut count, mut left) = (0_usize, 0);
    for seed in 1..=seeds {
        let folder = Folder::new(&format!("{name}-{seed}"));
        let record = Record::of(&folder, seed, steps, promise);
        let mut image = record.before.clone();
        for told in 0..=record.log.len() {
            if let Some(last) = told.checked_sub(1).and_then(|last| record.log.get(last)) {
                write_to(&mut image, last);
            }
            // A flush changes no byte. It is judged with the strictest promise that the bytes have.
            if matches!(record.log.get(told), Some(Told::Flush)) {
                continue;
            }
            count += 1;
            left += usize::from(replay::has_journal_left(&image));
            let folder = count.is_multiple_of(linux_each).then_some(&folder);
            if let Err(why) = record.judge(told, &image, folder) {
                panic!("seed {seed}, {told} of {}: {why}", record.log.len());
            }
        }
    }
    eprintln!(
        "{name}: power was lost after {count} different prefixes, {left} of them with a journal to replay"
    );
    assert!(left > count / 2, "next to no journal is replayed: {left} of {count}");
    count
}

/// Names are safe when a file was synced. Most of what is written meanwhile is lost together.
#[test]
fn what_was_synced_survives_a_loss_of_power() {
    let (seeds, steps, least) = if is_full() { (16, 200, 5000) } else { (1, 60, 100) };
    assert!(all_prefixes("synced", Promise::Syncs, seeds, steps, 10) >= least);
}

/// Each name that a server has acknowledged is safe, too.
#[test]
fn what_was_acknowledged_survives_a_loss_of_power() {
    let (seeds, steps, least) = if is_full() { (12, 200, 5000) } else { (1, 50, 150) };
    assert!(all_prefixes("acknowledged", Promise::Names, seeds, steps, 10) >= least);
}

/// A disk may have any of the writes since it was flushed last, and not the others.
#[test]
fn writes_that_were_not_flushed_may_be_lost() {
    let (seeds, cuts) = if is_full() { (10, 300) } else { (1, 60) };
    for seed in 1..=seeds {
        let folder = Folder::new(&format!("unflushed-{seed}"));
        let promise = [Promise::Syncs, Promise::Names][seed as usize % 2];
        let record = Record::of(&folder, seed, 100, promise);
        let mut random = seed;
        let mut below = |end: u64| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (random >> 33) % end
        };
        for cut in 0..cuts {
            let told = below(record.log.len() as u64 + 1) as usize;
            let is_flush = |told: &Told| matches!(told, Told::Flush);
            let safe = record.log[..told].iter().rposition(is_flush).unwrap_or(0);
            let mut image = record.before.clone();
            record.log[..safe].iter().for_each(|told| write_to(&mut image, told));
            let kept: Vec<usize> = (safe..told).filter(|_| below(2) == 0).collect();
            kept.iter().for_each(|&told| write_to(&mut image, &record.log[told]));
            if let Err(why) = record.judge(told, &image, (cut % 5 == 0).then_some(&folder)) {
                panic!("seed {seed}, {told} of {}, from {safe} on only {kept:?}: {why}", record.log.len());
            }
        }
    }
}

/// A file is cut off, another one gets its blocks, and power is lost before that is safe. The first file is as it was, or cut off, and has no byte of the other's.
#[test]
fn blocks_of_a_file_are_nobody_elses_before_its_end_is_safe() {
    const LEN: usize = 40_000;
    let folder = Folder::new("freed");
    let (mut program, log) = Program::new(&folder.disk());
    let [one, other] = ["one/file-0", "two/file-1"].map(|path| mix::Name::of(path).unwrap());
    let write = |program: &mut Program, name, file| {
        program.take(Step::Create(name)).unwrap();
        program.take(Step::Append { name, file, at: 0, len: LEN }).unwrap();
        program.take(Step::Sync(name)).unwrap();
    };
    write(&mut program, one, 0);
    let mut image = program.disk.0.borrow().clone();
    log.borrow_mut().clear();
    let inode = program.open(one, How::default()).unwrap();
    program.volume.truncate(inode, 0).unwrap();
    write(&mut program, other, 1);
    drop(program);
    let contents = [mix::bytes(0, 0, LEN), Vec::new()];
    for (number, told) in log.take().iter().enumerate() {
        write_to(&mut image, told);
        let found = replay::by_tern(image.clone()).unwrap().found;
        assert!(contents.contains(&found[&one]), "after {} writes", number + 1);
    }
}
