//! Two file systems as one: an upper one that is written to, over a lower one that stays as it is.
//!
//! A name is the upper one's if that has it, and else the lower one's. A directory of both has the names of both. What is to be changed in the lower one is
//! copied up before, with the directories above it. A name of the lower one that was removed has a *cover* in the upper one: a symbolic link with a target that
//! nobody else may use. So each name of the upper one is one thing at any time, and an operation is a single rename there, or a row of operations of which
//! each, if nothing follows, leaves what a program sees as it was.
//!
//! The upper one's root has a directory `.merge` for that: files that are being copied, covers that are to be put somewhere (*owed* ones, whose targets say where), and
//! files of the lower one that have several names there, since all names must lead to one copy. Other directories have a symbolic link `.merge` if they do not lie over
//! the directory of that name in the lower one: over none, or over another one, because they were moved. Nobody sees these names.
//!
//! Numbers of inodes: the lower one's are odd here, those of the upper one even. A copy keeps the number of its original as long as somebody has it open.

use crate::path::{self, Last};
use crate::{Attributes, Changes, Entry, Error, FileSystem, Inode, Kind, Name, New, Places, Result, Space};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// The name that nobody else may have, as seen from outside.
const OWN: &[u8] = b".merge";

/// The beginning of targets that nobody else may use.
const OWN_TARGET: &[u8] = b".merge/";

/// Target of a cover. In one that is owed a slash and the path follow.
const COVER: &[u8] = b".merge/removed";

/// Target of a directory's mark: it lies over no other one.
const ALONE: &[u8] = b".merge/alone";

/// Target of a directory's mark: it lies over the one with the path that follows.
const OVER: &[u8] = b".merge/over/";

/// Target of the link whose name tells how many names of a file are covered.
const COUNT: &[u8] = b".merge/covered";

/// Beginnings of names in the upper one's `.merge`: covers that are owed; directories that are out of the way, and what says to where they go back.
const OWED: &[u8] = b"owed-";
const OLD: &[u8] = b"old-";
const BACK: &[u8] = b"back-";

/// Bytes that are copied at once.
const PIECE: usize = 64 * 1024;

/// Most files of the lower one with several names that were copied up, or of which a name was removed. They are all kept in mind.
const SHARED_MAX: usize = 1 << 16;

/// An upper file system over a lower one.
#[derive(Debug)]
pub struct Merge<U, L> {
    upper: U,
    lower: L,
    /// The directory `.merge` of the upper one's root.
    own: Inode,
    places: Places<Sides>,
    /// Inodes by those of the upper one whose number does not say it.
    of_upper: BTreeMap<Inode, Inode>,
    /// Files of the lower one that have, or had, several names there.
    shared: BTreeMap<Inode, Shared>,
    /// The next name in [`own`](Merge::own).
    next: u64,
    /// A cover that is owed could not be put to its place. Nothing is seen before it is.
    owes: bool,
}

/// Path from the lower one's root.
type Path = Box<[u8]>;

/// Inodes that one is made of.
#[derive(Clone, Default, Debug)]
struct Sides {
    upper: Option<Inode>,
    lower: Option<Inode>,
    /// Path of the lower directory, if it is not that of the name in the one above.
    over: Option<Path>,
    /// Its last name was removed, which neither side says.
    is_gone: bool,
}

/// A file of the lower one with several names.
#[derive(Clone, Copy, Default, Debug)]
struct Shared {
    /// The copy, if there is one.
    copy: Option<Inode>,
    /// How many of its names are covered.
    covered: u32,
}

/// Finding of the upper one at a name.
#[derive(Clone, Copy, Debug)]
enum Above {
    Nothing,
    Cover(Inode),
    Found(Attributes),
}

/// Findings of both at a name.
#[derive(Clone, Copy, Debug)]
struct Seen {
    above: Above,
    below: Option<Attributes>,
}

fn own_name() -> Result<Name<'static>> {
    Name::new(OWN)
}

/// Name in the upper one's `.merge` of the copy of a file that has several names in the lower one.
fn copy_name(lower: Inode) -> String {
    format!("copy-{:x}", lower.0)
}

fn number_of_upper(upper: Inode) -> Result<Inode> {
    upper.0.checked_mul(2).map(Inode).ok_or(Error::Unsupported)
}

fn number_of_lower(lower: Inode) -> Result<Inode> {
    lower.0.checked_mul(2).map(|number| Inode(number + 1)).ok_or(Error::Unsupported)
}

fn none_if_not_found<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn lookup(fs: &mut impl FileSystem, directory: Inode, name: Name) -> Result<Option<Inode>> {
    none_if_not_found(fs.lookup(directory, name))
}

/// An inode that nobody else knows has lost its name. If that cannot be said, it takes room, and nothing else.
fn let_go(fs: &mut impl FileSystem, inode: Inode) {
    if fs.attributes(inode).is_ok_and(|found| found.links == 0) {
        let _ = fs.forget(inode);
    }
}

/// All entries of a directory.
fn entries(fs: &mut impl FileSystem, directory: Inode) -> Result<Vec<Entry>> {
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let more = fs.readdir(directory, all.last().map_or(0, |entry| entry.next), 32)?;
        if more.is_empty() {
            return Ok(all);
        }
        all.extend(more);
    }
}

