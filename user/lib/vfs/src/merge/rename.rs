//! Other names for what has one.

use super::{ALONE, Above, BACK, Merge, OLD, OVER, Seen, let_go, lookup, own_name};
use crate::places::{DEPTH_MAX, PATH_MAX};
use crate::{Error, FileSystem, Inode, Name, New, Result};
use alloc::vec::Vec;

impl<U: FileSystem, L: FileSystem> Merge<U, L> {
    pub(super) fn rename_file(&mut self, inode: Inode, from: (Inode, Name), to: (Inode, Name)) -> Result<()> {
        let seen = self.look(from.0, from.1)?;
        let target = self.look(to.0, to.1)?;
        let upper = self.raise(inode)?;
        let (from_upper, to_upper) = (self.raise(from.0)?, self.raise(to.0)?);
        if lookup(&mut self.upper, from_upper, from.1)?.is_none() {
            // The copy of a file with several names has this one only in the lower one. Now it has it here.
            self.link_over(upper, from_upper, from.1)?;
            if let Some(below) = seen.below {
                self.covered(&below)?;
            }
        }
        let owed = seen.below.map(|_| self.owe(from.0, from.1)).transpose()?;
        let moved = self.upper.rename(from_upper, from.1, to_upper, to.1);
        match owed {
            Some(owed) if moved.is_ok() => self.pay(&owed, from_upper, from.1),
            Some(owed) => self.waive(&owed),
            None => {}
        }
        moved?;
        self.replaced(&target)
    }

    pub(super) fn rename_directory(
        &mut self,
        inode: Inode,
        from: (Inode, Name),
        to: (Inode, Name),
    ) -> Result<()> {
        let seen = self.look(from.0, from.1)?;
        let target = self.look(to.0, to.1)?;
        let there = match self.found(to.0, to.1, &target) {
            Ok(there) if self.is_empty(there)? => Some(there),
            Ok(_) => return Err(Error::NotEmpty),
            Err(Error::NotFound) => None,
            Err(error) => return Err(error),
        };
        let upper = self.raise(inode)?;
        let (from_upper, to_upper) = (self.raise(from.0)?, self.raise(to.0)?);
        self.mark(inode, upper, target.below.is_some())?;
        let old = seen.below.map(|_| self.owe(from.0, from.1)).transpose()?;
        let number = self.new_name("")?;
        let aside = [OLD, number.as_bytes()].concat();
        let new = match target.above {
            Above::Nothing => None,
            Above::Cover(_) => Some(self.owe(to.0, to.1)?),
            Above::Found(_) => Some(self.owe_as([BACK, number.as_bytes()].concat(), to.0, to.1)?),
        };
        let moved = match target.above {
            Above::Nothing => Ok(()),
            Above::Cover(cover) => self.upper.unlink(to_upper, to.1).map(|()| let_go(&mut self.upper, cover)),
            Above::Found(_) => self.upper.rename(to_upper, to.1, self.own, Name::new(&aside)?),
        };
        let moved = moved.and_then(|()| self.upper.rename(from_upper, from.1, to_upper, to.1));
        if let Err(error) = moved {
            // Everything goes back to where it was.
            self.owes = self.settle().is_err();
            return Err(error);
        }
        if let Some(old) = old {
            self.pay(&old, from_upper, from.1);
        }
        if let Some(new) = new {
            self.waive(&new);
        }
        if let Above::Found(above) = target.above {
            self.remove_aside(&aside, above.inode);
        }
        if let Some(there) = there {
            self.places.get_mut(there)?.is_gone = true;
        }
        Ok(())
    }

    /// Gives an inode of the upper one a name, in the place of whatever has it there.
    pub(super) fn link_over(&mut self, inode: Inode, directory: Inode, name: Name) -> Result<()> {
        let made = self.new_name("new-")?;
        let made = Name::new(made.as_bytes())?;
        self.upper.link(inode, self.own, made)?;
        let moved = self.upper.rename(self.own, made, directory, name);
        if moved.is_err() {
            let _ = self.upper.unlink(self.own, made);
        }
        moved
    }

    /// Something has come to a name at which that was seen.
    fn replaced(&mut self, seen: &Seen) -> Result<()> {
        match (seen.above, &seen.below) {
            (Above::Cover(cover), _) => let_go(&mut self.upper, cover),
            (Above::Nothing, Some(below)) => self.covered(below)?,
            _ => {}
        }
        Ok(())
    }

    /// Says in a directory of the upper one what it lies over, because that is not what its next name says.
    fn mark(&mut self, inode: Inode, upper: Inode, is_over_another: bool) -> Result<()> {
        let sides = self.places.get(inode)?.clone();
        if lookup(&mut self.upper, upper, own_name()?)?.is_some() {
            return Ok(());
        }
        if sides.lower.is_some() {
            let path = self.lower_path(inode)?;
            let target = [OVER, &path].concat();
            self.upper.create(upper, own_name()?, New::Symlink(&target), 0o777)?;
            self.places.get_mut(inode)?.over = Some(path.into());
        } else if is_over_another {
            self.upper.create(upper, own_name()?, New::Symlink(ALONE), 0o777)?;
        }
        Ok(())
    }

    /// Path of the directory of the lower one.
    fn lower_path(&mut self, inode: Inode) -> Result<Vec<u8>> {
        let (mut names, mut at) = (Vec::new(), inode);
        while at != self.root() {
            if let Some(over) = &self.places.get(at)?.over {
                names.push(over.to_vec());
                break;
            }
            let (parent, name) = self.places.entry(at)?;
            names.push(name.bytes().to_vec());
            at = parent;
            // Directories of two damaged disks may lead round in a circle.
            if names.len() > DEPTH_MAX {
                return Err(Error::NameTooLong);
            }
        }
        names.reverse();
        let path = names.join(&b'/');
        if path.len() > PATH_MAX { Err(Error::NameTooLong) } else { Ok(path) }
    }
}
