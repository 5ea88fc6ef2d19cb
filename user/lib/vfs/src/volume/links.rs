//! Other names for what has one.

use super::Volume;
use crate::path::Last;
use crate::watch::Change;
use crate::{Error, FileSystem, Inode, Kind, Name, Result};

impl<F: FileSystem> Volume<F> {
    /// Gives a file another name. A symbolic link at the end of the first path gets it itself.
    pub fn link(&mut self, base: Inode, existing: &[u8], path: &[u8]) -> Result<()> {
        let from = self.walk(base, existing, Last::Stay)?;
        self.link_found(from.existing()?, from.entry().ok(), base, path)
    }

    /// Gives what is open another name. [`Error::NotFound`] if it has none any more.
    pub fn link_open(&mut self, inode: Inode, base: Inode, path: &[u8]) -> Result<()> {
        let found = self.fs.attributes(inode)?;
        if found.links == 0 {
            return Err(Error::NotFound);
        }
        self.link_found((inode, found.kind), None, base, path)
    }

    /// Gives an inode another name than the one by which it was found.
    fn link_found(
        &mut self,
        (inode, kind): (Inode, Kind),
        from: Option<(Inode, Name)>,
        base: Inode,
        path: &[u8],
    ) -> Result<()> {
        let place = self.walk(base, path, Last::Name)?;
        if place.found.is_some() {
            return Err(Error::Exists);
        }
        if place.is_directory {
            return Err(Error::NotFound);
        }
        if kind == Kind::Directory {
            return Err(Error::IsDirectory);
        }
        self.is_there(&place)?;
        let (directory, name) = place.entry()?;
        self.fs.link(inode, directory, name)?;
        if !self.watches.is_empty() {
            for (directory, name) in from.into_iter().chain([(directory, name)]) {
                self.watches.know(inode, directory, name.bytes());
            }
            self.watches.made(directory, name.bytes());
            self.watches.tell_itself(inode, Change::Attributes);
        }
        Ok(())
    }
}
