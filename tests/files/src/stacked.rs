//! File systems over others: as on Linux, and promises of each that no comparison shows.

use crate::as_on_linux::{Fixed, Here, Run, compare, paged, programs, ram};
use crate::served::Served;
use crypt::{Cost, Crypt, Refusal};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use vfs::page::Plain;
use vfs::path::Last;
use vfs::remote::Remote;
use vfs::{
    Attributes, Cached, Changes, Entry, Error, FileSystem, How, Inode, Kind, Merge, Name, New, Ram, Result,
    Space, Volume,
};

const CREATE: How = How { create: true, exclusive: false, truncate: false };

type InMemory = Ram<Plain>;

/// A program begins in the lower file system. Then an upper one lies over it, and the lower one stays as it is.
#[test]
fn merge_and_linux_agree() {
    let make = |run: &mut Run| {
        let lower = run.go_on(100, ram());
        paged(Merge::new(ram(), Fixed::new(lower)).unwrap())
    };
    let again = |fs: Cached<Merge<InMemory, Fixed<InMemory>>, Plain>| {
        let (upper, lower) = fs.into_inner().into_inner();
        paged(Merge::new(upper, lower).unwrap())
    };
    compare("merge", programs(), 300, make, again);
}

/// A server that is started anew between two parts of a program.
#[test]
fn remote_and_linux_agree() {
    let server = RefCell::new(None);
    let make = |_: &mut Run| {
        let served = Served::new(ram(), 1000);
        server.replace(Some(served.clone()));
        paged(Remote::new(served).unwrap())
    };
    let again = |fs: Cached<Remote<Served<InMemory>>, Plain>| {
        let (mut remote, server) = (fs.into_inner(), server.borrow());
        let root = remote.root();
        remote.sync(root).unwrap();
        let served = server.as_ref().unwrap();
        assert!(remote.open_count() <= 10 && served.open_count() == remote.open_count());
        served.restart(|fs| fs);
        paged(remote)
    };
    compare("remote", programs() / 3, 300, make, again);
}

/// All of it at once: a file system over two that others serve.
/// A server may end right after it was found, also when a file system over it begins.
#[test]
fn a_server_that_ends_at_the_beginning_is_found_again() {
    for (restarts, is_found) in [(0, true), (1, true), (2, true), (3, false)] {
        let served = Served::new(ram(), 100);
        served.restart_when_connected(restarts);
        assert_eq!(Remote::new(served.clone()).is_ok(), is_found, "{restarts}");
        assert!(Remote::new(served).is_ok(), "afterwards");
    }
}

#[test]
fn a_merge_of_servers_and_linux_agree() {
    let make = |run: &mut Run| {
        let lower = Served::new(Fixed::new(run.go_on(100, ram())), 100);
        let upper = Served::new(ram(), 100);
        paged(Merge::new(Remote::new(upper).unwrap(), Remote::new(lower).unwrap()).unwrap())
    };
    let again = |fs: Cached<Merge<_, _>, Plain>| {
        let (upper, lower) = fs.into_inner().into_inner();
        paged(Merge::new(upper, lower).unwrap())
    };
    compare("merge-of-servers", programs() / 3, 300, make, again);
}

const CHEAP: Cost = Cost { memory_kib: 8, passes: 1, lanes: 1 };

/// Not random, and each time others.
fn random(bytes: &mut [u8]) {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    for part in bytes.chunks_mut(8) {
        let number = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        part.copy_from_slice(&(number ^ number >> 29).to_le_bytes()[..part.len()]);
    }
}

fn crypt<F: FileSystem>(fs: F) -> Crypt<F> {
    Crypt::new(fs, b"open sesame", CHEAP, random).unwrap()
}

#[test]
fn crypt_and_linux_agree() {
    let again = |fs: Cached<Crypt<InMemory>, Plain>| paged(crypt(fs.into_inner().into_inner()));
    compare("crypt", programs(), 300, |_| paged(crypt(ram())), again);
}

#[test]
fn crypt_on_a_server_and_linux_agree() {
    let make = |_: &mut Run| paged(crypt(Remote::new(Served::new(ram(), 100)).unwrap()));
    let again =
        |fs: Cached<Crypt<Remote<Served<InMemory>>>, Plain>| paged(crypt(fs.into_inner().into_inner()));
    compare("crypt-on-a-server", programs() / 3, 300, make, again);
}

