//! A file system that keeps its files encrypted in another one.
//!
//! In reading order: [`key`], from a passphrase to keys; [`name`], names and symbolic links; [`block`], the blocks of a file, on paper; [`Crypt`], the file system.
//!
//! In the other one there is a file for each file, and a directory for each directory. Names that begin with a dot are ours, and no encrypted name does: `.key`,
//! the keys, encrypted by the passphrase; `.new`, a directory for files that are not complete; and in each directory a symbolic link `.id`, whose target
//! is a number that no other directory has.
//!
//! It hides and protects what files contain, and names. Not hidden are how many files there are, which directory each is in, about how long it and its name
//! are, its attributes, and when it was used. Bytes that are changed, blocks that are moved, and files that are cut off are noticed; a file as a whole that is
//! put to another one's name, or that becomes again as it was, or a block that does, is not.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod block;
mod fs;
pub mod key;
pub mod name;

pub use fs::{Crypt, Refusal};
pub use key::Cost;
