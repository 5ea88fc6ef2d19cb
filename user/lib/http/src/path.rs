//! Paths of files, as requests name them.
//!
//! A path is a list of names, and none of them is empty, `.`, `..` or has a slash or a zero in it, however it was written. So whatever a client sends, what comes
//! out leads downwards; symbolic links below are the business of who has the files.

use crate::Status;
use alloc::string::String;
use alloc::vec::Vec;

/// Bytes of a name, at most: no file system has longer ones.
const NAME_MAX: usize = 255;

/// A path, from the directory that is served on.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Path {
    names: Vec<Vec<u8>>,
    /// A slash at its end says that a directory is meant.
    pub is_directory: bool,
}

impl Path {
    /// The path in the target of a request: `/PATH?QUERY`, or a whole address, of which host and query do not matter.
    pub fn of(target: &str) -> Result<Path, Status> {
        let path = match target.strip_prefix('/') {
            Some(path) => path,
            None => behind_host(target).ok_or(Status::BadRequest)?,
        };
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let mut names: Vec<Vec<u8>> = Vec::new();
        for part in path.split('/') {
            match decoded(part).ok_or(Status::BadRequest)?.as_slice() {
                b"" | b"." => {}
                // Above the top there is the top, as RFC 3986, 5.2.4 and file systems have it.
                b".." => drop(names.pop()),
                name if name.contains(&b'/') || name.contains(&0) => return Err(Status::BadRequest),
                name if name.len() > NAME_MAX => return Err(Status::NotFound),
                name => names.push(name.into()),
            }
        }
        let last = path.rsplit('/').next().and_then(decoded).unwrap_or_default();
        let is_directory = matches!(last.as_slice(), b"" | b"." | b"..");
        Ok(Path { names, is_directory })
    }

    /// Names from the top down.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(Vec::as_slice)
    }

    /// Whether it is the top.
    pub fn is_top(&self) -> bool {
        self.names.is_empty()
    }

    /// The path as a file system has it, without a slash at either end; `.` for the top.
    pub fn bytes(&self) -> Vec<u8> {
        if self.names.is_empty() { b".".to_vec() } else { self.names.join(&b'/') }
    }

    /// A file in this directory.
    pub fn below(&self, name: &[u8]) -> Path {
        let mut names = self.names.clone();
        names.push(name.into());
        Path { names, is_directory: false }
    }

    /// This path, with a slash at its end.
    pub fn as_directory(self) -> Path {
        Path { is_directory: true, ..self }
    }

    /// The path as an address, with a slash in front and, if a directory is meant, behind.
    pub fn address(&self) -> String {
        let mut address = String::from("/");
        for (place, name) in self.names.iter().enumerate() {
            if place > 0 {
                address.push('/');
            }
            encode(name, &mut address);
        }
        if self.is_directory && !self.names.is_empty() {
            address.push('/');
        }
        address
    }
}

/// Path of an address, without its first slash.
fn behind_host(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once("://")?;
    let is_ours = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    (is_ours && !host.is_empty()).then(|| path.strip_prefix('/').unwrap_or(path))
}

/// Bytes that were written with `%` and two digits, and all others as they are.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: Option<&u8>| (*byte? as char).to_digit(16);
    let mut bytes = text.as_bytes().iter();
    let mut out = Vec::with_capacity(text.len());
    while let Some(&byte) = bytes.next() {
        out.push(match byte {
            b'%' => (digit(bytes.next())? * 16 + digit(bytes.next())?) as u8,
            byte => byte,
        });
    }
    Some(out)
}

/// Writes a name so that it means itself in an address: RFC 3986, 2.3.
pub fn encode(name: &[u8], to: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in name {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            to.push(byte as char);
        } else {
            to.push('%');
            to.push(DIGITS[usize::from(byte >> 4)] as char);
            to.push(DIGITS[usize::from(byte & 15)] as char);
        }
    }
}
