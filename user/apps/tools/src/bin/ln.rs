//! Gives a file another name, or makes a symbolic link: `ln [-s] EXISTING PATH`.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use files::{Directory, path_of};
use tools::{told, usage};

rt::entry!(main);

fn main() -> i32 {
    let arguments = rt::arguments();
    let (is_symbolic, words) = match arguments.split_first() {
        Some((first, words)) if first == "-s" => (true, words),
        _ => (false, &arguments[..]),
    };
    let [existing, path] = words else { return usage("[-s] EXISTING PATH") };
    let outcome = Directory::root().and_then(|root| match is_symbolic {
        true => root.symlink(existing, path_of(path)),
        false => root.link(path_of(existing), path_of(path)),
    });
    told(path, outcome)
}
