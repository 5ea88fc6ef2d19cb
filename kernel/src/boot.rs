//! Information from the boot loader: memory, boot archive, command line.
//!
//! Two loaders are understood, PVH (`qemu -kernel`) and multiboot2 (GRUB). Both hand over a list of memory ranges
//! that may be unsorted, overlapping and misaligned, and put the archive and their own tables into memory that
//! the list calls available. Everything here works on borrowed bytes, never reads outside them, and is tested on
//! the host; `entry` gives the bytes.

pub mod loader;
pub mod regions;
#[cfg(test)]
mod tests;

pub use regions::{Memory, Range, Regions};

use crate::layout;
use crate::param::{MEMORY_MIN, POOL_MIN, POOL_SHARE, POOL_SHARE_MAX};
use abi::boot::{InfoPage, Screen, memory_kind};
use core::fmt;
use regions::ADDRESS_END;

/// Everything the portable kernel learns from the boot.
pub struct Boot {
    /// Physical memory, sorted, merged and page-aligned.
    pub memory: Regions,
    /// The boot archive.
    pub archive: Range,
    /// The command line; valid up to `command_line_len`.
    pub command_line: [u8; COMMAND_LINE_MAX],
    /// Bytes of `command_line`.
    pub command_line_len: usize,
    /// Physical address of the ACPI root pointer, 0 if there is none.
    pub rsdp: u64,
    /// The kernel's own memory, mapped at [`layout::POOL`].
    pub pool: Pool,
    /// The page at [`layout::INFO`], by an address at which the kernel may write.
    pub info_page: *mut InfoPage,
    /// I/O port of the console, 0 if there is none.
    pub serial_port: u16,
    /// Processors found; all but the first are parked.
    pub cpus: u32,
    /// The screen that the loader set up.
    pub screen: Screen,
}

/// Longest command line, in bytes.
pub const COMMAND_LINE_MAX: usize = 512;

impl Boot {
    /// Boot information of which nothing is known yet.
    pub const fn new() -> Boot {
        Boot {
            memory: Regions::new(),
            archive: Range { start: 0, len: 0 },
            command_line: [0; COMMAND_LINE_MAX],
            command_line_len: 0,
            rsdp: 0,
            pool: Pool { range: Range { start: 0, len: 0 }, used: 0 },
            info_page: core::ptr::null_mut(),
            serial_port: 0,
            cpus: 1,
            screen: Screen {
                address: 0,
                pitch: 0,
                width: 0,
                height: 0,
                kind: 0,
                bytes: 0,
                red: 0,
                green: 0,
                blue: 0,
            },
        }
    }

    /// The command line as text.
    pub fn command_line(&self) -> Result<&str, Refusal> {
        core::str::from_utf8(&self.command_line[..self.command_line_len])
            .map_err(|_| Refusal::BadInfo("the boot command line is not text"))
    }

    /// Keeps the command line, which has to outlive the loader's own memory.
    pub fn set_command_line(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let target = self.command_line.get_mut(..bytes.len()).ok_or(Refusal::LongCommandLine)?;
        target.copy_from_slice(bytes);
        self.command_line_len = bytes.len();
        Ok(())
    }
}

impl Default for Boot {
    fn default() -> Boot {
        Boot::new()
    }
}

/// The kernel's own memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pool {
    /// Physical addresses; both bounds are multiples of [`POOL_UNIT`].
    pub range: Range,
    /// Bytes from its start that the boot has used.
    pub used: u64,
}

/// Alignment and granularity of the pool: a large page, so that mapping it costs the fewest TLB entries.
pub const POOL_UNIT: u64 = 2 << 20;

