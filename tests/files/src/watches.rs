//! Events that watches tell: as Linux's inotify does, and enough for an owner who looks only where he is told to.

use crate::as_on_linux::{Folder, Here, Random, Step, ext4, on_linux, programs, step};
use crate::ext4_on_disk;
use rustix::fs::inotify;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use vfs::page::Plain;
use vfs::path::Last;
use vfs::watch::Change;
use vfs::{Changes, Error, FileSystem, How, Inode, Kind, Ram, Volume};

const CREATE: How = How { create: true, exclusive: false, truncate: false };

/// How long to wait for Linux to tell that a file is gone, and how often.
const WAIT: Duration = Duration::from_millis(10);
/// See [`WAIT`].
const WAITS: usize = 1000;

/// A change, and the name with it.
type Told = (Change, String);

/// A watch here and one of Linux.
struct Both {
    number: u64,
    linux: OwnedFd,
}

impl Both {
    /// Watches a path on both sides. None if there is nothing.
    fn new<F: FileSystem>(here: &mut Here<F>, folder: &Path, path: &str, number: u64) -> Option<Both> {
        use inotify::{CreateFlags, WatchFlags as Flags, add_watch, init};
        let linux = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let own = Flags::ATTRIB | Flags::MODIFY | Flags::DELETE_SELF | Flags::MOVE_SELF;
        let wanted = own | Flags::CREATE | Flags::DELETE | Flags::MOVE;
        let there = add_watch(&linux, folder.join(path), wanted);
        let is_here = here.volume.watch(here.root, path.as_bytes(), number);
        assert_eq!(is_here.is_ok(), there.is_ok(), "{path}: {is_here:?}, Linux {there:?}");
        is_here.ok().map(|()| Both { number, linux })
    }

    /// Events that Linux tells. Where a file is gone here, it is gone on Linux only when nobody has it open: a child of another test, which is about to begin
    /// another program, may have.
    fn linux(&self, here: &[Told]) -> Vec<Told> {
        let is_gone = |told: &[Told]| told.last().is_some_and(|told| told.0 == Change::Gone);
        let mut told = self.linux_now();
        for _ in 0..WAITS {
            if is_gone(&told) || !is_gone(here) {
                break;
            }
            std::thread::sleep(WAIT);
            told.extend(self.linux_now());
        }
        // The last name goes, and then the file: here that is one.
        if let [.., (Change::Attributes, _), (Change::Gone, _)] = told[..] {
            told.remove(told.len() - 2);
        }
        told
    }

    /// Events that Linux has by now.
    fn linux_now(&self) -> Vec<Told> {
        use inotify::{ReadFlags as Flags, Reader};
        let mut bytes = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.linux, &mut bytes);
        let mut told: Vec<Told> = Vec::new();
        while let Ok(event) = reader.next() {
            let flags = event.events();
            let kinds = [
                (Flags::CREATE, Change::Made),
                (Flags::DELETE, Change::Removed),
                (Flags::MOVED_FROM, Change::MovedFrom),
                (Flags::MOVED_TO, Change::MovedTo),
                (Flags::MODIFY, Change::Contents),
                (Flags::ATTRIB, Change::Attributes),
                (Flags::MOVE_SELF, Change::Moved),
                (Flags::DELETE_SELF, Change::Gone),
            ];
            let change = kinds.into_iter().find(|&(flag, _)| flags.contains(flag));
            let name = event.file_name().map(|name| name.to_str().unwrap().into()).unwrap_or_default();
            told.extend(change.map(|(_, change)| (change, name)));
        }
        told
    }

    /// Events that are told here.
    fn here<F: FileSystem>(&self, volume: &mut Volume<F>) -> Vec<Told> {
        let events = volume.events(self.number, usize::MAX).unwrap();
        let pairs: BTreeSet<u32> = events.iter().map(|event| event.pair).filter(|&pair| pair != 0).collect();
        assert!(pairs.len() <= 1, "one step moves one name: {events:?}");
        events.into_iter().map(|event| (event.change, String::from_utf8(event.name).unwrap())).collect()
    }
}

/// The files that have several names, by their numbers.
fn linked(folder: &Path, found: &mut BTreeMap<u64, BTreeSet<String>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let there = entry.metadata().unwrap();
        if there.is_dir() {
            linked(&entry.path(), found);
        } else if there.nlink() > 1 {
            found.entry(there.ino()).or_default().insert(entry.file_name().into_string().unwrap());
        }
    }
}

