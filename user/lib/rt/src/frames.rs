//! Memory by ownership: a [`Block`] from the manager above, cut into [`Frame`]s, [`Shared`] with clients.
//!
//! The types carry the proof: a `Frame` is mapped nowhere else, so its bytes can be written; a `Shared` one can only
//! be mapped again or taken back with a flush, which makes it a `Frame` again. This rests on the memory server's
//! promise to hand out each piece of memory once; a task that cannot trust its memory server can trust nothing.
#![allow(unsafe_code)]

mod colours;
mod places;
mod pool;

use crate::layout::BLOCKS;
use crate::page::copy;
use crate::sync::Mutex;
use core::ptr::with_exposed_provenance_mut;
use core::sync::atomic::{AtomicU64, Ordering};
use places::Places;
use sys::abi::PAGE_SIZE;
use sys::{Fpage, Rights, Touched, Uid};

pub use colours::Colours;
pub use pool::Pool;

/// Log2 of the size of a frame.
pub const FRAME_LOG2: u32 = 12;

/// `1 << log2` bytes of contiguous memory that belong to this program alone.
#[derive(Debug)]
pub struct Block {
    address: u64,
    physical: u64,
    log2: u32,
}

/// Where blocks come from.
pub trait Supply {
    /// A new block of `1 << log2` bytes, if there is one left.
    fn block(&mut self, log2: u32) -> Option<Block>;

    /// Takes a block back, by its physical address, from whomever it was passed on to.
    fn give_back(&mut self, physical: u64, log2: u32);

    /// How much is left, in bytes, as far as the supply knows.
    fn left(&self) -> u64 {
        0
    }
}

impl Block {
    /// Takes possession of memory.
    ///
    /// # Safety
    ///
    /// The memory is mapped at `address` for reading and writing, and nothing else uses it.
    pub(crate) unsafe fn claim(address: u64, physical: u64, log2: u32) -> Block {
        Block { address, physical, log2 }
    }

    /// Its bytes. What an earlier owner left there is still there.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let start = with_exposed_provenance_mut(self.address as usize);
        // SAFETY: the block is mapped at this address, writable, and by the type's invariant nobody else uses it.
        unsafe { core::slice::from_raw_parts_mut(start, 1 << self.log2) }
    }

    /// Its bytes, to read.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: as in `bytes_mut`.
        unsafe {
            core::slice::from_raw_parts(with_exposed_provenance_mut(self.address as usize), 1 << self.log2)
        }
    }

    /// Its address, which the caller may use as it likes.
    pub(crate) fn into_address(self) -> u64 {
        self.address
    }

    /// Allows it to be mapped to others.
    pub fn lend(self) -> Lent {
        Lent(self)
    }

    /// Gives it away for good: the flexpage to grant, with the reply that follows. The window where it was is used again after that. Of each program one thread
    /// gives blocks away, one after the other.
    pub fn into_grant(self) -> Fpage {
        let fpage = Fpage::memory(self.address, self.log2, Rights::RWX);
        PLACES.lock().grant(fpage);
        fpage.with_rights(Rights::RWX.or(Rights::GRANT))
    }

    /// Log2 of its size in bytes.
    pub fn log2(&self) -> u32 {
        self.log2
    }

    /// Its size in bytes.
    pub(crate) fn len(&self) -> u64 {
        1 << self.log2
    }

    /// Its physical address.
    pub fn physical(&self) -> u64 {
        self.physical
    }

    /// Cuts it into frames.
    pub fn into_frames(self) -> impl Iterator<Item = Frame> {
        let Block { address, physical, log2 } = self;
        let offsets = (0..1 << log2).step_by(PAGE_SIZE as usize);
        offsets.map(move |offset| Frame { address: address + offset, physical: physical + offset })
    }
}

/// A block that others may use.
#[derive(Debug)]
pub struct Lent(Block);

impl Lent {
    /// The flexpage to map.
    pub fn fpage(&self) -> Fpage {
        Fpage::memory(self.0.address, self.0.log2, Rights::RWX)
    }

    /// Its physical address.
    pub fn physical(&self) -> u64 {
        self.0.physical
    }

    /// Takes it back from everybody.
    pub fn reclaim(self) -> Block {
        // A flush of one's own pages cannot fail; if it did the block would be lost rather than used twice.
        let flushed = sys::flush(self.fpage());
        assert!(flushed.is_ok(), "flush failed");
        self.0
    }
}

/// A memory server as a source of blocks.
#[derive(Clone, Copy, Debug)]
pub struct Upstream(pub Uid);

