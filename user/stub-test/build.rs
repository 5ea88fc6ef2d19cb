//! Hands the linker script to the linker, and makes self-tests of interfaces: of those that stand here, or, for
//! `./tern selftest`, takes those that quill has made already.

use quill::driver;
use quill::kernel::TernIpc;
use quill::session::Options;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The interfaces that are tested, relative to `idl/`.
const FILES: [&str; 10] = [
    "interfaces/bench.idl",
    "interfaces/clock.idl",
    "interfaces/system.idl",
    "golden/accepted/archive.idl",
    "golden/accepted/catalog.idl",
    "golden/accepted/depot.idl",
    "golden/accepted/ledger.idl",
    "golden/accepted/letter.idl",
    "golden/accepted/parcel.idl",
    "golden/accepted/property.idl",
];

/// Names a directory with other self-tests.
const OTHERS: &str = "TERN_SELFTEST";

fn main() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../rt/program.ld");
    println!("cargo::rerun-if-changed={script}");
    println!("cargo::rerun-if-env-changed={OTHERS}");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo::rustc-link-arg-bins=-T{script}");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let tests = match std::env::var_os(OTHERS) {
        Some(directory) => others(Path::new(&directory)),
        None => {
            let idl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../idl");
            FILES.iter().map(|file| selftest(&idl.join(file), &out)).collect()
        }
    };
    fs::write(out.join("tests.rs"), modules(&tests)).expect("OUT_DIR can be written");
}

/// All self-tests of a directory, in the order of their names.
fn others(directory: &Path) -> Vec<PathBuf> {
    println!("cargo::rerun-if-changed={}", directory.display());
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    files.iter().for_each(|file| println!("cargo::rerun-if-changed={}", file.display()));
    files
}

/// Writes stubs and their self-test.
fn selftest(source: &Path, out: &Path) -> PathBuf {
    let mut compiled =
        driver::compile(source, Options::default()).unwrap_or_else(|error| panic!("{}", error.0));
    let layouts = compiled.layout(&TernIpc);
    let text = compiled.rust_selftest(&layouts, &TernIpc);
    assert!(compiled.accepted(), "{}", compiled.messages());
    for file in compiled.files() {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    let name = source.with_extension("rs");
    let path = out.join(name.file_name().expect("an interface file has a name"));
    fs::write(&path, text).expect("OUT_DIR can be written");
    path
}

/// A module for each file, and a macro that does something for each of them.
fn modules(files: &[PathBuf]) -> String {
    let (mut modules, mut all) = (String::new(), String::new());
    for (number, file) in files.iter().enumerate() {
        let _ =
            writeln!(modules, "#[allow(missing_docs)]\nmod file_{number} {{\n    include!({file:?});\n}}");
        let _ = write!(all, " $do!(file_{number});");
    }
    format!("{modules}macro_rules! each_file {{\n    ($do:ident) => {{{all} }};\n}}\n")
}
