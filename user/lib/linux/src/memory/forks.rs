//! Copies of a memory, which another process gets at `fork`, and what of it they do not have.

use super::recent::Recent;
use super::{Kind, Memory};
use crate::errno::{EINVAL, ENOMEM, Result};
use crate::frames::{Bytes, Frames, PAGE};
use linux_raw_sys::general::{MADV_DOFORK, MADV_DONTFORK, MADV_KEEPONFORK, MADV_WIPEONFORK};

/// State of a region in a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtFork {
    /// Whether a copy does not have it.
    is_left: bool,
    /// Whether a copy has zeros there.
    is_wiped: bool,
}

impl AtFork {
    /// A copy has it as it is.
    pub const COPIED: AtFork = AtFork { is_left: false, is_wiped: false };

    /// State that a region of a kind gets by advice. `EINVAL`: only private memory that shows nothing can be zeros.
    fn by(kind: Kind, advice: u32) -> Result<AtFork> {
        let before = kind.at_fork;
        match advice {
            MADV_DONTFORK => Ok(AtFork { is_left: true, ..before }),
            MADV_DOFORK => Ok(AtFork { is_left: false, ..before }),
            MADV_WIPEONFORK if kind.is_shared || kind.source.is_some() => Err(EINVAL),
            MADV_WIPEONFORK => Ok(AtFork { is_wiped: true, ..before }),
            MADV_KEEPONFORK => Ok(AtFork { is_wiped: false, ..before }),
            _ => Err(EINVAL),
        }
    }
}

impl Memory {
    /// Takes advice about copies for a range: `MADV_DONTFORK` and its like. `ENOMEM`: not all of the range is mapped; what is there has taken it.
    pub fn advise<B: Bytes>(
        &mut self,
        frames: &mut Frames<B>,
        (start, len): (u64, u64),
        advice: u32,
    ) -> Result<()> {
        let range = Memory::range(start, len).map_err(|_| ENOMEM)?;
        if let Some(Err(error)) = self.kinds(&range).map(|kind| AtFork::by(kind, advice)).find(Result::is_err)
        {
            return Err(error);
        }
        self.check_cuts(frames, &range)?;
        self.cut(&range);
        let mut at = range.start;
        while let Some((&start, &region)) = self.regions.range(at..range.end).next() {
            at = region.end;
            self.regions.remove(&start);
            let at_fork = AtFork::by(region.kind, advice)?;
            self.insert(start, region.end, Kind { at_fork, ..region.kind });
        }
        self.count(frames);
        self.all_mapped(&range)
    }

    /// A copy for another process, at whose cost its tables are: it is the one that is served. Private pages are written to by neither before they have been copied.
    pub fn copy<B: Bytes>(&self, frames: &mut Frames<B>) -> Result<Memory> {
        self.recent.forget();
        let mut share = frames.budget.take(self.table_bytes()).ok_or(ENOMEM)?;
        let (mut regions, mut pages) = (self.regions.clone(), self.pages.clone());
        let mut objects = self.objects.clone();
        let differs = |kind: &Kind| kind.at_fork != AtFork::COPIED;
        for (start, region) in self.regions.iter().filter(|(_, region)| differs(&region.kind)) {
            pages.take(start / PAGE..region.end / PAGE);
            if region.kind.at_fork.is_left {
                regions.remove(start);
            }
        }
        if regions.len() < self.regions.len() {
            let sources = regions.values().filter_map(|region| region.kind.source);
            objects = sources.map(|source| source.file).filter(|file| file.is_object()).collect();
        }
        for (&start, region) in &regions {
            let is_writable = !region.kind.is_shared && region.kind.rights.has(super::Rights::WRITE);
            pages.among(start / PAGE..region.end / PAGE).for_each(|(_, frame)| {
                frames.share(frame);
                if is_writable {
                    frames.protect(frame);
                }
            });
        }
        objects.iter().for_each(|object| frames.hold_object(*object));
        let recent = Recent::default();
        let (heap, stack, names) = (self.heap, self.stack, self.names.clone());
        let mut copy = Memory { regions, pages, recent, heap, stack, share: None, objects, names };
        share.set(copy.table_bytes());
        copy.share = Some(share);
        Ok(copy)
    }
}
