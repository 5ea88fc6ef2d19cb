//! Inodes that a file system over others has found, and where: the directory and the name of each.
//!
//! A [`FileSystem`](crate::FileSystem) is asked for inodes; one over others has to say there what is meant, by a path or by whatever it has noted. All that were found
//! are too many to note. So there are those that somebody holds, and those that were found last; of each also the directories above it. An inode that is
//! not there any more is found anew by its name, but for one that is held. So what is above those that are held stays, however deep they lie, and very
//! deep ones have a limit.

use crate::{Error, Inode, Name, Result};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Most inodes, beside those that are held and the directories above these. When there are more, the half that was used last stays.
const COUNT_MAX: usize = 4096;

/// Names of the path of an inode that is held, as far as they are not counted.
const DEPTH_FREE: usize = 16;

/// Most names beyond these of all inodes that are held.
const DEEP_MAX: usize = 4096;

/// Most bytes of a path from the root on. A little less than a path of a message has, so that there is room for what stands in front of it.
pub const PATH_MAX: usize = 4000;

/// Most names of a path from the root on.
pub const DEPTH_MAX: usize = 256;

/// Inodes, their places, and a value of each.
#[derive(Debug)]
pub struct Places<T> {
    root: Inode,
    known: BTreeMap<Inode, Known<T>>,
    clock: u64,
    /// Those that stayed for those that are held, when there were too many.
    kept: usize,
    /// Names that [`DEEP_MAX`] limits.
    deep: usize,
}

#[derive(Debug)]
struct Known<T> {
    parent: Inode,
    name: Box<[u8]>,
    /// No directory above was used before.
    used: u64,
    is_held: bool,
    /// Names that it adds to [`Places::deep`].
    deep: usize,
    value: T,
}

impl<T> Places<T> {
    /// Those of a file system of which nothing but the root was found.
    pub fn new(root: Inode, value: T) -> Places<T> {
        let known = Known { parent: root, name: Box::default(), used: 0, is_held: true, deep: 0, value };
        Places { root, known: BTreeMap::from([(root, known)]), clock: 0, kept: 0, deep: 0 }
    }

    /// The value of an inode. [`Error::NotFound`] if it is not there any more.
    pub fn get(&self, inode: Inode) -> Result<&T> {
        self.known.get(&inode).map(|known| &known.value).ok_or(Error::NotFound)
    }

    /// The value of an inode that is used now, and the directories above it before. [`Error::NotFound`] if it is not there any more.
    pub fn used(&mut self, inode: Inode) -> Result<&T> {
        let clock = self.clock;
        let known = self.known.get_mut(&inode).ok_or(Error::NotFound)?;
        known.used = clock;
        Ok(&known.value)
    }

    /// The value of an inode, to be changed.
    pub fn get_mut(&mut self, inode: Inode) -> Result<&mut T> {
        self.known.get_mut(&inode).map(|known| &mut known.value).ok_or(Error::NotFound)
    }

    /// The directory and the name of an inode that is not the root.
    pub fn entry(&self, inode: Inode) -> Result<(Inode, Name<'_>)> {
        let known = self.known.get(&inode).ok_or(Error::NotFound)?;
        Ok((known.parent, Name::new(&known.name)?))
    }

    /// Notes an inode that was found, or was found again. Says whether others had to go for it. [`Error::NameTooLong`] if it lies too deep.
    pub fn put(&mut self, inode: Inode, parent: Inode, name: Name, value: T) -> Result<bool> {
        if inode == self.root {
            return Err(Error::Invalid);
        }
        // The directories above are used, too.
        let path = self.path(parent)?;
        let depth = if path.is_empty() { 0 } else { 1 + path.iter().filter(|&&byte| byte == b'/').count() };
        if path.len() + 1 + name.bytes().len() > PATH_MAX || depth >= DEPTH_MAX {
            return Err(Error::NameTooLong);
        }
        let (is_held, deep) = self.known.get(&inode).map_or((false, 0), |known| (known.is_held, known.deep));
        let known = Known { parent, name: name.bytes().into(), used: self.clock, is_held, deep, value };
        self.known.insert(inode, known);
        let is_full = self.known.len() > COUNT_MAX + self.kept;
        if is_full {
            self.prune();
        }
        Ok(is_full)
    }

