//! Links the program where the runtime wants it, and makes stubs of the interface that the suite `idl` calls.

use quill::driver;
use quill::kernel::TernIpc;
use quill::session::Options;
use std::path::Path;
use std::process::Command;

fn main() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../rt/program.ld");
    println!("cargo:rustc-link-arg-bins=-T{script}");
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rerun-if-changed=src/loops.s");
    println!("cargo:rerun-if-changed=src/idl/floor.s");
    println!("cargo:rerun-if-changed=src/tlb.s");
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
    let header = compiled.c(&layouts, &TernIpc);
    assert!(compiled.accepted(), "{}", compiled.messages());
    let directory = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&directory).join("bench.rs"), text).expect("OUT_DIR can be written");
    std::fs::write(Path::new(&directory).join("bench.h"), header).expect("OUT_DIR can be written");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        compile_c(Path::new(&directory));
    }
}

/// Compiles the C stubs into the program, with the options of other C programs.
fn compile_c(directory: &Path) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/idl/stubs.c");
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../c/include");
    println!("cargo:rerun-if-changed={source}");
    println!("cargo:rerun-if-changed={include}/tern.h");
    let object = directory.join("stubs.o");
    let options = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fPIE", "-mno-sse"];
    let calls = ["-fomit-frame-pointer", "-DQUILL_OMIT_FRAME_POINTER"];
    let status = Command::new("gcc")
        .args(options)
        .args(calls)
        .args([
            "-fno-stack-protector",
            "-fcf-protection=none",
            "-fno-asynchronous-unwind-tables",
            "-c",
            source,
        ])
        .arg("-I")
        .arg(directory)
        .arg("-I")
        .arg(include)
        .arg("-o")
        .arg(&object)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "gcc cannot compile {source}");
    println!("cargo:rustc-link-arg-bins={}", object.display());
}
