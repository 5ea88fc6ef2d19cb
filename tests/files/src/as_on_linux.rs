//! Random programs, run here and in a folder of Linux: both say the same of each step, and all that is there in the end is alike.
//!
//! Programs have either symbolic links or `..`, never both, since a link and `..` lead out of the folder, where Linux goes on and a
//! [`Volume`] does not. Those paths are in `paths.rs`.

use crate::ext4_on_disk::{Memory, Mounted, format, mount};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use vfs::page::{PAGE, Page, Paged, Plain, Sent};
use vfs::path::Last;
use vfs::{
    Attributes, Cached, Changes, Entry, Error, FileSystem, How, Inode, Kind, Name, New, Ram, Space, Volume,
};

/// A generator that gives the same numbers for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }

    pub fn chance(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// A folder of Linux that is removed when the test is over.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        // In memory, if Linux has a place for that: images are written again and again.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let path = place.join(format!("tern-vfs-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Debug)]
pub enum Step {
    Open {
        at: String,
        how: How,
    },
    Read {
        at: String,
        offset: u64,
        len: usize,
    },
    Write {
        at: String,
        offset: u64,
        len: usize,
    },
    Append {
        at: String,
        len: usize,
    },
    Truncate {
        at: String,
        len: u64,
    },
    /// Writes where the bytes lie, as far as the file and the page go.
    Poke {
        at: String,
        offset: u64,
        len: usize,
    },
    Mkdir(String),
    Rmdir(String),
    Unlink(String),
    Link(String, String),
    Symlink(String, String),
    Readlink(String),
    Rename(String, String),
    Stat {
        at: String,
        follow: bool,
    },
    Chmod(String, u16),
}

fn path(random: &mut Random, climbs: bool) -> String {
    let mut parts = Vec::new();
    let mut depth = 0;
    for _ in 0..1 + random.below(3) {
        match random.below(12) {
            0 => parts.push("."),
            1 if climbs && depth > 0 => {
                depth -= 1;
                parts.push("..");
            }
            part => {
                depth += 1;
                parts.push(["a", "b", "c"][part as usize % 3]);
            }
        }
    }
    parts.join("/") + if random.chance(12) { "/" } else { "" }
}

pub fn step(random: &mut Random, has_links: bool) -> Step {
    let choice = random.below(22);
    let at = path(random, !has_links);
    let offset = [random.below(20), random.below(9000), 4096 * random.below(4)][random.below(3) as usize];
    let len = [random.below(20), random.below(9000)][random.below(2) as usize] as usize;
    match choice {
        0..4 => {
            let create = !random.chance(4);
            let how = How { create, exclusive: create && random.chance(4), truncate: random.chance(6) };
            Step::Open { at, how }
        }
        4 => Step::Read { at, offset, len },
        5 | 6 => Step::Write { at, offset, len },
        7 => Step::Append { at, len },
        8 => Step::Truncate { at, len: offset },
        9 | 10 => Step::Mkdir(at),
        11 => Step::Rmdir(at),
        12 => Step::Unlink(at),
        13 => Step::Link(at, path(random, !has_links)),
        14 if has_links => Step::Symlink(path(random, false).trim_end_matches('/').into(), at),
        15 if has_links => Step::Readlink(at),
        16 | 17 => Step::Rename(at, path(random, !has_links)),
        18 => Step::Chmod(at, random.below(0o1000) as u16),
        19 | 20 => Step::Poke { at, offset, len },
        _ => Step::Stat { at, follow: random.chance(2) },
    }
}

/// Result of a step as text, or the number of Linux's error.
pub type Seen = Result<String, i32>;

fn number(error: Error) -> i32 {
    match error {
        Error::NotFound => 2,
        Error::Busy => 16,
        Error::Exists => 17,
        Error::NotDirectory => 20,
        Error::IsDirectory => 21,
        Error::Invalid => 22,
        Error::TooLarge => 27,
        Error::NoSpace => 28,
        Error::ReadOnly => 30,
        Error::TooManyOpen => 24,
        Error::TooManyLinks => 31,
        Error::NameTooLong => 36,
        Error::NotEmpty => 39,
        Error::Loop => 40,
        Error::Io | Error::Damaged => 5,
        Error::Unsupported => 95,
    }
}

fn content(len: usize, offset: u64) -> Vec<u8> {
    (0..len).map(|at| ((at as u64 + offset) % 251 + 1) as u8).collect()
}

/// A line that both sides give of bytes.
fn told(bytes: &[u8]) -> String {
    let sum = bytes.iter().fold(7u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{} bytes {sum:x}", bytes.len())
}

/// A file system of ours, and its root, open.
pub struct Here<F> {
    pub volume: Volume<F>,
    pub root: Inode,
}

/// A page of an open file that somebody has mapped.
struct Held<P> {
    file: Inode,
    number: u64,
    page: P,
}

/// Answers that are on their way at most. Until they have arrived, whatever happens to the file does not change them.
const SENT_MAX: usize = 3;

/// Pages that are mapped at most, each by one who maps the next one later.
const HELD_MAX: usize = 5;

impl<F: Paged> Here<F> {
    /// Maps a page and writes there, behind the end of the file, too. The page stays mapped for a while.
    fn poke(
        &mut self,
        at: &str,
        offset: u64,
        len: usize,
        held: &mut Vec<Held<F::Page>>,
    ) -> vfs::Result<String> {
        let file = self.volume.open(self.root, at.as_bytes(), How::default(), 0o644)?;
        let (number, first) = (offset / PAGE as u64, offset as usize % PAGE);
        let page = match self.volume.page(file, number * PAGE as u64, true) {
            Ok(page) => page,
            Err(error) => {
                self.volume.close(file)?;
                return Err(error);
            }
        };
        let there = (self.volume.attributes(file)?.len - number * PAGE as u64).min(PAGE as u64) as usize;
        let end = there.min(first.saturating_add(len)).max(first.min(there));
        page.write(first.min(there), &content(end - first.min(there), offset));
        page.write(there, &vec![0xbb; PAGE - there]);
        let mut seen = vec![0; there];
        page.read(0, &mut seen);
        held.push(Held { file, number, page });
        if held.len() > HELD_MAX {
            self.let_go(held.swap_remove(offset as usize % HELD_MAX))?;
        }
        Ok(told(&seen))
    }

    /// Bytes that were read are sent from where they lie, if they can be. The answer is on its way for a while.
    fn send(
        &mut self,
        (at, offset, len): (&str, u64, usize),
        read: &str,
        all: &mut VecDeque<Sent<F>>,
    ) -> vfs::Result<()> {
        let sent = self.with_file(at, How::default(), |volume, file| volume.send(file, offset, len))?;
        if let Some(sent) = sent {
            assert_eq!(told(&sent), read, "{len} bytes from {offset} on of {at}");
            all.push_back(sent);
            if all.len() > SENT_MAX {
                all.pop_front();
            }
        }
        Ok(())
    }

    /// Lets a page go, like a server from which the last reference to a file goes.
    fn let_go(&mut self, held: Held<F::Page>) -> vfs::Result<()> {
        self.volume.sync(held.file)?;
        drop(held.page);
        self.volume.close(held.file)
    }

    /// Pages show what is read from their files. Those that were cut off are let go.
    fn check(&mut self, all: &mut Vec<Held<F::Page>>) -> vfs::Result<()> {
        for held in std::mem::take(all) {
            let (mut read, mut seen) = (vec![0; PAGE], vec![0; PAGE]);
            let len = self.volume.read(held.file, held.number * PAGE as u64, &mut read)?;
            held.page.read(0, &mut seen);
            if len == 0 {
                self.let_go(held)?;
            } else {
                assert_eq!(told(&read[..len]), told(&seen[..len]), "page {} of {:?}", held.number, held.file);
                all.push(held);
            }
        }
        Ok(())
    }
}

impl<F: FileSystem> Here<F> {
    fn with_file<T>(
        &mut self,
        at: &str,
        how: How,
        run: impl FnOnce(&mut Volume<F>, Inode) -> vfs::Result<T>,
    ) -> vfs::Result<T> {
        let file = self.volume.open(self.root, at.as_bytes(), how, 0o644)?;
        let result = run(&mut self.volume, file);
        self.volume.close(file)?;
        result
    }

    pub fn run(&mut self, step: &Step) -> Seen {
        self.try_run(step).map_err(number)
    }

    fn try_run(&mut self, step: &Step) -> vfs::Result<String> {
        let (root, plain) = (self.root, How::default());
        match step {
            Step::Open { at, how } => self.with_file(at, *how, |_, _| Ok(String::new())),
            Step::Read { at, offset, len } => self.with_file(at, plain, |volume, file| {
                let mut to = vec![0xee; *len];
                let count = volume.read(file, *offset, &mut to)?;
                Ok(told(&to[..count]))
            }),
            Step::Write { at, offset, len } => self.with_file(at, plain, |volume, file| {
                volume.write(file, *offset, &content(*len, *offset)).map(|count| count.to_string())
            }),
            Step::Append { at, len } => self.with_file(at, plain, |volume, file| {
                volume.append(file, &content(*len, 3)).map(|_| len.to_string())
            }),
            Step::Truncate { at, len } => {
                self.with_file(at, plain, |volume, file| volume.truncate(file, *len)).map(|()| String::new())
            }
            Step::Poke { .. } => unreachable!("it needs the pages that are mapped"),
            Step::Mkdir(at) => self.volume.mkdir(root, at.as_bytes(), 0o755).map(|()| String::new()),
            Step::Rmdir(at) => self.volume.rmdir(root, at.as_bytes()).map(|()| String::new()),
            Step::Unlink(at) => self.volume.unlink(root, at.as_bytes()).map(|()| String::new()),
            Step::Link(from, at) => {
                self.volume.link(root, from.as_bytes(), at.as_bytes()).map(|()| String::new())
            }
            Step::Symlink(target, at) => {
                self.volume.symlink(root, target.as_bytes(), at.as_bytes()).map(|()| String::new())
            }
            Step::Readlink(at) => {
                self.volume.readlink(root, at.as_bytes()).map(|to| String::from_utf8_lossy(&to).into())
            }
            Step::Rename(from, at) => {
                self.volume.rename(root, from.as_bytes(), at.as_bytes()).map(|()| String::new())
            }
            Step::Stat { at, follow } => {
                let last = if *follow { Last::Follow } else { Last::Stay };
                let found = self.volume.attributes_at(root, at.as_bytes(), last)?;
                let len = if found.kind == Kind::Directory { 0 } else { found.len };
                let links = if found.kind == Kind::Directory { 0 } else { found.links };
                Ok(format!("{:?} {links} links {len} {:o}", found.kind, found.permissions))
            }
            Step::Chmod(at, permissions) => {
                let opened = match self.volume.enter(root, at.as_bytes()) {
                    Err(Error::NotDirectory) => self.volume.open(root, at.as_bytes(), plain, 0)?,
                    entered => entered?,
                };
                let changes = Changes { permissions: Some(*permissions), ..Changes::default() };
                let changed = self.volume.change(opened, &changes);
                self.volume.close(opened)?;
                changed.map(|()| String::new())
            }
        }
    }

    /// All that is there, by its path.
    pub fn all(&mut self, directory: Inode, prefix: &str, found: &mut BTreeMap<String, String>) {
        let mut cursor = 0;
        loop {
            // Few at a time, so that cursors matter.
            let entries = self.volume.readdir(directory, cursor, 2).unwrap();
            let Some(last) = entries.last() else { break };
            cursor = last.next;
            for entry in entries {
                let name = String::from_utf8(entry.name).unwrap();
                let at = format!("{prefix}{name}");
                let what = match entry.kind {
                    Kind::Symlink => {
                        let to = self.volume.readlink(directory, name.as_bytes()).unwrap();
                        format!("-> {}", String::from_utf8_lossy(&to))
                    }
                    Kind::Directory => {
                        let inner = self.volume.enter(directory, name.as_bytes()).unwrap();
                        self.all(inner, &format!("{at}/"), found);
                        self.volume.close(inner).unwrap();
                        "directory".into()
                    }
                    Kind::Special => panic!("{at}: nobody has made that"),
                    Kind::File => {
                        let file = self.volume.open(directory, name.as_bytes(), How::default(), 0).unwrap();
                        let len = self.volume.attributes(file).unwrap().len;
                        let mut bytes = vec![0xee; len as usize + 10];
                        let count = self.volume.read(file, 0, &mut bytes).unwrap();
                        self.volume.close(file).unwrap();
                        told(&bytes[..count])
                    }
                };
                assert!(found.insert(at.clone(), what).is_none(), "{at} is listed twice");
            }
        }
    }
}

pub fn on_linux(root: &Path, step: &Step) -> Seen {
    try_on_linux(root, step).map_err(|error| error.raw_os_error().unwrap_or(-1))
}

fn try_on_linux(root: &Path, step: &Step) -> io::Result<String> {
    let at = |path: &str| PathBuf::from(format!("{}/{path}", root.display()));
    let opened = |path: &str| OpenOptions::new().read(true).write(true).open(at(path));
    let done = |()| String::new();
    match step {
        Step::Open { at: path, how } => {
            // Options of the standard library refuse combinations that the system call has.
            let create = if how.create { 0o100 } else { 0 };
            let flags =
                create | if how.exclusive { 0o200 } else { 0 } | if how.truncate { 0o1000 } else { 0 };
            OpenOptions::new().read(true).write(true).custom_flags(flags).mode(0o644).open(at(path))?;
            Ok(String::new())
        }
        Step::Read { at, offset, len } => {
            let mut to = vec![0xee; *len];
            let count = opened(at)?.read_at(&mut to, *offset)?;
            Ok(told(&to[..count]))
        }
        Step::Write { at, offset, len } => {
            opened(at)?.write_at(&content(*len, *offset), *offset).map(|count| count.to_string())
        }
        Step::Append { at, len } => {
            let file = opened(at)?;
            let end = file.metadata()?.len();
            file.write_at(&content(*len, 3), end).map(|count| count.to_string())
        }
        Step::Truncate { at, len } => opened(at)?.set_len(*len).map(done),
        Step::Poke { at, offset, len } => {
            let (file, page) = (opened(at)?, PAGE as u64);
            let (begin, end) = (offset / page * page, file.metadata()?.len());
            if begin >= end {
                return Err(io::Error::from_raw_os_error(22));
            }
            let count = (end.min(begin + page)).saturating_sub(*offset).min(*len as u64);
            file.write_at(&content(count as usize, *offset), *offset)?;
            let mut seen = vec![0; (end - begin).min(page) as usize];
            file.read_exact_at(&mut seen, begin)?;
            Ok(told(&seen))
        }
        Step::Mkdir(path) => fs::create_dir(at(path)).map(done),
        Step::Rmdir(path) => fs::remove_dir(at(path)).map(done),
        Step::Unlink(path) => fs::remove_file(at(path)).map(done),
        Step::Link(from, to) => fs::hard_link(at(from), at(to)).map(done),
        Step::Symlink(target, path) => symlink(target, at(path)).map(done),
        Step::Readlink(path) => {
            Ok(String::from_utf8_lossy(fs::read_link(at(path))?.as_os_str().as_bytes()).into())
        }
        Step::Rename(from, to) => fs::rename(at(from), at(to)).map(done),
        Step::Stat { at: path, follow } => {
            let found = if *follow { fs::metadata(at(path)) } else { fs::symlink_metadata(at(path)) }?;
            let kind = match found.file_type() {
                kind if kind.is_dir() => Kind::Directory,
                kind if kind.is_symlink() => Kind::Symlink,
                _ => Kind::File,
            };
            let (len, links) = if kind == Kind::Directory { (0, 0) } else { (found.len(), found.nlink()) };
            Ok(format!("{kind:?} {links} links {len} {:o}", found.mode() & 0o7777))
        }
        Step::Chmod(path, permissions) => {
            fs::set_permissions(at(path), Permissions::from_mode(u32::from(*permissions))).map(done)
        }
    }
}

pub fn all_on_linux(folder: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let at = format!("{prefix}{}", entry.file_name().display());
        let kind = entry.file_type().unwrap();
        let what = if kind.is_symlink() {
            format!("-> {}", fs::read_link(entry.path()).unwrap().display())
        } else if kind.is_dir() {
            all_on_linux(&entry.path(), &format!("{at}/"), found);
            "directory".into()
        } else {
            told(&fs::read(entry.path()).unwrap())
        };
        found.insert(at, what);
    }
}

/// Whether two refusals are one. Linux has several numbers for some, and says which in an order of its own.
fn alike(step: &Step, here: &Seen, linux: &Seen) -> bool {
    match (step, here, linux) {
        // No permission: links to directories.
        (Step::Link(..), Err(21), Err(1)) => true,
        // A file to make whose name ends with a slash: Linux does not look where a link of that name leads.
        (Step::Open { at, how }, Err(_), Err(21)) if how.create && at.ends_with('/') => true,
        // A path without a last name.
        (Step::Unlink(_), Err(21), Err(_)) | (Step::Rmdir(_), Err(16), Err(16 | 22 | 39)) => true,
        _ => here == linux,
    }
}

/// A program that runs here and on Linux.
pub struct Run {
    seed: u64,
    random: Random,
    has_links: bool,
    folder: Folder,
    /// How many steps succeeded.
    done: u64,
    /// The last step that was run by itself.
    pub last: String,
}

impl Run {
    pub fn new(name: &str, seed: u64) -> Run {
        let mut random = Random(seed);
        let has_links = random.chance(2);
        Run {
            seed,
            random,
            has_links,
            folder: Folder::new(&format!("{name}-{seed}")),
            done: 0,
            last: String::new(),
        }
    }

    /// Runs more steps in a file system, and gives it back when nothing is open any more.
    pub fn go_on<F: Paged>(&mut self, steps: u64, fs: F) -> F {
        let seed = self.seed;
        let mut volume = Volume::new(fs);
        let root = volume.root();
        // ext4 begins with a directory of its own.
        let _ = volume.rmdir(root, b"lost+found");
        let mut here = Here { volume, root };
        let (mut held, mut sent) = (Vec::new(), VecDeque::new());
        for number in 0..steps {
            let step = step(&mut self.random, self.has_links);
            let ours = match &step {
                Step::Poke { at, offset, len } => {
                    here.poke(at, *offset, *len, &mut held).map_err(self::number)
                }
                step => here.run(step),
            };
            let linux = on_linux(&self.folder.0, &step);
            assert!(
                alike(&step, &ours, &linux),
                "seed {seed}, step {number}: {step:?}: {ours:?}, Linux {linux:?}"
            );
            if let (Step::Read { at, offset, len }, Ok(read)) = (&step, &ours) {
                here.send((at, *offset, *len), read, &mut sent).unwrap();
            }
            self.done += u64::from(ours.is_ok());
            here.check(&mut held).unwrap();
        }
        held.into_iter().for_each(|held| here.let_go(held).unwrap());
        assert_eq!(here.volume.open_count(), 1, "seed {seed}: only the root is open");
        self.check(here)
    }

    /// Runs one step more, which need not succeed here. Says whether it has changed anything on Linux.
    pub fn step<F: FileSystem>(&mut self, here: &mut Here<F>) -> bool {
        let step = loop {
            let step = step(&mut self.random, self.has_links);
            if !matches!(step, Step::Poke { .. }) {
                break step;
            }
        };
        let _ = here.run(&step);
        self.last = format!("{step:?}");
        on_linux(&self.folder.0, &step).is_ok()
    }

    /// All that is there on Linux.
    pub fn all(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        all_on_linux(&self.folder.0, "", &mut all);
        all
    }

    /// All that is there is alike.
    fn check<F: FileSystem>(&self, mut here: Here<F>) -> F {
        let mut ours = BTreeMap::new();
        here.all(here.root, "", &mut ours);
        assert_eq!(ours, self.all(), "seed {}", self.seed);
        here.volume.into_inner()
    }
}

/// Runs programs on file systems that `make` makes, which may begin a program. `again` brings one to an end in the middle of it, and begins with it anew.
pub fn compare<F: Paged>(
    name: &str,
    programs: u64,
    steps: u64,
    make: impl Fn(&mut Run) -> F,
    again: impl Fn(F) -> F,
) {
    let mut done = 0;
    for seed in 1..=programs {
        let mut run = Run::new(name, seed);
        let fs = make(&mut run);
        let fs = run.go_on(steps / 2, fs);
        let fs = run.go_on(steps - steps / 2, again(fs));
        let mut volume = Volume::new(again(fs));
        let root = volume.root();
        run.check(Here { volume, root });
        done += run.done;
    }
    assert!(done > programs * steps / 8, "hardly anything succeeds: {done}");
}

/// Whether counts are the large ones.
pub fn is_full() -> bool {
    std::env::var_os("TERN_FULL").is_some_and(|full| full == "1")
}

pub fn programs() -> u64 {
    if is_full() { 1500 } else { 150 }
}

/// A disk in memory, with an empty ext4 file system.
pub fn ext4() -> Mounted<'static> {
    let disk = Memory::new(64 << 20);
    format(disk.clone(), || 0).unwrap();
    mount(disk, || 0).unwrap()
}

