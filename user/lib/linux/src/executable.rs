//! Executables: what is to be mapped, and the stack with which a program begins. ELF for x86-64, System V ABI.
//!
//! Nothing is believed: each number of a file is checked before it is used, and what makes no sense is `ENOEXEC`, as in Linux.

use crate::errno::{E2BIG, EINVAL, ENOEXEC, Result};
use crate::frames::PAGE;
use crate::memory::{END, FIRST, Rights, STACK_MAX};
use alloc::vec::Vec;
use elf::abi::{EM_X86_64, ET_DYN, ET_EXEC, PF_R, PF_W, PF_X, PT_INTERP, PT_LOAD, PT_PHDR};
use elf::endian::LittleEndian;
use elf::file::Class;
use elf::segment::ProgramHeader;
use linux_raw_sys::auxvec;

/// Bytes at the beginning of a file in which its headers have to be: as much as Linux reads.
pub const HEAD_BYTES: usize = PAGE as usize;

/// Segments of an executable, at most.
const SEGMENTS_MAX: usize = 64;

/// Most bytes of arguments and environment together: a quarter of the stack, as in Linux.
pub const ARGUMENTS_MAX: usize = STACK_MAX as usize / 4;

/// Longest path of an interpreter.
const INTERPRETER_MAX: u64 = 4096;

/// Where executables that may be anywhere are put, and their interpreters.
pub const BASE: u64 = 0x5555_5555_4000;
/// See [`BASE`].
pub const INTERPRETER_BASE: u64 = 0x7fff_e000_0000;

/// A piece of a file to be mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// First address, in an executable that may be anywhere: from its base on.
    pub address: u64,
    /// Where it begins in the file. Addresses and offsets are equal within a page.
    pub offset: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of memory: those behind the file's are zero.
    pub memory_bytes: u64,
    /// Rights to its pages.
    pub rights: Rights,
}

impl Segment {
    /// First page, end of the pages of the file, end of all pages.
    pub fn pages(&self) -> (u64, u64, u64) {
        let up = |address: u64| address.div_ceil(PAGE) * PAGE;
        let first = self.address / PAGE * PAGE;
        let file = if self.file_bytes == 0 { first } else { up(self.address + self.file_bytes) };
        (first, file, up(self.address + self.memory_bytes))
    }
}

/// An executable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Executable {
    /// Its pieces, by address, none of which overlap.
    pub segments: Vec<Segment>,
    /// Where it begins.
    pub entry: u64,
    /// Whether it may be anywhere.
    pub is_movable: bool,
    /// Where its program headers are in memory, and how many.
    pub headers: (u64, u16),
    /// Where in the file the path of its interpreter is, and its bytes with the zero.
    pub interpreter: Option<(u64, u64)>,
}

impl Executable {
    /// Reads the head of a file: [`HEAD_BYTES`], or all of it if that is less.
    pub fn read(head: &[u8], file_bytes: u64) -> Result<Executable> {
        let bad = |_| ENOEXEC;
        let ident = head.get(..elf::abi::EI_NIDENT).ok_or(ENOEXEC)?;
        let ident = elf::file::parse_ident::<LittleEndian>(ident).map_err(bad)?;
        let tail = head.get(elf::abi::EI_NIDENT..64).ok_or(ENOEXEC)?;
        let header = elf::file::FileHeader::parse_tail(ident, tail).map_err(bad)?;
        let is_kind = matches!(header.e_type, ET_EXEC | ET_DYN);
        if header.class != Class::ELF64
            || !is_kind
            || header.e_machine != EM_X86_64
            || header.e_phentsize != HEADER_BYTES
        {
            return Err(ENOEXEC);
        }
        let count = usize::from(header.e_phnum);
        if count == 0 || count > SEGMENTS_MAX {
            return Err(ENOEXEC);
        }
        let first = usize::try_from(header.e_phoff).map_err(|_| ENOEXEC)?;
        let end = first.checked_add(count * usize::from(HEADER_BYTES)).ok_or(ENOEXEC)?;
        let table = head.get(first..end).ok_or(ENOEXEC)?;
        let table = elf::segment::SegmentTable::new(LittleEndian, Class::ELF64, table);
        let is_movable = header.e_type == ET_DYN;
        let mut found = Executable {
            segments: Vec::new(),
            entry: header.e_entry,
            is_movable,
            headers: (0, header.e_phnum),
            interpreter: None,
        };
        for entry in table.iter() {
            match entry.p_type {
                PT_LOAD if entry.p_memsz > 0 => found.segments.push(segment(&entry, file_bytes, is_movable)?),
                PT_PHDR => found.headers.0 = entry.p_vaddr,
                PT_INTERP if found.interpreter.is_none() => {
                    let is_there =
                        entry.p_offset.checked_add(entry.p_filesz).is_some_and(|end| end <= file_bytes);
                    if !is_there || !(2..=INTERPRETER_MAX).contains(&entry.p_filesz) {
                        return Err(ENOEXEC);
                    }
                    found.interpreter = Some((entry.p_offset, entry.p_filesz));
                }
                _ => {}
            }
        }
        let in_order =
            found.segments.windows(2).all(|two| two[0].pages().2 <= two[1].pages().0 || shares_a_page(two));
        if found.segments.is_empty() || !in_order {
            return Err(ENOEXEC);
        }
        if found.headers.0 == 0 {
            let holds = |segment: &&Segment| {
                segment.offset <= header.e_phoff && end as u64 <= segment.offset + segment.file_bytes
            };
            let at = found
                .segments
                .iter()
                .find(holds)
                .map(|segment| segment.address + (header.e_phoff - segment.offset));
            found.headers.0 = at.unwrap_or(0);
        }
        Ok(found)
    }