/// Linux tells a directory of what is done by the name in there. Here it hears of what is done by another name, too.
fn alike(here: &[Told], linux: &[Told], folder: &Path) -> bool {
    if here == linux {
        return true;
    }
    let mut names = BTreeMap::new();
    linked(folder, &mut names);
    let may_be_more = |told: &&Told| {
        let is_named = names.values().any(|names| names.contains(&told.1));
        !(matches!(told.0, Change::Contents | Change::Attributes) && is_named)
    };
    let [here, linux] = [here, linux].map(|told| told.iter().filter(may_be_more).collect::<Vec<_>>());
    here == linux
}

/// Runs programs here and on Linux, with watches on both sides.
fn compare<F: FileSystem>(name: &str, programs: u64, make: impl Fn() -> F) {
    let (mut told, mut equal) = (0, 0);
    for seed in 1..=programs {
        let mut random = Random(seed ^ 0x1234_5678);
        let has_links = random.chance(2);
        let folder = Folder::new(&format!("watches-{name}-{seed}"));
        let mut volume = Volume::new(make());
        let root = volume.root();
        // ext4 begins with a directory of its own.
        let _ = volume.rmdir(root, b"lost+found");
        let mut here = Here { volume, root };
        let mut all: Vec<Both> = Vec::new();
        all.extend(Both::new(&mut here, &folder.0, ".", 0));
        for number in 1..300 {
            let step = step(&mut random, has_links);
            if all.len() < 5
                && let Step::Stat { at, follow: true } = &step
            {
                all.extend(Both::new(&mut here, &folder.0, at, number));
            }
            // Pages that are mapped tell nothing.
            if matches!(step, Step::Poke { .. }) {
                continue;
            }
            // Each side may refuse in an order of its own: nothing has changed then.
            assert_eq!(here.run(&step).is_ok(), on_linux(&folder.0, &step).is_ok(), "seed {seed}: {step:?}");
            all.retain(|watch| {
                let ours = watch.here(&mut here.volume);
                let linux = watch.linux(&ours);
                let fits = alike(&ours, &linux, &folder.0);
                assert!(fits, "seed {seed}, step {number}: {step:?}: {ours:?}, Linux {linux:?}");
                told += ours.len();
                equal += usize::from(ours == linux && !ours.is_empty());
                let is_over = ours.last().is_some_and(|told| told.0 == Change::Gone);
                if is_over {
                    assert_eq!(here.volume.events(watch.number, 1), Err(Error::NotFound));
                    here.volume.unwatch(watch.number);
                }
                !is_over
            });
        }
    }
    assert!(told as u64 > programs * 20 && equal * 10 > told * 5, "{told} are told, {equal} times alike");
}

#[test]
fn ram_and_inotify_agree() {
    compare("ram", programs(), || Ram::<Plain>::new(16 << 20, || 0));
}

#[test]
fn ext4_and_inotify_agree() {
    compare("ext4", programs() / 5, ext4);
}

/// State of an entry that its directory's watches tell of, as it was when it was looked at last.
type State = (Inode, u64, u16);

/// An owner of a watch, who knows what there was when he began, and looks only where he is told to.
struct Owner {
    number: u64,
    inode: Inode,
    /// Of a directory: names, from what he was told alone, but after a loss.
    names: BTreeSet<Vec<u8>>,
    /// Of entries, and of what is watched itself, which has no name.
    states: BTreeMap<Vec<u8>, State>,
    is_over: bool,
}

/// State of an inode. Of a directory the contents do not count: its entries are told one by one.
fn state<F: FileSystem>(volume: &mut Volume<F>, inode: Inode) -> Option<State> {
    let found = volume.attributes(inode).ok().filter(|found| found.links > 0)?;
    let modified = if found.kind == Kind::Directory { 0 } else { found.modified };
    Some((inode, modified, found.permissions))
}

fn state_at<F: FileSystem>(volume: &mut Volume<F>, directory: Inode, name: &[u8]) -> Option<State> {
    if name.is_empty() {
        return state(volume, directory);
    }
    let found = volume.attributes_at(directory, name, Last::Name).ok()?;
    state(volume, found.inode)
}

fn listed<F: FileSystem>(volume: &mut Volume<F>, directory: Inode) -> BTreeSet<Vec<u8>> {
    let (mut names, mut cursor) = (BTreeSet::new(), 0);
    if volume.attributes(directory).is_ok_and(|found| found.kind != Kind::Directory) {
        return names;
    }
    loop {
        let entries = volume.readdir(directory, cursor, 100).unwrap();
        let Some(last) = entries.last() else { return names };
        cursor = last.next;
        names.extend(entries.into_iter().map(|entry| entry.name));
    }
}

impl Owner {
    fn new<F: FileSystem>(volume: &mut Volume<F>, root: Inode, path: &str, number: u64) -> Option<Owner> {
        volume.watch(root, path.as_bytes(), number).ok()?;
        let inode = volume.attributes_at(root, path.as_bytes(), Last::Follow).unwrap().inode;
        let mut owner =
            Owner { number, inode, names: BTreeSet::new(), states: BTreeMap::new(), is_over: false };
        owner.look(volume);
        Some(owner)
    }

