//! File systems as one: which of them has a path.
//!
//! Paths are taken as they are written: `.` is nothing, and `..` takes the name before it away.
//!
//! There is one rule: **of the file systems whose paths lead to a path, the one that was mounted last has it.** Those that were there from the beginning
//! count as if the longer path came later. So what is mounted at a directory hides all that was below, other file systems too, until it is unmounted.

mod changes;

pub use changes::{KEPT_MAX, MOUNTED_MAX, Refusal, Source, TEXT_MAX};

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// Names of a path.
type Names = Vec<Vec<u8>>;

/// File systems, by the paths at which they are found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounts {
    /// In the order in which they were mounted.
    all: Vec<Mount>,
    /// Number of the next one. None has the number of another that was there before.
    next: u64,
}

/// A file system in the place of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mount {
    number: u64,
    at: Names,
    server: String,
    /// The directory of the server's that is found there. No names if it is all of it.
    directory: Names,
    /// It is there as long as the server of all of them is.
    is_fixed: bool,
}

/// Names of a path, in which `.` and `..` are no names any more. None leads above the first.
pub fn names(path: &[u8]) -> Vec<&[u8]> {
    let mut names = Vec::with_capacity(NAMES_EXPECTED);
    for name in path.split(|&byte| byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()),
            _ => names.push(name),
        }
    }
    names
}

/// Names of most paths, at most.
const NAMES_EXPECTED: usize = 8;

/// Way to a file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route<'a> {
    /// Its number.
    pub number: u64,
    /// The directory in there from which the path must not lead out. None if the whole file system is at the base or below.
    pub base: Vec<u8>,
    /// The path from that on. It ends with a slash if it did before, and has names.
    pub rest: Cow<'a, [u8]>,
}

