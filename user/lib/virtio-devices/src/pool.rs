//! Pages that a device may use. A task drives one device, so there is one pool of them.
//!
//! Data for the device is copied to these pages, of which the device's address is known, and back when the device is done: so a device that does what it should
//! reaches nothing else of the driver's, and one that goes on writing changes bytes that are copied, and nothing else. What the crate calls a physical address is
//! the device's address.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ptr::{NonNull, copy_nonoverlapping, with_exposed_provenance_mut, write_bytes};
use virtio_drivers::{BufferDirection, Hal, PhysAddr};

/// Log2 of the size of a page.
pub const PAGE_LOG2: u32 = 12;

/// Pages of a pool: queues, and what is under way.
pub const PAGES: usize = 64;

/// The pages, and which of them are in use.
#[derive(Debug)]
pub struct Pool {
    address: u64,
    device_address: u64,
    /// One bit for each page that is in use.
    used: u64,
}

impl Pool {
    /// Pages that begin at an address of the program's, and at one by which the device knows them.
    ///
    /// # Safety
    ///
    /// The [`PAGES`] pages at `address`, whose provenance is exposed, are readable and writable for as long as the program runs, and nobody else's but the
    /// device's.
    pub unsafe fn new(address: u64, device_address: u64) -> Pool {
        Pool { address, device_address, used: 0 }
    }

    /// Takes so many pages in one piece: the device's address of them, and the program's. `None` if there are none.
    fn take(&mut self, pages: usize) -> Option<(u64, NonNull<u8>)> {
        if pages == 0 || pages >= PAGES {
            return None;
        }
        let mask = (1u64 << pages) - 1;
        let first = (0..=PAGES - pages).find(|first| self.used & mask << first == 0)?;
        let at = (first as u64) << PAGE_LOG2;
        let address = NonNull::new(with_exposed_provenance_mut((self.address + at) as usize))?;
        self.used |= mask << first;
        Some((self.device_address + at, address))
    }

    /// Page with a device's address.
    fn page_at(&self, device_address: u64) -> Option<usize> {
        let page = (device_address.checked_sub(self.device_address)? >> PAGE_LOG2) as usize;
        (page < PAGES).then_some(page)
    }

    /// Gives pages back.
    fn give_back(&mut self, device_address: u64, pages: usize) {
        if pages < PAGES
            && let Some(first) = self.page_at(device_address)
        {
            self.used &= !(((1u64 << pages) - 1) << first);
        }
    }

    /// Pages in use.
    #[cfg(test)]
    pub(crate) fn in_use(&self) -> u64 {
        self.used
    }
}

fn pages_of(bytes: usize) -> usize {
    bytes.div_ceil(1 << PAGE_LOG2)
}

/// Keeper of the program's pool, if it has one by now.
pub trait Place {
    /// Does something with the pool.
    fn with<T>(action: impl FnOnce(&mut Option<Pool>) -> T) -> T;
}

/// Addresses of this task's device, in the pool that `P` keeps.
#[derive(Debug)]
pub struct Hardware<P>(PhantomData<P>);

/// Takes pages from the pool.
fn take<P: Place>(pages: usize) -> Option<(u64, NonNull<u8>)> {
    P::with(|pool| pool.as_mut()?.take(pages))
}

fn give_back<P: Place>(device_address: u64, pages: usize) {
    P::with(|pool| {
        if let Some(pool) = pool {
            pool.give_back(device_address, pages);
        }
    });
}

// SAFETY: pages are the pool's, which nothing else uses, and are handed out once until they are given back.
unsafe impl<P: Place> Hal for Hardware<P> {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        // The crate takes the address 0 for a failure.
        let Some((device_address, address)) = take::<P>(pages) else { return (0, NonNull::dangling()) };
        // SAFETY: the pages are the caller's, and writable. The device has been reset, so it does not write there; if it does, then before or after.
        unsafe { write_bytes(address.as_ptr(), 0, pages << PAGE_LOG2) };
        (device_address, address)
    }

    unsafe fn dma_dealloc(device_address: PhysAddr, _: NonNull<u8>, pages: usize) -> i32 {
        give_back::<P>(device_address, pages);
        0
    }

    unsafe fn mmio_phys_to_virt(_: PhysAddr, _: usize) -> NonNull<u8> {
        unreachable!("the crate asks in its own way by PCI alone, which nothing here uses")
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        // The device has no part in it: queues are as long as the driver has made them, and with all buffers that they have room for there are pages left.
        let (device_address, copy) = take::<P>(pages_of(buffer.len())).expect("all queues at once have room");
        // Bytes that the device shall write go there, too: it may say that it has written more than it has, and what was there before is for nobody.
        // SAFETY: the caller's buffer is valid, and the pages are large enough and nobody else's.
        unsafe { copy_nonoverlapping(buffer.cast().as_ptr(), copy.as_ptr(), buffer.len()) };
        device_address
    }

    unsafe fn unshare(device_address: PhysAddr, buffer: NonNull<[u8]>, direction: BufferDirection) {
        let own = P::with(|pool| {
            let pool = pool.as_ref()?;
            Some(pool.address + ((pool.page_at(device_address)? as u64) << PAGE_LOG2))
        });
        let Some(own) = own else { return };
        if direction != BufferDirection::DriverToDevice {
            let copy = with_exposed_provenance_mut::<u8>(own as usize);
            // SAFETY: as in `share`, which gave this address for a buffer of this length, at the begin of a page.
            unsafe { copy_nonoverlapping(copy, buffer.cast().as_ptr(), buffer.len()) };
        }
        give_back::<P>(device_address, pages_of(buffer.len()));
    }
}