impl Supply for Upstream {
    fn block(&mut self, log2: u32) -> Option<Block> {
        let relay = Relay::new(log2)?;
        let physical = api::memory::pages(self.0, relay.window()).ok()?;
        // SAFETY: the window was reserved for this block, and the server hands out memory once.
        Some(unsafe { Block::claim(relay.keep().base(), physical, log2) })
    }

    fn give_back(&mut self, physical: u64, log2: u32) {
        // A server that does not want it keeps it as lost; there is nothing else to do with it here.
        let _ = api::memory::give_back(self.0, physical, log2);
    }
}

impl Upstream {
    /// Gives back a block that came from here, with the window where it was.
    pub fn put(self, block: Block) {
        // The server takes the pages from everybody, so the window is empty. If it does not, the window is lost with them.
        if api::memory::give_back(self.0, block.physical, block.log2).is_ok() {
            PLACES.lock().put(Fpage::memory(block.address, block.log2, Rights::RWX));
        }
    }
}

/// A window through which this program hands on memory that it does not touch itself, such as a device's. When it is dropped, everybody loses what they
/// got through it, and the window is used again.
#[derive(Debug)]
pub struct Relay {
    window: Fpage,
}

impl Relay {
    /// A window of `1 << log2` bytes, with nothing behind it, if there is address space for it.
    pub fn new(log2: u32) -> Option<Relay> {
        Some(Relay { window: PLACES.lock().take(log2)? })
    }

    /// Where to let the memory be mapped, and what to map on.
    pub fn window(&self) -> Fpage {
        self.window
    }

    /// Keeps it for good.
    fn keep(self) -> Fpage {
        let window = self.window;
        core::mem::forget(self);
        window
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // SAFETY: the window is this value's alone, and nothing refers to bytes behind it.
        let flushed = unsafe { sys::flush_self(self.window.with_rights(Rights::RWX)) };
        if flushed.is_ok() {
            PLACES.lock().put(self.window);
        }
    }
}

/// Address space of this program for blocks and windows.
static PLACES: Mutex<Places> = Mutex::new(Places::new(BLOCKS));

/// Address space that nothing else uses, for good: for a window onto a device, or into memory of others. See [`Relay`] for one that is given back.
pub fn reserve(log2: u32) -> Option<Fpage> {
    PLACES.lock().new_place(log2)
}

/// A page of memory that is mapped here and nowhere else.
#[derive(Debug)]
pub struct Frame {
    address: u64,
    physical: u64,
}

impl Frame {
    /// Its bytes. What an earlier owner left there is still there.
    pub fn bytes_mut(&mut self) -> &mut [u8; PAGE_SIZE as usize] {
        // SAFETY: the frame is mapped at this address, writable, and by the type's invariant nobody else uses it.
        unsafe { &mut *with_exposed_provenance_mut(self.address as usize) }
    }

    /// Its physical address.
    pub fn physical(&self) -> u64 {
        self.physical
    }

    /// Allows it to be mapped to others.
    pub fn share(self) -> Shared {
        Shared(self)
    }
}

/// A page of memory that others may use.
#[derive(Debug)]
pub struct Shared(Frame);

impl Shared {
    /// The flexpage to map.
    pub fn fpage(&self, rights: Rights) -> Fpage {
        Fpage::memory(self.0.address, FRAME_LOG2, rights)
    }

    /// Accesses of others since this was asked last; [`Shared::take_back`] counts as asking.
    pub fn touched(&self) -> Touched {
        flush(self.fpage(Rights::NONE))
    }

    /// Copies what is there from byte `at` on, as far as the page goes. Others may write to it meanwhile.
    pub fn read(&self, at: usize, to: &mut [u8]) -> usize {
        let len = to.len().min((PAGE_SIZE as usize).saturating_sub(at));
        // SAFETY: the frame is mapped at this address, and these bytes lie in it. Others write to them at most, which the copy allows.
        unsafe { copy(to.as_mut_ptr() as usize, self.0.address as usize + at, len) };
        len
    }

    /// Overwrites what is there from byte `at` on, as far as the page goes. Others may read and write it meanwhile.
    pub fn write(&self, at: usize, from: &[u8]) -> usize {
        let len = from.len().min((PAGE_SIZE as usize).saturating_sub(at));
        // SAFETY: the frame is mapped at this address, writable, and these bytes lie in it. Nobody has a reference to bytes of a frame that is shared.
        unsafe { copy(self.0.address as usize + at, from.as_ptr() as usize, len) };
        len
    }