/// A path from one of its names on, without `.` and `..`. Nothing is copied where the path is written so.
fn from_name<'a>(path: &'a [u8], names: &[&'a [u8]], first: usize) -> Cow<'a, [u8]> {
    let Some(left) = names.get(first..).filter(|left| !left.is_empty()) else { return Cow::Borrowed(b"") };
    // Names are pieces of the path. Those that are left are its tail, unless something was taken away between or behind them.
    let tail = &path[offset_in(path, left[0])..];
    let mut written = tail.split(|&byte| byte == b'/').filter(|name| !name.is_empty());
    if left.iter().all(|name| written.next() == Some(*name)) && written.next().is_none() {
        return Cow::Borrowed(tail);
    }
    let mut rest = left.join(&b'/');
    if path.ends_with(b"/") {
        rest.push(b'/');
    }
    Cow::Owned(rest)
}

/// Where in a text a piece of it begins.
fn offset_in(text: &[u8], piece: &[u8]) -> usize {
    piece.as_ptr().addr() - text.as_ptr().addr()
}

fn to_owned(names: &[&[u8]]) -> Names {
    names.iter().map(|name| name.to_vec()).collect()
}

impl Mounts {
    /// Reads `/=ram`, `/disk=disk` and `/etc=boot/etc`: paths, and the servers whose files are found there, all of them or those of a directory. `None`
    /// if one is no such thing, if none is at the root, or if two are at one path.
    pub fn new<'a>(mounts: impl Iterator<Item = &'a str>) -> Option<Mounts> {
        let mut all: Vec<Mount> = Vec::new();
        for (mount, number) in mounts.zip(0..) {
            let (path, place) = mount.split_once('=')?;
            let (server, directory) = place.split_once('/').unwrap_or((place, ""));
            let at = to_owned(&names(path.as_bytes()));
            if !path.starts_with('/') || server.is_empty() || all.iter().any(|other| other.at == at) {
                return None;
            }
            let directory = to_owned(&names(directory.as_bytes()));
            all.push(Mount { number, at, server: server.into(), directory, is_fixed: true });
        }
        all.sort_by_key(|mount| mount.at.len());
        let next = all.len() as u64;
        all.first().is_some_and(|mount| mount.at.is_empty()).then_some(Mounts { all, next })
    }

    /// One of them, by its number.
    fn get(&self, number: u64) -> Option<&Mount> {
        self.all.iter().find(|mount| mount.number == number)
    }

    /// Whether there is one of this number.
    pub fn has(&self, number: u64) -> bool {
        self.get(number).is_some()
    }

    /// Whether files of a server are found anywhere.
    pub fn has_server(&self, server: &str) -> bool {
        self.all.iter().any(|mount| mount.server == server)
    }

    /// The server of one of them.
    pub fn server(&self, number: u64) -> Option<&str> {
        self.get(number).map(|mount| mount.server.as_str())
    }

    /// The directory of its server's that is found there, without a slash at either end. Empty if it is all of it.
    pub fn directory(&self, number: u64) -> Vec<u8> {
        self.get(number).map_or(Vec::new(), |mount| mount.directory.join(&b'/'))
    }

    /// A plain path and what is found there, `SERVER` or `SERVER/DIRECTORY`, with a zero between them: by the place among all, in the order in which they
    /// were mounted.
    pub fn text(&self, place: usize) -> Option<Vec<u8>> {
        self.all.get(place).map(Mount::text)
    }

    /// The file system that has a path.
    fn last<'a>(&self, path: impl Iterator<Item = &'a [u8]> + Clone) -> Option<&Mount> {
        let leads_to = |mount: &&Mount| {
            let mut names = path.clone();
            mount.at.iter().all(|name| names.next() == Some(name))
        };
        // There is one at the root.
        self.all.iter().rev().find(leads_to)
    }

    /// The file system that has a path which has no other names.
    fn last_of(&self, path: &[Vec<u8>]) -> Option<&Mount> {
        self.last(path.iter().map(Vec::as_slice))
    }

    /// Whether no other one hides it.
    fn is_seen(&self, mount: &Mount) -> bool {
        self.last_of(&mount.at).is_some_and(|last| last.number == mount.number)
    }

    /// The file system that has a path which begins at a base.
    pub fn route<'a>(&self, base: &[Vec<u8>], path: &'a [u8]) -> Route<'a> {
        let names = names(path);
        let last = self.last(base.iter().map(Vec::as_slice).chain(names.iter().copied()));
        let (number, skip) = last.map_or((0, 0), |mount| (mount.number, mount.at.len()));
        match base.get(skip..) {
            Some(inside) => Route { number, base: inside.join(&b'/'), rest: from_name(path, &names, 0) },
            None => Route { number, base: Vec::new(), rest: from_name(path, &names, skip - base.len()) },
        }
    }

    /// Whether a file system is found at the path or below, or is a directory there that was mounted elsewhere later, so that nobody may move or remove it.
    pub fn is_needed(&self, path: &[Vec<u8>]) -> bool {
        let is_below = |mount: &&Mount| mount.at.starts_with(path);
        self.all.iter().filter(is_below).any(|mount| self.is_seen(mount)) || self.is_shown_elsewhere(path)
    }

    /// Whether what is at a path, or something below it, was mounted elsewhere later.
    fn is_shown_elsewhere(&self, path: &[Vec<u8>]) -> bool {
        let Some(mount) = self.last_of(path) else { return false };
        let (server, directory) = mount.inside(path);
        let is_in_it = |other: &Mount| {
            !other.is_fixed && other.server == server && other.directory.starts_with(&directory)
        };
        !directory.is_empty() && self.all.iter().any(is_in_it)
    }

    /// Whether a file system is found below a path.
    pub fn has_below(&self, path: &[Vec<u8>]) -> bool {
        let mut below =
            self.all.iter().filter(|mount| mount.at.len() > path.len() && mount.at.starts_with(path));
        below.any(|mount| self.is_seen(mount))
    }

    /// Of each server whose files are found at a path or below, or would be if others did not hide them, one file system, but not of that which has the path.
    pub fn others_below(&self, path: &[Vec<u8>]) -> Vec<u64> {
        let own = self.last_of(path).map_or("", |mount| mount.server.as_str());
        let mut found: Vec<&Mount> = Vec::new();
        for mount in self.all.iter().filter(|mount| mount.at.starts_with(path) && mount.server != own) {
            if found.iter().all(|other| other.server != mount.server) {
                found.push(mount);
            }
        }
        found.into_iter().map(|mount| mount.number).collect()
    }

    /// Paths in one file system in whose places others are found, each behind those that lead to it.
    pub fn covered(&self, number: u64) -> Vec<Vec<u8>> {
        let Some(own) = self.get(number) else { return Vec::new() };
        let mut paths = Vec::new();
        for mount in self.all.iter().filter(|mount| mount.number != number && self.is_seen(mount)) {
            let Some((_, above)) = mount.at.split_last() else { continue };
            if self.last_of(above).is_some_and(|last| last.number == number) {
                let inside = mount.at.get(own.at.len()..).unwrap_or_default();
                paths.extend((1..=inside.len()).map(|count| inside[..count].join(&b'/')));
            }
        }
        paths
    }
}

impl Mount {
    /// See [`Mounts::text`].
    fn text(&self) -> Vec<u8> {
        let source = [&[self.server.clone().into_bytes()], &self.directory[..]].concat().join(&b'/');
        [b"/", &self.at.join(&b'/')[..], b"\0", &source].concat()
    }

