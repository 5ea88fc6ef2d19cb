//! Links the program where the runtime wants it, and makes stubs of the interface that the suite `idl` calls.

use quill::build::Build;
use quill::kernel::{TernDoor, TernIpc};
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rustc-link-arg-bins=-Tuser/lib/rt/program.ld");
    println!("cargo:rerun-if-changed=../../../user/lib/rt/program.ld");
    println!("cargo:rerun-if-changed=src/loops.s");
    println!("cargo:rerun-if-changed=src/idl/floor.s");
    println!("cargo:rerun-if-changed=src/tlb.s");
    println!("cargo:rerun-if-changed=src/door.s");
    let interface = "../../../idl/interfaces/bench.idl";
    let build = Build::new().kernel(&TernIpc);
    build.rust(interface);
    let header = build.c(interface);
    let directory = header.parent().expect("it lies in OUT_DIR");
    // Stubs for calls through doors.
    let doors = directory.join("doors");
    std::fs::create_dir_all(&doors).expect("OUT_DIR can be written to");
    let by_door = Build::new().kernel(&TernDoor);
    by_door.rust_in(interface, &doors).unwrap_or_else(|why| panic!("\n{why}"));
    by_door.c_in(interface, &doors).unwrap_or_else(|why| panic!("\n{why}"));
    // Stubs whose texts have their length beside them.
    let acf = "src/idl/counted.acf";
    println!("cargo:rerun-if-changed={acf}");
    let counted = directory.join("counted");
    std::fs::create_dir_all(&counted).expect("OUT_DIR can be written to");
    Build::new().kernel(&TernIpc).acf(acf).c_in(interface, &counted).unwrap_or_else(|why| panic!("\n{why}"));
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        compile_c(directory, directory, "stubs.o", &[]);
        compile_c(&counted, directory, "counted.o", &["-DCOUNTED"]);
        compile_c(&doors, directory, "doors.o", &["-DBY_DOOR"]);
    }
}

/// Compiles the C stubs of a header into the program, with the options of other C programs.
fn compile_c(headers: &Path, directory: &Path, object: &str, more: &[&str]) {
    let source = "src/idl/stubs.c";
    let include = "../../../user/lib/c/include";
    println!("cargo:rerun-if-changed={source}");
    println!("cargo:rerun-if-changed=src/idl/measured.h");
    println!("cargo:rerun-if-changed={include}/tern.h");
    let object = directory.join(object);
    let options = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fPIE", "-mno-sse"];
    let calls = ["-fomit-frame-pointer", "-DQUILL_OMIT_FRAME_POINTER"];
    let status = Command::new("gcc")
        .args(options)
        .args(calls)
        .args(more)
        .args([
            "-fno-stack-protector",
            "-fcf-protection=none",
            "-fno-asynchronous-unwind-tables",
            "-c",
            source,
        ])
        .arg("-I")
        .arg(headers)
        .arg("-I")
        .arg(include)
        .arg("-o")
        .arg(&object)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "gcc cannot compile {source}");
    println!("cargo:rustc-link-arg-bins={}", object.display());
}
