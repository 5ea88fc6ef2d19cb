//! Pages of memory that a program lends to others, and the place where those look at them.
//!
//! The lender has a [`Page`], and a [`Lent`] for each time that it has handed the page out. When the last `Lent` that allows to write is gone, nobody else
//! writes any more; when the last one is gone, nobody else has the page. The borrower has a [`Window`].
//!
//! Bytes of a page that nobody else has can be [sent](Page::send) from where they lie: as long as the [`Sent`] is there, the page does not change.
//!
//! Both read and write bytes that others change meanwhile. So neither ever has a reference to bytes that can change: the lender copies them in and out, the
//! borrower has atomic words.
#![allow(unsafe_code)]

use crate::frames::reserve;
use crate::lending;
use crate::sync::Mutex;
use alloc::alloc::alloc;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::arch::asm;
use core::ops::Deref;
use core::ptr::with_exposed_provenance_mut;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use sys::abi::PAGE_SIZE;
use sys::{Fpage, Rights};

/// Bytes of a page.
pub const PAGE: usize = PAGE_SIZE as usize;

/// Log2 of the size of a page.
const PAGE_LOG2: u32 = PAGE_SIZE.ilog2();

/// Pages that the heap gives at once: one by one each would leave a gap, since it needs some bytes behind it.
const CHUNK: usize = 64;

/// Pages that there are. The heap does not get them back.
struct All {
    count: usize,
    /// Addresses of those that nobody uses, with room for all.
    free: Vec<usize>,
}

static ALL: Mutex<All> = Mutex::new(All { count: 0, free: Vec::new() });

/// A page of this program's memory. A clone is the same page, which is free when the last one goes.
#[derive(Clone, Debug)]
pub struct Page(Arc<Own>);

#[derive(Debug)]
struct Own {
    address: usize,
    counts: Mutex<Counts>,
    /// How many [`Sent`] there are, each with a clone of the page. As long as there is one, nobody writes to the page, and it is lent to nobody.
    sent: AtomicUsize,
}

/// How often it is lent.
#[derive(Debug)]
struct Counts {
    to_read: usize,
    to_write: usize,
}

impl Page {
    /// A page of zeros, if there is memory for one.
    pub fn zeroed() -> Option<Page> {
        let page = Page::any()?;
        page.clear(0);
        Some(page)
    }

    /// A page with anything in it.
    fn any() -> Option<Page> {
        let counts = Mutex::new(Counts { to_read: 0, to_write: 0 });
        Some(Page(Arc::new(Own { address: take()?, counts, sent: AtomicUsize::new(0) })))
    }

    /// Another page with the same bytes, if there is memory for one.
    pub fn copied(&self) -> Option<Page> {
        let page = Page::any()?;
        // SAFETY: both pages are there, and nobody else has the new one. Others write to this one at most, which the copy allows.
        unsafe { copy(page.0.address, self.0.address, PAGE) };
        Some(page)
    }

    /// Where it lies. No other page does, as long as this one is there.
    pub fn address(&self) -> usize {
        self.0.address
    }

    /// Whether there are other clones of it, beside those that are sent.
    #[inline]
    pub fn is_shared(&self) -> bool {
        // First all, then those that are sent: these go at any time, and then this is true once too often and never too seldom.
        let all = Arc::strong_count(&self.0);
        fence(Ordering::Acquire);
        all > 1 + self.0.sent.load(Ordering::Acquire)
    }

    /// Whether bytes of it are sent: then it cannot be written, and not be lent.
    #[inline]
    pub fn is_sent(&self) -> bool {
        self.0.sent.load(Ordering::Acquire) > 0
    }

    /// Bytes from `at` on, which lie in the page, to be sent from there. `None` if others have the page: these could write to it.
    #[inline]
    pub fn send(&mut self, at: usize, len: usize) -> Option<Sent> {
        if self.is_shared() || at > PAGE || len > PAGE - at {
            return None;
        }
        // Nobody has another clone who could write or lend meanwhile, and who makes one from this sees the count.
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        Some(Sent { page: self.clone(), at, len })
    }

