//! Both ends of a parameter that a description marks `copy_on_write` (row D13), for generated stubs.
//!
//! A client that passes whole pages of its memory, enough of them, does not send them: it makes an [`Offer`] to the [memory manager](crate::pager::offers), and
//! the offer's number goes with the call. The object's thread [takes](Taken) it, and its method sees the bytes where the manager shows them.
//! If anything keeps the two from it, the bytes are sent like all others; neither the caller nor the method sees a difference.
//!
//! *Who takes an offer pays for it* with kernel memory: for a page table, and for each page that is looked at. Whoever has none left when that is mapped is ended.
//! So a program with little of it takes none, whatever its clients offer.
//!
//! `unsafe`: bytes that another task gave are a slice here. They do not change as long as a [`Taken`] is there, because the manager took the
//! right to write to them from everybody.
#![allow(unsafe_code)]

use crate::pager::offers::{PAGES_MAX, WINDOWS};
use crate::region::Region;
use crate::{layout, lending};
use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use api::stub::{Callee, DECLINED};
use core::ops::{Deref, DerefMut};
use core::ptr::{NonNull, with_exposed_provenance, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicU64, Ordering};
use sys::abi::PAGE_SIZE;
use sys::{Fpage, Kind, Rights, TaskId};

/// Pages from which on they are offered. To copy fewer is cheaper, even if they are offered again and again and never written to.
pub const PAGES_MIN: usize = 6;

/// Bytes of a page.
const PAGE: usize = PAGE_SIZE as usize;

/// The key by which the manager knows this task; 0 if it was not asked yet, 1 if it has none for us.
static KEY: AtomicU64 = AtomicU64::new(0);

const NO_KEY: u64 = 1;

/// Windows in use, a bit for each. Number 0 is none: there is the key.
static WINDOWS_USED: AtomicU64 = AtomicU64::new(1);

/// Kernel memory that the pages of a window need at most, in frames: for a page table, and for 63 pages each.
const FRAMES_OF_WINDOW: u64 = 1 + PAGES_MAX.div_ceil(63);

/// Kernel memory that a program keeps for what it does besides, in frames.
const FRAMES_LEFT: u64 = 16;

/// Whether there is kernel memory for so many windows, as far as their pages are not mapped yet.
fn has_room(windows: u64) -> bool {
    let left = |info: sys::TaskInfo| info.quota.saturating_sub(info.used);
    sys::task_info(TaskId::NIL).is_ok_and(|info| left(info) >= FRAMES_LEFT + windows * FRAMES_OF_WINDOW)
}

/// This task's key, if the manager knows offers.
fn key() -> Option<u64> {
    match KEY.load(Ordering::Relaxed) {
        0 => ask_for_key(),
        NO_KEY => None,
        key => Some(key),
    }
}

#[cold]
fn ask_for_key() -> Option<u64> {
    if !has_room(1) {
        return None;
    }
    let place = api::offers::key(crate::own_pager());
    let key = if place == Ok(layout::KEY) {
        // SAFETY: a manager that says so shows a page there when it is read, as it does with all memory of this program. It does not change.
        unsafe { with_exposed_provenance::<u64>(layout::KEY as usize).read() }
    } else {
        NO_KEY
    };
    KEY.store(key.max(NO_KEY), Ordering::Relaxed);
    (key > NO_KEY).then_some(key)
}

/// A client's offer for the time of a call, or none.
#[derive(Debug)]
pub struct Offer {
    /// Its number; 0 if the bytes are sent.
    number: u64,
}

impl Offer {
    /// Offers bytes to the object that is called, if they are whole pages and as many as make it worth while.
    #[inline(always)]
    pub fn new<C: Callee>(bytes: &[u8]) -> Offer {
        let is_door = C::REPLY as u32 == Kind::DoorReturn as u32;
        let first = bytes.as_ptr() as usize;
        let is_whole = first.is_multiple_of(PAGE) && bytes.len().is_multiple_of(PAGE);
        if !is_door || bytes.len() < PAGES_MIN * PAGE || !is_whole {
            return Offer { number: 0 };
        }
        Offer::make(bytes)
    }

