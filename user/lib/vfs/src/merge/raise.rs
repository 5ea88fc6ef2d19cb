//! Copies in the upper file system of what is to be changed in the lower one, with the directories above it.

use super::{COUNT, Merge, OWN_TARGET, PIECE, SHARED_MAX, Shared, copied, copy_name, number_of_lower};
use crate::{Attributes, Before, Error, FileSystem, Inode, Kind, Name, New, Result};
use alloc::format;
use alloc::vec;

impl<U: FileSystem, L: FileSystem> Merge<U, L> {
    /// The inode of the upper one, which is made if there is none: of a file a copy, of a directory one over it.
    pub(super) fn raise(&mut self, inode: Inode) -> Result<Inode> {
        self.raise_until(inode, u64::MAX)
    }

    /// Does that with so many of a file's bytes.
    pub(super) fn raise_until(&mut self, inode: Inode, len: u64) -> Result<Inode> {
        let sides = self.places.get(inode)?.clone();
        if let Some(upper) = sides.upper {
            return Ok(upper);
        }
        if !sides.is_gone {
            let (parent, _) = self.places.entry(inode)?;
            self.refresh(parent)?;
        }
        let found = self.lower.attributes(sides.lower.ok_or(Error::NotFound)?)?;
        match found.kind {
            Kind::Directory if sides.is_gone => Err(Error::NotFound),
            Kind::Directory => self.raise_directory(inode),
            Kind::Special => Err(Error::Unsupported),
            Kind::File | Kind::Symlink => self.raise_file(inode, &found, len),
        }
    }

    fn raise_directory(&mut self, inode: Inode) -> Result<Inode> {
        // From the first that is not in the upper one down to this one.
        let (mut row, mut at) = (vec![inode], inode);
        let mut upper = loop {
            let (parent, _) = self.places.entry(at)?;
            match self.places.get(parent)?.upper {
                Some(upper) => break upper,
                None => row.push(parent),
            }
            at = parent;
        };
        for inode in row.into_iter().rev() {
            let lower = self.places.get(inode)?.lower.ok_or(Error::NotFound)?;
            let found = self.lower.attributes(lower)?;
            let (_, name) = self.places.entry(inode)?;
            upper = self.upper.create(upper, name, New::Directory, found.permissions)?;
            // A directory without them is one all the same.
            let _ = self.upper.change(upper, &copied(&found));
            let _ = self.copy_xattrs(lower, upper);
            self.places.get_mut(inode)?.upper = Some(upper);
            self.of_upper.insert(upper, inode);
            if self.places.is_held(inode) {
                self.upper.hold(upper)?;
            }
        }
        Ok(upper)
    }

    fn raise_file(&mut self, inode: Inode, found: &Attributes, len: u64) -> Result<Inode> {
        let target = match found.kind {
            Kind::Symlink => Some(self.lower.readlink(found.inode)?),
            _ => None,
        };
        if target.as_ref().is_some_and(|target| target.starts_with(OWN_TARGET)) {
            // In the upper one it would mean something.
            return Err(Error::Unsupported);
        }
        let is_gone = self.attributes(inode)?.links == 0;
        let is_shared = found.links > 1;
        let place = if is_gone {
            None
        } else if is_shared {
            self.share(found.inode)?;
            Some((self.own, copy_name(found.inode).into_bytes()))
        } else {
            let (parent, name) = self.places.entry(inode)?;
            let name = name.bytes().to_vec();
            Some((self.raise(parent)?, name))
        };
        let made = self.new_name("new-")?;
        let made = Name::new(made.as_bytes())?;
        let new = target.as_ref().map_or(New::File, |target| New::Symlink(target));
        let copy = self.upper.create(self.own, made, new, found.permissions)?;
        let outcome = self.fill(copy, found, len).and_then(|()| {
            if self.places.is_held(inode) {
                self.upper.hold(copy)?;
            }
            match &place {
                Some((directory, name)) => self.upper.rename(self.own, made, *directory, Name::new(name)?),
                None => self.upper.unlink(self.own, made),
            }
        });
        if let Err(error) = outcome {
            let _ = self.discard(made, copy);
            self.upper.release(copy);
            return Err(error);
        }
        if self.places.is_held(inode) {
            self.lower.release(found.inode);
        }
        if is_shared && !is_gone {
            self.shared.entry(found.inode).or_default().copy = Some(copy);
        }
        self.places.get_mut(inode)?.upper = Some(copy);
        self.of_upper.insert(copy, inode);
        Ok(copy)
    }

    /// Copies so many bytes of a file of the lower one, and its attributes, and has all of it survive.
    fn fill(&mut self, copy: Inode, found: &Attributes, len: u64) -> Result<()> {
        if found.kind == Kind::Symlink {
            let _ = self.upper.change(copy, &copied(found));
            return Ok(());
        }
        let end = found.len.min(len);
        let mut piece = vec![0; PIECE.min(end as usize)];
        let mut at = 0;
        while at < end {
            let wanted = piece.len().min((end - at) as usize);
            let count = self.lower.read(found.inode, at, &mut piece[..wanted])?;
            if count == 0 {
                break;
            }
            // Holes stay holes.
            if piece[..count].iter().any(|&byte| byte != 0) {
                let mut done = 0;
                while done < count {
                    match self.upper.write(copy, at + done as u64, &piece[done..count])? {
                        0 => return Err(Error::NoSpace),
                        more => done += more,
                    }
                }
            }
            at += count as u64;
        }
        if self.upper.len(copy)? != end {
            self.upper.truncate(copy, end)?;
        }
        self.copy_xattrs(found.inode, copy)?;
        self.upper.change(copy, &copied(found))?;
        self.upper.sync(copy)
    }

    /// Copies extended attributes of an inode of the lower one, unless the upper one has none of the kind.
    fn copy_xattrs(&mut self, lower: Inode, upper: Inode) -> Result<()> {
        let names = self.lower.xattrs(lower)?;
        for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
            let value = self.lower.xattr(lower, name)?;
            match self.upper.set_xattr(upper, name, &value, Before::Any) {
                Ok(()) | Err(Error::Unsupported) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A file of the lower one has several names there, and it matters from now on.
    fn share(&mut self, lower: Inode) -> Result<&mut Shared> {
        if self.shared.len() >= SHARED_MAX && !self.shared.contains_key(&lower) {
            return Err(Error::NoSpace);
        }
        Ok(self.shared.entry(lower).or_default())
    }

    /// A name of a file of the lower one is seen no more.
    pub(super) fn covered(&mut self, below: &Attributes) -> Result<()> {
        let number = number_of_lower(below.inode)?;
        if below.kind == Kind::Directory || below.links <= 1 {
            if let Ok(sides) = self.places.get_mut(number) {
                sides.is_gone = sides.upper.is_none();
            }
            return Ok(());
        }
        self.find_own()?;
        let shared = self.share(below.inode)?;
        let (before, now) = (shared.covered, shared.covered + 1);
        let name = |count| format!("covered-{:x}-{count}", below.inode.0);
        let now_name = name(now);
        let now_name = Name::new(now_name.as_bytes())?;
        if before == 0 {
            self.upper.create(self.own, now_name, New::Symlink(COUNT), 0o777)?;
        } else {
            self.upper.rename(self.own, Name::new(name(before).as_bytes())?, self.own, now_name)?;
        }
        self.share(below.inode)?.covered = now;
        Ok(())
    }
}
