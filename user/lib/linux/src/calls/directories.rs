//! Entries of directories.

use super::files::PIECE_MAX;
use super::number;
use super::stat::inode_number;
use super::way::split;
use crate::errno::{EFAULT, EINVAL};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::node::Node;
use crate::open::Object;
use crate::special::Special;
use crate::store::Store;
use crate::system::{Answer, System};
use alloc::vec::Vec;
use linux_raw_sys::general;
use vfs::path::Last;
use vfs::{FileSystem, Inode, Kind};

/// Bytes of an entry in front of its kind and its name.
const HEAD_BYTES: usize = 18;

/// Entries of a directory that are asked for at once.
const ENTRIES: usize = 64;

/// Place of a program behind the last entry, where a file system's cursor is the greatest number that there is.
const END: u64 = i64::MAX as u64;

/// Place of a program for a cursor of the file system. Those of `.` and `..` are in front of all others; cursors of directories with an index use the highest bit, so such places are negative
/// numbers to a program, which gives them back as it had them.
fn place(cursor: u64) -> u64 {
    if cursor == u64::MAX { END } else { cursor.wrapping_add(2) }
}

/// Adds an entry to others, if there is room for as many bytes: inode and place of the next one, kind, name.
type Put = fn(&mut Vec<u8>, usize, [u64; 2], u32, &[u8]) -> bool;

fn put(bytes: &mut Vec<u8>, room: usize, words: [u64; 2], kind: u32, name: &[u8]) -> bool {
    put_parts(bytes, room, words, [&[kind as u8], name, &[0]])
}

fn put_old(bytes: &mut Vec<u8>, room: usize, words: [u64; 2], kind: u32, name: &[u8]) -> bool {
    let start = bytes.len();
    let is_put = put_parts(bytes, room, words, [name, &[0], &[0]]);
    if let Some(last) = bytes.get_mut(start..).and_then(<[u8]>::last_mut) {
        *last = kind as u8;
    }
    is_put
}

fn put_parts(bytes: &mut Vec<u8>, room: usize, words: [u64; 2], parts: [&[u8]; 3]) -> bool {
    let len = HEAD_BYTES + parts.iter().map(|part| part.len()).sum::<usize>();
    let (start, size) = (bytes.len(), len.next_multiple_of(8));
    if start + size > room {
        return false;
    }
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend_from_slice(&(size as u16).to_le_bytes());
    parts.into_iter().for_each(|part| bytes.extend_from_slice(part));
    bytes.resize(start + size, 0);
    true
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_getdents(&mut self, tid: Tid, [fd, address, len, ..]: [u64; 6]) -> Answer {
        self.entries(tid, fd, (address, len), put)
    }

    /// The kind is behind the name.
    pub(crate) fn sys_old_getdents(&mut self, tid: Tid, [fd, address, len, ..]: [u64; 6]) -> Answer {
        self.entries(tid, fd, (address, len), put_old)
    }

    fn entries(&mut self, tid: Tid, fd: u64, (address, len): (u64, u64), put: Put) -> Answer {
        let open = self.open_file(tid, fd)?;
        let Object::Directory { inode, path } = &open.object else { return Err(crate::errno::ENOTDIR) };
        if let Some(Special::Descriptors(pid)) = Special::of(*inode) {
            self.show_descriptors(pid);
        }
        let room = len.min(PIECE_MAX) as usize;
        let mut bytes = Vec::new();
        let mut at = open.offset.get();
        // The first two are the directory itself and its parent.
        let mut is_full = false;
        while at < 2 && !is_full {
            let (name, found): (&[u8], u64) = match at {
                0 => (b".", inode_number(*inode)),
                _ => (b"..", self.parent_number(*inode, &path.borrow())),
            };
            is_full = !put(&mut bytes, room, [found, at + 1], general::DT_DIR, name);
            at += u64::from(!is_full);
        }
        while !is_full && at != END {
            let entries = self.store.volume.readdir(*inode, at - 2, ENTRIES)?;
            if entries.is_empty() {
                break;
            }
            for entry in entries {
                let kind = match entry.kind {
                    Kind::File => self.file_kind(entry.inode),
                    Kind::Directory => general::DT_DIR,
                    Kind::Symlink => general::DT_LNK,
                    Kind::Special => general::DT_CHR,
                };
                let words = [inode_number(entry.inode), place(entry.next)];
                is_full = !put(&mut bytes, room, words, kind, &entry.name);
                if is_full {
                    break;
                }
                at = place(entry.next);
            }
        }
        if bytes.is_empty() && is_full {
            return Err(EINVAL);
        }
        self.write(tid, address, &bytes).map_err(|_| EFAULT)?;
        if !bytes.is_empty() {
            self.noticed(*inode, general::IN_ACCESS | general::IN_ISDIR);
        }
        open.offset.set(at);
        number(Ok(bytes.len() as u64))
    }

    /// Number of the directory above the one that has a path. The root of a file system is above itself.
    fn parent_number(&mut self, directory: Inode, path: &[u8]) -> u64 {
        let (above, name) = split(path);
        let is_own = Store::<B, F>::is_own;
        match self.look(above, Last::Name) {
            Ok(found) if !name.is_empty() && is_own(found.inode) == is_own(directory) => {
                inode_number(found.inode)
            }
            _ => inode_number(directory),
        }
    }

    /// Kind of an entry that the file system has as a file. It is looked at only if it is one of those that have had a mark: to read each would take long.
    fn file_kind(&mut self, inode: Inode) -> u32 {
        match self.store.known_node(inode) {
            Some(Node::Pipe) => general::DT_FIFO,
            Some(Node::Socket) => general::DT_SOCK,
            None => general::DT_REG,
        }
    }
}

#[cfg(test)]
mod tests;
