//! More files in use than a server has objects for: those that were used longest ago are closed there, and opened again. Nobody sees anything of it, also when
//! the server is started anew, others move files, or a sync fails.

use crate::as_on_linux::{Random, programs, ram};
use std::collections::BTreeSet;
use std::ops::Range;
use vfs::page::Plain;
use vfs::path::Last;
use vfs::remote::{Remote, Served};
use vfs::{Error, FileSystem, How, Inode, Ram, Result, Volume};

type Server = Served<Ram<Plain>>;
type Client = Volume<Remote<Server>>;

/// Objects of a server.
const OBJECTS: usize = 12;

/// Most files that a random program has open.
const OPEN_MAX: usize = 4 * OBJECTS;

const CREATE: How = How { create: true, exclusive: false, truncate: false };

fn client(served: &Server) -> Client {
    Volume::new(Remote::new(served.clone()).unwrap())
}

fn text(number: usize) -> Vec<u8> {
    format!("text of {number}").into_bytes()
}

fn name(number: usize) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// Makes files whose names are numbers, each with a text of its own. They stay open.
fn make(client: &mut Client, numbers: Range<usize>) -> Vec<Inode> {
    let root = client.root();
    let mut files = Vec::new();
    for number in numbers {
        let file = client.open(root, &name(number), CREATE, 0o644).unwrap();
        assert_eq!(client.write(file, 0, &text(number)), Ok(text(number).len()));
        files.push(file);
    }
    files
}

