//! Files that are there from the beginning and do not change, such as those of a boot archive.

use crate::{Attributes, Changes, Entry, Error, FileSystem, Inode, Kind, Name, New, Result, Space};
use alloc::vec::Vec;

/// Permissions of files and of directories: everybody may read.
const FILE: u16 = 0o444;
/// See [`FILE`].
const DIRECTORY: u16 = 0o555;

/// Number of the root.
const ROOT: Inode = Inode(1);

/// A file system of given files. Inodes are places in its list, counted from 1.
#[derive(Debug)]
pub struct Fixed<'a> {
    nodes: Vec<Node<'a>>,
}

#[derive(Debug)]
enum Node<'a> {
    File(&'a [u8]),
    /// Its entries, by their names.
    Directory(Vec<(&'a [u8], Inode)>),
}

impl<'a> Fixed<'a> {
    /// Files with their paths. Of two with one path the first is there, and one whose path makes no sense is left out.
    pub fn new(files: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Fixed<'a> {
        let mut fixed = Fixed { nodes: [Node::Directory(Vec::new())].into() };
        for (path, content) in files {
            // It is not there: that is all that can be said of it.
            let _ = fixed.add(path, content);
        }
        fixed
    }

    fn add(&mut self, path: &'a [u8], content: &'a [u8]) -> Result<()> {
        let names = path.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
        let names: Vec<Name<'a>> = names.map(Name::new).collect::<Result<_>>()?;
        let (last, above) = names.split_last().ok_or(Error::Invalid)?;
        let mut directory = ROOT;
        for name in above {
            directory = match self.lookup(directory, *name) {
                Err(Error::NotFound) => self.put(directory, *name, Node::Directory(Vec::new()))?,
                found => found?,
            };
        }
        match self.lookup(directory, *last) {
            Err(Error::NotFound) => self.put(directory, *last, Node::File(content)).map(drop),
            Ok(_) => Err(Error::Exists),
            Err(error) => Err(error),
        }
    }

    fn put(&mut self, directory: Inode, name: Name<'a>, node: Node<'a>) -> Result<Inode> {
        self.nodes.push(node);
        let inode = Inode(self.nodes.len() as u64);
        match self.node_mut(directory)? {
            Node::Directory(entries) => {
                let place = entries.partition_point(|(other, _)| *other < name.bytes());
                entries.insert(place, (name.bytes(), inode));
                Ok(inode)
            }
            Node::File(_) => Err(Error::NotDirectory),
        }
    }

    fn node_mut(&mut self, inode: Inode) -> Result<&mut Node<'a>> {
        let place = usize::try_from(inode.0).ok().and_then(|number| number.checked_sub(1));
        place.and_then(|place| self.nodes.get_mut(place)).ok_or(Error::NotFound)
    }

    fn node(&self, inode: Inode) -> Result<&Node<'a>> {
        let place = usize::try_from(inode.0).ok().and_then(|number| number.checked_sub(1));
        place.and_then(|place| self.nodes.get(place)).ok_or(Error::NotFound)
    }

    fn entries(&self, directory: Inode) -> Result<&[(&'a [u8], Inode)]> {
        match self.node(directory)? {
            Node::Directory(entries) => Ok(entries),
            Node::File(_) => Err(Error::NotDirectory),
        }
    }

    fn content(&self, file: Inode) -> Result<&'a [u8]> {
        match self.node(file)? {
            Node::File(content) => Ok(content),
            Node::Directory(_) => Err(Error::IsDirectory),
        }
    }

    fn kind(&self, inode: Inode) -> Result<Kind> {
        Ok(match self.node(inode)? {
            Node::File(_) => Kind::File,
            Node::Directory(_) => Kind::Directory,
        })
    }
}

