//! ext4 on a disk in memory: what was synced is there after a loss of power, and Linux's own tools find no mistake in it.

use crate::as_on_linux::{Folder, Here, Random, all_on_linux, is_full};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use std::rc::Rc;
use vfs::{How, Result, Volume};

/// Bytes of a sector.
const SECTOR: usize = 512;

/// A disk in memory. Copies are the disk itself.
#[derive(Clone)]
pub struct Memory(pub Rc<RefCell<Vec<u8>>>);

/// A write: the first byte, and what was written.
type Written = (usize, Vec<u8>);

/// A disk in memory that records each write.
#[derive(Clone)]
struct Recorded {
    disk: Memory,
    log: Rc<RefCell<Vec<Written>>>,
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
        self.log.borrow_mut().push((first as usize * SECTOR, from.to_vec()));
        self.disk.write(first, from)
    }

    fn flush(&mut self) -> Result<()> {
        self.disk.flush()
    }
}

impl Memory {
    /// A disk of zeros.
    pub fn new(bytes: usize) -> Memory {
        Memory(Rc::new(RefCell::new(vec![0; bytes])))
    }

    /// A disk that has these bytes.
    pub fn of(bytes: Vec<u8>) -> Memory {
        Memory(Rc::new(RefCell::new(bytes)))
    }
}

impl ext4::Disk for Memory {
    fn sector_bytes(&self) -> u32 {
        SECTOR as u32
    }

