//! Information of boot loaders: the structures of PVH and of multiboot2, read from borrowed bytes.

use super::{COMMAND_LINE_MAX, Range, Refusal, regions};
use abi::boot::{Screen, screen_kind};

/// Information of a loader, still in the loader's memory.
#[derive(Clone, Copy, Debug)]
pub struct Loaded<'a> {
    /// Ranges of physical memory.
    pub map: MemoryMap<'a>,
    /// The first boot module.
    pub archive: Option<Range>,
    /// The command line without its terminating zero.
    pub command_line: &'a [u8],
    /// The ACPI root pointer.
    pub rsdp: Rsdp<'a>,
    /// The screen that the loader set up.
    pub screen: Screen,
}

/// Root of the ACPI tables, as a loader gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rsdp<'a> {
    /// Not given.
    Unknown,
    /// A physical address of the structure.
    At(u64),
    /// A copy of the structure.
    Copy(&'a [u8]),
}

/// The memory map; both loaders use the same entries.
///
/// ```text
///  0        8        16      20      24
/// +--------+--------+-------+-------+
/// |  base  | length | type  |   -   |
/// +--------+--------+-------+-------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryMap<'a> {
    bytes: &'a [u8],
    entry_len: usize,
}

const MAP_ENTRY: usize = 24;
pub(super) const TYPE_AVAILABLE: u32 = 1;
pub(super) const TYPE_ACPI: u32 = 3;
pub(super) const TYPE_ACPI_STORAGE: u32 = 4;

impl<'a> MemoryMap<'a> {
    #[cfg(test)]
    pub(super) fn new(bytes: &'a [u8]) -> MemoryMap<'a> {
        MemoryMap { bytes, entry_len: MAP_ENTRY }
    }

    /// Ranges with their types, in the loader's order.
    pub(super) fn entries(self) -> impl Iterator<Item = (Range, u32)> + 'a {
        self.bytes.chunks_exact(self.entry_len).filter_map(|entry| {
            let range = Range { start: word64(entry, 0)?, len: word64(entry, 8)? };
            Some((range, word32(entry, 16)?))
        })
    }
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// Value of `eax` when a multiboot2 loader enters the kernel.
pub const MULTIBOOT_MAGIC: u32 = 0x36d7_6289;

/// Reads the information structure of a multiboot2 loader (specification 2.0, section 3.6).
pub fn parse_multiboot(info: &[u8]) -> Result<Loaded<'_>, Refusal> {
    const END: u32 = 0;
    const COMMAND_LINE: u32 = 1;
    const MODULE: u32 = 3;
    const MEMORY_MAP: u32 = 6;
    const FRAMEBUFFER: u32 = 8;
    const ACPI_OLD: u32 = 14;
    const ACPI_NEW: u32 = 15;

    let mut map = None;
    let mut archive = None;
    let mut command_line: &[u8] = &[];
    let mut rsdp = Rsdp::Unknown;
    let mut screen = Screen::default();
    let mut at = 8;
    while let (Some(kind), Some(len)) = (word32(info, at), word32(info, at + 4)) {
        let Some(tag) = info.get(at..at.saturating_add(len as usize)).filter(|tag| tag.len() >= 8) else {
            break;
        };
        match kind {
            END => break,
            COMMAND_LINE => command_line = until_zero(&tag[8..]),
            MODULE if archive.is_none() => {
                if let (Some(start), Some(end)) = (word32(tag, 8), word32(tag, 12)) {
                    archive = Some(Range::new(start as u64, end as u64));
                }
            }
            MEMORY_MAP => {
                let entry_len = word32(tag, 8).unwrap_or(0) as usize;
                if entry_len >= MAP_ENTRY && tag.len() >= 16 {
                    map = Some(MemoryMap { bytes: &tag[16..], entry_len });
                }
            }
            FRAMEBUFFER => screen = parse_screen(tag).unwrap_or_default(),
            // The newer one has the wider pointers, so it wins over the older one.
            ACPI_NEW => rsdp = Rsdp::Copy(&tag[8..]),
            ACPI_OLD if rsdp == Rsdp::Unknown => rsdp = Rsdp::Copy(&tag[8..]),
            _ => {}
        }
        at += tag.len().next_multiple_of(8);
    }
    let map = map.ok_or(Refusal::BadInfo("the boot loader gave no memory map"))?;
    Ok(Loaded { map, archive, command_line, rsdp, screen })
}

