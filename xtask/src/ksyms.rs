//! Fills the kernel's symbol table, with which it names the functions of a backtrace.
//!
//! The kernel reserves a section `.ksyms`. After linking, this module writes into it, little-endian: a magic
//! number, the count, then for each function its address (offset from the start of the kernel's image) and the
//! offset of its name from the start of the section, sorted by address; then the names, each ended by a zero.

use crate::{Context, Error, Result};
use object::{Object, ObjectSection, ObjectSymbol, SectionIndex, SectionKind, SymbolKind};

/// "TSYM".
const MAGIC: u32 = 0x4d59_5354;

/// Where the kernel's image is linked to.
const IMAGE_BASE: u64 = 0xffff_ffff_8000_0000;

/// Longest name that is kept, in bytes.
const NAME_LEN_MAX: usize = 60;

/// Outcome for the table.
#[derive(Debug, PartialEq, Eq)]
pub enum Filled {
    /// The kernel has no room reserved.
    NoSection,
    /// So many of so many functions are in the table.
    Functions(usize, usize),
}

struct Function {
    offset: u32,
    size: u64,
    name: String,
}

/// Writes the table into a kernel image.
pub fn fill(image: &mut [u8]) -> Result<Filled> {
    let (mut functions, room) = {
        let file = object::File::parse(&*image).context(|| "read the kernel's ELF file".into())?;
        let Some(section) = file.section_by_name(".ksyms") else { return Ok(Filled::NoSection) };
        let Some((start, size)) = section.file_range() else {
            return Err(Error::new("the kernel's section .ksyms has no place in the file"));
        };
        (functions(&file), start as usize..(start + size) as usize)
    };
    let total = functions.len();
    keep_largest(&mut functions, room.len());
    let table = encode(&functions);
    image[room.start..room.start + table.len()].copy_from_slice(&table);
    Ok(Filled::Functions(functions.len(), total))
}

/// Names of the kernel's functions by address.
pub struct Names(Vec<Function>);

impl Names {
    /// Those of an ELF file.
    pub fn read(image: &[u8]) -> Result<Names> {
        let file = object::File::parse(image).context(|| "read the kernel's ELF file".into())?;
        Ok(Names(functions(&file)))
    }

    /// The function at an address, with the distance from its start.
    pub fn of(&self, address: u64) -> String {
        let offset = address.wrapping_sub(IMAGE_BASE);
        let behind = self.0.partition_point(|function| u64::from(function.offset) <= offset);
        match behind.checked_sub(1).map(|index| &self.0[index]) {
            Some(function) => format!("{}+{:#x}", function.name, offset - u64::from(function.offset)),
            None => format!("{address:#x}"),
        }
    }

    /// Where the function or label of this name begins.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        self.0
            .iter()
            .find(|function| function.name == name)
            .map(|function| IMAGE_BASE + u64::from(function.offset))
    }
}

/// The functions of the image and the labels of its assembly, sorted by address, one for each address.
fn functions(file: &object::File<'_>) -> Vec<Function> {
    let mut functions: Vec<Function> = file
        .symbols()
        .filter(|symbol| matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown))
        .filter(|symbol| symbol.section_index().is_some_and(|section| is_code(file, section)))
        .filter_map(|symbol| {
            let offset = u32::try_from(symbol.address().checked_sub(IMAGE_BASE)?).ok()?;
            Some(Function { offset, size: symbol.size(), name: short_name(symbol.name().ok()?) })
        })
        .collect();
    functions.sort_by_key(|function| (function.offset, std::cmp::Reverse(function.size)));
    functions.dedup_by_key(|function| function.offset);
    functions
}

fn is_code(file: &object::File<'_>, section: SectionIndex) -> bool {
    file.section_by_index(section).is_ok_and(|section| section.kind() == SectionKind::Text)
}

/// A name as a person wrote it, cut to its length limit.
fn short_name(symbol: &str) -> String {
    let mut name = format!("{:#}", rustc_demangle::demangle(symbol));
    let end = (0..=NAME_LEN_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    name.truncate(end.unwrap_or(0));
    name
}

fn encoded_len(function: &Function) -> usize {
    8 + function.name.len() + 1
}

/// Keeps as many of the largest functions as fit: they are the likeliest to be in a backtrace.
fn keep_largest(functions: &mut Vec<Function>, room_bytes: usize) {
    let mut order: Vec<usize> = (0..functions.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(functions[*index].size));
    let mut left = room_bytes.saturating_sub(8);
    let mut keep = vec![false; functions.len()];
    for index in order {
        let need = encoded_len(&functions[index]);
        if need <= left {
            left -= need;
            keep[index] = true;
        }
    }
    let mut keep = keep.into_iter();
    functions.retain(|_| keep.next() == Some(true));
}

fn encode(functions: &[Function]) -> Vec<u8> {
    let mut table = Vec::new();
    let mut names = Vec::new();
    let names_at = 8 + 8 * functions.len();
    table.extend(MAGIC.to_le_bytes());
    table.extend((functions.len() as u32).to_le_bytes());
    for function in functions {
        table.extend(function.offset.to_le_bytes());
        table.extend(((names_at + names.len()) as u32).to_le_bytes());
        names.extend(function.name.bytes().chain([0]));
    }
    table.extend(names);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(offset: u32, size: u64, name: &str) -> Function {
        Function { offset, size, name: name.into() }
    }

    #[test]
    fn the_largest_stay() {
        let mut functions = vec![function(1, 5, "small"), function(2, 50, "big"), function(3, 500, "huge")];
        keep_largest(&mut functions, 8 + 12 + 13);
        assert_eq!(functions.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["big", "huge"]);
        assert_eq!(encode(&functions).len(), 8 + 12 + 13);
        keep_largest(&mut functions, 0);
        assert!(functions.is_empty());
    }

    #[test]
    fn names_are_for_people() {
        assert_eq!(short_name("_ZN6kernel5panic4stop17h0123456789abcdefE"), "kernel::panic::stop");
        assert_eq!(short_name(&"x".repeat(100)).len(), NAME_LEN_MAX);
        assert_eq!(short_name(&"ä".repeat(100)).len(), NAME_LEN_MAX);
    }
}
