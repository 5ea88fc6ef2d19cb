//! Entries of a directory, and cursors that are one number.
//!
//! The lowest cursors are offsets in a directory without an index. Bit 63 says that it is a hash, of an indexed one: its upper half without
//! the lowest bit, which is always 0, and its lower half. Hash 0 and offset 0 are both the beginning.

use crate::disk::Disk;
use crate::{Library, error, inode, kind};
use alloc::vec::Vec;
use rsext4::{DirectoryCursor, DirectoryEntry, InodeNumber};
use vfs::{Entry, Error, Result};

/// Cursor of an indexed directory.
const HASH: u64 = 1 << 63;

/// Cursor behind the last entry.
const END: u64 = u64::MAX;

/// A cursor as the library has it.
fn place(cursor: u64) -> DirectoryCursor {
    match cursor {
        0 => DirectoryCursor::Start,
        END => DirectoryCursor::End,
        _ if cursor & HASH != 0 => {
            DirectoryCursor::HTree { major: (cursor >> 31) as u32 & !1, minor: cursor as u32, collision: 0 }
        }
        offset => DirectoryCursor::Linear { offset },
    }
}

/// A cursor as one number. None between names whose hashes are equal.
fn cursor(place: DirectoryCursor) -> Option<u64> {
    match place {
        DirectoryCursor::Start => Some(0),
        DirectoryCursor::End => Some(END),
        DirectoryCursor::Linear { offset } => (offset < HASH).then_some(offset),
        DirectoryCursor::HTree { major, minor, collision: 0 } => {
            Some(HASH | u64::from(major >> 1) << 32 | u64::from(minor))
        }
        DirectoryCursor::HTree { .. } => None,
    }
}

fn is_itself(entry: &DirectoryEntry) -> bool {
    matches!(entry.name.as_slice(), b"." | b"..")
}

/// At most so many entries from a cursor on, without `.` and `..`.
pub fn read<D: Disk>(
    fs: &mut Library<D>,
    directory: InodeNumber,
    from: u64,
    count_max: usize,
) -> Result<Vec<Entry>> {
    let mut at = place(from);
    // Three rounds: two of them may have nothing but `.` or `..`.
    for _ in 0..3 {
        if at == DirectoryCursor::End {
            break;
        }
        let found = fs.read_directory(directory, at, count_max).map_err(error)?;
        let Some(last) = found.last() else { break };
        at = last.next_cursor;
        let entries = whole(found)?;
        if !entries.is_empty() {
            return Ok(entries);
        }
    }
    Ok(Vec::new())
}

/// Entries up to the last that has a cursor behind it. Those in front of it whose hashes are equal have the cursor behind all of them.
fn whole(found: Vec<DirectoryEntry>) -> Result<Vec<Entry>> {
    let mut next = None;
    let mut entries = Vec::with_capacity(found.len());
    for entry in found.into_iter().rev() {
        next = cursor(entry.next_cursor).or(next);
        let Some(next) = next else { continue };
        if !is_itself(&entry) {
            entries.push(Entry {
                inode: inode(entry.inode),
                kind: kind(entry.file_type),
                name: entry.name,
                next,
            });
        }
    }
    if next.is_none() {
        return Err(Error::Unsupported);
    }
    entries.reverse();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_one_number() {
        for at in [
            DirectoryCursor::Start,
            DirectoryCursor::End,
            DirectoryCursor::Linear { offset: 24 },
            DirectoryCursor::HTree { major: 2, minor: 0, collision: 0 },
            DirectoryCursor::HTree { major: 0xffff_fffc, minor: 0xffff_ffff, collision: 0 },
        ] {
            assert_eq!(cursor(at).map(place), Some(at));
        }
        assert_eq!(cursor(DirectoryCursor::HTree { major: 2, minor: 1, collision: 1 }), None);
    }
}
