//! Hands the linker script to the linker. Paths in the output begin at the checkout, where cargo runs the linker; all others at this folder.

fn main() {
    println!("cargo::rerun-if-changed=../../../user/lib/rt/program.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo::rustc-link-arg-bins=-Tuser/lib/rt/program.ld");
    }
}