    /// An inode has another place.
    pub fn moved(&mut self, inode: Inode, parent: Inode, name: Name) {
        if let Some(known) = self.known.get_mut(&inode)
            && inode != self.root
        {
            (known.parent, known.name) = (parent, name.bytes().into());
        }
        // The new directory is used now, and the inode may be older.
        let _ = self.path(inode);
    }

    /// An inode is not used any more.
    pub fn remove(&mut self, inode: Inode) -> Option<T> {
        if inode == self.root {
            return None;
        }
        let known = self.known.remove(&inode)?;
        self.deep -= known.deep;
        Some(known.value)
    }

    /// Whether an inode is there.
    pub fn has(&self, inode: Inode) -> bool {
        self.known.contains_key(&inode)
    }

    /// Whether somebody holds an inode.
    pub fn is_held(&self, inode: Inode) -> bool {
        self.known.get(&inode).is_some_and(|known| known.is_held)
    }

    /// An inode stays until it is [released](Places::release), and all that is above it. [`Error::TooManyOpen`] if it lies deep, and others do that are held.
    pub fn hold(&mut self, inode: Inode) -> Result<()> {
        let deep = self.depth(inode).saturating_sub(DEPTH_FREE);
        let known = self.known.get_mut(&inode).ok_or(Error::NotFound)?;
        if known.is_held {
            return Ok(());
        }
        if self.deep + deep > DEEP_MAX {
            return Err(Error::TooManyOpen);
        }
        (known.is_held, known.deep) = (true, deep);
        self.deep += deep;
        Ok(())
    }

    /// An inode need not stay.
    pub fn release(&mut self, inode: Inode) {
        if let Some(known) = self.known.get_mut(&inode) {
            known.is_held = inode == self.root;
            self.deep -= core::mem::take(&mut known.deep);
        }
    }

    /// Names from the root to an inode, as far as they are known.
    fn depth(&self, inode: Inode) -> usize {
        let (mut count, mut at) = (0, inode);
        while at != self.root
            && count <= DEPTH_MAX
            && let Some(known) = self.known.get(&at)
        {
            count += 1;
            at = known.parent;
        }
        count
    }

    /// Names from the root to an inode, with slashes between them. None of its directories was used longer ago from now on.
    pub fn path(&mut self, inode: Inode) -> Result<Vec<u8>> {
        self.clock += 1;
        let (mut names, mut at): (Vec<Box<[u8]>>, _) = (Vec::new(), inode);
        while at != self.root {
            let known = self.known.get_mut(&at).ok_or(Error::NotFound)?;
            known.used = self.clock;
            names.push(known.name.clone());
            at = known.parent;
            if names.len() > DEPTH_MAX {
                return Err(Error::NameTooLong);
            }
        }
        names.reverse();
        let path = names.join(&b'/');
        if path.len() > PATH_MAX { Err(Error::NameTooLong) } else { Ok(path) }
    }

