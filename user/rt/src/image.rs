//! Program files: which page of a program holds what.
//!
//! Files are hostile input. What [`Image::parse`] accepts has segments inside the image region, no two of them on
//! one page, and none both writable and executable.

use crate::layout;
use api::Status;
use arrayvec::ArrayVec;
use core::ops::Range;
use elf::ElfBytes;
use elf::abi::{EM_X86_64, ET_EXEC, PF_W, PF_X, PT_LOAD};
use elf::endian::LittleEndian;
use elf::file::Class;
use elf::segment::ProgramHeader;
use sys::Rights;
use sys::abi::PAGE_SIZE;

/// Most segments of a program.
const SEGMENTS_MAX: usize = 8;

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

/// What a page of a program holds at first.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Bytes from the file.
    pub bytes: &'static [u8],
    /// Where in the page they begin; everything else is zero.
    pub at: usize,
    /// What the program may do with the page.
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

    /// What belongs on the page at this address, if the program has one there.
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
