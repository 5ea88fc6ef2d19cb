//! Renames a file or directory: `mv FROM TO`. If TO is a directory, it is moved there. What was there is replaced, by a step that is made or not.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

rt::entry!(main);

fn main() -> i32 {
    tools::both(|root, from, to| root.rename(from, to))
}