    fn look<F: FileSystem>(&mut self, volume: &mut Volume<F>) {
        if state(volume, self.inode).is_none() {
            return;
        }
        self.names = listed(volume, self.inode);
        let all = self.names.iter().cloned().chain([Vec::new()]);
        let inode = self.inode;
        self.states = all.filter_map(|name| Some((name.clone(), state_at(volume, inode, &name)?))).collect();
    }

    /// Reads all events. Says how often something was lost.
    fn read<F: FileSystem>(&mut self, volume: &mut Volume<F>) -> usize {
        let mut lost = 0;
        while let Ok(events) = volume.events(self.number, 3) {
            if events.is_empty() {
                break;
            }
            for event in events {
                let name = event.name;
                match event.change {
                    Change::Lost => {
                        lost += 1;
                        self.look(volume);
                        continue;
                    }
                    Change::Gone => {
                        self.is_over = true;
                        continue;
                    }
                    Change::Made => assert!(self.names.insert(name.clone()) || lost > 0, "it was there"),
                    Change::MovedTo => drop(self.names.insert(name.clone())),
                    Change::Removed | Change::MovedFrom => {
                        assert!(self.names.remove(&name) || lost > 0, "it was not there");
                        self.states.remove(&name);
                        continue;
                    }
                    Change::Contents | Change::Attributes | Change::Moved => {}
                }
                if !self.is_over
                    && let Some(state) = state_at(volume, self.inode, &name)
                {
                    self.states.insert(name, state);
                }
            }
        }
        lost
    }

    /// He knows all that there is.
    fn check<F: FileSystem>(&self, volume: &mut Volume<F>, numbers_come_again: bool) {
        let own = state(volume, self.inode);
        if self.is_over {
            // On a disk the number may be another's by now.
            assert!(own.is_none() || numbers_come_again);
            return;
        }
        assert!(own.is_some());
        assert_eq!(self.names, listed(volume, self.inode));
        assert_eq!(self.states.get(&[][..]), own.as_ref());
        for name in &self.names {
            assert_eq!(self.states.get(name).copied(), state_at(volume, self.inode, name), "{name:?}");
        }
    }
}

fn path(random: &mut Random) -> String {
    let name = |random: &mut Random| ["a", "b", "c", "d"][random.below(4) as usize];
    let inner = name(random);
    if random.chance(2) { format!("{}/{inner}", ["x", "y"][random.below(2) as usize]) } else { inner.into() }
}

/// Two directories, and in some programs more names than are known.
fn prepare<F: FileSystem>(volume: &mut Volume<F>, root: Inode, seed: u64) -> vfs::Result<()> {
    volume.mkdir(root, b"x", 0o755)?;
    volume.mkdir(root, b"y", 0o755)?;
    for number in 0..[0, 0, 400, 1200][seed as usize % 4] {
        let [name, other] = [["x", "y"], ["y", "x"]].map(|there| format!("{}/{number}", there[number % 2]));
        let file = volume.open(root, name.as_bytes(), CREATE, 0o644)?;
        volume.close(file)?;
        if seed % 4 == 2 {
            volume.link(root, name.as_bytes(), other.as_bytes())?;
        }
    }
    Ok(())
}

/// Does something at random that may change something. Errors are none of anybody's business here.
fn act<F: FileSystem>(volume: &mut Volume<F>, root: Inode, random: &mut Random, open: &mut Vec<Inode>) {
    let (at, other) = (path(random), path(random));
    let far = format!("x/{}", random.below(600) * 2);
    let at = if random.chance(8) { far.as_bytes() } else { at.as_bytes() };
    let other = other.as_bytes();
    let one = (!open.is_empty()).then(|| random.below(open.len() as u64) as usize);
    // A caller writes to files alone.
    let file = one.filter(|&one| volume.attributes(open[one]).is_ok_and(|found| found.kind == Kind::File));
    match (random.below(15), one) {
        (0..3, _) if open.len() < 8 => {
            open.extend(volume.open(root, at, How { truncate: random.chance(4), ..CREATE }, 0o644));
        }
        (0..3, Some(one)) => volume.close(open.swap_remove(one)).unwrap(),
        (3, _) if open.len() < 8 => open.extend(volume.enter(root, at)),
        (4..7, Some(_)) => {
            file.map(|one| volume.write(open[one], random.below(9000), b"text"));
        }
        (7, Some(_)) => {
            file.map(|one| volume.truncate(open[one], random.below(9000)));
        }
        (8, Some(one)) => {
            let permissions = Some(random.below(0o1000) as u16);
            volume.change(open[one], &Changes { permissions, ..Changes::default() }).unwrap();
        }
        (9, _) => drop(volume.link(root, at, other)),
        (10 | 11, _) => drop(volume.rename(root, at, other)),
        (12, _) => drop(volume.unlink(root, at)),
        (13, _) => drop(volume.mkdir(root, at, 0o755)),
        _ => drop(volume.rmdir(root, at)),
    }
}

