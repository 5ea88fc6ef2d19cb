//! Constants and the members of enums and bitmasks: programs in Rust and in C say the same of them, and what stands in
//! `idl/golden/values`.

mod workshop;

use std::path::Path;
use std::process::Command;

use quill::driver;
use quill::session::Options;
use workshop::{Workshop, compilers};

/// What a program in each language says of a file.
fn said(path: &Path) -> [String; 2] {
    let shop = Workshop::new(&format!("values-{}", path.file_stem().unwrap().to_string_lossy()));
    let mut out = driver::compile(path, Options::default()).unwrap();
    let [rust, c] = out.values();
    assert!(out.accepted(), "{}", out.messages());
    std::fs::write(shop.path("in_rust.rs"), rust).unwrap();
    std::fs::write(shop.path("in_c.c"), c).unwrap();
    shop.rustc(&["in_rust.rs"]);
    let strict = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-o", "in_c", "in_c.c"];
    shop.tool(&compilers()[0], &strict);
    ["in_rust", "in_c"].map(|program| {
        let out = Command::new(shop.path(program)).output().unwrap();
        assert!(out.status.success());
        String::from_utf8(out.stdout).unwrap()
    })
}

#[test]
fn both_languages_have_the_values_of_the_file() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/values");
    let bless = std::env::var_os("QUILL_BLESS").is_some();
    let mut entries: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.retain(|path| path.extension().is_some_and(|e| e == "idl"));
    entries.sort();
    assert_eq!(entries.len(), 3, "a file for each dialect");
    for path in entries {
        let [rust, c] = said(&path);
        assert_eq!(rust, c, "{}: Rust has other values than C", path.display());
        let golden = path.with_extension("txt");
        if bless {
            std::fs::write(&golden, &rust).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        let command = "QUILL_BLESS=1 cargo test -p quill --test values writes it anew";
        assert_eq!(rust, expected, "{}: {command}", path.display());
    }
}