/// A file system that stops to change after some operations, or fails once.
struct Stopping<F> {
    fs: F,
    /// Changes that are left.
    left: Rc<Cell<u64>>,
    /// Only the one behind these fails.
    fails_once: bool,
    /// Entries that were listed since the last change, and the most of these when a name was removed.
    listed: usize,
    listed_max: Rc<Cell<usize>>,
}

impl<F> Stopping<F> {
    fn new(fs: F, left: Rc<Cell<u64>>, fails_once: bool) -> Stopping<F> {
        Stopping { fs, left, fails_once, listed: 0, listed_max: Rc::default() }
    }

    fn change_one(&mut self) -> Result<()> {
        self.listed = 0;
        match self.left.get() {
            0 => {
                if self.fails_once {
                    self.left.set(u64::MAX);
                }
                Err(Error::Io)
            }
            left => {
                self.left.set(left - 1);
                Ok(())
            }
        }
    }
}

impl<F: FileSystem> FileSystem for Stopping<F> {
    fn root(&self) -> Inode {
        self.fs.root()
    }
    fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        self.fs.attributes(inode)
    }
    fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()> {
        self.change_one()?;
        self.fs.change(inode, changes)
    }
    fn lookup(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        self.fs.lookup(directory, name)
    }
    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>> {
        let entries = self.fs.readdir(directory, cursor, count_max)?;
        self.listed += entries.len();
        Ok(entries)
    }
    fn create(&mut self, directory: Inode, name: Name, new: New, permissions: u16) -> Result<Inode> {
        self.change_one()?;
        self.fs.create(directory, name, new, permissions)
    }
    fn link(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()> {
        self.change_one()?;
        self.fs.link(inode, directory, name)
    }
    fn unlink(&mut self, directory: Inode, name: Name) -> Result<()> {
        self.listed_max.set(self.listed_max.get().max(self.listed));
        self.change_one()?;
        self.fs.unlink(directory, name)
    }
    fn rmdir(&mut self, directory: Inode, name: Name) -> Result<()> {
        self.change_one()?;
        self.fs.rmdir(directory, name)
    }
    fn rename(&mut self, from: Inode, name: Name, to: Inode, new_name: Name) -> Result<()> {
        self.change_one()?;
        self.fs.rename(from, name, to, new_name)
    }
    fn forget(&mut self, inode: Inode) -> Result<()> {
        self.fs.forget(inode)
    }
    fn readlink(&mut self, inode: Inode) -> Result<Vec<u8>> {
        self.fs.readlink(inode)
    }
    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        self.fs.read(inode, offset, to)
    }
    fn write(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        self.change_one()?;
        self.fs.write(inode, offset, from)
    }
    fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        self.change_one()?;
        self.fs.truncate(inode, len)
    }
    fn sync(&mut self, inode: Inode) -> Result<()> {
        self.fs.sync(inode)
    }
    fn space(&mut self) -> Result<Space> {
        self.fs.space()
    }
}

/// Promise for an operation that was interrupted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    /// All as it was before, or all as it is afterwards.
    Contents,
    /// Names and kinds are. Bytes that were being written are there or not.
    Names,
}

