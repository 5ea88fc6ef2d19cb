//! Rust output compiles without a warning, and calls made with it arrive. The programs are in `programs/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use quill::driver;
use quill::kernel::{KernelPart, Linux, TernIpc};
use quill::session::Options;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn accepted(file: &str) -> PathBuf {
    root().join("../golden/accepted").join(file)
}

fn emit(source: &Path, kernel: &dyn KernelPart) -> String {
    let mut out = driver::compile(source, Options::default()).unwrap();
    let layouts = out.layout(kernel);
    let text = out.rust(&layouts, kernel);
    assert!(out.accepted(), "{}", out.messages());
    text
}

/// A directory for one test's files, which goes away with it.
struct Workshop(PathBuf);

impl Workshop {
    fn new(name: &str) -> Workshop {
        let dir = std::env::temp_dir().join(format!("quill-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Workshop(dir)
    }

    /// Puts a program of `programs/` there, or a file from elsewhere.
    fn bring(&self, from: &str, to: &str) {
        std::fs::copy(root().join("tests/programs").join(from), self.0.join(to)).unwrap();
    }

    /// Writes the Rust for an interface.
    fn emit(&self, file: &str, kernel: &dyn KernelPart) {
        let text = emit(&accepted(file), kernel);
        assert_eq!(text, emit(&accepted(file), kernel), "the output depends on something besides its input");
        std::fs::write(self.0.join(file).with_extension("rs"), text).unwrap();
    }

    fn compile(&self, arguments: &[&str]) {
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
        let mut command = Command::new(rustc);
        command.args(["--edition", "2024", "-D", "warnings", "-C", "debug-assertions=on"]);
        let out = command.args(["-C", "opt-level=1"]).args(arguments).current_dir(&self.0).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    fn run(&self, program: &str) {
        let run = Command::new(self.0.join(program)).output().unwrap();
        let text = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{text}");
        println!("{text}");
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn calls_arrive_and_damaged_requests_do_not() {
    let shop = Workshop::new("rust-bank");
    shop.emit("bank.idl", &Linux);
    shop.bring("bank.rs", "main.rs");
    shop.compile(&["main.rs"]);
    shop.run("main");
}

/// The same over registers. The crate that stubs share is replaced by one that needs no kernel.
#[test]
fn short_messages_arrive_and_damaged_ones_do_not() {
    let shop = Workshop::new("rust-parcel");
    shop.emit("parcel.idl", &TernIpc);
    shop.bring("parcel.rs", "main.rs");
    shop.bring("stub_on_host.rs", "stub.rs");
    shop.bring("../../../../user/stub/src/list.rs", "list.rs");
    shop.bring("../../../../user/stub/src/piece.rs", "piece.rs");
    shop.compile(&["--crate-type", "rlib", "--crate-name", "stub", "stub.rs"]);
    shop.compile(&["--extern", "stub=libstub.rlib", "main.rs"]);
    shop.run("main");
}

#[test]
fn names_that_clash_are_kept_apart() {
    let shop = Workshop::new("rust-names");
    shop.emit("names.idl", &Linux);
    shop.compile(&["--crate-type", "lib", "--emit", "metadata", "names.rs"]);
}

#[test]
fn layouts() {
    let kernels: [&dyn KernelPart; 2] = [&Linux, &TernIpc];
    for (file, kernels) in [("bank.idl", &kernels[..1]), ("parcel.idl", &kernels[..])] {
        let mut out = driver::compile(&accepted(file), Options::default()).unwrap();
        let mut text = String::new();
        for &kernel in kernels {
            let layouts = out.layout(kernel);
            assert!(out.accepted(), "{}", out.messages());
            text += &quill::layout::text(&out.model, &layouts, kernel);
            text += &quill::layout::cost_text(&out.model, &layouts, kernel);
        }
        let golden = accepted(file).with_extension("layout.txt");
        if std::env::var_os("QUILL_BLESS").is_some() {
            std::fs::write(&golden, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(text, expected, "QUILL_BLESS=1 writes it anew");
    }
}