impl<U: FileSystem, L: FileSystem> Merge<U, L> {
    /// The two as one. What was begun in the upper one when it was used last is brought to its end, or undone.
    pub fn new(mut upper: U, mut lower: L) -> Result<Merge<U, L>> {
        if upper.is_read_only() {
            return Err(Error::ReadOnly);
        }
        let root = upper.root();
        let own = match lookup(&mut upper, root, own_name()?)? {
            Some(own) if upper.attributes(own)?.kind == Kind::Directory => own,
            Some(_) => return Err(Error::Damaged),
            None => {
                // Used for the first time: the directory of all looks like that of the lower one.
                let top = lower.attributes(lower.root())?;
                upper.change(root, &copied(&top))?;
                upper.create(root, own_name()?, New::Directory, 0o700)?
            }
        };
        // It is needed as long as the file system is in use.
        upper.hold(own)?;
        let top = Sides { upper: Some(root), lower: Some(lower.root()), over: None, is_gone: false };
        let number = number_of_lower(lower.root())?;
        let mut merge = Merge {
            upper,
            lower,
            own,
            places: Places::new(number, top),
            of_upper: BTreeMap::from([(root, number)]),
            shared: BTreeMap::new(),
            next: 0,
            owes: false,
        };
        merge.settle()?;
        merge.recall()?;
        Ok(merge)
    }

    /// The two file systems, not in use any more.
    pub fn into_inner(self) -> (U, L) {
        (self.upper, self.lower)
    }

    /// Reads what is known of files with several names, and removes what was being made.
    fn recall(&mut self) -> Result<()> {
        for entry in entries(&mut self.upper, self.own)? {
            let text = core::str::from_utf8(&entry.name).unwrap_or_default();
            let number = |digits: &str| u64::from_str_radix(digits, 16).ok().map(Inode);
            if let Some(lower) = text.strip_prefix("copy-").and_then(number) {
                self.shared.entry(lower).or_default().copy = Some(entry.inode);
                self.of_upper.insert(entry.inode, number_of_lower(lower)?);
            } else if let Some((lower, count)) =
                text.strip_prefix("covered-").and_then(|text| text.split_once('-'))
            {
                if let (Some(lower), Ok(count)) = (number(lower), count.parse()) {
                    let shared = self.shared.entry(lower).or_default();
                    shared.covered = shared.covered.max(count);
                }
            } else {
                self.discard(Name::new(&entry.name)?, entry.inode)?;
            }
        }
        Ok(())
    }

    /// Puts covers that are owed, and directories that were moved out of the way, to where they belong, if there is nothing else.
    fn settle(&mut self) -> Result<()> {
        for entry in entries(&mut self.upper, self.own)? {
            let owed = Name::new(&entry.name)?;
            // A directory goes back, and a cover is one itself.
            let aside = match entry.name.strip_prefix(BACK) {
                Some(number) => [OLD, number].concat(),
                None if entry.name.starts_with(OWED) => entry.name.clone(),
                None => continue,
            };
            let target = self.upper.readlink(entry.inode)?;
            let path = target.strip_prefix(COVER).unwrap_or_default();
            let root = self.upper.root();
            if lookup(&mut self.upper, self.own, Name::new(&aside)?)?.is_some()
                && let Ok(place) = path::walk(&mut self.upper, root, path, Last::Name)
                && place.found.is_none()
                && let Ok((directory, name)) = place.entry()
            {
                self.upper.rename(self.own, Name::new(&aside)?, directory, name)?;
            }
            if lookup(&mut self.upper, self.own, owed)?.is_some() {
                self.discard(owed, entry.inode)?;
            }
        }
        self.owes = false;
        Ok(())
    }

    /// Removes a name of [`own`](Merge::own), and what has it. A directory has nothing but covers and its mark.
    fn discard(&mut self, name: Name, inode: Inode) -> Result<()> {
        if self.upper.attributes(inode)?.kind == Kind::Directory {
            self.empty(inode)?;
            self.upper.rmdir(self.own, name)?;
        } else {
            self.upper.unlink(self.own, name)?;
        }
        let_go(&mut self.upper, inode);
        Ok(())
    }

    /// Removes covers and the mark from a directory of the upper one.
    fn empty(&mut self, directory: Inode) -> Result<()> {
        for entry in entries(&mut self.upper, directory)? {
            let name = Name::new(&entry.name)?;
            if entry.kind == Kind::Symlink && (entry.name == OWN || self.is_cover(entry.inode)?) {
                self.upper.unlink(directory, name)?;
                let_go(&mut self.upper, entry.inode);
            }
        }
        Ok(())
    }

    /// A name of [`own`](Merge::own) that is not used.
    fn new_name(&mut self, kind: &str) -> Result<String> {
        self.find_own()?;
        self.next += 1;
        Ok(format!("{kind}{:x}", self.next))
    }

    /// If the upper one has lost everything, as one in memory does whose server ends, nothing is known of it any more, and it begins anew.
    fn find_own(&mut self) -> Result<()> {
        match self.upper.attributes(self.own) {
            Err(Error::NotFound) => {}
            outcome => return outcome.map(drop),
        }
        let root = self.upper.root();
        self.own = match lookup(&mut self.upper, root, own_name()?)? {
            Some(own) => own,
            None => self.upper.create(root, own_name()?, New::Directory, 0o700)?,
        };
        self.upper.hold(self.own)?;
        self.shared.clear();
        self.of_upper.retain(|upper, _| *upper == root);
        Ok(())
    }

