//! Watches: each keeps what has happened to one file or directory until its owner takes it.
//!
//! **Nobody waits for an owner.** A watch has [`ROOM`] for its events. When more happens than it keeps, it forgets them all and says [`Change::Lost`]
//! instead: its owner looks again. Until that was taken it keeps nothing more, so a watch that nobody reads costs the others a comparison.
//!
//! Changes of contents and attributes come by the inode, and a directory's watch tells the name. So the names in watched directories are known of all
//! inodes that are open or have several names; others cannot change. The surprise: a directory may have more such names than [`ROOM`] is for, or more
//! entries than are looked at. Then it is *partial*, and loses events rather than to miss one.

use crate::{Inode, NAME_MAX};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::mem::take;

/// Bytes of a watch's events, and of the names that are known in a watched directory, each with [`OVERHEAD`].
pub const ROOM: usize = 4096;

/// Bytes that an event or a name counts beside those that it has.
pub const OVERHEAD: usize = 48;

/// Events with which a new one is compared, the last ones, so that it is not kept twice. It bounds what an event costs whoever causes it.
const COMPARED: usize = 8;

const _: () = assert!(ROOM >= OVERHEAD + NAME_MAX);

/// Kinds of changes. Those of entries come to the watches of their directory, with the name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Change {
    /// An entry is there.
    Made,
    /// An entry is gone.
    Removed,
    /// An entry has another name, or another directory. What has the old name in a pair with what has the [new one](Change::MovedTo).
    MovedFrom,
    /// An entry has come by moving, in the place of what had the name.
    MovedTo,
    /// Bytes were written, or the end was moved: of the file itself, or of an entry, by whatever name.
    Contents,
    /// Permissions, owner, times, or how many names there are: of what is watched, or, but for the last, of an entry.
    Attributes,
    /// The watched inode has another name, or another directory.
    Moved,
    /// The watched inode has no name any more, and the watch is over.
    Gone,
    /// More has happened than was kept.
    Lost,
}

impl Change {
    /// Whether a second one says nothing that the first does not: the owner of a watch looks after he has taken it, so he sees both changes.
    const fn may_be_covered(self) -> bool {
        matches!(self, Change::Contents | Change::Attributes)
    }
}

/// Something that has happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Its kind.
    pub change: Change,
    /// Number that the two events of a move have, and no others that are near. Else 0.
    pub pair: u32,
    /// Name of the entry; empty if it was what is watched itself.
    pub name: Vec<u8>,
}

impl Event {
    fn itself(change: Change) -> Event {
        Event { change, pair: 0, name: Vec::new() }
    }

    fn cost(&self) -> usize {
        OVERHEAD + self.name.len()
    }
}

/// Whether what is watched is still there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    There,
    Gone,
    /// Its owner knows.
    Told,
}

/// Events of one watch.
#[derive(Debug)]
struct Watch {
    inode: Inode,
    events: VecDeque<Event>,
    /// Bytes that the events cost.
    bytes: usize,
    is_lost: bool,
    end: End,
    /// Somebody sleeps until there is an event.
    is_waited_for: bool,
}

impl Watch {
    const fn new(inode: Inode) -> Watch {
        let events = VecDeque::new();
        Watch { inode, events, bytes: 0, is_lost: false, end: End::There, is_waited_for: false }
    }

    fn put(&mut self, change: Change, pair: u32, name: &[u8]) {
        if self.is_lost || change.may_be_covered() && self.is_covered(change, name) {
            return;
        }
        let cost = OVERHEAD + name.len();
        if self.bytes + cost > ROOM {
            self.lose();
        } else {
            self.bytes += cost;
            self.events.push_back(Event { change, pair, name: name.to_vec() });
        }
    }

    /// Whether the same has happened, and since then nothing with names.
    fn is_covered(&self, change: Change, name: &[u8]) -> bool {
        let last = self.events.iter().rev().take(COMPARED).take_while(|old| old.change.may_be_covered());
        last.into_iter().any(|old| old.change == change && old.name == name)
    }

    fn lose(&mut self) {
        self.events = VecDeque::new();
        self.bytes = 0;
        self.is_lost = true;
    }

