//! Placeholder: says what was found, and ends.

use crate::arch::{power, timer};
use crate::boot::Boot;
use crate::kprintln;
use crate::options::Options;

/// The first line of the portable kernel.
pub fn start(boot: &'static Boot, options: &Options) -> ! {
    kprintln!("tern: options   {options:?}");
    kprintln!("tern: archive   {} bytes at {:#x}, rsdp {:#x}", boot.archive.len, boot.archive.start, boot.rsdp);
    for region in boot.memory.as_slice() {
        kprintln!("tern: memory    {:#014x} + {:#012x} kind {}", region.base, region.len, region.kind);
    }
    kprintln!("tern: now       {} ns", timer::now_ns());
    power::exit(power::SUCCESS)
}
