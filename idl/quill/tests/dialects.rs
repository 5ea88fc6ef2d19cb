//! Files in the dialects of L4's own compilers: what they say is known, what has no meaning is told, and stubs are made of the rest.

mod workshop;

use std::path::Path;

use quill::diag::Severity;
use quill::driver::{self, Compiled};
use quill::kernel::{KernelPart, L4V4, Linux, TernIpc};
use quill::session::{Dialect, Options};
use workshop::{Workshop, compilers};

/// A file of `programs/`.
fn program(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(file)
}

fn compiled(file: &str) -> Compiled {
    let out = driver::compile(&program(file), Options::default()).unwrap();
    assert!(out.accepted(), "{}", out.messages());
    out
}

fn text(source: &str) -> Compiled {
    driver::compile_text(Path::new("t.idl"), source.as_bytes(), Options::default())
}

/// First words of all warnings, one behind the other.
fn warnings(out: &Compiled) -> Vec<String> {
    let all = out.session.diags.list().iter().filter(|d| d.severity == Severity::Warning);
    all.map(|d| d.message.split(':').next().unwrap().to_owned()).collect()
}

/// Compiles what is made of a file in each language and for each of these kernels.
fn compiles(file: &str) {
    let shop = Workshop::new(&format!("dialect-{file}"));
    shop.bring_tern();
    shop.bring("stub_on_host.rs", "stub.rs");
    for part in ["list.rs", "long.rs", "piece.rs", "stream.rs"] {
        shop.bring(&format!("../../../../user/lib/stub/src/{part}"), part);
    }
    shop.rustc(&["--crate-type", "rlib", "--emit", "metadata", "--crate-name", "stub", "stub.rs"]);
    let in_rust =
        ["--crate-type", "rlib", "--emit", "metadata", "--extern", "stub=libstub.rmeta", "stubs.rs"];
    let in_c =
        ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I.", "-D_GNU_SOURCE", "-fsyntax-only", "stubs.c"];
    std::fs::write(shop.path("stubs.c"), "#include \"stubs.h\"\n").unwrap();
    for kernel in [&Linux as &dyn KernelPart, &TernIpc, &L4V4] {
        let mut out = compiled(file);
        if quill::parts::rust(kernel).is_some() {
            std::fs::write(shop.path("stubs.rs"), out.rust(kernel)).unwrap();
            assert!(out.accepted(), "{} in Rust: {}", kernel.name(), out.messages());
            shop.rustc(&in_rust);
        }
        std::fs::write(shop.path("stubs.h"), out.c(kernel)).unwrap();
        assert!(out.accepted(), "{} in C: {}", kernel.name(), out.messages());
        for compiler in compilers() {
            shop.tool(&compiler, &in_c);
        }
    }
}

#[test]
fn extensions_of_corba_are_read() {
    let out = compiled("idl4.idl");
    assert_eq!(out.dialect, Dialect::Corba);
    assert_eq!(
        warnings(&out),
        ["the number of an operation has no effect", "`prealloc` has no effect", "`kernelmsg` has no effect"]
    );
    let numbers: Vec<u16> = out.model.interfaces.iter().map(|interface| interface.number).collect();
    assert_eq!(numbers, [37, 0, 0]);
    let fill = &out.model.interfaces[2].operations[1];
    // Seven and a sign have four bits.
    assert_eq!(out.model.show(fill.params[1].ty), "int8");
    let alpha = &out.model.interfaces[1].operations[0];
    assert_eq!(out.model.show(alpha.params[0].ty), "outer_number");
    compiles("idl4.idl");
}

#[test]
fn extensions_of_dce_are_read() {
    let out = compiled("idl4_dce.idl");
    assert_eq!(out.dialect, Dialect::Dce);
    assert_eq!(
        warnings(&out),
        [
            "the header `l4/types.h` is not found; L4's own types are known without it",
            "the number of an operation has no effect",
            "`run` is oneway, so nobody hears what it raises",
            "`kernelmsg` has no effect",
            "`prealloc` has no effect",
        ]
    );
    let control = &out.model.interfaces[1];
    assert_eq!((control.number, control.operations[0].raises.len()), (5, 2));
    assert_eq!(out.model.show(control.operations[0].params[0].ty), "sequence<char, 16>");
    assert!(out.model.interfaces[0].operations[0].oneway);
    compiles("idl4_dce.idl");
}

