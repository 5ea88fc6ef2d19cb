//! Rust output compiles without a warning, and calls made with it arrive. The program is `programs/bank.rs`.

use std::path::Path;
use std::process::Command;

use quill::driver;
use quill::kernel::Linux;
use quill::session::Options;

fn emit(source: &Path) -> String {
    let mut out = driver::compile(source, Options::default()).unwrap();
    let layouts = out.layout(&Linux);
    let text = out.rust(&layouts);
    assert!(out.accepted(), "{}", out.messages());
    text
}

#[test]
fn calls_arrive_and_damaged_requests_do_not() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = std::env::temp_dir().join(format!("quill-rust-output-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let bank = root.join("../golden/accepted/bank.idl");
    let text = emit(&bank);
    assert_eq!(text, emit(&bank), "the output depends on something besides its input");
    std::fs::write(dir.join("bank.rs"), text).unwrap();
    std::fs::copy(root.join("tests/programs/bank.rs"), dir.join("main.rs")).unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let out = Command::new(rustc)
        .args([
            "--edition",
            "2024",
            "-D",
            "warnings",
            "-C",
            "debug-assertions=on",
            "-C",
            "opt-level=1",
            "main.rs",
        ])
        .current_dir(&dir)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let run = Command::new(dir.join("main")).output().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{text}");
    println!("{text}");
}

#[test]
fn names_that_clash_are_kept_apart() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = std::env::temp_dir().join(format!("quill-rust-names-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("names.rs"), emit(&root.join("../golden/accepted/names.idl"))).unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let out = Command::new(rustc)
        .args([
            "--edition",
            "2024",
            "-D",
            "warnings",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
            "names.rs",
        ])
        .current_dir(&dir)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn layouts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/accepted");
    let mut out = driver::compile(&root.join("bank.idl"), Options::default()).unwrap();
    let layouts = out.layout(&Linux);
    let text = quill::layout::text(&out.model, &layouts, &Linux)
        + &quill::layout::cost_text(&out.model, &layouts, &Linux);
    let golden = root.join("bank.layout.txt");
    if std::env::var_os("QUILL_BLESS").is_some() {
        std::fs::write(&golden, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&golden).unwrap_or_default(), "QUILL_BLESS=1 writes it anew");
}
