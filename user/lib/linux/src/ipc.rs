//! Objects that processes share by number or by name, and that outlast them: those of System V's ipc, and queues of POSIX.
//!
//! An [`Object`] of System V has an identifier, by which all know it, and mostly a key, by which it is found. [`Ids`] are all objects of a kind. Since nobody's
//! end gives them back, they have their bytes from [`Lasting`], a part of the budget. Numbers are in [`numbers`].

pub mod numbers;

use crate::budget::{Budget, Share};
use crate::errno::{ENOSPC, Result};
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use core::cell::Cell;

/// Part of the budget that all of it may have, which nobody's end gives back: one of so many.
const PART: usize = 4;

/// Bits of an identifier that are a place among objects. The others tell objects apart that have had one place.
const PLACE_BITS: u32 = 15;

/// Places that are used before the first one is used again, at least.
const PLACES_MIN: u32 = 64;

/// Largest upper part of an identifier.
const SEQUENCE_MAX: u32 = i32::MAX as u32 >> PLACE_BITS;

/// Most objects of a kind.
pub const OBJECTS_MAX: usize = 1024;

/// Bytes of the budget that what outlasts its processes has.
#[derive(Clone, Debug, Default)]
pub struct Lasting(Rc<Cell<usize>>);

/// A share of the budget that outlasts its process, which has it back at the end of this.
#[derive(Debug)]
pub struct LastingShare {
    share: Share,
    all: Lasting,
}

impl Lasting {
    /// A share, if the process that is served may have so much, and no more than a part of the budget outlasts processes then.
    pub fn take(&self, budget: &Budget, bytes: usize) -> Option<LastingShare> {
        let used = self.0.get();
        if used.saturating_add(bytes) > budget.max() / PART {
            return None;
        }
        let share = budget.take(bytes)?;
        self.0.set(used + bytes);
        Some(LastingShare { share, all: self.clone() })
    }

    /// Bytes that are had.
    pub fn bytes(&self) -> usize {
        self.0.get()
    }
}

impl Drop for LastingShare {
    fn drop(&mut self) {
        self.all.0.set(self.all.0.get().saturating_sub(self.share.bytes()));
    }
}

/// Owner and permissions of an object: `struct ipc64_perm`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permissions {
    /// The key by which it is found; 0: none.
    pub key: i32,
    /// Owner and group.
    pub owner: (u32, u32),
    /// Owner and group of the process that has made it.
    pub maker: (u32, u32),
    /// Permissions, and marks of a segment.
    pub mode: u32,
    /// Upper part of its identifier.
    pub sequence: u16,
}

impl Permissions {
    /// Permissions of an object that is made with flags, by a process with an owner and a group.
    pub fn new(key: i32, flags: u32, maker: (u32, u32)) -> Permissions {
        Permissions { key, owner: maker, maker, mode: flags & numbers::PERMISSIONS, sequence: 0 }
    }

    /// The structure that a process sees.
    pub fn bytes(&self) -> [u8; numbers::PERMISSIONS_BYTES] {
        let mut bytes = [0; numbers::PERMISSIONS_BYTES];
        let halves = [
            self.key as u32,
            self.owner.0,
            self.owner.1,
            self.maker.0,
            self.maker.1,
            self.mode,
            self.sequence.into(),
        ];
        for (place, half) in bytes.chunks_exact_mut(4).zip(halves) {
            place.copy_from_slice(&half.to_le_bytes());
        }
        bytes
    }

    /// Takes owner, group and permissions from the structure of a process.
    pub fn set(&mut self, from: &[u8; numbers::PERMISSIONS_BYTES]) {
        let half = |at: usize| from[at..].first_chunk().map_or(0, |half| u32::from_le_bytes(*half));
        self.owner = (half(4), half(8));
        self.mode = self.mode & !numbers::PERMISSIONS | half(20) & numbers::PERMISSIONS;
    }
}

/// An object of System V.
#[derive(Debug)]
pub struct Object<T> {
    /// Its owner and permissions.
    pub permissions: Permissions,
    /// When it was made, or changed by a command, in seconds since 1970.
    pub changed: u64,
    /// The object itself.
    pub of: T,
    /// Share of the budget that it has.
    _share: LastingShare,
}

/// All objects of a kind, by their places.
#[derive(Debug)]
pub struct Ids<T> {
    all: BTreeMap<u32, Object<T>>,
    /// The place that was given last.
    last: u32,
    sequence: u32,
}

impl<T> Default for Ids<T> {
    fn default() -> Ids<T> {
        Ids { all: BTreeMap::new(), last: u32::MAX, sequence: 0 }
    }
}

/// Place of an identifier, and its upper part.
fn parts(id: i32) -> Option<(u32, u32)> {
    let id = u32::try_from(id).ok()?;
    Some((id & ((1 << PLACE_BITS) - 1), id >> PLACE_BITS))
}

fn id_of(place: u32, sequence: u32) -> i32 {
    (sequence << PLACE_BITS | place).cast_signed()
}

