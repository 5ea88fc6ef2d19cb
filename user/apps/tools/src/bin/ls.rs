//! Lists directories: `ls [-l] [PATH...]`; without a PATH, the working directory. With `-l` it says of each entry its kind and permissions, how many names it has, how many bytes, and where a
//! link leads.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use files::Directory;
use rt::api::Result;
use rt::{print, println};
use tools::each_or_here;
use vfs::{Attributes, Kind};

rt::entry!(main);

fn main() -> i32 {
    let arguments = rt::arguments();
    let (is_long, paths) = match arguments.split_first() {
        Some((first, paths)) if first == "-l" => (true, paths),
        _ => (false, &arguments[..]),
    };
    each_or_here(paths, |root, path, typed| list(root, path, typed, is_long))
}

/// Lists a directory in the order of its names, or tells of something else that has this path.
fn list(root: &Directory, path: &str, typed: &str, is_long: bool) -> Result<()> {
    let found = root.stat(path, true)?;
    if found.kind != Kind::Directory {
        line(typed, &found, None, is_long);
        return Ok(());
    }
    let directory = root.enter(path)?;
    let mut entries = directory.entries()?;
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    for entry in entries {
        let name = String::from_utf8_lossy(&entry.name);
        let target = if entry.kind == Kind::Symlink { directory.readlink(&entry.name).ok() } else { None };
        // One that is gone meanwhile is none. Where a file system is not there, its directory still has a name.
        match directory.stat(&entry.name, false) {
            Ok(found) => line(&name, &found, target.as_deref(), is_long),
            Err(_) if entry.kind == Kind::Directory => println!("{name}/ (not there)"),
            Err(_) => {}
        }
    }
    Ok(())
}

fn line(name: &str, found: &Attributes, target: Option<&[u8]>, is_long: bool) {
    let (letter, mark) = match found.kind {
        Kind::File => ('-', ""),
        Kind::Directory => ('d', "/"),
        Kind::Symlink => ('l', ""),
        Kind::Special => ('?', ""),
    };
    if is_long {
        let bit = |bit: u16, letter| if found.permissions & bit != 0 { letter } else { '-' };
        let bits: String = (0..9).rev().map(|at| bit(1 << at, ['x', 'w', 'r'][at % 3])).collect();
        print!("{letter}{bits} {:>3} {:>10} ", found.links, found.len);
    }
    match target {
        Some(target) if is_long => println!("{name} -> {}", String::from_utf8_lossy(target)),
        _ => println!("{name}{mark}"),
    }
}
