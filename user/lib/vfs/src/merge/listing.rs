//! Lists of a directory's entries, and cursors that say how far one has come in which of both file systems.

use super::{Merge, lookup};
use crate::{Entry, Error, FileSystem, Inode, Name, Result};
use alloc::vec::Vec;

/// Side whose entries are listed. The lower one is first: it stays as it is, so no entry moves from one part of the list to the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Lower,
    Upper,
}

/// A cursor that is a large number, such as ext4's hashes, loses its lowest bit.
const LARGE: u64 = 1 << 63;

/// The bit in a large cursor that says which side it is of.
const LARGE_UPPER: u64 = 1 << 62;

impl<U: FileSystem, L: FileSystem> Merge<U, L> {
    /// Takes the rows of entries of one side together, and numbers them.
    pub(super) fn merged(
        &mut self,
        directory: Inode,
        side: Side,
        entries: Vec<Entry>,
        from: u64,
    ) -> Result<Vec<Entry>> {
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

/// A cursor of one side as one of both.
fn to_cursor(side: Side, cursor: u64) -> Option<u64> {
    let is_upper = side == Side::Upper;
    if cursor & LARGE != 0 {
        return Some(LARGE | if is_upper { LARGE_UPPER } else { 0 } | (cursor & !LARGE) >> 1);
    }
    (cursor < LARGE_UPPER).then_some(cursor << 1 | u64::from(is_upper))
}

/// The side of a cursor, and its own cursor.
pub(super) fn from_cursor(cursor: u64) -> (Side, u64) {
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