    fn take(&mut self, count_max: usize) -> Vec<Event> {
        let mut taken = Vec::new();
        if count_max > 0 && take(&mut self.is_lost) {
            taken.push(Event::itself(Change::Lost));
        }
        while taken.len() < count_max
            && let Some(event) = self.events.pop_front()
        {
            self.bytes -= event.cost();
            taken.push(event);
        }
        if taken.len() < count_max && self.end == End::Gone {
            self.end = End::Told;
            taken.push(Event::itself(Change::Gone));
        }
        taken
    }

    fn is_ready(&self) -> bool {
        self.is_lost || !self.events.is_empty() || self.end != End::There
    }
}

/// A file or directory that has watches.
#[derive(Debug, Default)]
struct Watched {
    watches: Vec<u64>,
    /// Of a directory: names that are known, by the inodes that have them.
    names: BTreeMap<Inode, Vec<Vec<u8>>>,
    /// Bytes that the names cost.
    bytes: usize,
}

/// All watches of a file system, by numbers that whoever makes them chooses.
#[derive(Debug)]
pub struct Watches {
    all: BTreeMap<u64, Watch>,
    watched: BTreeMap<Inode, Watched>,
    /// Inodes, and the watched directories in which they have names that are known.
    places: BTreeSet<(Inode, Inode)>,
    /// Watched directories that are partial.
    partial: BTreeSet<Inode>,
    /// Bytes that the names of all directories cost, and how many they may.
    names_bytes: usize,
    names_max: usize,
    pair: u32,
    /// Watches that have something for one who waits, since somebody has asked last.
    woken: Vec<u64>,
}

impl Default for Watches {
    fn default() -> Watches {
        Watches::new()
    }
}

impl Watches {
    /// None.
    pub const fn new() -> Watches {
        Watches {
            all: BTreeMap::new(),
            watched: BTreeMap::new(),
            places: BTreeSet::new(),
            partial: BTreeSet::new(),
            names_bytes: 0,
            names_max: usize::MAX,
            pair: 0,
            woken: Vec::new(),
        }
    }

    /// Lets the names that are known of all directories cost so many bytes, each with [`OVERHEAD`]. A directory for whose names that is not enough is partial.
    pub fn limit_names(&mut self, bytes: usize) {
        self.names_max = bytes;
    }

    /// Whether nothing is watched.
    pub fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// Whether an inode is watched.
    pub fn has(&self, inode: Inode) -> bool {
        self.watched.contains_key(&inode)
    }

    /// Whether a number is that of a watch.
    pub fn is_known(&self, number: u64) -> bool {
        self.all.contains_key(&number)
    }

    /// Another watch, with a number that none has.
    pub fn add(&mut self, number: u64, inode: Inode) {
        self.all.insert(number, Watch::new(inode));
        self.watched.entry(inode).or_default().watches.push(number);
    }

    /// A watch is not wanted any more.
    pub fn remove(&mut self, number: u64) {
        let Some(watch) = self.all.remove(&number) else { return };
        if watch.is_waited_for {
            self.woken.push(number);
        }
        let Some(watched) = self.watched.get_mut(&watch.inode) else { return };
        watched.watches.retain(|&other| other != number);
        if watched.watches.is_empty() {
            self.unwatch(watch.inode);
        }
    }

    /// Nothing more comes to what watches an inode.
    fn unwatch(&mut self, inode: Inode) -> Vec<u64> {
        let Some(watched) = self.watched.remove(&inode) else { return Vec::new() };
        for &file in watched.names.keys() {
            self.places.remove(&(file, inode));
        }
        self.names_bytes -= watched.bytes;
        self.partial.remove(&inode);
        watched.watches
    }

    /// An inode has this name, and may change: it is open, or has others.
    pub fn know(&mut self, file: Inode, directory: Inode, name: &[u8]) {
        let Some(watched) = self.watched.get_mut(&directory) else { return };
        if watched.names.get(&file).is_some_and(|names| names.iter().any(|known| known == name)) {
            return;
        }
        let cost = OVERHEAD + name.len();
        if watched.bytes + cost > ROOM || self.names_bytes + cost > self.names_max {
            self.set_partial(directory);
            return;
        }
        watched.bytes += cost;
        self.names_bytes += cost;
        watched.names.entry(file).or_default().push(name.to_vec());
        self.places.insert((file, directory));
    }

    /// Not all names in a directory are known that would have to be.
    pub fn set_partial(&mut self, directory: Inode) {
        if self.has(directory) {
            self.partial.insert(directory);
        }
    }

