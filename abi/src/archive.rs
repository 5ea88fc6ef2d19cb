//! The boot archive: files in the cpio format "newc", as `cpio -H newc` writes it.
//!
//! A walk over borrowed bytes; a damaged archive ends the walk with an error and never reads outside.

/// One file of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// Path as stored, without a leading `./`.
    pub name: &'a str,
    /// Contents.
    pub data: &'a [u8],
}

/// The archive is damaged at this byte offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged(pub usize);

const HEADER: usize = 110;

/// Iterates over the regular files of an archive.
pub fn files(archive: &[u8]) -> Files<'_> {
    Files { archive, at: 0 }
}

/// Finds a file by name.
pub fn find<'a>(archive: &'a [u8], name: &str) -> Option<File<'a>> {
    files(archive).filter_map(Result::ok).find(|file| file.name == name)
}

/// Iterator of [`files`].
#[derive(Clone, Debug)]
pub struct Files<'a> {
    archive: &'a [u8],
    at: usize,
}

impl<'a> Files<'a> {
    /// The entry at `self.at` with its mode, or `None` where the archive is damaged.
    fn entry(&mut self) -> Option<(u32, File<'a>)> {
        let header = self.archive.get(self.at..self.at.checked_add(HEADER)?)?;
        if &header[..6] != b"070701" {
            return None;
        }
        let field = |index: usize| -> Option<u32> {
            let digits = core::str::from_utf8(&header[6 + 8 * index..14 + 8 * index]).ok()?;
            u32::from_str_radix(digits, 16).ok()
        };
        let (mode, size, name_size) = (field(1)?, field(6)? as usize, field(11)? as usize);
        let name_at = self.at + HEADER;
        let name = self.archive.get(name_at..name_at.checked_add(name_size)?)?;
        let name = core::str::from_utf8(name.strip_suffix(b"\0")?).ok()?;
        let data_at = (name_at + name_size).next_multiple_of(4);
        let data = self.archive.get(data_at..data_at.checked_add(size)?)?;
        self.at = (data_at + size).next_multiple_of(4);
        Some((mode, File { name: name.strip_prefix("./").unwrap_or(name), data }))
    }
}

impl<'a> Iterator for Files<'a> {
    type Item = Result<File<'a>, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        const TYPE: u32 = 0o170000;
        const REGULAR: u32 = 0o100000;
        while self.at < self.archive.len() {
            let start = self.at;
            match self.entry() {
                None => {
                    self.at = self.archive.len();
                    return Some(Err(Damaged(start)));
                }
                Some((_, File { name: "TRAILER!!!", .. })) => self.at = self.archive.len(),
                Some((mode, file)) if mode & TYPE == REGULAR => return Some(Ok(file)),
                Some(_) => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::{format, vec::Vec};

    fn pack(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, data) in files.iter().chain(&[("TRAILER!!!", &[][..])]) {
            out.extend(
                format!(
                    "070701{:08x}{:08x}{}{:08x}{}{:08x}{:08x}{name}\0",
                    0,
                    0o100644,
                    "0".repeat(32),
                    data.len(),
                    "0".repeat(32),
                    name.len() + 1,
                    0
                )
                .bytes(),
            );
            out.resize(out.len().next_multiple_of(4), 0);
            out.extend(*data);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        out
    }

    #[test]
    fn finds_what_was_packed() {
        let archive = pack(&[("a", b"one"), ("./b", b""), ("c", b"three")]);
        assert_eq!(find(&archive, "b"), Some(File { name: "b", data: b"" }));
        assert_eq!(find(&archive, "c").unwrap().data, b"three");
        assert_eq!(find(&archive, "d"), None);
        assert_eq!(files(&archive).count(), 3);
    }

    #[test]
    fn damage_never_panics() {
        let archive = pack(&[("a", b"one"), ("b", b"two")]);
        for cut in 0..archive.len() {
            let _ = files(&archive[..cut]).count();
            for value in [0, b'f', 0xff] {
                let mut bad = archive.clone();
                bad[cut] = value;
                let _ = files(&bad).count();
            }
        }
        assert_eq!(files(b"rubbish").next(), Some(Err(Damaged(0))));
    }
}
