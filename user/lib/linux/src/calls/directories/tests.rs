//! Entries of directories: their numbers are those that `stat` tells.

use crate::frames::PAGE;
use crate::world::{OWN, World};
use linux_raw_sys::general::*;
use std::collections::BTreeMap;
use std::format;
use std::string::String;

/// Where answers come.
const TO: u64 = OWN + 4 * PAGE;

/// Numbers of the entries that are left of an open directory, by name.
fn entries(world: &mut World, fd: u64, call: u32) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    loop {
        let count = world.now(1, call, &[fd, TO, 200]).unwrap();
        if count == 0 {
            return all;
        }
        let mut bytes = std::vec![0; count as usize];
        world.system.read(1, TO, &mut bytes).unwrap();
        let mut left = &bytes[..];
        while !left.is_empty() {
            let (entry, rest) = left.split_at(u16::from_le_bytes([left[16], left[17]]).into());
            let name_at = if call == __NR_getdents { 18 } else { 19 };
            let name = entry[name_at..].split(|byte| *byte == 0).next().unwrap();
            let number = u64::from_le_bytes(entry[..8].try_into().unwrap());
            all.insert(String::from_utf8(name.to_vec()).unwrap(), number);
            left = rest;
        }
    }
}

fn list(world: &mut World, path: &str, call: u32) -> BTreeMap<String, u64> {
    let fd = world.open(1, path, O_RDONLY | O_DIRECTORY).unwrap();
    let found = entries(world, fd, call);
    world.now(1, __NR_close, &[fd]).unwrap();
    found
}

fn number(world: &mut World, path: &str) -> u64 {
    world.by_path(1, __NR_lstat, path, &[TO]).unwrap();
    let [_, number] = world.system.words(1, TO).unwrap();
    number
}

#[test]
fn a_directory_lists_itself_and_the_one_above() {
    let mut world = World::new();
    for path in ["/a", "/a/b", "/a/b/c"] {
        world.by_path(1, __NR_mkdir, path, &[0o755]).unwrap();
    }
    let root = number(&mut world, "/");
    let [a, b, c] = ["/a", "/a/b", "/a/b/c"].map(|path| number(&mut world, path));
    for call in [__NR_getdents64, __NR_getdents] {
        for (path, own, above) in [("/", root, root), ("/a", a, root), ("/a/b", b, a), ("/a/b/./c", c, b)] {
            let found = list(&mut world, path, call);
            assert_eq!((found["."], found[".."]), (own, above), "{path}");
        }
        assert_eq!(list(&mut world, "/a", call)["b"], b);
    }
    // One that is moved meanwhile has another one above.
    let fd = world.open(1, "/a/b/c", O_RDONLY).unwrap();
    world.put(1, TO, b"/moved\0");
    world.by_path(1, __NR_rename, "/a/b", &[TO]).unwrap();
    assert_eq!(entries(&mut world, fd, __NR_getdents64)[".."], b);
    assert_eq!(list(&mut world, "/moved", __NR_getdents64)[".."], root);
}

#[test]
fn entries_have_the_numbers_of_their_files() {
    let mut world = World::new();
    for directory in ["/", "/dev", "/proc", "/proc/1", "/proc/1/task", "/sys"] {
        for (name, found) in list(&mut world, directory, __NR_getdents64) {
            if name != ".." {
                assert_eq!(found, number(&mut world, &format!("{directory}/{name}")), "{directory}: {name}");
            }
        }
    }
    let above = ["/dev", "/proc", "/sys"].map(|path| list(&mut world, path, __NR_getdents64));
    assert!(above.iter().all(|entries| entries["."] == entries[".."]), "they are roots of their own");
    assert_eq!(list(&mut world, "/proc/1", __NR_getdents64)[".."], number(&mut world, "/proc"));
}