    /// An inode has a name no more.
    fn unname(&mut self, file: Inode, directory: Inode, name: &[u8]) {
        let Some(watched) = self.watched.get_mut(&directory) else { return };
        let Some(names) = watched.names.get_mut(&file) else { return };
        let before = names.len();
        names.retain(|known| known != name);
        let less = (before - names.len()) * (OVERHEAD + name.len());
        watched.bytes -= less;
        self.names_bytes -= less;
        if names.is_empty() {
            watched.names.remove(&file);
            self.places.remove(&(file, directory));
        }
    }

    /// An inode is not open, and has no second name: it does not change.
    pub fn forget(&mut self, file: Inode) {
        for directory in self.directories(file) {
            self.places.remove(&(file, directory));
            let Some(watched) = self.watched.get_mut(&directory) else { continue };
            let names = watched.names.remove(&file).unwrap_or_default();
            let less = names.iter().map(|name| OVERHEAD + name.len()).sum::<usize>();
            watched.bytes -= less;
            self.names_bytes -= less;
        }
    }

    /// Watched directories in which an inode has names that are known.
    fn directories(&self, file: Inode) -> Vec<Inode> {
        let all = (file, Inode(0))..=(file, Inode(u64::MAX));
        self.places.range(all).map(|&(_, directory)| directory).collect()
    }

    /// How many names of an inode are known.
    pub fn count_names(&self, file: Inode) -> usize {
        let names = |directory| self.watched.get(&directory).and_then(|watched| watched.names.get(&file));
        self.directories(file).into_iter().filter_map(names).map(Vec::len).sum()
    }

    /// Whether there is a directory that is partial.
    pub fn is_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    /// All look again that watch directories which are partial, or, if one is given, that one alone.
    pub fn lose_partial(&mut self, only: Option<Inode>) {
        for directory in self.partial.clone() {
            if only.is_none_or(|only| only == directory) {
                self.lose(directory);
            }
        }
    }

    /// All that watch an inode look again.
    pub fn lose(&mut self, inode: Inode) {
        self.each(inode, Watch::lose);
    }

    fn each(&mut self, inode: Inode, mut run: impl FnMut(&mut Watch)) {
        let Some(watched) = self.watched.get(&inode) else { return };
        for number in &watched.watches {
            if let Some(watch) = self.all.get_mut(number) {
                run(watch);
                if take(&mut watch.is_waited_for) {
                    self.woken.push(*number);
                }
            }
        }
    }

    fn tell(&mut self, inode: Inode, change: Change, pair: u32, name: &[u8]) {
        self.each(inode, |watch| watch.put(change, pair, name));
    }

    /// Something has happened to an inode itself.
    pub fn tell_itself(&mut self, inode: Inode, change: Change) {
        self.tell(inode, change, 0, &[]);
    }

    /// Contents or attributes of an inode have changed.
    pub fn changed(&mut self, inode: Inode, change: Change) {
        self.tell_itself(inode, change);
        for directory in self.directories(inode) {
            let names = self.watched.get(&directory).and_then(|watched| watched.names.get(&inode));
            for name in names.cloned().unwrap_or_default() {
                self.tell(directory, change, 0, &name);
            }
        }
    }

    /// There is another name.
    pub fn made(&mut self, directory: Inode, name: &[u8]) {
        self.tell(directory, Change::Made, 0, name);
    }

    /// An inode has a name no more.
    pub fn removed(&mut self, inode: Inode, directory: Inode, name: &[u8]) {
        self.unname(inode, directory, name);
        self.tell(directory, Change::Removed, 0, name);
    }

    /// An inode has another name in place of the one that it had; `replaced` has lost the new one.
    pub fn moved(&mut self, inode: Inode, from: (Inode, &[u8]), to: (Inode, &[u8]), replaced: Option<Inode>) {
        // It is never 0.
        self.pair = self.pair % u32::MAX + 1;
        if let Some(replaced) = replaced {
            self.unname(replaced, to.0, to.1);
        }
        self.unname(inode, from.0, from.1);
        self.tell(from.0, Change::MovedFrom, self.pair, from.1);
        self.tell(to.0, Change::MovedTo, self.pair, to.1);
        self.tell_itself(inode, Change::Moved);
    }

    /// An inode has no name any more. Its watches are over.
    pub fn gone(&mut self, inode: Inode) {
        for number in self.unwatch(inode) {
            if let Some(watch) = self.all.get_mut(&number) {
                watch.end = End::Gone;
                if take(&mut watch.is_waited_for) {
                    self.woken.push(number);
                }
            }
        }
    }

