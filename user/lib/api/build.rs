//! Makes stubs of the interfaces that are written in an interface definition language.

use quill::build::Build;
use quill::kernel::TernIpc;
use std::path::Path;

/// Files of `idl/interfaces`.
const INTERFACES: [&str; 7] =
    ["block.idl", "bus.idl", "calendar.idl", "clock.idl", "entropy.idl", "pipe.idl", "system.idl"];

fn main() {
    let build = Build::new().kernel(&TernIpc);
    for file in INTERFACES {
        build.rust(Path::new("../../../idl/interfaces").join(file));
    }
}
