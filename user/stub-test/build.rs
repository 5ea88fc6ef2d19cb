//! Hands the linker script to the linker, and makes self-tests of interfaces.

use quill::driver;
use quill::kernel::TernIpc;
use quill::session::Options;
use std::path::Path;

/// The interfaces that are tested, relative to `idl/`.
const FILES: [&str; 4] = [
    "interfaces/bench.idl",
    "golden/accepted/archive.idl",
    "golden/accepted/letter.idl",
    "golden/accepted/parcel.idl",
];

fn main() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../rt/program.ld");
    println!("cargo::rerun-if-changed={script}");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo::rustc-link-arg-bins=-T{script}");
    }
    let idl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../idl");
    FILES.iter().for_each(|file| selftest(&idl.join(file)));
}

/// Writes stubs and their self-test.
fn selftest(source: &Path) {
    let mut compiled =
        driver::compile(source, Options::default()).unwrap_or_else(|error| panic!("{}", error.0));
    let layouts = compiled.layout(&TernIpc);
    let text = compiled.rust_selftest(&layouts, &TernIpc);
    assert!(compiled.accepted(), "{}", compiled.messages());
    for file in compiled.files() {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    let directory = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let name = source.with_extension("rs");
    let name = name.file_name().expect("an interface file has a name");
    std::fs::write(Path::new(&directory).join(name), text).expect("OUT_DIR can be written");
}