    fn is_cover(&mut self, upper: Inode) -> Result<bool> {
        let found = self.upper.attributes(upper)?;
        if found.kind != Kind::Symlink || found.len < COVER.len() as u64 {
            return Ok(false);
        }
        let target = self.upper.readlink(upper)?;
        Ok(target.strip_prefix(COVER).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/")))
    }

    /// Looks in both for a name of a directory.
    fn look(&mut self, directory: Inode, name: Name) -> Result<Seen> {
        if name.bytes() == OWN {
            return Err(Error::NotFound);
        }
        if self.owes {
            self.settle()?;
        }
        let Sides { upper, lower, .. } = self.places.get(directory)?.clone();
        let mut seen = Seen { above: Above::Nothing, below: None };
        if let Some(upper) = upper
            && let Some(found) = lookup(&mut self.upper, upper, name)?
        {
            seen.above = if self.is_cover(found)? {
                Above::Cover(found)
            } else {
                Above::Found(self.upper.attributes(found)?)
            };
        }
        if let Some(lower) = lower
            && let Some(found) = lookup(&mut self.lower, lower, name)?
        {
            seen.below = Some(self.lower.attributes(found)?);
        }
        Ok(seen)
    }

    /// The directory of the lower one that one of the upper one lies over, and its path if it is none that the name says.
    fn over(&mut self, upper: Inode, below: Option<Attributes>) -> Result<(Option<Inode>, Option<Path>)> {
        let Some(mark) = lookup(&mut self.upper, upper, own_name()?)? else {
            let lower = below.filter(|found| found.kind == Kind::Directory).map(|found| found.inode);
            return Ok((lower, None));
        };
        let target = self.upper.readlink(mark)?;
        let Some(path) = target.strip_prefix(OVER) else { return Ok((None, None)) };
        let mut at = self.lower.root();
        for name in path.split(|&byte| byte == b'/') {
            match lookup(&mut self.lower, at, Name::new(name)?)? {
                Some(next) => at = next,
                None => return Ok((None, None)),
            }
        }
        let is_directory = self.lower.attributes(at)?.kind == Kind::Directory;
        Ok((is_directory.then_some(at), Some(path.into())))
    }

    /// The inode of what was seen at a name.
    fn found(&mut self, directory: Inode, name: Name, seen: &Seen) -> Result<Inode> {
        let (number, sides) = match (seen.above, seen.below) {
            (Above::Found(above), below) if above.kind == Kind::Directory => {
                let (lower, over) = self.over(above.inode, below)?;
                let number = match lower {
                    Some(lower) => number_of_lower(lower)?,
                    None => number_of_upper(above.inode)?,
                };
                (number, Sides { upper: Some(above.inode), lower, over, is_gone: false })
            }
            (Above::Found(above), _) => {
                let known = self.of_upper.get(&above.inode).copied();
                let number = known.map_or_else(|| number_of_upper(above.inode), Ok)?;
                let lower = known.map(|number| Inode(number.0 / 2));
                (number, Sides { upper: Some(above.inode), lower, ..Sides::default() })
            }
            (Above::Nothing, Some(below)) => {
                let upper = self.copy_of(below.inode)?;
                (number_of_lower(below.inode)?, Sides { upper, lower: Some(below.inode), ..Sides::default() })
            }
            _ => return Err(Error::NotFound),
        };
        self.note(number, directory, name, sides)?;
        Ok(number)
    }

    /// The copy of a file of the lower one that has several names there.
    fn copy_of(&mut self, lower: Inode) -> Result<Option<Inode>> {
        if self.shared.get(&lower).is_none_or(|shared| shared.copy.is_none()) {
            return Ok(None);
        }
        let name = copy_name(lower);
        lookup(&mut self.upper, self.own, Name::new(name.as_bytes())?)
    }

    /// Finds an inode again by its name, since file systems below do not keep in mind what nobody has open.
    fn refresh(&mut self, inode: Inode) -> Result<()> {
        let path = self.places.path(inode)?;
        let mut at = self.root();
        for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            at = self.lookup(at, Name::new(name)?)?;
        }
        if at == inode { Ok(()) } else { Err(Error::NotFound) }
    }

    /// Notes an inode and what it is made of.
    fn note(&mut self, number: Inode, directory: Inode, name: Name, sides: Sides) -> Result<()> {
        if let Some(upper) = sides.upper
            && number_of_upper(upper)? != number
        {
            self.of_upper.insert(upper, number);
        }
        if self.places.put(number, directory, name, sides)? {
            let copies: Vec<Inode> = self.shared.values().filter_map(|shared| shared.copy).collect();
            self.of_upper.retain(|upper, number| self.places.has(*number) || copies.contains(upper));
        }
        Ok(())
    }

    /// The inode of the upper one, which is made if there is none: of a file a copy, of a directory one over it.
    fn raise(&mut self, inode: Inode) -> Result<Inode> {
        self.raise_until(inode, u64::MAX)
    }

    /// Does that with so many of a file's bytes.
    fn raise_until(&mut self, inode: Inode, len: u64) -> Result<Inode> {
        let sides = self.places.get(inode)?.clone();
        if let Some(upper) = sides.upper {
            return Ok(upper);
        }
        if !sides.is_gone {
            let (parent, _) = self.places.entry(inode)?;
            self.refresh(parent)?;
        }
        let found = self.lower.attributes(sides.lower.ok_or(Error::NotFound)?)?;
        match found.kind {
            Kind::Directory if sides.is_gone => Err(Error::NotFound),
            Kind::Directory => self.raise_directory(inode),
            Kind::Special => Err(Error::Unsupported),
            Kind::File | Kind::Symlink => self.raise_file(inode, &found, len),
        }
    }

