//! A table of threads or processes by their numbers: found at once, and in order.

use crate::machine::Tid;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Values by the numbers of threads, which are small. A lookup is two loads, whatever the table's size: every call begins with some.
#[derive(Debug)]
pub struct Table<T> {
    /// By number: the place in `slots`, from 1 on; 0 for none.
    places: Vec<u32>,
    slots: Vec<Option<(Tid, T)>>,
    /// Slots without a value.
    free: Vec<u32>,
    order: BTreeMap<Tid, u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { places: Vec::new(), slots: Vec::new(), free: Vec::new(), order: BTreeMap::new() }
    }
}

impl<T> Table<T> {
    /// An empty one.
    pub fn new() -> Table<T> {
        Table::default()
    }

    fn slot(&self, tid: Tid) -> Option<usize> {
        let place = *self.places.get(tid as usize)? as usize;
        place.checked_sub(1)
    }

    /// The value of a number.
    #[inline]
    pub fn get(&self, tid: &Tid) -> Option<&T> {
        self.slots.get(self.slot(*tid)?)?.as_ref().map(|(_, value)| value)
    }

    /// The value of a number, to be changed.
    #[inline]
    pub fn get_mut(&mut self, tid: &Tid) -> Option<&mut T> {
        let slot = self.slot(*tid)?;
        self.slots.get_mut(slot)?.as_mut().map(|(_, value)| value)
    }

    /// Whether a number has a value.
    pub fn contains_key(&self, tid: &Tid) -> bool {
        self.slot(*tid).is_some()
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Gives a number a value. The value that it had comes back.
    pub fn insert(&mut self, tid: Tid, value: T) -> Option<T> {
        let before = self.remove(&tid);
        if self.places.len() <= tid as usize {
            self.places.resize(tid as usize + 1, 0);
        }
        let entry = Some((tid, value));
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                self.slots.len() as u32 - 1
            }
        };
        self.places[tid as usize] = slot + 1;
        self.order.insert(tid, slot);
        before
    }

    /// Takes the value of a number.
    pub fn remove(&mut self, tid: &Tid) -> Option<T> {
        let slot = self.slot(*tid)?;
        self.places[*tid as usize] = 0;
        self.order.remove(tid);
        self.free.push(slot as u32);
        self.slots.get_mut(slot)?.take().map(|(_, value)| value)
    }

    /// Numbers and values, from the smallest number on.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Tid, &T)> + Clone {
        let value = |slot: &u32| self.slots.get(*slot as usize)?.as_ref().map(|(_, value)| value);
        self.order.iter().filter_map(move |(tid, slot)| value(slot).map(|value| (tid, value)))
    }

    /// Numbers and values, to be changed, in no order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Tid, &mut T)> {
        self.slots.iter_mut().flatten().map(|(tid, value)| (&*tid, value))
    }

    /// Values, to be changed, in no order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten().map(|(_, value)| value)
    }

    /// Numbers, from the smallest on.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Tid> + Clone {
        self.order.keys()
    }

    /// Values, in the order of their numbers.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &T> + Clone {
        self.iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
impl<T> core::ops::Index<&Tid> for Table<T> {
    type Output = T;

    /// # Panics
    ///
    /// If the number has no value.
    fn index(&self, tid: &Tid) -> &T {
        self.get(tid).expect("a number without a value")
    }
}

#[cfg(test)]
mod tests {
    use super::Table;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    /// It is a map, whatever is done with it.
    #[test]
    fn a_table_is_a_map() {
        let (mut table, mut map) = (Table::new(), BTreeMap::new());
        let mut random = 1u64;
        for _ in 0..10_000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let (tid, value) = ((random >> 33) as u32 % 20, random >> 40);
            if value.is_multiple_of(3) {
                assert_eq!(table.remove(&tid), map.remove(&tid));
            } else {
                assert_eq!(table.insert(tid, value), map.insert(tid, value));
            }
            assert_eq!(table.iter().collect::<Vec<_>>(), map.iter().collect::<Vec<_>>());
            assert_eq!(table.get(&tid), map.get(&tid));
            assert_eq!(table.get_mut(&tid), map.get_mut(&tid));
            let mut all: Vec<_> = table.iter_mut().map(|(tid, value)| (*tid, *value)).collect();
            all.sort_unstable();
            assert_eq!(all, map.iter().map(|(tid, value)| (*tid, *value)).collect::<Vec<_>>());
            assert_eq!(table.len(), map.len());
        }
    }
}
