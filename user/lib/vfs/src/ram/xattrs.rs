//! Extended attributes of an inode in memory.

use super::OVERHEAD;
use crate::{Before, Error, Result, XATTR_BYTES_MAX, XATTR_NAME_MAX};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Extended attributes by their names. All of an inode have no more than [`XATTR_BYTES_MAX`] bytes, names and values together, as on a disk.
#[derive(Debug, Default)]
pub(super) struct Xattrs(BTreeMap<Vec<u8>, Vec<u8>>);

impl Xattrs {
    pub fn get(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.0.get(name).cloned().ok_or(Error::NotFound)
    }

    /// Names with a zero behind each.
    pub fn names(&self) -> Vec<u8> {
        self.0.keys().flat_map(|name| name.iter().copied().chain([0])).collect()
    }

    /// Sets one, if what it weighs more than the one before is at most `free`.
    pub fn set(&mut self, name: &[u8], value: &[u8], before: Before, free: u64) -> Result<()> {
        if name.is_empty() || name.contains(&0) {
            return Err(Error::Invalid);
        }
        if name.len() > XATTR_NAME_MAX {
            return Err(Error::NameTooLong);
        }
        let known = self.0.get(name);
        match (before, known) {
            (Before::None, Some(_)) => return Err(Error::Exists),
            (Before::One, None) => return Err(Error::NotFound),
            _ => {}
        }
        let (old, new) = (known.map_or(0, |known| weight(name, known)), weight(name, value));
        let bytes =
            self.bytes() + name.len() + value.len() - known.map_or(0, |known| name.len() + known.len());
        if bytes > XATTR_BYTES_MAX || new > old + free {
            return Err(Error::NoSpace);
        }
        self.0.insert(name.to_vec(), value.to_vec());
        Ok(())
    }

    pub fn remove(&mut self, name: &[u8]) -> Result<()> {
        self.0.remove(name).map(drop).ok_or(Error::NotFound)
    }

    /// Bytes that all count for.
    pub fn weight(&self) -> u64 {
        self.0.iter().map(|(name, value)| weight(name, value)).sum()
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

fn weight(name: &[u8], value: &[u8]) -> u64 {
    OVERHEAD + (name.len() + value.len()) as u64
}