    fn raise_directory(&mut self, inode: Inode) -> Result<Inode> {
        // From the first that is not in the upper one down to this one.
        let (mut row, mut at) = (vec![inode], inode);
        let mut upper = loop {
            let (parent, _) = self.places.entry(at)?;
            match self.places.get(parent)?.upper {
                Some(upper) => break upper,
                None => row.push(parent),
            }
            at = parent;
        };
        for inode in row.into_iter().rev() {
            let lower = self.places.get(inode)?.lower.ok_or(Error::NotFound)?;
            let found = self.lower.attributes(lower)?;
            let (_, name) = self.places.entry(inode)?;
            upper = self.upper.create(upper, name, New::Directory, found.permissions)?;
            // A directory without them is one all the same.
            let _ = self.upper.change(upper, &copied(&found));
            self.places.get_mut(inode)?.upper = Some(upper);
            self.of_upper.insert(upper, inode);
            if self.places.is_held(inode) {
                self.upper.hold(upper)?;
            }
        }
        Ok(upper)
    }

    fn raise_file(&mut self, inode: Inode, found: &Attributes, len: u64) -> Result<Inode> {
        let is_gone = self.attributes(inode)?.links == 0;
        let is_shared = found.links > 1;
        let place = if is_gone {
            None
        } else if is_shared {
            self.share(found.inode)?;
            Some((self.own, copy_name(found.inode).into_bytes()))
        } else {
            let (parent, name) = self.places.entry(inode)?;
            let name = name.bytes().to_vec();
            Some((self.raise(parent)?, name))
        };
        let made = self.new_name("new-")?;
        let made = Name::new(made.as_bytes())?;
        let copy = match found.kind {
            Kind::Symlink => {
                let target = self.lower.readlink(found.inode)?;
                self.upper.create(self.own, made, New::Symlink(&target), found.permissions)?
            }
            _ => self.upper.create(self.own, made, New::File, found.permissions)?,
        };
        let outcome = self.fill(copy, found, len).and_then(|()| {
            if self.places.is_held(inode) {
                self.upper.hold(copy)?;
            }
            match &place {
                Some((directory, name)) => self.upper.rename(self.own, made, *directory, Name::new(name)?),
                None => self.upper.unlink(self.own, made),
            }
        });
        if let Err(error) = outcome {
            let _ = self.discard(made, copy);
            self.upper.release(copy);
            return Err(error);
        }
        if self.places.is_held(inode) {
            self.lower.release(found.inode);
        }
        if is_shared && !is_gone {
            self.shared.entry(found.inode).or_default().copy = Some(copy);
        }
        self.places.get_mut(inode)?.upper = Some(copy);
        self.of_upper.insert(copy, inode);
        Ok(copy)
    }

    /// Copies so many bytes of a file of the lower one, and its attributes, and has all of it survive.
    fn fill(&mut self, copy: Inode, found: &Attributes, len: u64) -> Result<()> {
        if found.kind == Kind::Symlink {
            let _ = self.upper.change(copy, &copied(found));
            return Ok(());
        }
        let end = found.len.min(len);
        let mut piece = vec![0; PIECE.min(end as usize)];
        let mut at = 0;
        while at < end {
            let wanted = piece.len().min((end - at) as usize);
            let count = self.lower.read(found.inode, at, &mut piece[..wanted])?;
            if count == 0 {
                break;
            }
            // Holes stay holes.
            if piece[..count].iter().any(|&byte| byte != 0) {
                let mut done = 0;
                while done < count {
                    match self.upper.write(copy, at + done as u64, &piece[done..count])? {
                        0 => return Err(Error::NoSpace),
                        more => done += more,
                    }
                }
            }
            at += count as u64;
        }
        if self.upper.len(copy)? != end {
            self.upper.truncate(copy, end)?;
        }
        self.upper.change(copy, &copied(found))?;
        self.upper.sync(copy)
    }

    /// A file of the lower one has several names there, and it matters from now on.
    fn share(&mut self, lower: Inode) -> Result<&mut Shared> {
        if self.shared.len() >= SHARED_MAX && !self.shared.contains_key(&lower) {
            return Err(Error::NoSpace);
        }
        Ok(self.shared.entry(lower).or_default())
    }

    /// A name of a file of the lower one is seen no more.
    fn covered(&mut self, below: &Attributes) -> Result<()> {
        let number = number_of_lower(below.inode)?;
        if below.kind == Kind::Directory || below.links <= 1 {
            if let Ok(sides) = self.places.get_mut(number) {
                sides.is_gone = sides.upper.is_none();
            }
            return Ok(());
        }
        self.find_own()?;
        let shared = self.share(below.inode)?;
        let (before, now) = (shared.covered, shared.covered + 1);
        let name = |count| format!("covered-{:x}-{count}", below.inode.0);
        let now_name = name(now);
        let now_name = Name::new(now_name.as_bytes())?;
        if before == 0 {
            self.upper.create(self.own, now_name, New::Symlink(COUNT), 0o777)?;
        } else {
            self.upper.rename(self.own, Name::new(name(before).as_bytes())?, self.own, now_name)?;
        }
        self.share(below.inode)?.covered = now;
        Ok(())
    }

