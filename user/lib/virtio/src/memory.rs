//! Memory that the device may use: pages of the bus server's, of which it has told the address by which the device knows them. A task drives one device.
#![allow(unsafe_code)]

use rt::api::{Failure, Result, Status, bus};
use rt::frames::reserve;
use rt::sync::Mutex;
use rt::sys::Uid;
use virtio_devices::pool::{PAGE_LOG2, PAGES};
use virtio_devices::{Place, Pool};

static MEMORY: Mutex<Option<Pool>> = Mutex::new(None);

/// Keeper of this task's pages.
#[derive(Debug)]
pub struct Own;

impl Place for Own {
    fn with<T>(action: impl FnOnce(&mut Option<Pool>) -> T) -> T {
        action(&mut MEMORY.lock())
    }
}

/// Gets memory that the device may use.
pub(crate) fn get(bus: Uid, place: u32) -> Result<()> {
    let window = reserve(PAGE_LOG2 + PAGES.ilog2()).ok_or(Failure::Refused(Status::Exhausted))?;
    let device_address = bus::pages(bus, place, window)?;
    // SAFETY: the window was reserved for these pages, and is never given back.
    let pool = unsafe { Pool::new(window.base(), device_address) };
    *MEMORY.lock() = Some(pool);
    Ok(())
}
