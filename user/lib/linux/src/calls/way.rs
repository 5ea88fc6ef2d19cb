//! Paths that calls name, with the place in them at which a process begins to need rights.

use alloc::vec::Vec;
use core::ops::Deref;

/// Last name of a path; none if it has no names.
pub(super) fn last_name(path: &[u8]) -> Option<&[u8]> {
    path.split(|byte| *byte == b'/').rfind(|name| !name.is_empty())
}

/// Two parts of a path: the directory in which its last name is, and that name with slashes behind it. One that ends with a dot is a directory as a whole.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match last_name(path) {
        None | Some(b".") => (path, b""),
        Some(name) => {
            let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
            path.split_at(end - name.len())
        }
    }
}

/// A path from the sandbox's root on. It may begin with the path of a directory that the process already has, as its working directory or behind a descriptor: however it came there, nothing
/// above has to be searchable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    path: Vec<u8>,
    /// Bytes of that directory's path.
    base: usize,
}

impl Way {
    /// A path along which all has to be searchable.
    pub const fn new(path: Vec<u8>) -> Way {
        Way { path, base: 0 }
    }

    /// A path that begins in a directory, which has a path without symbolic links.
    pub fn below(directory: Vec<u8>, path: &[u8]) -> Way {
        let base = directory.len();
        Way { path: [directory.as_slice(), b"/", path].concat(), base }
    }

    /// A path along which somebody has just come, without symbolic links in front of its last name: it begins in the directory of that.
    pub fn walked(path: Vec<u8>) -> Way {
        let (directory, _) = split(&path);
        let base = directory.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        Way { path, base }
    }

    /// Path of the directory in which it begins, and the rest, which begins with no slash.
    pub fn parts(&self) -> (&[u8], &[u8]) {
        let (base, rest) = self.path.split_at_checked(self.base).unwrap_or((b"", &self.path));
        let start = rest.iter().position(|byte| *byte != b'/').unwrap_or(rest.len());
        (base, rest.get(start..).unwrap_or_default())
    }

    /// Whether it ends with a name, and not with a dot, with two, or at the root.
    pub fn has_name(&self) -> bool {
        last_name(&self.path).is_some_and(|name| name != b"." && name != b"..")
    }

    /// Its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.path
    }
}

impl Deref for Way {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::Way;

    #[test]
    fn parts_of_a_way() {
        let parts = |way: Way| {
            let (base, rest) = way.parts();
            (base.to_vec(), rest.to_vec())
        };
        for (way, base, rest) in [
            (Way::new(b"/a//b/".to_vec()), &b""[..], &b"a//b/"[..]),
            (Way::new(b"/".to_vec()), b"", b""),
            (Way::below(b"/a/b".to_vec(), b"../c"), b"/a/b", b"../c"),
            (Way::below(b"".to_vec(), b"c/"), b"", b"c/"),
            (Way::below(b"/a".to_vec(), b""), b"/a", b""),
            (Way::walked(b"/a/b/c".to_vec()), b"/a/b", b"c"),
            (Way::walked(b"/a/b//".to_vec()), b"/a", b"b//"),
            (Way::walked(b"/a".to_vec()), b"", b"a"),
            (Way::walked(b"/a/.".to_vec()), b"/a/.", b""),
            (Way::walked(b"/a/./".to_vec()), b"/a/.", b""),
            (Way::walked(b"/./".to_vec()), b"/.", b""),
            (Way::walked(b"/".to_vec()), b"", b""),
            (Way::walked(b"".to_vec()), b"", b""),
        ] {
            assert_eq!(parts(way), (base.to_vec(), rest.to_vec()));
        }
        assert_eq!(&*Way::below(b"/a".to_vec(), b"b"), b"/a/b");
    }

    #[test]
    fn names_of_ways() {
        for (path, has_name) in [
            ("/a", true),
            ("/a/..b//", true),
            ("/...", true),
            ("", false),
            ("//", false),
            ("/a/.", false),
            ("/a/./", false),
            ("/a/../", false),
            ("..", false),
        ] {
            assert_eq!(Way::new(path.into()).has_name(), has_name, "{path}");
        }
    }
}
