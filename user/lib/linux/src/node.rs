//! Sockets and pipes that have a name in a file system which has no such things: files with a mark, of which nobody sees the bytes.
//!
//! So a name is there as long as on Linux, also when its socket is closed, and is moved and removed as others are.

use crate::errno::Result;
use crate::frames::Bytes;
use crate::store::Store;
use vfs::{Attributes, FileSystem, How, Inode, Kind};

/// Kind of a file with a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node {
    /// A socket.
    Socket,
    /// A pipe.
    Pipe,
}

/// Bytes of a mark, which are all of the file.
const MARK_BYTES: usize = 16;

/// Files of which it is kept in mind that they have marks, at most.
const NODES_MAX: usize = 4096;

/// Marks.
const MARKS: [(Node, [u8; MARK_BYTES]); 2] =
    [(Node::Socket, *b"\x7fTern\0socket\0\n\xff\0"), (Node::Pipe, *b"\x7fTern\0fifo\0\0\0\n\xff\0")];

impl<B: Bytes, F: FileSystem> Store<B, F> {
    /// Kind of a file, if it has a mark.
    pub fn node(&mut self, found: &Attributes) -> Option<Node> {
        let node = self.mark(found);
        match node {
            Some(_) if self.nodes.len() < NODES_MAX => drop(self.nodes.insert(found.inode.0)),
            Some(_) => {}
            None => drop(self.nodes.remove(&found.inode.0)),
        }
        node
    }

    fn mark(&mut self, found: &Attributes) -> Option<Node> {
        if found.kind != Kind::File || found.len != MARK_BYTES as u64 || !Self::is_own(found.inode) {
            return None;
        }
        let inode = self.volume.opened(found.inode).ok()?;
        let mut bytes = [0; MARK_BYTES];
        let count = self.volume.read(inode, 0, &mut bytes);
        let _ = self.volume.close(inode);
        let (node, _) = MARKS.iter().find(|(_, mark)| *mark == bytes)?;
        (count == Ok(MARK_BYTES)).then_some(*node)
    }

    /// Kind of a file, if it had a mark when it was looked at last, and still has it.
    pub fn known_node(&mut self, inode: Inode) -> Option<Node> {
        if !self.nodes.contains(&inode.0) {
            return None;
        }
        let found = self.volume.attributes(inode).ok()?;
        self.node(&found)
    }

    /// Makes a file with a mark, which is open then. There must not be anything of that name.
    pub fn make_node(&mut self, path: &[u8], node: Node, permissions: u16) -> Result<Inode> {
        let root = self.root;
        let how = How { create: true, exclusive: true, truncate: false };
        let inode = self.volume.open(root, path, how, permissions)?;
        let mark = MARKS.iter().find(|(kind, _)| *kind == node).map_or([0; MARK_BYTES], |(_, mark)| *mark);
        match self.volume.write(inode, 0, &mark) {
            Ok(MARK_BYTES) => {
                if self.nodes.len() < NODES_MAX {
                    self.nodes.insert(inode.0);
                }
                Ok(inode)
            }
            outcome => {
                let _ = self.volume.unlink(root, path);
                let _ = self.volume.close(inode);
                Err(outcome.map_or_else(Into::into, |_| crate::errno::ENOSPC))
            }
        }
    }
}
