//! Locks of files: those of `flock`, of processes, and of open files. They keep nobody from a file who does not ask for a lock himself.

use crate::errno::{EAGAIN, ENOLCK, Result};
use crate::machine::Tid;
use crate::places::shorten;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// Locks at once, at most.
const LOCKS_MAX: usize = 8192;

/// The last byte that a lock can have.
pub const LAST: u64 = i64::MAX as u64;

/// Owner of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Owner {
    /// A process.
    Process(Tid),
    /// An open file, by its address.
    Open(usize),
}

/// A lock of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lock {
    /// Its owner.
    pub owner: Owner,
    /// Whether no other may have one at the same time.
    pub is_exclusive: bool,
    /// The first byte.
    pub first: u64,
    /// The last byte.
    pub last: u64,
}

impl Lock {
    fn meets(&self, other: &Lock) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    fn touches(&self, other: &Lock) -> bool {
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }

    fn keeps_out(&self, other: &Lock) -> bool {
        self.owner != other.owner && (self.is_exclusive || other.is_exclusive) && self.meets(other)
    }
}

/// Locks of all files, by inode. Locks of `flock` and others do not meet.
#[derive(Debug, Default)]
pub struct Locks {
    bytes: BTreeMap<u64, Vec<Lock>>,
    files: BTreeMap<u64, Vec<Lock>>,
    /// Files of which each owner has locks.
    owners: BTreeMap<Owner, BTreeSet<u64>>,
    count: usize,
}

/// Kind of locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Locks of ranges of bytes: `fcntl`.
    Bytes,
    /// Locks of files: `flock`.
    File,
}

impl Locks {
    fn of(&mut self, kind: Kind) -> &mut BTreeMap<u64, Vec<Lock>> {
        match kind {
            Kind::Bytes => &mut self.bytes,
            Kind::File => &mut self.files,
        }
    }

