//! Accesses to pages: those that have a frame, those that get one, and stacks that grow.

use super::{Access, FIRST, Fault, Kind, Memory, Region, Rights, STACK_GAP, STACK_MAX, Source};
use crate::errno::Errno;
use crate::frames::{Bytes, Frame, Frames, PAGE};

impl Memory {
    /// The frame of a page that was accessed a short while ago, and what may be done there, if that is enough.
    #[inline]
    pub fn recent_page(&self, address: u64, wanted: Rights) -> Option<(Frame, Rights)> {
        self.recent.get(address / PAGE, wanted)
    }

    /// An access to an address.
    pub fn fault<B: Bytes>(
        &mut self,
        frames: &mut Frames<B>,
        address: u64,
        wanted: Rights,
    ) -> core::result::Result<Access, Fault> {
        if let Some((frame, rights)) = self.recent_page(address, wanted) {
            return Ok(Access::Mapped(frame, rights));
        }
        let access = self.search_page(frames, address, wanted)?;
        if let Access::Mapped(frame, rights) = access {
            self.recent.put(address / PAGE, (frame, rights));
        }
        Ok(access)
    }

    fn search_page<B: Bytes>(
        &mut self,
        frames: &mut Frames<B>,
        address: u64,
        wanted: Rights,
    ) -> core::result::Result<Access, Fault> {
        let (start, region) = match self.region(address) {
            Some(found) => found,
            None => self.grow(address)?,
        };
        let Kind { is_shared, source, .. } = region.kind;
        let rights = region.kind.rights.in_processor();
        if !rights.has(wanted) {
            return Err(Fault::Denied);
        }
        let page = address / PAGE;
        let no_memory = |_: Errno| Fault::NoMemory;
        let Some(frame) = self.pages.get(page) else {
            let more = self.pages.more_bytes(page).ok_or(Fault::NoMemory)?;
            if more > 0 && !frames.budget.has_room(more) {
                return Err(Fault::NoMemory);
            }
            if let Some(source) = source {
                let at = Source { offset: source.offset + (page * PAGE - start), ..source };
                if at.file.is_object() {
                    return self.fault_in_object(frames, at, address, wanted);
                }
                return Ok(Access::Wants(at, is_shared && rights.has(Rights::WRITE)));
            }
            let frame = frames.zeroed().map_err(no_memory)?;
            self.pages.set(page, frame);
            self.count(frames);
            return Ok(Access::Mapped(frame, rights));
        };
        if is_shared || !frames.is_shared(frame) {
            return Ok(Access::Mapped(frame, rights));
        }
        if !wanted.has(Rights::WRITE) {
            return Ok(Access::Mapped(frame, Rights(rights.0 & !Rights::WRITE.0)));
        }
        let own = frames.copied(frame).map_err(no_memory)?;
        // This process has the other one mapped where its own is to be.
        frames.withdraw(frame);
        frames.release(frame);
        self.pages.set(page, own);
        Ok(Access::Mapped(own, rights))
    }

    /// Whether a page has been used, so that it has a frame.
    pub fn has_page(&self, page: u64) -> bool {
        self.pages.get(page).is_some()
    }

    /// Makes a stack longer, down to an address just below it.
    fn grow(&mut self, address: u64) -> core::result::Result<(u64, Region), Fault> {
        let (start, region) = self.next(address).ok_or(Fault::Nothing)?;
        let bottom = address / PAGE * PAGE;
        let below = self.regions.range(..bottom).next_back().map_or(FIRST, |(_, region)| region.end);
        let len = region.end - bottom;
        if !region.kind.grows_down || len > STACK_MAX || bottom < below + STACK_GAP {
            return Err(Fault::Nothing);
        }
        self.regions.remove(&start);
        self.regions.insert(bottom, region);
        Ok((bottom, region))
    }

    /// Gives the page of an address the frame that it wants, which is used once more from now on.
    pub fn supply<B: Bytes>(&mut self, frames: &mut Frames<B>, address: u64, frame: Frame) {
        if self.pages.get(address / PAGE).is_none() {
            frames.share(frame);
            self.pages.set(address / PAGE, frame);
            self.count(frames);
        }
    }
}