    /// Makes a cover in the place of what the upper one has at a name.
    fn cover(&mut self, upper: Inode, name: Name, is_above: bool) -> Result<()> {
        if !is_above {
            return self.upper.create(upper, name, New::Symlink(COVER), 0o777).map(drop);
        }
        let made = self.new_name("new-")?;
        let made = Name::new(made.as_bytes())?;
        let cover = self.upper.create(self.own, made, New::Symlink(COVER), 0o777)?;
        let moved = self.upper.rename(self.own, made, upper, name);
        if moved.is_err() {
            let _ = self.discard(made, cover);
        }
        moved
    }

    /// Makes a cover that is put to a name of a directory as soon as there is nothing, by whoever sees that first.
    fn owe(&mut self, directory: Inode, name: Name) -> Result<Owed> {
        let owed = self.new_name("owed-")?.into_bytes();
        self.owe_as(owed, directory, name)
    }

    fn owe_as(&mut self, owed: Vec<u8>, directory: Inode, name: Name) -> Result<Owed> {
        let path = self.places.path(directory)?;
        let target = [COVER, b"/", &path, b"/", name.bytes()].concat();
        let inode = self.upper.create(self.own, Name::new(&owed)?, New::Symlink(&target), 0o777)?;
        Ok(Owed { name: owed, inode })
    }

    /// Puts a cover that is owed. What it covers is not seen in any case.
    fn pay(&mut self, owed: &Owed, upper: Inode, name: Name) {
        let paid = Name::new(&owed.name).and_then(|owed| self.upper.rename(self.own, owed, upper, name));
        self.owes |= paid.is_err();
    }

    /// A cover that is owed is not needed. If it stays, the next to settle removes it.
    fn waive(&mut self, owed: &Owed) {
        if let Ok(name) = Name::new(&owed.name) {
            let _ = self.discard(name, owed.inode);
        }
    }

    fn is_empty(&mut self, directory: Inode) -> Result<bool> {
        Ok(self.readdir(directory, 0, 1)?.is_empty())
    }

    /// Path of the directory of the lower one.
    fn lower_path(&mut self, inode: Inode) -> Result<Vec<u8>> {
        let (mut names, mut at) = (Vec::new(), inode);
        while at != self.root() {
            if let Some(over) = &self.places.get(at)?.over {
                names.push(over.to_vec());
                break;
            }
            let (parent, name) = self.places.entry(at)?;
            names.push(name.bytes().to_vec());
            at = parent;
        }
        names.reverse();
        let path = names.join(&b'/');
        if path.len() > crate::places::PATH_MAX { Err(Error::NameTooLong) } else { Ok(path) }
    }

    /// Says in a directory of the upper one what it lies over, because that is not what its next name says.
    fn mark(&mut self, inode: Inode, upper: Inode, is_over_another: bool) -> Result<()> {
        let sides = self.places.get(inode)?.clone();
        if lookup(&mut self.upper, upper, own_name()?)?.is_some() {
            return Ok(());
        }
        if sides.lower.is_some() {
            let path = self.lower_path(inode)?;
            let target = [OVER, &path].concat();
            self.upper.create(upper, own_name()?, New::Symlink(&target), 0o777)?;
            self.places.get_mut(inode)?.over = Some(path.into());
        } else if is_over_another {
            self.upper.create(upper, own_name()?, New::Symlink(ALONE), 0o777)?;
        }
        Ok(())
    }

    /// Removes a directory that was moved out of the way, but for its inode, which stays for whoever has it. If that fails, the next start does it.
    fn remove_aside(&mut self, aside: &[u8], inode: Inode) {
        if self.empty(inode).is_ok()
            && let Ok(aside) = Name::new(aside)
        {
            let _ = self.upper.rmdir(self.own, aside);
        }
    }

    fn rename_file(&mut self, inode: Inode, from: (Inode, Name), to: (Inode, Name)) -> Result<()> {
        let seen = self.look(from.0, from.1)?;
        let target = self.look(to.0, to.1)?;
        let upper = self.raise(inode)?;
        let (from_upper, to_upper) = (self.raise(from.0)?, self.raise(to.0)?);
        if lookup(&mut self.upper, from_upper, from.1)?.is_none() {
            // The copy of a file with several names has this one only in the lower one. Now it has it here.
            self.link_over(upper, from_upper, from.1)?;
            if let Some(below) = seen.below {
                self.covered(&below)?;
            }
        }
        let owed = seen.below.map(|_| self.owe(from.0, from.1)).transpose()?;
        let moved = self.upper.rename(from_upper, from.1, to_upper, to.1);
        match owed {
            Some(owed) if moved.is_ok() => self.pay(&owed, from_upper, from.1),
            Some(owed) => self.waive(&owed),
            None => {}
        }
        moved?;
        self.replaced(&target)
    }

