//! The virtual dynamic shared object of Linux: one page of code that the kernel, here whoever plays it, maps into each process, so that a program learns the
//! time without a system call. C libraries look for its functions by their names when a program begins.
//!
//! The page is a whole shared library, written in [assembly](../vdso.s): headers, symbols with versions, and the code. It computes the time from
//! the processor's counter by Tern's information page, which every task can read, and has one number of its own: the date at which the machine began.

#![no_std]

extern crate alloc;

use abi::INFO_PAGE;
use abi::boot::InfoPage;
use alloc::vec::Vec;
use core::arch::global_asm;
use core::mem::offset_of;

/// Bytes of the object.
pub const LEN_BYTES: usize = 4096;

/// Place of the date in the page: the last word.
const ZERO_AT: usize = LEN_BYTES - 8;

global_asm!(
    include_str!("vdso.s"),
    page = const LEN_BYTES,
    zero = const ZERO_AT,
    info = const INFO_PAGE as i64,
    tsc_start = const offset_of!(InfoPage, tsc_start),
    tsc_to_ns = const offset_of!(InfoPage, tsc_to_ns),
);

unsafe extern "C" {
    static linux_vdso: [u8; LEN_BYTES];
}

/// The page, for a machine whose clock stood at 0 so many nanoseconds after the beginning of 1970, UTC.
pub fn page(zero_ns: u64) -> Vec<u8> {
    // SAFETY: the assembly above defines so many bytes, which nobody writes to.
    let mut page = unsafe { linux_vdso }.to_vec();
    page[ZERO_AT..].copy_from_slice(&zero_ns.to_le_bytes());
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use elf::ElfBytes;
    use elf::endian::LittleEndian;

    /// Functions that C libraries look for, all of them with Linux's version.
    const FUNCTIONS: [&str; 4] =
        ["__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time", "__vdso_getcpu"];

    #[test]
    fn a_loader_finds_all_functions() {
        let page = page(7);
        assert_eq!(page[ZERO_AT..], 7u64.to_le_bytes());
        let file = ElfBytes::<LittleEndian>::minimal_parse(&page).unwrap();
        let segments = file.segments().unwrap();
        let load = segments.iter().find(|segment| segment.p_type == elf::abi::PT_LOAD).unwrap();
        assert_eq!((load.p_vaddr, load.p_offset, load.p_memsz), (0, 0, LEN_BYTES as u64));
        let table = segments.iter().find(|segment| segment.p_type == elf::abi::PT_DYNAMIC).unwrap();
        let table = &page[table.p_offset as usize..][..table.p_filesz as usize];
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let entry = |tag: i64| {
            let mut entries = table.chunks_exact(16);
            entries.find(|entry| word(&entry[..8]) == tag as u64).map(|entry| word(&entry[8..]) as usize)
        };
        let texts = entry(elf::abi::DT_STRTAB).unwrap();
        let text = |at: usize| {
            let bytes = &page[texts + at..];
            core::str::from_utf8(bytes.split(|byte| *byte == 0).next().unwrap()).unwrap()
        };
        assert_eq!(text(entry(elf::abi::DT_SONAME).unwrap()), "linux-vdso.so.1");
        let (symbols, versions) = (entry(elf::abi::DT_SYMTAB).unwrap(), entry(elf::abi::DT_VERSYM).unwrap());
        let hashes = entry(elf::abi::DT_HASH).unwrap();
        let half = |at: usize| u16::from_le_bytes([page[at], page[at + 1]]);
        let number = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().unwrap());
        let (buckets, count) = (number(hashes), number(hashes + 4) as usize);
        assert_eq!(buckets, 1);
        let mut found = Vec::new();
        let mut index = number(hashes + 8) as usize;
        while index != 0 {
            let at = symbols + 24 * index;
            let (name, info, section) = (text(number(at) as usize), page[at + 4], half(at + 6));
            assert!((info, section != 0) == (0x12, true), "{name}");
            let (value, size) =
                (word(&page[at + 8..at + 16]) as usize, word(&page[at + 16..at + 24]) as usize);
            assert!(size > 0 && value + size <= ZERO_AT, "{name}");
            assert_eq!(half(versions + 2 * index), 2, "{name}");
            found.push(name);
            index = number(hashes + 12 + 4 * index) as usize;
        }
        assert_eq!((found.as_slice(), count), (&FUNCTIONS[..], FUNCTIONS.len() + 1));
        // The version, as loaders compare it: by its hash, and by its name.
        let second = entry(elf::abi::DT_VERDEF).unwrap();
        let second = second + number(second + 16) as usize;
        assert_eq!((half(second + 4), number(second + 8)), (2, elf::hash::sysv_hash(b"LINUX_2.6")));
        assert_eq!(text(number(second + number(second + 12) as usize) as usize), "LINUX_2.6");
    }
}
