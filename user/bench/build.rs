//! Links the program where the runtime wants it, and makes stubs of the interface that the suite `idl` calls.

use quill::driver;
use quill::kernel::TernIpc;
use quill::session::Options;
use std::path::Path;

fn main() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../rt/program.ld");
    println!("cargo:rustc-link-arg-bins=-T{script}");
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rerun-if-changed=src/loops.s");
    println!("cargo:rerun-if-changed=src/idl/floor.s");
    stubs(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../idl/interfaces/bench.idl")));
}

/// Writes Rust for an interface file.
fn stubs(source: &Path) {
    let mut compiled =
        driver::compile(source, Options::default()).unwrap_or_else(|error| panic!("{}", error.0));
    let layouts = compiled.layout(&TernIpc);
    let text = compiled.rust(&layouts, &TernIpc);
    assert!(compiled.accepted(), "{}", compiled.messages());
    for file in compiled.files() {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    let directory = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&directory).join("bench.rs"), text).expect("OUT_DIR can be written");
}