/// Reason why the kernel does not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The processor lacks something.
    Processor(&'static str),
    /// The loader's information makes no sense.
    BadInfo(&'static str),
    /// The command line does not fit.
    LongCommandLine,
    /// No boot module.
    NoArchive,
    /// The archive is empty or lies where it cannot be.
    BadArchive(Range),
    /// Less memory than [`MEMORY_MIN`]; in bytes.
    LittleMemory(u64),
    /// The option `kmem` asks for less than [`POOL_MIN`]; in bytes.
    SmallPool(u64),
    /// The option `kmem` asks for more than half of memory; both in bytes.
    LargePool(u64, u64),
    /// Memory is too fragmented for a pool of so many bytes.
    NoRoomForPool(u64),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match *self {
            Refusal::Processor(what) => write!(f, "this processor lacks {what}"),
            Refusal::BadInfo(what) => f.write_str(what),
            Refusal::LongCommandLine => {
                write!(f, "the boot command line is longer than {COMMAND_LINE_MAX} bytes")
            }
            Refusal::NoArchive => f.write_str("no boot archive (qemu: -initrd FILE, GRUB: module2 FILE)"),
            Refusal::BadArchive(range) => {
                write!(f, "the boot archive cannot be {} bytes at {:#x}", range.len, range.start)
            }
            Refusal::LittleMemory(bytes) => write!(
                f,
                "this machine has {} MiB of memory, Tern needs at least {}",
                bytes.div_ceil(MIB),
                MEMORY_MIN / MIB
            ),
            Refusal::SmallPool(bytes) => {
                write!(f, "kmem={} is too small, Tern needs at least {}", Size(bytes), Size(POOL_MIN))
            }
            Refusal::LargePool(bytes, memory) => write!(
                f,
                "kmem={} is more than half of the machine's {} MiB of memory",
                Size(bytes),
                memory.div_ceil(MIB)
            ),
            Refusal::NoRoomForPool(bytes) => {
                write!(f, "no {} of contiguous memory for the kernel", Size(bytes))
            }
        }
    }
}

const MIB: u64 = 1 << 20;

/// A size for people: in the largest unit that divides it.
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.0 {
            bytes if bytes != 0 && bytes % (1 << 30) == 0 => write!(f, "{} GiB", bytes >> 30),
            bytes if bytes != 0 && bytes % (1 << 20) == 0 => write!(f, "{} MiB", bytes >> 20),
            bytes if bytes != 0 && bytes % (1 << 10) == 0 => write!(f, "{} KiB", bytes >> 10),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

/// Checks that the archive can be where the loader says.
pub fn check_archive(archive: Option<Range>, image: Range) -> Result<Range, Refusal> {
    let archive = archive.ok_or(Refusal::NoArchive)?;
    let end = archive.start.checked_add(archive.len);
    if archive.len == 0 || end.is_none_or(|end| end > ADDRESS_END) || archive.overlaps(image) {
        return Err(Refusal::BadArchive(archive));
    }
    Ok(archive)
}

/// Takes the kernel's pool from free memory: as high as possible, because devices with narrow addresses need low
/// memory. `wanted` is the boot option `kmem`, in bytes.
pub fn take_pool(memory: &mut Memory, wanted: Option<u64>) -> Result<Pool, Refusal> {
    let ram_bytes = memory.ram_bytes;
    // Firmware keeps a few hundred KiB for itself, so the smallest machine counts in whole MiB.
    if ram_bytes.next_multiple_of(MIB) < MEMORY_MIN {
        return Err(Refusal::LittleMemory(ram_bytes));
    }
    match wanted {
        Some(bytes) if bytes < POOL_MIN => return Err(Refusal::SmallPool(bytes)),
        Some(bytes) if bytes > ram_bytes / 2 => return Err(Refusal::LargePool(bytes, ram_bytes)),
        _ => {}
    }
    let share = (ram_bytes / POOL_SHARE / POOL_UNIT * POOL_UNIT).clamp(POOL_MIN, POOL_SHARE_MAX);
    let len = wanted.map_or(share, |bytes| bytes.next_multiple_of(POOL_UNIT)).min(POOL_MAX);
    let start = memory
        .regions
        .ranges(memory_kind::FREE)
        .rev()
        .filter_map(|range| Some((range, range.end().checked_sub(len)? & !(POOL_UNIT - 1))))
        .find(|(range, start)| *start >= range.start)
        .ok_or(Refusal::NoRoomForPool(len))?
        .1;
    let range = Range { start, len };
    memory.regions.paint(range, memory_kind::KERNEL);
    Ok(Pool { range, used: 0 })
}

/// Largest pool, in bytes: it has one entry of the top-level table.
const POOL_MAX: u64 = 1 << 39;

const _: () = assert!(POOL_MIN.is_multiple_of(POOL_UNIT) && layout::POOL.is_multiple_of(POOL_MAX));
