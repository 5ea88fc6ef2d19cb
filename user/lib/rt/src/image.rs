//! Program files: which page of a program holds what.
//!
//! Files are hostile input. What [`Image::parse`] accepts has segments inside the image region, no two of them on
//! one page, and none both writable and executable. [`kind`] says from its head for which system a file is.

use crate::layout;
use api::Status;
use arrayvec::ArrayVec;
use core::ops::Range;
use elf::ElfBytes;
use elf::abi::{
    EI_NIDENT, ELFOSABI_LINUX, ELFOSABI_SYSV, EM_X86_64, ET_DYN, ET_EXEC, PF_W, PF_X, PT_INTERP, PT_LOAD,
};
use elf::endian::LittleEndian;
use elf::file::{Class, FileHeader};
use elf::segment::{ProgramHeader, SegmentTable};
use sys::Rights;
use sys::abi::PAGE_SIZE;

/// Most segments of a program.
const SEGMENTS_MAX: usize = 8;

/// Mark of a program of Tern: type of a program header without content, which its linker script gives it. As bytes it is `tern`.
pub const MARK: u32 = u32::from_le_bytes(*b"tern");

/// The system that a program file is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Tern.
    Tern,
    /// Linux. Where in the file the path of its interpreter is, with the zero behind it, if it has one.
    Linux(Option<Range<u64>>),
}

/// The system that a program is for, by the head of its file, which holds its program headers. None if it is no program for this processor.
///
/// Programs of Tern have a mark. All others are Linux's, unless they name another system: few linkers write down that a program is for Linux.
pub fn kind(head: &[u8]) -> Option<Kind> {
    let ident = elf::file::parse_ident::<LittleEndian>(head.get(..EI_NIDENT)?).ok()?;
    let header = FileHeader::parse_tail(ident, head.get(EI_NIDENT..HEADER_BYTES)?).ok()?;
    let is_program = header.class == Class::ELF64
        && header.e_machine == EM_X86_64
        && matches!(header.e_type, ET_EXEC | ET_DYN)
        && matches!(header.osabi, ELFOSABI_SYSV | ELFOSABI_LINUX);
    let first = usize::try_from(header.e_phoff).ok()?;
    let len = usize::from(header.e_phnum) * ENTRY_BYTES;
    if !is_program || usize::from(header.e_phentsize) != ENTRY_BYTES || len == 0 {
        return None;
    }
    let table = SegmentTable::new(LittleEndian, Class::ELF64, head.get(first..first.checked_add(len)?)?);
    if table.iter().any(|entry| entry.p_type == MARK) {
        return Some(Kind::Tern);
    }
    let interpreter = table.iter().find(|entry| entry.p_type == PT_INTERP);
    Some(Kind::Linux(interpreter.map(|entry| entry.p_offset..entry.p_offset.saturating_add(entry.p_filesz))))
}

/// Bytes of a file's header, and of each program header.
const HEADER_BYTES: usize = 64;
/// See [`HEADER_BYTES`].
const ENTRY_BYTES: usize = 56;

/// A program file, checked.
#[derive(Clone, Debug)]
pub struct Image {
    file: &'static [u8],
    entry: u64,
    segments: ArrayVec<Segment, SEGMENTS_MAX>,
}

/// A part of a program with the same rights.
#[derive(Clone, Debug)]
struct Segment {
    address: u64,
    len: u64,
    rights: Rights,
    contents: Range<usize>,
}

impl Segment {
    fn pages(&self) -> Range<u64> {
        self.address / PAGE_SIZE..(self.address + self.len).div_ceil(PAGE_SIZE)
    }
}

/// Content of a page of a program at first.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Bytes from the file.
    pub bytes: &'static [u8],
    /// Where in the page they begin; everything else is zero.
    pub at: usize,
    /// Rights of the program to the page.
    pub rights: Rights,
}