    /// Locks that there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Places of all lists.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.bytes.values().chain(self.files.values()).map(Vec::capacity).sum()
    }

    /// The first lock that keeps a wanted one out.
    pub fn find(&mut self, kind: Kind, inode: u64, wanted: &Lock) -> Option<Lock> {
        let locks = self.of(kind).get(&inode)?;
        locks.iter().filter(|lock| lock.keeps_out(wanted)).min_by_key(|lock| lock.first).copied()
    }

    /// Adds a lock, in place of those that the owner has there.
    ///
    /// `EAGAIN`: another one keeps it out. `ENOLCK`: there are too many.
    pub fn add(&mut self, kind: Kind, inode: u64, lock: Lock) -> Result<()> {
        if self.find(kind, inode, &lock).is_some() {
            return Err(EAGAIN);
        }
        // A lock in the middle of another one leaves two pieces.
        if self.count + 2 > LOCKS_MAX {
            return Err(ENOLCK);
        }
        self.remove(kind, inode, &lock);
        let locks = self.of(kind).entry(inode).or_default();
        let mut whole = lock;
        let before = locks.len();
        locks.retain(|other| {
            let is_part =
                other.owner == lock.owner && other.is_exclusive == lock.is_exclusive && other.touches(&lock);
            if is_part {
                whole.first = whole.first.min(other.first);
                whole.last = whole.last.max(other.last);
            }
            !is_part
        });
        let joined = before - locks.len();
        locks.push(whole);
        shorten(locks);
        self.count = self.count + 1 - joined;
        self.owners.entry(lock.owner).or_default().insert(inode);
        Ok(())
    }

    /// Removes what an owner has locked of a range. Whether it was anything.
    pub fn remove(&mut self, kind: Kind, inode: u64, range: &Lock) -> bool {
        let Some(locks) = self.of(kind).get_mut(&inode) else { return false };
        let (before, mut rest) = (locks.len(), Vec::new());
        let mut is_changed = false;
        locks.retain(|lock| {
            if lock.owner != range.owner || !lock.meets(range) {
                return true;
            }
            is_changed = true;
            if lock.first < range.first {
                rest.push(Lock { last: range.first - 1, ..*lock });
            }
            if lock.last > range.last {
                rest.push(Lock { first: range.last + 1, ..*lock });
            }
            false
        });
        locks.append(&mut rest);
        shorten(locks);
        let (after, is_empty) = (locks.len(), locks.is_empty());
        if is_empty {
            self.of(kind).remove(&inode);
        }
        self.count = self.count + after - before;
        if is_changed {
            self.forget_owner(range.owner, inode);
        }
        is_changed
    }

    /// Whether processes have locks of bytes of a file.
    pub fn has_bytes(&self, inode: u64) -> bool {
        self.bytes.contains_key(&inode)
    }

    /// An owner may have no lock of a file any more.
    fn forget_owner(&mut self, owner: Owner, inode: u64) {
        let has = |locks: &BTreeMap<u64, Vec<Lock>>| {
            locks.get(&inode).is_some_and(|locks| locks.iter().any(|lock| lock.owner == owner))
        };
        if has(&self.bytes) || has(&self.files) {
            return;
        }
        if let Some(inodes) = self.owners.get_mut(&owner) {
            inodes.remove(&inode);
            if inodes.is_empty() {
                self.owners.remove(&owner);
            }
        }
    }

    /// Removes locks of processes from a file that no process has open any more. Whether there were some.
    pub fn forget(&mut self, inode: u64) -> bool {
        let Some(locks) = self.bytes.get_mut(&inode) else { return false };
        let before = locks.len();
        let owners: Vec<Owner> = locks.iter().map(|lock| lock.owner).collect();
        locks.retain(|lock| matches!(lock.owner, Owner::Open(_)));
        shorten(locks);
        let (removed, is_empty) = (before - locks.len(), locks.is_empty());
        if is_empty {
            self.bytes.remove(&inode);
        }
        self.count -= removed;
        owners.into_iter().for_each(|owner| self.forget_owner(owner, inode));
        removed > 0
    }

    /// Removes all locks of an owner: the files of which it had some.
    pub fn remove_all(&mut self, owner: Owner) -> Vec<u64> {
        let Some(inodes) = self.owners.get(&owner).cloned() else { return Vec::new() };
        let all = Lock { owner, is_exclusive: false, first: 0, last: LAST };
        for inode in &inodes {
            self.remove(Kind::Bytes, *inode, &all);
            self.remove(Kind::File, *inode, &all);
        }
        inodes.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random locks against a model that knows each byte.
    #[test]
    fn locks_and_bytes_agree() {
        let mut random = 1u64;
        let mut below = move |end: u64| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (random >> 33) % end
        };
        for _ in 0..200 {
            let mut locks = Locks::default();
            let mut bytes = [[None; 3]; 32];
            for _ in 0..100 {
                let (owner, first) = (below(3) as usize, below(32));
                let last = first + below(32 - first);
                let is_exclusive = below(2) == 0;
                let lock = Lock { owner: Owner::Process(owner as u32), is_exclusive, first, last };
                let range = first as usize..=last as usize;
                if below(3) == 0 {
                    let had = bytes[range.clone()].iter().any(|byte| byte[owner].is_some());
                    assert_eq!(locks.remove(Kind::Bytes, 1, &lock), had);
                    bytes[range].iter_mut().for_each(|byte| byte[owner] = None);
                    continue;
                }
                let is_kept_out = bytes[range.clone()].iter().any(|byte| {
                    let others = (0..3).filter(|other| *other != owner);
                    others.filter_map(|other| byte[other]).any(|other| other || is_exclusive)
                });
                assert_eq!(locks.find(Kind::Bytes, 1, &lock).is_some(), is_kept_out);
                assert_eq!(locks.add(Kind::Bytes, 1, lock).is_ok(), !is_kept_out);
                if !is_kept_out {
                    bytes[range].iter_mut().for_each(|byte| byte[owner] = Some(is_exclusive));
                }
                // There are as many locks as pieces.
                let mut pieces = 0;
                for owner in 0..3 {
                    let mut before = None;
                    for byte in bytes {
                        pieces += usize::from(byte[owner].is_some() && byte[owner] != before);
                        before = byte[owner];
                    }
                }
                assert_eq!(locks.count(), pieces);
            }
            (0..3).for_each(|owner| drop(locks.remove_all(Owner::Process(owner))));
            assert_eq!((locks.count(), locks.bytes.len(), locks.owners.len()), (0, 0, 0));
        }
    }
}
