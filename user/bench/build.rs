//! Links the program where the runtime wants it.

fn main() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../rt/program.ld");
    println!("cargo:rustc-link-arg-bins=-T{script}");
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rerun-if-changed=src/loops.s");
}