impl Image {
    /// Reads a program file.
    pub fn parse(file: &'static [u8]) -> Result<Image, Status> {
        let parsed = ElfBytes::<LittleEndian>::minimal_parse(file).map_err(|_| Status::BadImage)?;
        let header = parsed.ehdr;
        if header.class != Class::ELF64 || header.e_type != ET_EXEC || header.e_machine != EM_X86_64 {
            return Err(Status::BadImage);
        }
        let mut image = Image { file, entry: header.e_entry, segments: ArrayVec::new() };
        let headers = parsed.segments().ok_or(Status::BadImage)?;
        for header in headers.iter().filter(|header| header.p_type == PT_LOAD && header.p_memsz > 0) {
            let segment = image.check(&header).ok_or(Status::BadImage)?;
            image.segments.try_push(segment).map_err(|_| Status::BadImage)?;
        }
        Ok(image)
    }

    /// A segment, if it is inside the file and the image region and alone on its pages.
    fn check(&self, header: &ProgramHeader) -> Option<Segment> {
        let end = header.p_vaddr.checked_add(header.p_memsz)?;
        let contents_end = header.p_offset.checked_add(header.p_filesz)?;
        let is_inside = header.p_vaddr >= layout::IMAGE.start
            && end <= layout::IMAGE.end
            && header.p_filesz <= header.p_memsz
            && contents_end <= self.file.len() as u64;
        let rights = match header.p_flags & (PF_W | PF_X) {
            0 => Rights::R,
            PF_W => Rights::RW,
            PF_X => Rights::RX,
            _ => return None,
        };
        let segment = Segment {
            address: header.p_vaddr,
            len: header.p_memsz,
            rights,
            contents: header.p_offset as usize..contents_end as usize,
        };
        let pages = segment.pages();
        let is_alone = self
            .segments
            .iter()
            .map(Segment::pages)
            .all(|other| pages.end <= other.start || other.end <= pages.start);
        (is_inside && is_alone).then_some(segment)
    }

