//! Copies a file: `cp FROM TO`. If TO is a directory, the copy is there, by the name that it had. What was there is replaced, and the copy survives a loss of power.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use files::Directory;
use rt::api::{Failure, Result, Status};
use tools::both;
use vfs::{Attributes, How};

rt::entry!(main);

fn main() -> i32 {
    both(copy)
}

fn copy(root: &Directory, from: &str, to: &str) -> Result<()> {
    let source = root.open(from, How::default())?;
    if root.stat(to, true).is_ok_and(|there| source.stat().is_ok_and(|own| is_one(&own, &there))) {
        return Err(Failure::Refused(Status::BadRequest));
    }
    let target = root.open(to, How { create: true, truncate: true, ..How::default() })?;
    source.pieces(|offset, piece| target.write_at(offset, piece))?;
    target.sync()
}

/// Whether two are most likely one file: numbers are those of a file system, and there are several.
fn is_one(first: &Attributes, second: &Attributes) -> bool {
    (first.inode, first.len, first.changed) == (second.inode, second.len, second.changed)
}