    /// A change of bytes, or of those who may change them, begins with this.
    fn check_not_sent(&self) {
        assert!(!self.is_sent(), "bytes of the page are sent");
    }

    /// Copies bytes from `at` on, which lie in the page.
    pub fn read(&self, at: usize, to: &mut [u8]) {
        assert!(at + to.len() <= PAGE, "{} bytes from {at} on are in no page", to.len());
        // SAFETY: these bytes of the page are there. Others write to them at most, which the copy allows.
        unsafe { copy(to.as_mut_ptr() as usize, self.0.address + at, to.len()) };
    }

    /// Overwrites bytes from `at` on, which lie in the page.
    pub fn write(&self, at: usize, from: &[u8]) {
        assert!(at + from.len() <= PAGE, "{} bytes from {at} on are in no page", from.len());
        self.check_not_sent();
        // SAFETY: these bytes of the page are there, and nobody has a reference to them.
        unsafe { copy(self.0.address + at, from.as_ptr() as usize, from.len()) };
    }

    /// Makes all bytes from `at` on zeros.
    pub fn clear(&self, at: usize) {
        assert!(at <= PAGE, "{at} is in no page");
        self.check_not_sent();
        let len = PAGE - at;
        // SAFETY: these bytes of the page are there, and nobody has a reference to them.
        unsafe {
            asm!("rep stosb", "mov ecx, edx", "rep stosq", inout("rdi") self.0.address + at => _,
                inout("ecx") len as u32 % 8 => _, in("edx") len as u32 / 8, in("eax") 0, options(nostack, preserves_flags));
        }
    }

    /// Lends it.
    pub fn lend(&self, is_writable: bool) -> Lent {
        self.check_not_sent();
        let mut counts = self.0.counts.lock();
        if is_writable {
            counts.to_write += 1;
        } else {
            counts.to_read += 1;
        }
        Lent { page: self.clone(), is_writable }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        ALL.lock().free.push(self.address);
    }
}

/// Copies bytes that others may write to meanwhile. For them it is as if each were read or written by itself.
///
/// # Safety
///
/// The memory at both addresses is there, is no part of the other, and nobody has a reference to bytes that are written here.
pub(crate) unsafe fn copy(to: usize, from: usize, len: usize) {
    // SAFETY: the caller's promise. The compiler does not look into the block, so it takes nothing for granted about these bytes.
    unsafe {
        asm!("rep movsq", "mov ecx, edx", "rep movsb", inout("rdi") to => _, inout("rsi") from => _,
            inout("rcx") len / 8 => _, in("edx") len as u32 % 8, options(nostack, preserves_flags));
    }
}

/// A page that nobody uses.
fn take() -> Option<usize> {
    let All { count, free } = &mut *ALL.lock();
    if let Some(address) = free.pop() {
        return Some(address);
    }
    let layout = Layout::from_size_align(CHUNK * PAGE, PAGE).ok()?;
    free.try_reserve(*count + CHUNK).ok()?;
    // SAFETY: it has a size.
    let first = unsafe { alloc(layout) }.expose_provenance();
    if first == 0 {
        return None;
    }
    lending::note(first as u64, CHUNK * PAGE);
    *count += CHUNK;
    free.extend((1..CHUNK).rev().map(|number| first + number * PAGE));
    Some(first)
}

/// Bytes of a page that do not change as long as this is there.
#[derive(Debug)]
pub struct Sent {
    page: Page,
    at: usize,
    len: usize,
}

impl Deref for Sent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: these bytes of the page are there, and nobody writes to them or lends the page before this is gone, since it is counted.
        unsafe {
            core::slice::from_raw_parts(with_exposed_provenance_mut(self.page.0.address + self.at), self.len)
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.page.0.sent.fetch_sub(1, Ordering::Release);
    }
}

/// A page that somebody else may have, as long as this is there.
#[derive(Debug)]
pub struct Lent {
    page: Page,
    is_writable: bool,
}

impl Lent {
    /// The flexpage to map.
    pub fn fpage(&self) -> Fpage {
        self.part(if self.is_writable { Rights::RW } else { Rights::R })
    }

