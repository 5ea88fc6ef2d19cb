//! All file systems as one, served under the name `files`: the arguments say which server's files are found at which path, such as `/=ram` and
//! `/disk=disk`.
//!
//! Its objects are directories that hand each call on, to the file system whose path is the longest that fits. Files come from that file system
//! itself, so reading and writing them takes no way through here. `..` is taken away from paths first, and no name of a mount is removed or
//! moved. The surprise: a symbolic link that begins with a slash begins in its own file system.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod tree;

use files::stubs::Files::Directory;
use rt::api::Failure;
use rt::{door, println};
use tree::Tree;
use vfs::mounts::Mounts;

rt::entry!(main);

fn main() -> i32 {
    let arguments = rt::arguments();
    let Some(mounts) = Mounts::new(arguments.iter().map(|argument| argument.as_str())) else {
        println!("mounts: usage: mounts PATH=SERVER...");
        return 2;
    };
    let failure = match door::serve(Directory::Object(Tree::new(mounts))) {
        Ok(root) => files::hand_out(files::NAME, Ok(root.into())),
        Err(error) => Failure::Kernel(error),
    };
    println!("mounts: {failure}");
    1
}
