//! Tables of the firmware, page by page as they are read. Where they begin `root` says to the bus server alone.

use acpi::{Memory, find};
use alloc::vec::Vec;
use rt::api::sigma0;
use rt::device::DeviceMemory;
use rt::sys::{Fpage, Rights};

/// Log2 of the size of a page.
const PAGE_LOG2: u32 = 12;

/// Pages that are looked at, at most: tables may lead anywhere.
const PAGES_MAX: usize = 64;

/// The tables.
#[derive(Debug)]
pub struct Firmware {
    /// Physical address of the root pointer, 0 if there is none.
    pointer: u64,
    pages: Vec<(u64, DeviceMemory)>,
}

impl Firmware {
    /// Asks where they are.
    pub fn open() -> Firmware {
        Firmware { pointer: sigma0::firmware(rt::home()).unwrap_or(0), pages: Vec::new() }
    }

    /// The first table with a name.
    pub fn table(&mut self, name: [u8; 4]) -> Option<Vec<u8>> {
        let pointer = self.pointer;
        find(self, pointer, name)
    }

    /// The page with this number. None if it is memory of somebody's, or if there were too many.
    fn page(&mut self, number: u64) -> Option<&DeviceMemory> {
        let known = self.pages.iter().position(|(known, _)| *known == number);
        let at = match known {
            Some(at) => at,
            None if self.pages.len() < PAGES_MAX => {
                // σ0 gives it to be read, if it is no memory that programs have.
                let wanted = Fpage::memory(number << PAGE_LOG2, PAGE_LOG2, Rights::RW);
                self.pages.push((number, DeviceMemory::map(wanted).ok()?));
                self.pages.len() - 1
            }
            None => return None,
        };
        self.pages.get(at).map(|(_, page)| page)
    }
}

impl Memory for Firmware {
    fn read(&mut self, at: u64, to: &mut [u8]) -> bool {
        let Some(end) = at.checked_add(to.len() as u64).filter(|end| *end < 1 << 46) else { return false };
        let mut from = at;
        while from < end {
            let offset = (from % (1 << PAGE_LOG2)) as usize;
            let len = ((1 << PAGE_LOG2) - offset).min((end - from) as usize);
            let Some(page) = self.page(from >> PAGE_LOG2) else { return false };
            for (index, byte) in to[(from - at) as usize..][..len].iter_mut().enumerate() {
                *byte = page.read_u8(offset + index);
            }
            from += len as u64;
        }
        true
    }
}
