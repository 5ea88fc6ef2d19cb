//! Inodes by their names: both file systems are asked, and what they are together is kept in mind.

use super::{
    Above, Merge, OVER, OWN, Path, Seen, Sides, copy_name, lookup, number_of_lower, number_of_upper, own_name,
};
use crate::{Attributes, Error, FileSystem, Inode, Kind, Name, Result};
use alloc::vec::Vec;

impl<U: FileSystem, L: FileSystem> Merge<U, L> {
    /// Looks in both for a name of a directory.
    pub(super) fn look(&mut self, directory: Inode, name: Name) -> Result<Seen> {
        if name.bytes() == OWN {
            return Err(Error::NotFound);
        }
        if self.owes {
            self.settle()?;
        }
        let Sides { upper, lower, .. } = self.places.get(directory)?.clone();
        let mut seen = Seen { above: Above::Nothing, below: None };
        if let Some(upper) = upper
            && let Some(found) = lookup(&mut self.upper, upper, name)?
        {
            seen.above = if self.is_cover(found)? {
                Above::Cover(found)
            } else {
                Above::Found(self.upper.attributes(found)?)
            };
        }
        if let Some(lower) = lower
            && let Some(found) = lookup(&mut self.lower, lower, name)?
        {
            seen.below = Some(self.lower.attributes(found)?);
        }
        Ok(seen)
    }

    /// The directory of the lower one that one of the upper one lies over, and its path if it is none that the name says.
    fn over(&mut self, upper: Inode, below: Option<Attributes>) -> Result<(Option<Inode>, Option<Path>)> {
        let Some(mark) = lookup(&mut self.upper, upper, own_name()?)? else {
            let lower = below.filter(|found| found.kind == Kind::Directory).map(|found| found.inode);
            return Ok((lower, None));
        };
        let target = self.upper.readlink(mark)?;
        let Some(path) = target.strip_prefix(OVER) else { return Ok((None, None)) };
        let mut at = self.lower.root();
        for name in path.split(|&byte| byte == b'/') {
            match lookup(&mut self.lower, at, Name::new(name)?)? {
                Some(next) => at = next,
                None => return Ok((None, None)),
            }
        }
        let is_directory = self.lower.attributes(at)?.kind == Kind::Directory;
        Ok((is_directory.then_some(at), Some(path.into())))
    }

    /// The inode of what was seen at a name.
    pub(super) fn found(&mut self, directory: Inode, name: Name, seen: &Seen) -> Result<Inode> {
        let (number, sides) = match (seen.above, seen.below) {
            (Above::Found(above), below) if above.kind == Kind::Directory => {
                let (lower, over) = self.over(above.inode, below)?;
                let number = match lower {
                    Some(lower) => number_of_lower(lower)?,
                    None => number_of_upper(above.inode)?,
                };
                (number, Sides { upper: Some(above.inode), lower, over, is_gone: false })
            }
            (Above::Found(above), _) => {
                let known = self.of_upper.get(&above.inode).copied();
                let number = known.map_or_else(|| number_of_upper(above.inode), Ok)?;
                let lower = known.map(|number| Inode(number.0 / 2));
                (number, Sides { upper: Some(above.inode), lower, ..Sides::default() })
            }
            (Above::Nothing, Some(below)) => {
                let upper = self.copy_of(below.inode)?;
                (number_of_lower(below.inode)?, Sides { upper, lower: Some(below.inode), ..Sides::default() })
            }
            _ => return Err(Error::NotFound),
        };
        self.note(number, directory, name, sides)?;
        Ok(number)
    }

    /// The copy of a file of the lower one that has several names there.
    fn copy_of(&mut self, lower: Inode) -> Result<Option<Inode>> {
        if self.shared.get(&lower).is_none_or(|shared| shared.copy.is_none()) {
            return Ok(None);
        }
        let name = copy_name(lower);
        lookup(&mut self.upper, self.own, Name::new(name.as_bytes())?)
    }

    /// Finds an inode again by its name, since file systems below do not keep in mind what nobody has open.
    pub(super) fn refresh(&mut self, inode: Inode) -> Result<()> {
        let path = self.places.path(inode)?;
        let mut at = self.root();
        for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            at = self.lookup(at, Name::new(name)?)?;
        }
        if at == inode { Ok(()) } else { Err(Error::NotFound) }
    }

    /// Notes an inode and what it is made of.
    pub(super) fn note(&mut self, number: Inode, directory: Inode, name: Name, sides: Sides) -> Result<()> {
        if let Some(upper) = sides.upper
            && number_of_upper(upper)? != number
        {
            self.of_upper.insert(upper, number);
        }
        if self.places.put(number, directory, name, sides)? {
            let copies: Vec<Inode> = self.shared.values().filter_map(|shared| shared.copy).collect();
            self.of_upper.retain(|upper, number| self.places.has(*number) || copies.contains(upper));
        }
        Ok(())
    }

    pub(super) fn is_empty(&mut self, directory: Inode) -> Result<bool> {
        Ok(self.readdir(directory, 0, 1)?.is_empty())
    }
}
