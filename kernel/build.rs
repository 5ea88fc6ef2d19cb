//! Gives the linker the kernel's memory layout. Only the bare-metal binary wants it: on the host the same
//! package is an ordinary library with tests.

fn main() {
    println!("cargo::rerun-if-changed=link.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none") {
        let directory = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
        println!("cargo::rustc-link-arg-bins=-T{directory}/link.ld");
        println!("cargo::rustc-link-arg-bins=-zmax-page-size=4096");
    }
}
