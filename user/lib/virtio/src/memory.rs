//! Memory of a device, and memory that it may use. A task drives one device, so there is one of each.
//!
//! Data for the device is copied to pages of which the bus server has told the address by which the device knows them, and back when the device is
//! done: so a device that does what it should reaches nothing else of the driver's. What the crate calls a physical address is that address.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::ptr::{NonNull, copy_nonoverlapping, with_exposed_provenance_mut, write_bytes};
use rt::api::{Failure, Result, Status, bus};
use rt::frames::reserve;
use rt::sync::Mutex;
use rt::sys::Uid;
use virtio_drivers::{BufferDirection, Hal, PhysAddr};

/// Log2 of the size of a page.
const PAGE_LOG2: u32 = 12;

/// Pages that the device may use: a queue, and what is under way.
const PAGES: usize = 64;

/// Memory that the device may use.
struct Pages {
    address: u64,
    /// Address by which the device knows them.
    physical: u64,
    /// One bit for each page that is in use.
    used: u64,
}

/// Memory of the device, through a window.
struct Part {
    base: u64,
    len: u64,
    address: u64,
}

static MEMORY: Mutex<Option<Pages>> = Mutex::new(None);
static PARTS: Mutex<Vec<Part>> = Mutex::new(Vec::new());

/// Maps what is behind a base address register. What cannot be had is not used: the device may do without.
pub(crate) fn map(bus: Uid, place: u32, number: u8, base: u64, len: u64) -> Result<()> {
    let log2 = len.next_power_of_two().ilog2().max(PAGE_LOG2);
    let window = reserve(log2).ok_or(Failure::Refused(Status::Exhausted))?;
    match bus::part(bus, place, number, window) {
        Ok(()) => PARTS.lock().push(Part { base, len, address: window.base() + base % (1 << PAGE_LOG2) }),
        Err(Failure::Refused(Status::Denied)) => {}
        Err(failure) => return Err(failure),
    }
    Ok(())
}

/// Own address of so many bytes of the device's, from a physical address on. `None` if they are not all mapped.
pub(crate) fn mapped(physical: u64, bytes: u64) -> Option<u64> {
    PARTS.lock().iter().find_map(|part| {
        let at = physical.checked_sub(part.base)?;
        (at.checked_add(bytes)? <= part.len).then_some(part.address + at)
    })
}

/// Gets memory that the device may use.
pub(crate) fn get(bus: Uid, place: u32) -> Result<()> {
    let log2 = PAGE_LOG2 + PAGES.ilog2();
    let window = reserve(log2).ok_or(Failure::Refused(Status::Exhausted))?;
    let physical = bus::pages(bus, place, window)?;
    *MEMORY.lock() = Some(Pages { address: window.base(), physical, used: 0 });
    Ok(())
}

/// Takes so many pages in one piece: physical and own address. `None` if there are none.
fn take(pages: usize) -> Option<(u64, NonNull<u8>)> {
    let mut memory = MEMORY.lock();
    let memory = memory.as_mut()?;
    if pages == 0 || pages >= PAGES {
        return None;
    }
    let mask = (1u64 << pages) - 1;
    let first = (0..=PAGES - pages).find(|first| memory.used & mask << first == 0)?;
    memory.used |= mask << first;
    let at = (first as u64) << PAGE_LOG2;
    Some((memory.physical + at, NonNull::new(with_exposed_provenance_mut((memory.address + at) as usize))?))
}

/// Gives pages back.
fn give_back(physical: u64, pages: usize) {
    if let Some(memory) = MEMORY.lock().as_mut()
        && pages < PAGES
    {
        let first = (physical - memory.physical) >> PAGE_LOG2;
        memory.used &= !(((1u64 << pages) - 1) << first);
    }
}

fn pages_of(bytes: usize) -> usize {
    bytes.div_ceil(1 << PAGE_LOG2)
}

/// Address of the driver's, where the device has one of its own.
fn own_address(physical: u64) -> *mut u8 {
    let own = MEMORY.lock().as_ref().map_or(0, |memory| physical - memory.physical + memory.address);
    with_exposed_provenance_mut(own as usize)
}

/// Addresses of this task's device.
#[derive(Debug)]
pub struct Hardware;

// SAFETY: pages come from a window that nothing else uses, and are handed out once until they are given back. Windows onto the device are
// reserved for it, and the device's memory is no object of the program's.
unsafe impl Hal for Hardware {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        // The crate takes the address 0 for a failure.
        let Some((physical, address)) = take(pages) else { return (0, NonNull::dangling()) };
        // SAFETY: the pages are the caller's, and writable. The device has been reset, so it does not write there.
        unsafe { write_bytes(address.as_ptr(), 0, pages << PAGE_LOG2) };
        (physical, address)
    }

    unsafe fn dma_dealloc(physical: PhysAddr, _: NonNull<u8>, pages: usize) -> i32 {
        give_back(physical, pages);
        0
    }

    unsafe fn mmio_phys_to_virt(physical: PhysAddr, size: usize) -> NonNull<u8> {
        let address = mapped(physical, size as u64).expect("the device says that it answers where it has nothing");
        NonNull::new(with_exposed_provenance_mut(address as usize)).expect("windows are not at 0")
    }

    unsafe fn share(buffer: NonNull<[u8]>, direction: BufferDirection) -> PhysAddr {
        let (physical, copy) = take(pages_of(buffer.len())).expect("one request at a time has room");
        if direction != BufferDirection::DeviceToDriver {
            // SAFETY: the caller's buffer is valid, and the pages are large enough and nobody else's.
            unsafe { copy_nonoverlapping(buffer.cast().as_ptr(), copy.as_ptr(), buffer.len()) };
        }
        physical
    }

    unsafe fn unshare(physical: PhysAddr, buffer: NonNull<[u8]>, direction: BufferDirection) {
        if direction != BufferDirection::DriverToDevice {
            // SAFETY: as in `share`, which gave this address for a buffer of this length. A device that goes on writing there changes bytes
            // that are copied, and nothing else.
            unsafe { copy_nonoverlapping(own_address(physical), buffer.cast().as_ptr(), buffer.len()) };
        }
        give_back(physical, pages_of(buffer.len()));
    }
}
