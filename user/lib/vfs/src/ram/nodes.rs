//! Inodes of a file system in memory, by their numbers.

use super::Node;
use crate::{Error, Inode, Result};
use alloc::vec::Vec;
use core::mem::replace;

/// Inodes in a list. Each call looks for one, so it is found without a search: the lower half of its number is its place, counted from 1, and the upper half says how
/// many have been there before. So no number comes again.
#[derive(Debug)]
pub(super) struct Nodes<P> {
    places: Vec<Place<P>>,
    /// The first free place, or the end of the list.
    free: usize,
    pub count: usize,
}

#[derive(Debug)]
enum Place<P> {
    Used(Node<P>),
    Free {
        /// The next free place, or the end of the list.
        next: usize,
        /// Inodes that were here.
        before: u32,
    },
}

/// Where an inode with that number is, if it is there.
fn place_of(inode: Inode) -> usize {
    // No inode is in place 0, so its number leads to none.
    (inode.0 as u32).wrapping_sub(1) as usize
}

impl<P> Nodes<P> {
    pub const fn new() -> Nodes<P> {
        Nodes { places: Vec::new(), free: 0, count: 0 }
    }

    pub fn get(&self, inode: Inode) -> Option<&Node<P>> {
        match self.places.get(place_of(inode)) {
            Some(Place::Used(node)) if node.attributes.inode == inode => Some(node),
            _ => None,
        }
    }

    pub fn get_mut(&mut self, inode: Inode) -> Option<&mut Node<P>> {
        match self.places.get_mut(place_of(inode)) {
            Some(Place::Used(node)) if node.attributes.inode == inode => Some(node),
            _ => None,
        }
    }

    /// There is a place for one more, if there is memory.
    pub fn make_room(&mut self) -> Result<()> {
        if self.free == self.places.len() {
            if self.free >= u32::MAX as usize {
                return Err(Error::NoSpace);
            }
            self.places.try_reserve(1).map_err(|_| Error::NoSpace)?;
            self.places.push(Place::Free { next: self.free + 1, before: 0 });
        }
        Ok(())
    }

    /// Puts an inode there, and says its number to it. There is [room](Nodes::make_room).
    pub fn insert(&mut self, mut node: Node<P>) -> Inode {
        let number = self.free as u64 + 1;
        let Some(place) = self.places.get_mut(self.free) else { return Inode(number) };
        let Place::Free { next, before } = *place else { return Inode(number) };
        let inode = Inode(u64::from(before) << 32 | number);
        node.attributes.inode = inode;
        *place = Place::Used(node);
        self.free = next;
        self.count += 1;
        inode
    }

    pub fn remove(&mut self, inode: Inode) -> Option<Node<P>> {
        self.get(inode)?;
        let number = place_of(inode);
        let before = (inode.0 >> 32) as u32;
        let place = self.places.get_mut(number)?;
        let Place::Used(node) =
            replace(place, Place::Free { next: self.free, before: before.wrapping_add(1) })
        else {
            return None;
        };
        self.count -= 1;
        // A place that has had all numbers is not used any more.
        if before < u32::MAX {
            self.free = number;
        }
        Some(node)
    }
}