/// Runs programs of which one step is interrupted below, after any of its operations.
fn interrupted<F: FileSystem>(
    name: &str,
    whole: Whole,
    make: impl Fn(&mut Run, Rc<Cell<u64>>, bool) -> F,
    again: impl Fn(F) -> F,
) {
    let mut stopped = 0;
    for seed in 1..=3 * programs() {
        let mut run = Run::new(name, seed);
        let left = Rc::new(Cell::new(u64::MAX));
        let fails_once = seed % 2 == 0;
        let fs = make(&mut run, left.clone(), fails_once);
        let fs = run.go_on(20 + seed % 50, paged(fs)).into_inner();
        let mut volume = Volume::new(fs);
        let root = volume.root();
        let mut here = Here { volume, root };
        let before = run.all();
        // Most steps change nothing, or fail.
        for _ in 0..100 {
            left.set(seed % 7);
            let is_over = run.step(&mut here) && left.get() <= 7;
            let was_stopped = left.get() == 0 || left.get() > 7;
            left.set(u64::MAX);
            if was_stopped {
                stopped += 1;
                break;
            }
            if is_over && run.all() != before {
                break;
            }
        }
        let Here { mut volume, root } = here;
        if !fails_once {
            let mut renewed = Volume::new(again(volume.into_inner()));
            assert_eq!(renewed.root(), root);
            volume = renewed;
        }
        let after = run.all();
        let mut found = BTreeMap::new();
        Here { volume, root }.all(root, "", &mut found);
        let only = |all: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            let kind = |what: &String| match whole {
                Whole::Names if what.contains(" bytes ") => "file".into(),
                _ => what.clone(),
            };
            all.iter().map(|(name, what)| (name.clone(), kind(what))).collect()
        };
        assert!(
            only(&found) == only(&before) || only(&found) == only(&after),
            "seed {seed}: {:?}\nbefore {before:#?}\nafter {after:#?}\nfound {found:#?}",
            run.last
        );
    }
    assert!(stopped > programs() / 4, "hardly anything was interrupted: {stopped}");
}

#[test]
fn a_merge_that_is_interrupted_is_whole() {
    let make = |run: &mut Run, left: Rc<Cell<u64>>, fails_once| {
        let lower = run.go_on(100, ram());
        Merge::new(Stopping::new(ram(), left, fails_once), Fixed::new(lower)).unwrap()
    };
    let again = |fs: Merge<Stopping<InMemory>, Fixed<InMemory>>| {
        let (upper, lower) = fs.into_inner();
        Merge::new(upper, lower).unwrap()
    };
    interrupted("merge-interrupted", Whole::Contents, make, again);
}

#[test]
fn a_crypt_that_is_interrupted_is_whole() {
    let make = |_: &mut Run, left: Rc<Cell<u64>>, fails_once| crypt(Stopping::new(ram(), left, fails_once));
    interrupted("crypt-interrupted", Whole::Names, make, |fs| crypt(fs.into_inner()));
}

fn put<F: FileSystem>(volume: &mut Volume<F>, path: &str, text: &[u8]) -> Result<()> {
    let root = volume.root();
    let file = volume.open(root, path.as_bytes(), CREATE, 0o644)?;
    volume.write(file, 0, text)?;
    volume.sync(file)?;
    volume.close(file)
}

fn get<F: FileSystem>(volume: &mut Volume<F>, path: &str) -> Result<Vec<u8>> {
    let root = volume.root();
    let file = volume.open(root, path.as_bytes(), How::default(), 0)?;
    let mut text = vec![0; 100_000];
    let read = volume.read(file, 0, &mut text);
    volume.close(file)?;
    text.truncate(read?);
    Ok(text)
}

/// All files and links of a file system, by their paths: what others see of encrypted ones.
fn raw(fs: &mut impl FileSystem, directory: Inode, prefix: &str, found: &mut Vec<(String, Inode, Vec<u8>)>) {
    for entry in fs.readdir(directory, 0, 1000).unwrap() {
        let path = format!("{prefix}/{}", String::from_utf8(entry.name).unwrap());
        match entry.kind {
            Kind::Directory => raw(fs, entry.inode, &path, found),
            Kind::Symlink => found.push((path, entry.inode, fs.readlink(entry.inode).unwrap())),
            _ => {
                let mut bytes = vec![0; fs.len(entry.inode).unwrap() as usize];
                fs.read(entry.inode, 0, &mut bytes).unwrap();
                found.push((path, entry.inode, bytes));
            }
        }
    }
}

const TEXT: &[u8] = b"attack at dawn, and again at noon. ";

/// Some encrypted files, and the file system below.
fn vault() -> InMemory {
    let mut volume = Volume::new(crypt(ram()));
    let root = volume.root();
    volume.mkdir(root, b"plans", 0o755).unwrap();
    put(&mut volume, "plans/first", TEXT).unwrap();
    put(&mut volume, "plans/second", &TEXT.repeat(500)).unwrap();
    put(&mut volume, "third", &TEXT.repeat(500)).unwrap();
    volume.symlink(root, b"plans/first", b"link").unwrap();
    volume.into_inner().into_inner()
}

