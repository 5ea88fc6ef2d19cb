//! Shows files: `cat PATH...`.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use rt::io;
use tools::each;
use vfs::How;

rt::entry!(main);

fn main() -> i32 {
    each("PATH...", &rt::arguments(), |root, path, _| {
        root.open(path, How::default())?.pieces(|_, piece| {
            io::write(piece);
            Ok(())
        })
    })
}
