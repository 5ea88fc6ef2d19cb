//! Names and attributes that were found in a file system of somebody else's, as long as nobody has changed anything there.
//!
//! The other side counts changes. Whatever was found is of use while the count is the one that is known here, and all of it goes when the count is
//! another one. A change of one's own counts one, so that its maker forgets what it concerns and goes on with the rest.
//!
//! The count is never ahead of the other side's, so equal counts mean that there was no change that is not known here.

use crate::{Attributes, Inode};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Names, attributes and targets together, at most. When there are more, all go.
const COUNT_MAX: usize = 16_384;

/// Bytes of names and targets together, at most. When there are more, all go.
const BYTES_MAX: usize = 1 << 20;

/// Names, attributes and targets of links that were found.
#[derive(Default, Debug)]
pub struct Found {
    /// Changes that the other side has counted; 0 if that is not known.
    changes: u64,
    attributes: BTreeMap<Inode, Attributes>,
    /// Names of directories, also those that are not there.
    names: BTreeMap<Inode, BTreeMap<Box<[u8]>, Option<Inode>>>,
    targets: BTreeMap<Inode, Vec<u8>>,
    count: usize,
    /// Of names and targets.
    bytes: usize,
    /// How often others may have changed something.
    others: u64,
}

impl Found {
    /// The other side has counted so many changes; 0 says that it does not count. Whether what was found is of use.
    pub fn look(&mut self, changes: u64) -> bool {
        if changes != self.changes {
            self.forget();
            self.changes = changes;
            self.others += 1;
        }
        changes != 0
    }

    /// How often it was found that others may have changed something.
    pub fn others(&self) -> u64 {
        self.others
    }

    /// Forgets all.
    pub fn forget(&mut self) {
        *self = Found { others: self.others, ..Found::default() };
    }

    /// So many changes of one's own were made, after all that they concern was forgotten.
    pub fn has_changed(&mut self, count: u64) {
        if self.changes > 0 {
            self.changes += count;
        }
    }

    /// Whether one more is noted, with so many bytes: not if nobody counts changes.
    fn grows(&mut self, bytes: usize) -> bool {
        self.count += 1;
        self.bytes += bytes;
        if self.count > COUNT_MAX || self.bytes > BYTES_MAX {
            *self = Found { changes: self.changes, count: 1, bytes, others: self.others, ..Found::default() };
        }
        self.changes > 0
    }

    /// Attributes of an inode.
    pub fn attributes(&self, inode: Inode) -> Option<&Attributes> {
        self.attributes.get(&inode)
    }

    /// Notes attributes.
    pub fn put_attributes(&mut self, attributes: Attributes) {
        if self.grows(0) {
            self.attributes.insert(attributes.inode, attributes);
        }
    }

    /// An inode's attributes may be others now.
    pub fn forget_attributes(&mut self, inode: Inode) {
        self.attributes.remove(&inode);
    }

    /// The inode of a name, or that there is none.
    pub fn name(&self, directory: Inode, name: &[u8]) -> Option<Option<Inode>> {
        self.names.get(&directory)?.get(name).copied()
    }

    /// Notes a name.
    pub fn put_name(&mut self, directory: Inode, name: &[u8], inode: Option<Inode>) {
        if self.grows(name.len()) {
            self.names.entry(directory).or_default().insert(name.into(), inode);
        }
    }

    /// A name of a directory is made, moved or removed.
    pub fn forget_name(&mut self, directory: Inode, name: &[u8]) {
        if let Some(names) = self.names.get_mut(&directory) {
            names.remove(name);
        }
        self.attributes.remove(&directory);
    }

    /// An inode may be used for something else from now on.
    pub fn forget_inode(&mut self, inode: Inode) {
        self.attributes.remove(&inode);
        self.names.remove(&inode);
        self.targets.remove(&inode);
    }

    /// Where a symbolic link leads.
    pub fn target(&self, link: Inode) -> Option<&Vec<u8>> {
        self.targets.get(&link)
    }

    /// Notes where a symbolic link leads.
    pub fn put_target(&mut self, link: Inode, target: &[u8]) {
        if self.grows(target.len()) {
            self.targets.insert(link, target.to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_changes_make_all_unknown_and_own_ones_a_part() {
        let mut found = Found::default();
        assert!(!found.look(0));
        assert!(found.look(7));
        found.put_name(Inode(1), b"a", Some(Inode(2)));
        found.put_name(Inode(1), b"b", None);
        found.forget_name(Inode(1), b"a");
        found.has_changed(1);
        assert!(found.look(8));
        assert_eq!((found.name(Inode(1), b"a"), found.name(Inode(1), b"b")), (None, Some(None)));
        assert!(found.look(9));
        assert_eq!(found.name(Inode(1), b"b"), None);
    }

    /// However much is looked for, there is an end.
    #[test]
    fn there_is_an_end() {
        let mut found = Found::default();
        found.look(1);
        for number in 0..10 * COUNT_MAX as u64 {
            found.put_name(Inode(number), b"name", None);
            assert!(found.names.len() <= COUNT_MAX);
        }
        let target = [b'x'; 4000];
        for number in 0..1000 {
            found.put_target(Inode(number), &target);
            assert!(found.targets.len() * target.len() <= BYTES_MAX);
            assert!(found.target(Inode(number)).is_some());
        }
        assert!(found.look(1));
    }
}
