//! Hands the linker script to the linker, and makes self-tests of interfaces, by ipc and through doors: of those that stand here, or, for
//! `./tern selftest`, takes those that quill has made already.

use quill::build::Build;
use quill::driver;
use quill::kernel::{KernelPart, TernDoor, TernDoorPlain, TernIpc};
use quill::session::Options;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The interfaces that are tested, relative to `idl/`.
const FILES: [&str; 12] = [
    "interfaces/bench.idl",
    "interfaces/clock.idl",
    "interfaces/system.idl",
    "golden/accepted/archive.idl",
    "golden/accepted/cabinet.idl",
    "golden/accepted/catalog.idl",
    "golden/accepted/depot.idl",
    "golden/accepted/ledger.idl",
    "golden/accepted/letter.idl",
    "golden/accepted/parcel.idl",
    "golden/accepted/property.idl",
    "golden/accepted/warehouse.idl",
];

/// Those that are tested through doors: who is given pages, or hands over references to threads, does it by ipc; who hands objects over,
/// does not.
const DOOR_FILES: [&str; 14] = [
    "../tests/guest/stub-test/src/lift.idl",
    "../tests/guest/stub-test/src/gallery.idl",
    "../tests/guest/stub-test/office.idl",
    "interfaces/bench.idl",
    "interfaces/clock.idl",
    "golden/accepted/archive.idl",
    "golden/accepted/atlas.idl",
    "golden/accepted/cabinet.idl",
    "golden/accepted/catalog.idl",
    "golden/accepted/fleet.idl",
    "golden/accepted/ledger.idl",
    "golden/accepted/letter.idl",
    "golden/accepted/property.idl",
    "golden/accepted/warehouse.idl",
];

/// Those that are tested through doors with stubs of which nothing is optimised.
const PLAIN_FILES: [&str; 7] = [
    "../tests/guest/stub-test/src/lift.idl",
    "../tests/guest/stub-test/office.idl",
    "golden/accepted/atlas.idl",
    "golden/accepted/catalog.idl",
    "golden/accepted/fleet.idl",
    "golden/accepted/property.idl",
    "golden/accepted/warehouse.idl",
];

/// Names a directory with other self-tests, those of a kernel part in a directory with its name.
const OTHERS: &str = "TERN_SELFTEST";

fn main() {
    println!("cargo::rerun-if-changed=../../../user/lib/rt/program.ld");
    println!("cargo::rerun-if-env-changed={OTHERS}");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo::rustc-link-arg-bins=-Tuser/lib/rt/program.ld");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut text = String::new();
    for (kernel, files, module, each) in [
        (&TernIpc as &'static dyn KernelPart, &FILES[..], "file", "each_file"),
        (&TernDoor, &DOOR_FILES, "door_file", "each_door_file"),
        (&TernDoorPlain, &PLAIN_FILES, "plain_file", "each_plain_file"),
    ] {
        let stubs = out.join(kernel.name());
        fs::create_dir_all(&stubs).expect("OUT_DIR can be written");
        let purse = "src/purse.idl";
        println!("cargo::rerun-if-changed={purse}");
        Build::new().kernel(kernel).rust_in(purse, &stubs).unwrap_or_else(|why| panic!("\n{why}"));
        let tests = match std::env::var_os(OTHERS) {
            Some(directory) => others(&Path::new(&directory).join(kernel.name())),
            None => {
                let idl = Path::new("../../../idl");
                files.iter().map(|file| selftest(&idl.join(file), kernel, &stubs)).collect()
            }
        };
        text += &modules(&tests, module, each);
    }
    let accepted = "../../../idl/golden/accepted";
    let accepted = ["fleet", "film"].map(|file| format!("{accepted}/{file}"));
    let owns = ["office", "src/gallery", "src/lift", "src/offers"].map(String::from);
    for own in owns.into_iter().chain(accepted) {
        let own = format!("{own}.idl");
        println!("cargo::rerun-if-changed={own}");
        Build::new().kernel(&TernDoor).rust_in(&own, &out).unwrap_or_else(|why| panic!("\n{why}"));
    }
    fs::write(out.join("tests.rs"), text).expect("OUT_DIR can be written");
}

/// All self-tests of a directory, in the order of their names; none if it is not there.
fn others(directory: &Path) -> Vec<PathBuf> {
    println!("cargo::rerun-if-changed={}", directory.display());
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    files.iter().for_each(|file| println!("cargo::rerun-if-changed={}", file.display()));
    files
}

/// Writes stubs and their self-test.
fn selftest(source: &Path, kernel: &dyn KernelPart, out: &Path) -> PathBuf {
    let mut compiled =
        driver::compile(source, Options::default()).unwrap_or_else(|error| panic!("{}", error.0));
    let text = compiled.rust_selftest(kernel);
    assert!(compiled.accepted(), "{}", compiled.messages());
    for file in compiled.files() {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    let name = source.with_extension("rs");
    let path = out.join(name.file_name().expect("an interface file has a name"));
    fs::write(&path, text).expect("OUT_DIR can be written");
    path
}

/// A module for each file, and a macro that makes an array of what another one makes of each of them.
fn modules(files: &[PathBuf], module: &str, each: &str) -> String {
    let (mut modules, mut all) = (String::new(), String::new());
    for (number, file) in files.iter().enumerate() {
        let _ = writeln!(
            modules,
            "#[allow(missing_docs)]\nmod {module}_{number} {{\n    include!({file:?});\n}}"
        );
        let _ = write!(all, "$do!({module}_{number}), ");
    }
    format!("{modules}macro_rules! {each} {{\n    ($do:ident) => {{ [{all}] }};\n}}\n")
}
