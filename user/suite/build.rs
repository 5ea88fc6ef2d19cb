//! Links the program where the runtime wants it, and names the places where it begins and ends.

fn main() {
    let directory = env!("CARGO_MANIFEST_DIR");
    for script in [format!("{directory}/../rt/program.ld"), format!("{directory}/image.ld")] {
        println!("cargo:rustc-link-arg-bins=-T{script}");
        println!("cargo:rerun-if-changed={script}");
    }
    println!("cargo:rerun-if-changed=src/kit/kit.s");
}
