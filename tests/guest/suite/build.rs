//! Links the program where the runtime wants it, and names the places where it begins and ends.

fn main() {
    println!("cargo::rerun-if-changed=../../../user/lib/rt/program.ld");
    println!("cargo::rerun-if-changed=image.ld");
    for script in ["user/lib/rt/program.ld", "tests/guest/suite/image.ld"] {
        println!("cargo::rustc-link-arg-bins=-T{script}");
    }
    println!("cargo:rerun-if-changed=src/kit/kit.s");
}