    /// First address and end, in whole pages.
    pub fn range(&self) -> (u64, u64) {
        let first = self.segments.first().map_or(0, |segment| segment.pages().0);
        let end = self.segments.last().map_or(0, |segment| segment.pages().2);
        (first, end)
    }
}

/// Bytes of a program header.
const HEADER_BYTES: u16 = 56;

/// Whether the second of two segments begins in the last page of the first, behind it.
fn shares_a_page(two: &[Segment]) -> bool {
    two[0].address + two[0].memory_bytes <= two[1].address
}

fn segment(entry: &ProgramHeader, file_bytes: u64, is_movable: bool) -> Result<Segment> {
    let rights = [(PF_R, Rights::READ), (PF_W, Rights::WRITE), (PF_X, Rights::EXECUTE)];
    let rights = rights.into_iter().filter(|(flag, _)| entry.p_flags & flag != 0);
    let found = Segment {
        address: entry.p_vaddr,
        offset: entry.p_offset,
        file_bytes: entry.p_filesz,
        memory_bytes: entry.p_memsz,
        rights: rights.fold(Rights::NONE, |all, (_, right)| all | right),
    };
    let end = found.address.checked_add(found.memory_bytes).filter(|&end| end <= END - PAGE);
    let is_there = found.offset.checked_add(found.file_bytes).is_some_and(|end| end <= file_bytes);
    let fits = found.file_bytes <= found.memory_bytes && (found.address ^ found.offset).is_multiple_of(PAGE);
    let is_allowed = is_movable || found.address >= FIRST;
    if end.is_some() && is_there && fits && is_allowed { Ok(found) } else { Err(ENOEXEC) }
}

/// Facts that a program finds on its stack when it begins, besides arguments and environment: numbers of `AT_…`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told {
    /// Where its program headers are, and how many.
    pub headers: (u64, u16),
    /// Where its interpreter is; 0 without one.
    pub interpreter: u64,
    /// Where it begins itself.
    pub entry: u64,
    /// Owner and group.
    pub owner: (u32, u32),
    /// Owner and group in effect. If they are others, the program sets them, and must not trust its environment.
    pub effective: (u32, u32),
    /// Numbers that nobody guesses.
    pub random: [u8; 16],
    /// Abilities of the processor, as CPUID leaf 1 says in EDX.
    pub features: u64,
    /// Address of the code that is called in place of system calls; 0 if there is none.
    pub vdso: u64,
}

