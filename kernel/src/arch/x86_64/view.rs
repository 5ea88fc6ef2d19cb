//! Views: temporary mappings of physical memory, for the boot only.
//!
//! Afterwards user memory has no address in the kernel half. A view ends when it is dropped. Views open in the
//! GiB of the kernel's image, as large pages, so that they need no table of their own. They never show the image
//! or the pool, so no Rust object is ever behind one.

use super::cpu::features;
use super::paging::{LARGE_SIZE, image, image_page_is_free, pool, set_image_page};
use crate::layout;
use core::ops::{Deref, DerefMut, Range};

/// Level-2 entries in which views open: 480 MiB.
const SLOTS: Range<usize> = 256..496;

/// A view for reading.
pub struct View {
    slots: Range<usize>,
    start: u64,
    len: usize,
}

/// A view for writing. The opener opens no other one on these bytes.
pub struct ViewMut(View);

/// Opens a view of `len` bytes of physical memory for reading, if slots are left and the bytes are not the kernel's.
pub fn open(physical: u64, len: u64) -> Option<View> {
    open_as(physical, len, false)
}

/// Opens a view for writing.
pub fn open_mut(physical: u64, len: u64) -> Option<ViewMut> {
    open_as(physical, len, true).map(ViewMut)
}

fn open_as(physical: u64, len: u64, writable: bool) -> Option<View> {
    let end = physical.checked_add(len).filter(|&end| end <= 1 << features().physical_bits)?;
    if [image(), pool()].iter().any(|own| physical < own.end && own.start < end) {
        return None;
    }
    let first = physical & !(LARGE_SIZE - 1);
    let count = usize::try_from((end - first).div_ceil(LARGE_SIZE)).ok()?;
    let is_free = |slot: usize| slot + count <= SLOTS.end && (slot..slot + count).all(image_page_is_free);
    let slot = SLOTS.into_iter().find(|&slot| is_free(slot))?;
    for (slot, page) in (slot..slot + count).zip((first..).step_by(LARGE_SIZE as usize)) {
        set_image_page(slot, Some((page, writable)));
    }
    let start = layout::IMAGE + slot as u64 * LARGE_SIZE + (physical - first);
    Some(View { slots: slot..slot + count, start, len: len as usize })
}

impl Deref for View {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `open_as` mapped these bytes; they stay mapped as long as `self` lives.
        unsafe { core::slice::from_raw_parts(self.start as *const u8, self.len) }
    }
}

impl Deref for ViewMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for ViewMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for reading; mapped writable, and by the rule of `ViewMut` nobody else looks.
        unsafe { core::slice::from_raw_parts_mut(self.0.start as *mut u8, self.0.len) }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.slots.clone().for_each(|slot| set_image_page(slot, None));
    }
}