    /// Its server, and the directory there of a path that leads into it.
    fn inside(&self, path: &[Vec<u8>]) -> (String, Names) {
        let below = path.get(self.at.len()..).unwrap_or_default();
        (self.server.clone(), [&self.directory[..], below].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn mounts() -> Mounts {
        Mounts::new(["/=ram", "/disk=disk", "/disk/old/x=other"].into_iter()).unwrap()
    }

    #[test]
    fn the_longest_path_decides() {
        let mounts = mounts();
        let route = |path: &'static str| {
            let Route { number, base, rest } = mounts.route(&[], path.as_bytes());
            assert!(base.is_empty());
            (number, rest.into_owned())
        };
        assert_eq!(route(""), (0, vec![]));
        assert_eq!(route("/"), (0, vec![]));
        assert_eq!(route("/a/b"), (0, b"a/b".to_vec()));
        assert_eq!(route("disk"), (1, vec![]));
        assert_eq!(route("disk/"), (1, vec![]));
        assert_eq!(route("/disks"), (0, b"disks".to_vec()));
        assert_eq!(route("//disk/./a/../old/"), (1, b"old/".to_vec()));
        assert_eq!(route("../../disk/old/x/y"), (2, b"y".to_vec()));
    }

    /// A path that is written plainly is not copied; any other means what it meant.
    #[test]
    fn what_is_left_of_a_path_is_written_plainly() {
        let mounts = mounts();
        let rest = |path: &'static str| mounts.route(&[], path.as_bytes()).rest;
        for plain in ["a/b", "a//b/", "disk/a/b", "/disk/old/x/y/z/"] {
            assert!(matches!(rest(plain), Cow::Borrowed(_)), "{plain}");
        }
        for (path, wanted) in [
            ("disk/a/./b", "a/b"),
            ("disk/a/../b/", "b/"),
            ("disk/a/b/..", "a"),
            ("disk/a/b/.", "a/b"),
            ("disk/a/b/../", "a/"),
            ("disk/a/..", ""),
            ("a/b/../../disk/a/a", "a/a"),
            ("disk/a/../a", "a"),
            ("disk/../disk/a", "a"),
        ] {
            assert_eq!(&*rest(path), wanted.as_bytes(), "{path}");
        }
    }

    /// A directory above a place of a file system is a base as any other: what its own file system does with a path, links and all, begins there.
    #[test]
    fn a_path_begins_at_its_base() {
        let mounts = mounts();
        let route = |base: &str, path: &'static str| {
            let Route { number, base, rest } =
                mounts.route(&to_owned(&names(base.as_bytes())), path.as_bytes());
            (number, base, rest.into_owned())
        };
        assert_eq!(route("", "a/b"), (0, vec![], b"a/b".to_vec()));
        assert_eq!(route("", "disk/a"), (1, vec![], b"a".to_vec()));
        assert_eq!(route("disk", "a/b"), (1, vec![], b"a/b".to_vec()));
        assert_eq!(route("disk/old", "a/b"), (1, b"old".to_vec(), b"a/b".to_vec()));
        assert_eq!(route("disk/old", "../../../a"), (1, b"old".to_vec(), b"a".to_vec()));
        assert_eq!(route("disk/old", ""), (1, b"old".to_vec(), vec![]));
        assert_eq!(route("disk/old", "x/y/z"), (2, vec![], b"y/z".to_vec()));
        assert_eq!(route("disk/old", "xy"), (1, b"old".to_vec(), b"xy".to_vec()));
    }

    #[test]
    fn places_of_file_systems_are_known() {
        let mounts = mounts();
        for (path, is_needed, has_below) in [
            ("", true, true),
            ("disk", true, true),
            ("disk/old", true, true),
            ("disk/old/x", true, false),
            ("a", false, false),
        ] {
            let names = to_owned(&names(path.as_bytes()));
            assert_eq!(
                (mounts.is_needed(&names), mounts.has_below(&names)),
                (is_needed, has_below),
                "{path}"
            );
        }
        assert_eq!(mounts.covered(0), [b"disk".to_vec()]);
        assert_eq!(mounts.covered(1), [b"old".to_vec(), b"old/x".to_vec()]);
        assert!(mounts.covered(2).is_empty() && mounts.covered(3).is_empty());
        assert_eq!((mounts.server(2), mounts.server(3)), (Some("other"), None));
    }

    #[test]
    fn a_directory_of_a_server_is_found_at_a_path() {
        let mounts = Mounts::new(["/=ram", "/etc=boot/etc", "/x=boot/a/b/"].into_iter()).unwrap();
        let places = [0, 1, 2, 3].map(|number| (mounts.server(number), mounts.directory(number)));
        let expected = [(Some("ram"), ""), (Some("boot"), "etc"), (Some("boot"), "a/b"), (None, "")];
        assert_eq!(places, expected.map(|(server, directory)| (server, directory.as_bytes().to_vec())));
        assert_eq!(&*mounts.route(&[], b"/etc/motd").rest, b"motd");
        let texts: Vec<_> = (0..4).filter_map(|place| mounts.text(place)).collect();
        assert_eq!(texts, [&b"/\0ram"[..], b"/etc\0boot/etc", b"/x\0boot/a/b"]);
    }

    #[test]
    fn mistakes_are_found() {
        for wrong in [
            &["/disk=disk"][..],
            &["/=ram", "x=disk"],
            &["/=ram", "/="],
            &["/=ram", "/x=/etc"],
            &["/=ram", "//=disk"],
            &["/"],
            &[],
        ] {
            assert_eq!(Mounts::new(wrong.iter().copied()), None, "{wrong:?}");
        }
    }
}
