//! Rust output compiles without a warning, and calls made with it arrive. The programs are in `programs/`.

mod workshop;

use quill::driver;
use quill::kernel::{KernelPart, Linux, TernIpc};
use quill::session::Options;
use workshop::{Workshop, accepted};

#[test]
fn calls_arrive_and_damaged_requests_do_not() {
    let shop = Workshop::new("rust-bank");
    shop.emit("bank.idl", &Linux);
    shop.bring("bank.rs", "main.rs");
    shop.rustc(&["main.rs"]);
    shop.run("main");
}

/// The same over registers, and with a part in memory. The crate that stubs share is replaced by one that needs no kernel.
#[test]
fn messages_of_tern_arrive_and_damaged_ones_do_not() {
    for name in ["parcel", "letter", "archive", "catalog", "ledger", "property"] {
        let shop = Workshop::new(&format!("rust-{name}"));
        shop.emit(&format!("{name}.idl"), &TernIpc);
        shop.bring(&format!("{name}.rs"), "main.rs");
        shop.bring("stub_on_host.rs", "stub.rs");
        for part in ["list.rs", "long.rs", "piece.rs", "stream.rs"] {
            shop.bring(&format!("../../../../user/stub/src/{part}"), part);
        }
        shop.rustc(&["--crate-type", "rlib", "--crate-name", "stub", "stub.rs"]);
        shop.rustc(&["--extern", "stub=libstub.rlib", "main.rs"]);
        shop.run("main");
    }
}

/// Without a message: what a method is given is what its caller has, at the same address.
#[test]
fn local_interfaces_are_called_directly() {
    let idl =
        "typedef sequence<long, 3> L; local interface I { long f(in L all, in string s, inout long n); };";
    let program = r#"
        mod local;
        use local::I::{Client, Server};
        struct Own(*const i32);
        impl Server for Own {
            fn f(&mut self, l: &[i32], s: &str, n: i32) -> Result<(i32, i32), local::rt::Failure> {
                assert_eq!((l.as_ptr(), s.len()), (self.0, 4));
                Ok((l.len() as i32, n + 1))
            }
        }
        fn main() {
            let list = [7; 77]; // too many, but nobody looks
            let mut own = Own(list.as_ptr());
            assert_eq!(Client { server: &mut own }.f(&list, "text", 5).unwrap(), (77, 6));
        }
    "#;
    let shop = Workshop::new("rust-local");
    let mut out = driver::compile_text("local.idl".as_ref(), idl.as_bytes(), Options::default());
    let layouts = out.layout(&Linux);
    let text = out.rust(&layouts, &Linux);
    assert!(out.accepted(), "{}", out.messages());
    std::fs::write(shop.path("local.rs"), text).unwrap();
    std::fs::write(shop.path("main.rs"), program).unwrap();
    shop.rustc(&["main.rs"]);
    shop.run("main");
}

#[test]
fn names_that_clash_are_kept_apart() {
    let shop = Workshop::new("rust-names");
    shop.emit("names.idl", &Linux);
    shop.rustc(&["--crate-type", "lib", "--emit", "metadata", "names.rs"]);
}

#[test]
fn layouts() {
    let kernels: [&dyn KernelPart; 2] = [&Linux, &TernIpc];
    for (file, kernels) in [
        ("bank.idl", &kernels[..1]),
        ("parcel.idl", &kernels[..]),
        ("letter.idl", &kernels[1..]),
        ("archive.idl", &kernels[1..]),
        ("catalog.idl", &kernels[1..]),
        ("depot.idl", &kernels[1..]),
        ("ledger.idl", &kernels[..]),
        ("property.idl", &kernels[..]),
    ] {
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
