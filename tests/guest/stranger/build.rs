//! Hands the linker script to the linker.

fn main() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../user/lib/rt/program.ld");
    println!("cargo::rerun-if-changed=../../../user/lib/rt/program.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo::rustc-link-arg-bins=-T{script}");
    }
}