pub fn ram() -> Ram<Plain> {
    Ram::new(16 << 20, || 0)
}

/// Gives pages to a file system that has none. They are kept if it knows all changes, with room for few.
pub fn paged<F: FileSystem>(fs: F) -> Cached<F, Plain> {
    Cached::keeping(fs, HELD_MAX + 1)
}

#[test]
fn ext4_and_linux_agree() {
    compare("ext4", programs() / 3, 300, |_| paged(ext4()), |fs| fs);
}

#[test]
fn ram_and_linux_agree() {
    compare("ram", programs(), 300, |_| ram(), |fs| fs);
}

#[test]
fn kept_pages_and_linux_agree() {
    compare("kept", programs(), 300, |_| paged(ram()), |fs| fs);
}

/// A file system that nobody writes to: whoever tries is a mistake of the test's subject.
pub struct Fixed<F> {
    fs: F,
    /// How many names were looked up.
    pub lookups: u64,
}

impl<F> Fixed<F> {
    pub fn new(fs: F) -> Fixed<F> {
        Fixed { fs, lookups: 0 }
    }
}

impl<F: FileSystem> FileSystem for Fixed<F> {
    fn root(&self) -> Inode {
        self.fs.root()
    }
    fn attributes(&mut self, inode: Inode) -> vfs::Result<Attributes> {
        self.fs.attributes(inode)
    }
    fn change(&mut self, inode: Inode, _: &Changes) -> vfs::Result<()> {
        panic!("{inode:?} is changed")
    }
    fn xattr(&mut self, inode: Inode, name: &[u8]) -> vfs::Result<Vec<u8>> {
        self.fs.xattr(inode, name)
    }
    fn xattrs(&mut self, inode: Inode) -> vfs::Result<Vec<u8>> {
        self.fs.xattrs(inode)
    }
    fn set_xattr(&mut self, inode: Inode, _: &[u8], _: &[u8], _: vfs::Before) -> vfs::Result<()> {
        panic!("{inode:?} is changed")
    }
    fn remove_xattr(&mut self, inode: Inode, _: &[u8]) -> vfs::Result<()> {
        panic!("{inode:?} is changed")
    }
    fn lookup(&mut self, directory: Inode, name: Name) -> vfs::Result<Inode> {
        self.lookups += 1;
        self.fs.lookup(directory, name)
    }
    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> vfs::Result<Vec<Entry>> {
        self.fs.readdir(directory, cursor, count_max)
    }
    fn create(&mut self, _: Inode, name: Name, _: New, _: u16) -> vfs::Result<Inode> {
        panic!("{name:?} is made")
    }
    fn link(&mut self, _: Inode, _: Inode, name: Name) -> vfs::Result<()> {
        panic!("{name:?} is made")
    }
    fn unlink(&mut self, _: Inode, name: Name) -> vfs::Result<()> {
        panic!("{name:?} is removed")
    }
    fn rmdir(&mut self, _: Inode, name: Name) -> vfs::Result<()> {
        panic!("{name:?} is removed")
    }
    fn rename(&mut self, _: Inode, name: Name, _: Inode, _: Name) -> vfs::Result<()> {
        panic!("{name:?} is moved")
    }
    fn forget(&mut self, inode: Inode) -> vfs::Result<()> {
        panic!("{inode:?} is forgotten")
    }
    fn readlink(&mut self, inode: Inode) -> vfs::Result<Vec<u8>> {
        self.fs.readlink(inode)
    }
    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> vfs::Result<usize> {
        self.fs.read(inode, offset, to)
    }
    fn write(&mut self, inode: Inode, _: u64, _: &[u8]) -> vfs::Result<usize> {
        panic!("{inode:?} is written to")
    }
    fn truncate(&mut self, inode: Inode, _: u64) -> vfs::Result<()> {
        panic!("{inode:?} is cut off")
    }
    fn sync(&mut self, inode: Inode) -> vfs::Result<()> {
        panic!("{inode:?} is synced")
    }
    fn space(&mut self) -> vfs::Result<Space> {
        self.fs.space()
    }
    fn is_read_only(&self) -> bool {
        true
    }
}