    #[inline(never)]
    fn make(bytes: &[u8]) -> Offer {
        Offer { number: number_of(bytes.as_ptr().expose_provenance() as u64, bytes.len()).unwrap_or(0) }
    }

    /// Offers memory to which others of this task may write meanwhile: whoever takes it has it as it is now. For interfaces written by hand, whose
    /// calls carry the [number](Offer::number); `None` if the manager makes no such offer, or if the region's flexpage was given out: others may have it then.
    pub fn of_region(region: Region) -> Option<Offer> {
        number_of(region.address(), region.size()).map(|number| Offer { number })
    }

    /// Word that says in a request whether there is an offer.
    #[inline(always)]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The bytes that are sent.
    #[inline(always)]
    pub fn sent<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        if self.number == 0 { bytes } else { &[] }
    }

    /// Whether a call has to be made anew with the bytes themselves: `rax` says that the offer was declined.
    #[inline(always)]
    pub fn is_declined<C: Callee>(&mut self, rax: u64) -> bool {
        let declined = (DECLINED as u64) << 32 | C::DONE & u32::MAX as u64;
        if rax != declined || self.number == 0 {
            return false;
        }
        self.withdraw();
        true
    }

    /// The call has succeeded, so the object has taken the offer, and its end is the object's business.
    #[inline(always)]
    pub fn is_over(mut self) {
        self.number = 0;
    }

    #[cold]
    fn withdraw(&mut self) {
        let number = core::mem::take(&mut self.number);
        if let Some(key) = key() {
            // It can be over: then there is nothing to do.
            let _ = api::offers::withdraw(crate::own_pager(), key, number);
        }
    }
}

impl Drop for Offer {
    #[inline(always)]
    fn drop(&mut self) {
        if self.number != 0 {
            self.withdraw();
        }
    }
}

/// Makes an offer of pages that nobody else has; gives back its number.
fn number_of(first: u64, bytes: usize) -> Option<u64> {
    let pages = (bytes / PAGE) as u64;
    if pages > PAGES_MAX || lending::is_noted(first, bytes) {
        return None;
    }
    let key = key()?;
    api::offers::offer(crate::own_pager(), key, first, pages).ok()
}

/// Whole pages of bytes, which a call can offer.
#[derive(Debug)]
pub struct Buffer {
    first: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it is memory that this value owns alone.
unsafe impl Send for Buffer {}
// SAFETY: whoever has a reference can only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// So many pages of zeros, one at least, if there is memory.
    pub fn zeroed(pages: usize) -> Option<Buffer> {
        let bytes = pages.checked_mul(PAGE).filter(|&bytes| bytes > 0)?;
        let layout = Layout::from_size_align(bytes, PAGE).ok()?;
        // SAFETY: the size is not zero.
        let first = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Buffer { first, layout })
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes are there, initialised, and this value's alone.
        unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the same.
        unsafe { core::slice::from_raw_parts_mut(self.first.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: it was allocated so.
        unsafe { dealloc(self.first.as_ptr(), self.layout) };
    }
}

/// Bytes of a request, as the method gets them: those that were sent, or those that are offered.
#[derive(Debug)]
pub struct Taken<'a> {
    sent: &'a [u8],
    offer: Option<InWindow>,
}

/// Offer that was taken.
#[derive(Debug)]
struct InWindow {
    number: u64,
    at: u64,
    len: usize,
}

impl<'a> Taken<'a> {
    /// The bytes of a request: those that were `sent`, or those of the offer with this number if it is not 0, no more than `bound`. `None` if
    /// it cannot be taken, or this program has too little kernel memory.
    #[inline(always)]
    pub fn new(number: u64, sent: &'a [u8], bound: usize) -> Option<Taken<'a>> {
        if number == 0 {
            return Some(Taken { sent, offer: None });
        }
        Taken::take(number, bound)
    }

    #[inline(never)]
    fn take(number: u64, bound: usize) -> Option<Taken<'a>> {
        let key = key()?;
        let at = use_window()?;
        let taken = match has_room(windows_used()) {
            true => api::offers::take(crate::own_pager(), key, number, at).ok(),
            false => None,
        };
        let Some((pages, stale)) = taken else {
            leave_window(at);
            return None;
        };
        if stale > 0 {
            let log2 = (stale * PAGE_SIZE).next_power_of_two().ilog2();
            let before = Fpage::memory(layout::window(at), log2, Rights::RWX);
            // SAFETY: nobody looks at the window, which this call has alone. It cannot fail: these are no parts of large pages.
            let _ = unsafe { sys::flush_self(before) };
        }
        let len = pages.min(PAGES_MAX) as usize * PAGE;
        let taken = Taken { sent: &[], offer: Some(InWindow { number, at, len }) };
        (len <= bound).then_some(taken)
    }

