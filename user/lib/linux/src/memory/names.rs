//! Names that programs give to memory which shows no file: `PR_SET_VMA_ANON_NAME`. They are told in `/proc/PID/maps`, and that is all.

use super::{Kind, Memory, up};
use crate::errno::{EBADF, EINVAL, ENOMEM, Result};
use crate::frames::{Bytes, Frames, PAGE};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Bytes of a name, with the zero behind it, at most.
pub const NAME_BYTES: usize = 80;

/// Names of a memory, at most.
const NAMES_MAX: usize = 255;

/// Bytes that a place for a name counts for.
const PLACE_BYTES: usize = 128;

/// A name, as regions have it: its place among those of a memory, from 1 on. 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name(u8);

impl Name {
    /// None.
    pub const NONE: Name = Name(0);
}

/// Names of a memory, by their places. Some of them may be those of no region any more.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Vec<Option<Box<[u8]>>>);

impl Names {
    /// Bytes that they count for.
    pub fn bytes(&self) -> usize {
        self.0.len() * PLACE_BYTES
    }

    fn find(&self, text: &[u8]) -> Option<Name> {
        let place = self.0.iter().position(|name| name.as_deref() == Some(text))?;
        Some(Name(place as u8 + 1))
    }

    /// Adds a name in a place that has none.
    fn add(&mut self, text: &[u8]) -> Result<Name> {
        let place = match self.0.iter().position(Option::is_none) {
            Some(place) => place,
            None if self.0.len() < NAMES_MAX => {
                self.0.push(None);
                self.0.len() - 1
            }
            None => return Err(ENOMEM),
        };
        self.0[place] = Some(text.into());
        Ok(Name(place as u8 + 1))
    }
}

impl Memory {
    /// Gives a range a name, or takes it from it. `EBADF`: a file is shown there. `ENOMEM`: not all of the range is mapped, and what is there has the name; or there is no room for
    /// another name.
    pub fn set_name<B: Bytes>(
        &mut self,
        frames: &mut Frames<B>,
        (start, len): (u64, u64),
        name: Option<&[u8]>,
    ) -> Result<()> {
        let end = up(len).and_then(|len| start.checked_add(len)).ok_or(EINVAL)?;
        if !start.is_multiple_of(PAGE) {
            return Err(EINVAL);
        }
        let range = start..end;
        if range.is_empty() {
            return Ok(());
        }
        let has_file = |kind: Kind| kind.source.is_some_and(|source| !frames.is_nameless(source.file));
        if self.kinds(&range).any(has_file) {
            return Err(EBADF);
        }
        self.check_cuts(frames, &range)?;
        let name = name.map_or(Ok(Name::NONE), |text| self.name_for(frames, text))?;
        self.cut(&range);
        let mut at = range.start;
        while let Some((&start, &region)) = self.regions.range(at..range.end).next() {
            at = region.end;
            self.regions.remove(&start);
            self.insert(start, region.end, Kind { name, ..region.kind });
        }
        self.count(frames);
        self.all_mapped(&range)
    }

    /// The name that is a text, if need be in the place of one that no region has.
    fn name_for<B: Bytes>(&mut self, frames: &Frames<B>, text: &[u8]) -> Result<Name> {
        if let Some(name) = self.names.find(text) {
            return Ok(name);
        }
        if !frames.budget.has_room(PLACE_BYTES) {
            return Err(ENOMEM);
        }
        if self.names.0.len() >= NAMES_MAX && self.names.0.iter().all(Option::is_some) {
            let mut has_it = [false; NAMES_MAX + 1];
            self.regions.values().for_each(|region| has_it[usize::from(region.kind.name.0)] = true);
            let unused = self.names.0.iter_mut().zip(&has_it[1..]).filter(|(_, has_it)| !**has_it);
            unused.for_each(|(name, _)| *name = None);
        }
        self.names.add(text)
    }

    /// The name of a region of a kind.
    pub fn name(&self, kind: Kind) -> Option<&[u8]> {
        let place = usize::from(kind.name.0).checked_sub(1)?;
        self.names.0.get(place)?.as_deref()
    }
}
