//! File systems that are mounted and unmounted while all of them are in use.
//!
//! Nothing is changed where others read: each change makes a copy, or is refused. [`Mounts::kept`] is all that a server must know which is started in the
//! place of one that has ended.

use super::{Mount, Mounts, Names, names, to_owned};
use alloc::string::String;
use alloc::vec::Vec;

/// Most file systems that are mounted beside those from the beginning. Each client may have a directory of each.
pub const MOUNTED_MAX: usize = 64;

/// Most bytes of a [text](Mounts::text): as many as a path has.
pub const TEXT_MAX: usize = 4095;

/// Most bytes of all that is [kept](Mounts::kept).
pub const KEPT_MAX: usize = 8192;

/// Most names of a path at which something is mounted: each is looked at then.
const DEPTH_MAX: usize = 64;

/// Most bytes of a server's name.
const SERVER_MAX: usize = 16;

/// Why nothing is mounted, or unmounted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A path has a zero, or what should be a server's name is none.
    Senseless,
    /// Paths are longer than they may be together, or one has too many names.
    TooLong,
    /// No more can be mounted, or paths take all the room that there is for them.
    Full,
    /// Nothing is mounted at that path.
    NotMounted,
    /// It is there from the beginning, and stays.
    Fixed,
    /// Another one is mounted below.
    Busy,
}

/// A directory of a server's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    server: String,
    directory: Names,
}

impl Source {
    /// The server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Its directory, without a slash at either end. Empty if it is all of it.
    pub fn directory(&self) -> Vec<u8> {
        self.directory.join(&b'/')
    }
}

impl Mounts {
    /// Meaning of a text: `SERVER`, `SERVER/DIRECTORY`, or, if it begins with a slash, a path of these file systems. That is the directory of the server's
    /// that has the path now, without what is mounted below, so nothing ever leads round in a circle.
    pub fn source(&self, text: &[u8]) -> Result<Source, Refusal> {
        if text.contains(&0) {
            return Err(Refusal::Senseless);
        }
        if text.first() == Some(&b'/') {
            let path = to_owned(&names(text));
            let (server, directory) = self.last_of(&path).ok_or(Refusal::Senseless)?.inside(&path);
            return Ok(Source { server, directory });
        }
        let mut parts = text.splitn(2, |&byte| byte == b'/');
        let server = parts.next().unwrap_or_default();
        let is_name = (1..=SERVER_MAX).contains(&server.len()) && server.iter().all(u8::is_ascii_graphic);
        let directory = to_owned(&names(parts.next().unwrap_or_default()));
        match core::str::from_utf8(server) {
            Ok(server) if is_name => Ok(Source { server: server.into(), directory }),
            _ => Err(Refusal::Senseless),
        }
    }

    /// Paths that lead to one at which something is to be mounted, the shortest first, and that one at the end. Each must be a directory, and no symbolic link:
    /// names alone say who has a path.
    pub fn way_to(&self, at: &[u8]) -> Result<Vec<Vec<u8>>, Refusal> {
        let names = names(at);
        if at.contains(&0) {
            return Err(Refusal::Senseless);
        }
        if names.len() > DEPTH_MAX {
            return Err(Refusal::TooLong);
        }
        let path = |count| [b"/", &names[..count].join(&b'/')[..]].concat();
        Ok((1..=names.len()).map(path).collect())
    }

    /// These, and a directory of a server's at a path.
    pub fn with(&self, at: &[u8], source: Source) -> Result<Mounts, Refusal> {
        self.way_to(at)?;
        let Source { server, directory } = source;
        let mount = Mount { number: self.next, at: to_owned(&names(at)), server, directory, is_fixed: false };
        if mount.text().len() > TEXT_MAX {
            return Err(Refusal::TooLong);
        }
        let mut more = self.clone();
        more.next += 1;
        more.all.push(mount);
        if more.mounted().count() > MOUNTED_MAX || more.kept().len() > KEPT_MAX {
            return Err(Refusal::Full);
        }
        Ok(more)
    }

    /// The number of what can be unmounted at a path.
    pub fn removable(&self, at: &[u8]) -> Result<u64, Refusal> {
        let path = to_owned(&names(at));
        match self.last_of(&path) {
            Some(mount) if mount.at != path => Err(Refusal::NotMounted),
            None => Err(Refusal::NotMounted),
            Some(_) if self.has_below(&path) => Err(Refusal::Busy),
            Some(mount) if mount.is_fixed => Err(Refusal::Fixed),
            Some(mount) => Ok(mount.number),
        }
    }