    /// The bytes of an offer, to be changed: each page that is written to becomes a copy, which counts as a page of this program until
    /// this is over. `None` if the bytes were sent.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let InWindow { at, len, .. } = self.offer.as_ref()?;
        // SAFETY: the window is this value's alone, to which nobody else refers as long as the result is there. The manager makes a page
        // that is written to one of this task, which nobody else sees.
        Some(unsafe {
            core::slice::from_raw_parts_mut(with_exposed_provenance_mut(layout::window(*at) as usize), *len)
        })
    }
}

impl Deref for Taken<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match &self.offer {
            None => self.sent,
            // SAFETY: the manager shows so many pages there until this is over, and nobody writes to them but by `bytes_mut`: it has taken
            // that right from everybody.
            Some(InWindow { at, len, .. }) => unsafe {
                core::slice::from_raw_parts(with_exposed_provenance(layout::window(*at) as usize), *len)
            },
        }
    }
}

/// It ends here and not with [`Taken`], since that may be there longer than the bytes that were sent.
impl Drop for InWindow {
    fn drop(&mut self) {
        if let Some(key) = key() {
            // The offer is there, since this task has taken it.
            let _ = api::offers::done(crate::own_pager(), key, self.number);
        }
        leave_window(self.at);
    }
}

/// The window with the lowest number that nobody uses.
fn use_window() -> Option<u64> {
    let mut used = WINDOWS_USED.load(Ordering::Relaxed);
    loop {
        let at = u64::from(used.trailing_ones());
        if at > WINDOWS {
            return None;
        }
        match WINDOWS_USED.compare_exchange_weak(used, used | 1 << at, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return Some(at),
            Err(now) => used = now,
        }
    }
}

/// How many windows are in use.
fn windows_used() -> u64 {
    u64::from(WINDOWS_USED.load(Ordering::Relaxed).count_ones()) - 1
}

fn leave_window(at: u64) {
    WINDOWS_USED.fetch_and(!(1 << at), Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number behind a name that a text in C defines; `1ul << 20` is one, too.
    fn defined(text: &str, name: &str) -> Option<u64> {
        let begin = std::format!("#define {name} ");
        let value = text.lines().find_map(|line| line.strip_prefix(begin.as_str()))?;
        let number = |text: &str| {
            let digits = text.trim().trim_matches(['(', ')']).trim_end_matches("ul");
            match digits.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => digits.parse().ok(),
            }
        };
        match value.split_once("<<") {
            Some((one, shift)) => Some(number(one)? << number(shift)?),
            None => number(value),
        }
    }

    /// The library of C programs has places, sizes and limits of its own, which are these.
    #[test]
    fn c_has_the_same_numbers() {
        let (code, header) = (include_str!("../../c/lib/offers.c"), include_str!("../../c/include/tern.h"));
        for (text, name, here) in [
            (code, "KEY", layout::KEY),
            (code, "WINDOW", layout::WINDOW),
            (code, "WINDOWS", WINDOWS),
            (code, "PAGES_MAX", PAGES_MAX),
            (code, "MEMORY_END", layout::STACKS.end),
            (code, "FRAMES_OF_WINDOW", FRAMES_OF_WINDOW),
            (code, "FRAMES_LEFT", FRAMES_LEFT),
            (header, "TERN_OFFER_PAGES_MIN", PAGES_MIN as u64),
        ] {
            assert_eq!(defined(text, name), Some(here), "{name}");
        }
    }
}