#[test]
fn nothing_can_be_read_below() {
    let mut fs = vault();
    let (root, mut all) = (fs.root(), Vec::new());
    raw(&mut fs, root, "", &mut all);
    assert_eq!(all.len(), 7, "three files, a link, the keys, and two numbers of directories: {all:?}");
    for (path, _, bytes) in &all {
        for word in ["plans", "first", "second", "third", "link", "attack", "dawn"] {
            assert!(!path.contains(word) && !bytes.windows(word.len()).any(|part| part == word.as_bytes()));
        }
        let is_ours = path.ends_with("/.key") || path.ends_with("/.id") || bytes.len() < 200;
        assert!(is_ours || bytes.len().is_multiple_of(4096));
    }
    // Two files with the text of one are not alike.
    let blocks: Vec<_> = all.iter().flat_map(|(_, _, bytes)| bytes.chunks_exact(4096)).collect();
    assert!(blocks.iter().enumerate().all(|(at, block)| !blocks[..at].contains(block)));
}

#[test]
fn only_the_passphrase_opens() {
    let fs = vault();
    let wrong = Crypt::new(fs, b"open barley", CHEAP, random).err();
    assert_eq!(wrong, Some(Refusal::WrongPassphrase));
    assert_eq!(get(&mut Volume::new(crypt(vault())), "link").unwrap(), TEXT);
    let mut volume = Volume::new(ram());
    put(&mut volume, "something", b"of somebody else").unwrap();
    assert_eq!(Crypt::new(volume.into_inner(), b"x", CHEAP, random).err(), Some(Refusal::NotEmpty));
    let mut volume = Volume::new(ram());
    put(&mut volume, ".key", b"no keys").unwrap();
    assert_eq!(Crypt::new(volume.into_inner(), b"x", CHEAP, random).err(), Some(Refusal::NoKeys));
}

/// Names of the three files that cannot be read, and that all can be listed, looked at and removed.
fn unreadable(fs: InMemory) -> Vec<&'static str> {
    let mut volume = Volume::new(crypt(fs));
    let root = volume.root();
    let bad = ["plans/first", "plans/second", "third"].into_iter().filter(|path| {
        match get(&mut volume, path) {
            Ok(text) => assert!(text.chunks(TEXT.len()).all(|part| part == TEXT)),
            Err(error) => assert_eq!(error, Error::Damaged),
        }
        get(&mut volume, path).is_err()
    });
    let bad = bad.collect();
    for path in ["plans/first", "plans/second", "third", "link"] {
        volume.attributes_at(root, path.as_bytes(), Last::Stay).unwrap();
        volume.unlink(root, path.as_bytes()).unwrap();
    }
    volume.rmdir(root, b"plans").unwrap();
    bad
}

/// Files with their bytes.
type Files = [(Inode, Vec<u8>)];

/// The three files below, the small one first.
fn files(fs: &mut InMemory) -> Vec<(Inode, Vec<u8>)> {
    let (root, mut all) = (fs.root(), Vec::new());
    raw(fs, root, "", &mut all);
    let mut files: Vec<_> = all
        .into_iter()
        .filter(|(path, _, bytes)| !path.contains("/.") && bytes.len() >= 4096)
        .map(|(_, inode, bytes)| (inode, bytes))
        .collect();
    files.sort_by_key(|(_, bytes)| bytes.len());
    files
}

fn overwrite(fs: &mut InMemory, file: Inode, at: u64, bytes: &[u8]) {
    assert_eq!(fs.write(file, at, bytes), Ok(bytes.len()));
}

#[test]
fn a_changed_byte_costs_one_file() {
    for at in [0, 15, 16, 39, 40, 47, 48, 4079, 4080, 4095, 4096, 9000, 20479] {
        for number in 0..3 {
            let mut fs = vault();
            let (inode, bytes) = &files(&mut fs)[number];
            let Some(byte) = bytes.get(at) else { continue };
            fs.write(*inode, at as u64, &[byte ^ 1]).unwrap();
            assert_eq!(unreadable(fs).len(), 1, "byte {at} of file {number}");
        }
    }
}