#[test]
fn the_dialect_of_dice_is_read() {
    let out = compiled("dice.idl");
    assert_eq!(out.dialect, Dialect::Dce);
    assert_eq!(warnings(&out).len(), 15, "{}", out.messages());
    let first = &out.model.interfaces[0];
    assert_eq!((first.name.as_str(), first.number), ("if", 50));
    let read = first.operations.iter().find(|o| o.name == "read").unwrap();
    assert_eq!(out.model.show(read.params[0].ty), "sequence<char, 4096>");
    assert_eq!(read.agreements.len(), 1);
    let query = first.operations.iter().find(|o| o.name == "query").unwrap();
    assert_eq!(out.model.show(query.params[1].ty), "string<80>");
    compiles("dice.idl");
}

/// Pages travel over Tern's ipc, and nowhere else.
#[test]
fn pages_travel_over_tern() {
    let source =
        "interface pager { [kernelmsg(idl4::pagefault)] void fault(in word at, in word ip, out fpage p);
        void give(in flexpage p); };";
    let mut out = text(source);
    out.c(&TernIpc);
    assert!(out.accepted(), "{}", out.messages());
    out.c(&L4V4);
    assert!(out.messages().contains("pages cannot be handed over by `l4-v4`"), "{}", out.messages());
}

/// Nothing of all that is in other files.
#[test]
fn other_files_are_what_they_were() {
    for (source, why) in [
        ("interface I { void f(in word w); };", "`word` is not declared"),
        ("interface I { void f(in int w); };", "`int` is not declared"),
        ("module m { typedef struct { long a; } s; };", "expected a name"),
        ("[uuid(12)] interface I { void f([in] long a); }", ""),
    ] {
        let out = text(source);
        assert_eq!(out.accepted(), why.is_empty(), "{source}: {}", out.messages());
        assert!(out.messages().contains(why), "{source}: {}", out.messages());
    }
}

#[test]
fn mistakes_are_told() {
    for (source, why) in [
        ("[uuid(70000)] interface I { void f(in int a); };", "a whole one from 0 to 65535"),
        ("[uuid(70000)] interface I { void f([in] int a); };", "a whole one from 0 to 65535"),
        ("[uuid(1)] interface I { void f([in] int a) raises (gone); };", "`gone` is no exception"),
        ("[uuid(1)] interface I { exception e {}; exception e {}; };", "`e` is declared twice"),
        (
            "module m { interface I { void f(in threadid t); }; }; library l { };",
            "put each language into a file",
        ),
        ("[uuid(1)] interface I { void f([max_value(-1)] in int a); };", "a whole number from 0 on"),
        ("[uuid(1)] interface I { void f([max_value(3)] in string a); };", "for whole numbers"),
        ("[uuid(1)] interface I { void f([max_value] in int a); };", "needs a value"),
        ("[uuid(1)] interface I { void f([in, max_value(3), string] char *a); };", "for whole numbers"),
        ("[uuid(1)] interface I { import \"none.h\"; void f(in int a); };", "`none.h` is not found"),
        ("import <l4/x.h\ninterface I { void f([in] int a); };", "expected `>`"),
        ("[uuid(1) interface I { void f(in int a); };", "expected"),
        ("[uuid(1)] interface I { void f([in, preloc] int a); };", "`preloc` is not known"),
    ] {
        let out = text(source);
        assert!(out.messages().contains(why), "{source}: {}", out.messages());
    }
    let mut out = text("interface I { ref short f(in ref short a, in threadid t); };");
    out.c(&L4V4);
    assert!(out.messages().contains("the address of a value of type `short`"), "{}", out.messages());
}
