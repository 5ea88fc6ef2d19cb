//! Information that the kernel gives the first task, and the information page that every task sees.

/// Information for σ0, at the address in its `rdi` when it starts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BootInfo {
    /// [`BootInfo::MAGIC`].
    pub magic: u64,
    /// Number of valid entries in `memory`.
    pub memory_count: u64,
    /// Physical memory, sorted, without overlap. A range that is not listed is device memory or nothing.
    pub memory: [MemoryRegion; BootInfo::MEMORY_MAX],
    /// Physical address of the boot archive (see [`archive`](crate::archive)).
    pub archive: u64,
    /// Its size in bytes.
    pub archive_len: u64,
    /// Physical address of the ACPI root pointer, 0 if there is none.
    pub rsdp: u64,
    /// Number of valid bytes in `command_line`.
    pub command_line_len: u64,
    /// The boot command line, as far as it fits.
    pub command_line: [u8; 512],
    /// Serial port that the kernel prints to (an I/O port number), 0 if none.
    pub serial: u64,
    /// Number of processors found; those beyond the first are parked.
    pub cpus: u64,
    /// Screen that the boot loader set up.
    pub screen: Screen,
}

impl BootInfo {
    /// First word of a valid structure.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"TERNBOOT");
    /// Number of memory regions that are passed on at most; beyond it the smallest ones are dropped.
    pub const MEMORY_MAX: usize = 64;
}

/// A screen: memory whose contents a person sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Screen {
    /// Physical address of the upper left corner.
    pub address: u64,
    /// Bytes from one line to the next.
    pub pitch: u32,
    /// Pixels or characters in a line.
    pub width: u32,
    /// Number of lines.
    pub height: u32,
    /// One of [`screen_kind`].
    pub kind: u8,
    /// Bytes of a pixel or character.
    pub bytes: u8,
    /// Lowest bit of a pixel's red, of eight.
    pub red: u8,
    /// Lowest bit of a pixel's green, of eight.
    pub green: u8,
    /// Lowest bit of a pixel's blue, of eight.
    pub blue: u8,
}

/// Kinds of [`Screen`].
pub mod screen_kind {
    /// No screen.
    pub const NONE: u8 = 0;
    /// Pixels of three bytes or four.
    pub const PIXELS: u8 = 1;
    /// Characters of the PC's first character set, each followed by its attribute.
    pub const TEXT: u8 = 2;
}

/// A range of physical memory. Base and size are multiples of the page size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct MemoryRegion {
    /// Physical address of the first byte.
    pub base: u64,
    /// Size in bytes.
    pub len: u64,
    /// One of [`memory_kind`].
    pub kind: u64,
}

/// Kinds of [`MemoryRegion`].
pub mod memory_kind {
    /// Free memory for σ0 to hand out.
    pub const FREE: u64 = 1;
    /// Memory that belongs to the kernel. σ0 has no mapping of it.
    pub const KERNEL: u64 = 2;
    /// The boot archive.
    pub const ARCHIVE: u64 = 3;
    /// σ0's own program.
    pub const SIGMA0: u64 = 4;
    /// ACPI tables and firmware data; readable, never to be used as memory.
    pub const FIRMWARE: u64 = 5;
}

/// The page at [`INFO_PAGE`](crate::INFO_PAGE): read-only, the same in every task.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct InfoPage {
    /// [`InfoPage::MAGIC`].
    pub magic: u64,
    /// [`VERSION`](crate::VERSION) of the running kernel.
    pub abi_version: u32,
    /// Bits of [`feature`].
    pub features: u32,
    /// Time-stamp counter ticks per second.
    pub tsc_hz: u64,
    /// Time-stamp counter when the kernel's clock stood at 0.
    pub tsc_start: u64,
    /// Nanoseconds per tick, as a fraction of 2³²: `ns = (tsc - tsc_start) * tsc_to_ns >> 32`.
    pub tsc_to_ns: u64,
}

impl InfoPage {
    /// First word of a valid page.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"TERNINFO");
}

/// Bits of [`InfoPage::features`].
pub mod feature {
    /// The assembly fast path is on.
    pub const FAST_PATH: u32 = 1 << 0;
    /// Address spaces are tagged in the TLB (PCID).
    pub const PCID: u32 = 1 << 1;
    /// The time-stamp counter runs at a constant rate in all power states.
    pub const INVARIANT_TSC: u32 = 1 << 2;
}
