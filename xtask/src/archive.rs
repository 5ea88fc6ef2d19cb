//! Packs the boot archive: the cpio format "newc" that [`abi::archive`](../../abi) reads.

use crate::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Name of what ends an archive.
const TRAILER: &str = "TRAILER!!!";

/// Bits of a mode that say what kind of thing it is, and two of these.
const KIND: u32 = 0o170_000;
const LINK: u32 = 0o120_000;
const DIRECTORY: u32 = 0o040_000;

/// A file to be packed.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name in the archive.
    pub name: String,
    /// Contents.
    pub data: Vec<u8>,
}

/// Packs files into an archive. Nothing of the host gets in: no dates, no owners.
pub fn pack(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    for (inode, entry) in entries.iter().enumerate() {
        append(&mut out, inode as u32 + 1, 0o100_644, &entry.name, &entry.data);
    }
    append(&mut out, 0, 0, TRAILER, &[]);
    out
}

/// Packs what is in a folder for Linux, which unpacks it when it begins: files, directories and symbolic links, with their permissions.
pub fn pack_initial(folder: &Path) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for (inode, path) in below(folder)?.iter().enumerate() {
        let why = || format!("pack {}", path.display());
        let mode = fs::symlink_metadata(path).context(why)?.mode();
        let data = match mode & KIND {
            LINK => fs::read_link(path).context(why)?.as_os_str().as_bytes().to_vec(),
            DIRECTORY => Vec::new(),
            _ => fs::read(path).context(why)?,
        };
        let name = path.strip_prefix(folder).unwrap_or(path).to_string_lossy();
        append(&mut out, inode as u32 + 1, mode, &name, &data);
    }
    append(&mut out, 0, 0, TRAILER, &[]);
    Ok(out)
}

/// All paths below a folder by their names, each directory in front of what is in it.
fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).context(|| format!("read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let is_directory = path.is_dir() && !path.is_symlink();
        all.push(path.clone());
        if is_directory {
            all.extend(below(&path)?);
        }
    }
    Ok(all)
}

fn append(out: &mut Vec<u8>, inode: u32, mode: u32, name: &str, data: &[u8]) {
    let (size, name_size) = (data.len() as u32, name.len() as u32 + 1);
    // inode, mode, user, group, links, time, size, four device numbers, name size, checksum
    let fields = [inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
    let mut header = String::from("070701");
    for field in fields {
        write!(header, "{field:08x}").expect("a string takes everything");
    }
    out.extend(header.bytes().chain(name.bytes()).chain([0]));
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(data);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Drops what a loader does not need from an ELF64 program: section headers, symbols, debug information.
///
/// They all lie behind the last byte of the segments, so the rest is cut off. What is no ELF64 file stays as
/// it is.
pub fn strip(program: &[u8]) -> Vec<u8> {
    let Some(end) = loaded_end(program) else { return program.to_vec() };
    let mut out = program[..end].to_vec();
    out[0x28..0x30].fill(0); // section header table offset
    out[0x3a..0x40].fill(0); // size and number of section headers, index of their names
    out
}

/// End of the last segment in the file.
fn loaded_end(program: &[u8]) -> Option<usize> {
    let word = |at: usize, len: usize| -> Option<usize> {
        let bytes = program.get(at..at.checked_add(len)?)?;
        bytes.iter().rev().try_fold(0usize, |value, byte| value.checked_mul(256)?.checked_add(*byte as usize))
    };
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, entry, count) = (word(0x20, 8)?, word(0x36, 2)?, word(0x38, 2)?);
    let mut end = table.checked_add(entry * count)?.max(0x40);
    for index in 0..count {
        let header = table + index * entry;
        end = end.max(word(header + 8, 8)?.checked_add(word(header + 32, 8)?)?);
    }
    (end <= program.len()).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::{self, Scratch};

    #[test]
    fn packs_what_cpio_packs() {
        let archive = pack(&[Entry { name: "a".into(), data: b"one".to_vec() }]);
        assert_eq!(archive.len() % 4, 0);
        assert!(archive.starts_with(b"07070100000001000081a4"));
        assert!(archive.windows(4).any(|window| window == b"one\0"));
        assert!(archive.windows(10).any(|window| window == b"TRAILER!!!"));
    }

    #[test]
    fn folders_are_packed_with_links_and_modes() {
        let folder = Scratch::create("archive").unwrap();
        let inside = paths::create(&folder.0.join("b")).unwrap();
        std::os::unix::fs::symlink("b/c", folder.0.join("a")).unwrap();
        paths::write(&inside.join("c"), b"three").unwrap();
        for (path, mode) in [(inside.join("c"), 0o700), (inside, 0o750)] {
            fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        }
        let mut expected = Vec::new();
        append(&mut expected, 1, 0o120_777, "a", b"b/c");
        append(&mut expected, 2, 0o040_750, "b", b"");
        append(&mut expected, 3, 0o100_700, "b/c", b"three");
        append(&mut expected, 0, 0, TRAILER, b"");
        assert_eq!(pack_initial(&folder.0).unwrap(), expected);
    }

    #[test]
    fn strips_only_programs() {
        assert_eq!(strip(b"no program"), b"no program");
        let mut program = vec![0; 0x40 + 0x38 + 100];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        program[0x20] = 0x40; // program headers
        program[0x28] = 0x99; // section headers
        program[0x36] = 0x38;
        program[0x38] = 1;
        program[0x40 + 8] = 0x78; // offset of the segment
        program[0x40 + 32] = 10; // its size in the file
        let stripped = strip(&program);
        assert_eq!(stripped.len(), 0x78 + 10);
        assert_eq!(stripped[0x28], 0);
    }
}