#[test]
fn blocks_that_are_moved_or_missing_are_missed() {
    let change = |change: &dyn Fn(&mut InMemory, &Files)| {
        let mut fs = vault();
        let files = files(&mut fs);
        change(&mut fs, &files);
        unreadable(fs).len()
    };
    assert_eq!(change(&|_, _| ()), 0);
    assert_eq!(change(&|fs, files| overwrite(fs, files[1].0, 4096, &files[2].1[4096..8192])), 1);
    assert_eq!(change(&|fs, files| overwrite(fs, files[1].0, 4096, &files[1].1[8192..12288])), 1);
    assert_eq!(change(&|fs, files| overwrite(fs, files[1].0, 0, &files[2].1[..4096])), 1);
    for len in [0, 1, 4096, 8192, 12288, 16384] {
        assert_eq!(change(&|fs, files| fs.truncate(files[1].0, len).unwrap()), 1, "{len}");
    }
    assert_eq!(change(&|fs, files| fs.truncate(files[0].0, 0).unwrap()), 1);
    // Bytes behind the end are nothing, as after a loss of power.
    assert_eq!(change(&|fs, files| overwrite(fs, files[1].0, 1 << 20, b"more")), 0);
    // The record says so: two files can change places.
    assert_eq!(
        change(&|fs, files| {
            overwrite(fs, files[1].0, 0, &files[2].1);
            overwrite(fs, files[2].0, 0, &files[1].1);
        }),
        0
    );
}

#[test]
fn lengths_of_encrypted_files_have_bounds() {
    let mut volume = Volume::new(crypt(ram()));
    let root = volume.root();
    let file = volume.open(root, b"file", CREATE, 0o644).unwrap();
    volume.write(file, 0, b"text").unwrap();
    for at in [5 << 20, 1 << 30, 1 << 46, 1 << 62, u64::MAX - 3] {
        assert_eq!(volume.write(file, at, b"more"), Err(Error::TooLarge), "{at:x}");
        assert_eq!(volume.truncate(file, at), Err(Error::TooLarge), "{at:x}");
        assert_eq!((volume.read(file, at, &mut [0; 9]), volume.len(file)), (Ok(0), Ok(4)));
    }
    volume.truncate(file, 4 << 20).unwrap();
    volume.truncate(file, 2).unwrap();
    volume.truncate(file, 5000).unwrap();
    let mut all = [1; 6000];
    assert_eq!(volume.read(file, 0, &mut all), Ok(5000));
    assert!(all.starts_with(b"te\0\0") && all[2..5000].iter().all(|&byte| byte == 0));
    let longest = "n".repeat(175);
    assert_eq!(volume.mkdir(root, longest.as_bytes(), 0o755), Ok(()));
    assert_eq!(volume.mkdir(root, (longest + "n").as_bytes(), 0o755), Err(Error::NameTooLong));
}

/// A full file system below loses nothing of what was there.
#[test]
fn a_full_vault_loses_nothing() {
    let mut volume = Volume::new(crypt(Ram::<Plain>::new(1 << 18, || 0)));
    let root = volume.root();
    put(&mut volume, "first", TEXT).unwrap();
    let file = volume.open(root, b"large", CREATE, 0o644).unwrap();
    let mut len = 0;
    let error = loop {
        match volume.append(file, &[7; 3000]) {
            Ok(at) => {
                assert_eq!(at, len);
                len += 3000;
            }
            Err(error) => break error,
        }
    };
    assert_eq!((error, volume.len(file)), (Error::NoSpace, Ok(len)));
    volume.sync(file).unwrap();
    volume.close(file).unwrap();
    assert_eq!(get(&mut volume, "first").unwrap(), TEXT);
    assert_eq!(get(&mut volume, "large").unwrap(), vec![7; len as usize][..len.min(100_000) as usize]);
    volume.unlink(root, b"large").unwrap();
    volume.mkdir(root, b"more", 0o755).unwrap();
}