    /// Takes events of a watch: none if nothing has happened since. `None` if the watch is over, and its owner knows.
    pub fn take(&mut self, number: u64, count_max: usize) -> Option<Vec<Event>> {
        let watch = self.all.get_mut(&number)?;
        if watch.end == End::Told { None } else { Some(watch.take(count_max)) }
    }

    /// Whether there is something to take, or never will be. If not, the next event [wakes](Watches::has_woken) whoever waits.
    pub fn wait(&mut self, number: u64) -> bool {
        let Some(watch) = self.all.get_mut(&number) else { return true };
        watch.is_waited_for = !watch.is_ready();
        !watch.is_waited_for
    }

    /// Whether there is something for one who waits, since somebody has asked last.
    #[inline]
    pub fn has_woken(&mut self) -> bool {
        let has_woken = !self.woken.is_empty();
        if has_woken {
            self.woken.clear();
        }
        has_woken
    }

    /// Watches for whose owners there is something who [wait](Watches::wait), each once, since this was asked last.
    pub fn woken(&mut self) -> Vec<u64> {
        take(&mut self.woken)
    }

    /// Watches that hear of changes of an inode: of directories in which it has names that are known, with the names, and then its own, without one.
    pub fn of(&self, inode: Inode) -> Vec<(u64, Vec<u8>)> {
        let mut found = Vec::new();
        for directory in self.directories(inode) {
            let Some(watched) = self.watched.get(&directory) else { continue };
            for name in watched.names.get(&inode).into_iter().flatten() {
                found.extend(watched.watches.iter().map(|number| (*number, name.clone())));
            }
        }
        let own = self.watched.get(&inode).into_iter().flat_map(|watched| &watched.watches);
        found.extend(own.map(|number| (*number, Vec::new())));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Change::*;
    use alloc::vec;

    const HERE: Inode = Inode(1);

    fn watches() -> Watches {
        let mut watches = Watches::new();
        watches.add(7, HERE);
        watches
    }

    fn taken(watches: &mut Watches) -> Vec<(Change, Vec<u8>)> {
        let events = watches.take(7, usize::MAX).unwrap();
        events.into_iter().map(|event| (event.change, event.name)).collect()
    }

    #[test]
    fn what_is_known_already_comes_once() {
        let mut watches = watches();
        watches.know(Inode(2), HERE, b"a");
        watches.know(Inode(3), HERE, b"b");
        for inode in [2, 3, 2, 3] {
            watches.changed(Inode(inode), Contents);
        }
        watches.changed(Inode(2), Attributes);
        watches.made(HERE, b"c");
        watches.changed(Inode(2), Contents);
        let name = |name: &[u8]| name.to_vec();
        let expected = [
            (Contents, name(b"a")),
            (Contents, name(b"b")),
            (Attributes, name(b"a")),
            (Made, name(b"c")),
            (Contents, name(b"a")),
        ];
        assert_eq!(taken(&mut watches), expected);
        assert_eq!(taken(&mut watches), []);
        // An event that was taken covers none.
        watches.changed(Inode(2), Contents);
        assert_eq!(taken(&mut watches), [(Contents, name(b"a"))]);
    }

    /// Names of many directories cost no more than they may: the others lose events rather than to miss one.
    #[test]
    fn names_of_all_directories_have_a_limit() {
        let mut watches = Watches::new();
        watches.limit_names(50 * (OVERHEAD + 1));
        let directories = 100..200;
        for directory in directories.clone() {
            watches.add(directory, Inode(directory));
            watches.know(Inode(1), Inode(directory), b"a");
        }
        assert_eq!(watches.count_names(Inode(1)), 50);
        watches.changed(Inode(1), Contents);
        watches.lose_partial(None);
        for directory in directories.clone() {
            let change = if directory < 150 { Contents } else { Lost };
            assert_eq!(watches.take(directory, 9).unwrap()[0].change, change);
        }
        watches.removed(Inode(1), Inode(100), b"a");
        watches.remove(101);
        watches.gone(Inode(102));
        (2..6).for_each(|file| watches.know(Inode(file), Inode(104), b"c"));
        assert_eq!((2..6).map(|file| watches.count_names(Inode(file))).sum::<usize>(), 3);
        directories.for_each(|directory| watches.remove(directory));
        assert_eq!(watches.names_bytes, 0);
    }

    #[test]
    fn who_reads_nothing_has_to_look_again() {
        let mut watches = watches();
        for number in 0..10_000u32 {
            watches.made(HERE, &number.to_be_bytes());
            assert!(watches.all[&7].bytes <= ROOM && watches.all[&7].events.len() <= ROOM / OVERHEAD);
        }
        assert_eq!(taken(&mut watches), [(Lost, vec![])]);
        watches.made(HERE, b"a");
        assert_eq!(taken(&mut watches), [(Made, b"a".to_vec())]);
        // The end is told all the same.
        (0..10_000u32).for_each(|number| watches.made(HERE, &number.to_be_bytes()));
        watches.gone(HERE);
        assert_eq!(taken(&mut watches), [(Lost, vec![]), (Gone, vec![])]);
        assert_eq!(watches.take(7, 1), None);
        assert!(watches.is_empty() && watches.is_known(7));
        watches.remove(7);
        assert!(!watches.is_known(7));
    }

    #[test]
    fn few_are_taken_at_a_time() {
        let mut watches = watches();
        (0..5u8).for_each(|number| watches.made(HERE, &[number]));
        watches.gone(HERE);
        let mut names = Vec::new();
        while let Some(events) = watches.take(7, 2) {
            assert!(!events.is_empty() && events.len() <= 2);
            names.extend(events.into_iter().map(|event| event.name));
        }
        assert_eq!(names, [vec![0], vec![1], vec![2], vec![3], vec![4], vec![]]);
    }

    #[test]
    fn who_waits_is_woken_once() {
        let mut watches = watches();
        watches.made(HERE, b"a");
        assert!(!watches.has_woken(), "nobody waits");
        assert!(watches.wait(7), "there is something");
        taken(&mut watches);
        assert!(!watches.wait(7) && !watches.has_woken());
        watches.made(Inode(2), b"a");
        assert!(!watches.has_woken(), "that is elsewhere");
        watches.made(HERE, b"b");
        watches.made(HERE, b"c");
        assert!(watches.has_woken() && !watches.has_woken() && watches.wait(7));
        taken(&mut watches);
        for end in [Watches::gone as fn(&mut Watches, Inode), |watches, _| watches.remove(7)] {
            let mut watches = self::watches();
            assert!(!watches.wait(7));
            end(&mut watches, HERE);
            assert!(watches.has_woken() && watches.wait(7));
        }
    }

    #[test]
    fn watches_of_an_inode_are_found() {
        let mut watches = watches();
        watches.add(8, Inode(2));
        watches.know(Inode(2), HERE, b"a");
        watches.know(Inode(2), HERE, b"b");
        let expected = [(7, b"a".to_vec()), (7, b"b".to_vec()), (8, vec![])];
        assert_eq!(watches.of(Inode(2)), expected);
        assert_eq!(watches.of(HERE), [(7, vec![])]);
        assert!(!watches.wait(7) && !watches.wait(8));
        watches.changed(Inode(2), Attributes);
        watches.changed(Inode(2), Contents);
        assert_eq!((watches.woken(), watches.woken()), (vec![8, 7], vec![]));
    }

    #[test]
    fn names_are_counted() {
        let mut watches = watches();
        let name = [b'x'; NAME_MAX];
        for inode in 10..100 {
            watches.know(Inode(inode), HERE, &name[..inode as usize]);
            watches.know(Inode(inode), HERE, &name[..inode as usize]);
        }
        assert!(watches.watched[&HERE].bytes <= ROOM);
        let unsure: Vec<u64> = (10..100).filter(|&inode| watches.count_names(Inode(inode)) == 0).collect();
        assert!(watches.is_partial() && !unsure.is_empty() && unsure.len() < 60, "{unsure:?}");
        for inode in (10..100).filter(|inode| !unsure.contains(inode)) {
            let to = (Inode(2), &b"elsewhere"[..]);
            match inode % 3 {
                0 => watches.forget(Inode(inode)),
                1 => watches.removed(Inode(inode), HERE, &name[..inode as usize]),
                _ => watches.moved(Inode(inode), (HERE, &name[..inode as usize]), to, None),
            }
        }
        assert_eq!((watches.watched[&HERE].bytes, watches.places.len()), (0, 0));
        watches.remove(7);
        assert!(!watches.is_partial() && watches.is_empty());
    }
}
