//! Shows files of a server, or of a directory, at another path: `mount [SOURCE PATH]`. SOURCE is a server of files that the system description lets the server "mounts" use, or a
//! directory of it: SERVER or SERVER/DIRECTORY. One that begins with / or . is a directory of the tree. PATH is a directory, and what was there is hidden until "umount PATH". All programs see it.
//! Without words it lists what is mounted: the last one that leads to a path has it.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use files::{Directory, Mounted, path_of};
use rt::api::Result;
use rt::println;
use tools::{told, usage};

rt::entry!(main);

fn main() -> i32 {
    let arguments = rt::arguments();
    let (source, path) = match &arguments[..] {
        [] => return told("/", list()),
        [source, path] => (source, path),
        _ => return usage("[SOURCE PATH]"),
    };
    // A name alone is a server's.
    let is_path = source.starts_with('/') || source.starts_with('.');
    let from = if is_path { path_of(source) } else { source.clone() };
    let at = path_of(path);
    let root = match Directory::root() {
        Ok(root) => root,
        Err(failure) => return told("/", Err(failure)),
    };
    // A failure that is not the path's is the source's.
    match root.stat(&at, false) {
        Ok(_) => told(source, root.mount(from, at)),
        Err(failure) => told(path, Err(failure)),
    }
}

fn list() -> Result<()> {
    for Mounted { path, source } in Directory::root()?.mounts()? {
        let [path, source] = [&path, &source].map(|text| String::from_utf8_lossy(text));
        println!("{path:<12} {source}");
    }
    Ok(())
}