impl<T> Ids<T> {
    /// Adds an object. `ENOSPC`: there are too many, or it has no share of the budget.
    pub fn add(
        &mut self,
        mut permissions: Permissions,
        changed: u64,
        of: T,
        share: Option<LastingShare>,
    ) -> Result<i32> {
        let share = share.filter(|_| self.all.len() < OBJECTS_MAX).ok_or(ENOSPC)?;
        // Places are taken in turn, as in Linux, so that an identifier is not soon another one's.
        let places = PLACES_MIN.max(self.all.len() as u32 * 3 / 2 + 1);
        let next = self.last.wrapping_add(1);
        let mut free = (next..places).chain(0..places).filter(|place| !self.all.contains_key(place));
        let place = free.next().ok_or(ENOSPC)?;
        if place <= self.last && self.last != u32::MAX {
            self.sequence = if self.sequence == SEQUENCE_MAX { 0 } else { self.sequence + 1 };
        }
        self.last = place;
        permissions.sequence = self.sequence as u16;
        self.all.insert(place, Object { permissions, changed, of, _share: share });
        Ok(id_of(place, self.sequence))
    }

    /// The object of an identifier.
    pub fn get(&self, id: i32) -> Option<&Object<T>> {
        let (place, sequence) = parts(id)?;
        self.all.get(&place).filter(|found| u32::from(found.permissions.sequence) == sequence)
    }

    /// The object of an identifier, to change it.
    pub fn get_mut(&mut self, id: i32) -> Option<&mut Object<T>> {
        let (place, sequence) = parts(id)?;
        self.all.get_mut(&place).filter(|found| u32::from(found.permissions.sequence) == sequence)
    }

    /// Removes an object.
    pub fn remove(&mut self, id: i32) -> Option<Object<T>> {
        self.get(id)?;
        self.all.remove(&parts(id)?.0)
    }

    /// The object with a key.
    pub fn of_key(&self, key: i32) -> Option<(i32, &Object<T>)> {
        self.iter().find(|(_, object)| object.permissions.key == key)
    }

    /// Identifier of the object at a place.
    pub fn at(&self, place: i32) -> Option<i32> {
        let place = u32::try_from(place).ok()?;
        self.all.get(&place).map(|found| id_of(place, found.permissions.sequence.into()))
    }

    /// The highest place that is used; 0 if none is.
    pub fn highest(&self) -> u32 {
        self.all.keys().next_back().copied().unwrap_or(0)
    }

    /// Objects that there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// All objects, by their identifiers.
    pub fn iter(&self) -> impl Iterator<Item = (i32, &Object<T>)> {
        self.all.iter().map(|(place, found)| (id_of(*place, found.permissions.sequence.into()), found))
    }

    /// All objects, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (i32, &mut Object<T>)> {
        self.all.iter_mut().map(|(place, found)| (id_of(*place, found.permissions.sequence.into()), found))
    }

    /// Removes objects that are not to be kept.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&Object<T>) -> bool) {
        self.all.retain(|_, object| is_kept(object));
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Ids, Lasting, OBJECTS_MAX, Permissions};
    use crate::errno::ENOSPC;

    #[test]
    fn an_identifier_is_not_soon_another_ones() {
        let (budget, lasting) = (Budget::default(), Lasting::default());
        let mut ids = Ids::default();
        let add = |ids: &mut Ids<u32>, key| {
            ids.add(Permissions::new(key, 0o1666, (1, 2)), 0, 5, lasting.take(&budget, 100))
        };
        assert_eq!((add(&mut ids, 1), add(&mut ids, 2)), (Ok(0), Ok(1)));
        assert_eq!(ids.of_key(2).map(|(id, _)| id), Some(1));
        ids.remove(1).unwrap();
        for expected in 2..64 {
            assert_eq!(add(&mut ids, 0), Ok(expected));
            ids.remove(expected).unwrap();
        }
        assert_eq!(add(&mut ids, 0), Ok(1 << 15 | 1), "the first place is used");
        assert!(ids.get(1).is_none() && ids.get(-1).is_none() && ids.get(32767).is_none());
        assert_eq!((ids.at(1), ids.highest(), ids.count()), (Some(1 << 15 | 1), 1, 2));
        assert_eq!(lasting.bytes(), 200);
        drop(ids);
        assert_eq!((lasting.bytes(), budget.used()), (0, 0));
    }

    #[test]
    fn objects_have_a_part_of_the_budget() {
        let (budget, lasting) = (Budget::new(4000), Lasting::default());
        let mut ids = Ids::default();
        let mut add = |bytes| ids.add(Permissions::new(0, 0, (0, 0)), 0, (), lasting.take(&budget, bytes));
        assert_eq!((add(900), add(101), add(100), add(1)), (Ok(0), Err(ENOSPC), Ok(1), Err(ENOSPC)));
        for _ in 2..OBJECTS_MAX {
            assert!(add(0).is_ok());
        }
        assert_eq!(add(0), Err(ENOSPC));
    }

    #[test]
    fn permissions_are_a_structure() {
        let mut permissions = Permissions::new(-2, 0o3640, (1, 2));
        permissions.sequence = 9;
        let mut bytes = permissions.bytes();
        assert_eq!(bytes[..8], [0xfe, 0xff, 0xff, 0xff, 1, 0, 0, 0]);
        assert_eq!((bytes[20..24].to_vec(), bytes[24]), (0o640u32.to_le_bytes().to_vec(), 9));
        (bytes[4], bytes[8], bytes[21]) = (3, 4, 0xff);
        permissions.set(&bytes);
        assert_eq!((permissions.owner, permissions.maker, permissions.mode), ((3, 4), (1, 2), 0o640));
    }
}