/// All of a file that is open.
fn read<F: FileSystem>(volume: &mut Volume<F>, file: Inode) -> Result<Vec<u8>> {
    let mut bytes = vec![0; 10_000];
    let count = volume.read(file, 0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// All of a file that has a path.
fn content<F: FileSystem>(volume: &mut Volume<F>, path: &[u8]) -> Result<Vec<u8>> {
    let root = volume.root();
    let file = volume.open(root, path, How::default(), 0)?;
    let bytes = read(volume, file);
    volume.close(file)?;
    bytes
}

/// Names in a directory.
fn names<F: FileSystem>(volume: &mut Volume<F>, directory: Inode) -> Result<BTreeSet<Vec<u8>>> {
    let (mut names, mut cursor) = (BTreeSet::new(), 0);
    loop {
        let entries = volume.readdir(directory, cursor, 50)?;
        let Some(last) = entries.last() else { return Ok(names) };
        cursor = last.next;
        names.extend(entries.into_iter().map(|entry| entry.name));
    }
}

fn all_have_their_texts(client: &mut Client, files: &[Inode]) {
    for (number, file) in files.iter().enumerate() {
        assert_eq!(read(client, *file), Ok(text(number)), "{number}");
    }
}

#[test]
fn more_files_are_in_use_than_a_server_has_objects() {
    let served = Served::new(ram(), OBJECTS);
    let mut client = client(&served);
    let files = make(&mut client, 0..200);
    let before = served.calls();
    all_have_their_texts(&mut client, &files);
    // Of each file: two reads, to open it and to look which one that is, and to look at another one that is closed for it.
    let calls = served.calls() - before;
    assert!(calls <= 6 * 200, "{calls} calls");
    assert!(served.open_count() <= OBJECTS);
    for file in files {
        client.close(file).unwrap();
    }
    assert!(served.open_count() < OBJECTS, "{}", served.open_count());
    assert_eq!(served.closed_unsynced(), 0);
}

/// A client that stands in for others has several shares. As long as one of them has room, no file is closed.
#[test]
fn all_shares_are_used_first() {
    let served = Served::with_shares(ram(), 1000, 8);
    let mut client = client(&served);
    let mut files = make(&mut client, 0..40);
    assert!(served.open_count() > 40, "{}", served.open_count());
    files.extend(make(&mut client, 40..200));
    all_have_their_texts(&mut client, &files);
    assert!((30..=48).contains(&served.open_count()), "{}", served.open_count());
}

#[test]
fn a_file_that_cannot_be_made_safe_stays_open() {
    let served = Served::new(ram(), OBJECTS);
    let mut client = client(&served);
    let root = client.root();
    // They take all objects but the one of the root.
    let files = make(&mut client, 0..OBJECTS - 1);
    served.let_syncs_fail(true);
    assert_eq!(client.open(root, b"more", CREATE, 0o644), Err(Error::TooManyOpen));
    assert_eq!(client.attributes_at(root, b"more", Last::Stay), Err(Error::NotFound));
    all_have_their_texts(&mut client, &files);
    assert_eq!(client.sync(files[0]), Err(Error::Io));
    served.let_syncs_fail(false);
    let more = client.open(root, b"more", CREATE, 0o644).unwrap();
    all_have_their_texts(&mut client, &files);
    assert_eq!(read(&mut client, more), Ok(Vec::new()));
    assert_eq!(served.closed_unsynced(), 0);
}

#[test]
fn files_that_were_closed_outlive_the_server() {
    let served = Served::new(ram(), OBJECTS);
    let mut client = client(&served);
    let files = make(&mut client, 0..40);
    served.restart(|fs| fs);
    let mut lost = 0;
    for (number, file) in files.iter().enumerate() {
        match read(&mut client, *file) {
            Ok(found) => assert_eq!(found, text(number)),
            // It was open, and not synced.
            Err(error) => {
                assert_eq!(error, Error::Io);
                lost += 1;
            }
        }
    }
    assert!((1..OBJECTS).contains(&lost), "{lost}");
}

/// A server that ends just before a name goes has no file open for which that is the last one. So it is opened anew first.
#[test]
fn a_file_outlives_a_server_that_ends_before_its_name_goes() {
    for is_replaced in [false, true] {
        let served = Served::new(ram(), OBJECTS);
        let mut client = client(&served);
        let root = client.root();
        let files = make(&mut client, 0..2);
        files.iter().for_each(|file| client.sync(*file).unwrap());
        served.restart_before_a_name_goes();
        let done = if is_replaced { client.rename(root, b"1", b"0") } else { client.unlink(root, b"0") };
        assert_eq!(done, Ok(()));
        assert_eq!(client.attributes(files[0]).map(|found| found.links), Ok(0));
        all_have_their_texts(&mut client, &files);
    }
}

/// Files without names cannot be opened again. So they take all objects but one, and no more names are removed of files in use: the others share that one.
#[test]
fn files_without_names_stay_open() {
    let served = Served::new(ram(), OBJECTS);
    let mut client = client(&served);
    let root = client.root();
    let files = make(&mut client, 0..40);
    let mut removed = Vec::new();
    for number in 0..files.len() {
        let outcome = client.unlink(root, &name(number));
        assert!(matches!(outcome, Ok(()) | Err(Error::TooManyOpen)), "{outcome:?}");
        removed.push(outcome.is_ok());
    }
    let count = removed.iter().filter(|is_removed| **is_removed).count();
    assert_eq!(count, OBJECTS - 2);
    all_have_their_texts(&mut client, &files);
    assert_eq!(client.rename(root, b"39", b"38"), Err(Error::TooManyOpen));
    assert_eq!(names(&mut client, root).unwrap().len(), files.len() - count);
    all_have_their_texts(&mut client, &files);
    // Names of files that nobody uses go at any time.
    for (number, is_removed) in removed.into_iter().enumerate() {
        client.close(files[number]).unwrap();
        if !is_removed {
            client.unlink(root, &name(number)).unwrap();
        }
    }
    assert_eq!(names(&mut client, root), Ok(BTreeSet::new()));
}

/// Files that others have moved and removed before they would have been closed stay open. Those that were closed are missed, and found again where they are.
#[test]
fn files_that_others_move_are_no_other_ones() {
    let served = Served::new(ram(), 2 * OBJECTS);
    let (mut client, mut others) = (client(&served), client(&served));
    let (root, other_root) = (client.root(), others.root());
    let mut files = make(&mut client, 0..6);
    others.unlink(other_root, b"0").unwrap();
    others.rename(other_root, b"1", b"moved").unwrap();
    files.extend(make(&mut client, 6..60));
    all_have_their_texts(&mut client, &files);
    assert_eq!(client.attributes(files[0]).map(|found| found.links), Ok(0));
    // They were used long ago by now.
    others.unlink(other_root, b"2").unwrap();
    others.rename(other_root, b"3", b"2").unwrap();
    assert_eq!(read(&mut client, files[2]), Err(Error::NotFound));
    assert_eq!(read(&mut client, files[3]), Err(Error::NotFound));
    assert_eq!(client.open(root, b"2", How::default(), 0), Ok(files[3]));
    assert_eq!(read(&mut client, files[3]), Ok(text(3)));
    assert_eq!(read(&mut client, files[2]), Err(Error::NotFound));
    assert_eq!(read(&mut client, files[4]), Ok(text(4)));
}

/// A file that is open in both file systems.
#[derive(Clone, Copy)]
struct Pair {
    here: Inode,
    model: Inode,
}

/// A random program that runs on a server with few objects, and in memory.
struct Program {
    seed: u64,
    random: Random,
    served: Server,
    here: Client,
    root: Inode,
    model: Volume<Ram<Plain>>,
    model_root: Inode,
    open: Vec<Pair>,
    /// Files of the model that were written to and not synced since the server was started.
    unsynced: BTreeSet<Inode>,
    /// Files of the model that have lost a name while they were in use.
    unnamed: BTreeSet<Inode>,
    /// Files of the model that may have lost something with the server. Calls of them may fail.
    doubtful: BTreeSet<Inode>,
    /// How often something was not opened, or no name removed, for want of objects.
    refused: usize,
}

/// A failure says by which seed it comes again.
impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.seed);
        }
    }
}