    /// Overwrites bytes from byte `at` on with those of another one from byte `from` on, as far as both pages go.
    pub fn copy_part(&self, at: usize, (other, from): (&Shared, usize), len: usize) -> usize {
        let len = len.min((PAGE_SIZE as usize).saturating_sub(at.max(from)));
        // SAFETY: both frames are mapped, this one writable, they are two, and the bytes lie in them. Nobody has a reference to bytes of a frame that
        // is shared.
        unsafe { copy(self.0.address as usize + at, other.0.address as usize + from, len) };
        len
    }

    /// Overwrites all of it with what is in another one.
    pub fn copy_from(&self, other: &Shared) {
        // SAFETY: both frames are mapped, this one writable, and they are two. Nobody has a reference to bytes of a frame that is shared.
        unsafe { copy(self.0.address as usize, other.0.address as usize, PAGE_SIZE as usize) };
    }

    /// Takes rights to it from everybody, who keep the others.
    pub fn take_rights(&self, rights: Rights) {
        flush(self.fpage(rights));
    }

    /// Takes it back from everybody.
    pub fn reclaim(self) -> Frame {
        self.take_back().0
    }

    /// Takes it back from everybody, and says what they did with it.
    pub fn take_back(self) -> (Frame, Touched) {
        let touched = flush(self.fpage(Rights::RWX));
        (self.0, touched)
    }
}

impl Shared {
    /// From now on nobody writes to it.
    pub fn freeze(self) -> Frozen {
        flush(self.fpage(Rights::W));
        Frozen(self.0)
    }
}

/// A page of memory that others may use, and nobody writes to.
#[derive(Debug)]
pub struct Frozen(Frame);

impl Frozen {
    /// The flexpage to map.
    pub fn fpage(&self) -> Fpage {
        Fpage::memory(self.0.address, FRAME_LOG2, Rights::R)
    }

    /// Its physical address.
    pub fn physical(&self) -> u64 {
        self.0.physical
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; PAGE_SIZE as usize] {
        // SAFETY: the frame is mapped at this address. Nobody has the right to write to it: the right was taken from all
        // when it was frozen, and `fpage` gives none.
        unsafe { &*with_exposed_provenance_mut(self.0.address as usize) }
    }

    /// Takes it back from everybody; they may have it again.
    pub fn hide(&self) {
        flush(self.fpage().with_rights(Rights::RWX));
    }

    /// It may be written to again. Whoever could read it would see that, so it is taken back from everybody first.
    pub fn thaw(self) -> Shared {
        Shared(self.reclaim())
    }

    /// Takes it back from everybody.
    pub fn reclaim(self) -> Frame {
        self.hide();
        self.0
    }
}

/// A flush of one's own page cannot fail; if it did the frame would be lost rather than used twice.
fn flush(page: Fpage) -> Touched {
    sys::flush(page).expect("flush failed")
}

/// A place where pages of others are looked at, one after another. They may change or go while one looks, so bytes
/// are copied and never borrowed.
#[derive(Debug)]
pub struct View {
    window: Fpage,
}

/// Words of a page.
const WORDS: usize = PAGE_SIZE as usize / size_of::<u64>();

impl View {
    /// A view in address space that nothing else uses.
    pub fn new() -> Option<View> {
        Some(View { window: reserve(FRAME_LOG2)? })
    }

    /// Where to let the next page be mapped.
    pub fn window(&self) -> Fpage {
        self.window
    }

    /// The page in it, to be handed on for good. The view is empty then.
    pub fn grant(&self, rights: Rights) -> Fpage {
        self.window.with_rights(rights.or(Rights::GRANT))
    }

    fn words(&self) -> &[AtomicU64; WORDS] {
        // SAFETY: the window is reserved for this, and whoever maps a page there maps memory. Others may write to it
        // meanwhile, which atomic words allow. If nothing is mapped this is a fault and not undefined.
        unsafe { &*with_exposed_provenance_mut(self.window.base() as usize) }
    }

    /// Copies the page that is there.
    pub fn copy_to(&self, frame: &mut Frame) {
        for (to, from) in frame.bytes_mut().chunks_exact_mut(size_of::<u64>()).zip(self.words()) {
            to.copy_from_slice(&from.load(Ordering::Relaxed).to_ne_bytes());
        }
    }

    /// Overwrites the page that is there.
    pub fn copy_from(&self, frame: &mut Frame) {
        for (from, to) in frame.bytes_mut().chunks_exact(size_of::<u64>()).zip(self.words()) {
            to.store(u64::from_ne_bytes(from.try_into().unwrap_or_default()), Ordering::Relaxed);
        }
    }
}