    fn sectors(&self) -> u64 {
        (self.0.borrow().len() / SECTOR) as u64
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<()> {
        let at = first as usize * SECTOR;
        to.copy_from_slice(&self.0.borrow()[at..at + to.len()]);
        Ok(())
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<()> {
        let at = first as usize * SECTOR;
        self.0.borrow_mut()[at..at + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

fn run(name: &str, arguments: &[&str]) -> Output {
    let path = ["/usr/sbin", "/sbin"]
        .map(|folder| Path::new(folder).join(name))
        .into_iter()
        .find(|path| path.exists());
    let path = path.unwrap_or_else(|| panic!("{name} is not there: it is part of the package e2fsprogs"));
    Command::new(path).args(arguments).output().unwrap()
}

/// Runs one of Linux's tools for ext4, and gives back what it says. The test fails if the tool does not find everything right.
pub fn tool(name: &str, arguments: &[&str]) -> Vec<u8> {
    let output = run(name, arguments);
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} {arguments:?}: {}\n{said}{complained}", output.status);
    output.stdout
}

/// An image that Linux's `mke2fs` has made.
pub fn made_by_linux(folder: &Folder, mebibytes: usize, options: &[&str]) -> Memory {
    let image = folder.0.join("image");
    fs::write(&image, []).unwrap();
    let size = format!("{mebibytes}M");
    let image = image.to_str().unwrap();
    tool("mke2fs", &[&["-q", "-F"], options, &[image, &size]].concat());
    Memory(Rc::new(RefCell::new(fs::read(image).unwrap())))
}

/// Linux finds no mistake, and has nothing to repair.
pub fn check_by_linux(folder: &Folder, disk: &[u8]) {
    let image = folder.0.join("checked");
    fs::write(&image, disk).unwrap();
    tool("e2fsck", &["-f", "-n", image.to_str().unwrap()]);
}

/// Kinds of ext4 file systems. With blocks of 1 KiB a directory gets few files, since the library does not count the blocks of a
/// directory's tree of extents, which is there from the fifth extent on, and Linux corrects the count.
pub const KINDS: [&[&str]; 4] = [
    &["-t", "ext4", "-b", "4096"],
    &["-t", "ext4", "-b", "4096", "-O", "^has_journal"],
    &["-t", "ext4", "-b", "4096", "-O", "^dir_index,^metadata_csum", "-I", "128"],
    &["-t", "ext4", "-b", "1024"],
];

#[test]
fn linux_reads_files_that_were_written() {
    for (number, options) in KINDS.into_iter().enumerate() {
        let folder = Folder::new(&format!("written-{number}"));
        let disk = made_by_linux(&folder, 32, options);
        let mut volume = Volume::new(ext4::Mounted::new(disk.clone(), || 1_000_000_000 << 30).unwrap());
        let root = volume.root();
        let create = How { create: true, ..How::default() };
        volume.mkdir(root, b"many", 0o755).unwrap();
        let many = volume.enter(root, b"many").unwrap();
        let files = if options.contains(&"1024") { 30 } else { 300u32 };
        for file in 0..files {
            let at = volume.open(many, format!("file-{file}").as_bytes(), create, 0o644).unwrap();
            volume.write(at, 0, &vec![file as u8; file as usize * 97]).unwrap();
            volume.close(at).unwrap();
        }
        for file in (0..files).step_by(3) {
            volume.unlink(many, format!("file-{file}").as_bytes()).unwrap();
        }
        // A hole, and more than one extent.
        let holes = volume.open(root, b"holes", create, 0o600).unwrap();
        for at in [0, 70_000, 9_000_000, 5 << 30] {
            volume.write(holes, at, b"here").unwrap();
        }
        volume.close(holes).unwrap();
        volume.close(many).unwrap();
        volume.into_inner().unmount().unwrap();
        let image = disk.0.borrow().clone();
        check_by_linux(&folder, &image);
        let path = folder.0.join("checked");
        let read = tool("debugfs", &["-R", "cat /many/file-20", path.to_str().unwrap()]);
        assert_eq!(read, vec![20; 1940], "{options:?}");
        let listed = tool("debugfs", &["-R", "ls -p /many", path.to_str().unwrap()]);
        assert_eq!(
            String::from_utf8(listed).unwrap().matches("file-").count() as u32,
            files / 3 * 2,
            "{options:?}"
        );
    }
}

#[test]
fn files_of_linux_are_read() {
    let folder = Folder::new("read");
    let source = folder.0.join("source");
    fs::create_dir_all(source.join("many")).unwrap();
    for file in 0..1500 {
        fs::write(source.join(format!("many/a-file-with-the-number-{file}")), vec![file as u8; file])
            .unwrap();
    }
    symlink("many/a-file-with-the-number-7", source.join("short")).unwrap();
    symlink(format!("{}short", "./".repeat(60)), source.join("long")).unwrap();
    for options in KINDS {
        let from = ["-d", source.to_str().unwrap()];
        let disk = made_by_linux(&folder, 64, &[options, &from].concat());
        // Linux gives the large directory an index, where there are some.
        let image = folder.0.join("indexed");
        fs::write(&image, &*disk.0.borrow()).unwrap();
        run("e2fsck", &["-fyD", image.to_str().unwrap()]);
        let disk = Memory(Rc::new(RefCell::new(fs::read(&image).unwrap())));
        let mut volume = Volume::new(ext4::Mounted::new(disk, || 0).unwrap());
        let root = volume.root();
        let _ = volume.rmdir(root, b"lost+found");
        let (mut ours, mut linux) = (BTreeMap::new(), BTreeMap::new());
        Here { volume, root }.all(root, "", &mut ours);
        all_on_linux(&source, "", &mut linux);
        assert_eq!(ours, linux, "{options:?}");
    }
}

/// Contents that files must have had at a moment, by name: after a loss of power from then on each is there with one that it had then or later.
#[derive(Clone, Default)]
struct Promised(BTreeMap<String, Vec<u8>>);

/// Changes files at random, and syncs. Gives back each write, and after how many of them which files were promised.
fn records(seed: u64, disk: &Memory) -> (Vec<Written>, Vec<(usize, Promised)>) {
    let log = Rc::new(RefCell::new(Vec::new()));
    let recorded = Recorded { disk: disk.clone(), log: log.clone() };
    let mut volume = Volume::new(ext4::Mounted::new(recorded, || 0).unwrap());
    let root = volume.root();
    let mut random = Random(seed);
    let (mut now, mut promised) = (Promised::default(), vec![(0, Promised::default())]);
    let create = How { create: true, ..How::default() };
    for step in 0..120u32 {
        let [name, other] = [(); 2].map(|()| format!("file-{}", random.below(6)));
        match random.below(6) {
            // Files grow at their ends only, so that a content of before is the beginning of one of later.
            0..3 => {
                let file = volume.open(root, name.as_bytes(), create, 0o644).unwrap();
                let more = format!("{step:04} ").repeat(1 + random.below(900) as usize).into_bytes();
                volume.append(file, &more).unwrap();
                volume.close(file).unwrap();
                now.0.entry(name).or_default().extend(more);
            }
            3 if now.0.contains_key(&name) && name != other => {
                volume.rename(root, name.as_bytes(), other.as_bytes()).unwrap();
                let content = now.0.remove(&name).unwrap();
                now.0.insert(other, content);
            }
            4 if now.0.contains_key(&name) && random.chance(3) => {
                volume.unlink(root, name.as_bytes()).unwrap();
                now.0.remove(&name);
            }
            _ => {
                volume.sync(root).unwrap();
                let at = log.borrow().len();
                promised.push((at, now.clone()));
            }
        }
    }
    drop(volume);
    let log = log.borrow().clone();
    (log, promised)
}

/// All files of a file system, by name.
fn files<D: ext4::Disk>(volume: &mut Volume<ext4::Mounted<D>>) -> BTreeMap<String, Vec<u8>> {
    let root = volume.root();
    let (mut found, mut cursor) = (BTreeMap::new(), 0);
    loop {
        let entries = volume.readdir(root, cursor, 14).unwrap();
        let Some(last) = entries.last() else { break };
        cursor = last.next;
        for entry in entries.into_iter().filter(|entry| entry.kind == vfs::Kind::File) {
            let file = volume.open(root, &entry.name, How::default(), 0).unwrap();
            let mut content = vec![0; volume.attributes(file).unwrap().len as usize];
            let len = volume.read(file, 0, &mut content).unwrap();
            assert_eq!(len, content.len());
            volume.close(file).unwrap();
            found.insert(String::from_utf8(entry.name).unwrap(), content);
        }
    }
    found
}

/// Power is lost after each of many writes. What was synced is there; Linux replays the journal and finds no mistake, and neither in
/// what is left when the journal was replayed here.
#[test]
fn what_was_synced_survives_a_loss_of_power() {
    let (seeds, cuts) = if is_full() { (20, 500) } else { (2, 25) };
    for seed in 1..=seeds {
        let folder = Folder::new(&format!("power-{seed}"));
        let disk = made_by_linux(&folder, 16, &["-t", "ext4", "-b", "4096", "-J", "size=4"]);
        let before = disk.0.borrow().clone();
        let (log, promised) = records(seed, &disk);
        let mut random = Random(seed);
        for _ in 0..cuts {
            let written = random.below(log.len() as u64 + 1) as usize;
            let mut image = before.clone();
            for (at, bytes) in &log[..written] {
                image[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            let place = format!("seed {seed}, {written} of {} writes", log.len());
            replayed_by_linux(&folder, &image);
            let disk = Memory(Rc::new(RefCell::new(image)));
            let mut volume = Volume::new(ext4::Mounted::new(disk.clone(), || 0).expect(&place));
            let found = files(&mut volume);
            let last = promised.iter().rposition(|(at, _)| *at <= written).unwrap();
            assert!(is_kept(&promised[last].1, promised.get(last + 1), &found), "{place}");
            volume.into_inner().unmount().unwrap();
            check_by_linux(&folder, &disk.0.borrow());
        }
    }
}

/// Files that nobody has touched between two syncs are as they were at the first.
fn is_kept(promised: &Promised, next: Option<&(usize, Promised)>, found: &BTreeMap<String, Vec<u8>>) -> bool {
    let Some((_, next)) = next else { return true };
    promised
        .0
        .iter()
        .all(|(name, content)| next.0.get(name) != Some(content) || found.get(name) == Some(content))
}

/// Linux replays the journal, ends files that were open without a name, and then finds no mistake.
fn replayed_by_linux(folder: &Folder, disk: &[u8]) {
    let image = folder.0.join("replayed");
    fs::write(&image, disk).unwrap();
    let image = image.to_str().unwrap();
    let said = String::from_utf8(run("e2fsck", &["-p", image]).stdout).unwrap();
    // Nothing is repaired but by the journal. A tree of extents with room to spare is no mistake.
    // The first commit after a mount begins in the journal, and then says so in the superblock.
    let begun = ["needs_recovery flag is clear", "Run journal anyway"];
    let expected =
        ["recovering journal", "Clearing orphaned inode", "check forced", "could be narrower", " files"];
    for line in said.lines() {
        let is_expected = expected.iter().chain(&begun).any(|part| line.contains(part));
        assert!(is_expected, "{said}");
    }
    tool("e2fsck", &["-f", "-n", image]);
}

/// Bytes of the file system's own are changed at random: it is refused, or read with errors. The library may give up by a panic, which ends a server
/// of it alone; nothing else happens, and nothing goes on for ever.
#[test]
fn damaged_file_systems_do_no_harm() {
    let folder = Folder::new("damaged");
    let source = folder.0.join("source");
    fs::create_dir_all(source.join("inner/deep")).unwrap();
    for file in 0..40 {
        fs::write(source.join(format!("inner/file-{file}")), vec![file as u8; file * 300]).unwrap();
    }
    let disk = made_by_linux(&folder, 8, &["-t", "ext4", "-b", "1024", "-d", source.to_str().unwrap()]);
    let whole = disk.0.borrow().clone();
    let (mut refused, mut read, mut panics) = (0, 0, 0);
    for seed in 0..if is_full() { 1000 } else { 60 } {
        let mut random = Random(seed);
        let mut image = whole.clone();
        for _ in 0..1 + random.below(20) {
            // Most of what the file system has for itself lies in front.
            let end = if random.chance(2) { 8 << 10 } else { 600 << 10 };
            let at = random.below(end) as usize;
            image[at] = random.below(256) as u8;
        }
        let outcome = std::panic::catch_unwind(|| {
            let disk = Memory(Rc::new(RefCell::new(image)));
            let mut volume = Volume::new(ext4::Mounted::new(disk, || 0).ok()?);
            let root = volume.root();
            let mut left = 2000;
            look_at_all(&mut volume, root, &mut left);
            let _ = volume.mkdir(root, b"new", 0o755);
            let _ = volume.unlink(root, b"inner/file-7");
            let _ = volume.sync(root);
            assert!(left > 0, "it has more entries than there are");
            Some(())
        });
        match outcome {
            Ok(Some(())) => read += 1,
            Ok(None) => refused += 1,
            Err(_) => panics += 1,
        }
    }
    eprintln!("damaged: {refused} refused, {read} read, {panics} panics of the library");
    assert!(refused > 0 && read > 0);
}

/// Reads all that can be read, at most so many entries.
fn look_at_all<D: ext4::Disk>(volume: &mut Volume<ext4::Mounted<D>>, directory: vfs::Inode, left: &mut u32) {
    let mut cursor = 0;
    while let Ok(entries) = volume.readdir(directory, cursor, 14) {
        let Some(last) = entries.last() else { break };
        cursor = last.next;
        for entry in entries {
            *left = left.saturating_sub(1);
            if *left == 0 {
                return;
            }
            if let Ok(inner) = volume.enter(directory, &entry.name) {
                look_at_all(volume, inner, left);
                let _ = volume.close(inner);
            } else if let Ok(file) = volume.open(directory, &entry.name, How::default(), 0) {
                let mut bytes = vec![0; 70_000];
                let _ = volume.read(file, 0, &mut bytes);
                let _ = volume.close(file);
            }
        }
    }
}