    /// Lets those go that nobody holds or needs for one that is held, and that were used longest ago: half of these.
    fn prune(&mut self) {
        self.clock += 1;
        let now = self.clock;
        let held: Vec<Inode> =
            self.known.iter().filter(|(_, known)| known.is_held).map(|(&inode, _)| inode).collect();
        self.kept = 0;
        for mut at in held {
            while at != self.root
                && let Some(known) = self.known.get_mut(&at)
                && known.used != now
            {
                known.used = now;
                self.kept += 1;
                at = known.parent;
            }
        }
        let mut times: Vec<u64> =
            self.known.values().map(|known| known.used).filter(|&used| used != now).collect();
        times.sort_unstable();
        let first = times.get(times.len() / 2).copied().unwrap_or_default();
        self.known.retain(|_, known| known.is_held || known.used >= first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: Inode = Inode(1);

    fn name(text: &str) -> Name<'_> {
        Name::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn paths_follow_what_is_moved() {
        let mut places = Places::new(ROOT, ());
        places.put(Inode(2), ROOT, name("a"), ()).unwrap();
        places.put(Inode(3), Inode(2), name("b"), ()).unwrap();
        assert_eq!(places.path(Inode(3)).unwrap(), b"a/b");
        places.put(Inode(4), ROOT, name("c"), ()).unwrap();
        places.moved(Inode(2), Inode(4), name("d"));
        assert_eq!(places.path(Inode(3)).unwrap(), b"c/d/b");
        places.remove(Inode(4));
        assert_eq!(places.path(Inode(3)), Err(Error::NotFound));
        assert_eq!(places.path(ROOT).unwrap(), b"");
    }

    /// However many are found, those that are held stay with all that is above them, and those found last.
    #[test]
    fn what_is_held_stays() {
        let mut places = Places::new(ROOT, ());
        let mut parent = ROOT;
        for number in 2..40 {
            places.put(Inode(number), parent, name("deep"), ()).unwrap();
            parent = Inode(number);
        }
        places.hold(parent).unwrap();
        for number in 100..100_000 {
            places.put(Inode(number), ROOT, name("many"), ()).unwrap();
            assert!(places.known.len() <= COUNT_MAX + 40);
        }
        assert!(places.has(Inode(99_999)) && places.has(Inode(99_000)) && !places.has(Inode(100)));
        assert_eq!(places.path(parent).unwrap().len(), 38 * 5 - 1);
        places.release(parent);
        for number in 100..20_000 {
            places.put(Inode(number), ROOT, name("many"), ()).unwrap();
        }
        assert!(!places.has(parent) && places.has(ROOT));
    }

    /// Inodes that lie very deep are refused when many of them are held. All others that are held keep their paths meanwhile, and may lie as deep as is usual.
    #[test]
    fn deep_inodes_leave_the_others_alone() {
        let mut places = Places::new(ROOT, ());
        places.put(Inode(2), ROOT, name("home"), ()).unwrap();
        places.put(Inode(3), Inode(2), name("user"), ()).unwrap();
        places.hold(Inode(3)).unwrap();
        let (mut next, mut deep) = (10, Vec::new());
        let refused = loop {
            let mut parent = ROOT;
            for _ in 0..200 {
                places.put(Inode(next), parent, name("x"), ()).unwrap();
                parent = Inode(next);
                next += 1;
            }
            match places.hold(parent) {
                Ok(()) => deep.push(parent),
                Err(error) => break error,
            }
        };
        assert_eq!((refused, deep.len()), (Error::TooManyOpen, DEEP_MAX / (200 - DEPTH_FREE)));
        for number in 1_000_000..1_050_000 {
            places.put(Inode(number), ROOT, name("many"), ()).unwrap();
            assert!(places.known.len() <= 2 * COUNT_MAX + 40 * DEPTH_FREE);
        }
        assert_eq!(places.path(Inode(3)).unwrap(), b"home/user");
        assert!(deep.iter().all(|&inode| places.path(inode).is_ok_and(|path| path.len() == 399)));
        places.hold(Inode(1_049_999)).unwrap();
        // They are held once, however often that is said, and give back all of it.
        places.hold(deep[0]).unwrap();
        deep.iter().for_each(|&inode| places.release(inode));
        places.remove(Inode(3));
        assert_eq!(places.deep, 0);
    }

    #[test]
    fn there_is_an_end_of_depth() {
        let mut places = Places::new(ROOT, ());
        let (mut parent, mut depth) = (ROOT, 0);
        while places.put(Inode(2 + depth), parent, name("x"), ()).is_ok() {
            parent = Inode(2 + depth);
            depth += 1;
        }
        assert_eq!(depth, DEPTH_MAX as u64);
        let long = "y".repeat(255);
        let (mut parent, mut depth) = (ROOT, 0);
        while places.put(Inode(1000 + depth), parent, name(&long), ()).is_ok() {
            parent = Inode(1000 + depth);
            depth += 1;
        }
        assert_eq!(depth, (PATH_MAX / 256) as u64);
    }
}
