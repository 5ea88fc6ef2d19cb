//! Removes files: `rm PATH...`.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

rt::entry!(main);

fn main() -> i32 {
    tools::each("PATH...", &rt::arguments(), |root, path, _| root.unlink(path))
}