/// A server below ends: whoever only read goes on, and whoever wrote is told.
#[test]
fn a_server_below_ends() {
    let served = Served::new(ram(), 100);
    let mut volume = Volume::new(Remote::new(served.clone()).unwrap());
    let root = volume.root();
    put(&mut volume, "read", b"some").unwrap();
    put(&mut volume, "written", b"some").unwrap();
    let read = volume.open(root, b"read", How::default(), 0).unwrap();
    let written = volume.open(root, b"written", How::default(), 0).unwrap();
    volume.write(written, 0, b"more").unwrap();
    served.restart(|fs| fs);
    let mut bytes = [0; 4];
    assert_eq!((volume.read(read, 0, &mut bytes), &bytes), (Ok(4), b"some"));
    assert_eq!(volume.write(written, 4, b"even more"), Err(Error::Io));
    assert_eq!(volume.read(written, 0, &mut bytes), Err(Error::Io));
    assert_eq!((volume.sync(written), volume.sync(written)), (Err(Error::Io), Err(Error::Io)));
    volume.close(written).unwrap();
    put(&mut volume, "written", b"again").unwrap();
    assert_eq!(get(&mut volume, "written").unwrap(), b"again");
    // One that was closed before anybody was told: who opens it next is.
    let written = volume.open(root, b"written", How::default(), 0).unwrap();
    volume.write(written, 0, b"more").unwrap();
    served.restart(|fs| fs);
    assert_eq!(volume.sync(written), Err(Error::Io));
    volume.close(written).unwrap();
    assert_eq!(get(&mut volume, "written"), Err(Error::Io));
    assert_eq!(get(&mut volume, "written").unwrap(), b"moren");
    // It ends and has lost everything.
    served.restart(|_| ram());
    assert_eq!(volume.read(read, 0, &mut bytes), Err(Error::NotFound));
    volume.close(read).unwrap_err();
    put(&mut volume, "new", b"text").unwrap();
}

/// A server below that lost everything gives its numbers again, and one of them to a file that somebody else makes. Whoever had the old file open does not get
/// at that one.
#[test]
fn a_number_that_comes_again_is_not_the_old_file() {
    let served = Served::new(ram(), 100);
    let mut volume = Volume::new(Remote::new(served.clone()).unwrap());
    let root = volume.root();
    put(&mut volume, "old", b"some").unwrap();
    let old = volume.open(root, b"old", How::default(), 0).unwrap();
    served.restart(|_| ram());
    assert_eq!(volume.open(root, b"secret", CREATE, 0o600), Err(Error::Io));
    let secret = volume.open(root, b"secret", CREATE, 0o600).unwrap();
    assert_ne!(secret, old);
    volume.write(secret, 0, b"secret").unwrap();
    let mut bytes = [0; 6];
    assert_eq!(volume.read(old, 0, &mut bytes), Err(Error::NotFound));
    assert_eq!(bytes, [0; 6]);
}

/// Files that others move past this file system are not found, or are found where they are now.
#[test]
fn others_move_things_below() {
    let served = Served::new(ram(), 100);
    let mut volume = Volume::new(Remote::new(served.clone()).unwrap());
    let mut others = Volume::new(Remote::new(served.clone()).unwrap());
    let (root, other_root) = (volume.root(), others.root());
    put(&mut volume, "one", b"1").unwrap();
    put(&mut volume, "two", b"2").unwrap();
    let one = volume.open(root, b"one", How::default(), 0).unwrap();
    others.rename(other_root, b"two", b"one").unwrap();
    let mut bytes = [0; 4];
    assert_eq!((volume.read(one, 0, &mut bytes), bytes[0]), (Ok(1), b'1'));
    assert_eq!(volume.attributes(one).unwrap().links, 0);
    assert_eq!(get(&mut volume, "one").unwrap(), b"2");
    assert_eq!(get(&mut volume, "two"), Err(Error::NotFound));
    volume.close(one).unwrap();
}

/// A client that opens more than there may be is refused, and gets more as soon as something is closed.
#[test]
fn a_server_below_has_no_more() {
    let served = Served::new(ram(), 20);
    let mut volume = Volume::new(Remote::new(served.clone()).unwrap());
    let root = volume.root();
    let mut open = Vec::new();
    let error = loop {
        match volume.open(root, format!("{}", open.len()).as_bytes(), CREATE, 0o644) {
            Ok(file) => open.push(file),
            Err(error) => break error,
        }
    };
    assert_eq!(error, Error::TooManyOpen);
    assert!(open.len() >= 10, "{}", open.len());
    assert!(served.open_count() <= 20);
    volume.close(open.pop().unwrap()).unwrap();
    put(&mut volume, "more", b"text").unwrap();
    for file in open {
        volume.close(file).unwrap();
    }
    assert!(served.open_count() < 17, "{}", served.open_count());
}