    /// These without one of them.
    pub fn without(&self, number: u64) -> Mounts {
        let mut fewer = self.clone();
        fewer.all.retain(|mount| mount.number != number);
        fewer
    }

    /// Those that were mounted later.
    fn mounted(&self) -> impl Iterator<Item = &Mount> {
        self.all.iter().filter(|mount| !mount.is_fixed)
    }

    /// All that was mounted later: the texts of all of it, in that order, each with a zero behind it.
    pub fn kept(&self) -> Vec<u8> {
        let mut kept = Vec::new();
        for mount in self.mounted() {
            kept.extend(mount.text());
            kept.push(0);
        }
        kept
    }

    /// These, and all that was kept. `None` if it is no such thing.
    pub fn with_kept(&self, kept: &[u8]) -> Option<Mounts> {
        let mut all = self.clone();
        let mut texts = kept.split_inclusive(|&byte| byte == 0);
        while let Some(at) = texts.next() {
            let [at, source] = [at, texts.next()?].map(|text| text.strip_suffix(b"\0"));
            let (at, source) = (at?, source?);
            // A server's, never a path of these.
            let source = Some(source).filter(|source| !source.starts_with(b"/"))?;
            all = all.with(at, all.source(source).ok()?).ok()?;
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn fixed() -> Mounts {
        Mounts::new(["/=ram", "/disk=disk", "/etc=boot/etc"].into_iter()).unwrap()
    }

    /// One more at a path, with this source.
    fn with(mounts: &Mounts, source: &str, at: &str) -> Result<Mounts, Refusal> {
        mounts.with(at.as_bytes(), mounts.source(source.as_bytes())?)
    }

    fn unmounted(mounts: &Mounts, at: &str) -> Result<Mounts, Refusal> {
        mounts.removable(at.as_bytes()).map(|number| mounts.without(number))
    }

    /// The server and the directory there of a path.
    fn place(mounts: &Mounts, path: &str) -> (String, String) {
        let source = mounts.source(path.as_bytes()).unwrap();
        (source.server().into(), String::from_utf8(source.directory()).unwrap())
    }

    fn is_at(mounts: &Mounts, path: &str, server: &str, directory: &str) {
        assert_eq!(place(mounts, path), (server.into(), directory.into()), "{path}");
    }

    #[test]
    fn sources_are_servers_and_paths() {
        let mounts = fixed();
        let read = |text: &str| {
            mounts
                .source(text.as_bytes())
                .map(|source| (source.server.clone(), String::from_utf8(source.directory()).unwrap()))
        };
        let is = |server: &str, directory: &str| Ok((server.into(), directory.into()));
        assert_eq!(read("disk"), is("disk", ""));
        assert_eq!(read("disk/"), is("disk", ""));
        assert_eq!(read("disk/a//b/../c/"), is("disk", "a/c"));
        assert_eq!(read("/"), is("ram", ""));
        assert_eq!(read("/a/../disk/b"), is("disk", "b"));
        assert_eq!(read("/etc/x"), is("boot", "etc/x"));
        for senseless in ["", "a name", "seventeen-letters", "näme", "disk/a\0b", "/a\0"] {
            assert_eq!(read(senseless), Err(Refusal::Senseless), "{senseless:?}");
        }
    }

    /// The last one that leads to a path has it, and what it hides is there again when it is unmounted.
    #[test]
    fn the_last_one_hides_the_others() {
        let mut all = fixed();
        let states = [("boot", "/a"), ("disk/x", "/a/b"), ("ram/over", "/a"), ("other", "/a/b")].map(
            |(source, at)| {
                all = with(&all, source, at).unwrap();
                all.clone()
            },
        );
        is_at(&states[0], "/a/b/c", "boot", "b/c");
        is_at(&states[1], "/a/b/c", "disk", "x/c");
        is_at(&states[2], "/a/b/c", "ram", "over/b/c");
        is_at(&states[3], "/a/b/c", "other", "c");
        assert_eq!(unmounted(&all, "/a"), Err(Refusal::Busy), "one is below it");
        all = unmounted(&all, "//a/./b/").unwrap();
        is_at(&all, "/a/b/c", "ram", "over/b/c");
        all = unmounted(&all, "/a").unwrap();
        is_at(&all, "/a/b/c", "disk", "x/c");
        assert_eq!(unmounted(&all, "/a"), Err(Refusal::Busy));
        all = unmounted(&unmounted(&all, "/a/b").unwrap(), "/a").unwrap();
        is_at(&all, "/a/b/c", "ram", "a/b/c");
        assert_eq!(unmounted(&all, "/a"), Err(Refusal::NotMounted));
        // A number is never another one's.
        let number = all.with(b"/a", all.source(b"boot").unwrap()).unwrap().removable(b"/a").unwrap();
        assert_eq!(number, 7);
    }

    #[test]
    fn what_was_there_from_the_beginning_stays() {
        let all = fixed();
        assert_eq!(unmounted(&all, "/etc"), Err(Refusal::Fixed));
        assert_eq!(unmounted(&all, "/"), Err(Refusal::Busy), "the others are below it");
        assert_eq!(unmounted(&all, "/disk/a"), Err(Refusal::NotMounted));
        // It can be hidden, all of it.
        let over = with(&all, "disk/root", "/").unwrap();
        is_at(&over, "/etc/motd", "disk", "root/etc/motd");
        assert_eq!(unmounted(&over, "/etc"), Err(Refusal::NotMounted));
        assert!(!over.has_below(&[]) && over.covered(0).is_empty());
        is_at(&unmounted(&over, "/").unwrap(), "/etc/motd", "boot", "etc/motd");
    }

    /// A path as a source is the server's directory that it was then. So nothing leads round in a circle, and what is mounted on it is not seen there.
    #[test]
    fn nothing_leads_round_in_a_circle() {
        let all = with(&fixed(), "/", "/a").unwrap();
        is_at(&all, "/a", "ram", "");
        is_at(&all, "/a/a/a", "ram", "a/a");
        is_at(&all, "/a/disk", "ram", "disk");
        let all = with(&with(&all, "/a/x", "/b").unwrap(), "/b", "/a/x").unwrap();
        is_at(&all, "/b/y", "ram", "x/y");
        is_at(&all, "/a/x/y", "ram", "x/y");
        is_at(&unmounted(&all, "/b").unwrap(), "/a/x/y", "ram", "x/y");
    }

    /// Neither a place of a file system nor a directory that is seen elsewhere is moved or removed; what is hidden is.
    #[test]
    fn names_that_are_needed_stay() {
        let needs = |mounts: &Mounts, path: &str| mounts.is_needed(&to_owned(&names(path.as_bytes())));
        let all = with(&fixed(), "/disk/a/b", "/notes").unwrap();
        for path in ["/", "/notes", "/disk", "/disk/a", "/disk/a/b", "/etc"] {
            assert!(needs(&all, path), "{path}");
        }
        for path in ["/notes/x", "/disk/b", "/disk/a/b/c", "/disk/a/bc", "/disk/a/c", "/etc/motd"] {
            assert!(!needs(&all, path), "{path}");
        }
        // That directory by another path.
        let all = with(&all, "disk", "/d").unwrap();
        assert!(needs(&all, "/d/a") && needs(&all, "/d/a/b") && !needs(&all, "/d/x"));
        let over = with(&all, "boot", "/disk").unwrap();
        assert!(!needs(&over, "/disk/a") && needs(&over, "/d/a"));
        assert!(!needs(&fixed(), "/disk/a"));
    }

    #[test]
    fn there_is_an_end() {
        let mut all = fixed();
        for number in 0..MOUNTED_MAX {
            all = with(&all, "disk", &alloc::format!("/{number}")).unwrap();
        }
        assert_eq!(with(&all, "disk", "/x"), Err(Refusal::Full));
        assert!(with(&unmounted(&all, "/7").unwrap(), "disk", "/x").is_ok());
        // Names of 255 bytes, as many as there is room for.
        let name = "n".repeat(255);
        let long = |count| alloc::format!("/{name}").repeat(count);
        let mut all = fixed();
        all = with(&all, "disk", &long(15)).unwrap();
        all = with(&all, &alloc::format!("/disk{}", long(7)), &long(8)).unwrap();
        assert_eq!(with(&all, "disk", &long(16)), Err(Refusal::TooLong));
        assert_eq!(with(&all, &alloc::format!("/disk{}", long(8)), &long(8)), Err(Refusal::TooLong));
        assert_eq!(with(&all, "disk", &long(15)), Err(Refusal::Full));
        assert_eq!(with(&all, "disk", &"/a".repeat(DEPTH_MAX + 1)), Err(Refusal::TooLong));
        assert!(with(&all, "disk", &"/a".repeat(DEPTH_MAX)).is_ok());
        assert_eq!(all.with(b"/a\0", all.source(b"disk").unwrap()), Err(Refusal::Senseless));
        assert_eq!(fixed().with_kept(&all.kept()).as_ref(), Some(&all));
    }

    #[test]
    fn ways_are_complete() {
        let way = |at: &str| fixed().way_to(at.as_bytes()).unwrap();
        assert_eq!(way("a//b/../c/"), [b"/a".to_vec(), b"/a/c".to_vec()]);
        assert_eq!(way("/.."), Vec::<Vec<u8>>::new());
    }

    /// A later server finds what was there, and nothing else is taken for it.
    #[test]
    fn what_is_kept_comes_back() {
        let all = with(&with(&fixed(), "disk/a=b", "/x=y").unwrap(), "/etc", "/x=y/z").unwrap();
        let kept = all.kept();
        assert_eq!(kept, b"/x=y\0disk/a=b\0/x=y/z\0boot/etc\0");
        assert_eq!(fixed().with_kept(&kept).as_ref(), Some(&all));
        assert_eq!(fixed().with_kept(b""), Some(fixed()));
        for len in 1..kept.len() {
            let cut = fixed().with_kept(&kept[..len]);
            // All of one, if it is cut behind that.
            assert_eq!(cut.is_some(), len == 14, "{len}");
        }
        for wrong in [&b"/a\0/disk\0"[..], b"/a\0\0", b"\0", b"/a\0no name\0", b"/a\0disk"] {
            assert_eq!(fixed().with_kept(wrong), None, "{wrong:?}");
        }
        for at in 0..kept.len() {
            for byte in 0..=255 {
                let mut wrong = kept.clone();
                wrong[at] = byte;
                let _ = fixed().with_kept(&wrong);
            }
        }
    }

    /// A file system as Linux has it.
    struct Attached {
        number: u64,
        /// The one that it is attached to, and the names of the directory there. The first is attached to none.
        to: Option<(u64, Names)>,
    }

    /// The file system that has a path, and the names in there: from the first one on, name by name, always going on in what is attached.
    fn walk(all: &[Attached], path: &[Vec<u8>]) -> (u64, Names) {
        let first = all.iter().find(|one| one.to.is_none()).unwrap();
        let mut at = (first.number, Vec::new());
        let mut names = path.iter();
        loop {
            while let Some(over) = all.iter().find(|one| one.to.as_ref() == Some(&at)) {
                at = (over.number, Vec::new());
            }
            match names.next() {
                Some(name) => at.1.push(name.clone()),
                None => return at,
            }
        }
    }

    /// Random changes have the outcomes that they have in a tree of file systems, as Linux keeps it, and each path is the same one's there.
    #[test]
    fn a_list_is_as_good_as_a_tree() {
        let mut state = 17u64;
        let mut below = move |end: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % end
        };
        for _ in 0..300 {
            let mut list = Mounts::new(["/a/b=deep", "/=ram", "/a=disk"].into_iter()).unwrap();
            let mut tree = vec![
                Attached { number: 1, to: None },
                Attached { number: 2, to: Some((1, to_owned(&[b"a"]))) },
                Attached { number: 0, to: Some((2, to_owned(&[b"b"]))) },
            ];
            for _ in 0..40 {
                let path: Names = (0..below(4)).map(|_| vec![b'a' + below(3) as u8]).collect();
                let text = [b"/", &path.join(&b'/')[..]].concat();
                let (number, inside) = walk(&tree, &path);
                let route = list.route(&[], &text);
                assert_eq!((route.number, &*route.rest), (number, &*inside.join(&b'/')), "{path:?}");
                let is_place = tree.iter().any(|one| one.to.as_ref().is_some_and(|(to, _)| *to == number));
                match below(3) {
                    0 => {
                        let more = list.with(&text, list.source(b"more").unwrap()).unwrap();
                        tree.push(Attached { number: list.next, to: Some((number, inside)) });
                        list = more;
                    }
                    1 => {
                        let expected = match (inside.is_empty(), is_place, number < 3) {
                            (false, ..) => Err(Refusal::NotMounted),
                            (true, true, _) => Err(Refusal::Busy),
                            (true, false, true) => Err(Refusal::Fixed),
                            (true, false, false) => Ok(number),
                        };
                        assert_eq!(list.removable(&text), expected, "{path:?}");
                        if let Ok(number) = expected {
                            list = list.without(number);
                            tree.retain(|one| one.number != number);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}
