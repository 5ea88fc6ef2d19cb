//! All file systems as one, served under the name `files`: the arguments say which server's files are found at which path, such as `/=ram`,
//! `/disk=disk`, and `/etc=boot/etc` for those of a directory. More are mounted later by programs that may do so; `root` keeps these for the server that is
//! started in the place of one that has ended.
//!
//! Its objects are directories that hand each call on, to the file system whose path is the longest that fits. Files come from that file system
//! itself, so reading and writing them takes no way through here. `..` is taken away from paths first, and no name of a mount is removed or
//! moved. The surprise: a symbolic link that begins with a slash begins in its own file system.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod clients;
mod table;
mod tree;

use alloc::vec;
use clients::Clients;
use rt::api::process::{self, KEPT_LEN_MAX};
use rt::{home, println};
use vfs::mounts::Mounts;

rt::entry!(main);

fn main() -> i32 {
    let arguments = rt::arguments();
    let Some(mounts) = Mounts::new(arguments.iter().map(|argument| argument.as_str())) else {
        println!("mounts: usage: mounts PATH=SERVER[/DIRECTORY]...");
        return 2;
    };
    let mut clients = Clients::new(with_kept(mounts));
    let failure = files::hand_out(files::NAME, |task| clients.root(task));
    println!("mounts: {failure}");
    1
}

/// These, and what was mounted before a server of this name ended.
fn with_kept(mounts: Mounts) -> Mounts {
    let mut kept = vec![0; KEPT_LEN_MAX];
    let len = process::kept(home(), &mut kept).unwrap_or(0);
    match mounts.with_kept(kept.get(..len).unwrap_or_default()) {
        Some(all) => all,
        None => {
            println!("mounts: what was mounted is lost, since what was kept of it makes no sense");
            mounts
        }
    }
}
