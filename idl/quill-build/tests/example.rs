//! The example is built as a stranger would build it, and a mistake in its interface is told as one.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        if name == "target" || name == "Cargo.lock" {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name))
        } else {
            _ = std::fs::copy(path, to.join(name)).unwrap()
        }
    }
}

/// The example in a directory of its own. What it is compiled to stays from run to run.
fn example() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("quill-build-example");
    let _ = std::fs::remove_dir_all(dir.join("idl"));
    copy(&own.join("example"), &dir);
    let manifest = std::fs::read_to_string(dir.join("Cargo.toml")).unwrap();
    let here = format!("path = \"{}\"", own.display());
    std::fs::write(dir.join("Cargo.toml"), manifest.replace("path = \"..\"", &here)).unwrap();
    // The versions that this tree has, which are there without a network.
    std::fs::copy(own.join("../../Cargo.lock"), dir.join("Cargo.lock")).unwrap();
    dir
}

fn cargo(dir: &Path) -> Output {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--offline", "-j1"]).current_dir(dir);
    // Whatever the tree's own build has set is none of its business.
    for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        command.env_remove(name);
    }
    command.output().unwrap()
}

#[test]
fn a_package_is_built_with_stubs() {
    let dir = example();
    let out = cargo(&dir);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{said}");
    assert!(!said.contains("warning"), "{said}");
    let out = Command::new(dir.join("target/debug/bank")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "7 are left\nOverdrawn(Overdrawn { by: 2 })\n");
    // A file that is included counts as well.
    std::fs::write(dir.join("idl/money.idl"), "typedef lnog long Money;\n").unwrap();
    let out = cargo(&dir);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && said.contains("error[E0") && said.contains("money.idl:1"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}
