//! File systems as one: which of them has a path.
//!
//! Paths are taken as they are written: `.` is nothing, and `..` takes the name before it away.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// Names of a path.
type Names = Vec<Vec<u8>>;

/// File systems, by the paths at which they are found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounts(Vec<Mount>);

/// A file system in the place of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mount {
    at: Names,
    server: String,
    /// The directory of the server's that is found there, without a slash at either end: empty if it is all of it.
    directory: String,
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
    pub number: usize,
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
        for mount in mounts {
            let (path, place) = mount.split_once('=')?;
            let (server, directory) = place.split_once('/').unwrap_or((place, ""));
            let at = to_owned(&names(path.as_bytes()));
            if !path.starts_with('/') || server.is_empty() || all.iter().any(|other| other.at == at) {
                return None;
            }
            all.push(Mount { at, server: server.into(), directory: directory.trim_matches('/').into() });
        }
        all.iter().any(|mount| mount.at.is_empty()).then_some(Mounts(all))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The server of one of them.
    pub fn server(&self, number: usize) -> Option<&str> {
        self.0.get(number).map(|mount| mount.server.as_str())
    }

    /// The directory of its server's that is found there. Empty if it is all of it.
    pub fn directory(&self, number: usize) -> &str {
        self.0.get(number).map_or("", |mount| mount.directory.as_str())
    }

    /// One of them as it was read, but with a plain path.
    pub fn text(&self, number: usize) -> Option<Vec<u8>> {
        let Mount { at, server, directory } = self.0.get(number)?;
        let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
        Some([b"/", at.join(&b'/').as_slice(), b"=", server.as_bytes(), slash, directory.as_bytes()].concat())
    }

    /// The file system that has a path, by its number, and how many names lead to it.
    fn longest<'a>(&self, path: impl Iterator<Item = &'a [u8]> + Clone) -> (usize, usize) {
        let fits = |mount: &Mount| {
            let mut names = path.clone();
            mount.at.iter().all(|name| names.next() == Some(name))
        };
        // There is one at the root.
        let all = self.0.iter().enumerate().filter(|(_, mount)| fits(mount));
        all.map(|(number, mount)| (number, mount.at.len())).max_by_key(|&(_, len)| len).unwrap_or((0, 0))
    }

    /// The file system that has a path which begins at a base.
    pub fn route<'a>(&self, base: &[Vec<u8>], path: &'a [u8]) -> Route<'a> {
        let names = names(path);
        let (number, skip) = self.longest(base.iter().map(Vec::as_slice).chain(names.iter().copied()));
        match base.get(skip..) {
            Some(inside) => Route { number, base: inside.join(&b'/'), rest: from_name(path, &names, 0) },
            None => Route { number, base: Vec::new(), rest: from_name(path, &names, skip - base.len()) },
        }
    }

    /// Whether a file system is found at the path or below, so that nobody may move or remove it.
    pub fn is_needed(&self, path: &[Vec<u8>]) -> bool {
        self.0.iter().any(|mount| mount.at.starts_with(path))
    }

    /// Whether a file system is found below a path.
    pub fn has_below(&self, path: &[Vec<u8>]) -> bool {
        self.below(path).next().is_some()
    }

    /// File systems that are found below a path, by their numbers.
    pub fn below(&self, path: &[Vec<u8>]) -> impl Iterator<Item = usize> {
        self.0
            .iter()
            .enumerate()
            .filter(move |(_, mount)| mount.at.len() > path.len() && mount.at.starts_with(path))
            .map(|(number, _)| number)
    }

    /// Paths in one file system in whose places others are found.
    pub fn covered(&self, number: usize) -> impl Iterator<Item = Vec<u8>> {
        self.0.iter().enumerate().filter_map(move |(other, mount)| {
            let (_, above) = mount.at.split_last()?;
            let is_other = other != number && self.longest(above.iter().map(Vec::as_slice)).0 == number;
            let skip = self.0.get(number)?.at.len();
            is_other.then(|| mount.at[skip..].join(&b'/'))
        })
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
        assert_eq!(mounts.covered(0).collect::<Vec<_>>(), [b"disk".to_vec()]);
        assert_eq!(mounts.covered(1).collect::<Vec<_>>(), [b"old/x".to_vec()]);
        assert_eq!(mounts.covered(2).count(), 0);
        assert_eq!((mounts.count(), mounts.server(2), mounts.server(3)), (3, Some("other"), None));
    }

    #[test]
    fn a_directory_of_a_server_is_found_at_a_path() {
        let mounts = Mounts::new(["/=ram", "/etc=boot/etc", "/x=boot/a/b/"].into_iter()).unwrap();
        let places = [0, 1, 2, 3].map(|number| (mounts.server(number), mounts.directory(number)));
        assert_eq!(places, [(Some("ram"), ""), (Some("boot"), "etc"), (Some("boot"), "a/b"), (None, "")]);
        assert_eq!(&*mounts.route(&[], b"/etc/motd").rest, b"motd");
        let texts: Vec<_> = (0..4).filter_map(|number| mounts.text(number)).collect();
        assert_eq!(texts, [&b"/=ram"[..], b"/etc=boot/etc", b"/x=boot/a/b"]);
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