/// Reads the tag about the framebuffer (section 3.6.12 there). `None` if programs here could not draw on it.
fn parse_screen(tag: &[u8]) -> Option<Screen> {
    const RGB: u8 = 1;
    const TEXT: u8 = 2;
    let byte = |at: usize| tag.get(at).copied();
    let mut screen = Screen {
        address: word64(tag, 8)?,
        pitch: word32(tag, 16)?,
        width: word32(tag, 20)?,
        height: word32(tag, 24)?,
        ..Screen::default()
    };
    let (bits, kind) = (byte(28)?, byte(29)?);
    match kind {
        RGB => {
            let places = [byte(32)?, byte(34)?, byte(36)?];
            let sizes = [byte(33)?, byte(35)?, byte(37)?];
            if !matches!(bits, 24 | 32)
                || sizes != [8; 3]
                || places.iter().any(|&place| place % 8 != 0 || place >= bits)
            {
                return None;
            }
            screen.kind = screen_kind::PIXELS;
            [screen.red, screen.green, screen.blue] = places;
            screen.bytes = bits / 8;
        }
        TEXT => {
            screen.kind = screen_kind::TEXT;
            screen.bytes = 2;
        }
        _ => return None,
    }
    // Longest side: no screen has a longer one, and products of two of them do not overflow.
    const SIDE_MAX: u32 = 1 << 15;
    let sides = [screen.width, screen.height];
    let is_plausible = sides.iter().all(|side| (1..=SIDE_MAX).contains(side))
        && screen.pitch >= screen.width * u32::from(screen.bytes)
        && screen.pitch <= SIDE_MAX * 8
        && screen.address != 0
        && screen.address.is_multiple_of(4)
        && screen.address < regions::ADDRESS_END;
    is_plausible.then_some(screen)
}

/// First word of the structure to which `ebx` points at the PVH entry.
pub const PVH_MAGIC: u32 = 0x336e_c578;

/// Reads the start structure of a PVH loader (Xen's `arch-x86/hvm/start_info.h`, version 1). `read` gives bytes of
/// physical memory.
pub fn parse_pvh<'a>(
    start_info: u64,
    read: impl Fn(u64, u64) -> Option<&'a [u8]>,
) -> Result<Loaded<'a>, Refusal> {
    const LEN: u64 = 56;
    const MODULE_LEN: u64 = 32;
    let missing = Refusal::BadInfo("the boot loader gave no memory map");
    let info = read(start_info, LEN).ok_or(missing)?;
    let word32 = |at| word32(info, at).ok_or(missing);
    let word64 = |at| word64(info, at).ok_or(missing);
    if word32(0)? != PVH_MAGIC || word32(4)? < 1 {
        return Err(missing);
    }
    let map = read(word64(40)?, word32(48)? as u64 * MAP_ENTRY as u64).ok_or(missing)?;
    let module = if word32(12)? > 0 { read(word64(16)?, MODULE_LEN) } else { None };
    let archive = module
        .and_then(|module| Some(Range { start: self::word64(module, 0)?, len: self::word64(module, 8)? }));
    let command_line = match word64(24)? {
        0 => &[],
        // One byte more than fits, so that a longer line is noticed and not cut.
        at => {
            let bytes = read(at, COMMAND_LINE_MAX as u64 + 1);
            until_zero(bytes.ok_or(Refusal::BadInfo("the boot command line is out of reach"))?)
        }
    };
    let rsdp = match word64(32)? {
        0 => Rsdp::Unknown,
        at => Rsdp::At(at),
    };
    let map = MemoryMap { bytes: map, entry_len: MAP_ENTRY };
    Ok(Loaded { map, archive, command_line, rsdp, screen: Screen::default() })
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or(&[])
}