impl FileSystem for Fixed<'_> {
    fn root(&self) -> Inode {
        ROOT
    }

    fn attributes(&mut self, inode: Inode) -> Result<Attributes> {
        let (kind, permissions, links, len) = match self.node(inode)? {
            Node::File(content) => (Kind::File, FILE, 1, content.len() as u64),
            Node::Directory(entries) => {
                let is_directory = |inode| matches!(self.kind(inode), Ok(Kind::Directory));
                let inner = entries.iter().filter(|(_, inode)| is_directory(*inode)).count();
                (Kind::Directory, DIRECTORY, 2 + inner as u32, 0)
            }
        };
        Ok(Attributes {
            inode,
            kind,
            permissions,
            links,
            owner: 0,
            group: 0,
            len,
            allocated: len,
            accessed: 0,
            modified: 0,
            changed: 0,
        })
    }

    fn change(&mut self, _: Inode, _: &Changes) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn lookup(&mut self, directory: Inode, name: Name) -> Result<Inode> {
        let entries = self.entries(directory)?;
        let place = entries.binary_search_by(|(other, _)| (*other).cmp(name.bytes()));
        place.map(|place| entries[place].1).map_err(|_| Error::NotFound)
    }

    fn readdir(&mut self, directory: Inode, cursor: u64, count_max: usize) -> Result<Vec<Entry>> {
        let entries = self.entries(directory)?;
        let first = usize::try_from(cursor).unwrap_or(usize::MAX).min(entries.len());
        let found = entries[first..].iter().take(count_max).zip(first as u64 + 1..);
        found
            .map(|(&(name, inode), next)| {
                Ok(Entry { name: name.to_vec(), inode, kind: self.kind(inode)?, next })
            })
            .collect()
    }

    fn create(&mut self, _: Inode, _: Name, _: New, _: u16) -> Result<Inode> {
        Err(Error::ReadOnly)
    }

    fn link(&mut self, _: Inode, _: Inode, _: Name) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn unlink(&mut self, _: Inode, _: Name) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn rmdir(&mut self, _: Inode, _: Name) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn rename(&mut self, _: Inode, _: Name, _: Inode, _: Name) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn forget(&mut self, _: Inode) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn readlink(&mut self, _: Inode) -> Result<Vec<u8>> {
        Err(Error::Invalid)
    }

    fn read(&mut self, inode: Inode, offset: u64, to: &mut [u8]) -> Result<usize> {
        let content = self.content(inode)?;
        let rest = &content[usize::try_from(offset).unwrap_or(usize::MAX).min(content.len())..];
        let len = rest.len().min(to.len());
        to[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write(&mut self, _: Inode, _: u64, _: &[u8]) -> Result<usize> {
        Err(Error::ReadOnly)
    }

    fn truncate(&mut self, _: Inode, _: u64) -> Result<()> {
        Err(Error::ReadOnly)
    }

    /// Nothing is lost with the power that was not there before.
    fn sync(&mut self, _: Inode) -> Result<()> {
        Ok(())
    }

    fn space(&mut self) -> Result<Space> {
        let content = |node: &Node| if let Node::File(content) = node { content.len() as u64 } else { 0 };
        let total = self.nodes.iter().map(content).sum();
        Ok(Space { total, free: 0, files: self.nodes.len() as u64, files_free: 0 })
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn knows_all_changes(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{PAGE, Page, Plain};
    use crate::path::Last;
    use crate::{Cached, How, Volume};
    use alloc::vec;

    /// Names and contents: those that make no sense are not there.
    const FILES: &[(&[u8], &[u8])] = &[
        (b"shell", b"a program"),
        (b"etc/motd", b"hello"),
        (b"./etc//deep/motd", b"deeper"),
        (b"shell", b"another one"),
        (b"shell/inner", b"below a file"),
        (b"etc", b"in the place of a directory"),
        (b"a/../b", b"upward"),
        (b"", b"nowhere"),
        (b"empty", b""),
    ];

    fn volume() -> Volume<Fixed<'static>> {
        Volume::new(Fixed::new(FILES.iter().copied()))
    }

    #[test]
    fn what_was_given_is_there() -> Result<()> {
        let mut volume = volume();
        let root = volume.root();
        let names = |volume: &mut Volume<Fixed<'static>>, path: &[u8]| -> Result<Vec<Vec<u8>>> {
            let directory = volume.enter(root, path)?;
            let mut names = Vec::new();
            while let Some(entry) = volume.readdir(directory, names.len() as u64, 1)?.pop() {
                assert_eq!(entry.next, names.len() as u64 + 1);
                names.push(entry.name);
            }
            assert_eq!(volume.readdir(directory, u64::MAX, 9)?, []);
            volume.close(directory)?;
            Ok(names)
        };
        assert_eq!(names(&mut volume, b"")?, [&b"empty"[..], b"etc", b"shell"]);
        assert_eq!(names(&mut volume, b"etc/")?, [&b"deep"[..], b"motd"]);
        for (path, expected) in
            [(&b"shell"[..], &b"a program"[..]), (b"etc/../etc/deep/motd", b"deeper"), (b"empty", b"")]
        {
            let file = volume.open(root, path, How::default(), 0)?;
            let mut bytes = [7; 20];
            assert_eq!(volume.read(file, 0, &mut bytes), Ok(expected.len()));
            assert_eq!(&bytes[..expected.len()], expected);
            assert_eq!(volume.read(file, 1 << 62, &mut bytes), Ok(0));
            assert_eq!(volume.attributes(file)?.len, expected.len() as u64);
            volume.close(file)?;
        }
        assert_eq!(volume.attributes_at(root, b"etc", Last::Stay)?.links, 3);
        assert_eq!(volume.space()?.total, 20);
        Ok(())
    }

    #[test]
    fn nothing_can_be_changed() -> Result<()> {
        let mut volume = volume();
        let root = volume.root();
        let file = volume.open(root, b"shell", How::default(), 0)?;
        let create = How { create: true, ..How::default() };
        let truncate = How { truncate: true, ..How::default() };
        let refused = Err(Error::ReadOnly);
        assert_eq!(volume.open(root, b"shell", create, 0), Ok(file), "it is there");
        assert_eq!(volume.open(root, b"new", create, 0), Err(Error::ReadOnly));
        assert_eq!(volume.open(root, b"shell", truncate, 0), Err(Error::ReadOnly));
        assert_eq!(volume.write(file, 0, b"text"), Err(Error::ReadOnly));
        assert_eq!(volume.append(file, b"text"), Err(Error::ReadOnly));
        assert_eq!(volume.truncate(file, 0), refused);
        assert_eq!(volume.change(file, &Changes::default()), refused);
        assert_eq!(volume.mkdir(root, b"new", 0), refused);
        assert_eq!(volume.symlink(root, b"shell", b"new"), refused);
        assert_eq!(volume.link(root, b"shell", b"new"), refused);
        assert_eq!(volume.rename(root, b"shell", b"new"), refused);
        assert_eq!(volume.unlink(root, b"shell"), refused);
        assert_eq!(volume.rmdir(root, b"etc"), refused);
        assert_eq!(volume.sync(file), Ok(()));
        // Inodes that nobody has given are no more than wrong.
        for inode in [0, 99, u64::MAX] {
            assert_eq!(volume.attributes(Inode(inode)), Err(Error::NotFound));
        }
        Ok(())
    }

    #[test]
    fn pages_are_copies() -> Result<()> {
        let long: Vec<u8> = (0..PAGE + 100).map(|at| at as u8).collect();
        let mut volume = Volume::new(Cached::<_, Plain>::new(Fixed::new([(&b"long"[..], &long[..])]), 9));
        let root = volume.root();
        let file = volume.open(root, b"long", How::default(), 0)?;
        let page = volume.page(file, PAGE as u64, false)?;
        let mut bytes = vec![7; PAGE];
        page.read(0, &mut bytes);
        assert_eq!((&bytes[..100], &bytes[100..]), (&long[PAGE..], &[0; PAGE - 100][..]));
        assert_eq!(volume.page(file, 0, true).err(), Some(Error::ReadOnly));
        Ok(())
    }
}