    fn part(&self, rights: Rights) -> Fpage {
        Fpage::memory(self.page.address() as u64, PAGE_LOG2, rights)
    }

    /// It is to be read from now on. If that goes for all, nobody else writes to the page when this comes back.
    pub fn end_writing(&mut self) {
        if core::mem::replace(&mut self.is_writable, false) {
            let mut counts = self.page.0.counts.lock();
            counts.to_write -= 1;
            counts.to_read += 1;
            if counts.to_write == 0 {
                take_back(self.part(Rights::W));
            }
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.end_writing();
        let mut counts = self.page.0.counts.lock();
        counts.to_read -= 1;
        if counts.to_read == 0 && counts.to_write == 0 {
            take_back(self.part(Rights::RWX));
        }
    }
}

/// A flush of one's own page cannot fail; if it did others would have a page that is used for something else.
fn take_back(page: Fpage) {
    let _ = sys::flush(page).expect("flush failed");
}

/// Address space for pages that others lend. What has arrived there goes with it.
#[derive(Debug)]
pub struct Window {
    whole: Fpage,
}

/// Makes the access that has been a page fault of another thread of this program, so that it becomes this one's, and this one's pager resolves it.
pub fn touch(address: u64, is_write: bool) {
    // SAFETY: no byte changes, and if nothing is there this is a fault and not undefined. For others it is as if the byte was read, and written in one step.
    unsafe {
        if is_write {
            asm!("lock or byte ptr [{}], 0", in(reg) address, options(nostack));
        } else {
            asm!("cmp byte ptr [{}], 0", in(reg) address, options(nostack));
        }
    }
}

/// Windows that nobody uses.
static WINDOWS: Mutex<Vec<Fpage>> = Mutex::new(Vec::new());

impl Window {
    /// Address space for `1 << log2` bytes, a page or more, if there is as much.
    pub fn new(log2: u32) -> Option<Window> {
        let mut free = WINDOWS.lock();
        let whole = match free.iter().position(|window| window.log2() == log2) {
            Some(index) => free.swap_remove(index),
            None => reserve(log2)?,
        };
        Some(Window { whole })
    }

    /// Where a page arrives.
    pub fn page(&self, number: usize) -> Fpage {
        Fpage::memory(self.whole.base() + number as u64 * PAGE_SIZE, PAGE_LOG2, Rights::RWX)
    }

    /// Where it begins.
    pub fn begin(&self) -> u64 {
        self.whole.base()
    }

    /// This program has the page no more that has arrived there. Whoever looks at it has a page fault.
    pub fn let_go(&self, number: usize) {
        // SAFETY: whoever has words of it finds that nothing is mapped, which is a fault and not undefined. It can fail for parts of large pages only, which
        // nobody lends here.
        let _ = unsafe { sys::flush_self(self.page(number)) };
    }

    /// Whether the page that has arrived there was accessed since then, or since this was asked.
    pub fn was_accessed(&self, number: usize) -> bool {
        // SAFETY: with no right nothing is taken.
        let asked = unsafe { sys::flush_self(self.page(number).with_rights(Rights::NONE)) };
        asked.is_ok_and(|touched| touched.accessed)
    }

    /// Words of the pages that have arrived, of which there are so many from the first on. The lender and others may change them meanwhile. If the lender
    /// takes a page back or ends, or did not allow to write, this thread has a page fault that nobody resolves.
    pub fn words(&self, pages: usize) -> &[AtomicU64] {
        let bytes = (pages * PAGE).min(1 << self.whole.log2());
        // SAFETY: the window is reserved for this, and who maps a page there maps memory. Others may write to it meanwhile, which
        // atomic words allow. If nothing is mapped this is a fault and not undefined.
        unsafe {
            core::slice::from_raw_parts(with_exposed_provenance_mut(self.whole.base() as usize), bytes / 8)
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: whoever had words of it had them from this value. It can fail for parts of large pages only, which nobody lends here.
        let _ = unsafe { sys::flush_self(self.whole.with_rights(Rights::RWX)) };
        WINDOWS.lock().push(self.whole);
    }
}