    /// Where the program starts.
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// Content of the page at this address, if the program has one there.
    pub fn page(&self, address: u64) -> Option<Page> {
        let start = address & !(PAGE_SIZE - 1);
        let segment = self.segments.iter().find(|segment| segment.pages().contains(&(start / PAGE_SIZE)))?;
        // Distances from the segment's first byte: of the page's start, and of the part that the file provides.
        let at = segment.address.saturating_sub(start);
        let skip = start.saturating_sub(segment.address) as usize;
        let contents = &self.file[segment.contents.clone()];
        let rest = contents.get(skip..).unwrap_or_default();
        let bytes = &rest[..rest.len().min((PAGE_SIZE - at) as usize)];
        Some(Page { bytes, at: at as usize, rights: segment.rights })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// A program file with these segments: address, size in memory, flags, contents.
    fn program(segments: &[(u64, u64, u32, &[u8])]) -> Vec<u8> {
        let mut out = [0u8; 64].to_vec();
        out[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(16, &ET_EXEC.to_le_bytes());
        put(18, &EM_X86_64.to_le_bytes());
        put(20, &1u32.to_le_bytes());
        put(24, &layout::IMAGE.start.to_le_bytes());
        put(32, &64u64.to_le_bytes());
        put(52, &64u16.to_le_bytes());
        put(54, &56u16.to_le_bytes());
        put(56, &(segments.len() as u16).to_le_bytes());
        let mut offset = 64 + 56 * segments.len() as u64;
        for (address, len, flags, contents) in segments {
            out.extend([PT_LOAD, *flags].iter().flat_map(|word| word.to_le_bytes()));
            let words = [offset, *address, *address, contents.len() as u64, *len, PAGE_SIZE];
            out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            offset += contents.len() as u64;
        }
        segments.iter().for_each(|segment| out.extend(segment.3));
        out
    }

    fn parse(file: &[u8]) -> Result<Image, Status> {
        Image::parse(Vec::leak(file.to_vec()))
    }

    const TEXT: u64 = layout::IMAGE.start;
    const DATA: u64 = TEXT + 0x2000;

    #[test]
    fn pages_hold_what_the_file_says() {
        let text = [7; 0x1010];
        let image =
            parse(&program(&[(TEXT, 0x1010, PF_X, &text), (DATA + 8, 0x3000, PF_W, b"data")])).unwrap();
        assert_eq!(image.entry(), TEXT);
        let first = image.page(TEXT + 5).unwrap();
        assert_eq!((first.at, first.bytes.len(), first.rights), (0, 0x1000, Rights::RX));
        assert_eq!(image.page(TEXT + 0x1000).unwrap().bytes, [7; 0x10]);
        let data = image.page(DATA).unwrap();
        assert_eq!((data.at, data.bytes, data.rights), (8, &b"data"[..], Rights::RW));
        assert_eq!(image.page(DATA + 0x3000).unwrap().bytes, b"", "the last byte of the zeroes");
        assert!(image.page(DATA + 0x4000).is_none());
        assert!(image.page(0).is_none());
    }

    #[test]
    fn bad_segments_are_refused() {
        let ok = (TEXT, 0x1000, PF_X, &b""[..]);
        for bad in [
            (TEXT + 0xfff, 2, PF_W, &b""[..]),
            (DATA, 0x1000, PF_W | PF_X, b""),
            (0x1000, 0x1000, PF_W, b""),
            (layout::IMAGE.end - 1, 2, PF_W, b""),
            (u64::MAX - 10, 100, PF_W, b""),
            (DATA, 1, PF_W, b"more than that"),
        ] {
            assert!(parse(&program(&[ok, bad])).is_err(), "{bad:x?}");
        }
        assert!(parse(&program(&[ok; 2])).is_err(), "on one page");
        assert!(parse(b"no ELF").is_err());
    }

    #[test]
    fn a_file_says_for_which_system_it_is() {
        let ours = program(&[(TEXT, 0x1000, PF_X, &b"text"[..]), (DATA, 8, 0, b"")]);
        let with = |file: &[u8], changes: &[(usize, &[u8])]| {
            let mut file = file.to_vec();
            changes.iter().for_each(|(at, bytes)| file[*at..*at + bytes.len()].copy_from_slice(bytes));
            kind(&file)
        };
        let second = HEADER_BYTES + ENTRY_BYTES;
        assert_eq!(with(&ours, &[]), Some(Kind::Linux(None)));
        assert_eq!(with(&ours, &[(second, b"tern")]), Some(Kind::Tern));
        let found =
            with(&ours, &[(second, &PT_INTERP.to_le_bytes()), (second + 8, &[9]), (second + 32, &[4])]);
        assert_eq!(found, Some(Kind::Linux(Some(9..13))));
        assert_eq!(with(&ours, &[(7, &[ELFOSABI_LINUX]), (16, &[3])]), Some(Kind::Linux(None)));
        // Another system's, another processor's, an object, too many headers, and none.
        for change in [(7, 9), (18, 0xb7), (16, 1), (56, 99), (56, 0)] {
            assert_eq!(with(&ours, &[(change.0, &[change.1])]), None, "{change:?}");
        }
        for len in 0..second + ENTRY_BYTES {
            assert_eq!(kind(&ours[..len]), None, "{len}");
        }
    }

    #[test]
    fn damage_never_panics() {
        let file = program(&[(TEXT, 0x1000, PF_X, b"text"), (DATA, 0x2000, PF_W, b"data")]);
        for at in 0..file.len() {
            let _ = parse(&file[..at]);
            for value in [0, 1, 0x7f, 0xff] {
                let mut bad = file.clone();
                bad[at] = value;
                let Ok(image) = parse(&bad) else { continue };
                for page in (TEXT..TEXT + 0x8000).step_by(PAGE_SIZE as usize) {
                    let fits = |page: Page| page.at + page.bytes.len() <= PAGE_SIZE as usize;
                    assert!(image.page(page).is_none_or(fits));
                }
            }
        }
    }
}