/// The stack with which a program begins: its bytes, up to `top`, and the address of the first, which is the stack pointer.
pub fn stack(
    top: u64,
    arguments: &[Vec<u8>],
    environment: &[Vec<u8>],
    name: &[u8],
    told: &Told,
) -> Result<(u64, Vec<u8>)> {
    let texts = || arguments.iter().chain(environment);
    let text_bytes: usize = texts().map(|text| text.len() + 1).sum();
    let count = arguments.len() + environment.len();
    if text_bytes + 8 * count > ARGUMENTS_MAX {
        return Err(E2BIG);
    }
    if texts().any(|text| text.contains(&0)) {
        return Err(EINVAL);
    }
    // From the top down: the name, texts, random numbers, the platform's name; then words, aligned to 16 bytes.
    let platform = b"x86_64\0";
    let strings_bytes = text_bytes + name.len() + 1 + told.random.len() + platform.len();
    let strings_at = (top - 8 - strings_bytes as u64) & !15;
    let mut strings = Vec::with_capacity(strings_bytes);
    let mut addresses = Vec::with_capacity(count);
    for text in texts() {
        addresses.push(strings_at + strings.len() as u64);
        strings.extend_from_slice(text);
        strings.push(0);
    }
    let mut put = |bytes: &[u8]| {
        let at = strings_at + strings.len() as u64;
        strings.extend_from_slice(bytes);
        at
    };
    let name_at = put(name);
    put(&[0]);
    let (platform_at, random_at) = (put(platform), put(&told.random));
    let (owner, group) = (u64::from(told.owner.0), u64::from(told.owner.1));
    let (own, own_group) = (u64::from(told.effective.0), u64::from(told.effective.1));
    let vector = [
        (if told.vdso == 0 { auxvec::AT_IGNORE } else { auxvec::AT_SYSINFO_EHDR }, told.vdso),
        (auxvec::AT_PHDR, told.headers.0),
        (auxvec::AT_PHENT, HEADER_BYTES.into()),
        (auxvec::AT_PHNUM, told.headers.1.into()),
        (auxvec::AT_PAGESZ, PAGE),
        (auxvec::AT_BASE, told.interpreter),
        (auxvec::AT_FLAGS, 0),
        (auxvec::AT_ENTRY, told.entry),
        (auxvec::AT_UID, owner),
        (auxvec::AT_EUID, own),
        (auxvec::AT_GID, group),
        (auxvec::AT_EGID, own_group),
        (auxvec::AT_SECURE, u64::from(told.owner != told.effective)),
        (auxvec::AT_HWCAP, told.features),
        (auxvec::AT_CLKTCK, 100),
        (auxvec::AT_PLATFORM, platform_at),
        (auxvec::AT_RANDOM, random_at),
        (auxvec::AT_EXECFN, name_at),
        (auxvec::AT_NULL, 0),
    ];
    let words_count = 1 + arguments.len() + 1 + environment.len() + 1 + 2 * vector.len();
    let pointer = (strings_at - 8 * words_count as u64) & !15;
    let mut bytes = Vec::with_capacity((top - pointer) as usize);
    let mut word = |value: u64| bytes.extend_from_slice(&value.to_le_bytes());
    word(arguments.len() as u64);
    let (of_arguments, of_environment) = addresses.split_at(arguments.len());
    of_arguments.iter().chain(&[0]).chain(of_environment).chain(&[0]).for_each(|&address| word(address));
    for (kind, value) in vector {
        word(kind.into());
        word(value);
    }
    bytes.resize((strings_at - pointer) as usize, 0);
    bytes.extend_from_slice(&strings);
    bytes.resize((top - pointer) as usize, 0);
    Ok((pointer, bytes))
}

/// Facts on the [`stack`] with which a program begins, up to the one that ends them: pairs of words. `texts`: how many arguments and variables there are.
pub fn vector(stack: &[u8], texts: usize) -> &[u8] {
    // In front of them are the number of arguments, pointers to texts, and a zero behind each of the two lists.
    let facts = stack.get(8 * (texts + 3)..).unwrap_or_default();
    let is_end = |pair: &[u8; 16]| pair.starts_with(&u64::from(auxvec::AT_NULL).to_le_bytes());
    let count = facts.as_chunks::<16>().0.iter().position(is_end).map_or(0, |last| last + 1);
    facts.get(..16 * count).unwrap_or_default()
}

/// Interpreter of a script, and the argument that it gets.
pub type Script = (Vec<u8>, Option<Vec<u8>>);

/// First line of a script: its interpreter, and the one argument that may follow. None if the file is no script.
pub fn script(head: &[u8]) -> Option<Result<Script>> {
    let line = head.strip_prefix(b"#!")?;
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let begin = line.iter().position(|byte| !is_blank(byte));
    let Some(line) = begin.map(|begin| &line[begin..]) else { return Some(Err(ENOEXEC)) };
    let end = line.iter().position(is_blank).unwrap_or(line.len());
    let rest = line[end..].trim_ascii();
    Some(Ok((line[..end].to_vec(), (!rest.is_empty()).then(|| rest.to_vec()))))
}