    /// Gives an inode of the upper one a name, in the place of whatever has it there.
    fn link_over(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()> {
        let made = self.new_name("new-")?;
        let made = Name::new(made.as_bytes())?;
        self.upper.link(inode, self.own, made)?;
        let moved = self.upper.rename(self.own, made, directory, name);
        if moved.is_err() {
            let _ = self.upper.unlink(self.own, made);
        }
        moved
    }

    /// Something has come to a name at which that was seen.
    fn replaced(&mut self, seen: &Seen) -> Result<()> {
        match (seen.above, &seen.below) {
            (Above::Cover(cover), _) => let_go(&mut self.upper, cover),
            (Above::Nothing, Some(below)) => self.covered(below)?,
            _ => {}
        }
        Ok(())
    }

    fn rename_directory(&mut self, inode: Inode, from: (Inode, Name), to: (Inode, Name)) -> Result<()> {
        let seen = self.look(from.0, from.1)?;
        let target = self.look(to.0, to.1)?;
        let there = match self.found(to.0, to.1, &target) {
            Ok(there) if self.is_empty(there)? => Some(there),
            Ok(_) => return Err(Error::NotEmpty),
            Err(Error::NotFound) => None,
            Err(error) => return Err(error),
        };
        let upper = self.raise(inode)?;
        let (from_upper, to_upper) = (self.raise(from.0)?, self.raise(to.0)?);
        self.mark(inode, upper, target.below.is_some())?;
        let old = seen.below.map(|_| self.owe(from.0, from.1)).transpose()?;
        let number = self.new_name("")?;
        let aside = [OLD, number.as_bytes()].concat();
        let new = match target.above {
            Above::Nothing => None,
            Above::Cover(_) => Some(self.owe(to.0, to.1)?),
            Above::Found(_) => Some(self.owe_as([BACK, number.as_bytes()].concat(), to.0, to.1)?),
        };
        let moved = match target.above {
            Above::Nothing => Ok(()),
            Above::Cover(cover) => self.upper.unlink(to_upper, to.1).map(|()| let_go(&mut self.upper, cover)),
            Above::Found(_) => self.upper.rename(to_upper, to.1, self.own, Name::new(&aside)?),
        };
        let moved = moved.and_then(|()| self.upper.rename(from_upper, from.1, to_upper, to.1));
        if let Err(error) = moved {
            // Everything goes back to where it was.
            self.owes = self.settle().is_err();
            return Err(error);
        }
        if let Some(old) = old {
            self.pay(&old, from_upper, from.1);
        }
        if let Some(new) = new {
            self.waive(&new);
        }
        if let Above::Found(above) = target.above {
            self.remove_aside(&aside, above.inode);
        }
        if let Some(there) = there {
            self.places.get_mut(there)?.is_gone = true;
        }
        Ok(())
    }

    /// Takes the rows of entries of one side together, and numbers them.
    fn merged(&mut self, directory: Inode, side: Side, entries: Vec<Entry>, from: u64) -> Result<Vec<Entry>> {
        let lower = self.places.get(directory)?.lower;
        let (mut merged, mut before) = (Vec::new(), from);
        let last = entries.len().saturating_sub(1);
        for (number, entry) in entries.into_iter().enumerate() {
            let is_exact = is_exact(before, entry.next);
            before = entry.next;
            // A cursor that cannot be told from the one before it is nobody's, and at the end of a row neither is its entry.
            let Some(next) = to_cursor(side, entry.next).filter(|_| is_exact) else {
                if number == last && merged.is_empty() {
                    return Err(Error::Unsupported);
                }
                if number < last {
                    merged.push((entry, None));
                }
                continue;
            };
            for (_, place) in merged.iter_mut().rev().take_while(|(_, place)| place.is_none()) {
                *place = Some(next);
            }
            merged.push((entry, Some(next)));
        }
        let mut found = Vec::new();
        for (entry, next) in merged {
            let (Some(next), Ok(name)) = (next, Name::new(&entry.name)) else { continue };
            let is_twice = side == Side::Upper
                && match lower {
                    Some(lower) => lookup(&mut self.lower, lower, name)?.is_some(),
                    None => false,
                };
            if is_twice {
                continue;
            }
            match self.lookup(directory, name) {
                Ok(inode) => {
                    let kind = self.attributes(inode)?.kind;
                    found.push(Entry { inode, kind, next, name: entry.name });
                }
                Err(Error::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

/// A cover that is owed: its name in the upper one's directory `.merge`.
#[derive(Debug)]
struct Owed {
    name: Vec<u8>,
    inode: Inode,
}

/// Attributes that a copy has from its original.
fn copied(found: &Attributes) -> Changes {
    Changes {
        permissions: Some(found.permissions),
        owner: Some((found.owner, found.group)),
        times: Some((found.accessed, found.modified)),
    }
}

/// Side whose entries are listed. The lower one is first: it stays as it is, so no entry moves from one part of the list to the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Lower,
    Upper,
}

/// A cursor that is a large number, such as ext4's hashes, loses its lowest bit.
const LARGE: u64 = 1 << 63;

/// The bit in a large cursor that says which side it is of.
const LARGE_UPPER: u64 = 1 << 62;

/// A cursor of one side as one of both.
fn to_cursor(side: Side, cursor: u64) -> Option<u64> {
    let is_upper = side == Side::Upper;
    if cursor & LARGE != 0 {
        return Some(LARGE | if is_upper { LARGE_UPPER } else { 0 } | (cursor & !LARGE) >> 1);
    }
    (cursor < LARGE_UPPER).then_some(cursor << 1 | u64::from(is_upper))
}

/// The side of a cursor, and its own cursor.
fn from_cursor(cursor: u64) -> (Side, u64) {
    let side = |is_upper| if is_upper { Side::Upper } else { Side::Lower };
    if cursor & LARGE != 0 {
        return (side(cursor & LARGE_UPPER != 0), LARGE | (cursor & (LARGE_UPPER - 1)) << 1);
    }
    (side(cursor & 1 != 0), cursor >> 1)
}

/// Whether a cursor is another one than that before it without its lowest bit, too.
fn is_exact(before: u64, next: u64) -> bool {
    next & LARGE == 0 || next >> 1 != before >> 1 || next == u64::MAX
}

impl<U: FileSystem, L: FileSystem> FileSystem for Merge<U, L> {
    fn root(&self) -> Inode {
        Inode(self.lower.root().0 * 2 + 1)
    }

    fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        let sides = self.places.get(inode)?.clone();
        let shared = sides.lower.and_then(|lower| self.shared.get(&lower).copied());
        let mut found = match (sides.upper, sides.lower) {
            (Some(upper), _) => self.upper.attributes(upper)?,
            (None, Some(lower)) => self.lower.attributes(lower)?,
            (None, None) => return Err(Error::NotFound),
        };
        found.links = match (shared, sides.lower) {
            _ if sides.is_gone => 0,
            // How many directories are in both of them together nobody has counted, and 1 says so, as usual.
            _ if found.kind == Kind::Directory && sides.upper.is_some() && sides.lower.is_some() => {
                found.links.min(1)
            }
            (Some(shared), Some(lower)) if shared.copy == sides.upper => {
                let left = self.lower.attributes(lower)?.links.saturating_sub(shared.covered);
                // The copy has one more, which nobody sees.
                let own = if sides.upper.is_some() { found.links.saturating_sub(1) } else { 0 };
                left + own
            }
            _ => found.links,
        };
        Ok(Attributes { inode, ..found })
    }

    fn len(&mut self, file: Inode) -> Result<u64> {
        match self.places.get(file)?.clone() {
            Sides { upper: Some(upper), .. } => self.upper.len(upper),
            Sides { lower: Some(lower), .. } => self.lower.len(lower),
            _ => Err(Error::NotFound),
        }
    }

    fn change(&mut self, inode: Inode, changes: &Changes) -> Result<()> {
        let upper = self.raise(inode)?;
        self.upper.change(upper, changes)
    }

    fn lookup(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        let seen = self.look(directory, name)?;
        self.found(directory, name, &seen)
    }

    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>> {
        let (mut side, mut from) = from_cursor(cursor);
        loop {
            let sides = self.places.get(directory)?;
            let entries = match (side, sides.lower, sides.upper) {
                (Side::Lower, Some(lower), _) => self.lower.readdir(lower, from, count_max)?,
                (Side::Upper, _, Some(upper)) => self.upper.readdir(upper, from, count_max)?,
                _ => Vec::new(),
            };
            match (entries.last(), side) {
                (None, Side::Upper) => return Ok(Vec::new()),
                (None, Side::Lower) => (side, from) = (Side::Upper, 0),
                (Some(last), _) => {
                    let next = last.next;
                    let merged = self.merged(directory, side, entries, from)?;
                    if !merged.is_empty() {
                        return Ok(merged);
                    }
                    from = next;
                }
            }
        }
    }

    fn create(&mut self, directory: Inode, name: Name, new: New, permissions: u16) -> Result<Inode> {
        if name.bytes() == OWN {
            return Err(Error::Invalid);
        }
        if let New::Symlink(target) = new
            && target.starts_with(OWN_TARGET)
        {
            return Err(Error::Invalid);
        }
        let seen = self.look(directory, name)?;
        let cover = match (seen.above, seen.below) {
            (Above::Found(_), _) | (Above::Nothing, Some(_)) => return Err(Error::Exists),
            (Above::Nothing, None) => None,
            (Above::Cover(cover), _) => Some(cover),
        };
        let upper = self.raise(directory)?;
        let inode = match cover {
            None => self.upper.create(upper, name, new, permissions)?,
            Some(cover) => {
                let made_name = self.new_name("new-")?;
                let made_name = Name::new(made_name.as_bytes())?;
                let made = self.upper.create(self.own, made_name, new, permissions)?;
                let moved = if new == New::Directory {
                    self.uncover(made, made_name, (directory, name), upper, &seen)
                } else {
                    self.upper.rename(self.own, made_name, upper, name)
                };
                if let Err(error) = moved {
                    let _ = self.discard(made_name, made);
                    return Err(error);
                }
                let_go(&mut self.upper, cover);
                made
            }
        };
        let number = number_of_upper(inode)?;
        self.of_upper.remove(&inode);
        self.note(number, directory, name, Sides { upper: Some(inode), ..Sides::default() })?;
        Ok(number)
    }

    fn link(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()> {
        if name.bytes() == OWN {
            return Err(Error::Invalid);
        }
        let seen = self.look(directory, name)?;
        let upper = self.raise(inode)?;
        let to = self.raise(directory)?;
        match (seen.above, seen.below) {
            (Above::Found(_), _) | (Above::Nothing, Some(_)) => Err(Error::Exists),
            (Above::Nothing, None) => self.upper.link(upper, to, name),
            (Above::Cover(cover), _) => {
                self.link_over(upper, to, name)?;
                let_go(&mut self.upper, cover);
                Ok(())
            }
        }
    }

    fn unlink(&mut self, directory: Inode, name: Name) -> Result<()> {
        let seen = self.look(directory, name)?;
        let inode = self.found(directory, name, &seen)?;
        if self.attributes(inode)?.kind == Kind::Directory {
            return Err(Error::IsDirectory);
        }
        let upper = self.raise(directory)?;
        match (seen.above, &seen.below) {
            (Above::Found(_), None) => self.upper.unlink(upper, name),
            (Above::Found(_), Some(_)) => self.cover(upper, name, true),
            (_, below) => {
                self.cover(upper, name, false)?;
                below.as_ref().map_or(Ok(()), |below| self.covered(below))
            }
        }
    }

    fn rmdir(&mut self, directory: Inode, name: Name) -> Result<()> {
        let seen = self.look(directory, name)?;
        let inode = self.found(directory, name, &seen)?;
        if self.attributes(inode)?.kind != Kind::Directory {
            return Err(Error::NotDirectory);
        }
        if !self.is_empty(inode)? {
            return Err(Error::NotEmpty);
        }
        let upper = self.raise(directory)?;
        if let Above::Found(above) = seen.above {
            let owed = seen.below.map(|_| self.owe(directory, name)).transpose()?;
            let aside = [OLD, self.new_name("")?.as_bytes()].concat();
            let moved = self.upper.rename(upper, name, self.own, Name::new(&aside)?);
            match owed {
                Some(owed) if moved.is_ok() => self.pay(&owed, upper, name),
                Some(owed) => self.waive(&owed),
                None => {}
            }
            moved?;
            self.remove_aside(&aside, above.inode);
        } else {
            self.cover(upper, name, false)?;
        }
        self.places.get_mut(inode)?.is_gone = true;
        Ok(())
    }

    fn rename(&mut self, from: Inode, name: Name, to: Inode, new_name: Name) -> Result<()> {
        if new_name.bytes() == OWN {
            return Err(Error::Invalid);
        }
        let inode = self.lookup(from, name)?;
        if self.attributes(inode)?.kind == Kind::Directory {
            self.rename_directory(inode, (from, name), (to, new_name))?;
        } else {
            self.rename_file(inode, (from, name), (to, new_name))?;
        }
        self.places.moved(inode, to, new_name);
        Ok(())
    }

    fn forget(&mut self, inode: Inode) -> Result<()> {
        if self.attributes(inode)?.links > 0 {
            return Err(Error::Busy);
        }
        let sides = self.places.get(inode)?.clone();
        if let Some(lower) = sides.lower
            && let Some(shared) = self.shared.remove(&lower)
        {
            if shared.copy.is_some() {
                self.upper.unlink(self.own, Name::new(copy_name(lower).as_bytes())?)?;
            }
            let name = format!("covered-{:x}-{}", lower.0, shared.covered);
            let name = Name::new(name.as_bytes())?;
            if let Some(count) = lookup(&mut self.upper, self.own, name)? {
                self.discard(name, count)?;
            }
        }
        if let Some(upper) = sides.upper {
            self.of_upper.remove(&upper);
            match self.upper.forget(upper) {
                // A directory that could not be removed from `.merge`: the next start does it.
                Err(Error::Busy) if sides.is_gone => {}
                outcome => outcome?,
            }
        }
        self.places.remove(inode);
        Ok(())
    }

    fn readlink(&mut self, inode: Inode) -> Result<Vec<u8>> {
        match self.places.get(inode)?.clone() {
            Sides { upper: Some(upper), .. } => self.upper.readlink(upper),
            Sides { lower: Some(lower), .. } => self.lower.readlink(lower),
            _ => Err(Error::NotFound),
        }
    }

    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        match self.places.get(inode)? {
            Sides { upper: Some(upper), .. } => self.upper.read(*upper, offset, to),
            Sides { lower: Some(lower), .. } => self.lower.read(*lower, offset, to),
            _ => Err(Error::NotFound),
        }
    }

    fn write(&mut self, inode: Inode, offset: u64, from: &[u8]) -> Result<usize> {
        let upper = self.raise(inode)?;
        self.upper.write(upper, offset, from)
    }

    fn truncate(&mut self, inode: Inode, len: u64) -> Result<()> {
        let upper = self.raise_until(inode, len)?;
        self.upper.truncate(upper, len)
    }

    fn sync(&mut self, inode: Inode) -> Result<()> {
        let upper = self.places.get(inode)?.upper.unwrap_or(self.upper.root());
        self.upper.sync(upper)
    }

    fn space(&mut self) -> Result<Space> {
        self.upper.space()
    }

    fn hold(&mut self, inode: Inode) -> Result<()> {
        let is_directory = self.attributes(inode)?.kind == Kind::Directory;
        let sides = self.places.get(inode)?.clone();
        if let Some(upper) = sides.upper {
            self.upper.hold(upper)?;
        }
        if let Some(lower) = sides.lower
            && (is_directory || sides.upper.is_none())
            && let Err(error) = self.lower.hold(lower)
        {
            self.release(inode);
            return Err(error);
        }
        self.places.hold(inode)
    }

    fn release(&mut self, inode: Inode) {
        if let Ok(sides) = self.places.get(inode) {
            if let Some(upper) = sides.upper {
                self.upper.release(upper);
            }
            if let Some(lower) = sides.lower {
                self.lower.release(lower);
            }
        }
        self.places.release(inode);
    }
}

impl<U: FileSystem, L: FileSystem> Merge<U, L> {
    /// Moves a directory that was made in [`own`](Merge::own) to where a cover is. In between the cover is owed.
    fn uncover(
        &mut self,
        made: Inode,
        made_name: Name,
        at: (Inode, Name),
        upper: Inode,
        seen: &Seen,
    ) -> Result<()> {
        if seen.below.is_some() {
            self.upper.create(made, own_name()?, New::Symlink(ALONE), 0o777)?;
        }
        let owed = self.owe(at.0, at.1)?;
        let moved =
            self.upper.unlink(upper, at.1).and_then(|()| self.upper.rename(self.own, made_name, upper, at.1));
        if moved.is_err() {
            self.owes = self.settle().is_err();
            return moved;
        }
        self.waive(&owed);
        Ok(())
    }
}