const DIRECTORIES: [&str; 3] = ["a", "b", "c"];

impl Program {
    fn new(seed: u64) -> Program {
        let served = Served::new(ram(), OBJECTS);
        let (mut here, mut model) = (client(&served), Volume::new(ram()));
        let (root, model_root) = (here.root(), model.root());
        Program {
            seed,
            random: Random(seed),
            served,
            here,
            root,
            model,
            model_root,
            open: Vec::new(),
            unsynced: BTreeSet::new(),
            unnamed: BTreeSet::new(),
            doubtful: BTreeSet::new(),
            refused: 0,
        }
    }

    fn directory(&mut self) -> &'static str {
        DIRECTORIES[self.random.below(3) as usize]
    }

    fn path(&mut self) -> String {
        let number = self.random.below(20);
        if self.random.chance(3) { number.to_string() } else { format!("{}/{number}", self.directory()) }
    }

    fn any(&mut self) -> Option<usize> {
        let count = self.open.len() as u64;
        (count > 0).then(|| self.random.below(count) as usize)
    }

    /// The file of the model that has a path.
    fn inode(&mut self, path: &str) -> Option<Inode> {
        let found = self.model.attributes_at(self.model_root, path.as_bytes(), Last::Stay);
        found.ok().map(|found| found.inode)
    }

    fn is_used(&self, file: Inode) -> bool {
        self.open.iter().any(|pair| pair.model == file)
    }

    /// Says whether a call was refused for want of objects. Only files without names keep one from getting some: all but that of the root, and one more.
    fn is_refused<T>(&mut self, outcome: &Result<T>) -> bool {
        let is_refused = matches!(outcome, Err(Error::TooManyOpen));
        if is_refused {
            assert!(self.unnamed.len() + 2 >= OBJECTS, "{:?} have no names", self.unnamed);
            self.refused += 1;
        }
        is_refused
    }

    /// Says whether a call of a file has failed that may.
    fn is_lost<T>(&self, pair: Pair, outcome: &Result<T>) -> bool {
        outcome.is_err() && self.doubtful.contains(&pair.model)
    }

    fn open(&mut self) {
        if self.open.len() >= OPEN_MAX {
            return self.close();
        }
        let path = self.path();
        let how = if self.random.chance(3) { How::default() } else { CREATE };
        let here = self.here.open(self.root, path.as_bytes(), how, 0o644);
        if self.is_refused(&here) {
            return;
        }
        let before = self.inode(&path);
        if here == Err(Error::Io) && before.is_some_and(|file| self.doubtful.contains(&file)) {
            return;
        }
        let model = self.model.open(self.model_root, path.as_bytes(), how, 0o644);
        match (here, model) {
            (Ok(here), Ok(model)) => {
                if !self.is_used(model) {
                    self.doubtful.remove(&model);
                }
                self.open.push(Pair { here, model });
            }
            (here, model) => assert_eq!(here.map(drop), model.map(drop), "{path}"),
        }
    }

    fn read(&mut self) {
        let Some(pair) = self.any().map(|place| self.open[place]) else { return };
        let (offset, len) = (self.random.below(3000), self.random.below(3000) as usize);
        let (mut found, mut wanted) = (vec![0; len], vec![0; len]);
        let count = self.here.read(pair.here, offset, &mut found);
        if !self.is_lost(pair, &count) {
            assert_eq!(count, self.model.read(pair.model, offset, &mut wanted));
            assert!(found == wanted, "{len} bytes from {offset} on");
        }
    }

    fn write(&mut self) {
        let Some(pair) = self.any().map(|place| self.open[place]) else { return };
        let (offset, value) = (self.random.below(3000), self.random.below(255) as u8 + 1);
        let bytes = vec![value; 1 + self.random.below(2000) as usize];
        let count = self.here.write(pair.here, offset, &bytes);
        if !self.is_lost(pair, &count) {
            assert_eq!(count, self.model.write(pair.model, offset, &bytes));
            self.unsynced.insert(pair.model);
        }
    }

    fn truncate(&mut self) {
        let Some(pair) = self.any().map(|place| self.open[place]) else { return };
        let len = self.random.below(4000);
        let done = self.here.truncate(pair.here, len);
        if !self.is_lost(pair, &done) {
            assert_eq!(done, self.model.truncate(pair.model, len));
            self.unsynced.insert(pair.model);
        }
    }

    /// Looks at a file, or syncs it.
    fn look(&mut self) {
        let Some(pair) = self.any().map(|place| self.open[place]) else { return };
        if self.random.chance(2) {
            let synced = self.here.sync(pair.here);
            if !self.is_lost(pair, &synced) {
                assert_eq!(synced, Ok(()));
                self.unsynced.remove(&pair.model);
            }
        } else if !self.doubtful.contains(&pair.model) {
            let found = self.here.attributes(pair.here).map(|found| (found.len, found.links));
            assert_eq!(found, self.model.attributes(pair.model).map(|found| (found.len, found.links)));
        }
    }

    fn close(&mut self) {
        let Some(place) = self.any() else { return };
        let pair = self.open.swap_remove(place);
        let closed = self.here.close(pair.here);
        assert!(closed.is_ok() || self.is_lost(pair, &closed), "{closed:?}");
        self.model.close(pair.model).unwrap();
        if !self.is_used(pair.model) {
            self.unnamed.remove(&pair.model);
        }
    }

    fn unlink(&mut self) {
        let path = self.path();
        let before = self.inode(&path);
        let removed = self.here.unlink(self.root, path.as_bytes());
        if !self.is_refused(&removed) {
            assert_eq!(removed, self.model.unlink(self.model_root, path.as_bytes()), "{path}");
            self.lost_name(before.filter(|_| removed.is_ok()));
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        let (moved, before) = (self.inode(from), self.inode(to));
        let renamed = self.here.rename(self.root, from.as_bytes(), to.as_bytes());
        if !self.is_refused(&renamed) {
            let wanted = self.model.rename(self.model_root, from.as_bytes(), to.as_bytes());
            assert_eq!(renamed, wanted, "{from} to {to}");
            self.lost_name(before.filter(|_| renamed.is_ok() && moved != before));
        }
    }

    /// A name was removed that was this file's.
    fn lost_name(&mut self, file: Option<Inode>) {
        let used = file.filter(|file| self.is_used(*file));
        self.unnamed.extend(used);
    }

    fn change_names(&mut self) {
        let (from, to) = (self.path(), self.path());
        let (directory, other) = (self.directory(), self.directory());
        match self.random.below(8) {
            0..3 => self.unlink(),
            3 => self.rename(&from, &to),
            4 => self.rename(directory, other),
            5 => {
                let linked = self.here.link(self.root, from.as_bytes(), to.as_bytes());
                let wanted = self.model.link(self.model_root, from.as_bytes(), to.as_bytes());
                assert_eq!(linked, wanted, "{from}, {to}");
            }
            6 => {
                let made = self.here.mkdir(self.root, directory.as_bytes(), 0o755);
                assert_eq!(made, self.model.mkdir(self.model_root, directory.as_bytes(), 0o755));
            }
            _ => {
                let found = names(&mut self.here, self.root);
                if !self.is_refused(&found) {
                    assert_eq!(found, names(&mut self.model, self.model_root));
                }
            }
        }
    }

    /// The server ends. Of files that it has not synced something may be lost, and those without names are.
    fn restart(&mut self) {
        self.served.restart(|fs| fs);
        self.doubtful.append(&mut self.unsynced);
        self.doubtful.append(&mut self.unnamed);
    }

    fn step(&mut self) {
        self.here.begin();
        match self.random.below(20) {
            0..6 => self.open(),
            6..9 => self.read(),
            9..12 => self.write(),
            12 => self.truncate(),
            13 | 14 => self.look(),
            15 => self.close(),
            _ => self.change_names(),
        }
    }

    /// Nothing is open in the end, and all that has a name has its bytes.
    fn finish(&mut self) {
        while !self.open.is_empty() {
            self.close();
        }
        self.here.begin();
        assert!(self.served.open_count() < OBJECTS, "{} are open", self.served.open_count());
        for directory in ["", "a/", "b/", "c/"] {
            for number in 0..20 {
                let path = format!("{directory}{number}");
                let is_doubtful = self.inode(&path).is_some_and(|file| self.doubtful.contains(&file));
                let mut found = content(&mut self.here, path.as_bytes());
                if is_doubtful && found == Err(Error::Io) {
                    // It fails once if nobody was told.
                    found = content(&mut self.here, path.as_bytes());
                }
                assert!(found == content(&mut self.model, path.as_bytes()), "{path}");
            }
        }
    }
}

#[test]
fn nothing_is_seen_of_files_that_are_opened_again() {
    let mut refused = 0;
    for seed in 1..=programs() {
        let mut program = Program::new(seed);
        let mut most = 0;
        for _ in 0..600 {
            program.step();
            most = most.max(program.open.iter().map(|pair| pair.model).collect::<BTreeSet<_>>().len());
        }
        assert!(most > OBJECTS * 3 / 2, "{most} files");
        program.finish();
        assert_eq!(program.served.closed_unsynced(), 0);
        refused += program.refused;
    }
    assert!(refused > 0, "there were always enough objects");
}

#[test]
fn nothing_is_lost_with_a_server_that_was_synced() {
    for seed in 1..=programs() {
        let mut program = Program::new(seed);
        for _ in 0..600 {
            program.step();
            if program.random.chance(60) {
                program.restart();
            }
        }
        program.finish();
    }
}
