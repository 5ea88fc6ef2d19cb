//! Names of regions, as `/proc/PID/maps` tells them, and that is all.
//!
//! A region that shows a file has the path by which that was opened, and each file has one path in a memory. Memory that shows no file has the name that its program gives to it
//! (`PR_SET_VMA_ANON_NAME`), of which regions have the place in a list; and the heap and the stack are known by where they are.

use super::{FileNumber, Kind, Memory, up};
use crate::errno::{EBADF, EINVAL, ENOMEM, Result};
use crate::frames::{Bytes, Frames, PAGE};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::vec::Vec;

/// Bytes of a name that a program gives, with the zero behind it, at most.
pub const NAME_BYTES: usize = 80;

/// Names that programs give to one memory, at most.
const NAMES_MAX: usize = 255;

/// Bytes that a place for such a name counts for.
const PLACE_BYTES: usize = 128;

/// Bytes that a path counts for, beside its own.
const PATH_BYTES: usize = 80;

/// Paths that are kept, at least, before it is looked whether all of their files are still mapped.
const MANY: usize = 16;

/// A name that a program has given, as regions have it: its place among those of a memory, from 1 on. 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name(u8);

impl Name {
    /// None.
    pub const NONE: Name = Name(0);
}

/// Name of a region, as it is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Label<'memory> {
    /// The name that its program has given to it.
    Given(&'memory [u8]),
    /// That of the file or object which it shows.
    File(FileNumber),
    /// The heap of `brk`, of which it has a part.
    Heap,
    /// The stack on which the program has begun.
    Stack,
    /// None: it is memory of zeros.
    Nothing,
}

/// Names of the regions of a memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    given: Given,
    paths: Paths,
}

impl Names {
    /// Bytes that they count for.
    pub fn bytes(&self) -> usize {
        self.given.0.len() * PLACE_BYTES + self.paths.bytes
    }
}

/// Names that a program has given, by their places. Some of them may be those of no region any more.
#[derive(Clone, Debug, Default)]
struct Given(Vec<Option<Box<[u8]>>>);

impl Given {
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

/// Path of a file that is mapped.
#[derive(Clone, Debug)]
struct Path {
    /// The path by which it was opened.
    opened: Rc<[u8]>,
    /// That path without symbolic links, as it was then.
    shown: Rc<[u8]>,
}

impl Path {
    fn bytes(&self) -> usize {
        PATH_BYTES + self.opened.len() + self.shown.len()
    }
}

/// Paths of files that are mapped. Some of them may be mapped no more.
#[derive(Clone, Debug, Default)]
struct Paths {
    all: BTreeMap<FileNumber, Path>,
    /// Bytes that all of them count for.
    bytes: usize,
    /// Number of paths from which on those go whose files are not mapped any more, unless [`MANY`] is more.
    many: usize,
}

impl Paths {
    fn put(&mut self, file: FileNumber, path: Path) {
        self.bytes += path.bytes();
        if let Some(before) = self.all.insert(file, path) {
            self.bytes -= before.bytes();
        }
    }

    fn keep(&mut self, used: &BTreeSet<FileNumber>) {
        self.all.retain(|file, _| used.contains(file));
        self.bytes = self.all.values().map(Path::bytes).sum();
        self.many = 2 * self.all.len();
    }
}

impl Memory {
    /// Name of a region. One that was given stands in the place of that of shared memory, and that of the heap or the stack in its place, as in Linux.
    pub fn label(&self, start: u64, end: u64, kind: Kind) -> Label<'_> {
        let given = self.given_name(kind).map(Label::Given);
        match kind.source {
            Some(source) => given.unwrap_or(Label::File(source.file)),
            None if self.has_heap(start, end) => Label::Heap,
            None if (start..end).contains(&self.stack) => Label::Stack,
            None => given.unwrap_or(Label::Nothing),
        }
    }

    /// Whether a region has a part of the heap.
    fn has_heap(&self, start: u64, end: u64) -> bool {
        let (first, behind) = self.heap;
        first < behind && start < behind && end > first
    }

    fn given_name(&self, kind: Kind) -> Option<&[u8]> {
        let place = usize::from(kind.name.0).checked_sub(1)?;
        self.names.given.0.get(place)?.as_deref()
    }

    /// Notes where the stack begins, which grows downwards from there.
    pub fn begin_stack(&mut self, pointer: u64) {
        self.stack = pointer;
    }

    /// Whether a file has got its path when it was opened by this one.
    pub fn knows_path(&self, file: FileNumber, opened: &[u8]) -> bool {
        self.names.paths.all.get(&file).is_some_and(|path| *path.opened == *opened)
    }

    /// Notes the path by which a mapped file was opened, and that without symbolic links. If the budget has no room for them, the file keeps the path that it has, or has none.
    pub fn note_path<B: Bytes>(
        &mut self,
        frames: &mut Frames<B>,
        file: FileNumber,
        (opened, shown): (&[u8], &[u8]),
    ) {
        if self.names.paths.all.len() >= self.names.paths.many.max(MANY) {
            let used = self.files();
            self.names.paths.keep(&used);
        }
        let path = Path { opened: opened.into(), shown: shown.into() };
        if frames.budget.has_room(path.bytes()) {
            self.names.paths.put(file, path);
        }
        self.count(frames);
    }

    /// Path of a file that is mapped, without symbolic links.
    pub fn path(&self, file: FileNumber) -> Option<&[u8]> {
        self.names.paths.all.get(&file).map(|path| &*path.shown)
    }

    /// Paths that are kept.
    #[cfg(test)]
    pub fn path_count(&self) -> usize {
        self.names.paths.all.len()
    }

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
        let given = &mut self.names.given;
        if let Some(name) = given.find(text) {
            return Ok(name);
        }
        if !frames.budget.has_room(PLACE_BYTES) {
            return Err(ENOMEM);
        }
        if given.0.len() >= NAMES_MAX && given.0.iter().all(Option::is_some) {
            let mut has_it = [false; NAMES_MAX + 1];
            self.regions.values().for_each(|region| has_it[usize::from(region.kind.name.0)] = true);
            let unused = given.0.iter_mut().zip(&has_it[1..]).filter(|(_, has_it)| !**has_it);
            unused.for_each(|(name, _)| *name = None);
        }
        given.add(text)
    }
}