/// A file that is to be emptied, and cannot be opened, has all that it had.
#[test]
fn what_cannot_be_opened_is_not_emptied() {
    let mut volume = Volume::new(Remote::new(Served::new(ram(), 20)).unwrap());
    let root = volume.root();
    put(&mut volume, "kept", b"text").unwrap();
    let mut open = Vec::new();
    while let Ok(file) = volume.open(root, format!("{}", open.len()).as_bytes(), CREATE, 0o644) {
        open.push(file);
    }
    let how = How { truncate: true, ..How::default() };
    assert_eq!(volume.open(root, b"kept", how, 0), Err(Error::TooManyOpen));
    for file in open {
        volume.close(file).unwrap();
    }
    assert_eq!(get(&mut volume, "kept").unwrap(), b"text");
    let file = volume.open(root, b"kept", how, 0).unwrap();
    assert_eq!(volume.len(file), Ok(0));
}

/// Names and targets that are the merge's own are nobody else's.
#[test]
fn nobody_sees_what_a_merge_notes() {
    let mut lower = Volume::new(ram());
    put(&mut lower, "file", b"text").unwrap();
    put(&mut lower, ".merge", b"somebody's").unwrap();
    let mut volume = Volume::new(Merge::new(ram(), lower.into_inner()).unwrap());
    let root = volume.root();
    volume.unlink(root, b"file").unwrap();
    assert_eq!(volume.readdir(root, 0, 10).unwrap(), []);
    assert_eq!(get(&mut volume, ".merge"), Err(Error::NotFound));
    assert_eq!(put(&mut volume, ".merge", b""), Err(Error::Invalid));
    assert_eq!(volume.mkdir(root, b".merge", 0o755), Err(Error::Invalid));
    assert_eq!(volume.symlink(root, b".merge/removed", b"file"), Err(Error::Invalid));
    put(&mut volume, "other", b"").unwrap();
    assert_eq!(volume.link(root, b"other", b".merge"), Err(Error::Invalid));
    assert_eq!(volume.rename(root, b"other", b".merge"), Err(Error::Invalid));
}

/// A symbolic link of the lower one with a target that means something in the upper one stays what it is: it is not copied there, and does not vanish.
#[test]
fn a_link_of_the_lower_one_means_nothing_to_a_merge() {
    for target in [&b".merge/removed"[..], b".merge/removed/link", b".merge/alone", b".merge/over/file"] {
        let mut lower = Volume::new(ram());
        let base = lower.root();
        lower.symlink(base, target, b"link").unwrap();
        put(&mut lower, "file", b"text").unwrap();
        let mut volume = Volume::new(Merge::new(ram(), lower.into_inner()).unwrap());
        let root = volume.root();
        assert_eq!(volume.rename(root, b"link", b"moved"), Err(Error::Unsupported));
        assert_eq!(volume.link(root, b"link", b"other"), Err(Error::Unsupported));
        assert_eq!(volume.readlink(root, b"link").unwrap(), target);
        assert_eq!(volume.readdir(root, 0, 10).unwrap().len(), 2);
        volume.unlink(root, b"link").unwrap();
        assert_eq!(volume.readlink(root, b"link"), Err(Error::NotFound));
    }
}