/// Random programs with files that stay open, and owners who read now and then, some of them hardly ever.
fn owners_know_all<F: FileSystem>(programs: u64, numbers_come_again: bool, make: impl Fn() -> F) {
    let (mut lost, mut reads) = (0, 0);
    for seed in 1..=programs {
        let mut random = Random(seed);
        let mut volume = Volume::new(make());
        let root = volume.root();
        prepare(&mut volume, root, seed).unwrap();
        let (mut open, mut owners): (Vec<Inode>, Vec<Owner>) = (Vec::new(), Vec::new());
        for number in 0..1500 {
            if !random.chance(8) {
                act(&mut volume, root, &mut random, &mut open);
            } else if owners.len() < 6 {
                let at = [".", "x", "y", "a", "x/b", "y/c"][random.below(6) as usize];
                owners.extend(Owner::new(&mut volume, root, at, number));
            } else {
                let index = random.below(6) as usize;
                // The first one reads hardly ever.
                if index > 0 || random.chance(8) {
                    lost += owners[index].read(&mut volume);
                    owners[index].check(&mut volume, numbers_come_again);
                    reads += 1;
                    if owners[index].is_over || random.chance(20) {
                        volume.unwatch(owners.swap_remove(index).number);
                    }
                }
            }
        }
        for mut owner in owners {
            lost += owner.read(&mut volume);
            owner.check(&mut volume, numbers_come_again);
            volume.unwatch(owner.number);
        }
        open.into_iter().for_each(|inode| volume.close(inode).unwrap());
        assert_eq!(volume.open_count(), 1);
    }
    assert!(lost > 0 && reads as u64 > programs * 10, "{lost} losses in {reads} reads");
}

thread_local! {
    /// It goes on a second each time somebody looks, so that each change has a time of its own.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

fn tick() -> u64 {
    NOW.set(NOW.get() + 1_000_000_000);
    NOW.get()
}

#[test]
fn owners_know_all_in_memory() {
    owners_know_all(programs() / 4, false, || Ram::<Plain>::new(16 << 20, tick));
}

#[test]
fn owners_know_all_on_a_disk() {
    owners_know_all(programs() / 20, true, || {
        let disk = ext4_on_disk::Memory::new(64 << 20);
        ext4_on_disk::format(disk.clone(), || 0).unwrap();
        ext4_on_disk::mount(disk, tick).unwrap()
    });
}

/// The end of a directory that is watched, and a rename over a file that is.
#[test]
fn both_sides_of_a_rename_are_told() {
    let mut volume = Volume::new(Ram::<Plain>::new(1 << 20, || 0));
    let root = volume.root();
    for name in ["from", "to"] {
        volume.mkdir(root, name.as_bytes(), 0o755).unwrap();
        let file = volume.open(root, format!("{name}/file").as_bytes(), CREATE, 0o644).unwrap();
        volume.close(file).unwrap();
    }
    for (number, path) in ["from", "to", "from/file", "to/file"].into_iter().enumerate() {
        volume.watch(root, path.as_bytes(), number as u64).unwrap();
    }
    assert_eq!(volume.watch(root, b"to", 1), Err(Error::Invalid), "the number is taken");
    assert_eq!(volume.watch(root, b"nowhere", 9), Err(Error::NotFound));
    volume.rename(root, b"from/file", b"to/file").unwrap();
    let told = [0, 1, 2, 3].map(|number| volume.events(number, 9).unwrap());
    let seen = told.each_ref().map(|told| told.iter().map(|event| event.change).collect::<Vec<_>>());
    assert_eq!(seen, [[Change::MovedFrom], [Change::MovedTo], [Change::Moved], [Change::Gone]]);
    assert!(told[0][0].pair == told[1][0].pair && told[0][0].pair != 0);
    volume.rmdir(root, b"from").unwrap();
    assert_eq!(volume.events(0, 9).unwrap()[0].change, Change::Gone);
    // One that is not there any more is not watched, whoever has it open.
    let inner = volume.enter(root, b"to").unwrap();
    volume.unlink(root, b"to/file").unwrap();
    volume.rmdir(root, b"to").unwrap();
    assert_eq!(volume.watch(inner, b"", 9), Err(Error::NotFound));
}