/// Files that are open in the lower one when they are written to, moved and removed.
#[test]
fn open_files_of_the_lower_one_stay_open() {
    let mut lower = Volume::new(ram());
    let base = lower.root();
    lower.mkdir(base, b"d", 0o755).unwrap();
    put(&mut lower, "d/one", b"one").unwrap();
    put(&mut lower, "d/two", b"two").unwrap();
    lower.link(base, b"d/two", b"d/three").unwrap();
    let mut volume = Volume::new(Merge::new(ram(), Fixed::new(lower.into_inner())).unwrap());
    let root = volume.root();
    let plain = How::default();
    let [one, two, three] =
        ["d/one", "d/two", "d/three"].map(|path| volume.open(root, path.as_bytes(), plain, 0).unwrap());
    assert_eq!(two, three);
    let mut bytes = [0; 3];
    volume.unlink(root, b"d/one").unwrap();
    assert_eq!((volume.attributes(one).unwrap().links, volume.read(one, 0, &mut bytes)), (0, Ok(3)));
    volume.write(one, 0, b"1").unwrap();
    assert_eq!((volume.read(one, 0, &mut bytes), &bytes), (Ok(3), b"1ne"));
    put(&mut volume, "d/one", b"another").unwrap();
    assert_eq!((volume.read(one, 0, &mut bytes), &bytes), (Ok(3), b"1ne"));
    volume.rename(root, b"d/two", b"moved").unwrap();
    volume.write(two, 0, b"2").unwrap();
    assert_eq!(get(&mut volume, "d/three").unwrap(), b"2wo");
    assert_eq!(get(&mut volume, "moved").unwrap(), b"2wo");
    assert_eq!(volume.attributes(two).unwrap().links, 2);
    volume.unlink(root, b"d/three").unwrap();
    volume.unlink(root, b"moved").unwrap();
    assert_eq!((volume.read(three, 0, &mut bytes), &bytes), (Ok(3), b"2wo"));
    for file in [one, two, three] {
        volume.close(file).unwrap();
    }
    assert_eq!(get(&mut volume, "d/one").unwrap(), b"another");
}

/// A large directory of the lower one whose names were removed is removed itself, without a list of all that is in the way; and so is one that was left at the last start.
#[test]
fn a_large_directory_goes_step_by_step() {
    let mut lower = Volume::new(ram());
    let base = lower.root();
    lower.mkdir(base, b"many", 0o755).unwrap();
    for number in 0..1000 {
        lower.symlink(base, b"nowhere", format!("many/{number}").as_bytes()).unwrap();
    }
    let upper = Stopping::new(ram(), Rc::new(Cell::new(u64::MAX)), false);
    let (left, listed_max) = (upper.left.clone(), upper.listed_max.clone());
    let mut volume = Volume::new(Merge::new(upper, Fixed::new(lower.into_inner())).unwrap());
    let root = volume.root();
    for number in 0..1000 {
        volume.unlink(root, format!("many/{number}").as_bytes()).unwrap();
    }
    let before = listed_max.take();
    // After half of them it cannot go on, and the next start does.
    left.set(500);
    volume.rmdir(root, b"many").unwrap();
    left.set(u64::MAX);
    assert_eq!(volume.readdir(root, 0, 10).unwrap(), []);
    let (upper, lower) = volume.into_inner().into_inner();
    let mut volume = Volume::new(Merge::new(upper, lower).unwrap());
    assert_eq!(volume.readdir(root, 0, 10).unwrap(), []);
    assert!((1..=64).contains(&listed_max.get()), "{} and {before} at once", listed_max.get());
    let (mut upper, _) = volume.into_inner().into_inner();
    let top = upper.root();
    let own = upper.lookup(top, Name::new(b".merge").unwrap()).unwrap();
    assert_eq!(upper.readdir(own, 0, 10).unwrap(), []);
}

/// An upper one in memory whose server ends is empty, and is used again.
#[test]
fn an_upper_one_that_lost_everything_begins_anew() {
    let mut lower = Volume::new(ram());
    let base = lower.root();
    lower.mkdir(base, b"d", 0o755).unwrap();
    put(&mut lower, "d/one", b"one").unwrap();
    put(&mut lower, "d/two", b"two").unwrap();
    let served = Served::new(ram(), 100);
    let upper = Remote::new(served.clone()).unwrap();
    let mut volume = Volume::new(Merge::new(upper, Fixed::new(lower.into_inner())).unwrap());
    let root = volume.root();
    for _ in 0..3 {
        assert_eq!(volume.readdir(root, 0, 10).unwrap().len(), 1);
        volume.unlink(root, b"d/one").unwrap();
        put(&mut volume, "d/two", b"2").unwrap();
        put(&mut volume, "d/three", b"three").unwrap();
        volume.rename(root, b"d", b"moved").unwrap();
        assert_eq!(get(&mut volume, "moved/two").unwrap(), b"2wo");
        assert_eq!(get(&mut volume, "d/two"), Err(Error::NotFound));
        served.restart(|_| ram());
        assert_eq!(get(&mut volume, "moved/two"), Err(Error::NotFound));
        assert_eq!(get(&mut volume, "d/two").unwrap(), b"two");
    }
}
